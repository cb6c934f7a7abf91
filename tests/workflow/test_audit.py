"""What audit, compare and train say of a table is true: small tables on which it was not."""

import itertools
import json
import re
import shlex
import warnings

import numpy as np
import pandas as pd
import pytest
from helpers import invoke, raises, warns
from scipy.stats import binomtest

import evenhand
from evenhand.core.errors import Parameter
from evenhand.core.groups import as_binary, group_codes, zero_one
from evenhand.core.rates import RATES
from evenhand.core.targets import Target
from evenhand.models.inputs import bin_names
from evenhand.models.method import Method
from evenhand.workflow.audit import audit as audit_table
from evenhand.workflow.compare import compare_methods, dataset_frame
from evenhand.workflow.counting import best_cut
from evenhand.workflow.labels import as_label, favourable_label
from evenhand.workflow.missing_answers import is_firm, rate_ends, unknown_labels
from evenhand.workflow.summary import summarise
from evenhand.workflow.train import train as train_table


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def command(name, frame, *args, code=None):
        if isinstance(frame, pd.DataFrame):
            frame.to_csv("t.csv", index=False)
            frame = "t.csv"
        result = invoke([name, *([frame] if frame else []), *args])
        assert result.exception is None or isinstance(result.exception, SystemExit)
        if code is not None:
            assert result.exit_code == code, result.output
        return result

    return command


def words(text):
    return re.sub(r"\s+", " ", text)


def rows(**groups):
    """Make a table of groups, each with numbers of rows by the values of its columns."""
    return pd.DataFrame(
        [{"g": g, **values} for g, parts in groups.items() for n, values in parts for _ in range(n)]
    )


def decisions():
    """Of a 90% and of b 80% are approved: approval passes, denial fails."""
    return rows(
        a=[(90, {"y": "approved"}), (10, {"y": "denied"})],
        b=[(80, {"y": "approved"}), (20, {"y": "denied"})],
    )


def people(n=300, yes="approved", no="denied"):
    rng = np.random.default_rng(0)
    g, x = rng.choice(["a", "b"], n), rng.normal(size=n)
    y = np.where(x + (g == "a") + rng.normal(size=n) > 0, yes, no)
    return pd.DataFrame({"g": g, "x": x, "y": y})


ROLES = ["--label", "y", "--sensitive", "g"]


class TestFavourable:
    """The favourable label is never guessed."""

    @pytest.mark.parametrize("command", ["audit", "compare", "train"])
    def test_a_pair_of_words_is_refused(self, run, command):
        refused = words(run(command, decisions(), *ROLES, code=1).stderr)
        assert "'approved' (85.0% of the rows), 'denied' (15.0% of the rows)" in refused
        assert "say --favourable approved or --favourable denied" in refused

    def test_the_option_to_paste_is_quoted(self, run):
        frame = decisions().replace({"approved": "it's fine", "denied": ">50K"})
        refused = words(run("audit", frame, *ROLES, code=1).stderr)
        assert "--favourable '>50K' or --favourable 'it'\"'\"'s fine'" in refused

    def test_named(self, run):
        found = run("audit", decisions(), *ROLES, "--favourable", "approved", code=0)
        assert found.stdout.startswith("favourable answer: y = approved")
        found = run("audit", decisions(), *ROLES, "--favourable", "denied", code=2)
        assert found.stdout.startswith("favourable answer: y = denied")

    @pytest.mark.parametrize("function", [audit_table, train_table, compare_methods])
    def test_the_library_refuses_as_well(self, function):
        with raises("favourable_not_said", column="y", n=2):
            function(decisions(), label="y", sensitive=["g"])

    @pytest.mark.parametrize(
        ("yes", "no"),
        [(1, 0), (1, -1), (True, False), ("TRUE", "false"), ("true", "False"), (1.0, 0.0)],
    )
    def test_numbers_and_truth_values_say_it_themselves(self, yes, no):
        frame = decisions().replace({"approved": yes, "denied": no})
        found = audit_table(frame, label="y", sensitive=["g"])
        assert found["favourable"] in (str(yes), "1")
        assert found["ratios"]["selection_rate"] == pytest.approx(8 / 9)

    def test_a_favourable_number_may_be_written_in_another_way(self, run):
        frame = decisions().replace({"approved": "1.0", "denied": "0.0"})
        for name in ("1", "1.0", "1.00"):
            found = run("audit", frame, *ROLES, "--favourable", name, "--json", code=0)
            assert json.loads(found.stdout)["favourable"] == "1.0"
        refused = run("audit", frame, *ROLES, "--favourable", "2", code=1)
        assert "--favourable 2 is no value of column 'y'" in words(refused.stderr)
        with raises("unknown_value", given=Parameter("favourable", "1"), column="y"):
            as_label("1", ["01", "1.0"], "y", "favourable")

    def test_train_takes_the_larger_whatever_the_alphabet_says(self):
        frame = people(yes="TRUE", no="false")
        saved = train_table(frame, label="y", sensitive=["g"], method=Method(max_iter=20))
        assert saved.facts["favourable"] == ["TRUE"]

    def test_many_labels(self, run):
        frame = decisions().assign(y=["a", "b", "c", "b"] * 50)
        refused = words(run("audit", frame, *ROLES, code=1).stderr)
        assert "has 3 labels, 'a' (25.0% of the rows), 'b' (50.0%" in refused
        run("compare", frame, *ROLES, code=1)
        assert favourable_label({"a": 1, "b": 2, "c": 3}, "y", each=True) is None

    @pytest.mark.parametrize("demo", ["adult", "german"])
    def test_demos_know_theirs(self, demo):
        from evenhand.cli.train import demo_table

        label, sensitive, favourable = demo_table(demo, None, None, None)
        assert dataset_frame(demo)[label].eq(favourable).any()
        assert sensitive == ["sex"]
        assert demo_table(demo, "sex", ["age"], None)[2] is None

    def test_every_screen_and_document_begins_with_it(self, run):
        frame = people(yes=1, no=0).rename(columns={"y": "default"})
        roles = ["--label", "default", "--sensitive", "g"]
        fit = [*roles, "--tau", "0.3", "--no-report", "-o", "m"]
        compare = ["compare", frame, *roles, "--splits", "1", "--method", "accuracy_only"]
        for call in (
            ["audit", frame, *roles],
            ["train", frame, *fit],
            ["frontier", "m"],
            ["pick", "m", "--tau", "0.4", "-o", "p"],
            compare,
        ):
            assert run(*call).stdout.startswith("favourable answer: default = 1\n"), call
            document = json.loads(run(*call, "--json").stdout)
            first = document[0] if isinstance(document, list) else document
            assert next(iter(first.items())) == ("favourable_answer", "default = 1")

    def test_one_notion_of_such_labels(self):
        assert zero_one(["0", "1"]) == {"0": 0, "1": 1}
        assert zero_one([True, False]) == {True: 1, False: 0}
        assert zero_one(["no", "yes"]) is zero_one([1, 2]) is zero_one(["1", "true"]) is None
        true, pred = as_binary(["0", "1"], ["1", "1"], None)
        assert (true.tolist(), pred.tolist()) == ([False, True], [True, True])
        assert as_binary([0, 0], [0, 0], None)[0].tolist() == [False, False]
        with pytest.raises(ValueError, match="pos_label"):
            as_binary(["yes", "no"], ["yes", "no"], None)


