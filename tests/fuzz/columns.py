"""Random columns of every make: what is handed over, and what it says in plain Python, or that it says nothing.

A column is drawn as a list of Python numbers or ids and then made into an array, a Series, an Arrow column and so on.
What a make cannot hold is rounded here as that make does it, so that the plain list says what was handed over.
"""

from __future__ import annotations

import array
import datetime as dt
import decimal
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa


@dataclass
class Column:
    """A column as it is handed over.

    Attributes
    ----------
    given : object
        The array, Series, list ...
    plain : list
        What it says, in Python's own numbers and texts.
    trouble : bool
        Whether it must be refused, whatever stands beside it.
    mixed : bool
        Whether that is so since ids of two types have no order: what only parts the queries takes them.
    """

    given: Any
    plain: list
    trouble: bool = False
    mixed: bool = False

    @property
    def labels(self):
        """The labels of its index as a list, None without one."""
        return self.given.index.tolist() if isinstance(self.given, pd.Series) else None


def _numpy(kind):
    def make(values, _):
        whole = all(float(value).is_integer() for value in values)
        made = np.array(values, dtype=kind if whole or np.dtype(kind).kind == "f" else np.float64)
        return made, made.astype(np.float64).tolist()

    return make


def _series(kind):
    def make(values, index):
        whole = all(float(value).is_integer() for value in values)
        made = pd.Series(values, index=index, dtype=kind if whole or "loat" in kind else "Float64")
        return made, [float(value) for value in made.tolist()]

    return make


def _strided(values, _):
    wide = np.full(2 * len(values), 7.0)
    wide[::2] = values
    return wide[::2], list(values)


def _masked_nothing(values, _):
    return np.ma.array(values, mask=np.zeros(len(values), dtype=bool), dtype=float), list(values)


NUMBERS = {
    "list": lambda values, _: (list(values), list(values)),
    "tuple": lambda values, _: (tuple(values), list(values)),
    "numpy scalars": lambda values, _: ([np.float32(x) for x in values], [float(np.float32(x)) for x in values]),
    "Decimals": lambda values, _: ([decimal.Decimal(repr(value)) for value in values], list(values)),
    "memoryview": lambda values, _: (memoryview(array.array("d", values)), list(values)),
    "objects": lambda values, _: (np.array([*values, None], dtype=object)[:-1], list(values)),
    "strided": _strided,
    "nothing masked": _masked_nothing,
    "polars": lambda values, _: (pl.Series([float(value) for value in values], dtype=pl.Float64), list(values)),
    "Arrow": lambda values, _: (pa.array([float(value) for value in values], pa.float64()), list(values)),
    "Arrow chunks": lambda values, _: (
        pa.chunked_array([values[:1], values[1:]], pa.float64()),
        list(values),
    ),
    "Arrow slice": lambda values, _: (pa.array([9.0, *values], pa.float64())[1:], list(values)),
    "Arrow categories": lambda values, _: (pa.array(values, pa.float64()).dictionary_encode(), list(values)),
    "Series": lambda values, index: (pd.Series(values, index=index, dtype=float), list(values)),
    "Series of objects": lambda values, index: (pd.Series(values, index=index, dtype=object), list(values)),
    "categories": lambda values, index: (pd.Series(values, index=index, dtype=float).astype("category"), list(values)),
    **{np.dtype(kind).str: _numpy(kind) for kind in ("i1", "u1", "<i4", ">i4", "i8", "u8", "f2", "f4", ">f8", "f8")},
    **{
        kind: _series(kind)
        for kind in ("Int64", "UInt64", "Float64", "Float32", "int64[pyarrow]", "double[pyarrow]", "int32")
    },
}

