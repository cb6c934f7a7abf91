"""Tables as they come: what becomes of each kind of column, in pandas and in polars."""

import narwhals as nw
import numpy as np
import pandas as pd
import pytest
from helpers import raises, warns
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from evenhand import FairClassifier, Method
from evenhand.core.errors import Parameter
from evenhand.datasets import load_adult
from evenhand.tables.columns import as_table
from evenhand.tables.dates import read_days
from evenhand.tables.encoder import TableEncoder
from evenhand.tables.groups import MISSING, group_values
from evenhand.tables.numbers import read_numbers
from evenhand.tables.pipeline import fair_pipeline
from evenhand.tables.plans import OTHER
from evenhand.workflow.train import train as train_table


def frame(n=60):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "number": rng.standard_normal(n).round(3),
            "holes": np.where(np.arange(n) % 6 == 0, np.nan, rng.integers(0, 9, n)),
            "commas": [f"{1000 + 37 * i % 5000:,}" for i in range(n)],
            "percent": [f"{i % 7}%" for i in range(n)],
            "flag": rng.integers(0, 2, n).astype(bool),
            "city": rng.choice(["Bonn", "Ulm", "Wien"], n),
            "gaps": np.where(np.arange(n) % 5 == 0, None, rng.choice(["x", "y"], n)),
            "many": [f"v{i % 30}" for i in range(n)],
            "some": [f"v{i % 30 if i % 3 else 0}" for i in range(n)],
            "day": pd.date_range("2021-01-01", periods=n, freq="17D"),
            "text day": pd.date_range("2022-03-01", periods=n, freq="5D").strftime("%Y-%m-%d"),
            "same": "always",
            "none": None,
            "name": [f"person {i}" for i in range(n)],
            "row": np.arange(n) + 7,
        }
    ).assign(twin=lambda t: t["city"], twice=lambda t: t["number"])


KINDS = {
    "number": ("number", "as it is"),
    "holes": ("number", "10 missing values set to the median, 4"),
    "commas": ("number", "numbers written as text"),
    "percent": ("number", "numbers written as text"),
    "flag": ("category", "2 values"),
    "city": ("category", "3 values"),
    "gaps": ("category", "2 values; 12 missing, a value of their own"),
    "many": ("dropped", "30 values, none of them in 10 rows: nothing to learn from"),
    "some": ("category", "21 values; 20 rare ones taken together"),
    "day": ("date", "as days, month and weekday"),
    "text day": ("date", "dates written as text; as days, month and weekday"),
    "same": ("dropped", "the same value in every row"),
    "none": ("dropped", "no value in any row"),
    "name": ("dropped", "another value in every row: an identifier"),
    "row": ("dropped", "numbers the rows: an identifier"),
    "twin": ("dropped", "the same values as 'city'"),
    "twice": ("dropped", "the same values as 'number'"),
}


@pytest.fixture(params=["pandas", "polars", "pyarrow"])
def native(request):
    """A frame as it is, or as another library's."""
    if request.param == "pandas":
        return lambda table: table
    library = pytest.importorskip(request.param)
    if request.param == "polars":
        return library.from_pandas
    return library.Table.from_pandas


