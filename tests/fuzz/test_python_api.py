"""Random calls of the Python API: the value of plain lists, or one line that names an argument.

Every column is of a make of its own, with an index of its own: equal to the others', shuffled, sliced or repeated. The
reference below knows plain lists only. Where the columns are sound and their indexes equal, the call must give its
value; otherwise it must be refused. Raw errors and other values are findings; the seed in the message repeats them.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import random
import re
import warnings
from collections import defaultdict
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from circles import choose
from fuzz.budget import n_inputs
from fuzz.columns import IDS, NO_IDS, NO_NUMBERS, NUMBERS, Column, draw

import rankeval as rk
from rankeval.errors import RankevalError, Refusal

MEASURES = ("P@2", "AP", "RR", "nDCG")
PARTS = choose(default=1, full=4)
REFUSED = "refused"


# The reference: plain lists, one query after the other, every order of tied rows written out.


def precision_at_2(labels, _ideal):
    return sum(label >= 1 for label in labels[:2]) / 2


def average_precision(labels, ideal):
    relevant = sum(label >= 1 for label in ideal)
    found = [rank for rank, label in enumerate(labels, start=1) if label >= 1]
    return sum(place / rank for place, rank in enumerate(found, start=1)) / relevant if relevant else 0.0


def reciprocal_rank(labels, _ideal):
    return next((1 / rank for rank, label in enumerate(labels, start=1) if label >= 1), 0.0)


def dcg(labels):
    return sum(max(label, 0) / math.log2(1 + rank) for rank, label in enumerate(labels, start=1))


def ndcg(labels, ideal):
    best = dcg(sorted(ideal, reverse=True))
    return dcg(labels) / best if best else 0.0


PLAIN = dict(zip(MEASURES, (precision_at_2, average_precision, reciprocal_rank, ndcg), strict=True))


def orders(rows, ties):
    """Yield (chance, rows) of a query's rows (label, score, document) in rank order."""
    ranked = sorted(rows, key=lambda row: -row[1])  # stable
    if ties == "docid":
        ranked.sort(key=lambda row: str(row[2]).encode(), reverse=True)
        ranked.sort(key=lambda row: -row[1])
    if ties != "expected":
        yield 1.0, ranked
        return
    groups = [list(group) for _, group in itertools.groupby(ranked, key=lambda row: row[1])]
    ways = list(itertools.product(*(itertools.permutations(group) for group in groups)))
    for way in ways:
        yield 1 / len(ways), list(itertools.chain.from_iterable(way))


def plain_values(rows_by_query, ties, unretrieved=None):
    """Return {query: values of the measures}."""
    values = {}
    for query, rows in rows_by_query.items():
        ideal = [row[0] for row in rows] + (unretrieved or {}).get(query, [])
        values[query] = [
            sum(chance * PLAIN[name]([row[0] for row in ranked], ideal) for chance, ranked in orders(rows, ties))
            for name in MEASURES
        ]
    return values


# The calls.


def of_one_order(*columns):
    """Say whether all that have an index have equal labels in the same order."""
    labels = [column.labels for column in columns if column is not None and column.labels is not None]
    return all(one == labels[0] for one in labels)


def drawn_rows(rng):
    """Return plain rows: labels, scores, queries, documents; the latter once in each query."""
    n_rows = rng.choice([0, 1, 2, 3, 5, 8, 8, 12])
    texts = rng.random() < 0.5
    names = rng.sample(["q1", "q10", "q2", "é", "q"], 3) if texts else rng.sample([0, 1, 7, 300, -2, 2**40], 3)
    qid = [rng.choice(names) for _ in range(n_rows)]
    if rng.random() < 0.5:
        qid.sort()
    y = [rng.choice([0, 0, 1, 2, 3] if rng.random() < 0.9 else [0, 0.5, 1.5, 2]) for _ in range(n_rows)]
    few = rng.random() < 0.5
    score = [float(rng.randrange(3) if few else rng.randrange(100)) / rng.choice([1, 4]) for _ in range(n_rows)]
    docid = [f"d{row}" if texts else row for row in rng.sample(range(100), n_rows)]
    return y, score, qid, docid


KINDS = ((NUMBERS, NO_NUMBERS), (NUMBERS, NO_NUMBERS), (IDS, NO_IDS), (IDS, NO_IDS))


