"""Measures that read a column of the rows: how a column is given, what is refused, and what stays with the numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tables import each_row

import rankeval as rk
from rankeval.errors import ConventionMismatch, InvalidInput, QueryIdError, UnknownName
from rankeval.evaluation import to_bytes
from rankeval.evaluation.merging import merged
from rankeval.measures import family
from rankeval.measures.family import FAMILIES

NAME = "Revenue@5(column='price')"
MEASURES = ["nDCG@10", NAME, "Gain(column='price', rel=1)@3"]


def rows(seed=0, n=400):
    rng = np.random.default_rng(seed)
    frame = {"q": rng.integers(0, 40, n), "y": rng.integers(0, 4, n), "s": rng.integers(0, 9, n) / 2}
    return pd.DataFrame(frame | {"price": np.round(rng.normal(10, 20, n), 2)})


def evaluated(frame, columns="price", measures=MEASURES, **how):
    return rk.evaluate(frame, qid="q", relevance="y", score="s", columns=columns, measures=measures, **how)


def revenue(frame, cutoff, rel=None):
    """Return the sum of the prices of the first rows of each query, by NumPy: tied rows take their group's mean."""
    sums = []
    for _, one in frame.groupby("q"):
        price = one.price.where(one.y >= (-9 if rel is None else rel), 0.0)
        level = price.groupby(one.s).mean()
        sums.append(level.loc[sorted(one.s, reverse=True)[:cutoff]].sum())
    return np.array(sums)


def test_the_sum_of_a_column_is_that_of_numpy():
    """Revenue@5 adds up the prices of the first five rows, whatever their grades; rel= counts rows from a grade on."""
    frame = rows()
    ev = evaluated(frame)
    np.testing.assert_allclose(ev.per_query[NAME], revenue(frame, 5), rtol=0, atol=1e-12)
    np.testing.assert_allclose(ev.per_query[MEASURES[2]], revenue(frame, 3, rel=1), rtol=0, atol=1e-12)
    assert [str(one) for one in ev.measures[1:]] == ["Gain(column='price')@5", "Gain(column='price', rel=1)@3"]


def test_arrays_and_all_frames_give_the_same_bytes():
    """A column is given as an array, a list, a Series, a frame of columns, or by its name in any frame."""
    frame = rows()
    q, y, s, price = (frame[name].to_numpy() for name in frame)
    expected = to_bytes(evaluated(frame))
    for columns in ({"price": price}, {"price": price.tolist()}, {"price": pl.Series(price)}, frame[["price"]]):
        assert to_bytes(rk.evaluate(y, s, qid=q, columns=columns, measures=MEASURES)) == expected
    renamed = frame.rename(columns={"price": "usd"})
    for table in (renamed, pl.from_pandas(renamed), pa.Table.from_pandas(renamed)):
        assert to_bytes(evaluated(table, {"price": "usd"})) == expected
    assert to_bytes(evaluated(renamed, {"price": price})) == expected
    assert to_bytes(evaluated(frame, ["price", "s"])) == expected


@each_row(
    ("columns", "error", "fields"),
    [
        (None, InvalidInput, {"where": "Gain(column='price')@5", "argument": "columns", "found": "empty"}),
        ({"prise": [1.0]}, InvalidInput, {"expected": "the column 'price'", "found": "'prise'"}),
        (["usd"], InvalidInput, {"expected": "the column 'price'", "found": "'usd'"}),
        ({"price": "usd"}, InvalidInput, {"argument": "columns['price']"}),
        (3, InvalidInput, {"argument": "columns", "found": "of type int"}),
        ({"price": [1.0, np.nan, 2.0]}, InvalidInput, {"argument": "columns['price']"}),
        ({"price": [1.0, -np.inf, 2.0]}, InvalidInput, {"argument": "columns['price']"}),
        ({"price": ["a", "b", "c"]}, InvalidInput, {"argument": "columns['price']"}),
        ({"price": [1.0, None, 2.0]}, InvalidInput, {"argument": "columns['price']"}),
        ({"price": pd.Series([1.0, 2.0, 3.0], index=[2, 1, 0])}, QueryIdError, {}),
        ({"price": [1.0, 2.0]}, InvalidInput, {}),
    ],
)
def test_a_column_that_is_missing_or_has_gaps_is_refused_with_fields(columns, error, fields):
    """The error names the measure and the column that it reads, or the column and its row."""
    frame = pd.DataFrame({"q": [1, 1, 1], "y": [1, 0, 1], "s": [3.0, 2.0, 1.0]})
    with pytest.raises(error) as refused:
        evaluated(frame, columns, NAME)
    assert {name: getattr(refused.value, name) for name in fields} == fields


