"""Arrays as JSON: the dtype, and the zlib-compressed bytes in base64. Little-endian, so that all machines agree."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def encode_array(array: NDArray[Any]) -> dict[str, str]:
    """Return an array of numbers or booleans as JSON can hold it."""
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return {"dtype": little.dtype.str, "zlib": base64.b64encode(zlib.compress(little.tobytes(), 1)).decode()}


def decode_array(encoded: Mapping[str, str]) -> NDArray[Any]:
    """Return the array that `encode_array` encoded."""
    # A copy, since an array on top of bytes is read-only.
    return np.frombuffer(zlib.decompress(base64.b64decode(encoded["zlib"])), dtype=encoded["dtype"]).copy()
