"""Read learning-to-rank files and the user's own tables (Parquet, CSV, TSV) as `RankingData`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rankeval._arguments import explained
from rankeval._checks import count, few, require, shown
from rankeval._registry import chosen
from rankeval.collection.data import RankingData
from rankeval.errors import InvalidInput, warn
from rankeval.io.feature_tables import FeatureTable, read_feature_table
from rankeval.io.letor import PART_OF, ROW, check_distinct, read_letor, read_letor_parts
from rankeval.io.opening import DEFAULT, Limits, reading
from rankeval.io.words import Grades


@explained
def load_letor(
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    sparse: bool | None = None,
    limits: Limits = DEFAULT,
) -> RankingData:
    r"""Read one learning-to-rank file.

    Rows are ``label qid:id index:value ... #docid = D`` as in LETOR, MSLR-WEB and MQ2008, or have
    no ``qid`` and a file of query sizes beside them (``rank.train.query`` beside
    ``rank.train.gz``), as for LightGBM and XGBoost. Features that a row leaves out are 0.

    Parameters
    ----------
    path : path
        The file, also as ``.gz`` or ``.zst``.
    name : str, optional
        The data's name, by default the file's.
    sparse : bool, optional
        Whether X is a SciPy CSR matrix. By default it is a dense array if at least 30 % of the
        cells are given, or if all fit into 64 MB.
    limits : Limits
        The largest feature index, how far a compressed file may expand, and how long a line may be.

    Returns
    -------
    RankingData
        ``qid`` is int64 if all ids are integers, else str; queries of a sizes file are numbered 1,
        2, ... ``docid`` is str. Feature 1 is column 0 (feature 0 is, in files that have one).
        ``feature_names`` are ``f1``, ``f2``, ... or those of a ``features.json`` beside the file or
        in the folder above: ``{"features": {"1": name, ...}}``.

    Raises
    ------
    InvalidInput
        If there is no such file.
    FileFormatError
        If a line does not follow the format, or the sizes do not add up to the rows.
    LimitExceeded
        If the file or a feature exceeds a limit; the message names it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "train.txt"
    >>> size = path.write_text("2 qid:1 1:0.5 2:3\n0 qid:1 1:0.2\n")
    >>> load_letor(path)
    RankingData('train.txt', 2 rows, 1 query, 2 features)
    """
    return RankingData(**read_letor(path, name, sparse=sparse, limits=limits))


@explained
def load_letor_parts(
    path: str | os.PathLike[str], *, sparse: bool | None = None, limits: Limits = DEFAULT
) -> dict[str, RankingData]:
    """Read a folder of learning-to-rank files, such as ``Fold1``.

    Parameters
    ----------
    path : path
        A folder with one file for each part, recognised by its name: ``train``, ``vali``
        (``valid``, ``dev``) and ``test``, as in ``train.txt``, ``rank.test.gz`` or
        ``set1.train.txt.zst``.
    sparse : bool, optional
        As in `load_letor`, for all parts alike.
    limits : Limits
        As in `load_letor`.

    Returns
    -------
    dict of str to RankingData
        The parts ``train``, ``vali`` and ``test`` that are there, with the same columns. Queries of
        sizes files are called ``train-1``, ``train-2``, ..., ``test-1``, ..., so that they differ
        between parts.

    Raises
    ------
    InvalidInput
        If there is no such folder, no part in it, two files for one part, or the same query id in
        two parts.
    FileFormatError, LimitExceeded
        As `load_letor`.
    """
    parts = read_letor_parts(path, sparse=sparse, limits=limits)
    return {part: RankingData(**rows) for part, rows in parts.items()}


Values = str | int | float | bool | Sequence[str | int | float | bool]
"""One value of a column of parts, or several."""

_SHOWN = 8  # values of a column of parts in a message


def is_letor(path: str | os.PathLike[str]) -> bool:
    """Return whether a file, perhaps compressed, begins with a row of LETOR, after comments."""
    with reading(path) as file:
        return ROW.match(file.read(1 << 12)) is not None


@explained
def load_table(
    path: str | os.PathLike[str],
    *,
    qid: str,
    label: str,
    docid: str | None = None,
    features: Sequence[str] | None = None,
    categories: Sequence[str] = (),
    grades: Grades = None,
    format: str | None = None,  # noqa: A002 - as in `Qrels.read`
    name: str | None = None,
    limits: Limits = DEFAULT,
) -> RankingData:
    r"""Read a table with one row per query and document: Parquet, CSV or TSV.

    Parameters
    ----------
    path : path
        The file, also as ``.gz`` or ``.zst``.
    qid, label : str
        The columns of the query and of the relevance.
    docid : str, optional
        The column of the document.
    features : sequence of str, optional
        The columns of the features: numbers, true and false, empty cells, or the categories of
        Parquet. By default all other columns of these kinds, and a warning names the columns left
        out. A column called like an id or a label, such as ``doc_id`` or ``rel``, is a feature only
        if it is named here.
    categories : sequence of str
        Columns of text or numbers that are features too, as categories: pandas' dtype, with all
        values of the table in ascending order.
    grades : mapping of str to number, optional
        The grades of labels that are words, such as ``{"Exact": 2, "Partial": 1, "Irrelevant": 0}``.
    format : {"parquet", "csv", "tsv"}, optional
        By default, the content and the suffix of the file decide.
    name : str, optional
        The data's name, by default the file's.
    limits : Limits
        How far the file may expand, and how long a line may be.

    Returns
    -------
    RankingData
        X is a DataFrame with the names of the features; an empty cell is NaN. Ids are integers or
        text; ids of CSV are text.

    Raises
    ------
    InvalidInput
        If there is no such file, or no column is left for a feature.
    UnknownName
        If there is no such column; the message has the nearest name.
    FileFormatError
        If a cell is refused, or a named feature is not a column of numbers.
    LimitExceeded
        If the file exceeds a limit; the message names it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "clicks.csv"
    >>> size = path.write_text("query,clicks,bm25,age\na,1,7.5,3\na,0,2.5,\nb,1,4.0,1\n")
    >>> data = load_table(path, qid="query", label="clicks")
    >>> data
    RankingData('clicks.csv', 3 rows, 2 queries, 2 features)
    >>> data.X["age"].tolist()
    [3.0, nan, 1.0]
    """
    roles = {"qid": qid, "label": label, "docid": docid}
    table, notes = read_table(
        path, roles, features, categories=categories, grades=grades, format=format, limits=limits
    )
    for note in notes:
        warn(f"{path}: {note}")
    return as_data(table, name or Path(path).name)


@explained
def load_table_parts(
    path: str | os.PathLike[str],
    *,
    part: str,
    qid: str,
    label: str,
    docid: str | None = None,
    features: Sequence[str] | None = None,
    categories: Sequence[str] = (),
    train: Values | None = None,
    validation: Values | None = None,
    test: Values | None = None,
    others: Literal["error", "drop"] = "error",
    grades: Grades = None,
    format: str | None = None,  # noqa: A002 - as in `Qrels.read`
    limits: Limits = DEFAULT,
) -> dict[str, RankingData]:
    r"""Read a table whose rows say to which part they belong.

    Parameters
    ----------
    path, qid, label, docid, features, categories, grades, format, limits
        As in `load_table`.
    part : str
        The column of parts.
    train, validation, test : value or list of values, optional
        The values of each part. By default ``train``; ``vali``, ``valid``, ``validation``, ``val``
        or ``dev``; and ``test``. Values are compared as text, without case.
    others : {"error", "drop"}
        "error" refuses a table with a row of another value or of none; "drop" leaves such rows out
        with a warning.

    Returns
    -------
    dict of str to RankingData
        Those of the parts ``train``, ``vali`` and ``test`` that have rows, as `load_letor_parts`
        returns them.

    Raises
    ------
    InvalidInput
        If a row belongs to no part, a query has rows in two parts, or a value is named for two
        parts or is in no row.
    UnknownName, FileFormatError, LimitExceeded
        As in `load_table`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "clicks.csv"
    >>> size = path.write_text("query,clicks,bm25,year\na,1,7.5,2023\nb,0,2.5,2024\nb,1,4.0,2024\n")
    >>> roles = {"part": "year", "qid": "query", "label": "clicks"}
    >>> load_table_parts(path, **roles, train=2023, test=2024)["test"]
    RankingData('clicks.csv/test', 2 rows, 1 query, 1 feature)
    """
    words = {"train": train, "vali": validation, "test": test}
    roles = {"qid": qid, "label": label, "docid": docid, "part": part}
    table, notes = read_table(
        path, roles, features, categories=categories, grades=grades, format=format, limits=limits
    )
    parts, more = split_table(
        table, words, others=others, where=f"{path}, column {part}", name=Path(path).name
    )
    for note in (*notes, *more):
        warn(f"{path}: {note}")
    return parts


def read_table(
    path: str | os.PathLike[str],
    roles: Mapping[str, str | None],
    features: Sequence[str] | None,
    **options: Any,
) -> tuple[FeatureTable, list[str]]:
    """Read a table as `read_feature_table`, with notes instead of warnings and optional roles."""
    require(not isinstance(features, str), "features", features, "a list of columns")
    columns = {role: name for role, name in roles.items() if name is not None}
    table = read_feature_table(path, columns, features, **options)
    if not table.left_out:
        return table, []
    reasons = ", ".join(f"{name!r} ({reason})" for name, reason in table.left_out.items())
    note = (
        f"columns that are not features: {reasons}; list the features to choose others, or name "
        "categories"
    )
    return table, [note]


def split_table(
    table: FeatureTable, words: Mapping[str, Values | None], *, others: str, where: str, name: str
) -> tuple[dict[str, RankingData], list[str]]:
    """Split a table by its column of parts, and return notes instead of warnings."""
    chosen("value of others", others, ("error", "drop"))
    part_of = _part_of(words)
    values = [None if value is None else value.strip().casefold() for value in table.part or ()]
    of_value = {value: part_of.get(value or "") for value in dict.fromkeys(values)}
    _refuse_absent(words, of_value, where)
    strangers = [value for value, part in of_value.items() if part is None]
    notes = []
    if strangers:
        n_rows = sum(of_value[value] is None for value in values)
        cells = ["an empty cell" if value is None else repr(value) for value in strangers[:_SHOWN]]
        cells += ["..."] * (len(strangers) > _SHOWN)
        problem = f"{count(n_rows, 'row')} in no part: {', '.join(cells)}"
        if others == "error":
            raise InvalidInput(
                f"found {problem}; the known values are {', '.join(part_of)}",
                where=where,
                remedy="name the values of train, validation and test, or leave such rows out "
                "(others: drop)",
            )
        notes.append(f"left out {problem}")
    row_part = np.array([of_value[value] or "" for value in values], dtype=object)
    whole = as_data(table, name)
    rows = {part: np.flatnonzero(row_part == part) for part in ("train", "vali", "test")}
    qids = {part: whole.qid[at] for part, at in rows.items()}
    check_distinct(qids, f"{where}: put all rows of a query into one part")
    parts = {part: whole.take(at, name=f"{name}/{part}") for part, at in rows.items() if len(at)}
    return parts, notes


def _part_of(words: Mapping[str, Values | None]) -> dict[str, str]:
    """Return value, as text without case -> part; usual words go where the caller names them."""
    part_of: dict[str, str] = {}
    for part, value, word in _named(words):
        if part_of.get(word, part) != part:
            raise InvalidInput(f"the value {value!r} means {part_of[word]} and {part}: choose one")
        part_of[word] = part
    usual = {word: part for word, part in PART_OF.items() if words[part] is None}
    return usual | part_of


def _named(words: Mapping[str, Values | None]) -> Iterator[tuple[str, object, str]]:
    """Yield (part, value, value as text without case) for each value that the caller names."""
    for part, named in words.items():
        values = named if isinstance(named, (list, tuple)) else () if named is None else (named,)
        for value in values:
            yield part, value, str(value).strip().casefold()


def _refuse_absent(
    words: Mapping[str, Values | None], cells: Iterable[str | None], where: str
) -> None:
    in_table = [value for value in cells if value is not None]
    for part, value, word in _named(words):
        if word not in in_table:
            name = "validation" if part == "vali" else part
            raise InvalidInput(
                f"no row has the value {shown(value)}, which is named for {name}; rows have "
                f"{few(in_table)}",
                where=where,
            )


def as_data(table: FeatureTable, name: str) -> RankingData:
    """Return the rows of a table, X as a DataFrame."""
    import pandas as pd

    names = tuple(table.features)
    return RankingData(
        pd.DataFrame(dict(table.features)), table.label, table.qid, table.docid, names, name
    )
