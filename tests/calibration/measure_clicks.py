"""Measure how often the notes and warnings about clicks come, and how often intervals hold, and write it for the tests.

    python tests/calibration/measure_clicks.py                                # about 16 CPU minutes, in one process
    python tests/calibration/measure_clicks.py --trials 20                    # a hundredth of it; writes nothing
    python tests/calibration/measure_clicks.py --trials 1 --figures FILE      # writes the figures there

Two subjects. *dependence*: a trial draws a world of queries with relevant and other documents, a log of users, its
propensities, and the value of the best order; it counts the logs with a note, and those in which the value is off by
more than its interval's half width from the clicks that the same users would give the best order. *policy*: a trial
draws a log of single items; it counts the intervals without a warning, and those of them that hold the truth.

One call writes the whole of tests/calibration/click_rates.json and, from it, the tables in
examples/guides/clicks_to_weights.md. Each trial has a seed of its own, so a part measured alone has the same figures.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np

from rankeval.io.opening import write_atomically
from rankeval.online import policy_value
from rankeval.online.dependence import tested
from rankeval.online.fitting import all_pairs

if __name__ == "__main__":
    import sys

    sys.path.insert(0, str(Path(__file__).parents[1]))

from calibration.guard_tables import filled, table

FIGURES = Path(__file__).with_name("click_rates.json")
GUIDE = Path(__file__).parents[2] / "examples" / "guides" / "clicks_to_weights.md"
COMMENTS = {
    subject: (f"<!-- {subject}: measured by tests/calibration/measure_clicks.py -->", f"<!-- end of {subject} -->")
    for subject in ("dependence", "policy")
}
TRIALS = 2000
SHOWN = 10
PLACES = np.arange(1, SHOWN + 1)
LOOKED = 1 / PLACES
TRUSTED = np.linspace(0.65, 0.25, SHOWN)
"""The chance of a click on an irrelevant document that is looked at, by users who trust the top."""

MIDDLE, LARGE = "4,000 of 150 queries", "10,000 of 150 queries"
RANKERS = "4,000 of 150 queries, three rankers"
DIFFER = "position, users differ"
"""Users who look down to a depth of their own each: one chance by position, and clicks that go together."""
USERS = ("position", DIFFER, "cascade", "trust")
LOGS = {
    "1,000 of 150 queries": ("shuffled", 150, 10, 1000),
    MIDDLE: ("shuffled", 150, 10, 4000),
    LARGE: ("shuffled", 150, 10, 10_000),
    "1,000 of 30 queries": ("shuffled", 30, 10, 1000),
    RANKERS: ("rankers", 150, 20, 4000),
}
"""How lists are made, queries, documents of a query, impressions."""


def attraction(relevant, users):
    """Return the chance of a click on items that are looked at, in the order in which they stand."""
    if users == "trust":
        return np.where(relevant, 0.95, TRUSTED)
    return np.where(relevant, 0.8, 0.15)


def expected(relevant, users):
    """Return the chance of a click on each item of lists."""
    chance = attraction(relevant, users)
    if users == "cascade":
        below = np.cumprod(1 - chance, axis=1)
        return chance * np.hstack([np.ones((len(chance), 1)), below[:, :-1]])
    return chance * LOOKED


def clicked(relevant, users, rng):
    """Return the clicks on lists."""
    chance, draws = attraction(relevant, users), rng.random(relevant.shape)
    if users == "cascade":
        hits = draws < chance
        return hits & (np.cumsum(hits, axis=1) == 1)
    deep = rng.random((len(relevant), 1 if users == DIFFER else SHOWN))
    return (draws < chance) & (deep < LOOKED)


def shown_lists(kind, relevant, n, rng):
    """Return the query and the documents of each list: shuffled, or of three noisy rankers in turn."""
    query = rng.integers(len(relevant), size=n)
    if kind == "shuffled":
        return query, np.argsort(rng.random((n, relevant.shape[1])), axis=1)[:, :SHOWN]
    rankers = np.argsort(rng.normal(0, 0.8, (3, *relevant.shape)) - relevant, axis=2)[:, :, :SHOWN]
    return query, rankers[rng.integers(3, size=n), query]


def dependence_trial(users, kind, n_queries, n_documents, n, rng):
    """Return which checks fail, if propensities and the value of the best order have a note, and if it is off."""
    relevant = rng.random((n_queries, n_documents)) < 0.4
    hits = np.zeros((1, SHOWN))
    while not hits.any(axis=0).all():  # nothing is known of a position without a click, and it is refused
        query, lists = shown_lists(kind, relevant, n, rng)
        hits = clicked(relevant[query[:, None], lists], users, rng).astype(float)
    pair = query[:, None] * n_documents + lists
    chance = hits.mean(axis=0) / hits[:, 0].mean()
    if kind == "rankers":
        cell, size = pair * SHOWN + PLACES - 1, n_queries * n_documents * SHOWN
        tables = [np.bincount(cell.ravel(), one.ravel(), size) for one in (np.ones(hits.shape), hits)]
        chance = all_pairs(*(one.reshape(-1, SHOWN) for one in tables))
    score = relevant + 0.5 * rng.random(relevant.shape)
    rank = np.argsort(np.argsort(-score[query[:, None], lists], axis=1), axis=1)
    found = []
    for ranks in (np.zeros_like(rank), rank):
        of_items = [np.unique(pair, return_inverse=True)[1], np.tile(np.arange(SHOWN), n), ranks, hits]
        items = [np.repeat(np.arange(n), SHOWN), *(one.ravel() for one in of_items)]
        found.append(tested(*items, query, np.ones(n, dtype=np.int64))["fails"].to_numpy())
    values = (hits / chance / np.log2(rank + 2)).sum(axis=1)
    best = np.sort(relevant[query[:, None], lists], axis=1)[:, ::-1]
    truth = (expected(best, users) / chance / np.log2(PLACES + 1)).sum(axis=1).mean()
    is_off = abs(values.mean() - truth) > 1.96 * values.std() / np.sqrt(n)
    return [*found[0], found[0].any(), found[1].any(), is_off]


NAMES = ("clicks_above", "documents_above", "own_attraction", "propensities", "values", "off")


def dependence_rates(users, log, trials, seed=0):
    """Return the figures of users in logs of a kind."""
    rows = [dependence_trial(users, *LOGS[log], np.random.default_rng([seed, one])) for one in range(trials)]
    found = np.array(rows)
    rates, (propensities, values, off) = found.mean(axis=0), found[:, 3:].T.astype(bool)
    noted = propensities | values
    told = dict(zip(NAMES, rates, strict=True)) | {"noted": noted.mean()}
    told["noted_of_off"] = noted[off].mean() if off.any() else None
    return {"users": users, "log": log, "trials": trials} | _rounded(told)


def _rounded(rates):
    return {key: None if rate is None else round(float(rate), 4) for key, rate in rates.items()}


DUE = (5, 10, 25, 50, 100)
WEIGHTS = {"equal": None, "Dirichlet(3)": 3.0}
RATE, N_ARMS = 0.004, 34


def policy_trial(weights, due, rng):
    """Return whether a log has no warning, and whether the interval holds; clicks are as rare as in Open Bandit."""
    n, shape = int(due / RATE), WEIGHTS[weights]
    shown = np.full(N_ARMS, 1 / N_ARMS) if shape is None else rng.dirichlet(np.full(N_ARMS, shape))
    rate = rng.uniform(0.5, 1.5, N_ARMS)
    rate *= RATE / rate.mean()
    item = rng.choice(N_ARMS, n, p=shown)
    click = rng.random(n) < rate[item]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        row = policy_value(click, shown[item], 1 / N_ARMS).table.iloc[0]
    return not said, row["ci_low"] <= RATE <= row["ci_high"]


def policy_rates(weights, due, trials, seed=0):
    """Return the figures of logs with so many clicks due."""
    rows = [policy_trial(weights, due, np.random.default_rng([seed, due, one])) for one in range(trials)]
    silent, held = np.array(rows).T
    rates = {
        "held": held.mean(),
        "unwarned": silent.mean(),
        "held_unwarned": held[silent].mean() if silent.any() else None,
    }
    return {"weights": weights, "due": due, "trials": trials} | _rounded(rates)


def rows(subject):
    """Return the measured figures of a subject."""
    return json.loads(FIGURES.read_text("utf-8"))[subject]


def blocks():
    """Return the tables of the guide, in Markdown."""
    found = {(row["users"], row["log"]): row for row in rows("dependence")}
    lines = [[log, *(_told(found.get((users, log))) for users in USERS)] for log in LOGS]
    notes = table(["impressions", *USERS], lines)
    found = {(row["weights"], row["due"]): row for row in rows("policy")}
    lines = [[weights, *(f"{100 * found[weights, due]['held']:.1f}" for due in DUE)] for weights in WEIGHTS]
    return {"dependence": notes, "policy": table(["weights", *(f"{due} clicks" for due in DUE)], lines)}


def users_in(log):
    """Return the users of a row of the table: the slow ones are left out where others say the same."""
    return {MIDDLE: USERS, LARGE: USERS[:1], RANKERS: (USERS[0], USERS[-1])}.get(log, (USERS[0], *USERS[2:]))


def _told(row):
    return "" if row is None else f"{100 * row['propensities']:.1f}, {100 * row['values']:.1f}"


def write_guide():
    """Write the tables into the guide."""
    for subject, block in blocks().items():
        GUIDE.write_text(filled(GUIDE.read_text("utf-8"), block, COMMENTS[subject]), "utf-8")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--figures", type=Path)
    asked = parser.parse_args(arguments)
    trials, figures = asked.trials, asked.figures or (FIGURES if asked.trials == TRIALS else None)
    found = {"dependence": [], "policy": []}
    for weights in WEIGHTS:
        for due in DUE:
            found["policy"].append(policy_rates(weights, due, trials))
            print(json.dumps(found["policy"][-1]), flush=True)
    for log in LOGS:
        for users in users_in(log):
            found["dependence"].append(dependence_rates(users, log, trials))
            print(json.dumps(found["dependence"][-1]), flush=True)
    if figures is not None:
        parts = [f'"{name}": [\n' + ",\n".join(map(json.dumps, of)) + "\n]" for name, of in found.items()]
        write_atomically(figures, ["{{{}}}\n".format(",\n".join(parts)).encode()])
    if figures == FIGURES:
        write_guide()


if __name__ == "__main__":
    main()
