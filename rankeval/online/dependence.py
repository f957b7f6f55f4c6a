"""Dependence: tests that a click depends on position and document alone.

Propensities, and the values of rankings that were not shown, take this for granted. A
position-based user clicks with the probability propensity(position) * attraction(query, document).
Each check adds a covariate z to this product, and asks if the log has more or fewer clicks where z
is large::

    P(click) = propensity * attraction * (1 + b z)          b = 0 if the assumption holds

    check             z of an item                              fails with
    clicks above      clicks above it in the same list          cascade: a user who has clicked stops
    documents above   the attraction above it                   cascade, and any other effect of what is above
    own attraction    its attraction, times how near the top    trust in the top: clicks on irrelevant documents there

The first check is the score test of the position-based model against models in which clicks depend
on clicks, such as UBM and DBN. It works in lists of a fixed order too. It has the side "fewer"
alone: the clicks of users who differ in how far they look are correlated, although values are
unbiased. The other checks need documents at several positions. They compare what lists got with
what they are worth by the model: lists with much attraction at the top, and others.

The traps. There are as many attractions as documents, and each is poorly known, so nothing may rest
on an estimate of them: z is centred within each document, weighted by propensity, and then
attraction cancels (as in `all_pairs`). It is also made orthogonal to the propensities, so that an
error in these matters little. And an attraction that comes from the same clicks would find itself:
impressions fall into two halves at random, and z comes from the other half. The ranks in the
ranking to value, if there is one, say much of the attraction of documents with few clicks. A
ranking that learned from these very clicks fails as trust does; its value is off too.

What is left is a sum over independent units, queries or impressions, with the mean 0: a t test. All
checks together err in at most `LEVEL` of the logs of position-based users (Bonferroni), and in
`RANKED` more with a ranking to value. Perplexity has no such level: by chance, UBM and DBN foresee
the clicks of position-based users better. So it is told, and does not decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import t

from rankeval.comparison.headline import p_words
from rankeval.online.fitting import TINY, all_pairs, curvature, pairs_of
from rankeval.online.logs import ClickLog, Ints
from rankeval.online.models import ClickModel
from rankeval.significance.declarations import Floats


class ClickCheck(NamedTuple):
    """A check of the clicks that are due."""

    # Levels at which fewer, and more, clicks than due fail it
    fewer: float
    more: float
    words: str
    meaning: str


DUE = "{:.0f} % of the clicks due"
CHECKS = {
    "clicks above": ClickCheck(0.001, 0.0, f"items below a click got {DUE}", "Users stop after a click (cascade)"),
    "documents above": ClickCheck(
        0.001, 0.001, f"items below more attractive documents got {DUE}", "Clicks depend on the documents above"
    ),
    "own attraction": ClickCheck(
        0.006, 0.001, f"attractive documents at the top, and others below, got {DUE}",
        "Position and relevance do not multiply (trust in the top: clicks on irrelevant documents)",
    ),
}  # fmt: skip
LEVEL = sum(check.fewer + check.more for check in CHECKS.values())
RANKED = 0.01
"""The level is higher by this where the ranking to value says more of attraction."""
BROKEN = "a click depends on more than position and document, so propensities and values of other orders are off"
REMEDY = "compare the rankings by interleaving or in an A/B test"
LEARNED = ", or the scores have learned from these clicks"
DEPTH = 10
"""Positions that are looked at."""
STRENGTH = 30.0
"""Looks at position 1 that the mean attraction counts for, beside the looks of the document."""
MOST = 20_000
"""Impressions for the perplexities of click models."""
MANY = 50
"""From so many queries on, they are the units: no document is in two, so they share nothing."""


def dependence(log: ClickLog, scores: Floats | None = None) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return the checks of a log, and a note if one fails; scores are in the order of its items."""
    # Items below `DEPTH`, and at positions without a click, are left out.
    items = log.items.assign(pair=pairs_of(log)[0], score=0.0 if scores is None else -scores)
    items["rank"] = items.groupby("impression")["score"].rank(method="min").astype(np.int64)
    near = items["position"][items["clicked"] & (items["position"] <= DEPTH)].unique()
    items = items[items["position"].isin(near)]
    names = ("pair", "position", "rank")
    pair, place, rank = (np.unique(items[name], return_inverse=True)[1] for name in names)
    clicks, impression = items["clicked"].to_numpy(dtype=np.float64), items["impression"].to_numpy()
    query = np.unique(log.impressions["qid"].cat.codes, return_inverse=True)[1]
    table = tested(impression, pair, place, rank, clicks, query, log.counts)
    failed = table[table["fails"]]
    return table, () if failed.empty else (_note(failed, log, scored=scores is not None),)


