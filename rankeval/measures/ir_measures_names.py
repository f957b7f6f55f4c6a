"""ir_measures' names with its own parameters: ``nDCG(dcg='exp-log2')@10``, ``SetP(rel=2)``, ``IPrec(rel=2)@0.5``.

The names themselves are declared as spellings. Its objects are read by what they print, and are never imported.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from rankeval._registry import unknown
from rankeval.errors import InvalidInput
from rankeval.measures.family import FAMILIES, Family, Measure, Spelling
from rankeval.measures.grammar import arguments, taken_apart

TOOL = "ir_measures"

_THEIRS = {"judged_only", "dcg", "gains", "relative"}
"""Parameters that no measure has here."""

_GAINS = {"log2": "linear", "exp-log2": "exp"}
"""What its ``dcg`` says of gains; ranks are discounted alike."""


class _Head(NamedTuple):
    """What stands before the parentheses: the family, what a number behind ``@`` gives, and what is left unsaid."""

    family: Family
    at: str
    fixed: Mapping[str, Any]


@lru_cache(maxsize=4)
def _heads(_n_families: int) -> dict[str, _Head]:
    heads: dict[str, _Head] = {}
    for found in FAMILIES.values():
        for spelling in found.spellings.get(TOOL, ()):
            head, at = re.split(r"[(@]", str(spelling))[0], re.search(r"@\{(\w+)\}", str(spelling))
            known = heads.get(head)
            fixed = spelling.fixed if isinstance(spelling, Spelling) else {}
            heads[head] = _Head(found, at[1] if at else known.at if known else "", fixed)
    return heads


def is_one(spec: object) -> bool:
    """Say whether an object is a measure of ir_measures.

    Parameters
    ----------
    spec : object
        Anything.
    """
    return any(kind.__module__.partition(".")[0] == TOOL for kind in type(spec).__mro__)


def read(name: str, n_families: int, *, ours_too: bool = False) -> tuple[tuple[str, Measure], ...]:
    """Return whose reading and measure for each way to read a name that our own grammar does not read.

    Parameters
    ----------
    name : str
        What was asked for.
    n_families : int
        How many families are declared: a new one is seen.
    ours_too : bool
        Read what our grammar reads as well, as of an object of ir_measures.

    Raises
    ------
    InvalidInput
        When it has a parameter that is none of a measure here, or is not known.
    """
    written = taken_apart(name)
    head = written and _heads(n_families).get(written.head)
    if written is None or head is None:
        return ()
    given = arguments(name, written.inside)
    ours = FAMILIES.get(written.head)
    theirs = _THEIRS & set(given) or (head.at == "recall" and written.at) or written.head == "NumRet"
    if ours is head.family and not theirs and not ours_too:
        return ()
    if ours is not None and ours is not head.family and set(given) - set(head.family.defaults):
        return ()
    if written.at and not head.at:
        raise InvalidInput(f"{name!r}: {written.head} has no cut-off; write {name.rpartition('@')[0]!r}")
    if written.at:
        given[head.at] = float(written.at)
    return _translated(name, written.head, head.family, {**head.fixed, **given})


def _translated(name: str, head: str, family: Family, given: dict[str, Any]) -> tuple[tuple[str, Measure], ...]:
    if given.pop("judged_only", False):
        raise InvalidInput(
            f"{name!r}: judged_only is a rule of the convention, not a parameter: leave it out and give "
            "convention=Convention(unjudged='skip') (--judged-only with --format trec)"
        )
    if "dcg" in given:
        dcg = given.pop("dcg")
        known = _GAINS if "gain" in family.defaults else ["log2"]
        if not isinstance(dcg, str) or dcg not in known or (dcg != "log2" and "gains" in given):
            raise unknown(f"dcg of {head}", str(dcg), known if "gains" not in given else ["log2"])
        if "gain" in family.defaults:
            given["gain"] = _GAINS[dcg]
    if "gains" in given:
        given["gain"] = given.pop("gains")
    if head == "SetP" and given.pop("relative", False):
        family = FAMILIES["RelP"]
    if head == "NumRet" and given:
        family = FAMILIES["NumRelRet"]
    one = (TOOL, family.with_parameters(**given))
    beta = given.get("beta")
    if head != "SetF" or beta is None:
        return (one,)
    # What it calls beta goes into the formula as beta squared.
    return (TOOL, family.with_parameters(**{**given, "beta": math.sqrt(max(beta, 0))})), ("as it reads", one[1])
