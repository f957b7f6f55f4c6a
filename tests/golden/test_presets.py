"""The presets give the values of the tools they name: gdeval, ir_measures, scikit-learn, LightGBM, XGBoost, ranx."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from tables import each_row

import rankeval as rk

QRELS = {
    "cisi": "qrels.binary.txt.gz",
    "cranfield": "qrels.graded.txt.gz",
    "trec_covid_r5": "qrels.residual.txt.gz",
    "web2012": "qrels.adhoc.txt.gz",
}
WEB_RUNS = ["indri-ql-cata", "indri-ql-cata-filtered", "indri-ql-catb", "indri-rm-cata-filtered", "indri-rm-catb"]


def run_of(folder: Path, name: str) -> rk.Run:
    paths = (folder / f"{name}{end}" for end in ("", ".gz", ".run", ".run.gz"))
    return rk.Run.read(next(path for path in paths if path.exists()))


@pytest.mark.shared
@each_row("run", WEB_RUNS)
def test_gdeval(shared: Path, run: str):
    """The nDCG and ERR of the Web Track's script, to the five digits printed, topics that the run lacks as 0."""
    qrels = rk.Qrels.read(shared / "web2012" / QRELS["web2012"])
    names = ["nDCG@10", "ERR@10", "nDCG@20", "ERR@20"]
    ranking = run_of(shared / "web2012" / "runs", run)
    ours = rk.evaluate(qrels, ranking, measures=names, convention="gdeval", missing="zero").per_query
    for k in (10, 20):
        path = shared / "golden" / "diversity_web2012" / f"{run}.gdeval.k{k}.csv.gz"
        with gzip.open(path, "rt") as lines:
            theirs = {row["topic"]: row for row in csv.DictReader(lines) if row["topic"] != "amean"}
        assert set(ours.index) >= set(theirs)
        for topic, row in theirs.items():
            assert ours.at[topic, f"nDCG@{k}"] == pytest.approx(float(row[f"ndcg@{k}"]), abs=6e-6)
            assert ours.at[topic, f"ERR@{k}"] == pytest.approx(float(row[f"err@{k}"]), abs=6e-6)
        assert len(theirs) >= 48


@pytest.mark.shared
@pytest.mark.parametrize("collection", sorted(QRELS))
def test_ir_measures(shared: Path, collection: str):
    """Nine measures of ir_measures 0.4.3, gdeval's to the five digits printed, the others to 1e-9.

    Tied rows go by id, descending, in all of them but Judged, where the data leaves no doubt.
    """
    names = {
        "AP(rel=2)": ("AP(rel=2)", 1e-9),
        "P(rel=2)@10": ("P(rel=2)@10", 1e-9),
        "RR@10": ("RR@10", 1e-9),
        "Judged@10": ("Judged@10", 1e-9),
        "ERR@10": ("ERR(max_rel=4)@10", 6e-6),
        "ERR@20": ("ERR(max_rel=4)@20", 6e-6),
        "nDCG(dcg='exp-log2')@10": ("nDCG(gain='exp')@10", 6e-6),
    }
    qrels = rk.Qrels.read(shared / collection / QRELS[collection])
    labels = np.maximum(qrels.relevance, 0)
    qrels = rk.Qrels(qrels.qid, qrels.docid, labels)
    odd, n_compared = [], 0
    for path in sorted((shared / "golden" / "ir_measures" / collection).glob("*.json.gz")):
        run = run_of(shared / collection / "runs", path.name.removesuffix(".json.gz"))
        rules = rk.Convention("ir_measures", ties="docid", judgments="qrels")
        ours = rk.evaluate(qrels, run, measures=[name for name, _ in names.values()], convention=rules).per_query
        for topic, values in json.loads(gzip.decompress(path.read_bytes())).items():
            for spelt, value in values.items():
                name, digits = names[spelt]
                n_compared += 1
                if topic not in ours.index:
                    assert value == 0
                elif abs(ours.at[topic, name] - value) > digits:
                    odd.append((path.name, topic, name, ours.at[topic, name], value))

    assert odd == []
    assert n_compared > 1_500


@pytest.mark.shared
def test_scikit_learn_on_learning_to_rank_predictions(shared: Path):
    """ndcg_score per query: ties averaged, and exponential gain, on predictions of twelve models."""
    folder, n_compared = shared / "golden" / "ltr", 0
    for path in sorted(folder.glob("*.sklearn_ndcg.json.gz")):
        run = path.name.removesuffix(".sklearn_ndcg.json.gz")
        qrels = folder / f"{run.rpartition('.')[0]}.qrels.gz"
        names = [f"{one}{cut}" for one in ("nDCG", "nDCG(gain='exp')") for cut in ("@5", "@10", "")]
        ours = rk.evaluate(qrels, folder / f"{run}.run.gz", measures=names, ties="expected", judgments="rows").per_query
        for topic, values in json.loads(gzip.decompress(path.read_bytes()))["per_query"].items():
            for cut in ("5", "10", "all"):
                suffix = "" if cut == "all" else f"@{cut}"
                assert ours.at[topic, f"nDCG{suffix}"] == pytest.approx(values[f"ndcg@{cut}"], abs=1e-9)
                assert ours.at[topic, f"nDCG(gain='exp'){suffix}"] == pytest.approx(
                    values[f"ndcg@{cut}_exp_gain"], abs=1e-9
                )
                n_compared += 2
    assert n_compared > 3_000


