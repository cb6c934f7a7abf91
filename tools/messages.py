"""Hold errors and warnings to the file of their sentences.

    python tools/messages.py

An error or a warning that carries data is made by ``InputError(code, **data)``, ``InputWarning`` or
a subclass of them, or by a function that passes its argument ``code`` on. The code is a literal
text, its sentence stands in ``core/messages.toml``, and what that has in braces is given by the
call. No sentence is without a use.
"""

import ast
import re
import sys
import tomllib
from pathlib import Path
from string import Formatter

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "evenhand"
SENTENCES = SOURCE / "core" / "messages.toml"
# Classes whose instances are messages; subclasses are found in the source.
MESSAGES = {"Message", "InputError", "InputWarning"}
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


def read_sentences():
    """Give the sentence of each code."""
    return tomllib.loads(SENTENCES.read_text(encoding="utf-8"))


def passing_functions(trees, makers):
    """Give functions that make a message of their argument ``code``.

    By name, with how many arguments stand before it.
    """
    passing = {}
    for tree in trees.values():
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef):
                continue
            names = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)]
            calls = [n for n in ast.walk(function) if isinstance(n, ast.Call) and n.args]
            made = any(
                name_of(call.func) in makers and name_of(call.args[0]) == "code" for call in calls
            )
            if made and names[-1:] == ["code"]:
                passing[function.name] = len(names) - 1 - (names[0] in ("self", "cls"))
    return passing


def find_faults(trees, sentences):
    """Give what breaks the rules."""
    classes, unused = message_classes(trees), set(sentences)
    makers = dict.fromkeys(classes, 0) | passing_functions(trees, classes)
    faults = []
    for path, tree in trees.items():
        for call in ast.walk(tree):
            if not isinstance(call, ast.Call) or name_of(call.func) not in makers:
                continue
            code = [*call.args[makers[name_of(call.func)] :], None][0]
            if name_of(code) == "code":
                continue  # what passes it on
            where, code = f"{path}:{call.lineno}", getattr(code, "value", None)
            if code not in sentences:
                faults.append(f"{where}: the code {code!r} has no sentence")
                continue
            unused.discard(code)
            given = {keyword.arg for keyword in call.keywords}
            fields = {field for _, field, _, _ in Formatter().parse(sentences[code]) if field}
            if None not in given and not {re.split(r"[.\[]", f)[0] for f in fields} <= given:
                faults.append(f"{where}: the sentence needs {sorted(fields - given)}")
    faults += [f"{SENTENCES.name}: nothing says {code!r}" for code in sorted(unused)]
    faults += [
        f"{SENTENCES.name}: {code!r} is not in snake_case"
        for code in sentences
        if not re.fullmatch("[a-z][a-z0-9_]*", code)
    ]
    return faults


def docstrings(tree):
    """Give the docstrings' nodes, which no user meets in a sentence."""
    holders = ast.Module | ast.ClassDef | ast.FunctionDef
    return {
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, holders) and ast.get_docstring(node, clean=False) is not None
    }


def options_named(trees):
    """Give where a text of the source names an option of the command."""
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


def main():
    """Print what breaks the rules."""
    trees = read_source()
    faults = [*find_faults(trees, read_sentences()), *plain_errors(trees)]
    print("\n".join(faults) or "no fault")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
