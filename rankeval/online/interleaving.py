"""Interleaving: one list made of several rankings, with the credit that a click on each of its documents gives.

A scheme is a game of chance: the documents that are shown already say which moves there are, how probable each is, and
how a click on the documents that it adds is credited. Two players use the same moves::

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
from bisect import bisect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from hashlib import blake2b
from itertools import accumulate, chain, zip_longest
from math import lcm
from random import Random
from typing import Any, cast

from rankeval._checks import check_count, few, refuse, require, said, unique_keys, whole_number
from rankeval._registry import chosen
from rankeval.errors import InvalidInput

Id = str | int
Rankings = tuple[tuple[Id, ...], ...]
Row = tuple[int, ...]
Moves = Sequence[tuple[int, Sequence[Id], Sequence[Row], int, Any]]

FORMAT = "rankeval.interleaved/1"
DEEPEST_OPTIMIZED = 10
"""A list of 10 can be made in up to 1,024 ways, which is the size of the linear program."""

_END = "end"
"""The state after a move that makes the whole list."""


@dataclass(frozen=True)
class Interleaved:
    """A list made of several rankings, and its credit record: all that is needed to credit clicks later.

    Attributes
    ----------
    ids : tuple of str or int
        The documents to show, from the top.
    credits : mapping of str to tuple of Fraction
        Of each ranking, the credit that it gets for a click on each document, 0 to 1. Of balanced interleaving, the
        rank of each document in it, 0 if it does not have it: there the ranks of all clicked documents count together.
    impression : str or int
        The id of the impression.
    scheme : str
        The scheme.
    user, qid : str, int or None
        The user and the query, if they were given.
    seal : str
        A keyed hash of all that stands above. A record that was changed does not fit its seal.
    """

    ids: tuple[Id, ...]
    credits: Mapping[str, tuple[Fraction, ...]]
    impression: Id
    scheme: str
    user: Id | None = None
    qid: Id | None = None
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
        rows = [*zip(*self.credits.values(), strict=True)]
        gained = _gained(self.scheme, [row for one, row in zip(self.ids, rows, strict=True) if one in clicked])
        return {name: Fraction(gain) for name, gain in zip(self.credits, gained or [0] * len(rows[0]), strict=True)}

    def to_json(self) -> str:
        """Return the record as one line of JSON. Credits that are no whole numbers are texts such as ``"1/3"``."""
        return f'{self._text[:-1]}, "seal": "{self.seal}"}}'

    @classmethod
    def from_json(cls, record: str | Mapping[str, Any], *, salt: str | None = None) -> Interleaved:
        """Return the record of a line of JSON, or of the object that was read from it.

        Parameters
        ----------
        record : str or mapping
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
            given = json.loads(record, object_pairs_hook=unique_keys) if isinstance(record, str) else dict(record)
            refuse((given.pop("format") != FORMAT, f"its format is not {FORMAT}"))
            rows = {name: tuple(map(Fraction, row)) for name, row in given.pop("credits").items()}
            found = cls(**given | {"ids": tuple(given["ids"])}, credits=rows)
            lengths = {len(set(found.ids)), *map(len, rows.values())}
            known = found.scheme in SCHEMES and None not in map(valid_id, (found.impression, *found.ids))
            fits = known and lengths == {len(found.ids)} and min(map(min, rows.values())) >= 0
            refuse((not fits, "its scheme, ids and credits do not fit together"))
        except (AttributeError, KeyError, TypeError, ValueError, ZeroDivisionError) as error:
            raise InvalidInput(f"this is no credit record: {said(error)}", argument="record") from error
        changed = salt is not None and found.seal != hashed(found._text, salt, 16).hex()
        refuse((changed, f"the record of impression {found.impression!r} was changed, or has another salt"))
        return found

    @cached_property
    def _text(self) -> str:
        rows = {
            name: [str(one) if one.denominator > 1 else one.numerator for one in row]
            for name, row in self.credits.items()
        }
        about = {"format": FORMAT, "impression": self.impression, "user": self.user, "qid": self.qid}
        return json.dumps(about | {"scheme": self.scheme, "ids": self.ids, "credits": rows})


