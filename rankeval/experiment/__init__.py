"""Read an experiment file as a pydantic model, and run it: a recipe over public calls."""

from rankeval.experiment.checks import check_run, load_parts
from rankeval.experiment.config import check_config, load_config, shipped_configs
from rankeval.experiment.recipe import ExperimentResult, run_experiment
from rankeval.experiment.schema import ExperimentConfig

__all__ = [
    "ExperimentConfig",
    "ExperimentResult",
    "check_config",
    "check_run",
    "load_config",
    "load_parts",
    "run_experiment",
    "shipped_configs",
]
