"""Lock files between processes. A lock ends with its process, so a crash leaves none behind; the file is removed.

Removing is safe, since whoever has locked a file checks that it is still the one of that name. Else two processes could
lock two files of one name: the first removes its file while the second waits for it, and a third makes a new one.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


@contextlib.contextmanager
def held(path: Path, patience: float) -> Iterator[None]:
    """Wait for a lock and hold it.

    Parameters
    ----------
    path : Path
        The file to lock; its folder is made if it does not exist.
    patience : float
        Seconds to wait; 0 to try once.

    Raises
    ------
    TimeoutError
        If another process holds the lock for longer.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    deadline = time.monotonic() + patience
    while (descriptor := _locked(path)) is None:
        if time.monotonic() >= deadline:
            raise TimeoutError(f"another process has held {path} for {patience:.0f} s")
        time.sleep(0.05)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # Windows does not remove an open file; the next holder does
            path.unlink()
        os.close(descriptor)


def _locked(path: Path) -> int | None:
    """Lock a file and return its descriptor; None if another process holds it, or has just removed it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if sys.platform == "win32":
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_ino == path.stat().st_ino:
            return descriptor
    except OSError:  # held by another, or gone since
        pass
    os.close(descriptor)
    return None
