"""Menon and Williamson's plug-in rule."""

import numpy as np
import pytest
from helpers import make_problem
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from evenhand.core.metrics import group_counts
from evenhand.core.rates import RATES
from evenhand.peers import PEERS, MenonWilliamsonClassifier


def figures(y, answer, z):
    counts = group_counts(y, answer, sensitive_features=z)[1]
    return np.mean(answer == y), float(RATES["selection_rate"].ratio(counts))


def test_what_it_says_is_what_it_predicts():
    X, y, z = make_problem(2000)
    rule = MenonWilliamsonClassifier(tau=0.9).fit(X, y, sensitive_features=z)
    for tau in (1e-6, 0.8, 0.95):
        at = rule.at(tau)
        assert (at.accuracy_, at.rate_) == pytest.approx(figures(y, at.predict(X), z))
        assert at.feasible_
        assert at.rate_ >= tau
    label, group = (models[0].predict_proba(X)[:, 1] for models in rule.models_)
    np.testing.assert_allclose(
        rule.decision_function(X), label - rule.multiplier_ * group - rule.cut_, atol=1e-12
    )


def test_no_rule_of_the_form_is_much_better():
    X, y, z = make_problem(600)
    rule = MenonWilliamsonClassifier(tau=0.9).fit(X, y, sensitive_features=z)
    p, q = (models[0].predict_proba(X)[:, 1] for models in rule.models_)

    def best(score):
        """Accuracy of the best of many cuts that reach 0.9."""
        yes = score[:, None] > np.quantile(score, np.linspace(0.02, 0.98, 97))
        low, high = np.sort([yes[z == g].mean(axis=0) for g in (0, 1)], axis=0)
        return np.max(np.mean(yes == y[:, None], axis=0), where=low >= 0.9 * high, initial=0)

    found = max(best(p - m * q) for m in np.tan(np.linspace(-1.5, 1.5, 61)))
    assert found - 0.02 < rule.accuracy_ <= found + 0.01
    # One score alone cannot do it.
    alone = best(p)
    assert rule.accuracy_ > alone + 0.02


def test_two_estimators_and_folds():
    X, y, z = make_problem(600)
    rule = MenonWilliamsonClassifier(
        estimator=GaussianNB(), group_estimator=LogisticRegression(), n_folds=3, random_state=0
    ).fit(X, y, sensitive_features=z)
    labels, groups = rule.models_
    assert [type(m) for m in labels] == [GaussianNB] * 3
    assert [type(m) for m in groups] == [LogisticRegression] * 3
    assert rule.rate_ >= 0.8
    again = rule.fit(X, y, sensitive_features=z).predict(X)
    np.testing.assert_array_equal(again, rule.predict(X))


def test_every_boosted_rival_is_a_record_of_trees():
    for key, record in PEERS.items():
        trees = key.endswith("_boosted") or key.startswith("linear_post")
        assert (record.form == "trees") == trees
        record.make("statistical_parity", 0)
