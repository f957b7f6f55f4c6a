"""What trec_eval 9.0.4 printed by hand: level 0, gains of grade 0, missing topics, a mean near half a digit."""

from __future__ import annotations

import pytest
from tables import each_row

import rankeval as rk
from rankeval.trec_eval.output import trec_rules, trec_text

QRELS = {"q": {"a": 1, "b": 0}}
RUN = {"q": {"x": 4.0, "a": 3.0, "y": 2.0, "b": 1.0}}


@each_row(
    ("name", "value"),
    [
        ("map", 0.5),
        ("set_recall", 1.0),
        ("bpref", 1.0),
        ("P.5", 0.4),
        ("Rprec", 0.5),
        ("infAP", 0.5),
        ("num_rel", 2),
        ("num_rel_ret", 2),
    ],
)
def test_at_level_0_what_is_judged_0_is_relevant_and_what_is_not_judged_is_not(name, value):
    """``trec_eval -l0``; unjudged documents stand at two of the four ranks."""
    rules = trec_rules("trec_eval-9.0.8", level=0)
    text = trec_text(rk.Qrels.from_dict(QRELS), rk.Run.from_dict(RUN), measures=[name], convention=rules)
    assert float(text.split()[-1]) == value


@each_row(("spec", "value"), [("AP(rel=0)", 0.5), ("R(rel=0)", 1.0), ("Bpref(rel=0)", 1.0), ("P(rel=0)@5", 0.4)])
def test_unjudged_documents_are_relevant_at_no_level(spec, value):
    for convention in ("rankeval", "trec_eval-9.0.8"):
        assert rk.evaluate(QRELS, RUN, measures=[spec], convention=convention).scores[0, 0] == pytest.approx(value)


@each_row(("name", "printed"), [("ndcg.0=1", "0.6509"), ("G.0=1", "0.5655")])
def test_a_gain_of_grade_0_is_for_what_was_judged_0(name, printed):
    """``trec_eval -m ndcg.0=1``: unjudged documents gain nothing."""
    text = trec_text(rk.Qrels.from_dict(QRELS), rk.Run.from_dict(RUN), measures=[name])
    assert text.split()[-1] == printed


def test_a_topic_that_the_run_lacks_counts_as_0_also_where_an_empty_list_does_not():
    """YAAP of an empty list is -log(1 + R); with -c trec_eval 9 adds 0 for the topic, and trec_eval 10 that value."""
    qrels = {**QRELS, "r": {"a": 1}}
    ev = rk.evaluate(qrels, RUN, measures=["YAAP", "Utility(c=-1)", "NumRel", "AP"], missing="zero")
    alone = rk.evaluate(QRELS, RUN, measures=["YAAP", "Utility(c=-1)", "AP"])
    assert ev.per_query.loc["r"].tolist() == [0.0, 0.0, 1.0, 0.0]
    assert ev.aggregate()[["YAAP", "Utility(c=-1)", "AP"]].tolist() == (alone.scores[0] / 2).tolist()
    for convention, printed in (("trec_eval-9.0.8", "0.0000"), ("trec_eval-10", "-0.3466")):
        rules = trec_rules(convention, complete=True)
        text = trec_text(rk.Qrels.from_dict(qrels), rk.Run.from_dict(RUN), measures=["yaap"], convention=rules)
        assert text.split()[-1] == printed


def test_means_are_added_up_in_the_order_of_topics():
    """By pairs the sum of these P@20 is a last bit lower, and 0.1187 would be printed."""
    hits = [0, 6, 5, 3, 0, 0, 2, 3]
    qrels = {f"q{topic}": {f"d{place}": 1 for place in range(6)} for topic in range(8)}
    run = {
        f"q{topic}": {("d" if place < hits[topic] else "x") + str(place): 9.0 - place for place in range(7)}
        for topic in range(8)
    }
    text = trec_text(rk.Qrels.from_dict(qrels), rk.Run.from_dict(run), measures=["P.20"])
    assert text.split()[-1] == "0.1188"


