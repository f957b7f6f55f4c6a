"""Read rankings by the names of their files, and score them, as several commands do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankeval.errors import InvalidInput

if TYPE_CHECKING:
    import pandas as pd

    from rankeval.collection.convention import Convention
    from rankeval.evaluation import Evaluation


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
    form: str | None = None,
    *,
    texts: Path | None = None,
    **reading: Any,
) -> dict[str, Evaluation]:
    """Score the rankings of some files, each by the name of its file."""
    from rankeval.collection.qrels import Qrels
    from rankeval.collection.run import Run
    from rankeval.evaluation import evaluate
    from rankeval.measures import measures as parse_measures

    parse_measures(measures, rules)  # answer a misspelt measure before reading a large file
    judgments = Qrels.read(qrels, form, **reading)
    options: dict[str, Any] = {"measures": measures, "convention": rules}
    options["queries"] = query_texts(texts, **reading)
    return {
        name: evaluate(judgments, Run.read(path, **reading), name=name, **options)
        for name, path in by_file_name(runs).items()
    }


def query_texts(path: Path | None, **reading: Any) -> dict[str, str] | None:
    """Read the texts of queries; None if no file is given."""
    from rankeval.io.texts import read_texts

    return None if path is None else read_texts(path, **reading)
