"""Experiments on the promises of the guard: batches, the gate, the note on inflation, the best of a batch.

They are experiments like those of `experiments`, by the functions that the guard calls: `guard.open` compares the
systems of a plan by the randomisation test and max-T, two-sided; `guard.gate` tests each candidate by the randomisation
test, one-sided at alpha over its budget. Data sets stand side by side as columns and are tested some at a time: those
tested together share their sign patterns, which are drawn anew for each block of data sets.

`test_guard_rates` holds `batch` against `rk.compare` itself. `measure_guard` measures the full form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from calibration.experiments import (
    ALPHA,
    AT_ONCE,
    LARGE,
    MEDIUM,
    SMALL,
    Effort,
    Experiment,
    Outcomes,
    Row,
    Wanted,
    best_of_several,
)
from calibration.worlds import WORLDS, World, null_differences, scores_in

from rankeval.guard.standings import inflation_of
from rankeval.significance import paired_test
from rankeval.significance.declarations import Settings
from rankeval.significance.multiple import max_t, value_of_choice

BUDGET = 20
"""Candidates that a gate takes, and steps of the climb beside it."""

TWEAK_SD = 0.10
"""Of the differences that a tweak makes on single queries."""

TAILS = {"tail above": 1.0, "tail below": -1.0}
"""Signs of skewed differences. Those of the world "skew" have their tail above: the systems are more spread out."""


class GuardExperiment(Experiment):
    """One call that gives rates; there are no names to choose from."""

    def run(self, seed: int, effort: Effort, _wanted: Wanted | None = None) -> Outcomes:
        return self.function(seed=seed, effort=effort, **self.options)


def batch_p(scores, *, n_resamples, seed):
    """Return the adjusted p-values of a batch as `guard.open` has them, the baseline being the first system.

    Parameters
    ----------
    scores : ndarray of shape (n_replications, n, n_systems)
        Of data sets tested together.
    n_resamples, seed : int
        Sign patterns.

    Returns
    -------
    ndarray of shape (n_replications, n_systems - 1)
    """
    d = (scores[..., 1:] - scores[..., :1]).transpose(1, 0, 2)
    raw = _flipped(d, n_resamples=n_resamples, rng=seed)
    settings = Settings(n_resamples=n_resamples, rng=seed)
    joint = np.array([max_t(d[:, one], settings) for one in range(d.shape[1])])
    return np.maximum(joint, raw)


def gate_p(d, *, n_resamples, seed):
    """Return the p-values of candidates as a gate has them; `d` has a query per row, and any number of axes behind."""
    return _flipped(d, alternative="greater", n_resamples=n_resamples, rng=seed)


def batch(world, n, k, *, seed, effort) -> Outcomes:
    """Count batches with a false claim: k systems against one baseline, all equally good."""
    parts = []
    for start, size in _blocks(effort):
        scores = scores_in(world, n, k + 1, size, [seed, n, k, start, 11])
        p = batch_p(scores, n_resamples=effort.in_families, seed=1_000_003 * seed + start)
        parts.append((p <= ALPHA).any(axis=1))
    return {Row("batch", "open", "randomization", world, n, k, "two-sided", "false claims"): np.concatenate(parts)}


def shared(world, sign=1.0):
    """Return a function that draws differences of equally good candidates from one baseline, `(n, size, k)`."""

    def draw(n, k, size, rng):
        scores = scores_in(world, n, k + 1, size, rng)
        return sign * (scores[..., 1:] - scores[..., :1]).transpose(1, 0, 2)

    return draw


def independent(world, sign=1.0):
    """Return a function that draws differences of tweaks that are worth nothing, unlike each other, `(n, size, k)`."""

    def draw(n, k, size, rng):
        return sign * null_differences(world, n, size * k, rng).reshape(n, size, k)

    return draw


@dataclass(frozen=True)
class Stream:
    """Candidates that arrive at a gate.

    Attributes
    ----------
    words : str
        What they are like, for the guide.
    draw : callable
        Draws their differences from the baseline.
    """

    words: str
    draw: Callable[..., np.ndarray]


STREAMS = {
    "sym": Stream("exchangeable candidates against one baseline", shared("sym")),
    "RR": Stream("sparse RR against one baseline", shared("RR")),
    "skew": Stream("low scores, candidates more spread out than their one baseline", shared("skew")),
    "skew, tail below": Stream(
        "low scores, one baseline more spread out than its candidates: they mostly gain a little and seldom lose much",
        shared("skew", TAILS["tail below"]),
    ),
    "skewed tweaks": Stream(
        "each difference drawn by itself, skewed: tweaks that mostly gain a little and seldom lose much",
        independent("skew", TAILS["tail below"]),
    ),
    "skewed tweaks, tail above": Stream(
        "each difference drawn by itself, skewed: tweaks that mostly lose a little and seldom gain much",
        independent("skew", TAILS["tail above"]),
    ),
    "tweaks": Stream(
        "each difference drawn by itself, normal: the tweaks of the greedy climb",
        lambda n, k, size, rng: np.random.default_rng(rng).normal(0, TWEAK_SD, (n, size, k)),
    ),
}


def gate(stream, n, *, seed, effort, budget=BUDGET) -> Outcomes:
    """Count gates that accept a candidate although none is better than the baseline."""
    parts = []
    for start, size in _blocks(effort):
        d = STREAMS[stream].draw(n, budget, size, [seed, n, start, 12])
        p = gate_p(d, n_resamples=effort.n_resamples, seed=1_000_003 * seed + start)
        parts.append((p <= ALPHA / budget).any(axis=1))
    return {Row("gate", "gate", "randomization", stream, n, budget, "greater", "moves"): np.concatenate(parts)}


def climb(steps, *, seed, effort, n=MEDIUM) -> Outcomes:
    """Keep every tweak by which the test mean rises, though none is worth anything, and test the last system.

    By itself, and at the level that Bonferroni leaves to each of the looks.
    """
    generator = np.random.default_rng([seed, n, steps, 13])
    gained = np.zeros((n, effort.of_others))
    for _ in range(steps):
        tweak = generator.normal(0, TWEAK_SD, gained.shape)
        gained += tweak * (tweak.mean(axis=0) > 0)
    p = paired_test("t", gained, alternative="greater").p_value
    named = {
        "false claims": p <= ALPHA,
        "false claims, Bonferroni by looks": p <= ALPHA / steps,
        "gain that is none": gained.mean(axis=0),
    }
    return {Row("climb", "climb", "t", "tweaks", n, steps, "greater", name): found for name, found in named.items()}


def inflation(correlation, k, *, seed, effort, n=MEDIUM) -> Outcomes:
    """Take how much better the best of k equally good systems looks than it is, and the figure of the guard's note."""
    world, found = _alike(correlation), {"best less truth": [], "note": []}
    for start, size in _blocks(effort):
        # The mean of all is as good as the truth, and less noisy.
        for scores in scores_in(world, n, k + 1, size, [seed, n, k, start, 14])[..., 1:]:
            means = scores.mean(axis=0)
            found["best less truth"].append(means.max() - means.mean())
            found["note"].append(inflation_of(list(scores.T), k))
    name = f"correlation {correlation}"
    return {Row("inflation", "note", "none", name, n, k, "none", what): np.array(v) for what, v in found.items()}


