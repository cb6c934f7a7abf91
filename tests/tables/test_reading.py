"""What a table is read as: missing words, identifiers and codes, leaks and stand-ins."""

import json
import zipfile
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from helpers import COMMAND, invoke, raises, warns

from evenhand import load_model, save_model
from evenhand.core.errors import InputError, Parameter
from evenhand.persist.archive import LIMITS
from evenhand.persist.state import encoder_from
from evenhand.tables.columns import NO_VALUE
from evenhand.tables.encoder import TableEncoder
from evenhand.tables.pipeline import fair_pipeline
from evenhand.workflow.summary import summarise


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*args):
        result = invoke(args)
        unknown = result.exception is not None and not isinstance(result.exception, SystemExit)
        assert not unknown, result.exception
        return result

    return run


def people(n=400, seed=0):
    random = np.random.default_rng(seed)
    sex = random.choice(["f", "m"], n)
    x = random.normal(size=n) + 0.5 * (sex == "m")
    risk = np.array(["None", "Low", "High"])[np.digitize(x + random.normal(size=n), [-0.5, 0.5])]
    return pd.DataFrame({"x": x.round(3), "sex": sex, "risk": risk})


TRAIN = ["--label", "risk", "--sensitive", "sex", "--tau", "0.2", "-o", "m.model"]


