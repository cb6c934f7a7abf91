"""Bad tables and bad options: one clear sentence and the right exit code, never a traceback."""

import bz2
import gzip
import io
import json
import lzma
import os
import re
import signal
import subprocess
import sys
import zipfile
from csv import reader as csv_reader

import numpy as np
import pandas as pd
import pytest
from helpers import COMMAND, in_place, invoke

from evenhand.cli.wording import spell
from evenhand.core.errors import Parameter

TRAIN = ["--label", "y", "--sensitive", "g", "-o", "m.model", "--no-report"]


def table(n=200, seed=0):
    rng = np.random.default_rng(seed)
    g = rng.integers(0, 2, n)
    x = rng.standard_normal((n, 2)) + 0.5 * g[:, None]
    y = (x.sum(axis=1) + rng.logistic(scale=0.3, size=n) > 0.5).astype(int)
    frame = pd.DataFrame(x.round(3), columns=["a", "b"])
    return frame.assign(c=rng.choice(["u", "v", "w"], n), g=np.where(g, "m", "f"), y=y)


def csv(frame, **kwargs):
    return frame.to_csv(index=False, **kwargs).encode()


GOOD = csv(table())
ROWS = GOOD.splitlines()


def changed(**columns):
    return csv(table().assign(**columns))


def parquet(frame):
    pytest.importorskip("pyarrow")
    out = io.BytesIO()
    frame.to_parquet(out)
    return out.getvalue()


