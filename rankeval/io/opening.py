r"""Open and replace files: plain, gzip, zstd, from a pipe, within limits; check that text is text.

::

    path -> plain on disk ------------------------------> pa.OSFile, read in blocks by the reader
         -> gzip or zstd --> unpacked piece by piece ---> pa.BufferReader in memory
         -> pipe or device -> read to its end, once ----> pa.BufferReader in memory

A compressed file and a pipe do not tell their size. Their bytes are counted on the way, and refused
at the limit before memory is exhausted. A caller who knows the file raises the limit:
``Run.read(path, limits=Limits(expansion=1000))``. An unforeseen error gets a note with the path.
The trap is a file that another program is still writing: its last row may be half a row, so its
size is compared before and after.

In text, NUL, a carriage return within a line, a byte order mark after the start, and lines beyond
the limit are refused. Each means that the file is not the one that it seems to be, and each would
cost rows in silence: a reader that splits at LF sees one line where an old Mac saw a thousand.
Bytes are searched in blocks, which costs a few per cent of the reading. A block ends with a line,
and the bytes behind it go to the next block::

    |q1 0 d1 1\nq1 0 d|2 0\nq2 0 d1 1\n|       what is read
    |q1 0 d1 1\n|q1 0 d2 0\nq2 0 d1 1\n|       blocks

The trap is the edge of what is read: CR may be its last byte and LF the first of the next.
"""

from __future__ import annotations

import math
import os
import re
import shlex
import threading
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from rankeval._arguments import explained
from rankeval._checks import check_count, require, said
from rankeval._registry import chosen
from rankeval.errors import FileFormatError, InvalidInput, LimitExceeded, RankevalError

ALWAYS = 1 << 24  # bytes that any compressed file may expand to, because so few do no harm


@explained
@dataclass(frozen=True)
class Limits:
    """Limits on the size of a file and of its parts.

    Parameters
    ----------
    expansion : int
        Size of the content of a compressed file (gzip, zstd, Parquet) as a multiple of the file's
        size, checked from 16 MB on. Rankings and features usually expand 3 to 20 times.
    stream : int
        Bytes that are read from a pipe or a device, whose size is not known beforehand.
    line : int
        Bytes of one line of text.
    feature : int
        The largest feature index of a learning-to-rank file, because each feature up to it becomes
        a column.

    Raises
    ------
    InvalidInput
        If a limit is not a whole number above 0.

    Examples
    --------
    >>> Limits(expansion=1000).expansion
    1000
    """

    expansion: int = 100
    stream: int = 1 << 30
    line: int = 1 << 20
    feature: int = 1 << 20

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            check_count(name, value)

    def exceeded(self, name: str, where: str, found: str) -> LimitExceeded:
        """Make the error for a file, or the line of a file, beyond a limit."""
        require(name in vars(self), "name", name, "the name of a limit")
        remedy = f"if the file is sound, raise it: limits=Limits({name}=...)"
        problem = f"{found}, beyond the limit of {getattr(self, name):,}"
        error = LimitExceeded(problem, where=where, remedy=remedy)
        error.limit = name
        return error


DEFAULT = Limits()


def limits_of(settings: Iterable[str]) -> Limits:
    """Return the default limits with some replaced by ``"name=value"``."""
    limits = {}
    for setting in settings:
        name, _, value = setting.partition("=")
        expected = f"name=value with a whole number; the names are {', '.join(vars(DEFAULT))}"
        require(_DIGITS.fullmatch(value), "limit", setting, expected)
        limits[chosen("limit", name, vars(DEFAULT))] = int(value)
    return replace(DEFAULT, **limits)


BOM = b"\xef\xbb\xbf"
BLOCK = 1 << 18  # bytes read at a time: they stay in the cache while they are checked (bench_files)
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
WHOLE = 2**53
"""Float64 holds every whole number up to here."""
MASKED = "an item that is masked is not ranked: leave out its row"
"""The remedy for a score of -inf."""
_DIGITS = re.compile(r"[+-]?\d{1,400}", re.ASCII)  # no float has more digits