class TestEncoder:
    def test_every_kind_of_column(self, native):
        encoder = TableEncoder().fit(native(frame()))
        decided = encoder.decisions().set_index("column")
        assert decided.index.tolist() == frame().columns.tolist()
        for column, (kind, words) in KINDS.items():
            assert decided.loc[column, "kind"] == kind, column
            assert words in decided.loc[column, "action"], column

    def test_inputs_are_those_of_pandas(self, native):
        plain = TableEncoder().fit_transform(frame())
        other = TableEncoder().fit_transform(native(frame()))
        assert type(plain) is type(other)
        dense = [v.toarray() if issparse(v) else v for v in (plain, other)]
        np.testing.assert_allclose(*dense, atol=1e-12)

    def test_numbers(self):
        encoder = TableEncoder().fit(frame()[["number", "holes", "commas", "percent"]])
        X = encoder.transform(frame())
        names = encoder.get_feature_names_out().tolist()
        assert names == ["number", "holes", "commas", "percent", "holes is missing"]
        np.testing.assert_allclose(X[:, :4].mean(axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(X[:, :4].std(axis=0), 1)
        assert X[:, 4].tolist() == (np.arange(60) % 6 == 0).tolist()
        commas = np.array([1000 + 37 * i % 5000 for i in range(60)])
        np.testing.assert_allclose(X[:, 2], (commas - commas.mean()) / commas.std())

    def test_categories(self):
        encoder = TableEncoder().fit(frame()[["city", "gaps", "some"]])
        names = encoder.get_feature_names_out().tolist()
        assert names == [
            "city = Bonn", "city = Ulm", "city = Wien", "gaps = x", "gaps = y",
            f"gaps = {MISSING}", "some = v0", f"some = {OTHER}",
        ]  # fmt: skip
        new = pd.DataFrame({"city": ["Rom", None], "gaps": ["z", None], "some": ["v1", None]})
        X = encoder.transform(new)
        X = X.toarray() if issparse(X) else X
        assert X.tolist() == [[0, 0, 0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 1, 0, 1]]

    def test_dates(self):
        encoder = TableEncoder().fit(frame()[["day"]])
        X = encoder.transform(pd.DataFrame({"day": ["2021-01-18", None]}))
        X = X.toarray() if issparse(X) else X
        on = encoder.get_feature_names_out()[1:][X[0, 1:] > 0].tolist()
        assert on == ["day: month = January", "day: weekday = Monday"]
        assert (X[1, 1:] == 0).all()

    def test_sparse_where_it_pays(self):
        wide = pd.DataFrame({"c": [f"v{i % 40}" for i in range(800)]})
        assert issparse(TableEncoder().fit_transform(wide))
        assert not issparse(TableEncoder().fit_transform(frame()[["number", "holes"]]))

    def test_order_and_further_columns_do_not_matter(self):
        encoder = TableEncoder().fit(frame())
        shuffled = frame()[frame().columns[::-1]].assign(more=1)
        one, two = encoder.transform(frame()), encoder.transform(shuffled)
        assert (one != two).sum() == 0

    def test_categories_of_whole_numbers_read_as_floats(self):
        table = pd.DataFrame({"code": pd.Categorical([1, 2, 3] * 20)})
        encoder = TableEncoder().fit(table)
        X = encoder.transform(pd.DataFrame({"code": [1.0, 2.0, np.nan]}))
        X = X.toarray() if issparse(X) else X
        assert X.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 0]]

    def test_restored_from_plans_bit_for_bit(self):
        table = frame()
        encoder = TableEncoder().fit(table)
        sparse = bool(encoder.sparse_)
        again = TableEncoder.from_plans(encoder.plans_, sparse=sparse)
        one, two = encoder.transform(table), again.transform(table)
        assert type(one) is type(two)
        assert (one != two).sum() == 0
        names = again.get_feature_names_out().tolist()
        assert names == encoder.get_feature_names_out().tolist()

    def test_words_that_stand_for_others_are_no_categories(self):
        table = pd.DataFrame({"c": [OTHER, MISSING, "a", "b"] * 20})
        encoder = TableEncoder().fit(table)
        assert encoder.get_feature_names_out().tolist() == ["c = a", "c = b", f"c = {OTHER}"]

    def test_a_leak_is_warned_of(self):
        y = frame()["flag"].to_numpy()
        table = frame()[["number"]].assign(decided=np.where(y, "paid", "owes"))
        with warns("leak", column="decided", tells="tells the label without fail"):
            encoder = TableEncoder().fit(table, y)
        assert "without fail" in encoder.decisions()["action"].iloc[1]

    @pytest.mark.parametrize(
        ("table", "code", "data"),
        [
            (frame().iloc[:0], "no_rows", {}),
            (pd.DataFrame({"a": [1, 1], "b": [2, 2]}), "no_inputs", {}),
            (pd.DataFrame([[1, 2]], columns=["a", "a"]), "column_twice", {"column": "a"}),
            (pd.DataFrame({"a": [np.inf, 1.0]}), "infinite_column", {"column": "a", "n": 1}),
            (pd.DataFrame({"a": [[1], [2]]}), "nested_column", {"column": "a"}),
            ([[1, 2]], "not_a_table", {"type": "list"}),
        ],
    )
    def test_bad_tables(self, table, code, data):
        with raises(code, **data):
            TableEncoder().fit(table)

    def test_bad_tables_later(self):
        encoder = TableEncoder().fit(frame())
        with raises("missing_input_column", column="city"):
            encoder.transform(frame().drop(columns="city"))
        with raises("unreadable_value", column="number", what="numbers", value="x", row=1):
            encoder.transform(frame().assign(number="x"))
        with raises("unreadable_value", column="day", what="dates", value="x", row=1):
            encoder.transform(frame().assign(day="x"))
        with raises("unknown_column", column="zip"):
            TableEncoder(exclude="zip").fit(frame())


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(1)
    n = 400
    sex = rng.choice(["f", "m"], n)
    x = rng.standard_normal(n) + 0.6 * (sex == "m")
    y = (x + rng.logistic(size=n) > 0.3).astype(int)
    job = rng.choice(["a", "b", "c"], n)
    return pd.DataFrame({"x": x, "job": job, "sex": sex, "old": rng.integers(0, 2, n)}), y


