"""What evenhand uses of scikit-learn beyond its public interface, in one place.

If a version of scikit-learn has no such function any more, importing evenhand says so, with the
versions that have it.
"""

from typing import Any, ClassVar

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
