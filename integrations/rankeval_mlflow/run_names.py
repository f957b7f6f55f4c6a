"""The names in a run: of its tags and artifacts, and names and values that every MLflow store accepts.

A run of MLflow holds one or more *pieces*, each logged by one call: an evaluation of a role, a
comparison, the record of an experiment. Each piece has a folder ``rankeval/<label>/`` among the
artifacts, with a manifest: everything that the piece wrote, and its facts. Tags are few and short,
since people read them. No code reads their sentences: a state that is read again has a tag of its
own, with JSON or one word.

MLflow refuses most punctuation in the names of metrics, parameters and tags, and cuts long values.
Asynchronous logging loses the data of a refused name without a message. So every name and value
passes through `safe_name` or `param_text` first.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from rankeval._checks import require
from rankeval.errors import TrackingError
from rankeval.shelf.record import INTERVAL_ENDS, checked_word

MAX_NAME = 250
MAX_PARAM = 6000
MAX_TAG = 8000
MAX_SHOWN = 60
# MLflow accepts 36 characters; 16 tell data sets apart and fit into its lists.
SHOWN_DIGEST = 16

# Fewer characters than MLflow accepts on Linux: Windows refuses the colon, and letters beyond ASCII
# sort oddly.
_REFUSED = re.compile(r"[^A-Za-z0-9_.\- /]")
_MODEL = re.compile("[^/:.%\"']+")  # MLflow checks this when the run has begun


COMPLETE = "rankeval.complete"
"""The tag that is written last: the complete pieces of the run, as `delivery.payload` writes them."""

RECORD = "rankeval.record"
"""The tag by which an upload finds the run that it made before it broke off."""

ROLE = "rankeval.role"
"""The tag with the role whose metrics have bare keys; the metrics of other roles are ``<role>/<key>``."""

KIND = "rankeval.kind"
"""The tag with the kind of a run: that of its first result (evaluation, comparison, cross-validation and the others of
`rankeval.shelf.kinds.KINDS`); fold and trial; experiment and candidate; promotion and rollback; of automatic
logging also search and setting."""

BEST = "rankeval.best"
"""The tag of the best trial of a study: "yes"."""

CARD = "rankeval.card"
"""The tag with the name of the convention and the start of the digest of its card."""

HEADLINE = "rankeval.headline"
"""The tag with the result of a run's only comparison; named comparisons, and results of judging, have
``rankeval.NAME.headline``."""

GUARD_LEDGER, GUARD_HEAD = "rankeval.guard.ledger", "rankeval.guard.head"
"""The tags with the place of the ledger, and its head when the run was logged."""

EVALUATION = "rankeval.evaluation"
"""The tag of a version with its last evaluation of each role as JSON, which `with_evaluation` makes."""

PROMOTION = "rankeval.promotion"
"""The tag with the fate of the alias in words, on the run of a promotion; a version has
``rankeval.promotion.<alias>``."""

STATE = ".state"
"""The end of the tag of a version with the JSON behind the words of ``rankeval.promotion.<alias>``."""

OUTCOME = "rankeval.outcome"
"""The tag of a promotion's run with the fate of the alias in a word or two, for programs."""

REJECTION = "rankeval.rejection"
"""The start of a version's tag of its last rejection, ``rankeval.rejection.<alias>``, until it gets the alias."""

DECISION = "rankeval/promotion/decision.json"
"""The artifact with the decision of a promotion."""

PAGE = "queries.html"
"""The artifact with the page of queries of an evaluation or a comparison."""

NOTE = "mlflow.note.content"
"""MLflow's own tag with the description of a run."""

TABLES = "mlflow.loggedArtifacts"
"""MLflow's own tag with the artifacts that it shows as tables."""

VIEW = "mlflow.sharedViewState.rankeval"
"""The tag of an experiment with a view of its runs, as MLflow saves views: with columns for the measures."""

VIEW_ADDRESS = "viewStateShareKey=rankeval"
"""The part of an address that opens the view."""

_STEP = "/step-"


def safe_name(name: str) -> str:
    """Return a name that MLflow accepts: the same if possible, else with punctuation replaced."""
    safe = _REFUSED.sub("_", name.replace("@", "_at_"))
    # A name must not resolve to another one when it is read as a path: no "..", no "//", no slash
    # at either end.
    safe = "/".join(step for step in safe.split("/") if step.strip(". "))
    if len(safe) > MAX_NAME:
        safe = _marked(safe, name)
    return safe or "_"


def _marked(safe: str, name: str) -> str:
    """Return the start of a safe name, with the start of the digest of the name that it stands for."""
    return f"{safe[: MAX_NAME - 9]}_{name_hash(name)[:8]}"


