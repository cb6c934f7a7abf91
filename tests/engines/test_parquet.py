"""Rows in Parquet files."""

import numpy as np
import pandas as pd
import pytest
from helpers import REGIMES, assert_message, fair, make_rows, raises

from evenhand import FairClassifier
from evenhand.core.errors import Parameter


class TestFiles:
    @pytest.fixture
    def folder(self, tmp_path):
        pytest.importorskip("pyarrow")
        X, y, z = make_rows(9000, dtype=np.float32)
        table = pd.DataFrame(X, columns=list("abcdef"))
        table["label"] = np.where(y == 1, "true", "false")
        table["group"] = np.where(z == 1, "g1", "g0")
        table["weight"] = 1.0 + (np.arange(9000) % 3)
        table[:5000].to_parquet(tmp_path / "1.parquet", row_group_size=1700)
        table[5000:].to_parquet(tmp_path / "2.parquet")
        return tmp_path, table

    @pytest.mark.parametrize("weight", [None, "weight"])
    def test_same_as_in_memory(self, folder, weight):
        path, table = folder
        settings = {"max_iter": 40, "tau": 0.7}
        inputs = list("abcdef")
        expected = fair(**settings).fit(
            table[inputs],
            table["label"],
            sensitive_features=table["group"],
            sample_weight=None if weight is None else table[weight],
        )
        for where in (path, str(path / "*.parquet"), [path / "1.parquet", path / "2.parquet"]):
            model = fair(**settings).fit_parquet(
                where,
                label="label",
                sensitive_features="group",
                columns=inputs,
                sample_weight=weight,
            )
            np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-4)
            assert model.rate_ == pytest.approx(expected.rate_, abs=2e-3)
        assert model.feature_names_in_.tolist() == inputs
        assert (model.predict(table[inputs]) == expected.predict(table[inputs])).mean() > 0.999

    def test_inputs_are_read_once_a_pass(self, folder, monkeypatch):
        from evenhand.engines.parquet import RowGroup

        path, _ = folder
        reads = []
        read = RowGroup.inputs
        monkeypatch.setattr(RowGroup, "inputs", lambda self: reads.append(1) or read(self))
        model = fair(max_iter=10, tau=0.1).fit_parquet(
            path, label="label", sensitive_features="group", columns=list("abcdef")
        )
        passes = model.trajectory_.to_frame()["evaluations"].iloc[-1]
        assert len(reads) / 4 < passes + 60  # and some to prepare, and to sweep

    @pytest.mark.parametrize("selection", ["holdout", "certified", "crossfit"])
    def test_selections(self, folder, selection):
        path, table = folder
        model = fair(**REGIMES[selection], tau=0.4, max_iter=10, cv=2, random_state=0)
        model.fit_parquet(path, label="label", sensitive_features="group", columns=list("abc"))
        held = table.shape[0] if selection == "crossfit" else table.shape[0] / 2
        assert model.held_out_.n_rows == pytest.approx(held, rel=0.1)

    @pytest.mark.parametrize(
        ("change", "code", "data"),
        [
            ({"label": "lable"}, "file_lacks_column", {"file": "1.parquet", "column": "lable"}),
            (
                {"columns": None, "label": "a"},
                "inputs_not_numbers",
                {"file": "1.parquet", "column": "label"},
            ),
            ({"columns": ["a", "label"]}, "column_not_an_input", {"column": "label"}),
            ({"columns": ["a", "a"]}, "column_named_twice", {"column": "a"}),
            ({"columns": []}, "no_inputs_left", {}),
            ({"columns": "ab"}, "columns_not_listed", {"columns": Parameter("columns", "ab")}),
            ({"sensitive_features": []}, "no_sensitive_column", {}),
            ({"sensitive_features": "label"}, "label_is_sensitive", {"column": "label"}),
        ],
    )
    def test_bad_input(self, folder, change, code, data):
        options = {"label": "label", "sensitive_features": "group", "columns": ["a", "b"]} | change
        with raises(code, **data):
            FairClassifier().fit_parquet(folder[0], **options)

    def test_paths_without_a_file(self):
        with pytest.raises(FileNotFoundError) as error:
            FairClassifier().fit_parquet("nowhere/*.parquet", label="a", sensitive_features="b")
        assert_message(error.value, "no_parquet_file", {"path": "nowhere/*.parquet"})

    def test_files_that_are_none(self, folder):
        import pyarrow.parquet as pq

        path, table = folder
        options = {"label": "label", "sensitive_features": "group", "columns": ["a"]}
        (path / "2.parquet").write_bytes(b"PAR1")
        with raises("damaged_parquet_file", file="2.parquet"):
            FairClassifier().fit_parquet(path, **options)
        table[:0].to_parquet(path / "1.parquet")
        with raises("empty_table", what="rows"):
            FairClassifier().fit_parquet(path / "1.parquet", **options)
        schema = pq.read_schema(path / "1.parquet")
        pq.ParquetWriter(path / "3.parquet", schema).close()  # without a row group
        with raises("file_without_rows", file="3.parquet"):
            FairClassifier().fit_parquet(path / "3.parquet", **options)

    def test_an_index_is_no_input(self, folder):
        path, table = folder
        table = table.drop(columns="weight")
        table["label"] = table["label"] == "true"
        table[table["a"] > 0].to_parquet(path / "1.parquet")
        model = fair(max_iter=5, tau=0.1).fit_parquet(
            path / "1.parquet", label="label", sensitive_features="group"
        )
        assert model.feature_names_in_.tolist() == list("abcdef")

    def test_what_needs_the_table_is_refused(self, folder):
        for settings in (
            {"bins": 3},
            {"extra_column": "noise"},
            {"device": "cpu"},
            {"engine": "torch"},
            {"engine": "dask"},
        ):
            with pytest.raises(ValueError, match=r"in memory|not for a table in files"):
                fair(**settings).fit_parquet(
                    folder[0], label="label", sensitive_features="group", columns=["a"]
                )

    def test_missing_numbers(self, folder):
        path, table = folder
        table.loc[8000, "c"] = np.nan
        table[5000:].to_parquet(path / "2.parquet")
        with raises("inputs_not_finite", column="c"):
            FairClassifier().fit_parquet(
                path, label="label", sensitive_features="group", columns=list("abc")
            )

    @pytest.mark.parametrize(
        ("change", "code", "data"),
        [
            (
                lambda t: t.assign(b="x"),
                "inputs_not_numbers",
                {"column": "b", "file": "2.parquet"},
            ),
            (
                lambda t: t.assign(weight="1"),
                "weights_not_numbers",
                {"column": "weight", "file": "2.parquet"},
            ),
            (
                lambda t: t.assign(label=1),
                "files_differ_in_type",
                {"column": "label", "first_type": "text", "type": "numbers", "file": "2.parquet"},
            ),
            (
                lambda t: t.assign(group=True),
                "files_differ_in_type",
                {"column": "group", "first_type": "text", "type": "booleans", "file": "2.parquet"},
            ),
            (
                lambda t: t.drop(columns="b"),
                "files_differ_in_column",
                {"column": "b", "file": "2.parquet", "other": "1.parquet"},
            ),
            (lambda t: t.assign(weight=-1.0), "bad_weights", {}),
        ],
    )
    def test_files_that_differ(self, folder, change, code, data):
        path, table = folder
        change(table[5000:]).to_parquet(path / "2.parquet")
        with raises(code, **data):
            FairClassifier().fit_parquet(
                path,
                label="label",
                sensitive_features="group",
                columns=["a", "b"],
                sample_weight="weight",
            )

    def test_columns_of_one_name(self, folder):
        import pyarrow as pa
        import pyarrow.parquet as pq

        path, table = folder
        table = pa.Table.from_pandas(table[5000:], preserve_index=False)
        pq.write_table(table.append_column("a", table["a"]), path / "2.parquet")
        options = {"label": "label", "sensitive_features": "group"}
        with raises("two_columns_alike", file="2.parquet", column="a"):
            FairClassifier().fit_parquet(path, columns=["a", "b"], **options)

    def test_files_without_rows(self, folder):
        path, table = folder
        table[:0].assign(label=None).to_parquet(path / "0.parquet")
        model = fair(max_iter=5, tau=0.1).fit_parquet(
            path, label="label", sensitive_features="group", columns=["a", "b"]
        )
        assert model.classes_.tolist() == ["false", "true"]

    def test_folders_that_name_values(self, folder):
        path, table = folder
        table.to_parquet(path / "parted", partition_cols=["group"])
        with pytest.raises(FileNotFoundError) as error:
            FairClassifier().fit_parquet(
                path / "parted", label="label", sensitive_features="group", columns=["a"]
            )
        assert_message(error.value, "partitioned_parquet", {"folder": "group=g0"})

    def test_memory_maps(self, tmp_path):
        X, y, z = make_rows(9000, dtype=np.float32)
        X.tofile(tmp_path / "x.bin")
        mapped = np.memmap(tmp_path / "x.bin", dtype=np.float32, mode="r", shape=X.shape)
        a, b = (fair(max_iter=20, tau=0.5).fit(v, y, sensitive_features=z) for v in (X, mapped))
        np.testing.assert_array_equal(a.coef_, b.coef_)
