r"""Refuse bytes that no text format has, and parse the numbers of a text.

Refused are NUL, a carriage return within a line, a byte order mark after the start, and lines beyond the limit. Each
means that the file is not the one that it seems to be, and each would cost rows in silence: a reader that splits at LF
sees one line where an old Mac saw a thousand. Bytes are searched in blocks by `bytes.find`, which costs a few per cent
of the reading::

    block 1                     block 2
    |q1 0 d1 1\nq1 0 d|         |2 0\nq2 0 d1 1\n|
                 <--->           <->
                 _open: bytes of the line that the block leaves unfinished

The trap is the edge of a block: CR may be its last byte and LF the first of the next, and a line may begin in one
block and grow too long in the third.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import pyarrow as pa

from rankeval.errors import FileFormatError
from rankeval.io.limits import Limits

BOM = b"\xef\xbb\xbf"
BLOCK = 1 << 20
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
WHOLE = 2**53
"""Float64 holds every whole number up to here."""
_DIGITS = re.compile(r"[+-]?\d{1,400}", re.ASCII)  # no float has more digits
_LF, _CR = b"\n", b"\r"


def number_of(text: str, where: str) -> float:
    """Return a finite decimal number, or raise the error that says where it is none; nan, 0x10 and 1_0 are none."""
    if not NUMBER.fullmatch(text):
        hint = "; the decimal sign is a point" if re.fullmatch(r"[+-]?\d+,\d+", text) else ""
        raise FileFormatError(f"expected a finite number, found {text!r}{hint}", where=where)
    value = float(text)
    if not math.isfinite(value):
        raise FileFormatError(f"expected a finite number, found {text!r}, which is beyond 64-bit floats", where=where)
    return value


def numbers_of_texts(texts: Sequence[str]) -> list[float]:
    """Return the numbers of texts that match `NUMBER`.

    If one is beyond 2**53, where floats round whole numbers, all texts of digits alone become ints. The column is then
    held or refused as the same numbers of a dict are.
    """
    values = [*map(float, texts)]
    if max(map(abs, values), default=0) < WHOLE:
        return values
    return [int(text) if _DIGITS.fullmatch(text) else value for text, value in zip(texts, values, strict=True)]


class TextCheck:
    """Checks a text block by block, from its start.

    Parameters
    ----------
    where : str
        The file's name for messages.
    limits : Limits
        The longest line.
    source : Arrow file, optional
        The text, to be read again for the line of an error; that spares benchmark B the counting. Without it, lines are
        counted on the way.
    """

    def __init__(self, where: str, limits: Limits, source: pa.NativeFile | None = None) -> None:
        self.where = where
        self.limits = limits
        self._source = source
        self._seen = 0  # bytes of earlier blocks
        self._counted = 0  # lines that ended in them, if there is no source
        self._open = 0  # bytes of the line that the last block left unfinished
        self._cr = False  # whether the last block ended in CR

    def see(self, block: bytes | bytearray, start: int, end: int) -> bool:
        """Check the next block of the text, ``block[start:end]``, and return whether it holds CR.

        Raises
        ------
        FileFormatError
            For NUL, CR without LF, and a byte order mark at the start of a later line.
        LimitExceeded
            For a line beyond the limit.
        """
        if start == end:
            return False
        if (at := block.find(b"\0", start, end)) >= 0:
            is_utf16 = not self._seen and block[start : start + 2] in (b"\xff\xfe", b"\xfe\xff")
            hint = "; is it UTF-16?" if is_utf16 else ""
            raise self._wrong(block, start, at, f"found a NUL byte; expected text{hint}")
        has_return = self._check_returns(block, start, end)
        if block.find(BOM[:1], start, end) >= 0:
            self._check_marks(block, start, end)
        self._check_lengths(block, start, end)
        if self._source is None:
            self._counted += block.count(_LF, start, end)
        self._seen += end - start
        return has_return

    def end(self) -> None:
        """Refuse CR as the last byte of the text."""
        if self._cr:
            raise self._lone_return(self._lines() + 1)

    def _check_returns(self, block: bytes | bytearray, start: int, end: int) -> bool:
        if self._cr and block[start] != _LF[0]:
            raise self._lone_return(self._lines() + 1)
        at = block.find(_CR, start, end)
        self._cr = at >= 0 and block[end - 1] == _CR[0]
        if at < 0 or block.count(_CR, start, end) == block.count(b"\r\n", start, end) + self._cr:
            return at >= 0
        while block[at + 1] == _LF[0]:
            at = block.find(_CR, at + 1, end)
        raise self._lone_return(self._lines() + block.count(_LF, start, at) + 1)

    def _lone_return(self, line: int) -> FileFormatError:
        return FileFormatError(
            f"{self.where}, line {line}: found a carriage return (CR) that no LF follows; "
            "end all lines with LF or all with CRLF"
        )

    def _check_marks(self, block: bytes | bytearray, start: int, end: int) -> None:
        # One mark may begin the text, but no later line.
        begins = BOM if self._seen else BOM + BOM
        at = block.find(_LF + BOM, start, end) + 1
        if at or (not self._open and block[start : start + len(begins)] == begins):
            raise self._wrong(block, start, at or start, "found a byte order mark; were several files joined into one?")

    def _check_lengths(self, block: bytes | bytearray, start: int, end: int) -> None:
        longest = self.limits.line
        begin = start - self._open
        while end - begin > longest:
            # If any line ends in this window, all that end in it are short enough.
            newline = block.rfind(_LF, max(begin, start), min(end, begin + longest + 1))
            if newline < 0:
                place = f"{self.where}, line {self._lines() + block.count(_LF, start, max(begin, start)) + 1}"
                raise self.limits.exceeded("line", place, f"the line has more than {longest:,} bytes")
            begin = newline + 1
        last = block.rfind(_LF, start, end)
        self._open = end - 1 - last if last >= 0 else self._open + end - start

    def _lines(self) -> int:
        """Return the number of lines that ended in earlier blocks."""
        if self._source is None:
            return self._counted
        self._source.seek(0)
        left, lines = self._seen, 0
        while block := self._source.read(min(left, BLOCK)):
            lines += block.count(_LF)
            left -= len(block)
        return lines

    def _wrong(self, block: bytes | bytearray, start: int, at: int, found: str) -> FileFormatError:
        line = self._lines() + block.count(_LF, start, at) + 1
        return FileFormatError(f"{self.where}, line {line}: {found}")


def check_text(source: pa.NativeFile, where: str, limits: Limits) -> None:
    """Refuse a file that is no text, as `TextCheck.see` does, and go back to its start."""
    check = TextCheck(where, limits, source)
    source.seek(0)
    while block := source.read(BLOCK):
        check.see(block, 0, len(block))
    check.end()
    source.seek(0)
