"""Rankers by words: weights term by term, worked examples, bm25s as an oracle, ties, and texts that are none."""

import itertools
import json
import math
import pickle
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput, UnknownName
from rankeval.text import BM25, VectorSpace, read_texts
from rankeval.text.terms import Analyzer

TRIPLES = ["".join(letters) for letters in itertools.product("nlabL", "ntp", "ncpu")]
RANKERS = [VectorSpace("nnn.nnn"), VectorSpace("ltc.ltc"), VectorSpace("Lpu.apc"), BM25()]


def made_texts(rng, n, words, least=0):
    """Return texts of some words, of which the first are frequent."""
    share = 1 / np.arange(1, len(words) + 1)
    sizes = rng.integers(least, 12, n)
    return [" ".join(rng.choice(words, size, p=share / share.sum())) for size in sizes]


# A reference, term by term ------------------------------------------------------------------------------------------


def raw(text, triple, n, df, a, log):
    """Return the weight of each term that a document has, and the length of the vector."""
    tf = Counter(word for word in text.split() if word in df)
    weights = {}
    for term, times in tf.items():
        weight = {
            "n": times,
            "l": 1 + math.log(times, log),
            "a": a + (1 - a) * times / max(tf.values()),
            "b": 1,
            "L": (1 + math.log(times, log)) / (1 + math.log(sum(tf.values()) / len(tf), log)),
        }[triple[0]]
        odds = (n - df[term]) / df[term]
        weight *= {
            "n": 1,
            "t": math.log(n / df[term], log),
            "p": max(0, math.log(odds, log)) if odds > 0 else 0,
        }[triple[1]]
        weights[term] = weight
    cosine = math.sqrt(sum(weight**2 for weight in weights.values()))
    return weights, {"n": 1, "c": cosine, "p": cosine, "u": len(weights)}[triple[2]]


def reference(docs, triple, *, a=0.4, slope=0.2, log=math.e):
    """Return a function from a text to its weights by the letters of a triple."""
    df = Counter(itertools.chain.from_iterable(set(text.split()) for text in docs))
    pivot = sum(raw(text, triple, len(docs), df, a, log)[1] for text in docs) / len(docs)

    def vector(text):
        weights, length = raw(text, triple, len(docs), df, a, log)
        if triple[2] in "pu":
            length = (1 - slope) * pivot + slope * length
        return {term: weight / (length or 1) for term, weight in weights.items()}

    return vector


def reference_run(docs, queries, scheme, **options):
    """Return the score of each document that shares a term with a query."""
    left, right = (reference(list(docs.values()), triple, **options) for triple in scheme.split("."))
    found = {}
    for (qid, query), (docid, text) in itertools.product(queries.items(), docs.items()):
        one, other = right(query), left(text)
        if one.keys() & other.keys():
            found[qid, docid] = sum(one[term] * other[term] for term in one.keys() & other.keys())
    return found


def scores_of(run):
    rows = run.to_frame()
    found = dict(zip(zip(rows["qid"], rows["docid"], strict=True), rows["score"], strict=True))
    assert len(found) == len(rows)
    return found


@each_row("place", range(len(TRIPLES)))
def test_weights_and_scores_equal_a_reference_term_by_term(place):
    """Each triple, for documents and for queries, gives the weights of its formulas to 1e-12."""
    rng = np.random.default_rng(place)
    words = [f"w{number}" for number in range(25)]
    docs = dict(enumerate([*made_texts(rng, 30, words), "w0 w0 w24", ""]))
    queries = dict(enumerate([*made_texts(rng, 6, words), "unknown w1 unknown", ""]))
    scheme = f"{TRIPLES[place]}.{TRIPLES[(7 * place + 11) % len(TRIPLES)]}"
    options = {"a": 0.3, "slope": 0.35, "log": 10}
    ranker = VectorSpace(scheme, **options).fit(docs)
    vector = reference(list(docs.values()), TRIPLES[place], **options)
    weights = ranker.weights_.T.toarray()
    for docid, row in zip(ranker.docid_.to_pylist(), weights, strict=True):
        expected = vector(docs[docid])
        found = {term: row[column] for term, column in ranker.counter_.vocabulary_.items()}
        assert found == pytest.approx({term: expected.get(term, 0) for term in found}, rel=0, abs=1e-12)
    assert scores_of(ranker.search(queries)) == pytest.approx(
        reference_run(docs, queries, scheme, **options), rel=1e-12, abs=1e-12
    )


