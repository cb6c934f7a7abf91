"""Errors and warnings: their sentences stand in one file, name no options, and are made of data."""

import ast
import pickle
from functools import cache

import pytest
from helpers import ROOT, raises

from evenhand.core.errors import InputError, Message, Parameter

# The command names its options, and so does the laboratory, which only the command runs.
NAME_OPTIONS = {"cli", "paper"}


@pytest.fixture
def tool(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    import messages

    return messages


@cache
def source(read):
    """The syntax trees of the package, made once for all tests."""
    return read()


def package(place):
    return place.partition("/")[0].partition(".")[0]


def test_codes_sentences_and_data_belong_together(tool):
    assert tool.find_faults(source(tool.read_source), tool.read_sentences()) == []


def test_no_option_outside_the_command(tool):
    trees, sentences = source(tool.read_source), tool.read_sentences()
    named = tool.options_named(trees)
    assert [place for place in named if package(place) not in NAME_OPTIONS] == []
    library = {path: tree for path, tree in trees.items() if package(path) not in NAME_OPTIONS}
    texts = {
        node.value
        for tree in library.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert [code for code in texts & set(sentences) if tool.OPTION.search(sentences[code])] == []


def test_errors_carry_data(tool):
    assert list(tool.plain_errors(source(tool.read_source))) == []


@pytest.mark.parametrize(
    ("source", "faults"),
    [
        ("raise InputError('few', n=1)", []),
        ("class Bad(InputError): pass\nraise Bad('few', n=1)", []),
        ("raise InputError(f'few{n}', n=1)", ["the code None has no sentence"]),
        ("raise InputError('many', n=1)", ["the code 'many' has no sentence"]),
        ("raise errors.InputError('few', m=1)", ["the sentence needs ['n']"]),
        ("raise InputError('few', **data)", []),
        (
            "def refuse(wrong, code, **data):\n    raise InputError(code, **data)\n"
            "refuse(True, 'few')",
            ["the sentence needs ['n']"],
        ),
    ],
)
def test_what_breaks_the_rules_is_seen(tool, source, faults):
    trees = {"a.py": ast.parse("InputWarning('few', n=2)"), "b.py": ast.parse(source)}
    found = tool.find_faults(trees, {"few": "{n} rows"})
    assert [fault.partition(": ")[2] for fault in found] == faults


def test_sentences_that_nothing_says_are_seen(tool):
    found = tool.find_faults({}, {"few": "{n} rows", "Many": ""})
    assert len(found) == 3


def test_plain_errors_and_options_are_seen(tool):
    source = '"""Docs may name --tau."""\nwarn("x", UserWarning)\nraise ValueError("give --tau")'
    trees = {"b.py": ast.parse(source)}
    assert sorted(tool.plain_errors(trees)) == ["b.py:2", "b.py:3"]
    assert list(tool.options_named(trees)) == ["b.py:3: --t…"]


class TestMessage:
    def test_the_reader_spells_parameters(self):
        cause = InputError("too_few_to_test", n=3, test_size=Parameter("test_size", 0))
        error = InputError("unsavable_model", reason=cause)
        assert "test_size=0" in str(error)
        assert "--test_size" in error.sentence(lambda p: f"--{p.name}")

    def test_survives_a_worker(self):
        error = pickle.loads(pickle.dumps(InputError("empty_label", column="a{b}")))
        assert (type(error), error.code) == (InputError, "empty_label")
        assert "'a{b}'" in str(error)

    def test_helper_compares_code_and_data(self):
        with raises("empty_label", column="a") as caught:
            raise InputError("empty_label", column="a")
        assert isinstance(caught.value, Message)
        for code, column in (("empty_label", "b"), ("one_label", "a")):
            with pytest.raises(AssertionError), raises(code, column=column):
                raise InputError("empty_label", column="a")
