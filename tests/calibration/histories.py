"""Simulated histories of a test collection: the best of many null systems, confirmed again behind a changed collection.

A history looks at 10 or 50 systems that are worth nothing, takes the best on the test queries, and tries to have it
called confirmatory in two or three steps. Each step changes the collection, its name or the project a little further
(`EVASIONS`), registers it, freezes the best with the baseline, and opens the plan. Everything goes through the public
API, on a ledger in a folder. Some histories look at the queries in twenty small parts first, or confirm on such parts
later; in some, all the changed collections are registered before the first look.

`simulate` returns the openings that followed the first look; none of them may be confirmatory. `simulate_clones` opens
the same queries in two ledgers that know nothing of each other, and merges them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rankeval.errors import LedgerError
from rankeval.guard import Guard
from rankeval.guard.standings import CONFIRMATORY, FIRST, STATUS_OF
from rankeval.ledger.discovery import ledger_url
from rankeval.ledger.ledger import Ledger

PARTS, IN_PARTS_OF = 20, 42
"""Of 42 queries, each part has 2 or 3; one of 2 is a share of 4.8 %, too little by itself to count as a look."""

IN_PARTS = "twenty small parts"
ROWS = (6, 10)
MEASURE = "nDCG@10"


@dataclass(frozen=True)
class Query:
    """One query: rows of features, labels, and the scores of the baseline and of all null systems in columns."""

    qid: str
    X: np.ndarray
    y: np.ndarray
    scores: np.ndarray


@dataclass(frozen=True)
class Attempt:
    """A collection under a name of a project, as somebody registers it."""

    project: str
    name: str
    queries: tuple[Query, ...]

    @property
    def content(self):
        """Features, labels and ids, a row for each document."""
        X, y = (np.concatenate([getattr(query, part) for query in self.queries]) for part in ("X", "y"))
        return {
            "X": X,
            "y": y,
            "qid": np.repeat([query.qid for query in self.queries], [len(q.y) for q in self.queries]),
        }

    @property
    def scores(self):
        return np.concatenate([query.scores for query in self.queries])


@dataclass(frozen=True)
class Opening:
    """What the library says of one opening.

    Attributes
    ----------
    evasions : tuple of str
        The changes since the first look.
    standing : str
        As the entry of the opening records it.
    notes : tuple of str
        Of the comparison.
    looks : tuple of str
        The words for the standings of the looks of this plan in `Guard.looks`.
    has_adjusted_p : bool
        Whether the table has an adjusted p-value.
    """

    evasions: tuple[str, ...]
    standing: str
    notes: tuple[str, ...]
    looks: tuple[str, ...]
    has_adjusted_p: bool


def disagreements(opening: Opening) -> list[str]:
    """Return what notes, looks and table of an opening say otherwise than its entry in the ledger."""
    word = STATUS_OF[opening.standing]
    said = [name for note in opening.notes for name in set(STATUS_OF.values()) if note.startswith(name)]
    found = [] if said == [word] else [f"the notes say {said}"]
    if not set(opening.looks) <= {word}:
        found.append(f"looks says {set(opening.looks)}")
    # The first look of a project is corrected as a confirmatory one, and must name those who looked before.
    if opening.has_adjusted_p != (opening.standing in (CONFIRMATORY, FIRST)):
        found.append(f"adjusted p: {opening.has_adjusted_p}")
    if opening.standing == FIRST and not any("looked at" in note for note in opening.notes):
        found.append("nobody is named who looked before")
    return found


def new_query(generator, number, n_features, n_systems) -> Query:
    """Draw a query whose labels have nothing to do with the scores of any system."""
    n = int(generator.integers(*ROWS, endpoint=True))
    y = generator.integers(0, 4, n).astype(float)
    y[0] = 3.0  # each query has a relevant row
    scores = generator.standard_normal((n, n_systems + 1))
    return Query(f"q{number}", generator.standard_normal((n, n_features)), y, scores)


def relabelled(attempt, generator):
    """Change one label, or up to three."""
    queries = list(attempt.queries)
    for chosen in generator.integers(len(queries), size=generator.integers(1, 4)):
        y = queries[chosen].y.copy()
        y[generator.integers(1, len(y))] += 1
        queries[chosen] = replace(queries[chosen], y=y)
    return replace(attempt, queries=tuple(queries))


def with_a_feature(attempt, generator):
    """Add a column."""
    return replace(
        attempt,
        queries=tuple(
            replace(query, X=np.column_stack([query.X, generator.standard_normal(len(query.y))]))
            for query in attempt.queries
        ),
    )


def with_a_query_less(attempt, generator):
    """Leave one query out."""
    left = int(generator.integers(len(attempt.queries)))
    return replace(attempt, queries=attempt.queries[:left] + attempt.queries[left + 1 :])


def with_a_query_more(attempt, generator):
    """Add a query that nobody has seen."""
    like = attempt.queries[0]
    fresh = new_query(generator, f"new{generator.integers(10**9)}", like.X.shape[1], like.scores.shape[1] - 1)
    return replace(attempt, queries=(*attempt.queries, fresh))


def under_another_name(attempt, generator):
    """Register it under another name."""
    return replace(attempt, name=f"{attempt.name}-{generator.integers(10**9)}")


def in_another_project(attempt, generator):
    """Register it for another project on the same ledger."""
    return replace(attempt, project=f"{attempt.project}-{generator.integers(10**9)}")


EVASIONS: dict[str, Callable[..., Attempt]] = {
    "changed label": relabelled,
    "new feature": with_a_feature,
    "query less": with_a_query_less,
    "query more": with_a_query_more,
    "another name": under_another_name,
    "another project": in_another_project,
}


def parts_of(attempt) -> list[Attempt]:
    """Return the collection in twenty parts, each a collection of its own; fewer if queries were left out."""
    n = len(attempt.queries)
    cuts = np.array_split(np.arange(n), min(PARTS, n // 2))  # a plan needs two queries
    return [
        replace(attempt, name=f"{attempt.name}-part{number}", queries=tuple(attempt.queries[i] for i in cut))
        for number, cut in enumerate(cuts)
    ]


def simulate(seed: int, ledger: str) -> list[Opening]:
    """Return all openings of one history that followed the first look at its queries."""
    generator = np.random.default_rng([seed, 1])
    n_systems = int(generator.choice([10, 50]))
    first_in_parts, later_in_parts, registered_early = (generator.random(3) < (0.07, 0.07, 0.3)).tolist()
    n_queries = IN_PARTS_OF if first_in_parts or later_in_parts else int(generator.integers(20, 26))
    n_features = int(generator.integers(3, 5))
    queries = tuple(new_query(generator, number, n_features, n_systems) for number in range(n_queries))
    first = Attempt("project", "test", queries)
    steps = _steps(first, generator, later_in_parts, before=(IN_PARTS,) * first_in_parts)
    if registered_early:
        Guard(first.project, ledger=ledger).register(first.name, **first.content)
        steps = [
            (replace(attempt, name=_registered(Guard(attempt.project, ledger=ledger), attempt, generator).name), made)
            for attempt, made in steps
        ]
    # Three parts expose 6 queries or more: that is a look at all.
    n_seen = PARTS if generator.random() < 0.2 else int(generator.integers(3, 8))
    seen = parts_of(first)[:n_seen] if first_in_parts else [first]
    best = _look_at_all(seen, n_systems, ledger)
    return [_confirm(attempt, best, generator, ledger, made) for attempt, made in steps]


def simulate_honest(seed: int, ledger: str) -> list[Opening]:
    """Return the openings of two collections of new queries, after others were looked at; one old query in the second.

    These are the control: to call everything exploratory is no guard.
    """
    generator = np.random.default_rng([seed, 2])
    queries = tuple(new_query(generator, number, 4, 10) for number in range(60))
    old, new, later = queries[:20], queries[20:40], queries[39:]
    best = _look_at_all([Attempt("project", "old", old)], 10, ledger)
    attempts = [Attempt("project", "new", new), Attempt("project", "later", later)]
    return [_confirm(attempt, best, generator, ledger, ()) for attempt in attempts]


def simulate_clones(seed: int, ledger: str) -> tuple[list[str], list[str]]:
    """Return the standings of two openings in two clones before they are merged, and after, in the order of both.

    The second clone registers the collection as somebody may have changed it.
    """
    generator = np.random.default_rng([seed, 3])
    queries = tuple(new_query(generator, number, 4, 2) for number in range(20))
    changed = attempt = Attempt("project", "test", queries)
    for name in generator.choice(list(EVASIONS), size=int(generator.integers(0, 3)), replace=False):
        changed = EVASIONS[name](changed, generator)
    places = [ledger, f"{ledger}-clone"]
    plans, before = {}, []
    for number, (one, place) in enumerate(zip((attempt, changed), places, strict=True)):
        guard = Guard(one.project, ledger=place, who=place)
        systems = {"baseline": one.scores[:, 0], f"s{number}": one.scores[:, 1 + number]}
        plan = _frozen(guard, guard.register(one.name, **one.content), systems)
        guard.open(plan)
        plans[plan.id] = one
        before.append(_recorded(place, plan.id))
    into, other = places[:: int(generator.choice([1, -1]))]
    Guard("project", ledger=into).merge(other)
    opened = [one.body["plan"] for one in Ledger(ledger_url(into)).read().entries if one.kind == "open"]
    after = []
    for plan_id in opened:
        guard = Guard(plans[plan_id].project, ledger=into)
        guard.register(plans[plan_id].name, **plans[plan_id].content)
        after.append(guard.open(plan_id).standing)
    return before, after


def _steps(attempt, generator, in_parts, before) -> list[tuple[Attempt, tuple[str, ...]]]:
    """Return two or three collections, each changed a little further, with the changes; the last one in parts too."""
    made, steps = before, []
    for _ in range(int(generator.integers(2, 4))):
        names = generator.choice(list(EVASIONS), size=int(generator.integers(1, 3)), replace=False)
        for name in names:
            attempt = EVASIONS[name](attempt, generator)
        made += tuple(names.tolist())
        steps.append((attempt, made))
    return steps + [(part, (*made, IN_PARTS)) for part in parts_of(attempt) if in_parts]


def _look_at_all(attempts: Sequence[Attempt], n_systems: int, ledger: str) -> int:
    """Open all null systems at once on each collection, and return the one with the best mean over all queries."""
    sums = np.zeros(n_systems)
    for attempt in attempts:
        names = ["baseline", *(f"s{one}" for one in range(n_systems))]
        guard = Guard(attempt.project, ledger=ledger)
        registered = guard.register(attempt.name, **attempt.content)
        evaluations = guard.open(
            _frozen(guard, registered, dict(zip(names, attempt.scores.T, strict=True)))
        ).evaluations
        sums += [len(attempt.queries) * evaluations[name].mean()[MEASURE] for name in names[1:]]
    return int(sums.argmax())


def _registered(guard, attempt, generator):
    """Register a collection; if its name stands for other content, say that it supersedes that, or take another."""
    try:
        return guard.register(attempt.name, **attempt.content)
    except LedgerError:
        if generator.random() < 0.5:
            return guard.register(attempt.name, **attempt.content, supersedes=attempt.name)
        return guard.register(f"{attempt.name}-{generator.integers(10**9)}", **attempt.content)


def _frozen(guard, registered, systems):
    return guard.freeze(registered, systems=systems, baseline="baseline", measure=MEASURE, n_resamples=99)


def _confirm(attempt, best, generator, ledger, evasions) -> Opening:
    """Freeze and open the best null system once more, as it was or fitted anew so that its rankings differ."""
    baseline, scores = attempt.scores[:, 0], attempt.scores[:, 1 + best]
    if generator.random() < 0.5:
        scores = scores + 0.3 * generator.standard_normal(len(scores))
    guard = Guard(attempt.project, ledger=ledger)
    registered = _registered(guard, attempt, generator)
    plan = _frozen(guard, registered, {"baseline": baseline, "best": scores})
    result = guard.open(plan)
    looks = guard.looks(registered)
    return Opening(
        evasions,
        standing=_recorded(ledger, plan.id),
        notes=tuple(result.notes),
        looks=tuple(looks["status"][looks["plan"] == plan.id]),
        has_adjusted_p=bool(result.table["p_adjusted"].notna().any()),
    )


def _recorded(ledger, plan_id):
    """Return the standing in the ledger's entry of a plan's opening."""
    (opened,) = (
        one.body
        for one in Ledger(ledger_url(ledger)).read().entries
        if one.kind == "open" and one.body["plan"] == plan_id
    )
    return opened["status"]
