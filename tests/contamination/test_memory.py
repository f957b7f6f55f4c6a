"""What one process shows of a registered collection adds up, query by query, and the same queries do not."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import rankeval as rk
from rankeval.contamination import ContaminationCheck, forget, refusal
from rankeval.contamination.matching import Shown, match_content
from rankeval.contamination.refusal import MEMORY
from rankeval.errors import GuardRefusal, RankevalWarning


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("RANKEVAL_LEDGER", str(tmp_path / "ledger"))
    forget()
    data = rk.datasets.make_ranking(60, 12, 5, rng=11)
    rk.Guard("project").register("test", data)
    yield data
    forget()


def part(data, query):
    return data.take(data.qid == query)


def evaluate(one, score=None):
    return rk.evaluate(one.y, one.X[:, 0] if score is None else score, qid=one.qid)


def refused_at(step, queries):
    """Return how many queries passed before a refusal; None if all did."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankevalWarning)
        for n, query in enumerate(queries):
            try:
                step(query)
            except GuardRefusal:
                return n
    return None


def test_a_loop_over_queries_with_features_is_refused_at_the_third(data):
    def fit(query):
        one = part(data, query)
        ContaminationCheck.current().refuse(one.X, one.y, one.qid, action="fit")

    assert refused_at(fit, range(1, 61)) == 2


def test_a_loop_over_queries_with_other_features_is_refused(data):
    """Labels in the order of scaled columns, under new ids: each query shows little, a few show enough."""

    def fit(query):
        one = part(data, query)
        ContaminationCheck.current().refuse(2 * one.X + 1, one.y, one.qid + 1000, action="fit")

    assert refused_at(fit, range(1, 61)) < 15


def test_a_loop_of_evaluations_by_labels_is_refused(data):
    assert refused_at(lambda query: evaluate(part(data, query)), range(1, 61)) < 10


def test_the_same_two_queries_again_and_again_do_not_add_up(data):
    """With features they are warned about, each time; by their labels they are not even that."""
    two = data.take(np.isin(data.qid, [4, 9]))
    for _ in range(30):
        with pytest.warns(RankevalWarning, match=r"\(2 of its 60 queries are in the data;.*: 4, 9\."):
            ContaminationCheck.current().refuse(two.X, two.y, two.qid, action="fit")
    forget()
    with warnings.catch_warnings():
        warnings.simplefilter("error", RankevalWarning)
        for _ in range(30):
            evaluate(two)


def test_the_refusal_says_what_was_shown_before(data):
    for query in (1, 2):
        with pytest.warns(RankevalWarning, match="1 of its 60"):
            ContaminationCheck.current().refuse(part(data, query).X, None, [query] * 12, action="fit")
    with pytest.raises(GuardRefusal, match="1 of its 60 queries are in the data, and 2 more were in data"):
        ContaminationCheck.current().refuse(part(data, 3).X, None, [3] * 12, action="fit")


def test_recurring_queries_with_new_labels_take_back_what_earlier_ones_showed(data):
    """Of a query's labels the last word counts, so months of recurring queries never add up."""
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RankevalWarning)
        for _ in range(50):
            rk.evaluate(rng.permutation(data.y), data.X[:, 0], qid=data.qid)
    shown = next(iter(MEMORY.values()))
    assert not shown.content.any()


def test_an_opened_ranking_is_accepted_query_by_query_and_another_is_not(data):
    guard = rk.Guard("project")
    systems = {"a": data.X[:, 0], "b": data.X[:, 1]}
    guard.open(guard.freeze(guard.register("test", data), systems=systems))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RankevalWarning)
        for _ in range(2):
            for query in range(1, 61):
                evaluate(part(data, query))
    assert refused_at(lambda query: evaluate(part(data, query), -part(data, query).X[:, 2]), range(1, 61)) < 15


def test_memory_is_no_part_of_a_check_and_is_forgotten(data):
    with pytest.warns(RankevalWarning):
        ContaminationCheck.current().refuse(part(data, 1).X, None, [1] * 12, action="fit")
    assert len(MEMORY) == 1
    assert len(pickle.dumps(ContaminationCheck.current())) < 1000
    forget()
    assert not MEMORY


def test_columns_of_few_queries_are_paid_for_by_how_many_were_tried():
    shown = Shown.empty(100)
    shown.candidates[:] = 1
    shown.columns[:3] = 12.0
    assert not shown.told_by_columns(3, 40).any()
    shown.columns[:10] = 12.0
    assert np.flatnonzero(shown.told_by_columns(3, 40)).tolist() == list(range(10))
    shown.candidates[:] = 500  # nine bits of each are used up
    assert not shown.told_by_columns(3, 40).any()


