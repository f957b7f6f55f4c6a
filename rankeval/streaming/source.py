"""A Parquet data set as a list of files, with their row groups and ranges of queries.

Each file is read once, and none is passed over without a word:

    log/d=1/a.parquet              read
    log/_SUCCESS, log/_temporary/  passed over: what Spark, Hive and others leave beside the rows
    log/_d=2/b.parquet             passed over by readers of Parquet, though it looks like rows: refused

pyarrow.dataset is imported where it is used: it loads pandas, which no worker needs.

Files may have a column in several types. It is read in one that changes no value; without one it is
refused::

relevance, score, query_weight   bool, int8, int32 -> int64;  float32, float64, int32 -> float64
qid, docid                  int32, int64 -> int64;  string, large_string -> large_string;  int64, string -> refused
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from rankeval._checks import count, few, refuse, require, said, shown
from rankeval._secrets import hidden, masked
from rankeval.errors import FileFormatError, InvalidInput, QueryIdError
from rankeval.io.columns import comparable, is_text_type, without_view

if TYPE_CHECKING:
    import pyarrow.dataset as ds


_HIDDEN = ("_", ".")
_BESIDE = (
    *("_temporary", ".spark-staging", ".hive-staging", "_delta_log", "_change_data", ".hoodie"),
    *("._", ".ipynb_checkpoints", ".Trash"),
)
"""Beginnings of names of Parquet files and folders without rows of the data set."""


def name_of(path: str) -> str:
    """Return the last name of a path or URL, without its query string."""
    if "://" not in path:
        return path.rstrip("/").rpartition("/")[2]
    return masked(path).partition("?")[0].rstrip("/").rpartition("/")[2]


def fragments_of(data: Any) -> list[tuple[ds.Fragment, pa.Schema]]:
    """Return the files of a data set, each with the schema of its data set."""
    fragments = [
        (fragment, dataset.schema)
        for dataset in _leaves(_opened(data))
        for fragment in dataset.get_fragments()
    ]
    with _explained_if_unreadable(data):
        hidden = _hidden_names(data)
    rows = [name for name in hidden if _looks_like_rows(name)]
    passed = f"{count(len(rows), 'file')} of {_shown(data)} would be passed over: {few(rows)}"
    why = "a name that begins with _ or . is hidden to readers of Parquet"
    beside = f" (passed over: {', '.join(hidden[:5])})" if hidden else ""
    refuse(
        (rows, f"{passed}; {why}", "rename or remove it, or give the files to be read as a list"),
        (not fragments, f"there is no Parquet file in {_shown(data)}{beside}"),
    )
    return fragments


def _addresses(data: Any) -> list[str]:
    items = data if isinstance(data, (list, tuple)) else [data]
    return [item for item in items if isinstance(item, str) and "://" in item]


def _shown(data: Any) -> str:
    if isinstance(data, (list, tuple)):
        return shown([masked(item) if isinstance(item, str) else item for item in data])
    is_path = isinstance(data, (str, os.PathLike))
    return repr(masked(os.fspath(data))) if is_path else "the data set"


def _opened(data: Any) -> ds.Dataset:
    import pyarrow.dataset as ds

    if isinstance(data, ds.Dataset):
        return data
    if isinstance(data, (str, os.PathLike)):
        data = os.fspath(data)
    elif (
        isinstance(data, Iterable)
        and not isinstance(data, Mapping)
        and getattr(data, "ndim", 1) == 1
    ):
        data = [os.fspath(item) if isinstance(item, (str, os.PathLike)) else item for item in data]
    else:
        raise InvalidInput(
            f"expected a Parquet data set (a path, a URL, a list of files, or a pyarrow.dataset), found a "
            f"{type(data).__name__}",
            remedy="a frame in memory goes to rankeval.evaluate, with the same names of columns",
        )
    with _explained_if_unreadable(data):
        if isinstance(data, list) and _addresses(data):
            return _from_urls(data)
        return ds.dataset(data, format="parquet", partitioning="hive")


@contextmanager
def _explained_if_unreadable(data: Any) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise InvalidInput(
            f"there is no such data set: {hidden(str(error), _addresses(data))}"
        ) from None
    except (pa.ArrowException, OSError, TypeError, ValueError) as error:
        raise InvalidInput(
            f"cannot open the data set {_shown(data)}: {hidden(str(error), _addresses(data))}"
        ) from None


def _from_urls(urls: list[str]) -> ds.Dataset:
    # pyarrow takes several URLs one at a time only.
    import pyarrow.dataset as ds

    opened = [pafs.FileSystem.from_uri(url) for url in urls]
    is_one = all(filesystem == opened[0][0] for filesystem, _ in opened)
    require(is_one, "data", [masked(url) for url in urls], "URLs on one file system")
    return ds.dataset(
        [path for _, path in opened], filesystem=opened[0][0], format="parquet", partitioning="hive"
    )


def _leaves(dataset: ds.Dataset) -> list[ds.Dataset]:
    import pyarrow.dataset as ds

    # A filter lives there: to read past it would score other rows.
    if getattr(dataset, "_scan_options", None):
        raise InvalidInput(
            "the data set has a filter, which is not applied row by row here",
            remedy="give the files of these rows alone, or write what the filter leaves: pyarrow.dataset.write_dataset",
        )
    if isinstance(dataset, ds.UnionDataset):
        return [leaf for child in dataset.children for leaf in _leaves(child)]
    is_files = isinstance(dataset, ds.FileSystemDataset)
    if is_files and isinstance(dataset.format, ds.ParquetFileFormat):
        return [dataset]
    kind = f"one of {dataset.format.default_extname} files" if is_files else "rows in memory"
    raise InvalidInput(
        f"expected a data set of Parquet files, found {kind}",
        remedy="write it as Parquet first (pyarrow.dataset.write_dataset), or give its columns as arrays",
    )


def _hidden_names(data: Any) -> list[str]:
    """Return the files that readers pass over, below a folder whose name begins with _ or a dot."""
    if not isinstance(data, (str, os.PathLike)):
        return []
    filesystem = pafs.LocalFileSystem()
    root = os.fspath(data)
    if "://" in root:
        filesystem, root = pafs.FileSystem.from_uri(root)
    else:
        root = Path(root).expanduser().resolve().as_posix()
    root = root.rstrip("/") or "/"
    if filesystem.get_file_info(root).type != pafs.FileType.Directory:
        return []
    files = filesystem.get_file_info(pafs.FileSelector(root, recursive=True))
    names = (file.path[len(root) :].lstrip("/") for file in files if file.is_file)
    return sorted(
        name for name in names if any(part.startswith(_HIDDEN) for part in name.split("/"))
    )


def _looks_like_rows(name: str) -> bool:
    parts = [part for part in name.split("/") if part.startswith(_HIDDEN)]
    if any(part.startswith(_BESIDE) for part in parts):
        return False
    return name.endswith((".parquet", ".parq", ".pq")) or any("=" in part for part in parts)


def refuse_twice(files: Iterable[tuple[Any, str, Sequence[int]]]) -> None:
    """Refuse a data set in which a file stands twice, also under two names."""
    seen: dict[tuple[str, int], list[tuple[Any, str]]] = {}
    for filesystem, path, groups in files:
        place = _place_on_disk(path) if filesystem.type_name == "local" else path
        for group in groups:
            others = seen.setdefault((place, group), [])
            other = next((name for where, name in others if where == filesystem), None)
            if other is not None:
                same = (
                    "occurs twice in the data set" if other == path else f"and {other} are one file"
                )
                raise InvalidInput(
                    f"{path} {same}", remedy="give each file once, or its rows would count twice"
                )
            others.append((filesystem, path))


def _place_on_disk(path: str) -> str:
    # Links, and names that the file system gives to one file, must not count its rows twice.
    known = Path(path).stat()
    return f"{known.st_dev}:{known.st_ino}" if known.st_nlink > 1 else os.path.realpath(path)


def refuse_two_spellings(files: Iterable[tuple[str, Mapping[str, Any]]], qid: str) -> None:
    """Refuse folders of one query with two names, such as ``q=1`` and ``q=01`` for numbers."""
    known: dict[Any, str] = {}
    for path, keys in files:
        folders = [part for part in path.split("/")[:-1] if part.startswith(f"{qid}=")]
        if qid not in keys or not folders:
            continue
        folder = unquote(folders[-1])
        other = known.setdefault(keys[qid], folder)
        if other != folder:
            first, second = sorted((other, folder))
            raise QueryIdError(
                f"qid={qid!r}: the folders {first} and {second} are one query as numbers ({keys[qid]}); rename one, or "
                "read the ids as texts: give pyarrow.dataset.dataset(folder, partitioning=pyarrow.dataset.partitioning("
                f"pyarrow.schema([({qid!r}, pyarrow.string())]), flavor='hive'))"
            )


SCHEMA = "the schema of the data set"
"""Where a type stands that no file has, and that a caller gave."""

_IDS = ("qid", "docid")

_FOOTERS = 16
"""Footers that are read at a time: on a remote file system each is a wait."""

_TEXT = 20
"""Bytes of a text id, about, with its length."""


def stored_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values of dictionaries and views."""
    return stored_type(kind.value_type) if pa.types.is_dictionary(kind) else without_view(kind)


