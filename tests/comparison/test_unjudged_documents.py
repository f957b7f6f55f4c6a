"""Comparisons say where systems have unlike shares of judged documents, and what the others could change."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from circles import choose
from tables import each_row

import rankeval as rk
from rankeval.comparison.unjudged import MOST_NOTED
from rankeval.errors import InvalidInput

BOUNDED = ["P@3", "RR", "DCG@3", "RBP(p=0.8)", "ERR(max_rel=2)"]
EXTREMES = ["nDCG@3", "AP"]


def pooled(seed, n_queries=50, depth=12, n_judged=8):
    """Return judgments of a pool, and a ranking of the pool and of a few documents beside it."""
    rng = np.random.default_rng(seed)
    qrels, run = {}, {}
    for query in range(n_queries):
        documents = [f"d{place}" for place in rng.permutation(40)[:depth]]
        qrels[f"q{query}"] = {d: int(rng.random() < 0.5) for d in documents[:n_judged]}
        qrels[f"q{query}"][documents[0]] = 1
        shuffled = rng.permutation(documents).tolist()
        run[f"q{query}"] = {d: float(depth - place) for place, d in enumerate(shuffled)}
    return qrels, run


def with_unjudged_on_top(run, number=8):
    return {q: {**scores, **{f"new{k}": 100.0 + k for k in range(number)}} for q, scores in run.items()}


def evaluated(qrels, **runs):
    def of(names, run):
        return rk.evaluate(qrels, run, measures=names)

    return lambda *names: {name: of(list(names), run) for name, run in runs.items()}


def test_eight_unjudged_documents_on_top_are_named_with_both_shares_and_the_bounds():
    qrels, run = pooled(0)
    evs = evaluated(qrels, pooled=run, new=with_unjudged_on_top(run))("RBP(p=0.8)", "AP")
    compared = rk.compare(evs, baseline="pooled")
    row = compared.bounds.iloc[0]
    assert (row["judged_baseline"], row["judged_system"]) == pytest.approx((8 / 12, 8 / 20))
    assert row["difference"] == compared.table["difference"].iloc[0] < 0
    assert row["shares_differ"]
    assert row["is_bound"]
    assert row["lower"] < row["difference"] < 0 < row["all_relevant"] < row["upper"]
    note, of_ap = (note for note in compared.notes if "judged" in note)
    assert "a share of 0.40 is judged for new and 0.67 for pooled" in note
    for number in (row["difference"], row["all_relevant"], row["lower"], row["upper"]):
        assert f"{number:+.4f}" in note
    assert "of the documents that AP looks at" in of_ap
    clause = "Of the documents within the cut-off, 0.40 of those of new and 0.67 of those of pooled are judged: "
    assert (
        f"{clause}the others could make the difference {row['lower']:+.4f} to {row['upper']:+.4f}." in compared.headline
    )
    turned = rk.compare(evs, measures=["RBP(p=0.8)"])  # pooled is better, so the headline turns the pair
    clause = "0.67 of those of pooled and 0.40 of those of new are judged: the others could make the difference "
    assert f"{clause}{-row['upper']:+.4f} to {-row['lower']:+.4f}." in turned.headline


@pytest.mark.random
def test_systems_that_rank_one_pool_at_random_get_no_note():
    for seed in range(choose(default=15, full=500)):
        rng = np.random.default_rng(seed)
        n, names = int(rng.integers(10, 60)), ["P@5", "RR@10", "AP"]
        documents = [f"d{place}" for place in range(15)]
        judged = {f"q{q}": rng.choice(documents, 9, replace=False) for q in range(n)}
        qrels = {q: {d: int(rng.random() < 0.4) for d in found} for q, found in judged.items()}
        evs = {}
        for name in ("a", "b", "c")[: rng.integers(2, 4)]:
            run = {q: dict(zip(documents, rng.random(15), strict=True)) for q in qrels}
            evs[name] = rk.evaluate(qrels, run, measures=names)
        compared = rk.compare(evs, correction="none")
        assert not compared.bounds["shares_differ"].any(), seed
        assert not [note for note in compared.notes if "judged" in note], seed


def tiny(seed):
    """Return judgments and two runs of two queries, with four unjudged documents, one of them in both."""
    rng = np.random.default_rng(seed)
    qrels = {"p": {"a": 1, "b": 0, "c": 2}, "q": {"a": 0, "b": 1}}
    unjudged = {"p": ["x", "y"], "q": ["x", "z"]}
    runs = {}
    for name, left_out in (("old", "y"), ("new", "z")):
        runs[name] = {
            q: {d: float(rng.integers(0, 6)) for d in [*qrels[q], *unjudged[q]] if d != left_out} for q in qrels
        }
    return qrels, runs, [(q, d) for q, found in unjudged.items() for d in found]


@pytest.mark.parametrize("name", BOUNDED)
def test_bounds_hold_for_every_judgment_of_the_unjudged_documents(name):
    """Brute force over all grades of four documents."""
    for seed in range(2):
        qrels, runs, unjudged = tiny(seed)
        row = rk.compare(evaluated(qrels, **runs)(name), baseline="old").bounds.iloc[0]
        found = {}
        for grades in product(range(3), repeat=len(unjudged)):
            known = {q: dict(judged) for q, judged in qrels.items()}
            for (q, d), grade in zip(unjudged, grades, strict=True):
                known[q][d] = grade
            old, new = (each.scores[:, 0] for each in evaluated(known, **runs)(name).values())
            found[grades] = (new - old).mean()
        assert row["is_bound"]
        assert row["lower"] - 1e-12 <= min(found.values()) <= max(found.values()) <= row["upper"] + 1e-12
        assert found[0, 0, 0, 0] == pytest.approx(row["difference"], abs=1e-12)
        assert found[2, 2, 2, 2] == pytest.approx(row["all_relevant"], abs=1e-12)


@each_row("name", [*BOUNDED, *EXTREMES])
def test_lower_and_upper_are_reached_if_the_systems_share_no_unjudged_document(name):
    """For measures that divide by what could be found, if a document of one list does not count for the other."""
    qrels, run = pooled(3, n_queries=4)
    runs = {"old": with_unjudged_on_top(run, 2), "new": {q: {**s, "own": 6.5, "own2": 3.5} for q, s in run.items()}}
    row = rk.compare(evaluated(qrels, **runs)(name), baseline="old").bounds.iloc[0]

    def completed(which, grade):
        cutoff, known = rk.measure(name).cutoff, {}
        for q, scores in runs[which].items():
            listed = sorted(scores, key=scores.get, reverse=True)[:cutoff]
            known[q] = {**qrels[q], **{d: grade for d in listed if d not in qrels[q]}}
        return rk.evaluate(known, runs[which], measures=name).scores[:, 0]

    readings = {which: np.array([completed(which, grade) for grade in (0, 1)]) for which in runs}
    assert row["is_bound"] == (name in BOUNDED)
    assert row["all_relevant"] == pytest.approx((readings["new"][1] - readings["old"][1]).mean(), abs=1e-12)
    four = np.subtract.outer(readings["new"].mean(axis=1), readings["old"].mean(axis=1))
    assert (row["lower"], row["upper"]) == pytest.approx((four.min(), four.max()), abs=1e-12)


def test_the_second_table_is_the_comparison_of_condensed_lists():
    qrels, run = pooled(1)
    runs = {"pooled": run, "new": with_unjudged_on_top(run), "other": with_unjudged_on_top(run, 2)}
    evs = evaluated(qrels, **runs)("nDCG@5", "AP")
    compared = rk.compare(evs, baseline="pooled", unjudged="skip", correction="max_t", n_resamples=499)
    skip = rk.Convention(unjudged="skip")
    skipped = {name: rk.evaluate(qrels, run, measures=["nDCG@5", "AP"], convention=skip) for name, run in runs.items()}
    expected = rk.compare(skipped, baseline="pooled", correction="max_t", n_resamples=499)
    pd.testing.assert_frame_equal(compared.condensed, expected.table)
    pd.testing.assert_frame_equal(
        compared.table, rk.compare(evs, baseline="pooled", correction="max_t", n_resamples=499).table
    )
    assert (compared.condensed["difference"] == 0).all()
    assert (expected.bounds["judged_system"] == 1).all()
    kept = rk.Comparison.from_json(compared.to_json())
    assert kept.headline == compared.headline
    for name in ("bounds", "condensed"):
        pd.testing.assert_frame_equal(getattr(kept, name), getattr(compared, name))
    said = str(compared)
    assert "Without unjudged documents: Paired t test over 50 queries" in said
    assert "What unjudged documents could change" in said


def test_collections_are_weighed_and_slices_left_out():
    qrels, run = pooled(2, 30)
    other_qrels, other = pooled(4, 10)
    news = evaluated(qrels, old=run, new=with_unjudged_on_top(run))("P@3")
    web = evaluated(other_qrels, old=other, new=other)("P@3")
    both = {name: {"news": news[name], "web": web[name]} for name in news}
    row, alone = rk.compare(both, baseline="old").bounds.iloc[0], rk.compare(news, baseline="old").bounds.iloc[0]
    zero = rk.compare(web, baseline="old").bounds.iloc[0]
    for column in ("judged_system", "judged_baseline", "difference", "all_relevant", "lower", "upper"):
        assert row[column] == pytest.approx((alone[column] + zero[column]) / 2), column
    sliced = rk.compare(news, baseline="old", by={f"q{q}": q % 2 for q in range(30)}, unjudged="skip")
    assert len(sliced.bounds) == 1
    assert len(sliced.condensed) == len(sliced.table) == 3
    condensed = rk.compare(both, baseline="old", unjudged="skip").condensed
    assert condensed["difference"].tolist() == pytest.approx([0, 0, 0])


def test_measures_by_aspect_are_left_out():
    qrels, run = pooled(6, 20)
    rows = [(q, d, 1 + int(d[1:]) % 2, grade) for q, grades in qrels.items() for d, grade in grades.items()]
    known = rk.Qrels.from_frame(pd.DataFrame(rows, columns=["qid", "docid", "aspect", "relevance"]))
    runs = {"old": run, "new": with_unjudged_on_top(run)}
    evs = {name: rk.evaluate(known, each, measures=["alpha_nDCG@5", "P@5"]) for name, each in runs.items()}
    compared = rk.compare(evs, baseline="old", unjudged="skip")
    assert compared.table["measure"].tolist() == ["alpha_nDCG@5", "P@5"]
    assert compared.bounds["measure"].tolist() == compared.condensed["measure"].tolist() == ["P@5"]
    alone = {name: rk.evaluate(known, each, measures=["alpha_nDCG@5"]) for name, each in runs.items()}
    assert rk.compare(alone, baseline="old").bounds is None
    with pytest.raises(InvalidInput, match="one grade a document"):
        rk.compare(alone, baseline="old", unjudged="skip")


def test_scores_that_do_not_know_their_documents_have_no_bounds():
    frame = pd.DataFrame({"AP": [0.1, 0.2, 0.4]}, index=["a", "b", "c"])
    frames = {"old": frame, "new": frame + 0.1}
    assert rk.compare(frames, baseline="old").bounds is None
    with pytest.raises(InvalidInput, match="do not know their unjudged documents"):
        rk.compare(frames, unjudged="skip")
    rows = {"y": [1, 0, -1, 1, 0, -1], "qid": [1, 1, 1, 2, 2, 2]}
    pooled_rows = {
        name: rk.evaluate(
            rows["y"], score, qid=rows["qid"], docid=list("xyzxyz"), measures="RR", convention="trec_eval-9.0.8"
        )
        for name, score in (("old", [1, 2, 3, 1, 2, 3]), ("new", [3, 2, 1, 2, 3, 1]))
    }
    assert rk.compare(pooled_rows, baseline="old").bounds is None
    with pytest.raises(InvalidInput, match="do not know their unjudged documents"):
        rk.compare(pooled_rows, unjudged="skip")


def test_rows_of_arrays_are_all_judged():
    evs = {
        name: rk.evaluate([1, 0, 0, 1], score, qid=["a", "a", "b", "b"], measures="AP")
        for name, score in (("old", [1, 2, 2, 1]), ("new", [2, 1, 2, 1]))
    }
    row = rk.compare(evs, baseline="old", unjudged="skip").bounds.iloc[0]
    assert row["judged_system"] == row["judged_baseline"] == 1
    assert row["lower"] == row["upper"] == row["all_relevant"] == row["difference"] == 0.25


def test_many_unequal_systems_have_a_few_notes_and_a_count():
    qrels, run = pooled(5, 20)
    runs = {f"s{k}": with_unjudged_on_top(run, 3 * k) for k in range(5)}
    compared = rk.compare(evaluated(qrels, **runs)("AP"), correction="none")
    notes = [note for note in compared.notes if "judged documents" in note or "is judged for" in note]
    n_unequal = int(compared.bounds["shares_differ"].sum())
    assert n_unequal > MOST_NOTED
    assert len(notes) == MOST_NOTED + 1
    assert notes[-1] == f"shares of judged documents differ in {n_unequal - MOST_NOTED} more comparisons: see .bounds"
