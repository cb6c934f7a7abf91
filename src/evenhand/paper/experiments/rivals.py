"""The peers that the paper compares with over the correlation, for either notion."""

import warnings
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from evenhand.core.notions import AnyNotion, find_notion
from evenhand.datasets import Split
from evenhand.models.classifier import FairClassifier
from evenhand.paper.experiments import lab
from evenhand.paper.experiments._claims import (
    ALL,
    CHOICES,
    OPEN,
    UNDECIDED,
    Cell,
    Experiment,
    Finding,
    Rows,
    dagger,
    experiment,
    means,
)
from evenhand.paper.experiments._draw import draw_over_rho
from evenhand.paper.experiments._spread import against_spread, deciding, with_spread
from evenhand.paper.experiments.reach import BOUNDS, TAU, searched, with_reached
from evenhand.peers import CelisClassifier, ZafarClassifier, ZhangClassifier

OURS, DEFAULTS = "AGD modified, τ = 0.9", "evenhand's defaults, τ = 0.9"
ZHANG_EO = "Zhang, equalised odds"
SHIPPED, HERE = CHOICES["rival"].values
ABOUT_AS_FAIR = CHOICES["counting"].values[1]


def cells(quick: bool) -> list[Cell]:
    """Give correlations and seeds; a quick look has two correlations, as fits take seconds."""
    return lab.grid_of(quick, (lab.ADULT, 0.8) if quick else lab.RHOS)


def _peers(notion: str, seed: int) -> list[tuple[str, str, Any]]:
    """Give name, whose form, and estimator of each peer, evenhand's defaults among them."""
    odds = ZhangClassifier("equalized_odds", random_state=seed)
    discovery = notion == "false_discovery"
    return [
        (DEFAULTS, ALL, FairClassifier(notion, tau=TAU, confidence=None)),
        ("Zafar", ALL, ZafarClassifier(covariance_bound=0.0)),
        ("Zhang", SHIPPED, ZhangClassifier.shipped(random_state=seed)),
        ("Zhang", HERE, odds if discovery else ZhangClassifier(random_state=seed)),
        *([] if discovery else [(ZHANG_EO, HERE, odds)]),
        ("Celis", SHIPPED, CelisClassifier.shipped(notion, TAU, random_state=seed)),
        ("Celis", HERE, CelisClassifier(notion, tau=TAU)),
    ]


def run(
    rho: float,
    seed: int,
    notion_name: str = "statistical_parity",
    inputs: str = "full",
    scheme: str = lab.REPLACED,
) -> Rows:
    """Test accuracy and ratio of rates of ours in each reading, and of the others.

    ``majority`` is the constant answer's accuracy, ``bound`` that of :data:`BOUNDS`. For false
    discovery ``reached`` is the ratio of the rule that τ chooses on the training rows among all of
    these and those of :func:`searched`, which :func:`with_reached` compares with each of them.
    """
    data, notion = lab.split(rho, seed, inputs, scheme), find_notion(notion_name)
    train, discovery = lab.part_of(data), notion_name == "false_discovery"
    rows: Rows = []
    rules: Rows = []
    for setting in lab.settings(*(("discovery_start", "mu") if discovery else ("start",))):
        own = {"start": setting.get("discovery_start", ALL), "mu": "10"} | setting
        losses = lab.problem(train, setting, mu=float(own["mu"]), notion=notion)
        W = lab.iterates(losses, own, "AGD modified", seed=seed)
        training, measured = lab.measure_chosen(W, data, TAU, notion)
        rules.append(training | {"tested": measured["rate"]})
        rows.append({**setting, "rival": ALL, "name": OURS, "error": "none", **measured})
    for peer, form, estimator in _peers(notion_name, seed):
        row = {"reading": ALL, "ridge": ALL, "rival": form, "name": peer, "error": "none"}
        training, measured = _fitted(estimator, data, notion)
        rules.append(training | {"tested": measured["rate"]})
        rows.append(row | measured)
    share = float(np.mean(data.y_test))
    facts = {"majority": max(share, 1 - share), "bound": BOUNDS[scheme](rho, seed, inputs)}
    if discovery:
        every = pd.DataFrame(rules + searched(data, inputs, notion)).fillna({"tested": 0.0})
        every = every.astype({"accuracy": float, "rate": float, "eligible": bool})
        facts["reached"] = float(every["tested"].iloc[lab.choose(every, TAU)])
    return [row | facts for row in rows]


