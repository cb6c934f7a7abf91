"""FairClassifier: scikit-learn's conventions around training, frontier and answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import fields
from functools import wraps
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from evenhand._sklearn import ChecksParameters, Interval, StrOptions
from evenhand.core.errors import InputError, Parameter
from evenhand.core.rates import overall_accuracy
from evenhand.core.targets import Target, find_target, moved
from evenhand.frontier.choice import Choice, beats_constant
from evenhand.frontier.held_out import candidates
from evenhand.frontier.mixtures import best_mixture, check_linear
from evenhand.frontier.points import point_of
from evenhand.models.averaged import AveragedClassifier
from evenhand.models.card import ShowsSummary
from evenhand.models.fit_rows import code_persons, parquet_rows, read_rows
from evenhand.models.inputs import CodedRows, take_rows
from evenhand.models.method import Method
from evenhand.models.predictions import Predictions
from evenhand.models.settings import (
    PLACES,
    FairnessWarning,
    FavourableLabelWarning,
    FitWarning,
    Settings,
    warn,
)
from evenhand.models.training import Fit, learn
from evenhand.models.verdicts import verdict_of

__all__ = ["FairClassifier", "FairnessWarning", "FavourableLabelWarning"]

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
    "target_",
    "rate_bound_",
    "rate_",
    "difference_",
    "accuracy_",
    "value_",
    "beats_constant_",
    "feasible_",
    "converged_",
    "n_iter_",
)
# Each classifier that is given no method gets a copy of its own.
USUAL = Method()


def _refuse_moved(params: Iterable[str]) -> None:
    """Refuse parameters of the method that are given to the classifier, with the way to say it."""
    for name in params:
        if name in USUAL.get_params():
            raise TypeError(
                f"{name} is a parameter of the method: FairClassifier(method=Method({name}=...)), "
                f"or set_params(method__{name}=...), in a pipeline classifier__method__{name}=..., "
                "with `from evenhand import Method`."
            )


def _without_moved(init: Callable[..., None]) -> Callable[..., None]:
    """Make a constructor say where its former parameters are; its signature stays."""

    @wraps(init)
    def checked(self: Any, *args: Any, **params: Any) -> None:
        _refuse_moved(params)
        init(self, *args, **params)

    return checked


class FairClassifier(Predictions, ShowsSummary, ChecksParameters, ClassifierMixin, BaseEstimator):
    r"""Linear classifier fitted against a fairness adversary, with its whole frontier.

    Logistic regression descends its loss while an adversary tries to tell a row's group from its
    score; the part of the classification gradient that lies along the fairness gradient is removed
    from each step,

    .. math:: w \leftarrow w - \eta\,(g_C - \alpha_t g_F - \Pi_{g_F} g_C),

    and the run is accelerated. Every iterate that is kept, with every decision cut on its scores,
    is a classifier, as are other directions that join them
    (:mod:`evenhand.core.directions`); the Pareto set of their accuracies and rates is
    ``frontier_``. The fitted
    classifier is the most accurate point whose rate in the *population* reaches ``tau`` with about
    the probability ``confidence``; :meth:`at` moves to another τ without training. The group is not
    needed to predict.

    The favourable outcome is the label that ``pos_label`` names, of 0 and 1 the latter by default.
    Of more than two labels the classifier is a softmax, and every label counts as favourable, the
    worst of their rates deciding, unless ``pos_label`` names one. Inputs are numbers, in whatever
    units; :func:`evenhand.fair_pipeline` makes them of a table with text.

    Parameters
    ----------
    notion : str or list of str, default="statistical_parity"
        Which rate the groups shall share, a name in :data:`evenhand.core.notions.NOTIONS`:
        ``"statistical_parity"``, ``"equal_opportunity"``, ``"predictive_equality"``,
        ``"equalized_odds"``, ``"false_discovery"`` and others. Of several, all must hold.
    tau : float, list of float or None, optional
        Least ratio of the smallest to the largest group rate; 0.8, the four-fifths rule, unless
        ``epsilon`` is given. Several notions may have a target each, None for one that has none.
    epsilon : float, list of float or None, optional
        Largest difference between the groups' rates, as ``tau`` is the least ratio; where both are
        given, both must hold.
    method : Method, optional
        How the frontier is found: reading of the paper, solver, adversary, steps, ridge,
        iterations, cuts (:class:`~evenhand.Method`); by default the same for every table.
        ``Method.paper()`` with ``confidence=None`` is as the paper's own runs.
    confidence : float, "certified" or None, default=0.9
        How sure the target shall be.

        - A number from 0.5 to below 1: the most accurate point whose rate in the population is at
          least τ with about that probability. The point's rate must be above τ by a margin: the
          standard errors that its counts give, times the normal quantile of the number and 0.3
          more for what choosing among many points adds
          (:func:`evenhand.statistics.bounds.margin_of`).
        - ``None``: the rate itself must reach τ, as in the paper. On new rows it is then below τ
          about as often as above.
        - ``"certified"``: with confidence 1 − ``delta``, exactly, or ``feasible_`` is False. Tests
          on held-out rows, the fairest point first, by exact bounds
          (:func:`evenhand.statistics.bounds.exact_score_bound`). For unweighted rows that are
          independent draws from one population.
    selection : {"train", "holdout", "crossfit"}, default="train"
        On which rows the point is chosen.

        - ``"train"``: on those it was fitted to. With a number as ``confidence`` and more columns
          than the root of the smallest group's rows, every row is judged as if it had been left out
          of the fit (:mod:`evenhand.core.left_out`): by its own score less what it added to it.
        - ``"holdout"``: on a share of the rows, set aside before the fit.
        - ``"crossfit"``: out of fold, without losing rows: ``cv`` fits, each to all folds but one,
          tell what target to ask of the fit to all rows so that τ is reached out of fold.
    holdout : float, default=0.5
        Share of the rows held out by ``selection="holdout"`` (at random within each label of each
        group) and by ``confidence="certified"`` (at random within each group: the labels held out
        must not depend on the labels fitted to).
    cv : int, splitter or iterable, default=5
        Folds of ``"crossfit"``: their number, stratified on label and group then, or splits in
        scikit-learn's manner, by number of row among the rows of positive weight.
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
    min_group_size : int, default=30
        Of more than two groups, those with fewer rows are fitted but not compared: their rates are
        mostly chance. They are in ``small_groups_``.
    pos_label : label, optional
        The favourable label. By default the larger of two, with a warning unless they are 0/1,
        −1/1, booleans or true/false; and each of more than two.
    survey_weights : bool, default=False
        What ``sample_weight`` means: how many rows a row stands for because they are the same, or,
        if True, how many people a row of a survey speaks for. Losses and rates are the same; the
        margin for chance then rests on the rows that were asked, not on those they speak for.
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
    attributes : {"crossed", "each", "both"}, default="crossed"
        Of several sensitive columns: which groups are compared. ``"crossed"``: every combination of
        values. ``"each"``: the values of each column by themselves; the worst column counts.
        ``"both"``: those, and the combinations. ``min_group_size`` is of the groups compared, so
        combinations too small for ``"crossed"`` count within each column. One column is the same in
        all three. Not with ``group_cuts``, which are cuts of combinations.
    objective : str or mapping of str to float, default="accuracy"
        What is maximised: ``"accuracy"``, ``"balanced_accuracy"``, or the profit of a decision
        between two labels, from what wrong answers cost and right ones earn:
        ``{"cost_fp": 1, "cost_fn": 5}``, with ``profit_tp`` and ``profit_tn`` beside them
        (:mod:`evenhand.core.objectives`); what is not named is 0.

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
        Weight of the noise column; only with ``Method(extra_column="noise")``.
    frontier_ : Frontier
        Accuracy and rate of every point worth choosing, on the rows fitted to: all, or those not
        held out.
    point_ : Point
        The chosen point, with its figures on the rows fitted to; ``point_.source`` says what found
        its weights.
    held_out_ : HeldOut or None
        Figures of the points that may be chosen on the held-out rows, out of fold, or on rows that
        are judged as if left out. None if the point was chosen on the rows fitted to as they are.
    answers_ : Answers
        The point for every τ: what :meth:`at` chooses from.
    guarantee_ : Guarantee or None
        What is certified, or what it would take; ``print(model.guarantee_)`` says it. None unless
        ``confidence="certified"``.
    fitted_ : Fit
        All that the fit found, for whichever target (:class:`evenhand.models.training.Fit`).
    trajectory_ : Trajectory
        The run, iteration by iteration; ``trajectory_.to_frame()``.
    target_ : Target
        What is demanded; ``print(model.target_)``. It measures counts, the larger the fairer.
    rate_ : float
        Ratio of the groups' rates at the chosen point on the rows it was chosen on: the training
        data, the held-out rows, or all rows out of fold. For differences it is the value that
        ``target_`` measures, *minus* ``difference_``: the larger the fairer, as all else.
    difference_ : float or None
        Where the target is a difference, the largest difference between the groups' rates on the
        same rows; None where it is not.
    rate_bound_ : float
        What ``rate_`` in the population reaches with the confidence asked for: ``rate_`` less the
        margin, or the exact bound of a certificate. ``rate_`` itself for ``confidence=None``.
    accuracy_ : float
        Its accuracy on the same rows as ``rate_``.
    value_ : float
        What it is worth there by the ``objective``: the accuracy, or another.
    beats_constant_ : bool
        Whether the chosen point is right more often, or by the ``objective`` worth more, than the
        same answer to everybody, by more than chance (1.6 standard errors), on the same rows.
    feasible_ : bool
        Whether ``rate_bound_`` reaches the target, for ``"certified"`` whether the point is
        certified (``point_.feasible``), and whether the point ``beats_constant_``: one answer for
        everybody treats the groups alike without a model.
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "notion": [str, list, tuple],  # looked up at fit: users may register their own
        "tau": [Interval(Real, 0, 1, closed="right"), list, tuple, None],
        "epsilon": [Interval(Real, 0, 1, closed="left"), list, tuple, None],
        "method": [Method],
        "confidence": [Interval(Real, 0.5, 1, closed="left"), StrOptions({"certified"}), None],
        "selection": [StrOptions(set(PLACES) - {"left_out"})],
        "holdout": [Interval(Real, 0, 1, closed="neither")],
        "cv": ["cv_object"],
        "delta": [Interval(Real, 0, 1, closed="neither")],
        "sensitive_features": [Integral, str, callable, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "min_group_size": [Interval(Integral, 1, None, closed="left")],
        "pos_label": [object],  # looked up among the labels at fit
        "survey_weights": ["boolean"],
        "group_cuts": ["boolean"],
        "bins": [Interval(Integral, 2, None, closed="left"), "array-like", None],
        "attributes": [StrOptions({"crossed", "each", "both"})],
        "objective": [str, Mapping],  # its own errors say more
        "engine": [StrOptions({"auto", "numpy", "torch", "dask"})],
        "device": [object],  # PyTorch knows which there are
    }

    @_without_moved
    def __init__(
        self,
        notion: str | Sequence[str] = "statistical_parity",
        tau: float | Sequence[float | None] | None = None,
        epsilon: float | Sequence[float | None] | None = None,
        *,
        method: Method = USUAL,
        confidence: float | str | None = 0.9,
        selection: str = "train",
        holdout: float = 0.5,
        cv: Any = 5,
        delta: float = 0.05,
        sensitive_features: int | str | Callable[[Any], Any] | None = None,
        random_state: Any = None,
        verbose: int = 0,
        min_group_size: int = 30,
        pos_label: Any = None,
        survey_weights: bool = False,
        group_cuts: bool = False,
        bins: Any = None,
        attributes: str = "crossed",
        objective: str | Mapping[str, float] = "accuracy",
        engine: str = "auto",
        device: Any = None,
    ) -> None:
        self.notion = notion
        self.tau = tau
        self.epsilon = epsilon
        self.method = method() if method is USUAL else method
        self.confidence = confidence
        self.selection = selection
        self.holdout = holdout
        self.cv = cv
        self.delta = delta
        self.sensitive_features = sensitive_features
        self.random_state = random_state
        self.verbose = verbose
        self.min_group_size = min_group_size
        self.pos_label = pos_label
        self.survey_weights = survey_weights
        self.group_cuts = group_cuts
        self.bins = bins
        self.attributes = attributes
        self.objective = objective
        self.engine = engine
        self.device = device

    def set_params(self, **params: Any) -> FairClassifier:
        """Set parameters; parameters of the method, such as ``method__mu``, in a copy of it.

        Parameters
        ----------
        **params : dict
            Parameters by name.

        Returns
        -------
        FairClassifier
            This estimator.
        """
        _refuse_moved(params)
        changes = {k: v for k, v in params.items() if k.startswith("method__")}
        if changes:
            method = params.get("method", self.method)
            if not isinstance(method, Method):
                raise TypeError(f"method={method!r} is no Method, so it has no {min(changes)}.")
            # The record may be another estimator's as well.
            method = clone(method)
            params["method"] = method.set_params(
                **{k.removeprefix("method__"): v for k, v in changes.items()}
            )
        super().set_params(**{k: v for k, v in params.items() if k not in changes})
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        random = self.selection != "train" or self.confidence == "certified"
        tags.non_deterministic = getattr(self.method, "noise", False) or random
        return tags

    @property
    def needs_group(self) -> bool:
        """Whether ``predict`` must be told each row's group."""
        return bool(self.group_cuts)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")  # the last of what a fit sets, unlike n_features_in_

    def settings(self) -> Settings:
        """Give the parameters, checked, as the record that training takes."""
        self._validate_params()
        self.method.check()
        return Settings(**{field.name: getattr(self, field.name) for field in fields(Settings)})

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        persons: Any = None,
    ) -> FairClassifier:
        """Fit the classifier and its frontier.

        Parameters
        ----------
        X : array-like, sparse matrix, tensor or Dask collection, (n_samples, n_features)
            Inputs, numeric, of any scales. float32 stays float32. A tensor stays on its
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
        persons : array-like of shape (n_samples,), optional
            Whose row each is, where a person may have several. Rows are then held out by person,
            and of each person held out one row counts, drawn by ``random_state``. For
            ``confidence="certified"``, ``selection="holdout"`` and ``"crossfit"``.

        Returns
        -------
        FairClassifier
            The fitted estimator.
        """
        settings = self.settings()
        rows, random = read_rows(self, settings, X, y, sensitive_features, sample_weight)
        if persons is not None:
            rows = rows._replace(person=code_persons(persons, settings, rows, sample_weight))
        return self.fit_rows(rows, settings, random)

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

        Every iteration reads the files once. The result is as by :meth:`fit` on the whole table.

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
        settings = self.settings()
        rows, names = parquet_rows(
            settings, path, label, sensitive_features, columns, sample_weight
        )
        self.n_features_in_, self.feature_names_in_ = len(names), names
        return self.fit_rows(rows, settings, check_random_state(self.random_state))

    def fit_rows(
        self, rows: CodedRows, settings: Settings, random: np.random.RandomState
    ) -> FairClassifier:
        """Fit to rows that are coded already, as ``fit`` and ``train --dask`` make them.

        Parameters
        ----------
        rows : CodedRows
            The rows; the estimator knows their columns.
        settings : Settings
            From :meth:`settings`.
        random : RandomState
            Draws the rows that are held out.

        Returns
        -------
        FairClassifier
            The fitted estimator.
        """

        def view(fitted: Any, held: Any) -> tuple[CodedRows, CodedRows]:
            if fitted is None:
                return rows, rows
            return take_rows(rows, fitted), take_rows(rows, held)

        names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_))
        return self.adopt(learn(rows, settings, random, view, names[rows.inputs]))

    def adopt(self, fit: Fit) -> FairClassifier:
        """Become the classifier of a fit: take its point for the target, and say what went wrong.

        Parameters
        ----------
        fit : Fit
            What training, or a file, gives.

        Returns
        -------
        FairClassifier
            This estimator, fitted.
        """
        self.classes_, self.groups_, self.small_groups_ = fit.classes, fit.groups, fit.small_groups
        self.trajectory_, self.n_iter_, self.converged_ = (
            fit.trajectory,
            fit.n_iter,
            not fit.trouble,
        )
        self._face(fit)
        self.target_ = self._target()
        self._face(fit.facing(self.target_))
        if fit.trouble:
            warn(FitWarning("not_converged", trouble=fit.trouble))
        return self._choose()

    def _face(self, fit: Fit) -> None:
        """Show the frontier of one of the two comparisons that a fit has points for."""
        self.fitted_, self.frontier_ = fit, fit.frontier
        self.held_out_, self.answers_ = fit.held_out, fit.answers

    def _target(self) -> Target:
        """Give what the parameters demand."""
        labels: dict[str, Any] = {"n_labels": len(self.classes_)}
        labels["favourable"] = self.fitted_.frontier.favourable
        target = find_target(self.notion, self.tau, self.epsilon, **labels)
        return target.by(self.fitted_.partitions)

    def _choose(self) -> FairClassifier:
        """Take the frontier's point for the target, and warn if it misses it."""
        self._take(self.fitted_.choose(self.target_.level))
        trouble = verdict_of(self)
        if trouble is not None:
            warn(trouble)
        return self

    def _take(self, choice: Choice) -> None:
        """Be the classifier of a point."""
        fit, point = self.fitted_, choice.point
        w = fit.sign * fit.trajectory.iterate(point.iterate)
        w, cut = w.reshape(-1, len(fit.inputs) + 1), fit.sign * point.cut
        self.coef_ = np.zeros((len(w), self.n_features_in_))
        self.coef_[:, fit.inputs] = w[:, :-1]
        self.intercept_ = w[:, -1] - cut
        self.__dict__.pop("noise_coef_", None)  # of an earlier fit with other parameters
        if fit.noise:
            self.noise_coef_ = float(w[0, -1])
            self.intercept_ = np.atleast_1d(-cut)
        self.point_, self.guarantee_ = point, choice.guarantee
        self.rate_, self.accuracy_, self.rate_bound_ = choice.rate, choice.accuracy, choice.bound
        apart = self.target_.comparison == "difference"
        self.difference_ = 0.0 - choice.rate if apart else None
        self.value_ = choice.value
        self.beats_constant_ = choice.beats_constant
        self.feasible_ = point.feasible and choice.beats_constant

    def at(self, tau: Any = None, *, epsilon: Any = None) -> FairClassifier:
        """Give the same fit at another target, without training and without data.

        The choice is the one that ``fit`` with this target and the same ``random_state`` would have
        made: of the points that reach it, with the confidence asked for, the most accurate on the
        rows the choice looks at. A stricter target never has a higher ``accuracy_`` nor a lower
        ``rate_bound_``; a feasible answer's ``rate_`` reaches the target. A confidence is for
        one target at a time, fixed beforehand: whoever tries several and keeps the one that looks
        best errs more often.

        A fit for ratios also keeps what is best for differences of the same rates, all of them
        with one ε, and a fit for differences what is best for one τ.

        Parameters
        ----------
        tau : float, optional
            The new target, in (0, 1]. Of several notions the strictest gets it, and the targets of
            the others stay in proportion: τ of ratios, the shortfalls 1 − τ and ε where both were
            asked for.
        epsilon : float, optional
            The new target, in [0, 1), as the largest difference.

        Returns
        -------
        FairClassifier
            A fitted classifier; this one stays as it is.
        """
        return self._aimed(tau, epsilon)._choose()

    def _aimed(self, tau: Any, epsilon: Any) -> FairClassifier:
        """Give a copy with another target."""
        check_is_fitted(self)
        other = copy(self)
        other.tau, other.epsilon = tau, epsilon
        other._validate_params()
        for name, value in (("tau", tau), ("epsilon", epsilon)):
            if np.ndim(value):
                raise InputError("several_targets", tau=Parameter(name, value))
        other.tau, other.epsilon = moved(self.target_, self.tau, self.epsilon, tau, epsilon)
        other.target_ = other._target()
        other._face(self.fitted_.facing(other.target_))
        return other

    def averaged(
        self, tau: float | None = None, *, epsilon: float | None = None
    ) -> AveragedClassifier:
        """Mix a few points at random into a classifier that is exactly as fair as it must be.

        Two equal rows may then get different answers. The mixture is the most accurate one of the
        points that :meth:`at` and certificates choose from, on the rows they are chosen on: the
        frontier's, and points of equal accuracy and surer rates. (Among all cuts of all iterates
        there are mixtures that look better on the training data, and are not on new rows.) Only for
        rates whose denominator no prediction changes.

        Parameters
        ----------
        tau, epsilon : float, optional
            The target, as in :meth:`at`; by default the target of the fit.

        Returns
        -------
        AveragedClassifier
            A fitted classifier of at most m + 1 points, with m constraints: one for each ordered
            pair of groups and each rate. If no mixture reaches ``tau``, it is the one point that
            :meth:`at` would give, with ``feasible_=False`` and a ``FairnessWarning``.
        """
        check_is_fitted(self)
        check_linear(self.fitted_.rate)
        if self.fitted_.delta is not None:
            raise InputError("certified_mixture", confidence=Parameter("confidence", "certified"))
        same = tau is None and epsilon is None
        aimed = copy(self) if same else self._aimed(tau, epsilon)
        target, held = aimed.target_, aimed.held_out_
        points = candidates(aimed.frontier_) if held is None else held.points
        counts = points.counts if held is None else held.counts
        # A mixture is about as uncertain as the point for the target: above it by as much.
        alone, level = aimed.answers_.choose(target.level), target.level
        if target.comparison != "ratio":
            goal = min(level + max(alone.rate - alone.bound, 0.0), 0.0)
        else:
            goal = min(level * alone.rate / alone.bound, 1.0) if alone.bound > 0 else level
        objective = points.objective
        mixture = best_mixture(counts, len(points.groups), target.at(goal), objective)
        if mixture is None:
            aimed._choose()  # says that tau is out of reach
            return AveragedClassifier(
                [aimed],
                [1.0],
                level,
                aimed.rate_,
                aimed.accuracy_,
                self.random_state,
                aimed.feasible_,
            )
        rates = target.value(counts[:, : len(points.groups)])
        accuracies = overall_accuracy(counts)
        models = [copy(aimed) for _ in mixture.points]
        for model, i in zip(models, mixture.points, strict=True):
            point = point_of(points, i, bool(rates[i] >= level))
            figures = float(rates[i]), float(accuracies[i]), float(rates[i])
            model._take(Choice.of(counts[i], objective, point, *figures))
        mean = np.tensordot(mixture.weights, counts[mixture.points], axes=1)
        return AveragedClassifier(
            models,
            mixture.weights,
            level,
            mixture.rate,
            mixture.accuracy,
            self.random_state,
            beats_constant(mean, objective),
        )