@pytest.mark.parametrize("beside", [0, 4])
def test_a_scorer_that_looks_at_some_queries_first_sees_scaled_features_under_new_ids(data, monkeypatch, beside):
    """It looks at the labels that are rarest in the data, and at all others only if these show something."""
    monkeypatch.setattr("rankeval.contamination.refusal._VALUES_OF_A_SCORER", 50 * 12 * 5)
    dev = rk.datasets.make_ranking(60 * beside + 1, 12, 5, rng=3)
    X, y = np.vstack([2 * data.X - 1, dev.X]), np.append(data.y, dev.y)
    qid = np.append(data.qid + 1000, dev.qid + 9000)
    scorer = rk.make_scorer("nDCG@10")

    class Model:
        def predict(self, X):
            return X[:, 0]

    with pytest.raises(GuardRefusal):
        scorer(Model(), X, y, qid=qid)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RankevalWarning)
        scorer(Model(), dev.X, dev.y, qid=dev.qid + 9000)


def mixed(data, rng=0):
    """Return the test scaled, 5 % of it relabelled, under new ids, beside other data; and where the test is."""
    rng, dev = np.random.default_rng(rng), rk.datasets.make_ranking(200, 12, 5, rng=12)
    y = np.where(rng.random(len(data)) < 0.05, (data.y + 1) % 5, data.y)
    X, y, qid = np.vstack([2 * data.X + 1, dev.X]), np.append(y, dev.y), np.append(data.qid + 7000, dev.qid + 9000)
    return X, y, qid, np.arange(len(qid)) < len(data)


def test_a_refusal_says_that_more_may_be_in_the_data_than_it_names(data):
    """It names some queries; without them the others of the test stay in, and nothing shows them."""
    X, y, qid, of_test = mixed(data)
    model = rk.QueryRanker(Ridge())
    with pytest.raises(GuardRefusal, match=r"the other \d+ of the collection may be in the data too: .* that source"):
        model.fit(X, y, qid=qid)
    status = rk.Guard("project").status(X, y, qid=qid)
    assert (~status.rows & of_test).any()
    assert status.n_unaccounted > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error", RankevalWarning)
        model.fit(X[~of_test], y[~of_test], qid=qid[~of_test])  # the source was dropped


def test_it_says_no_such_thing_if_each_query_was_recognised_by_itself(data):
    _, _, qid, of_test = mixed(data)
    X, y = np.vstack([data.X, mixed(data)[0][~of_test]]), np.append(data.y, mixed(data)[1][~of_test])
    model = rk.QueryRanker(Ridge())
    with pytest.raises(GuardRefusal, match="queries are in the data") as refusal:
        model.fit(X, y, qid=qid)
    assert "drop that source" not in str(refusal.value)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RankevalWarning)
        model.fit(X[~of_test], y[~of_test], qid=qid[~of_test])


def test_the_same_data_is_matched_once_against_registrations_of_which_it_shows_nothing(data, monkeypatch):
    guard, model = rk.Guard("project"), rk.QueryRanker(Ridge())
    for seed in range(1, 5):
        guard.register(f"test {seed}", rk.datasets.make_ranking(30, 12, 5, rng=seed))
    dev, asked = rk.datasets.make_ranking(40, 12, 5, rng=99), []
    monkeypatch.setattr(
        refusal, "match_content", lambda one, *given, **more: asked.append(one) or match_content(one, *given, **more)
    )
    for n_asked in (5, 5):
        model.fit(dev.X, dev.y, qid=dev.qid + 500)
        assert len(asked) == n_asked
    guard.register("another", dev.X + 7, dev.y, qid=dev.qid + 500)
    with pytest.raises(GuardRefusal, match="'another'"):
        model.fit(dev.X, dev.y, qid=dev.qid + 500)
    asked.clear()
    changed = dev.X.copy()
    changed[:12] = data.X[:12]
    with pytest.raises(GuardRefusal, match="'another'"):
        model.fit(changed, dev.y, qid=dev.qid + 500)
    assert len(asked) == 6


def test_queries_that_were_shown_and_then_exempted_are_forgotten(tmp_path, monkeypatch):
    monkeypatch.setenv("RANKEVAL_LEDGER", str(tmp_path / "ledger"))
    forget()
    data = rk.datasets.make_ranking(32, 12, 5, rng=0)
    guard = rk.Guard("project")
    guard.register("test", data)
    names = np.unique(data.qid)[:2]
    two = np.isin(data.qid, names)
    with pytest.warns(rk.errors.RankevalWarning, match="2 of its 32 queries are in the data"):
        rk.QueryRanker(Ridge()).fit(data.X[two], data.y[two], qid=data.qid[two])
    guard.exempt("test", names.tolist(), "in dev of old")
    with pytest.raises(GuardRefusal, match="30 of its 30 recognisable queries are in the data; registered"):
        rk.QueryRanker(Ridge()).fit(data.X, data.y, qid=data.qid)
    forget()
