"""Columns are read once, and what is made of their values goes with the rows that are taken."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from evenhand.tables import numbers
from evenhand.tables.columns import Column, MissingWords, as_table
from evenhand.tables.inputs import Categories, InputColumns
from evenhand.tables.numbers import read_numbers
from evenhand.workflow.train import train


def values():
    return ["b", " a", "a", None, "?", "b", "3.0", "a "]


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_levels_are_in_the_order_of_the_rows(library):
    column = as_table(library({"c": values()}))["c"]
    assert column.levels.tolist() == ["b", " a", "a", "?", "3.0", "a "]
    texts = column.as_text()
    assert texts.levels.tolist() == ["b", "a", "3.0"]
    assert texts.codes.tolist() == [0, 1, 1, -1, -1, 0, 2, 1]
    assert texts.counts().tolist() == [2, 3, 1]
    assert texts.text_values().tolist() == ["b", "a", "a", None, None, "b", "3.0", "a"]
    kept = column.as_text(MissingWords(kept=frozenset({"c"})))
    assert kept.levels.tolist() == ["b", "a", "?", "3.0"]


def test_rows_that_are_taken_have_the_levels_of_a_table_of_these_rows():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"c": rng.choice([*values(), "1,000"], 200), "x": rng.integers(0, 9, 200)})
    rows, fewer = rng.random(200) < 0.2, rng.random(200) < 0.5
    taken = as_table(frame).take(rows).take(fewer[rows])
    alone = as_table(frame[rows & fewer])
    assert len(taken) == len(alone)
    for name in frame:
        for one, other in (
            (taken[name], alone[name]),
            (taken[name].as_text(), alone[name].as_text()),
        ):
            assert one.levels.tolist() == other.levels.tolist()
            np.testing.assert_array_equal(one.codes, other.codes)
        np.testing.assert_array_equal(
            read_numbers(taken[name], tolerant=True), read_numbers(alone[name], tolerant=True)
        )
    pd.testing.assert_frame_equal(taken.frame.to_native(), frame[rows & fewer])


def test_a_training_reads_each_column_once(monkeypatch):
    read, parse = Column.read, numbers._parse_all
    names, parsed = [], []
    monkeypatch.setattr(Column, "read", lambda s: names.append(s.name) or read(s))
    monkeypatch.setattr(numbers, "_parse_all", lambda t, d: parsed.append(len(t)) or parse(t, d))
    rng = np.random.default_rng(0)
    x = rng.standard_normal(400).round(4)
    frame = pd.DataFrame(
        {
            "x": x.astype(str),
            "job": rng.choice(["a", "b", "c"], 400),
            "sex": rng.choice(["f", "m"], 400),
            "y": np.where(x + rng.logistic(size=400) > 0, "1", "0"),
        }
    )
    train(frame, label="y", sensitive=["sex"], tau=0.1)
    assert sorted(names) == ["job", "sex", "x", "y"]
    assert parsed.count(len(set(frame["x"]))) == 1


def test_sparse_inputs_are_the_dense_ones_without_a_zero():
    rng = np.random.default_rng(0)
    filled = [np.where(rng.random(50) < 0.2, 0.0, rng.standard_normal(50)), np.zeros(50)]
    places = rng.integers(-1, 3, 50).astype(np.int32)
    columns = InputColumns(filled, [Categories(places, "abc"), Categories(places, "abcd")], 50)
    sparse = columns.sparse()
    np.testing.assert_array_equal(sparse.toarray(), columns.dense())
    assert sparse.has_canonical_format
    assert (sparse.data != 0).all()
    assert sparse.shape == (50, 9)


def test_a_table_lets_go_of_its_frame_only_when_all_columns_are_read():
    table = as_table(pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}))
    table["a"].levels  # noqa: B018
    table.release()
    assert table["b"].levels.tolist() == ["x", "y"]
    table.release()
    assert table.take(np.array([True, False]))["b"].levels.tolist() == ["x"]
    assert table.frame is None


@pytest.mark.parametrize(
    ("style", "good"),
    [
        *[("", True), ("decimal comma", True), ("in $", True), ("decimal comma, in €", True)],
        *[("decimal comma, ", False), (", in $", False), ("decimal commain $", False)],
        *[("in", False), ("in x", False), ("day first", False)],
    ],
)
def test_number_styles(style, good):
    assert numbers.is_number_style(style) == good
