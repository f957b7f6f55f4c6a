"""The heads that reports, records and logs name are found in them, and nothing else is taken for a head."""

from __future__ import annotations

import hashlib
import json

import pytest

import rankeval as rk
from rankeval.errors import InvalidInput
from rankeval.ledger.entry import GENESIS
from rankeval.ledger.graph import heads_in
from rankeval.ledger.ledger import Ledger


def digest(word: str) -> str:
    return hashlib.sha256(word.encode()).hexdigest()


A, B = digest("a"), digest("b")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"2 looks of project 'p' at 'at'; plan {digest('p')[:20]}; ledger /a/ledger as of head {A[:12]}", [A[:12]]),
        (f"ledger postgresql://me@host/db as of head {A}, and so on", [A]),
        (f"As of head {A}+{B}.", [f"{A}+{B}"]),
        (f"/a/ledger is whole; head {A}\n", [A]),
        (f"head\t{A[:12]}\nhead {A[:12]}\nhead {B}", [A[:12], B]),
        (json.dumps({"rankeval.guard.head": A, "digest": B}), [A]),
        (json.dumps({"head": f"{A}+{B}"}, indent=1), [f"{A}+{B}"]),
        (f"<tr><th>head</th><td><code>{A}</code></td></tr><td>{B}</td>", [A]),
        (f"<p>ledger <i>C:\\a &amp; b</i> as of head&nbsp;{A[:16]}</p>", [A[:16]]),
        (f"| head | {A} |", [A]),
        (f"head {GENESIS}, ledger x as of head {GENESIS[:12]}", []),
        (f"digest {A}, plan {B[:20]}, at {A[:12]}", []),
        (f"ahead {A} header {A} head {A[:11]} head {A.upper()} head {A}0", []),
        (f"{A}\n", [A]),
        (f"\ufeff{A[:12]}\r\n", [A[:12]]),
        (f"{A}+{B}\n{B[:20]}\n", [f"{A}+{B}", B[:20]]),
        (f"{A}\nand more\n", []),
        (A[:11], []),
        ("", []),
    ],
)
def test_heads_stand_behind_their_word(tmp_path, text, expected):
    path = tmp_path / "report"
    path.write_text(text)
    assert heads_in(path) == heads_in(str(path)) == expected


def test_a_file_that_is_no_text_names_none_and_one_that_is_not_there_is_said(tmp_path):
    (tmp_path / "x.png").write_bytes(bytes(range(256)) * 9)
    assert heads_in(tmp_path / "x.png") == []
    for path in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(InvalidInput, match="cannot be read: ") as said:
            heads_in(path)
        assert said.value.where == str(path)


def test_the_notes_of_an_opening_find_a_rollback(tmp_path):
    """From the comparison's own text, as somebody kept it."""
    data = rk.datasets.make_ranking(40, 8, 3, rng=0)
    guard = rk.Guard("p", ledger=tmp_path / "ledger")
    test = guard.register("t", data)
    result = guard.open(guard.freeze(test, systems={"a": data.X[:, 0], "b": data.X[:, 1]}))
    (tmp_path / "kept.txt").write_text(str(result))
    (head,) = heads_in(tmp_path / "kept.txt")
    ledger = Ledger(f"file://{tmp_path}/ledger")
    assert ledger.problems(head) == []
    (opening,) = [entry.hash for entry in ledger.read().entries if entry.kind == "open"]
    (tmp_path / "ledger" / f"{opening}.json").unlink()
    assert ledger.problems() == []
    assert "is gone" in ledger.problems(head)[0]
