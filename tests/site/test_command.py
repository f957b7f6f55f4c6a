"""`rankeval site` says where the site is, and warns of what it could not read."""

from __future__ import annotations

import sys

import pytest
from projects import three

from rankeval import cli


def commanded(capsys, monkeypatch, *arguments: str) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["rankeval", "site", *arguments])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    # Lines are folded at the width of the terminal.
    out, err = (" ".join(text.split()) for text in capsys.readouterr())
    return stop.value.code, out, err


def test_the_command_writes_a_site(tmp_path, capsys, monkeypatch):
    three(tmp_path / "saved")
    (tmp_path / "saved/runs/poor/evaluation.parquet").write_bytes(b"altered")
    public = tmp_path / "public"
    code, out, err = commanded(capsys, monkeypatch, str(tmp_path / "saved"), "--out", str(public))
    assert (code, out) == (0, f"3 pages: {public / 'index.html'}")
    assert err.startswith("warning: runs/poor cannot be read: ")
    assert "altered or replaced" in err


def test_a_refusal_names_the_option(tmp_path, capsys, monkeypatch):
    three(tmp_path / "saved")
    (tmp_path / "mine.txt").write_text("mine")
    code, _, err = commanded(capsys, monkeypatch, str(tmp_path / "saved"), "--out", str(tmp_path))
    assert code == 2
    assert err.startswith("error: --out: ")
    code, _, err = commanded(capsys, monkeypatch, "--out", str(tmp_path / "public"))
    assert code == 2
    assert "folder" in err


def test_strict_fails_on_a_run_that_cannot_be_read_and_writes_the_site(tmp_path, capsys, monkeypatch):
    three(tmp_path / "saved")
    arguments = (str(tmp_path / "saved"), "--strict", "--out", str(tmp_path / "public"))
    assert commanded(capsys, monkeypatch, *arguments)[0] == 0
    (tmp_path / "saved/runs/poor/evaluation.parquet").write_bytes(b"altered")
    code, out, err = commanded(capsys, monkeypatch, *arguments)
    assert (code, out) == (1, f"3 pages: {tmp_path / 'public/index.html'}")
    assert err.startswith("warning: runs/poor cannot be read: ")


def test_a_folder_that_is_not_there_is_named_as_the_help_names_it(tmp_path, capsys, monkeypatch):
    code, _, err = commanded(capsys, monkeypatch, str(tmp_path / "nosuch"), "--out", str(tmp_path / "public"))
    assert code == 2
    assert err.startswith("error: FOLDER: ")
