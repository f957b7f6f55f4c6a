"""rankeval push: saved results become runs, and a run refuses another result of one label."""

from __future__ import annotations

import mlflow
import pytest
from typer.testing import CliRunner

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval.cli import app
from rankeval.errors import InvalidInput


@pytest.mark.usefixtures("installed_plugin")
def test_a_saved_result_becomes_a_run_once_and_another_of_its_label_is_refused(small, client, tmp_path):
    first, other = small("first"), small("other", seed=1)
    for ev in (first, other):
        rk.save(ev, tmp_path / ev.name, role="test")
    given = ["--experiment", "letor", "--uri", mlflow.get_tracking_uri()]

    def pushed(name, *more):
        done = CliRunner().invoke(app, ["push", str(tmp_path / name), *given, *more])
        if isinstance(done.exception, InvalidInput):
            raise done.exception
        assert done.exit_code == 0, done.output

    pushed("first")
    experiment = client.get_experiment_by_name("letor").experiment_id
    (run,) = client.search_runs([experiment])
    assert (run.info.run_name, run.data.metrics["AP"]) == ("first", first.aggregate()["AP"])
    assert rkm.load(run.info.run_id).per_query.equals(first.per_query)
    pushed("first", "--run", run.info.run_id)
    with pytest.raises(InvalidInput, match="already has an evaluation of role 'test' with other content"):
        pushed("other", "--run", run.info.run_id)
    (again,) = client.search_runs([experiment])
    assert again.data.metrics == run.data.metrics
    assert len(client.get_metric_history(run.info.run_id, "AP")) == 1
