"""An experiment is run once however often it is run: nothing is trained or looked at twice, nothing goes unsaid."""

from __future__ import annotations

import html
import os
import re
import shutil
import sys
from dataclasses import make_dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from experiment.loaded import load_parts
from sklearn.linear_model import Ridge
from tables import each_row

import rankeval as rk
from rankeval.collection.data import RankingData
from rankeval.contamination import refusal
from rankeval.errors import ConfigError, GuardRefusal, LedgerError, UnknownName
from rankeval.experiment import check_config, checks, run_experiment, training
from rankeval.experiment.loading import DataParts, data_digest
from rankeval.experiment.training import candidate_digest
from rankeval.ledger.graph import heads_in
from rankeval.ledger.ledger import Ledger
from rankeval.report.summaries import experiment_text

RIDGE = {"estimator": "sklearn.linear_model.Ridge"}
SMALL = {
    "name": "small",
    "data": {"loader": "digits", "arguments": {"n_queries": 60, "n_candidates": 15}},
    "rankers": {
        "ridge": {"estimator": "sklearn.linear_model.Ridge", "grid": {"alpha": [0.1, 10.0]}},
        "tree": {"estimator": "sklearn.tree.DecisionTreeRegressor", "grid": {"max_depth": [2, 4]}},
    },
    "measures": ["nDCG@10", "AP"],
    "cv": {"n_splits": 3},
    "tracking": "off",
}


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Switch the guard on, with a ledger of this test's own."""
    path = tmp_path / "ledger.db"
    monkeypatch.setenv("RANKEVAL_LEDGER", str(path))
    refusal.forget()
    yield path
    refusal.forget()


def small(**changes):
    return check_config({**SMALL, **changes})


def kept_under(config) -> str:
    dev, test = load_parts(config).logged
    return candidate_digest("ridge", config, dev=dev.digest, test=test.digest)


@pytest.mark.further
@pytest.mark.usefixtures("ledger")
def test_a_second_run_trains_nothing_adds_no_look_and_says_the_same():
    first, second = run_experiment(small()), run_experiment(small())
    assert (first.n_trained, first.looks_added, first.guard.standing) == (2, 1, "confirmatory")
    assert (second.n_trained, second.looks_added, second.guard.standing) == (0, 0, "confirmatory")
    assert second.guard.plan == first.guard.plan
    pd.testing.assert_frame_equal(first.comparison.table, second.comparison.table, check_exact=True)
    for one, other in zip(first.facts.candidates, second.facts.candidates, strict=True):
        assert one.params == other.params
        np.testing.assert_array_equal(one.dev.scores, other.dev.scores)
        assert [each.reused for each in (one, other)] == [False, True]
    shutil.rmtree(first.directory)
    anew = run_experiment(small())
    assert (anew.n_trained, anew.looks_added) == (2, 0)


@pytest.mark.usefixtures("ledger")
def test_a_grid_changed_after_the_opening_trains_that_ranker_alone_and_is_exploratory():
    run_experiment(small())
    rankers = {**SMALL["rankers"], "tree": {**SMALL["rankers"]["tree"], "grid": {"max_depth": [6]}}}
    changed = run_experiment(small(rankers=rankers))
    assert [(each.name, each.reused) for each in changed.facts.candidates] == [("ridge", True), ("tree", False)]
    assert (changed.looks_added, changed.guard.looks, changed.guard.standing) == (1, 2, "exploratory")
    assert changed.comparison.table["p_adjusted"].isna().all()
    assert any(note.startswith("exploratory") and "2 looks" in note for note in changed.comparison.notes)
    page = changed.report.read_text()
    assert "exploratory: this is the result of 2 looks" in page
    assert "Not confirmatory" in page


