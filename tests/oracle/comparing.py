"""Comparisons: tests, corrections, claims, collections, slices, folds, what is read of the result, and the assertions.

Worlds are small frames of scores, made from a kind and a seed; each call compares one and takes its facts by name.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import Ridge

import rankeval as rk
from rankeval import errors, testing

Calls = Iterator[tuple[str, Callable[[], object]]]

FORMER = {
    "alpha": ("confidence_level", lambda level: round(1 - level, 12) if isinstance(level, float) else level),
    "collection_weights": ("weights", lambda value: value),
    "unpaired": ("missing", lambda value: value),
}
"""Argument -> the name that it had before, and how its value was given."""

KINDS = ("random", "tied", "equal", "shifted", "clear", "sparse", "skewed", "five", "less", "names")
RESAMPLES = {"n_resamples": 199}
CORRECTIONS = ("holm", "bonferroni", "bh", "by", "max_t", "tukey", "none")


def renamed(function: Callable[..., Any], *given: Any, **arguments: Any) -> Any:
    """Call a function with its arguments, under their former names if it does not know the present ones."""
    known = set(inspect.signature(function).parameters)
    if "options" in known:  # those of `rankeval.compare`
        known |= set(inspect.signature(rk.compare).parameters)
    for name, (former, turned) in FORMER.items():
        if name in arguments and name not in known and former in known:
            arguments[former] = turned(arguments.pop(name))
    return function(*given, **arguments)


@cache
def world(kind: str, seed: int) -> dict[str, pd.DataFrame]:
    """Return systems -> scores by three measures; ids, their type, the order of rows and the sizes vary by seed."""
    rng = np.random.default_rng([KINDS.index(kind), seed])
    n = 5 if kind == "five" else int(rng.integers(6, 13))
    ids: list[Any] = [[f"q{i}" for i in range(n)], list(range(3, n + 3)), [i + 0.5 for i in range(n)]][seed % 3]
    measures = ["ARP", "AP", "RR"] if kind == "less" else ["nDCG@10", "AP", "P@5"]
    base = rng.random((n, 3)) ** (4 if kind == "skewed" else 1)
    names = ["bm25", "ltr", "bert", "v2"][: 2 + seed % 3]
    if kind == "names":
        names = ["a & b_1", "<b>x</b>", "50 %|y*", "système #4"][: len(names)]
    frames = {}
    for place, name in enumerate(names):
        scores = 0.6 * base + 0.4 * rng.random((n, 3)) ** (1 + place)
        if kind in ("equal", "shifted"):
            scores = base + (0.1 * place if kind == "shifted" else 0.0)
        elif kind == "clear":
            scores = 0.3 * base + 0.2 * place + 0.05 * rng.random((n, 3))
        elif kind == "sparse":
            scores = base.copy()
            scores[place % n] += 0.3 * place
        elif kind == "less":
            scores = scores * np.array([20.0, 1.0, 1.0])
        scores = np.round(4 * scores) / 4 if kind == "tied" else np.round(scores, 4)
        frame = pd.DataFrame(scores, index=pd.Index(ids, name="qid"), columns=measures)
        frames[name] = frame.iloc[rng.permutation(n)]
    return frames


def first(systems: Mapping[str, Any]) -> str:
    """Return the name that serves as baseline."""
    return next(iter(systems))


@cache
def judged(seed: int, lacking: bool = False) -> dict[str, rk.Evaluation]:
    """Return evaluations of runs with ties, unjudged documents, queries that a run lacks, and negative grades."""
    rng = np.random.default_rng([77, seed])
    queries = [f"q{i}" for i in range(int(rng.integers(6, 12)))]
    grades = [0, 0, 1, 2] if seed % 3 else [-1, 0, 1, 3]
    qrels = {q: {f"d{d}": int(rng.choice(grades)) for d in range(int(rng.integers(4, 10)))} for q in queries}
    runs = {}
    for place, name in enumerate(["bm25", "ltr", "bert"][: 2 + seed % 2]):
        found = queries[place:] if lacking else queries
        runs[name] = {
            q: {f"d{d}": float(np.round(rng.random() + 0.1 * qrels[q].get(f"d{d}", 0), 1 + seed % 3)) for d in docs}
            for q in found
            for docs in [sorted(rng.choice(8 + 6 * place, size=7, replace=False).tolist())]
        }
    measures = ["nDCG@5", "AP", "P@5", "RBP(p=0.8)", "gm_AP", "NumRelRet"]
    rules = {"missing": "skip"} if lacking else {}
    return {name: rk.evaluate(qrels, run, measures=measures, name=name, **rules) for name, run in runs.items()}


@cache
def collections(seed: int, form: str = "mapping") -> dict[str, Any]:
    """Return systems -> scores on several collections: as a mapping, an index of two levels, or a column."""
    kinds = [("random", "clear"), ("clear", "tied", "five"), ("sparse", "skewed", "random", "equal")][seed % 3]
    parts = {f"{kind} {i}": world(kind, seed + 3 * i) for i, kind in enumerate(kinds)}
    names = ["bm25", "ltr", "bert"][: min(map(len, parts.values()))]
    systems = {name: {part: frames[name] for part, frames in parts.items()} for name in names}
    if form == "mapping":
        return systems
    tall = {name: pd.concat(by, names=["collection", "qid"]) for name, by in systems.items()}
    return tall if form == "index" else {name: frame.reset_index() for name, frame in tall.items()}


@cache
def validated(seed: int) -> rk.CrossValidations:
    """Return the cross-validations of two or three estimators over the same folds, repeated for odd seeds."""
    data = rk.datasets.make_ranking(12 + seed, (4, 8), 4, noise=1.0, rng=seed)
    cv = rk.RepeatedQueryKFold(3, n_repeats=2, random_state=seed) if seed % 2 else rk.QueryKFold(3)
    rivals = {"ridge": Ridge(), "strong": Ridge(alpha=500.0), "blind": Ridge(alpha=1e6)}
    chosen = dict(list(rivals.items())[: 2 + seed % 2])
    return rk.cross_validate(chosen, data, measures=["nDCG@5", "AP", "RR"], cv=cv)


# fmt: off
FIELDS = (
    "table", "baseline", "test", "correction", "family", "alternative", "alpha", "n_resamples", "rng",
    "n_comparisons", "notes", "primary", "claim", "margin", "unseen", "grouped", "interaction", "means", "bounds",
    "condensed", "first_two", "standing", "caption", "headline",
)
# fmt: on


def told(compared: rk.Comparison, name: str, *given: Any) -> Any:
    """Return a fact of a comparison: its own, of its settings, or of the module that reads what it keeps."""
    for holder in (compared, getattr(compared, "settings", None)):
        if hasattr(holder, name):
            fact = getattr(holder, name)
            return fact(*given) if callable(fact) else fact
    from rankeval.comparison import record

    if name in ("folds", "first_two"):
        return getattr(record.kept(compared), name)
    if name == "has_pairs":
        return not compared.table.empty
    return len(record.part_sizes(compared)) if name == "n_parts" else getattr(record, name)(compared, *given)


def with_primary(compared: rk.Comparison, name: str) -> rk.Comparison:
    """Return a comparison with another primary measure."""
    if hasattr(compared, "primary"):
        return replace(compared, primary=name)
    from rankeval.comparison.record import with_settings

    return with_settings(compared, primary=name)


def facts(compared: rk.Comparison) -> dict[str, Any]:
    """Return the documented facts of a comparison."""
    found = {name: told(compared, name) for name in FIELDS}
    if (folds := told(compared, "folds")) is not None:
        found["folds"] = [tuple(folds.systems), tuple(folds.measures), folds.scores, folds.ratio]
    return found


def compared(systems: Any, read: Callable[[rk.Comparison], Any] = facts, **options: Any) -> Any:
    """Compare systems, and return what is read of the result."""
    return read(renamed(rk.compare, systems, **{**RESAMPLES, **options}))


def asked(results: Any, read: Callable[[rk.Comparison], Any] = facts, **options: Any) -> Any:
    """Compare cross-validations, and return what is read of the result."""
    return read(renamed(results.compare, **options))


def on(make: Callable[..., Any], *given: Any, read: Callable[..., Any] = compared, **options: Any) -> Any:
    """Read what is made of seeds and the like, with options."""
    return read(make(*given), **options)


def call(name: str, function: Callable[..., Any], *given: Any, **options: Any) -> tuple[str, Callable[[], object]]:
    """Return a call under a key of its name, its plain arguments and its options."""
    shown = [str(one) for one in given if isinstance(one, (str, int)) and not isinstance(one, bool)]
    said = [f"{k}={v if not callable(v) else v.__name__}" for k, v in options.items()]
    return "/".join([name, *shown, ", ".join(said)]), partial(function, *given, **options)


@cache
def tests() -> list[str]:
    """Return the names of the tests over queries."""
    kinds = rk.list_tests()["kind"]
    return kinds.index[kinds == "test"].tolist()


def of_tests() -> Calls:
    """Yield all tests with all corrections, claims, alternatives and levels."""
    for place, (test, correction) in enumerate(product(tests(), CORRECTIONS)):
        for seed, kind in enumerate(KINDS):
            if (seed + place) % 5 > 2:
                continue
            pair = {} if (place + seed) % 2 or correction == "tukey" else {"baseline": first(world(kind, 0))}
            options = {"test": test, "correction": correction, "rng": seed, "family": ("all", "measure")[seed % 2]}
            yield call("compare", on, world, kind, seed + place % 4, **options, **pair)
    claims = [("better", 0.0), ("better", 0.03), ("not_worse", 0.02), ("not_worse", 0.3), ("equivalent", 0.05)]
    claims += [("equivalent", 0.4)]
    for place, (test, (claim, margin), unseen) in enumerate(product(tests(), claims, (0, 1, 3))):
        for turn in range(2):
            kind = KINDS[(place + 5 * turn) % len(KINDS)]
            options = {"test": test, "claim": claim, "margin": margin, "unseen": unseen, "rng": turn}
            options |= {} if claim == "equivalent" and turn else {"baseline": first(world(kind, 0))}
            options |= {"correction": CORRECTIONS[place % 5], "alpha": (0.05, 0.1, 0.2)[place % 3]}
            yield call("claim", on, world, kind, place % 5, **options)
    sides = product(tests(), ("greater", "less", "two-sided"), (0.01, 0.1, 0.25), ("random", "less"))
    for place, (test, side, alpha, kind) in enumerate(sides):
        options = {"test": test, "alternative": side, "alpha": alpha, "correction": CORRECTIONS[place % 5]}
        options |= {"measures": ["AP", ("ARP", "nDCG@10")[kind == "random"]], "n_resamples": (99, 399)[place // 2 % 2]}
        yield call("side", on, world, kind, place % 6, **options)


def shapes(seed: int) -> dict[str, Any]:
    """Return the same scores in the forms that `compare` takes."""
    import polars as pl
    import pyarrow as pa

    systems = world("random", seed)
    return {
        "index": systems,
        "column": {name: frame.reset_index() for name, frame in systems.items()},
        "dict": {name: frame.to_dict("index") for name, frame in systems.items()},
        "polars": {name: pl.from_pandas(frame.reset_index()) for name, frame in systems.items()},
        "arrow": {name: pa.Table.from_pandas(frame.reset_index()) for name, frame in systems.items()},
        "counted": {name: frame.assign(relevant=2, weight=1.0, NumRel=3.0) for name, frame in systems.items()},
        "short": {name: frame.sort_index().iloc[place:] for place, (name, frame) in enumerate(systems.items())},
        "apart": {name: frame.set_axis([f"{name}{i}" for i in range(len(frame))]) for name, frame in systems.items()},
    }


def shape(seed: int, form: str) -> Any:
    """Return scores in one form."""
    return shapes(seed)[form]


def of_data() -> Calls:
    """Yield forms of scores, missing queries, evaluations with unjudged documents, collections and slices."""
    for seed, form, unpaired in product(range(7), shapes(0), ("error", "skip")):
        measures = (None, "AP", ["AP", "nDCG@10"])[seed % 3]
        yield call("shape", on, shape, seed, form, unpaired=unpaired, test=tests()[seed % 3], measures=measures)
    for seed, test, unjudged in product(range(8), ("t", "wilcoxon", "bootstrap"), (None, "skip")):
        options = {"test": test, "unjudged": unjudged, "correction": CORRECTIONS[seed % 5]}
        options |= {"baseline": "bm25"} if seed % 4 else {}
        options |= {"measures": ["P@5", "NumRelRet"]} if seed % 5 == 4 else {}
        options |= {"claim": "not_worse", "margin": 0.2} if seed % 4 == 2 else {}
        yield call("judged", on, judged, seed, **options)
        if unjudged:
            yield call("judged, lacking", on, judged, seed, True, unpaired=("error", "skip")[seed % 2], test=test)
    weights = ("collections", "queries", "inverse_variance")
    for seed, share, correction in product(range(9), weights, ("holm", "max_t", "none", "bh", "bonferroni")):
        options = {"collection_weights": share, "correction": correction, "rng": seed, "test": tests()[seed]}
        options |= {"baseline": "bm25"} if (seed + len(correction)) % 2 else {}
        options |= [{}, {"alternative": "greater"}, {"family": "measure"}][seed % 3]
        yield call("collections", on, collections, seed, ("mapping", "index", "column")[(seed // 3) % 3], **options)
    claims = (("better", 0.01), ("not_worse", 0.1), ("equivalent", 0.3))
    for seed, (claim, margin), share in product(range(6), claims, weights):
        options = {"claim": claim, "margin": margin, "collection_weights": share, "unseen": seed % 3}
        options |= {"baseline": "bm25", "measures": "AP", "test": tests()[seed]}
        yield call("collections, claims", on, collections, seed, **options)
    for seed, unpaired in product(range(25), ("error", "skip")):
        yield call("collections, lacking", on, lame, seed, unpaired=unpaired, measures="AP")
    for seed, by in product(range(12), attributes(world("random", 0))):
        kind = KINDS[seed % len(KINDS)]
        options = {"test": tests()[seed % 9], "correction": CORRECTIONS[seed % 5], "rng": seed}
        options |= {"baseline": first(world(kind, 0))} if seed % 2 else {}
        yield call("by", sliced, kind, seed + 9, by, **options)
    for seed, by in product(range(6), ("relevant", "judged", "retrieved", "nothing")):
        yield call("by count", on, judged, seed, by=by, measures=["AP", "P@5"])


def sliced(kind: str, seed: int, by: str, **options: Any) -> Any:
    """Compare by an attribute of the queries."""
    systems = world(kind, seed)
    return compared(systems, by=attributes(systems)[by], **options)


def lame(seed: int) -> dict[str, Any]:
    """Return scores on collections of which one lacks a query, a collection or a measure in one system."""
    systems = {name: dict(parts) for name, parts in collections(seed).items()}
    parts = systems["ltr"]
    part = first(parts)
    if seed % 3 == 0:
        parts.pop(part)
    else:
        parts[part] = parts[part].iloc[2:] if seed % 3 == 1 else parts[part][["nDCG@10"]]
    return systems


def attributes(systems: Mapping[str, pd.DataFrame]) -> dict[str, Any]:
    """Return attributes of the queries of systems, in the forms that ``by=`` takes; some are refused."""
    ids = sorted(systems[first(systems)].index)
    half = ["long" if i % 2 else "short" for i in range(len(ids))]
    return {
        "series": pd.Series(half, index=ids, name="length"),
        "mapping": dict(zip(ids, half, strict=True)),
        "one slice": pd.Series([1.5] * len(ids), index=ids, name="number"),
        "first five": pd.Series([i >= 5 for i in range(len(ids))], index=ids, name="late"),
        "frame": pd.DataFrame({"length": half, "kind": "all kinds"}, index=ids),
        "each": pd.Series(ids, index=ids, name="own"),
        "array": half,
        "named measure": pd.Series(half, index=ids, name="measure"),
        "half known": pd.Series(half[:3], index=ids[:3], name="length"),
    }


def two(seed: int, question: str, one: str, other: str) -> Any:
    """Compare two of the estimators that were cross-validated."""
    return facts(validated(seed)[one].compare(validated(seed)[other], question=question))


def of_folds() -> Calls:
    """Yield cross-validations: the two questions, with their options and what they refuse."""
    claims = [{}, {"claim": "better", "margin": 0.01}, {"claim": "not_worse", "margin": 0.1}]
    claims += [{"claim": "equivalent", "margin": 0.2}, {"alternative": "less"}]
    for seed, question, claim, correction in product(range(4), ("algorithms", "models"), claims, CORRECTIONS[:5]):
        options = {"question": question, "correction": correction, **claim}
        options |= {"baseline": "ridge"} if claim.get("margin") or seed % 2 else {}
        options |= {"alpha": 0.1, "measures": ["AP", "nDCG@5"]} if correction == "bh" else {}
        options |= {"family": "measure"} if correction == "holm" else {}
        options |= RESAMPLES if question == "models" else {}
        yield call("folds", on, validated, seed, read=asked, **options)
    wrong = [{}, {"question": "both"}, {"question": "algorithms", "test": "t"}, {"question": "models", "baseline": "x"}]
    wrong += [{"question": "algorithms", "unjudged": "skip"}, {"question": "algorithms", "measures": "P@3"}]
    wrong += [{"question": "algorithms", "claim": "better"}, {"question": "models", "test": "corrected_resampled_t"}]
    for seed, options in product(range(3), wrong):
        yield call("folds, wrong", on, validated, seed, read=asked, **options)
    for seed, question in product(range(4), ("algorithms", "models")):
        for one, other in (("ridge", "strong"), ("strong", "ridge"), ("ridge", "ridge")):
            yield call("folds, two", two, seed, question, one, other)
        for name in READINGS:
            yield call("folds, read", read_folds, seed, question, name)


def read_folds(seed: int, question: str, name: str) -> Any:
    """Read one thing of a comparison of cross-validations."""
    return asked(validated(seed), READINGS[name], question=question, baseline="ridge")


def choice(best: Any) -> list[Any]:
    """Return the facts of a choice."""
    names = ("system", "measure", "baseline", "estimate", "ci_low", "ci_high", "n_candidates")
    return [*(getattr(best, name) for name in names), str(best)]


def kept(made: rk.Comparison) -> Any:
    """Return a comparison as it is read back from JSON, and what the JSON says."""
    text = made.to_json()
    said = {name: json.loads(text)[name] for name in ("headline", "table", "notes", "n_comparisons", "bounds")}
    back = rk.Comparison.from_json(text)
    return [said, facts(back), len(back.evaluations), choice(back.best)]


READINGS: dict[str, Callable[[rk.Comparison], Any]] = {
    "best": lambda c: choice(c.best),
    "best by": lambda c: [choice(with_primary(c, name).best) for name in c.table["measure"].unique()],
    "findings": lambda c: c.findings,
    "effects": lambda c: c.effects,
    "ranks": lambda c: c.ranks,
    "bayes": lambda c: c.bayes(rope=0.02),
    "bayes, rope 0": lambda c: c.bayes(rope=0.0),
    "bayes, ranks": lambda c: c.bayes(rope=0.05, method="signed_rank", n_samples=300, rng=3),
    "bayes, wrong": lambda c: c.bayes(rope=-1.0),
    "overall": lambda c: facts(told(c, "overall")),
    "main": lambda c: [told(c, "main_measure"), told(c, "best_first")],
    "levels": lambda c: [told(c, name) for name in ("alpha", "interval_level", "adjusted_level", "shown_level")],
    "rows": lambda c: [told(c, name) for name in ("shown", "parted", "gains")],
    "directions": lambda c: [told(c, name) for name in ("directions", "part_of_row", "n_parts", "has_pairs")],
    "words": lambda c: [told(c, "correction_words"), *(told(c, "family_words", n) for n in (1, 3))],
    "json": kept,
    "text": str,
    "noted": lambda c: facts(told(c, "with_notes", "one", "two", "one")),
    "evaluations": lambda c: list(c.evaluations),
}


def cases() -> dict[str, Callable[..., Any]]:
    """Return comparisons of every kind, which are read, printed and drawn."""
    made = {}
    for seed, kind in enumerate(KINDS):
        systems = world(kind, seed + 1)
        made[f"{kind} against one"] = partial(compared, systems, baseline=first(systems))
        made[f"{kind} pairs"] = partial(compared, systems, correction="max_t", test=tests()[seed % 9])
    three = world("clear", 4)
    made["one measure"] = partial(compared, three, measures="AP", correction="none")
    made["pairs by measure"] = partial(compared, three, family="measure", correction="tukey")
    made["bh"] = partial(compared, three, correction="bh", baseline="ltr")
    made["not worse"] = partial(compared, three, claim="not_worse", margin=0.05, baseline="bm25")
    made["equivalent"] = partial(compared, three, claim="equivalent", margin=0.25)
    made["greater"] = partial(compared, three, alternative="greater", correction="max_t", baseline="bm25")
    made["collections"] = lambda **o: compared(collections(4), baseline="bm25", **o)
    made["collections, pairs"] = lambda **o: compared(collections(3), correction="max_t", **o)
    made["slices"] = lambda **o: compared(world("random", 7), by=attributes(world("random", 7))["series"], **o)
    made["judged"] = lambda **o: compared(judged(1), baseline="bm25", unjudged="skip", **o)
    made["judged, pairs"] = lambda **o: compared(judged(3), correction="max_t", **o)
    made["algorithms"] = lambda **o: asked(validated(1), question="algorithms", baseline="ridge", **o)
    made["models"] = lambda **o: asked(validated(1), question="models", **o)
    return made


def drawn(compared: rk.Comparison, **options: Any) -> Any:
    """Return what a figure holds: texts, lines, areas and points of its axes."""
    figure = compared.plot(**options)
    return [list(figure.get_size_inches()), *map(_held, figure.axes)]


def _held(axes: Any) -> list[Any]:
    ticks = [[one.get_text() for one in labels] for labels in (axes.get_xticklabels(), axes.get_yticklabels())]
    points = [[one.get_offsets(), *(path.vertices for path in one.get_paths())] for one in axes.collections]
    legend = axes.get_legend()
    return [
        [axes.get_title(), axes.get_xlabel(), axes.get_ylabel(), ticks, list(axes.get_xlim()), list(axes.get_ylim())],
        [one.get_text() for one in axes.texts],
        [one.get_xydata() for one in axes.lines],
        [one.get_path().vertices for one in axes.patches],
        [np.ma.getdata(one) for one in points_of(points)],
        [np.ma.getdata(one.get_array()) for one in axes.images],
        [] if legend is None else [one.get_text() for one in legend.get_texts()],
    ]


def points_of(nested: list[list[Any]]) -> list[Any]:
    """Return the arrays of nested lists."""
    return [np.asarray(one) for each in nested for one in each]


@cache
def made(case: str) -> rk.Comparison:
    """Return the comparison of a case."""
    found: rk.Comparison = cases()[case](read=lambda c: c)
    return found


def form_of(case: str, form: str, **options: Any) -> Any:
    """Return a comparison printed in a form, or its figure."""
    return drawn(made(case), **options) if form == "plot" else getattr(made(case), form)(**options)


def reading_of(name: str, case: str) -> Any:
    """Return one reading of a comparison."""
    return READINGS[name](made(case))


def of_reading() -> Calls:
    """Yield what a comparison says: attributes, methods, tables in all forms, and figures."""
    for case, name in product(cases(), READINGS):
        yield call("read", reading_of, name, case)
    systems = {"layout": "systems"}
    layouts: list[dict[str, Any]] = [{}, {"digits": 2}, systems, {**systems, "spread": "se"}, {**systems, "gain": True}]
    layouts += [{**systems, "spread": "interval", "digits": 3}, {**systems, "against": "ltr"}]
    layouts += [{**systems, "against": ["ltr", "bm25"]}]
    kinds: list[dict[str, Any]] = [{}, {"kind": "intervals"}, {"kind": "forest"}, {"kind": "matrix"}, {"kind": "ranks"}]
    kinds += [{"kind": "queries", "system": "ltr"}, {"system": "bert", "baseline": "bm25", "measure": "AP"}]
    kinds += [{"measure": "AP"}, {"kind": "pie"}, {"kind": "matrix", "system": "ltr"}]
    for place, (case, form) in enumerate(product(cases(), ("to_markdown", "to_latex", "to_html", "plot"))):
        ways = kinds if form == "plot" else layouts
        few = case.split()[0] in KINDS
        for options in [ways[place % len(ways)], ways[(place + 3) % len(ways)]] if few else ways:
            more = {"label": "tab:one"} if form == "to_latex" and place % 8 > 3 else {}
            yield call("form", form_of, case, form, **options, **more)
    for wrong in ({"layout": "x"}, {"spread": "se"}, {**systems, "spread": "x"}, {"digits": -1}, {"gain": True}):
        yield call("form, wrong", form_of, "bh", "to_markdown", **wrong)
    for text in ("", "{}", "[]", "null", '{"table": 1}', '{"headline": "a", "table": {}}', "not JSON"):
        yield call("from_json", on, rk.Comparison.from_json, text, read=facts)


WRONG: dict[str, list[Any]] = {
    "baseline": ["none such", 3, ["bm25"], ""],
    "measures": ["none such", [], "P", ["AP", "AP"], 5, "NumRel"],
    "test": ["none such", "", None, "corrected_resampled_t", "T"],
    "correction": ["none such", None, "Holm", 3],
    "family": ["none such", None, ""],
    "alpha": [1.5, 0.0, 1.0, -0.1, float("nan"), "x", None],
    "alternative": ["both", None, "better"],
    "claim": ["worse", None, "not_worse", "equivalent", "better"],
    "margin": [-0.1, float("nan"), "x", 0.1, None, float("inf")],
    "unseen": [-1, 0.5, "x", None, True],
    "by": ["judged", [1, 2], 3, {}],
    "collection_weights": ["none such", None, [1.0, 2.0]],
    "unpaired": ["zero", None, True],
    "unjudged": ["zero", "", True],
    "n_resamples": [0, -1, 1.5, "x", None, True],
    "rng": [-1, "x", 1.5],
}


def of_wrong() -> Calls:
    """Yield what `compare` refuses: options out of range, and scores that are none."""
    for (name, values), kind in product(WRONG.items(), ("random", "less")):
        for value in values:
            yield call(f"wrong {type(value).__name__}", on, world, kind, 2, **{name: value})
    claims = ("better", "not_worse", "equivalent")
    for claim, side, correction in product(claims, ("greater", "less"), ("holm", "tukey", "max_t")):
        options = {"claim": claim, "margin": 0.1, "alternative": side, "correction": correction, "baseline": "bm25"}
        yield call("wrong", on, world, "random", 2, **options)
    for name, test in product(odd(), ("t", "randomization", "wilcoxon")):
        yield call("odd scores", on, lambda n: odd()[n], name, test=test)
    for rules in ({"ties": "docid"}, {"convention": "sklearn"}, {"convention": "trec_eval-10"}, {"judgments": "rows"}):
        yield f"conventions/{rules}", partial(_conventions, rules)
    yield "evaluations of other judgments", lambda: compared({"a": judged(1)["bm25"], "b": judged(4)["bm25"]})


def odd() -> dict[str, Any]:
    """Return systems of which one has scores that are none, or odd ones; or that are no systems."""
    good = world("random", 2)["bm25"]
    others: dict[str, Any] = {
        "nan": good.mask(good > 0.7),
        "infinite": good.assign(AP=np.inf),
        "text": good.assign(AP="x"),
        "repeated": pd.concat([good, good.iloc[:1]]),
        "repeated column": good.set_axis(["AP", "AP", "P@5"], axis=1),
        "no rows": good.iloc[:0],
        "one row": good.iloc[:1],
        "no measures": good[[]],
        "other measures": good.set_axis(["A", "B", "C"], axis=1),
        "missing id": good.set_axis([None, *good.index[1:]]),
        "number": 3,
        "list": [0.1, 0.2],
        "array": good.to_numpy(),
        "nothing": None,
        "empty mapping": {},
        "constant": good * 0 + 1,
        "booleans": good > 0.5,
        "whole numbers": (good * 10).astype(int),
        "huge": good * 1e300,
        "tiny": good * 1e-300,
    }
    pairs: dict[str, Any] = {name: {"a": good, "b": other} for name, other in others.items()}
    pairs |= {"both one row": {"a": good.iloc[:1], "b": good.iloc[:1] * 2}, "one system": {"a": good}, "none": {}}
    return pairs | {"list of frames": [good, good], "a frame": good, "None": None}


def _conventions(rules: dict[str, Any]) -> Any:
    qrels = {f"q{i}": {"d1": i % 3, "d2": 1, "d3": 0} for i in range(6)}
    run = {f"q{i}": {"d1": 1.0, "d2": 1.0 + i % 2, "d4": 0.5} for i in range(6)}
    return compared({"a": rk.evaluate(qrels, run, measures="AP"), "b": rk.evaluate(qrels, run, measures="AP", **rules)})


def of_variance() -> Calls:
    """Yield analyses of variance, with and without replicates."""
    forms = ("index", "short", "dict")
    for seed, measure, unpaired, form in product(range(10), ("AP", None), ("error", "skip"), forms):
        yield call("anova", on, shape, seed, form, read=analysed, measure=measure, unpaired=unpaired)
    for seed, queries, replicates in product(range(15), ("random", "fixed"), ("crossed", "nested")):
        options = {"queries": queries, "replicates": replicates, "measure": "AP"}
        yield call("anova, replicates", on, replicated, seed, read=analysed, **options)
    wrong = ({"measure": "x"}, {"queries": "x"}, {"replicates": "x"}, {"unpaired": "x"}, {"measure": ["AP", "RR"]})
    for options in wrong:
        yield call("anova, wrong", on, replicated, 1, read=analysed, **options)
    uneven = {"a": {1: world("random", 1)["bm25"]}, "b": {2: world("random", 1)["ltr"]}}
    yield "anova, uneven", partial(analysed, uneven, measure="AP")


def replicated(seed: int) -> dict[str, dict[Any, pd.DataFrame]]:
    """Return systems -> replicate -> scores, with effects of query, system and replicate."""
    rng = np.random.default_rng([88, seed])
    shape = int(rng.integers(4, 9)), 2
    base, lost = rng.random(shape), seed % 5
    return {
        f"s{place}": {
            shard: pd.DataFrame(
                base + 0.1 * place + 0.2 * shard * (lost != 1) + lost * 0.1 * rng.random(shape)
            ).set_axis(["AP", "RR"], axis=1)
            for shard in range(1 + seed % 4)
        }
        for place in range(2 + seed % 3)
    }


def analysed(systems: Any, **options: Any) -> Any:
    """Return the facts of an analysis of variance."""
    found = renamed(rk.anova, systems, **options)
    names = (
        "table components measure systems n_queries n_replicates queries replicates epsilon p_corrected notes caption"
    )
    return [getattr(found, name) for name in names.split()] + texts(found)


def texts(found: Any) -> list[str]:
    """Return the forms in which a small result is printed."""
    return [str(found), found.to_markdown(), found.to_latex(), found.to_latex(label="tab:x")]


def ranked(systems: Any, **options: Any) -> Any:
    """Return the rank intervals of systems."""
    return renamed(rk.rank_intervals, systems, **options)


def of_orders() -> Calls:
    """Yield rank intervals and agreements of orders."""
    for place, (kind, correction) in enumerate(product(KINDS, ("max_t", "holm", "bonferroni", "tukey", "bh", "none"))):
        options = {"measure": None if place % 9 == 8 else "AP", "correction": correction, "rng": place}
        options |= {"test": tests()[place % 9], "alpha": (0.05, 0.2)[place % 2]}
        for n in (99, 500):
            yield call("rank_intervals", on, world, kind, place % 7, read=ranked, **options, n_resamples=n)
    for seed, unpaired in product(range(25), ("error", "skip")):
        options = {"measure": "AP", "unpaired": unpaired, "n_resamples": 199}
        yield call("rank_intervals, lacking", on, shape, seed, "short", read=ranked, **options)
    for seed, kind, truth in product(range(3), KINDS, (None, "AP")):
        yield call(
            "orders", on, world, kind, seed, read=agreement, truth=truth, measures=(None, ["AP", "P@5"])[seed % 2]
        )
    for seed, unpaired, truth in product(range(12), ("error", "skip"), (None, "b")):
        options = {"truth": truth, "unpaired": unpaired}
        yield call("orders of means", on, means, seed, read=agreement, **options)
        yield call("orders, lacking", on, shape, seed, "short", read=agreement, **{**options, "truth": truth and "AP"})
    for seed, truth in product(range(12), (None, "clear 0", "AP")):
        yield call("orders on collections", on, collections, seed, read=agreement, truth=truth, measure="AP")
    for name, wrong in {
        "one": means(0)[["a"]],
        "text": means(0).assign(a="x"),
        "turned": means(0).T,
        "list": [1],
    }.items():
        yield f"orders, wrong/{name}", partial(agreement, wrong)
    yield "orders, wrong/order", lambda: rk.order_agreement(means(0)).swaps("a", "none such")


def means(seed: int) -> pd.DataFrame:
    """Return a frame of means: systems by orders, with ties, and for some seeds with a hole."""
    rng = np.random.default_rng([99, seed])
    n = int(rng.integers(3, 9))
    frame = pd.DataFrame(
        np.round(rng.random((n, 3)), 1 + seed % 2), index=[f"s{i}" for i in range(n)], columns=[*"abc"]
    )
    if seed % 3 == 2:
        frame.iloc[0, 1] = np.nan
    return frame.rename_axis("system").reset_index() if seed % 4 == 3 else frame


def agreement(systems: Any, measure: str | None = None, **options: Any) -> Any:
    """Return the facts of an agreement of orders."""
    found = renamed(rk.order_agreement, systems, **options)
    pairs = [(row["a"], row["b"]) for _, row in found.table.iterrows()]
    swaps = [found.swaps(a, b, measure=measure) for a, b in pairs]
    return [found.table, found.means, found.truth, found.notes, found.caption, found.ranks, swaps, *texts(found)]


def of_numbers() -> Calls:
    """Yield numbers of queries needed, learning curves, explanations of differences, and the catalogue of tests."""
    pairs, levels = ((0.05, 0.15), (-0.3, 0.2), (1e-3, 0.1)), product((0.01, 0.05, 0.2), (0.5, 0.8, 0.95))
    for (difference, sd), (alpha, power) in product(pairs, list(levels)):
        for more in ({}, {"alternative": "greater"}, {"claim": "better", "margin": 0.01}):
            yield call(
                "topics_needed", rk.topics_needed, difference=difference, sd=sd, alpha=alpha, power=power, **more
            )
    numbers = product(("not_worse", "equivalent"), (0.01, 0.1, 0.5), (0, 1, 4), (0.7, 1.0, 20.0))
    for claim, margin, unseen, loss in numbers:
        options = {"claim": claim, "margin": margin, "unseen": unseen, "greatest_loss": loss}
        yield call("topics_needed", rk.topics_needed, difference=0.0, sd=0.12, **options)
    wrong = [{"difference": 0.0}, {"sd": -1.0}, {"sd": 0.0}, {"sd": "x"}, {"alpha": 0.0}, {"power": 1.0}, {"alpha": 2}]
    wrong += [
        {"claim": "x"},
        {"alternative": "x"},
        {"difference": float("nan")},
        {"claim": "not_worse"},
        {"unseen": -1},
    ]
    for options in wrong:
        yield call("topics_needed, wrong", rk.topics_needed, **{"difference": 0.1, "sd": 0.2, **options})
    for seed, sizes in product(range(12), ([3, 0.5], [1.0], (0.2, 0.6, 1.0), [2, 4, 6], [0], [1.5], [])):
        options = {"sizes": sizes, "measures": ("AP", ["nDCG@5", "RR"])[seed % 2], "cv": 2 + seed % 2, "rng": seed}
        yield call("learning_curve", curve, seed, **options)
    for seed, measure in product(range(12), ("nDCG@5", "AP", "P@3", "RR", "RBP", "ERR@5", "bpref")):
        yield call("explain", explained, seed, measure)
    for values in ((0.1,), (0.1, float("nan")), "x", ("a", "b"), (1, 2, 3)):
        yield call("explain, wrong", explained, 1, "AP", values=values)


def curve(seed: int, **options: Any) -> Any:
    """Return a learning curve without its times."""
    data = rk.datasets.make_ranking(9 + seed, (3, 7), 3, noise=1.0, rng=seed)
    found = renamed(rk.learning_curve, Ridge(), data, **options)
    timed = [name for name in found.table if name.endswith("_seconds")]
    axes = found.plot().axes[0]
    shown = [[one.get_xydata() for one in axes.lines], axes.get_xlabel(), axes.get_ylabel()]
    return [
        found.table.drop(columns=timed),
        found.mean().drop(columns=timed),
        found.labels,
        found.rng,
        repr(found),
        shown,
    ]


def explained(seed: int, measure: str, values: Any = None) -> Any:
    """Return why two numbers differ: those of two conventions, or rounded ones."""
    rng = np.random.default_rng([66, seed])
    qid = np.repeat(np.arange(3 + seed % 2), 5)
    labels, scores = rng.integers(0, 3, len(qid)), np.round(rng.random(len(qid)), 1 if seed % 2 else 6)
    if values is None:
        exact = "P@3" if measure in ("RBP", "bpref", "ERR@5") else measure
        pair = [rk.evaluate(labels, scores, qid=qid, measures=exact, convention=c) for c in ("rankeval", "lightgbm")]
        values = [float(ev.aggregate().iloc[0]) for ev in pair]
        values = tuple(f"{one:.4f}" for one in values) if seed % 3 else (values[0], round(values[1] + 0.01, 3))
    options = {"docid": np.arange(len(qid)), "tolerance": 1e-3} if seed % 4 == 1 else {}
    found = rk.explain_difference(labels, scores, qid=qid, measure=measure, values=values, **options)
    return [
        getattr(found, name) for name in ("measure", "values", "table", "differences", "sentence", "alternatives")
    ] + [str(found)]


def checked(function: Callable[..., Any], *sides: Any, whole: bool = False, **options: Any) -> Any:
    """Return the facts of a check that passes; one that fails is raised, or returned with its whole message."""
    testing.CHECKS.clear()
    try:
        found = renamed(function, *sides, **options)
    except errors.CheckFailed as failed:
        if whole:
            return [str(failed), isinstance(failed, AssertionError), [dict(one) for one in testing.CHECKS]]
        raise
    if found is None:
        return [dict(one) for one in testing.CHECKS]
    names = ("claim", "table", "test", "alpha", "worst", "notes", "unseen", "passed", "verdicts")
    return [*(getattr(found, name) for name in names), found.failure(), found.rows(), str(found)]


def _saved(function: Callable[..., Any], seed: int, **options: Any) -> Any:
    one, other = judged(seed)["bm25"], judged(seed)["ltr"]
    one.save("one")
    other.save("other")
    return checked(function, "one", "other", **options)


GATES = {"no_regression": testing.assert_no_regression, "not_worse": testing.assert_not_worse}


def gated(gate: str, kind: str, seed: int, turned: int, **options: Any) -> Any:
    """Check the first two systems of a world, in either order; of the kind "short" one lacks a query."""
    systems = list((shape(seed, kind) if kind == "short" else world(kind, seed)).values())[:2]
    return checked(GATES[gate], *(systems[::-1] if turned else systems), **options)


def equal(kind: str, seed: int, change: str, **options: Any) -> Any:
    """Check that changed scores equal the scores of a system."""
    old = world(kind, seed)[first(world(kind, seed))]
    others = {"same": old.iloc[::-1], "near": old + 1e-3, "rounded": old.round(1), "short": old.iloc[2:]}
    others |= {"fewer": old[["AP"]], "nan": old.mask(old > 0.8)}
    return checked(testing.assert_evaluations_equal, others[change], old, **options)


def of_assertions() -> Calls:
    """Yield the assertions for tests of a release, which pass and fail."""
    for place, (gate, kind, margin) in enumerate(product(GATES, KINDS, (0.0, 0.02, 0.15, 0.6))):
        options = {"margin": margin, "alpha": (0.05, 0.1, 0.2)[place % 3], "whole": place % 3 > 0, "rng": place}
        options |= {"measure": ("AP", ["AP", "RR" if kind == "less" else "P@5"])[place % 2], "test": tests()[place % 9]}
        options |= {"unseen": place % 3} if gate == "not_worse" else {}
        for turned in range(2):
            yield call(gate, gated, gate, kind, place % 5, turned, **options, **RESAMPLES)
    for gate, seed, unpaired in product(GATES, range(13), ("error", "skip")):
        options = {"margin": 0.1, "measure": "AP", "unpaired": unpaired, "whole": True}
        yield call("lacking", gated, gate, "short", seed, 0, **options)
        yield call(f"saved {gate}", _saved, GATES[gate], seed, **options)
    wrong = [{"margin": -1.0}, {"margin": "x"}, {"alpha": 0.3}, {"alpha": "x"}, {"test": "x"}, {"measure": "x"}]
    wrong += [{"measure": None}, {"unpaired": "x"}, {"n_resamples": 0}]
    for gate, options in product(GATES, wrong):
        yield call("wrong gate", gated, gate, "random", 2, 0, **{"margin": 0.1, "measure": "AP", **options})
    changes = ("same", "near", "rounded", "short", "fewer", "nan")
    for seed, atol, change in product(range(12), (1e-9, 0.05, 0.0), changes):
        yield call("equal", equal, KINDS[seed % 10], seed, change, atol=atol, whole=seed % 2 == 1)
    for seed in range(8):
        yield call("equal, saved", _saved, testing.assert_evaluations_equal, seed, whole=True)
    for name, sides in {"path": ("none such", 3), "number": (3, 4), "nothing": (None, None)}.items():
        yield f"equal, wrong/{name}", partial(checked, testing.assert_evaluations_equal, *sides)
    yield call("equal, wrong", equal, "random", 2, "same", atol=-1.0)


def command(*arguments: str, seed: int = 0) -> Any:
    """Run ``rankeval compare`` on files of a small collection; return exit code, output and messages."""
    from rankeval.cli import main

    rng = np.random.default_rng([55, seed])
    names = [f"{name}.run" for name in ("bm25", "ltr", "bert")][: 2 + seed % 2]
    for name in ("qrels", *names):
        rows = [
            f"q{q} 0 d{d} {rng.integers(0, 3)}" if name == "qrels" else f"q{q} Q0 d{d} 1 {rng.random():.2f} {name}"
            for q in range(7)
            for d in range(6)
        ]
        Path(name).write_text("\n".join(rows) + "\n")
    out, err, before, show = io.StringIO(), io.StringIO(), sys.argv, warnings.showwarning
    sys.argv = ["rankeval", "compare", "qrels", *names, *arguments]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
        code: Any = 0
    except SystemExit as stop:
        code = stop.code
    finally:
        sys.argv, warnings.showwarning = before, show
    if "json" in arguments and not code:
        said = json.loads(out.getvalue())
        return [code, [said[name] for name in ("headline", "table", "notes")], err.getvalue()]
    return [code, out.getvalue(), err.getvalue()]


def page(**config: Any) -> str:
    """Run an experiment and return its report without figures, times, digests and versions."""
    ridge = "sklearn.linear_model.Ridge"
    rankers = {"plain": {"estimator": ridge}, "tuned": {"estimator": ridge, "grid": {"alpha": [0.1, 100.0]}}}
    whole = {"name": "small one", "data": {"loader": "digits", "arguments": {"n_queries": 20}}, "rankers": rankers}
    whole |= {"guard": "off", "tracking": "off", "cv": {"n_splits": 2}, "output": {"directory": "out"}, **config}
    text = rk.run_experiment(whole).report.read_text()
    text = re.sub(r'data:image/[^"]+', "<figure>", text)
    text = re.sub(r"\b[0-9a-f]{16,64}\b|sha256-[\w+/=]+", "<digest>", text)
    return re.sub(r"\d+(\.\d+)? s\b|\d{4}-\d\d-\d\d[T ][\d:.+Z]*|\b\d+\.\d+\.\d+\b", "<time or version>", text)


def of_pages() -> Calls:
    """Yield the command line and the report of an experiment."""
    for name in (None, "t", "boot", "none such", *CORRECTIONS, "not_worse"):
        yield f"list_tests/{name}", partial(rk.list_tests, name)
    more = ([], ["--baseline", "bm25.run", "--claim", "not_worse", "--margin", "0.2"], ["--test", "x"])
    forms = ("table", "json", "csv", "markdown", "latex", "html", "x")
    for seed, form, added in product(range(4), forms, more):
        yield call("command", command, "--format", form, *added, seed=seed)
    fixed = ("-m", "AP", "-m", "P@3", "--resamples", "199", "--seed", "4", "--family", "measure", "--unjudged", "skip")
    for test, correction in product(tests(), ("holm", "max_t")):
        yield call("command", command, "--test", test, "--correction", correction, *fixed)
    equivalent = {"test": "t", "correction": "holm", "claim": "equivalent", "margin": 0.1}
    configs: list[dict[str, Any]] = [{}, {"measures": ["AP", "RR"], "seed": 3}, {"convention": "trec_eval-10"}]
    for config in [*configs, {"comparison": equivalent}, {"measures": ["x"]}, {"comparison": {"test": "x"}}]:
        yield call("report", page, **config)


UNPROVEN = (of_assertions, of_pages)
"""Groups that were not yet recorded twice; add them to `calls` once two recordings of them agree."""


def calls() -> Calls:
    """Yield all calls of this part that two recordings agree on."""
    for group in (of_tests, of_data, of_folds, of_reading, of_wrong, of_variance, of_orders, of_numbers, *UNPROVEN):
        yield from group()
