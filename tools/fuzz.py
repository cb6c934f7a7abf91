"""Random inputs against what the library promises of any.

    python tools/fuzz.py --n 5000 --jobs 2        # inputs 0, 1, ..., 4999
    python tools/fuzz.py --only 1234              # one of them, with what went wrong

An input is refused in a sentence (``ValueError``, ``TypeError`` or ``ImportError``, raised on
purpose) or accepted, and then: answers are labels and scores finite, the frontier's figures are
those of its counts, ``feasible_`` is true only if the target is reached, the same seed gives the
same result, and a saved model answers bit for bit as before. Exit code 1 if one was not so.
"""

import argparse
import json
import linecache
import os
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # tables this small would wait for threads

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

import evenhand
from evenhand import FairBoostedClassifier, FairClassifier, Method
from evenhand.core.metrics import group_counts
from evenhand.core.notions import NOTIONS
from evenhand.core.rates import overall_accuracy
from evenhand.persist.model_file import load_model, save_model
from evenhand.tables.pipeline import fair_pipeline
from evenhand.views.report import render
from evenhand.workflow.audit import audit as audit_table
from evenhand.workflow.summary import summarise
from evenhand.workflow.train import train as train_table

TOO_LONG_S = 60
SELECTIONS = (
    {},
    {},
    {"selection": "holdout"},
    {"selection": "crossfit", "cv": 2},
    {"confidence": "certified", "delta": 0.2},
    {"confidence": None},
)
SOLVERS = ("agd", "agd", "agd", "gd", "extragradient", "optimistic", "soft_rate", "cost_sensitive")
WORDS = ("a", "b", "ü", "née <b>", "x, y", '"', "1", "1.0", "None", "男", "", " ", "-", "=1+1")
NAMES = ("age", "naïve", "a b", "x<y", "Straße", "0", "id", "y_hat", "年", "c,d")


class WrongError(Exception):
    """A promise that was not kept."""


def expect(held, what):
    if not held:
        raise WrongError(what)


# ---- tables ----------------------------------------------------------------------------------


def pick(rng, values, p=None):
    return values[rng.choice(len(values), p=p)]


def sizes(rng):
    """Rows and inputs: mostly some dozens, sometimes hardly any."""
    few, some, many = rng.integers(1, 12), rng.integers(20, 90), rng.integers(90, 400)
    n = int(pick(rng, [few, some, many], [0.1, 0.5, 0.4]))
    return n, int(pick(rng, [1, 2, 3, 5, 12]))


def numbers(rng, n, z):
    """One input: of any scale, with or without ties, constant, or a copy of the group."""
    x = rng.standard_normal(n) + pick(rng, [0.0, 0.5, 2.0]) * z
    kind = rng.integers(12)
    if kind < 3:
        x = np.round(x * pick(rng, [1, 3, 20]))
    elif kind == 3:
        x = np.full(n, pick(rng, [0.0, 1.0, -7.5]))
    elif kind == 4:
        x = x * 10.0 ** rng.integers(-12, 13)
    elif kind == 5:
        x = x + 10.0 ** rng.integers(3, 9)
    elif kind == 6:
        x = z.astype(float)
    elif kind == 7:
        x = (x > 1).astype(float)
    return x


def spoilt(rng, x, values):
    """Give some values of another kind now and then."""
    if rng.random() < 0.04:
        x = np.array(x, dtype=object if isinstance(values[0], str | None) else None)
        x[rng.random(len(x)) < 0.2] = pick(rng, values)
    return x


def groups(rng, n):
    """Group of each row, lopsided, sometimes with one of one row or with one only."""
    k = int(pick(rng, [1, 2, 2, 2, 3, 5], [0.03, 0.3, 0.3, 0.17, 0.15, 0.05]))
    z = rng.choice(k, n, p=rng.dirichlet(np.full(k, 3.0)))
    if rng.random() < 0.1:
        z[0] = k
    return z