def zipped(*members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for i, data in enumerate(members):
            archive.writestr(f"{i}.csv", data)
    return out.getvalue()


def ids(n=200):
    return [f"person {i}" for i in range(n)]


# Bytes of the file, options that differ from TRAIN, exit code, what the sentence says.
REFUSED = {
    "empty file": (b"", [], "is empty"),
    "blanks only": (b"\n \n\n", [], "is empty"),
    "header only": (b"a,b,g,y\n", [], "has a header but no rows"),
    "one row": (ROWS[0] + b"\n" + ROWS[1], [], "'y' has the value .* in every row"),
    "one class": (changed(y=1), [], "column 'y' has the value '1' in every row; a label needs two"),
    "one group": (changed(g="f"), [], "the sensitive column 'g' has 1 group: 'f'; at least two"),
    "duplicate headers": (b"a,a,g,y\n1,2,f,0\n", [], "two columns called 'a'"),
    "nameless column": (b"a,,g,y\n1,2,f,0\n", [], "no name for column 2"),
    "ragged, long row": (b"a,g,y\n1,f,0\n1,f,0,9\n2,m,1\n", [], "4 fields in line 3 and 3 in its"),
    "ragged, short row": (b"a,g,y\n1,f,0\n1,f\n2,m,1\n", [], "2 fields in line 3 and 3 in its"),
    "ragged, short row far down": (
        csv(table(5000)) + b"1,2\n" + GOOD, [], "has 2 fields in line 5002 and 5 in its header",
    ),
    "ragged, long row far down": (
        csv(table(5000)) + b"1,2,u,f,0,9\n", [], "has 6 fields in line 5002 and 5 in its header",
    ),
    "ragged among quotes": (
        csv(table(5000).assign(c='two\n"lines", yes')) + b'1,"2,3"\n', [],
        "has 2 fields in line 10002 and 5",
    ),
    "ragged among stray quotes": (
        csv(table(5000)) + b'1,2,5" u,f,0\n1,2\n1,2,6" u,f,0\n', [], "has 2 fields in line 5003",
    ),
    "ragged, utf-16": (
        (csv(table(5000)) + b"1,2\n").decode().encode("utf-16"), [], "has 2 fields in line 5002",
    ),
    "latin-1 far down": (csv(table(50_000)) + b"1,2,\xe9,f,0\n", [], "not utf-8 text .*encoding"),
    "latin-1": (changed(c="é").decode().encode("latin-1"), [], "not utf-8 text .*--encoding"),
    "no such encoding": (GOOD, ["--encoding", "klingon"], "no encoding 'klingon'"),
    "utf-16 without its mark": (GOOD.decode().encode("utf-16-le"), [], "no table of text"),
    "binary": (bytes(range(256)) * 20, [], "no table of text: it has zero bytes"),
    "png": (b"\x89PNG\r\n\x1a\n" + b"\0" * 50, [], "no table of text"),
    "half a gzip": (gzip.compress(GOOD)[:900], [], "compressed and damaged, or only a part"),
    "zip of two": (zipped(GOOD, GOOD), [], "a zip of 2 files; give one table"),
    "half a parquet": (b"PAR1" + b"x" * 100, [], "no readable Parquet"),
    "label not there": (GOOD, ["--label", "income"], "no column 'income'; it has 'a', 'b'"),
    "sensitive not there": (GOOD, ["--sensitive", "sex"], "no column 'sex', which is the sens"),
    "label is sensitive": (GOOD, ["--sensitive", "y"], "'y' cannot be both"),
    "label with many values": (GOOD, ["--label", "a"], "'a' has 1\\d\\d different values.*a few"),
    "label all missing": (changed(y=np.nan), [], "column 'y' has no value in any row"),
    "sensitive of 1,000 values": (
        csv(table(1200).assign(g=[f"p{i % 1000}" for i in range(1200)])),
        [],
        "column 'g' has 1,000 different values; groups are few",
    ),
    "sensitive number without bins": (changed(g=np.arange(200) % 90), [], "90 distinct.*bins"),
    "sensitive missing": (
        changed(g=["f", "m", None, "f"] * 50),
        [],
        "column 'g' has 50 rows without a value.*say --missing-groups drop to leave",
    ),
    "small groups": (
        changed(g=[f"g{i % 50}" for i in range(200)]),
        [],
        "two groups have --min-group-size 30 rows .*… and 45 more.*or lower --min-group-size",
    ),
    "no input left": (b"a,g,y\n" + b"7,f,0\n8,m,1\n" * 50, ["--exclude", "a"],
                      "no column is left as an input"),
    "infinite": (changed(a=[np.inf, *[1.0] * 199]), [], "column 'a' has 1 infinite value"),
    "tau 0": (GOOD, ["--tau", "0"], "--tau 0; give a ratio above 0 and at most 1"),
    "tau 1.5": (GOOD, ["--tau", "1.5"], "--tau 1.5; give a ratio"),
    "tau a word": (GOOD, ["--tau", "abc"], "'--tau': .*'abc'.*; see .*train --help"),
    "no such option": (GOOD, ["--nonsense"], "No such option.*--nonsense.*; see"),
    "tau nan": (GOOD, ["--tau", "nan"], "--tau nan; give a ratio"),
    "two taus, one notion": (
        GOOD,
        ["--tau", "0.8", "--tau", "0.9"],
        "--tau 0.8 --tau 0.9 for --notion statistical_parity; give one",
    ),
    "no such notion": (GOOD, ["--notion", "justice"], "justice is not a known notion"),
    "test size 1": (GOOD, ["--test-size", "1"], "--test-size 1; give a share"),
    "test and test size": (
        GOOD, ["--test", "t.csv", "--test-size", "0.3"], "--test and --test-size: give a file",
    ),
    "no such favourable label": (GOOD, ["--favourable", "yes"], "--favourable yes is no value"),
    "exclude not there": (GOOD, ["--exclude", "zip"], "no column 'zip'"),
    "kind of nothing": (GOOD, ["--kind", "number"], "--kind 'number'; name a column and its kind"),
    "no such kind": (GOOD, ["--kind", "a=words"], "'a' cannot be read as 'words'; use 'category'"),
    "kind of no value": (
        GOOD, ["--kind", "c=number"], "none of the values of column 'c' is a number \\('[uvw]', ",
    ),
    "date of no value": (
        GOOD, ["--kind", "c=date, day first"], "of column 'c' is a date, day first \\('[uvw]', ",
    ),
    "two kinds": (GOOD, ["--kind", "c=category", "--kind", "c=date"], "given twice for column 'c'"),
    "kind of the label": (GOOD, ["--kind", "y=number"], "'y' is the label, no input, so it cannot"),
    "kind of the group": (GOOD, ["--kind", "g=category"], "column 'g' is sensitive, no input, so"),
    "sensitive twice": (GOOD, ["--sensitive", "g"], "two sensitive columns are called 'g'"),
    "a group called missing": (
        changed(g=["f", "m", None, "(missing)"] * 50), ["--missing-groups", "group"],
        "column 'g' has the value '\\(missing\\)', which is the name .*; rename it",
    ),
    "open quote": (
        b"\n".join([*ROWS[:50], b'1,2,"u,f,0', *ROWS[50:]]), [],
        "a quote that is never closed, in the row that begins in line 51",
    ),
    "open quote in the last column": (
        b"\n".join([*ROWS[:50], b'1,2,u,f,"0', *ROWS[50:]]), [],
        "a quote that is never closed, in the row that begins in line 51",
    ),
    "open quote among others": (
        csv(table(5000), quoting=1) + b'1,2,"u,f,0\n' + GOOD, [],
        "a quote that is never closed, in the row that begins in line 5002",
    ),
    "windows text": (changed(c="€").decode().encode("cp1252"), [], "0x80.*--encoding.*cp1252"),
    "output is a dash": (GOOD, ["-o", "-"], "-o -: this command writes files only; name one"),
    "bins of what": (
        changed(age=np.arange(200) % 50), ["--sensitive", "age", "--bins", "30"],
        "2 sensitive columns; say which has them",
    ),
    "bins of another": (GOOD, ["--bins", "a=2"], "for column 'a', which is not sensitive"),
    "bins twice": (GOOD, ["--bins", "3", "--bins", "g=2"], "give each column once"),
    "bins of text": (GOOD, ["--bins", "2"], "'g' has bins, and the value '.', which is no number"),
    "bins of words": (GOOD, ["--bins", "young"], "--bins 'young' cannot be read; give a number"),
    "delimiter of two": (GOOD, ["--delimiter", "::"], "give one character, or tab"),
    "bad delta": (GOOD, ["--confidence", "certified", "--delta", "2"], "--delta must be a float"),
    "no folder": (GOOD, ["-o", "nowhere/m.model"], "no folder nowhere"),
    "output is a folder": (GOOD, ["-o", "."], "is a folder; name a file"),
    "file and demo": (GOOD, ["--demo", "adult"], "one of the two"),
}  # fmt: skip

# Odd tables that are good enough: they train.
ACCEPTED = {
    "plain": (GOOD, []),
    "semicolons": (csv(table(), sep=";"), []),
    "tabs": (csv(table(), sep="\t"), []),
    "bars, said so": (csv(table(), sep="|"), ["--delimiter", "|"]),
    "utf-8 with mark": (b"\xef\xbb\xbf" + GOOD, []),
    "utf-8 with mark, said so": (b"\xef\xbb\xbf" + GOOD, ["--encoding", "utf-8"]),
    "utf-8 with mark and quotes": (b"\xef\xbb\xbf" + csv(table(), quoting=1), []),
    "utf-16": (GOOD.decode().encode("utf-16"), []),
    "utf-32": (GOOD.decode().encode("utf-32"), []),
    "utf-32, big end first": (b"\0\0\xfe\xff" + GOOD.decode().encode("utf-32-be"), []),
    "old line ends": (csv(table(), lineterminator="\r"), []),
    "blank lines": (GOOD.replace(b"\n", b"\n\n \n"), []),
    "inches": (changed(c=['5" nail', '7" nail'] * 100).replace(b'"5"" nail"', b'5" nail'), []),
    "latin-1, said so": (
        csv(table().assign(c=["é", "o"] * 100)).decode().encode("latin-1"),
        ["--encoding", "latin-1"],
    ),
    "gzip": (gzip.compress(GOOD), []),
    "bzip2": (bz2.compress(GOOD), []),
    "zip": (zipped(GOOD), []),
    "windows line ends": (csv(table(), lineterminator="\r\n"), []),
    "all-missing column": (changed(c=np.nan), []),
    "constant column": (changed(c="same"), []),
    "identifiers": (changed(c=ids()), []),
    "numbers with commas": (changed(c=[f"{i * 37 % 5000 + 1000:,}" for i in range(200)]), []),
    "percentages": (changed(c=[f"{i % 60}%" for i in range(200)]), []),
    "dates": (changed(c=pd.date_range("2020-01-01", periods=200, freq="9D").astype(str)), []),
    "question marks": (changed(c=["?", "u", "v", "u"] * 50), []),
    "formula text": (changed(c=["=1+1", "@SUM(A1)", "-2+3", "+x"] * 50), []),
    "script text": (changed(c=["<script>alert(1)</script>", "b"] * 100), []),
    "markup text": (changed(c=["[bold red]x[/]", "[/nothing]"] * 100), []),
    "quotes and newlines": (changed(c=['say "hi", you', "two\nlines"] * 100), []),
    "a cell of ten megabytes": (changed(c=["x" * 10_000_000, *["u", "v"] * 99, "u"]), []),
    "control characters": (changed(c=["\x1b[31mred", "b\x07"] * 100), []),
    "emoji names": (csv(table().rename(columns={"c": "😀 <b>"})), []),
    "label with three values": (changed(y=np.arange(200) % 3), ["--tau", "0.01"]),
    "label missing here and there": (changed(y=[0, 1, None, 1] * 50), ["--tau", "0.01"]),
    "rows without a group, dropped": (
        changed(g=["f", "m", None, "f"] * 50),
        ["--missing-groups", "drop", "--tau", "0.01"],
    ),
    "rows without a group, a group": (
        changed(g=["f", "m", None, "f"] * 50),
        ["--missing-groups", "group", "--tau", "0.01"],
    ),
    "ages in bins": (changed(g=np.arange(200) % 60 + 20), ["--bins", "35,50", "--tau", "0.01"]),
    "ages in bins, by name": (
        changed(g=np.arange(200) % 60 + 20),
        ["--bins", "g=35,50", "--tau", "0.01"],
    ),
    "ages in bins, crossed": (
        changed(age=np.arange(200) % 60 + 20),
        ["--sensitive", "age", "--bins", "age=2", "--tau", "0.01"],
    ),
    "booleans": (changed(c=[True, False] * 100), []),
    "large numbers": (changed(a=np.arange(200) * 1e12), []),
    "blanks after commas": (GOOD.replace(b",", b", "), []),
}


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*args, stdin=None):
        result = invoke(args, stdin)
        assert result.exception is None or isinstance(result.exception, SystemExit), (
            result.exception
        )
        assert "Traceback" not in result.output
        return result

    return run


