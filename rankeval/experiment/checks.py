"""Find all that can be wrong with an experiment before any data is loaded.

The model has checked keys, values, the host and the names of measures. What is checked here imports scikit-learn and
the libraries of the rankers: estimators, parameters, measures, the comparison, the loader. Last come the places that
results go to: the folder, the ledger, the tracking server. A look at the test part must not be spent on a run whose
result has no place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rankeval._registry import chosen
from rankeval.errors import ConfigError, InvalidInput, RankevalError, warn
from rankeval.experiment.artifacts import room_for_files
from rankeval.experiment.config import ExperimentConfig
from rankeval.experiment.estimators import make_ranker
from rankeval.experiment.guarding import check_ledger, unguarded
from rankeval.experiment.loading import Loaded, find_loader
from rankeval.tracking import find_tracker, host

if TYPE_CHECKING:
    from rankeval.model_selection.ranker import QueryRanker


@dataclass(frozen=True, eq=False)
class Checked:
    """The rankers of an experiment, not fitted, and the function that loads its data, not called."""

    rankers: Mapping[str, QueryRanker]
    load: Callable[[], Loaded]


def check_experiment(config: ExperimentConfig) -> Checked:
    """Check an experiment without reading its data.

    Parameters
    ----------
    config : ExperimentConfig
        The experiment.

    Raises
    ------
    ConfigError
        If a measure cannot be computed from rows, a ranker cannot be made, the comparison is unknown or not one that a
        plan freezes, the loader cannot be called, there is no such file, the folder of the results cannot be written,
        or nothing can be logged to the tracking server.
    LedgerError
        If the ledger cannot be read, or would be lost with this machine.
    """
    from rankeval.model_selection.checks import check_measures

    try:
        check_measures(config.all_measures, config.convention)
    except InvalidInput as error:
        raise ConfigError(f"measures: {error}") from error
    _check_comparison(config)
    checked = Checked({name: make_ranker(config, name) for name in config.rankers}, find_loader(config))
    _check_folder(config)
    check_ledger(config)
    _check_tracker(config)
    return checked


def _check_comparison(config: ExperimentConfig) -> None:
    from rankeval.significance import CORRECTIONS, TESTS
    from rankeval.significance.declarations import check_claim

    asked = config.comparison
    try:
        chosen("test", asked.test, TESTS)
        correction = CORRECTIONS[chosen("correction", asked.correction, CORRECTIONS)]
        check_claim(asked.claim, asked.margin)
    except InvalidInput as error:
        raise ConfigError(f"comparison: {error}") from error
    if correction.all_pairs_only:
        raise ConfigError(
            f"comparison.correction: {asked.correction} compares all pairs, and an experiment compares with its "
            "baseline: choose another one"
        )
    if not unguarded(config) and not asked.as_frozen:
        raise ConfigError(
            f"comparison: found test {asked.test!r} and correction {asked.correction!r}; the guard's plans freeze "
            "randomization with max_t, so that the openings of a test part are one family: leave the keys out, or "
            "switch the guard off (guard: off)"
        )


def _check_folder(config: ExperimentConfig) -> None:
    try:
        with room_for_files(config):
            pass
    except InvalidInput as error:
        raise ConfigError(str(error)) from error


def _check_tracker(config: ExperimentConfig) -> None:
    """Make the tracker once, and let the host try its server: both must not be missed after the opening."""
    if config.tracking is None:
        return
    name, uri = config.tracking.host, config.tracking.uri
    make_tracker, _ = find_tracker(name)
    try:
        make_tracker()
    except Exception as error:
        raise ConfigError(f"tracking: the host {name!r} makes no tracker: {type(error).__name__}: {error}") from error
    check = host(name).check
    try:
        said = None if check is None else check(config.tracking.experiment or config.name, uri)
    except RankevalError as error:
        raise ConfigError(f"tracking: {error}") from error
    except Exception as error:
        raise ConfigError(f"tracking: the host {name!r} fails at its check: {type(error).__name__}: {error}") from error
    if said:
        warn(said)
