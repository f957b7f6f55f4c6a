"""Corrected scores of sampled lists: what a ranking of all items would score.

Recommenders are often evaluated on short lists: the relevant item of a user and, say, 99 others,
drawn at random. The relevant item then has a better rank than among all items, and the measures are
others: nDCG@10 of 100 items counts the first tenth, nDCG@10 of 10,000 the first thousandth. Systems
that differ at the top look alike, and their order may turn.

How the rank among all n items and the rank in the list go together is known::

    rank r of n       the r - 1 items before it are in the list by chance
    rank s in a list  s - 1 of m sampled ones: hypergeometric, n - 1 items, r - 1 before, m drawn

So a score can be given to each rank in the list whose mean over lists is close to the measure of
the rank r. The trap: it exists only nearly. A small bias needs scores that vary a lot, and far
beyond [0, 1]; ``gamma`` is the price of variance.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from rankeval._arguments import explained
from rankeval._checks import refuse, require
from rankeval.collection.convention import Convention
from rankeval.evaluation import Evaluation, Given
from rankeval.evaluation import score as score_joined
from rankeval.measures import Measure
from rankeval.measures import measure as parse_measure
from rankeval.significance.declarations import Floats

_BLOCK = 2**14
"""Ranks looked at together: their probabilities take 13 MB for 100 sampled items."""


@explained
def corrected_for_sampling(
    evaluation: Evaluation, measure: str | Measure, *, gamma: float = 0.1
) -> pd.DataFrame:
    """Estimate a measure of a ranking of all items from lists with sampled ones.

    Each score is one that has, in the mean over samples, little distance from the measure of the
    item's rank among all items, and little variance: the corrected metric with the bias-variance
    trade-off of Krichene and Rendle. Single scores may be below 0 or above 1; only means over many
    queries say something, and a part of the bias stays.

    Parameters
    ----------
    evaluation : Evaluation
        An evaluation by ``RR``, and perhaps other measures, with ``n_items=`` and ``n_sampled=``.
        Each list must have one relevant item, and its score must not be tied, unless the evaluation
        ordered ties by ``ties="docid"``.
    measure : str or Measure
        The measure to estimate, with a cut-off of at most 1,000, such as ``nDCG@10``.
    gamma : float, default 0.1
        The weight of the variance, above 0 and up to 1. With a lower one, means vary more between
        samples, and the squared bias is less on average over all ranks. The bias at the ranks of
        your items may still grow, and no standard error contains it.

    Returns
    -------
    DataFrame of shape (n_queries, 1)
        Index ``qid``, the column named as the measure: `rankeval.compare` takes it as a system.

    Raises
    ------
    InvalidInput
        If the evaluation does not know its sample, RR is not among its measures, a list has another
        number of items than ``n_sampled`` + 1 or relevant items than one, the relevant item is tied
        with others, the measure has no cut-off, or gamma is out of its range.

    Notes
    -----
    With p(s | r) the hypergeometric probability of rank s in the list, all ranks r = 1 ... n being
    equally likely, A = (p(s | r) / sqrt(n)), b = (M(r) / sqrt(n)) and c the mean of p(s | r) over
    r, the scores of s = 1 ... m + 1 are ``((1 - gamma) A'A + gamma diag(c))^-1 A'b``. They minimise
    the mean over r of (1 - gamma) bias^2 + gamma variance, up to a constant.

    References
    ----------
    Krichene and Rendle (2020), On Sampled Metrics for Item Recommendation, KDD,
    doi:10.1145/3394486.3403226.

    Examples
    --------
    >>> import rankeval as rk
    >>> label, score, user = [1, 0, 0, 1], [0.9, 0.2, 0.3, 0.1], ["ann", "ann", "bob", "bob"]
    >>> ev = rk.evaluate(label, score, qid=user, measures="RR", n_items=4, n_sampled=1)
    >>> rk.analysis.corrected_for_sampling(ev, "R@1")["R@1"].round(2).to_dict()
    {'ann': 0.67, 'bob': -0.17}
    """
    target = parse_measure(measure)
    sample = evaluation.facts.signs.get("sampled")
    require(0 < gamma <= 1, "gamma", gamma, "a number above 0 and up to 1")
    require(target.cutoff and target.cutoff <= 1000, "measure", measure, "a cut-off of 1 to 1,000")
    unknown = "how lists were sampled is not known"
    no_rank = "the ranks of relevant items follow from RR, and it is not among the measures"
    refuse(
        (sample is None, unknown, "give n_items= and n_sampled= to rk.evaluate"),
        ("RR" not in evaluation.measure_names, no_rank, "evaluate by RR too, with ties='docid'"),
    )
    m, n = map(int, sample or ())
    facts, reciprocal = evaluation.facts, evaluation.per_query["RR"].to_numpy()
    counts = facts.query_counts
    is_whole = (counts["retrieved"] == m + 1) & (reciprocal > 0)
    others = np.count_nonzero(~is_whole | (counts["relevant"] != 1) | (facts.greatest != 1))
    expected = f"a list has one relevant item, of label 1, and {m} sampled ones"
    refuse((others, f"{expected}, and {others} are other lists", "the correction knows no others"))
    rank = 1 / reciprocal
    place = np.rint(rank).astype(np.int64)
    tied = "the relevant item of a list is tied with others, and has no rank"
    refuse(
        (np.abs(rank - place).max(initial=0) > 1e-6, tied, "evaluate with ties='docid'"),
    )
    scores = _scores_of_places(_by_rank(target, n, evaluation.convention), m, gamma)
    return pd.DataFrame({str(measure): scores[place - 1]}, index=evaluation.per_query.index)


def _by_rank(measure: Measure, n: int, rules: Convention) -> Floats:
    """Return the measure of a list with one relevant item at each rank, 0 beyond the cut-off."""
    k = min(measure.cutoff or 1, n)
    lists = Given(np.eye(k).ravel(), np.tile(-np.arange(k), k), np.repeat(np.arange(k), k))
    of_rank = score_joined(lists.join(rules), [(str(measure), measure)])
    return np.append(of_rank.scores[:, 0], np.zeros(n - k))


def _scores_of_places(by_rank: Floats, m: int, gamma: float) -> Floats:
    n, places = len(by_rank), np.arange(m + 1)
    squares, weighted, chance = np.zeros((m + 1, m + 1)), np.zeros(m + 1), np.zeros(m + 1)
    for start in range(0, n, _BLOCK):
        before = np.arange(start, min(start + _BLOCK, n))[:, None]
        p = np.asarray(stats.hypergeom.pmf(places, n - 1, before, m))
        squares += p.T @ p
        weighted += by_rank[before[:, 0]] @ p
        chance += p.sum(axis=0)
    system = (1 - gamma) * squares + gamma * np.diag(chance)
    return np.asarray(np.linalg.solve(system, weighted))
