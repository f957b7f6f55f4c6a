"""Learning-to-rank files and folders: svmlight rows with their queries, as columns.

Query ids stand in the rows (``qid:7``) or in a file of sizes beside them, one number of rows for
each query::

    Fold1/train.txt                 rank.train          rank.train.query
          vali.txt                  1 1:0.5 2:1         2
          test.txt                  0 1:0.1             1
          features.json             1 2:3

The trap is the number of columns: a part lacks the features that only other parts have, and a file
may count its features from 0. So the parts of a folder are read together and get the same columns.

scikit-learn reads the cells of svmlight text, ``label qid:1 1:0.5 7:2.0 #docid = D``. This module
adds document ids, query ids that are no integers, limits, and the line of an error. The trap is
scikit-learn's leniency: it reads 1_0 as the number 10, nan as a number, +1:5 as feature 1, and
qid:007 as query 7. Text with any of these, and text that scikit-learn refuses, is read line by line
here, which either succeeds or names the wrong line.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import count
from rankeval.errors import FileFormatError, InvalidInput
from rankeval.io import opening
from rankeval.io.columns import value_column, whole
from rankeval.io.opening import DEFAULT, Limits

PART_OF: dict[str, str] = {
    "train": "train",
    "vali": "vali",
    "valid": "vali",
    "validation": "vali",
    "val": "vali",
    "dev": "vali",
    "test": "test",
}
"""Word -> part, for names of files and values of a column."""

# Read otherwise by scikit-learn: digits in groups, feature +1 or -0, query 007, +7 or -0, queries
# beyond 18 digits, and any word that begins with qid.
# Three patterns, because Python searches for an alternation slowly.
_LOOSE = [
    re.compile(rb"_"),
    re.compile(rb"[+-][0-9]+:"),
    re.compile(rb"qid(?:[^:]|:(?:\+|-0|0[0-9]|-?[0-9]{19}))"),
]
_COMMENT = re.compile(rb"#[^\n]*")
# A comment that holds a row: the line end behind the row before is missing.
_SWALLOWED = re.compile(
    rb"^[^\S\n]*[^#\s][^#\n]*#[^\n]*[ \t]qid:[^\s:]+[ \t]+[0-9]+:", re.MULTILINE
)
_DOCID = re.compile(
    rb"^[^\S\n]*[^#\s][^#\n]*#[^\n]*?\bdocid[^\S\n]*[=:][^\S\n]*(\S+)", re.MULTILINE
)
_INDEX = re.compile(r"[0-9]+")
_LONGEST = 40  # digits of an index
_SIZES = (".query", ".group")
_ROWS = (
    "",
    ".txt",
    ".dat",
    ".svm",
    ".svmlight",
    ".libsvm",
    ".letor",
    *(f".{word}" for word in PART_OF),
)
# A CSR cell takes 12 bytes and a dense one 8, and models are slower on CSR: below a third of the
# cells it pays, and not for a matrix that fits into memory anyway.
_DENSE_SHARE = 0.3
_DENSE_BYTES = 1 << 26
ROW = re.compile(rb"\s*(#[^\n]*\n\s*)*[-+]?[0-9.]+[ \t]+(qid:\S+(?=\s|\Z)|[0-9]+:[-+]?[0-9.])")
"""Matches a text whose first row is one of learning to rank."""

_SIZE = re.compile(rb"[0-9]{1,9}")  # Python refuses to parse 5,000 digits


def check_distinct(qids: Mapping[str, NDArray[np.generic]], remedy: str) -> None:
    """Raise if a query is in two parts; the remedy says how to read such data all the same."""
    seen: dict[object, str] = {}
    for part, qid in qids.items():
        for query in np.unique(qid).tolist():
            if query in seen:
                parts = f"{seen[query]} and in {part}"
                problem = f"query {query!r} is in {parts}: a leak, or an id of two queries"
                raise InvalidInput(problem, remedy=remedy)
            seen[query] = part


@dataclass(frozen=True, eq=False)
class SparseRows:
    """The rows of one file."""

    X: Any  # CSR of shape (n_rows, largest index + 1): the file's indices count from 0 or from 1
    label: NDArray[np.float64]  # Relevance
    qid: Any  # Query ids, int64 or str, if the rows have them
    docid: NDArray[Any] | None  # Document ids, if every row has a comment with one


def read_svmlight(data: bytes, where: str, limits: Limits = DEFAULT) -> SparseRows:
    """Read the text of a learning-to-rank file."""
    data = data.replace(b"\r\n", b"\n")
    text = data
    if b"#" in data:
        if swallowed := _SWALLOWED.search(data):
            line = data.count(b"\n", 0, swallowed.start()) + 1
            problem = "the comment contains another row: is a line end missing?"
            raise FileFormatError(f"{where}, line {line}: {problem}")
        text = _COMMENT.sub(b"", data)
    # Comments are cut off before, since scikit-learn drops them and _LOOSE must not look into them.
    X, label, qid = _by_sklearn(text, limits) or _line_by_line(text, where, limits)
    return SparseRows(X, label, qid, _docids(data, len(label), where))


_Read = tuple[Any, NDArray[np.float64], NDArray[Any] | None]


def _by_sklearn(text: bytes, limits: Limits) -> _Read | None:
    """Return None if scikit-learn refuses the text, or reads it otherwise than `_line_by_line`."""
    from sklearn.datasets import load_svmlight_file

    if any(loose.search(text) for loose in _LOOSE):
        return None
    try:
        X, label, qid = load_svmlight_file(io.BytesIO(text), query_id=True, zero_based=True)
    except (ValueError, OverflowError):
        return None
    # It also takes lines with and without qid side by side, and then returns fewer queries than
    # labels.
    if not len(label) or len(qid) not in {0, len(label)} or X.shape[1] - 1 > limits.feature:
        return None
    is_plain = (np.abs(label) < opening.WHOLE).all() and np.isfinite(X.data).all()
    return (X, label, qid if len(qid) else None) if is_plain else None


def _line_by_line(text: bytes, where: str, limits: Limits = DEFAULT) -> _Read:
    """Read exactly, and name the line that is wrong."""
    from scipy.sparse import csr_matrix

    labels: list[str] = []
    qids: list[str] = []
    starts = [0]
    cells: list[tuple[int, float]] = []
    for number, line in opening.filled_lines(text):
        at = f"{where}, line {number}"
        try:
            # Bytes are split first: text would be split at more blanks.
            fields = [word.decode() for word in line.split()]
        except UnicodeDecodeError as error:
            raise FileFormatError(f"expected UTF-8 text, found {line[:80]!r}", where=at) from error
        labels.append(fields[0])
        opening.number_of(labels[-1], f"{at}, label")
        rest = fields[1:]
        if rest and rest[0].startswith("qid:"):
            qids.append(rest.pop(0).removeprefix("qid:"))
        if len(qids) not in {0, len(labels)} or (qids and not qids[-1]):
            expected = "'label qid:id index:value ...' in all lines or no qid in any"
            raise FileFormatError(f"{at}: expected {expected}")
        row = dict(_cell(field, at, limits) for field in rest)
        if len(row) < len(rest):
            raise FileFormatError("a feature index is given twice", where=at)
        cells.extend(sorted(row.items()))
        starts.append(len(cells))
    if not labels:
        raise FileFormatError(f"{where} is empty: expected lines 'label qid:id index:value ...'")
    index = np.array([index for index, _ in cells], np.int64)
    values = np.array([value for _, value in cells], np.float64)
    X = csr_matrix((values, index, starts), shape=(len(labels), int(index.max(initial=0)) + 1))
    label = value_column(opening.numbers_of_texts(labels), f"label of {where}")
    # Numbers only if they would be written the same again: 007 and 7 are two queries.
    are_numbers = all(re.fullmatch(r"0|-?[1-9][0-9]{0,17}", qid) for qid in qids)
    return X, label, np.array(qids, np.int64 if are_numbers else None) if qids else None


def _cell(field: str, at: str, limits: Limits) -> tuple[int, float]:
    index, colon, value = field.partition(":")
    if not (colon and _INDEX.fullmatch(index)):
        raise FileFormatError(f"expected 'index:value', found {field[:80]!r}", where=at)
    return _feature(index, at, limits), opening.number_of(value, f"{at}, feature {index}")


def _feature(index: str, where: str, limits: Limits) -> int:
    """Return a feature's number, and refuse one beyond the limit, which would exceed all memory."""
    # Python turns no more than 4,300 digits into a number.
    if len(index) >= _LONGEST or int(index) > limits.feature:
        raise limits.exceeded("feature", where, f"found feature {index[:40]}")
    return int(index)


