"""Each note stands once in what a command prints: among the notes of its result, or as a warning, and not as both."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tables import each_row

MARKS = re.compile(r"^(\* |note: |warning: |error: )")
FEW = "on fewer than 50 queries"


def write_files() -> None:
    """Put a collection of 6 queries, a table of users and clicks into the working directory."""
    draw = np.random.default_rng(0)
    pairs = [(f"q{query}", f"d{document}") for query in range(6) for document in range(5)]
    Path("qrels").write_text("".join(f"{q} 0 {d} {draw.integers(2)}\n" for q, d in pairs))
    Path("people.qrels").write_text("".join(f"{q} 0 {d} {draw.integers(2)}\n" for q, d in pairs))
    for name in ("a.run", "b.run", "c.run"):
        Path(name).write_text("".join(f"{q} Q0 {d} 1 {draw.random()} {name}\n" for q, d in pairs))
    users = pd.DataFrame({"user": range(200), "arm": ["x", "y"] * 100, "clicks": draw.integers(0, 5, 200)})
    users.assign(views=users["clicks"] + 3).to_csv("users.csv", index=False)


def notes_of(out: str, err: str) -> list[str]:
    """Return every note, in whatever form and on whichever of the two it stands."""
    lines = [MARKS.sub("", line) for line in (out + "\n" + err).splitlines() if MARKS.match(line)]
    if out.startswith("{"):
        lines += json.loads(out).get("notes", [])
    return lines


@pytest.mark.further
@each_row("form", ["table", "csv", "json"])
@each_row(
    "command",
    [
        "compare qrels a.run b.run",
        "compare qrels a.run b.run c.run --baseline a.run --correction bh",
        "compare qrels a.run b.run --test bootstrap_bca --resamples 99",
        "compare qrels a.run b.run --test randomization --resamples 9",
        "compare qrels a.run b.run --test sign -m AP",
        "compare qrels a.run copy=a.run -m AP",
        "evaluate qrels a.run b.run",
        "online ab users.csv --metric clicks --metric ctr=clicks/views",
        "judging agreement qrels people.qrels",
    ],
)
def test_a_note_is_printed_once(command, form, rankeval):
    write_files()
    code, out, err = rankeval(*command.split(), "--format", form)
    assert code == 0, err
    notes = notes_of(out, err)
    assert len(notes) == len(set(notes)), notes
    for note in notes:
        assert (out + err).count(note) <= 1 + (form == "json"), note


@each_row("form", ["table", "csv", "json"])
def test_a_warning_that_is_a_note_is_told_with_the_table(form, rankeval):
    write_files()
    code, out, err = rankeval("compare", "qrels", "a.run", "b.run", "--format", form)
    assert code == 0
    assert (out + err).count(FEW) == 1
    assert (FEW in out) == (form != "csv")
    assert (out + err).count("queries, for 5 %") == 1


def test_a_warning_whose_notes_are_not_printed_is_told_all_the_same(rankeval, monkeypatch):
    """An error comes after the warning, and before the table."""
    write_files()
    monkeypatch.setattr("rankeval.cli.print_result", lambda *_: (_ for _ in ()).throw(ValueError("no table")))
    code, out, err = rankeval("compare", "qrels", "a.run", "b.run")
    assert (code, out, err.count(FEW)) == (2, "", 1)
