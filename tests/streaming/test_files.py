"""Which files a data set consists of: none is read twice or left out without a word, and no secret is shown."""

from __future__ import annotations

import errno
import os
import re

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from streaming.logs import NAMES, Log, evaluate
from tables import each_row
from typer.testing import CliRunner

import rankeval as rk
from rankeval._secrets import without_secrets
from rankeval.cli import app
from rankeval.errors import InvalidInput, QueryIdError
from rankeval.evaluation import to_bytes
from rankeval.io import opening
from rankeval.streaming.source import ParquetSource

K = {"qid": "q", "relevance": "y", "score": "s", "measures": ["nDCG@10", "RR"]}


def write(path, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns or {"q": [1, 2], "y": [1, 0], "s": [0.1, 0.2]}), path)
    return path


def ways_to_name_a_file_twice(path):
    link = path.with_name("link.parquet")
    link.symlink_to(path)
    hard = path.parent.parent / "hard.parquet"
    hard.hardlink_to(path)
    relative = os.path.relpath(path)
    yield [path, path], "occurs twice"
    yield [str(path), relative], "are one file"
    yield [path.as_uri(), path.as_uri()], "occurs twice"
    yield [str(path), f"{path.parent}/../{path.parent.name}/{path.name}"], "are one file"
    yield [path, link], "are one file"
    yield [hard, path], "are one file"
    yield path.parent, "are one file"
    yield ds.dataset([ds.dataset(str(path)), ds.dataset(str(path))]), "occurs twice"


def test_a_file_that_is_named_twice_is_refused(tmp_path):
    path = write(tmp_path / "log" / "a.parquet")
    for given, said in ways_to_name_a_file_twice(path):
        with pytest.raises(InvalidInput, match=rf"a.parquet.* {said}.*; give each file once"):
            rk.evaluate_dataset(given, **K)


def test_row_groups_of_one_file_may_be_given_apart(tmp_path):
    log = Log.made()
    data = log.write(tmp_path / "log")
    (whole,) = ds.dataset(data).get_fragments()
    parts = [whole.subset(row_group_ids=[one.id]) for one in whole.row_groups]
    assert len(parts) > 2
    given = ds.FileSystemDataset(parts, whole.physical_schema, ds.ParquetFileFormat(), whole.filesystem)
    assert to_bytes(evaluate(given)) == to_bytes(log.evaluation())
    twice = ds.FileSystemDataset([*parts, parts[1]], whole.physical_schema, ds.ParquetFileFormat(), whole.filesystem)
    with pytest.raises(InvalidInput, match="occurs twice"):
        evaluate(twice)


def test_two_folders_that_are_one_number_are_no_query(tmp_path):
    write(tmp_path / "q=1" / "x.parquet", y=[1], s=[0.1])
    write(tmp_path / "q=2" / "x.parquet", y=[0], s=[0.1])
    assert rk.evaluate_dataset(tmp_path, **K).queries.tolist() == [1, 2]
    write(tmp_path / "q=01" / "x.parquet", y=[0], s=[0.2])
    with pytest.raises(QueryIdError, match=r"the folders q=01 and q=1 are one query") as raised:
        rk.evaluate_dataset(tmp_path, **K)
    assert "pyarrow.string()" in str(raised.value)
    as_text = ds.partitioning(pa.schema([("q", pa.string())]), flavor="hive")
    given = ds.dataset(tmp_path, format="parquet", partitioning=as_text)
    assert rk.evaluate_dataset(given, **K).queries.tolist() == ["01", "1", "2"]


def test_two_ways_to_write_one_text_are_one_query(tmp_path):
    write(tmp_path / "q=a%20b" / "x.parquet", y=[1], s=[0.1])
    write(tmp_path / "q=a b" / "x.parquet", y=[0], s=[0.2])
    assert rk.evaluate_dataset(tmp_path, **K).queries.tolist() == ["a b"]


@each_row("hidden", ["_d=1/x.parquet", ".d=1/x.parquet", "_x.parquet", "d=2/.old.parquet", "_d=1/x"])
def test_rows_in_names_that_readers_pass_over_are_not_dropped(tmp_path, hidden):
    write(tmp_path / "d=2" / "x.parquet")
    write(tmp_path / hidden, q=[3], y=[1], s=[0.5])
    for given in (
        tmp_path,
        tmp_path.as_uri(),
        f"{tmp_path}//",
        ".",
        "./",
        f"../{tmp_path.name}/",
        f"{tmp_path.as_uri()}/",
    ):
        with pytest.raises(InvalidInput, match=rf"passed over: .*{re.escape(hidden)}.*begins with _ or \."):
            rk.evaluate_dataset(given, **K)
    files = [tmp_path / hidden, tmp_path / "d=2" / "x.parquet"]
    assert rk.evaluate_dataset(files, **K).n_queries == 3


