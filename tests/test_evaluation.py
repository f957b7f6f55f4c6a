"""evaluate: arrays and collections, the rules, what is counted, and what bad input is told."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from circles import choose
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from shown import whole
from tables import each_row

import rankeval as rk
from rankeval.errors import ConventionMismatch, InvalidInput, QueryIdError, RankevalWarning, UnknownName
from rankeval.evaluation import aggregate_errors, differences, from_bytes, standard_errors, to_bytes
from rankeval.evaluation.result import info_of

QRELS = {"a": {"d1": 1, "d2": 0, "d3": 2}, "b": {"d1": 1}, "c": {"d4": 0}}
RUN = {"a": {"d1": 3.0, "d9": 2.0, "d3": 1.0}, "c": {"d4": 1.0}, "z": {"d1": 1.0}}


def test_rows_in_any_order_and_a_query_in_two_blocks():
    """Arrays need no order; a query's rows need not stand together."""
    y, score, qid = [1, 0, 0, 1, 1], [0.1, 0.9, 0.5, 0.4, 0.3], ["b", "a", "b", "a", "b"]
    ev = rk.evaluate(y, score, qid=qid, measures=["RR", "P@1"])
    assert ev.per_query.loc["a"].tolist() == [0.5, 0.0]
    assert ev.per_query.loc["b"].tolist() == [0.5, 0.0]
    assert ev.per_query.index.tolist() == ["a", "b"]
    assert ev.per_query.index.name == "qid"


@each_row("qid", [[1, 1, 2], ["x", "x", "y"], [1.5, 1.5, 2.5], [(1, 2), (1, 2), (3, 4)], pd.Series(["x", "x", "y"])])
def test_ids_of_any_type(qid):
    """Ids are integers, strings, floats, tuples."""
    if isinstance(qid[0], tuple):
        column = np.empty(3, dtype=object)
        column[:] = qid
        qid = column
    assert rk.evaluate([0, 1, 1], [2, 1, 1], qid=qid, measures="RR").scores.ravel().tolist() == [0.5, 1.0]


def test_group_sizes_stand_for_ids():
    """group= cuts the rows as qid= would."""
    by_size = rk.evaluate([0, 1, 1], [2, 1, 1], group=[2, 1], measures="RR")
    assert by_size.scores.ravel().tolist() == [0.5, 1.0]
    with pytest.raises(QueryIdError, match="add up to 4, but the data has 3 rows"):
        rk.evaluate([0, 1, 1], [2, 1, 1], group=[2, 2], measures="RR")
    with pytest.raises(QueryIdError, match="different queries"):
        rk.evaluate([0, 1, 1], [2, 1, 1], group=[2, 1], qid=[1, 2, 2], measures="RR")
    with pytest.raises(QueryIdError, match="different queries"):  # a query that comes back is one query by qid=
        rk.evaluate([0, 1, 1], [2, 1, 1], group=[1, 1, 1], qid=[1, 2, 1], measures="RR")


def test_missing_and_barren_queries_count_as_zero_and_are_reported():
    """Default: a judged query that the run lacks is an empty ranking; one with nothing relevant is 0."""
    ev = rk.evaluate(QRELS, RUN, measures=["AP", "P@1"])
    assert ev.per_query["AP"].to_dict() == {"a": (1 + 2 / 3) / 2, "b": 0.0, "c": 0.0}
    assert ev.facts.totals()["missing"] == 1
    assert ev.facts.totals()["no_relevant"] == 1
    assert ev.undefined == {"AP": 1, "P@1": 0}
    assert ev.excluded == {"no judgments": ("z",)}
    assert ev.judged_share == 0.75


def test_single_rules_change_what_counts():
    """missing= and no_relevant= skip, or stop, or give one."""
    skipped = rk.evaluate(QRELS, RUN, measures="AP", missing="skip", no_relevant="skip")
    assert skipped.per_query.index.tolist() == ["a"]
    assert skipped.excluded == {
        "no judgments": ("z",),
        "missing from the run": ("b",),
        "no relevant document": ("c",),
    }
    assert rk.evaluate(QRELS, RUN, measures="AP", no_relevant="one").per_query.loc["c", "AP"] == 1.0
    with pytest.raises(InvalidInput, match=r"lacks 1 of 3 judged queries \('b'\)"):
        rk.evaluate(QRELS, RUN, measures="AP", missing="error")
    assert skipped.convention.name == "rankeval+"


