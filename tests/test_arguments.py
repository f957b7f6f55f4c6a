"""Whatever an argument is given, the answer is a value or one line that names it: no error of the depths."""

from __future__ import annotations

import json
import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from tables import each_row

import rankeval as rk
from rankeval._checks import count
from rankeval.errors import InvalidInput, RankevalError
from rankeval.evaluation import from_bytes, to_bytes
from rankeval.significance.power import detectable_difference

ODD = [
    None, "0.3", "x", -1, 0, 1.5, float("nan"), float("inf"), 10**400, 2**70, True, [], [1, 2], (), {}, 1j, b"3",
    object(), np.array([1, 2]),
]  # fmt: skip
SYSTEMS = {
    name: pd.DataFrame({"AP": scores}, index=list("abc"))
    for name, scores in (("a", [0.1, 0.2, 0.4]), ("b", [0.3, 0.2, 0.5]))
}
EVALUATION = rk.evaluate([1, 0, 1, 0], [3, 2, 1, 2], qid=[1, 1, 2, 2], measures=["AP", "nDCG@3"])
ROWS = {"X": np.zeros((40, 1)), "y": np.tile([0, 1], 20), "qid": np.repeat(np.arange(10), 4)}
SPLITTERS = (rk.QueryKFold, rk.StratifiedQueryKFold, rk.RepeatedQueryKFold, rk.QueryShuffleSplit, rk.QueryTimeSplit)
FRONT = {"truth": [1, 0], "ranking": [1, 2], "qid": [1, 1], "measures": "AP"}


def compare(argument, value):
    """Compare two systems."""
    return rk.compare(SYSTEMS, **{"test": "bootstrap", "n_resamples": 99, argument: value})


def anova(argument, value):
    """Analyse the variance of two systems."""
    return rk.analysis.anova(**{"systems": SYSTEMS, argument: value})


def bayes(argument, value):
    """Ask how probable it is that one of two systems is better."""
    return rk.compare(SYSTEMS).bayes(**{"rope": 0.1, "method": "signed_rank", "n_samples": 9, argument: value})


def evaluate(argument, value):
    """Evaluate two rows."""
    return rk.evaluate(**FRONT | {argument: value})


def split(make, value):
    """Split rows by a splitter made from a value."""
    return list(make(value).split(ROWS["X"], ROWS["y"], qid=ROWS["qid"]))


def cross_validate(value):
    """Cross-validate over what may be folds."""
    return rk.cross_validate(Ridge(), **ROWS, cv=value, measures="AP")


def explain(argument, value):
    """Explain a difference."""
    rows = {name: FRONT[name] for name in ("truth", "ranking", "qid")}
    return rk.explain_difference(**rows, **{"measure": "AP", "values": (0.5, 1), argument: value})


