"""Retell one comparison of TREC-COVID: write the tables and the picture of examples/guides/retold.md.

    python tests/calibration/measure_retold.py  # about 10 CPU seconds; needs ../shared/data/trec_covid_r5

The guide's own blocks are run by tests/packaging/test_guides.py. This script has what takes more than a few lines: the
table of claims, the halves of the topics, the shuffled names, and the picture, which carries its numbers as its
description. `test_retold` compares all of it with the guide.
"""

from __future__ import annotations

import io
import sys
from functools import cached_property
from itertools import combinations, pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import pandas as pd
from calibration.guard_tables import filled, table
from matplotlib.patches import Patch, Rectangle
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from scipy import stats

import rankeval as rk
from rankeval.render.plots import BAND, BETTER, INK, SOFT, Figure
from rankeval.significance.multiple import holm

ROOT = Path(__file__).parents[2]
COLLECTION = ROOT.parent / "shared" / "data" / "trec_covid_r5"
GUIDE = ROOT / "examples" / "guides" / "retold.md"
PICTURE = GUIDE.with_suffix(".png")
COMMENTS = [
    (f"<!-- {part} measured by tests/calibration/measure_retold.py -->", f"<!-- end of the {part} -->")
    for part in ("claims", "halves", "limits")
]
MEASURES = ["nDCG@20", "P@20", "Bpref", "AP"]
MEASURE, BASELINE, ALPHA = MEASURES[0], "bm25_bl_run5", 0.05
SPLITS, SEED = 1000, 0
RAW_ONLY = "#e0a030"

HALVES = """\
| shown to differ on one half by | pairs | other half: p ≤ .05, same winner | other half: the other run leads |
| --- | --- | --- | --- |
{rows}
The run that leads on one half also leads on the other half in {top} of the cases. On the half on which it was chosen,
its lead over the next run is {chosen:+.4f} on average. On the other half, the lead of the same run over the same next
run is {other:+.4f}.

**Without any true difference.** Shuffle the names of the {n_runs} runs within each topic, {splits:,} times, so that no
run is better than another. By raw p, {raw_pairs:.1f} of {n_pairs} pairs still differ on average, and at least one pair
differs in {raw_any} of the shuffles. By Holm's method, at least one pair differs in {holm_any}.
"""

LIMITS = """\
* **Small differences.** With {n} topics and this family, a true difference must be {least:.2f} to {most:.2f} to be
  shown 80 % of the time. It depends on the spread of the pair, and its median is {median:.2f}.
  If the lead of {first} were truly {lead:+.4f}, one planned test at .05 would need about {alone} topics
  to show it as often, and Bonferroni's method over {n_pairs} pairs about {family}.
* **Equality.** The {lost} pairs in amber are not shown to be equal. A correction also misses true differences.
* **Unjudged documents.** {open} of the {kept} pairs in green have a range in `pairs.bounds` that contains 0. Their
  order would turn if all unjudged documents of the loser had the highest grade and none of the winner's were relevant.
  In lists of judged documents only, {condensed} of the {kept} pairs are shown with the same winner, and {turned} with
  the other one.
* **The choice of a correction.** Of {n_pairs} pairs, Holm's method shows {kept}, max-T {max_t} and randomised Tukey
  {tukey}. Choose the correction before you look: a choice by the largest number is one more choice after the fact.
"""


class Retold:
    """The comparison, by common practice and by ours."""

    def __init__(self, folder: Path = COLLECTION) -> None:
        qrels = rk.Qrels.read(folder / "qrels.residual.txt.gz")
        options = {"measures": MEASURES, "convention": "trec_eval-9.0.8-float32"}
        paths = sorted((folder / "runs").glob("*.gz"))
        self.evs = {path.stem: rk.evaluate(qrels, rk.Run.read(path), **options) for path in paths}
        self.pairs = rk.compare(self.evs, measures=MEASURE)
        self.order = list(self.pairs.ranks["system"])  # best mean first

    @cached_property
    def scores(self) -> np.ndarray:
        """Scores of the primary measure, (n_topics, n_runs), best run first."""
        return np.column_stack([self.evs[name].per_query[MEASURE] for name in self.order])

    @cached_property
    def rows(self) -> dict[tuple[str, str], pd.Series]:
        """Each pair's row of the table of pairs, the run of the higher mean first."""
        return {winner_first(row): row for _, row in self.pairs.table.iterrows()}

    def status(self, pair: tuple[str, str]) -> str:
        """Return by which reading a pair differs: "kept", "raw only" or "neither"."""
        row = self.rows[pair]
        return "kept" if row.p_adjusted <= ALPHA else "raw only" if row.p_value <= ALPHA else "neither"

    @cached_property
    def counts(self) -> dict[str, int]:
        """Pairs by status."""
        found = [self.status(pair) for pair in self.rows]
        return {status: found.count(status) for status in ("kept", "raw only", "neither")}


