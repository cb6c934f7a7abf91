"""What a user holds has everything, and nothing is guessed without being told."""

import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers import ROOT, raises
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.validation import check_is_fitted

import evenhand
from evenhand import (
    FairBoostedClassifier,
    FairClassifier,
    FairnessWarning,
    FavourableLabelWarning,
    Method,
    TableEncoder,
    fair_pipeline,
    group_rates,
    load_model,
    save_model,
    save_report,
    statistical_rate,
)
from evenhand.core.errors import Parameter
from evenhand.core.groups import plain_labels
from evenhand.persist.archive import MEMBERS
from evenhand.tables.pipeline import FairPipeline

QUICK = {"method": Method(max_iter=20, n_iterates=5), "tau": 0.1}
FIGURES = (
    *("rate_", "accuracy_", "feasible_", "frontier_", "point_", "held_out_", "guarantee_"),
    *("groups_", "small_groups_", "classes_", "trajectory_", "converged_", "n_iter_"),
)


def loans(n=400, labels=("approved", "denied"), seed=0):
    """A table with text, its answers, and who asked."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"income": rng.normal(size=n), "sex": rng.choice(["f", "m"], n)})
    table["job"] = rng.choice(["clerk", "nurse", "smith"], n)
    score = table["income"] + 0.5 * (table["sex"] == "m") + rng.normal(size=n)
    return table, np.where(score > 0, *labels), table["sex"]


def by_second(X):
    return np.asarray(X)[:, 1] > 0


def told(act):
    """The favourable labels that were guessed, each with the file of the line that is shown."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        act()
    return [(str(w.message), w.filename) for w in caught if w.category is FavourableLabelWarning]


def test_what_messages_advise_can_be_pasted():
    table = pd.DataFrame({"sex": ["f", "m", "None"] * 40, "x": np.arange(120) % 7, "job": "a"})
    y = np.arange(120) % 2
    with raises("unclear_words", column="sex", keep_na=Parameter("keep_na", ["sex"])):
        fair_pipeline("sex", tau=0.1).fit(table, y)
    kinds = {"x": "category"}
    model = fair_pipeline("sex", tau=0.1, keep_na=["sex"], exclude=["job"], kinds=kinds)
    model.fit(table, y)
    assert model.groups_.tolist() == ["None", "f", "m"]
    assert model["encoder"].plans_[1].kind == "category"
    with pytest.raises(TypeError, match=r"no parameter 'taw'; did you mean 'tau'\?"):
        fair_pipeline("sex", taw=0.9)


