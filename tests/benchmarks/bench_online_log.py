"""The cost of reading a click log: CPU seconds for 1,000,000 impressions of 10 items, in each form and order.

Run as ``python tests/benchmarks/bench_online_log.py``.
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pyarrow as pa

from rankeval.online import ClickLog

N, DEPTH = 1_000_000, 10


def main() -> None:
    """Print the seconds of each form."""
    rng = np.random.default_rng(0)
    first = np.repeat(rng.integers(0, 50_000, N), DEPTH)
    rows = pd.DataFrame(
        {"impression": np.repeat(np.arange(N), DEPTH), "qid": np.repeat(rng.integers(0, 5000, N), DEPTH)}
    )
    rows["position"] = np.tile(np.arange(1, DEPTH + 1), N)
    rows["docid"] = pd.array([f"d{one}" for one in first + rows["position"]], dtype="str")
    rows["clicked"] = (rng.random(N * DEPTH) < 0.1).astype(int)
    clicked = rows["clicked"] == 1
    ends = np.append(0, clicked.to_numpy().reshape(N, DEPTH).sum(axis=1).cumsum())
    shown = pa.LargeListArray.from_arrays(np.arange(0, N * DEPTH + 1, DEPTH), pa.array(rows["docid"]))
    ids = pa.LargeListArray.from_arrays(ends, pa.array(rows["docid"][clicked]))
    forms = {
        "rows of items in order": rows,
        "rows of items in no order": rows.iloc[rng.permutation(len(rows))],
        "a tenth of the events sent twice": pd.concat([rows, rows.head(N)]),
        "lists of clicked ids": pa.table({"qid": rows["qid"].to_numpy()[::DEPTH], "shown": shown, "clicked": ids}),
    }
    for form, frame in forms.items():
        start = time.process_time()
        ClickLog.from_frame(frame)
        print(f"{form:32} {time.process_time() - start:5.1f} CPU s for {N:,} impressions of {DEPTH}")


if __name__ == "__main__":
    main()
