"""Arrays of numbers as bytes: a line of JSON with name, dtype and length of each, then their little-endian values.

The bytes are hashed as they are and kept compressed, so that the name of a file does not depend on zlib's version.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def pack(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return one-dimensional arrays of numbers or booleans as bytes; equal arrays give equal bytes."""
    little = {
        name: np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")) for name, array in sorted(arrays.items())
    }
    header = [[name, array.dtype.str, len(array)] for name, array in little.items()]
    return b"\n".join([json.dumps(header).encode(), b"".join(array.tobytes() for array in little.values())])


def unpack(data: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays that `pack` packed."""
    header, _, values = data.partition(b"\n")
    arrays, start = {}, 0
    for name, dtype, length in json.loads(header):
        kind = np.dtype(dtype)
        if kind.kind not in "biuf":
            raise ValueError(f"the array {name!r} has the dtype {dtype}, which is no number")
        # A copy, since an array on top of bytes is read-only.
        arrays[name] = np.frombuffer(values, dtype=kind, count=length, offset=start).copy()
        start += length * kind.itemsize
    return arrays


def part_of(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    """Return the arrays whose names begin with a prefix, named without it."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
