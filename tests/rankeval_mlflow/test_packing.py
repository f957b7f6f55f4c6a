"""What stands in metrics, tags, artifacts and inputs, before anything is sent: node by node."""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

import rankeval as rk
from rankeval.errors import InvalidInput
from rankeval.evaluation import from_bytes, to_bytes
from rankeval.tracking import LoggedData, RunRecord
from rankeval_mlflow.delivery.payload import DatasetUse, Rendering, Scores
from rankeval_mlflow.packing.nodes import node_of
from rankeval_mlflow.packing.record import record_node

DATA = LoggedData("letor", "ab" * 32, "dev", 160, 20, "/data/letor.txt")


def evaluation_node(evaluation, role, data=None, said="", *, report=True, **options):
    """Return the node of an evaluation."""
    return node_of(evaluation.record(role=role, data=data, note=said, **options), report=report)


def comparison_node(comparison, name="comparison", *, role=None, data=None, report=True):
    """Return the node of a comparison."""
    return node_of(comparison.record(role=role, data=data), name, report=report)


def ends_of(evaluation, keys):
    """Return the ends of the intervals as metrics."""
    limits = evaluation.ci()
    return {
        f"{key}_{end}": float(limits[end].iloc[place])
        for place, key in enumerate(keys)
        for end in ("ci_low", "ci_high")
    }


def test_an_evaluation_is_one_node(small):
    evaluation = small()
    node = evaluation_node(evaluation, "dev", DATA, "The guard says so.")
    keys = ("nDCG_at_10", "AP", "P__rel.2_at_5")
    whole = to_bytes(evaluation)
    assert (node.name, node.label, node.metrics, node.children) == ("ridge", "dev", {}, ())
    assert node.params == {
        "system": "ridge",
        "measure": "nDCG@10",
        "convention": "rankeval",
        "data": "letor",
        "role": "dev",
    }
    metrics = {**dict(zip(keys, evaluation.aggregate().tolist(), strict=True)), **ends_of(evaluation, keys)}
    assert node.scores == (Scores("dev", metrics, "letor", "ab" * 32, hashlib.sha256(whole).hexdigest()),)
    profile = {"num_rows": 160, "num_queries": 20}
    assert node.datasets == (DatasetUse("letor", "ab" * 32, "dev", "/data/letor.txt", profile),)
    assert node.files["rankeval/dev/evaluation.parquet"] == whole
    assert set(node.files) == {"rankeval/dev/evaluation.parquet", "rankeval/dev/record.json"}
    options = {"role": "dev", "said": "The guard says so.", "report": True, "table": True}
    path = "rankeval/dev/evaluation.parquet"
    assert node.renderings == (Rendering("evaluation", path, "rankeval/dev", options, ("queries.json",)),)
    assert list(node.sections) == ["dev"]
    assert "queries.json" in node.sections["dev"]
    card = hashlib.sha256(json.dumps(evaluation.convention.card(), sort_keys=True).encode()).hexdigest()
    assert node.tags == {"rankeval.kind": "evaluation", "rankeval.card": f"rankeval {card[:12]}"}
    assert node.facts == {
        "dev": {
            "system": "ridge",
            "measures": dict(zip(keys, ("nDCG@10", "AP", "P(rel=2)@5"), strict=True)),
            "convention": evaluation.convention.card(),
            "judgments": evaluation.judgments_digest,
            "ranking": evaluation.ranking_digest,
            "data": {"name": "letor", "digest": "ab" * 32},
            "not_finite": {},
            "rankeval": rk.__version__,
        }
    }


