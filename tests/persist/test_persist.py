"""Saved models: the same predictions bit for bit, and nothing a file can do but be wrong."""

import hashlib
import io
import json
import os
import pickle
import struct
import time
import tracemalloc
import zipfile
import zlib
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers import REGIMES, raises

from evenhand import FairClassifier, Method
from evenhand.core.errors import InputError
from evenhand.persist.archive import LIMITS, MEMBERS, memory_of
from evenhand.persist.model_file import (
    ModelFileError,
    load_model,
    model_writer,
    read_model,
    save_model,
)
from evenhand.tables.pipeline import fair_pipeline
from evenhand.workflow.summary import summarise
from evenhand.workflow.train import train as train_table


def people(n=300, labels=2):
    rng = np.random.default_rng(0)
    sex = rng.choice(["f", "m"], n)
    x = rng.standard_normal(n) + 0.6 * (sex == "m")
    score = x + rng.logistic(size=n)
    y = np.digitize(score, np.quantile(score, np.arange(1, labels) / labels))
    table = {
        "x": np.where(np.arange(n) % 9 == 0, np.nan, x),
        "job": rng.choice(["a", "b", "ü <c>"], n),
        "day": pd.date_range("2021-01-01", periods=n, freq="3D"),
        "signed": pd.date_range("2019-01-01", periods=n, freq="4D").strftime("%d.%m.%Y"),
        "paid": [f"{i * 37 % 400},{i % 100:02d} €" for i in range(n)],
        "sex": sex,
        "age": rng.integers(20, 70, n),
    }
    return pd.DataFrame(table), y


FIXTURES = Path(__file__).parent / "fixtures"

CASES = {
    "plain": ("sex", {}, 2),
    "certified": ("sex", {"confidence": "certified", "random_state": 0, "tau": 0.2}, 2),
    "holdout": ("sex", {**REGIMES["holdout"], "random_state": 0}, 2),
    "crossfit": (
        "sex",
        {**REGIMES["crossfit"], "cv": 2, "random_state": 0, "method": Method(max_iter=30)},
        2,
    ),
    "group cuts": ("sex", {"group_cuts": True}, 2),
    "several notions": (
        "sex",
        {"notion": ["statistical_parity", "equal_opportunity"], "tau": [0.5, 0.6]},
        2,
    ),
    "equalized odds": ("sex", {"notion": "equalized_odds", "tau": 0.5}, 2),
    "bins": ("age", {"bins": [35, 50], "tau": 0.3}, 2),
    "crossed bins": (["age", "sex"], {"bins": {"age": 2}, "tau": 0.2, "group_cuts": True}, 2),
    "smaller label": ("sex", {"pos_label": 0}, 2),
    "three labels": ("sex", {"tau": 0.3}, 3),
    "noise": ("sex", {"method": Method(extra_column="noise"), "random_state": 3}, 2),
    "nothing to choose": ("sex", {"method": Method(min_share=0.499)}, 2),
    "no cut": ("sex", {"method": Method(cut=False), "tau": 0.1}, 2),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore::evenhand.FairnessWarning")
def test_the_same_bit_for_bit(name, tmp_path):
    sensitive, params, labels = CASES[name]
    X, y = people(labels=labels)
    model = fair_pipeline(sensitive, **params).fit(X, y)
    save_model(model, tmp_path / "m", facts={"seed": 3, "what": "<b>"})
    again = load_model(tmp_path / "m")
    assert again.facts == {"seed": 3, "what": "<b>"}
    for one, two in ((model, again.model), (model.at(0.7), again.model.at(0.7))):
        np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
        np.testing.assert_array_equal(one.predict(X), two.predict(X))
        a, b = one[-1], two[-1]
        assert (a.rate_, a.accuracy_, a.feasible_) == (b.rate_, b.accuracy_, b.feasible_)
        assert str(a.guarantee_) == str(b.guarantee_)
        assert a.get_params() == b.get_params()
        assert a.classes_.dtype == b.classes_.dtype
        pd.testing.assert_frame_equal(a.frontier_.to_frame(), b.frontier_.to_frame())
        pd.testing.assert_frame_equal(a.trajectory_.to_frame(), b.trajectory_.to_frame())
    assert again.model.named_steps["encoder"].plans_ == model.named_steps["encoder"].plans_
    save_model(again.model, tmp_path / "n", facts=again.facts)
    assert load_model(tmp_path / "n").model[-1].rate_ == model[-1].rate_


@pytest.mark.parametrize("kind", [str, bool, float, int, object])
def test_labels_and_groups_of_any_kind(kind, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 2))
    y, z = rng.integers(0, 2, 120), rng.integers(0, 2, 120)
    if kind is object:
        y, z = np.array(["a", "b"], dtype=object)[y], np.array(["c", "d"], dtype=object)[z]
    else:
        y, z = y.astype(kind), z.astype(kind)
    model = FairClassifier(tau=0.1, pos_label=max(y.tolist())).fit(X, y, sensitive_features=z)
    save_model(model, tmp_path / "m")
    again = load_model(tmp_path / "m").model
    np.testing.assert_array_equal(model.predict(X), again.predict(X))
    assert again.groups_.tolist() == model.groups_.tolist()


