"""A rollback takes the last recorded promotion back, on record, and refuses to guess."""

from __future__ import annotations

import json
from pathlib import Path

import mlflow
import pytest
from typer.testing import CliRunner

import rankeval_mlflow as rkm
from rankeval.errors import InvalidInput, TrackingError
from rankeval_mlflow.commands import app
from rankeval_mlflow.run_names import DECISION, KIND, OUTCOME, PROMOTION


def test_the_alias_returns_step_by_step_on_record(champions, client):
    """To the version before the last promotion, then to the one before that, and no further."""
    promotion = champions.tags("3")["rankeval.promotion.champion"].rpartition(" ")[2]
    done = rkm.rollback("ranker", "champion", reason="slow on phones", who="ana")
    assert (done.outcome, bool(done), done.version, done.alias_before) == ("moved", True, "2", "3")
    assert champions.holder() == "2"
    assert champions.tags("3")["rankeval.promotion.champion"] == f"rolled back to 2 in {done.run_id}"
    run = client.get_run(done.run_id)
    assert (run.data.tags[KIND], run.data.tags[PROMOTION]) == ("rollback", "moved from 3 to 2")
    found = json.loads(
        Path(mlflow.artifacts.download_artifacts(run_id=done.run_id, artifact_path=DECISION)).read_text()
    )
    assert (found["decision"], found["who"], found["takes_back"]) == ("rolled back", "ana", promotion)
    assert "slow on phones" in found["reason"]
    assert run.info.experiment_id == client.get_run(promotion).info.experiment_id
    assert rkm.rollback("ranker", reason="again").version == "1"
    with pytest.raises(InvalidInput, match="no recorded promotion gave it to version 1"):
        rkm.rollback("ranker", reason="once more")


@pytest.mark.further
def test_what_was_rolled_back_is_promoted_again_by_consent_only(champions, store):
    """A job that repeats its promotion undoes no rollback, in a dry run neither; one that may says so on record."""
    back = rkm.rollback("ranker", reason="a wrong alarm")
    asked = ["promote", "ranker", "--version", "3", "-m", "nDCG@10", "--uri", store]
    for dry_run in (False, True):
        with pytest.raises(InvalidInput) as caught:
            rkm.promote("ranker", 3, measure="nDCG@10", dry_run=dry_run)
        said = f"version 3 was rolled back from ranker@champion to version 2 in run {back.run_id} (a wrong alarm)"
        assert (caught.value.argument, said in str(caught.value)) == ("again", True)
    assert isinstance(CliRunner().invoke(app, asked).exception, InvalidInput)
    assert champions.holder() == "2"
    assert rkm.promote("ranker", 3, "canary", "nDCG@10", first=True).moved, "another alias"
    done = rkm.promote("ranker", 3, measure="nDCG@10", again=True)
    assert (done.moved, "Beware" in done.reason, said in done.reason) == (True, False, True)
    assert rkm.rollback("ranker", reason="no wrong alarm").version == "2"
    assert (CliRunner().invoke(app, [*asked, "--again"]).exit_code, champions.holder()) == (0, "3")


def test_a_move_by_another_hand_is_not_taken_back(champions):
    for version, after in (("1", "2"), ("2", "3")):  # one without and one with a promotion of its own
        champions.put(version)
        with pytest.raises(InvalidInput, match=f"from version {version} to version {after}, and somebody"):
            rkm.rollback("ranker", reason="x")
        assert champions.holder() == version


def test_a_version_that_returned_by_promotion_is_rolled_back_to_the_one_before(champions):
    """2 over 1, 3 over 2, and 2 over 3: the acceptance of 3 over 2 is history, and not a move by another hand."""
    champions.put("3")
    assert rkm.promote("ranker", 2, measure="nDCG@10", claim="not_worse", margin=1.0).moved
    assert rkm.rollback("ranker", reason="x").version == champions.holder() == "3"


def test_a_promoter_that_was_killed_before_its_move_is_no_hindrance(champions, client):
    """It left an acceptance over the version in use, and a run that says nothing of the alias."""
    run_id = client.create_run("0").info.run_id
    version = champions.add(0.5)
    state = json.dumps({"is_rollback": False, "other": "3", "run_id": run_id, "why": ""})
    client.set_model_version_tag("ranker", version, "rankeval.promotion.champion.state", state)
    assert rkm.rollback("ranker", reason="x").version == "2"