def test_what_spark_and_hive_leave_beside_rows_is_passed_over(tmp_path):
    write(tmp_path / "d=2" / "x.parquet")
    alone = rk.evaluate_dataset(tmp_path, **K)
    for name in (
        "_SUCCESS",
        "_metadata",
        "_common_metadata",
        "d=2/.x.parquet.crc",
        "_committed_1",
        ".DS_Store",
        "_temporary/0/_temporary/attempt_1/d=3/x.parquet",
        ".spark-staging-1/d=3/x.parquet",
        ".hive-staging_hive_1/-ext-1/x.parquet",
        "_delta_log/01.checkpoint.parquet",
        ".ipynb_checkpoints/x-checkpoint.parquet",
        "d=2/._x.parquet",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"?")
    assert to_bytes(rk.evaluate_dataset(tmp_path, **K)) == to_bytes(alone)


def test_a_folder_without_rows_is_said(tmp_path):
    with pytest.raises(InvalidInput, match=rf"no Parquet file in '{tmp_path}'"):
        rk.evaluate_dataset(tmp_path, **K)
    (tmp_path / "_SUCCESS").touch()
    with pytest.raises(InvalidInput, match=r"no Parquet file in .*passed over: _SUCCESS"):
        rk.evaluate_dataset(tmp_path, **K)


@pytest.mark.usefixtures("small")
@each_row("keeps", [True, False])
def test_a_disk_that_fills_up_is_said(tmp_path, monkeypatch, keeps):
    """The bytes of texts are guessed before; the error is that of the system, from a device that is always full."""
    log = Log.made(ids=lambda numbers: np.array([f"query-{one}" for one in numbers], dtype=object)).shuffled()
    data = log.write(tmp_path / "log")

    def full(path, *given, **options):
        return open("/dev/full" if ".arrow" in str(path) else path, *given, **options)  # noqa: PTH123 - with an opener

    scores = tmp_path / "scores" if keeps else None
    with monkeypatch.context() as patched:
        patched.setattr(opening, "open", full, raising=False)
        with pytest.raises(InvalidInput, match=r"is full;.*TMPDIR") as raised:
            evaluate(data, folder=scores)
    assert str(scores or "rankeval-") in str(raised.value)
    assert isinstance(raised.value.__cause__, OSError)
    assert raised.value.__cause__.errno == errno.ENOSPC
    assert to_bytes(evaluate(data, folder=scores)) == to_bytes(log.evaluation())


@each_row(
    ("url", "shown"),
    [
        ("s3://key:SECRET@host/x", "s3://***@host/x"),
        ("s3://key:SEC/RET@host/x", "s3://***"),
        ("s3://key:SEC/SECRET/@@host/x", "s3://***"),
        ("s3://key:12/SECRET@host/x", "s3://***"),
        ("s3://key:SEC?SECRET@host/x?y=SECRET", "s3://***"),
        ("s3://SECRET@host/x", "s3://***@host/x"),
        ("s3://host/x?access_key=SECRET&secret_key=SECRET", "s3://host/x?access_key=***&secret_key=***"),
        ("s3://host/x?endpoint=me@there&secret_key=SECRET", "s3://host/x?endpoint=***&secret_key=***"),
        ("s3://key:SECRET@host/x?endpoint=me@SECRET", "s3://***@host/x?endpoint=***"),
        ("hdfs://host:8020/x", "hdfs://host:8020/x"),
        ("s3://host/x@2026/y", "s3://host/x@2026/y"),
        ("/data/x@2026:y/z?", "/data/x@2026:y/z?"),
    ],
)
def test_secrets_of_a_url_are_masked(url, shown):
    for text in (url, f"before '{url}' and", f"'{url}', '{url}'"):
        assert "SECRET" not in without_secrets(text)
        assert without_secrets(text) == text.replace(url, shown)


@each_row("secret", ["user:SECRET@", "user:SEC/SECRET@", ""])
def test_no_manifest_error_or_repr_has_a_secret(tmp_path, secret):
    log = Log.made()
    data = log.write(tmp_path / "log")
    source = ParquetSource.of(data, NAMES)
    url = f"s3://{secret}host:1/x.parquet?secret_key=SECRET&access_key=SECRET&endpoint_override=127.0.0.1:1"
    names = ["--qid", "query", "--relevance", "label", "--score", "value", "-m", "RR"]
    shown = CliRunner().invoke(app, ["evaluate-dataset", url, *names])
    assert shown.exit_code
    with pytest.raises(InvalidInput) as raised:
        evaluate(url, folder=tmp_path / "scores")
    for text in (shown.output, str(raised.value), repr(raised.value), repr(source), str(source.card())):
        assert "SECRET" not in text


def test_the_name_and_the_manifest_of_a_url_have_no_secret(tmp_path):
    log = Log.made()
    path = log.write(tmp_path / "log").as_uri()
    for data in (path, f"{path}?secret_key=SECRET"):
        names = ["--qid", "query", "--relevance", "label", "--score", "value", "-m", "RR"]
        scores = tmp_path / str(len(data))
        shown = CliRunner().invoke(app, ["evaluate-dataset", data, *names, "--folder", str(scores)])
        assert "SECRET" not in shown.output
        written = [one.read_bytes() for one in scores.rglob("*") if one.is_file()] if scores.exists() else []
        assert not any(b"SECRET" in one for one in written)
