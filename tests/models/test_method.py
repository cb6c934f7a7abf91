"""The record of what the paper varies: scikit-learn's conventions, no leaks, old spellings."""

import pickle

import pytest
from helpers import by_last_column, make_problem, raises
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from evenhand import FairBoostedClassifier, FairClassifier, Method, fair_pipeline


def test_two_estimators_with_the_default_record_do_not_share_it():
    a, b = FairClassifier(), FairClassifier()
    a.set_params(method__mu=9.0)
    a.method.l2 = 3.0
    a.method.set_params(max_iter=7)
    assert b.method == FairClassifier().method == Method()
    assert (a.method.mu, a.method.l2, a.method.max_iter) == (9.0, 3.0, 7)


def test_a_record_given_to_two_estimators_is_not_changed_by_one():
    shared = Method(mu=0.3)
    a, b = FairClassifier(method=shared), FairClassifier(method=shared)
    assert a.method is b.method is shared
    a.set_params(method__mu=9.0, method__l2=0.1)
    assert (a.method.mu, a.method.l2) == (9.0, 0.1)
    assert b.method is shared
    assert shared == Method(mu=0.3)
    a.set_params(method=shared, method__mu=1.0)
    assert (a.method.mu, shared.mu) == (1.0, 0.3)


def test_clone_and_pickle():
    model = FairClassifier(method=Method(mu=0.3))
    copy = clone(model)
    assert copy.method == model.method
    assert copy.method is not model.method
    copy.set_params(method__mu=1.0)
    assert model.method.mu == 0.3
    assert pickle.loads(pickle.dumps(model)).method == model.method
    assert Method() != "Method()"


def test_grid_search_leaves_the_record_as_it_is():
    X, y, _ = make_problem(300)
    shared = Method(max_iter=5)
    model = FairClassifier(method=shared, tau=0.1, sensitive_features=by_last_column)
    search = GridSearchCV(model, {"method__mu": [0.1, 0.2], "tau": [0.1]}, cv=2).fit(X, y)
    assert search.best_estimator_.method.mu in (0.1, 0.2)
    assert search.best_estimator_.method.max_iter == 5
    assert shared == Method(max_iter=5)
    assert FairClassifier().method == Method()


def test_parameters_by_name():
    params = FairClassifier(method=Method(mu=0.3)).get_params()
    assert params["method__mu"] == 0.3
    boosted = FairBoostedClassifier(classifier=FairClassifier())
    assert boosted.set_params(classifier__method__mu=2.0).classifier.method.mu == 2.0
    pipeline = fair_pipeline("sex").set_params(classifier__method__mu=2.0)
    assert pipeline[-1].method.mu == 2.0
    assert repr(FairClassifier()) == "FairClassifier()"
    assert repr(Method.paper()(mu=0.15)).startswith("Method(alpha_power=0.5, cut=False")


@pytest.mark.parametrize("name", Method().get_params())
def test_old_spellings_say_the_new_one(name):
    said = rf"{name} is a parameter of the method: FairClassifier\(method=Method\({name}=...\)\)"
    for call in (
        lambda: FairClassifier(**{name: 1}),
        lambda: FairClassifier().set_params(**{name: 1}),
        lambda: fair_pipeline("sex", **{name: 1}),
    ):
        with pytest.raises(TypeError, match=said):
            call()


def test_unknown_parameters():
    with pytest.raises(TypeError, match="'taw'"):
        FairClassifier(taw=0.3)
    with raises("invalid_parameter", parameter=("method", ...), owner="FairClassifier"):
        FairClassifier(method={"mu": 1}).fit([[0], [1]], [0, 1], sensitive_features=[0, 1])
    with raises("invalid_parameter", parameter=("mu", ...), owner="Method", value=-1):
        FairClassifier(method=Method(mu=-1)).fit([[0], [1]], [0, 1], sensitive_features=[0, 1])


def test_no_method_is_said():
    assert "FairClassifier" in FairClassifier(method=None)._repr_html_()
    with pytest.raises(TypeError, match="method=None is no Method, so it has no method__mu"):
        FairClassifier().set_params(method=None, method__mu=1.0)
