"""Summaries to make reports of: of a real fit, and of made-up counts for the corners."""

from dataclasses import asdict

import numpy as np
from helpers import fair

import evenhand
from evenhand.core.objectives import find_objective
from evenhand.frontier.held_out import count_points
from evenhand.workflow.attributes import worst_attributes
from evenhand.workflow.summary import target_of


def spread(n, most, keep):
    """Numbers of at most so many of n points, evenly over them, the kept one among them."""
    chosen = np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(int))
    if keep is not None and keep not in chosen:
        chosen[np.argmin(np.abs(chosen - keep))] = keep
    return np.unique(chosen)


def rate_record(rate):
    parts = [
        asdict(part) | {"share": float(share)}
        for part, share in zip(rate.components, rate.shares, strict=True)
    ]
    return {"name": rate.ratio_name, "parts": parts}


def of_fit(model, test, *, title, label, sensitive, names, most=300, weighted=False):
    """Summary of a fitted two-label classifier, with test rows (X, y, z)."""
    answers, classes = model.answers_, model.classes_
    front = answers.points.take(answers.index)
    X, y, z = (np.asarray(v) for v in test)
    n_groups, small = len(model.groups_), bool(model.small_groups_)
    number = {g: j for j, g in enumerate(model.groups_.tolist())}
    codes = np.array([number.get(g, n_groups) for g in z.tolist()])
    cell = codes * len(classes) + np.searchsorted(classes, y)
    iterates = model.trajectory_.iterates
    seen = count_points(front, iterates, X, None, cell, None, n_groups + small)
    chosen = answers.find(model.target_.level)
    kept = spread(len(front), most, chosen)
    points = [
        {
            "accuracy": float(answers.accuracy[i]),
            "rate": float(answers.rate[i]),
            "reach": float(answers.reach[i]),
            "counts": {"train": front.counts[i].tolist(), "test": seen[i].tolist()},
        }
        for i in kept
    ]

    def predicted(X_, code, w):
        scores = X_ @ w[:-1] + w[-1]
        counts = np.bincount(code * 2 + (scores > 0), minlength=4 * (n_groups + small))
        return counts.reshape(n_groups + small, 2, 2).tolist()

    w = iterates[0]  # the unconstrained optimum, where the fit starts
    frame = model.trajectory_.to_frame()
    fair, plain = model.coef_[0], w[:-1]
    order = np.argsort(-np.abs(fair - plain))[:20]
    train_counts = front.counts[0].sum(axis=(0, 1, 2))
    return {
        "title": title,
        "needs_group": model.needs_group,
        "group_use": "",
        "asked": {
            "label": label,
            "favourable": [str(classes[-1])],
            "sensitive": sensitive,
            "notions": [model.notion] if isinstance(model.notion, str) else list(model.notion),
            "taus": [model.target_.level],
            "confidence": model.confidence,
            "selection": model.selection,
            "place": model.fitted_.place,
            "delta": model.delta if model.confidence == "certified" else None,
        },
        "reached": {
            "feasible": bool(model.feasible_),
            "target_reached": bool(model.point_.feasible),
            "beats_constant": bool(model.beats_constant_),
            "rate": model.rate_,
            "bound": model.rate_bound_,
            "accuracy": model.accuracy_,
            "constant": dict(
                zip(("label", "accuracy", "worth"), model.fitted_.constant, strict=True)
            ),
            "where": model.fitted_.where,
            "guarantee": str(model.guarantee_) if model.guarantee_ else None,
        },
        "rate": rate_record(model.fitted_.rate),
        "groups": [str(g) for g in model.groups_],
        "labels": [str(c) for c in classes],
        "parts": [
            {"key": "train", "title": "Training", "n": int(train_counts), "weighted": weighted},
            {"key": "test", "title": "Test", "n": len(y), "weighted": False},
        ],
        "points": points,
        "chosen": None if chosen is None else int(np.flatnonzero(kept == chosen)[0]),
        "tau": model.target_.level,
        "plain": {
            "counts": {
                "train": _plain_train(frame, front),
                "test": predicted(X, cell, w),
            }
        },
        "curves": {
            {"rate": "ratio"}.get(name, name): frame[name].tolist()
            for name in ("leg", "iteration", "loss_c", "loss_u", "accuracy", "rate")
        },
        "weights": [
            {
                "label": str(classes[-1]),
                "inputs": [
                    {"name": str(names[i]), "fair": float(fair[i]), "plain": float(plain[i])}
                    for i in order
                ],
            }
        ],
        "data": {
            "rows": int(train_counts) + len(y),
            "rows_dropped": [{"reason": "income is missing", "n": 12}],
            "decisions": [
                {"column": "age", "kind": "number", "action": "used, standardised"},
                {"column": "occupation", "kind": "category", "action": "used, one input a value"},
                {"column": "sex", "kind": "group", "action": "compared, not an input"},
                {"column": "fnlwgt", "kind": "number", "action": "left out on request"},
            ],
            "small_groups": {str(k): int(v) for k, v in model.small_groups_.items()},
            "fingerprint": "sha256:" + "9f86d081" * 8,
        },
        "about": {
            "versions": {"evenhand": evenhand.__version__, "numpy": np.__version__},
            "seed": 0,
            "command": "evenhand fit adult.csv --label income --sensitive sex --tau 0.8",
            "created": "2026-01-31 12:00",
        },
    }


