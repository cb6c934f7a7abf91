"""How targets are written: the words of each comparison of groups.

Whoever adds a comparison to :data:`evenhand.core.targets.COMPARISONS` adds its words here; screens,
pictures and the page take them from here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import floor
from typing import Any

from evenhand.core.targets import reaches
from evenhand.views.formats import NONE, fixed


@dataclass(frozen=True)
class TargetWords:
    r"""The words of one comparison.

    A value is the larger the fairer, as :class:`~evenhand.core.targets.Target` has it; a reader
    sees the value times ``sign``: of a difference, which is compared as its negative, the
    difference.

    Parameters
    ----------
    name : str
        What is compared with the target.
    symbol : str
        The letter of a target.
    parity : float
        The value when all groups have the same rate.
    missed, passed, better, worse : str
        On which side of the target a value is, and where values are fairer, or less fair.
    between : str
        Between which rates, behind the name.
    meaning : str
        What the value is, for a reader who meets it first.
    demand : callable
        What a target asks of the rates, in words.
    rule : callable
        The name of the rule that a target stands for.
    floor : callable
        Of the highest rate, ``(a, b)``: with a rate of at least :math:`a + b \ell` a group reaches
        the target :math:`\ell`.
    levels : tuple of float
        Round targets, which tables of a frontier are read at.
    sign : float
        1, or -1 where people read the negative.
    """

    name: str
    symbol: str
    parity: float
    missed: str
    passed: str
    better: str
    worse: str
    between: str
    meaning: str
    demand: Callable[[float], str]
    rule: Callable[[float], str]
    floor: Callable[[float], tuple[float, float]]
    levels: tuple[float, ...]
    sign: float = 1.0

    def text(self, value: float | None, level: float) -> str:
        """Write a value with three digits, or as many as show whether it reaches the target."""
        if value is None or value != value:
            return NONE
        for digits in range(3, 7):
            text = fixed(self.sign * value, digits)
            if reaches(self.sign * float(text), level) == reaches(value, level):
                return text
        return f"just {self.missed} {self.level(level)}" if not reaches(value, level) else text

    def level(self, level: float) -> str:
        """Write a target with two digits, or three or four if it has them."""
        level *= self.sign
        whole = (d for d in (2, 3) if abs(10**d * level - floor(10**d * level + 0.5)) < 1e-9)
        return fixed(level, next(whole, 4))

    def goal(self, level: float) -> str:
        """Write a target with its letter."""
        return f"{self.symbol} = {self.sign * level + 0.0:g}"  # 0 has no sign

    def table_levels(self, lowest: float, own: float) -> list[float]:
        """Give round targets from the last one that the lowest value reaches, and the own one."""
        reached = [level for level in self.levels if reaches(lowest, level)]
        return sorted({own, *reached[-1:], *(v for v in self.levels if not reaches(lowest, v))})

    def plain(self) -> dict[str, Any]:
        """Give what the page's script and its sentences take."""
        names = ("name", "symbol", "missed", "passed", "better", "sign", "parity")
        return {name: getattr(self, name) for name in names} | {"Name": self.name.capitalize()}


def _share_of_highest(level: float) -> str:
    if level >= 1:
        return "all alike"
    share = "four fifths" if abs(level - 0.8) < 1e-9 else f"{fixed(100 * level, 0)}%"
    return f"the lowest at least {share} of the highest"


LEVELS_APART = (-0.3, -0.2, -0.15, -0.1, -0.07, -0.05, -0.03, -0.02, -0.01, 0.0)

TARGET_WORDS = {
    "ratio": TargetWords(
        name="ratio",
        symbol="τ",
        parity=1.0,
        missed="below",
        passed="above",
        better="more",
        worse="less",
        between="of the smallest to the largest",
        meaning="the lowest group's rate divided by the highest group's; 1 means all groups have "
        "the same rate",
        demand=_share_of_highest,
        rule=lambda level: "the four-fifths rule" if level == 0.8 else f"a ratio of {level:g}",
        floor=lambda highest: (0.0, highest),
        levels=(0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.99, 1.0),
    ),
    "difference": TargetWords(
        name="difference",
        symbol="ε",
        parity=0.0,
        missed="above",
        passed="below",
        better="less",
        worse="more",
        between="of the largest and the smallest",
        meaning="the highest group's rate less the lowest group's; 0 means all groups have the "
        "same rate",
        demand=lambda level: f"at most {0.0 - level:g} apart",
        rule=lambda level: f"a difference of at most {0.0 - level:g}",
        floor=lambda highest: (highest, 1.0),
        levels=LEVELS_APART,
        sign=-1.0,
    ),
    "mixed": TargetWords(
        name="shortfall",
        symbol="shortfall",
        parity=0.0,
        missed="above",
        passed="below",
        better="less",
        worse="more",
        between="of the worst target",
        meaning="the largest of what the ratios lack of 1 and the differences, each in units of "
        "what its target allows over the strictest; 0 means all groups have the same rates",
        demand=lambda level: f"with a shortfall of at most {0.0 - level:g}",
        rule=lambda level: f"a shortfall of at most {0.0 - level:g}",
        floor=lambda highest: (0.0, 0.0),  # its rates have their own
        levels=LEVELS_APART,
        sign=-1.0,
    ),
}


def words_of(record: Mapping[str, Any]) -> TargetWords:
    """Give the words of the comparison that a summary, an audit or a page's data name."""
    return TARGET_WORDS[record.get("comparison", "ratio")]
