"""FairClassifier: scikit-learn's conventions around oracle, solver and frontier."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from copy import copy
from functools import reduce
from itertools import pairwise
from numbers import Integral, Real
from operator import add
from types import FrameType
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import (
    assert_all_finite,
    check_consistent_length,
    check_random_state,
    column_or_1d,
)
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

import evenhand
from evenhand._extras import import_extra
from evenhand._sklearn import Interval, Options, StrOptions
from evenhand.core.gaps import READINGS
from evenhand.core.groups import check_missing, plain_labels
from evenhand.core.notions import find_notion, of_labels
from evenhand.core.oracle import Oracle
from evenhand.core.rates import overall_accuracy, rate_text
from evenhand.core.rows import Rows, Share, as_columns, share_cells
from evenhand.core.solvers import SOLVERS, Iteration, minimize_loss
from evenhand.core.trajectory import Trajectory
from evenhand.core.updates import RULES, power_schedule
from evenhand.engines.memory import MemoryRows, canonical
from evenhand.engines.threads import cores
from evenhand.frontier.bounds import margin_of
from evenhand.frontier.choice import Choice, answer, certificate
from evenhand.frontier.cuts import decide
from evenhand.frontier.held_out import HeldOut, candidates, count_rows, pool_folds
from evenhand.frontier.mixtures import best_mixture, check_linear
from evenhand.frontier.points import Frontier, Point, point_of
from evenhand.frontier.splits import (
    check_held,
    check_part,
    check_unweighted,
    rows_of,
    split_folds,
    split_rows,
)
from evenhand.frontier.sweep import sweep
from evenhand.models.averaged import AveragedClassifier
from evenhand.models.card import ShowsSummary
from evenhand.models.inputs import (
    CodedRows,
    as_table,
    blank_groups,
    check_labels,
    check_scales,
    check_sizes,
    check_weights,
    code_facts,
    code_known_groups,
    code_rows,
    find_groups,
    find_no_numbers,
    group_column,
    is_dask,
    is_tensor,
    merge_alike,
    on_host,
    take_rows,
)
from evenhand.models.progress import progress_bar

__all__ = ["FairClassifier", "FairnessWarning", "FavourableLabelWarning"]

# Where the legs of a fit start, by the name of ``init``.
LEGS = {
    "zero": ("zero",),
    "optimum": ("optimum",),
    "both": ("optimum", "zero"),
}
# Where a selection looks at rates.
PLACES = {
    "train": "on the training data",
    "holdout": "on the held-out rows",
    "crossfit": "out of fold",
}
# What a fit finds, and whatever is built around a classifier shows as its own.
FOUND = (
    "groups_",
    "small_groups_",
    "frontier_",
    "trajectory_",
    "point_",
    "held_out_",
    "guarantee_",
    "answers_",
    "rate_bound_",
    "rate_",
    "accuracy_",
    "feasible_",
    "converged_",
    "n_iter_",
)
# What needs the groups to predict, as its error calls it.
AWARE = "a FairClassifier with group_cuts=True"
NO_ROWS = np.empty(0, dtype=np.intp)
View = Callable[[Any, Any], tuple[CodedRows, CodedRows]]


def _is_coded_on_device(y: Any) -> bool:
    """Whether labels are a tensor that needs no other check than its length."""
    return is_tensor(y) and y.ndim == 1 and not (y.is_floating_point() or y.is_complex())


class FairnessWarning(UserWarning):
    """The classifier does not meet the target it was asked for."""


class FavourableLabelWarning(UserWarning):
    """Which of two labels is favourable was guessed, because nobody said it."""


# Where the code is that stands between a user's line and a fit.
LIBRARIES = tuple(
    os.path.join(os.path.dirname(str(package.__file__)), "") for package in (evenhand, sklearn)
)
# A mark among the variables of the call that was warned of; it is gone when the call returns.
TOLD = "__evenhand_told_favourable_label__"


def _warn_of_guess(classes: NDArray[Any]) -> None:
    """Warn that the larger label is taken for the favourable one, once a call by the user.

    That call is the outermost one into evenhand or scikit-learn: a fit, or a search of many.
    """
    frame: FrameType | None = sys._getframe()
    level = stacklevel = 1
    while frame is not None:
        level += 1
        if frame.f_code.co_filename.startswith(LIBRARIES):
            called, stacklevel = frame, level
        frame = frame.f_back
    if TOLD in called.f_locals:
        return
    called.f_locals[TOLD] = True
    other, taken = map(repr, classes.tolist())
    warnings.warn(
        f"the labels are {other} and {taken}, and {taken} is taken for the favourable one because "
        f"it sorts last; say which one is: pos_label={other} or pos_label={taken}.",
        FavourableLabelWarning,
        stacklevel=stacklevel,
    )


class FairClassifier(ShowsSummary, ClassifierMixin, BaseEstimator):
    r"""Linear classifier fitted against a fairness adversary, with its whole frontier.

    Logistic regression descends its loss while an adversary tries to tell a row's group from its
    score; the part of the classification gradient that lies along the fairness gradient is removed
    from each step,

    .. math:: w \leftarrow w - \eta\,(g_C - \alpha_t g_F - \Pi_{g_F} g_C),

    and the run is accelerated. Every iterate that is kept, with every decision cut on its scores,
    is a classifier; the Pareto set of their accuracies and rates is ``frontier_``. The fitted
    classifier is the most accurate point whose rate in the *population* reaches ``tau`` with about
    the probability ``confidence``; :meth:`at` moves to another τ without training. The group is not
    needed to predict.

    The favourable outcome is the label that ``pos_label`` names, of 0 and 1 the latter by default.
    Of more than two labels the classifier is a softmax, and every label counts as favourable, the
    worst of their rates deciding, unless ``pos_label`` names one. Inputs are numbers, used as they
    are: bring them to similar scales first, for instance with ``StandardScaler``, or let
    :func:`evenhand.fair_pipeline` make them of a table with text.

    Parameters
    ----------
    notion : str or list of str, default="statistical_parity"
        Which rate the groups shall share, a name in :data:`evenhand.core.notions.NOTIONS`:
        ``"statistical_parity"``, ``"equal_opportunity"``, ``"predictive_equality"``,
        ``"equalized_odds"``, ``"false_discovery"`` and others. Of several, all must hold.
    tau : float or list of float, default=0.8
        Least ratio of the smallest to the largest group rate; 0.8 is the four-fifths rule. Several
        notions may have a target each.
    reading : {"corrected", "printed"}, default="corrected"
        The paper's formulas as mended, or to the letter. The paper's own runs are
        ``reading="printed", l2=1.0, mu=10.0, alpha=0.1, alpha_power=0.5, step=0.1, max_iter=100,
        init="zero", cut=False, confidence=None``.
    degree : int, default=2
        Degree of the adversary's polynomial of the score (statistical parity).
    solver : str, default="agd"
        ``"agd"`` is accelerated (AGD+), ``"gd"`` plain, ``"agd_printed"`` the paper's Algorithm 2
        to the letter; ``"extragradient"`` and ``"optimistic"`` are other saddle-point methods.
        ``"soft_rate"`` and ``"cost_sensitive"`` do without an adversary: they walk over multipliers
        of the groups' rates (:class:`evenhand.core.multipliers.SoftRatePath`,
        :class:`evenhand.core.multipliers.CostSensitivePath`), and ``update``, ``adversary_sign``,
        ``alpha``, ``alpha_power``, ``mu`` and ``degree`` are ignored. These two are for two labels.
    update : {"modified", "normal", "conflict"}, default="modified"
        With the projection, without it, or with it only where the gradients disagree.
    adversary_sign : {1, -1}, optional
        1: w makes the adversary's task harder; −1: easier, as printed. Follows ``reading``.
    alpha, alpha_power : float, default=0.03, 0.25
        :math:`\alpha_t = \alpha\,t^{-p}`, the weight of the fairness gradient. The paper's runs
        have 0.1 and 0.5.
    mu : float, default=0.15
        Strength of the regulariser, in units of the classification loss's curvature.
    l2 : float, default=1e-4
        Ridge :math:`\lambda` beside the mean log-loss; the intercept is free of it.
    max_iter : int, default=200
        Iterations of a leg.
    init : {"optimum", "zero", "both"}, default="optimum"
        Where a leg starts: at the unconstrained optimum, which is always on the frontier then, at
        zero, or one leg from each.
    step : float, optional
        Fixed step η for weights and adversary. By default steps come from the smoothness of the
        losses.
    extra_column : {"ones", "noise"}, default="ones"
        An intercept, or a column of uniform noise as in the paper's experiment on it.
    cut : bool, default=True
        Choose the decision cut together with the iterate; otherwise the cut is 0.
    min_share : float, default=0.01
        A point counts only if every group has between this share and 1 − this share of predicted
        positives.
    confidence : float, "certified" or None, default=0.9
        How sure the target shall be.

        - A number from 0.5 to below 1: the most accurate point whose rate in the population is at
          least τ with about that probability. The point's rate must be above τ by a margin: the
          standard errors that its counts give, times the normal quantile of the number and 0.3
          more for what choosing among many points adds
          (:func:`evenhand.frontier.bounds.margin_of`).
        - ``None``: the rate itself must reach τ, as in the paper. On new rows it is then below τ
          about as often as above.
        - ``"certified"``: with confidence 1 − ``delta``, exactly, or ``feasible_`` is False. Tests
          on held-out rows, the fairest point first, by exact bounds
          (:func:`evenhand.frontier.bounds.ratio_bound`). For unweighted rows that are
          independent draws from one population.
    selection : {"train", "holdout", "crossfit"}, default="train"
        On which rows the point is chosen.

        - ``"train"``: on those it was fitted to.
        - ``"holdout"``: on a share of the rows, set aside before the fit.
        - ``"crossfit"``: out of fold, without losing rows: ``cv`` fits, each to all folds but one,
          tell what target to ask of the fit to all rows so that τ is reached out of fold.
    holdout : float, default=0.5
        Share of the rows held out by ``selection="holdout"`` (at random within each label of each
        group) and by ``confidence="certified"`` (at random within each group: the labels held out
        must not depend on the labels fitted to).
    cv : int, splitter or iterable, default=5
        Folds of ``"crossfit"``: their number, stratified on label and group then, or splits in
        scikit-learn's manner, by number of row among those of positive weight.
    delta : float, default=0.05
        Probability with which a certificate may be wrong.
    sensitive_features : int, str or callable, optional
        Where to find the groups when ``fit`` is not given ``sensitive_features``: a column of X by
        index or name, which is then not an input (its coefficient is 0), or a function of X.
    random_state : int, RandomState or None, default=None
        Seed of the noise column and of the rows held out or dealt to folds; nothing else is random.
        None: others at each fit. Predictions draw their noise from it anew at each call: give an
        integer for the same noise each time.
    verbose : int, default=0
        1 shows a progress bar with loss, accuracy and rate.
    n_iterates : int, default=100
        Iterates of a leg that are kept for the frontier, evenly spaced.
    min_group_size : int, default=30
        Of more than two groups, those with fewer rows are fitted but not compared: their rates are
        mostly chance. They are in ``small_groups_``.
    pos_label : label, optional
        The favourable label. By default the larger of two, with a warning unless they are 0/1,
        −1/1, booleans or true/false; and each of more than two.
    survey_weights : bool, default=False
        What ``sample_weight`` means: how many rows a row stands for because they are the same, or,
        if True, how many people a row of a survey speaks for. Losses and rates are the same; the
        margin for luck then rests on the rows that were asked, not on those they speak for.
    group_cuts : bool, default=False
        Attribute-aware: the group of each row is known when predicting, ``predict`` needs it, and
        each group has its own cut. Whether the law allows that is for the user to know. Two labels
        only.
    engine : {"auto", "numpy", "torch", "dask"}, default="auto"
        What computes the sums over the rows. "auto": PyTorch for a tensor, Dask for a Dask
        collection, else NumPy. "torch" also takes arrays, which it copies to ``device``, and
        "numpy" tensors, which it copies to the host.
    device : str or torch.device, optional
        Where PyTorch computes; by default where a tensor is, or on a GPU if there is one.
    bins : int or list of float, optional
        The sensitive attribute is a number, such as age. The adversary then guesses its value, and
        rates are compared between bins: as many of equal size, or those between the values given.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels in sorted order.
    groups_ : ndarray of shape (n_groups,)
        The groups that are compared.
    small_groups_ : dict
        Groups too small to be compared, and how many rows they have.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights of the chosen point, of two labels for ``classes_[1]``.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercept less the chosen cut. With ``group_cuts`` one for each of ``groups_``; if there are
        small groups, theirs is the last.
    noise_coef_ : float
        Weight of the noise column; only with ``extra_column="noise"``.
    frontier_ : Frontier
        Accuracy and rate of every point worth choosing, on the rows fitted to: all, or those not
        held out.
    point_ : Point
        The chosen point, with its figures on the rows fitted to.
    held_out_ : HeldOut or None
        Figures of the points that may be chosen on the held-out rows, or out of fold. None if the
        point was chosen on the rows fitted to.
    answers_ : Answers
        The point for every τ: what :meth:`at` chooses from.
    guarantee_ : Guarantee or None
        What is certified, or what it would take; ``print(model.guarantee_)`` says it. None unless
        ``confidence="certified"``.
    trajectory_ : Trajectory
        The run, iteration by iteration; ``trajectory_.to_frame()``.
    rate_ : float
        Ratio of the groups' rates at the chosen point on the rows it was chosen on: the training
        data, the held-out rows, or all rows out of fold.
    rate_bound_ : float
        What the ratio in the population reaches with the confidence asked for: ``rate_`` less the
        margin, or the exact bound of a certificate. ``rate_`` itself for ``confidence=None``.
    accuracy_ : float
        Its accuracy on the same rows as ``rate_``.
    feasible_ : bool
        Whether ``rate_bound_`` reaches ``tau``; for ``"certified"``, whether the point is
        certified.
    converged_ : bool
        False if the run diverged or was interrupted.
    n_iter_ : int
        Iterations done.
    n_features_in_ : int
        Columns of X.
    feature_names_in_ : ndarray of str
        Their names, if X had any.

    Examples
    --------
    >>> from evenhand import FairClassifier
    >>> from evenhand.datasets import encoded_split, load_adult
    >>> X_train, X_test, y_train, y_test, z_train, z_test = encoded_split(
    ...     load_adult(), random_state=0)
    >>> model = FairClassifier(tau=0.8).fit(X_train, y_train, sensitive_features=z_train)
    >>> model.feasible_, bool(model.rate_ >= 0.8)
    (True, True)
    >>> stricter = model.at(0.95)  # no training
    >>> bool(stricter.rate_ >= 0.95)
    True
    >>> certified = FairClassifier(tau=0.8, confidence="certified", random_state=0)
    >>> certified.fit(X_train, y_train, sensitive_features=z_train).guarantee_.certified
    True
    """

    # With metadata routing, whoever gives groups to a fit has them for its score as well.
    __metadata_request__score = {"sensitive_features": True}  # noqa: RUF012

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "notion": [str, list, tuple],  # looked up at fit: users may register their own
        "tau": [Interval(Real, 0, 1, closed="right"), list, tuple],
        "reading": [StrOptions(set(READINGS))],
        "degree": [Interval(Integral, 1, 10, closed="both")],
        "solver": [StrOptions(set(SOLVERS))],
        "update": [StrOptions(set(RULES))],
        "adversary_sign": [Options(Integral, {-1, 1}), None],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "alpha_power": [Interval(Real, 0, None, closed="left")],
        "mu": [Interval(Real, 0, None, closed="left")],
        "l2": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions(set(LEGS))],
        "step": [Interval(Real, 0, None, closed="neither"), None],
        "extra_column": [StrOptions({"ones", "noise"})],
        "cut": ["boolean"],
        "min_share": [Interval(Real, 0, 0.5, closed="left")],
        "confidence": [Interval(Real, 0.5, 1, closed="left"), StrOptions({"certified"}), None],
        "selection": [StrOptions(set(PLACES))],
        "holdout": [Interval(Real, 0, 1, closed="neither")],
        "cv": ["cv_object"],
        "delta": [Interval(Real, 0, 1, closed="neither")],
        "sensitive_features": [Integral, str, callable, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "n_iterates": [Interval(Integral, 1, None, closed="left")],
        "min_group_size": [Interval(Integral, 1, None, closed="left")],
        "pos_label": [object],  # looked up among the labels at fit
        "survey_weights": ["boolean"],
        "group_cuts": ["boolean"],
        "bins": [Interval(Integral, 2, None, closed="left"), "array-like", None],
        "engine": [StrOptions({"auto", "numpy", "torch", "dask"})],
        "device": [object],  # PyTorch knows which there are
    }

    def __init__(
        self,
        notion: str | Sequence[str] = "statistical_parity",
        tau: float | Sequence[float] = 0.8,
        *,
        reading: str = "corrected",
        degree: int = 2,
        solver: str = "agd",
        update: str = "modified",
        adversary_sign: int | None = None,
        alpha: float = 0.03,
        alpha_power: float = 0.25,
        mu: float = 0.15,
        l2: float = 1e-4,
        max_iter: int = 200,
        init: str = "optimum",
        step: float | None = None,
        extra_column: str = "ones",
        cut: bool = True,
        min_share: float = 0.01,
        confidence: float | str | None = 0.9,
        selection: str = "train",
        holdout: float = 0.5,
        cv: Any = 5,
        delta: float = 0.05,
        sensitive_features: int | str | Callable[[Any], Any] | None = None,
        random_state: Any = None,
        verbose: int = 0,
        n_iterates: int = 100,
        min_group_size: int = 30,
        pos_label: Any = None,
        survey_weights: bool = False,
        group_cuts: bool = False,
        bins: Any = None,
        engine: str = "auto",
        device: Any = None,
    ) -> None:
        self.notion = notion
        self.tau = tau
        self.reading = reading
        self.degree = degree
        self.solver = solver
        self.update = update
        self.adversary_sign = adversary_sign
        self.alpha = alpha
        self.alpha_power = alpha_power
        self.mu = mu
        self.l2 = l2
        self.max_iter = max_iter
        self.init = init
        self.step = step
        self.extra_column = extra_column
        self.cut = cut
        self.min_share = min_share
        self.confidence = confidence
        self.selection = selection
        self.holdout = holdout
        self.cv = cv
        self.delta = delta
        self.sensitive_features = sensitive_features
        self.random_state = random_state
        self.verbose = verbose
        self.n_iterates = n_iterates
        self.min_group_size = min_group_size
        self.pos_label = pos_label
        self.survey_weights = survey_weights
        self.group_cuts = group_cuts
        self.bins = bins
        self.engine = engine
        self.device = device

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        random = self.selection != "train" or self._certifies
        tags.non_deterministic = self.extra_column == "noise" or random
        return tags

    @property
    def _certifies(self) -> bool:
        return isinstance(self.confidence, str)

    @property
    def _rows_chosen_on(self) -> str:
        """The selection, which certificates make themselves: they need rows of their own."""
        if self._certifies and self.selection == "crossfit":
            raise ValueError(
                "confidence='certified' tests on rows that are held out, and selection='crossfit' "
                "holds out none; leave selection as it is."
            )
        return "holdout" if self._certifies else self.selection

    @property
    def needs_group(self) -> bool:
        """Whether ``predict`` must be told each row's group."""
        return bool(self.group_cuts)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")  # the last of what a fit sets, unlike n_features_in_

    def fit(
        self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> FairClassifier:
        """Fit the classifier and its frontier.

        Parameters
        ----------
        X : array-like, sparse matrix, tensor or Dask collection, (n_samples, n_features)
            Inputs, numeric and of similar scales. float32 stays float32. A tensor stays on its
            device, and the partitions of a Dask array or frame on their workers; so may then be the
            partitions of the other arguments.
        y : array-like of shape (n_samples,)
            Labels of any type, two or more.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes), optional
            Group of each row, values of any type; several columns are crossed. Not needed if the
            constructor's ``sensitive_features`` says where to find it; if both are given, this one
            counts, and the column named there is still no input.
        sample_weight : array-like of shape (n_samples,), optional
            Row weights. A weight of k counts as k rows, one of 0 as none; a mean below 1 is brought
            to 1. Those of a survey need ``survey_weights=True``.

        Returns
        -------
        FairClassifier
            The fitted estimator.
        """
        self._validate_params()
        rows, random = self._rows(X, y, sensitive_features, sample_weight)
        return self._fit_rows(rows, random)

    def fit_parquet(
        self,
        path: Any,
        *,
        label: str,
        sensitive_features: str | Sequence[str],
        columns: Sequence[str] | None = None,
        sample_weight: str | None = None,
    ) -> FairClassifier:
        """Fit to Parquet files that need not fit in memory: a row group is read at a time.

        Every iteration reads the files once. The result is that of :meth:`fit` on the whole table.

        Parameters
        ----------
        path : str, Path, or sequence of them
            Files, or folders of them, or patterns such as ``"data/*.parquet"``.
        label : str
            Column of the label.
        sensitive_features : str or sequence of str
            Column of the group, or several, which are crossed. No inputs.
        columns : sequence of str, optional
            Inputs, all numbers; by default every other column.
        sample_weight : str, optional
            Column of row weights.

        Returns
        -------
        FairClassifier
            The fitted estimator.
        """
        import_extra("pyarrow", "parquet")
        from evenhand.engines.coding import StreamRows, part_facts
        from evenhand.engines.parquet import find_files, parquet_parts

        self._validate_params()
        self._check_parts("numpy", "a table in files")
        sensitive = (
            [sensitive_features] if isinstance(sensitive_features, str) else [*sensitive_features]
        )
        files = find_files(path)
        parts, inputs = parquet_parts(files, label, sensitive, columns, sample_weight)
        self.n_features_in_ = len(inputs)
        self.feature_names_in_ = np.array(inputs, dtype=object)
        facts = reduce(add, (part_facts(part.read()) for part in parts))
        coding, rows = self._coding(facts, sample_weight is not None)
        source = StreamRows(parts, facts, coding, len(inputs))
        random = check_random_state(self.random_state)
        return self._fit_rows(rows._replace(source=source), random)

    def _fit_rows(self, rows: CodedRows, random: np.random.RandomState) -> FairClassifier:
        def view(fitted: Any, held: Any) -> tuple[CodedRows, CodedRows]:
            if fitted is None:
                return rows, rows
            return take_rows(rows, fitted), take_rows(rows, held)

        names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_))
        return self._choose(self._learn(rows, random, view, names[rows.inputs]))

    def _learn(
        self, rows: CodedRows, random: np.random.RandomState, view: View, names: Any = None
    ) -> str:
        """Find the frontier, measured as the selection asks; return what went wrong, if anything.

        ``view(fitted, held)`` gives the rows of these numbers (None: all; no others then) with the
        inputs that a fit to the former makes of them. With ``names`` the scales of the inputs are
        checked.
        """
        parts = self._parts(rows, random)
        split = self._rows_chosen_on == "holdout"
        fitted, held = view(*(parts[0] if split else (None, NO_ROWS)))
        oracle = self._oracle(fitted)
        self.classes_, self.groups_, self._inputs = rows.classes, rows.groups, fitted.inputs
        self.small_groups_, self._edges = rows.small, rows.edges
        self._labels, self._by_group = self._label_order(rows.classes), self.group_cuts
        self._sign = 1 if self._labels[-1] == self.classes_[-1] else -1
        self._rate = oracle.notion.rate
        if names is not None:
            check_scales(oracle.column_scale, names, stacklevel=4)
        trouble = self._explore(oracle)
        each = "rows of each label" if len(self._favourable(rows)) > 1 else "positives"
        chance = " and a rate better than chance" * oracle.notion.better_than_chance
        self._requirement = (
            f"between {self.min_share:.0%} and {1 - self.min_share:.0%} predicted {each} in every "
            f"group{chance}"
        )
        # As of this fit, whatever set_params does before `at`.
        self._certify = self.delta if self._certifies else None
        sure = self.confidence
        self._margin = 0.0 if isinstance(sure, str) else margin_of(sure)
        self._confidence, self._first_tau = self.confidence, float(np.max(self.tau))
        self._where = PLACES[self._rows_chosen_on]
        self.held_out_ = None
        if split:
            self.held_out_ = self._measure(held, fitted.n_rows)
        elif parts:
            self.held_out_, later = self._cross_fit(rows.n_rows, parts, view)
            trouble = trouble or later
        self._find_answers()
        return trouble

    def _find_answers(self) -> None:
        """Find the point for every τ."""
        self.answers_ = answer(
            self.frontier_, self.held_out_, self._rate, margin=self._margin, certify=self._certify
        )

    def _rows(
        self,
        X: Any,
        y: Any,
        sensitive_features: Any,
        sample_weight: Any,
        *,
        reset: bool = True,
        dtype: Any = (np.float64, np.float32),
    ) -> tuple[CodedRows, np.random.RandomState]:
        """Check and code the data; the generator has drawn their noise column, if there is one.

        ``reset=False``: the data are for an estimator that is fitted already.
        """
        find_notion(self.notion, self.degree, self.tau)  # its errors come before those of the data
        check_labels(y)
        if is_dask(X):
            rows = self._dask_rows(X, y, sensitive_features, sample_weight)
            return rows, check_random_state(self.random_state)
        if self.engine == "dask":
            raise ValueError("engine='dask' is for Dask arrays and frames; X is none.")
        X = on_host(X) if self.engine == "numpy" else X
        where = self.sensitive_features
        table = as_table(X) if isinstance(where, int | str) else X
        if is_tensor(X) and not self._needs_table():
            rows = self._tensor_rows(X, y, sensitive_features, sample_weight, reset=reset)
            return rows, check_random_state(self.random_state)
        y, sensitive_features, sample_weight = map(on_host, (y, sensitive_features, sample_weight))
        column = group_column(table, where, sensitive_features)
        if is_tensor(X):
            X, y = self._check_tensor(X, y, reset=reset)
        else:
            inputs = blank_groups(as_table(table), column)
            try:
                X, y = validate_data(
                    self,
                    inputs,
                    y,
                    reset=reset,
                    accept_sparse="csr",
                    dtype=list(dtype),
                    order="C",
                )
            except (ValueError, TypeError) as error:
                if isinstance(error, ValueError) or hasattr(inputs, "iloc"):
                    self._refuse_text(inputs, sensitive_features)
                raise
            X = canonical(X)
            check_sizes(X, getattr(self, "feature_names_in_", None))
        weight, used = check_weights(X, sample_weight, survey=self.survey_weights)
        groups = find_groups(table, column, where, sensitive_features, used)
        rows = code_rows(
            X,
            y,
            groups,
            weight,
            used,
            column,
            min_group_size=self.min_group_size,
            bins=self.bins,
            two_groups=False,
            two_labels=False,
        )
        self._check_labels(rows.classes, guess=reset)
        if self._label_order(rows.classes)[-1] != rows.classes[-1]:
            rows = rows._replace(y=1 - rows.y)
        random = check_random_state(self.random_state)
        if self.extra_column == "noise":
            extra = random.uniform(size=X.shape[0])
            rows = rows._replace(extra=extra if used is None else extra[used])
        return rows, random

    def _refuse_text(self, X: Any, sensitive_features: Any) -> None:
        """Refuse text, dates and missing values among the inputs, with the line that takes them."""
        found = None if issparse(X) else find_no_numbers(X)
        if found is None:
            return
        groups = self.sensitive_features if sensitive_features is None else None
        if not isinstance(groups, str):
            groups = str(getattr(sensitive_features, "name", None) or "group")
        table = "X" if hasattr(X, "columns") else "pd.DataFrame(X).rename(columns=str)"
        if groups not in getattr(X, "columns", ()):
            table += f".assign(**{{{groups!r}: sensitive_features}})"
        own, usual = self.get_params(), FairClassifier().get_params()
        changed = [k for k in own if k == "tau" or repr(own[k]) != repr(usual[k])]
        params = [f"{k}={own[k]!r}" for k in changed if k != "sensitive_features"]
        raise ValueError(
            f"column {found[0]!r} of X holds {found[1]}, and FairClassifier takes numbers; for a "
            "table as it comes, with text, dates and missing values, use "
            f"fair_pipeline({', '.join([repr(groups), *params])}).fit({table}, y)."
        ) from None

    def _check_tensor(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:
        """Check a tensor of inputs, and the labels, as scikit-learn does arrays."""
        from evenhand.engines.torch import check_tensor

        X = check_tensor(X)
        validate_data(self, X, y, reset=reset, skip_check_array=True)
        if not _is_coded_on_device(y):
            y = column_or_1d(on_host(y), warn=True)
            assert_all_finite(y, input_name="y")
            check_consistent_length(X, y)
            check_classification_targets(y)
        return X, y

    def _tensor_rows(
        self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any, *, reset: bool
    ) -> CodedRows:
        """Rows of a tensor, coded on its device."""
        from evenhand.engines.torch import TorchRows, tensor_columns, tensor_facts

        if sensitive_features is None:
            group_column(X, None, None)  # says so
        X, y = self._check_tensor(X, y, reset=reset)
        if not (is_tensor(sensitive_features) and sensitive_features.ndim == 1):
            sensitive_features = on_host(sensitive_features)
            sensitive_features = find_groups(X, None, None, sensitive_features, None)
            check_missing(sensitive_features, "sensitive_features", "a group is never guessed")
        weight, used = check_weights(X, on_host(sample_weight))
        if used is not None:
            kept = used.tolist()
            X, weight = X[kept], weight[used]
            y = y[kept] if is_tensor(y) else y[used]
            many = is_tensor(sensitive_features)
            sensitive_features = sensitive_features[kept] if many else sensitive_features.iloc[used]
        facts, y, z = tensor_facts(X, y, sensitive_features, weight)
        coding, rows = self._coding(facts, weight is not None)
        columns = tensor_columns(facts, coding, y, z, weight)
        return rows._replace(source=TorchRows(X, columns, self.device))

    def _needs_table(self) -> list[str]:
        """Parameters that need the whole table at hand."""
        needs = {
            "bins": self.bins is not None,
            "sensitive_features": self.sensitive_features is not None,
            "extra_column": self.extra_column == "noise",
            "cv": self._rows_chosen_on == "crossfit" and not isinstance(self.cv, Integral),
        }
        return [name for name, needed in needs.items() if needed]

    def _check_parts(self, engine: str, table: str) -> None:
        """Refuse what is not for a table in parts, and other engines than the one that has it."""
        find_notion(self.notion, self.degree, self.tau)
        refused = self._needs_table() + (["device"] if self.device is not None else [])
        if refused:
            raise ValueError(
                f"{refused[0]}={getattr(self, refused[0])!r} is for tables in memory, not for one "
                "in parts."
            )
        if self.engine not in ("auto", engine):
            raise ValueError(f"engine={self.engine!r} is not for {table}; use engine='auto'.")

    def _coding(self, facts: Any, weighted: bool) -> tuple[Any, CodedRows]:
        """Codes of a table in parts, and its rows but for their source."""
        coding, rows = code_facts(
            facts,
            names=getattr(self, "feature_names_in_", None),
            min_group_size=self.min_group_size,
            weighted=weighted,
            survey=self.survey_weights,
            flip=lambda classes: self._label_order(classes)[-1] != classes[-1],
        )
        if self._certifies and weighted:
            check_unweighted(np.array(facts.extremes))
        self._check_labels(rows.classes)
        return coding, rows

    def _dask_rows(self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any) -> CodedRows:
        """Rows of Dask collections, coded where they are."""
        from evenhand.engines.coding import check_shape
        from evenhand.engines.dask import DaskRows, dask_facts, dask_parts

        self._check_parts("dask", "a Dask collection")
        if sensitive_features is None:
            group_column(X, None, None)  # says so
        check_shape(X)
        # A frame's columns are those of its empty pandas frame.
        table = X._meta if hasattr(X, "columns") else X
        validate_data(self, table, y, skip_check_array=True)
        parts = dask_parts(X, y, sensitive_features, sample_weight)
        facts = dask_facts(parts)
        coding, rows = self._coding(facts, sample_weight is not None)
        return rows._replace(source=DaskRows(parts, facts, coding, int(X.shape[1])))

    def _check_labels(self, classes: NDArray[Any], *, guess: bool = True) -> None:
        """Refuse a favourable label that is none, and what is for two labels with many.

        Warn of a ``guess`` of the favourable one of two.
        """
        unsaid = guess and self.pos_label is None and len(classes) == 2
        if unsaid and not plain_labels(classes.tolist()):
            _warn_of_guess(classes)
        if self.pos_label is not None and self.pos_label not in classes.tolist():
            raise ValueError(
                f"pos_label={self.pos_label!r} is not among the labels: "
                f"{', '.join(map(repr, classes.tolist()[:10]))}."
            )
        path, noise = SOLVERS[self.solver].two_labels_only, self.extra_column == "noise"
        if len(classes) > 2 and (self.group_cuts or noise or path):
            what = "group_cuts=True" if self.group_cuts else "extra_column='noise'"
            what = f"solver={self.solver!r}" if path else what
            raise ValueError(
                f"{what} is for two labels; y has {len(classes)}: "
                f"{', '.join(map(repr, classes.tolist()[:10]))}."
            )

    def _label_order(self, classes: NDArray[Any]) -> NDArray[Any]:
        """Put the labels in the order of their numbers: of two the favourable one is second."""
        first = len(classes) == 2 and self.pos_label == classes.tolist()[0]
        return classes[::-1] if first else classes

    def _favourable(self, rows: CodedRows) -> list[int]:
        """Numbers of the labels that count as favourable."""
        n = len(rows.classes)
        if n == 2:
            return [1]
        return (
            list(range(n))
            if self.pos_label is None
            else [rows.classes.tolist().index(self.pos_label)]
        )

    def _oracle(self, rows: CodedRows) -> Oracle:
        """Make the oracle of a fit to the rows."""
        noise = rows.extra is not None
        if self._engine(rows) == "numpy" and rows.source is None and not noise:
            rows = merge_alike(rows)
        notion = find_notion(self.notion, self.degree, self.tau)
        SOLVERS[self.solver].check(notion)
        if len(rows.classes) > 2:
            notion = of_labels(notion, self._favourable(rows), len(rows.classes))
        return Oracle(
            self._source(rows),
            notion=notion,
            n_labels=len(rows.classes),
            n_groups=len(rows.groups),
            quantity=rows.quantity is not None,
            reading=self.reading,
            adversary_sign=self.adversary_sign,
            mu=self.mu,
            l2=self.l2,
            penalize_extra=noise,
        )

    def _engine(self, rows: CodedRows) -> str:
        """Name of the engine for rows that are at hand."""
        return "torch" if self.engine == "torch" or is_tensor(rows.X) else "numpy"

    def _source(self, rows: CodedRows) -> Rows:
        """Rows where an engine has them."""
        if rows.source is not None:
            return rows.source
        columns = as_columns(
            len(rows.y),
            rows.y,
            rows.z,
            n_labels=len(rows.classes),
            quantity=rows.quantity,
            extra=rows.extra,
            sample_weight=rows.weight,
        )
        if self._engine(rows) == "numpy":
            return MemoryRows(rows.X, columns)
        import_extra("torch", "torch")
        from evenhand.engines.torch import TorchRows

        return TorchRows(rows.X, columns, self.device)

    def _parts(self, rows: CodedRows, random: np.random.RandomState) -> list[tuple[Any, Any]]:
        """Rows to fit to and rows to hold out, as often as the selection needs them."""
        selection = self._rows_chosen_on
        if selection == "train":
            return []
        if rows.source is not None:
            return self._shares(rows, rows.source, random)
        if self._certifies:
            check_unweighted(rows.weight)
        groups = [*rows.groups.tolist(), *(["small groups"] if rows.small else [])]
        names, n = (groups, self._label_order(rows.classes).tolist()), len(rows.y)
        strata = rows.z * len(rows.classes) + rows.y
        # Bounds are exact only if the held-out labels do not depend on those fitted to.
        strata = rows.z if self._certifies else strata
        if selection != "crossfit":
            parts = [split_rows(strata, self.holdout, random)]
        elif isinstance(self.cv, Integral):
            parts = split_folds(strata, int(self.cv), random)
        else:
            from sklearn.model_selection import check_cv  # imports half of scikit-learn

            splits = check_cv(self.cv, rows.y, classifier=True).split(np.zeros(n), rows.y)
            parts = [(rows_of(a, n), rows_of(b, n)) for a, b in splits]
        for fitted, held in parts:
            if selection == "crossfit" and not len(held):
                raise ValueError(
                    f"cv={self.cv} has a fold without rows: there are {n} rows; bring more, or use "
                    "fewer folds."
                )
            check_part(rows.z[fitted], rows.y[fitted], names)
            if self.selection != "crossfit":
                check_held(rows.z[held], rows.groups.tolist())
        return parts

    def _shares(
        self, rows: CodedRows, source: Rows, random: np.random.RandomState
    ) -> list[tuple[Any, Any]]:
        """As :meth:`_parts`, of rows that are elsewhere: each is drawn by itself."""
        seed = int(random.randint(2**31 - 1))
        n = int(self.cv) if self._rows_chosen_on == "crossfit" else 1
        edges = np.linspace(0, 1, n + 1) if n > 1 else [0.0, self.holdout]
        parts = [
            (Share(seed, low, high, False), Share(seed, low, high, True))
            for low, high in pairwise(edges)
        ]
        groups = [*rows.groups.tolist(), *(["small groups"] if rows.small else [])]
        names = (groups, self._label_order(rows.classes).tolist())
        for each in parts:
            for share, what in zip(each, ("to fit to", "to hold out"), strict=True):
                size = source.sum(share_cells, share, len(groups) * len(rows.classes))
                if not size.any():
                    raise ValueError(f"no row is left {what}; bring more rows, or split otherwise.")
                z, y = np.divmod(np.flatnonzero(size), len(names[1]))
                if what == "to fit to":
                    check_part(z, y, names)
                elif n == 1:
                    check_held(z, rows.groups.tolist())
        return parts

    def _explore(self, oracle: Oracle) -> str:
        """Run the legs and sweep their frontier; return what went wrong, if anything did."""
        with cores():
            return self._run_and_sweep(oracle)

    def _run_and_sweep(self, oracle: Oracle) -> str:
        trouble = self._run(oracle)
        self.frontier_ = sweep(
            oracle,
            self.trajectory_.iterates,
            cut=self.cut,
            by_group=self.group_cuts,
            min_share=self.min_share,
            groups=self.groups_.tolist(),
            labels=self._labels.tolist(),
        )
        if not self.frontier_.complete:
            trouble = "the fit was interrupted while its frontier was swept"
            self._interrupted = True
        return trouble

    def _count(self, points: Frontier, rows: CodedRows) -> NDArray[np.float64]:
        """Count what the points, and behind them the last iterate, predict for other rows."""
        kinds = len(rows.groups) + bool(rows.small)
        return count_rows(points, self.trajectory_.iterates, self._source(rows), kinds)

    def _measure(self, rows: CodedRows, n_fitted: int) -> HeldOut:
        """Measure the points on held-out rows."""
        certified = self._certifies
        points = candidates(self.frontier_) if certified or self._margin else self.frontier_
        counts = self._count(points, rows)
        if certified:
            # Weights, if there are any, are all alike; the bounds count rows.
            counts = np.rint(counts * (rows.n_rows / counts[-1].sum()))
        return HeldOut.from_counts(
            points,
            counts,
            self._rate,
            delta=self.delta if certified or not rows.weighted else None,
            n_rows=rows.n_rows,
            n_fitted=n_fitted,
        )

    def _cross_fit(self, n_fitted: int, parts: list[Any], view: View) -> tuple[HeldOut, str]:
        """Measure the points out of fold; say as well what went wrong in the folds."""
        done: list[tuple[Frontier, NDArray[np.float64]]] = []
        trouble, n_rows = "", 0
        try:
            for part in [] if self._interrupted else parts:
                frontier, counts, n_held, later = self._fold(*view(*part))
                done.append((frontier, counts))
                trouble, n_rows = later or trouble, n_rows + n_held
        except KeyboardInterrupt:
            trouble = f"the fit was interrupted after {len(done)} of {len(parts)} folds"
        held_out = HeldOut.from_counts(
            self.frontier_,
            pool_folds(self.frontier_, done),
            self._rate,
            delta=None,
            n_rows=n_rows,
            n_fitted=n_fitted,
        )
        return held_out, trouble

    def _fold(
        self, fitted: CodedRows, held: CodedRows
    ) -> tuple[Frontier, NDArray[np.float64], int, str]:
        """Fit to some rows and count on the others, copies that are gone before the next fold."""
        fold = copy(self)
        trouble = fold._explore(self._oracle(fitted))
        if fold._interrupted:
            raise KeyboardInterrupt
        return fold.frontier_, fold._count(fold.frontier_, held), held.n_rows, trouble

    def _run(self, oracle: Oracle) -> str:
        """Run the legs into ``trajectory_``; return what went wrong, if anything did."""
        trajectory = self.trajectory_ = Trajectory(oracle.notion.rate, oracle.n_groups)
        legs, trouble, done, self._interrupted = LEGS[self.init], "", 0, False
        starts = {"zero": np.zeros(oracle.n_weights)}
        n_kept = min(self.n_iterates, self.max_iter)
        kept = set(np.linspace(1, self.max_iter, n_kept).round().astype(int).tolist())
        try:
            with progress_bar(self.verbose, trajectory, len(legs) * self.max_iter) as show:

                def record(iteration: Iteration) -> None:
                    trajectory.add("optimum", iteration, keep=False)
                    show("plain optimum", 0)

                if "optimum" in legs:
                    # BLAS would wake its threads for L-BFGS's small matrices, to no one's use.
                    memory = isinstance(oracle.rows, MemoryRows)
                    with cores.without_blas() if memory else nullcontext():
                        starts["optimum"], reached = minimize_loss(
                            oracle, starts["zero"], max_iter=200, callback=record
                        )
                    if not reached:
                        trouble = "the unconstrained optimum was not reached in 200 iterations"
                    trajectory.keep(starts["optimum"])
                for leg in legs:
                    iterations = self._leg(oracle, starts[leg])
                    t = 0
                    for iteration in iterations:
                        t = iteration.t
                        done += 1
                        trajectory.add(f"from {leg}", iteration, keep=t in kept)
                        show(f"fair, from {leg}", 1)
                    trajectory.keep()
                    if t < self.max_iter:
                        trouble = f"the run from {leg} diverged at iteration {t + 1}"
        except KeyboardInterrupt:
            if not len(trajectory):
                raise
            trouble = f"the fit was interrupted after {len(trajectory)} iterations"
            self._interrupted = True
            trajectory.keep()
        if not len(trajectory.iterates):
            trajectory.keep(starts["zero"])
        self.n_iter_, self.converged_ = max(done, 1), not trouble
        return trouble

    def _leg(self, oracle: Oracle, start: NDArray[np.float64]) -> Iterator[Iteration]:
        """Run from a start."""
        return SOLVERS[self.solver].run(
            oracle,
            start,
            rule=RULES[self.update],
            schedule=power_schedule(self.alpha, self.alpha_power),
            max_iter=self.max_iter,
            step=self.step,
        )

    def _choose(self, trouble: str = "") -> FairClassifier:
        """Take the frontier's point for ``tau``, and say what went wrong on the way to it."""
        if trouble:
            self.converged_ = False
            warnings.warn(
                f"{trouble}; the best point found so far is used.",
                ConvergenceWarning,
                stacklevel=3,
            )
        tau = float(np.max(self.tau))
        if self._certify is None or self.held_out_ is None:
            choice = self.answers_.choose(tau)
        else:
            choice = certificate(
                self.answers_,
                self.held_out_,
                self._rate,
                tau,
                self._certify,
                moved=tau != self._first_tau,
            )
        point = self._take(choice)
        if not point.feasible:
            sure = f" with confidence {self._confidence:g}" if self._margin else ""
            missed = f"tau={self.tau} was not reached {self._where} for {self.notion}{sure}: "
            missed += self._nearest(tau)
            warnings.warn(
                f"{self.guarantee_ or missed}. The classifier is kept with feasible_=False.",
                FairnessWarning,
                stacklevel=3,
            )
        return self

    def _nearest(self, tau: float) -> str:
        """Say how near to τ the fit came."""
        if not len(self.frontier_):
            return self._undefined() or f"no point has {self._requirement}"
        rate = rate_text(self.rate_, tau)
        if not self._margin:
            return f"the highest rate found is {rate}"
        return (
            f"the point that comes nearest has the rate {rate}, of which "
            f"{rate_text(self.rate_bound_, tau)} can be relied on with this confidence"
        )

    def _take(self, choice: Choice) -> Point:
        """Be the classifier of a point."""
        point = self.point_ = choice.point
        w = self._sign * self.trajectory_._kept[point.iterate][1]  # without a copy of all
        w, cut = w.reshape(-1, len(self._inputs) + 1), self._sign * point.cut
        self.coef_ = np.zeros((len(w), self.n_features_in_))
        self.coef_[:, self._inputs] = w[:, :-1]
        self.intercept_ = w[:, -1] - cut
        self.__dict__.pop("noise_coef_", None)  # of an earlier fit with other parameters
        if self.extra_column == "noise":
            self.noise_coef_ = float(w[0, -1])
            self.intercept_ = np.atleast_1d(-cut)
        self.rate_, self.accuracy_, self.feasible_ = choice.rate, choice.accuracy, point.feasible
        self.rate_bound_ = choice.bound
        self.guarantee_ = choice.guarantee
        return point

    def _undefined(self) -> str:
        """Say of which group a rate is undefined whatever the classifier, if there is one."""
        counts = self.frontier_.last.counts[: len(self.groups_)]
        for part in self._rate.parts:
            labels = sorted({y for y, _ in part.denominator})
            rows = counts.sum(axis=-1)[:, labels].sum(axis=1)
            whole = {(y, p) for y in labels for p in range(counts.shape[-1])}
            if set(part.denominator) == whole and not rows.all():
                group = self.groups_.tolist()[int(np.argmin(rows))]
                names = " or ".join(repr(self._labels.tolist()[y]) for y in labels)
                return (
                    f"group {group!r} has no row with the label {names}, so its "
                    f"{part.name.replace('_', ' ')} is undefined; leave it out or join it"
                )
        return ""

    def at(self, tau: float) -> FairClassifier:
        """Give the same fit at another target, without training and without data.

        The choice is the one that ``fit`` with this target and the same ``random_state`` would have
        made: of the points that reach τ, with the confidence asked for, the most accurate on the
        rows the choice looks at. A higher τ never has a higher ``accuracy_`` nor a lower
        ``rate_bound_``; a feasible answer's ``rate_`` is at least τ. A confidence is for
        one τ at a time, fixed beforehand: whoever tries several and keeps the one that looks best
        errs more often.

        Parameters
        ----------
        tau : float
            The new target, in (0, 1]. Of several notions the strictest gets it, and the targets of
            the others stay in proportion.

        Returns
        -------
        FairClassifier
            A fitted classifier; this one stays as it is.
        """
        return self._aimed(tau)._choose()

    def _aimed(self, tau: float) -> FairClassifier:
        """Give a copy with another target."""
        check_is_fitted(self)
        other = copy(self)
        other.tau = tau
        other._validate_params()
        if np.ndim(tau):
            raise ValueError(f"tau={tau}; give one number, the target of the strictest notion.")
        if np.ndim(self.tau):
            other.tau = [float(t) for t in np.multiply(self.tau, tau / np.max(self.tau))]
        return other

    def averaged(self, tau: float | None = None) -> AveragedClassifier:
        """Mix a few points at random into a classifier that is exactly as fair as it must be.

        Two equal rows may then get different answers. The mixture is the most accurate one of the
        points that :meth:`at` and certificates choose from, on the rows they are chosen on: the
        frontier's, and those of equal accuracy and surer rates. (Among all cuts of all iterates
        there are mixtures that look better on the training data, and are not on new rows.) Only for
        rates whose denominator no prediction changes.

        Parameters
        ----------
        tau : float, optional
            The target, as in :meth:`at`; that of the fit by default.

        Returns
        -------
        AveragedClassifier
            A fitted classifier of at most m + 1 points, with m constraints: one for each ordered
            pair of groups and each rate. If no mixture reaches ``tau``, it is the one point that
            :meth:`at` would give, with ``feasible_=False`` and a ``FairnessWarning``.
        """
        check_is_fitted(self)
        check_linear(self._rate)
        if self._certify is not None:
            raise ValueError(
                "confidence='certified' certifies one point, and a mixture of several is none; use "
                "at(tau), or average a fit with another confidence."
            )
        aimed = copy(self) if tau is None else self._aimed(tau)
        target, held = float(np.max(aimed.tau)), self.held_out_
        points = candidates(self.frontier_) if held is None else held.points
        counts = points.counts if held is None else held.counts
        # A mixture is about as uncertain as the point for τ: it must be above τ by as much.
        alone = self.answers_.choose(target)
        goal = min(target * alone.rate / alone.bound, 1.0) if alone.bound > 0 else target
        mixture = best_mixture(counts, len(points.groups), self._rate, goal)
        if mixture is None:
            aimed._choose()  # says that tau is out of reach
            return AveragedClassifier(
                [aimed], [1.0], target, aimed.rate_, aimed.accuracy_, self.random_state
            )
        rates = self._rate.ratio(counts[:, : len(points.groups)])
        accuracies = overall_accuracy(counts)
        models = [copy(self) for _ in mixture.points]
        for model, i in zip(models, mixture.points, strict=True):
            point = point_of(points, i, bool(rates[i] >= target))
            rate = float(rates[i])
            model._take(Choice(point, rate, float(accuracies[i]), rate))
        return AveragedClassifier(
            models, mixture.weights, target, mixture.rate, mixture.accuracy, self.random_state
        )

    def decision_function(self, X: Any, *, sensitive_features: Any = None) -> NDArray[np.float64]:
        r"""Score less the chosen cut; positive means ``classes_[1]``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes), optional
            Group of each row; needed with ``group_cuts``, else not looked at.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            :math:`s - \text{cut}`; of more than two labels one for each, the largest of which is
            predicted.
        """
        check_is_fitted(self)
        if is_dask(X):
            return self._on_dask("decision_function", X, sensitive_features)
        X, sensitive_features = on_host(X), on_host(sensitive_features)
        table = as_table(X)
        column = np.setdiff1d(np.arange(self.n_features_in_), self._inputs)
        checked = validate_data(
            self,
            blank_groups(table, int(column[0])) if len(column) else X,
            reset=False,
            accept_sparse="csr",
            dtype=np.float64,
        )
        scores = checked @ self.coef_.T
        if self._by_group:
            if sensitive_features is None and self.sensitive_features is not None:
                at = int(column[0]) if len(column) else None
                sensitive_features = find_groups(table, at, self.sensitive_features, None, None)
            group = code_known_groups(
                AWARE,
                self.groups_,
                sensitive_features,
                checked.shape[0],
                small=self.small_groups_,
                edges=self._edges,
            )
            scores = scores[:, 0] + self.intercept_[group]
        else:
            scores = scores + self.intercept_
        if hasattr(self, "noise_coef_"):
            noise = check_random_state(self.random_state).uniform(size=checked.shape[0])
            scores = scores.reshape(-1) + self.noise_coef_ * noise
        return np.asarray(scores if len(self.classes_) > 2 else scores.reshape(-1))

    def _on_dask(self, method: str, X: Any, sensitive_features: Any) -> Any:
        """Have a method's result for Dask collections, as a Dask array that is still to compute."""
        from evenhand.engines.dask import on_partitions

        groups, n = self._dask_groups(sensitive_features), len(self.classes_)
        wide = method == "predict_proba" or (method == "decision_function" and n > 2)
        dtype = self.classes_.dtype if method == "predict" else np.float64
        return on_partitions(self, method, X, groups, shape=(n,) if wide else (), dtype=dtype)

    def _dask_groups(self, sensitive_features: Any) -> Any:
        """Give groups if predictions need them; refuse at once that they are missing."""
        check_is_fitted(self)
        if not self._by_group:
            return None
        if sensitive_features is None and self.sensitive_features is None:
            code_known_groups(AWARE, self.groups_, None, 0)  # says so
        return sensitive_features

    def predict(self, X: Any, *, sensitive_features: Any = None) -> Any:
        """Predicted label of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes), optional
            Group of each row; needed with ``group_cuts``, else not looked at.

        Returns
        -------
        ndarray of shape (n_samples,)
            Values of ``classes_``.
        """
        if is_dask(X):
            return self._on_dask("predict", X, sensitive_features)
        scores = self.decision_function(X, sensitive_features=sensitive_features)
        # A score of exactly 0 is not the favourable label's, whichever that is.
        return self._labels[decide(self._sign * scores, 0.0)]

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None
    ) -> float:
        """Accuracy of the predictions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            Row weights.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes), optional
            Group of each row; needed with ``group_cuts``, else not looked at.

        Returns
        -------
        float
            Share of right predictions.
        """
        if is_dask(X):
            from evenhand.engines.dask import dask_score

            groups = self._dask_groups(sensitive_features)
            return dask_score(self, X, y, groups, sample_weight)
        y, sample_weight = column_or_1d(on_host(y)), on_host(sample_weight)
        answer = self.predict(X, sensitive_features=sensitive_features)
        check_consistent_length(answer, y, sample_weight)
        return float(np.average(answer == y, weights=sample_weight))

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> NDArray[np.float64]:
        """Sigmoid or softmax of :meth:`decision_function`, scores between 0 and 1.

        The predicted label's is the largest, but they are not calibrated: fairness and the cut move
        them away from the labels' frequencies.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes), optional
            Group of each row; needed with ``group_cuts``, else not looked at.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``.
        """
        if is_dask(X):
            return self._on_dask("predict_proba", X, sensitive_features)
        scores = self.decision_function(X, sensitive_features=sensitive_features)
        if scores.ndim == 2:
            return np.asarray(softmax(scores, axis=1))
        positive = expit(scores)
        return np.column_stack([1 - positive, positive])
