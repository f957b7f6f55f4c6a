"""Laws of registration: what is recorded, what is found, what is refused."""

import warnings

import numpy as np
import pytest
from guard.protocol.conftest import interrupt, kinds, systems
from shown import whole

import rankeval as rk
from rankeval.errors import InvalidInput, LedgerError, RankevalWarning
from rankeval.guard import Guard


class TestRegister:
    def test_sizes_of_consecutive_queries_stand_for_their_ids(self, guard, data, test):
        """In register and status, as in evaluate; disagreeing sizes are refused before anything is recorded."""
        sizes = [10] * 50
        assert guard.register("test", data.X, data.y, group=sizes).digest == test.digest
        assert guard.register("test", data.X, data.y, group=sizes, qid=data.qid).digest == test.digest
        assert guard.status(data.X, data.y, group=sizes).refused
        before = kinds(guard)
        for wrong, said in (
            ({"group": [10] * 49}, "add up to 490, but the data has 500 rows"),
            ({"group": 10}, "sizes"),
        ):
            for act in (guard.status, lambda *rows, **ids: guard.register("other", *rows, **ids)):
                with pytest.raises(InvalidInput, match=said):
                    act(data.X, data.y, **wrong)
        with pytest.raises(InvalidInput, match="cut the rows into different queries"):
            guard.register("other", data.X, data.y, group=[5, 15] * 25, qid=data.qid)
        with pytest.raises(InvalidInput, match=r"qid= or group=\) or judgments"):
            guard.status(qrels={"q": {"d": 1}}, group=[1])
        with pytest.raises(InvalidInput, match="RankingData has its own y and qid"):
            guard.status(data, group=sizes)
        with pytest.raises(InvalidInput, match=r"or the sizes of consecutive queries \(group=\)"):
            guard.status(data.X, data.y)
        assert kinds(guard) == before

    def test_a_collection_is_described_with_its_ledger_and_head(self, guard, test):
        assert (test.n_queries, test.n_rows, test.n_identifiable) == (50, 500, 50)
        assert test.head == guard.head
        assert guard.ledger in whole(test)
        assert test.digest[:12] in test._repr_html_()

    def test_registering_again_in_any_form_records_nothing_and_hands_the_data_over(self, guard, test, data):
        order = np.random.default_rng(0).permutation(len(data))
        again = guard.register("test", data.X[order], data.y[order], qid=data.qid.astype(str)[order])
        assert again.digest == test.digest
        assert kinds(guard) == ["register"]
        assert guard.register("test", data).digest == test.digest

    def test_another_project_registers_the_same_content_for_itself(self, guard, test, data):
        theirs = Guard("theirs", ledger=guard.ledger)
        their_test = theirs.register("their test", data)
        assert their_test.digest == test.digest
        assert {one.code for one in their_test.findings} >= {"RG011"}
        with pytest.raises(LedgerError, match=r"has no collection 'test'.*it has: their test"):
            theirs.looks("test")

    @pytest.mark.parametrize(
        ("given", "match"),
        [
            ({"X": np.ones((3, 2)), "y": [1, 0, 1]}, "qid= is missing"),
            ({"X": np.ones((3, 2)), "qid": [1, 1, 1]}, "y is missing"),
            ({"X": np.ones((3, 2)), "y": [1, 0], "qid": [1, 1, 1]}, "features has 3, labels has 2"),
            ({"X": np.ones((2, 2)), "y": [1, np.nan], "qid": [1, 1]}, "^y: row 1 is nan"),
            ({"X": np.ones((0, 2)), "y": [], "qid": []}, "no rows"),
            ({"y": [1], "qid": [1], "qrels": {"a": {"b": 1}}}, "not both"),
        ],
    )
    def test_incomplete_data_is_refused_by_name(self, guard, given, match):
        with pytest.raises(InvalidInput, match=match):
            guard.register("x", **given)
        assert kinds(guard) == []

    def test_data_that_changed_in_memory_is_not_opened(self, guard, data):
        test = guard.register("test", data)
        data.X[0, 0] += 1
        with pytest.raises(LedgerError, match="changed in memory"):
            guard.freeze(test, systems=systems(data, 0, 1))

    def test_what_weakens_the_protection_is_warned_about_once(self, guard, data):
        flags = (data.X[:, :2] > 0).astype(float)
        with pytest.warns(RankevalWarning, match="RG001 'flags': only 0 of 50 queries"):
            flagged = guard.register("flags", flags, data.y, qid=data.qid)
        assert {one.code for one in flagged.findings} >= {"RG001"}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            again = guard.register("flags", flags, data.y, qid=data.qid)
        assert {one.code for one in again.findings} >= {"RG001"}

    @pytest.mark.parametrize("name", ["", " ", "\t\n", None, 7])
    def test_a_collection_needs_a_name(self, guard, data, name):
        with pytest.raises(InvalidInput, match="expected a name for the collection"):
            guard.register(name, data)
        assert kinds(guard) == []

    def test_two_registrations_at_once_both_count_and_know_of_each_other(self, guard, data, monkeypatch):
        """The other one comes between the look and the entry: the rules look again, at it too."""
        other = Guard("other", ledger=guard.ledger)
        interrupt(guard, monkeypatch, lambda: other.register("theirs", data.X[:300], data.y[:300], qid=data.qid[:300]))
        with pytest.warns(RankevalWarning, match=r"RG003 'mine': \d+ of the \d+ queries of 'theirs'"):
            mine = guard.register("mine", data)
        assert "RG003" in {one.code for one in mine.findings}
        assert kinds(guard) == ["register", "register"]
        assert guard.verify()

    def test_one_content_registered_twice_at_once_stands_there_once(self, guard, data, monkeypatch):
        """Under its name it is the same registration; under another name the slower one is warned."""
        twin = Guard("project", ledger=guard.ledger)
        interrupt(guard, monkeypatch, lambda: twin.register("test", data))
        assert guard.register("test", data).digest == twin.register("test", data).digest
        assert kinds(guard) == ["register"]
        other = rk.datasets.make_ranking(50, 10, 4, rng=4)
        interrupt(guard, monkeypatch, lambda: twin.register("theirs", other))
        with pytest.warns(RankevalWarning, match="RG003 'mine': 50 of the 50 queries of 'theirs'"):
            guard.register("mine", other)
        assert kinds(guard) == ["register"] * 3
