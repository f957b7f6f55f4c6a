"""A collection of positives only is recognised: whole, in part, under every way in; and other data is not taken for it.

The rates, by world and by what was done to the data, are those of tests/calibration/measure_positives.py.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn
from calibration.measure_positives import OTHERS, WORLDS, mistaken, recognised
from circles import choose
from guard_cases.situations import registered
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

import rankeval as rk
import rankeval.cli
from rankeval.cli.exits import caught
from rankeval.contamination.fingerprint import fingerprint_qrels
from rankeval.contamination.matching import match_content
from rankeval.errors import GuardRefusal, RankevalWarning

N_QUERIES = 120
TEXTS = {f"q{number}": f"what is number {number}" for number in range(N_QUERIES)}
ONE, TEN = 1, 10


def judged(n_relevant=ONE, grade=1, prefix="q", documents="d"):
    """Return judgments with so many relevant documents a query, and none that is not relevant."""
    return {
        f"{prefix}{query}": {f"{documents}{query}-{place}": grade for place in range(n_relevant)}
        for query in range(N_QUERIES)
    }


def ranked(qrels):
    """Return a run with the relevant documents and another one."""
    return {
        query: {**{docid: 1 / (1 + place) for place, docid in enumerate(documents)}, "x": 0.5}
        for query, documents in qrels.items()
    }


def training_rows(qrels, seed=0):
    """Return the rows of a training set: the relevant documents, and five candidates that nobody judged."""
    rng = np.random.default_rng(seed)
    rows = [
        (query, docid, label)
        for query, documents in qrels.items()
        for docid, label in [*documents.items(), *((f"candidate {query} {place}", 0) for place in range(5))]
    ]
    qid, docid, y = zip(*rows, strict=True)
    return rk.RankingData(rng.normal(size=(len(y), 3)), np.array(y), np.array(qid), docid=np.array(docid))


def quietly_registered(guard, name, qrels, **options):
    """Register judgments whose queries are recognised only together, which a warning says."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankevalWarning)
        return guard.register(name, qrels=qrels, **options)


def first(qrels, n):
    """Return the judgments of the first queries."""
    return dict(list(qrels.items())[:n])


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


# The ways in ---------------------------------------------------------------------------------------------------------


def evaluate(qrels):
    rk.evaluate(qrels, ranked(qrels), measures="RR")


def evaluate_rows(qrels):
    data = training_rows(qrels)
    rk.evaluate(data.y, data.X[:, 0], qid=data.qid, docid=data.docid, measures="RR")


def cross_validate(qrels):
    rk.cross_validate(Ridge(), training_rows(qrels), measures="RR", cv=2)


def fit(qrels):
    data = training_rows(qrels)
    rk.QueryRanker(Ridge()).fit(data.X, data.y, qid=data.qid, docid=data.docid)


def fit_by_index(qrels):
    data = training_rows(qrels)
    index = pd.MultiIndex.from_arrays([data.qid, data.docid], names=["qid", "docid"])
    rk.QueryRanker(Ridge()).fit(pd.DataFrame(data.X, index=index), pd.Series(data.y, index=index))


def stop_early_on_it(qrels):
    from lightgbm import LGBMRanker

    test, other = training_rows(qrels), training_rows(judged(prefix="other", documents="another"), seed=1)
    ranker = rk.QueryRanker(LGBMRanker(n_estimators=2, n_jobs=1, verbose=-1), early_stopping_rounds=1)
    ranker.fit(other.X, other.y, qid=other.qid, docid=other.docid, eval_set=test)


def search(qrels):
    data = training_rows(qrels)
    scoring = rk.make_scorer("RR")
    grid = GridSearchCV(rk.QueryRanker(Ridge()), {"estimator__alpha": [1.0]}, scoring=scoring, cv=rk.QueryKFold(2))
    with sklearn.config_context(enable_metadata_routing=True):
        grid.fit(data.X, data.y, qid=data.qid, docid=data.docid)


def evaluate_a_data_set(qrels):
    data = training_rows(qrels)
    rows = {"qid": data.qid, "docid": data.docid, "y": data.y, "score": data.X[:, 0]}
    pd.DataFrame(rows).to_parquet("rows.parquet", row_group_size=100)
    columns = {"qid": "qid", "docid": "docid", "relevance": "y", "score": "score"}
    rk.evaluate_dataset("rows.parquet", **columns, measures="RR", progress=False)


def command_line(qrels):
    for name, numbers in (("qrels", qrels), ("run", ranked(qrels))):
        rows = [(query, docid, number) for query, found in numbers.items() for docid, number in found.items()]
        forms = {"qrels": "{} 0 {} {}\n", "run": "{} Q0 {} 1 {} me\n"}
        Path(name).write_text("".join(forms[name].format(*row) for row in rows))
    asked = ["evaluate", "qrels", "run", "-m", "RR"]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "argv", ["rankeval", *asked])
        caught(rankeval.cli.app)


