"""An experiment file as a model, and running it: a recipe over public calls, callable from Python."""

from rankeval.experiment.config import ExperimentConfig, check_config, load_config, shipped_configs
from rankeval.experiment.recipe import ExperimentResult, run_experiment

__all__ = ["ExperimentConfig", "ExperimentResult", "check_config", "load_config", "run_experiment", "shipped_configs"]
