"""Which column is which: by names and contents, whatever the order of rows and columns, and never by a doubtful one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

from rankeval.errors import InvalidInput, UnknownName
from rankeval.experiment.loading import guess
from rankeval.io.frames import LAST, SPELLINGS

N_QUERIES, N_ROWS = 12, 120
NAMES = {
    "qid": ["qid", "query_id", "queryID", "Query Id", "QUERY-ID", "topic", "TopicNo", "srch_id", "search"],
    "relevance": ["relevance", "rel", "Label", "grade", "judgement", "relevance_label", "median_relevance", "target"],
    "docid": ["docid", "docno", "document_id", "DocID", "productId", "item", "prop_id"],
}
# What a ranker may not know, under the names that people give it.
AFTERWARDS = [
    "position", "Rank", "click", "clicked", "next_30d_clicks", "booking_bool", "gross_bookings_usd", "purchased",
    "orders", "timestamp", "date_time", "createdAt", "year", "future_price", "user_id", "score", "predicted_rel",
    "fold",
]  # fmt: skip


def rows(seed: int = 0) -> pd.DataFrame:
    """Make a table under plain names: ids, labels and three features, of which one holds small whole numbers."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "qid": np.repeat(rng.permutation(900)[:N_QUERIES], N_ROWS // N_QUERIES),
            "relevance": rng.integers(0, 4, N_ROWS),
            "docid": [f"d{number}" for number in rng.permutation(N_ROWS)],
            "bm25": rng.normal(size=N_ROWS),
            "length": rng.integers(1, 30, N_ROWS),
            "freshness": np.where(rng.random(N_ROWS) < 0.1, np.nan, rng.random(N_ROWS)),
        }
    )


def guessed(frame: pd.DataFrame, named: dict[str, str] | None = None, suffix: str = "parquet", **options):
    path = Path(f"rows.{suffix}")
    if suffix == "parquet":
        frame.to_parquet(path, index=False)
    else:
        frame.to_csv(path, index=False, sep="\t" if suffix == "tsv" else ",")
    return guess(path, named or {}, **options)


@given(
    names=st.fixed_dictionaries({role: st.sampled_from(names) for role, names in NAMES.items()}),
    columns=st.permutations(range(6)),
    order=st.randoms(use_true_random=False),
    suffix=st.sampled_from(["parquet", "csv", "tsv"]),
)
def test_names_and_orders_do_not_change_the_guess(names, columns, order, suffix):
    """Other spellings, columns and rows in any order, any format: the same columns have the same roles."""
    table = rows()
    places = list(range(N_ROWS))
    order.shuffle(places)
    mixed = table.iloc[places, list(columns)].rename(columns=names)
    found = guessed(mixed, suffix=suffix)
    assert found.roles == names
    assert sorted(found.features) == ["bm25", "freshness", "length"]
    assert found.left_out == {}
    assert found.features == [name for name in mixed if name in found.features]
    assert found.format == suffix


@given(name=st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=12))
def test_a_feature_may_have_any_name(name):
    """Where a name holds none of the known words, its column stays a feature, whatever else the name holds."""
    if any(word.isascii() for word in name if word.isalpha()) or "\0" in name:
        return
    found = guessed(rows().rename(columns={"bm25": name}))
    assert name in found.features
    assert found.roles == {"qid": "qid", "relevance": "relevance", "docid": "docid"}


@each_row("name", AFTERWARDS)
def test_what_a_ranker_may_not_know_is_no_feature(name):
    """It is left out with a reason, and a feature if the user names it."""
    table = rows().rename(columns={"length": name})
    found = guessed(table)
    assert name not in found.features
    assert name in found.left_out or name in found.roles.values()
    assert guessed(table, features=["bm25", name]).features == ["bm25", name]
    assert guessed(table.rename(columns={"bm25": "a,b"}), features=[f"freshness,{name}", "a,b"]).features == [
        "a,b",
        name,
        "freshness",
    ]


@each_row("name", ["clicks_30d", "ctr7d", "histCTR", "past_bookings", "avg_order_value", "sales_last_12_weeks", "hour"])
def test_a_rate_of_the_past_is_a_feature(name):
    """A window in its name, or a word for the past; the hour of a search is known too."""
    assert name in guessed(rows().rename(columns={"length": name})).features


def test_what_is_no_feature_by_its_content():
    """A number for each row, times in seconds, one value, infinity, a copy of the label, lists, text."""
    rng = np.random.default_rng(1)
    table = rows()
    odd = {
        "row": rng.permutation(N_ROWS),
        "seen": rng.integers(1_700_000_000, 1_710_000_000, N_ROWS) // 1000 * 1000,
        "constant": 3.5,
        "empty": np.nan,
        "ratio": np.where(table["length"] > 3, 0.5, np.inf),
        "gain": 2.0 ** table["relevance"] - 1,
        "vector": [[1.0, 2.0]] * N_ROWS,
        "title": "text",
        "bought_on": pd.Timestamp("2024-05-01"),
    }
    found = guessed(table.assign(**odd))
    assert sorted(found.left_out) == sorted(odd)
    assert all(found.left_out.values())
    assert found.features == ["bm25", "length", "freshness"]


