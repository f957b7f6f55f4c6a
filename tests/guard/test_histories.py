"""Laws of standings, over all short histories of two clones: freeze, open, exempt and merge, in any order."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from circles import choose

from rankeval.guard.exposure import Exposure
from rankeval.guard.standings import ADJUSTED, CONFIRMATORY, EXPLORATORY, FIRST, SECONDARY, Standings
from rankeval.ledger.entry import Entry
from rankeval.ledger.graph import Snapshot

RANK = {SECONDARY: 0, EXPLORATORY: 0, FIRST: 1, CONFIRMATORY: 2}
PLANS = {"P": ("b", "s1"), "Q": ("b", "s2"), "R": ("c", "s1")}
"""The outputs of each plan, its baseline first; R has an output of P."""
CLONES = "AB"
STEPS = [(clone, act) for clone in CLONES for act in ("exempt", "merge", *(a + p for a in ("+", "!") for p in PLANS))]


class History:
    """Two views of one ledger; a step writes an entry into one, or merges the other into it."""

    def __init__(self):
        body = {"n_queries": 40, "digest": "d", "links": {"to": [], "pairs": None}}
        self.root = Entry("register", "ours", "", "ann", (), body)
        self.views = dict.fromkeys(CLONES, (self.root,))

    def after(self, clone, act):
        """Return the history after a step; None if the guard records nothing there."""
        view, other = self.views[clone], self.views["B" if clone == "A" else "A"]
        if act == "merge":
            added = tuple(one for one in other if one not in view)
        else:
            entry = self.entry(clone, act)
            added = () if entry is None else (entry,)
        if not added:
            return None
        new = History.__new__(History)
        new.root, new.views = self.root, self.views | {clone: view + added}
        return new

    def entry(self, clone, act):
        view = self.views[clone]
        about = {"registration": self.root.hash, "queries": None}
        kind = {"+": "freeze", "!": "open"}.get(act[0], "exempt")
        if kind == "exempt":
            return Entry(kind, "ours", "", clone, Snapshot.of(view).heads, about)
        plan, (baseline, system) = act[1], PLANS[act[1]]
        there = {(one.kind, one.body.get("plan")) for one in view}
        if (kind, plan) in there or (kind == "open" and ("freeze", plan) not in there):
            return None
        if kind == "freeze":
            body = {"content": {"systems": [["base", baseline], ["new", system]], "baseline": "base"}}
        else:
            opened = [output for one in view if one.kind == "open" for output in one.body["systems"].values()]
            first = next(one.body["content"]["systems"][0][1] for one in view if one.kind == "freeze")
            shown = {"base": baseline, "new": system}
            looks = [name for name, output in shown.items() if output not in {first, *opened}]
            body = {"systems": shown, "looks": looks}
        return Entry(kind, "ours", "", clone, Snapshot.of(view).heads, about | {"plan": plan} | body)

    @property
    def merged(self):
        return tuple({one.hash: one for view in self.views.values() for one in view}.values())

    @property
    def key(self):
        return tuple(frozenset(one.hash for one in view) for view in self.views.values())


_KNOWN: dict[frozenset[str], tuple[Standings, dict[str, str]]] = {}


def standings(view):
    """Return the standings of a view, and those of its opened plans in words."""
    key = frozenset(one.hash for one in view)
    if key not in _KNOWN:
        found = Standings("ours", Exposure(None, Snapshot.of(view)))
        _KNOWN[key] = found, {plan: found.of(plan).name for plan in found.opened}
    return _KNOWN[key]


def check_never_raised(before, after):
    """Later entries only lower the standing of an opened plan, though a look stays one."""
    then, now = standings(before)[1], standings(after)[1]
    assert all(RANK[now[plan]] <= RANK[status] for plan, status in then.items()), (then, now)


def check_order(before, after):
    """Require that new entries move none of the old ones: so it makes no difference which ledger takes the other."""
    then, now = (standings(view)[0].exposure.snapshot.entries for view in (before, after))
    old = {one.hash for one in before}
    assert [one.hash for one in now if one.hash in old] == [one.hash for one in then]


def check_laws(view):
    found, statuses = standings(view)
    snapshot = found.exposure.snapshot
    place = {one.hash: at for at, one in enumerate(snapshot.entries)}
    looks = [one for one in snapshot.entries if one.kind == "open" and one.body["looks"]]
    for plan, status in statuses.items():
        freezes, openings = found.frozen[plan], found.opened[plan]
        is_fixed = {one.hash: any(snapshot.precedes(f.hash, one.hash) for f in freezes) for one in looks}
        for one, freeze, opening in product(looks, freezes, openings):
            if one.body["plan"] == plan or is_fixed[one.hash]:
                continue
            if snapshot.precedes(one.hash, freeze.hash) and snapshot.precedes(freeze.hash, opening.hash):
                assert status not in ADJUSTED, f"{plan} was frozen after a look: {status}"
            if snapshot.precedes(one.hash, opening.hash):
                assert status not in ADJUSTED, f"{plan} was opened after a look that its freeze did not know: {status}"
            if place[one.hash] < place[opening.hash]:
                assert status not in ADJUSTED, f"{plan} is the later one of two openings: {status}"
        assert status != CONFIRMATORY or found.of(plan).n_exposed == 0
    check_two_openings(found, looks)


def check_two_openings(found, looks):
    """Of two openings that knew neither each other nor each other's freeze, the earlier one alone can be kept."""
    snapshot, places = found.exposure.snapshot, found.exposure.snapshot.places
    others = [one for one in found.exposure.exposing("ours") if one not in looks]
    for one, other in combinations(looks, 2):
        plans = one.body["plan"], other.body["plan"]
        if plans[0] == plans[1] or not snapshot.apart(one.hash, other.hash):
            continue
        assert places[one.hash] < places[other.hash]
        first, second = (found.of(plan).name for plan in plans)
        if not any(snapshot.precedes(freeze.hash, one.hash) for freeze in found.frozen[plans[1]]):
            assert second not in ADJUSTED
        # Nothing but these two, each opened once: the earlier one keeps its standing.
        if len(looks) == 2 and not others and len(found.opened[plans[0]]) == 1:
            assert first == CONFIRMATORY


