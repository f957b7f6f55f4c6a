"""The folder of a call: its parts as they come, and what says which call they belong to.

    scores/_rankeval.json       the call: data set, columns, measures, rules; and whether it is complete
    scores/part-00000.parquet   the evaluation of a part, one row a query
    scores/_buckets/            rows by bucket, while a data set that is not sorted is evaluated

Each file is written under another name and renamed, so that a call that was ended at any moment
leaves whole files, and the next one goes on. Readers of Parquet pass over names that begin with an
underscore.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs

from rankeval._checks import few, require
from rankeval._secrets import masked
from rankeval.errors import InvalidInput
from rankeval.evaluation.result import Evaluation
from rankeval.io.opening import write_atomically

_MANIFEST = "_rankeval.json"
_FORMAT = 1
_SCHEME = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]+:/"
)  # as in s3://bucket, also after Path has made one slash of two
_FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclass
class Folder:
    """The folder of one call."""

    path: Path  # Where it is
    keeps: bool  # Whether parts are kept in it; otherwise it is temporary, and holds buckets only
    card: Mapping[str, Any]  # What is asked, for the manifest

    @property
    def buckets(self) -> Path:
        """The folder of the buckets."""
        return self.path / "_buckets"

    def make_buckets(self, n_bytes: int) -> None:
        """Make the folder of the buckets, if the disk has room for them."""
        self.buckets.mkdir(exist_ok=True)
        free = shutil.disk_usage(self.buckets).free + sum(
            file.stat().st_size for file in self.buckets.iterdir()
        )
        if free < n_bytes:
            raise InvalidInput(
                f"the rows are not sorted by query, so they are put together in {str(self.buckets)!r}: that takes "
                f"{n_bytes / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free there",
                remedy="name a folder on another disk by folder= or by the environment variable TMPDIR",
            )

    @contextmanager
    def explaining_full_disk(self) -> Iterator[None]:
        """Raise the error of a full disk as one that says which disk, and what to do."""
        try:
            yield
        except OSError as error:
            if error.errno not in _FULL:
                raise
            goes_on = (
                "make room and call again, which goes on from there, or " if self.keeps else ""
            )
            raise InvalidInput(
                f"the disk of {str(self.path)!r} is full",
                remedy=f"{goes_on}name a folder on another disk by folder= or by the environment variable TMPDIR",
            ) from error

    def part(self, number: int) -> Path:
        """Return the file of a part."""
        return self.path / f"part-{number:05}.parquet"

    def write(self, number: int, scored: Evaluation | None) -> None:
        """Keep the evaluation of a part, if the folder keeps parts and the part has queries."""
        if self.keeps and scored is not None:
            scored.save(self.part(number))

    def read_all(self, n_parts: int) -> dict[int, Evaluation | None]:
        """Return the parts that are there, by number."""
        return {
            number: part for number in range(n_parts) if (part := self._read(number)) is not None
        }

    def _read(self, number: int) -> Evaluation | None:
        if not self.part(number).exists():
            return None
        try:
            return Evaluation.load(self.part(number))
        except InvalidInput:
            self.part(number).unlink()
            return None

    @property
    def state(self) -> dict[str, Any]:
        """What the manifest says, empty if there is none; a ValueError if it is damaged."""
        path = self.path / _MANIFEST
        if not path.exists():
            return {}
        state = json.loads(path.read_text())
        if not isinstance(state, dict) or "format" not in state:
            raise ValueError("it names no format")
        if state["format"] == _FORMAT and not all(
            isinstance(state.get(key), dict) for key in ("call", "plan")
        ):
            raise ValueError("it lacks the call or its plan")
        return state

    def begin(self, plan: Mapping[str, Any]) -> None:
        """Write down how the data set is cut into parts, and remove parts of another cut first."""
        if self.keeps and self.state.get("plan") != plan:
            self.clear()
            self._write({"plan": plan, "complete": False})

    def end(self) -> None:
        """Remove what is not needed any more, and write down that all is there."""
        shutil.rmtree(self.buckets, ignore_errors=True)
        if self.keeps:
            for path in self.path.glob(".*.part"):  # of calls that were ended
                path.unlink(missing_ok=True)
            self._write({"plan": self.state["plan"], "complete": True})

    def clear(self) -> None:
        """Remove all parts, and the manifest."""
        shutil.rmtree(self.buckets, ignore_errors=True)
        for pattern in ("part-*.parquet", _MANIFEST):
            for path in self.path.glob(pattern):
                path.unlink()

    def _write(self, state: Mapping[str, Any]) -> None:
        text = json.dumps({"format": _FORMAT, "call": self.card, **state}, indent=1)
        write_atomically(self.path / _MANIFEST, [text.encode()])


@contextmanager
def opened(scores: Any | None, card: Mapping[str, Any], data: Any = None) -> Iterator[Folder]:
    """Open the folder of a call, or a temporary one."""
    if scores is None:
        with tempfile.TemporaryDirectory(prefix="rankeval-") as path:
            folder = Folder(Path(path), keeps=False, card=card)
            with folder.explaining_full_disk():
                yield folder
        return
    folder = Folder(_path_of(scores), keeps=True, card=json.loads(json.dumps(card)))
    try:
        _refuse_inside(folder.path, data)
        folder.path.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:  # the latter of links in a circle
        reason = getattr(error, "strerror", None) or error
        raise InvalidInput(f"folder={str(scores)!r}: cannot make this folder ({reason})") from error
    _refuse_other(folder)
    with folder.explaining_full_disk():
        yield folder


def _path_of(scores: Any) -> Path:
    text = os.fspath(scores) if isinstance(scores, (str, os.PathLike)) else scores
    require(
        isinstance(text, str) and text and "\0" not in text,
        "folder",
        scores,
        "the path of a folder",
    )
    try:
        return _local(text)
    except (ValueError, RuntimeError) as error:  # the latter of the home of an unknown user
        url = masked(
            re.sub(":/+", "://", text, count=1)
        )  # `Path` makes one slash of two, and secrets were not seen
        raise InvalidInput(
            argument="folder", found=repr(url), expected=f"a folder here ({error})"
        ) from error


def _local(text: str) -> Path:
    """Return a path as pyarrow reads it, also from a URL and with ~."""
    scheme = _SCHEME.match(text)
    if scheme is None:
        return Path(text).expanduser()
    if scheme[0] != "file:/":
        raise ValueError(
            f"a URL of {scheme[0][:-2]}; copy the scores there when the call has ended"
        )
    return Path(pafs.FileSystem.from_uri(text)[1])


def _refuse_inside(folder: Path, data: Any) -> None:
    whole = folder.resolve()
    around = sorted(_roots(data) & {whole, *whole.parents})
    if around:
        raise InvalidInput(
            f"folder={str(folder)!r} is in {str(around[0])!r}, the folder of the data set, of which the scores would "
            "be a part the next time; give a folder elsewhere"
        )


def _roots(data: Any) -> set[Path]:
    """Return the local folders that are a data set as a whole; none if it lists its files."""
    if isinstance(data, (str, os.PathLike)):
        scheme = _SCHEME.match(os.fspath(data))
        path = _local(os.fspath(data)) if scheme is None or scheme[0] == "file:/" else None
        return {path.resolve()} if path is not None and path.is_dir() else set()
    if not hasattr(data, "get_fragments"):
        return set()
    # A pyarrow data set does not say whether it was opened as a folder, so that of each file counts
    # as one.
    local = {
        Path(fragment.path).parent
        for fragment in data.get_fragments()
        if fragment.filesystem.type_name == "local"
    }
    folders = [(place, *place.parents) for place in map(Path.resolve, local)]
    # Above the partitions.
    return {next(path for path in upwards if "=" not in path.name) for upwards in folders}


def _refuse_other(folder: Folder) -> None:
    where = f"folder={str(folder.path)!r}"
    try:
        state = folder.state
    except ValueError as error:
        raise InvalidInput(
            f"{where}: its {_MANIFEST} is damaged ({error})",
            remedy="remove the folder, or give another",
        ) from error
    if not state:
        names = [path.name for path in folder.path.iterdir()]
        others = sorted(name for name in names if not name.endswith(".part"))
        if others:
            problem = f"{where} contains other files ({few(others)})"
            raise InvalidInput(problem, remedy="give an empty or a new folder")
        return
    known = state.get("call", {})
    card = folder.card
    differ = []
    for key in dict.fromkeys([*known, *card]):
        stored = known.get(key)
        own = card.get(key)
        if stored != own:
            differ.append(f"{key} is {json.dumps(stored)} there and {json.dumps(own)} here")
    if state.get("format") != _FORMAT:
        differ = [f"its format is {state.get('format')} there and {_FORMAT} here"]
    if differ:
        problem = f"{where} contains the parts of another call: {'; '.join(differ)}"
        raise InvalidInput(problem, remedy="give another folder, or remove this one")