def named(rng, codes):
    """Codes as values of some type."""
    k = int(codes.max()) + 1 if len(codes) else 1
    kind = rng.integers(8)
    if kind == 0:
        return codes
    if kind == 1 and k <= 2:
        return codes.astype(bool)
    if kind == 2:
        return codes + 1.0
    if kind == 3:
        return np.where(codes == 0, -1, codes)
    known = rng.choice(WORDS, k + 1, replace=False).astype(object)
    if rng.random() < 0.02:
        known[0] = pick(rng, [None, np.nan, 3, "\ud800"])
    values = known[codes]
    if kind == 4:
        return pd.Categorical(values.astype(str), categories=sorted(set(known.astype(str))))
    return pick(rng, [values, values.astype(str), values.tolist(), pd.Series(values, dtype=object)])


def labels(rng, x, z):
    """Labels of two values, seldom of more or fewer, that lean on input and group."""
    classes = int(pick(rng, [1, 2, 3, 4], [0.02, 0.83, 0.1, 0.05]))
    score = np.nan_to_num(x - np.mean(x)) / (np.std(x) or 1.0) + 0.7 * z
    score = score + rng.logistic(size=len(x)) * pick(rng, [0.0, 1.0, 5.0])
    shares = np.cumsum(rng.dirichlet(np.full(classes, 3.0)))[:-1]
    return np.digitize(score, np.quantile(score, shares)) if len(x) else np.zeros(0, int)


def weights(rng, n):
    """Row weights of any kind; mostly none."""
    kind = rng.integers(16)
    if kind < 3:
        return [rng.integers(1, 4, n), rng.random(n) + 0.1, rng.integers(0, 3, n)][kind]
    if kind == 3:
        return rng.random(n) * 10.0 ** rng.integers(-100, 100)
    if kind == 4 and rng.random() < 0.3:
        return pick(rng, [np.zeros(n), -np.ones(n), np.full(n, np.nan), np.ones(n + 1), 2.0])
    return None


def layout(rng, X):
    """The same numbers in another container or of another type."""
    kinds = {
        "float32": lambda: X.astype(np.float32),
        "int": lambda: np.round(np.clip(X, -1e6, 1e6)).astype(pick(rng, [np.int8, np.int64])),
        "object": lambda: X.astype(object),
        "list": X.tolist,
        "frame": lambda: pd.DataFrame(X, columns=column_names(rng, X.shape[1])),
        "csr": lambda: sparse.csr_matrix(np.where(np.abs(X) < 0.5, 0, X)),
        "coo": lambda: sparse.coo_array(np.where(np.abs(X) < 0.5, 0, X)),
        "fortran": lambda: np.asfortranarray(X),
        "strided": lambda: np.repeat(X, 2, axis=0)[::2],
        "float16": lambda: np.clip(X, -6e4, 6e4).astype(np.float16),
    }
    kind = pick(rng, [*kinds, *["array"] * 6])
    with np.errstate(invalid="ignore", over="ignore"):
        return kinds[kind]() if kind in kinds else X


def column_names(rng, n):
    return [f"{pick(rng, NAMES)}{i}" for i in range(n)]


def rows(rng):
    """Inputs as numbers, labels, groups and weights."""
    n, d = sizes(rng)
    z = groups(rng, n)
    X = np.column_stack([numbers(rng, n, z) for _ in range(d)])
    if rng.random() < 0.1:
        X[:, -1] = X[:, 0]
    y = labels(rng, X[:, 0], z)
    if rng.random() < 0.1:
        X, y, z = (np.repeat(v, 3, axis=0) for v in (X, y, z))
    if rng.random() < 0.03:
        X[rng.integers(len(X)), 0] = pick(rng, [np.nan, np.inf, 1e300])
    return X, y, z, weights(rng, len(y))


