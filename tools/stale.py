"""List the pages whose figures are older than the code that they measure.

    python tools/stale.py          # or: make stale

A page's figures are the lines with a decimal number in its tables, or in its blocks of output if it
has no such tables, and they are as old as the newest of these lines. The code is that of the
packages the page measures, without comments and docstrings: if it is another now, the page is
listed, with the packages that changed. Exit code 1 if there is one.
"""

import ast
import io
import re
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = "src/evenhand"
FIT = ("core", "engines", "frontier", "models")
PEERS = (*FIT, "peers")
PAGES = {
    "docs/results.md": PEERS,
    "docs/solvers.md": FIT,
    "docs/boosted.md": FIT,
    "docs/adjust.md": PEERS,
    "docs/contest.md": PEERS,
    "docs/guarantees.md": FIT,
    "docs/reproduction/claims.md": (*PEERS, "datasets", "paper"),
    "benchmarks/notes/holds/confidence.md": FIT,
    "benchmarks/notes/holds/holds.md": PEERS,
    "benchmarks/notes/methods/methods-equalized_odds.md": FIT,
    "benchmarks/notes/methods/methods.md": FIT,
    "benchmarks/notes/defaults.md": FIT,
    "benchmarks/notes/guarantees.md": FIT,
    "benchmarks/notes/large_tables.md": FIT,
    "benchmarks/notes/solvers.md": FIT,
    "benchmarks/notes/speed.md": FIT,
}
"""What each page measures; pages whose figures a test compares are not here."""


DECIMAL = re.compile(r"\.\d")


def git(*args):
    """What git says."""
    return subprocess.run(["git", *args], cwd=ROOT, check=True, capture_output=True).stdout


def newest_figure(page):
    """The commit of the newest figure of a page, and its date; None for uncommitted ones."""
    tables, blocks, commit, when, block = [], [], "", 0, None
    for line in git("blame", "--line-porcelain", "--", page).decode().splitlines():
        words = line.split(" ")
        if line.startswith("\t"):
            text = line[1:].lstrip("> ")
            if text.startswith("```"):
                block = text[3:].strip() if block is None else None
            elif DECIMAL.search(text) and text.startswith("|"):
                tables.append((when, commit))
            elif DECIMAL.search(text) and block in ("", "text"):
                blocks.append((when, commit))
        elif words[0] == "committer-time":
            when = int(words[1])
        elif len(words[0]) == 40 and len(words) in (3, 4):
            commit = words[0]
    found = tables or blocks
    return max(found)[1] if found else None


def bare(text):
    """The code of a module, without comments and docstrings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [
                one
                for one in body
                if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
            ]
    return ast.dump(tree)


def code_now():
    """Bare code of every module as it is."""
    paths = sorted((ROOT / SOURCE).rglob("*.py"))
    return {p.relative_to(ROOT).as_posix(): bare(p.read_text(encoding="utf-8")) for p in paths}


def code_at(commit):
    """Bare code of every module at a commit."""
    with tarfile.open(fileobj=io.BytesIO(git("archive", commit, SOURCE))) as tar:
        files = [f for f in tar if f.name.endswith(".py")]
        return {f.name: bare(tar.extractfile(f).read().decode()) for f in files}


def changed(packages, before, now):
    """Packages with other code than before."""

    def part(code, package):
        return {k: v for k, v in code.items() if k.startswith(f"{SOURCE}/{package}/")}

    return [name for name in packages if part(before, name) != part(now, name)]


def main():
    """Print the stale pages; return whether there are any."""
    now, before, stale = code_now(), {}, False
    for page, packages in PAGES.items():
        commit = newest_figure(page)
        if commit is None or set(commit) == {"0"}:  # no figures, or not committed yet
            continue
        if commit not in before:
            before[commit] = code_at(commit)
        other = changed(packages, before[commit], now)
        if other:
            stale = True
            date = git("show", "-s", "--format=%cs", commit).decode().strip()
            print(f"{page}: figures of {date} ({commit[:7]}); since then {', '.join(other)}")
    return stale


if __name__ == "__main__":
    sys.exit(main())
