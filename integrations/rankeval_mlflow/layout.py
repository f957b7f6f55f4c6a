"""Where things are in a run: the names of our tags, and the paths of our artifacts.

A run of MLflow holds one or more *pieces*, each logged by one call: an evaluation of a role, a comparison, the record
of an experiment. Each piece has a folder ``rankeval/<label>/`` among the artifacts, with a manifest: everything that
the piece wrote, and its facts. Tags are few and short, since people read them.
"""

from __future__ import annotations

from rankeval_mlflow.names import checked_role

COMPLETE = "rankeval.complete"
"""The tag that is written last: the pieces that the run holds whole, as `delivery.completeness` writes them."""

RECORD = "rankeval.record"
"""The tag by which an upload finds the run that it made before it broke off."""

ROLE = "rankeval.role"
"""The tag with the role whose metrics have bare keys; the metrics of other roles are ``<role>/<key>``."""

KIND = "rankeval.kind"
"""The tag with the kind of a run: evaluation, comparison, experiment, candidate, cross-validation, fold, promotion; of
automatic logging also search and setting."""

CARD = "rankeval.card"
"""The tag with the name of the convention and the start of the digest of its card."""

HEADLINE = "rankeval.headline"
"""The tag with the result of a run's only comparison; named comparisons have ``rankeval.NAME.headline``."""

STANDING = "rankeval.standing"
"""The tag with the standing of an experiment: confirmatory or exploratory."""

GUARD_LEDGER, GUARD_HEAD = "rankeval.guard.ledger", "rankeval.guard.head"
"""The tags with the place of the ledger, and its head when the run was logged."""

PROMOTION = "rankeval.promotion"
"""The tag of a promotion's run that says what became of the alias; a version has ``rankeval.promotion.<alias>``."""

REJECTION = "rankeval.rejection"
"""The start of the tag of a version that was rejected for an alias: ``rankeval.rejection.<alias>``."""

DECISION = "rankeval/promotion/decision.json"
"""The artifact with the decision of a promotion."""

NOTE = "mlflow.note.content"
"""MLflow's own tag with the description of a run."""

TABLES = "mlflow.loggedArtifacts"
"""MLflow's own tag with the artifacts that it shows as tables."""

VIEW = "mlflow.sharedViewState.rankeval"
"""The tag of an experiment with a view of its runs, as MLflow saves views: with columns for the measures."""

VIEW_ADDRESS = "viewStateShareKey=rankeval"
"""The part of an address that opens the view."""

INTERVAL_ENDS = ("_ci_low", "_ci_high")
"""The ends of the names of metrics that are ends of intervals."""

FOLD_END, FOLD_START = "_fold", "fold_"
"""The end of the names of metrics with a measure's value in each fold, and the start of those of other facts of folds;
the fold is the step."""

_STEP = "/step-"


def label_of(role: str, step: int | None = None) -> str:
    """Return the label of the piece with an evaluation: its role, or ``dev/step-3`` at a step of training.

    Parameters
    ----------
    role : str
        The role of the data, a plain word.
    step : int, optional
        The epoch or other step.
    """
    return checked_role(role) if step is None else f"{checked_role(role)}{_STEP}{step}"


def role_of(label: str) -> str:
    """Return the role in the label of a piece with an evaluation, without the step.

    Parameters
    ----------
    label : str
        A label of `label_of`.
    """
    return label.partition(_STEP)[0]


def step_of(label: str) -> int:
    """Return the step in the label of a piece with an evaluation; -1 without a step.

    Parameters
    ----------
    label : str
        A label of `label_of`.
    """
    return int(label.partition(_STEP)[2] or -1)


def folder(label: str) -> str:
    """Return the folder of a piece among the artifacts.

    Parameters
    ----------
    label : str
        The label of the piece.
    """
    return f"rankeval/{label}"


def evaluation_path(label: str) -> str:
    """Return the artifact path of an evaluation, given the label of its piece."""
    return f"{folder(label)}/evaluation.parquet"


def manifest_path(label: str) -> str:
    """Return the artifact path of the manifest of a piece."""
    return f"{folder(label)}/manifest.json"
