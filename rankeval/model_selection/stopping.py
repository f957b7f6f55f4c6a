"""Stop a search at unusable ids or weights: scikit-learn turns every `Exception` inside it into nan or a failed fit.

scikit-learn does not tell a scorer or an estimator that a search calls it, so the frames of the callers are read.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from rankeval.contamination.refusal import hangs_on_refusals
from rankeval.errors import (
    ConflictingQueryIds,
    InvalidInput,
    MissingQueryIds,
    QueryIdError,
    UnusableQueryIdsError,
    UnusableWeights,
)

SEARCHES = "sklearn.model_selection"
"""The package of scikit-learn's searches and validations."""

FOLDS = f"{SEARCHES}._validation"
"""The module that fits and scores their folds; the score of a search that was fitted does not pass it."""


def callers() -> Iterator[FrameType]:
    """Yield the frames of the calling functions, the innermost first."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - inspect.stack reads the source of every frame
    while frame is not None:
        yield frame
        frame = frame.f_back


def is_of(frame: FrameType, *packages: str) -> bool:
    """Say whether a frame's module is in one of these packages.

    Parameters
    ----------
    frame : frame
        The frame of a function.
    *packages : str
        Beginnings of module names.
    """
    return str(frame.f_globals.get("__name__", "")).startswith(packages)


def in_search(package: str = SEARCHES) -> bool:
    """Say whether scikit-learn's model selection is calling, or a part of it, in this process or as a worker of it."""
    return any(is_of(frame, package) for frame in callers())


def stop(message: str, cause: Exception | None = None) -> NoReturn:
    """Stop the search around this call, if there is one.

    Parameters
    ----------
    message : str
        One line.
    cause : Exception, optional
        The error behind it. A `QueryIdError` that is not an `UnusableQueryIdsError` is a disagreement of sources.

    Raises
    ------
    MissingQueryIds
        Always, except in a worker whose caller would hang, as that of a ``multiprocessing.Pool``.
    """
    if hangs_on_refusals():
        raise UnusableQueryIdsError(message) from cause
    conflict = isinstance(cause, QueryIdError) and not isinstance(cause, UnusableQueryIdsError)
    raise (ConflictingQueryIds if conflict else MissingQueryIds)(message) from cause


@contextmanager
def stopping() -> Iterator[None]:
    """Let an InvalidInput inside stop the search around this call; without a search it is raised as it is."""
    try:
        yield
    except InvalidInput as error:
        if in_search():
            stop(str(error), error)
        raise


def of_weights(message: str) -> UnusableWeights | InvalidInput:
    """Return the error of weights that a scorer cannot use, which stops the search around this call, if there is one.

    Parameters
    ----------
    message : str
        One line.
    """
    return UnusableWeights(message) if in_search() and not hangs_on_refusals() else InvalidInput(message)