WAYS = (
    evaluate, evaluate_rows, evaluate_a_data_set, cross_validate, fit, fit_by_index, stop_early_on_it, search,
)  # fmt: skip


@pytest.mark.parametrize("n_relevant", [ONE, TEN])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_every_way_in_refuses(way, n_relevant, guard):
    qrels = judged(n_relevant)
    quietly_registered(guard, "test", qrels)
    with pytest.raises(GuardRefusal) as refused:
        way(qrels)
    assert refused.value.collection == "test"
    assert len(refused.value.queries) >= N_QUERIES / 2  # a search fits on half of them first


def test_the_command_line_refuses(guard, capsys):
    quietly_registered(guard, "test", judged())
    with pytest.raises(SystemExit) as stopped:
        command_line(judged())
    assert stopped.value.code
    assert "registered test collection 'test'" in " ".join(capsys.readouterr().err.split())


def test_other_judgments_of_the_same_queries_pass(guard):
    """Their ids are the same, their documents are those of another corpus."""
    quietly_registered(guard, "test", judged())
    for way in WAYS:
        way(judged(documents="other-"))


@pytest.mark.parametrize("n_relevant", [ONE, TEN])
def test_what_is_left_after_the_advice_passes(guard, n_relevant):
    known, other = judged(n_relevant), judged(n_relevant, prefix="new", documents="new")
    quietly_registered(guard, "test", known)
    data = training_rows({**known, **other})
    status = guard.status(data)
    assert status.refused
    assert set(data.qid[status.rows]) == set(known)
    rest = data.take(~status.rows)
    rk.cross_validate(Ridge(), rest, measures="RR", cv=2)


# What is the same content ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [5, 12])
def test_equal_content_of_few_queries_is_refused(guard, n):
    few = first(judged(), n)
    quietly_registered(guard, "test", few)
    assert guard.status(qrels=few).refused
    assert not guard.status(qrels=first(judged(prefix="n", documents="n"), n)).refused


def test_labels_alone_are_no_equal_content(guard):
    """All collections of one positive among nine zeros have the same labels."""
    qid, y = np.repeat(np.arange(50), 10), np.tile([1, *[0] * 9], 50)
    with pytest.warns(RankevalWarning, match="RG001"):
        guard.register("test", y=y, qid=qid)
    assert not guard.status(y=y, qid=qid + 1000).refused
    assert not guard.status(y=y, qid=qid).refused


def test_features_that_tell_nothing_are_no_equal_content(guard):
    qid, y, X = np.repeat(np.arange(50), 10), np.tile([1, *[0] * 9], 50), np.ones((500, 1))
    with pytest.warns(RankevalWarning, match="RG001"):
        guard.register("test", X, y, qid=qid)
    assert not guard.status(X, y, qid=qid + 1000).refused


def test_exempted_queries_are_no_equal_content(guard):
    qrels = judged()
    quietly_registered(guard, "test", qrels)
    guard.exempt("test", list(qrels), "given up")
    rk.evaluate(qrels, ranked(qrels), measures="RR")


def test_candidates_of_the_lowest_grade_hide_no_test_without_documents(guard):
    """A pool with zeros is registered; the training rows have its queries, and 20 candidates as zeros."""
    rng = np.random.default_rng(0)
    qrels = {f"q{i}": {f"d{i}_{j}": int(rng.random() < 0.2) for j in range(30)} for i in range(60)}
    guard.register("test", qrels=qrels)
    rows = [(query, label) for query, found in qrels.items() for label in [*found.values(), *[0] * 20]]
    qid, y = map(np.array, zip(*rows, strict=True))
    status = guard.status(y=y, qid=qid)
    assert status.refused
    assert len(status.queries) == 60


# What a registration says of itself -----------------------------------------------------------------------------------


def findings(collection):
    return {one.code: one.message for one in collection.findings}


def test_a_registration_says_how_its_queries_are_recognised(guard):
    said = findings(quietly_registered(guard, "test", judged()))["RG001"]
    assert said.startswith("only 0 of 120 queries can be recognised by their content.")
    assert "under the same ids if 44 of these or more come back" in said
    assert "under new ids if the data has no other queries" in said
    assert "queries=" in said


def test_items_that_all_users_share_are_said_to_recognise_nothing_under_new_ids(guard):
    users = {f"u{number}": {f"item {number % 4}": 1} for number in range(N_QUERIES)}
    said = findings(quietly_registered(guard, "test", users))["RG001"]
    assert "never under new ids" in said


