"""Data that is looked at part by part meets the verdict that it meets as a whole."""

import pickle
import warnings
from dataclasses import dataclass

import numpy as np
import pytest

import rankeval as rk
from rankeval.contamination import ContaminationCheck, StreamedCheck, forget
from rankeval.errors import GuardRefusal, InvalidInput, RankevalWarning


@dataclass
class Rows:
    """Rows of several queries, without features."""

    y: np.ndarray
    qid: np.ndarray
    docid: np.ndarray
    score: np.ndarray

    @classmethod
    def made(cls, n_queries, n_docs, seed, *, first=0, levels=5):
        """Return queries with documents of their own and labels of several grades."""
        rng = np.random.default_rng(seed)
        n = n_queries * n_docs
        docid = np.array([f"d{number}" for number in rng.integers(0, 10**9, n)])
        weights = np.exp(-0.7 * np.arange(levels))
        y = rng.choice(levels, n, p=weights / weights.sum())
        return cls(y, np.repeat(np.arange(first, first + n_queries), n_docs), docid, rng.normal(size=n))

    def take(self, rows):
        return Rows(self.y[rows], self.qid[rows], self.docid[rows], self.score[rows])

    def beside(self, other):
        pairs = ((getattr(one, name) for one in (self, other)) for name in ("y", "qid", "docid", "score"))
        return Rows(*(np.concatenate(list(pair)) for pair in pairs))

    def given(self, *, documents):
        return {"docid": self.docid if documents else None, "score": self.score}


# Labels alone identify no query, and five queries show no difference, which registering says.
pytestmark = pytest.mark.filterwarnings("ignore:RG00[18]")


@pytest.fixture(autouse=True)
def ledger(tmp_path, monkeypatch):
    """Let the process find a ledger by itself."""
    monkeypatch.setenv("RANKEVAL_LEDGER", str(tmp_path / "ledger"))
    forget()
    yield tmp_path / "ledger"
    forget()


TEST = Rows.made(60, 12, 1)


def registered(*, documents=True, rows=TEST, name="test"):
    """Register the judgments of a collection: with its documents, or the labels alone."""
    guard = rk.Guard("project")
    if documents:
        return guard, guard.register(name, qrels=rk.Qrels(rows.qid, rows.docid, rows.y))
    return guard, guard.register(name, None, rows.y, qid=rows.qid)


def verdict(call):
    """Return how a call ends: its warnings, and the refusal if there is one."""
    from rankeval.contamination.refusal import MEMORY

    MEMORY.clear()
    refused = None
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            call()
        except GuardRefusal as refusal:
            refused = refusal
    shown = {name: [field.tobytes() for field in vars(one).values()] for name, one in MEMORY.items()}
    parts = None if refused is None else (refused.found, refused.collection, refused.queries, refused.ledger)
    # What a warning proposes to do with the rows differs: these stand in a data set.
    return parts, [str(one.message).partition(" is too little")[0] for one in said], shown


def whole(rows, *, documents):
    return verdict(
        lambda: ContaminationCheck.current().refuse(
            None, rows.y, rows.qid, **rows.given(documents=documents), action="evaluate"
        )
    )


def in_parts(rows, *, documents, n_parts=7, order=0):
    """Return the verdict on whole queries in several parts, in any order, each sent as to and from another process."""
    queries = np.unique(rows.qid)
    part_of = np.random.default_rng(order).integers(0, n_parts, len(queries))

    def call():
        check = StreamedCheck.current()
        for part in np.random.default_rng(order).permutation(n_parts):
            one = rows.take(part_of[np.searchsorted(queries, rows.qid)] == part)
            worker = pickle.loads(pickle.dumps(check))
            evidence = worker.evidence(one.y, one.qid, **one.given(documents=documents))
            check.add(pickle.loads(pickle.dumps(evidence)))
        check.refuse(action="evaluate")

    return verdict(call)


def renamed(rows):
    return Rows(rows.y, rows.qid + 5000, rows.docid, rows.score)


def relabelled(rows):
    """Return the rows with one label in ten drawn anew."""
    rng = np.random.default_rng(3)
    y = np.where(rng.random(len(rows.y)) < 0.1, rng.integers(0, 5, len(rows.y)), rows.y)
    return Rows(y, rows.qid, rows.docid, rows.score)


