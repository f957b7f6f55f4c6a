"""Data sets as MLflow's inputs of a run.

MLflow keeps one input for each name and digest in a run, so dev and test of the same content would be one. The role
that came second has its name behind the digest. A tag has the digest whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from mlflow.entities import Dataset, DatasetInput, InputTag

from rankeval_mlflow.delivery.payload import DatasetUse
from rankeval_mlflow.names import short_digest

Digests = Mapping[tuple[str, str, str], str]
"""(name, full digest, role) -> the digest that MLflow shows."""

_MAX_DIGEST = 36
_CONTEXT = "mlflow.data.context"


def shown_digests(run: Any, uses: Iterable[DatasetUse]) -> Digests:
    """Return the digest that MLflow shows of each data set.

    Parameters
    ----------
    run : mlflow.entities.Run
        The run, which may have inputs.
    uses : iterable of DatasetUse
        The data sets.
    """
    roles = {
        (each.dataset.name, each.dataset.digest): next((tag.value for tag in each.tags if tag.key == _CONTEXT), "")
        for each in (run.inputs.dataset_inputs if run.inputs else ())
    }
    chosen = {}
    for use in uses:
        digest = short_digest(use.digest)
        if roles.setdefault((use.name, digest), use.role) != use.role:
            digest = f"{digest}-{use.role}"[:_MAX_DIGEST]
        chosen[use.name, use.digest, use.role] = digest
    return chosen


def dataset_input(use: DatasetUse, digests: Digests) -> DatasetInput:
    """Return a data set as MLflow's input.

    Parameters
    ----------
    use : DatasetUse
        The data set.
    digests : mapping
        The `shown_digests`.
    """
    source: dict[str, Any] = {"uri": use.source} if use.source else {"tags": {}}
    dataset = Dataset(
        name=use.name,
        digest=digests[use.name, use.digest, use.role],
        source_type="local" if use.source else "code",
        source=json.dumps(source),
        profile=json.dumps(dict(use.profile)),
    )
    tags = {_CONTEXT: use.role, "rankeval.role": use.role, "rankeval.digest": use.digest}
    return DatasetInput(dataset, [InputTag(key, value) for key, value in tags.items()])
