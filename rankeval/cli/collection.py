"""The test collection of a guard command, given as files: reading it and the rankings of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankeval.cli.options import COLLECTION
from rankeval.errors import FileFormatError, InvalidInput

if TYPE_CHECKING:
    from rankeval.collection.data import RankingData
    from rankeval.io.limits import Limits

_SCORE = "score"
"""The column of a table of scores, as in the predictions of an experiment."""


@dataclass(frozen=True)
class CollectionFiles:
    """A test collection as the options of a command name it: judgments, or rows with labels.

    Attributes
    ----------
    qrels, texts : Path, optional
        A file of judgments, and one of the queries' texts.
    data : Path, optional
        A file of rows, or a folder of LETOR.
    qid, label, docid, features, part
        Columns of a table.
    input_format : str, optional
        Format of the judgments or of the table.
    limit : list of str, optional
        Limits to raise.
    """

    qrels: Path | None
    texts: Path | None
    data: Path | None
    qid: str | None
    label: str | None
    docid: str | None
    features: list[str] | None
    part: str | None
    input_format: str | None
    limit: list[str] | None

    @classmethod
    def taken(cls, given: dict[str, Any]) -> CollectionFiles:
        """Take the options of a collection out of those that a command was given."""
        return cls(**{name: given.pop(name) for name in COLLECTION.split()})

    @property
    def limits(self) -> Limits:
        """The limits on files."""
        from rankeval.io.limits import limits_of

        return limits_of(self.limit or ())

    def load(self) -> dict[str, Any]:
        """Return the collection as arguments of `Guard.register`.

        Raises
        ------
        InvalidInput
            If the options name no collection or two, or a file cannot be read.
        """
        if (self.qrels is None) == (self.data is None):
            raise InvalidInput("name the test collection: judgments (--qrels) or rows with labels (--data)")
        if self.qrels is None:
            if self.texts is not None:
                raise InvalidInput("--texts goes with --qrels")
            return {"X": self._rows(self.data or Path())}
        of_table = {"--qid": self.qid, "--label": self.label, "--docid": self.docid, "--feature": self.features}
        if unread := [option for option, given in (*of_table.items(), ("--part", self.part)) if given]:
            raise InvalidInput(f"{', '.join(unread)} name columns of --data: leave them out with --qrels")
        from rankeval.collection.qrels import Qrels

        texts = None if self.texts is None else _texts(self.texts, self.limits)
        return {"qrels": Qrels.read(self.qrels, self.input_format, limits=self.limits), "queries": texts}

    def systems(self, given: Iterable[str]) -> dict[str, Any]:
        """Return the rankings of systems: runs for judgments, scores for rows.

        Parameters
        ----------
        given : iterable of str
            ``NAME=PATH`` each.

        Raises
        ------
        InvalidInput
            If a name is missing or stands twice, or a file cannot be read.
        """
        from rankeval.collection.run import Run

        found: dict[str, Any] = {}
        for one in given:
            name, equals, path = one.partition("=")
            if not (name and equals and path):
                raise InvalidInput(f"the system {one!r} is not NAME=PATH, such as bm25=bm25.run")
            if name in found:
                raise InvalidInput(f"two systems are called {name!r}")
            by_judgments = self.qrels is not None
            found[name] = Run.read(path, limits=self.limits) if by_judgments else _scores(Path(path), self.limits)
        return found

    def _rows(self, path: Path) -> RankingData:
        from rankeval import datasets

        if self.qid is None and self.label is None:
            if unread := [
                f"--{name.replace('_', '-')}" for name in ("docid", "part", "input_format") if getattr(self, name)
            ]:
                raise InvalidInput(f"{', '.join(unread)} need --qid and --label, the columns of a table")
            if not path.is_dir():
                return datasets.load_letor(path, limits=self.limits)
            parts = datasets.load_letor_parts(path, limits=self.limits)
            return _test_part(parts, str(path))
        if self.qid is None or self.label is None:
            raise InvalidInput("a table needs --qid and --label, the columns of the query and of the relevance")
        columns: dict[str, Any] = {"qid": self.qid, "label": self.label, "docid": self.docid, "limits": self.limits}
        columns |= {"features": self.features or None, "format": self.input_format}
        if self.part is None:
            return datasets.load_table(path, **columns)
        column, _, value = self.part.partition("=")
        parts = datasets.load_table_parts(path, part=column, test=value or None, others="drop", **columns)
        return _test_part(parts, f"{path}, column {column}")


def _test_part(parts: dict[str, RankingData], where: str) -> RankingData:
    if "test" not in parts:
        raise InvalidInput(f"{where} has no test part; it has: {', '.join(parts) or 'none'}")
    return parts["test"]


def _texts(path: Path, limits: Limits) -> dict[str, str]:
    """Read the texts of queries."""
    from rankeval.io.opening import read_text

    found = {}
    for number, line in enumerate(read_text(path, limits).decode().splitlines(), start=1):
        name, tab, text = line.partition("\t")
        if not (name and tab):
            raise FileFormatError(f"{path}, line {number}: expected a query, a tab and its text, found {line[:80]!r}")
        found[name] = text
    return found


def _scores(path: Path, limits: Limits) -> list[float]:
    """Read the scores of rows in their order: one number a line, or the column ``score`` of a table."""
    from rankeval.io.opening import PARQUET, read_bytes, read_text, reading
    from rankeval.io.tables import open_table

    start = read_bytes(path, limits)[:1024]
    first = start.partition(b"\n")[0].strip()
    if not start.startswith(PARQUET) and _number(first.decode(errors="replace")) is not None:
        lines = read_text(path, limits).decode().splitlines()
        return [_checked(line, f"{path}, line {number}") for number, line in enumerate(lines, start=1)]
    with reading(path, limits) as file:
        source = open_table(file, str(path), None, limits)
        if _SCORE not in source.kinds:
            raise FileFormatError(
                f"{path}: expected one score a line, or a table with a column {_SCORE!r}; found the columns "
                f"{', '.join(map(repr, source.kinds))}"
            )
        column = source.columns([_SCORE]).column(_SCORE).to_pylist()
    return [_checked(value, f"{path}, {source.place(row)}") for row, value in enumerate(column)]


def _checked(value: Any, where: str) -> float:
    found = _number(value)
    if found is None:
        raise FileFormatError(f"expected a score, found {str(value)[:80]!r}", where=where)
    return found


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
