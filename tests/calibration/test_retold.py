"""The guide that retells a comparison has the figures of the data, and its picture shows them."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pandas as pd
import pytest
from calibration import measure_retold as measured
from PIL import Image

import rankeval as rk


@pytest.fixture(scope="module")
def one():
    return measured.Retold()


@pytest.mark.docs
@pytest.mark.shared
def test_the_guide_has_the_figures_of_the_data(one):
    text = measured.GUIDE.read_text("utf-8")
    assert text == measured.retold(text, one), "run: python tests/calibration/measure_retold.py"


@pytest.mark.shared
def test_the_picture_shows_the_pairs_as_they_are(one):
    """It says so in its description: which run is better, and whether both readings, one or none calls it so."""
    with Image.open(measured.PICTURE) as picture:
        assert picture.info["Description"] == measured.described(one), "run: python tests/calibration/measure_retold.py"


def test_the_picture_is_small_and_wide_enough_to_read():
    assert measured.PICTURE.stat().st_size < 100_000
    with Image.open(measured.PICTURE) as picture:
        assert 600 <= picture.width <= 1000


@pytest.mark.shared
def test_all_means_are_the_official_ones(one, shared):
    """NIST's scores of these runs have four digits."""
    official = pd.read_csv(shared / "trec_covid_r5" / "official_leaderboard.csv", index_col="tag")
    columns = dict(zip(measured.MEASURES, ["ndcg@20", "P@20", "bpref", "map"], strict=True))
    means = pd.DataFrame({name: ev.mean() for name, ev in one.evs.items()}).T.rename(columns=columns)
    assert len(official) == 126
    pd.testing.assert_frame_equal(
        means.round(4), official.loc[means.index, list(columns.values())], check_names=False, atol=1e-9
    )


@pytest.mark.shared
def test_halves_are_compared_as_a_reader_would(one):
    """`rk.compare` of the topics of a half gives the same raw and adjusted p-values."""
    frames = {name: pd.DataFrame({"score": scores}) for name, scores in zip(one.order, one.scores.T, strict=True)}
    rng = np.random.default_rng(measured.SEED)
    for here, there in islice(measured._split(one.scores), 0, 4, 2):
        topics = rng.permutation(len(one.scores))
        half = rk.compare({name: frame.iloc[topics[: len(here)]] for name, frame in frames.items()}).table
        raw, adjusted, lead = measured._of_half(here)
        np.testing.assert_allclose(half["p_value"], raw, rtol=1e-9)
        np.testing.assert_allclose(half["p_adjusted"], adjusted, rtol=1e-9)
        np.testing.assert_allclose(half["difference"], -lead, atol=1e-12)
        assert len(here) == len(there) == 25


def test_shuffled_names_leave_nothing_to_find():
    """Two runs, one far better: after the shuffle its scores are as often the other's."""
    scores = np.random.default_rng(1).normal([0.2, 0.8], 0.05, size=(30, 2))
    assert measured._of_half(scores)[1][0] < 1e-9
    raw, adjusted = measured._shuffled(scores)
    assert 0.02 < (raw > 0).mean() < 0.09
    assert (adjusted == raw).all()  # one comparison needs no correction