def days(*order, sep, n=60):
    """Dates written in some order, every fifth day from the end of 2020 on."""
    stamps = pd.date_range("2020-12-31", periods=n, freq="5D")
    return stamps.strftime(sep.join(order)).tolist()


# How values are written, what they are, and what is said of them.
WRITTEN = {
    "dots": (days("%d", "%m", "%Y", sep="."), "date", "day first", "read as dates, day first"),
    "slashes, day first": (days("%d", "%m", "%Y", sep="/"), "date", "day first", "day first"),
    "slashes, month first": (
        days("%m", "%d", "%Y", sep="/"), "date", "month first", "read as dates, month first",
    ),
    "year first": (days("%Y", "%m", "%d", sep="/"), "date", "year first", "year first"),
    "with a time": (
        [f"{day} 11:30:00 PM" for day in days("%m", "%d", "%Y", sep="/")],
        "date", "month first", "read as dates, month first",
    ),
    "either": (
        [f"{i % 12 + 1:02d}/{i % 11 + 1:02d}/2020" for i in range(60)],
        "date", "day first", "read as dates, day first, though each could be month first",
    ),
    "decimal comma": (
        [f"{i % 17},{i % 100:02d}" for i in range(60)],
        "number", "decimal comma", "read as numbers, decimal comma",
    ),
    "three decimals": (
        [f"{i % 3},{i * 37 % 1000:03d}" for i in range(60)], "number", "decimal comma", "comma",
    ),
    "points and a comma": (
        [f"1.{i * 7 % 1000:03d},5" for i in range(60)], "number", "decimal comma", "decimal comma",
    ),
    "points only": (
        [f"{i % 3 + 1}.{i * 7 % 1000:03d}.500" for i in range(60)],
        "number", "decimal comma", "read as numbers, decimal comma",
    ),
    "spaces": ([f"{i % 9 + 1} 2{i % 45:02d}" for i in range(60)], "number", "", "written as text"),
    "narrow spaces": ([f"{i % 9 + 1}\u202f2{i:02d}" for i in range(60)], "number", "", "as text"),
    "dollars": ([f"${i * 7 % 50}" for i in range(60)], "number", "in $", "read as numbers, in $"),
    "euros": (
        [f"{i * 7 % 50},50 €" for i in range(60)],
        "number", "decimal comma, in €", "read as numbers, decimal comma, in €",
    ),
    "percent": ([f"{i * 7 % 50} %" for i in range(60)], "number", "", "numbers written as text"),
    "thousands or decimals": (
        [f"{i % 7 + 1},{i * 37 % 1000:03d}" for i in range(60)], "number", "",
        "numbers written as text, commas between thousands",
    ),
    "zip codes": (["00501", "10001", "90210"] * 20, "category", "", "codes with leading zeros"),
    "codes of any length": (["007", "12", "3456"] * 20, "category", "", "leading zeros"),
    "dollars and euros": (["$1", "€1", "$2"] * 20, "category", "", "3 values"),
    "both orders": (["31/12/2020", "12/31/2020"] * 30, "category", "", "2 values"),
    "no such days": (["2020-02-30", "2020-02-31"] * 30, "category", "", "2 values"),
}  # fmt: skip


