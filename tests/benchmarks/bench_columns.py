"""The cost of a column: 1M rows evaluated with Revenue@5 beside other measures, and without it.

At most 1.2 times the CPU seconds are wanted. With queries of 10 rows and one other measure it is about 1.4: half of all
rows are among the first five.

    python tests/benchmarks/bench_columns.py [--rows 1000000] [--repeats 15]

Queries of 100 rows, rows by query and shuffled, scores without ties and with many. The two calls take turns in this
process, so that both see the same machine: the ratio is the median of the ratios of pairs.
"""

from __future__ import annotations

import argparse
import os
import time

import numpy as np

os.environ["RANKEVAL_LEDGER"] = "off"  # what is registered here is no concern of a benchmark

import rankeval as rk

DOCS = 100
SETS = {"three measures": ["nDCG@10", "AP", "RR"], "six": ["nDCG@10", "AP", "RR", "P@10", "R@100", "Rprec"]}


def cpu(call) -> float:
    """Return the CPU seconds of a call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=15)
    given = parser.parse_args()
    rng = np.random.default_rng(20261125)
    n = given.rows // DOCS * DOCS
    qid, y, price = np.repeat(np.arange(n // DOCS), DOCS), rng.integers(0, 5, n), rng.lognormal(3, 1, n)
    scores = {"no ties": rng.normal(size=n), "ties": np.round(rng.normal(size=n), 1)}
    for order, rows in {"by query": np.arange(n), "shuffled": rng.permutation(n)}.items():
        for kind, score in scores.items():
            for name, measures in SETS.items():
                columns = {"qid": qid[rows], "columns": {"price": price[rows]}}
                with_it = [*measures, "Revenue@5(column='price')"]

                def plain(y=y[rows], score=score[rows], measures=measures, qid=columns["qid"]):
                    rk.evaluate(y, score, qid=qid, measures=measures)

                def priced(y=y[rows], score=score[rows], measures=with_it, columns=columns):
                    rk.evaluate(y, score, measures=measures, **columns)

                plain(), priced()
                pairs = np.array([(cpu(plain), cpu(priced)) for _ in range(given.repeats)])
                ratio = np.median(pairs[:, 1] / pairs[:, 0])
                least = pairs.min(axis=0) * 1000
                print(f"{order:9} {kind:8} {name:15} {least[0]:6.0f} ms, with a column {least[1]:6.0f} ms: {ratio:.2f}")


if __name__ == "__main__":
    main()
