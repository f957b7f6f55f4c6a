"""The measures as a table, made from their declarations."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from rankeval.measures.family import FAMILIES, Family
from rankeval.measures.names import measure

if TYPE_CHECKING:
    import pandas as pd


def list_measures(name: str | None = None) -> pd.DataFrame:
    """Return every declared measure with its documentation, or those that a name is found in.

    Parameters
    ----------
    name : str, optional
        A part of a measure's name, of its title or of its name in another tool, in any capitals; or a whole name with
        a cut-off or parameters, such as "ndcg_cut_10".

    Returns
    -------
    DataFrame of shape (n_measures, 13)
        Index ``name``; columns title, parameters (with their defaults), formula, bounds, aggregate, greater_is_better,
        needs (the judgments that it reads), monotone (the bounds that it has), ties (for how many tied rows the mean
        over their orders is exact), source, doi, description and spellings (its names in other tools).

    Raises
    ------
    UnknownName
        If no measure is found.

    Examples
    --------
    >>> list_measures("map_cut").index.tolist()
    ['AP']
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
        for family in sorted(FAMILIES.values() if name is None else _found(name), key=lambda one: one.name.lower())
    ]
    return pd.DataFrame(rows).set_index("name")


def _found(name: str) -> list[Family]:
    """Return the families that a name is found in, or else the one whose measure it is."""
    part = name.lower()
    found = [family for family in FAMILIES.values() if any(part in text.lower() for text in _texts(family))]
    return found or [measure(name).family]


def _texts(family: Family) -> list[str]:
    return [family.name, family.title, *(str(one) for names in family.spellings.values() for one in names)]
