"""What a scorer writes beside each value: the ranking and the judgments that it saw, so that a run can be loaded.

MLflow keeps text beside an assessment ("metadata"). One entry, `ROW`, holds a row as JSON:

    {"query": "what is mlflow", "ranking": ["d3", "d1"], "judgments": {"d1": 2}, "problem": null,
     "scorer": null, "measures": {"nDCG@10": "nDCG@10"}, "columns": {"nDCG@10": "nDCG_at_10"},
     "convention": {"name": "rankeval", ...}}
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from rankeval.errors import InvalidInput
from rankeval_mlflow.genai.rankings import Ranking, as_ranking

ROW = "rankeval.row"
"""The entry of an assessment's metadata that holds the row."""

QUERY_IDS = ("qid", "query_id", "id")
"""The inputs that may hold the query's id."""

LONGEST_QUESTION = 200
"""A single text among the inputs is the query's id, up to this length."""


@dataclass(frozen=True)
class Row:
    """One row, as a scorer saw it.

    Parameters
    ----------
    query : str
        The id of the query.
    measures : mapping of str to str
        The full spelling of each measure, by the name asked for.
    columns : mapping of str to str
        The name of its value in MLflow, by the name asked for.
    convention : mapping
        The card of the convention.
    scorer : str, optional
        The name that the user gave the scorer.
    ranking : Ranking, optional
        The retrieved documents; None if there was no ranking.
    judgments : mapping, optional
        Grades by document; None if the row is not judged.
    problem : str, optional
        Why the row has no value: "not judged", "no ranking", "left out" or "invalid".
    """

    query: str
    measures: Mapping[str, str]
    columns: Mapping[str, str]
    convention: Mapping[str, Any]
    scorer: str | None = None
    ranking: Ranking | None = None
    judgments: Mapping[str, Any] | None = None
    problem: str | None = None

    def to_json(self) -> str:
        """Return the row as JSON."""
        plain = {part.name: getattr(self, part.name) for part in fields(self)}
        return json.dumps(plain | {"ranking": self.ranking and self.ranking.plain()})

    @classmethod
    def from_json(cls, text: str) -> Row:
        """Return the row of a JSON text.

        Raises
        ------
        InvalidInput
            If it is no row of ours.
        """
        try:
            plain = json.loads(text)
            ranking = None if plain["ranking"] is None else as_ranking(plain["ranking"])
            return cls(**plain | {"ranking": ranking})
        except (ValueError, TypeError, KeyError) as error:
            raise InvalidInput(f"the entry {ROW} of an assessment was altered: {error}") from error


def query_id(inputs: Any, qid: str | None) -> str:
    """Return the id of a row's query.

    Parameters
    ----------
    inputs : mapping
        The inputs of the row.
    qid : str, optional
        Which of them is the id. By default ``qid``, ``query_id`` or ``id``, if it is text or a whole number; else the
        only input, if it is a short text; else a hash of all inputs.

    Raises
    ------
    InvalidInput
        If there is no such input.
    """
    given = inputs if isinstance(inputs, Mapping) else {"inputs": inputs}
    if qid is not None and given.get(qid) is None:
        raise InvalidInput(f"qid is {qid!r}, but the inputs of a row are {sorted(map(str, given))}")
    for name in [qid] if qid else QUERY_IDS:
        if isinstance(given.get(name), (str, int)) or qid:
            return str(given[name])
    alone = next(iter(given.values())) if len(given) == 1 else None
    if isinstance(alone, str) and 0 < len(alone) <= LONGEST_QUESTION:
        return alone
    text = json.dumps(given, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
