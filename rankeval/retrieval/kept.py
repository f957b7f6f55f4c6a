"""Answers on disk, so that no query is asked twice: a small JSON file for each query.

A file is whole or absent, and has the name of the system, k, and the id and the text of the query.
If one of them differs, the query is asked.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
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

    def read(self, texts: Mapping[Any, str]) -> dict[Any, Answer]:
        """Return the answers that are kept, by query."""
        answers = {}
        for qid, text in texts.items():
            key = self._key(qid, text)
            # A damaged file is none: the query is asked again.
            with suppress(FileNotFoundError, ValueError, TypeError, LookupError):
                content = json.loads(self._path(key).read_bytes())
                if content["key"] == key:
                    answers[qid] = Answer(**content["answer"])
        return answers

    def write(self, qid: Any, text: str, answer: Answer) -> None:
        """Keep the answer to a query."""
        key = self._key(qid, text)
        content = {"key": key, "answer": answer._asdict()}
        write_atomically(self._path(key), [json.dumps(content).encode()])