class TestMissingLabels:
    """Labels for some rows only."""

    def accepted_only(self):
        """Of a 80 and of b 40 of 100 are accepted; only they can repay, and all but a few do."""
        parts = {
            g: [
                (n - 4, {"p": 1, "y": 1}),
                (4, {"p": 1, "y": 0}),
                (100 - n, {"p": 0, "y": None}),
            ]
            for g, n in (("a", 80), ("b", 40))
        }
        return rows(**parts).astype({"y": "Int64"})

    def test_a_rate_that_needs_no_label_is_of_all_rows(self):
        found = audit_table(
            self.accepted_only(), label="y", prediction="p", sensitive=["g"], tau=0.8
        )
        assert [g["value"] for g in found["rates"]["selection_rate"]] == [0.8, 0.4]
        assert not found["passed"]
        assert found["rows"]["selection_rate"] == 200
        assert found["rows"]["accuracy"] == found["rows"]["true_positive_rate"] == 120
        missing = found["missing_labels"]
        assert missing["related"]
        assert missing["by_prediction"]["others"] == {"rows": 80, "missing": 80}

    def test_it_is_said(self, run):
        args = ["--label", "y", "--prediction", "p", "--sensitive", "g"]
        shown = words(run("audit", self.accepted_only(), *args, code=2).stdout)
        assert "The selection rate is measured on all 200 rows that have a value in p." in shown
        assert "are measured on the 120 rows that have one: a selected part" in shown
        assert "Who has no y depends on p: it is missing in 100.0% of the 80 rows" in shown
        assert "Ratios marked ? cannot be judged: the missing labels could put them on" in shown
        assert re.search(r"accuracy 9[05].* 0.947 \? true positive", shown)
        # Everybody with the favourable prediction has a label, and this rate is of nobody else.
        assert re.search(r"positive predictive value 9[05].* 0.947 negative", shown)
        assert (
            "The four-fifths rule is not met: the ratio of the smallest to the largest selection"
            in (shown)
        )
        assert "is met" not in shown

    def test_labels_missing_by_chance(self, run):
        frame = rows(
            a=[(40, {"p": 1, "y": 1}), (40, {"p": 0, "y": 0})],
            b=[(40, {"p": 1, "y": 0}), (40, {"p": 0, "y": 1})],
        ).astype({"y": "Int64"})
        frame.loc[::10, "y"] = None
        args = ["--label", "y", "--prediction", "p", "--sensitive", "g"]
        found = json.loads(run("audit", frame, *args, "--json", code=0).stdout)
        assert found["missing_labels"]["n"] == 16
        assert not found["missing_labels"]["related"]
        shown = words(run("audit", frame, *args).stdout)
        assert "on the 144 rows that have one: a selected part" in shown
        assert "depends on" not in shown

    def test_few_rows_all_of_one_answer(self):
        """One row of each group says 0, and of these none has a label: no test would notice."""
        part = [(2, {"p": 1, "y": 1}), (2, {"p": 1, "y": 0}), (1, {"p": 0, "y": None})]
        frame = rows(a=part, b=part).astype({"y": "Int64"})
        found = audit_table(frame, label="y", prediction="p", sensitive=["g"])["missing_labels"]
        assert found["related"]
        assert found["by_group"][0]["p_value"] > 0.05

    def test_within_groups_only(self, run):
        """Of a those who are refused have no label, of b those who are accepted: 40 of each."""
        parts = {
            g: [
                *((50, {"p": 1 - p, "y": y}) for y in (0, 1)),
                *((30, {"p": p, "y": y}) for y in (0, 1)),
                (40, {"p": p, "y": None}),
            ]
            for g, p in (("a", 0), ("b", 1))
        }
        args = ["--label", "y", "--prediction", "p", "--sensitive", "g"]
        frame = rows(**parts).astype({"y": "Int64"})
        found = json.loads(run("audit", frame, *args, "--json", code=0).stdout)["missing_labels"]
        assert found["p_value"] == 1
        assert found["related"]
        assert not found["related_pooled"]
        assert [part["related"] for part in found["by_group"]] == [True, True]
        shown = words(run("audit", frame, *args).stdout)
        assert (
            "Among a, who has no y depends on p: it is missing in 40.0% of the 100 rows with "
            "another and 0.0% of the 100 rows with the favourable answer. Among b, who" in shown
        )
        assert "No rate that needs y can be judged (ratios marked ?)." in shown

    def test_tests_within_groups_are_corrected_for_their_number(self):
        """Of a the p-value is 0.03: below 5%, above 5% over two groups."""
        parts = {
            g: [
                (gone0, {"p": 0, "y": None}),
                (gone1, {"p": 1, "y": None}),
                (50 - gone0, {"p": 0, "y": 0}),
                (50 - gone1, {"p": 1, "y": 1}),
            ]
            for g, (gone0, gone1) in {"a": (6, 0), "b": (0, 5)}.items()
        }
        frame = rows(**parts).astype({"y": "Int64"})
        found = audit_table(frame, label="y", prediction="p", sensitive=["g"])["missing_labels"]
        assert 0.025 < found["by_group"][0]["p_value"] < 0.05
        assert not found["related"]
        assert found["not_judged"] == []

    def test_few_missing_labels_bracket_nothing(self, run):
        """All six labels that are missing are of one prediction, and could change no verdict."""
        part = [(400, {"p": p, "y": y}) for p in (0, 1) for y in (0, 1)]
        frame = rows(a=[*part, (6, {"p": 0, "y": None})], b=part).astype({"y": "Int64"})
        args = ["--label", "y", "--prediction", "p", "--sensitive", "g"]
        found = json.loads(run("audit", frame, *args, "--json", code=0).stdout)["missing_labels"]
        assert (found["n"], found["related"], found["not_judged"]) == (6, True, [])
        shown = words(run("audit", frame, *args).stdout)
        assert "on the 3,200 rows that have one: a selected part." in shown
        assert (
            "But whatever the missing labels are, every ratio stays on its side of the target"
            in shown
        )
        assert "1.000 ?" not in shown
        assert "judged" not in shown
        # At this target they could.
        found = audit_table(frame, label="y", prediction="p", sensitive=["g"], tau=0.999)
        assert "negative_predictive_value" in found["missing_labels"]["not_judged"]
        assert "positive_predictive_value" not in found["missing_labels"]["not_judged"]

    @pytest.mark.parametrize("name", list(RATES))
    def test_ends_are_those_of_all_labels_that_could_be(self, name):
        rng = np.random.default_rng(0)
        counts = rng.integers(1, 9, size=(2, 2, 2)).astype(float)
        if name == "accuracy":
            counts[:, :, 0] = 0
        gone = np.array([[2, 3], [0, 1]])
        ends = rate_ends(RATES[name], counts, unknown_labels(name, gone))
        low, high = map(RATES[name].per_group, ends)
        for j in range(2):
            found = []
            first, second = (0, gone[j].sum()) if name == "accuracy" else gone[j]
            for k, m in itertools.product(range(first + 1), range(second + 1)):
                c = counts[j : j + 1].copy()
                c[0, :, 0] += [first - k, k]
                c[0, :, 1] += [second - m, m]
                found.append(RATES[name].per_group(c)[0])
            assert (low[j], high[j]) == (min(found), max(found))

    def test_a_side_of_tau_is_firm(self):
        def firm(low, high, tau):
            ends = ([[[100 - n, 0], [0, n]] for n in hits] for hits in (low, high))
            return is_firm(
                Target(RATES["selection_rate"], tau), *(np.array(c, dtype=float) for c in ends)
            )

        assert firm([36, 45], [36, 45], 0.8)
        assert firm([36, 45], [36, 45], 0.81)
        assert not firm([36, 45], [36, 46], 0.8)
        assert firm([36, 45], [36, 46], 0.85)
        assert not firm([36, 45], [46, 45], 0.85)
        assert not firm([0, 0], [50, 50], 0.8)
        assert not firm([0, 0], [0, 0], 0.8)

    def test_another_comparison_needs_no_other_code(self, monkeypatch):
        """A difference, as another way in which groups are compared: less is fairer."""
        frame = rows(
            a=[(60, {"y": 1, "p": 1}), (40, {"y": 0, "p": 0})],
            b=[(50, {"y": 1, "p": 1}), (50, {"y": 0, "p": 0})],
        )
        ask = {"label": "y", "prediction": "p", "sensitive": ["g"], "comparison": "difference"}
        found = audit_table(frame, tau=-0.11, **ask)
        assert found["ratios"]["selection_rate"] == pytest.approx(-0.1)
        assert found["passed"]
        assert not audit_table(frame, tau=-0.09, **ask)["passed"]
        # Of b 2 to 52 of 100 could be favourable, of a 60: at least 8 apart, at most 58.
        frame.loc[(frame.g == "b") & (np.arange(200) % 100 < 48), "p"] = None
        frame.loc[198:, "p"] = None
        for tau, judged in ((-0.07, True), (-0.09, False), (-0.57, False), (-0.59, True)):
            assert audit_table(frame, tau=tau, **ask)["judged"] == judged