@dataclass(frozen=True)
class Interleaver:
    """Make one list of several rankings for each impression, so that clicks compare the rankings.

    It keeps no state. All chance follows from the salt, the scheme and the impression: the same impression gets the
    same list in each process and thread. Serving needs the standard library only, but for the optimised scheme.

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
    "probabilistic" credits nothing once a ranking is exhausted; "optimized" credits the part in which both rankings
    have documents. Otherwise a longer ranking would be paid for its length.

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
        chosen("scheme", self.scheme, SCHEMES)
        check_count("depth", self.depth)
        short = self.scheme != "optimized" or self.depth <= DEEPEST_OPTIMIZED
        require(short, "depth", self.depth, f"at most {DEEPEST_OPTIMIZED} for the optimized scheme")
        require(isinstance(self.salt, str), "salt", self.salt, "text")

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
        require(isinstance(rankings, Mapping), "rankings", rankings, "a mapping of names to lists of ids")
        names = sorted(rankings, key=str)
        lists = _checked(self, {name: rankings[name] for name in names})
        about = {"impression": impression, "user": user, "qid": qid}
        for argument, value in about.items():
            about[argument] = valid_id(value)
            fits = about[argument] is not None or (value is None and argument != "impression")
            require(fits, argument, value, "an id: text or an integer")
        seed = hashed(json.dumps([self.scheme, about["impression"]]), self.salt, 64)
        bits = Random(int.from_bytes(seed)).getrandbits  # noqa: S311 - the hash is the secret, not the generator
        ids: dict[Id, None] = {}
        rows: list[tuple[Fraction, ...]] = []
        state: Any = None
        while moves := _moves(self, lists, ids, state):
            ends = [*accumulate(weight for weight, *_ in moves)]
            _, added, parts, over, state = moves[bisect(ends, bits(64) * ends[-1] >> 64)]
            ids.update(dict.fromkeys(added))
            rows += [tuple(_fraction(part, over) for part in row) for row in parts]
        credit = dict(zip(names, zip(*rows, strict=True), strict=True))
        record = Interleaved((*ids,), credit, scheme=self.scheme, **cast("dict[str, Any]", about))
        object.__setattr__(record, "seal", hashed(record._text, self.salt, 16).hex())  # noqa: SLF001 - its own record
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
    "probabilistic" has the most lists: two rankings of 7 documents that differ take a second, and each further document
    makes it four times as long.

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
    il = Interleaver(scheme, depth)
    rankings = _checked(il, {"a": a, "b": b})
    clicked = set(chain(*rankings) if relevant is None else relevant)
    fits = clicked and clicked <= {*chain(*rankings)}
    require(fits, "relevant", relevant, f"documents among the first {depth} of a ranking")

    @cache
    def credit(shown: frozenset[Id], state: Any) -> tuple[Fraction, ...]:
        sums, whole = [Fraction(0), Fraction(0)], 0
        for weight, added, parts, over, following in _moves(il, rankings, shown, state):
            whole += weight
            own = [_gained(scheme, [row]) for one, row in zip(added, parts, strict=True) if one in clicked]
            later = credit(shown.union(added), following)
            sums = [sums[at] + weight * (Fraction(sum(row[at] for row in own), over) + later[at]) for at in (0, 1)]
        return tuple(one / (whole or 1) for one in sums)

    gained = credit(frozenset(), None)
    return {name: one / sum(gained) if any(gained) else Fraction(1, 2) for name, one in zip("AB", gained, strict=True)}


_fraction = lru_cache(4096)(Fraction)


def _checked(il: Interleaver, rankings: Mapping[str, Iterable[Id]]) -> Rankings:
    """Return the first documents of each ranking; ids are text or integers, in all rankings the same."""
    fits = len(rankings) == 2 or (len(rankings) > 2 and il.scheme == "team_draft")
    require(fits, "rankings", [*rankings], "two rankings; team_draft takes more")
    lists = {}
    for name, ranking in rankings.items():
        ordered = isinstance(ranking, Iterable) and not isinstance(ranking, (str, bytes, Mapping, set, frozenset))
        require(ordered, f"ranking {name!r}", ranking, "a list of document ids, from the top")
        lists[name] = ids = [*map(valid_id, ranking)]
        refuse(
            (not name or not isinstance(name, str), "has a name that is no text"),
            (not ids, "is empty"),
            (None in ids, "has an id that is neither text nor an integer"),
            (len(set(ids)) < len(ids), "has a document twice"),
            argument=f"ranking {name!r}",
        )
    mixed = len({type(one) for ids in lists.values() for one in ids}) > 1
    refuse((mixed, "ids are text and integers; give all of them one type"), argument="rankings")
    return tuple(tuple(cast("list[Id]", ids)[: il.depth]) for ids in lists.values())


def _moves(il: Interleaver, lists: Rankings, shown: Collection[Id], state: Any) -> Moves:
    if state == _END or len(shown) == il.depth:
        return ()
    return SCHEMES[il.scheme](lists, il.depth, shown, state)


def valid_id(value: Any) -> Id | None:
    """Return an id, which is text or an integer; None if it is neither."""
    return (value or None) if isinstance(value, str) else whole_number(value)


def hashed(text: str, salt: str, size: int) -> bytes:
    """Return a hash of a text that nobody can tell without the salt."""
    return blake2b(text.encode(), key=blake2b(salt.encode()).digest(), digest_size=size).digest()


def _gained(scheme: str, rows: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the credit of each ranking for clicks, from the rows of the documents clicked, from the top."""
    if scheme != "balanced":
        return [sum(column) for column in zip(*rows, strict=True)]
    k = min(filter(None, rows[-1])) if rows else 0
    return [sum(0 < rank <= k for rank in column) for column in zip(*rows, strict=True)]


def _ranks(rankings: Iterable[Sequence[Id]], ids: Iterable[Id]) -> list[Row]:
    """Return the rank of each document in each ranking; 0 if it is not there."""
    places = [{one: rank for rank, one in enumerate(ranking, start=1)} for ranking in rankings]
    return [tuple(row.get(one, 0) for one in ids) for row in places]


