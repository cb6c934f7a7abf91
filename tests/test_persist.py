"""Saved models: the same predictions bit for bit, and nothing a file can do but be wrong."""

import hashlib
import io
import json
import os
import pickle
import zipfile
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest

from evenhand import FairClassifier, workflow
from evenhand.persist import MEMBERS, ModelFileError, load_model, save_model, write_atomically
from evenhand.tables import fair_pipeline


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


CASES = {
    "plain": ("sex", {}, 2),
    "certified": ("sex", {"selection": "certified", "random_state": 0, "tau": 0.2}, 2),
    "holdout": ("sex", {"selection": "holdout", "random_state": 0}, 2),
    "crossfit": ("sex", {"selection": "crossfit", "cv": 2, "random_state": 0, "max_iter": 30}, 2),
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
    "noise": ("sex", {"extra_column": "noise", "random_state": 3}, 2),
    "nothing to choose": ("sex", {"min_share": 0.499}, 2),
    "no cut": ("sex", {"cut": False, "tau": 0.1}, 2),
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
    model = FairClassifier(tau=0.1).fit(X, y, sensitive_features=z)
    save_model(model, tmp_path / "m")
    again = load_model(tmp_path / "m").model
    np.testing.assert_array_equal(model.predict(X), again.predict(X))
    assert again.groups_.tolist() == model.groups_.tolist()


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
        ("change", "message"),
        [
            (put("arrays.npz", pickled_array()), "no model this evenhand can read"),
            (put("arrays.npz", pickle.dumps(Bomb())), "no model this evenhand can read"),
            (put("model.json", pickle.dumps(Bomb())), "no model this evenhand can read"),
            (put("model.json", b"[]"), "no model"),
            (put("model.json", b"{}"), "no model"),
            (put("code.py", b"import os"), "damaged or was changed: it should hold"),
            (lambda m: m.pop("arrays.npz"), "damaged or was changed"),
            (state(lambda s: s["classifier"]["params"].update(evil=1)), "unknown parameter 'evil'"),
            (state(lambda s: s["classifier"]["params"].update(tau="0.8")), "'tau' parameter"),
            (state(lambda s: s["classifier"]["params"].update(solver="os.system")), "'solver'"),
            (
                state(lambda s: s["encoder"]["plans"][0].update(kind="__import__('os')")),
                "no plan of a column",
            ),
            (state(lambda s: s["encoder"]["params"].update(evil=1)), "unexpected keyword"),
            (
                state(lambda s: s["encoder"]["plans"][0].update(written="upside down")),
                "a number is not written 'upside down'",
            ),
            (state(lambda s: s["classifier"].pop("frontier")), "KeyError"),
            (
                state(lambda s: s["pipeline"].update(edges={"sex": [3, 1]})),
                "no edges of bins of column 'sex'",
            ),
            (
                lambda m: m.update({"manifest.json": b'{"format": "evenhand-model"}'}),
                "format version None",
            ),
        ],
    )
    def test_nothing_runs(self, saved, change, message, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        try:
            data = rewritten(saved, change)
        except KeyError:  # the change left no checksums to correct
            data = rewritten(saved, change, honest=False)
        (tmp_path / "m").write_bytes(data)
        with pytest.raises(ModelFileError, match=message):
            load_model(tmp_path / "m")
        assert not (tmp_path / "hacked").exists()

    def test_an_edited_file(self, saved, tmp_path):
        change = state(lambda s: s["classifier"]["params"].update(tau=0.1))
        (tmp_path / "m").write_bytes(rewritten(saved, change, honest=False))
        with pytest.raises(ModelFileError, match=r"changed: its model.json is not the one"):
            load_model(tmp_path / "m")

    @pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
    def test_a_part_of_a_file(self, saved, tmp_path, share):
        (tmp_path / "m").write_bytes(saved[: int(share * len(saved))])
        with pytest.raises(ModelFileError, match="no evenhand model"):
            load_model(tmp_path / "m")

    def test_bytes_missing_from_the_middle(self, saved, tmp_path):
        path = tmp_path / "m"
        for start in range(0, len(saved), len(saved) // 20):
            for n in (1, 100, 5000):
                path.write_bytes(saved[:start] + saved[start + n :])
                with pytest.raises(ModelFileError, match=r"damaged|no evenhand model"):
                    load_model(path)

    def test_flipped_bits(self, saved, tmp_path):
        rng = np.random.default_rng(0)
        for at in rng.integers(0, len(saved), 40):
            data = bytearray(saved)
            data[at] ^= 0xFF
            (tmp_path / "m").write_bytes(bytes(data))
            with suppress(ModelFileError):  # the bit may be one that nothing depends on
                load_model(tmp_path / "m")

    def test_a_file_that_claims_to_be_huge(self, saved, tmp_path, monkeypatch):
        monkeypatch.setattr("evenhand.persist.MOST_BYTES", 1000)
        (tmp_path / "m").write_bytes(saved)
        with pytest.raises(ModelFileError, match="larger than any model"):
            load_model(tmp_path / "m")

    def test_a_later_format(self, saved, tmp_path):
        change = lambda m: m.update(  # noqa: E731
            {
                "manifest.json": m["manifest.json"].replace(
                    b'"format_version": 1', b'"format_version": 9'
                )
            }
        )
        (tmp_path / "m").write_bytes(rewritten(saved, change))
        with pytest.raises(ModelFileError, match="format version 9, and this evenhand reads 1"):
            load_model(tmp_path / "m")


def trained(folder, **params):
    """A model with the facts of its training, as the command line saves it."""
    X, y = people(400)
    saved = workflow.train(X.assign(y=y), label="y", sensitive=["sex"], tau=0.3, **params)
    save_model(saved.model, folder / "m", facts=saved.facts)
    return (folder / "m").read_bytes()


@pytest.fixture(scope="module", params=["train", "certified"])
def whole(request, tmp_path_factory):
    return trained(tmp_path_factory.mktemp("whole"), selection=request.param)


def facts(**changes):
    return state(lambda s: s["facts"].update(changes))


def array(name, change):
    def edit(members):
        with np.load(io.BytesIO(members["arrays.npz"])) as held:
            arrays = {key: held[key] for key in held.files}
        arrays[name] = change(arrays[name])
        out = io.BytesIO()
        np.savez(out, **arrays)
        members["arrays.npz"] = out.getvalue()

    return edit


def places(value, at=()):
    """Every place in plain values, few of each list."""
    if at:
        yield at
    items = value.items() if isinstance(value, dict) else ()
    items = list(enumerate(value))[:3] if isinstance(value, list) else items
    for key, inner in items:
        yield from places(inner, (*at, key))


class TestFactsAndShapes:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (state(lambda s: s.update(facts=[])), r"facts is '\[\]'"),
            (facts(n_train="many"), "n_train is 'many'"),
            (facts(n_rows=True), "n_rows is 'True'"),
            (facts(title=None), "title is 'None'"),
            (facts(sensitive="sex"), "sensitive is 'sex'"),
            (facts(versions=[]), "versions is"),
            (facts(rows_dropped=[{"n": 3}]), "KeyError"),
            (state(lambda s: s["facts"].pop("command")), "KeyError: 'command'"),
            (state(lambda s: s["facts"]["train_counts"].pop()), r"train_counts has the shape"),
            (facts(test_counts=[[1, 2], [3]]), "ValueError"),
            (
                state(lambda s: s["facts"]["plain"].update(weights=[1.0])),
                "plain.weights has the sh",
            ),
            (state(lambda s: s["facts"]["plain"]["counts"].pop("test")), "KeyError: 'test'"),
            (
                state(lambda s: s["facts"]["plain"]["counts"]["train"][0][0].__setitem__(0, -1)),
                "plain.counts.train has values below 0",
            ),
            (array("frontier.rate", lambda v: v[:-1]), "frontier.iterate has the shape"),
            (array("frontier.rate", lambda v: -v), "frontier.rate has values below 0"),
            (array("frontier.iterate", lambda v: v + 10**6), "frontier.iterate has numbers that"),
            (array("frontier.cut", lambda v: v[:, None]), "frontier.cut has the shape"),
            (array("frontier.counts", lambda v: v[:, :1]), "frontier.counts has the shape"),
            (array("frontier.counts", lambda v: v * 1e300), "frontier.counts has values"),
            (array("frontier.last.counts", lambda v: v[0]), "frontier.last.counts has the shape"),
            (array("kept.iterate", lambda v: v[:, :-1]), "kept.iterate has the shape"),
            (array("kept.iterate", lambda v: v * np.nan), "kept.iterate has values that are no"),
            (array("kept.row", lambda v: v + 10**6), "kept.row has numbers that are not"),
            (array("inputs", lambda v: v * 0), "one of them twice"),
            (array("trajectory.counts", lambda v: v[:, :, 0]), "trajectory.counts has the shape"),
            (array("trajectory.loss_c", lambda v: v[:, None]), "trajectory.loss_c has the shape"),
            (state(lambda s: s["classifier"]["plain"].update(_sign=3)), "_sign is 3"),
            (state(lambda s: s["classifier"]["params"].update(notion=[[1]])), "no model this"),
            (
                state(lambda s: s["classifier"]["groups"].update(values=["f"])),
                "groups_ are not two",
            ),
            (state(lambda s: s["encoder"]["plans"].pop(0)), "inputs, the classifier has"),
            (state(lambda s: s["encoder"]["plans"][0].update(scale=0)), "scale of column 'x'"),
            (state(lambda s: s["pipeline"].update(bins={"sex": 2})), "bins and their edges"),
        ],
    )
    def test_said_on_loading(self, whole, change, message, tmp_path):
        (tmp_path / "m").write_bytes(rewritten(whole, change))
        with pytest.raises(ModelFileError, match=message) as error:
            load_model(tmp_path / "m")
        assert "\n" not in str(error.value)

    def test_what_loads_can_be_shown(self, whole, tmp_path):
        from evenhand.report import render

        with zipfile.ZipFile(io.BytesIO(whole)) as archive:
            held = json.loads(archive.read("model.json"))
        rng, spots = np.random.default_rng(0), list(places(held))
        odd = [None, -1, 0, 10**30, 1e308, float("nan"), "x", [], {}, True, [[1]], ["a"], {"a": 1}]
        loaded = 0
        for i in rng.choice(len(spots), 120, replace=False):
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
                render(workflow.summarise(saved))
                loaded += 1
        assert loaded


