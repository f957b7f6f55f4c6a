"""Small projects to make sites of, and the pages of a site as a reader sees them."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np

import rankeval as rk
from rankeval.shelf import folder
from rankeval.shelf.record import Record

N_QUERIES, N_ROWS = 40, 10
LABELS = np.random.default_rng(7).integers(0, 3, N_QUERIES * N_ROWS)
QID = np.repeat([f"query-{place}" for place in range(N_QUERIES)], N_ROWS)


def evaluated(name: str, noise: float = 1.0, *, seed: int = 0, **options: Any) -> rk.Evaluation:
    """Evaluate a ranker that is the worse the more noise it has; noise is shared, so pairs are alike."""
    shared = np.random.default_rng(1).normal(size=LABELS.size)
    own = np.random.default_rng([seed, *name.encode(errors="backslashreplace")]).normal(size=LABELS.size)
    scores = LABELS + noise * (shared + 0.3 * own)
    given = {"measures": ["nDCG@10", "AP"], "qid": QID, **options}
    return rk.evaluate(LABELS, scores, name=name, **given)


def promotion(version: int, system: str, decision: str = "accepted", started: float = 1.79e9) -> Record:
    """Return the record of a promotion."""
    params = {"model": "shop", "alias": "champion", "version": str(version), "system": system, "decision": decision}
    return Record(
        "promotion",
        f"shop v{version}: {decision}",
        f"{decision}: {system}",
        params=params,
        started=started + version,
    )


def three(home: Path) -> dict[str, rk.Evaluation]:
    """Save three evaluations on one test part; return them by name, the best first."""
    found = {name: evaluated(name, noise) for name, noise in (("good", 0.6), ("close", 0.65), ("poor", 3.0))}
    for name, evaluation in found.items():
        rk.save(evaluation, home / "runs" / name, role="test", data="letor")
    return found


def write(home: Path, name: str, record: Record) -> Path:
    """Write a record to a folder of a project."""
    folder.write(record, home / name)
    return home / name


class Page(HTMLParser):
    """A page: its text, the rows of its tables, its links, elements and attributes."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.text, self.rows, self.links, self.tags = "", [], [], set()
        self.attributes: set[str] = set()
        self._hidden = 0
        self.feed(path.read_text("utf-8"))
        self.text = " ".join(self.text.split())

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [value for name, value in attrs if name == "href"]
        self._hidden += tag in ("script", "style")
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        self._hidden -= tag in ("script", "style")

    def handle_data(self, data):
        if self._hidden:
            return
        self.text += data
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] = f"{self.rows[-1][-1]} {data}".strip()


def run_page(public: Path, title: str) -> Path:
    """Return the page of the run with a title."""
    (found,) = (path for path in (public / "runs").iterdir() if f"<h1>{title}</h1>" in path.read_text("utf-8"))
    return found