class TestFavourableLabel:
    def numbers(self):
        table, y, z = loans()
        X = np.column_stack([table["income"], np.random.default_rng(1).normal(size=len(y))])
        return X, y, z

    def test_fit_names_the_label_and_the_remedy(self):
        X, y, z = self.numbers()
        found = told(lambda: FairClassifier(**QUICK).fit(X, y, sensitive_features=z))
        assert found == [
            (
                "the labels are 'approved' and 'denied', and 'denied' is taken for the favourable "
                "one because it sorts last; say which one is: pos_label='approved' or "
                "pos_label='denied'.",
                __file__,
            )
        ]

    @pytest.mark.parametrize(
        "act",
        [
            lambda X, y, z: FairClassifier(**QUICK, selection="crossfit", cv=3, random_state=0).fit(
                X, y, sensitive_features=z
            ),
            lambda X, y, z: cross_val_score(
                FairClassifier(**QUICK, sensitive_features=by_second), X, y, cv=3
            ),
            lambda X, y, z: GridSearchCV(
                FairClassifier(**QUICK, sensitive_features=by_second),
                {"method__mu": [0.1, 0.2]},
                cv=2,
            ).fit(X, y),
            lambda X, y, z: FairBoostedClassifier(tau=0.1, n_folds=2, random_state=0).fit(
                X, y, sensitive_features=z
            ),
            lambda X, y, z: fair_pipeline("sex", **QUICK).fit(loans()[0], y),
            lambda X, y, z: cross_val_score(fair_pipeline("sex", **QUICK), loans()[0], y, cv=2),
        ],
        ids=["crossfit", "cross_val_score", "GridSearchCV", "boosted", "pipeline", "both"],
    )
    @pytest.mark.filterwarnings("ignore::evenhand.FairnessWarning")
    def test_once_a_call_and_at_the_users_line(self, act):
        found = told(lambda: act(*self.numbers()))
        assert [file for _, file in found] == [__file__]

    def test_every_call_is_told(self):
        X, y, _ = self.numbers()
        model = FairClassifier(**QUICK, sensitive_features=by_second)
        assert len(told(lambda: [model.fit(X, y) for _ in range(2)])) == 2
        assert len(told(lambda: [cross_val_score(model, X, y, cv=2) for _ in range(2)])) == 2

    def test_a_process_that_works_for_another_tells_once(self, monkeypatch):
        """Whose call a fold is of cannot be known there; the line is not that of a library."""
        monkeypatch.setattr("multiprocessing.parent_process", object)
        monkeypatch.setattr("evenhand.models.settings._TOLD_HERE", set())
        X, y, z = self.numbers()
        model = FairClassifier(**QUICK)
        found = told(lambda: [model.fit(X, y, sensitive_features=z) for _ in range(3)])
        assert [Path(file).name for _, file in found] == ["settings.py"]
        other = np.where(y == "denied", "no", "yes")
        assert len(told(lambda: model.fit(X, other, sensitive_features=z))) == 1

    def test_parquet_and_dask(self, tmp_path):
        pytest.importorskip("pyarrow")
        X, y, z = self.numbers()
        frame = pd.DataFrame(X, columns=["a", "b"]).assign(y=y, z=z)
        frame.to_parquet(tmp_path / "t.parquet")

        def fit():
            FairClassifier(**QUICK).fit_parquet(
                tmp_path / "t.parquet", label="y", sensitive_features="z"
            )

        assert [file for _, file in told(fit)] == [__file__]
        dask = pytest.importorskip("dask")
        import dask.dataframe as dd

        with dask.config.set(scheduler="synchronous"):
            parts = dd.from_pandas(frame, npartitions=2)
            found = told(
                lambda: FairClassifier(**QUICK).fit(
                    parts[["a", "b"]], parts["y"], sensitive_features=parts["z"]
                )
            )
        assert [file for _, file in found] == [__file__]

    def test_tensors(self):
        torch = pytest.importorskip("torch")
        X, y, z = self.numbers()
        codes = torch.from_numpy((y == "denied") + 1)
        model = FairClassifier(**QUICK)
        found = told(lambda: model.fit(torch.from_numpy(X), codes, sensitive_features=z))
        assert ["the labels are 1 and 2" in text for text, _ in found] == [True]

    @pytest.mark.parametrize(
        "labels", [(0, 1), (False, True), (-1, 1), (0.0, 1.0), ("false", "true"), ("0", "1")]
    )
    def test_nothing_to_say(self, labels):
        X, y, z = self.numbers()
        y = np.array(labels)[(y == "denied").astype(int)]
        assert not told(lambda: FairClassifier(**QUICK).fit(X, y, sensitive_features=z))

    def test_said_or_many(self):
        X, y, z = self.numbers()
        said = FairClassifier(**QUICK, pos_label="approved")
        assert not told(lambda: said.fit(X, y, sensitive_features=z))
        many = np.where(X[:, 1] > 1, "later", y)
        model = FairClassifier(**QUICK)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", evenhand.FairnessWarning)
            assert not told(lambda: model.fit(X, many, sensitive_features=z))

    def test_the_same_notion_in_the_rates(self):
        assert plain_labels([0, 1])
        assert not plain_labels(["True", "false"])  # the larger one is "false"
        assert not plain_labels([1, 2])
        answers = ["false", "true", "true", "true"]
        assert statistical_rate(answers, answers, sensitive_features=list("aabb")) == 0.5