IDS = {
    "list": lambda values, _: list(values),
    "tuple": lambda values, _: tuple(values),
    "array": lambda values, _: np.array(values),
    "objects": lambda values, _: np.array([*values, None], dtype=object)[:-1],
    "strided": lambda values, _: np.repeat(np.array(values), 2)[::2],
    "polars": lambda values, _: pl.Series(values),
    "Arrow": lambda values, _: pa.array(values),
    "Arrow chunks": lambda values, _: pa.chunked_array([pa.array(values)[:1], pa.array(values)[1:]]),
    "Arrow categories": lambda values, _: pa.array(values).dictionary_encode(),
    "Series": lambda values, index: pd.Series(values, index=index),
    "Series of objects": lambda values, index: pd.Series(values, index=index, dtype=object),
    "categories": lambda values, index: pd.Series(values, index=index).astype("category"),
    "pandas' own": lambda values, index: pd.Series(values, index=index).convert_dtypes(),
    "pandas on Arrow": lambda values, index: pd.Series(values, index=index).convert_dtypes(dtype_backend="pyarrow"),
    "an Index": lambda values, _: pd.Index(values),
}


def _with(values, place, odd):
    return [*values[:place], odd, *values[place + 1 :]]


def _masked(values, place, _):
    return np.ma.array(values, mask=[row == place for row in range(len(values))])


NO_NUMBERS = {
    "None": lambda values, place, _: _with(values, place, None),
    "NaN": lambda values, place, _: _with(values, place, math.nan),
    "infinity": lambda values, place, _: np.array(_with(values, place, -math.inf)),
    "digits": lambda values, place, _: _with(values, place, "1"),
    "all digits": lambda values, _p, _i: [str(value) for value in values],
    "complex": lambda values, _p, _i: np.array(values, dtype=complex),
    "a date": lambda values, place, _: _with(values, place, dt.date(2020, 1, 1)),
    "a list": lambda values, place, _: _with(values, place, [1, 2]),
    "masked": _masked,
    "beyond all": lambda values, place, _: _with(values, place, 10**400),
    "rounded": lambda values, place, _: _with([*map(float, values)], place, 2**60 + 1),
    "Decimal": lambda values, place, _: _with(values, place, decimal.Decimal("1e999")),
    "NA": lambda values, place, index: pd.Series(_with(values, place, pd.NA), index=index, dtype="Float64"),
    "null": lambda values, place, _: pa.array(_with([*map(float, values)], place, None)),
    "polars null": lambda values, place, _: pl.Series(_with([*map(float, values)], place, None), dtype=pl.Float64),
    "a matrix": lambda values, _p, _i: np.array([values, values]),
    "a number": lambda _v, _p, _i: 3,
    "a text": lambda _v, _p, _i: "abc",
    "nothing at all": lambda _v, _p, _i: object(),
}

NO_IDS = {
    "None": lambda values, place, _: _with(values, place, None),
    "NaN": lambda values, place, _: _with(values, place, math.nan),
    "masked": _masked,
    "another type": lambda values, place, _: _with(values, place, "7" if isinstance(values[0], int) else 7),
    "a tuple": lambda values, place, _: _with(values, place, (1, 2)),
    "NA": lambda values, place, index: pd.Series(_with(values, place, pd.NA), index=index, dtype=object),
    "null": lambda values, place, _: pa.array(_with(values, place, None)),
    "NaT": lambda values, place, _: pd.Series(_with(values, place, pd.NaT), dtype=object).tolist(),
    "a matrix": lambda values, _p, _i: np.array([values, values]),
    "a set": lambda values, _p, _i: set(values) | {object()},
    "nothing at all": lambda _v, _p, _i: object(),
}


def draw(rng, makes, troubles, values, index, *, troubled):
    """Return a column of some make; in trouble, if that is asked for and there are rows."""
    if troubled and values:
        alone = {"another type", "rounded"} if len(values) == 1 else set()  # which are none by themselves
        name = rng.choice(sorted(set(troubles) - alone))
        given = troubles[name](list(values), rng.randrange(len(values)), index)
        return Column(given, list(values), trouble=True, mixed=name == "another type")
    made = makes[rng.choice(sorted(makes))](list(values), index)
    return Column(*made) if isinstance(made, tuple) and makes is NUMBERS else Column(made, list(values))
