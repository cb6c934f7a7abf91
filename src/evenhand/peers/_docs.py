"""What the documentation of several peers has in common, said once."""

from evenhand._extras import documented

_SHARED = """
X : array-like of shape (n_samples, n_features)
    Inputs.
y : array-like of shape (n_samples,)
    Two-valued labels of any type.
sensitive_features : array-like of shape (n_samples,)
    Group of each row, two values of any type.
sample_weight : array-like of shape (n_samples,), optional
    Row weights. Rows of weight 0 are as if not there.
self
    The fitted estimator.
notion : str, default="statistical_parity"
    Which rate the groups shall share: ``"statistical_parity"`` (selection rate),
    ``"false_discovery"`` (false discovery rate), ``"equal_opportunity"`` (true positive rate), or
    any name in :data:`evenhand.core.rates.RATES`.
tau : float, default=0.8
    Least ratio of the smallest to the largest group rate.
min_share : float, default=0.01
    Least share of predicted positives and of predicted negatives in each group; a classifier
    with less is not eligible.
l2 : float, default=1e-4
    Ridge λ, on all weights but the intercept, as in ``FairClassifier``.
solver : str, default="CLARABEL"
    Name of a solver of cvxpy that knows exponential cones.
classes_ : ndarray of shape (2,)
    The labels; the second is the favourable one.
groups_ : ndarray of shape (2,)
    The groups; the second is z = 1.
coef_ : ndarray of shape (1, n_features)
    Weights.
intercept_ : ndarray of shape (1,)
    Intercept.
rate_ : float
    Ratio of the groups' rates on the training data.
accuracy_ : float
    Accuracy on the training data.
feasible_ : bool
    Whether ``rate_`` reaches ``tau``. If not, the answer of the highest ratio is kept.
n_features_in_ : int
    Columns of X.
feature_names_in_ : ndarray of str
    Their names, if X had any.
"""
_OF_ADAPTERS = """
estimator : estimator, optional
    With ``fit(X, y, sample_weight)`` and ``predict``; logistic regression by default.
l2 : float, default=1e-4
    Ridge of the default estimator.
random_state : int, RandomState or None, default=None
    Seed of the draws of ``predict``; with an int the same rows get the same labels each time.
versions_ : dict
    Package to version.
"""

peer_docs = documented(_SHARED)
adapter_docs = documented(_SHARED + _OF_ADAPTERS)