class TestSpelling:
    def test_everywhere(self):
        assert "sensitive_features" in FairClassifier().get_params()
        assert "sensitive_features" in FairBoostedClassifier().get_params()
        assert TableEncoder(sensitive_features="sex").sensitive_features == "sex"
        one = fair_pipeline(sensitive_features="sex")
        assert one.sensitive_features == ["sex"]
        assert FairPipeline(one.steps, sensitive_features="sex").groups(loans()[0])[1].all()
        for old in ("sensitive_feature", "sensitive"):
            with pytest.raises(TypeError, match=f"'{old}'"):
                FairClassifier(**{old: "sex"})

    @pytest.mark.parametrize("where", ["sex", 1, lambda X: X["sex"] == "f", "elsewhere"])
    def test_the_groups_of_fit_count(self, where):
        table, y, _ = loans(labels=(1, 0))
        other = np.where(table["income"] > 0, "rich", "poor")
        table = table[["income", "sex"]].assign(debt=np.random.default_rng(2).normal(size=len(y)))
        named = where in ("sex", 1)
        X = table if named else table.assign(sex=table["sex"] == "f")
        model = FairClassifier(**QUICK, sensitive_features=where)
        model.fit(X, y, sensitive_features=other)
        assert model.groups_.tolist() == ["poor", "rich"]
        assert (model.coef_[0, 1] == 0) == named  # the column named there is still no input

    def test_a_pipeline_has_its_groups_in_the_table(self):
        table, y, z = loans(labels=(1, 0))
        with raises("groups_beside_table", columns="'sex'"):
            fair_pipeline("sex").fit(table, y, sensitive_features=z)

    def test_files_with_the_old_names(self, tmp_path):
        import hashlib
        import json
        import zipfile

        path = ROOT / "tests/persist/fixtures/v1-two-labels.model"
        model = load_model(path)
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in MEMBERS}
        state = json.loads(members["model.json"])
        for part, old in (("classifier", "sensitive_feature"), ("encoder", "sensitive")):
            params = state[part]["params"]
            params[old] = params.pop("sensitive_features")
        members["model.json"] = json.dumps(state).encode()
        manifest = json.loads(members["manifest.json"])
        manifest["sha256"]["model.json"] = hashlib.sha256(members["model.json"]).hexdigest()
        members["manifest.json"] = json.dumps(manifest).encode()
        with zipfile.ZipFile(tmp_path / "old", "w") as archive:
            for name, data in members.items():
                archive.writestr(name, data)
        again = load_model(tmp_path / "old")
        np.testing.assert_array_equal(again.model[-1].coef_, model.model[-1].coef_)
        assert again.model[0].sensitive_features == ["sex"]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_no_rate_can_be_known_on_few_rows():
    """Of eight rows two are held out, both of them of one group."""
    rng = np.random.default_rng(8)
    X, y, z = rng.normal(size=(8, 2)), rng.integers(0, 2, 8), rng.choice(["a", "b"], 8)
    with pytest.warns(FairnessWarning, match="the rate cannot be known on the held-out") as caught:
        model = FairClassifier(selection="holdout", random_state=8).fit(X, y, sensitive_features=z)
    assert np.isnan(model.rate_)
    assert "nan" not in str(caught[0].message)


class TestText:
    @pytest.mark.parametrize(
        ("params", "given", "line"),
        [
            ({}, True, "fair_pipeline('sex').fit(X, y)."),
            ({"tau": 0.9, "sensitive_features": "sex"}, False, "('sex', tau=0.9).fit(X, y)."),
            ({"pos_label": 1}, True, "fair_pipeline('sex', pos_label=1).fit(X, y)."),
        ],
    )
    def test_the_column_and_the_line_to_paste(self, params, given, line):
        table, y, z = loans(labels=(1, 0))
        extra = {"sensitive_features": z} if given else {}
        table = table[["income", "job", "sex"]]
        with pytest.raises(ValueError, match="column 'job' of X holds text, such as '") as error:
            FairClassifier(**params).fit(table, y, **extra)
        assert str(error.value).endswith(line)

    def test_where_a_fit_to_numbers_predicts(self):
        table, y, z = loans(labels=(1, 0))
        X = table[["income"]].assign(job=np.arange(len(y)) % 3)
        model = FairClassifier(**QUICK).fit(X, y, sensitive_features=z)
        for method in (model.predict, model.decision_function):
            with pytest.raises(ValueError, match=r"column 'job' of X holds text, .*fair_pipeline"):
                method(table[["income", "job"]])
        with pytest.raises(ValueError, match="column 'job' of X holds 400 missing values"):
            model.predict(X.assign(job=np.nan))

    def test_boosting_names_every_column(self):
        table, y, z = loans(labels=(1, 0))
        with pytest.raises(ValueError, match=r"'sex' .*'job' .*fair_pipeline") as error:
            FairBoostedClassifier().fit(table, y, sensitive_features=z)
        call = re.search(r"X\.astype\(.*?\)\)", str(error.value))[0]
        assert set(eval(call, {"X": table}).dtypes[1:].astype(str)) == {"category"}

    def test_groups_that_are_not_in_the_table(self):
        table, y, z = loans(labels=(1, 0))
        for X in (table.drop(columns="sex"), table.drop(columns="sex").to_numpy()):
            with pytest.raises(ValueError, match="holds text") as error:
                FairClassifier(**QUICK).fit(X, y, sensitive_features=z)
            call = str(error.value).partition("use ")[2].removesuffix(".")
            names = {"X": X, "y": y, "sensitive_features": z, "pd": pd}
            assert eval(call, {"fair_pipeline": fair_pipeline, "Method": Method}, names).rate_ > 0

    @pytest.mark.parametrize("what", ["dates, such as 2020-01-0", "400 missing values (NaN)"])
    def test_dates_and_missing_values(self, what):
        table, y, z = loans(labels=(1, 0))
        assert len(table) == 400
        days = pd.to_datetime("2020-01-01") + pd.to_timedelta(np.arange(400) % 9, unit="D")
        table = table[["income"]].assign(since=days if "dates" in what else np.nan)
        with pytest.raises(ValueError, match=re.escape(what)) as error:
            FairClassifier().fit(table, y, sensitive_features=z)
        assert "use fair_pipeline(" in str(error.value)

    def test_other_errors_stay(self):
        table, y, z = loans(labels=(1, 0))
        with pytest.raises(ValueError, match="NaN"):
            FairClassifier().fit(table[["income"]].to_numpy() * np.nan, y, sensitive_features=z)
        codes = table[["income"]].astype(str)  # numbers, though written as text
        FairClassifier(**QUICK).fit(codes, y, sensitive_features=z)


