"""Pairs of documents in the right order, and preferences of several groups of judges.

A judgment group (a user, an assessor; given as the aspect of the judgments) prefers the document
with the higher grade. A ranking fulfils a preference if it ranks the preferred document higher. A
retrieved document counts as ranked above one that is not retrieved. Tied rows fulfil half of the
preferences among them, the mean over their orders. For one query, with documents d1 graded 2, d2
graded 0, d3 graded 1, of which d2 and d1 are retrieved in this order:

    prefers     d1 d2 d3            fulfilled   d1 d2 d3          place   d1 1   d2 0   d3 inf
         d1      .  T  T                   d1   .  0  1
         d2      .  .  .                   d2   1  .  1           row: the preferred document
         d3      .  T  .                   d3   0  0  .           3 possible, d1 over d3 fulfilled

If a group has sub-groups, only documents of one sub-group were compared. Preferences that follow
from several sub-groups (a above b in one, b above c in another) count as well, and contradictions
among them are an error.

The traps are trec_eval's. For preferences it breaks ties by ascending ids, for all other measures
by descending ones. It adds floats in an order that shows in the printed digits. Some of its counts
differ from their description; the parameter ``rule`` reproduces them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankeval._registry import chosen
from rankeval.errors import InvalidInput
from rankeval.join.aspects import AspectBlock
from rankeval.join.flat import Floats, Ints, ratio
from rankeval.join.judged import Judged
from rankeval.join.what_if import by_group
from rankeval.measures.cascade import ranks
from rankeval.measures.chances import hypergeometric
from rankeval.measures.family import FAMILIES, family
from rankeval.measures.graded import gains_of
from rankeval.measures.grammar import Positive, Spelling

_NAMES_OF_AUC = (
    "AUC", "ROC AUC", "AUC ROC", "AUROC", "AUC score", "ROC AUC score", "QueryAUC", "user AUC",
    "uAUC", "mean AUC", "RetrievalAUROC", "retrieval_auroc",
)  # fmt: skip


@family(
    "PairAccuracy",
    title="pairwise accuracy",
    formula="pairs (relevant, not relevant) of rows to k with the relevant one above / all such "
    "pairs",
    source="MacAvaney, Macdonald & Ounis 2022, ir_measures, which calls it Accuracy",
    doi="10.1007/978-3-030-99739-7_38",
    expected="kernel",
    counts="pairs",
    spellings={"ir_measures": ("Accuracy", "Accuracy@{cutoff}")},
    known_as={"the AUC of each query": _NAMES_OF_AUC},
)
def pair_accuracy(judged: Judged, *, rel: float = 1, cutoff: int | None = None) -> Floats:
    """Chance that a retrieved relevant row is above another row: the area under the ROC curve.

    In [0, 1], higher is better, 1/2 for a random order; 0/0 without a pair. Unjudged rows count as
    not relevant. Accuracy is another measure: the share of a collection's documents that are
    classified rightly.
    """
    # A tied pair is half in order. If the cut-off divides a group of tied rows, the number of the
    # group's relevant rows within it is random, and the mean is over that number.
    begin, prefix = judged.offsets[:-1], judged.prefix(rel)
    stop = begin + judged.depth(cutoff)
    divided = judged.groups.of(judged.groups.divided(stop))
    settled = stop.copy()
    settled[divided.query] = divided.start
    hits = (prefix[settled] - prefix[begin]).astype(np.float64)
    misses = settled - begin - hits

    relevant = judged.relevant(rel)
    above = (relevant.rank - relevant.hits).astype(np.float64)
    if len(judged.groups.start):
        start, end, query = judged.groups
        row, group = judged.tied_rows()
        before = start - begin[query] - (prefix[start] - prefix[begin[query]])
        inside = end - start - (prefix[end] - prefix[start])
        tied = judged.code[row] >= judged.threshold(rel)
        above[prefix[row[tied]]] = (before + inside / 2)[group[tied]]
    # Pairs of rows that are within the cut-off in every order; those of a divided group follow
    # below.
    counts = relevant.row < settled[relevant.query]
    of_query = relevant.query[counts]
    in_order = judged.sums(of_query, misses[of_query] - above[counts])
    value = ratio(in_order, hits * misses)
    # From here on: the mean over the number of relevant rows that a divided group has within the
    # cut-off.
    start, end, query = divided
    size, drawn = end - start, stop[query] - start
    marked = prefix[end].astype(np.int64) - prefix[start]
    total, defined = np.zeros(len(size)), np.zeros(len(size), dtype=bool)
    for number in range(int(min(drawn.max(initial=0), marked.max(initial=0))) + 1):
        can = (number <= np.minimum(drawn, marked)) & (drawn - number <= size - marked)
        of, wrong = query[can], (drawn - number)[can]
        chance = hypergeometric(size[can], marked[can], drawn[can], number)
        pairs = (hits[of] + number) * (misses[of] + wrong)
        good = in_order[of] + hits[of] * wrong + number * wrong / 2
        total[can] += chance * ratio(good, pairs, otherwise=0.0)
        defined[can] |= pairs > 0
    value[query] = np.where(defined, total, np.nan)
    return value


@family(
    "OPA",
    title="ordered pair accuracy",
    formula="pairs of rows of unlike grades with the better one above / all such pairs",
    source="Pasumarthi et al. 2019, TensorFlow Ranking",
    doi="10.1145/3292500.3330677",
    expected="kernel",
    counts="pairs",
    monotone="order",
)
def ordered_pair_accuracy(judged: Judged) -> Floats:
    """Share of the retrieved pairs of unlike grades that are in order.

    In [0, 1], higher is better; 0/0 without such a pair.
    """
    # A tied pair is half in order.
    begin = judged.offsets[:-1]
    query = np.repeat(np.arange(judged.n_queries), judged.n_retrieved)
    zero = judged.threshold(0)
    in_order, pairs = np.zeros(judged.n_queries), np.zeros(judged.n_queries)
    row, group = judged.tied_rows()
    for code in range(zero, len(judged.levels) - 1):
        prefix = judged.prefix(judged.levels[code + 1])
        lower = judged.code <= code if code == zero else judged.code == code
        above = (prefix[:-1] - prefix[begin[query]]).astype(np.float64)
        if len(row):
            start, end, of_query = judged.groups
            mean = prefix[start] - prefix[begin[of_query]] + (prefix[end] - prefix[start]) / 2
            above[row] = mean[group]
        in_order += judged.sums(query[lower], above[lower])
        n_better = (prefix[judged.offsets[1:]] - prefix[begin]).astype(np.float64)
        pairs += np.bincount(query[lower], minlength=judged.n_queries) * n_better
    return ratio(in_order, pairs)


@family(
    "ARP",
    title="average relevance position",
    formula="sum of rank * rel / sum of rel, over the retrieved",
    source="Zhu 2004; Pasumarthi et al. 2019, TensorFlow Ranking",
    doi="10.1145/3292500.3330677",
    bounds=(0.0, np.inf),
    linear=True,
    monotone="order",
    greater_is_better=False,
)
def average_relevance_position(judged: Judged) -> Floats:
    """Mean rank of the relevant rows, weighted by grade.

    1 or greater, lower is better; 0/0 if nothing relevant was retrieved. Beware: counted as 0, that
    is the best value.
    """
    gain = gains_of(judged, "linear")
    rank = ranks(judged, None)
    weight = judged.discounted(gain, np.ones_like(rank))
    return ratio(judged.discounted(gain, rank), weight)


AVERAGES = ("preference", "pair", "group")
"""Units of equal weight: every preference, every pair of documents, every group."""

COUNTS = ("all", "retrieved", "implied")
"""Pairs that count: all, those with both documents retrieved, those with at least one retrieved."""


class Preferences(NamedTuple):
    """The preferences of one query."""

    # (n_groups, n_documents, n_documents): Whether a group prefers the document of the row to that
    # of the column.
    prefers: NDArray[np.bool_]
    # (n_documents, n_documents): 1 if the document of the row is ranked above that of the column,
    # 1/2 if they are tied, else 0.
    fulfilled: Floats
    retrieved: NDArray[np.bool_]  # (n_documents,): Whether the document is retrieved
    # (n_documents, n_groups): The grades: the greatest over sub-groups, nan if the group did not
    # grade the document.
    grade: Floats
    place: Floats  # (n_documents,): Places in the ranking, infinite if not retrieved
    # (n_groups,): Whether a group has sub-groups, and so may not have compared all its documents.
    partial: NDArray[np.bool_]

    def pairs(self, count: str) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return the pairs that may be fulfilled, and the pairs that count as possible."""
        both = self.retrieved[:, None] & self.retrieved
        some = self.retrieved[:, None] | self.retrieved
        every = np.ones_like(both)
        return {"all": (some, every), "retrieved": (both, both), "implied": (some, some)}[count]


