"""Whether the two systems with the best means can be told apart, where a baseline leaves that question open."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from rankeval.comparison.design import FIRST_TWO, Design
from rankeval.significance.columns import differences
from rankeval.significance.declarations import Floats, Settings, SignificanceTest
from rankeval.significance.pairs import Pairs, as_pairs
from rankeval.significance.running import run


def first_two(
    design: Design, means: Floats, d: Floats | Pairs, test: SignificanceTest, settings: Settings
) -> pd.DataFrame | None:
    """Test the difference of the first two systems by each measure, unless one of them is the baseline.

    The p-value is that of the pair alone. That the pair is chosen by its means makes no false claims more likely:
    systems whose means lie beside each other differ less than others.

    Parameters
    ----------
    design : Design
        The comparisons with one baseline.
    means : ndarray of shape (n_systems, n_measures)
        Means.
    d : ndarray of shape (n_rows, n_comparisons), or Pairs
        The differences from the baseline, as they are tested.
    test : SignificanceTest
        The test.
    settings : Settings
        As the comparison was made.

    Returns
    -------
    DataFrame or None
        Columns: measure, baseline (the second system), system (the first), difference, p_value.
    """
    if design.baseline is None or len(design.pairs) < 2:
        return None
    names, n_pairs = design.names, len(design.pairs)
    places = {name: place for place, name in enumerate(names["system"][:n_pairs])}
    rows, columns = [], []
    for number, measure in enumerate(design.measures):
        gains = means[:, number] * design.directions[number * n_pairs]
        one, other = (design.systems[place] for place in np.argsort(-gains, kind="stable")[:2])
        if design.baseline in (one, other):
            continue
        pair = number * n_pairs + np.array([places[one], places[other]])
        both = as_pairs(d).at(pair)[:]
        columns.append(differences(both[:, 0], both[:, 1]))
        high, low = (means[design.systems.index(name), number] for name in (one, other))
        rows.append((measure, other, one, high - low if columns[-1].any() else 0.0))  # else rounding is left of it
    if not rows:
        return None
    plain = replace(settings, claim="difference", margin=0.0, alternative="two-sided")
    p = run(test, as_pairs(np.column_stack(columns)), plain).p_value
    return pd.DataFrame([(*row, one) for row, one in zip(rows, p.tolist(), strict=True)], columns=FIRST_TWO)
