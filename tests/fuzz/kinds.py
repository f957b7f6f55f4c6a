"""The kinds of files that the package reads: an example of each, its reader, and what the plain reader says."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from fuzz import plain_readers as plain

import rankeval as rk
from rankeval.datasets import load_letor, load_table
from rankeval.experiment.config import load_config
from rankeval.ledger import discovery
from rankeval.ledger.discovery import ledger_url
from rankeval.ledger.ledger import Ledger
from rankeval.trec_eval.output import read_zscores

QRELS = b"".join(b"q%d 0 d%d %d\n" % (row // 4, row, row % 3) for row in range(24))
RUN = b"".join(b"q%d Q0 d%d %d %d.5 tag\n" % (row // 4, row, row % 4 + 1, 90 - row) for row in range(24))
PREFS = b"".join(b"q%d u%d %d d%d %d\n" % (row // 4, row % 2, row % 3, row, row % 3) for row in range(24))
LETOR = b"".join(b"%d qid:%d 1:0.5 3:%d.25 #docid = D%d\n" % (row % 3, row // 4, row, row) for row in range(24))
ROWS = b"".join(b"%d 1:0.5 3:%d\n" % (row % 3, row) for row in range(24))
CSV_QRELS = b"qid,docid,relevance\n" + b"".join(b'q%d,"d%d",%d\n' % (row // 4, row, row % 3) for row in range(24))
CSV_RUN = b"qid,docid,score,note\n" + b"".join(b"q%d,d%d,%d.5,x\n" % (row // 4, row, 90 - row) for row in range(24))
CSV_TABLE = b"q,y,x,flag\n" + b"".join(b"q%d,%d,%d.25,true\n" % (row // 4, row % 3, row) for row in range(24))
JSONL = b"".join(b'{"qid": "q%d", "docid": "d%d", "score": %d.5}\n' % (row // 4, row, row) for row in range(24))
JSONL_QRELS = b"".join(b'{"qid": %d, "docid": %d, "relevance": %d}\n' % (row // 4, row, row % 3) for row in range(24))
ZSCORES = b"".join(b"q%d %s 0.%d 0.1\n" % (row // 2, [b"map", b"P_5"][row % 2], row) for row in range(12))
CONFIG = b"""
name: small
data: {loader: digits, arguments: {n_queries: 60}}
rankers:
  ridge:
    estimator: sklearn.linear_model.Ridge
    grid: {alpha: [0.1, 1e1]}
  tree: {estimator: sklearn.tree.DecisionTreeRegressor, params: &p {max_depth: 3}}
