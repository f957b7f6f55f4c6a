"""Tasks, done in this process or in several that end with it."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

from rankeval._checks import shown, whole_number
from rankeval.errors import InvalidInput

_LOOK = 0.5
"""Seconds after which a process looks again whether its caller is there."""


def number_of(n_jobs: int) -> int:
    """Return the number of processes.

    Parameters
    ----------
    n_jobs : int
        As in `rankeval.evaluate`.

    Raises
    ------
    InvalidInput
        If it is none.
    """
    number = whole_number(n_jobs)
    if not number:
        raise InvalidInput(f"n_jobs is {shown(n_jobs)}; expected a number of processes, or -1 for all cores")
    if number == 1:
        return 1
    import joblib

    return int(joblib.effective_n_jobs(number))


def each(tasks: Sequence[Callable[[], Any]], workers: int, *, goes_on: str) -> Iterator[tuple[int, Any]]:
    """Do tasks, in this process or in several, and yield the place and the result of each as it comes.

    Parameters
    ----------
    tasks : sequence of callable
        What is to be done.
    workers : int
        The number of processes.
    goes_on : str
        What can be done after one of them was ended, for the message.

    Raises
    ------
    InvalidInput
        If a process was ended from outside.
    """
    if workers == 1 or len(tasks) < 2:
        yield from ((place, task()) for place, task in enumerate(tasks))
        return
    import joblib
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    run = joblib.Parallel(workers, prefer="processes", return_as="generator_unordered", batch_size=1)
    try:
        yield from run(joblib.delayed(_done)(os.getpid(), place, task) for place, task in enumerate(tasks))
    except TerminatedWorkerError as error:
        raise InvalidInput(
            f"a process of n_jobs={workers} was ended from outside, perhaps for lack of memory: give a smaller memory= "
            f"or fewer processes; {goes_on}"
        ) from error


def _done(caller: int, place: int, task: Callable[[], Any]) -> tuple[int, Any]:
    end_with(caller)
    return place, task()


@cache
def end_with(caller: int) -> None:
    """Have this process end when the one that started it is gone, or has gone already: those of loky would wait for it.

    Parameters
    ----------
    caller : int
        The id of the process that started this one. Any other, as that of a cluster's client, changes nothing.
    """
    parent = multiprocessing.parent_process()
    if parent is not None and parent.pid == caller:
        threading.Thread(target=_wait_for_end, args=(caller,), daemon=True).start()


def _wait_for_end(caller: int) -> None:
    while os.getppid() == caller:
        time.sleep(_LOOK)
    os._exit(1)