@pytest.mark.parametrize("name", REFUSED)
def test_refused(run, tmp_path, name):
    data, options, message = REFUSED[name]
    (tmp_path / "t.csv").write_bytes(data)
    result = run("train", "t.csv", *in_place(TRAIN, options))
    assert result.exit_code == 1, result.output
    sentences = result.stderr.strip().splitlines()
    assert len(sentences) == 1, result.stderr
    assert re.search(message, sentences[0]), sentences[0]
    assert sentences[0].startswith("evenhand: ")
    # Apart from examples of --bins and --kind, which are name=value, nothing is Python's.
    assert not re.search(r"\b[a-z_]+=(?!\d|category)|sensitive_features|parameter of", sentences[0])
    assert len(sentences[0]) < 600
    assert result.stdout == ""
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t.csv"]


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(run, tmp_path, name):
    data, options = ACCEPTED[name]
    (tmp_path / "t.csv").write_bytes(data)
    tau = [] if "--tau" in options else ["--tau", "0.3"]
    result = run("train", "t.csv", *TRAIN, *tau, *options)
    assert result.exit_code in (0, 2), result.output
    assert (tmp_path / "m.model").exists()
    assert "\x1b" not in result.output
    shown = run(
        "predict",
        "m.model",
        "t.csv",
        "-o",
        "out.csv",
        *options[: 2 * ("--encoding" in options or "--delimiter" in options)],
    )
    assert shown.exit_code == 0, shown.output
    predicted = pd.read_csv(tmp_path / "out.csv")
    assert len(predicted) == 200
    assert predicted["prediction"].notna().all()


def test_a_table_from_standard_input(run, tmp_path):
    result = run("train", "-", *TRAIN, stdin=GOOD)
    assert result.exit_code == 0
    result = run("predict", "m.model", "-", "-o", "-", stdin=GOOD)
    assert result.exit_code == 0
    assert result.stdout.startswith("prediction,score[0],score[1]\n")
    assert len(result.stdout.splitlines()) == 201
    result = run("audit", "-", "--label", "y", "--sensitive", "g", stdin=b"")
    assert result.exit_code == 1
    assert "standard input is empty" in result.stderr


def test_parquet(run, tmp_path):
    (tmp_path / "t.parquet").write_bytes(parquet(table()))
    assert run("train", "t.parquet", *TRAIN).exit_code == 0
    assert run("predict", "m.model", "t.parquet", "-o", "out.csv").exit_code == 0
    assert len(pd.read_csv(tmp_path / "out.csv")) == 200
    (tmp_path / "e.parquet").write_bytes(parquet(table().iloc[:0]))
    result = run("train", "e.parquet", *TRAIN)
    assert result.exit_code == 1
    assert "has columns but no rows" in result.stderr


