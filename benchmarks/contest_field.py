"""The field of the contest: tables, methods, and the leagues in which they meet.

Tables are bundled, fetched, or generated for known illnesses.

A generated table is drawn anew for each seed, from a distribution that stays the same. Whoever
chooses constants may look at generated tables, and at validation parts inside training parts.
"""

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils import Bunch

from evenhand import FairAdjusted, FairBoostedClassifier, datasets
from evenhand.models.boosted_columns import default_booster
from evenhand.peers import PEERS, PeerRecord

# Han et al., "FFB: A Fair Fairness Benchmark for In-Processing Group Fairness Methods", 2023.
_UNSTABLE = (
    "its bias varies much between splits (Han et al. 2023): read differences with their errors"
)
WARNED = {"german": _UNSTABLE, "bank": _UNSTABLE}
LOADED = {
    "adult": datasets.load_adult,
    "compas": datasets.fetch_compas,
    "german": datasets.load_german,
    "bank": datasets.fetch_bank,
    "credit_default": datasets.fetch_credit_default,
    "law_school": datasets.fetch_law_school,
    "arrests": datasets.fetch_arrests,
    "communities": datasets.fetch_communities,
    "mortgages": datasets.fetch_mortgages,
}


def _made(X, y, z, encoder=None):
    X = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    encoder = StandardScaler() if encoder is None else encoder
    return Bunch(data=X, target=y.astype(int), sensitive_features=z.astype(int), encoder=encoder)


def _labels(random, score, share):
    """Draw labels with the probability σ(score + b), b such that this share is positive."""
    low, high = -50.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if expit(score + middle).mean() < share else (low, middle)
    return random.uniform(size=len(score)) < expit(score + low)


def correlated(random, n=3000):
    """100 columns from 8 factors; the group moves three of them."""
    z = random.uniform(size=n) < 0.4
    factors = random.normal(size=(n, 8)) + 0.7 * np.outer(z, np.eye(8)[:3].sum(axis=0))
    X = factors @ random.normal(size=(8, 100)) + 0.5 * random.normal(size=(n, 100))
    return _made(X, _labels(random, factors @ np.linspace(1.2, -0.6, 8), 0.45), z)


def rare(random, n=12000):
    """6% positives, and the constant answer is hard to beat."""
    z = random.uniform(size=n) < 0.35
    X = random.normal(size=(n, 12)) + 0.6 * np.outer(z, np.arange(12) < 4)
    X[:, 8:] = np.exp(X[:, 8:])
    return _made(X, _labels(random, X @ np.linspace(0.9, -0.3, 12), 0.06), z)


def proxy(random, n=6000):
    """One column almost gives the group."""
    z = random.uniform(size=n) < 0.5
    X = random.normal(size=(n, 10))
    X[:, 0] = z + 0.25 * X[:, 0]
    X[:, 1] += 0.5 * z
    return _made(X, _labels(random, X @ np.r_[1.2, np.linspace(1, -0.4, 9)], 0.4), z)


def tiny(random, n=12000):
    """Make a group of three in a hundred."""
    z = random.uniform(size=n) < 0.03
    X = random.normal(size=(n, 10)) + 0.8 * np.outer(z, np.arange(10) < 3)
    return _made(X, _labels(random, X @ np.linspace(-1, 0.6, 10), 0.3), z)


def scales(random, n=8000):
    """Columns as they come: amounts up to a million, years, shares of a millionth."""
    z = random.uniform(size=n) < 0.45
    Z = random.normal(size=(n, 6)) + 0.5 * np.outer(z, np.arange(6) < 3)
    X = np.column_stack(
        [
            np.exp(9 + 1.5 * Z[:, 0]) * (random.uniform(size=n) < 0.5),
            1990 + 10 * Z[:, 1],
            1e-6 * Z[:, 2],
            40 + 12 * Z[:, 3],
            Z[:, 4] > 0,
            1e5 * Z[:, 5],
        ]
    )
    y = _labels(random, Z @ np.array([0.8, 0.7, 0.6, -0.5, 0.5, 0.4]), 0.35)
    return _made(X, y, z, FunctionTransformer())


MADE = {f.__name__: f for f in (correlated, rare, proxy, tiny, scales)}
TABLES = [*LOADED, *MADE]


def table(name, seed, data_home=None):
    """Give a table as loaders do; generated ones depend on the seed."""
    if name in MADE:
        return MADE[name](np.random.default_rng([list(MADE).index(name), seed]))
    load = LOADED[name]
    return load(data_home=data_home) if load.__name__.startswith("fetch") else load()


RATES = (0.8, 0.9, 0.95)
TAUS = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.925, 0.95, 0.97, 0.98, 0.99, 0.999)
TOLERANCES = (0.3, 0.2, 0.15, 0.1, 0.08, 0.06, 0.04, 0.03, 0.02, 0.01, 0.005, 0.002, 0.0)
# Below and above are differences of two standard errors and of this.
LEAST = 0.001
PARITY, ODDS = "statistical_parity", "equalized_odds"

METHODS = dict(PEERS)
if "group_cuts" in FairBoostedClassifier().get_params():
    METHODS["evenhand_boosted_aware"] = PeerRecord(
        "evenhand, boosted, a cut per group",
        lambda n, s: FairBoostedClassifier(n, group_cuts=True, confidence=None, random_state=s),
        form="trees",
    )
# Logistic regressions where the boosters are: of the label, and of the group given the label.
METHODS["evenhand_scores"] = PeerRecord(
    "evenhand, several linear models",
    lambda n, s: FairBoostedClassifier(
        n,
        booster=make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        confidence=None,
        random_state=s,
    ),
    form="scores",
)
for _aware in (False, True):  # the default booster, as a model that somebody has already
    METHODS["evenhand_adjusted" + "_aware" * _aware] = PeerRecord(
        "evenhand, adjusted" + ", a cut per group" * _aware,
        lambda n, s, aware=_aware: FairAdjusted(
            default_booster(), n, group_cuts=aware, confidence=None, random_state=s
        ),
        form="trees",
    )
AWARE = {k for k, r in METHODS.items() if getattr(r.make(PARITY, 0), "needs_group", False)}
# Run outside, see error_parity().
METHODS["error_parity"] = PeerRecord("error-parity, boosted", lambda n, s: None, form="trees")
AWARE |= {"error_parity"}


def rivals(aware, *forms):
    own = {"constant", "fairness_only"}
    return [
        key
        for key, record in METHODS.items()
        if record.form in forms and (key in AWARE) == aware
        if key not in own and not key.startswith("evenhand")
    ]


# Name to: who of ours, whom against, what it is. Of several of ours, one must not be below.
LEAGUES = {
    "linear": (["evenhand"], rivals(False, "linear"), "one linear score, group not seen"),
    "scores": (
        ["evenhand", "evenhand_scores", "evenhand_boosted"],
        rivals(False, "scores", "lottery"),
        "several linear scores or a lottery, group not seen",
    ),
    "boosted": (["evenhand_boosted"], rivals(False, "trees"), "boosted trees, group not seen"),
    "aware": (
        ["evenhand_aware"],
        rivals(True, "linear", "scores", "lottery"),
        "linear scores, group known",
    ),
    "boosted_aware": (
        [key for key in ("evenhand_boosted_aware",) if key in METHODS],
        rivals(True, "trees"),
        "boosted trees, group known",
    ),
}
# Verdicts, the best first.
KINDS = ("above", "alone there", "level", "nobody there", "cannot be told", "below", "not there")
# Equalised odds, on Adult alone.
FOR_ODDS = ("evenhand", "evenhand_boosted", "linear_post")