class TestLabelsAloneForSomeRows:
    """Without predictions, who has no label shows in the groups only."""

    def repaid(self, a=10, b=60):
        """Of those with a label 80% repaid in each group; so many of 100 have none."""
        parts = {
            g: [
                (round(0.8 * (100 - gone)), {"y": 1}),
                (round(0.2 * (100 - gone)), {"y": 0}),
                (gone, {"y": None}),
            ]
            for g, gone in (("a", a), ("b", b))
        }
        return rows(**parts).astype({"y": "Int64"})

    def test_who_has_none_depends_on_the_group(self, run):
        found = json.loads(run("audit", self.repaid(), *ROLES, "--json", code=2).stdout)
        assert (found["judged"], found["passed"]) == (False, False)
        assert found["ratios"]["selection_rate"] == 1
        missing = found["missing_labels"]
        assert missing["by_group"] == [
            {"group": "a", "rows": 100, "missing": 10},
            {"group": "b", "rows": 100, "missing": 60},
        ]
        assert (missing["related"], missing["not_judged"]) == (True, ["selection_rate"])
        shown = words(run("audit", self.repaid(), *ROLES).stdout)
        assert "The rate is measured on 130 of 200 rows, which have a value in y" in shown
        assert "depends on g: it is missing in 10.0% of the 100 rows of a and 60.0% of" in shown
        assert "1.000 ?" in shown
        assert "The four-fifths rule cannot be judged: too many rows have no y" in shown
        assert "is met" not in shown

    def test_it_does_not(self, run):
        found = run("audit", self.repaid(30, 30), *ROLES, code=0)
        assert "The rate is measured on 140 of 200 rows, which have a value in y" in words(
            found.stdout
        )
        assert "rule is met" in found.stdout
        assert "depends" not in found.stdout

    def test_none_is_missing(self, run):
        found = json.loads(run("audit", self.repaid(0, 0), *ROLES, "--json", code=0).stdout)
        assert (found["judged"], found["passed"], found["missing_labels"]) == (True, True, None)
        assert "selected" not in run("audit", self.repaid(0, 0), *ROLES).stdout

    def test_the_verdict_stays_whatever_they_are(self, run):
        """Ten of b have no label, and with the best of labels b would be far behind."""
        frame = rows(
            a=[(90, {"y": 1}), (10, {"y": 0})],
            b=[(20, {"y": 1}), (70, {"y": 0}), (10, {"y": None})],
        ).astype({"y": "Int64"})
        found = json.loads(run("audit", frame, *ROLES, "--json", code=2).stdout)
        assert found["missing_labels"]["related"]
        assert found["judged"]
        shown = words(run("audit", frame, *ROLES).stdout)
        assert "But whatever the missing labels are, the ratio stays on its side of the" in shown
        assert "The four-fifths rule is not met" in shown

    def test_a_group_without_labels(self, run):
        found = json.loads(run("audit", self.repaid(0, 100), *ROLES, "--json", code=2).stdout)
        assert (found["sizes"], found["judged"]) == ([100, 0], False)
        assert found["association"] is None
        shown = words(run("audit", self.repaid(0, 100), *ROLES).stdout)
        assert "The four-fifths rule cannot be judged: no row of b has y." in shown

    def test_one_of_three_groups_without_labels(self, run):
        frame = pd.concat([self.repaid(0, 0), self.repaid(100, 100).assign(g="c")])
        shown = words(run("audit", frame, *ROLES, code=2).stdout)
        assert "0.0% of the 100 rows of b and 100.0% of the 200 rows of c" in shown
        assert "cannot be judged" in shown
        assert "change the verdict" not in shown

    def test_of_many_groups_two_are_named(self, run):
        frame = pd.concat(
            self.repaid(gone, gone + 10).replace({"g": {"a": f"a{gone}", "b": f"b{gone}"}})
            for gone in (0, 20, 40)
        )
        shown = words(run("audit", frame, *ROLES, code=2).stdout)
        assert (
            "it is missing in 0.0% of the 100 rows of a0 and 50.0% of the 100 rows of b40." in shown
        )


