"""How far judges agree: one result for two judges, a person and a model, or a crowd with missing labels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from rankeval._checks import check_share, count
from rankeval._registry import chosen
from rankeval.comparison.tables import WithTable
from rankeval.errors import InvalidInput
from rankeval.judging.coefficients import COEFFICIENTS, Scale, Sums, mean_over_judges, stacked
from rankeval.judging.labels import Floats, Ints, Labels
from rankeval.render.tables import DASH, Table, number

if TYPE_CHECKING:
    from rankeval.render.plots import Figure

Level = Literal["nominal", "ordinal", "interval"]
LEVELS = ("nominal", "ordinal", "interval")
TOPICS, ITEMS = "topic", "document"


@dataclass(frozen=True, eq=False)
class Agreement(WithTable):
    """The agreement of judges: the coefficients, each with an interval by topics, and where the judges differ.

    Attributes
    ----------
    table : DataFrame
        A row for each coefficient. Columns: coefficient; value; ci_low, ci_high, missing if the topics give none;
        n_items, the documents with two or more labels; undefined, the reason if there is no value, else "".
    per_query : DataFrame
        Indexed by qid: n_items and each coefficient within the topic; missing if it is undefined there.
    confusion : DataFrame
        Of two judges: how many documents have each grade of the first (rows) and of the second (columns). Of more: the
        coincidences of Krippendorff, symmetric, in which a document counts as many times as it has labels.
    disputed : DataFrame
        The documents on which judges differ: qid, docid, n_labels, spread (the highest less the lowest grade), and the
        label of each judge. The widest spread comes first, then the least agreement.
    level : str
        How grades are taken: "nominal", "ordinal" or "interval".
    confidence_level : float
        That of the intervals.
    notes : tuple of str
        Sentences that a reader of the numbers must see.
    """

    table: pd.DataFrame
    per_query: pd.DataFrame
    confusion: pd.DataFrame
    disputed: pd.DataFrame
    level: str
    confidence_level: float
    notes: tuple[str, ...] = ()

    def __getitem__(self, coefficient: str) -> float:
        """Return the value of a coefficient, such as ``agreement["scott_pi"]``; nan if it is undefined.

        Raises
        ------
        UnknownName
            If there is no such coefficient.
        """
        chosen("coefficient", coefficient, COEFFICIENTS)
        return float(self.table.set_index("coefficient")["value"][coefficient])

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
        """
        from rankeval.judging.figures import agreement_figure

        whole = self[coefficient]
        words = COEFFICIENTS[coefficient].words
        return agreement_figure(self.confusion, self.per_query[coefficient], whole, words, self.caption)

    def _laid_out(self) -> Table:
        level, table = f"{100 * self.confidence_level:g} % interval", self.table
        written = partial(number, digits=3)
        ends = zip(table["ci_low"], table["ci_high"], strict=True)
        shown = pd.DataFrame({"coefficient": [COEFFICIENTS[name].words for name in table["coefficient"]]})
        shown["value"] = table["value"]
        shown[level] = [DASH if np.isnan(low) else f"[{written(low)}, {written(high)}]" for low, high in ends]
        if table["undefined"].any():
            shown["undefined because"] = table["undefined"]
        return Table(shown, {"value": written}, caption=self.caption, notes=self.notes)


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
        How far grades are apart. Nominal: equal or not. Ordinal: only their order counts; Krippendorff's alpha takes
        ranks, and weighted kappas take the places among the grades. Interval: the grades are numbers.
    confidence_level : float, default 0.95
        That of the intervals.

    Returns
    -------
    Agreement
        Its table has a row for each coefficient.

    Raises
    ------
    InvalidInput
        If no judge is named, a judge labels a document twice, or no document has two labels.
    UnknownName
        If there is no such level.

    Notes
    -----
    Documents with two or more labels count. Agreement beyond chance is (observed - chance) / (1 - chance), and the
    coefficients differ in chance:

    * observed: the share of pairs of labels of a document that are equal, its mean over documents.
    * scott_pi: both judges have one distribution of grades (Scott 1955, doi:10.1086/266577). Cohen's kappa: each has
      the own one (Cohen 1960, doi:10.1177/001316446002000104); the weighted forms (Cohen 1968, doi:10.1037/h0026256)
      need ordered grades. Of more than two judges all four are the mean over pairs of judges (Light 1971,
      doi:10.1037/h0031643), and undefined if a pair is.
    * fleiss_kappa: Scott's pi for several labels of a document (Fleiss 1971, doi:10.1037/h0031619). If documents have
      different numbers of labels, each document has the same weight (Gwet 2014).
    * krippendorff_alpha: 1 - observed / expected disagreement, where chance draws two labels without putting the first
      back; for any number of labels (Hayes and Krippendorff 2007, doi:10.1080/19312450709336664).
    * ac1: chance is small if nearly all labels are the same grade (Gwet 2008, doi:10.1348/000711006X126600).
    * pabak: all grades are equally likely by chance (Byrt, Bishop and Carlin 1993, doi:10.1016/0895-4356(93)90018-V).

    The grades of ac1 and pabak are those that some judge gave. Documents of a topic are judged alike, so intervals
    leave out one topic at a time (jackknife); they are Student's t with a correction for the skew of the topics (Hall
    1992). Intervals that take documents as independent cover the true value about half as often as they say.

    Examples
    --------
    >>> people = {"q1": {"d1": 1, "d2": 0, "d3": 1}, "q2": {"d4": 0, "d5": 0, "d6": 1}}
    >>> model = {"q1": {"d1": 1, "d2": 0, "d3": 0}, "q2": {"d4": 0, "d5": 0, "d6": 1}}
    >>> found = agreement(people, model)
    >>> round(found["observed"], 3), round(found["scott_pi"], 3)
    (0.833, 0.657)
    """
    chosen("level", level, LEVELS)
    check_share("confidence_level", confidence_level)
    labels = Labels.of(judgments if other is None else {"first": judgments, "second": other})
    every = labels.counts()
    shared = every.sum(axis=1) > 1
    if not shared.any():
        remedy = "ids of queries and documents must be the same for all judges"
        raise InvalidInput("no document has two labels", argument="judgments", remedy=remedy)
    counts, items, grades = every[shared], labels.items[shared].reset_index(drop=True), _wide(labels)[shared]
    topics, query = np.unique(items["query"], return_inverse=True)
    unit = TOPICS if len(topics) > 1 else ITEMS
    group = query if unit == TOPICS else np.arange(len(items))
    sums = stacked(counts, group)
    values, undefined = _values(labels, sums, grades, group, level)
    n = int(group[-1]) + 1
    low, high = _interval(values[:, 0], values[:, 1 : n + 1], confidence_level)
    table = pd.DataFrame({"coefficient": list(COEFFICIENTS), "value": values[:, 0], "ci_low": low, "ci_high": high})
    table = table.assign(n_items=len(items), undefined=undefined)
    by_topic = values[:, n + 1 :] if unit == TOPICS else values[:, :1]
    per_query = pd.DataFrame(by_topic.T, columns=list(COEFFICIENTS))
    per_query.insert(0, "n_items", np.bincount(query))
    per_query.index = pd.Index(items["qid"][~items["qid"].duplicated()], name="qid")
    disputed = _disputed(labels, counts, items, grades)
    notes = _notes(table, every.sum(axis=1), unit)
    return Agreement(table, per_query, _confusion(labels, sums, grades), disputed, level, confidence_level, notes)


def _wide(labels: Labels) -> Ints:
    """Return the codes of the grades, of shape (n_items, n_judges); -1 if there is no label."""
    grades = np.full((len(labels.items), len(labels.judges)), -1)
    grades[labels.item, labels.judge] = labels.grade
    return grades


def _values(labels: Labels, sums: Sums, grades: Ints, group: Ints, level: str) -> tuple[Floats, list[str]]:
    """Return the coefficients of the sums that `coefficients` stacks, a row each, and why the first is undefined."""
    places = labels.grades if level == "interval" else np.arange(len(labels.grades))
    scale = Scale(places.astype(np.float64), level)
    has = (grades >= 0).astype(np.float32)
    n_judges = grades.shape[1]
    apart = int((np.triu(has.T @ has == 0, 1)).sum())
    of_judges = [one.value for one in COEFFICIENTS.values() if one.of_judges]
    means, no_value = np.full((len(of_judges), len(sums.n_items)), np.nan), 0
    if not apart:
        means, no_value = mean_over_judges(of_judges, grades, group, scale)
    of_pairs, values, reasons = iter(means), [], []
    pairs = count(n_judges * (n_judges - 1) // 2, "pair")
    for one in COEFFICIENTS.values():
        value = next(of_pairs) if one.of_judges else one.value(sums, scale)
        reason = ""
        if one.ordered and level == "nominal":
            value, reason = np.full_like(value, np.nan), 'nominal grades have no order: give level="ordinal"'
        elif np.isnan(value[0]) and apart:
            reason = f"{apart:,} of {pairs} of judges share no document"
        elif np.isnan(value[0]):
            used = labels.grades[sums.shares[0] > 0]
            alone = f"all labels are {used[0]}" if len(used) == 1 else f"{no_value:,} of {pairs} use one grade only"
            reason = f"{alone}, so chance alone agrees fully"
        values.append(value)
        reasons.append(reason)
    return np.array(values), reasons


def _interval(value: Floats, left_out: Floats, confidence_level: float) -> tuple[Floats, Floats]:
    """Return the ends of the jackknife's interval: Student's t, its skew removed by the cubic of Hall (1992).

    Parameters
    ----------
    value : array of shape (n_coefficients,)
        The value over all groups.
    left_out : array of shape (n_coefficients, n_groups)
        The value without each group.
    confidence_level : float
        That of the interval.
    """
    n = left_out.shape[1]
    ends = np.full((2, len(value)), np.nan)
    if n < 2:
        return ends[0], ends[1]
    # The pseudo-values, less what all have in common: how much each group adds.
    adds = (n - 1) * (left_out.mean(axis=1, keepdims=True) - left_out)
    spread = adds.std(axis=1)
    # A divisor of n - 1 in both places: with n in one, 22 topics cover .937 where .95 is said.
    error = adds.std(axis=1, ddof=1) / np.sqrt(n - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        skew = (adds**3).mean(axis=1) / spread**3 / np.sqrt(n)
    steep = np.abs(skew) > 1e-6
    for end, sign in zip(ends, (1, -1), strict=True):
        t = sign * stdtrit(n - 1, (1 + confidence_level) / 2)
        safe = np.where(steep, skew, 1)
        bent = np.where(steep, 3 / safe * (np.cbrt(1 + safe * (t - safe / 6)) - 1), t)
        end[:] = np.where(spread > 1e-12, value - bent * error, np.nan)
    return ends[0], np.minimum(ends[1], 1)


def _confusion(labels: Labels, sums: Sums, grades: Ints) -> pd.DataFrame:
    named = partial(pd.Index, labels.grades)
    if len(labels.judges) > 2:
        return pd.DataFrame(sums.coincidences[0], index=named(name="label"), columns=named(name="other label"))
    table = np.zeros((len(labels.grades), len(labels.grades)), dtype=np.int64)
    np.add.at(table, (grades[:, 0], grades[:, 1]), 1)
    return pd.DataFrame(table, index=named(name=labels.judges[0]), columns=named(name=labels.judges[1]))


def _disputed(labels: Labels, counts: Ints, items: pd.DataFrame, grades: Ints) -> pd.DataFrame:
    given, n = counts > 0, counts.sum(axis=1)
    highest = labels.grades[counts.shape[1] - 1 - given[:, ::-1].argmax(axis=1)]
    found = items[["qid", "docid"]].assign(n_labels=n, spread=highest - labels.grades[given.argmax(axis=1)])
    alike = (counts * (counts - 1)).sum(axis=1) / (n * (n - 1))
    order = np.lexsort((alike, -found["spread"]))
    order = order[found["spread"].to_numpy()[order] > 0]
    each = pd.DataFrame(np.where(grades >= 0, labels.grades[grades], np.nan)[order], columns=list(labels.judges))
    return found.iloc[order].reset_index(drop=True).join(each.convert_dtypes(), rsuffix=" (judge)")


def _notes(table: pd.DataFrame, n_labels: Ints, unit: str) -> tuple[str, ...]:
    """Return the sentences on what is left out, on the weight of documents, and on intervals."""
    alone, shared = int((n_labels < 2).sum()), n_labels[n_labels > 1]
    bare = table["coefficient"][table["ci_low"].isna() & table["value"].notna()]
    weights = (
        f"documents have {shared.min()} to {shared.max()} labels: each document has the same weight, and in "
        "Krippendorff's alpha each label"
    )
    said = [
        (alone > 0, f"documents with one label only are left out: {alone:,} of {len(n_labels):,}"),
        (bool((shared != shared[0]).any()), weights),
        (unit == ITEMS, "there is one topic only: intervals take its documents as independent and may be too narrow"),
        (len(bare) > 0, f"no interval for {', '.join(bare)}: it cannot be told from the {unit}s how far they vary"),
    ]
    return tuple(sentence for holds, sentence in said if holds)