def test_a_missing_query_is_no_query_without_relevant_documents():
    """Where ranked rows are all the judgments, an empty ranking has none, which does not make it perfect."""
    qrels = {"a": {"d": 1}, "b": {"d": 1}, "c": {"d": 0}}
    ev = rk.evaluate(qrels, {"a": {"d": 1.0}, "c": {"d": 1.0}}, measures=["nDCG", "AP"], convention="lightgbm")
    assert ev.per_query["nDCG"].to_dict() == {"a": 1.0, "b": 0.0, "c": 1.0}
    assert ev.per_query["AP"].to_dict() == {"a": 1.0, "b": 0.0, "c": 1.0}


def test_a_convention_that_binds_no_measure_is_refused():
    """A misspelt family would bind nothing without a word."""
    with pytest.raises(UnknownName, match="did you mean 'nDCG'"):
        rk.evaluate([1], [1], qid=[1], convention=rk.Convention("mine", bind={"nDGC": {"gain": "exp"}}))


def test_rows_or_all_judgments():
    """R and the ideal list come from all judgments of a collection, or from the rows that were ranked."""
    qrels, run = {"q": {"d1": 1, "d2": 1, "d3": 2}}, {"q": {"d1": 1.0}}
    by_qrels = rk.evaluate(qrels, run, measures=["R", "nDCG"])
    by_rows = rk.evaluate(qrels, run, measures=["R", "nDCG"], judgments="rows")
    assert by_qrels.scores[0, 0] == 1 / 3
    assert by_rows.scores[0].tolist() == [1.0, 1.0]
    assert by_qrels.convention.judgments == "qrels"
    assert any("judgments is" in one for one in differences(by_qrels, by_rows))


def test_ties_by_docid_are_descending_bytes():
    """trec_eval puts d3 before d2 before d1, and 9 before 10."""
    qrels = {"q": {"d1": 1, "d3": 0}}
    run = {"q": {"d1": 1.0, "d3": 1.0}}
    assert rk.evaluate(qrels, run, measures="RR", convention="trec_eval-9.0.8").scores[0, 0] == 0.5
    assert rk.evaluate(qrels, run, measures="RR").scores[0, 0] == 0.75
    assert rk.evaluate([1, 0], [1, 1], qid=[1, 1], docid=[9, 10], measures="RR", ties="docid").scores[0, 0] == 1.0
    with pytest.raises(InvalidInput, match="needs docid="):
        rk.evaluate([1, 0], [1, 1], qid=[1, 1], measures="RR", ties="docid")


def test_negative_labels_are_judged_and_not_relevant():
    """A label below zero gains nothing; the scikit-learn preset refuses it."""
    ev = rk.evaluate([-1, 2], [2, 1], qid=[1, 1], measures=["nDCG", "NumRel"])
    assert ev.scores[0].tolist() == [1 / np.log2(3), 1.0]
    with pytest.raises(InvalidInput, match="below zero"):
        rk.evaluate([-1, 2], [2, 1], qid=[1, 1], convention="sklearn")


def test_float_grades():
    """Grades need not be whole numbers, and rel compares them as they are."""
    ev = rk.evaluate([0.5, 1.5, 0.0], [1, 2, 3], qid=[1, 1, 1], measures=["P(rel=0.5)@3", "P@3", "nDCG"])
    ideal = 1.5 + 0.5 / np.log2(3)
    assert ev.scores[0] == pytest.approx([2 / 3, 1 / 3, (1.5 / np.log2(3) + 0.5 / 2) / ideal])


