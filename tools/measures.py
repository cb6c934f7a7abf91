"""Print how the source is laid out: what the floor plan is held to.

    python tools/measures.py

Modules at the package's root, long files, functions and classes, reads of names that are private to
another module, parameters of the estimators, and lines, those of the laboratory (``paper``) and of
other methods (``peers``) apart.
"""

import ast
import inspect
from pathlib import Path

ROOT = Path(__file__).parents[1] / "src" / "evenhand"
LONG_FILE, LONG_FUNCTION = 400, 80
# Names with an underscore that are everybody's: of named tuples, and of Python itself.
PUBLIC = {"_replace", "_asdict", "_fields", "_make", "_exit", "_getframe"}
# What the layout is held to, by tests/test_package.py.
MOST = {
    "modules at the root": 5,
    f"files over {LONG_FILE} lines": 15,
    f"functions over {LONG_FUNCTION} lines of code": 3,
    "largest class, lines": 650,
    "reads of other modules' private names": 9,
    "parameters of FairClassifier": 21,
    "classes at the root": 8,
    "commands": 14,
}


def code_lines(node, lines):
    """Lines of a node that are neither blank, nor comments, nor its docstrings."""
    hidden = set()
    for one in ast.walk(node):
        if isinstance(one, ast.Module | ast.FunctionDef | ast.ClassDef) and ast.get_docstring(one):
            hidden |= set(range(one.body[0].lineno, one.body[0].end_lineno + 1))
    first, last = getattr(node, "lineno", 1), getattr(node, "end_lineno", len(lines))
    kept = (i for i in range(first, last + 1) if i not in hidden)
    return sum(
        bool(lines[i - 1].strip()) and not lines[i - 1].strip().startswith("#") for i in kept
    )


def private_reads(tree):
    """Names with an underscore that are another object's or another module's."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls", "other")
            if not own and not node.attr.startswith("__") and node.attr not in PUBLIC:
                yield node.attr
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("evenhand"):
            yield from (a.name for a in node.names if a.name.startswith("_"))


def is_public_class(name):
    """Say whether a name at the root is a class to use; errors and warnings are only met."""
    import evenhand

    value = getattr(evenhand, name)
    return inspect.isclass(value) and not issubclass(value, BaseException)


def measure():
    """Give the measures by name."""
    files, functions, classes, reads = {}, {}, {}, 0
    total = {"all": 0, "code": 0, "product": 0}
    for path in sorted(ROOT.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        lines, tree, name = text.splitlines(), ast.parse(text), str(path.relative_to(ROOT))
        named = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)
                 and isinstance(n.value, ast.Name) and n.value.id == "self"}  # fmt: skip
        named |= {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
        reads += sum(read not in named for read in private_reads(tree))
        files[name] = len(lines)
        total["all"] += len(lines)
        total["code"] += code_lines(tree, lines)
        if path.relative_to(ROOT).parts[0] not in ("paper", "peers"):
            total["product"] += len(lines)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                functions[f"{name}:{node.lineno} {node.name}"] = code_lines(node, lines)
            elif isinstance(node, ast.ClassDef):
                classes[f"{name} {node.name}"] = node.end_lineno - node.lineno + 1
    import evenhand
    from evenhand.cli.app import app

    return (
        {
            "modules at the root": sum("/" not in name for name in files),
            f"files over {LONG_FILE} lines": sum(n > LONG_FILE for n in files.values()),
            f"functions over {LONG_FUNCTION} lines of code": sum(
                n > LONG_FUNCTION for n in functions.values()
            ),
            "largest class, lines": max(classes.values()),
            "reads of other modules' private names": reads,
            "parameters of FairClassifier": len(
                inspect.signature(evenhand.FairClassifier).parameters
            ),
            "classes at the root": sum(map(is_public_class, evenhand.__all__)),
            "commands": len(app.registered_commands),
            "lines": total["all"],
            "lines of code": total["code"],
            "lines without paper and peers": total["product"],
        },
        sorted(functions.items(), key=lambda item: -item[1])[:10],
        files,
    )


if __name__ == "__main__":
    measures, longest, sizes = measure()
    for what, value in measures.items():
        print(f"{what:42} {value:,}")
    print("\nlongest functions, lines of code")
    for what, value in longest:
        print(f"{value:6} {what}")
    print("\nlongest files")
    for what, value in sorted(sizes.items(), key=lambda item: -item[1])[:15]:
        print(f"{value:6} {what}")