class TestOtherLabels:
    """What counts as not favourable is said."""

    def frame(self, *others):
        return rows(**{g: [(60, {"y": "yes"}), *((20, {"y": w}) for w in others)] for g in "ab"})

    def test_they_are_counted(self, run):
        args = [*ROLES, "--favourable", "yes"]
        frame = self.frame("no", "later")
        found = json.loads(run("audit", frame, *args, "--json", code=0).stdout)
        assert found["not_favourable"] == {"later": 40, "no": 40}
        assert found["perhaps_missing"] == found["alike_labels"] == []
        shown = words(run("audit", frame, *args).stdout)
        assert "counted as not favourable: later (40 rows), no (40 rows)" in shown
        assert "--na" not in shown
        shown = run("audit", self.frame("no"), *args).stdout
        assert "counted as not favourable: no (40 rows)" in shown
        both = [*args, "--prediction", "p"]
        shown = run("audit", self.frame("no").assign(p="no"), *both).stdout
        assert "counted as not favourable in y: no (40 rows)" in shown

    def test_not_where_labels_say_it_themselves(self, run):
        frame = self.frame("no").replace({"yes": 1, "no": 0})
        assert "counted" not in run("audit", frame, *ROLES).stdout
        assert "not_favourable" not in json.loads(run("audit", frame, *ROLES, "--json").stdout)

    @pytest.mark.parametrize(
        "word", [".", "n.a.", "none", "NONE", "Unknown", "missing", "pending", "tbd", "(blank)"]
    )
    def test_words_that_may_stand_for_no_outcome(self, run, word):
        args = [*ROLES, "--favourable", "yes"]
        shown = words(run("audit", self.frame("no", word), *args, code=0).stdout)
        option = f"--na {shlex.quote(word)}"
        told = f"If {word!r} in y means that there is no outcome, {option} leaves these rows out;"
        assert told in shown
        left = run("audit", self.frame("no", word), *args, "--na", word, "--json", code=0)
        assert json.loads(left.stdout)["n_rows_compared"] == 160

    def test_not_if_they_were_said_to_be_values(self, run):
        args = [*ROLES, "--favourable", "yes", "--keep-na", "y"]
        assert "--na" not in run("audit", self.frame("no", "None"), *args, code=0).stdout

    def test_one_word_written_in_two_ways(self, run):
        args = [*ROLES, "--favourable", "yes"]
        frame = self.frame("no", "Yes", "n o")
        found = json.loads(run("audit", frame, *args, "--json").stdout)
        assert found["alike_labels"] == [{"Yes": 40, "yes": 120}, {"n o": 40, "no": 40}]
        shown = words(run("audit", frame, *args).stdout)
        assert "'Yes' (40 rows) and 'yes' (120 rows) in y are counted as different" in shown
        found = audit_table(self.frame("1", "1.0"), label="y", sensitive=["g"], favourable="yes")
        assert found["alike_labels"] == [{"1": 40, "1.0": 40}]

    def test_one_group_written_in_two_ways(self, run):
        frame = rows(**{g: [(60, {"y": "yes"}), (40, {"y": "no"})] for g in ("a", "A", "b")})
        args = [*ROLES, "--favourable", "yes"]
        found = json.loads(run("audit", frame, *args, "--json", code=0).stdout)
        assert found["alike_groups"] == {"g": [{"A": 100, "a": 100}]}
        told = "'a' (100 rows) and 'A' (100 rows) in g are counted as different groups"
        assert told in words(run("audit", frame, *args, code=0).stdout)
        settings = {"label": "y", "sensitive": ["g"], "favourable": "yes", "tau": 0.1}
        inputs = frame.assign(x=np.arange(300) % 7)
        with warns("alike_labels", column="g", what="different groups"):
            train_table(inputs, **settings)

    def test_training_tells_of_them_as_well(self):
        frame = self.frame("no", "pending").assign(x=np.arange(200) % 7)
        settings = {"label": "y", "sensitive": ["g"], "favourable": "yes", "tau": 0.1}
        others = "'no' (40 rows) and 'pending' (40 rows)"
        with warns("other_labels", column="y", labels=others):
            train_table(frame, **settings)
        with warns("perhaps_no_outcome", labels="'pending'", na=Parameter("na", ["pending"])):
            train_table(frame, **settings)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            train_table(frame, **settings, na=["pending"])
        codes = {getattr(w.message, "code", None) for w in caught}
        assert not codes & {"other_labels", "perhaps_no_outcome"}


