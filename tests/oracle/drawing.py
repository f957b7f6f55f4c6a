"""Inputs of a call, drawn from its seed and number: collections, systems, files, texts and names.

Nothing here imports rankeval, and no draw depends on a result: the inputs of a call are the same on
every commit. What is drawn is small, since a call must cost milliseconds, and often odd: ties,
empty queries, ids of every type.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

T = TypeVar("T")

CUTOFFS = (1, 2, 3, 5, 10, 20, 100)
CONVENTIONS = (
    "rankeval",
    "trec_eval-9.0.8",
    "trec_eval-9.0.8-float32",
    "trec_eval-10",
    "sklearn",
    "gdeval",
    "ranx",
    "lightgbm",
    "xgboost",
)
TIES = ("expected", "stable", "worst", "best", "docid", None, None, None)
MISSING = ("empty", "zero", "skip", "error", None, None, None)
NO_RELEVANT = ("zero", "one", "skip", None, None, None)
WORDS = [
    "ranking",
    "retrieval",
    "of",
    "documents",
    "by",
    "relevance",
    "with",
    "a",
    "learned",
    "model",
    "and",
    "judged",
    "queries",
    "river",
    "bank",
    "water",
    "boat",
    "loan",
    "money",
    "interest",
    "rate",
    "flying",
    "planes",
    "wing",
    "lift",
    "drag",
    "heat",
    "transfer",
    "supersonic",
    "flow",
    "boundary",
    "layer",
    "the",
    "and",
    "for",
]


class Draw:
    """The random choices of one call.

    Parameters
    ----------
    seed : int
        The seed of the run.
    number : int
        The number of the call.
    """

    def __init__(self, seed: int, number: int) -> None:
        self.rng = random.Random(f"oracle {seed} {number}")  # noqa: S311 - no secret
        self.mischief = random.Random(f"wrong {seed} {number}")  # noqa: S311 - no secret
        self.wrong = self.mischief.random() < 0.2

    @cached_property
    def numpy(self) -> np.random.Generator:
        """A generator of NumPy, for arrays."""
        return np.random.default_rng(self.rng.getrandbits(60))

    def choice(self, values: Sequence[T]) -> T:
        """Return one of some values."""
        return self.rng.choice(values)

    def happens(self, share: float = 0.5) -> bool:
        """Return true in this share of the calls."""
        return self.rng.random() < share

    def integer(self, low: int, high: int) -> int:
        """Return a whole number from low to high."""
        return self.rng.randint(low, high)

    def number(self, low: float = 0.0, high: float = 1.0, digits: int = 3) -> float:
        """Return a number with few digits."""
        return round(self.rng.uniform(low, high), digits)

    def some(self, values: Sequence[T], low: int = 1, high: int | None = None) -> list[T]:
        """Return some of the values, each once, in any order."""
        high = min(high or len(values), len(values))
        return self.rng.sample(list(values), self.rng.randint(min(low, high), high))

    def options(self, share: float = 0.4, **choices: Sequence[Any]) -> dict[str, Any]:
        """Return a choice of some keyword arguments; each is left out as often as not."""
        drawn = {
            name: (self.happens(share), self.choice(values)) for name, values in choices.items()
        }
        return {name: value for name, (taken, value) in drawn.items() if taken}

    # Ids and columns.

    def ids(self, n: int, letter: str = "q") -> list[Any]:
        """Return n different ids, all text or all whole numbers, in ascending order or not."""
        form = self.rng.randrange(4)
        if form == 0:
            made: list[Any] = [f"{letter}{place}" for place in range(n)]
        elif form == 1:
            made = self.rng.sample(range(-3, 10 * n + 10), n)
        elif form == 2:
            made = list(range(n))
        else:
            made = [f"{letter}{place:03d}" for place in self.rng.sample(range(900), n)]
        return made

    def labels(self, n: int) -> np.ndarray:
        """Return n relevance labels: binary, graded, all zero, or with halves."""
        top = self.choice((1, 1, 2, 4, 4, 0))
        labels = self.numpy.integers(0, top + 1, n)
        form = self.rng.randrange(8)
        if form == 0:
            return labels.astype(np.float64) / 2
        if form == 1:
            return labels - self.numpy.integers(0, 2, n)
        return labels.astype(self.choice(("int64", "int32", "float64", "int8")))

    def scores(self, n: int, near: np.ndarray | None = None) -> np.ndarray:
        """Return n scores; some sets have many ties, and some follow the labels."""
        scores = self.numpy.normal(size=n)
        if near is not None and self.happens(0.6):
            scores = scores + near
        form = self.rng.randrange(5)
        if form == 0:
            return np.round(scores)
        if form == 1:
            return np.round(scores, 1).astype(np.float32)
        return scores

    def rows(self, n_queries: int | None = None, n_docs: int = 9) -> dict[str, np.ndarray]:
        """Return columns of rows: y, score, qid and docid, sorted by query or not."""
        n_queries = n_queries or self.integer(1, 8)
        sizes = [self.integer(1, n_docs) for _ in range(n_queries)]
        qid = np.repeat(np.array(self.ids(n_queries)), sizes)
        docid = np.concatenate(
            [np.array([f"d{at}" for at in self.rng.sample(range(30), size)]) for size in sizes]
        )
        y = self.labels(len(qid))
        columns = {"y": y, "score": self.scores(len(qid), y), "qid": qid, "docid": docid}
        if self.happens(0.3):
            order = self.numpy.permutation(len(qid))
            columns = {name: column[order] for name, column in columns.items()}
        return columns

    def table(
        self, columns: dict[str, np.ndarray], kinds: Sequence[str] = ("pandas", "arrow", "polars")
    ) -> Any:
        """Return columns as a frame of one of the libraries."""
        kind = self.choice(kinds)
        if kind == "arrow":
            import pyarrow as pa

            return pa.table(dict(columns))
        if kind == "polars":
            import polars as pl

            return pl.DataFrame(dict(columns))
        return pd.DataFrame(columns)

    # Judgments and rankings.

    def judgments(
        self, n_queries: int | None = None, n_docs: int = 12
    ) -> dict[str, dict[str, int]]:
        """Return judgments as ``{query: {document: grade}}``."""
        top = self.choice((1, 1, 3, 4))
        queries = [f"q{place}" for place in range(1, 1 + (n_queries or self.integer(1, 8)))]
        return {
            query: {
                f"d{at}": int(self.rng.randint(0, top))
                for at in self.rng.sample(range(n_docs + 6), n_docs)
            }
            for query in queries
        }

    def ranking(
        self, judged: dict[str, dict[str, int]], *, whole: bool = False
    ) -> dict[str, dict[str, float]]:
        """Return a ranking as ``{query: {document: score}}``, more or less near the judgments."""
        sharp, step = self.number(0, 2), self.choice((0, 0, 1, 2))
        ranking = {}
        for query, grades in judged.items():
            if not whole and self.happens(0.06):
                continue
            docs = [doc for doc in grades if whole or self.happens(0.8)] + [
                f"n{at}" for at in range(self.integer(0, 3))
            ]
            noise = {doc: self.rng.gauss(0, 1) + sharp * grades.get(doc, 0) for doc in docs}
            ranking[query] = {
                doc: round(score, step) if step else score for doc, score in noise.items()
            }
        return {query: docs or {"d1": 1.0} for query, docs in ranking.items()} or {
            "q1": {"d1": 1.0}
        }

    def rankings(
        self, judged: dict[str, dict[str, int]], n: int | None = None
    ) -> dict[str, dict[str, dict[str, float]]]:
        """Return several systems' rankings by name."""
        names = ("bm25", "ltr", "bert", "fused", "other")
        return {name: self.ranking(judged, whole=True) for name in names[: n or self.integer(2, 4)]}

    def effects(
        self, n_systems: int, n_queries: int, measures: Sequence[str]
    ) -> dict[str, pd.DataFrame]:
        """Return scores of systems: frames with an index of queries, a column for each measure."""
        names = ("base", "ltr", "bert", "fused", "other", "more")[:n_systems]
        index = pd.Index([f"q{place}" for place in range(n_queries)], name="qid")
        level = self.numpy.uniform(0.2, 0.7, (n_queries, len(measures)))
        frames = {}
        for name in names:
            shift, noise = self.number(-0.1, 0.2), self.choice((0.02, 0.1, 0.2))
            values = np.clip(level + shift + noise * self.numpy.normal(size=level.shape), 0, 1)
            if self.happens(0.3):
                values = np.round(values, 1)
            frames[name] = pd.DataFrame(values, index=index, columns=list(measures))
        return frames

    # Files.

    def write_judgments(self, judged: dict[str, dict[str, int]], name: str = "qrels.txt") -> Path:
        """Write judgments as a file of TREC."""
        lines = [
            f"{query} 0 {doc} {grade}\n"
            for query, grades in judged.items()
            for doc, grade in grades.items()
        ]
        return self.write(name, "".join(lines))

    def write_ranking(self, ranking: dict[str, dict[str, float]], name: str) -> Path:
        """Write a ranking as a file of TREC, with six columns."""
        lines = []
        for query, docs in ranking.items():
            ranked = sorted(docs, key=docs.get, reverse=True)
            lines += [
                f"{query} Q0 {doc} {rank} {docs[doc]!r} tag\n" for rank, doc in enumerate(ranked, 1)
            ]
        return self.write(name, "".join(lines))

    @staticmethod
    def write(name: str, content: str | bytes) -> Path:
        """Write a file into the folder of the call."""
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def letor(self, n_queries: int, n_features: int = 4, *, first: int = 1) -> str:
        """Return rows of LETOR as text, of queries that are numbered from the first."""
        lines = []
        for query in range(first, first + n_queries):
            for row in range(self.integer(2, 6)):
                features = " ".join(f"{at}:{self.number(-1, 1)}" for at in range(1, n_features + 1))
                lines.append(
                    f"{self.integer(0, 4)} qid:{query} {features} # doc = d{query}-{row}\n"
                )
        return "".join(lines)

    # Texts.

    def sentence(self, words: int = 8) -> str:
        """Return a sentence of known words."""
        return " ".join(self.rng.choices(WORDS, k=words)).capitalize() + self.choice(
            (".", ".", "!", "?")
        )

    def documents(self, n: int = 12) -> dict[str, str]:
        """Return texts of documents by id."""
        return {
            f"d{at}": " ".join(self.sentence(self.integer(3, 9)) for _ in range(self.integer(1, 4)))
            for at in range(n)
        }

    def queries(self, n: int = 4) -> dict[str, str]:
        """Return texts of queries by id."""
        return {
            f"q{at}": " ".join(self.rng.sample(WORDS, self.integer(1, 4))) for at in range(1, n + 1)
        }
