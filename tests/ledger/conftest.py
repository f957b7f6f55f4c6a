"""A ledger in each kind of store, and what somebody may do to it behind its back."""

from __future__ import annotations

import codecs
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from rankeval.ledger.discovery import ledger_url, place_of
from rankeval.ledger.ledger import Ledger

STORES = ["folder", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


class Places:
    """Makes URLs of ledgers that do not exist yet."""

    def __init__(self, folder: Path, request: Any) -> None:
        self.folder = folder
        self.request = request

    def new(self, store: str, name: str = "ledger") -> str:
        if store == "postgres":
            return self.request.getfixturevalue("postgres").database()
        return ledger_url(self.folder / (name if store == "folder" else f"{name}.db"))


@pytest.fixture
def places(tmp_path: Path, request: pytest.FixtureRequest) -> Places:
    return Places(tmp_path, request)


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, places: Places) -> str:
    """Return the URL of a ledger that does not exist yet."""
    return places.new(request.param)


@pytest.fixture
def ledger(url: str) -> Ledger:
    return Ledger(url)


class Hands:
    """Somebody with a text editor, or with the database's own tools."""

    def __init__(self, url: str) -> None:
        kind, path = place_of(url)
        self.folder = Path(path) if kind == "folder" else None
        # One connection throughout: thousands of edits are tried.
        self.engine = None if self.folder else sa.create_engine(url, poolclass=sa.pool.StaticPool)
        if not self.folder and self.engine.dialect.name == "sqlite":
            sa.event.listen(self.engine, "connect", lambda own, _: own.execute("PRAGMA synchronous = OFF"))

    def texts(self) -> dict[str, str]:
        if self.folder:
            return {path.stem: path.read_text() for path in self.folder.glob("*.json")}
        with self.engine.begin() as connection:
            return dict(map(tuple, connection.execute(sa.text("SELECT hash, text FROM rankeval_ledger_entries"))))

    def put(self, name: str, text: str) -> None:
        """Let an entry have this text, whether it is there or not."""
        if self.folder:
            (self.folder / f"{name}.json").write_text(text)
            return
        if not self.run("UPDATE rankeval_ledger_entries SET text = :text WHERE hash = :hash", hash=name, text=text):
            self.run("INSERT INTO rankeval_ledger_entries (hash, text) VALUES (:hash, :text)", hash=name, text=text)

    def delete(self, *names: str) -> None:
        for name in names:
            if self.folder:
                (self.folder / f"{name}.json").unlink()
            else:
                self.run("DELETE FROM rankeval_ledger_entries WHERE hash = :hash", hash=name)

    def put_file(self, name: str, data: bytes) -> None:
        if self.folder:
            (self.folder / name).write_bytes(data)
        else:
            self.run("UPDATE rankeval_ledger_files SET data = :data WHERE name = :name", name=name, data=data)

    def delete_file(self, name: str) -> None:
        if self.folder:
            (self.folder / name).unlink()
        else:
            self.run("DELETE FROM rankeval_ledger_files WHERE name = :name", name=name)

    def run(self, statement: str, **values: Any) -> int:
        """Return the number of rows that a statement changed."""
        with self.engine.begin() as connection:
            return connection.execute(sa.text(statement), values).rowcount


@pytest.fixture
def hands(url: str) -> Hands:
    return Hands(url)


@pytest.fixture
def read_only() -> Iterator[Path]:
    """Return a folder in which a test can take its own rights away, by ``lock_up``; root keeps none either.

    Root may write anywhere, so the process becomes the user "nobody" until the test ends.
    """
    folder = Path(tempfile.mkdtemp(prefix="rankeval-read-only-"))
    folder.chmod(0o755)
    yield folder
    if not os.getuid():
        os.seteuid(0)
    for path in (folder, *folder.rglob("*")):
        path.chmod(stat.S_IRWXU)
    import shutil

    shutil.rmtree(folder)


def lock_up(folder: Path) -> None:
    """Take the right to write in a folder from this process."""
    codecs.lookup("utf-8-sig")  # Python loads it at its first use, from a place that may be another user's
    for path in (folder, *folder.rglob("*")):
        path.chmod(path.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
    if not os.getuid():
        os.seteuid(65534)
