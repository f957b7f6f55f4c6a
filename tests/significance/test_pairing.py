"""Scores of systems meet by query id, whatever the order of rows, and nothing is filled in."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tables import each_row

from rankeval.errors import InvalidInput, QueryIdError, UnknownName
from rankeval.significance.columns import pair_scores


def frame(ids, **columns):
    return pd.DataFrame(columns or {"AP": np.arange(len(ids), dtype=float)}, index=pd.Index(ids))


ONE = frame(["c", "a", "b"], AP=[3.0, 1.0, 2.0], RR=[30.0, 10.0, 20.0])
TWO = frame(["b", "d", "c"], RR=[0.2, 0.4, 0.3], AP=[0.02, 0.04, 0.03])


def test_rows_meet_by_id_in_ascending_order():
    """Columns are taken by name, in the order asked for."""
    paired = pair_scores({"one": ONE, "two": TWO}, ["RR", "AP"], unpaired="skip")
    assert paired.queries.tolist() == ["b", "c"]
    assert paired.scores.tolist() == [[[20.0, 2.0], [0.2, 0.02]], [[30.0, 3.0], [0.3, 0.03]]]
    assert paired.absent == {"one": 1, "two": 1}
    same = pair_scores({"one": ONE, "again": ONE.iloc[::-1]}, ["AP"], unpaired="error")
    assert same.queries.tolist() == ["a", "b", "c"]
    assert same.scores[:, :, 0].tolist() == [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]
    assert same.absent == {}


def test_systems_with_other_queries_are_refused_by_name():
    with pytest.raises(QueryIdError, match=r"'one' lacks 1 of 4 queries, such as 'd'; .*unpaired=\"skip\""):
        pair_scores({"one": ONE, "two": TWO}, ["AP"], unpaired="error")
    many = frame([f"q{number}" for number in range(7)])
    with pytest.raises(QueryIdError, match="'few' lacks 5 of 7 queries, such as 'q2', 'q3', 'q4'; evaluate"):
        pair_scores({"many": many, "few": many.iloc[:2]}, ["AP"], unpaired="error")
    for missing in ("error", "skip"):
        with pytest.raises(
            QueryIdError,
            match=r"no query in common: 'one' has ids such as 'c'; 'two' has ids such as 'x'; compare",
        ):
            pair_scores({"one": ONE, "two": frame(["x", "y"])}, ["AP"], unpaired=missing)
        with pytest.raises(QueryIdError, match=r"'one' has ids such as 1; 'two' has ids such as '1'; compare"):
            pair_scores({"one": frame([1, 2]), "two": frame(["1", "2"])}, ["AP"], unpaired=missing)
        with pytest.raises(QueryIdError, match="no query in common: there are no queries"):
            pair_scores({"one": ONE.iloc[:0], "two": ONE.iloc[:0]}, ["AP"], unpaired=missing)
        with pytest.raises(QueryIdError, match=r"no query in common: 'one' has ids such as 'c'$"):
            pair_scores({"one": ONE, "none": ONE.iloc[:0]}, ["AP"], unpaired=missing)
    five = {f"s{number}": frame([f"q{number}"]) for number in range(5)}
    with pytest.raises(QueryIdError, match=r"'s0' has ids such as 'q0'; .*'q1'; 's2' has ids such as 'q2'; comp"):
        pair_scores(five, ["AP"], unpaired="skip")


@each_row(
    ("wrong", "error", "says"),
    [
        (frame(["a", None], AP=[1.0, 2.0]), QueryIdError, "or one without an id"),
        (
            pd.concat({"web": frame(["a", "b"]), "shop": frame(["a"])}),
            InvalidInput,
            r"index of 2 levels, such as \[\('web', 'a'\)\]; scores of one collection have an index of query ids alone",
        ),
        (frame(["a", "b", "a"], AP=[1.0, 2.0, 3.0]), QueryIdError, "has the query 'a' more than once"),
        (frame(["a"], AP=["x"]), InvalidInput, "not numbers"),
        (frame(["a", "b"], AP=[1.0, np.nan]), InvalidInput, "on query 'b' in 'AP' is not finite"),
        (frame(["a", "b"], AP=[np.inf, 1.0]), InvalidInput, "on query 'a' in 'AP' is not finite"),
        (frame(["a", "b"], AP=pd.array([1, None], dtype="Int64")), InvalidInput, "on query 'b' in 'AP' is not finite"),
        (pd.DataFrame([[1.0, 2.0]], index=["a"], columns=["AP", "AP"]), InvalidInput, "two columns named 'AP'"),
    ],
)
def test_scores_and_ids_that_cannot_be_compared_are_named(wrong, error, says):
    with pytest.raises(error, match=f"system 'wrong'.*{says}|score of system 'wrong' {says}"):
        pair_scores({"wrong": wrong, "right": frame(["a", "b"])}, ["AP"], unpaired="skip")


def test_another_rule_for_missing_queries_is_unknown():
    for missing in ("zero", "empty"):
        with pytest.raises(UnknownName, match="value of unpaired"):
            pair_scores({"one": ONE, "two": ONE}, ["AP"], unpaired=missing)


def test_ids_of_several_types_have_an_order_of_their_own():
    """By type and text: resampling does not depend on the order of rows there either."""
    mixed = frame([2, "b", 10, "a"], AP=[1.0, 2.0, 3.0, 4.0])
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]):
        paired = pair_scores({"one": mixed.iloc[order], "two": mixed}, ["AP"], unpaired="error")
        assert paired.queries.tolist() == [10, 2, "a", "b"]
        assert paired.scores[:, 0, 0].tolist() == paired.scores[:, 1, 0].tolist() == [3.0, 1.0, 4.0, 2.0]
