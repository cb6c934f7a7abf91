"""Put small mistakes into the source, one at a time, and see whether the tests notice.

    python tools/mutate.py --n 88 --seed 0 --jobs 2     # 8 in each of 11 modules
    python tools/mutate.py --only frontier#17           # one of them again
    python tools/mutate.py --n 88 --list                # what would be tried

Operators: comparisons moved by equality or turned round, + and − and × and ÷ exchanged, ``and`` for
``or``, numbers one more or one less, True for False, ``not`` and minus dropped, conditions negated,
min for max and any for all, a refusal left out. A mutant is run against the tests of its module in
a copy of the tree, never in place. It is killed if they fail or do not end. Mutants that no test
could notice are named in ``EQUIVALENT`` with the reason, and not counted. Exit code 1 if more than
5% of the others survive.
"""

import argparse
import ast
import copy
import difflib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGE = "src/evenhand"
CUTS = "frontier models/test_labels.py models/test_classifier.py"
# Of each module its file, the tests that are about it, and, if not all count, its functions.
MODULES = {
    "rates": ("core/rates.py", "core/test_rates.py frontier/test_selection.py", ""),
    "notions": ("core/notions.py", "core/test_notions.py core/test_oracle.py", ""),
    "updates": ("core/updates.py", "core", ""),
    "solvers": ("core/solvers.py", "core models/test_classifier.py", ""),
    "frontier": (
        "frontier/sweep.py",
        CUTS,
        "",
    ),
    "points": (
        "frontier/points.py",
        CUTS,
        "",
    ),
    "bounds": ("statistics/bounds.py", "frontier/test_selection.py", ""),
    "choice": ("frontier/choice.py", "frontier/test_selection.py", ""),
    "held_out": ("frontier/held_out.py", "frontier/test_selection.py models/test_labels.py", ""),
    "archive": ("persist/archive.py", "persist", ""),
    "state": ("persist/state.py", "persist", ""),
    "checks": ("persist/checks.py", "persist", ""),
    "escaping": (
        "views/report/page.py",
        "views/test_report.py",
        "clean _shown script_json _policy _text _attributes _assets",
    ),
}
# Lines as some mutants have them, which give the same answers.
EQUIVALENT = {
    "edges = np.arange(1, RATE_BINS + (3)) / RATE_BINS": "one more edge above all rates",
    "MOST_ROWS = (1000000001.0)": "a limit that is one of many as good",
    "pairs: int = (999999)  # of labels, among which these cells are searched": "such a limit",
    "plans, text = [], (1)": "one character less within such a limit",
    "pooled[:-1] += counts[np.minimum(i, max(len(fold) - 1, (-1)))]": (
        "of a fold without points the first count is the last as well"
    ),
    "if n_labels > (1):": "of two labels a limit is checked that they cannot reach",
    "if (self.faster is None):": "which of two ways to share the same work among the cores",
    "inverse = np.linalg.pinv(units @ units.T, rcond=1e-8, hermitian=(False))": (
        "a faster way to the same inverse of a symmetric matrix"
    ),
    "few = self.take(order[accuracy >= best - (1.000000000001)])": (
        "leaves more to a slower sort, which drops it"
    ),
    "if (exact or not compiled):": "drops points that are beaten before others do",
    "first = np.unique(np.linspace(0, len(iterates) - 1, (5)).astype(np.intp))": (
        "the order in which iterates are looked at"
    ),
    "answer = scores[at, (-1)] > c[group]": "the first score is the last: two labels have one",
    "for j, s in enumerate(scores[:, (-1)]):": "the first score is the last: two labels have one",
    "return phi, (d_phi / sign)": "the sign is 1 or -1",
    "if L > (2):": "a row has one score, or at least three",
    "few = self.take(order[(accuracy > best - 1e-12)])": "leaves less to a slower sort, by a hair",
    "gaps = np.diff(np.sort(found_in([0])[0][(-1)]))": "counts cuts on the scores of another label",
    "autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=(False)": (
        "blanks between elements of a page"
    ),
}
COMPARISONS = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
NAMES = {
    a: b
    for pair in (("min", "max"), ("minimum", "maximum"), ("argmin", "argmax"), ("any", "all"))
    for a, b in (pair, pair[::-1])
}


class Mutant(NamedTuple):
    """A module's source with one node written otherwise."""

    name: str
    module: str
    line: int
    what: str
    source: bytes

    @property
    def text(self):
        """The line that was changed, as it is now."""
        return self.source.decode().splitlines()[self.line - 1].strip()


def changed(node, **fields):
    other = copy.deepcopy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


