r"""Evaluating: measures and their names, `evaluate` on every kind of input, Evaluation, collections, curves, scorers.

Tables of options are texts: ``rel=2 | cutoff=3, rel=1 | -`` is ``[{"rel": 2}, {"cutoff": 3, "rel": 1}, {}]``.
"""

from __future__ import annotations

import ast
import gzip
import io
import pickle
import re
import runpy
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from functools import cache, partial
from inspect import signature
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch
from zlib import crc32

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import rankeval as rk
from tests.oracle.recording import differences, from_bytes, said_of, today

Calls = Iterator[tuple[str, Callable[[], object]]]


def table(text: str) -> list[dict[str, Any]]:
    """Read a table of options."""
    parts = text.replace("\n", " ").split(" | ")
    calls = (ast.parse(f"f({'' if part == '-' else part})", mode="eval").body for part in parts)
    return [{word.arg: ast.literal_eval(word.value) for word in call.keywords} for call in calls]


OLD = {"query_weight": "weights", "unpaired": "missing"}
PRESETS = "rankeval trec_eval-9.0.8 trec_eval-9.0.8-float32 trec_eval-10 sklearn gdeval ranx lightgbm xgboost".split()
SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"
FEW = ["nDCG@3", "AP", "RR", "P@5", "gm_AP", "NumRelRet"]
(RULES,) = table("""ties=("expected", "docid", "stable", "best", "worst"), judgments=("given", "rows", "qrels"),
    negative=("zero", "unjudged", "error"), missing=("error", "empty", "skip", "zero"), depth=(None, 1, 3),
    no_relevant=("zero", "one", "skip"), unjudged=("zero", "skip", "lowest", "highest"),
    score_dtype=("float64", "float32"),
    bind=({}, {"nDCG": {"gain": "exp"}}, {"ERR": {"max_rel": 4}, "RBP": {"p": 0.8}}, {"AP": {"rel": 2}})""")
(VALUES,) = table("""rel=(1, 2, 0.5), cutoff=(3, 1, 10), base=(3, 10), p=(0.8, 0.5, 0.95), max_rel=(4, 3),
    gain=("exp", "linear", "binary", "scaled", {1: 1, 2: 5}, {1: 3, 2: 1}), discount=("log_rank",), min_rel=(1, -1),
    normalizer=("R", "min", "k", "hits"), T=(2, 0.5, 1.5), depth=(3, 20, None), alpha=(0.3, 0.0), beta=(2, 0.3),
    collection_size=(60, 1000), multiple=(0.5, 2, 1), recall=(0.1, 0.5, 1.0, 0.0), levels=((0.0, 0.5, 1.0), (0.2, 0.4)),
    rule=("exact", "trec_eval-9", "trec_eval-10"), count=("all", "retrieved", "implied"), normalize=(False,),
    average=("preference", "pair", "group"), of=("AP", "P", "RprecMult", "RR"), p_break=(0.3, 0.0),
    a=(2, -0.5), b=(2, -0.5), c=(2, -0.5), d=(2, -0.5)""")  # the first is given to a parameter that must be given
FILLED = {"gain": "1=3.5,2=1", "levels": "0.2,0.5", "recall": "0.10", "multiple": "0.4", "p": "0.8", "p:decimals": "85"}


def renamed(function: Any, *arguments: Any, **options: Any) -> Any:
    """Call a function by the new names of its options, or by the old ones where it still has those."""
    known = signature(function).parameters
    return function(*arguments, **{n if n in known else OLD.get(n, n): value for n, value in options.items()})


def of_dataset(path: Any, **options: Any) -> rk.Evaluation:
    """Evaluate a Parquet data set by the function of its own, or by the one for all data."""
    if not hasattr(rk, "evaluate_dataset"):
        return renamed(rk.evaluate, path, **options)
    return renamed(rk.evaluate_dataset, path, **{"folder" if n == "scores" else n: one for n, one in options.items()})


@cache
def world(seed: int) -> SimpleNamespace:
    """Make a small collection, and its rows: ids, grades and ties by the seed.

    Below 500 queries and judgments are missing, and there are grades below zero.
    """
    rng, whole = np.random.default_rng(seed), seed >= 500
    grades = ((0, 0, 1), (0, 1, 2, 3, 4), (-1, 0, 1, 2), (0, 0.5, 1, 2.5), (-2, 0, 0, 0, 1, 2))
    grades = grades[seed % (2 if whole else 5)]
    levels, texts = (2, 6, 10**6)[seed % 3], seed % 4 != 1
    truth, ranking, judged = {}, {}, []
    for number in rng.permutation(rng.integers(5, 13)).tolist():
        query = f"q{number}" if texts else number
        documents = [f"d{one}" if texts or seed % 8 == 1 else 100 + one for one in rng.permutation(20).tolist()]
        first, last = rng.integers(0, 5), rng.integers(6, 15)
        drawn = {one: grades[rng.integers(len(grades))] * (number > 0) for one in documents[:last]}
        ranked = documents[first : first + rng.integers(3, 16)]
        scores = {one: float(rng.integers(levels)) / 4 - 0.2 for one in ranked}
        truth |= {query: drawn} if number != 1 or seed % 3 or whole else {}
        ranking |= {query: scores} if number != 2 or seed % 2 or whole else {}
        for one, grade in drawn.items():
            for aspect in sorted(set(rng.integers(0, 3, 2).tolist())):
                lower = int(aspect == 2 and grade > 0)
                judged += [(query, one, grade - lower, f"a{aspect}", f"s{rng.integers(2)}")]
    cells = [(truth.get(q, {}).get(d, 0), s, q, d) for q, docs in ranking.items() for d, s in docs.items()]
    y, s, q, d = (np.array(column) for column in zip(*(cells[n] for n in rng.permutation(len(cells))), strict=True))
    weights = dict(zip(sorted({*truth, *ranking}), [0.5, 2.0, 1.0, 0.0, 3.0] * 4, strict=False))
    return SimpleNamespace(truth=truth, ranking=ranking, judged=judged, weights=weights, y=y, s=s, q=q, d=d)


def judgments(seed: int, columns: int = 5) -> rk.Qrels:
    """Return the judgments of a world by aspect, and with sub-groups if five columns are asked for."""
    return rk.Qrels(*[list(column) for column in zip(*world(seed).judged, strict=True)][:columns])


