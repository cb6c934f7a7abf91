"""The package as a whole: what it exports, what it imports, what it says of missing extras."""

import ast
import json
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import evenhand

SOURCE = Path(evenhand.__file__).parent
ROOT = Path(__file__).parents[1]
# The one way imports go; a module may import from those before it.
ORDER = [
    "_signals",
    "_options",
    "_versions",
    "_arrays",
    "rates",
    "datasets",
    "notions",
    "rowmath",
    "engines",
    "oracle",
    "updates",
    "solvers",
    "paths",
    "trajectory",
    "cuts",
    "_cut_loops",
    "tally",
    "frontier",
    "inputs",
    "progress",
    "selection",
    "notebook",
    "averaging",
    "classifier",
    "boosted",
    "columns",
    "tables",
    "files",
    "persist",
    "onnx_export",
    "theory",
    "peers",
    "workflow",
    "_dask_training",
    "displays",
    "report",
    "experiments",
    "_screens",
    "cli",
    "__main__",
]


def modules():
    for path in sorted(SOURCE.rglob("*.py")):
        top = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if top != "__init__":
            yield top, path


def imported(path):
    """Top-level modules of evenhand that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [node.module] if node.module != "evenhand" else []
            if node.module == "evenhand":
                names = [f"evenhand.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "evenhand" and len(parts) > 1:
                yield parts[1]


def test_imports_go_one_way():
    found = list(modules())
    assert {top for top, _ in found} == set(ORDER)
    for top, path in found:
        for other in imported(path):
            if other != top:
                assert ORDER.index(other) < ORDER.index(top), f"{path} imports {other}"


def test_public_names():
    for name in evenhand.__all__:
        assert getattr(evenhand, name).__doc__, name
    assert (SOURCE / "py.typed").exists()


def test_names_are_those_of_their_modules():
    from evenhand import rates

    assert set(rates.__all__) == set(evenhand.__all__) - set(evenhand._HOME)
    assert sorted(evenhand.__all__) == sorted(set(evenhand.__all__))
    assert set(evenhand.__all__) <= set(dir(evenhand))
    assert evenhand.notions.NOTIONS
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        evenhand.nonsense  # noqa: B018


def loaded(code, names):
    """Which modules a program has loaded."""
    code += f"; import sys, json; print(json.dumps([m for m in {names} if m in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_importing_evenhand_is_light():
    heavy = ["matplotlib", "torch", "fairlearn", "cvxpy", "oxonfair", "typer", "rich", "jinja2"]
    assert loaded("from evenhand import FairClassifier, FrontierDisplay, RATES", heavy) == []
    # What a signal may interrupt with a traceback, before the command line can speak.
    assert loaded("import evenhand.__main__", ["numpy", "sklearn", "pandas", *heavy]) == []
    assert loaded("import evenhand.cli", ["numpy", "sklearn", "pandas"]) == []


def test_show_versions(capsys):
    evenhand.show_versions()
    out = capsys.readouterr().out
    for name in ("python", "evenhand", "numpy", "scikit-learn", "matplotlib"):
        assert name in out
    assert evenhand.__version__ in out


def test_missing_extra_is_named(monkeypatch):
    from evenhand._versions import import_extra

    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'evenhand\[plot\]'"):
        import_extra("matplotlib.pyplot", "plot")


def test_command_line():
    def run(*args):
        return subprocess.run(
            [sys.executable, "-m", "evenhand", *args], capture_output=True, text=True, check=False
        )

    assert run("--version").stdout.strip() == f"evenhand {evenhand.__version__}"
    assert "Usage" in run("--help").stdout
    wrong = run("--nonsense")
    assert wrong.returncode == 1
    assert "Traceback" not in wrong.stderr


def test_the_command_is_the_light_entry():
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert scripts["scripts"] == {"evenhand": "evenhand.__main__:main"}
    from evenhand.__main__ import main

    assert callable(main)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("typer", "SIGINT"),
        ("evenhand.cli", "SIGTERM"),
        ("evenhand.workflow", "SIGINT"),
        ("pandas", "SIGHUP"),
        ("rich", "SIGINT"),
    ],
)
def test_signals_while_importing(module, name):
    default = "default_int_handler" if name == "SIGINT" else "SIG_DFL"
    code = f"""
import os, signal, sys
signal.signal(signal.{name}, signal.{default})  # whoever runs the tests may have turned it off

class Sender:
    def find_spec(self, found, *_):
        if found == {module!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.{name})

sys.meta_path.insert(0, Sender())
sys.argv = ["evenhand", "datasets"]
from evenhand.__main__ import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 130
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("evenhand: interrupted.")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
def test_a_signal_that_was_turned_off_stays_so():
    from evenhand._signals import on_end

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    interrupt = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        handlers = on_end(signal.default_int_handler)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert set(handlers) == {"SIGINT", "SIGTERM"}
        on_end(handlers)
        assert signal.getsignal(signal.SIGTERM) is handlers["SIGTERM"]
    finally:
        signal.signal(signal.SIGHUP, before)
        signal.signal(signal.SIGINT, interrupt)
