"""What happens between two promoters, without rights, and when the store goes away: the record comes first."""

from __future__ import annotations

import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor

import forking
import mlflow
import pytest
from circles import choose
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import PERMISSION_DENIED

import rankeval_mlflow as rkm
from rankeval.errors import RankevalWarning, TrackingError
from rankeval_mlflow.delivery import spool
from rankeval_mlflow.delivery.spool import waiting

FORBIDDEN = MlflowException(
    "API request to endpoint /api/2.0/mlflow/registered-models/alias failed with error code 403 != 200. Response body: "
    "'Permission denied'",
    error_code=PERMISSION_DENIED,
)


@pytest.fixture
def outcome(promotions):
    """Return what tells what the only record says became of the alias."""

    def told(client):
        (run,) = promotions(client)
        return run.data.params["decision"], run.data.tags["rankeval.promotion"]

    return told


def refusing(monkeypatch, method, error=FORBIDDEN):
    def refused(*_, **__):
        raise error

    monkeypatch.setattr(mlflow.MlflowClient, method, refused)


def test_an_alias_that_went_elsewhere_meanwhile_is_left_there(ranker, client, meanwhile, outcome):
    better, other = ranker.add(0.1), ranker.add(0.1)
    meanwhile("set_model_version_tag", lambda: ranker.put(other))
    done = rkm.promote("ranker", better, measure="nDCG@10")
    assert (done.accepted, done.moved, bool(done), done.outcome) == (True, False, False, "overtaken")
    assert ranker.holder() == other
    assert "Meanwhile the alias went to version 3. Promote again to compare with it." in done.reason
    decided, said = outcome(client)
    assert decided == "accepted"
    assert said.startswith("overtaken Meanwhile the alias went to version 3")


def test_an_alias_that_is_moved_on_is_noticed(ranker, client, monkeypatch, outcome):
    """Somebody else moves it right after us: the last reading sees it."""
    better, other = ranker.add(0.1), ranker.add(0.1)
    real = mlflow.MlflowClient.set_registered_model_alias

    def moved_on(self, name, alias, version):
        real(self, name, alias, version)
        real(self, name, alias, other)

    monkeypatch.setattr(mlflow.MlflowClient, "set_registered_model_alias", moved_on)
    done = rkm.promote("ranker", better, measure="nDCG@10")
    assert (done.outcome, bool(done), ranker.holder()) == ("overtaken", False, other)
    assert "It was moved, and then somebody else moved it to version 3." in done.reason
    assert outcome(client)[1].startswith("overtaken It was moved")


def test_the_last_of_two_that_both_passed_the_second_reading_is_told(ranker, client, meanwhile, monkeypatch, tmp_path):
    """Two machines without a common lock: the alias is with the last one, which hears that it was not compared."""
    first, second = ranker.add(0.1), ranker.add(0.1)
    own = {"RANKEVAL_SPOOL": tmp_path / "other-machine"}

    def other_machine():
        with monkeypatch.context() as patched:
            patched.setenv("RANKEVAL_SPOOL", str(own["RANKEVAL_SPOOL"]))
            assert rkm.promote("ranker", first, measure="nDCG@10").moved

    meanwhile("set_registered_model_alias", other_machine)
    done = rkm.promote("ranker", second, measure="nDCG@10")
    assert (done.moved, ranker.holder()) == (True, second)
    assert done.reason.endswith(
        "Beware: version 2 of ranker was accepted over version 1 too, and was not compared with this one."
    )
    for version in (first, second):
        record = ranker.tags(version)["rankeval.promotion.champion"].rpartition(" ")[2]
        assert client.get_run(record).data.params["decision"] == "accepted"


@pytest.mark.parametrize("method", ["set_model_version_tag", "set_registered_model_alias"])
def test_without_the_right_to_edit_the_model_nothing_moves_and_the_record_says_why(
    ranker, client, monkeypatch, method, outcome
):
    version = ranker.add(0.1)
    refusing(monkeypatch, method)
    with pytest.raises(TrackingError, match=r"does not let this user (tag|move).*403"):
        rkm.promote("ranker", version, measure="nDCG@10")
    assert ranker.holder() == "1"
    decided, said = outcome(client)
    assert decided == "accepted"
    assert said.startswith("not moved: the tracking store sqlite:")


def test_without_the_right_to_write_runs_the_alias_stays(ranker, monkeypatch):
    version = ranker.add(0.1)
    refusing(monkeypatch, "create_run")
    with pytest.raises(TrackingError, match="could not be recorded, so the alias ranker@champion stays as it is"):
        rkm.promote("ranker", version, measure="nDCG@10")
    assert ranker.holder() == "1"
    assert "rankeval.promotion.champion" not in ranker.tags(version)


