"""Laws of register, freeze, open: what is recorded, what is counted, what is shown."""

import contextlib
import multiprocessing
import os
import sqlite3
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import rankeval as rk
from rankeval.contamination import forget
from rankeval.errors import InvalidInput, LedgerError, RankevalWarning
from rankeval.guard import Guard
from rankeval.ledger.graph import HeadMovedError


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


ODD = (None, 3, 1.5, b"x", [], {}, object())


@pytest.mark.parametrize("value", ODD, ids=lambda value: type(value).__name__)
def test_odd_arguments_are_refused_by_name(guard, test, value):
    """In one line of our own, whatever stands for a plan, a collection or a ledger."""
    plan = guard.freeze(test, systems=systems(test.content, 0, 1), baseline="s0")
    for act, name in (
        (lambda: guard.open(value), "plan"),
        (lambda: guard.plan(value), "plan"),
        (lambda: guard.looks(7 if value is None else value), "test"),
        (lambda: guard.retire(value, reason="old"), "test"),
        (lambda: guard.freeze(value, systems=systems(test.content, 0, 1)), "test"),
    ):
        with pytest.raises(InvalidInput, match=rf"^{name} is [^\n]*; expected [^\n]*$"):
            act()
    if value is not None:
        with pytest.raises(InvalidInput, match=r"^test is [^\n]*; expected the result of guard\.register$"):
            guard.open(plan, value)
        with pytest.raises(InvalidInput, match=r"^ledger is [^\n]*; expected a path or an SQLAlchemy URL$"):
            Guard("project", ledger=value)


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
        assert guard.ledger in repr(test)
        assert test.digest[:12] in test._repr_html_()

    def test_registering_again_in_any_form_records_nothing_and_hands_the_data_over(self, guard, test, data):
        order = np.random.default_rng(0).permutation(len(data))
        again = guard.register("test", data.X[order], data.y[order], qid=data.qid.astype(str)[order])
        assert again.digest == test.digest
        assert kinds(guard) == ["register"]
        assert guard.register("test", data).digest == test.digest

    def test_the_same_content_under_another_name_is_linked_and_warned_about(self, guard, test, data):
        with pytest.warns(RankevalWarning, match="RG003 'other': 50 of the 50 identifiable queries of 'test'"):
            other = guard.register("other", data)
        assert other.digest == test.digest
        assert other.id != test.id

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
            ({"X": np.ones((2, 2)), "y": [1, np.nan], "qid": [1, 1]}, "row 1 has no finite label"),
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
        with pytest.warns(RankevalWarning, match=r"RG003 'mine': \d+ of the \d+ identifiable queries of 'theirs'"):
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
        with pytest.warns(RankevalWarning, match="RG003 'mine': 50 of the 50 identifiable queries of 'theirs'"):
            guard.register("mine", other)
        assert kinds(guard) == ["register"] * 3

    @pytest.mark.usefixtures("test")
    def test_the_checks_find_what_they_are_for(self, guard, data):
        part = data.qid <= 20
        X = np.vstack([data.X[part], data.X[data.qid == 1]])
        y = np.concatenate([np.where(data.qid[part] == 2, 0, data.y[part]), data.y[data.qid == 1]])
        qid = np.concatenate([data.qid[part], np.full(10, 99)])
        with pytest.warns(RankevalWarning, match="RG003 'part': 20 of the 50 identifiable queries of 'test'"):
            found = guard.register("part", X, y, qid=qid).findings
        messages = {one.code: one.message for one in found}
        assert messages["RG002"].startswith("1 of 21 queries with one label only")
        assert messages["RG004"].startswith("21 queries can show large differences only")
        assert messages["RG005"].startswith("1 query with the content of another")


