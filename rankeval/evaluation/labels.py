"""Measures found among the labels of columns, by name or by meaning ("ndcg_cut_10" for "nDCG@10")."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from rankeval._registry import unknown
from rankeval.errors import InvalidInput
from rankeval.measures import Measure, measure
from rankeval.measures import measures as find_measures


def labels_of(
    wanted: str | Measure | Iterable[str | Measure], labels: Sequence[str], kind: str = "measure"
) -> list[str]:
    """Find measures among the labels of columns, by name or by meaning ("ndcg_cut_10" for "nDCG@10").

    Parameters
    ----------
    wanted : str, Measure or iterable of them
        The measures asked for.
    labels : sequence of str
        Columns that there are; a frame's column need not be one of our measures.
    kind : str
        Noun for them in the error.

    Raises
    ------
    InvalidInput
        None is asked for.
    UnknownName
        One of them is not among the labels.
    """
    asked = [wanted] if isinstance(wanted, str | Measure) or not isinstance(wanted, Iterable) else list(wanted)
    if not asked:
        raise InvalidInput("measures is empty: name at least one, or leave it out for all that are shared")
    return list(dict.fromkeys(label for each in asked for label in _labels_meant(each, labels, kind)))


def _labels_meant(wanted: str | Measure, labels: Sequence[str], kind: str) -> list[str]:
    """Return the labels that a name stands for: one, but for names of several such as "P.5,10"."""
    if wanted in labels:
        return [str(wanted)]
    label_of: dict[Measure, str] = {}
    for label in labels:
        with suppress(InvalidInput):  # a frame's column need not be one of our measures
            label_of.setdefault(measure(label), label)
    try:
        return [label_of[meant] for _, meant in find_measures(wanted)]
    except (InvalidInput, KeyError):
        raise unknown(kind, str(wanted), labels) from None