CALLS = {
    "topics_needed, difference": lambda value: rk.topics_needed(value, 0.1),
    "topics_needed, sd": lambda value: rk.topics_needed(0.1, value),
    **{
        f"topics_needed, {name}": lambda value, name=name: rk.topics_needed(0.1, 0.1, **{name: value})
        for name in ("alpha", "power", "alternative")
    },
    "detectable_difference, n": lambda value: detectable_difference(value, 0.1),
    "detectable_difference, alpha": lambda value: detectable_difference(10, 0.1, value),
    **{
        f"compare, {name}": partial(compare, name)
        for name in (
            "alpha",
            "n_resamples",
            "rng",
            "test",
            "correction",
            "family",
            "alternative",
            "unpaired",
            "baseline",
            "measures",
        )
    },
    **{f"anova, {name}": partial(anova, name) for name in ("systems", "measure", "queries", "replicates", "unpaired")},
    "anova, scores of a replicate": lambda value: rk.analysis.anova({"a": {"one": value}, "b": {"one": SYSTEMS["b"]}}),
    **{f"bayes, {name}": partial(bayes, name) for name in ("rope", "method", "n_samples", "rng")},
    **{
        f"evaluate, {name}": partial(evaluate, name)
        for name in (
            "truth",
            "ranking",
            "qid",
            "docid",
            "group",
            "measures",
            "convention",
            "ties",
            "missing",
            "no_relevant",
            "judgments",
            "query_weight",
        )
    },
    "ci": EVALUATION.ci,
    "test_size": lambda value: rk.dev_test_split(**ROWS, test_size=value),
    **{f"n_splits of {make.__name__}": partial(split, make) for make in SPLITTERS},
    "cv": cross_validate,
    "from_bytes": from_bytes,
    "from_json": rk.Comparison.from_json,
    **{f"explain_difference, {name}": partial(explain, name) for name in ("tolerance", "values", "measure")},
    "measure": rk.measure,
    "measure_from_key": rk.measure_from_key,
    "p": lambda value: rk.rank_biased_overlap({"q": {"a": 1}}, {"q": {"a": 1}}, p=value),
    "cutoff": lambda value: rk.analysis.contingency_table([1, 0], [1, 2], qid=[1, 1], cutoff=value),
    "collection_size": lambda value: rk.analysis.contingency_table([1, 0], [1, 2], qid=[1, 1], collection_size=value),
    "rel": lambda value: rk.analysis.contingency_table([1, 0], [1, 2], qid=[1, 1], rel=value),
    "response_method": lambda value: rk.make_scorer("AP", response_method=value),
    "Qrels": lambda value: rk.Qrels(value, ["a"], [1]),
    "Run": lambda value: rk.Run(["a"], ["a"], value),
    "from_dict": rk.Run.from_dict,
    "RankingData": lambda value: rk.RankingData(value, [1], [1]),
    "sizes": lambda value: rk.learning_curve(Ridge(), **ROWS, sizes=value, cv=2, measures="AP"),
    "rng of a curve": lambda value: rk.learning_curve(Ridge(), **ROWS, sizes=[1.0], rng=value, cv=2, measures="AP"),
}


def refusal(call, value):
    """Return what an odd value is answered with, "" where it is taken: other errors get through."""
    try:
        call(value)
    except RankevalError as error:
        return str(error)
    except ValueError as error:
        if re.search("n_splits=|test_size=", str(error)) is None:
            raise
    return ""


@each_row("call", CALLS)
@pytest.mark.filterwarnings("ignore")
def test_odd_arguments_are_taken_or_refused_in_one_line(call):
    """Our own errors, or a ValueError of scikit-learn's splitters that names the splits."""
    for value in ODD:
        said = refusal(CALLS[call], value)
        assert "\n" not in said
        assert len(said) < 2000


def test_differences_that_no_number_of_queries_shows_are_refused():
    """A search for 10^23 queries ended in an error of SciPy's."""
    with pytest.raises(InvalidInput, match=r"difference is 1e-12, 1e-11 of the standard deviation 0.1: hundreds of"):
        rk.topics_needed(1e-12, 0.1)
    assert rk.topics_needed(2e-4, 1.0) == pytest.approx(7.85 / 4e-8, rel=0.01)
    assert rk.topics_needed(1e300, 1.0) == 2
    assert rk.topics_needed(1.0, 0.0) == 6  # by the sign flips


BYTES = to_bytes(EVALUATION)


@each_row("content", [b"", b"PAR1", b"x" * 100, BYTES[:-50], BYTES[:200] + BYTES[300:]])
def test_bytes_that_are_no_evaluation_are_refused(content):
    """In one line, whatever is wrong with them."""
    with pytest.raises(
        InvalidInput, match=r"expected a Parquet file that Evaluation.save of this version wrote|the file was altered"
    ):
        from_bytes(content)


JSON = rk.compare(SYSTEMS).to_json()


