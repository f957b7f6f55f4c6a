"""pytrec_eval in a process of its own, which is ended when no answer comes: version 0.5.11 has hung on tied scores.

`python peers.py` reads one input of JSON a line, and prints the values of each as one line. `python peers.py
ir_measures` reads measures, judgments and a run, pickled, and prints what ir_measures has from pytrec_eval.
"""

from __future__ import annotations

import json
import os
import pickle
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
    printed = _printed([], "".join(f"{line}\n" for line in lines).encode(), seconds, hash_seed)
    return [json.loads(line) for line in printed.splitlines()]


def ir_measures_values(
    measures: list[Any], qrels: dict[str, Any], run: dict[str, Any], *, seconds: float = SECONDS, hash_seed: str = "0"
) -> list[tuple[str, Any, float]]:
    """Return (query, measure, value) as `ir_measures.iter_calc` gives them."""
    return pickle.loads(_printed(["ir_measures"], pickle.dumps((measures, qrels, run)), seconds, hash_seed))


def _printed(arguments: list[str], asked: bytes, seconds: float, hash_seed: str) -> bytes:
    """Run this file, and fail with words if it does not end well in time."""
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    try:
        done = subprocess.run(
            [sys.executable, __file__, *arguments],
            input=asked,
            env=environment,
            timeout=seconds,
            capture_output=True,
            check=False,
        )
    except subprocess.TimeoutExpired as late:  # `run` has killed it by its id
        answered = (late.stdout or b"").count(b"\n")
        pytest.fail(f"pytrec_eval was ended after {seconds} s, PYTHONHASHSEED={hash_seed}, with {answered} answers")
    if done.returncode:
        answered, said = done.stdout.count(b"\n"), done.stderr[-2000:].decode(errors="replace")
        pytest.fail(f"pytrec_eval ended with {done.returncode} after {answered} answers: {said}")
    return done.stdout


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


def _answer_with_ir_measures() -> None:
    import ir_measures

    values = [tuple(metric) for metric in ir_measures.iter_calc(*pickle.load(sys.stdin.buffer))]
    sys.stdout.buffer.write(pickle.dumps(values))


if __name__ == "__main__":
    _answer_with_ir_measures() if sys.argv[1:] else _answer()
