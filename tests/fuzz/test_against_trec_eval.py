"""Random collections and flags: our values are those of trec_eval's own functions, as pytrec_eval compiles them.

They hold scores in 32 bits. Each input follows from its number; when one fails, the collection is made smaller as long
as it fails still, and what is left is printed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

import pytest
import pytrec_eval
from circles import choose
from fuzz.budget import n_inputs
from golden.hostile import DOCIDS, TOPICS, Chance
from golden.peers import pytrec_eval_values

import rankeval as rk
from rankeval.trec_eval.output import trec_rules

MEASURES = tuple(
    sorted(pytrec_eval.supported_measures - {"runid", "relstring", "num_q", "P", "recall", "iprec_at_recall"})
)
AT_RANKS = ("P", "recall", "ndcg_cut", "map_cut", "relative_P", "success")
AT_SHARES = ("iprec_at_recall", "Rprec_mult")
ALONE = ("set_F", "11pt_avg")
"""What is one value whatever its parameters, which it is not named by."""
SCORES = (
    *(0.0, -0.0, 1.0, 2.0, 3.0, -1.0, 0.5, 0.1, 0.10000000149011612, 16777216.0, 16777217.0, 0.3, 0.30000000000000004),
    *(1e-45, 1e-46, 4.9e-324, 1e39, 2e39, -1e39, 1.7976931348623157e308, 3.4028235e38),
)
LABELS = ((0, 1), (0, 1, 2, 3), (0,), (1,), (-2, -1, 0, 1, 2), (0, 1, 10, 100), (2, 5))
MISSING = ("skip", "empty", "zero")
PARTS = choose(default=1, full=4)


@dataclass(frozen=True)
class Input:
    """What one number stands for."""

    qrels: dict[str, dict[str, int]]
    run: dict[str, dict[str, float]]
    measures: tuple[str, ...]
    level: int
    judged_only: bool
    missing: str


def made(number: int) -> Input:
    """Return the input of a number."""
    chance = Chance(number)
    qrels, run = {}, {}
    documents = [*DOCIDS, *(f"n{place}" for place in range(15))]
    for place, topic in enumerate(chance.order(TOPICS)[: 1 + chance.below(4)]):
        known = chance.order(documents)[: 1 + chance.below(chance.one_of((3, 10, len(documents))))]
        labels, scores = chance.one_of(LABELS), chance.order(SCORES)[: 1 + chance.below(len(SCORES))]
        judged = [doc for doc in known if chance.happens(0.6)] or known[:1]
        ranked = [doc for doc in known if chance.happens(0.7)] or known[:1]
        if not place or chance.happens(0.8):  # labels below 0 alone are beyond trec_eval
            qrels[topic] = {doc: chance.one_of(labels) if at else labels[-1] for at, doc in enumerate(judged)}
        if not place or chance.happens(0.8):
            run[topic] = {doc: chance.one_of(scores) for doc in ranked}
    measures = [one for one in MEASURES if chance.happens(0.3)]
    measures += [f"{chance.one_of(AT_RANKS)}.{1 + chance.below(30)}" for _ in range(4)]
    shares = [f"{root}.{(1 + chance.below(100)) / 100:.2f}" for root in AT_SHARES + ALONE]
    measures += [one for one in shares if chance.happens(0.5)]
    level = chance.one_of((1, 1, 1, 2, 3))
    return Input(qrels, run, tuple(measures), level, chance.happens(0.25), chance.one_of(MISSING))


def differences(one: Input, theirs: dict[str, dict[str, float]] | None = None) -> list[str]:
    """Say where our values are not trec_eval's, and which queries are lost."""
    if theirs is None:
        (theirs,) = pytrec_eval_values([asdict(one)])
    alone = {root: spec for spec in one.measures if (root := spec.partition(".")[0]) in ALONE}
    names = list(next(iter(theirs.values())))
    rules = trec_rules("trec_eval-9.0.8-float32", level=one.level, judged_only=one.judged_only)
    qrels, run = rk.Qrels.from_dict(one.qrels), rk.Run.from_dict(one.run)
    asked = [alone.get(name, name) for name in names]
    ev = rk.evaluate(qrels, run, measures=asked, convention=rules.with_rules(missing=one.missing))
    found = [
        f"{topic}: {name} is {value!r}, in trec_eval {theirs[topic][name]!r}"
        for topic, row in zip(ev.queries.tolist(), ev.scores.tolist(), strict=True)
        for name, value in zip(names, row, strict=True)
        if topic in theirs and not is_same(value, theirs[topic][name])
    ]
    lacking = tuple(sorted(one.qrels.keys() - one.run.keys()))
    expected = {
        "no judgments": tuple(sorted(one.run.keys() - one.qrels.keys())),
        "missing from the run": lacking if one.missing == "skip" else (),
    }
    if {reason: tuple(sorted(ids)) for reason, ids in ev.excluded.items()} != {k: v for k, v in expected.items() if v}:
        found.append(f"excluded are {dict(ev.excluded)!r}, expected {expected!r}")
    counted = theirs.keys() if one.missing == "skip" else one.qrels.keys()
    if set(ev.queries.tolist()) != set(counted):
        found.append(f"queries are {ev.queries.tolist()!r}, expected {sorted(counted)!r}")
    if ev.facts.totals()["missing"] != len(lacking):
        found.append(f"{ev.facts.totals()['missing']} queries are said to be missing, expected {len(lacking)}")
    return found


