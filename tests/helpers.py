"""Problems, ways to choose a point, and readers of screens and pages that the tests share."""

import json
import re
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from typer.main import get_command
from typer.testing import CliRunner

from evenhand import FairClassifier, Method
from evenhand.cli.app import app
from evenhand.core.errors import InputError, InputWarning
from evenhand.core.notions import NOTIONS
from evenhand.engines.kernels import LIMITS

ROOT = Path(__file__).parents[1]
COMMAND = get_command(app)

PAPER_NOTIONS = ("statistical_parity", "false_discovery")
NOTION_NAMES = tuple(NOTIONS)
READING_NAMES = ("corrected", "printed")


def make_problem(n=400, n_features=5, seed=0, dtype=np.float64):
    """A biased problem: the first two inputs lean on the group, and so do labels."""
    rng = np.random.default_rng(seed)
    z = (rng.random(n) < 0.6).astype(int)
    X = rng.standard_normal((n, n_features))
    X[:, 0] += 1.0 * z
    X[:, 1] += 0.5 * z
    score = X @ np.linspace(1.2, -0.4, n_features) - 0.8 + 0.5 * z
    y = (rng.random(n) < 1 / (1 + np.exp(-score))).astype(int)
    return X.astype(dtype), y, z


def fair(*args, **params):
    """A FairClassifier; parameters of the method may be among its own."""
    return FairClassifier(*args, **with_method(params))


def with_method(params):
    """Parameters of a classifier, those of its method in their record."""
    own = {name: value for name, value in params.items() if name in Method().get_params()}
    rest = {name: value for name, value in params.items() if name not in own}
    return rest | ({"method": Method(**own)} if own else {})


def by_last_column(X):
    """Groups by the sign of the last input, wherever the rows go."""
    return X[:, -1] > 0


# Rows of a table so large that its cuts are those of a histogram.
MANY = LIMITS.exact_rows + 1


def make_rows(n=3001, groups=2, labels=2, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    z = rng.integers(0, groups, n)
    X = rng.standard_normal((n, 6)).astype(dtype)
    X[:, 0] += 0.8 * z
    score = X @ np.linspace(1, -1, 6) + rng.logistic(size=n)
    y = np.digitize(score, np.quantile(score, np.arange(1, labels) / labels))
    return X, y, z


def with_value(X, value, row=400, column=1):
    X = np.array(X)
    X[row, column] = value
    return X


def assert_same_moments(found, expected, tolerance):
    for name, a, b in zip(found._fields, found, expected, strict=True):
        scale = max(np.abs(b).max(), 1e-2)
        np.testing.assert_allclose(
            np.asarray(a) / scale, np.asarray(b) / scale, atol=tolerance, err_msg=name
        )


def as_layout(X, layout):
    return csr_matrix(X) if layout == "csr" else X


# How a point may be chosen: by its rate on some rows, by a confidence, or by a certificate.
REGIMES = {
    "train": {"confidence": None},
    "confident": {"confidence": 0.9},
    "holdout": {"confidence": None, "selection": "holdout"},
    "confident holdout": {"confidence": 0.9, "selection": "holdout"},
    "crossfit": {"confidence": None, "selection": "crossfit"},
    "certified": {"confidence": "certified"},
}


def invoke(args, stdin=None):
    """Run the command, which is made once: to make it takes longer than many of its runs."""
    with patch("typer.testing._get_command", lambda app: COMMAND, create=True):
        return CliRunner().invoke(app, [str(arg) for arg in args], input=stdin)


def run(*args, stdin=None):
    result = invoke(args, stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def words(text):
    """What a screen says, however it is wrapped."""
    return re.sub(r"\s+", " ", text)


@contextmanager
def raises(code, **data):
    """Expect an InputError of this code about these things; its ``value`` is the error."""
    with pytest.raises(InputError) as caught:
        yield caught
    assert_message(caught.value, code, data)


@contextmanager
def warns(code, **data):
    """Expect an InputWarning of this code about these things, among whatever else is warned of."""
    with pytest.warns(InputWarning) as caught:
        yield caught
    messages = [w.message for w in caught if getattr(w.message, "code", None) == code]
    assert messages, f"no warning has the code {code!r}: {[str(w.message) for w in caught]}"
    assert_message(messages[0], code, data)


def in_place(args, options):
    """Arguments with options in place of the same ones, which may not be given twice."""
    pairs = [list(args[i : i + 2]) for i in range(0, len(args), 2)]
    short = {"-o": "--out"}
    named = {short.get(option, option) for option in options} - {"--sensitive"}
    kept = [pair for pair in pairs if short.get(pair[0], pair[0]) not in named]
    return [*(word for pair in kept for word in pair), *options]


def assert_message(message, code, data):
    """Compare a message's code and those of its data that are named; a message among them by code.

    A parameter equals the pair of its name and value.
    """
    assert message.code == code, f"{message.code}: {message}"
    given = {name: message.data.get(name, "(not in its data)") for name in data}
    named = {name: getattr(value, "code", value) for name, value in given.items()}
    assert named == data, f"{code}: {message}"


class Page(HTMLParser):
    """Tags, attributes and text of a page, and the content of each script."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.words, self.scripts = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data):
        if self.cdata_elem == "script":
            self.scripts[-1] += data
        elif self.cdata_elem != "style":
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split()).replace("\u2068", "").replace("\u2069", "")

    @property
    def model(self):
        return json.loads(self.scripts[0])