def test_a_collection_has_no_rows_with_columns():
    """Judgments and a run are refused, with the way to a frame."""
    qrels, run = {"q": {"a": 1}}, {"q": {"a": 1.0}}
    with pytest.raises(InvalidInput) as lacking:
        rk.evaluate(qrels, run, measures=NAME)
    assert lacking.value.where == "Gain(column='price')@5"
    with pytest.raises(InvalidInput) as given:
        rk.evaluate(qrels, run, measures=NAME, columns={"price": [1.0]})
    assert given.value.argument == "columns"
    with pytest.raises(InvalidInput, match="name of a column of a frame"):
        rk.evaluate([1], [1.0], qid=[1], measures=NAME, columns=["price"])


def test_bounds_over_ties_are_refused():
    """ties='best' orders tied rows by grade, which is no bound of a sum of prices."""
    with pytest.raises(InvalidInput, match="not a bound of it"):
        evaluated(rows(), ties="best")


def test_evaluations_keep_the_column_when_they_are_saved_cut_and_merged(tmp_path):
    """Save and load, subset and merge give the numbers, the digests and the hashes of the column back."""
    frame = rows()
    whole = evaluated(frame)
    whole.save(tmp_path / "ev.parquet")
    assert to_bytes(rk.Evaluation.load(tmp_path / "ev.parquet")) == to_bytes(whole)
    parts = [evaluated(frame[frame.q % 3 == one]) for one in range(3)]
    assert to_bytes(merged(parts)) == to_bytes(whole)
    ids = whole.queries[:7]
    part, alone = whole.subset(ids), evaluated(frame[frame.q.isin(ids)])
    np.testing.assert_array_equal(part.facts.columns["price"], alone.facts.columns["price"])
    np.testing.assert_array_equal(part.scores, alone.scores)


def test_other_values_of_a_column_are_not_compared_in_silence():
    """Two evaluations by prices of two days are refused; a measure that reads no column does not care."""
    frame = rows()
    one, other = evaluated(frame), evaluated(frame.assign(price=frame.price + (frame.q == 3), s=-frame.s))
    with pytest.raises(ConventionMismatch, match="the column 'price', which measures read, has other values"):
        rk.compare({"a": one, "b": other})
    plain = evaluated(frame.assign(s=-frame.s), measures="nDCG@10")
    assert rk.compare({"a": one, "b": plain}).table["measure"].tolist() == ["nDCG@10"]
    moved = evaluated(frame.assign(s=-frame.s).sample(frac=1, random_state=0))
    table = rk.compare({"a": one, "b": moved}, measures=[NAME, "nDCG@10"]).table
    assert table["measure"].tolist() == [NAME, "nDCG@10"]
    assert one.judgments_digest == other.judgments_digest == plain.judgments_digest


def test_a_ranking_can_change_the_revenue_of_rows_of_one_grade():
    """Queries without a relevant row count among the worst, since a column tells their rows apart."""
    frame = pd.DataFrame({"q": [1, 1, 2, 2], "y": [0, 0, 1, 0], "s": [2.0, 1, 2, 1], "price": [1.0, 5, 9, 9]})
    assert evaluated(frame, measures="nDCG@1").facts.totals()["fixed"] == 1
    ev = evaluated(frame, measures="Revenue@1(column='price')")
    assert ev.facts.totals()["fixed"] == 0
    assert ev.worst(1).index.tolist() == [1]


