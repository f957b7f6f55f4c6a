"""Click models: fitted to the clicks of themselves they foresee them, and they equal what others and theory say."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from circles import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import each_row

from rankeval.errors import InvalidInput, RankevalWarning, UnknownName
from rankeval.online import ClickLog, ClickModel

MODELS = ("pbm", "cascade", "dcm", "sdbn", "dbn", "ubm")
PYCLICK = json.loads((Path(__file__).parent / "pyclick.json").read_text())
DEPTH = 6
SLOTS = pd.MultiIndex.from_tuples([(place, last) for place in range(1, DEPTH + 1) for last in range(place)])


def logged(rows):
    """Return the log of impressions: query, documents, clicks, and perhaps a count."""
    columns = ["qid", "docid", "clicked", "count"][: len(rows[0])]
    frame = pd.DataFrame(rows, columns=columns).rename_axis("impression").reset_index()
    frame = frame.explode(["docid", "clicked"])
    return ClickLog.from_frame(frame.assign(position=frame.groupby("impression").cumcount() + 1))


def known_user(name, n_queries=8, n_docs=12):
    """Return a user with drawn parameters."""
    rng = np.random.default_rng(5)
    ids = [f"q{n}" for n in range(n_queries)], [f"d{n}" for n in range(n_docs)]
    pairs = pd.MultiIndex.from_product(ids)
    of_all = {
        "attraction": pd.Series(rng.beta(1.2, 3, len(pairs)), pairs),
        "satisfaction": pd.Series(rng.beta(2, 2, len(pairs)), pairs),
        "continuation": np.linspace(0.4, 0.8, DEPTH - 1),
        "examination": 1 / np.arange(1, DEPTH + 1) ** 0.8,
        "gamma": 0.8,
    }
    if name == "ubm":
        of_all["examination"] = {(place, last): min(1, (place - last) ** -0.6) for place, last in SLOTS}
        of_all["examination"] |= {(place, 0): 0.9 ** (place - 1) for place in range(1, DEPTH + 1)}
    needed = {"pbm": ["examination"], "ubm": ["examination"], "dcm": ["continuation"], "cascade": []}
    of_chain = ["satisfaction", "gamma"][: 1 + (name == "dbn")]
    return ClickModel(name, **{one: of_all[one] for one in ["attraction", *needed.get(name, of_chain)]})


def lists(n, seed, user):
    """Return impressions whose order follows attraction with noise, so that documents stand at several positions."""
    rng, attraction = np.random.default_rng(seed), user.parameters["attraction"].reset_index()
    attraction = attraction.pivot_table("attraction", "qid", "docid")
    rows = rng.integers(0, len(attraction), n)
    order = np.argsort(-attraction.to_numpy()[rows] - rng.normal(0, 0.3, (n, attraction.shape[1])), axis=1)
    return pd.DataFrame({"qid": attraction.index[rows], "shown": list(attraction.columns.to_numpy()[order[:, :DEPTH]])})


CLICKS = st.lists(
    st.tuples(
        st.sampled_from(["q1", "q2"]),
        st.permutations(["a", "b", "c", "d"]).map(lambda order: order[:3]),
        st.lists(st.booleans(), min_size=3, max_size=3),
        st.integers(1, 3),
    ),
    min_size=1,
    max_size=12,
)


def of_one_click(rows):
    """Return rows with their first clicks alone, which the cascade model can take."""
    return [
        (qid, docs, [click and not any(clicks[:at]) for at, click in enumerate(clicks)], *rest)
        for qid, docs, clicks, *rest in rows
    ]


@each_row("name", ["pbm", "ubm"])
def test_factor_models_equal_pyclick(name):
    """After as many iterations from one half, each probability is PyClick's to 1e-12."""
    log = logged(PYCLICK["sessions"])
    model = ClickModel(name).fit(log, prior=(1, 2), tolerance=0, max_iter=PYCLICK["iterations"])
    theirs = np.concatenate(PYCLICK[name]["probabilities"])
    np.testing.assert_allclose(model.click_probabilities(log), theirs, rtol=0, atol=1e-12)
    if name == "pbm":
        examination = np.array(PYCLICK[name]["examination"])
        np.testing.assert_allclose(model.parameters["examination"], examination / examination[0], rtol=0, atol=1e-12)