@each_row(
    ("options", "says"),
    [
        ({"ranking": [1, np.nan, 2]}, "ranking: row 1 is nan"),
        ({"ranking": [1, np.inf, 2]}, "ranking: row 1 is inf"),
        ({"truth": [1, np.nan, 2]}, "truth: row 1 is nan"),
        ({"truth": [1, 2]}, "unequal lengths: truth has 2, ranking has 3"),
        ({"truth": ["a", "b", "c"]}, "truth: expected numbers"),
        ({"ranking": [[1], [2], [3]]}, r"ranking: expected one number a row, found an array of shape \(3, 1\)"),
        ({"qid": [1, None, 2]}, "qid: row 1 has no query id"),
        ({"qid": [1.0, np.nan, 2.0]}, r"qid: row 1 has no query id \(found nan\)"),
        ({"qid": np.array([1, "1", 2], dtype=object)}, "several types"),
        ({"measures": []}, "at least one"),
        ({"convention": "trec_eval"}, "did you mean 'trec_eval-10' or 'trec_eval-9.0.8'"),
        ({"ties": "random"}, "unknown value of the rule ties 'random'"),
        ({"query_weight": {1: 1.0}}, "query 2 has none"),
        ({"query_weight": [1, 2, 3]}, "several within one query"),
    ],
)
def test_bad_input_is_told_what_and_where(options, says):
    """One clear line for each mistake."""
    given = {"truth": [1, 0, 1], "ranking": [3, 2, 1], "qid": [1, 1, 2], **options}
    with pytest.raises(InvalidInput, match=says):
        rk.evaluate(given.pop("truth"), given.pop("ranking"), **given)


def test_forgotten_ids_and_unlike_types():
    """Arrays without qid, and integer ids against strings, are refused."""
    with pytest.raises(QueryIdError, match="qid= is missing"):
        rk.evaluate([1, 0], [1, 0])
    with pytest.raises(InvalidInput, match="1 is not '1'"):
        rk.evaluate({1: {"d": 1}}, {"1": {"d": 1.0}})
    with pytest.raises(InvalidInput, match="no query in common"):
        rk.evaluate({"1": {"d": 1}}, {"2": {"d": 1.0}})
    with pytest.raises(UnknownName, match=r"nDCG@10"):
        rk.evaluate([1], [1], qid=[1], measures="nDGC@10")


def test_a_document_twice_in_a_ranking_is_refused():
    """Duplicates would count a document's gain twice."""
    run = rk.Run(qid=["q", "q", "q"], docid=["d1", "d2", "d1"], score=[3.0, 2.0, 1.0])
    with pytest.raises(InvalidInput, match="run: document 'd1' occurs twice in query 'q'"):
        rk.evaluate({"q": {"d1": 1}}, run)


def test_weights_weigh_queries():
    """By mapping or by row, the mean is weighted."""
    by_query = rk.evaluate([0, 1, 1], [2, 1, 1], qid=[1, 1, 2], measures="RR", query_weight={1: 3.0, 2: 1.0})
    by_row = rk.evaluate([0, 1, 1], [2, 1, 1], qid=[1, 1, 2], measures="RR", query_weight=[3, 3, 1])
    assert by_query.aggregate()["RR"] == by_row.aggregate()["RR"] == (3 * 0.5 + 1) / 4


def test_interval_is_students_t():
    """ci() equals SciPy's interval of the mean."""
    rng = np.random.default_rng(0)
    ev = rk.evaluate(rng.integers(0, 2, 300), rng.random(300), group=[10] * 30, measures=["AP", "NumRel"])
    low, high = stats.t.interval(0.9, 29, ev.scores[:, 0].mean(), stats.sem(ev.scores[:, 0]))
    assert ev.ci(0.9).loc["AP"].tolist() == pytest.approx([ev.scores[:, 0].mean(), low, high], rel=1e-12)
    assert list(ev.ci().index) == ["AP"]