class TestHowValuesAreWritten:
    @pytest.mark.parametrize("name", WRITTEN)
    def test_found_out(self, name):
        values, kind, written, words = WRITTEN[name]
        plan = TableEncoder().fit(pd.DataFrame({"c": values})).plans_[0]
        assert (plan.kind, plan.written) == (kind, written)
        assert words in plan.action

    @pytest.mark.parametrize(
        ("text", "written", "value"),
        [
            ("3,14", "decimal comma", 3.14),
            ("-1.234,5", "decimal comma", -1234.5),
            ("1 234 567", "", 1234567),
            ("1'234.5", "", 1234.5),
            ("-$1,234.50", "in $", -1234.5),
            ("$-3", "in $", -3),
            ("12 €", "in €", 12),
            ("12 %", "", 0.12),
            ("−4", "", -4),
            (".5e3", "", 500),
            ("$12", "", np.nan),
            ("€12", "in $", np.nan),
            ("3,14", "", np.nan),
            ("1,2345", "", np.nan),
            ("1 2", "", np.nan),
            ("e5", "", np.nan),
            ("$", "in $", np.nan),
            ("--3", "", np.nan),
        ],
    )
    def test_numbers(self, text, written, value):
        column = as_table(pd.DataFrame({"c": [text]}))["c"]
        read = read_numbers(column, written=written, tolerant=True)
        np.testing.assert_array_equal(read, [value])

    @pytest.mark.parametrize(
        ("text", "written", "stamp"),
        [
            ("31.12.2020", "day first", "2020-12-31"),
            ("1. 2. 2020", "day first", "2020-02-01"),
            ("12/31/2020", "month first", "2020-12-31"),
            ("2020/1/5", "year first", "2020-01-05"),
            ("12/31/2020 12:30 AM", "month first", "2020-12-31 00:30"),
            ("31.12.2020 18:00:00", "day first", "2020-12-31 18:00"),
            ("31.02.2020", "day first", None),
            ("31.12-2020", "day first", None),
            ("31.12.20", "day first", None),
            ("12/31/2020 13:30 PM", "month first", None),
        ],
    )
    def test_days(self, text, written, stamp):
        column = as_table(pd.DataFrame({"c": [text]}))["c"]
        day = np.nan if stamp is None else pd.Timestamp(stamp).timestamp() / 86400
        read = read_days(column, written=written, tolerant=True)
        np.testing.assert_allclose(read, [day])

    def test_later_rows_are_read_alike(self):
        encoder = TableEncoder().fit(pd.DataFrame({"d": WRITTEN["dots"][0], "x": range(60, 0, -1)}))
        plain = pd.DataFrame({"d": pd.to_datetime(["2021-03-04", "2021-04-03"]), "x": 1})
        own = TableEncoder.from_plans(encoder.plans_, sparse=False)
        text = pd.DataFrame({"d": ["04.03.2021", "03.04.2021"], "x": 1})
        np.testing.assert_allclose(own.transform(text), own.transform(plain))
        with raises(
            "unreadable_value", column="d", what="dates (day first)", value="12/31/2021", row=2
        ):
            encoder.transform(text.assign(d=["04.03.2021", "12/31/2021"]))

    def test_kinds_say_otherwise(self):
        either = pd.DataFrame({"d": WRITTEN["either"][0], "zip": ["00501", "10001"] * 30})
        kinds = {"d": "date, month first", "zip": "number"}
        plans = TableEncoder(kinds=kinds).fit(either).plans_
        assert [p.written for p in plans] == ["month first", ""]
        assert [p.kind for p in plans] == ["date", "number"]
        codes = pd.DataFrame({"c": [1, 2, 3] * 20})
        assert TableEncoder(kinds={"c": "category"}).fit(codes).plans_[0].kind == "category"
        for kinds, code, data in [
            ({"c": "words"}, "unknown_kind", {"column": "c", "value": "words"}),
            ({"c": "date"}, "kind_of_other_type", {"column": "c", "type": "numbers"}),
            ({"q": "number"}, "unknown_column", {"column": "q"}),
        ]:
            with raises(code, **data):
                TableEncoder(kinds=kinds).fit(codes)

    def test_more_rows_decide(self):
        values = pd.DataFrame({"d": ["01/02/2020", "03/04/2020"] * 40 + ["12/31/2020"], "x": 1})
        seen = TableEncoder().fit(values)
        part = TableEncoder()
        part.fit_transform(values[:80], formats=seen.formats_)
        assert part.plans_[0].written == "month first"


