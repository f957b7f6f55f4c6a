"""A progress bar, a caller's function, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Self

from rankeval._checks import require

Progress = Callable[[int, int], None]
"""Is called with how much is done, and how much there is."""


class Bar:
    """Shows how much is done, as a context."""

    def __init__(self, progress: Progress | bool | None, total: int, title: str) -> None:
        fits = progress is None or isinstance(progress, bool) or callable(progress)
        require(fits, "progress", progress, "a function of two numbers, or True for a bar")
        self.total: int = total
        self.n_done: int = 0
        self._call = progress if callable(progress) else None
        self._shown: Any = nullcontext()
        if progress is True:
            from rich import get_console
            from rich.progress import Progress as Rich

            shows = get_console().is_terminal or get_console().is_jupyter
            self._shown = bar = Rich(transient=True, disable=not shows)
            task = bar.add_task(title, total=total)
            self._call = lambda n_done, most: bar.update(task, completed=n_done, total=most)

    def __enter__(self) -> Self:
        self._shown.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        self._shown.__exit__(*raised)

    def add(self, n_done: int) -> None:
        """Show that so much more is done."""
        self.n_done += n_done
        self.show(self.n_done)

    def show(self, n_done: int) -> None:
        """Show how much is done."""
        if self._call is not None:
            self._call(n_done, self.total)
