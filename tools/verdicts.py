"""List what changed between two pages of verdicts, with the reason of each change.

git show HEAD:docs/reproduction/claims.md > before.md
python tools/verdicts.py before.md docs/reproduction/claims.md > docs/reproduction/changes.md
"""

import re
import sys
from pathlib import Path

# What the older page calls the verdicts.
RENAMED = {
    "holds in the corrected reading only": "corrected only",
    "holds in the printed reading only": "printed only",
    "cannot be decided": "cannot be decided here",
}
# Claims in other words, or with another criterion.
REWORDED = {
    "Perfect parity occurs during training for every ρ": (
        "Perfect parity occurs during training for every synthetic dataset"
    )
}
CRITERIA = {
    "Perfect parity": "Adult is no synthetic dataset",
    "At τ = 0.9 the statistical rate": "rivals count for no more than the τ that was asked",
    "With the regulariser it does not": "the fairest of the last ten iterates, which swing",
    "The false discovery ratio": "nothing is compared where no rule can reach τ",
    "Zhang": "the rivals as shipped are the centre",
    "Where our rate is smaller": (
        "the rivals as shipped are the centre, and differences inside the spread do not count"
    ),
    "The noise column's weight grows in size": (
        "the noise is drawn anew: a rank correlation of 0.79 where 0.8 is asked, which was 0.86"
    ),
}
VERDICTS = {
    "depends on": "the choice is varied now",
    "undecided": "a margin inside the spread over the seeds decides nothing",
    "cannot be decided here": "these data cannot tell, with the bound in the row",
    "holds (vacuous)": "the bound can never be missed, which the verdict says now",
}
ROW = re.compile(r"^\| \d+ \| (.+?) \([^|()]*\)\.<br>.*\| \*\*(.+?)\*\*")


def read(path):
    """Verdicts by statement."""
    rows = map(ROW.match, Path(path).read_text(encoding="utf-8").splitlines())
    return {row[1]: RENAMED.get(row[2], row[2]) for row in rows if row}


def reason(claim, verdict):
    """Why the verdict is another one."""
    found = [text for start, text in CRITERIA.items() if claim.startswith(start)]
    found += [text for start, text in VERDICTS.items() if verdict.startswith(start)]
    return "; ".join(found) or "the figures are other ones"


def changes(before, after):
    """Give claim, verdict before, verdict now and reason of all that changed."""
    before = {REWORDED.get(claim, claim): verdict for claim, verdict in before.items()}
    for claim, verdict in after.items():
        if claim not in before:
            yield claim, "–", verdict, "the sentence had no row"
        elif before[claim] != verdict:
            yield claim, before[claim], verdict, reason(claim, verdict)
    for claim in before.keys() - after.keys():
        yield claim, before[claim], "–", "a slip of the text, not a claim"


def main():
    """Print the table."""
    print("| Claim | Before | Now | Why |\n|---|---|---|---|")
    for row in changes(*map(read, sys.argv[1:3])):
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