def _balanced(rankings: Rankings, depth: int, _shown: Collection[Id], _state: Any) -> Moves:
    """Let two rankings take turns, each document once; a coin says which begins."""
    moves = []
    for ordered in (rankings, rankings[::-1]):
        turns = dict.fromkeys(one for turn in zip_longest(*ordered) for one in turn if one is not None)
        ids = (*turns,)[:depth]
        moves.append((1, ids, [*zip(*_ranks(rankings, ids), strict=True)], 1, _END))
    return moves


def _team_draft(rankings: Rankings, depth: int, shown: Collection[Id], state: Any) -> Moves:
    """Let each ranking that waits in this round pick the best document that is not shown."""
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
def _units(n: int) -> tuple[Row, ...]:
    """Return a row for each of n rankings in which it has all credit, and one in which none has any."""
    return tuple(tuple(int(place == other) for other in range(n)) for place in range(n + 1))


def _is_filled(left: Sequence[Sequence[Id]], picks: int) -> bool:
    """Say whether each order of the rankings fills a round.

    A ranking fails if the others may take all that it has left. The picks before its own are ``picks - 1`` at most, so
    each of them is among the first ``picks - 1`` of another ranking. For two rankings this is exact.
    """
    return all(
        len(rest) >= picks or not {*rest} <= {one for other in left if other is not rest for one in other[: picks - 1]}
        for rest in left
    )


def _probabilistic(rankings: Rankings, _depth: int, shown: Collection[Id], _state: Any) -> Moves:
    """Draw a ranking by a coin and a document of it by softmax; the credit is the probability of each coin."""
    a, b = (
        {one: weight for one, weight in zip(ranking, _softmax(len(ranking)), strict=True) if one not in shown}
        for ranking in rankings
    )
    of_a, of_b = sum(a.values()) or 1, sum(b.values()) or 1
    moves = []
    for one in a | b:
        # P(A drew it) / P(A or B drew it), with both fractions over the same denominator.
        of_each = a.get(one, 0) * of_b, b.get(one, 0) * of_a
        both = of_each[0] + of_each[1]
        moves.append((both, (one,), (of_each if a and b else (0, 0),), both, None))
    return moves


@cache
def _softmax(length: int) -> Row:
    """Return weights in proportion to 1 / rank^3 (Hofmann et al., 2011), as whole numbers."""
    common = lcm(*range(1, length + 1))
    return tuple((common // rank) ** 3 for rank in range(1, length + 1))


@lru_cache(4096)
def _optimized(rankings: Rankings, depth: int) -> Moves:
    """Solve for the distribution over lists that is fair at each cut-off and most sensitive.

    A click on a document credits A with rank in B less rank in A, if that is positive, and B the other way round; a
    document that a ranking does not have stands behind its last one. Fair: at each position the expected difference is
    0. The sensitivity of a list is the entropy of the winner of one click at position i with probability in proportion
    to 1 / i, times the probability that the click has a winner. If a ranking is longer, the rest of it follows without
    credit.
    """
    import numpy as np
    from scipy.optimize import linprog
    from scipy.special import entr

    last = min(map(len, rankings))
    heads = [ranking[:last] for ranking in rankings]
    n = min(depth, len({*chain(*heads)}))
    lists: set[tuple[Id, ...]] = {()}
    while len(next(iter(lists))) < n:
        tops = [(ids, [one for one in head if one not in ids][:1]) for ids in lists for head in heads]
        lists = {(*ids, *top) for ids, top in tops if top}
    ordered = sorted(lists)
    ranks = np.array([_ranks(heads, ids) for ids in ordered])
    ranks[ranks == 0] = last + 1
    gains = ranks[:, 1] - ranks[:, 0]
    wins = np.stack([gains > 0, gains < 0]) @ (1 / np.arange(1, n + 1))
    sensitivity = entr(wins).sum(axis=0) - entr(wins.sum(axis=0))
    fair = np.vstack([np.ones(len(ordered)), gains.T])
    target = np.eye(n + 1)[0]
    solution = np.asarray(linprog(-sensitivity, A_eq=fair, b_eq=target, method="highs-ds").x)
    # The solver stops at 1e-7; at the corner that it found the equations are solved to the last digits.
    used = np.flatnonzero(solution > 1e-9)
    moves = []
    for at, weight in zip(used, np.linalg.lstsq(fair[:, used], target)[0], strict=True):
        ids = (*dict.fromkeys(chain(ordered[at], *rankings)),)[:depth]
        parts = [(max(gain, 0), max(-gain, 0)) for gain in gains[at].tolist()] + [(0, 0)] * (len(ids) - n)
        moves.append((max(0, round(weight * 2**60)), ids, parts, last, _END))
    return moves


SCHEMES: dict[str, Callable[[Rankings, int, Collection[Id], Any], Moves]] = {
    "balanced": _balanced,
    "team_draft": _team_draft,
    "probabilistic": _probabilistic,
    "optimized": lambda rankings, depth, *_: _optimized(rankings, depth),
}
