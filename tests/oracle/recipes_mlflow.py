"""MLflow: what is logged, loaded, compared and promoted, in a store of the call's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from oracle.calls import Call, recipe
from oracle.drawing import Draw
from oracle.recipes_judging import labels_of
from oracle.recipes_model_selection import ridge, table
from oracle.recipes_online import users_of
from oracle.recipes_text import known_profile
from oracle.stores import contents, new_store


def store_of(call: Call) -> str:
    """Give the call a store; return its URI."""
    import rankeval_mlflow  # noqa: F401 - before the store, as a user has it

    return new_store(call.empty_database)


def evaluation(draw: Draw, call: Call, name: str, shift: float = 0.0) -> Any:
    """Return an evaluation of 20 queries whose judgments are the same in each call of a recipe."""
    y = np.random.default_rng(7).integers(0, 3, 120)
    score = (y * shift + draw.numpy.normal(size=120)).round(2)
    return call.make(
        "rankeval.evaluate",
        y,
        score,
        qid=np.repeat(np.arange(20), 6),
        measures=["nDCG@10", "AP"],
        name=name,
    )


def left(call: Call, uri: str) -> None:
    """Record what the store holds."""
    call.keep("store", contents(uri))


@recipe("mlflow", 26, hashes=True, timed=True)
def evaluations(draw: Draw, call: Call) -> None:
    """Log evaluations, load one again, compare the runs and rank them."""
    uri = store_of(call)
    first, second = (
        evaluation(draw, call, "ridge"),
        evaluation(draw, call, "ltr", draw.choice((0.0, 0.7))),
    )
    options = draw.options(
        0.4, role=("dev", "test"), data=("mslr",), report=(False,), slices=("relevant",)
    )
    runs = [call.make("rankeval_mlflow.log", each, **options) for each in (first, second)]
    role = options.get("role", "dev")
    call.tried("rankeval_mlflow.load_evaluation", runs[0].run_id, draw.choice((role, None, "odd")))
    ids = [run.run_id for run in runs]
    call.tried(
        "rankeval_mlflow.compare_runs",
        ids if draw.happens(0.9) else [*ids, "none"],
        **draw.options(0.4, role=(role,), baseline=(ids[0],)),
    )
    call.tried(
        "rankeval_mlflow.leaderboard",
        "oracle",
        **draw.options(0.4, measure=("AP", "RR"), limit=(1,), significance=(False,)),
    )
    left(call, uri)


@recipe("mlflow", 15, hashes=True, timed=True)
def comparisons(draw: Draw, call: Call) -> None:
    """Log a comparison, and load it again."""
    uri = store_of(call)
    found = call.make("rankeval.compare", draw.effects(2, 12, ("AP", "nDCG@10")), baseline="base")
    options = draw.options(
        0.4, name=("main", "a/b"), report=(False,), role=("test",), data=("mslr",)
    )
    run = call.make("rankeval_mlflow.log", found, **options)
    call.tried("rankeval_mlflow.load", run.run_id, **draw.options(0.3, label=("main", "odd")))
    call.tried(
        "rankeval_mlflow.load_comparison",
        run.run_id,
        *([options["name"]] if "name" in options else []),
    )
    left(call, uri)


@recipe("mlflow", 14, hashes=True, timed=True)
def cross_validations(draw: Draw, call: Call) -> None:
    """Log a cross-validation, with its folds or without."""
    uri = store_of(call)
    rows = table(draw, 8)
    found = call.make(
        "rankeval.cross_validate", ridge(), rows["X"], rows["y"], qid=rows["qid"], cv=2
    )
    call.make(
        "rankeval_mlflow.log",
        found,
        **draw.options(0.5, folds=(True,), name=("cv",), data=("mslr",)),
    )
    left(call, uri)


@recipe("mlflow", 18, hashes=True, timed=True)
def others(draw: Draw, call: Call) -> None:
    """Log an agreement, a profile and an A/B test."""
    uri = store_of(call)
    form = draw.integer(0, 2)
    if form == 0:
        found = call.make("rankeval.judging.agreement", labels_of(draw, 3))
        call.make(
            "rankeval_mlflow.log",
            found,
            **draw.options(0.5, name=("judges",), report=(False,)),
        )
    elif form == 1:
        found = known_profile(draw, call)
        call.make("rankeval_mlflow.log", found, **draw.options(0.5, name=("speed",)))
    else:
        found = call.make("rankeval.online.ab_test", users_of(draw), metrics={"orders": "orders"})
        call.make("rankeval_mlflow.log", found, **draw.options(0.5, name=("ab",), report=(False,)))
    left(call, uri)


@recipe("mlflow", 10, hashes=True, timed=True)
def models(draw: Draw, call: Call) -> None:
    """Log a fitted ranker, which MLflow then serves."""
    import mlflow.utils.environment as packages

    packages._infer_requirements = lambda *_, **__: [
        "scikit-learn"
    ]  # to find them it starts a process
    store_of(call)
    rows = table(draw, 6)
    ranker = call.make("rankeval.QueryRanker", ridge()).fit(rows["X"], rows["y"], qid=rows["qid"])
    logged = call.make("rankeval_mlflow.log_ranker", ranker, "ranker", X=rows["X"][:5])
    import mlflow

    served = mlflow.pyfunc.load_model(
        f"models:/{logged.model_id}" if hasattr(logged, "model_id") else logged.uri
    )
    call.keep("served", np.asarray(served.predict(rows["X"][:4])))


@recipe("mlflow", 12, hashes=True, timed=True)
def promotions(draw: Draw, call: Call) -> None:
    """Promote versions of a registered model by their logged evaluations, and roll back."""
    import mlflow

    uri = store_of(call)
    client = mlflow.MlflowClient()
    client.create_registered_model("ranker")
    for at, shift in enumerate((0.3, draw.choice((0.3, 3.0, 3.0)))):
        run = mlflow.start_run()
        mlflow.end_run()
        client.create_model_version("ranker", source=run.info.artifact_uri, run_id=run.info.run_id)
        call.make(
            "rankeval_mlflow.log",
            evaluation(draw, call, f"v{at}", shift),
            role="test",
            report=False,
            model_version=f"ranker/{at + 1}",
        )
    call.tried("rankeval_mlflow.promote", "ranker", 1, measure="nDCG@10", first=True, who="ann")
    options = draw.options(0.2, alpha=(0.2,), dry_run=(True,), test=("randomization",))
    if draw.happens(0.3):
        options |= {"claim": "not_worse", **draw.options(0.8, margin=(0.01,))}
    done = call.tried(
        "rankeval_mlflow.promote",
        "ranker",
        draw.choice((2, 2, "latest", 9)),
        measure="nDCG@10",
        who="ann",
        **options,
    )
    call.keep("moved", getattr(done, "moved", None))
    call.tried(
        "rankeval_mlflow.rollback",
        "ranker",
        reason=draw.choice(("worse online", "worse online", "")),
        who="ann",
    )
    call.tried("rankeval_mlflow.why", "ranker", draw.choice((1, 2, 9)))
    left(call, uri)


@recipe("mlflow", 8, hashes=True, timed=True)
def automatic(draw: Draw, call: Call) -> None:
    """Let cross-validations log themselves."""
    uri = store_of(call)
    try:
        call(
            "rankeval_mlflow.autolog",
            log_models=False,
            silent=True,
            **draw.options(0.4, log_folds=(True,), max_tuning_runs=(1,)),
        )
        rows = table(draw, 8)
        call.make("rankeval.cross_validate", ridge(), rows["X"], rows["y"], qid=rows["qid"], cv=2)
    finally:
        call.make("rankeval_mlflow.autolog", disable=True)
    left(call, uri)


@recipe("mlflow", 30, hashes=True, timed=True)
def scorers(draw: Draw, call: Call) -> None:
    """Score retrieved documents for MLflow's evaluation of agents."""
    store_of(call)
    measures = draw.choice(("nDCG@10", "AP", ["RR", "P@3"], "odd"))
    made = call.make(
        "rankeval_mlflow.genai_scorer",
        measures,
        **draw.options(0.4, name=("mine",), convention=("trec_eval-10",)),
    )
    judged: Any = {"relevance": {f"d{at}": draw.integer(0, 2) for at in range(4)}}
    ranked: Any = draw.some([f"d{at}" for at in range(6)])
    if draw.happens(0.2):
        ranked, judged = draw.choice(
            ((None, judged), ("d1", judged), (ranked, {}), (ranked, {"relevance": {"d1": "x"}}))
        )
    answers = made(outputs=ranked, expectations=judged)
    for answer in answers if isinstance(answers, list) else [answers]:
        call.keep(
            "answer",
            {
                name: getattr(answer, name, None)
                for name in ("name", "value", "rationale", "metadata")
            },
        )