class TestFreeze:
    def test_a_plan_has_the_same_id_whenever_it_says_the_same(self, guard, test, data):
        one = guard.freeze(test, systems=systems(data, 0, 1), baseline="s0", measure="ndcg_cut_10")
        reordered = dict(reversed(systems(data, 0, 1).items()))
        two = guard.freeze(test, systems={n: 3 * s + 1 for n, s in reordered.items()}, baseline="s0", measure="nDCG@10")
        assert one.id == two.id
        assert kinds(guard) == ["register", "freeze"]
        assert guard.plan(one.id[:8]).systems == tuple(sorted(one.systems))
        for change in ({"baseline": "s1"}, {"measure": "AP"}, {"alpha": 0.01}, {"convention": "sklearn"}, {"rng": 1}):
            given = {"baseline": "s0", "measure": "nDCG@10"} | change
            assert guard.freeze(test, systems=systems(data, 0, 1), **given).id != one.id

    def test_a_model_predicts_when_it_is_frozen_with_ids_if_it_takes_them(self, guard, test, data):
        seen = []

        class TakesIds:
            def predict(self, X, qid=None):
                seen.append(qid)
                return X[:, 0]

        class Plain:
            def predict(self, X):
                return X[:, 1]

        plan = guard.freeze(test, systems={"ids": TakesIds(), "plain": Plain()})
        assert (seen[0] == data.qid).all()
        scores = guard.freeze(test, systems={"ids": data.X[:, 0], "plain": data.X[:, 1]})
        assert plan.id == scores.id

    def test_a_classifier_is_frozen_with_its_expected_grades_and_not_with_its_labels(self, guard, test, data):
        fitted = LogisticRegression(max_iter=1000).fit(data.X, data.y)
        expected = fitted.predict_proba(data.X) @ fitted.classes_
        plan = guard.freeze(test, systems={"model": fitted, "plain": data.X[:, 1]})
        assert plan.id == guard.freeze(test, systems={"model": expected, "plain": data.X[:, 1]}).id

    @pytest.mark.parametrize(
        ("given", "match"),
        [
            ({"systems": {}}, "at least one"),
            ({"systems": {"a": np.ones(500), "b": np.ones(3)}}, "'b' has 3 scores for 500 rows"),
            ({"systems": {"a": np.ones(500), "b": np.full(500, np.nan)}}, "'b': the score of row 0 is not a finite"),
            (
                {"systems": {"a": np.ones(500), "b": np.ones(500)}, "baseline": "c"},
                "'c' is not among the systems: a, b",
            ),
            ({"systems": {"a": np.ones(500), "b": np.ones(500)}, "measure": "nDGC@10"}, "nDCG@10"),
            ({"systems": {"a": np.ones(500), "b": np.ones(500)}, "alpha": 5}, "alpha is 5"),
        ],
    )
    def test_a_plan_that_is_not_whole_is_refused(self, guard, test, given, match):
        with pytest.raises(InvalidInput, match=match):
            guard.freeze(test, **given)
        assert kinds(guard) == ["register"]

    def test_plans_are_found_by_id_only(self, guard, test, data):
        guard.freeze(test, systems=systems(data, 0, 1))
        for plan_id in ("nonsense", ""):
            with pytest.raises(LedgerError, match="give the id"):
                guard.open(plan_id)


