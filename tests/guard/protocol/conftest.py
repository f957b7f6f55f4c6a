"""A small collection in a ledger of SQLite, and systems that weigh two features."""

import pytest

import rankeval as rk
from rankeval.contamination import forget
from rankeval.guard import Guard


@pytest.fixture
def data():
    return rk.datasets.make_ranking(50, 10, 4, rng=3)


@pytest.fixture
def guard(tmp_path):
    forget()
    yield Guard("project", ledger=tmp_path / "ledger.db")
    forget()


@pytest.fixture
def test(guard, data):
    return guard.register("test", data.X, data.y, qid=data.qid)


def systems(data, *weights):
    """Return systems that weigh the first two features: s0 ignores the second."""
    return {f"s{weight}": data.X[:, 0] + weight * data.X[:, 1] for weight in weights}


def compared(data, *weights, **options):
    """Compare the systems without a guard, as it should."""
    evaluations = {
        name: rk.evaluate(data.y, score, qid=data.qid, measures="nDCG@10")
        for name, score in systems(data, *weights).items()
    }
    return rk.compare(evaluations, baseline="s0", test="randomization", correction="max_t", **options)


def kinds(guard):
    return [entry.kind for entry in guard._ledger.read().entries]


def interrupt(guard, monkeypatch, act):
    """Let something else happen once, just before the guard's next entry is appended."""
    append, waiting = guard._ledger.append, [True]

    def late(project, *notes, **options):
        if waiting:
            waiting.clear()
            act()
        return append(project, *notes, **options)

    monkeypatch.setattr(guard._ledger, "append", late)
