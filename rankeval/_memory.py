"""What the C library does with the memory of arrays that are freed."""

from __future__ import annotations

import numpy as np


def keep_freed_memory() -> None:
    """Have the C library keep the memory of arrays that are freed for the next ones, at most 62 MiB of it.

    glibc gives back what is free above twice the largest array that was freed so far, and each page
    of it costs half a microsecond or more when it is taken again: 10 of 115 ns a row
    (bench_streaming, shuffled), and 4,000 pages of a million lines (bench_files). So one larger
    array is made and freed, whose pages are never touched. Other C libraries do as they did.
    """
    np.empty(31 << 20, dtype=np.uint8)  # glibc takes an allocation of 32 MiB or less as a hint
