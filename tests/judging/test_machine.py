"""People's judgments of some queries and a machine's of all: the estimate, its notes, its plan and its picture."""

import math
import re

import numpy as np
import pandas as pd
import pytest
from circles import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tables import each_row

import rankeval as rk
from rankeval.errors import ConventionMismatch, InvalidInput, QueryIdError, UnknownName
from rankeval.judging import calibrate, draw, plan

N = 60


def frames(seed=0, n=12, systems="abc", measures=("nDCG@10", "AP"), N=N):
    """Return scores by people, of the queries drawn, and by a machine that knows something of them."""
    rng = np.random.default_rng([seed, 28])  # not the stream of the drawing
    ids = [f"q{k:03d}" for k in range(N)]
    judged, human, machine = draw(ids, n, rng=seed), {}, {}
    query = rng.normal(size=(N, 1))
    for name in systems:
        true = 0.5 + 0.1 * query + 0.1 * rng.normal(size=(N, len(measures)))
        seen = true + 0.1 + 0.05 * rng.normal(size=true.shape)
        human[name] = pd.DataFrame(true, index=ids, columns=list(measures)).loc[judged]
        machine[name] = pd.DataFrame(seen, index=ids, columns=list(measures))
    return human, machine


def by_formula(human, machine, alpha=0.05):
    """Return estimate, interval, p, correlation and gain of one series of scores by query id, number by number."""
    n, N = len(human), len(machine)
    x = [float(machine[query]) for query in human.index]
    y = [float(value) for value in human]
    mean_x, mean_y, mean_all = math.fsum(x) / n, math.fsum(y) / n, math.fsum(machine) / N
    sxx = math.fsum((one - mean_x) ** 2 for one in x)
    syy = math.fsum((one - mean_y) ** 2 for one in y)
    sxy = math.fsum((one - mean_x) * (other - mean_y) for one, other in zip(x, y, strict=True))
    b = sxy / sxx
    off = [yy - mean_y - b * (xx - mean_x) for xx, yy in zip(x, y, strict=True)]
    even = math.fsum(one**2 for one in off) / (n - 2) * (1 / n + (mean_all - mean_x) ** 2 / sxx)
    weights = [1 / n + (mean_all - mean_x) * (xx - mean_x) / sxx for xx in x]
    rest = [1 - 1 / n - (xx - mean_x) ** 2 / sxx for xx in x]
    uneven = math.fsum((w * one / left) ** 2 for w, one, left in zip(weights, off, rest, strict=True))
    beyond = 2 * b * math.fsum(one - min(max(one, min(x)), max(x)) for one in machine) / N
    spread = math.fsum((one - mean_all) ** 2 for one in machine) / (N - 1)
    error = math.sqrt(max(even, uneven) + beyond**2 + b**2 * spread / N)
    estimate, t = mean_y + b * (mean_all - mean_x), stats.t(n - 2)
    return {
        "estimate": estimate,
        "ci_low": estimate + t.ppf(alpha / 2) * error,
        "ci_high": estimate - t.ppf(alpha / 2) * error,
        "p_value": 2 * t.cdf(-abs(estimate / error)),
        "correlation": sxy / math.sqrt(sxx * syy),
        "gain": syy / (n - 1) / n / error**2,
        "leverage": max((one - mean_x) ** 2 for one in x) / sxx,
        "inflation": (max(even, uneven) + beyond**2) / even,
        "mean_human": mean_y,
        "mean_machine": mean_all,
    }


@each_row("seed", range(5))
@each_row("n", [8, 25])
def test_means_and_differences_are_those_of_the_formula(seed, n):
    """Means of each system and differences of each pair, by two measures, to 1e-12."""
    human, machine = frames(seed, n)
    found = calibrate(human, machine, alpha=0.1)
    assert len(found.table) == len(found.means) == 6
    for row in found.table.to_dict("records"):
        pairs = [given[row["system"]] - given[row["baseline"]] for given in (human, machine)]
        expected = by_formula(*(pair[row["measure"]] for pair in pairs), alpha=0.1)
        assert {key: row[key] for key in expected} == pytest.approx(expected, abs=1e-12, rel=1e-12)
        assert (row["n_human"], row["n_machine"], row["degrees"]) == (n, N, n - 2)
    for row in found.means.to_dict("records"):
        expected = by_formula(*(given[row["system"]][row["measure"]] for given in (human, machine)), alpha=0.1)
        del expected["p_value"]
        assert {key: row[key] for key in expected} == pytest.approx(expected, abs=1e-12, rel=1e-12)


