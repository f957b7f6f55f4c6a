"""infAP of a random part of the judgments is as near to AP of all as the guide says.

`sample_rates.json` is held against the promises, and the code as it is now against the file: with a few samples of
other seeds.
"""

from __future__ import annotations

import numpy as np
import pytest
from calibration.measure_judging_samples import (
    COLLECTIONS,
    CONVENTION,
    GUIDE,
    RATES,
    SAMPLES,
    SHARED,
    Samples,
    block,
    collection,
    like,
    rows,
)

import rankeval as rk


def of(folder, rate):
    return like({"collection": folder, "rate": rate})


def test_the_file_is_of_every_collection_and_rate():
    assert {(row["collection"], row["rate"]) for row in rows()} == {
        (name, rate) for name in COLLECTIONS for rate in RATES
    }
    assert {row["samples"] for row in rows()} == {SAMPLES}


@pytest.mark.parametrize("folder", ["trec_covid_r5", "web2012"])
def test_where_queries_have_many_relevant_documents_the_mean_is_within_a_hundredth(folder):
    """Of every run, at 40 %; at 20 % over the queries with more than ten, which are 49 and 47 of 50."""
    assert max(abs(row["bias"]) for row in of(folder, 0.4)) <= 0.01
    assert max(abs(row["bias_many"]) for row in of(folder, 0.2)) <= 0.01
    assert {row["queries_many"] for row in of(folder, 0.2)} == {49 if folder == "trec_covid_r5" else 47}


def test_one_query_with_nine_relevant_documents_makes_the_rest_of_the_error_on_trec_covid():
    """As the guide says: at 20 %, -.013 with it and -.009 without, for the run with the largest error."""
    worst = min(of("trec_covid_r5", 0.2), key=lambda row: row["bias"])
    assert (worst["queries_few"], round(worst["bias"], 3), round(worst["bias_many"], 3)) == (1, -0.013, -0.009)
    assert worst["bias_few"] < -0.2


def test_with_few_relevant_documents_a_query_it_is_too_low():
    """Samples without a relevant document score 0: of Cranfield, with six a query, nobody should sample a fifth."""
    assert min(row["bias"] for row in of("cranfield", 0.2)) < -0.05


@pytest.mark.shared
@pytest.mark.parametrize("folder", COLLECTIONS)
def test_the_code_estimates_as_was_measured(folder):
    """Within four standard errors of 12 samples of other seeds, for the first run; evaluate agrees with the arrays."""
    known = of(folder, 0.2)[0]
    runs, judged = collection(SHARED / folder, COLLECTIONS[folder])
    samples, run = Samples(judged), runs[known["run"]]
    scores = []
    for seed in range(10_000, 10_012):
        found = rk.evaluate(samples.qrels(samples.drawn(0.2, seed)), run, measures="infAP", convention=CONVENTION)
        assert set(found.queries) == set(samples.queries)
        scores.append(float(found.mean()["infAP"]))
    arrays = samples.inf_ap(*samples.retrieved(run), samples.drawn(0.2, seed))
    assert scores[-1] == pytest.approx(arrays.mean(), abs=1e-12)
    within = 4 * known["sd"] * (1 / 12 + 1 / SAMPLES) ** 0.5
    assert np.mean(scores) - known["ap"] == pytest.approx(known["bias"], abs=within)


def test_the_guide_has_the_measured_figures():
    assert block() in GUIDE.read_text("utf-8"), "put the table that measure_judging_samples.py prints into the guide"
