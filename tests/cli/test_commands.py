"""The command line as a new user meets it: the walk-through of the docs, help, JSON."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers import run, words
from typer.main import get_command
from typer.testing import CliRunner

from evenhand.cli.app import app

DOCS = Path(__file__).parents[2] / "docs"
COMMANDS = get_command(app).commands
ROLES = ["--label", "credit", "--sensitive", "sex", "--favourable", "good"]


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


@pytest.mark.slow
def test_walkthrough(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    expected = {"audit people.csv": 2}
    done = 0
    for call, shown in session(DOCS / "first_page.md"):
        assert call[0] == "evenhand"
        result = CliRunner().invoke(app, call[1:])
        code = next((c for start, c in expected.items() if " ".join(call[1:]).startswith(start)), 0)
        assert result.exit_code == code, (call, result.output, result.exception)
        assert matches(shown, result.output), (call, result.output)
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


def test_every_command_is_listed():
    assert sorted(get_command(app).list_commands(None)) == sorted(COMMANDS)


def test_favourable_is_described_as_it_is(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    for name, each in (("audit", False), ("compare", False), ("train", True)):
        shown = CliRunner().invoke(app, [name, "--help"]).output
        assert ("each counts" in shown) is each, name


def test_train_without_a_word_says_what_it_needs():
    result = run("train")
    assert result.exit_code == 1
    assert result.stderr == "evenhand: give a FILE, or --demo adult; one of the two.\n"


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
    args = [*ROLES, "--tau", "0.7"]
    path = str(folder / "loans.model")
    result = run("train", str(folder / "loans.csv"), *args, "-o", path, "--json")
    assert result.exit_code == 0
    about = json.loads(result.stdout)
    assert about["model"] == path
    assert about["reached"]["feasible"]
    return folder


class TestJson:
    def test_the_list_of_experiments(self):
        listed = json.loads(run("reproduce", "--list", "--json").stdout)
        assert "rivals" in listed
        assert run("reproduce", "--list").stdout.startswith(next(iter(listed)))

    def test_all_commands_print_one_document(self, model, tmp_path):
        table, saved = str(model / "loans.csv"), str(model / "loans.model")
        columns = ROLES
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
        found = json.loads(run("audit", str(model / "loans.csv"), *ROLES, "--json").stdout)
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
        from evenhand.core.rates import EQUALIZED_ODDS
        from evenhand.core.targets import Target
        from evenhand.views.report.figures import measure

        frame = pd.read_csv(model / "loans.csv")
        good = frame["credit"] == "good"
        args = ["audit", str(model / "loans.csv"), *ROLES]
        found = json.loads(run(*args, "--json").stdout)["rates"]["selection_rate"]
        display = GroupRatesDisplay.from_predictions(good, good, sensitive_features=frame["sex"])
        bars = display.ax_.containers[0].lines[2][0].get_segments()
        for group, bar, (_, part) in zip(found, bars, good.groupby(frame["sex"]), strict=True):
            wanted = binomtest(int(part.sum()), len(part)).proportion_ci(0.95)
            counts = [[[0, 0], [sum(~part), sum(part)]]]
            measured = measure(counts, Target(EQUALIZED_ODDS, 0.8), 1, False)
            reported = measured["rates"][0]["interval"][0]
            for ends in ((group["low"], group["high"]), bar[:, 0] / 100, reported):
                assert ends == pytest.approx((wanted.low, wanted.high))
        plt.close("all")
        assert "Clopper and Pearson" in run(*args).stdout

    def test_privileged(self, model):
        args = ["audit", str(model / "loans.csv"), *ROLES]
        male, female = (
            json.loads(run(*args, "--privileged", g, "--json").stdout) for g in ("male", "female")
        )
        assert male["ratios"] == female["ratios"]
        of_female, of_male = (
            found["ratios_to_privileged"]["selection_rate"] for found in (male, female)
        )
        assert of_female[0] * of_male[1] == pytest.approx(1)


class TestScreens:
    def test_several_notions_each_with_its_target(self, model, tmp_path):
        args = [*ROLES, "--notion", "statistical_parity"]
        args += ["--tau", "0.9", "--notion", "equal_opportunity", "--tau", "0.8", "--no-report"]
        saved = str(tmp_path / "two.model")
        shown = words(run("train", str(model / "loans.csv"), *args, "-o", saved).stdout)
        assert "τ = 0.9 for statistical parity and τ = 0.8 for equal opportunity are" in shown
        assert re.search(r"selection rate, ratio 0\.90 0\.\d{3}", shown)
        assert re.search(r"true positive rate, ratio 0\.80 0\.\d{3}", shown)
        shown = words(run("frontier", saved).stdout)
        assert "0.9 / 0.8 " in shown
        assert "τ is given for statistical parity / equal opportunity" in shown
        moved = str(tmp_path / "p.model")
        shown = words(run("pick", saved, "--tau", "0.45", "-o", moved).stdout)
        assert "τ = 0.45 for statistical parity and τ = 0.4 for equal opportunity are" in shown
        assert "--tau 0.45 is the strictest target; the others stay in proportion" in shown
        refused = run("pick", saved, "--tau", "0.9", "--tau", "0.8", "-o", moved)
        assert refused.exit_code == 1
        assert "--tau is given 2 times and takes one value" in words(refused.stderr)

    def test_figures_of_several_rates_are_those_of_the_library(self, model):
        from evenhand import load_model
        from evenhand.views.terminal.models import figures_of
        from evenhand.workflow.summary import summarise

        saved = load_model(model / "loans.model")
        summary = summarise(saved)
        accuracy, ratios, _ = figures_of(summary, summary["points"][0]["counts"]["train"])
        answers = saved.model[-1].answers_
        first = answers.points.take(answers.index[:1])
        assert (accuracy, ratios) == (first.accuracy[0], [first.rate[0]])
        # An error rate of 0 in every group is parity, as in the library.
        error = {"name": "e", "numerator": [[0, 1]], "denominator": [[0, 0], [0, 1]], "share": 1}
        summary["rate"]["parts"] = [error]
        assert figures_of(summary, [[[5, 0], [1, 1]]] * 2)[1] == [1.0]

    def test_a_ratio_just_below_its_target_is_seen_to_be(self, tmp_path):
        rows = ["g,y", *["a,1"] * 2000, *["b,1"] * 15993, *["b,0"] * 4007]
        (tmp_path / "t.csv").write_text("\n".join(rows))
        shown = run("audit", str(tmp_path / "t.csv"), "--label", "y", "--sensitive", "g")
        assert shown.exit_code == 2
        assert "is 0.7997" in words(shown.stdout)

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
        "train", str(model / "loans.csv"), *ROLES,
        "--confidence", "certified", "--tau", "0.999", "-o", str(tmp_path / "m.model"),
    )  # fmt: skip
    assert result.exit_code == 2
    assert (tmp_path / "m.model").exists()
    assert "No point can be certified" in re.sub(r"\s+", " ", result.output)


def test_train_again_gives_the_same_model(model, tmp_path):
    args = [*ROLES, "--no-report", "--selection", "holdout"]
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
        "compare", str(model / "loans.csv"), *ROLES,
        "--method", "evenhand", "--method", "grid_search", "--splits", "1", "--tau", "0.8",
    )  # fmt: skip
    assert result.exit_code == 0
    assert "evenhand" in result.output


def codes(n=300, seed=0):
    """A table with an identifier, a column that tells the label and one that tells the group."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], n)
    skill = rng.normal(size=n) + 0.5 * (sex == "M")
    paid = (skill + rng.normal(size=n) > 0).astype(int)
    key = rng.permutation(10 * n)[:n]
    frame = pd.DataFrame({"customer_key": key, "my customer number": key[::-1], "skill": skill})
    spouse, closed = np.where(sex == "M", "wife", "husband"), np.where(paid == 1, "A", "B")
    spouse[:5] = "wife"
    return frame.assign(spouse=spouse, closed=closed, sex=sex, paid=paid)