def test_each_judge_alone_is_students_t():
    human, machine = frames()
    for row in calibrate(human, machine).table.to_dict("records"):
        for judge, systems in (("human", human), ("machine", machine)):
            scores = (systems[row["system"]] - systems[row["baseline"]])[row["measure"]]
            tested = stats.ttest_1samp(scores, 0.0)
            ends = tested.confidence_interval()
            expected = [ends.low, ends.high, tested.pvalue]
            found = [row[f"{name}_{judge}"] for name in ("ci_low", "ci_high", "p")]
            assert found == pytest.approx(expected, rel=1e-9)


def test_rows_are_those_of_compare():
    """All pairs, or those with a baseline; the people's means are those of a comparison of people's scores."""
    human, machine = frames()
    for options in ({}, {"baseline": "b"}, {"measures": "AP"}):
        compared = rk.compare(human, **options).table
        found = calibrate(human, machine, **options).table
        assert found[["measure", "baseline", "system"]].equals(compared[["measure", "baseline", "system"]])
        assert found["mean_human"].to_numpy() == pytest.approx(compared["difference"].to_numpy())
        assert found["p_human"].to_numpy() == pytest.approx(compared["p_value"].to_numpy())


@each_row("correction", ["holm", "bonferroni", "bh", "none"])
def test_p_values_and_intervals_are_corrected_over_all_rows(correction):
    human, machine = frames()
    found = calibrate(human, machine, correction=correction)
    table = found.table
    assert table["p_adjusted"].tolist() == rk.significance.adjust(table["p_value"], correction).tolist()
    level = {"holm": 0.05 / 6, "bonferroni": 0.05 / 6, "none": 0.05}.get(correction)
    if level is None:
        assert table["ci_low_adjusted"].isna().all()
        assert any("false claims" in note for note in found.notes)
    else:
        assert not any("false claims" in note for note in found.notes)
        wide = calibrate(human, machine, alpha=level).table
        assert table["ci_low_adjusted"].to_numpy() == pytest.approx(wide["ci_low"].to_numpy())
        assert table["ci_high_adjusted"].to_numpy() == pytest.approx(wide["ci_high"].to_numpy())


def test_one_system_alone_has_its_mean():
    human, machine = frames()
    alone = calibrate({"a": human["a"]}, {"a": machine["a"]})
    together = calibrate(human, machine).means
    row, same = alone.table.iloc[0], together[together["system"] == "a"].iloc[0]
    assert (row["system"], row["baseline"]) == ("a", "")
    assert row["estimate"] == same["estimate"]
    assert math.isnan(row["p_value"])
    assert re.search(r"^AP +a ", str(alone), re.MULTILINE)


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 10_000), st.floats(0.1, 10), st.floats(-5, 5), st.booleans())
def test_the_machines_scale_and_bias_do_not_matter(seed, scale, shift, turned):
    """The estimate is that of any straight line of the machine's scores, even one that falls."""
    human, machine = frames(seed, systems="a", measures=["AP"])
    other = {"a": (-scale if turned else scale) * machine["a"] + shift}
    names = ["estimate", "ci_low", "ci_high", "gain"]
    found, expected = (calibrate(human, given).table[names].to_numpy() for given in (other, machine))
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-9)


@settings(max_examples=examples(25), deadline=None)
@given(st.randoms(use_true_random=False))
def test_the_order_of_rows_and_systems_does_not_matter(random):
    human, machine = frames(systems="ab")
    ids = list(machine["a"].index)
    random.shuffle(ids)
    shuffled = {name: machine[name].loc[ids] for name in "ba"}
    turned = {name: frame.loc[[query for query in ids if query in frame.index]] for name, frame in human.items()}
    assert calibrate(turned, shuffled).table.equals(calibrate(human, machine).table)