@each_row(
    "changes",
    [
        {"cv": {"n_splits": 4}},
        {"measures": ["AP", "nDCG@10"]},
        {"convention": "sklearn"},
        {"data": {"loader": "digits", "arguments": {"n_queries": 61, "n_candidates": 15}}},
        {"split": {"salt": "other"}},
        {"seed": 1},
        {"rankers": {**SMALL["rankers"], "ridge": {"steps": ["sklearn.linear_model.Ridge"], "params": {}}}},
        {"rankers": {**SMALL["rankers"], "ridge": {**RIDGE, "search": {"distributions": {"alpha": [0.1, 10.0]}}}}},
        {"rankers": {**SMALL["rankers"], "ridge": {**RIDGE, "early_stopping_rounds": 3}}},
    ],
)
def test_whatever_bears_on_a_result_changes_what_it_is_kept_under(changes):
    assert kept_under(small()) == kept_under(small(n_jobs=2, name="other"))
    assert kept_under(small()) != kept_under(small(**changes))


def test_results_of_a_version_that_stores_other_fields_are_computed_anew(monkeypatch):
    """They cannot be read, so they must not be looked for under the same digest."""
    before = kept_under(small())
    later = make_dataclass("Later", ["further"], bases=(rk.Evaluation,), kw_only=True, frozen=True)
    monkeypatch.setattr(training, "Evaluation", later)
    assert kept_under(small()) != before


@pytest.mark.usefixtures("ledger")
def test_the_test_part_is_refused_after_the_run_but_for_the_rankings_that_were_opened():
    enough = {"loader": "digits", "arguments": {"n_queries": 150, "n_candidates": 20}}  # for ids and labels alone
    result = run_experiment(small(data=enough))
    test = load_parts(result.config).test
    with pytest.raises(GuardRefusal, match="digits-test"):
        rk.evaluate(test.y, test.X[:, 0], qid=test.qid, docid=test.docid)
    with pytest.raises(GuardRefusal, match="digits-test"):
        rk.cross_validate(Ridge(), test)
    frame = pd.read_parquet(result.predictions("tree"))
    again = rk.evaluate(
        frame["relevance"], frame["score"], qid=frame["qid"], docid=frame["docid"], measures=["nDCG@10", "AP"]
    )
    np.testing.assert_array_equal(again.scores, result.evaluations["tree"].scores)


@pytest.mark.usefixtures("ledger")
def test_a_dev_part_that_holds_registered_content_is_refused_before_anything_is_trained_or_registered():
    dev = load_parts(small()).dev
    guard = rk.Guard("someone-else")
    guard.register("theirs", dev.X, dev.y, qid=dev.qid)
    before = guard.head
    with pytest.raises(GuardRefusal, match="theirs"):
        run_experiment(small())
    assert not list(small().directory.glob("kept/*"))
    assert guard.head == before


def test_a_single_ranker_gets_its_mean_with_an_interval_and_uses_a_look(ledger):
    """Under the guard and without one, in the text and in the page."""
    only = {"rankers": {"ridge": SMALL["rankers"]["ridge"]}, "guard": {"ledger": str(ledger)}}
    result = run_experiment(small(**only))
    assert (result.looks_added, result.guard.standing, len(result.comparison.table)) == (1, "confirmatory", 0)
    mean = result.evaluations["ridge"].mean()["nDCG@10"]
    assert result.comparison.best.estimate == pytest.approx(mean, abs=1e-12)
    assert result.comparison.headline.startswith(f"ridge: nDCG@10 {mean:.4f} [95% interval")
    page = result.report.read_text()
    assert "How good is it?" in page
    assert "An experiment with 1 ranker," in page
    assert run_experiment(small(**only)).looks_added == 0
    unguarded = run_experiment(small(**only | {"guard": "off", "name": "off"}))
    assert unguarded.comparison.headline == result.comparison.headline