class TestPipeline:
    @pytest.fixture(scope="class")
    def fitted(self):
        table, y, _ = loans()
        return fair_pipeline("sex", pos_label="approved", tau=0.5).fit(table, y), table, y

    def test_every_figure(self, fitted):
        model, _, _ = fitted
        for name in FIGURES:
            assert getattr(model, name) is getattr(model[-1], name)
        assert model.at(0.9).rate_ >= 0.9
        assert not any(hasattr(fair_pipeline("sex"), name) for name in FIGURES)
        with pytest.raises(NotFittedError):
            check_is_fitted(fair_pipeline("sex"))

    def test_every_answer(self, fitted):
        model, table, y = fitted
        assert model.score(table, y) == np.mean(model.predict(table) == y) == model.accuracy_
        approved = model.decision_function(table) < 0  # classes_[1] is "denied"
        np.testing.assert_array_equal(model.predict(table) == "approved", approved)

    def test_groups_of_the_table_where_they_are_needed(self):
        table, y, _ = loans(labels=(1, 0))
        model = fair_pipeline("sex", **QUICK, group_cuts=True).fit(table, y)
        assert model.score(table, y) == model.accuracy_
        assert len(model.decision_function(table)) == len(y)
        assert set(model.averaged(0.9).predict(table)) <= {0, 1}

    def test_a_mixture(self, fitted):
        model, table, _ = fitted
        mixed = model.averaged(0.9)
        assert mixed.rate_ == pytest.approx(0.9, abs=1e-6) or mixed.rate_ > 0.9
        assert set(mixed.predict(table)) == {"approved", "denied"}
        assert "AveragedClassifier" in mixed._repr_html_()
        assert not hasattr(mixed, "frontier_")

    def test_saved_and_loaded(self, fitted, tmp_path):
        model, table, _ = fitted
        save_model(model, tmp_path / "m")
        again = load_model(tmp_path / "m")
        np.testing.assert_array_equal(again.predict(table), model.predict(table))
        np.testing.assert_array_equal(again.predict_proba(table), model.predict_proba(table))
        assert again.model.rate_ == model.rate_

    def test_report(self, fitted, tmp_path):
        model, table, y = fitted
        rows, answers, _ = loans(seed=9)
        test = {"X_test": rows, "y_test": answers}
        save_report(model, tmp_path / "page.html", table, y, **test, title="loans", label="answer")
        page = (tmp_path / "page.html").read_text(encoding="utf-8")
        assert "loans" in page
        assert "approved" in page
        for rows, labels, message in (
            (table, y[::-1], "not the rows that the pipeline was fitted to"),
            (table, y[1:], "the table has 400 rows, y has 399"),
            (table, np.where(y == "denied", "later", y), "does not know the label 'later'"),
        ):
            with pytest.raises(ValueError, match=message):
                save_report(model, tmp_path / "other.html", rows, labels)
        shuffled = np.random.default_rng(0).permutation(len(table))
        for part in (slice(None), slice(100), shuffled):
            test = {"X_test": table.iloc[part], "y_test": np.asarray(y)[part]}
            with raises("test_rows_fitted", table=Parameter("X_test")):
                save_report(model, tmp_path / "other.html", table, y, **test)
        assert not (tmp_path / "other.html").exists()

    @pytest.mark.parametrize("known", [False, True])
    def test_test_rows_of_a_fit_by_person_prove_nothing(self, known, tmp_path):
        table, y, _ = loans(600, labels=(1, 0))
        persons = {"persons": np.arange(400) // 2} if known else {}
        model = fair_pipeline("sex", **QUICK, selection="holdout", random_state=0)
        model.fit(table[:400], y[:400], **persons)
        test = {"X_test": table[400:], "y_test": y[400:]}
        save_report(model, tmp_path / "page.html", table[:400], y[:400], **test)
        page = (tmp_path / "page.html").read_text(encoding="utf-8")
        save_model(model, tmp_path / "m")
        assert load_model(tmp_path / "m").model.by_person_ == known
        assert ("cannot be told. Several test rows may be of one person" in page) == known
        assert ("They take rows for independent draws" in page) == known

    def test_a_sensitive_column_is_named_once(self):
        table, y, _ = loans()
        with raises("sensitive_twice", column="sex"):
            fair_pipeline(["sex", "sex"], pos_label="approved").fit(table, y)

    def test_report_of_what_has_none(self, tmp_path):
        table, y, _ = loans(labels=(1, 0))
        model = fair_pipeline("sex", tau=0.1, method=QUICK["method"](init="zero")).fit(table, y)
        with pytest.raises(ValueError, match="compares with plain logistic regression"):
            save_report(model, tmp_path / "page.html", table, y)
        with pytest.raises(TypeError, match="FairClassifier in a fair_pipeline"):
            save_report(model[-1], tmp_path / "page.html", table, y)
        weighted = fair_pipeline("sex", **QUICK).fit(table, y, sample_weight=np.arange(400) % 3)
        with pytest.raises(ValueError, match="fitted with weights"):
            save_report(weighted, tmp_path / "page.html", table, y)

    def test_report_of_held_out_and_dropped_rows(self, tmp_path):
        table, y, _ = loans(labels=(1, 0))
        table.loc[:4, "sex"] = None
        model = fair_pipeline(
            "sex", **QUICK, missing_groups="drop", selection="holdout", random_state=0
        ).fit(table, y)
        save_report(model, tmp_path / "page.html", table, y)
        assert "without a group" in (tmp_path / "page.html").read_text(encoding="utf-8")


class TestCounts:
    def test_whole_numbers(self):
        y, z = [1, 0, 1, 0], list("aabb")
        for weight, kind in ((None, "i"), ([2.0, 1, 1, 3], "i"), ([0.5, 1, 1, 1], "f")):
            table = group_rates(y, y, sensitive_features=z, sample_weight=weight)
            assert table["count"].dtype.kind == kind
            assert table["count"].sum() == np.sum(weight if weight else 4)


class TestGroupsThatAreNumbers:
    """Large numbers stay apart, and a group of rows without a value goes with numbers."""

    def frame(self, groups, n=600):
        rng = np.random.default_rng(0)
        g = rng.choice(groups, n)
        x = rng.normal(size=n)
        y = np.where(x + rng.normal(size=n) > 0, "yes", "no")
        return pd.DataFrame({"g": g, "x": x}), y

    def test_beyond_what_floats_tell_apart(self):
        table, y = self.frame([2**53, 2**53 + 1])
        model = fair_pipeline("g", pos_label="yes", **QUICK).fit(table, y)
        assert model.groups_.tolist() == [str(2**53), str(2**53 + 1)]

    @pytest.mark.parametrize("bins", [None, [1.5]])
    def test_rows_without_a_value_are_a_group(self, bins):
        table, y = self.frame([1.0, 2.0, np.nan])
        model = fair_pipeline("g", pos_label="yes", missing_groups="group", bins=bins, **QUICK)
        groups = model.fit(table, y).groups_.tolist()
        assert "(missing)" in groups
        assert len(groups) == 3
        known = table.dropna().reset_index(drop=True)
        assert set(model.groups(known)[0]["g"]) == set(groups) - {"(missing)"}

    def test_a_near_name_is_suggested(self):
        with pytest.raises(TypeError, match="did you mean 'missing_groups'"):
            fair_pipeline("g", missing_group="group")