def test_a_machine_that_agrees_with_people_gives_its_own_mean():
    """With the error of its mean, if people judged the queries with its least and greatest scores."""
    human, machine = frames()
    for name in machine:
        judged = machine[name].loc[human[name].index]
        machine[name] = machine[name].clip(judged.min(), judged.max(), axis=1)
    one, other = (machine[name].loc[human[name].index] for name in "ab")
    machine["b"] = machine["a"] + (machine["b"] - machine["a"]).clip((other - one).min(), (other - one).max(), axis=1)
    human, machine = ({name: of[name] for name in "ab"} for of in (human, machine))
    exact = {name: machine[name].loc[human[name].index] for name in machine}
    found = calibrate(exact, machine)
    assert found.table["estimate"].to_numpy() == pytest.approx(found.table["mean_machine"].to_numpy())
    assert found.table["correlation"].to_numpy() == pytest.approx(1.0)
    errors = found.table["sd_machine"] / math.sqrt(N)
    assert found.table["std_error"].to_numpy() == pytest.approx(errors.to_numpy())


def test_a_machine_that_always_says_the_same_leaves_the_people_alone():
    human, machine = frames(systems="a", measures=["AP"])
    found = calibrate(human, {"a": machine["a"] * 0 + 0.5})
    row = found.table.iloc[0]
    assert [row["estimate"], row["ci_low"], row["ci_high"]] == pytest.approx(
        [row["mean_human"], row["ci_low_human"], row["ci_high_human"]]
    )
    assert (row["gain"], row["degrees"]) == (1.0, 11)
    assert any("do not vary, or in one query alone: 'a by AP'" in note for note in found.notes)
    assert not any("do not vary" in note for note in calibrate(human, machine).notes)


def test_a_machine_whose_scores_vary_in_one_query_alone_leaves_the_people_alone():
    """The line goes through that query's point, so how far the machine is right cannot be told."""
    human, machine = frames(systems="a", measures=["AP"])
    flat = machine["a"] * 0 + 0.5
    flat.loc[human["a"].index[3]] = 0.9
    row = calibrate(human, {"a": flat}).table.iloc[0]
    assert (row["estimate"], row["gain"], row["degrees"]) == (pytest.approx(row["mean_human"]), 1.0, 11)
    assert math.isnan(row["leverage"])


def test_people_who_always_say_the_same_tell_no_width():
    human, machine = frames(systems="ab", measures=["AP"])
    found = calibrate({"a": human["a"], "b": human["a"] + 0.1}, machine)
    row = found.table.iloc[0]
    assert (row["ci_low"], row["ci_high"], row["p_value"]) == (-math.inf, math.inf, 1.0)
    assert row["estimate"] == pytest.approx(0.1)
    planned = plan(found, width=0.1)
    assert planned.table[["n_human", "n_without"]].isna().to_numpy().all()
    assert "people's scores of the pilot do not vary" in planned.notes[0]
    assert not any(word in " ".join(planned.notes) for word in ("nan", "machine must judge more"))


HUMAN, MACHINE = frames()
COLLECTIONS = {"x": HUMAN["a"], "y": frames(1)[0]["a"]}


@each_row(
    ("wrong", "error", "said"),
    [
        ({"human": {name: one[:7] for name, one in HUMAN.items()}}, InvalidInput, "at least 8 are needed"),
        ({"human": {"a": HUMAN["a"]}}, InvalidInput, "people judged 'a', and the machine 'a', 'b'"),
        ({"machine": {name: one[1:20] for name, one in MACHINE.items()}}, QueryIdError, "lack 7 of the 12 queries"),
        ({"human": {}}, InvalidInput, "people judged no system"),
        ({"human": {}, "machine": {}}, InvalidInput, "at least 1 name"),
        ({"machine": MACHINE["a"]}, InvalidInput, "the machine no system"),
        ({"human": {"a": COLLECTIONS}, "machine": {"a": COLLECTIONS}}, InvalidInput, "found dict"),
        ({"human": {"a": {}}, "machine": {"a": {}}}, InvalidInput, "no measure"),
        ({"measures": "RR"}, UnknownName, "RR"),
        ({"baseline": "z"}, UnknownName, "z"),
        ({"correction": "max_t"}, UnknownName, "max_t"),
        ({"alpha": 0.7}, InvalidInput, "alpha"),
    ],
)
def test_what_cannot_be_calibrated_is_refused(wrong, error, said):
    with pytest.raises(error, match=said):
        calibrate(**({"human": HUMAN, "machine": MACHINE} | wrong))