NAMES = {"plain": "qid docid relevance", "pt": "qid docno label", "ir": "query_id doc_id relevance"}
NAMES |= {"beir": "query-id corpus-id score"}
MAKES = {"pandas": lambda frame: frame, "polars": pl.from_pandas, "lazy": lambda frame: pl.from_pandas(frame).lazy()}
MAKES |= {"Arrow": pa.Table.from_pandas, "records": lambda frame: frame.to_dict("records")}
MAKES |= {"named": lambda frame: list(frame.itertuples(index=False, name="Row"))}
FRAMES = [f"{names} {make}" for names in NAMES for make in MAKES if make != "named" or names == "ir"]
ROWS = [f"rows {one}" for one in "arrays lists Series polars Arrow sizes float32 categories objects unlike".split()]
SUFFIXES = " .txt .qrels .csv .tsv .jsonl .parquet .xyz".split(" ")
ENDS = [suffix + packed for suffix in SUFFIXES for packed in ("", ".gz", ".zst")]


def given(seed: int, form: str) -> tuple[Any, Any, dict[str, Any]]:
    """Return truth, ranking and what goes beside them, in one of the forms that `evaluate` takes."""
    w, (kind, _, make) = world(seed), form.partition(" ")
    if kind in NAMES:
        names, frames = NAMES[kind].split(), []
        for mapping, last in ((w.truth, names[2]), (w.ranking, "score")):
            rows = [(q, d, value) for q, docs in mapping.items() for d, value in docs.items()]
            frames.append(MAKES[make](pd.DataFrame(rows, columns=[*names[:2], last])))
        return *frames, {}
    if kind == "aspects":
        return judgments(seed, int(make)), w.ranking, {}
    if kind in ("made", "file"):
        truth, ranking = rk.Qrels.from_dict(w.truth), rk.Run.from_dict(w.ranking, name="made")
        if kind == "made":
            return (truth, ranking, {}) if make == "objects" else (truth.to_frame(), ranking.to_frame(), {})
        truth.write(f"truth{make}")
        ranking.write(f"ranking{make}")
        return f"truth{make}", Path(f"ranking{make}"), {}
    if kind == "dicts":
        return w.truth, w.ranking, {}
    if make == "sizes":
        order, sizes = np.argsort(w.q, kind="stable"), np.unique(w.q, return_counts=True)[1]
        return w.y[order], w.s[order], {"group": sizes, "docid": w.d[order]}
    of = {
        "lists": lambda a: a.tolist(),
        "Series": pd.Series,
        "polars": pl.Series,
        "Arrow": pa.array,
        "unlike": pd.Series,
    }
    of |= {
        "objects": lambda a: a.astype(object) if a is not w.s else a,
        "categories": lambda a: pd.Categorical(a) if a is w.q else a,
    }
    of |= {"float32": lambda a: a.astype(np.float32) if a is w.s else a}
    y, s, q, d = (of.get(make, np.asarray)(column) for column in (w.y, w.s, w.q, w.d))
    return y, s[::-1] if make == "unlike" else s, {"qid": q, "docid": d}


def numbers(ev: rk.Evaluation) -> dict[str, Any]:
    """Return what a reader of an evaluation needs."""
    left_out = {"excluded": dict(sorted(ev.excluded.items())), "undefined": dict(ev.undefined), "notes": ev.notes}
    return {"scores": ev.scores, "queries": ev.queries, "aggregate": ev.aggregate().to_dict()} | left_out


def names(ev: rk.Evaluation) -> dict[str, str]:
    """Return the measures by the names asked for."""
    return dict(zip(ev.measure_names, map(str, ev.measures), strict=True))


def facts(ev: rk.Evaluation) -> dict[str, Any]:
    """Return all that an evaluation says."""
    return numbers(ev) | {
        "frame": ev.per_query,
        "measures": names(ev),
        "mean": ev.mean().to_dict(),
        "errors": (said_of(ev, "standard_errors"), said_of(ev, "aggregate_errors").to_dict()),
        "card": ev.convention.card(),
        "counts": [dict(sorted(said_of(ev, name).items())) for name in ("query_counts", "rule_counts")],
        "digests": (ev.judgments_digest, ev.ranking_digest),
        "told": (ev.name, ev.n_queries, ev.tied_share, ev.judged_share, ev.weights, repr(ev)),
    }


def evaluated(seed: int, measures: Any, form: str = "dicts", show: Callable[..., Any] = numbers, **options: Any) -> Any:
    """Evaluate a world in one of its forms, and return what `show` takes from the result."""
    if isinstance(options.get("convention"), dict):
        options["convention"] = rk.Convention(**options["convention"])
    if weighted := options.pop("weighted", None):
        w = world(seed)
        by_row = np.array([w.weights[one] for one in w.q.tolist()])
        ways = {"mapping": w.weights, "rows": by_row, "Series": pd.Series(w.weights), "few": {w.q[0]: 1.0}}
        options["query_weight"] = (ways | {"negative": -by_row, "uneven": np.arange(len(by_row)) + 1.0})[weighted]
    truth, ranking, beside = given(seed, form)
    return show(renamed(rk.evaluate, truth, ranking, measures=measures, **beside, **options))


def written(name: str, parameters: dict[str, Any]) -> str:
    """Write the name of a measure with parameters."""
    inside = ", ".join(f"{part}={value!r}" for part, value in parameters.items() if part != "cutoff")
    return name + (f"({inside})" if inside else "") + (f"@{parameters['cutoff']}" if "cutoff" in parameters else "")


@cache
def specs() -> dict[str, list[str]]:
    """Return the names of each measure: as it is, with each value of each parameter, and with several at once."""
    found = {}
    for name, text in rk.list_measures()["parameters"].items():
        parts = dict(re.findall(r"(?:^|, )([A-Za-z_]\w*)(=?)", text))
        need = {part: VALUES[part][0] for part, default in parts.items() if not default}
        rng = np.random.default_rng(crc32(name.encode()))
        several = [{part: VALUES[part][rng.integers(len(VALUES[part]))] for part in parts} for _ in range(3)]
        singly = [need | {part: value} for part in parts for value in VALUES[part]]
        found[name] = list(dict.fromkeys(written(name, one) for one in [need, *singly, *several]))
    return found


def of_measure(spec: Any, convention: str | None = None) -> Any:
    """Return what a measure says of itself, and whether it comes back from its key, its name and its pickle."""
    one = rk.measure(spec, convention)
    others = rk.measure_from_key(one.key), rk.measure(str(one)), pickle.loads(pickle.dumps(one))
    return str(one), repr(one), one.key, one.cutoff, [one == other and hash(one) == hash(other) for other in others]


