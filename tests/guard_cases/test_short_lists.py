"""Unchanged rows are seen whatever is missing around them, and a catalogue shared by all users is no evidence."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import Ridge

import rankeval as rk
from rankeval.contamination import forget
from rankeval.contamination.fingerprint import fingerprint
from rankeval.contamination.matching import match_content
from rankeval.contamination.registered import RegisteredContent
from rankeval.contamination.signature import Signature
from rankeval.errors import GuardRefusal


def registered(prints, *, without=()):
    """Return the collection as it is read from a ledger."""
    arrays = {name: array for name, array in Signature.of(prints).arrays().items() if not name.startswith(without)}
    about = dict.fromkeys(("project", "name", "digest", "id", "who", "time"), "x")
    return RegisteredContent(signature=Signature.from_arrays(arrays), **about)


def floats(rng, n):
    return rng.normal(size=(n, 8))


def rounded(rng, n):
    return rng.normal(size=(n, 8)).round(2)


def counts(rng, n):
    return np.column_stack([rng.poisson(3, (n, 10)), rng.random((n, 4)) < 0.2]).astype(float)


def digits(rng, n):
    return load_digits().data[rng.permutation(1797)[:n]]


def flags(rng, n):
    """Rows of ten bits: a row says next to nothing, and each comes back by chance."""
    return np.column_stack([rng.poisson(1, (n, 4)), rng.random((n, 3)) < 0.3]).astype(float)


WORLDS = {
    "floats": (floats, [(100, 40), (20, 100), (30, 10), (3, 12)]),
    "two decimals": (rounded, [(100, 40), (20, 100), (30, 10), (3, 12)]),
    "counts and flags": (counts, [(100, 40), (20, 100), (30, 10), (3, 12)]),
    "digits": (digits, [(30, 11), (10, 30), (3, 12)]),
}
"""World -> its features, and numbers of registered queries and of rows of each."""

KEPT = ("the first", "the top by a feature", "at random")


class Lists:
    """A registered collection of lists of equal length, and four times as many other rows of the same kind."""

    def __init__(self, features, n_queries, n, seed=1):
        rng = np.random.default_rng([seed, n_queries, n])
        X = features(rng, 5 * n_queries * n)
        self.n_queries, self.n, n_test = n_queries, n, n_queries * n
        self.y, self.qid = rng.integers(0, 3, len(X)), np.arange(len(X)) // n
        self.test = self.qid < n_queries
        self.X, self.is_dev = X, ~self.test
        order = {KEPT[0]: np.arange(n_test), KEPT[1]: np.argsort(-X[:n_test, 0], kind="stable")}
        order[KEPT[2]] = rng.permutation(n_test)
        self.place = {kept: np.empty(n_test, dtype=int) for kept in KEPT}
        for kept, rows in order.items():
            by_query = rows[np.argsort(self.qid[rows], kind="stable")]
            self.place[kept][by_query] = np.tile(np.arange(n), n_queries)

    @property
    def known(self):
        return registered(fingerprint(self.X[self.test], self.y[self.test], self.qid[self.test]))

    def data(self, kept, k, *, new_ids, beside, but=()):
        """Return k rows of each registered query, alone or beside the others, without some queries."""
        rows = np.append(self.place[kept] < k, np.full(self.is_dev.sum(), beside)) & ~np.isin(self.qid, but)
        qid = np.where(self.test, self.qid + 10**6 * new_ids, self.qid + 10**4)
        return fingerprint(self.X[rows], self.y[rows], qid[rows])

    def unseen(self, known, kept, k, **how):
        """Return how many registered queries are in data that is accepted, and how many others were named."""
        data = self.data(kept, k, **how)
        found = match_content(known, data)
        of_test = (data.names < self.n_queries) | (data.names >= 10**6)
        left = ~found.queries if found.refused else np.ones(data.n_queries, dtype=bool)
        if found.refused and left.any():
            named = data.names[~left & of_test] % 10**6
            rest = self.data(kept, k, **how | {"but": np.append(how.get("but", []), named)})
            assert not match_content(known, rest).refused
        return int((left & of_test).sum()), int((~left & ~of_test).sum())


def check_lengths(world, n_queries, n, lengths):
    """Every query with a row left is named, and next to none of the other data."""
    lists = Lists(WORLDS[world][0], n_queries, n)
    known = lists.known
    for row in product(KEPT, lengths, (True, False), (False, True)):
        kept, k, new_ids, beside = row
        unseen, others = lists.unseen(known, kept, k, new_ids=new_ids, beside=beside)
        assert unseen == 0, row
        assert others <= 0.01 * 4 * n_queries, row


@pytest.mark.parametrize(
    "world",
    [
        "floats",
        "counts and flags",
        *(pytest.param(one, marks=pytest.mark.rest) for one in ("two decimals", "digits")),
    ],
)
def test_rows_that_come_back_are_seen_however_few_of_each_query(world):
    """In lists of two sizes; under new and the same ids, alone and beside other rows."""
    for n_queries, n in WORLDS[world][1][-2:]:
        check_lengths(world, n_queries, n, sorted({1, 2, 3, 5, n // 2, n}))


@pytest.mark.world
@pytest.mark.parametrize(
    ("world", "n_queries", "n"), [(world, *size) for world, (_, sizes) in WORLDS.items() for size in sizes]
)
def test_any_number_of_rows_that_come_back_is_seen(world, n_queries, n):
    check_lengths(world, n_queries, n, range(1, n + 1))


FLAGS_NEEDED = {(30, 10): 5, (40, 20): 5, (100, 40): 7}
"""The least rows of each query from which on all queries are named."""


@pytest.mark.parametrize(
    ("size", "needed"),
    [
        pytest.param(size, needed, marks=() if size == (30, 10) else pytest.mark.rest)
        for size, needed in FLAGS_NEEDED.items()
    ],
)
def test_rows_of_ten_bits_come_back_by_chance_so_more_are_needed(size, needed):
    lists = Lists(flags, *size)
    assert needed_of(lists, range(1, size[1] + 1)) == needed


@pytest.mark.parametrize("world", WORLDS)
def test_rows_of_five_queries_beside_all_others(world):
    """Two rows tell few queries among others, whatever their values."""
    features, sizes = WORLDS[world]
    lists = Lists(features, *sizes[0])
    assert needed_of(lists, range(1, 7), but=np.arange(5, lists.n_queries)) == 2


@pytest.mark.parametrize(("n_queries", "n_rows"), [(10, 5), (20, 5), (40, 5), (60, 3)])
@pytest.mark.parametrize("features", [floats, counts])
def test_two_rows_of_some_queries_of_a_small_collection(features, n_queries, n_rows):
    lists = Lists(features, n_queries, n_rows)
    for n_some in (3, max(3, n_queries // 3)):
        but = np.arange(n_some, n_queries)
        assert lists.unseen(lists.known, "at random", 2, new_ids=True, beside=True, but=but) == (0, 0)


def test_queries_of_nearly_the_same_searches_are_not_accused():
    """Each search has 70 % of its rows in common with others of its subject, on both sides."""
    rng = np.random.default_rng(0)
    rows, subjects = floats(rng, 6000), np.arange(3000).reshape(100, 30)

    def searches(n):
        lists = subjects[rng.integers(0, 100, n)]
        found = np.where(rng.random(lists.shape) < 0.85, lists, rng.integers(0, 6000, lists.shape))
        return rows[found.ravel()], rng.integers(0, 3, found.size), np.repeat(np.arange(n), 30)

    X, y, qid = searches(60)
    known = registered(fingerprint(X, y, qid))
    X2, y2, qid2 = searches(240)
    assert not match_content(known, fingerprint(X2, y2, qid2 + 1000)).refused
    both = np.vstack([X, X2]), np.append(y, y2), np.append(qid + 5000, qid2 + 10_000)
    assert match_content(known, fingerprint(*both)).refused


def test_ledgers_in_which_rows_count_their_digits_are_read():
    """Before issue 43 a row of eight distinct floats had 48 bits."""
    lists = Lists(floats, 40, 5)
    known = lists.known
    rows = replace(known.signature.row_entries, bits=np.full(len(known.signature.row_entries), 48.0))
    old = replace(
        known, signature=replace(known.signature, row_entries=replace(rows, bits=np.full_like(rows.bits, 48)))
    )
    assert old.n_identifiable == known.n_identifiable
    assert lists.unseen(old, "the first", 2, new_ids=True, beside=True) == (0, 0)


def needed_of(lists, lengths, **how):
    """Return the least number of first rows, beside others, from which on no query goes unseen."""
    known = lists.known
    passed = [k for k in lengths if lists.unseen(known, "the first", k, new_ids=True, beside=True, **how)[0]]
    return max(passed, default=0) + 1


@pytest.mark.parametrize(("n_queries", "n", "k"), [(60, 10, 5), (60, 12, 6), (50, 20, 5), (50, 100, 10)])
def test_the_top_of_a_list_is_seen(n_queries, n, k):
    """As those have it who re-rank what a first stage found."""
    lists = Lists(floats, n_queries, n)
    assert lists.unseen(lists.known, "the top by a feature", k, new_ids=True, beside=False) == (0, 0)


@pytest.mark.parametrize(("shortest", "longest", "share"), [(10, 12, 0.3), (16, 40, 0.2), (100, 100, 0.1)])
def test_rows_kept_at_random_are_seen(shortest, longest, share):
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(80), rng.integers(shortest, longest + 1, 80))
    X, y = floats(rng, len(qid)), rng.integers(0, 3, len(qid))
    some = rng.random(len(qid)) < share
    found = match_content(registered(fingerprint(X, y, qid)), fingerprint(X[some], y[some], qid[some] + 500))
    assert found.refused
    assert found.queries.all()


def test_ledgers_that_kept_a_few_rows_of_each_query_are_read():
    """Before issue 24 the sixteen smallest hashes of a query were kept."""
    lists = Lists(floats, 100, 40)
    old = registered(fingerprint(lists.X[lists.test], lists.y[lists.test], lists.qid[lists.test]), without=("more_",))
    assert len(old.signature.row_entries) == 1600
    assert lists.unseen(old, "the first", 12, new_ids=True, beside=True) == (0, 0)
    half = lists.unseen(old, "the first", 2, new_ids=True, beside=True)
    assert 0 < half[0] < 50
    assert half[1] == 0


def test_each_query_of_a_part_counts_once_on_both_sides():
    """Labels of several queries are alike, so more of the collection has them than is in the data."""
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(450), rng.integers(2, 30, 450))
    X = floats(rng, len(qid))
    y = np.digitize(X[:, 0] + rng.normal(size=len(qid)), [0.5, 1.2, 2])
    known, some = registered(fingerprint(X, y, qid)), np.isin(qid, rng.choice(450, 223, replace=False))
    for features, ids in ((X, qid), (X, qid + 5000), (2 * X + 1, qid), (2 * X + 1, qid + 5000), (None, qid)):
        found = match_content(known, fingerprint(None if features is None else features[some], y[some], ids[some]))
        assert (found.n_matched, int(found.queries.sum()), found.n_before) == (223, 223, 0)


class Catalogue:
    """Queries whose rows are those of documents that all queries share; some documents are found more often."""

    def __init__(self, rng):
        self.n_documents = int(np.exp(rng.uniform(np.log(200), np.log(20_000))))
        self.longest = int(np.exp(rng.uniform(np.log(5), np.log(100.5))))
        self.n_queries, self.times = int(rng.choice([10, 20, 40, 100, 200])), int(rng.choice([1, 2, 4]))
        self.half, self.varied = rng.random(2) < (0.3, 0.5)
        self.documents = [floats, rounded, counts][rng.integers(3)](rng, self.n_documents)
        weights = np.arange(1, self.n_documents + 1.0) ** -rng.choice([0, rng.uniform(0.3, 1)])
        self.weights = weights / weights.sum()

    def queries(self, rng, n_queries):
        shortest = max(2, self.longest // 3) if self.varied else self.longest
        drawn = []
        for size in rng.integers(shortest, self.longest + 1, n_queries):
            some = np.unique(rng.choice(self.n_documents, 3 * size, p=self.weights))
            drawn.append(rng.permutation(some)[:size])
        X = self.documents[np.concatenate(drawn)]
        if self.half:  # the others are features of query and document
            X = np.hstack([X, rng.normal(size=X.shape)])
        qid = np.repeat(np.arange(n_queries), [len(one) for one in drawn])
        return X, rng.integers(0, 3, len(qid)), qid


def catalogue_matches(numbers):
    for number in numbers:
        rng = np.random.default_rng([24, number])
        world = Catalogue(rng)
        X, y, qid = world.queries(rng, world.n_queries)
        known = registered(fingerprint(X, y, qid))
        X2, y2, qid2 = world.queries(rng, world.times * world.n_queries)
        yield world, known, (X, y, qid), (X2, y2, qid2 + 10**4)


@pytest.mark.parametrize(
    ("tenth", "end"),
    [
        (0, 100),
        *(pytest.param(tenth, 100, marks=pytest.mark.rest) for tenth in (1, 2)),
        *(pytest.param(tenth, 1000, marks=pytest.mark.world) for tenth in range(10)),
    ],
)
def test_dev_queries_over_the_same_documents_are_never_accused(tenth, end):
    """1,000 pairs in all."""
    for world, known, _, dev in catalogue_matches(range(tenth, end, 10)):
        found = match_content(known, fingerprint(*dev))
        assert not found.refused, (vars(world), found.why)
        assert not found.warned, (vars(world), found.why)


@pytest.mark.further
def test_a_collection_over_shared_documents_is_seen_where_its_rows_stand_together_again():
    """Whole lists beside dev queries over the same documents, whose rows alone say nothing."""
    n_seen, n_tried = 0, 0
    for world, known, (X, y, qid), dev in catalogue_matches(range(0, 200, 4)):
        if known.n_identifiable < 3 or world.longest < 20:
            continue
        both = (np.concatenate(parts) for parts in zip((X, y, qid + 10**6), dev, strict=True))
        data = fingerprint(*both)
        found = match_content(known, data)
        n_tried += 1
        n_seen += found.refused and (data.names[found.queries] >= 10**6).sum() >= 0.9 * world.n_queries
    assert n_tried >= 15
    assert n_seen >= 0.9 * n_tried


class TestExample:
    """Ids, labels and features unchanged: the first five of 40 rows of each query."""

    @pytest.fixture
    def five(self, guard):
        data = rk.datasets.make_ranking(100, 40, 8, rng=45)
        guard.register("test", data)
        return data.take(np.arange(len(data)) % 40 < 5)

    @pytest.mark.parametrize(
        "use",
        [
            lambda d: rk.QueryRanker(Ridge()).fit(d.X, d.y, qid=d.qid),
            lambda d: rk.cross_validate(Ridge(), d, measures="AP", cv=2),
            lambda d: rk.make_scorer("AP").evaluate(Ridge().fit(d.X, d.y), d.X, d.y, qid=d.qid),
            lambda d: rk.evaluate(d.y, d.X[:, 0], qid=d.qid, docid=d.docid),
        ],
    )
    def test_every_use_is_refused(self, five, use):
        with pytest.raises(GuardRefusal) as refused:
            use(five)
        assert len(refused.value.queries) == 100

    def test_the_status_marks_all_rows(self, guard, five):
        status = guard.status(five.X, five.y, qid=five.qid)
        assert (status.refused, status.n_matched, status.n_unaccounted) == (True, 100, 0)
        assert status.rows.all()

    def test_the_queries_of_a_status_can_be_exempted(self, guard, five):
        first = five.take(np.arange(len(five)) % 5 == 0)  # one row of each
        status = guard.status(first.X, first.y, qid=first.qid)
        assert guard.exempt("test", status, "the first stage was fitted on them") == 100
        assert not guard.status(first.X, first.y, qid=first.qid)


class TestAdvice:
    """Columns dropped, new ids, other rows beside: lists of one, three and six rows show nothing."""

    def test_what_can_be_told_is_marked_and_the_others_are_counted(self, guard):
        rng = np.random.default_rng(0)

        def lists(n_queries):
            qid = np.repeat(np.arange(n_queries), np.resize([1, 3, 6, 12, 40], n_queries))
            X = rng.normal(size=(len(qid), 30)).astype(np.float32)
            return X, np.digitize(X[:, :2].sum(axis=1) + rng.normal(size=len(qid)), [0.5, 1.2, 2, 2.8]), qid

        (X, y, qid), (X2, y2, qid2) = lists(120), lists(480)
        guard.register("test", X, y, qid=qid)
        X, y, qid = np.vstack([X, X2])[:, :26], np.append(y, y2), np.append(qid + 5000, qid2 + 90_000)
        status = guard.status(X, y, qid=qid)
        told = np.array([query for query in status.queries if query < 90_000]) - 5000
        assert status.refused
        assert len(told) >= 43
        assert (told % 5 == 4).sum() == 24  # all of the longest
        assert len(status.queries) - len(told) <= 1
        assert status.n_matched + status.n_unaccounted == 120
        assert f"{status.n_unaccounted} of its queries were not found" in status.words
        with pytest.raises(GuardRefusal) as refused:
            rk.QueryRanker(Ridge()).fit(X, y, qid=qid)
        assert list(refused.value.queries) == status.queries
        assert f"{status.n_matched} of its 96 recognisable" in refused.value.found
        assert f"the other {status.n_unaccounted} of the collection may be in the data too" in str(refused.value)
        assert "leave them out by their ids" in str(refused.value)


def test_a_refusal_names_the_collection_that_the_status_names(tmp_path, monkeypatch):
    """Two collections are in the data: both speak of the one with more queries in it."""
    monkeypatch.setenv("RANKEVAL_LEDGER", str(tmp_path / "ledger"))
    forget()
    data, guard = rk.datasets.make_ranking(60, 12, 5, rng=3), rk.Guard("project")
    guard.register("part", data.take(data.qid <= 10))
    with pytest.warns(rk.errors.RankevalWarning, match="RG003 'whole': 10 of the 10 .* as 10 of its 60 queries"):
        guard.register("whole", data)
    status = guard.status(data.X, data.y, qid=data.qid)
    with pytest.raises(GuardRefusal, match="60 of its 60") as refused:
        rk.QueryRanker(Ridge()).fit(data.X, data.y, qid=data.qid)
    assert refused.value.collection == status.collection == "whole"
    forget()