def check_linear(view):
    """In one clone the ancestors of the freeze decide, and nothing else."""
    found, statuses = standings(view)
    snapshot = found.exposure.snapshot
    for plan, status in statuses.items():
        (freeze,) = found.frozen[plan]
        exposed = any(snapshot.precedes(one.hash, freeze.hash) for one in found.exposure.exposing("ours"))
        new = exposed and any(one.body["looks"] for one in found.opened[plan])
        assert status == (CONFIRMATORY if not exposed else EXPLORATORY if new else SECONDARY)
        assert not found.of(plan).apart


def check_step(before, after):
    for clone in CLONES:
        check_never_raised(before.views[clone], after.views[clone])
        check_never_raised(after.views[clone], after.merged)
        check_order(before.views[clone], after.views[clone])
        check_order(after.views[clone], after.merged)
        check_laws(after.views[clone])
    check_never_raised(before.merged, after.merged)
    check_laws(after.merged)
    if len(after.views["B"]) == 1:
        check_linear(after.views["A"])


@pytest.fixture(autouse=True, scope="module")
def _forgotten():
    yield
    _KNOWN.clear()


@pytest.mark.random
def test_every_history_of_five_steps_obeys_the_laws():
    """The default circle takes four steps."""
    n_steps, least = choose(default=(4, 1500), full=(5, 10_000))
    histories = {History().key: History()}
    for _ in range(n_steps):
        found = {}
        for history, step in product(histories.values(), STEPS):
            after = history.after(*step)
            if after is not None:
                if after.key not in found:
                    check_step(history, after)
                found[after.key] = after
        histories = found
    assert len(histories) > least


@pytest.mark.random
@pytest.mark.parametrize("seed", range(choose(default=2, full=30)))
def test_long_histories_drawn_at_random_obey_the_laws(seed):
    """Long enough for a plan that is frozen in both clones, and opened after the merge."""
    rng = np.random.default_rng(seed)
    n_merged = 0
    for _ in range(150):
        history = History()
        for _ in range(rng.integers(6, 14)):
            after = history.after(*STEPS[rng.integers(len(STEPS))])
            if after is not None:
                check_step(history, after)
                history = after
        n_merged += any(len(set(one.parents)) > 1 for one in history.merged)
    assert n_merged > 5