class TestRatesAreWhatTheySay:
    """Accuracy is the share of right answers, 0/0 is no ratio, and rows are those compared."""

    def test_accuracy_of_many_labels(self, run):
        """Half of the answers low and mid are mistaken for each other, none for high."""
        pairs = {"a": (30, 10), "b": (20, 20)}
        frame = rows(
            **{
                g: [
                    (20, {"y": "high", "p": "high"}),
                    (right, {"y": "low", "p": "low"}),
                    (wrong, {"y": "low", "p": "mid"}),
                    (40, {"y": "mid", "p": "mid"}),
                ]
                for g, (right, wrong) in pairs.items()
            }
        )
        args = [*ROLES, "--prediction", "p", "--favourable", "high", "--json"]
        found = json.loads(run("audit", frame, *args, code=0).stdout)
        assert found["accuracy"] == pytest.approx(170 / 200)
        each = found["rates"]["accuracy"]
        assert [g["value"] for g in each] == [0.9, 0.8]
        assert (each[0]["low"], each[0]["high"]) == pytest.approx(
            tuple(binomtest(90, 100).proportion_ci(0.95))
        )
        assert found["ratios"]["accuracy"] == pytest.approx(8 / 9)
        assert found["rows"]["accuracy"] == 200
        assert found["rates"]["true_positive_rate"][0]["value"] == 1

    def test_accuracy_with_a_small_group_and_missing_labels(self):
        parts = [(40, {"y": 1, "p": 1}), (10, {"y": 0, "p": 1}), (10, {"y": None, "p": 1})]
        frame = rows(a=parts, b=parts, c=[(3, {"y": 0, "p": 1})]).astype({"y": "Int64"})
        found = audit_table(frame, label="y", prediction="p", sensitive=["g"])
        assert found["accuracy"] == 0.8
        assert found["rows"]["accuracy"] == 100
        assert found["n_rows_compared"] == 120

    def test_no_errors_are_no_ratio(self, run):
        part = [(50, {"y": 1, "p": 1}), (50, {"y": 0, "p": 0})]
        args = [*ROLES, "--prediction", "p"]
        found = json.loads(run("audit", rows(a=part, b=part), *args, "--json", code=0).stdout)
        for name, rate in RATES.items():
            assert found["ratios"][name] == (None if rate.is_error else 1), name
        shown = words(run("audit", rows(a=part, b=part), *args).stdout)
        assert (
            "No ratio, because no group has such an error: false positive rate, false negative "
            "rate, false discovery rate, false omission rate." in shown
        )
        assert RATES["false_positive_rate"].ratio(np.ones((2, 2, 2)) * np.eye(2)) == 1

    def test_rows_of_the_file_and_rows_compared(self, run):
        part = [(50, {"y": 1, "p": "1"}), (40, {"y": 0, "p": "0"}), (10, {"y": 0, "p": ""})]
        frame = rows(a=part, b=part, c=[(5, {"y": 1, "p": "1"})])
        args = [*ROLES, "--prediction", "p"]
        found = json.loads(run("audit", frame, *args, "--json", code=0).stdout)
        assert (found["n_rows"], found["n_rows_compared"]) == (205, 180)
        assert "180 rows, groups by g" in run("audit", frame, *args).stdout

    def test_a_group_without_predictions(self, run):
        frame = rows(a=[(5, {"p": 1}), (5, {"p": 0})], b=[(10, {"p": None})]).astype({"p": "Int64"})
        shown = words(run("audit", frame, "--prediction", "p", "--sensitive", "g", code=2).stdout)
        assert "The four-fifths rule cannot be judged: no row of b has p." in shown


def with_tiny():
    """Groups a and b are alike; of the three rows of c none is favourable."""
    return rows(
        a=[(50, {"y": 1}), (50, {"y": 0})],
        b=[(45, {"y": 1}), (55, {"y": 0})],
        c=[(3, {"y": 0})],
    )