@pytest.mark.world
@pytest.mark.parametrize("name", MODELS)
def test_a_model_foresees_its_own_clicks(name):
    """Fitted to 30,000 of its own impressions, it comes near the truth on others, and beats both click rates."""
    user = known_user(name)
    training, held_out = (user.simulate(lists(30_000, seed, user), seed) for seed in (1, 2))
    model = ClickModel(name).fit(training)
    found = model.perplexity(held_out)
    assert abs(found.overall - user.perplexity(held_out).overall) < 0.002
    assert (found.table["perplexity"] <= found.table[["rate_by_position", "rate_by_document"]].min(axis=1)).iloc[-1]
    for parameter, values in user.parameters.items():
        if parameter not in ("attraction", "satisfaction"):
            np.testing.assert_allclose(model.parameters[parameter], values, atol=0.05)
    shown = training.items.groupby("docid", observed=True).size()
    assert shown.min() > 1000
    far = (model.parameters["attraction"] - user.parameters["attraction"]).abs()
    assert far.mean() < 0.03


@settings(max_examples=examples(25), deadline=None)
@given(
    rows=CLICKS,
    name=st.sampled_from(MODELS),
    prior=st.sampled_from([(1.0, 2.0), (0.2, 1.0), (0.0, 0.0)]),
)
@pytest.mark.filterwarnings("ignore:EM has not converged")
def test_em_never_lowers_its_objective(rows, name, prior):
    """The log likelihood with the prior rises or stays from one iteration to the next."""
    rows = of_one_click(rows) if name == "cascade" else rows
    if prior == (0.0, 0.0) and not any(clicks[0] for _, _, clicks, _ in rows):
        rows = [*rows, ("q1", ["a", "b", "c"], [True, False, False], 1)]
    model = ClickModel(name).fit(logged(rows), prior=prior, tolerance=0, max_iter=60)
    assert np.diff(model.objectives).min() > -1e-9


@settings(max_examples=examples(25), deadline=None)
@given(rows=CLICKS, name=st.sampled_from(MODELS), order=st.randoms(use_true_random=False))
def test_neither_order_nor_ids_nor_counts_matter(rows, name, order):
    """Rows in another order, renamed ids, and a row for each impression in place of counts give equal parameters."""
    rows = of_one_click(rows) if name == "cascade" else rows
    options = {"tolerance": 0, "max_iter": 15}
    apart = [row[:3] for row in rows for _ in range(row[3])]
    order.shuffle(apart)
    renamed = [(f"new {qid}", [f"z{doc}" for doc in docs], clicks) for qid, docs, clicks in apart]
    one = ClickModel(name).fit(logged(rows), **options).parameters
    other = ClickModel(name).fit(logged(renamed), **options).parameters
    for parameter, values in one.items():
        np.testing.assert_allclose(values, other[parameter], rtol=1e-9)


def brute_force(name, parameters, qid, docs, clicks):
    """Return the probability of clicks by following every user: examined, satisfied and gone, item by item."""
    attraction, gamma = parameters["attraction"], parameters.get("gamma", 1.0)

    def stops(place, doc):
        if name == "dcm":
            return 1 - parameters["continuation"].get(place + 1, 0.0)
        return parameters["satisfaction"][qid, doc] if "satisfaction" in parameters else 1.0

    def rest(place, examined):
        if place == len(docs):
            return 1.0
        if not examined:
            return 0.0 if any(clicks[place:]) else 1.0
        at = attraction[qid, docs[place]]
        if not clicks[place]:
            return (1 - at) * (gamma * rest(place + 1, True) + (1 - gamma) * rest(place + 1, False))
        goes_on = (1 - stops(place, docs[place])) * gamma
        return at * (goes_on * rest(place + 1, True) + (1 - goes_on) * rest(place + 1, False))

    return rest(0, True)