def test_crossed_groups_with_the_separator_are_named_alike(tmp_path):
    X, y = people(400)
    towns = np.array(["Köln & Umland", "Köln", "Köln &"])[np.arange(400) % 3]
    parts = np.array(["Süd", "& Süd"])[np.arange(400) // 3 % 2]
    X = X[["x"]].assign(town=towns, part=parts)
    model = fair_pipeline(["town", "part"], group_cuts=True, tau=0.1, confidence=None).fit(X, y)
    assert len(model[-1].groups_) == 6
    save_model(model, tmp_path / "m")
    again = load_model(tmp_path / "m").model
    assert again[-1].groups_.tolist() == model[-1].groups_.tolist()
    for _, rows in X.groupby(["town", "part"]):  # a group's name does not depend on the others
        np.testing.assert_array_equal(again.predict(rows), model.predict(X.loc[rows.index]))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    X, y = people()
    path = tmp_path_factory.mktemp("models") / "m"
    save_model(fair_pipeline("sex").fit(X, y), path, facts={})
    return path.read_bytes()


def rewritten(saved, change, *, honest=True):
    """Give the file with a member changed, with checksums that fit or that do not."""
    with zipfile.ZipFile(io.BytesIO(saved)) as archive:
        members = {name: archive.read(name) for name in MEMBERS}
    change(members)
    if honest:
        manifest = json.loads(members["manifest.json"])
        for name in MEMBERS[1:]:
            if name in members:
                manifest["sha256"][name] = hashlib.sha256(members[name]).hexdigest()
        members["manifest.json"] = json.dumps(manifest).encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def edit_state(members, edit):
    state = json.loads(members["model.json"])
    edit(state)
    members["model.json"] = json.dumps(state).encode()


def inner(*keys, **changes):
    """Change values somewhere inside of a file."""

    def edit(place):
        for key in keys:
            place = place[key]
        place.update(changes)

    return state(edit)


def cause_of(error):
    """Why a file is refused: a code and what it is about, or the type of Python's error."""
    cause = error.data.get("cause", error)
    if not isinstance(cause, InputError):
        return type(cause).__name__
    keys = ("name", "column", "what", "bound", "parameter")
    return " ".join([cause.code, *(str(cause.data[key]) for key in keys if key in cause.data)])


@contextmanager
def refused_for(reason):
    """Expect that a file is refused, for this reason if one is given."""
    with pytest.raises(ModelFileError) as error:
        yield error
    assert reason in (None, cause_of(error.value))


class Bomb:
    """Writes a file when it is unpickled."""

    def __reduce__(self):
        return os.system, ("touch hacked",)


def pickled_array():
    out = io.BytesIO()
    np.savez(out, inputs=np.array([Bomb()], dtype=object))
    return out.getvalue()


def put(name, data):
    return lambda members: members.update({name: data})


def state(edit):
    return lambda members: edit_state(members, edit)


class TestHostile:
    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            (put("arrays.npz", pickled_array()), "no_numbers inputs"),
            (put("arrays.npz", pickle.dumps(Bomb())), "BadZipFile"),
            (put("model.json", pickle.dumps(Bomb())), "UnicodeDecodeError"),
            (put("model.json", b"[]"), "TypeError"),
            (put("model.json", b"{}"), "KeyError"),
            (put("code.py", b"import os"), "other_members"),
            (lambda m: m.pop("arrays.npz"), "other_members"),
            (state(lambda s: s["classifier"]["params"].update(evil=1)), "unknown_parameter evil"),
            (state(lambda s: s["classifier"]["params"].update(tau="0.8")), "invalid_parameter tau"),
            (
                inner("classifier", "params", "method", solver="os.system"),
                "invalid_parameter solver",
            ),
            (
                state(lambda s: s["encoder"]["plans"][0].update(kind="__import__('os')")),
                "bad_plan",
            ),
            (state(lambda s: s["encoder"]["params"].update(evil=1)), "TypeError"),
            (
                state(lambda s: s["encoder"]["plans"][0].update(written="upside down")),
                "unknown_style",
            ),
            (state(lambda s: s["classifier"].pop("frontier")), "KeyError"),
            (
                state(lambda s: s["pipeline"].update(edges={"sex": [3, 1]})),
                "bad_edges sex",
            ),
            (
                lambda m: m.update({"manifest.json": b'{"format": "evenhand-model"}'}),
                "other_format",
            ),
        ],
    )
    def test_nothing_runs(self, saved, change, reason, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        try:
            data = rewritten(saved, change)
        except KeyError:  # the change left no checksums to correct
            data = rewritten(saved, change, honest=False)
        (tmp_path / "m").write_bytes(data)
        with refused_for(reason):
            load_model(tmp_path / "m")
        assert not (tmp_path / "hacked").exists()

    def test_an_edited_file(self, saved, tmp_path):
        change = state(lambda s: s["classifier"]["params"].update(tau=0.1))
        (tmp_path / "m").write_bytes(rewritten(saved, change, honest=False))
        with raises("changed_member", member="model.json"):
            load_model(tmp_path / "m")

    @pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
    def test_a_part_of_a_file(self, saved, tmp_path, share):
        (tmp_path / "m").write_bytes(saved[: int(share * len(saved))])
        with refused_for("part_of_model"):
            load_model(tmp_path / "m")

    def test_bytes_missing_from_the_middle(self, saved, tmp_path):
        path = tmp_path / "m"
        for start in range(0, len(saved), len(saved) // 20):
            for n in (1, 100, 5000):
                path.write_bytes(saved[:start] + saved[start + n :])
                with pytest.raises(ModelFileError):
                    load_model(path)

    def test_flipped_bits(self, saved, tmp_path):
        rng, refused = np.random.default_rng(0), 0
        for at in rng.integers(0, len(saved), 40):
            data = bytearray(saved)
            data[at] ^= 0xFF
            (tmp_path / "m").write_bytes(bytes(data))
            try:
                load_model(tmp_path / "m")
            except ModelFileError:
                refused += 1
        # The others are bits that nothing depends on, such as those of a date in the archive.
        assert refused >= 38

    @pytest.mark.parametrize("name", MEMBERS)
    def test_a_file_that_claims_to_be_huge(self, saved, name):
        limits = replace(LIMITS, sizes={**LIMITS.sizes, name: 100})
        with refused_for("file_too_large"):
            read_model(io.BytesIO(saved), "m", limits)

    def test_a_later_format(self, saved, tmp_path):
        change = lambda m: m.update(  # noqa: E731
            {
                "manifest.json": m["manifest.json"].replace(
                    b'"format_version": 3', b'"format_version": 9'
                )
            }
        )
        (tmp_path / "m").write_bytes(rewritten(saved, change))
        with raises("other_format", version="9", oldest=1, newest=3):
            load_model(tmp_path / "m")


def packed(members, kind=zipfile.ZIP_DEFLATED):
    """Give a file of these members, whose manifest has their checksums."""
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in members.items()}
    manifest = {"format": "evenhand-model", "format_version": 1, "sha256": sums}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", kind) as archive:
        archive.writestr("manifest.json", json.dumps(manifest))
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def arrays_file(save=np.savez, **arrays):
    out = io.BytesIO()
    save(out, **arrays)
    return out.getvalue()


def one_array(header):
    """Give an archive of one array that says what it is, and has no values."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive, archive.open("inputs.npy", "w") as member:
        np.lib.format.write_array_header_1_0(member, header)
    return out.getvalue()


def many_names():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for i in range(1000):
            archive.writestr(f"{i}.npy", b"")
    return out.getvalue()


def overlapping():
    """Give an archive whose list names one array many times."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        with archive.open("inputs.npy", "w") as member:
            np.save(member, np.zeros(100_000))
        archive.filelist += [copy(archive.filelist[0]) for _ in range(200)]
    return out.getvalue()


def empty_blocks():
    """Give a file whose model.json is two characters behind megabytes of nothing."""
    pack = zlib.compressobj(wbits=-15)
    data = b"\0\0\0\xff\xff" * (8 << 20) + pack.compress(b"{}") + pack.flush()
    good = packed(EMPTY)
    with zipfile.ZipFile(io.BytesIO(good)) as archive:
        infos = archive.infolist()
        start = [info.header_offset for info in infos]
    end = struct.unpack("<I", good[-6:-2])[0]
    parts = [good[a:b] for a, b in zip(start, [*start[1:], end], strict=True)]
    directory, at, entries = good[end:-22], 0, []
    sizes, local = struct.pack("<II", len(data), 2), len("model.json") + 30
    parts[1] = parts[1][:18] + sizes + parts[1][26:local] + data
    offset = 0
    for info, part in zip(infos, parts, strict=True):
        entry = bytearray(directory[at : at + 46 + len(info.filename)])
        at += len(entry)
        entry[42:46] = struct.pack("<I", offset)
        if info.filename == "model.json":
            entry[20:28] = sizes
        entries.append(bytes(entry))
        offset += len(part)
    tail = bytearray(good[-22:])
    tail[16:20] = struct.pack("<I", offset)
    return b"".join([*parts, *entries, bytes(tail)])


def zeros(n):
    return packed({"model.json": b"{}", "arrays.npz": bytes(n)})


EMPTY = {"model.json": b"{}", "arrays.npz": arrays_file()}
BOMBS = {
    # a member that is unpacked to a thousand times its size
    "zeros": lambda: zeros(300 << 20),
    "fewer zeros": lambda: zeros(19 << 20),
    "a manifest": lambda: rewritten(
        zeros(1), put("manifest.json", b" " * (50 << 20)), honest=False
    ),
    "zeros in the arrays": lambda: packed(
        EMPTY | {"arrays.npz": arrays_file(np.savez_compressed, inputs=np.zeros(40 << 20))}
    ),
    # what is small as text and large as values
    "empty lists": lambda: packed(EMPTY | {"model.json": b"[" + b"[]," * 2_500_000 + b"[]]"}),
    "small objects": lambda: packed(
        EMPTY | {"model.json": b"[" + b'{"":0},' * 1_000_000 + b"{}]"}, zipfile.ZIP_STORED
    ),
    "depth": lambda: packed(EMPTY | {"model.json": b"[" * 400_000}),
    "an array that is not there": lambda: packed(
        EMPTY
        | {"arrays.npz": one_array({"descr": "<f8", "fortran_order": False, "shape": (1 << 30,)})}
    ),
    "many arrays": lambda: packed(EMPTY | {"arrays.npz": many_names()}),
    "many members": many_names,
    "another way to pack": lambda: packed(EMPTY, zipfile.ZIP_LZMA),
    "arrays that overlap": lambda: packed(EMPTY | {"arrays.npz": overlapping()}),
    "packed nothing": empty_blocks,
}
# One long text among many short ones, all of which NumPy would make as long.
LONG = ["a" * 100_000] + [f"b{i}" for i in range(9000)]
# Changes of a file that make it take much, and why it is refused.
LARGE = {
    "groups": (
        lambda s: s["classifier"]["groups"].update(kind="str", values=LONG),
        "long_names",
    ),
    "names of columns": (
        lambda s: s["classifier"].update(feature_names_in={"kind": "str", "values": LONG}),
        "long_names",
    ),
    "weights": (lambda s: s["facts"]["plain"].update(weights=LONG), "other_shape plain.weights"),
    "weights of the right number": (
        lambda s: s["facts"]["plain"].update(
            weights=LONG[: len(s["facts"]["plain"]["weights"])],
        ),
        "bad_value plain.weights",
    ),
    "margin": (lambda s: s["classifier"]["fit"].update(margin=LONG), "other_shape margin"),
    "target": (lambda s: s["classifier"]["params"].update(tau=LONG), "bad_value tau"),
    "fill": (
        lambda s: s["encoder"]["plans"][0].update(fill=LONG),
        "other_shape fill of column 'x'",
    ),
    "edges": (lambda s: s["pipeline"].update(edges={"sex": LONG}), "bad_value edges"),
    "categories of a long column": (
        lambda s: s["encoder"]["plans"][1].update(
            column="a" * 100_000, kind="category", categories=LONG[1:]
        ),
        "long_input_names",
    ),
    "columns": (
        lambda s: s["encoder"].update(
            plans=[s["encoder"]["plans"][0] | {"column": f"c{i}"} for i in range(15_000)]
        ),
        "other_inputs",
    ),
}


def refused(data, folder, reason=None, *, most=64 << 20):
    """Assert that a file is refused, and has taken neither much time nor memory until then."""
    (folder / "m").write_bytes(data)
    tracemalloc.start()
    start = time.process_time()
    try:
        with refused_for(reason):
            load_model(folder / "m")
        taken = time.process_time() - start
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()
    assert taken < 10  # of processor time, with every piece of memory noted


class TestBombs:
    @pytest.mark.parametrize("name", BOMBS)
    def test_refused_before_it_takes_anything(self, name, tmp_path):
        refused(BOMBS[name](), tmp_path)

    @pytest.mark.parametrize("whole", ["certified"], indirect=True)  # it has every kind of fact
    @pytest.mark.parametrize("name", LARGE)
    def test_large_values(self, name, whole, tmp_path):
        change, reason = LARGE[name]
        refused(rewritten(whole, state(change)), tmp_path, reason)

    def test_arrays_that_overlap(self, tmp_path):
        data = packed(EMPTY | {"arrays.npz": overlapping()})
        refused(data, tmp_path, "arrays_larger_than_file", most=4 << 20)

    def test_packed_nothing(self, tmp_path):
        refused(empty_blocks(), tmp_path, "file_too_large")

    def test_small_numbers(self, saved, tmp_path):
        """Numbers of one byte, which have eight when they are computed with."""
        n = 1_300_000
        grow = array("frontier.counts", lambda v: np.ones((n, *v.shape[1:]), bool))
        refused(rewritten(saved, grow), tmp_path, "too_many_numbers")
        small = array("frontier.counts", lambda v: v.astype(np.float32))
        refused(rewritten(saved, small), tmp_path, "other_dtype frontier.counts")

    def test_many_points(self, saved, tmp_path):
        def grow(members):
            for name in ("iterate", "cut", "accuracy", "rate", "counts"):
                array(f"frontier.{name}", lambda v: np.repeat(v[:1], 20_001, axis=0))(members)

        refused(rewritten(saved, grow), tmp_path, "too_many points")

    def test_many_steps(self, saved, tmp_path):
        """What a refused file has of them is not unfolded."""

        def grow(members):
            with np.load(io.BytesIO(members["arrays.npz"])) as held:
                names = [name for name in held.files if name.startswith("trajectory.")]
            for name in names:
                array(name, lambda v: np.repeat(v[:1], 90_000, axis=0))(members)
            leg = ["a"] * 90_000
            edit_state(members, lambda s: s["classifier"]["trajectory"].update(leg=leg))
            edit_state(members, lambda s: s.update(facts=[]))

        refused(rewritten(saved, grow), tmp_path, "bad_value facts")

    @pytest.mark.parametrize(("more", "reason"), [(0, "JSONDecodeError"), (2, "too_many_values")])
    def test_the_most_values(self, more, reason, tmp_path):
        commas = 600_000
        spaces = ((40 << 20) + more - 80 - 64 * commas) // 2 - commas - 1
        text = b"[" + b"," * commas + b" " * spaces
        assert memory_of(text) == (40 << 20) + more
        refused(packed(EMPTY | {"model.json": text}, zipfile.ZIP_STORED), tmp_path, reason)

    @pytest.mark.parametrize(
        ("more", "reason"), [(0, "contradiction the rate"), (1, "too_many cells")]
    )
    def test_the_most_cells(self, more, reason, saved, tmp_path):
        cells = ["11"] * (199_999 + more)  # read as pairs, and shorter than lists
        part = {"name": "selection_rate", "numerator": ["11"], "denominator": cells}
        target = {"name": "", "parts": [part | {"is_error": False}], "shares": [], "level": 0.8}
        change = state(lambda s: s["classifier"].update(target=target))
        refused(rewritten(saved, change), tmp_path, reason)

    def test_many_labels(self, saved, tmp_path):
        """The cells of their rates are not even looked for."""
        labels = {"kind": "int", "values": list(range(101))}
        change = state(
            lambda s: (
                s["classifier"].update(classes=labels, labels=labels),
                s["classifier"]["params"].update(pos_label=None),
            )
        )
        refused(rewritten(saved, change), tmp_path, "too_many pairs")

    def test_the_largest_that_is_read_takes_no_more(self, saved, tmp_path):
        """A file just below the limits, refused by what is looked at last."""

        def grow(members):
            edit_state(members, lambda s: s["facts"].update(a=[[i] for i in range(150_000)]))
            edit_state(members, lambda s: s.update(pipeline=3))
            array("trajectory.more", lambda _: np.ones(2_000_000))(members)

        (tmp_path / "m").write_bytes(rewritten(saved, grow))
        tracemalloc.start()
        try:
            with refused_for("contradiction trajectory"):
                load_model(tmp_path / "m")
            assert 20 << 20 < tracemalloc.get_traced_memory()[1] < 64 << 20
        finally:
            tracemalloc.stop()

    def test_millions_of_iterates(self, saved):
        def grow(members):
            for name in ("kept.row", "kept.iterate"):
                array(name, lambda v: np.concatenate([v] * 20))(members)
            edit_state(members, lambda s: repeat(s["classifier"]["trajectory"]["source"]))

        def repeat(sources):
            sources *= 20

        data = io.BytesIO(rewritten(saved, grow))
        with refused_for("too_many steps"):
            read_model(data, "m", replace(LIMITS, steps=100))

    @pytest.mark.parametrize(
        "data",
        [
            json.dumps("\ud800").encode(),
            json.dumps("\ude00\ud83d").encode(),
            b'"\\\\\\uDBFF"',
            '"\ud800"'.encode("utf-8", "surrogatepass"),
            '"\ud800"'.encode("utf-16-le", "surrogatepass"),
            '"a"'.encode("utf-16"),
        ],
    )
    def test_half_a_character(self, data, saved, tmp_path):
        def groups(members):
            edit_state(members, lambda s: s["classifier"]["groups"].update(values=["f", "XX"]))
            if b"\0" in data:
                members["model.json"] = data
            members["model.json"] = members["model.json"].replace(b'"XX"', data)

        coded = data.isascii() and b"\0" not in data
        reason = "half_character_in_file" if coded else "UnicodeDecodeError"
        refused(rewritten(saved, groups), tmp_path, reason)
        manifest = b'{"format": "evenhand-model", "format_version": ' + data + b"}"
        change = put("manifest.json", manifest if b"\0" not in data else data)
        refused(rewritten(saved, change, honest=False), tmp_path, "no_model")

    def test_characters_of_two_halves(self, saved, tmp_path):
        good = state(lambda s: s["facts"].update(a="\\ud800 \U0001f600"))
        (tmp_path / "m").write_bytes(rewritten(saved, good))
        assert load_model(tmp_path / "m").facts["a"] == "\\ud800 \U0001f600"


def trained(folder, **params):
    """A model with the facts of its training, as the command line saves it."""
    X, y = people(400)
    saved = train_table(X.assign(y=y), label="y", sensitive=["sex"], tau=0.3, **params)
    save_model(saved.model, folder / "m", facts=saved.facts)
    return (folder / "m").read_bytes()


@pytest.fixture(scope="module", params=["train", "certified"])
def whole(request, tmp_path_factory):
    return trained(tmp_path_factory.mktemp("whole"), **REGIMES[request.param])


def facts(**changes):
    return state(lambda s: s["facts"].update(changes))


def array(name, change):
    def edit(members):
        with np.load(io.BytesIO(members["arrays.npz"])) as held:
            arrays = {key: held[key] for key in held.files}
        arrays[name] = change(arrays.get(name))
        out = io.BytesIO()
        np.savez(out, **arrays)
        members["arrays.npz"] = out.getvalue()

    return edit


def backwards(members):
    for name in ("iterate", "cut", "accuracy", "rate", "counts"):
        array(f"frontier.{name}", lambda v: v[::-1])(members)


def places(value, at=()):
    """Every place in plain values, few of each list."""
    if at:
        yield at
    items = value.items() if isinstance(value, dict) else ()
    items = list(enumerate(value))[:3] if isinstance(value, list) else items
    for key, inner in items:
        yield from places(inner, (*at, key))


def counts_of(part, change):
    def edit(state):
        held = np.array(state["facts"][f"{part}_counts"])
        state["facts"][f"{part}_counts"] = change(held).tolist()

    return state(edit)


def one_point_larger(counts):
    counts[-1] *= 50
    return counts


MODEL = "classifier"
# Files that contradict themselves.
CONTRADICTIONS = {
    "notion": (inner(MODEL, "params", notion="equal_opportunity"), "contradiction the rate"),
    "part": (inner(MODEL, "target", "parts", 0, name="accuracy"), "contradiction the rate"),
    "cells": (inner(MODEL, "target", "parts", 0, numerator=[[1, 1]]), "contradiction the rate"),
    "rate's name": (inner(MODEL, "frontier", rate_name="luck"), "contradiction frontier.rate_name"),
    "labels": (inner(MODEL, "labels", values=[1, 0]), "unordered_labels"),
    "classes": (inner(MODEL, "classes", values=[1, 0]), "unordered_labels"),
    "noise": (inner(MODEL, "fit", noise=3), "bad_value noise"),
    "pos_label": (inner(MODEL, "params", pos_label=0), "unordered_labels"),
    "no label": (inner(MODEL, "params", pos_label=7), "unknown_favourable_label"),
    "favourable": (inner(MODEL, "frontier", favourable=[0]), "contradiction frontier.favourable"),
    "said favourable": (facts(favourable=["0"]), "contradiction favourable"),
    "sensitive": (facts(sensitive=["job"]), "contradiction sensitive"),
    "rows of a point": (array("frontier.counts", one_point_larger), "other_rows frontier.counts"),
    "rows of a conservative point": (
        array("conservative.counts", one_point_larger),
        "other_rows conservative.counts",
    ),
    "group cuts": (inner(MODEL, "params", group_cuts=True), "contradiction group_cuts"),
    "where": (inner(MODEL, "fit", place="everywhere"), "other_selection"),
    "swapped groups": (counts_of("train", lambda v: v[:, ::-1]), "other_rows plain.counts.train"),
    "test rows": (counts_of("test", lambda v: v * 3), "contradiction n_test"),
    "rows of an answer": (counts_of("test", one_point_larger), "other_rows test_counts"),
    "n_train": (facts(n_train=5), "contradiction n_train"),
    "n_rows": (facts(n_rows=77), "contradiction n_rows"),
    "n_rows less one": (
        state(lambda s: s["facts"].update(n_rows=s["facts"]["n_rows"] - 1)),
        "contradiction n_rows",
    ),
}
# What a certified model says of its rows.
FORGED = {
    "n_rows": (inner(MODEL, "held_out", n_rows=10**9), "contradiction held_out.n_rows"),
    "n_fitted": (inner(MODEL, "held_out", n_fitted=1), "contradiction held_out.n_fitted"),
    "half of them": (
        state(
            lambda s: s[MODEL]["held_out"].update(n_fitted=s[MODEL]["held_out"]["n_fitted"] // 2)
        ),
        "contradiction held_out.n_fitted",
    ),
    "counts": (array("held_out.counts", one_point_larger), "other_rows held_out.counts"),
}


@pytest.fixture(scope="module")
def forged(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("forged"), confidence="certified")


class TestFactsAndShapes:
    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            (state(lambda s: s.update(facts=[])), "bad_value facts"),
            (facts(n_train="many"), "bad_value n_train"),
            (facts(n_rows=True), "bad_value n_rows"),
            (facts(n_rows=10**400), "out_of_range n_rows"),
            (facts(rows_dropped=[{"reason": "", "n": -1}]), "out_of_range rows_dropped"),
            (facts(title=None), "bad_value title"),
            (facts(sensitive="sex"), "bad_value sensitive"),
            (facts(versions=[]), "bad_value versions"),
            (facts(rows_dropped=[{"n": 3}]), "KeyError"),
            (state(lambda s: s["facts"].pop("command")), "KeyError"),
            (state(lambda s: s["facts"]["train_counts"].pop()), "other_shape train_counts"),
            (facts(test_counts=[[1, 2], [3]]), "other_shape test_counts"),
            (
                state(lambda s: s["facts"]["plain"].update(weights=[1.0])),
                "other_shape plain.weights",
            ),
            (state(lambda s: s["facts"]["plain"]["counts"].pop("test")), "KeyError"),
            (
                state(lambda s: s["facts"]["plain"]["counts"]["train"][0][0].__setitem__(0, -1)),
                "out_of_range plain.counts.train",
            ),
            (array("frontier.rate", lambda v: v[:-1]), "other_shape frontier.iterate"),
            (array("frontier.rate", lambda v: -v), "out_of_range frontier.rate"),
            (array("frontier.rate", lambda v: v * 0.999), "contradicts_counts frontier.rate"),
            (
                array("frontier.accuracy", lambda v: v + 1e-6),
                "contradicts_counts frontier.accuracy",
            ),
            (
                array("conservative.rate", lambda v: v * 0.999),
                "contradicts_counts conservative.rate",
            ),
            (backwards, "unordered_points rate"),
            (
                state(lambda s: s["classifier"]["frontier"]["last"].__setitem__(2, 0.99)),
                "contradicts_counts frontier.last.rate",
            ),
            (
                state(lambda s: s["classifier"].update(n_features_in=10**9)),
                "other_columns",
            ),
            (array("frontier.iterate", lambda v: v + 10**6), "bad_index frontier.iterate"),
            (array("frontier.cut", lambda v: v[:, None]), "other_shape frontier.cut"),
            (array("frontier.counts", lambda v: v[:, :1]), "other_shape frontier.counts"),
            (array("frontier.counts", lambda v: v * 1e300), "not_finite frontier.counts"),
            (array("frontier.last.counts", lambda v: v[0]), "other_shape frontier.last.counts"),
            (array("kept.iterate", lambda v: v[:, :-1]), "other_shape kept.iterate"),
            (array("kept.iterate", lambda v: v * np.nan), "not_finite kept.iterate"),
            (array("kept.row", lambda v: v + 10**6), "bad_index kept.row"),
            (array("kept.row", lambda v: v * 0 - 2), "bad_index kept.row"),
            (array("inputs", lambda v: v * 0), "repeated_inputs"),
            (array("trajectory.counts", lambda v: v[:, :, 0]), "other_shape trajectory.counts"),
            (array("trajectory.loss_c", lambda v: v[:, None]), "other_shape trajectory.loss_c"),
            (state(lambda s: s["classifier"]["fit"].update(n_iter=-3)), "out_of_range n_iter"),
            (state(lambda s: s["classifier"]["params"].update(notion=[[1]])), "TypeError"),
            (
                state(lambda s: s["classifier"]["groups"].update(values=["f"])),
                "not_different groups",
            ),
            (state(lambda s: s["encoder"]["plans"].pop(0)), "other_inputs"),
            (state(lambda s: s["encoder"]["plans"][0].update(scale=0)), "bad_scale x"),
            (state(lambda s: s["pipeline"].update(bins={"sex": 2})), "edges_without_bins"),
        ],
    )
    def test_said_on_loading(self, whole, change, reason, tmp_path):
        (tmp_path / "m").write_bytes(rewritten(whole, change))
        with refused_for(reason) as error:
            load_model(tmp_path / "m")
        assert "\n" not in str(error.value)

    @pytest.mark.parametrize("name", CONTRADICTIONS)
    def test_contradictions(self, name, whole, tmp_path):
        change, reason = CONTRADICTIONS[name]
        (tmp_path / "m").write_bytes(rewritten(whole, change))
        with refused_for(reason):
            load_model(tmp_path / "m")

    @pytest.mark.parametrize("name", FORGED)
    def test_forged_rows(self, name, forged, tmp_path):
        change, reason = FORGED[name]
        (tmp_path / "m").write_bytes(rewritten(forged, change))
        with refused_for(reason):
            load_model(tmp_path / "m")

    def test_the_bound_of_a_certificate(self, forged, tmp_path):
        about = json.loads(zipfile.ZipFile(io.BytesIO(forged)).read("model.json"))[MODEL]
        assert about["held_out"]["bound"] == "exact-score"
        old = (FIXTURES / "v1-certified.model").read_bytes()
        forget = state(lambda s: s[MODEL]["held_out"].pop("bound", None))
        (tmp_path / "m").write_bytes(rewritten(old, forget))
        assert load_model(tmp_path / "m").model[-1].held_out_.bound_name == "clopper-pearson"
        for name, reason in (("wishful", "unknown_bound wishful"), (3, "bad_value bound")):
            change = inner(MODEL, "held_out", bound=name)
            (tmp_path / "m").write_bytes(rewritten(forged, change))
            with refused_for(reason):
                load_model(tmp_path / "m")

    def test_training_rows_that_are_answered_otherwise(self, tmp_path):
        data = trained(tmp_path)
        change = counts_of("train", lambda v: v[..., ::-1])
        (tmp_path / "m").write_bytes(rewritten(data, change))
        with refused_for("contradiction train_counts"):
            load_model(tmp_path / "m")

    def test_another_confidence(self, tmp_path):
        data = trained(tmp_path)
        for changes, reason in (
            ({"confidence": 0.99}, "contradiction margin"),
            ({"margin": 0.0}, "contradiction margin"),
            ({"delta": 0.05}, "confidence_without_delta"),
        ):
            change = state(lambda s, new=changes: s["classifier"]["fit"].update(new))
            (tmp_path / "m").write_bytes(rewritten(data, change))
            with refused_for(reason):
                load_model(tmp_path / "m")

    @pytest.mark.parametrize("name", ["accuracy", "rate", "bound"])
    def test_a_forged_certificate(self, name, tmp_path):
        data = trained(tmp_path, confidence="certified")
        change = array(f"held_out.{name}", lambda v: v * 0 + 0.95)
        (tmp_path / "m").write_bytes(rewritten(data, change))
        with refused_for(f"contradicts_counts held_out.{name}"):
            load_model(tmp_path / "m")

    def test_what_loads_can_be_shown(self, whole, tmp_path):
        from evenhand.views.report import render

        with zipfile.ZipFile(io.BytesIO(whole)) as archive:
            held = json.loads(archive.read("model.json"))
        rng, spots = np.random.default_rng(0), list(places(held))
        odd = [None, -1, 0, 10**30, 1e308, float("nan"), "x", [], {}, True, [[1]], ["a"], {"a": 1}]
        loaded = 0
        for i in rng.choice(len(spots), 60, replace=False):
            edited = json.loads(json.dumps(held))
            *inner, last = spots[i]
            place = edited
            for key in inner:
                place = place[key]
            place[last] = odd[int(rng.integers(len(odd)))]
            data = json.dumps(edited).encode()
            (tmp_path / "m").write_bytes(rewritten(whole, put("model.json", data)))
            try:
                saved = load_model(tmp_path / "m")
            except ModelFileError:
                continue
            if "train_counts" in saved.facts:
                render(summarise(saved))
                loaded += 1
        assert loaded


