"""A record as a folder that other programs and later versions can read, and anyone can check.

::

    <folder>/record.json             written last: all but content, and bytes and hash of each file below
             evaluation.parquet      the files of the record, by their paths
             tables/folds.parquet    its tables
             parts/dev/...           records of the same run, again with a record.json each
             children/ridge/...      records of runs of their own
             README.md               a view: no reader looks at it, and record.json does not name it

The *seal* is the SHA-256 of ``record.json``, which has the hashes of its files and the seals of
parts and children. So a folder is as its seal says, or it is refused. Neither time nor place is in
it: the same result has the same seal. A folder is whole or absent: it is filled under another name,
and renamed. It is never changed afterwards.

The trap: a ``record.json`` may be a stranger's. Its paths are checked before anything is opened,
and a file is hashed before it is parsed.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ValidationError

from rankeval._checks import refuse, said, shown
from rankeval._visible import markdown
from rankeval.errors import FileFormatError, InvalidInput
from rankeval.io.opening import as_path, writing
from rankeval.shelf.record import Record
from rankeval.tracking import LoggedData

if TYPE_CHECKING:
    import pandas as pd

FORMAT = "rankeval.record/1"
NAME = "record.json"
README = "README.md"
_FAMILY = "rankeval.record/"
_MOST_BYTES = 4 << 20
_LONGEST_STEP, _LONGEST_PATH, _LONGEST_NAME = 240, 1000, 60
_CONTENT = ("tables", "files", "parts", "children")
_PLAIN = tuple(part.name for part in fields(Record) if part.name not in _CONTENT)
_OBJECTS = b"rankeval.objects"
"""Columns of Python's own values, such as positions and "all", which are stored as JSON."""
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_.\- ]")

T = TypeVar("T")


def checked_path(path: str) -> str:
    """Return a path of a file of a record; raise if it leads elsewhere or is not portable."""
    steps = path.split("/")
    size = len(path.encode())
    is_plain = path.isprintable() and "\\" not in path and all(step.strip(". ") for step in steps)
    is_long = size > _LONGEST_PATH or max(len(step.encode()) for step in steps) > _LONGEST_STEP
    most = f"{_LONGEST_STEP} between two slashes and {_LONGEST_PATH} in all"
    refuse(
        (
            not is_plain,
            f"the path of a file is {shown(path)}; expected a path such as 'plots/curve.png'",
        ),
        (
            is_long,
            f"the path of a file has {size} bytes: {path[:60]!r}...; expected at most {most}",
        ),
    )
    return path


class _Named(BaseModel):
    path: Annotated[str, AfterValidator(checked_path)]
    hash: str


class _Resource(_Named):
    bytes: int
    table: str | None = None


class _Held(_Named):
    name: str


class _Written(BaseModel):
    """The keys of ``record.json`` that a reader of this format must find; it passes over others."""

    kind: str
    name: str
    headline: str
    params: dict[str, Any]
    metrics: dict[str, float]
    series: dict[str, list[tuple[int, float]]]
    notes: tuple[str, ...]
    text: str
    facts: dict[str, Any]
    tags: dict[str, str]
    data: tuple[LoggedData, ...]
    status: str
    started: float | None
    seconds: float | None
    resources: list[_Resource]
    parts: list[_Held]
    children: list[_Held]


Put = Callable[[str, io.BufferedIOBase], dict[str, Any]]
"""Stores a file by its path; returns its size and hash, as a resource has them."""

Opened = Callable[[str], io.BufferedIOBase]
"""Opens a file of a record by its path: on a disk, among the artifacts of a run, in a bucket."""


class Stored(Mapping[str, T]):
    """The files or tables of a record in a store, each read and checked at its first use."""

    def __init__(
        self,
        opened: Opened,
        resources: Mapping[str, tuple[str, str]],
        parsed: Callable[[io.BufferedIOBase], T],
        where: str,
    ) -> None:
        self._opened, self._resources, self._parsed, self._where = opened, resources, parsed, where

    def __getitem__(self, name: str) -> T:
        with self.open(name) as file:
            return self._parsed(file)

    def __contains__(self, name: object) -> bool:  # a Mapping's own would read the file
        return name in self._resources

    def __iter__(self) -> Iterator[str]:
        return iter(self._resources)

    def __len__(self) -> int:
        return len(self._resources)

    def open(self, name: str) -> io.BufferedIOBase:
        """Open a file whose hash was checked, block by block."""
        path, expected = self._resources[name]
        file = self._opened(path)
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != expected:
            file.close()
            raise _damaged(f"the file {path!r} was altered or replaced", self._where)
        file.seek(0)
        return file


_RESTORE = "restore a copy, or save the result again"


def _damaged(problem: str, where: str) -> FileFormatError:
    return FileFormatError(problem, where=where, remedy=_RESTORE)


def file_names(titles: list[str]) -> list[str]:
    """Return a file name for each title: plain, short, and different even if case is ignored."""
    chosen: dict[str, str] = {}
    for title in titles:
        plain = _NOT_PLAIN.sub("_", title.replace("@", "_at_"))
        short = plain[:_LONGEST_NAME] if plain.strip(". ") else "_"
        name = short if plain == short else f"{short[:48]}...~{_digest(title)}"
        while name.lower() in chosen:
            name = f"{short}_{_digest(f'{name} {title}')}"
        chosen[name.lower()] = name
    return list(chosen.values())


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()[:8]


