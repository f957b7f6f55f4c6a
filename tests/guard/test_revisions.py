"""A name stands for one collection that may change: revisions by themselves, successors by declaration."""

from __future__ import annotations

import numpy as np
import pytest
from guard.conftest import standing

import rankeval as rk
from rankeval.errors import LedgerError, RankevalWarning

MORE = rk.datasets.make_ranking(40, 10, 4, rng=99)


def extended(data):
    X, y = np.vstack([data.X, MORE.X]), np.append(data.y, MORE.y)
    return X, y, np.append(data.qid, MORE.qid + 1000)


def entries(team, kind):
    return [entry for entry in team.guard._ledger.read().entries if entry.kind == kind]


class TestByThemselves:
    @pytest.mark.parametrize(
        "change",
        [
            lambda data, rng: (np.column_stack([data.X, rng.random(len(data))]), data.y),
            lambda data, rng: (rng.random(data.X.shape), data.y),
            lambda data, rng: (data.X, np.where(rng.random(len(data)) < 0.02, 0, data.y)),
        ],
        ids=["a feature more", "all features new", "a few labels"],
    )
    @pytest.mark.filterwarnings("error")
    def test_the_same_queries_are_a_revision(self, team, test, data, change):
        X, y = change(data, np.random.default_rng(0))
        revised = team.guard.register("test", X, y, qid=data.qid)
        assert revised.revises == test.id
        assert "a revision" in repr(revised)
        assert revised.digest != test.digest
        assert team.guard.register("test", X, y, qid=data.qid).id == revised.id
        assert team.guard.register("test", data).id == test.id, "the earlier version is still on record"
        assert len(entries(team, "register")) == 2

    def test_looks_carry_over(self, team, test, data):
        team.opened(test, 1)
        revised = team.guard.register("test", np.column_stack([data.X, data.X[:, 0] ** 2]), data.y, qid=data.qid)
        assert standing(team.opened(revised, 2)) == "exploratory"
        looks = team.guard.looks("test")
        assert looks["system"].tolist() == ["s1", "s2"]
        assert looks["n_queries"].tolist() == [100, 100]

    def test_both_versions_are_refused(self, team, test, data):
        X = np.column_stack([data.X, data.X[:, 0] ** 2])
        team.guard.register("test", X, data.y, qid=data.qid)
        for version in (data.X, X):
            assert team.guard.status(version, data.y, qid=data.qid).refused

    def test_other_content_is_an_error_that_names_supersedes(self, team, test, data):
        for X, y, qid in (extended(data), (MORE.X, MORE.y, MORE.qid)):
            with pytest.raises(LedgerError, match=r"'test' is registered with other content.*supersedes='test'"):
                team.guard.register("test", X, y, qid=qid)
        assert len(entries(team, "register")) == 1


@pytest.mark.filterwarnings("ignore:RG003")
class TestSupersedes:
    @pytest.mark.parametrize("by", [lambda test: test, lambda test: test.name], ids=["collection", "name"])
    @pytest.mark.parametrize("name", ["test", "test-2"])
    def test_looks_carry_over_by_query(self, team, test, data, name, by):
        team.opened(test, 1)
        X, y, qid = extended(data)
        larger = team.guard.register(name, X, y, qid=qid, supersedes=by(test))
        assert larger.revises == test.id
        looks = team.guard.looks(name)
        assert looks["n_queries"].tolist() == [100]
        plan = team.frozen(larger, 1)
        assert any("100 of 140 queries were looked at" in note for note in plan.notes)
        assert any("fresh=True tests on the 40 others" in note for note in plan.notes)

    def test_ids_link_what_nothing_else_shows(self, team, test, data):
        """All labels and features are new: only the declaration says that these are the same queries."""
        rng = np.random.default_rng(0)
        team.opened(test, 1)
        other = rng.random(data.X.shape), rng.integers(0, 3, len(data))
        assert standing(team.opened(team.guard.register("apart", *other, qid=data.qid), 1)) == "confirmatory"
        new = rng.random(data.X.shape), rng.integers(0, 3, len(data))
        successor = team.guard.register("new labels", *new, qid=data.qid, supersedes="test")
        assert standing(team.opened(successor, 1)) == "exploratory"

    def test_ids_link_the_others_where_some_are_recognised(self, team, test, data):
        """Ten queries keep their rows; of the others only the ids are left. All were looked at."""
        rng = np.random.default_rng(0)
        team.opened(test, 1)
        kept = data.qid <= 10
        X = np.where(kept[:, None], data.X, rng.random(data.X.shape))
        new = team.guard.register("most new", X, np.where(kept, data.y, 2 - data.y), qid=data.qid, supersedes="test")
        assert any("100 of 100 queries were looked at" in note for note in team.frozen(new, 1).notes)

    def test_ids_given_anew_link_nothing(self, team, test, data):
        """The first 40 ids now belong to new queries; the old ones are recognised by their content."""
        team.opened(test, 1)
        X, y = np.vstack([MORE.X, data.X]), np.append(MORE.y, data.y)
        larger = team.guard.register("test", X, y, qid=np.repeat(np.arange(140), 10), supersedes=test)
        plan = team.frozen(larger, 1, fresh=True)
        assert "tests on 40 of 140 queries" in plan.notes[0]

    def test_only_what_is_registered_is_superseded(self, team, test, data):
        with pytest.raises(LedgerError, match=r"no collection 'tset'.*it has: test"):
            team.guard.register("new", MORE, supersedes="tset")

    def test_a_declaration_does_not_free_another_name(self, team, test, data):
        team.guard.register("other", MORE)
        X, y, qid = extended(data)
        with pytest.raises(LedgerError, match="'other' is registered with other content"):
            team.guard.register("other", X, y, qid=qid, supersedes="test")