def test_ten_relevant_documents_a_query_are_recognisable_as_is_said(guard):
    collection = guard.register("test", qrels=judged(TEN))
    assert collection.n_identifiable == N_QUERIES
    assert "RG001" not in findings(collection)
    assert guard.status(qrels=first(judged(TEN), 10)).refused


def test_texts_are_said_to_help_where_data_brings_them(guard):
    collection = quietly_registered(guard, "test", judged(), queries=TEXTS)
    assert "only 0 of 120 queries can be recognised without their texts" in findings(collection)["RG012"]
    assert "RG001" not in findings(collection)
    renamed = {f"new {query}": documents for query, documents in judged(documents="other").items()}
    texts = {f"new {query}": text for query, text in TEXTS.items()}
    assert guard.status(qrels=renamed, queries=texts).refused
    assert not guard.status(qrels=renamed).refused


# Looks ----------------------------------------------------------------------------------------------------------------


def opened(guard, name, qrels):
    """Register, freeze and open; return the standing."""
    collection = quietly_registered(guard, name, qrels)
    runs = {system: _run(qrels, seed) for seed, system in enumerate(("base", "new"))}
    plan = guard.freeze(collection, systems=runs, baseline="base", measure="P@5", n_resamples=99)
    return guard.open(plan).standing


def _run(qrels, seed):
    rng = np.random.default_rng([seed, len(qrels)])
    return {query: {docid: rng.random() for docid in (*documents, "x")} for query, documents in qrels.items()}


def relabelled(qrels):
    """Return the same queries with other grades, and without a fifth of the relevant documents."""
    rng = np.random.default_rng(1)
    changed = {
        query: {docid: int(rng.integers(1, 4)) for docid, label in found.items() if label > 0 and rng.random() < 0.8}
        | {docid: 0 for docid, label in found.items() if label == 0}
        for query, found in qrels.items()
    }
    return {query: found for query, found in changed.items() if found}


def with_zeros(qrels):
    """Return judgments with documents that are not relevant too."""
    return {query: {**found, **{f"zero {query} {place}": 0 for place in range(5)}} for query, found in qrels.items()}


@pytest.mark.parametrize("n_relevant", [ONE, TEN])
@pytest.mark.parametrize("zeros", [False, True], ids=["positives only", "with zeros"])
@pytest.mark.parametrize("form", ["half", "without one", "more", "relabelled"])
def test_a_second_look_at_the_same_queries_is_exploratory(guard, form, zeros, n_relevant):
    qrels = with_zeros(judged(n_relevant)) if zeros else judged(n_relevant)
    more = judged(n_relevant, prefix="more", documents="more")
    forms = {
        "half": first(qrels, N_QUERIES // 2),
        "without one": first(qrels, N_QUERIES - 1),
        "more": {**qrels, **(with_zeros(more) if zeros else more)},
        "relabelled": relabelled(qrels),
    }
    assert opened(guard, "test", qrels) == "confirmatory"
    assert opened(guard, "second", forms[form]) != "confirmatory"


# The worlds -----------------------------------------------------------------------------------------------------------

# Leave-one-out over a shared catalogue need not be recognised under new ids, and new ids among other queries hide much.
OPEN = ("20 %", "new ids, candidates", "new ids, among others")


@pytest.mark.random
@pytest.mark.parametrize("world", choose(default=list(WORLDS)[2:9:3], complete=list(WORLDS)))
def test_public_collections_are_recognised(world):
    for row in recognised(world, seed=100):
        shared = "leave-one-out" in world and row["change"].startswith("new ids")
        few = row["change"].startswith("50 %") and "43 of" in world
        assert row["refused"] or row["change"] in OPEN or shared or few, row


@pytest.mark.random
@pytest.mark.parametrize("kind", list(OTHERS))
def test_other_data_is_not_taken_for_it(kind):
    for trial in range(choose(default=4, complete=20, full=OTHERS[kind][1])):
        assert not mistaken(kind, 1000 + trial)["refused"], trial


@pytest.mark.parametrize("share", [0.9, 0.95, 0.98])
def test_documents_called_by_their_places_that_are_relevant_again_with_other_grades_are_no_evidence(share):
    """Generated ids: the third document of query 7 is "7-3" in every collection."""
    qid, place = np.repeat(np.arange(40), 7).astype(str), np.tile(np.arange(7), 40).astype(str)
    docid = np.char.add(np.char.add(qid, "-"), place)

    def judged(seed):
        y = np.random.default_rng(seed).choice(4, 280, p=[1 - share, *3 * [share / 3]])
        return fingerprint_qrels(rk.Qrels(qid, docid, y))

    known = registered(judged(0))
    assert match_content(known, judged(0)).refused
    for seed in range(1, 21):
        assert not match_content(known, judged(seed)).refused, seed