def _preferences(judged: Judged) -> Iterator[Preferences]:
    place = np.arange(len(judged.code), dtype=np.float64)
    for start, end in zip(judged.ties.start.tolist(), judged.ties.end.tolist(), strict=True):
        place[start:end] = start
    grades = _grades_of_groups if judged.aspects is not None else _grades_of_one
    for query in range(judged.n_queries):
        grade, at = grades(judged, query, place)
        # A comparison with nan is False: a group has no preference about documents that it did not
        # grade.
        with np.errstate(invalid="ignore"):
            prefers = grade.T[:, :, None] > grade.T[:, None, :]
        if judged.aspects is not None and judged.aspects.table.group is not None and len(prefers):
            grade, prefers, partial = _by_group_of_judges(judged.aspects, query, grade, prefers)
        else:
            partial = np.zeros(len(prefers), dtype=bool)
        fulfilled = (at[:, None] < at) + 0.5 * ((at[:, None] == at) & np.isfinite(at))
        yield Preferences(prefers, fulfilled, np.isfinite(at), grade, at, partial)


def _grades_of_one(judged: Judged, query: int, place: Floats) -> tuple[Floats, Floats]:
    """Return grades (n_documents, 1) and places of a query's judged documents, by one group."""
    rows = np.arange(judged.offsets[query], judged.offsets[query + 1])
    if judged.judged is not None:
        rows = rows[judged.judged[rows]]
    # Documents that are not retrieved have no row: their grades come from the counts of labels.
    left = judged.counts[query] - np.bincount(judged.code[rows], minlength=len(judged.levels))
    missed = np.repeat(np.arange(len(left)), np.maximum(left, 0))
    code = np.concatenate((judged.code[rows], missed))
    at = np.concatenate((place[rows], np.full(len(missed), np.inf)))
    return np.asarray(judged.levels, dtype=np.float64)[code][:, None], at