@recipe("mlflow", 12, hashes=True, timed=True)
def evaluator(draw: Draw, call: Call) -> None:
    """Evaluate by MLflow, which finds our evaluator by its entry point."""
    import mlflow

    uri = store_of(call)
    rows = table(draw, 6)
    frame = pd.DataFrame(rows["X"], columns=["a", "b", "c"]).assign(
        qid=rows["qid"], relevance=rows["y"], score=rows["X"][:, 0]
    )
    settings = {"qid": "qid", "measures": ["nDCG@10", "AP"], **draw.options(0.2, odd=(1,))}
    result = mlflow.models.evaluate(
        data=frame,
        targets="relevance",
        predictions="score",
        model_type="ranker",
        evaluators="rankeval",
        evaluator_config=settings,
    )
    call.keep("metrics", dict(result.metrics))
    left(call, uri)


@recipe("mlflow", 45)
def hosts(draw: Draw, call: Call) -> None:
    """Find hosts by entry point, and make records of runs by hand."""
    call("rankeval.tracking.host_names")
    shown = call.make("rankeval.tracking.shown_host", draw.choice(("mlflow", "odd")))
    call.keep("host", [shown.title, shown.default_uri])
    call.keep("same", call.make("rankeval.tracking.host", "mlflow").title)
    part = call(
        "rankeval.tracking.LoggedData",
        "mslr",
        "0a1b",
        "dev",
        10,
        2,
        **draw.options(0.5, source=("a.csv",)),
    )
    call(
        "rankeval.tracking.RunRecord",
        "run",
        data=(part,),
        **draw.options(0.5, params=({"a": 1},), metrics=({"AP": 0.5},), status=("FAILED",)),
    )
    call("rankeval.tracking.TrackedRun", "r1", (), "look here")
    call("rankeval.tracking.Host", "a diary", **draw.options(0.5, default_uri=("file",)))
