"""Files that are there whole or not at all."""

import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any


def write_atomically(
    path: str | os.PathLike[str],
    write: Callable[[Any], Any],
    *more: tuple[str | os.PathLike[str], Callable[[Any], Any]],
) -> None:
    """Write one file, or several, so that they are there whole or not at all.

    A file that is replaced keeps its permissions, and its owner and group where the system allows.
    What is written is on the disk before it is put in its place. Of several files either all are
    new or, if one cannot be put in its place, all are what they were. What is no file, such as a
    pipe or a device, is not replaced but written to, last.

    Parameters
    ----------
    path : path-like
        Where to.
    write : callable
        Given a binary file to write to.
    *more : tuple of (path-like, callable)
        Further files; none is put in its place before all are written.
    """
    umask = os.umask(0)
    os.umask(umask)
    written: list[tuple[Path, Path]] = []
    streams: list[tuple[Path, Path]] = []
    before: dict[Path, Path] = {}
    try:
        for target, fill in ((path, write), *more):
            stream = _is_stream(target)
            # A link is followed: what it leads to is replaced, not the link.
            place = Path(target) if stream else Path(os.path.realpath(target))
            folder = None if stream else place.parent
            try:
                handle, temporary = tempfile.mkstemp(prefix=f".{place.name}.", dir=folder)
            except OSError as error:
                error.filename = str(target)  # nobody knows the temporary one
                raise
            name = Path(temporary)
            (streams if stream else written).append((name, place))
            with os.fdopen(handle, "wb") as file:
                fill(file)
            if stream:
                continue
            with name.open("rb+") as file:  # some who write close what they write to
                os.fsync(file.fileno())
            # As the file before it, or as any other; not as a temporary one.
            mode = 0o666 & ~umask
            if place.exists():
                mode = stat.S_IMODE(place.stat().st_mode)
                _give_to_owner(name, place)  # which may take some permissions away
            name.chmod(mode)
        for name, place in written if streams else written[:-1]:  # the last needs no way back
            if place.is_file():
                before[place] = _second_name(place, Path(f"{name}.old"))
        for name, place in written:
            os.replace(name, place)
        for name, place in streams:
            with name.open("rb") as file, place.open("wb") as out:
                shutil.copyfileobj(file, out)
    except BaseException:
        for name, place in written:
            if not name.exists():  # it is in its place already
                if place in before:
                    os.replace(before[place], place)
                else:
                    place.unlink(missing_ok=True)
        raise
    finally:
        for leftover in (*(name for name, _ in written + streams), *before.values()):
            leftover.unlink(missing_ok=True)
    for folder in {place.parent for _, place in written}:
        _sync_folder(folder)


def _is_stream(target: str | os.PathLike[str]) -> bool:
    """Say whether something is there that is neither a file nor a folder."""
    place = Path(target)
    return place.exists() and not (place.is_file() or place.is_dir())


def _give_to_owner(name: Path, place: Path) -> None:
    """Give a file the owner and the group of another, each where the system allows."""
    if hasattr(os, "chown"):  # not on Windows
        about = place.stat()
        for owner, group in ((about.st_uid, -1), (-1, about.st_gid)):
            with suppress(OSError):
                os.chown(name, owner, group)


def _second_name(place: Path, name: Path) -> Path:
    """Keep a file under another name as well: a link where there are such, else a copy."""
    try:
        os.link(place, name)
    except OSError:
        shutil.copy2(place, name)
    return name


def _sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
