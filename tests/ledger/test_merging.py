"""Two ledgers become one, in whatever stores and through git: nothing is lost, and what was apart stays so."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from ledger.conftest import STORES, Hands

from rankeval.errors import LedgerError
from rankeval.ledger.discovery import ledger_url
from rankeval.ledger.ledger import Ledger


def look(ledger: Ledger, project: str, number: int) -> None:
    """Append an entry with a file that must be committed and one that may stay out."""
    signatures = ledger.keep("signatures", {"x": np.full(4, number)})
    rankings = ledger.keep("rankings", {"x": np.full(9, number)})
    ledger.append(project, ("open", {"n": number, "signatures": signatures, "rankings": rankings}))


def contents(ledger: Ledger) -> tuple[set[str], set[str]]:
    return {entry.hash for entry in ledger.read().entries}, ledger._files()


PAIRS = [
    pytest.param(*(one.values[0] if hasattr(one, "values") else one for one in pair), id="-".join(names), marks=marks)
    for pair in itertools.product(STORES, repeat=2)
    for names in [[one.values[0] if hasattr(one, "values") else one for one in pair]]
    for marks in [[pytest.mark.postgres] if "postgres" in names else []]
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_two_ledgers_become_one_in_any_stores(places, one, other):
    mine, theirs = Ledger(places.new(one, "mine")), Ledger(places.new(other, "theirs"))
    look(mine, "p", 0)
    assert theirs.merge(mine) == 1
    for number in range(1, 4):
        look(mine, "p", number)
        look(theirs, "q", number + 10)
    heads = [mine.read().head, theirs.read().head]
    before = contents(theirs)
    assert mine.merge(theirs) == 3
    assert mine.merge(theirs) == mine.merge(mine) == 0
    assert contents(theirs) == before, "the other one stays as it is"
    snapshot = mine.read()
    assert sorted(entry.body["n"] for entry in snapshot.entries) == [0, 1, 2, 3, 11, 12, 13]
    assert snapshot.heads == tuple(sorted(heads))
    assert snapshot.head == "+".join(sorted(heads))
    assert snapshot.apart(*heads)
    assert mine.problems(*heads, snapshot.head, other=theirs) == []
    assert len(theirs.problems(other=mine)) == 3
    assert theirs.merge(mine) == 3
    assert contents(mine) == contents(theirs)
    assert theirs.read() == snapshot
    last = theirs.append("q", ("note", {}), expected=snapshot.head)
    assert last.parents == tuple(sorted(heads))
    assert theirs.read().heads == (last.hash,)
    assert mine.load(last_file(mine))["x"].tolist() == [13] * 9


def last_file(ledger: Ledger) -> str:
    return next(entry.body["rankings"] for entry in ledger.read().entries if entry.body["n"] == 13)


def test_a_ledger_is_exported_to_a_path_and_added_to_what_is_there(url, tmp_path):
    ledger = Ledger(url)
    look(ledger, "p", 1)
    assert ledger.export(tmp_path / "out") == ledger.export(f"sqlite:///{tmp_path}/out.db") == 1
    look(ledger, "p", 2)
    assert ledger.export(tmp_path / "out") == 1
    assert contents(Ledger(ledger_url(tmp_path / "out"))) == contents(ledger)
    assert len(Ledger(ledger_url(tmp_path / "out.db")).read().entries) == 1


def test_nothing_is_merged_with_a_ledger_that_is_not_there_or_not_whole(places, tmp_path):
    mine, theirs = Ledger(places.new("folder", "mine")), Ledger(places.new("sqlite", "theirs"))
    look(mine, "p", 0)
    before = contents(mine)
    with pytest.raises(LedgerError, match=r"there is no ledger .*theirs.db"):
        mine.merge(theirs)
    with pytest.raises(LedgerError, match=r"there is no ledger .*theirs.db"):
        theirs.export(tmp_path / "mine")
    look(theirs, "q", 1)
    look(theirs, "q", 2)
    hands, files = Hands(theirs.url), sorted(theirs._files())
    (first, _) = theirs.read().entries
    text = hands.texts()[first.hash]
    hands.put(first.hash, text.replace('"q"', '"r"'))
    with pytest.raises(LedgerError, match=rf"theirs.db is not whole: the entry {first.hash[:12]} was altered"):
        mine.merge(theirs)
    hands.put(first.hash, text)
    contents_of = {name: theirs._store.load(name) for name in files}
    for name in files:
        hands.put_file(name, b"something else")
        with pytest.raises(LedgerError, match=f"the file {name} of the ledger .*theirs.db was altered"):
            mine.merge(theirs)
        hands.put_file(name, contents_of[name])
    assert contents(mine)[0] == before[0], "no entry came, whatever files did"
    name = first.body["signatures"]
    hands.delete_file(name)
    with pytest.raises(LedgerError, match=f"theirs.db lacks its file {name}: nothing was merged"):
        mine.merge(theirs)
    assert contents(mine)[0] == before[0]


def test_rankings_that_were_left_out_of_a_clone_come_back_with_a_merge(places):
    mine, theirs = Ledger(places.new("folder", "mine")), Ledger(places.new("folder", "theirs"))
    look(mine, "p", 0)
    shutil.copytree(mine.where, theirs.where, ignore=shutil.ignore_patterns("rankings", "lock"))
    assert theirs.problems() == []
    held, there = (Path(one.where) / "rankings" for one in (mine, theirs))
    (name,) = (file.name for file in held.iterdir())
    assert theirs.merge(mine) == 0, "entries are counted, and it had this one"
    assert (there / name).is_file()
    shutil.rmtree(there)
    assert mine.merge(theirs) == 0, "a clone without rankings takes none away"
    assert (held / name).is_file()


# Through git ----------------------------------------------------------------------------------------------------------


def git(folder: Path, *command: str) -> str:
    who = {f"GIT_{role}_{what}": "x@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**os.environ, **who, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    done = subprocess.run(["git", *command], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("autocrlf", ["false", "true", "input"])
def test_two_clones_with_ten_looks_each_are_merged_by_git_without_a_conflict(tmp_path, autocrlf):
    """Whatever git does to line ends, and whatever the repository ignores."""
    first, second = tmp_path / "first", tmp_path / "second"
    git(tmp_path, "init", "-q", "-b", "main", str(first))
    git(first, "config", "core.autocrlf", autocrlf)
    (first / ".gitattributes").write_text("* text=auto eol=crlf\n")
    (first / ".gitignore").write_text("*.json\n*.bin\n")
    ledgers = [Ledger(ledger_url(folder / "rankeval-ledger")) for folder in (first, second)]
    look(ledgers[0], "p", 0)
    git(first, "add", ".")
    git(first, "commit", "-q", "-m", "a first look")
    git(tmp_path, "clone", "-q", "-c", f"core.autocrlf={autocrlf}", str(first), str(second))
    assert ledgers[1].read() == ledgers[0].read()
    for ledger, folder, start in zip(ledgers, (first, second), (10, 20), strict=True):
        for number in range(start, start + 10):
            look(ledger, folder.name, number)
        (folder / "rankeval-ledger" / "left.1.2.tmp").write_text("of a writer that was killed")
        git(folder, "add", ".")
        git(folder, "commit", "-q", "-m", "ten looks")
        assert git(folder, "status", "--porcelain") == ""
    heads = [ledger.read().head for ledger in ledgers]
    git(first, "pull", "-q", "--no-rebase", "--no-edit", str(second), "main")
    git(second, "pull", "-q", "--no-rebase", "--no-edit", str(first), "main")
    for ledger, folder in zip(ledgers, (first, second), strict=True):
        snapshot = ledger.read()
        assert ledger.problems(*heads) == []
        assert sorted(entry.body["n"] for entry in snapshot.entries) == [0, *range(10, 30)]
        assert snapshot.heads == tuple(sorted(heads))
        committed = git(folder, "ls-files", "rankeval-ledger").split()
        assert len(committed) == 2 + 3 * 21
        assert not [name for name in committed if name.endswith(("lock", ".tmp"))]
    assert ledgers[0].append("p", ("note", {})).parents == tuple(sorted(heads))