@given(
    st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), min_size=2, max_size=12),
    st.sampled_from([0.5, 0.95, 0.999]),
)
def test_an_interval_is_that_of_t_within_the_range_of_the_measure(rows, level):
    """DCG has no greatest value, and its interval is cut at 0 alone."""
    ev = rk.evaluate(
        np.ravel(rows), np.tile([3, 2, 1], len(rows)), group=[3] * len(rows), measures=["RR", "P@2", "DCG@3"]
    )
    for (mean, low, high), scores, greatest in zip(ev.ci(level).to_numpy(), ev.scores.T, (1, 1, np.inf), strict=True):
        if np.ptp(scores) == 0:
            assert np.isnan([low, high]).all()
        else:
            ends = stats.t.interval(level, len(rows) - 1, mean, stats.sem(scores))
            assert [low, high] == pytest.approx([max(0, ends[0]), min(greatest, ends[1])], rel=1e-9, abs=1e-12)


def test_an_interval_holds_its_mean_if_a_measure_declares_too_narrow_a_range():
    """A measure of somebody else's may forget to declare that its values go beyond 1."""
    ev = rk.evaluate([3, 0, 1, 0], [2, 1, 2, 1], qid=[1, 1, 2, 2], measures="DCG@2")
    (dcg,) = ev.measures
    narrow = replace(ev, measures=(replace(dcg, family=replace(dcg.family, bounds=(0.0, 1.0))),))
    assert narrow.ci().loc["DCG@2"].tolist() == [2, 0, 3]


@each_row("qid", [[3, 3, 1], ["c", "c", "a"], [3.5, 3.5, 1.0]])
def test_save_and_load_give_the_same_evaluation(tmp_path, qid):
    """Every part comes back, to the last bit."""
    ev = rk.evaluate([0, 1, 2], [2, 1, 1], qid=qid, measures=["nDCG@10", "map"], query_weight=[1, 1, 2], name="a")
    ev.save(tmp_path / "ev.parquet")
    back = rk.Evaluation.load(tmp_path / "ev.parquet")
    pd.testing.assert_frame_equal(back.per_query, ev.per_query, check_exact=True)
    assert back.convention == ev.convention
    for part in (
        "measure_names",
        "measures",
        "excluded",
        "undefined",
        "judgments_digest",
        "ranking_digest",
        "name",
    ):
        assert getattr(back, part) == getattr(ev, part)
    assert back.facts.totals() == ev.facts.totals()
    assert back.aggregate().equals(ev.aggregate())
    assert [path.name for path in tmp_path.iterdir()] == ["ev.parquet"]
    (tmp_path / "other.parquet").write_bytes(b"PAR1")
    with pytest.raises(InvalidInput, match=r"Evaluation\.save"):
        rk.Evaluation.load(tmp_path / "other.parquet")


@pytest.mark.random
@each_row("how", ["all bits", "weights", "drawn", "ids like the checksum"])
def test_no_flipped_bit_loads_other_content(how):
    """Facts, convention, names and weights count too: what loads would be saved as the same bytes."""
    rng = np.random.default_rng(0)
    name = "rankeval.sha256\N{MIDDLE DOT}\x18@" if how == "ids like the checksum" else "q"
    qid = np.repeat([f"{name}{i:02}" for i in range(20)], 10)
    y, score = rng.integers(0, 3, 200), rng.random(200).round(1 if how == "drawn" else 6)
    weights = {"query_weight": rng.integers(1, 4, 20).repeat(10)} if how == "weights" else {}
    whole = to_bytes(rk.evaluate(y, score, qid=qid, measures=["AP", "nDCG@10"], name=name, **weights))
    assert to_bytes(from_bytes(whole)) == whole
    step = choose(default=7, complete=1) if how == "all bits" else choose(default=141, full=1)
    bits, refused = range(0, 8 * len(whole), step), 0
    for bit in bits:
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            loaded = from_bytes(bytes(flipped))
        except InvalidInput:
            refused += 1
        else:
            assert to_bytes(loaded) == whole, bit
    assert refused > 0.95 * len(bits)


def test_a_file_without_a_checksum_is_read_and_what_a_program_appends_is_refused(tmp_path):
    """Versions before the checksum wrote none, nor does a program that writes the table anew."""
    whole = to_bytes(rk.evaluate([0, 1, 2], [2, 1, 1], qid=["a", "a", "b"], measures="AP"))
    pq.write_table(pq.read_table(pa.BufferReader(whole)), tmp_path / "old.parquet")
    assert to_bytes(rk.Evaluation.load(tmp_path / "old.parquet")) == whole
    with pytest.raises(InvalidInput, match="altered after it was saved") as raised:
        from_bytes(whole[:4] + b"\0" + whole[4:], "here.parquet")
    assert raised.value.where == "here.parquet"
    assert "restore" in raised.value.remedy