@pytest.mark.shared
def test_scikit_learn_on_made_cases(shared: Path):
    """dcg_score and ndcg_score with ties, cut-offs, zero gains."""
    cases = json.loads((shared / "golden" / "sklearn" / "ranking_scores.json").read_text())["ndcg_dcg"]
    n_compared = 0
    for case in cases:
        y, score = case["y_true"], case["y_score"]
        if not isinstance(y, list) or None in y or min(y) < 0 or not np.isfinite(np.array(y + score, float)).all():
            continue
        for value in case["values"]:
            suffix = "" if value["k"] is None else f"@{value['k']}"
            if value["ignore_ties"] and len(set(score)) < len(score):
                continue  # it then takes equals in whatever order an unstable sort leaves them
            ours = rk.evaluate(
                y,
                score,
                qid=[0] * len(y),
                measures=[f"DCG{suffix}", f"nDCG{suffix}"],
                convention="sklearn",
            ).per_query.iloc[0]
            if isinstance(value["dcg"], float) and isinstance(value["ndcg"], float):  # else what it raised
                assert ours.tolist() == pytest.approx([value["dcg"], value["ndcg"]], abs=1e-9), (case["name"], value)
                n_compared += 2
    assert n_compared >= 50


def booster_data(seed: int):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, 60)
    y[:6] = 0  # a query without a relevant row
    return rng.normal(size=(60, 3)), y, np.repeat(np.arange(10), 6)


@each_row("seed", range(3))
def test_lightgbm(seed: int):
    """What lightgbm prints while training, on predictions with ties and a query without relevant rows."""
    import lightgbm

    X, y, qid = booster_data(seed)
    data = lightgbm.Dataset(X, y, group=[6] * 10, params={"verbose": -1})
    settings = {"objective": "lambdarank", "metric": ["ndcg", "map"], "eval_at": [1, 3, 10], "verbose": -1}
    history: dict = {}
    model = lightgbm.train(
        {**settings, "min_data_in_leaf": 1, "num_leaves": 3}, data, 2, valid_sets=[data],
        callbacks=[lightgbm.record_evaluation(history)],
    )  # fmt: skip
    names = {f"{theirs}@{k}": f"{ours}@{k}" for theirs, ours in (("ndcg", "nDCG"), ("map", "AP")) for k in (1, 3, 10)}
    ours = rk.evaluate(y, model.predict(X), qid=qid, measures=list(names.values()), convention="lightgbm")
    assert ours.tied_share > 0
    for theirs, name in names.items():
        assert ours.mean()[name] == pytest.approx(history["training"][theirs][-1], abs=1e-9)


@pytest.mark.needs("xgboost")
@each_row("seed", range(3))
def test_xgboost(seed: int):
    """What xgboost prints while training, graded and binary, on predictions with ties."""
    import xgboost

    X, y, qid = booster_data(seed)
    tasks = {
        "rank:ndcg": (y, {"ndcg@1": "nDCG@1", "ndcg@3": "nDCG@3", "ndcg": "nDCG"}),
        "rank:map": ((y > 1).astype(int), {"map@1": "AP@1", "map@3": "AP@3", "map": "AP", "pre@3": "P@3"}),
    }
    for objective, (labels, names) in tasks.items():
        data, history = xgboost.DMatrix(X, labels, qid=qid), {}
        parameters = {"objective": objective, "eval_metric": list(names), "max_depth": 2, "nthread": 1}
        model = xgboost.train(parameters, data, 2, evals=[(data, "t")], evals_result=history, verbose_eval=False)
        ours = rk.evaluate(labels, model.predict(data), qid=qid, measures=list(names.values()), convention="xgboost")
        for theirs, name in names.items():
            if theirs != "pre@3":  # precision is 0, not 1, where nothing is relevant: the measure defines it
                assert ours.mean()[name] == pytest.approx(history["t"][theirs][-1], abs=1e-6), (objective, name)


