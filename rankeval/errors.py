"""The errors of rankeval, in one place.

::

    RankevalError                        Exception
        InvalidInput                     ValueError
            FileFormatError
                LimitExceeded
            UnknownName
            AmbiguousName
            QueryIdError
                UnusableQueryIdsError
            ConventionMismatch
            ConfigError
            SharedQueriesError
        CheckFailed                      AssertionError
        LedgerError                      RuntimeError
        TrackingError                    RuntimeError
        GuardRefusalError
    Refusal                              BaseException
        GuardRefusal
        MissingQueryIdsRefusal
            ConflictingQueryIdsRefusal
        SharedQueriesRefusal
        UnusableWeightsRefusal
        UnusableColumnsRefusal
        UnusableRowsRefusal
    RankevalWarning                      UserWarning
        NotedWarning
        QueryCutWarning

Beside each class stands the built-in class that it derives from too. A name ends in ``Refusal`` if
``except Exception`` does not catch the class: scikit-learn turns every `Exception` inside a scorer
into nan (`error_score`), and Optuna into a failed trial, so that a search would go on over data that
it must not see. `GuardRefusalError` and `SharedQueriesError` say the same where an `Exception` may.

An error has fields, and its message is made of them: ``where: argument is found; expected this;
remedy``, or ``where: argument: problem; remedy``. Programs read the fields, people read the
message, and no code reads a message.
"""

from __future__ import annotations

import inspect
import warnings
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, Self

from rankeval._secrets import without_secrets
from rankeval._visible import visible


def __dir__() -> list[str]:
    known = globals().items()
    return sorted(
        n
        for n, value in known
        if n[0] != "_" and isinstance(value, type) and issubclass(value, BaseException)
    )


@dataclass(eq=False, repr=False)
class _Composed(BaseException):
    """The fields of an error, and the message that they make."""

    # What is wrong, as one sentence. Left out where ``found`` and ``expected`` say it.
    problem: str = ""
    _: KW_ONLY
    argument: str | None = None  # The argument, column or key that is wrong
    # The value as `rankeval._checks.shown` writes it, and what would be right
    found: str | None = None
    expected: str | None = None
    where: str | None = None  # The file, line, row or part
    remedy: str | None = None  # What to do

    def __post_init__(self) -> None:
        super().__init__(_message(self))

    @property
    def fields(self) -> dict[str, Any]:
        """The fields by name, to make an error of another class of them."""
        return {part.name: getattr(self, part.name) for part in fields(_Composed)}

    def having(self, **fields: str | None) -> Self:
        """Return the same error with other fields, such as the argument's name in a caller that has another."""
        # `copy` would ask tblib, which dask and skops install for all exceptions, and share the
        # fields with this error.
        other = type(self).__new__(type(self))
        vars(other).update(vars(self) | fields)
        other.args = (_message(other),)
        return other


def _message(error: _Composed) -> str:
    """Compose the message: the fields hold what was found, the message has no control characters and no secrets."""
    text = str(error.problem)
    if error.argument:
        text = f"{error.argument}: {text}" if text else f"{error.argument} is {error.found}"
    if error.expected and not error.problem:
        text += f"; expected {error.expected}"
    if error.where:
        text = f"{error.where}: {text}"
    if error.remedy:
        text += f"; {error.remedy}"
    if "\n" in text and not isinstance(error, CheckFailed | TrackingError):
        text = " ".join(text.split())  # the value of a frame has several lines
    return visible(without_secrets(text), keep="\n")


class RankevalError(_Composed, Exception):
    """Base of all errors of rankeval but refusals."""


class InvalidInput(RankevalError, ValueError):
    """Data or an argument cannot be evaluated: names the argument, the value found and a remedy."""


class FileFormatError(InvalidInput):
    """The content of a file does not follow its format: names file, line and column."""


class LimitExceeded(FileFormatError):
    """A file exceeds a limit: names the limit and how to raise it."""

    limit: str | None = None  # Name of the limit


class UnknownName(InvalidInput):
    """A measure, preset, test, format or setting does not exist: names the near misses."""


class AmbiguousName(InvalidInput):
    """A name means several things: names the choices."""


class QueryIdError(InvalidInput):
    """Query ids are missing, of the wrong length, or differ between two sources."""


class UnusableQueryIdsError(QueryIdError):
    """Query ids that one source gives are missing, of the wrong length, or of other rows."""


