"""The values of every measure on one fixed collection are those that were released: they change only knowingly.

`every_measure.json.xz` was made by rankeval itself, at a time when the other golden tests held (those against
trec_eval, cwl_eval and ndeval, and the laws): ``python tests/golden/test_every_measure.py``, run again where a value
is changed knowingly. Values that are means over drawn orders of tied rows are left out.
"""

from __future__ import annotations

import json
import lzma
import sys
from pathlib import Path

import numpy as np
import pytest

import rankeval as rk
from rankeval.evaluation import standard_errors
from rankeval.measures import measure
from rankeval.measures.family import FAMILIES

FILE = Path(__file__).with_name("every_measure.json.xz")
CASES = {
    "expected": {"ties": "expected"},
    "docid": {"ties": "docid"},
    "skip": {"ties": "docid", "unjudged": "skip", "negative": "unjudged"},
    "rows": {"ties": "stable", "judgments": "rows"},
}


def golden() -> dict:
    return json.loads(lzma.decompress(FILE.read_bytes()))


def collection(data):
    """Return qrels with and without aspects, and the run."""
    rows = data["judgments"]
    qid, docid, aspect, grade = zip(*rows, strict=True)
    by_aspect = rk.Qrels(qid, docid, grade, aspect=aspect)
    flat = {}
    for q, d, _, g in rows:
        flat.setdefault(q, {})[d] = max(g, flat.get(q, {}).get(d, g))
    return {"aspects": by_aspect, "grades": flat}, data["run"]


def evaluated(data, names, case):
    """Return measure -> value of each query, None where it was drawn, or what is said where it is refused."""
    truth, run = collection(data)
    found = {}
    for name in names:
        kind = "grades" if measure(name).family.needs == "grades" else "aspects"
        try:
            ev = rk.evaluate(truth[kind], run, measures=name, convention=rk.Convention("fixed", **CASES[case]))
        except rk.errors.InvalidInput:
            found[name] = "refused"
            continue
        drawn = standard_errors(ev).iloc[:, 0].to_numpy() > 0
        values = ev.per_query.iloc[:, 0].tolist()
        found[name] = [None if one else value for one, value in zip(drawn, values, strict=True)]
        found[name].append(None if drawn.any() else float(ev.aggregate().iloc[0]))
    return found


DRAWN = {"gm_AP", "YAAP", "gm_Bpref", "G", "nDCGrel", "binG", "AvgJG", "IPrec", "IAP11", "BPM"}
DRAWN |= {"Compat", "NERR8", "NERR9", "NERR10", "NERR11"}
"""Families whose ties had a formula when the file was made, and are drawn now where there are many orders."""


@pytest.mark.worth("the values of every measure under every rule of ties")
@pytest.mark.parametrize("case", CASES)
def test_every_value_is_the_one_that_was_released(case):
    data = golden()
    found = evaluated(data, data["values"][case], case)
    for name, values in data["values"][case].items():
        if values == "refused":
            assert found[name] == values, name
            continue
        exact = [place for place, value in enumerate(values) if value is not None]  # the others were drawn
        if measure(name).family.name in DRAWN:
            exact = [place for place in exact if found[name][place] is not None]
        here, there = (np.array([one[place] for place in exact], dtype=float) for one in (found[name], values))
        np.testing.assert_allclose(here, there, rtol=1e-9, atol=1e-12, err_msg=name)


def test_every_family_is_among_them():
    """A new measure is added by making the file again."""
    known = {measure(name).family.name for name in golden()["values"]["docid"]}
    ours = {name: one for name, one in FAMILIES.items() if one.kernel.__module__.startswith("rankeval.")}
    assert {name for name, one in ours.items() if one.needs != "columns"} == known  # a collection has no rows with them


def make() -> None:
    """Add measures without values to the file; without a file, make its queries too.

    They have ties, grades, aspects, documents unjudged and not retrieved. Values that are there stay.
    """
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from laws import test_aspect_laws, test_measure_laws

    rng = np.random.default_rng(20261121)
    judgments, run = [], {}
    for number, (n_judged, n_ranked) in enumerate([(14, 25), (6, 4), (9, 12), (3, 30), (20, 14), (2, 2)]):
        q = f"q{number}"
        documents = [f"d{d:02}" for d in range(40)]
        pool = rng.permutation(40)[:n_judged].tolist()
        for d in pool:
            for aspect in sorted(rng.permutation(4)[: rng.integers(1, 4)].tolist()):
                grade = int(rng.choice([-1, 0, 0, 1, 1, 2, 3])) if number else int(rng.integers(0, 4))
                judgments.append([q, documents[d], f"a{aspect}", grade])
        others = [d for d in range(40) if d not in pool]
        listed = [*pool[: max(1, 2 * n_ranked // 3)], *others][:n_ranked]
        spread = 4 if number == 2 else 9
        run[q] = {documents[d]: float(s) for d, s in zip(listed, rng.integers(0, spread, len(listed)), strict=True)}
    names = list(dict.fromkeys([*test_measure_laws.all_members(), *test_aspect_laws.all_members()]))
    data = {"judgments": judgments, "run": run}
    values: dict[str, dict] = {case: {} for case in CASES}
    if FILE.exists():
        stored = json.loads(lzma.decompress(FILE.read_bytes()))
        data, values = {key: stored[key] for key in data}, stored["values"]
    for case in CASES:
        new = [name for name in names if name not in values[case]]
        values[case] |= evaluated(data, new, case) if new else {}
    text = json.dumps({**data, "values": values})
    FILE.write_bytes(lzma.compress(text.encode(), preset=9))


if __name__ == "__main__":
    make()
