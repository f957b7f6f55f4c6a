"""No secret of an address is shown, in whatever form it was written."""

from __future__ import annotations

import time

import pytest

import rankeval as rk
from rankeval import errors
from rankeval._checks import shown
from rankeval._secrets import bare, hidden, masked, shareable, without_secrets
from rankeval.tracking import LoggedData

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
    ("postgresql://me:s3cret@host/db?service=b@c", "postgresql://me@host/db?service=b@c"),
    ("postgresql://me:s3cret@host:port/db", "postgresql://me@host:port/db"),
    ("postgresql://:s3cret@host/db", "postgresql://host/db"),
    ("postgresql://me:1?s3cret@host/db", "postgresql://***"),
    ("mysql+pymysql://me:s3cret@[::1]:3306/db?PASSWD=s3cret", "mysql+pymysql://me@[::1]:3306/db"),
    ("postgresql://me@host/db?p%61ssword=s3cret", "postgresql://me@host/db"),
    ("postgresql://me@host/db?sslpassword=s3cret&sslmode=require", "postgresql://me@host/db?sslmode=require"),
    ("postgresql://me@host/db?options=-c%20x%3Ds3cret&unknown=s3cret", "postgresql://me@host/db"),
    ("postgresql:///?dbname=host%3Dh%20password%3Ds3cret", "postgresql:///"),
    ("postgresql:///?dbname=postgresql%3A//me%3As3cret@h", "postgresql:///"),
    ("postgresql:///host=h%20password=s3cret", "postgresql://***"),
    ("postgresql+psycopg://me@/db?host=/run&password=s3cret", "postgresql+psycopg://me@/db?host=/run"),
    ("http://host/?token=s3cret", "http://host/"),
    ("http://host/?token=s3cret&o=1", "http://host/?o=1"),
    ("http://host/?o=1&API_KEY=s3cret&o=2", "http://host/?o=1&o=2"),
    ("http://host/?s3cret", "http://host/"),
    ("http://host/#token=s3cret", "http://host/"),
    ("http://host/page.html#s3cret", "http://host/page.html"),
    ("http://host/page.html#token=s3cret", "http://host/page.html"),
    ("http://host/#/runs/1?jwt=s3cret", "http://host/#/runs/1"),
    ("mssql://?odbc_connect=PWD%3Ds3cret", "mssql://"),
    ("mysql://host/db?ssl_key=a.pem&auth=s3cret", "mysql://host/db?ssl_key=a.pem"),
    *(
        (f"http://host/?{name}=s3cret", "http://host/")
        for name in ("auth", "pw", "pass", "jwt", "api-key", "authorization", "code", "x-api-token", "anything")
    ),
]


def test_secrets_are_left_out_in_messages_and_on_disk():
    for uri, said in SECRETS:
        assert bare(uri) == bare(bare(uri)) == said, uri
        assert "s3cret" not in bare(uri) + masked(uri), uri
        assert masked(masked(uri)) == masked(uri), uri
        assert bare(masked(uri)) == said, uri
        assert hidden(f"cannot reach {uri} today", [uri]) == f"cannot reach {said} today", uri
        if " " not in uri:
            assert hidden(f"cannot reach {uri} today") == f"cannot reach {said} today", uri


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
        "https://host/stable/modules/impute.html#estimators-that-handle-nan-values",
        "postgresql://me@host/db",
        "./x@y",
    ],
)
def test_an_address_without_secrets_stays_as_it_is(uri):
    assert bare(uri) == masked(uri) == without_secrets(uri) == uri


def test_a_secret_is_hidden_wherever_another_library_puts_it():
    uri = "postgresql://me:p%40ss@host/db"
    said = hidden("connection to p@ss (p%40ss) failed: http://you:other@x/?token=abc", [uri, None])
    assert said == "connection to *** (***) failed: http://x/"


def test_a_masked_address_says_where_a_secret_was():
    for uri, said in (
        (
            "postgresql://me:s3cret@host/db?sslmode=require&token=s3cret",
            "postgresql://me:***@host/db?sslmode=require&token=***",
        ),
        ("https://t0ken@host/?s3cret", "https://***@host/?***"),
        ("postgresql://:s3cret@host", "postgresql://:***@host"),
        ("postgresql://me:s3/cret@host", "postgresql://***"),
    ):
        assert masked(uri) == without_secrets(uri) == said, uri


def test_no_message_of_ours_has_a_secret_of_an_address():
    for uri, _ in SECRETS:
        if " " in uri:
            continue
        fields = errors.InvalidInput(f"reads {uri}", argument="a", where=uri, remedy=f"see {uri}")
        with pytest.warns(errors.RankevalWarning) as caught:
            errors.warn(f"reads {uri}")
        for text in (
            str(fields),
            str(fields.having(found=uri)),
            str(caught[0].message),
            shown([uri]),
            shown({"x" * 60: uri}),
        ):
            assert "s3cret" not in text, uri


def test_a_cause_that_says_a_secret_is_not_shown():
    inner = ValueError("invalid literal for int(): 's3cret'")
    outer = RuntimeError("the driver failed")
    outer.__cause__ = inner
    assert shareable(outer, "postgresql://me:s3cret@host") is None
    assert shareable(outer, "postgresql://me:other@host") is outer


@pytest.mark.parametrize("data", ["data", "name"])
def test_no_record_has_a_secret_of_the_address_of_its_data(data, tmp_path):
    """Neither in an evaluation nor in a comparison, where the data set is given in another way."""
    uri = "https://me:s3cret@host/dev.parquet?token=s3cret"
    named = LoggedData("shop", "0" * 64, "dev", 4, 2, uri) if data == "data" else f"shop of {uri}"
    ev = rk.evaluate([1, 0, 1, 0], [0.4, 0.3, 0.2, 0.1], qid=["a", "a", "b", "b"], measures="RR", name="one")
    rk.save(ev, tmp_path / "evaluation", data=named)
    rk.save(rk.compare({"one": ev, "two": ev}), tmp_path / "comparison", data=named)
    for path in tmp_path.rglob("record.json"):
        assert "host/dev.parquet" in path.read_text()
        assert "s3cret" not in path.read_text()