def _documents(block: AspectBlock, query: int) -> Ints:
    documents = block.known[block.known_query == query]
    ordered: Ints = documents[np.argsort(block.table.byte_rank[documents], kind="stable")]
    return ordered


def _grades_of_groups(judged: Judged, query: int, place: Floats) -> tuple[Floats, Floats]:
    """Return grades (n_documents, n_groups; nan if none) and places of judged documents."""
    block = judged.aspects
    assert block is not None
    documents = _documents(block, query)
    of, entries = block.table.entries(documents)
    groups, group = np.unique(entries.aspect, return_inverse=True)
    grade = np.full((len(documents), len(groups)), np.nan)
    grade[of, group] = entries.grade
    rows = np.arange(judged.offsets[query], judged.offsets[query + 1])
    rows = rows[block.document[rows] >= 0]
    at = np.full(len(documents), np.inf)
    order = np.argsort(documents)
    at[order[np.searchsorted(documents, block.document[rows], sorter=order)]] = place[rows]
    return grade, at


def _by_group_of_judges(
    block: AspectBlock, query: int, grade: Floats, prefers: NDArray[np.bool_]
) -> tuple[Floats, NDArray[np.bool_], NDArray[np.bool_]]:
    """Return grades and preferences of groups from sub-groups, and which groups have several."""
    documents = _documents(block, query)
    subgroups = np.unique(block.table.entries(documents)[1].aspect)
    assert block.table.group is not None
    _, group = np.unique(block.table.group[subgroups], return_inverse=True)
    grades, preferred = [], []
    for number in range(int(group.max(initial=-1)) + 1):
        its = group == number
        grades.append(np.fmax.reduce(grade[:, its], axis=1))
        known = prefers[its].any(axis=0)
        if its.sum() > 1:
            # Warshall's algorithm: add the preferences that follow by way of each document in turn.
            for through in range(len(documents)):
                known |= known[:, through, None] & known[through]
        if known.diagonal().any():
            names = sorted(str(block.table.docid[int(at)]) for at in documents[known.diagonal()])
            raise InvalidInput(
                "the sub-groups of one group of judges contradict each other: "
                f"{', '.join(names[:5])} would be preferred to themselves; put judgments that "
                "disagree into separate groups"
            )
        preferred.append(known)
    return np.stack(grades, axis=1), np.stack(preferred), np.bincount(group) > 1