def judged_runs(n=30, n_docs=10, digits=9):
    """Return judgments by people and by a machine, and two runs; with one digit some documents tie."""
    rng = np.random.default_rng(3)
    rows = [(f"q{q:02d}", f"d{d}", int(rng.random() < 0.4)) for q in range(n) for d in range(n_docs)]
    people = pd.DataFrame(rows, columns=["qid", "docid", "relevance"])
    flipped = rng.random(len(people)) < 0.2
    machine = people.assign(relevance=np.where(flipped, 1 - people["relevance"], people["relevance"]))
    runs = {
        name: rk.Run.from_frame(
            people.assign(score=np.round(people["relevance"] + rng.normal(0, noise, len(people)), digits))
        )
        for name, noise in (("one", 1.0), ("two", 2.0))
    }
    return people, machine, runs


def evaluated(judgments, runs, **options):
    return {name: rk.evaluate(judgments, run, measures=["nDCG@10", "P@5"], **options) for name, run in runs.items()}


def test_evaluations_of_people_and_machine_are_calibrated():
    """Judgments differ between the judges, as they must; conventions may not."""
    people, machine, runs = judged_runs(digits=1)
    some = rk.Qrels.from_frame(people[people["qid"].isin(draw(people["qid"], 25))])
    human, by_machine = evaluated(some, runs), evaluated(rk.Qrels.from_frame(machine), runs)
    found = calibrate(human, by_machine, measures="nDCG@10")
    assert (found.table["n_human"][0], found.table["n_machine"][0]) == (25, 30)
    assert not [note for note in found.notes if "left out" in note]
    expected = by_formula(
        *(given["two"].per_query["nDCG@10"] - given["one"].per_query["nDCG@10"] for given in (human, by_machine))
    )
    assert found.table["estimate"][0] == pytest.approx(expected["estimate"], abs=1e-12)
    with pytest.raises(ConventionMismatch, match="ties is"):
        calibrate(human, evaluated(rk.Qrels.from_frame(machine), runs, ties="worst"))


def judged_as(people, machine, runs, kept, measures, **options):
    """Calibrate by the judgments of people that are kept, all others judged by the machine alone."""
    both = [rk.Qrels.from_frame(judgments) for judgments in (people[kept], machine)]
    human, by_machine = (
        {name: rk.evaluate(qrels, run, measures=measures, **options) for name, run in runs.items()} for qrels in both
    )
    return calibrate(human, by_machine)


def in_pools(people, runs, depth):
    """Tell which judgments are of documents that one of the runs ranks so high."""
    pooled = rk.judging.pool(runs, depth=depth).table[["qid", "docid"]]
    return people.set_index(["qid", "docid"]).index.isin(pd.MultiIndex.from_frame(pooled))


@each_row(
    ("kept", "measures"),
    [
        (lambda people, _: np.random.default_rng(0).random(len(people)) < 0.5, ["nDCG@5"]),
        (lambda people, runs: in_pools(people, runs, 3), ["nDCG@5"]),
        (lambda people, runs: in_pools(people, runs, 5), ["P@3", "nDCG@7"]),
        (lambda people, runs: in_pools(people, {"one": runs["one"]}, 5), ["P@5"]),
        (lambda people, runs: in_pools(people, runs, 9), ["AP"]),
        (lambda people, _: ~((people["qid"] == "q07") & (people["docid"] == "d3")).to_numpy(), ["AP", "RR"]),
    ],
)
def test_queries_that_people_judged_in_part_are_refused(kept, measures):
    """Random pairs, a pool less deep than a cut-off, one system's documents, and all documents without a cut-off."""
    people, machine, runs = judged_runs()
    with pytest.raises(InvalidInput, match=r"in part: they left out .* which the machine judged") as refused:
        judged_as(people, machine, runs, kept(people, runs), measures)
    assert refused.value.argument == "human"
    assert "rk.judging.draw" in refused.value.remedy


@each_row(
    ("depth", "measures"),
    [(5, ["nDCG@5"]), (7, ["P@3", "nDCG@5", "RR@7"]), (10, ["AP", "nDCG@5"])],
)
def test_a_pool_of_people_as_deep_as_the_measures_read_is_accepted(depth, measures):
    """Documents below every cut-off need no label by people; a note says from which an ideal ranking is made."""
    people, machine, runs = judged_runs()
    kept = in_pools(people, runs, depth)
    notes = judged_as(people, machine, runs, kept, measures).notes
    deeper = people.loc[~kept, "qid"].nunique()
    noted = [note for note in notes if "below the ranks that the measures read" in note]
    assert noted == (
        [] if kept.all() else [note for note in noted if note.startswith(f"in {deeper} queries the machine")]
    )
    assert bool(noted) == (not kept.all())