def winner_first(row: pd.Series) -> tuple[str, str]:
    """Return both runs of a row, the one of the higher mean first."""
    return (row.system, row.baseline) if row.difference > 0 else (row.baseline, row.system)


def claims(one: Retold) -> str:
    """Return the table of claims: by common practice, here, and whether they stay."""
    first, second, third = one.order[:3]
    ranks = one.pairs.ranks.set_index("system")
    over = rk.compare(one.evs, baseline=BASELINE, measures=MEASURE)
    gain, best = over.table.set_index("system").loc[first], over.best
    bound = over.bounds.set_index("system").loc[first]
    shown, raw = (int((over.table[p] <= ALPHA).sum()) for p in ("p_adjusted", "p_value"))
    unjudged = f"unjudged documents could make it {bound.lower:+.3f} to {bound.upper:+.3f}"
    neighbours = [one.status(pair) for pair in pairwise(one.order)]
    lines = [
        (
            f"{run} is number {place}",
            f"mean {ranks['mean'][run]:.3f}",
            f"number {ranks.rank_low[run]} to {ranks.rank_high[run]}",
            "yes" if ranks.rank_low[run] == ranks.rank_high[run] else "no",
        )
        for place, run in enumerate((first, second), 1)
    ]
    lines += [_of_pair(one, (first, third)), _of_pair(one, (second, third))]
    lines += [
        (
            f"{first} beats {BASELINE} by {gain.difference:+.3f}",
            f"[{gain.ci_low:+.3f}, {gain.ci_high:+.3f}]",
            f"as the best of {len(over.table)}: [{best.ci_low:+.3f}, {best.ci_high:+.3f}]; {unjudged}",
            "a gain, yes" if min(best.ci_low, bound.lower) > 0 else "no",
        ),
        (f"{raw} of {len(over.table)} runs differ from {BASELINE}", f"{raw} p ≤ .05", f"{shown}", _share(shown, raw)),
        _of_counts("neighbours in the table differ", neighbours),
        _of_counts("pairs differ", [one.status(pair) for pair in one.rows]),
        *_of_measures(one),
    ]
    head = ["claim", "by common practice", "here", "stays?"]
    kept, amber, grey = one.counts.values()
    text = (
        f"Green: {kept} pairs are shown to differ by both. Amber: {amber} pairs, by raw p only."
        f" Grey: {grey} pairs, by neither."
    )
    return f"{table(head, lines)}\n![All pairs of {len(one.order)} runs, coloured by claim]({PICTURE.name})\n\n{text}\n"


def _of_pair(one: Retold, pair: tuple[str, str]) -> tuple[str, str, str, str]:
    row, (winner, other) = one.rows[pair], pair
    ends = sorted(np.sign(row.difference) * end for end in (row.ci_low_adjusted, row.ci_high_adjusted))
    return (
        f"{winner} beats {other} by {abs(row.difference):+.3f}",
        f"p = {row.p_value:.4f}",
        f"p = {row.p_adjusted:.4f}, [{ends[0]:+.3f}, {ends[1]:+.3f}]",
        "yes" if one.status(pair) == "kept" else "no",
    )


def _of_counts(what: str, statuses: list[str]) -> tuple[str, str, str, str]:
    kept, raw = statuses.count("kept"), len(statuses) - statuses.count("neither")
    return f"{raw} of {len(statuses)} {what}", f"{raw} p ≤ .05", f"{kept}", _share(kept, raw)


def _share(kept: int, claimed: int) -> str:
    return "yes" if kept == claimed else f"{kept} of {claimed}"


