"""Files of a ledger on a disk: whole or not there, kept through a power cut, written by one process at a time."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

PATIENCE = 60.0
"""Seconds to wait for the lock of another writer."""

_ROOM = 1 << 16
"""Bytes that a trial writes: the opening of a thousand queries. A larger one that fails was not recorded, nor shown."""

_BLOCK = 1 << 20


def write_whole(target: Path, data: bytes, *, lasting: bool = True) -> None:
    """Write a file under a temporary name and rename it, so that nobody ever reads half of it.

    Parameters
    ----------
    target : path
        The file. Its folder exists.
    data : bytes
        The content.
    lasting : bool
        Whether to wait until the disk has it.
    """
    temporary = target.with_name(f"{target.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            if lasting:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:  # an interrupt too leaves no half file behind
        temporary.unlink(missing_ok=True)
        raise
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
    with room_held({folder / "rankeval": _ROOM}):
        pass


@contextlib.contextmanager
def room_held(sizes: Mapping[Path, int]) -> Iterator[None]:
    """Hold the room of files that will be written, by drafts of their sizes, until this context ends.

    That alone tells whether they can be written: a permission says nothing about a name that is too long, a full disk,
    a quota or a disk that is mounted for reading.

    Parameters
    ----------
    sizes : mapping of Path to int
        The bytes of each file.

    Raises
    ------
    OSError
        If a file cannot be written; it has the file's name.
    """
    with contextlib.ExitStack() as stack:
        for path, size in sizes.items():
            try:
                if path.is_dir():
                    raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
                # A name as long as those under which whole files are written.
                draft = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
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
    """Hold the lock of a file, which is made; the lock ends with this context, or when the process dies.

    Raises
    ------
    NoLocks
        If the file system has none.
    TimeoutError
        If another process holds it for a minute.
    """
    with path.open("ab") as file:
        _wait(file)
        try:
            yield
        finally:
            # Not left to the end of the file: a process that was forked meanwhile would go on holding it.
            _release(file)


def _wait(file: BinaryIO) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return _take(file)
        except (BlockingIOError, PermissionError) as error:
            if time.monotonic() > deadline:
                raise TimeoutError(f"another process has held its lock for {PATIENCE:.0f} s") from error
        except OSError as error:
            raise NoLocks(*error.args) from error
        time.sleep(random.uniform(0.001, 0.01))  # noqa: S311 - so that those who wait do not ask in step


if sys.platform == "win32":
    import msvcrt

    def _take(file: BinaryIO) -> None:
        """Lock the first byte, or raise PermissionError if another process has it."""
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)

    def _release(file: BinaryIO) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _take(file: BinaryIO) -> None:
        """Lock the file, or raise BlockingIOError if another process has it."""
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _release(file: BinaryIO) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)
