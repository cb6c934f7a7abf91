"""Sentences of errors and warnings: listed in one file, without options, made of data."""

import ast
import pickle

import pytest
from helpers import ROOT, raises

from evenhand.core.errors import InputError, InputWarning, Message, Parameter

# Packages whose errors and warnings all carry data.
CARRY_DATA = {"_atomic", "_extras", "_sklearn", "cli", "models", "persist"}
# Packages whose texts name no option: all but the command, and the laboratory that it runs.
NAME_NO_OPTION = {"_atomic", "_extras", "_sklearn", "models", "persist"}
# Errors that carry none: of whom nothing is wrong that a user could mend.
PLAIN = set()


@pytest.fixture
def tool(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    import messages

    return messages


def package(place):
    return place.partition("/")[0].partition(".")[0]


def test_every_sentence_is_in_the_file(tool):
    templates, faults = tool.collect(tool.read_source())
    assert faults == []
    written = tool.SNAPSHOT.read_text(encoding="utf-8")
    assert written == tool.snapshot(templates), "rewrite it: python tools/messages.py --write"


def test_no_option_outside_the_command(tool):
    named = tool.options_named(tool.read_source())
    assert [place for place in named if package(place) in NAME_NO_OPTION] == []


def test_errors_carry_data(tool):
    plain = {place.partition(":")[0] for place in tool.plain_errors(tool.read_source())}
    assert {path for path in plain if package(path) in CARRY_DATA} - PLAIN == set()


@pytest.mark.parametrize(
    ("source", "faults"),
    [
        ("raise InputError('few', '{n} rows', n=1)", []),
        ("class Bad(InputError): pass\nraise Bad('few', T, n=1)", []),
        ("raise InputError('few', f'{n} rows', n=1)", ["code and template are not literal texts"]),
        ("raise InputError('few', 'no rows')", ["the code 'few' has another template elsewhere"]),
        ("raise InputError('Few', '{n}', n=1)", ["the code 'Few' is not in snake_case"]),
        ("raise errors.InputError('many', '{n} of {m}', m=1)", ["the template needs ['n']"]),
        (
            "def refuse(wrong, code, template, **data):\n    raise InputError(code, template)\n"
            "refuse(True, 'x', 'a' + b)",
            ["code and template are not literal texts"],
        ),
    ],
)
def test_what_breaks_the_rules_is_seen(tool, source, faults):
    first = "T = '{n} rows'\nraise InputWarning('few', T, n=2)"
    trees = {"a.py": ast.parse(first), "b.py": ast.parse(source)}
    assert [fault.partition(": ")[2] for fault in tool.collect(trees)[1]] == faults


def test_plain_errors_and_options_are_seen(tool):
    source = '"""Docs may name --tau."""\nwarn("x", UserWarning)\nraise ValueError("give --tau")'
    trees = {"b.py": ast.parse(source)}
    assert sorted(tool.plain_errors(trees)) == ["b.py:2", "b.py:3"]
    assert list(tool.options_named(trees)) == ["b.py:3: --t…"]


class TestMessage:
    def test_the_reader_spells_parameters(self):
        reason = InputWarning("few", "{n} rows", n=Parameter("n", 3))
        error = InputError("bad", "{tau}: {reason}", tau=Parameter("tau", 0.8), reason=reason)
        assert str(error) == "tau=0.8: n=3 rows"
        assert error.sentence(lambda p: f"--{p.name}") == "--tau: --n rows"

    def test_survives_a_worker(self):
        error = pickle.loads(pickle.dumps(InputError("bad", "{column!r}", column="a{b}")))
        assert (type(error), error.code, str(error)) == (InputError, "bad", "'a{b}'")

    def test_helper_compares_code_and_data(self):
        with raises("bad", column="a") as caught:
            raise InputError("bad", "{column}", column="a")
        assert isinstance(caught.value, Message)
        for code, column in (("bad", "b"), ("good", "a")):
            with pytest.raises(AssertionError), raises(code, column=column):
                raise InputError("bad", "{column}", column="a")
