"""List the evaluations that runs say they hold, without any artifact, and the ledgers that they name."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rankeval._registry import unknown
from rankeval.model_selection.shelved import FOLD_END, FOLD_START
from rankeval_mlflow.delivery.connection import asking
from rankeval_mlflow.delivery.payload import pieces_by_role, roles_of
from rankeval_mlflow.reading.resolving import experiment_ids, pages, resolve, text_of
from rankeval_mlflow.run_names import CARD, COMPLETE, RECORD, ROLE, SHOWN_DIGEST, short_digest

# The end of the tags that hold the head of a ledger.
_HEAD = ".guard.head"

# Runs to a page, as `mlflow.search_runs` asks for: a store makes the whole search again for each
# page.
PAGE = 10_000


@dataclass(frozen=True)
class Content:
    """What evaluations must share to be ranked together: the role, the data by its digest, and the convention."""

    role: str
    digest: str
    card: str

    @property
    def convention(self) -> str:
        """The name of the convention."""
        return self.card.rpartition(" ")[0]


@dataclass(frozen=True)
class ListedEvaluation:
    """An evaluation in a run, by what the run says of it."""

    run: Any
    content: Content
    data: str
    n_queries: int | None

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return str(self.run.info.run_id)

    @property
    def system(self) -> str:
        """The name of the run, which is that of the evaluated system unless the user gave the run another one."""
        return str(self.run.data.params.get("system") or self.run.info.run_name or self.run_id)

    @property
    def logged_at(self) -> datetime:
        """When the run began."""
        return datetime.fromtimestamp(self.run.info.start_time / 1000, UTC)

    @property
    def metrics(self) -> dict[str, float]:
        """The aggregates by key; those of other roles have the role before the key."""
        return metrics_of_role(self.run, self.run.data.metrics, self.content.role)


def metrics_of_role(run: Any, metrics: Mapping[str, float], role: str) -> dict[str, float]:
    """Return the metrics of one role by bare key; only the role of the run's tag has its metrics under bare keys."""
    is_bare = run.data.tags.get(ROLE) == role
    before = "" if is_bare else f"{role}/"
    return {
        key.removeprefix(before): value
        for key, value in metrics.items()
        if is_bare != ("/" in key) and key.startswith(before)
    }


def entries_of(run: Any) -> list[ListedEvaluation]:
    """Return the whole evaluations of a run, as far as their data is known."""
    tags = run.data.tags
    used: dict[str, Any] = {}
    for use in run.inputs.dataset_inputs if COMPLETE in tags else ():
        facts = {tag.key: tag.value for tag in use.tags}
        digest = facts.get("rankeval.digest")
        if digest:
            used.setdefault(facts.get("rankeval.role", ""), (use.dataset, digest))
    entries = []
    for role in pieces_by_role(tags):
        if role in used:
            dataset, digest = used[role]
            size = json.loads(dataset.profile or "{}").get("num_queries")
            content = Content(role, digest, tags.get(CARD, ""))
            entries.append(ListedEvaluation(run, content, dataset.name, size))
    return entries


def broke_off(run: Any) -> bool:
    """Return whether a run was begun by an upload of ours that did not end."""
    return COMPLETE not in run.data.tags and (RECORD in run.data.tags or CARD in run.data.tags)


def of_data(entries: Sequence[ListedEvaluation], data: str) -> list[ListedEvaluation]:
    """Return the evaluations on a data set."""
    digest = data.removeprefix("sha256:")
    is_long = len(digest) >= SHOWN_DIGEST // 2
    alike = [
        entry
        for entry in entries
        if entry.data == data
        or (is_long and entry.content.digest.removeprefix("sha256:").startswith(digest))
    ]
    if not alike:
        raise unknown("data set", data, {entry.data for entry in entries})
    return alike


def prevailing(entries: Sequence[ListedEvaluation]) -> Content:
    """Return the content with the most evaluations; of equally many, the one that was evaluated last."""
    n = Counter(entry.content for entry in entries)
    return max(entries, key=lambda entry: (n[entry.content], entry.run.info.start_time)).content


def difference(entry: ListedEvaluation, content: Content) -> str:
    """Say why an evaluation is not ranked with those of a content; "" if it is."""
    mine = entry.content
    reasons = []
    if mine.role != content.role:
        reasons.append(f"role {mine.role}")
    if mine.digest != content.digest:
        reasons.append(f"other data: {entry.data} ({short_digest(mine.digest)})")
    if mine.card != content.card:
        reasons.append(f"other convention: {mine.card or 'unknown'}")
    return ", ".join(reasons)


@dataclass(frozen=True)
class LoggedRun:
    """A run with evaluations: their roles, and the metrics with bare names, which are of one role ("" if of none)."""

    run_id: str
    name: str
    roles: tuple[str, ...]
    metrics: Mapping[str, float]
    metrics_role: str


def logged_runs(experiment: str | None = None, uri: str | None = None) -> list[LoggedRun]:
    """Return the runs with whole evaluations, newest first."""
    with asking(
        uri, "its runs" if experiment is None else f"the runs of experiment {experiment!r}"
    ) as client:
        ids = experiment_ids(client, experiment)
        runs = list(pages(client.search_runs, ids, f"tags.`{COMPLETE}` LIKE '%'", max_results=PAGE))
    return [logged for logged in map(_logged_run, runs) if logged.roles]


def noted_heads(name: Any, uri: str | None) -> list[tuple[str, str]]:
    """Return the ledgers that a run names, each with the head that it had then."""
    with asking(uri, text_of(name)) as client:
        tags = resolve(client, name).data.tags
    keys = [
        key
        for key, value in tags.items()
        if key.endswith(_HEAD) and key.startswith("rankeval.") and value
    ]
    return [
        (tags.get(f"{key.removesuffix(_HEAD)}.guard.ledger", ""), tags[key]) for key in sorted(keys)
    ]


def _logged_run(run: Any) -> LoggedRun:
    tags = run.data.tags
    metrics = {
        key: value  # under its bare name, which is of the first role; values of single folds are none of the run
        for key, value in run.data.metrics.items()
        if not ("/" in key or key.startswith(FOLD_START) or key.endswith(FOLD_END))
    }
    return LoggedRun(
        run.info.run_id, run.info.run_name or "", roles_of(tags), metrics, tags.get(ROLE, "")
    )
