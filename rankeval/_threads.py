"""How many threads the libraries below NumPy take: one for small work, unless somebody said otherwise.

Threads that wait for each other keep their cores busy. On products that stay in the cache they wait
more than they work: fifty systems compared beside two busy processes took five times the CPU
seconds with two threads of BLAS.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from typing import Any

VARIABLES = (
    "OMP_NUM_THREADS",
    "OMP_THREAD_LIMIT",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
"""Variables by which a user says how many threads to take; joblib sets some of them in its workers."""


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Multiply matrices in one thread inside, or as a decorator; unless a variable or a limit says how many."""
    found = None if is_said() else pools()
    with (
        nullcontext() if found is None or limited(found) else found.limit(limits=1, user_api="blas")
    ):
        yield


def is_said() -> bool:
    """Say whether the user set one of the `VARIABLES`."""
    return any(os.environ.get(name) for name in VARIABLES)


def pools() -> Any:
    """Return the pools of the loaded libraries; looked for again only if modules were loaded, as it takes 2 ms."""
    return _pools_of(len(sys.modules))


@lru_cache(maxsize=1)
def _pools_of(_n_modules: int) -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def limited(found: Any) -> bool:
    """Say whether a pool has less threads than there are cores: an enclosing ``threadpool_limits`` wins."""
    import joblib

    cores = joblib.cpu_count()
    most = {"openmp": cores, "blas": min(cores, 64)}  # OpenBLAS is built for 64 threads at most
    return any(pool.num_threads < most.get(pool.user_api, 0) for pool in found.lib_controllers)
