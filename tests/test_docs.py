"""Code in the README and the documentation runs (``>>>`` examples are pytest's own business)."""

import re
from pathlib import Path

import matplotlib as mpl
import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
mpl.use("Agg")


def blocks(path):
    return re.findall(r"^```python\n(.*?)^```", path.read_text(encoding="utf-8"), re.M | re.S)


@pytest.mark.parametrize("path", [p for p in PAGES if blocks(p)], ids=lambda p: p.name)
def test_python_blocks_run(path, capsys):
    namespace = {}
    for block in blocks(path):
        exec(compile(block, str(path), "exec"), namespace)


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(path):
    text = path.read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", text):
        assert (path.parent / target).exists(), target


def test_every_public_name_is_in_the_reference():
    import evenhand
    import evenhand.datasets
    import evenhand.paper.experiments
    import evenhand.paper.theory
    import evenhand.peers
    import evenhand.persist.model_file
    import evenhand.persist.onnx
    import evenhand.tables.encoder
    import evenhand.tables.groups
    import evenhand.tables.pipeline
    import evenhand.tables.read
    import evenhand.tables.write
    import evenhand.workflow.audit
    import evenhand.workflow.compare
    import evenhand.workflow.labels
    import evenhand.workflow.settings
    import evenhand.workflow.summary
    import evenhand.workflow.train

    listed = (ROOT / "docs/api.md").read_text(encoding="utf-8").split()
    names = set(evenhand.__all__) - {"RATES", "group_codes"}
    assert names <= set(listed)
    assert {"core.rates.Rate", "core.groups.group_codes"} <= set(listed)
    for module in (
        evenhand.datasets,
        evenhand.paper.experiments,
        evenhand.paper.theory,
        evenhand.peers,
        evenhand.persist.model_file,
        evenhand.persist.onnx,
        evenhand.tables.encoder,
        evenhand.tables.groups,
        evenhand.tables.pipeline,
        evenhand.tables.read,
        evenhand.tables.write,
        evenhand.workflow.audit,
        evenhand.workflow.compare,
        evenhand.workflow.labels,
        evenhand.workflow.settings,
        evenhand.workflow.summary,
        evenhand.workflow.train,
    ):
        short = module.__name__.removeprefix("evenhand.")
        data = {name for name in module.__all__ if name.isupper()}
        assert {f"evenhand.{short}.{name}" for name in data} <= set(listed)
        others = set(module.__all__) - data - names
        assert {f"{short}.{name}" for name in others} <= set(listed)
