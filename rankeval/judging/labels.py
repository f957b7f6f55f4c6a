"""The labels of several judges as codes, and one grade of each document from them.

::

    item    0  0  1  2  2        items are sorted by query and document, labels by item and judge
    judge   0  1  0  0  1        codes of `judges`, in the order in which they are first named
    grade   1  1  0  2  1        codes of `grades`, the distinct grades in ascending order

An item is a document of a query, and a label is a judge's grade of it. An item that a judge left
out has no row of that judge, so missing labels need no mark; a crowd of hundreds of judges would
need many.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import compress
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import pdist

from rankeval._arguments import explained
from rankeval._checks import count, few, refuse
from rankeval._registry import chosen
from rankeval._visible import escaping
from rankeval.collection.qrels import Qrels, as_qrels
from rankeval.comparison.tables import WithTable
from rankeval.errors import InvalidInput, warn
from rankeval.io.frames import JUDGES
from rankeval.render.tables import Table

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
NO_JUDGE = (
    "the judgments name no judge",
    'give the judge as aspect=, or a mapping: {"ann": qrels, "llm": qrels}',
)
Method = Literal["majority", "dawid_skene"]
NOT_JUDGED = -1
"""A pooled document without a judgment, as trec_eval and infAP read it; here it is not a label."""

MOST_ROUNDS = 500
SMOOTHING = 0.1
"""Labels added to each cell, so that nothing is impossible; a whole one drowns few labels."""

STEADY = 1e-6
"""The estimate ends if no probability changes by more."""

WEAK = 0.4
"""Judges are weak if half of the labels are by judges this far, or less, from chance to perfect."""

MOST_SHOWN = 20
APART, ALIKE = 3, 0.05
"""Judges of a group share errors if another one differs from it as if it erred more than so many times as often as each
of them: by a test at this level over all groups."""
ALIKE_NOTE = (
    "{names} agree on {alone} of {of_all}, and with the rest on {beside}: they {why}. If they are of one family, as "
    "prompts of one model are, they are one judge: make a consensus of these first, and let it be one of the judges"
)


def _by_judge(judgments: Any) -> Qrels:
    return Qrels.from_any(judgments, columns={"aspect": JUDGES})


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of several judges; the module's essay draws the layout."""

    judges: tuple[Any, ...]
    grades: NDArray[Any]
    items: pd.DataFrame  # Columns qid and docid, a row per item
    item: Ints
    judge: Ints
    grade: Ints

    @classmethod
    def of(cls, judgments: Any) -> Labels:
        """Return the labels of judgments with judges as aspects, or of judge -> judgments."""
        by_judge = judgments if isinstance(judgments, Mapping) else {}
        parts = [as_qrels(own).to_frame().assign(aspect=judge) for judge, own in by_judge.items()]
        frame = pd.concat(parts, ignore_index=True) if parts else _by_judge(judgments).to_frame()
        frame = frame[frame["relevance"] != NOT_JUDGED]
        refuse(
            (frame.empty, "there is no label"),
            ("aspect" not in frame, *NO_JUDGE),
            argument="judgments",
        )
        labelled = ["qid", "docid", "aspect"]
        mixed = [name for name in labelled if len(set(map(type, frame[name]))) > 1]
        names = " and ".join(mixed)
        problem = f"{names}: texts and numbers are mixed, and 1 is not '1'"
        refuse((mixed, problem), argument="judgments")
        if frame.duplicated(labelled).any():
            raise _twice(frame, labelled)
        codes, judges = pd.factorize(frame["aspect"])
        frame = frame.assign(judge=codes).sort_values(["qid", "docid", "judge"], ignore_index=True)
        is_first = ~frame.duplicated(["qid", "docid"])
        items = frame.loc[is_first, ["qid", "docid"]].reset_index(drop=True)
        grades, grade = np.unique(frame["relevance"], return_inverse=True)
        return cls(
            tuple(judges),
            grades,
            items,
            is_first.to_numpy().cumsum() - 1,
            frame["judge"].to_numpy(),
            grade,
        )

    def counts(self) -> Ints:
        """Return how many judges gave each grade to each item, of shape (n_items, n_grades)."""
        n_items, n_grades = len(self.items), len(self.grades)
        cells = np.bincount(self.item * n_grades + self.grade, minlength=n_items * n_grades)
        return cells.reshape(n_items, n_grades)

    def table(self) -> pd.DataFrame:
        """Return the grade of each item (row) by each judge (column); nan without a label."""
        grades = np.full((len(self.items), len(self.judges)), np.nan)
        grades[self.item, self.judge] = self.grades[self.grade]
        return pd.DataFrame(grades, pd.MultiIndex.from_frame(self.items), self.judges)


