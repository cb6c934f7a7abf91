"""What evenhand uses of scikit-learn beyond its public interface, in one place.

If a version of scikit-learn has no such function any more, importing evenhand says so, with the
versions that have it.
"""

from evenhand._extras import package_version

try:
    from sklearn.utils import _safe_indexing as safe_indexing
    from sklearn.utils._param_validation import HasMethods, Interval, Options, StrOptions
    from sklearn.utils.validation import _check_sample_weight as check_sample_weight
except ImportError as error:
    raise ImportError(
        f"scikit-learn {package_version('scikit-learn')} does not have what this evenhand uses of "
        f"it ({error}); install one that has: pip install 'scikit-learn>=1.6,<1.10'."
    ) from error

__all__ = [
    "HasMethods",
    "Interval",
    "Options",
    "StrOptions",
    "check_sample_weight",
    "safe_indexing",
]