@given(
    docs=st.lists(st.lists(st.sampled_from("abcdef"), max_size=8).map(" ".join), min_size=1, max_size=6),
    query=st.lists(st.sampled_from("abcdefg"), max_size=6).map(" ".join),
    scheme=st.tuples(st.sampled_from(TRIPLES), st.sampled_from(TRIPLES)).map(".".join),
    options=st.fixed_dictionaries(
        {}, optional={"a": st.floats(0, 1), "slope": st.floats(0, 1), "log": st.floats(1.5, 20)}
    ),
)
def test_any_two_triples_give_the_scores_of_the_reference(docs, query, scheme, options):
    """Any scheme with any parameters gives the scores of the formulas, and exactly the documents that share a term."""
    docs = {f"d{number}": text for number, text in enumerate([*docs, "a"])}
    found = scores_of(VectorSpace(scheme, **options).fit(docs).search({"q": query}))
    assert found == pytest.approx(reference_run(docs, {"q": query}, scheme, **options), rel=1e-12, abs=1e-12)


# Worked examples ----------------------------------------------------------------------------------------------------


@pytest.mark.shared
def test_ntn_is_the_formula_of_the_lectures_on_their_postings(shared):
    """The weight is tf*log(N/df), the lectures' formula, on their postings; they print no weights of their own."""
    examples = {one["id"]: one for one in json.loads((shared / "seed_examples.json").read_text())["examples"]}
    assert examples["tf_idf_vector"]["inputs"] == {"formula": "tf*log(N/df)"}
    postings = examples["postings"]["inputs"]
    docs = {docid: "" for places in postings.values() for docid in places}
    for term, places in postings.items():
        for docid, tf in places.items():
            docs[docid] += f"{term} " * tf
    ranker = VectorSpace("ntn.nnn").fit(docs)
    for term, places in postings.items():
        found = scores_of(ranker.search({"q": term}))
        expected = {("q", docid): tf * math.log(len(docs) / len(places)) for docid, tf in places.items()}
        assert found == pytest.approx(expected, rel=1e-12)


def test_lnc_ltc_reproduces_the_worked_example_of_iir():
    """Introduction to Information Retrieval, 6.4: the score of "best car insurance" is 0.8, with weights as printed.

    The book has a million documents; here are a thousand with the same N/df.
    """
    df = {"auto": 5, "best": 50, "car": 10, "insurance": 1}
    docs = {number: " ".join(term for term in df if number < df[term]) or "other" for number in range(1000)}
    docs[0] = "car insurance auto insurance"
    docs[999] = "best"  # the example's document has no "best"
    ranker = VectorSpace("lnc.ltc", log=10).fit(docs)
    rows = ranker.counter_.vocabulary_
    document = ranker.weights_[:, [0]].toarray().ravel()
    assert [round(document[rows[term]], 2) for term in df] == [0.52, 0, 0.52, 0.68]
    query = ranker._weighed(ranker.counter_.transform(["best car insurance"])).toarray().ravel()
    assert [round(query[rows[term]], 2) for term in df] == [0, 0.34, 0.52, 0.78]
    assert round(scores_of(ranker.search({"q": "best car insurance"}))["q", 0], 1) == 0.8


def test_lnc_lnc_reproduces_the_cosines_of_three_novels():
    """Introduction to Information Retrieval, 6.3: .94, .79 and .69 by log frequencies, as its slides print them."""
    terms = ["affection", "jealous", "gossip", "wuthering"]
    counts = {"sense": (115, 10, 2, 0), "pride": (58, 7, 0, 0), "heights": (20, 11, 6, 38)}
    docs = {title: " ".join(np.repeat(terms, times)) for title, times in counts.items()}
    found = scores_of(VectorSpace("lnc.lnc", log=10).fit(docs).search(docs))
    pairs = [("sense", "pride"), ("sense", "heights"), ("pride", "heights")]
    assert [round(found[pair], 2) for pair in pairs] == [0.94, 0.79, 0.69]