def _docids(data: bytes, n_rows: int, where: str) -> NDArray[Any] | None:
    if b"docid" not in data:
        return None
    try:
        ids = [match.decode() for match in _DOCID.findall(data)]
    except UnicodeDecodeError as error:
        problem = f"expected document ids in UTF-8, found {error.object!r}"
        raise FileFormatError(problem, where=where) from error
    if ids and len(ids) != n_rows:
        found = f"found {len(ids)} in {count(n_rows, 'row')}"
        place = f"{where}, line {_line_without_docid(data)}"
        raise FileFormatError(f"expected '#docid = D' in all rows or in none, {found}", where=place)
    return np.array(ids) if ids else None


def _line_without_docid(data: bytes) -> int:
    for number, line in enumerate(data.split(b"\n"), start=1):
        is_row = line.partition(b"#")[0].strip()
        if is_row and not _DOCID.search(line):
            return number
    return 1


def read_letor(
    path: str | os.PathLike[str], name: str | None, *, sparse: bool | None, limits: Limits
) -> dict[str, Any]:
    """Read one file for `rankeval.datasets.load_letor`, and return the fields of `RankingData`."""
    where = opening.as_path(path)
    rows = {name or where.name: _rows(where, limits)}
    return _assemble(rows, where.parent, sparse, limits)[0]


