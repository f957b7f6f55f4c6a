"""Save any result as a folder, and load it from the folder: without a server, without MLflow.

A new kind of result is a line in `KINDS` and the methods ``record`` and ``from_record`` of its
class.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from rankeval._arguments import explained
from rankeval._checks import require, said
from rankeval._registry import chosen
from rankeval.errors import FileFormatError, InvalidInput, RankevalError
from rankeval.shelf import folder as folders
from rankeval.shelf.record import Record

KINDS = {
    "evaluation": "evaluation.result.Evaluation",
    "comparison": "comparison.result.Comparison",
    "cross-validation": "model_selection.results.CrossValidation",
    "cross-validations": "model_selection.results.CrossValidations",
    "order_agreement": "analysis.ordering.OrderAgreement",
    "agreement": "judging.agreeing.Agreement",
    "calibration": "judging.machine.Calibration",
    "disagreement": "judging.systems.Disagreement",
    "reusability": "judging.systems.Reusability",
    "ab_test": "online.experiments.ABTest",
    "click_rate": "online.logs.ClickRates",
    "abandonment": "online.logs.ClickRates",
    "log_checks": "online.logs.LogChecks",
    "perplexity": "online.models.Perplexity",
    "policy_value": "online.weighting.PolicyValue",
    "propensities": "online.weighting.Propensities",
    "profile": "text.profiling.Profile",
    "study": "model_selection.studies.Study",
}
"""The class of each kind of record; as text, since it lies above this floor."""

_COPIED = {"optuna.study.study.Study": "study"}
"""The kind of record that a result of another library is copied to, by its class."""


def class_of(kind: str) -> Any:
    """Import the class of a kind of record."""
    module, _, name = KINDS[chosen("kind of record", kind, KINDS)].rpartition(".")
    return getattr(import_module(f"rankeval.{module}"), name)


def record_of(result: Any, options: Mapping[str, Any]) -> Record:
    """Return the record of a result; refuse options of other classes, and name these classes."""
    whole_name = f"{type(result).__module__}.{type(result).__qualname__}"
    if whole_name in _COPIED:
        result = class_of(_COPIED[whole_name]).of(result)
    expected = "a result such as evaluate, compare or cross_validate return"
    require(
        hasattr(result, "record") and not isinstance(result, type), "result", type(result), expected
    )
    for option in options.keys() - _options_of(type(result)):
        takers = sorted(
            {taker.__name__ for taker in map(class_of, KINDS) if option in _options_of(taker)}
        )
        whose = (
            f"{option}= belongs to {' or '.join(takers)}"
            if takers
            else f"no result has an option {option}="
        )
        raise InvalidInput(f"{whose}, and this is of class {type(result).__name__}")
    made: Record = result.record(**options)
    return made


def _options_of(kind: type) -> set[str]:
    return {*inspect.signature(kind.record).parameters} - {"self"}  # type: ignore[attr-defined] # of KINDS


@explained
def save(result: Any, folder: str | os.PathLike[str], **options: Any) -> str:
    """Save a result as a folder, which `load` makes the result of again, without a server.

    Parameters
    ----------
    result : object
        The result of `evaluate`, `compare`, `cross_validate`, of ``rankeval.judging``,
        ``rankeval.online`` or `profile`; or a study of Optuna.
    folder : path
        The folder, which is written whole or not at all. If it exists, it must contain the same
        result.
    **options
        Options of the result's method ``record``, such as ``role`` of an Evaluation.

    Returns
    -------
    str
        The seal: the SHA-256 of the folder's ``record.json``, which has the hash of every other
        file. The same result has the same seal.

    Raises
    ------
    InvalidInput
        If it is not a result, its class does not take an option, the folder contains something
        else, or it cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> import rankeval as rk
    >>> ev = rk.evaluate([1, 0], [0.5, 0.1], qid=["a", "a"], measures="RR", name="bm25")
    >>> folder = f"{tempfile.mkdtemp()}/bm25"
    >>> seal = rk.save(ev, folder, role="test")
    >>> rk.load(folder).name, rk.read_record(folder).metrics["RR"], len(seal)
    ('bm25', 1.0, 64)
    """
    return folders.write(record_of(result, options), folder)


@explained
def load(folder: str | os.PathLike[str]) -> Any:
    """Load the result that `save` wrote.

    Parameters
    ----------
    folder : path
        The folder.

    Returns
    -------
    object
        The result, of the class that was saved. Fitted estimators are not stored.

    Raises
    ------
    FileFormatError
        If a file was altered or is missing, or another version wrote the folder.
    UnknownName
        If the record is of a kind that this version does not know; `read_record` reads it.
    """
    return result_of(folders.with_hashes_checked(folders.read(folder)))


def result_of(record: Record) -> Any:
    """Make the result of a record."""
    made = class_of(record.kind).from_record
    try:
        return made(record)
    except RankevalError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        problem = (
            f"the record is none of kind {record.kind!r}: {type(error).__name__}: {said(error)}"
        )
        raise FileFormatError(problem, remedy="save the result again") from error


@explained
def read_record(folder: str | os.PathLike[str]) -> Record:
    """Read the record in a folder: its numbers, sentences and settings, of any kind of result.

    Parameters
    ----------
    folder : path
        The folder.

    Returns
    -------
    Record
        Its files and tables are read, and checked, when they are asked for.

    Raises
    ------
    FileFormatError
        If ``record.json`` was altered or is missing, or another version wrote it.
    """
    return folders.read(folder)