def common(role: str, name: str, kinds: Mapping[Any, str]) -> pa.DataType:
    """Return the one type in which the column of all files is read."""
    known = [kind for kind in kinds if not pa.types.is_null(kind)] or list(kinds)
    fitting = _texts_or_whole if role in _IDS else _number
    shared = known[0] if len(known) == 1 else fitting(known)
    declared = next(
        (kind for kind in known if kinds[kind] == SCHEMA and _rounds(kind, shared)), None
    )
    if shared is not None and declared is None:
        return shared
    pairs = ((a, b) for a in known for b in known if a != b)
    first, other = next(((a, b) for a, b in pairs if fitting([a, b]) is None), (known[0], declared))
    remedy = "ids of one type" if role in _IDS else "numbers of one type"
    raise (QueryIdError if role == "qid" else InvalidInput)(
        f"{role}={name!r} is of type {first} in {kinds[first]} and of type {other} in {kinds[other]}, and to read "
        f"them as one would change values; write all files with {remedy}"
    )


def _rounds(declared: pa.DataType, shared: pa.DataType | None) -> bool:
    """Say whether the type of the schema would change values, though it is a common type."""
    return declared != shared and bool(
        pa.types.is_boolean(declared) or pa.types.is_floating(declared)
    )


def _texts_or_whole(kinds: list[pa.DataType]) -> pa.DataType | None:
    if all(is_text_type(kind) for kind in kinds):
        return pa.large_string()
    if all(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) for kind in kinds):
        return pa.large_binary()
    return _whole(kinds) if all(pa.types.is_integer(kind) for kind in kinds) else None