def test_a_text_beside_its_id_is_no_second_candidate():
    """The id is taken; where the text groups the rows in another way, nobody but the user can choose."""
    table = rows()
    same = table.assign(query=[f"shoes {one}" for one in table["qid"]]).rename(columns={"qid": "search_id"})
    assert guessed(same).roles["qid"] == "search_id"
    other = same.assign(query=np.repeat(["red shoes", "blue shoes", "socks"], N_ROWS // 3))
    with pytest.raises(InvalidInput) as refused:
        guessed(other)
    assert refused.value.argument == "qid"
    assert refused.value.where == "rows.parquet"
    assert "'query', 'search_id'" in refused.value.remedy.replace("'search_id', 'query'", "'query', 'search_id'")
    assert guessed(other, {"qid": "query"}).roles["qid"] == "query"


@each_row(
    ("role", "content"),
    [
        ("qid", np.arange(N_ROWS)),  # no row beside another
        ("qid", np.zeros(N_ROWS)),  # a single query
        ("qid", np.repeat([0.5, 1.5], N_ROWS // 2)),  # no id
        ("qid", [None, *["a", "b"] * (N_ROWS // 2)][:N_ROWS]),
        ("relevance", np.arange(N_ROWS) / 7),  # too many grades
        ("relevance", np.repeat([-1, 1], N_ROWS // 2)),
        ("relevance", np.repeat([0, 500], N_ROWS // 2)),
        ("relevance", np.where(np.arange(N_ROWS) % 9, 1.0, np.nan)),
        ("relevance", ["yes", "no"] * (N_ROWS // 2)),
    ],
)
def test_a_name_alone_is_no_guess(role, content):
    """The column is among those that the error lists, and the user may still name it."""
    table = rows().assign(**{role: content})
    with pytest.raises(InvalidInput) as refused:
        guessed(table)
    assert refused.value.argument == role
    assert repr(role) in refused.value.remedy
    assert guessed(table, {role: role, "qid": "qid"}).roles[role] == role


def test_a_content_alone_is_no_guess():
    """Clicks are small whole numbers, but whether they are the relevance is the user's decision."""
    table = rows().rename(columns={"relevance": "clicked"})
    with pytest.raises(InvalidInput) as refused:
        guessed(table)
    assert (refused.value.argument, "'clicked'" in refused.value.remedy) == ("relevance", True)
    asked = []

    def ask(role, candidates):
        asked.append((role, candidates[0]))
        return candidates[0]

    found = guessed(table, ask=ask)
    assert asked == [("relevance", "clicked")]
    assert found.roles["relevance"] == "clicked"


def test_the_candidates_that_are_listed_could_have_the_role():
    """A text, a day and a score are no grades; they are listed only if nothing else could be the relevance."""
    table = rows().drop(columns="docid").rename(columns={"relevance": "clicked", "length": "price"})
    table = table.assign(price=table["price"] / 7, market="de", day=pd.Timestamp("2026-05-01"))
    with pytest.raises(InvalidInput) as refused:
        guessed(table)
    assert refused.value.remedy == "name the column; these may be it: 'clicked'"
    with pytest.raises(InvalidInput) as refused:
        guessed(table.drop(columns="clicked"))
    assert "'bm25'" in refused.value.remedy


def test_a_column_of_parts_is_taken_if_no_query_is_cut():
    part = np.repeat(np.where(np.arange(N_QUERIES) < 8, "Train", "test"), N_ROWS // N_QUERIES)
    assert guessed(rows().assign(split=part)).roles["part"] == "split"
    cut = guessed(rows().assign(split=np.roll(part, 3)))
    assert "part" not in cut.roles
    assert "split" in cut.left_out


def test_a_column_that_is_named_must_be_there():
    for options in ({"named": {"qid": "qidd"}}, {"features": ["bm25", "bm26"]}):
        with pytest.raises(UnknownName) as refused:
            guessed(rows(), **options)
        assert refused.value.argument == next(iter(options)).replace("named", "qid")


@each_row("role", NAMES)
def test_every_name_that_our_readers_know_is_guessed(role):
    """The names of judgments and rankings in other tools, such as ``docno`` and ``corpus-id``."""
    known = [*SPELLINGS[role], *(name for name in LAST.get(role, ()) if name != "score")]
    assert [name for name in known if guessed(rows().rename(columns={role: name})).roles[role] != name] == []
