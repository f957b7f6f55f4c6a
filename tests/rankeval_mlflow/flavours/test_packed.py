"""A packed ranker comes back as the files that `saved` made; other bytes are refused."""

from __future__ import annotations

import io
import zipfile

import pytest
from lightgbm import LGBMRanker
from sklearn.linear_model import Ridge

import rankeval as rk
from rankeval.errors import InvalidInput
from rankeval_mlflow.saving import packed_model, saved, unpacked_model

LIGHT = {"n_estimators": 5, "n_jobs": 1, "verbose": -1}


@pytest.mark.parametrize("estimator", [Ridge(), LGBMRanker(**LIGHT)], ids=["sklearn", "lightgbm"])
def test_what_was_packed_comes_back(estimator):
    data = rk.datasets.make_ranking(30, 8, rng=0)
    ranker = rk.QueryRanker(estimator).fit(data.X, data.y, qid=data.qid)
    model = saved(ranker, "named", X=data.X)
    assert unpacked_model(packed_model(model), "named") == model


def archive(**files):
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as written:
        for name, text in files.items():
            written.writestr(name.replace("_json", ".json"), text)
    return sink.getvalue()


@pytest.mark.parametrize(
    "content",
    [b"", b"PK\x03\x04", archive(), archive(saved_json="{"), archive(saved_json="[]"), archive(saved_json="{}")],
    ids=["empty", "start", "no facts", "no JSON", "a list", "no keys"],
)
def test_other_bytes_are_refused(content):
    with pytest.raises(InvalidInput, match="the packed model is damaged"):
        unpacked_model(content, "named")