def safe_names(names: Iterable[str]) -> dict[str, str]:
    """Return a safe name for each name, all different; a name that is already safe stays."""
    wanted = {name: safe_name(name) for name in names}
    taken = {name for name, safe in wanted.items() if name == safe}
    chosen = {}
    for name, safe in wanted.items():
        chosen[name] = _marked(safe, name) if name != safe and safe in taken else safe
        taken.add(chosen[name])
    return chosen


def short_name(name: str, most: int = MAX_SHOWN) -> str:
    """Return a name that fits where people read it: a longer one is cut, with a mark and the start of its digest."""
    return name if len(name) <= most else f"{name[: most - 12]}...~{name_hash(name)[:8]}"


def checked_model_name(name: str) -> str:
    """Return the name of a logged model; raise InvalidInput if MLflow does not take it."""
    is_name = isinstance(name, str) and _MODEL.fullmatch(name) is not None
    require(is_name, "name", name, "a name of a model, without any of / : . % \" '")
    return name


def param_text(value: Any) -> str:
    """Return the value of a parameter as text; a text that MLflow would cut is cut with a mark."""
    text = str(value)
    if len(text) <= MAX_PARAM:
        return text
    return f"{text[: MAX_PARAM - 40]}... (cut, {len(text)} characters)"


def params_of(values: Mapping[str, Any]) -> dict[str, str]:
    """Return parameters under names and with values that MLflow accepts."""
    names = safe_names(str(name) for name in values)
    return {names[str(name)]: param_text(value) for name, value in values.items()}


def metrics_of(values: Mapping[str, float]) -> dict[str, float]:
    """Return metrics under names that MLflow accepts, without values that it would alter: it makes 0 of nan."""
    names = safe_names(values)
    return {names[name]: float(value) for name, value in values.items() if math.isfinite(value)}


def short_digest(digest: str) -> str:
    """Return the start of a digest for MLflow's own field; a tag holds the whole."""
    return digest.removeprefix("sha256:")[:SHOWN_DIGEST]


def sha256(content: bytes) -> str:
    """Return the SHA-256 of some bytes, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def name_hash(name: str) -> str:
    """Return the start of the SHA-256 of a name, as a name of a file."""
    return sha256(name.encode())[:16]


def label_of(role: str, step: int | None) -> str:
    """Return the label of the piece with an evaluation: its role, or ``dev/step-3`` at a step of training."""
    return checked_word(role) if step is None else f"{checked_word(role)}{_STEP}{step}"


def role_of(label: str) -> str:
    """Return the role in the label of a piece with an evaluation, without the step."""
    return label.partition(_STEP)[0]


def step_of(label: str) -> int:
    """Return the step in the label of a piece with an evaluation; -1 without a step."""
    return int(label.partition(_STEP)[2] or -1)


def version_tag(role: str) -> str:
    """Return the tag of a run with the versions whose evaluation of the role it holds: ``"ranker/7; ranker/8"``."""
    return f"rankeval.{role}.version"


def piece_tag(label: str, what: str) -> str:
    """Return a tag of a run about one piece: the "revision" of one that grows, or its "best" runs."""
    return f"rankeval.{label}.{what}"


def state_of(tags: Mapping[str, str], key: str) -> dict[str, Any]:
    """Return the state in a tag of a version; {} if there is none."""
    try:
        return dict(json.loads(tags.get(key, "{}")))
    except (ValueError, TypeError) as error:
        raise TrackingError(
            f"the tag {key} of a version cannot be read: {error}", remedy="correct or delete it"
        ) from error


def with_evaluation(
    evaluations: Mapping[str, Any], role: str, metrics: Mapping[str, float], run_id: str
) -> dict[str, Any]:
    """Return the last evaluations of a version by role, with one more: its first measure and interval, and its run.

    Examples
    --------
    >>> metrics = {"AP": 0.5, "AP_ci_low": 0.25, "AP_ci_high": 0.75, "RR": 1.0}
    >>> with_evaluation({}, "test", metrics, "a4f")
    {'test': {'AP': 0.5, 'AP_ci_low': 0.25, 'AP_ci_high': 0.75, 'run_id': 'a4f'}}
    """
    first = [key + end for key in [*metrics][:1] for end in ("", *INTERVAL_ENDS)]
    values = {key: float(f"{metrics[key]:.4g}") for key in first if key in metrics}
    return {**evaluations, role: {**values, "run_id": run_id}}


def evaluated_runs(tags: Mapping[str, str]) -> dict[str, str]:
    """Return the run of the last evaluation of each role by the tags of a version."""
    return {
        role: str(evaluation["run_id"]) for role, evaluation in state_of(tags, EVALUATION).items()
    }


def folder(label: str) -> str:
    """Return the folder of a piece among the artifacts."""
    return f"rankeval/{label}"


def evaluation_path(label: str) -> str:
    """Return the artifact path of an evaluation, given the label of its piece."""
    return f"{folder(label)}/evaluation.parquet"


def manifest_path(label: str) -> str:
    """Return the artifact path of the manifest of a piece."""
    return f"{folder(label)}/manifest.json"
