"""A query in which a measure has nothing to count is treated by its rule, and said wherever its number stands."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from shown import whole
from sklearn.linear_model import Ridge
from tables import each_row

import rankeval as rk
from rankeval.errors import ConventionMismatch, InvalidInput, RankevalWarning
from rankeval.evaluation import to_bytes
from rankeval.evaluation.merging import merged
from rankeval.evaluation.result import from_bytes
from rankeval.measures.family import FAMILIES
from rankeval.report.summaries import coverage_sentences

NEEDED = {"p": 0.5, "max_rel": 4, "cutoff": 3, "collection_size": 99, "recall": 0.5, "multiple": 1, "of": "AP"}

GRADED = {"q": {"a": 1, "b": 1, "c": 0}, "p": {"a": 3, "b": 1}, "r": {"a": 0, "b": 2, "c": 2}, "s": {"a": 0}}
BINARY = {query: {doc: int(grade >= 2) for doc, grade in docs.items()} for query, docs in GRADED.items()}
RUN = {query: {doc: -place for place, doc in enumerate(docs)} for query, docs in GRADED.items()}
RULES = ("zero", "one", "skip")


def with_level(rel):
    """Return the measures of grades whose only look at a grade is whether it is at least ``rel``."""
    found = []
    for one in FAMILIES.values():
        if "rel" in one.defaults and one.needs == "grades" and one.kernel.__module__.startswith("rankeval."):
            given = {name: NEEDED[name] for name in one.required if name in NEEDED}
            measure = one.with_parameters(**given, rel=rel)
            found += [measure] * measure.is_binary
    return found


def facts_of(ev):
    """Return the numbers of an evaluation by one measure, without the name of the measure."""
    (name,) = ev.measure_names
    return ev.aggregate()[name], ev.scores.tolist(), ev.queries.tolist(), ev.undefined[name], dict(ev.excluded)


@each_row("rule", RULES)
def test_a_level_gives_the_numbers_of_judgments_made_binary(rule):
    """Under each rule, for every measure that has ``rel``: by collections, and by rows."""
    assert len(with_level(2)) > 20
    for graded, binary in zip(with_level(2), with_level(1), strict=True):
        found = rk.evaluate(GRADED, RUN, measures=graded, no_relevant=rule)
        right = rk.evaluate(BINARY, RUN, measures=binary, no_relevant=rule)
        np.testing.assert_equal(facts_of(found), facts_of(right), err_msg=str(graded))
        rows = [(query, grade, -place) for query in GRADED for place, grade in enumerate(GRADED[query].values())]
        qid, y, score = (np.array(column) for column in zip(*rows, strict=True))
        found = rk.evaluate(y, score, qid=qid, measures=graded, no_relevant=rule)
        right = rk.evaluate((y >= 2).astype(int), score, qid=qid, measures=binary, no_relevant=rule)
        np.testing.assert_equal(facts_of(found), facts_of(right), err_msg=f"{graded} by rows")
        assert found.facts.totals()["fixed"] == right.facts.totals()["fixed"], graded
        assert found.worst(9).index.tolist() == right.worst(9).index.tolist(), graded


@each_row(
    ("measure", "zero", "one", "skip"),
    [
        ("AP(rel=2)", 0.5, 1.0, 1.0),
        ("Rprec(rel=2)", 0.5, 1.0, 1.0),
        ("RR(rel=2)", 0.5, 0.5, 1.0),  # its value is 0 by definition, and not 0/0
        ("nDCG(gain={1: 0, 2: 0})", 0.5, 1.0, 1.0),
        ("SDCG(max_rel=3, min_rel=1)@1", 0.5, 0.5, 1.0),
        ("nDCG", 1.0, 1.0, 1.0),
    ],
)
def test_the_rule_sees_the_level_of_the_measure_in_every_way_in(measure, zero, one, skip, tmp_path, rankeval):
    """In Python, in a scorer, in cross-validation, streamed, and in the shell."""
    frame = pd.DataFrame({"q": ["p", "q", "q"], "y": [3, 1, 1], "s": [1.0, 1.0, 0.5], "d": ["a", "a", "b"]})
    frame.to_parquet(tmp_path / "rows.parquet")
    (tmp_path / "q.qrels").write_text("q 0 a 1\nq 0 b 1\np 0 a 3\n")
    (tmp_path / "r.run").write_text("q Q0 a 1 1.0 t\nq Q0 b 2 0.5 t\np Q0 a 1 1.0 t\n")
    X, y, qid = frame[["s"]].to_numpy(), frame["y"].to_numpy(), frame["q"].to_numpy()
    for rule, value in zip(RULES, (zero, one, skip), strict=True):
        scorer = rk.make_scorer(measure, no_relevant=rule)
        told = {"measures": measure, "convention": rk.Convention.with_rules(no_relevant=rule)}
        streamed = rk.evaluate_dataset(tmp_path / "rows.parquet", qid="q", relevance="y", score="s", **told)
        _, out, _ = rankeval("evaluate", "q.qrels", "r.run", "-m", measure, "--no-relevant", rule, "--format", "json")
        found = {
            "python": rk.evaluate(y, frame["s"], qid=qid, measures=measure, no_relevant=rule).aggregate().iloc[0],
            "scorer": scorer(Ridge(alpha=1e-9).fit(X, X[:, 0]), X, y, qid=qid),
            "streamed": streamed.aggregate().iloc[0],
            "shell": next(iter(json.loads(out)))[measure],
        }
        assert found == dict.fromkeys(found, pytest.approx(value)), rule


def test_the_option_of_trec_eval_sets_the_level(tmp_path, rankeval):
    """``-l 2`` of the shell, as ``rel=2``."""
    (tmp_path / "q.qrels").write_text("q 0 a 1\nq 0 b 1\np 0 a 3\n")
    (tmp_path / "r.run").write_text("q Q0 a 1 1.0 t\np Q0 a 1 1.0 t\n")
    values = {}
    for rule in RULES:
        _, out, _ = rankeval("evaluate", "q.qrels", "r.run", "-m", "AP", "-l", 2, "--no-relevant", rule)
        values[rule] = re.findall(r"\d\.\d{4}", out)
    assert values == {"zero": ["0.5000"], "one": ["1.0000"], "skip": ["1.0000"]}


def test_measures_that_would_leave_out_different_queries_are_refused():
    """A query counts in all means of an evaluation or in none."""
    with pytest.raises(InvalidInput, match=r"only one of AP and AP\(rel=2\) has something to count in 1 query \('q'\)"):
        rk.evaluate(GRADED, RUN, measures=["AP", "AP(rel=2)"], no_relevant="skip")
    with pytest.raises(InvalidInput) as refused:
        rk.evaluate([1, 1, 1, 0], [2, 1, 2, 1], qid=[1, 1, 2, 2], measures=["AP", "OPA"], no_relevant="skip")
    assert refused.value.argument == "no_relevant"
    assert "alone" in refused.value.remedy
    # Counts of queries, rows and judged documents follow the others; equal levels agree.
    several = ["NumQ", "NumRet", "Judged@2", "P(rel=2)@2", "AP(rel=2)", "RR(rel=2)"]
    ev = rk.evaluate(GRADED, RUN, measures=several, no_relevant="skip")
    assert ev.excluded == {"no relevant document": ("q", "s")}
    assert ev.aggregate()["NumQ"] == 2
    alone = rk.evaluate(GRADED, RUN, measures="NumQ", no_relevant="skip")
    assert alone.excluded == {"no relevant document": ("s",)}


def test_cross_validation_refuses_such_measures_before_it_trains():
    """The labels are known before."""

    class Untrained(Ridge):
        def fit(self, X, y):
            raise AssertionError

    y, qid = [1, 0, 2, 0, 2, 0, 2, 1], [1, 1, 2, 2, 3, 3, 4, 4]
    rules = rk.Convention.with_rules(no_relevant="skip")
    with pytest.raises(InvalidInput, match="no_relevant"):
        rk.cross_validate(
            Untrained(), np.ones((8, 1)), y, qid=qid, cv=2, measures=["AP", "AP(rel=2)"], convention=rules
        )


def test_rules_on_such_queries_are_other_conventions():
    """Values under "zero" and "one" differ, so they are not compared."""
    one, other = (rk.evaluate(GRADED, RUN, measures="AP(rel=2)", no_relevant=rule) for rule in ("zero", "one"))
    with pytest.raises(ConventionMismatch, match="no_relevant is 'zero' in one and 'one' in the other"):
        rk.compare({"a": one, "b": other})


# What is said ---------------------------------------------------------------------------------------------------------

SHARES = {"q": {"a": 0.5, "b": 0.25}, "p": {"a": 0.9}}
ORDER = {"q": {"a": 1.0, "b": 0.5}, "p": {"a": 1.0}}
SAID = "no document has a grade of 1 or more; the greatest is 0.9: give rel="


@each_row(
    ("qrels", "measures", "notes"),
    [
        (SHARES, ["AP", "RR", "R@2", "nDCG@2"], [f"AP, RR, R@2: {SAID}"]),
        (SHARES, ["P@1", "Success@2", "RBP(p=0.8)"], [f"P@1, Success@2, RBP(p=0.8): {SAID}"]),
        (SHARES, ["AP(rel=0.5)", "ERR(max_rel=1)", "Judged@2"], []),
        ({"q": {"a": 0.5}, "p": {"a": 1}}, ["AP"], ["AP: 1 query without a document of grade 1 or more"]),
        ({"q": {"a": 2}, "p": {"a": 0}}, ["AP(rel=3)"], ["AP(rel=3): no document has a grade of 3 or more"]),
        (
            {"q": {"a": 1}, "p": {"a": 1}},
            ["SDCG(max_rel=3, min_rel=1)@5"],
            ["more than 1; the greatest is 1: give min_rel="],
        ),
        ({"q": {"a": 1}, "p": {"a": 1, "b": 0}}, ["PairAccuracy"], ["PairAccuracy: 2 queries without a pair"]),
        ({"q": {"a": 1, "b": 1}, "p": {"a": 1, "b": 0}}, ["OPA"], ["OPA: 2 queries without a pair"]),
        ({"q": {"a": 1}, "p": {"z": 1}}, ["ARP"], ["ARP: 1 query without a value: 0/0 counted as 0"]),
        ({"q": {"a": 1}, "lost": {"a": 1}}, ["SetAP", "P"], ["SetAP, P: 1 query without a ranked document: 0/0"]),
        ({"q": {"a": 1}, "p": {"a": 2}}, ["nDCG(gain={1: 0})"], ["without a document that gains: 0/0 counted as 0"]),
    ],
)
def test_what_a_measure_lacks_stands_in_notes_repr_and_html(qrels, measures, notes):
    """With the measures, the number of queries, and what to give."""
    ev = rk.evaluate(qrels, {"q": {"a": 1.0}, "p": {"a": 1.0}}, measures=measures)
    said = [note for note in ev.notes if re.search("grade of|0/0|without a", note) and "without a relevant" not in note]
    assert len(said) == len(notes), said
    for note, expected in zip(said, notes, strict=True):
        assert expected in note
        assert note in whole(ev)
        assert all(part in ev._repr_html_() for part in note.split(" < "))
        assert f"{note[0].upper()}{note[1:]}." in coverage_sentences(ev)
    for again in (from_bytes(to_bytes(ev)), merged([ev]), ev.subset(ev.queries)):
        assert again.notes == ev.notes


@each_row(
    "judged",
    [
        {"q": {"a": 0, "b": 0}},
        {"q": {"a": 1, "b": 1}},
        {"q": {"a": 0.5, "b": 0.25}},
        {"q": {"z": 2}},
        {"q": {"a": -1}},
        {"lost": {"a": 1}, "q": {"a": 1, "b": 0}},
    ],
    ids=["none relevant", "no pair", "shares", "not found", "below zero", "empty"],
)
def test_every_0_by_0_of_every_measure_is_counted_and_said(judged):
    """A kernel's nan is counted in ``undefined``, and a note says how often, or why all are."""
    for one in FAMILIES.values():
        if one.needs not in ("grades", "groups") or not one.kernel.__module__.startswith("rankeval."):
            continue
        measure = one.with_parameters(**{name: NEEDED[name] for name in one.required if name in NEEDED})
        ev = rk.evaluate(judged, {"q": {"a": 2.0, "b": 1.0}}, measures=measure)
        assert np.isfinite(ev.scores).all(), measure
        assert ev.undefined[str(measure)] == ev.facts.undefined.sum(), measure
        if ev.undefined[str(measure)]:
            assert any(re.search("0/0 counted as 0|: give ", note) for note in ev.notes), measure


