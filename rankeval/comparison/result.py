"""compare -> Comparison: pair by query, test, correct, wrap."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from rankeval._checks import check_share
from rankeval._registry import chosen, unknown
from rankeval.errors import ConventionMismatch, InvalidInput, RankevalWarning
from rankeval.evaluation import Evaluation
from rankeval.measures import Measure, measure
from rankeval.render import layouts, plots, tables
from rankeval.significance import TESTS, draws_at_random, paired_test
from rankeval.significance.bootstrap import FEW_QUERIES
from rankeval.significance.effects import outcomes, standardised_effect
from rankeval.significance.families import (
    CORRECTION_WORDS,
    TEST_WORDS,
    adjust_by_family,
    family_notes,
    resolution_notes,
)
from rankeval.significance.multiple import CORRECTIONS, family_level
from rankeval.significance.paired import Floats, check_alternative, differences, refuse_fold_scores
from rankeval.significance.pairing import PairedScores, pair_scores
from rankeval.significance.power import detectable_difference
from rankeval.significance.resampling import seed_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Scores = Evaluation | pd.DataFrame

COLUMNS = (
    "measure", "baseline", "system", "n_queries", "mean_baseline", "mean_system", "difference", "ci_low", "ci_high",
    "p_value", "p_adjusted", "effect_size", "wins", "ties", "losses", "detectable_difference",
)  # fmt: skip
FAMILIES = ("all", "measure")
JSON_FORMAT = "rankeval.comparison/1"


@dataclass(frozen=True, eq=False)
class Comparison:
    """Differences between systems, with what is needed to believe them.

    Attributes
    ----------
    table : DataFrame
        A row per measure and pair: measure, baseline, system, n_queries, mean_baseline, mean_system, difference,
        ci_low, ci_high (each pair's own interval of the mean difference, not simultaneous), p_value, p_adjusted,
        effect_size (Cohen's d_z: mean over standard deviation of the differences), wins, ties, losses (ties: equal
        up to a relative 1e-12), detectable_difference (found with 80 % power at the family's level, which for
        Bonferroni, Holm, max-T and Tukey is alpha divided by the size of the family).
    evaluations : mapping of str to Evaluation or DataFrame
        What was compared; empty after `from_json`.
    baseline : str or None
        The system that the others are held against; None for all pairs.
    test, correction, family, alternative : str
        As asked for.
    confidence_level : float
        Of the intervals; alpha is 1 less this.
    n_resamples, rng : int
        Resamples and seed of the tests that have them.
    n_comparisons : int
        Size of the family that p_adjusted accounts for.
    notes : tuple of str
        Sentences that a reader of the numbers must see.
    primary : str or None
        The only measure that is confirmatory, if one was fixed beforehand; others carry no stars.
    """

    table: pd.DataFrame
    evaluations: Mapping[str, Scores]
    baseline: str | None
    test: str
    correction: str
    family: str
    confidence_level: float
    rng: int
    n_comparisons: int
    notes: tuple[str, ...] = ()
    primary: str | None = None
    alternative: str = "two-sided"
    n_resamples: int = 9999

    @property
    def caption(self) -> str:
        """The settings in one line: test, number of queries, family, level, seed."""
        n = int(self.table["n_queries"].iloc[0])
        side = "" if self.alternative == "two-sided" else f", one-sided ({self.alternative})"
        family = f"{self.n_comparisons} comparison{'' if self.n_comparisons == 1 else 's'}"
        family += " per measure" if self.family == "measure" else ""
        random = any(draws_at_random(name, n) for name in (self.test, self.correction))
        resampled = f", {self.n_resamples:,} resamples, seed {self.rng}" if random else ""
        words = CORRECTION_WORDS[self.correction]
        test = TEST_WORDS[self.test]
        return (
            f"{test[0].upper()}{test[1:]}{side} over {n:,} queries; {words} over {family}; "
            f"{100 * self.confidence_level:g} % intervals{resampled}"
        )

    def with_notes(self, *notes: str) -> Comparison:
        """Return the comparison with more notes, each once."""
        return replace(self, notes=tuple(dict.fromkeys([*self.notes, *notes])))

    def without_adjustment(self, note: str) -> Comparison:
        """Return the comparison without adjusted p-values (nan), and with the note that says why."""
        return replace(self, table=self.table.assign(p_adjusted=np.nan)).with_notes(note)

    def to_markdown(self, *, layout: str = "comparisons") -> str:
        """Return a Markdown table; for the layouts see `to_latex`."""
        return tables.to_markdown(**self._shown(layout))

    def to_latex(self, *, layout: str = "comparisons", label: str = "") -> str:
        r"""Return a LaTeX table (booktabs).

        Parameters
        ----------
        layout : {"comparisons", "systems"}, default "comparisons"
            A row per comparison with all its figures; or, with a baseline, a row per system and a column per
            measure: means, best in bold, second underlined, a star where the adjusted p is at most alpha.
        label : str, optional
            What ``\ref`` refers to.
        """
        return tables.to_latex(**self._shown(layout), label=label)

    def plot(self, *, system: str | None = None, baseline: str | None = None, measure: str | None = None) -> Figure:
        """Draw the differences with their intervals, or, given a system, its differences query by query.

        Parameters
        ----------
        system : str, optional
            Draw this system's per-query differences from `baseline`.
        baseline : str, optional
            By default the comparison's own.
        measure : str, optional
            By default the primary or first one.

        Returns
        -------
        Figure
            Not registered with pyplot. In the first form colour marks an adjusted p of at most alpha, and the shaded
            band the differences that so many queries cannot be counted on to show.
        """
        if system is None:
            return self._plot_intervals()
        baseline = baseline or self.baseline
        if baseline is None:
            raise InvalidInput("all pairs were compared; say against which baseline= the differences are to be drawn")
        measure = measure or self.primary or str(self.table["measure"].iloc[0])
        for name in (system, baseline):
            if name not in self.evaluations:
                raise unknown("evaluation of the system", name, self.evaluations)
        one, other = (_frame(self.evaluations[name])[measure] for name in (system, baseline))
        common = one.index.intersection(other.index)
        values = pd.Series(differences(one[common], other[common]), index=common)
        return plots.query_differences(values, system=system, baseline=baseline, measure=measure)

    def to_json(self) -> str:
        """Return table and settings as JSON, without the evaluations; numbers survive to the last bit."""
        settings = {
            name: getattr(self, name) for name in self.__dataclass_fields__ if name not in ("table", "evaluations")
        }
        columns = {name: [_to_plain(value) for value in self.table[name]] for name in COLUMNS}
        return json.dumps({"format": JSON_FORMAT, **settings, "table": columns}, indent=1, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Comparison:
        """Read what `to_json` wrote; `evaluations` is empty."""
        try:
            fields = json.loads(text)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInput(f"this is no comparison: it is no JSON ({error}); pass what to_json wrote") from error
        if not isinstance(fields, dict) or fields.pop("format", None) != JSON_FORMAT:
            raise InvalidInput(f"this is no comparison: its format is not {JSON_FORMAT!r}; pass what to_json wrote")
        try:
            table = pd.DataFrame({name: [_from_plain(v, name) for v in fields["table"][name]] for name in COLUMNS})
            return cls(**{**fields, "table": table, "evaluations": {}, "notes": tuple(fields["notes"])})
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            why = " ".join(f"{type(error).__name__}: {error}".split())
            raise InvalidInput(f"this is no whole comparison ({why}); pass what to_json wrote") from error

    def __str__(self) -> str:
        return tables.to_text(**self._shown("comparisons"))

    def _repr_html_(self) -> str:
        return tables.to_html(**self._shown("comparisons"))

    def _clear(self) -> pd.Series[bool]:
        """Mark the rows that are confirmatory and whose adjusted p is at most alpha."""
        within = self.table["p_adjusted"] <= _alpha(self.confidence_level)
        return within if self.primary is None else within & (self.table["measure"] == self.primary)

    def _shown(self, layout: str) -> dict[str, Any]:
        if layout == "comparisons":
            shown = layouts.by_comparison(self.table, level=self.confidence_level)
            return {**shown, "caption": self.caption, "notes": self.notes}
        if layout != "systems":
            raise unknown("layout", layout, ("comparisons", "systems"))
        if self.baseline is None:
            raise InvalidInput('layout="systems" marks differences from a baseline; compare with baseline= for it')
        star = f"* marks an adjusted p of at most {_alpha(self.confidence_level):g} against {self.baseline}"
        shown = layouts.by_system(self.table, baseline=self.baseline, clear=self._clear())
        return {**shown, "caption": self.caption, "notes": (star, *self.notes)}

    def _plot_intervals(self) -> Figure:
        t = self.table
        label = t["system"] if self.baseline is not None else t["system"] + " - " + t["baseline"]
        against = "difference of means" if self.baseline is None else f"difference from {self.baseline}"
        return plots.intervals(
            t.assign(label=label, clear=self._clear()),
            label="label",
            group="measure",
            clear="clear",
            band="detectable_difference",
            xlabel=f"{against}, {100 * self.confidence_level:g} % intervals\n"
            f"shaded: what {int(t['n_queries'].iloc[0]):,} queries cannot be counted on to show",
            caption=self.caption,
        )


def compare(
    systems: Mapping[str, Scores],
    *,
    baseline: str | None = None,
    measures: str | Measure | Sequence[str | Measure] | None = None,
    test: str = "t",
    correction: str = "holm",
    family: str = "all",
    confidence_level: float = 0.95,
    alternative: str = "two-sided",
    missing: str = "error",
    n_resamples: int = 9999,
    rng: int | np.random.Generator | None = 0,
) -> Comparison:
    """Compare systems query by query, and correct for the number of comparisons made.

    Parameters
    ----------
    systems : mapping of str to Evaluation or DataFrame
        Name -> scores: evaluations, or frames with query ids as index, or as column ``qid``, and a column per measure;
        frames of polars too.
    baseline : str, optional
        Hold the others against this one; by default all pairs are compared.
    measures : str, Measure or sequence of them, optional
        By default all that the systems share and that are means or geometric means over queries; sums such as NumRel
        are compared only when asked for. Geometric means are compared on their log scale.
    test : str, default "t"
        "t", "randomization", "bootstrap" (symmetric studentised), "wilcoxon", "sign", "bootstrap_shift",
        "bootstrap_percentile", "bootstrap_bca".
    correction : str, default "holm"
        "holm", "bonferroni", "bh" (false discovery rate only), "max_t" (sign flips joint over the family), "tukey"
        (randomised, all pairs only), "none". An adjusted p is never below its raw one.
    family : {"all", "measure"}, default "all"
        What is corrected for: all comparisons made here, or those within one measure.
    confidence_level : float, default 0.95
        Of the intervals, each for its own pair; alpha is 1 less this.
    alternative : {"two-sided", "greater", "less"}, default "two-sided"
        "greater": the system has the greater mean, which is the better one of all measures but those of which less is
        better.
    missing : {"error", "skip"}, default "error"
        Queries that only some systems have: refuse, or compare on the queries common to all. What an empty ranking is
        worth is known to `rankeval.evaluate` alone.
    n_resamples : int, default 9999
        For tests and corrections that resample.
    rng : int, Generator or None, default 0
        Seed; the one used is recorded.

    Returns
    -------
    Comparison
        Its notes say what a reader must know, such as that so large a family can show nothing with so few resamples.

    Raises
    ------
    ConventionMismatch
        Evaluations whose conventions or judgments differ.
    QueryIdError
        Query ids that are repeated, missing, or not the same everywhere.
    InvalidInput
        Fewer than two systems or queries, scores that are not finite, weighted evaluations.
    UnknownName
        A baseline, measure, test or setting that does not exist.

    Examples
    --------
    >>> import pandas as pd
    >>> bm25 = pd.DataFrame({"AP": [0.2, 0.4, 0.6]}, index=["q1", "q2", "q3"])
    >>> ltr = pd.DataFrame({"AP": [0.9, 0.5, 0.4]}, index=["q3", "q2", "q1"])
    >>> row = compare({"bm25": bm25, "ltr": ltr}, baseline="bm25").table.iloc[0]
    >>> print(f"{row.difference:.2f} [{row.ci_low:.2f}, {row.ci_high:.2f}], p = {row.p_adjusted:.3f}")
    0.20 [-0.05, 0.45], p = 0.074
    """
    _check_settings(systems, baseline, test, correction, family, confidence_level)
    side = check_alternative(alternative)
    if correction == "tukey" and side != "two-sided":
        raise InvalidInput(f'tukey is two-sided, found alternative={alternative!r}; use correction="max_t"')
    _refuse_unlike(systems)
    frames = {str(name): _frame(scores) for name, scores in systems.items()}
    labels, label_notes = _chosen_labels(systems, frames, measures)
    paired = pair_scores(frames, labels, missing=missing)
    pairs = _pairs(list(frames), baseline)
    seed = seed_of(rng)
    d = _differences(paired.scores, pairs)
    options: dict[str, Any] = {"alternative": side, "n_resamples": n_resamples, "rng": seed}
    result = paired_test(test, d, confidence_level=confidence_level, **options)
    size = d.shape[1] if family == "all" else len(pairs)
    adjusted = adjust_by_family(result.p_value, d, paired.scores, pairs, correction, size, options)
    level = family_level(_alpha(confidence_level), correction, size)
    counts = outcomes(d)
    means = paired.scores.mean(axis=0).T  # (n_measures, n_systems)
    names = list(frames)
    table = pd.DataFrame(
        {
            "measure": [label for label in labels for _ in pairs],
            "baseline": [names[i] for _ in labels for i, _ in pairs],
            "system": [names[j] for _ in labels for _, j in pairs],
            "n_queries": len(d),
            "mean_baseline": means[:, [i for i, _ in pairs]].ravel(),
            "mean_system": means[:, [j for _, j in pairs]].ravel(),
            "difference": d.mean(axis=0),
            "ci_low": result.ci_low,
            "ci_high": result.ci_high,
            "p_value": result.p_value,
            "p_adjusted": adjusted,
            "effect_size": standardised_effect(d),
            "wins": counts.wins,
            "ties": counts.ties,
            "losses": counts.losses,
            "detectable_difference": detectable_difference(len(d), d.std(axis=0, ddof=1), level, alternative=side),
        },
        columns=COLUMNS,
    )
    notes = [*result.notes, *label_notes, *_pairing_notes(paired), *family_notes(test, correction, size)]
    notes += resolution_notes(test, correction, size, len(d), n_resamples, side, _alpha(confidence_level))
    if len(d) < FEW_QUERIES and test in ("bootstrap_shift", "bootstrap_percentile", "bootstrap_bca"):
        warnings.warn(result.notes[-1], RankevalWarning, stacklevel=2)
    return Comparison(
        table, dict(zip(frames, systems.values(), strict=True)), baseline, test, correction, family,
        confidence_level, seed, size, tuple(notes), alternative=side, n_resamples=n_resamples,
    )  # fmt: skip


def _check_settings(
    systems: Mapping[str, Scores], baseline: str | None, test: str, correction: str, family: str, level: float
) -> None:
    if not isinstance(systems, Mapping) or len(systems) < 2:
        found = f"{len(systems)}" if isinstance(systems, Mapping) else type(systems).__name__
        raise InvalidInput(f"systems is a mapping of at least two names to their scores, found {found}")
    for kind, name, known in (
        ("test", test, TESTS),
        ("correction", correction, CORRECTIONS),
        ("family", family, FAMILIES),
    ):
        chosen(kind, name, known)
    if baseline is not None:
        chosen("baseline", baseline, list(systems))
    if correction == "tukey" and baseline is not None:
        raise InvalidInput('tukey compares all pairs; leave out baseline=, or use correction="max_t" for one baseline')
    check_share("confidence_level", level, least=0.5)


def _refuse_unlike(systems: Mapping[str, Scores]) -> None:
    evaluations = {name: each for name, each in systems.items() if isinstance(each, Evaluation)}
    for name, each in evaluations.items():
        if each.weights is not None:
            raise InvalidInput(f"system {name!r} was evaluated with query weights; the tests count every query once")
    first, *others = evaluations or [""]
    for name in others:
        if reasons := evaluations[first].differs_from(evaluations[name]):
            raise ConventionMismatch(f"{first!r} and {name!r} must not be compared: {'; '.join(reasons)}")


def _chosen_labels(
    systems: Mapping[str, Scores],
    frames: Mapping[str, pd.DataFrame],
    wanted: str | Measure | Sequence[str | Measure] | None,
) -> tuple[list[str], list[str]]:
    """Return the measures to compare, and what to say about those left out."""
    first = map(str, next(iter(frames.values())))
    everywhere = [label for label in first if all(label in frame for frame in frames.values())]
    if wanted is not None:
        asked = [wanted] if isinstance(wanted, str | Measure) or not isinstance(wanted, Iterable) else list(wanted)
        if not asked:
            raise InvalidInput("measures is empty: name at least one, or leave it out for all that are shared")
        return list(dict.fromkeys(_label_of(each, everywhere) for each in asked)), []
    chosen = [label for label in everywhere if _aggregate(systems, label) in ("mean", "gmean")]
    if not chosen:
        columns = "; ".join(f"{name!r} has {', '.join(map(str, frame))}" for name, frame in frames.items())
        raise InvalidInput(f"the systems share no measure that is a mean over queries: {columns}")
    seen = dict.fromkeys(str(label) for frame in frames.values() for label in frame)
    notes = [f"not compared, since only some systems have it: {x}" for x in seen if x not in everywhere]
    scale = [f"{x} is compared on its log scale" for x in chosen if _aggregate(systems, x) == "gmean"]
    return chosen, notes + scale


def _label_of(wanted: str | Measure, labels: Sequence[str]) -> str:
    """Find a measure among the labels by its name, or by meaning the same ("ndcg_cut_10" for "nDCG@10")."""
    if wanted in labels:
        return str(wanted)
    for label in labels:
        try:
            if measure(label) == measure(wanted):
                return label
        except InvalidInput:  # a frame's column need not be one of our measures
            continue
    raise unknown("measure", str(wanted), labels)


def _aggregate(systems: Mapping[str, Scores], label: str) -> str:
    """Return how a measure is aggregated; columns of frames are means."""
    for each in systems.values():
        if isinstance(each, Evaluation) and label in each.measure_names:
            return each.measures[each.measure_names.index(label)].family.aggregate
    return "mean"


def _frame(scores: Scores) -> pd.DataFrame:
    if isinstance(scores, Evaluation):
        return scores.per_query
    refuse_fold_scores(scores)
    to_pandas = getattr(scores, "to_pandas", None)  # polars, Arrow
    frame = to_pandas() if callable(to_pandas) else scores
    if isinstance(frame, pd.DataFrame):
        # Ids left in a column are no measure, and the row numbers beside them are no ids.
        return frame.set_index("qid") if "qid" in frame.columns else frame
    raise InvalidInput(f"systems are evaluations or DataFrames of per-query scores, found {type(scores).__name__}")


def _pairs(names: list[str], baseline: str | None) -> list[tuple[int, int]]:
    if baseline is None:
        return list(combinations(range(len(names)), 2))
    first = names.index(str(baseline))
    return [(first, j) for j in range(len(names)) if j != first]


def _differences(scores: Floats, pairs: Sequence[tuple[int, int]]) -> Floats:
    """Return a column per measure and pair, the pairs of a measure beside each other."""
    d = differences(scores[:, [j for _, j in pairs]], scores[:, [i for i, _ in pairs]])
    return d.transpose(0, 2, 1).reshape(len(d), -1)


def _pairing_notes(paired: PairedScores) -> list[str]:
    if not paired.absent:
        return []
    counts = ", ".join(f"{name} {count}" for name, count in paired.absent.items())
    return [f"queries that a system lacked were left out for all systems: {counts}"]


def _alpha(confidence_level: float) -> float:
    return round(1 - confidence_level, 12)


def _to_plain(value: Any) -> Any:
    """Turn a cell into what JSON can hold: numbers that are not finite become words."""
    plain = value.item() if isinstance(value, np.generic) else value
    return str(plain) if isinstance(plain, float) and not math.isfinite(plain) else plain


def _from_plain(value: Any, column: str) -> Any:
    return float(value) if isinstance(value, str) and column not in ("measure", "baseline", "system") else value
