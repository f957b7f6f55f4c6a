"""The cost of serving interleaved lists: CPU seconds for 20,000 lists of 10 with hash, record and JSON.

Run as ``python tests/benchmarks/bench_online.py``.
"""

from __future__ import annotations

import time

from rankeval.online.interleaving import SCHEMES, Interleaver

N_LISTS = 20_000
A = [f"d{place}" for place in range(10)]
B = [f"d{place}" for place in range(5, 15)]


def main() -> None:
    """Print the seconds of each scheme."""
    for scheme in SCHEMES:
        il = Interleaver(scheme, salt="exp7")
        start = time.process_time()
        for impression in range(N_LISTS):
            il.show({"A": A, "B": B}, impression=impression, user="u1", qid="q1").to_json()
        print(f"{scheme:15} {time.process_time() - start:.2f} CPU s for {N_LISTS:,} lists")


if __name__ == "__main__":
    main()