class TestOpen:
    def test_the_batch_is_compared_by_the_primary_measure_under_max_t(self, guard, test, data):
        plan = guard.freeze(test, systems=systems(data, 0, 0.5, 1), baseline="s0", secondary=["AP", "nDCG@10"])
        result = guard.open(plan)
        rows = str(result).splitlines()
        assert not any("unadjusted" in row for row in rows if row.startswith(plan.measure))
        for at, row in result.table[result.table["measure"] == "AP"].iterrows():
            assert f"[{row.ci_low:+.4f}, {row.ci_high:+.4f}] unadjusted" in rows[3 + at]
        expected = compared(data, 0, 0.5, 1)
        primary = result.table[result.table["measure"] == "nDCG@10"].set_index("system")
        wanted = expected.table.set_index("system").loc[primary.index]
        for column in ("mean_system", "p_value", "p_adjusted", "ci_low"):
            assert primary[column].tolist() == pytest.approx(wanted[column].tolist())
        assert result.table[result.table["measure"] == "AP"]["p_adjusted"].isna().all()
        assert result.primary == "nDCG@10"
        assert "confirmatory for nDCG@10" in result.notes[-3]
        assert f"ledger {guard.ledger} as of head {guard.head}" in result.notes[-1]
        assert list(result.evaluations) == list(plan.names)

    def test_a_look_is_a_new_output_and_the_first_baseline_is_none(self, guard, test, data):
        guard.open(guard.freeze(test, systems=systems(data, 0, 1, 2), baseline="s0"))
        looks = guard.looks(test)
        assert looks["system"].tolist() == ["s1", "s2"]
        assert looks["look"].tolist() == [1, 2]
        assert looks["status"].tolist() == ["confirmatory"] * 2
        evaluated = rk.evaluate(data.y, systems(data, 1)["s1"], qid=data.qid, measures="nDCG@10")
        assert looks["value"][0] == evaluated.aggregate()["nDCG@10"]
        assert looks.attrs["head"] == guard.head

    def test_without_a_baseline_every_output_is_a_look_and_equal_outputs_are_one(self, guard, test, data):
        one = systems(data, 1)["s1"]
        guard.open(guard.freeze(test, systems={"a": one, "b": 2 * one - 7, "c": -one}))
        assert guard.looks(test)["system"].tolist() == ["a", "c"]

    def test_opening_again_is_free_and_says_the_same(self, guard, test, data):
        plan = guard.freeze(test, systems=systems(data, 0, 1), baseline="s0")
        first = guard.open(plan)
        guard.open(guard.freeze(test, systems=systems(data, 0, 5), baseline="s0"))
        again = guard.open(plan.id)
        assert again.table.equals(first.table)
        assert len(guard.looks(test)) == 2
        assert again.notes[:-1] == first.notes[:-1]

    def test_plans_frozen_before_the_first_opening_are_one_family(self, guard, test, data):
        plans = [guard.freeze(test, systems=systems(data, 0, weight), baseline="s0") for weight in (0.1, 0.2, 0.4)]
        alone = compared(data, 0, 0.1, 0.2, 0.4)
        wanted = alone.table.set_index("system")["p_adjusted"]
        for plan, weight in zip(plans, (0.1, 0.2, 0.4), strict=True):
            result = guard.open(plan)
            assert result.table["system"].tolist() == [f"s{weight}"]
            assert result.table["p_adjusted"].iloc[0] == pytest.approx(wanted[f"s{weight}"])
            assert any("2 systems of other plans frozen by then" in note for note in result.notes)
        assert guard.looks(test)["status"].tolist() == ["confirmatory"] * 3

    def test_plans_of_a_family_that_cannot_share_a_batch_are_paid_for_by_bonferroni(self, guard, test, data):
        plan = guard.freeze(test, systems=systems(data, 0, 0.1), baseline="s0")
        guard.freeze(test, systems=systems(data, 0, 0.1), baseline="s0", measure="AP")
        result = guard.open(plan)
        row = result.table.iloc[0]
        assert row["p_adjusted"] == pytest.approx(min(1, 2 * row["p_value"]))
        assert any("times 2" in note for note in result.notes)
        narrow = compared(data, 0, 0.1, confidence_level=0.975).table.iloc[0]
        ends = ["ci_low_adjusted", "ci_high_adjusted"]
        assert row[ends].tolist() == narrow[ends].tolist(), "of the level that p times 2 is held against"

    def test_a_later_plan_with_new_outputs_is_exploratory(self, guard, test, data):
        guard.open(guard.freeze(test, systems=systems(data, 0, 1), baseline="s0"))
        later = guard.open(guard.freeze(test, systems=systems(data, 1, 2, 3), baseline="s1"))
        assert later.table["p_adjusted"].isna().all()
        assert later.table["p_value"].notna().all()
        (note,) = [note for note in later.notes if note.startswith("exploratory")]
        assert "3 looks at 'test'" in note
        assert not any("not corrected" in one for one in later.notes)
        assert "by about 0.0" in note
        assert guard.looks(test)["status"].tolist() == ["confirmatory", "exploratory", "exploratory"]

    def test_opening_an_exploratory_plan_again_says_the_same(self, guard, test, data):
        guard.open(guard.freeze(test, systems=systems(data, 0, 1), baseline="s0"))
        plan = guard.freeze(test, systems=systems(data, 1, 2, 3), baseline="s1")
        said = [[note for note in guard.open(plan).notes if note.startswith("exploratory")] for _ in range(3)]
        assert said[0] == said[1] == said[2]

    def test_another_measure_of_opened_outputs_is_free_and_secondary(self, guard, test, data):
        guard.open(guard.freeze(test, systems=systems(data, 0, 1), baseline="s0"))
        again = guard.open(guard.freeze(test, systems=systems(data, 0, 1), baseline="s0", measure="AP"))
        assert len(guard.looks(test)) == 1
        assert again.table["p_adjusted"].isna().all()
        assert any(note.startswith("secondary: all these rankings were opened before") for note in again.notes)

    def test_a_baseline_declared_later_is_a_look(self, guard, test, data):
        guard.open(guard.freeze(test, systems=systems(data, 0, 1), baseline="s0"))
        guard.open(guard.freeze(test, systems=systems(data, 1, 4), baseline="s4"))
        assert guard.looks(test)["system"].tolist() == ["s1", "s4"]

    def test_looks_of_other_projects_are_told_apart(self, guard, test, data):
        guard.open(guard.freeze(test, systems=systems(data, 0, 1), baseline="s0"))
        theirs = Guard("theirs", ledger=guard.ledger)
        their_test = theirs.register("their test", data)
        result = theirs.open(theirs.freeze(their_test, systems=systems(data, 0, 1), baseline="s0"))
        assert result.table["p_adjusted"].notna().all()
        assert "1 look of project 'theirs' at 'their test' (1 more by other projects)" in result.notes[-1]
        assert theirs.looks(their_test).attrs["elsewhere"] == 1

    def test_two_openings_at_once_count_each_look_once(self, guard, test, data, monkeypatch):
        """The other opening comes between the count and the entry: the count is made again."""
        mine = guard.freeze(test, systems=systems(data, 0, 1), baseline="s0")
        other = Guard("project", ledger=guard.ledger)
        other.register("test", data)
        theirs = other.freeze(test, systems=systems(data, 0, 1, 2), baseline="s0")
        interrupt(guard, monkeypatch, lambda: other.open(theirs))
        guard.open(mine)
        assert guard.looks(test)["system"].tolist() == ["s1", "s2"]

    def test_a_step_that_is_overtaken_is_decided_again_under_the_lock(self, guard, test, data, monkeypatch):
        """Where even that does not keep others out, it gives up."""
        append, told = guard._ledger.append, []

        def overtaken(project, *notes, **options):
            told.append(getattr(guard._ledger._held, "lock", False))
            append("other", ("note", {}))
            return append(project, *notes, **options)

        monkeypatch.setattr(guard._ledger, "append", overtaken)
        with pytest.raises(HeadMovedError, match="grew beyond"):
            guard.freeze(test, systems=systems(data, 0, 1))
        assert told == [False, True]
        assert "freeze" not in kinds(guard)

    def test_scores_that_changed_since_are_an_error(self, guard, test, data, monkeypatch):
        plan = guard.freeze(test, systems=systems(data, 0, 1), baseline="s0")
        guard.open(plan)
        import rankeval.evaluation

        score = rankeval.evaluation.score

        def drifted(*args, **options):
            found = score(*args, **options)
            found.scores[0] += 1e-4
            return found

        monkeypatch.setattr(rankeval.evaluation, "score", drifted)
        with pytest.raises(LedgerError, match=r"now scores otherwise: 1 values differ, by up to 0\.0001"):
            guard.open(plan)

    def test_a_plan_opens_where_the_rows_come_in_another_order_under_other_names(self, guard, test, data):
        plan = guard.freeze(test, systems=systems(data, 0, 1), baseline="s0", secondary=["AP"])
        order = np.random.default_rng(0).permutation(len(data))
        elsewhere = Guard("project", ledger=guard.ledger)
        with pytest.raises(LedgerError, match="not at hand: register it again"):
            elsewhere.open(plan.id)
        elsewhere.register("test", data.X[order], data.y[order], qid=np.array([f"x{q}" for q in data.qid])[order])
        there = elsewhere.open(plan.id)
        here = guard.open(plan, test)
        columns = ["mean_system", "difference", "wins", "p_value"]
        assert there.table[columns].to_numpy() == pytest.approx(here.table[columns].to_numpy(), abs=0.01)
        assert there.table["difference"].tolist() == pytest.approx(here.table["difference"].tolist(), abs=1e-12)
        assert len(guard.looks(test)) == 1

    def test_a_plan_opens_in_a_fresh_process_and_gives_the_same(self, guard, test, data, tmp_path):
        plan = guard.freeze(test, systems=systems(data, 0, 1), baseline="s0")
        program = (
            "import sys, rankeval as rk; data = rk.datasets.make_ranking(50, 10, 4, rng=3); "
            "guard = rk.Guard('project', ledger=sys.argv[1]); test = guard.register('test', data); "
            "print(guard.open(sys.argv[2]).table['difference'].iloc[0].hex(), len(guard.looks(test)))"
        )
        command = [sys.executable, "-c", program, guard.ledger, plan.id]
        runs = [
            subprocess.run(command, cwd=tmp_path, env=os.environ, capture_output=True, text=True, check=True).stdout
            for _ in range(2)
        ]
        assert runs[0] == runs[1]
        assert runs[0].split() == [guard.open(plan).table["difference"].iloc[0].hex(), "1"]


