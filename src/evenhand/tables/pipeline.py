"""The front door: an encoder and a classifier for tables whose sensitive columns are among them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from difflib import get_close_matches
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from evenhand.core.errors import InputError, Parameter
from evenhand.models.adjusted import FairAdjusted
from evenhand.models.boosted import FairBoostedClassifier
from evenhand.models.card import ShowsSummary
from evenhand.models.classifier import FOUND, FairClassifier
from evenhand.models.inputs import check_labels
from evenhand.models.method import Method
from evenhand.tables.columns import BUILT_IN, CellError, as_table, check_words, listed
from evenhand.tables.encoder import TableEncoder, as_names
from evenhand.tables.groups import Columns, bins_by_column, find_edges, known_groups


class FairPipeline(ShowsSummary, Pipeline):
    """A :class:`TableEncoder` before a :class:`~evenhand.FairClassifier`: from tables to answers.

    The groups are columns of the table itself, which are no inputs. Made by :func:`fair_pipeline`.

    Parameters
    ----------
    steps : list of (str, estimator)
        The encoder and the classifier.
    sensitive_features : str or sequence of str
        The sensitive columns; several are crossed.
    missing_groups : {"error", "drop", "group"}, default="error"
        What to do with rows without a group: refuse them, leave them out of the fit, or make them a
        group of their own, ``"(missing)"``. It is never guessed.
    bins : mapping of str to (int or sequence of float), optional
        Sensitive columns that are numbers, such as age: how many bins of equal size, or the edges
        between them. The bins are then values like any other, and may be crossed.
    transform_input, memory, verbose
        As of scikit-learn's Pipeline.

    Attributes
    ----------
    rate_, accuracy_, feasible_, frontier_, point_, held_out_, guarantee_, trajectory_, \
