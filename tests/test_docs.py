"""Code in the README, the documentation and the examples runs (pytest itself runs ``>>>``)."""

import json
import re
import runpy
import shlex
from importlib import import_module
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
from typer.testing import CliRunner

from evenhand.datasets import load_german

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "benchmarks/notes").glob("*.md")),
]
EXAMPLES = [p for p in sorted((ROOT / "examples").glob("*.py")) if p.stem != "demo"]
# It compares methods, each fitted several times.
LONG = {"compare.md"}
mpl.use("Agg")


def marked(paths):
    """The paths as parameters; those that take long are for the slow tests."""
    return [pytest.param(p, marks=[pytest.mark.slow] if p.name in LONG else []) for p in paths]


def blocks(path):
    return re.findall(r"^```python\n(.*?)^```", path.read_text(encoding="utf-8"), re.M | re.S)


@pytest.mark.parametrize("path", marked(p for p in PAGES if blocks(p)), ids=lambda p: p.name)
def test_python_blocks_run(path, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write a file
    namespace = {}
    for block in blocks(path):
        exec(compile(block, str(path), "exec"), namespace)


def test_the_command_of_the_readme_runs(tmp_path, monkeypatch):
    from evenhand.cli.app import app

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^evenhand (train .*)$", text, re.M)
    monkeypatch.chdir(tmp_path)
    frame = load_german().frame
    frame["repaid"] = (frame.pop("credit") == "good").astype(int)
    frame.to_csv("loans.csv", index=False)
    result = CliRunner().invoke(app, shlex.split(command))
    assert result.exit_code == 0, result.output
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {"loans.csv", "evenhand.model", "evenhand.html"}


@pytest.mark.parametrize("path", PAGES, ids=lambda p: f"{p.parent.name}-{p.name}")
def test_links_lead_somewhere(path):
    text = path.read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", text):
        assert (path.parent / target).exists(), target


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_an_example_draws_its_picture(path, tmp_path, monkeypatch):
    assert (ROOT / f"docs/_static/gallery/{path.stem}.png").exists()
    assert f"literalinclude}} ../examples/{path.name}" in (ROOT / "docs/gallery.md").read_text()
    monkeypatch.setattr("sys.argv", [str(path), str(tmp_path / "picture.png")])
    runpy.run_path(str(path), run_name="__main__")
    plt.close("all")
    assert (tmp_path / "picture.png").stat().st_size > 5_000


def test_the_notebook_prints_what_it_shows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)  # it writes a page and a model
    cells = json.loads((ROOT / "examples/from_a_frame_to_a_page.ipynb").read_text("utf-8"))["cells"]
    namespace, shown = {}, []
    for cell in cells:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), "notebook", "exec"), namespace)
            shown += [
                "".join(output["text"])
                for output in cell["outputs"]
                if output["output_type"] == "stream"
            ]
    plt.close("all")
    # How many points there are to test is a matter of the last bits, which libraries differ in.
    printed, expected = (
        re.sub(r"\d+ of \d+ points", "some points", text)
        for text in (capsys.readouterr().out, "".join(shown))
    )
    assert printed == expected
    assert (tmp_path / "decision.html").exists()


REFERENCE = (ROOT / "docs/api.md").read_text(encoding="utf-8").split()
PUBLIC = ("datasets", "peers", "paper.theory", "paper.experiments", "persist.onnx", "tables.read")


def test_every_public_name_is_in_the_reference():
    import evenhand

    assert set(evenhand.__all__) - {"RATES"} <= set(REFERENCE)
    for short in PUBLIC:
        module = import_module(f"evenhand.{short}")
        data = {name for name in module.__all__ if name.isupper()}
        assert {f"evenhand.{short}.{name}" for name in data} <= set(REFERENCE)
        assert {f"{short}.{name}" for name in set(module.__all__) - data} <= set(REFERENCE)


def test_the_reference_lists_classes_of_results_and_no_other_insides():
    """Functions of other modules are insides; a class may be what a public name returns."""
    for entry in REFERENCE:
        module, _, name = entry.rpartition(".")
        if re.fullmatch(r"[a-z_.]+\.[A-Za-z_]+", entry) and "evenhand" not in entry:
            value = getattr(import_module(f"evenhand.{module}"), name)
            assert module in PUBLIC or isinstance(value, type), entry


def test_the_glossary_names_every_synonym():
    from evenhand.core.notions import NOTIONS, SYNONYMS

    rows = (ROOT / "docs/glossary.md").read_text(encoding="utf-8").splitlines()
    named = {
        word: re.findall(r"`(\w+)`", row.split("|")[2])[0]
        for row in rows
        for word in re.findall(r"synonym: `(\w+)`", row)
    }
    assert named == SYNONYMS
    text = "\n".join(rows)
    assert all(f"`{name}`" in text or f'"{name}"' in text for name in NOTIONS)
