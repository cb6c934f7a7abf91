"""Write down what fits give, to the last bit, and compare with what they gave before.

    python tools/figures.py record before.json          # some minutes
    python tools/figures.py compare before.json         # exit code 1 if anything differs

For changes that must not change a figure: every notion and every way to choose a point on Adult,
COMPAS and German credit, dense and sparse; several groups, bins, group cuts, many labels, weights,
boosting, the paper's own settings; and the engines (NumPy, PyTorch if it is there, Dask, Parquet).
COMPAS is fetched once. ``--only WORD`` takes the fits whose names have the word in them.
"""

import argparse
import hashlib
import json
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from evenhand import FairBoostedClassifier, FairClassifier, Method, datasets
from evenhand.core.notions import NOTIONS

CHOICES = {
    "0.9": {},
    "none": {"confidence": None},
    "holdout": {"selection": "holdout"},
    "crossfit": {"selection": "crossfit", "cv": 3},
    "certified": {"confidence": "certified"},
}
PAPER = {
    "reading": "printed", "l2": 1.0, "mu": 10.0, "alpha": 0.1, "alpha_power": 0.5, "step": 0.1,
    "max_iter": 100, "init": "zero", "cut": False, "confidence": None,
}  # fmt: skip
VARIANTS = {
    "paper": PAPER,
    "gd": {"solver": "gd"},
    "agd_printed": {**PAPER, "solver": "agd_printed"},
    "extragradient": {"solver": "extragradient"},
    "optimistic": {"solver": "optimistic"},
    "soft_rate": {"solver": "soft_rate"},
    "cost_sensitive": {"solver": "cost_sensitive"},
    "normal": {"update": "normal"},
    "conflict": {"update": "conflict"},
    "both": {"init": "both"},
    "noise": {"extra_column": "noise"},
    "group_cuts": {"group_cuts": True},
    "no cut": {"cut": False},
    "joint": {"notion": ["statistical_parity", "equal_opportunity"], "tau": [0.8, 0.7]},
}


def digest(*arrays):
    """A short hash of the bits of arrays."""
    total = hashlib.sha256()
    for array in arrays:
        array = np.ascontiguousarray(np.asarray(array, dtype=np.float64)) + 0.0  # no minus zero
        total.update(str(array.shape).encode() + array.tobytes())
    return total.hexdigest()[:16]


def figures(model):
    """What a fitted classifier is, in plain values."""
    at = model.at(0.9)
    frontier = model.frontier_
    return {
        "accuracy": float(model.accuracy_),
        "rate": float(model.rate_),
        "bound": float(model.rate_bound_),
        "feasible": bool(model.feasible_),
        "at 0.9": [float(at.accuracy_), float(at.rate_)],
        "points": len(frontier),
        "frontier": digest(frontier.iterate, frontier.cut, frontier.accuracy, frontier.rate),
        "weights": digest(model.coef_, model.intercept_)
        if hasattr(model, "coef_")
        else digest(model.trajectory_.iterates),
    }


def made(**params):
    """A classifier with a seed; parameters of the method may be among its own."""
    own = {name: params.pop(name) for name in [*params] if name in Method().get_params()}
    return FairClassifier(random_state=0, method=Method(**own), **params)


def fitted(X, y, z, **params):
    """Fit with a seed."""
    return figures(made(**params).fit(X, y, sensitive_features=z))


def tables():
    """The tables: name, inputs (sparse), labels, groups."""
    for name, load in (
        ("german", datasets.load_german),
        ("compas", datasets.fetch_compas),
        ("adult", datasets.load_adult),
    ):
        X, _, y, _, z, _ = datasets.encoded_split(load(), random_state=0)
        yield name, X, np.asarray(y), np.asarray(z)


