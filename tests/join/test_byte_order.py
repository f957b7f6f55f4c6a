"""Tied rows stand in the order of their ids' bytes."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankeval as rk
from rankeval.join.byte_order import order_tied_by_bytes
from rankeval.join.judged import TiedGroups

# Few letters, so that ids agree for long: with NUL, and in one to four bytes of UTF-8.
LETTERS = st.text(alphabet="ab\0\u00e9\u6f22\U0001f389", max_size=20)
IDS = st.lists(st.one_of(LETTERS, LETTERS.map("http://a.example/".__add__)), min_size=1, max_size=30)


def ordered(ids, sizes, kind, *, ascending):
    """Return the rows of groups of tied rows that stand one behind the other, in the order of their ids."""
    end = np.cumsum(sizes)
    ties = TiedGroups(end - sizes, end, np.arange(len(sizes)))
    row = np.arange(len(ids))
    column = pa.array(ids, kind)
    order_tied_by_bytes(row, ties, lambda tied: column.take(pa.array(tied)), ascending=ascending)
    return row.tolist()


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@given(groups=st.lists(IDS, min_size=1, max_size=6), ascending=st.booleans())
def test_ids_stand_in_the_order_of_their_bytes(kind, groups, ascending):
    """Python's own comparison of bytes, group by group; equal ids keep their order."""
    ids, expected = [], []
    for group in groups:
        sign = 1 if ascending else -1
        number = {name: sign * place for place, name in enumerate(sorted({name.encode() for name in group}))}
        places = sorted(range(len(group)), key=lambda place: number[group[place].encode()])
        expected += [len(ids) + place for place in places]
        ids += group
    sizes = np.array([len(group) for group in groups])
    assert ordered(ids, sizes, kind, ascending=ascending) == expected


def test_groups_of_any_size_and_ids_of_any_length_are_ordered():
    """A group of 20,000 rows beside pairs; ids differ at their start, their end, or by their length alone."""
    rng = np.random.default_rng(7)
    numbers = rng.permutation(40_000)
    ids = [f"{'p' * (number % 50)}{number}{'s' * (number % 7)}" for number in numbers]
    sizes = np.array([20_000, *[2] * 10_000])
    begin = np.cumsum(sizes) - sizes
    expected = [
        row
        for first, size in zip(begin, sizes, strict=True)
        for row in sorted(range(first, first + size), key=lambda row: ids[row], reverse=True)
    ]
    assert ordered(ids, sizes, pa.string(), ascending=False) == expected


@pytest.mark.parametrize("as_ids", [list, np.array, pa.array, lambda ids: pa.array(ids).dictionary_encode()])
def test_arrays_of_ids_of_each_kind_are_ordered_alike(as_ids):
    """Numbers stand in the order of their texts, as texts do: 9 before 10."""
    relevance = [0, 1, 0, 1]
    given_values = []
    for ids in (["9", "10", "100", "1"], [9, 10, 100, 1]):
        scored = rk.evaluate(
            relevance, [1.0] * 4, qid=[1] * 4, docid=as_ids(ids), measures=["AP"], convention="trec_eval-9.0.8"
        )
        given_values.append(scored.per_query.to_numpy().tolist())
    # 9, 100, 10, 1: the relevant ones have ranks 3 and 4.
    assert given_values == [[[(1 / 3 + 2 / 4) / 2]]] * 2


def test_a_long_run_is_evaluated_without_pandas(tmp_path):
    """By the command, also a file that is longer than its first rows, whose ranks are compared."""
    run = "".join(f"{query} Q0 d{rank} {rank} {-rank} t\n" for query in range(40) for rank in range(100))
    (tmp_path / "run").write_text(run)
    (tmp_path / "qrels").write_text("".join(f"{query} 0 d3 1\n" for query in range(40)))
    code = (
        "import sys; from rankeval.cli import app; app(sys.argv[1:], standalone_mode=False); "
        "print({'pandas', 'scipy', 'matplotlib'} & {*sys.modules}, file=sys.stderr)"
    )
    arguments = ["evaluate", tmp_path / "qrels", tmp_path / "run", "--format", "trec"]
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "set()"
    assert len(run) > 2**16
