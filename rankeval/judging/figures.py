"""The figures of judging: one function for each picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from rankeval.render.comparisons import intervals
from rankeval.render.layouts import shown_interval

if TYPE_CHECKING:
    from rankeval.render.plots import Figure


def estimates(table: pd.DataFrame, alone: pd.DataFrame, *, alpha: float, caption: str) -> Figure:
    """Draw each estimate with its interval beside those of the people alone and of the machine alone.

    Parameters
    ----------
    table, alone, alpha, caption
        Of a `Calibration`.
    """
    low, high, kind = shown_interval(table)
    both = table.assign(judge="both", n_queries=table["n_human"], outer_low=table[low], outer_high=table[high])
    alone = alone.assign(outer_low=alone["ci_low"], outer_high=alone["ci_high"])
    lines = pd.concat([both, alone.query("judge == 'people'"), alone.query("judge == 'machine'")], ignore_index=True)
    pairs = [" - ".join(filter(None, pair)) for pair in zip(table["system"], table["baseline"], strict=True)]
    lines["label"] = np.tile(pairs, 3) + ": " + lines["judge"] + lines["n_queries"].map(" ({:,})".format)
    lines = lines.assign(
        difference=lines["estimate"], group=lines["measure"], clear=lines["judge"] == "both", better=True
    )
    lines = lines.iloc[np.argsort(np.tile(np.arange(len(table)), 3), kind="stable")]
    what = "mean" if (table["baseline"] == "").all() else "difference of means"
    level = f"{100 * (1 - alpha):g} % intervals" + ("; thin: adjusted" if kind == " (adjusted)" else "")
    xlabel = f"{what}\n{level}\ngreen: people and machine, grey: one judge alone"
    return intervals(lines, xlabel=xlabel, caption=caption)