class TestSmallGroups:
    """Tiny groups do not decide verdicts."""

    def test_audit(self, run):
        found = json.loads(run("audit", with_tiny(), *ROLES, "--json", code=0).stdout)
        assert found["groups"] == ["a", "b"]
        assert found["small_groups"] == [{"group": "c", "rows": 3, "favourable": 0}]
        assert found["ratios"]["selection_rate"] == pytest.approx(0.9)
        assert found["with_small_groups"] == {"ratio": 0.0, "passed": False}
        shown = words(run("audit", with_tiny(), *ROLES).stdout)
        assert "not compared, fewer than 30 rows: c (0 of 3 favourable)" in shown
        assert "change the verdict: with them the ratio is 0.000, and the rule is not met" in shown

    def test_audit_with_a_verdict_that_stays(self, run):
        shown = run("audit", with_tiny(), *ROLES, "--tau", "0.95", code=2).stdout
        assert "change the verdict" not in shown
        assert run("audit", with_tiny(), *ROLES, "--min-group-size", "3").exit_code == 2

    def test_two_groups_are_always_compared(self):
        two = with_tiny()[lambda t: t["g"] != "b"]
        found = audit_table(two, label="y", sensitive=["g"])
        assert found["groups"] == ["a", "c"]
        assert not found["passed"]

    def test_none_is_large(self, run):
        refused = run("audit", with_tiny(), *ROLES, "--min-group-size", "101", code=1)
        assert "fewer than two groups have --min-group-size 101 rows" in words(refused.stderr)

    def test_a_small_group_is_not_privileged(self):
        given = Parameter("privileged", "c")
        with raises("small_privileged_group", privileged=given, n=3):
            audit_table(with_tiny(), label="y", sensitive=["g"], privileged="c")

    def test_compare(self, run):
        frame = people(yes=1, no=0)
        frame.loc[:4, "g"], frame.loc[:4, "y"] = "c", [0, 1, 0, 1, 0]
        args = [*ROLES, "--splits", "1", "--method", "accuracy_only", "--tau", "0.1"]
        shown = words(run("compare", frame, *args, code=0).stdout)
        assert "left out, too few rows to test on: c (5)" in shown
        gaps = frame.assign(y=frame["y"].astype(object))
        gaps.loc[10:12, "y"] = None
        shown = words(run("compare", gaps, *args, code=0).stdout)
        assert "left out: 3 rows without a value in 'y'" in shown
        found = json.loads(run("compare", frame, *args, "--json").stdout)[0]
        assert found["small_groups"] == "c (5)"
        assert not [name for name in found if name.endswith("[c]")]
        args[args.index("accuracy_only")] = "evenhand"
        found = json.loads(run("compare", frame, *args, "--json", "--min-group-size", "1").stdout)
        assert [name for name in found[0] if name.endswith("[c]")]

    def test_compare_counts_the_rows_that_are_tested_on(self, run):
        """Of 40 rows 12 are tested on, too few to judge a method by."""
        frame = people(yes=1, no=0)
        frame.loc[:39, "g"], frame.loc[:39, "y"] = "c", [0, 1] * 20
        args = [*ROLES, "--splits", "1", "--method", "evenhand", "--tau", "0.1"]
        shown = words(run("compare", frame, *args, code=0).stdout)
        assert "left out, too few rows to test on: c (40)" in shown
        args[args.index("evenhand")] = "group_thresholds"
        shown = words(run("compare", frame, *args, "--method", "evenhand", code=0).stdout)
        every = words(
            run("compare", frame, *args, "--method", "evenhand", "--min-group-size", "5").stdout
        )
        assert "left out: a cut per group: sensitive_features has 3 groups" in every

    def test_compare_says_which_group_makes_an_answer_none(self, run):
        """All eight rows of b have a low x, and nobody among them gets the favourable answer."""
        frame = people(yes=1, no=0).assign(g="a")
        frame.loc[:7, ["g", "x"]] = ["b", -9.0]
        frame.loc[:7, "y"] = [1, 0] * 4
        args = [*ROLES, "--splits", "1", "--method", "accuracy_only", "--tau", "0.1"]
        shown = words(run("compare", frame, *args, code=0).stdout)
        assert re.search(
            r"plain logistic regression, τ = 0.1: in 100% of the splits its answers do not count "
            r"and τ is not met, because of the group b \([23] test rows\) 0.0% get the favourable",
            shown,
        )


class TestDifferences:
    """Differences are written as such, and the rates they are of stay rates."""

    FRAME = staticmethod(
        lambda: rows(a=[(20, {"y": 1}), (80, {"y": 0})], b=[(60, {"y": 1}), (40, {"y": 0})])
    )

    def test_json(self, run):
        found = run("audit", self.FRAME(), *ROLES, "--epsilon", "0.1", "--json", code=2)
        found = json.loads(found.stdout)
        assert [group["value"] for group in found["rates"]["selection_rate"]] == [0.2, 0.6]
        assert found["differences"]["selection_rate"] == pytest.approx(0.4)

    def test_no_difference_allowed(self, run):
        shown = words(run("audit", self.FRAME(), *ROLES, "--epsilon", "0", code=2).stdout)
        assert "A difference of at most 0 is not met: the difference" in shown
        assert "In the population ε = 0 fails: the difference is" in shown


class TestPrivileged:
    """The verdict is about the smallest ratio in either direction."""

    def test_a_named_group_that_is_worst_off(self, run):
        frame = rows(
            a=[(20, {"y": 1}), (80, {"y": 0})],
            b=[(60, {"y": 1}), (40, {"y": 0})],
            c=[(30, {"y": 1}), (70, {"y": 0})],
        )
        found = run("audit", frame, *ROLES, "--privileged", "a", "--json", code=2)
        found = json.loads(found.stdout)
        assert found["ratios"]["selection_rate"] == pytest.approx(1 / 3)
        to = found["ratios_to_privileged"]["selection_rate"]
        assert to == pytest.approx([1, 3, 1.5])
        shown = words(run("audit", frame, *ROLES, "--privileged", "a").stdout)
        assert (
            "The four-fifths rule is not met: the ratio of the smallest to the largest rate"
            in shown
        )
        assert "largest rate is 0.333. In the population τ = 0.8 fails: the ratio is" in shown
        assert "Divided by the rate of a: b 3.000, c 1.500." in shown
        apart = run("audit", frame, *ROLES, "--privileged", "a", "--epsilon", "0.1", code=2)
        assert "Divided by the rate of a: b 3.000, c 1.500." in words(apart.stdout)


