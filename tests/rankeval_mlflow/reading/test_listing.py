"""logged_runs and leaderboard: one search for up to 10,000 runs, and every page beyond."""

from __future__ import annotations

import mlflow
import pytest

import rankeval_mlflow as rkm
from rankeval_mlflow.reading import leaderboards, listing
from rankeval_mlflow.reading.listing import logged_runs


@pytest.fixture
def asked(monkeypatch):
    """Count the runs to a page of every search."""
    pages, plain = [], mlflow.MlflowClient.search_runs

    def counting(self, *arguments, max_results, **options):
        pages.append(max_results)
        return plain(self, *arguments, max_results=max_results, **options)

    monkeypatch.setattr(mlflow.MlflowClient, "search_runs", counting)
    return pages


def test_all_runs_are_listed_by_one_search_and_artifacts_are_left_alone(small, asked, monkeypatch):
    """A store makes the whole search again for each page, so pages are as large as those of mlflow.search_runs."""
    ids = [rkm.log(small(seed=seed), report=False).run_id for seed in range(3)]
    monkeypatch.setattr("rankeval_mlflow.reading.loading.artifact", lambda *_: pytest.fail("an artifact was read"))
    assert [run.run_id for run in logged_runs("Default")] == ids[::-1]
    assert rkm.leaderboard("Default", significance=False).n_ranked == 3
    assert asked == [10_000, 10_000]


def test_runs_beyond_a_page_are_found(small, asked, monkeypatch):
    for module in (listing, leaderboards):
        monkeypatch.setattr(module, "PAGE", 2)
    ids = [rkm.log(small(seed=seed), report=False).run_id for seed in range(5)]
    assert [run.run_id for run in logged_runs()] == ids[::-1]
    assert rkm.leaderboard(None, limit=1).n_ranked == 5
    assert asked == [2] * 6