@settings(max_examples=examples(25), deadline=None)
@given(rows=CLICKS, name=st.sampled_from(["cascade", "dcm", "sdbn", "dbn"]))
def test_the_objective_of_a_chain_is_its_likelihood(rows, name):
    """Over all paths of users, the log likelihood is the objective of EM, and that of the click probabilities."""
    rows = of_one_click(rows) if name == "cascade" else rows
    log, options = logged(rows), {"prior": (0.0, 0.0), "tolerance": 0}
    model = ClickModel(name).fit(log, **options, max_iter=4)
    after = ClickModel(name).fit(log, **options, max_iter=5)
    likelihood = sum(row[3] * np.log(brute_force(name, model.parameters, *row[:3])) for row in rows)
    assert after.objectives[-1] == pytest.approx(likelihood, abs=1e-9)
    chance = np.where(log.items["clicked"], model.click_probabilities(log), 1 - model.click_probabilities(log))
    assert np.repeat(log.counts, 3) @ np.log(chance) == pytest.approx(likelihood, abs=1e-9)


def test_the_cascade_model_is_a_count():
    """Attraction is the clicks over the times at or above the click, with the prior counted in."""
    log = logged(
        [("q", ["a", "b"], [False, True]), ("q", ["b", "a"], [True, False]), ("q", ["a", "b"], [False, False])]
    )
    attraction = ClickModel("cascade").fit(log, prior=(1, 4)).parameters["attraction"]
    assert attraction.to_dict() == {("q", "a"): (0 + 1) / (2 + 4), ("q", "b"): (2 + 1) / (3 + 4)}
    with pytest.raises(InvalidInput, match="2 impressions with several clicks"):
        ClickModel("cascade").fit(logged([("q", ["a", "b"], [True, True], 2)]))


@each_row("name", MODELS)
def test_simulated_clicks_have_the_rates_of_the_model(name):
    """Of 40,000 users of one list, the share with each pattern of clicks is the model's probability."""
    user = known_user(name)
    log = user.simulate({"q1": ["d1", "d2", "d3"]}, 3, n=40_000)
    patterns = (
        pd.Series([*log.items["clicked"].to_numpy().reshape(-1, 3).tolist()]).map(tuple).value_counts(normalize=True)
    )
    for pattern, share in patterns.items():
        one = logged([("q1", ["d1", "d2", "d3"], list(pattern))])
        chance = user.click_probabilities(one)
        expected = np.where(pattern, chance, 1 - chance).prod()
        assert share == pytest.approx(expected, abs=4 * np.sqrt(expected / 40_000))


def test_impressions_are_shown_again_with_what_belongs_to_them():
    """Users, arms and ids stay; a row that stands for several impressions becomes so many; a seed gives equal logs."""
    user = ClickModel("pbm", attraction={("q", "a"): 0.5, ("q", "b"): 0.5}, examination=[1, 0.5])
    frame = pd.DataFrame({"qid": "q", "shown": [["a", "b"], ["b"]], "user": ["u1", "u2"]}, index=["i1", "i2"])
    log = user.simulate(frame, 7)
    assert log.impressions["user"].to_dict() == {"i1": "u1", "i2": "u2"}
    assert log.items["docid"].tolist() == ["a", "b", "b"]
    counted = ClickLog(log.impressions.assign(count=[3, 1]), log.items)
    again = user.simulate(counted, 8, n=2)
    assert again.impressions["user"].tolist() == ["u1"] * 6 + ["u2"] * 2
    assert again.items["position"].tolist() == [1, 2] * 6 + [1] * 2
    pd.testing.assert_frame_equal(again.items, user.simulate(counted, 8, n=2).items)


def test_perplexity_by_hand():
    """It is 2 to the mean bits by position; unknown pairs have the prior's attraction and are counted."""
    log = logged([("q", ["a"], [True], 3), ("q", ["a"], [False], 1)])
    model = ClickModel("pbm").fit(log, prior=(0, 0))
    found = model.perplexity(log)
    bits = 0.75 * np.log2(4 / 3) + 0.25 * np.log2(4)
    assert found.overall == pytest.approx(2**bits)
    assert found.table["shown"].tolist() == [4, 4]
    assert found.table["rate_by_document"].tolist() == pytest.approx([2**bits] * 2)
    strange = model.perplexity(logged([("q", ["b"], [True]), ("q", ["a"], [True])]))
    assert "1 of 2 shown items are of pairs that the model does not know: they have a set attraction" in strange.notes
    assert "all" in str(strange)
    known = ClickModel("pbm", attraction={("q", "a"): 1.0}, examination=[1.0])
    assert known.perplexity(log).overall == np.inf
    assert [*known.perplexity(log).table] == ["position", "shown", "perplexity"]
    assert "the model gives probability 0 to a click or skip that happened" in known.perplexity(log).notes