def test_a_query_without_preferences_has_no_share_of_them():
    """Of one grade a document preferred to another cannot be fulfilled: 0/0, and not 0."""
    ev = rk.evaluate({"q": {"a": 1, "b": 1}}, {"q": {"a": 2.0, "b": 1.0}}, measures=["Prefs", "OPA", "PairAccuracy"])
    assert set(ev.undefined.values()) == {1}
    ev = rk.evaluate({"q": {"a": 0, "b": 0}}, {"q": {"a": 2.0, "b": 1.0}}, measures=["PrefsR"])
    assert ev.undefined == {"PrefsR": 1}


@each_row("of, n_undefined", [("AP", 1), ("Rprec", 1), ("P", 0)])
def test_a_mean_over_groups_of_judges_is_0_by_0_where_all_groups_are(of, n_undefined):
    """One group without a relevant document counts 0, as in trec_eval; all of them leave nothing to average."""
    judged = ("q", "a", 0, "ann"), ("q", "b", 0, "bob"), ("p", "a", 1, "ann"), ("p", "b", 0, "bob")
    qid, docid, grade, judge = map(list, zip(*judged, strict=True))
    qrels, run = rk.Qrels(qid, docid, grade, judge), {query: {"a": 2.0, "b": 1.0} for query in "pq"}
    name = f"AvgJG(of={of!r})"
    ev = rk.evaluate(qrels, run, measures=name)
    assert (ev.undefined[name], ev.scores[1, 0]) == (n_undefined, 0)
    assert rk.evaluate(qrels, run, measures=name, no_relevant="one").scores[1, 0] == n_undefined
    assert 0 < ev.scores[0, 0] <= 0.5


