"""Runs are fused by query and document, whatever the order of rows, and the result is a run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from circles import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata

import rankeval as rk
from rankeval.errors import InvalidInput, UnknownName
from rankeval.fusion import METHODS, NORMS

BY_SCORE = [name for name, method in METHODS.items() if method.points is None]


def drawn(seed: int, *, n_queries: int = 6, n_systems: int = 3) -> list[pd.DataFrame]:
    """Return runs with ties, of which none retrieved all documents; the last lacks a query."""
    rng = np.random.default_rng(seed)
    runs = []
    for system in range(n_systems):
        rows = [
            {"qid": f"q{query}", "docid": f"d{document}", "score": float(rng.integers(0, 5))}
            for query in range(n_queries - (system == n_systems - 1))
            for document in rng.permutation(12)[: rng.integers(2, 10)]
        ]
        runs.append(pd.DataFrame(rows))
    return runs


def weights_of(method: str) -> dict[str, list[float]]:
    """Return the weights that a method needs."""
    return {"weights": [0.5, 0.3, 0.2]} if METHODS[method].weighted else {}


def table(run: rk.Run) -> pd.Series:
    """Return the scores by query and document."""
    return run.to_frame().set_index(["qid", "docid"])["score"].sort_index()


def by_hand(runs: list[pd.DataFrame], points) -> pd.DataFrame:
    """Return the points of each pair by each system, by pandas and SciPy alone."""
    columns = []
    for run in runs:
        by_query = run.groupby("qid")["score"]
        columns.append(run.assign(points=by_query.transform(points)).set_index(["qid", "docid"])["points"])
    return pd.concat(columns, axis=1).sort_index()


def ranks(scores) -> np.ndarray:
    """Return the mean rank of each score, the highest first."""
    return rankdata(-np.asarray(scores))


def test_rrf_adds_the_reciprocals_of_the_mean_ranks():
    """A system that did not retrieve a document adds nothing."""
    expected = by_hand(drawn(0), lambda scores: 1 / (60 + ranks(scores))).sum(axis=1)
    pd.testing.assert_series_equal(table(rk.fuse(drawn(0))), expected, check_names=False, rtol=1e-14)


@pytest.mark.parametrize(("method", "factor"), [("isr", lambda hits: hits), ("log_isr", np.log)])
def test_isr_multiplies_inverse_squares_by_the_number_of_systems(method, factor):
    """Or by its logarithm, which is 0 for a document of one system."""
    points = by_hand(drawn(1), lambda scores: 1 / ranks(scores) ** 2)
    expected = factor(points.notna().sum(axis=1)) * points.sum(axis=1)
    pd.testing.assert_series_equal(table(rk.fuse(drawn(1), method)), expected, check_names=False, rtol=1e-14)


def test_bordafuse_shares_out_the_points_that_are_left():
    """Every system gives the points 1 to c of a query, also one that lacks the query."""
    fused, runs = table(rk.fuse(drawn(2), "bordafuse")), drawn(2)
    candidates = fused.groupby("qid").size()
    total = len(runs) * candidates * (candidates + 1) / 2
    assert np.allclose(fused.groupby("qid").sum(), total)


@pytest.mark.parametrize(
    ("method", "combine"),
    [
        ("combsum", lambda points: points.sum(axis=1)),
        ("combmnz", lambda points: points.sum(axis=1) * points.notna().sum(axis=1)),
        ("combanz", lambda points: points.mean(axis=1)),
        ("combmax", lambda points: points.max(axis=1)),
        ("combmin", lambda points: points.min(axis=1)),
        ("combmed", lambda points: points.median(axis=1)),
        ("weighted", lambda points: points.mul([0.5, 0.3, 0.2]).sum(axis=1)),
    ],
)
def test_scores_are_combined_over_the_systems_that_retrieved_a_document(method, combine):
    """Under the norm of the mean and the deviation of a query."""

    def z_score(scores):
        return (scores - scores.mean()) / (np.std(scores) or 1)

    run = rk.fuse(drawn(3), method, norm="z-score", **weights_of(method))
    expected = combine(by_hand(drawn(3), z_score))
    pd.testing.assert_series_equal(table(run), expected, check_names=False, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("norm", NORMS)
@settings(max_examples=examples(15))
@given(seed=st.integers(0, 99))
def test_the_order_of_rows_does_not_matter(norm, seed):
    """To the last bit, with ties, and in every norm; nor do other queries."""
    runs = drawn(seed)
    other = [run.sample(frac=1, random_state=seed) for run in runs]
    whole, shuffled = rk.fuse(runs, "combsum", norm=norm), rk.fuse(other, "combsum", norm=norm)
    assert table(whole).equals(table(shuffled))
    assert whole.docid.equals(shuffled.docid)
    alone = rk.fuse([run[run["qid"] == "q1"] for run in runs], "combsum", norm=norm)
    assert table(whole)["q1"].equals(table(alone)["q1"])


@pytest.mark.parametrize("method", METHODS)
def test_every_form_of_a_run_gives_the_same(method, tmp_path):
    """Frames, Runs, mappings and files; by names or in a list."""
    frames = drawn(4)
    runs = [rk.Run.from_frame(frame) for frame in frames]
    paths = [tmp_path / f"{place}.run" for place in range(3)]
    for run, path in zip(runs, paths, strict=True):
        run.write(path)
    options = weights_of(method)
    expected = table(rk.fuse(frames, method, **options))
    assert expected.equals(table(rk.fuse(runs, method, **options)))
    assert expected.equals(table(rk.fuse(dict(zip("abc", paths, strict=True)), method, **options)))


def test_large_runs_are_fused_in_blocks_of_whole_queries(monkeypatch):
    """The size of a block changes no bit."""
    whole = table(rk.fuse(drawn(5), "combmnz"))
    monkeypatch.setattr("rankeval.fusion.fusion_methods.BLOCK", 7)
    assert whole.equals(table(rk.fuse(drawn(5), "combmnz")))


def test_a_constant_score_is_zero_in_norms_that_divide_by_its_spread():
    """0 / 0 is 0, also where the mean of equal scores is not their value."""
    runs = [{"q": dict.fromkeys("abc", 0.1)}, {"q": {"a": 1.0}}]
    for norm in ("min-max", "sum", "z-score"):
        assert rk.fuse(runs, "combsum", norm=norm).score.tolist() == [0, 0, 0]


def test_whole_numbers_and_texts_are_the_same_ids():
    """Files have texts where arrays have numbers."""
    run = rk.fuse([rk.Run([1, 1], [7, 8], [2.0, 1.0]), {"1": {"8": 3.0}}])
    assert run.to_frame()["docid"].tolist() == ["7", "8"]


def test_the_fused_run_is_evaluated_with_the_texts_of_its_queries():
    """By these the guard recognises registered queries."""
    runs = [rk.Run(["q"], ["a"], [1.0], queries={"q": "red shoes"}), {"q": {"b": 1.0}}]
    fused = rk.fuse(runs, name="both")
    assert (fused.name, fused.queries) == ("both", {"q": "red shoes"})
    assert rk.evaluate({"q": {"a": 1}}, fused, measures="RR").mean()["RR"] == 0.75


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"norm": "max"}, "norm"),
        ({"method": "combsum", "k": 3}, "k"),
        ({"weights": [1, 2]}, "weights"),
        ({"k": -1}, "k"),
        ({"method": "weighted"}, "weights"),
        ({"method": "weighted", "weights": [1]}, "weights"),
        ({"method": "weighted", "weights": {"0": 1, "two": 1}}, "weights"),
        ({"method": "weighted", "weights": [1, np.nan]}, "each of weights"),
        ({"runs": [{"q": {"a": 1.0}}]}, None),
        ({"runs": "a.run"}, "runs"),
        ({"runs": [{"q": {"a": -1.0}}, {"q": {"a": 1.0}}], "method": "combsum", "norm": "max"}, "norm"),
    ],
)
def test_what_does_not_belong_to_a_fusion_is_refused(options, argument):
    """An option that a method does not read is no silent wish."""
    runs = options.pop("runs", [{"q": {"a": 1.0}}, {"q": {"b": 1.0}}])
    with pytest.raises(InvalidInput) as caught:
        rk.fuse(runs, **options)
    assert caught.value.argument == argument


def test_the_guide_has_every_method_and_norm_as_it_is_declared():
    """Formula, what counts for a missing document, and source."""
    guide = (Path(__file__).parents[2] / "examples" / "guides" / "fusing.md").read_text()
    for name, method in METHODS.items():
        assert f"| `{name}` | {method.formula} | {method.missing} | {method.source} |\n" in guide
    for name, norm in NORMS.items():
        assert f"| `{name}` | {norm.formula} | {norm.source} |\n" in guide


@pytest.mark.parametrize("options", [{"method": "rff"}, {"method": "combsum", "norm": "minmax"}])
def test_an_unknown_name_is_refused(options):
    """With the nearest names."""
    with pytest.raises(UnknownName):
        rk.fuse([{"q": {"a": 1.0}}, {"q": {"b": 1.0}}], **options)


def test_a_document_that_stands_twice_is_refused_with_the_run():
    """A fusion of two of its scores would mean nothing."""
    twice = rk.Run(["q", "q"], ["a", "a"], [1.0, 2.0])
    with pytest.raises(InvalidInput, match="'bad' has document 'a' twice in query 'q'"):
        rk.fuse({"good": {"q": {"a": 1.0}}, "bad": twice})


@pytest.mark.parametrize("method", METHODS)
def test_documents_with_the_same_ranks_in_other_systems_are_tied(method):
    """Three documents have the ranks 1, 2 and 7 by turns, in three systems that rank thirty."""
    ranks = np.array([[1, 2, 7], [2, 7, 1], [7, 1, 2]])
    runs = {}
    for system, row in enumerate(ranks.T):
        others = np.setdiff1d(np.arange(1, 31), row)
        documents = {**dict(zip("abc", row, strict=True)), **{f"{system}-{rank}": rank for rank in others}}
        runs[f"run {system}"] = {"q": {document: 31.0 - rank for document, rank in documents.items()}}
    weights = dict.fromkeys(runs, 1 / 3) if METHODS[method].weighted else None
    frame = rk.fuse(runs, method, weights=weights).to_frame()
    scores = frame.set_index("docid")["score"]
    assert scores["a"] == scores["b"] == scores["c"]
