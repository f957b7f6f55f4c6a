"""Click models: fitting 10,000,000 lists of 10, as patterns of clicks with counts; and simulating 100,000 lists.

    python tests/benchmarks/bench_online_models.py [pbm cascade dcm sdbn dbn ubm simulate] [--repeats 1]

200 queries have 10 lists of 10 of their 20 documents each; a user of the model itself clicks 5,000 times on each list.
A pattern is a list with its clicks. Promised: a fit within 30 s CPU and 500 MB. The peak holds the library and the
making of the log, 200,000 impressions at a time.
"""

from __future__ import annotations

import argparse

import contest
import numpy as np
import pandas as pd

from rankeval.online import ClickLog, ClickModel

N_QUERIES, N_DOCS, N_LISTS, DEPTH, N_TIMES = 200, 20, 10, 10, 5000
MODELS = ("pbm", "cascade", "dcm", "sdbn", "dbn", "ubm")
BITS = (1 << np.arange(DEPTH)).astype(np.int16)


def user_of(name: str) -> ClickModel:
    """Return a user whose attraction and satisfaction are drawn."""
    rng, places = np.random.default_rng(20261126), np.arange(1, DEPTH + 1)
    pairs = pd.MultiIndex.from_product([range(N_QUERIES), range(N_DOCS)])
    attraction, satisfaction = (pd.Series(rng.beta(*shape, len(pairs)), pairs) for shape in ((1.2, 3), (2, 2)))
    slots = {(int(place), last): (place - last) ** -0.6 for place in places for last in range(place)}
    others = {
        "pbm": {"examination": places**-0.8},
        "ubm": {"examination": slots},
        "dcm": {"continuation": 0.5 + 0.04 * places[:-1]},
        "sdbn": {"satisfaction": satisfaction},
        "dbn": {"satisfaction": satisfaction, "gamma": 0.8},
    }
    return ClickModel(name, attraction=attraction, **others.get(name, {}))


def lists() -> pd.DataFrame:
    """Return impressions: each query has its lists."""
    rng, qids = np.random.default_rng(1), np.repeat(np.arange(N_QUERIES), N_LISTS)
    return pd.DataFrame({"qid": qids, "shown": [rng.permutation(N_DOCS)[:DEPTH] for _ in qids]})


def patterns(name: str) -> ClickLog:
    """Return the log of all users, a row per list and pattern of clicks."""
    user, base = user_of(name), lists()
    counts = np.zeros((len(base), 1 << DEPTH), dtype=np.int64)
    for seed in range(N_TIMES // 100):
        clicked = user.simulate(base, seed, n=100).items["clicked"].to_numpy().reshape(len(base), 100, DEPTH)
        for row, found in enumerate(clicked @ BITS):
            counts[row] += np.bincount(found, minlength=counts.shape[1])
    row, pattern = np.nonzero(counts)
    impressions = pd.DataFrame({"qid": base["qid"].astype("category").take(row), "count": counts[row, pattern]})
    items = {
        "impression": np.repeat(np.arange(len(row)), DEPTH),
        "position": np.tile(np.arange(1, DEPTH + 1), len(row)),
        "docid": pd.Categorical.from_codes(
            np.stack(base["shown"]).astype(np.int8)[row].ravel(), categories=range(N_DOCS)
        ),
        "clicked": (pattern.astype(np.int16)[:, None] & BITS > 0).ravel(),
    }
    return ClickLog(impressions.reset_index(drop=True), pd.DataFrame(items, copy=False))


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("models", nargs="*", default=[*MODELS, "simulate"])
    arguments.add_argument("--repeats", type=int, default=1)
    arguments.add_argument("--child")
    given = arguments.parse_args()
    if given.child == "simulate":
        many = pd.concat([lists()] * 50, ignore_index=True)
        contest.take_part(lambda: user_of("ubm").simulate(many), given.repeats)
    elif given.child:
        log = patterns(given.child)
        contest.take_part(lambda: ClickModel(given.child).fit(log), given.repeats, rows=len(log.impressions))
    else:
        title = f"{N_QUERIES * N_LISTS * N_TIMES:,} lists of {DEPTH}, as patterns with counts; simulate: 100,000 lists"
        contest.hold(__file__, given.models, ["--repeats", str(given.repeats)], title)


if __name__ == "__main__":
    main()
