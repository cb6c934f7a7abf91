"""``evenhand train --dask``: the model of a training in memory, without the table in one place."""

import json
import re
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from helpers import COMMAND, invoke

from evenhand import load_model
from evenhand.core.rates import overall_accuracy
from evenhand.core.rows import Share

dask = pytest.importorskip("dask")
pytest.importorskip("distributed")
from evenhand.workflow import dask_chunks  # noqa: E402 (it imports Dask)

ROLES = ["--label", "y", "--sensitive", "sex"]


def run(*args):
    result = invoke(args)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def people(n=1500, seed=0):
    random = np.random.default_rng(seed)
    sex = random.choice(["f", "m"], n)
    income = random.normal(30, 8, n) + 6 * (sex == "m")
    born = pd.Timestamp("1960-01-01") + pd.to_timedelta(random.integers(0, 15000, n), unit="D")
    y = (income + random.normal(0, 6, n) > 33).astype(int)
    income[random.random(n) < 0.05] = np.nan
    return pd.DataFrame(
        {
            "id": np.arange(n) * 3,
            "income": income,
            "price": [f"{v:.2f} €".replace(".", ",") for v in random.gamma(2, 20, n)],
            "job": random.choice(["clerk", "cook", "nurse", None], n, p=[0.5, 0.3, 0.1, 0.1]),
            "born": born.strftime("%d.%m.%Y"),
            "flag": pd.array(random.choice([True, False], n), dtype="boolean"),
            "race": random.choice(["a", "b & c"], n),
            "sex": sex,
            "y": y,
        }
    )


def in_files(frame, folder, n_files=3, group_rows=200):
    folder.mkdir(exist_ok=True)
    for i, rows in enumerate(np.array_split(np.arange(len(frame)), n_files)):
        path = folder / f"part-{i}.parquet"
        frame.iloc[rows].to_parquet(path, index=False, row_group_size=group_rows)
    return folder


@pytest.fixture
def here(monkeypatch):
    """Dask without a cluster, in chunks of 300 rows, and few iterations, each of which is slow."""
    monkeypatch.setattr("evenhand.models.classifier.USUAL.max_iter", 10)
    monkeypatch.setattr(dask_chunks, "dask_client", lambda address, most: nullcontext())
    monkeypatch.setattr(dask_chunks, "CHUNK_ROWS", 300)
    with dask.config.set(scheduler="synchronous"):
        yield


def trained(frame, folder, *options, pattern="data"):
    """Train the same in memory and with Dask; give both models."""
    in_files(frame, folder / "data")
    frame.to_parquet(folder / "all.parquet", index=False)
    models = []
    for name, file, more in (("m", "all.parquet", []), ("d", pattern, ["--dask"])):
        out = folder / f"{name}.model"
        result = run("train", folder / file, *options, *more, "--no-report", "-o", out)
        assert result.exit_code in (0, 2), result.output
        models.append(load_model(out))
    return models


def assert_alike(one, other):
    a, b = one.model[-1], other.model[-1]
    assert a.groups_.tolist() == b.groups_.tolist()
    assert a.classes_.tolist() == b.classes_.tolist()
    assert a.small_groups_ == b.small_groups_
    assert one.model[0].decisions().equals(other.model[0].decisions())
    np.testing.assert_allclose(b.coef_, a.coef_, rtol=0, atol=1e-6)
    for name in ("n_rows", "rows_dropped", "n_train", "n_test", "favourable"):
        assert one.facts[name] == other.facts[name], name
    assert one.facts.get("unlabelled") == other.facts.get("unlabelled")
    assert one.facts["plain"]["counts"] == other.facts["plain"]["counts"]
    if len(a.classes_) == 2:
        # Of cuts that are a hundredth apart the best is nearly the best of all.
        best, nearly, plain = (
            overall_accuracy(facts["counts"]["train"])
            for facts in (
                one.facts["plain"]["best_cut"],
                other.facts["plain"]["best_cut"],
                one.facts["plain"],
            )
        )
        assert best >= nearly >= max(plain, best - 0.005)
    np.testing.assert_allclose(
        np.asarray(one.facts["train_counts"])[-1], np.asarray(other.facts["train_counts"])[-1]
    )