def best_of_batch(k, *, seed, effort) -> Outcomes:
    """Take the error of the corrected best of a batch of k equally good variants, and that of the largest mean."""
    # A choice takes half of the replications of the others elsewhere; here it takes as many.
    effort = replace(effort, of_others=2 * effort.of_others)
    outcomes = best_of_several("all 0", k, seed=seed, effort=effort, wanted=lambda _: True)
    return {row: values for row, values in outcomes.items() if row.quantity in ("bias", "bias of the plain mean")}


def habits(truly_better, *, seed, effort, n=MEDIUM, tries=30, gain=0.03) -> Outcomes:
    """Compare ways to find and to confirm the best of many tries, on so many development and as many test queries.

    `truly_better` of the tries are better than the baseline. The first way never looks at development data.
    """
    true = gain * (np.arange(tries) < truly_better)
    found: dict[tuple[str, str], list[float]] = {}
    for number in range(effort.of_others):
        scores = scores_in("best", 2 * n, tries + 1, 1, [seed, number, truly_better, 15])[0]
        scores[:, 1:] += true
        dev, test = scores[:n], scores[n:]
        settings = Settings(n_resamples=effort.in_families, rng=1_000_003 * seed + number)
        for way, chosen in _chosen(dev, test).items():
            for what, value in _reported(test, chosen, true, settings, corrected=way == "batch").items():
                found.setdefault((way, what), []).append(value)
    name = f"best, {truly_better} of {tries} are +{gain}"
    return {
        Row("habit", way, "randomization", name, n, tries, "two-sided", what): np.array(values, dtype=float)
        for (way, what), values in found.items()
    }


