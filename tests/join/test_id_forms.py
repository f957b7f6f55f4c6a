"""A run of which hardly a document is judged says so, with an id of each side and the likely cause."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from shown import whole
from tables import each_row

import rankeval as rk
from rankeval.evaluation.merging import merged
from rankeval.join.id_forms import FORMS

UUID = "550e8400-e29b-41d4-a716-44665544000{}"
LONG = "doc-abcdefghijklmnopqrstuvwxyz-{}"


def written(*ids):
    """Return ids as a run of one query, the best first."""
    return {"q": {name: 1.0 / rank for rank, name in enumerate(ids, 1)}}


def sign_of(judged, run):
    """Return the sign on ids that an evaluation has: run's id, qrels' id, cause; () without one."""
    ev = rk.evaluate({"q": dict.fromkeys(judged, 1)}, written(*run), measures="RR")
    return ev.facts.signs.get("ids", ())


@each_row(
    "cause, run, judged",
    [
        ("became floats", ["7.0", "8.0"], ["7", "8"]),
        ("became floats", ["1e+07"], ["10000000"]),
        ("prefix", ["doc-7", "doc-70"], ["7", "9"]),
        ("prefix", ["1"], ["D1"]),
        ("prefix", ["MARCO_7", "MARCO_81", "MARCO_9"], ["msmarco_passage_7", "msmarco_passage_9", "msmarco_passage_4"]),
        ("padding", ["01"], ["1"]),
        ("padding", ["doc7"], ["doc007"]),
        ("letter case", ["D1"], ["d1"]),
        ("normal form", [unicodedata.normalize("NFD", "café")], ["café"]),
        ("normal form", ["\uff17"], ["7"]),
        ("wrong encoding", ["cafÃ©"], ["café"]),
        ("cut", [LONG.format(7)[:20]], [LONG.format(7)]),
        ("cut", ["http://example.o", "http://example.n"], ["http://example.org/a", "http://example.net/b"]),
        ("blanks", ["d1\n"], ["d1"]),
        ("blanks", ["d1"], [" d1\r"]),
        ("quotes", ["b'd1'"], ["d1"]),
        ("suffix of a file", ["7.txt"], ["7"]),
        ("path", ["corpus/7"], ["7"]),
        ("path", ["C:\\data\\7.html.gz"], ["7"]),
        ("separators", [UUID.format(1).replace("-", "")], [UUID.format(1)]),
        ("separators", ["New_York"], ["New York"]),
        ("escapes", ["New%20York"], ["New York"]),
        ("passage", ["d7#3", "d7#4"], ["d7"]),
        ("version", ["2101.00001v2"], ["2101.00001"]),
        ("padding with zeros and a path or the suffix of a file and a prefix", ["DOC0007.txt"], ["7"]),
        ("letter case and dashes", [UUID.format("b").replace("-", "").upper()], [UUID.format("b")]),
    ],
)  # fmt: skip
def test_the_cause_is_the_form_in_which_ids_agree(cause, run, judged):
    """The ids that are shown are one document."""
    assert cause in sign_of(judged, run)[2]
    assert {*sign_of(judged, run)[:2]} <= {*run, *judged}


@each_row(
    "run, judged",
    [
        (["d7", "d9"], ["d1", "d2"]),
        (["17", "18"], ["19", "20"]),
        (["FT931-12", "FT931-7"], ["FR931-12", "LA0107-9"]),
        (["10023456"], ["100234567"]),  # numbers of another length were not cut
        (["a1"], ["b1"]),
        ([3, 2, 1], [30, 20, 10]),
    ],
)
def test_ids_of_one_form_have_no_cause(run, judged):
    """A bad run on a small pool is told the count alone."""
    assert sign_of(judged, run)[2] == ""


def test_the_note_says_what_was_found_and_what_to_do():
    """Its count, an id of each side, the likely cause."""
    ev = rk.evaluate({"q": {"7": 1, "8": 0}}, written("7.0", "8.0"), measures="RR")
    assert ev.notes[0].split("; ") == [
        "none of 2 retrieved documents are judged",
        "the run has '7.0', the qrels have '7'",
        "likely cause: whole numbers that became floats (.0)",
        "write the ids of both sides in one form",
    ]


@each_row("pairs", [[(12, 1), (10, 2)], [(9, 3), (8, 1), (7, 2)]])
def test_a_score_before_its_id_is_seen(pairs):
    """The ids fall as scores do, and the scores are judged documents."""
    ev = rk.evaluate({"q": [1, 2]}, {"q": pairs}, measures="RR")
    assert ev.facts.signs["ids"][2] == "score and id swapped"
    assert "(id, score)" in ev.notes[0]


def test_whole_scores_are_no_ids():
    """Scores that count down from the depth are the ids of other documents by chance."""
    run = {f"q{query}": {10 * place + 3: 40 - place for place in range(40)} for query in range(9)}
    judged = {query: dict.fromkeys(range(1, 40, 4), 1) for query in run}
    judged = {query: {name: 1 for name in of if name % 10 != 3} for query, of in judged.items()}
    assert rk.evaluate(judged, run, measures="RR").facts.signs["ids"][2] == ""


def test_few_accidental_hits_hide_no_cause():
    """Two of 10,000 are judged: the others begin otherwise. As many of one form have no note."""
    judged = {f"q{query}": dict.fromkeys(map(str, range(100)), 1) for query in range(100)}
    run = {query: {f"doc-{name}": 1.0 / (1 + int(name)) for name in of} for query, of in judged.items()}
    run["q0"] |= {"3": 0.5, "4": 0.25}
    ev = rk.evaluate(judged, run, measures="RR")
    assert ev.notes[0].startswith("only 2 of 10,002 retrieved documents are judged")
    assert ev.facts.signs["ids"][2] == "a prefix"
    others = {query: {f"{int(name) + 98}": 1.0 for name in of} for query, of in judged.items()}
    assert rk.evaluate(judged, others, measures="RR", ties="stable").facts.signs == {}


def test_the_note_stands_wherever_the_numbers_do(tmp_path: Path):
    """In text and page, saved and loaded, merged, in a subset, and under the name of the run in a comparison."""
    judged = {query: {"1": 1, "2": 0, "3": 1} for query in "abc"}
    bad = {query: {"D1": 3.0, "D2": 2.0, "D3": 1.0} for query in "abc"}
    good = {query: {"1": 2.0, "2": 3.0} for query in "abc"}
    ev = rk.evaluate(judged, bad, measures="RR", name="bad")
    (note,) = ev.notes
    assert note in whole(ev)
    assert "likely cause: a prefix" in ev._repr_html_()
    ev.save(tmp_path / "ev")
    assert rk.Evaluation.load(tmp_path / "ev").notes == ev.notes
    assert "likely cause" in ev.subset(["a"]).notes[0]
    comparison = rk.compare({"bad": ev, "good": rk.evaluate(judged, good, measures="RR")})
    assert [one for one in comparison.notes if "likely cause" in one] == [f"bad: {note}"]
    parts = [rk.evaluate({q: judged[q]}, {q: bad[q]}, measures="RR") for q in "ab"]
    assert "none of 6 retrieved documents" in merged(parts).notes[0]
    mixed = rk.evaluate({"c": judged["c"]}, {"c": good["c"]}, measures="RR")
    assert merged([*parts, mixed]).notes == ()


@each_row(
    "rules",
    [{}, {"convention": "trec_eval-9.0.8"}, {"convention": rk.Convention(unjudged="skip")}, {"no_relevant": "skip"}],
)
def test_no_rule_hides_the_note(rules):
    """Unjudged documents may be skipped, and queries left out."""
    ev = rk.evaluate({"q": {"7": 1}, "p": {"8": 1}}, {"q": {"7.0": 1.0}, "p": {"8.0": 1.0}}, measures="RR", **rules)
    assert any("became floats" in note for note in ev.notes)


@pytest.mark.shared
@each_row(
    "qrels, run",
    [
        ("cranfield/qrels.graded.txt.gz", "cranfield/runs/bm25_k12_b75.run.gz"),
        ("cisi/qrels.binary.txt.gz", "cisi/runs/lm_jm.run.gz"),
        ("web2012/qrels.adhoc.txt.gz", "web2012/runs/indri-ql-cata-filtered.run.gz"),
    ],
)
def test_bad_runs_on_real_pools_are_told_no_cause(shared: Path, qrels: str, run: str):
    """Documents of other queries, only unjudged ones, and those that a pool of three a query does not hold."""
    judged, ranked = rk.Qrels.read(shared / qrels), rk.Run.read(shared / run)
    truth, rows = judged.to_frame(), ranked.to_frame()
    queries = rows["qid"].unique()
    others = rows.assign(qid=rows["qid"].map(dict(zip(queries, np.roll(queries, 1), strict=True))))
    small = truth.groupby("qid").head(3)
    for pool, run_rows in ((truth, others), (truth, _unjudged(rows, truth)), (small, _unjudged(rows, small))):
        ev = rk.evaluate(rk.Qrels.from_frame(pool), rk.Run.from_frame(run_rows), measures="RR")
        assert ev.facts.signs.get("ids", ("", "", ""))[2] == ""
    assert rk.evaluate(judged, ranked, measures="RR").facts.signs == {}


def _unjudged(rows: pd.DataFrame, truth: pd.DataFrame) -> pd.DataFrame:
    keys = pd.MultiIndex.from_frame(truth[["qid", "docid"]])
    return rows[~pd.MultiIndex.from_frame(rows[["qid", "docid"]]).isin(keys)]


@each_row("form", FORMS)
def test_forms_keep_numbers_and_names_apart(form):
    """No form makes one id of two that differ in a digit or a letter."""
    ids = ["12", "13", "121", "ab", "ac", "d12", "d13", "x-12", "x-13"]
    ours, theirs = FORMS[form](ids, ids)
    assert ours == theirs
    assert len({*ours}) == len(ids)
