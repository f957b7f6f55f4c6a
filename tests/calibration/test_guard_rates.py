"""The guard errs as often as its guide says, and no more often than is promised.

`guard_rates.json` is held against the promises. The code as it is now is held against the file: with few replications
and a seed of their own; in the worlds of the full circle by 2,000, which are held against the promises too.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from calibration import guard_experiments, guard_tables
from calibration.experiments import Effort, Row
from calibration.guard_experiments import BUDGET, GUARD_EXPERIMENTS, STREAMS, batch_p, gate_p
from calibration.worlds import scores_in

import rankeval as rk

QUICK = Effort(of_t=0, of_others=400, n_resamples=1999, in_families=299)
LONG = Effort(of_t=0, of_others=2000, n_resamples=4999, in_families=499)
SEED = 4
MEASURED = {Row(*(row[name] for name in Row._fields)): row for row in guard_tables.rows()}

UNPROMISED = (-np.inf, np.inf)


def promised(row: Row) -> tuple[float, float]:
    """Return the range that a figure is promised to be in."""
    if row.kind == "batch":
        return _of_batch(row)
    if row.kind == "gate":
        return 0.0, _most_moves(row)
    if (row.kind, row.quantity, row.comparisons) == ("climb", "false claims, Bonferroni by looks", BUDGET):
        return 0.20, 1.0
    if row.kind == "choice":
        return (-0.004, 0.004) if row.quantity == "bias" else (0.015, np.inf)
    return UNPROMISED


def _of_batch(row):
    if row.world in ("sym", "RR"):
        return 0.030, 0.070
    if row.world == "P@1":
        return 0.0, 0.065
    # Skewed scores are printed; there is a promise for few systems on 50 queries.
    return (0.0, 0.08) if row.n == 50 and row.comparisons <= 10 else UNPROMISED


def _most_moves(row):
    if row.world in ("skewed tweaks", "skew, tail below"):
        return {50: 0.12, 200: 0.09}[row.n]
    return 0.065


def of(kind):
    return {row: figure["rate"] for row, figure in MEASURED.items() if row.kind == kind}


def test_the_file_is_of_the_full_form_and_of_every_experiment():
    """4,000 replications with each of the seeds 1, 2, 3; a gate in each world, a batch of each size."""
    assert all(row["seeds"] == [1, 2, 3] and row["replications"] == 12_000 for row in MEASURED.values())
    assert {(row.world, row.n) for row in of("gate")} == {(stream, n) for stream in STREAMS for n in (50, 200)}
    assert {(row.world, row.n, row.comparisons) for row in of("batch")} == {
        (world, n, k) for world in ("sym", "RR", "P@1", "skew") for n in (25, 50) for k in (5, 10, 50)
    }
    assert {row.comparisons for row in of("choice")} == {10, 50}


def test_what_was_measured_is_promised():
    """With each of the three seeds."""
    rows = [row for row in MEASURED if promised(row) != UNPROMISED]
    assert {row.kind for row in rows} == {"batch", "gate", "climb", "choice"}
    broken = {}
    for row in rows:
        least, most = promised(row)
        rates = MEASURED[row]["rate_by_seed"]
        if not all(least <= rate <= most for rate in rates):
            broken[row] = (least, most, rates)
    assert broken == {}


def test_the_note_on_inflation_is_within_five_thousandths():
    rates = of("inflation")
    notes = [row for row in rates if row.quantity == "note"]
    assert {row.comparisons for row in notes} == {5, 10, 20, 50, 100, 200}
    for row in notes:
        assert rates[row] == pytest.approx(rates[row._replace(quantity="best less truth")], abs=0.005), row


def test_a_batch_of_three_is_valid_and_no_weaker_than_one_look():
    """Therefore the guide recommends it."""
    found = {(row.name, row.world[:7], row.quantity): rate for row, rate in of("habit").items()}
    assert found["best on test", "best, 0", "false claims"] > 0.15
    assert found["one look", "best, 0", "false claims"] <= 0.060
    assert found["batch", "best, 0", "false claims"] <= 0.060
    assert found["batch", "best, 6", "better ones shown"] >= found["one look", "best, 6", "better ones shown"]
    assert abs(found["batch", "best, 6", "bias"]) <= 0.004 < found["best on test", "best, 6", "bias"]


def is_quick(experiment):
    """Leave out the note on inflation, which tests/guard/test_inflation.py simulates, and sizes between others."""
    return "correlation" not in experiment.options and experiment.options.get("k", 10) != 5


FIRST = [
    {"world": "sym", "n": 50, "k": 10},
    {"world": "skew", "n": 25, "k": 10},
    {"stream": "sym", "n": 50},
    {"stream": "skewed tweaks", "n": 50},
    {"steps": BUDGET},
    {"k": 10},
]
"""Options of the experiments that the default circle takes."""


QUICK_CASES = [one for one in GUARD_EXPERIMENTS if is_quick(one) and one.options in FIRST]


def check(experiment, seed, effort):
    """Within four standard errors of both measurements, and two data sets more or less; return the rates."""
    rates = {}
    for row, values in experiment.run(seed, effort).items():
        known, rates[row] = MEASURED[row], values.mean()
        error = known["standard_error"] * np.sqrt(1 + known["replications"] / len(values))
        assert rates[row] == pytest.approx(known["rate"], abs=4 * error + 2 / len(values)), row
    return rates


@pytest.mark.parametrize("experiment", QUICK_CASES, ids=lambda experiment: experiment.label)
def test_the_code_errs_as_often_as_was_measured(experiment):
    assert check(experiment, SEED, QUICK)


@pytest.mark.world
@pytest.mark.parametrize("experiment", GUARD_EXPERIMENTS, ids=lambda experiment: experiment.label)
def test_the_code_errs_as_often_as_is_promised(experiment):
    """Three standard errors of a rate of 5 % are allowed for the 2,000 replications."""
    slack = 3 * np.sqrt(0.05 * 0.95 / LONG.of_others)
    for row, rate in check(experiment, SEED + 1, LONG).items():
        least, most = promised(row)
        assert least - slack <= rate <= most + slack, row


def test_a_batch_without_its_correction_is_found(monkeypatch):
    experiment = next(one for one in GUARD_EXPERIMENTS if one.options == {"world": "sym", "n": 50, "k": 10})
    monkeypatch.setattr(guard_experiments, "max_t", lambda d, _: np.zeros(d.shape[1]))
    with pytest.raises(AssertionError, match="kind='batch'"):
        check(experiment, SEED, QUICK)


@pytest.mark.parametrize(
    "world", ["sym", *(pytest.param(one, marks=pytest.mark.rest) for one in ("RR", "P@1", "skew"))]
)
def test_data_sets_side_by_side_are_tested_as_each_is_by_the_library(world):
    many = scores_in(world, 25, 6, 8, [3, 25])
    d = (many[..., 1:] - many[..., :1]).transpose(1, 0, 2)
    in_batch, at_gate = batch_p(many, n_resamples=399, seed=5), gate_p(d, n_resamples=399, seed=5)
    for scores, of_batch, of_gate in zip(many, in_batch, at_gate, strict=True):
        systems = {f"s{one}": pd.DataFrame({"RR": column}) for one, column in enumerate(scores.T)}
        options = {"baseline": "s0", "test": "randomization", "n_resamples": 399, "rng": 5}
        batch, gate = (
            rk.compare(systems, correction="max_t", **options),
            rk.compare(systems, correction="none", claim="better", **options),
        )
        assert batch.table["p_adjusted"].to_numpy() == pytest.approx(of_batch, abs=1e-12)
        assert gate.table["p_value"].to_numpy() == pytest.approx(of_gate, abs=1e-12)


@pytest.fixture
def registered(tmp_path):
    """Rankings of 16 queries, so that all patterns of signs are counted, and their reciprocal ranks."""
    n, n_systems = 16, 6
    ranks = np.random.default_rng(6).integers(1, 12, (n, n_systems))
    scores = np.where(ranks <= 10, 1 / ranks, 0.0)
    others = np.broadcast_to(np.arange(10, 0, -1), (n, n_systems, 10))
    rankings = np.concatenate([11.5 - ranks[..., None], others], axis=2).transpose(0, 2, 1).reshape(-1, n_systems)
    guard = rk.Guard("project", ledger=str(tmp_path / "ledger"))
    X = np.random.default_rng(0).normal(size=(len(rankings), 3))
    test = guard.register("test", X, np.tile([1] + 10 * [0], n), qid=np.repeat(np.arange(n), 11))
    return guard, test, {f"s{one}": column for one, column in enumerate(rankings.T)}, scores


def test_open_corrects_a_batch_so(registered):
    guard, test, systems, scores = registered
    plan = guard.freeze(test, systems=systems, baseline="s0", measure="RR@10", n_resamples=399, rng=5)
    table = guard.open(plan).table
    assert table["difference"].to_numpy() == pytest.approx((scores[:, 1:] - scores[:, :1]).mean(axis=0))
    assert table["p_adjusted"].to_numpy() == pytest.approx(batch_p(scores[None], n_resamples=399, seed=5)[0], abs=1e-12)


@pytest.mark.filterwarnings("ignore:gate")  # one gate after the other on the same queries
def test_a_gate_decides_so(registered):
    """At levels just below and just above the p-value of each candidate, over a budget of 2."""
    guard, test, systems, scores = registered
    worst = int(scores.mean(axis=0).argmin())
    p, decided = gate_p(scores - scores[:, [worst]], n_resamples=9999, seed=5), set()
    for (name, system), of_candidate in zip(systems.items(), p, strict=True):
        for alpha in (1.99 * of_candidate, 2.01 * of_candidate):
            if alpha < 0.5:
                terms = {"baseline": systems[f"s{worst}"], "measure": "RR@10", "budget": 2, "alpha": alpha}
                accepted = guard.gate(test, name=f"{name} {alpha}", **terms).decide(name, system).accepted
                assert accepted == (alpha / 2 > of_candidate)
                decided.add((name, accepted))
    assert len(decided) >= 4


def test_the_block_of_the_guide_is_replaced_between_its_comments():
    begin, end = guard_tables.COMMENTS
    page = f"before\n{begin}\nold line\n{end}\nafter\n"
    filled = guard_tables.filled(page, "new table")
    assert filled == guard_tables.filled(filled, "new table")
    assert "old line" not in filled
    assert "new table" in filled
    assert filled.startswith("before\n")
    assert filled.endswith("\nafter\n")
    with pytest.raises(SystemExit, match="once each"):
        guard_tables.filled("a page without the comments", "new table")


def test_the_guide_has_the_measured_figures():
    """The guide to the guard is written apart from them; it must keep the two comments."""
    for guide in guard_tables.GUIDE.parent.glob(guard_tables.GUIDE.name):
        text = guide.read_text("utf-8")
        assert text == guard_tables.filled(text, guard_tables.block()), "run: python tests/calibration/guard_tables.py"