class TestWords:
    """Names, orders and sentences."""

    def test_crossed_groups_are_told_apart(self, run):
        frame = decisions().assign(h=["N", "Y"] * 100, y=[1, 1, 0, 1] * 50)
        args = ["--label", "y", "--sensitive", "g", "--sensitive", "h"]
        found = json.loads(run("audit", frame, *args, "--json").stdout)
        assert found["groups"] == ["a & N", "a & Y", "b & N", "b & Y"]
        shown = words(run("audit", frame, *args, "--privileged", "a & Y").stdout)
        assert "Divided by the rate of a & Y: a & N 0.500, b & N 0.500, b & Y 1.000." in shown

    def test_models_of_earlier_versions_know_their_crossed_groups(self):
        from evenhand.models.inputs import code_known_groups

        pairs = pd.DataFrame({"g": ["a", "b"], "h": ["N", "Y"]})
        for names in (["a, N", "b, Y"], ["a & N", "b & Y"]):
            codes = code_known_groups("it", np.array(names), pairs, 2)
            assert codes.tolist() == [0, 1]

    @pytest.mark.parametrize("edges", [[5.0, 30.0, 100.0], [-10.0, -2.0, 0.5], [1e6, 1e16]])
    def test_bins_are_in_the_order_of_their_numbers(self, edges):
        names = bin_names(np.array(edges)).tolist()
        assert group_codes(sorted(names))[0].tolist() == names
        pairs = pd.DataFrame([(name, sex) for name in sorted(names) for sex in "mf"])
        wanted = [f"{name} & {sex}" for name in names for sex in "fm"]
        assert group_codes(pairs)[0].tolist() == wanted

    def test_bins_on_screens(self, run):
        frame = pd.DataFrame({"age": np.arange(400) % 80, "y": np.arange(400) % 7 % 2})
        args = ["--label", "y", "--sensitive", "age", "--bins", "9,40,"]
        found = json.loads(run("audit", frame, *args, "--json").stdout)
        assert found["groups"] == ["below 9", "9 to 40", "from 40"]

    def test_a_ratio_that_is_none(self, capsys):
        from evenhand.views.terminal.models import say_test
        from evenhand.views.terminal.screen import Screen

        part = {"name": "selection_rate", "share": 1.0, "numerator": [[0, 1], [1, 1]]}
        part["denominator"] = [[0, 0], [0, 1], [1, 0], [1, 1]]
        summary = {
            "saved": {"counts": {"test": [[[5, 0], [5, 0]]] * 2}},
            "groups": ["a", "b"],
            "labels": ["0", "1"],
            "tau": 0.8,
            "rate": {"parts": [part], "name": "statistical rate"},
            "reached": {"target_reached": True},
            "asked": {"selection": "train", "label": "y", "confidence": None},
            "parts": [{"key": "test", "weighted": False}],
        }
        say_test(Screen(), summary)
        shown = words(capsys.readouterr().out)
        assert "On the test rows the ratio cannot be computed" in shown
        assert "–" not in shown

    def test_one_small_group_in_the_report(self):
        from evenhand.views.report.words import limits

        data = {"small_groups": {"c": 3}}
        told = dict(limits({"asked": {"sensitive": ["g"]}, "data": data, "parts": []}, []))
        assert "3 rows are in a group that is too small" in told["Small groups were not compared."]


class TestBestCut:
    """Plain logistic regression at its best cut, so that a cut alone is no merit of the fit."""

    def frame(self):
        """Few are favourable and the odds bend: 0 is not the best cut."""
        rng = np.random.default_rng(3)
        x, g = rng.normal(size=400), rng.choice(["a", "b"], 400)
        y = ((x > 1.2) | (x < -1.8)).astype(int)
        return pd.DataFrame({"x": x + 0.1 * rng.normal(size=400), "g": g, "y": y})

    def test_it_is_the_best_of_all_cuts(self):
        frame = self.frame()
        saved = train_table(
            frame, label="y", sensitive=["g"], test_size=0.0, method=Method(max_iter=20)
        )
        plain = saved.facts["plain"]
        best = plain["best_cut"]
        encoded = saved.model[:-1].transform(frame)
        w = np.array(plain["weights"])
        scores = np.asarray(encoded @ w[:-1]) + w[-1]
        every = [np.mean((scores > c) == frame["y"]) for c in [scores.min() - 1, *scores]]
        counts = np.array(best["counts"]["train"])
        assert np.trace(counts.sum(axis=0)) / 400 == max(every)
        assert np.mean((scores > best["cut"]) == frame["y"]) == max(every)
        assert max(every) > np.mean((scores > 0) == frame["y"])
        assert summarise(saved)["plain"]["best_cut"] == best

    def test_it_is_shown_beside_the_other_and_saved(self, run):
        fit = [*ROLES, "--tau", "0.1", "--no-report", "-o", "m"]
        shown = run("train", self.frame(), *fit).stdout
        assert shown.count("plain, best cut") == 2
        assert set(json.loads(run("train", self.frame(), *fit, "--json").stdout)["plain"]) == {
            "counts",
            "best_cut",
        }
        assert "plain, best cut" in run("pick", "m", "--tau", "0.2", "-o", "p").stdout

    def test_0_stays_if_no_cut_is_better(self):
        cuts = np.array([-1.0, 0.0, 1.0])
        assert best_cut(cuts, np.array([1.0, 0.0, 0.0, 0.0])) == 0
        assert best_cut(cuts, np.array([1.0, 0.0, 1.0, 0.0])) == 1


