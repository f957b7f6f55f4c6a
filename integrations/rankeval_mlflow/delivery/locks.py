"""Lock files between processes. A lock ends with its process, so a crash leaves none behind."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


def take(descriptor: int) -> None:
    """Lock an open file, or raise OSError at once."""
    if sys.platform == "win32":
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextlib.contextmanager
def held(path: Path, patience: float) -> Iterator[None]:
    """Wait for a lock and hold it. The file is not removed: else two processes could lock two files of one name.

    Parameters
    ----------
    path : Path
        The file to lock; its folder is made if it does not exist.
    patience : float
        Seconds to wait.

    Raises
    ------
    TimeoutError
        If another process holds the lock for longer.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    deadline = time.monotonic() + patience
    with path.open("a") as handle:
        while True:
            try:
                take(handle.fileno())
                break
            except OSError as error:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"another process has held {path} for {patience:.0f} s") from error
                time.sleep(0.05)
        yield
