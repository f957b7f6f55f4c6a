"""Limits on the size of a file and of its parts, so that no file exhausts the machine.

A file beyond a limit is refused by the limit's name. A caller who knows the file raises it:
``Run.read(path, limits=Limits(expansion=1000))``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

from rankeval._registry import unknown
from rankeval.errors import InvalidInput, LimitExceeded

ALWAYS = 1 << 24  # bytes that any compressed file may expand to, because so few do no harm


@dataclass(frozen=True)
class Limits:
    """Limits on the size of a file and of its parts.

    Parameters
    ----------
    expansion : int
        Size of the content of a compressed file (gzip, zstd, Parquet) as a multiple of the file's size, checked from
        16 MB on. Rankings and features usually expand 3 to 20 times.
    stream : int
        Bytes that are read from a pipe or a device, whose size is not known beforehand.
    line : int
        Bytes of one line of text.
    feature : int
        The largest feature index of a learning-to-rank file, because each feature up to it becomes a column.

    Raises
    ------
    InvalidInput
        If a limit is no whole number above 0.

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
        for one in fields(self):
            value = getattr(self, one.name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise InvalidInput(f"the limit {one.name} is {value!r}: expected a whole number above 0")

    def exceeded(self, name: str, where: str, found: str) -> LimitExceeded:
        """Make the error for a file beyond a limit, from the limit's name, the file (and line), and the size found."""
        problem = f"{found}, beyond the limit of {getattr(self, name):,}"
        remedy = f"if the file is sound, raise it: limits=Limits({name}=...)"
        error = LimitExceeded(problem, where=where, remedy=remedy)
        error.limit = name
        return error


DEFAULT = Limits()


def limits_of(settings: Iterable[str]) -> Limits:
    """Return the default limits with some replaced by ``"name=value"``.

    Parameters
    ----------
    settings : iterable of str
        One limit each.

    Raises
    ------
    InvalidInput
        If a limit does not exist, or its value is no whole number.
    """
    known = [one.name for one in fields(Limits)]
    given = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if equals and name not in known:
            raise unknown("limit", name, known)
        if not (equals and value.isascii() and value.isdigit() and len(value) < 19):
            raise InvalidInput(
                f"the limit {setting!r} is not name=value with a whole number; the limits are: {', '.join(known)}"
            )
        given[name] = int(value)
    return replace(DEFAULT, **given)
