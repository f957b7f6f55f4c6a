"""The heads in the JSON of reports and comparisons are found, and no sentence is read."""

from __future__ import annotations

import hashlib
import json

import pytest

import rankeval as rk
from rankeval.errors import InvalidInput
from rankeval.ledger.entry import GENESIS
from rankeval.ledger.graph import heads_in, heads_named
from rankeval.ledger.ledger import Ledger
from rankeval.report import report_for_judging


def digest(word: str) -> str:
    return hashlib.sha256(word.encode()).hexdigest()


A, B = digest("a"), digest("b")


def facts(*heads: str) -> str:
    return json.dumps({"opening": {"ledger": "/l", "head": "+".join(heads), "looks": 1}})


def block(*heads: str) -> str:
    return f'<script type="application/json" class="rankeval-opening">{facts(*heads)}</script>'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (facts(A), [A]),
        (facts(A, B), [f"{A}+{B}"]),
        (f"<p>as of head {B}</p>{block(A)}", [A]),
        (f"{block(A)}\n{block(B[:12])}\n{block(A)}", [A, B[:12]]),
        (block(GENESIS), []),
        (f"ledger /a/ledger as of head {A}", []),
        (f"<p>head <code>{A}</code></p>", []),
        (json.dumps({"rankeval.guard.head": A, "head": A}), []),
        (json.dumps({"opening": None}), []),
        (json.dumps([A]), []),
        ('<script type="application/json" class="rankeval-opening">{"opening"</script>', []),
        ("[" * 100_000, []),
        (f"{A}\n", [A]),
        (f"\ufeff{A[:12]}\r\n", [A[:12]]),
        (f"{A}+{B}\n{B[:20]}\n", [f"{A}+{B}", B[:20]]),
        (f"{A}\nand more\n", []),
        (A[:11], []),
        ("", []),
    ],
)
def test_heads_are_data(tmp_path, text, expected):
    path = tmp_path / "report"
    path.write_text(text)
    assert heads_in(path) == heads_in(str(path)) == expected


def test_heads_of_one_ledger(tmp_path):
    path = tmp_path / "report"
    path.write_text(block(A))
    assert (heads_in(path, ledger="/l"), heads_in(path, ledger="/m")) == ([A], [])


def test_a_file_that_is_no_text_names_none_and_one_that_is_not_there_is_said(tmp_path):
    (tmp_path / "x.png").write_bytes(bytes(range(256)) * 9)
    assert heads_in(tmp_path / "x.png") == []
    with pytest.raises(InvalidInput, match="names no head"):
        heads_named(tmp_path / "x.png")
    for path in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(InvalidInput, match="cannot be read: ") as said:
            heads_in(path)
        assert said.value.where == str(path)


def test_a_comparison_and_its_page_find_a_rollback_whatever_their_sentences_say(tmp_path, monkeypatch):
    """As somebody kept it: as JSON, or on a page. The ledger has a name that would be markup."""
    monkeypatch.setattr("rankeval.guard.opening.mention", lambda *_: "umformuliert </script> as of head none")
    data = rk.datasets.make_ranking(40, 8, 3, rng=0)
    folder = tmp_path / "a <script>'&\" b"
    guard = rk.Guard("p", ledger=folder)
    test = guard.register("t", data)
    result = guard.open(guard.freeze(test, systems={"a": data.X[:, 0], "b": data.X[:, 1]}))
    (tmp_path / "kept.json").write_text(result.to_json())
    (tmp_path / "kept.html").write_text(report_for_judging([result]))
    (head,) = heads_in(tmp_path / "kept.json", ledger=guard.ledger)
    assert heads_in(tmp_path / "kept.html", ledger=guard.ledger) == [head]
    ledger = Ledger(f"file://{folder}")
    assert ledger.problems(head) == []
    (opening,) = [entry.hash for entry in ledger.read().entries if entry.kind == "open"]
    (folder / f"{opening}.json").unlink()
    assert ledger.problems() == []
    assert "is gone" in ledger.problems(head)[0]