def write(record: Record, folder: str | os.PathLike[str]) -> str:
    """Write a record to a folder, whole or not at all; return its seal."""
    target = as_path(folder).absolute()
    draft = target.parent / f".{target.name}.{secrets.token_hex(4)}.draft"
    try:
        with writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            draft.mkdir()
            seal = _filled(partial(_put, draft), record)
            if not _renamed(draft, target):
                _refuse_another(target, seal)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return seal


def _renamed(draft: Path, target: Path) -> bool:
    """Give a draft its name; return false if the name is taken, perhaps since a moment ago."""
    try:
        draft.rename(target)
    except OSError:
        if not target.exists():
            raise
        return False
    return True


def _refuse_another(target: Path, seal: str) -> None:
    there = target / NAME
    same = there.is_file() and hashlib.sha256(there.read_bytes()).hexdigest() == seal
    holds = "another record" if there.is_file() else "something else"
    refuse(
        (
            not same,
            f"{str(target)!r} holds {holds}",
            "give another folder: a record is never changed",
        )
    )


def packed(record: Record) -> dict[str, bytes]:
    """Return the files of the folder of a record by path, without the view and the children."""
    files: dict[str, bytes] = {}

    def put(path: str, content: io.BufferedIOBase) -> dict[str, Any]:
        files[path] = content.read()
        return _described(len(files[path]), hashlib.sha256(files[path]))

    _filled(put, record)
    views = (README, "children/")
    return {path: content for path, content in files.items() if not path.startswith(views)}


def _filled(put: Put, record: Record) -> str:
    files = {checked_path(path): (path, record.files) for path in record.files}
    plain = zip(record.tables, file_names([*record.tables]), strict=True)
    tables = {f"tables/{file}.parquet": (name, record.tables) for name, file in plain}
    resources = []
    for path, (name, held) in (*files.items(), *tables.items()):
        with _content(name, held) as file:
            resources.append({"path": path, **put(path, file)})
        if path in tables:
            resources[-1]["table"] = name
    written = {name: _plain(getattr(record, name)) for name in _PLAIN}
    metrics = {name: _number(value) for name, value in record.metrics.items()}
    series = {
        name: [[step, _number(value)] for step, value in by.items()]
        for name, by in record.series.items()
    }
    of = {kind: _records(put, kind, getattr(record, kind)) for kind in ("parts", "children")}
    try:
        content = json.dumps(
            {
                "format": FORMAT,
                **written,
                "metrics": metrics,
                "series": series,
                "data": [asdict(data) for data in record.data],
                "resources": resources,
                **of,
            },
            indent=1,
            ensure_ascii=False,
            allow_nan=False,
        ).encode()
    except (TypeError, ValueError) as error:
        problem = f"the record of kind {record.kind!r} has a value that JSON cannot express: {said(error)}"
        raise InvalidInput(problem) from error
    refuse(
        (
            len(content) > _MOST_BYTES,
            f"{NAME} would have {len(content):,} bytes, and may have {_MOST_BYTES:,}",
        )
    )
    put(README, io.BytesIO(_readme(record).encode()))
    put(NAME, io.BytesIO(content))
    return hashlib.sha256(content).hexdigest()


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value


def _number(value: float) -> float | str:
    value = float(value)
    return value if math.isfinite(value) else str(value)


def _content(name: str, held: Mapping[str, Any]) -> io.BufferedIOBase:
    if isinstance(held, Stored):
        return held.open(name)
    value = held[name]
    return io.BytesIO(value if isinstance(value, bytes) else parquet_of(value))


def _put(folder: Path, path: str, content: io.BufferedIOBase) -> dict[str, Any]:
    where = folder / path
    where.parent.mkdir(parents=True, exist_ok=True)
    with where.open("xb") as file:
        shutil.copyfileobj(content, file, 1 << 20)
        file.flush()
        os.fsync(file.fileno())
    with where.open("rb") as file:
        return _described(where.stat().st_size, hashlib.file_digest(file, "sha256"))


def _described(size: int, digest: Any) -> dict[str, Any]:
    return {"bytes": size, "hash": f"sha256:{digest.hexdigest()}"}


def _records(put: Put, kind: str, records: Mapping[str, Record]) -> list[dict[str, str]]:
    paths = [f"{kind}/{name}" for name in file_names([*records])]
    return [
        {"name": name, "path": path, "hash": f"sha256:{_filled(_within(put, path), record)}"}
        for path, (name, record) in zip(paths, records.items(), strict=True)
    ]


def _within(put: Put, folder: str) -> Put:
    return lambda path, content: put(f"{folder}/{path}", content)


def _readme(record: Record) -> str:
    notes = map(markdown, record.notes)
    noted = "".join(f"- {note}\n" for note in notes if note not in record.text)
    parts = (
        f"# {markdown(record.name or record.kind)}",
        markdown(record.headline),
        record.text,
        noted,
    )
    return "\n\n".join(part for part in parts if part).rstrip() + "\n"