def test_scores_by_an_older_definition_are_not_compared_with_new_ones():
    """A file from before the change has no number. Its measures, evaluated again, are those of today."""
    new = rk.evaluate([0, 1, 2], [2, 1, 1], qid=[1, 1, 1], measures=["Compat", "AP"])
    table = pq.read_table(pa.BufferReader(to_bytes(new)))
    card = json.loads(table.schema.metadata[b"rankeval.evaluation"])
    assert card.pop("semantics") == [2, 1]
    sink = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata({b"rankeval.evaluation": json.dumps(card)}), sink)
    old = from_bytes(sink.getvalue().to_pybytes())
    assert differences(from_bytes(to_bytes(new)), new) == []
    assert differences(from_bytes(to_bytes(old)), old) == []
    assert differences(old, new) == [
        "Compat means Compat of definition 1 in one and Compat of definition 2 in the other"
    ]
    with pytest.raises(ConventionMismatch, match="definition 1"):
        rk.compare({"old": old, "new": new})
    assert pickle.loads(pickle.dumps(old.measures[0])) == old.measures[0] != new.measures[0]
    again = rk.evaluate([0, 1, 2], [2, 1, 1], qid=[1, 1, 1], measures=list(old.measures))
    assert differences(again, new) == []


@each_row("ties", ["expected", "docid"])
def test_scores_that_rank_nothing_are_said_in_text_and_page(ties):
    """All rows of a query have one score: the value is that of no ranking."""
    qrels = {q: {f"{q}{d}": d % 2 for d in range(4)} for q in "abc"}
    flat = {q: dict.fromkeys(documents, 1.0) for q, documents in qrels.items()}
    halves = {q: {document: grade % 2 for document, grade in documents.items()} for q, documents in qrels.items()}
    ev = rk.evaluate(qrels, flat, measures="nDCG@10", ties=ties)
    for text in (whole(ev), ev._repr_html_(), *ev.notes):
        assert "constant scores: all rows are tied in 3 of 3 queries" in text
    assert rk.evaluate(qrels, halves, measures="nDCG@10", ties=ties).notes == ()  # all rows are tied, in two groups
    assert rk.evaluate(qrels, {**halves, "a": flat["a"]}, measures="nDCG@10", ties=ties).notes == ()
    assert "2 of 3" in repr(rk.evaluate(qrels, {**flat, "a": halves["a"]}, measures="nDCG@10", ties=ties))
    better = rk.evaluate(qrels, qrels, measures="nDCG@10", ties=ties)
    assert f"old: {ev.notes[0]}" in rk.compare({"old": ev, "new": better}, baseline="old").notes


def test_labels_below_zero_are_said_in_text_and_page():
    """With the meaning that the convention gives them; a subset counts its own."""
    for rules, said in (
        ("rankeval", "2 documents with a label below zero, taken as not relevant"),
        ("trec_eval-9.0.8", "1 ranked document with a label below zero, taken as not judged"),
    ):
        qrels = {"a": {"x": -1, "y": 1, "z": -2}, "b": {"x": 1, "y": 0}}
        ev = rk.evaluate(qrels, {q: {"x": 2.0, "y": 1.0} for q in qrels}, measures="AP", convention=rules)
        for text in (whole(ev), ev._repr_html_(), *ev.notes):
            assert said in text
        assert "below zero" not in repr(ev.subset(["b"]))