def test_a_column_that_says_the_group(run, tmp_path):
    status = table()["g"].map({"m": "Mr", "f": "Ms"}).where(np.arange(200) % 3 > 0, "Dr ")
    status += table()["g"].where(status == "Dr ", "")
    (tmp_path / "t.csv").write_bytes(changed(title=status))
    result = run("train", "t.csv", *TRAIN, "--json", "--tau", "0.1")
    told = json.loads(result.stdout)
    assert told["notes"] == [
        "column 'title' tells 'g', which is sensitive, without fail; leave it out, --exclude "
        "title, unless that is meant."
    ]
    actions = {d["column"]: d["action"] for d in told["data"]["decisions"]}
    assert actions["title"].endswith("tells 'g', which is sensitive, without fail")


def test_columns_of_lists_may_be_left_out(run, tmp_path):
    (tmp_path / "t.parquet").write_bytes(parquet(table().assign(nest=[[1, 2]] * 200)))
    refused = run("train", "t.parquet", *TRAIN)
    assert (refused.exit_code, "'nest' holds lists" in refused.stderr) == (1, True)
    assert run("train", "t.parquet", *TRAIN, "--exclude", "nest").exit_code == 0
    assert run("predict", "m.model", "t.parquet", "-o", "out.csv").exit_code == 0


def test_datasets(run, tmp_path):
    unknown = run("datasets", "foo")
    assert unknown.exit_code == 1
    assert "there is no dataset 'foo'; there are adult, german" in unknown.stderr
    printed = run("datasets", "german", "-o", "-")
    assert printed.exit_code == 0
    assert len(pd.read_csv(io.StringIO(printed.stdout))) == 1000
    assert not list(tmp_path.iterdir())


class TestPredict:
    @pytest.fixture(autouse=True)
    def model(self, run, tmp_path):
        (tmp_path / "t.csv").write_bytes(GOOD)
        assert run("train", "t.csv", *TRAIN).exit_code == 0

    def test_a_model_is_not_replaced_by_what_is_picked(self, run, tmp_path):
        before = (tmp_path / "m.model").read_bytes()
        result = run("pick", "m.model", "--tau", "0.5", "-o", "m.model")
        assert result.exit_code == 1
        assert "m.model is an input" in result.stderr
        assert (tmp_path / "m.model").read_bytes() == before

    @pytest.mark.parametrize("out", ["out.csv", "-"])
    def test_lost_zeros_are_told(self, run, tmp_path, out):
        codes = np.resize(["00501", "01234", "99999"], 200)
        (tmp_path / "t.csv").write_bytes(changed(zip=codes))
        assert run("train", "t.csv", *TRAIN).exit_code in (0, 2)
        (tmp_path / "n.csv").write_bytes(changed(zip=[c.lstrip("0") for c in codes]))
        result = run("predict", "m.model", "n.csv", "-o", out)
        assert result.exit_code == 0
        assert "column 'zip' has '1234' where the model knows '01234'" in result.stderr

    @pytest.mark.parametrize(
        ("data", "message"),
        [
            (csv(table().drop(columns="a")), "no column 'a', which the model was trained with"),
            (changed(a=["oops", *[1.0] * 199]), "'a' held numbers .* now 'oops' in row 1"),
            (changed(a=[np.inf, *[1.0] * 199]), "column 'a' has infinite values"),
            (
                changed(a=[1.0, -1e300, *[1.0] * 198]),
                "'a' has the value -1e\\+300, too large .*row 2",
            ),
            (b"", "is empty"),
            (b"a,b\n", "has a header but no rows"),
        ],
    )
    def test_refused(self, run, tmp_path, data, message):
        (tmp_path / "n.csv").write_bytes(data)
        (tmp_path / "out.csv").write_text("precious")
        result = run("predict", "m.model", "n.csv", "-o", "out.csv")
        assert result.exit_code == 1
        assert re.search(message, result.stderr)
        assert (tmp_path / "out.csv").read_text() == "precious"
        assert len(list(tmp_path.iterdir())) == 4

    def test_a_bad_value_far_down(self, run, tmp_path, monkeypatch):
        values = [1.0] * 200
        monkeypatch.setattr("evenhand.tables.read.read_chunks.__kwdefaults__", {
            "delimiter": None, "encoding": None, "rows": 7,
        })  # fmt: skip
        for bad, message in (("oops", "now 'oops' in row 151;"), ("inf", "first in row 151;")):
            values[150] = bad
            (tmp_path / "n.csv").write_bytes(changed(a=values))
            result = run("predict", "m.model", "n.csv", "-o", "out.csv")
            assert result.exit_code == 1
            assert message in result.stderr

    @pytest.mark.parametrize("suffix", ["gz", "bz2", "xz", "zip", "zst", "parquet"])
    def test_written_as_the_name_says(self, run, tmp_path, monkeypatch, suffix):
        from evenhand.tables.read import read_table

        if suffix in ("zst", "parquet"):
            pytest.importorskip("pyarrow")
        monkeypatch.setattr("evenhand.tables.read.read_chunks.__kwdefaults__", {
            "delimiter": None, "encoding": None, "rows": 7,
        })  # fmt: skip
        out = f"out.{suffix}" if suffix == "parquet" else f"out.csv.{suffix}"
        assert run("predict", "m.model", "t.csv", "--keep", "c", "-o", "out.csv").exit_code == 0
        assert run("predict", "m.model", "t.csv", "--keep", "c", "-o", out).exit_code == 0
        plain = (tmp_path / "out.csv").read_bytes()
        written = (tmp_path / out).read_bytes()
        if suffix == "parquet":
            found = pd.read_parquet(tmp_path / out)
            pd.testing.assert_frame_equal(
                found, pd.read_csv(tmp_path / "out.csv"), check_dtype=False
            )
            return
        unpack = {"gz": gzip.decompress, "bz2": bz2.decompress, "xz": lzma.decompress}
        if suffix in unpack:
            assert unpack[suffix](written) == plain
        assert written[:4] != plain[:4]
        pd.testing.assert_frame_equal(read_table(tmp_path / out), read_table(tmp_path / "out.csv"))

    def test_values_are_written_as_they_are(self, run, tmp_path):
        odd = ["=1+1", "@SUM(A1)", "-2+3", "+x", "0012", "1e5", "a,b", 'say "hi"', "7.10"]
        (tmp_path / "n.csv").write_bytes(changed(name=(odd * 23)[:200]))
        assert run("predict", "m.model", "n.csv", "--keep", "name", "-o", "out.csv").exit_code == 0
        kept = pd.read_csv(tmp_path / "out.csv", dtype=str)["name"]
        assert kept.tolist() == (odd * 23)[:200]

    @pytest.mark.parametrize("out", ["out.csv", "out.parquet"])
    def test_columns_that_would_be_there_twice(self, run, tmp_path, out):
        (tmp_path / "t.csv").write_bytes(changed(prediction=1))
        for keep, message in (
            (["c", "c"], "--keep c is given twice"),
            (["prediction"], "a column 'prediction' of its own"),
            (["score[1]"], r"a column 'score\[1\]' of its own"),
        ):
            options = [word for name in keep for word in ("--keep", name)]
            result = run("predict", "m.model", "t.csv", *options, "-o", out)
            assert result.exit_code == 1
            assert re.search(message, result.stderr)
            assert not (tmp_path / out).exists()

    def test_rows_without_a_group_where_groups_have_cuts(self, run, tmp_path):
        assert run("train", "t.csv", *TRAIN, "--group-cuts").exit_code == 0
        (tmp_path / "n.csv").write_bytes(changed(g=["f", "m", None, "f"] * 50))
        result = run("predict", "m.model", "n.csv", "-o", "out.csv")
        assert result.exit_code == 1
        assert "no value in 50 rows, the first in row 3, and the model has a cut" in result.stderr
        assert "--missing-groups" not in result.stderr

    def test_unseen_values_and_columns(self, run, tmp_path):
        (tmp_path / "n.csv").write_bytes(changed(c="never seen", extra=1))
        assert run("predict", "m.model", "n.csv", "-o", "out.csv").exit_code == 0

    def test_no_such_files(self, run, tmp_path):
        for args in (
            ["predict", "x.model", "t.csv", "-o", "out.csv"],
            ["predict", "m.model", "x.csv", "-o", "out.csv"],
            ["frontier", "x.model"],
            ["report", "x.model", "-o", "r.html"],
            ["pick", "x.model", "--tau", "0.9", "-o", "p.model"],
            ["audit", "x.csv", "--label", "y", "--sensitive", "g"],
        ):
            result = run(*args)
            assert result.exit_code == 1
            assert "No such file" in result.stderr
            assert len(result.stderr.strip().splitlines()) == 1
        result = run("audit", "*.csv", "--label", "y", "--sensitive", "g")
        assert "a pattern of several files is for train --dask" in result.stderr

    @pytest.mark.parametrize("data", [b"", b"PK\x03\x04 no", b"{}", GOOD])
    def test_a_file_that_is_no_model(self, run, tmp_path, data):
        (tmp_path / "x.model").write_bytes(data)
        for args in (["frontier", "x.model"], ["predict", "x.model", "t.csv", "-o", "out.csv"]):
            result = run(*args)
            assert result.exit_code == 1
            assert "x.model is no evenhand model" in result.stderr


