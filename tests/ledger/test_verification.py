"""What somebody alters, takes away or moves is found: every field of every entry, in every store.

The newest entries can be taken away, or all be written anew, so that what is left is whole. That is found too, with one
earlier head or one earlier copy.
"""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
import pytest
from circles import choose

from rankeval.errors import InvalidInput, LedgerError
from rankeval.ledger.discovery import ledger_url
from rankeval.ledger.entry import GENESIS, Entry, parsed
from rankeval.ledger.graph import SHORTEST, Snapshot
from rankeval.ledger.ledger import Ledger

N = choose(default=10, full=50)
"""Entries, to be edited in every field each."""


def body_of(number: int, name: str) -> dict[str, Any]:
    facts = {"flag": number % 2 == 0, "none": None, "names": ["a", f"b{number}"], "share": number / 7 + 0.001}
    return {"n": number, "facts": facts, "signatures": name}


@pytest.fixture
def written(ledger) -> list[Entry]:
    """Write N entries in two branches that meet: neither branch, of two fifths of them, sees the other."""
    name = ledger.keep("signatures", {"x": np.arange(3)})
    before, branch = N // 10, 2 * N // 5
    for number in range(before):
        ledger.append("p", ("note", body_of(number, name)))
    other = Ledger(ledger_url("other"))
    other.merge(ledger)
    for number in range(before, before + branch):
        ledger.append("p", ("note", body_of(number, name)))
        other.append("q", ("note", body_of(number + branch, name)))
    ledger.merge(other)
    for number in range(before + 2 * branch, N):
        ledger.append("p", ("note", body_of(number, name)))
    entries = ledger.read().entries
    assert len(entries) == N
    assert [len(entry.parents) for entry in entries].count(2) == 1
    return list(entries)


def edits(value: Any) -> Iterator[Any]:
    """Yield every edit of a JSON value: another value at each place, each key or item taken away, and one added."""
    if isinstance(value, dict):
        for key in value:
            rest = {other: its for other, its in value.items() if other != key}
            yield rest
            yield {**rest, f"{key}x": value[key]}
            yield from ({**value, key: edited} for edited in edits(value[key]))
        yield {**value, "more": 1}
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield value[:place] + value[place + 1 :]
            yield from ([*value[:place], edited, *value[place + 1 :]] for edited in edits(item))
        yield [*value, "0" * 64]
    elif isinstance(value, bool) or value is None:
        yield from (one for one in (True, False, None, 0, 1) if one is not value)
    elif isinstance(value, str):
        yield from (value + "x", value[:-1], value.upper() if value.upper() != value else value.lower(), None)
    else:
        yield from (value + 1, -value - 1, value * (1 + 2**-52) + 2**-60, str(value), None)


def spoilt(ledger) -> bool:
    """Return whether reading fails, and the faults are listed."""
    with pytest.raises(LedgerError, match="is not whole"):
        ledger.read()
    return bool(ledger.problems())


@pytest.mark.random
def test_every_edit_of_each_field_of_each_entry_is_found(ledger, written, hands):
    count = 0
    # A server takes ten times as long for an edit, so every fifth entry is tried there.
    tried = written[::5] if ledger.url.startswith("postgresql") else written
    for entry in tried:
        text = hands.texts()[entry.hash]
        for content in edits(json.loads(text)):
            hands.put(entry.hash, json.dumps(content))
            assert ledger.problems(), (entry.hash, content)
            count += 1
        assert spoilt(ledger)
        hands.put(entry.hash, text)
    assert ledger.problems() == []
    assert count > len(tried) * 50


@pytest.mark.random
def test_every_entry_that_is_taken_out_is_missed_by_name(ledger, written, hands):
    texts = hands.texts()
    for entry in written[:-1]:
        hands.delete(entry.hash)
        assert any(entry.hash[:12] in fault and "is missing" in fault for fault in ledger.problems())
        assert spoilt(ledger)
        hands.put(entry.hash, texts[entry.hash])
    assert ledger.problems() == []


@pytest.mark.random
def test_entries_that_change_places_are_found(ledger, written, hands):
    """Each with the next one, many with any other one, and each under a name that is no other's."""
    texts, chance = hands.texts(), random.Random(0)  # noqa: S311 - no secret
    pairs = list(pairwise(written)) + [chance.sample(written, 2) for _ in range(100)]
    for one, other in pairs:
        hands.put(one.hash, texts[other.hash])
        assert spoilt(ledger)
        hands.put(other.hash, texts[one.hash])
        assert spoilt(ledger)
        hands.put(one.hash, texts[one.hash])
        hands.put(other.hash, texts[other.hash])
    for entry in written:
        hands.delete(entry.hash)
        hands.put("f" * 64, texts[entry.hash])
        assert spoilt(ledger)
        hands.delete("f" * 64)
        hands.put(entry.hash, texts[entry.hash])
    assert ledger.problems() == []


