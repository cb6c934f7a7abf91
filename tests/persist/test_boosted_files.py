"""Saved boosted models: the same predictions bit for bit, and trees that are refused."""

import io
import warnings

import numpy as np
import pandas as pd
import pytest
from helpers import raises
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from test_persist import edit_state, refused, rewritten, state
from threadpoolctl import threadpool_limits

from evenhand import FairAdjusted, FairBoostedClassifier, FairnessWarning, load_model, save_model
from evenhand.models.trees import forest_of
from evenhand.persist.onnx import ESTIMATES, to_onnx
from evenhand.tables.pipeline import fair_pipeline


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    with threadpool_limits(1):
        yield


def table(n=300):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((n, 3)), columns=list("abc"))
    frame.loc[::7, "a"] = np.nan
    frame["kind"] = pd.Categorical(rng.choice(["x", "y", "ü <c>", None], n))
    frame["code"] = pd.Categorical(rng.integers(0, 5, n))
    z = rng.choice(["p", "q", "r"], n)
    score = frame["b"] + (frame["kind"] == "x") + 0.5 * (z == "p") + rng.logistic(size=n)
    return frame, (score > 0).to_numpy().astype(int), z, np.digitize(score, [-0.5, 1.0])


def booster_of(library):
    if library == "scikit-learn":
        return HistGradientBoostingClassifier(max_iter=4, max_leaf_nodes=5)
    if library == "lightgbm":
        module = pytest.importorskip(library)
        return module.LGBMClassifier(n_estimators=4, min_child_samples=5, verbosity=-1)
    return pytest.importorskip(library).XGBClassifier(n_estimators=4, max_depth=3)


QUICK = {"n_folds": 2, "tau": 0.3, "random_state": 0}


@pytest.mark.parametrize("library", ["scikit-learn", "lightgbm", "xgboost"])
@pytest.mark.parametrize("kind", ["blind", "aware", "three labels"])
@pytest.mark.filterwarnings("ignore::evenhand.FairnessWarning")
def test_the_same_bit_for_bit(library, kind, tmp_path):
    frame, y, z, three = table()
    aware = kind == "aware"
    options = QUICK | {"group_cuts": aware, "confidence": None if aware else 0.9}
    model = FairBoostedClassifier(booster=booster_of(library), **options)
    model.fit(frame, three if kind == "three labels" else y, sensitive_features=z)
    save_model(model, tmp_path / "m")
    again = load_model(tmp_path / "m").model
    groups = {"sensitive_features": z} if aware else {}
    new = frame.assign(kind=pd.Categorical(np.where(frame.index % 9, frame["kind"], "new")))
    for one, two in ((model, again), (model.at(0.6), again.at(0.6))):
        np.testing.assert_array_equal(
            one.predict_proba(new, **groups), two.predict_proba(new, **groups)
        )
        assert (one.rate_, one.accuracy_) == (two.rate_, two.accuracy_)
    assert (again.booster_, again.column_names_) == (model.booster_, model.column_names_)
    save_model(again, tmp_path / "n")
    assert (tmp_path / "n").stat().st_size > 1000


def test_what_cannot_be_saved(tmp_path):
    frame, y, z, _ = table()
    numbers = frame[["b", "c"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairnessWarning)
        other = FairBoostedClassifier(booster=DecisionTreeClassifier(max_depth=2), **QUICK)
        other.fit(numbers, y, sensitive_features=z)
        scorer = DecisionTreeClassifier(max_depth=2).fit(numbers, y)
        scored = FairBoostedClassifier(
            booster=booster_of("scikit-learn"), scorers=[scorer], **QUICK
        ).fit(numbers, y, sensitive_features=z)
    with raises("unsavable_booster"):
        save_model(other, tmp_path / "m")
    whole, boost = np.nan_to_num(numbers, nan=-999.0), pytest.importorskip("xgboost").XGBClassifier
    gaps = FairBoostedClassifier(booster=boost(n_estimators=3, missing=-999.0), **QUICK)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairnessWarning)
        gaps.fit(whole, y, sensitive_features=z)
    with raises("unsavable_booster"):
        save_model(gaps, tmp_path / "m")
    with raises("not_exportable", what=ESTIMATES):
        to_onnx(gaps)
    with raises("unsavable_scorers"):
        save_model(scored, tmp_path / "m")
    assert not (tmp_path / "m").exists()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    frame, y, z, _ = table()
    path = tmp_path_factory.mktemp("models") / "m"
    pipeline = fair_pipeline("z", boosted=True, booster=booster_of("scikit-learn"), **QUICK)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairnessWarning)
        pipeline.fit(frame.assign(z=z), y)
    save_model(pipeline, path)
    with raises("not_exportable", what=ESTIMATES):
        to_onnx(pipeline)
    return path.read_bytes()


