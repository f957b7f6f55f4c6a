"""Unjudged documents: the share judged by cut-off, and the scores that evaluations keep for their other readings."""

from __future__ import annotations

import numpy as np
import pytest
from circles import choose
from tables import each_row

import rankeval as rk
from rankeval.evaluation.facts import READINGS
from rankeval.evaluation.merging import merged
from rankeval.evaluation.result import reading_of
from rankeval.measures.family import FAMILIES

NEEDED = {"max_rel": 3, "collection_size": 1000, "cutoff": 4, "recall": 0.5, "p": 0.8, "multiple": 0.4}


def every_measure() -> list[str]:
    """Return the name of every measure that reads a grade a document, with a cut-off too where it takes one."""
    names = []
    for family in FAMILIES.values():
        if family.needs != "grades" or not family.kernel.__module__.startswith("rankeval."):
            continue
        given = {name: NEEDED[name] for name in family.required}
        names.append(str(family.with_parameters(**given)))
        if "cutoff" in family.defaults and "cutoff" not in given:
            names.append(str(family.with_parameters(**given, cutoff=3)))
    return names


def collection(seed, *, n_queries=6, levels=4, tied=True):
    """Return judgments and a run as dicts; about half of the ranked documents are judged, and many scores are tied."""
    rng = np.random.default_rng(seed)
    qrels, run = {}, {}
    for query in range(n_queries):
        judged = rng.choice(14, 8, replace=False)
        qrels[f"q{query}"] = {f"d{d}": int(grade) for d, grade in zip(judged, rng.integers(0, levels, 8), strict=True)}
        ranked = rng.choice(14, rng.integers(1, 10), replace=False)
        scores = rng.integers(0, 5, len(ranked)) if tied else rng.permutation(len(ranked))
        run[f"q{query}"] = {f"d{d}": float(score) for d, score in zip(ranked, scores, strict=True)}
    qrels["q0"]["d0"] = 3  # the greatest grade of the collection, also where few grades are drawn
    return qrels, run


def completed(qrels, run, cutoff):
    """Return the judgments with every unjudged document that may stand within the cut-off, under the greatest grade."""
    greatest = max(grade for grades in qrels.values() for grade in grades.values())
    whole = {}
    for query, scores in run.items():
        ordered = sorted(scores.values(), reverse=True)
        least = -np.inf if cutoff is None or cutoff >= len(ordered) else ordered[cutoff - 1]
        found = {d: greatest for d, score in scores.items() if score >= least and d not in qrels[query]}
        whole[query] = {**qrels[query], **found}
    return whole


@pytest.mark.random
@pytest.mark.parametrize("ties", ["expected", "docid"])
@each_row("name", every_measure())
def test_readings_are_what_other_judgments_and_the_rule_for_condensed_lists_give(name, ties):
    for seed in range(choose(default=2, full=4)):
        qrels, run = collection(seed, tied=ties == "expected")
        found = rk.evaluate(qrels, run, measures=name, ties=ties)
        whole = completed(qrels, run, rk.measure(name).cutoff)
        expected = rk.evaluate(whole, run, measures=name, ties=ties)
        skipping = rk.Convention(unjudged="skip", ties=ties)
        np.testing.assert_array_equal(reading_of(found, "relevant"), expected.scores)
        skipped = rk.evaluate(qrels, run, measures=name, convention=skipping)
        np.testing.assert_array_equal(reading_of(found, "skipped"), skipped.scores)


def test_the_share_judged_is_that_of_the_documents_within_the_cut_off_of_each_measure():
    for seed in range(6):
        qrels, run = collection(seed)
        names = ["P@2", "nDCG@5", "AP", "alpha_nDCG@3"][: 3 if seed else 4]
        known = rk.Qrels.from_dict(qrels) if seed else rk.Qrels.from_frame(_with_aspects(qrels))
        found = rk.evaluate(known, rk.Run.from_dict(run), measures=names)
        expected = rk.evaluate(qrels, run, measures=["Judged@2", "Judged@5", "Judged", "Judged@3"][: len(names)])
        np.testing.assert_array_equal(reading_of(found, "judged"), expected.scores)
        if not seed:  # a document may be relevant for one aspect and not for another
            assert np.isnan(reading_of(found, "relevant")[:, 3]).all()
            assert not np.isnan(reading_of(found, "skipped")[:, :3]).any()


def _with_aspects(qrels):
    import pandas as pd

    rows = [(query, d, 1, grade) for query, grades in qrels.items() for d, grade in grades.items()]
    return pd.DataFrame(rows, columns=["qid", "docid", "aspect", "relevance"])


def test_a_query_without_ranked_documents_has_no_unjudged_ones():
    qrels, run = {"a": {"x": 1}, "b": {"x": 1}}, {"a": {"x": 0.4, "y": 0.5}}
    found = rk.evaluate(qrels, run, measures="RR")
    assert reading_of(found, "judged").tolist() == [[0.5], [1.0]]
    assert reading_of(found, "relevant").tolist() == [[1.0], [0.0]]


def test_where_all_documents_are_judged_nothing_is_kept():
    rows = rk.evaluate([1, 0, 0], [0.2, 0.5, 0.1], qid=[1, 1, 1], measures="RR")
    listed = rk.evaluate({"q": {"x": 1, "y": 0}}, {"q": {"x": 0.4, "y": 0.5}}, measures="RR")
    for found in (rows, listed):
        assert found.facts.readings == {}
        assert reading_of(found, "judged").tolist() == [[1.0]]
        for reading in READINGS[1:]:
            np.testing.assert_array_equal(reading_of(found, reading), found.scores)


def test_unjudged_rows_of_arrays_are_not_read():
    """A label below zero under the rules of trec_eval: no other documents are known, nor how good they may be."""
    found = rk.evaluate([1, -1], [0.2, 0.5], qid=[1, 1], docid=["x", "y"], measures="RR", convention="trec_eval-9.0.8")
    assert found.judged_share == 0.5
    assert all(np.isnan(reading_of(found, reading)).all() for reading in READINGS)


def test_readings_survive_files_subsets_and_merging(tmp_path):
    qrels, run = collection(1)
    names = ["nDCG@3", "P@2"]
    whole = rk.evaluate(qrels, run, measures=names)
    assert 0 < reading_of(whole, "judged").mean() < 1
    whole.save(tmp_path / "kept.parquet")
    kept = rk.Evaluation.load(tmp_path / "kept.parquet")
    some = whole.subset(["q1", "q4"])
    run["q5"] = {d: score for d, score in run["q5"].items() if d in qrels["q5"]} or {"d0": 1.0}
    parts = [
        rk.evaluate({q: qrels[q] for q in part}, {q: run[q] for q in part}, measures=names)
        for part in (["q0", "q2"], ["q1", "q3", "q4"])
    ]
    together = merged([*parts, rk.evaluate({"q5": dict.fromkeys(run["q5"], 1)}, {"q5": run["q5"]}, measures=names)])
    for reading in READINGS:
        np.testing.assert_array_equal(reading_of(kept, reading), reading_of(whole, reading))
        np.testing.assert_array_equal(reading_of(some, reading), reading_of(whole, reading)[[1, 4]])
        np.testing.assert_array_equal(reading_of(together, reading)[:5], reading_of(whole, reading)[:5])
    np.testing.assert_array_equal(reading_of(together, "judged")[5], [1.0, 1.0])
    np.testing.assert_array_equal(reading_of(together, "relevant")[5], together.scores[5])
