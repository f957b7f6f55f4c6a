"""The columns of MLflow's table of runs.

Of itself the table shows no metric. A view that was saved for all, which is a tag of the experiment, does: it stands in
the menu "Views" of the page, and `layout.VIEW_ADDRESS` opens it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

NAME = "Rankings"
MOST = 12
"""Measures that have a column. A tag of an experiment holds 5,000 characters."""

_LONGEST = 100
_OTHERS = ("params.`system`", "attributes.`Dataset`", "attributes.`Models`")


def with_measures(before: str | None, keys: Sequence[str], now_ms: int) -> str | None:
    """Return the saved view with columns for measures; None if it needs no change, or is not ours.

    Parameters
    ----------
    before : str, optional
        The present value of the tag.
    keys : sequence of str
        The metrics, the one that counts most first.
    now_ms : int
        The time.
    """
    wanted = [f"metrics.`{key}`" for key in keys if len(key) <= _LONGEST]
    try:
        held = _columns(before) if before else []
    except (ValueError, LookupError, TypeError):
        return None
    shown = [column for column in held if column.startswith("metrics.")]
    columns = [*dict.fromkeys([*shown, *wanted])][:MOST]
    if not wanted or columns == shown:
        return None
    others = [column for column in held if column not in shown] if held else _OTHERS
    state = json.dumps({"selectedColumns": [*columns, *others]})
    return json.dumps({"name": NAME, "createdAt": now_ms, "updatedAt": now_ms, "state": state})


def _columns(value: str) -> list[str]:
    state: dict[str, Any] = json.loads(json.loads(value)["state"])
    return [str(column) for column in state["selectedColumns"]]