def test_an_evaluation_at_a_step_is_a_piece_of_its_own(small):
    node = evaluation_node(small(), "dev", DATA, step=3)
    assert (node.label, node.scores[0].role, node.scores[0].step) == ("dev/step-3", "dev", 3)
    assert set(node.files) == {f"rankeval/dev/step-3/{name}" for name in ("evaluation.parquet", "record.json")}
    (drawing,) = node.renderings
    assert (drawing.into, drawing.tables, drawing.options["table"]) == ("rankeval/dev/step-3", (), False)
    assert (list(node.facts), list(node.sections), node.params["role"]) == (["dev"], ["dev"], "dev")
    assert "at step 3" in node.sections["dev"]
    assert [use.role for use in node.datasets] == ["dev"]


def test_intervals_that_are_not_defined_are_no_metrics():
    """Of weighted means, and of a single query."""
    two = rk.evaluate(
        [1, 0, 1, 0], [1, 2, 2, 1], qid=["a", "a", "b", "b"], measures="AP", query_weight={"a": 1, "b": 3}
    )
    one = rk.evaluate([1, 0], [1.0, 2.0], qid=["a", "a"], measures="AP")
    for evaluation in (two, one):
        assert set(evaluation_node(evaluation, "dev").scores[0].metrics) == {"AP"}


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
    node = evaluation_node(replace(evaluation, scores=scores), "dev")
    assert set(node.scores[0].metrics) == {"nDCG_at_10", "nDCG_at_10_ci_low", "nDCG_at_10_ci_high"}
    assert node.facts["dev"]["not_finite"] == {"AP": "nan", "P__rel.2_at_5": "inf"}


@pytest.fixture
def systems(small):
    return {name: small(name, seed=seed) for seed, name in enumerate(("bm25", "ltr@2", "bert/large"))}


SIGNS = {"difference": "", "p_adjusted": "_p_adjusted", "ci_low_adjusted": "_ci_low", "ci_high_adjusted": "_ci_high"}


def test_a_comparison_is_one_node(systems):
    comparison = rk.compare(systems, baseline="bm25")
    node = comparison_node(comparison, "final", role="test", data="letor")
    assert (node.name, node.label, node.scores, list(node.sections)) == ("final", "final", (), ["final"])
    digest = systems["bm25"].judgments_digest
    profile = {"num_rows": 160, "num_queries": 20}
    assert node.datasets == (DatasetUse("letor", digest, "test", None, profile),)
    best = max(("ltr@2", "bert/large"), key=lambda name: systems[name].aggregate()["nDCG@10"])
    assert node.params == {
        "system": best,
        "baseline": "bm25",
        "systems": "ltr@2, bert/large",
        "measures": "nDCG@10, AP, P(rel=2)@5",
        "test": "t",
        "correction": "holm",
        "claim": "difference",
    }
    assert set(node.files) == {
        "rankeval/final/comparison.json",
        *(f"rankeval/final/{name}" for name in ("table.csv", "tables/table.parquet", "record.json")),
        *(f"rankeval/final/evaluations/{name}.parquet" for name in ("bm25", "ltr_at_2", "bert_large")),
    }
    (drawing,) = node.renderings
    assert set(drawing.options) == {"query_table"}
    bare = Rendering("comparison", "rankeval/final/comparison.json", "rankeval/final")
    assert replace(drawing, options={}) == bare
    assert comparison_node(comparison, report=False).renderings == ()
    assert rk.Comparison.from_json(node.files["rankeval/final/comparison.json"].decode()).table.equals(comparison.table)
    assert node.files["rankeval/final/table.csv"].decode() == comparison.table.to_csv(index=False)
    held = {each["system"]: each["path"] for each in node.facts["final"]["evaluations"]}
    back = from_bytes(node.files[f"rankeval/final/{held['bert/large']}"])
    assert back.scores.tolist() == systems["bert/large"].scores.tolist()
    expected = {
        f"difference/final/{rk.measure(row.measure).key}{end}": getattr(row, column)
        for row in comparison.table.itertuples()
        for column, end in SIGNS.items()
        if row.system == best
    }
    assert node.metrics == expected
    assert node.tags == {"rankeval.kind": "comparison", "rankeval.final.headline": comparison.headline}


