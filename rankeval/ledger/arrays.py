"""Arrays of numbers as bytes: a line of JSON with name, dtype and length of each, then their little-endian values.

The bytes are hashed as they are and kept compressed, so that the name of a file does not depend on
zlib's version.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SAMPLE, _SAMPLES, _WORTH, _LARGE = 2**14, 64, 0.9, 2**22

_NAME = re.compile(r"(signatures|rankings)/[0-9a-f]{64}\.bin")


def pack(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return one-dimensional arrays of numbers or booleans as bytes; equal arrays give equal bytes."""
    little = {
        name: np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        for name, array in sorted(arrays.items())
    }
    header = [[name, array.dtype.str, len(array)] for name, array in little.items()]
    return b"".join(
        [json.dumps(header).encode(), b"\n", *(array.data for array in little.values())]
    )


def unpack(data: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays that `pack` packed."""
    end = data.index(b"\n")
    arrays, start = {}, end + 1
    for name, dtype, length in json.loads(data[:end]):
        kind = np.dtype(dtype)
        if kind.kind not in "biuf":
            raise ValueError(f"the array {name!r} has the dtype {dtype}, which is not numeric")
        # A copy, since an array on top of bytes is read-only.
        arrays[name] = np.frombuffer(data, dtype=kind, count=length, offset=start).copy()
        start += length * kind.itemsize
    return arrays


def as_file(kind: str, arrays: Mapping[str, NDArray[Any]]) -> tuple[str, bytes]:
    """Return the name and the content of the file that keeps arrays."""
    data = pack(arrays)
    return _name_of(kind, data), zlib.compress(data, _level(data))


def _level(data: bytes) -> int:
    """Choose how hard to compress; samples tell, all of a small array.

    A million hashes or scores take seconds, and as many bytes as before; ids of many documents take
    seven times as long at the usual level as at the lowest, for 6 % of their bytes.
    """
    step = max(_SAMPLE, len(data) // _SAMPLES)
    some = b"".join(data[start : start + _SAMPLE] for start in range(0, len(data), step))
    if len(zlib.compress(some, 1)) >= _WORTH * len(some):
        return 0
    return 1 if len(data) > _LARGE else 6


def from_file(name: str, content: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file; raises ValueError if it was altered."""
    return unpack(unaltered(name, content))


def unaltered(name: str, content: bytes) -> bytes:
    """Return what a file holds; raises ValueError if that is not what its name says."""
    reader = zlib.decompressobj()  # zlib.decompress would ignore what stands behind the end
    try:
        data = reader.decompress(content)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if not reader.eof:
        raise ValueError("it is cut off")
    if reader.unused_data:
        raise ValueError("there is more behind its end")
    if _name_of(name.partition("/")[0], data) != name:
        raise ValueError("its content does not fit its name")
    return data


def named_files(body: Any) -> Iterator[str]:
    """Yield the names of files that a body mentions, at whatever depth."""
    if isinstance(body, str):
        if _NAME.fullmatch(body):
            yield body
    elif isinstance(body, Mapping):
        for value in body.values():
            yield from named_files(value)
    elif isinstance(body, (list, tuple)):
        for value in body:
            yield from named_files(value)


def part_of(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    """Return the arrays whose names begin with a prefix, named without it."""
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


def _name_of(kind: str, data: bytes) -> str:
    return f"{kind}/{hashlib.sha256(data).hexdigest()}.bin"
