"""List the sentences of all errors and warnings, and hold them to their rules.

    python tools/messages.py          # compare with tests/messages.txt
    python tools/messages.py --write  # write it

An error or a warning that carries data is made by ``InputError(code, template, **data)``,
``InputWarning`` or a subclass of them, or by a function that passes its arguments ``code`` and
``template`` on. A code has one template, written in the call or as a constant of a module, and what
stands in the template's braces is given by the call.
"""

import ast
import re
import sys
from pathlib import Path
from string import Formatter

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "evenhand"
SNAPSHOT = ROOT / "tests" / "messages.txt"
# Classes whose instances are messages; subclasses are found in the source.
MESSAGES = {"InputError", "InputWarning"}
# An option as a sentence names it; a CSS variable follows a bracket, a rule a dash.
OPTION = re.compile(r"(?<![\w(-])--[a-z]")


def read_source():
    """Give the syntax tree of each file, by its path below the package."""
    return {
        path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(SOURCE.rglob("*.py"))
    }


def name_of(node):
    """Give the last part of a name such as ``errors.InputError``."""
    return getattr(node, "id", None) or getattr(node, "attr", None)


def message_classes(trees):
    """Give the names of the classes whose instances are messages."""
    names = set(MESSAGES)
    classes = [n for tree in trees.values() for n in ast.walk(tree) if isinstance(n, ast.ClassDef)]
    while new := {c.name for c in classes if names & {name_of(b) for b in c.bases}} - names:
        names |= new
    return names


def constants(trees):
    """Give texts that are constants of modules, by name."""
    return {
        target.id: node.value.value
        for tree in trees.values()
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name) and isinstance(node.value.value, str)
    }


def passing_functions(trees, makers):
    """Give functions that make a message of their arguments ``code`` and ``template``.

    By name, with how many arguments stand before these two.
    """
    passing = {}
    for tree in trees.values():
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef):
                continue
            names = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)]
            calls = [n for n in ast.walk(function) if isinstance(n, ast.Call)]
            made = any(
                name_of(call.func) in makers and [name_of(a) for a in call.args[:2]] == names[-2:]
                for call in calls
            )
            if made and names[-2:] == ["code", "template"]:
                passing[function.name] = len(names) - 2 - (names[0] in ("self", "cls"))
    return passing


def collect(trees):
    """Give the template of each code, and what breaks the rules."""
    classes, texts = message_classes(trees), constants(trees)
    makers = dict.fromkeys(classes, 0) | passing_functions(trees, classes)
    templates, faults = {}, []

    def text(node):
        if isinstance(node, ast.Name):
            return texts.get(node.id)
        return node.value if isinstance(node, ast.Constant) else None

    for path, tree in trees.items():
        for call in ast.walk(tree):
            if not isinstance(call, ast.Call) or name_of(call.func) not in makers:
                continue
            first = makers[name_of(call.func)]
            names = [name_of(arg) for arg in call.args[first : first + 2]]
            if names == ["code", "template"]:
                continue  # what passes them on
            code, template = (*map(text, call.args[first : first + 2]), None, None)[:2]
            where = f"{path}:{call.lineno}"
            if not isinstance(code, str) or not isinstance(template, str):
                faults.append(f"{where}: code and template are not literal texts")
                continue
            if not re.fullmatch("[a-z][a-z0-9_]*", code):
                faults.append(f"{where}: the code {code!r} is not in snake_case")
            if templates.setdefault(code, template) != template:
                faults.append(f"{where}: the code {code!r} has another template elsewhere")
            given = {keyword.arg for keyword in call.keywords}
            fields = {field for _, field, _, _ in Formatter().parse(template) if field is not None}
            if None not in given and not {re.split(r"[.\[]", f)[0] for f in fields} <= given:
                faults.append(f"{where}: the template needs {sorted(fields - given)}")
    return templates, faults


def snapshot(templates):
    """Write the codes and their sentences, one line each."""
    return "".join(f"{code}: {template}\n" for code, template in sorted(templates.items()))


def docstrings(tree):
    """Give the docstrings' nodes, which no user meets in a sentence."""
    holders = ast.Module | ast.ClassDef | ast.FunctionDef
    return {
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, holders) and ast.get_docstring(node, clean=False) is not None
    }


def options_named(trees):
    """Give where a text names an option of the command outside the command."""
    for path, tree in trees.items():
        texts = (n for n in ast.walk(tree) if isinstance(n, ast.Constant))
        for node in set(texts) - docstrings(tree):
            if isinstance(node.value, str) and OPTION.search(node.value):
                yield f"{path}:{node.lineno}: {OPTION.search(node.value)[0]}…"


def plain_errors(trees):
    """Give where an error is raised, or a warning given, that carries no data."""
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Raise) and node.exc is not None:
                raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
                plain = name_of(raised) == "ValueError"
            else:  # a warning that carries data is its own category
                is_warning = isinstance(node, ast.Call) and name_of(node.func) == "warn"
                plain = is_warning and (
                    len(node.args) > 1
                    or isinstance(node.args[0], ast.Constant | ast.JoinedStr)
                    or "category" in {keyword.arg for keyword in node.keywords}
                )
            if plain:
                yield f"{path}:{node.lineno}"


def main(args):
    """Compare the sentences with the file, or write it."""
    templates, faults = collect(read_source())
    for fault in faults:
        print(fault)
    if "--write" in args:
        SNAPSHOT.write_text(snapshot(templates), encoding="utf-8")
        print(f"{len(templates)} sentences: {SNAPSHOT.relative_to(ROOT)}")
    elif SNAPSHOT.read_text(encoding="utf-8") != snapshot(templates):
        print(f"{SNAPSHOT.relative_to(ROOT)} is out of date: python tools/messages.py --write")
        return 1
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