def frames(n_systems, n_queries=6):
    rng = np.random.default_rng(0)
    index = [f"q{place}" for place in range(n_queries)]
    return {f"s{n:03}": pd.DataFrame({"AP": rng.random(n_queries)}, index=index) for n in range(n_systems)}


def test_no_metric_of_a_comparison_has_the_name_of_a_system(small):
    """So that ten releases, each against the one before, are one column and one chart."""
    names = [f"v{number}" for number in range(10)]
    systems = {name: small(name, seed=seed) for seed, name in enumerate(names)}
    nodes = [
        comparison_node(rk.compare({old: systems[old], new: systems[new]}, baseline=old))
        for old, new in itertools.pairwise(names)
    ]
    keys = {f"difference/{key}{end}" for key in ("nDCG_at_10", "AP", "P__rel.2_at_5") for end in SIGNS.values()}
    assert {frozenset(node.metrics) for node in nodes} == {frozenset(keys)}
    assert [(node.params["baseline"], node.params["system"]) for node in nodes] == list(itertools.pairwise(names))
    gains = np.diff([systems[name].aggregate()["AP"] for name in names])
    assert [node.metrics["difference/AP"] for node in nodes] == pytest.approx(gains)


def test_against_a_baseline_the_metrics_are_those_of_the_best_of_the_others():
    """Of a hundred systems too, and if the baseline is better; the table has every pair."""
    given = frames(100)
    given["s000"] += 1
    compared = rk.compare(given, baseline="s000")
    node = comparison_node(compared)
    means = {name: frame["AP"].mean() for name, frame in given.items() if name != "s000"}
    best = max(means, key=means.get)
    assert (node.params["baseline"], node.params["system"]) == ("s000", best)
    assert node.metrics["difference/AP"] == pytest.approx(means[best] - given["s000"]["AP"].mean())
    assert len(node.metrics) == len(SIGNS)
    assert node.files["rankeval/comparison/table.csv"].count(b"\n") == 100
    assert not any("evaluations" in path for path in node.files)
    assert node.datasets == ()
    assert node.params["systems"].startswith("s001, s002")


@pytest.mark.parametrize(("n_systems", "n_metrics"), [(2, 4), (3, 0)])
def test_without_a_baseline_two_systems_have_a_difference_and_more_have_none(n_systems, n_metrics):
    """Nobody knows which of the pairs a reader would follow."""
    node = comparison_node(rk.compare(frames(n_systems)))
    assert len(node.metrics) == n_metrics
    assert {"system", "baseline"} & set(node.params) == ({"system", "baseline"} if n_metrics else set())


def test_differences_on_collections_stand_beside_those_on_all(small):
    given = {
        name: {"news": small(name, seed=k), "web": small(name, seed=k + 5, qid=np.arange(100, 120))}
        for k, name in enumerate(("bm25", "ltr"))
    }
    compared = rk.compare(given, baseline="bm25", measures="AP", n_resamples=99)
    node = comparison_node(compared)
    found = {name: value for name, value in node.metrics.items() if name.endswith("/AP")}
    assert list(found) == ["difference/AP", "difference/news/AP", "difference/web/AP"]
    assert sorted(found.values()) == sorted(compared.table["difference"])


LONG = "x" * 10_000


@pytest.mark.parametrize("baseline", ["old", LONG, None])
def test_names_of_10_000_characters_become_names_that_a_store_takes(small, baseline):
    """Two that agree in all but the last letter stay apart; the files have them whole."""
    systems = {"old": small("old", seed=1), LONG: small(LONG, seed=2), f"{LONG}y": small("z", seed=3)}
    compared = rk.compare(systems, baseline=baseline)
    began = time.process_time()
    node = comparison_node(compared)
    assert time.process_time() - began < 5
    assert len(node.metrics) == (0 if baseline is None else 3 * len(SIGNS))
    assert max(map(len, node.metrics), default=0) <= 250
    assert max(len(path.rsplit("/", 1)[1]) for path in node.files) < 120
    assert len({path.lower() for path in node.files}) == len(node.files) == 7
    assert max(len(value) for value in (*node.params.values(), *node.tags.values())) <= 6000, "as MLflow takes them"
    held = {each["system"]: each["path"] for each in node.facts["comparison"]["evaluations"]}
    assert from_bytes(node.files[f"rankeval/comparison/{held[f'{LONG}y']}"]).name == "z"
    assert len(evaluation_node(systems[LONG], "dev").name) <= 200