def naming() -> Calls:
    """Yield names of measures: ours, other tools', misspelt and wrong ones, keys, and the table of all."""
    for name, several in specs().items():
        for spec in several:
            yield f"measure/{spec}", partial(of_measure, spec)
        wrong = [name[:-1], name[1:], f"{name.lower()}@5", f"{name.upper()}(rel=3)"]
        wrong += [name + end for end in ("x", "@0", "(rell=2)", "(rel='a')", "(p=2, cutoff=-1)", "@2@3")]
        for spec in dict.fromkeys(wrong):
            yield f"misspelt/{name}/{spec}", partial(of_measure, spec)
    texts = rk.list_measures()["spellings"]
    for template in dict.fromkeys(one for text in texts for one in re.findall(r"(?<=[:,] )[^;, ]+(?:,[^;, ]+)*", text)):
        spec = re.sub(r"\{([\w:]+)\}", lambda found: FILLED.get(found[1], "4"), template)
        for convention in (None, "trec_eval-9.0.8", "trec_eval-10", "ranx"):
            yield f"spelling/{template}/{convention}", partial(of_measure, spec, convention)
    odd = "| |@5|nDCG@|nDCG@10.5|P(|P)5|runid|ndcg-l2@10|mrr-l2|nDCG@99999999|AvgJG(of='nDCG')|P@5 | p( rel=2 )@5"
    for spec in (None, 3, *odd.split("|"), "official", "P.5,10", "rbp", "11pt_avg", "nDCG__gain.exp_at_10", "P_at_x"):
        yield f"odd/measure/{spec!r}", partial(of_measure, spec)
        yield f"odd/key/{spec!r}", partial(lambda key: str(rk.measure_from_key(key)), spec)
    for part in ("map", "DCG", "precision", "ndcg_cut_10", "nothing", "", "rbp", "P@5", *list(specs())[::2]):
        yield f"list_measures/{part}", partial(rk.list_measures, part)
    yield "measures/markdown", partial(command, "measures", "--format", "markdown")


def scoring() -> Calls:
    """Yield every measure with every value of its parameters, every preset and rule on ties, and drawn conventions."""
    needs = rk.list_measures()["needs"]
    for name, several in specs().items():
        form = "aspects 4" if needs[name] == "aspects" or name == "AvgJG" else "dicts"
        form = form if needs[name] == "grades" or "4" in form else "aspects 5"
        for number, spec in enumerate(several):
            seed = (7 * number + crc32(name.encode())) % 60
            yield f"evaluate/{spec}/{form}/world {seed}", partial(evaluated, seed, spec, form)
            where = form if needs[name] == "aspects" else "rows arrays"
            yield f"evaluate/{spec}/{where}/world {seed + 17}", partial(evaluated, seed + 17, spec, where)
        for number, preset in enumerate(PRESETS):
            for spec, seed in ((several[0], 500 + number), (name, 509 + number), (several[-1], number)):
                yield f"preset/{preset}/{spec}/{seed}", partial(evaluated, seed, spec, form, convention=preset)
        for seed in range(6 if needs[name] == "groups" else 2):
            call = partial(evaluated, seed, several[0], form, judgments="rows")
            yield f"judgments/rows/{several[0]}/{form}/world {seed}", call
        for number, ties in enumerate(RULES["ties"]):
            for where in (form, "rows arrays"):
                yield f"ties/{ties}/{several[0]}/{where}", partial(evaluated, 3 * number, several[0], where, ties=ties)
    every = [one for names in specs().values() for one in names]
    for seed in range(400):
        rng = np.random.default_rng(seed)
        rules = {str(rule): RULES[rule][rng.integers(len(RULES[rule]))] for rule in rng.choice(list(RULES), 3, False)}
        rules |= {"ties": "docid"} if "depth" in rules else {}
        asked = FEW if seed % 2 else [*rng.choice(every, 2).tolist(), "ERR(max_rel=4)", "RBP(p=0.7)"]
        asked = (
            ["P@5", "RR", "DCG@3"] if {"best", "worst", "lowest", "highest"} & set(map(str, rules.values())) else asked
        )
        form = ("dicts", "rows arrays", "aspects 3")[seed % 3]
        where = seed + 500 * (seed % 2)
        yield f"convention/{seed}/{rules}", partial(evaluated, where, asked, form, facts, convention=rules)
    for rule, values in RULES.items():
        for value in (*values, "x", 0, True):
            yield f"Convention/{rule}={value}", partial(lambda given: repr(rk.Convention(**given)), {rule: value})
        for value in (*values, "x") if rule in ("ties", "missing", "no_relevant", "judgments") else ():
            for seed in range(6 if value != "x" else 1):
                for form in ("dicts", "rows arrays"):
                    call = partial(evaluated, seed, FEW, form, facts, **{rule: value})
                    yield f"rule/{form}/{rule}={value}/world {seed}", call
    for number, preset in enumerate((*PRESETS, "trec_eval", "Rankeval", None, 3)):
        for name in "official set all_trec prefs qrels_jg ndcg_cut P P.5,10 recall".split():
            yield f"several/{name}/{preset}", partial(evaluated, 500 + number, name, convention=preset)


WRONG = table("""y=[1, None, 2] | y=["x", "y", "z"] | y=[[1], [0], [2]] | y=None | y=1 | y=[True, False, True] |
y=[1152921504606846977, 0, 1] | s=[1, None, 2] | s=[2, 1] | s=["1", "2", "3"] | s=[1j, 0, 1] | s=None |
s=[1e400, 0, 1] | q=None | q=["a", None, "b"] | q=["a", 1, 2] | q=[1.5, 1.5, 2] | q="qid" | q=[("a", 1)] |
y=[], s=[], q=[] | y={"a": {"d": 1}}, q=None | y={"a": {"d": 1}}, s={"a": {"d": 1}} | y="nowhere", s="nowhere", q=None |
y=[0.5, 1e300, 0] | y={}, s={}, q=None | y={"a": {"d": 1}}, s={"b": {"d": 1}}, q=None | y={"a": 1}, s={"a": 2}, q=None |
y=[-1, 0, 1] | y=[1, 0] | y=[("a", "d", 1)], s={"a": {"d": 1}}, q=None""")
STREAMED = table("""- | memory="400MB" | memory="1KB" | memory="x" | ties="docid" | docid="d", ties="docid" |
query_weight="w" | query_weight="v" | scores="kept" | convention="lightgbm" | name="set" | n_jobs=0 | qid="z" |
measures="ERR" | measures=["AP", "nDCG@5"] | missing="skip", no_relevant="skip" | ties='worst'""")


