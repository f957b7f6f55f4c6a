"""A folder is whole or absent, a stranger can check it, and it holds any record as it was."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import random
import signal
import threading
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from circles import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal
from shelf.every_kind import evaluation, results

import rankeval as rk
from rankeval.errors import InvalidInput
from rankeval.shelf.folder import checked_path, file_names, packed, read, write
from rankeval.tracking import LoggedData


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Return the folder that holds all results, each by its title, and their seals."""
    folder = tmp_path_factory.mktemp("saved")
    return folder, {title: rk.save(one, folder / title, **options) for title, (one, options) in results().items()}


@pytest.mark.parametrize("field", ["kind", "name", "headline"])
@pytest.mark.parametrize("value", [["run"], None])
def test_a_record_has_words_for_people(field, value):
    with pytest.raises(InvalidInput) as error:
        rk.Record(**({"kind": "new"} | {field: value}))
    assert error.value.argument == field


def test_a_folder_with_a_name_that_is_too_long_is_refused(tmp_path):
    with pytest.raises(InvalidInput):
        write(rk.Record("new"), tmp_path / ("x" * 300) / "there")


class TestAStranger:
    """Who has json, hashlib and pyarrow alone can check a folder, and read its numbers."""

    def checked(self, folder: Path, seal: str) -> dict:
        """Check a record, its files and its parts as its README would tell a stranger to."""
        content = (folder / "record.json").read_bytes()
        assert hashlib.sha256(content).hexdigest() == seal
        record = json.loads(content)
        assert record["format"] == "rankeval.record/1"
        expected = {"record.json", "README.md"}
        for one in record["resources"]:
            data = (folder / one["path"]).read_bytes()
            assert (len(data), f"sha256:{hashlib.sha256(data).hexdigest()}") == (one["bytes"], one["hash"])
            expected.add(one["path"])
            if one["path"].endswith(".parquet"):
                pq.read_table(io.BytesIO(data))
        for one in (*record["parts"], *record["children"]):
            self.checked(folder / one["path"], one["hash"].removeprefix("sha256:"))
            expected |= {str(path.relative_to(folder)) for path in (folder / one["path"]).rglob("*") if path.is_file()}
        assert {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} == expected
        return record

    def test_every_resource_has_its_bytes_and_its_hash(self, saved):
        folder, seals = saved
        for title, seal in seals.items():
            assert self.checked(folder / title, seal)["kind"] == rk.read_record(folder / title).kind

    def test_metrics_are_the_aggregates_to_the_last_bit(self, saved):
        for title, (result, _) in results().items():
            if isinstance(result, rk.Evaluation):
                told = json.loads((saved[0] / title / "record.json").read_bytes())["metrics"]
                values = dict(zip((one.key for one in result.measures), result.aggregate(), strict=True))
                found = {name: float(value) for name, value in told.items() if name in values}
                assert np.array(list(found.values())).tobytes() == np.array(list(values.values())).tobytes(), title

    def test_tables_are_read_by_pyarrow_alone(self, saved):
        table = pq.read_table(saved[0] / "agreement" / "tables" / "table.parquet").to_pandas()
        ours = results()["agreement"][0].table
        np.testing.assert_array_equal(table["value"], ours["value"])

    def test_no_time_place_or_person_is_in_it(self, tmp_path, monkeypatch):
        seals = set()
        for at, name in ((1.0, "a"), (2.0, "b")):
            monkeypatch.setenv("USER", name)
            monkeypatch.setattr("time.time", lambda at=at: at)
            seals.add(rk.save(evaluation(), tmp_path / name / "deeper" / name, role="test"))
        assert len(seals) == 1


