"""Svmlight text as learning-to-rank files have it: ``label qid:1 1:0.5 7:2.0 #docid = D``.

scikit-learn reads the cells. This module adds document ids, query ids that are no integers, limits, and the line of an
error. The trap is scikit-learn's leniency: it reads 1_0 as the number 10, nan as a number, +1:5 as feature 1, and
qid:007 as query 7. Text with any of these, and text that scikit-learn refuses, is read line by line here, which either
succeeds or names the wrong line.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import count
from rankeval.errors import FileFormatError
from rankeval.io.columns import value_column
from rankeval.io.limits import DEFAULT, Limits
from rankeval.io.text import WHOLE, number_of, numbers_of_texts

# Read otherwise by scikit-learn: digits in groups, feature +1 or -0, query 007, +7 or -0, queries beyond 18 digits, and
# any word that begins with qid.
_LOOSE = [re.compile(one) for one in (rb"_", rb"[+-][0-9]+:", rb"qid(?:[^:]|:(?:\+|-0|0[0-9]|-?[0-9]{19}))")]
_COMMENT = re.compile(rb"#[^\n]*")
# A comment that holds a row: the line end behind the row before is missing.
_SWALLOWED = re.compile(rb"^[^\S\n]*[^#\s][^#\n]*#[^\n]*[ \t]qid:[^\s:]+[ \t]+[0-9]+:", re.MULTILINE)
_DOCID = re.compile(rb"^[^\S\n]*[^#\s][^#\n]*#[^\n]*?\bdocid[^\S\n]*[=:][^\S\n]*(\S+)", re.MULTILINE)
_LONGEST = 40  # digits of an index


@dataclass(frozen=True, eq=False)
class SparseRows:
    """The rows of one file.

    Attributes
    ----------
    X : sparse matrix of shape (n_rows, largest index + 1)
        The cells in CSR format; the columns are the indices of the file, which count from 0 or from 1.
    label : ndarray of shape (n_rows,)
        Relevance.
    qid : ndarray of shape (n_rows,), or None
        Query ids, int64 or str, if the rows have them.
    docid : ndarray of shape (n_rows,), or None
        Document ids, if every row has a comment with one.
    """

    X: Any
    label: NDArray[np.float64]
    qid: NDArray[Any] | None
    docid: NDArray[Any] | None


def read_svmlight(data: bytes, where: str, limits: Limits = DEFAULT) -> SparseRows:
    """Read the text of a learning-to-rank file.

    Parameters
    ----------
    data : bytes
        The text, as `opening.read_text` returns it.
    where : str
        The file's name for messages.
    limits : Limits
        The largest feature index.

    Raises
    ------
    FileFormatError
        If the file is empty, a line is not ``label [qid:id] index:value ...``, a value is no finite number, an index
        is given twice, a comment holds a row, or only some rows have a query or a document id.
    LimitExceeded
        If a feature index is larger.
    """
    data = data.replace(b"\r\n", b"\n")
    text = data
    if b"#" in data:
        if found := _SWALLOWED.search(data):
            line = data.count(b"\n", 0, found.start()) + 1
            raise FileFormatError(f"{where}, line {line}: the comment holds another row: is a line end missing?")
        text = _COMMENT.sub(b"", data)
    # Comments are cut off before, since scikit-learn drops them and _LOOSE must not look into them.
    X, label, qid = _by_sklearn(text, limits) or _line_by_line(text, where, limits)
    return SparseRows(X, label, qid, _docids(data, len(label), where))


_Read = tuple[Any, NDArray[np.float64], NDArray[Any] | None]


def _by_sklearn(text: bytes, limits: Limits) -> _Read | None:
    """Return cells, labels and queries; None if scikit-learn refuses the text, or reads it otherwise than we do."""
    from sklearn.datasets import load_svmlight_file

    if any(one.search(text) for one in _LOOSE):  # one by one, because Python searches for an alternation slowly
        return None
    try:
        X, label, qid = load_svmlight_file(io.BytesIO(text), query_id=True, zero_based=True)
    except (ValueError, OverflowError):
        return None
    # It also takes lines with and without qid side by side, and then returns fewer queries than labels.
    is_plain = len(qid) in {0, len(label)} and (np.abs(label) < WHOLE).all() and np.isfinite(X.data).all()
    if not is_plain or not len(label) or X.shape[1] - 1 > limits.feature:
        return None
    return X, label, qid if len(qid) else None


def _line_by_line(text: bytes, where: str, limits: Limits = DEFAULT) -> _Read:
    """Read exactly, and name the line that is wrong."""
    from scipy.sparse import csr_matrix

    labels: list[str] = []
    qids: list[str] = []
    starts = [0]
    cells: list[tuple[int, float]] = []
    for number, line in enumerate(io.BytesIO(text), start=1):
        at = f"{where}, line {number}"
        try:
            fields = [word.decode() for word in line.split()]
        except UnicodeDecodeError as error:
            raise FileFormatError(f"{at}: expected UTF-8 text, found {line[:80]!r}") from error
        if not fields:
            continue
        labels.append(fields[0])
        number_of(labels[-1], f"{at}, label")
        rest = fields[1:]
        if rest and rest[0].startswith("qid:"):
            qids.append(rest.pop(0).removeprefix("qid:"))
        if len(qids) not in {0, len(labels)} or (qids and not qids[-1]):
            raise FileFormatError(f"{at}: expected 'label qid:id index:value ...' in all lines or no qid in any")
        row = dict(_cell(field, at, limits) for field in rest)
        if len(row) < len(rest):
            raise FileFormatError(f"{at}: a feature index is given twice")
        cells.extend(sorted(row.items()))
        starts.append(len(cells))
    if not labels:
        raise FileFormatError(f"{where} is empty: expected lines 'label qid:id index:value ...'")
    index = np.array([index for index, _ in cells], np.int64)
    values = np.array([value for _, value in cells], np.float64)
    X = csr_matrix((values, index, starts), shape=(len(labels), int(index.max(initial=0)) + 1))
    label = value_column(numbers_of_texts(labels), f"label of {where}")
    return X, label, _query_ids(qids) if qids else None


def _cell(field: str, at: str, limits: Limits) -> tuple[int, float]:
    index, colon, value = field.partition(":")
    if not (colon and index.isascii() and index.isdigit()):
        raise FileFormatError(f"{at}: expected 'index:value', found {field[:80]!r}")
    check_feature(index, at, limits)
    return int(index), number_of(value, f"{at}, feature {index}")


def check_feature(index: str, where: str, limits: Limits) -> None:
    """Refuse a feature index, given as digits, beyond the limit: the matrix would exceed all memory."""
    # Python turns no more than 4,300 digits into a number.
    if len(index) >= _LONGEST or int(index) > limits.feature:
        raise limits.exceeded("feature", where, f"found feature {index[:40]}")


def _query_ids(qids: list[str]) -> NDArray[Any]:
    """Return int64 if all are integers that fit and would be written the same again, else str."""
    if all(re.fullmatch(r"0|-?[1-9][0-9]{0,17}", qid) for qid in qids):
        return np.array([int(qid) for qid in qids], np.int64)
    return np.array(qids)


def _docids(data: bytes, n_rows: int, where: str) -> NDArray[Any] | None:
    """Return the ``#docid = D`` of each row; None if no row has one."""
    if b"docid" not in data:
        return None
    try:
        found = [match.decode() for match in _DOCID.findall(data)]
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{where}: expected document ids in UTF-8, found {error.object!r}") from error
    if found and len(found) != n_rows:
        lines = enumerate(data.split(b"\n"), start=1)
        is_row = (number for number, line in lines if line.partition(b"#")[0].strip() and not _DOCID.search(line))
        raise FileFormatError(
            f"{where}, line {next(is_row, 1)}: expected a '#docid = D' comment in all rows or in none, "
            f"found {len(found)} in {count(n_rows, 'row')}"
        )
    return np.array(found) if found else None