def test_lnu_ltc_is_the_published_scheme():
    """Pivoted unique normalisation of Singhal, Buckley and Mitra: slope .2, the pivot is the mean number of terms."""
    docs = {"d1": "a a a b", "d2": "a b c d", "d3": "e f"}
    found = scores_of(VectorSpace("Lnu.nnn").fit(docs).search({"q": "a"}))
    pivot = (2 + 4 + 2) / 3
    expected = {
        ("q", "d1"): (1 + math.log(3)) / (1 + math.log(2)) / (0.8 * pivot + 0.2 * 2),
        ("q", "d2"): 1 / (0.8 * pivot + 0.2 * 4),
    }
    assert found == pytest.approx(expected, rel=1e-12)


# BM25 beside bm25s --------------------------------------------------------------------------------------------------


def assert_equal_to_bm25s(docs, queries, **options):
    """Compare all scores with those of bm25s for the same terms: it holds them in float32."""
    import bm25s

    terms = Analyzer(options.pop("stem", None))
    run = BM25(stem=terms.stem, **options).fit(docs).search(queries, k=len(docs))
    peer = bm25s.BM25(method="lucene", **{"k1": 1.2, "b": 0.75, **options})
    peer.index([terms(text) for text in docs.values()], show_progress=False)
    found = scores_of(run)
    for qid, text in queries.items():
        expected = peer.get_scores(terms(text)) if terms(text) else np.zeros(len(docs), np.float32)
        ours = [found.get((qid, docid), 0) for docid in docs]
        np.testing.assert_allclose(ours, expected, rtol=2e-6)


@pytest.mark.needs("bm25s")
@each_row("options", [{}, {"k1": 0.9, "b": 0.4}, {"k1": 2, "b": 1}, {"b": 0}, {"stem": "english"}])
def test_bm25_equals_bm25s_on_made_texts(options):
    """Repeated terms of queries, empty documents and terms in all documents included."""
    rng = np.random.default_rng(0)
    words = ["run", "runs", "running", "all", *(f"w{number}" for number in range(40))]
    docs = {f"d{number}": f"{text} all" for number, text in enumerate(made_texts(rng, 200, words))} | {"none": ""}
    queries = dict(enumerate(made_texts(rng, 20, words, least=1)))
    assert_equal_to_bm25s(docs, queries, **options)


@pytest.mark.needs("bm25s")
@pytest.mark.shared
def test_bm25_equals_bm25s_on_cranfield(shared):
    """All documents and queries of a real collection."""
    docs, queries, _ = cranfield(shared)
    assert_equal_to_bm25s(docs, queries)


# Order, ties and cuts -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made():
    rng = np.random.default_rng(5)
    words = [f"w{number}" for number in range(12)]
    docs = {f"d{number}": text for number, text in enumerate(made_texts(rng, 60, words))}
    return docs, {f"q{number}": text for number, text in enumerate(made_texts(rng, 8, words))}


@each_row("ranker", RANKERS, ids=repr)
def test_neither_the_order_nor_the_names_of_documents_change_a_score(ranker, made):
    """Shuffled documents give the same run to the last bit; renamed ones the same scores under new names."""
    docs, queries = made
    found = scores_of(ranker.fit(docs).search(queries))
    shuffled = dict(sorted(docs.items(), key=lambda item: item[1]))
    assert scores_of(ranker.fit(shuffled).search(queries)) == found
    new = {docid: f"x{(int(docid[1:]) * 7) % 60}" for docid in docs}
    renamed = scores_of(ranker.fit({new[docid]: text for docid, text in docs.items()}).search(queries))
    assert renamed == pytest.approx({(qid, new[docid]): score for (qid, docid), score in found.items()}, rel=1e-13)


@each_row("ranker", RANKERS, ids=repr)
@each_row("k", [1, 2, 5, 30, 59, 60, 1000])
def test_the_best_k_are_the_first_k_of_the_full_sort(ranker, made, k):
    """A cut by partition keeps score, order and ties; each query's rows stand together, in the order of the queries."""
    docs, queries = made
    rows = ranker.fit(docs).search(queries).to_frame()
    full = rows.sort_values(["qid", "score", "docid"], ascending=[True, False, True])
    expected = full.groupby("qid").head(k).reset_index(drop=True)
    pd.testing.assert_frame_equal(ranker.search(queries, k=k).to_frame(), expected)


@each_row("ids", [[30, 4, 200, 11], ["30", "4", "200", "11"], ["ä", "z", "Z", "\U0001f600"]])
@each_row("k", [2, 10])
def test_equal_scores_are_in_the_order_of_the_ids(ids, k):
    """Numbers by size, texts by code points."""
    found = BM25().fit(dict.fromkeys(ids, "same words")).search({1: "words"}, k=k)
    assert found.docid.to_pylist() == sorted(ids)[:k]
    assert found.qid.to_pylist() == [1] * min(k, 4)


