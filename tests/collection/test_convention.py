"""A card is believed by its name: the name of a preset gives the preset's rules, or an error."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import replace

import pytest
from tables import each_row

import rankeval as rk
from rankeval.collection.convention import PRESETS
from rankeval.errors import InvalidInput, UnknownName
from rankeval.evaluation import from_bytes, to_bytes

OTHERS = [name for name in PRESETS if name != "rankeval"]


@each_row("name", OTHERS)
def test_a_preset_s_name_is_refused_beside_other_rules(name):
    """`Convention("trec_eval-9.0.8")` once carried that name with the rules of rankeval."""
    with pytest.raises(InvalidInput, match=f"the name '{name}' is that of a preset, whose rule"):
        rk.Convention(name)


@each_row("name", PRESETS)
def test_a_preset_s_rules_may_be_written_out_under_its_name(name):
    """Name and rules that fit are the preset, by whatever way they come."""
    preset = PRESETS[name]
    same = [
        rk.Convention(**preset.card()),
        rk.Convention.from_card(json.loads(json.dumps(preset.card()))),
        pickle.loads(pickle.dumps(preset)),
        copy.deepcopy(preset),
        replace(preset),
    ]
    assert [(one.name, one.card()) for one in same] == [(name, preset.card())] * len(same)


def test_no_way_round_gives_a_preset_s_name_other_rules():
    """Replacing, unpickling and changing what was bound are refused as making is."""
    preset = PRESETS["gdeval"]
    with pytest.raises(InvalidInput, match="rule ties is 'docid' and not 'stable'"):
        replace(preset, ties="stable")
    with pytest.raises(InvalidInput, match="the name 'gdeval'"):
        replace(rk.Convention(ties="stable"), name="gdeval")
    with pytest.raises(TypeError):
        preset.bind["nDCG"] = {}
    with pytest.raises(TypeError):
        preset.bind["nDCG"]["gain"] = "linear"
    bound = {"nDCG": {"gain": "exp"}}
    mine = rk.Convention("mine", bind=bound)
    bound["nDCG"]["gain"] = "linear"
    assert mine.card()["bind"] == {"nDCG": {"gain": "exp"}}


def test_without_a_name_only_the_default_rules_are_called_rankeval():
    """`Convention(ties="stable")` is rankeval's convention with a rule changed, and says so."""
    assert rk.Convention() == PRESETS["rankeval"]
    assert rk.Convention(ties="stable").name == "rankeval+"
    assert rk.Convention(ties="stable") == PRESETS["rankeval"].with_rules(ties="stable")
    with pytest.raises(InvalidInput, match="the name 'rankeval' is that of a preset"):
        rk.Convention("rankeval", ties="stable")


def test_rules_are_changed_of_the_default_a_preset_or_a_convention():
    """By one name: of the class, with the name of a preset first, or of an object."""
    assert rk.Convention.with_rules(ties="docid") == rk.Convention(ties="docid")
    assert rk.Convention.with_rules() is PRESETS["rankeval"]
    of_preset = rk.Convention.with_rules("trec_eval-10", missing="empty", ties=None)
    assert (of_preset.name, of_preset.missing, of_preset.ties) == ("trec_eval-10+", "empty", "docid")
    assert PRESETS["trec_eval-10"].with_rules(missing="empty") == of_preset
    assert of_preset.with_rules(missing="error") != PRESETS["trec_eval-10"]  # it keeps the name of a changed one
    for rules in ({"tie": "docid"}, {"ties": "dcid"}, {"name": "mine"}):
        with pytest.raises(UnknownName):
            rk.Convention.with_rules(**rules)
    with pytest.raises(UnknownName, match="did you mean"):
        rk.Convention.with_rules("trec_eval10", ties="docid")


@each_row("name", ["", " ", 3, b"rankeval"])
def test_a_name_is_a_text(name):
    """What a card is called can be read."""
    with pytest.raises(InvalidInput, match=r"name is .*; expected a text"):
        rk.Convention(name)


def test_a_card_of_an_earlier_preset_is_read_under_another_name():
    """Stored values stay readable when a preset changes, and are not taken for those of the new one."""
    card = {**PRESETS["ranx"].card(), "no_relevant": "one"}
    read = rk.Convention.from_card(card)
    assert (read.name, read.no_relevant) == ("ranx+", "one")
    for wrong in ({"name": "x", "tis": "stable"}, {"ties": "stable"}, [], None):
        with pytest.raises(InvalidInput, match="expected the card of a convention"):
            rk.Convention.from_card(wrong)


def test_judgments_that_the_data_lack_are_said_in_the_name():
    """Rows have no other judgments: a preset that goes by all of them is changed, one that takes either is not."""
    rows = {"truth": [1, 0, 1], "ranking": [3.0, 2.0, 1.0], "qid": [1, 1, 1], "docid": ["a", "b", "c"]}
    assert rk.evaluate(**rows).convention.name == "rankeval"
    of_rows = rk.evaluate(**rows, convention="trec_eval-9.0.8").convention
    assert (of_rows.name, of_rows.judgments) == ("trec_eval-9.0.8+", "rows")
    qrels, run = {"q": {"a": 1, "b": 1}}, {"q": {"a": 1.0}}
    assert rk.evaluate(qrels, run, convention="trec_eval-9.0.8").convention == PRESETS["trec_eval-9.0.8"]
    again = rk.evaluate(qrels, run, measures="AP", convention=rk.evaluate(**rows).convention)
    assert (again.convention.name, again.convention.judgments, again.mean()["AP"]) == ("rankeval+", "rows", 1.0)


def test_a_stored_evaluation_keeps_its_card():
    """Cards written and read are equal, whatever the rules."""
    for rules in ({}, {"ties": "stable"}, {"convention": "gdeval"}):
        ev = rk.evaluate([1, 0], [2, 1], qid=[0, 0], docid=["a", "b"], measures="AP", **rules)
        assert from_bytes(to_bytes(ev)).convention == ev.convention


@each_row("name", ["TREC_EVAL-9.0.8", " trec_eval-9.0.8", "Sklearn ", "RankEval"])
def test_a_name_that_reads_as_a_preset_s_is_refused(name):
    """Capitals and blanks do not make a name of one's own: a reader of the card takes it for the preset's."""
    with pytest.raises(InvalidInput, match="is that of a preset but for capitals or blanks"):
        rk.Convention(name)
    with pytest.raises(InvalidInput, match="is that of a preset but for capitals or blanks"):
        replace(PRESETS["trec_eval-10"], name=name)