def giving() -> Calls:
    """Yield every kind of input, weights, and Parquet data sets."""
    for seed in range(12):
        files = [f"file {end}" for end in ENDS[seed % 3 :: 3]]
        for form in ("dicts", "made objects", "made frames", *ROWS, *FRAMES, *files):
            options = {"ties": "docid" if seed % 2 else None, "name": "named" if seed % 3 else None}
            yield f"input/{form}/world {seed}", partial(evaluated, seed, FEW, form, facts, **options)
        for weighted in ("mapping", "rows", "Series", "few", "negative", "uneven")[: None if seed < 3 else 3]:
            for form in ("dicts", "rows arrays", "rows Series"):
                call = partial(evaluated, seed, FEW, form, facts, weighted=weighted)
                yield f"weights/{weighted}/{form}/world {seed}", call
    for wrong in WRONG:
        columns = {"y": [1, 0, 2], "s": [0.3, 0.2, 0.1], "q": ["a", "a", "b"]} | wrong
        for more in table('- | group=[2, 1] | group=[1, 1] | ties="docid" | relevance="y", score="s"'):
            call = partial(lambda c, more: numbers(rk.evaluate(c["y"], c["s"], qid=c["q"], **more)), columns, more)
            yield f"wrong/{wrong}/{more}", call
    for measures in ([], "", None, 3, ["RR", "MRR"], ["RR", "RRR"], {"RR"}, ("P@5", rk.measure("AP")), "nDCG@10"):
        yield f"measures/{measures!r}", partial(evaluated, 1, measures)
    for seed in range(8):
        for kind in ("file", "row groups", "folder", "list", "hive"):
            for options in STREAMED if kind in ("file", "folder") else STREAMED[:2]:
                yield f"data set/{kind}/{options}/world {seed}", partial(streamed, seed, kind, **options)
    yield "data set/two processes", partial(streamed, 3, "folder", n_jobs=2)


def streamed(seed: int, kind: str, **options: Any) -> Any:
    """Write the rows of a world as a Parquet data set, and evaluate it."""
    w, path = world(seed), Path("set")
    rows = pd.DataFrame({"q": w.q, "y": w.y, "s": w.s, "d": w.d, "w": pd.Series(w.q).map(w.weights)})
    rows = rows.assign(v=rows.index, part=rows.index % 3)
    path.mkdir()
    if kind == "hive":
        pq.write_to_dataset(pa.Table.from_pandas(rows, preserve_index=False), path, partition_cols=["part"])
    elif kind in ("folder", "list"):
        for part, some in rows.groupby("part"):
            some.to_parquet(path / f"{part}.parquet", index=False)
        path = sorted(path.iterdir()) if kind == "list" else path
    else:
        path = path / "rows.parquet"
        rows.to_parquet(path, index=False, row_group_size=5 if kind == "row groups" else None)
    ev = of_dataset(path, **({"qid": "q", "relevance": "y", "score": "s", "measures": FEW} | options))
    kept = [pd.read_parquet(file) for file in sorted(Path("kept").rglob("*.parquet"))]
    return facts(ev), [frame.sort_values("qid").reset_index(drop=True) for frame in kept if "qid" in frame]


def results() -> Calls:
    """Yield what is done with an evaluation: parts, the worst, slices, intervals, bytes, files, differences, texts."""
    for seed in range(30):
        form, options = "rows arrays" if seed % 4 == 3 else "dicts", {"weighted": "mapping"} if seed % 5 == 4 else {}
        convention = ("rankeval", "trec_eval-9.0.8", "gdeval", "rankeval")[seed % 4]
        ev = evaluated(seed, FEW, form, lambda one: one, convention=convention, **options)
        rules = {"missing": "skip", "no_relevant": "skip", "ties": ("worst", None)[seed % 2]}
        ids, odd = ev.queries.tolist(), np.arange(ev.n_queries) % 2 == 1
        by = pd.Series(np.where(odd, "odd", "even"), index=ids)
        parts = {"ids": ids[1:4], "mask": odd, "Series": by == "odd", "all": ids, "array": ev.queries[::2]}
        wrong = {"none": [], "unknown": [*ids, "zz"], "twice": ids[:1] * 2, "short": odd[1:], "text": "q1"}
        wrong |= {"mapping": {}, "mixed": [True, ids[0]], "two": odd[None], "plain": pd.Series(odd)}
        wrong |= {"left out": [one for left in ev.excluded.values() for one in left]}
        for what, part in (parts | wrong if seed < 4 else parts).items():
            yield f"subset/{what}/{seed}", partial(lambda e, p: facts(e.subset(p)), ev, part)
            yield f"subset/kept/{what}/{seed}", partial(lambda e, p: facts(kept(e.subset(p))), ev, part)
        for n, measure in ((10, None), (2, "AP"), (1, "gm_AP"), (3, "NumRelRet"), (9, rk.measure("P@5")), (2, "ap")):
            yield f"worst/{n}/{measure}/{seed}", partial(worst, ev, n, measure)
        attributes = {"Series": by, "mapping": by.to_dict(), "array": odd, "count": "relevant", "some": by[:2]}
        attributes |= {"frame": pd.DataFrame({"a": by, "b": ev.scores[:, 0] > 0.3}), "nan": by.where(by == "odd")}
        attributes |= {"qid": pd.DataFrame({"qid": ids, "c": odd}), "numbers": said_of(ev, "query_counts")["retrieved"]}
        if seed < 4:
            attributes |= {"unknown": "x", "short": odd[1:], "lists": [[1]] * len(ids), "other": pd.Series([1], ["zz"])}
            for n, measure in ((0, None), (1.5, None), ("x", None), (2, "nothing"), (2, ["AP"])):
                yield f"worst/{n}/{measure}/{seed}", partial(worst, ev, n, measure)
        for what, value in attributes.items():
            for level in (None, 0.9) if what in ("Series", "count", "frame") else (None,):
                yield f"slices/{what}/{level}/{seed}", partial(sliced, ev, value, level)
        for level in (0.95, 0.5, 0.999, *((0, 1, 1.5, "x", None) if seed < 4 else ())):
            yield f"ci/{level}/{seed}", partial(lambda e, c: e.ci(c).reset_index(), ev, level)
        yield f"bytes/{seed}", partial(lambda e: facts(from_bytes(said_of(e, "to_bytes"))), ev)
        yield f"bytes/columns/{seed}", partial(lambda e: pd.read_parquet(io.BytesIO(said_of(e, "to_bytes"))), ev)
        yield f"save/{seed}", partial(lambda e: facts(kept(e)), ev)
        yield f"renamed/{seed}", partial(lambda e: facts(replace(e, name="another")), ev)
        other = evaluated(seed, FEW, "dicts", lambda one: one, **rules)
        yield f"differs_from/{seed}", partial(lambda e, o: (differences(e, o), differences(o, e)), ev, other)
        yield (
            f"told/{seed}",
            partial(lambda e: (e.notes, sorted(said_of(e, "info").items()), names(e)), ev),
        )
    for content in (b"", b"PAR1", b"{}"):
        yield f"from_bytes/{content!r}", partial(from_bytes, content)
    yield "load/nowhere", partial(rk.Evaluation.load, "nowhere.parquet")
    yield "save/nowhere", partial(evaluated, 1, FEW, show=lambda ev: ev.save("no/folder.parquet"))