@pytest.mark.random
def test_a_rollback_is_found_by_any_head_and_any_copy_from_before(ledger, written, hands, places):
    clone = Ledger(places.new("folder", "copy"))
    clone.merge(ledger)
    heads = [Snapshot.of(written[:place]).head for place in range(1, N + 1)]
    for gone in range(1, N):
        hands.delete(written[N - gone].hash)
        left = N - gone
        assert ledger.problems() == [], "without a witness, what is left is whole"
        assert ledger.problems(*heads[:left]) == []
        for head in heads[left:]:
            assert "is gone: entries were deleted or rewritten, or it is of another ledger" in ledger.problems(head)[0]
        assert len(ledger.problems(other=clone)) == gone
        assert clone.problems(other=ledger) == []


@pytest.mark.random
@pytest.mark.parametrize("at", [0, N // 5, N - 1])
def test_a_chain_that_was_written_anew_is_found_by_any_head_and_any_copy_from_before(
    ledger, written, hands, places, at
):
    """From some entry on, with hashes that fit."""
    clone = Ledger(places.new("folder", "copy"))
    clone.merge(ledger)
    renamed: dict[str, str] = {}
    hands.delete(*(entry.hash for entry in written[at:]))
    for number, entry in enumerate(written[at:]):
        parents = tuple(renamed.get(one, one) for one in entry.parents)
        body = {**entry.body, "n": -1} if not number else entry.body
        forged = Entry(entry.kind, entry.project, entry.time, entry.who, parents, body)
        renamed[entry.hash] = forged.hash
        hands.put(forged.hash, forged.text())
    assert ledger.problems() == []
    rewritten = [name for name in renamed if renamed[name] != name]
    assert written[-1].hash in rewritten
    for name in rewritten:
        assert "is gone" in ledger.problems(name)[0]
        assert "is gone" in ledger.problems(name[:SHORTEST])[0]
    assert len(ledger.problems(other=clone)) == len(rewritten)


@pytest.mark.random
def test_heads_are_held_whole_joined_and_abbreviated(ledger, written):
    snapshot = ledger.read()
    first, last = written[0].hash, written[-1].hash
    for head in (first, last, f"{first}+{last}", last[:SHORTEST], f"{first[:20]}+{last[:63]}", GENESIS, GENESIS[:12]):
        assert snapshot.holds(head)
        assert ledger.problems(head) == []
    for head in ("f" * 64, "f" * SHORTEST, f"{first}+{'f' * 64}", last[: SHORTEST - 1], "", f"{last}0", last.upper()):
        assert not snapshot.holds(head)
    for head in (last[: SHORTEST - 1], "", "no head", f"{last}0", f"{last}+", last.upper()):
        with pytest.raises(InvalidInput, match="12 to 64 hexadecimal digits"):
            ledger.problems(head)


def test_a_beginning_that_several_heads_share_is_none():
    entries = [Entry("k", "p", "t", "w", (), {"n": n}) for n in range(2)]
    for place, entry in enumerate(entries):
        entry.__dict__["hash"] = "a" * 20 + str(place) * 44
    snapshot = Snapshot(tuple(entries))
    assert not snapshot.holds("a" * 20)
    assert snapshot.holds("a" * 20 + "1")


@pytest.mark.random
def test_a_copy_that_was_altered_itself_is_said(ledger, written, places):
    clone = Ledger(places.new("folder", "copy"))
    clone.merge(ledger)
    third = next(entry for entry in written if entry.body["n"] == 3)
    path = Path(clone.where) / f"{third.hash}.json"
    path.write_text(path.read_text().replace('"n": 3', '"n": 4'))
    (fault,) = ledger.problems(other=clone)
    assert fault.startswith(f"{clone.where}: the entry {third.hash[:12]} was altered")


# Files beside the entries ---------------------------------------------------------------------------------------------


def test_files_that_are_altered_or_missing_are_named(ledger, hands):
    signatures, rankings = (ledger.keep(kind, {"x": np.arange(9)}) for kind in ("signatures", "rankings"))
    ledger.keep("signatures", {"x": np.zeros(1)})  # which no entry names: its writer was killed
    entry = ledger.append("p", ("freeze", {"deep": [{"files": [signatures]}], "rankings": rankings}))
    assert ledger.problems() == []
    for name in (rankings, signatures):
        hands.put_file(name, b"something else")
        assert ledger.problems() == [f"the file {name} was altered"]
        with pytest.raises(LedgerError, match=f"the file {name} of the ledger .* was altered"):
            ledger.load(name)
        hands.delete_file(name)
        with pytest.raises(LedgerError, match=f"lacks its file {name}"):
            ledger.load(name)
    assert ledger.problems() == [f"the file {signatures} is missing"], "a clone may leave rankings out"
    assert ledger.read().entries == (entry,), "entries are whole without it"


def test_the_content_of_one_file_under_the_name_of_another_is_found(ledger, hands):
    names = [ledger.keep("signatures", {"x": np.arange(n)}) for n in (3, 4)]
    contents = [ledger._store.load(name) for name in names]
    hands.put_file(names[0], contents[1])
    with pytest.raises(LedgerError, match=f"{names[0]} .* was altered .its content does not fit its name"):
        ledger.load(names[0])
    hands.put_file(names[0], contents[0])
    assert ledger.load(names[0])["x"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("change", [lambda data: data + b"x", lambda data: data * 2, lambda data: data[:-1]])
def test_bytes_before_or_behind_the_end_of_a_file_are_found(ledger, hands, change):
    name = ledger.keep("rankings", {"x": np.arange(9)})
    ledger.append("p", ("freeze", {"rankings": name}))
    hands.put_file(name, change(ledger._store.load(name)))
    assert ledger.problems() == [f"the file {name} was altered"]
    with pytest.raises(LedgerError, match=f"the file {name} of the ledger .* was altered"):
        ledger.load(name)


# What programs do to the text of an entry -----------------------------------------------------------------------------


def rewritten(text: str, *options: str) -> str:
    command = ["python3", "-m", "json.tool", *options]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


FORMATS = {
    "carriage returns": lambda text: text.replace("\n", "\r\n"),
    "json.tool": rewritten,
    "json.tool, sorted": lambda text: rewritten(text, "--sort-keys", "--indent", "8"),
    "one line": lambda text: rewritten(text, "--compact"),
    "tabs": lambda text: rewritten(text, "--tab", "--no-ensure-ascii"),
    "a mark": lambda text: f"\ufeff{text}",
    "numbers": lambda text: text.replace("1.0", "1").replace("1e+17", "100000000000000000"),
    "jq": lambda text: subprocess.run(["jq", "-S", "."], input=text, capture_output=True, text=True, check=True).stdout,
}
NUMBERS = {"one": 1.0, "large": 1e17, "tiny": 5e-324, "half": 0.1, "é": "ü\u2028"}


def test_an_entry_that_was_formatted_anew_is_the_same(tmp_path):
    for how, formatted in FORMATS.items():
        if how == "jq" and which("jq") is None:
            continue  # Not installed everywhere, and no part of the test extra: "numbers" does what it does.
        folder = tmp_path / how
        ledger = Ledger(ledger_url(folder))
        for number in range(3):
            ledger.append("p", ("note", {"n": number, "numbers": NUMBERS}))
        before = ledger.read()
        for path in folder.glob("*.json"):
            changed = formatted(path.read_bytes().decode())
            assert changed != path.read_bytes().decode(), how
            path.write_bytes(changed.encode())
        assert ledger.read() == before, how
        assert ledger.problems(before.head) == [], how
        ledger.append("p", ("note", {}), expected=before.head)


WRONG = {
    "twice": lambda text: text.replace('"kind": "note",', '"kind": "note", "kind": "note",'),
    "twice, deep": lambda text: text.replace('"n": 1', '"n": 1, "n": 1'),
    "nan": lambda text: text.replace('"n": 1', '"n": NaN'),
    "infinity": lambda text: text.replace('"n": 1', '"n": -Infinity'),
    "no json": lambda _: "no JSON",
    "a list": lambda text: f"[{text}]",
    "nothing": lambda _: "",
    "too deep": lambda _: "[" * 100_000,
    "too long a number": lambda text: text.replace('"n": 1', f'"n": {"1" * 5000}'),
    "more": lambda text: text.replace('"kind"', '"more": 1, "kind"'),
    "no parents": lambda text: text.replace('"parents"', '"children"'),
    "parents": lambda text: text.replace('"parents": [', '"parents": [[],'),
    "two": lambda text: text + text,
    "a number": lambda _: "3",
}


def test_a_text_that_is_no_entry_is_altered(ledger, hands):
    entries = [ledger.append("p", ("note", {"n": number})) for number in range(3)]
    text = hands.texts()[entries[1].hash]
    for how, change in WRONG.items():
        assert change(text) != text, how
        hands.put(entries[1].hash, change(text))
        assert ledger.problems() == [f"the entry {entries[1].hash[:12]} was altered"], how
        for act in (ledger.read, lambda: ledger.append("p", ("note", {}))):
            try:
                act()
            except LedgerError as error:
                assert "was altered" in str(error), how  # noqa: PT017 - the else below fails
                assert "\n" not in str(error), how  # noqa: PT017
            else:
                pytest.fail(f"{how}: the ledger was taken")
    hands.put(entries[1].hash, text)
    assert ledger.problems() == []


def test_bytes_that_are_no_text_and_marks_of_a_conflict_are_said(tmp_path):
    ledger = Ledger(f"file://{tmp_path}/ledger")
    entry = ledger.append("p", ("note", {"n": "\ufffd"}))
    path = tmp_path / "ledger" / f"{entry.hash}.json"
    whole = path.read_bytes()
    for data in (b"\xff\xfe\x00", whole.replace("\ufffd".encode(), b"\xff")):
        path.write_bytes(data)
        assert ledger.problems() == [f"the entry {entry.hash[:12]} was altered"]
    path.write_bytes(b"<<<<<<< ours\n" + whole + b"=======\n" + whole + b">>>>>>> theirs\n")
    assert "marks of a conflict in git" in ledger.problems()[0]
    path.unlink()
    path.mkdir()
    assert ledger.problems() == [f"the entry {entry.hash[:12]} was altered"]


def test_other_files_in_the_folder_are_let_alone_unless_they_look_like_entries(tmp_path):
    """A renamed newest entry would be a rollback that nobody sees."""
    folder = tmp_path / "ledger"
    ledger = Ledger(f"file://{folder}")
    entry = ledger.append("p", ("note", {}))
    for name in ("README.md", ".DS_Store", f"._{entry.hash}.json", "x.json.1.2.tmp", "Thumbs.db"):
        (folder / name).write_text("something")
    (folder / "signatures").mkdir()
    (folder / "signatures" / "README").write_text("something")
    assert ledger.read().entries == (entry,)
    assert ledger.problems() == []
    (folder / f"{entry.hash}.json").rename(folder / f"{entry.hash} (1).json")
    assert ledger.problems() == [
        f"'{entry.hash} (1)' is not the name of an entry: give it its old name, or move it out of the ledger"
    ]
    with pytest.raises(LedgerError, match="is not the name of an entry"):
        ledger.read()


def test_what_a_database_lets_somebody_put_in_is_found(places):
    """SQLite keeps numbers, bytes and texts that are none wherever they are put."""
    from ledger.conftest import Hands

    ledger = Ledger(url := places.new("sqlite"))
    hands = Hands(url)
    name = ledger.keep("signatures", {"x": np.arange(3)})
    entry = ledger.append("p", ("note", {"signatures": name}))
    text = hands.texts()[entry.hash]
    for value in ("3", "x'00ff'", "cast(x'22ff22' as text)"):
        hands.run(f"UPDATE rankeval_ledger_entries SET text = {value}")  # noqa: S608 - our own values
        assert ledger.problems() == [f"the entry {entry.hash[:12]} was altered"]
    hands.put(entry.hash, text)
    for value in ("3", "'text'", "x'00ff'"):
        hands.run(f"UPDATE rankeval_ledger_files SET data = {value}")  # noqa: S608 - our own values
        assert ledger.problems() == [f"the file {name} was altered"]


@pytest.mark.random
def test_a_folder_that_is_read_while_somebody_writes_is_read_again(tmp_path, monkeypatch):
    """The list of a folder may hold an entry and lack its parent, which was written before it."""
    ledger = Ledger(f"file://{tmp_path}/ledger")
    first, second = (ledger.append("p", ("note", {"n": n})) for n in range(2))
    entries, readings = ledger._store.entries, []

    def torn():
        readings.append(1)
        return {name: text for name, text in entries().items() if len(readings) > 2 or name != first.hash}

    monkeypatch.setattr(ledger._store, "entries", torn)
    with pytest.raises(LedgerError, match="is missing"):  # twice the same: it is not there
        ledger.read()
    readings[:] = [1]
    assert ledger.read().entries == (first, second)


def test_an_edit_between_two_readings_is_found_though_texts_are_parsed_once(ledger, hands):
    entry = ledger.append("p", ("note", {"n": 1}))
    text = hands.texts()[entry.hash]
    for _ in range(3):
        assert ledger.read().entries == (entry,)
        hands.put(entry.hash, text.replace('"n": 1', '"n": 2'))
        assert spoilt(ledger)
        hands.put(entry.hash, text)
    before = parsed.cache_info().misses
    ledger.read()
    assert parsed.cache_info().misses == before
