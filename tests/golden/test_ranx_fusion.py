"""Fusions against ranx, of runs without ties: there both programs define every method and norm."""

from __future__ import annotations

import json
import lzma

import pytest
from golden.fused_runs import FILE

import rankeval as rk

STORED = json.loads(lzma.decompress(FILE.read_bytes()))
"""Made by `python tests/golden/fused_runs.py`; the key "program" has the versions."""


@pytest.mark.parametrize("key", STORED["cases"][0]["fused"])
def test_fused_scores_are_those_of_ranx(key):
    """Every document that a run retrieved, of runs that overlap in part."""
    method, _, norm = key.partition("/")
    options = {"rrf": {"k": STORED["k"]}, "weighted": {"weights": STORED["weights"]}}.get(method, {})
    for case in STORED["cases"]:
        run = rk.fuse(case["runs"], method, norm=norm or None, **options).to_frame()
        ours = {pair[:2]: pair[2] for pair in run.itertuples(index=False, name=None)}
        theirs = {
            (query, document): score
            for query, documents in case["fused"][key].items()
            for document, score in documents.items()
        }
        assert ours == pytest.approx(theirs, rel=1e-12, abs=1e-12)