class TestAudit:
    @pytest.mark.parametrize(
        ("data", "options", "message"),
        [
            (GOOD, [], "name a column of labels"),
            (
                GOOD,
                ["--label", "y", "--prediction", "c"],
                "'c' has the value 'u', which column 'y'",
            ),
            (GOOD, ["--label", "c"], "'c' has 3 labels, 'u' .*--favourable u"),
            (GOOD, ["--label", "y", "--privileged", "x"], "--privileged x is no value of"),
            (changed(g="f"), ["--label", "y"], "g has one group only, 'f'"),
            (changed(y=0), ["--label", "y"], "'0' in every row"),
        ],
    )
    def test_refused(self, run, tmp_path, data, options, message):
        (tmp_path / "t.csv").write_bytes(data)
        result = run("audit", "t.csv", "--sensitive", "g", *options)
        assert result.exit_code == 1, result.output
        assert re.search(message, result.stderr), result.stderr

    @pytest.mark.parametrize("command", ["audit", "compare"])
    def test_bins(self, run, tmp_path, command):
        frame = table().assign(age=np.arange(200) % 60 + 20)
        (tmp_path / "t.csv").write_bytes(csv(frame))
        args = [command, "t.csv", "--label", "y", "--sensitive", "age", "--json"]
        if command == "compare":
            args += ["--method", "evenhand", "--splits", "1", "--tau", "0.1"]
            args += ["--min-group-size", "5"]
        refused = run(*args)
        assert refused.exit_code == 1
        assert "for example --bins age=30,45,60" in refused.stderr
        found = run(*args, "--bins", "50,", "--tau", "0.01")
        crossed = run(*args, "--sensitive", "g", "--bins", "age=50,", "--tau", "0.01")
        assert found.exit_code == crossed.exit_code == 0, crossed.output
        if command == "audit":
            names = frame["age"].map(lambda age: "below 50" if age < 50 else "from 50")
            rates = frame.groupby([names, "g"])["y"].mean()
            told = json.loads(crossed.stdout)
            assert told["groups"] == [" & ".join(group) for group in rates.index]
            shown = [g["value"] for g in told["rates"]["selection_rate"]]
            assert shown == pytest.approx(rates.tolist())
            assert json.loads(found.stdout)["groups"] == ["below 50", "from 50"]

    @pytest.mark.parametrize("label", ["1.0", "1"])
    def test_numbers_are_the_same_however_they_are_written(self, run, tmp_path, label):
        y = table()["y"]
        (tmp_path / "t.csv").write_bytes(changed(p=y, q=y.astype(float)))
        columns = {"1": ("p", "q"), "1.0": ("q", "p")}[label]
        args = ["audit", "t.csv", "--label", columns[0], "--prediction", columns[1]]
        result = run(*args, "--sensitive", "g", "--json", "--tau", "0.01")
        assert result.exit_code == 0, result.stderr
        found = json.loads(result.stdout)
        assert (found["accuracy"], found["favourable"]) == (1.0, label)

    def test_exit_codes(self, run, tmp_path):
        y = table()["y"]
        (tmp_path / "t.csv").write_bytes(changed(p=y))
        args = ["audit", "t.csv", "--label", "y", "--prediction", "p", "--sensitive", "g"]
        assert run(*args, "--tau", "1").exit_code == 2
        assert run(*args, "--tau", "0.01").exit_code == 0