def binary(rows):
    return Rows((rows.y >= 2).astype(int), rows.qid, rows.docid, rows.score)


def fewer(rows):
    """Return a third of the queries."""
    return rows.take(rows.qid % 3 == 0)


def cut(rows):
    """Return each query without the rows that a short list would leave out."""
    return rows.take(np.arange(len(rows.y)) % 12 < 9)


def clicked_again(rows):
    """Return the same ids with labels that have nothing to do with the registered ones."""
    return Rows(np.random.default_rng(4).permutation(rows.y), rows.qid, rows.docid, rows.score)


def many_grades(rows):
    """Return the rows with a query of twenty grades beside, which leaves no counts of labels."""
    more = Rows.made(1, 20, 8, first=9000)
    more.y[:] = np.arange(20)
    return rows.beside(more)


CHANGES = {
    "as is": lambda rows: rows,
    "renamed": renamed,
    "relabelled": relabelled,
    "binary": binary,
    "a third": fewer,
    "a third, renamed": lambda rows: renamed(fewer(rows)),
    "two queries": lambda rows: rows.take(rows.qid < 2),
    "cut": cut,
    "clicked again": clicked_again,
    "many grades": many_grades,
    "unrelated": lambda _rows: Rows.made(50, 12, 2, first=700),
    "unrelated under the same ids": lambda _rows: Rows.made(50, 12, 2),
}
BESIDE = {
    "alone": lambda rows: rows,
    "in 100 times other data": lambda rows: Rows.made(6000, 12, 5, first=20_000).beside(rows),
    "beside other queries of the same documents": lambda rows: rows.beside(
        Rows(rows.y[::-1], rows.qid + 40_000, rows.docid[::-1], rows.score)
    ),
}


@pytest.mark.parametrize("documents", [True, False])
@pytest.mark.parametrize("beside", BESIDE)
def test_the_verdict_on_parts_is_that_on_all_rows(beside, documents):
    """Refusal, what it says, warnings, and what the process remembers: all are equal."""
    registered(documents=documents)
    for name, change in CHANGES.items():
        rows = BESIDE[beside](change(TEST))
        expected = whole(rows, documents=documents)
        assert in_parts(rows, documents=documents) == expected, name
        if name == "as is":
            assert expected[0] is not None
        if name == "unrelated" and beside != "beside other queries of the same documents":
            assert expected == (None, [], {})


def test_three_queries_warn_and_a_later_one_adds_up():
    """Three of sixty queries are too few to refuse; what they showed is remembered for the next call."""
    registered()
    few, more = TEST.take(TEST.qid < 3), TEST.take((TEST.qid >= 3) & (TEST.qid < 5))

    def stream(rows):
        check = StreamedCheck.current()
        for query in np.unique(rows.qid):
            one = rows.take(rows.qid == query)
            check.add(check.evidence(one.y, one.qid, docid=one.docid, score=one.score))
        check.refuse(action="evaluate")

    with pytest.warns(RankevalWarning, match="goes on, but the data may contain queries"):
        stream(few)
    with pytest.raises(GuardRefusal, match="3 more were in data shown before"):
        stream(more)


def test_a_refusal_says_what_to_do_with_a_data_set():
    registered()
    check = StreamedCheck.current()
    check.add(check.evidence(TEST.y, TEST.qid, docid=TEST.docid))
    with pytest.raises(GuardRefusal, match=r"filter the queries that the refusal names \(.queries\) out") as refused:
        check.refuse(action="evaluate")
    assert refused.value.queries == tuple(range(60))


@pytest.mark.parametrize("documents", [True, False])
@pytest.mark.parametrize("others", [0, 600])
def test_an_opened_output_is_accepted_and_another_is_not(documents, others):
    """Reproducing what was opened is free, also where other queries stand beside."""
    guard = rk.Guard("project")
    test = guard.register("test", None, TEST.y, qid=TEST.qid, docid=TEST.docid if documents else None)
    systems = {"opened": TEST.score, "base": -TEST.score}
    guard.open(guard.freeze(test, systems=systems, baseline="base", n_resamples=99), test)
    for sign, refused in ((1, False), (-1, False), (0.5, False), (None, True)):
        score = TEST.score * sign if sign else np.random.default_rng(6).normal(size=len(TEST.score))
        rows = Rows(TEST.y, TEST.qid, TEST.docid, score)
        if others:
            rows = rows.beside(Rows.made(others, 12, 9, first=20_000))
        expected = whole(rows, documents=documents)
        assert (expected[0] is not None) == refused
        assert in_parts(rows, documents=documents) == expected


