"""The numbers of a comparison and how they came about; what is said and drawn of them reads this.

::

    ComparisonSettings    what was asked: test, correction, claim, level, seed
    Kept                  what was computed beside the table: choice, scores of folds, the first two
    ComparisonRecord      the table, the settings, what is kept, notes

Functions of a record follow the classes: what each row shows, gains, means in their order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from rankeval._checks import count, few, refuse
from rankeval._display import Displayed, View
from rankeval._visible import escaping
from rankeval.comparison.design import TOGETHER
from rankeval.comparison.groups import Groups
from rankeval.comparison.inputs import Systems
from rankeval.errors import InvalidInput
from rankeval.measures import Direction, direction
from rankeval.render.tables import decimals, telling
from rankeval.significance.declarations import (
    CLAIMS,
    CORRECTIONS,
    TESTS,
    Floats,
    Settings,
    all_tests,
    seed_of,
)
from rankeval.significance.running import adjusted_level
from rankeval.significance.strata import STRATIFIED, WEIGHTS

MOST_LISTED = 5
"""Captions list so many collections or slices by name, and the range of their sizes beyond."""

PARTED = (
    "{rows}: the adjusted p-value and the adjusted interval disagree (a dagger in printed tables): one shows the "
    "claim, the other does not. The p-value steps down over the family or comes from another test than the interval; "
    "claims go by it"
)
"""Note on the rows of `parted`."""

IN_TURN = "less is wanted; load of the machine is in it, so time systems in turn: rk.profile({name: search}, queries)"
UNKNOWN = "whether more or less is wanted is not known (lower_is_better= says so)"
"""Notes on columns: of times, and of those whose direction is not known."""


@escaping
@dataclass(frozen=True, repr=False)
class Choice(Displayed):
    """The system with the best mean, and the value of choosing by the best mean.

    The value is one of the procedure: on other queries it would choose other systems too. With
    systems of very unlike variance it differs from the named system's own gain. It is lower if some
    noisy systems are worse in truth: these would often be chosen. The headline speaks of the named
    system, this value of the choice.

    Attributes
    ----------
    system : str
        The candidate with the best mean; the first of equal ones.
    measure : str
        The measure it was chosen by.
    baseline : str or None
        The system it is compared with, which is no candidate. None: every system is one.
    estimate : float
        Its difference from the baseline, system minus baseline as in the table, or its mean if
        there is no baseline; if there are several candidates, that of those chosen on other
        queries.
    ci_low, ci_high : float
        Interval of the system's true difference or mean, which holds although it was chosen. The
        end on the worse side is stretched where necessary, so that the interval holds the estimate
        too.
    n_candidates : int
        The number of systems it was chosen from.
    confidence_level : float
        Of the interval.
    lower_is_better : bool or None
        What was declared of a measure that is only a column; None if nothing was.

    Examples
    --------
    >>> best = Choice("v3", "AP", "v0", 0.02, -0.01, 0.05, n_candidates=9, confidence_level=0.95)
    >>> print(best.words.partition(" [")[0])
    Choosing the largest mean of 9 candidates, here v3, gains about +0.0200 AP over v0
    """

    system: str
    measure: str
    baseline: str | None
    estimate: float
    ci_low: float
    ci_high: float
    n_candidates: int
    confidence_level: float
    lower_is_better: bool | None = None

    @property
    def has_interval(self) -> bool:
        """Whether an end is known; none is if the systems are equal on every query."""
        return math.isfinite(self.ci_low) or math.isfinite(self.ci_high)

    @property
    def words(self) -> str:
        """The choice and its value in a sentence."""
        digits = min(4, decimals(abs(self.estimate)))
        written = partial(telling, sign=self.baseline is not None, digits=digits)
        low, value, high = map(written, (self.ci_low, self.estimate, self.ci_high))
        level = f"{100 * self.confidence_level:g}% interval"
        ends = f"[{level} {low} to {high}]" if self.has_interval else f"[no {level}]"
        wanted = direction(self.measure, {self.measure: self.lower_is_better})
        if self.n_candidates == 1:
            against = "" if self.baseline is None else f" against {self.baseline}"
            sentence = f"{self.system}{against}: {value} {self.measure} {ends}."
        else:
            verb = f"changes {self.measure}{wanted.note} by about {value} from {self.baseline}"
            if self.baseline is None:
                verb = f"leads to a mean of about {value} {self.measure}"
            elif wanted.sign > 0:
                verb = f"gains about {value} {self.measure} over {self.baseline}"
            which = "largest" if wanted.sign > 0 else "smallest"
            of = f"the {which} mean of {self.n_candidates} candidates"
            sentence = f"Choosing {of}, here {self.system}, {verb} {ends}."
        return " ".join(sentence.split())

    def _view(self) -> View:
        return View([self.words])


@dataclass(frozen=True, eq=False)
class FoldScores:
    """Means by fold, for effects and posteriors of a comparison of algorithms."""

    systems: Sequence[str]  # In the order of the scores
    measures: Sequence[str]
    scores: Floats  # (n_folds, n_systems, n_measures), the mean of each fold
    ratio: float  # Test queries per training query, the mean over folds


@escaping
@dataclass(frozen=True, eq=False)
class KeptScores:
    """Facts about the scores that the table of a comparison does not show."""

    # The value of the best system as `Comparison.to_json` kept it; `Comparison.best` returns it if
    # there are no scores.
    choice: Choice | None = None
    folds: FoldScores | None = None  # None for a comparison over queries
    # The groups of the compared queries; None without groups, and after `Comparison.from_json`.
    groups: Groups | None = None
    # The row of the two systems with the best means by the main measure, the second as baseline,
    # tested for a difference without any correction; None if one of them is the baseline or all
    # pairs were compared, since ``table`` has that row. The headline says whether the two can be
    # told apart.
    first_two: pd.DataFrame | None = None


@dataclass(frozen=True)
class ComparisonSettings(Settings):
    """The arguments of `rankeval.compare`, and the families that follow from them."""

    test: str = "t"
    correction: str = "holm"
    family: str = "all"
    baseline: str | None = None  # The system that the others are compared with; None for all pairs
    # The only confirmatory measure, if one was fixed beforehand. Other measures get no stars.
    primary: str | None = None
    # The size of the family that p_adjusted accounts for, in rows over all queries. The rows of
    # collections or slices are a family of their own, as many times larger as there are parts that
    # are tested.
    n_comparisons: int = 0
    # The name of the first column if there are rows for collections or slices, else ""
    grouped: str = ""
    # How collections are weighed in the rows over all; "" for one collection
    collection_weights: str = ""
    # Declared for columns that are not measures
    lower_is_better: Any = field(default_factory=dict, hash=False)
    # The noun for a row of the scores, if the tests are over groups of them; else ""
    member: str = ""
    n_members: int = 0  # The number of these rows; 0 without groups
    # The effective number of weighted units (Kish); 0 without weights
    n_effective: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        # JSON takes Python's numbers only, and a generator cannot be written: its seed is.
        plain = {
            "margin": float(self.margin),
            "n_resamples": int(self.n_resamples),
            "rng": seed_of(self.rng),
        }
        names = () if self.lower_is_better is None else self.lower_is_better
        names = [names] if isinstance(names, str) else names
        declared = dict(names) if isinstance(names, Mapping) else dict.fromkeys(names, True)
        vars(self).update(plain, unseen=self.n_unseen, lower_is_better=declared)

    @property
    def row(self) -> str:
        """The noun for a row of the scores, by which ids are found."""
        return self.member or self.unit

    def sized(self, n: int) -> str:
        """Write how many units were tested: ``50 queries``, or ``20 conversations of 100 queries``."""
        members = f" of {count(self.n_members, self.member)}" if self.member else ""
        equal = f" (weighted, effective number {self.n_effective:.0f})" if self.n_effective else ""
        return f"{count(n, self.unit)}{members}{equal}"

    def direction(self, measure: str) -> Direction:
        """Return which values of a column are better, and the words for it."""
        return direction(measure, self.lower_is_better)

    def direction_notes(self, measures: Iterable[str]) -> list[str]:
        """Return a note on each column of which less is wanted, or whose direction is not known."""
        notes = {"different": UNKNOWN} | ({"faster": IN_TURN} if self.unit == "query" else {})
        words = {name: self.direction(name).better for name in measures}
        less = {name: word for name, word in words.items() if word != "better"}
        return [f"{name}: {notes.get(word, 'less is wanted')}" for name, word in less.items()]

    def must_know_directions(self, measures: Iterable[str], what: str) -> None:
        """Raise `InvalidInput` if a column has no known direction; ``what`` says why it is needed."""
        unknown = [measure for measure in measures if not self.direction(measure).sign]
        problem = f"{what}, and it is not known whether more or less of {few(unknown)} is better"
        remedy = "say so: lower_is_better=[names], or {name: False} if more is better"
        refuse((unknown, problem, remedy))

    @property
    def of_resampling(self) -> Settings:
        """The level, number of resamples and seed alone, for results without a claim."""
        return Settings(alpha=self.alpha, n_resamples=self.n_resamples, rng=self.rng)

    @property
    def correction_words(self) -> str:
        """The correction in words; of a saved one that is not declared here, the key."""
        correction = CORRECTIONS.get(self.correction)
        return correction.words if correction else self.correction

    def family_words(self, n_parts: int) -> str:
        """Return the size of a family in words: of the rows over all, or of those of all parts."""
        family = count(self.n_comparisons * n_parts, "comparison")
        return f"{family} per measure" if self.family == "measure" else family

    @property
    def interval_level(self) -> float:
        """Level of single intervals: a claim of two ends leaves out alpha at each."""
        return round(1 - self.alpha * max(1, CLAIMS[self.claim].sides), 12)

    @property
    def adjusted_level(self) -> float:
        """Level of the adjusted intervals."""
        correction = CORRECTIONS.get(self.correction)
        if correction is None:
            return self.interval_level
        return adjusted_level(self.alpha, correction, CLAIMS[self.claim], self.n_comparisons)


@escaping
@dataclass(frozen=True, eq=False)
class ComparisonRecord:
    """The fields of a `rankeval.Comparison`, which documents them."""

    table: pd.DataFrame
    evaluations: Systems
    settings: ComparisonSettings
    notes: tuple[str, ...] = ()
    interaction: pd.DataFrame | None = None
    means: pd.DataFrame | None = None
    bounds: pd.DataFrame | None = None
    condensed: pd.DataFrame | None = None
    standing: str = ""
    opening: Mapping[str, Any] | None = None
    _kept: KeptScores = field(default_factory=KeptScores, repr=False)

    @property
    def alpha(self) -> float:
        """The level of the tests; the intervals have the level 1 - alpha."""
        return self.settings.alpha

    @property
    def shown(self) -> pd.Series[bool]:
        """A mask of the rows: True where the claim is shown, confirmatory and with an adjusted p of at most alpha."""
        within, primary = self.table["p_adjusted"] <= self.alpha, self.settings.primary
        return within if primary is None else within & (self.table["measure"] == primary)

    @property
    def caption(self) -> str:
        """The settings in one line: test, number of queries, family, level, seed."""
        settings = self.settings
        if self.table.empty:
            over = (
                ""
                if self.means is None
                else f" over {settings.sized(int(self.means['n_queries'].iloc[0]))}"
            )
            return f"Means{over}; {100 * settings.confidence_level:g} % intervals by Student's t; no comparison"
        n = int(self.table["n_queries"].iloc[0])
        # A saved result may name a test that is not declared here: then its key stands for the
        # words.
        test, correction = all_tests().get(settings.test), CORRECTIONS.get(settings.correction)
        own = test.words if test else settings.test
        words = STRATIFIED if settings.collection_weights else own
        claim = CLAIMS[settings.claim]
        side = f", {claim.caption.format(margin=settings.margin)}," if claim.caption else ""
        side += (
            f" with {count(settings.unseen, f'unseen {settings.unit}')}," if settings.unseen else ""
        )
        corrected = f"{settings.correction_words} over"
        weighted = (
            f", {WEIGHTS[settings.collection_weights].format(units=settings.units)}"
            if settings.collection_weights
            else ""
        )
        sizes = part_sizes(self)
        listed = ", ".join(f"{count(size, settings.unit)} ({part})" for part, size in sizes.items())
        if len(sizes) > MOST_LISTED:
            listed = f"{sizes.min():,} to {sizes.max():,} {settings.units} in each of {len(sizes)}"
        parts = f"; by {settings.grouped}: {own} over {listed}; {corrected} {settings.family_words(len(sizes))}"
        tests = (TESTS["randomization"] if settings.collection_weights else test, test, correction)
        random = any(declared.is_random(n) for declared in tests if declared)
        resampled = f", {settings.n_resamples:,} resamples, seed {settings.rng}" if random else ""
        level = shown_level(self)
        adjusted = f", {100 * level:g} % adjusted ones" if level != settings.interval_level else ""
        return (
            f"{words[0].upper()}{words[1:]}{side} over {settings.sized(n)}{weighted}; "
            f"{corrected} {settings.family_words(1)}{parts if len(sizes) else ''}; "
            f"{100 * settings.interval_level:g} % intervals{adjusted}{resampled}"
        )


Record = TypeVar("Record", bound=ComparisonRecord)


def with_notes(record: Record, *notes: str) -> Record:
    """Return the comparison with more notes; a repeated one is kept once."""
    return replace(record, notes=tuple(dict.fromkeys([*record.notes, *notes])))


def with_settings(record: Record, **changed: Any) -> Record:
    """Return the comparison with other settings."""
    return replace(record, settings=replace(record.settings, **changed))


def kept(record: ComparisonRecord) -> KeptScores:
    """Return what a comparison keeps besides its public fields."""
    return record._kept  # noqa: SLF001 - machinery, so no attribute of the public class


def with_kept(record: Record, **changed: Any) -> Record:
    """Return the comparison with more that is kept."""
    return replace(record, _kept=replace(kept(record), **changed))


def overall(record: Record) -> Record:
    """Return the comparison over all queries alone, without the rows of collections or slices."""
    if not (grouped := record.settings.grouped):
        return record
    rows = record.table[record.table[grouped] == TOGETHER]
    rows = rows.drop(columns=grouped).reset_index(drop=True)
    return replace(with_settings(record, grouped=""), table=rows)


def part_of_row(record: ComparisonRecord) -> list[str]:
    """Return the collection or slice of each row; "" for rows over all queries."""
    if not (grouped := record.settings.grouped):
        return [""] * len(record.table)
    return ["" if part == TOGETHER else str(part) for part in record.table[grouped]]


def part_sizes(record: ComparisonRecord) -> pd.Series[int]:
    """Return the number of queries of each collection or slice that was tested by itself."""
    if not (grouped := record.settings.grouped):
        return pd.Series(dtype=int)
    is_tested = (record.table[grouped] != TOGETHER) & record.table["p_value"].notna()
    rows = record.table[is_tested]
    return rows.groupby(grouped, sort=False)["n_queries"].first()


def shown_level(record: ComparisonRecord) -> float:
    """Return the level of the intervals that tables show: adjusted ones, if there are any."""
    bare = record.table[["ci_low_adjusted", "ci_high_adjusted"]].isna().all(axis=None)
    return record.settings.interval_level if bare else record.settings.adjusted_level


def parted(record: ComparisonRecord) -> pd.Series[bool]:
    """Return a mask of the rows: True if only one of adjusted p and interval shows the claim."""
    claim, table = CLAIMS[record.settings.claim], record.table
    sign = np.nan_to_num(directions(record), nan=1.0) if claim.hypotheses else np.ones(len(table))
    ends = table[["ci_low_adjusted", "ci_high_adjusted"]].to_numpy(np.float64) * sign[:, None]
    within = claim.is_within(ends.min(axis=1), ends.max(axis=1), record.settings.margin)
    # An interval without ends belongs to differences without variance: it says nothing.
    known = np.isfinite(ends).any(axis=1) & table["p_adjusted"].notna().to_numpy()
    by_p = (table["p_adjusted"] <= record.alpha).to_numpy()
    return pd.Series(known & (within != by_p), index=table.index)


def parted_notes(record: ComparisonRecord) -> list[str]:
    """Return a note that names the rows of `parted` over all queries, and one for those of parts."""
    notes, rows = [], record.table.assign(part=part_of_row(record))[parted(record)]
    for _, own in rows.groupby(rows["part"] != ""):
        names = own["system"] + " against " + own["baseline"] + " by " + own["measure"]
        names += (", " + own["part"]).where(own["part"] != "", "")
        more = [f"{len(names) - MOST_LISTED} more"] if len(names) > MOST_LISTED else []
        notes.append(PARTED.format(rows="; ".join([*names[:MOST_LISTED], *more])))
    return notes


def main_measure(record: ComparisonRecord) -> str:
    """Return the measure that sentences speak of: the primary one, else the first."""
    return record.settings.primary or str(record.table["measure"].iloc[0])


def best_first(record: ComparisonRecord) -> dict[str, float]:
    """Return the mean of every system by the main measure over all queries, the best first.

    Means have the sign with which more is better. Empty if it is not known which are better.
    """
    rows, measure = overall(record).table, main_measure(record)
    sign = record.settings.direction(measure).sign
    rows = rows[rows["measure"] == (measure if sign else None)]
    means = dict(zip(rows["baseline"], sign * rows["mean_baseline"], strict=True))
    means |= dict(zip(rows["system"], sign * rows["mean_system"], strict=True))
    return dict(sorted(means.items(), key=lambda item: -item[1]))


def directions(record: ComparisonRecord) -> Floats:
    """Return a sign for each row: -1 if less is better by its measure, else 1; nan if unknown."""
    places, measures = pd.factorize(record.table["measure"])
    signs = [record.settings.direction(measure).sign or np.nan for measure in measures]
    return np.array(signs, np.float64)[places]


def gains(record: ComparisonRecord) -> pd.Series[float]:
    """Return the differences as gains: positive if the system is better, nan if that is unknown."""
    signed: pd.Series[float] = record.table["difference"] * directions(record)
    return signed


def known_means(record: ComparisonRecord) -> pd.DataFrame:
    """Return the means of a comparison without pairs."""
    if record.means is None or record.means.empty:
        raise InvalidInput(
            "the comparison has neither pairs nor means", remedy="compare two systems"
        )
    return record.means
