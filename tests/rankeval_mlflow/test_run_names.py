"""Names and values that MLflow would refuse or alter never reach it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlflow.utils.validation import (
    MAX_ENTITY_KEY_LENGTH,
    MAX_PARAM_VAL_LENGTH,
    _validate_metric_name,
    _validate_param_name,
    _validate_tag_name,
)

from rankeval.errors import InvalidInput
from rankeval.shelf.record import checked_word
from rankeval_mlflow.run_names import (
    EVALUATION,
    evaluated_runs,
    metrics_of,
    param_text,
    safe_name,
    safe_names,
    short_digest,
    with_evaluation,
)


@given(st.text(max_size=400))
def test_any_text_becomes_a_name_that_mlflow_takes(name):
    safe = safe_name(name)
    _validate_metric_name(safe)
    _validate_param_name(safe)
    _validate_tag_name(safe)
    assert len(safe) <= MAX_ENTITY_KEY_LENGTH


@pytest.mark.parametrize("name", ["nDCG_at_10", "estimator__max_depth", "dev/AP", "P__rel.2_at_5", "a b.c-d"])
def test_a_name_that_mlflow_takes_stays_as_it_is(name):
    assert safe_name(name) == name


@given(st.lists(st.text(alphabet="ab@(_/.", max_size=6), unique=True))
def test_no_two_names_become_one(names):
    safe = safe_names(names)
    assert list(safe) == names
    assert len(set(safe.values())) == len(names)


def test_a_safe_name_is_not_taken_by_one_that_is_altered():
    assert safe_names(["a@b", "a_at_b"])["a_at_b"] == "a_at_b"


@pytest.mark.parametrize("role", ["", "te/st", "..", "dev test", "-x", "dév", "a" * 65, None])
def test_a_role_is_a_plain_word(role):
    with pytest.raises(InvalidInput, match="plain word"):
        checked_word(role)


def test_values_fit_and_a_cut_is_seen():
    text = param_text("x" * 10_000)
    assert len(text) <= MAX_PARAM_VAL_LENGTH
    assert text.endswith("(cut, 10000 characters)")
    assert param_text(0.1) == "0.1"


def test_a_short_digest_fits_into_a_data_set():
    assert short_digest("sha256:" + "ab" * 32) == "ab" * 8


ROLES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_\-]{0,9}", fullmatch=True)
RUNS = st.from_regex(r"[0-9a-f]{4}", fullmatch=True)
METRICS = st.dictionaries(st.text(alphabet="aAP in;@[]0_ci_low.", min_size=1, max_size=12), st.floats(), max_size=3)


@given(st.lists(st.tuples(ROLES, METRICS, RUNS), min_size=1, max_size=5))
def test_the_tag_of_a_version_leads_to_the_last_run_of_each_role(logged):
    """Whatever the measures of a user are called."""
    held, last = {}, {}
    for role, metrics, run_id in logged:
        held = with_evaluation(held, role, metrics_of(metrics), run_id)
        last[role] = run_id
    assert evaluated_runs({EVALUATION: json.dumps(held)}) == last
