"""What a store would refuse for good is found out, or cut, before anything is spooled."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import rankeval_mlflow as rkm
from rankeval.errors import InvalidInput
from rankeval.tracking import RunRecord, host
from rankeval_mlflow.delivery.payload import Node, Payload, Target, cut, storable
from rankeval_mlflow.delivery.spool import checked_path, waiting

LONG = "x" * 10_000


def test_names_of_ten_thousand_characters_are_cut_and_all_is_logged(small, client, assert_same):
    evaluation = small(LONG)
    run_id = rkm.log(evaluation, data=LONG).run_id
    run = client.get_run(run_id)
    assert len(run.info.run_name) <= 250
    (used,) = run.inputs.dataset_inputs
    assert len(used.dataset.name) <= 500
    assert_same(evaluation, rkm.load_evaluation(run_id))


def test_cut_names_that_differ_stay_different():
    assert cut("short", 250) == "short"
    assert cut(LONG, 250) != cut(LONG + "y", 250)
    assert len(cut(LONG, 250)) == 250
    assert cut("two\nlines\0", 250) == "two lines "


@pytest.mark.parametrize(("name", "says"), [("x" * 600, "has 600 characters"), ("", "expected a name")])
def test_an_experiment_that_cannot_be_made_is_refused_before_anything_waits(name, says):
    with pytest.raises(InvalidInput, match=says):
        host("mlflow").tracker().log(RunRecord("run"), experiment=name)
    assert waiting() == []


@pytest.mark.parametrize("part", ["metrics", "params", "tags", "steps"])
def test_a_name_that_mlflow_refuses_is_told_by_its_name(part):
    given = {
        "metrics": {"nDCG@10": 0.5},
        "params": {"nDCG@10": "1"},
        "tags": {"nDCG@10": "1"},
        "steps": (("nDCG@10", 0.5, 1),),
    }
    payload = Payload(Target("http://127.0.0.1:9"), Node("run", "record"), 0)
    assert storable(payload) == payload
    with pytest.raises(InvalidInput, match="MLflow does not take the name 'nDCG@10'; it takes 'nDCG_at_10'"):
        storable(
            replace(payload, root=Node("run", "record", children=(Node("child", "record", **{part: given[part]}),)))
        )


def test_a_long_name_that_mlflow_refuses_is_cut_in_the_error():
    """To 80 characters, which end with a digest of the whole; the name to use instead has as many."""
    payload = Payload(Target("http://127.0.0.1:9"), Node("run", "record", metrics={"@" * 200: 0.5}), 0)
    with pytest.raises(InvalidInput) as caught:
        storable(payload)
    shown = re.findall(r"'([^']*)'", caught.value.problem)
    assert [len(name) for name in shown] == [80, 80]


@pytest.mark.parametrize("path", ["a\0b", "a\nb", "a/b\r", "\x1b[0m", "x" * 241, "/".join(["abcdefghi"] * 120)])
def test_a_path_that_no_file_can_have_is_refused_and_nothing_is_left(path, spool):
    with pytest.raises(InvalidInput, match="path of a file"):
        host("mlflow").tracker().log(RunRecord("run", artifacts={path: b"x"}), experiment="letor")
    assert waiting() == []
    assert not spool.exists() or list(spool.iterdir()) == []


@pytest.mark.parametrize("path", ["a b.txt", "100%.txt", "a#b.txt", "é/ü.txt", "x" * 240])
def test_an_odd_path_that_files_can_have_is_taken(path, client):
    assert str(checked_path(path)) == path
    run_id = host("mlflow").tracker().log(RunRecord("run", artifacts={path: b"x"}), experiment="letor").run_id
    folder, _, name = path.rpartition("/")
    assert path in [file.path for file in client.list_artifacts(run_id, folder or None)], name
