"""Comparisons of a table as it comes."""

import numpy as np
import pandas as pd

from evenhand.workflow.compare import compare_methods


def test_rows_of_small_combinations_count_within_each_column():
    rng, n = np.random.default_rng(0), 900
    race = rng.choice(["A", "B", "C"], n, p=[0.5, 0.4, 0.1])
    sex = rng.choice(["f", "m"], n)
    x = rng.normal(size=n) + 0.4 * (race == "A")
    table = pd.DataFrame({"x": x, "race": race, "sex": sex, "y": (x + rng.normal(size=n) > 0) * 1})
    asked = {"label": "y", "sensitive": ["sex", "race"], "min_group_size": 20, "splits": 1}
    found = {
        mode: compare_methods(table, methods=["accuracy_only"], attributes=mode, **asked).iloc[0]
        for mode in ("crossed", "each", "both")
    }
    sizes = table[race == "C"].groupby("sex").size()
    small = f"f & C ({sizes['f']}), m & C ({sizes['m']})"
    assert {mode: row["small_groups"] for mode, row in found.items()} == {
        "crossed": small,
        "each": "",
        "both": "",
    }
    assert found["both"]["notes"].startswith(f"{small}: too few rows to test on as combinations")
    assert found["both"]["selection_rate[race: C]"] > 0
    # The same rows, and so the same model, whether combinations are compared as well or not.
    assert found["both"]["accuracy"] == found["each"]["accuracy"] != found["crossed"]["accuracy"]
