"""Rankers by words: SMART's vector space, and BM25.

::

    docs -> counts (n_docs, n_terms) -> weights (n_terms, n_docs)
                                            |
    queries -> counts -> weights --- product, one query at a time -> k best -> Run

A query retrieves the documents that share a term with it. A document whose shared terms all weigh
0, because each stands in all documents, is retrieved with the score 0. So the matrix of weights
keeps its zeros, and who is retrieved is read from its places and not from its values.

Documents are held in the order of their ids: a stable sort by score then breaks ties by id.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from rankeval._arguments import explained
from rankeval._checks import check_count, check_number, require, said
from rankeval._estimator import BaseEstimator
from rankeval.collection.run import Run
from rankeval.errors import InvalidInput
from rankeval.io.columns import id_column, row_numbers
from rankeval.io.texts_by_id import as_texts
from rankeval.text.terms import Analyzer

Values = NDArray[np.float64]
Stop = str | Collection[str] | None


# The letters of a triple: of the frequency of a term, of its rarity, of the length of a text.
_TRIPLE = "[nlabL][ntp][ncpu]"


def _tf(letter: str, tf: Values, most: Values, mean: Values, a: float, unit: float) -> Values:
    """Weigh frequencies, from the greatest and the mean one of the text; ``unit`` is log(base)."""
    match letter:
        case "l":
            return 1 + np.log(tf) / unit
        case "a":
            return a + (1 - a) * tf / most
        case "b":
            return np.ones_like(tf)
        case "L":
            return (1 + np.log(tf) / unit) / (1 + np.log(mean) / unit)
    return tf


def _idf(letter: str, n: int, df: Values, unit: float) -> Values:
    """Weigh terms, from the number of documents and how many of them have each term."""
    match letter:
        case "t":
            return np.log(n / df) / unit
        case "p":
            return np.log(np.maximum((n - df) / df, 1)) / unit
    return np.ones_like(df)


def _length(letter: str, weights: csr_array) -> Values:
    """Return the number by which the weights of each text are divided."""
    match letter:
        case "n":
            return np.ones(weights.shape[0])
        case "u":
            return np.diff(weights.indptr).astype(np.float64)
    return np.sqrt(_sums(weights, weights.data**2))


def _rows(counts: csr_array) -> NDArray[np.integer]:
    return np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))


def _sums(counts: csr_array, values: Values) -> Values:
    return np.bincount(_rows(counts), values, minlength=counts.shape[0]).astype(np.float64)


def _with(values: Values, counts: csr_array) -> csr_array:
    return csr_array((values, counts.indices, counts.indptr), shape=counts.shape)


@dataclass(frozen=True)
class _Smart:
    """The weights of a triple, with what it learnt of the documents."""

    tf: str
    idf: Values
    length: str
    a: float
    slope: float
    unit: float
    pivot: float = 0.0

    def __call__(self, counts: csr_array) -> csr_array:
        weights = self.unscaled(counts)
        length = _length(self.length, weights)
        if self.length in "pu":
            length = (1 - self.slope) * self.pivot + self.slope * length
        return _with(weights.data / np.where(length > 0, length, 1)[_rows(counts)], counts)

    def unscaled(self, counts: csr_array) -> csr_array:
        rows, most = _rows(counts), np.zeros(counts.shape[0])
        np.maximum.at(most, rows, counts.data)
        mean = _sums(counts, counts.data) / np.maximum(np.diff(counts.indptr), 1)
        tf = _tf(self.tf, counts.data, most[rows], mean[rows], self.a, self.unit)
        return _with(tf * self.idf[counts.indices], counts)


@explained
class _Ranker(BaseEstimator):
    stem: str | None
    stop: Stop
    _name: str  # of runs

    # Else the help of each ranker has a page on the routing of documents, which is no weight of
    # samples.
    __metadata_request__fit: ClassVar = {"docs": UNUSED}

    def _check(self) -> None:
        """Refuse wrong parameters."""
        for name in ("a", "slope", "b"):
            value = getattr(self, name, 0)
            check_number(name, value, least=0)
            require(value <= 1, name, value, "a number from 0 to 1")

    def _learn(self, counts: csr_array, df: Values) -> csr_array:
        """Return the weights of documents, from counts and each term's number of documents."""
        raise NotImplementedError  # each ranker has its own

    def _weighed(self, counts: csr_array) -> csr_array:
        """Return the weights of queries."""
        return counts

    def fit(self, docs: Any) -> Self:
        """Weigh the terms of documents.

        Parameters
        ----------
        docs : mapping, Series, frame or path
            Texts by id. A frame has the ids in a column, such as ``docid`` or ``id``, or in an
            index that is more than the numbers of its rows. Its text is a column ``text``,
            ``contents`` or ``body``; a column ``title`` comes before it, in a line of its own, and
            may have gaps. A path is read by `rankeval.text.read_texts`. An empty text is a
            document: it counts in the number and in the mean length of the documents, and no query
            retrieves it.

        Returns
        -------
        self
            This ranker.

        Raises
        ------
        InvalidInput
            If a parameter is refused, an id is repeated, a value is not text, a frame has no ids,
            or no document has a term.
        """
        self._check()
        texts = as_texts(docs, "docs", "docid")
        ids = id_column(list(texts), "docid")
        order = pc.array_sort_indices(ids)
        terms = Analyzer(self.stem, self.stop)
        counter = CountVectorizer(
            analyzer=terms, token_pattern=None, lowercase=False, dtype=np.float64
        )
        try:
            counts = counter.fit_transform(map(list(texts.values()).__getitem__, order.to_pylist()))
        except ValueError as error:
            raise InvalidInput(f"no document has a term: {said(error)}", argument="docs") from error
        df = np.bincount(counts.indices, minlength=counts.shape[1]).astype(np.float64)
        self.weights_: csr_array = self._learn(csr_array(counts), df).T.tocsr()
        self.docid_: pa.Array = ids.take(order)
        self.counter_: CountVectorizer = counter
        return self

    def search(self, queries: Any, k: int = 1000, *, name: str | None = None) -> Run:
        """Return the best documents of each query.

        A query retrieves the documents that share a term with it, also those whose shared terms all
        weigh 0. The space has one axis for each term of the documents. So a term that no document
        has is not part of a query: it counts neither in its frequencies nor in its length.

        Parameters
        ----------
        queries : mapping, Series, frame or path
            Texts by id, as in `fit`, with ids such as ``qid``. A frame may call the text ``query``.
        k : int, default=1000
            How many documents to return for each query, at most.
        name : str, optional
            The name of the run, by default the one of the weights: the scheme, or "BM25".

        Returns
        -------
        Run
            The rows of each query are together, the best document first. Equal scores are in the
            order of the documents' ids. A query that shares no term with any document has no rows;
            `rankeval.evaluate` counts it as an empty ranking. The run keeps the texts, by which the
            guard recognises registered queries.

        Raises
        ------
        NotFittedError
            If there are no documents yet.
        InvalidInput
            If k is not a positive whole number, an id is repeated, a value is not text, or a frame
            has no ids.
        """
        check_is_fitted(self)
        check_count("k", k)
        texts = as_texts(queries, "queries", "qid")
        weights = self._weighed(csr_array(self.counter_.transform(texts.values())))
        ranked = [
            self._best(weights.indices[i:j], weights.data[i:j], k)
            for i, j in pairwise(weights.indptr)
        ]
        rows = np.concatenate([np.empty(0, np.int64), *(rows for rows, _ in ranked)])
        scores = np.concatenate([np.empty(0), *(scores for _, scores in ranked)])
        query = np.repeat(np.arange(len(ranked)), [len(rows) for rows, _ in ranked])
        qid = id_column(list(texts), "qid").take(row_numbers(query))
        name = self._name if name is None else name
        return Run(qid, self.docid_.take(row_numbers(rows)), scores, name=name, queries=texts)

    def _best(
        self, terms: NDArray[np.integer], weights: Values, k: int
    ) -> tuple[NDArray[np.integer], Values]:
        shared = self.weights_[terms]
        is_found = np.zeros(shared.shape[1], dtype=bool)
        is_found[shared.indices] = True
        rows = np.flatnonzero(is_found)
        scores = (weights @ shared)[rows]
        if k < len(rows):
            # All that are as good as the last one, so that the sort sees every tie.
            is_good = scores >= np.partition(scores, -k)[-k]
            rows, scores = rows[is_good], scores[is_good]
        order = np.argsort(-scores, kind="stable")[:k]
        return rows[order], scores[order]


