"""Read rankings by the names of their files, and score them, as several commands do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankeval._checks import few, require
from rankeval._registry import chosen
from rankeval.errors import InvalidInput

if TYPE_CHECKING:
    import pandas as pd

    from rankeval.collection.convention import Convention
    from rankeval.collection.qrels import Qrels
    from rankeval.collection.rows import Rows
    from rankeval.collection.run import Run
    from rankeval.evaluation import Evaluation
    from rankeval.io.opening import Limits


def by_file_name(paths: Sequence[Path], part: str = "name") -> dict[str, Path]:
    """Return paths by the names of their files; by paths if names are equal.

    ``NAME=PATH`` gives another name, unless there is a file of that very name, such as
    ``k1=2.run``. The part is "name", or "stem" without the suffix of the format. That of a
    compressed file is left out in both.
    """
    named = []
    for path in paths:
        name = ""
        if "=" in str(path) and not path.exists():
            name, _, file = str(path).partition("=")
            path = Path(file)  # noqa: PLW2901
        uncompressed = Path(str(path).removesuffix(".gz").removesuffix(".zst").removesuffix(".lz4"))
        named.append((name or getattr(uncompressed, part), path))
    return dict(named) if len(dict(named)) == len(named) else {str(path): path for _, path in named}


@dataclass(frozen=True)
class Reading:
    """How a command reads judgments and rankings, by its options."""

    limit: Limits
    parts: Mapping[str, str] | None = None  # Part -> column, in the files that have it
    systems: Sequence[str] | None = None  # Those to take of a table that has several
    grades: Mapping[str, float] | None = None
    found: set[tuple[str, str]] = field(default_factory=set)  # The parts and columns that were read

    @property
    def columns(self) -> dict[str, Any]:
        """The columns as a file takes them that may have other names."""
        return {part: (name,) for part, name in (self.parts or {}).items()}

    def judgments(self, path: Path, form: str | None = None, **columns: Any) -> Qrels:
        """Read judgments."""
        from rankeval.collection.qrels import Qrels

        wanted = columns | self.columns
        read = Qrels.read(path, form, columns=wanted, grades=self.grades, limits=self.limit)
        self._find(read)
        return read

    def rankings(
        self, paths: Iterable[Path], part: str = "name", *, one: bool = False
    ) -> Iterator[tuple[str, Run]]:
        """Yield rankings by the names of their files, or of their systems if a table has several."""
        from rankeval.collection.run import Run

        taken = set()
        for name, path in by_file_name([*paths], part).items():
            runs = Run.by_system(path, columns=self.columns, limits=self.limit)
            self._find(next(iter(runs.values())))
            has_several = len(runs) > 1
            systems = (self.systems if has_several else None) or [*runs]
            known = [chosen("system", system, runs) for system in systems]
            if has_several and one and not self.systems:
                problem = f"{path}: the table has the rankings of {len(runs)} systems: {few(known)}"
                way = (
                    "choose by --system, or let rankeval compare compare them, or drop their column"
                )
                raise InvalidInput(problem, argument="systems", remedy=way)
            for system in known:
                label = system if has_several else name
                label = f"{name}:{label}" if label in taken else label
                taken.add(label)
                yield label, runs[system]
        self.check()

    def check(self) -> None:
        """Refuse names of columns that no file has."""
        pairs = (self.parts or {}).items()
        lacking = [f"{part}={name}" for part, name in pairs if (part, name) not in self.found]
        require(not lacking, "parts", lacking, "columns of a file that was read")

    def _find(self, rows: Rows) -> None:
        self.found.update(getattr(rows.source, "columns", {}).items())


def text_frame(path: Path, ids: Sequence[str] | None = None) -> pd.DataFrame:
    """Read a table of CSV or Parquet; the cells of these columns of CSV, by default all, are text."""
    import pandas as pd

    if ".parquet" in path.suffixes:
        return pd.read_parquet(path)
    kinds: Any = str if ids is None else dict.fromkeys(ids, str)
    return pd.read_csv(path, dtype=kinds, keep_default_na=False, na_values=[""])


def by_query(path: Path, option: str) -> pd.Series[Any]:
    """Read a value of each query from a table with a column qid and one more, for an option of a command."""
    import pandas as pd

    try:
        frame = text_frame(path, ["qid"])
    except (OSError, ValueError) as error:
        raise InvalidInput(f"--{option} {path}: {error}") from error
    if "qid" not in frame or frame.shape[1] != 2:
        found = ", ".join(map(str, frame))
        problem = f"expected a column qid and one more, the attribute; found {found}"
        raise InvalidInput(f"--{option} {path}: {problem}")
    texts = frame.set_index(frame.pop("qid").astype(str)).iloc[:, 0]
    # A file does not say whether an id is the number 7 or the text "7": both are meant.
    are_numbers = [label.isdecimal() and str(int(label)) == label for label in texts.index]
    numbers = texts[are_numbers]
    values: pd.Series[Any] = pd.concat([texts, numbers.set_axis(numbers.index.astype(int))])
    return values


def evaluations(
    qrels: Path,
    runs: Sequence[Path],
    measures: list[str],
    rules: str | Convention,
    reading: Reading,
    form: str | None = None,
    *,
    texts: Path | None = None,
    one: bool = False,
) -> dict[str, Evaluation]:
    """Score the rankings of some files, each by the name of its file or system."""
    from rankeval.evaluation import evaluate
    from rankeval.measures import measures as parse_measures

    parse_measures(measures, rules)  # answer a misspelt measure before reading a large file
    judgments = reading.judgments(qrels, form)
    options: dict[str, Any] = {"measures": measures, "convention": rules}
    options["queries"] = query_texts(texts, limits=reading.limit)
    return {
        name: evaluate(judgments, run, name=name, **options)
        for name, run in reading.rankings(runs, one=one)
    }


def query_texts(path: Path | None, **reading: Any) -> dict[str, str] | None:
    """Read the texts of queries; None if no file is given."""
    from rankeval.io.texts import read_texts

    return None if path is None else read_texts(path, **reading)
