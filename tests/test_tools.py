"""The tools that say which figures are old, and which verdicts changed."""

from pathlib import Path

import pytest

from evenhand.paper.experiments import EXPERIMENTS

ROOT = Path(__file__).parents[1]


@pytest.fixture
def stale(monkeypatch, tmp_path):
    """The tool, at work in a repository with one module and one page."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    import stale

    monkeypatch.setattr(stale, "ROOT", tmp_path)
    monkeypatch.setattr(stale, "PAGES", {"page.md": ("core", "models")})
    for package in ("core", "models", "views"):
        (tmp_path / stale.SOURCE / package).mkdir(parents=True)
        (tmp_path / stale.SOURCE / package / "a.py").write_text('"""Words."""\nx = 1\n')
    (tmp_path / "page.md").write_text("# A page\n\n| a | 0.5 |\n\n```\n0.75\n```\n")
    stale.git("init", "-q")
    commit(stale)
    return stale


def commit(stale):
    stale.git("add", "-A")
    name = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    stale.git(*name, "commit", "-q", "-m", "m", "--no-verify")


def test_pages_are_as_old_as_the_newest_of_their_figures(stale, capsys):
    assert not stale.main()
    module = stale.ROOT / stale.SOURCE / "core" / "a.py"
    module.write_text('"""Other words."""\n# and a comment\nx = 1\n')
    (stale.ROOT / stale.SOURCE / "views" / "a.py").write_text("x = 2\n")
    assert not stale.main()
    module.write_text("x = 2\n")
    assert stale.main()
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("page.md: figures of ")
    assert line.endswith("since then core")
    # words make no figures new; a row of a table does
    page = stale.ROOT / "page.md"
    page.write_text(page.read_text().replace("A page", "The page").replace("0.75", "0.8"))
    commit(stale)
    assert stale.main()
    page.write_text(page.read_text().replace("| 0.5 |", "| 0.6 |"))
    commit(stale)
    assert not stale.main()


def test_the_pages_are_there(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    import stale

    for page, packages in stale.PAGES.items():
        assert (ROOT / page).exists(), page
        assert all((ROOT / stale.SOURCE / package).is_dir() for package in packages)


def test_changed_verdicts_have_a_reason(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    import verdicts

    def page(**found):
        rows = [
            f"| {i} | {claim} (x) (Section 1).<br>*Test*: (a). | 0 | 1 | **{v}**<br>[x](#x) |"
            for i, (claim, v) in enumerate(found.items(), 1)
        ]
        return verdicts.read("\n".join(["| | Claim |", *rows]))

    before = page(Same="holds in the printed reading only", Other="holds", Slip="does not hold")
    after = page(Same="printed only", Other="depends on the start", New="holds")
    assert list(verdicts.changes(before, after)) == [
        ("Other (x)", "holds", "depends on the start", "the choice is varied now"),
        ("New (x)", "–", "holds", "the sentence had no row"),
        ("Slip (x)", "does not hold", "–", "a slip of the text, not a claim"),
    ]
    assert len(verdicts.read((ROOT / verdicts.PAGE).read_text(encoding="utf-8"))) >= 61
    # a claim of the first page that has other words now is the same claim
    assert set(verdicts.REWORDED.values()) <= {
        claim.statement for e in EXPERIMENTS.values() for claim in e.claims
    }
