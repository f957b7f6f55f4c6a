"""Swapped arguments: judgments that look like scores beside scores that look like judgments are refused.

The trap is a false alarm, so the collections whose arguments stand in their places are hard ones: fractional gains
beside whole scores, ranks, votes and classifiers, and collections of one document.
"""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from circles import choose

import rankeval as rk
from rankeval.errors import FileFormatError, InvalidInput

N_SWAPPED, N_RIGHT = choose(default=(20, 100), full=(200, 2000))

LEAVES = np.random.default_rng(26).normal(0, 0.1, (12, 4))
MODELS = {
    "bm25": lambda rng, n: rng.gamma(3, 4, n),
    "bm25 in four decimals": lambda rng, n: rng.gamma(3, 4, n).round(4),
    "language model": lambda rng, n: -rng.gamma(9, 0.8, n),
    "probability of a language model": lambda rng, n: np.exp(-rng.gamma(9, 0.8, n)),
    "cosine": lambda rng, n: rng.beta(6, 3, n),
    "cosine in float32": lambda rng, n: rng.beta(6, 3, n).astype(np.float32),
    "probability": lambda rng, n: 1 / (1 + np.exp(-rng.normal(-1, 2, n))),
    "reciprocal rank fusion": lambda rng, n: (1 / (60 + rng.integers(1, 500, (2, n)))).sum(axis=0),
    "trained ranker": lambda rng, n: rng.normal(0, 1, n),
    "tied titles": lambda rng, n: rng.choice(rng.gamma(3, 4, n), n),
    "a dozen trees": lambda rng, n: LEAVES[np.arange(12)[:, None], rng.integers(0, 4, (12, n))].sum(axis=0),
    "three trees": lambda rng, n: LEAVES[np.arange(3)[:, None], rng.integers(0, 4, (3, n))].sum(axis=0),
}  # fmt: skip
GRADES = {
    "binary": lambda rng, n: rng.binomial(1, 0.2, n),
    "four grades": lambda rng, n: rng.choice(4, n, p=[0.6, 0.2, 0.15, 0.05]),
    "five grades": lambda rng, n: rng.integers(0, 5, n),
    "web": lambda rng, n: rng.choice([-2, 0, 1, 2, 3, 4], n),
    "as floats": lambda rng, n: rng.integers(0, 3, n).astype(float),
    "relevant alone": lambda _, n: np.ones(n, dtype=int),
}


def clicks(rng, n, gain):
    return np.where(rng.random(n) < 0.4, gain, 0.0)


GAINS = {
    **{name: GRADES[name] for name in ("binary", "four grades", "as floats", "web")},
    "half grades": lambda rng, n: rng.integers(0, 9, n) / 2,
    "quarters": lambda rng, n: rng.integers(0, 13, n) / 4,
    "mean of three judges": lambda rng, n: rng.integers(0, 4, (3, n)).mean(axis=0),
    "the same in two decimals": lambda rng, n: rng.integers(0, 4, (3, n)).mean(axis=0).round(2),
    "the same in three decimals": lambda rng, n: rng.integers(0, 4, (3, n)).mean(axis=0).round(3),
    "the same in float32": lambda rng, n: rng.integers(0, 4, (3, n)).mean(axis=0, dtype=np.float32),
    "mean of ten judges": lambda rng, n: rng.integers(0, 5, (10, n)).mean(axis=0),
    "confidence of a judge": lambda rng, n: rng.beta(2, 2, n).round(2),
    "click rate": lambda rng, n: clicks(rng, n, rng.integers(1, 60, n) / rng.integers(60, 400, n)),
    "clicks by propensity": lambda rng, n: clicks(rng, n, 1 / rng.beta(2, 3, n)),
    "time on page": lambda rng, n: clicks(rng, n, np.log1p(rng.gamma(2, 30, n))),
}
WHOLE = {
    "ranks": lambda _, n: -np.arange(1, n + 1),
    "ranks from the end": lambda _, n: np.arange(n, 0, -1),
    "rounded bm25": lambda rng, n: rng.gamma(3, 4, n).round(),
    "constant": lambda _, n: np.zeros(n),
    "constant 1": lambda _, n: np.ones(n),
    "classifier": lambda rng, n: rng.binomial(1, 0.3, n),
    "votes": lambda rng, n: rng.binomial(5, 0.3, n),
    "votes up and down": lambda rng, n: rng.integers(-5, 6, n),
    "levels of a tree": lambda rng, n: rng.choice([1, 2, 3, 5], n),
}