class TestWholeOrAbsent:
    """A folder that exists is whole, whoever was killed; only names with a leading dot are none."""

    def test_no_folder_or_a_whole_one_is_left_by_a_killed_writer(self, tmp_path):
        killed(tmp_path, 6, random.Random(0))  # noqa: S311 - no secret

    @pytest.mark.kill
    def test_the_same_at_40_moments(self, tmp_path):
        left = killed(tmp_path, 40, random.Random())  # noqa: S311 - no secret
        assert "draft" in left, "no moment was within the writing"

    def test_four_writers_of_one_folder(self, tmp_path):
        """All have the seal; the folder is the first one's."""
        for turn in range(5):
            found, start = [], threading.Barrier(4)

            def save(turn=turn, found=found, start=start):
                start.wait()
                found.append(rk.save(evaluation(), tmp_path / f"{turn}"))

            writers = [threading.Thread(target=save) for _ in range(4)]
            for writer in writers:
                writer.start()
            for writer in writers:
                writer.join()
            assert len(found) == 4
            assert len({*found}) == 1
        assert sorted(path.name for path in tmp_path.iterdir()) == [str(turn) for turn in range(5)], "no draft is left"

    def test_another_result_does_not_take_its_place(self, tmp_path):
        seal = rk.save(evaluation(), tmp_path / "x")
        assert rk.save(evaluation(), tmp_path / "x") == seal
        before = {path: path.read_bytes() for path in (tmp_path / "x").rglob("*") if path.is_file()}
        with pytest.raises(InvalidInput, match=r"x' holds another record; give another folder"):
            rk.save(evaluation(seed=1), tmp_path / "x")
        assert {path: path.read_bytes() for path in (tmp_path / "x").rglob("*") if path.is_file()} == before
        (tmp_path / "file").write_text("mine")
        for place, says in [("file", "holds something else"), ("file/x", "there is no folder")]:
            with pytest.raises(InvalidInput, match=says):
                rk.save(evaluation(), tmp_path / place)
        (tmp_path / "full").mkdir()
        (tmp_path / "full" / "notes.txt").write_text("mine")
        with pytest.raises(InvalidInput, match="holds something else"):
            rk.save(evaluation(), tmp_path / "full")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "full", "x"]

    def test_every_file_reaches_the_disk_before_the_record_names_it(self, tmp_path, monkeypatch):
        synced = []
        monkeypatch.setattr("os.fsync", lambda file: synced.append(Path(f"/proc/self/fd/{file}").readlink().name))
        rk.save(evaluation(), tmp_path / "x")
        assert synced == ["evaluation.parquet", "README.md", "record.json"]

    def test_a_copy_of_a_large_file_takes_little_memory(self, tmp_path):
        """It is read, hashed and written by blocks."""
        import tracemalloc

        write(rk.Record("x", files={"large.bin": bytes(64 << 20)}), tmp_path / "x")
        tracemalloc.start()
        try:
            assert write(read(tmp_path / "x"), tmp_path / "y")
            assert tracemalloc.get_traced_memory()[1] < 8 << 20
        finally:
            tracemalloc.stop()


def killed(folder: Path, times: int, draw: random.Random) -> list[str]:
    """Save results in processes that are killed at an event of theirs; return what each left."""
    result = results()["cross-validation of a search"][0]
    rk.save(result, folder / "clean", folds=True)  # what is imported and cached by the first call is not counted
    n_events = ended(folder / f"{times}", result, at=None)
    left = []
    for number in range(times):
        ended(folder / f"{number}", result, at=draw.randrange(1, n_events))
        names = {path.name for path in folder.iterdir()} - {"clean"}
        whole, drafts = folder / f"{number}", [name for name in names if name.startswith(f".{number}.")]
        if whole.exists():
            assert str(rk.load(whole)) == str(result)
        left.append("whole" if whole.exists() else "draft" if drafts else "nothing")
        assert all(name.startswith(".") or name.isdigit() for name in names)
        assert rk.save(result, whole, folds=True) == rk.save(result, folder / "clean", folds=True)
    return left


def ended(target: Path, result: object, at: int | None) -> int:
    """Save in a fork that kills itself at an event of Python; return the number of events."""
    import sys

    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        n_events = 0

        def count(*_):
            nonlocal n_events
            n_events += 1
            if n_events == at:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.setprofile(count)
        rk.save(result, target, folds=True)
        sys.setprofile(None)
        os.write(writes, str(n_events).encode())
        os._exit(0)
    os.close(writes)
    told = os.read(reads, 100)
    os.close(reads)
    status = os.waitpid(child, 0)[1]
    # Caches and finalizers make the number of events vary a little: the last one may not come.
    assert status in ((0,) if at is None else (0, signal.SIGKILL))
    return int(told or 0)


texts = st.text(max_size=20)
numbers = st.floats()
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
paths = st.from_regex(r"[a-z]{1,5}(/[a-z]{1,5})?\.bin", fullmatch=True)
columns = {
    "text": st.lists(texts, min_size=3, max_size=3),
    "number": st.lists(numbers, min_size=3, max_size=3),
    "whole": st.lists(st.integers(-(2**63), 2**63 - 1), min_size=3, max_size=3),
    "any": st.lists(st.none() | st.booleans() | st.integers() | texts, min_size=3, max_size=3).map(
        lambda values: pd.Series(values, dtype=object)
    ),
}
tables = st.builds(lambda held: pd.DataFrame({name: pd.Series(each) for name, each in held.items()}),
                   st.fixed_dictionaries(columns))  # fmt: skip
data = st.builds(LoggedData, texts, texts, texts, st.integers(0), st.integers(0), st.none() | texts)