def test_a_record_that_is_sent_later_moves_nothing(ranker, client, monkeypatch, promotions):
    from rankeval_mlflow.delivery.sending import send

    version = ranker.add(0.1)
    with monkeypatch.context() as patched:
        refusing(patched, "log_batch", MlflowException("down for repair"))
        with pytest.raises(TrackingError, match="could not be recorded"):
            rkm.promote("ranker", version, measure="nDCG@10")
    (upload,) = waiting()
    send(upload)
    assert len(promotions(client)) == 1
    assert ranker.holder() == "1"
    assert rkm.promote("ranker", version, measure="nDCG@10").moved


def test_an_answer_that_is_lost_is_looked_up(ranker, monkeypatch):
    """The alias moved, and the connection broke before the answer came."""
    real = mlflow.MlflowClient.set_registered_model_alias

    def lost(self, *arguments):
        real(self, *arguments)
        raise MlflowException("connection reset by peer")

    monkeypatch.setattr(mlflow.MlflowClient, "set_registered_model_alias", lost)
    assert rkm.promote("ranker", ranker.add(0.1), measure="nDCG@10").moved


def unreadable_after_the_move(monkeypatch, *, lost=False):
    """Let the alias move, and then let nobody read it; with `lost`, the answer of the move is lost too."""
    real = mlflow.MlflowClient.set_registered_model_alias

    def gone(*_, **__):
        raise MlflowException("store gone")

    def moved(self, *arguments):
        real(self, *arguments)
        monkeypatch.setattr(mlflow.MlflowClient, "get_registered_model", gone)
        if lost:
            gone()

    monkeypatch.setattr(mlflow.MlflowClient, "set_registered_model_alias", moved)


def test_an_alias_that_moved_and_cannot_be_read_again_is_never_said_not_to_have_moved(ranker, client, outcome):
    version = ranker.add(0.1)
    with pytest.MonkeyPatch.context() as patched:
        unreadable_after_the_move(patched)
        done = rkm.promote("ranker", version, measure="nDCG@10")
    assert (done.outcome, ranker.holder()) == ("moved", version)
    assert "Beware: whether another promoter moved it since is not known" in done.reason
    assert outcome(client)[1].startswith("moved from 1 to 2 Beware")


def test_a_move_of_which_nothing_is_known_is_said_to_be_unknown(ranker, client, outcome):
    version = ranker.add(0.1)
    with pytest.MonkeyPatch.context() as patched:
        unreadable_after_the_move(patched, lost=True)
        with pytest.raises(TrackingError, match=r"Whether ranker@champion moved is not known.*recorded in run"):
            rkm.promote("ranker", version, measure="nDCG@10")
    assert ranker.holder() == version
    assert outcome(client)[1].startswith("unknown whether it moved: ")


def test_a_version_that_is_deleted_meanwhile_gets_no_alias(ranker, client, meanwhile):
    version = ranker.add(0.1)
    meanwhile("set_registered_model_alias", lambda: client.delete_model_version("ranker", version))
    with pytest.raises(TrackingError, match="not move the alias"):
        rkm.promote("ranker", version, measure="nDCG@10")
    assert ranker.holder() == "1"


def test_an_outcome_that_cannot_be_noted_stops_nothing(ranker, monkeypatch):
    version = ranker.add(0.1)
    real = mlflow.MlflowClient.set_tag

    def only_ours(self, run_id, key, value, **options):
        if key == "rankeval.promotion":
            raise MlflowException("gone")
        return real(self, run_id, key, value, **options)

    monkeypatch.setattr(mlflow.MlflowClient, "set_tag", only_ours)
    with pytest.warns(RankevalWarning, match="does not say what became of ranker@champion"):
        assert rkm.promote("ranker", version, measure="nDCG@10").moved


