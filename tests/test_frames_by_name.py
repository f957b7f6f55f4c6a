"""`evaluate(frame, qid=, relevance=, score=)` gives the numbers of the same columns as arrays."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput

RNG = np.random.default_rng(5)
ROWS = pd.DataFrame(
    {
        "q": RNG.permutation(np.repeat([f"q{number}" for number in range(12)], 9)),
        "y": RNG.integers(0, 4, 108),
        "s": RNG.normal(size=108).round(1),
        "d": [f"d{number}" for number in range(108)],
    }
)
MEASURES = ["nDCG@5", "AP", "RR"]
FRAMES = {"pandas": ROWS, "polars": pl.from_pandas(ROWS), "Arrow": pa.Table.from_pandas(ROWS)}


@each_row("kind", FRAMES)
@each_row("docid", [None, "d"])
def test_a_frame_by_the_names_of_its_columns_gives_the_numbers_of_its_arrays(kind, docid):
    given = {"qid": "q", "relevance": "y", "score": "s", "docid": docid, "measures": MEASURES}
    by_name = rk.evaluate(FRAMES[kind], **given)
    documents = None if docid is None else ROWS["d"].to_numpy()
    arrays = rk.evaluate(ROWS["y"], ROWS["s"], qid=ROWS["q"].to_numpy(), docid=documents, measures=MEASURES)
    pd.testing.assert_frame_equal(by_name.per_query, arrays.per_query, check_exact=True)
    weighted = rk.evaluate(FRAMES[kind], **given, query_weight=dict.fromkeys(ROWS["q"], 2.0))
    assert weighted.mean().tolist() == pytest.approx(arrays.mean().tolist(), rel=1e-12)


def test_a_column_that_is_not_there_is_named():
    with pytest.raises(InvalidInput) as caught:
        rk.evaluate(ROWS, qid="query", relevance="y", score="s", measures=MEASURES)
    assert "'query'" in str(caught.value)


def test_a_path_with_columns_belongs_to_evaluate_dataset(tmp_path):
    ROWS.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(InvalidInput, match="evaluate_dataset"):
        rk.evaluate(tmp_path / "rows.parquet", qid="q", relevance="y", score="s", measures=MEASURES)
    whole = rk.evaluate_dataset(tmp_path / "rows.parquet", qid="q", relevance="y", score="s", measures=MEASURES)
    one = rk.evaluate(ROWS, qid="q", relevance="y", score="s", measures=MEASURES)
    pd.testing.assert_frame_equal(whole.per_query, one.per_query, check_exact=True)
