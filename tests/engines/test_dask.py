"""Rows in Dask collections, in this process and on a cluster."""

import os
import pickle
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from helpers import MANY, REGIMES, fair, make_rows, raises, warns, with_value
from scipy.sparse import coo_matrix, csc_matrix, csr_matrix
from sklearn.exceptions import DataConversionWarning, NotFittedError

from evenhand import FairClassifier, FairnessWarning
from evenhand.core.errors import Parameter
from evenhand.core.rows import Share


class TestDask:
    @pytest.fixture(autouse=True)
    def dask(self):
        dask = pytest.importorskip("dask")
        pytest.importorskip("distributed")
        with dask.config.set(scheduler="synchronous"):
            yield dask

    def test_names_do_not_depend_on_partitions(self):
        """A category that does not occur is no label; commas of one partition change no name."""
        import dask.dataframe as dd

        X, y, z = make_rows(300)
        frame = pd.DataFrame(X, columns=list("abcdef")).assign(
            y=pd.Categorical.from_codes(y, ["no", "yes", "maybe"]),
            sex=np.where(z, "m", "f"),
            town=np.where(np.arange(300) < 20, "York, UK", "Rome"),
        )
        lazy = dd.from_pandas(frame, npartitions=3)
        model = fair(max_iter=3, tau=0.1, pos_label="yes")
        for table in (frame, lazy):
            model.fit(table[list("abcdef")], table["y"], sensitive_features=table[["sex", "town"]])
            assert model.classes_.tolist() == ["no", "yes"]
            assert model.groups_.tolist() == ["f & Rome", "m & Rome"]
            assert set(model.small_groups_) == {"f & York, UK", "m & York, UK"}

    @pytest.mark.parametrize(
        "settings", [{}, {"group_cuts": True}, {"notion": "equalized_odds"}, {"cut": False}]
    )
    @pytest.mark.parametrize("exact", [True, False])
    def test_arrays(self, settings, exact):
        import dask.array as da

        n = 2000 if exact else MANY
        X, y, z = make_rows(n)
        settings = {"max_iter": 15, "tau": 0.5, **settings}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairnessWarning)
            expected = fair(**settings).fit(X, y, sensitive_features=z)
            lazy = [da.from_array(v, chunks=(n // 3, *v.shape[1:])) for v in (X, y, z)]
            model = fair(**settings).fit(*lazy[:2], sensitive_features=lazy[2])
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-7)
        np.testing.assert_allclose(model.intercept_, expected.intercept_, atol=1e-7)
        np.testing.assert_allclose(model.frontier_.rate, expected.frontier_.rate)
        groups = {"sensitive_features": lazy[2]} if settings.get("group_cuts") else {}
        for method in ("predict", "predict_proba", "decision_function"):
            result = getattr(model, method)(lazy[0], **groups)
            assert isinstance(result, da.Array)
            known = {"sensitive_features": z} if groups else {}
            np.testing.assert_allclose(result.compute(), getattr(model, method)(X, **known))

    def test_frames(self, tmp_path):
        import dask.dataframe as dd

        X, y, z = make_rows(4000)
        table = pd.DataFrame(X, columns=list("abcdef")).assign(y=y, z=np.array(["f", "m"])[z])
        for i in range(3):
            table[i::3].to_parquet(tmp_path / f"{i}.parquet")
        frame = dd.read_parquet(tmp_path)
        inputs = list("abcdef")
        settings = {"max_iter": 20, "tau": 0.5}
        model = fair(**settings).fit(frame[inputs], frame["y"], sensitive_features=frame["z"])
        table = pd.concat([table[i::3] for i in range(3)])
        expected = fair(**settings).fit(table[inputs], table["y"], sensitive_features=table["z"])
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-7)
        assert model.feature_names_in_.tolist() == inputs
        assert (model.predict(frame[inputs]).compute() == expected.predict(table[inputs])).all()

    def test_other_columns_in_memory_and_other_chunks(self):
        import dask.array as da

        X, y, z = make_rows(3000)
        weight = np.random.default_rng(0).random(3000)
        settings = {"max_iter": 20, "tau": 0.5}
        expected = fair(**settings).fit(X, y, sensitive_features=z, sample_weight=weight)
        model = fair(**settings).fit(
            da.from_array(X, chunks=(700, 2)),
            da.from_array(y, chunks=1100),
            sensitive_features=np.array(["f", "m"])[z],
            sample_weight=weight,
        )
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-7)
        assert model.groups_.tolist() == ["f", "m"]

    @pytest.mark.parametrize("selection", ["holdout", "certified", "crossfit"])
    def test_selections_are_those_of_files(self, selection, tmp_path):
        """Rows are drawn by their numbers, whoever has them."""
        import dask.array as da

        X, y, z = make_rows(6000)
        settings = {**REGIMES[selection], "tau": 0.4, "max_iter": 10, "cv": 2, "random_state": 0}
        model = fair(**settings).fit(da.from_array(X, chunks=(1000, -1)), y, sensitive_features=z)
        table = pd.DataFrame(X, columns=list("abcdef")).assign(y=y, z=z)
        table.to_parquet(tmp_path / "t.parquet", row_group_size=2500)
        other = fair(**settings).fit_parquet(tmp_path, label="y", sensitive_features="z")
        np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-7)
        assert model.held_out_.n_rows == other.held_out_.n_rows

    def test_frames_are_paired_by_position(self, tmp_path):
        """Also if labels are in other files, and every file's index begins at 0."""
        import dask.dataframe as dd

        X, y, z = make_rows(4000)
        table = pd.DataFrame(X, columns=list("abcdef"))
        for name in ("x", "y"):
            (tmp_path / name).mkdir()
        for i in range(4):
            part = slice(1000 * i, 1000 * (i + 1))
            table[part].reset_index(drop=True).to_parquet(tmp_path / "x" / f"{i}.parquet")
            other = pd.DataFrame({"y": y[part], "z": z[part]})
            other.to_parquet(tmp_path / "y" / f"{i}.parquet")
        settings = {"max_iter": 10, "tau": 0.5}
        expected = fair(**settings).fit(table, y, sensitive_features=z)
        inputs, others = dd.read_parquet(tmp_path / "x"), dd.read_parquet(tmp_path / "y")
        model = fair(**settings).fit(inputs, others["y"], sensitive_features=others["z"])
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-7)

    def test_rows_of_weight_0_do_not_count(self):
        import dask.array as da

        X, y, z = make_rows(3000, groups=3)
        lazy = da.from_array(X, chunks=(1000, -1))
        weight = np.where(z == 2, 0.0, 1.0 + np.arange(3000) % 2)
        settings = {"max_iter": 10, "tau": 0.5}
        expected = fair(**settings).fit(X, y, sensitive_features=z, sample_weight=weight)
        model = fair(**settings).fit(lazy, y, sensitive_features=z, sample_weight=weight)
        assert model.groups_.tolist() == expected.groups_.tolist() == [0, 1]
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-7)
        np.testing.assert_allclose(model.intercept_, expected.intercept_, atol=1e-7)
        with raises("one_class", classes="0"):
            FairClassifier().fit(lazy, y, sensitive_features=z, sample_weight=1.0 * (y == 0))

    @pytest.mark.parametrize(
        ("n", "settings", "message"),
        [
            (
                3000,
                {**REGIMES["holdout"]},
                "no row with label 1 is left to fit to",
            ),
            (
                20,
                {**REGIMES["holdout"], "holdout": 0.001},
                "no row is left to hold out",
            ),
            (
                60,
                {**REGIMES["crossfit"], "cv": 100},
                "no row is left to hold out",
            ),
        ],
    )
    def test_splits_that_leave_nothing(self, n, settings, message):
        import dask.array as da

        X, y, z = make_rows(n)
        if n == 3000:
            held = Share(int(np.random.RandomState(0).randint(2**31 - 1)), 0, 0.5, True)
            y = np.where(held.of(0, n), y, 0)
        with pytest.raises(ValueError, match=message):
            fair(random_state=0, **settings).fit(
                da.from_array(X, chunks=(10, -1) if n < 100 else (1000, -1)),
                y,
                sensitive_features=z,
            )

    @pytest.mark.parametrize(
        ("change", "code", "data"),
        [
            (
                lambda X, y, z: (X, y[:-1], z),
                "lengths_differ",
                {"argument": Parameter("y"), "n": 2999, "expected": 3000},
            ),
            (
                lambda X, y, z: (X, y, z[:-1]),
                "lengths_differ",
                {"argument": Parameter("sensitive_features"), "n": 2999},
            ),
            (
                lambda X, y, z: (X, y, ["f", "m", np.nan] * 1000),
                "missing_values",
                {"argument": Parameter("sensitive_features")},
            ),
            (
                lambda X, y, z: (X, np.c_[y, y], z),
                "not_one_dimension",
                {"argument": Parameter("y"), "n": 2},
            ),
            (lambda X, y, z: (X * np.nan, y, z), "inputs_not_finite", {"column": 0}),
            (
                lambda X, y, z: (X * 1e100, y, z),
                "inputs_too_large",
                {"column": 0, "dtype": "float64"},
            ),
            (lambda X, y, z: (X * 1j, y, z), "not_a_number_in_column", {"column": 0}),
            (lambda X, y, z: (X[:, 0], y, z), "not_two_dimensions", {"n": 1}),
            (lambda X, y, z: (X[:, :, None], y, z), "not_two_dimensions", {"n": 3}),
            (lambda X, y, z: (X[:, :0], y, z), "empty_table", {"what": "columns"}),
            (lambda X, y, z: (X[:0], y[:0], z[:0]), "empty_table", {"what": "rows"}),
            (lambda X, y, z: (X, y * 0, z), "one_class", {"classes": "0"}),
            (
                lambda X, y, z: (X, np.array([1, "1", 0] * 1000, object), z),
                "mixed_types",
                {"argument": Parameter("y"), "types": "int, str"},
            ),
        ],
    )
    def test_bad_input(self, change, code, data):
        import dask.array as da

        X, y, z = make_rows(3000)
        X, y, z = change(da.from_array(X, chunks=(1000, -1)), y, z)
        with raises(code, **data):
            FairClassifier().fit(X, y, sensitive_features=z)

    @pytest.mark.parametrize(
        ("settings", "change", "message"),
        [
            ({}, lambda X, y, z: (X, y, None), "the groups are missing"),
            ({}, lambda X, y, z: (X, None, z), "requires y to be passed"),
            ({"bins": 3}, lambda X, y, z: (X, y, z), "bins=3 is for tables in memory"),
            ({"device": "cpu"}, lambda X, y, z: (X, y, z), "device='cpu' is for tables in memory"),
            ({"engine": "numpy"}, lambda X, y, z: (X, y, z), "not for a Dask collection"),
        ],
    )
    def test_settings_and_arguments_that_do_not_fit(self, settings, change, message):
        import dask.array as da

        X, y, z = make_rows(3000)
        X, y, z = change(da.from_array(X, chunks=(1000, -1)), y, z)
        with pytest.raises(ValueError, match=message):
            fair(**settings).fit(X, y, sensitive_features=z)

    @pytest.mark.parametrize(
        ("weight", "code", "data"),
        [
            (np.ones((3000, 1)), "not_one_dimension", {"n": 2}),
            (np.ones(2999), "lengths_differ", {"n": 2999, "expected": 3000}),
            (np.full(3000, "x"), "not_a_number", {"value": "x"}),
            (np.full(3000, -1.0), "bad_weights", {}),
            (np.zeros(3000), "weights_all_zero", {}),
        ],
    )
    def test_bad_weights(self, weight, code, data):
        import dask.array as da

        X, y, z = make_rows(3000)
        X = da.from_array(X, chunks=(1000, -1))
        for given in (weight, da.from_array(weight, chunks=1000)):
            with raises(code, argument=Parameter("sample_weight"), **data):
                FairClassifier().fit(X, y, sensitive_features=z, sample_weight=given)

    @pytest.mark.parametrize(
        ("change", "code", "data"),
        [
            (lambda t: t.assign(b=np.nan), "inputs_not_finite", {"column": "b"}),
            (
                lambda t: t.assign(b=pd.array([1, pd.NA] * 250, "Int64")),
                "inputs_not_finite",
                {"column": "b"},
            ),
            (
                lambda t: t.assign(b="x"),
                "not_a_number_in_column",
                {"column": "b", "value": "x"},
            ),
            (
                lambda t: t.assign(b=pd.Timestamp("2020")),
                "not_a_number_in_column",
                {"column": "b", "value": "2020-01-01 00:00:00"},
            ),
            (lambda t: t["a"], "not_two_dimensions", {"n": 1}),
        ],
    )
    def test_bad_frames(self, change, code, data):
        import dask.dataframe as dd

        X, y, z = make_rows(500)
        table = change(pd.DataFrame(X, columns=list("abcdef")))
        with raises(code, **data):
            FairClassifier().fit(
                dd.from_pandas(table, npartitions=2, sort=False), y, sensitive_features=z
            )

    def test_names_of_mixed_types(self):
        import dask.dataframe as dd

        X, y, z = make_rows(500)
        table = dd.from_pandas(pd.DataFrame(X, columns=[0, *"bcdef"]), npartitions=2)
        with pytest.raises(TypeError, match="all input features have string names"):
            FairClassifier().fit(table, y, sensitive_features=z)

    def test_columns_called_by_numbers(self):
        import dask.dataframe as dd

        X, y, z = make_rows(500)
        table = pd.DataFrame(X, columns=list("abcdef"))
        model = fair(max_iter=5, tau=0.1)
        for names, known in ((list("abcdef"), True), (range(6), False)):
            frame = dd.from_pandas(table.set_axis(names, axis=1), npartitions=2)
            model.fit(frame, y, sensitive_features=z)
            assert hasattr(model, "feature_names_in_") == known

    def test_what_is_missing_in_rows_that_do_not_count(self):
        import dask.array as da

        X, y, z = make_rows(500)
        weight = np.arange(500) % 2
        lazy = da.from_array(with_value(X, np.nan), chunks=(250, -1))
        with raises("inputs_not_finite", column=1):
            FairClassifier().fit(lazy, y, sensitive_features=z, sample_weight=weight)

    @pytest.mark.parametrize("make", [coo_matrix, csc_matrix, csr_matrix])
    def test_sparse_blocks(self, make):
        import dask.array as da

        X, y, z = make_rows(500)
        weight = np.arange(500) % 2
        settings = {"max_iter": 5, "tau": 0.1}
        expected = fair(**settings).fit(X, y, sensitive_features=z, sample_weight=weight)
        blocks = da.from_array(X, chunks=(250, -1)).map_blocks(make, dtype=float)
        model = fair(**settings)
        model.fit(blocks, y, sensitive_features=z, sample_weight=weight)
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-7)
        assert model.score(blocks, y) == expected.score(X, y)

    def test_a_column_of_labels_and_one_weight_for_all(self):
        import dask.array as da
        import dask.dataframe as dd

        X, y, z = make_rows(500)
        lazy = da.from_array(X, chunks=(250, -1))
        labels = dd.from_pandas(pd.DataFrame({"y": y}), npartitions=2)
        settings = {"max_iter": 5, "tau": 0.1}
        expected = fair(**settings).fit(X, y, sensitive_features=z, sample_weight=2)
        for given in (y[:, None], da.from_array(y[:, None], chunks=(250, 1)), labels):
            with warns("column_vector") as caught:
                model = fair(**settings).fit(lazy, given, sensitive_features=z, sample_weight=2)
            assert issubclass(caught[0].category, DataConversionWarning)  # as scikit-learn's is
            np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-7)

    def test_score(self, monkeypatch):
        import dask.array as da
        import dask.dataframe as dd

        from evenhand.engines import dask as dask_rows

        X, y, z = make_rows(600)
        weight = np.random.default_rng(0).random(600)
        settings = {"max_iter": 5, "tau": 0.1, "group_cuts": True}
        model = fair(**settings).fit(X, y, sensitive_features=z)
        expected = model.score(X, y, weight, sensitive_features=z)
        frame = dd.from_pandas(pd.DataFrame(X).assign(y=y, z=z, w=weight), npartitions=3)
        frame = dd.concat([frame, frame[frame["y"] > 1]])  # and partitions without rows
        arrays = [da.from_array(v, chunks=(250, *v.shape[1:])) for v in (X, y, weight, z)]
        frames = [frame[list(range(6))], frame["y"], frame["w"], frame["z"]]
        compute, sizes = dask_rows.compute, []

        def spied(*args, **kwargs):
            found = compute(*args, **kwargs)
            sizes.extend(map(np.size, found))
            return found

        monkeypatch.setattr(dask_rows, "compute", spied)
        for table in (arrays, frames, [arrays[0], y, weight, z]):
            found = model.score(*table[:3], sensitive_features=table[3])
            assert found == pytest.approx(expected)
        assert max(sizes) == 2
        assert len(model.predict(frames[0], sensitive_features=frames[3]).compute()) == 600
        with raises("lengths_differ", argument=Parameter("y"), n=599, expected=600):
            model.score(arrays[0], y[:-1], sensitive_features=z)
        with raises("weights_all_zero"):
            model.score(arrays[0], y, 0 * weight, sensitive_features=z)

    def test_groups_that_predictions_need(self):
        import dask.array as da
        import dask.dataframe as dd

        X, y, z = make_rows(600)
        lazy = da.from_array(X, chunks=(200, -1))
        model = fair(max_iter=5, tau=0.1, group_cuts=True)
        with pytest.raises(NotFittedError):
            model.predict(lazy)
        model.fit(X, y, sensitive_features=z)
        for method in ("predict", "predict_proba", "decision_function"):
            with pytest.raises(ValueError, match="needs the group of each row"):
                getattr(model, method)(lazy)
        with pytest.raises(ValueError, match="needs the group of each row"):
            model.score(lazy, y)
        other = dd.from_pandas(pd.Series(z), npartitions=2)
        argument = Parameter("sensitive_features")
        with raises("partitions_differ", argument=argument, n=2, expected=3):
            model.predict(lazy, sensitive_features=other)
        with raises("lengths_differ", argument=argument, n=599, expected=600):
            model.predict(lazy, sensitive_features=z[1:])

    def test_averages(self):
        """What is drawn depends on the rows, not on how they are parted."""
        import dask.array as da

        X, y, z = make_rows(3000)
        model = fair(max_iter=20, tau=0.9, random_state=0)
        mixed = model.fit(X, y, sensitive_features=z).averaged()
        assert len(mixed.weights_) > 1
        lazy = [da.from_array(X, chunks=(n, -1)) for n in (1000, 700)]
        for method in ("predict", "predict_proba"):
            a, b = (getattr(mixed, method)(v) for v in lazy)
            assert isinstance(a, da.Array)
            assert a.shape == getattr(mixed, method)(X).shape
            np.testing.assert_array_equal(a.compute(), b.compute())
        np.testing.assert_array_equal(a.compute(), mixed.predict_proba(X))
        share = mixed.predict_proba(X)[:, 1]
        found = mixed.predict(lazy[0]).compute()
        np.testing.assert_array_equal(found[share == 0], 0)
        np.testing.assert_array_equal(found[share == 1], 1)
        assert found.mean() == pytest.approx(share.mean(), abs=0.02)

    def test_arrays_in_memory_are_refused(self):
        X, y, z = make_rows(300)
        with pytest.raises(ValueError, match="X is neither"):
            FairClassifier(engine="dask").fit(X, y, sensitive_features=z)