@explained
class VectorSpace(_Ranker):
    """Ranks documents by the product of their vector and the query's, weighted by a SMART scheme.

    A scheme such as "lnc.ltc" has three letters for documents and three for queries: the weight of
    a term's frequency ``tf`` in the text, of the number ``df`` of the ``N`` documents that have the
    term, and the length by which the vector is divided.

    ======  ===================================  ======  ======================  ======  ============================
    letter  frequency                            letter  documents               letter  length
    ======  ===================================  ======  ======================  ======  ============================
    n       tf                                   n       1                       n       1
    l       1 + log tf                           t       log(N/df)               c       cosine: root of squares' sum
    a       a + (1 - a) tf / largest tf          p       max(0, log((N-df)/df))  p       pivoted cosine
    b       1                                                                    u       pivoted number of terms
    L       (1 + log tf) / (1 + log of mean tf)
    ======  ===================================  ======  ======================  ======  ============================

    A pivoted length is ``(1 - slope) * pivot + slope * length``; the pivot is the mean length of
    all documents, for queries too. "Lnu.ltc" with slope .2 is the scheme of Singhal, Buckley and
    Mitra. The largest and the mean tf, the cosine and the number of terms are those of the text's
    different terms.

    A word is a run of letters and digits with their marks; one letter is a word, and ``_`` parts
    two words. Case does not count: "Straße" and "STRASSE" are the term ``strasse``. There is no
    stemming, and all words count, unless ``stem`` and ``stop`` say else.

    Parameters
    ----------
    scheme : str, default="ltc.ltc"
        The letters for documents and for queries.
    a : float, default=0.4
        The least weight of the letter a, from 0 to 1.
    slope : float, default=0.2
        The slope of pivoted lengths, from 0 to 1.
    log : float, default=e
        The base of the logarithms, above 1.
    stem : str, optional
        A language of the Snowball stemmers, such as "english"; needs the extra ``text``.
    stop : str or collection of str, optional
        Stop words, or "english" for those of scikit-learn.

    Attributes
    ----------
    docid_ : pyarrow.Array of shape (n_docs,)
        The ids of the documents, in ascending order.
    weights_ : sparse array of shape (n_terms, n_docs)
        The weights of the terms in the documents.
    counter_ : CountVectorizer
        The counter of terms; ``counter_.vocabulary_`` has the row of each term.

    References
    ----------
    C. D. Manning, P. Raghavan, H. Schütze: Introduction to Information Retrieval (2008), ch. 6.
    A. Singhal, C. Buckley, M. Mitra: Pivoted document length normalization, SIGIR 1996,
    doi:10.1145/243199.243206.

    Examples
    --------
    >>> docs = {"d1": "Red apple", "d2": "red red pear", "d3": "pear"}
    >>> ranker = VectorSpace("nnn.nnn").fit(docs)
    >>> ranker.search({"q": "a red pear"}).to_frame()
      qid docid  score
    0   q    d2    3.0
    1   q    d1    1.0
    2   q    d3    1.0
    """

    def __init__(
        self,
        scheme: str = "ltc.ltc",
        *,
        a: float = 0.4,
        slope: float = 0.2,
        log: float = math.e,
        stem: str | None = None,
        stop: Stop = None,
    ) -> None:
        self.scheme = scheme
        self.a = a
        self.slope = slope
        self.log = log
        self.stem = stem
        self.stop = stop

    def _check(self) -> None:
        form = rf"{_TRIPLE}\.{_TRIPLE}"
        is_known = isinstance(self.scheme, str) and re.fullmatch(form, self.scheme)
        expected = f"the letters {_TRIPLE} for documents and queries, such as 'lnc.ltc'"
        require(is_known, "scheme", self.scheme, expected)
        super()._check()
        check_number("log", self.log, least=1)
        require(self.log > 1, "log", self.log, "a base above 1")

    def _learn(self, counts: csr_array, df: Values) -> csr_array:
        def learnt(triple: str) -> _Smart:
            tf, idf, length = tuple(triple)
            weights = _idf(idf, counts.shape[0], df, unit)
            smart = _Smart(tf, weights, length, self.a, self.slope, unit)
            return replace(smart, pivot=_length(length, smart.unscaled(counts)).mean())

        self._name, unit = self.scheme, math.log(self.log)
        documents, self._queries = map(learnt, self.scheme.split("."))
        return documents(counts)

    def _weighed(self, counts: csr_array) -> csr_array:
        return self._queries(counts)