@pytest.fixture(scope="module")
def coded(tmp_path_factory):
    path = tmp_path_factory.mktemp("codes") / "codes.csv"
    codes().to_csv(path, index=False)
    return path


@pytest.mark.parametrize("columns", [40, 60, 80, 120, 150])
def test_options_of_the_decisions_can_be_pasted(coded, columns, tmp_path, monkeypatch):
    """At any width: a line is broken between words, never inside an option and its value."""
    monkeypatch.setenv("COLUMNS", str(columns))
    roles = ["--label", "paid", "--sensitive", "sex", "-o", str(tmp_path / "m"), "--no-report"]
    shown = run("train", str(coded), *roles).stdout
    assert "--kind customer_key=number" in shown
    assert "--kind 'my customer number=number'" in shown
    assert "…" not in shown


def test_leaks_are_told_before_the_fit(coded, tmp_path, monkeypatch):
    """And not again behind it."""
    from evenhand.tables.pipeline import FairPipeline

    roles = ["--label", "paid", "--sensitive", "sex", "-o", str(tmp_path / "m"), "--no-report"]
    whole = run("train", str(coded), *roles)
    for says in ("column 'closed' tells the label without fail", "column 'spouse' tells 'sex'"):
        assert whole.stderr.count(says) == 1
        assert f"note: {says}" not in words(whole.stdout)
    told = json.loads(run("train", str(coded), *roles, "--json").stdout)["notes"]
    assert any(note.startswith("column 'closed' tells the label") for note in told)

    def fail(*args, **kwargs):
        raise ValueError("the fit began")

    monkeypatch.setattr(FairPipeline, "fit", fail)
    begun = run("train", str(coded), *roles)
    assert begun.exit_code == 1
    before, _, _ = begun.stderr.partition("the fit began")
    assert "note: column 'closed' tells the label without fail" in before


