"""The settings of automatic logging."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """The arguments of `autolog`."""

    log_models: bool = True
    log_folds: bool = True
    max_tuning_runs: int | None = None
    registered_model_name: str | None = None
    silent: bool = False