@explained
class BM25(_Ranker):
    """Ranks documents by BM25, as Lucene does.

    The score is the sum over the terms of the query, a repeated term counted each time, of ``log(1
    + (N - df + .5) / (df + .5)) * tf / (tf + k1 * (1 - b + b * length / mean length))``. The term
    occurs ``tf`` times in the document and in ``df`` of the ``N`` documents; a length is a number
    of terms. Scores have no factor ``k1 + 1``, which changes no ranking. They equal those of bm25s
    with ``method="lucene"``, computed here in float64.

    A word is a run of letters and digits with their marks; one letter is a word, and ``_`` parts
    two words. Case does not count: "Straße" and "STRASSE" are the term ``strasse``. There is no
    stemming, and all words count, unless ``stem`` and ``stop`` say else.

    Parameters
    ----------
    k1 : float, default=1.2
        How slowly the weight grows with tf; 0 or more.
    b : float, default=0.75
        How much a document's length counts, from 0 to 1.
    stem : str, optional
        A language of the Snowball stemmers, such as "english"; needs the extra ``text``.
    stop : str or collection of str, optional
        Stop words, or "english" for those of scikit-learn.

    Attributes
    ----------
    docid_, weights_, counter_
        As in `VectorSpace`.

    References
    ----------
    S. Robertson, H. Zaragoza: The probabilistic relevance framework, 2009, doi:10.1561/1500000019.
    C. Kamphuis, A. P. de Vries, L. Boytsov, J. Lin: Which BM25 do you mean?, ECIR 2020,
    doi:10.1007/978-3-030-45442-5_4.

    Examples
    --------
    >>> ranker = BM25(k1=1, b=0).fit({"d1": "red apple", "d2": "red red pear", "d3": "pear"})
    >>> ranker.search({"q": "red"}).score  # log(1.6) is 0.47; d2: 2/3, d1: 1/2 of it
    array([0.31333575, 0.23500181])
    """

    _name = "BM25"

    def __init__(
        self, k1: float = 1.2, b: float = 0.75, *, stem: str | None = None, stop: Stop = None
    ) -> None:
        self.k1 = k1
        self.b = b
        self.stem = stem
        self.stop = stop

    def _check(self) -> None:
        super()._check()
        check_number("k1", self.k1, least=0)

    def _learn(self, counts: csr_array, df: Values) -> csr_array:
        tf, length = counts.data, _sums(counts, counts.data)
        idf = np.log1p((counts.shape[0] - df + 0.5) / (df + 0.5))
        saturation = self.k1 * (1 - self.b + self.b * length / length.mean())
        return _with(idf[counts.indices] * tf / (tf + saturation[_rows(counts)]), counts)
