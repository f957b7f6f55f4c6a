"""The queries of a collection that nobody has looked at, and what a plan on them can show."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import count
from rankeval.errors import InvalidInput
from rankeval.guard.plan import Plan
from rankeval.guard.records import Records
from rankeval.guard.standing.history import History
from rankeval.guard.unknown import untold
from rankeval.ledger.entry import Entry

TYPICAL_SD = 0.2
"""Standard deviation of differences per query that is assumed before any were seen; .15 to .20 for TREC runs."""


def fresh_places(records: Records, registration: Entry) -> NDArray[np.intp]:
    """Return the places, in the order of the content, of the queries that no entry exposes, as far as can be told.

    Parameters
    ----------
    records : Records
        The ledger.
    registration : Entry
        The entry of the collection.

    Raises
    ------
    InvalidInput
        If there are fewer than two.
    """
    exposure, body = records.exposure, registration.body
    whole = {"registration": registration.hash, "queries": None}
    exposed = exposure.exposed(exposure.queries_of(whole), exposure.exposing(records.project))
    unknown = ~exposed & untold(records, registration.hash)
    places = np.flatnonzero(~exposed & ~unknown)
    if len(places) < 2:
        said = f"fresh=True: {len(places)} of {count(len(exposed), 'query')} of {body['name']!r}"
        if unknown.any():
            raise InvalidInput(
                f"{said} are known to be new. {int(exposed.sum())} were looked at in some collection, and "
                f"{int(unknown.sum())} may be others of it: ids and features changed, so nothing tells. Register the "
                "queries under the ids that they had, and take new ones"
            )
        raise InvalidInput(
            f"{said} were never exposed. Add new queries and register them: guard.register(..., "
            f"supersedes={body['name']!r})"
        )
    return places


def note_on_fresh(records: Records, plan: Plan) -> str:
    """Return how many queries a plan tests on, and the difference that they can show.

    Parameters
    ----------
    records : Records
        The ledger.
    plan : Plan
        A plan on fresh queries.
    """
    exposure = records.exposure
    n = len(exposure.queries_of(plan.about))
    total = len(exposure.queries_of(plan.about | {"queries": None}))
    said = f"tests on {n} of {count(total, 'query')}, those not recognised as looked at"
    n_pairs = len(plan.systems) - 1
    if plan.baseline is None:
        n_pairs = n_pairs * len(plan.systems) // 2
    if not n_pairs:
        return said
    whole = History(records.standings, plan.about | {"queries": None})
    sd, source = whole.sd_of_differences(plan.measure), "as between the systems opened before"
    if sd is None:
        sd, source = TYPICAL_SD, "assumed, since no scores were opened"
    from rankeval.significance.power import detectable_difference

    found = detectable_difference(n, sd, plan.alpha / n_pairs, claim=plan.claim, margin=plan.margin, unseen=plan.unseen)
    return (
        f"{said}; a difference of about {float(found):.3f} in {plan.measure} is found with a power of 80 % if "
        f"differences have a standard deviation of {sd:.2f} ({source})"
    )