def _of_measures(one: Retold) -> list[tuple[str, str, str, str]]:
    """Return what choosing among measures adds: pairs with a star by any of them, and pairs with two winners."""
    found = rk.compare(one.evs, measures=MEASURES).table
    counts = []
    for p in ("p_value", "p_adjusted"):
        winners: dict[frozenset[str], set[str]] = {}
        for _, row in found[found[p] <= ALPHA].iterrows():
            winner, other = winner_first(row)
            winners.setdefault(frozenset((winner, other)), set()).add(winner)
        counts.append((len(winners), sum(len(of_pair) == 2 for of_pair in winners.values())))
    (any_raw, both_raw), (any_kept, both_kept) = counts
    family = f"in a family of {len(found)}"
    return [
        (
            f"{any_raw} of {len(one.rows)} pairs differ by one of {len(MEASURES)} measures",
            f"{any_raw} have a p ≤ .05",
            f"{any_kept} {family}",
            _share(any_kept, any_raw),
        ),
        (
            f"{both_raw} pairs have one winner by one measure, the other by another",
            f"{both_raw} have p ≤ .05 twice",
            f"{both_kept} {family}",
            _share(both_kept, both_raw),
        ),
    ]


def halves(one: Retold) -> str:
    """Return the table of claims made on half of the topics, held against the other half."""
    kinds = ["raw p", "Holm", "raw p, but not Holm", "neither"]
    totals, n_halves = np.zeros((len(kinds), 3)), 2 * SPLITS
    leads, top = np.zeros((n_halves, 2)), 0
    for number, (here, there) in enumerate(_split(one.scores)):
        (raw, adjusted, lead), (raw_there, _, lead_there) = map(_of_half, (here, there))
        same = np.sign(lead) == np.sign(lead_there)
        called, kept = raw <= ALPHA, adjusted <= ALPHA
        totals += [
            [chosen.sum(), (chosen & same & (raw_there <= ALPHA)).sum(), (chosen & ~same).sum()]
            for chosen in (called, kept, called & ~kept, ~called)
        ]
        best, second = np.argsort(-here.mean(axis=0), kind="stable")[:2]
        leads[number] = [half.mean(axis=0)[best] - half.mean(axis=0)[second] for half in (here, there)]
        top += there.mean(axis=0).argmax() == best
    lines = [
        f"| {kind} | {n / n_halves:.1f} | {_percent(again / n)} | {_percent(turned / n, 2)} |\n"
        for kind, (n, again, turned) in zip(kinds, totals, strict=True)
    ]
    raw, adjusted = _shuffled(one.scores)
    return HALVES.format(
        rows="".join(lines), top=_percent(top / n_halves, 0), chosen=leads[:, 0].mean(), other=leads[:, 1].mean(),
        splits=SPLITS, n_runs=len(one.order), n_pairs=len(one.rows), raw_pairs=raw.mean(),
        raw_any=_percent((raw > 0).mean(), 0), holm_any=_percent((adjusted > 0).mean()),
    )  # fmt: skip


def _percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f} %"