def tested(
    impression: Ints, pair: Ints, place: Ints, rank: Ints, clicks: Floats, query: Ints, counts: Ints
) -> pd.DataFrame:
    """Return a row for each check: check, due, t, one-sided p-values and fails.

    Numbers are nan if the log says nothing.

    Items are in order of impression and place, which are codes, as are pairs and ranks; without a
    ranking to value, all ranks are 0. Each place has a click. Of each impression there is the
    query, as a code, and a count.
    """
    by_query = query.max() + 1 >= MANY
    unit = query if by_query else np.arange(len(query))
    n_checks = len(CHECKS)
    sums = np.zeros((n_checks, unit.max() + 1))
    # Of the items with a positive covariate, clicks and clicks due; and the sum of z by clicks.
    totals = np.zeros((3, n_checks))
    if len(impression):
        shown = _Shown.of(impression, pair, place, rank, clicks, counts)
        first = np.random.default_rng(0).binomial(counts, 0.5)
        for mine, other in ((first, counts - first), (counts - first, first)):
            half = _Half.of(shown, mine[impression])
            for row, covariate in enumerate(shown.covariates(other[impression])):
                z = half.centred(covariate)
                residual = half.clicks - half.due if by_query else half.spread
                sums[row] += np.bincount(unit[impression], z * residual, sums.shape[1])
                totals[:, row] += half.clicks[z > 0].sum(), half.due[z > 0].sum(), z @ half.clicks
    with np.errstate(invalid="ignore"):
        ratio, due = totals[2] / np.sqrt((sums**2).sum(axis=1)), totals[0] / totals[1]
    tails = np.asarray(t.cdf([ratio, -ratio], (sums != 0).sum(axis=1) - 1))
    levels = np.array([(check.fewer, check.more) for check in CHECKS.values()])
    levels[-1, 0] += RANKED * (rank.max(initial=0) > 0)
    p_fewer, p_more = tails
    columns = {"check": [*CHECKS], "due": due, "t": ratio, "p_fewer": p_fewer, "p_more": p_more}
    table = pd.DataFrame(columns)
    table["fails"] = (table[["p_fewer", "p_more"]] < levels).any(axis=1)
    return table


@dataclass(frozen=True)
class _Shown:
    """The items of a log; ``looked`` is how much the position of each is looked at."""

    impression: Ints
    pair: Ints
    place: Ints
    rank: Ints
    clicks: Floats
    looked: Floats

    @classmethod
    def of(
        cls, impression: Ints, pair: Ints, place: Ints, rank: Ints, clicks: Floats, counts: Ints
    ) -> _Shown:
        shape = pair.max() + 1, place.max() + 1
        cell, times = pair * shape[1] + place, counts[impression]
        weights = times, times * clicks
        tables = [np.bincount(cell, own, np.prod(shape)).reshape(shape) for own in weights]
        return cls(impression, pair, place, rank, clicks, all_pairs(*tables)[place])

    def covariates(self, times: Ints) -> list[Floats]:
        """Return the covariates of `CHECKS`; ``times`` is how often each item counts."""
        looks, clicks = times * self.looked, times * self.clicks

        def rate(code: Ints, prior: Floats, strength: float) -> Floats:
            known = np.bincount(code, clicks)[code] + strength * prior
            return np.asarray(known / (np.bincount(code, looks)[code] + strength))

        mean = np.full(len(looks), clicks.sum() / max(looks.sum(), TINY))
        attraction = rate(self.pair, mean, STRENGTH)
        ranked = rate(self.pair, rate(self.rank, mean, 1.0), STRENGTH)
        return [
            self._above(self.clicks),
            self._above(attraction * self.looked),
            ranked * -self.place,
        ]

    def _above(self, values: Floats) -> Floats:
        """Return the sum of the values of the items above in the same impression."""
        before, starts = np.cumsum(values) - values, np.diff(self.impression, prepend=-1) > 0
        return np.asarray(before - before[starts][np.cumsum(starts) - 1])


