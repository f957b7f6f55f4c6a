"""The host `files` logs runs as folders, and writes their numbers beside them in the form of DVC."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import yaml
from tables import each_row

import rankeval as rk
from rankeval import cli
from rankeval.errors import ConfigError
from rankeval.experiment import load_config, run_experiment
from rankeval.shelf.files import HOST
from rankeval.tracking import RunRecord

SMALL = [
    "data.arguments={n_queries: 40, n_candidates: 10}",
    "rankers.boosted-trees.params={max_iter: 3}",
    "rankers.boosted-trees.grid={}",
    "cv.n_splits=2",
]
ROWS = {"qid": ["a", "a", "b", "b"], "measures": ["RR"]}


def logged(record, **options):
    """Log a record, and return the record in its folder."""
    run = HOST.tracker().log(record, experiment="first", **options)
    folder = run.where.partition("(")[2].strip("')")
    assert run.where == f"rankeval.read_record({folder!r})"
    return rk.read_record(folder)


def record(**fields):
    ridge = RunRecord(
        "ridge",
        {"alpha": 10.0, "estimator": "Ridge"},
        {"tuning_seconds": 0.5, "undefined": float("nan")},
        evaluations={"test": rk.evaluate([1, 0, 0, 1], [2, 1, 2, 1], **ROWS)},
        artifacts={"predictions/ridge.parquet": b"rows"},
        model=object(),
    )
    given = {"params": {"seed": 0, "baseline": "ridge"}, "children": (ridge,), "started": 1e9, "key": "0123456789"}
    return RunRecord("first try", **given | fields)


def test_a_run_is_a_folder_with_its_children_and_evaluations():
    """What is not stored is said."""
    found = logged(record(tags={"rankeval.kind": "experiment", "rankeval.headline": "A beats B."}))
    assert (found.kind, found.name, found.headline) == ("experiment", "first try", "A beats B.")
    ridge = found.children["ridge"]
    assert ridge.files["predictions/ridge.parquet"] == b"rows"
    assert ridge.notes == ("the fitted ranker is not stored",)
    assert ridge.parts["test"].metrics["RR"] == 0.75
    (folder,) = Path("results/first").glob("first try-*/children/ridge/parts/test")
    assert rk.load(folder).per_query["RR"].tolist() == [1.0, 0.5]
    assert folder.parents[3].name == "first try-20010909-014640-01234567"


def test_each_run_has_a_folder_of_its_own_and_a_failed_one_says_why():
    """The numbers for DVC are those of the last whole run."""
    logged(record())
    before = Path("results/first/metrics.json").read_bytes()
    failed = logged(RunRecord("first try", status="FAILED", reason="GuardRefusal: no", started=2e9), uri=None)
    assert (failed.status, failed.notes) == ("FAILED", ("GuardRefusal: no",))
    assert Path("results/first/metrics.json").read_bytes() == before
    assert len([*Path("results/first").glob("*/record.json")]) == 2


# DVC 3.67.1 on the two files: `dvc metrics show --json` has the metrics under "data", and after a commit, a second run
# with alpha 1.0 and `dvc params diff --json` the parameters.
OF_DVC = {"ridge": {"tuning_seconds": 0.5, "test": {"RR": 0.75, "RR_ci_low": 0.0, "RR_ci_high": 1.0}}}
DIFFERENCE_OF_DVC = {"ridge.alpha": {"old": 10.0, "new": 1.0, "diff": -9.0}}


def flat(params):
    """Name nested parameters as DVC does."""
    named = {}
    for name, value in params.items():
        inner = {f"{name}.{key}": within for key, within in flat(value).items()} if isinstance(value, dict) else {}
        named |= inner or {name: value}
    return named


def test_metrics_and_parameters_are_as_dvc_reads_them():
    """Plain nested numbers; what is undefined is left out, since JSON has no word for it."""
    logged(record())
    assert json.loads(Path("results/first/metrics.json").read_text()) == OF_DVC
    params = flat(yaml.safe_load(Path("results/first/params.yaml").read_text()))
    assert params == {"seed": 0, "baseline": "ridge", "ridge.alpha": 10.0, "ridge.estimator": "Ridge"}
    child = RunRecord("ridge", {"alpha": 1.0, "estimator": "Ridge"})
    logged(record(children=(child,), key="9876543210"))
    after = flat(yaml.safe_load(Path("results/first/params.yaml").read_text()))
    changed = {key: {"old": old, "new": after[key]} for key, old in params.items() if old != after[key]}
    assert changed == {key: {"old": row["old"], "new": row["new"]} for key, row in DIFFERENCE_OF_DVC.items()}


def test_an_experiment_logs_to_folders_by_the_name_of_the_host(capsys, monkeypatch):
    """The line of the result is the host's."""
    settings = [part for setting in [*SMALL, "tracking.host=files"] for part in ("--set", setting)]
    monkeypatch.setattr(sys, "argv", ["rankeval", "run", "quickstart", *settings])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert not stop.value.code
    out = capsys.readouterr().out
    assert "Folder:  rankeval.read_record('results/quickstart/quickstart-" in out
    assert "MLflow" not in out
    (folder,) = Path("results/quickstart").glob("quickstart-*/record.json")
    found = rk.read_record(folder.parent)
    assert {*found.children} == {"ridge", "boosted-trees"}
    assert {*found.children["ridge"].parts} == {"dev", "test"}
    assert rk.load(folder.parent / "children/ridge/parts/dev").evaluation.n_queries == 33
    assert rk.load(folder.parent / "parts/comparison").headline == found.headline


def test_without_mlflow_a_run_is_refused_before_it_trains(monkeypatch):
    """With the line to install, and with the host that needs no server."""
    monkeypatch.setattr("rankeval.experiment.checks.Checked.parts", None)
    monkeypatch.setitem(sys.modules, "mlflow", None)
    for module in [name for name in sys.modules if name.startswith(("mlflow.", "rankeval_mlflow."))]:
        monkeypatch.delitem(sys.modules, module)
    with pytest.raises(ConfigError) as caught:
        run_experiment(load_config("quickstart", SMALL))
    assert caught.value.argument == "tracking"
    assert "--set tracking.host=files" in caught.value.remedy
    assert "pip install" in caught.value.remedy


@each_row("uri", ["sqlite:///mlflow.db", "http://127.0.0.1:5000", "here.txt"])
def test_an_address_that_is_no_folder_is_refused_before_data_is_loaded(uri, monkeypatch):
    """The address of another host is left in the file."""
    monkeypatch.setattr("rankeval.experiment.checks.Checked.parts", None)
    Path("here.txt").touch()
    with pytest.raises(ConfigError) as caught:
        run_experiment(load_config("quickstart", [*SMALL, f"tracking={{host: files, uri: '{uri}'}}"]))
    assert caught.value.argument == "tracking"
