"""Hostile inputs: valid calls of the public functions, with one argument (or two) replaced by what nobody should give.

`CASES` holds the valid calls with arguments by name, `VALUES` the hostile values, `TEXTS` good files to be broken. A
key names the call, the argument and the value. Each call has its own folder, and a ledger there if it needs one.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import gzip
import inspect
import itertools
import json
import math
import os
import random
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse
from sklearn.linear_model import Ridge

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval import curves, datasets, testing
from tests.oracle.recording import from_bytes, said_of, today

RENAMED = {
    "alpha": "confidence_level",
    "collection_weights": "weights",
    "query_weight": "weights",
    "unpaired": "missing",
    "fresh": "queries",
    "folder": "scores",
    "data": "truth",
}
"""The name of an argument here -> the one that it had before."""

N = 24  # rows of the small world
RNG = np.random.default_rng(11)
Q = np.repeat(["q1", "q2", "q3", "q4", "q5", "q6"], 4)
D = np.array([f"d{i}" for i in range(N)])
Y = RNG.integers(0, 4, N)
S = RNG.integers(0, 9, N) / 4.0
X = np.column_stack([Y + RNG.normal(size=N), RNG.normal(size=N)])
FRAME = pd.DataFrame({"qid": Q, "docid": D, "relevance": Y, "score": S, "part": np.repeat(["a", "b", "c"], 8)})
QRELS = {str(q): dict(zip(g.docid, g.relevance.tolist(), strict=True)) for q, g in FRAME.groupby("qid")}
RUN = {str(q): dict(zip(g.docid, g.score.tolist(), strict=True)) for q, g in FRAME.groupby("qid")}
EVS = {name: rk.evaluate(Y, S * sign, qid=Q, measures=["AP", "nDCG@3"]) for name, sign in (("a", 1), ("b", -1))}
SCORES = {
    name: pd.DataFrame({"AP": RNG.random(8), "RR": RNG.random(8)}, index=[f"q{i}" for i in range(8)]) for name in "abc"
}
EV, COMPARISON = EVS["a"], rk.compare(SCORES, baseline="a", n_resamples=99)
OTHER = datasets.make_ranking(12, 5, 3, rng=3)  # what the guard's calls register


class Thing:
    """An object that is nothing in particular."""

    def __repr__(self) -> str:
        return "Thing()"


class Raising(Thing):
    """An object that cannot be looked at."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise OSError("no array")

    def __len__(self) -> int:
        raise OSError("no length")

    def __iter__(self) -> Iterator[Any]:
        raise OSError("no items")


class Text(str):
    """A text of a class of its own."""

    __slots__ = ()


def _loop() -> list[Any]:
    loop: list[Any] = []
    loop.append(loop)
    return loop


def _deep() -> list[Any]:
    deep: list[Any] = []
    for _ in range(3000):
        deep = [deep]
    return deep


def _file(content: bytes, name: str = "given") -> Path:
    Path(name).write_bytes(content)
    return Path(name)


def _objects(*items: Any) -> np.ndarray:
    return np.array([items[i % len(items)] for i in range(N)], dtype=object)


def _columns(names: list[Any]) -> pd.DataFrame:
    return pd.DataFrame(np.arange(len(names) * 3).reshape(3, -1), columns=names)