class TestMissingWords:
    def test_a_label_is_not_dropped_unasked(self, run):
        table = people()
        n = int((table["risk"] == "None").sum())
        table.to_csv("t.csv", index=False)
        for command in (["train", *TRAIN], ["audit", *TRAIN[:4]], ["compare", *TRAIN[:4]]):
            refused = run(command[0], "t.csv", *command[1:])
            assert refused.exit_code == 1
            assert f"column 'risk' has 'None' in {n} rows, which may be a value" in refused.stderr
            assert "--keep-na risk if it is a value, or --na None if it is none" in refused.stderr
        kept = run("train", "t.csv", *TRAIN, "--keep-na", "risk", "--json")
        about = json.loads(kept.stdout)
        assert about["labels"] == ["High", "Low", "None"]
        assert (about["data"]["rows"], about["data"]["rows_dropped"]) == (400, [])
        dropped = run("train", "t.csv", *TRAIN, "--na", "None", "--json", "--favourable", "Low")
        about = json.loads(dropped.stdout)
        assert about["labels"] == ["High", "Low"]
        (left_out,) = about["data"]["rows_dropped"]
        assert (left_out["reason"], left_out["n"]) == ("without a value in 'risk'", n)

    def test_empty_cells_of_the_label_are_dropped_as_ever(self, run):
        table = people()
        table["risk"] = table["risk"].where(table["risk"] != "None", None)
        table.to_csv("t.csv", index=False)
        told = json.loads(run("train", "t.csv", *TRAIN, "--favourable", "Low", "--json").stdout)
        assert told["data"]["rows_dropped"][0]["n"] == int(table["risk"].isna().sum())

    @pytest.mark.parametrize("groups", ["error", "drop", "group"])
    def test_a_sensitive_value_is_not_dropped_unasked(self, run, groups):
        table = people()
        table["sex"] = table["sex"].where(np.arange(400) % 4 > 0, "NA")
        table["risk"] = table["risk"].replace("None", "Low")
        table["job"] = np.where(np.arange(400) % 3 > 0, "?", "cook")
        table.to_csv("t.csv", index=False)
        options = [*TRAIN, "--missing-groups", groups, "--favourable", "Low", "--json"]
        refused = run("train", "t.csv", *options)
        assert refused.exit_code == 1
        assert "column 'sex' has 'NA' in 100 rows" in refused.stderr
        # Both words of the table, so that the rest is read as before.
        assert "--na '?' --na NA if it is none" in refused.stderr
        kept = json.loads(run("train", "t.csv", *options, "--keep-na", "sex").stdout)
        assert kept["groups"] == ["NA", "f", "m"]
        told = run("train", "t.csv", *options, "--na", "NA", "--na", "?")
        if groups == "error":
            assert "column 'sex' has 100 rows without a value" in told.stderr
        else:
            there = ["f", "m"] if groups == "drop" else ["(missing)", "f", "m"]
            assert json.loads(told.stdout)["groups"] == there
        with raises("unclear_words", column="sex", keep_na=Parameter("keep_na", ["sex"])):
            fair_pipeline("sex", missing_groups=groups).fit(
                table.drop(columns="risk"), table["risk"]
            )

    def test_audit_and_compare_keep_words(self, run):
        table = people()
        table["sex"] = table["sex"].replace("f", "nan")
        table.to_csv("t.csv", index=False)
        keep = ["--keep-na", "risk", "--keep-na", "sex", "--favourable", "None"]
        about = json.loads(run("audit", "t.csv", *TRAIN[:4], *keep, "--json").stdout)
        assert about["groups"] == ["m", "nan"]
        assert sum(about["sizes"]) == 400
        options = ["--method", "accuracy_only", "--splits", "1", "--json"]
        assert run("compare", "t.csv", *TRAIN[:4], *keep, *options).exit_code == 0

    def test_words_are_those_that_were_asked_for(self):
        table = pd.DataFrame({"c": ["NA", ".", "b", ""] * 20, "d": ["NA", ".", "b", "c"] * 20})
        plain = TableEncoder().fit(table)
        assert [p.categories for p in plain.plans_] == [
            (".", "b", "(missing)"),
            (".", "b", "c", "(missing)"),
        ]
        asked = TableEncoder(na=".", keep_na="d").fit(table)
        assert [p.categories for p in asked.plans_] == [
            ("NA", "b", "(missing)"),
            (".", "NA", "b", "c"),
        ]
        assert TableEncoder(na="").fit(table).plans_[0].categories == (".", "NA", "b", "(missing)")

    def test_dashes_among_numbers_are_missing(self):
        values = np.arange(100) / 7
        table = pd.DataFrame({"x": [str(v) if i % 10 else "-" for i, v in enumerate(values)]})
        (plan,) = TableEncoder().fit(table).plans_
        assert (plan.kind, plan.indicator) == ("number", True)

    def test_numbers_but_for_a_word_are_named(self):
        values = np.arange(100) / 7
        table = pd.DataFrame({"x": [str(v) if i % 10 else "unknown" for i, v in enumerate(values)]})
        (plan,) = TableEncoder(min_count=1).fit(table).plans_
        assert plan.kind == "category"
        assert "numbers but for 'unknown' in 10 rows" in plan.action
        assert "kinds={'x': 'number'}" in plan.action
        (plan,) = TableEncoder(kinds={"x": "number"}).fit(table).plans_
        assert (plan.kind, plan.indicator) == ("number", True)

    def test_predict_reads_as_the_model_was_trained(self, run):
        table = people().assign(debts=["None", "-", "12", "40"] * 100)
        table["risk"] = table["risk"].replace("None", "Low")
        table.to_csv("t.csv", index=False)
        options = [*TRAIN, "--favourable", "Low", "--na", "-", "--keep-na", "risk"]
        assert run("train", "t.csv", *options).exit_code in (0, 2)
        model = load_model("m.model").model
        assert model[0].plans_[3].categories == ("12", "40", "None", "(missing)")
        assert run("predict", "m.model", "t.csv", "-o", "p.csv").exit_code == 0
        scores = pd.read_csv("p.csv")["score[Low]"]
        np.testing.assert_allclose(scores, model.predict_proba(table)[:, 1])
        alike = table.iloc[:3].assign(x=0.0, debts=["None", "-", ""])
        words = model.predict_proba(alike)[:, 1]
        assert words[0] != words[1] == words[2]

    def test_files_of_earlier_versions_are_read_as_then(self, tmp_path):
        table = people().assign(job=["None", "cook"] * 200)
        model = fair_pipeline("sex", tau=0.2).fit(
            table[["x", "job", "sex"]], table["risk"] != "Low"
        )
        save_model(model, tmp_path / "m.model")
        with zipfile.ZipFile(tmp_path / "m.model") as archive:
            state = json.loads(archive.read("model.json"))["encoder"]
        for name in ("na", "keep_na"):
            state["params"].pop(name)
        n_inputs = model[-1].n_features_in_
        old = encoder_from(state, n_inputs, LIMITS)
        assert (old.transform(table) != model[0].transform(table)).sum() == 0
        for bad in ({"na": 3}, {"keep_na": [1]}):
            with pytest.raises(ValueError, match=next(iter(bad))):
                encoder_from({**state, "params": bad}, n_inputs, LIMITS)

    def test_a_column_that_is_not_there(self, run):
        people().to_csv("t.csv", index=False)
        refused = run("train", "t.csv", *TRAIN, "--keep-na", "label")
        assert refused.exit_code == 1
        assert "--keep-na label: the table has no column 'label'; it has 'x'" in refused.stderr

    @pytest.mark.parametrize("command", ["train", "audit", "compare"])
    def test_help_names_the_words(self, command):
        options = {p.name: p for p in COMMAND.commands[command].params}
        assert options["na"].show_default == " ".join(NO_VALUE)
        assert options["keep_na"].multiple

    def test_with_dask(self, run, tmp_path, monkeypatch):
        dask = pytest.importorskip("dask")
        pytest.importorskip("distributed")
        from evenhand.workflow import dask_chunks

        monkeypatch.setattr(dask_chunks, "dask_client", lambda address, most: nullcontext())
        monkeypatch.setattr(dask_chunks, "SAMPLE", 50)
        table = people()
        table.loc[:, "risk"] = table["risk"].replace("None", "Low")
        table.loc[399, "risk"] = "None"  # outside the sample
        table.to_parquet("t.parquet", row_group_size=200)
        with dask.config.set(scheduler="synchronous"):
            refused = run("train", "t.parquet", *TRAIN, "--dask")
            assert refused.exit_code == 1
            assert "column 'risk' has 'None' in 1 row, which may" in refused.stderr
            assert "--na None if it is none" in refused.stderr
            kept = run("train", "t.parquet", *TRAIN, "--keep-na", "risk", "--json", "--dask")
        assert json.loads(kept.stdout)["labels"] == ["High", "Low", "None"]


