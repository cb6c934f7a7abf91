"""OxonFair's method behind the interface of the peers."""

from copy import copy
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from evenhand.core.errors import InputError
from evenhand.core.rates import Rate
from evenhand.models.inputs import CodedRows
from evenhand.peers._adapter import Adapter, quiet
from evenhand.peers._base import SINGLE_RATES, FloatArray, GroupPeer, TargetPeer, best_for
from evenhand.peers._docs import adapter_docs


def _group_metric(metrics: Any, rate: Rate) -> Any:
    """Give a rate as a metric of OxonFair's; empty denominators count as 1, as they do there."""

    def value(TP: Any, FP: Any, FN: Any, TN: Any) -> Any:
        cells = {(0, 0): TN, (0, 1): FP, (1, 0): FN, (1, 1): TP}
        top = sum(cells[c] for c in rate.numerator)
        bottom = sum(cells[c] for c in rate.denominator)
        return top / np.maximum(1, bottom)

    return metrics.GroupMetric(value, rate.name.replace("_", " "), not rate.is_error)


class _InferredGroups:
    """Group of each row as a classifier guesses it: one column a group, and one for doubt.

    Only columns that occur in the training data are kept, because OxonFair fails on one without
    rows; a later row with such a guess goes to the most frequent one.
    """

    def __init__(self, model: Any, doubt: float, X: FloatArray) -> None:
        self.model, self.doubt = model, doubt
        self.guesses, count = np.unique(self._guess(X), return_counts=True)
        self.common = int(np.argmax(count))

    def _guess(self, X: FloatArray) -> NDArray[np.intp]:
        proba = np.asarray(self.model.predict_proba(X))
        return np.where(proba.max(axis=1) < self.doubt, -1, proba.argmax(axis=1))

    def __call__(self, X: FloatArray) -> FloatArray:
        guess = self._guess(X)
        column = np.clip(np.searchsorted(self.guesses, guess), 0, len(self.guesses) - 1)
        column = np.where(self.guesses[column] == guess, column, self.common)
        return np.eye(len(self.guesses))[column]


@dataclass(eq=False, repr=False)
@adapter_docs
class OxonFairClassifier(TargetPeer, GroupPeer, Adapter):
    r"""OxonFair's cuts for each group, the group being guessed from X unless it is given.

    .. math:: \hat y = [\,p(x) > c_{g(x)}\,], \qquad \max_c \text{accuracy}
        \quad\text{such that}\quad \min_j r_j / \max_j r_j \ge \tau,

    with the rates of the true groups. g is a logistic regression's guess of the group, or "in
    doubt" where it is not sure enough; or the group itself. OxonFair searches the cuts on a grid.
    Its metrics cannot be pickled, and so neither can a fitted classifier.
    ``predict_proba`` is moved by the cuts so that one half decides: no probability in the strict
    sense.

    Parameters
    ----------
    notion, tau
    infer_groups : bool, default=True
        Guess groups from X. If False, ``predict`` needs ``sensitive_features``.
    doubt : float, default=2/3
        A guess less probable than this is in doubt, and such rows have a cut of their own.
    min_share : float, default=0.01
        Least share of predicted positives and of predicted negatives in each group. OxonFair itself
        takes a classifier that calls everybody positive for an answer.
    validation_size : float, optional
        Share of the rows kept from the base estimators, on which the cuts are found. By default the
        cuts are found on all the training rows, as the other peers' are; a base
        estimator that overfits needs a share.
    estimator : estimator, optional
        With ``predict_proba``, for labels and for groups; logistic regression by default.
    l2
    random_state : int, RandomState or None, default=None
        Seed of the split for ``validation_size``.

    Attributes
    ----------
    model_ : oxonfair.FairPredictor
        The fitted original.
    rate_, accuracy_, feasible_
        Ratio and accuracy where the cuts were found, and whether τ was reached there.
    versions_

    References
    ----------
    E. Delaney, Z. Fu, S. Wachter, B. Mittelstadt, C. Russell, "OxonFair: A Flexible Toolkit for
    Algorithmic Fairness", NeurIPS 2024.
    """

    _library = "oxonfair"

    notion: str = "statistical_parity"
    _: KW_ONLY
    tau: float = 0.8
    infer_groups: bool = True
    doubt: float = 2 / 3
    min_share: float = 0.01
    validation_size: float | None = None
    estimator: Any = None
    l2: float = 1e-4
    random_state: Any = None

    @property
    def needs_group(self) -> bool:  # type: ignore[override]
        """Whether ``predict`` needs the group of each row."""
        return not self.infer_groups

    def _train(self, rows: CodedRows) -> None:
        oxonfair = self._import()
        train = held = np.arange(len(rows.y))
        if self.validation_size is not None:
            train, held = train_test_split(
                train,
                test_size=self.validation_size,
                random_state=self.random_state,
                stratify=rows.z * 2 + rows.y,
            )
        infer: Any = False
        with self._threads(rows):
            label = self._base(rows).fit(rows.X[train], rows.y[train])
            if self.infer_groups:
                group = self._base(rows).fit(rows.X[train], rows.z[train])
        if self.infer_groups:
            infer = _InferredGroups(group, self.doubt, rows.X[held])
        data = {"data": rows.X[held], "target": rows.y[held], "groups": rows.z[held]}
        # Doubt is a group of its own here, hence no threshold there.
        self.model_ = oxonfair.FairPredictor(label, data, inferred_groups=infer, threshold=0)
        metrics = oxonfair.group_metrics
        ratio = _group_metric(metrics, SINGLE_RATES[self.notion]).min_ratio
        share = metrics.pos_pred_rate
        limits = ((share.min, self.min_share, ">"), (share.max, 1 - self.min_share, "<"))
        try:
            with quiet("oxonfair"):
                self.model_.fit(metrics.accuracy, ratio, self.tau, additional_constraints=limits)
        except IndexError as error:  # its way to say that nothing satisfies the limits
            raise InputError("no_oxonfair_cut", least=self.min_share) from error
        self._metrics = metrics.accuracy, ratio

    def _move(self) -> None:
        self.model_ = copy(self.model_)
        with quiet("oxonfair"):
            self.model_.fit(*self._metrics, self.tau, recompute=False)

    def _choose(self) -> None:
        scores = self.model_.frontier[0]
        best, self.feasible_ = best_for(self._target, scores[0], scores[1])
        self.accuracy_, self.rate_ = float(scores[0][best]), float(scores[1][best])

    def _positive(self, X: FloatArray, z: Any = None) -> FloatArray:
        data: dict[str, Any] = {"data": X, "target": np.zeros(len(X))}
        if z is not None:
            data["groups"] = z
        with quiet("oxonfair"):
            scores = np.asarray(self.model_.predict_proba(data))
        # The scores' difference is in [-2, 2]: the base estimator's, moved by a cut.
        return np.clip(0.5 + (scores[:, 1] - scores[:, 0]) / 2, 0.0, 1.0)