def worst(ev: rk.Evaluation, n: Any, measure: Any) -> Any:
    """Return the worst queries, and how many were left out."""
    frame = ev.worst(n, measure)
    return frame, frame.attrs["left_out"]


def sliced(ev: rk.Evaluation, by: Any, level: float | None) -> Any:
    """Return the table of slices with the names of its columns."""
    known = "level" if "level" in signature(ev.slices).parameters else "confidence_level"
    frame = ev.slices(by, **{known: level})
    return list(frame.index.names), [str(one) for one in frame.index.tolist()], frame.reset_index(drop=True)


def kept(ev: rk.Evaluation) -> rk.Evaluation:
    """Write an evaluation to a file and read it again."""
    ev.save("ev.parquet")
    return rk.Evaluation.load("ev.parquet")


def rows_of(rows: Any) -> Any:
    """Return what judgments or a run hold."""
    return repr(rows), len(rows), rows.to_frame(), getattr(rows, "name", None)


def taken(kind: Any, way: str, seed: int, form: str, place: int) -> Any:
    """Make judgments or a run from a world in one of its forms."""
    return rows_of(getattr(kind, way)(given(seed, form)[place]))


def filed(rows: Any, name: str, form: str | None = None, again: str | None = None) -> Any:
    """Write judgments or a run, and return the text of the file and what is read back."""
    rows.write(name, form)
    content = Path(name).read_bytes()
    content = gzip.decompress(content) if name.endswith("gz") else content
    is_text = not name.endswith(".zst") and ".parquet" not in name and form != "parquet"
    return content.decode() if is_text else None, rows_of(type(rows).read(name, again))


def read(kind: Any, text: str, name: str, form: str | None) -> Any:
    """Write a text to a file and read it as judgments or a run."""
    Path(name).write_bytes(text.encode())
    return rows_of(kind.read(name, form))


TEXTS = r"""q1 0 d1 2\nq1 0 d2 0\nq2 0 d1 -1\n | q1 Q0 d1 1 2.5 tag\nq1 Q0 d2 2 1e-3 tag\n | #\nq1 0 d1 1\n\nq2 0 d2 0\n
q1\t0\td1\t1\nq2\t0\td2\t3 | qid,docid,relevance\nq1,d1,1\nq2,d2,0.5\n
query_id,doc_id,score,run\n1,d1,0.5,me\n1,d2,-3,me\n
query-id\tcorpus-id\tscore\nq1\td1\t1\n | {"qid": "q1", "docid": "d1", "relevance": 1}\n
{"qid": 1, "docid": 2, "score": .2}\n
{"qid": 1, "docid": 2, "score": 0.25}\n{"qid": 1, "docid": 3, "score": 1}\n
qid,docid,score\n"a,b","d ""1"" ",1\n
\ufeffq1 0 d1 1\n | q1 0 d1 1\r\nq2 0 d1 0\r\n | q1 0 d1\n | q1 0 d1 x\n | q1 Q0 d1 1 nan tag\n
[{"qid": 1}] | {"qid": 1\n
q1 Q0 d1 1 2 a\nq1 Q0 d2 2 1 b\n | 1 1 d1 1\n1 2 d1 0\n2 1 d2 1\n
1 j1 s1 d1 2\n1 j1 s1 d2 1\n | q1 0 d1 1\nq1 0 d1 2\n
\xe4 0 \xf6 1\n | 01 0 007 1\n1 0 7 2\n | 1 0 d 0.5\n | qid,docid,score\nq1,d1,x\n
qid,score\nq1,1\n | 1 Q0 d 1 1e999 t\n"""
COLUMNS = """[[["q"], ["d"], [1]], [["q", "q"], ["d"], [1]], [["q", None], ["d", "e"], [1, 2]],
 [["q", 1], ["d", "e"], [1, 2]],
 [["q"], ["d"], [None]], [["q"], ["d"], ["x"]], [[], [], []], [[1.5], ["d"], [1]], [[1, 2], [3, 4], [0.5, True]],
 [["q"], ["d"], [1152921504606846977]], [[""], [" "], [1]], ["q", "d", 1], [None, None, None],
 [[1], [2], [3], ["a"], ["s"]]]"""
MAPPINGS = """[{}, {"q": {}}, {"q": 1}, {"q": {"d": None}}, {"q": {"d": {"a": 1, "b": 0}}}, {1: {2: 3}, "a": {2: 3}},
 {("a", 1): {"d": 1}}, [], None, "x", {"q": {"d": "1"}}, {"q": {1: 2, "d": 3}}, [{"query_id": 1, "doc_id": 2}]]"""


COLUMNS_OF = table(
    'qid="a", docid="b", relevance="c" | qid="a", docid="z" | - | qid="a", docid="b", score="c", name="n"'
)
READ = [(f"f{end}", None) for end in ("", ".csv", ".tsv", ".jsonl")]
READ += [("f", form) for form in ("trec", "csv", "tsv", "jsonl", "ndeval", "prefs")]


