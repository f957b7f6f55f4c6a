"""The memory of a call, and how many rows of one query fit into the share of each process.

memory   =   the program itself, once a process   +   rows that are being scored   +   the result
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rankeval._checks import shown, whole_number
from rankeval.errors import InvalidInput
from rankeval.evaluation.streaming.rows import BATCH

_PROGRAM = 256 << 20
"""Bytes of a process that has loaded the library, and of one batch while it is scored (bench_streaming)."""

_ROW = 128
"""Bytes of a row while it is scored, with all copies (bench_streaming)."""

_READ = 16
"""Bytes of a row as it is read, at least."""

_UNITS = {"": 1, "B": 1, **{f"{unit}B": 1000**power for power, unit in enumerate("KMGT", 1)}}
_UNITS |= {f"{unit}IB": 1024**power for power, unit in enumerate("KMGT", 1)}


@dataclass(frozen=True)
class Share:
    """What each process may have.

    Attributes
    ----------
    n_bytes : int
        Bytes for rows.
    """

    n_bytes: int

    @property
    def most_rows(self) -> int:
        """Rows that may be scored together."""
        return self.n_bytes // _ROW

    def holds(self, n_bytes: float, n_rows: int) -> bool:
        """Say whether rows of so many bytes may be held while so many of them are scored."""
        return n_bytes + n_rows * (_ROW - _READ) <= self.n_bytes


def share_of(memory: int | str | None, n_jobs: int) -> Share:
    """Return what each process may have of the memory of a call.

    Parameters
    ----------
    memory : int or str, optional
        Bytes, or a text such as ``"1GB"``; by default 512 MB for each process.
    n_jobs : int
        The number of processes that score.

    Raises
    ------
    InvalidInput
        If it is no amount of memory, or too little for so many processes.
    """
    programs = (n_jobs + (n_jobs > 1)) * _PROGRAM  # the caller's own process waits for the others
    least = programs + n_jobs * 2 * BATCH * _ROW
    given = max(n_jobs * 512_000_000, least) if memory is None else bytes_of(memory)
    if given < least:
        raise InvalidInput(
            f"memory={memory!r} is too little for n_jobs={n_jobs}: give at least {-(-least // 1_000_000)}MB"
            + (", or fewer processes" if n_jobs > 1 else "")
        )
    return Share((given - programs) // n_jobs)


def bytes_of(memory: int | str) -> int:
    """Return an amount of memory in bytes.

    Parameters
    ----------
    memory : int or str
        Bytes, or a text such as ``"1.5GB"`` or ``"512MiB"``.

    Raises
    ------
    InvalidInput
        If it is no such amount.

    Examples
    --------
    >>> bytes_of("1.5GB"), bytes_of("2 MiB")
    (1500000000, 2097152)
    """
    if isinstance(memory, str):
        found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", memory)
        if found and found[2].upper() in _UNITS:
            return int(float(found[1]) * _UNITS[found[2].upper()])
    elif (n_bytes := whole_number(memory)) is not None and n_bytes > 0:
        return n_bytes
    raise InvalidInput(f"memory is {shown(memory)}; expected bytes, or a text such as '1GB' or '512MiB'")
