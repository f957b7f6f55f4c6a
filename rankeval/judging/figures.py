"""The figures of judging: one function for each picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from rankeval.render.comparisons import intervals
from rankeval.render.layouts import shown_interval

if TYPE_CHECKING:
    from rankeval.render.plots import Figure


def estimates(table: pd.DataFrame, *, alpha: float, caption: str) -> Figure:
    """Draw each estimate with its interval beside those of the people alone and of the machine alone.

    Parameters
    ----------
    table, alpha, caption
        Of a `Calibration`.
    """
    low, high, kind = shown_interval(table)
    ends, outer = ["difference", "ci_low", "ci_high"], ["outer_low", "outer_high"]
    pairs = [" - ".join(filter(None, pair)) for pair in zip(table["system"], table["baseline"], strict=True)]
    parts = [table[["estimate", "ci_low", "ci_high", low, high]].set_axis([*ends, *outer], axis=1).assign(judge="both")]
    for judge in ("human", "machine"):
        columns = [f"{name}_{judge}" for name in ("mean", "ci_low", "ci_high", "ci_low", "ci_high")]
        parts.append(table[columns].set_axis([*ends, *outer], axis=1).assign(judge=judge))
    lines = pd.concat([part.assign(group=table["measure"], pair=pairs) for part in parts]).sort_index(kind="stable")
    lines["label"] = lines["pair"] + ": " + lines["judge"].replace("human", "people")
    what = "mean" if (table["baseline"] == "").all() else "difference of means"
    level = f"{100 * (1 - alpha):g} % intervals" + ("; thin: adjusted" if kind == " (adjusted)" else "")
    xlabel = f"{what}\n{level}\ngreen: people and machine, grey: one judge alone"
    return intervals(lines.assign(better=True, clear=lines["judge"] == "both"), xlabel=xlabel, caption=caption)