def read_letor_parts(
    path: str | os.PathLike[str], *, sparse: bool | None, limits: Limits
) -> dict[str, dict[str, Any]]:
    """Read a folder of a file for each part; return part -> fields of `RankingData`."""
    folder = opening.as_path(path)
    files = _part_files(folder)
    parts = {part: _rows(file, limits, prefix=f"{part}-") for part, file in files.items()}
    remedy = "if you mean it, load the files one by one with load_letor"
    check_distinct({part: rows.qid for part, rows in parts.items()}, remedy)
    named = {f"{folder.name}/{part}": rows for part, rows in parts.items()}
    return dict(zip(parts, _assemble(named, folder, sparse, limits), strict=True))


def _part_files(folder: Path) -> dict[str, Path]:
    """Return part -> file, in the order train, vali, test."""
    try:
        is_folder = folder.is_dir()
    except OSError as error:  # such as of a name that is too long
        raise InvalidInput(f"cannot read {str(folder)!r}: {error.strerror}") from error
    if not is_folder:
        raise InvalidInput(
            f"there is no folder {str(folder)!r}: name one with train, vali and test files"
        )
    files_of: dict[str, list[Path]] = {"train": [], "vali": [], "test": []}
    for file in sorted(folder.iterdir()):
        stem = _uncompressed(file.name)
        parts = {PART_OF[word] for word in re.split(r"[._-]", stem.lower()) if word in PART_OF}
        if file.is_file() and len(parts) == 1 and Path(stem).suffix.lower() in _ROWS:
            files_of[parts.pop()].append(file)
    for part, files in files_of.items():
        if len(files) > 1:
            names = [file.name for file in files]
            raise InvalidInput(f"{str(folder)!r} has several files for {part}: {names}")
    if not any(files_of.values()):
        content = sorted(entry.name for entry in folder.iterdir())[:10]
        problem = f"{str(folder)!r} has no file named train, vali or test"
        raise InvalidInput(f"{problem}; it contains {content}")
    return {part: files[0] for part, files in files_of.items() if files}