converged_, n_iter_, classes_, groups_, small_groups_
        Those of the classifier, which is ``model[-1]``.
    n_dropped_ : int
        Rows that were left out because they have no group.
    label_ : str or None
        The name of the label, if ``y`` had one.
    edges_ : dict of str to ndarray
        Edges of the bins of each column in ``bins``.
    """

    def __init__(
        self,
        steps: Any,
        *,
        sensitive_features: str | Sequence[str] = (),
        missing_groups: str = "error",
        bins: Mapping[str, Any] | None = None,
        transform_input: Any = None,
        memory: Any = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(steps, transform_input=transform_input, memory=memory, verbose=verbose)
        self.sensitive_features = sensitive_features
        self.missing_groups = missing_groups
        self.bins = bins

    def __sklearn_is_fitted__(self) -> bool:
        # A mixture of points has no fit, and is made of fitted ones.
        return not hasattr(self.steps[-1][1], "fit") or super().__sklearn_is_fitted__()

    def groups(self, X: Any) -> tuple[pd.DataFrame, NDArray[np.bool_]]:
        """Give the sensitive columns of the rows that are kept, and which rows those are."""
        columns = self._columns().group_columns(X, numbers=self._bins_itself())
        return known_groups(columns, self.missing_groups, numbers=self._bins_itself())

    @contextmanager
    def _column_named(self) -> Iterator[None]:
        """Have errors of the classifier name the columns that its ``sensitive_features`` are."""
        try:
            yield
        except InputError as error:
            bare = [k for k, v in error.data.items() if v == Parameter("sensitive_features")]
            if not bare:
                raise
            names = as_names(self.sensitive_features)
            columns = f"the sensitive column{'s' * (len(names) > 1)} {listed(names)}"
            named = type(error)(error.code, **error.data | dict.fromkeys(bare, columns))
            raise named from None

    def _bins_itself(self) -> bool:
        """Whether the classifier makes bins of the groups."""
        return bool(self.steps) and getattr(self.steps[-1][1], "bins", None) is not None

    def _columns(self) -> Columns:
        """Say which columns hold the groups, with the edges of their bins if they were found."""
        encoder = dict(self.steps or ()).get("encoder")
        missing = encoder.missing_words if isinstance(encoder, TableEncoder) else BUILT_IN
        bins = getattr(self, "edges_", self.bins)
        names = as_names(self.sensitive_features)
        twice = [name for i, name in enumerate(names) if name in names[:i]]
        if twice:
            raise InputError("sensitive_twice", column=twice[0])
        return Columns(None, names, self.missing_groups, bins, missing)

    def fit(self, X: Any, y: Any = None, **params: Any) -> "FairPipeline":
        """Fit the encoder and the classifier.

        Parameters
        ----------
        X : pandas, polars or pyarrow table
            The table, with the sensitive columns in it.
        y : array-like of shape (n_rows,)
            The label.
        **params
            ``sample_weight``, ``persons``, or parameters for the steps as scikit-learn's Pipeline
            takes them.

        Returns
        -------
        FairPipeline
            Itself.
        """
        if "sensitive_features" in params:
            raise InputError(
                "groups_beside_table", columns=listed(as_names(self.sensitive_features))
            )
        self.label_ = str(getattr(y, "name", None) or "") or None
        X = as_table(X)
        columns = self._columns()._replace(bins=self.bins)
        check_words(X, columns.sensitive, columns.missing)
        self.edges_ = find_edges(columns.values(X, numbers=self._bins_itself()), self.bins)
        groups, kept = self.groups(X)
        check_labels(y)
        y = np.asarray(y)
        if len(y) != len(kept):
            raise InputError("labels_of_other_rows", n=len(kept), n_labels=len(y))
        X, y = X.take(kept), y[kept]
        self.n_dropped_ = int((~kept).sum())
        self.by_person_ = params.get("persons", params.get("classifier__persons")) is not None
        for name in {"sample_weight", "persons"} & set(params):
            given = params.pop(name)
            params[f"classifier__{name}"] = None if given is None else np.asarray(given)[kept]
        with self._column_named():
            super().fit(X, y, classifier__sensitive_features=groups.squeeze(axis=1), **params)
        return self

    def predict(self, X: Any, **params: Any) -> Any:
        """Predicted label of each row; with ``group_cuts`` the group is taken from the table.

        Parameters
        ----------
        X : pandas, polars or pyarrow table
            The table.
        **params
            For the classifier.
        """
        return self._ask("predict", X, **params)

    def predict_proba(self, X: Any, **params: Any) -> Any:
        """Scores between 0 and 1 of each label, as the classifier's ``predict_proba`` gives them.

        Parameters
        ----------
        X : pandas, polars or pyarrow table
            The table.
        **params
            For the classifier.
        """
        return self._ask("predict_proba", X, **params)

    def decision_function(self, X: Any, **params: Any) -> Any:
        """Scores less the chosen cut, as the classifier's ``decision_function`` gives them.

        Parameters
        ----------
        X : pandas, polars or pyarrow table
            The table.
        **params
            For the classifier.
        """
        return self._ask("decision_function", X, **params)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> float:
        """Accuracy of the predictions.

        Parameters
        ----------
        X : pandas, polars or pyarrow table
            The table.
        y : array-like of shape (n_rows,)
            Labels.
        sample_weight : array-like of shape (n_rows,), optional
            Row weights.
        **params
            For the classifier.
        """
        return float(self._ask("score", X, y, sample_weight=sample_weight, **params))

    def _ask(self, method: str, X: Any, *args: Any, **params: Any) -> Any:
        """Have the classifier answer for a table."""
        X, answer = as_table(X), getattr(self.named_steps["classifier"], method)
        with self._column_named():
            return answer(self[:-1].transform(X), *args, **self._known(X), **params)

    def boosted_inputs(self, X: Any) -> tuple[Any, dict[str, Any]]:
        """Give what a boosted classifier is given of a table: inputs, and groups if it needs them.

        Parameters
        ----------
        X : pandas, polars or pyarrow table
            The table.
        """
        X = as_table(X)
        return self[:-1].transform(X), self._known(X)

    def boosted_columns(self, X: Any) -> NDArray[np.float64]:
        """Give the columns that a boosted classifier makes of a table.

        Parameters
        ----------
        X : pandas, polars or pyarrow table
            The table.
        """
        inputs, groups = self.boosted_inputs(X)
        return np.asarray(self.named_steps["classifier"].columns(inputs, **groups))

    def _known(self, X: Any) -> dict[str, Any]:
        if not getattr(self.named_steps["classifier"], "needs_group", False):
            return {}
        if self.missing_groups != "group":
            for name, missing in self._columns().group_columns(X).isna().items():
                n = int(missing.sum())
                if n:
                    what = "no value" if n == 1 else f"no value in {n:,} rows, the first"
                    row = int(np.flatnonzero(missing)[0]) + 1
                    raise CellError("row_without_group", column=name, what=what, row=row)
        return {"sensitive_features": self.groups(X)[0]}

    def at(self, tau: Any = None, *, epsilon: Any = None) -> "FairPipeline":
        """Give the same fit at another target, without training and without data.

        Parameters
        ----------
        tau, epsilon : float, optional
            The new target, as of :meth:`evenhand.FairClassifier.at`.

        Returns
        -------
        FairPipeline
            A fitted pipeline; this one stays as it is.
        """
        return self._ending_in(self.named_steps["classifier"].at(tau, epsilon=epsilon))

    def averaged(self, tau: Any = None, *, epsilon: Any = None) -> "FairPipeline":
        """Mix a few points at random, as :meth:`evenhand.FairClassifier.averaged` does.

        Parameters
        ----------
        tau, epsilon : float, optional
            The target; that of the fit by default.

        Returns
        -------
        FairPipeline
            A fitted pipeline that ends in an :class:`~evenhand.models.averaged.AveragedClassifier`.
        """
        return self._ending_in(self.named_steps["classifier"].averaged(tau, epsilon=epsilon))

    def _ending_in(self, classifier: Any) -> "FairPipeline":
        other = copy(self)
        other.steps = [*self.steps[:-1], ("classifier", classifier)]
        return other


def _shown(name: str) -> property:
    """Make a property that is the classifier's."""

    def find(self: FairPipeline) -> Any:
        return getattr(self.steps[-1][1], name)

    return property(find, doc=f"``{name}`` of the classifier.")