class TestWhoIsReadTogether:
    """An answer depends on its row alone, not on the rows that are read with it."""

    def test_codes_that_look_like_numbers(self, run, tmp_path):
        codes = np.array(["01", "02", "A"])[np.arange(200) % 3]
        frame = table().assign(c=codes)
        (tmp_path / "t.csv").write_bytes(csv(frame))
        assert run("train", "t.csv", *TRAIN, "--tau", "0.3").exit_code == 0
        few = frame[frame["c"] != "A"]
        (tmp_path / "few.csv").write_bytes(csv(few))
        for name in ("t", "few"):
            args = ["predict", "m.model", f"{name}.csv", "--keep", "c", "-o", f"{name}.out"]
            assert run(*args).exit_code == 0
        whole = pd.read_csv(tmp_path / "t.out", dtype=str)
        part = pd.read_csv(tmp_path / "few.out", dtype=str)
        assert whole[whole["c"] != "A"].reset_index(drop=True).equals(part)

    def test_chunks(self, run, tmp_path, monkeypatch):
        frame = table().assign(c=np.sort(np.array(["01", "02", "A"])[np.arange(200) % 3]))
        (tmp_path / "t.csv").write_bytes(csv(frame))
        assert run("train", "t.csv", *TRAIN, "--tau", "0.3").exit_code == 0
        assert run("predict", "m.model", "t.csv", "-o", "one.csv").exit_code == 0
        monkeypatch.setattr("evenhand.tables.read.read_chunks.__kwdefaults__", {
            "delimiter": None, "encoding": None, "rows": 7,
        })  # fmt: skip
        assert run("predict", "m.model", "t.csv", "-o", "many.csv").exit_code == 0
        assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "many.csv").read_bytes()

    @pytest.mark.parametrize("seed", ["0", "1", "2", "3"])
    def test_one_dirty_cell(self, run, tmp_path, seed):
        days = pd.date_range("2020-01-01", periods=200, freq="3D").strftime("%Y-%m-%d").tolist()
        days[5] = "unknown"
        (tmp_path / "t.csv").write_bytes(changed(c=days, b=["oops", *range(199)]))
        result = run("train", "t.csv", *TRAIN, "--seed", seed, "--json", "--tau", "0.3")
        assert result.exit_code == 0, result.output
        kinds = {d["column"]: d["kind"] for d in json.loads(result.stdout)["data"]["decisions"]}
        assert (kinds["b"], kinds["c"]) == ("number", "date")

    def test_dates_that_only_some_rows_make_plain(self, run, tmp_path, monkeypatch):
        frame = table()
        frame = frame.assign(c=["12/31/2020", *["03/04/2020", "05/06/2020", "03/01/2020"] * 66, ""])
        frame["b"] = [f"{value:.3f}".replace(".", ",") for value in frame["b"]]
        (tmp_path / "t.csv").write_bytes(csv(frame, sep=";"))
        for seed in "0123":
            result = run("train", "t.csv", *TRAIN, "--seed", seed, "--json", "--tau", "0.3")
            assert result.exit_code == 0, result.output
            told = json.loads(result.stdout)["data"]["decisions"]
            told = {d["column"]: d["action"] for d in told}
            assert "read as dates, month first" in told["c"]
            assert "read as numbers, decimal comma" in told["b"]
        assert run("predict", "m.model", "t.csv", "-o", "one.csv").exit_code == 0
        monkeypatch.setattr("evenhand.tables.read.read_chunks.__kwdefaults__", {
            "delimiter": None, "encoding": None, "rows": 7,
        })  # fmt: skip
        assert run("predict", "m.model", "t.csv", "-o", "many.csv").exit_code == 0
        one, many = (pd.read_csv(tmp_path / f"{name}.csv") for name in ("one", "many"))
        pd.testing.assert_frame_equal(one, many, rtol=1e-12)

    def test_compare_reads_all_splits_alike(self, run, tmp_path):
        days = ["12/31/2020", *["03/04/2020", "05/06/2020", "03/01/2020"] * 66, "x"]
        frame = table().assign(a=days)
        for k in range(6):  # each with a bad value in another row
            frame[f"b{k}"] = [f"{(i + k) * 37 % 90},{i % 10} €" for i in range(200)]
            frame.loc[20 * k, f"b{k}"] = "oops"
        (tmp_path / "t.csv").write_bytes(csv(frame, sep=";"))
        args = ["--label", "y", "--sensitive", "g", "--method", "accuracy_only", "--tau", "0.1"]
        result = run("compare", "t.csv", *args, "--splits", "3", "-o", "out.csv.gz")
        assert result.exit_code == 0, result.output
        assert len(pd.read_csv(tmp_path / "out.csv.gz")) == 3

    def test_identifiers_are_dropped_unless_asked_for(self, run, tmp_path):
        rng = np.random.default_rng(0)
        frame = table().assign(id=rng.permutation(9999)[:200])
        (tmp_path / "t.csv").write_bytes(csv(frame))
        for options, kind in ([], "dropped"), (["--kind", "id=number"], "number"):
            result = run("train", "t.csv", *TRAIN, *options, "--json", "--tau", "0.3")
            told = {d["column"]: d["kind"] for d in json.loads(result.stdout)["data"]["decisions"]}
            assert told["id"] == kind