def test_rules_that_touched_nothing_do_not_differ():
    """Without ties the rule on ties is equal; with them it is named."""
    one = rk.evaluate([0, 1], [2, 1], qid=[1, 1])
    two = rk.evaluate([0, 1], [2, 1], qid=[1, 1], ties="stable")
    assert differences(one, two) == []
    tied = rk.evaluate([0, 1], [1, 1], qid=[1, 1], ties="stable")
    assert differences(one, tied) == ["ties is 'expected' in one and 'stable' in the other"]
    other = rk.evaluate([1, 1], [2, 1], qid=[1, 1])
    assert "the judgments differ" in differences(one, other)[0]
    assert differences(one, other)[0].endswith(
        "; compare systems with the same judgments, the same subset of both, or several collections by "
        "{system: {collection: evaluation}}"
    )


def test_digests_know_content_and_not_order():
    """Row order changes neither digest; another ranking changes one, other labels the other."""
    y, score, qid = np.array([0, 1, 2, 0]), np.array([4.0, 3.0, 2.0, 1.0]), np.array([1, 1, 2, 2])
    ev = rk.evaluate(y, score, qid=qid)
    again = rk.evaluate(y[::-1], score[::-1], qid=qid[::-1])
    assert (ev.judgments_digest, ev.ranking_digest) == (again.judgments_digest, again.ranking_digest)
    turned = rk.evaluate(y, -score, qid=qid)
    assert turned.judgments_digest == ev.judgments_digest
    assert turned.ranking_digest != ev.ranking_digest


def test_html_is_escaped():
    """A system's name may hold markup; it is shown and not run."""
    ev = rk.evaluate([1], [1], qid=["<b>"], name="<script>alert(1)</script>")
    assert "<script>" not in ev._repr_html_()
    assert ["nDCG@10", "1.0000"] in [line.split() for line in repr(ev).splitlines()]


@pytest.mark.usefixtures("without_formula")
def test_values_from_drawn_orders_are_said_to_be_so(tmp_path):
    """A mean over drawn orders is near the exact one, the same every time, and has its error; exact ones have none."""
    rng = np.random.default_rng(0)
    y, nobody = np.repeat([1, 0], [8, 12]), np.zeros(20, dtype=int)
    ev = rk.evaluate(y, np.zeros(20), qid=nobody, measures=["SquaredAP", "AP"])
    error = standard_errors(ev).loc[0, "SquaredAP"]
    assert info_of(ev)["ties"] == (
        "mean over 400 drawn orders of tied rows, where there were too many: SquaredAP in 1 query "
        f"(standard error of the mean {error:.2g})"
    )
    assert standard_errors(ev).loc[0, "AP"] == 0
    for told in (whole(ev), ev._repr_html_(), " ".join(ev.notes)):
        assert info_of(ev)["ties"] in told
    ev.save(tmp_path / "ev.parquet")
    again = rk.Evaluation.load(tmp_path / "ev.parquet")
    assert info_of(again) == info_of(ev)
    pd.testing.assert_frame_equal(standard_errors(again), standard_errors(ev))
    shuffled = [rk.evaluate(rng.permutation(y), -np.arange(20), qid=nobody, measures="SquaredAP") for _ in range(300)]
    values = np.array([one.scores[0, 0] for one in shuffled])
    assert abs(values.mean() - ev.scores[0, 0]) < 4 * np.hypot(values.std(ddof=1) / np.sqrt(300), error)
    exact = rk.evaluate([1, 0, 0], [1, 1, 0], qid=[1, 1, 1], measures=["SquaredAP"])
    assert (info_of(exact), exact.facts.errors) == ({}, None)
    assert from_bytes(to_bytes(exact)).facts.errors is None
    assert aggregate_errors(exact).tolist() == [0]