for _name in FOUND:
    setattr(FairPipeline, _name, _shown(_name))


def fair_pipeline(
    sensitive_features: str | Sequence[str],
    *,
    missing_groups: str = "error",
    bins: Any = None,
    sensitive_inputs: bool = False,
    encoder: TableEncoder | None = None,
    classifier: Any = None,
    boosted: bool = False,
    scores: str | None = None,
    **params: Any,
) -> FairPipeline:
    """Make a classifier for tables whose sensitive attributes are among their columns.

    Parameters
    ----------
    sensitive_features : str or sequence of str
        The sensitive column, or several, whose values are crossed.
    missing_groups : {"error", "drop", "group"}, default="error"
        What to do with rows without a group: refuse, leave out, or make them one.
    bins : int, sequence of float, or mapping of str to these, optional
        For a sensitive number such as age: how many bins, or edges. Of several columns a mapping
        says which, as ``{"age": [25, 45]}``. With one column the adversary guesses the number
        itself, as of :class:`~evenhand.FairClassifier`; with several, the crossed groups.
    sensitive_inputs : bool, default=False
        Whether the sensitive columns are inputs as well.
    encoder : TableEncoder, optional
        An encoder with other settings; its ``sensitive_features`` are set.
    classifier : FairClassifier, optional
        A classifier; otherwise one is made of ``params``.
    boosted : bool, default=False
        Make a :class:`~evenhand.FairBoostedClassifier`, and inputs that are never sparse.
    scores : str, optional
        The column that has the scores of a model there is already: make a
        :class:`~evenhand.FairAdjusted` of them. Other columns say something of the group.
    **params
        Parameters of the classifier, such as ``tau`` and ``notion``, and of
        :class:`~evenhand.TableEncoder`, such as ``exclude``, ``kinds`` and ``keep_na``.

    Returns
    -------
    FairPipeline
        Not fitted.

    Examples
    --------
    >>> from evenhand.datasets import load_adult
    >>> from evenhand.tables.pipeline import fair_pipeline
    >>> adult = load_adult()
    >>> table, income = adult.frame.drop(columns="income"), adult.frame["income"]
    >>> model = fair_pipeline("sex", tau=0.9, pos_label=">50K").fit(table, income)
    >>> model.feasible_, bool(model.rate_ >= 0.9)
    (True, True)
    """
    names = as_names(sensitive_features)
    if not names:
        raise InputError("no_sensitive_column", argument=Parameter("sensitive_features"))
    of_encoder = set(TableEncoder().get_params()) - {"sensitive_features"}
    own_names = {"missing_groups", "bins", "sensitive_inputs", "encoder", "classifier", "boosted"}
    own_names.add("scores")
    kind: Any = FairBoostedClassifier if boosted else FairClassifier
    if scores is not None:
        kind = partial(FairAdjusted, 0)  # the encoder puts scores first
    known = sorted(of_encoder | own_names | set(kind().get_params(deep=False)))
    for name in params:
        if name not in known and name not in Method().get_params():
            near = get_close_matches(name, known, n=1)
            raise TypeError(
                f"fair_pipeline has no parameter {name!r}"
                + (f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(known)}.")
            )
    encoder = TableEncoder() if encoder is None else clone(encoder)
    encoder.set_params(**{name: params.pop(name) for name in of_encoder & set(params)})
    if boosted or scores is not None or isinstance(classifier, FairBoostedClassifier):
        encoder.set_params(sparse_threshold=0.0)
    if scores is not None:
        encoder.set_params(kinds={**(encoder.kinds or {}), scores: "score"})
    if not sensitive_inputs:
        encoder.set_params(sensitive_features=names)
    if classifier is not None and params:
        raise InputError("classifier_and_parameters", parameters=listed(list(params)))
    by_column = bins_by_column(bins, names)
    if classifier is None:
        # Rows without a value are in no bin: the group of their own is beside the bins' names.
        alone = len(names) == 1 and missing_groups != "group"
        own = by_column.pop(names[0], None) if alone else None
        classifier = kind(bins=own, **params)
    steps = [("encoder", encoder), ("classifier", classifier)]
    return FairPipeline(
        steps, sensitive_features=names, missing_groups=missing_groups, bins=by_column or None
    )