class TestMissingPredictions:
    """Of 200 rows of a group half have no answer, mostly such as were not to get the favourable."""

    def frame(self):
        frame = pd.DataFrame({"g": ["a", "b"] * 200, "p": "no"}, dtype=object)
        rows = np.arange(400)
        frame.loc[(rows // 2) % 2 == 0, "p"] = "yes"
        frame.loc[(frame.g == "a") & (frame.p == "no") & (rows % 4 == 2), "p"] = None
        return frame

    def test_they_are_no_pass(self, run):
        args = ["--prediction", "p", "--sensitive", "g", "--favourable", "yes"]
        shown = words(run("audit", self.frame(), *args, code=2).stdout)
        assert "Who has no p depends on g" in shown
        assert "cannot be judged" in shown
        assert "Passes" not in shown
        found = json.loads(run("audit", self.frame(), *args, "--json").stdout)
        assert found["missing_predictions"]["related"]
        assert not found["judged"]
        assert not found["passed"]

    def test_all_there(self, run):
        frame = self.frame().fillna("no")
        args = ["--prediction", "p", "--sensitive", "g", "--favourable", "yes", "--json"]
        found = json.loads(run("audit", frame, *args).stdout)
        assert found["missing_predictions"] is None
        assert found["passed"]

    def test_compare_says_whom_it_leaves_out(self, run):
        frame = self.frame().assign(x=np.arange(400) % 7)
        args = ["--label", "p", "--sensitive", "g", "--favourable", "yes", "--splits", "1"]
        shown = words(run("compare", frame, *args, "--method", "evenhand", "--tau", "0.1").stdout)
        assert "who has a label depends on the group; figures are of a selected part" in shown


class TestTwoVerdicts:
    """The rule is about the rows, the other verdict about the population they were drawn from."""

    @pytest.mark.parametrize(
        ("hits", "n", "rule", "population", "codes"),
        [
            ((10, 9), 20, "met", "cannot be told", (0, 3)),
            ((10, 7), 20, "not met", "cannot be told", (2, 3)),
            ((900, 890), 1000, "met", "holds", (0, 0)),
            ((900, 500), 1000, "not met", "fails", (2, 2)),
        ],
    )
    def test_words_and_exit_codes(self, run, hits, n, rule, population, codes):
        a, b = hits
        frame = rows(
            a=[(a, {"y": 1}), (n - a, {"y": 0})],
            b=[(b, {"y": 1}), (n - b, {"y": 0})],
        )
        shown = words(run("audit", frame, *ROLES, code=codes[0]).stdout)
        assert f"The four-fifths rule is {rule}: the ratio of" in shown
        assert ("cannot be told from these rows" in shown) == (population == "cannot be told")
        assert (f"In the population τ = 0.8 {population}: the" in shown) == (codes[1] != 3)
        sure = run("audit", frame, *ROLES, "--confidence", "0.95", "--json", code=codes[1])
        found = json.loads(sure.stdout)
        assert (found["verdict"]["rule"], found["verdict"]["population"]) == (rule, population)
        assert found["passed"] == (rule == "met")
        bounds = [found["verdict"]["at_least"], found["verdict"]["at_most"]]
        assert found["bounds"]["selection_rate"] == bounds
        assert bounds[0] <= found["ratios"]["selection_rate"] <= bounds[1]

    def test_ten_of_twenty_and_nine_of_twenty(self, run):
        frame = rows(
            a=[(10, {"y": 1}), (10, {"y": 0})],
            b=[(9, {"y": 1}), (11, {"y": 0})],
        )
        shown = words(run("audit", frame, *ROLES).stdout)
        assert "is 0.454 or more, and 1.000 or less, each with 95% confidence." in shown
        assert re.search(r"About 9\d0 rows at the same rates would tell\.", shown)
        more = pd.concat([frame] * 24)
        assert "In the population τ = 0.8 holds" in words(run("audit", more, *ROLES).stdout)

    def test_small_groups_are_no_part_of_it(self, run):
        frame = rows(
            a=[(900, {"y": 1}), (100, {"y": 0})],
            b=[(900, {"y": 1}), (100, {"y": 0})],
            c=[(1, {"y": 1}), (9, {"y": 0})],
        )
        shown = words(run("audit", frame, *ROLES, code=0).stdout)
        assert "In the population τ = 0.8 holds for the groups compared: the ratio" in shown
        found = json.loads(run("audit", frame, *ROLES, "--json", code=0).stdout)
        assert found["verdict"]["groups"] == "compared"

    def test_another_confidence(self, run):
        frame = rows(a=[(50, {"y": 1}), (50, {"y": 0})], b=[(47, {"y": 1}), (53, {"y": 0})])
        run("audit", frame, *ROLES, "--confidence", "0.95", code=3)
        shown = words(run("audit", frame, *ROLES, "--confidence", "0.7", code=0).stdout)
        assert "with 70% confidence" in shown
        refused = words(run("audit", frame, *ROLES, "--confidence", "95", code=1).stderr)
        assert "--confidence 95" in refused

    def test_labels_missing_for_a_reason_prove_nothing(self, run):
        """The rule is judged, because no missing labels could change it."""
        frame = rows(
            a=[(90, {"y": 1}), (10, {"y": 0})],
            b=[(20, {"y": 1}), (70, {"y": 0}), (10, {"y": None})],
        ).astype({"y": "Int64"})
        found = json.loads(run("audit", frame, *ROLES, "--json", code=2).stdout)
        assert (found["verdict"]["rule"], found["verdict"]["population"]) == (
            "not met",
            "cannot be told",
        )
        assert found["bounds"]["selection_rate"] == [None, None]
        shown = words(run("audit", frame, *ROLES, "--confidence", "0.95", code=3).stdout)
        assert "Whether τ = 0.8 holds in the population cannot be told." in shown

    def test_bounds_are_those_of_the_function(self, run):
        rng = np.random.default_rng(4)
        frame = pd.DataFrame({"g": np.repeat(["a", "b", "c"], 100), "y": rng.integers(0, 2, 300)})
        frame["p"] = np.where(rng.random(300) < 0.8, frame["y"], 1 - frame["y"])
        found = audit_table(frame, label="y", prediction="p", sensitive=["g"])
        for name in ("selection_rate", "true_positive_rate", "accuracy"):
            ends = evenhand.ratio_interval(
                frame["y"], frame["p"], sensitive_features=frame["g"], rate=name, sides=1
            )
            assert found["bounds"][name] == pytest.approx(ends)