def rows_of(data, n_fields):
    """Rows as Python's csv reads them, or fields and line of the first that has not so many."""
    rows = csv_reader(io.StringIO(data.decode(), newline=""), skipinitialspace=True)
    found = []
    for row in rows:
        if row in ([], [""]):
            continue
        if len(row) != n_fields:
            return len(row), rows.line_num
        found.append(row)
    return found


@pytest.mark.parametrize("block", [100, 1 << 22])
def test_rows_and_ragged_ones_are_those_that_python_finds(tmp_path, monkeypatch, block):
    from evenhand.tables.read import TableFileError, read_table

    monkeypatch.setattr("evenhand.tables.csv_text.BLOCK_BYTES", block)
    rng = np.random.default_rng(0)
    cells = ["a", "", "12", '"q"', '"x,y"', '"l\nm"', '"e""s"', '5" z', "ü", '"a"b', ' "s,p"']
    ragged = whole = 0
    for i in range(1000):
        k = int(rng.integers(1, 4))
        sizes = np.where(rng.random(12) < 0.97, k, rng.integers(1, 5, 12))
        ends = rng.choice(["\n", "\n", "\r\n", "\n\n"], 12)
        some = cells[: len(cells) - i % 2]  # blanks before values are not read by pyarrow
        text = "".join(",".join(rng.choice(some, n)) + e for n, e in zip(sizes, ends, strict=True))
        data = (",".join("hij"[:k]) + "\n" + text).encode()
        (tmp_path / "t.csv").write_bytes(data)
        expected = rows_of(data, k)
        try:
            found = read_table(tmp_path / "t.csv", delimiter=",").to_numpy().tolist()
            assert found == expected[1:], data
            whole += 1
        except TableFileError as error:
            place = error.data.get("n"), error.data.get("line")
            told = {"file_without_rows": 1, "ragged_row": place}[error.code]
            assert told == (len(expected) if told == 1 else expected), data
            ragged += told != 1
    assert min(ragged, whole) > 100


class TestNothingIsLost:
    def test_outputs_do_not_replace_inputs(self, run, tmp_path):
        (tmp_path / "t.csv").write_bytes(GOOD)
        result = run("train", "t.csv", *in_place(TRAIN, ["-o", "t.csv"]))
        assert result.exit_code == 1
        assert "t.csv is an input" in result.stderr
        assert run("train", "t.csv", *TRAIN).exit_code == 0
        before = (tmp_path / "m.model").read_bytes()
        for args in (
            ["predict", "m.model", "t.csv", "-o", "t.csv"],
            ["predict", "m.model", "t.csv", "-o", "m.model"],
            ["report", "m.model", "-o", "m.model"],
        ):
            result = run(*args)
            assert result.exit_code == 1
            assert "is an input" in result.stderr
        assert (tmp_path / "t.csv").read_bytes() == GOOD
        assert (tmp_path / "m.model").read_bytes() == before

    def test_copies_of_the_sensitive_column_are_no_inputs(self, run, tmp_path):
        frame = table()
        frame = frame.assign(gender=frame["g"].map({"f": "F", "m": "M"}), copy=frame["g"])
        (tmp_path / "t.csv").write_bytes(csv(frame))
        result = run("train", "t.csv", *TRAIN, "--json", "--tau", "0.3")
        told = {d["column"]: d["action"] for d in json.loads(result.stdout)["data"]["decisions"]}
        assert "the same as 'g', which is sensitive" in told["gender"]
        assert "the same as 'g', which is sensitive" in told["copy"]

    def test_models_saved_in_python(self, run, tmp_path):
        from evenhand import FairClassifier, fair_pipeline, save_model

        frame = table()
        model = fair_pipeline("g", tau=0.3).fit(frame.drop(columns="y"), frame["y"])
        save_model(model, tmp_path / "m.model")
        (tmp_path / "t.csv").write_bytes(GOOD)
        assert run("predict", "m.model", "t.csv", "-o", "out.csv").exit_code == 0
        result = run("frontier", "m.model")
        assert result.exit_code == 1
        assert "saved in Python" in result.stderr
        plain = FairClassifier(tau=0.3).fit(
            frame[["a", "b"]], frame["y"], sensitive_features=frame["g"]
        )
        save_model(plain, tmp_path / "c.model")
        result = run("predict", "c.model", "t.csv", "-o", "out.csv")
        assert result.exit_code == 1
        assert "without the encoder of its table" in result.stderr

    def test_bad_options_are_bad_input(self, run):
        for args in (["pick", "m", "--tau", "x", "-o", "n"], ["train", "--nonsense"], ["nothing"]):
            assert run(*args).exit_code == 1