def is_same(ours: float, theirs: float) -> bool:
    """Whether two values print the same, as near as numbers of 16 digits are; -nan is no value."""
    if math.isnan(theirs):
        return math.isfinite(ours)
    return f"{ours:.4f}" == f"{theirs:.4f}" and math.isclose(ours, theirs, rel_tol=1e-12, abs_tol=1e-15)


def smaller(one: Input) -> Iterator[Input]:
    """Yield the inputs with a topic, a document, a judgment or a measure less, of which something is left."""
    for side in ("qrels", "run"):
        table = getattr(one, side)
        for topic, docs in table.items():
            rest = {other: its for other, its in table.items() if other != topic}
            yield replace(one, **{side: rest})
            for doc in docs if len(docs) > 1 else ():
                yield replace(one, **{side: {**table, topic: {d: v for d, v in docs.items() if d != doc}}})
    for measure in one.measures if len(one.measures) > 1 else ():
        yield replace(one, measures=tuple(other for other in one.measures if other != measure))


def smallest(one: Input) -> Input:
    """Return an input that still fails, and nothing can be taken from."""
    fails = True
    while fails:
        fails = False
        for less in smaller(one):
            usable = less.qrels.keys() & less.run.keys() and all(max(row.values()) >= 0 for row in less.qrels.values())
            if usable and differences(less):
                one, fails = less, True
                break
    return one


@pytest.mark.random
@pytest.mark.parametrize("part", range(PARTS))
def test_values_are_those_of_trec_evals_own_functions(part):
    """All measures that it shares, at any parameters, levels of relevance and with -J; and no query lost in silence."""
    numbers = range(part, n_inputs("trec_eval"), PARTS)
    for first in range(0, len(numbers), 100):
        some = numbers[first : first + 100]
        answers = pytrec_eval_values(asdict(made(number)) for number in some)
        for number, theirs in zip(some, answers, strict=True):
            if differences(made(number), theirs):
                least = smallest(made(number))
                said = (f"input {number} fails; the smallest part of it:", repr(least), *differences(least))
                pytest.fail("\n".join(said))


def test_what_fails_is_made_smaller(monkeypatch):
    """One topic, one document and one measure are left of an input in which a document is wrong."""
    monkeypatch.setitem(globals(), "differences", lambda one, _=None: ["wrong"] if "d1" in one.run.get("A", {}) else [])
    whole = Input(
        qrels={"A": {"d1": 1, "d2": 0}, "1": {"d1": 1}},
        run={"A": {"d1": 1.0, "d2": 0.5}, "2": {"d1": 1.0}},
        measures=("map", "P.5"),
        level=1,
        judged_only=False,
        missing="skip",
    )
    least = replace(whole, qrels={"A": {"d2": 0}}, run={"A": {"d1": 1.0}}, measures=("P.5",))
    assert smallest(whole) == least