@pytest.mark.slow
class TestCluster:
    """A real scheduler with two worker processes on loopback."""

    @pytest.fixture(scope="class")
    def client(self):
        pytest.importorskip("dask")
        distributed = pytest.importorskip("distributed")
        cluster = distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        )
        with cluster, distributed.Client(cluster) as client:
            yield client

    @pytest.fixture
    def table(self, client):
        import dask.array as da

        X, y, z = make_rows(80_000)
        return [da.from_array(v, chunks=(10_000, *v.shape[1:])) for v in (X, y, z)], (X, y, z)

    def test_same_model_and_nothing_long_comes_home(self, client, table, monkeypatch):
        from evenhand.engines import dask as dask_rows

        (X, y, z), arrays = table
        sizes = []
        compute = dask_rows.compute

        def spied(*args, **kwargs):
            found = compute(*args, **kwargs)
            sizes.append(len(pickle.dumps(found)))
            return found

        monkeypatch.setattr(dask_rows, "compute", spied)
        model = fair(max_iter=10, tau=0.5).fit(X, y, sensitive_features=z)
        expected = fair(max_iter=10, tau=0.5).fit(*arrays[:2], sensitive_features=arrays[2])
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-7)
        assert np.median(sizes) < 3000  # moments
        # The largest are histograms and the sample's scores, whatever the number of rows.
        assert max(sizes) < 8 * 16 * 8192 * 1.2

    def test_a_killed_worker_costs_time_not_the_result(self, client, table):
        import signal
        from threading import Thread

        (X, y, z), arrays = table
        expected = fair(max_iter=60, tau=0.5).fit(*arrays[:2], sensitive_features=arrays[2])
        pid = next(iter(client.run(os.getpid).values()))
        killed = []

        def kill():
            time.sleep(1.0)
            os.kill(pid, signal.SIGKILL)
            killed.append(time.perf_counter())

        thread = Thread(target=kill)
        thread.start()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = fair(max_iter=60, tau=0.5).fit(X, y, sensitive_features=z)
        done = time.perf_counter()
        thread.join()
        assert killed[0] < done
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-7)