@dataclass(frozen=True)
class _Half:
    """The clicks of one half of the impressions, and those due by position and document."""

    shown: _Shown
    weight: Floats
    looks: Floats
    share: Floats
    curved: Floats
    clicks: Floats
    due: Floats
    spread: Floats

    @classmethod
    def of(cls, shown: _Shown, times: Ints) -> _Half:
        weight, clicks, n_places = times * shown.looked, times * shown.clicks, shown.place.max() + 1
        looks = np.asarray(np.bincount(shown.pair, weight), dtype=np.float64)
        looks[looks == 0] = 1.0
        cell, size = shown.pair * n_places + shown.place, len(looks) * n_places
        share = np.bincount(cell, weight, size).reshape(-1, n_places) / looks[:, None]
        by_pair = np.bincount(shown.pair, clicks)
        due = weight * (by_pair / looks)[shown.pair]
        # An item has a part in what is due to it, so residuals are too small (HC2; MacKinnon and
        # White, 1985).
        others = 1 - shown.looked / looks[shown.pair]
        # A row with a count is so many impressions, and its variance so many times that of one.
        room = np.where(others > 1e-9, others, np.inf)
        spread = (clicks - due) / np.sqrt(room * np.maximum(times, 1))
        return cls(shown, weight, looks, share, curvature(share, by_pair), clicks, due, spread)

    def centred(self, z: Floats) -> Floats:
        """Return a covariate without its part by document and its part by position."""
        pair, place = self.shown.pair, self.shown.place
        size, z = np.abs(z).max(), z - (np.bincount(pair, self.weight * z) / self.looks)[pair]
        slope = np.linalg.lstsq(self.curved, np.bincount(place, self.due * z), rcond=1e-9)[0]
        z = z - slope[place] + (self.share @ slope)[pair]
        # In lists of a fixed order, only rounding is left.
        return np.where(np.abs(z) > 1e-9 * size, z, 0.0)


def _note(failed: pd.DataFrame, log: ClickLog, *, scored: bool) -> str:
    """Return the sentence on the checks that fail; the first of them says most of the users."""
    facts = []
    for row in failed.to_dict("records"):
        p_value = p_words(min(row["p_fewer"], row["p_more"]))
        facts.append(f"{CHECKS[row['check']].words.format(100 * row['due'])} ({p_value})")
    first = failed["check"].iloc[0]
    facts += [_foreseen(log)] * (log.complete and first != "own attraction")
    learned = LEARNED if scored and first == "own attraction" else ""
    return f"{BROKEN}: {'; '.join(facts)}. {CHECKS[first].meaning}{learned}; {REMEDY}"


def _foreseen(log: ClickLog) -> str:
    """Return the perplexities of click models on the half of the impressions not fitted to."""
    drawn = np.random.default_rng(0).permutation(len(log.impressions))
    halves = np.array_split(np.arange(min(len(drawn), MOST)), 2)
    known, held_out = (log.subset(np.isin(drawn, half)) for half in halves)
    texts = []
    for name in ("pbm", "dbn", "ubm"):
        model = ClickModel(name).fit(known, tolerance=1e-3)
        texts.append(f"{name} {model.perplexity(held_out).overall:.3f}")
    return "perplexity of held-out lists: " + ", ".join(texts)