def _twice(frame: pd.DataFrame, labelled: list[str]) -> InvalidInput:
    """Return the error on the first document that a judge labels twice."""
    row = frame.loc[frame.duplicated(labelled), labelled].iloc[0]
    grades = frame.loc[(frame[labelled] == row).all(axis=1), "relevance"].unique()
    remedy = "keep one label"
    if len(grades) > 1:
        remedy = f"the labels are {few(grades.tolist())}: find out which is right"
    query, document, judge = row.tolist()
    problem = f"judge {judge!r} labels document {document!r} of query {query!r} twice"
    return InvalidInput(problem, argument="judgments", remedy=remedy)


@explained
@escaping
@dataclass(frozen=True, eq=False, repr=False)
class Consensus(WithTable):
    """One grade of each document, by both methods, and the judges behind it.

    Attributes
    ----------
    qrels : Qrels
        The grades by ``method``, without judges.
    table : DataFrame
        A row for each document: qid, docid, n_labels, majority, tied (several grades have most
        labels), dawid_skene, and probability, the estimated chance that the grade of dawid_skene is
        true.
    judges : DataFrame
        A row for each judge, those with most labels first: judge; n_labels; accuracy, the share of
        the labels that equal the consensus, which they helped to make; estimated_accuracy, the mean
        chance by dawid_skene that a label is true, if judges err independently. Both measure
        agreement, not truth: judges who share errors are called right, and a better judge who
        differs from them wrong.
    method : str
        "majority" or "dawid_skene".
    notes : tuple of str
        Sentences that a reader of the grades must see.
    """

    qrels: Qrels
    table: pd.DataFrame
    judges: pd.DataFrame
    method: str
    notes: tuple[str, ...] = ()

    @property
    def differ(self) -> pd.DataFrame:
        """The rows of ``table`` where the methods differ, the surest grade of dawid_skene first."""
        rows = self.table[self.table["majority"] != self.table["dawid_skene"]]
        return rows.sort_values("probability", ascending=False, kind="stable", ignore_index=True)

    def _laid_out(self) -> Table:
        of, on = count(len(self.judges), "judge"), count(len(self.table), "document")
        cut = f"; the {MOST_SHOWN} judges with most labels" if len(self.judges) > MOST_SHOWN else ""
        shown = self.judges.head(MOST_SHOWN).rename(columns=lambda name: name.replace("_", " "))
        caption = f"Consensus of {of} on {on}, {self.method}{cut}"
        return Table(shown, caption=caption, notes=self.notes)