@pytest.mark.usefixtures("without_formula")
def test_the_errors_of_aggregates_follow_from_those_of_queries():
    """Squares of errors add up, by the weights of queries; a geometric mean is as sensitive as it is large."""
    qid = np.repeat(["a", "b", "c"], [30, 30, 2])
    y = np.tile([1, 0], 31)
    weights = {"a": 1.0, "b": 3.0, "c": 2.0}
    ev = rk.evaluate(y, np.zeros(62), qid=qid, measures=["SquaredAP", "NumRel"], query_weight=weights)
    a, b, c = standard_errors(ev)["SquaredAP"]
    assert a > 0
    assert b > 0
    assert c == 0
    found = aggregate_errors(ev)
    assert found["SquaredAP"] == pytest.approx(np.hypot(a, 3 * b) / 6)
    for aggregate, error in {
        "sum": np.hypot(a, 3 * b),
        "gmean": np.exp(ev.aggregate()["SquaredAP"]) * np.hypot(a, 3 * b) / 6,
    }.items():
        one = replace(ev.measures[0], family=replace(ev.measures[0].family, aggregate=aggregate))
        told = replace(ev, measures=(one, ev.measures[1]))
        assert aggregate_errors(told)["SquaredAP"] == pytest.approx(error)
    assert found["NumRel"] == 0
    left = rk.evaluate(
        np.append(y, 0), np.zeros(63), qid=np.append(qid, "none"), measures=["SquaredAP"], no_relevant="skip"
    )
    assert standard_errors(left).index.tolist() == ["a", "b", "c"]
    assert standard_errors(left)["SquaredAP"].tolist() == standard_errors(ev)["SquaredAP"].tolist()


def test_a_ranking_is_cut_before_unjudged_documents_are_taken_out():
    """With a depth of 2 and unjudged documents left out, what stood at rank 3 does not move up (trec_eval -M2 -J)."""
    qrels, run = {"q": {"a": 1, "b": 1}}, {"q": {"x": 3.0, "a": 2.0, "b": 1.0}}
    names = ["NumRet", "RR", "R"]
    rules = rk.Convention("both", ties="docid", unjudged="skip", depth=2)
    assert rk.evaluate(qrels, run, measures=names, convention=rules).per_query.iloc[0].tolist() == [1, 1, 0.5]
    rules = rk.Convention("one", ties="docid", unjudged="skip")
    assert rk.evaluate(qrels, run, measures=names, convention=rules).per_query.iloc[0].tolist() == [2, 1, 1]


@each_row("qid", [[1, "1"], ["1", float("nan")], ["1", None], (1, "1")])
def test_ids_that_numpy_would_make_texts_of_are_refused(qid):
    """A plain list of 1 and "1" is two queries, or a mistake: never one query of two rows."""
    with pytest.raises(QueryIdError, match=r"^qid: .*row 1 has"):
        rk.evaluate([1, 0], [1, 2], qid=qid, measures="RR")


@each_row("docid", [[1, "a"], ["a", None], ["a", float("nan")]])
def test_documents_are_held_to_the_same(docid):
    """Document ids are of one type too, and none is missing, whatever the rule for ties."""
    with pytest.raises(InvalidInput, match=r"^docid: .*row 1 has"):
        rk.evaluate([1, 0], [1, 1], qid=[1, 1], docid=docid, measures="RR")


@each_row(
    "docid",
    [
        ["x", "y", "x"],
        [7, 8, 7],
        np.array([2**63, 1, 2**63], dtype=np.uint64),
        pd.Series(["x", "y", "x"]),
        [1.5, 2.5, 1.5],
    ],
)
def test_a_document_stands_once_in_a_query(docid):
    """The card says duplicates='error'; the same document in two queries is no duplicate."""
    assert rk.evaluate([1, 0, 1], [1, 2, 3], qid=[1, 1, 2], docid=docid, measures="RR").n_queries == 2
    for qid, rows in (([1, 2, 1], "rows 0 and 2"), ([1, 1, 1], "rows 0 and 2")):
        with pytest.raises(InvalidInput, match=f"occurs twice in query '1' \\({rows}, counting from 0"):
            rk.evaluate([1, 0, 1], [1, 2, 3], qid=qid, docid=docid, measures="RR")


def test_nothing_to_evaluate_is_refused():
    """Empty arrays and empty judgments are a mistake before, not a mean of nan."""
    empty = pd.DataFrame({"qid": [], "docid": [], "relevance": []})
    with pytest.raises(InvalidInput, match="truth, ranking and qid are empty"):
        rk.evaluate([], [], qid=[])
    with pytest.raises(InvalidInput, match="the qrels are empty"):
        rk.evaluate(empty, empty.rename(columns={"relevance": "score"}))
    with pytest.raises(InvalidInput, match="the qrels are empty"):
        rk.evaluate({"q": {}}, RUN)


