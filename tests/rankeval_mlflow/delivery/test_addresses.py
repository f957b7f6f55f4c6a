"""No secret of an address is kept or shown, and whoever sends finds it again."""

from __future__ import annotations

import time

import mlflow
import pytest

from rankeval_mlflow.delivery.addresses import bare, complete, hidden, where_to_look

SECRETS = [
    ("http://me:s3cret@host:5000/a", "http://host:5000/a"),
    ("https://t0ken@host/a", "https://host/a"),
    ("http://me:p@s3cret@host", "http://host"),
    ("http://me:s3/cret:s3cret@host", "http://***"),
    ("http://me:1/s3cret@host", "http://***"),
    ("postgresql://me:s3cret@host/db", "postgresql://me@host/db"),
    ("postgresql://me:s3cret#x@host/db", "postgresql://***"),
    ("postgresql://me:1/s3cret@host/db", "postgresql://***"),
    ("postgresql://me:x?s3cret@host/db", "postgresql://***"),
    ("postgresql://me:x s3cret's@host/db", "postgresql://me@host/db"),
    ("postgresql://me:s3cret@host/db?a=b@c", "postgresql://me@host/db?a=b@c"),
    ("postgresql+psycopg://me@/db?host=/run&password=s3cret", "postgresql+psycopg://me@/db?host=/run"),
    ("http://host/?token=s3cret", "http://host/"),
    ("http://host/?token=s3cret&o=1", "http://host/?o=1"),
    ("http://host/?o=1&API_KEY=s3cret&o=2", "http://host/?o=1&o=2"),
    ("http://host/?s3cret", "http://host/"),
    ("http://host/#token=s3cret", "http://host/"),
    ("http://host/#/runs/1?jwt=s3cret", "http://host/#/runs/1"),
    ("mssql://?odbc_connect=PWD%3Ds3cret", "mssql://"),
    ("mysql://host/db?ssl_key=a.pem&auth=s3cret", "mysql://host/db?ssl_key=a.pem"),
    *(
        (f"http://host/?{name}=s3cret", "http://host/")
        for name in ("auth", "pw", "pass", "jwt", "api-key", "authorization", "code", "x-api-token", "anything")
    ),
]


def test_secrets_are_left_out_in_messages_and_on_disk():
    for uri, shown in SECRETS:
        assert bare(uri) == bare(bare(uri)) == shown, uri
        assert "s3cret" not in bare(uri) + where_to_look(uri, "0", "r"), uri
        assert hidden(f"cannot reach {uri} today", [uri]) == f"cannot reach {shown} today", uri
        if " " not in uri:
            assert hidden(f"cannot reach {uri} today") == f"cannot reach {shown} today", uri


def test_a_link_logs_nobody_in():
    """A browser would send a masked password to the server."""
    for login in ("bob:s3cret@", "t0ken@", "bob@", ""):
        link = where_to_look(f"https://{login}host:5000/a/", "7", "r")
        assert link == "https://host:5000/a/#/experiments/7/runs/r?workflowType=machine_learning", login


def test_a_text_of_any_length_is_searched_at_once():
    """A message may repeat what it was given: a search that is quadratic in that took minutes."""
    for text in ("x" * 100_000, "a-" * 50_000, "?" + "token" * 20_000, "http://" + "a:" * 50_000, "x@" * 50_000):
        began = time.process_time()
        assert hidden(text, [text[:1000]])
        assert bare(text)
        assert time.process_time() - began < 1


@pytest.mark.parametrize(
    "uri",
    [
        "sqlite:////tmp/mlflow.db",
        "https://host:5000/a?o=1#/experiments/0/runs/r?workflowType=machine_learning",
        "http://[::1]:5000/a",
        "sqlite:////tmp/a@b:c@d.db",
        "postgresql://host:5432/db?application_name=a@b",
        "file:///tmp/mlruns",
        "",
        "databricks://profile",
        "postgresql://me@host/db",
        "./x@y",
    ],
)
def test_an_address_without_secrets_stays_as_it_is(uri):
    assert bare(uri) == uri


def test_a_secret_is_hidden_wherever_another_library_puts_it():
    uri = "postgresql://me:p%40ss@host/db"
    said = hidden("connection to p@ss (p%40ss) failed: http://you:other@x/?token=abc", [uri, None])
    assert said == "connection to *** (***) failed: http://x/"


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
