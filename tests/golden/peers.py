"""pytrec_eval in a process of its own, which is ended when no answer comes: version 0.5.11 has hung on tied scores.

`python peers.py` reads one input of JSON a line, and prints the values of each as one line.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

import pytest

SECONDS = 60.0


def pytrec_eval_values(
    inputs: Iterable[dict[str, Any]], *, seconds: float = SECONDS, hash_seed: str = "0"
) -> list[dict[str, dict[str, float]]]:
    """Return {query: {measure: value}} of each input, which has qrels, run, measures, level and judged_only.

    The seed of hashes decides the order in which it computes measures, so that each run asks for the same.
    """
    lines = [json.dumps(each) for each in inputs]
    try:
        done = subprocess.run(
            [sys.executable, __file__],
            input="".join(f"{line}\n" for line in lines),
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            timeout=seconds,
            capture_output=True,
            text=True,
            check=False,
        )
    except subprocess.TimeoutExpired as late:  # `run` has killed it by its id
        answered = (late.stdout or b"").count(b"\n")
        pytest.fail(f"pytrec_eval has not answered input {answered} in {seconds} s and was ended: {lines[answered]}")
    if done.returncode:
        answered = done.stdout.count("\n")
        pytest.fail(f"pytrec_eval ended with {done.returncode} at input {answered}: {done.stderr[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def _answer() -> None:
    """Answer each line of the input."""
    import pytrec_eval

    for line in sys.stdin:
        asked = json.loads(line)
        evaluator = pytrec_eval.RelevanceEvaluator(
            asked["qrels"],
            set(asked["measures"]),
            relevance_level=asked["level"],
            judged_docs_only_flag=asked["judged_only"],
        )
        sys.stdout.write(json.dumps(evaluator.evaluate(asked["run"])) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _answer()
