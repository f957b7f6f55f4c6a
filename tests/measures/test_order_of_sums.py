"""What average precision relies on: NumPy's difference over an axis adds up in order, as a running sum does."""

from __future__ import annotations

import numpy as np
from tables import each_row

SIZES = [*range(1, 140), 1000, 8192, 8193, 2**17 + 3]


@each_row("start", [0, 1, 3])
def test_the_difference_of_many_numbers_takes_them_one_after_the_other(start):
    """`measures/ranked.py` sums precisions as 0 less their difference, bit for bit the sum of a running total."""
    numbers = np.random.default_rng(7).random(SIZES[-1] + start)[start:]  # also where memory is not aligned
    running = np.cumsum(numbers)
    found = [0.0 - np.subtract.reduce(numbers[:size], initial=0.0) for size in SIZES]
    assert found == [running[size - 1] for size in SIZES], "if NumPy has changed, sum otherwise in _relevant_precision"
    assert any(numbers[:size].sum() != running[size - 1] for size in SIZES), "NumPy's own sum adds by pairs"


def test_a_running_total_takes_numbers_one_after_the_other():
    numbers = np.random.default_rng(8).random(1000).tolist()
    total = 0.0
    for number in numbers:
        total += number
    assert np.cumsum(numbers)[-1] == total == 0.0 - np.subtract.reduce(np.array(numbers), initial=0.0)
