"""Measure how often A/B tests claim a difference, and write it for the tests and the guide.

    python tests/calibration/measure_ab.py          # about 12 CPU minutes
    python tests/calibration/measure_ab.py --quick  # a twentieth of the work; prints and writes nothing

A trial draws the users of two arms, and tests them as `ab_test` does, by Welch's test, and, of unequal arms that
differ, by a permutation test of the difference of means. In the first worlds the arms are equal: every claim is false.
Then the arms differ. The last rows are tests of equal arms that are looked at on 14 days. The script writes
tests/calibration/ab_rates.json and, from it, the tables in examples/guides/ab_test.md.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from rankeval.io.opening import write_atomically
from rankeval.online import experiments, looks_plan, unequal

if __name__ == "__main__":
    import sys

    sys.path.insert(0, str(Path(__file__).parents[1]))

from calibration.guard_tables import filled, table

FIGURES = Path(__file__).with_name("ab_rates.json")
GUIDE = Path(__file__).parents[2] / "examples" / "guides" / "ab_test.md"
COMMENTS = ("<!-- measured by tests/calibration/measure_ab.py -->", "<!-- end of what measure_ab.py measured -->")
TRIALS, ALPHA = 2000, 0.05
PLAN = looks_plan(1, alpha=ALPHA)
N_DRAWS = 1999
"""Random arms of a trial: fewer than `ab_test` draws, which makes no false claims and a little less power."""

Users = Callable[[np.random.Generator, int, float], np.ndarray]


def conversion(rate: float) -> Users:
    """Return what draws whether users buy; a lift raises the rate."""
    return lambda rng, n, lift: (rng.random(n) < rate * (1 + lift)).astype(float)[:, None]


def revenue(sigma: float, cap: float = np.inf) -> Users:
    """Return what draws the revenue of users of whom 3 % buy; a lift raises each order."""
    return lambda rng, n, lift: np.where(
        rng.random(n) < 0.03, (1 + lift) * rng.lognormal(0, sigma, n).clip(max=cap), 0.0
    )[:, None]


def clicks(rng: np.random.Generator, n: int, lift: float) -> np.ndarray:
    """Return the clicks of users who differ much."""
    return rng.poisson((1 + lift) * rng.gamma(0.3, 4, n)).astype(float)[:, None]


def ctr(rng: np.random.Generator, n: int, lift: float) -> np.ndarray:
    """Return clicks and views of users of whom few have most views."""
    views = 1 + rng.poisson((rng.pareto(2.5, n) * 5).clip(max=1000))
    return np.column_stack([rng.binomial(views, rng.beta(1, 9, n) * (1 + lift)), views]).astype(float)


@dataclass(frozen=True)
class World:
    """Users of two arms: what the metric is, how it is drawn, the arms' sizes, and how much better B is."""

    words: str
    users: Users
    sizes: tuple[int, int]
    lift: float = 0.0


CAP = float(np.exp(2 * stats.norm.ppf(0.99)))
EQUAL = [
    World("1 % buy", conversion(0.01), (9900, 100)),
    World("2 % buy", conversion(0.02), (9500, 500)),
    World("revenue, sigma 1", revenue(1), (9500, 500)),
    World("revenue, sigma 1.5", revenue(1.5), (9500, 500)),
    World("revenue, sigma 2, capped", revenue(2, CAP), (9500, 500)),
    World("revenue, sigma 2", revenue(2), (19_000, 1000)),
    World("revenue, sigma 2", revenue(2), (9900, 100)),
    World("revenue, sigma 2", revenue(2), (1000, 1000)),
    World("revenue, sigma 2", revenue(2), (5000, 5000)),
    World("clicks per user", clicks, (9900, 100)),
    World("click rate", ctr, (19_000, 1000)),
]
BETTER = [
    World("5 % buy", conversion(0.05), (19_000, 1000), 0.4),
    World("5 % buy", conversion(0.05), (5000, 5000), 0.2),
    World("revenue, sigma 1", revenue(1), (38_000, 2000), 0.8),
    World("revenue, sigma 1.5", revenue(1.5), (38_000, 2000), 1.5),
    World("revenue, sigma 1", revenue(1), (5000, 5000), 0.5),
    World("clicks per user", clicks, (19_000, 1000), 0.25),
    World("clicks per user", clicks, (19_000, 1000), -0.2),
    World("clicks per user", clicks, (2000, 2000), 0.25),
    World("click rate", ctr, (19_000, 1000), 0.1),
]


def trial(world: World, rng: np.random.Generator) -> list[float]:
    """Return z-like signs of the claims: by ab_test, by Welch's test and by permutation; and if there was an answer."""
    arms = [world.users(rng, size, lift) for size, lift in zip(world.sizes, (0.0, world.lift), strict=True)]
    pair = tuple(pd.DataFrame(arm, columns=["value", "per"][: arm.shape[1]]) for arm in arms)
    columns = ["value", "per" if arms[0].shape[1] == 2 else None, None, None]
    moments = [experiments._moments(part, columns) for part in pair]
    welch = experiments._compared(moments, columns, PLAN, 1)
    ours = experiments._row(pair, columns, PLAN, 1)
    values = experiments._of_each(pd.concat(pair), columns)
    permuted = permutation(values, world.sizes, rng) if world.lift and len(set(world.sizes)) > 1 else np.nan
    p = [ours["p_value"], welch.get("p_value", np.nan), permuted]
    return [*(np.sign(welch["estimate"]) * (one <= ALPHA) for one in p), not np.isnan(p[0])]


