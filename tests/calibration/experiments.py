"""Experiments in which tests, corrections and claims are tried on worlds whose truth is known.

An experiment draws data sets (replications) and returns, for each `Row` that it speaks of, one number a replication:
1 if there was a false claim, else 0; or the share of true differences found. Replications stand side by side as
columns, so a test on thousands of data sets is one matrix product.

The list at the end, `EXPERIMENTS`, is what `measure_rates` measures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
from calibration.worlds import (
    BREAKAGES,
    equal_learners,
    null_differences,
    scores_in,
    shifted_differences,
    variants_beside_unlike_systems,
)

from rankeval.significance import CORRECTIONS, FOLD_TESTS, TESTS, paired_test
from rankeval.significance.catalogue import BEST, FALSE_CLAIMS
from rankeval.significance.declarations import CLAIMS, Settings
from rankeval.significance.multiple import holm, value_of_choice
from rankeval.significance.paired import corrected_resampled_t, widened
from rankeval.significance.running import adjust_by_family, run, with_family_level

ALPHA = 0.05
SIDES = ("two-sided", "greater", "less")
SMALL, MEDIUM, LARGE = 25, 50, 100
AT_ONCE = 50
"""Families that are tested together. They share their resamples, so these are kept few: else they would all be wrong in
the same direction."""


class Row(NamedTuple):
    """What a rate speaks of."""

    kind: str
    name: str
    test: str
    world: str
    n: int
    comparisons: int
    sides: str
    quantity: str


@dataclass(frozen=True)
class Effort:
    """How much work goes into a rate: replications of tests with a formula, of others, and resamples in each."""

    of_t: int
    of_others: int
    n_resamples: int = 999
    in_families: int = 499

    @property
    def of_choices(self) -> int:
        """Half of the others: a choice takes the time of several families."""
        return self.of_others // 2


Outcomes = dict[Row, np.ndarray]
Wanted = Callable[[str], bool]
"""Whether a test or correction of this name is to be measured."""


@dataclass(frozen=True)
class Experiment:
    """One call that gives rates: a function, and the options that it is called with."""

    function: Callable[..., Outcomes]
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return " ".join([self.function.__name__, *(f"{name}={value}" for name, value in self.options.items())])

    def run(self, seed: int, effort: Effort, wanted: Wanted = lambda _: True) -> Outcomes:
        return self.function(seed=seed, effort=effort, wanted=wanted, **self.options)


GAINS = {
    "all 0": lambda k, _: np.zeros(k),
    "all +.03": lambda k, _: np.full(k, 0.03),
    "spread .02": lambda k, generator: generator.normal(0, 0.02, k),
    "one +.03": lambda k, generator: 0.03 * (generator.permutation(k) == 0),
    "one +.05": lambda k, generator: 0.05 * (generator.permutation(k) == 0),
}
"""True gains of k candidates over the baseline."""


@dataclass(frozen=True)
class Choice:
    """The value of the choice of the system with the largest mean, beside the declarations of the library."""

    words: str


CHOICES = {"best": Choice(BEST)}


def declared(kind):
    """Return the declarations of one kind, by their names."""
    return {"test": TESTS, "correction": CORRECTIONS, "fold test": FOLD_TESTS, "claim": CLAIMS, "breakage": CLAIMS,
            "choice": CHOICES}[kind]  # fmt: skip


def one_pair(world, n, *, seed, effort, wanted, sides=SIDES) -> Outcomes:
    """Count false claims of every test about two equally good systems."""
    many = null_differences(world, n, effort.of_t, [seed, n, 1])
    found = {}
    for name in filter(wanted, TESTS):
        d = many if name == "t" else many[:, : effort.of_others]
        for side in sides:
            p = paired_test(name, d, alternative=side, n_resamples=effort.n_resamples, rng=seed).p_value
            found[Row("test", name, name, world, n, 1, side, "false claims")] = p <= ALPHA
    return found


def one_true_difference(n, *, seed, effort, wanted, difference=0.05, sd=0.183) -> Outcomes:
    """Count the true differences found: normal, .05 at a standard deviation of .183."""
    many = shifted_differences(difference, sd, n, effort.of_t, [seed, n, 2])
    found = {}
    for name in filter(wanted, TESTS):
        d = many if name in ("t", "randomization") else many[:, : effort.of_others]
        p = paired_test(name, d, n_resamples=effort.n_resamples, rng=seed).p_value
        found[Row("test", name, name, "normal +.05, sd .183", n, 1, "two-sided", "power")] = p <= ALPHA
    return found


def shared_baseline(world, n, k, *, seed, effort, wanted, sides=("two-sided",)) -> Outcomes:
    """Count families with a false claim: k systems against one baseline, all equally good."""
    tables = _tables(effort, lambda size, part: scores_in(world, n, k + 1, size, [seed, n, k, part]))
    pairs = [(0, system) for system in range(1, k + 1)]
    return _in_families(tables, pairs, f"{world}, one baseline", seed, effort, wanted, sides)


def all_pairs(world, n, k, *, seed, effort, wanted) -> Outcomes:
    """Count families with a false claim: all pairs of k equally good systems."""
    tables = _tables(effort, lambda size, part: scores_in(world, n, k, size, [seed, n, k, part, 3]))
    pairs = list(combinations(range(k), 2))
    return _in_families(tables, pairs, f"{world}, all pairs", seed, effort, wanted)


def near_identical(n, *, seed, effort, wanted) -> Outcomes:
    """Count families with a false claim: all pairs of 12 variants of one system and 3 unlike ones, all equally good."""
    tables = _tables(effort, lambda size, part: variants_beside_unlike_systems(n, size, [seed, n, part, 4]))
    pairs = list(combinations(range(15), 2))
    return _in_families(tables, pairs, "near-identical variants", seed, effort, wanted)


def half_better(n, k, *, seed, effort, wanted, gain=0.12) -> Outcomes:
    """Count false claims beside true ones: k systems against one baseline, half of them better by .12."""
    truth = np.repeat([0.0, gain], [k - k // 2, k // 2])

    def draw(size, part):
        return scores_in("sym", n, k + 1, size, [seed, n, k, part, 5]) + np.concatenate([[0.0], truth])

    pairs = [(0, system) for system in range(1, k + 1)]
    tables = _tables(effort, draw)
    return _in_families(tables, pairs, "sym, half are +.12", seed, effort, wanted, truth=truth)


def ten_times_ten_folds(*, seed, effort, wanted) -> Outcomes:
    """Count false claims about two equally good learners, cross-validated: over folds, and over queries pooled."""
    drawn = [equal_learners([seed, one, 5]) for one in range(effort.of_others)]
    by_fold, by_query = (np.stack(one, axis=1) for one in zip(*drawn, strict=True))
    found = {}
    if wanted("corrected_resampled_t"):
        for world, folds in (("10 x 10 folds", by_fold), ("one run of 10 folds", by_fold[:10])):
            row = Row("fold test", *FOLD_TESTS, *FOLD_TESTS, world, len(folds), 1, "two-sided", "false claims")
            found[row] = corrected_resampled_t(widened(folds, 1 / 9), Settings()).p_value <= ALPHA
    if wanted("t"):
        for world, d in (("10 x 10 folds, as if independent", by_fold), ("queries pooled over 10 folds", by_query)):
            p = paired_test("t", d).p_value
            found[Row("test", "t", "t", world, len(d), 1, "two-sided", "false claims")] = p <= ALPHA
    return found


def folds_with_signal(*, seed, effort, wanted) -> Outcomes:
    """Count the true differences found between two learners: the signal of one is a quarter stronger."""
    if not wanted("corrected_resampled_t"):
        return {}
    drawn = [equal_learners([seed, one, 6], gain=1.25)[0] for one in range(effort.of_others)]
    by_fold, found = np.stack(drawn, axis=1), {}
    for world, folds in (
        ("10 x 10 folds, signal x 1.25", by_fold),
        ("one run of 10 folds, signal x 1.25", by_fold[:10]),
    ):
        row = Row("fold test", *FOLD_TESTS, *FOLD_TESTS, world, len(folds), 1, "two-sided", "power")
        found[row] = corrected_resampled_t(widened(folds, 1 / 9), Settings()).p_value <= ALPHA
    return found


def at_the_edge(world, n, *, seed, effort, wanted, margin=0.10) -> Outcomes:
    """Count false claims about a gain that lies on the margin; skewed gains with their tail on either side.

    Tests are left out whose note names another hypothesis than one about the mean, and those that are liberal already.
    """
    many, found = null_differences(world, n, effort.of_t, [seed, n, 7]), {}
    of_means = [name for name, test in TESTS.items() if not test.note and not test.liberal]
    for claim in filter(wanted, CLAIMS):
        edges = {side: multiple * margin for side, multiple in CLAIMS[claim]}
        for (side, edge), (tail, sign) in product(edges.items(), (("above", 1), ("below", -1))):
            for name in of_means:
                d = sign * (many if name == "t" else many[:, : effort.of_others]) + edge
                options = {"n_resamples": effort.n_resamples, "rng": seed, "claim": claim, "margin": margin}
                p = paired_test(name, d, **options, unseen=1).p_value
                place = f"{world}, tail {tail}" if world == "skew" else world
                words = f"{place}, gain {edge:+.2f}"
                sides = "two one-sided" if CLAIMS[claim].sides == 2 else side
                found[Row("claim", claim, name, words, n, 1, sides, "false claims")] = p <= ALPHA
    return found


def rare_breakage(place, n, *, seed, effort, wanted) -> Outcomes:
    """Count false claims that a change does no harm, which breaks few queries and loses as much as the margin.

    "equivalent" is measured by t alone: its p-value is never below that of "not_worse".
    """
    world = BREAKAGES[place]
    many, found = world.draw(np.random.default_rng([seed, n, place, 10]), (n, effort.of_t)), {}
    cases = [("not_worse", name) for name in ("t", "bootstrap", "randomization")] + [("equivalent", "t")]
    for claim, name in cases:
        d = many if name == "t" else many[:, : effort.of_others]
        for unseen, quantity in ((1, FALSE_CLAIMS), (0, "plain test")):
            if wanted(claim) and (unseen or name == "t"):
                options = {"n_resamples": effort.n_resamples, "rng": seed, "claim": claim, "margin": world.margin}
                p = paired_test(name, d, **options, unseen=unseen).p_value
                found[Row("breakage", claim, name, world.words, n, 1, "greater", quantity)] = p <= ALPHA
    return found


def no_harm_found(n, *, seed, effort, wanted, sd=0.2, margin=0.06) -> Outcomes:
    """Count how often a change without any effect is shown to do no harm."""
    d = np.random.default_rng([seed, n, 11]).normal(0, sd, (n, effort.of_t))
    world = f"normal, no effect, sd {sd:g}, margin {margin:g}"
    return {
        Row("breakage", claim, "t", world, n, 1, "greater", quantity): paired_test(
            "t", d, claim=claim, margin=margin, unseen=unseen
        ).p_value
        <= ALPHA
        for claim in ("not_worse", "equivalent")
        for unseen, quantity in ((1, "power"), (0, "power of the plain test"))
        if wanted(claim)
    }


def best_of_several(truth, k, *, seed, effort, wanted, n=MEDIUM, world="best") -> Outcomes:
    """Take the error of the value of the choice "largest mean", and whether and how narrowly its interval holds it.

    Given that the chosen system is shown better (t, Holm), the same is taken of these data sets alone; where gains are
    skewed these are too few.
    """
    if not wanted("best"):
        return {}
    scores = scores_in(world, n, k + 1, effort.of_choices, [seed, n, k, 8])
    true_gains = np.array([GAINS[truth](k, np.random.default_rng([seed, k, one, 9])) for one in range(len(scores))])
    scores[..., 1:] += true_gains[:, None, :]
    found: dict[str, list[float]] = {}
    for number, (gains, true) in enumerate(zip(scores[..., 1:] - scores[..., :1], true_gains, strict=True)):
        chosen = value_of_choice(gains, Settings(n_resamples=effort.n_resamples, rng=1_000_003 * seed + number))
        worth, t = true[chosen.leader], paired_test("t", gains)
        width = t.ci_high[chosen.leader] - t.ci_low[chosen.leader]
        outcomes = {
            "bias": chosen.estimate - worth,
            "coverage": chosen.ci_low <= worth <= chosen.ci_high,
            "width by Student's": (chosen.ci_high - chosen.ci_low) / width,
            "bias of the plain mean": gains[:, chosen.leader].mean() - worth,
            "coverage of Student's": t.ci_low[chosen.leader] <= worth <= t.ci_high[chosen.leader],
        }
        if world == "best" and holm(t.p_value)[chosen.leader] <= ALPHA and gains[:, chosen.leader].mean() > 0:
            outcomes |= {f"{name}, if shown better": outcomes[name] for name in ("bias", "coverage")}
        for quantity, value in outcomes.items():
            found.setdefault(quantity, []).append(float(value))
    return {
        Row("choice", "best", "t", f"{world}, {truth}", n, k, "two-sided", quantity): np.array(values)
        for quantity, values in found.items()
    }


def _tables(effort, draw) -> Iterator[tuple[int, np.ndarray]]:
    """Yield data sets some at a time, with the number of the first."""
    for start in range(0, effort.of_others, AT_ONCE):
        yield start, draw(min(AT_ONCE, effort.of_others - start), start)


def _in_families(tables, pairs, world, seed, effort, wanted, sides=("two-sided",), truth=0.0) -> Outcomes:
    """Count families with a false claim, the share of true ones found, and families with all intervals right.

    Data sets take the place of measures, each of them a family; raw p-values are of the t test.
    """
    found: dict[Row, list[np.ndarray]] = {}
    baseline, system = (list(part) for part in zip(*pairs, strict=True))
    truth = np.broadcast_to(truth, len(pairs))
    for start, scores in tables:
        d = (scores[:, :, system] - scores[:, :, baseline]).transpose(1, 0, 2).reshape(scores.shape[1], -1)
        for side in sides:
            settings = Settings(side, n_resamples=effort.in_families, rng=1_000_003 * seed + start)
            for name in filter(wanted, CORRECTIONS):
                if CORRECTIONS[name].all_pairs_only and (side != "two-sided" or not any(baseline)):
                    continue
                tested = run(TESTS["t"], d, with_family_level(settings, CORRECTIONS[name], len(pairs)))
                adjusted = adjust_by_family(
                    CORRECTIONS[name],
                    tested,
                    d,
                    scores.transpose(1, 2, 0),
                    pairs,
                    len(pairs),
                    settings,
                )
                for quantity, values in _outcomes(adjusted, truth).items():
                    row = Row("correction", name, "t", world, len(d), len(pairs), side, quantity)
                    found.setdefault(row, []).append(values)
    return {row: np.concatenate(values) for row, values in found.items()}


def _outcomes(adjusted, truth) -> dict[str, np.ndarray]:
    p, low, high = (part.reshape(-1, len(truth)) for part in (adjusted.p_value, adjusted.ci_low, adjusted.ci_high))
    outcomes = {"false claims": (p[:, truth == 0] <= ALPHA).any(axis=1)}
    if truth.any():
        outcomes["power"] = (p[:, truth != 0] <= ALPHA).mean(axis=1)
    if not np.isnan(low).any():
        outcomes["coverage"] = ((low <= truth) & (truth <= high)).all(axis=1)
    return outcomes


EXPERIMENTS = [
    *(
        Experiment(one_pair, {"world": world, "n": n})
        for world in ("sym", "beta", "skew", "RR", "P@1", "exponential")
        for n in (10, SMALL, MEDIUM, LARGE)
    ),
    *(Experiment(one_true_difference, {"n": n}) for n in (10, SMALL, MEDIUM, LARGE)),
    *(
        Experiment(shared_baseline, {"world": world, "n": n, "k": k, "sides": sides})
        for world in ("sym", "skew", "RR", "P@1")
        for n, k, sides in ((SMALL, 10, SIDES), (SMALL, 50, SIDES), (MEDIUM, 10, SIDES), (MEDIUM, 50, SIDES[:1]))
    ),
    *(Experiment(shared_baseline, {"world": world, "n": 10, "k": 10, "sides": SIDES}) for world in ("sym", "skew")),
    *(
        Experiment(shared_baseline, {"world": "exponential", "n": n, "k": k, "sides": sides})
        for n in (10, SMALL, MEDIUM)
        for k, sides in ((10, SIDES), (50, SIDES[:1]))
    ),
    *(
        Experiment(shared_baseline, {"world": world, "n": n, "k": k, "sides": SIDES[:1]})
        for world, n in (("sym", MEDIUM), ("beta", MEDIUM), ("skew", MEDIUM), ("skew", SMALL))
        for k in (5, 20)
    ),
    Experiment(all_pairs, {"world": "sym", "n": MEDIUM, "k": 10}),
    *(
        Experiment(all_pairs, {"world": world, "n": n, "k": 8})
        for world, n in (("sym", 10), *product(("mixed exponential",), (10, SMALL, MEDIUM)))
    ),
    Experiment(near_identical, {"n": MEDIUM}),
    Experiment(half_better, {"n": MEDIUM, "k": 10}),
    *(
        Experiment(at_the_edge, {"world": world, "n": n})
        for world in ("sym", "beta", "skew")
        for n in (SMALL, MEDIUM, 200)
    ),
    *(
        Experiment(rare_breakage, {"place": place, "n": n})
        for place in range(len(BREAKAGES))
        for n in (10, 25, 50, 100, 200, 1000)
    ),
    *(Experiment(no_harm_found, {"n": n}) for n in (50, 100, 200)),
    *(Experiment(best_of_several, {"truth": truth, "k": k}) for truth in GAINS for k in (10, 50)),
    *(
        Experiment(best_of_several, {"truth": "all 0", "k": 10, "n": n, "world": world})
        for world, n in product(("exponential", "exponential, tail below"), (10, SMALL, MEDIUM))
    ),
    Experiment(ten_times_ten_folds),
    Experiment(folds_with_signal),
]
"""All experiments."""
