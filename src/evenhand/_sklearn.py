"""What evenhand uses of scikit-learn beyond its public interface, in one place.

If a version of scikit-learn has no such function any more, importing evenhand says so, with the
versions that have it.
"""

from typing import Any, ClassVar

import numpy as np

from evenhand._extras import package_version
from evenhand.core.errors import InputError, Parameter, Spelling

try:
    from sklearn.utils import _safe_indexing as safe_indexing
    from sklearn.utils._param_validation import (
        HasMethods,
        Interval,
        InvalidParameterError,
        Options,
        StrOptions,
        validate_parameter_constraints,
    )
    from sklearn.utils.validation import _check_sample_weight as check_sample_weight
except ImportError as error:
    raise ImportError(
        f"scikit-learn {package_version('scikit-learn')} does not have what this evenhand uses of "
        f"it ({error}); install one that has: pip install 'scikit-learn>=1.6,<1.10'."
    ) from error

__all__ = [
    "ChecksParameters",
    "HasMethods",
    "Interval",
    "Options",
    "ParameterError",
    "StrOptions",
    "boosted_trees",
    "check_sample_weight",
    "safe_indexing",
]


class ParameterError(InputError, InvalidParameterError):
    """A parameter of an estimator is out of range; in Python it is said as scikit-learn does."""

    def sentence(self, spell: Spelling = str) -> str:
        """Make the sentence; a command line has options and no estimator."""
        if spell is str:
            owner = self.data["owner"]
            return super().sentence(lambda p: f"The {p.name!r} parameter of {owner}")
        return super().sentence(spell)


class ChecksParameters:
    """A mixin, before BaseEstimator, whose errors name the parameter as data."""

    _parameter_constraints: ClassVar[Any]

    def _validate_params(self: Any) -> None:
        owner = type(self).__name__
        for name, value in self.get_params(deep=False).items():
            try:
                validate_parameter_constraints(self._parameter_constraints, {name: value}, owner)
            except InvalidParameterError as error:
                raise ParameterError(
                    "invalid_parameter",
                    parameter=Parameter(name),
                    requirement=str(error).removeprefix(f"The {name!r} parameter of {owner} "),
                    owner=owner,
                    value=value,
                ) from None


def boosted_trees(model: Any) -> tuple[Any, Any, Any, dict[int, Any]]:
    """Give what a fitted HistGradientBoostingClassifier is made of.

    Trees, a list for each round; what every row begins with; the column of X that each of the
    trees' features is, categories being first; and the categories that a column's numbers are.
    """
    names = ("_preprocessor", "_predictors", "_baseline_prediction")
    preprocessor, *trees = (getattr(model, name) for name in names)
    if preprocessor is None:
        return *trees, np.arange(model.n_features_in_), {}
    is_category = model.is_categorical_
    columns = np.concatenate([np.flatnonzero(is_category), np.flatnonzero(~is_category)])
    known = {}
    by_column = preprocessor.named_transformers_["encoder"].categories_
    for column, values in zip(columns, by_column, strict=False):
        present = values[~np.isnan(values)]
        known[int(column)] = present.astype(np.intp)
    return *trees, columns, known
