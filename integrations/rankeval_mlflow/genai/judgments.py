"""Find the judgments of a row of mlflow.genai.evaluate among its expectations.

    {"relevance": {"d1": 3, "d2": 0}}                        grades by document
    {"relevance": ["d1", "d4"]}                              the relevant documents, of grade 1
    {"expected_retrieved_context": [{"doc_uri": "d1"}]}      MLflow's own field; a document may have a "relevance"

A row without judgments, or with none in the list, is not judged: it has no value, since 0 would be wrong. To say that
nothing is relevant, judge a document 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from numbers import Real
from typing import Any

from rankeval._checks import few, shown
from rankeval.errors import InvalidInput
from rankeval_mlflow.genai.rankings import IDS, document_ids, field

CONTEXT = "expected_retrieved_context"
"""MLflow's name for the documents that should be retrieved; its documents are named by their ``doc_uri``."""

FIELDS = ("relevance", CONTEXT)
"""The expectations that may hold judgments, the first that a row has."""

Expected = str | Callable[[Mapping[str, Any]], Any] | None


def judgments_of_row(
    expectations: Mapping[str, Any] | None, expected: Expected, ids: Iterable[str] = IDS
) -> dict[str, Any] | None:
    """Return the grade of each judged document of a row, or None if the row is not judged.

    Parameters
    ----------
    expectations : mapping, optional
        The expectations of the row.
    expected : str, callable or None
        Which of them holds the judgments; by default the first of `FIELDS`.
    ids : iterable of str
        The fields that may hold the id of a document.

    Raises
    ------
    InvalidInput
        If the judgments cannot be read.
    """
    given = expectations or {}
    if callable(expected):
        name, value = "the result of expected", expected(given)
    else:
        name = expected or next((name for name in FIELDS if given.get(name) is not None), "")
        value = given.get(name)
    if value is None:
        return None
    grades = value if isinstance(value, Mapping) else _grades(name, value, ids)
    named = {str(one): grade for one, grade in grades.items()}
    if len(named) < len(grades):
        raise InvalidInput(f"{name}: two documents have the same id as text, such as 1 and '1'")
    return named or None


def ids_for(expectations: Mapping[str, Any] | None, expected: Expected, docid: str | None) -> tuple[str, ...]:
    """Return the fields that may hold the id of a document; MLflow's own expectation has it in ``doc_uri``."""
    if docid is not None:
        return (docid,)
    is_context = expected == CONTEXT or (expected is None and "relevance" not in (expectations or {}))
    first = ("doc_uri", "metadata.doc_uri") if is_context and CONTEXT in (expectations or {}) else ()
    return (*first, *(one for one in IDS if one not in first))


def why_not_judged(expectations: Mapping[str, Any] | None, expected: Expected) -> str:
    """Return why a row has no judgments, and what to do."""
    wanted = "judgments" if callable(expected) else f"expectation {expected or FIELDS[0]!r}"
    held = f"it has {few(list(expectations))}" if expectations else "it has none"
    return (
        f"not judged: this row has no {wanted}, or it is empty ({held}). Give the relevant documents, such as "
        "expectations={'relevance': {'d1': 1}}, or name the expectation with expected="
    )


def _grades(name: str, value: Any, ids: Iterable[str]) -> dict[Any, Any]:
    """Return the grades of a list of documents: 1, or the number in the field ``relevance`` of a document."""
    documents = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(documents, (list, tuple, set, frozenset)):
        raise InvalidInput(f"{name} is {shown(value)}; expected grades by document id, or a list of relevant documents")
    grades: dict[Any, Any] = {}
    listed = list(documents)
    for one, document in zip(document_ids(listed, ids), listed, strict=True):
        graded = None if isinstance(document, (str, int)) else field(document, "relevance")
        grade = graded if isinstance(graded, Real) else 1
        if grades.setdefault(one, grade) != grade:
            raise InvalidInput(f"{name}: the document {shown(one)} has the grades {grades[one]} and {grade}")
    return grades
