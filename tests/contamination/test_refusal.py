"""The refusal stands on what the ledger says, or on its last state that was read."""

import pickle
import re
import sqlite3

import numpy as np
import pytest

import rankeval as rk
from rankeval.contamination import ContaminationCheck, forget
from rankeval.contamination.fingerprint import fingerprint
from rankeval.contamination.refusal import refusal_message, warning_message
from rankeval.errors import GuardRefusal, LedgerError, RankevalWarning
from rankeval.ledger.ledger import Ledger


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    """Return the file of a ledger that this process finds by itself."""
    path = tmp_path / "ledger.db"
    monkeypatch.setenv("RANKEVAL_LEDGER", str(path))
    forget()
    yield path
    forget()


@pytest.fixture
def data(ledger):
    """Register queries in that ledger."""
    assert not ledger.exists()
    data = rk.datasets.make_ranking(40, 12, 5, rng=11)
    rk.Guard("project").register("test", data)
    return data


def evaluate(data):
    return rk.evaluate(data.y, data.X[:, 0], qid=data.qid)


def test_a_refusal_tells_its_parts_also_after_a_pickle(ledger, data):
    with pytest.raises(GuardRefusal) as refused:
        evaluate(data)
    again = pickle.loads(pickle.dumps(refused.value))
    for one in (refused.value, again):
        assert (one.collection, one.project, one.ledger) == ("test", "project", None)
        assert one.queries == tuple(np.unique(data.qid).tolist())
        assert str(one).startswith(one.found)
        assert "guard" not in one.found.partition("(")[0]
    rk.Guard("other", ledger=ledger.parent / "second.db").register("again", data)
    rk.Guard("project").retire("test", "to ask the other one")
    with pytest.raises(GuardRefusal) as refused:
        evaluate(data)
    assert (refused.value.project, refused.value.ledger) == ("other", str(ledger.parent / "second.db"))


def test_where_no_features_were_given_none_are_spoken_of(data):
    with pytest.raises(GuardRefusal, match=r"then y\[~mask\], qid\[~mask\]\."):
        evaluate(data)


def spoil(ledger):
    ledger.write_bytes(b"no database any more" * 500)


def test_a_ledger_that_cannot_be_read_any_more_goes_on_by_its_state(ledger, data):
    """Damage to the file frees nothing: what was known is refused as before, with a warning that says so."""
    head = rk.Guard("project").head
    with pytest.raises(GuardRefusal):
        evaluate(data)
    spoil(ledger)
    with (
        pytest.warns(RankevalWarning, match=rf"(?s)cannot be read.*; using its last known state, head {head[:12]}"),
        pytest.raises(GuardRefusal),
    ):
        evaluate(data)


def test_a_ledger_that_is_gone_goes_on_by_its_state_for_scorers(ledger, data):
    """Deleting the file frees nothing for work that began before, and says so."""
    check = ContaminationCheck.current()
    ledger.unlink()
    with (
        pytest.warns(RankevalWarning, match=r"ledger\.db is gone.*using its last known state"),
        pytest.raises(GuardRefusal),
    ):
        check.refuse(data.X, data.y, data.qid, action="fit")
    forget()
    with pytest.raises(LedgerError, match=r"ledger\.db is gone"):
        check.refuse(data.X, data.y, data.qid, action="fit")


def test_a_ledger_that_was_never_read_is_an_error(ledger, data):
    assert ContaminationCheck.current().ledgers
    spoil(ledger)
    forget()
    with pytest.raises(LedgerError, match="cannot be read"):
        ContaminationCheck.current()
    with pytest.raises(LedgerError, match="cannot be read"):
        evaluate(data)


def test_a_worker_with_a_newer_head_goes_on_by_the_register_it_knows(ledger, data):
    """The head came with the scorer, the ledger is gone before it was read at that head."""
    url, head = f"sqlite:///{ledger}", rk.Guard("project").head
    known = fingerprint(data.X, data.y, data.qid)
    ((_, found),) = ContaminationCheck(((url, head),)).matches(known)
    assert found.refused
    spoil(ledger)
    with pytest.warns(RankevalWarning, match=rf"(?s)cannot be read.*; using its last known state, head {head[:12]}"):
        ((_, again),) = ContaminationCheck(((url, "f" * 64),)).matches(known)
    assert again.refused
    forget()
    with pytest.raises(LedgerError, match="cannot be read"):
        ContaminationCheck(((url, head),)).matches(known)


def test_a_ledger_that_was_shortened_is_named(ledger, data):
    """The head that the work began with must still be there."""
    url = f"sqlite:///{ledger}"
    known = fingerprint(data.X, data.y, data.qid)
    with pytest.raises(LedgerError, match="no longer has the entry ffffffffffff that this work began with"):
        ContaminationCheck(((url, "f" * 64),)).matches(known)