def _json(value: Any) -> str:
    return json.dumps(value, default=lambda scalar: scalar.item())


def parquet_of(frame: pd.DataFrame) -> bytes:
    """Return a table as the bytes of a Parquet file, with its index and the types of its columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    try:
        objects = {
            str(name): column.map(_json) for name, column in frame.items() if column.dtype == object
        }
        table = pa.Table.from_pandas(frame.assign(**objects))
        kept = {**(table.schema.metadata or {}), _OBJECTS: json.dumps([*objects]).encode()}
        pq.write_table(table.replace_schema_metadata(kept), sink, compression="zstd")
    except (pa.ArrowException, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InvalidInput(
            f"a table cannot be stored: {said(error)}; give its ids one type"
        ) from error
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _table(file: io.BufferedIOBase) -> pd.DataFrame:
    import pyarrow.parquet as pq

    table = pq.read_table(io.BytesIO(file.read()))
    frame: pd.DataFrame = table.to_pandas()
    for name in json.loads(table.schema.metadata[_OBJECTS]):
        frame[name] = frame[name].map(json.loads).astype(object)
    return frame


def read(folder: str | os.PathLike[str]) -> Record:
    """Read the record in a folder; files and tables are read and checked at their first use."""
    where = as_path(folder)
    is_there = os.path.isfile(where / NAME)  # noqa: PTH113 - Path raises for a name that is too long
    refuse((not is_there, f"{str(where)!r} has no record: there is no {NAME}"))
    return fetched(partial(_opened, where), str(where))


def _opened(where: Path, path: str) -> io.BufferedIOBase:
    """Open a file of a folder; links to folders could repeat a part very many times."""
    file = where / path
    if not file.is_file() or file.parent.resolve() != where.resolve() / PurePosixPath(path).parent:
        raise _damaged(f"there is no file {path!r}", str(where))
    return file.open("rb")


def with_hashes_checked(record: Record) -> Record:
    """Return a record after a check of the hashes of its files and of those of its parts."""
    for held in (record.files, record.tables):
        for name in held:
            _content(name, held).close()
    for part in (*record.parts.values(), *record.children.values()):
        with_hashes_checked(part)
    return record


def fetched(
    opened: Opened, where: str, seal: str | None = None, *, children: bool = True
) -> Record:
    """Read a record from any store."""
    try:
        with opened(NAME) as file:
            content = file.read(_MOST_BYTES + 1)
        if seal is not None and not hashlib.sha256(content).hexdigest().startswith(seal):
            raise _damaged(f"{NAME} was altered or replaced", where)
        written = _Written.model_validate(_of_this_format(content, where))
        return _read(written, opened, where, children=children)
    except RecursionError as error:
        raise _damaged("its parts are nested too deeply", where) from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        problem = (
            f"{NAME} is not a whole record: {'.'.join(map(str, first['loc']))}: {first['msg']}"
        )
        raise _damaged(problem, where) from error


def _of_this_format(content: bytes, where: str) -> Any:
    if len(content) > _MOST_BYTES:
        raise _damaged(f"{NAME} has more than {_MOST_BYTES:,} bytes", where)
    try:
        written = json.loads(content)
        version = written.pop("format")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise _damaged(f"{NAME} is not a record: {said(error)}", where) from error
    if version != FORMAT:
        is_known = isinstance(version, str) and version.startswith(_FAMILY)
        remedy = "read it with the version that wrote it" if is_known else _RESTORE
        problem = f"{NAME} has the format {shown(version)}, and this version reads {FORMAT!r}"
        raise FileFormatError(problem, where=where, remedy=remedy)
    return written


def _read(written: _Written, opened: Opened, where: str, *, children: bool) -> Record:
    plain: dict[str, Any] = {name: getattr(written, name) for name in _PLAIN if name != "series"}
    paths = [item.path for item in (*written.resources, *written.parts, *written.children)]
    if len({*paths}) < len(paths):
        raise _damaged(f"{NAME} names one path twice", where)
    files: dict[str, tuple[str, str]] = {}
    tables: dict[str, tuple[str, str]] = {}
    for resource in written.resources:
        place = resource.path, resource.hash.removeprefix("sha256:")
        if resource.table is None:
            files[resource.path] = place
        else:
            tables[resource.table] = place

    def read_all(held: list[_Held]) -> dict[str, Record]:
        return {part.name: _part(part, opened, where, children=children) for part in held}

    series = {name: dict(points) for name, points in written.series.items()}
    return Record(
        **plain,
        series=series,
        files=Stored(opened, files, lambda file: file.read(), where),
        tables=Stored(opened, tables, _table, where),
        parts=read_all(written.parts),
        children=read_all(written.children if children else []),
    )


def _part(held: _Held, opened: Opened, where: str, *, children: bool) -> Record:
    seal = held.hash.removeprefix("sha256:")
    return fetched(
        lambda inner: opened(f"{held.path}/{inner}"),
        f"{where}/{held.path}",
        seal,
        children=children,
    )