def settings(rng, y, *, few=False):
    """Parameters that the estimators share, or with ``few`` those of every estimator."""
    names = [*NOTIONS]
    several = rng.random() < 0.1
    notion = rng.choice(names, 2, replace=False).tolist() if several else pick(rng, names)
    found = {
        "notion": notion,
        "tau": float(pick(rng, [0.1, 0.5, 0.8, 0.9, 1.0])),
        "min_group_size": int(pick(rng, [1, 1, 5, 30])),
        "random_state": int(rng.integers(1000)),
    } | pick(rng, SELECTIONS)
    if rng.random() < 0.5:
        found["pos_label"] = pick(rng, np.unique(np.asarray(y, dtype=object).astype(str)).tolist())
        same = [v for v in pd.unique(pd.Series(y)) if str(v) == found["pos_label"]]
        found["pos_label"] = same[0] if same else found["pos_label"]
    return found if few else found | engine(rng)


def engine(rng):
    """Parameters of a FairClassifier alone."""
    found = {"max_iter": int(pick(rng, [3, 10, 20])), "n_iterates": int(pick(rng, [1, 5, 20]))}
    some = {
        "solver": pick(rng, SOLVERS),
        "update": pick(rng, ["modified", "normal", "conflict"]),
        "reading": pick(rng, ["corrected", "printed"]),
        "init": pick(rng, ["zero", "both"]),
        "cut": bool(rng.integers(2)),
        "group_cuts": True,
        "min_share": float(pick(rng, [0.0, 0.05, 0.3])),
        "extra_column": "noise",
        "l2": float(pick(rng, [0.0, 1.0])),
        "step": float(pick(rng, [1e-3, 1.0, 1e3])),
        "alpha": float(pick(rng, [0.0, 1.0])),
        "degree": int(rng.integers(1, 5)),
        "survey_weights": True,
    }
    found |= {name: value for name, value in some.items() if rng.random() < 0.15}
    own = {name: found.pop(name) for name in [*found] if name in Method().get_params()}
    return found | {"method": Method(**own)}


# ---- promises --------------------------------------------------------------------------------


def check_answers(model, X, more):
    """Answers are labels, scores are finite and probabilities what they must be."""
    answer, proba = model.predict(X, **more), model.predict_proba(X, **more)
    expect(set(answer.tolist()) <= set(model.classes_.tolist()), "an answer that is no label")
    expect(((proba >= 0) & (proba <= 1)).all(), "a probability outside [0, 1]")
    expect(np.allclose(proba.sum(axis=1), 1), "probabilities that do not sum to 1")
    return answer, proba


def check_frontier(model, total):
    """Figures are those of the counts, which are of all rows; rates rise."""
    points = model.frontier_
    rate = getattr(model, "classifier_", model).fitted_.rate
    expect(np.isfinite(points.counts).all(), "counts that are not finite")
    sums = points.counts.sum(axis=(1, 2, 3))
    expect(np.allclose(sums, sums[:1]), "counts that do not sum to the same")
    if total is not None and len(points):
        expect(np.isclose(sums[0], total), f"counts that sum to {sums[0]}, not to {total}")
    expect(np.allclose(points.accuracy, overall_accuracy(points.counts)), "another accuracy")
    ratio = rate.ratio(points.counts[:, : len(points.groups)])
    expect(np.allclose(points.rate, ratio), "another rate than that of the counts")
    expect((np.diff(points.rate) >= 0).all(), "rates that do not rise")


def check_target(model):
    expect(
        not model.feasible_ or model.rate_ >= np.max(model.tau),
        f"feasible with rate {model.rate_} for tau={model.tau}",
    )


def check_figures(model, y, z, weight, answer):
    """The chosen point's figures are those of its answers, where it was chosen on these rows."""
    if model.held_out_ is not None or getattr(model, "extra_column", "") == "noise":
        return
    weight = None if weight is None or not np.ndim(weight) else weight  # one number for all
    right = np.average(answer == np.asarray(y), weights=weight)
    expect(np.isclose(model.accuracy_, right), f"accuracy_ {model.accuracy_}, of answers {right}")
    if len(model.classes_) == 2 and not model.small_groups_ and z is not None:
        counts = group_counts(
            y,
            answer,
            sensitive_features=z,
            sample_weight=weight,
            pos_label=model.fitted_.labels[-1],
        )[1]
        rate = float(model.fitted_.rate.ratio(counts))
        expect(
            np.isclose(model.rate_, rate, equal_nan=True), f"rate_ {model.rate_}, of answers {rate}"
        )


