"""Interleaving: one list made of several rankings, with the credit that a click on each of its documents gives.

A scheme plays a game of chance: from the documents that are shown already it follows which moves there are, how probable
each is, and how a click on the documents that it adds is credited. Two players use the same moves::

    moves(rankings, depth, shown, state) -> [(weight, documents, parts, over, next state), ...]

    Interleaver.show       draws one move after another           -> a list and its credits
    interleaving_bias      follows all moves, with their weights   -> the share of each ranking, as a fraction

Weights, parts and ``over`` are whole numbers: the credit of a document is part / over, and each number is exact. A page
that is served needs the standard library only; the optimised scheme calls SciPy once for each pair of rankings.

The trap: once a ranking has nothing left to offer, all later documents come from the other one. Whoever credits these
pays for length. So nothing is credited from there on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from hashlib import blake2b
from itertools import zip_longest
from math import lcm
from random import Random
from typing import Any

from rankeval._checks import check_count, few, refuse, require, said, unique_keys, whole_number
from rankeval._registry import chosen

Id = str | int
Rankings = tuple[tuple[Id, ...], ...]
Move = tuple[int, Sequence[Id], tuple[tuple[int, ...], ...], int, Any]
Moves = Sequence[Move]

FORMAT = "rankeval.interleaved/1"
DEEPEST_OPTIMIZED = 10
"""A list of 10 can be made in up to 1,024 ways, which is the size of the linear program."""

_DECAY = 3
"""The softmax of probabilistic interleaving falls with the third power of the rank (Hofmann et al., 2011)."""


@dataclass(frozen=True)
class Interleaved:
    """A list made of several rankings, and its credit record: all that is needed to credit clicks later.

    Attributes
    ----------
    ids : tuple of str or int
        The documents to show, from the top.
    credits : mapping of str to tuple of Fraction
        Of each ranking, the credit that it gets for a click on each document if that is the only click; 0 to 1.
    impression : str or int
        The id of the impression.
    scheme : str
        The scheme.
    user, qid : str, int or None
        The user and the query, if they were given.
    ranks : mapping of str to tuple of int or None
        Of balanced interleaving, the rank of each document in each ranking: several clicks are credited by ranks.
    seal : str
        A keyed hash of all that stands above. A record that was changed does not fit its seal.
    """

    ids: tuple[Id, ...]
    credits: Mapping[str, tuple[Fraction, ...]]
    impression: Id
    scheme: str
    user: Id | None = None
    qid: Id | None = None
    ranks: Mapping[str, tuple[int | None, ...]] = field(default_factory=dict)
    seal: str = ""

    def credited(self, clicked: Collection[Id]) -> dict[str, Fraction]:
        """Return the credit of each ranking for the clicks of this impression.

        It is the sum of the credits of the documents clicked. Balanced interleaving looks at the lowest document
        clicked: with k its better rank, a ranking gets one for each click within its first k (Joachims, 2003).

        Parameters
        ----------
        clicked : collection of str or int
            The documents clicked, all of them shown. A repeated id counts once.

        Examples
        --------
        >>> il = Interleaver("team_draft")
        >>> il.show({"A": ["d1", "d2"], "B": ["d1", "d3"]}, impression="i1").credited([])
        {'A': Fraction(0, 1), 'B': Fraction(0, 1)}
        """
        unknown = [one for one in clicked if one not in self.ids]
        require(not unknown, "clicked", few(unknown), "documents of the list")
        places = [place for place, one in enumerate(self.ids) if one in clicked]
        if not self.ranks:
            return {name: sum((row[at] for at in places), Fraction(0)) for name, row in self.credits.items()}
        k = min((row[at] for row in self.ranks.values() for at in places[-1:] if row[at] is not None), default=0)
        within = {name: [1 for at in places if (row[at] or k + 1) <= k] for name, row in self.ranks.items()}
        return {name: Fraction(len(ones)) for name, ones in within.items()}

    def to_json(self) -> str:
        """Return the record as one line of JSON. Credits that are no whole numbers are texts such as ``"1/3"``."""
        return f'{self._text[:-1]}, "seal": "{self.seal}"}}'

    @classmethod
    def from_json(cls, record: str | bytes | Mapping[str, Any], *, salt: str | None = None) -> Interleaved:
        """Return the record of a line of JSON, or of the object that was read from it.

        Parameters
        ----------
        record : str, bytes or mapping
            What `to_json` returned.
        salt : str, optional
            The salt of the interleaver: then a record that does not fit its seal is refused.

        Raises
        ------
        InvalidInput
            If this is no credit record, or was changed.

        Examples
        --------
        >>> shown = Interleaver("balanced").show({"A": ["d1"], "B": ["d2"]}, impression="i1")
        >>> Interleaved.from_json(shown.to_json()) == shown
        True
        """
        try:
            text = isinstance(record, (str, bytes))
            given = json.loads(record, object_pairs_hook=unique_keys) if text else dict(record)
            form, rows, ranks = given.pop("format"), given.pop("credits"), given.pop("ranks", {})
            found = cls(
                **given | {"ids": tuple(given["ids"])},
                credits={name: tuple(map(Fraction, row)) for name, row in rows.items()},
                ranks={name: tuple(row) for name, row in ranks.items()},
            )
            lengths = {len(set(found.ids)), *map(len, found.credits.values()), *map(len, found.ranks.values())}
            fits = form == FORMAT and lengths == {len(found.ids)} and min(min(row) for row in found.credits.values()) >= 0
        except (AttributeError, KeyError, TypeError, ValueError, ZeroDivisionError) as error:
            refuse((True, f"this is no credit record: {said(error)}"), argument="record")
        require(fits, "record", record, f"a credit record of the format {FORMAT}, a credit for each document")
        changed = salt is not None and found.seal != found._sealed(_key(salt))
        refuse((changed, f"the record of impression {found.impression!r} was changed, or has another salt"))
        return found

    @cached_property
    def _text(self) -> str:
        rows = {
            name: [str(one) if one.denominator > 1 else one.numerator for one in row]
            for name, row in self.credits.items()
        }
        about = {"format": FORMAT, "impression": self.impression, "user": self.user, "qid": self.qid}
        ranks = {"ranks": self.ranks} if self.ranks else {}
        return json.dumps(about | {"scheme": self.scheme, "ids": self.ids, "credits": rows} | ranks)

    def _sealed(self, key: bytes) -> str:
        return blake2b(self._text.encode(), digest_size=16, key=key).hexdigest()


@dataclass(frozen=True)
class Interleaver:
    """Make one list of several rankings for each impression, so that clicks compare the rankings.

    It keeps no state. All chance follows from the salt, the scheme and the impression: the same impression gets the same
    list in each process and thread. Serving needs the standard library only, but for the optimised scheme.

    Parameters
    ----------
    scheme : {"balanced", "team_draft", "probabilistic", "optimized"}
        "balanced": rankings take turns, and a coin says which begins (Joachims, 2003). Biased under random clicks for
        some pairs, see `rankeval.online.interleaving_bias`. "team_draft": in each round, each ranking adds its best
        document that is not shown yet, in an order drawn at random; a click is credited to the ranking that added the
        document (Radlinski et al., 2008). It takes two rankings or more (multileaving, Schuth et al., 2014).
        "probabilistic": each position draws a ranking by a coin, and a document of it by 1 / rank^3; a click gives each
        ranking the probability that it drew the document (Hofmann et al., 2011). "optimized": of all lists that follow
        the rankings from the top, a distribution with no bias under random clicks at any cut-off and the greatest
        sensitivity; a click is credited by the difference of the ranks (Radlinski and Craswell, 2013).
    depth : int, default 10
        The length of lists. Only as many documents of each ranking count. At most 10 for "optimized".
    salt : str
        Key of the hash: another one for each experiment, so that experiments are independent. Keep it secret if records
        travel through browsers, since it also seals them.

    Notes
    -----
    Rankings of unequal length: a round of the team draft is credited only if each order of the rankings fills it;
    "probabilistic" credits nothing once a ranking is exhausted; "optimized" credits the part in which both rankings have
    documents. Otherwise a longer ranking would be paid for its length.

    Examples
    --------
    >>> il = Interleaver("team_draft", salt="exp7")
    >>> shown = il.show({"A": ["d1", "d2", "d3"], "B": ["d2", "d4"]}, impression="i1", user="u1")
    >>> sorted(shown.ids)
    ['d1', 'd2', 'd3', 'd4']
    >>> shown == il.show({"B": ["d2", "d4"], "A": ["d1", "d2", "d3"]}, impression="i1", user="u1")
    True
    """

    scheme: str
    depth: int = 10
    salt: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        _check_scheme(self.scheme, self.depth)
        require(isinstance(self.salt, str), "salt", self.salt, "text")

    @cached_property
    def _hash_key(self) -> bytes:
        return _key(self.salt)

    def show(
        self, rankings: Mapping[str, Iterable[Id]], *, impression: Id, user: Id | None = None, qid: Id | None = None
    ) -> Interleaved:
        """Return the list of an impression with its credit record.

        Parameters
        ----------
        rankings : mapping of str to list of str or int
            Name -> document ids from the top. Two rankings; two or more for "team_draft". The order of the names plays
            no part.
        impression : str or int
            The id of this impression: another one each time that a list is shown.
        user, qid : str or int, optional
            The user and the query, for the record. Comparisons are made by users, so give the user.

        Raises
        ------
        InvalidInput
            If a ranking is empty, repeats a document or has ids that are neither text nor integers, or if there are too
            few or too many rankings.
        """
        names = sorted(rankings)
        lists = _checked({name: rankings[name] for name in names}, self.scheme, self.depth)
        about = {"impression": impression, "user": user, "qid": qid}
        for argument, value in about.items():
            fits = isinstance(value, str) and value or type(value) is int or (value is None and argument != "impression")
            require(fits, argument, value, "an id: text or an integer")
        seed = blake2b(json.dumps([self.scheme, impression]).encode(), key=self._hash_key).digest()
        bits = Random(int.from_bytes(seed)).getrandbits
        ids: tuple[Id, ...] = ()
        rows: list[tuple[Fraction, ...]] = []
        state: Any = None
        while moves := SCHEMES[self.scheme](lists, self.depth, ids, state):
            target = bits(64) * sum(move[0] for move in moves) >> 64
            for weight, added, parts, over, following in moves:
                if (target := target - weight) < 0:
                    break
            ids, state = (*ids, *added), following
            rows += [tuple(_fraction(part, over) for part in row) for row in parts]
        credits = dict(zip(names, zip(*rows, strict=True), strict=True))
        ranks = _ranks(lists, ids) if self.scheme == "balanced" else ()
        record = Interleaved(ids, credits, scheme=self.scheme, ranks=dict(zip(names, ranks, strict=False)), **about)
        object.__setattr__(record, "seal", record._sealed(self._hash_key))
        return record


def interleaving_bias(
    scheme: str, a: Iterable[Id], b: Iterable[Id], *, relevant: Collection[Id] | None = None, depth: int = 10
) -> dict[str, Fraction]:
    """Return the share of the credit that each of two rankings gets under one random click.

    The click falls on each document with the same probability, so that a fair scheme gives each ranking 1/2. With
    ``relevant``, it falls on one of these documents, if that one is shown: a scheme that sees the better ranking gives
    it more than 1/2. All lists are followed with their probabilities, and shares are exact; those of "optimized" are so
    within 1e-12, as the distribution is solved in floating point.

    Parameters
    ----------
    scheme : str
        As in `rankeval.online.Interleaver`.
    a, b : list of str or int
        Document ids from the top.
    relevant : collection of str or int, optional
        The documents that users click, all alike; by default all. Others are never clicked.
    depth : int, default 10
        The length of lists.

    Returns
    -------
    dict of str to Fraction
        ``{"A": share, "B": share}``; they add up to 1, and are 1/2 each if no click is credited.

    Raises
    ------
    InvalidInput
        If a ranking is refused by `rankeval.online.Interleaver`, or a relevant document is in neither.

    Notes
    -----
    "probabilistic" has the most lists. Rankings of 7 documents that differ take a second, and each further document four
    times as long.

    Examples
    --------
    Balanced interleaving favours B here, under clicks that say nothing:

    >>> interleaving_bias("balanced", ["a", "b", "c"], ["b", "c", "a"])
    {'A': Fraction(1, 3), 'B': Fraction(2, 3)}

    Team draft is fair, but does not see that B is better for those who look for c:

    >>> interleaving_bias("team_draft", ["a", "b", "c"], ["b", "c", "a"])
    {'A': Fraction(1, 2), 'B': Fraction(1, 2)}
    >>> interleaving_bias("team_draft", ["a", "b", "c"], ["b", "c", "a"], relevant=["c"])
    {'A': Fraction(1, 2), 'B': Fraction(1, 2)}
    """
    _check_scheme(scheme, depth)
    rankings = _checked({"a": a, "b": b}, scheme, depth)
    strangers = set(relevant or ()).difference(*rankings)
    require(not strangers and (relevant is None or relevant), "relevant", relevant, f"documents among the first {depth}")

    @cache
    def credit(shown: frozenset[Id], state: Any) -> tuple[Fraction, Fraction]:
        moves, sums = SCHEMES[scheme](rankings, depth, shown, state), [Fraction(0), Fraction(0)]
        for weight, added, parts, over, following in moves:
            later = credit(shown.union(added), following)
            for side in (0, 1):
                own = sum(row[side] for one, row in zip(added, parts, strict=True) if not relevant or one in relevant)
                sums[side] += weight * (Fraction(own, over) + later[side])
        whole = sum(move[0] for move in moves) or 1
        return sums[0] / whole, sums[1] / whole

    gained = credit(frozenset(), None)
    whole = sum(gained)
    return {name: one / whole if whole else Fraction(1, 2) for name, one in zip("AB", gained, strict=True)}


def _check_scheme(scheme: str, depth: int) -> None:
    chosen("scheme", scheme, SCHEMES)
    check_count("depth", depth)
    short = scheme != "optimized" or depth <= DEEPEST_OPTIMIZED
    require(short, "depth", depth, f"at most {DEEPEST_OPTIMIZED} for the optimized scheme")


def _checked(rankings: Mapping[str, Iterable[Id]], scheme: str, depth: int) -> Rankings:
    """Return the first documents of each ranking; ids are text or integers, in all rankings the same."""
    n, most = len(rankings), None if scheme == "team_draft" else 2
    require(n >= 2 and n <= (most or n), "rankings", [*rankings], "two rankings" + (", or more" if most is None else ""))
    lists, kinds = [], set()
    for name, ranking in rankings.items():
        ordered = isinstance(ranking, Iterable) and not isinstance(ranking, (str, bytes, Mapping, set, frozenset))
        require(ordered, f"ranking {name!r}", ranking, "a list of document ids, from the top")
        ids = tuple(one if isinstance(one, str) else whole_number(one) for one in ranking)
        refuse(
            (not name or not isinstance(name, str), "has a name that is no text"),
            (not ids, "is empty"),
            (None in ids or "" in ids, "has an id that is neither text nor an integer"),
            (len(set(ids)) < len(ids), "has a document twice"),
            argument=f"ranking {name!r}",
        )
        kinds.update(map(type, ids))
        lists.append(ids[:depth])
    refuse((int in kinds and len(kinds) > 1, "ids are text and integers; give all of them one type"))
    return tuple(lists)


def _key(salt: str) -> bytes:
    return blake2b(salt.encode()).digest()


@lru_cache(4096)
def _fraction(part: int, over: int) -> Fraction:
    return Fraction(part, over)


def _ranks(rankings: Rankings, ids: Iterable[Id]) -> list[tuple[int | None, ...]]:
    places = [{one: rank for rank, one in enumerate(ranking, start=1)} for ranking in rankings]
    return [tuple(map(row.get, ids)) for row in places]


def _balanced(rankings: Rankings, depth: int, shown: Collection[Id], state: Any) -> Moves:
    """Both lists of two rankings that take turns, each document once; the better rank gets a single click."""
    moves: list[Move] = []
    for ordered in (rankings, rankings[::-1]) if not shown else ():
        turns = dict.fromkeys(one for turn in zip_longest(*ordered) for one in turn if one is not None)
        ids = (*turns,)[:depth]
        ranks = zip(*_ranks(rankings, ids), strict=True)
        best = tuple(tuple(int(one == min(filter(None, row))) for one in row) for row in ranks)
        moves.append((1, ids, best, 1, None))
    return moves


def _team_draft(rankings: Rankings, depth: int, shown: Collection[Id], state: Any) -> Moves:
    """The picks of the rankings that wait in this round: each the best document that is not shown."""
    if len(shown) == depth:
        return ()
    waiting, paid = state or ((), False)
    left = [[one for one in ranking if one not in shown] for ranking in rankings]
    waiting = [place for place in waiting if left[place]]
    if not waiting:
        waiting = [place for place, rest in enumerate(left) if rest]
        paid = _is_filled(left, min(len(rankings), depth - len(shown)))
    rows = _units(len(left))
    return [
        (1, left[place][:1], (rows[place if paid else -1],), 1, ((*waiting[:turn], *waiting[turn + 1 :]), paid))
        for turn, place in enumerate(waiting)
    ]


@cache
def _units(n: int) -> tuple[tuple[int, ...], ...]:
    """Return a row for each of n rankings in which it has all credit, and one in which none has any."""
    return tuple(tuple(int(place == other) for other in range(n)) for place in range(n + 1))


def _is_filled(left: Sequence[Sequence[Id]], picks: int) -> bool:
    """Say whether each order of the rankings fills a round.

    A ranking fails if the others may take all that it has left. The picks before its own are ``picks - 1`` at most, so
    each of them is among the first ``picks - 1`` of another ranking. For two rankings this is exact.
    """
    for place, rest in enumerate(left):
        taken = {one for other, ids in enumerate(left) if other != place for one in ids[: picks - 1]}
        if len(rest) < picks and taken.issuperset(rest):
            return False
    return True


def _probabilistic(rankings: Rankings, depth: int, shown: Collection[Id], state: Any) -> Moves:
    """The draws of one document by a coin and the softmax of a ranking, credited by the probability of each coin."""
    if len(shown) == depth:
        return ()
    a, b = (
        {one: weight for one, weight in zip(ranking, _softmax(len(ranking)), strict=True) if one not in shown}
        for ranking in rankings
    )
    of_a, of_b = sum(a.values()), sum(b.values())
    if not a or not b:
        return [(weight, (one,), ((0, 0),), 1, None) for one, weight in (a | b).items()]
    # P(A drew it) / P(A or B drew it), with both fractions over the same denominator.
    parts = {one: (a.get(one, 0) * of_b, b.get(one, 0) * of_a) for one in a | b}
    return [(sum(part), (one,), (part,), sum(part), None) for one, part in parts.items()]


@cache
def _softmax(length: int) -> tuple[int, ...]:
    common = lcm(*range(1, length + 1))
    return tuple((common // rank) ** _DECAY for rank in range(1, length + 1))


def _optimized(rankings: Rankings, depth: int, shown: Collection[Id], state: Any) -> Moves:
    return () if shown else _solved(rankings, depth)


@lru_cache(4096)
def _solved(rankings: Rankings, depth: int) -> Moves:
    """Solve for the distribution over lists that is fair at each cut-off and most sensitive.

    A click on a document credits A with rank in B less rank in A, if that is positive, and B the other way round; a
    document that a ranking does not have stands behind its last one. Fair: at each position the expected difference is
    0. The sensitivity of a list is the entropy of the winner of one click at position i with probability in proportion
    to 1 / i, times the probability that the click has a winner. If a ranking is longer, the rest of it follows without
    credit.
    """
    import numpy as np
    from scipy.optimize import linprog

    shared = min(map(len, rankings))
    heads = tuple(ranking[:shared] for ranking in rankings)
    lists: set[tuple[Id, ...]] = {()}
    for _ in range(min(depth, len({*heads[0], *heads[1]}))):
        lists = {(*ids, next(one for one in head if one not in ids)) for ids in lists for head in heads if {*head} - {*ids}}
    ordered = sorted(lists)
    ranks = [_ranks(heads, ids) for ids in ordered]
    gains = np.array([[(y or shared + 1) - (x or shared + 1) for x, y in zip(*row, strict=True)] for row in ranks])
    seen = 1 / np.arange(1, gains.shape[1] + 1)
    wins = np.stack([(gains > 0) @ seen, (gains < 0) @ seen]) / seen.sum()
    decided = wins.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        sensitivity = -np.nansum(wins * np.log2(wins / decided), axis=0)
    fair = np.vstack([np.ones(len(ordered)), gains.T])
    target = np.r_[1.0, np.zeros(gains.shape[1])]
    solution = linprog(-sensitivity, A_eq=fair, b_eq=target, method="highs-ds")
    # The solver stops at 1e-7; at the corner that it found the equations are solved to the last digits.
    used = np.flatnonzero(solution.x > 1e-9)
    weights = np.linalg.lstsq(fair[:, used], target)[0]
    moves: list[Move] = []
    for place, weight in zip(used, weights, strict=True):
        rest = [one for one in dict.fromkeys((*rankings[0], *rankings[1])) if one not in ordered[place]]
        ids = (*ordered[place], *rest)[:depth]
        parts = [(max(gain, 0), max(-gain, 0)) for gain in gains[place].tolist()]
        parts += [(0, 0)] * (len(ids) - len(parts))
        moves.append((max(0, round(weight * 2**60)), ids, tuple(parts), shared, None))
    return moves


SCHEMES: dict[str, Callable[[Rankings, int, Collection[Id], Any], Moves]] = {
    "balanced": _balanced,
    "team_draft": _team_draft,
    "probabilistic": _probabilistic,
    "optimized": _optimized,
}
