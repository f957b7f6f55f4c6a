"""An override moves the alias without the claim, and all that shows the alias says so; first=True is for new ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval.errors import InvalidInput, LedgerError
from rankeval_mlflow.commands import app
from rankeval_mlflow.run_names import DECISION, HEADLINE, PROMOTION

WHY = {"override": "the index of version 1 is broken.\n", "override_by": "ann"}
SAID = "override by ann: the index of version 1 is broken"


def record(client, run_id, tmp_path):
    return json.loads(Path(client.download_artifacts(run_id, DECISION, str(tmp_path))).read_text("utf-8"))


def test_an_override_without_a_measure_compares_nothing_and_is_shown_everywhere(ranker, client, tmp_path):
    """It needs no evaluation and no decision."""
    version = ranker.add(role=None)
    done = rkm.promote("ranker", version, **WHY)
    assert (done.moved, done.accepted, done.override, done.decision) == (True, False, SAID, None)
    said = f"This is an {SAID}. Nothing was compared."
    assert done.words == f"ranker@champion: moved from version 1 to version 2. {said}"
    assert SAID in done._repr_html_()
    assert ranker.holder() == version
    assert ranker.tags(version)["rankeval.promotion.champion"] == f"forced over 1 in {done.run_id}; {SAID}"
    run = client.get_run(done.run_id)
    assert run.data.tags[PROMOTION] == "moved from 1 to 2"
    assert run.data.tags[HEADLINE] == f"forced: {said}"
    assert SAID in run.data.tags["mlflow.note.content"]
    assert (run.data.params["override"], run.data.params["decision"]) == (SAID, "forced")
    assert run.info.run_name == "ranker v2 for champion: forced"
    said = record(client, done.run_id, tmp_path)
    assert said["override"] == {"by": "ann", "reason": "the index of version 1 is broken"}
    assert said["decision"] == "forced"
    again = rkm.promote("ranker", version, measure="nDCG@10")
    assert (again.outcome, f"Version 2 got the alias by {SAID}." in again.reason) == ("in place", True)


def test_a_test_that_is_overridden_counts_and_its_answer_stays(ranker, client, tmp_path):
    equal = ranker.add(0.0)
    done = rkm.promote("ranker", equal, measure="nDCG@10", **WHY)
    assert (done.moved, done.decision.counted, bool(done.decision)) == (True, "decision 1 of 20", False)
    assert "No gain was shown" in done.reason
    assert record(client, done.run_id, tmp_path)["budget"]["remaining"] == 19
    assert rkm.rollback("ranker", reason="no better").version == "1"
    assert ranker.tags(equal)["rankeval.promotion.champion"].startswith("rolled back to 1 in ")
    again = rkm.promote("ranker", equal, measure="nDCG@10", again=True)
    assert (again.outcome, again.decision.is_new, again.decision.remaining) == ("rejected", False, 19)


@pytest.mark.further
def test_the_next_decision_says_how_the_version_in_use_came_there(ranker):
    rkm.promote("ranker", ranker.add(0.0), **WHY)
    done = rkm.promote("ranker", ranker.add(0.3), measure="nDCG@10")
    assert (done.moved, done.alias_before, done.override) == (True, "2", "")
    assert f"Version 2 got the alias by {SAID}." in done.reason
    later = rkm.promote("ranker", ranker.add(0.0), measure="nDCG@10")
    assert "override" not in later.reason
    assert rkm.rollback("ranker", reason="x").version == "2"
    assert rkm.rollback("ranker", reason="x").version == "1"


def test_an_override_that_was_not_needed_is_none(ranker, client, tmp_path):
    done = rkm.promote("ranker", ranker.add(0.1), measure="nDCG@10", **WHY)
    assert (done.moved, done.accepted, done.override) == (True, True, "")
    assert f"This needed no {SAID}." in done.reason
    assert ranker.tags("2")["rankeval.promotion.champion"] == f"accepted over 1 in {done.run_id}"
    assert "override" not in record(client, done.run_id, tmp_path)


def test_an_override_over_a_gate_uses_its_decision(ranker, tmp_path):
    data = rk.datasets.make_ranking(60, 10, 4, rng=3)
    guard = rk.Guard("shop", ledger=str(tmp_path / "ledger"))
    gate = guard.gate(guard.register("shop-test", data), baseline=data.X[:, 3], budget=1)
    asked = {"gate": gate, "candidate": -data.y, "holder": data.X[:, 3]}
    done = rkm.promote("ranker", ranker.add(role=None), **asked, **WHY)
    assert (done.moved, gate.remaining, done.override) == (True, 0, SAID)
    tag = ranker.tags("2")["rankeval.promotion.champion"]
    assert tag.startswith(f"forced over 1 in {done.run_id}; {SAID}; not shown to be better than ranker v1 (")
    with pytest.raises(LedgerError, match="has made its 1 decision"):
        rkm.promote("ranker", ranker.add(role=None), **asked | {"candidate": data.y}, **WHY)
    assert rkm.promote("ranker", 3, **WHY).moved, "without a test"


def test_an_override_in_a_dry_run_moves_nothing(ranker):
    done = rkm.promote("ranker", ranker.add(0.0), measure="nDCG@10", dry_run=True, **WHY)
    assert (done.outcome, done.override, ranker.holder()) == ("would move", SAID, "1")


BAD_USE = [
    ({"override": "why"}, "override_by"),
    ({"override_by": "ann"}, "override"),
    ({"override": " ", "override_by": "ann"}, "override"),
    ({"override": 7, "override_by": "ann"}, "override"),
    ({**WHY, "run_id": "x"}, "run_id"),
    ({**WHY, "dry_run": True}, "dry_run"),
    ({**WHY, "candidate": [1]}, "candidate"),
    ({}, "measure"),
]


def test_an_override_says_who_and_why(ranker, client, promotions):
    version = ranker.add(0.0)
    for options, argument in BAD_USE:
        with pytest.raises(InvalidInput) as caught:
            rkm.promote("ranker", version, **options)
        assert caught.value.argument == argument, options
    assert (ranker.holder(), promotions(client)) == ("1", [])


@pytest.mark.usefixtures("champions")
def test_an_override_is_no_consent_to_a_new_alias_or_to_what_was_rolled_back():
    rkm.rollback("ranker", reason="slow")
    with pytest.raises(InvalidInput) as caught:
        rkm.promote("ranker", 3, **WHY)
    assert caught.value.argument == "again"
    with pytest.raises(InvalidInput) as caught:
        rkm.promote("ranker", 3, "champoin", **WHY)
    assert caught.value.argument == "first"
    assert rkm.promote("ranker", 3, again=True, **WHY).moved


def test_an_alias_that_was_deleted_is_no_new_one(champions, client):
    """first=True looks at the records, and names the version that had it last."""
    client.delete_registered_model_alias("ranker", "champion")
    last = champions.tags("3")["rankeval.promotion.champion"].rpartition(" ")[2]
    for version in (champions.add(0.1), "3"):
        with pytest.raises(InvalidInput) as caught:
            rkm.promote("ranker", version, measure="nDCG@10", first=True)
        assert caught.value.argument == "first"
        assert f"(version 3 had it last, by run {last}, and it was deleted since)" in str(caught.value)
    assert rkm.promote("ranker", 1, "canary", "nDCG@10", first=True).moved, "another alias"
    done = rkm.promote("ranker", 4, measure="nDCG@10", first=True, **WHY)
    assert (done.moved, done.override, done.decision) == (True, SAID, None)
    client.delete_registered_model_alias("ranker", "champion")
    with pytest.raises(InvalidInput, match=f"version 4 had it last, by run {done.run_id}"):
        rkm.promote("ranker", 3, measure="nDCG@10", first=True)


@pytest.mark.usefixtures("champions")
def test_a_rollback_is_a_record_of_who_had_an_alias(client):
    back = rkm.rollback("ranker", reason="slow")
    client.delete_registered_model_alias("ranker", "champion")
    with pytest.raises(InvalidInput, match=f"version 2 had it last, by run {back.run_id}"):
        rkm.promote("ranker", 1, measure="nDCG@10", first=True)


def test_the_command_overrides(ranker, store):
    asked = ["promote", "ranker", "--version", ranker.add(role=None), "--uri", store]
    assert isinstance(CliRunner().invoke(app, asked).exception, InvalidInput)
    one = CliRunner().invoke(app, [*asked, "--override", "broken index"])
    assert (one.exception.argument, ranker.holder()) == ("--override-by", "1")
    done = CliRunner().invoke(app, [*asked, "--override", "broken index", "--override-by", "ann"])
    assert (done.exit_code, ranker.holder()) == (0, "2")
    assert (
        "moved from version 1 to version 2. This is an override by ann: broken index. Nothing was compared."
        in done.output
    )


def test_markup_in_a_reason_is_text_on_the_page_of_the_run(ranker, client):
    done = rkm.promote("ranker", ranker.add(role=None), override="<script>alert(1)</script>", override_by="ann")
    said = client.get_run(done.run_id).data.tags["mlflow.note.content"]
    assert "&lt;script&gt;" in said
    assert "<script>" not in said