@pytest.mark.parametrize(
    "options",
    [
        ROLES,
        [*ROLES, "--sensitive", "race", "--min-group-size", "1"],
        [*ROLES, "--sensitive", "income", "--bins", "income=30,", "--missing-groups", "drop"],
        pytest.param(
            [
                *ROLES,
                "--sensitive",
                "income",
                "--bins",
                "income=9,25,36",
                "--missing-groups",
                "drop",
            ],
            marks=pytest.mark.slow,
        ),
        [*ROLES, "--sensitive-inputs", "--exclude", "job", "--kind", "id=number"],
        pytest.param([*ROLES, "--group-cuts"], marks=pytest.mark.slow),
        ["--label", "job", "--sensitive", "sex"],
        ["--label", "job", "--sensitive", "sex", "--favourable", "cook", "--tau", "0.9"],
    ],
    ids=lambda options: " ".join(options[2:]),
)
def test_dask_gives_the_model_of_a_training_in_memory(options, tmp_path, here):
    assert_alike(*trained(people(), tmp_path, *options, "--test-size", "0"))


def test_a_group_called_as_rows_without_one(tmp_path, here):
    frame = people()
    frame.loc[:50, "sex"] = "(missing)"
    frame.loc[300:350, "sex"] = None
    files = in_files(frame, tmp_path / "data")
    options = [*ROLES, "--missing-groups", "group", "--dask", "-o", tmp_path / "x.model"]
    refused = run("train", files, *options)
    assert refused.exit_code == 1
    assert "column 'sex' has the value '(missing)'" in refused.stderr


@pytest.mark.parametrize("column", ["sex", "wave"])
def test_rows_without_a_group_or_a_label(column, tmp_path, here):
    frame = people()
    frame["wave"] = pd.array(np.where(frame["sex"] == "f", 1, 2), dtype="Int64")
    # In one file only: there whole numbers with gaps become floats.
    frame.loc[[3, 40], column] = None
    frame["y"] = frame["y"].astype("Int64")
    frame.loc[[40, 1400], "y"] = None
    options = ["--label", "y", "--sensitive", column, "--test-size", "0"]
    files = in_files(frame, tmp_path / "data")
    refused = run("train", files, *options, "--dask", "-o", tmp_path / "x.model")
    assert refused.exit_code == 1
    assert f"column '{column}' has 2 rows without a value" in refused.stderr
    one, other = trained(frame, tmp_path, *options, "--missing-groups", "drop")
    assert_alike(one, other)
    assert [d["n"] for d in other.facts["rows_dropped"]] == [2, 1]
    if column == "sex":
        assert_alike(*trained(frame, tmp_path, *options, "--missing-groups", "group"))


@pytest.mark.parametrize(
    "selection", ["holdout", "certified", pytest.param("crossfit", marks=pytest.mark.slow)]
)
def test_selections(selection, tmp_path, here):
    files, out = in_files(people(), tmp_path / "data"), tmp_path / "m.model"
    rule = ["--confidence", "certified"] if selection == "certified" else ["--selection", selection]
    options = [*rule, "--tau", "0.6", "--no-report", "--dask", "-o", out]
    assert run("train", files, *ROLES, *options).exit_code in (0, 2)
    other = load_model(out)
    held = other.model[-1].held_out_
    assert held.n_rows + (held.n_fitted if selection != "crossfit" else 0) == other.facts["n_train"]


def test_a_test_is_drawn_where_the_rows_are(tmp_path, here):
    frame = people(3000)
    _, saved = trained(frame, tmp_path, *ROLES, pattern="data/*.parquet")
    facts = saved.facts
    assert facts["n_train"] + facts["n_test"] == 3000
    assert facts["n_test"] == pytest.approx(900, abs=100)
    for name in ("train", "test"):
        counts = np.asarray(facts[f"{name}_counts"])
        assert (counts.sum(axis=(1, 2, 3)) == facts[f"n_{name}"]).all()
        assert np.sum(facts["plain"]["counts"][name]) == facts[f"n_{name}"]
    # Together they are what the model predicts for the table.
    both = np.asarray(facts["train_counts"]) + np.asarray(facts["test_counts"])
    chosen = json.loads(run("frontier", tmp_path / "d.model", "--json").stdout)["chosen"]
    answer = saved.model.predict(frame)
    for g, sex in enumerate(("f", "m")):
        rows = (frame["sex"] == sex).to_numpy()
        found = pd.crosstab(frame["y"][rows], answer[rows]).to_numpy()
        np.testing.assert_array_equal(both[chosen, g], found)


