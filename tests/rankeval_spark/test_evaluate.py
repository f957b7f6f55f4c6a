"""On Spark as in memory: the same bytes, the same refusals, and errors that a person can read."""

from __future__ import annotations

import decimal
import re

import numpy as np
import pyarrow as pa
import pytest

import rankeval as rk
import rankeval_spark
from rankeval.errors import GuardRefusal, InvalidInput, QueryIdError, UnknownName
from rankeval.evaluation import to_bytes

pytestmark = pytest.mark.spark

MEASURES = ["nDCG@10", "AP", "RR", "P@5", "gm_AP", "nDCG(gain={1: 3})@5", "ERR(max_rel=3)"]
COLUMNS = {"qid": "q", "relevance": "y", "score": "s"}


def rows(seed=0, n_queries=60, ids="int64", score=None):
    """Return rows in no order: labels below 0, ties, queries without a relevant row."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(rng.permutation(1000)[:n_queries], rng.integers(1, 40, n_queries))
    y = rng.integers(-1, 3, len(qid)) * (qid % 4 != 0)
    s = np.round(rng.normal(size=len(qid)), 1)
    order = rng.permutation(len(qid))
    table = pa.table({"q": qid, "y": y, "s": s, "d": [f"d{row}" for row in range(len(qid))], "w": 1.0 + qid % 3})
    table = table.take(pa.array(order))
    exact = pa.array([decimal.Decimal(str(one)) for one in table["s"].to_pylist()], pa.decimal128(5, 1))
    table = table.set_column(2, "s", exact if score == "decimal" else table["s"].cast(score or "float64"))
    return table.set_column(0, "q", table["q"].cast(ids))


SKIPPED = rk.Convention.with_rules(no_relevant="skip", ties="docid")
COUNTED = rk.Convention.with_rules("trec_eval-9.0.8", no_relevant="one")
BEST_OF_SKLEARN = rk.Convention.with_rules("sklearn", ties="best")


def in_memory(table, **how):
    how = {name: table[value] if name in ("docid", "query_weight") else value for name, value in how.items()}
    return rk.evaluate(table["y"], table["s"], qid=table["q"], **how)


@pytest.mark.parametrize(
    ("ids", "score", "how"),
    [
        ("int64", "float64", {"query_weight": "w", "name": "ours"}),
        ("string", "float32", {"convention": SKIPPED, "docid": "d", "partitions": np.int64(3)}),
        ("int32", "decimal", {"convention": COUNTED, "docid": "d"}),
    ],
)
def test_the_bytes_are_those_of_memory(spark, ids, score, how):
    table = rows(ids=ids, score=score)
    result = rankeval_spark.evaluate(spark.createDataFrame(table), **COLUMNS, measures=MEASURES, **how)
    with result:
        how = {name: value for name, value in how.items() if name != "partitions"}
        expected = in_memory(table, measures=MEASURES, **how)
        assert to_bytes(result.evaluation) == to_bytes(expected)
        scores = result.scores.toArrow()
        assert scores.column_names[: 1 + len(MEASURES)] == ["qid", *MEASURES]
        at = np.argsort([expected.queries.tolist().index(one) for one in scores["qid"].to_pylist()])
        for name in MEASURES:
            assert scores[name].to_numpy()[at].tolist() == expected.per_query[name].tolist()
        assert scores["judged"].to_numpy()[at].tolist() == expected.facts.query_counts["judged"].tolist()
        assert ("weight" in scores.column_names) == ("query_weight" in how)
    assert not spark.sparkContext._jsc.getPersistentRDDs()
    if "query_weight" not in how:
        compared = rk.compare({"a": scores, "b": expected}, measures=["RR"])
        assert compared.table["difference"].tolist() == [0]
    with pytest.raises(InvalidInput, match="was released"):
        _ = result.scores


def test_errors_of_the_rows_are_said_at_the_driver_with_the_column(spark):
    def refused(text, error=InvalidInput, what=None, **columns):
        types = {"q": "string", "y": "int", "s": "double", "w": "double"}
        table = {"q": ["a", "a", "b"], "y": [1, 0, 1], "s": [0.5, 0.25, 0.125], "w": [1.0, 1.0, 2.0]} | columns
        schema = ", ".join(f"{name} {types.get(name, 'string')}" for name in table)
        df = spark.createDataFrame(list(zip(*table.values(), strict=True)), schema)
        with pytest.raises(error, match=text) as found:
            rankeval_spark.evaluate(df, **COLUMNS, **(what or {}))
        assert len(str(found.value)) < 400
        assert not spark.sparkContext._jsc.getPersistentRDDs()

    refused("score: the column 's' has 1 row without a value .1 null, for example in query 'a'", s=[0.5, None, 0.1])
    refused("score: the column 's' has 2 rows .* .1 nan and 1 infinite", s=[np.nan, np.inf, 0.1])
    refused(re.escape("""drop them by df.where("abs(`s`) < double('inf')")"""), s=[np.inf, -np.inf, 0.1])
    gaps = spark.createDataFrame([(np.nan,), (np.inf,), (-np.inf,), (None,), (0.1,)], "s double")
    assert [row.s for row in gaps.where("abs(`s`) < double('inf')").collect()] == [0.1]  # as the message says
    refused("qid: the column 'q' has 1 row without a value .1 null.;", QueryIdError, q=["a", None, "b"])
    refused("relevance: found 1 label below zero", y=[-1, 0, 1], what={"convention": BEST_OF_SKLEARN})
    refused("in one partition of Spark: .*'d' occurs twice in query 'a'", d=["d", "d", "d"], what={"docid": "d"})
    refused("query_weight: found several within one query", w=[1.0, 2.0, 1.0], what={"query_weight": "w"})
    refused("query_weight: expected finite numbers", w=[0.0, 0.0, 0.0], what={"query_weight": "w"})
    refused(
        "is not a bound of it",
        y=[1, 2, 3],
        what={"measures": "nDCG(gain={2: 9})", "convention": rk.Convention.with_rules(ties="best")},
    )


def test_what_cannot_work_is_refused_before_a_job_starts(spark):
    df = spark.createDataFrame(rows(n_queries=3))
    for text, error, what in (
        ("unknown column score= 'S'; did you mean 's'", UnknownName, {"score": "S"}),
        ("relevance: the column 'd' is of type string; expected numbers", InvalidInput, {"relevance": "d"}),
        ("qid: the column 's' is of type double; expected text", QueryIdError, {"qid": "s"}),
        ("ties='stable' .'lightgbm'.: the rows of a DataFrame have no order", InvalidInput, {"convention": "lightgbm"}),
        ("ties: this argument is gone; use convention=rk.Convention.with_rules", InvalidInput, {"ties": "docid"}),
        ("partitions is 0", InvalidInput, {"partitions": 0}),
        ("unknown measure", UnknownName, {"measures": "nGCD"}),
        ("unknown column qid= None; known are: d, q, s, w, y", UnknownName, {"qid": None}),
    ):
        with pytest.raises(error, match=text):
            rankeval_spark.evaluate(df, **COLUMNS | what)
    with pytest.raises(InvalidInput, match="found a pyarrow"):
        rankeval_spark.evaluate(rows(n_queries=3), **COLUMNS)
    with pytest.raises(InvalidInput, match="the DataFrame is empty"):
        rankeval_spark.evaluate(df.where("s > 1000"), **COLUMNS)
    twice = df.withColumnRenamed("w", "S")
    with pytest.raises(InvalidInput, match="score: Spark cannot distinguish the columns 's' and 'S'; rename one"):
        rankeval_spark.evaluate(twice, **COLUMNS)
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with rankeval_spark.evaluate(twice, **COLUMNS) as result:
            assert result.evaluation.n_queries == 3
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_registered_rows_are_refused_as_in_memory(spark, tmp_path, monkeypatch):
    """The environment of the executors names no ledger: what they look for travels with the work."""
    monkeypatch.setenv("RANKEVAL_LEDGER", str(tmp_path / "ledger"))
    from rankeval.contamination.refusal import forget

    forget()
    try:
        table = rows(1, n_queries=100, ids="string")
        rk.Guard("spark").register("test", y=table["y"], qid=table["q"], docid=table["d"])
        df = spark.createDataFrame(table)
        with pytest.raises(GuardRefusal) as ours:
            rankeval_spark.evaluate(df, **COLUMNS, docid="d", partitions=4)
        assert not spark.sparkContext._jsc.getPersistentRDDs()
        with pytest.raises(GuardRefusal) as theirs:
            in_memory(table, docid="d")
        said, expected = (str(one.value).partition(" In the data, ")[0] for one in (ours, theirs))
        assert (said, sorted(ours.value.queries)) == (expected, sorted(theirs.value.queries))
        other = rows(2, n_queries=100, ids="string")
        with rankeval_spark.evaluate(spark.createDataFrame(other), **COLUMNS, docid="d") as result:
            assert result.evaluation.n_queries == 100
            scores = result.scores
        assert scores.count() == 100  # scored again
    finally:
        monkeypatch.undo()
        forget()


def test_a_measure_reads_a_column_of_the_frame(spark):
    """Revenue of tied rows and untied ones has the bytes of memory; a gap is told with its column."""
    table = rows(n_queries=200)
    rng = np.random.default_rng(5)
    table = table.append_column("usd", pa.array(np.round(rng.lognormal(2, 1, len(table)), 2)))
    names = ["Revenue@5(column='price')", "Gain(column='price', discount='log2', rel=1)@3", "nDCG@10"]
    df = spark.createDataFrame(table)
    how = {"measures": names, "columns": {"price": "usd"}}
    with rankeval_spark.evaluate(df, **COLUMNS, **how, partitions=3) as result:
        expected = in_memory(table, measures=names, columns={"price": table["usd"]})
        assert to_bytes(result.evaluation) == to_bytes(expected)
        q, s, usd = (table[name].to_numpy() for name in ("q", "s", "usd"))
        for query, value in result.evaluation.per_query[names[0]].items():
            mine, price = s[q == query], usd[q == query]
            best = np.sort(mine)[::-1][:5]
            assert value == pytest.approx(sum(price[mine == one].mean() for one in best), rel=1e-12)
    with pytest.raises(InvalidInput) as lacking:
        rankeval_spark.evaluate(df, **COLUMNS, measures=names)
    assert (lacking.value.argument, lacking.value.expected) == ("columns", "the column 'price'")
    with pytest.raises(UnknownName, match="'usdd'; did you mean 'usd'"):
        rankeval_spark.evaluate(df, **COLUMNS, measures=names, columns={"price": "usdd"})
    gap = pa.array([None, *table["usd"].to_pylist()[1:]])
    df = spark.createDataFrame(table.set_column(table.schema.get_field_index("usd"), "usd", gap))
    with pytest.raises(InvalidInput, match=re.escape("columns['price']: the column 'usd' has 1 row without a value")):
        rankeval_spark.evaluate(df, **COLUMNS, **how)