def test_what_is_appended_by_another_process_counts_at_once(ledger, data):
    """The register is read anew where the file has changed, and once for each of its states."""
    other = rk.datasets.make_ranking(40, 12, 5, rng=12)
    evaluate(other)
    with pytest.raises(GuardRefusal, match="'test'"):
        evaluate(data)
    ContaminationCheck.current()
    rk.Guard("project").register("other", other)
    with pytest.raises(GuardRefusal, match="'other'"):
        evaluate(other)
    with sqlite3.connect(ledger) as connection:
        connection.execute("DELETE FROM rankeval_ledger_entries")
    connection.close()
    evaluate(data)


def test_the_message_names_the_ledger_as_a_file_and_a_server_without_its_password(ledger, data):
    with pytest.raises(GuardRefusal, match=rf"; ledger {re.escape(str(ledger))}\)"):
        evaluate(data)
    known = fingerprint(data.X, data.y, data.qid)
    ((url, found),) = ContaminationCheck.current().matches(known)
    assert url == f"sqlite:///{ledger}"
    assert "; ledger nosuchdb://***@host/x)" in refusal_message("nosuchdb://me:secret@host/x", found, known, "evaluate")
    assert "; ledger nosuchdb://***@host/x)" in warning_message("nosuchdb://me:secret@host/x", found, known, "evaluate")


def test_the_ledger_is_read_once_for_each_state_of_the_file(data, monkeypatch):
    """A scorer asks for every fold: what has not changed is not read again."""
    looked = []
    read = Ledger.read
    monkeypatch.setattr(Ledger, "read", lambda ledger, *given: looked.append(ledger.url) or read(ledger, *given))
    first = ContaminationCheck.current()
    assert ContaminationCheck.current() == first
    assert len(looked) == 1
    rk.Guard("project").register("other", rk.datasets.make_ranking(40, 12, 5, rng=12))
    looked.clear()
    assert ContaminationCheck.current() != first
    assert ContaminationCheck.current() == ContaminationCheck.current()
    assert len(looked) == 1
    with pytest.raises(GuardRefusal):
        evaluate(data)
    monkeypatch.setattr(Ledger, "read", None)
    with pytest.raises(GuardRefusal):
        evaluate(data)


def test_without_a_ledger_or_without_content_nothing_is_fingerprinted(ledger, monkeypatch):
    """Where there is nothing to respect, it costs nothing; and what has no query ids cannot be told."""
    monkeypatch.setattr("rankeval.contamination.refusal.fingerprint", None)
    monkeypatch.setattr("rankeval.contamination.refusal.fingerprint_qrels", None)
    assert not ledger.exists()
    assert not ContaminationCheck.current().ledgers
    ContaminationCheck.current().refuse([[1.0]], [1], [1], action="fit")
    ContaminationCheck.current().refuse_collection(rk.Qrels.from_dict({"q": {"d": 1}}), action="evaluate")
    monkeypatch.undo()


def test_rows_without_ids_or_without_any_content_are_let_through(data):
    assert ContaminationCheck.current().ledgers
    ContaminationCheck.current().refuse(data.X, data.y, None, action="fit")
    ContaminationCheck.current().refuse(None, None, data.qid, action="fit")


def test_what_was_opened_by_one_project_may_be_scored_again_by_all(data):
    """The same content, registered by two projects: the looks at it are those of both."""
    guard, theirs = rk.Guard("project"), rk.Guard("theirs")
    theirs.register("their test", data)
    test = guard.register("test", data)
    scores = {"a": data.X[:, 0], "b": data.X[:, 1]}
    guard.open(guard.freeze(test, systems=scores))
    rk.evaluate(data.y, scores["a"], qid=data.qid)
    rk.evaluate(data.y, 3 * scores["b"] - 1, qid=data.qid)
    with pytest.raises(GuardRefusal):
        rk.evaluate(data.y, scores["a"] + scores["b"], qid=data.qid)


def test_switched_off_means_off_for_seals_that_were_made_before(data, monkeypatch):
    """A scorer that came from elsewhere respects the switch of the process that it works in."""
    check = ContaminationCheck.current()
    assert check.up_to_date() == check
    monkeypatch.setenv("RANKEVAL_LEDGER", "off")
    forget()
    assert check.ledgers
    assert not check.up_to_date().ledgers
    check.refuse(data.X, data.y, data.qid, action="fit")
    assert pickle.loads(pickle.dumps(check)).ledgers == ()


def test_seals_from_elsewhere_are_respected_beside_ones_own(tmp_path, data, monkeypatch):
    """And of one ledger the newer head counts."""
    check = ContaminationCheck.current()
    monkeypatch.setenv("RANKEVAL_LEDGER", str(tmp_path / "other.db"))
    forget()
    other = rk.datasets.make_ranking(40, 12, 5, rng=12)
    rk.Guard("project").register("other", other)
    for one in (data, other):
        with pytest.raises(GuardRefusal):
            check.refuse(one.X, one.y, one.qid, action="fit")
    assert len(check.up_to_date().ledgers) == 2
    own = ContaminationCheck.current()
    rk.Guard("project").register("third", rk.datasets.make_ranking(40, 12, 5, rng=13))
    assert own.up_to_date() == ContaminationCheck.current() != own