def test_models_that_do_not_say_how_values_are_written(saved, tmp_path):
    def forget(state):
        for plan in state["encoder"]["plans"]:
            del plan["written"]

    (tmp_path / "m").write_bytes(rewritten(saved, state(forget)))
    encoder = load_model(tmp_path / "m").model.named_steps["encoder"]
    assert {plan.written for plan in encoder.plans_} == {""}


class TestSaving:
    def test_what_cannot_be_saved(self, tmp_path):
        X, y = people()
        with pytest.raises(ValueError, match="not fitted yet"):
            save_model(FairClassifier(), tmp_path / "m")
        with pytest.raises(TypeError, match="a dict cannot be saved"):
            save_model({}, tmp_path / "m")
        rows = np.column_stack([X["age"], X["age"] % 7]).astype(float)
        model = FairClassifier(sensitive_feature=lambda t: t[:, 0] > 40, tau=0.1).fit(rows, y)
        with pytest.raises(TypeError, match="sensitive_feature is a function"):
            save_model(model, tmp_path / "m")
        assert list(tmp_path.iterdir()) == []

    def test_whole_or_not_at_all(self, tmp_path):
        path = tmp_path / "f"
        path.write_text("old")

        def fail(file):
            file.write(b"half")
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            write_atomically(path, fail)
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]
        write_atomically(path, lambda file: file.write(b"new"))
        assert path.read_text() == "new"
        assert path.stat().st_mode & 0o777 == 0o666 & ~_umask()

    def test_a_place_that_cannot_be_written_is_named_as_given(self, tmp_path):
        path = tmp_path / "nowhere" / "m"
        with pytest.raises(FileNotFoundError) as error:
            write_atomically(path, lambda file: file.write(b"new"))
        assert error.value.filename == str(path)


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


