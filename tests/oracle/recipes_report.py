"""Reports and experiments: pages, and what an experiment file may say."""

from __future__ import annotations

from typing import Any

import pandas as pd
from oracle.calls import Call, recipe
from oracle.drawing import Draw
from oracle.recipes_evaluation import small_evaluation
from oracle.recipes_judging import labels_of

CONFIG: dict[str, Any] = {
    "name": "small",
    "data": {"loader": "digits", "arguments": {"n_queries": 30, "n_candidates": 8}},
    "rankers": {
        "ridge": {"estimator": "sklearn.linear_model.Ridge", "grid": {"alpha": [0.1, 10.0]}},
        "tree": {
            "estimator": "sklearn.tree.DecisionTreeRegressor",
            "params": {"max_depth": 2, "random_state": 0},
        },
    },
    "measures": ["nDCG@10", "AP"],
    "cv": {"n_splits": 2},
    "tracking": "off",
}
CHANGES: tuple[dict[str, Any], ...] = (
    {},
    {"measures": ["RR"], "primary": "RR"},
    {"measures": ["RR"], "primary": "AP"},
    {"cv": {"n_splits": 3, "seed": 1}},
    {"cv": {"n_splits": 1}},
    {"comparison": {"test": "t", "correction": "holm"}},
    {"comparison": {"test": "odd"}},
    {"split": {"test_size": 0.4, "salt": "x"}},
    {"split": {"test_size": 2}},
    {"convention": "trec_eval-10"},
    {"colour": "red"},
    {"rankers": {}},
    {"guard": "off"},
    {"seed": 7},
    {"seed": "x"},
    {"name": "bad/name"},
)


def config_of(draw: Draw) -> dict[str, Any]:
    """Return an experiment with a change, good or bad."""
    return {**CONFIG, **draw.choice(CHANGES), **draw.choice(CHANGES[:4])}


@recipe("report", 30, timed=True)
def evaluation(draw: Draw, call: Call) -> None:
    """Write the page of an evaluation."""
    found = small_evaluation(draw, call, draw.choice((None, "ltr")))
    queries = [f"q{place}" for place in range(found.n_queries)]
    kinds = pd.Series([draw.choice("ab") for _ in queries], index=queries, name="kind")
    call(
        "rankeval.report.report_for_evaluation",
        found,
        **draw.options(
            0.5, role=("dev", "test"), said=("A sentence.",), slices=(kinds, "relevant")
        ),
    )


@recipe("report", 30, timed=True)
def queries(draw: Draw, call: Call) -> None:
    """Write the page of single queries, with texts and snippets."""
    judgments = draw.judgments(4, 8)
    runs = draw.rankings(judgments, 2)
    made = {
        name: call.make("rankeval.evaluate", judgments, run, measures=["nDCG@10", "AP"], name=name)
        for name, run in runs.items()
    }
    texts = {f"d{at}": draw.sentence(12) for at in range(20)} | {
        f"n{at}": draw.sentence(9) for at in range(4)
    }
    options = draw.options(
        0.5,
        texts=(texts,),
        needs=(draw.queries(4),),
        queries=(2, ["q1"], ["q77"]),
        measure=("AP",),
        depth=(3,),
    )
    call("rankeval.report.report_for_queries", made, runs, judgments, **options)


@recipe("report", 25, timed=True)
def judging(draw: Draw, call: Call) -> None:
    """Write the page of results of judging."""
    labels = labels_of(draw, 3, 4)
    runs = draw.rankings(labels["ann"], 2)
    results = [
        call.make("rankeval.judging.agreement", labels),
        call.make("rankeval.judging.disagreement", labels, runs, n_draws=5),
        call.make("rankeval.judging.pool", runs, depth=3),
    ]
    call(
        "rankeval.report.report_for_judging",
        draw.some(results),
        **draw.options(0.5, title=("Our judges",)),
    )


@recipe("experiment", 160)
def checked(draw: Draw, call: Call) -> None:
    """Check an experiment file, write it as YAML, and read it with changes of the command line."""
    made = call(
        "rankeval.experiment.check_config",
        config_of(draw),
        **draw.options(0.3, source=("my.yaml",)),
    )
    text = call.of(made, "ExperimentConfig.to_yaml")
    path = draw.write("my.yaml", text if isinstance(text, str) else "name: x\n")
    settings = draw.some(
        ("cv.n_splits=3", "rankers.tree=null", "seed=3", "measures=[AP]", "odd=1", "cv.odd=2", "x"),
        0,
        2,
    )
    call(
        "rankeval.experiment.load_config",
        draw.choice((path, str(path), "quickstart", "letor", "none")),
        settings,
    )


@recipe("experiment", 30)
def models(draw: Draw, call: Call) -> None:
    """Make the model of an experiment by hand, and list the shipped files."""
    changed = {
        "data": {"loader": draw.choice(("digits", "odd"))},
        "rankers": CONFIG["rankers"],
        "name": draw.choice(("a", "a/b")),
    }
    call.tried("rankeval.experiment.ExperimentConfig", **changed)
    found = call.make("rankeval.experiment.shipped_configs")
    call.keep("shipped", {name: path.read_text("utf-8") for name, path in found.items()})


@recipe("experiment", 30, hashes=True)
def parts(draw: Draw, call: Call) -> None:
    """Load the parts of an experiment, and say what a run would need."""
    made = call.make(
        "rankeval.experiment.check_config", {**CONFIG, "guard": "off", **draw.choice(CHANGES[:4])}
    )
    call("rankeval.experiment.load_parts", made)
    call("rankeval.experiment.check_run", made)


@recipe("experiment", 14, hashes=True, timed=True)
def run(draw: Draw, call: Call) -> None:
    """Run an experiment, with a guard or without; run it again; write its page anew."""
    guard: Any = draw.choice(("off", {"project": "p", "baseline": "ridge", "ledger": "ledger"}))
    made = {**CONFIG, "guard": guard, **draw.choice(CHANGES[:3])}
    if guard != "off":
        import os

        os.environ["RANKEVAL_LEDGER"] = "ledger"
        call.names.find("rankeval.contamination.forget")()
    result = call.make("rankeval.run_experiment", made)
    call.keep(
        "table",
        [result.comparison.table, result.n_trained, result.looks_added, result.tracking_error],
    )
    call.keep(
        "candidates",
        [[each.name, each.params, each.dev, each.test] for each in result.facts.candidates],
    )
    call.of(result, "ExperimentResult.predictions", draw.choice(("ridge", "tree", "none")))
    call("rankeval.report.report_for_experiment", result.facts)
    if draw.happens(0.3):
        again = call.make("rankeval.run_experiment", made)
        call.keep("again", [again.n_trained, again.looks_added, again.comparison.table])
