"""What a report needs to know of a saved model, as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evenhand.models.card import group_use
from evenhand.models.classifier import FairClassifier
from evenhand.persist.model_file import SavedModel
from evenhand.tables.pipeline import FairPipeline
from evenhand.workflow.labels import favourable_answer, plain_number
from evenhand.workflow.unlabelled import over_all_rows, unlabelled_by_group
from evenhand.workflow.wording import as_options

__all__ = ["summarise"]


def summarise(saved: SavedModel) -> dict[str, Any]:
    """Give what a report needs to know of a saved model, as plain values.

    Parameters
    ----------
    saved : SavedModel
        What :func:`train` gave or :func:`evenhand.persist.model_file.load_model` loaded.

    Returns
    -------
    dict
        Plain values; the keys are those of :func:`evenhand.views.report.render`.
    """
    pipeline, facts = saved.model, saved.facts
    model: FairClassifier = pipeline[-1]
    answers, rate = model.answers_, model._rate
    n_train = int(facts["n_train"])
    parts = [{"key": "train", "title": "training rows", "n": n_train, "weighted": False}]
    test = facts.get("test_counts")
    if test is not None:
        parts.append(
            {"key": "test", "title": "test rows", "n": int(facts["n_test"]), "weighted": False}
        )
    keys = [part["key"] for part in parts]
    points = [
        {
            "accuracy": plain_number(answers.accuracy[i]),
            "rate": plain_number(answers.rate[i]),
            "reach": plain_number(answers.reach[i]),
            "counts": {key: facts[f"{key}_counts"][i] for key in keys},
        }
        for i in range(len(answers))
    ]
    chosen = answers.find(float(np.max(model.tau)))
    # Behind the answers stand the counts of the last iterate, which is kept if there are none.
    saved_counts = {key: facts[f"{key}_counts"][-1] for key in keys}
    curves = model.trajectory_.to_frame()
    names = ("leg", "iteration", "loss_c", "loss_u", "accuracy", "rate")
    use = group_use(pipeline)
    summary: dict[str, Any] = {
        "favourable_answer": favourable_answer(facts["label"], facts["favourable"]),
        "title": facts["title"],
        "needs_group": bool(use),
        "group_use": use,
        "asked": {
            "label": facts["label"],
            "favourable": facts["favourable"],
            "sensitive": facts["sensitive"],
            "notions": [model.notion] if isinstance(model.notion, str) else list(model.notion),
            "taus": [float(t) for t in np.atleast_1d(model.tau)],
            "confidence": model._confidence,
            "selection": model.selection,
            "delta": model._certify,
            "earlier_taus": facts.get("earlier_taus", []),
        },
        "reached": {
            "feasible": bool(model.feasible_),
            "rate": plain_number(model.rate_),
            "bound": plain_number(model.rate_bound_),
            "accuracy": plain_number(model.accuracy_),
            "where": model._where,
            "guarantee": None if model.guarantee_ is None else str(model.guarantee_),
        },
        "rate": {
            "name": rate.ratio_name,
            "parts": [
                {
                    "name": part.name,
                    "numerator": [list(c) for c in part.numerator],
                    "denominator": [list(c) for c in part.denominator],
                    "share": float(share),
                }
                for part, share in zip(rate.parts, rate.shares, strict=True)
            ],
        },
        "groups": [str(g) for g in model.groups_.tolist()],
        "labels": [str(v) for v in model._labels.tolist()],
        "parts": parts,
        "points": points,
        "chosen": chosen,
        "saved": {
            "accuracy": plain_number(model.accuracy_),
            "rate": plain_number(model.rate_),
            "reach": plain_number(model.rate_bound_),
            "counts": saved_counts if chosen is None else points[chosen]["counts"],
        },
        "tau": float(np.max(model.tau)),
        "plain": {
            "counts": facts["plain"]["counts"],
            "best_cut": facts["plain"].get("best_cut"),  # models of earlier versions have none
        },
        "curves": {
            name: [v if isinstance(v, str) else plain_number(v) for v in curves[name].tolist()]
            for name in names
        },
        "weights": _changed_weights(pipeline, facts["plain"]["weights"]),
        "data": {
            "rows": int(facts["n_rows"]),
            "rows_dropped": facts["rows_dropped"],
            "decisions": _decisions(pipeline, facts["label"], facts["sensitive"]),
            "small_groups": {str(g): int(n) for g, n in model.small_groups_.items()},
            # Which models of earlier versions have not.
            "stand_ins": facts.get("stand_ins", []),
            "fingerprint": facts["fingerprint"],
        },
        "about": {name: facts[name] for name in ("versions", "seed", "command", "created")},
    }
    if "unlabelled" in facts:
        place = -1 if chosen is None else chosen
        summary["unlabelled"] = unlabelled_by_group(summary, facts)
        summary["all_rows"] = over_all_rows(summary, facts, place)
    return summary


def earlier_taus(saved: SavedModel, tau: float) -> list[float]:
    """Give the targets that the fit was asked for before this one."""
    found = {*saved.facts.get("earlier_taus", []), float(np.max(saved.model[-1].tau))}
    return sorted(found - {tau})


def _decisions(
    pipeline: FairPipeline, label: str, sensitive: Sequence[str]
) -> list[dict[str, Any]]:
    """Give what became of each column: the label by its name, and groups that have own cuts."""
    found = pipeline.named_steps["encoder"].decisions().to_dict("records")
    for d in found:
        if d["column"] == label:
            d |= {"kind": "label", "action": "what is predicted"}
            continue
        d["action"] = as_options(d["action"])
        if d["column"] in sensitive and pipeline[-1].needs_group:
            own = "each group has its own cut: needed to predict"
            dropped = d["kind"] == "dropped"
            d |= (
                {"kind": "group", "action": own} if dropped else {"action": f"{d['action']}; {own}"}
            )
    return found


def _changed_weights(
    pipeline: FairPipeline, plain: Sequence[float], most: int = 20
) -> list[dict[str, Any]]:
    """Weights of each favourable label's score that differ most from plain logistic regression's.

    Of two labels the iterates are weights of the favourable one's score already.
    """
    model = pipeline[-1]
    names = [str(n) for n in pipeline.named_steps["encoder"].get_feature_names_out()]
    before = np.reshape(plain, (-1, len(names) + 1))[:, :-1]
    after, favourable = model._sign * model.coef_, model.frontier_.favourable
    most = max(most // len(favourable), 5)
    found = []
    for c in favourable:
        fair, unfair = (w[c if len(w) > 1 else 0] for w in (after, before))
        order = np.argsort(-np.abs(fair - unfair), kind="stable")[:most]
        inputs = [
            {"name": names[i], "fair": float(fair[i]), "plain": float(unfair[i])} for i in order
        ]
        found.append({"label": str(model._labels[c]), "inputs": inputs})
    return found
