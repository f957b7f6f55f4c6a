"""Stop a search at unusable ids or weights: scikit-learn turns every `Exception` inside it into nan or a failed fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from rankeval.contamination.pools import hangs_on_refusals
from rankeval.errors import ConflictingQueryIds, InvalidInput, MissingQueryIds, QueryIdError, UnusableWeights
from rankeval.model_selection.callers import in_search
from rankeval.model_selection.query_ids import UnusableQueryIdsError


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