def test_the_saved_model_is_like_any_other(tmp_path, here):
    in_files(people(), tmp_path / "data")
    people(200, seed=1).drop(columns=["y", "sex"]).to_csv(tmp_path / "new.csv", index=False)
    out = tmp_path / "m.model"
    shown = run("train", tmp_path / "data", *ROLES, "--dask", "-o", out)
    assert shown.exit_code == 0
    assert "plain logistic regression" in shown.output
    assert (tmp_path / "m.html").exists()
    for call in (
        ["frontier", out],
        ["pick", out, "--tau", "0.9", "-o", tmp_path / "p.model"],
        ["predict", out, tmp_path / "new.csv", "-o", tmp_path / "out.csv"],
        ["report", out, "-o", tmp_path / "r.html"],
    ):
        assert run(*call).exit_code == 0, call
    assert len(pd.read_csv(tmp_path / "out.csv")) == 200


def test_columns_are_read_from_a_sample(tmp_path, here, monkeypatch):
    monkeypatch.setattr(dask_chunks, "SAMPLE", 500)
    frame = people()
    chunks = dask_chunks.find_chunks(str(in_files(frame, tmp_path / "data")))
    share = Share(0, 0.0, 0.3, True)
    sample, held = dask_chunks.draw_sample(chunks, 0, share)
    assert len(sample) == len(held) == 500
    assert (np.histogram(sample["id"], 3, (0, 4500))[0] > 160).all()
    out = tmp_path / "m.model"
    shown = run("train", tmp_path / "data", *ROLES, "--test-size", "0", "--dask", "-o", out)
    assert "on a sample of 500 of the 1,500 rows" in re.sub(r"\s+", " ", shown.output)
    saved = load_model(out)
    decisions = saved.model[0].decisions().set_index("column")["action"]
    assert decisions["job"].endswith("(seen on 500 rows)")
    assert decisions["sex"] == "sensitive, so not an input"
    assert saved.facts["n_train"] == np.sum(saved.facts["train_counts"][0]) == 1500


def test_a_value_that_the_sample_has_not(tmp_path, here, monkeypatch):
    monkeypatch.setattr(dask_chunks, "SAMPLE", 500)
    frame = people()
    chunks = dask_chunks.find_chunks(str(in_files(frame, tmp_path / "data")))
    share = Share(0, 0.0, 0.3, True)
    seen = dask_chunks.draw_sample(chunks, 0, share)[0]["id"]
    row = int(np.setdiff1d(np.arange(1000, 1500), seen // 3)[0])
    frame.loc[row, "price"] = "cheap"
    in_files(frame, tmp_path / "data")
    result = run("train", tmp_path / "data", *ROLES, "--dask", "-o", tmp_path / "m.model")
    assert result.exit_code == 1
    assert "in the rows that were looked at, and 'cheap' in row" in result.stderr
    assert f"in row {row + 1};" in result.stderr


def test_mostly_zeros_stay_sparse(tmp_path, here):
    random = np.random.default_rng(0)
    frame = people()
    for name in ("a", "b", "c"):
        frame[name] = random.choice([f"{name}{i}" for i in range(20)], len(frame))
    one, other = trained(frame, tmp_path, *ROLES, "--test-size", "0")
    assert other.model[0].sparse_
    assert_alike(one, other)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--bins", "30,45", "--label", "y", "--sensitive", "income"], "--bins 30.0,45.0 is for"),
        ([*ROLES, "--sensitive", "income", "--bins", "income=3"], "bins of equal size need"),
        ([*ROLES, "--test", "t.parquet"], "--test cannot be had with --dask"),
        ([*ROLES, "--delimiter", ";"], "--delimiter cannot be had with --dask"),
        (["--label", "nothing", "--sensitive", "sex"], "the table has no column 'nothing'"),
        (["--label", "y", "--sensitive", "nothing"], "the table has no column 'nothing'"),
        (
            ["--label", "y", "--sensitive", "id"],
            "for example --bins id=30,45,60.",
        ),
        (["--label", "price", "--sensitive", "sex"], "a label has a few"),
        (["--label", "y"], "name the columns"),
        ([*ROLES, "--favourable", "7"], "--favourable 7 is no value of column 'y'"),
        (["--label", "race", "--sensitive", "sex"], "say --favourable a or --favourable 'b & c'."),
    ],
)
def test_what_is_refused(options, message, tmp_path, here):
    files = in_files(people(300), tmp_path / "data")
    result = run("train", files, *options, "--dask", "-o", tmp_path / "m.model")
    assert result.exit_code == 1
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "m.model").exists()


