"""Write files whole: under a temporary name, then renamed."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from rankeval.errors import InvalidInput
from rankeval.io.opening import with_folder

COMPRESSION = {".gz": "gzip", ".zst": "zstd"}


def write_atomically(path: str | os.PathLike[str], pieces: Iterable[bytes | pa.Buffer]) -> None:
    """Write a file under a temporary name and rename it, so that nobody ever sees half of it.

    Parameters
    ----------
    path : path
        Where to; ``.gz`` and ``.zst`` are compressed.
    pieces : iterable of bytes-like
        The content.

    Raises
    ------
    InvalidInput
        When there is no such folder, or nothing may be written there.
    """
    where = Path(path)
    # Not by mkstemp, whose files only their owner may read: a result is for those whom the umask lets read it.
    temporary = where.with_name(f".{where.name}.{os.getpid()}.{threading.get_ident()}.part")
    try:
        file = temporary.open("wb")
    except OSError as error:
        folder = where.parent
        reason = error.strerror if folder.is_dir() else f"there is no folder {str(folder)!r}{with_folder(folder)}"
        raise InvalidInput(f"cannot write {str(where)!r}: {reason}") from error
    try:
        with file:
            compression = COMPRESSION.get(where.suffix)
            sink = pa.PythonFile(file, mode="w")
            stream = pa.CompressedOutputStream(sink, compression) if compression else sink
            for piece in pieces:
                stream.write(piece)
            stream.close()
        temporary.replace(where)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
