"""A ledger as a folder of small text files, made to be committed.

It looks so::

    rankeval-ledger/
        <hash>.json             an entry
        signatures/<hash>.bin   what queries are recognised by, ranking outputs, scores by query: commit them too
        rankings/<hash>.bin     frozen rankings: large, and needed only until their plan is opened
        .gitattributes          no line ends are changed here
        .gitignore              the lock and temporary files stay out, entries and files do not
        lock                    held by one writer at a time on this machine

Two clones add files of different names, so git merges them without a conflict. Each file is written under a temporary
name and renamed, its directory is synchronised, and an entry comes after the files that it names: a writer that is
killed leaves a whole ledger. Readers need no lock, nor any right but that of reading.

The trap: a lock holds on one machine. Writers on two machines that share the folder may both append to one head; their
entries are then concurrent, as if they had been written in two clones.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rankeval.errors import warn
from rankeval.ledger.disk import NoLocks, locked, synchronise, try_writing, write_whole

_OWN_FILES = {".gitattributes": "* -text\n", ".gitignore": "/lock\n*.tmp\n!*.json\n!*.bin\n"}
_WITHOUT_LOCKS: set[Path] = set()
"""The folders whose file system was found to have no locks: it is said once."""


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
        """Return whether the folder exists; raises OSError if something else stands there."""
        if self.path.is_dir():
            return True
        if self.path.exists():
            raise NotADirectoryError(errno.ENOTDIR, "a file stands there, where a folder is expected")
        return False

    def stamp(self) -> Any:
        """Return a value that changes when the ledger does, unless somebody writes into an entry that is there.

        It is asked for every score, so no file is opened or looked at. The names of the entries tell their content.
        """
        try:
            return self.path.stat().st_mtime_ns, frozenset(self._listed(".json"))
        except OSError:
            return None

    def check_writable(self) -> None:
        """Raise OSError if nothing can be kept here; leaves nothing behind."""
        self.exists()
        for place in (self.path, *(self.path / name for name in ("signatures", "rankings"))):
            try_writing(place)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other writers of this machine out."""
        self._make()
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(locked(self.path / "lock"))
            except NoLocks as error:
                self._say_once(error)
            yield

    def reading(self) -> contextlib.AbstractContextManager[None]:
        """Do nothing, since files need no connection."""
        return contextlib.nullcontext()

    def entries(self) -> dict[str, str]:
        """Return hash -> text of all entries."""
        texts = {}
        for name in self._listed(".json"):
            try:
                # Windows programs begin a text with a mark. Bytes that are no text must not look like other text.
                texts[name] = (self.path / f"{name}.json").read_bytes().decode("utf-8-sig", "surrogateescape")
            except FileNotFoundError:  # git took it away meanwhile, to show another branch
                continue
            except IsADirectoryError:
                texts[name] = ""
        return texts

    def add(self, entries: Mapping[str, str]) -> None:
        """Keep entries, in this order."""
        for name, text in entries.items():
            write_whole(self.path / f"{name}.json", text.encode())

    def keep(self, name: str, data: bytes) -> None:
        """Keep a file, unless it is there."""
        target = self.path / name
        if not target.is_file():
            self._make()
            target.parent.mkdir(exist_ok=True)
            write_whole(target, data)

    def load(self, name: str) -> bytes | None:
        """Return a file; None if it is missing."""
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return None

    def files(self) -> list[str]:
        """Return the names of all files."""
        return sorted(file.relative_to(self.path).as_posix() for file in self.path.glob("*/*.bin"))

    def _listed(self, suffix: str) -> list[str]:
        """Return the names of the entries' files; files of other kinds are no business of ours."""
        if not self.exists():
            return []
        names = [name for name in os.listdir(self.path) if name.endswith(suffix)]  # noqa: PTH208 - twice as fast
        return [name.removesuffix(suffix) for name in names if not name.startswith(".")]

    def _make(self) -> None:
        if not self.exists():
            self.path.mkdir(parents=True, exist_ok=True)
            synchronise(self.path.parent)
        for name, text in _OWN_FILES.items():
            if not (self.path / name).exists():
                write_whole(self.path / name, text.encode(), lasting=False)

    def _say_once(self, error: NoLocks) -> None:
        if self.path not in _WITHOUT_LOCKS:
            _WITHOUT_LOCKS.add(self.path)
            warn(
                f"the file system of the ledger {self.where} has no locks ({error.strerror or error}): two writers at "
                "once may append to the same head, and their looks then count as concurrent"
            )
