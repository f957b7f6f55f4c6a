"""One thread for small data, unless told otherwise.

Threads that wait for each other keep their cores busy. On small data they wait more than they work,
and beside other processes they wait longest. `tests/benchmarks/bench_threads.py`, on two cores, all
threads against one, 50 trees:

    cells        LightGBM      XGBoost       CatBoost      HistGradientBoosting
                 wall   CPU    wall   CPU    wall   CPU    wall   CPU
       10,000    13.8   20     2.7    3.8    1.1    1.2    6.1    7.6
      100,000     3.9    4     5.7    6.8    1.2    1.2    1.7    2.9
    1,000,000     2.1    2     6.1    5.9    0.5    1.0    9.1    9.7

(The machine had neighbours, as shared ones have.) CatBoost's threads sleep while they wait, so it
is left alone. One thread takes at most 2.4 seconds for a million cells there, so little is lost
where a second core is free.

LightGBM and XGBoost read their own parameter, which is set for the time of a call. OpenMP and BLAS,
as in HistGradientBoosting and Ridge, are limited by threadpoolctl.

joblib and Dask divide the cores among their workers by OMP_NUM_THREADS. LightGBM's classes do not
read it and take all cores in each worker, so they are told its number.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any

from rankeval._threads import is_said, limited, pools
from rankeval.model_selection import boosters, nesting

SMALL = 1_000_000
"""The greatest number of cells, rows times features, for which one thread is taken."""

_limited: ContextVar[bool] = ContextVar("limited", default=False)  # by an outer `one_thread`
_lock = Lock()
# Calls at work, by id of the estimator: predictions may run in several threads of Python.
_holders: Counter[int] = Counter()


@contextmanager
def one_thread(estimator: Any, X: Any) -> Iterator[None]:
    """Take one thread inside, if the data is small and nobody said how many to take."""
    cells = X.nnz if hasattr(X, "nnz") else X.shape[0] * X.shape[1]
    last = nesting.last_of(estimator)
    with ExitStack() as stack:
        if cells > SMALL or is_said():
            if not boosters.booster_of(last).reads_omp:
                stack.enter_context(_threads(last, _of_variable()))
        elif _limited.get():
            stack.enter_context(_threads(last, 1))
        elif not limited(found := pools()):
            stack.enter_context(found.limit(limits=1))
            stack.callback(_limited.reset, _limited.set(True))
            stack.enter_context(_threads(last, 1))
        yield


def _of_variable() -> int | None:
    """Return the number of threads in OMP_NUM_THREADS, which may be a list by depth of nesting."""
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(first) if first.isdecimal() and int(first) else None


@contextmanager
def _threads(estimator: Any, number: int | None) -> Iterator[None]:
    booster = boosters.booster_of(estimator)
    if number is None or not booster.threads:
        yield
        return
    with _lock:
        params = estimator.get_params() if id(estimator) not in _holders else {}
        is_ours = all(params.get(name) is None for name in booster.threads)
        if is_ours:
            _holders[id(estimator)] += 1
            booster.set_threads(estimator, number)
    try:
        yield
    finally:
        if is_ours:
            with _lock:
                _holders[id(estimator)] -= 1
                if not _holders[id(estimator)]:
                    del _holders[id(estimator)]
                    booster.set_threads(estimator, None)
