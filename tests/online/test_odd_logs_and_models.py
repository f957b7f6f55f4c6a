"""Laws of click models, propensities and values for odd but legal input."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from tables import each_row

from rankeval.errors import InvalidInput, RankevalWarning
from rankeval.online import ClickLog, ClickModel, counterfactual, policy_value, propensities


def logged(rows, **options):
    """Return the log of rows of impression, query, position, document and click."""
    columns = ["impression", "qid", "position", "docid", "clicked"]
    return ClickLog.from_frame(pd.DataFrame(rows, columns=columns), **options)


def two_lists(*clicks):
    """Return 8 impressions of a and b in turn at positions 1 and 2, with clicks on (impression, document)."""
    docs = enumerate("ab")
    return logged(
        [(n, "q", 1 + (n + k) % 2, doc, (n, doc) in clicks) for k, doc in docs for n in range(8)], complete=False
    )


CLICK, CHANCE = [1, 0, 1, 0], [0.5, 0.5, 0.5, 0.5]


def test_shuffled_lists_of_unequal_length_have_no_bias():
    """If users look at all positions, propensities are 1, also if short lists have the better documents."""
    rng, rows = np.random.default_rng(0), []
    for n in range(4000):
        query, (size, relevance) = n % 20, (2, 0.9) if n % 20 < 10 else (4, 0.1)
        for place, doc in enumerate(rng.permutation(size)):
            rows.append((n, query, place + 1, f"{query}-{doc}", rng.random() < relevance))
    found = propensities(logged(rows), how="randomized", n_resamples=0).table["propensity"]
    np.testing.assert_allclose(found, 1, atol=0.2)


@each_row("how", ["swap", "all_pairs"])
def test_a_bootstrap_sample_without_a_click_is_no_crash(how):
    """A log with few clicks that has an estimate has a result, also if samples of it have none."""
    log = two_lists((0, "a"), (1, "a"), (1, "b"))
    assert propensities(log, how=how, n_resamples=0).table["propensity"].notna().all()
    assert len(propensities(log, how=how).table) == 2


@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
@each_row("how", ["randomized", "swap", "all_pairs"])
def test_intervals_of_few_clicks_are_missing_with_a_note(how):
    """Intervals that cannot be known are nan and a note says so: never one nan end, or an end of 10 to the 13."""
    found = propensities(two_lists((0, "a"), (1, "b"), (2, "b"), (3, "a")), how=how)
    ends = found.table[["ci_low", "ci_high"]]
    assert ends.isna().all(axis=None)
    assert any("no interval is known" in note for note in found.notes)


def test_weights_of_counted_rows_stand_for_their_impressions():
    """A row with count 3 has 3 times the weight in training."""
    rows = pd.DataFrame({"impression": [1, 2], "qid": "q", "position": 1, "docid": ["a", "b"], "clicked": [1, 0]})
    log = ClickLog.from_frame(rows.assign(count=[1, 3]))
    found = propensities(log, how="randomized", depth=1, n_resamples=0)
    assert found.weights(log).tolist() == [1, 3]


@each_row("form", [list, np.array])
def test_propensities_as_a_list_are_not_moved_by_a_position(form):
    """A sequence of propensities, which ClickModel takes from position 1 on, is refused here."""
    log = logged([("i1", "q", 1, "a", 1), ("i1", "q", 2, "b", 1), ("i1", "q", 3, "c", 0)])
    scores = {("q", "a"): 1, ("q", "b"): 2, ("q", "c"): 3}
    with pytest.raises(InvalidInput, match="one number for each position from 1 on, as a mapping"):
        counterfactual(log, scores, form([1.0, 0.5, 0.25]))


@each_row("measure", ["P(rel=6)@5", "RR(rel=10)", "AP(rel=6)"])
def test_measures_with_a_high_threshold_are_not_linear(measure):
    """P, RR and AP are refused whatever grade they take for relevant; they would value any ranking at 0."""
    log = logged([("i1", "q", 1, "a", 1), ("i2", "q", 1, "a", 0)])
    with pytest.raises(InvalidInput, match="not linear"):
        counterfactual(log, {("q", "a"): 1}, {1: 0.05}, measure=measure)


def test_scores_or_propensities_given_twice_are_refused_in_words():
    """A Series with a label twice gives InvalidInput that names the argument, and not an error of pandas."""
    log = logged([("i1", "q", 1, "a", 1), ("i2", "q", 1, "a", 0)])
    scores = pd.Series({("q", "a"): 1.0})
    with pytest.raises(InvalidInput, match="scores"):
        counterfactual(log, pd.concat([scores, scores]), {1: 1.0})
    with pytest.raises(InvalidInput, match="propensities"):
        counterfactual(log, scores, pd.Series([1.0, 0.5], [1, 1]))


@each_row("unit", [["a", None, "b", "a"], [1, np.nan, 2, 1]])
def test_an_item_without_a_unit_is_not_lost_from_the_interval(unit):
    """A missing user is refused: dropped in silence, it made the interval too short."""
    with pytest.raises(InvalidInput, match="unit"):
        policy_value(CLICK, CHANCE, 0.5, unit=unit)


@each_row("unit", [["a", "b"], ["a"] * 4])
def test_a_unit_that_does_not_fit_is_refused_in_words(unit):
    """Units of another length, or a single unit, give InvalidInput and not an error of pandas or of division."""
    with pytest.raises(InvalidInput, match="unit"):
        policy_value(CLICK, CHANCE, 0.5, unit=unit)


@each_row("clip", [np.nan, 0, -1])
def test_a_clip_that_is_no_positive_number_is_refused(clip):
    """Nan gave the value nan, and -1 a negative share of clicks, without a word."""
    with pytest.raises(InvalidInput, match="clip"):
        policy_value(CLICK, CHANCE, 0.5, how="clipped", clip=clip)


@each_row(
    ("click", "options"),
    [
        ([1, 0, 1], {}),
        (["1", "0", "1", "x"], {}),
        ([[1], [0], [1], [0]], {}),
        (CLICK, {"how": "dr", "baseline": ([0.1], [0.1])}),
        (CLICK, {"how": "dr", "baseline": [0.1, 0.1, 0.1, 0.1]}),
    ],
)
def test_arrays_that_do_not_fit_are_invalid_input(click, options):
    """As the docstring says: lengths that differ, or no number, raise InvalidInput."""
    with pytest.raises(InvalidInput):
        policy_value(click, CHANCE, 0.5, **options)


def test_arrays_are_taken_in_their_order():
    """Items are matched by their place as documented, and not by the labels that Series of pandas happen to have."""
    click, chance = pd.Series([1, 0, 1, 0], [3, 2, 1, 0]), pd.Series([0.1, 0.2, 0.4, 0.8])
    assert policy_value(click, chance, 0.5).value == policy_value(click.to_numpy(), chance.to_numpy(), 0.5).value


def test_a_weight_of_one_but_for_rounding_says_nothing():
    """Equal weights of 1, up to the last bit, are no sign of wrong propensities."""
    found = policy_value(np.arange(1000) % 2, np.full(1000, 0.1 + 0.2), 0.3)
    assert not [note for note in found.notes if "propensities are wrong" in note]


def test_one_long_list_does_not_fill_the_memory():
    """Memory follows the shown items: a list of 4,000 among 1,000 of 5 takes less than 60 MB to fit."""
    short = pd.DataFrame({"impression": np.repeat(np.arange(1000), 5), "position": np.tile(np.arange(1, 6), 1000)})
    long = pd.DataFrame({"impression": 1000, "position": np.arange(1, 4001)})
    rows = pd.concat([short, long])
    log = ClickLog.from_frame(rows.assign(docid=rows["position"], clicked=np.arange(len(rows)) % 7 == 0))
    tracemalloc.start()
    try:
        ClickModel("pbm").fit(log, tolerance=0, max_iter=2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 60e6


@pytest.mark.filterwarnings("ignore:EM has not converged")
def test_the_fitted_values_are_those_of_the_last_iteration():
    """If iterations run out, the parameters are not less likely than those of the last objective."""
    rng = np.random.default_rng(3)
    for _ in range(8):
        lists = [(list(rng.permutation(list("abcd"))[:3]), list(rng.random(3) < rng.random() * 0.6)) for _ in range(6)]
    lists.append((list("abc"), [True, False, False]))
    rows = [(n, "q", 1 + at, docs[at], clicks[at]) for n, (docs, clicks) in enumerate(lists) for at in range(3)]
    log = logged(rows)
    model = ClickModel("ubm").fit(log, prior=(0, 0), tolerance=1e-9, max_iter=6)
    chance = model.click_probabilities(log)
    likelihood = np.log(np.where(log.items["clicked"], chance, 1 - chance)).sum()
    assert likelihood >= model.objectives[-1] - 1e-9


def test_a_pair_with_two_attractions_is_refused():
    """Which of the two counts is not guessed, and no error of pandas follows later."""
    pairs = pd.MultiIndex.from_tuples([("q", "a"), ("q", "a")])
    with pytest.raises(InvalidInput, match="attraction"):
        ClickModel("cascade", attraction=pd.Series([0.5, 0.4], pairs))


@each_row(
    ("name", "parameters"),
    [
        ("pbm", {"attraction": {("q", "a"): 0.5}, "examination": 0.5}),
        ("pbm", {"attraction": None, "examination": [1.0]}),
        ("sdbn", {"attraction": {("q", "a"): 0.5}, "satisfaction": 0.5}),
        ("dbn", {"attraction": {("q", "a"): 0.5}, "satisfaction": {("q", "a"): 0.5}, "gamma": [0.5]}),
    ],
)
def test_a_parameter_of_another_shape_is_invalid_input(name, parameters):
    """As the docstring says, a parameter with another index raises InvalidInput, and no TypeError."""
    with pytest.raises(InvalidInput):
        ClickModel(name, **parameters)


@each_row("prior", [(1,), 1])
def test_a_prior_of_another_shape_is_invalid_input(prior):
    """The message names the prior."""
    with pytest.raises(InvalidInput, match="prior"):
        ClickModel("pbm").fit(two_lists((0, "a"), (1, "b")), prior=prior)


def test_a_frame_in_place_of_a_log_is_refused_in_words():
    """The check that wants a ClickLog stands before the first use of the log."""
    frame = two_lists((0, "a"), (1, "b")).to_frame()
    with pytest.raises(InvalidInput, match="a ClickLog"):
        ClickModel("pbm").fit(frame)
    with pytest.raises(InvalidInput, match="a ClickLog"):
        propensities(frame, how="randomized")
    with pytest.raises(InvalidInput, match="a ClickLog"):
        counterfactual(frame, [1.0] * 16, {1: 1.0, 2: 0.5})


def test_parameters_cannot_be_changed_from_outside():
    """Writing into what `parameters` returned leaves the model as it was."""
    model = ClickModel("pbm", attraction={("q", "a"): 0.5}, examination=[1.0])
    given = model.parameters["examination"]
    given[1] = 9.0
    assert model.parameters["examination"][1] == 1.0


def test_simulated_impressions_keep_their_other_columns():
    """As the docstring says, columns of the frame beside qid and shown are kept; else they are refused."""
    model = ClickModel("pbm", attraction={("q", "a"): 0.5}, examination=[1.0])
    frame = pd.DataFrame({"qid": ["q"], "shown": [["a"]], "user": ["u"], "country": ["de"]})
    assert model.simulate(frame).impressions["country"].tolist() == ["de"]


def test_impressions_with_equal_labels_are_all_simulated():
    """Two rows of a frame made by pd.concat are two impressions, and none is dropped as a repeated event."""
    model = ClickModel("pbm", attraction={("q", "a"): 0.5}, examination=[1.0])
    frame = pd.DataFrame({"qid": ["q"], "shown": [["a"]]})
    assert len(model.simulate(pd.concat([frame, frame])).impressions) == 2


def test_rankings_of_polars_are_simulated():
    """A frame of polars is a frame, as in `ClickLog.from_frame`."""
    import polars as pl

    model = ClickModel("pbm", attraction={("q", "a"): 0.5}, examination=[1.0])
    assert len(model.simulate(pl.DataFrame({"qid": ["q"], "shown": [["a"]]})).impressions) == 1


def test_one_item_is_too_few_and_the_message_says_so():
    """The message about a single item does not say that the target policy shows none of them."""
    with pytest.raises(InvalidInput) as told:
        policy_value([1], [0.5], [0.5])
    assert "none of" not in str(told.value)


def test_a_log_without_clicks_has_no_certain_value():
    """No click in 20 impressions does not prove the value 0: a warning or note says that nothing is known."""
    rows = [(n, "q", 1 + k, "ab"[k], 0) for n in range(20) for k in range(2)]
    with pytest.warns(RankevalWarning, match="click"):
        counterfactual(logged(rows), {("q", "a"): 1, ("q", "b"): 2}, {1: 1.0, 2: 0.5})


def test_a_policy_without_clicks_has_no_certain_value():
    """The interval [0, 0] of 20 items without a click is not 95 % sure: a warning and a note say so."""
    with pytest.warns(RankevalWarning, match="nothing was clicked"):
        found = policy_value(np.zeros(20), np.full(20, 0.5), 0.5)
    assert "nothing was clicked" in found.notes[0]


def test_intervals_of_counted_rows_are_those_of_their_impressions():
    """A row with count n is n impressions for the bootstrap too, as the note about samples of impressions says."""
    clicks = [(1, 1, 400), (1, 0, 600), (2, 1, 200), (2, 0, 800)]
    rows = pd.DataFrame(clicks, columns=["position", "clicked", "count"]).assign(docid="a", impression=range(4))
    apart = rows.loc[rows.index.repeat(rows["count"])].drop(columns="count").assign(impression=range(2000))
    logs = [ClickLog.from_frame(each, complete=False) for each in (rows, apart)]
    tables = [propensities(log, how="all_pairs").table.iloc[1] for log in logs]
    counted, single = (table["ci_high"] - table["ci_low"] for table in tables)
    assert 0.5 < counted / single < 2


def test_intervals_of_few_users_hold():
    """With 5 users an interval called 95 % holds the truth in at least .91 of 400 runs."""
    rng, held = np.random.default_rng(1), 0
    user = np.repeat(np.arange(5), 20)
    for _ in range(400):
        click = rng.random(100) < rng.beta(2, 2, 5)[user]
        row = policy_value(click, np.full(100, 0.5), 0.5, unit=user).table.iloc[0]
        held += row["ci_low"] <= 0.5 <= row["ci_high"]
    assert held >= 364