def test_a_run_that_commits_the_ledger_may_open_in_ci(tmp_path, monkeypatch):
    """A ledger in the checkout of a CI job is thrown away with it, so nothing is loaded before that is settled."""
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("CI", "true")
    monkeypatch.delenv("RANKEVAL_LEDGER_COMMITTED", raising=False)
    guard = {"ledger": str(tmp_path / "ledger")}
    with pytest.raises(LedgerError, match=r"thrown away.*guard.commits_ledger: true"):
        run_experiment(small(guard=guard))
    assert not (tmp_path / "ledger").exists()
    assert run_experiment(small(guard=guard | {"commits_ledger": True})).looks_added == 1
    assert "RANKEVAL_LEDGER_COMMITTED" not in os.environ


def test_a_ledger_that_cannot_be_written_is_found_before_anything_is_trained(tmp_path):
    (tmp_path / "taken").write_text("a file is in the way")
    with pytest.raises(LedgerError, match="cannot be written"):
        run_experiment(small(guard={"ledger": str(tmp_path / "taken" / "ledger")}))
    assert not list(small().directory.glob("kept/*"))


def test_findings_on_a_fit_stand_in_text_and_page_also_of_a_cached_ranker():
    """A Lasso that keeps no column gives all rows of a query one score."""
    grid = {"estimator": "sklearn.linear_model.Lasso", "grid": {"alpha": [5.0, 10.0]}}
    config = small(rankers={"lasso": grid}, guard="off", name="constant")
    for _ in range(2):
        result = run_experiment(config)
        (ranker,) = result.facts.candidates
        assert [finding.partition(":")[0] for finding in ranker.findings] == ["single_column", "constant"]
        note = f"lasso, {ranker.findings[1]}"
        assert note in result.report.read_text("utf-8")
        assert note in " ".join(experiment_text(result.facts, verbose=True).split())
        assert "The report has 2 notes on the fit." in " ".join(experiment_text(result.facts).split())


@pytest.mark.usefixtures("ledger")
def test_the_line_on_the_guard_stands_in_page_and_text_with_the_whole_head():
    rk.Guard("someone-else").register("theirs", rk.datasets.make_ranking(60, rng=5))
    result = run_experiment(small())
    guard = result.guard
    assert guard.head == rk.Guard("small").head
    for said in (guard.head, guard.plan, "1 look of project small at digits-test", "0 of other projects"):
        assert said in guard.line
    assert guard.line in experiment_text(result.facts, verbose=True)
    assert guard.looked in " ".join(experiment_text(result.facts).split())
    assert not re.search("[0-9a-f]{20}", experiment_text(result.facts))
    assert guard.line in html.unescape(result.report.read_text())
    assert guard.head in heads_in(result.report)


@pytest.mark.parametrize("deleted", ["all", "opening"])
def test_a_ledger_that_lost_what_the_last_report_names_is_not_opened_again(tmp_path, deleted):
    """The report is the only trace of the looks, and a second run would write over it as confirmatory."""
    ledger = tmp_path / "ledger"
    guard = {"ledger": str(ledger)}
    first = run_experiment(small(guard=guard))
    page = first.report.read_text()
    shutil.copytree(ledger, tmp_path / "copy")
    (ledger / f"{first.guard.head}.json").unlink()
    if deleted == "all":
        shutil.rmtree(ledger)
    left = sorted(ledger.glob("*"))
    with pytest.raises(LedgerError, match=rf"report\.html was .*{first.guard.head[:12]}.*Restore.*output\.directory"):
        run_experiment(small(guard=guard))
    assert (first.report.read_text(), sorted(ledger.glob("*"))) == (page, left)
    shutil.copytree(tmp_path / "copy", ledger, dirs_exist_ok=True)
    assert run_experiment(small(guard=guard)).looks_added == 0


