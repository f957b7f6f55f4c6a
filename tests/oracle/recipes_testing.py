"""Assertions of relevance tests, and the plugin of pytest in a run of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import Any

from oracle.calls import Call, recipe
from oracle.drawing import Draw
from oracle.recipes_evaluation import small_evaluation


def pair(draw: Draw, call: Call) -> tuple[Any, Any]:
    """Return a candidate and a baseline: evaluations, or frames of scores."""
    if draw.happens(0.5):
        frames = draw.effects(2, draw.integer(8, 30), ("nDCG@10", "AP"))
        return frames["ltr"], frames["base"]
    judgments = draw.judgments(draw.integer(6, 10), 8)
    runs = draw.rankings(judgments, 2)
    made = [
        call.make("rankeval.evaluate", judgments, run, measures=["nDCG@10", "AP"], name=name)
        for name, run in runs.items()
    ]
    return made[0], made[1]


def options_of(draw: Draw) -> dict[str, Any]:
    """Return options that both assertions share."""
    tests = ("randomization", "wilcoxon", "sign", "bootstrap", "odd")
    chosen = draw.options(0.9, measure=("AP", "nDCG@10", ["AP", "nDCG@10"])) | draw.options(
        0.3, alpha=(0.1, 0.2), test=tests, unpaired=("skip",), rng=(1,)
    )
    return {"n_resamples": 99, **chosen}


@recipe("testing", 250)
def no_regression(draw: Draw, call: Call) -> None:
    """Fail if a loss is shown."""
    candidate, baseline = pair(draw, call)
    margin = draw.options(0.5, margin=(0.0, 0.01, 0.1))
    found = call(
        "rankeval.testing.assert_no_regression", candidate, baseline, **margin, **options_of(draw)
    )
    call.plain(found, "Check.failure", "Check.rows")
    call("rankeval.testing.Check", found.claim, found.table, found.test, found.alpha, found.worst)
    call.keep("checks", list(call.names.find("rankeval.testing.CHECKS")))


@recipe("testing", 250)
def not_worse(draw: Draw, call: Call) -> None:
    """Fail unless non-inferiority is shown."""
    candidate, baseline = pair(draw, call)
    margin = draw.choice((0.05, 0.2, 0.3, 0.5, 0.0))
    found = call(
        "rankeval.testing.assert_not_worse",
        candidate,
        baseline,
        margin=margin,
        **options_of(draw),
        **draw.options(0.3, unseen=(0, 2)),
    )
    call.plain(found, "Check.failure", "Check.rows")


@recipe("testing", 150)
def equal(draw: Draw, call: Call) -> None:
    """Fail if two evaluations are not equal."""
    first = small_evaluation(draw, call, "a")
    other = draw.choice(
        (first, small_evaluation(draw, call, "b"), first.subset([first.queries[0]]))
    )
    call(
        "rankeval.testing.assert_evaluations_equal",
        first,
        other,
        **draw.options(0.4, atol=(0.1, 0.0)),
    )


TESTS = """
import numpy as np
import rankeval as rk
from rankeval.testing import assert_no_regression, assert_not_worse

RNG = np.random.default_rng({seed})

def evaluated(shift):
    y = RNG.integers(0, 3, 120)
    score = y * shift + RNG.normal(size=120)
    return rk.evaluate(y, score, qid=np.repeat(np.arange(20), 6), measures=["nDCG@10", "AP"])

def test_baseline(rankeval_baseline):
    candidate = evaluated({shift})
    assert_no_regression(candidate, rankeval_baseline(candidate), measure="nDCG@10")

def test_margin():
    old = evaluated(0.5)
    assert_not_worse(old.subset(old.queries), old, margin={margin})

def test_ledger(rankeval_ledger):
    guard = rk.Guard("p")
    data = rk.datasets.make_ranking(30, 5, 3, rng=0)
    guard.register("t", data)
    assert len(list(rankeval_ledger.rglob("*")))
"""
_COST = re.compile(r" in \d+\.\d+s")


@recipe("testing", 8, hashes=True, timed=True)
def plugin(draw: Draw, call: Call) -> None:
    """Run pytest with the plugin: a missing baseline, a renewed baseline, a summary."""
    draw.write(
        "test_it.py",
        TESTS.format(
            seed=draw.integer(0, 3), shift=draw.choice((0.5, 2)), margin=draw.choice((0.05, 0.1))
        ),
    )
    call.called += ["rankeval_pytest.rankeval_baseline", "rankeval_pytest.rankeval_ledger"]
    for words in (["--rankeval-update"], ["--rankeval-summary", "summary.md"]):
        command = [
            sys.executable,
            "-P",
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            "--no-header",
            *words,
        ]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=dict(os.environ), timeout=100
        )
        lines = [_COST.sub("", line) for line in done.stdout.splitlines()]
        call.keep(" ".join(["pytest", *words]), [done.returncode, lines])
