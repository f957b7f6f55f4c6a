"""A guard with a ledger of its own, and a protocol that takes no time: few resamples, made-up systems."""

from __future__ import annotations

import pytest

import rankeval as rk
from rankeval.contamination import forget
from rankeval.guard import Guard


class Team:
    """A guard that opens made-up systems: ``opened(test, 1, 2)`` freezes and opens s0, s1 and s2 against s0."""

    def __init__(self, guard: Guard) -> None:
        self.guard = guard

    def frozen(self, test, *weights, baseline="s0", **options):
        X = test.content.X
        names = (0, *weights) if baseline else weights
        systems = {f"s{weight}": X[:, 0] + weight * X[:, 1] for weight in names}
        return self.guard.freeze(test, systems=systems, baseline=baseline, **{"n_resamples": 99, **options})

    def opened(self, test, *weights, **options):
        return self.guard.open(self.frozen(test, *weights, **options), test)

    def statuses(self, test, **options):
        return self.guard.looks(test, **options)["status"].tolist()


def standing(comparison):
    """Return the standing of an opening; its notes must name it first, by one of the two words."""
    from rankeval.guard.standings import STATUS_OF

    words = ("confirmatory", "exploratory")
    said = next(word for note in comparison.notes for word in words if note.startswith(word))
    assert STATUS_OF[comparison.standing] == said
    return comparison.standing


@pytest.fixture
def data():
    return rk.datasets.make_ranking(100, 10, 4, rng=3)


@pytest.fixture
def ledger(tmp_path):
    forget()
    yield tmp_path / "ledger"
    forget()


@pytest.fixture
def guard(tmp_path, monkeypatch, request):
    """Return a guard of the project that the module names, in a ledger that the process finds by itself."""
    monkeypatch.setenv("RANKEVAL_LEDGER", str(tmp_path / "ledger"))
    forget()
    yield Guard(request.module.PROJECT)
    forget()


@pytest.fixture
def team(ledger):
    return Team(Guard("ours", ledger=ledger, who="ann"))


@pytest.fixture
def theirs(ledger):
    return Team(Guard("theirs", ledger=ledger, who="bob"))


@pytest.fixture
def test(team, data):
    return team.guard.register("test", data)