def others(node):
    """What a node may be mistaken for, each with a word for it."""
    if isinstance(node, ast.Compare):
        for i, op in enumerate(node.ops):
            for kind in COMPARISONS[type(op)]:
                yield "compare", changed(node, ops=[*node.ops[:i], kind(), *node.ops[i + 1 :]])
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in ARITHMETIC:
        yield "arithmetic", changed(node, op=ARITHMETIC[type(node.op)]())
    elif isinstance(node, ast.BoolOp):
        yield "and/or", changed(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield "sign", node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield "constant", ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        for step in (-1, 1):
            yield "constant", ast.Constant(node.value + step)
    elif isinstance(node, ast.Name | ast.Attribute):
        field = "id" if isinstance(node, ast.Name) else "attr"
        if getattr(node, field) in NAMES:
            yield "min/max", changed(node, **{field: NAMES[getattr(node, field)]})
    elif isinstance(node, ast.Raise):
        yield "refusal", ast.Pass()
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        # Only the condition is written anew: the rest would lose its layout.
        yield "condition", ast.UnaryOp(ast.Not(), node.test)


def nodes(node, names, inside):
    """Nodes that run and count: no annotations, no words of an error, no decorators."""
    if isinstance(node, ast.FunctionDef):
        inside = inside or not names or node.name in names
    if inside and not isinstance(node, ast.Module):
        yield node
    if isinstance(node, ast.Raise):
        return
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                yield from nodes(child, names, inside)


def mutants(module):
    """Every mutant of a module, in the order of its lines."""
    file, _, names = MODULES[module]
    source = (ROOT / PACKAGE / file).read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for node in nodes(ast.parse(source), names.split(), not names):
        for what, other in others(node):
            place = node.test if what == "condition" else node
            start = starts[place.lineno - 1] + place.col_offset
            end = starts[place.end_lineno - 1] + place.end_col_offset
            text = ast.unparse(ast.fix_missing_locations(other))
            text = text if isinstance(other, ast.stmt) else f"({text})"
            new = source[:start] + text.encode() + source[end:]
            try:
                same = ast.dump(ast.parse(new)) == ast.dump(ast.parse(source))
            except SyntaxError:  # such as an attribute that is assigned to
                continue
            if same:  # 1e50 + 1 is 1e50
                continue
            found.append((place.lineno, what, new))
    found.sort(key=lambda each: each[0])
    return [Mutant(f"{module}#{i}", module, *each) for i, each in enumerate(found)]


def draw(n, seed):
    """As many mutants of each module, by chance."""
    chosen = []
    for i, module in enumerate(MODULES):
        every = mutants(module)
        k = min(len(every), n // len(MODULES) + (i < n % len(MODULES)))
        chosen += sorted(random.Random(f"{seed} {module}").sample(every, k), key=lambda m: m.line)
    return chosen


def difference(mutant):
    """Lines that differ."""
    before = (ROOT / PACKAGE / MODULES[mutant.module][0]).read_text(encoding="utf-8")
    lines = difflib.unified_diff(
        before.splitlines(), mutant.source.decode().splitlines(), lineterm="", n=0
    )
    return "\n".join(f"    {line}" for line in lines if not line.startswith(("---", "+++", "@@")))


def copied(folder):
    """Copy what the tests need."""
    for name in ("src", "tests", "docs", "README.md", "pyproject.toml"):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)
    return folder


def tests_fail(folder, module, timeout):
    """Run a module's tests in a copy; whether they fail, whether in time, and what they say."""
    tests = [f"tests/{name}" for name in MODULES[module][1].split()]
    path = os.pathsep.join(filter(None, [str(folder / "src"), os.environ.get("PYTHONPATH")]))
    # Compiled files are told apart by second and size, which two mutants may share.
    settings = {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow and not network"]
    process = subprocess.Popen(
        [*command, *tests],
        cwd=folder,
        env=os.environ | settings,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said = process.communicate(timeout=timeout)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return True, "timeout"
    return process.returncode != 0, said


def run(mutant, copies, timeout):
    """Try one mutant in a copy that is free; what became of it."""
    folder = copies.get()
    file = folder / PACKAGE / MODULES[mutant.module][0]
    before = file.read_bytes()
    try:
        file.write_bytes(mutant.source)
        failed, said = tests_fail(folder, mutant.module, timeout[mutant.module])
    finally:
        file.write_bytes(before)
        copies.put(folder)
    outcome = "timeout" if said == "timeout" else "killed" if failed else "SURVIVED"
    print(f"{outcome:8}  {mutant.name:14} line {mutant.line}: {mutant.what}", flush=True)
    if not failed:
        print(difference(mutant), flush=True)
    return mutant.module, failed


def unchanged(module, copies):
    """Seconds that a module's tests take, which must pass without a mistake."""
    folder, start = copies.get(), time.monotonic()
    failed, said = tests_fail(folder, module, None)
    copies.put(folder)
    if failed:
        sys.exit(f"the tests of {module} fail without a mutant:\n{said[-3000:]}")
    return time.monotonic() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=64, help="how many mutants, of all modules")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="how many at a time")
    parser.add_argument("--timeout", type=float, help="seconds a mutant may take")
    parser.add_argument("--only", nargs="+", help="these mutants, by name")
    parser.add_argument("--list", action="store_true", help="show the mutants, run nothing")
    options = parser.parse_args()
    chosen = draw(options.n, options.seed)
    if options.only:
        chosen = [m for module in MODULES for m in mutants(module) if m.name in options.only]
    known = [mutant for mutant in chosen if mutant.text in EQUIVALENT]
    chosen = [mutant for mutant in chosen if mutant.text not in EQUIVALENT]
    for mutant in known:
        print(f"passed over  {mutant.name} line {mutant.line}: {EQUIVALENT[mutant.text]}")
    if options.list:
        for mutant in chosen:
            print(f"{mutant.name} line {mutant.line}: {mutant.what}\n{difference(mutant)}")
        return
    with tempfile.TemporaryDirectory() as work, ThreadPoolExecutor(options.jobs) as pool:
        copies = SimpleQueue()
        for i in range(options.jobs):
            copies.put(copied(Path(work) / str(i)))
        modules = list(dict.fromkeys(m.module for m in chosen))
        seconds = list(pool.map(lambda module: unchanged(module, copies), modules))
        timeout = {m: options.timeout or 60 + 5 * s for m, s in zip(modules, seconds, strict=True)}
        found = list(pool.map(lambda m: run(m, copies, timeout), chosen))
    every, killed = Counter(m for m, _ in found), Counter(m for m, failed in found if failed)
    for module, n in every.items():
        print(f"{module:10} {killed[module]} of {n} killed")
    print(f"all        {killed.total()} of {len(found)} killed")
    sys.exit(killed.total() < 0.95 * len(found))


if __name__ == "__main__":
    main()
