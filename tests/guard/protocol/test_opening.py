"""Laws of openings: what is compared, what is counted, and who was faster."""

import os
import subprocess
import sys

import numpy as np
import pytest
from circles import choose
from guard.protocol.conftest import compared, interrupt, kinds, systems
from shown import whole

import rankeval as rk
from rankeval.errors import LedgerError
from rankeval.guard import Guard
from rankeval.ledger.graph import HeadMovedError
from rankeval.report.summaries import GuardFacts


class TestOpen:
    def test_the_batch_is_compared_by_the_primary_measure_under_max_t(self, guard, test, data):
        plan = guard.freeze(test, systems=systems(data, 0, 0.5, 1), baseline="s0", secondary=["AP", "nDCG@10"])
        result = guard.open(plan)
        rows = whole(result).splitlines()
        assert not any("unadjusted" in row for row in rows if row.startswith(plan.measure))
        shown = {tuple(row.split()[:2]): row for row in rows}
        for row in result.table[result.table["measure"] == "AP"].itertuples():
            assert f"[{row.ci_low:+.4f}, {row.ci_high:+.4f}] unadjusted" in shown["AP", row.system]
        expected = compared(data, 0, 0.5, 1)
        primary = result.table[result.table["measure"] == "nDCG@10"].set_index("system")
        wanted = expected.table.set_index("system").loc[primary.index]
        for column in ("mean_system", "p_value", "p_adjusted", "ci_low"):
            assert primary[column].tolist() == pytest.approx(wanted[column].tolist())
        assert result.table[result.table["measure"] == "AP"]["p_adjusted"].isna().all()
        assert result.settings.primary == "nDCG@10"
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
        narrow = compared(data, 0, 0.1, alpha=0.025).table.iloc[0]
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
        assert any(note.startswith("exploratory: all these rankings were opened before") for note in again.notes)

    def test_a_baseline_declared_later_is_a_look(self, guard, test, data):
        guard.open(guard.freeze(test, systems=systems(data, 0, 1), baseline="s0"))
        guard.open(guard.freeze(test, systems=systems(data, 1, 4), baseline="s4"))
        assert guard.looks(test)["system"].tolist() == ["s1", "s4"]

    def test_a_plan_opened_again_tells_the_later_looks_apart(self, guard, test, data):
        first = guard.freeze(test, systems=systems(data, 0, 1, 2), baseline="s0")
        assert "2 looks of project 'project' at 'test'; plan" in guard.open(first).notes[-1]
        later = guard.open(guard.freeze(test, systems=systems(data, 0, 3), baseline="s0"))
        assert "3 looks of project 'project' at 'test'; plan" in later.notes[-1]
        again = guard.open(first)
        assert "2 looks of project 'project' at 'test' up to this plan, 1 later; plan" in again.notes[-1]
        facts = GuardFacts.of(again)
        assert (facts.looks, facts.later) == (2, 1)
        assert "2 looks of project project at test up to this plan, 1 later, 0 of other projects" in facts.line

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
        with pytest.raises(LedgerError, match="when it was frozen: register it again"):
            elsewhere.open(plan.id)
        elsewhere.register("test", data.X[order], data.y[order], qid=np.array([f"x{q}" for q in data.qid])[order])
        there = elsewhere.open(plan.id)
        here = guard.open(plan, test)
        columns = ["mean_system", "difference", "wins", "p_value"]
        assert there.table[columns].to_numpy() == pytest.approx(here.table[columns].to_numpy(), abs=0.01)
        assert there.table["difference"].tolist() == pytest.approx(here.table["difference"].tolist(), abs=1e-12)
        assert len(guard.looks(test)) == 1

    @pytest.mark.random
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
            for _ in range(choose(default=1, full=2))
        ]
        assert runs[0] == runs[-1]
        assert runs[0].split() == [guard.open(plan).table["difference"].iloc[0].hex(), "1"]


def test_unequal_shares_of_judged_documents_are_noted_for_the_systems_of_the_plan_alone(guard):
    """By the primary and by the secondary measures; another plan of the batch keeps its names."""
    rng = np.random.default_rng(2)
    qrels, run = {}, {}
    for query in range(40):
        documents = [f"d{query}-{place}" for place in rng.permutation(20)]
        qrels[f"q{query}"] = dict(zip(documents, rng.integers(0, 2, 20).tolist(), strict=True))
        run[f"q{query}"] = {d: float(score) for d, score in zip(documents, rng.random(20), strict=True)}
    runs = {
        name: {q: {**scores, **{f"{name}{k}": 2.0 + k for k in range(number)}} for q, scores in run.items()}
        for name, number in (("old", 0), ("new", 8), ("another", 5))
    }
    test = guard.register("judged", qrels=qrels)
    measures, options = ["P@10", "AP"], {"baseline": "old", "measure": "P@10", "secondary": "AP"}
    plan = guard.freeze(test, systems={name: runs[name] for name in ("old", "new")}, **options)
    guard.freeze(test, systems={name: runs[name] for name in ("old", "another")}, **options)
    result = guard.open(plan)
    assert result.bounds["measure"].tolist() == measures
    assert result.bounds["judged_system"].tolist() == pytest.approx([0.2, 20 / 28])
    notes = [note for note in result.notes if "is judged for" in note]
    assert [measure in note for measure, note in zip(measures, notes, strict=True)] == [True, True]
    assert not any("another" in note for note in result.notes)
    assert "0.20 of those of new and 1.00 of those of old are judged" in result.headline
