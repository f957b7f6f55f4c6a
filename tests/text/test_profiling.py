"""The cost of a search: exact figures under a clock of our own, and intervals of percentiles."""

from __future__ import annotations

import gc
from itertools import count

import numpy as np
import pandas as pd
import pytest
from circles import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput
from rankeval.retrieval import searches
from rankeval.text import profiling

QUERIES = {"q1": 1, "q2": 2, "q3": 3}


class Clock:
    """A clock that a search moves on, and that keeps the queries in the order in which they came."""

    def __init__(self, monkeypatch):
        self.now, self.asked = 0.0, []
        monkeypatch.setattr(searches, "perf_counter", lambda: self.now)

    def search(self, seconds):
        """Return a search of which ``seconds(query, place of the call)`` tells how long it takes."""

        def search(query):
            self.now += seconds(query, len(self.asked))
            self.asked.append(query)

        return search


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def values(found):
    return found.table.set_index("quantity")["value"]


def test_latency_is_the_median_of_the_rounds_that_count(clock):
    """Three queries, warm-up of one round: calls 3 to 17 count, and two calls of 100 times as long change nothing."""
    slow = {4: 100, 7: 100}
    found = rk.profile(clock.search(lambda query, place: 0.001 * query * slow.get(place, 1)), QUERIES, repeats=5)
    assert found.per_query.index.name == "qid"
    assert found.per_query["latency_ms"].to_dict() == pytest.approx({"q1": 1.0, "q2": 2.0, "q3": 3.0})
    assert found.repeats == 5
    assert "median of 5 rounds" in found.notes[0]


def test_warm_up_is_not_counted(clock):
    cold = rk.profile(clock.search(lambda _, place: 5.0 if place < 6 else 0.002), QUERIES, repeats=2, warmup=2)
    assert values(cold)["latency_p99_ms"] == pytest.approx(2.0)
    assert values(cold)["queries_per_second"] == pytest.approx(500.0)


def test_throughput_is_of_all_calls_that_count(clock):
    """Two rounds of 1, 2 and 3 seconds: six queries in twelve seconds."""
    found = rk.profile(clock.search(lambda query, _: float(query)), QUERIES, repeats=2, warmup=0)
    assert values(found)["queries_per_second"] == pytest.approx(0.5)


def test_each_round_asks_each_query_once_in_an_order_of_its_own(clock):
    rk.profile(clock.search(lambda *_: 1.0), dict(zip(range(20), range(20), strict=True)), repeats=3, rng=1)
    rounds = np.reshape(clock.asked, (4, 20))
    assert (np.sort(rounds, axis=1) == np.arange(20)).all()
    assert len({tuple(one) for one in rounds.tolist()}) == 4


def test_a_machine_that_becomes_slower_hits_no_query_more_than_another(clock):
    """Under a steady drift the latencies vary by chance alone: asked one after the other, they would rise by rank."""
    found = rk.profile(clock.search(lambda _, place: 1 + place / 100), dict(enumerate(range(200))), repeats=25)
    assert abs(stats.spearmanr(found.per_query["latency_ms"], np.arange(200)).statistic) < 0.2


@each_row(("n", "percent", "low", "high"), [(10, 50, 2, 9), (20, 50, 6, 15), (100, 90, 84, 96), (368, 99, 360, 368)])
def test_intervals_end_at_the_order_statistics_of_the_tables(clock, n, percent, low, high):
    """The tables of textbooks for the median (n = 10: 2nd and 9th); for others, the binomial quantiles of SciPy."""
    found = rk.profile(clock.search(lambda query, _: query / 1000), dict(enumerate(range(1, n + 1))))
    row = found.table.set_index("quantity").loc[f"latency_p{percent}_ms"]
    assert (row["ci_low"], row["ci_high"]) == pytest.approx((low, high))
    held = stats.binom.pmf(np.arange(low, high), n, percent / 100).sum()
    assert row["coverage"] == pytest.approx(held, abs=1e-12)
    assert row["coverage"] >= 0.95


@settings(max_examples=examples(60), deadline=None)
@given(n=st.integers(1, 500), level=st.sampled_from([0.8, 0.9, 0.95, 0.99]))
def test_an_interval_is_given_if_and_only_if_so_many_queries_can_hold_the_level(n, level):
    """Equal tails: each end may be missed with half of the rest, so p99 at .95 takes 368 queries."""
    for percent in profiling.PERCENTILES:
        _, value, low, high, coverage = profiling._percentile(np.arange(1.0, n + 1), percent, level)
        p, tail = percent / 100, (1 - level) / 2
        assert np.isfinite(coverage) == (p**n <= tail and (1 - p) ** n <= tail)
        assert value == np.ceil(round(n * p, 9))
        if np.isfinite(coverage):
            assert stats.binom.cdf(low - 1, n, p) <= tail < stats.binom.cdf(low, n, p)
            assert stats.binom.sf(high - 1, n, p) <= tail < stats.binom.sf(high - 2, n, p)
            assert low <= value <= high