WAYS = {
    "best on test": "all tries scored on the test queries, the best one reported with its own p",
    "one look": "the best on development queries frozen and opened, one look",
    "batch": "the best three on development queries frozen and opened as one batch (max-T, corrected best)",
}


def _chosen(dev, test):
    """Return the tries that each way reports."""
    of_dev, of_test = (np.argsort(-(part[:, 1:] - part[:, :1]).mean(axis=0), kind="stable") for part in (dev, test))
    return dict(zip(WAYS, (of_test[:1], of_dev[:1], of_dev[:3]), strict=True))


def _reported(test, chosen, true, settings, *, corrected):
    """Return whether there is a false claim, whether a truly better try is shown, and the error of the value told."""
    gains = test[:, 1 + chosen] - test[:, :1]
    p = batch_p(test[None][..., [0, *(1 + chosen)]], n_resamples=settings.n_resamples, seed=settings.rng)[0]
    leader = int(gains.mean(axis=0).argmax())
    told = value_of_choice(gains, settings).estimate if corrected else gains[:, leader].mean()
    shown, up = p <= ALPHA, gains.mean(axis=0) > 0
    return {
        "false claims": (shown & ((true[chosen] == 0) | ~up)).any(),
        "better ones shown": (shown & up & (true[chosen] > 0)).any(),
        "bias": told - true[chosen[leader]],
    }


def _flipped(d, **options):
    """Return the p-values of the randomisation test; `d` has a query per row, and any number of axes behind."""
    p = paired_test("randomization", d.reshape(len(d), -1), **options).p_value
    return p.reshape(d.shape[1:])


def _alike(correlation) -> World:
    return replace(WORLDS["best"], correlation=correlation)


def _blocks(effort: Effort) -> Iterator[tuple[int, int]]:
    """Yield the first data set of each block and how many there are in it."""
    for start in range(0, effort.of_others, AT_ONCE):
        yield start, min(AT_ONCE, effort.of_others - start)


GUARD_EXPERIMENTS = [
    *(
        GuardExperiment(batch, {"world": world, "n": n, "k": k})
        for world in ("sym", "RR", "P@1", "skew")
        for n in (SMALL, MEDIUM)
        for k in (5, 10, 50)
    ),
    *(GuardExperiment(gate, {"stream": stream, "n": n}) for stream in STREAMS for n in (MEDIUM, 200)),
    *(GuardExperiment(climb, {"steps": steps}) for steps in (5, 10, BUDGET, 50)),
    *(
        GuardExperiment(inflation, {"correlation": correlation, "k": k})
        for correlation in (0.7, 0.9, 0.99)
        for k in (5, 10, 20, 50, LARGE, 200)
    ),
    *(GuardExperiment(best_of_batch, {"k": k}) for k in (10, 50)),
    *(GuardExperiment(habits, {"truly_better": better}) for better in (0, 6)),
]
"""All experiments on the guard."""