class ConventionMismatch(InvalidInput):
    """Numbers must not be compared: names how their conventions or judgments differ."""


class ConfigError(InvalidInput):
    """An experiment file cannot be run: names the key, the value and a remedy."""


class CheckFailed(RankevalError, AssertionError):
    """An assertion of ``rankeval.testing`` failed: the message has the numbers and the worst queries."""


class LedgerError(RankevalError, RuntimeError):
    """The guard's ledger cannot be reached, was altered, or lacks the entry asked for."""


class TrackingError(RankevalError, RuntimeError):
    """A tracking server refused the upload: it is kept on disk, and the message says how to send it."""


class RankevalWarning(UserWarning):
    """A reader of the numbers should know this; it stops nothing."""


class NotedWarning(RankevalWarning):
    """A warning that is also a note of the result, so a program that prints the notes may leave it out."""


class QueryCutWarning(RankevalWarning):
    """A search scores some rows of a query without the others; the message says how to keep queries whole."""


class Refusal(_Composed):
    """Base of the errors that nobody must swallow: BaseExceptions, which ``except Exception`` does not catch.

    scikit-learn turns every Exception inside a scorer into nan (``error_score``), and Optuna with
    ``catch=(Exception,)`` into a failed trial, so a search would go on over data that it must not
    see. A Refusal ends it. To catch one, name it: ``except rankeval.errors.Refusal``.

    Examples
    --------
    >>> try:
    ...     raise GuardRefusal("the data is a registered test collection")
    ... except Exception:
    ...     print("an error")
    ... except Refusal as refusal:
    ...     print(f"refused: {refusal}")
    refused: the data is a registered test collection
    """


@dataclass(eq=False, repr=False, kw_only=True)
class _OfCollection(_Composed):
    """The parts of a refusal, for programs that say it in their own words."""

    collection: str | None = None
    project: str | None = None
    queries: tuple[Any, ...] = ()
    ledger: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.found: str | None = self.problem if self.found is None else self.found


class GuardRefusal(_OfCollection, Refusal):
    """Registered test content was about to be used outside a frozen plan.

    This is a BaseException, as every `Refusal`: ``except Exception`` does not catch it, so that no
    search goes on over test content. To catch it, name it: ``except rankeval.errors.GuardRefusal``.
    """


class GuardRefusalError(_OfCollection, RankevalError):
    """`GuardRefusal` as an Exception, for workers whose caller would wait for ever at a `BaseException`.

    These are workers of ``multiprocessing.Pool`` and ``ThreadPool``, and of Dask without joblib.
    Under joblib it is a `GuardRefusal` on all backends.
    """


class MissingQueryIdsRefusal(Refusal):
    """Query ids are forgotten or unusable inside a scorer, or inside a fit that a search of scikit-learn calls.

    This is a BaseException, as every `Refusal`: to catch it, name it.
    """


@dataclass(eq=False, repr=False, kw_only=True)
class _OfQueries(_Composed):
    """The queries of a refusal, for programs that go on without them."""

    queries: tuple[Any, ...] = ()
    renamed: tuple[Any, ...] = ()


class SharedQueriesError(_OfQueries, InvalidInput):
    """A validation part to stop early on has queries that are trained on or held out."""


class SharedQueriesRefusal(_OfQueries, Refusal):
    """`SharedQueriesError` inside a search of scikit-learn; a BaseException, as every `Refusal`."""


class UnusableWeightsRefusal(Refusal):
    """A search of scikit-learn gives a scorer weights that differ within a query."""


class UnusableColumnsRefusal(Refusal):
    """A search of scikit-learn gives a scorer no column that a measure reads, or one with missing numbers."""


class UnusableRowsRefusal(Refusal):
    """A search of scikit-learn fits a booster to labels, queries or columns that its library refuses."""


class ConflictingQueryIdsRefusal(MissingQueryIdsRefusal):
    """Two sources of query ids disagree; a BaseException, as every `Refusal`."""


def warn(message: str, kind: type[RankevalWarning] = RankevalWarning) -> None:
    """Warn at the line outside this package that led here, however deep the call."""
    depth, frame = 1, inspect.currentframe()
    while frame is not None and f"{frame.f_globals.get('__name__')}.".startswith(
        ("rankeval.", "rankeval_")
    ):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(visible(without_secrets(message), keep="\n"), kind, stacklevel=depth)
