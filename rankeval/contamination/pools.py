"""Say whether a BaseException, such as a refusal, would be lost between this call and the caller of its worker.

`multiprocessing.Pool`, `ThreadPool` and a client of Dask wait for ever for a call that ended in a BaseException: they
catch Exceptions only. joblib wraps each call, on all of its backends, and executors of `concurrent.futures` send a
BaseException back as they send an Exception. So the stack tells what must be raised::

    thread of Pool     multiprocessing.pool.worker -> your function -> rankeval                             hangs
    thread of joblib   multiprocessing.pool.worker -> joblib -> scikit-learn -> rankeval                    gets through
    submitted to Dask  distributed.worker._run_task_simple -> dask -> your function -> rankeval             hangs
    joblib on Dask     distributed.worker._run_task_simple -> dask -> joblib -> scikit-learn -> rankeval    gets through

The trap: `multiprocessing.current_process().daemon` is true in all of these workers. A search on Dask that gets an
Exception for that turns it into nan, and goes on.
"""

from __future__ import annotations

import sys
import threading
from types import FrameType

_RUNNERS = {
    "multiprocessing.pool": ("worker",),
    "multiprocess.pool": ("worker",),  # the pool of pathos
    "distributed.worker": ("_run_task_simple", "_run_task_async", "apply_function_simple", "apply_function_async"),
}
"""The functions that run a call in a worker, by module; those of Dask have two names each, by release."""

_OF_RUNNERS = ("multiprocessing.", "multiprocess.", "dask.", "distributed.")
"""Modules that are no part of the call that a runner was given."""


def hangs_on_refusals() -> bool:
    """Return whether a BaseException raised here would hang a caller, so that an Exception must be raised instead."""
    if threading.current_thread() is threading.main_thread():
        return _is_lost(sys._getframe())  # noqa: SLF001 - inspect.stack reads the source of every frame
    # A call in a worker may start threads, whose errors are raised again in the worker's own.
    return any(map(_is_lost, sys._current_frames().values()))  # noqa: SLF001 - no other way to the stack of a thread


def _is_lost(frame: FrameType | None) -> bool:
    """Return whether a runner runs this frame, and the call that it was given is not joblib's."""
    called = ""
    while frame is not None:
        module = str(frame.f_globals.get("__name__"))
        if frame.f_code.co_name in _RUNNERS.get(module, ()):
            is_idle = not called
            return not is_idle and not called.startswith("joblib.")
        if not module.startswith(_OF_RUNNERS):
            called = module
        frame = frame.f_back
    return False