def _split(scores: np.ndarray):
    """Yield two halves of the topics, each half as the first of them once."""
    rng, n = np.random.default_rng(SEED), len(scores)
    for _ in range(SPLITS):
        topics = rng.permutation(n)
        parts = scores[topics[: n // 2]], scores[topics[n // 2 :]]
        yield parts
        yield parts[::-1]


def _of_half(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return raw p, Holm's p, and the mean differences of all pairs."""
    one, other = np.array(list(combinations(range(scores.shape[1]), 2))).T
    differences = scores[:, one] - scores[:, other]
    raw = stats.ttest_1samp(differences, 0.0).pvalue
    return raw, holm(raw), differences.mean(axis=0)


def _shuffled(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return how many pairs raw p and Holm call different if names are shuffled within topics."""
    rng = np.random.default_rng(SEED)
    found = [_of_half(rng.permuted(scores, axis=1))[:2] for _ in range(SPLITS)]
    raw, adjusted = np.array([[(p <= ALPHA).sum() for p in both] for both in found]).T
    return raw, adjusted


def limits(one: Retold) -> str:
    """Return what the corrected comparison cannot show."""
    first, second = one.scores.T[:2]
    lead, sd = (first - second).mean(), (first - second).std(ddof=1)
    kept = [pair for pair in one.rows if one.status(pair) == "kept"]
    bounds = {frozenset((row.system, row.baseline)): row for _, row in one.pairs.bounds.iterrows()}
    condensed = rk.compare(one.evs, measures=MEASURE, unjudged="skip").condensed
    judged = {winner_first(row) for _, row in condensed[condensed.p_adjusted <= ALPHA].iterrows()}
    others = {name: rk.compare(one.evs, measures=MEASURE, correction=name).table for name in ("max_t", "tukey")}
    detectable = one.pairs.table["detectable_difference"]
    return LIMITS.format(
        n=len(one.scores), least=detectable.min(), most=detectable.max(), median=detectable.median(),
        first=one.order[0], lead=lead, alone=rk.topics_needed(lead, sd),
        family=rk.topics_needed(lead, sd, alpha=ALPHA / len(one.rows)), n_pairs=len(one.rows),
        lost=one.counts["raw only"], kept=len(kept),
        open=sum(bounds[frozenset(pair)].lower <= 0 <= bounds[frozenset(pair)].upper for pair in kept),
        condensed=len(judged & set(kept)), turned=len(judged & {pair[::-1] for pair in kept}),
        **{name: int((found.p_adjusted <= ALPHA).sum()) for name, found in others.items()},
    )  # fmt: skip


def described(one: Retold) -> str:
    """Return what the picture shows, in words."""
    pairs = [f"{winner} > {other}: {one.status((winner, other))}" for winner, other in combinations(one.order, 2)]
    return f"{one.pairs.caption}; {MEASURE}; " + "; ".join(pairs)


def draw(one: Retold) -> Figure:
    """Return the picture: a cell for each pair, the better run by its row."""
    n, colors = len(one.order), {"kept": BETTER, "raw only": RAW_ONLY, "neither": BAND}
    figure = Figure(figsize=(7.2, 6.2), layout="constrained")
    axes = figure.subplots()
    for row, column in combinations(range(n), 2):
        status = one.status((one.order[row], one.order[column]))
        axes.add_patch(_cell(row, column, colors[status]))
        if status == "raw only":
            axes.text(column, row, "?", ha="center", va="center", fontsize=10, color=INK)
    means = one.scores.mean(axis=0)
    axes.set_yticks(range(n), [f"{name}  {mean:.3f}" for name, mean in zip(one.order, means, strict=True)], fontsize=9)
    axes.set_xticks(range(n), one.order, rotation=90, fontsize=9)
    axes.xaxis.tick_top()
    axes.tick_params(length=0, colors=INK)
    axes.set(xlim=(-0.5, n - 0.5), ylim=(n - 0.5, -0.5), aspect="equal")
    axes.spines[:].set_visible(False)
    words = {"kept": "better, adjusted p ≤ .05", "raw only": "better by raw p only (?)", "neither": "not shown"}
    handles = [
        Patch(color=colors[status], label=f"{count} pairs: {words[status]}") for status, count in one.counts.items()
    ]
    axes.legend(handles=handles, title="Row against column", loc="lower left", frameon=False, fontsize=10)
    axes.set_xlabel(f"{MEASURE}, {len(one.scores)} topics; paired t test, Holm over {len(one.rows)} pairs", color=SOFT)
    return figure


def _cell(row: int, column: int, color: str):
    return Rectangle((column - 0.46, row - 0.46), 0.92, 0.92, color=color, linewidth=0)


def retold(text: str, one: Retold) -> str:
    """Return the guide with the measured parts as they are now."""
    for part, comments in zip((claims, halves, limits), COMMENTS, strict=True):
        text = filled(text, part(one), comments)
    return text


def write_picture(one: Retold) -> None:
    """Write the picture in few colours, which makes it a third as large."""
    drawn, words = io.BytesIO(), PngInfo()
    draw(one).savefig(drawn, dpi=110)
    words.add_text("Description", described(one))
    Image.open(drawn).convert("RGB").quantize(64).save(PICTURE, optimize=True, pnginfo=words)


def main() -> None:
    one = Retold()
    GUIDE.write_text(retold(GUIDE.read_text("utf-8"), one), "utf-8")
    write_picture(one)


if __name__ == "__main__":
    main()
