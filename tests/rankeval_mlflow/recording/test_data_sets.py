"""The data set of a run, given as MLflow's own: it says where the data lies, and what was evaluated."""

from __future__ import annotations

import json

import mlflow
import numpy as np
import pandas as pd
import pytest
from servers.tracking import Server
from sklearn.linear_model import Ridge

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval.errors import InvalidInput

PLACE = "s3://shop/rows.parquet"


@pytest.fixture
def rows():
    return pd.DataFrame({"price": np.arange(160.0), "relevance": np.arange(160) % 3})


@pytest.fixture
def dataset(rows):
    return mlflow.data.from_pandas(rows, source=PLACE, name="shop-dev", targets="relevance")


def _inputs(run):
    """Return name, digest, place and our tags of each input."""
    return [
        (each.dataset, {tag.key: tag.value for tag in each.tags})
        for each in mlflow.get_run(run.run_id).inputs.dataset_inputs
    ]


def test_a_data_set_of_mlflow_says_where_the_data_lies(dataset, small):
    """With its own digest, schema and profile; our digest and the role are tags."""
    ev = small()
    ((used, tags),) = _inputs(rkm.log(ev, role="dev", data=dataset))
    assert (used.name, used.digest, used.source_type) == ("shop-dev", dataset.digest, "s3")
    assert json.loads(used.source)["uri"] == PLACE
    assert used.schema == dataset.to_dict()["schema"]
    assert json.loads(used.profile) == {"num_rows": 160, "num_elements": 320, "num_queries": 20}
    assert tags["rankeval.digest"] == ev.judgments_digest
    assert tags["mlflow.data.context"] == "dev"
    board = rkm.leaderboard("Default", data="shop-dev")
    assert board.table["system"].tolist() == ["ridge"]


def test_it_is_the_data_set_that_mlflow_logs_itself(dataset, small):
    """One data set of the store, so that its runs are found together."""
    with mlflow.start_run() as run:
        mlflow.log_input(dataset, "dev")
        logged = rkm.log(small(), role="dev", data=dataset)
    ((used, _),) = _inputs(logged)
    assert logged.run_id == run.info.run_id
    assert used.digest == dataset.digest


@pytest.mark.parametrize("digest", [None, "d" * 36])
def test_one_data_set_in_two_roles_of_a_run_keeps_both(digest, rows, small):
    """MLflow keeps one input for each name and digest, which has at most 36 characters."""
    given = mlflow.data.from_pandas(rows, source=PLACE, name="shop", digest=digest)
    run = rkm.log(small(), role="dev", data=given)
    rkm.log(small("other", seed=1), role="test", run_id=run.run_id, data=given)
    found = _inputs(run)
    assert {tags["mlflow.data.context"] for _, tags in found} == {"dev", "test"}
    assert {json.loads(used.source)["uri"] for used, _ in found} == {PLACE}
    assert all(len(used.digest) <= 36 for used, _ in found)
    assert {tags["rankeval.digest"] for _, tags in found} == {small().judgments_digest}


def test_cross_validations_and_comparisons_take_it_too(dataset, small):
    """Of arrays without a name the name is that of the judgments."""
    made = rk.datasets.make_ranking(20, 8, rng=0)
    nameless = mlflow.data.from_numpy(np.asarray(made.X), source=PLACE)
    cv = rk.cross_validate(Ridge(), made, measures="AP", cv=2)
    ((used, _),) = _inputs(rkm.log(cv, data=nameless))
    assert (used.name[:10], used.digest) == ("judgments-", nameless.digest)
    compared = rk.compare({"a": small("a"), "b": small("b", seed=1)}, baseline="a")
    ((used, tags),) = _inputs(rkm.log(compared, data=dataset))
    assert (used.name, tags["rankeval.digest"]) == ("shop-dev", small().judgments_digest)
    with pytest.raises(InvalidInput, match=r"data.*DataFrame.*mlflow.data.Dataset"):
        rkm.log(compared, data=pd.DataFrame())


@pytest.mark.rest
def test_a_schema_that_no_server_takes_is_left_out(small):
    """MLflow takes a megabyte."""
    wide = pd.DataFrame(np.zeros((2, 20_000)), columns=[f"column_{number:06}" for number in range(20_000)])
    given = mlflow.data.from_pandas(wide, source=PLACE, name="wide")
    assert len(given.to_dict()["schema"]) > 1_048_575
    ((used, _),) = _inputs(rkm.log(small(), data=given))
    assert (used.schema, used.digest) == (None, given.digest)


@pytest.mark.server
def test_a_server_keeps_the_place_without_the_password(server: Server, small, rows):
    """After a stay on disk: what was waiting is read back and sent."""
    given = mlflow.data.from_pandas(rows, source="https://me:hidden@host/rows.csv", name="web")
    mlflow.set_tracking_uri(server.uri)
    ((used, _),) = _inputs(rkm.log(small(), role="dev", data=given))
    assert (used.name, used.digest, used.source_type) == ("web", given.digest, "http")
    assert "host/rows.csv" in used.source
    assert "hidden" not in used.source
