"""Model files of every format version still load, and predict as on the day they were saved."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evenhand import load_model, save_model
from evenhand.views.report import render
from evenhand.workflow.summary import summarise

FIXTURES = Path(__file__).parent / "fixtures"
SAID = {path.stem: json.loads(path.read_text("utf-8")) for path in FIXTURES.glob("v*.json")}
FILES = [(version, name) for version, said in SAID.items() for name in said["models"]]


def test_every_file_has_its_predictions():
    files = {path.stem for path in FIXTURES.glob("*.model")}
    assert files == {f"{version}-{name}" for version, name in FILES}
    assert {name for version, name in FILES if version == "v1"} == {
        *("two-labels", "certified", "three-labels", "group-cuts", "other-parameters")
    }
    assert all(path.stat().st_size < 30_000 for path in FIXTURES.glob("*.model"))


@pytest.mark.parametrize(("version", "name"), FILES)
def test_a_file_predicts_as_when_it_was_saved(version, name, tmp_path):
    said = SAID[version]["models"][name]
    rows = pd.DataFrame(SAID[version]["rows"])
    saved = load_model(FIXTURES / f"{version}-{name}.model")
    save_model(saved.model, tmp_path / "again", facts=saved.facts)
    for model in (saved.model, load_model(tmp_path / "again").model):
        classifier = getattr(model[-1], "classifier_", model[-1])
        np.testing.assert_array_equal(classifier.coef_, said["coef"])
        np.testing.assert_array_equal(np.atleast_1d(classifier.intercept_), said["intercept"])
        np.testing.assert_array_equal(model.predict(rows), said["labels"])
        # Products of the same numbers, which another processor may add up in another order.
        np.testing.assert_allclose(model.predict_proba(rows), said["scores"], rtol=1e-14)
        assert classifier.rate_ == said["rate"]
        assert classifier.accuracy_ == said["accuracy"]
        assert str(classifier.guarantee_) == said["guarantee"]
        # A parameter of then may be one of a record of parameters now.
        params = classifier.get_params()
        now = {key.rsplit("__", 1)[-1]: value for key, value in params.items()}
        assert {key: now[key] for key in said["params"]} == said["params"]


@pytest.mark.parametrize("version", SAID)
@pytest.mark.parametrize("name", ["two-labels", "certified"])
def test_a_file_with_facts_has_a_report(version, name):
    summary = summarise(load_model(FIXTURES / f"{version}-{name}.model"))
    assert "people.csv" in render(summary)
