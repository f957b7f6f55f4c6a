"""Stop a search at unusable query ids: scikit-learn turns every `Exception` inside it into nan or a failed fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import current_process
from typing import NoReturn

from rankeval.errors import ConflictingQueryIds, InvalidInput, MissingQueryIds, QueryIdError
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
        Always, except in a daemonic worker: a BaseException would hang its pool, so an Exception is raised there.
    """
    if current_process().daemon:
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