@each_row("ranker", RANKERS, ids=repr)
def test_a_query_finds_the_same_alone_as_among_others(ranker, made):
    """Neither the other queries nor their order change a score by a bit."""
    docs, queries = made
    together = scores_of(ranker.fit(docs).search(dict(reversed(queries.items()))))
    alone = [scores_of(ranker.search({qid: text})) for qid, text in queries.items()]
    assert together == {pair: score for found in alone for pair, score in found.items()}


@each_row("scheme", ["ltc.ltc", "npn.npn", "ltp.ltu", "apc.Lpp"])
@each_row("slope", [0.2, 1])
def test_documents_that_share_only_terms_of_weight_0_are_retrieved_with_0(scheme, slope):
    """A term in all documents weighs 0, and its documents are kept, without a warning of a division by 0."""
    docs = {"d2": "all", "d1": "all", "d3": "all all", "d4": "all"}
    found = VectorSpace(scheme, slope=slope).fit(docs).search({"q": "all"})
    assert list(scores_of(found).items()) == [(("q", docid), 0) for docid in sorted(docs)]


# Texts that are none, or have nothing -------------------------------------------------------------------------------


@each_row("ranker", RANKERS, ids=repr)
def test_texts_without_terms_retrieve_nothing_and_are_not_retrieved(ranker):
    """Empty texts, punctuation, unknown words and no queries at all give no rows; evaluate scores such a query as 0."""
    docs = {"d1": "red apple", "d2": "", "d3": " \0 \u202e ...", "d4": "red pear"}
    ranker.fit(docs)
    found = ranker.search({"q0": "", "q1": "red", "q2": "unknown", "q3": "!"})
    assert list(scores_of(found)) == [("q1", "d1"), ("q1", "d4")]
    assert len(ranker.search({})) == len(ranker.search({"q": ""})) == 0
    scores = rk.evaluate({"q1": {"d1": 1}, "q2": {"d2": 1}}, found, measures=["R@10"]).per_query
    assert scores["R@10"].tolist() == [1, 0]


@each_row("ranker", RANKERS, ids=repr)
def test_one_document_is_a_collection(ranker):
    """The only document is found, whatever its weights are."""
    assert list(scores_of(ranker.fit({7: "red red apple"}).search({1: "red"}))) == [(1, 7)]


@each_row("ranker", [VectorSpace("nnn.nnn", stop="english"), BM25(stop=["The"])], ids=repr)
def test_stop_words_are_no_terms(ranker):
    """A document of stop words is empty, and a query of them finds nothing."""
    found = ranker.fit({"d1": "THE", "d2": "the apple"}).search({"q1": "the", "q2": "The apple"})
    assert list(scores_of(found)) == [("q2", "d2")]


@each_row("ranker", [VectorSpace, BM25])
def test_stems_match(ranker):
    """With a stemmer, forms of a word are one term."""
    docs, queries = {"d1": "the runner is running", "d2": "walks"}, {"q1": "RUNS", "q2": "walked"}
    assert list(scores_of(ranker(stem="english").fit(docs).search(queries))) == [("q1", "d1"), ("q2", "d2")]
    assert len(ranker().fit(docs).search(queries)) == 0


@each_row(
    ("docs", "problem"),
    [
        ({}, "no document has a term"),
        ({"d": "", "e": "..."}, "no document has a term"),
        (["red"], "expected pairs of an id and a text"),
        ({"d": 3}, r"docs\['d'\] is 3; expected a text"),
        ({"d": b"red"}, "expected a text"),
        (pd.Series({"d": None}), "'d' has no text"),
        (pd.Series(["red", "pear"], index=["x", "x"]), "'x' is given more than once"),
        (pd.DataFrame({"docid": [1, 1], "text": ["red", "pear"]}), "1 is given more than once"),
        (pd.DataFrame({"docid": [1], "abstract": ["red"]}), "a column 'text'"),
        ({"d": "red", 1: "red"}, "column docid holds int and str"),
        ({"": "red"}, "an empty id"),
        ({None: "red"}, "no id"),
    ],
)
def test_documents_that_are_none_are_refused(docs, problem):
    """What is no text by id is named."""
    with pytest.raises(InvalidInput, match=problem):
        BM25().fit(docs)


