"""Several rows of one person: ``train --person``."""

import numpy as np
import pandas as pd
import pytest
from helpers import run, words

from evenhand import Method
from evenhand.core.errors import InputError
from evenhand.persist.model_file import load_model
from evenhand.workflow.train import train


def frame(n=400, each=2):
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(n), each)
    x = rng.normal(size=n)[person] + 0.2 * rng.normal(size=n * each)
    sex = np.where(rng.random(n) < 0.5, "f", "m")[person]
    repaid = (x + rng.normal(size=n * each) > 0).astype(int)
    table = pd.DataFrame({"who": person, "x": x, "sex": sex, "repaid": repaid})
    return table.sample(frac=1, random_state=0)


def test_no_person_is_on_two_sides(tmp_path):
    table = frame()
    saved = train(
        table,
        label="repaid",
        sensitive=["sex"],
        person="who",
        confidence="certified",
        tau=0.3,
    )
    facts, model = saved.facts, saved.model[-1]
    # Of 400 persons 120 are held back with both rows, and half of the others held out with one.
    assert (facts["n_test"], facts["n_train"]) == (240, 560)
    assert model.held_out_.n_rows == 140
    assert model.held_out_.n_fitted == 280
    names = saved.model[:-1].get_feature_names_out().tolist()
    assert not any("who" in name for name in names)


@pytest.mark.parametrize("confidence", [0.9, "certified"])
def test_for_a_certificate_test_rows_are_drawn_within_groups_alone(confidence):
    """So that how many of each label are fitted to does not depend on those held back."""
    table, sizes, positives, quick = frame(each=1), set(), set(), Method(max_iter=5)
    for seed in range(6):
        given = {"label": "repaid", "sensitive": ["sex"], "exclude": ["who"], "tau": 0.3}
        saved = train(table, confidence=confidence, seed=seed, method=quick, **given)
        counts = np.array(saved.facts["test_counts"][-1])
        sizes.add(tuple(counts.sum(axis=(1, 2)).tolist()))
        positives.add(tuple(counts[:, 1].sum(axis=1).tolist()))
    assert len(sizes) == 1
    assert (len(positives) > 1) == (confidence == "certified")


def test_command(tmp_path):
    frame().to_csv(tmp_path / "loans.csv", index=False)
    args = ["train", str(tmp_path / "loans.csv"), "--label", "repaid", "--sensitive", "sex"]
    args += ["--person", "who", "--tau", "0.3", "-o", str(tmp_path / "m.model"), "--no-report"]
    refused = run(*args)
    assert refused.exit_code == 1
    assert "--person says whose rows are held out, and none are" in words(refused.stderr)
    done = run(*args, "--confidence", "certified")
    assert done.exit_code == 0, done.output
    assert load_model(tmp_path / "m.model").model[-1].held_out_.n_rows == 140


def test_refused():
    table = frame()
    settings = {"label": "repaid", "sensitive": ["sex"], "confidence": "certified"}
    with pytest.raises(InputError, match="no column 'whom'"):
        train(table, person="whom", **settings)
    table["who"] = table["who"].astype(object)
    table.iloc[:3, 0] = None
    with pytest.raises(InputError, match="no value in 3 of the rows"):
        train(table, person="who", **settings)
