"""Learning-to-rank files and folders: svmlight rows with their queries, as columns.

Query ids stand in the rows (``qid:7``) or in a file of sizes beside them, one number of rows for each query::

    Fold1/train.txt                 rank.train          rank.train.query
          vali.txt                  1 1:0.5 2:1         2
          test.txt                  0 1:0.1             1
          features.json             1 2:3

The trap is the number of columns: a part lacks the features that only other parts have, and a file may count its
features from 0. So the parts of a folder are read together and get the same columns.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import count
from rankeval.errors import FileFormatError, InvalidInput
from rankeval.io.columns import whole
from rankeval.io.limits import Limits
from rankeval.io.opening import COMPRESSION, read_bytes, read_text
from rankeval.io.parts import PART_OF, check_distinct
from rankeval.io.svmlight import SparseRows, check_feature, read_svmlight

_SIZES = (".query", ".group")
_ROWS = ("", ".txt", ".dat", ".svm", ".svmlight", ".libsvm", ".letor", *(f".{word}" for word in PART_OF))
# A CSR cell takes 12 bytes and a dense one 8, and models are slower on CSR: below a third of the cells it pays, and
# not for a matrix that fits into memory anyway.
_DENSE_SHARE = 0.3
_DENSE_BYTES = 1 << 26
_DIGITS = 10  # of a size; Python refuses to parse 5,000


def read_letor(
    path: str | os.PathLike[str], name: str | None, *, sparse: bool | None, limits: Limits
) -> dict[str, Any]:
    """Read one file as `rankeval.datasets.load_letor` does, and return the fields of `RankingData`."""
    where = Path(path)
    return _assemble([(where, *_rows(where, limits))], [name or where.name], sparse=sparse, limits=limits)[0]


def read_letor_parts(path: str | os.PathLike[str], *, sparse: bool | None, limits: Limits) -> dict[str, dict[str, Any]]:
    """Read a folder of files, one for each part, with the same columns; return part -> fields of `RankingData`."""
    folder = Path(path)
    files = _part_files(folder)
    loaded = [(file, *_rows(file, limits, prefix=f"{part}-")) for part, file in files.items()]
    remedy = "if you mean it, load the files one by one with load_letor"
    check_distinct(dict(zip(files, (qid for _, _, qid in loaded), strict=True)), remedy)
    names = [f"{folder.name}/{part}" for part in files]
    return dict(zip(files, _assemble(loaded, names, sparse=sparse, limits=limits), strict=True))


def _part_files(folder: Path) -> dict[str, Path]:
    """Return part -> file, in the order train, vali, test."""
    if not folder.is_dir():
        raise InvalidInput(f"there is no folder {str(folder)!r}: name one with train, vali and test files")
    found: dict[str, list[Path]] = {"train": [], "vali": [], "test": []}
    for file in sorted(folder.iterdir()):
        stem = _uncompressed(file.name)
        parts = {PART_OF[word] for word in re.split(r"[._-]", stem.lower()) if word in PART_OF}
        if file.is_file() and len(parts) == 1 and Path(stem).suffix.lower() in _ROWS:
            found[parts.pop()].append(file)
    for part, files in found.items():
        if len(files) > 1:
            raise InvalidInput(f"{str(folder)!r} has several files for {part}: {[file.name for file in files]}")
    if not any(found.values()):
        content = sorted(entry.name for entry in folder.iterdir())[:10]
        raise InvalidInput(f"{str(folder)!r} has no file named train, vali or test; it holds {content}")
    return {part: files[0] for part, files in found.items() if files}


def _rows(file: Path, limits: Limits, prefix: str = "") -> tuple[SparseRows, NDArray[Any]]:
    """Return the rows of a file and their queries; those of a sizes file are numbered behind the prefix."""
    rows = read_svmlight(read_text(file, limits), str(file), limits)
    return rows, rows.qid if rows.qid is not None else _numbered(file, len(rows.label), limits, prefix)


def _uncompressed(name: str) -> str:
    for suffix in COMPRESSION:
        name = name.removesuffix(suffix)
    return name


def _numbered(file: Path, n_rows: int, limits: Limits, prefix: str) -> NDArray[Any]:
    """Return query ids for rows without them, by the sizes file beside the rows."""
    stem = _uncompressed(file.name)
    stems = dict.fromkeys((stem, Path(stem).stem))
    candidates = [
        file.with_name(one + sizes + more) for one in stems for sizes in _SIZES for more in ("", *COMPRESSION)
    ]
    # LightGBM has rank.train.query beside rank.train; others drop the suffix first.
    beside = next((candidate for candidate in candidates if candidate.is_file()), None)
    if beside is None:
        raise FileFormatError(
            f"{file} has no qid: in its rows, and no file of query sizes beside it: "
            f"expected {stem}.query or {stem}.group"
        )
    sizes = _sizes(beside, limits)
    if sum(sizes) != n_rows:
        raise FileFormatError(f"the sizes in {beside} add up to {sum(sizes)}, but {file} has {count(n_rows, 'row')}")
    numbers = np.repeat(np.arange(1, len(sizes) + 1), sizes)
    return np.array([f"{prefix}{number}" for number in numbers]) if prefix else numbers


def _sizes(file: Path, limits: Limits) -> list[int]:
    sizes = []
    for number, line in enumerate(io.BytesIO(read_text(file, limits)), start=1):
        word = line.strip()
        if word and not (word.isdigit() and len(word) < _DIGITS):
            raise FileFormatError(f"{file}, line {number}: expected the size of a query, found {word[:80]!r}")
        if word:
            sizes.append(int(word))
    return sizes


def _assemble(
    loaded: Sequence[tuple[Path, SparseRows, NDArray[Any]]],
    names: Iterable[str],
    *,
    sparse: bool | None,
    limits: Limits,
) -> list[dict[str, Any]]:
    """Return the fields of data sets with the same columns."""
    cells = [rows.X.indices for _, rows, _ in loaded if rows.X.nnz]
    base = min([1, *(int(index.min()) for index in cells)])  # features count from 1, unless there is a feature 0
    titles = _feature_names(loaded[0][0].parent, limits)
    last = max([base - 1, *titles, *(int(index.max()) for index in cells)])
    if sparse is None:
        n_cells = sum(len(rows.label) for _, rows, _ in loaded) * (last + 1 - base)
        sparse = sum(map(len, cells)) < _DENSE_SHARE * n_cells and n_cells * 8 > _DENSE_BYTES
    columns = tuple(titles.get(index, f"f{index}") for index in range(base, last + 1))
    parts = []
    for (_, rows, qid), name in zip(loaded, names, strict=True):
        # Shifted in place, because a copy of the cells of a large file is a gigabyte.
        rows.X.indices -= base
        rows.X.resize(len(rows.label), last + 1 - base)
        fields = {"X": rows.X if sparse else rows.X.toarray(), "y": whole(rows.label), "qid": qid, "docid": rows.docid}
        parts.append({**fields, "feature_names": columns, "name": name})
    return parts


def _feature_names(folder: Path, limits: Limits) -> dict[int, str]:
    """Return feature -> name from ``features.json`` here or one folder up; a file of another form is ignored."""
    for file in (folder / "features.json", folder.resolve().parent / "features.json"):
        if not file.is_file():
            continue
        try:
            titles = json.loads(read_bytes(file, limits))
        except (ValueError, RecursionError) as error:
            if isinstance(error, FileFormatError):
                raise
            raise FileFormatError(f"{file} is no JSON: {error}") from error
        titles = titles.get("features", titles) if isinstance(titles, dict) else titles
        if isinstance(titles, dict) and all(_is_title(key, name) for key, name in titles.items()):
            for key in titles:
                check_feature(key, str(file), limits)
            return {int(key): name for key, name in titles.items()}
    return {}


def _is_title(key: str, name: Any) -> bool:
    return key.isascii() and key.isdigit() and isinstance(name, str)
