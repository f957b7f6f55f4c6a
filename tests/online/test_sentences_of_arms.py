"""Each sentence of an A/B test is said in a world of its own, and gone in another one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from rankeval.online import ab_test, looks_plan


def world(n=2000, b=0.5, lift=0.0, seed=0, arms=("A", "B")):
    """Return a row per user, with clicks, views, an order of few, and clicks before."""
    rng = np.random.default_rng(seed)
    arm = np.where(rng.random(n) < b, arms[-1], rng.choice(arms[:-1], n))
    rate = rng.gamma(1, size=n)
    clicks = rng.poisson(rate * (1 + lift * (arm == arms[-1])))
    more = {"views": 10.0, "order": (rng.random(n) < 0.02).astype(float), "before": rng.poisson(5 * rate)}
    return pd.DataFrame({"user": np.arange(n), "arm": arm, "clicks": clicks, **more})


CLICKS = {"metrics": {"clicks": "clicks"}}
HEAVY = world().assign(views=lambda frame: np.where(frame["user"] % 100 == 0, 10_000.0, 1.0))
LOST = world(20_000)[lambda frame: (frame["arm"] == "A") | (frame["before"] < frame["before"].quantile(0.98))]
TWICE = world().pipe(lambda frame: pd.concat([frame, frame.head(5)]))
MOVED = world().pipe(lambda frame: pd.concat([frame, frame.head(5).assign(arm="A"), frame.head(5).assign(arm="B")]))

SENTENCES = {
    "No result: the numbers of users": (world(b=0.4), {}, world(), {}),
    "the sample ratio is wrong": (world(b=0.4), {}, world(b=0.4), {"shares": {"A": 0.6, "B": 0.4}}),
    "No result: the arms differed before the test": (
        LOST,
        {"covariates": {"clicks": "before"}},
        world(),
        {"covariates": {"clicks": "before"}},
    ),
    "the arms differed before the test: no row": (
        LOST,
        {"covariates": {"clicks": "before"}},
        world(),
        {"covariates": {"clicks": "before"}},
    ),
    "before the test: a difference of": (world(), {"covariates": {"clicks": "before"}}, world(), {}),
    "are adjusted in each row anew": (world(), {"covariates": {"clicks": "before"}}, world(), {}),
    "Nothing was tested": (world().assign(clicks=3), {}, world(), {}),
    "does not vary between the users": (world().assign(clicks=3), {}, world(), {}),
    "No difference was shown": (world(), {}, world(lift=0.5), {}),
    "would be found four times in five": (world(), {}, world(lift=0.5), {}),
    "is higher in B": (world(lift=0.5), {}, world(), {}),
    "is lower in B": (world(lift=-0.5), {}, world(), {}),
    "Of 2 comparisons 1 show": (
        world(lift=0.5),
        {"metrics": {"clicks": "clicks", "order": "order"}},
        world(lift=0.5),
        {},
    ),
    "This is look 2 of 3": (world(), {"looks": looks_plan(3), "look": 2}, world(), {}),
    "no 95% interval": (
        world(b=0.02).assign(clicks=lambda one: one["clicks"] * one["order"]),
        {"shares": {"A": 0.98, "B": 0.02}},
        world(b=0.02),
        {"shares": {"A": 0.98, "B": 0.02}},
    ),
    "has no relative change": (world().assign(clicks=lambda one: one["clicks"] - 1.2), {}, world(), {}),
    "is tested by Fisher's exact test": (
        world(b=0.1),
        {"metrics": {"order": "order"}, "shares": {"A": 0.9, "B": 0.1}},
        world(),
        {"metrics": {"order": "order"}},
    ),
    "is tested by random arms": (world(b=0.1), {"shares": {"A": 0.9, "B": 0.1}}, world(), {}),
    "users with equal views": (
        HEAVY,
        {"metrics": {"ctr": "clicks/views"}},
        world(),
        {"metrics": {"ctr": "clicks/views"}},
    ),
    "the control is A": (world(arms=("A", "B", "C"), b=1 / 3), {}, world(), {}),
    "5 users in several arms left out": (MOVED, {}, world(), {}),
    "repeat the only row": (TWICE, {}, world(), {}),
}


@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_sentence_is_said_where_it_holds_and_nowhere_else(sentence):
    frame, options, other, others = SENTENCES[sentence]
    for said, rows, how in ((True, frame, options), (False, other, others)):
        test = ab_test(rows, **{**CLICKS, **how})
        assert (sentence in " ".join([test.headline, *test.notes])) == said, (said, test.headline, test.notes)
