"""The archive of a model file: members that are read within limits and held to their checksums."""

import hashlib
import io
import json
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from reprlib import repr as brief
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from evenhand._extras import package_version
from evenhand.core.errors import InputError

# Files of older versions are brought to the newest form when they are read.
FORMAT, FORMAT_VERSION, OLDEST_VERSION = "evenhand-model", 3, 1
MEMBERS = ("manifest.json", "model.json", "arrays.npz")
# Bytes read at a time.
CHUNK = 1 << 16
# What plain values of the wrong kind, size or depth can bring about.
BAD_VALUES = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
# What is said in two places.
UNREADABLE = (*BAD_VALUES, MemoryError, RecursionError, EOFError, zipfile.BadZipFile)


class ModelFileError(InputError):
    """A file is no model, or no longer the one that was saved."""


def refuse(wrong: Any, code: str, /, **data: Any) -> None:
    """Raise an error for a reason, if something is wrong."""
    if wrong:
        raise InputError(code, **data)


def _member_sizes() -> dict[str, int]:
    return dict(zip(MEMBERS, (1 << 16, 8 << 20, 20 << 20), strict=True))


@dataclass(frozen=True)
class Limits:
    """The most that a model file may have of something; one that has more is refused.

    A model of 20,000 inputs and 100 iterates is within them, and no file takes more than 64 MB of
    memory before it is refused.
    """

    sizes: Mapping[str, int] = field(default_factory=_member_sizes)  # bytes of each member
    memory: int = 40 << 20  # bytes that the values of model.json may take
    free: int = 1 << 20  # bytes of a member that may be packed to nothing; beyond them it is
    packed: int = 100  # at most this many times as large as it is packed
    directory: int = 1 << 14  # bytes of a list of members
    header: int = 1000  # bytes that say what an array is
    steps: int = 100_000  # of a run, and iterates
    points: int = 20_000  # of a frontier
    groups: int = 10_000
    cells: int = 200_000  # of all rates together
    pairs: int = 1_000_000  # of labels, among which these cells are searched
    rates: int = 20_000  # of all groups together
    bounds: int = 1_000_000  # of pairs of these rates at all tested points of a certified model
    held_out: int = 10**9  # rows that a certified model was tested on
    text: int = 1 << 19  # characters in an array, each text as long as the longest


LIMITS = Limits()


def pack(state: Any, arrays: Mapping[str, NDArray[Any]], limits: Limits) -> io.BytesIO:
    """Write plain values and arrays as a model file in memory."""
    data = io.BytesIO()
    np.savez(data, allow_pickle=False, **arrays)
    try:
        text = json.dumps(state, allow_nan=True, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        near = error.object[max(error.start - 20, 0) : error.end + 20]
        raise InputError("unsavable_text", near=near) from None
    members = {"model.json": text, "arrays.npz": data.getvalue()}
    for name, content in members.items():
        many_values = name == "model.json" and memory_of(content) > limits.memory
        refuse(
            len(content) > limits.sizes[name] or many_values,
            "model_too_large",
            member=name,
            size=len(content) >> 20,
        )
    manifest = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "written_by": f"evenhand {package_version('evenhand')}",
        "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in members.items()},
    }
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MEMBERS[0], json.dumps(manifest, indent=1))
        for name, content in members.items():
            # What would be packed so well that it is refused is stored as it is.
            large = len(content) > limits.free
            bomb = large and len(content) > limits.packed * len(zlib.compress(content))
            archive.writestr(name, content, zipfile.ZIP_STORED if bomb else None)
    return whole


def unpack(file: IO[bytes], path: str, limits: Limits) -> tuple[int, dict[str, bytes]]:
    """Read the format's version and the members, whose sizes and checksums are checked."""
    try:
        _check_directory(file, limits)
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
            if MEMBERS[0] not in names:
                raise ModelFileError("no_model", path=path)
            if sorted(names) != sorted(MEMBERS):
                raise ModelFileError("other_members", path=path, members=", ".join(MEMBERS))
            for info in archive.infolist():
                size, packed = info.file_size, info.compress_size
                most = min(limits.sizes[info.filename], limits.free + limits.packed * packed)
                # What cannot be packed grows a little; what grows more is packed to take time.
                if size > most or packed > size + size // 100 + 1000:
                    raise ModelFileError("file_too_large", path=path)
            version, checksums = _parse_manifest(_read_member(archive, MEMBERS[0])[0], path)
            members = {}
            for name in MEMBERS[1:]:
                members[name], checksum = _read_member(archive, name)
                if checksums.get(name) != checksum:
                    raise ModelFileError("changed_member", path=path, member=name)
            return version, members
    except zipfile.BadZipFile as error:
        if "CRC" in str(error):
            raise ModelFileError("damaged_model", path=path) from None
        raise ModelFileError("part_of_model", path=path) from None
    except ModelFileError:
        raise
    except (OSError, struct.error, zlib.error, RuntimeError, *UNREADABLE):
        # Places in the file that are not there, ways to compress that do not exist, and the like.
        raise ModelFileError("damaged_model", path=path) from None