def collecting() -> Calls:
    """Yield judgments and runs: constructors, writers, readers, and files that are wrong."""
    for seed in range(8):
        w = world(seed)
        made = {"qrels": rk.Qrels.from_dict(w.truth), "run": rk.Run.from_dict(w.ranking), "aspects": judgments(seed, 4)}
        made |= {"named": rk.Run.from_dict(w.ranking, name="a b"), "subgroups": judgments(seed)}
        for what, rows in made.items():
            yield f"rows/{what}/{seed}", partial(rows_of, rows)
            again = {"aspects": "ndeval", "subgroups": "prefs"}.get(what)
            for end in ENDS[seed % 3 :: 3]:
                yield f"write/{what}/{end}/{seed}", partial(filed, rows, f"rows{end}")
            for form in ("trec", "csv", "tsv", "jsonl", "parquet", *(("ndeval", "prefs", "cvs") if seed == 0 else ())):
                call = partial(filed, rows, "rows.dat", form, again if form == "trec" else None)
                yield f"write/{what}/format={form}/{seed}", call
        for form in (*FRAMES, "made frames", "made objects", "dicts", "rows Series"):
            for place, kind in enumerate((rk.Qrels, rk.Run)):
                for way in ("from_any", "from_frame", "from_records"):
                    fits = way == "from_any" or (way == "from_records") == form.endswith(("records", "named"))
                    if fits or (seed == 0 and not (way == "from_records" and form.endswith("Arrow"))):  # an address
                        call = partial(taken, kind, way, seed, form, place)
                        yield f"{way}/{kind.__name__}/{form}/{seed}", call
        frame = given(seed, "plain pandas")[0].set_axis(["a", "b", "c"], axis=1)
        for names in COLUMNS_OF:
            call = partial(
                lambda k, f, n: rows_of(k.from_frame(f, **n)), rk.Run if "name" in names else rk.Qrels, frame
            )
            yield f"from_frame/{names}/{seed}", partial(call, names)
        for aspect in (None, False, "aspect", "x"):
            call = partial(lambda f, a: rows_of(rk.Qrels.from_frame(f, aspect=a)), made["subgroups"].to_frame(), aspect)
            yield f"from_frame/aspect={aspect}/{seed}", call
    for text in TEXTS.replace("\n", " | ").split(" | "):
        for kind in (rk.Qrels, rk.Run):
            for name, form in READ:
                content = text.encode().decode("unicode_escape")
                yield f"read/{kind.__name__}/{text}/{name}/{form}", partial(read, kind, content, name, form)
    for kind in (rk.Qrels, rk.Run):
        for columns in ast.literal_eval(COLUMNS.replace("\n", "")):
            yield f"made/{kind.__name__}/{columns}", partial(lambda k, c: rows_of(k(*c)), kind, columns)
            yield f"made/{kind.__name__}/{columns}/kept", partial(lambda k, c: filed(k(*c), "file"), kind, columns)
        for mapping in ast.literal_eval(MAPPINGS.replace("\n", "")):
            for way in ("from_dict", "from_any", "from_records", "from_frame"):
                call = partial(lambda k, y, m: rows_of(getattr(k, y)(m)), kind, way, mapping)
                yield f"{way}/{kind.__name__}/{mapping!r}", call


TABLES = table("""- | rel=2 | cutoff=3 | collection_size=100 | cutoff=5, convention='trec_eval-9.0.8' |
rel=0.5, collection_size=50 | cutoff=0 | collection_size=2 | rel='x'""")
ORDERS = table("- | truth='AP' | measures=['AP', 'RR'] | unpaired='skip' | truth='x' | unpaired='x'")


def analysing() -> Calls:
    """Yield contingency tables, curves, overlaps, agreement of orders, explanations."""
    for seed in range(12):
        for form in ("dicts", "rows arrays", "rows sizes", "made objects"):
            for options in TABLES[: None if seed < 2 else -3]:
                beside = {"seed": seed, "form": form, **options}
                call = partial(analysed, rk.contingency_table, counted, **beside)
                yield f"contingency_table/{form}/{options}/{seed}", call
                if "cutoff" not in options:
                    yield f"roc/{form}/{options}/{seed}", partial(analysed, rk.curves.roc, curve, **beside)
                if not {"cutoff", "collection_size"} & set(options):
                    call = partial(analysed, rk.curves.precision_recall, curve, **beside)
                    yield f"precision_recall/{form}/{options}/{seed}", call
        for p in (0.9, 0.5, 0.98, *((0, 1, "x", None) if seed == 0 else ())):
            for other in (seed + 1, seed, seed + 4):
                yield f"rank_biased_overlap/{p}/{seed}/{other}", partial(overlapping, seed, other, p)
        for options in ORDERS[: None if seed < 2 else -2]:
            for means in (False, True):
                yield f"order_agreement/{means}/{options}/{seed}", partial(agreeing, seed, means, **options)
        pairs = [("nDCG@5", (0.5, 0.6)), ("AP", (0.4, 0.5)), ("RBP", (0.1, 0.2)), ("x", (1, 2)), ("AP", (1,))]
        for measure, values in pairs:
            yield f"explain_difference/{measure}/{values}/{seed}", partial(explained, seed, measure, values)
        yield f"explain_difference/found/{seed}", partial(explained, seed, "nDCG", None)


def analysed(function: Any, show: Any, seed: int, form: str, **options: Any) -> Any:
    """Call an analysis of truth and ranking."""
    truth, ranking, beside = given(seed, form)
    return show(function(truth, ranking, **{n: one for n, one in beside.items() if n != "docid"}, **options))


def counted(found: rk.ContingencyTable) -> Any:
    """Return a contingency table with its averages."""
    return found.per_query, [(found.micro(beta=beta).to_dict(), found.macro(beta=beta).to_dict()) for beta in (1, 0.5)]


def curve(found: Any) -> Any:
    """Return the points of a curve, the area and what is undefined, and the averages of precision by recall."""
    area = found.auc if hasattr(found, "auc") else found.area
    more = () if hasattr(found, "auc") else (found.eleven_points, found.average, found.eleven_point_average)
    return found.points, area.to_dict(), dict(found.undefined), *more


def overlapping(one: int, other: int, p: Any) -> Any:
    """Return the overlap of the runs of two worlds."""
    options = {} if p is None else {"p": p}
    found = rk.rank_biased_overlap(world(one).ranking, given(other, "made objects")[1], **options)
    return found.per_query, found.p, found.only_in_one, found.mean().to_dict()


def agreeing(seed: int, means: bool, **options: Any) -> Any:
    """Return how far the orders of four systems agree, each with drawn scores on the rows of one data set."""
    data, rng = rk.datasets.make_ranking(8, 6, rng=seed), np.random.default_rng(seed)
    scores = {name: np.round(data.y + rng.normal(0, 2, len(data))) for name in "abcd"}
    systems: Any = {n: rk.evaluate(data.y, s, qid=data.qid, measures=["AP", "RR", "P@3"]) for n, s in scores.items()}
    if means:
        systems = pd.DataFrame({name: ev.mean() for name, ev in systems.items()}).T
    found = renamed(rk.order_agreement, systems, **options)
    return found.table, found.means, found.truth, found.notes, found.to_markdown(), found.to_latex()


def explained(seed: int, measure: str, values: Any) -> Any:
    """Return why two numbers differ; without values, those of two ways to compute the measure."""
    w = world(seed)
    if values is None:
        ways = [f"{measure}(gain={gain!r})" for gain in ("linear", "exp")]
        values = tuple(f"{evaluated(seed, way, 'rows arrays', lambda e: e.aggregate().iloc[0]):.4f}" for way in ways)
    found = rk.explain_difference(w.y, w.s, qid=w.q, measure=measure, values=values)
    return repr(found), found.differences