QRELS = {f"q{q}": {f"d{q}-{d}": int((q * d) % 3 == 1) for d in range(12)} for q in range(10)}


def readings(guard, monkeypatch, act):
    """Return how often something reads all entries of the ledger."""
    store, done = guard._ledger._store, []
    entries = store.entries
    with monkeypatch.context() as patched:
        patched.setattr(store, "entries", lambda: done.append(1) or entries())
        act()
    return len(done)


def test_each_step_reads_the_ledger_once_and_once_more_in_the_lock_if_it_appends(guard, data, monkeypatch):
    count = partial(readings, guard, monkeypatch)
    register = partial(guard.register, "test", data)
    assert [count(register) for _ in range(2)] == [2, 1]
    test = register()
    freezes = [partial(guard.freeze, test, systems=systems(data, 0, weight), baseline="s0") for weight in (1, 2)]
    assert [count(freeze) for freeze in freezes] == [2, 2]
    for plan in [freeze() for freeze in freezes]:
        assert [count(partial(guard.open, plan)) for _ in range(2)] == [2, 1]
    assert count(partial(guard.looks, test)) == 1
    assert count(partial(guard.status, data)) == 1
    assert count(partial(guard.retire, test, "done")) == 2


def use(ledger, weight):
    data = rk.datasets.make_ranking(50, 10, 4, rng=3)
    guard = Guard("project", ledger=ledger)
    test = guard.register("test", data)
    guard.open(guard.freeze(test, systems=systems(data, 0, weight), baseline="s0"))
    guard.open(guard.freeze(test, systems=systems(data, 0, -1), baseline="s0"))