def test_what_was_opened_is_still_refused_to_whoever_brings_no_ranking(data):
    """Fitting and searching have no scores to compare: an opened collection is a test for them as before."""
    guard = rk.Guard("project")
    test = guard.register("test", data)
    guard.open(guard.freeze(test, systems={"a": data.X[:, 0], "b": data.X[:, 1]}))
    ContaminationCheck.current().refuse(data.X, data.y, data.qid, score=data.X[:, 0], action="score")
    with pytest.raises(GuardRefusal, match=r"^fit was refused"):
        ContaminationCheck.current().refuse(data.X, data.y, data.qid, action="fit")
    qrels = {f"q{q}": {f"d{q}-{d}": int((q * d) % 3 == 1) for d in range(12)} for q in range(10)}
    run = {q: {d: float(len(d) + place) for place, d in enumerate(docs)} for q, docs in qrels.items()}
    topics = guard.register("topics", qrels=qrels)
    other = {q: {d: -score for d, score in docs.items()} for q, docs in run.items()}
    guard.open(guard.freeze(topics, systems={"a": run, "b": other}, measure="AP"))
    judgments = rk.Qrels.from_dict(qrels)
    ContaminationCheck.current().refuse_collection(judgments, rk.Run.from_dict(run), action="evaluate")
    with pytest.raises(GuardRefusal, match=r"^tune was refused"):
        ContaminationCheck.current().refuse_collection(judgments, action="tune")


def test_queries_of_too_little_evidence_are_let_through_with_a_warning(data):
    """Three queries are refused, two may be chance."""
    for n_queries in (3, 2):
        part = data.qid <= n_queries
        rows = data.X[part], data.y[part], data.qid[part]
        if n_queries == 3:
            with pytest.raises(GuardRefusal, match="3 of its 40 queries"):
                ContaminationCheck.current().refuse(*rows, action="fit")
        else:
            with pytest.warns(
                RankevalWarning, match=r"fit goes on, but .*\(2 of its 40 queries .* too little to refuse it"
            ):
                ContaminationCheck.current().refuse(*rows, action="fit")


@pytest.mark.parametrize("features", [True, False])
def test_the_lines_that_a_refusal_prints_get_one_out(data, features):
    """How many of how many, the first five ids, by whom and when; and what is left is accepted."""
    dev = rk.datasets.make_ranking(50, 12, 5, rng=77)
    X, y = np.vstack([data.X, dev.X]), np.append(data.y, dev.y)
    qid = np.append(data.qid, dev.qid + 500)

    def use(X, y, qid):
        check = ContaminationCheck.current()
        check.refuse(X if features else None, y, qid, action="fit")

    with pytest.raises(GuardRefusal) as refused:
        use(X, y, qid)
    said = str(refused.value)
    assert "40 of its 40 queries are in the data" in said
    assert re.search(r"registered by \S+@\S+ on 20\d\d-\d\d-\d\d", said)
    assert "In the data, 40 queries: 1, 2, 3, 4, 5, ...." in said
    assert ("X[~mask]" in said) == features
    line = re.search(r"guard = (Guard\(.*?\)): .*? mask = (guard\.status\(.*?\)\.rows)", said)
    assert line is not None
    scope = {"Guard": rk.Guard, "X": X, "y": y, "qid": qid}
    scope["guard"] = eval(line[1], scope)  # noqa: S307 - the test is that the printed line works
    mask = eval(line[2], scope)  # noqa: S307 - as above
    assert mask.tolist() == (qid < 500).tolist()
    use(X[~mask], y[~mask], qid[~mask])


def test_a_refused_collection_of_judgments_is_told_in_its_own_terms(ledger):
    assert not ledger.exists()
    rng = np.random.default_rng(0)
    qrels = {f"q{q}": {f"d{q}-{d}": int(rng.integers(0, 3)) for d in range(12)} for q in range(10)}
    other = {f"o{q}": {f"e{q}-{d}": int(rng.integers(0, 3)) for d in range(12)} for q in range(5)}
    guard = rk.Guard("project")
    guard.register("topics", qrels=qrels)
    whole = rk.Qrels.from_dict(qrels | other)
    with pytest.raises(GuardRefusal, match=r"guard\.status\(qrels=qrels\)\.rows, then qrels\.to_frame\(\)\[~mask\]"):
        ContaminationCheck.current().refuse_collection(whole, action="evaluate")
    rest = whole.to_frame()[~guard.status(qrels=whole).rows]
    ContaminationCheck.current().refuse_collection(rk.Qrels.from_frame(rest), action="evaluate")
    assert set(rest["qid"]) == set(other)


def test_a_guard_of_another_ledger_is_named_with_it(data, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    other = rk.datasets.make_ranking(40, 12, 5, rng=12)
    rk.Guard("project", ledger=elsewhere).register("other", other)
    with pytest.raises(GuardRefusal, match=re.escape(f"guard = Guard('project', ledger='{elsewhere}')")):
        evaluate(other)
    with pytest.raises(GuardRefusal, match=re.escape("guard = Guard('project'): ")):
        evaluate(data)