@explained
def consensus(judgments: Any, *, method: Method = "majority") -> Consensus:
    """Make one grade of the labels that several judges gave to a document.

    Parameters
    ----------
    judgments : Qrels with judges as aspects, frame or path of such, or mapping of judge to judgments
        All labels.
    method : {"majority", "dawid_skene"}, default "majority"
        Majority: the grade with most labels; if there are several, the lowest, so that a document
        does not get a higher grade than most judges gave. Ties are counted in a note and marked in
        ``table``. Dawid and Skene: each judge has own chances to give each label to a document of
        each true grade; the grades and these chances are estimated together.

    Returns
    -------
    Consensus
        The grades by the method, with those of both side by side.

    Raises
    ------
    InvalidInput
        If no judge is named, or a judge labels a document twice.
    UnknownName
        If there is no such method.

    Warns
    -----
    RankevalWarning
        If the method is "dawid_skene" and the judges are weak: then its grades are often worse than
        the majority.

    Notes
    -----
    Judges must err independently. Two prompts of one model share errors, outvote a better judge, and are then estimated
    to be right. A note names such judges, of at most 20, by the documents that all judges labelled. For each group of
    an average linkage by disagreement, let ``a`` be the documents on which its m judges differ, and
    ``c`` those on which they agree and another judge differs. If no judge errs more than 3 times as
    often as another, ``a`` is binomial of ``a + c`` with a chance of m / (m + 3) or more: the note
    appears if a p-value is below .05 / (number of judges // 2) for each other judge. With two or
    more others, it appears only if the group agrees significantly more than the quality of its
    judges explains (the tetrads of the covariances), so that the better judges are not the ones
    that are named. With three judges, labels cannot distinguish two who share errors from two who
    are far better than the third. Documents are taken as independent. In 2,000 simulations each,
    with three to six judges of equal and unequal quality who err independently, somebody was named
    in 3.8 % at most.

    The estimate is the EM algorithm of Dawid and Skene (1979, doi:10.2307/2346806). It starts with
    the shares of the labels, adds a tenth of a label to each cell of a judge's table and to each
    grade's total, and takes grades as unordered. It finds judges who answer at random or the wrong
    way round if most others are good: with 20 % of judges wrong four times out of five, and the
    others right four times out of five, five labels a document give .94 where the majority gives
    .81. If all judges are weak it is worse, since its guess of the good ones is noise.

    Examples
    --------
    >>> labels = {"ann": {"q": {"d1": 1, "d2": 0}}, "bo": {"q": {"d1": 1, "d2": 0}}, "cy": {"q": {"d1": 0, "d2": 1}}}
    >>> consensus(labels).table["majority"].tolist()
    [1, 0]
    """
    chosen("method", method, get_args(Method))
    labels = Labels.of(judgments)
    counts = labels.counts()
    probability, ended = _estimated(labels, counts)
    most = counts == counts.max(axis=1, keepdims=True)
    # Chances that are equal but for rounding are a tie too: the lowest grade has it on every
    # machine.
    likeliest = probability > probability.max(axis=1, keepdims=True) - STEADY
    codes = {"majority": most.argmax(axis=1), "dawid_skene": likeliest.argmax(axis=1)}
    items = labels.items.assign(n_labels=counts.sum(axis=1), tied=most.sum(axis=1) > 1)
    grades = {name: labels.grades[code] for name, code in codes.items()}
    items = items.assign(**grades, probability=probability.max(axis=1))
    n = np.bincount(labels.judge)
    right = np.bincount(labels.judge, weights=labels.grade == codes[method][labels.item]) / n
    estimated = np.bincount(labels.judge, weights=probability[labels.item, labels.grade]) / n
    columns = {
        "judge": labels.judges,
        "n_labels": n,
        "accuracy": right,
        "estimated_accuracy": estimated,
    }
    judges = pd.DataFrame(columns)
    judges = judges.sort_values("n_labels", ascending=False, kind="stable", ignore_index=True)
    chance, typical = 1 / len(labels.grades), float(np.median(estimated[labels.judge]))
    is_weak = typical <= chance + WEAK * (1 - chance) < 1
    weak = f"the judges are weak, half of the labels {typical:.2f} right or less by estimate: dawid_skene often loses"
    if is_weak and method == "dawid_skene":
        warn(weak)
    tied, differ = int(items["tied"].sum()), int((codes["majority"] != codes["dawid_skene"]).sum())
    of_all = f"of {count(len(items), 'document')}"
    notes = []
    if tied:
        lowest = "the lowest of the tied grades is taken"
        notes.append(f"{tied:,} {of_all} have a tied majority: {lowest}")
    if differ:
        notes.append(f"majority and dawid_skene differ on {differ:,} {of_all}: .differ lists them")
    if is_weak:
        notes.append(weak)
    if not ended:
        notes.append(f"dawid_skene still changes after {MOST_ROUNDS} rounds")
    notes += _alike_notes(labels)
    qrels = Qrels.from_frame(items, relevance=method)
    return Consensus(qrels, items, judges, method, tuple(notes))


