"""Interleaving: one list made of several rankings, with the credit of a click on each document.

A scheme is a game of chance: the documents that are shown already say which moves there are and how
probable each is. A move adds documents, and says how a click on each of them is credited. Two
players use the same moves::

    SCHEMES[scheme](rankings, depth, shown, state) -> ends, outcome     the weights of the moves, summed up
    outcome(number of a move)                      -> document -> a row of credits, next state

    Interleaver.show       draws one move after another           -> a list and its credits
    interleaving_bias      follows all moves, with their weights   -> the share of each ranking, as a fraction

Weights are whole numbers, credits whole numbers or fractions: each number is exact. A page that is
served needs the standard library only; the optimised scheme calls SciPy once for each pair of
rankings.

The trap: once a ranking has nothing left to offer, all later documents come from the other one.
Whoever credits these pays for length. So nothing is credited from there on.
"""

from __future__ import annotations

import json
from bisect import bisect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from hashlib import blake2b
from itertools import accumulate, chain, count, filterfalse, pairwise, product, zip_longest
from math import lcm
from random import Random
from typing import Any

from rankeval._arguments import explained
from rankeval._checks import check_count, refuse, require, said, unique_keys, whole_number
from rankeval._display import Displayed, View
from rankeval._registry import chosen
from rankeval.errors import InvalidInput

Id = str | int
Rankings = tuple[tuple[Id, ...], ...]
Row = Sequence[int | Fraction]
Added = tuple[dict[Id, Row], Any]
Moves = tuple[Sequence[int], Callable[[int], Added]]

FORMAT = "rankeval.interleaved/1"
DEEPEST_OPTIMIZED = 10
"""A list of 10 can be made in up to 1,024 ways, which is the size of the linear program."""


@explained
@dataclass(frozen=True, repr=False)
class Interleaved(Displayed):
    """A list made of several rankings, and its record, from which clicks are credited later.

    Attributes
    ----------
    ids : tuple of str or int
        The documents to show, from the top.
    credits : mapping of str to tuple of int or Fraction
        For each ranking, the credit that it gets for a click on each document, 0 to 1. With balanced
        interleaving, the rank of each document in it, 0 if it does not have it: there the ranks of
        all clicked documents count together.
    impression : str or int
        The id of the impression.
    scheme : str
        The scheme.
    user, qid : str, int or None
        The user and the query, if they were given.
    seal : str
        A keyed hash of all other fields. A record that was changed does not fit its seal.
    """

    ids: tuple[Id, ...]
    credits: Mapping[str, tuple[int | Fraction, ...]]
    impression: Id
    scheme: str
    user: Id | None = None
    qid: Id | None = None
    seal: str = ""

    def _view(self) -> View:
        rankings = ", ".join(map(str, self.credits))
        documents = f"{len(self.ids)} documents"
        return View([f"Interleaved({self.impression!r}, {self.scheme}, {documents} of {rankings})"])

    def credited(self, clicked: Collection[Id]) -> dict[str, Fraction]:
        """Return the credit of each ranking for the clicks of this impression.

        It is the sum of the credits of the documents clicked. Balanced interleaving looks at the
        lowest document clicked: with k its better rank, a ranking gets one for each click within
        its first k (Joachims, 2003).

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
        hit = set(clicked)
        others = [*hit.difference(self.ids)]
        require(not others, "clicked", others, f"ids of list {self.impression!r}")
        by_document = zip(self.ids, *self.credits.values(), strict=True)
        rows = [row for document, *row in by_document if document in hit]
        gains = zip([0] * len(self.credits), *_credited(self.scheme, rows), strict=True)
        return {name: Fraction(sum(gain)) for name, gain in zip(self.credits, gains, strict=True)}

    def to_json(self) -> str:
        """Return the record as one line of JSON; fractional credits are texts such as ``"1/3"``."""
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
            If this is not a credit record, or was changed.

        Examples
        --------
        >>> shown = Interleaver("balanced").show({"A": ["d1"], "B": ["d2"]}, impression="i1")
        >>> Interleaved.from_json(shown.to_json()) == shown
        True
        """
        try:
            content = (
                json.loads(record, object_pairs_hook=unique_keys)
                if isinstance(record, str)
                else dict(record)
            )
            refuse((content.pop("format") != FORMAT, f"its format is not {FORMAT}"))
            rows = {name: tuple(map(_read_credit, row)) for name, row in content["credits"].items()}
            shown = cls(**content | {"ids": tuple(content["ids"]), "credits": rows})
            _about(impression=shown.impression, user=shown.user, qid=shown.qid)
            of_each = [*zip(*rows.values(), strict=True)]
            kinds = {*map(type, chain(shown.ids, *of_each))}
            fits = shown.scheme in SCHEMES and len(rows) > 1
            fits = fits and 0 < len(of_each) == len(shown.ids) == len({*shown.ids})
            fits = fits and kinds <= {str, int, Fraction} and min(map(min, of_each)) >= 0
            if shown.scheme == "balanced":
                fits = fits and all(map(any, of_each))
            else:
                fits = fits and max(map(max, of_each)) <= 1
            fits = fits and content.items() <= json.loads(shown.to_json()).items()
            refuse((not fits, "its scheme, ids and credits do not fit together"))
        except (
            AttributeError,
            KeyError,
            RecursionError,
            TypeError,
            ValueError,
            ZeroDivisionError,
        ) as error:
            raise InvalidInput(
                f"this is not a credit record: {said(error)}", argument="record"
            ) from error
        require(isinstance(salt, str | None), "salt", salt, "text")
        changed = salt is not None and shown.seal != hashed(shown._text, salt, 16).hex()
        problem = f"the record of impression {shown.impression!r} was changed, or has another salt"
        refuse((changed, problem))
        return shown

    @cached_property
    def _text(self) -> str:
        names = ("impression", "user", "qid", "scheme", "ids", "credits")
        content = {"format": FORMAT} | {name: getattr(self, name) for name in names}
        return json.dumps(content, default=str)