@each_row(
    "spelling",
    ["Revenue@5(column='price')", "Revenue(column='price')@5", "Gain@5(column='price')", "gain(column='price')@5"],
)
def test_the_cutoff_stands_on_either_side_of_the_parameters(spelling):
    """Both places give one measure with one name and one key; two cut-offs are refused."""
    one = rk.measure(spelling)
    assert (str(one), one.key) == ("Gain(column='price')@5", "Gain__column.price_at_5")
    with pytest.raises(InvalidInput, match="the cut-off is given twice"):
        rk.measure("Gain@5(column='price')@5")
    with pytest.raises(InvalidInput, match="write it as in"):
        rk.measure("Revenue@5")
    with pytest.raises(UnknownName, match=r"did you mean .Revenue"):
        rk.measure("Revenu@5(column='price')")
    with pytest.raises(InvalidInput, match="the name of a column"):
        rk.measure("Gain(column='')")
    assert str(rk.measure("nDCG@10(gain='exp')")) == "nDCG(gain='exp')@10"


def test_a_measure_of_ones_own_reads_two_columns():
    """Arguments annotated Column are columns in rank order; the parameters are their names."""
    from rankeval.measures import Column

    @family(
        "Margin", title="margin", formula="sum of price - cost", source="ours", bounds=(-np.inf, np.inf), linear=True
    )
    def margin(judged, *, price: Column = "price", cost: Column = "cost", cutoff: int = 2):
        """Sum of price less cost over the first k rows: any number, higher is better; 0 without rows."""
        return judged.discounted_rows(price.values - cost.values, np.ones(cutoff), cutoff)  # noqa: PD011 - no frame

    try:
        frame = rows().assign(cost=lambda f: f.y * 1.5, usd=lambda f: f.price)
        given = ["price", "cost"], {"price": "usd", "cost": "cost"}, {"usd": "usd", "cost": "cost"}
        names = "Margin@3", "Margin@3", "Margin(price='usd')@3"
        found = [evaluated(frame, *one).scores for one in zip(given, names, strict=True)]
        for one in found:
            expected = revenue(frame, 3) - revenue(frame.assign(price=frame.cost), 3)
            np.testing.assert_allclose(one[:, 0], expected, atol=1e-12)
        assert FAMILIES["Margin"].needs == "columns"
        with pytest.raises(InvalidInput) as lacking:
            evaluated(frame, ["price"], "Margin@3")
        assert lacking.value.expected == "the column 'cost'"
    finally:
        del FAMILIES["Margin"]


def test_a_measure_of_ones_own_reads_all_values_above_the_depth():
    """Under a convention with a depth the values of a column are those of the rows that it leaves."""
    from rankeval.collection.convention import get_convention
    from rankeval.measures import Column

    @family("Dear", title="dear", formula="sum of price", source="ours", bounds=(-np.inf, np.inf), linear=True)
    def dear(judged, *, price: Column = "price"):
        """Sum of the prices: any number, higher is better; 0 without rows."""
        return np.add.reduceat(price.values, judged.offsets[:-1])

    try:
        rules = get_convention("rankeval").with_rules(depth=2, ties="stable")
        found = rk.evaluate(
            [1, 0, 2, 0, 1],
            [5.0, 4.0, 3.0, 9.0, 1.0],
            qid=[1, 1, 1, 2, 2],
            columns={"price": [1, 2, 4, 8, 16]},
            measures="Dear",
            convention=rules,
        )
        assert found.scores.ravel().tolist() == [3.0, 24.0]
    finally:
        FAMILIES.pop("Dear", None)
