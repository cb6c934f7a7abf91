"""What a conservative frontier is worth: test curves with and without standard errors.

    python benchmarks/conservative.py [--splits 20]

Works on validation parts inside the training parts; test rows are never looked at. COMPAS is
fetched once.
"""

import argparse
from unittest.mock import patch

import numpy as np
import pandas as pd

from evenhand.core.rates import Rate
from evenhand.datasets import fetch_compas, load_adult, load_german, stratified_rows
from evenhand.peers import accuracy_at_rate, compare, summarize

TAUS = (0.7, 0.75, 0.8, 0.85, 0.9, 0.925, 0.95, 0.97, 0.98, 0.99, 0.999)


def validation_table(data, n_splits):
    """Run evenhand on splits inside several training parts."""
    tables = []
    for seed in range(n_splits):
        rows, _ = stratified_rows(data.target, data.sensitive_features, random_state=seed)
        parts = (data.data, data.target, data.sensitive_features)
        table = compare(
            *(part.iloc[rows].reset_index(drop=True) for part in parts),
            methods=["evenhand"],
            taus=TAUS,
            n_splits=1,
            transformer=data.encoder,
            random_state=1000 + seed,
            verbose=0,
        )
        tables.append(table.assign(split=seed))
    return pd.concat(tables, ignore_index=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=20)
    args = parser.parse_args()
    print("                     accuracy at test rate                test rate of tau =")
    print("                     0.80     0.90     0.95     ± se      0.80     0.90     0.95")
    for name, load in (("COMPAS", fetch_compas), ("German", load_german), ("Adult", load_adult)):
        data = load()
        n_splits = args.splits if name != "Adult" else max(args.splits // 4, 2)
        for conservative in (True, False):
            trust = patch.object(
                Rate, "log_ratio_error", lambda self, counts: np.zeros(len(counts))
            )
            if conservative:
                table = validation_table(data, n_splits)
            else:
                with trust:
                    table = validation_table(data, n_splits)
            at = accuracy_at_rate(table, (0.8, 0.9, 0.95)).iloc[0]
            means = summarize(table).set_index("tau")
            accuracies = "   ".join(f"{at[r]:6.4f}" for r in ("0.8", "0.9", "0.95"))
            rates = "    ".join(f"{means.loc[tau, 'rate']:5.3f}" for tau in (0.8, 0.9, 0.95))
            how = "conservative" if conservative else "face value"
            print(f"{name:<8}{how:<13}{accuracies}   {at['0.9_se']:6.4f}    {rates}", flush=True)


if __name__ == "__main__":
    main()