def test_the_coverage_stated_is_the_share_of_samples_whose_interval_holds_the_percentile():
    """Exponential latencies, 60 queries: within four standard errors over 20,000 samples."""
    drawn = np.sort(np.random.default_rng(0).exponential(size=(20_000, 60)), axis=1)
    for p in (0.5, 0.9):
        *_, low, high, stated = profiling._percentile(np.arange(60.0), int(100 * p), 0.95)  # the places of the ends
        held = (drawn[:, int(low)] <= stats.expon.ppf(p)) & (stats.expon.ppf(p) <= drawn[:, int(high)])
        assert abs(held.mean() - stated) < 4 * np.sqrt(stated * (1 - stated) / len(drawn))


def test_too_few_queries_have_no_interval_and_a_note(clock):
    found = rk.profile(clock.search(lambda *_: 1.0), QUERIES)
    assert found.table[["ci_low", "ci_high", "coverage"]].isna().all(axis=None)
    assert "latency_p99_ms has no 95 % interval with only 3 queries" in found.notes
    assert "\N{EN DASH}" in str(found)


def test_index_and_cost_stand_as_given(clock):
    search = clock.search(lambda *_: 1.0)
    found = values(rk.profile(search, QUERIES, index_seconds=12, index_bytes=3e9, cost=0.002))
    assert found[["index_seconds", "index_bytes", "cost_per_query"]].tolist() == [12.0, 3e9, 0.002]
    by_query = rk.profile(search, QUERIES, cost={"q3": 3.0, "q2": 2.0, "q1": 1.0})
    assert by_query.per_query["cost"].tolist() == [1.0, 2.0, 3.0]
    assert values(by_query)["cost_per_query"] == 2.0
    assert "cost_per_query" not in values(rk.profile(search, QUERIES))


def test_an_object_with_a_method_search_is_asked_for_one_query_at_a_time():
    asked = []

    class Index:
        def search(self, queries):
            asked.append(queries)

    texts = pd.DataFrame({"qid": ["q1", "q2"], "text": ["new guinea", "economy"]})
    rk.profile(Index(), texts, repeats=1, warmup=0)
    assert sorted(asked, key=str) == [{"q1": "new guinea"}, {"q2": "economy"}]


def test_an_error_of_the_search_names_the_query_and_stays_what_it_is():
    def search(query):
        if query == 2:
            raise ZeroDivisionError("no documents")

    with pytest.raises(ZeroDivisionError, match="no documents") as caught:
        rk.profile(search, QUERIES)
    assert caught.value.__notes__ == ["rankeval.profile searched the query 'q2'"]
    with pytest.raises(ZeroDivisionError) as caught:
        rk.profile({"a": str, "b": search}, QUERIES)
    assert caught.value.__notes__ == ["rankeval.profile searched the query 'q2' by b"]


def test_systems_are_timed_in_turn_in_an_order_of_its_own(clock):
    """Each call takes longer than the one before: timed one after the other, a search would be faster than itself."""
    queries = dict(enumerate(range(100)))
    search = clock.search(lambda _, place: (100 + place) / 1000)
    one, other = (rk.profile(search, queries, name=name) for name in "ab")
    assert rk.compare({"a": one.per_query, "b": other.per_query}).headline.startswith("a is faster than b")
    clock.asked.clear()
    found = rk.profile({"a": search, "b": search}, queries)
    assert list(found) == ["a", "b"]
    assert [one.name for one in found.values()] == ["a", "b"]
    assert np.ptp(np.reshape(clock.asked, (-1, 2)), axis=1).max() == 0  # each query goes to both, one after the other
    gaps = found["a"].per_query["latency_ms"] - found["b"].per_query["latency_ms"]
    assert 20 < (gaps > 0).sum() < 80
    assert "No difference was shown" in rk.compare({name: one.per_query for name, one in found.items()}).headline


def test_systems_have_index_and_cost_by_name(clock):
    search, by_query = clock.search(lambda *_: 1.0), {"q1": 1.0, "q2": 2.0, "q3": 6.0}
    found = rk.profile({"a": search, "b": search}, QUERIES, index_bytes={"a": 5}, cost={"a": by_query, "b": 2.0})
    assert values(found["a"])[["index_bytes", "cost_per_query"]].tolist() == [5.0, 3.0]
    assert values(found["b"]).index.tolist()[4:] == ["queries_per_second", "cost_per_query"]
    assert found["b"].per_query["cost"].tolist() == [2.0, 2.0, 2.0]


