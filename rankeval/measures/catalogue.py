"""The measures as a table, made from their declarations."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from rankeval.measures.family import FAMILIES

if TYPE_CHECKING:
    import pandas as pd


def list_measures() -> pd.DataFrame:
    """Return every declared measure with its documentation.

    Returns
    -------
    DataFrame of shape (n_measures, 13)
        Index ``name``; columns title, parameters (with their defaults), formula, bounds, aggregate, greater_is_better,
        needs (the judgments that it reads), monotone (the bounds that it has), ties (for how many tied rows the mean
        over their orders is exact), source, doi, description and spellings (its names in other tools).

    Examples
    --------
    >>> list_measures().loc["gm_AP", "spellings"]
    'trec_eval: gm_map, gm_ap; ir_measures: GMAP'
    """
    import pandas as pd

    rows = [
        {
            "name": family.name,
            "title": family.title,
            "parameters": ", ".join(
                name if default is inspect.Parameter.empty else f"{name}={default!r}"
                for name, default in family.defaults.items()
            ),
            "formula": family.formula,
            "bounds": family.bounds,
            "aggregate": family.aggregate,
            "greater_is_better": family.greater_is_better,
            "needs": family.needs,
            "monotone": family.monotone,
            "ties": family.ties,
            "source": family.source,
            "doi": family.doi,
            "description": inspect.getdoc(family.kernel) or "",
            "spellings": "; ".join(f"{tool}: {', '.join(map(str, names))}" for tool, names in family.spellings.items()),
        }
        for family in sorted(FAMILIES.values(), key=lambda one: one.name.lower())
    ]
    return pd.DataFrame(rows).set_index("name")
