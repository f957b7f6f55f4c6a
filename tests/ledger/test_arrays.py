"""Arrays are kept under a name that only their content gives, compressed where that saves room."""

from __future__ import annotations

import hashlib
import zlib

import numpy as np
import pytest

from rankeval.ledger.arrays import as_file, from_file, pack

RNG = np.random.default_rng(5)
HASHES = RNG.integers(0, 2**63, 400_000).astype(np.uint64)
LABELS = RNG.integers(0, 3, 400_000).astype(np.float64)


@pytest.mark.parametrize(
    ("arrays", "shrinks"),
    [({"a": HASHES}, False), ({"a": LABELS}, True), ({"a": HASHES[:3]}, None), ({"a": LABELS[:0]}, None)],
)
def test_only_what_shrinks_is_compressed(arrays, shrinks):
    """A million hashes took seconds, and as many bytes as before; the name and what is read are the same."""
    data = pack(arrays)
    name, content = as_file("signatures", arrays)
    assert name == f"signatures/{hashlib.sha256(data).hexdigest()}.bin"
    assert zlib.decompress(content) == data
    assert from_file(name, content)["a"].tolist() == arrays["a"].tolist()
    if shrinks is not None:
        assert (len(content) < 0.2 * len(data)) == shrinks
        assert len(content) < 1.001 * len(data)


def test_a_file_of_which_a_half_shrinks_is_compressed():
    assert len(as_file("rankings", {"a": HASHES, "b": LABELS})[1]) < 0.7 * 16 * len(LABELS)