def test_a_server_that_is_down_is_said_in_one_sentence(ranker, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(TrackingError, match=r"http://127.0.0.1:9 did not answer: Connection refused$"):
        rkm.promote("ranker", ranker.add(0.1), measure="nDCG@10", uri="http://127.0.0.1:9")
    assert ranker.holder() == "1"


@pytest.mark.further
def test_a_second_promoter_of_this_machine_waits_and_compares_with_the_new_holder(ranker, meanwhile):
    """Without the lock both would compare with version 1."""
    better, equal = ranker.add(0.1), ranker.add(0.1)
    found = []
    thread = threading.Thread(target=lambda: found.append(rkm.promote("ranker", equal, measure="nDCG@10")))
    meanwhile("set_registered_model_alias", thread.start)
    assert rkm.promote("ranker", better, measure="nDCG@10").moved
    thread.join(timeout=60)
    assert (found[0].alias_before, found[0].outcome) == (better, "rejected")


def test_where_no_lock_can_be_written_promoters_go_on(ranker, monkeypatch):
    version = ranker.add(0.1)

    def read_only(path, patience, held=spool.held):
        if "promotion" in path.name:
            raise PermissionError("read-only file system")
        return held(path, patience)

    monkeypatch.setattr("rankeval_mlflow.delivery.spool.held", read_only)
    assert rkm.promote("ranker", version, measure="nDCG@10").moved


def test_a_promoter_that_never_ends_is_not_waited_for_for_ever(ranker, monkeypatch):
    version = ranker.add(0.1)

    def taken(*_):
        raise TimeoutError("another process has held it for 900 s")

    monkeypatch.setattr("rankeval_mlflow.delivery.spool.held", taken)
    with pytest.raises(TrackingError, match=r"another promoter of ranker@champion at sqlite:.* is still at work"):
        rkm.promote("ranker", version, measure="nDCG@10")


ROUNDS = choose(default=2, full=3)
PROMOTER = """
import sys
import rankeval_mlflow as rkm
uri, versions = sys.argv[1], sys.argv[2].split(",")
for version in versions:
    done = rkm.promote("ranker", version, measure="nDCG@10", uri=uri, who=sys.argv[3])
    print(done.outcome, done.version, done.alias_before, done.run_id, flush=True)
"""


def two_at_once(uri, ranker, folder, *, rounds, own_spools):
    """Let two processes promote different versions at the same time; return what each of them said."""
    gains = [0.1 * (number + 1) for number in range(2 * rounds)]
    versions = [ranker.add(gain) for gain in gains]
    each = [versions[::2], versions[1::2]]

    def promoted(number):
        spool = folder / (f"spool-{number}" if own_spools else "spool")
        environment = {**os.environ, "RANKEVAL_SPOOL": str(spool)}
        return forking.run(PROMOTER, uri, ",".join(each[number]), f"promoter-{number}", env=environment)

    with ThreadPoolExecutor(2) as pool:
        said = list(pool.map(promoted, range(2)))
    assert [run.returncode for run in said] == [0, 0], said
    return [line.split() for run in said for line in run.stdout.splitlines()]


def explained(client, ranker, lines):
    """Check that the alias is with a version whose record was written before, and that records lead there from 1."""
    holder = ranker.holder()
    assert holder != "1"
    tag = re.fullmatch(r"accepted over (\S+) in ([0-9a-f]{32})", ranker.tags(holder)["rankeval.promotion.champion"])
    record = client.get_run(tag[2])
    assert (record.data.params["decision"], record.data.params["version"]) == ("accepted", holder)
    before = {version: previous for outcome, version, previous, _ in lines if outcome in {"moved", "overtaken"}}
    seen = []
    while holder != "1":
        seen.append(holder)
        holder = before[holder]
        assert holder not in seen
    assert not waiting()


@pytest.mark.parametrize(
    "own_spools",
    [
        pytest.param(False, id="one machine", marks=pytest.mark.rest),
        pytest.param(True, id="two machines", marks=pytest.mark.kill),
    ],
)
def test_two_promoters_at_once_never_leave_the_alias_without_its_record(ranker, client, store, tmp_path, own_spools):
    lines = two_at_once(store, ranker, tmp_path, rounds=ROUNDS, own_spools=own_spools)
    assert len(lines) == 2 * ROUNDS
    explained(client, ranker, lines)
    if not own_spools:
        moved = [(version, before) for outcome, version, before, _ in lines if outcome == "moved"]
        assert len({before for _, before in moved}) == len(moved), "with the lock, each holder is replaced once"
        assert not [line for line in lines if line[0] == "overtaken"]


@pytest.fixture
def on_server(server, ranker_of):
    """Return a registered model on the server whose version 1 is champion."""
    mlflow.set_tracking_uri(server.uri)
    client = mlflow.MlflowClient(server.uri)
    yield ranker_of(client)
    client.delete_registered_model("ranker")


@pytest.mark.server
@pytest.mark.kill
def test_two_promoters_at_once_on_a_server(on_server, server, tmp_path):
    explained(on_server.client, on_server, two_at_once(server.uri, on_server, tmp_path, rounds=ROUNDS, own_spools=True))