@each_row(
    "text",
    ["{", "", "[]", "null", '{"format": 1}', JSON[:-20], "[" * 100_000]
    + [JSON.replace(f'"{name}"', '"x"') for name in ("table", "baseline", "notes", "p_value", "format")]
    + [json.dumps({**json.loads(JSON), "table": table}) for table in (None, [], {"measure": 3})],
)
def test_text_that_is_no_comparison_is_refused(text):
    """As above."""
    with pytest.raises(InvalidInput, match=r"this (is not a (whole )?comp|comparison is of)") as caught:
        rk.Comparison.from_json(text)
    assert "\n" not in str(caught.value)


@each_row(
    "name",
    [
        "nDCG@\uff11\uff10", "nDCG@1\uff10", "P@\u0663", "ndcg_cut_\uff11\uff10", "P_\uff11\uff10", "success_\uff11",
        "RBP(p=\uff10.5)", "RBP(\uff50=0.5)", "IPrec(recall=0.\u0661)", "iprec_at_recall_\uff10.10", "nDCG@\u00b2",
        "IAP11(levels=(0.0,\uff12))", "P.\uff15,10", "\uff50@5",
    ],
)  # fmt: skip
def test_digits_and_letters_of_other_scripts_are_refused(name):
    """They gave the measure a second label."""
    with pytest.raises(InvalidInput):
        rk.measure(name)
    with pytest.raises(InvalidInput):
        rk.evaluate([1, 0], [1, 2], qid=[1, 1], measures=name)
    with pytest.raises(InvalidInput):
        rk.measure_from_key("nDCG_at_\uff11\uff10")


@each_row(
    ("name", "said"),
    [
        (
            "nDCG@999999999999999999999",
            "a rank, 1 or greater and up to 10,000,000; leave it out to count all",
        ),
        ("ndcg_cut_99999999999999999999999", "up to 10,000,000"),
        ("ERR(max_rel=4)@9223372036854775808", "up to 10,000,000"),
        ("F(beta=1e200)@3", r"beta is 1e\+200; expected a number from 0 to 1e100"),
        ("nDCG@0", "1 or greater"),
    ],
)
def test_parameters_that_are_too_great_are_refused(name, said):
    """They ended in errors of NumPy's, or took all memory."""
    with pytest.raises(InvalidInput, match=said):
        rk.evaluate([1, 0], [1, 2], qid=[1, 1], measures=name)


def test_ties_at_their_best_and_worst_are_tried():
    """Two tools of which one puts relevant ties first: no other rule gives 1 and 1/3."""
    rows = {"truth": [0, 1, 0, 0], "ranking": [1, 1, 1, 0], "qid": [0] * 4}
    why = rk.explain_difference(**rows, measure="RR", values=("1.0000", "0.3333"))
    assert why.differences == ("ties='best' in one and 'worst' in the other",)
    assert set(why.table["ties"]) == {"expected", "stable", "best", "worst"}
    bpref = rk.explain_difference(**rows, measure="Bpref", values=(1, 0))
    assert set(bpref.table["ties"]) == {"expected", "stable"}  # not monotone: no bound of it is known


@each_row(("number", "said"), [(0, "0 queries"), (1, "1 query"), (2, "2 queries"), (1234, "1,234 queries")])
def test_numbers_of_things_are_written_as_they_are_said(number, said):
    """One of them is no plural, wherever it is printed."""
    assert count(number, "query") == said
    assert count(number, "ranked row") == said.replace("queries", "ranked rows").replace("query", "ranked row")


def test_one_query_is_one_query_in_what_is_printed():
    """Of collections, evaluations and data."""
    one = rk.evaluate([1, 0], [2, 1], qid=[1, 1], measures="RR")
    said = [repr(one), repr(rk.Qrels.from_dict({"q": {"d": 1}})), repr(rk.Run.from_dict({"q": {"d": 1}}))]
    said.append(repr(rk.datasets.make_ranking(1, 1, 1, rng=0)))
    assert all("1 query" in text for text in said)
    assert not [text for text in said if re.search(r"\b1 (queries|rows|judgments|features)", text)]