def collection(rng, numbers, queries, depth):
    """Return {qid: {docid: number}}, the documents drawn from half as many again."""
    found = {}
    for query in range(queries):
        documents = rng.choice(depth + depth // 2, depth, replace=False)
        values = numbers(rng, depth)
        found[f"q{query}"] = dict(zip([f"d{one}" for one in documents.tolist()], values.tolist(), strict=True))
    return found


def is_refused(call, *args, **options):
    try:
        call(*args, **options)
    except InvalidInput as error:
        if error.argument != "truth":
            raise
        assert None not in (error.found, error.expected)  # noqa: PT017 - most calls raise nothing
        assert "swap" in error.remedy  # noqa: PT017
        return True
    return False


@pytest.mark.random
def test_swapped_arguments_are_refused():
    """A run of real scores as judgments: in each of the random collections, as dicts and as arrays."""
    missed = []
    for seed in range(N_SWAPPED):
        rng = np.random.default_rng([26, seed])
        model, grades = rng.choice(list(MODELS)), rng.choice(list(GRADES))
        queries, depth = int(rng.integers(5, 40)), int(rng.integers(6, 60))
        run = collection(rng, MODELS[model], queries, depth)
        qrels = collection(rng, GRADES[grades], queries, int(rng.integers(2, depth)))
        assert not is_refused(rk.evaluate, qrels, run, measures="RR")
        scores = MODELS[model](rng, queries * depth)
        labels = GRADES[grades](rng, queries * depth)
        qid = rng.permutation(np.repeat(np.arange(queries), depth))
        found = is_refused(rk.evaluate, run, qrels), is_refused(rk.evaluate, scores, labels, qid=qid)
        missed += [] if all(found) else [(seed, model, grades, queries, depth, *found)]
    assert not missed


@pytest.mark.random
def test_arguments_in_their_places_are_never_refused():
    """Whatever the gains are, beside real scores and whole ones; also in collections of a few documents."""
    alarms = []
    for seed in range(N_RIGHT):
        rng = np.random.default_rng([2026, seed])
        gains, scores = rng.choice(list(GAINS)), rng.choice([*WHOLE, *MODELS])
        queries, depth = int(rng.integers(1, 30)), int(rng.choice([1, 2, 3, 10, 40, 120]))
        qrels = collection(rng, GAINS[gains], queries, depth)
        run = collection(rng, {**WHOLE, **MODELS}[scores], queries, int(rng.choice([1, 3, 10, 50])))
        rows = queries * depth
        arrays = GAINS[gains](rng, rows), {**WHOLE, **MODELS}[scores](rng, rows)
        qid = np.repeat(np.arange(queries), depth)
        found = is_refused(rk.evaluate, qrels, run), is_refused(rk.evaluate, *arrays, qid=qid)
        alarms += [(seed, gains, scores, queries, depth, *found)] if any(found) else []
    assert not alarms


RNG = np.random.default_rng(1)
RUN, QRELS = collection(RNG, MODELS["bm25"], 8, 20), collection(RNG, GRADES["four grades"], 8, 20)


@pytest.mark.parametrize(
    "call",
    [
        lambda truth, ranking: rk.explain_difference(truth, ranking, measure="nDCG", values=(0.5, 0.6)),
        lambda truth, ranking: rk.analysis.contingency_table(truth, ranking, cutoff=5),
        lambda truth, ranking: rk.evaluate(truth, pd.Series(ranking).to_dict(), name="x", convention="trec_eval-10"),
    ],
)
def test_every_call_that_takes_both_refuses_them_swapped(call):
    call(QRELS, RUN)
    assert is_refused(call, RUN, QRELS)


def test_files_are_refused_swapped_by_their_values_or_by_their_columns(tmp_path, rankeval):
    """JSON by the values, TREC text by the number of columns; on the command line too."""
    for name, content in (("run", RUN), ("qrels", QRELS)):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
        (rk.Run if name == "run" else rk.Qrels).from_dict(content).write(tmp_path / f"{name}.txt")
    assert is_refused(rk.evaluate, tmp_path / "run.json", tmp_path / "qrels.json")
    assert is_refused(rk.evaluate, rk.Qrels.read(tmp_path / "run.json"), rk.Run.read(tmp_path / "qrels.json"))
    with pytest.raises(FileFormatError, match="this looks like a run file"):
        rk.evaluate(tmp_path / "run.txt", tmp_path / "qrels.txt")
    for command in ("evaluate", "compare"):
        for suffix, said in ((".json", "swap the two"), (".txt", "this looks like a run file")):
            others = [tmp_path / f"qrels{suffix}", tmp_path / f"run{suffix}"][: 1 + (command == "compare")]
            code, _, err = rankeval(command, tmp_path / f"run{suffix}", *others)
            assert (code, said in err) == (2, True), err


def test_a_caller_who_says_which_is_which_is_believed():
    """By the type or by the names of columns; whole judgments are never looked at."""
    gains, votes = collection(RNG, MODELS["cosine"], 8, 20), collection(RNG, WHOLE["classifier"], 8, 20)
    assert is_refused(rk.evaluate, gains, votes)
    rk.evaluate(rk.Qrels.from_dict(gains), votes)
    frame = pd.DataFrame({"q": [1, 2] * 20, "gain": MODELS["cosine"](RNG, 40), "vote": [1, 0, 0, 1] * 10})
    assert is_refused(rk.evaluate, frame["gain"], frame["vote"], qid=frame["q"])
    rk.evaluate(frame, qid="q", relevance="gain", score="vote")


@pytest.mark.shared
@pytest.mark.parametrize(
    "folder",
    ["cranfield", *(pytest.param(one, marks=pytest.mark.rest) for one in ("cisi", "trec_covid_r5", "web2012"))],
)
def test_real_runs_are_refused_as_judgments(shared, folder):
    """Every run with fractional scores, against every file of judgments; none of them in its place."""
    kinds = ("binary", "graded", "codes", "residual", "adhoc")
    judged = [path for kind in kinds for path in (shared / folder).glob(f"qrels.{kind}.txt.gz")]
    runs = [rk.Run.read(path) for path in sorted((shared / folder / "runs").iterdir())]
    assert judged
    assert runs
    for path in judged:
        qrels = nested(rk.Qrels.read(path))
        for run in runs:
            assert not is_refused(rk.evaluate, qrels, nested(run), measures="RR")
            if (run.score != run.score.round()).mean() > 0.9:
                assert is_refused(rk.evaluate, nested(run), qrels, measures="RR"), run.source


def nested(rows):
    found = {}
    for qid, docid, number in rows.to_frame().to_numpy().tolist():
        found.setdefault(qid, {})[docid] = number
    return found
