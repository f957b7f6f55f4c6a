"""Try a host: a record as awkward as they come goes through it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pandas as pd

from rankeval._arguments import explained
from rankeval._checks import require
from rankeval.errors import CheckFailed, InvalidInput
from rankeval.shelf.folder import packed
from rankeval.shelf.record import Record
from rankeval.tracking import Host, TrackedRun

_HOSTILE = "../<script>alert(1)</script> | \N{RIGHT-TO-LEFT OVERRIDE}" + "x" * 300


@explained
def check_host(host: Host, uri: str | None = None) -> None:
    """Push an awkward record to a host, twice, and then another one under its name.

    The record is of a kind that no host knows. It has a name as a stranger may choose it, metrics
    that are nan and infinite, two children, and a part of another unknown kind.

    Parameters
    ----------
    host : Host
        The host, with a ``push``.
    uri : str, optional
        The address of an empty store; by default the host's own.

    Raises
    ------
    InvalidInput
        If the host has no ``push``.
    CheckFailed
        If the host changes the record, returns no run, refuses to store the same record again, or
        stores another one in its place.

    Examples
    --------
    >>> import tempfile
    >>> from rankeval.shelf.files import HOST
    >>> check_host(HOST, tempfile.mkdtemp())
    """
    require(host.push is not None, "host", host.title, "a host with a push")
    record = _record()
    before = packed(record)
    first, again = (_pushed(host, record, uri) for _ in range(2))
    _check(packed(record) == before, "the record is not as it was before it was pushed")
    _check(
        first.where.strip() and again.where.strip(), "a TrackedRun does not say how to look at it"
    )
    other = replace(record, metrics={**record.metrics, "seconds": 3.0})
    try:
        there = _pushed(host, other, uri)
    except InvalidInput:
        return
    _check(there.run_id != first.run_id, "another record replaced the first one")


def _record() -> Record:
    child = Record("unknown-child", _HOSTILE, metrics={"a b@c": math.inf})
    rows = pd.DataFrame({"qid": ["1", "<b>"], "score": [math.nan, 1.0]})
    part = Record("unknown-part", "part", tables={"rows": rows})
    params: dict[str, str | float | None] = {_HOSTILE: "x" * 10_000, "number": 1.5, "nothing": None}
    metrics = {"seconds": 2.0, "undefined": math.nan, "difference/@1": -math.inf}
    series = {"loss": {0: 1.0, 7: math.nan}}
    files, facts = {"a/b.bin": bytes(range(256))}, {"list": [1, "two", None]}
    return Record(
        kind="unknown-kind",
        name=_HOSTILE,
        headline=_HOSTILE,
        params=params,
        metrics=metrics,
        series=series,
        files=files,
        notes=(_HOSTILE,),
        facts=facts,
        tags={"tag": _HOSTILE},
        parts={"part": part},
        children={"first": child, "FIRST": child},
    )


def _pushed(host: Host, record: Record, uri: str | None) -> TrackedRun:
    push: Any = host.push
    run = push(record, name="check", experiment="rankeval check", uri=uri)
    _check(isinstance(run, TrackedRun) and run.run_id, "push returns no TrackedRun with an id")
    return run  # type: ignore[no-any-return] # it was checked


def _check(holds: object, problem: str) -> None:
    if not holds:
        raise CheckFailed(problem)