def _count(judged: Judged, *, fulfilled: bool, count: str) -> Floats:
    value = np.zeros(judged.n_queries)
    for query, preferences in enumerate(_preferences(judged)):
        may, possible = preferences.pairs(count)
        times = preferences.prefers.sum(axis=0)
        counted = (times * preferences.fulfilled)[may] if fulfilled else times[possible]
        value[query] = counted.sum()
    return value


_of_groups = partial(
    family,
    needs="groups",
    counts="pairs",
    source="Buckley, trec_eval",
    expected="kernel",
    ascending=True,
)
"""`family` for preferences fulfilled: half of those in ties count; ids ascend as in trec_eval."""


@family(
    "NumPrefs",
    title="number of preferences",
    formula="pairs of documents in which one is graded above the other, added up over groups of "
    "judgments",
    needs="groups",
    counts="pairs",
    source="Buckley, trec_eval",
    aggregate="sum",
    bounds=(0.0, np.inf),
    linear=True,
    spellings={"trec_eval": ("prefs_num_prefs_poss",)},
)
def num_prefs(judged: Judged) -> Floats:
    """Count of preferences, added up over queries."""
    return _count(judged, fulfilled=False, count="all")


@_of_groups(
    "NumPrefsFul",
    title="number of preferences fulfilled",
    formula="preferences whose preferred document is ranked above the other",
    aggregate="sum",
    bounds=(0.0, np.inf),
    spellings={
        "trec_eval": (
            "prefs_num_prefs_ful",
            Spelling("prefs_num_prefs_ful_ret", {"count": "retrieved"}),
        ),
    },
)
def num_prefs_fulfilled(judged: Judged, *, count: str = "all") -> Floats:
    """Count of preferences that the ranking fulfils, added up; ``count`` as of Prefs."""
    return _count(judged, fulfilled=True, count=chosen("count of preferences", count, COUNTS))


def _by_pair(preferences: Preferences, fulfilled: Floats, possible: NDArray[np.int64]) -> float:
    """Return the mean, over pairs of documents, of the share of their preferences fulfilled.

    Shares are added one after the other in trec_eval's order, or the last printed digit may differ:
    first the pairs of retrieved documents in rank order, then each retrieved document with those
    that are not retrieved.
    """
    both = possible + possible.T
    order = np.argsort(preferences.place, kind="stable")
    share = (fulfilled + fulfilled.T) / np.maximum(both, 1)
    share = np.triu(share[np.ix_(order, order)])
    n_retrieved = int(preferences.retrieved.sum())
    retrieved, missed = share[:n_retrieved, :n_retrieved], share[:n_retrieved, n_retrieved:]
    shares = np.concatenate((retrieved.ravel(), missed.ravel(), [0]))
    return float(np.add.accumulate(shares)[-1] / np.triu(both > 0).sum())


def _spellings() -> tuple[Spelling, ...]:
    names = {"simp": "preference", "pair": "pair", "avgjg": "group"}
    ends = {"": "all", "_ret": "retrieved", "_imp": "implied"}
    return tuple(
        Spelling(f"prefs_{name}{end}", {"average": average, "count": count})
        for end, count in ends.items()
        for name, average in names.items()
    )