def test_models_that_do_not_say_how_values_are_written(tmp_path):
    old = (FIXTURES / "v1-two-labels.model").read_bytes()

    def forget(state):
        for plan in state["encoder"]["plans"]:
            del plan["written"]

    (tmp_path / "m").write_bytes(rewritten(old, state(forget)))
    encoder = load_model(tmp_path / "m").model.named_steps["encoder"]
    assert {plan.written for plan in encoder.plans_} == {""}


class TestSaving:
    def test_what_cannot_be_saved(self, tmp_path):
        X, y = people()
        with raises("not_fitted"):
            save_model(FairClassifier(), tmp_path / "m")
        with raises("not_fitted"):
            save_model(fair_pipeline("sex"), tmp_path / "m")
        with pytest.raises(TypeError, match="a dict cannot be saved"):
            save_model({}, tmp_path / "m")
        rows = np.column_stack([X["age"], X["age"] % 7]).astype(float)
        model = FairClassifier(sensitive_features=lambda t: t[:, 0] > 40, tau=0.1).fit(rows, y)
        with pytest.raises(TypeError, match="sensitive_features is a function"):
            save_model(model, tmp_path / "m")
        assert list(tmp_path.iterdir()) == []

    def test_half_a_character(self, tmp_path):
        X, y = people()
        labels = np.where(y, "yes\ud800", "no")
        model = FairClassifier(tau=0.1, pos_label="no")
        with pytest.raises(ValueError, match="half a character, which no file can hold") as error:
            model.fit(X[["age"]] / 10, labels, sensitive_features=X["sex"])
        assert str(error.value).isascii()
        model.set_params(pos_label=0).fit(X[["age"]] / 10, y, sensitive_features=X["sex"])
        with raises("unsavable_text") as error:
            save_model(model, tmp_path / "m", facts={"title": "a\ud800"})
        assert "a\ud800" in error.value.data["near"]

    def test_what_could_not_be_loaded_is_not_saved(self):
        X, y = people()
        model = fair_pipeline("sex").fit(X, y)
        with raises("unsavable_model", reason="unreadable_model") as error:
            model_writer(model, limits=replace(LIMITS, groups=1))
        assert cause_of(error.value.data["reason"]) == "too_many groups"
        few = replace(LIMITS, sizes={**LIMITS.sizes, "arrays.npz": 1000})
        with raises("model_too_large", member="arrays.npz"):
            model_writer(model, limits=few)

    def test_a_run_that_packs_too_well(self):
        X, y = people()
        limits, file = replace(LIMITS, free=1000, packed=1), io.BytesIO()
        model_writer(fair_pipeline("sex").fit(X, y), limits=limits)(file)
        read_model(file, "m", limits)

    def test_large_weights(self, tmp_path):
        X, y = people()
        numbers, groups = X[["age"]] / 10, X["sex"]
        for weight in (1e14, 1e90, 1e300):
            weights = np.full(len(y), weight)
            with pytest.raises(ValueError, match=r"rows in all; divide all weights by one number"):
                FairClassifier().fit(numbers, y, sensitive_features=groups, sample_weight=weights)
        for weight in (1e-90, 1e12, np.where(np.arange(len(y)) % 2, 1e-90, 1.0)):
            weights = np.full(len(y), weight)
            model = FairClassifier(tau=0.1)
            model.fit(numbers, y, sensitive_features=groups, sample_weight=weights)
            save_model(model, tmp_path / "m")
            assert load_model(tmp_path / "m").model.rate_ == model.rate_


