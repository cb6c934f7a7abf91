"""The package as a whole: what it exports, what it imports, what it says of missing extras."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import evenhand

SOURCE = Path(evenhand.__file__).parent
# The one way imports go; a module may import from those before it.
ORDER = [
    "_versions",
    "rates",
    "datasets",
    "notions",
    "oracle",
    "updates",
    "solvers",
    "paths",
    "trajectory",
    "cuts",
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


def test_importing_evenhand_is_light():
    heavy = ["matplotlib", "torch", "fairlearn", "cvxpy", "oxonfair", "typer", "rich", "jinja2"]
    code = f"import sys, evenhand; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


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