@_of_groups(
    "Prefs",
    title="share of preferences fulfilled",
    formula="fulfilled / possible; or its mean over pairs of documents, or over groups of "
    "judgments",
    source="Buckley, trec_eval; Carterette, Bennett, Chickering & Dumais 2008",
    doi="10.1007/978-3-540-78646-7_5",
    spellings={"trec_eval": _spellings()},
)
def prefs(judged: Judged, *, average: str = "preference", count: str = "all") -> Floats:
    """Share of the preferences between judged documents that the ranking fulfils.

    In [0, 1], higher is better; 0/0 without preferences. ``average`` is the unit of equal weight:
    "preference", "pair" (of documents) or "group" (of judgments). ``count`` selects pairs: "all",
    those with both documents "retrieved", or those with at least one retrieved ("implied").
    """
    chosen("average of preferences", average, AVERAGES)
    chosen("count of preferences", count, COUNTS)
    value = np.full(judged.n_queries, np.nan)
    for query, preferences in enumerate(_preferences(judged)):
        if preferences.prefers.any():
            value[query] = _share_fulfilled(preferences, average, count)
    return value


def _share_fulfilled(preferences: Preferences, average: str, count: str) -> float:
    may, counts = preferences.pairs(count)
    prefers = preferences.prefers
    if average == "group":
        fulfilled = (prefers * preferences.fulfilled * may).sum(axis=(1, 2))
        possible = (prefers & counts).sum(axis=(1, 2))
        shares = fulfilled / np.maximum(possible, 1)
        return float(np.add.accumulate(shares)[-1] / len(shares)) if possible.any() else np.nan
    times = prefers.sum(axis=0)
    fulfilled, possible = times * preferences.fulfilled * may, times * counts
    if not possible.any():
        return np.nan
    if average == "pair":
        return _by_pair(preferences, fulfilled, possible)
    return float(fulfilled.sum() / possible.sum())


RULES = ("exact", "trec_eval")
"""How PrefsR treats documents that are not relevant; see `prefs_balanced`."""


def _balanced(preferences: Preferences, group: int, count: str, rule: str) -> float:
    """Return the share of one group's preferences that are fulfilled, nan without any.

    Only the first R documents of grade 0 (the "others") count, R being the number of relevant
    documents. If the R-th of them is among u tied others, k of which count, each of the u counts
    with chance k/u. A relevant document in the same tie is then ranked above a counted one with
    chance (k + 1) / (2 (u + 1)) in the mean over orders.
    """
    prefers, grade = preferences.prefers[group], preferences.grade[:, group]
    at, retrieved, partial = preferences.place, preferences.retrieved, preferences.partial[group]
    counted = retrieved if count == "retrieved" else np.ones(len(at), dtype=bool)
    relevant, others = (grade > 0) & counted, (grade == 0) & counted
    may, counts = preferences.pairs(count)
    n_relevant, n_others = int(relevant.sum()), int(others.sum())
    if n_relevant >= n_others:
        more = n_relevant - n_others
        whole = (grade > 0).sum() if rule == "trec_eval" else n_relevant
        total = (prefers * preferences.fulfilled * may).sum() + (relevant & retrieved).sum() * more
        possible = (prefers & counts).sum() + whole * more
        return float(total / possible) if possible else np.nan
    if rule == "trec_eval" and partial:
        # trec_eval takes R over all documents even if only retrieved ones count.
        n_relevant = int((grade > 0).sum())
    first = np.flatnonzero(others)[np.argsort(at[others], kind="stable")][:n_relevant]
    keep = (grade > 0).astype(np.float64)
    keep[first] = 1
    fulfilled = preferences.fulfilled
    if len(first) and np.isfinite(at[first[-1]]):
        in_tie = at == at[first[-1]]
        tied = others & in_tie
        n_tied, n_kept = int(tied.sum()), int(keep[tied].sum())
        if n_kept < n_tied:
            if partial:
                raise InvalidInput(
                    "PrefsR over sub-groups has no mean over the orders of tied rows if these "
                    "decide which documents count",
                    argument="ties",
                    remedy="choose ties='docid'",
                )
            keep[tied] = n_kept / n_tied
            fulfilled = fulfilled.copy()
            fulfilled[np.ix_(in_tie & ~others, tied)] = (n_kept + 1) / (2 * (n_tied + 1))
    pairs = prefers * keep[:, None] * keep
    total, possible = (pairs * fulfilled * may).sum(), (pairs * counts).sum()
    if rule == "trec_eval" and not partial:
        total += np.minimum(np.arange(len(first)), (others & retrieved).sum()).sum()
        possible += (others[:, None] * keep * others * counts).sum()
    return float(total / possible) if possible else np.nan