@pytest.mark.further
def test_reports_of_another_ledger_or_of_none_or_in_another_folder_do_not_stop_a_run(tmp_path):
    for name in ("l2", "l"):
        assert run_experiment(small(guard={"ledger": str(tmp_path / name)})).looks_added == 1
    run_experiment(small(guard="off"))
    assert run_experiment(small(guard={"ledger": str(tmp_path / "l3")})).looks_added == 1
    report = small().directory / "report.html"
    report.write_text(report.read_text().replace(str(tmp_path / "l3"), str(tmp_path / "l4")))
    lost = {"ledger": str(tmp_path / "l4")}
    with pytest.raises(LedgerError, match="no longer contains it"):
        run_experiment(small(guard=lost))
    assert run_experiment(small(guard=lost, output={"directory": str(tmp_path / "new")})).looks_added == 1


@pytest.mark.further
@pytest.mark.usefixtures("ledger")
def test_a_report_that_another_run_writes_meanwhile_does_not_stop_a_run(tmp_path, monkeypatch):
    """The other run adds its entry and its report after this one has read the ledger."""
    run_experiment(small(output={"directory": str(tmp_path / "first")}))
    read, other = Ledger.read, []

    def overtaken(self):
        found = read(self)
        if not other:
            other.append(self)
            run_experiment(small(seed=1))
        return found

    monkeypatch.setattr(Ledger, "read", overtaken)
    assert run_experiment(small()).looks_added == 0
    assert small().directory.joinpath("report.html").exists()


@pytest.mark.parametrize(("guard", "why"), [("off", "experiment file switches"), ({}, "RANKEVAL_LEDGER=off")])
def test_without_a_guard_it_runs_and_the_report_says_so(guard, why):
    result = run_experiment(small(guard=guard, comparison={"test": "t", "correction": "holm"}))
    assert (result.guard.active, result.guard.standing, result.looks_added) == (False, "unguarded", 0)
    assert (result.comparison.settings.test, result.comparison.settings.correction) == ("t", "holm")
    page = result.report.read_text()
    assert "Not guarded" in page
    assert why in page


def test_the_files_of_a_run_stand_in_its_folder():
    result = run_experiment(small())
    assert result.directory == Path("rankeval-out/small")
    found = {str(path.relative_to(result.directory)) for path in result.directory.glob("**/*") if path.is_file()}
    assert found >= {"report.html", "comparison.csv", "experiment.yaml", "predictions/ridge.parquet"}
    assert rk.run_experiment(result.directory / "experiment.yaml").n_trained == 0
    frame = pd.read_parquet(result.predictions("ridge"))
    assert list(frame.columns) == ["qid", "relevance", "score", "docid"]
    assert len(frame) == len(load_parts(result.config).test)
    with pytest.raises(UnknownName, match="ridge"):
        result.predictions("rigde")


def test_progress_counts_up_to_its_total():
    seen = []
    run_experiment(small(), progress=lambda done, total, doing: seen.append((done, total, doing)))
    assert [done for done, _, _ in seen] == list(range(seen[0][1] + 1))
    assert "tuning tree" in [doing for _, _, doing in seen]


def test_a_loader_of_ones_own_stands_in_the_working_directory():
    Path("my_data.py").write_text(
        "import rankeval as rk\n"
        "def load(path, n_queries):\n"
        "    assert path == 'there'\n"
        "    return rk.datasets.make_ranking(n_queries, 8)\n"
        "def wrong():\n"
        "    return 3\n"
    )
    data = {"loader": "my_data:load", "path": "there", "arguments": {"n_queries": 40}}
    parts = load_parts(small(data=data))
    assert parts.dev.n_queries + parts.test.n_queries == 40
    with pytest.raises(ConfigError, match=r"returned int, expected rankeval\.RankingData"):
        load_parts(small(data={"loader": "my_data.wrong"}))
    with pytest.raises(ConfigError, match="missing a required argument: 'n_queries'"):
        load_parts(small(data={"loader": "my_data:load", "path": "there"}))


def test_a_missing_package_is_answered_with_the_extra_that_brings_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(ConfigError, match=r'pip install "rankeval-mlflow\[lightgbm\] @ '):
        run_experiment(small(rankers={**SMALL["rankers"], "tree": {"estimator": "lightgbm.LGBMRanker"}}))