class TestUse:
    @pytest.mark.parametrize("options", [[], ["--group-cuts"]])
    def test_predict_and_report_say_what_the_model_is(self, coded, options, tmp_path):
        table, saved = str(coded), str(tmp_path / "m")
        roles = ["--label", "paid", "--sensitive", "sex", "--exclude", "closed", *options]
        run("train", table, *roles, "-o", saved, "--no-report")
        predict = ["predict", saved, table, "-o", str(tmp_path / "answers.csv")]
        for call in (predict, ["report", saved, "-o", str(tmp_path / "page.html")]):
            shown = run(*call).stdout
            assert shown.startswith("favourable answer: paid = 1\n")
            assert ("The group decides: each group has its own cut" in shown) == bool(options)
            about = json.loads(run(*call, "--json").stdout)
            assert about["favourable_answer"] == "paid = 1"
            assert about["needs_group"] == bool(options)
            assert about["group_use"].startswith("The group decides" if options else "")
        streamed = run("predict", saved, table, "-o", "-")
        assert streamed.stdout.startswith("prediction,")
        assert ("The group decides" in streamed.stderr) == bool(options)

    @pytest.mark.parametrize("name", [None, "repaid"])
    def test_a_model_saved_in_python(self, name, tmp_path):
        from evenhand import fair_pipeline, save_model

        frame = codes().drop(columns=["closed", "spouse"])
        pipe = fair_pipeline("sex", tau=0.5, pos_label="no").fit(
            frame.drop(columns="paid"),
            pd.Series(np.where(frame.paid, "yes", "no"), name=name),
        )
        save_model(pipe, tmp_path / "m")
        frame.to_csv(tmp_path / "t.csv", index=False)
        call = ["predict", str(tmp_path / "m"), str(tmp_path / "t.csv"), "-o", str(tmp_path / "a")]
        assert run(*call).stdout.startswith(f"favourable answer: {name or 'label'} = no\n")