def test_documents_that_neither_judged_are_no_part():
    """A late run has some within the cut-off."""
    people, machine, runs = judged_runs()
    kept = (people["docid"] != "d3").to_numpy()
    assert judged_as(people, machine[kept], runs, kept, ["nDCG@5"]).table["n_human"][0] == 30


def test_tied_documents_count_by_their_share():
    """All ten tie, so each stands within the cut-off in some of the orders: one without a label is one too many."""
    people, machine, _ = judged_runs()
    tied = {"one": rk.Run.from_frame(people.assign(score=1.0))}
    kept = (people["docid"] != "d3").to_numpy()
    with pytest.raises(InvalidInput, match="30 queries in part: they left out 1 document that P@5 reads"):
        judged_as(people, machine, tied, kept, ["P@5"])


def test_where_it_is_not_known_what_a_measure_reads_all_must_be_judged():
    """Rows that people did not judge are not there, or are left out by the convention."""
    people, machine, runs = judged_runs()
    kept = in_pools(people, runs, 5)
    with pytest.raises(InvalidInput, match="in part"):
        judged_as(people, machine, runs, kept, ["P@3"], convention=rk.Convention(unjudged="skip"))
    frame = runs["one"].to_frame().merge(people, on=["qid", "docid"])
    by_rows = [
        {"one": rk.evaluate(rows, qid="qid", relevance="relevance", score="score", measures=["P@3"])}
        for rows in (frame[frame["docid"] != "d3"], frame, frame.assign(relevance=1 - frame["relevance"]))
    ]
    with pytest.raises(InvalidInput, match="in part"):
        calibrate(*by_rows[:2])
    assert calibrate(*by_rows[1:]).table["n_human"][0] == 30
    # Frames of scores do not say what was judged.
    assert calibrate(*({"one": one["one"].per_query} for one in by_rows[:2])).table["n_human"][0] == 30


def test_loaded_and_reordered_evaluations_are_checked_alike(tmp_path):
    """Each has its measures in an order of its own."""
    people, machine, runs = judged_runs()
    kept = in_pools(people, runs, 5)
    for measures, is_part in (["P@3", "nDCG@5"], False), (["P@3", "nDCG@9"], True):
        human = rk.evaluate(rk.Qrels.from_frame(people[kept]), runs["one"], measures=measures)
        human.save(tmp_path / "human.parquet")
        pair = (
            rk.Evaluation.load(tmp_path / "human.parquet"),
            rk.evaluate(rk.Qrels.from_frame(machine), runs["one"], measures=measures[::-1]),
        )
        if is_part:
            with pytest.raises(InvalidInput, match="that nDCG@9 reads"):
                calibrate(*({"one": one} for one in pair))
            assert len(calibrate(*({"one": one} for one in pair), measures="P@3").table) == 1
        else:
            assert len(calibrate(*({"one": one} for one in pair)).table) == 2


def test_people_who_judged_all_queries_need_no_machine():
    human, machine = frames(n=N)
    for scores, is_noted in ((human, True), ({name: one[:59] for name, one in human.items()}, False)):
        notes = calibrate(scores, machine).notes
        assert ("people judged all queries, so the machine adds nothing" in notes) == is_noted
        unread = ("Kolmogorov", "gain below", "of the machine's spread")
        assert not (is_noted and any(words in note for note in notes for words in unread))


def test_few_queries_and_scores_at_a_ceiling_are_noted():
    """Always below 50 queries; up to 100 if half of people's scores are the same end."""

    def is_noted(n, high):
        human, machine = frames(n=n, systems="a", measures=["AP"], N=120)
        kept = {"a": human["a"].where(human["a"].rank() > len(human["a"]) * high, human["a"].min().iloc[0])}
        return any(f"people judged only {n} queries" in note for note in calibrate(kept, machine).notes)

    assert is_noted(25, 0.0)
    assert is_noted(49, 0.0)
    assert not is_noted(50, 0.0)
    assert is_noted(99, 0.6)
    assert not is_noted(99, 0.3)
    assert not is_noted(100, 0.6)