def _plain_train(frame, front):
    """Counts of the last step towards the unconstrained optimum."""
    row = frame[frame.leg == "optimum"].iloc[-1]
    groups, labels = front.last.counts.shape[0], front.last.counts.shape[1]
    return [
        [[float(row[f"n_{j}{y}{p}"]) for p in range(labels)] for y in range(labels)]
        for j in range(groups)
    ]


def adult(tau=0.8, variant="full", **parameters):
    """Summary of a fit to Adult."""
    model, split, names = adult_fit(tau, variant, **parameters)
    test = (split.X_test, split.y_test, split.z_test)
    about = {"title": "adult.csv", "label": "income", "sensitive": ["sex"]}
    return of_fit(model, test, names=names, **about)


def adult_fit(tau=0.8, variant="full", **parameters):
    """Fit to Adult: the classifier, the split and the inputs' names."""
    from evenhand.datasets import encoded_split, load_adult

    data = load_adult(variant)
    split = encoded_split(data, random_state=0)
    model = fair(tau=tau, random_state=0, **parameters)
    model.fit(split.X_train, split.y_train, sensitive_features=split.z_train)
    names = data.encoder.fit(data.data).get_feature_names_out()
    return model, split, names


def made_up(n_groups=2, n_labels=2, n_points=30, parts=("train", "test"), small=False, seed=0):
    """Summary of counts drawn at random: any number of groups, labels, points, parts."""
    rng = np.random.default_rng(seed)
    rate = evenhand.core.rates.RATES["selection_rate"]
    rates = [rate] if n_labels == 2 else [rate.of_label(c, n_labels) for c in range(n_labels)]
    worst = evenhand.core.rates.WorstRate("selection_rate", tuple(rates))
    rows = n_groups + small

    def counts(even):
        """Groups' shares of the labels, the more alike the more even."""
        tilt = 1 + (1 - even) * np.linspace(-0.8, 0.8, rows)[:, None]
        share = rng.dirichlet(np.full(n_labels, 40.0)) * np.ones((rows, 1))
        share[:, -1:] *= tilt
        share /= share.sum(axis=1, keepdims=True)
        table = np.empty((rows, n_labels, n_labels))
        for j in range(rows):
            for y in range(n_labels):
                mixed = 0.6 * np.eye(n_labels)[y] + 0.4 * share[j]
                table[j, y] = rng.multinomial(400, mixed)
        return table

    points = []
    for even in np.linspace(0, 1, n_points):
        tables = {key: counts(even) for key in parts}
        shown = tables[parts[0]] if parts else counts(even)
        points.append(
            {
                "accuracy": float(evenhand.core.rates.overall_accuracy(shown)),
                "rate": float(worst.ratio(shown[:n_groups])),
                "reach": float(worst.ratio(shown[:n_groups])),
                "counts": {key: table.tolist() for key, table in tables.items()},
            }
        )
    points.sort(key=lambda point: point["rate"])
    chosen = next((i for i, p in enumerate(points) if p["rate"] >= 0.8), None)
    n = 400 * n_labels * rows
    steps = list(range(1, 41))
    return {
        "title": "made up",
        "needs_group": False,
        "group_use": "",
        "asked": {
            "label": "answer",
            "favourable": ["label 1"] if n_labels == 2 else [f"label {c}" for c in range(n_labels)],
            "sensitive": ["where"],
            "notions": ["statistical_parity"],
            "taus": [0.8],
            "confidence": None,
            "selection": "train",
            "place": "train",
            "delta": None,
        },
        "reached": {
            "feasible": chosen is not None,
            "target_reached": chosen is not None,
            "beats_constant": True,
            "rate": points[chosen]["rate"] if chosen is not None else None,
            "bound": points[chosen]["rate"] if chosen is not None else None,
            "accuracy": points[chosen]["accuracy"] if chosen is not None else None,
            "constant": {"label": "no", "accuracy": 0.6},
            "where": "on the training data",
            "guarantee": None,
        },
        "rate": rate_record(worst),
        "groups": [f"group {j}" for j in range(n_groups)],
        "labels": [f"label {c}" for c in range(n_labels)],
        "parts": [
            {"key": key, "title": key.replace("_", " "), "n": n, "weighted": False} for key in parts
        ],
        "points": points,
        "chosen": chosen,
        "tau": 0.8,
        "plain": {"counts": {key: counts(0).tolist() for key in parts}},
        "curves": {
            "leg": ["optimum"] * 10 + ["from optimum"] * 30,
            "iteration": steps,
            "loss_c": [1 / t for t in steps],
            "loss_u": [-0.7 + 0.001 * t for t in steps],
            "accuracy": [0.8 - 0.001 * t for t in steps],
            "ratio": [0.3 + 0.01 * t for t in steps],
        },
        "weights": [
            {
                "label": f"label {c}",
                "inputs": [
                    {"name": f"input {i}", "fair": 0.1 * i, "plain": 1 - 0.2 * i} for i in range(6)
                ],
            }
            for c in range(1 if n_labels == 2 else 0, n_labels)
        ],
        "data": {
            "rows": n * len(parts),
            "rows_dropped": [],
            "decisions": [],
            "small_groups": {"tiny": 7} if small else {},
            "fingerprint": "sha256:00",
        },
        "about": {"versions": {"evenhand": "0"}, "seed": None, "command": "", "created": ""},
    }


