"""Tied rows in measures of preferences: by ascending document id, as trec_eval has them there and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest
from tables import each_row

import rankeval as rk
from rankeval.trec_eval.output import trec_rules, trec_text

QRELS = {
    "q1": {"a": 1, "b": 0, "c": 2, "d": 0, "e": 1, "f": 0, "lost": 1},
    "q2": {"a": 1, "b": 0, "c": 0, "d": 0},
}
PREFS = """\
q1 ann 1 a 2
q1 ann 1 b 1
q1 ann 2 b 2
q1 ann 2 c 1
q1 bob 1 c 1
q1 bob 1 a 0
q1 bob 1 d 0
q1 bob 1 lost 1
q2 ann 1 c 1
q2 ann 1 b 0
q2 ann 1 a 0
q2 bob 1 a 1
q2 bob 1 c 0
"""
RUN = {
    "q1": {"c": 1.0, "a": 2.0, "b": 2.0, "x": 2.0, "d": 1.0, "e": 1.0, "f": 0.5},
    "q2": {"c": 1.0, "b": 1.0, "a": 1.0, "d": 0.5},
}

PRINTED = {
    ("qrels_prefs", None, "q1"): "15 8 7 0.5333 0.5333 0.5333 0.5789 0.6364 0.6364 0.6364 0.6364 0.5333 0.5333 0.5333",
    ("qrels_prefs", None, "q2"): "3 3 3 1.0000 1.0000 1.0000 0.2500 1.0000 1.0000 1.0000 0.2500 1.0000 1.0000 1.0000",
    ("qrels_prefs", 2, "q1"): "15 3 1 0.2000 0.2000 0.2000 0.2105 1.0000 1.0000 1.0000 1.0000 0.4286 0.4286 0.4286",
    ("qrels_prefs", 2, "q2"): "3 3 1 1.0000 1.0000 1.0000 0.2500 1.0000 1.0000 1.0000 1.0000 1.0000 1.0000 1.0000",
    ("prefs", None, "q1"): "7 4 4 0.5714 0.5833 0.6250 0.6250 0.8000 0.8750 0.7500 0.5000 0.5714 0.5833 0.6250",
    ("prefs", None, "q2"): "3 1 1 0.3333 0.2500 0.5000 0.5000 0.3333 0.2500 0.5000 0.5000 0.3333 0.2500 0.5000",
    ("prefs", 2, "q1"): "7 3 1 0.4286 0.4167 0.5000 0.3750 1.0000 1.0000 0.5000 0.0000 0.6000 0.6250 0.5000",
    ("prefs", 2, "q2"): "3 1 0 0.3333 0.2500 0.5000 0.5000 0.0000 0.0000 0.0000 0.0000 0.3333 0.2500 0.5000",
}
"""trec_eval 9.0.4: -q -m all_prefs -R qrels_prefs (or prefs) [-M 2] on these files, the values of a topic in the order
printed; all rows but one or two of a topic are tied, and -M cuts groups of tied rows."""


@pytest.fixture
def judgments(tmp_path: Path):
    (tmp_path / "prefs").write_text(PREFS)
    return {"prefs": rk.Qrels.read(tmp_path / "prefs", format="prefs"), "qrels_prefs": rk.Qrels.from_dict(QRELS)}


@each_row("convention", ["trec_eval-9.0.8", "trec_eval-10"])
@each_row(("form", "depth", "topic"), PRINTED)
def test_tied_rows_stand_as_trec_eval_has_them(judgments, convention, form, depth, topic):
    """All measures of preferences, judgments with and without groups and sub-groups, to the digits printed."""
    text = trec_text(
        judgments[form],
        rk.Run.from_dict(RUN),
        measures=["all_prefs"],
        convention=trec_rules(convention, depth=depth),
        per_query=True,
    )
    shown = [line.split("\t") for line in text.splitlines()]
    assert " ".join(value for _, of, value in shown if of == topic) == PRINTED[form, depth, topic]


def test_other_measures_of_the_same_evaluation_stay_by_descending_id():
    """Asked for together, each goes by its own rule, whichever comes first; one that knows no order of ids does not."""
    one, tied = {"q": {"a": 1, "b": 0}}, {"q": {"a": 1.0, "b": 1.0}}
    for names in (["Prefs", "RR"], ["RR", "Prefs"]):
        ev = rk.evaluate(one, tied, measures=names, convention="trec_eval-9.0.8")
        assert ev.per_query.loc["q", ["Prefs", "RR"]].tolist() == [1, 0.5]
        assert ev.facts.totals()["ties"] == 2
        assert rk.evaluate(one, tied, measures="Prefs").per_query.iloc[0, 0] == 0.5