def _number(kinds: list[pa.DataType]) -> pa.DataType | None:
    """Return the type of numbers; one that float64 does not hold is refused when it is read."""
    whole = [kind for kind in kinds if pa.types.is_integer(kind) or pa.types.is_boolean(kind)]
    if len(whole) == len(kinds):
        return _whole(kinds)
    return (
        pa.float64() if all(kind in whole or pa.types.is_floating(kind) for kind in kinds) else None
    )


def _whole(kinds: list[pa.DataType]) -> pa.DataType | None:
    if not any(kind == pa.uint64() for kind in kinds):
        return pa.int64()
    return None if any(pa.types.is_signed_integer(kind) for kind in kinds) else pa.uint64()


@dataclass(frozen=True)
class RowGroup:
    """A row group of a file."""

    number: int  # Its number in the file
    n_rows: int  # Its rows
    ends: tuple[Any, Any] | None  # The least and the greatest query if the file says so
    reads_coded: bool  # Whether Arrow can read its texts of queries as dictionaries


@dataclass(frozen=True)
class File:
    """A file of the data set, or some of its row groups."""

    path: str  # Its path on the file system
    filesystem: Any  # Where it lies
    keys: Mapping[str, Any]  # The columns that stand in the names of its folders
    row_groups: tuple[RowGroup, ...]  # The row groups to be read

    @property
    def n_rows(self) -> int:
        """Number of rows to be read."""
        return sum(group.n_rows for group in self.row_groups)


@dataclass(frozen=True)
class ReadColumns:
    """The columns of the data set that an evaluation reads, by what they are, and their types."""

    # ``qid``, ``relevance``, ``score``, and ``docid``, ``query_weight`` and ``columns['price']`` if
    # they are read -> the name of the column.
    names: Mapping[str, str]
    types: Mapping[str, Any]  # The same -> its type

    @property
    def row_bytes(self) -> int:
        """About how many bytes a row has."""
        return sum(_width(kind) for kind in self.types.values())


@dataclass(frozen=True)
class ParquetSource:
    """A Parquet data set that can be read in parts."""

    files: tuple[File, ...]  # In the order of the data set
    columns: ReadColumns  # What is read of them

    @classmethod
    def of(cls, data: Any, names: Mapping[str, str]) -> ParquetSource:
        """Open a data set and read the footers of its files."""
        fragments = fragments_of(data)
        for role, name in names.items():
            _refuse_no_column(fragments[0][1], role, name, "the data set")
        with ThreadPoolExecutor(_FOOTERS) as pool:
            footers = list(pool.map(lambda pair: _footer(pair[0], pair[1], names), fragments))
        refuse_two_spellings(
            ((footer.fragment.path, footer.keys) for footer in footers), names["qid"]
        )
        columns = ReadColumns(
            names, {role: common(role, name, _kinds(footers, name)) for role, name in names.items()}
        )
        files = tuple(_file(footer, columns) for footer in footers)
        refuse_twice(
            (file.filesystem, file.path, [group.number for group in file.row_groups])
            for file in files
        )
        source = cls(files, columns)
        if not source.n_rows:
            raise InvalidInput(
                f"the data set has no rows ({len(files)} files); give a row for each ranked document"
            )
        return source

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(file.n_rows for file in self.files)

    def card(self) -> dict[str, Any]:
        """Return what identifies a data set: its files, with sizes, times and numbers of rows."""
        digest = hashlib.sha256()
        n_bytes = 0
        for file in self.files:
            info = file.filesystem.get_file_info(file.path)
            n_bytes += info.size or 0
            groups = [(group.number, group.n_rows) for group in file.row_groups]
            digest.update(repr((file.path, info.size, info.mtime_ns, groups)).encode())
        return {
            "files": len(self.files),
            "rows": self.n_rows,
            "bytes": n_bytes,
            "sha256": digest.hexdigest(),
        }