class TestWordsOfOptions:
    @pytest.mark.parametrize(
        ("parameter", "typed"),
        [
            (Parameter("missing_groups", "drop"), "--missing-groups drop"),
            (Parameter("bins"), "--bins"),
            (Parameter("bins", [30.0, float("nan")]), "--bins 30.0,nan"),
            (Parameter("bins", {"a b": [30, 45], "c": 3}), "--bins 'a b=30,45' --bins c=3"),
            (Parameter("tau", [0.8, 0.9]), "--tau 0.8 --tau 0.9"),
            (Parameter("tau", np.float64(0.8)), "--tau 0.8"),
            (Parameter("notion", "a b"), "--notion 'a b'"),
            (Parameter("sensitive_features"), "the sensitive column"),
            (Parameter("sensitive_features", "g"), "--sensitive g"),
            (Parameter("y"), "the label"),
            (Parameter("group_cuts", True), "--group-cuts"),
            (Parameter("na", ["NA", "a b"]), "--na NA --na 'a b'"),
            (Parameter("kinds", {"a b": "number"}), "--kind 'a b=number'"),
            (Parameter("exclude", ["it's [1]"]), """--exclude 'it'"'"'s [1]'"""),
            (Parameter("mu", 0.3), "mu=0.3"),
        ],
    )
    def test_parameters_become_options(self, parameter, typed):
        assert spell(parameter) == typed

    def test_an_error_of_no_certificate(self, run, tmp_path):
        (tmp_path / "t.csv").write_bytes(GOOD)
        result = run("train", "t.csv", *TRAIN, "--delta", "0.01")
        assert result.exit_code == 1
        assert "none is asked for; ask with --confidence certified" in result.stderr

    def test_a_parameter_out_of_range(self, run, tmp_path):
        (tmp_path / "t.csv").write_bytes(GOOD)
        result = run("train", "t.csv", *TRAIN, "--delta", "2", "--confidence", "certified")
        assert result.exit_code == 1
        assert result.stderr.startswith("evenhand: --delta must be a float in the range (0.0, 1.0)")

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--method", "magic"], "--method magic is not known; use one of 'evenhand', "),
            (
                ["--notion", "justice"],
                "--notion justice is not a known notion; use one of 'statistical_parity', ",
            ),
            (["--jobs", "0"], "--jobs 0; give a number of jobs at a time, or -1"),
        ],
    )
    def test_compare(self, run, tmp_path, options, message):
        (tmp_path / "t.csv").write_bytes(GOOD)
        result = run("compare", "t.csv", "--label", "y", "--sensitive", "g", *options)
        assert result.exit_code == 1
        assert message in result.stderr
        assert len(result.stderr.splitlines()) == 1

    def test_every_option_is_there(self):
        from evenhand.cli.wording import OPTIONS

        commands = COMMAND.commands.values()
        there = {option for c in commands for p in c.params for option in p.opts}
        assert set(OPTIONS.values()) <= there

    def test_a_new_group_among_very_many(self, run, tmp_path):
        many = [f"g{i % 40}" for i in range(2000)]
        (tmp_path / "t.csv").write_bytes(csv(table(2000).assign(g=many)))
        options = ["--group-cuts", "--tau", "0.1"]
        assert run("train", "t.csv", *TRAIN, *options).exit_code in (0, 2)
        (tmp_path / "n.csv").write_bytes(changed(g="x" * 500))
        result = run("predict", "m.model", "n.csv", "-o", "out.csv")
        assert result.exit_code == 1
        assert re.search("has the group 'x+…, which the training data did not", result.stderr)
        assert "… and 35 more." in result.stderr
        assert len(result.stderr) < 300


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("options", [[], ["--selection", "crossfit"]])
def test_an_interrupted_fit_writes_nothing(run, tmp_path, monkeypatch, name, options):
    from evenhand.core.trajectory import Trajectory

    (tmp_path / "t.csv").write_bytes(GOOD)
    (tmp_path / "m.model").write_text("precious")
    add, calls = Trajectory.add, []

    def told_to_end(self, *args, **kwargs):
        add(self, *args, **kwargs)
        calls.append(1)
        if len(calls) == 30:
            os.kill(os.getpid(), getattr(signal, name))

    monkeypatch.setattr(Trajectory, "add", told_to_end)
    # Whoever runs the tests in the background may have turned interrupts off.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        result = run("train", "t.csv", *TRAIN, *options)
    finally:
        signal.signal(signal.SIGINT, before)
    assert (len(calls), result.exit_code) == (30, 130)
    assert result.stderr == "evenhand: interrupted. No file was written or changed.\n"
    assert (tmp_path / "m.model").read_text() == "precious"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device")
@pytest.mark.parametrize(
    "args",
    [
        ["audit", "t.csv", "--label", "y", "--sensitive", "g"],
        ["audit", "t.csv", "--label", "y", "--sensitive", "g", "--json"],
        ["datasets"],
        ["audit", "--help"],
    ],
)
def test_output_that_cannot_be_written(tmp_path, args):
    (tmp_path / "t.csv").write_bytes(GOOD)
    command = [sys.executable, "-m", "evenhand", *args]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path, check=False
        )
    assert done.returncode == 1
    assert re.fullmatch(r"evenhand: the output cannot be written: .*\n", done.stderr)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such pipes")
@pytest.mark.parametrize(("options", "code"), [([], 0), (["--json"], 0), (["--tau", "1"], 2)])
def test_a_reader_that_has_seen_enough(tmp_path, options, code):
    (tmp_path / "t.csv").write_bytes(changed(y=[0, 1] * 100, g=["f", "f", "m", "m"] * 50))
    out, reader = os.pipe()[::-1]
    os.close(reader)
    command = [sys.executable, "-m", "evenhand", "audit", "t.csv", "--sensitive", "g"]
    if code:
        (tmp_path / "t.csv").write_bytes(GOOD)
    done = subprocess.run(
        [*command, "--label", "y", *options],
        stdout=out, stderr=subprocess.PIPE, text=True, cwd=tmp_path, check=False,
    )  # fmt: skip
    os.close(out)
    assert (done.returncode, done.stderr) == (code, "")
