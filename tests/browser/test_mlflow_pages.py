"""MLflow's own pages of what we log, in a real browser: values, durations and tables are there, and names stay text.

Set RANKEVAL_PICTURES to a folder to keep the pictures that each test takes of what it saw.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from pathlib import Path
from urllib.parse import quote

import mlflow
import numpy as np
import pytest
from browser.chromium import browser
from servers import tracking
from sklearn.linear_model import Ridge

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval.experiment import run_experiment
from rankeval.tracking import RunRecord, host
from rankeval_mlflow.run_names import VIEW_ADDRESS

pytestmark = [pytest.mark.browser, pytest.mark.server]

EVIL = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"
LONG = "x" * 10_000
EVIL_SYSTEM = "<img src=x onerror=\"document.title='taken'\">"
IDS = [EVIL, f"{LONG}1", f"{LONG}2", *(f"q{place:03d}" for place in range(57))]
TRAINING = "workflowType=machine_learning"
NO_DURATION = re.compile(r"(?<![0-9])0ms")  # and not the end of 390ms

# The page asks who is logged in; a server without accounts has no answer. The rest is of MLflow's own libraries.
THEIRS = (
    "users/current",
    "AG Grid",
    "A component",
    "Download the React DevTools",
    "is deprecated",
    "ResizeObserver",
)


class Logged:
    """The runs that the tests look at."""

    def __init__(self, uri: str, folder: Path) -> None:
        self.uri, self.folder = uri, folder
        mlflow.set_experiment("pages")
        labels = np.random.default_rng(7).integers(0, 3, 8 * len(IDS))
        qid = np.repeat(np.array(IDS, dtype=object), 8)

        def scored(name, quality, seed):
            scores = quality * labels + np.random.default_rng(seed).normal(size=len(labels))
            return rk.evaluate(labels, scores, qid=qid, measures=["nDCG@10", "AP", "RR"], name=name)

        self.systems = {
            "bm25": scored("bm25", 0.2, 0),
            "ltr": scored("ltr", 0.8, 1),
            EVIL_SYSTEM: scored(EVIL_SYSTEM, 0.5, 2),
        }
        self.runs = {name: rkm.log(one, role="dev", data="letor") for name, one in self.systems.items()}
        with mlflow.start_run(run_name="epochs") as run:
            for step in range(4):
                rkm.log(scored("net", 0.2 * step, 3), role="dev", data="letor", step=step, report=False)
            rkm.log(self.systems["ltr"], role="test", data="letor")
            self.epochs = run.info.run_id
        compared = rk.compare({**self.systems, LONG: scored(LONG, 0.6, 4)}, baseline="bm25")
        self.comparison = rkm.log(compared, data="letor")
        self.experiment_id = mlflow.get_run(self.epochs).info.experiment_id
        self.trained = self._trained()
        self.modelled = self._modelled()

    def _modelled(self):
        made = rk.datasets.make_ranking(30, 10, rng=0)
        ranker = rk.QueryRanker(Ridge()).fit(made.X, made.y, qid=made.qid)
        evaluation = rk.evaluate(
            made.y, ranker.predict(made.X), qid=made.qid, measures=["nDCG@10", "AP"], name="linear"
        )
        record = RunRecord("linear", {"alpha": 1.0}, evaluations={"dev": evaluation}, model=ranker, rows=made.X[:5])
        return host("mlflow").tracker().log(record, experiment="modelled", uri=self.uri)

    def _trained(self):
        config = {
            "name": "trained",
            "data": {"loader": "digits", "arguments": {"n_queries": 30}},
            "rankers": {
                "plain": {"estimator": "sklearn.linear_model.Ridge"},
                "tuned": {"estimator": "sklearn.linear_model.Ridge", "grid": {"alpha": [0.1, 100.0]}},
            },
            "guard": "off",
            "tracking": {"uri": self.uri, "experiment": "trained"},
            "output": {"directory": str(self.folder / "trained")},
        }
        result = run_experiment(config)
        assert result.tracking_error is None, result.tracking_error
        return result.tracked


@pytest.fixture(scope="module")
def logged(tmp_path_factory, empty_database):
    folder = tmp_path_factory.mktemp("pages")
    (folder / "mlflow.db").write_bytes(empty_database.read_bytes())
    with contextlib.ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        server = stack.enter_context(tracking.running(folder, f"sqlite:///{folder}/mlflow.db"))
        patch.setenv("RANKEVAL_SPOOL", str(folder / "spool"))
        for name in ("MLFLOW_EXPERIMENT_ID", "MLFLOW_EXPERIMENT_NAME"):
            patch.setenv(name, "")  # so that it is put back: `mlflow.set_experiment` sets it
            patch.delenv(name)
        patch.setattr("mlflow.tracking.fluent._active_experiment_id", None)
        mlflow.set_tracking_uri(server.uri)
        yield Logged(server.uri, folder)
        mlflow.set_tracking_uri(None)


@pytest.fixture(scope="module")
def tab(tmp_path_factory, logged):
    with browser(tmp_path_factory.mktemp("browser")) as found:
        found.open(logged.uri)
        # MLflow opens a chat beside every page at a browser's first visit.
        found.run("localStorage.setItem('mlflow.assistant.panelOpen_v1', 'false')")
        found.run("localStorage.setItem('mlflow.assistant.fab.autoOpenedOnFirstLoad_v1', 'true')")
        yield found


@pytest.fixture
def page(tab, logged, tmp_path, request):
    """Return a function that opens a page and waits for a text on it; at the end look for faults and take pictures."""
    pictures = Path(os.environ.get("RANKEVAL_PICTURES") or tmp_path)
    pictures.mkdir(parents=True, exist_ok=True)
    opened, taken = [], []

    def picture():
        tab.wait("!document.querySelector('[aria-busy=true]')")
        number = f"_{len(taken) + 1}" if taken else ""
        taken.append(pictures / f"{request.node.name.removeprefix('test_')[:70]}{number}.png")
        tab.picture(taken[-1])

    def open_page(address, text, **settings):
        if opened:
            picture()
        opened.append(address)
        tab.open("about:blank")
        tab.open(address if "://" in address else f"{logged.uri}/#{address}", **{"width": 1600, **settings})
        tab.wait(f"document.body.innerText.includes({json.dumps(text)})")
        return tab

    tab.said.clear()
    yield open_page
    picture()
    assert tab.run("document.title") != "taken"
    said = [one for one in tab.said if not any(known in one for known in THEIRS)]
    errors = [one for one in said if '"error"' in one or "exception" in one.lower()]
    assert not errors
    assert all(path.stat().st_size > 10_000 for path in taken)


def shown(tab):
    return tab.run("document.body.innerText")


def alone(address, folder):
    """Return the address of an artifact that is a page, as a file: MLflow shows it in a closed frame."""
    path = folder / "page.html"
    path.write_text(mlflow.artifacts.load_text(address), encoding="utf-8")
    return path.as_uri()


def is_narrow(tab):
    """Return whether the page fits into its window."""
    return tab.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def run_page(logged, run_id, tail=""):
    return f"/experiments/{logged.experiment_id}/runs/{run_id}{tail}?{TRAINING}"


def values(tab, heading):
    """Return the rows of the table of metrics or parameters, under its heading."""
    return tab.run(
        "[...document.querySelectorAll('[role=table]')].flatMap((table) =>"
        f" table.innerText.startsWith({json.dumps(heading)}) ?"
        " [...table.querySelectorAll('[role=row]')].slice(1).map("
        "(row) => [...row.querySelectorAll('[role=cell]')].map((cell) => cell.innerText)) : [])"
    )


def test_the_address_opens_the_run_in_the_menu_for_training(page, logged):
    """With duration, parameters, metrics, data set, short tags and description."""
    tab = page(logged.runs["ltr"].where, "Parameters (5)")
    text = shown(tab)
    assert "Model registry" in text
    assert "Evaluation runs" not in text, "the menu is that of language models"
    assert not NO_DURATION.search(text)
    params = dict(values(tab, "Parameter"))
    assert params == {"system": "ltr", "measure": "nDCG@10", "convention": "rankeval", "data": "letor", "role": "dev"}
    metrics = [row[0] for row in values(tab, "Metric")]
    assert metrics[0] == "nDCG_at_10"
    assert set(metrics) == {f"{key}{end}" for key in ("nDCG_at_10", "AP", "RR") for end in ("", "_ci_low", "_ci_high")}
    assert "letor (" in text
    assert '{"' not in text, "a tag holds JSON"
    assert "ltr, dev: 60 queries, convention rankeval" in text


def test_the_queries_are_a_table_the_worst_first_and_ids_are_text(page, logged):
    path = "/artifacts/rankeval/dev/queries.json"
    tab = page(run_page(logged, logged.runs["bm25"].run_id, path), "View as table")
    tab.wait("document.querySelectorAll('[role=row]').length > 10")
    rows = tab.run(
        "[...document.querySelectorAll('[role=row]')].slice(1).map("
        "(row) => [...row.querySelectorAll('[role=cell]')].map((cell) => cell.innerText))"
    )
    scores = [float(row[1]) for row in rows if len(row) > 2]
    assert len(scores) > 10
    assert scores == sorted(scores)
    worst = logged.systems["bm25"].per_query["nDCG@10"].min()
    assert scores[0] == pytest.approx(worst, abs=1e-6)
    heads = tab.run("[...document.querySelectorAll('[role=columnheader]')].map((head) => head.innerText)")
    assert heads[:4] == ["query", "nDCG@10", "AP", "RR"]
    assert tab.run("Math.max(...[...document.querySelectorAll('[role=row]')].map((row) => row.offsetHeight))") < 60


def test_the_report_stands_among_the_artifacts_and_long_ids_push_nothing_off(page, logged, tmp_path):
    tab = page(run_page(logged, logged.runs["bm25"].run_id, "/artifacts/rankeval/dev/report.html"), "report.html")
    tab.wait("document.querySelector('iframe')")
    tab = page(alone(f"runs:/{logged.runs['bm25'].run_id}/rankeval/dev/report.html", tmp_path), "Scores")
    while tab.run("!document.getElementById('queries-more').hidden"):
        tab.click("#queries-more")
    heights = tab.run("[...document.querySelectorAll('#queries-table tbody tr')].map((row) => row.offsetHeight)")
    assert len(heights) == len(IDS)
    assert max(heights) < 160
    assert is_narrow(tab)


def test_a_comparison_has_its_result_data_settings_and_intervals(page, logged):
    tab = page(logged.comparison.where, "Parameters (")
    text = shown(tab)
    assert not NO_DURATION.search(text)
    assert "letor (" in text
    assert "beats bm25" in text
    params = dict(values(tab, "Parameter"))
    assert (params["baseline"], params["test"], params["correction"]) == ("bm25", "t", "holm")
    assert EVIL_SYSTEM in params["systems"]
    assert len(params["systems"]) < 300
    metrics = dict(values(tab, "Metric"))
    assert {f"difference/nDCG_at_10{end}" for end in ("", "_p_adjusted", "_ci_low", "_ci_high")} <= set(metrics)
    assert params["system"] == "ltr"


def test_the_page_of_a_comparison_shows_its_result_first(page, logged, tmp_path):
    tab = page(run_page(logged, logged.comparison.run_id, "/artifacts/rankeval/comparison/report.html"), "report.html")
    tab.wait("document.querySelector('iframe')")
    tab = page(alone(f"runs:/{logged.comparison.run_id}/rankeval/comparison/report.html", tmp_path), "Comparison")
    assert "beats bm25" in shown(tab)[:400]
    assert EVIL_SYSTEM in shown(tab)
    assert is_narrow(tab)


def test_the_table_of_runs_shows_durations_data_and_the_measures(page, logged):
    """The measures in the view that we save; of itself MLflow shows no metric there."""
    tab = page(f"/experiments/{logged.experiment_id}/runs?{TRAINING}&{VIEW_ADDRESS}", "matching runs", width=2200)
    tab.wait("document.body.innerText.includes('nDCG_at_10')")
    text = shown(tab)
    assert not NO_DURATION.search(text)
    assert "Rankings" in text
    assert {"nDCG_at_10", "AP", "RR", "system"} <= set(text.split("\n"))
    best = logged.systems["ltr"].aggregate()["nDCG@10"]
    assert str(best)[:6] in text
    assert EVIL_SYSTEM[:10] in text


def test_the_list_of_experiments_stands(page):
    tab = page("/experiments", "pages")
    assert "trained" in shown(tab)


def test_runs_are_compared_by_parameters_and_metrics(page, logged):
    runs = quote(json.dumps([logged.runs[name].run_id for name in ("bm25", "ltr")]))
    experiments = quote(json.dumps([logged.experiment_id]))
    tab = page(f"/compare-runs?runs={runs}&experiments={experiments}&{TRAINING}", "Run details", height=2000)
    text = tab.wait("document.body.innerText.includes('Parameters') && document.body.innerText")
    assert "system" in text
    assert "nDCG_at_10" in text
    assert {"bm25", "ltr"} <= set(text.split("\n"))
    tab.wait("document.querySelector('.js-plotly-plot')")


def test_charts_of_runs_show_the_measures(page, logged):
    tab = page(
        f"/experiments/{logged.experiment_id}/runs?{TRAINING}&compareRunsMode=CHART",
        "Model metrics",
        height=2400,
    )
    tab.wait("document.querySelectorAll('.js-plotly-plot').length > 0")
    assert "Model metrics" in shown(tab)


def test_the_metrics_of_a_run_with_steps_are_curves(page, logged):
    tab = page(run_page(logged, logged.epochs, "/model-metrics"), "AP_ci_low", height=2400)
    tab.wait("document.body.innerText.includes('nDCG_at_10')")
    tab.wait("document.querySelectorAll('.js-plotly-plot .scatterlayer').length > 0")


def test_dev_and_test_of_one_content_are_both_shown(page, logged):
    tab = page(run_page(logged, logged.epochs), "Parameters (")
    assert "+1" in shown(tab).split("\n"), "MLflow shows the first, and how many there are besides"


def test_the_run_of_an_experiment_has_the_metrics_of_the_best_ranker_and_a_table_of_all(page, logged):
    parent = mlflow.get_run(logged.trained.run_id)
    tab = page(f"/experiments/{parent.info.experiment_id}/runs/{parent.info.run_id}?{TRAINING}", "Parameters (")
    text = shown(tab)
    assert not NO_DURATION.search(text)
    metrics = dict(values(tab, "Metric"))
    assert "test/nDCG_at_10" in metrics
    assert "nDCG_at_10" in metrics
    params = dict(values(tab, "Parameter"))
    assert params["system"] in {"plain", "tuned"}
    tab = page(
        f"/experiments/{parent.info.experiment_id}/runs/{parent.info.run_id}/artifacts/rankeval/record/rankers.json"
        f"?{TRAINING}",
        "View as table",
    )
    tab.wait("document.querySelectorAll('[role=row]').length >= 3")
    assert {"plain", "tuned"} <= set(shown(tab).split("\n"))


def test_an_experiment_stands_in_the_table_with_the_metrics_of_its_best_ranker(page, logged):
    parent = mlflow.get_run(logged.trained.run_id)
    tab = page(f"/experiments/{parent.info.experiment_id}/runs?{TRAINING}&{VIEW_ADDRESS}", "matching runs", width=2200)
    tab.wait("document.body.innerText.includes('nDCG_at_10')")
    assert not NO_DURATION.search(shown(tab))


def test_the_model_of_a_ranker_has_its_page(page, logged):
    (model_id,) = logged.modelled.models
    experiment_id = mlflow.get_run(logged.modelled.run_id).info.experiment_id
    tab = page(f"/experiments/{experiment_id}/models/{model_id}?{TRAINING}", "Model ID")
    text = tab.wait("document.body.innerText.includes('nDCG_at_10') && document.body.innerText")
    assert "READY" in text.upper()


def test_an_experiment_opens_with_its_report(page, logged):
    parent = mlflow.get_run(logged.trained.run_id)
    tab = page(
        f"/experiments/{parent.info.experiment_id}/runs/{parent.info.run_id}/artifacts/rankeval/record/report.html"
        f"?{TRAINING}",
        "report.html",
    )
    tab.wait("document.querySelector('iframe')")
