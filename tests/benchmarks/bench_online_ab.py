"""How often A/B tests err, and what they find: the promised rates at full size.

    python tests/benchmarks/bench_online_ab.py [--tests 20000] [--ratios 2000]

Users are strong: they differ much in how often they click. Promised for 20 looks: O'Brien-Fleming's bounds .040 to .060
and a power of at least .75 where one look has .80; a confidence sequence at most .03; one look's bound at each look
above .20. Promised for a ratio metric of equal arms: .03 to .07.

The delta method wants many users: the last table has the claims about a ratio of equal arms by the effective number of
users of the smaller arm, (sum of views)^2 / sum of views^2. From 100 on, where no note warns, they are below .06.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import pandas as pd
from scipy.stats import norm, ttest_ind_from_stats

import rankeval as rk

N_LOOKS, PER_LOOK = 20, 50


def looked_at(n_tests: int, lift: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return difference and standard error of clicks per user at each look, of shape (n_tests, n_looks)."""
    sums, squares, found = np.zeros((2, n_tests)), np.zeros((2, n_tests)), []
    for look in range(1, N_LOOKS + 1):
        clicks = rng.poisson(rng.gamma(0.5, np.array([6, 6 + lift])[:, None, None], (2, n_tests, PER_LOOK)))
        sums, squares, n = sums + clicks.sum(axis=2), squares + (clicks**2).sum(axis=2), look * PER_LOOK
        variances = (squares - sums**2 / n) / (n - 1)
        found.append(((sums[1] - sums[0]) / n, np.sqrt(variances.sum(axis=0) / n)))
    differences, errors = (np.array(each).T for each in zip(*found, strict=True))
    return differences, errors


def rates(n_tests: int, lift: float, seed: int) -> pd.Series:
    """Return the share of tests that claim a difference at any look, by rule."""
    differences, errors = looked_at(n_tests, lift, np.random.default_rng(seed))
    z, users = np.abs(differences / errors), np.tile(np.arange(1, N_LOOKS + 1) * 2 * PER_LOOK, n_tests)
    p = rk.online.confidence_sequence(differences.ravel(), errors.ravel(), users, best_at=users.max())["p_value"]
    return pd.Series(
        {
            "one look at the end": (z[:, -1] > norm.isf(0.025)).mean(),
            "20 looks, each at .05": (z > norm.isf(0.025)).any(axis=1).mean(),
            "20 looks, O'Brien-Fleming": (z > rk.online.looks_plan(N_LOOKS).bounds).any(axis=1).mean(),
            "20 looks, Pocock": (z > rk.online.looks_plan(N_LOOKS, spending="pocock").bounds).any(axis=1).mean(),
            "20 looks, confidence sequence": (p.to_numpy().reshape(z.shape) <= 0.05).any(axis=1).mean(),
        }
    )


def equal_ratios(n_tests: int, n_users: int = 400) -> tuple[float, float]:
    """Return the share of claims about a ratio of equal arms: by user, and with impressions taken as units."""
    claims = []
    for seed in range(n_tests):
        rng = np.random.default_rng(seed)
        rate, views = rng.beta(1, 3, n_users), 1 + rng.poisson(1 + rng.gamma(0.7, 10, n_users))
        clicks = rng.binomial(views, rate)
        arm = rng.choice(["A", "B"], n_users)
        frame = pd.DataFrame({"user": range(n_users), "arm": arm, "clicks": clicks, "views": views})
        rows = frame.loc[frame.index.repeat(frame["views"])].assign(view=range(views.sum()))
        nth = rows.groupby("user").cumcount()
        rows["clicked"] = (nth < rows["clicks"]).astype(float)
        by_user = rk.online.ab_test(frame, metrics={"ctr": ("clicks", "views")})
        by_view = rk.online.ab_test(rows, unit="view", metrics={"ctr": "clicked"})
        claims.append([one.table["p_value"].iloc[0] <= 0.05 for one in (by_user, by_view)])
    first, second = np.mean(claims, axis=0)
    return float(first), float(second)


BUSY = {
    "alike": lambda rng, shape: rng.uniform(9, 9, shape),
    "gamma .7": lambda rng, shape: rng.gamma(0.7, 10, shape),
    "gamma .2": lambda rng, shape: rng.gamma(0.2, 40, shape),
    "lognormal 1.5": lambda rng, shape: 3 * rng.lognormal(0, 1.5, shape),
}
"""How much users differ in their views."""


def few_users(name: str, n_tests: int, n_users: int) -> dict[str, object]:
    """Return the share of claims about a ratio of equal arms, and the median of the effective number of users."""
    rng, arms, frames = np.random.default_rng(0), [], []
    for _ in range(2):
        views = 1.0 + rng.poisson(BUSY[name](rng, (n_tests, n_users)))
        clicks = rng.binomial(views.astype(int), rng.beta(1, 3, views.shape))
        ratio = clicks.sum(axis=1) / views.sum(axis=1)
        linear = (clicks - ratio[:, None] * views) / views.mean(axis=1, keepdims=True)
        kish = views.sum(axis=1) ** 2 / (views**2).sum(axis=1)
        arms.append((ratio, linear.std(axis=1, ddof=1), kish))
        frames.append(pd.DataFrame({"arm": len(arms), "clicks": clicks[0], "views": views[0]}))
    (one, its, few), (other, others, fewer) = arms
    p = ttest_ind_from_stats(other, others, n_users, one, its, n_users, equal_var=False).pvalue
    first = pd.concat(frames).assign(user=range(2 * n_users))
    test = rk.online.ab_test(first, metrics={"ctr": ("clicks", "views")})
    np.testing.assert_allclose(test.table["p_value"], p[0])  # the formula here is that of ab_test
    effective = float(np.median(np.minimum(few, fewer)))
    return {"views": name, "users of an arm": n_users, "effective": effective, "claims": (p <= 0.05).mean()}


def main() -> None:
    """Print the rates."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--tests", type=int, default=20_000)
    options.add_argument("--ratios", type=int, default=2000)
    asked = options.parse_args()
    started = time.process_time()
    columns = {"equal arms": rates(asked.tests, 0.0, 0), "power": rates(asked.tests, 1.27, 1)}
    print(pd.DataFrame(columns).round(4).to_string())
    by_user, by_view = equal_ratios(asked.ratios)
    print(f"ratio of equal arms: by user {by_user:.4f}, by impression {by_view:.4f}")
    sizes = [(name, n_users) for name in BUSY for n_users in (20, 50, 100, 200, 400, 800)]
    few = pd.DataFrame([few_users(name, asked.tests // 2, n_users) for name, n_users in sizes])
    print(few.sort_values("effective").round(4).to_string(index=False))
    print(f"{time.process_time() - started:.0f} CPU s")


if __name__ == "__main__":
    main()
