"""The tests, corrections and claims as a table, made from their declarations and their measured rates."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rankeval._registry import unknown
from rankeval.significance import folds, rates
from rankeval.significance.claims import CLAIMS, Claim
from rankeval.significance.registry import CORRECTIONS, FOLD_TESTS, TESTS

if TYPE_CHECKING:
    import pandas as pd

KINDS: dict[str, Mapping[str, Any]] = {
    "test": TESTS,
    "fold test": FOLD_TESTS,
    "correction": CORRECTIONS,
    "claim": CLAIMS,
}
"""Kind -> its declarations, in the order of the table."""


def list_tests(name: str | None = None) -> pd.DataFrame:
    """Return every significance test, correction and claim, with its measured error rates.

    Parameters
    ----------
    name : str, optional
        A part of a name or of its words, in any capitals; all by default.

    Returns
    -------
    DataFrame of shape (n_declarations, 7)
        Index ``name``; columns kind, words, title (the first line of its documentation), two_sided and one_sided (false
        claims measured where 5 % were asked, or "not measured"), note (a warning that belongs to every result) and
        description.

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

    declared = [(kind, key, one) for kind, table in KINDS.items() for key, one in table.items()]
    found = [
        each for each in declared if name is None or any(name.lower() in text.lower() for text in _texts(*each[1:]))
    ]
    if not found:
        raise unknown("test, correction or claim", str(name), [key for _, key, _ in declared])
    return pd.DataFrame([described(*each) for each in found]).set_index("name")


def rates_found(name: str) -> pd.DataFrame:
    """Return the measured rates of the declarations that a name is found in, one a row.

    Parameters
    ----------
    name : str
        As in `list_tests`.

    Raises
    ------
    UnknownName
        If nothing is found.
    """
    import pandas as pd

    return pd.concat([rates.rates_of(words) for words in list_tests(name)["words"]], ignore_index=True)


def described(kind: str, name: str, declared: Any) -> dict[str, str]:
    """Return the cells of a declaration, as columns of `list_tests`.

    Parameters
    ----------
    kind, name : str
        Its table in `KINDS`, and its key there.
    declared : SignificanceTest, Correction or Claim
        The declaration.
    """
    measured, description = rates.rates_of(declared.words), _description(kind, name, declared)
    said = rates.of_one_pair if kind == "test" else rates.of_families
    return {
        "name": name,
        "kind": kind,
        "words": declared.words,
        "title": description.partition("\n")[0],
        "two_sided": said(measured) or rates.NOT_MEASURED,
        "one_sided": said(measured, one_sided=True) or rates.NOT_MEASURED,
        "note": getattr(declared, "note", "").replace("{size} ", ""),
        "description": description,
    }


def _texts(name: str, declared: Any) -> tuple[str, str]:
    return name, declared.words


def _description(kind: str, name: str, declared: Any) -> str:
    """Return the docstring of a declaration's function; a claim is described by its hypotheses."""
    if kind == "fold test":  # its function tests widened differences; the one of its name widens them
        return inspect.getdoc(getattr(folds, name)) or ""
    if not isinstance(declared, Claim):
        return inspect.getdoc(declared.function) or ""
    wanted = {-1: "-margin", 1: "the margin"}
    shown = [f"{side} than {wanted[factor]}" for side, factor in declared]
    return f"Shown if the gain is {' and '.join(shown)}." if shown else "Shown if the difference is not zero."