def test_the_f_measure_is_computed_in_the_order_of_operations_of_trec_eval():
    """P = 9/20 and R = 9/44 give .28125: one rounding elsewhere, and 0.2812 would be printed."""
    qrels = {"q": {f"d{place}": 1 for place in range(44)}}
    run = {"q": {(f"d{place}" if place < 9 else f"x{place}"): 50.0 - place for place in range(20)}}
    for name, printed in (("set_F", "0.2813"), ("set_F.2", "0.2500"), ("set_F.0.3", "0.3524")):
        text = trec_text(rk.Qrels.from_dict(qrels), rk.Run.from_dict(run), measures=[name])
        assert text.split()[-1] == printed, name


@each_row(
    ("scores", "narrow"), [((16777216.0, 16777217.0), 1.0), ((1e39, 2e39), 1.0), ((0.0, 1e-46), 1.0), ((1.0, 2.0), 0.5)]
)
def test_scores_tie_in_32_bits_in_one_of_the_releases_called_9_0_8(scores, narrow):
    """Tied documents go by descending id, and the relevant one has the greater id and the lower score."""
    qrels, run = {"q": {"b": 1}}, {"q": dict(zip("ba", scores, strict=True))}
    for convention, value in (("trec_eval-9.0.8", 0.5), ("trec_eval-9.0.8-float32", narrow), ("trec_eval-10", 0.5)):
        assert rk.evaluate(qrels, run, measures="AP", convention=convention).scores[0, 0] == value


def test_topics_that_the_run_lacks_are_printed_as_each_version_does():
    """Version 10 ranks an unjudged document there and clears what shows it, by names without parameters; 9 adds 0."""
    qrels = rk.Qrels.from_dict({**QRELS, "r": {"a": 1, "b": 0}})
    names = ["utility", "relstring", "unj.5", "rbp_resid", "num_ret"]
    printed = {}
    for measures in (names, ["utility.2,-1,3,0", "relstring.4"]):
        rules = trec_rules("trec_eval-10", complete=True)
        text = trec_text(qrels, rk.Run.from_dict(RUN), measures=measures, convention=rules, per_query=True)
        printed |= {tuple(line.split("\t")[:2]): line.split("\t")[2] for line in text.splitlines()}
    found = {name.strip(): value for (name, topic), value in printed.items() if topic == "r"}
    assert found == {
        "utility": "0.0000",
        "relstring": "''",
        "unj_5": "0.0000",
        "rbp_resid": "0.0000",
        "num_ret": "0",
        "utility_2,-1,3,0": "2.0000",
        "relstring_4": "'-'",
    }


def test_preferences_of_a_topic_that_the_run_lacks_are_no_preferences_for_version_9():
    """With -c it divides by all topics, and adds up what it knows of those that the run has."""
    qrels = rk.Qrels(["q", "q", "r", "r"], ["a", "b", "a", "b"], [1, 0, 1, 0], ["j", "j", "j", "j"])
    for convention, total in (("trec_eval-9.0.8", "1"), ("trec_eval-10", "2")):
        rules = trec_rules(convention, complete=True)
        text = trec_text(
            qrels, rk.Run.from_dict({"q": {"a": 1.0}}), measures=["prefs_num_prefs_poss"], convention=rules
        )
        assert text.split()[-1] == total


@each_row(("convention", "mean"), [("trec_eval-9.0.8", "0.0000"), ("trec_eval-10", "-1.0000")])
def test_deviations_are_taken_of_scores_alone(convention, mean):
    """-Z -c: version 9 has no score where the run lacks a topic; num_rel of all topics is counted again, as it is."""
    qrels = rk.Qrels.from_dict({**QRELS, "r": {"a": 1, "b": 0}})
    reference = {(topic, name): at for topic in "qr" for name, at in (("map", (0.5, 0.25)), ("num_rel", (1.0, 0.5)))}
    text = trec_text(
        qrels,
        rk.Run.from_dict(RUN),
        measures=["map", "num_rel"],
        convention=trec_rules(convention, complete=True),
        zscores=reference,
    )
    assert text.split() == ["Znum_rel", "all", "2.0000", "Zmap", "all", mean]


def test_gains_that_differ_by_less_than_1_are_put_in_order():
    """trec_eval cuts their difference to a whole number, so that its ideal list is none, and prints 1.0948."""
    qrels, run = {"q": {"a": 1, "b": 2}}, {"q": {"a": 2.0, "b": 1.0}}
    text = trec_text(rk.Qrels.from_dict(qrels), rk.Run.from_dict(run), measures=["ndcg.1=1.5,2=1"])
    assert text.split()[-1] == "1.0000"
