"""One grade of many labels: the majority, Dawid and Skene's estimate, and where they differ."""

import warnings

import numpy as np
import pandas as pd
import pytest
from circles import examples
from golden.agreement_tables import N_TABLES, drawn
from hypothesis import given, settings
from hypothesis import strategies as st
from judging.test_agreement import labels_of
from shown import whole
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput, RankevalWarning, UnknownName
from rankeval.judging import consensus

CLEAR = {judge: {"q": {"a": 2, "b": 0, "c": 1}} for judge in ("ann", "bo", "cy")}


def crowd(rng, right, n_items=1000, n_labels=5):
    """Return labels 0 and 1 by judges who are right so often, each document labelled by a few, and the truth."""
    truth = rng.integers(0, 2, n_items)
    item = np.repeat(np.arange(n_items), n_labels)
    judge = np.concatenate([rng.choice(len(right), n_labels, replace=False) for _ in range(n_items)])
    label = np.where(rng.random(len(item)) < right[judge], truth[item], 1 - truth[item])
    labels = pd.DataFrame({"qid": item // 25, "docid": item, "aspect": judge, "relevance": label})
    return labels, pd.Series(truth)


def accuracy(found, truth):
    """Return the share of documents with the true grade by each method."""
    items = found.table.set_index("docid").sort_index()
    return tuple(float((items[name] == truth).mean()) for name in ("majority", "dawid_skene"))


def test_the_estimate_sees_through_judges_who_answer_the_wrong_way_round():
    """Of 30 judges 24 are right four times out of five, and 6 wrong as often: .92 where the majority has about .80."""
    right = np.array([0.8] * 24 + [0.2] * 6)
    for seed in range(3):
        labels, truth = crowd(np.random.default_rng(seed), right)
        found = consensus(labels, method="dawid_skene")
        majority, estimated = accuracy(found, truth)
        assert majority == pytest.approx(0.81, abs=0.03)
        assert estimated >= 0.92
        judges = found.judges.set_index("judge").sort_index()
        assert judges["estimated_accuracy"].to_numpy() == pytest.approx(right, abs=0.12)
        assert len(found.differ) == (found.table["majority"] != found.table["dawid_skene"]).sum() > 0


def test_with_weak_judges_the_estimate_loses_and_says_so():
    """All judges are right three times out of five: the majority is nearer the truth."""
    labels, truth = crowd(np.random.default_rng(0), np.full(30, 0.6))
    with pytest.warns(RankevalWarning, match="the judges are weak"):
        found = consensus(labels, method="dawid_skene")
    majority, estimated = accuracy(found, truth)
    assert majority > estimated
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the majority is no worse for it, so there is a note only
        assert any("the judges are weak" in note for note in consensus(labels).notes)


@pytest.mark.shared
def test_on_a_crowd_the_majority_is_nearer_the_assessors(shared):
    """TREC 2011 crowdsourcing, 290 documents with grades by NIST: 203 right by the majority, 199 by the estimate."""
    votes = pd.read_csv(
        shared / "agreement_trec_crowd2011/votes.tsv.gz", sep="\t", names=["order", "pair", "aspect", "relevance"]
    )
    votes[["qid", "docid"]] = votes["pair"].str.split("_", n=1, expand=True)
    gold = pd.read_csv(
        shared / "agreement_trec_crowd2011/consensus_and_nist_gold.txt.gz", sep="\t", usecols=[1, 2, 3], dtype=str
    ).set_axis(["qid", "docid", "grade"], axis=1)
    gold = gold[gold["grade"] != "-1"].drop_duplicates(["qid", "docid"])
    found = consensus(votes[["qid", "docid", "aspect", "relevance"]])
    both = found.table.merge(gold, on=["qid", "docid"])
    relevant = both["grade"] != "0"
    assert len(both) == 290
    assert ((both["majority"] == 1) == relevant).sum() == 203
    assert ((both["dawid_skene"] == 1) == relevant).sum() == pytest.approx(199, abs=2)


def test_the_estimate_has_the_values_of_the_formulas():
    """A round of EM from the shares of the labels, by loops over documents, judges and grades, changes nothing."""
    labels, _ = crowd(np.random.default_rng(5), np.array([0.9, 0.8, 0.7, 0.2]), n_items=40, n_labels=3)
    found = consensus(labels, method="dawid_skene")
    chance = {
        row.docid: [1 - row.probability, row.probability] if row.dawid_skene else [row.probability, 1 - row.probability]
        for row in found.table.itertuples()
    }
    n = len(chance)
    prior = [(sum(one[grade] for one in chance.values()) + 0.1) / (n + 0.2) for grade in (0, 1)]
    errors = {}
    for judge, own in labels.groupby("aspect"):
        for grade in (0, 1):
            table = [0.1, 0.1]
            for row in own.itertuples():
                table[row.relevance] += chance[row.docid][grade]
            errors[judge, grade] = [cell / sum(table) for cell in table]
    for docid, given_to in labels.groupby("docid"):
        likely = [
            prior[grade] * np.prod([errors[row.aspect, grade][row.relevance] for row in given_to.itertuples()])
            for grade in (0, 1)
        ]
        assert likely[1] / sum(likely) == pytest.approx(chance[docid][1], abs=1e-5)
    for row in found.judges.itertuples():
        own = labels[labels["aspect"] == row.judge]
        expected = np.mean([chance[label.docid][label.relevance] for label in own.itertuples()])
        assert row.estimated_accuracy == pytest.approx(expected, abs=1e-9)


def panel(seed, right, family=(), n=400, shared=0.15):
    """Return labels by judges who are right so often; those of the family see the other grade together."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, 2, n)
    seen = np.repeat(true[:, None], len(right), axis=1)
    seen[:, list(family)] ^= (rng.random(n) < shared)[:, None]
    labels = seen ^ (rng.random(seen.shape) > right)
    frame = pd.DataFrame(labels, columns=[f"judge {k}" for k in range(len(right))]).assign(qid="q", docid=range(n))
    return frame.melt(["qid", "docid"], var_name="aspect", value_name="relevance"), true


def named(found):
    """Return the judges whom a note names as alike."""
    return [note.partition(" agree on ")[0] for note in found.notes if " agree on " in note]


def test_two_prompts_of_one_model_are_named():
    """They outvote a better person, are estimated to be right, and a note says so; independent judges are not named."""
    labels, true = panel(1, (0.97, 0.97, 0.922), family=(0, 1))
    found = consensus(labels)
    judges = found.judges.set_index("judge")
    assert (found.table["majority"] == true).mean() < 0.9
    assert judges["estimated_accuracy"]["judge 0"] > 0.95
    assert judges["estimated_accuracy"]["judge 2"] < 0.85
    assert named(found) == ["'judge 0', 'judge 1'"]
    (note,) = [note for note in found.notes if " agree on " in note]
    by_judge = labels.pivot_table("relevance", "docid", "aspect")
    alone, *beside = [(by_judge[f"judge {a}"] == by_judge[f"judge {b}"]).mean() for a, b in ((0, 1), (0, 2), (1, 2))]
    assert f"agree on {alone:.0%} of 400 documents, and with the rest on {np.mean(beside):.0%}" in note
    assert "share errors, or both are far better than the third" in note
    assert "make a consensus of these first" in note
    assert named(consensus(panel(1, (0.97, 0.97, 0.922))[0])) == []


@each_row(
    ("right", "family", "expected"),
    [
        ((0.97, 0.97, 0.8, 0.8), (0, 1), ["'judge 0', 'judge 1'"]),
        ((0.97, 0.97, 0.97, 0.922, 0.922), (0, 1, 2), ["'judge 0', 'judge 1', 'judge 2'"]),
        ((0.97, 0.97, 0.8, 0.8), (), []),
        ((0.97, 0.97, 0.97, 0.8, 0.8), (), []),
        ((0.9,) * 6, (), []),
    ],
)
def test_families_are_named_and_experts_are_not(right, family, expected):
    """Of four judges or more the labels tell whether quality explains how far some agree."""
    found = consensus(panel(3, right, family, n=1000)[0])
    assert named(found) == expected
    assert not any("both are far better" in note for note in found.notes)


def test_judges_are_compared_on_the_documents_that_all_of_them_labelled():
    """None of them are alike if there is no such document, or only two judges, or a crowd."""
    labels, _ = panel(1, (0.97, 0.97, 0.922), family=(0, 1), n=800)
    half = labels[(labels["aspect"] != "judge 2") | (labels["docid"] < 400)]
    (note,) = [note for note in consensus(half).notes if " agree on " in note]
    assert " of 400 documents" in note
    apart = labels[(labels["aspect"] == "judge 2") == (labels["docid"] < 400)]
    assert named(consensus(apart)) == named(consensus(labels[labels["aspect"] != "judge 2"])) == []
    crowd_of = labels.assign(aspect=labels["aspect"] + "/" + (labels["docid"] % 7).astype(str))
    assert named(consensus(crowd_of)) == []


def test_an_estimate_that_did_not_end_is_noted(monkeypatch):
    labels, _ = crowd(np.random.default_rng(5), np.array([0.9, 0.8, 0.7, 0.6]), n_items=200, n_labels=3)
    assert not any("still changes" in note for note in consensus(labels).notes)
    monkeypatch.setattr("rankeval.judging.labels.MOST_ROUNDS", 2)
    assert "dawid_skene still changes after 2 rounds" in consensus(labels).notes


def test_methods_that_differ_are_noted():
    labels, _ = crowd(np.random.default_rng(0), np.array([0.8] * 24 + [0.2] * 6))
    found = consensus(labels)
    assert (
        f"majority and dawid_skene differ on {len(found.differ)} of 1,000 documents: .differ lists them" in found.notes
    )
    assert not any(".differ" in note or "tied" in note for note in consensus(CLEAR).notes)


def test_a_tied_majority_takes_the_lowest_grade_and_is_counted():
    found = consensus({"ann": {"q": {"a": 2, "b": 0}}, "bo": {"q": {"a": 1, "b": 0}}})
    assert found.table["majority"].tolist() == [1, 0]
    assert found.table["tied"].tolist() == [True, False]
    assert "1 of 2 documents have a tied majority: the lowest of the tied grades is taken" in found.notes


@each_row("method", ["majority", "dawid_skene"])
def test_judges_of_one_mind_are_the_consensus(method):
    """The grades come as judgments without judges, ready to evaluate."""
    found = consensus(CLEAR, method=method)
    assert found.qrels.aspect is None
    assert found.qrels.to_frame()["relevance"].tolist() == [2, 0, 1]
    assert found.judges["accuracy"].tolist() == [1, 1, 1]
    assert found.differ.empty
    assert found.notes == ()
    assert rk.evaluate(found.qrels, {"q": {"a": 3.0, "c": 2.0, "b": 1.0}}, measures="nDCG").mean()["nDCG"] == 1


def test_one_grade_alone_is_the_consensus():
    found = consensus({"ann": {"q": {"a": 1, "b": 1}}}, method="dawid_skene")
    assert found.table["dawid_skene"].tolist() == [1, 1]
    assert found.notes == ()


@settings(max_examples=examples(25))
@given(seed=st.integers(0, N_TABLES - 1), data=st.data())
def test_the_order_of_rows_does_not_count(seed, data):
    rows = labels_of(drawn(seed), n_topics=3)
    other = rows.iloc[data.draw(st.permutations(range(len(rows))))]
    found, again = consensus(rows), consensus(other)
    pd.testing.assert_frame_equal(again.table, found.table, rtol=0, atol=1e-5)


def test_the_judges_are_printed_those_with_most_labels_first():
    labels, _ = crowd(np.random.default_rng(1), np.full(30, 0.9), n_items=100)
    found = consensus(labels)
    assert found.judges["n_labels"].is_monotonic_decreasing
    assert "; the 20 judges with most labels" in whole(found)
    assert len(whole(found).splitlines()) == 3 + 20 + len(found.notes)


@each_row(
    ("wrong", "error"),
    [({"judgments": CLEAR, "method": "mean"}, UnknownName), ({"judgments": CLEAR["ann"]["q"]}, InvalidInput)],
)
def test_what_has_no_consensus_is_refused(wrong, error):
    with pytest.raises(error):
        consensus(**wrong)


def test_a_label_beats_not_judged_in_a_consensus():
    """-1 is no label, as `Pool.order` says, so one judge's 1 and another one's "not judged" make 1."""
    found = rk.judging.consensus({"ann": {"q": {"d": 1}}, "bo": {"q": {"d": -1}}})
    assert found.qrels.to_frame()["relevance"].tolist() == [1]