measures: [nDCG@10, "AP(rel=1)"]
cv: {n_splits: 3}
guard: off
"""
PYPROJECT = b'[project]\nname = "x"\n[tool.rankeval]\nledger = "sqlite:///x.db"\n'
Rows = list[Any]


@dataclass(frozen=True)
class Kind:
    """One kind of file.

    ``read`` gives the rows, and ``plain`` those of the plain reader, where there is one: else only the manner of errors
    is looked at. ``beside`` are further files that the reader needs. Where ``strict`` is false, damage may be refused
    that the plain reader does not see: in parts of Parquet's metadata that say a thing twice.
    """

    name: str
    example: bytes
    read: Callable[[Path], Any]
    plain: Callable[[bytes], Rows] | None = None
    named: bool = True
    strict: bool = True
    beside: tuple[tuple[str, bytes], ...] = ()


def qrels_rows(path: Path, form: str | None = None) -> Rows:
    qrels = rk.Qrels.read(path, form)
    columns = [qrels.qid.to_pylist(), qrels.docid.to_pylist(), qrels.relevance.astype(float).tolist()]
    columns += [column.to_pylist() for column in (qrels.aspect, qrels.subgroup) if column is not None]
    return list(zip(*columns, strict=True))


def run_rows(path: Path, form: str | None = None) -> Rows:
    run = rk.Run.read(path, form)
    return list(zip(run.qid.to_pylist(), run.docid.to_pylist(), run.score.tolist(), strict=True))


def letor_rows(path: Path) -> Rows:
    """Return label, query and the cells that are not 0 by feature."""
    data = load_letor(path, sparse=True)
    names = [int(name[1:]) for name in data.feature_names]
    rows = []
    for at in range(len(data)):
        row = data.X[[at]]
        cells = {names[column]: value for column, value in zip(row.indices, row.data, strict=True) if value}
        rows.append((float(data.y[at]), str(data.qid[at]), cells))
    return rows


def table_rows(path: Path) -> Rows:
    data = load_table(path, qid="q", label="y", features=["x", "flag"])
    return list(zip(data.qid.tolist(), data.y.tolist(), data.X["x"], data.X["flag"], strict=True))


def plain_letor(data: bytes) -> Rows:
    rows = plain.letor(data)
    if rows[0][1] is None:
        raise plain.Wrong("no sizes")
    return [(label, qid, {index: value for index, value in cells.items() if value}) for label, qid, cells in rows]


def rows_by_sizes(path: Path) -> Rows:
    return [(label, cells) for label, _, cells in letor_rows(path)]


def plain_by_sizes(data: bytes) -> Rows:
    rows = plain.letor(data)
    if rows[0][1] is None and len(rows) != 24:
        raise plain.Wrong("sizes")
    return [(label, {index: value for index, value in cells.items() if value}) for label, _, cells in rows]


def sizes_rows(path: Path) -> Rows:
    qid = load_letor(path.with_name("rows.txt")).qid
    return [(int(count),) for count in np.bincount(qid)[1:]]


def plain_sizes(data: bytes) -> Rows:
    rows = plain.sizes(data)
    if sum(size for (size,) in rows) != 24:
        raise plain.Wrong("sum")
    while rows[-1] == (0,):
        rows.pop()
    return rows


def zscore_rows(path: Path) -> Rows:
    return [(*key, *value) for key, value in read_zscores(path).items()]


def evaluation() -> rk.Evaluation:
    rng = np.random.default_rng(0)
    return rk.evaluate(rng.integers(0, 3, 60), rng.normal(size=60), qid=np.repeat(np.arange(6), 10), measures=["AP"])


def evaluation_file(folder: Path) -> bytes:
    evaluation().save(folder / "evaluation")
    return (folder / "evaluation").read_bytes()


def saved_record(folder: Path) -> bytes:
    rk.save(evaluation(), folder / "saved")
    return (folder / "saved" / "record.json").read_bytes()


def read_saved(path: Path) -> rk.Evaluation:
    shutil.copy(path, path.with_name("record.json"))
    return rk.load(path.parent)


def comparison_text() -> bytes:
    rng = np.random.default_rng(1)
    other = rk.evaluate(rng.integers(0, 3, 60), rng.normal(size=60), qid=np.repeat(np.arange(6), 10), measures=["AP"])
    frames = {"a": evaluation().per_query, "b": other.per_query}
    return rk.compare(frames, measures=["AP"]).to_json().encode()


def guarded(folder: Path) -> bytes:
    """Return a ledger with a test part, a plan and its opening; the folder keeps it as text files, too."""
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(60, 4)), rng.integers(0, 3, 60), np.repeat(np.arange(6), 10)
    guard = rk.Guard("p", ledger=folder / "ledger.db")
    test = guard.register("t", X, y, qid=qid)
    guard.open(guard.freeze(test, systems={"a": X[:, 0], "b": X[:, 1]}, measure="AP"))
    Ledger(ledger_url(folder / "ledger.db")).export(folder / "kept")
    return (folder / "ledger.db").read_bytes()


def read_ledger(path: Path) -> None:
    guard = rk.Guard("p", ledger=path)
    guard.verify()
    guard.looks("t")


class Kept:
    """A ledger as text files, of which a copy gets an altered entry or file.

    Parameters
    ----------
    folder : path
        The folder in which `guarded` made it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "kept"
        entries = Ledger(ledger_url(self.folder)).read().entries
        self.register, self.freeze, self.opening = entries
        self.text = (self.folder / f"{self.freeze.hash}.json").read_bytes()
        self.body = json.dumps(self.freeze.body, indent=1).encode()
        self.signatures = self.register.body["signatures"]
        self.file = (self.folder / self.signatures).read_bytes()

    @contextmanager
    def copied(self, name: str, content: bytes) -> Iterator[Ledger]:
        """Yield a copy of the ledger in which one file has another content."""
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "copy"
            shutil.copytree(self.folder, copy)
            (copy / name).write_bytes(content)
            yield Ledger(ledger_url(copy))

    def read_entry(self, path: Path) -> Rows:
        with self.copied(f"{self.freeze.hash}.json", path.read_bytes()) as ledger:
            entries = ledger.read().entries
        return [entry.content() for entry in entries if entry.hash == self.freeze.hash]

    def plain_entry(self, data: bytes) -> Rows:
        """Return the content if Python's JSON reader finds nothing else in the text than what was written."""
        try:
            content = json.loads(data.decode("utf-8-sig"), object_pairs_hook=plain.without_doubles)
        except (ValueError, RecursionError) as error:
            raise plain.Wrong("no JSON") from error
        if not plain.is_same(content, self.freeze.content()):
            raise plain.Wrong("another entry")
        return [self.freeze.content()]

    def read_file(self, path: Path) -> Rows:
        with self.copied(self.signatures, path.read_bytes()) as ledger:
            arrays = ledger.load(self.signatures)
        return [(name, array.tobytes()) for name, array in arrays.items()]

    def plain_file(self, data: bytes) -> Rows:
        reader = zlib.decompressobj()
        try:
            content = reader.decompress(data)
        except zlib.error as error:
            raise plain.Wrong("not compressed") from error
        if not reader.eof or reader.unused_data:
            raise plain.Wrong("cut off, or more behind its end")
        if content != zlib.decompress(self.file):
            raise plain.Wrong("another content")
        arrays = Ledger(ledger_url(self.folder)).load(self.signatures)
        return [(name, array.tobytes()) for name, array in arrays.items()]

    def read_plan(self, path: Path) -> Any:
        """Read a plan whose body somebody altered and took the pains to hash."""
        name, content = f"{self.freeze.hash}.json", path.read_bytes()
        with suppress(ValueError, RecursionError):  # of a text that is no JSON, which no hash fits
            entry = replace(self.freeze, body=json.loads(content.decode("utf-8", "replace")))
            name, content = f"{entry.hash}.json", entry.text().encode()
        with self.copied(name, content) as ledger:
            for one in {self.freeze.hash, self.opening.hash} - {Path(name).stem}:
                (Path(ledger.where) / f"{one}.json").unlink()
            return rk.Guard("p", ledger=ledger.where).plan(self.freeze.body["plan"])