@explained
@dataclass(frozen=True)
class Interleaver:
    """Make one list of several rankings for each impression, so that clicks compare the rankings.

    It keeps no state. All chance follows from the salt, the scheme and the impression: the same
    impression gets the same list in each process and thread. Serving needs the standard library
    only, but for the optimised scheme.

    Parameters
    ----------
    scheme : {"balanced", "team_draft", "probabilistic", "optimized"}
        "balanced": rankings take turns, and a coin says which begins (Joachims, 2003). Biased under
        random clicks for some pairs, see `rankeval.online.interleaving_bias`. "team_draft": in each
        round, each ranking adds its best document that is not shown yet, in an order drawn at
        random; a click is credited to the ranking that added the document (Radlinski et al., 2008).
        It takes two rankings or more (multileaving, Schuth et al., 2014). "probabilistic": each
        position draws a ranking by a coin, and a document of it by 1 / rank^3; a click gives each
        ranking the probability that it drew the document (Hofmann et al., 2011). "optimized": of
        all lists that follow the rankings from the top, a distribution with no bias under random
        clicks at any cut-off and the greatest sensitivity; a click is credited by the difference of
        the ranks (Radlinski and Craswell, 2013).
    depth : int, default 10
        The length of lists. Only as many documents of each ranking count. At most 10 for
        "optimized".
    salt : str
        Key of the hash: another one for each experiment, so that experiments are independent. Keep
        it secret if records travel through browsers, since it also seals them.

    Notes
    -----
    Rankings of unequal length: a round of the team draft is credited only if each order of the rankings fills it;
    "probabilistic" credits nothing once a ranking is exhausted; "optimized" credits the part in which both rankings
    have documents. Otherwise a longer ranking would be paid for its length.

    For a few pairs of long rankings, no distribution over the lists of "optimized" is fair at every position. It then
    credits clicks at the first positions only, as many as can be fair.

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
        fits = self.scheme != "optimized" or self.depth <= DEEPEST_OPTIMIZED
        require(fits, "depth", self.depth, f"at most {DEEPEST_OPTIMIZED} for the optimized scheme")
        require(isinstance(self.salt, str), "salt", self.salt, "text")

    def show(
        self,
        rankings: Mapping[str, Iterable[Id]],
        *,
        impression: Id,
        user: Id | None = None,
        qid: Id | None = None,
    ) -> Interleaved:
        """Return the list of an impression with its credit record.

        Parameters
        ----------
        rankings : mapping of str to list of str or int
            Name -> document ids from the top. Two rankings; two or more for "team_draft". The order
            of the names plays no part.
        impression : str or int
            The id of this impression: another one each time that a list is shown.
        user, qid : str or int, optional
            The user and the query, for the record. Comparisons are made by users, so give the user.

        Raises
        ------
        InvalidInput
            If a ranking is empty, repeats a document or has ids that are neither text nor integers,
            or if there are too few or too many rankings.
        """
        lists = _checked(self, rankings)
        about = _about(impression=impression, user=user, qid=qid)
        seed = hashed(json.dumps([self.scheme, about["impression"]]), self.salt, 64)
        bits = Random(int.from_bytes(seed)).getrandbits  # noqa: S311 - the hash is the secret, not the generator
        play, heads = SCHEMES[self.scheme], tuple(lists.values())
        n, shown, state = min(self.depth, len({*chain(*heads)})), dict[Id, Row](), None
        while len(shown) < n:
            ends, outcome = play(heads, self.depth, shown, state)
            added, state = outcome(bisect(ends, bits(64) * ends[-1] >> 64))
            shown |= added
        credits_of = dict(zip(lists, zip(*shown.values(), strict=True), strict=True))
        record = Interleaved((*shown,), credits_of, scheme=self.scheme, **about)
        object.__setattr__(record, "seal", hashed(record._text, self.salt, 16).hex())  # noqa: SLF001 - its own record
        return record


@explained
def interleaving_bias(
    scheme: str,
    a: Iterable[Id],
    b: Iterable[Id],
    *,
    relevant: Collection[Id] | None = None,
    depth: int = 10,
) -> dict[str, Fraction]:
    """Return the share of the credit that each of two rankings gets under one random click.

    The click falls on each document with the same probability, so that a fair scheme gives each
    ranking 1/2. With ``relevant``, it falls on one of these documents, if that one is shown: a
    scheme that sees the better ranking gives it more than 1/2. All lists are followed with their
    probabilities, and shares are exact; those of "optimized" are so within 1e-12, as the
    distribution is solved in floating point.

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
        If a ranking is refused by `rankeval.online.Interleaver`, or a relevant document is in
        neither.

    Notes
    -----
    "probabilistic" has the most lists: two rankings of 7 documents that differ take two seconds, and each further
    document makes it four times as long.

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
    lists = _checked(Interleaver(scheme, depth), {"A": a, "B": b})
    play, rankings, documents = SCHEMES[scheme], tuple(lists.values()), {*chain(*lists.values())}
    clicked = documents if relevant is None else set(relevant)
    fits = clicked and clicked <= documents
    require(fits, "relevant", relevant, f"documents among the first {depth} of a ranking")

    @cache
    def gained(shown: frozenset[Id], state: Any) -> Row:
        if len(shown) == min(depth, len(documents)):
            return (0, 0)
        gains, (ends, outcome) = [], play(rankings, depth, shown, state)
        for move, (start, end) in enumerate(pairwise((0, *ends))):
            added, following = outcome(move)
            own: list[Row] = []
            for document, row in added.items():
                own += _credited(scheme, [row]) if document in clicked else []
            rows = zip(gained(shown.union(added), following), *own, strict=True)
            gains.append([(end - start) * sum(column) for column in rows])
        return [Fraction(sum(column), ends[-1]) for column in zip(*gains, strict=True)]

    of_a, of_b = map(Fraction, gained(frozenset(), None))
    share = of_a / (of_a + of_b) if of_a or of_b else Fraction(1, 2)
    return {"A": share, "B": 1 - share}