@pytest.mark.filterwarnings("ignore:RG003")
class TestRetired:
    def test_retired_queries_are_no_test_under_any_name(self, team, test, data):
        team.guard.retire(test, "fitted on")
        X = np.column_stack([data.X, data.X[:, 0] ** 2])
        for name, given in {"test": data.X, "other": data.X, "revised": X}.items():
            with pytest.raises(LedgerError, match=r"retired as 'test' \(fitted on\).*never be a test again"):
                team.guard.register(name, given, data.y, qid=data.qid)
        X, y, qid = extended(data)
        with pytest.raises(LedgerError, match="never be a test again"):
            team.guard.register("larger", X, y, qid=qid)

    def test_as_few_as_would_not_be_refused_may_be_registered_and_count_as_exposed(self, team, test, data):
        team.guard.retire(test, "fitted on")
        few = data.qid <= np.unique(data.qid)[3]
        X, y = np.vstack([MORE.X, data.X[few]]), np.append(MORE.y, data.y[few])
        new = team.guard.register("new", X, y, qid=np.append(MORE.qid + 1000, data.qid[few]))
        result = team.opened(new, 1)
        assert standing(result) == "exploratory", "4 of 44 are more than 5 %"
        assert any(note.startswith("4 of 44 queries had been exempted or retired") for note in result.notes)

    def test_a_name_is_retired_with_its_revisions(self, team, test, data):
        X = np.column_stack([data.X, data.X[:, 0] ** 2])
        team.guard.register("test", X, data.y, qid=data.qid)
        team.guard.retire("test", "done")
        assert len(entries(team, "retire")) == 2
        for version in (data.X, X):
            assert not team.guard.status(version, data.y, qid=data.qid)

    def test_what_another_project_gave_up_may_have_been_fitted_on(self, team, theirs, test, data):
        team.guard.retire(test, "fitted on")
        with pytest.warns(RankevalWarning, match=r"RG003 'mine'.*'ours' retired 'test' \(fitted on\): models may have"):
            mine = theirs.guard.register("mine", data)
        result = theirs.opened(mine, 1)
        assert standing(result) == "exploratory"
        assert any(note.startswith("100 of 100 queries had been exempted or retired") for note in result.notes)

    def test_a_part_that_was_registered_before_is_kept_and_the_rest_may_have_been_fitted_on(
        self, team, theirs, test, data
    ):
        part = data.take(data.qid <= np.unique(data.qid)[39])
        mine = theirs.guard.register("mine", part)
        team.guard.retire(test, "fitted on")
        whole = theirs.guard.register("whole", data)
        assert standing(theirs.opened(whole, 1)) == "exploratory"
        assert standing(theirs.opened(mine, 2)) == "exploratory", "its queries were just looked at"

    def test_another_project_keeps_its_test(self, team, theirs, test, data):
        mine = theirs.guard.register("mine", data)
        team.guard.retire("test", "fitted on")
        assert theirs.guard.status(data).refused
        result = theirs.opened(mine, 1)
        assert standing(result) == "first look of this project"
        assert "by a gate or a retirement of another project). If a decision was published, it" in result.notes[0]
        assert theirs.guard.register("mine too", data).n_queries == 100