def read_pyproject(path: Path) -> Any:
    return discovery._configured(path)


def read_record(path: Path) -> Any:
    from rankeval_mlflow.delivery.spool import PendingUpload, read_payload

    return read_payload(PendingUpload(path.parent))


def record_text() -> bytes:
    from dataclasses import asdict

    from rankeval_mlflow.delivery.payload import FORMAT, Node, Target, plain_node

    node = Node(name="n", label="dev", params={"a": "1"}, metrics={"m": 0.5}, tags={"t": "x"})
    target = asdict(Target(uri="sqlite:///x.db", experiment_name="e"))
    more = {"format": FORMAT, "created_ms": 1, "context": {}, "model_id": None, "model_version": None, "key": None}
    return json.dumps({**more, "target": target, "nodes": {"0": plain_node(node)}}, indent=1).encode()


def parquet_bytes(**columns: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def all_kinds(folder: Path) -> list[Kind]:
    """Return the kinds; the examples of some are made in a folder."""
    ledger = guarded(folder)
    ids = {"qid": [f"q{row // 4}" for row in range(24)], "docid": [f"d{row}" for row in range(24)]}
    kept = Kept(folder)
    features = {"x": [row / 8 for row in range(24)], "flag": [row % 2 == 0 for row in range(24)]}
    csv_plain = partial(plain.table, delimiter=",", value="relevance")
    tsv_plain = partial(plain.table, delimiter="\t", value="score")
    rows_beside = (("rows.query", b"4\n4\n8\n8\n"),)
    return [
        Kind("qrels", QRELS, partial(qrels_rows, form="trec"), plain.qrels),
        Kind("run", RUN, partial(run_rows, form="trec"), plain.run),
        Kind("qrels.ndeval", QRELS, partial(qrels_rows, form="ndeval"), plain.ndeval),
        Kind("qrels.prefs", PREFS, partial(qrels_rows, form="prefs"), plain.prefs),
        Kind("rows.letor", LETOR, letor_rows, plain_letor),
        Kind("rows.txt", ROWS, rows_by_sizes, plain_by_sizes, beside=rows_beside),
        Kind("rows.query", rows_beside[0][1], sizes_rows, plain_sizes, beside=(("rows.txt", ROWS),)),
        Kind("features.json", b'{"features": {"1": "a", "3": "b"}}', lambda path: load_letor(path.with_name("rows")),
             beside=(("rows", LETOR),)),
        Kind("qrels.csv", CSV_QRELS, partial(qrels_rows, form="csv"), csv_plain),
        Kind("run.tsv", CSV_RUN.replace(b",", b"\t"), partial(run_rows, form="tsv"), tsv_plain),
        Kind("run.jsonl", JSONL, partial(run_rows, form="jsonl"), partial(plain.jsonl, value="score")),
        Kind("qrels.jsonl", JSONL_QRELS, partial(qrels_rows, form="jsonl"), partial(plain.jsonl, value="relevance")),
        Kind("run.json", b'{"q1": {"d1": 2.5, "d2": 1}, "q2": ["d3", "d1"], "q3": [["d2", 0.5]]}',
             partial(run_rows, form="json")),
        Kind("run.parquet", parquet_bytes(**ids, score=[float(row) for row in range(24)]),
             partial(run_rows, form="parquet"), partial(plain.parquet, value="score"), strict=False),
        Kind("table.csv", CSV_TABLE, table_rows),
        Kind("quoted.csv", CSV_TABLE.replace(b"true", b'"true"'), table_rows),
        Kind("table.parquet", parquet_bytes(q=ids["qid"], y=[row % 3 for row in range(24)], **features), table_rows,
             strict=False),
        Kind("run.gz", gzip.compress(RUN, mtime=0), partial(run_rows, form="trec"),
             partial(plain.packed, how="gzip", inner=plain.run)),
        Kind("qrels.zst", pa.Codec("zstd").compress(QRELS, asbytes=True), partial(qrels_rows, form="trec"),
             partial(plain.packed, how="zstd", inner=plain.qrels)),
        Kind("zscores", ZSCORES, zscore_rows, plain.zscores),
        Kind("config.yaml", CONFIG, load_config),
        Kind("evaluation", evaluation_file(folder), rk.Evaluation.load),
        Kind("comparison.json", comparison_text(), lambda path: rk.Comparison.from_json(path.read_bytes().decode(
            errors="replace")), named=False),
        Kind("ledger.db", ledger, read_ledger),
        Kind("entry", kept.text, kept.read_entry, kept.plain_entry),
        Kind("signatures", kept.file, kept.read_file, kept.plain_file),
        Kind("plan", kept.body, kept.read_plan, named=False),
        Kind("pyproject.toml", PYPROJECT, read_pyproject),
        Kind("record.json", record_text(), read_record),
        Kind("saved.json", saved_record(folder), read_saved, beside=(("evaluation.parquet", evaluation_file(folder)),),
             named=False),
        Kind("sniffed", RUN, run_rows),
    ]  # fmt: skip