def _checked(il: Interleaver, rankings: Mapping[str, Iterable[Id]]) -> dict[str, tuple[Id, ...]]:
    """Return the first documents of each ranking, by name; ids are all text or all integers."""
    expected = "a mapping of names to lists of ids"
    require(isinstance(rankings, Mapping), "rankings", rankings, expected)
    fits = len(rankings) == 2 or (len(rankings) > 2 and il.scheme == "team_draft")
    require(fits, "rankings", [*rankings], "two rankings; team_draft takes more")
    heads: dict[str, tuple[Id, ...]] = {}
    unordered = (str, bytes, Mapping, set, frozenset)
    for name, ranking in sorted(rankings.items(), key=lambda item: str(item[0])):
        argument = f"ranking {name!r}"
        ordered = isinstance(ranking, Iterable) and not isinstance(ranking, unordered)
        require(ordered, argument, ranking, "a list of document ids, from the top")
        # Lists are served: no call for a document whose id is a plain text.
        ids = tuple(
            document if type(document) is str and document else checked_id(document, argument)
            for document in ranking
        )
        types = {*map(type, chain(ids, *heads.values()))}
        refuse(
            (not name or not isinstance(name, str), "has a name that is not text"),
            (not ids, "is empty"),
            (len(set(ids)) < len(ids), "has a document twice"),
            (len(types) > 1, "has ids of not one type: give text or integers"),
            argument=argument,
        )
        heads[name] = ids[: il.depth]
    return heads