def test_several_registrations_are_weighed_each_for_itself():
    """One of three is hidden in other data, by documents; the largest keeps all queries until they are too many."""
    for seed, size in ((11, 30), (12, 400), (13, 5)):
        registered(rows=Rows.made(size, 12, seed, first=1000 * seed), name=f"test {seed}")
    registered(documents=False, name="labels alone")
    for beside in (10, 300, 1000):
        rows = renamed(Rows.made(30, 12, 11, first=11_000)).beside(Rows.made(beside, 12, 14, first=90_000))
        expected = whole(rows, documents=True)
        assert expected[0][1] == "test 11"
        for order in range(3):
            assert in_parts(rows, documents=True, n_parts=25, order=order) == expected


def test_text_ids_are_ordered_as_in_one_piece():
    rows = Rows(TEST.y, np.array([f"q{number}" for number in TEST.qid]), TEST.docid, TEST.score)
    registered(rows=rows)
    expected = whole(rows, documents=True)
    assert expected[0] is not None
    assert in_parts(rows, documents=True, order=2) == expected


def test_parts_are_put_together_as_they_come(monkeypatch):
    """What is kept does not grow with the data: unrelated queries leave a hash each."""
    monkeypatch.setattr("rankeval.contamination.streamed._LEAST_JOINED", 100)
    registered()
    check = StreamedCheck.current()
    for part in range(40):
        one = Rows.made(50, 12, 100 + part, first=10_000 + 50 * part)
        check.add(check.evidence(one.y, one.qid, docid=one.docid, score=one.score))
    assert sum(len(one.traces.names) for one in check._parts) <= 150
    kept = check._together().traces
    assert (kept.n_queries, len(kept.names), len(kept.document_entries)) == (2000, 0, 0)
    check.refuse(action="evaluate")


def test_without_a_ledger_nothing_is_looked_at():
    """No ledger, an empty one, and one whose tests are retired: no part is hashed."""
    check = StreamedCheck.current()
    assert not check.is_needed
    assert check.evidence(object(), None) is None
    check.refuse(action="evaluate")
    guard, _ = registered()
    guard.retire("test", "given up")
    assert not StreamedCheck.current().is_needed


def test_a_later_registration_counts_from_the_next_call_on():
    """The parts that were read before it know nothing of it, so the call does not half look for it."""
    registered()
    other = Rows.made(50, 12, 2, first=700)
    check = StreamedCheck.current()
    registered(rows=other, name="later")
    check.add(check.evidence(other.y, other.qid, docid=other.docid))
    check.refuse(action="evaluate")
    again = StreamedCheck.current()
    assert again.key != check.key
    with pytest.raises(InvalidInput, match="collected for other registrations"):
        again.add(check.evidence(other.y, other.qid, docid=other.docid))
    again.add(again.evidence(other.y, other.qid, docid=other.docid))
    with pytest.raises(GuardRefusal, match="'later'"):
        again.refuse(action="evaluate")


def test_parts_that_do_not_fit_together_are_named():
    registered()

    def check_of(*parts):
        check = StreamedCheck.current()
        for docid, score in parts:
            check.add(check.evidence(TEST.y, TEST.qid, docid=docid, score=score))
        check.refuse(action="evaluate")

    with pytest.raises(InvalidInput, match="qid: queries occur in two parts"):
        check_of((TEST.docid, TEST.score), (TEST.docid, TEST.score))
    with pytest.raises(InvalidInput, match="docid: some parts have documents and others none"):
        check_of((TEST.docid, None), (None, None))
    with pytest.raises(InvalidInput, match="score: some parts have scores and others none"):
        check_of((TEST.docid, TEST.score), (TEST.docid, None))