def test_processes_that_register_freeze_and_open_at_once_lose_no_look(guard):
    """One registration, each plan once, each new output once: as if they had come one after the other."""
    context = multiprocessing.get_context("fork")
    users = [context.Process(target=use, args=(guard.ledger, weight)) for weight in (1, 2, 3, 4)]
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert [user.exitcode for user in users] == [0] * 4
    assert sorted(guard.looks("test")["system"]) == ["s-1", "s1", "s2", "s3", "s4"]
    assert sorted(guard.looks("test")["look"]) == [1, 2, 3, 4, 5]
    counts = {kind: kinds(guard).count(kind) for kind in ("register", "freeze", "open")}
    assert counts == {"register": 1, "freeze": 5, "open": 5}
    assert guard.verify()


class TestCollections:
    def run(self, seed):
        rng = np.random.default_rng(seed)
        return {q: {d: float(rng.random()) for d in [*docs, f"unjudged {q}"]} for q, docs in QRELS.items()}

    def test_runs_are_frozen_and_opened(self, guard):
        test = guard.register("topics", qrels=QRELS)
        plan = guard.freeze(test, systems={"a": self.run(1), "b": rk.Run.from_dict(self.run(2))}, measure="AP")
        result = guard.open(plan)
        expected = rk.evaluate(QRELS, self.run(2), measures="AP")
        assert result.evaluations["b"].scores.tolist() == expected.scores.tolist()
        assert len(guard.looks(test)) == 2

    def test_runs_follow_the_queries_under_other_names(self, guard):
        test = guard.register("topics", qrels=QRELS)
        plan = guard.freeze(test, systems={"a": self.run(1), "b": self.run(2)}, measure="AP")
        here = guard.open(plan)
        elsewhere = Guard("project", ledger=guard.ledger)
        elsewhere.register("topics", qrels={f"topic {q}": docs for q, docs in reversed(QRELS.items())})
        assert elsewhere.open(plan.id).table["difference"].tolist() == pytest.approx(here.table["difference"].tolist())


