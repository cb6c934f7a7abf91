"""What ``evenhand train`` takes beside its fit: reading the table, looking at columns, the report.

    python benchmarks/train.py [--only small large adult]

Makes a CSV of 100,000 rows and 9 columns, and one of 1,000,000 rows and 20 columns (12 of numbers,
8 of text with at most 50 values, the label and the sensitive column among them), and trains on
each in a process of its own, as ``python -m evenhand train`` does; then on Adult with ``--demo``.
A training on a small table comes first, so that numba's compiled code is in its cache. Printed are
seconds of the process, of ``FairClassifier.fit`` inside it, and their difference, once by the clock
and once of processor time (on a busy machine the second is the one to compare), and the most
memory that the process held. Ends with 1 if a bar is missed.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

# Times the fit inside the process that is measured, then does what ``python -m evenhand`` does.
PROGRAM = """
import json, runpy, sys, time
from evenhand.models.classifier import FairClassifier
fit, place = FairClassifier.fit, sys.argv.pop(1)
def timed(*args, **params):
    wall, processor = time.perf_counter(), time.process_time()
    try:
        return fit(*args, **params)
    finally:
        seconds = [time.perf_counter() - wall, time.process_time() - processor]
        with open(place, "w") as file:
            json.dump(seconds, file)
FairClassifier.fit = timed
sys.argv[0] = "evenhand"
runpy.run_module("evenhand", run_name="__main__")
"""

# Largest seconds by the clock, whether the fit counts among them, and largest memory in GB.
BARS = {"small": (3.0, False, None), "large": (30.0, False, 1.5), "adult": (5.0, True, None)}
SIZES = {"small": (100_000, 4, 3), "large": (1_000_000, 12, 6)}


def make_table(n_rows, n_numbers, n_texts, seed=0):
    """Make a table of numbers, texts, a sensitive column and a label that depends on all three."""
    rng = np.random.default_rng(seed)
    sex = rng.random(n_rows) < 0.6
    columns, score = {}, 0.5 * sex - 0.8
    for j in range(n_numbers):
        values = rng.standard_normal(n_rows) + 0.4 * sex * (j == 0)
        score = score + values * np.cos(j)
        # Amounts with cents, whole numbers of few values, and numbers of many digits, in turn.
        columns[f"amount_{chr(97 + j)}"] = [
            np.round(1000 + 250 * values, 2),
            np.round(40 + 12 * values).astype(int),
            values,
        ][j % 3]
    for j in range(n_texts):
        codes = rng.integers(0, [5, 20, 50][j % 3], n_rows)
        score = score + 0.1 * (codes % 3)
        columns[f"group_{chr(97 + j)}"] = np.array([f"value {k}" for k in range(50)])[codes]
    columns["sex"] = np.where(sex, "male", "female")
    columns["repaid"] = np.where(score + rng.logistic(size=n_rows) > 0, "yes", "no")
    return pd.DataFrame(columns)


def train(folder, *args):
    """Train in a process of its own; give seconds by the clock and of processor time, and GB."""
    place = Path(folder) / "fit.json"
    options = ["-o", str(Path(folder) / "trained.model"), "--json"]
    words = [sys.executable, "-c", PROGRAM, str(place), "train", *args, *options]
    begun = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)  # noqa: S603
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - begun
    if process.returncode not in (0, 2):  # 2: the target was not reached
        raise SystemExit(f"evenhand train ended with {process.returncode}")
    memory = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e9
    return (wall, usage.ru_utime + usage.ru_stime), json.loads(place.read_text()), memory


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=BARS, default=list(BARS))
    chosen = parser.parse_args().only
    roles = ["--label", "repaid", "--sensitive", "sex", "--favourable", "yes"]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: str(Path(folder) / f"{name}.csv") for name in ("warm", *SIZES)}
        make_table(2000, 4, 3).to_csv(paths["warm"], index=False)
        train(folder, paths["warm"], *roles)
        print(f"load average before: {os.getloadavg()[0]:.1f}, cores: {os.cpu_count()}")
        print("                        seconds: clock (processor)                            GB")
        print("table                   process          fit             beside           peak")
        for name in chosen:
            if name in SIZES:
                table = make_table(*SIZES[name])
                table.to_csv(paths[name], index=False)
                title, args = "{:,} x {}".format(*table.shape), [paths[name], *roles]
                del table
            else:
                title, args = "adult, --demo", ["--demo", "adult"]
            whole, fit, memory = train(folder, *args)
            beside = [a - b for a, b in zip(whole, fit, strict=True)]
            shown = [f"{wall:6.2f} ({cpu:6.2f})" for wall, cpu in (whole, fit, beside)]
            print(f"{title:<22}", *shown, f"{memory:6.2f}", flush=True)
            most, with_fit, most_memory = BARS[name]
            seconds, what = (whole[0], "in all") if with_fit else (beside[0], "beside its fit")
            checks = [(f"{seconds:.2f} s {what}", f"{most:g} s", seconds <= most)]
            if most_memory is not None:
                checks.append((f"{memory:.2f} GB", f"{most_memory:g} GB", memory <= most_memory))
            for found, bar, good in checks:
                print(f"    {found}, at most {bar}: {'met' if good else 'MISSED'}", flush=True)
                missed += [] if good else [name]
        print(f"load average after: {os.getloadavg()[0]:.1f}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
