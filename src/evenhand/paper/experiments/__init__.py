"""The paper's experiments, again, and its claims, judged.

:func:`reproduce` runs them all, or those that are named, and writes tables, pictures and
``claims.md`` into a folder; ``evenhand reproduce`` does the same from the command line.
"""

from evenhand.paper.experiments._claims import Claim, Experiment, Finding, Verdict, tally
from evenhand.paper.experiments._reproduce import EXPERIMENTS, reproduce

__all__ = ["EXPERIMENTS", "Claim", "Experiment", "Finding", "Verdict", "reproduce", "tally"]