def _about(*, impression: Any, user: Any, qid: Any) -> dict[str, Any]:
    """Return the ids of an impression, its user and its query; the last two may be missing."""
    about = {"impression": checked_id(impression, "impression")}
    for name, value in (("user", user), ("qid", qid)):
        about[name] = None if value is None else checked_id(value, name)
    return about


def checked_id(value: Any, argument: str) -> Any:
    """Return an id, which is text or an integer, or refuse it."""
    plain = str(value) if isinstance(value, str) else whole_number(value)
    require(plain not in (None, ""), argument, value, "an id: text or an integer")
    return plain


def hashed(text: str, salt: str, size: int) -> bytes:
    """Return a hash of a text that nobody can tell without the salt."""
    # A shell hands on any bytes.
    content, key = (part.encode(errors="surrogatepass") for part in (text, salt))
    return blake2b(content, key=blake2b(key).digest(), digest_size=size).digest()


_share = lru_cache(4096)(Fraction)


def _read_credit(written: Any) -> Any:
    # Fraction itself would read "1e9999999", a number of ten million digits.
    return Fraction(*map(int, written.split("/"))) if isinstance(written, str) else written


def _credited(scheme: str, rows: Sequence[Row]) -> Sequence[Row]:
    """Return the credits of the rankings for each document clicked, from rows of the record."""
    if scheme != "balanced" or not rows:
        return rows
    k = min(rank for rank in rows[-1] if rank)
    return [[int(0 < rank <= k) for rank in row] for row in rows]


def _ranks(rankings: Rankings, ids: Iterable[Id], absent: int) -> dict[Id, Row]:
    """Return the ranks of each document in the rankings, ``absent`` if a ranking lacks it."""
    places = [dict(zip(ranking, count(1), strict=False)) for ranking in rankings]
    return {document: [ranks.get(document, absent) for ranks in places] for document in ids}


def _balanced(rankings: Rankings, depth: int, _shown: Collection[Id], _state: Any) -> Moves:
    """Let two rankings take turns, each document once; a coin says which begins."""

    def outcome(first: int) -> Added:
        turns = chain(*zip_longest(rankings[first], rankings[1 - first]))
        documents = [document for document in dict.fromkeys(turns) if document is not None]
        return _ranks(rankings, documents[:depth], 0), None

    return (1, 2), outcome


def _team_draft(rankings: Rankings, depth: int, shown: Collection[Id], state: Any) -> Moves:
    """Let each ranking that waits in this round pick the best document that is not shown."""
    left = [[*filterfalse(shown.__contains__, ranking)] for ranking in rankings]
    waiting, paid = state or ((), False)
    waiting = [place for place in waiting if left[place]]
    if not waiting:
        waiting = [place for place, rest in enumerate(left) if rest]
        paid = _is_filled(left, min(len(rankings), depth - len(shown)))

    def outcome(turn: int) -> Added:
        place, row = waiting[turn], [0] * len(rankings)
        row[place] = int(paid)
        return {left[place][0]: row}, ((*waiting[:turn], *waiting[turn + 1 :]), paid)

    return range(1, len(waiting) + 1), outcome


def _is_filled(left: Sequence[Sequence[Id]], picks: int) -> bool:
    """Say whether each order of the rankings fills a round.

    A ranking fails if the others may take all that it has left. The picks before its own are
    ``picks - 1`` at most, so each of them is among the first ``picks - 1`` of another ranking. For
    two rankings this is exact.
    """
    for rest in left:
        if len(rest) >= picks:
            continue
        others = [other[: picks - 1] for other in left if other is not rest]
        if {*rest} <= {*chain(*others)}:
            return False
    return True