def test_without_an_earlier_version_nothing_moves(ranker, client):
    with pytest.raises(InvalidInput, match="no recorded promotion gave it to version 1"):
        rkm.rollback("ranker", reason="x")
    with pytest.raises(InvalidInput, match="no version has it"):
        rkm.rollback("ranker", "canary", reason="x")
    assert rkm.promote("ranker", 1, "canary", "nDCG@10", first=True).moved
    with pytest.raises(InvalidInput, match="version 1 was the first to have it"):
        rkm.rollback("ranker", "canary", reason="x")
    assert rkm.promote("ranker", ranker.add(0.1), measure="nDCG@10").moved
    client.delete_model_version("ranker", "1")
    with pytest.raises(InvalidInput, match="ranker has no version 1, or it was deleted"):
        rkm.rollback("ranker", reason="x")
    assert ranker.holder() == "2"


def test_no_tag_speaks_against_the_version_that_has_the_alias_again(champions):
    """Version 2 was tried against 3 and rejected; after the rollback it is in use, and the record has the rest."""
    rejected = rkm.promote("ranker", 2, measure="nDCG@10")
    assert champions.tags("2")["rankeval.rejection.champion"] == f"rejected against 3 in {rejected.run_id}"
    back = rkm.rollback("ranker", reason="slow")
    assert back.version == "2"
    assert [key for key in champions.tags("2") if "rejection" in key] == []
    assert champions.tags("2")["rankeval.promotion.champion"].startswith("accepted over 1 in ")
    assert champions.tags("3")["rankeval.promotion.champion"] == f"rolled back to 2 in {back.run_id}"


def test_a_version_that_is_accepted_at_last_has_no_tag_of_its_rejection(ranker):
    version = ranker.add(0.1)
    assert not rkm.promote("ranker", version, measure="nDCG@10", margin=0.3)
    assert "rankeval.rejection.champion" in ranker.tags(version)
    assert rkm.promote("ranker", version, measure="nDCG@10").moved
    assert "rankeval.rejection.champion" not in ranker.tags(version)


def by_rollback(_):
    assert rkm.rollback("ranker", reason="x").version == "1"


def by_hand(ranker):
    ranker.put("1")


def by_promotion(_):
    assert rkm.promote("ranker", 1, measure="nDCG@10", claim="not_worse", margin=1.0).moved


@pytest.mark.parametrize("back", [by_rollback, by_hand, pytest.param(by_promotion, marks=pytest.mark.rest)])
def test_a_promotion_that_had_ended_is_no_rival_however_the_alias_came_back(ranker, back):
    """No later promotion says "Beware" of it."""
    assert rkm.promote("ranker", ranker.add(0.1), measure="nDCG@10").moved
    back(ranker)
    done = rkm.promote("ranker", ranker.add(0.3), measure="nDCG@10")
    assert (done.moved, done.alias_before) == (True, "1")
    assert "Beware" not in done.reason


@pytest.mark.further
def test_a_rival_that_was_champion_once_is_told_all_the_same(ranker, meanwhile, monkeypatch, tmp_path):
    """Two machines promote over version 1, one of them a version that 1 has replaced before."""
    assert rkm.promote("ranker", ranker.add(0.1), measure="nDCG@10").moved
    by_promotion(ranker)
    new = ranker.add(0.3)

    def other_machine():
        with monkeypatch.context() as patched:
            patched.setenv("RANKEVAL_SPOOL", str(tmp_path / "other-machine"))
            assert rkm.promote("ranker", 2, measure="nDCG@10").moved

    meanwhile("set_registered_model_alias", other_machine)
    done = rkm.promote("ranker", new, measure="nDCG@10")
    assert (done.moved, ranker.holder()) == (True, new)
    assert "Beware: version 2 of ranker was accepted over version 1 too" in done.reason