def rng_values(n):
    return np.random.default_rng(1).standard_normal(n)


class TestIdentifiers:
    rng = np.random.default_rng(0)

    @pytest.mark.parametrize(
        ("name", "values", "why"),
        [
            ("row", rng.permutation(60), "numbers the rows"),
            ("case", rng.permutation(205)[:200], "with gaps"),
            ("case", np.cumsum(rng.integers(1, 90, 200)), "in order"),
            ("case", -np.cumsum(rng.integers(1, 90, 200)), "in order"),
            ("customerID", rng.permutation(90_000)[:200], "its name"),
            ("person_id", rng.permutation(90_000)[:200], "its name"),
            ("id", np.arange(200) // 2, "100 different whole numbers in 200 rows, and its name"),
            ("patient_nbr", rng.integers(0, 290, 200) * 7.0, "in 200 rows, and its name"),
            ("case number", np.where(np.arange(200) % 9, rng.integers(0, 90, 200), np.nan), "name"),
            ("idStudent", [f"s{i}" for i in rng.integers(0, 90, 200)], "different values in 200"),
        ],
    )
    def test_dropped(self, name, values, why):
        table = pd.DataFrame({name: values, "x": rng_values(len(values))})
        plan = TableEncoder().fit(table).plans_[0]
        assert plan.kind == "dropped"
        assert why in plan.action
        assert "an identifier" in plan.action
        kind = "number" if np.asarray(values).dtype.kind in "if" else "category"
        assert plan.action.endswith(f"kinds={{{name!r}: {kind!r}}} keeps it")
        kept = TableEncoder(kinds={name: kind}, min_count=1).fit(table)
        assert kept.plans_[0].kind == kind

    @pytest.mark.parametrize(
        ("name", "values"),
        [
            ("income", rng.permutation(90_000)[:50]),
            ("income", rng.permutation(90_000)[:200]),
            ("paid", rng.permutation(90_000)[:200]),  # "id" only inside a word
            ("income", np.sort(rng.permutation(90_000)[:50])),
            ("id", rng.permutation(200) + 0.5),
            ("number_of_acres", rng.permutation(90_000)[:200]),
            ("stress_index", rng.integers(0, 90, 200)),
            ("store_id", rng.integers(0, 9, 200)),
        ],
    )
    def test_kept(self, name, values):
        table = pd.DataFrame({name: values, "x": rng_values(len(values))})
        assert TableEncoder().fit(table).plans_[0].kind == "number"


class TestLostZeros:
    """A spreadsheet writes the code 00501 as 501."""

    CODES = ("00501", "01234", "99999")

    @pytest.mark.parametrize("read_as", [str, int])
    def test_codes_without_their_zeros_are_told(self, read_as):
        encoder = TableEncoder().fit(pd.DataFrame({"zip": np.repeat(self.CODES, 20)}))
        lost = pd.DataFrame({"zip": [read_as(code.lstrip("0")) for code in self.CODES]})
        with warns("lost_zeros", column="zip", value="1234", category="01234"):
            found = encoder.transform(lost)
        # They are unknown values.
        np.testing.assert_array_equal(np.asarray(found)[:2], 0)

    def test_others_are_not(self):
        codes = pd.DataFrame({"zip": np.repeat([*self.CODES, "501"], 20)})
        encoder = TableEncoder(kinds={"zip": "category"}).fit(codes)
        encoder.transform(pd.DataFrame({"zip": ["501", "00501", "7"]}))  # a warning is an error


def test_medians_are_written_as_people_write_them():
    dates = pd.date_range("2001-01-01", periods=61, freq="D").to_series(index=range(61))
    table = pd.DataFrame({"born": dates, "pay": 50_000.0 + np.arange(61) ** 2, "some": dates})
    table.loc[3, ["born", "pay"]] = None
    said = TableEncoder().fit(table).decisions().set_index("column")["action"]
    assert "1 missing value set to the median, 2001-01-31;" in said["born"]
    assert said["pay"] == "1 missing value set to the median, 50,930"


class TestPipeline:
    def test_errors_of_the_classifier_name_the_column(self, people):
        X, y = people
        with raises("number_of_groups", n=1) as caught:
            fair_pipeline("sex").fit(X.assign(sex="f"), y)
        assert str(caught.value).startswith("the sensitive column 'sex' has 1 group: 'f'")
        model = fair_pipeline("sex", tau=0.7, group_cuts=True).fit(X, y)
        with raises("unknown_group", groups="the sensitive column 'sex'", group="x"):
            model.predict(X.assign(sex="x"))

    def test_like_its_parts(self, people):
        X, y = people
        ours = fair_pipeline("sex", tau=0.7).fit(X, y)
        inputs = TableEncoder(exclude="sex").fit_transform(X)
        theirs = FairClassifier(tau=0.7).fit(inputs, y, sensitive_features=X["sex"])
        np.testing.assert_array_equal(ours[-1].coef_, theirs.coef_)
        assert (ours.predict(X) == theirs.predict(inputs)).all()
        assert ours[-1].groups_.tolist() == ["f", "m"]
        np.testing.assert_array_equal(ours.predict_proba(X), theirs.predict_proba(inputs))
        assert ours.score(X, y) == np.mean(ours.predict(X) == y)

    def test_polars(self, people):
        polars = pytest.importorskip("polars")
        X, y = people
        ours = fair_pipeline("sex", tau=0.7).fit(X, y)
        theirs = fair_pipeline("sex", tau=0.7).fit(polars.from_pandas(X), y)
        np.testing.assert_allclose(ours[-1].coef_, theirs[-1].coef_)

    def test_sensitive_columns_are_no_inputs_unless_asked_for(self, people):
        X, y = people
        blind = fair_pipeline("sex").fit(X, y)
        assert not any("sex" in n for n in blind[0].get_feature_names_out())
        seeing = fair_pipeline("sex", sensitive_inputs=True).fit(X, y)
        assert "sex = f" in seeing[0].get_feature_names_out()

    def test_crossed(self, people):
        X, y = people
        model = fair_pipeline(["sex", "old"], tau=0.5).fit(X, y)
        assert model[-1].groups_.tolist() == ["f & 0", "f & 1", "m & 0", "m & 1"]

    def test_bins_are_crossed(self, people):
        X, y = people
        X = X.assign(age=np.random.default_rng(2).integers(18, 70, 400).astype(str))
        params = {"bins": {"age": [30, 50]}, "tau": 0.3, "group_cuts": True}
        model = fair_pipeline(["age", "sex"], **params).fit(X, y)
        bins = pd.cut(X["age"].astype(int), [0, 29, 49, 99], labels=["below", "30 to", "from"])
        assert model[-1].groups_.tolist() == [
            "below 30 & f", "below 30 & m", "30 to 50 & f", "30 to 50 & m",
            "from 50 & f", "from 50 & m",
        ]  # fmt: skip
        groups, _ = model.groups(X)
        assert all(g.startswith(b) for g, b in zip(groups["age"], bins, strict=True))
        some = X.iloc[:7].assign(age="44")  # where the edges lie was learned
        assert set(model.groups(some)[0]["age"]) == {"30 to 50"}
        assert model.predict(some).shape == (7,)
        with raises("bins_of_no_number", column="age", value="old"):
            model.predict(some.assign(age="old"))

    def test_so_many_crossed_bins(self, people):
        X, y = people
        X = X.assign(age=np.where(np.arange(400) % 5, np.arange(400) % 50, np.nan))
        model = fair_pipeline(["age", "sex"], bins={"age": 3}, tau=0.1, missing_groups="group")
        model.fit(X, y)
        assert len(model.edges_["age"]) == 2
        assert len(model[-1].groups_) == 8
        assert "(missing) & f" in model[-1].groups_

    def test_bins_of_one_column_are_the_classifiers(self, people):
        X, y = people
        X = X.assign(age=np.arange(400) % 50)
        one = fair_pipeline("age", bins={"age": [25]}, tau=0.3).fit(X, y)
        two = fair_pipeline("age", bins=[25], tau=0.3).fit(X, y)
        np.testing.assert_array_equal(one[-1].coef_, two[-1].coef_)
        assert one[-1].bins == [25]

    @pytest.mark.parametrize(
        ("bins", "code", "data"),
        [
            ([30], "bins_of_which_column", {"n": 2}),
            ({"age": [30]}, "bins_of_other_column", {"column": "age"}),
            ({"old": 1}, "too_few_bins", {"column": "old", "bins": Parameter("bins", 1)}),
            ({"sex": 2}, "bins_of_no_number", {"column": "sex"}),
        ],
    )
    def test_bad_bins(self, people, bins, code, data):
        X, y = people
        with raises(code, **data):
            fair_pipeline(["sex", "old"], bins=bins).fit(X, y)

    def test_missing_groups(self, people):
        X, y = people
        X = X.assign(sex=X["sex"].mask(np.arange(400) % 8 == 0))
        with raises("rows_without_group", column="sex", n=50):
            fair_pipeline("sex").fit(X, y)
        dropped = fair_pipeline("sex", missing_groups="drop").fit(X, y)
        assert dropped.n_dropped_ == 50
        assert dropped[-1].groups_.tolist() == ["f", "m"]
        assert dropped.predict(X).shape == (400,)  # the group is not needed to predict
        grouped = fair_pipeline("sex", missing_groups="group", tau=0.1).fit(X, y)
        assert grouped[-1].groups_.tolist() == [MISSING, "f", "m"]
        with raises("unknown_missing_groups", missing_groups=Parameter("missing_groups", "guess")):
            fair_pipeline("sex", missing_groups="guess").fit(X, y)

    def test_group_cuts_find_the_group(self, people):
        X, y = people
        model = fair_pipeline("sex", group_cuts=True).fit(X, y)
        assert model[-1].accuracy_ == pytest.approx(np.mean(model.predict(X) == y))
        with raises("unknown_sensitive_column", column="sex"):
            model.predict(X.drop(columns="sex"))

    def test_another_target(self, people):
        X, y = people
        model = fair_pipeline("sex", tau=0.5).fit(X, y)
        other = model.at(0.9)
        assert other[-1].rate_ >= 0.9 > model[-1].tau
        assert model[-1].tau == 0.5

    def test_scikit_learn_knows_it(self, people):
        X, y = people
        model = fair_pipeline("sex", tau=0.5, method=Method(max_iter=20))
        again = clone(model)
        assert again.sensitive_features == ["sex"]
        assert cross_val_score(again, X, y, cv=2).shape == (2,)
        again.set_params(classifier__tau=0.7)
        assert again[-1].tau == 0.7

    def test_weights(self, people):
        X, y = people
        weight = np.random.default_rng(0).integers(1, 3, 400)
        weighted = fair_pipeline("sex").fit(X, y, sample_weight=weight)
        assert weighted[-1].frontier_.last.counts.sum() == weight.sum()

    def test_bad_calls(self, people):
        X, y = people
        with raises("no_sensitive_column"):
            fair_pipeline([])
        with raises("classifier_and_parameters"):
            fair_pipeline("sex", classifier=FairClassifier(), tau=0.8)
        with raises("unknown_sensitive_column", column="age"):
            fair_pipeline("age").fit(X, y)
        with raises("labels_of_other_rows", n=400, n_labels=3):
            fair_pipeline("sex").fit(X, y[:3])


def test_group_values_keep_whole_numbers():
    table = pd.DataFrame({"a": [1.0, 2.0], "b": [1.5, 2.0], "c": ["x", " "]})
    values = group_values(table, ["a", "b", "c"])
    assert values["a"].tolist() == [1, 2]
    assert values["a"].dtype.kind == "i"
    assert values["c"].tolist() == ["x", None]


def test_adult_as_it_comes_is_as_good_as_its_own_encoder():
    adult = load_adult()
    X = adult.frame.drop(columns=["income", "fnlwgt", "education"])
    model = fair_pipeline("sex", tau=0.8).fit(X, adult.target)
    own = adult.encoder.fit_transform(adult.data)
    theirs = FairClassifier(tau=0.8).fit(
        own, adult.target, sensitive_features=adult.sensitive_features
    )
    assert model[-1].accuracy_ == pytest.approx(theirs.accuracy_, abs=0.005)


class TestWideTables:
    def test_too_wide_is_said_at_once(self, monkeypatch):
        monkeypatch.setattr("evenhand.tables.columns.MOST_COLUMNS", 5)
        monkeypatch.setattr(
            "evenhand.workflow.labels.fingerprint", None
        )  # nothing is looked at before
        frame = pd.DataFrame(np.eye(40, 8), columns=list("abcdefgh")).assign(y=[0, 1] * 20)
        with raises("too_many_columns", n=8, most=5):
            TableEncoder().fit(frame.drop(columns="y"))
        with raises("too_many_columns", n=9):
            train_table(frame, label="y", sensitive=["a"])

    def test_the_names_of_the_columns_are_not_listed_for_each(self, monkeypatch):
        names = [f"c{i}" for i in range(60)]
        frame = pd.DataFrame(np.random.default_rng(0).standard_normal((30, 60)), columns=names)
        encoder = TableEncoder().fit(frame)
        seen, listed = [], nw.DataFrame.columns.fget
        counted = property(lambda self: seen.append(1) or listed(self))
        monkeypatch.setattr(nw.DataFrame, "columns", counted)
        encoder.transform(frame)
        assert len(seen) < 10

    @pytest.mark.parametrize("n", [12, 3000])
    def test_short_columns_are_numbered_as_long_ones(self, n):
        values = [None, 1, 1.0, "1", float("nan"), True, pd.NaT, pd.NA, "a", 2.5, "a", -1] * (
            n // 12
        )
        column = as_table(pd.DataFrame({"c": pd.Series(values, dtype=object)}))["c"]
        assert column.codes[:12].tolist() == [-1, 0, 0, 1, -1, 0, -1, -1, 2, 3, 2, 4]
        assert column.levels.tolist() == [1, "1", "a", 2.5, -1]
