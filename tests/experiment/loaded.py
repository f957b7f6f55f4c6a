"""The parts of an experiment's data, loaded and split as a run does it."""

from __future__ import annotations

from rankeval.experiment.loading import DataParts, find_loader, split
from rankeval.experiment.schema import ExperimentConfig


def load_parts(config: ExperimentConfig, *, watched: bool = False) -> DataParts:
    """Load the data and split it; ``watched`` says that a ranker stops early on the validation part."""
    return split(config, find_loader(config)(), watched=watched)
