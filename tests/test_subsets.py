"""Part of the queries: a subset is the evaluation of its queries alone; worst queries; slices by an attribute."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pandas as pd
import pytest
from tables import each_row

import rankeval as rk
from rankeval.errors import ConventionMismatch, InvalidInput, QueryIdError, UnknownName
from rankeval.evaluation import aggregate_errors, differences, from_bytes, standard_errors, to_bytes
from rankeval.evaluation.result import aggregates, info_of

QRELS = {
    "a": {"d1": 1, "d2": 0, "d3": 2, "d8": 1},
    "b": {"d1": 1, "d2": -1},
    "c": {"d4": 0},
    "d": {"d1": 1, "d5": 3, "d6": -2},
    "e": {"d7": 1},
    "f": {"d2": 0},
}
RUN = {
    "a": {"d1": 3.0, "d9": 2.0, "d3": 2.0, "d2": 1.0},
    "c": {"d4": 1.0, "d9": 1.0},
    "d": {"d9": 5.0, "d1": 4.0, "d5": 4.0, "d6": 4.0},
    "e": {"d9": 1.0, "d8": 0.5},
    "z": {"d1": 1.0},
}
MEASURES = ["nDCG@10", "gm_AP", "NumRelRet", "AP"]
RULES = {
    "rankeval": "rankeval",
    "trec_eval": "trec_eval-9.0.8",
    "skip": rk.Convention("all skipped", missing="skip", no_relevant="skip", unjudged="skip"),
    "one, zero": rk.Convention("counted", missing="zero", no_relevant="one", ties="best"),
    "depth": rk.Convention("cut", depth=2, ties="docid"),
    "rows": rk.Convention("rows", judgments="rows", ties="stable"),
}


def only(collection, ids):
    return {query: documents for query, documents in collection.items() if query in ids}


def same(part, alone):
    """Say that a subset and an evaluation of its queries alone agree in every number."""
    assert part.queries.tolist() == alone.queries.tolist()
    assert part.scores.tolist() == alone.scores.tolist()
    assert aggregates(part) == aggregates(alone)
    assert standard_errors(part).equals(standard_errors(alone))
    assert (part.facts.errors is None) == (alone.facts.errors is None)
    assert aggregate_errors(part).equals(aggregate_errors(alone))
    assert part.facts.totals() == alone.facts.totals()
    for field in ("undefined", "excluded"):
        assert getattr(part, field) == getattr(alone, field), field
    # A subset knows how many documents are judged, and no longer their ids.
    of_numbers = [note for note in alone.notes if "are judged; the run has" not in note]
    assert part.notes == (*of_numbers, f"a subset: {part.n_queries} of {part.facts.whole} queries")
    assert {name: found.tolist() for name, found in part.facts.query_counts.items()} == {
        name: found.tolist() for name, found in alone.facts.query_counts.items()
    }
    assert (part.tied_share, part.judged_share) == (alone.tied_share, alone.judged_share)
    assert (part.weights is None) == (alone.weights is None)
    assert part.weights is None or part.weights.tolist() == alone.weights.tolist()
    assert part.judgments_digest == alone.judgments_digest
    assert differences(part, alone) == differences(alone, part) == []


@each_row("weighted", [False, True])
@each_row("rules", RULES)
def test_a_subset_of_a_collection_is_the_evaluation_of_its_queries_alone(rules, weighted):
    """Scores, aggregates, counts, notes and the digest of judgments, under every kind of rule."""

    def evaluated(ids):
        qrels = only(QRELS, ids)
        weights = {query: place + 1.0 for place, query in enumerate(QRELS)} if weighted else None
        return rk.evaluate(
            qrels, only(RUN, ids), measures=MEASURES, convention=RULES[rules], query_weight=weights, name="one"
        )

    whole = evaluated({*QRELS, "z"})
    for places in ([0], [0, 1], [-1], [1, 2], [0, 2], list(range(len(whole.queries) - 1))):
        ids = whole.queries[places].tolist()
        part = whole.subset(ids)
        same(part, evaluated(ids))
        assert (part.name, part.convention, part.measures) == (whole.name, whole.convention, whole.measures)
        assert part.ranking_digest != whole.ranking_digest
        assert part.judgments_digest != whole.judgments_digest


@each_row("qid", [int, str, float])
def test_a_subset_of_arrays_over_several_chunks(qid, monkeypatch):
    """Ids of any type; ties, negative labels and queries without a relevant row are counted by query."""
    monkeypatch.setattr("rankeval.join.joined.CHUNK", 64)
    rng = np.random.default_rng(0)
    ids = np.array([qid(query) for query in np.repeat(np.arange(40), 12)])
    y, score = rng.integers(-1, 3, 480), rng.integers(0, 6, 480)
    y[np.isin(ids, ids[:36])] = 0
    weights = {query: 1.0 + place % 3 for place, query in enumerate(np.unique(ids).tolist())}
    whole = rk.evaluate(y, score, qid=ids, measures=MEASURES, query_weight=weights)
    assert whole.facts.totals()["ties"] > 0
    assert whole.facts.totals()["negative"] == (y < 0).sum()
    chosen = rng.permutation(whole.queries[::2])
    rows = np.isin(ids, chosen)
    alone = rk.evaluate(y[rows], score[rows], qid=ids[rows], measures=MEASURES, query_weight=weights)
    same(whole.subset(chosen.tolist()), alone)
    assert alone.undefined["nDCG@10"]


@pytest.mark.usefixtures("without_formula")
def test_errors_of_drawn_orders_are_those_of_the_chosen_queries(tmp_path):
    """The note counts the drawn queries of the subset; a subset without one has neither note nor errors."""
    qid = np.repeat(["a", "b", "c"], [30, 40, 2])
    y, score = np.tile([1, 0], 36), np.zeros(72)
    whole = rk.evaluate(y, score, qid=qid, measures=["SquaredAP", "AP"])
    for ids in (["a"], ["b", "c"], ["c"]):
        rows = np.isin(qid, ids)
        same(whole.subset(ids), rk.evaluate(y[rows], score[rows], qid=qid[rows], measures=["SquaredAP", "AP"]))
    assert "SquaredAP in 1 query" in info_of(whole.subset(["b", "c"]))["ties"]
    assert "ties" not in info_of(whole.subset(["c"]))
    whole.save(tmp_path / "whole.parquet")
    assert info_of(rk.Evaluation.load(tmp_path / "whole.parquet").subset(["b", "c"])) == info_of(
        whole.subset(["b", "c"])
    )


def scored(n=12, seed=0, prefix="q", **options):
    rng = np.random.default_rng(seed)
    ids = np.array([f"{prefix}{query:02}" for query in np.repeat(np.arange(n), 10)])
    y = np.random.default_rng(1).integers(0, 3, 10 * n)
    return rk.evaluate(y, rng.random(10 * n), qid=ids, **{"measures": ["nDCG@10", "AP"], **options})


IDS = ["q03", "q01", "q07"]
SORTED = ["q01", "q03", "q07"]


@each_row(
    "chosen",
    [
        IDS,
        tuple(IDS),
        set(IDS),
        iter(IDS),
        dict.fromkeys(IDS).keys(),
        np.array(IDS),
        pd.Index(IDS),
        pd.Series(IDS),
        pd.array(IDS),
        np.isin(np.arange(12), [1, 3, 7]),
        np.isin(np.arange(12), [1, 3, 7]).tolist(),
        pd.Series(np.isin(np.arange(12), [1, 3, 7]), index=[f"q{one:02}" for one in range(12)])[::-1],
        pd.Series([one in (1, 3, 7) for one in range(20)], index=[f"q{one:02}" for one in range(20)], dtype="boolean"),
    ],
    ids=lambda chosen: type(chosen).__name__,
)
def test_queries_are_chosen_by_id_or_by_mask(chosen):
    """Any container of ids in any order, a mask by position, and a Series of bool by its index."""
    ev = scored()
    part = ev.subset(chosen)
    assert part.queries.tolist() == SORTED
    again = ev.subset(SORTED)
    assert (part.judgments_digest, part.ranking_digest) == (again.judgments_digest, again.ranking_digest)


def test_arrow_and_polars_choose_too():
    import polars as pl
    import pyarrow as pa

    for ids in (pa.array(IDS), pa.chunked_array([IDS]), pl.Series(IDS)):
        assert scored().subset(ids).queries.tolist() == SORTED
    for mask in (pa.array([True] + [False] * 11), pl.Series([True] + [False] * 11)):
        assert scored().subset(mask).queries.tolist() == ["q00"]


def test_integers_dates_and_tuples_are_ids():
    days = np.array(["2024-01-01", "2024-01-02", "2024-01-03"], dtype="datetime64[D]")
    pairs = np.empty(3, dtype=object)
    pairs[:] = [(1, "x"), (1, "y"), (2, "x")]
    for qid, asked in (([7, 8, 9], [9]), (days, [days[2]]), (pairs, [(2, "x")]), ([1.5, 2.5, 3.5], [3.5])):
        ev = rk.evaluate([1, 1, 0], [1, 2, 3], qid=qid, measures="RR")
        assert ev.subset(asked).scores.tolist() == [[0.0]]


@each_row(
    ("chosen", "error", "said"),
    [
        ("q01", InvalidInput, "^queries: expected ids of queries or a mask.*found a str; give a list"),
        (5, InvalidInput, "found a int"),
        ({"q01": True}, InvalidInput, "found a dict"),
        (pd.DataFrame({"qid": ["q01"]}), InvalidInput, "found a DataFrame"),
        ([], InvalidInput, "^queries: expected at least one query, found none"),
        ([False] * 12, InvalidInput, "^queries: expected at least one query, found none"),
        (["q01", "q01", "q02"], QueryIdError, "'q01' asked for more than once"),
        (
            [f"x{one}" for one in range(7)],
            QueryIdError,
            r"no query 'x0', 'x1', 'x2', 'x3', 'x4', \.\.\. \(7 of 7 ids asked for\); it has ids such as 'q00', 'q01'",
        ),
        (["q01", None], QueryIdError, r"no query (None|nan) \(1 of 2"),
        ([True] * 11, QueryIdError, "a bool for each of 12 queries, in the order of `queries`, found 11"),
        ([True, "q01"], QueryIdError, "True or False beside 'q01'"),
        (np.ones((12, 1), dtype=bool), QueryIdError, "these are not query ids"),
        ([["q01"], ["q02"]], InvalidInput, "^queries: "),
        (pd.Series([True] * 12), QueryIdError, r"its index is 0, 1, 2, \.\.\. and the query ids are not"),
        (pd.Series([True] * 13), QueryIdError, "the query ids are not"),
        (pd.Series([True], index=["q01"]), QueryIdError, "says nothing of 11 of 12 queries: 'q00', 'q02'"),
        (pd.Series([True, False], index=["q01", "q01"]), QueryIdError, "query 'q01' has several values"),
        (pd.Series([True, None] * 6, index=[f"q{one:02}" for one in range(12)]), QueryIdError, "beside None"),
    ],
)
def test_what_cannot_be_chosen_is_said(chosen, error, said):
    with pytest.raises(error, match=said):
        scored().subset(chosen)


def test_ids_of_another_type_and_ids_left_out_are_named():
    """7 is not "7", and a query that was left out is not unknown."""
    ev = rk.evaluate([1, 0, 1], [1, 2, 3], qid=[7, 8, 9], measures="RR", no_relevant="skip")
    with pytest.raises(QueryIdError, match="its ids are of type int, and '7' is not 7"):
        ev.subset(["7", "9"])
    with pytest.raises(QueryIdError, match=r"no query 8 \(1 of 2 ids asked for\); some were left out: no relevant"):
        ev.subset([8, 9])
    with pytest.raises(QueryIdError, match="its ids are of type int, and '7' is not 7"):
        ev.subset(pd.Series([True, False], index=["7", "9"]))


def test_a_mask_with_the_plain_index_is_taken_where_it_can_mean_one_thing_only():
    """Ids 0 to n - 1 in order are positions too; ids 1 to n are not, though all but one would be found."""
    y, score = [1, 0, 1, 0], [1, 2, 2, 1]
    mask = pd.Series([True, False])
    assert rk.evaluate(y, score, qid=[0, 0, 1, 1], measures="RR").subset(mask).queries.tolist() == [0]
    with pytest.raises(QueryIdError, match=r"give queries\.to_numpy\(\)"):
        rk.evaluate(y, score, qid=[1, 1, 2, 2], measures="RR").subset(mask)


def test_the_subset_of_all_queries_is_the_evaluation():
    ev = scored()
    assert ev.subset(ev.queries[::-1]) is ev
    assert ev.subset(np.ones(12, dtype=bool)) is ev


def test_a_subset_of_a_subset_is_the_subset():
    """Digests do not depend on the way, and know the ranking."""
    ev = scored()
    once, twice = ev.subset(IDS[:2]), ev.subset(IDS).subset(IDS[:2])
    assert (once.judgments_digest, once.ranking_digest) == (twice.judgments_digest, twice.ranking_digest)
    assert once.notes == twice.notes == ("a subset: 2 of 12 queries",)
    other = scored(seed=5).subset(IDS[:2])
    assert other.judgments_digest == once.judgments_digest
    assert other.ranking_digest != once.ranking_digest
    assert len({ev.ranking_digest, once.ranking_digest, ev.subset(IDS).ranking_digest}) == 3


def test_equal_subsets_are_compared_and_unequal_ones_refused_with_words():
    one, other = scored(), scored(seed=5)
    compared = rk.compare({"a": one.subset(IDS), "b": other.subset(SORTED)}, baseline="a")
    difference = other.per_query.loc[SORTED] - one.per_query.loc[SORTED]
    assert compared.table["difference"].tolist() == pytest.approx(difference.mean().tolist())
    for left, right, said in (
        (
            one.subset(IDS),
            other,
            "over 3 of 12 queries in one, .* over 12 queries in the other.*the same subset of both",
        ),
        (one, other.subset(IDS), "over 12 queries in one, .* over 3 of 12 queries in the other"),
        (one.subset(IDS), other.subset(IDS[:2]), "over 3 of 12 queries in one, .* over 2 of 12 queries in the other"),
        (one.subset(IDS), scored(n=13), "over 3 of 12 queries in one, .* over 13 queries in the other"),
    ):
        with pytest.raises(ConventionMismatch, match=said):
            rk.compare({"a": left, "b": right})


def test_a_rule_that_touched_no_query_of_the_subset_does_not_differ():
    """Ties in other queries do not forbid a comparison of these."""
    y, qid = [0, 1, 0, 1], [1, 1, 2, 2]
    one = rk.evaluate(y, [1, 1, 2, 1], qid=qid, measures="RR")
    two = rk.evaluate(y, [1, 1, 2, 1], qid=qid, measures="RR", ties="stable")
    assert differences(one, two)
    assert differences(one.subset([2]), two.subset([2])) == []


def test_a_subset_is_saved_whole(tmp_path):
    """It stays a subset, and can be divided further."""
    ev = rk.evaluate(QRELS, RUN, measures=MEASURES, convention="trec_eval-9.0.8", missing="empty")
    for kept in (ev, ev.subset(["a", "b", "c"])):
        kept.save(tmp_path / "kept.parquet")
        back = rk.Evaluation.load(tmp_path / "kept.parquet")
        assert (back.notes, back.facts.whole, back.ranking_digest) == (
            kept.notes,
            kept.facts.whole,
            kept.ranking_digest,
        )
        again, part = back.subset(["a", "b"]), kept.subset(["a", "b"])
        assert to_bytes(again) == to_bytes(part)
        assert (again.facts.totals(), again.undefined) == (part.facts.totals(), part.undefined)


def test_a_subset_whose_weights_are_all_0_is_refused():
    """As evaluate refuses such weights: its mean would be 0/0."""
    ev = rk.evaluate([1, 0, 1], [1, 2, 3], qid=[1, 2, 3], measures="RR", query_weight={1: 0.0, 2: 0.0, 3: 1.0})
    with pytest.raises(InvalidInput, match=r"query_weight: all queries of this part have the weight 0 \(1, 2\)"):
        ev.subset([1, 2])
    assert aggregates(ev.subset([2, 3])) == {"RR": 1.0}


def test_worst_are_the_lowest_first_and_equal_ones_by_id():
    """The columns are the measures, then the counts; by another measure if asked, under any of its names."""
    ev = rk.evaluate(QRELS, RUN, measures=["AP", "P@1", "ARP"])
    assert ev.worst().columns.tolist() == ["AP", "P@1", "ARP", "relevant", "retrieved", "tied", "judged"]
    assert ev.worst().index.name == "qid"
    assert ev.worst(3).index.tolist() == ["b", "e", "d"]
    assert ev.worst(100).index.tolist() == ["b", "e", "d", "a"]
    pd.testing.assert_frame_equal(ev.worst(2)[["AP", "P@1", "ARP"]], ev.per_query.loc[["b", "e"]])
    assert ev.worst(1, "map").index.tolist() == ["b"]
    assert ev.worst(2)["retrieved"].tolist() == [0, 2]


def test_the_worst_are_queries_that_a_ranking_can_change():
    """None relevant or, of rows without other judgments, all alike: left out, counted, in subsets and after saving."""
    labels, qid = [1, 0, 0, -1, 2, 2, 0, 1, 1, 2, 1], list("aabbccddeef")
    ev = rk.evaluate(labels, range(11), qid=qid, measures=["ERR(max_rel=4)"])
    for one in (ev, from_bytes(to_bytes(ev))):
        assert one.worst().index.tolist() == ["a", "d", "e"]
        assert one.worst(1).attrs["left_out"] == 3
    assert ev.subset(list("abc")).worst().index.tolist() == ["a"]
    assert ev.subset(list("bcf")).worst().empty


def test_what_unjudged_rows_change_is_among_the_worst():
    """A query without a relevant document has shares of judged rows all the same."""
    qrels, run = {"a": {"d": 0}, "b": {"d": 1}}, {"a": {"d": 1.0, "x": 2.0, "y": 3.0}, "b": {"d": 1.0, "x": 2.0}}
    ev = rk.evaluate(qrels, run, measures=["Judged@3", "AP"])
    assert ev.worst().index.tolist() == ["a", "b"]
    assert ev.worst(measure="AP").index.tolist() == ["b"]


def test_where_less_is_better_the_highest_are_the_worst():
    y, score, qid = [1, 0, 0, 0, 0, 1], [3, 2, 1, 3, 2, 1], [1, 1, 1, 2, 2, 2]
    assert rk.evaluate(y, score, qid=qid, measures="ARP").worst(1).index.tolist() == [2]
    assert rk.evaluate(-np.array(y) + 1, score, qid=qid, measures=["AP", "ARP"]).worst(1, "ARP").index.tolist() == [1]


@each_row(
    ("arguments", "error", "said"),
    [
        ({"n": 0}, InvalidInput, "^n is 0; expected a whole number, 1 or greater"),
        ({"n": 2.5}, InvalidInput, "^n is 2.5"),
        ({"measure": "RR"}, UnknownName, "unknown measure 'RR'"),
        ({"measure": "nDGC@10"}, UnknownName, "did you mean 'nDCG@10'"),
        ({"measure": ["nDCG@10", "AP"]}, InvalidInput, "measure means nDCG@10, AP; name one of them"),
    ],
)
def test_what_worst_cannot_do_is_said(arguments, error, said):
    with pytest.raises(error, match=said):
        scored().worst(**arguments)


LENGTH = pd.Series({f"q{one:02}": ["long", "short", None][one % 3] for one in range(12)}, name="length")


def test_a_row_of_slices_has_the_numbers_of_the_subset():
    """Values ascending, queries without one last; the declared aggregates, by weight, with limits if asked for."""
    measures = ["nDCG@10", "gm_AP", "NumRel"]
    ev = scored(measures=measures)
    table = ev.slices(LENGTH, confidence_level=0.9)
    assert table.columns.tolist() == [
        "n_queries", "nDCG@10", "nDCG@10 ci_low", "nDCG@10 ci_high", "gm_AP", "NumRel",
    ]  # fmt: skip
    assert table.index.name == "length"
    assert table.index.tolist()[:2] == ["long", "short"]
    assert pd.isna(table.index[2])
    assert table["n_queries"].tolist() == [4, 4, 4]
    for row, place in enumerate((0, 1, 2)):
        part = ev.subset(np.arange(12) % 3 == place)
        assert table[measures].iloc[row].to_dict() == aggregates(part)
        limits = part.ci(0.9).loc["nDCG@10"]
        assert table.iloc[row][["nDCG@10 ci_low", "nDCG@10 ci_high"]].tolist() == limits.tolist()[1:]
    weighted = scored(query_weight={f"q{one:02}": 1.0 + one for one in range(12)})
    assert weighted.slices(LENGTH).loc["long", "AP"] == aggregates(weighted.subset(["q00", "q03", "q06", "q09"]))["AP"]
    limits = weighted.subset(["q00", "q03", "q06", "q09"]).ci(0.95).loc["AP"]
    row = weighted.slices(LENGTH, confidence_level=0.95).loc["long"]
    assert row[["AP ci_low", "AP ci_high"]].tolist() == limits[["ci_low", "ci_high"]].tolist()


@each_row(
    "by",
    [
        LENGTH[::-1],
        LENGTH.to_dict(),
        LENGTH.to_numpy(),
        LENGTH.tolist(),
        LENGTH.astype("category"),
        pd.concat([LENGTH, pd.Series({"unseen": "huge"})]).rename("length"),
        LENGTH.drop(["q02", "q05", "q08", "q11"]),
        LENGTH.to_frame(),
        LENGTH.rename_axis("qid").reset_index(),
    ],
    ids=lambda by: type(by).__name__,
)
def test_an_attribute_is_given_by_query_or_by_position(by):
    """Every kind gives the same table; ids that the evaluation lacks are no slice."""
    ev = scored()
    wanted, found = ev.slices(LENGTH), ev.slices(by)
    assert found.reset_index(drop=True).equals(wanted.reset_index(drop=True))
    assert [str(value) for value in found.index[:2]] == ["long", "short"]


def test_an_attribute_is_given_by_row_where_the_rows_of_a_query_agree():
    """Also by several columns and as a mask; numbers of rows are not taken for ids that happen to be such numbers."""
    log = pd.DataFrame({"q": np.repeat(np.arange(12), 3), "y": [1, 0, 0] * 12, "s": [2, 3, 1, 3, 2, 1] * 6})
    log["length"] = LENGTH.to_numpy()[log["q"]]  # some queries have none
    log["day"] = log["q"] % 2
    shuffled = log.sample(frac=1, random_state=0)
    ev = rk.evaluate(log.y, log.s, qid=log.q, measures="RR")
    wanted = ev.slices(LENGTH.to_numpy()).reset_index(drop=True)
    for by in (
        shuffled.length.set_axis(shuffled.q),
        shuffled.length.astype("category").set_axis(shuffled.q),
        shuffled.set_index("q")[["length"]],
        shuffled.rename(columns={"q": "qid"})[["qid", "length"]],
    ):
        assert ev.slices(by).reset_index(drop=True).equals(wanted)
    both = ev.slices(shuffled.set_index("q")[["length", "day"]])
    assert both["n_queries"].sum() == 12
    assert ev.subset((log.length == "long").set_axis(log.q)).n_queries == (LENGTH == "long").sum()
    loaded = pickle.loads(pickle.dumps(ev))
    names = {"qid": "q", "relevance": "y", "score": "s"}
    for system, of_rows in ((ev, log), (rk.evaluate(shuffled, **names, measures="RR"), shuffled)):
        for by in (of_rows.length, of_rows.length.to_numpy(), of_rows.length.tolist(), of_rows[["length"]]):
            assert system.slices(by).reset_index(drop=True).equals(wanted)  # rows 0 to 11 have ids among the queries
    part = ev.subset(range(6))
    assert part.slices(log.length)["n_queries"].sum() == 6
    by_id = pd.Series(LENGTH.to_numpy()).reindex(range(35, -1, -1))  # as many ids as rows
    assert ev.slices(by_id).reset_index(drop=True).equals(wanted)
    with pytest.raises(QueryIdError, match=r"else by\.set_axis\(qid\) by the queries"):
        loaded.slices(log.length)
    with pytest.raises(QueryIdError, match=r"else queries\.set_axis\(qid\) by the queries"):
        ev.subset(log.length == "long")
    other = rk.evaluate(log.y, -log.s, qid=log.q, measures="RR")
    assert {"0", "1"} <= {*rk.compare({"one": ev, "other": other}, by=log.day).table["day"]}
    with pytest.raises(QueryIdError, match=r"else by\.set_axis\(qid\) by the queries"):
        rk.compare({"one": loaded, "other": pickle.loads(pickle.dumps(other))}, by=log.length)
    more = pd.Series(["x"] * 40)  # of 40 queries, by their ids 0 to 39; or of the rows of a longer log
    assert ev.slices(more.rename_axis("q")).n_queries.tolist() == [12]
    with pytest.raises(QueryIdError, match="by the queries; name ids"):
        ev.slices(more)
    with pytest.raises(InvalidInput, match="if these are query ids, name the index"):
        rk.evaluate(log.y, log.s, qid=log.q, measures="RR", query_weight=pd.Series([1.0] * 40))
    with pytest.raises(QueryIdError, match="query 1 has several values") as caught:
        ev.slices(log.length.set_axis(log.q).where(np.arange(36) != 3, "odd"))
    assert caught.value.argument == "by"
    with pytest.raises(QueryIdError, match="query 1 has several values"):
        ev.slices(log.length.where(np.arange(36) != 3, "odd"))


def test_counts_and_several_attributes_give_slices():
    """A name is one of the counts; several columns give a row for each combination that occurs."""
    ev = rk.evaluate(QRELS, RUN, measures="AP")
    table = ev.slices("relevant")
    assert (table.index.name, table.index.tolist()) == ("relevant", [0, 1, 2, 3])
    assert table["n_queries"].sum() == ev.n_queries
    both = pd.DataFrame({"kind": list("xxyyyx"), "day": [1, 2, 1, 1, 2, None]}, index=list("abcdef"))
    table = ev.slices(both)
    assert table.index.names == ["kind", "day"]
    assert table.loc[("y", 1), "n_queries"] == 2
    assert table["n_queries"].sum() == 6
    assert table.loc[("y", 1), "AP"] == aggregates(ev.subset(["c", "d"]))["AP"]
    classes = pd.cut(pd.Series([1, 5, 9, 2, 6, 3], index=list("abcdef"), name="words"), [0, 3, 10])
    assert ev.slices(classes)["n_queries"].tolist() == [3, 3]


@each_row(
    ("by", "error", "said"),
    [
        ("relevent", UnknownName, "unknown count of the queries 'relevent'; did you mean 'relevant'"),
        (["x"] * 11, QueryIdError, r"^by: expected a value for each of 12 queries.*found an array of shape \(11,\)"),
        (np.zeros((12, 2)), QueryIdError, r"shape \(12, 2\)"),
        (7, QueryIdError, "found a int; or give a Series"),
        (pd.Series(["x"] * 12), QueryIdError, r"its index is 0, 1, 2, \.\.\. and the query ids are not; give by"),
        (pd.Series(["x"], index=["Q01"]), QueryIdError, "^by: no id in common: the evaluation has 'q00', 'q01'"),
        ({}, QueryIdError, "no id in common"),
        ({("q00", 1): 1, ("q01", 1): 2}, QueryIdError, "no id in common"),
        (pd.Series(["x", "y"], index=["q01", "q01"]), QueryIdError, "query 'q01' has several values"),
        (pd.Series(["x", None], index=["q01", "q01"]), QueryIdError, "query 'q01' has several values"),
        (pd.Series(["x", "y"], index=["q01", None]), QueryIdError, "a row without a query id"),
        ([[1]] * 11 + [[2]], QueryIdError, "shape"),
        (pd.DataFrame(index=["q01"]), InvalidInput, "one or more columns"),
    ],
)
def test_what_cannot_be_sliced_is_said(by, error, said):
    with pytest.raises(error, match=said):
        scored().slices(by)


def test_slices_by_ids_of_another_type_are_refused_with_the_type():
    ev = rk.evaluate([1, 0], [1, 2], qid=[7, 8], measures="RR")
    with pytest.raises(QueryIdError, match="its ids are of type int, and '7' is not 7"):
        ev.slices({"7": "x", "8": "y"})


def test_names_of_slices_come_from_the_attribute():
    assert scored().slices(LENGTH.rename(None)).index.name == "slice"
    assert scored().slices(LENGTH.to_dict()).index.name == "slice"


def test_ids_that_are_tuples_of_unlike_lengths_are_found():
    """As levels of a pandas index they would be filled up."""
    qid = np.empty(4, dtype=object)
    qid[:] = [("a", "x"), ("a", "x"), ("b",), ("b",)]
    ev = rk.evaluate([1, 0, 0, 1], [2, 1, 2, 1], qid=qid, measures="RR")
    assert ev.subset([("b",)]).per_query["RR"].tolist() == [0.5]
    with pytest.raises(QueryIdError, match=re.escape("ids such as ('a', 'x'), ('b',)")):
        ev.subset([("c",)])


def test_the_digest_of_judgments_has_the_ids_of_the_queries():
    """Rows without documents have no other names."""
    one, other = (rk.evaluate([1, 0], [2, 1], qid=[name, name], measures="RR") for name in "ab")
    assert one.judgments_digest != other.judgments_digest


def test_a_query_of_weight_0_is_none_of_the_worst_and_is_said_to_be_left_out():
    """It cannot change the mean; the query without a relevant document has another reason."""
    qid, labels = list("aabbccdd"), [1, 0, 1, 0, 1, 0, 0, 0]
    scores = [0.1, 0.9, 0.2, 0.9, 0.9, 0.1, 0.9, 0.1]
    weights = {"a": 0.0, "b": 2.0, "c": 1.0, "d": 1.0}
    ev = rk.evaluate(labels, scores, qid=qid, measures="RR", query_weight=weights)
    worst = ev.worst()
    assert worst.index.tolist() == ["b", "c"]
    assert worst.attrs["left_out"] == 2
    assert worst.attrs["note"] == "Left out: 1 query whose score no ranking changes and 1 query of weight 0."
    plain = rk.evaluate(labels, scores, qid=qid, measures="RR").worst()
    assert plain.index.tolist() == ["a", "b", "c"]
    assert plain.attrs["note"] == "Left out: 1 query whose score no ranking changes."