@each_row("queries", [{"q": None}, ["red"], {"q": "red", 1: "red"}])
def test_queries_that_are_none_are_refused(queries):
    """Queries are checked as documents are."""
    with pytest.raises(InvalidInput, match=r"^(queries|column qid)"):
        BM25().fit({"d": "red"}).search(queries)


@each_row(
    ("ranker", "argument"),
    [
        *((VectorSpace(scheme), "scheme") for scheme in ("ltc", "ltc.ltx", "LTC.ltc", "ltc.ltc\n", "", None, 3)),
        *((VectorSpace(a=a), "a") for a in (-0.1, 1.1, "x", math.nan, None, True)),
        *((VectorSpace(slope=slope), "slope") for slope in (-0.1, 1.1)),
        *((VectorSpace(log=log), "log") for log in (1, 0, -2, math.inf, math.nan)),
        *((BM25(k1), "k1") for k1 in (-1, math.inf, None)),
        *((BM25(b=b), "b") for b in (-0.1, 1.1)),
    ],
    ids=repr,
)
def test_parameters_are_checked_at_fit(ranker, argument):
    """A wrong parameter is refused by its name, when documents are given and not before."""
    with pytest.raises(InvalidInput) as refused:
        ranker.fit({"d": "red"})
    assert refused.value.argument == argument


@each_row("options", [{"stem": "klingon"}, {"stop": "klingon"}])
def test_an_unknown_language_is_refused(options):
    """Stemmers and lists of stop words are chosen by name."""
    with pytest.raises(UnknownName, match="klingon"):
        BM25(**options).fit({"d": "red"})


@each_row("k", [0, -1, 1.5, "all", None])
def test_k_is_a_positive_whole_number(k):
    """Anything else is refused."""
    with pytest.raises(InvalidInput, match="k is"):
        BM25().fit({"d": "red"}).search({"q": "red"}, k=k)


# Conventions --------------------------------------------------------------------------------------------------------


@each_row("ranker", [VectorSpace("lnc.ltc", a=0.5, log=2, stem="english", stop=["the"]), BM25(0.9, 0.4)], ids=repr)
def test_rankers_are_estimators_of_scikit_learn(ranker, made):
    """Parameters are read, set and cloned; a fitted ranker pickles; without documents there is no search."""
    docs, queries = made
    with pytest.raises(NotFittedError):
        ranker.search(queries)
    copy = clone(ranker.fit(docs))
    assert copy.get_params() == ranker.get_params()
    assert copy.set_params(stop="english").stop == "english"
    with pytest.raises(NotFittedError):
        copy.search(queries)
    expected = scores_of(ranker.search(queries))
    assert scores_of(pickle.loads(pickle.dumps(ranker)).search(queries)) == expected


def test_a_search_uses_the_parameters_of_the_fit():
    """Parameters that are set afterwards count from the next fit on, in the weights and in the run's name."""
    docs = {"d1": "red red apple", "d2": "apple"}
    ranker = VectorSpace("nnn.nnn").fit(docs)
    before = ranker.search({"q": "red"})
    after = ranker.set_params(scheme="ltc.ltc").search({"q": "red"})
    assert (after.name, after.score.tolist()) == (before.name, before.score.tolist()) == ("nnn.nnn", [2.0])
    assert ranker.fit(docs).search({"q": "red"}).name == "ltc.ltc"


def test_runs_are_named():
    """The name is the scheme, BM25, or the one that is asked for."""
    docs = {"d": "red"}
    assert VectorSpace("lnc.ltc").fit(docs).search(docs).name == "lnc.ltc"
    assert BM25().fit(docs).search(docs).name == "BM25"
    assert BM25().fit(docs).search(docs, name="mine").name == "mine"


@each_row(
    "form",
    [
        dict,
        pd.Series,
        lambda texts: pd.DataFrame({"text": texts}),
        lambda texts: pd.DataFrame({"docno": list(texts), "text": list(texts.values())}),
        lambda texts: pl.DataFrame({"docid": list(texts), "text": list(texts.values())}),
        lambda texts: pa.table({"doc_id": list(texts), "text": list(texts.values())}),
    ],
)
@each_row("ids", [["b", "a"], [2, 1]])
def test_texts_come_as_mapping_series_or_frame(form, ids):
    """Every form of the same texts gives the same run, with the ids as they are given."""
    found = VectorSpace("nnn.nnn").fit(form(dict(zip(ids, ["x x y", "y"], strict=True)))).search({"q": "y x"})
    assert list(scores_of(found).items()) == [(("q", ids[0]), 3), (("q", ids[1]), 1)]