@each_row("rule, value, left", [("zero", 0.5, 2), ("one", 1.0, 2), ("skip", 1.0, 1)])
def test_the_rule_helps_measures_of_pairs(rule, value, left):
    """A perfect ranking of a query without a pair need not halve the mean, by collections and by rows."""
    qrels, run = {"b": {"x": 1}, "c": {"x": 1, "y": 0}}, {"b": {"x": 1.0}, "c": {"x": 2.0, "y": 1.0}}
    for name in ("PairAccuracy", "OPA"):
        ev = rk.evaluate(qrels, run, measures=name, no_relevant=rule)
        assert (ev.aggregate()[name], ev.n_queries) == (value, left)
        assert rule != "skip" or ev.excluded == {"no pair of documents to order": ("b",)}
        rows = rk.evaluate([2, 2, 2, 0], [2, 1, 2, 1], qid=[1, 1, 2, 2], measures=name, no_relevant=rule)
        assert (rows.aggregate()[name], rows.n_queries) == (value, left)


def test_a_system_does_not_leave_out_a_query_by_failing_at_it():
    """Pairs that the judgments have, and the ranking lacks, count as 0."""
    qrels = {"q": {"x": 1, "y": 0}, "p": {"x": 1}}
    for run in ({"q": {"x": 1.0}, "p": {"z": 1.0}}, {"q": {"y": 1.0}, "p": {"z": 2.0, "w": 1.0}}):
        ev = rk.evaluate(qrels, run, measures="PairAccuracy", no_relevant="skip")
        assert ev.scores.tolist() == [[0.0], [0.0]]