def check_saved(model, X, more, proba):
    """A file is read again, and its model answers the same."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m"
        save_model(model, path)
        try:
            again = load_model(path).model
        except ValueError as error:
            raise WrongError(f"what was saved is refused: {error}") from None
    found = again.predict_proba(X, **more)
    expect(np.array_equal(found, proba), "another answer after saving")


def check_twice(model, fit, X, more, proba):
    other = fit(clone(model)).predict_proba(X, **more)
    expect(np.array_equal(other, proba), "another result of the same seed")


# ---- cases -----------------------------------------------------------------------------------


def fit_classifier(rng, log):
    X, y, z, weight = rows(rng)
    quantity = rng.random() < 0.1
    bins = {"bins": pick(rng, [2, 3, [0.0], [-1, 1]])} if quantity else {}
    z = rng.standard_normal(len(z)) if quantity else spoilt(rng, named(rng, z), [None, "z"])
    if not quantity and rng.random() < 0.1:
        z = pd.DataFrame({"one": z, "two": rng.choice(["u", "v"], len(y))})
    y = spoilt(rng, named(rng, y), [None, "?"])
    params = settings(rng, y) | bins
    X = layout(rng, X)
    log.update(params=params, X=type(X).__name__, shape=np.shape(X), y=y, z=z, weight=weight)

    def fit(model):
        return model.fit(X, y, sensitive_features=z, sample_weight=weight)

    model = fit(FairClassifier(**params))
    more = {"sensitive_features": z} if model.group_cuts else {}
    _, proba = check_answers(model, X, more)
    expect(np.isfinite(model.decision_function(X, **more)).all(), "a score that is not finite")
    check_frontier(model, len(y) if weight is None and model.held_out_ is None else None)
    for aimed in (model, model.at(float(rng.uniform(0.05, 1)))):
        check_target(aimed)
        check_figures(aimed, y, None if quantity else z, weight, aimed.predict(X, **more))
    if rng.random() < 0.3:
        check_twice(model, fit, X, more, proba)
    if rng.random() < 0.5:
        check_saved(model, X, more, proba)


def fit_boosted(rng, log):
    X, y, z, weight = rows(rng)
    y, z = named(rng, y), named(rng, z)
    params = settings(rng, y, few=True) | {
        "n_folds": int(pick(rng, [2, 3])),
        "booster": DecisionTreeClassifier(max_depth=2),
        "classifier": FairClassifier(method=Method(max_iter=8, n_iterates=5)),
    }
    X[rng.random(X.shape) < pick(rng, [0.0, 0.0, 0.3])] = np.nan
    X = pick(rng, [X, pd.DataFrame(X, columns=column_names(rng, X.shape[1]))])
    log.update(params=params, X=type(X).__name__, shape=np.shape(X), y=y, z=z, weight=weight)

    def fit(model):
        return model.fit(X, y, sensitive_features=z, sample_weight=weight)

    model = fit(FairBoostedClassifier(**params))
    _, proba = check_answers(model, X, {})
    check_frontier(model, None)
    for aimed in (model, model.at(float(rng.uniform(0.05, 1)))):
        check_target(aimed)
        seen = aimed.classifier_.predict(aimed.maker_.scale(aimed.columns_))
        if weight is None:  # rows without weight have no columns
            check_figures(aimed.classifier_, y, z, weight, seen)
    if rng.random() < 0.3:
        check_twice(model, fit, X, {}, proba)


def frame(rng):
    """A table as people have them, with its label and its sensitive columns."""
    X, y, z, _ = rows(rng)
    n = len(y)
    columns = {name: X[:, j] for j, name in enumerate(column_names(rng, X.shape[1]))}
    kinds = {
        "job": lambda: rng.choice(WORDS, n),
        "code": lambda: rng.integers(100, 100 + pick(rng, [3, 40, 1000]), n),
        "zip": lambda: [f"{i:05d}" for i in rng.integers(0, 99999, n)],
        "day": lambda: pd.Timestamp("2020-01-31") + pd.to_timedelta(rng.integers(0, 999, n), "D"),
        "paid": lambda: [f"{i},{i % 100:02d} €" for i in rng.integers(0, 9999, n)],
        "flag": lambda: rng.choice([True, False], n),
        "empty": lambda: [None] * n,
        "person": lambda: [f"p{i}" for i in range(n)],
        "kind": lambda: pd.Categorical(rng.choice(["lo", "hi"], n), ["lo", "mid", "hi"]),
        "whole": lambda: pd.array(rng.integers(0, 9, n), dtype="Int64"),
        "odd": lambda: pd.Series([pick(rng, [1, "x", None, 2.5]) for _ in range(n)], dtype=object),
    }
    for name in rng.choice([*kinds], rng.integers(0, 5), replace=False):
        columns[str(name)] = kinds[name]()
    table = pd.DataFrame(columns)
    for name in table.columns:
        if rng.random() < 0.15:
            table[name] = table[name].astype(object).where(rng.random(n) < 0.8, None)
    table["sex"] = spoilt(rng, np.asarray(named(rng, z)), [None, "NA"])
    table["years"] = np.round(40 + 12 * rng.standard_normal(n))
    table["race"] = rng.choice(["r", "s, t"], n)
    table["label"] = spoilt(rng, np.asarray(named(rng, y)), [None, "-"])
    if rng.random() < 0.05:
        table.index = rng.integers(0, 5, n)
    chosen = pick(rng, [["sex"], ["sex"], ["sex"], ["sex", "race"], ["years"]])
    options = {"missing_groups": pick(rng, ["error", "drop", "group"])}
    if chosen == ["years"]:
        options["bins"] = pick(rng, [2, [40], [30, 50]])
    return table, chosen, options


def fit_pipeline(rng, log):
    table, chosen, options = frame(rng)
    y, X = table["label"], table.drop(columns="label")
    params = settings(rng, y)
    log.update(params=params, options=options, sensitive=chosen, table=table)
    model = fair_pipeline(chosen, **options, **params).fit(X, y)
    _, proba = check_answers(model, X, {})
    check_frontier(model[-1], None)
    check_target(model[-1])
    check_target(model.at(float(rng.uniform(0.05, 1)))[-1])
    if rng.random() < 0.3:
        check_twice(model, lambda other: other.fit(X, y), X, {}, proba)
    if rng.random() < 0.5:
        check_saved(model, X, {}, proba)


def favourable(rng, table):
    values = table["label"].dropna()
    named = len(values) and rng.random() < 0.8
    return {"favourable": str(pick(rng, values.tolist()))} if named else {}


def run_train(rng, log):
    table, chosen, options = frame(rng)
    params = {"tau": 0.8, "notion": pick(rng, [*NOTIONS])} | engine(rng) | pick(rng, SELECTIONS)
    options |= favourable(rng, table) | {"test_size": float(pick(rng, [0.0, 0.3]))}
    log.update(params=params, options=options, sensitive=chosen, table=table)
    saved = train_table(table, label="label", sensitive=chosen, seed=1, **options, **params)
    check_frontier(saved.model[-1], None)
    check_target(saved.model[-1])
    _, proba = check_answers(saved.model, table.drop(columns="label"), {})
    with tempfile.TemporaryDirectory() as folder:
        save_model(saved.model, Path(folder) / "m", facts=saved.facts)
        try:
            again = load_model(Path(folder) / "m")
        except ValueError as error:
            raise WrongError(f"what was saved is refused: {error}") from None
    found = again.model.predict_proba(table.drop(columns="label"))
    expect(np.array_equal(found, proba), "another answer after saving")
    summary = summarise(again)
    json.dumps(summary, allow_nan=False)
    expect("nan" not in render(summary).lower().split(), "NaN on the page")


def run_audit(rng, log):
    table, chosen, options = frame(rng)
    table["answer"] = rng.permutation(table["label"].to_numpy()) if len(table) else table["label"]
    truth, said = {"label": "label"}, {"prediction": "answer"}
    columns = pick(rng, [truth, said, truth | said])
    options |= favourable(rng, table)
    log.update(options=options, columns=columns, sensitive=chosen, table=table)
    report = audit_table(table, sensitive=chosen, **columns, **options)
    json.dumps(report, allow_nan=False)
    ratio = report["ratios"]["selection_rate"]
    expect(not report["passed"] or ratio >= report["tau"], f"passes with the ratio {ratio}")


CASES = (fit_classifier, fit_boosted, fit_pipeline, run_train, run_audit)
SHARES = (0.45, 0.15, 0.2, 0.1, 0.1)


# ---- running ---------------------------------------------------------------------------------


def on_purpose(error):
    """Whether an error is a refusal: a sentence of ours, or of scikit-learn's checks."""
    if not isinstance(error, ValueError | TypeError | ImportError) or not str(error).strip():
        return False
    if type(error).__name__ == "InvalidParameterError":  # the parameters above are all valid
        return False
    steps = list(traceback.walk_tb(error.__traceback__))
    package = Path(evenhand.__file__).parent
    if not any(Path(f.f_code.co_filename).is_relative_to(package) for f, _ in steps):
        return isinstance(error, UnicodeEncodeError)  # pandas makes no such table
    frame, line = steps[-1]
    file = frame.f_code.co_filename
    ours = Path(file).is_relative_to(package)
    if not ours and f"{os.sep}sklearn{os.sep}" not in file:
        return False
    # What C code raises has no line that raises it.
    deliberate = linecache.getline(file, line).strip().startswith("raise")
    return deliberate and (not ours or "\n" not in str(error))


