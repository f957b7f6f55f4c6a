"""A tracking store is tried before an experiment: never usable is an error, not usable now is said."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from pathlib import Path

import pytest

from rankeval.errors import ConfigError, InvalidInput, RankevalWarning, TrackingError
from rankeval.experiment import run_experiment
from rankeval.experiment.checks import check_experiment
from rankeval.experiment.config import check_config
from rankeval_mlflow.delivery.connection import connected
from rankeval_mlflow.delivery.sending import check_store

RIDGE = {"estimator": "sklearn.linear_model.Ridge"}


@pytest.fixture(autouse=True)
def _own_spool(tmp_path, monkeypatch):
    monkeypatch.setenv("RANKEVAL_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")


def test_a_store_that_answers_has_nothing_to_say(empty_database):
    shutil.copy(empty_database, "mlflow.db")
    assert check_store("new", "sqlite:///mlflow.db") is None
    assert not list(Path("spool").iterdir()) or all(one.name.startswith(".") for one in Path("spool").iterdir())


def test_a_server_that_is_down_is_said_before_any_data_is_loaded():
    """The run goes on: everything is kept on disk, to be sent later."""
    said = check_store("new", "http://127.0.0.1:9")
    assert said.startswith("the tracking store http://127.0.0.1:9 cannot be reached now (Connection refused)")
    raw = {"name": "x", "data": {"loader": "digits"}, "rankers": {"a": RIDGE}, "guard": "off"}
    with pytest.warns(RankevalWarning, match="cannot be reached now"):
        check_experiment(check_config({**raw, "tracking": {"uri": "http://127.0.0.1:9"}}))


def test_a_kind_of_store_that_does_not_exist_is_an_error():
    with pytest.raises(InvalidInput, match="knows no kind of tracking store that is written htp://127"):
        check_store("new", "htp://127.0.0.1:9")


def test_an_experiment_that_was_deleted_is_an_error(store):
    """By a whole path: MLflow 3.9 keeps a store by its address, and an earlier test had another mlflow.db."""
    with connected(store) as client:
        client.delete_experiment(client.create_experiment("gone"))
    with pytest.raises(InvalidInput, match="the experiment 'gone' was deleted; restore it"):
        check_store("gone", store)


def test_a_spool_that_cannot_be_written_is_an_error(monkeypatch, empty_database):
    shutil.copy(empty_database, "mlflow.db")
    Path("taken").write_text("a file is in the way")
    monkeypatch.setenv("RANKEVAL_SPOOL", "taken/spool")
    monkeypatch.setattr("rankeval_mlflow.delivery.spool.spare_directory", lambda: None)
    with pytest.raises(TrackingError, match=r"the spool .* cannot be written"):
        check_store("new", "sqlite:///mlflow.db")


def test_a_name_that_mlflow_does_not_take_is_an_error(empty_database):
    shutil.copy(empty_database, "mlflow.db")
    for name, says in (("x" * 501, "has 501 characters"), (" ", "expected a name"), ("a\nb", "expected a name")):
        with pytest.raises(InvalidInput, match=says):
            check_store(name, "sqlite:///mlflow.db")


@pytest.mark.parametrize("uri", ["http://nohost.invalid:5000", "http://:5000", "http://127.0.0.1:port"])
def test_an_address_that_leads_nowhere_is_an_error_and_not_a_server_that_is_down(uri):
    with pytest.raises(InvalidInput, match=r"cannot be found \(.*\): correct its address"):
        check_store("new", uri)


@pytest.mark.parametrize(
    "path", ["/sys/kernel/mlflow.db", "/sys/kernel/deep/mlflow.db", "taken/mlflow.db", "taken", "."]
)
def test_a_file_that_cannot_be_a_database_costs_no_training_and_no_look(path, tmp_path):
    """It was tried for 100 s and taken for a server that is down; the look was spent, and the run was not logged."""
    Path("taken").write_text("no database" * 100)
    raw = {"name": "x", "data": {"loader": "digits"}, "rankers": {"a": RIDGE}, "guard": {"ledger": str(tmp_path / "l")}}
    with pytest.raises(ConfigError, match=r"^tracking: the tracking store sqlite:.* refuses: "):
        run_experiment({**raw, "tracking": {"uri": f"sqlite:///{path}"}})
    assert not (tmp_path / "l").exists()


@pytest.mark.further
def test_a_database_that_is_busy_is_there(empty_database):
    shutil.copy(empty_database, "mlflow.db")
    with contextlib.closing(sqlite3.connect("mlflow.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        assert check_store("new", "sqlite:///mlflow.db") is None