@each_row("output", ["table", "json", "csv"])
def test_the_shell_says_it_in_every_format(output, tmp_path, rankeval):
    """With numbers for programs on stdout, the sentence is on stderr."""
    (tmp_path / "q.qrels").write_text("q 0 a 0.5\np 0 a 0.9\n")
    (tmp_path / "r.run").write_text("q Q0 a 1 1.0 t\np Q0 a 1 1.0 t\n")
    code, out, err = rankeval("evaluate", "q.qrels", "r.run", "-m", "AP", "-m", "RR", "--format", output)
    assert code == 0
    assert f"AP, RR: {SAID}" in (out if output == "table" else err)
    (tmp_path / "s.run").write_text("q Q0 b 1 1.0 t\np Q0 a 1 1.0 t\n")
    code, out, err = rankeval("evaluate", "q.qrels", "r.run", "-m", "map", "-m", "recip_rank", "--format", "trec")
    assert (code, err, len(out.splitlines())) == (0, f"note: AP, RR: {SAID}\n", 2)
    _, out, err = rankeval("compare", "q.qrels", "r.run", "s.run", "-m", "AP", "--format", output)
    assert f"AP: {SAID}" in " ".join((out + err).split())


@pytest.mark.filterwarnings("ignore:on fewer than 50 queries")
def test_a_comparison_says_that_a_measure_compares_nothing():
    """Two systems are not "equal on every query" where all values are 0 for want of a relevant document."""
    truth = {f"q{n}": {"a": 0.5, "b": 0.25, "c": 0} for n in range(6)}
    run = {query: {"a": 3.0, "b": 2.0, "c": 1.0} for query in truth}
    back = {query: {"a": 1.0, "b": 2.0, "c": 3.0} for query in truth}
    systems = {name: rk.evaluate(truth, one, measures=["AP", "nDCG"]) for name, one in {"a": run, "b": back}.items()}
    compared = rk.compare(systems)
    assert "AP: no document has a grade of 1 or more; the greatest is 0.5: give rel=" in compared.notes
    assert "AP 0 on every query, so nothing is compared: see the notes" in " ".join(compared.findings)
    assert not [said for said in compared.findings if said.startswith("Choosing")]
    assert "equal on every query" not in " ".join(compared.findings)
    assert not [note for note in rk.compare(systems, measures="nDCG").notes if "rel=" in note]