def test_a_rollback_between_the_steps_of_a_promoter_is_seen(champions, meanwhile, monkeypatch, tmp_path):
    """The promoter on another machine has read the alias for the first time: it leaves it where the rollback put it."""
    better = champions.add(0.6)

    def other_machine():
        with monkeypatch.context() as patched:
            patched.setenv("RANKEVAL_SPOOL", str(tmp_path / "other-machine"))
            assert rkm.rollback("ranker", reason="slow").moved

    meanwhile("set_model_version_tag", other_machine)
    done = rkm.promote("ranker", better, measure="nDCG@10")
    assert (done.outcome, champions.holder()) == ("overtaken", "2")
    assert "Meanwhile the alias went to version 2" in done.reason
    again = rkm.promote("ranker", better, measure="nDCG@10")
    assert (again.moved, "Beware" in again.reason) == (True, False)


def test_a_rollback_needs_a_reason(champions):
    for reason in ("", "  ", None):
        with pytest.raises(InvalidInput) as caught:
            rkm.rollback("ranker", reason=reason)
        assert caught.value.argument == "reason", reason
    assert champions.holder() == "3"


def test_an_alias_that_moves_meanwhile_stays_where_it_is(champions, client, meanwhile):
    meanwhile("log_batch", lambda: champions.put("1"))
    done = rkm.rollback("ranker", reason="x")
    assert (done.outcome, bool(done), champions.holder()) == ("overtaken", False, "1")
    assert client.get_run(done.run_id).data.tags[PROMOTION].startswith("overtaken")
    assert champions.tags("3")["rankeval.promotion.champion"].startswith("accepted over 2")


def test_a_rollback_sees_a_promoter_that_moved_the_alias_after_it(champions, client, meanwhile):
    """Between its move and its second look: the promoter is not told, so the rollback must be."""
    meanwhile("set_model_version_tag", lambda: champions.put("1"))
    done = rkm.rollback("ranker", reason="x")
    assert (done.outcome, bool(done), champions.holder()) == ("overtaken", False, "1")
    assert "It was moved, and then somebody else moved it to version 1" in done.reason
    assert client.get_run(done.run_id).data.tags[PROMOTION].startswith("overtaken")


def test_a_rollback_that_was_killed_after_its_move_is_named_by_the_next(champions):
    """The alias is with version 2 then, and the acceptance of 3 over it stands."""
    champions.put("2")
    with pytest.raises(InvalidInput, match="or by a rollback that stopped half way; set the alias yourself"):
        rkm.rollback("ranker", reason="x")


def test_a_promotion_whose_outcome_was_lost_is_taken_back(champions, client):
    """Its promoter was killed after the move, and before the note."""
    run_id = champions.tags("3")["rankeval.promotion.champion"].rpartition(" ")[2]
    for tag in (OUTCOME, PROMOTION):
        client.delete_tag(run_id, tag)
    assert rkm.rollback("ranker", reason="x").version == "2"


def test_a_rollback_that_breaks_off_before_the_move_can_be_made_again(champions, monkeypatch):
    def refuse(*_, **__):
        raise mlflow.exceptions.MlflowException("database is locked")

    with monkeypatch.context() as patched:
        patched.setattr(mlflow.MlflowClient, "set_registered_model_alias", refuse)
        with pytest.raises(TrackingError, match="did not move the alias"):
            rkm.rollback("ranker", reason="x")
    assert champions.holder() == "3"
    assert rkm.rollback("ranker", reason="x").version == "2"


def test_the_command_says_where_the_alias_is(champions, store):
    done = CliRunner().invoke(app, ["rollback", "ranker", "--reason", "slow", "--uri", store])
    assert (done.exit_code, champions.holder()) == (0, "2")
    assert "ranker@champion: moved from version 3 to version 2. Rolled back: slow" in done.output
    assert CliRunner().invoke(app, ["rollback", "ranker", "--uri", store]).exit_code == 2


@pytest.mark.server
def test_a_rollback_through_a_server(server, ranker_of):
    """As the registry of a team is asked."""
    mlflow.set_tracking_uri(server.uri)
    ranker = ranker_of(mlflow.MlflowClient(), "rolled-back")
    assert rkm.promote("rolled-back", ranker.add(0.1), measure="nDCG@10").moved
    assert rkm.rollback("rolled-back", reason="slow").version == ranker.holder() == "1"