def test_values_that_the_log_says_nothing_of_are_noted():
    """All clicks are at position 1, so that nothing is known of position 2 without a click above."""
    log = logged([("q", ["a", "b"], [True, False], 3), ("q", ["b", "a"], [True, True], 2)])
    model = ClickModel("ubm").fit(log, prior=(1, 4))
    said = "examination: the log says nothing of 1 of 3 values, which are those of the prior"
    assert model.notes == (said,)
    assert said in model.perplexity(log).notes
    unscaled = model.parameters["examination"] * model.unknown / 0.25
    assert unscaled[2, 0] == pytest.approx(0.25)
    assert ClickModel("pbm").fit(log).notes == ()


def test_single_items_are_enough_for_pbm_alone():
    """The position-based model takes a log of single items; models that follow users down the list refuse it."""
    frame = pd.DataFrame({"impression": range(6), "qid": "q", "docid": list("ababab"), "position": [1, 2, 2, 1, 1, 2]})
    log = ClickLog.from_frame(frame.assign(clicked=[True, False, True, True, False, True]), complete=False)
    assert not log.complete
    model = ClickModel("pbm").fit(log)
    assert model.click_probabilities(log).shape == (6,)
    second = ClickLog.from_frame(frame[frame["position"] == 2].assign(clicked=True), complete=False)
    assert model.perplexity(second).table["position"].tolist() == [2, "all"]
    with pytest.raises(InvalidInput, match="does not have all positions"):
        ClickModel("ubm").fit(log)


def test_an_unfinished_fit_warns():
    """Too few iterations for the tolerance are said, unless the iterations are all that was asked for."""
    log = logged(PYCLICK["sessions"])
    with pytest.warns(RankevalWarning, match="EM has not converged: iteration 3 moved a parameter by"):
        ClickModel("ubm").fit(log, max_iter=3)


@each_row(
    ("parameters", "problem"),
    [
        ({"attraction": {("q", "a"): 0.5}}, "examination is missing"),
        ({"attraction": {("q", "a"): 1.5}, "examination": [1]}, "attraction"),
        ({"attraction": {"a": 0.5}, "examination": [1]}, "for each qid, docid"),
        (
            {"attraction": {("q", "a"): 0.5}, "examination": {1: 1, 3: 0.5}},
            "for each position; positions are from 1 on",
        ),
        ({"attraction": {("q", "a"): 0.8}, "examination": [1, 1.5]}, "attraction times examination"),
    ],
)
def test_a_known_user_needs_whole_probabilities(parameters, problem):
    """All parameters, each a probability with the index that it has in a fitted model."""
    with pytest.raises(InvalidInput, match=problem):
        ClickModel("pbm", **parameters)


def test_names_and_unknown_documents_are_refused():
    """Models and parameters have names; a document or position that a user does not know needs an attraction."""
    with pytest.raises(UnknownName, match="did you mean 'pbm'"):
        ClickModel("pbn")
    with pytest.raises(UnknownName, match="unknown parameter of sdbn 'gama'"):
        ClickModel("sdbn", gama=1)
    with pytest.raises(InvalidInput, match="no parameters"):
        ClickModel("pbm").simulate({"q": ["a"]})
    user = ClickModel("dcm", attraction={("q", "a"): 0.5}, continuation=[0.5])
    with pytest.raises(InvalidInput, match=r"1 pair of query and document: \('q', 'b'\)"):
        user.simulate({"q": ["a", "b"]})
    assert len(user.simulate({"q": ["a", "b"]}, unknown=0.1).items) == 2
    with pytest.raises(InvalidInput, match="2 positions, and a list has 3"):
        user.simulate({"q": ["a", "b", "c"]}, unknown=0.1)
    with pytest.raises(InvalidInput, match="impression 1"):
        user.simulate(pd.DataFrame({"impression": [1, 1], "qid": "q", "shown": [["a"], ["a", "b"]]}), unknown=0.1)
    assert user.simulate({"q": [], "q2": ["a"]}, unknown=0.1).excluded == {"impressions of an empty list": 1}
