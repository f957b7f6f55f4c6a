"""The checks of a registration: each finds what it says, names it, and is silent else."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import rankeval as rk
from rankeval.datasets import make_ranking
from rankeval.errors import InvalidInput, RankevalWarning
from rankeval.guard import list_checks
from rankeval.significance import paired_test
from rankeval.significance.power import detectable_difference, topics_needed

PROJECT = "checks"
DATA = make_ranking(60, 12, 5, rng=0)
EFFECTS = [({"effect": 0}, "effect is 0"), ({"sd": -1}, "sd is -1"), ({"effect": "x"}, "effect is 'x'")]


def found(collection):
    return {one.code: one.message for one in collection.findings}


def kinds(guard):
    return [one.kind for one in guard._journal.read().snapshot.entries]


def part(rows):
    return DATA.X[rows], DATA.y[rows], DATA.qid[rows]


def test_a_sound_collection_has_no_findings(guard):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RankevalWarning)
        assert guard.register("sound", DATA).findings == ()


def test_the_ledger_holds_findings_by_code_and_no_query_id(guard, tmp_path):
    """The warnings and the collection name queries; a ledger travels further than the data does."""
    qid = np.array([f"secret query {one}" for one in DATA.qid])
    X, y = np.round(DATA.X), DATA.y.copy()
    y[DATA.qid == DATA.qid[0]] = 0
    guard.register("first", X, y, qid=qid)
    with pytest.warns(RankevalWarning, match=r"RG003.*secret query"):
        second = guard.register("second", X[:300], y[:300], qid=qid[:300])
    codes = [one.code for one in second.findings]
    assert any("secret query" in one.message for one in second.findings)
    entry = guard._journal.read().snapshot.entries[-1]
    assert entry.body["findings"] == {code: codes.count(code) for code in codes}
    kept = [path.read_bytes() for path in (tmp_path / "ledger").rglob("*") if path.is_file()]
    assert not any(b"secret" in one for one in kept)


def test_every_check_is_listed_with_words():
    listed = list_checks()
    assert list(listed.index)[:11] == [f"RG{k:03}" for k in range(1, 12)]
    assert set(listed["severity"]) == {"error", "warning", "note"}
    assert listed.loc["RG009", "finds"] == "There are fewer queries than the stated effect needs."


class TestOverlap:
    """RG003: words that are true of a partial overlap."""

    def test_a_part_of_another_collection(self, guard):
        guard.register("whole", DATA)
        rows = np.isin(DATA.qid, np.unique(DATA.qid)[:20])
        fresh = make_ranking(10, 12, 5, rng=9)
        X, y, qid = (
            np.concatenate(pair) for pair in zip(part(rows), (fresh.X, fresh.y, fresh.qid + 1000), strict=True)
        )
        with pytest.warns(RankevalWarning, match="RG003 'mixed'"):
            message = found(guard.register("mixed", X, y, qid=qid))["RG003"]
        assert message.startswith(
            "20 of the 60 queries of 'whole' (project 'checks') are in this collection too, as 20 of its 30 queries ("
        )
        first = ", ".join(map(str, np.unique(DATA.qid)[:5].tolist()))
        assert f"({first}, ...)" in message
        assert "a look at one collection is a look at these queries of the other" in message
        assert "register it with supersedes='whole'" in message

    @pytest.mark.filterwarnings("ignore:RG")
    def test_more_queries_than_are_identifiable_are_counted_among_all(self, guard):
        """Judgments of few documents: their labels together show queries that their content does not."""
        rng = np.random.default_rng(0)
        drawn = [rng.choice(300 if q < 20 else 12, 8, replace=False) for q in range(60)]
        qrels = {f"q{q}": {f"d{d}": int(rng.integers(3)) for d in some} for q, some in enumerate(drawn)}
        test = guard.register("judged", qrels=qrels)
        assert test.n_identifiable < 30
        status = guard.status(qrels={f"new {query}": judged for query, judged in qrels.items()})
        assert status.refused
        assert "60 of its 60 queries are in the data" in status.why

    def test_a_collection_of_another_project_is_superseded_by_nobody_else(self, guard, tmp_path):
        guard.register("whole", DATA)
        other = rk.Guard("others", ledger=tmp_path / "ledger")
        X, y, qid = part(np.isin(DATA.qid, np.unique(DATA.qid)[:30]))
        with pytest.warns(RankevalWarning, match="RG003"):
            message = found(other.register("part", X, y, qid=qid))["RG003"]
        assert "30 of the 60 queries of 'whole' (project 'checks')" in message
        assert "Agree with project 'checks' on who looks" in message
        assert "supersedes" not in message

    def test_the_same_benchmark_in_another_project_is_no_accident(self, guard, tmp_path):
        """Two teams may test on one public collection: a note, and no warning."""
        guard.register("public", DATA)
        other = rk.Guard("others", ledger=tmp_path / "ledger")
        with warnings.catch_warnings():
            warnings.simplefilter("error", RankevalWarning)
            told = found(other.register("public", DATA))
        assert list(told) == ["RG011"]
        assert "project 'checks' has registered the same collection as 'public'" in told["RG011"]

    def test_the_same_content_under_another_name_is_warned_about(self, guard):
        """Within a project two names for one collection would hide that looks are shared."""
        guard.register("one", DATA)
        with pytest.warns(RankevalWarning, match="RG003 'two': 60 of the 60 queries of 'one'"):
            guard.register("two", DATA)

    def test_other_data_is_none(self, guard):
        guard.register("whole", DATA)
        assert "RG003" not in found(guard.register("other", make_ranking(60, 12, 5, rng=1)))


class TestSharedRows:
    """RG006: rows that stand in other queries are shared all the same."""

    def test_rows_that_moved_to_other_queries(self, guard):
        guard.register("by query", DATA)
        rng = np.random.default_rng(0)
        moved = rng.permutation(len(DATA))
        with pytest.warns(RankevalWarning, match="RG006 'regrouped'"):
            collection = guard.register("regrouped", DATA.X[moved], DATA.y[moved], qid=DATA.qid)
        assert "of 'by query' (project 'checks') are in other queries here" in found(collection)["RG006"]
        assert "RG003" not in found(collection)

    @pytest.mark.filterwarnings("ignore:RG003")
    @pytest.mark.parametrize("larger_first", [False, True])
    def test_queries_that_are_the_same_are_no_rows_that_moved(self, guard, larger_first):
        """All queries of one are in the other, which has some of their rows in further queries: RG003 says it."""
        rng = np.random.default_rng(1)
        again = rng.permutation(96)  # the rows of eight queries, in eight others
        larger = np.append(DATA.X, DATA.X[again], 0), np.append(DATA.y, rng.integers(0, 3, 96))
        qid = np.append(DATA.qid, 1000 + DATA.qid[:96])
        both = [(*larger, qid), part(slice(None))]
        for name, (X, y, own) in zip(("first", "second"), both if larger_first else both[::-1], strict=True):
            told = found(guard.register(name, X, y, qid=own))
        assert "RG003" in told
        assert "RG006" not in told

    def test_rows_that_every_collection_has_are_no_evidence(self, guard):
        """Documents without any matching term have the same features everywhere."""
        one, other = make_ranking(60, 12, 5, rng=3), make_ranking(60, 12, 5, rng=4)
        X, X2 = one.X.copy(), other.X.copy()
        X[::4], X2[::4] = 0, 0
        guard.register("one", X, one.y, qid=one.qid)
        assert "RG006" not in found(guard.register("other", X2, other.y, qid=other.qid))


class TestLabels:
    """RG002 and RG007: labels that no ranking can tell apart."""

    def test_some_queries_of_one_label_are_noted(self, guard):
        y = DATA.y.copy()
        flat = np.unique(DATA.qid)[[3, 7]]
        y[np.isin(DATA.qid, flat)] = 1
        alike = [q for q in np.unique(DATA.qid) if len(set(y[DATA.qid == q])) == 1]
        message = found(guard.register("flat", DATA.X, y, qid=DATA.qid))["RG002"]
        assert message.startswith(f"{len(alike)} of 60 queries with one label only")
        assert set(flat) <= set(alike)

    def test_one_label_in_all_is_refused_and_leaves_no_entry(self, guard):
        with pytest.raises(
            InvalidInput, match="RG007: all 720 rows have the label 0, so every ranking scores the same"
        ):
            guard.register("unlabelled", DATA.X, np.zeros(len(DATA)), qid=DATA.qid)
        assert kinds(guard) == []

    def test_judgments_of_relevant_documents_alone_are_legitimate(self, guard):
        """As MS MARCO has them: documents without a judgment are not relevant."""
        qrels = {f"q{k}": {f"d{k}-{j}": 1 for j in range(3)} for k in range(60)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RankevalWarning)
            collection = guard.register("judged", qrels=qrels, queries={q: f"text of query {q}" for q in qrels})
        assert not {"RG002", "RG007"} & set(found(collection))


class TestNumberOfQueries:
    """RG004, RG008 and RG009: what so many queries can show."""

    def test_few_queries_are_noted_with_what_they_find(self, guard):
        message = found(guard.register("few", make_ranking(30, 12, 5, rng=2)))["RG004"]
        assert f"one of {float(detectable_difference(30, 0.2)):.2f} is found" in message

    def test_too_few_for_the_stated_effect_says_how_many_are_needed(self, guard):
        with pytest.warns(RankevalWarning, match="RG009") as told:
            collection = guard.register("small", DATA, effect=0.03, sd=0.2)
        needed = topics_needed(0.03, 0.2)
        assert f"a difference of 0.03 needs {needed} queries" in str(told[0].message)
        assert (
            f"there are 60, which find one of {float(detectable_difference(60, 0.2)):.2g}" in found(collection)["RG009"]
        )
        assert "RG004" not in found(collection)

    def test_enough_for_the_stated_effect_is_silent(self, guard):
        assert topics_needed(0.1, 0.2) <= 60
        assert found(guard.register("enough", DATA, effect=0.1, sd=0.2)) == {}

    def test_the_spread_changes_the_need(self, guard):
        assert "RG009" not in found(guard.register("enough", DATA, effect=0.03, sd=0.05))

    @pytest.mark.parametrize(("given", "match"), EFFECTS)
    def test_an_effect_is_a_number_above_0(self, guard, given, match):
        with pytest.raises(InvalidInput, match=match):
            guard.register("any", DATA, **given)
        assert kinds(guard) == []

    @pytest.mark.parametrize("n_queries", [1, 2, 5, 6])
    def test_so_few_that_nothing_can_be_shown(self, guard, n_queries):
        """Checked against the test itself: the most extreme differences have this p-value."""
        data = make_ranking(n_queries, 12, 5, rng=5)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RankevalWarning)
            told = found(guard.register("tiny", data))
        least = paired_test("randomization", np.ones(n_queries)).p_value if n_queries > 1 else 1.0
        assert ("RG008" in told) == (least > 0.05)
        if "RG008" in told:
            assert f"p-value of {least:.2g} at least" in told["RG008"]


def test_repeated_queries_are_named(guard):
    X, y = np.concatenate([DATA.X, DATA.X[:24]]), np.concatenate([DATA.y, DATA.y[:24]])
    qid = np.concatenate([DATA.qid, DATA.qid[:24] + 1000])
    assert "2 queries with the content of another query" in found(guard.register("twice", X, y, qid=qid))["RG005"]


def test_queries_that_cannot_be_told_from_others_are_named(guard):
    X = DATA.X.copy()
    blank = np.unique(DATA.qid)[:4]
    X[np.isin(DATA.qid, blank)] = 0
    collection = guard.register("blank", X, DATA.y, qid=DATA.qid)
    assert collection.n_identifiable == 56
    message = found(collection)["RG010"]
    assert message.startswith("4 of 60 queries cannot be recognised")
    assert all(str(one) in message for one in blank.tolist())
    with pytest.warns(RankevalWarning, match="RG001 'blank all': only 0 of 60 queries"):
        guard.register("blank all", np.zeros_like(X), make_ranking(60, 12, rng=8).y, qid=DATA.qid)
