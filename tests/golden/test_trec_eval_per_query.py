"""Per-query values equal those of trec_eval's own code, unrounded, on four real collections."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

import rankeval as rk

pytestmark = pytest.mark.shared

QRELS = {
    "cisi": "qrels.binary.txt.gz",
    "cranfield": "qrels.graded.txt.gz",
    "trec_covid_r5": "qrels.residual.txt.gz",
    "web2012": "qrels.adhoc.txt.gz",
}
MEASURES = [
    "P_5",
    "P_10",
    "P_20",
    "recall_10",
    "recall_100",
    "map",
    "map_cut_10",
    "Rprec",
    "recip_rank",
    "ndcg",
    "ndcg_cut_5",
    "ndcg_cut_10",
    "ndcg_cut_20",
    "set_F",
    "success_1",
    "success_10",
    "bpref",
    "infAP",
]


def run_of(folder: Path, name: str) -> Path:
    return next(folder / f"{name}{end}" for end in ("", ".gz", ".run", ".run.gz") if (folder / f"{name}{end}").exists())


def printed(path: Path) -> dict[tuple[str, str], str]:
    """Read a trec_eval output: (measure, topic) -> the value as printed."""
    rows = (line.split("\t") for line in gzip.decompress(path.read_bytes()).decode().splitlines())
    return {(name.strip(), topic): value.strip() for name, topic, value in rows}


@pytest.mark.parametrize("collection", sorted(QRELS))
def test_every_run_and_topic_agrees(shared: Path, collection: str):
    """To 1e-9, but for topics where 32-bit scores tie: those equal trec_eval 9.0.8's printed value."""
    qrels = rk.Qrels.read(shared / collection / QRELS[collection])
    narrow = json.loads((shared / "golden" / "float32_score_ties.json").read_text())["runs"]
    compared = 0
    for path in sorted((shared / "golden" / "perquery_full_precision" / collection).glob("*.json.gz")):
        name = path.name.removesuffix(".json.gz")
        golden = json.loads(gzip.decompress(path.read_bytes()))
        run = rk.Run.read(run_of(shared / collection / "runs", name))
        ours = rk.evaluate(qrels, run, measures=MEASURES, convention="trec_eval-9.0.8").per_query
        output = None
        assert set(ours.index) == set(golden)
        for topic, values in golden.items():
            for measure in MEASURES:
                if measure in narrow.get(f"{collection}/{name}", {}).get(topic, {}):
                    output = output or printed(shared / "golden" / "trec_eval908" / collection / f"{name}.q.txt.gz")
                    assert f"{ours.at[topic, measure]:.4f}" == output[measure, topic]
                else:
                    assert ours.at[topic, measure] == pytest.approx(values[measure], abs=1e-9), (name, topic, measure)
                compared += 1
    assert compared > 1000


def test_a_constant_model_gets_the_mean_over_orders(shared: Path):
    """On the web collection's judged pool a constant score is worth .118, where the order of ids gives .237."""
    qrels = rk.Qrels.read(shared / "web2012" / QRELS["web2012"])

    def pool(score, **options):
        run = rk.Run(qid=qrels.qid, docid=qrels.docid, score=score)
        return rk.evaluate(qrels, run, measures="nDCG@10", **options).mean().iloc[0]

    constant = np.ones(len(qrels))
    rng = np.random.default_rng(0)
    draws = [pool(rng.random(len(qrels))) for _ in range(60)]
    assert pool(constant) == pytest.approx(0.1181, abs=5e-5)
    assert abs(pool(constant) - np.mean(draws)) < 4 * np.std(draws, ddof=1) / np.sqrt(60)
    assert pool(constant, ties="docid") == pytest.approx(0.2370, abs=5e-5)


def test_a_constant_model_gains_nothing_from_rows_sorted_by_label(shared: Path):
    """On the boosting example's rows a constant score is worth the mean over random orders, however rows are sorted."""
    data = rk.datasets.load_letor(shared / "ltr_lightgbm" / "rank.test.gz")
    constant = np.zeros(len(data))
    expected = rk.evaluate(data.y, constant, qid=data.qid, measures=["nDCG@10", "AP", "RR"]).mean()
    by_label = np.argsort(-data.y, kind="stable")
    again = rk.evaluate(data.y[by_label], constant, qid=data.qid[by_label], measures=["nDCG@10", "AP", "RR"]).mean()
    assert again.tolist() == pytest.approx(expected.tolist(), abs=1e-12)
    rng = np.random.default_rng(0)
    draws = [
        rk.evaluate(data.y, rng.random(len(data)), qid=data.qid, measures=["nDCG@10", "AP", "RR"]).mean()
        for _ in range(400)
    ]
    spread = np.std(draws, axis=0, ddof=1) / 20
    assert np.all(np.abs(np.mean(draws, axis=0) - expected) < 4 * spread)
    assert expected["nDCG@10"] < 0.9