class TestOnnx:
    @pytest.mark.parametrize("name", ["plain", "smaller label", "three labels", "certified"])
    @pytest.mark.filterwarnings("ignore::evenhand.FairnessWarning")
    def test_the_same_predictions(self, name):
        runtime = pytest.importorskip("onnxruntime")
        pytest.importorskip("onnx")
        from evenhand.persist.onnx import onnx_feeds, to_onnx

        sensitive, params, labels = CASES[name]
        X, y = people(labels=labels)
        model = fair_pipeline(sensitive, **params).fit(X, y)
        session = runtime.InferenceSession(to_onnx(model), providers=["CPUExecutionProvider"])
        new = X.copy()
        new.loc[::5, "job"] = "never seen"
        new.loc[::7, "job"] = None
        told = session.get_modelmeta().custom_metadata_map
        assert told["read paid"] == "number, decimal comma, in €"
        assert told["favourable"] == " | ".join(model[-1].fitted_.favourable)
        label, score = session.run(["label", "score"], onnx_feeds(model, new))
        assert (model[-1].classes_[label] == model.predict(new)).all()
        ours = model[-1].decision_function(model[:-1].transform(new))
        np.testing.assert_allclose(score, ours, atol=1e-12)

    def test_what_cannot_be_exported(self):
        from evenhand.persist.onnx import to_onnx

        X, y = people()
        with raises("not_exportable", what="a cut for each group"):
            to_onnx(fair_pipeline("sex", group_cuts=True).fit(X, y))
        with pytest.raises(TypeError, match="a dict cannot be exported"):
            to_onnx({})
