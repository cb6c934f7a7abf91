"""Trees as plain arrays answer as the library that grew them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingClassifier

from evenhand.models.trees import _below, forest_of


def data(labels):
    """Numbers and a column of categories, gaps in both, and one category in new rows only."""
    rng = np.random.default_rng(labels)
    X = rng.standard_normal((900, 4)).round(1)
    X[:, 3] = rng.integers(0, 12, 900)
    X[::7, 0], X[::11, 3] = np.nan, np.nan
    effect = rng.standard_normal(13)
    score = np.nan_to_num(X[:, 0]) + effect[np.nan_to_num(X[:, 3], nan=12).astype(int)]
    score += X[:, 1] * X[:, 2] + rng.standard_normal(900)
    y = np.digitize(score, np.quantile(score, np.arange(1, labels) / labels))
    new = X.copy()
    new[::5, 1] = np.nan
    X[X[:, 3] == 7, 3] = 8
    return X, y, new


def scikit_learn(X, y):
    model = HistGradientBoostingClassifier(max_iter=15, categorical_features=[3]).fit(X, y)
    return model, model._raw_predict


def lightgbm(X, y):
    module = pytest.importorskip("lightgbm")
    model = module.LGBMClassifier(n_estimators=15, num_leaves=9, verbosity=-1, n_jobs=1)
    model.fit(X, y, categorical_feature=[3])
    return model, lambda new: model.predict(new, raw_score=True)


def xgboost(X, y):
    module = pytest.importorskip("xgboost")
    kinds = {"feature_types": [*"qqqc"], "enable_categorical": True}
    model = module.XGBClassifier(n_estimators=15, max_depth=4, n_jobs=1, **kinds).fit(X, y)
    return model, lambda new: model.predict(new, output_margin=True)


@pytest.mark.parametrize("labels", [2, 3])
@pytest.mark.parametrize("library", [scikit_learn, lightgbm, xgboost])
def test_as_the_library(library, labels):
    X, y, new = data(labels)
    model, raw = library(X, y)
    forest = forest_of(model, 12)
    expected = np.reshape(raw(new), (len(new), -1))
    if library is xgboost:  # adds up in float32
        np.testing.assert_allclose(forest.raw(new), expected, rtol=0, atol=1e-5)
    else:
        np.testing.assert_array_equal(forest.raw(new), expected)
    np.testing.assert_allclose(forest.predict_proba(new), model.predict_proba(new), atol=1e-6)


def test_another_missing_value_than_nan_is_not_in_the_trees():
    X, y, _ = data(2)
    X = np.nan_to_num(X, nan=-999.0)
    make = pytest.importorskip("xgboost").XGBClassifier
    assert forest_of(make(n_estimators=3, missing=-999.0, n_jobs=1).fit(X, y)) is None
    assert forest_of(make(n_estimators=3, n_jobs=1).fit(X, y)) is not None


@pytest.mark.parametrize("labels", [2, 3])
def test_trees_of_one_round_stop_together(labels):
    X, y, new = data(labels)
    make = pytest.importorskip("xgboost").XGBClassifier
    model = make(
        n_estimators=40, num_parallel_tree=3, subsample=0.5, early_stopping_rounds=2, n_jobs=1
    )
    model.fit(X[:600], y[:600], eval_set=[(X[600:], y[600:])], verbose=False)
    assert model.best_iteration < model.get_booster().num_boosted_rounds() - 1
    found = forest_of(model).predict_proba(new)
    np.testing.assert_allclose(found, model.predict_proba(new), atol=1e-6)


def test_leaves_of_several_values_are_not_read():
    X, y, _ = data(3)
    make = pytest.importorskip("xgboost").XGBClassifier
    model = make(n_estimators=3, multi_strategy="multi_output_tree", tree_method="hist", n_jobs=1)
    assert forest_of(model.fit(X, y)) is None


def test_compiled_and_plain_walks_are_the_same():
    X, y, new = data(3)
    forest = forest_of(scikit_learn(X, y)[0], 12)
    many = np.tile(new, (10, 1))  # enough rows for compiled loops, where there are any
    np.testing.assert_array_equal(forest.raw(many)[-900:], forest.raw(new))


def test_a_sole_leaf():
    X, y, new = data(2)
    model = HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=900).fit(X, y)
    forest = forest_of(model)
    assert not len(forest.feature)
    np.testing.assert_array_equal(forest.raw(new), model._raw_predict(new))


def test_other_models_are_not_read():
    module = pytest.importorskip("lightgbm")
    X, y, _ = data(2)
    forest = module.LGBMClassifier(
        boosting_type="rf", n_estimators=3, bagging_freq=1, bagging_fraction=0.5, verbosity=-1
    )
    assert forest_of(forest.fit(X, y)) is None
    linear = module.LGBMClassifier(n_estimators=3, linear_tree=True, verbosity=-1)
    assert forest_of(linear.fit(X, y)) is None
    assert forest_of(object()) is None


@given(
    st.floats(
        width=32, allow_nan=False, allow_infinity=False, min_value=-(2.0**100), max_value=2.0**100
    )
)
def test_a_float32_threshold_in_float64(t):
    """x < t in float32 is x <= _below(t) in float64, for the numbers around it."""
    edge = _below(t)
    for x in (edge, np.nextafter(edge, np.inf), np.nextafter(edge, -np.inf), t):
        assert (np.float32(x) < np.float32(t)) == (x <= edge)
