"""Refuse bytes that no text format has: NUL, a carriage return within a line, a byte order mark after the start.

Each of them means that the file is another one than it seems, and each would cost rows in silence: a reader that
splits at LF sees one line where an old Mac saw a thousand. Lines beyond the limit are refused here too. All of it is
looked for in blocks of bytes by `bytes.find`, which costs a few per cent of the reading.
"""

from __future__ import annotations

import pyarrow as pa

from rankeval.errors import FileFormatError
from rankeval.io.limits import Limits

BOM = b"\xef\xbb\xbf"
BLOCK = 1 << 20
_LF, _CR = b"\n", b"\r"


class TextCheck:
    """Looks at a text block by block, from its start, and raises where it is none.

    Parameters
    ----------
    where : str
        What messages call the file.
    limits : Limits
        The longest line.
    source : Arrow file, optional
        The text, to be read again for the line of an error; without it, lines are counted on the way.
    """

    def __init__(self, where: str, limits: Limits, source: pa.NativeFile | None = None) -> None:
        self.where = where
        self.limits = limits
        self._source = source
        self._seen = 0  # bytes of earlier blocks
        self._counted = 0  # lines that ended in them, where there is no source
        self._open = 0  # bytes of the line that the last block left unfinished
        self._cr = False  # whether the last block ended in CR
        self._begun = False

    def see(self, block: bytes | bytearray, start: int, end: int) -> bool:
        """Look at the next block of the text, which stands in ``block[start:end]``.

        Parameters
        ----------
        block : bytes
            The memory.
        start, end : int
            The part of it.

        Returns
        -------
        bool
            Whether there is a CR in it.

        Raises
        ------
        FileFormatError
            For NUL, CR without LF, a byte order mark at the start of a later line, and a line beyond the limit.
        """
        if start == end:
            return False
        if (at := block.find(b"\0", start, end)) >= 0:
            hint = (
                "; is it UTF-16?" if not self._begun and block[start : start + 2] in (b"\xff\xfe", b"\xfe\xff") else ""
            )
            raise self._wrong(block, start, at, f"found a NUL byte; expected text{hint}")
        has_return = self._check_returns(block, start, end)
        if block.find(BOM[:1], start, end) >= 0:
            self._check_marks(block, start, end)
        self._check_lengths(block, start, end)
        if self._source is None:
            self._counted += block.count(_LF, start, end)
        self._seen += end - start
        self._begun = True
        return has_return

    def end(self) -> None:
        """Say that the text is over.

        Raises
        ------
        FileFormatError
            For a CR as the last byte.
        """
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
        begins = BOM if self._begun else BOM + BOM
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
        """Return how many lines ended in earlier blocks."""
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
    """Refuse a file that is no text, and leave it at its start.

    Parameters
    ----------
    source : Arrow file that can be read from its start again
        The text, uncompressed.
    where : str
        What messages call the file.
    limits : Limits
        The longest line.

    Raises
    ------
    FileFormatError
        As `TextCheck.see`.
    """
    check = TextCheck(where, limits, source)
    source.seek(0)
    while block := source.read(BLOCK):
        check.see(block, 0, len(block))
    check.end()
    source.seek(0)
