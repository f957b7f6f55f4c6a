"""A search on dev keeps the better point, whichever way the measure points."""

from __future__ import annotations

import pytest

from rankeval.experiment import check_config
from rankeval.experiment.estimators import make_ranker
from rankeval.experiment.loading import load_parts
from rankeval.experiment.tuning import tune


@pytest.mark.parametrize("measure", ["ARP", "nDCG@10"])
def test_the_better_point_is_kept_and_its_mean_shown(measure, tmp_path, monkeypatch):
    """The mean of ARP is the mean of ARP, though the search maximises its negative."""
    monkeypatch.setenv("RANKEVAL_LEDGER", str(tmp_path / "ledger.db"))
    config = check_config(
        {
            "name": "small",
            "data": {"loader": "digits", "arguments": {"n_queries": 30, "n_candidates": 15}},
            "rankers": {
                name: {"estimator": "sklearn.linear_model.Ridge", "grid": {"alpha": [0.1, 1e9]}}
                for name in ("one", "other")
            },
            "measures": [measure, "AP"],
            "cv": {"n_splits": 3},
            "tracking": "off",
        }
    )
    parts = load_parts(config)
    tuned = tune(make_ranker(config, "one"), "one", parts, config=config)
    means = tuned.search[f"mean {measure}"]
    best = means.idxmin() if measure == "ARP" else means.idxmax()
    assert (means > 0).all()
    assert tuned.params["alpha"] == tuned.search["alpha"][best]
    assert tuned.dev.mean()[measure] == pytest.approx(means[best], abs=0.05 * means[best])