def by_difference(level=-0.1, **made):
    """Summary of a choice by the difference of the rates."""
    summary = made_up(**made) | {"comparison": "difference", "tau": level}
    target, n = target_of(summary), len(summary["groups"])
    for point in summary["points"]:
        value = float(target.value(np.array(point["counts"]["train"])[:n]))
        point |= {"rate": value, "reach": value}
    summary["points"].sort(key=lambda point: point["rate"])
    values = [point["rate"] for point in summary["points"]]
    summary["chosen"] = next(i for i, value in enumerate(values) if target.reached(value))
    saved = summary["points"][summary["chosen"]]
    summary["asked"] |= {"taus": [level]}
    summary["rate"]["name"] = "selection rate difference"
    summary["saved"] = saved
    summary["reached"] |= {
        **{"feasible": True, "target_reached": True},
        **{"rate": saved["rate"], "bound": saved["rate"], "accuracy": saved["accuracy"]},
    }
    return summary


def by_objective(amount=1.0, **made):
    """Summary of a fit whose false positives cost an amount and false negatives five times that."""
    summary = made_up(**made)
    objective = find_objective({"cost_fp": amount, "cost_fn": 5 * amount}, 2)
    summary["objective"] = asdict(objective)
    for point in summary["points"]:
        point["worth"] = float(objective.value(point["counts"]["train"]))
    summary["saved"] = summary["points"][summary["chosen"]]
    summary["reached"] |= {
        "worth": summary["saved"]["worth"],
        "constant": {"label": "label 1", "accuracy": 0.5, "worth": -amount / 2},
    }
    return summary


def by_attribute():
    """Summary of a choice by two attributes of two and three values, each by itself."""
    summary = made_up(6)
    (part,) = summary["rate"]["parts"]
    sex = {"name": "sex", "groups": ["f", "m"], "members": [[0, 1, 2], [3, 4, 5]], "small": []}
    race = {"name": "race", "groups": ["x", "y", "z"], "members": [[0, 3], [1, 4], [2, 5]]}
    race["small"] = [["w", 7]]
    summary["rate"]["parts"] = [part | {"by": sex}, part | {"by": race}]
    target = target_of(summary)
    for point in summary["points"]:
        value = float(target.value(np.array(point["counts"]["train"])[:6]))
        point |= {"rate": value, "reach": value}
    summary["points"].sort(key=lambda point: point["rate"])
    summary["worst"] = worst_attributes(target, 6, summary["points"][summary["chosen"]]["counts"])
    return summary
