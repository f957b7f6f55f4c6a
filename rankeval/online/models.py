"""Click models: how users come to click, fitted to a log, compared with it, and simulated.

All six models are walked down the list in the same way; they differ in the chance that an item is
examined::

    chance of a click = examined x attraction[qid, docid]

    pbm      examined = examination[position]
    ubm      examined = examination[position, position of the last click above, 0 for none]
    cascade, dcm, sdbn, dbn      examined follows from the clicks above: see ``rankeval.online.fitting``

Documents and queries become one code a pair, and lists a matrix of impressions by positions. Behind
the codes of the pairs that the model knows follow two: that of a pair that it does not know, and
that of a place without an item.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from math import isqrt
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from rankeval._arguments import explained
from rankeval._checks import check_count, count, few, refuse, require
from rankeval._registry import chosen
from rankeval._visible import escaping
from rankeval.comparison.recorded import Recorded
from rankeval.io.columns import labels
from rankeval.io.frames import as_table
from rankeval.online.fitting import (
    PAIR,
    TINY,
    Codes,
    Mask,
    Prior,
    cells,
    fit_chain,
    fit_factors,
    pairs_of,
    slot_starts,
)
from rankeval.online.logs import ClickLog
from rankeval.render.tables import Table
from rankeval.significance.declarations import Floats, Rng, generator_of

GIVEN_ABOVE = (
    "each probability is given the clicks above in the same list; all: over all shown items"
)
NO_RATES = "the parameters were given: there is no training log for click rates to compare with"
PLACE, SLOT, ONE = ("position",), ("position", "last_click"), ()
PARAMETERS: dict[str, dict[str, tuple[str, ...]]] = {
    "pbm": {"attraction": PAIR, "examination": PLACE},
    "cascade": {"attraction": PAIR},
    "dcm": {"attraction": PAIR, "continuation": PLACE},
    "sdbn": {"attraction": PAIR, "satisfaction": PAIR},
    "dbn": {"attraction": PAIR, "satisfaction": PAIR, "gamma": ONE},
    "ubm": {"attraction": PAIR, "examination": SLOT},
}
"""The parameters of each model and what their values are for, in the order in which the engines return them."""
STOPS = {"cascade": "always", "dcm": "position", "sdbn": "pair", "dbn": "pair"}
RATES = {"rate_by_position": "position", "rate_by_document": "pair"}
UNTOLD = "{0}: the log says nothing of {2:,} of {1:,} values, which are those of the prior"


@explained
@escaping
@dataclass(frozen=True, eq=False, repr=False)
class Perplexity(Recorded):
    """How well a click model foresees the clicks of a log, beside click rates.

    Attributes
    ----------
    table : DataFrame
        A row per position and one for ``all`` shown items. Columns: position, shown (items),
        perplexity; and if the model was fitted, rate_by_position and rate_by_document, the
        perplexities of two baselines from the log that it was fitted to: the click rate of each
        position, and that of each pair of query and document. 1 is perfect foresight, 2 a fair
        coin; less is better.
    model : str
        The name of the model.
    notes : tuple of str
        Sentences that a reader of the numbers must see.
    """

    _row_key = "position"
    _row_ends: ClassVar[Mapping[str, str]] = {"perplexity": ""}

    table: pd.DataFrame
    model: str
    notes: tuple[str, ...] = ()

    @property
    def overall(self) -> float:
        """The perplexity over all shown items."""
        return float(self.table["perplexity"].iloc[-1])

    def _laid_out(self) -> Table:
        return Table(
            self.table, caption=f"Perplexity of {self.model}, by position", notes=self.notes
        )


@explained
@escaping
class ClickModel:
    """A model of clicks: fitted to a log, or a known user if its parameters are given.

    Parameters
    ----------
    name : {"pbm", "cascade", "dcm", "sdbn", "dbn", "ubm"}
        The position-based model (Craswell et al., 2008), the cascade model (the same paper), the
        dependent click model (Guo, Liu and Wang, 2009), the simplified and the full dynamic
        Bayesian network (Chapelle and Zhang, 2009), and the user browsing model (Dupret and
        Piwowarski, 2008). Chuklin, Markov and de Rijke (2015) describe all.
    **parameters : Series, mapping, sequence or float
        Nothing, for `fit`; or all parameters of the model, as `parameters` describes them.
        Parameters by position may be a list that starts at position 1.

    Attributes
    ----------
    objectives : array
        Of `fit`: the log likelihood plus the log density of the prior, at the start of each
        iteration. It never falls.
    notes : tuple of str
        Of `fit`: how many values of a parameter rest on the prior alone.

    Raises
    ------
    UnknownName
        If there is no such model, or the model has no such parameter.
    InvalidInput
        If a parameter is missing, has another index, or is not a probability.

    Examples
    --------
    >>> from rankeval.online import ClickModel
    >>> user = ClickModel("pbm", attraction={("q1", "d1"): 1.0, ("q1", "d2"): 1.0}, examination=[1.0, 0.0])
    >>> user.simulate({"q1": ["d1", "d2"]}).items["clicked"].tolist()
    [True, False]
    """

    def __init__(self, name: str, **parameters: Mapping[Any, float] | ArrayLike | float) -> None:
        self.name: str = chosen("click model", name, PARAMETERS)
        for parameter in parameters:
            chosen(f"parameter of {name}", parameter, PARAMETERS[name])
        self.unknown: float | None = None
        self.objectives: Floats = np.zeros(0)
        self.notes: tuple[str, ...] = ()
        self._parameters: dict[str, Any] = {}
        self._rates: dict[str, Floats] = {}
        if parameters:
            lacking = [own for own in PARAMETERS[name] if own not in parameters]
            missing = f"{', '.join(lacking)} is missing"
            refuse((lacking, f"{name} needs all of its parameters or none; {missing}"))
            self._set(parameters)

    def __repr__(self) -> str:
        return f"ClickModel({self.name!r}, {', '.join(self._parameters) or 'not fitted'})"

    @property
    def parameters(self) -> dict[str, Any]:
        """A copy of the parameters by name.

        Returns
        -------
        dict of str to Series or float
            attraction: by (qid, docid), the probability that an examined item is clicked.
            examination: for pbm by position, for ubm by (position, last_click), the position of the
            last click above or 0. It is relative to position 1 without a click above: only its
            product with attraction can be known, so both are scaled after the fit, with their
            products unchanged. A value above 1 says that a position is examined more than the
            first. continuation: of dcm by position, the probability to go on after a click there;
            the last position has none. satisfaction: of sdbn and dbn by (qid, docid), the
            probability that a click satisfies, so that the user stops. gamma: of dbn, the
            probability that a user who is not satisfied goes on.
        """
        return deepcopy(self._parameters)

    def fit(
        self,
        log: ClickLog,
        *,
        prior: Prior = (1.0, 2.0),
        tolerance: float = 1e-5,
        max_iter: int = 1000,
    ) -> Self:
        """Fit the parameters to a log by expectation maximisation (EM), which starts at one half for each.

        Parameters
        ----------
        log : ClickLog
            Impressions with all positions; for pbm also single items.
        prior : tuple of float, default (1.0, 2.0)
            Clicks and impressions that are added to the counts of each parameter, so that few
            impressions do not make a probability 0 or 1; a pair that the log lacks has the
            attraction clicks / impressions. (0, 0) is maximum likelihood, with one half for such
            pairs.
        tolerance : float, default 1e-5
            EM ends if no parameter moves by more in an iteration. With 0 it takes ``max_iter``
            iterations, as other programs do.
        max_iter : int, default 1000
            The most iterations; a warning says if the tolerance is not reached.

        Returns
        -------
        ClickModel
            This model.

        Raises
        ------
        InvalidInput
            If the log has no impression, lacks positions (but for pbm, which needs items at each
            position), or is of several clicks by impression for the cascade model, which knows one.

        Notes
        -----
        The cascade model has a closed form, the clicks over the items down to the click, and its first iteration gives
        it. For sdbn and dcm the closed forms of the literature take the last click for the end of examination; here
        the chance that the user went on without a click is counted, so that the values are those of the model.
        """
        (codes, index), names, by_last = pairs_of(log), PARAMETERS[self.name], self.name == "ubm"
        n_pairs = len(index)
        pairs, clicked, _ = self._laid_by(log, codes, n_pairs)
        lists = pairs, clicked, log.counts
        depth, table = pairs.shape[1], cells(*lists, n_pairs=n_pairs, by_last=by_last)
        problem = "nothing is shown at a position that is above others"
        refuse((table["position"].nunique() < depth, problem))
        options: dict[str, Any] = {"n_pairs": n_pairs, "prior": prior}
        options |= {"tolerance": tolerance, "max_iter": max_iter}
        if self.name in STOPS:
            fitted = fit_chain(*lists, stops=STOPS[self.name], leaves="gamma" in names, **options)
        else:
            n_slots = int(slot_starts(depth + 1, by_last=by_last)[-1])
            of_cells = table[["pair", "slot", "shown", "hits"]].to_numpy().T
            fitted = fit_factors(*of_cells, n_slots=n_slots, **options)
        values, trials, self.objectives = fitted
        ends = [n_pairs, len(values) - ("gamma" in names)]
        attraction, second, gamma = np.split(values, ends)
        scale = float(second[0]) if "examination" in names else 1.0
        problem = "nothing is clicked at position 1, and examination is relative to it"
        refuse((scale == 0, problem, "give a prior"))
        parameters = {
            "attraction": pd.Series(attraction * scale, index),
            "examination": second / scale,
            "continuation": 1 - second,
            "satisfaction": second,
            "gamma": gamma.sum(),
        }
        self._set(parameters)
        notes = []
        for name, own in zip(names, np.split(trials, ends), strict=False):
            if n_unseen := (own == 0).sum():
                notes.append(UNTOLD.format(name, len(own), n_unseen))
        self.notes = tuple(notes)
        mean = prior[0] / prior[1] if prior[1] else 0.5
        self.unknown = mean * scale
        self._rates = {}
        for name, level in RATES.items():
            sums = table.groupby(level)[["hits", "shown"]].sum().add([*prior])
            self._rates[name] = np.append(sums["hits"] / sums["shown"], mean)
        return self

    def click_probabilities(self, log: ClickLog, *, unknown: float | None = None) -> Floats:
        """Return the probability of a click on each shown item, given the clicks above it in the same list.

        Parameters
        ----------
        log : ClickLog
            The impressions.
        unknown : float, optional
            Attraction, and satisfaction, of pairs that the model does not know; by default that of
            the prior of `fit`.

        Returns
        -------
        array of shape (n_items,)
            In the order of ``log.items``.

        Raises
        ------
        InvalidInput
            If the log has positions that the model lacks, or pairs that it lacks and ``unknown`` is
            not given. If the model is not fitted, or an impression has several clicks and the model
            is the cascade.
        """
        unknown = self.unknown if unknown is None else unknown
        pairs, clicked, shown = self._laid_by(log, self._known(log, unknown), -1)
        return self._walked(pairs, unknown, lambda at, _: clicked[:, at])[0][shown]

    def perplexity(self, log: ClickLog, *, unknown: float | None = None) -> Perplexity:
        """Say how well the model foresees the clicks of a log, best one that it was not fitted to.

        The perplexity is 2 to the mean of -log2 of the probability of each click or skip, given the
        clicks above it in the same list.

        Parameters
        ----------
        log, unknown
            As in `click_probabilities`.

        Returns
        -------
        Perplexity
            By position and overall, beside the perplexities of two click rates.

        Raises
        ------
        InvalidInput
            As `click_probabilities`.

        Examples
        --------
        >>> from rankeval.online import ClickModel
        >>> user = ClickModel("pbm", attraction={("q1", "d1"): 0.5}, examination=[1.0])
        >>> user.perplexity(user.simulate({"q1": ["d1"]}, n=9)).overall
        2.0
        """
        codes = self._known(log, self.unknown if unknown is None else unknown)
        chances = {"perplexity": self.click_probabilities(log, unknown=unknown)}
        weights = log.counts[log.items["impression"].to_numpy()]
        position = log.items["position"].to_numpy()
        clicks = log.items["clicked"].to_numpy(dtype=bool)
        at = {"rate_by_position": position - 1, "rate_by_document": codes}
        for name, rates in self._rates.items():
            chances[name] = rates[np.minimum(at[name], len(rates) - 1)]
        bits = {}
        with np.errstate(divide="ignore"):
            for name, chance in chances.items():
                bits[name] = -weights * np.log2(np.where(clicks, chance, 1 - chance))
        items = pd.DataFrame({"position": position, "shown": weights} | bits)
        table = items.groupby("position").sum()
        table.loc["all"] = table.sum()
        for name in bits:
            table[name] = 2 ** (table[name] / table["shown"])
        table = table.astype({"shown": np.int64})
        n_unknown = int(weights @ (codes == len(self._parameters["attraction"])))
        part = f"{n_unknown:,} of {count(int(weights.sum()), 'shown item')}"
        notes = [GIVEN_ABOVE]
        if n_unknown:
            notes.append(
                f"{part} are of pairs that the model does not know: they have a set attraction"
            )
        if np.isinf(table["perplexity"]).any():
            notes.append("the model gives probability 0 to a click or skip that happened")
        if not self._rates:
            notes.append(NO_RATES)
        notes += self.notes
        return Perplexity(table.reset_index(), self.name, tuple(dict.fromkeys(notes)))

    def simulate(
        self, rankings: Any, rng: Rng = 0, *, n: int = 1, unknown: float | None = None
    ) -> ClickLog:
        """Return the log of users who click as the model says.

        Parameters
        ----------
        rankings : mapping, DataFrame or ClickLog
            Lists of document ids by query; or a frame of impressions with columns qid, shown (the
            list) and others, such as user and arm, which are kept, and with the impressions' ids as
            column or index (an index with equal labels is replaced by numbers); or a log, whose
            impressions are shown again, each as often as it was.
        rng : int, Generator or None, default 0
            The source of randomness.
        n : int, default 1
            How often each impression is shown.
        unknown : float, optional
            Attraction, and satisfaction, of pairs that the model does not know; without it they are
            refused.

        Returns
        -------
        ClickLog
            A row per impression; numbered anew if one is shown several times. Empty lists are left
            out, and counted in ``excluded``.

        Raises
        ------
        InvalidInput
            If a list has pairs or positions that the model does not know; of models that are not
            fitted; and as `ClickLog.from_frame`.

        Examples
        --------
        >>> from rankeval.online import ClickModel
        >>> user = ClickModel("cascade", attraction={("q1", "d1"): 0.5, ("q1", "d2"): 1.0})
        >>> user.simulate({"q1": ["d1", "d2"]}, n=1000)
        ClickLog(1,000 impressions, 2,000 items, 1,000 clicks)
        position   impressions   clicks   click rate   ci low   ci high
        ───────────────────────────────────────────────────────────────
               1          1000      473       0.4730   0.4422    0.5040
               2          1000      527       0.5270   0.4960    0.5578
        """
        check_count("n", n)
        log, generator = rankings, generator_of(rng)
        if not isinstance(log, ClickLog):
            log = _listed(rankings)
        codes = self._known(log, unknown)
        unclicked = replace(log, items=log.items.assign(clicked=False))
        pairs, _, shown = self._laid_by(unclicked, codes, -1)
        rows = np.repeat(np.arange(len(shown)), n * log.counts)
        place = np.cumsum(shown).reshape(shown.shape) - 1

        def drawn(_: int, chance: Floats) -> Mask:
            return generator.random(len(rows)) < chance

        _, clicked = self._walked(pairs[rows], unknown, drawn)
        again = shown[rows]
        items = log.items.take(place[rows][again]).reset_index(drop=True)
        items = items.assign(impression=np.nonzero(again)[0], clicked=clicked[again])
        impressions = log.impressions.drop(columns="count", errors="ignore").take(rows)
        if len(rows) > len(log.impressions):
            impressions.index = pd.RangeIndex(len(rows), name="impression")
        return ClickLog(impressions, items, log.complete, log.excluded)

    def _set(self, parameters: Mapping[str, Any]) -> None:
        """Set the parameters, each in the order of the index that it should have."""
        for name, value in parameters.items():
            require(np.ndim(value) < 2, name, value, "a mapping, a list or a number")
        pairs = pd.Series(parameters["attraction"]).index
        held: dict[str, Any] = {}
        for name, keys in PARAMETERS[self.name].items():
            value, by_id = parameters[name], isinstance(parameters[name], Mapping | pd.Series)
            values = pd.Series(value)
            numbers = labels(values, name)
            values = pd.Series(numbers, index=values.index, dtype=np.float64, name=name)
            n, places = len(values), pd.RangeIndex(1, len(values) + 1)
            slots = pd.MultiIndex.from_arrays([*np.add(np.tril_indices(isqrt(2 * n)), [[1], [0]])])
            index = {PAIR: pairs, SLOT: slots, ONE: places[:1]}.get(keys, places)
            each = f"a probability for each {', '.join(keys) or 'user'}; positions are from 1 on"
            fits = len(index) == n and index.nlevels == max(len(keys), 1) and values.index.is_unique
            require(fits and (by_id or np.ndim(value) == 1) == bool(keys), name, value, each)
            values = values.reindex(index) if by_id else values.set_axis(index)
            most = np.inf if name == "examination" else 1
            require(values.between(0, most).all(), name, value, each)
            held[name] = values.rename_axis(list(keys)) if keys else float(values.iloc[0])
        if "examination" in held:
            highest = held["attraction"].max() * held["examination"].max()
            problem = "attraction times examination is a probability, and some would be above 1"
            refuse((highest > 1 + 1e-9, problem))
        self._parameters = held

    def _laid_by(self, log: ClickLog, codes: Codes, none: int) -> tuple[Codes, Mask, Mask]:
        """Return pairs (or ``none``), clicks, and if one is shown, by impression and position."""
        lacks = "the log does not have all positions of its impressions"
        problem = f"{self.name} follows users down the list, and {lacks}"
        refuse((self.name != "pbm" and not log.complete, problem, "fit pbm"))
        impression, position = log.items["impression"].to_numpy(), log.items["position"].to_numpy()
        shown = np.zeros((len(log.impressions), position.max() + 1), dtype=bool)
        shown[impression, position] = True
        shown = shown[:, 1:]
        clicked, pairs = np.zeros_like(shown), np.full(shown.shape, none, np.int32)
        # Items are in order of impression and position.
        clicked[shown], pairs[shown] = log.items["clicked"], codes
        several = int(log.counts @ (clicked.sum(axis=1) > 1)) if self.name == "cascade" else 0
        more = f"{count(several, 'impression')} with several clicks: cascade knows one"
        refuse((several, more, "fit dcm or sdbn"))
        return pairs, clicked, shown

    def _known(self, log: ClickLog, unknown: float | None) -> Codes:
        """Return the code of the pair of each item, for unknown pairs the one behind the known."""
        refuse((not self._parameters, "the model has no parameters", "fit it, or give them"))
        require(unknown is None or 0 <= unknown <= 1, "unknown", unknown, "a probability")
        (codes, pairs), deepest = pairs_of(log), log.items["position"].max()
        known = self._parameters["attraction"].index.get_indexer(pairs)
        lacking, n = pairs[known < 0], np.size([*self._parameters.values()][-1])
        n_pairs = count(len(lacking), "pair")
        lacks = f"the model does not know {n_pairs} of query and document: {few([*lacking])}"
        most = {"pbm": n, "ubm": isqrt(2 * n), "dcm": n + 1}.get(self.name, deepest)
        refuse(
            (unknown is None and len(lacking), lacks, "give unknown="),
            (deepest > most, f"the model knows {most} positions, and a list has {deepest:,}"),
        )
        known = np.where(known < 0, len(self._parameters["attraction"]), known)
        return known.astype(np.int32)[codes]

    def _walked(
        self, pairs: Codes, unknown: float | None, decide: Callable[[int, Floats], Mask]
    ) -> tuple[Floats, Mask]:
        """Return the chance of a click at each place given the clicks above, and the clicks."""
        held, tail = self._parameters, [unknown or 0.0, 0.0]
        attraction, gamma = np.append(held["attraction"], tail)[pairs], held.get("gamma", 1.0)
        stays: Floats = np.append(held.get("continuation", ()), np.zeros(pairs.shape[1]))
        if "satisfaction" in held:
            stays = 1 - np.append(held["satisfaction"], tail)[pairs.T]
        chances, clicked = np.empty(pairs.shape), np.zeros(pairs.shape, dtype=bool)
        examined, last = np.ones(len(pairs)), np.zeros(len(pairs), dtype=np.int64)
        for place, start in enumerate(slot_starts(pairs.shape[1], by_last=self.name == "ubm")):
            if "examination" in held:
                examined = held["examination"].to_numpy()[start + last]
            chance = np.minimum(examined * attraction[:, place], 1.0)
            chances[:, place], clicked[:, place] = chance, decide(place, chance)
            click = clicked[:, place]
            if self.name == "ubm":
                last[click] = place + 1
            elif self.name in STOPS:
                skipped = (examined - chance) / np.maximum(1 - chance, TINY)
                examined = gamma * np.where(click, stays[place], skipped)
        return chances, clicked


def _listed(rankings: Any) -> ClickLog:
    """Return impressions without clicks, from lists by query or a frame with a list per row."""
    if isinstance(rankings, Mapping):
        rankings = pd.DataFrame({"qid": [*rankings], "shown": [*rankings.values()]})
    frame = as_table(rankings)
    frame = frame if isinstance(frame, pd.DataFrame) else pd.DataFrame(frame.to_pydict())
    if not frame.index.is_unique:
        frame = frame.reset_index(drop=True)
    if "impression" not in frame:
        frame = frame.rename_axis("impression").reset_index()
    no_clicks: list[Any] = [[]] * len(frame)
    log = ClickLog.from_frame(frame.assign(clicked=no_clicks))
    others = frame.drop_duplicates("impression").set_index("impression")
    others = others[others.columns.difference(["shown", *log.impressions])]
    return replace(log, impressions=log.impressions.join(others))