class TestStatusRetireVerify:
    @pytest.mark.usefixtures("test")
    def test_status_says_what_would_be_refused_and_why(self, guard, data):
        status = guard.status(data.X, data.y, qid=data.qid + 7)
        assert status.refused
        assert bool(status)
        assert status.collection == "test"
        assert (status.n_matched, status.n_to_refuse) == (50, 3)
        assert "would be refused: it holds queries of 'test' of project 'project': 50 of its 50" in str(status)
        part = data.qid <= 2
        weak = guard.status(data.X[part], data.y[part], qid=data.qid[part])
        assert not weak
        assert "there is weak evidence that it holds queries of 'test' of project 'project': 2 of its 50" in str(weak)
        other = rk.datasets.make_ranking(50, 10, 4, rng=4)
        assert "nothing of it is registered" in str(guard.status(other))

    def test_what_was_retired_is_no_test_any_more(self, guard, test, data):
        plan = guard.freeze(test, systems=systems(data, 0, 1))
        with pytest.raises(InvalidInput, match="reason is missing"):
            guard.retire(test, " ")
        guard.retire(test, "published")
        assert not guard.status(data)
        for use in (
            lambda: guard.open(plan),
            lambda: guard.freeze(test, systems=systems(data, 0, 2)),
            lambda: guard.register("test", data),
            lambda: guard.register("under another name", data),
            lambda: guard.retire("test", "again"),
        ):
            with pytest.raises(LedgerError, match="published"):
                use()

    def test_verify_finds_edits_deletions_and_what_was_cut_off(self, guard, test, data):
        guard.open(guard.freeze(test, systems=systems(data, 0, 1)))
        head = guard.head
        assert guard.verify()
        assert guard.verify(head)
        fresh = Guard("project", ledger=guard.ledger)

        def spoilt(statement, *values):
            whole = (path := Path(guard.ledger)).read_bytes()
            with contextlib.closing(sqlite3.connect(path)) as database, database:
                database.execute(statement, values)
            verdicts = guard.verify(), fresh.verify(), fresh.verify(head)
            path.write_bytes(whole)
            return verdicts

        deletion = "DELETE FROM rankeval_ledger_entries WHERE hash = ?"
        freeze, opening = (entry.hash for entry in guard._ledger.read().entries[1:])
        edit = "UPDATE rankeval_ledger_entries SET text = replace(text, 's1', 's2') WHERE hash = ?"
        assert spoilt(edit, opening) == (False,) * 3
        assert spoilt(deletion, freeze) == (False,) * 3
        assert spoilt(deletion, opening) == (False,) * 3, "this process saw the head"
        whole = Path(guard.ledger).read_bytes()
        with contextlib.closing(sqlite3.connect(guard.ledger)) as cut, cut:
            cut.execute(deletion, [opening])
        for decide in (lambda: guard.looks(test), lambda: guard.freeze(test, systems=systems(data, 0, 2))):
            with pytest.raises(LedgerError, match="lost entries since this process last read it"):
                decide()
        assert not guard.verify()
        Path(guard.ledger).write_bytes(whole)
        assert guard.verify(head)
        assert guard.problems("0" * 63 + "1") == [
            "the head 000000000000 that was noted before is gone: entries were deleted or rewritten"
        ]

    def test_a_guard_needs_a_name_and_a_ledger(self):
        with pytest.raises(InvalidInput, match="project"):
            Guard(" ")
        with pytest.raises(LedgerError, match="RANKEVAL_LEDGER=off"):
            Guard("project")


@pytest.mark.usefixtures("test")
def test_a_name_cannot_be_frozen_for_want_of_the_data(guard, data):
    """Looks are asked for by name; systems are scored on the collection itself."""
    with pytest.raises(InvalidInput, match=r"test is 'test'; expected the result of guard\.register"):
        guard.freeze("test", systems=systems(data, 0, 1))


def test_a_system_may_be_called_y_and_one_measure_be_secondary(guard):
    data = rk.datasets.make_ranking(60, 8, 3, rng=5)
    test = guard.register("named", data)
    plan = guard.freeze(test, systems={"x": data.X[:, 0], "y": data.X[:, 1]}, baseline="x", secondary="AP")
    assert set(guard.open(plan).evaluations) == {"x", "y"}
    assert plan.secondary == ("AP",)