def cases():
    """Name and function of every fit."""
    from scipy.sparse import csr_array

    for table, X, y, z in tables():
        dense = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
        sparse = csr_array(dense)
        for notion in NOTIONS:
            for choice, params in CHOICES.items():
                yield (
                    f"{table} dense {notion} {choice}",
                    lambda X=dense, y=y, z=z, n=notion, p=params: fitted(X, y, z, notion=n, **p),
                )
            yield (
                f"{table} sparse {notion} 0.9",
                lambda X=sparse, y=y, z=z, n=notion: fitted(X, y, z, notion=n),
            )
        for name, params in VARIANTS.items():
            yield (
                f"{table} dense variant {name}",
                lambda X=dense, y=y, z=z, p=params: fitted(X, y, z, **p),
            )
        rng = np.random.default_rng(0)
        other = rng.choice(["a", "b", "c"], size=len(y), p=[0.5, 0.4, 0.1])
        crossed = np.column_stack([z.astype(str), other])
        yield f"{table} groups crossed", lambda X=dense, y=y, c=crossed: fitted(X, y, c, tau=0.6)
        ages = rng.normal(40, 10, len(y)) + 5 * y
        yield f"{table} bins", lambda X=dense, y=y, a=ages: fitted(X, y, a, bins=3, tau=0.6)
        third = np.where(rng.random(len(y)) < 0.2, 2, y)
        yield f"{table} labels three", lambda X=dense, t=third, z=z: fitted(X, t, z, tau=0.6)
        yield (
            f"{table} labels favourable",
            lambda X=dense, t=third, z=z: fitted(X, t, z, tau=0.6, pos_label=2),
        )
        yield f"{table} label first", lambda X=dense, y=y, z=z: fitted(X, y, z, pos_label=0)
        yield f"{table} float32", lambda X=dense, y=y, z=z: fitted(X.astype(np.float32), y, z)
        weights = rng.integers(0, 4, len(y))
        yield (
            f"{table} weights",
            lambda X=dense, y=y, z=z, w=weights: figures(
                FairClassifier(random_state=0).fit(X, y, sensitive_features=z, sample_weight=w)
            ),
        )
        yield from engines(table, dense, y, z)
        if table != "adult":
            for choice in ("0.9", "holdout", "certified"):
                yield (
                    f"{table} boosted {choice}",
                    lambda X=dense, y=y, z=z, c=choice: figures(
                        FairBoostedClassifier(random_state=0, **CHOICES[c]).fit(
                            X, y, sensitive_features=z
                        )
                    ),
                )


def engines(table, X, y, z):
    """The same fits where the rows are elsewhere."""
    few = ("statistical_parity", "equalized_odds", "false_discovery")
    for notion in NOTIONS if table == "german" else few:
        for choice in ("0.9", "certified"):
            params = {"notion": notion, **CHOICES[choice]}
            yield f"{table} torch {notion} {choice}", lambda p=params: on_torch(X, y, z, p)
            yield f"{table} dask {notion} {choice}", lambda p=params: on_dask(X, y, z, p)
            yield f"{table} parquet {notion} {choice}", lambda p=params: on_parquet(X, y, z, p)


def on_torch(X, y, z, params):
    try:
        import torch
    except ImportError:
        return "PyTorch is not installed"
    return fitted(torch.as_tensor(X), torch.as_tensor(y), z, **params)


def on_dask(X, y, z, params):
    import dask
    import dask.array as da

    size = len(y) // 3 + 1
    with dask.config.set(scheduler="synchronous"):
        return fitted(
            da.from_array(X, chunks=(size, -1)), da.from_array(y, chunks=size),
            da.from_array(np.asarray(z, dtype=str), chunks=size), **params,
        )  # fmt: skip


def on_parquet(X, y, z, params):
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]).assign(y=y, z=z)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "table.parquet"
        frame.to_parquet(file, row_group_size=len(y) // 3 + 1)
        model = made(**params)
        return figures(model.fit_parquet(file, label="y", sensitive_features="z"))


def run(only):
    found = {}
    for name, fit in cases():
        if only and only not in name:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found[name] = fit()
            except ValueError as error:
                found[name] = f"refused: {error}"
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["record", "compare"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", default="", help="fits whose names have this in them")
    args = parser.parse_args()
    found = run(args.only)
    if args.what == "record":
        args.file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        print(f"{len(found)} fits: {args.file}")
        return
    before = json.loads(args.file.read_text(encoding="utf-8"))
    wrong = 0
    for name, now in found.items():
        if before.get(name) != now:
            wrong += 1
            print(f"{name}\n  before {before.get(name)}\n  now    {now}")
    print(f"{len(found)} fits, {wrong} differ")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
