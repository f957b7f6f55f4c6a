"""What is kept of a candidate comes back to the last bit; a damaged file is named, whatever is wrong with it."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput
from rankeval.experiment.training import Trained, read_cached, write_cached


@pytest.fixture
def tuned():
    data = rk.datasets.make_ranking(30, 6, rng=0)
    validation = rk.cross_validate(Ridge(), data, measures=["nDCG@10", "AP"], cv=3, name="ridge")
    search = pd.DataFrame({"alpha": [1.0], "mean nDCG@10": [0.5]})
    return Trained({"alpha": np.float64(1.0)}, search, validation, np.arange(3) / 7, 1.5, 4)


def test_what_is_kept_comes_back(tuned, tmp_path):
    write_cached(tmp_path / "kept", replace(tuned, model=b"model"), host="a/host")
    found = read_cached(tmp_path / "kept", name="renamed", host="a/host")
    one, other = tuned.validation, found.validation
    pd.testing.assert_frame_equal(one.folds, other.folds, check_exact=True)
    np.testing.assert_array_equal(one.predictions, other.predictions)
    np.testing.assert_array_equal(one.evaluation.scores, other.evaluation.scores)
    assert one.splits == other.splits
    assert found.validation.evaluation.name == "renamed"
    np.testing.assert_array_equal(tuned.scores, found.scores)
    assert (found.params, found.seconds, found.n_iterations) == ({"alpha": 1.0}, 1.5, 4)
    assert found.model == b"model"
    assert read_cached(tmp_path / "kept", name="renamed", host="other").model is None
    assert read_cached(tmp_path / "nothing", name="renamed", host="a/host") is None


def without_params(record):
    del record["facts"]["params"]


def endless(record):
    record["facts"]["seconds"] = []


@each_row("damage", [without_params, endless])
def test_a_damaged_file_is_named(damage, tuned, tmp_path):
    write_cached(tmp_path / "kept", tuned, host="")
    path = tmp_path / "kept" / "record.json"
    record = json.loads(path.read_text())
    damage(record)
    path.write_text(json.dumps(record))
    with pytest.raises(InvalidInput, match=r"kept is damaged \("):
        read_cached(tmp_path / "kept", name="ridge", host="")


@each_row(
    "name",
    [
        "parts/validation/parts/dev/evaluation",
        "parts/validation/tables/folds",
        "parts/validation/tables/predictions",
        "tables/scores",
    ],
)
def test_a_table_that_was_cut_off_is_named(name, tuned, tmp_path):
    write_cached(tmp_path / "kept", tuned, host="")
    path = tmp_path / "kept" / f"{name}.parquet"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InvalidInput, match=r"kept is damaged"):
        read_cached(tmp_path / "kept", name="ridge", host="")


def test_a_full_disk_names_the_folder_of_the_cache(tuned, tmp_path, monkeypatch):

    def fails(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "open", fails)
    with pytest.raises(InvalidInput, match=r"cannot write .*kept.*No space left"):
        write_cached(tmp_path / "kept", tuned, host="a")
    assert not [*tmp_path.iterdir()]
