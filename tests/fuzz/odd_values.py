"""Values that no argument expects, by kind: each is made anew for each call, since a call may change it.

Paths stay inside the folder of the call: what writes files may be handed any of them.
"""

from __future__ import annotations

import datetime as dt
import decimal
import fractions
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa


def _deep() -> list[Any]:
    deep: list[Any] = []
    for _ in range(2000):
        deep = [deep]
    return deep


class Odd:
    """An object of a class that nobody knows; the class takes whatever it is called with."""

    def __init__(self, *_: object, **__: object) -> None:
        pass


VALUES: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "True": lambda: True,
    "NaN": lambda: math.nan,
    "infinity": lambda: -math.inf,
    "zero": lambda: 0,
    "negative": lambda: -1,
    "negative fraction": lambda: -0.5,
    "beyond 64 bits": lambda: 2**63,
    "beyond floats": lambda: 10**400,
    "greatest float": lambda: 1e308,
    "complex": lambda: 1j,
    "Decimal": lambda: decimal.Decimal("sNaN"),
    "Fraction": lambda: fractions.Fraction(1, 3),
    "NumPy scalar": lambda: np.float32(7.5),
    "array without axes": lambda: np.array(3),
    "NA": lambda: pd.NA,
    "NaT": lambda: pd.NaT,
    "date": lambda: dt.datetime(2020, 1, 1, tzinfo=dt.UTC),
    "empty text": lambda: "",
    "text": lambda: "none such",
    "text of spaces": lambda: " \t",
    "text with NUL": lambda: "a\0b",
    "text with a surrogate": lambda: "\ud800",
    "text with escapes": lambda: "\x1b[31m%s {0} \n<b>\u202e",
    "long text": lambda: "x" * 5000,
    "bytes": lambda: b"\xff\0",
    "path": lambda: Path("no/such"),
    "path of a folder": Path,
    "path with NUL": lambda: Path("a\0b"),
    "empty list": list,
    "empty dict": dict,
    "tuple of unlike": lambda: (1, "a", None),
    "nested list": lambda: [[1, [2]], [None, {"a": []}]],
    "nested dict": lambda: {"a": {"b": {"c": [1, None]}}, None: 1},
    "deep list": _deep,
    "set": lambda: {1.5, "a"},
    "generator": lambda: (one for one in ("a", 1)),
    "object": Odd,
    "class": lambda: Odd,
    "function": lambda: lambda *_, **__: None,
    "empty frame": pd.DataFrame,
    "frame": lambda: pd.DataFrame({"a": [1, None, "x"], 2: [[], {}, "y"]}),
    "frame of equal columns": lambda: pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]),
    "polars frame": lambda: pl.DataFrame({"a": [1, None]}),
    "Arrow table": lambda: pa.table({"a": pa.array([[1], None])}),
    "Series": lambda: pd.Series([1.0, math.nan], index=[0, 0]),
    "Series of texts": lambda: pd.Series(["a", pd.NA], dtype="string"),
    "empty array": lambda: np.array([]),
    "array of bool": lambda: np.array([True, False]),
    "array of int": lambda: np.array([-(2**63), 5]),
    "array of float": lambda: np.array([math.nan, math.inf, 0.5]),
    "array of complex": lambda: np.array([1j, 2]),
    "array of texts": lambda: np.array(["a", "\0"]),
    "array of bytes": lambda: np.array([b"a", b"\xff"]),
    "array of objects": lambda: np.array([None, [1], "a"], dtype=object),
    "array of dates": lambda: np.array(["2020-01-01", "NaT"], dtype="datetime64[s]"),
    "array of records": lambda: np.array([(1, "a")], dtype=[("n", "i4"), ("t", "U1")]),
    "masked array": lambda: np.ma.array([1.0, 2.0], mask=[True, False]),
    "array of three axes": lambda: np.zeros((2, 1, 2)),
}

WORDS: dict[str, str] = {
    "empty": "",
    "space": " ",
    "word": "none such",
    "NUL": "a\0b",
    "a byte that is no text": "\udcff",
    "escapes": "\x1b[31m%s {0} \n<b>\u202e",
    "negative": "-1",
    "fraction": "0.5",
    "NaN": "nan",
    "infinity": "inf",
    "beyond floats": "9" * 400,
    "beyond 64 bits": str(2**63),
    "more digits than Python reads": "9" * 5000,
    "long": "x" * 5000,
    "a folder": ".",
    "no folder": "no/such",
    "list": "[1, [",
    "object": '{"a": NaN}',
    "name and nothing": "a=",
    "nothing and value": "=b",
    "pattern": "a(b[*",
    "address": "odd://user:secret@host/x",
    "comma": ",",
    "option": "--",
    "dash": "-",
}
"""Words of a command line."""