def test_notes_of_one_system_are_under_its_name():
    """A run that retrieved no pair is told from one that did."""
    truth = {query: {"a": 1, "b": 0} for query in "pqr"}
    both = {query: {"a": 2.0, "b": 1.0} for query in "pqr"}
    runs = {"full": both, "thin": {**both, "p": {"a": 1.0}}}
    systems = {name: rk.evaluate(truth, run, measures="PairAccuracy") for name, run in runs.items()}
    compared = rk.compare(systems)
    (note,) = [note for note in compared.notes if "pair" in note]
    assert note == "thin: PairAccuracy: 1 query without a pair of documents to order: 0/0 counted as 0"


def test_that_no_query_is_left_names_the_level():
    """Grades between 0 and 1 leave out all."""
    with pytest.warns(RankevalWarning, match=r"no query is left \(2 by 'no relevant document'\).*rel="):
        rk.evaluate(SHARES, ORDER, measures="AP", no_relevant="skip")


# What no ranking changes ----------------------------------------------------------------------------------------------


def test_the_worst_queries_are_those_of_the_measure_asked_for():
    """A column, a level, or judged shares of another measure leave no query in that nothing can change."""
    rows = {"qid": ["a", "a", "b", "b", "c", "c"], "columns": {"price": [1, 2, 3, 4, 5, 5]}}
    measures = ["nDCG@10", "Revenue@1(column='price')", "AP(rel=2)", "OPA"]
    ev = rk.evaluate([0, 0, 1, 0, 2, 1], [2, 1, 1, 2, 1, 2], **rows, measures=measures)
    left = {name: sorted(ev.worst(9, name).index) for name in ev.measure_names}
    assert list(left.values()) == [["b", "c"], ["a", "b", "c"], ["c"], ["b", "c"]]
    assert ev.worst(9, "AP(rel=2)").attrs["left_out"] == 2
    for again in (from_bytes(to_bytes(ev)), merged([ev.subset(["a", "b", "c"])])):
        assert {name: sorted(again.worst(9, name).index) for name in ev.measure_names} == left
    alone = {name: sorted(rk.evaluate([0, 0, 1, 0, 2, 1], [2, 1, 1, 2, 1, 2], **rows, measures=name).worst(9).index)
             for name in measures}  # fmt: skip
    assert [*alone.values()] == [*left.values()]


