"""Pack what scikit-learn's ``cross_validate`` found: a run with means, and a nested run of each fold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from rankeval.render.tables import Table
from rankeval_mlflow.autologging.scorers import Scored
from rankeval_mlflow.autologging.values import Settings, described, finite, means, steps, texts
from rankeval_mlflow.delivery.payload import DatasetUse, Node
from rankeval_mlflow.layout import KIND


def validation_node(
    result: Mapping[str, Any],
    estimator: Any,
    scored: Scored,
    settings: Settings,
    *,
    started_ms: int,
    ended_ms: int,
    label: str,
    datasets: tuple[DatasetUse, ...],
) -> Node:
    """Pack a cross-validation of scikit-learn.

    Parameters
    ----------
    result : mapping
        The result of ``sklearn.model_selection.cross_validate``.
    estimator : object
        The estimator.
    scored, settings, started_ms, ended_ms, label, datasets
        As in `search_node`.
    """
    folds = {
        key: scored.signs[name] * np.asarray(result[f"test_{name}"], dtype=float) for name, key in scored.names.items()
    }
    seconds = {"fit_seconds": result["fit_time"], "score_seconds": result["score_time"]}
    facts = {
        "estimator": described(estimator),
        "measure": str(scored.measure),
        "convention": scored.scorer.convention.name,
        "n_folds": len(result["fit_time"]),
    }
    table = pd.DataFrame({**folds, **seconds}).rename_axis("fold")
    return Node(
        name=f"cross-validation of {described(estimator)}",
        label=label,
        params=texts(facts),
        metrics=means(folds) | finite({name: float(np.sum(value)) for name, value in seconds.items()}),
        steps=steps(folds) if settings.log_folds else (),
        tags={KIND: "cross-validation"},
        files={f"rankeval/{label}/folds.csv": table.to_csv().encode()},
        sections={label: Table(table.reset_index(), caption="Folds.").to_markdown()},
        datasets=datasets,
        started_ms=started_ms,
        ended_ms=ended_ms,
        children=tuple(
            Node(
                name=f"fold {place}",
                label="fold",
                params={"fold": str(place)},
                metrics=finite({str(name): float(value) for name, value in row.items()}),
                tags={KIND: "fold"},
                started_ms=started_ms,
                ended_ms=started_ms + round(1000 * float(row["fit_seconds"] + row["score_seconds"])),
            )
            for place, row in enumerate(table.to_dict("records") if settings.log_folds else [])
        ),
    )
