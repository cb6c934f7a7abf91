"""The contest's page: how curves are read and compared, and what is said of it."""

from itertools import product

import numpy as np
from contest_field import (
    AWARE,
    KINDS,
    LEAGUES,
    LEAST,
    METHODS,
    ODDS,
    PARITY,
    RATES,
    TAUS,
    WARNED,
)
from scipy.stats import t as student

# Splits from which on a page is not preliminary.
ENOUGH = 10


def read(points, rate):
    """Accuracy of a curve, rows of (rate, accuracy), at a rate; NaN where it does not get there."""
    points = points[np.argsort(points[:, 0], kind="stable")]
    fair = points[points[:, 0] >= rate, 1]
    if not len(fair):
        return np.nan
    on_line = np.interp(rate, *points.T) if points[0, 0] <= rate else -np.inf
    return float(max(fair.max(), on_line))


class Curves:
    """The test curves of one method on one table: a value for each split and τ."""

    def __init__(self, rows):
        self.errors = sorted(set(rows.loc[rows["error"] != "", "error"]))
        rows = rows[rows["error"] == ""]
        self.splits = sorted(rows["split"].unique())
        if rows.empty:
            return
        wide = rows.pivot(index="split", columns="tau")
        self.accuracy, self.rate = (wide[c].to_numpy(float) for c in ("accuracy", "rate"))
        self.eligible = wide["eligible"].to_numpy(dtype=str) == "True"
        self.feasible = wide["feasible"].to_numpy(dtype=str) == "True"
        once = rows.groupby("split")[["cpu", "memory_mib", "unprocessed"]].max()
        self.once = once.median()
        self.least = -np.inf

    def at(self, rate, splits):
        """Read the mean curve over some of the splits."""
        index = np.isin(self.splits, splits)
        if not index.any():
            return np.nan
        mean = np.column_stack([self.rate[index].mean(axis=0), self.accuracy[index].mean(axis=0)])
        good = (self.eligible[index].mean(axis=0) >= 0.5) & np.isfinite(mean).all(axis=1)
        return read(mean[good], rate)

    def worth(self, rate):
        """Read the mean curve; NaN also where one answer to everybody is right more often."""
        value = self.at(rate, self.splits)
        return value if value > self.least else np.nan

    def leave_one_out(self, rate, splits):
        """Read the mean curve without each of the splits."""
        return np.array([self.at(rate, [s for s in splits if s != one]) for one in splits])


def jackknife(values):
    """Give the standard error of a statistic from its values without each of the splits."""
    values = values[np.isfinite(values)]
    n = len(values)
    return float(np.sqrt((n - 1) / n * np.sum((values - values.mean()) ** 2))) if n > 1 else np.nan


def difference(ours, other, rate):
    """Paired difference of the readings at a rate, and its standard error."""
    splits = sorted(set(ours.splits) & set(other.splits))
    at = ours.at(rate, splits) - other.at(rate, splits)
    return at, jackknife(ours.leave_one_out(rate, splits) - other.leave_one_out(rate, splits))


def verdict(ours, others, rate):
    """Say how ours stands among the others at a rate, and by which rival that is told."""
    here = np.isfinite(ours.worth(rate))
    there = {k: c.worth(rate) for k, c in others.items()}
    there = {key: value for key, value in there.items() if np.isfinite(value)}
    best = max(there, key=there.get, default=None)
    if not here:
        return (
            ("not there", best, np.nan, np.nan) if there else ("nobody there", None, np.nan, np.nan)
        )
    if best is None:
        return "alone there", None, np.nan, np.nan
    found = {key: difference(ours, others[key], rate) for key in there}
    worst = [k for k, (d, se) in found.items() if d <= -LEAST and not d > -2 * se]
    if worst:
        # Without an error, where few splits get there, nothing can be told.
        sure = [k for k in worst if np.isfinite(found[k][1])]
        key = min(sure or worst, key=lambda k: found[k][0])
        return "below" if sure else "cannot be told", key, *found[key]
    d, se = found[best]
    return "above" if d >= LEAST and d >= 2 * se else "level", best, d, se


