"""error-parity (Cruz and Hardt 2024) on scores made elsewhere, in an environment of its own.

    python benchmarks/contest_error_parity.py --install FOLDER
    FOLDER/bin/python benchmarks/contest_error_parity.py SCORES.npz RESULTS.json

It pins NumPy before 2 and CVXPY 1.3, so it cannot share an environment with evenhand. The file
has ``train`` and ``test`` scores, their labels (``y_train``, ``y_test``) and groups (``z_train``,
``z_test``), and ``tolerances``; the results have, for each tolerance, the answers (0, 1) for both
parts. The method needs the group and answers at random where its cuts do.
"""

import json
import subprocess
import sys
import venv
from pathlib import Path

NEEDS = ["numpy<2", "cvxpy>=1.3,<1.4", "error-parity==0.3.12"]


def install(folder):
    venv.create(folder, with_pip=True)
    python = Path(folder) / "bin/python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", *NEEDS], check=True)  # noqa: S603


def answers(data):
    import numpy as np
    from error_parity import RelaxedThresholdOptimizer

    found = {}
    for tolerance in data["tolerances"].tolist():
        rule = RelaxedThresholdOptimizer(
            predictor=lambda X: X[:, 0],
            constraint="demographic_parity",
            tolerance=tolerance,
            seed=0,
        )
        parts = {p: data[p][:, None] for p in ("train", "test")}
        rule.fit(X=parts["train"], y=data["y_train"], group=data["z_train"])
        found[tolerance] = {
            p: np.asarray(rule(X, group=data[f"z_{p}"])).astype(int).tolist()
            for p, X in parts.items()
        }
    return found


def main():
    if sys.argv[1] == "--install":
        install(sys.argv[2])
        return
    import numpy as np

    with np.load(sys.argv[1]) as data:
        Path(sys.argv[2]).write_text(json.dumps(answers(data)), encoding="utf-8")


if __name__ == "__main__":
    main()
