"""The functions that led to a call: scikit-learn does not tell a scorer or an estimator that a search calls them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType

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