def constant_accuracy(results, name):
    curves = results.get((name, PARITY, "constant"))
    return curves.accuracy.mean(axis=0)[0] if curves is not None and curves.splits else np.nan


def ask_for_worth(results):
    """Count no reading of parity that one answer to everybody beats by LEAST."""
    for (name, notion, _), curves in results.items():
        if notion == PARITY and np.isfinite(constant := constant_accuracy(results, name)):
            curves.least = constant - LEAST


def cell(curves, rate):
    value = curves.at(rate, curves.splits)
    if not np.isfinite(value):
        return "–"
    error = jackknife(curves.leave_one_out(rate, curves.splits))
    beaten = "°" * (not value > curves.least)
    return f"{value:.4f}{beaten}" + (f"\u00a0({round(error * 1e4)})" if np.isfinite(error) else "")


def table_lines(name, keys, results):
    """Write one table's figures, a row for each method."""
    some = next(results[name, PARITY, k] for k in keys if (name, PARITY, k) in results)
    lines = ["", f"### {name}", ""]
    lines += [f"*{WARNED[name]}.*", ""] if name in WARNED else []
    lines += [
        f"{len(some.splits)} splits; constant answer {constant_accuracy(results, name):.4f}.",
        "",
        "| method | .80 | .90 | .95 | unprocessed | CPU s | MiB |",
        "|---|---|---|---|---|---|---|",
    ]
    for key in keys:
        curves = results.get((name, PARITY, key))
        if curves is None or key == "constant":
            continue
        title = METHODS[key].name + " †" * (key in AWARE)
        title = f"**{title}**" if key.startswith("evenhand") else title
        if not curves.splits:
            lines.append(f"| {title} | failed: {curves.errors[0][:80]} | | | | | |")
            continue
        cells = [title, *(cell(curves, rate) for rate in RATES)]
        undone, cpu, memory = (curves.once[c] for c in ("unprocessed", "cpu", "memory_mib"))
        cells += [f"{undone:.4f}" if undone == undone else "–", f"{cpu:.1f}", f"{memory:.0f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def league_verdicts(league, names, results):
    """Verdicts of one league: (table, rate) to (verdict, ours, rival, difference, error)."""
    ours, others, _ = LEAGUES[league]
    found = {}
    for name in names:
        mine = {k: results[name, PARITY, k] for k in ours if (name, PARITY, k) in results}
        field = {k: results[name, PARITY, k] for k in others if (name, PARITY, k) in results}
        mine, field = ({k: c for k, c in part.items() if c.splits} for part in (mine, field))
        if mine and field:
            for rate in RATES:
                each = [(key, *verdict(curves, field, rate)) for key, curves in mine.items()]
                key, what, *rest = min(each, key=lambda v: KINDS.index(v[1]))
                found[name, rate] = (what, key, *rest)
    return found


def by_chance(names, results):
    """Say how many comparisons of two methods are lost, and how many would be if all were level."""
    n, lost, expected = 0, 0, 0.0
    for ours, others, _ in LEAGUES.values():
        for name in names:
            mine, field = (
                [c for k in keys if (c := results.get((name, PARITY, k))) and c.splits]
                for keys in (ours, others)
            )
            for a, b, rate in product(mine, field, RATES):
                if np.isfinite(a.worth(rate)) and np.isfinite(b.worth(rate)):
                    d, se = difference(a, b, rate)
                    if np.isfinite(se) and se > 0:
                        n += 1
                        lost += d <= -2 * se
                        splits = len(set(a.splits) & set(b.splits))
                        expected += float(student.cdf(-2, splits - 1))
    return (
        f"{n} times one of ours and one rival both get to a rate; {lost} times ours is below by "
        f"two standard errors. By chance, were all level, that would be {expected:.0f} times."
    )


def told(place, found):
    """Say one loss."""
    (name, rate), (what, _, rival, d, se) = place, found
    by = METHODS[rival].name
    if what == "not there":
        return f"{name} at {rate:g} (not there; {by} is)"
    return f"{name} at {rate:g} ({-d:.4f} ± {se:.4f} below {by})"


def below(name, ours, other, worth=False):
    """Say at which rates ours is below another method by two standard errors, and by LEAST.

    ``worth``: also where only the other is there, worth more than one answer to everybody.
    """
    found = []
    for rate in RATES:
        d, se = difference(ours, other, rate)
        if d < -2 * se and (d <= -LEAST or not worth):
            found.append(f"{name} at {rate:g} ({d:+.4f} ± {se:.4f})")
        elif worth and np.isfinite(other.worth(rate)) and not np.isfinite(ours.worth(rate)):
            found.append(f"{name} at {rate:g} (not there)")
    return found


def _is_below(gain):
    """Say whether differences, one of each split, are below 0 by two standard errors and LEAST."""
    if len(gain) < 2:
        return False
    return gain.mean() <= min(-LEAST, -2 * gain.std(ddof=1) / np.sqrt(len(gain)))


def constants_beaten(names, results):
    """Targets of ours that the constant answer beats on the splits that call them feasible."""
    wrong = []
    for key in ("evenhand", "evenhand_scores", "evenhand_boosted"):
        for name in names:
            curves, constant = (results.get((name, PARITY, k)) for k in (key, "constant"))
            if not (curves and constant and curves.splits == constant.splits):
                continue
            gain = curves.accuracy - constant.accuracy[:, :1]
            bad = [_is_below(of[said]) for of, said in zip(gain.T, curves.feasible.T, strict=True)]
            taus = [f"{tau:g}" for tau, is_bad in zip(TAUS, bad, strict=True) if is_bad]
            wrong += [f"{METHODS[key].name}, {name}, τ = {', '.join(taus)}"] if taus else []
    return wrong


def judge(names, results):
    """Say what the project asks of itself, and whether it is so."""
    ask_for_worth(results)
    verdicts = {league: league_verdicts(league, names, results) for league in LEAGUES}
    lines, ok = [], True

    def say(text, wrong, ran=True):
        nonlocal ok
        ok &= not wrong
        open_ = isinstance(ran, dict) and sum(v[0] == "cannot be told" for v in ran.values())
        state = f"cannot be told in {open_} cells" if open_ else "ok"
        state = "not run" if not ran else "MISSED" if wrong else state
        lines.append(f"- {text}: **{state}**{'; ' if wrong else ''}{'; '.join(wrong)}.")

    def losses(league):
        return [told(p, v) for p, v in verdicts[league].items() if v[0] in ("below", "not there")]

    linear, scores = verdicts["linear"], verdicts["scores"]
    say(
        "linear, in no cell below the best single linear rival, and there where one is",
        losses("linear"),
        linear,
    )
    worse = constants_beaten(names, results)
    say("never below the constant answer at a τ that is called feasible", worse, linear)
    say(
        "against several scores or a lottery one of ours is level in every cell",
        losses("scores"),
        scores,
    )
    mine, post = (
        {n: results.get((n, PARITY, k)) for n in names} for k in ("evenhand_boosted", "linear_post")
    )
    both = [n for n in names if mine[n] and post[n] and mine[n].splits and post[n].splits]
    worse, slow = [], []
    for name in both:
        worse += below(name, mine[name], post[name])
        ratio = mine[name].once["cpu"] / post[name].once["cpu"]
        slow += [f"{name} {ratio:.2f}"] if ratio > 1.5 else []
    say("boosted, not below LinearPost by two standard errors in any cell", worse, both)
    say("boosted, at most 1.5 times LinearPost's CPU", slow, both)
    adult = mine.get("adult")
    if adult and adult.splits:
        bars = zip(RATES, (0.852, 0.848, 0.846), strict=True)
        at = {r: (adult.at(r, adult.splits), bar) for r, bar in bars}
        short = [f"{v:.4f} at {r:g}" for r, (v, bar) in at.items() if not v >= bar - 0.0005]
        say("boosted on Adult about .852/.848/.846 at .80/.90/.95", short)
    odds, post = (results.get(("adult", ODDS, k)) for k in ("evenhand_boosted", "linear_post"))
    if odds and odds.splits:
        value = odds.at(0.9, odds.splits)
        rates = [odds.rate.mean(axis=0).max()]
        rates += [post.rate.mean(axis=0).max()] if post and post.splits else []
        highest = ", LinearPost's ".join(f"{rate:.3f}" for rate in rates)
        say(
            "equalised odds on Adult, boosted, at a test rate of .90 at least .85",
            []
            if value >= 0.85
            else [
                f"{value:.4f}; the highest mean test rate is {highest}".replace("nan", "not there")
            ],
        )
    mine, parity = (
        {n: results.get((n, PARITY, k)) for n in names}
        for k in ("evenhand_boosted_aware", "error_parity")
    )
    both = [n for n in names if mine[n] and parity[n] and mine[n].splits and parity[n].splits]
    worse = [text for n in both for text in below(n, mine[n], parity[n], worth=True)]
    say("boosted with group cuts, not below error-parity on any table", worse, both)
    return verdicts, lines, ok


LEGEND = """
## Every table

Accuracy at a rate, in brackets one standard error in units of the last digit; –: the mean curve
does not get there; °: one answer to everybody is right more often, by .001 or more. *Unprocessed*:
test accuracy of the method's score, as it stands for τ = .8, with the group cuts that were best for
accuracy in training (median over splits). †: needs the group. CPU seconds for all τ together on one
thread, and the rise of the process's memory."""


def page(names, keys, results, verdicts, judged):
    """Write all figures in Markdown, our losses first."""
    lost, found = [], [v[0] for of in verdicts.values() for v in of.values()]
    n_lost, n_cells = sum(v in ("below", "not there") for v in found), len(found)
    for league, (_, _, what) in LEAGUES.items():
        bad = [told(p, v) for p, v in verdicts[league].items() if v[0] in ("below", "not there")]
        lost += [f"- with {what}: {'; '.join(bad)}"] if bad else []
    said = f"In {n_lost} of the {n_cells} cells:" if lost else "In no cell of these tables."
    lines = [f"**Where we lose.** {said}", "", *lost]
    fewest = min(len(curves.splits) for curves in results.values() if curves.splits)
    if fewest < ENOUGH:
        lines += [
            "",
            f"*Preliminary*: some figures are of {fewest} splits; {ENOUGH} are asked for.",
        ]
    lines += ["", f"| contest | ours | {' | '.join(KINDS)} |", "|---" * (len(KINDS) + 2) + "|"]
    for league, (ours, _, what) in LEAGUES.items():
        found = [v[0] for v in verdicts[league].values()]
        if found:
            who = " or ".join(METHODS[key].name for key in ours)
            counts = " | ".join(str(found.count(kind)) for kind in KINDS)
            lines.append(f"| {what} | {who} | {counts} |")
    lines += ["", by_chance(names, results)]
    lines += ["", "Asked of ourselves:", "", *judged, LEGEND]
    for name in names:
        lines += table_lines(name, keys, results)
    return "\n".join(lines) + "\n"


BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


def fill(path, text):
    """Put the text between the page's marks."""
    old = path.read_text(encoding="utf-8")
    head, _, rest = old.partition(BEGIN)
    _, _, tail = rest.partition(END)
    path.write_text(f"{head}{BEGIN}\n\n{text}\n{END}{tail}", encoding="utf-8")
