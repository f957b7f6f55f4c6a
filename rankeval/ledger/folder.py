"""A ledger as a folder of small text files, made to be committed.

It looks so::

    rankeval-ledger/
        <hash>.json             an entry
        signatures/<hash>.bin   what queries are recognised by, ranking outputs, scores by query: commit them too
        rankings/<hash>.bin     frozen rankings: large, and needed only until their plan is opened
        .gitattributes          no line ends are changed here
        .gitignore              the lock and temporary files stay out, entries and files do not
        lock                    held by one writer at a time on this machine

Two clones add files of different names, so git merges them without a conflict. Each file is written
under a temporary name and renamed, its directory is synchronised, and an entry comes after the
files that it names: a writer that is killed leaves a whole ledger. Readers need no lock, nor any
right but that of reading.

The trap: a lock holds on one machine. Writers on two machines that share the folder may both append
to one head; their entries are then those of two clones, which do not know of each other.
"""

from __future__ import annotations

import contextlib
import errno
import os
import random
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from rankeval.errors import warn
from rankeval.io.opening import draft_of, replacing

PATIENCE = 60.0
"""Seconds to wait for the lock of another writer."""

_ROOM = 1 << 16
"""Bytes that a trial writes: the opening of a thousand queries. A larger one that fails was not recorded, nor shown."""

_BLOCK = 1 << 20

_OWN_FILES = {".gitattributes": "* -text\n", ".gitignore": "/lock\n*.tmp\n!*.json\n!*.bin\n"}
_WITHOUT_LOCKS: set[Path] = set()
"""The folders whose file system was found to have no locks: it is said once."""


def write_whole(target: Path, data: bytes, *, lasting: bool = True) -> None:
    """Write a file, whole or not at all."""
    with replacing(target, draft_of(target, ".tmp"), lasting=lasting) as file:
        file.write(data)
    if lasting:
        synchronise(target.parent)


def synchronise(folder: Path) -> None:
    """Write the folder itself to the disk, so that a renamed file is still there after a power cut."""
    if sys.platform == "win32":  # it opens no folders, and keeps renames in its journal
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def try_writing(folder: Path) -> None:
    """Raise OSError if no file can be made in a folder, or in the nearest one above it that exists."""
    while not folder.exists():
        folder = folder.parent
    with room_held({folder / ".rankeval-room": _ROOM}):
        pass


@contextlib.contextmanager
def room_held(sizes: Mapping[Path, int]) -> Iterator[None]:
    """Hold the room of files that will be written, by drafts of their sizes, until this context ends.

    That alone tells whether they can be written: a permission says nothing about a name that is too
    long, a full disk, a quota or a disk that is mounted for reading.
    """
    with contextlib.ExitStack() as stack:
        for path, size in sizes.items():
            try:
                if path.is_dir():
                    raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
                draft = draft_of(
                    path, ".tmp"
                )  # a name as long as those under which whole files are written
                with draft.open("wb") as file:
                    stack.callback(_removed, draft)
                    for start in range(0, size, _BLOCK):
                        file.write(bytes(min(_BLOCK, size - start)))
            except OSError as error:
                error.filename = str(path)
                raise
        yield


def _removed(draft: Path) -> None:
    with contextlib.suppress(OSError):
        draft.unlink()


class NoLocks(OSError):
    """The file system has no locks."""


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file, which is made; the lock ends with this context, or when the process dies."""
    with path.open("ab") as file:
        _wait(file)
        try:
            yield
        finally:
            # Not left to the end of the file: a process that was forked meanwhile would go on
            # holding it.
            _release(file)


def _wait(file: BinaryIO) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return take(file)
        except (BlockingIOError, PermissionError) as error:
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"another process has held its lock for {PATIENCE:.0f} s"
                ) from error
        except OSError as error:
            raise NoLocks(*error.args) from error
        time.sleep(random.uniform(0.001, 0.01))  # noqa: S311 - so that those who wait do not ask in step


if sys.platform == "win32":
    import msvcrt

    def take(file: BinaryIO) -> None:
        """Lock the first byte, or raise PermissionError if another process has it."""
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)

    def _release(file: BinaryIO) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def take(file: BinaryIO) -> None:
        """Lock the file, or raise BlockingIOError if another process has it."""
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _release(file: BinaryIO) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)


class FolderStore:
    """Keeps entries and files in a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.where: str = str(path)

    def exists(self) -> bool:
        """See `Store`."""
        if self.path.is_dir():
            return True
        if self.path.exists():
            raise NotADirectoryError(errno.ENOTDIR, "a file is there, where a folder is expected")
        return False

    def stamp(self) -> Any:
        """See `Store`; it does not change if somebody writes into an entry that is there."""
        # No file is opened or looked at: the names of the entries tell their content.
        try:
            return self.path.stat().st_mtime_ns, frozenset(self._listed(".json"))
        except OSError:
            return None

    def check_writable(self) -> None:
        """See `Store`; leaves nothing behind."""
        self.exists()
        for place in (self.path, *(self.path / name for name in ("signatures", "rankings"))):
            try_writing(place)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """See `Store`; only writers of this machine are kept out."""
        self._make()
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(locked(self.path / "lock"))
            except NoLocks as error:
                if self.path not in _WITHOUT_LOCKS:
                    _WITHOUT_LOCKS.add(self.path)
                    warn(
                        f"the file system of the ledger {self.where} has no locks ({error.strerror or error}): two "
                        "writers at once may append to the same head, as in two clones: merge before you freeze"
                    )
            yield

    def reading(self) -> contextlib.AbstractContextManager[None]:
        """See `Store`; files need no connection."""
        return contextlib.nullcontext()

    def entries(self) -> dict[str, str]:
        """See `Store`."""
        texts = {}
        for name in self._listed(".json"):
            try:
                # Windows programs begin a text with a mark. Bytes that are no text must not look
                # like other text.
                texts[name] = (
                    (self.path / f"{name}.json").read_bytes().decode("utf-8-sig", "surrogateescape")
                )
            except FileNotFoundError:  # git took it away meanwhile, to show another branch
                continue
            except IsADirectoryError:
                texts[name] = ""
        return texts

    def add(self, entries: Mapping[str, str]) -> None:
        """See `Store`."""
        for name, text in entries.items():
            write_whole(self.path / f"{name}.json", text.encode())

    def keep(self, name: str, data: bytes) -> None:
        """See `Store`."""
        target = self.path / name
        if not target.is_file():
            self._make()
            target.parent.mkdir(exist_ok=True)
            write_whole(target, data)

    def load(self, name: str) -> bytes | None:
        """See `Store`."""
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return None

    def files(self) -> list[str]:
        """See `Store`."""
        return [file.relative_to(self.path).as_posix() for file in self.path.glob("*/*.bin")]

    def _listed(self, suffix: str) -> list[str]:
        # Other programs may keep files of their own in the folder.
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
