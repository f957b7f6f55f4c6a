"""How far judges agree: one result for two judges, a person and a model, or a crowd with missing labels.

The coefficients are functions of sums over items, so that a topic is left out by a subtraction.
Each is 1 - observed / expected disagreement, and they differ in what they count and in what they
expect::

    of labels    counts (n_items, g)    how many labels of each grade an item has
    of judges    table (s, g, g)        items by the grades of two judges; the mean over pairs

The axis s stacks the sums of all groups of items, of all but each group, and of each group.
Expected disagreement is compared with 0 up to rounding, since sums of thirds that are left out by
subtraction do not end at 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import stdtrit

from rankeval._arguments import explained
from rankeval._checks import check_share, count, refuse
from rankeval._registry import chosen
from rankeval._visible import escaping
from rankeval.comparison.recorded import LIMITS, Recorded
from rankeval.judging.labels import Floats, Ints, Labels
from rankeval.render.tables import Table, number

if TYPE_CHECKING:
    from rankeval.render.plots import Figure

Level = Literal["nominal", "ordinal", "interval"]
MOST_GRADES = 50
"""Memory and time grow with the square of the number of grades."""
RARE = 30
"""Labels of all grades but the commonest, below which intervals of kappa and alpha are noted."""
RARE_NOTE = (
    "only {rare} labels are not of the commonest grade: with fewer than 30, 95 % intervals of kappa, pi and alpha "
    "covered the value in 72 to 88 % of trials; label more documents of rare grades, or read observed agreement and AC1"
)
NAMES_NOTE = (
    'grades are taken as names; if they are ordered, level="ordinal" counts how far apart they are'
)
WEIGHTED = ("linear_kappa", "quadratic_kappa")
OF_JUDGES = ("scott_pi", "cohen_kappa", *WEIGHTED)
WORDS = {
    "observed": "observed agreement",
    "scott_pi": "Scott's pi",
    "cohen_kappa": "Cohen's kappa",
    "linear_kappa": "Cohen's kappa, linear weights",
    "quadratic_kappa": "Cohen's kappa, quadratic weights",
    "fleiss_kappa": "Fleiss' kappa",
    "krippendorff_alpha": "Krippendorff's alpha",
    "ac1": "Gwet's AC1",
    "pabak": "PABAK",
}
"""Each coefficient in words, in the order of the table."""


@explained
@escaping
@dataclass(frozen=True, eq=False, repr=False)
class Agreement(Recorded):
    """The agreement of judges: coefficients with intervals by topics, and where the judges differ.

    Attributes
    ----------
    table : DataFrame
        A row for each coefficient. Columns: coefficient; value; ci_low, ci_high, missing if the
        topics give none; n_items, the documents with two or more labels; undefined, the reason if
        there is no value, else "".
    per_query : DataFrame
        Indexed by qid: n_items and each coefficient within the topic; missing if it is undefined
        there.
    confusion : DataFrame
        For two judges, the number of documents by the grade of the first (rows) and of the second
        (columns). Of more: the coincidences of Krippendorff, symmetric, in which a document counts
        as many times as it has labels.
    disputed : DataFrame
        The documents on which judges differ: qid, docid, n_labels, spread (the highest less the
        lowest grade), and the label of each judge. The widest spread comes first, then the most
        variance.
    level : str
        How grades are taken: "nominal", "ordinal" or "interval".
    confidence_level : float
        That of the intervals.
    notes : tuple of str
        Sentences that a reader of the numbers must see.
    """

    _row_key = "coefficient"
    _row_ends: ClassVar[Mapping[str, str]] = {"value": "", **LIMITS}

    table: pd.DataFrame
    per_query: pd.DataFrame
    confusion: pd.DataFrame
    disputed: pd.DataFrame
    level: str
    confidence_level: float
    notes: tuple[str, ...] = ()

    def __getitem__(self, coefficient: str) -> float:
        """Return the value of a coefficient, such as ``agreement["scott_pi"]``; nan if it is undefined."""
        return float(
            self.table.set_index("coefficient")["value"][chosen("coefficient", coefficient, WORDS)]
        )

    @property
    def caption(self) -> str:
        """The documents, the topics and the level in one line."""
        n, topics = int(self.per_query["n_items"].sum()), count(len(self.per_query), "topic")
        return f"Agreement on {count(n, 'document')} of {topics}, {self.level} grades"

    def plot(self, coefficient: str = "krippendorff_alpha") -> Figure:
        """Draw the confusion of the grades, and a coefficient topic by topic beside its value over all.

        Parameters
        ----------
        coefficient : str, default "krippendorff_alpha"
            The one to draw by topic.

        Raises
        ------
        UnknownName
            If there is no such coefficient.
        InvalidInput
            If the coefficient is undefined.
        """
        from rankeval.judging.figures import agreement_figure

        value = self[coefficient]
        why = self.table.set_index("coefficient")["undefined"][coefficient]
        refuse((bool(why), f"{coefficient} has no value to draw: {why}"))
        by_topic = self.per_query[coefficient].rename(WORDS[coefficient])
        return agreement_figure(self.confusion, by_topic, value, self.caption)

    def _params(self, kind: str, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        yield from super()._params(kind, values)
        judges = self.disputed.columns.drop(["qid", "docid", "n_labels", "spread"])
        yield "judges", ", ".join(map(str, judges))

    def _laid_out(self) -> Table:
        shown = self.table.drop(columns="n_items")
        shown["coefficient"] = shown["coefficient"].map(WORDS)
        formats = dict.fromkeys(["value", "ci_low", "ci_high"], partial(number, digits=3))
        caption = f"{self.caption}; {100 * self.confidence_level:g} % intervals"
        return Table(shown, formats, caption=caption, notes=self.notes)


@explained
def agreement(
    judgments: Any, other: Any = None, *, level: Level = "nominal", confidence_level: float = 0.95
) -> Agreement:
    """Say how far judges agree on the grades of documents.

    Parameters
    ----------
    judgments : Qrels with judges as aspects, frame or path of such, or mapping of judge to judgments
        All labels. Or the judgments of the first judge alone, if ``other`` is given.
    other : Qrels, frame or path, optional
        The judgments of the second judge, such as a model.
    level : {"nominal", "ordinal", "interval"}, default "nominal"
        How far grades are apart. Nominal: equal or not, so that weighted kappas are undefined.
        Ordinal: only their order counts; Krippendorff's alpha takes ranks, and weighted kappas take
        the places among the grades. Interval: the grades are numbers, so that -2, 0 and 1 lie as
        far apart as these.
    confidence_level : float, default 0.95
        That of the intervals.

    Returns
    -------
    Agreement
        Its table has a row for each coefficient.

    Raises
    ------
    InvalidInput
        If no judge is named, a judge labels a document twice, no document has two labels (-1 is
        none), or there are more than 50 grades.
    UnknownName
        If there is no such level.

    Notes
    -----
    Documents with two or more labels count. Agreement beyond chance is (observed - chance) / (1 - chance), and the
    coefficients differ in chance:

    * observed: the share of pairs of labels of a document that are equal, its mean over documents.
    * scott_pi: both judges have one distribution of grades (Scott 1955, doi:10.1086/266577). Cohen's kappa: each has
      the own one (Cohen 1960, doi:10.1177/001316446002000104); the weighted forms (Cohen 1968,
      doi:10.1037/h0026256) need ordered grades. Of more than two judges all four are the mean over
      pairs of judges (Light 1971, doi:10.1037/h0031643), and undefined if a pair is.
    * fleiss_kappa: Scott's pi for several labels of a document (Fleiss 1971, doi:10.1037/h0031619). If documents have
      different numbers of labels, each document has the same weight (Gwet 2014).
    * krippendorff_alpha: 1 - observed / expected disagreement, where chance draws two labels without putting the first
      back; for any number of labels (Hayes and Krippendorff 2007, doi:10.1080/19312450709336664).
    * ac1: chance is small if nearly all labels are the same grade (Gwet 2008, doi:10.1348/000711006X126600).
    * pabak: all grades are equally likely by chance (Byrt, Bishop and Carlin 1993, doi:10.1016/0895-4356(93)90018-V).

    The grades of ac1 and pabak are those that some judge gave.

    Documents of a topic are judged alike, so intervals leave out one topic at a time (jackknife).
    They contain the values for which T + a T^2 / 3 + a^2 T^3 / 27 + a / 6 lies between the
    quantiles of Student's t with n - 1 degrees, where T is (value - true value) / error, and a the
    skew of the topics by the root of their number n (Hall 1992, Journal of the Royal Statistical
    Society B 54, 221). With 10, 22 and 50 topics drawn from the 22 of TREC RAG 2025 (five grades,
    the commonest with 37 % of the labels, the rarest with 2 %), intervals at a level of .95 cover
    the true value in .943 to .966 of the samples. The jackknife without a does so in .92 to .95,
    and intervals that take documents as independent in .36 to .52.

    A rare grade makes intervals of kappa, pi and alpha too short. If 2 or 5 % of the documents are
    relevant, and lie in few of the topics, those of kappa and alpha cover it in .78 to .92 of
    simulations with 10 topics, .89 to .95 with 25 and .92 to .95 with 50; with 30 %, in .95 to .96.
    Those of observed agreement and AC1 cover it in .94 to .96. A note says so if fewer than
    30 labels are not of the commonest grade.

    Examples
    --------
    >>> people = {"q1": {"d1": 1, "d2": 0, "d3": 1}, "q2": {"d4": 0, "d5": 0, "d6": 1}}
    >>> model = {"q1": {"d1": 1, "d2": 0, "d3": 0}, "q2": {"d4": 0, "d5": 0, "d6": 1}}
    >>> found = agreement(people, model)
    >>> round(found["observed"], 3), round(found["scott_pi"], 3)
    (0.833, 0.657)
    """
    chosen("level", level, get_args(Level))
    check_share("confidence_level", confidence_level)
    labels = Labels.of(judgments if other is None else {"first": judgments, "second": other})
    n_labels = np.bincount(labels.item)
    shared, n_grades = n_labels > 1, len(labels.grades)
    same_ids = "give queries and documents the same ids for all judges"
    too_many = f"{n_grades:,} grades, and at most {MOST_GRADES} can be compared"
    refuse(
        (not shared.any(), "no document has two labels", same_ids),
        (n_grades > MOST_GRADES, too_many, "round them"),
        argument="judgments",
    )
    by_judge, query = labels.table()[shared], pd.factorize(labels.items["qid"][shared])[0]
    by_topic = bool(query[-1] > 0)
    group = query if by_topic else np.arange(len(query))
    places = np.arange(n_grades, dtype=np.float64)
    if level == "interval":
        places = labels.grades.astype(np.float64)
    counts = labels.counts()[shared]
    codes = np.where(by_judge.isna(), -1, np.searchsorted(labels.grades, by_judge))
    coefficients, coincidences = label_coefficients(counts, group, places, level)
    of_pairs, reasons = of_judges(codes, group, places, level)
    stack = pd.DataFrame(coefficients | of_pairs, columns=list(WORDS), dtype=np.float64)
    n = int(group[-1]) + 1
    value, left_out, alone = stack.iloc[0].to_numpy(), stack[1 : n + 1].to_numpy(), stack[n + 1 :]
    columns = {"coefficient": list(WORDS), "value": value}
    table = pd.DataFrame(columns | _interval(value, left_out, confidence_level))
    least = np.where(table["coefficient"] == "observed", 0, -1)
    table["ci_low"] = np.maximum(table["ci_low"], least)
    table["n_items"] = len(query)
    table["undefined"] = np.where(np.isnan(value), [reasons[name] for name in WORDS], "")
    per_query = (alone if by_topic else stack[:1]).set_axis(by_judge.index.unique("qid"))
    per_query.insert(0, "n_items", np.bincount(query))
    unordered = level == "nominal" and n_grades > 2
    of_grades = counts.sum(axis=0)
    rare = int(of_grades.sum() - of_grades.max())
    notes = _notes(table, n_labels, rare, "topic" if by_topic else "document", unordered=unordered)
    confusion = _confusion(by_judge, labels.grades, coincidences)
    disputed = _disputed(by_judge)
    return Agreement(table, per_query, confusion, disputed, level, confidence_level, notes)


def _interval(value: Floats, left_out: Floats, confidence_level: float) -> dict[str, Floats]:
    """Return the ends of the jackknife's interval: Student's t, bent against skew (Hall 1992)."""
    n = len(left_out)
    adds = (n - 1) * (left_out.mean(axis=0) - left_out)  # how much each group adds to the value
    with np.errstate(divide="ignore", invalid="ignore"):
        # With n for one n - 1, the intervals of 22 topics cover .937 where .95 is said.
        error = np.sqrt((adds**2).sum(axis=0)) / (n - 1)
        error = np.where(error > 1e-12, error, np.nan)
        skew = (adds**3).mean(axis=0) / (adds**2).mean(axis=0) ** 1.5 / np.sqrt(n)
        skew = np.where(np.abs(skew) > 1e-6, skew, 1e-6)
        t = stdtrit(n - 1, (1 + confidence_level) / 2)
        bends = [np.cbrt(1 + skew * (end - skew / 6)) for end in (t, -t)]
        low, high = (value - error * 3 / skew * (bend - 1) for bend in bends)
    return {"ci_low": low, "ci_high": np.minimum(high, 1)}


def _confusion(by_judge: pd.DataFrame, grades: NDArray[Any], coincidences: Floats) -> pd.DataFrame:
    if by_judge.shape[1] == 2:
        table = pd.crosstab(by_judge.iloc[:, 0], by_judge.iloc[:, 1])
        return table.reindex(grades, columns=grades, fill_value=0)
    rows, columns = pd.Index(grades, name="label"), pd.Index(grades, name="other label")
    return pd.DataFrame(coincidences, rows, columns)


def _disputed(by_judge: pd.DataFrame) -> pd.DataFrame:
    taken = ("qid", "docid", "n_labels", "spread")
    named = by_judge.rename(columns=lambda judge: f"{judge} (judge)" if judge in taken else judge)
    spread = (by_judge.max(axis=1) - by_judge.min(axis=1)).rename("spread")
    order = np.lexsort((-by_judge.var(axis=1), -spread))[: int((spread > 0).sum())]
    facts = pd.concat([by_judge.count(axis=1).rename("n_labels"), spread, named], axis=1)
    return facts.convert_dtypes().iloc[order].reset_index()


def _notes(
    table: pd.DataFrame, n_labels: Ints, rare: int, unit: str, *, unordered: bool
) -> tuple[str, ...]:
    """Return the notes on what is left out, and on intervals."""
    alone = int((n_labels < 2).sum())
    bare = ", ".join(table["coefficient"][table["ci_low"].isna() & table["value"].notna()])
    one_topic = (
        f"there is one topic only: intervals take its {unit}s as independent, and may be too narrow"
    )
    notes = []
    if alone:
        of_all = f"{alone:,} of {len(n_labels):,}"
        notes.append(f"documents with one label only are left out: {of_all}")
    if unit != "topic":
        notes.append(one_topic)
    if 0 < rare < RARE:
        notes.append(RARE_NOTE.format(rare=rare))
    if bare:
        notes.append(f"no interval for {bare}: the {unit}s do not show how far it varies")
    if unordered:
        notes.append(NAMES_NOTE)
    return tuple(notes)


def label_coefficients(
    counts: Ints, group: Ints, places: Floats, level: str
) -> tuple[dict[str, Floats], Floats]:
    """Return the coefficients of labels along the axis s, and the coincidences over all groups."""
    n_labels, n_grades = counts.sum(axis=1, keepdims=True), counts.shape[1]
    own = counts[:, :, None]  # a label makes no pair with itself
    pairs = own * counts[:, None, :] - own * np.eye(n_grades, dtype=np.int64)
    agreed = np.einsum("igg->i", pairs)[:, None] / (n_labels * (n_labels - 1))
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    sums = (np.ones(n_labels.shape), agreed, counts / n_labels, pairs / (n_labels - 1)[:, :, None])
    n, agreed, shares, coincidences = (_stacked(np.add.reduceat(part, starts)) for part in sums)
    totals = coincidences.sum(axis=2)
    if level == "nominal":
        apart = 1 - np.eye(n_grades)[None]
    else:
        # Ordinal grades lie as far apart as the labels between them are many, with half of their own.
        line = totals.cumsum(axis=1) - totals / 2 if level == "ordinal" else places[None]
        apart = (line[:, :, None] - line[:, None, :]) ** 2
    # Chance draws two labels without putting the first back.
    expected = np.einsum("sg,sgh,sh->s", totals, np.broadcast_to(apart, coincidences.shape), totals)
    disagreed, total = (coincidences * apart).sum(axis=(1, 2)), totals.sum(axis=1)
    widest = total * (total - 1) * apart.max(axis=(1, 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        differ, shares, other = 1 - agreed[:, 0] / n[:, 0], shares / n, np.float64(n_grades - 1)
        unequal = (shares * (1 - shares)).sum(axis=1)
        alpha = _beyond(disagreed * (total - 1) / widest, expected / widest)
        values = {
            "observed": 1 - differ,
            "fleiss_kappa": _beyond(differ, unequal),
            "krippendorff_alpha": alpha,
            "ac1": _beyond(differ, 1 - unequal / other),
            "pabak": _beyond(differ, other / n_grades),
        }
    return values, coincidences[0]


def of_judges(
    codes: Ints, group: Ints, places: Floats, level: str
) -> tuple[dict[str, Floats], dict[str, str]]:
    """Return means over pairs of judges along the axis s, and why a coefficient has no value."""
    n_grades, n_groups, alike, by_pair = len(places), int(group[-1]) + 1, 0, []
    has, pairs = (codes >= 0).astype(np.float32), [*combinations(codes.T, 2)]
    strangers = int(np.triu(has.T @ has == 0, 1).sum())
    far = np.abs(places[:, None] - places)
    unequal = 1 - np.eye(n_grades)
    shape = n_groups, n_grades, n_grades
    for first, second in () if strangers else pairs:
        both = (first >= 0) & (second >= 0)
        cells = np.ravel_multi_index((group[both], first[both], second[both]), shape)
        table = np.bincount(cells, minlength=math.prod(shape)).reshape(shape)
        stack = _stacked(table.astype(np.float64))
        rows, columns, n = stack.sum(axis=2), stack.sum(axis=1), stack.sum(axis=(1, 2))
        pooled = (rows + columns) / 2
        forms = (
            (pooled, unequal, pooled),
            (rows, unequal, columns),
            (rows, far, columns),
            (rows, far**2, columns),
        )
        ratios = []
        with np.errstate(divide="ignore", invalid="ignore"):
            for left, apart, right in forms:
                observed = (stack * apart).sum(axis=(1, 2)) / n
                by_chance = np.einsum("si,ij,sj->s", left, apart, right) / n**2
                ratios.append(_beyond(observed, by_chance))
        by_pair.append(ratios)
        alike += bool(np.isnan(ratios[1][0]))
    values = dict(zip(OF_JUDGES, np.mean(by_pair, axis=0), strict=True)) if by_pair else {}
    why = "share no document" if strangers else "use one and the same grade"
    some = f"{strangers or alike:,} of {count(len(pairs), 'pair')} of judges {why}"
    reasons = dict.fromkeys(WORDS, "all labels are of one grade") | dict.fromkeys(OF_JUDGES, some)
    if level == "nominal":
        reasons |= dict.fromkeys(WEIGHTED, "nominal grades have no order")
        values = {name: value for name, value in values.items() if name not in WEIGHTED}
    return values, reasons


def _beyond(disagreed: Floats, expected: Floats) -> Floats:
    return np.asarray(1 - disagreed / np.where(expected > 1e-12, expected, np.nan))


def _stacked(groups: Floats) -> Floats:
    """Return the sum over all groups, the sums without each group, and the groups."""
    total = groups.sum(axis=0, keepdims=True)
    return np.concatenate([total, total - groups, groups])