def command(*arguments: str) -> Any:
    """Run the command line, and return its exit code and what it printed."""
    out, err = io.StringIO(), io.StringIO()
    with patch.object(sys, "argv", ["rankeval", *arguments]), redirect_stdout(out), redirect_stderr(err):
        try:
            runpy.run_module("rankeval", run_name="__main__")
        except SystemExit as stop:
            return stop.code, out.getvalue(), err.getvalue()
    return None


def printed(seed: int, *options: str, columns: int = 0) -> Any:
    """Print a world by `rankeval evaluate`."""
    truth = judgments(seed, columns) if columns else rk.Qrels.from_dict(world(seed).truth)
    truth.write("qrels")
    rk.Run.from_dict(world(seed).ranking, name="tag").write("run")
    Path("zscores").write_text("map\tall\t0.3\t0.1\nmap\tq3\t0.2\t0.1\nP_10\tall\t0.5\t0.2\n")
    return command("evaluate", "qrels", "run", *options)


PRINTED = """|-q|-c|-q -c|-n -q|-l 2|-M 3|-J|-N 100 -m utility|-m all_trec|-m all_trec -q -c|-m set -q|
-m ndcg_cut -m P.2,4|-m x|-Z zscores -q|-m iprec_at_recall|-m ndcg.1=3|-m runid|--missing zero -c|--ties expected -q|
-m relstring.5 -q"""
PREFERRED = ["-m prefs -R prefs", "-m all_prefs -q -R prefs", "-m all_prefs -R ndeval", "-m qrels_jg -q -R ndeval"]


def printing() -> Calls:
    """Yield the output of trec_eval, and of other formats, by the command line."""
    for convention in PRESETS[:5]:
        for number, options in enumerate(PRINTED.replace("\n", "").split("|")):
            for seed in (number, 500 + number):
                words = "--format", "trec", "--convention", convention, *options.split()
                yield f"trec/{convention}/{options}/{seed}", partial(printed, seed, *words)
    real = [str(SHARED / "trec_eval_test" / name) for name in ("qrels.test.gz", "results.test.gz")]
    for convention in PRESETS[:4]:
        for options in ("", "-q", "-m all_trec -q", "-q -c -M 100", "-l 2 -J", "-m ndcg_cut.3,7 -m gm_map"):
            words = "--format", "trec", "--convention", convention, *options.split()
            yield f"trec/real/{convention}/{options}", partial(command, "evaluate", *real, *words)
    for seed in range(6):
        for options in PREFERRED:
            words, columns = ("--format", "trec", *options.split()), 5 if "R prefs" in options else 4
            call = partial(printed, seed, *words, columns=columns)
            yield f"trec/{options}/{seed}", call
        for form in ("json", "csv", "table"):
            yield f"printed/{form}/{seed}", partial(printed, seed, "-q", "-m", "AP", "-m", "nDCG@3", "--format", form)


def data_of(data: Any) -> Any:
    """Return what data for ranking hold."""
    if isinstance(data, dict):
        return {part: data_of(one) for part, one in data.items()}
    X = data.X.toarray() if hasattr(data.X, "toarray") else data.X
    return repr(data), type(data.X).__name__, X, data.y, data.qid, data.docid, data.feature_names, data.n_queries


def loaded(load: str, files: dict[str, str], path: str, **options: Any) -> Any:
    """Write files and load one, or the folder."""
    for name, text in files.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    return data_of(getattr(rk.datasets, load)(path, **options))


LETOR = """2 qid:1 1:0.5 2:3 # docid = a;0 qid:1 1:0.2 # docid = b;1 qid:2 2:1; | 1 qid:a 1:1;0 qid:b 3:2;1 qid:b 1:1; |
1 1:2;0 1:3;2 2:1; | 1 qid:1 1:1;1 qid:2 1:1;0 qid:1 1:2; | 1 qid:1 0:1 1:2; | qid:1 1:1; | 1 qid:1 1:x; |
1 qid:1 1:1 1:2; |  | # all;1 qid:1 1:1; | 0.5 qid:1 1:1e-3; | 1 qid:1 99999999999:1; | -1 qid:01 5:1;3 qid:1 1:2; |
1 qid:1 2:1 1:1; | 1 qid:1 1:inf;"""
TABULAR = """q,y,d,f1,f2,part;a,1,d1,0.5,1,train;a,0,d2,0.1,2,train;b,2,d1,3,4,vali;c,0,d1,3,4,test; | q,y;a,1; |  |
q,y,d,f1,f2,part;a,,d1,1,2,train;,1,d1,1,2,x; | q,y,d,f1,part;a,1,d1,x,train; |
q,y,d,f1,f2,part;1,1,1,0.5,1,0;1,0,2,0.1,2,0;2,0.5,3,1,2,2;"""
MADE = table("""n_queries=0 | n_docs=0 | n_docs=(5, 2) | noise=-1 | tie_share=2 | max_relevance=0 | rng='x' |
n_features=0""")
DIGITS = table("""n_queries=3, n_candidates=5 | n_queries=5, n_candidates=4, rng=2 | n_queries=0 | n_candidates=1 |
n_queries=9999""")
LOADED = table("""- | docid='d' | features=['f1'] | features=['f9'] | label='z' | format='csv' |
features=['f2', 'f1'], docid='d' | features=['f1'], format='csv'""")
PARTED = table("""- | train='train', test=['test', 'vali'] | others='drop', test='vali' | validation='none' |
train=0, test=2""")


