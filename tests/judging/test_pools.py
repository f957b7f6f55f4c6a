"""Pools: which documents are pooled, in which order they are judged, and what a sample of them estimates."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from circles import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput, UnknownName
from rankeval.judging import pool
from rankeval.judging.pools import _move_to_front

RUNS = {
    "bm25": {"q1": ["d7", "d9", "d1"], "q2": ["d1", "d2"]},
    "rm3": {"q1": ["d7", "d3"], "q3": ["d5"]},
}
IDS = st.sampled_from([f"d{number}" for number in range(12)])
LISTS = st.dictionaries(st.sampled_from(["q1", "q2", "q3"]), st.lists(IDS, min_size=1, max_size=8, unique=True))
MANY = st.dictionaries(st.sampled_from(["a", "b", "c"]), LISTS, min_size=1)
LABELS = st.fixed_dictionaries(
    {query: st.fixed_dictionaries({f"d{n}": st.integers(0, 2) for n in range(12)}) for query in ("q1", "q2", "q3")}
)


def pairs(frame):
    return list(zip(frame["qid"], frame["docid"], strict=True))


@given(MANY, st.integers(1, 9))
def test_a_pool_is_the_union_of_the_first_ranks(runs, depth):
    """With the finders and the best rank of each document, and the rank in each run."""
    found = {}
    for name, run in runs.items():
        for query, documents in run.items():
            for rank, document in enumerate(documents[:depth], start=1):
                found.setdefault((query, document), {})[name] = rank
    made = pool(runs, depth=depth)
    assert sorted(pairs(made.table)) == sorted(found)
    for row, places in zip(made.table.itertuples(), made.places.tolist(), strict=True):
        expected = found[row.qid, row.docid]
        assert dict(zip(row.found_by, [place for place in places if place], strict=True)) == expected
        assert (row.n_runs, row.rank) == (len(expected), min(expected.values()))


def test_equal_scores_are_pooled_in_the_order_of_trec_eval():
    """By document id, descending; measures under that convention see the same ranks."""
    run = {"q1": {"d1": 1.0, "d3": 1.0, "d2": 1.0}}
    assert pool({"a": run}, depth=2).table["docid"].tolist() == ["d3", "d2"]
    found = rk.evaluate({"q1": {"d3": 1, "d2": 1}}, run, measures="P@2", convention="trec_eval-9.0.8")
    assert found.mean()["P@2"] == 1


def test_the_cost_is_documents_times_minutes():
    """In total and by query."""
    made = pool(RUNS)
    assert made.cost(minutes=15).to_dict("list") == {"documents": [7], "minutes_each": [15], "hours": [1.75]}
    assert made.cost(by_query=True)["documents"].to_dict() == {"q1": 4, "q2": 2, "q3": 1}


@settings(max_examples=examples(30))
@given(MANY, LISTS, st.integers(1, 9))
def test_one_more_run_adds_what_the_pool_with_it_has_more(runs, new, depth):
    """To the queries of the pool."""
    before, after = (pool(given, depth=depth) for given in (runs, {**runs, "new": new}))
    added = before.adds(new)
    more = set(pairs(after.table)) - set(pairs(before.table))
    assert set(pairs(added.table)) == {pair for pair in more if pair[0] in set(before.table["qid"])}
    assert len(added.order("move_to_front")) == added.cost().loc["all", "documents"]


def test_a_pool_may_have_some_queries_only():
    """A run adds documents to these alone."""
    runs = {"one": {"q1": ["d1", "d2"], "q2": ["d3"]}}
    some = pool(runs, queries=["q1"])
    assert pairs(some.table) == [("q1", "d1"), ("q1", "d2")]
    assert pairs(some.adds({"q1": ["d9"], "q2": ["d9"]}).table) == [("q1", "d9")]


@settings(max_examples=examples(20))
@given(MANY, LABELS, st.sampled_from(["depth", "move_to_front", "random"]))
def test_an_order_needs_no_memory(runs, labels, by):
    """To judge the first of a query and to ask again gives the order; it has each document once, queries in turn."""
    made, judged = pool(runs), []
    left = made.order(by)
    turns = left.groupby("qid").cumcount()
    assert turns.is_monotonic_increasing
    assert sorted(pairs(left)) == sorted(pairs(made.table))
    n = len(left)
    while len(left):
        assert len(left) == n - len(judged)
        judged.append((*pairs(left)[0], labels[left["qid"][0]][left["docid"][0]]))
        left = made.order(by, judged=pd.DataFrame(judged, columns=["qid", "docid", "relevance"]))
    for query in made.table["qid"].unique():
        documents = [document for one, document, _ in judged if one == query]
        assert documents == expected_order(made, query, by, labels[query])


def expected_order(made, query, by, labels):
    """Return the documents of a query by an implementation of its own, which keeps its state."""
    rows = made.table[made.table["qid"] == query]
    if by == "depth":
        return [row.docid for row in sorted(rows.itertuples(), key=lambda row: (row.rank, row.docid))]
    if by == "random":
        drawn = made.order("random")
        return drawn.loc[drawn["qid"] == query, "docid"].tolist()
    places = made.places[rows.index]
    waiting = {
        run: [rows["docid"].iloc[row] for row in np.argsort(column) if column[row]]
        for run, column in zip(made.runs, places.T, strict=True)
    }
    failures, order = dict.fromkeys(made.runs, 0), []
    while any(waiting.values()):
        front = min((run for run in made.runs if waiting[run]), key=failures.__getitem__)
        document = waiting[front][0]
        failures[front] = 0 if labels[document] > 0 else failures[front] + 1
        waiting = {run: [one for one in documents if one != document] for run, documents in waiting.items()}
        order.append(document)
    return order


def test_a_label_of_minus_one_is_no_judgment():
    """The labels of several judges count once, the highest."""
    made = pool({"a": {"q1": ["d1", "d2", "d3"]}})
    judged = pd.DataFrame({"qid": "q1", "docid": ["d1", "d2", "d2"], "relevance": [-1, 0, 2], "aspect": list("aab")})
    assert made.order("depth", judged=judged)["docid"].tolist() == ["d1", "d3"]
    assert made.qrels(judged).relevance.tolist() == [-1, 2, -1]


def test_a_sample_has_its_share_of_each_query():
    """At least one document; what was not drawn has no label in the judgments, and neither are documents outside."""
    made = pool({"a": {query: [f"d{number}" for number in range(20)] for query in (1, 2, 3)} | {4: ["d0"]}})
    part = made.sample(0.25, rng=7)
    assert part.cost(by_query=True)["documents"].to_dict() == {1: 5, 2: 5, 3: 5, 4: 1}
    complete = {query: {f"d{number}": 1 for number in range(40)} for query in (1, 2, 3, 4)}
    frame = part.qrels(complete).to_frame()
    assert len(frame) == len(made.table)
    assert sorted(pairs(frame[frame["relevance"] == 1])) == sorted(pairs(part.table))
    assert set(frame["relevance"]) == {1, -1}
    assert set(pairs(part.table)) != set(pairs(made.sample(0.25, rng=8).table))


@each_row(
    ("wrong", "error"),
    [
        (lambda: pool({}), InvalidInput),
        (lambda: pool([RUNS["bm25"]]), InvalidInput),
        (lambda: pool(RUNS, depth=0), InvalidInput),
        (lambda: pool({"a": {"q": ["1"]}, "b": {"q": [1]}}), InvalidInput),
        (lambda: pool({"a": rk.Run(["q", "q"], ["d", "d"], [2, 1])}), InvalidInput),
        (lambda: pool(RUNS).order("breadth"), UnknownName),
        (lambda: pool(RUNS).sample(0), InvalidInput),
        (lambda: pool(RUNS).cost(minutes=-1), InvalidInput),
        (lambda: pool(RUNS).cost(minutes=0), InvalidInput),
    ],
)
def test_a_pool_that_cannot_be_made_is_refused(wrong, error):
    """No run, ids of two kinds, a document twice, an unknown order, a share of nothing."""
    with pytest.raises(error):
        wrong()


COVID = "trec_covid_r5", "qrels.residual.txt.gz"
WEB = "web2012", "qrels.adhoc.txt.gz"


@cache
def collection(shared, folder, qrels):
    runs = {path.name: rk.Run.read(path) for path in sorted((shared / folder / "runs").glob("*.gz"))}
    return runs, rk.Qrels.read(shared / folder / qrels)


@pytest.mark.shared
def test_pools_of_trec_covid_have_their_known_size_and_recall(shared):
    """16 runs; counted independently of this package."""
    runs, judged = collection(shared, *COVID)
    relevant = (judged.relevance > 0).sum()
    sizes, shares = [], []
    for depth in (5, 10, 20):
        made = pool(runs, depth=depth)
        sizes.append(len(made.table))
        shares.append((made.qrels(judged).relevance > 0).sum() / relevant)
    assert sizes == [2085, 3877, 7360]
    assert shares == pytest.approx([0.1385, 0.2322, 0.3512], abs=5e-5)


@pytest.mark.shared
@pytest.mark.parametrize(("source", "front", "depth"), [(COVID, 0.308, 0.287), (WEB, 0.238, 0.205)])
def test_move_to_front_finds_more_than_depth(shared, source, front, depth):
    """At 100 judged documents a topic: the share of all relevant ones; and in four rounds of 25 documents."""
    runs, judged = collection(shared, *source)
    made = pool(runs, depth=100)
    label = made.qrels(judged).relevance > 0

    def share(rows):
        return label[rows].sum() / (judged.relevance > 0).sum()

    by_topic = made.table.groupby("qid", sort=False).indices.values()
    # One document a round gives the order of the whole method: test_an_order_needs_no_memory.
    exact = [_move_to_front(rows, made.places[rows], label[rows])[:100] for rows in by_topic]
    assert share(np.concatenate([rows[:100] for rows in by_topic])) == pytest.approx(depth, abs=5e-4)
    assert share(np.concatenate(exact)) == pytest.approx(front, abs=5e-4)
    numbers = made.table[["qid", "docid"]].assign(row=np.arange(len(label)), relevance=label * 1)
    known = numbers.iloc[:0]
    for _ in range(4):
        left = made.order("move_to_front", judged=known)
        known = pd.concat([known, left[left.groupby("qid").cumcount() < 25].merge(numbers, on=["qid", "docid"])])
    assert depth + 0.01 < share(known["row"].to_numpy())


@each_row("do", ["adds", "order", "qrels"])
@each_row("other", [{1: {"d1": 1}}, {"q1": {1: 1}}], ids=["qid", "docid"])
def test_ids_of_another_kind_than_the_pools_are_an_error_of_rankeval(do, other):
    """Ids of another kind than the pool's are an InvalidInput, as `adds` says, and not the ValueError of a merge."""
    made = pool({"a": {"q1": ["d1", "d2"]}})
    calls = {
        "adds": lambda: made.adds(other),
        "order": lambda: made.order(judged=other),
        "qrels": lambda: made.qrels(other),
    }
    with pytest.raises(InvalidInput):
        calls[do]()