def array(name, change):
    def edit(members):
        with np.load(io.BytesIO(members["arrays.npz"])) as held:
            arrays = {key: held[key] for key in held.files}
        arrays[name] = change(arrays[name].copy())
        out = io.BytesIO()
        np.savez(out, **arrays)
        members["arrays.npz"] = out.getvalue()

    return edit


def several(*edits):
    def edit(members):
        for one in edits:
            one(members)

    return edit


def put(at, value):
    def change(values):
        values[at] = value
        return values

    return change


def about(**values):
    return state(lambda s: s["boosted"].update(values))


CHANGES = {
    "a cycle": (array("trees.left", put(1, 0)), "bad_trees order of nodes"),
    "a node below itself": (array("trees.right", put(0, 0)), "bad_trees order of nodes"),
    "a node that is not there": (array("trees.left", put(0, 10**9)), "bad_index trees.left"),
    "a leaf that is not there": (array("trees.right", put(0, -(10**9))), "bad_index trees.right"),
    "a root that is not there": (array("trees.roots", put(0, 10**6)), "bad_index trees.roots"),
    "an input that is not there": (array("trees.feature", put(0, 99)), "bad_index trees.feature"),
    "an input before the first": (array("trees.feature", put(0, -1)), "bad_index trees.feature"),
    "an output": (array("trees.output", put(0, 1)), "bad_index trees.output"),
    "a set that is not there": (array("trees.category", put(0, 0)), "bad_index trees.category"),
    "sizes": (array("trees.sizes", put((0, 1), 10**6)), "bad_trees feature"),
    "negative sizes": (array("trees.sizes", put((0, 1), -1)), "bad_index trees.sizes"),
    "a leaf of no number": (array("trees.values", put(0, np.nan)), "not_finite trees.values"),
    "a threshold of none": (array("trees.threshold", put(0, np.nan)), "not_finite trees.threshold"),
    "other kinds": (
        array("trees.feature", lambda v: v.astype(np.float64)),
        "other_dtype trees.feature",
    ),
    "slopes that are not there": (array("trees.sizes", put((0, 6), 4)), "bad_trees slopes"),
    "slopes of other columns": (
        several(array("trees.sizes", put((0, 6), 2)), array("trees.slopes", lambda v: np.zeros(2))),
        "bad_trees slopes",
    ),
    "fewer trees": (array("trees.roots", lambda v: v[:-1]), "bad_trees roots"),
    "a scale of 0": (array("scaler.scale", put(0, 0.0)), "bad_scale label logit"),
    "fewer scales": (array("scaler.mean", lambda v: v[:-1]), "other_shape scaler.mean"),
    "folds": (state(lambda s: s["boosted"]["params"].update(n_folds=3)), "bad_trees models"),
    "no folds": (
        state(lambda s: s["boosted"]["params"].update(n_folds=0)),
        "invalid_parameter n_folds",
    ),
    "code": (state(lambda s: s["boosted"]["params"].update(evil=1)), "unknown_parameter boosted"),
    "a booster": (about(booster=["os.system"]), "bad_value booster"),
    "classes": (
        state(lambda s: s["boosted"]["models"].__setitem__(0, [[0, 5], True])),
        "bad_index models",
    ),
    "fewer models": (state(lambda s: s["boosted"]["models"].pop()), "bad_trees models"),
    "inputs": (about(n_features_in=3), None),
    "names of others": (
        state(lambda s: s["boosted"].update(feature_names_in={"kind": "str", "values": ["b"]})),
        "other_columns",
    ),
    "a column of groups": (about(group_column=99), "bad_index group_column"),
    "categories of a column": (
        about(categories=[[99, {"kind": "int", "values": [1]}]]),
        "bad_index categories",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_hostile_trees(name, saved, tmp_path):
    change, reason = CHANGES[name]
    refused(rewritten(saved, change), tmp_path, reason)


def test_a_file_as_it_is_is_read(saved, tmp_path):
    def nothing(members):
        edit_state(members, lambda s: None)

    (tmp_path / "m").write_bytes(rewritten(saved, nothing))
    assert load_model(tmp_path / "m").model[-1].n_folds == 2


def adjusted(kind, aware):
    """An adjusted model of a column, or of trees, with its frame and labels."""
    frame, y, z, three = table()
    frame["score"] = frame["b"] + (frame["kind"] == "x")
    frame["town"] = np.where(z == "p", "here", None)
    estimator = "score" if kind == "column" else booster_of("scikit-learn")
    options = QUICK | {"booster": booster_of("scikit-learn"), "group_cuts": aware}
    model = FairAdjusted(estimator, **options | {"confidence": None if aware else 0.9})
    labels = three if kind == "three labels" else y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairnessWarning)
        return model.fit(frame, labels, sensitive_features=z), frame, z


@pytest.mark.parametrize(
    ("kind", "aware"),
    [
        ("column", False),
        ("column", True),
        ("trees", False),
        ("trees", True),
        ("three labels", False),
    ],
)
@pytest.mark.filterwarnings("ignore::evenhand.FairnessWarning")
def test_adjusted_the_same_bit_for_bit(kind, aware, tmp_path):
    model, frame, z = adjusted(kind, aware)
    save_model(model, tmp_path / "m")
    again = load_model(tmp_path / "m").model
    groups = {"sensitive_features": z} if aware else {}
    new = frame.assign(town="elsewhere")
    for one, two in ((model, again), (model.at(0.6), again.at(0.6))):
        np.testing.assert_array_equal(
            one.predict_proba(new, **groups), two.predict_proba(new, **groups)
        )
    np.testing.assert_array_equal(again.before(), model.before())
    about = ("scores_", "before_", "column_names_")
    assert [getattr(again, a) for a in about] == [getattr(model, a) for a in about]
    assert again.estimator == ("score" if kind == "column" else None)
    save_model(again, tmp_path / "n")


@pytest.mark.parametrize(
    "scaler", [None, StandardScaler(), StandardScaler(with_mean=False)], ids=["raw", "both", "sd"]
)
@pytest.mark.parametrize("kind", ["aware", "three labels", "adjusted"])
@pytest.mark.filterwarnings("ignore::evenhand.FairnessWarning")
def test_logistic_regressions_are_read_as_trees_are(kind, scaler, tmp_path):
    frame, y, z, three = table()
    X = frame[["b", "c"]].to_numpy() * [100, 1] + [7, 0]
    linear = LogisticRegression(fit_intercept=kind != "aware")
    linear = linear if scaler is None else make_pipeline(scaler, linear)
    aware = {"sensitive_features": z} if kind == "aware" else {}
    options = QUICK | {"group_cuts": bool(aware), "confidence": None if aware else 0.9}
    if kind == "adjusted":
        model = FairAdjusted(linear, booster=linear, **options)
    else:
        model = FairBoostedClassifier(booster=linear, **options)
    model.fit(X, three if kind == "three labels" else y, sensitive_features=z)
    for models in model.maker_.models:
        for found in (getattr(models.label, "source", models.label), *models.groups):
            rows = np.column_stack([X, z == "q"]) if aware else X
            by_scikit_learn = found.model.predict_proba(rows)
            np.testing.assert_allclose(found.forest.predict_proba(rows), by_scikit_learn, 1e-12)
    save_model(model, tmp_path / "m")
    again = load_model(tmp_path / "m").model
    np.testing.assert_array_equal(again.predict_proba(X, **aware), model.predict_proba(X, **aware))
    X[5, 1] = np.nan
    with raises("inputs_not_finite", column=1):
        again.predict(X, **aware)


def test_logistic_regressions_of_other_probabilities_are_not_read():
    X, y = np.random.default_rng(0).standard_normal((60, 2)), np.arange(60) % 3
    plain = LogisticRegression().fit(X, y)
    assert forest_of(plain) is not None
    assert forest_of(make_pipeline(PolynomialFeatures(), LogisticRegression()).fit(X, y)) is None
    assert forest_of(OneVsRestClassifier(LogisticRegression()).fit(X, y)) is None


def test_an_estimator_that_no_file_can_hold(tmp_path):
    frame, y, z, _ = table()
    other = DecisionTreeClassifier(max_depth=2)
    model = FairAdjusted(other, booster=booster_of("scikit-learn"), **QUICK)
    model.fit(frame[["b", "c"]], y, sensitive_features=z)
    with raises("unsavable_estimator"):
        save_model(model, tmp_path / "m")
    model.scores_ = f"the scores of {'Word ' * 40}"
    with raises("unsavable_estimator") as error:
        save_model(model, tmp_path / "m")
    assert "Word Word …; save the estimator" in str(error.value)


@pytest.mark.parametrize(
    "change",
    [
        {"column": 99},
        {"column": -1},
        {"column": None},
        {"column": "b"},
        {"estimator": None},
        {"curve": []},
        {"curve": [1.0, 2.0]},
        {"curve": [1.0, float("inf"), True]},
        {"curve": [1.0, 2.0, 3.0]},
        {"curve": ["a", 2.0, True]},
        {"words": 3},
        {"before": None},
    ],
)
def test_a_file_that_contradicts_its_column(change, tmp_path):
    save_model(adjusted("column", True)[0], tmp_path / "m")

    saved = (tmp_path / "m").read_bytes()
    refused(rewritten(saved, state(lambda s: s["boosted"]["brought"].update(change))), tmp_path)
