"""A ledger as a folder of small text files, made to be committed.

It looks so::

    rankeval-ledger/
        <hash>.json             an entry
        signatures/<hash>.bin   what queries are recognised by, ranking outputs, scores by query: commit them too
        rankings/<hash>.bin     frozen rankings: large, and needed only until their plan is opened
        .gitattributes          no line ends are changed here
        .gitignore              the lock and temporary files stay out
        lock                    held by one writer at a time on this machine

Two clones add files of different names, so git merges them without a conflict. Each file is written under a temporary
name and renamed, its directory is synchronised, and an entry comes after the files that it names: a writer that is
killed leaves a whole ledger.

The trap: a lock holds on one machine. Writers on two machines that share the folder may both append to one head; their
entries are then concurrent, as if they had been written in two clones.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rankeval.errors import LedgerError, warn

_OWN_FILES = {".gitattributes": "* -text\n", ".gitignore": "/lock\n*.tmp\n"}


class FolderStore:
    """Keeps entries and files in a folder.

    Parameters
    ----------
    path : path
        The folder. It is made with the first entry.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def where(self) -> str:
        """The path."""
        return str(self.path)

    def exists(self) -> bool:
        """Return whether the folder exists."""
        return self.path.is_dir()

    def stamp(self) -> Any:
        """Return a value that changes when the ledger does."""
        try:
            with os.scandir(self.path) as found:
                states = [(one.name, one.stat()) for one in found if one.name.endswith(".json")]
            return tuple(sorted((name, state.st_mtime_ns, state.st_size) for name, state in states))
        except OSError:
            return None

    def check_writable(self) -> None:
        """Raise OSError if nothing can be kept here; makes the folder."""
        self._make()
        self._write(self.path / "writable.tmp", b"")
        (self.path / "writable.tmp").unlink(missing_ok=True)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other writers of this machine out."""
        self._make()
        with (self.path / "lock").open("a") as file:
            _lock(file, self.where)
            yield  # the lock ends when the file is closed, or the process dies

    def entries(self) -> dict[str, str]:
        """Return hash -> text of all entries."""
        if not self.exists():
            return {}
        return {file.stem: file.read_text(encoding="utf-8", errors="replace") for file in self.path.glob("*.json")}

    def add(self, entries: Mapping[str, str]) -> None:
        """Keep entries, in this order."""
        for name, text in entries.items():
            self._write(self.path / f"{name}.json", text.encode())

    def keep(self, name: str, data: bytes) -> None:
        """Keep a file, unless it is there."""
        target = self.path / name
        if not target.is_file():
            self._make()
            target.parent.mkdir(exist_ok=True)
            self._write(target, data)

    def load(self, name: str) -> bytes | None:
        """Return a file; None if it is missing."""
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return None

    def files(self) -> list[str]:
        """Return the names of all files."""
        return sorted(file.relative_to(self.path).as_posix() for file in self.path.glob("*/*.bin"))

    def _make(self) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        for name, text in _OWN_FILES.items():
            if not (self.path / name).exists():
                self._write(self.path / name, text.encode())

    def _write(self, target: Path, data: bytes) -> None:
        temporary = target.with_name(f"{target.name}.{os.getpid()}.{threading.get_ident()}.tmp")
        try:
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _synchronise(target.parent)


def _synchronise(folder: Path) -> None:
    """Write the directory itself to the disk, so that a renamed file is still there after a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _lock(file: Any, where: str) -> None:
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX)
    except BlockingIOError as error:
        raise LedgerError(f"the ledger {where} is locked by another process") from error
    except OSError as error:  # a file system without locks
        warn(
            f"the file system of the ledger {where} has no locks ({error}): two writers at once may append to the same "
            "head, and their looks then count as concurrent"
        )
