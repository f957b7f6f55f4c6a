"""The errors of rankeval, in one place.

Two families. What a caller may want to catch and mend derives from `ValueError`, `TypeError` or `RuntimeError`
as well as from `RankevalError`. What must not be swallowed derives from `Refusal`, which is a `BaseException`:
scikit-learn turns every `Exception` inside a scorer into nan (`error_score`), and Optuna into a failed trial, so
an ordinary exception would let a search go on over data that it must not see.
"""

from __future__ import annotations

import inspect
import warnings


class RankevalError(Exception):
    """Whatever rankeval raises on its own account, but for refusals."""


class InvalidInput(RankevalError, ValueError):
    """Data or an argument that cannot be evaluated: says the argument, what was found and what to do."""


class FileFormatError(InvalidInput):
    """A file whose content is not what its format asks for: says file, line and column."""


class LimitExceeded(FileFormatError):
    """A file larger or stranger than a limit allows: names the limit and how to raise it."""


class UnknownName(InvalidInput):
    """A measure, preset, test or setting that does not exist: names the near misses."""


class AmbiguousName(InvalidInput):
    """A name that stands for several things: names the choices."""


class QueryIdError(InvalidInput):
    """Query ids that are missing, of the wrong length, or that two sources give differently."""


class ConventionMismatch(InvalidInput):
    """Numbers that must not be compared: their conventions or judgments differ, and the difference is named."""


class ConfigError(InvalidInput):
    """An experiment file that cannot be run: says key, value and line of thought."""


class LedgerError(RankevalError, RuntimeError):
    """The guard's ledger cannot be reached, was altered, or does not fit what is asked of it."""


class TrackingError(RankevalError, RuntimeError):
    """A tracking server refused: what was to be logged is kept on disk, and the message says how to send it."""


class RankevalWarning(UserWarning):
    """Something a reader of the numbers should know, and which stops nothing."""


class Refusal(BaseException):
    """Base of what must get through `error_score=nan` and `catch=(Exception,)`."""


class GuardRefusal(Refusal):
    """Registered test content was about to be used outside a frozen plan."""


class GuardRefusalError(RankevalError):
    """The twin of `GuardRefusal` for daemonic worker processes, where a `BaseException` would hang the pool."""


class MissingQueryIds(Refusal):
    """Query ids are forgotten or unusable inside a scorer, or inside a fit that a search of scikit-learn calls."""


class ConflictingQueryIds(MissingQueryIds):
    """Two sources of query ids disagree, where `MissingQueryIds` is raised for ids that are missing."""


def warn(message: str) -> None:
    """Warn with a `RankevalWarning` at the line outside this package that led here, however deep the call."""
    depth, frame = 1, inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("rankeval."):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(message, RankevalWarning, stacklevel=depth)
