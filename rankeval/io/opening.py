"""Opening files: plain, gzip or zstd, from a pipe or a device, within limits.

Whatever goes wrong while a file is read says which file it was.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from rankeval.errors import FileFormatError, InvalidInput, RankevalError
from rankeval.io.limits import ALWAYS, DEFAULT, Limits
from rankeval.io.text import BLOCK, BOM, TextCheck, check_text

GZIP, ZSTD, PARQUET = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1"
"""How files of these kinds begin."""

_NOT_READ = {b"BZh91AY&SY": "bzip2", b"\xfd7zXZ\x00": "xz", b"PK\x03\x04": "zip"}
"""How packed files begin that are not read."""


@contextmanager
def reading(path: str | os.PathLike[str], limits: Limits = DEFAULT) -> Iterator[pa.NativeFile]:
    """Open a file as `open_source` does, and see to it that what goes wrong says which file it was.

    Parameters
    ----------
    path : path
        The file.
    limits : Limits
        What it may hold.

    Raises
    ------
    InvalidInput
        If the file does not exist or cannot be read.
    FileFormatError
        If it is compressed and damaged, or changed while it was read.
    LimitExceeded
        If it is larger than a limit allows.
    """
    where = Path(path)
    try:
        with open_source(where, limits) as source:
            before = _size(where)
            yield source
            _check_unchanged(where, before)
    except RankevalError:
        raise
    except Exception as error:
        error.add_note(f"while reading {where}")
        raise


def _check_unchanged(where: Path, before: int | None) -> None:
    """Refuse what somebody was writing: its last row may be half of one."""
    if (after := _size(where)) != before:
        raise FileFormatError(
            f"{where} changed while it was read, from {before} to {after} bytes: read it when it is whole"
        )


def _size(where: Path) -> int | None:
    return where.stat().st_size if where.is_file() else None


def read_bytes(path: str | os.PathLike[str], limits: Limits = DEFAULT) -> bytes:
    """Return the content of a file, uncompressed.

    Parameters
    ----------
    path : path
        The file.
    limits : Limits
        What it may hold.

    Raises
    ------
    InvalidInput
        If the file does not exist or cannot be read.
    FileFormatError
        If it is compressed and damaged, or changed while it was read.
    LimitExceeded
        If it is larger than a limit allows.
    """
    with reading(path, limits) as source:
        return bytes(source.read())


def read_text(path: str | os.PathLike[str], limits: Limits = DEFAULT) -> bytes:
    """Return the bytes of a text, uncompressed: no NUL in it, and no CR within a line.

    Parameters
    ----------
    path : path
        The file.
    limits : Limits
        What it may hold.

    Raises
    ------
    InvalidInput, FileFormatError, LimitExceeded
        As `read_bytes`, and for what is no text.
    """
    with reading(path, limits) as source:
        check_text(source, str(path), limits)
        return bytes(source.read()).removeprefix(BOM)


def open_source(path: str | os.PathLike[str], limits: Limits = DEFAULT) -> pa.NativeFile:
    """Open a file to be read, uncompressed, as often as needed; what is not plain on disk is read into memory.

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
        If it is compressed and damaged, or by a program whose files are not read.
    LimitExceeded
        If it is larger than a limit allows.
    """
    where = Path(path)
    try:
        # A pipe can be read once only.
        source = pa.OSFile(os.fsencode(where)) if where.is_file() else pa.BufferReader(_streamed(where, limits))
        start = source.read(max(map(len, _NOT_READ)))
        source.seek(0)
        for magic, name in _NOT_READ.items():
            if start.startswith(magic):
                raise FileFormatError(f"{where} is a {name} file, which is not read: unpack it first")
        for magic, name in ((GZIP, "gzip"), (ZSTD, "zstd")):
            if start.startswith(magic):
                with source:
                    return pa.BufferReader(_decompressed(source, name, where, limits))
    except FileNotFoundError as error:
        raise InvalidInput(f"there is no file {str(where)!r}{with_folder(where)}") from error
    except IsADirectoryError as error:
        raise InvalidInput(f"{str(where)!r} is a folder: name a file") from error
    except OSError as error:
        raise InvalidInput(f"cannot read {str(where)!r}: {error.strerror or error}") from error
    except ValueError as error:
        if isinstance(error, RankevalError):
            raise
        raise InvalidInput(f"{str(where)!r} cannot be the name of a file: {error}") from error  # NUL in it
    return source


def _streamed(where: Path, limits: Limits) -> pa.Buffer:
    """Read a pipe or a device to its end; what is no text, such as /dev/zero, is refused before."""
    sink, total = pa.BufferOutputStream(), 0
    check = TextCheck(str(where), limits)
    packed = None
    with where.open("rb") as file:
        while block := file.read(BLOCK):
            packed = block.startswith((GZIP, ZSTD, PARQUET)) if packed is None else packed
            total += len(block)
            if total > limits.stream:
                raise limits.exceeded("stream", str(where), "more bytes come out of it")
            if not packed:
                check.see(block, 0, len(block))
            sink.write(block)
    return sink.getvalue()


def with_folder(where: Path) -> str:
    """Say from which folder a relative path was meant."""
    return "" if where.is_absolute() else f" in {str(Path.cwd())!r}"


def _decompressed(source: pa.NativeFile, name: str, where: Path, limits: Limits) -> pa.Buffer:
    """Expand a file piece by piece, so that one that expands without end is found out early."""
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