@_of_groups(
    "PrefsR",
    title="share of preferences fulfilled, with R others",
    formula="as Prefs by group, with the first R documents of grade 0; missing ones count as "
    "ranked below all others",
    spellings={
        "trec_eval": (
            Spelling("prefs_avgjg_Rnonrel", {"rule": "trec_eval"}),
            Spelling("prefs_avgjg_Rnonrel_ret", {"count": "retrieved", "rule": "trec_eval"}),
        ),
    },
)
def prefs_balanced(judged: Judged, *, count: str = "all", rule: str = "exact") -> Floats:
    """Share of preferences fulfilled, with as many other documents as relevant ones.

    In [0, 1], whatever the depth of the pool, higher is better; 0/0 without judgments. ``count`` is
    "all" or "retrieved".
    ``rule="trec_eval"`` also counts pairs of documents that are not relevant, as the program does
    against its description.
    """
    chosen("count of PrefsR", count, COUNTS[:2])
    chosen("rule of PrefsR", rule, RULES)
    value = np.full(judged.n_queries, np.nan)
    for query, preferences in enumerate(_preferences(judged)):
        groups = range(len(preferences.prefers))
        shares = np.array([_balanced(preferences, group, count, rule) for group in groups])
        # trec_eval adds up the 0/0 of a group, too, and prints 0 for a topic whose sum is not above
        # 0.
        known = ~np.isnan(shares)
        if len(shares) and (known.all() if rule == "trec_eval" else known.any()):
            value[query] = np.nansum(shares) / len(shares)
    return value


_GROUPS_OF_TREC_EVAL = (
    Spelling("map_avgjg", {"of": "AP"}),
    Spelling("P_avgjg_{cutoff}", {"of": "P"}),
    Spelling("Rprec_mult_avgjg_{multiple}", {"of": "RprecMult"}),
)


@family(
    "AvgJG",
    title="mean of a measure over groups of judgments",
    formula="mean over the groups that judged the query, 0 for a group in which the measure is 0/0",
    needs="groups",
    source="Buckley, trec_eval",
    bounds=(-np.inf, np.inf),
    expected="kernel",
    exact_to="the limit of the measure `of`",
    spellings={"trec_eval": _GROUPS_OF_TREC_EVAL},
)
def average_over_groups(
    judged: Judged,
    *,
    of: str,
    rel: float = 1,
    multiple: Positive | None = None,
    cutoff: int | None = None,
) -> Floats:
    """Mean of the measure ``of`` over judgment groups, each with its own grades.

    Bounds as of that measure; 0/0 if the measure is in all groups. Judgments without groups count
    as one group.
    """
    optional = {"multiple": multiple, "cutoff": cutoff}
    parameters = {name: value for name, value in optional.items() if value is not None}
    measure = FAMILIES[chosen("measure", of, FAMILIES)].with_parameters(**parameters, rel=rel)
    if judged.aspects is None:
        return measure.values(judged)
    parts = by_group(judged)
    query = parts.query
    # The parts are cached, and another measure may have left standard errors there.
    parts.judged.drawn.clear()
    values = measure.values(parts.judged)
    groups = np.bincount(query, minlength=judged.n_queries)
    for part, error in parts.judged.drawn.items():
        its = int(query[part])  # groups are drawn independently: the squares of their errors add up
        judged.drawn[its] = float(np.hypot(judged.drawn.get(its, 0.0), error / groups[its]))
    has_value = judged.sums(query, 1.0 - np.isnan(values)) > 0
    return ratio(judged.sums(query, np.nan_to_num(values)), np.where(has_value, groups, 0))
