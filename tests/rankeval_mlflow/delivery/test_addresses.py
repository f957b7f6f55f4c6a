"""No secret of an address is kept or shown, and whoever sends finds it again."""

from __future__ import annotations

import mlflow

from rankeval._secrets import bare
from rankeval_mlflow.delivery.addresses import where_to_look
from rankeval_mlflow.delivery.connection import complete


def test_a_link_logs_nobody_in():
    """A browser would send a masked password to the server."""
    for login in ("bob:s3cret@", "t0ken@", "bob@", ""):
        link = where_to_look(f"https://{login}host:5000/a/", "7", "r")
        assert link == "https://host:5000/a/#/experiments/7/runs/r?workflowType=machine_learning", login


def test_the_secret_comes_from_an_address_that_is_the_same_but_for_it(monkeypatch):
    kept = bare("http://me:s3cret@host:5000")
    assert complete(kept) == kept
    assert complete(kept, "http://me:new@host:5000") == "http://me:new@host:5000"
    assert complete(kept, "http://me:new@other:5000") == kept
    mlflow.set_tracking_uri("http://me:now@host:5000")
    assert complete(kept) == "http://me:now@host:5000"
    mlflow.set_tracking_uri("http://elsewhere")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://me:env@host:5000")
    assert complete(kept) == "http://me:env@host:5000"
