"""Put what the contest needs into a folder, to be carried to a machine without a package index.

    python benchmarks/contest_vendor.py FOLDER [--python 3.12]

That machine has Linux and Python with NumPy, SciPy, scikit-learn and pandas; the rest is put there
without its own requirements, for a version of Python: ``PYTHONPATH=src:FOLDER`` finds it. numba is
too large to carry: without it fits are slower and the figures the same.
"""

import argparse
import subprocess
import sys
from pathlib import Path
from shutil import rmtree

PACKAGES = ["narwhals", "fairlearn", "oxonfair", "lightgbm", "cvxpy", "clarabel", "qdldl"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", default=".".join(map(str, sys.version_info[:2])))
    args = parser.parse_args()
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade"]
    command += ["--python-version", args.python, "--only-binary", ":all:"]
    for system in ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"):
        command += ["--platform", system]
    subprocess.run([*command, "--target", args.folder, *PACKAGES], check=True)  # noqa: S603
    for waste in ("*/tests", "*/test", "bin", "setup", "**/__pycache__"):
        for path in list(args.folder.glob(waste)):
            rmtree(path)
    size = sum(p.stat().st_size for p in args.folder.rglob("*") if p.is_file())
    print(f"{args.folder}: {size / 2**20:.0f} MiB, of {', '.join(PACKAGES)}")


if __name__ == "__main__":
    main()
