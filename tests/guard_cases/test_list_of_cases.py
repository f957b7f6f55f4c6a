"""The lists are complete: thirty misuses, thirty legitimate uses, and each row of the reviewers' table has a case."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest
from guard_cases.situations import COUNTED, FAILS, FOUND, NEVER, REFUSED, SAID, UNDISTURBED, WARNED

FOLDER = Path(__file__).parent
FINDINGS = {
    1: "confirmatory can be had again",
    2: "the test beside dev rows, with features changed, is not seen",
    3: "a ranking of nearly the test passes",
    4: "an edited ledger is trusted",
    5: "the ledger does not live in git, and one that is not there is passed over",
    6: "a refusal does not say which queries, nor the way out",
    7: "what can fail fails after the look was spent",
    8: "one final model, folds, successors are missing",
    9: "an expectation is called a bound",
    10: "looks of other projects count for one digest only",
}
"""Row of the reviewers' table -> the finding in short."""


def cases(kind: str) -> Iterator[tuple[str, object]]:
    """Yield the functions that are declared as cases of one kind, each once however many forms it has."""
    for path in sorted([*FOLDER.glob("test_misuses_*.py"), *FOLDER.glob("test_legitimate_*.py")]):
        spec = importlib.util.spec_from_file_location(f"listed_{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name, function in vars(module).items():
            if getattr(getattr(function, "case", None), "kind", None) == kind:
                yield name, function


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("misuse", {REFUSED, WARNED, COUNTED, NEVER, FAILS, FOUND}), ("legitimate", {UNDISTURBED, SAID})],
)
def test_there_are_thirty_cases_or_more_and_each_says_what_it_expects(kind, expected):
    found = dict(cases(kind))
    assert len(found) >= 30, sorted(found)
    assert {function.case.expected for function in found.values()} <= expected
    assert all(name.startswith("test_") and function.__doc__ for name, function in found.items())


def test_each_finding_has_a_case():
    answered = {row for kind in ("misuse", "legitimate") for _, one in cases(kind) for row in one.case.rows}
    assert answered == set(FINDINGS)