class TestTargets:
    def test_no_target_at_all_is_refused(self, model, tmp_path):
        done = run("train", str(model / "loans.csv"), *ROLES, "--tau", "none", "-o", "x.model")
        assert done.exit_code == 1
        assert "statistical_parity has no target: --tau and --epsilon" in words(done.stderr)

    @pytest.mark.parametrize("command", ["train", "audit", "compare"])
    def test_which_of_two_values_is_meant_is_not_guessed(self, model, command):
        done = run(command, str(model / "loans.csv"), *ROLES, "--favourable", "bad")
        assert done.exit_code == 1
        expected = f"--favourable is given 2 times and takes one value; see evenhand {command}"
        assert expected in words(done.stderr)

    def test_rows_to_test_on_are_new(self, model, tmp_path):
        file = str(model / "loans.csv")
        done = run("train", file, *ROLES, "--test", file, "-o", str(tmp_path / "x.model"))
        assert done.exit_code == 1
        assert "rows of --test are rows that the model is fitted to" in words(done.stderr)
        assert list(tmp_path.iterdir()) == []

    def test_each_demand_of_a_mixed_target_is_named(self, model, tmp_path):
        out = str(tmp_path / "m.model")
        asked = ["--tau", "0.3", "--epsilon", "0.5", "--no-report", "-o", out]
        done = run("train", str(model / "loans.csv"), *ROLES, *asked)
        text = words(done.stdout)
        assert "shortfall" not in text
        assert "the statistical rate is" in text
        assert "the selection rate difference is" in text
        picked = ["-o", str(tmp_path / "p.model"), "--json"]
        summary = json.loads(run("pick", out, "--tau", "0.4", *picked).stdout)
        curves = summary["curves"]
        assert {"ratio", "shortfall", "accuracy", "loss_c"} <= set(curves)
        assert "difference" not in curves
        from evenhand import load_model

        moved = load_model(tmp_path / "p.model").model[-1]
        run_of = moved.trajectory_.values(moved.target_)
        np.testing.assert_allclose(curves["shortfall"], run_of)
        assert (run_of >= 0).all()
        assert summary["verdict"]["population_of"] == "all"
        assert (summary["reached"]["strictest"] is None) or summary["reached"]["strictest"]["worth"]

    def test_the_group_that_makes_a_target_dear_is_named(self, tmp_path):
        rng = np.random.default_rng(0)
        group = rng.choice(["a", "b", "c"], 3000, p=[0.58, 0.4, 0.02])
        score = rng.normal(size=3000) + 0.5 * (group == "a") - 0.5 * (group == "c")
        score, other = np.column_stack([score, rng.normal(size=3000)]).T
        answer = (score + rng.normal(size=3000) > 0).astype(int)
        frame = pd.DataFrame({"other": other, "score": score, "group": group, "answer": answer})
        shown = {}
        for name, part in (("all", frame), ("two", frame[group != "c"])):
            part.to_csv(tmp_path / "t.csv", index=False)
            args = ["--label", "answer", "--sensitive", "group", "-o", str(tmp_path / "x.model")]
            shown[name] = words(run("train", str(tmp_path / "t.csv"), *args).stdout)
        n = int(re.search("group “c”, whose rate is one of about (\\d+) rows", shown["all"])[1])
        assert n == pytest.approx(0.7 * (group == "c").sum(), abs=5)
        assert "The margin for chance is wide" not in shown["two"]
        frame[frame["group"] != "c"].head(400).to_csv(tmp_path / "t.csv", index=False)
        args += ["--selection", "holdout", "--tau", "0.6"]
        shown = words(run("train", str(tmp_path / "t.csv"), *args).stdout)
        name, n = re.search("group “(.)”, whose rate is one of about (\\d+) rows", shown).groups()
        table = pd.read_csv(tmp_path / "t.csv")
        assert int(n) == pytest.approx(0.7 * 0.5 * (table["group"] == name).sum(), abs=5)
