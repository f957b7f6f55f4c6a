"""A disk that fills up while a file is written: the error names the file, and what was there before stays whole."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput, LedgerError
from rankeval.io import opening


def full(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Let every file that is replaced fail when it is flushed, as a disk and a quota do."""

    class Full:
        def __init__(self, file):
            self.file = file

        def __getattr__(self, name):
            return getattr(self.file, name)

        def __enter__(self):
            return self

        def __exit__(self, *error):
            self.file.close()

        def write(self, data):
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(opening, "open", lambda *given, **how: Full(open(*given, **how)), raising=False)  # noqa: PTH123, SIM115 - in place of it


def _written() -> dict[str, object]:
    run, qrels = rk.Run.from_dict({"q": {"d": 1.0}}), rk.Qrels.from_dict({"q": {"d": 1}})
    scored = rk.evaluate(qrels, run, measures="RR")
    return {
        "evaluation.parquet": scored.save,
        **{f"run{ending}": run.write for ending in (".txt", ".run.gz", ".parquet", ".zst", ".csv", ".jsonl")},
        "qrels.tsv": qrels.write,
    }


@each_row("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EFBIG])
def test_each_writer_names_its_file_and_leaves_the_old_one(tmp_path, monkeypatch, number):
    for name, write in _written().items():
        path = tmp_path / name
        write(path)
        before = path.read_bytes()
        with monkeypatch.context() as patched:
            full(patched, number)
            with pytest.raises(InvalidInput) as raised:
                write(path)
        assert name in str(raised.value), name
        assert os.strerror(number) in str(raised.value), name
        assert isinstance(raised.value.__cause__, OSError)
        assert path.read_bytes() == before
        assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []


def test_reports_of_the_command_line_and_ledgers_name_theirs(tmp_path, monkeypatch, rankeval):
    Path("qrels").write_text("q1 0 d1 1\nq1 0 d2 0\n")
    Path("run").write_text("q1 Q0 d1 1 9.5 t\nq1 Q0 d2 2 8.5 t\n")
    data = rk.datasets.make_ranking(20, 5, 3, rng=0)
    guard = rk.Guard("p", ledger=tmp_path / "ledger")
    full(monkeypatch, errno.ENOSPC)
    code, _, err = rankeval("page", "qrels", "run", "--out", "page.html")
    assert (code, err.count("\n")) == (2, 1)
    assert "page.html" in err
    assert "No space left" in err
    with pytest.raises(LedgerError, match=r"/ledger.*No space left"):
        guard.register("test", data)


def test_an_error_without_a_message_of_the_system_is_said_in_its_own_words(tmp_path):
    with pytest.raises(InvalidInput, match=r"x\.run': it failed"), opening.writing(tmp_path / "x.run"):
        raise OSError("it failed")