def test_a_file_without_grades_is_read():
    """Evaluations that were saved before grades were kept say no more of them."""
    ev = rk.evaluate(GRADED, RUN, measures="AP(rel=2)")
    table = {name: of for name, of in ev.facts.table().items() if name not in ("least", "greatest")}
    old = type(ev.facts).of(table)
    assert np.isnan(old.greatest).all()


# Gains that are too large ---------------------------------------------------------------------------------------------


@each_row("greatest", [1.7e308, 1e308, 1e281, 1e279])
def test_gains_near_the_greatest_float_have_the_right_value_or_are_refused(greatest, recwarn):
    """For every measure and form of gain, tied or not: no 0/0 by overflow, and no warning of NumPy."""
    n_values = 0
    for one in FAMILIES.values():
        if one.needs != "grades" or not one.kernel.__module__.startswith("rankeval."):
            continue
        given = {name: NEEDED[name] for name in one.required if name in NEEDED} | (
            {"max_rel": greatest} if "max_rel" in one.required else {}
        )
        for gain in ("linear", "exp", "scaled", {1: greatest}) if "gain" in one.defaults else (None,):
            for score in ([3, 2, 1], [1, 1, 1], [1, 1, 2]):
                rows = {"qid": [1, 1, 1], "measures": one.with_parameters(**given)}
                try:
                    if gain is not None:
                        rows["measures"] = one.with_parameters(**given, gain=gain)
                    found = rk.evaluate([greatest, greatest / 2, 0], score, **rows)
                    small = {"max_rel": 2} if "max_rel" in given else {}
                    right = None if gain == "exp" or isinstance(gain, dict) else one.with_parameters(
                        **given | small, **({} if gain is None else {"gain": gain})
                    )  # fmt: skip
                except InvalidInput:
                    continue
                assert not found.undefined[str(rows["measures"])]
                assert np.isfinite(found.scores).all()
                if right is not None and one.bounds == (0.0, 1.0) and one.name != "G":  # G adds 2 to gains
                    expected = rk.evaluate([2, 1, 0], score, qid=[1, 1, 1], measures=right).scores
                    assert found.scores == pytest.approx(expected), rows["measures"]
                    n_values += 1
    assert n_values > 30
    assert not recwarn.list


def test_a_gain_that_is_too_large_is_named():
    """With the limit and the remedy, for grades and for columns."""
    for measure in ("NCG", "nDCG", "DCG", "ARP", "G", "RBP(p=0.5, gain='linear')"):
        with pytest.raises(InvalidInput, match=r"found a gain of 1e\+308, and sums of gains above 1e\+280 .* divide"):
            rk.evaluate({"q": {"a": 1e308, "b": 1e308}}, {"q": {"a": 1.0, "b": 2.0}}, measures=measure)
    with pytest.raises(InvalidInput, match="too large"):
        rk.evaluate([1, 0], [2, 1], qid=[1, 1], columns={"price": [1e308, 1e308]}, measures="Revenue(column='price')")


def test_two_values_that_differ_by_the_rule_at_a_level_are_explained():
    """Each choice of a parameter leaves out queries of its own, so each is scored alone."""
    rules = "skip", "zero"
    values = [rk.evaluate(GRADED, RUN, measures="AP(rel=2)", no_relevant=rule).aggregate().iloc[0] for rule in rules]
    why = rk.explain_difference(GRADED, RUN, measure="AP(rel=2)", values=tuple(values))
    assert "no_relevant='skip' in one and 'zero' in the other" in why.sentence


def test_queries_of_weight_0_are_in_no_note():
    """They do not count, so nothing of theirs is counted as 0."""
    label, score, qid = [1, 0, 0, 0, 0, 0], [2, 1, 2, 1, 2, 1], list("aabbcc")
    ev = rk.evaluate(label, score, qid=qid, measures="nDCG@10", query_weight={"a": 1, "b": 0, "c": 1})
    assert [note for note in ev.notes if "0/0" in note] == ["1 query without a relevant document: 0/0 counted as 0"]
    without = rk.evaluate(label, score, qid=qid, measures="nDCG@10", query_weight={"a": 1, "b": 0, "c": 0})
    assert not any("0/0" in note for note in without.notes)
