"""Train the candidates of an experiment, or take their results from the cache; either way with their fitted rankers."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rankeval.collection.data import take_rows
from rankeval.experiment.cache import candidate_digest, read_cached, read_packed, write_cached
from rankeval.experiment.config import ExperimentConfig
from rankeval.experiment.loading import Parts
from rankeval.experiment.tuning import TunedCandidate, tune
from rankeval.tracking import LoggedData, host

if TYPE_CHECKING:
    from rankeval.model_selection.ranker import QueryRanker

MOST_ROWS = 1000
"""Rows of dev from which a host takes the columns of a model, and on which it checks what it saved."""


@dataclass(frozen=True, eq=False)
class Trained:
    """A candidate with its result, and what a tracker needs beside it.

    Attributes
    ----------
    tuned : TunedCandidate
        The result.
    reused : bool
        True if it came from the cache.
    digest : str
        SHA-256 of everything that determines it.
    started, took : float
        When this run began with it, in seconds since the epoch, and the seconds that it took.
    model : QueryRanker or bytes, optional
        The fitted ranker, or what the tracking host packed of it, maybe in an earlier run.
    rows : array or frame of shape (n_some_rows, n_features)
        The first rows of dev.
    """

    tuned: TunedCandidate
    reused: bool
    digest: str
    started: float
    took: float
    model: QueryRanker | bytes | None
    rows: Any


def train(
    name: str, ranker: QueryRanker, config: ExperimentConfig, parts: Parts, data: tuple[LoggedData, ...]
) -> Trained:
    """Tune a candidate, or read its result from the cache.

    Parameters
    ----------
    name : str
        The ranker.
    ranker : QueryRanker
        The ranker, not fitted.
    config : ExperimentConfig
        The experiment.
    parts : Parts
        Its data.
    data : tuple of LoggedData
        The digests of its parts.
    """
    from rankeval.model_selection.capabilities import stops_early

    started, clock = time.time(), time.perf_counter()
    digests = {one.role: one.digest for one in data}
    if not stops_early(ranker):
        digests.pop("validation", None)
    digest = candidate_digest(name, config, **digests)
    folder = config.directory / "kept" / digest[:20]
    rows = take_rows(parts.dev.X, np.arange(min(MOST_ROWS, len(parts.dev))))
    tuned, model = read_cached(folder, name=name), None
    reused = tuned is not None
    if tuned is None:
        tuned = tune(ranker, name, parts, config=config)
        packed = _packed(tuned.model, rows, config)
        write_cached(folder, tuned, packed)
        model = next(iter(packed.values()), tuned.model)
    elif config.tracking is not None:
        model = read_packed(folder, config.tracking.host)
    return Trained(tuned, reused, digest, started, time.perf_counter() - clock, model, rows)


def _packed(model: QueryRanker | None, rows: Any, config: ExperimentConfig) -> Mapping[str, bytes]:
    """Return the fitted ranker as the tracking host packs it; nothing if it packs no models, or not this one.

    A ranker that is not packed goes to the tracker as it is, and the tracker says why it cannot be saved.
    """
    pack = None if config.tracking is None else host(config.tracking.host).pack
    if config.tracking is None or pack is None:
        return {}
    try:
        return {config.tracking.host: pack(model, rows)}
    except Exception:  # noqa: BLE001 - the code of another package may raise anything, and the tracker tells what
        return {}