def test_files_that_are_refused(tmp_path, here):
    out = ["-o", tmp_path / "m.model"]
    people(50).to_csv(tmp_path / "t.csv")
    people(0).to_parquet(tmp_path / "empty.parquet")
    for file, message in (
        ("t.csv", "is no Parquet file, and Dask is given no others"),
        ("none/*.parquet", "no Parquet file is at"),
        ("empty.parquet", "has columns but no rows"),
    ):
        result = run("train", tmp_path / file, *ROLES, "--dask", *out)
        assert result.exit_code == 1
        assert message in result.stderr
    assert "--dask needs a FILE" in run("train", *ROLES, "--dask", *out).stderr
    files = in_files(people(300), tmp_path / "data")
    people(300).drop(columns="job").to_parquet(files / "part-1.parquet")
    result = run("train", files, *ROLES, "--dask", *out)
    assert "part-1.parquet has no column 'job'" in result.stderr
    inside = run("train", files, *ROLES, "--dask", "-o", files / "part-0.parquet")
    assert "would be replaced by the output" in inside.stderr


@pytest.mark.parametrize(
    ("words", "address", "file"),
    [
        (["data", "--dask"], "here", "data"),
        (["--dask", "data"], "here", "data"),
        (["data", "--dask", "-o", "m"], "here", "data"),
        (["--dask", "tcp://10.0.0.1:8786", "data"], "tcp://10.0.0.1:8786", "data"),
        (["data", "--dask", "localhost:8786"], "localhost:8786", "data"),
        (["data", "--dask=tcp://a:1"], "tcp://a:1", "data"),
        (["data"], None, "data"),
    ],
)
def test_an_address_may_follow(words, address, file):
    command = COMMAND.commands["train"]
    found = command.make_context("train", list(words)).params
    assert (found["dask"], found["file"]) == (address, file)


def test_nobody_answers(tmp_path, monkeypatch):
    monkeypatch.setattr(dask_chunks, "PATIENCE", 0.5)
    files = in_files(people(300), tmp_path / "data")
    for address in ("tcp://127.0.0.1:9", "nothing://127.0.0.1:9"):
        result = run("train", files, *ROLES, "--dask", address, "-o", tmp_path / "m.model")
        assert result.exit_code == 1
        assert f"no Dask scheduler answers at '{address}'" in result.stderr


def test_a_scheduler_that_goes_away(here, tmp_path):
    from distributed.client import FutureCancelledError

    def gone(*args, **options):
        raise FutureCancelledError("_join-250f974e", "unknown")

    files = in_files(people(300), tmp_path / "data")
    with dask.config.set(scheduler=gone):
        result = run("train", files, *ROLES, "--dask", "-o", tmp_path / "m.model")
    assert result.exit_code == 1
    assert "the Dask scheduler went away before the work was done" in result.stderr
    assert "FutureCancelledError" not in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.slow
def test_two_worker_processes(tmp_path):
    from distributed import LocalCluster

    frame = people()
    in_files(frame, tmp_path / "data")
    frame.to_parquet(tmp_path / "all.parquet", index=False)
    options = [*ROLES, "--test-size", "0", "--no-report", "-o", tmp_path / "m.model"]
    assert run("train", tmp_path / "all.parquet", *options).exit_code == 0
    saved = [load_model(tmp_path / "m.model")]
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        address = ["--dask", cluster.scheduler_address]
        shown = run("train", tmp_path / "data", *options, *address)
        assert shown.exit_code == 0, shown.output
    saved.append(load_model(tmp_path / "m.model"))
    assert_alike(*saved)


@pytest.mark.slow
def test_a_scheduler_for_one_run(tmp_path):
    import distributed

    in_files(people(), tmp_path / "data")
    shown = run("train", tmp_path / "data", *ROLES, "--dask", "-o", tmp_path / "m.model")
    assert shown.exit_code == 0, shown.output
    with pytest.raises(ValueError, match=r"[Nn]o .*client.* found"):
        distributed.get_client()