def _probabilistic(
    rankings: Rankings, _depth: int, shown: Collection[Id], coin: int | None
) -> Moves:
    """Draw a ranking by a coin, then a document by softmax; credit the chance of each coin."""
    if coin is None:
        return (1, 2), lambda coin: ({}, coin)
    a, b = (
        {name: weight for name, weight in _softmax(ranking) if name not in shown}
        for ranking in rankings
    )
    drawn = (a, b)[coin] or a or b
    of_a, of_b, documents = sum(a.values()), sum(b.values()), [*drawn]

    def outcome(move: int) -> Added:
        document = documents[move]
        row: Row = (0, 0)
        if a and b:
            # P(A drew it) / P(A or B drew it), with both fractions over the same denominator.
            parts = a.get(document, 0) * of_b, b.get(document, 0) * of_a
            row = [_share(part, sum(parts)) for part in parts]
        return {document: row}, None

    return [*accumulate(drawn.values())], outcome


@lru_cache(4096)
def _softmax(ranking: tuple[Id, ...]) -> list[tuple[Id, int]]:
    """Return documents with whole weights in proportion to 1 / rank^3 (Hofmann et al., 2011)."""
    common = lcm(*range(1, len(ranking) + 1))
    return [(name, (common // rank) ** 3) for rank, name in enumerate(ranking, start=1)]


@lru_cache(4096)
def _optimized(rankings: Rankings, depth: int) -> Moves:
    """Solve for the distribution over lists that is fair at each cut-off and most sensitive.

    A click on a document credits A with rank in B less rank in A, if that is positive, and B the other way round; a
    document that a ranking does not have stands behind its last one. Fair: at each position the expected difference is
    0. The sensitivity of a list is the entropy of the winner of one click at position i with probability in proportion
    to 1 / i, times the probability that the click has a winner. If a ranking is longer, the rest of it follows without
    credit. Of some long pairs no distribution is fair at all positions: then only the first positions are credited, as
    many as can be fair.
    """
    import numpy as np
    from scipy.optimize import linprog
    from scipy.special import entr

    last = min(map(len, rankings))
    heads = tuple(ranking[:last] for ranking in rankings)
    n = min(depth, len({*chain(*heads)}))
    lists: set[tuple[Id, ...]] = {()}
    for _ in range(n):
        following: set[tuple[Id, ...]] = set()
        for ids, head in product(lists, heads):
            if rest := [*filterfalse(ids.__contains__, head)]:
                following.add((*ids, rest[0]))
        lists = following
    ordered = sorted(lists)
    gains = np.array([[*_ranks(heads, ids, last + 1).values()] for ids in ordered]) @ [-1, 1]
    for credited in range(n, 0, -1):
        counted = gains[:, :credited]
        wins = np.stack([counted > 0, counted < 0]) @ (1 / np.arange(1, credited + 1))
        sensitivity = entr(wins).sum(axis=0) - entr(wins.sum(axis=0))
        fair = np.vstack([np.ones(len(ordered)), counted.T])
        target = np.eye(credited + 1)[0]
        solved = linprog(-sensitivity, A_eq=fair, b_eq=target, method="highs-ds")
        if solved.x is not None:  # at the first position there is always a fair distribution
            break
    # The solver stops at 1e-7; at the corner that it found the equations are solved to the last
    # digits.
    used = np.flatnonzero(np.asarray(solved.x) > 1e-9)
    weights = np.linalg.lstsq(fair[:, used], target)[0].tolist()

    def outcome(move: int) -> Added:
        ids = [*dict.fromkeys(chain(ordered[used[move]], *rankings))][:depth]
        added: dict[Id, Row] = {}
        for position, (document, (a, b)) in enumerate(_ranks(heads, ids, last + 1).items()):
            gain = b - a if position < credited else 0
            added[document] = [_share(max(gain, 0), last), _share(max(-gain, 0), last)]
        return added, None

    return [*accumulate(max(0, round(weight * 2**60)) for weight in weights)], outcome


SCHEMES: dict[str, Callable[[Rankings, int, Collection[Id], Any], Moves]] = {
    "balanced": _balanced,
    "team_draft": _team_draft,
    "probabilistic": _probabilistic,
    "optimized": lambda rankings, depth, *_: _optimized(rankings, depth),
}