def loading() -> Calls:
    """Yield data sets: made ones, learning-to-rank files and tables; `RankingData`."""
    for number in range(60):
        options = {"n_queries": 3 + number % 6, "n_docs": (3, (2, 6))[number % 2], "n_features": 3, "rng": number}
        options |= {"noise": (0.5, 0.0, 2)[number % 3], "max_relevance": (4, 1)[number % 2], "shuffle": number % 4 > 1}
        options |= {"tie_share": (0.0, 0.5)[number // 2 % 2]}
        made = partial(rk.datasets.make_ranking, **options)
        yield f"make_ranking/{number}", partial(lambda m: data_of(m()), made)
        rows = ([0, 2, 1], [True] * 5, [-1, -1], [99], [])[number % 5]
        yield f"take/{rows}/{number}", partial(lambda m, r: data_of(m().take(r, name="part")), made, rows)
    for options in MADE:
        yield f"make_ranking/{options}", partial(lambda o: data_of(rk.datasets.make_ranking(**o)), options)
    for options in DIGITS:
        call = partial(lambda o: data_of(rk.datasets.load_digits_retrieval(**o)), options)
        yield f"load_digits_retrieval/{options}", call
    for number, text in enumerate(LETOR.replace("\n", " ").split(" | ")):
        body = text.strip().replace(";", "\n")
        for sparse in (None, True, False):
            for name in ("rank.train", "rank.train.gz", "train.txt"):
                for sizes in ({}, {"rank.train.query": "2\n1\n", "train.txt.query": "2\n1\n"}):
                    call = partial(loaded, "load_letor", {name: body} | sizes, name, sparse=sparse)
                    yield f"load_letor/{number}/{sparse}/{name}/{len(sizes)}", call
        for more in ("9 qid:x9 1:1\n", body):
            files = {"fold/train.txt": body, "fold/test.txt": more, "fold/vali.txt.gz": "1 qid:77 2:1\n"}
            yield f"load_letor_parts/{number}/{len(more)}", partial(loaded, "load_letor_parts", files, "fold")
    for number, text in enumerate(TABULAR.replace("\n", " ").split(" | ")):
        for name in ("t.csv", "t.tsv", "t.csv.gz", "t.dat"):
            body = text.strip().replace(";", "\n").replace(",", "\t" if "tsv" in name else ",")
            for options in LOADED:
                asked = {"qid": "q", "label": "y"} | options
                call = partial(loaded, "load_table", {name: body}, name, **asked)
                yield f"load_table/{number}/{name}/{options}", call
                for more in PARTED if name == "t.csv" and options.get("label") != "z" else ():
                    call = partial(loaded, "load_table_parts", {name: body}, name, part="part", **(asked | more))
                    yield f"load_table_parts/{number}/{options}/{more}", call
    X, frame = np.arange(6.0).reshape(3, 2), pd.DataFrame(np.arange(6.0).reshape(3, 2))
    one, other = pd.Series([1, 0, 0]), pd.Series([1, 0, 0], index=[2, 1, 0])
    parts = [(X, [1, 0, 2], ["a", "a", "b"]), (X, [1, 0], ["a", "a", "b"]), (X, [1, np.nan, 0], [1, 1, 2])]
    parts += [(X, [1, 0, 0], ["a", None, "b"]), (X.tolist(), [1, 0, 0], [1, 1, 1]), (frame, one, one)]
    parts += [(frame, other, one), (frame, other, [1, 1, 2])]
    for number, some in enumerate(parts):
        yield f"RankingData/{number}", partial(lambda p: data_of(rk.RankingData(*p)), some)


class First:
    """An estimator that predicts the first feature, rounded, so that there are ties."""

    def fit(self, X: Any, y: Any) -> First:
        """Return itself."""
        return self

    def predict(self, X: Any) -> Any:
        """Return the scores."""
        return np.round(np.asarray(X)[:, 0] * 2)


SCORED = table("""- | convention='lightgbm' | ties='worst' | no_relevant='skip' | response_method='predict' | name='n' |
ties='x' | judgments='qrels' | response_method='x' | y=[1]""")


def training() -> Calls:
    """Yield scorers of plain arrays, and the metrics of boosters given arrays."""
    for seed in range(8):
        for measures in ("nDCG@3", ["AP", "RR", "ARP"], "ARP", ["P@2"], *(("ERR", [], "nothing") if seed == 0 else ())):
            for options in SCORED[: None if seed == 0 else -4]:
                yield f"make_scorer/{measures}/{options}/{seed}", partial(scored, seed, measures, "qid", **options)
        for beside in "group weight uneven none short frame index bound wrong-group".split():
            yield f"make_scorer/{beside}/{seed}", partial(scored, seed, ["AP", "nDCG@3"], beside)
        wrong = (["AP", "ARP"], "ERR", "alpha_nDCG@5", "x") if seed == 0 else ()
        for measures in ("nDCG@3", ["AP", "RR"], "ARP", *wrong):
            for convention in ("rankeval", "lightgbm", "xgboost", *("x" if seed == 0 else ())):
                for weight in (None, "query", "row", *(["negative"] if seed == 0 else ())):
                    for which in ("lightgbm_feval", "xgboost_metric"):
                        call = partial(watched, seed, which, measures, convention, weight)
                        yield f"{which}/{measures}/{convention}/{weight}/{seed}", call


def scored(seed: int, measures: Any, beside: str, **options: Any) -> Any:
    """Score an estimator on made rows, with the query ids given in one way or another."""
    data = rk.datasets.make_ranking(6, (2, 7), 3, rng=seed)
    X, y, told = data.X, data.y, {"qid": data.qid}
    if beside in ("group", "wrong-group", "none"):
        sizes = np.unique(data.qid, return_counts=True)[1]
        told = {} if beside == "none" else {"group": sizes[: None if beside == "group" else -1]}
    elif beside in ("weight", "uneven"):
        weights = np.unique(data.qid, return_inverse=True)[1] + 1.0
        told["sample_weight"] = weights if beside == "weight" else np.arange(len(y))
    elif beside in ("frame", "index"):
        X, told = pd.DataFrame(X, columns=list("abc")).assign(qid=data.qid), {}
        X, y = (X, y) if beside == "frame" else (X.set_index("qid"), pd.Series(y, index=pd.Index(data.qid, name="qid")))
    elif beside == "bound":
        options, told = options | {"qid": pd.Series(data.qid), "y": pd.Series(y)}, {}
        X, y = pd.DataFrame(X)[3:], pd.Series(y)[3:]
    elif beside == "short":
        told = {"qid": data.qid[:3]}
    scorer = rk.make_scorer(measures, **options)
    scores, found = today(scorer, First(), X, y, **told), today(scorer.evaluate, First(), X, y, **told)
    return scores, numbers(found), repr(scorer)


def watched(seed: int, which: str, measures: Any, convention: str, weight: str | None) -> Any:
    """Call the metric of a booster with arrays."""
    data = rk.datasets.make_ranking(6, (2, 7), 3, rng=seed)
    sizes, score = np.unique(data.qid, return_counts=True)[1], First().predict(data.X)
    ways = {"query": np.arange(6) + 0.5, "row": np.linspace(0, 1, len(score)), "negative": -np.ones(6)}
    metric, w = getattr(rk, which)(measures, convention=convention), ways.get(weight)
    if which == "lightgbm_feval":
        return metric(data.y, score, w, sizes), repr(metric), metric.maximize
    told = {"get_uint_info": lambda _: np.append(0, np.cumsum(sizes)), "get_label": lambda: data.y}
    matrix = SimpleNamespace(get_weight=lambda: [] if w is None else w, **told)
    return metric(score, matrix), repr(metric), metric.maximize


def calls() -> Calls:
    """Yield all calls of this part."""
    for group in (naming, scoring, giving, results, collecting, analysing, printing, loading, training):
        yield from group()