def test_a_mean_over_no_query_is_said():
    """Where a rule leaves out every query, a warning says why the means are nan."""
    with pytest.warns(RankevalWarning, match=r"no query is left \(1 by 'no relevant document'\), so every mean is nan"):
        ev = rk.evaluate([0, 0], [1, 2], qid=[1, 1], measures="AP", no_relevant="skip")
    assert ev.aggregate().isna().all()
    with pytest.warns(RankevalWarning, match=r"3 by 'missing from the run'"):
        rk.evaluate(QRELS, {}, measures="AP", missing="skip")


def test_what_counts_as_zero_is_shown_with_the_numbers():
    """Queries that the run lacks, and those left out, stand in repr and HTML."""
    ev = rk.evaluate(QRELS, RUN, measures="AP")
    assert ev.notes == (
        "1 query missing from the run: scored as an empty ranking",
        "1 query left out: no judgments",
        "1 query without a relevant document: 0/0 counted as 0",
    )
    for shown in (whole(ev), ev._repr_html_()):
        assert all(note in shown for note in ev.notes)
    left_out = rk.evaluate(QRELS, RUN, measures="AP", missing="skip", no_relevant="skip")
    assert left_out.notes == (
        "1 query left out: no judgments",
        "1 query left out: missing from the run",
        "1 query left out: no relevant document",
    )
    assert rk.evaluate([1], [1], qid=[1], measures="AP").notes == ()


@each_row(
    ("rules", "said"),
    [
        ({"bind": 5}, r"^bind is 5; expected parameters of families: \{'nDCG': \{'gain': 'exp'\}\}$"),
        ({"bind": {"nDCG": "exp"}}, "^bind is"),
        ({"depth": 2.5, "ties": "docid"}, "^depth is 2.5; expected a whole number, 1 or greater$"),
        ({"depth": "5", "ties": "docid"}, "^depth is '5'; expected a whole number"),
        ({"depth": 0, "ties": "docid"}, "^depth is 0; expected a whole number"),
    ],
)
def test_a_convention_that_cannot_be_is_refused_when_it_is_made(rules, said):
    """Not later, by a TypeError, or never."""
    with pytest.raises(InvalidInput, match=said):
        rk.Convention(**rules)


def test_grades_that_a_map_of_gains_does_not_name_are_counted():
    """Their gain is the grade, as in trec_eval; a reader of the numbers is told. Grade 0 has no gain either way."""
    y, qid = [1, 3, 0, 3, 4, 2], [1, 1, 1, 2, 2, 2]
    measures = ["nDCG(gain={1: 1, 2: 5})@10", "DCG(gain={1: 1, 2: 5})@1", "AP"]
    ev = rk.evaluate(y, [3, 2, 1, 3, 2, 1], qid=qid, measures=measures)
    assert ev.scores[1, 1] == 3
    assert ev.facts.totals()["gain"] == 3
    said = "with a grade that the map of gains does not name: the gain is the grade"
    assert ev.notes == (f"3 documents {said}",)
    assert ev.subset([1]).notes[0] == f"1 document {said}"
    named = rk.evaluate(y, [3, 2, 1, 3, 2, 1], qid=qid, measures="nDCG(gain={1: 1, 2: 5, 3: 9, 4: 16})@10")
    assert named.notes == ()
    assert "gain" not in rk.evaluate(y, [3, 2, 1, 3, 2, 1], qid=qid).facts.totals()
    qrels, run = {"q": {"a": 3, "b": 5}}, {"q": {"a": 1.0, "c": 0.5}}
    assert rk.evaluate(qrels, run, measures="nDCG(gain={3: 4})").facts.totals()["gain"] == 1


def test_an_evaluation_shows_what_a_reader_uses():
    """Machinery is in `facts`, and in functions of the module."""
    shown = [name for name in dir(rk.evaluate([1, 0], [2, 1], qid=[1, 1])) if not name.startswith("_")]
    assert len(shown) <= 28