def test_one_query_that_decides_is_noted():
    """If it has more than a quarter of the spread of the machine's scores."""
    human, machine = frames(n=55, systems="a", measures=["AP"], N=120)
    judged = machine["a"]["AP"][human["a"].index]

    def noted(share):
        last, others = judged.index[-1], judged.iloc[:-1]
        # Of all 55, the last lies 54 / 55 of this from the mean, and adds 54 / 55 of its square to the spread.
        others_spread = ((others - others.mean()) ** 2).sum()
        far = math.sqrt(share * others_spread / (54 / 55 * (54 / 55 - share)))
        seen = machine["a"].copy()
        seen.loc[last, "AP"] = others.mean() + far
        found = calibrate(human, {"a": seen})
        assert found.table["leverage"][0] == pytest.approx(share)
        return [note for note in found.notes if "of the machine's spread" in note]

    assert noted(0.24) == []
    (note,) = noted(0.4)
    assert note.startswith("one query has up to 40% of")
    assert "for 'a by AP'" in note


def test_the_bias_of_the_machine_is_told_by_system_and_pair():
    """The mean of its scores less people's over the queries that both judged, with Student's t."""
    human, machine = frames()
    found = calibrate(human, machine, baseline="a", alpha=0.1)
    assert found.bias[["measure", "baseline", "system"]].equals(
        pd.concat([part[["measure", "baseline", "system"]] for part in (found.means, found.table)], ignore_index=True)
    )
    for row in found.bias.to_dict("records"):
        off = {name: (machine[name].loc[human[name].index] - human[name])[row["measure"]] for name in human}
        scores = off[row["system"]] - (off[row["baseline"]] if row["baseline"] else 0)
        tested = stats.ttest_1samp(scores, 0.0)
        ends = tested.confidence_interval(0.9)
        expected = [scores.mean(), ends.low, ends.high, tested.pvalue]
        assert [row[name] for name in ("bias", "ci_low", "ci_high", "p_value")] == pytest.approx(expected, abs=1e-12)
        assert row["n_human"] == 12
    alone = calibrate({"a": human["a"]}, {"a": machine["a"]})
    assert alone.bias["baseline"].tolist() == ["", ""]


def test_queries_chosen_by_their_scores_are_noted():
    """The machine scores them unlike the others; a drawn sample is noted in 1 of 100 cases."""
    human, machine = frames(n=20, systems="ab", measures=["AP"], N=400)
    best = machine["a"]["AP"].nlargest(20).index
    chosen = {name: machine[name].loc[best] for name in machine}
    noted = [[note for note in calibrate(given, machine).notes if "Kolmogorov" in note] for given in (chosen, human)]
    assert [len(notes) for notes in noted] == [1, 0]
    assert "p-value < 0.0001" in noted[0][0]


def test_a_machine_that_hardly_helps_is_noted():
    """One that goes with nothing that people say does harm; one that is nearly as good as they helps."""
    human, machine = frames(systems="a", measures=["AP"], n=50, N=500)
    assert calibrate(human, machine).table["gain"][0] > 1.2
    assert not any("gain below" in note for note in calibrate(human, machine).notes)
    people, seen = (given["a"]["AP"] for given in (human, machine))
    said = people - people.mean()
    machine["a"].loc[people.index, "AP"] -= said * (seen[people.index] @ said) / (said @ said)
    found = calibrate(human, machine)
    assert found.table["correlation"][0] == pytest.approx(0, abs=1e-12)
    assert found.table["gain"][0] < 1
    assert any("take people alone (ci_low_human, ci_high_human) for 'a by AP'" in note for note in found.notes)


def test_drawing_is_random_reproducible_and_can_be_extended():
    """No order or repetition of the ids matters; more queries with the same seed keep those drawn; all are possible."""
    ids = [f"q{k}" for k in range(50)]
    assert draw(ids, 10) == draw(ids[::-1] * 2, 10) == sorted(draw(ids, 10))
    assert draw(ids, 10, rng=1) != draw(ids, 10)
    assert set(draw(ids, 10, rng=3)) < set(draw(ids, 11, rng=3))
    assert draw(ids, 50) == sorted(ids)
    counts = np.bincount([query for seed in range(400) for query in draw(range(10), 3, rng=seed)], minlength=10)
    assert stats.chisquare(counts).pvalue > 0.001
    for n in (51, 0, 2.5):
        with pytest.raises(InvalidInput, match="n"):
            draw(ids, n)