def _check_directory(file: IO[bytes], limits: Limits) -> None:
    """Refuse a long list of members before it is read: the end of the file says how long it is."""
    size = file.seek(0, io.SEEK_END)
    file.seek(max(size - 42, 0))
    end = file.read(42)
    # Neither NumPy nor this module ends a file with a comment, or makes one of four gigabytes.
    if end[-22:-18] != b"PK\5\6" or end.startswith(b"PK\6\7"):
        raise zipfile.BadZipFile("there is no end")
    if int.from_bytes(end[-10:-6], "little") > limits.directory:
        raise zipfile.BadZipFile("there are many members")


def _read_member(archive: zipfile.ZipFile, name: str) -> tuple[bytes, str]:
    """Read a member chunk by chunk, with its checksum."""
    info, digest, data = archive.getinfo(name), hashlib.sha256(), io.BytesIO()
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise zipfile.BadZipFile("a member is packed in a way that models are not")
    with archive.open(info) as member:
        while chunk := member.read(CHUNK):
            digest.update(chunk)
            data.write(chunk)
    return data.getvalue(), digest.hexdigest()


def _parse_manifest(data: bytes, path: str) -> tuple[int, dict[str, Any]]:
    """Give the format's version and the checksums that a manifest has."""
    try:
        manifest = _parse_json(data)
        is_model = manifest.get("format") == FORMAT
    except (ValueError, AttributeError, RecursionError):
        is_model = False
    if not is_model:
        raise ModelFileError("no_model", path=path)
    version = manifest.get("format_version")
    if version not in range(OLDEST_VERSION, FORMAT_VERSION + 1):
        raise ModelFileError(
            "other_format",
            path=path,
            version=brief(version),
            oldest=OLDEST_VERSION,
            newest=FORMAT_VERSION,
            writer=brief(manifest.get("written_by")),
        )
    return version, dict(manifest.get("sha256", {}))


def memory_of(data: bytes) -> int:
    """Give the most memory that a JSON text and its values may take."""
    sizes = {b",": 64, b":": 64, b"[": 80, b"{": 200}
    values = sum(size * data.count(mark) for mark, size in sizes.items())
    return values + len(data) * (2 if data.isascii() else 5)


def parse_state(data: bytes, limits: Limits) -> Any:
    """Read ``model.json``, unless its values would take too much memory."""
    wrong = memory_of(data) > limits.memory
    refuse(wrong, "too_many_values")
    return _parse_json(data)


# Escapes of surrogates: a pair that is one character, or, as the group of the match, one alone.
SURROGATES = re.compile(r"(?<!\\)(?:\\\\)*\\u[dD](?:[89abAB]\w\w\\u[dD][c-fC-F]\w\w|([89a-fA-F]))")


def _parse_json(data: bytes) -> Any:
    """Read JSON in UTF-8, as it is written, without half a character, which nothing can show."""
    text = data.decode()
    half = any(match[1] for match in SURROGATES.finditer(text))
    refuse(half, "half_character_in_file")
    return json.loads(text)


def parse_arrays(data: bytes, limits: Limits) -> dict[str, NDArray[Any]]:
    """Read ``arrays.npz``, none of whose arrays is larger than its bytes in the file."""
    file = io.BytesIO(data)
    _check_directory(file, limits)
    with zipfile.ZipFile(file) as inner:
        members = inner.infolist()
        stored = all(info.compress_type == zipfile.ZIP_STORED for info in members)
        wrong = not stored or sum(info.file_size for info in members) > len(data)
        refuse(wrong, "arrays_larger_than_file")
        n = 0
        for info in members:
            with inner.open(info) as member:
                n += _count_numbers(info, member, limits)
        # However few bytes a number has here, it has eight when something is computed of it.
        wrong = 8 * n > limits.sizes["arrays.npz"]
        refuse(wrong, "too_many_numbers")
    file.seek(0)
    with np.load(file, allow_pickle=False, max_header_size=limits.header) as arrays:
        return {name: arrays[name] for name in arrays.files}


def _count_numbers(info: zipfile.ZipInfo, member: IO[bytes], limits: Limits) -> int:
    """Count an array's numbers; refuse one of something else, or not as large as it says."""
    name, versions = info.filename.removesuffix(".npy"), np.lib.format
    refuse(
        versions.read_magic(member) != (1, 0),  # later ones are for longer headers than these
        "other_array_format",
        name=name,
    )
    shape, _, dtype = versions.read_array_header_1_0(member, max_header_size=limits.header)
    refuse(dtype.kind not in "biuf", "no_numbers", name=name)
    wrong = math.prod(shape) * dtype.itemsize != info.file_size - member.tell()
    refuse(wrong, "other_array_size", name=name)
    return math.prod(shape)
