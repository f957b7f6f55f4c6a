"""Random tables of labels with missing ones, and their coefficients by other programs, in agreement_tables.json.xz.

    pip install krippendorff irrCAC && python tests/golden/agreement_tables.py

The file says which versions made it. None of them is a dependency.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from random import Random
from typing import Any, TypeVar

T = TypeVar("T")

FILE = Path(__file__).with_suffix(".json.xz")
LEVELS = ("nominal", "ordinal", "interval")
N_TABLES = 500


def drawn(seed: int) -> list[list[int | None]]:
    """Return the labels of each item by each judge, some of them missing, and two items or more with two labels."""
    # The only function of the module whose values are the same in every version.
    random = Random(seed).random  # noqa: S311 - no secret

    def one_of(options: Sequence[T]) -> T:
        return options[int(random() * len(options))]

    n_judges, n_items = one_of((2, 2, 3, 4, 6)), one_of(range(3, 31))
    grades = sorted({one_of(range(-2, 7)) for _ in range(one_of((2, 3, 5, 8)))})
    missing, agree = one_of((0.0, 0.1, 0.3, 0.5)), random()
    table = []
    for _ in range(n_items):
        truth = one_of(grades)
        row = [truth if random() < agree else one_of(grades) for _ in range(n_judges)]
        table.append([None if random() < missing else label for label in row])
    paired = [row for row in table if sum(label is not None for label in row) > 1]
    return table if len(paired) > 1 else drawn(seed + N_TABLES)


def _values(seed: int) -> dict[str, Any]:
    import krippendorff
    import numpy as np
    import pandas as pd
    from irrCAC.raw import CAC

    table = np.array(drawn(seed), dtype=np.float64)
    found = {}
    for level in LEVELS:
        try:
            found[level] = float(krippendorff.alpha(table.T, level_of_measurement=level))
        except ValueError:  # one grade only
            found[level] = None
    paired = table[(~np.isnan(table)).sum(axis=1) > 1]
    if len(np.unique(paired[~np.isnan(paired)])) == 1:
        return found
    grades = sorted(np.unique(table[~np.isnan(table)]))
    cac = CAC(pd.DataFrame(paired), categories=grades, digits=15)
    for name in ("gwet", "fleiss", "bp"):
        found[name] = float(getattr(cac, name)()["est"]["coefficient_value"])
    return found


def main() -> None:
    made = {"versions": {name: version(name) for name in ("krippendorff", "irrCAC", "numpy")}}
    made["values"] = [_values(seed) for seed in range(N_TABLES)]
    FILE.write_bytes(lzma.compress(json.dumps(made).encode(), preset=9))


if __name__ == "__main__":
    main()