def records(depth: int = 1) -> st.SearchStrategy[rk.Record]:
    """Draw records with parts and children."""
    below = st.dictionaries(texts, records(depth - 1), max_size=2) if depth else st.just({})
    return st.builds(
        rk.Record,
        kind=texts,
        name=texts,
        headline=texts,
        params=st.dictionaries(texts, st.none() | st.booleans() | texts, max_size=3),
        metrics=st.dictionaries(texts, numbers, max_size=4),
        series=st.dictionaries(texts, st.dictionaries(st.integers(0, 2**40), numbers, max_size=3), max_size=2),
        tables=st.dictionaries(texts, tables, max_size=2),
        files=st.dictionaries(paths, st.binary(max_size=40), max_size=2).filter(
            lambda held: not any(f"{one}/" in other for one in held for other in held)
        ),
        notes=st.lists(texts, max_size=2).map(tuple),
        text=texts,
        facts=st.dictionaries(texts, plain, max_size=3),
        tags=st.dictionaries(texts, texts, max_size=2),
        data=st.lists(data, max_size=2).map(tuple),
        parts=below,
        children=below,
        status=st.sampled_from(["FINISHED", "FAILED"]),
        started=st.none() | st.floats(0, 1e12),
        seconds=st.none() | st.floats(0, 1e12),
    )


def assert_same(one: rk.Record, other: rk.Record) -> None:
    """Check that two records agree in every field, in their order too."""
    for field in fields(rk.Record):
        mine, theirs = getattr(one, field.name), getattr(other, field.name)
        if field.name in ("parts", "children"):
            assert [*mine] == [*theirs]
            for name in mine:
                assert_same(mine[name], theirs[name])
        elif field.name == "tables":
            assert [*mine] == [*theirs]
            for name in mine:
                assert_frame_equal(mine[name], theirs[name], check_exact=True)
        else:
            left, right = (dict(each) if field.name == "files" else each for each in (mine, theirs))
            assert repr(left) == repr(right), field.name


@settings(max_examples=examples(60))
@given(records())
def test_a_record_comes_back_as_it_was(record):
    with TemporaryDirectory() as folder:
        seal = write(record, Path(folder, "x"))
        back = read(Path(folder, "x"))
        assert_same(record, back)
        assert write(back, Path(folder, "y")) == seal
        assert packed(back) == packed(record)


@given(
    st.lists(
        st.text(max_size=80) | st.sampled_from(["a", "A", "../a", "a/b", "a_b", "a@b", "..", "", "con"]), unique=True
    )
)
def test_names_of_files_differ_even_if_case_is_ignored_and_lead_nowhere(titles):
    names = file_names(titles)
    assert len(names) == len(titles) == len({name.lower() for name in names})
    assert all("/" not in checked_path(name) and len(name) < 100 for name in names)
    assert all(name.isascii() for name in names)
    assert names == file_names(titles)


@given(st.lists(st.sampled_from(["a", "b.c", "..", ".", "", " ", "\\", "\0", "\n", "x" * 241, "\u202e", "é"])))
def test_a_path_stays_within_its_folder_or_is_refused(steps):
    path = "/".join(steps)
    good = {"a", "b.c", "é"}
    if steps and {*steps} <= good and len(path.encode()) <= 1000:
        assert checked_path(path) == path
    else:
        with pytest.raises(InvalidInput, match="the path of a file"):
            checked_path(path)


@pytest.mark.parametrize(
    "wrong",
    [
        {"params": {"a": math.nan}},
        {"params": {"a": np.int64(1)}},
        {"facts": {"a": {1, 2}}},
        {"facts": {"a": math.inf}},
        {"name": "\ud800"},
        {"text": "é" * (3 << 20)},
        {"text": "e" * (5 << 20)},
        {"tables": {"t": pd.DataFrame({"a": [pd.Timestamp("2020-01-01"), "x"]}, dtype=object)}},
        {"tables": {"t": pd.DataFrame({"a": [b"x"]}, dtype=object)}},
        {"tables": {"t": pd.DataFrame([[1, 2]], columns=["a", "a"])}},
        {"tables": {"t": pd.DataFrame({"a": [1, 2]}, index=[1, "all"])}},
        {"files": {"README.md": b""}},
        {"files": {"record.json": b""}},
        {"files": {"a": b"", "a/b": b""}},
        {"files": {"tables/t.parquet": b""}, "tables": {"t": pd.DataFrame({"a": [1]})}},
        {"files": {"parts/dev/record.json": b""}, "parts": {"dev": rk.Record("x")}},
    ],
    ids=str,
)
def test_what_a_folder_cannot_hold_is_refused_and_nothing_is_left(wrong, tmp_path):
    """What was written is read again: never a folder that is refused when it is loaded."""
    with pytest.raises(InvalidInput):
        write(replace(rk.Record("x"), **wrong), tmp_path / "x")
    assert not any(tmp_path.iterdir())
