"""The standing of a plan, its family, its claim and its words; and what is tried before anything is recorded."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from guard.conftest import Team, standing
from shown import whole

import rankeval as rk
from rankeval.errors import InvalidInput, LedgerError, UnknownName
from rankeval.guard import Guard
from rankeval.measures.family import FAMILIES, family


def entries(team, kind):
    return [entry for entry in team.guard._ledger.read().entries if entry.kind == kind]


class TestFamily:
    def test_what_was_frozen_later_takes_nothing_from_what_was_frozen_before(self, team, test):
        early = team.frozen(test, 1)
        team.opened(test, 2)
        late = team.frozen(test, 3)
        assert standing(team.guard.open(late)) == "exploratory"
        result = team.guard.open(early)
        assert standing(result) == "confirmatory"
        assert any("1 system of other plans frozen by then" in note for note in result.notes)
        assert team.statuses(test) == ["confirmatory", "exploratory", "confirmatory"]

    def test_the_clock_decides_nothing(self, team, test, monkeypatch):
        """Entries that are dated backwards stand where their parents put them."""
        team.opened(test, 1)
        monkeypatch.setattr("rankeval.ledger.ledger._now", lambda: "1999-01-01T00:00:00+00:00")
        assert standing(team.opened(test, 2)) == "exploratory"
        assert team.guard.looks(test)["system"].tolist() == ["s1", "s2"]

    @pytest.mark.filterwarnings("ignore:RG003")
    def test_plans_on_linked_collections_are_one_family_by_bonferroni(self, team, test, data):
        part = data.qid <= 50
        half = team.guard.register("half", data.X[part], data.y[part], qid=data.qid[part])
        plans = [team.frozen(test, 0.1), team.frozen(half, 0.1)]
        for plan in plans:
            result = team.guard.open(plan)
            assert standing(result) == "confirmatory"
            assert any("times 2 for the plans that form batches of their own" in note for note in result.notes)

    def test_plans_on_other_queries_are_another_family(self, team, test):
        other = team.guard.register("other", rk.datasets.make_ranking(60, 10, 4, rng=50))
        plans = [team.frozen(test, 0.1), team.frozen(other, 0.1)]
        assert not any("times 2" in note for plan in plans for note in team.guard.open(plan).notes)

    def test_a_gate_exposes_what_it_decides_on(self, team, test):
        """Who was let through learned something about these queries."""
        gate = team.guard.gate(test, baseline=test.content.X[:, 0], budget=2)
        assert standing(team.opened(test, 1)) == "confirmatory"
        team.guard.register("fresh", fresh := rk.datasets.make_ranking(60, 10, 4, rng=50))
        del gate
        other = team.guard.register("fresh", fresh)
        team.guard.gate(other, baseline=fresh.X[:, 0], budget=2, name="second").decide("s1", fresh.X[:, 1])
        result = team.opened(other, 1)
        assert standing(result) == "exploratory"
        assert not any("exempted or retired" in note for note in result.notes), "nobody may fit on what a gate holds"


class TestClaims:
    @pytest.mark.parametrize(("claim", "margin"), [("better", 0.0), ("better", 0.01), ("not_worse", 0.02)])
    def test_a_claim_is_tested_as_compare_does(self, team, test, data, claim, margin):
        result = team.opened(test, 0.3, 0.6, claim=claim, margin=margin, n_resamples=999)
        evaluations = {
            f"s{weight}": rk.evaluate(data.y, data.X[:, 0] + weight * data.X[:, 1], qid=data.qid, measures="nDCG@10")
            for weight in (0, 0.3, 0.6)
        }
        options = {"test": "randomization", "correction": "max_t", "n_resamples": 999, "rng": 0}
        wanted = rk.compare(evaluations, baseline="s0", claim=claim, margin=margin, **options)
        for column in ("p_value", "p_adjusted", "ci_low_adjusted"):
            assert result.table[column].tolist() == pytest.approx(wanted.table[column].tolist())
        assert (result.settings.claim, result.settings.margin) == (claim, margin)

    def test_claim_and_margin_are_part_of_the_plan(self, team, test):
        plans = [
            team.frozen(test, 1),
            team.frozen(test, 1, claim="better"),
            team.frozen(test, 1, claim="better", margin=0.01),
        ]
        assert len({plan.id for plan in plans}) == 3
        assert "claim better by 0.01" in whole(plans[2])
        assert team.guard.plan(plans[2].id) == plans[2].__class__(
            **{**vars(plans[2]), "head": team.guard.head, "ledger": team.guard.ledger}
        )

    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({"claim": "worse"}, UnknownName, "claim"),
            ({"claim": "not_worse"}, InvalidInput, "margin"),
            ({"margin": 0.1}, InvalidInput, "margin is 0.1 for claim"),
            ({"claim": "better", "baseline": None}, InvalidInput, "has a direction"),
            ({"n_resamples": 0}, InvalidInput, "n_resamples"),
            ({"measure": ["AP"]}, InvalidInput, "measure"),
            ({"secondary": ["nDCG@10", "nonsense"]}, UnknownName, "nonsense"),
            ({"convention": "nonsense"}, UnknownName, "nonsense"),
        ],
    )
    def test_what_cannot_be_compared_is_not_frozen(self, team, test, options, error, message):
        with pytest.raises(error, match=message):
            team.frozen(test, 1, 2, **options)
        assert not entries(team, "freeze")


class TestTriedBefore:
    def test_a_measure_that_the_labels_do_not_serve_is_not_frozen(self, team):
        """It needs aspects, which rows have not; no look is spent to find out."""
        test = team.guard.register("test", rk.datasets.make_ranking(60, 10, 4, rng=0))
        with pytest.raises(InvalidInput):
            team.frozen(test, 1, measure="alpha_nDCG@10")
        assert not entries(team, "freeze")

    def test_a_measure_that_is_infinite_for_a_query_is_not_frozen(self, team, test):
        @family("Endless", title="", formula="", source="", linear=True)
        def endless(judged):
            """Infinite for the first query."""
            return np.where(np.arange(judged.n_queries) == 0, np.inf, 1.0)

        try:
            with pytest.raises(InvalidInput):
                team.frozen(test, 1, measure="Endless")
        finally:
            del FAMILIES["Endless"]
        assert not entries(team, "freeze")

    @pytest.mark.parametrize("name", ["s1", "y"])
    def test_scores_with_the_index_of_other_rows_are_not_frozen(self, team, data, name):
        """Whatever the system is called: the labels are called y in messages."""
        index = np.arange(len(data)) + 7
        test = team.guard.register("test", data.X, pd.Series(data.y, index=index), qid=data.qid)
        ours, others = ({"s0": data.X[:, 0], name: pd.Series(data.X[:, 1], own)} for own in (index, index[::-1]))
        team.guard.freeze(test, systems=ours, baseline="s0", n_resamples=99)
        with pytest.raises(InvalidInput, match="the system y" if name == "y" else name):
            team.guard.freeze(test, systems=others, baseline="s0", n_resamples=99)
        assert len(entries(team, "freeze")) == 1

    @pytest.mark.filterwarnings("ignore:RG001")
    def test_a_run_that_lacks_queries_is_refused_by_a_strict_convention(self, team):
        qrels = {f"q{q}": {f"d{d}": int(d == q % 3) for d in range(5)} for q in range(20)}
        test = team.guard.register("topics", qrels=qrels)
        whole = {q: {d: float(len(d)) for d in docs} for q, docs in qrels.items()}
        partial = dict(list(whole.items())[:10])
        strict = rk.Convention(missing="error")
        with pytest.raises(InvalidInput):
            team.guard.freeze(test, systems={"a": whole, "b": partial}, measure="AP", convention=strict)
        assert not entries(team, "freeze")

    def test_no_look_is_spent_on_a_comparison_that_fails(self, team, test, monkeypatch):
        plan = team.frozen(test, 1)

        def fails(*_args, **_options):
            raise InvalidInput("no comparison")

        monkeypatch.setattr("rankeval.guard.batches.Batch.compare", fails)
        with pytest.raises(InvalidInput, match="no comparison"):
            team.guard.open(plan)
        monkeypatch.undo()
        assert not entries(team, "open")
        assert standing(team.guard.open(plan)) == "confirmatory"

    def test_nothing_is_scored_for_a_ledger_that_cannot_keep_the_look(self, team, test, monkeypatch):
        plan = team.frozen(test, 1)
        opened = team.opened(test, 2)
        monkeypatch.setattr(type(test.content), "evaluate", None)

        def refuse():
            raise OSError("read-only file system")

        monkeypatch.setattr(team.guard._ledger._store, "check_writable", refuse)
        for act in (lambda: team.guard.open(plan), lambda: team.frozen(test, 3)):
            with pytest.raises(LedgerError, match="read-only file system"):
                act()
        monkeypatch.undo()
        assert len(entries(team, "open")) == 1
        monkeypatch.setattr(team.guard._ledger._store, "check_writable", refuse)
        again = team.guard.open(team.guard.looks(test)["plan"][0])
        assert again.table.equals(opened.table), "an opened plan is opened again from any ledger that can be read"

    def test_a_look_that_a_ci_run_would_lose_is_refused(self, tmp_path, data, monkeypatch):
        (tmp_path / ".git").mkdir()
        team = Team(Guard("ours", ledger=tmp_path / "rankeval-ledger"))
        plan = team.frozen(team.guard.register("test", data), 1)
        monkeypatch.setenv("CI", "true")
        with pytest.raises(LedgerError, match="RANKEVAL_LEDGER_COMMITTED=1"):
            team.guard.open(plan)
        assert not entries(team, "open")
        monkeypatch.setenv("RANKEVAL_LEDGER_COMMITTED", "1")
        assert standing(team.guard.open(plan)) == "confirmatory"


class TestWords:
    def test_the_best_of_a_batch_is_corrected_for_the_choice(self, team, test):
        result = team.opened(test, 0.1, 0.2, 0.3)
        assert result.best.n_candidates == 3
        assert result.findings[1] == result.best.words
        assert result.findings[1].startswith(f"Choosing the largest mean of 3 candidates, here {result.best.system}")

    def test_exploratory_openings_show_the_corrected_best_too(self, team, test):
        team.opened(test, 1)
        result = team.opened(test, 2, 3)
        assert standing(result) == "exploratory"
        assert result.best.n_candidates == 2
        assert "by about" in " ".join(result.notes)
        assert "at least" not in " ".join(result.notes)

    def test_who_is_recorded(self, team, theirs, test, ledger):
        team.opened(test, 1)
        assert team.guard.looks(test)["who"].tolist() == ["ann"]
        for who in ("", 7):
            with pytest.raises(InvalidInput, match=r"^who is .*; expected a name"):
                Guard("ours", ledger=ledger, who=who)

    def test_looks_of_a_project_are_listed_without_a_name(self, team, test):
        assert len(team.guard.looks()) == 0
        team.opened(test, 1)
        team.opened(team.guard.register("other", rk.datasets.make_ranking(60, 10, 4, rng=50)), 1, 2)
        looks = team.guard.looks()
        assert looks["collection"].tolist() == ["test", "other", "other"]
        assert looks["look"].tolist() == [1, 2, 3]
        assert looks["n_queries"].tolist() == [100, 60, 60]
        assert set(looks.attrs) == {"ledger", "head", "elsewhere", "decisions"}
        with pytest.raises(UnknownName, match="projects"):
            team.guard.looks(test, projects="some")

    def test_verify_reads_the_heads_of_reports(self, team, test, tmp_path):
        head = team.guard.head
        report = tmp_path / "report.html"
        block = '<script type="application/json" class="rankeval-opening">{{"opening": {}}}</script>'
        for noted, is_whole in ((head, True), ("a" * 64, False)):
            report.write_text(block.format(json.dumps({"ledger": "l", "head": noted})))
            assert team.guard.verify(report) == is_whole
        report.write_text(f"<p>as of head {head}</p>")
        with pytest.raises(InvalidInput, match="names no head"):
            team.guard.verify(report)
        with pytest.raises(InvalidInput):
            team.guard.verify(tmp_path / "missing.html")
        with pytest.raises(InvalidInput, match="head is 7"):
            team.guard.verify(7)


def test_a_part_of_a_query_is_never_shown_by_masks(data):
    """`LoadedCollection.part` takes whole queries, in their order."""
    from rankeval.guard.collection import LoadedCollection

    loaded = LoadedCollection(data.X, data.y, data.qid)
    places = np.array([3, 50, 99])
    part = loaded.part(loaded.rows_of(places))
    assert part.prints.n_queries == 3
    assert (
        part.prints.content.tolist() == loaded.prints.content[np.isin(loaded.prints.names, part.prints.names)].tolist()
    )
    assert np.sort(part.prints.content).tolist() == np.sort(loaded.prints.content)[places].tolist()