# Real collections ---------------------------------------------------------------------------------------------------


def cranfield(shared):
    """Return titles with abstracts, and the queries by the numbers that the judgments use."""
    folder = shared / "cranfield"
    queries = read_texts(folder / "cran.qry", ids="order")
    return read_texts(folder / "cran.all.1400.gz"), queries, folder / "qrels.binary.txt.gz"


def cisi(shared):
    """Return titles with abstracts, and the queries; 35 of these have no judgments."""
    folder = shared / "cisi"
    return read_texts(folder / "CISI.ALL.gz"), read_texts(folder / "CISI.QRY"), folder / "qrels.binary.txt.gz"


APART = {  # AP at depth 100 by code written apart: plain tokens, and stems without stop words
    (cranfield, "ltc.ltc"): (0.268, 0.292),
    (cranfield, "lnc.ltc"): (0.281, 0.313),
    (cranfield, "Lnu.ltc"): (0.282, 0.314),
    (cranfield, "BM25"): (0.272, 0.311),
    (cranfield, "nnn.nnn"): (0.025, 0.184),
    (cisi, "ltc.ltc"): (0.164, 0.182),
    (cisi, "lnc.ltc"): (0.147, 0.179),
    (cisi, "BM25"): (0.156, 0.183),
}


def printed():
    """Return the table of the guide: AP by collection and scheme, plain and with stems."""
    guide = Path(__file__).parents[2] / "examples" / "guides" / "text_baseline.md"
    rows = re.findall(r"^\| (\S+) " + r"\| (\.\d{3}) " * 4 + r"\|$", guide.read_text(encoding="utf-8"), re.MULTILINE)
    return {(where, row[0]): row[at : at + 2] for row in rows for where, at in ((cranfield, 1), (cisi, 3))}


@pytest.mark.shared
@pytest.mark.parametrize("collection", [cranfield, cisi])
def test_ap_on_real_collections_is_that_of_the_guide_and_of_independent_code(shared, collection):
    """The guide prints it; it is within .01 of that of code written apart, whose words had two letters or more."""
    docs, queries, qrels = collection(shared)
    assert (len(docs), len(queries)) == {cranfield: (1400, 225), cisi: (1460, 111)}[collection]
    assert APART.keys() <= printed().keys()
    for (where, scheme), shown in printed().items():
        if where is collection:
            for at, options in enumerate([{}, {"stem": "english", "stop": "english"}]):
                ranker = BM25(**options) if scheme == "BM25" else VectorSpace(scheme, **options)
                scores = rk.evaluate(qrels, ranker.fit(docs).search(queries, k=100), measures=["AP"])
                ap = scores.mean()["AP"]
                assert f"{ap:.3f}".lstrip("0") == shown[at], (scheme, options)
                if (where, scheme) in APART:
                    assert ap == pytest.approx(APART[where, scheme][at], abs=0.01), (scheme, options)


def test_stop_words_of_an_iterator_are_refused():
    """Tuning fits one ranker again and again, and the second fit would find the iterator empty."""
    ranker = VectorSpace("nnn.nnn", stop=iter(["the"]))
    with pytest.raises(InvalidInput) as refused:
        ranker.fit({"d": "the red apple"})
    assert refused.value.argument == "stop"


def test_the_counter_shows_no_rule_of_words_that_does_not_hold():
    """The words are those of `Analyzer`: a pattern of scikit-learn, which drops single letters, would say otherwise."""
    counter = BM25().fit({"d": "Vitamin C, straße_x"}).counter_
    assert sorted(counter.vocabulary_) == ["c", "strasse", "vitamin", "x"]
    assert (counter.token_pattern, counter.lowercase) == (None, False)


@each_row("ranker", [VectorSpace, BM25])
def test_a_ranker_offers_no_routing_of_its_documents(ranker):
    """The method of scikit-learn that routes weights of samples has nothing to route, and would fill the help."""
    assert not hasattr(ranker, "set_fit_request")
    assert ranker().get_metadata_routing() is not None
