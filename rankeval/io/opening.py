"""Open and replace files: plain, gzip or zstd, from a pipe or a device, within limits.

::

    path -> plain on disk ------------------------------> pa.OSFile, read in blocks by the reader
         -> gzip or zstd --> unpacked piece by piece ---> pa.BufferReader in memory
         -> pipe or device -> read to its end, once ----> pa.BufferReader in memory

A compressed file and a pipe do not tell their size. Their bytes are counted on the way, and refused at the limit
before memory is exhausted. An unforeseen error gets a note with the path. The trap is a file that another program is
still writing: its last row may be half a row, so its size is compared before and after.
"""

from __future__ import annotations

import os
import threading
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from rankeval.errors import FileFormatError, InvalidInput, RankevalError
from rankeval.io.limits import ALWAYS, DEFAULT, Limits
from rankeval.io.text import BLOCK, BOM, TextCheck, check_text

COMPRESSION = {".gz": "gzip", ".zst": "zstd"}
PARQUET = b"PAR1"
_PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
# Frames that zstd skips: parallel packers put their notes there, also before the first row.
_PACKED |= {bytes([kind]) + b"\x2a\x4d\x18": "zstd" for kind in range(0x50, 0x60)}
_NOT_READ = {b"BZh91AY&SY": "bzip2", b"\xfd7zXZ\x00": "xz", b"PK\x03\x04": "zip"}


@contextmanager
def reading(path: str | os.PathLike[str], limits: Limits = DEFAULT) -> Iterator[pa.NativeFile]:
    """Open a file uncompressed, to be read as often as needed; errors while it is open name it.

    Parameters
    ----------
    path : path
        The file.
    limits : Limits
        How far it may expand, and how much of a pipe is read.

    Raises
    ------
    InvalidInput
        If the file does not exist or cannot be read.
    FileFormatError
        If it is damaged, compressed by another program, or changed while it was read.
    LimitExceeded
        If it exceeds a limit.
    """
    where = Path(path)
    try:
        with _open(where, limits) as source:
            before = _size(where)
            yield source
            _check_unchanged(where, before)
    except RankevalError:
        raise
    except Exception as error:
        error.add_note(f"while reading {where}")
        raise


def _check_unchanged(where: Path, before: int | None) -> None:
    if (after := _size(where)) != before:
        raise FileFormatError(
            f"{where} changed while it was read, from {before} to {after} bytes: read it when it is whole"
        )


def _size(where: Path) -> int | None:
    return where.stat().st_size if where.is_file() else None


def read_bytes(path: str | os.PathLike[str], limits: Limits = DEFAULT) -> bytes:
    """Return the content of a file, uncompressed; raises as `reading` does."""
    with reading(path, limits) as source:
        return bytes(source.read())


def read_text(path: str | os.PathLike[str], limits: Limits = DEFAULT) -> bytes:
    """Return the bytes of a text, uncompressed; raises as `reading` and `check_text` do."""
    with reading(path, limits) as source:
        check_text(source, str(path), limits)
        return bytes(source.read()).removeprefix(BOM)


def _open(where: Path, limits: Limits) -> pa.NativeFile:
    try:
        # A pipe can be read only once.
        source = pa.OSFile(os.fsencode(where)) if where.is_file() else pa.BufferReader(_streamed(where, limits))
        start = source.read(max(map(len, _NOT_READ)))
        source.seek(0)
        for magic, name in _NOT_READ.items():
            if start.startswith(magic):
                raise FileFormatError(f"{where} is a {name} file, which is not read: unpack it first")
        for magic, name in _PACKED.items():
            if start.startswith(magic):
                with source:
                    return pa.BufferReader(_unpacked(source, name, where, limits))
    except FileNotFoundError as error:
        raise InvalidInput(f"there is no file {str(where)!r}{_with_folder(where)}") from error
    except IsADirectoryError as error:
        raise InvalidInput(f"{str(where)!r} is a folder: name a file") from error
    except OSError as error:
        raise InvalidInput(f"cannot read {str(where)!r}: {error.strerror or error}") from error
    except RankevalError:
        raise
    except ValueError as error:  # NUL in it
        raise InvalidInput(f"{str(where)!r} cannot be the name of a file: {error}") from error
    return source


