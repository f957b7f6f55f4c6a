"""What stands in metrics, tags, artifacts and inputs, before anything is sent: node by node."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import rankeval as rk
from rankeval.errors import InvalidInput
from rankeval.evaluation import Evaluation
from rankeval.tracking import LoggedData, RunRecord
from rankeval_mlflow.delivery.payload import DatasetUse, Scores
from rankeval_mlflow.packing.nodes import MAX_COMPARED, comparison_node, evaluation_node, record_node

DATA = LoggedData("letor", "ab" * 32, "dev", 160, 20, "/data/letor.txt")


def test_an_evaluation_is_one_node(small):
    evaluation = small()
    node = evaluation_node(evaluation, "dev", DATA)
    keys = ("nDCG_at_10", "AP", "P__rel.2_at_5")
    whole = evaluation.to_bytes()
    assert (node.name, node.label, node.params, node.metrics, node.children) == ("ridge", "dev", {}, {}, ())
    metrics = dict(zip(keys, evaluation.aggregate().tolist(), strict=True))
    assert node.scores == (Scores("dev", metrics, "letor", "ab" * 32, hashlib.sha256(whole).hexdigest()),)
    profile = {"num_rows": 160, "num_queries": 20}
    assert node.datasets == (DatasetUse("letor", "ab" * 32, "dev", "/data/letor.txt", profile),)
    assert node.files["rankeval/dev/evaluation.parquet"] == whole
    assert all(path.startswith("rankeval/dev/") for path in node.files)
    assert list(node.sections) == ["dev"]
    card = hashlib.sha256(json.dumps(evaluation.convention.card(), sort_keys=True).encode()).hexdigest()
    assert node.tags == {"rankeval.card": f"rankeval {card[:12]}"}
    assert node.facts == {
        "dev": {
            "measures": dict(zip(keys, ("nDCG@10", "AP", "P(rel=2)@5"), strict=True)),
            "convention": evaluation.convention.card(),
            "judgments": evaluation.judgments_digest,
            "ranking": evaluation.ranking_digest,
            "data": {"name": "letor", "digest": "ab" * 32},
            "not_finite": {},
            "rankeval": rk.__version__,
        }
    }


def test_an_evaluation_without_names_goes_by_its_role_and_its_judgments(small):
    evaluation = small(name=None)
    node = evaluation_node(evaluation, "held-out")
    digest = evaluation.judgments_digest
    assert node.name == "held-out evaluation"
    profile = {"num_rows": 160, "num_queries": 20}
    assert node.datasets == (DatasetUse(f"judgments-{digest[:8]}", digest, "held-out", None, profile),)
    with pytest.raises(InvalidInput, match="plain word"):
        evaluation_node(evaluation, "held out")


def test_aggregates_that_are_not_finite_are_told_and_not_sent(small):
    evaluation = small()
    scores = evaluation.scores.copy()
    scores[0, 1], scores[:, 2] = np.nan, np.inf
    node = evaluation_node(replace(evaluation, scores=scores), "dev", DATA)
    assert set(node.scores[0].metrics) == {"nDCG_at_10"}
    assert node.facts["dev"]["not_finite"] == {"AP": "nan", "P__rel.2_at_5": "inf"}


@pytest.fixture
def systems(small):
    return {name: small(name, seed=seed) for seed, name in enumerate(("bm25", "ltr@2", "bert/large"))}


def test_a_comparison_is_one_node(systems):
    comparison = rk.compare(systems, baseline="bm25")
    node = comparison_node(comparison, "final")
    assert (node.name, node.label, node.scores, node.datasets, list(node.sections)) == (
        "final",
        "final",
        (),
        (),
        ["final"],
    )
    assert set(node.files) == {
        "rankeval/final/comparison.json",
        "rankeval/final/table.csv",
        "rankeval/final/report.html",
        *(f"rankeval/final/evaluations/{name}.parquet" for name in ("bm25", "ltr_at_2", "bert_large")),
    }
    assert rk.Comparison.from_json(node.files["rankeval/final/comparison.json"].decode()).table.equals(comparison.table)
    assert node.files["rankeval/final/table.csv"].decode() == comparison.table.to_csv(index=False)
    back = Evaluation.from_bytes(node.files["rankeval/final/evaluations/bert_large.parquet"])
    assert back.scores.tolist() == systems["bert/large"].scores.tolist()
    expected = {
        f"final/{ {'ltr@2': 'ltr_at_2'}.get(row.system, row.system) }/{key}/{sign}": getattr(row, sign)
        for row in comparison.table.itertuples()
        for key in [str(rk.measure(row.measure).key)]
        for sign in ("difference", "p_adjusted")
    }
    assert node.metrics == expected
    settings = node.facts["final"]["settings"]
    assert settings == {
        "baseline": "bm25",
        "test": "t",
        "correction": "holm",
        "family": "all",
        "alternative": "two-sided",
        "claim": "difference",
        "margin": 0.0,
        "confidence_level": 0.95,
        "n_comparisons": 6,
        "n_resamples": comparison.n_resamples,
        "rng": comparison.rng,
        "primary": None,
        "grouped": "",
        "weights": "",
        "notes": comparison.notes,
    }
    assert node.tags == {"rankeval.final.headline": comparison.headline}


@pytest.mark.parametrize(("n_systems", "logged"), [(10, 45 * 2), (11, 0)])
def test_so_many_differences_are_metrics_and_more_are_read_in_the_table(n_systems, logged):
    """Of frames: 45 pairs of ten systems are, 55 of eleven are not; fifty is the most."""
    rng = np.random.default_rng(0)
    frames = {f"s{n:02}": pd.DataFrame({"AP": rng.random(6)}, index=list("abcdef")) for n in range(n_systems)}
    node = comparison_node(rk.compare(frames))
    assert len(node.metrics) == logged
    assert not any(path.endswith(".parquet") for path in node.files)
    if logged:
        assert "comparison/s01 vs s00/AP/difference" in node.metrics


def test_fifty_differences_are_the_most():
    rng = np.random.default_rng(0)
    for n_systems in (MAX_COMPARED, MAX_COMPARED + 1):
        frames = {f"s{n:02}": pd.DataFrame({"AP": rng.random(4)}, index=list("abcd")) for n in range(n_systems + 1)}
        node = comparison_node(rk.compare(frames, baseline="s00"))
        assert len(node.metrics) == (2 * n_systems if n_systems == 50 else 0)
        assert "comparison/s00/AP/difference" not in node.metrics


def test_a_record_is_a_tree_of_nodes_with_its_parts_put_together(small):
    """The data set that was declared first stands for its role; used twice, it counts once."""
    evaluation = small()
    other = replace(DATA, name="other", digest="cd" * 32)
    record = RunRecord(
        "run",
        params={"depth": 3, "grid(alpha)": 0.5, "long": "x" * 7000},
        metrics={"seconds": 1, "worse": float("-inf"), "nDCG@10": 0.5},
        tags={"team": "search"},
        artifacts={"notes.txt": b"notes"},
        data=(DATA, other, replace(DATA, role="test")),
        evaluations={"dev": evaluation},
        children=(RunRecord("child", params={"depth": 4}), RunRecord("empty")),
    )
    node = record_node(record)
    assert (node.name, node.label) == ("run", "record")
    assert node.params["depth"] == "3"
    assert node.params["long"].endswith("(cut, 7000 characters)")
    assert json.loads(node.files["rankeval/params.json"]) == {"long": "x" * 7000}
    assert node.metrics == {"seconds": 1.0, "nDCG_at_10": 0.5}
    facts = node.facts["record"]
    assert facts["not_finite"] == {"worse": "-inf"}
    assert facts["names"] == {"grid_alpha_": "grid(alpha)", "nDCG_at_10": "nDCG@10"}
    assert facts["data"]["test"] == {"name": "letor", "digest": "ab" * 32}
    assert node.facts["dev"]["data"]["name"] == "letor"
    assert node.tags["team"] == "search"
    assert node.files["notes.txt"] == b"notes"
    assert node.scores == evaluation_node(evaluation, "dev", DATA).scores
    assert [(use.name, use.role) for use in node.datasets] == [("letor", "dev"), ("other", "dev"), ("letor", "test")]
    assert list(node.sections) == ["dev"]
    first, last = node.children
    assert (first.name, first.params, first.files, first.tags) == ("child", {"depth": "4"}, {}, {})
    assert (last.params, last.metrics, last.tags, last.files, last.datasets) == ({}, {}, {}, {}, ())


def test_a_record_carries_its_comparison_as_a_piece(systems):
    comparison = rk.compare(systems, baseline="bm25", measures="AP")
    node = record_node(RunRecord("run", comparison=comparison, metrics={"seconds": 2.0}))
    alone = comparison_node(comparison)
    assert node.metrics == {"seconds": 2.0, **alone.metrics}
    assert node.files.keys() == alone.files.keys()
    assert node.facts["comparison"] == alone.facts["comparison"]
    assert list(node.sections) == ["comparison"]
