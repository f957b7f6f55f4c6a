"""The files of a data set: each is read once, and none is passed over without a word.

log/d=1/a.parquet              read
log/_SUCCESS, log/_temporary/  passed over: what Spark, Hive and others leave beside the rows
log/_d=2/b.parquet             passed over by readers of Parquet, though it looks like rows: refused

Messages show URLs without user, password and query string, where keys of a store may stand. The trap: a password
may hold a slash, and a query string an @. So if the first name of a URL has a colon or an @, all before the last @ is
hidden, a host and a port with it; and all of the URL if a question mark stands before that @.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.fs as pafs

from rankeval._checks import count, few, shown
from rankeval.errors import InvalidInput, QueryIdError

if TYPE_CHECKING:
    import pyarrow.dataset as ds


_URL = re.compile(r"(\w://)([^\s'\"]+)")

_HIDDEN = ("_", ".")
_BESIDE = (
    *("_temporary", ".spark-staging", ".hive-staging", "_delta_log", "_change_data", ".hoodie"),
    *("._", ".ipynb_checkpoints", ".Trash"),
)
"""Names, by their beginnings, that others give to Parquet files and folders which are no rows of the data set."""


def masked(text: str) -> str:
    """Return a text in one line, with *** for what may be a secret in its URLs."""
    return _URL.sub(lambda found: found[1] + _masked(found[2]), " ".join(text.split()))


def _masked(rest: str) -> str:
    user, at, host = rest.rpartition("@")
    if at and {":", "@"} & set(rest.partition("/")[0]):
        if "?" in user:
            return "***"
        rest = f"***@{host}"
    path, mark, _ = rest.partition("?")
    return f"{path}?***" if mark else path


def name_of(path: str) -> str:
    """Return the last name of a path or URL, without its query string."""
    if "://" not in path:
        return path.rstrip("/").rpartition("/")[2]
    return masked(path).partition("?")[0].rstrip("/").rpartition("/")[2]


def fragments_of(data: Any) -> list[tuple[ds.Fragment, pa.Schema]]:
    """Return the files of a data set, each with the schema of its data set.

    Parameters
    ----------
    data : path, URL, list of paths, or pyarrow Dataset
        As in `rankeval.evaluate_dataset`.

    Raises
    ------
    InvalidInput
        If there is no such data set, it has no file, or rows would be passed over.
    """
    found = [(one, dataset.schema) for dataset in _leaves(_opened(data)) for one in dataset.get_fragments()]
    with _said_if_unreadable(data):
        hidden = _hidden_names(data)
    rows = [one for one in hidden if _looks_like_rows(one)]
    if rows:
        raise InvalidInput(
            f"{count(len(rows), 'file')} of {_said(data)} would be passed over: {few(rows)}; a name that begins with _ "
            "or . is hidden to readers of Parquet: rename or remove it, or give the files to be read as a list"
        )
    if not found:
        beside = f" (passed over: {', '.join(hidden[:5])})" if hidden else ""
        raise InvalidInput(f"there is no Parquet file in {_said(data)}{beside}")
    return found


def _said(data: Any) -> str:
    if isinstance(data, (list, tuple)):
        return shown([masked(os.fspath(one)) for one in data])
    is_path = isinstance(data, (str, os.PathLike))
    return repr(masked(os.fspath(data))) if is_path else "the data set"


def _opened(data: Any) -> ds.Dataset:
    """Return a pyarrow data set."""
    import pyarrow.dataset as ds

    if isinstance(data, ds.Dataset):
        return data
    if isinstance(data, (str, os.PathLike)):
        data = os.fspath(data)
    elif isinstance(data, Iterable) and not isinstance(data, Mapping) and not hasattr(data, "columns"):
        data = [os.fspath(one) if isinstance(one, (str, os.PathLike)) else one for one in data]
        if not data or not all(isinstance(one, str) for one in data):
            raise InvalidInput(f"a data set as a list has paths of Parquet files, found {few(data)}")
    else:
        raise InvalidInput(
            f"expected a Parquet data set (a path, a URL, a list of files, or a pyarrow.dataset), found a "
            f"{type(data).__name__}",
            remedy="a frame in memory goes to rankeval.evaluate, with the same names of columns",
        )
    with _said_if_unreadable(data):
        if isinstance(data, list) and any("://" in one for one in data):
            return _from_urls(data)
        return ds.dataset(data, format="parquet", partitioning="hive")


@contextmanager
def _said_if_unreadable(data: Any) -> Iterator[None]:
    """Raise what a file system says, without the secrets of a URL."""
    try:
        yield
    except FileNotFoundError as error:
        raise InvalidInput(f"there is no such data set: {masked(str(error))}") from None
    except (pa.ArrowException, OSError, TypeError, ValueError) as error:
        raise InvalidInput(f"cannot open the data set {_said(data)}: {masked(str(error))}") from None


def _from_urls(urls: list[str]) -> ds.Dataset:
    """Return the data set of several URLs, which pyarrow takes one at a time only."""
    import pyarrow.dataset as ds

    found = [pafs.FileSystem.from_uri(one) for one in urls]
    if any(filesystem != found[0][0] for filesystem, _ in found):
        raise InvalidInput(
            f"the URLs of one data set must be on one file system, found {few([masked(one) for one in urls])}"
        )
    return ds.dataset([path for _, path in found], filesystem=found[0][0], format="parquet", partitioning="hive")


def _leaves(dataset: ds.Dataset) -> list[ds.Dataset]:
    """Return the data sets of files that a data set consists of."""
    import pyarrow.dataset as ds

    if getattr(dataset, "_scan_options", None):  # a filter lives there: to read past it would score other rows
        raise InvalidInput(
            "the data set has a filter, which is not applied row by row here",
            remedy="give the files of these rows alone, or write what the filter leaves: pyarrow.dataset.write_dataset",
        )
    if isinstance(dataset, ds.UnionDataset):
        return [leaf for child in dataset.children for leaf in _leaves(child)]
    if not isinstance(dataset, ds.FileSystemDataset) or not isinstance(dataset.format, ds.ParquetFileFormat):
        is_files = isinstance(dataset, ds.FileSystemDataset)
        found = f"one of {dataset.format.default_extname} files" if is_files else "rows in memory"
        raise InvalidInput(
            f"expected a data set of Parquet files, found {found}",
            remedy="write it as Parquet first (pyarrow.dataset.write_dataset), or give its columns as arrays",
        )
    return [dataset]


def _hidden_names(data: Any) -> list[str]:
    """Return the files below a folder that readers pass over, since a name on the way begins with _ or a dot."""
    if not isinstance(data, (str, os.PathLike)):
        return []
    filesystem, root = pafs.LocalFileSystem(), os.fspath(data)
    if "://" in root:
        filesystem, root = pafs.FileSystem.from_uri(root)
    else:
        root = Path(root).expanduser().resolve().as_posix()
    root = root.rstrip("/") or "/"
    if filesystem.get_file_info(root).type != pafs.FileType.Directory:
        return []
    files = filesystem.get_file_info(pafs.FileSelector(root, recursive=True))
    names = (one.path[len(root) :].lstrip("/") for one in files if one.is_file)
    return sorted(one for one in names if any(part.startswith(_HIDDEN) for part in one.split("/")))


def _looks_like_rows(name: str) -> bool:
    """Say whether a file is Parquet, or below a partition, and nothing that is left beside rows."""
    parts = [part for part in name.split("/") if part.startswith(_HIDDEN)]
    if any(part.startswith(_BESIDE) for part in parts):
        return False
    return name.endswith((".parquet", ".parq", ".pq")) or any("=" in part for part in parts)


def refuse_twice(files: Iterable[tuple[Any, str, Sequence[int]]]) -> None:
    """Refuse a data set in which a file stands twice, also under two names.

    Parameters
    ----------
    files : iterable of (pyarrow FileSystem, str, sequence of int)
        Where each file lies, its path, and the numbers of the row groups that are read of it.

    Raises
    ------
    InvalidInput
        The message names the file.
    """
    seen: dict[tuple[str, int], list[tuple[Any, str]]] = {}
    for filesystem, path, groups in files:
        place = _place_on_disk(path) if filesystem.type_name == "local" else path
        for group in groups:
            others = seen.setdefault((place, group), [])
            other = next((name for where, name in others if where == filesystem), None)
            if other is not None:
                same = "stands twice in the data set" if other == path else f"and {other} are one file"
                raise InvalidInput(f"{path} {same}", remedy="give each file once, or its rows would count twice")
            others.append((filesystem, path))


def _place_on_disk(path: str) -> str:
    """Return the same text for all names of a local file: links, and names that the file system gives to one file."""
    known = Path(path).stat()
    return f"{known.st_dev}:{known.st_ino}" if known.st_nlink > 1 else os.path.realpath(path)


def refuse_two_spellings(files: Iterable[tuple[str, Mapping[str, Any]]], qid: str) -> None:
    """Refuse folders of one query that are written in two ways, as ``q=1`` and ``q=01`` are if they are numbers.

    Parameters
    ----------
    files : iterable of (str, mapping)
        The path of each file, and the values that stand in the names of its folders.
    qid : str
        The column of the query.

    Raises
    ------
    QueryIdError
        The message names both folders.
    """
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