def actions(encoder):
    return dict(zip(*encoder.decisions()[["column", "action"]].to_numpy().T, strict=True))


class TestIdentifiersAndCodes:
    def test_numbers_that_identify_are_said_on_the_screen(self, run):
        random = np.random.default_rng(1)
        table = people().assign(patient_nbr=random.permutation(9000)[random.integers(0, 350, 400)])
        table["risk"] = table["risk"].replace("None", "Low")
        table.to_csv("t.csv", index=False)
        told = run("train", "t.csv", *TRAIN, "--favourable", "Low", "--json")
        decided = {d["column"]: d for d in json.loads(told.stdout)["data"]["decisions"]}
        assert decided["patient_nbr"]["kind"] == "dropped"
        assert decided["patient_nbr"]["action"].endswith("--kind patient_nbr=number keeps it")
        keep = ["--kind", "patient_nbr=number"]
        told = run("train", "t.csv", *TRAIN, "--favourable", "Low", "--json", *keep)
        decided = {d["column"]: d for d in json.loads(told.stdout)["data"]["decisions"]}
        assert decided["patient_nbr"]["kind"] == "number"

    def test_siblings_are_of_one_kind(self):
        random = np.random.default_rng(2)
        codes = [*(f"{c}" for c in range(250, 290)), "250.83", "V57"]
        often = np.where(np.arange(600) % 100 > 0, random.choice(codes[:-1], 600), "V57")
        table = pd.DataFrame(
            {
                "diag_1": often,  # nearly all are numbers
                "diag_2": random.choice([*codes, *["V58", "E909"] * 20], 600),
                "diag_3": random.choice(codes[:-2], 600).astype(int),
                "income_1": random.permutation(90_000)[:600],
                "income_2": random.choice(["1 to 5", "5 to 9"], 600),
                "x1": random.choice(codes, 600),
                "x2": random.integers(0, 50, 600),
            }
        )
        encoder = TableEncoder().fit(table)
        kinds = dict(zip(*encoder.decisions()[["column", "kind"]].to_numpy().T, strict=True))
        assert {kinds[f"diag_{i}"] for i in (1, 2, 3)} == {"category"}
        assert (kinds["income_1"], kinds["x2"]) == ("number", "number")
        told = actions(encoder)
        assert told["diag_3"].startswith("codes as in 'diag_2' (kinds={'diag_3': 'number'} reads")
        again = TableEncoder(kinds={"diag_3": "number"}).fit(table)
        assert again.plans_[2].kind == "number"
        part = TableEncoder()
        part.fit_transform(table[:300], formats=encoder.formats_)
        assert part.plans_[0].kind == "category"

    @pytest.mark.parametrize(
        ("name", "values", "shares", "named"),
        [
            ("occupation", [11, 12, 25, 31, 47, 58], [0.9, 0.2, 0.7, 0.1, 0.8, 0.4], True),
            ("occupation", [11, 12, 25, 31, 47, 58], [0.5] * 6, True),
            ("store_id", [1, 2, 3, 4, 5, 6], [0.5] * 6, True),
            ("months", [6, 9, 12, 24, 36, 60], [0.2, 0.25, 0.3, 0.5, 0.6, 0.9], False),
            ("children", [0, 1, 2, 3, 4, 9], [0.5, 0.4, 0.6, 0.5, 0.4, 0.5], False),
            ("decade", [20, 30, 40, 50, 60, 70], [0.2, 0.4, 0.6, 0.6, 0.4, 0.2], False),
            ("weight", [1.5, 12, 25, 31, 47, 58], [0.9, 0.2, 0.7, 0.1, 0.8, 0.4], False),
        ],
    )
    def test_whole_numbers_that_look_like_codes_are_named(self, name, values, shares, named):
        random = np.random.default_rng(3)
        chances = [0.3, 0.3, 0.2, 0.1, 0.07, 0.03] if name == "children" else [1 / 6] * 6
        place = random.choice(6, 1200, p=chances)
        table = pd.DataFrame({name: np.array(values)[place], "x": random.normal(size=1200)})
        y = random.random(1200) < np.array(shares)[place]
        encoder = TableEncoder().fit(table, y)
        assert encoder.plans_[0].kind == "number"
        words = f"look like codes; if they are: kinds={{{name!r}: 'category'}}"
        assert (words in encoder.plans_[0].action) is named
        asked = TableEncoder(kinds={name: "number"}).fit(table, y)
        assert "codes" not in asked.plans_[0].action


