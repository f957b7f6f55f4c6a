"""Rankers by words: from texts to the 1,000 best documents of each query, against peers in one run.

    python tests/benchmarks/bench_text.py [small] [large] [--repeats 3]

small: 1,400 documents and 225 queries. large: 100,000 documents and 100 queries. A document has 100 words of a
vocabulary by Zipf's law, a query has 10; fixed seed. Each contestant counts, weighs and searches. Promised: small
under 2 s; large under 60 s and 2 GB. Peers: bm25s with its own tokeniser, and scikit-learn's TfidfVectorizer with a
sparse product and `numpy.argpartition`; it breaks ties in no order.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import contest
import numpy as np

SIZES = {"small": (1_400, 225), "large": (100_000, 100)}
N_WORDS, K = 200_000, 1000
Texts = dict[str, str]


def texts(n_documents: int, n_queries: int) -> tuple[Texts, Texts]:
    """Return documents and queries of made-up words."""
    rng = np.random.default_rng(20261126)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    words = np.array(["".join(rng.choice(letters, size)) for size in rng.integers(3, 10, N_WORDS)])
    share = 1 / np.arange(1, N_WORDS + 1)

    def drawn(n: int, size: int, prefix: str) -> Texts:
        places = rng.choice(N_WORDS, (n, size), p=share / share.sum())
        return {f"{prefix}{number}": " ".join(words[row]) for number, row in enumerate(places)}

    return drawn(n_documents, 100, "d"), drawn(n_queries, 10, "q")


def bm25(docs: Texts, queries: Texts) -> Callable[[], object]:
    from rankeval.text import BM25

    return lambda: BM25().fit(docs).search(queries, k=K)


def lnu_ltc(docs: Texts, queries: Texts) -> Callable[[], object]:
    from rankeval.text import VectorSpace

    return lambda: VectorSpace("Lnu.ltc").fit(docs).search(queries, k=K)


def bm25s(docs: Texts, queries: Texts) -> Callable[[], object]:
    import bm25s as peer

    def search():
        index = peer.BM25(k1=1.2, b=0.75)
        index.index(peer.tokenize(list(docs.values()), stopwords=None, show_progress=False), show_progress=False)
        asked = peer.tokenize(list(queries.values()), stopwords=None, show_progress=False)
        return index.retrieve(asked, k=K, show_progress=False)

    return search


def tfidf(docs: Texts, queries: Texts) -> Callable[[], object]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    def search():
        counter = TfidfVectorizer()
        weights = counter.fit_transform(docs.values()).T.tocsr()
        scores = (counter.transform(queries.values()) @ weights).toarray()
        best = np.argpartition(-scores, K - 1, axis=1)[:, :K]
        order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1)
        return np.take_along_axis(best, order, axis=1)

    return search


CONTESTANTS = {"bm25": bm25, "lnu_ltc": lnu_ltc, "bm25s": bm25s, "tfidf": tfidf}


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("cases", nargs="*", default=list(SIZES))
    arguments.add_argument("--repeats", type=int, default=3)
    arguments.add_argument("--child")
    given = arguments.parse_args()
    for case in given.cases:
        if given.child:
            contest.take_part(CONTESTANTS[given.child](*texts(*SIZES[case])), given.repeats)
        else:
            n_documents, n_queries = SIZES[case]
            title = f"{case}: {n_documents:,} documents, {n_queries} queries"
            contest.hold(__file__, list(CONTESTANTS), [case, "--repeats", str(given.repeats)], title)


if __name__ == "__main__":
    main()
