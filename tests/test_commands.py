"""The command line as a new user meets it: the walk-through of the docs, help, JSON."""

import json
import re
import shlex
from pathlib import Path

import pandas as pd
import pytest
from typer.main import get_command
from typer.testing import CliRunner

from evenhand.cli import app

DOCS = Path(__file__).parents[1] / "docs"
COMMANDS = get_command(app).commands


def session(page):
    """Commands of a page's console blocks, each with the lines it should print."""
    blocks = re.findall(r"^```console\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
    for block in blocks:
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, shown = part.partition("\n")
            yield shlex.split(command), shown


def matches(shown, output):
    """Whether the lines come in this order, ``...`` standing for anything."""
    pattern = re.escape(re.sub(r"\s+", " ", shown).strip()).replace(r"\.\.\.", ".*?")
    return re.search(pattern, re.sub(r"\s+", " ", output), re.S) is not None


def test_walkthrough(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    expected = {"audit people.csv": 2}
    done = 0
    for words, shown in session(DOCS / "walkthrough.md"):
        assert words[0] == "evenhand"
        result = CliRunner().invoke(app, words[1:])
        code = next(
            (c for start, c in expected.items() if " ".join(words[1:]).startswith(start)), 0
        )
        assert result.exit_code == code, (words, result.output, result.exception)
        assert matches(shown, result.output), (words, result.output)
        done += 1
    assert done == 9
    page = (tmp_path / "decision.html").read_text(encoding="utf-8")
    assert "confidence" in page


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_examples_and_a_line_in_the_docs(name):
    result = CliRunner().invoke(app, [name, "--help"])
    assert result.exit_code == 0
    command = COMMANDS[name]
    assert len(command.help.split()) > 5
    assert re.match(r"Examples?:\n", command.epilog)
    assert f"`evenhand {name}" in (DOCS / "commands.md").read_text(encoding="utf-8")
    assert any(parameter.name == "as_json" for parameter in command.params)
    for parameter in command.params:
        if parameter.param_type_name == "option" and parameter.name != "help":
            assert parameter.help, parameter.name


def test_favourable_is_described_as_it_is(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    for name, each in (("audit", False), ("compare", False), ("train", True)):
        shown = CliRunner().invoke(app, [name, "--help"]).output
        assert ("each counts" in shown) is each, name


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_can_be_copied(name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = CliRunner().invoke(app, [name, "--help"]).output
    lines = [line.strip() for line in shown[shown.index("Example") :].splitlines()]
    examples = [line for line in lines[1:] if line]
    assert examples
    for example in examples:
        # One command, whole, that the command line understands; what comes before a pipe aside.
        (words,) = (
            shlex.split(part) for part in example.split(" | ") if shlex.split(part)[0] == "evenhand"
        )
        assert words[1] == name
        COMMANDS[name].make_context(name, words[2:])


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    assert run("datasets", "german", "-o", str(folder / "loans.csv")).exit_code == 0
    args = ["--label", "credit", "--sensitive", "sex", "--tau", "0.7"]
    path = str(folder / "loans.model")
    result = run("train", str(folder / "loans.csv"), *args, "-o", path, "--json")
    assert result.exit_code == 0
    about = json.loads(result.stdout)
    assert about["model"] == path
    assert about["reached"]["feasible"]
    return folder


def run(*args, stdin=None):
    result = CliRunner().invoke(app, list(args), input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def words(text):
    """What a screen says, however it is wrapped."""
    return re.sub(r"\s+", " ", text)


class TestJson:
    def test_the_list_of_experiments(self):
        listed = json.loads(run("reproduce", "--list", "--json").stdout)
        assert "rivals" in listed
        assert run("reproduce", "--list").stdout.startswith(next(iter(listed)))

    def test_all_commands_print_one_document(self, model, tmp_path):
        table, saved = str(model / "loans.csv"), str(model / "loans.model")
        columns = ["--label", "credit", "--sensitive", "sex"]
        calls = [
            ["audit", table, *columns],
            ["frontier", saved],
            ["pick", saved, "--tau", "0.9", "-o", str(tmp_path / "p.model")],
            ["predict", saved, table, "-o", str(tmp_path / "out.csv")],
            ["report", saved, "-o", str(tmp_path / "r.html")],
            ["datasets"],
            ["datasets", "german", "-o", str(tmp_path / "g.csv")],
            ["compare", table, *columns, "--splits", "1", "--method", "evenhand", "--tau", "0.8"],
        ]
        for call in calls:
            result = run(*call, "--json")
            assert result.exit_code == 0, (call, result.output)
            assert json.loads(result.stdout), call
            assert "NaN" not in result.stdout

    def test_figures_are_those_of_the_library(self, model):
        from evenhand import group_rates

        frame = pd.read_csv(model / "loans.csv")
        found = json.loads(
            run(
                "audit",
                str(model / "loans.csv"),
                "--label",
                "credit",
                "--sensitive",
                "sex",
                "--json",
            ).stdout
        )
        rates = group_rates(
            frame["credit"], frame["credit"], sensitive_features=frame["sex"], pos_label="good"
        )
        assert found["groups"] == rates.index.tolist()
        shown = [g["value"] for g in found["rates"]["selection_rate"]]
        assert shown == pytest.approx(rates["selection_rate"].tolist())
        ratio = rates["selection_rate"].min() / rates["selection_rate"].max()
        assert found["ratios"]["selection_rate"] == pytest.approx(ratio)
        for g in found["rates"]["selection_rate"]:
            assert g["low"] < g["value"] < g["high"]

    def test_intervals_are_the_same_everywhere(self, model):
        import matplotlib.pyplot as plt
        from scipy.stats import binomtest

        from evenhand import GroupRatesDisplay
        from evenhand.report._figures import wilson

        frame = pd.read_csv(model / "loans.csv")
        good = frame["credit"] == "good"
        args = ["audit", str(model / "loans.csv"), "--label", "credit", "--sensitive", "sex"]
        found = json.loads(run(*args, "--json").stdout)["rates"]["selection_rate"]
        display = GroupRatesDisplay.from_predictions(good, good, sensitive_features=frame["sex"])
        bars = display.ax_.containers[0].lines[2][0].get_segments()
        for group, bar, (_, part) in zip(found, bars, good.groupby(frame["sex"]), strict=True):
            wanted = binomtest(int(part.sum()), len(part)).proportion_ci(0.95, method="wilson")
            for ends in (
                (group["low"], group["high"]),
                bar[:, 0] / 100,
                wilson(int(part.sum()), len(part)),
            ):
                assert ends == pytest.approx((wanted.low, wanted.high))
        plt.close("all")
        assert "Wilson" in run(*args).stdout

    def test_privileged(self, model):
        args = ["audit", str(model / "loans.csv"), "--label", "credit", "--sensitive", "sex"]
        male, female = (
            json.loads(run(*args, "--privileged", g, "--json").stdout)["ratios"]["selection_rate"]
            for g in ("male", "female")
        )
        assert male * female == pytest.approx(1)


class TestScreens:
    def test_several_notions_each_with_its_target(self, model, tmp_path):
        args = ["--label", "credit", "--sensitive", "sex", "--notion", "statistical_parity"]
        args += ["--tau", "0.9", "--notion", "equal_opportunity", "--tau", "0.8", "--no-report"]
        saved = str(tmp_path / "two.model")
        shown = words(run("train", str(model / "loans.csv"), *args, "-o", saved).stdout)
        assert "τ = 0.9 for statistical parity and τ = 0.8 for equal opportunity are" in shown
        assert re.search(r"selection rate, ratio 0\.9 0\.\d{3}", shown)
        assert re.search(r"true positive rate, ratio 0\.8 0\.\d{3}", shown)
        shown = words(run("frontier", saved).stdout)
        assert "0.9 / 0.8 " in shown
        assert "τ is that of statistical parity / equal opportunity" in shown
        moved = str(tmp_path / "p.model")
        shown = words(run("pick", saved, "--tau", "0.45", "-o", moved).stdout)
        assert "τ = 0.45 for statistical parity and τ = 0.4 for equal opportunity are" in shown
        assert "--tau 0.45 is the strictest target; the others stay in proportion" in shown
        refused = run("pick", saved, "--tau", "0.9", "--tau", "0.8", "-o", moved)
        assert refused.exit_code == 1
        assert "--tau was given 2 times; give one, the target of the strictest" in refused.stderr

    def test_figures_of_several_rates_are_those_of_the_library(self, model):
        from evenhand import load_model
        from evenhand._screens import _figures
        from evenhand.workflow import summarise

        saved = load_model(model / "loans.model")
        summary = summarise(saved)
        accuracy, ratios, _ = _figures(summary, summary["points"][0]["counts"]["train"])
        frontier = saved.model[-1].frontier_
        assert (accuracy, ratios) == (frontier.accuracy[0], [frontier.rate[0]])
        # An error rate of 0 in every group is parity, as in the library.
        error = {"name": "e", "numerator": [[0, 1]], "denominator": [[0, 0], [0, 1]], "share": 1}
        summary["rate"]["parts"] = [error]
        assert _figures(summary, [[[5, 0], [1, 1]]] * 2)[1] == [1.0]

    def test_a_ratio_just_below_its_target_is_seen_to_be(self, tmp_path):
        rows = ["g,y", *["a,1"] * 2000, *["b,1"] * 15993, *["b,0"] * 4007]
        (tmp_path / "t.csv").write_text("\n".join(rows))
        shown = run("audit", str(tmp_path / "t.csv"), "--label", "y", "--sensitive", "g")
        assert shown.exit_code == 2
        assert "is 0.7996" in words(shown.stdout)

    def test_narrow_terminals_and_markup(self, model, monkeypatch):
        monkeypatch.setenv("COLUMNS", "40")
        for call in (["frontier"], ["pick", "--tau", "0.9", "-o", str(model / "x.model")]):
            result = run(call[0], str(model / "loans.model"), *call[1:])
            assert result.exit_code == 0
            assert max(map(len, result.output.splitlines())) <= 40 or "written" in result.output

    def test_a_picture(self, model, tmp_path):
        for kind in ("png", "svg", "pdf"):
            path = tmp_path / f"f.{kind}"
            assert (
                run("frontier", str(model / "loans.model"), "--picture", str(path)).exit_code == 0
            )
            assert path.stat().st_size > 1000
        result = run("frontier", str(model / "loans.model"), "--picture", str(tmp_path / "f.doc"))
        assert result.exit_code == 1
        assert "must end in .png, .svg or .pdf" in result.stderr


def test_target_not_met_is_exit_code_2(model, tmp_path):
    result = run(
        "train", str(model / "loans.csv"), "--label", "credit", "--sensitive", "sex",
        "--selection", "certified", "--tau", "0.999", "-o", str(tmp_path / "m.model"),
    )  # fmt: skip
    assert result.exit_code == 2
    assert (tmp_path / "m.model").exists()
    assert "No point can be certified" in re.sub(r"\s+", " ", result.output)


def test_train_again_gives_the_same_model(model, tmp_path):
    args = ["--label", "credit", "--sensitive", "sex", "--no-report", "--selection", "holdout"]
    from evenhand import load_model

    weights = []
    for name in ("a.model", "b.model"):
        run("train", str(model / "loans.csv"), *args, "-o", str(tmp_path / name))
        weights.append(load_model(tmp_path / name).model[-1].coef_.tolist())
    assert weights[0] == weights[1]


def test_compare_reports_what_is_not_installed(model, monkeypatch):
    import builtins

    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.split(".")[0] == "fairlearn":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    result = run(
        "compare", str(model / "loans.csv"), "--label", "credit", "--sensitive", "sex",
        "--method", "evenhand", "--method", "grid_search", "--splits", "1", "--tau", "0.8",
    )  # fmt: skip
    assert result.exit_code == 0
    assert "evenhand" in result.output
