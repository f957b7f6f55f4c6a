"""How large what a file holds may be, before reading it would exhaust the machine.

A file is refused once it is beyond a limit, with the limit's name; a caller who knows the file to be sound raises it:
``Run.read(path, limits=Limits(expansion=1000))``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

from rankeval._registry import unknown
from rankeval.errors import InvalidInput, LimitExceeded

ALWAYS = 1 << 24
"""Bytes that any compressed file may expand to: what is small does no harm, however well it was packed."""


@dataclass(frozen=True)
class Limits:
    """Limits on the size of a file and of its parts.

    Parameters
    ----------
    expansion : int
        How many times as large as itself a compressed file may become (gzip, zstd, and the rows of Parquet), from
        16 MB on. Rankings and features pack 3 to 20 times.
    stream : int
        Bytes that are read from a pipe or a device, whose end nobody knows.
    line : int
        Bytes of one line of text.
    feature : int
        The largest feature index of a learning-to-rank file: each feature up to it becomes a column.

    Raises
    ------
    InvalidInput
        For a limit that is no whole number above 0.
    """

    expansion: int = 100
    stream: int = 1 << 30
    line: int = 1 << 20
    feature: int = 1 << 20

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise InvalidInput(f"the limit {one.name} is {value!r}: expected a whole number above 0")

    def exceeded(self, name: str, where: str, found: str) -> LimitExceeded:
        """Make the error for a file that is beyond a limit.

        Parameters
        ----------
        name : str
            The limit.
        where : str
            What messages call the file, with the line if it is known.
        found : str
            What is too large.
        """
        limit = getattr(self, name)
        return LimitExceeded(
            f"{where}: {found}, beyond the limit of {limit:,}; if the file is sound, raise it: "
            f"limits=Limits({name}=...)"
        )


DEFAULT = Limits()


def limits_of(settings: Iterable[str]) -> Limits:
    """Return the limits with some of them set anew.

    Parameters
    ----------
    settings : iterable of str
        ``"name=value"``.

    Raises
    ------
    InvalidInput
        For another form, a limit that does not exist, or a value that is no whole number.
    """
    known = [one.name for one in fields(Limits)]
    given = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if equals and name not in known:
            raise unknown("limit", name, known)
        if not (equals and value.isascii() and value.isdigit() and len(value) < 19):
            raise InvalidInput(f"the limit {setting!r} should be name=value, the value a whole number; {known}")
        given[name] = int(value)
    return replace(DEFAULT, **given)
