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
from collections.abc import Mapping, Sequence
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
    sentences = []
    for kind, worlds in KINDS_OF_DIFFERENCES.items():
        by_n = false[false["world"].isin(worlds)].groupby("n")["rate"]
        shares = [f"{percent(part.min(), part.max())} at {n}" for n, part in by_n]
        if shares:
            shares[0] += " queries"
            sentences.append(f"{kind} {', '.join(shares)}")
    return "; ".join(sentences)


@cache
def on_few_queries(words: str, size: int, *, n: int, one_sided: bool, units: str) -> str:
    """Say the worst rates of a correction and of the value of the best on so many queries, below `FEW_QUERIES`."""
    cases = (
        (words, FALSE_CLAIMS, one_sided, f"a false claim by {words}", "for 5 %"),
        (words, "coverage", one_sided, "all its intervals right", "for 95 %"),
        (BEST, "coverage", False, "the interval of `best` right", "for 95 %"),
    )
    sentences = []
    for name, quantity, sided, event, level in cases:
        rates = rates_of(name)
        rates = rates[(rates["quantity"] == quantity) & ((rates["sides"] == "two-sided") != sided)]
        largest = max(size, 10, rates["comparisons"].min())
        rates = rates[(rates["n"] < FEW_QUERIES) & (rates["comparisons"] <= largest)]
        worst = rates.groupby("n")["rate"].agg("max" if quantity == FALSE_CLAIMS else "min")
        if len(worst):
            known = worst.index[worst.index <= max(n, worst.index.min())].max()
            sentences.append(f"{event}: {percent(worst[known])} at {known} {units}, {level}")
    return "; ".join(sentences)


def of_families(rates: pd.DataFrame, *, one_sided: bool = False) -> str:
    """Say the false claims of a correction: a range over sizes, for each world."""
    by_world = _false_claims(rates, one_sided=one_sided).groupby("world", sort=False)["rate"]
    return "; ".join(f"{world} {percent(part.min(), part.max())}" for world, part in by_world)


def _false_claims(rates: pd.DataFrame, *, one_sided: bool) -> pd.DataFrame:
    is_sided = (rates["sides"] != "two-sided") == one_sided
    false = rates[(rates["quantity"] == FALSE_CLAIMS) & is_sided]
    families = false.groupby(["world", "test", "n", "comparisons"], sort=False)
    return families[["rate"]].max().reset_index()


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
        A name, or a part of a name or of its words, in any capitals; all by default.

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
    is_whole = any(wanted == key.lower() for table in KINDS.values() for key in table)
    keys: list[str] = []
    rows = []
    for kind, table in KINDS.items():
        keys += table
        for key, declared in table.items():
            is_part = wanted in key.lower() or wanted in declared.words.lower()
            if wanted == key.lower() if is_whole else is_part:
                rows.append(described(kind, key, declared))
    if not rows:
        raise unknown("test, correction or claim", str(name), keys)
    return pd.DataFrame(rows).set_index("name")


def rates_found(name: str) -> pd.DataFrame:
    """Return the measured rates of the declarations that a name is found in, one a row."""
    import pandas as pd

    return pd.concat([rates_of(words) for words in list_tests(name)["words"]], ignore_index=True)


@cache
def described(kind: str, name: str, declared: Any) -> dict[str, str]:
    """Return the cells of a declaration, as columns of `list_tests`."""
    measured, description = rates_of(declared.words), declared.description
    false_claims = of_one_pair if kind == "test" else of_families
    note = getattr(declared, "note", "").replace("{size} ", "")
    return {
        "name": name,
        "kind": kind,
        "words": declared.words,
        "title": description.partition("\n")[0],
        "two_sided": false_claims(measured) or NOT_MEASURED,
        "one_sided": false_claims(measured, one_sided=True) or NOT_MEASURED,
        "note": note,
        "description": description,
    }
