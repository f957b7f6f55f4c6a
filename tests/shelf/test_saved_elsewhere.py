"""What other versions saved is loaded: saved.tar.xz has a folder of each kind, from two environments.

They are Python 3.11 with the oldest pandas and pyarrow that are promised, and with those of November 2026. The part
`oldest` of ``.ci/run --full`` runs these tests too, so both directions are tried. The file is made anew, where the
format of the folder changes, by ``python -m shelf.test_saved_elsewhere FOLDER`` in both environments, and `tar`.
"""

from __future__ import annotations

import json
import math
import sys
import tarfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from shelf.every_kind import results

import rankeval as rk
from rankeval.shelf.kinds import KINDS

SAVED = Path(__file__).with_name("saved.tar.xz")


def plain(value: Any) -> Any:
    """Return a cell as JSON has it."""
    value = value.item() if hasattr(value, "item") else value
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return None
    return value if isinstance(value, str | int | float | bool | list) else str(value)


def values(record: rk.Record) -> dict[str, Any]:
    """Return what a record says, with its tables; of its files only the names."""
    tables = {name: record.tables[name].reset_index() for name in record.tables}
    told = {name: getattr(record, name) for name in ("kind", "name", "headline", "notes", "text", "facts", "tags")}
    numbers = {name: {key: repr(float(each)) for key, each in record.metrics.items()} for name in ("metrics",)}
    series = {name: {step: repr(float(each)) for step, each in by.items()} for name, by in record.series.items()}
    rows = {
        name: [[*map(str, frame)], *([*map(plain, row)] for row in frame.itertuples(index=False))]
        for name, frame in tables.items()
    }
    parts = {name: values(part) for name, part in {**record.parts, **record.children}.items()}
    found = {**told, **numbers, "params": dict(record.params), "series": series, "tables": rows, "parts": parts}
    return json.loads(json.dumps({**found, "files": sorted(record.files)}))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Unpack the folders."""
    folder = tmp_path_factory.mktemp("saved")
    with tarfile.open(SAVED) as packed:
        packed.extractall(folder, filter="data")
    return folder


def numbers_of(told: dict[str, Any]) -> dict[str, Any]:
    """Return what no later version words anew."""
    parts = {name: numbers_of(part) for name, part in told["parts"].items()}
    return {**{name: told[name] for name in ("kind", "metrics", "series", "tables", "files")}, "parts": parts}


def close(one: Any, other: Any) -> bool:
    """Return whether two values agree; numbers to nine places, as intervals of another SciPy do."""
    if isinstance(one, dict) and isinstance(other, dict):
        return [*one] == [*other] and all(close(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(close, one, other))
    try:
        return one == other or float(one) == pytest.approx(float(other), rel=1e-9, abs=1e-9, nan_ok=True)
    except (TypeError, ValueError):
        return False


@pytest.mark.parametrize("where", ["oldest", "newest"])
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_read_with_every_value_and_loaded(kind, where, saved):
    folder = saved / where / kind
    told = json.loads((saved / where / f"{kind}.json").read_text("utf-8"))
    assert values(rk.read_record(folder)) == told["values"]
    back = values(rk.load(folder).record(**told["options"]))
    assert close(numbers_of(back), numbers_of(told["values"]))


if __name__ == "__main__":
    into = Path(sys.argv[1])
    for title, (result, options) in results().items():
        if title in KINDS:
            rk.save(result, into / title, **options)
            told = {"options": options, "values": values(result.record(**options))}
            (into / f"{title}.json").write_text(json.dumps(told), "utf-8")
