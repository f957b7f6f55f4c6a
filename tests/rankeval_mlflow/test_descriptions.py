"""The run's description: our sections are put in and replaced, the user's words stay, and it fits into its tag."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankeval as rk
from rankeval.evaluation.result import info_of
from rankeval_mlflow.run_names import MAX_TAG
from rankeval_mlflow.views import with_sections

TEXT = st.text(alphabet="ab |\n", max_size=200).map(lambda text: text * 40)


@given(st.text(alphabet="xy \n", max_size=200), st.dictionaries(st.sampled_from(["dev", "test"]), TEXT), TEXT)
def test_the_users_words_stay_and_it_fits(note, sections, later):
    described = with_sections(note, sections)
    assert note.strip() in described
    assert len(described) <= MAX_TAG
    assert with_sections(described, sections) == described, "the same again changes nothing"
    assert len(with_sections(described, {"dev": later})) <= MAX_TAG


def test_a_section_is_replaced_where_it_stands():
    described = with_sections(with_sections("mine", {"dev": "first", "test": "other"}), {"dev": "second"})
    assert described.index("mine") < described.index("second") < described.index("other")
    assert "first" not in described


def test_a_long_table_gives_way_to_a_hint():
    described = with_sections("", {"comparison": "Paired t test.\n\n" + "| a | b |\n" * 1000})
    assert "Paired t test." in described
    assert "see the report among the artifacts" in described


@pytest.mark.usefixtures("without_formula")
def test_a_runs_description_says_what_was_drawn():
    """The error of values over drawn orders of ties stands below the table."""
    evaluation = rk.evaluate([1, 0] * 20, [1.0] * 40, qid=["a"] * 40, measures=["SquaredAP", "AP"])
    assert info_of(evaluation)["ties"] in evaluation.record().text.replace("\\", "")


def test_control_characters_of_a_name_are_escaped():
    """A name may come from a file of somebody else."""
    evaluation = rk.evaluate([1, 0], [1.0, 2.0], qid=["a", "a"], measures="AP", name="x\x1b[31m\u202ey")
    section = evaluation.record().text
    assert "\x1b" not in section
    assert "\u202e" not in section
    assert r"x\\x1b\[31m\\u202ey" in section
