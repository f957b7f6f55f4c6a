"""Files that a call leaves in its folder, by name and by what they say.

A Parquet file is its table, JSON is its tree, text is its lines with masks. A picture is only its
kind, since its bytes follow from the version of its library. A signature in a ledger is only its
size. A database of MLflow or of a ledger is left out: a recipe reads it through the library.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import zlib
from pathlib import Path
from typing import Any

from oracle.digest import Describer, canonical

PICTURES = {".png", ".svg", ".pdf", ".jpg"}
CODE_OF_OBJECTS = {".pkl", ".joblib", ".cbm", ".skops", ".ubj"}
LEFT_OUT = {".db", ".db-wal", ".db-shm", ".db-journal", ".lock", ".pyc"}
LONGEST = 200_000


def folder_tree(folder: Path, describer: Describer) -> list[Any]:
    """Return the files of a folder as pairs of a masked name and a tree, in order.

    Parameters
    ----------
    folder : Path
        The folder of a call.
    describer : Describer
        What describes the contents.
    """
    paths = (path for path in folder.rglob("*") if path.is_file() and path.suffix not in LEFT_OUT)
    files = [
        [describer.masks.text(path.relative_to(folder).as_posix()), _content(path, describer)]
        for path in paths
    ]
    return sorted(files, key=canonical)


def _content(path: Path, describer: Describer) -> Any:
    if path.suffix in PICTURES:
        return {"picture": path.suffix}
    if path.suffix in CODE_OF_OBJECTS:
        return {"object": path.suffix}
    try:
        content = path.read_bytes()
        return (
            _table(path, describer)
            if content[:4] == b"PAR1"
            else _text(path.suffix, content, describer)
        )
    except Exception as error:  # noqa: BLE001 - a file may be damaged on purpose
        return {"unread": type(error).__name__}


def _table(path: Path, describer: Describer) -> Any:
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    metadata = {
        key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()
    }
    metadata.pop("ARROW:schema", None)
    metadata.pop("pandas", None)
    read = {key: _json(value, describer) for key, value in sorted(metadata.items())}
    return {"parquet": describer.of(table.replace_schema_metadata(None)), "metadata": read}


def _json(text: str, describer: Describer) -> Any:
    try:
        return {"json": describer.of(json.loads(text))}
    except ValueError:
        return describer.of(text)


def _text(suffix: str, content: bytes, describer: Describer) -> Any:
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    elif content[:2] in (b"x\x01", b"x\x9c"):  # zlib, of level 0 and of level 6
        content = zlib.decompress(content)
    if suffix == ".bin" and describer.masks.hashes:  # its arrays are in order of hashes over times
        return {"bytes": len(content)}
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return {"bytes": len(content), "hash": hashlib.sha256(content).hexdigest()[:32]}
    if suffix in (".json", ".bin"):
        return _json(text, describer)
    if suffix == ".csv" and describer.masks.timed:
        return _csv(text, describer)
    masked = describer.masks.text(text)
    return (
        masked
        if len(masked) < LONGEST
        else {"text": masked[:2000], "hash": hashlib.sha256(masked.encode()).hexdigest()}
    )


def _csv(text: str, describer: Describer) -> Any:
    """Return a table of text without the columns of times."""
    rows = list(csv.reader(text.splitlines()))
    hidden = (
        {at for at, name in enumerate(rows[0]) if describer.masks.hides(name)} if rows else set()
    )
    kept = [[cell for at, cell in enumerate(row) if at not in hidden] for row in rows]
    return {"csv": [describer.masks.lines(row) for row in kept]}
