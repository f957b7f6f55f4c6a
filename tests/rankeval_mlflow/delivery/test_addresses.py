"""No secret of an address is kept or shown, and whoever sends finds it again."""

from __future__ import annotations

import mlflow
import pytest

from rankeval_mlflow.delivery.addresses import bare, complete, hidden, masked, where_to_look

SECRETS = [
    ("http://me:s3cret@host:5000/a", "http://me:***@host:5000/a", "http://host:5000/a"),
    ("https://t0ken@host/a", "https://***@host/a", "https://host/a"),
    ("postgresql://me:s3cret@host/db", "postgresql://me:***@host/db", "postgresql://me@host/db"),
    ("postgresql+psycopg://me@/db?host=/run&password=s3cret", None, "postgresql+psycopg://me@/db?host=/run"),
    ("http://host/?token=s3cret", "http://host/?token=***", "http://host/"),
    ("http://host/?token=s3cret&x=1", "http://host/?token=***&x=1", "http://host/?x=1"),
    ("http://host/?x=1&API_KEY=s3cret&y=2", "http://host/?x=1&API_KEY=***&y=2", "http://host/?x=1&y=2"),
    ("mssql://?odbc_connect=PWD%3Ds3cret", "mssql://?odbc_connect=***", "mssql://"),
]


@pytest.mark.parametrize(("uri", "shown", "kept"), SECRETS)
def test_secrets_are_masked_in_messages_and_left_out_on_disk(uri, shown, kept):
    assert shown is None or masked(uri) == shown
    assert bare(uri) == kept
    assert "s3cret" not in masked(uri) + bare(uri) + where_to_look(uri, "0", "r")
    assert masked(f"cannot reach {uri} today") == f"cannot reach {masked(uri)} today"


@pytest.mark.parametrize(
    "uri",
    [
        "sqlite:////tmp/mlflow.db",
        "http://host:5000/a?x=1&y=2",
        "databricks://profile",
        "postgresql://me@host/db",
        "./x@y",
    ],
)
def test_an_address_without_secrets_stays_as_it_is(uri):
    assert masked(uri) == bare(uri) == uri


def test_a_secret_is_hidden_wherever_another_library_puts_it():
    uri = "postgresql://me:p%40ss@host/db"
    said = hidden("connection to p@ss (p%40ss) failed: http://you:other@x/?token=abc", [uri, None])
    assert said == "connection to *** (***) failed: http://you:***@x/?token=***"


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