def permutation(values: np.ndarray, sizes: tuple[int, int], rng: np.random.Generator) -> float:
    """Return p of the difference of means: twice the smaller side, as ours."""
    small = min(sizes)
    per_order = len(values) // small
    orders = -(-N_DRAWS // per_order)
    sums = np.ravel(
        [rng.permutation(values)[: per_order * small].reshape(per_order, small).sum(axis=1) for _ in range(orders)]
    )
    seen = values[sizes[0] :].sum() if sizes[1] == small else values[: sizes[0]].sum()
    sides = (sums <= seen + 1e-9 * abs(seen)).sum() + 1, (sums >= seen - 1e-9 * abs(seen)).sum() + 1
    return min(1.0, 2 * min(sides) / (len(sums) + 1))


def measured(world: World, trials: int, seed: int) -> dict[str, object]:
    """Return the rates of a world: claims of each way, and those that B is lower and higher."""
    rng = np.random.default_rng(seed)
    found = np.array([trial(world, rng) for _ in range(trials)])
    row = {"metric": world.words, "control": world.sizes[0], "treatment": world.sizes[1], "lift": world.lift}
    row |= {"trials": trials, "answered": round(float(found[:, 3].mean()), 4)}
    for way, claims in zip(("ours", "welch", "permutation"), found.T, strict=False):
        for side, sign in (("lower", -1), ("higher", 1)):
            row[f"{way}_{side}"] = round(float((claims == sign).mean()), 4)
    return row


def by_days(on_the_first: float, trials: int, seed: int) -> dict[str, object]:
    """Return how often equal arms differ at any of 14 looks by days, of users who come back on each later day."""
    rng, bounds, claims = np.random.default_rng(seed), looks_plan(14, alpha=ALPHA).bounds, 0
    for start in range(0, trials, 50):
        shape = (min(50, trials - start), 2, 1000)
        rates, clicks = rng.gamma(0.3, 1.0, shape), np.zeros(shape)
        came = np.where(rng.random(shape) < on_the_first, 0, rng.integers(0, 14, shape))
        beyond = np.zeros(shape[0], dtype=bool)
        for day, bound in enumerate(bounds):
            there = came <= day
            clicks += rng.poisson(rates) * there
            n = there.sum(axis=2)
            means = clicks.sum(axis=2) / n
            variances = ((clicks**2).sum(axis=2) / n - means**2) / (n - 1)
            beyond |= np.abs(means[:, 1] - means[:, 0]) > bound * np.sqrt(variances.sum(axis=1))
        claims += int(beyond.sum())
    return {"by days": on_the_first, "trials": trials, "claimed": round(claims / trials, 4)}


def rows() -> list[dict[str, object]]:
    """Return the figures of the file."""
    return json.loads(FIGURES.read_text("utf-8"))


def block(figures: list[dict[str, object]]) -> str:
    """Return the tables of the guide."""
    lines = []
    for better in (False, True):
        more = ["B better by", "ab_test", "Welch", "permutation"] if better else ["ab_test", "lower / higher", "Welch"]
        heads = ["metric", "users of A + B", *more]
        body = []
        for row in figures:
            if bool(row["lift"]) != better:
                continue
            ways = {way: 100 * (row[f"{way}_lower"] + row[f"{way}_higher"]) for way in ("ours", "welch", "permutation")}
            one_size = row["control"] == row["treatment"]
            sides = f"{100 * row['ours_lower']:.1f} / {100 * row['ours_higher']:.1f} %"
            cells = [row["metric"], f"{row['control']:,} + {row['treatment']:,}"]
            if better:
                shown = ["-" if one_size and way == "permutation" else f"{ways[way]:.0f} %" for way in ways]
                cells += [f"{100 * row['lift']:.0f} %", *shown]
            else:
                cells += [f"{ways['ours']:.1f} %", sides, f"{ways['welch']:.1f} %"]
            body.append(cells)
        lines.append(table(heads, body))
    return "\nIn the next table, B differs. The cells show the share of tests that found it:\n\n".join(lines)


def main() -> None:
    """Measure, print, and write unless it is a quick look."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    unequal.N_DRAWS = N_DRAWS
    figures = []
    for seed, world in enumerate([*EQUAL, *BETTER]):
        figures.append(measured(world, TRIALS // 20 if quick else TRIALS, seed))
        print(figures[-1], flush=True)
    for seed, share in enumerate((0.0, 0.6, 0.95)):
        figures.append(by_days(share, TRIALS // 20 if quick else 2 * TRIALS, 100 + seed))
        print(figures[-1], flush=True)
    if not quick:
        lines = ",\n".join(json.dumps(row) for row in figures)
        write_atomically(FIGURES, [f"[\n{lines}\n]\n".encode()])
        of_arms = [row for row in figures if "lift" in row]
        GUIDE.write_text(filled(GUIDE.read_text("utf-8"), block(of_arms), COMMENTS), "utf-8")


if __name__ == "__main__":
    main()