def _refuse_no_column(schema: pa.Schema, role: str, name: str, where: str) -> None:
    places = [place for place, known in enumerate(schema.names) if known == name]
    if len(places) != 1:
        problem = f"stands {len(places)} times in" if places else "is not in"
        raise InvalidInput(
            f"{role}={name!r} {problem} {where}; its columns are: {', '.join(schema.names)}"
        )
    kind = schema.field(places[0]).type
    if pa.types.is_nested(kind):
        raise InvalidInput(f"{role}={name!r} is of type {kind}: give one value a row")


class _Footer(NamedTuple):
    """What the footer of a file says, with the values and types of what stands in the names of its folders.

    ``declared`` are the types in the schema of the data set: those of its first file, or what the
    caller asked for.
    """

    fragment: Any
    metadata: pq.FileMetaData
    keys: Mapping[str, Any]
    kinds: Mapping[str, Any]
    declared: Mapping[str, Any]


def _footer(fragment: Any, known: pa.Schema, names: Mapping[str, str]) -> _Footer:
    import pyarrow.dataset as ds

    try:
        metadata = fragment.metadata
    except (pa.ArrowException, OSError) as error:
        raise FileFormatError(
            f"{fragment.path}: not a whole Parquet file ({said(error)})"
        ) from error
    keys = ds.get_partition_keys(fragment.partition_expression)
    key = keys.get(names["qid"])
    if names["qid"] in keys and (key is None or (isinstance(key, float) and math.isnan(key))):
        raise QueryIdError(
            f"{fragment.path}: qid={names['qid']!r}: the name of its folder has no query id"
        )
    schema = metadata.schema.to_arrow_schema()
    kinds = {}
    for role, name in names.items():
        if name not in keys:
            _refuse_no_column(schema, role, name, fragment.path)
        kinds[name] = stored_type((known if name in keys else schema).field(name).type)
    declared = {name: stored_type(known.field(name).type) for name in kinds}
    return _Footer(fragment, metadata, keys, kinds, declared)


def _kinds(footers: Sequence[_Footer], name: str) -> dict[Any, str]:
    kinds: dict[Any, str] = {}
    for footer in footers:
        kinds.setdefault(footer.kinds[name], footer.fragment.path)
    for footer in footers:
        kinds.setdefault(footer.declared[name], SCHEMA)
    return kinds


def _file(footer: _Footer, columns: ReadColumns) -> File:
    fragment = footer.fragment
    groups = [_row_group(footer, group.id, columns) for group in fragment.row_groups]
    filled = tuple(group for group in groups if group.n_rows)
    return File(fragment.path, fragment.filesystem, footer.keys, filled)


def _row_group(footer: _Footer, number: int, columns: ReadColumns) -> RowGroup:
    name = columns.names["qid"]
    kind = columns.types["qid"]
    metadata = footer.metadata
    keys = footer.keys
    group = metadata.row_group(number)
    if name in keys:
        # A folder names its query by a text; rows are compared by what it stands for.
        numbers, names = comparable(pa.array([keys[name]], kind), "qid")
        key = (numbers if names is None else names)[0]
        return RowGroup(number, group.num_rows, (key, key), reads_coded=False)
    place = next(
        at for at in range(metadata.num_columns) if metadata.schema.column(at).path == name
    )
    column = group.column(place)
    known = column.statistics
    reads_coded = is_text_type(kind) and not any(
        encoding.startswith("DELTA") for encoding in column.encodings
    )
    # A file of another type has the same order: texts or whole numbers of another width.
    has_ends = is_ordered(kind) and known is not None and known.has_min_max
    ends = (known.min, known.max) if has_ends and known.min == known.min else None
    return RowGroup(number, group.num_rows, ends, reads_coded)


def is_ordered(kind: pa.DataType) -> bool:
    """Say whether ids of a type are in the same order for Parquet, NumPy and Python."""
    return bool(pa.types.is_integer(kind) or pa.types.is_float64(kind) or is_text_type(kind))


def _width(kind: pa.DataType) -> int:
    if pa.types.is_null(kind):
        return 0
    try:
        return -(-int(kind.bit_width) // 8)
    except ValueError:  # a text, or bytes
        return _TEXT
