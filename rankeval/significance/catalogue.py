"""The tests, corrections and claims as a table, made from their declarations and their measured error rates.

``error_rates.json`` stands beside this file. ``tests/calibration/measure_rates.py`` measures and
writes it, and nothing else does. A line has the columns up to comparisons, and a list of the others
for each of its rates. A row is one rate::

    kind        "test", "fold test", "correction", "claim", "breakage" or "choice"
    name, test  the key of the declaration, and the test that its p-values come from
    world       how the data were drawn; ``worlds`` says it in words
    n, comparisons, sides
    quantity    "false claims" (at least one in the family), "power", "coverage" (of all intervals at once), "bias", ...
    rate, standard_error, replications, seeds, n_resamples, version

The words of a declaration are its key here: a test that somebody declares under an old name with a
function of his own has words of his own, and is not measured.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankeval._arguments import explained
from rankeval._registry import unknown
from rankeval.significance.declarations import CLAIMS, CORRECTIONS, FOLD_TESTS, TESTS

if TYPE_CHECKING:
    import pandas as pd

PATH = Path(__file__).with_name("error_rates.json")

NOT_MEASURED = "not measured"
FALSE_CLAIMS = "false claims"
BEST = "value of the best of several"
"""Words of `multiple.value_of_choice`, which is measured and not declared."""

FEW_QUERIES, FEWEST_QUERIES = 50, 10
"""Below the first, tests and families that err too often carry a note with their measured rates; none was measured
below the second."""

KINDS_OF_DIFFERENCES: Mapping[str, Sequence[str]] = {
    "symmetric to mildly skewed differences": ("sym", "beta", "skew"),
    "sparse scores": ("RR", "P@1"),
    "exponential differences": ("exponential",),
}
"""The worlds of one pair, put together for sentences."""


@cache
def measured() -> dict[str, Any]:
    """Return the file: ``level``, ``worlds``, ``words``, ``columns`` and ``rates``."""
    found: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))
    return found


def all_rows() -> list[dict[str, Any]]:
    """Return every measured rate as a mapping."""
    file = measured()
    lines = [(key, own) for *key, rates in file["rates"] for own in rates]
    return [dict(zip(file["columns"], (*key, *own), strict=True)) for key, own in lines]


@cache
def all_rates() -> pd.DataFrame:
    """Return every measured rate, one a row."""
    import pandas as pd

    return pd.DataFrame(all_rows(), columns=measured()["columns"])


def rates_of(words: str) -> pd.DataFrame:
    """Return the rates of a declaration."""
    rates, names = all_rates(), measured()["words"]
    known = [
        names.get(kind, {}).get(name) == words
        for kind, name in zip(rates["kind"], rates["name"], strict=True)
    ]
    return rates[known].reset_index(drop=True)


def of_one_pair(rates: pd.DataFrame, *, one_sided: bool = False) -> str:
    """Say the false claims of a test of one pair: a range over worlds, for each number of queries."""
    false = _false_claims(rates, one_sided=one_sided)
    said = []
    for kind, worlds in KINDS_OF_DIFFERENCES.items():
        by_n = false[false["world"].isin(worlds)].groupby("n")["rate"]
        if len(by_n):
            said.append(
                f"{kind} {_by_number((n, percent(part.min(), part.max())) for n, part in by_n)}"
            )
    return "; ".join(said)


@cache
def on_few_queries(
    words: str, size: int, *, n: int, one_sided: bool, units: str = "queries"
) -> str:
    """Say the worst rates of a correction and of the value of the best on so many queries, below `FEW_QUERIES`."""
    cases = (
        (words, FALSE_CLAIMS, one_sided, f"a false claim by {words}", "for 5 %"),
        (words, "coverage", one_sided, "all its intervals right", "for 95 %"),
        (BEST, "coverage", False, "the interval of `best` right", "for 95 %"),
    )
    said = []
    for name, quantity, sided, what, asked in cases:
        all_of = rates_of(name)
        found = all_of[
            (all_of["quantity"] == quantity) & ((all_of["sides"] == "two-sided") != sided)
        ]
        found = found[
            (found["n"] < FEW_QUERIES)
            & (found["comparisons"] <= max(size, 10, found["comparisons"].min()))
        ]
        worst = found.groupby("n")["rate"].agg("max" if quantity == FALSE_CLAIMS else "min")
        if len(worst):
            known = (
                worst.index[worst.index <= n].max() if n >= worst.index.min() else worst.index.min()
            )
            said.append(f"{what}: {percent(worst[known])} at {known} {units}, {asked}")
    return "; ".join(said)


def of_families(rates: pd.DataFrame, *, one_sided: bool = False) -> str:
    """Say the false claims of a correction: a range over sizes, for each world."""
    by_world = _false_claims(rates, one_sided=one_sided).groupby("world", sort=False)["rate"]
    return "; ".join(f"{world} {percent(part.min(), part.max())}" for world, part in by_world)


def _by_number(found: Iterable[tuple[Any, str]], units: str = "queries") -> str:
    first, *others = (f"{share} at {n}" for n, share in found)
    return ", ".join([f"{first} {units}", *others])


def _false_claims(rates: pd.DataFrame, *, one_sided: bool) -> pd.DataFrame:
    found = rates[
        (rates["quantity"] == FALSE_CLAIMS) & ((rates["sides"] != "two-sided") == one_sided)
    ]
    return (
        found.groupby(["world", "test", "n", "comparisons"], sort=False)[["rate"]]
        .max()
        .reset_index()
    )


def percent(low: float, high: float | None = None) -> str:
    """Write a share, or a range of shares, in percent with one decimal.

    Examples
    --------
    >>> percent(0.0512), percent(0.0461, 0.0557)
    ('5.1 %', '4.6-5.6 %')
    """
    ends = dict.fromkeys(f"{100 * share:.1f}" for share in (low, low if high is None else high))
    return f"{'-'.join(ends)} %"


KINDS: dict[str, Mapping[str, Any]] = {
    "test": TESTS,
    "fold test": FOLD_TESTS,
    "correction": CORRECTIONS,
    "claim": CLAIMS,
}
"""Kind -> its declarations, in the order of the table."""


@explained
def list_tests(name: str | None = None) -> pd.DataFrame:
    """Return every significance test, correction and claim, with its measured error rates.

    Parameters
    ----------
    name : str, optional
        A part of a name or of its words, in any capitals; all by default.

    Returns
    -------
    DataFrame of shape (n_declarations, 7)
        Index ``name``; columns kind, words, title (the first line of its documentation), two_sided
        and one_sided (false claims measured where 5 % were asked, or "not measured"), note (a
        warning that belongs to every result) and description.

    Raises
    ------
    UnknownName
        If nothing is found.

    Examples
    --------
    >>> list_tests("symmetric")["words"].tolist()
    ['symmetric studentised bootstrap']
    >>> list_tests().loc["holm", "kind"]
    'correction'
    """
    import pandas as pd

    wanted = "" if name is None else name.lower()
    declared = [(kind, key, one) for kind, table in KINDS.items() for key, one in table.items()]
    found = [
        each for each in declared if wanted in each[1].lower() or wanted in each[2].words.lower()
    ]
    if not found:
        raise unknown("test, correction or claim", str(name), [key for _, key, _ in declared])
    return pd.DataFrame([described(*each) for each in found]).set_index("name")


def rates_found(name: str) -> pd.DataFrame:
    """Return the measured rates of the declarations that a name is found in, one a row."""
    import pandas as pd

    return pd.concat([rates_of(words) for words in list_tests(name)["words"]], ignore_index=True)


@cache
def described(kind: str, name: str, declared: Any) -> dict[str, str]:
    """Return the cells of a declaration, as columns of `list_tests`."""
    measured, description = rates_of(declared.words), declared.description
    said = of_one_pair if kind == "test" else of_families
    return {
        "name": name,
        "kind": kind,
        "words": declared.words,
        "title": description.partition("\n")[0],
        "two_sided": said(measured) or NOT_MEASURED,
        "one_sided": said(measured, one_sided=True) or NOT_MEASURED,
        "note": getattr(declared, "note", "").replace("{size} ", ""),
        "description": description,
    }