RANX = {
    "nDCG@5": 0.3133589368931666,
    "nDCG": 0.6315506310730562,
    "nDCG(gain='exp')@5": 0.2942290199442658,
    "AP": 0.44822756616130366,
    "AP@5": 0.15027888007054674,
    "RR@5": 0.5844444444444444,
    "P@5": 0.33999999999999997,
    "R@5": 0.23218253968253963,
    "F@5": 0.27291338291338285,
    "Success@2": 0.6,
    "Rprec": 0.35720899470899464,
    "NumRelRet@5": 1.7,
}
"""ranx 0.3.21 with NumPy 2.4: evaluate(Qrels(qrels), Run(run), ["ndcg@5", "ndcg", "ndcg_burges@5", "map", "map@5",
"mrr@5", "precision@5", "recall@5", "f1@5", "hit_rate@2", "r-precision", "hits@5"]) on the data of the test below; kept
here since compiling it takes a minute."""


def test_ranx():
    """Twelve measures of ranx, on rows without ties (its order of tied rows is a quicksort's)."""
    rng = np.random.default_rng(3)
    qrels = {f"q{q}": {f"d{d}": int(rng.integers(0, 4)) for d in range(10)} for q in range(30)}
    qrels = {q: {d: g for d, g in row.items() if g} for q, row in qrels.items()}
    run = {q: {f"d{d}": float(s) for d, s in enumerate(rng.permutation(20))} for q in qrels}
    ours = rk.evaluate(qrels, run, measures=list(RANX), convention="ranx").per_query.mean()
    for name, value in RANX.items():
        assert ours[name] == pytest.approx(value, abs=1e-12), name


RANX_NAMES = {
    "hits": (3.0, 2.0),
    "hits@2": (1.0, 0.0),
    "hits@10": (3.0, 2.0),
    "hit_rate": (1.0, 1.0),
    "hit_rate@2": (1.0, 0.0),
    "hit_rate@1": (0.0, 0.0),
    "hit_rate@10": (1.0, 1.0),
    "precision": (0.5, 0.4),
    "precision@2": (0.5, 0.0),
    "precision@10": (0.3, 0.2),
    "recall": (1.0, 0.666666666666667),
    "recall@2": (0.333333333333333, 0.0),
    "recall@10": (1.0, 0.666666666666667),
    "f1": (0.666666666666667, 0.5),
    "f1@2": (0.4, 0.0),
    "f1@10": (0.461538461538462, 0.307692307692308),
    "mrr": (0.5, 0.333333333333333),
    "mrr@2": (0.5, 0.0),
    "mrr@10": (0.5, 0.333333333333333),
    "map": (0.5, 0.244444444444444),
    "map@2": (0.166666666666667, 0.0),
    "map@10": (0.5, 0.244444444444444),
    "dcg": (3.110349563969181, 1.386852807234542),
    "dcg@2": (1.892789260714372, 0.0),
    "dcg@10": (3.110349563969181, 1.386852807234542),
    "dcg_burges": (6.064745136328404, 1.886852807234542),
    "dcg_burges@2": (4.416508275000202, 0.0),
    "dcg_burges@10": (6.064745136328404, 1.886852807234542),
    "ndcg": (0.653179615926, 0.291241857336241),
    "ndcg@2": (0.444122866448798, 0.0),
    "ndcg@10": (0.653179615926, 0.291241857336241),
    "ndcg_burges": (0.645680954612107, 0.200883119471908),
    "ndcg_burges@2": (0.496639259687732, 0.0),
    "ndcg_burges@10": (0.645680954612107, 0.200883119471908),
    "r-precision": (0.333333333333333, 0.333333333333333),
    "bpref": (0.333333333333333, 0.333333333333333),
    "rbp.95": (0.266926546875, 0.1309753125),
    "rbp.8": (0.750336, 0.33792),
    "rbp.05": (0.142737796875, 0.0047559375),
}
"""Every name that ranx takes, beyond the list's end too, and the values of two queries: ranx 0.3.21 with NumPy 2.4,
evaluate(Qrels(qrels), Run(run), list(RANX_NAMES), return_mean=False) on the data of the test below. Its rbp adds the
labels themselves up, although it is documented to take relevant documents as 1."""


def test_the_names_of_ranx_have_its_values():
    """Each measure under ranx' own name: graded labels, unjudged rows, and a relevant document not retrieved."""
    qrels = {
        "q1": {"a": 3, "b": 1, "c": 2, "n": 0, "o": 0},
        "q2": {"a": 1, "c": 2, "d": 0, "e": 0, "f": 0, "lost": 3},
    }
    run = {
        "q1": {"n": 6.0, "a": 5.0, "x": 4.0, "c": 3.0, "o": 2.0, "b": 1.0},
        "q2": {"d": 4.0, "y": 3.0, "c": 2.5, "e": 2.0, "a": 1.0},
    }
    for name, values in RANX_NAMES.items():
        ours = rk.evaluate(qrels, run, measures=name, convention="ranx").per_query[name]
        assert ours.tolist() == pytest.approx(values, abs=1e-12), name