def _fitted(
    estimator: Any, data: Split, notion: AnyNotion
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fit a peer and measure it on the training and the test rows.

    What failed is there, undefined: shown, not dropped.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            estimator.fit(data.X_train, data.y_train, sensitive_features=data.z_train)
        except (RuntimeError, ValueError) as error:
            nothing = dict.fromkeys(("accuracy", "rate", "positives", "constant"))
            return nothing | {"eligible": False}, nothing | {"error": str(error)}
        training, measured = (
            lab.measure_model(estimator, data, where, notion) for where in ("train", "test")
        )
        return training, measured


PEERS = ("Zafar", "Zhang", "Celis")


def _seeds(table: pd.DataFrame, name: str, what: str) -> pd.DataFrame:
    """Values of a method, ρ × seed; a run without a rate counts as rate 0."""
    rows = table[table["name"] == name].astype({what: float})
    rows = rows.fillna({"rate": 0.0})
    return rows.pivot_table(index="rho", columns="seed", values=what, dropna=False)


def _mean(table: pd.DataFrame, what: str, names: Iterable[str]) -> pd.DataFrame:
    """Means over the seeds, ρ × method."""
    return pd.DataFrame({name: _seeds(table, name, what).mean(axis=1) for name in names})


def _gains(table: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """How much more accurate ours is than the most accurate peer that counts, ρ × seed.

    Either all peers count or those whose mean rate is at least ours, or τ, less 0.05; a ρ where
    none does is left out, and named in the text.
    """
    each = {name: _seeds(table, name, "accuracy") for name in (OURS, *PEERS)}
    accuracy = pd.DataFrame({name: each[name].mean(axis=1) for name in PEERS})
    if table["counting"].iloc[0] == ABOUT_AS_FAIR:
        rates = _mean(table, "rate", [OURS, *PEERS])
        least = rates.pop(OURS).clip(upper=TAU) - 0.05
        accuracy = accuracy.where(rates.ge(least, axis=0))
    best = accuracy.dropna(how="all").idxmax(axis=1)
    gains = {rho: each[OURS].loc[rho] - each[name].loc[rho] for rho, name in best.items()}
    out = ", ".join(f"{rho:g}" for rho in accuracy.index.difference(best.index))
    return pd.DataFrame(gains).T, f"; no rival counts at ρ = {out}" if out else ""


def _fairer(table: pd.DataFrame) -> Finding:
    ours = _seeds(table, OURS, "rate")
    gaps = {name: ours - _seeds(table, name, "rate").clip(upper=TAU) for name in PEERS}
    margins = pd.concat(gaps)
    name, rho = case = deciding(margins + 0.05)
    mark = _marked(table, rho, name)
    text = f"difference {with_spread(margins, case)} ({name}, ρ = {rho:g}){mark}"
    return Finding(text, against_spread(margins + 0.05), UNDECIDED)


def _marked(table: pd.DataFrame, rho: float, peer: str) -> str:
    return dagger(*(means(table, "rho", name=name).loc[[rho]] for name in (OURS, peer)))


def _small_loss(table: pd.DataFrame) -> Finding:
    gains, out = _gains(table)
    if gains.empty:
        return Finding(out[2:], None, OPEN)
    loss = -gains.mean(axis=1)
    text = f"mean {loss.mean():.3f}, most {loss.max():.3f} at ρ = {loss.idxmax():g}"
    return Finding(text + out, bool(loss.mean() <= 0.03))


def _accurate(table: pd.DataFrame) -> Finding:
    gains, out = _gains(table)
    if gains.empty:
        return Finding(out[2:], None, OPEN)
    rho = deciding(gains + 0.01)
    text = f"gain {with_spread(gains, rho)} (ρ = {rho:g})"
    return Finding(text + out, against_spread(gains + 0.01), UNDECIDED)


def _regulariser_fails(table: pd.DataFrame) -> Finding:
    zafar = means(table, "rho", name="Zafar")
    synthetic = zafar["rate"][zafar.index != lab.ADULT]
    mark = dagger(zafar.loc[[synthetic.idxmin()]])
    text = f"least {synthetic.min():.2f} at ρ = {synthetic.idxmin():g}{mark}"
    return Finding(text, bool(synthetic.min() < 0.8))


def _made_good(table: pd.DataFrame) -> Finding:
    gains = []
    for name in PEERS:
        more = _seeds(table, name, "rate") - _seeds(table, OURS, "rate")
        gain = _seeds(table, OURS, "accuracy") - _seeds(table, name, "accuracy")
        gains.append(
            gain[(more.mean(axis=1) > 0) & (more.mean(axis=1) >= more.std(axis=1).fillna(0.0))]
        )
    cases = pd.concat(gains, keys=PEERS)
    if cases.empty:
        return Finding("our rate is nowhere smaller", None, OPEN)
    higher = int((cases.mean(axis=1) > 0).sum())
    name, rho = deciding(cases)
    mark = _marked(table, rho, name)
    text = f"{higher} of {len(cases)} cases, gain {with_spread(cases)} ({name}, ρ = {rho:g}){mark}"
    return Finding(text, against_spread(cases), UNDECIDED)


def _zhang_fails(table: pd.DataFrame) -> Finding:
    rows = table[table["name"].isin(["Zhang", ZHANG_EO])]
    none = (rows["positives"].astype(float).fillna(0.0) == 0).groupby(rows["rho"] >= 0.65)
    above, below = none.mean().get(True, 0.0), none.mean().get(False, 0.0)
    counts = {high: f"{int(part.sum())} of {len(part)} runs" for high, part in none}
    text = f"{counts.get(True)} at ρ ≥ 0.65, {counts.get(False)} below"
    return Finding(text, bool(above > 0.5 and below < 0.5))


def _some_fail(table: pd.DataFrame) -> Finding:
    texts, failed = [], 0
    for name in ("Zafar", "Zhang"):
        rows = table[table["name"] == name]
        none = rows["accuracy"].isna() | (rows["positives"].astype(float) == 0)
        texts.append(f"{name} {none.sum()} of {len(rows)} runs")
        failed += int(none.sum())
    return Finding(", ".join(texts), failed > 0)


def _of_rho(table: pd.DataFrame, column: str) -> pd.Series:
    return table.groupby("rho")[column].mean()


def _higher_ratio(table: pd.DataFrame) -> Finding:
    names, here = [OURS, *PEERS], _of_rho(table, "bound") >= TAU
    if not here.any():
        return Finding("the bound is below τ at every ρ", None, OPEN)
    rates, accuracy = (_mean(table, what, names)[here] for what in ("rate", "accuracy"))
    useful = accuracy.gt(_of_rho(table, "majority")[here], axis=0)
    best = rates[list(PEERS)].where(useful).max(axis=1).fillna(0.0)
    higher = rates[OURS] > best
    above, useless = higher & useful[OURS], int((higher & ~useful[OURS]).sum())
    shown = rates.eq(best, axis=0).assign(**{OURS: True})
    mark = dagger(*(means(table, "rho", name=name)[here][shown[name]] for name in names))
    text = (
        f"{above.sum()} of {len(above)} ρ where the bound allows τ; mean {rates[OURS].mean():.2f}, "
        f"best of others {best.mean():.2f}{mark}"
    )
    if useless:
        text += f"; higher at {useless} more, but no more accurate there than the constant answer"
    return Finding(text, bool(above.mean() > 0.5))


def _high_ratio(table: pd.DataFrame) -> Finding:
    rate, accuracy = (_mean(table, what, [OURS])[OURS] for what in ("rate", "accuracy"))
    bound, reached = (_of_rho(table, what) for what in ("bound", "reached"))
    high, useful = (rate >= 0.8) & (bound >= 0.8), accuracy > _of_rho(table, "majority")
    useless, high = int((high & ~useful).sum()), high & useful
    open_ = ~high & (reached < 0.8)
    text = f"{high.sum()} of {len(high)} ρ{dagger(means(table, 'rho', name=OURS))}"
    limits = bound.map(lambda b: f"bound {b:.2f}, " * (b < 0.8))
    shown = pd.Series(
        {rho: f"{rho:g} ({limits[rho]}reached {r:.2f})" for rho, r in reached.items()}
    )
    for what, which in (("low", ~high & ~open_), ("open", open_)):
        text += f"; {what} at ρ = {', '.join(shown[which])}" * bool(which.any())
    if useless:
        text += f"; high at {useless} more, but no more accurate there than the constant answer"
    half = len(high) / 2
    holds = True if high.sum() > half else (None if (high | open_).sum() > half else False)
    return Finding(text, holds, OPEN)


def _comparable(table: pd.DataFrame) -> Finding:
    gains, out = _gains(table)
    if len(gains) <= table["rho"].nunique() / 2:
        return Finding(out[2:], None, OPEN)
    loss = -gains.mean(axis=1)
    good = bool((loss <= 0.03).mean() > 0.5 and loss.max() <= 0.1)
    text = f"within 0.03 at {(loss <= 0.03).sum()} of {len(loss)}, most lost {loss.max():.3f}"
    return Finding(text + out, good)


def _draw(table: pd.DataFrame, rate: str) -> Any:
    """Draw a line for each peer in each form."""
    shipped = table["rival"] == SHIPPED
    named = table["name"].where(~shipped, table["name"] + f", {SHIPPED}")
    rows = {"test accuracy": "accuracy", rate: "rate"}
    return draw_over_rho(table.assign(name=named, rival=ALL), rows, missing=True)


def _discovery(name: str, inputs: str, scheme: str, words: str) -> Experiment:
    """Make the experiment for an encoding of Adult and a way to give labels a correlation."""
    own = {"notion_name": "false_discovery", "inputs": inputs, "scheme": scheme}

    def of_scheme(quick: bool) -> list[Cell]:
        # Adult's own labels are the same in all schemes: once is enough for a look
        again = quick and scheme == lab.MOVED
        return [cell | own for cell in cells(quick) if not (again and cell["rho"] == lab.ADULT)]

    return experiment(
        f"discovery_{name}",
        cells=of_scheme,
        run=run,
        draw=partial(_draw, rate="test false discovery ratio"),
        needs=("cvxpy",),
        section="discovery",
        complete=with_reached,
        words={"data": f"{inputs}, {scheme}", "labels": words},
        tests={
            "higher_ratio": _higher_ratio,
            "high_ratio": _high_ratio,
            "some_fail": _some_fail,
            "comparable": _comparable,
        },
    )


RIVALS = experiment(
    "rivals",
    cells=cells,
    run=run,
    draw=partial(_draw, rate="test statistical rate"),
    needs=("cvxpy",),
    tests={
        "fairer": _fairer,
        "small_loss": _small_loss,
        "accurate": _accurate,
        "regulariser_fails": _regulariser_fails,
        "made_good": _made_good,
        "zhang_fails": _zhang_fails,
    },
)
_OUT_OF_REACH = (
    "At ρ ≥ 0.6 the labels allow no high ratio: a label that was replaced by the group cannot be "
    "foreseen, so that among women at least that share of positives is false, and among men no "
    "more than by chance."
)
_IN_REACH = (
    "Each group has as many labels 1 as where labels are replaced by the group, so the correlation "
    "is the same, but in the rows that are likeliest by a logistic model of Adult's labels and its "
    "noise: within a group labels depend on the inputs as Adult's do. A rule that knows the model "
    "and the group has a ratio of 1 at every correlation but the largest, and there one of 0.95 in "
    "the mean."
)
DISCOVERY_FULL = _discovery("full", "full", lab.REPLACED, _OUT_OF_REACH)
DISCOVERY_COARSE = _discovery("coarse", "coarse", lab.REPLACED, _OUT_OF_REACH)
DISCOVERY_MOVED = _discovery("moved", "full", lab.MOVED, _IN_REACH)
