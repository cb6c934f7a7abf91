"""Files that are written: whole or not at all, together or not at all, and no more readable."""

import os
import stat
import threading

import pytest

from evenhand._atomic import write_atomically


def text(words):
    return lambda file: file.write(words.encode())


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask():
    mask = os.umask(0o022)
    yield 0o022
    os.umask(mask)


def test_whole_or_not_at_all(tmp_path, umask):
    path = tmp_path / "f"

    def fail(file):
        file.write(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, fail)
    assert list(tmp_path.iterdir()) == []
    write_atomically(path, text("old"))
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, fail)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    assert mode(path) == 0o666 & ~umask


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_a_replaced_file_keeps_its_permissions(tmp_path, umask):
    path, link = tmp_path / "f", tmp_path / "link"
    link.symlink_to(path)
    for permissions in (0o600, 0o664):
        path.write_text("old")
        path.chmod(permissions)
        write_atomically(link, text("new"))
        assert (path.read_text(), mode(path)) == ("new", permissions)
    assert link.is_symlink()


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("there", [True, False])
def test_two_files_are_both_new_or_both_old(tmp_path, monkeypatch, there, links):
    model, page = tmp_path / "m", tmp_path / "m.html"
    if there:
        model.write_text("old model")
        model.chmod(0o600)
    if not links:  # as on some file systems

        def refuse(*_):
            raise PermissionError("no links here")

        monkeypatch.setattr(os, "link", refuse)
    page.mkdir()  # no file can be put in its place
    with pytest.raises(OSError, match=r"m\.html"):
        write_atomically(model, text("new model"), (page, text("new page")))
    if there:
        assert (model.read_text(), mode(model)) == ("old model", 0o600)
    assert sorted(tmp_path.iterdir()) == [model, page][not there :]
    page.rmdir()
    write_atomically(model, text("new model"), (page, text("new page")))
    assert (model.read_text(), page.read_text()) == ("new model", "new page")
    assert sorted(tmp_path.iterdir()) == [model, page]


def test_on_the_disk_before_it_is_in_place(tmp_path, monkeypatch):
    done, fsync, replace = [], os.fsync, os.replace

    def synced(handle):
        done.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        fsync(handle)

    def replaced(*names):
        done.append("replace")
        replace(*names)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    write_atomically(tmp_path / "f", text("a"), (tmp_path / "g", text("b")))
    assert done[:4] == ["file", "file", "replace", "replace"]
    assert done[4:] == ["folder"] * (os.name != "nt")
    write_atomically(tmp_path / "f", lambda file: file.close())  # as streams that compress do
    assert (tmp_path / "f").read_bytes() == b""


def test_a_place_that_cannot_be_written_is_named_as_given(tmp_path):
    path = tmp_path / "nowhere" / "m"
    with pytest.raises(FileNotFoundError) as error:
        write_atomically(path, text("new"))
    assert error.value.filename == str(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such pipes")
def test_a_pipe_is_written_to_and_stays(tmp_path):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_atomically(pipe, text("new page"), (tmp_path / "m", text("new model")))
    reader.join(10)
    assert read == [b"new page"]
    assert pipe.is_fifo()
    assert (tmp_path / "m").read_text() == "new model"
    assert sorted(tmp_path.iterdir()) == [tmp_path / "m", pipe]


def test_a_device_is_written_to_and_stays(tmp_path):
    """On one of its own: a failure would take /dev/null from the machine."""
    device, link = tmp_path / "null", tmp_path / "link"
    try:
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        device.write_bytes(b"")
    except (OSError, AttributeError):
        pytest.skip("no devices can be made here")
    link.symlink_to(device)
    for place in (device, link):
        write_atomically(place, text("new"))
        assert device.is_char_device()
    assert link.is_symlink()
    assert sorted(tmp_path.iterdir()) == [link, device]


def test_a_pipe_that_breaks_leaves_the_other_file_as_it_was(tmp_path, monkeypatch):
    import evenhand._atomic as atomic

    model, pipe = tmp_path / "m", tmp_path / "pipe"
    model.write_text("old model")
    pipe.mkdir()  # nothing can be written to it
    monkeypatch.setattr(atomic, "_is_stream", lambda target: target == pipe)
    for files in ((model, pipe), (pipe, model)):
        (one, two) = ((file, text("new")) for file in files)
        with pytest.raises(OSError, match="pipe"):
            write_atomically(*one, two)
        assert model.read_text() == "old model"
        assert sorted(tmp_path.iterdir()) == [model, pipe]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such owners")
def test_a_replaced_file_keeps_its_owner_and_group(tmp_path, monkeypatch):
    path, given, chown = tmp_path / "f", [], os.chown
    path.write_text("old")
    path.chmod(0o640)
    about = path.stat()

    def asked(name, owner, group):
        given.append((owner, group))
        chown(name, owner, group)
        if owner >= 0:
            raise PermissionError("only root may")

    monkeypatch.setattr(os, "chown", asked)
    write_atomically(path, text("new"))
    assert given == [(about.st_uid, -1), (-1, about.st_gid)]
    assert (path.read_text(), mode(path)) == ("new", 0o640)
    given.clear()
    write_atomically(tmp_path / "g", text("new"))
    assert given == []


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may")
def test_a_file_of_another_stays_theirs(tmp_path):
    path = tmp_path / "f"
    path.write_text("old")
    os.chown(path, 1234, 2345)
    path.chmod(0o640)
    write_atomically(path, text("new"))
    about = path.stat()
    assert (about.st_uid, about.st_gid, mode(path)) == (1234, 2345, 0o640)