def test_systems_whose_names_make_one_file_name_have_a_file_each(small):
    systems = {"a/b": small("1", seed=1), "a_b": small("2", seed=2), "A_b": small("3", seed=3)}
    node = comparison_node(rk.compare(systems, baseline="a/b"))
    held = {each["system"]: each["path"] for each in node.facts["comparison"]["evaluations"]}
    assert len({path.lower() for path in held.values()}) == 3
    assert {from_bytes(node.files[f"rankeval/comparison/{path}"]).name for path in held.values()} == {"1", "2", "3"}


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
    assert json.loads(node.files["rankeval/record/params.json"]) == {"long": "x" * 7000}
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
    assert (node.started_ms, node.ended_ms, node.status) == (None, None, "FINISHED")
    assert (last.params, last.metrics, last.tags, last.files, last.datasets) == ({}, {}, {}, {}, ())


@pytest.fixture
def experiment(small):
    """Return the record of an experiment of three rankers, of which "ltr" is the best on the test part."""
    data = (DATA, replace(DATA, name="held-out", digest="cd" * 32, role="test"))
    dev = {name: small(name, seed=seed + 10) for seed, name in enumerate(("bm25", "ltr", LONG))}
    test = {name: small(name, seed=seed) for seed, name in enumerate(("bm25", "ltr", LONG))}
    children = tuple(
        RunRecord(
            name,
            params={"estimator": name[:4], "alpha": 0.1 * place} if place else {"estimator": "given"},
            tags={"rankeval.kind": "candidate"},
            evaluations={"dev": dev[name], "test": test[name]},
            data=data,
        )
        for place, name in enumerate(dev)
    )
    tags = {"rankeval.kind": "experiment", "rankeval.guard.ledger": "/l", "rankeval.guard.looks": "1"}
    tags["rankeval.guard.head"] = "ab"
    compared = rk.compare(test, baseline="bm25", measures="nDCG@10")
    artifacts = {"report.html": b"<p>", "experiment.yaml": b"name: x"}
    return RunRecord("x", {"cv": 5}, tags=tags, comparison=compared, data=data, artifacts=artifacts, children=children)


def test_the_run_of_an_experiment_has_the_metrics_of_the_best_ranker(experiment):
    """Under the names that the ranker's own run has, so that both stand in one column."""
    node = record_node(experiment)
    best = max(experiment.children, key=lambda child: child.evaluations["test"].aggregate()["nDCG@10"])
    for role, prefix in (("dev", ""), ("test", "test/")):
        for key, label in (("nDCG_at_10", "nDCG@10"), ("AP", "AP")):
            assert node.metrics[prefix + key] == best.evaluations[role].aggregate()[label]
    assert node.params["system"] == best.name[:60] or node.params["system"].startswith("xxx")
    assert node.params["cv"] == "5"
    assert (node.params["measure"], node.params["data"], node.params["test/data"]) == ("nDCG@10", "letor", "held-out")
    assert node.params["role"] == "dev, test"
    assert node.scores == ()
    for child, inside in zip(experiment.children, node.children, strict=True):
        gain = child.evaluations["test"].aggregate() - experiment.children[0].evaluations["test"].aggregate()
        own = None if child.name == "bm25" else pytest.approx(gain["nDCG@10"])
        assert inside.metrics.get("difference/nDCG_at_10") == own, "of each candidate from the baseline"
    assert [(use.name, use.role) for use in node.datasets] == [("letor", "dev"), ("held-out", "test")]


