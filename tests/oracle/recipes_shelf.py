"""Results as records and folders: saved, read, loaded and pushed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from oracle.calls import Call, recipe
from oracle.drawing import Draw
from oracle.recipes_commands import flags
from oracle.recipes_judging import labels_of
from oracle.recipes_mlflow import evaluation, left, store_of
from oracle.recipes_model_selection import ridge, table
from oracle.recipes_online import log_of, users_of
from oracle.recipes_text import known_profile


def validated(draw: Draw, call: Call, rankers: Any) -> Any:
    """Return a cross-validation, or several."""
    rows = table(draw, 8)
    return call.make(
        "rankeval.cross_validate", rankers, rows["X"], rows["y"], qid=rows["qid"], cv=2
    )


def pooled(draw: Draw, call: Call) -> Any:
    """Return the reusability of judgments."""
    judgments = draw.judgments(4, 8)
    return call.make(
        "rankeval.judging.reusability", judgments, draw.rankings(judgments, 3), depth=3
    )


def disagreeing(draw: Draw, call: Call) -> Any:
    """Return what the disagreement of judges does."""
    labels = labels_of(draw, 3, 5)
    runs = draw.rankings(labels["ann"])
    return call.make("rankeval.judging.disagreement", labels, runs, n_draws=5)


def calibrated(draw: Draw, call: Call) -> Any:
    """Return a calibrated machine judge."""
    machine = draw.effects(2, 30, ("AP",))
    human = {name: frame.iloc[:12] for name, frame in machine.items()}
    return call.make("rankeval.judging.calibrate", human, machine)


def perplexing(draw: Draw, call: Call) -> Any:
    """Return the perplexity of a click model."""
    log = log_of(draw, call, n_impressions=60)
    model = call.make("rankeval.online.ClickModel", "pbm").fit(log)
    return model.perplexity(log)


def valued(draw: Draw, call: Call) -> Any:
    """Return the value of a policy."""
    n = draw.integer(20, 60)
    clicks = [int(draw.happens()) for _ in range(n)]
    return call.make("rankeval.online.policy_value", clicks, [0.5] * n, [0.4] * n)


def weighed(draw: Draw, call: Call) -> Any:
    """Return the propensities of positions."""
    log = log_of(draw, call, n_impressions=60)
    return call.make("rankeval.online.propensities", log, how="em", n_resamples=5)


def compared(draw: Draw, call: Call) -> Any:
    """Return a comparison of frames, or of evaluations."""
    if draw.happens():
        return call.make("rankeval.compare", draw.effects(3, 12, ("AP", "RR")), baseline="base")
    pair = {name: evaluation(draw, call, name) for name in ("ridge", "ltr")}
    return call.make("rankeval.compare", pair)


def ordered(draw: Draw, call: Call) -> Any:
    """Return the agreement of orders of systems."""
    return call.make("rankeval.order_agreement", draw.effects(3, 10, ("AP", "RR")))


RESULTS: dict[str, Callable[[Draw, Call], Any]] = {
    "ABTest": lambda draw, call: call.make(
        "rankeval.online.ab_test", users_of(draw), metrics={"orders": "orders"}
    ),
    "Agreement": lambda draw, call: call.make("rankeval.judging.agreement", labels_of(draw, 3)),
    "Calibration": calibrated,
    "ClickRates": lambda draw, call: log_of(draw, call).click_rates(),
    "Comparison": compared,
    "CrossValidation": lambda draw, call: validated(draw, call, ridge()),
    "CrossValidations": lambda draw, call: validated(draw, call, {"a": ridge(), "b": ridge()}),
    "Disagreement": disagreeing,
    "Evaluation": lambda draw, call: evaluation(draw, call, "ridge"),
    "LogChecks": lambda draw, call: log_of(draw, call).checks(),
    "OrderAgreement": ordered,
    "Perplexity": perplexing,
    "PolicyValue": valued,
    "Profile": known_profile,
    "Propensities": weighed,
    "Reusability": pooled,
}
"""What makes a result of each class."""

METHODS = {
    "ABTest.record": "rankeval.online.ABTest.from_record",
    "Agreement.record": "rankeval.judging.Agreement.from_record",
    "Calibration.record": "rankeval.judging.Calibration.from_record",
    "ClickRates.record": "rankeval.online.ClickRates.from_record",
    "Comparison.record": "rankeval.Comparison.from_record",
    "CrossValidation.record": "rankeval.CrossValidation.from_record",
    "CrossValidations.record": "rankeval.CrossValidations.from_record",
    "Disagreement.record": "rankeval.judging.Disagreement.from_record",
    "Evaluation.record": "rankeval.Evaluation.from_record",
    "LogChecks.record": "rankeval.online.LogChecks.from_record",
    "OrderAgreement.record": "rankeval.OrderAgreement.from_record",
    "Perplexity.record": "rankeval.online.Perplexity.from_record",
    "PolicyValue.record": "rankeval.online.PolicyValue.from_record",
    "Profile.record": "rankeval.Profile.from_record",
    "Propensities.record": "rankeval.online.Propensities.from_record",
    "Reusability.record": "rankeval.judging.Reusability.from_record",
}


def recorded(draw: Draw, call: Call, *kinds: str) -> None:
    """Make the record of a result of each class, and the result of the record."""
    for kind in kinds:
        record = call.of(RESULTS[kind](draw, call), f"{kind}.record")
        call.tried(METHODS[f"{kind}.record"], record)


@recipe("shelf", 40)
def of_scores(draw: Draw, call: Call) -> None:
    """Make records of evaluations, of what compares them, and of a profile."""
    recorded(draw, call, "Evaluation", "Comparison", "OrderAgreement", "Profile")


@recipe("shelf", 20)
def of_judging(draw: Draw, call: Call) -> None:
    """Make records of results of judging."""
    recorded(draw, call, "Agreement", "Calibration", "Disagreement", "Reusability")


@recipe("shelf", 30)
def of_clicks(draw: Draw, call: Call) -> None:
    """Make records of results of online evaluation; the last one refuses some logs."""
    recorded(draw, call, "ABTest", "ClickRates", "LogChecks", "PolicyValue")
    recorded(draw, call, "Perplexity", "Propensities")


@recipe("shelf", 20, hashes=True, timed=True)
def of_rankers(draw: Draw, call: Call) -> None:
    """Make records of cross-validations."""
    recorded(draw, call, "CrossValidation", "CrossValidations")


@recipe("shelf", 20)
def by_hand(draw: Draw, call: Call) -> None:
    """Make a record by hand, and try the host of folders with the awkward record."""
    values = draw.options(0.6, headline=("one",), metrics=({"AP": 0.5},), notes=(("a note",),))
    call("rankeval.Record", draw.choice(("evaluation", "odd")), "bm25", **values)
    host = call.names.find("rankeval.shelf.files.HOST")
    call.tried("rankeval.testing.check_host", host, "checked")


@recipe("shelf", 120, hashes=True, timed=True)
def folders(draw: Draw, call: Call) -> None:
    """Save a result as a folder, perhaps change a byte, read its record and load it."""
    result = RESULTS[draw.choice(tuple(RESULTS))](draw, call)
    options = draw.options(0.2, role=("test", "no word"), data=("mslr",), folds=(True,))
    call.tried("rankeval.save", result, "with options", **options)
    call("rankeval.save", result, "saved")
    if draw.happens(0.3):
        files = [*sorted(Path("saved").rglob("*.parquet")), *sorted(Path("saved").rglob("*.json"))]
        for damaged in files[: draw.integer(0, 2)]:
            damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    call.tried("rankeval.read_record", "saved")
    call.tried("rankeval.load", "saved")
    call.tried("rankeval.save", result, "saved")


@recipe("commands", 30, hashes=True, timed=True)
def push(draw: Draw, call: Call) -> None:
    """Push a saved evaluation to a host."""
    uri = store_of(call)
    call.make("rankeval.save", evaluation(draw, call, "ridge"), "saved")
    host = draw.choice(("files", "mlflow", "odd"))
    place = ["--uri", "shared"] if host == "files" else []
    call.command("push", "saved", "--host", host, *place, *flags(draw, experiment=("shop",)))
    left(call, uri)


@recipe("commands", 30, hashes=True, timed=True)
def site(draw: Draw, call: Call) -> None:
    """Write the site of two saved evaluations, one of them perhaps damaged."""
    for name in ("ridge", "lasso"):
        call.make("rankeval.save", evaluation(draw, call, name), f"saved/{name}")
    if draw.happens(0.3):
        Path("saved/lasso/evaluation.parquet").write_bytes(b"?")
    call.command(
        "site", "saved", "--out", draw.choice(("public", "saved")), *flags(draw, queries=(True,))
    )
