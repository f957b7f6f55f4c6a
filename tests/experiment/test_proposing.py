"""What a shop's log offers: rates of the past, categories, slices, its newest queries, the score of today."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from tables import each_row

from rankeval.experiment.loading import guess
from rankeval.experiment.proposing import propose

N_QUERIES = 120


def shop_log(seed: int = 0) -> pd.DataFrame:
    """Make a log with the columns of a shop, its rows in no order."""
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(N_QUERIES), rng.integers(4, 9, N_QUERIES))
    n = len(query)
    start = pd.Timestamp("2026-01-05")
    moment = start + pd.to_timedelta(np.sort(rng.integers(0, 70 * 86_400, N_QUERIES)), unit="s")
    table = {
        "search_id": [f"s-{number}" for number in query],
        "query_text": [f"shoes {number}" for number in query],
        "timestamp": moment[query],
        "market": rng.choice(["de", "fr", "us"], N_QUERIES)[query],
        "device": rng.choice(["mobile", "desktop"], N_QUERIES)[query],
        "product": [f"p{number}" for number in rng.permutation(n)],
        "brand": rng.choice(["acme", "bolt", "coil"], n),
        "title": [f"title {number}" for number in rng.permutation(n)],
        "hour": moment.hour[query],
        "price": rng.gamma(2, 10, n),
        "rating": np.where(rng.random(n) < 0.2, np.nan, rng.random(n)),
        "ctr_30d": rng.random(n),
        "past_orders": rng.integers(0, 50, n),
        "first_stage_score": rng.normal(size=n),
        "clicked": rng.integers(0, 2, n),
        "next_7d_sales": rng.random(n),
        "grade": rng.integers(0, 3, n),
    }
    return pd.DataFrame(table).sample(frac=1, random_state=seed, ignore_index=True)


def offered(table: pd.DataFrame, suffix: str = "parquet", **options):
    path = Path(f"log.{suffix}")
    table.to_parquet(path) if suffix == "parquet" else table.to_csv(path, index=False)
    guessed = guess(path, {}, **options)
    return guessed, propose(guessed)


@each_row("suffix", ["csv", "parquet"])
def test_a_log_offers_what_people_choose_by_hand(suffix):
    """Rates of the past are features, what happened after the ranking is none."""
    guessed, offers = offered(shop_log(), suffix)
    assert guessed.roles == {"qid": "search_id", "relevance": "grade", "docid": "product"}
    assert guessed.features == ["hour", "price", "rating", "ctr_30d", "past_orders", "first_stage_score"]
    assert offers.past == ["ctr_30d", "past_orders"]
    assert (offers.categories, offers.slices) == (["brand"], ["market", "device"])
    assert offers.production == "first_stage_score"
    assert sorted(offers.left_out) == ["clicked", "next_7d_sales", "query_text", "title"]


@each_row("form", ["datetime", "text", "seconds", "milliseconds"])
def test_the_newest_queries_are_counted_as_pandas_counts_them(form):
    """Whole days, where they make a part of 15 to 30 %; numbers stay numbers."""
    table = shop_log()
    moments = table["timestamp"]
    numbers = moments.astype("datetime64[ns]").astype("int64")
    forms = {"text": moments.astype(str), "seconds": numbers // 10**9, "milliseconds": numbers // 10**6}
    _, offers = offered(table.assign(timestamp=forms.get(form, moments)))
    newest = offers.newest
    latest = table.groupby("search_id")["timestamp"].max()
    unit = {"seconds": "s", "milliseconds": "ms"}.get(form)
    begin = pd.to_datetime(newest.test_from, unit=unit)
    chosen = latest.index[latest >= begin]
    assert (newest.column, newest.n_queries) == ("timestamp", len(chosen))
    assert newest.n_rows == table["search_id"].isin(chosen).sum()
    assert 0.15 <= len(chosen) / N_QUERIES <= 0.31
    assert unit or begin == begin.normalize()


def test_no_time_is_offered_if_queries_come_again_or_times_are_many():
    """The rows of such a query are of many days; of two times, nobody but the user can choose."""
    table = shop_log()
    again = table["search_id"].str[2:].astype(int) % 40
    assert offered(table.assign(search_id=again))[1].newest is None
    assert offered(table.assign(date_of_session=table["timestamp"]))[1].newest is None
    assert offered(table.assign(timestamp=table["timestamp"].where(table.index > 0)))[1].newest is None


def test_what_is_no_slice_and_no_category():
    """Too many values, too few queries for each, one value, answers and ids."""
    table = shop_log()
    number = table["search_id"].str[2:].astype(int)
    odd = {
        "city": "c" + (number % 30).astype(str),
        "region": "r" + (number % 15).astype(str),
        "currency": "EUR",
        "user_id": "u" + (number % 4).astype(str),
        "color": [f"c{place % 60}" for place in range(len(table))],
        "label_text": table["grade"].map({0: "bad", 1: "fair", 2: "good"}),
        "verdict": table["grade"].map({0: "no", 1: "maybe", 2: "yes"}),
    }
    _, offers = offered(table.assign(**odd))
    assert (offers.categories, offers.slices) == (["brand"], ["market", "device"])
    assert odd.keys() <= offers.left_out.keys()


def test_named_features_leave_no_categories():
    _, offers = offered(shop_log(), features=["price", "ctr_30d"])
    assert (offers.categories, offers.slices, offers.past) == ([], ["market", "device"], ["ctr_30d"])


@each_row("name", ["score", "production_score", "currentScore", "search_score", "live_ranker_score"])
def test_the_score_of_today_is_found_by_its_name(name):
    """Not if a row has none."""
    table = shop_log().rename(columns={"first_stage_score": name})
    assert offered(table)[1].production == name
    assert offered(table.assign(**{name: table[name].where(table.index > 0)}))[1].production is None