def number_of(text: str, where: str) -> float:
    """Return a finite decimal number; nan, 0x10 and 1_0 are refused."""
    value = float(text) if NUMBER.fullmatch(text) else math.nan
    if not math.isfinite(value):
        hint = ""
        if math.isinf(value):
            hint = ", which is beyond 64-bit floats"
        elif re.fullmatch(r"[+-]?\d+,\d+", text):
            hint = "; the decimal sign is a point"
        problem = f"expected a finite number, found {text!r}{hint}"
        is_masked = text.casefold() in ("-inf", "-infinity")
        raise FileFormatError(problem, where=where, remedy=MASKED if is_masked else None)
    return value


def numbers_of_texts(texts: Sequence[str]) -> list[float]:
    """Return the numbers of texts that match `NUMBER`.

    If one is beyond 2**53, where floats round whole numbers, all texts of digits alone become ints.
    The column is then held or refused as the same numbers of a dict are.
    """
    values = [*map(float, texts)]
    if max(map(abs, values), default=0) < WHOLE:
        return values
    pairs = zip(texts, values, strict=True)
    return [int(text) if _DIGITS.fullmatch(text) else value for text, value in pairs]


def parsed_numbers(numbers: Any) -> Any:
    """Return the numbers of a list of texts, if all are written as in TREC files; else the list."""
    is_text = isinstance(numbers, list) and all(isinstance(number, str) for number in numbers)
    return numbers_of_texts(numbers) if is_text and all(map(NUMBER.fullmatch, numbers)) else numbers


_LF = b"\n"
# Byte -> what must stand beside it, and words. `re` takes thirty times as long as `in` to see that
# a byte is nowhere.
_NOT_TEXT = {
    b"\0": (b"", "found a NUL byte; expected text in UTF-8, not in UTF-16, and no binary file"),
    b"\r": (
        b"(?!\n)",
        "found a carriage return (CR) that no LF follows; end all lines with LF or all with CRLF",
    ),
    BOM[:1]: (
        b"(?<![^\n]\xef)\xbb\xbf",
        "found a byte order mark; were several files joined into one?",
    ),
}


def text_blocks(source: pa.NativeFile, where: str, limits: Limits) -> Iterator[bytes]:
    """Yield a text in blocks of whole lines, without a byte order mark at its start."""
    source.seek(0)
    seen = len(BOM) if source.read(len(BOM)) == BOM else 0
    source.seek(seen)
    rest = b""
    while (read := source.read(max(BLOCK, len(rest)))) or rest:
        read += source.read(1) if read.endswith(b"\r") else b""  # LF may follow
        block = rest + read
        longest = max(block.split(_LF), key=len) if len(block) > limits.line else b""
        fault = _fault_in(block)
        if fault or len(longest) > limits.line:
            too_long = f"the line has more than {limits.line:,} bytes"
            at, problem = fault or (block.find(longest), too_long)
            source.seek(0)  # counting lines all the time would slow down benchmark B
            place = f"{where}, line {source.read(seen + at).count(_LF) + 1}"
            if fault:
                source.seek(0)
                mark = source.read(4)
                is_wide = mark[:2] in (b"\xff\xfe", b"\xfe\xff")
                encoding = "UTF-32" if mark[2:] == b"\0\0" else "UTF-16"
                remedy = in_utf8(where, encoding=encoding) if is_wide else None
                raise FileFormatError(problem, where=place, remedy=remedy)
            raise limits.exceeded("line", place, problem)
        end = block.rfind(_LF) + 1 if read else len(block)
        seen, rest = seen + end, block[end:]
        if end:
            yield block[:end]


def _fault_in(block: bytes) -> tuple[int, str] | None:
    """Return where bytes stop to be text, and the reason; None for text."""
    for byte, (beside, problem) in _NOT_TEXT.items():
        if byte in block and (fault := re.search(byte + beside, block)):
            return fault.end(), problem
    return None


def checked_text(source: pa.NativeFile, where: str, limits: Limits) -> bytes:
    """Return the bytes of a text without a byte order mark; raise as `text_blocks` does."""
    for _ in text_blocks(source, where, limits):
        pass
    source.seek(0)
    return bytes(source.read()).removeprefix(BOM)


CUT = "the file is cut off here: its last line has no end"
"""The remedy for a last line with too few cells."""


def not_utf8(content: bytes, where: str, path: str, data: bytes) -> FileFormatError:
    """Make the error for a line of data that is not in UTF-8; ``where`` is its place in the file."""
    problem = f"expected UTF-8 text, found {content[:80]!r}"
    return FileFormatError(problem, where=where, remedy=in_utf8(path, data))


