"""The values that a parameter may have follow from the type that its kernel declares."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput
from rankeval.measures import measure, measure_from_key
from rankeval.measures.family import FAMILIES, family


@each_row(
    ("name", "says"),
    [
        ("IAP11(levels=0.5)", "levels is 0.5; expected numbers"),
        ("IAP11(levels=())", r"levels is \(\); expected numbers"),
        ("IAP11(levels=('x',))", "expected numbers"),
        ("INST(max_rel=3, depth=0)", "depth is 0; expected a rank, 1 or greater"),
        ("INSQ(max_rel=3, depth=2.5)", "expected a rank"),
        ("Accuracy(collection_size=-2)", "1 or greater"),
        ("Utility(a='x')", "a is 'x'; expected a number"),
        ("P(rel='x')@5", "rel is 'x'; expected a number"),
        ("P(rel=True)@5", "rel is True; expected a number"),
        ("P(rel=None)@5", "rel is None; expected a number"),
        ("P(rel=1e400)@5", "rel is inf; expected a number"),
        ("F(alpha='x')", "expected a number"),
        ("AP(normalizer=3)", "expected text in quotes"),
        ("nDCG(gain={0: 0, 1: -1})", "gains of 0 or more"),
        ("nDCG(gain={'a': 1})", "by grade"),
        ("nDCG(gain={})", "by grade"),
        ("nDCG(gain=3)", "text in quotes, or gains"),
        ("Compat(normalize='x')", "expected True or False"),
        ("P(cutoff='x')", "1 or greater"),
        ("RBP(p=1)", "p is 1; expected a number from 0 to below 1"),
        ("Compat(p=0)", "p is 0; expected a number above 0 and below 1"),
        ("pFound(max_rel=3, p_break=1.5)", "p_break is 1.5; expected a number from 0 to 1"),
        ("INST(max_rel=3, T=0)", "T is 0; expected a number above 0"),
        ("F(beta=1e101)", "expected a number from 0 to 1e100"),
        ("P(cutoff=2.5)", "1 or greater"),
    ],
)
def test_a_value_of_another_type_is_refused_where_the_name_is_read(name, says):
    """One line names the parameter, the value and the kind of value that is expected."""
    with pytest.raises(InvalidInput, match=says) as caught:
        measure(name)
    assert "\n" not in str(caught.value)


@each_row("one", FAMILIES.values(), ids=lambda one: one.name)
def test_every_parameter_of_every_family_refuses_what_it_cannot_be(one):
    """No parameter takes an arbitrary object, nan or infinity."""
    for name in one.defaults:
        for wrong in (object(), float("nan"), float("inf")):
            with pytest.raises(InvalidInput):
                one.with_parameters(**{**dict.fromkeys(("max_rel", "p", "of"), 1), name: wrong})


def test_numbers_of_numpy_are_numbers():
    """Numbers out of arrays print as plain ones."""
    ndcg, average = FAMILIES["nDCG"], FAMILIES["IAP11"]
    assert str(ndcg.with_parameters(cutoff=np.int64(10), gain={np.int64(1): np.float64(2)})) == "nDCG(gain={1: 2})@10"
    assert str(average.with_parameters(levels=np.array([0.25, 1.0]))) == "IAP11(levels=(0.25, 1))"
    assert str(measure("P(rel=1e300)")) == "P(rel=1e+300)"
    assert str(FAMILIES["Compat"].with_parameters(normalize=np.bool_(False))) == "Compat(normalize=False)"


def test_a_measure_of_ones_own_is_checked_by_its_defaults():
    """Without annotations, a default that is a number asks for numbers."""

    @family("OwnHit", title="-", formula="-", source="-", linear=True)
    def own_hit(judged, *, rel=1, strict=False, kind=None, cutoff=None):  # noqa: ARG001 - only declared
        """Say whether the first row is relevant."""
        return judged.hits(rel, 1)

    try:
        assert str(measure("OwnHit(rel=2.5, kind='x')@3")) == "OwnHit(kind='x', rel=2.5)@3"
        for wrong in ("OwnHit(rel='x')", "OwnHit(strict=1)", "OwnHit(cutoff='x')"):
            with pytest.raises(InvalidInput):
                measure(wrong)
    finally:
        del FAMILIES["OwnHit"]


@each_row("name", ["nDCG(gain='exp')", "DCG(gain='exp')@1", "NCG(gain='exp')", "G(gain='exp')"])
def test_a_grade_too_great_for_exponential_gain_is_named(name):
    """2^1024 is beyond floats: the message says so, instead of a value of 0 or infinity."""
    with pytest.raises(InvalidInput, match="a document has grade 1024"):
        rk.evaluate([1024, 0], [1, 2], qid=[1, 1], measures=name)
    assert np.isfinite(rk.evaluate([1000, 1000], [1, 2], qid=[1, 1], measures=name).scores).all()


def test_a_greatest_grade_too_great_for_exponential_gain_is_named():
    """The same holds for max_rel in cascades."""
    with pytest.raises(InvalidInput, match="max_rel is 2000"):
        rk.evaluate([1, 0], [1, 2], qid=[1, 1], measures="ERR(max_rel=2000)")


@each_row("name", ["DCG", "nDCG", "IdealDCG"])
def test_the_base_of_a_logarithm_is_greater_than_one(name):
    """With base 1 every discount would be 0/0."""
    for base in (1, 0.5, -2):
        with pytest.raises(InvalidInput, match=f"base is {base}; expected a number above 1"):
            measure(f"{name}(base={base})")
    for base in (1.5, 10):
        assert np.isfinite(rk.evaluate([1, 0], [2, 1], qid=[0, 0], measures=f"{name}(base={base})").scores).all()


NUMBERS = st.one_of(st.integers(-(10**6), 10**6), st.floats(allow_nan=False, allow_infinity=False))
GAINS = st.dictionaries(NUMBERS, st.floats(0, 1e6), min_size=1, max_size=3)
SHARES = st.floats(0, 1)
TEXT = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=8)


@given(st.one_of(TEXT, GAINS), st.floats(1, 1e6, exclude_min=True), st.one_of(st.none(), st.integers(1, 10**7)))
@example("True", 2, None)
@example("inf", 2, None)
@example("1", 2, None)
def test_any_parameters_parse_back_from_names_and_keys(gain, base, cutoff):
    """A name and a key give back the measure that printed them, and a key has only characters that MLflow takes."""
    one = FAMILIES["nDCG"].with_parameters(gain=gain, base=base, cutoff=cutoff)
    assert measure(str(one)) == one
    assert measure_from_key(one.key) == one
    assert re.fullmatch(r"[A-Za-z0-9._-]+", one.key)


@given(SHARES, st.lists(SHARES, min_size=1, max_size=3), st.sampled_from(["exact", "trec_eval-9", "trec_eval-10"]))
def test_keys_of_different_parameters_differ(recall, levels, rule):
    """Two measures have one key only if they are equal."""
    some = [FAMILIES["IPrec"].with_parameters(recall=one, rule=rule) for one in (recall, *levels)]
    some += [FAMILIES["IAP11"].with_parameters(levels=levels[:n], rule=rule) for n in range(1, len(levels) + 1)]
    assert len({one.key for one in some}) == len({str(one) for one in some}) == len(set(some))
