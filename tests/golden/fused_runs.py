"""Random runs without ties, and their fusions by ranx, in fused_runs.json.xz.

    pip install ranx && python tests/golden/fused_runs.py

The file says which versions made it. Every pair of a method and a norm that both programs have is in it.
"""

from __future__ import annotations

import json
import lzma
from importlib.metadata import version
from pathlib import Path
from random import Random
from typing import Any

FILE = Path(__file__).with_suffix(".json.xz")
BY_RANK = {"rrf": "rrf", "isr": "isr", "log_isr": "log_isr", "bordafuse": "bordafuse"}
BY_SCORE = {"combsum": "sum", "combmnz": "mnz", "combanz": "anz", "combmax": "max", "combmin": "min", "combmed": "med"}
NORMS = {"min-max": "min-max", "max": "max", "sum": "sum", "z-score": "zmuv", "rank": "rank", "borda": "borda"}
NORMS |= {"none": None}
WEIGHTS = [0.5, 0.3, 0.2]
K = 20


def drawn(seed: int) -> list[dict[str, dict[str, float]]]:
    """Return three runs of four queries, which retrieved 1 to 12 documents of 15."""
    # The only function of the module whose values are the same in every version.
    random = Random(seed).random  # noqa: S311 - no secret
    runs: list[dict[str, dict[str, float]]] = [{}, {}, {}]
    for query in ("q1", "q2", "q3", "q4"):
        for run in runs:
            by_chance = sorted((random(), f"d{number}") for number in range(15))
            retrieved = [document for _, document in by_chance[: 1 + int(12 * random())]]
            run[query] = {document: round(10 * random(), 6) for document in retrieved}
    return runs


def fused(runs: list[Any], method: str, norm: str | None, params: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Return what ranx makes of the runs."""
    from ranx import Run, fuse

    made = fuse([Run(run, name=str(place)) for place, run in enumerate(runs)], norm=norm, method=method, params=params)
    return {query: dict(documents) for query, documents in made.to_dict().items()}


def cases(runs: list[Any]) -> dict[str, Any]:
    """Return the fusions of some runs by our names of method and norm."""
    found = {
        f"{ours}/": fused(runs, theirs, None, {"k": K} if ours == "rrf" else {}) for ours, theirs in BY_RANK.items()
    }
    for norm, name in NORMS.items():
        for ours, theirs in BY_SCORE.items():
            found[f"{ours}/{norm}"] = fused(runs, theirs, name, {})
        found[f"weighted/{norm}"] = fused(runs, "wsum", name, {"weights": WEIGHTS})
    return found


if __name__ == "__main__":
    made = {"program": f"ranx {version('ranx')}, numba {version('numba')}", "k": K, "weights": WEIGHTS}
    made["cases"] = [{"runs": drawn(seed), "fused": cases(drawn(seed))} for seed in range(4)]
    FILE.write_bytes(lzma.compress(json.dumps(made).encode()))