def _rows(file: Path, limits: Limits, prefix: str = "") -> SparseRows:
    """Return the rows of a file with their queries; ids by a sizes file begin with the prefix."""
    rows = read_svmlight(opening.read_text(file, limits), str(file), limits)
    if rows.qid is not None:
        return rows
    return replace(rows, qid=_numbered(file, len(rows.label), limits, prefix))


def _uncompressed(name: str) -> str:
    for suffix in opening.COMPRESSION:
        name = name.removesuffix(suffix)
    return name


def _numbered(file: Path, n_rows: int, limits: Limits, prefix: str) -> NDArray[Any]:
    """Return query ids for rows without them, by the sizes file beside the rows."""
    stem = _uncompressed(file.name)
    stems = dict.fromkeys((stem, Path(stem).stem))
    # LightGBM has rank.train.query beside rank.train; others drop the suffix first.
    names = map("".join, product(stems, _SIZES, ("", *opening.COMPRESSION)))
    beside = next(filter(Path.is_file, map(file.with_name, names)), None)
    if beside is None:
        expected = f"{stem}.query or {stem}.group"
        problem = f"no qid: in the rows, and no file of query sizes beside it: expected {expected}"
        raise FileFormatError(problem, where=str(file))
    sizes = [*_sizes(beside, limits)]
    if sum(sizes) != n_rows:
        found = f"{file} has {count(n_rows, 'row')}"
        raise FileFormatError(f"the sizes in {beside} add up to {sum(sizes)}, but {found}")
    numbers = np.repeat(np.arange(1, len(sizes) + 1), sizes)
    return np.array([f"{prefix}{number}" for number in numbers]) if prefix else numbers


def _sizes(file: Path, limits: Limits) -> Iterator[int]:
    for number, line in opening.filled_lines(opening.read_text(file, limits)):
        word = line.strip()
        if not _SIZE.fullmatch(word):
            problem = f"expected the size of a query, found {word[:80]!r}"
            raise FileFormatError(problem, where=f"{file}, line {number}")
        yield int(word)


def _assemble(
    loaded: Mapping[str, SparseRows], folder: Path, sparse: bool | None, limits: Limits
) -> list[dict[str, Any]]:
    cells = [rows.X.indices for rows in loaded.values() if rows.X.nnz]
    # Features count from 1, unless there is a feature 0.
    base = min([1, *(int(index.min()) for index in cells)])
    titles = _feature_names(folder, limits)
    last = max([base - 1, *titles, *(int(index.max()) for index in cells)])
    n_columns = last + 1 - base
    if sparse is None:
        n_cells = sum(len(rows.label) for rows in loaded.values()) * n_columns
        n_filled = sum(map(len, cells))
        sparse = n_filled < _DENSE_SHARE * n_cells and n_cells * 8 > _DENSE_BYTES
    columns = tuple(titles.get(index, f"f{index}") for index in range(base, last + 1))
    parts = []
    for name, rows in loaded.items():
        # Shifted in place, because a copy of the cells of a large file is a gigabyte.
        rows.X.indices -= base
        rows.X.resize(len(rows.label), n_columns)
        X = rows.X if sparse else rows.X.toarray()
        part = {"X": X, "y": whole(rows.label), "qid": rows.qid, "docid": rows.docid}
        parts.append(part | {"feature_names": columns, "name": name})
    return parts


def _feature_names(folder: Path, limits: Limits) -> dict[int, str]:
    """Return feature -> name from ``features.json`` here or one folder up, if it has this form."""
    places = (folder / "features.json", folder.resolve().parent / "features.json")
    for file in filter(Path.is_file, places):
        data = opening.read_bytes(file, limits)
        try:
            titles = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise FileFormatError(f"{file} is not JSON: {error}") from error
        titles = titles.get("features", titles) if isinstance(titles, dict) else titles
        if isinstance(titles, dict) and all(
            _INDEX.fullmatch(key) and isinstance(titles[key], str) for key in titles
        ):
            return {_feature(key, str(file), limits): name for key, name in titles.items()}
    return {}