def too_long(*_):
    raise WrongError(f"no end after {TOO_LONG_S} s of computing")


def run(seed, *, loud=False):
    """Run one input; what it was, and what went wrong with it, if anything did."""
    rng, log = np.random.default_rng(seed), {}
    case = pick(rng, CASES, SHARES)
    signal.signal(signal.SIGPROF, too_long)
    signal.setitimer(signal.ITIMER_PROF, TOO_LONG_S)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", RuntimeWarning)
            # Trees of scikit-learn look at float32, in which a large number is infinite.
            warnings.filterwarnings("ignore", "overflow encountered in cast")
            case(rng, log)
        outcome = wrong = ""
    except Exception as error:
        outcome = "refused" if on_purpose(error) else "wrong"
        wrong = "" if outcome == "refused" else f"{type(error).__name__}: {error}"
        if loud:
            traceback.print_exc()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    if loud:
        for name, value in log.items():
            print(f"{name}:\n{value!r}")
    return seed, case.__name__, outcome or "accepted", wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=100, help="how many inputs")
    parser.add_argument("--seed", type=int, default=0, help="the first input's number")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--only", type=int, help="run this input alone, and show it")
    options = parser.parse_args()
    if options.only is not None:
        print(run(options.only, loud=True))
        return
    seeds = range(options.seed, options.seed + options.n)
    with ProcessPoolExecutor(options.jobs) as pool:
        found = list(pool.map(run, seeds, chunksize=10))
    tally = Counter((case, outcome) for _, case, outcome, _ in found)
    for (case, outcome), n in sorted(tally.items()):
        print(f"{case:16} {outcome:10} {n}")
    wrong = [(seed, case, what) for seed, case, _, what in found if what]
    for seed, case, what in wrong:
        print(f"--only {seed}: {case}: {what.splitlines()[0][:300]}")
    print(f"{len(found)} inputs, {len(wrong)} wrong")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
