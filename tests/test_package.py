"""The package as a whole: what it exports, what it imports, what it says of missing extras."""

import ast
import importlib
import inspect
import itertools
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
# The way data take: what is in a package may be imported by those after it.
LAYERS = [
    "_extras",
    "_atomic",
    "core",
    "_sklearn",
    "datasets",
    "engines",
    "statistics",
    "frontier",
    "models",
    "tables",
    "persist",
    "peers",
    "workflow",
    "views",
    "paper",
    "cli",
    "__main__",
]


def modules():
    for path in sorted(SOURCE.rglob("*.py")):
        top = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if top != "__init__":
            yield top, path


def imported(path):
    """Top-level modules of evenhand that a file imports, wherever in it, by name or by a string."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [node.module]
            if node.module == "evenhand":
                names = [f"evenhand.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Call) and "import" in ast.unparse(node.func):
            names = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
        for name in names:
            parts = str(name).split(".")
            if parts[0] == "evenhand" and len(parts) > 1:
                yield parts[1]


def test_imports_go_one_way():
    found = list(modules())
    assert {top for top, _ in found} == set(LAYERS)
    for top, path in found:
        for other in imported(path):
            if other != top:
                assert LAYERS.index(other) < LAYERS.index(top), f"{path} imports {other}"


def test_imports_by_a_string_are_seen(tmp_path):
    file = tmp_path / "module.py"
    file.write_text("def f():\n    import_module('evenhand.cli.app')\n    import_extra('x', 'y')\n")
    assert list(imported(file)) == ["cli"]


def test_every_package_says_what_belongs_there():
    for folder in sorted(path for path in SOURCE.iterdir() if (path / "__init__.py").exists()):
        text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8")))
        assert "What belongs here" in " ".join(text.split()), folder.name
        assert "What does not:" in " ".join(text.split()), folder.name


def test_measures_of_the_layout(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    import measures

    found = measures.measure()[0]
    assert {name: found[name] for name, most in measures.MOST.items() if found[name] > most} == {}


def test_public_names():
    for name in evenhand.__all__:
        assert getattr(evenhand, name).__doc__, name
    assert (SOURCE / "py.typed").exists()


def test_names_are_those_of_their_modules():
    from evenhand.core import metrics

    assert set(metrics.__all__) == set(evenhand.__all__) - set(evenhand._HOME)
    assert sorted(evenhand.__all__) == sorted(set(evenhand.__all__))
    assert set(evenhand.__all__) <= set(dir(evenhand))
    assert evenhand.core.notions.NOTIONS
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
    assert loaded("import evenhand.cli.app", ["numpy", "sklearn", "pandas"]) == []


def test_show_versions(capsys):
    evenhand.show_versions()
    out = capsys.readouterr().out
    for name in ("python", "evenhand", "numpy", "scikit-learn", "matplotlib", "lightgbm"):
        assert name in out
    assert evenhand.__version__ in out


def test_missing_extra_is_named(monkeypatch):
    from evenhand._extras import import_extra

    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install '\.\[plot\]'"):
        import_extra("matplotlib.pyplot", "plot")


def test_documentation_that_is_shared_is_written_out():
    from evenhand._extras import documented

    @documented("""
    X : array-like
        Inputs,
        in two lines.
    OSError
        If it fails.
    """)
    class Thing:
        """A thing of X.

        X
            As it says itself.
        """

        def fit(self, X):
            """Fit.

            X, OSError
            X, y
            """

    assert inspect.getdoc(Thing) == "A thing of X.\n\nX\n    As it says itself."
    entries = "X : array-like\n    Inputs,\n    in two lines.\nOSError\n    If it fails."
    assert inspect.getdoc(Thing.fit) == f"Fit.\n\n{entries}\nX, y"


@pytest.mark.parametrize("package", ["datasets", "peers"])
def test_every_parameter_is_documented(package):
    module = importlib.import_module(f"evenhand.{package}")
    public = {name: getattr(module, name) for name in module.__all__}
    methods = ("fit", "fit_path", "predict", "predict_proba", "decision_function", "at")
    for name, thing in list(public.items()):
        public |= {f"{name}.{m}": getattr(thing, m) for m in methods if hasattr(thing, m)}
    for name, thing in public.items():
        if callable(thing) and not hasattr(thing, "_fields"):
            lines = inspect.getdoc(thing).splitlines()
            entries = [
                {part.strip("* ") for part in line.partition(" : ")[0].split(",")}
                for line, below in itertools.pairwise(lines)
                if line[:1].strip() and below.startswith("    ")
            ]
            for parameter in set(inspect.signature(thing).parameters) - {"self"}:
                assert any(parameter in entry for entry in entries), f"{name}: {parameter}"


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


def test_the_command_says_what_it_needs():
    code = """
import importlib.util, sys
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "rich" else find(name, *rest)
from evenhand.__main__ import main
sys.argv = ["evenhand", "datasets"]
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("evenhand: the command needs rich; ")
    assert line.endswith("pip install '.[cli]'")


def test_the_command_is_the_light_entry():
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert scripts["scripts"] == {"evenhand": "evenhand.__main__:main"}
    from evenhand.__main__ import NEEDS, main

    assert callable(main)
    extras = scripts["optional-dependencies"]
    extra = " ".join([*extras["cli"], *extras["parquet"]])
    assert all(name in extra for name in NEEDS)
    assert not any(name in line for name in NEEDS for line in scripts["dependencies"])


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("typer", "SIGINT"),
        ("evenhand.cli.app", "SIGTERM"),
        ("evenhand.workflow.compare", "SIGINT"),
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
    from evenhand.cli.signals import on_end

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


def test_what_is_private_to_scikit_learn_is_imported_in_one_place():
    for _, path in modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sklearn"):
                names = [*node.module.split("."), *(name.name for name in node.names)]
                private = [name for name in names if name.startswith("_")]
                assert not private or path.name == "_sklearn.py", f"{path}: {private}"


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("sklearn.utils", "_safe_indexing"),
        ("sklearn.utils.validation", "_check_sample_weight"),
        ("sklearn.utils._param_validation", "Interval"),
    ],
)
def test_what_scikit_learn_has_no_more_is_said(monkeypatch, module, name):
    source = (SOURCE / "_sklearn.py").read_text(encoding="utf-8")
    monkeypatch.delattr(f"{module}.{name}")
    with pytest.raises(ImportError, match=rf"scikit-learn \d.*{name}.*pip install"):
        exec(compile(source, "_sklearn.py", "exec"), {"__name__": "evenhand._sklearn"})
