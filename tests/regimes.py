"""How a point may be chosen: by its rate on some rows, by a confidence, or by a certificate."""

REGIMES = {
    "train": {"confidence": None},
    "confident": {"confidence": 0.9},
    "holdout": {"confidence": None, "selection": "holdout"},
    "confident holdout": {"confidence": 0.9, "selection": "holdout"},
    "crossfit": {"confidence": None, "selection": "crossfit"},
    "certified": {"confidence": "certified"},
}