VALUES: dict[str, Callable[[], Any]] = {
    **{
        str(value): lambda value=value: value
        for value in (None, math.nan, math.inf, -math.inf, -1, 0, 1, True, 2**70, -(2**63), 1e308, 5e-324, 0.5, 1.5)
    },
    "-0.0": lambda: -0.0,
    "Fraction": lambda: Fraction(1, 3),
    "Decimal": lambda: Decimal("0.1"),
    "Decimal nan": lambda: Decimal("sNaN"),
    "complex": lambda: 1 + 2j,
    "empty text": lambda: "",
    "space": lambda: " ",
    "long text": lambda: "x" * 5000,
    "NUL": lambda: "a\0b",
    "surrogate": lambda: "a\ud800b",
    "line breaks": lambda: "a\r\n\tb\x85",
    "other letters": lambda: "\u202enDCG\uff20\uff11\uff10\u0130",
    "number as text": lambda: "1e3",
    "dots": lambda: "no/../file",
    "text of a class": lambda: Text("AP"),
    "text of NumPy": lambda: np.str_("AP"),
    "bytes": lambda: b"\xff\xfeAP",
    "bytearray": lambda: bytearray(b"q1 0 d1 1"),
    "[]": list,
    "()": tuple,
    "{}": dict,
    "[None]": lambda: [None],
    "[nan]": lambda: [math.nan] * N,
    "ragged list": lambda: [[1], [2, 3], []],
    "list in itself": _loop,
    "deep list": _deep,
    "list of texts": lambda: [f"t{i}" for i in range(N)],
    "list of lists": lambda: [[i] for i in range(N)],
    "list twice the same": lambda: ["AP", "AP"],
    "list of big integers": lambda: [2**70 + i for i in range(N)],
    "mixed list": lambda: [(1, "1", 1.5, None, b"1", True)[i % 6] for i in range(N)],
    "nested dict": lambda: {"a": {"b": {"c": {"d": 1}}}},
    "dict of None": lambda: {"q1": None, "a": None},
    "dict of nan": lambda: {"q1": {"d1": math.nan}, "a": {"d1": math.inf}},
    "dict of mixed keys": lambda: {1: {2: 3}, "1": {None: 3}, (1, 2): {}},
    "set": lambda: {3, 1, 2},
    "frozenset": lambda: frozenset([1]),
    "generator": lambda: (i for i in range(N)),
    "empty generator": lambda: (i for i in ()),
    "range": lambda: range(N),
    "function": lambda: len,
    "lambda": lambda: lambda *_, **__: None,
    "class": lambda: dict,
    "module": lambda: sys,
    "thing": Thing,
    "raising thing": Raising,
    "error": lambda: ValueError("x"),
    "ellipsis": lambda: ...,
    "slice": lambda: slice(0, 3),
    "object array": lambda: _objects(1, "a", None),
    "object array of lists": lambda: _objects([1], [1, 2]),
    "object array of numbers": lambda: _objects(1, 2.5, Fraction(1, 2)),
    "masked array": lambda: np.ma.masked_array(np.arange(N), mask=np.arange(N) % 3 == 0),
    "structured array": lambda: np.zeros(N, dtype=[("a", "i4"), ("b", "U3")]),
    "0-d array": lambda: np.array(3.0),
    "3-d array": lambda: np.zeros((2, 3, 4)),
    "column": lambda: np.arange(N).reshape(N, 1),
    "empty array": lambda: np.array([]),
    "short array": lambda: np.arange(N - 1),
    "array of dates": lambda: np.arange(N).astype("M8[D]"),
    "array of NaT": lambda: np.full(N, np.datetime64("NaT")),
    "array of durations": lambda: np.arange(N).astype("m8[s]"),
    "array of texts": lambda: np.array([f"t{i % 5}" for i in range(N)]),
    "array of bytes": lambda: np.array([b"\xff", b"a"] * (N // 2)),
    "array of mixed types": lambda: _objects(1, "1", 2.5, b"1", True),
    "array of nan": lambda: np.full(N, np.nan),
    "array of inf": lambda: np.where(np.arange(N) % 2, np.inf, -np.inf),
    "array of bools": lambda: np.arange(N) % 2 == 0,
    "array of complex": lambda: np.arange(N) * 1j,
    "float16": lambda: (np.arange(N) / 7).astype(np.float16),
    "longdouble": lambda: np.arange(N).astype(np.longdouble) / 7 + np.longdouble(2) ** -60,
    "uint64 beyond 2**63": lambda: np.arange(N, dtype=np.uint64) + np.uint64(2**63),
    "negative array": lambda: -np.arange(N),
    "huge floats": lambda: np.full(N, 1e308),
    "other byte order": lambda: np.arange(N, dtype=">f8"),
    "sparse": lambda: scipy.sparse.csr_matrix(np.eye(N)),
    "empty frame": pd.DataFrame,
    "frame without rows": lambda: FRAME.iloc[:0],
    "frame with repeated columns": lambda: _columns(["qid", "docid", "relevance", "score", "score", "qid"]),
    "frame with column levels": lambda: _columns([("a", 1), ("a", 2), ("b", 1)]),
    "frame with row levels": lambda: FRAME.set_index(["qid", "docid"]),
    "frame with other columns": lambda: _columns([None, math.nan, 3, (1, 2)]),
    "frame with NA": lambda: FRAME.convert_dtypes().assign(docid=[*D[:-2], pd.NA, None]),
    "series with another index": lambda: pd.Series(np.arange(N), index=[f"x{i}" for i in range(N)][::-1]),
    "series with one index": lambda: pd.Series(np.arange(N), index=[0] * N),
    "categorical": lambda: pd.Series(pd.Categorical(Q, categories=["q9", *sorted(set(Q.tolist()))[1:]])),
    "nullable series": lambda: pd.Series([1, None] * (N // 2), dtype="Int64"),
    "dates with zone": lambda: pd.Series(pd.date_range("2024-03-31", periods=N, freq="h", tz="Europe/Berlin")),
    "NA": lambda: pd.NA,
    "NaT": lambda: pd.NaT,
    "interval index": lambda: pd.interval_range(0, N),
    "polars frame": lambda: pl.DataFrame({"qid": [1, 2], "docid": ["a", None], "score": [0.5, None]}),
    "polars series": lambda: pl.Series("s", [*range(N - 1), None]),
    "lazy polars": lambda: pl.LazyFrame({"qid": [1]}),
    "arrow table": lambda: pa.table({"qid": [1, 1], "docid": [[1], [2]], "relevance": [None, 1]}),
    "arrow with nulls": lambda: pa.array([*range(N - 1), None]),
    "arrow dictionary": lambda: pa.array([f"t{i % 3}" for i in range(N)]).dictionary_encode(),
    "arrow scalar": lambda: pa.scalar(0.5),
    "path of nothing": lambda: Path("no/such/file"),
    "folder": Path,
    "binary file": lambda: _file(bytes(range(256)) * 4),
    "empty file": lambda: _file(b""),
    "text of the path": lambda: str(_file(b"q1 0 d1 1\nq1 0 d1 x\n")),
    "date": lambda: dt.date(2024, 2, 29),
    "datetime": lambda: dt.datetime(2024, 2, 29, tzinfo=dt.UTC),
    "timestamp": lambda: pd.Timestamp("2024-02-29 12:00"),
    "duration": lambda: dt.timedelta(days=-1),
    "datetime64": lambda: np.datetime64("2024-02-29"),
    "float32 nan": lambda: np.float32("nan"),
    "bool of NumPy": lambda: np.False_,
    "evaluation": lambda: EV,
    "judgments": lambda: rk.Qrels.from_dict(QRELS),
    "measure": lambda: rk.measure("P@3"),
    "convention": lambda: rk.Convention("x"),
    "estimator": Ridge,
    "data": lambda: OTHER,
}

CASES: dict[str, tuple[Callable[[], Callable[..., Any]], dict[str, Any], int]] = {}
"""Name -> what makes the function (in the folder of the call), the valid arguments, and the step through `VALUES`."""


def case(name: str, make: Callable[[], Callable[..., Any]], every: int = 2, /, **arguments: Any) -> None:
    """Add a valid call; an argument that is `Made` is made in the folder of the call."""
    CASES[name] = make, arguments, every


class Made:
    """An argument that each call makes for itself."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


def renamed(function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """Call a function; an argument that its signature has not yet is given under the name before."""
    try:
        known = inspect.signature(function).parameters
    except ValueError:
        known = {}
    given: dict[str, Any] = {}
    for name, value in arguments.items():
        old = RENAMED.get(name, "")
        if name in known or old not in known:
            given[name] = value
        elif name == "fresh":
            given[old] = {True: "fresh", False: None}[value] if isinstance(value, bool) else value
        else:
            given[old] = 1 - value if name == "alpha" and isinstance(value, float) else value
    return function(**given)


def _evaluate_dataset(**arguments: Any) -> Any:
    return renamed(getattr(rk, "evaluate_dataset", rk.evaluate), arguments)


def _parquet(frame: pd.DataFrame) -> bytes:
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(pa.Table.from_pandas(frame, preserve_index=False), sink)
    return sink.getvalue().to_pybytes()


def _texts() -> dict[str, bytes]:
    """Return good files by name; the suffix says the format."""
    EV.save(Path("ev.parquet"))
    rk.Run.from_dict(RUN, name="a").write("run.trec")
    letor = "".join(f"{y} qid:{q[1:]} 1:{a:.3f} 2:{b:.3f} # {d}\n" for y, q, d, (a, b) in zip(Y, Q, D, X, strict=True))
    return {
        "qrels.trec": "".join(f"{q} 0 {d} {y}\n" for q, d, y in zip(Q, D, Y, strict=True)).encode(),
        "run.trec": Path("run.trec").read_bytes(),
        "qrels.csv": FRAME[["qid", "docid", "relevance"]].to_csv(index=False).encode(),
        "run.csv": FRAME[["qid", "docid", "score"]].to_csv(index=False).encode(),
        "qrels.tsv": FRAME[["qid", "docid", "relevance"]].to_csv(index=False, sep="\t").encode(),
        "qrels.jsonl": FRAME[["qid", "docid", "relevance"]].to_json(orient="records", lines=True).encode(),
        "run.jsonl": FRAME[["qid", "docid", "score"]].to_json(orient="records", lines=True).encode(),
        "table.csv": FRAME.assign(a=X[:, 0], b=X[:, 1]).to_csv(index=False).encode(),
        "table.parquet": _parquet(FRAME.assign(a=X[:, 0])),
        "letor.txt": letor.encode(),
        "letor.txt.gz": gzip.compress(letor.encode(), mtime=0),
        "ev.parquet": Path("ev.parquet").read_bytes(),
        "comparison.json": COMPARISON.to_json().encode(),
        "config.yaml": YAML.encode(),
    }


YAML = """name: try
data: {loader: csv, path: no/such.csv, qid: qid, label: relevance, features: [a, b]}
rankers:
  ridge: {estimator: sklearn.linear_model.Ridge, grid: {alpha: [1.0, 2.0]}}
measures: [nDCG@10, AP]
cv: {n_splits: 3}
guard: off
tracking: off
"""
YAMLS = (
    "a: &a [x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b]\nname: [*c, *c]",
    "".join(f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in zip("xabcdef", "abcdefg", strict=True)),
    "x: &x [1]\n"
    + "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in ("xa", "ab", "bc", "cd", "de", "ef")),
    "name: !!python/object/apply:os.getcwd []",
    "name: !!python/name:os.getcwd",
    "name: !!python/object/new:dict [[1]]",
    "name: !unknown x",
    "name: !!binary //79",
    "name: !!set {a}",
    "name: !!timestamp x",
    "name: !!int x",
    "name: 2001-99-99",
    "name: 2001-12-14t21:59:43.10-05:00",
    "name: &a [*a]",
    "name: *a",
    "<<: [1]",
    "<<: {name: x}",
    "name: " + "[" * 1200,
    "name: " + "9" * 6000,
    "name: 190:20:30",
    "name: 0o17",
    "name: .nan",
    "? [a, b]\n: c",
    "? {a: b}\n: c",
    "1: 2\nnull: 3",
    "- a\n- b",
    "a\n---\nb",
    "%YAML 9.9\n---\na",
    "name: 'x",
    "\tname: x",
    "name: x\nname: y",
    "name: \x00",
    "name: \ud7ff\ufeff",
    "",
    "null",
    "...",
    "name: >\n x\n\n y",
    "name: =",
    "rankers: {on: {estimator: x}}",
    "rankers: {ridge: {estimator: os.system, params: {command: 'true'}}}",
    "rankers: {ridge: {estimator: builtins.eval}}",
    "data: {loader: 'os:getcwd'}",
    "data: {loader: 'no.module:f'}",
    "data: {loader: ':'}",
)
CONFIG: dict[str, Any] = {
    "name": "try",
    "data": {
        "loader": "csv",
        "path": "no/such.csv",
        "qid": "qid",
        "label": "relevance",
        "docid": None,
        "features": ["a"],
        "arguments": {},
        "limits": {"line": 10**6},
    },
    "split": {"test_size": 0.3, "salt": "", "column": None, "train": None, "validation": None, "test": None},
    "rankers": {"ridge": {"estimator": "sklearn.linear_model.Ridge", "params": {}, "grid": {"alpha": [1.0]}}},
    "measures": ["nDCG@10"],
    "primary": None,
    "convention": "rankeval",
    "cv": {"n_splits": 3, "seed": 0},
    "guard": {"project": None, "ledger": "ledger", "baseline": None, "supersedes": None},
    "comparison": {"test": "randomization", "correction": "max_t", "claim": "difference", "margin": 0.0},
    "tracking": None,
    "output": {"directory": "out"},
    "seed": 0,
    "n_jobs": 1,
}


def _experiment(**arguments: Any) -> Any:
    """Run the experiment of `CONFIG` with values by dotted key; the file of its data does not exist."""
    config = json.loads(json.dumps(CONFIG))
    for key, value in arguments.items():
        *above, last = key.split(".")
        place = config
        for step in above:
            place = place[step]
        place[last] = value
    return rk.run_experiment(config)


def _keys(config: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in config.items():
        yield above + key, value
        if isinstance(value, dict):
            yield from _keys(value, f"{above}{key}.")


def _folds(name: str) -> str:
    Path(name).mkdir()
    for part in ("train", "vali"):
        _file(TEXTS["letor.txt"].replace(b"qid:", b"qid:9" if part == "vali" else b"qid:"), f"{name}/{part}.txt")
    return "."


def _guard() -> rk.Guard:
    return rk.Guard("shop", ledger="ledger", who="ann")


def _test(guard: rk.Guard | None = None) -> Any:
    return (guard or _guard()).register("test", OTHER)


def _frozen() -> Any:
    guard = _guard()
    systems = {"a": OTHER.X[:, 0], "b": OTHER.X[:, 1]}
    return guard.freeze(_test(guard), systems=systems, baseline="a", n_resamples=99)


class Trial:
    """A trial of Optuna that always takes the first or the lowest value."""

    def suggest_categorical(self, name: str, choices: Any) -> Any:
        return choices[0]

    def suggest_float(self, name: str, low: float, high: float, **_: Any) -> float:
        return low

    def report(self, value: float, step: int) -> None:
        pass

    def should_prune(self) -> bool:
        return False

    def set_user_attr(self, key: str, value: Any) -> None:
        pass


def _scorer(**arguments: Any) -> Any:
    return today(rk.make_scorer(["AP", "RR"]), MODEL, **arguments)


def _genai(**arguments: Any) -> Any:
    found = rkm.genai_scorer(["AP", "RR"])(**arguments)
    return [[one.name, one.value, one.rationale, one.error and _plain(str(one.error))] for one in np.ravel(found)]


MODEL = Ridge().fit(X, Y)
RANKER = rk.QueryRanker(Ridge()).fit(X, Y, qid=Q)
CV = rk.cross_validate(Ridge(), X, Y, qid=Q, cv=2, measures=["AP"])
CURVE = rk.learning_curve(Ridge(), X, Y, qid=Q, cv=2, measures=["AP"], sizes=[0.5, 1.0])
AGREEMENT = rk.order_agreement(SCORES, measures=["AP", "RR"])
ANOVA = rk.anova(SCORES, measure="AP")
RULES = {"ties": None, "missing": None, "no_relevant": None, "judgments": None, "convention": "rankeval"}
ROWS = {"qid": Q, "group": None, "docid": D, "groups": None, "sample_weight": None, "eval_set": None, "eval_qid": None}
HOW = {"measures": None, "correction": "holm", "family": "all", "test": "t", "n_resamples": 99, "rng": 0}
TABLES = {"layout": "comparisons", "against": None, "spread": None, "gain": False, "digits": 3}


def _cases() -> None:
    """Fill `CASES`."""
    arrays = {"truth": Y, "ranking": S}
    case(
        "evaluate",
        lambda: rk.evaluate,
        **arrays,
        qid=Q,
        docid=D,
        measures=["AP", "nDCG@3"],
        query_weight=None,
        name="a",
    )
    case("evaluate rules", lambda: rk.evaluate, **arrays, qid=Q, **RULES)
    case("evaluate groups", lambda: rk.evaluate, **arrays, group=[4] * 6, measures="RR", query_weight=np.ones(N))
    case(
        "evaluate dicts",
        lambda: rk.evaluate,
        truth=QRELS,
        ranking=RUN,
        measures=["AP"],
        query_weight=dict.fromkeys(QRELS, 1),
        **RULES,
    )
    columns = {"qid": "qid", "relevance": "relevance", "score": "score", "docid": "docid"}
    path = Made(lambda: str(_file(PARQUET, "rows.parquet")))
    streamed = {
        "memory": "512MB",
        "n_jobs": 1,
        "folder": None,
        "progress": None,
        "measures": "AP",
        "query_weight": None,
    }
    case("evaluate_dataset", lambda: _evaluate_dataset, 3, data=path, **columns, **streamed)
    case(
        "contingency_table", lambda: rk.contingency_table, truth=QRELS, ranking=RUN, rel=1, cutoff=3, collection_size=99
    )
    case("contingency_table rows", lambda: rk.contingency_table, 3, **arrays, qid=Q, group=None, convention="rankeval")
    case("contingency macro", lambda: rk.contingency_table(QRELS, RUN).macro, 3, beta=1.0)
    case("contingency micro", lambda: rk.contingency_table(QRELS, RUN).micro, 3, beta=1.0)
    case("rank_biased_overlap", lambda: rk.rank_biased_overlap, run=RUN, other=QRELS, p=0.9)
    explained = {"measure": "AP", "values": (0.5, 0.6), "docid": None, "tolerance": 0.01, "convention": "rankeval"}
    case("explain_difference", lambda: rk.explain_difference, 3, **arrays, qid=Q, group=None, **explained)
    case("precision_recall", lambda: curves.precision_recall, **arrays, qid=Q, group=None, rel=1, convention="rankeval")
    case("roc", lambda: curves.roc, **arrays, qid=Q, group=None, rel=1, collection_size=None, convention="rankeval")
    for name in ("ties", "judgments", "negative", "missing", "no_relevant", "unjudged", "duplicates", "score_dtype"):
        case(f"Convention {name}", lambda: rk.Convention, **{name: getattr(rk.Convention("x"), name)})
    case("Convention", lambda: rk.Convention, name="x", ties="docid", depth=10, bind={"ERR": {"max": 4}})
    case("Convention.from_card", lambda: rk.Convention.from_card, card=rk.Convention("x").card())
    case("Convention.with_rules", lambda: rk.Convention("x").with_rules, ties="docid", depth=5, negative="zero")
    case("RankingData", lambda: rk.RankingData, X=X, y=Y, qid=Q, docid=D, feature_names=("a", "b"), name="x")
    case("RankingData.take", lambda: OTHER.take, rows=[0, 1, 2], name="x")
    case("Limits", lambda: rk.Limits, expansion=100, stream=10**6, line=1000, feature=1000)
    case("Qrels", lambda: rk.Qrels, qid=Q, docid=D, relevance=Y, aspect=Q, subgroup=Q)
    case("Run", lambda: rk.Run, qid=Q, docid=D, score=S, name="x")
    names = {"qid": "qid", "docid": "docid"}
    case("Qrels.from_frame", lambda: rk.Qrels.from_frame, df=FRAME, **names, relevance="relevance", aspect=None)
    case("Run.from_frame", lambda: rk.Run.from_frame, df=FRAME, **names, score="score", name="x")
    case("Qrels.from_dict", lambda: rk.Qrels.from_dict, judgments=QRELS)
    case(
        "Qrels.from_dict inside", lambda: lambda a, b: rk.Qrels.from_dict({"q1": a, "q2": {"d1": b}}), a={"d1": 1}, b=1
    )
    case("Run.from_dict", lambda: rk.Run.from_dict, scores=RUN, name="x")
    case("Run.from_dict inside", lambda: lambda a, b: rk.Run.from_dict({"q1": a, "q2": {"d1": b}}), a={"d1": 1}, b=1)
    for kind in ("Qrels", "Run"):
        made = getattr(rk, kind)
        good = FRAME[["qid", "docid", "relevance" if kind == "Qrels" else "score"]]
        records = good.rename(columns={"qid": "query_id", "docid": "doc_id"}).to_dict("records")
        case(f"{kind}.from_records", lambda made=made: made.from_records, records=records)
        case(f"{kind}.from_any", lambda made=made: made.from_any, given=good)
        path = Made(lambda good=good: str(_file(good.to_csv(index=False).encode(), "rows.csv")))
        case(f"{kind}.read", lambda made=made: made.read, path=path, format="csv", limits=rk.Limits())
        case(f"{kind}.write", lambda made=made, good=good: made.from_frame(good).write, path="x.csv", format="csv")
    case("measure", lambda: rk.measure, spec="nDCG@10", convention=None)
    case("measure key", lambda: rk.measure_from_key, key="nDCG_at_10")
    case("list_measures", lambda: rk.list_measures, 3, name="AP")
    case("list_tests", lambda: rk.list_tests, 3, name="t")
    case("Evaluation.ci", lambda: EV.ci, alpha=0.05)
    case("Evaluation.slices", lambda: EV.slices, by={f"q{i}": "ab"[i % 2] for i in range(1, 7)})
    case("Evaluation.subset", lambda: EV.subset, queries=["q1", "q2"])
    case("Evaluation.worst", lambda: EV.worst, n=3, measure="AP")
    case("Evaluation.save", lambda: EV.save, path="x.parquet")
    case("Evaluation.load", lambda: rk.Evaluation.load, path=Made(lambda: (EV.save("x.parquet"), "x.parquet")[1]))
    case("Evaluation.from_bytes", lambda: from_bytes, content=said_of(EV, "to_bytes"))
    wide = {"collection_weights": "collections", "unpaired": "error", "unjudged": None, "by": None}
    case("compare", lambda: rk.compare, systems=SCORES, baseline="a", alpha=0.05, **HOW, **wide)
    claims = {"alternative": "two-sided", "claim": "not_worse", "margin": 0.1, "unseen": 1}
    case("compare claims", lambda: rk.compare, systems=EVS, baseline="a", **claims)
    case("compare inside", lambda: lambda a, b: rk.compare({"a": a, "b": b}), a=SCORES["a"], b=SCORES["b"])
    case("Comparison.bayes", lambda: COMPARISON.bayes, 3, rope=0.01, method="t", n_samples=100, rng=0)
    case("Comparison.from_json", lambda: rk.Comparison.from_json, text=COMPARISON.to_json())
    case("Comparison.to_markdown", lambda: COMPARISON.to_markdown, **TABLES)
    case("Comparison.to_latex", lambda: COMPARISON.to_latex, 3, **TABLES, label="")
    case("Comparison.to_html", lambda: COMPARISON.to_html, 3, **TABLES)
    case("Comparison.plot", lambda: COMPARISON.plot, 6, kind=None, system="b", baseline="a", measure="AP")
    case(
        "order_agreement",
        lambda: rk.order_agreement,
        systems=SCORES,
        measures=["AP", "RR"],
        truth="AP",
        unpaired="error",
    )
    case("OrderAgreement.swaps", lambda: AGREEMENT.swaps, a="AP", b="RR", measure=None)
    case("OrderAgreement.to_latex", lambda: AGREEMENT.to_latex, 3, label="x")
    ranked = {key: HOW[key] for key in ("correction", "n_resamples", "rng")} | {"test": "randomization"}
    ranked |= {"correction": "max_t", "unpaired": "error", "alpha": 0.05}
    case("rank_intervals", lambda: rk.rank_intervals, 3, systems=SCORES, measure="AP", **ranked)
    anova = {"queries": "random", "replicates": "crossed", "unpaired": "error"}
    case("anova", lambda: rk.anova, systems=SCORES, measure="AP", **anova)
    case("Anova.to_latex", lambda: ANOVA.to_latex, 3, label="x")
    sizes = {"alternative": "two-sided", "claim": "difference", "margin": 0.0, "unseen": 1, "greatest_loss": 1.0}
    case("topics_needed", lambda: rk.topics_needed, difference=0.05, sd=0.2, alpha=0.05, power=0.8, **sizes)
    checked = {"alpha": 0.05, "test": "t", "unpaired": "error", "n_resamples": 99, "rng": 0, "measure": "AP"}
    pair = {"candidate": SCORES["a"], "baseline": SCORES["b"]}
    case("assert_no_regression", lambda: testing.assert_no_regression, **pair, margin=0.3, **checked)
    case("assert_not_worse", lambda: testing.assert_not_worse, **pair, margin=0.9, unseen=1, **checked)
    case("assert_evaluations_equal", lambda: testing.assert_evaluations_equal, candidate=EV, baseline=EV, atol=1e-9)
    _learning_cases()
    _guard_cases()
    for key, value in _keys(CONFIG):
        case(f"run_experiment {key}", lambda: _experiment, 3, **{key: value})
    case("run_experiment", lambda: rk.run_experiment, config=Made(lambda: str(_file(YAML.encode(), "try.yaml"))))
    judged = {"name": None, "retrieved": "outputs", "expected": "relevance", "docid": None, "qid": None}
    case("genai_scorer", lambda: rkm.genai_scorer, 3, measures=["AP"], **judged, convention="rankeval")
    answered = {"inputs": {"qid": "q1"}, "outputs": ["d1", "d2"], "expectations": {"relevance": {"d1": 1}}}
    case("genai_scorer called", lambda: _genai, **answered)
    off = lambda **k: rkm.autolog(disable=True, **k)
    case("autolog off", lambda: off, 3, log_models=True, log_folds=True, max_tuning_runs=None, silent=False)


def _learning_cases() -> None:
    made = {"n_queries": 4, "n_docs": 3, "n_features": 2, "noise": 0.5, "max_relevance": 4, "tie_share": 0.1, "rng": 0}
    case("make_ranking", lambda: datasets.make_ranking, **made, shuffle=True)
    case("load_digits", lambda: datasets.load_digits_retrieval, 4, n_queries=3, n_candidates=4, rng=0)
    letor = Made(lambda: str(_file(TEXTS["letor.txt"], "train.txt")))
    case("load_letor", lambda: datasets.load_letor, 3, path=letor, name="x", sparse=False, limits=rk.Limits())
    folder = Made(lambda: (_file(TEXTS["letor.txt"], "train.txt"), ".")[1])
    case("load_letor_parts", lambda: datasets.load_letor_parts, 3, path=folder, sparse=None)
    table = Made(lambda: str(_file(TEXTS["table.csv"], "rows.csv")))
    columns = {"qid": "qid", "label": "relevance", "docid": "docid", "features": ["a", "b"], "format": "csv"}
    case("load_table", lambda: datasets.load_table, 3, path=table, **columns, name="x", limits=rk.Limits())
    parts = {"part": "part", "train": "a", "validation": "b", "test": "c", "others": "drop"}
    case("load_table_parts", lambda: datasets.load_table_parts, 3, path=table, **columns, **parts)
    case(
        "make_scorer",
        lambda: rk.make_scorer,
        measures=["AP"],
        **RULES,
        qid=None,
        y=None,
        response_method=None,
        name="x",
    )
    case("scorer", lambda: _scorer, X=X, y=Y, qid=Q, group=None, docid=None, sample_weight=None)
    case("lightgbm_feval", lambda: rk.lightgbm_feval, measures="AP", convention="rankeval")
    sized = {"score": Y, "dataset": S, "weight": None, "group": [4] * 6}
    case("lightgbm_feval called", lambda: rk.lightgbm_feval("AP"), 3, **sized)
    case("xgboost_metric", lambda: rk.xgboost_metric, measures="AP", convention="rankeval")
    case("QuerySplit", lambda: rk.QuerySplit, splitter=rk.QueryKFold(2), order="id", stratum=None, key=None)
    case("QueryKFold", lambda: _split(rk.QueryKFold), 3, n_splits=2, shuffle=True, random_state=0)
    drawn = {"n_splits": 2, "test_size": 0.3, "train_size": None, "random_state": 0}
    case("QueryShuffleSplit", lambda: _split(rk.QueryShuffleSplit), 3, **drawn)
    timed = {"n_splits": 2, "times": np.arange(N), "gap": 0, "max_train_size": None, "test_size": None}
    case("QueryTimeSplit", lambda: _split(rk.QueryTimeSplit), 3, **timed)
    case("RepeatedQueryKFold", lambda: _split(rk.RepeatedQueryKFold), 3, n_splits=2, n_repeats=2, random_state=0)
    strata = {"n_splits": 2, "stratum": None, "key": None, "shuffle": True, "random_state": 0}
    case("StratifiedQueryKFold", lambda: _split(rk.StratifiedQueryKFold), 3, **strata)
    case("PredefinedFolds", lambda: rk.PredefinedFolds, folds=[(["q1"], ["q2"])])
    case("PredefinedFolds inside", lambda: lambda a, b: rk.PredefinedFolds([(a, b)]), a=["q1"], b=["q2"])
    fold = Made(lambda: _folds("Fold1"))
    case("PredefinedFolds.read", lambda: rk.PredefinedFolds.read, 3, path=fold, train=["train"], test=["vali"])
    for name in ("split", "get_n_splits"):
        rows = {"X": X, "y": Y, "groups": None, "qid": Q, "group": None}
        case(f"QueryKFold.{name}", lambda name=name: getattr(rk.QueryKFold(2), name), **rows)
    case("set_split_request", lambda: rk.QueryKFold(2).set_split_request, 3, qid="qid", groups=True)
    held = {"test_size": 0.4, "salt": "", "times": None, "test_from": None, "guard": None, "test_name": None}
    case("dev_test_split", lambda: rk.dev_test_split, X=X, y=Y, qid=Q, group=None, docid=D, **held)
    fitted = {"validation_fraction": None, "early_stopping_rounds": None, "eval_measure": None, "single_query": False}
    ranker = lambda **k: rk.QueryRanker(**k).fit(X, Y, qid=Q).predict(X)
    case("QueryRanker", lambda: ranker, 3, estimator=Ridge(), eval_convention="rankeval", **fitted)
    fit = {key: ROWS[key] for key in ("qid", "group", "groups", "sample_weight", "eval_set", "eval_qid")}
    case("QueryRanker.fit", lambda: lambda **k: today(rk.QueryRanker(Ridge()).fit, **k).predict(X), X=X, y=Y, **fit)
    case("QueryRanker.predict", lambda: RANKER.predict, X=X)
    case("QueryRanker.score", lambda: partial(today, RANKER.score), 3, X=X, y=Y, qid=Q, group=None, sample_weight=None)
    learnt = {"estimator": Ridge(), "X": X, "y": Y, **ROWS, "measures": ["AP"], "cv": 2, **RULES, "n_jobs": None}
    case(
        "cross_validate",
        lambda: partial(today, rk.cross_validate),
        3,
        **learnt,
        name="x",
        progress=None,
        return_estimators=False,
    )
    case("CrossValidation.compare", lambda: CV.compare, other=CV, question="models")
    one = {key: value for key, value in learnt.items() if key not in {"measures", "n_jobs"}} | {"measure": "AP"}
    objective = lambda **k: today(rk.optuna_objective, **k)(Trial())
    case("optuna_objective", lambda: objective, 3, space={"alpha": [0.1, 1.0]}, **one)
    case(
        "learning_curve", lambda: partial(today, rk.learning_curve), 3, **learnt, sizes=[0.5, 1.0], rng=0, progress=None
    )
    case("LearningCurve.plot", lambda: CURVE.plot, 4, measure="AP")


def _guard_cases() -> None:
    X, y, q = OTHER.X, OTHER.y, OTHER.qid
    case("Guard", lambda: rk.Guard, project="shop", ledger="ledger", who="ann")
    given = {"X": X, "y": y, "qid": q, "group": None, "docid": None, "qrels": None, "queries": None}
    more = {"supersedes": None, "effect": None, "sd": 0.2}
    case("Guard.register", lambda: _guard().register, 3, name="test", **given, **more)
    case("Guard.status", lambda: _guard().status, 3, **given)
    systems = {"a": X[:, 0], "b": X[:, 1]}
    plan = {"folds": None, "baseline": "a", "measure": "AP", "secondary": (), "convention": "rankeval", "alpha": 0.05}
    plan |= {"n_resamples": 99, "rng": 0, "claim": "difference", "margin": 0.0, "fresh": False}
    case("Guard.freeze", lambda: _guard().freeze, 3, test=Made(_test), systems=systems, **plan)
    inside = lambda **k: _guard().freeze(_test(), systems=k, baseline="a")
    case("Guard.freeze inside", lambda: inside, 3, a=X[:, 0], b=X[:, 1])
    case("Guard.open", lambda: _guard().open, 3, plan=Made(_frozen), test=Made(_test))
    case("Guard.plan", lambda: _guard().plan, 3, plan_id=Made(lambda: _frozen().id))
    case("Guard.looks", lambda: _guard().looks, 3, test=Made(_test), projects="own")
    case("Guard.retire", lambda: _guard().retire, 3, test=Made(_test), reason="old")
    case("Guard.exempt", lambda: _guard().exempt, 3, test=Made(_test), queries=[1, 2], reason="old")
    case("Guard.verify", lambda: _guard().verify, 3, head=None, other=None)
    case("Guard.problems", lambda: _guard().problems, 3, head=None, other=None)
    exported = Made(lambda: (_test(), _guard().export("out"), "out")[2])
    case("Guard.merge", lambda: _guard().merge, 3, other=exported)
    case("Guard.export", lambda: (_test(), _guard().export)[1], 3, path="out")
    gate = {"budget": 5, "measure": "AP", "claim": "better", "margin": 0.0, "alpha": 0.05, "sd": None, "rng": 0}
    case("Guard.gate", lambda: _guard().gate, 3, test=Made(_test), baseline=X[:, 0], **gate, name="g")
    decide = lambda **k: _guard().gate(_test(), baseline=X[:, 0]).decide(**k)
    case("Gate.decide", lambda: decide, 3, name="x", system=X[:, 1], baseline=None)


def _split(kind: Any) -> Callable[..., Any]:
    return lambda **options: list(kind(**options).split(X, Y, qid=Q))


def told(value: Any, depth: int = 0) -> Any:
    """Return the facts of an answer as plain data; of what has no facts, the name of its class."""
    name = type(value).__name__
    if isinstance(value, (rk.Qrels, rk.Run)):
        return told(value.to_frame())
    if isinstance(value, rk.Evaluation):
        facts = (told(value.name), value.n_queries, dict(value.excluded), dict(value.undefined))
        return [*facts, told(value.per_query), told(value.aggregate())]
    if isinstance(value, (rk.RankingData, rk.Anova, rk.OrderAgreement, rk.Explanation, rk.Comparison, testing.Check)):
        shown = (
            "X",
            "y",
            "qid",
            "docid",
            "feature_names",
            "name",
            "table",
            "components",
            "epsilon",
            "sentence",
            "means",
        )
        return [told(getattr(value, one)) for one in shown if hasattr(value, one)]
    if isinstance(value, (rk.LearningCurve, rk.ContingencyTable, rk.CrossValidation)) or name == "Overlap":
        facts = (getattr(value, one, None) for one in ("table", "per_query", "evaluation", "predictions"))
        return [told(one) for one in facts]
    if isinstance(value, (curves.PrecisionRecall, curves.ROC)):
        return [told(value.points), told(value.undefined)]
    if name == "DevTestSplit":
        return [told(value.dev), told(value.test)]
    if isinstance(value, rk.Convention):
        return value.card()
    if isinstance(value, rk.Measure):
        return [str(value), value.key]
    if name == "Figure":
        value.clear()
        return "Figure"
    if isinstance(value, pd.DataFrame):
        timed = value.columns.isin(["fit_seconds", "score_seconds", "time", "when", "entry", "plan"])
        value = value.loc[:, ~timed]
        return [
            "frame",
            [*map(repr, value.columns)],
            told(value.index),
            [told(value.iloc[:, i]) for i in range(value.shape[1])],
        ]
    if isinstance(value, (pd.Series, pd.Index)):
        return told(value.to_numpy())
    if scipy.sparse.issparse(value):
        return told(value.toarray())
    if isinstance(value, (list, tuple)) and depth < 9:
        return [told(one, depth + 1) for one in value]
    if isinstance(value, Mapping) and depth < 9:
        return {key if isinstance(key, (str, int)) else repr(key): told(one, depth + 1) for key, one in value.items()}
    if inspect.isgenerator(value):
        return told(list(value))
    if value is None or isinstance(value, (str, bytes, int, float, np.ndarray, np.generic)):
        return value
    return name


LEFT_OUT = {(kind, value) for kind in ("Qrels", "Run") for value in ("list in itself", "deep list")}
LEFT_OUT |= {("rng", "list in itself"), ("eval_set", "list in itself"), ("n_jobs", "-1"), ("n_jobs", "0-d array")}
LEFT_OUT |= {("rng", "None"), ("random_state", "None")}
LEFT_OUT |= {("salt", value) for value in ("generator", "empty generator", "lambda", "lazy polars")}
"""Calls, or arguments, and values that compute for long, end the process, or give another answer each time."""

LOCAL = re.compile(
    r"\.\d+\.\d{9,}\.part|0x[0-9a-fA-F]{6,}|\b\d{4}-\d\d-\d\d(T[\d:.]+)?|\b(?=\d*[a-f])[0-9a-f]{8,64}\b|(/[\w.+-]+)+/site-packages"
    r"|\([if]\d\d\)\s+This error occurred[\s\S]*"
)


def _plain(words: str) -> str:
    """Return words without what differs from run to run: folders, addresses, dates, hashes."""
    return LOCAL.sub("...", words.replace(str(Path.cwd()), "<here>"))


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Without other ledgers and figures, and with words that are the same in each process."""
    before = os.environ.get("RANKEVAL_LEDGER")
    os.environ["RANKEVAL_LEDGER"] = "off"
    try:
        yield
    except MemoryError as error:
        raise RuntimeError(f"MemoryError: {error}") from error
    except BaseException as error:
        if isinstance(error, UnicodeEncodeError):  # its place depends on the folder
            error.object, error.start, error.end = error.object[error.start : error.end], 0, error.end - error.start
        for name in ("filename", "filename2"):
            if isinstance(getattr(error, name, None), str):
                setattr(error, name, _plain(getattr(error, name)))
        error.args = tuple(_plain(one) if isinstance(one, str) else one for one in error.args)
        raise
    finally:
        os.environ.pop("RANKEVAL_LEDGER")
        if before is not None:
            os.environ["RANKEVAL_LEDGER"] = before


def _call(name: str, replaced: Mapping[str, str]) -> Callable[[], Any]:
    def called() -> Any:
        with _alone():
            make, arguments, _ = CASES[name]
            function = make()
            given = {key: one.make() if isinstance(one, Made) else one for key, one in arguments.items()}
            given |= {key: VALUES[value]() for key, value in replaced.items()}
            return told(renamed(function, given))

    return called


def _left_out(name: str, argument: str, value: str) -> bool:
    return not LEFT_OUT.isdisjoint({(name, value), (argument, value), (f"{name}/{argument}", value)})


def _hostile() -> Iterator[tuple[str, Callable[[], Any]]]:
    for name, (_, arguments, every) in CASES.items():
        yield f"{name}/as it should be", _call(name, {})
        start = random.Random(name).randrange(every)
        for number, argument in enumerate(arguments):
            for value in [*VALUES][(start + number) % every :: every]:
                if not _left_out(name, argument, value):
                    yield f"{name}/{argument}={value}", _call(name, {argument: value})
        if len(arguments) > 1:
            for number in range(30 // every):
                draw = random.Random(f"{name} {number}")
                chosen = {one: draw.choice([*VALUES]) for one in sorted(draw.sample([*arguments], 2))}
                if not any(_left_out(name, *one) for one in chosen.items()):
                    shown = ", ".join(f"{key}={value}" for key, value in chosen.items())
                    yield f"{name}/two {number}: {shown}", _call(name, chosen)


READERS: dict[str, tuple[Callable[[str], Any], ...]] = {
    "qrels": (rk.Qrels.read, lambda path: rk.evaluate(path, RUN, measures="AP")),
    "run": (rk.Run.read, lambda path: rk.evaluate(QRELS, path, measures="AP")),
    "table": (lambda path: datasets.load_table(path, qid="qid", label="relevance"),),
    "letor": (datasets.load_letor,),
    "ev": (rk.Evaluation.load, lambda path: from_bytes(Path(path).read_bytes())),
    "comparison": (lambda path: rk.Comparison.from_json(Path(path).read_bytes().decode("utf-8", "replace")),),
    "config": (rk.run_experiment,),
}
TOKENS = (
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"nan",
    b"1e999",
    b'"',
    b"'",
    b"\t",
    b"\r",
    b"\n\n",
    b",",
    b"{",
    b"}",
    b"[",
    b":",
)
TOKENS += (b"-", b"9" * 30, b"null", b"#", b"\\u0000", b"\xed\xa0\x80", b"x" * 3000, b" ", b"0x1", b"\xe2\x80\xa8")


def broken(content: bytes, seed: str) -> bytes:
    """Return a file with one to three mistakes: a byte, a piece that is lost or twice, or something foreign."""
    draw = random.Random(seed)
    for _ in range(draw.randint(1, 3)):
        at = draw.randrange(len(content) + 1)
        to = min(len(content), at + draw.choice((1, 2, 5, 40)))
        lines = content.split(b"\n")
        swapped = b"\n".join(draw.sample(lines, len(lines)))
        content = draw.choice(
            (
                content[:at] + bytes([draw.randrange(256)]) + content[at + 1 :],
                content[:at] + content[to:],
                content[:to] + content[at:],
                content[:at] + draw.choice(TOKENS) + content[at:],
                content[:at] + draw.choice(TOKENS) + content[to:],
                content[:at],
                swapped,
            )
        )
    return content


def _files() -> Iterator[tuple[str, Callable[[], Any]]]:
    def called(reader: Callable[[str], Any], name: str, content: bytes) -> Callable[[], Any]:
        def read() -> Any:
            with _alone():
                return told(reader(str(_file(content, name))))

        return read

    for name, content in TEXTS.items():
        for which, reader in enumerate(READERS[name.split(".")[0]]):
            yield f"file {name}/reader {which}/good", called(reader, name, content)
            for number in range(100):
                key = f"file {name}/reader {which}/broken {number}"
                yield key, called(reader, name, broken(content, f"{name} {number}"))
    for number, text in enumerate(YAMLS):
        rest = YAML.replace("name: try\n", "") if text.startswith("name") else YAML
        for kind, whole in (("alone", text), ("with the rest", f"{text}\n{rest}")):
            content = whole.encode("utf-8", "surrogatepass")
            yield f"file yaml {number} {kind}", called(rk.run_experiment, "x.yaml", content)


TEXTS: dict[str, bytes] = {}
PARQUET = _parquet(FRAME)


def calls() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the calls with hostile values, and those that read broken files."""
    TEXTS.update(_in_a_folder(_texts))
    _cases()
    _genai(outputs=["d1"], expectations={"relevance": {"d1": 1}})  # MLflow is loaded before the first answer
    return itertools.chain(_hostile(), _files())


def _in_a_folder(function: Callable[[], Any]) -> Any:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        return function()