def _streamed(where: Path, limits: Limits) -> pa.Buffer:
    """Read a pipe or a device to its end; text is checked on the way, so that /dev/zero is refused at once."""
    sink, total = pa.BufferOutputStream(), 0
    check = TextCheck(str(where), limits)
    is_binary = None
    with where.open("rb") as file:
        while block := file.read(BLOCK):
            is_binary = block.startswith((*_PACKED, PARQUET)) if is_binary is None else is_binary
            total += len(block)
            if total > limits.stream:
                raise limits.exceeded("stream", str(where), "more bytes come out of it")
            if not is_binary:
                check.see(block, 0, len(block))
            sink.write(block)
    return sink.getvalue()


def _unpacked(source: pa.NativeFile, name: str, where: Path, limits: Limits) -> pa.Buffer:
    """Unpack a file piece by piece, so that one without end is refused early."""
    sink, total = pa.BufferOutputStream(), 0
    try:
        with pa.CompressedInputStream(source, name) as stream:
            while piece := stream.read_buffer(BLOCK):
                total += piece.size
                if total > max(ALWAYS, limits.expansion * source.tell()):
                    found = f"it expands to more than {total / source.tell():.0f} times its size"
                    raise limits.exceeded("expansion", str(where), found)
                sink.write(piece)
    except (OSError, EOFError, zlib.error) as error:
        raise FileFormatError(f"{where} is damaged: it starts as {name} but does not decompress ({error})") from error
    return sink.getvalue()


def draft_of(path: Path, ending: str = ".part") -> Path:
    """Return the name of a file that is not whole yet, which no other thread or process uses."""
    return path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}{ending}")


@contextmanager
def replacing(path: Path, draft: Path, *, mode: int = 0o666, lasting: bool = False) -> Iterator[BinaryIO]:
    """Yield a file that gets its name when it is whole, so that nobody sees half of it.

    Parameters
    ----------
    path : Path
        The file.
    draft : Path
        Its name until then, in the same folder.
    mode : int
        The permissions, less the umask. The functions of `tempfile` let the owner alone read, and a result is for all.
    lasting : bool
        Whether to wait until the disk has it.
    """
    try:
        with open(draft, "wb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            yield file
            if lasting:
                file.flush()
                os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:  # an interrupt too leaves no half file behind
        draft.unlink(missing_ok=True)
        raise


def write_atomically(path: str | os.PathLike[str], pieces: Iterable[bytes | pa.Buffer]) -> None:
    """Write a file, whole or not at all.

    Parameters
    ----------
    path : path
        The file; with ``.gz`` or ``.zst`` it is compressed.
    pieces : iterable of bytes-like
        The content.

    Raises
    ------
    InvalidInput
        If there is no such folder, or nothing may be written there.
    """
    where = Path(path)
    with ExitStack() as stack:
        try:
            file = stack.enter_context(replacing(where, draft_of(where)))
        except OSError as error:
            folder = where.parent
            reason = error.strerror if folder.is_dir() else f"there is no folder {str(folder)!r}{_with_folder(folder)}"
            raise InvalidInput(f"cannot write {str(where)!r}: {reason}") from error
        compression = COMPRESSION.get(where.suffix)
        sink = pa.PythonFile(file, mode="w")
        stream = pa.CompressedOutputStream(sink, compression) if compression else sink
        for piece in pieces:
            stream.write(piece)
        stream.close()


def _with_folder(where: Path) -> str:
    """Return the current folder for messages, if the path is relative."""
    return "" if where.is_absolute() else f" in {str(Path.cwd())!r}"