def test_the_run_of_an_experiment_has_a_table_of_the_rankers_the_best_first(experiment):
    node = record_node(experiment)
    frame = pd.read_csv(io.BytesIO(node.files["rankeval/record/rankers.csv"]))
    assert list(frame)[:3] == ["ranker", "test nDCG@10", "test AP"]
    assert {"dev nDCG@10", "estimator", "alpha"} < set(frame)
    assert frame["test nDCG@10"].is_monotonic_decreasing
    assert frame["ranker"].str.len().max() <= 60
    assert "test nDCG@10" in node.sections["rankers"]
    assert list(node.sections) == ["comparison", "rankers"]
    drawing = Rendering("rankers", "rankeval/record/rankers.csv", "rankeval/record", {}, ("rankers.json",))
    assert drawing in node.renderings


def test_reports_are_in_the_folders_of_their_pieces_and_kinds_are_kept(experiment):
    node = record_node(experiment)
    assert "rankeval/record/report.html" in node.files
    assert "experiment.yaml" in node.files
    assert (node.tags["rankeval.kind"], node.children[0].tags["rankeval.kind"]) == ("experiment", "candidate")
    assert "rankeval.guard.looks" not in node.tags
    assert node.tags["rankeval.guard.ledger"] == "/l"
    assert node.facts["record"]["guard"] == {"guard.ledger": "/l", "guard.looks": "1", "guard.head": "ab"}
    unguarded = record_node(replace(experiment, tags={"rankeval.guard.ledger": "off", "rankeval.guard.head": ""}))
    assert not [name for name in unguarded.tags if "guard" in name], "there is nothing to check"
    assert {drawing.into for drawing in node.children[0].renderings} == {"rankeval/dev", "rankeval/test"}
    assert node.children[0].params["test/data"] == "held-out"


def test_a_record_says_when_the_work_was_done_and_how_it_ended():
    node = record_node(RunRecord("x", started=100.5, seconds=2.0, status="FAILED", reason="The guard said no: <b>."))
    assert (node.started_ms, node.ended_ms, node.status) == (100_500, 102_500, "FAILED")
    assert "The guard said no" in node.sections["record"]
    assert "<b>" not in node.sections["record"]


def test_without_a_comparison_no_child_is_the_best(small):
    children = (RunRecord("a", evaluations={"dev": small("a")}),)
    node = record_node(RunRecord("x", children=children))
    assert (node.metrics, node.params, node.renderings) == ({}, {}, ())


@pytest.fixture
def made():
    return rk.datasets.make_ranking(30, 10, rng=0)


def test_a_record_has_its_folds_as_steps_and_its_ranker_as_a_model(made):
    """The name of the model has none of the characters that MLflow refuses there."""
    ranker = rk.QueryRanker(Ridge()).fit(made.X, made.y, qid=made.qid)
    folds = rk.cross_validate(Ridge(), made, measures="AP", cv=3)
    node = record_node(RunRecord("ridge/1:a", model=ranker, rows=made.X[:5], folds=folds))
    assert [step for key, _, step in node.steps if key == "AP_fold"] == [0, 1, 2]
    assert node.metrics["AP_sd"] == folds.folds["AP"].std()
    assert "rankeval/record/folds.csv" in node.files
    (model,) = node.models
    assert (model.name, model.model_type) == ("ridge_1_a", "ranker")
    assert (node.params["estimator"], node.params["alpha"]) == ("Ridge", "1.0")
    assert "MLmodel" in model.files


def test_a_ranker_that_cannot_be_saved_costs_nothing_else(small):
    record = RunRecord("a", model=Ridge(), evaluations={"dev": small()})
    with pytest.warns(rk.errors.RankevalWarning, match="was not saved"):
        node = record_node(record)
    assert node.models == ()
    assert "was not saved" in node.sections["model"]
    assert len(node.scores) == 1