class TestOnnx:
    @pytest.mark.parametrize("name", ["plain", "smaller label", "three labels", "certified"])
    @pytest.mark.filterwarnings("ignore::evenhand.FairnessWarning")
    def test_the_same_predictions(self, name):
        runtime = pytest.importorskip("onnxruntime")
        pytest.importorskip("onnx")
        from evenhand.onnx_export import onnx_feeds, to_onnx

        sensitive, params, labels = CASES[name]
        X, y = people(labels=labels)
        model = fair_pipeline(sensitive, **params).fit(X, y)
        session = runtime.InferenceSession(to_onnx(model), providers=["CPUExecutionProvider"])
        new = X.copy()
        new.loc[::5, "job"] = "never seen"
        new.loc[::7, "job"] = None
        told = session.get_modelmeta().custom_metadata_map
        assert told["read paid"] == "number, decimal comma, in €"
        label, score = session.run(["label", "score"], onnx_feeds(model, new))
        assert (model[-1].classes_[label] == model.predict(new)).all()
        ours = model[-1].decision_function(model[:-1].transform(new))
        np.testing.assert_allclose(score, ours, atol=1e-12)

    def test_what_cannot_be_exported(self):
        from evenhand.onnx_export import to_onnx

        X, y = people()
        with pytest.raises(ValueError, match="a cut for each group"):
            to_onnx(fair_pipeline("sex", group_cuts=True).fit(X, y))
        with pytest.raises(TypeError, match="a dict cannot be exported"):
            to_onnx({})