def test_notes_say_what_the_times_hold(clock):
    search = clock.search(lambda *_: 1.0)
    alone, (together, _) = rk.profile(search, QUERIES), rk.profile({"a": search, "b": search}, QUERIES).values()
    for one in (alone, together):
        assert one.notes[0].endswith("one query at a time, on this machine under its load at that time")
    assert alone.notes[1] == "timed alone; to compare systems, time them in turn: profile({name: search, ...})"
    assert together.notes[1] == "timed in turn: 'a', 'b'"


@each_row(
    ("argument", "options"),
    [
        ("search", {"search": 1}),
        ("queries", {"queries": {}}),
        ("repeats", {"repeats": 0}),
        ("warmup", {"warmup": -1}),
        ("confidence_level", {"confidence_level": 1.5}),
        ("index_seconds", {"index_seconds": -1}),
        ("cost_per_query", {"cost": -0.1}),
        ("cost_per_query", {"cost": {"q1": 1.0}}),
        ("search", {"search": {}}),
        ("search", {"search": {"a": str}, "name": "b"}),
        ("search", {"search": {"a": 1}}),
        ("cost", {"search": {"a": str}, "cost": 1.0}),
        ("index_bytes", {"search": {"a": str}, "index_bytes": {"b": 1.0}}),
    ],
)
def test_what_does_not_fit_is_refused_by_name(argument, options):
    with pytest.raises(InvalidInput) as caught:
        rk.profile(**{"search": str, "queries": QUERIES} | options)
    assert caught.value.argument == argument


def test_profiles_are_compared_and_the_faster_one_is_said_to_be_faster(clock):
    """Beside relevance too: each column has its own words."""
    queries, jitter = {f"q{i}": i % 7 for i in range(60)}, count()
    slow, fast = (
        rk.profile(clock.search(lambda query, _, ms=ms: (ms + query + next(jitter) % 5 / 5) / 1000), queries)
        for ms in (20, 10)
    )
    found = rk.compare({"bm25": fast.per_query, "dense": slow.per_query}, baseline="dense")
    assert found.headline.startswith("bm25 is faster than dense: -")
    whole = {
        name: one.per_query.join(pd.DataFrame({"AP": np.linspace(low, 0.8, 60)}, index=list(queries)))
        for name, one, low in (("bm25", fast, 0.1), ("dense", slow, 0.3))
    }
    found = rk.compare(whole, baseline="bm25")
    assert "is slower" in found.to_markdown(layout="systems")
    assert rk.compare(whole, baseline="bm25", measures="AP").headline.startswith("dense beats bm25")


def test_the_figure_names_the_slowest_queries(clock):
    """The fastest query stands at the left: less is wanted, and the name of the column says so."""
    figure = rk.profile(clock.search(lambda query, _: query / 1000), QUERIES).plot()
    assert figure.axes[0].lines[0].get_ydata().tolist() == pytest.approx([1.0, 2.0, 3.0])
    assert figure.axes[0].get_xlabel() == "worst: q3, q2, q1"


def test_a_series_that_repeats_an_id_is_refused():
    """No query is lost silently: a frame with the same ids is refused too."""
    with pytest.raises(InvalidInput, match="'a' is given more than once"):
        rk.profile(str, pd.Series(["red", "pear"], index=["a", "a"]), repeats=1)


async def _awaited(query):
    return [query]


def _lazy(query):
    yield query


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@each_row("search", [_awaited, _lazy])
def test_a_search_that_has_not_run_when_it_returns_is_refused(search):
    """The time to make a coroutine or a generator is no latency: nothing was searched."""
    with pytest.raises(InvalidInput) as caught:
        rk.profile(search, QUERIES, repeats=1)
    assert caught.value.argument == "search"
    # The coroutine is freed with the traceback, and warns then: here, and not in the test that comes next.
    del caught
    gc.collect()


def test_no_query_has_a_cost_below_zero():
    """Another query's cost does not hide it in the mean."""
    with pytest.raises(InvalidInput, match="cost"):
        rk.profile(str, {"q1": "a", "q2": "b"}, repeats=1, cost={"q1": 10.0, "q2": -5.0})


def test_one_query_is_too_few():
    """Notes are sentences, of one query too."""
    notes = rk.profile(str, {"q1": "a"}, repeats=1).notes
    assert any("1 query" in note for note in notes)
    assert not [note for note in notes if "1 query are" in note]
