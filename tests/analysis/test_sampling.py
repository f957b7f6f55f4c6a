"""Corrected scores of sampled lists are those of Krichene and Rendle, and nearer to the ranking of all items."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from tables import each_row

import rankeval as rk
from rankeval.analysis.sampling import _scores_of_places
from rankeval.errors import ConventionMismatch, InvalidInput

N_ITEMS, N_SAMPLED = 2_000, 49


def sampled_lists(ranks, seed=0, n=N_ITEMS, m=N_SAMPLED, **options):
    """Evaluate lists with the item of each rank among all items, and a sample of the others."""
    generator = np.random.default_rng(seed)
    before = generator.hypergeometric(np.asarray(ranks) - 1, n - np.asarray(ranks), m)
    score = np.tile(np.append(0.5, -np.arange(m)), len(ranks)).reshape(len(ranks), -1)
    score[:, 0] = 0.5 - before  # so many sampled items are above it
    label = np.zeros_like(score)
    label[:, 0] = 1
    qid = np.repeat(np.arange(len(ranks)), m + 1)
    sizes = {"n_items": n, "n_sampled": m} | options
    return rk.evaluate(label.ravel(), score.ravel(), qid=qid, measures=["nDCG@10", "RR"], **sizes)


def true_mean(ranks):
    return float(np.where(np.asarray(ranks) <= 10, 1 / np.log2(1 + np.asarray(ranks)), 0).mean())


def test_scores_of_places_minimise_bias_and_variance_over_all_samples():
    """Six items, two sampled: probabilities counted over all samples, and the least-squares problem solved as such."""
    n, m, gamma = 6, 2, 0.3
    by_rank = 1 / np.arange(1.0, n + 1)
    p = np.zeros((n, m + 1))
    for rank in range(1, n + 1):
        others = [other for other in range(1, n + 1) if other != rank]
        samples = list(combinations(others, m))
        for sample in samples:
            p[rank - 1, sum(other < rank for other in sample)] += 1 / len(samples)
    found = _scores_of_places(by_rank, m, gamma)
    # gamma E[score^2 | r] + (1 - 2 gamma) ... written as residuals: of the mean, and of each score.
    of_bias = np.sqrt(1 - gamma) * p
    of_square = np.sqrt(gamma) * np.sqrt(p)[:, :, None] * np.eye(m + 1)
    rows = np.vstack([of_bias, of_square.reshape(-1, m + 1)])
    targets = np.concatenate([np.sqrt(1 - gamma) * by_rank, (np.sqrt(gamma) * np.sqrt(p) * by_rank[:, None]).ravel()])
    expected, *_ = np.linalg.lstsq(rows, targets, rcond=None)
    assert found == pytest.approx(expected)


def test_a_list_of_all_items_needs_no_correction():
    ranks = np.arange(1, 21)
    ev = sampled_lists(ranks, n=20, m=19)
    corrected = rk.analysis.corrected_for_sampling(ev, "nDCG@10")["nDCG@10"]
    assert corrected.to_numpy() == pytest.approx(ev.per_query["nDCG@10"].to_numpy())
    assert true_mean(ranks) == pytest.approx(corrected.mean())


def test_systems_that_sampling_turns_are_in_their_order_again():
    """One is often at the very top and else nowhere, the other is always rather high and never at the top."""
    generator = np.random.default_rng(0)
    top = np.where(generator.random(6000) < 0.25, generator.integers(1, 8, 6000), generator.integers(500, 2000, 6000))
    even = generator.integers(15, 150, 6000)
    raw, corrected = {}, {}
    for name, ranks in {"top": top, "even": even}.items():
        ev = sampled_lists(ranks, seed=1)
        raw[name] = float(ev.mean()["nDCG@10"])
        corrected[name] = rk.analysis.corrected_for_sampling(ev, "nDCG@10", gamma=0.01)
    means = {name: float(frame["nDCG@10"].mean()) for name, frame in corrected.items()}
    assert true_mean(top) > true_mean(even)
    assert raw["top"] < raw["even"]
    assert means["top"] > means["even"]
    for name, ranks in {"top": top, "even": even}.items():
        assert abs(means[name] - true_mean(ranks)) < abs(raw[name] - true_mean(ranks)) / 2
    found = rk.compare(corrected, baseline="even").table.iloc[0]
    assert found.difference == pytest.approx(means["top"] - means["even"])


@pytest.mark.world
def test_the_mean_over_samples_is_that_of_the_probabilities():
    ranks = np.repeat([1, 3, 10, 40, 200, 1000], 500)
    means = [
        rk.analysis.corrected_for_sampling(sampled_lists(ranks, seed), "nDCG@10")["nDCG@10"].to_numpy()
        for seed in range(40)
    ]
    by_rank = np.mean(means, axis=0).reshape(6, -1).mean(axis=1)
    true = np.where(np.arange(1, N_ITEMS + 1) <= 10, 1 / np.log2(1 + np.arange(1, N_ITEMS + 1)), 0)
    scores = _scores_of_places(true, N_SAMPLED, 0.1)
    p = stats.hypergeom.pmf(
        np.arange(N_SAMPLED + 1), N_ITEMS - 1, np.array([[0], [2], [9], [39], [199], [999]]), N_SAMPLED
    )
    assert by_rank == pytest.approx(p @ scores, abs=0.01)


def test_an_evaluation_says_that_its_lists_are_sampled_wherever_it_goes(tmp_path):
    ev = sampled_lists([1, 5, 90])
    (note,) = (note for note in ev.notes if "sampled" in note)
    assert "49 sampled of 2000 items" in note
    assert "order of systems" in note
    ev.save(tmp_path / "ev.parquet")
    assert rk.Evaluation.load(tmp_path / "ev.parquet").notes == ev.notes
    assert note in ev.subset([0, 1]).notes
    compared = rk.compare({"a": ev, "b": sampled_lists([1, 5, 90], seed=1)})
    assert [text for text in compared.notes if "sampled" in text] == [note]
    assert "sampled" in rk.evaluate([1, 0], [2.0, 1.0], qid=[1, 1], measures="RR", n_items=5, n_sampled=1).record().text


@each_row("sizes", [{"n_items": 3_000}, {"n_items": None, "n_sampled": None}])
def test_other_samples_are_not_compared(sizes):
    with pytest.raises(ConventionMismatch, match="49 sampled of 2000 items in one"):
        rk.compare({"a": sampled_lists([1, 5, 90]), "b": sampled_lists([1, 5, 90], **sizes)})


@each_row(("sizes", "argument"), [
    ({"n_items": 5}, "n_sampled"),
    ({"n_sampled": 1}, "n_items"),
    ({"n_items": 5, "n_sampled": 5}, "n_sampled"),
    ({"n_items": 5, "n_sampled": 0}, "n_sampled"),
])  # fmt: skip
def test_sizes_that_cannot_be_are_refused(sizes, argument):
    with pytest.raises(InvalidInput) as caught:
        rk.evaluate([1, 0], [2.0, 1.0], qid=[1, 1], measures="RR", **sizes)
    assert caught.value.argument == argument


def made(label, score, **options):
    sizes = {"n_items": 9, "n_sampled": 2} | options
    return rk.evaluate(label, score, qid=[1] * len(label), measures=["RR"], **sizes)


@each_row(("evaluation", "measure", "match"), [
    (lambda: made([1, 1, 0], [3, 2, 1]), "R@1", "one relevant item, of label 1, and 2 sampled"),
    (lambda: made([1, 0], [3, 2]), "R@1", "one relevant item"),
    (lambda: made([2, 0, 0], [3, 2, 1]), "R@1", "label 1"),
    (lambda: made([0, 1, 0], [2, 2, 2]), "R@1", "tied"),
    (lambda: made([0, 1, 0], [3, 2, 1], n_items=None, n_sampled=None), "R@1", "not known"),
    (lambda: made([0, 1, 0], [3, 2, 1]), "RR", "cut-off"),
])  # fmt: skip
def test_lists_that_have_no_correction_are_refused(evaluation, measure, match):
    with pytest.raises(InvalidInput, match=match):
        rk.analysis.corrected_for_sampling(evaluation(), measure)


def test_the_scores_are_by_query():
    corrected = rk.analysis.corrected_for_sampling(sampled_lists([1, 5, 90]), "nDCG@10")
    assert corrected.index.equals(pd.Index([0, 1, 2], name="qid"))
    with pytest.raises(InvalidInput, match="gamma"):
        rk.analysis.corrected_for_sampling(sampled_lists([1]), "nDCG@10", gamma=0)