class TestLeaksAndStandIns:
    def test_a_column_that_nearly_tells_the_label(self, run):
        table = people(1000)
        table["risk"] = table["risk"].replace("None", "Low")
        wrong = np.arange(1000) % 250 == 0
        late = np.where((table["risk"] == "High") ^ wrong, "red", "green")
        days = np.where(table["risk"] == "High", 30, 5) + np.random.default_rng(4).normal(size=1000)
        table.assign(flag=late, overdue=days.round(2)).to_csv("t.csv", index=False)
        told = run("train", "t.csv", *TRAIN, "--favourable", "Low", "--json")
        about = json.loads(told.stdout)
        assert about["notes"][:2] == [
            "column 'flag' tells the label almost always (AUC 0.995 on rows not learned from); if "
            "it is known only after the outcome, leave it out: --exclude flag.",
            "column 'overdue' tells the label without fail; if it is known only after the outcome, "
            "leave it out: --exclude overdue.",
        ]
        decided = {d["column"]: d["action"] for d in about["data"]["decisions"]}
        assert decided["overdue"] == "as it is; tells the label without fail"
        without = run(
            "train", "t.csv", *TRAIN, "--favourable", "Low", "--json", "--exclude", "flag",
            "--exclude", "overdue",
        )  # fmt: skip
        assert not any("label" in note for note in json.loads(without.stdout)["notes"])

    def test_what_is_found_by_chance_is_no_leak(self, recwarn):
        # As many values as rows tell every row they were found on, and no other.
        random = np.random.default_rng(5)
        table = pd.DataFrame(
            {"zip": random.choice([f"z{i}" for i in range(150)], 300), "x": random.normal(size=300)}
        )
        TableEncoder(min_count=1, max_categories=500).fit(table, random.random(300) < 0.1)
        assert not recwarn

    def test_what_tells_a_sensitive_number(self):
        random = np.random.default_rng(6)
        age = random.integers(18, 80, 1500)
        born = pd.Timestamp("2024-06-01") - pd.to_timedelta(
            age * 365 + random.integers(0, 365, 1500), unit="D"
        )
        table = pd.DataFrame(
            {
                "born": born.strftime("%Y-%m-%d"),
                "age_class": pd.cut(age, [0, 30, 50, 99], labels=["young", "middle", "old"]),
                "pension": np.where((age > 65) & (random.random(1500) < 0.7), "yes", "no"),
                "x": random.normal(size=1500),
                "age": age,
            }
        )
        with warns("stand_in", column="born", sensitive="age") as caught:
            encoder = TableEncoder(sensitive_features="age").fit(table)
        told = [w.message.data for w in caught]
        assert [data["column"] for data in told] == ["born", "age_class"]
        assert told[0]["tells"].startswith("tells 'more than ")
        assert told[1]["tells"].startswith("tells 'more than 30' of 'age', which is sensitive,")
        assert told[1]["exclude"] == Parameter("exclude", ["age_class"])
        listed = encoder.stand_ins_
        assert [s["column"] for s in listed] == ["age_class", "born", "pension", "x"]
        assert 0.6 < listed[2]["auc"] < 0.95

    def test_the_five_inputs_that_tell_most(self, run):
        random = np.random.default_rng(7)
        table = people(1000)
        table["risk"] = table["risk"].replace("None", "Low")
        for i, share in enumerate([0.8, 0.7, 0.6, 0.5, 0.4, 0.3]):
            true = random.random(1000) < share
            table[f"proxy {'abcdef'[i]}"] = np.where(
                true, table["sex"], random.choice(["f", "m"], 1000)
            )
        table["title"] = table["sex"].map({"f": "Ms", "m": "Mr"}).mask(random.random(1000) < 0.04)
        table["title"] = table["title"].fillna("Dr")
        table.to_csv("t.csv", index=False)
        told = json.loads(run("train", "t.csv", *TRAIN, "--favourable", "Low", "--json").stdout)
        listed = told["data"]["stand_ins"]
        assert [s["column"] for s in listed][:3] == ["title", "proxy a", "proxy b"]
        assert len(listed) == 5
        assert all(set(s) == {"column", "auc"} for s in listed)
        assert sorted((s["auc"] for s in listed), reverse=True) == [s["auc"] for s in listed]
        assert listed[0]["auc"] > 0.95 > listed[1]["auc"]
        assert any(note.startswith("column 'title' tells 'sex', which") for note in told["notes"])
        saved = load_model("m.model")
        assert saved.facts["stand_ins"] == listed
        del saved.facts["stand_ins"]
        assert summarise(saved)["data"]["stand_ins"] == []
        saved.facts["stand_ins"] = [{"column": "x", "auc": 3.0}]
        with pytest.raises(InputError, match="auc has values below 0 or above 1"):
            save_model(saved.model, "bad.model", facts=saved.facts)

    def test_sensitive_inputs_have_no_stand_ins(self, run):
        table = people()
        table["risk"] = table["risk"].replace("None", "Low")
        table.to_csv("t.csv", index=False)
        told = run("train", "t.csv", *TRAIN, "--favourable", "Low", "--sensitive-inputs", "--json")
        assert json.loads(told.stdout)["data"]["stand_ins"] == []

    def test_one_of_several_groups(self):
        random = np.random.default_rng(8)
        race = random.choice(["a", "b", "c"], 600)
        table = pd.DataFrame(
            {"tongue": np.where(race == "c", "C", random.choice(["A", "B"], 600)), "race": race}
        )
        tells = "tells 'c' of 'race', which is sensitive, without fail"
        with warns("stand_in", column="tongue", sensitive="race", tells=tells):
            encoder = TableEncoder(sensitive_features="race").fit(table)
        assert encoder.stand_ins_ == [{"column": "tongue", "auc": 1.0}]