def drawn_columns(rng, rows, troubled=0.12):
    """Return the columns as they are handed over, of unlike makes and sometimes unlike indexes."""
    n_rows = len(rows[0])
    plain = [
        pd.RangeIndex(n_rows),
        pd.Index(rng.sample(range(1000), n_rows)),
        pd.Index([f"r{row}" for row in range(n_rows)]),
        pd.Index([row // 2 for row in range(n_rows)]),
        pd.MultiIndex.from_tuples([(row // 3, row) for row in range(n_rows)]) if n_rows else pd.RangeIndex(0),
    ]
    base, unlike = rng.choice(plain), rng.random() < 0.3
    columns = []
    for values, (makes, troubles) in zip(rows, KINDS, strict=True):
        index = base
        if unlike and n_rows and rng.random() < 0.4:
            index = rng.choice([base[rng.sample(range(n_rows), n_rows)], base[::-1], rng.choice(plain), base.copy()])
        columns.append(draw(rng, makes, troubles, values, index, troubled=rng.random() < troubled / 4))
    return columns


def grouped(columns):
    """Return {query: [(label, score, document)]} of the plain lists."""
    by_query = defaultdict(list)
    for label, score, query, document in zip(*(column.plain for column in columns), strict=True):
        by_query[query].append((label, score, document))
    return by_query


def sound(columns):
    """Say whether a call with these columns must give a value."""
    return of_one_order(*columns) and not any(column.trouble for column in columns) and len(columns[0].plain) > 0


def shorter(rng, columns):
    """Sometimes cut one column by a row, which must be refused."""
    cut = rng.choice(columns)
    if rng.random() < 0.04 and len(cut.plain) > 1 and not cut.trouble and isinstance(cut.given, (list, np.ndarray)):
        cut.given, cut.trouble = cut.given[:-1], True
    return columns


def evaluated(rng):
    """`evaluate` of rows."""
    columns = shorter(rng, drawn_columns(rng, drawn_rows(rng)))
    ties = rng.choice(["stable", "docid", "expected"])
    y, score, qid, docid = columns
    given = {"docid": docid.given} if ties == "docid" or rng.random() < 0.5 else {}
    used = columns if given else columns[:3]
    if docid.trouble and not given:
        docid.trouble = False
    expected = plain_values(grouped(columns), ties) if sound(used) else REFUSED
    weights = None
    if expected is not REFUSED and rng.random() < 0.3:
        weights = {query: float(1 + place) for place, query in enumerate(sorted(set(qid.plain)))}
        by_row = [weights[query] for query in qid.plain]
        labels = next((column.given.index for column in used if column.labels is not None), None)
        made = [weights, by_row, np.array(by_row)]
        if labels is not None and len(weights) < len(by_row):
            made.append(pd.Series(by_row, index=labels))
        if isinstance(qid.plain[0], str):  # numbers may be those of rows, and are refused then
            made.append(pd.Series(weights))
        given["query_weight"] = rng.choice(made)

    def call():
        ev = rk.evaluate(y.given, score.given, qid=qid.given, measures=list(MEASURES), ties=ties, **given)
        return ev if weights is None else (ev, weights)

    return call, expected, f"ties={ties}"


def of_a_collection(rng):
    """`Qrels` and `Run` made of columns, and evaluated."""
    rows = drawn_rows(rng)
    columns = drawn_columns(rng, rows, troubled=0.06)
    judged = drawn_columns(rng, rows, troubled=0.06)
    ok = sound(columns[1:]) and sound([judged[0], *judged[2:]])
    # A relevance of another make may be another number.
    columns[0].plain = judged[0].plain
    expected = plain_values(grouped(columns), "docid") if ok else REFUSED

    def call():
        qrels = rk.Qrels(judged[2].given, judged[3].given, judged[0].given)
        run = rk.Run(columns[2].given, columns[3].given, columns[1].given)
        return rk.evaluate(qrels, run, measures=list(MEASURES), ties="docid")

    return call, expected, "collection"


def matrix(rng, index, n_rows):
    """Return features of some make."""
    X = np.arange(2.0 * n_rows).reshape(n_rows, 2)
    made = rng.choice(["array", "frame", "list", "masked"]) if n_rows else "array"
    if made == "masked":
        X = np.ma.array(X)
        X[rng.randrange(n_rows), 1] = np.ma.masked
        return X, None, True
    if made == "frame":
        return pd.DataFrame(X, index=index), index, False
    return X.tolist() if made == "list" else X, None, False


def in_test_part(query):
    """Say on which side of a cut in halves a query falls, by the hash of its name."""
    head = hashlib.sha256(f"\0{query}".encode()).digest()[:8]
    return int.from_bytes(head, "big") / 2**64 < 0.5


def cut(rng):
    """Split rows, cut off a test part, or score a model."""
    columns = drawn_columns(rng, drawn_rows(rng))
    y, score, qid, _ = columns
    index = next((c.given.index for c in columns if c.labels is not None), pd.RangeIndex(len(y.plain)))
    X, labels, masked = matrix(rng, index, len(y.plain))
    carrier = Column(pd.Series(0, index=labels), []) if labels is not None else None
    ok = of_one_order(carrier, y, qid) and not (masked or y.trouble or qid.trouble) and len(qid.plain) > 0
    kind = rng.choice(["split", "dev_test_split", "scorer"])
    if kind != "scorer" and qid.mixed:
        qid.plain, qid.trouble = qid.given, False
        ok = of_one_order(carrier, y) and not (masked or y.trouble)
    several = len(set(qid.plain)) > 1
    if kind == "scorer":
        model = SimpleNamespace(predict=lambda _: score.given)
        expected = plain_values(grouped([y, score, qid, y]), "expected") if ok and not score.trouble else REFUSED
        return lambda: rk.make_scorer(list(MEASURES)).evaluate(model, X, y.given, qid=qid.given), expected, kind
    if kind == "split":
        seen, labels = ([qid], None) if y.trouble else ([y, qid], y.given)  # it reads no labels
        ok = of_one_order(carrier, *seen) and not (masked or qid.trouble) and several
        expected = {query: [row for row, one in enumerate(qid.plain) if one == query] for query in qid.plain}
        return lambda: list(rk.QueryKFold(2).split(X, labels, qid=qid.given)), expected if ok else REFUSED, kind
    both = ok and len({in_test_part(query) for query in qid.plain}) == 2
    expected = sorted(zip(map(str, qid.plain), y.plain, strict=True)) if both else REFUSED
    return lambda: rk.dev_test_split(X, y.given, qid=qid.given, test_size=0.5), expected, kind


CALLS = (evaluated, evaluated, evaluated, of_a_collection, cut)
NAMED = re.compile(r"truth|ranking|qid|docid|weights|estimator|\b[Xy]\b|relevance|score|predict|quer(y|ies)|n_splits")


def answer(call):
    """Return what a call gives, or "refused": by one line that names an argument; other errors get through."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return call()
    except (RankevalError, Refusal, ValueError, TypeError) as error:
        said = str(error)
        if "\n" in said or not NAMED.search(said):
            raise
        return REFUSED


def check(found, expected):
    """Hold the answer against the reference's."""
    if isinstance(found, str) or isinstance(expected, str):
        assert isinstance(found, str) is isinstance(expected, str), (found, expected)
        return
    if isinstance(found, tuple):
        found, weights = found
        total = sum(weights.values())
        for place, name in enumerate(MEASURES):
            mean = sum(weights[query] * values[place] for query, values in expected.items()) / total
            assert found.mean()[name] == pytest.approx(mean, abs=1e-12)
    if isinstance(found, rk.Evaluation):
        assert sorted(found.queries.tolist()) == sorted(expected)
        for query, values in zip(found.queries.tolist(), found.scores.tolist(), strict=True):
            assert values == pytest.approx(expected[query], abs=1e-12), query
    elif isinstance(found, list):
        tests = [set(test.tolist()) for _, test in found]
        assert sorted(itertools.chain.from_iterable(tests)) == sorted(itertools.chain.from_iterable(expected.values()))
        assert all(any(set(rows) <= test for test in tests) for rows in expected.values())
    else:
        parts = [set(part.qid.tolist()) for part in (found.dev, found.test)]
        assert not parts[0] & parts[1]
        pairs = [zip(map(str, part.qid.tolist()), part.y.tolist(), strict=True) for part in (found.dev, found.test)]
        assert sorted(itertools.chain.from_iterable(pairs)) == expected


@pytest.mark.random
@pytest.mark.parametrize("part", range(PARTS))
def test_calls_give_the_value_of_plain_lists_or_one_line(part):
    """Seeds part, part + PARTS, ...: whatever the make and the index of each column."""
    for seed in range(part, n_inputs("python"), PARTS):
        rng = random.Random(seed)  # noqa: S311 - inputs, no secrets
        call, expected, what = rng.choice(CALLS)(rng)
        try:
            check(answer(call), expected)
        except BaseException as error:
            error.add_note(f"seed {seed}: {what}")
            raise


def test_half_of_the_calls_give_values():
    """A fuzz test that is refused throughout sees nothing."""
    values = 0
    for seed in range(100):
        rng = random.Random(seed)  # noqa: S311 - inputs, no secrets
        values += rng.choice(CALLS)(rng)[1] is not REFUSED
    assert 35 <= values <= 85