def in_utf8(path: str, data: bytes = b"", encoding: str = "") -> str:
    """Write the command that makes a copy of a text in UTF-8."""
    # Windows has letters where Latin-1 has control characters.
    encoding = encoding or ("CP1252" if re.search(rb"[\x80-\x9f]", data) else "LATIN1")
    copy = shlex.quote(f"utf8-{Path(path).name}")
    command = f"iconv -f {encoding} -t UTF-8 {shlex.quote(path)} > {copy}"
    return f"if it is {encoding} (else give iconv its encoding), write it in UTF-8: {command}"


def first_line(data: bytes) -> str:
    """Return the first line of a text that is not blank."""
    line = data.removeprefix(BOM).lstrip().partition(_LF)[0]
    return line.decode(errors="replace")


def filled_lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield number, from 1, and content of each line that is not blank."""
    return ((number, line) for number, line in enumerate(BytesIO(data), start=1) if line.strip())


COMPRESSION = {".gz": "gzip", ".zst": "zstd", ".lz4": "lz4"}
PARQUET = b"PAR1"
_LZ4 = b"\x04\x22\x4d\x18"
_PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", _LZ4: "lz4"}
# Frames that zstd skips: parallel packers put their notes there, also before the first row.
_PACKED |= {bytes([kind]) + b"\x2a\x4d\x18": "zstd" for kind in range(0x50, 0x60)}
_NOT_READ = {
    b"BZh91AY&SY": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"PK\x03\x04": "zip",
}


@contextmanager
def reading(path: str | os.PathLike[str], limits: Limits = DEFAULT) -> Iterator[pa.NativeFile]:
    """Open a file uncompressed, to be read as often as needed; errors while it is open name it."""
    where = as_path(path)
    require(
        isinstance(limits, Limits), "limits", limits, "Limits, such as rk.io.Limits(line=10**7)"
    )
    with _open(where, limits) as source:
        before = _size(where)
        try:
            yield source
        except RankevalError:
            raise
        except Exception as error:
            error.add_note(f"while reading {where}")
            raise
        if (after := _size(where)) != before:
            problem = f"the file changed while it was read, from {before} to {after} bytes"
            raise FileFormatError(problem, where=str(where), remedy="read it when it is whole")


def as_path(path: Any) -> Path:
    """Return the path of a file or folder, given as text or as a path."""
    fits = isinstance(path, (str, os.PathLike)) and _is_name(os.fspath(path))
    require(fits, "path", path, "the path of a file, as text")
    address = re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", os.fspath(path))
    if address and not Path(path).exists():
        problem = f"an address ({address[0]}/...) is not the path of a file"
        remedy = "download the file, and give the path of the copy"
        raise InvalidInput(problem, argument="path", remedy=remedy)
    return Path(path)


def _is_name(text: Any) -> bool:
    try:
        return isinstance(text, str) and b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def _size(where: Path) -> int | None:
    return where.stat().st_size if where.is_file() else None


def read_bytes(path: str | os.PathLike[str], limits: Limits = DEFAULT) -> bytes:
    """Return the content of a file, uncompressed; raises as `reading` does."""
    with reading(path, limits) as source:
        return bytes(source.read())


def read_text(path: str | os.PathLike[str], limits: Limits = DEFAULT) -> bytes:
    """Return the bytes of a text, uncompressed; raises as `reading` and `checked_text` do."""
    with reading(path, limits) as source:
        return checked_text(source, str(path), limits)


def _open(where: Path, limits: Limits) -> pa.NativeFile:
    try:
        if where.is_file():
            source: pa.NativeFile = pa.OSFile(os.fsencode(where))
        else:  # a pipe can be read only once
            source = pa.BufferReader(_streamed(where, limits))
        start = source.read(max(map(len, _NOT_READ)))
        source.seek(0)
        names = (_PACKED | _NOT_READ).items()
        packing = next((name for magic, name in names if start.startswith(magic)), None)
        if packing in _NOT_READ.values():
            way = "save it as CSV" if where.suffix in (".xlsx", ".ods") else "unpack it first"
            raise FileFormatError(f"{where} is a {packing} file, which is not read: {way}")
        if packing:
            n_packed = source.size()
            with source:
                unpacked = _unpacked(source, packing, where, limits)
            if packing == "lz4" and bytes(unpacked[: len(_LZ4)]) == _LZ4:  # ranx packs twice
                unpacked = _unpacked(pa.BufferReader(unpacked), packing, where, limits, n_packed)
            return pa.BufferReader(unpacked)
    except RankevalError:
        raise
    except (OSError, ValueError) as error:
        known = {
            FileNotFoundError: f"there is no file {str(where)!r}{_with_folder(where)}",
            IsADirectoryError: f"{str(where)!r} is a folder: name a file",
            ValueError: f"{str(where)!r} cannot be the name of a file: {error}",  # NUL in it
        }
        reason = getattr(error, "strerror", None) or error
        problem = known.get(type(error), f"cannot read {str(where)!r}: {reason}")
        raise InvalidInput(problem) from error
    return source


def _streamed(where: Path, limits: Limits) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with where.open("rb") as file:
        while block := file.read(BLOCK):
            if not sink.tell() and not block.startswith((*_PACKED, PARQUET)):
                # How a text begins is checked now, so that /dev/zero is refused at once; its reader
                # checks the whole.
                next(text_blocks(pa.BufferReader(block.rstrip(b"\r")), str(where), limits), None)
            sink.write(block)
            if sink.tell() > limits.stream:
                raise limits.exceeded("stream", str(where), "more bytes come out of it")
    return sink.getvalue()


def _unpacked(
    source: pa.NativeFile, name: str, where: Path, limits: Limits, n_packed: int = 0
) -> pa.Buffer:
    # Piece by piece, so that a file without end is refused early. ``n_packed`` is the size of the
    # file if the source is not the file itself.
    sink = pa.BufferOutputStream()
    try:
        with pa.CompressedInputStream(source, name) as stream:
            while piece := stream.read_buffer(BLOCK):
                sink.write(piece)
                n_read = n_packed or source.tell()
                if sink.tell() > max(ALWAYS, limits.expansion * n_read):
                    times = sink.tell() / n_read
                    found = f"it expands to more than {times:.0f} times its size"
                    raise limits.exceeded("expansion", str(where), found)
    except (OSError, EOFError, zlib.error) as error:
        reason = f"it starts as {name} but does not decompress ({error})"
        raise FileFormatError(f"{where} is damaged: {reason}") from error
    return sink.getvalue()


def draft_of(path: Path, ending: str = ".part") -> Path:
    """Return the name of a file that is not whole yet, which no other thread or process uses."""
    require(path.name, "path", str(path), "the path of a file")
    return path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}{ending}")


@contextmanager
def replacing(
    path: Path, draft: Path, *, mode: int = 0o666, lasting: bool = False
) -> Iterator[BinaryIO]:
    """Yield a file that gets its name when it is whole; with ``lasting`` the disk has it then."""
    # The functions of `tempfile` would let the owner alone read, and a result is for all: ``mode``,
    # less the umask.
    try:
        with open(draft, "wb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            yield file
            if lasting:
                file.flush()
                os.fsync(file.fileno())
        draft.replace(path)
    except BaseException as error:  # an interrupt too leaves no half file behind
        draft.unlink(missing_ok=True)
        # A full disk is found when a file is written.
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)
        raise


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Name the file in each error of the system, such as that of a full disk."""
    try:
        yield
    except OSError as error:
        folder = path.parent
        reason = error.strerror or said(error)
        if not os.path.isdir(folder):  # noqa: PTH112 - of a name too long, is_dir raises
            reason = f"there is no folder {str(folder)!r}{_with_folder(folder)}"
        raise InvalidInput(f"cannot write {str(path)!r}: {reason}") from error


def write_atomically(path: str | os.PathLike[str], pieces: Iterable[bytes | pa.Buffer]) -> None:
    """Write a file, whole or not at all."""
    where = as_path(path)
    packing = COMPRESSION.get(where.suffix)
    with (
        writing(where),
        replacing(where, draft_of(where)) as file,
        pa.output_stream(file, packing) as stream,
    ):
        for piece in pieces:
            stream.write(piece)


def _with_folder(where: Path) -> str:
    return "" if where.is_absolute() else f" in {str(Path.cwd())!r}"
