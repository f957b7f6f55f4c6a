"""Answers on disk, so that no query is asked twice: a small JSON file for each query.

A file is whole or absent, and has the name of the system, k, and the id and the text of the query.
If one of them differs, the query is asked.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from rankeval.io.opening import as_path, write_atomically, writing
from rankeval.retrieval.searches import Answer
from rankeval.shelf.record import digest_of


@dataclass(frozen=True)
class KeptAnswers:
    """The answers of one system in a folder."""

    folder: Path
    name: str
    k: int

    @classmethod
    def at(cls, folder: str | os.PathLike[str], name: str, k: int) -> Self:
        """Return the answers in a folder, which is made if there is none."""
        where = as_path(folder)
        with writing(where):
            where.mkdir(parents=True, exist_ok=True)
        return cls(where, name, int(k))

    def _key(self, qid: Any, text: str) -> dict[str, Any]:
        plain = qid.item() if hasattr(qid, "item") else qid
        return {"name": self.name, "k": self.k, "qid": plain, "text": text}

    def _path(self, key: dict[str, Any]) -> Path:
        return self.folder / f"{digest_of(key)}.json"

    def read(self, qid: Any, text: str) -> Answer | None:
        """Return the answer to a query, or None if it must be asked."""
        key = self._key(qid, text)
        try:
            content = json.loads(self._path(key).read_bytes())
            return Answer(**content["answer"]) if content["key"] == key else None
        except (FileNotFoundError, ValueError, TypeError, LookupError):  # a damaged file is none
            return None

    def write(self, qid: Any, text: str, answer: Answer) -> None:
        """Keep the answer to a query."""
        key = self._key(qid, text)
        content = {"key": key, "answer": answer._asdict()}
        write_atomically(self._path(key), [json.dumps(content).encode()])
