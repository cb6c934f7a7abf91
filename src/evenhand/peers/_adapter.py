"""What adapters for other libraries share.

The libraries come with ``pip install '.[peers]'`` and are imported when fitted.
"""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib.metadata import version
from typing import Any, Self

from sklearn.base import clone

from evenhand._extras import import_extra
from evenhand.models.inputs import CodedRows
from evenhand.peers._base import Peer, logistic_regression, one_thread
from evenhand.peers._docs import adapter_docs


@contextmanager
def quiet(logger: str) -> Iterator[None]:
    """Keep a library's remarks about itself, and its use of pandas, from the user; errors pass."""
    log = logging.getLogger(logger)
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", category=FutureWarning)
            warnings.simplefilter("ignore", category=DeprecationWarning)
            yield
    finally:
        log.setLevel(level)


@adapter_docs
class Adapter(Peer):
    """What the adapters share; they take no ``sample_weight``."""

    _library: str
    """Module of the original."""

    estimator: Any
    l2: float

    def fit(  # type: ignore[override]
        self, X: Any, y: Any, *, sensitive_features: Any = None
    ) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X, y, sensitive_features

        Returns
        -------
        self
        """
        self._import()  # a missing package is named before the rows are looked at
        super().fit(X, y, sensitive_features=sensitive_features)
        packages = (self._library.partition(".")[0], "scikit-learn")
        self.versions_ = {package: version(package) for package in packages}
        return self

    def _import(self) -> Any:
        return import_extra(self._library, "peers")

    def _base(self, rows: CodedRows) -> Any:
        """Give the base estimator, unfitted."""
        if self.estimator is not None:
            return clone(self.estimator)
        return logistic_regression(self.l2, float(len(rows.y)), rows.X.shape[1])

    def _threads(self, rows: CodedRows) -> Any:
        """Limit threads for the default estimator; the user's may need them."""
        return one_thread(rows.X.shape[1]) if self.estimator is None else nullcontext()