@each_row("queries", [[1, "a"], "abc", [None, "a"], [1.0, math.nan]])
def test_no_query_is_drawn_from_what_are_no_ids(queries):
    """Ids of two types, a text, which has letters, and missing ids are refused by the argument's name."""
    with pytest.raises(InvalidInput, match=r"quer(y|ies)|qid"):
        draw(queries, 1)


def test_a_plan_has_the_least_number_of_queries():
    """By the formula of its documentation, tried number by number; with the machine and without."""
    human, machine = frames(n=20, systems="ab", N=300)
    pilot = calibrate(human, machine)
    for n_machine in (300, 1000):
        planned = plan(pilot, width=0.06, n_machine=n_machine, confidence_level=0.9).table
        for row, one in zip(pilot.table.to_dict("records"), planned.to_dict("records"), strict=True):
            numbers = np.arange(8, n_machine + 1)
            factor = 1 + (1 - numbers / n_machine) / (numbers - 3)
            factor *= np.maximum(row["inflation"], 1 + 3 / numbers)
            spread = row["sd_residual"] ** 2 / numbers * factor + (row["slope"] * row["sd_machine"]) ** 2 / n_machine
            wide = 2 * stats.t.ppf(0.95, numbers - 2) * np.sqrt(spread)
            assert one["n_human"] == numbers[wide <= 0.06][0]
            assert one["least_width"] == pytest.approx(wide[-1])
            alone = np.arange(8, 5000)
            assert (
                one["n_without"]
                == alone[2 * stats.t.ppf(0.95, alone - 1) * row["sd_human"] / np.sqrt(alone) <= 0.06][0]
            )


def test_a_plan_says_what_cannot_be_reached():
    """Too few queries for the machine; the note names its share where that alone is too wide."""
    human, machine = frames(n=20, systems="ab", measures=["AP"], N=300)
    planned = plan(calibrate(human, machine), width=0.001)
    assert planned.table["n_human"].isna().all()
    assert "a width of 0.001 cannot be reached; it is 0." in planned.notes[0]
    assert planned.notes[0].endswith("if people judge all 300: the machine must judge more (n_machine=)")
    assert "numbers from a pilot of 20 queries are off by 32% or so" in planned.notes
    assert "95 % intervals, unadjusted, mean width 0.001" in str(planned)
    assert "b - a by AP" in str(planned)
    for wrong in ({"width": -1}, {"width": 0}, {"width": 0.1, "confidence_level": 1.5}, {"width": 0.1, "n_machine": 3}):
        with pytest.raises(InvalidInput):
            plan(calibrate(human, machine), **wrong)


def test_a_plan_with_a_machine_that_always_says_the_same_is_that_without_it():
    """As `calibrate` then takes the people alone."""
    human, machine = frames(n=20, systems="a", measures=["AP"], N=300)
    row = plan(calibrate(human, {"a": machine["a"] * 0 + 0.5}), width=0.06).table.iloc[0]
    assert row["n_human"] == row["n_without"]
    scores = human["a"]["AP"]
    wide = [2 * stats.t.ppf(0.975, n - 1) * scores.std() / math.sqrt(n) for n in (row["n_human"] - 1, row["n_human"])]
    assert wide[0] > 0.06 >= wide[1]


def test_a_plan_for_very_many_queries_of_the_machine_needs_no_memory():
    """So many leave the error of the people's queries alone; more of them never need more people."""
    human, machine = frames(n=20, systems="a", measures=["AP"], N=300)
    pilot = calibrate(human, machine)
    n_human = [plan(pilot, width=0.05, n_machine=n).table["n_human"][0] for n in (400, 10**4, 10**12, 2**63 - 1)]
    assert n_human == sorted(n_human, reverse=True)
    assert n_human[-2] == n_human[-1]


def test_it_is_laid_out_and_drawn():
    """A row and three intervals for each pair; the picture names who judged."""
    found = calibrate(*frames(systems="abc", measures=["AP"]))
    assert found.caption.startswith("Regression t test, Holm over 3; 95 % intervals")
    assert "People judged 12 of the 60 queries" in found.caption
    assert "| AP | a | b |" in found.to_markdown()
    (axes,) = found.plot().axes
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == [f"{pair}: {who}" for pair in ("b - a", "c - a", "c - b") for who in ("both", "people", "machine")]
    drawn = {line.get_ydata()[0]: line.get_xdata()[0] for line in axes.lines if line.get_marker() == "o"}
    assert drawn[0] == found.table["estimate"][0]
    assert drawn[2] == found.table["mean_machine"][0]