def _estimated(labels: Labels, counts: Ints) -> tuple[Floats, bool]:
    """Return the chances of each item's grades, and whether the estimate came to an end."""
    n_judges, n_grades = len(labels.judges), len(labels.grades)
    cells = labels.judge * n_grades + labels.grade
    probability, change, rounds = counts / counts.sum(axis=1, keepdims=True), 1.0, 0
    while change > STEADY and rounds < MOST_ROUNDS:
        size = n_judges * n_grades
        counted = [np.bincount(cells, part[labels.item], size) for part in probability.T]
        errors = np.array(counted).reshape(n_grades, n_judges, n_grades) + SMOOTHING
        chances = np.log(errors / errors.sum(axis=2, keepdims=True))
        by_label = chances[:, labels.judge, labels.grade]
        likely = np.stack([np.bincount(labels.item, part) for part in by_label], axis=1)
        likely += np.log(probability.sum(axis=0) + SMOOTHING)
        after = np.exp(likely - likely.max(axis=1, keepdims=True))
        after /= after.sum(axis=1, keepdims=True)
        change, probability, rounds = float(np.abs(after - probability).max()), after, rounds + 1
    return probability, change <= STEADY


def _alike_notes(labels: Labels) -> list[str]:
    """Return a note on each group of judges who agree far more among themselves than with others."""
    if not 3 <= len(labels.judges) <= MOST_SHOWN:
        return []
    codes = np.full((len(labels.items), len(labels.judges)), -1)
    codes[labels.item, labels.judge] = labels.grade
    codes = codes[(codes >= 0).all(axis=1)]
    notes, of_all = [], count(len(codes), "document")
    for inside, outside in alike(codes):
        alone, beside = (f"{_agreed(codes, inside, of):.0%}" for of in (inside, outside))
        why = "share errors"
        if len(outside) == 1:
            why = "share errors, or both are far better than the third"
        names = few([labels.judges[judge] for judge in inside])
        notes.append(
            ALIKE_NOTE.format(names=names, alone=alone, of_all=of_all, beside=beside, why=why)
        )
    return notes


def alike(codes: Ints) -> list[tuple[list[int], list[int]]]:
    """Return each group of judges who share errors, with the other judges.

    The codes of their grades have the shape (n_items, n_judges).
    """
    n_judges, splits = codes.shape[1], []
    if len(codes) == 0:
        return []
    groups = [frozenset([judge]) for judge in range(n_judges)]
    for left, right, *_ in linkage(pdist(codes.T, "hamming"), "average")[:-1]:
        groups.append(groups[int(left)] | groups[int(right)])
    level = ALIKE / (n_judges // 2)
    for group in groups[n_judges:]:
        inside, outside = sorted(group), sorted({*range(n_judges)} - group)
        first = codes[:, inside[0]]
        agreed = (first == codes[:, inside].T).all(axis=0)
        differ = (agreed & (first != codes[:, outside].T)).sum(axis=1).min()
        apart = int((~agreed).sum())
        p = stats.binom.cdf(apart, apart + differ, len(inside) / (len(inside) + APART))
        if p < level and (len(outside) == 1 or _beyond_quality(codes, inside, outside) < ALIKE):
            splits.append((inside, outside))
    groups = [frozenset(inside) for inside, _ in splits]
    is_largest = [not any(group < other for other in groups) for group in groups]
    return [*compress(splits, is_largest)]


def _beyond_quality(codes: Ints, inside: list[int], outside: list[int]) -> float:
    """Return the p-value of the hypothesis that all judges err independently, however often.

    Their covariances are then products, so within a group times within the rest is at most between
    the two, squared.
    """
    centred = codes - codes.mean(axis=0)
    totals, mean_products = [], []
    for part in (inside, outside):
        own, n = centred[:, part], len(part)
        totals.append(own.sum(axis=1))
        mean_products.append((totals[-1] ** 2 - (own**2).sum(axis=1)) / (n * (n - 1)))
    within, rest = mean_products
    between = totals[0] * totals[1] / (len(inside) * len(outside))
    excess = within.mean() * rest.mean() - between.mean() ** 2
    # Its mean is twice as much.
    by_item = rest.mean() * within + within.mean() * rest - 2 * between.mean() * between
    return float(stats.ttest_1samp(by_item, excess, alternative="greater").pvalue)


def _agreed(codes: Ints, inside: list[int], others: list[int]) -> float:
    """Return the mean agreement of judges with others."""
    pairs = [(judge, other) for judge in inside for other in others if judge != other]
    shares = [(codes[:, judge] == codes[:, other]).mean() for judge, other in pairs]
    return float(np.mean(shares))