def test_estimators_take_the_seed_of_the_experiment_unless_they_have_one():
    from rankeval.experiment.checks import make_estimator

    tree = small().rankers["tree"]
    assert make_estimator(tree, name="tree", seed=7).random_state == 7
    own = tree.model_copy(update={"params": {"random_state": 3}})
    assert make_estimator(own, name="tree", seed=7).random_state == 3


def test_the_digest_of_data_sees_every_value_and_the_order_of_rows():
    data = load_parts(small()).test
    digest = data_digest(data)
    assert digest == data_digest(data.take(np.arange(len(data))))
    assert digest != data_digest(data.take(np.arange(len(data))[::-1]))
    changed = data.X.copy()
    changed[5, 3] = np.nextafter(changed[5, 3], 2)
    assert digest != data_digest(rk.RankingData(changed, data.y, data.qid, docid=data.docid))


@pytest.mark.usefixtures("ledger")
def test_a_claim_with_its_margin_is_frozen_in_the_plan():
    result = run_experiment(small(comparison={"claim": "not_worse", "margin": 0.05}))
    assert (result.comparison.settings.claim, result.comparison.settings.margin) == ("not_worse", 0.05)
    plan = rk.Guard("small").plan(result.guard.plan)
    assert (plan.claim, plan.margin) == ("not_worse", 0.05)


@pytest.mark.usefixtures("ledger")
def test_a_dev_part_with_queries_of_the_test_part_is_refused_and_nothing_is_registered(monkeypatch):
    """A few queries stand in both parts under other ids: the ledger knows neither part yet."""
    whole = rk.datasets.load_digits_retrieval(n_queries=60, n_candidates=15)
    parts = rk.dev_test_split(whole, test_size=0.3)
    test = parts.test
    some = test.take(np.isin(test.qid, np.unique(test.qid)[:5]))
    dev = RankingData(
        np.vstack([parts.dev.X, some.X]),
        np.concatenate([parts.dev.y, some.y]),
        np.concatenate([parts.dev.qid, some.qid + 10_000]),
    )
    monkeypatch.setattr(checks, "split", lambda *_, **__: DataParts(dev, test, "rows"))
    with pytest.raises(GuardRefusal, match=r"nothing was registered: the training part contains queries"):
        run_experiment(small())
    assert not Path("ledger.db").exists()
    assert not list(small().directory.glob("kept/*"))


def other_tree(depth):
    return {
        **SMALL["rankers"],
        "tree": {"estimator": "sklearn.tree.DecisionTreeRegressor", "params": {"max_depth": depth}},
    }


@pytest.mark.further
@pytest.mark.usefixtures("ledger")
def test_fresh_queries_are_those_of_the_extended_test_part_that_nobody_saw():
    """All numbers of the report are about them: the other queries were not opened for these rankings."""
    run_experiment(small())
    more = {"loader": "digits", "arguments": {"n_queries": 150, "n_candidates": 15}}
    guard = {"fresh": True, "supersedes": "digits-test"}
    result = run_experiment(small(data=more, guard=guard, rankers=other_tree(3)))
    (fresh,) = result.comparison.table["n_queries"]
    assert result.guard.standing == "confirmatory"
    assert 40 < fresh < load_parts(small(data=more)).test.n_queries
    assert {one.n_queries for one in result.evaluations.values()} == {fresh}


@pytest.mark.usefixtures("ledger")
def test_the_first_look_of_a_project_says_that_others_looked():
    run_experiment(small())
    result = run_experiment(small(guard={"project": "another"}, rankers=other_tree(3)))
    assert (result.guard.standing, result.guard.elsewhere) == ("first look of this project", 1)
    assert "1 of other projects" in result.guard.line
    assert "EXPLORATORY: the first look of this project, but others had looked" in experiment_text(result.facts)
    page = result.report.read_text()
    assert re.search("exploratory for nDCG@10: the first\\s+look of this project", page)
