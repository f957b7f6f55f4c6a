"""Every result is saved and loaded without MLflow, and what was loaded is saved again byte for byte."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import fields
from functools import cache

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from shelf.every_kind import EVIL, evaluation, results
from test_display import assert_fits

import rankeval as rk
from rankeval.errors import InvalidInput, UnknownName
from rankeval.report import report_for_evaluation, report_for_judging
from rankeval.shelf.kinds import KINDS, class_of

TITLES = sorted(results())
AGAIN = """
import json, sys
sys.modules["mlflow"] = sys.modules["rankeval_mlflow"] = None
import rankeval as rk
saved, folder = sys.argv[1:]
seals = {}
for title, options in json.load(open(f"{saved}/options.json")).items():
    result = rk.load(f"{saved}/{title}")
    seals[title] = [type(result).__name__, rk.save(result, f"{folder}/{title}", **options)]
    assert rk.read_record(f"{folder}/{title}").kind == rk.read_record(f"{saved}/{title}").kind
print(json.dumps(seals))
"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Return the folder that holds all results, each by its title."""
    folder = tmp_path_factory.mktemp("saved")
    seals = {title: rk.save(result, folder / title, **options) for title, (result, options) in results().items()}
    (folder / "options.json").write_text(json.dumps({title: options for title, (_, options) in results().items()}))
    return folder, seals


def test_there_is_a_result_of_every_kind():
    kinds = {result.record(**options).kind for result, options in results().values()}
    assert kinds == KINDS.keys(), "a kind without a class, or a class without a result in these tests"
    for result, options in results().values():
        assert class_of(result.record(**options).kind) is type(result)


@pytest.mark.worth("a process of its own, as its hashes are")
@pytest.mark.parametrize("seed", ["1", pytest.param("2", marks=pytest.mark.further)])
def test_a_new_process_without_mlflow_saves_what_it_loads_again_byte_for_byte(seed, saved, tmp_path):
    folder, seals = saved
    env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", AGAIN, str(folder), str(tmp_path)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    again = json.loads(done.stdout.splitlines()[-1])
    assert again == {title: [type(result).__name__, seals[title]] for title, (result, _) in results().items()}
    for title in seals:
        names = sorted(path.relative_to(folder / title) for path in (folder / title).rglob("*") if path.is_file())
        other = tmp_path / title
        assert names == sorted(path.relative_to(other) for path in other.rglob("*") if path.is_file()), title
        for name in names:
            assert (folder / title / name).read_bytes() == (other / name).read_bytes(), (title, name)


@cache
def loaded(title, folder):
    return rk.load(folder / title)


@pytest.mark.parametrize("title", TITLES)
def test_a_loaded_result_reads_as_the_one_that_was_saved(title, saved, monkeypatch):
    """In its words, its tables, and as a page, if a page is made of it; its figures are laid out, and not painted."""
    monkeypatch.setattr("rankeval.report.html._image", lambda _: "data:,")
    result, back = results()[title][0], loaded(title, saved[0])
    assert (str(back), back._repr_html_()) == (str(result), result._repr_html_())
    assert_fits(result)
    for field in fields(result):
        mine, theirs = getattr(result, field.name), getattr(back, field.name)
        if isinstance(mine, pd.DataFrame):
            assert_frame_equal(theirs, mine, check_exact=True)
        elif isinstance(mine, str | int | tuple) and field.name != "estimators":
            assert theirs == mine, field.name
    if isinstance(result, rk.Evaluation) and result.n_queries:
        assert report_for_evaluation(back, role="dev") == report_for_evaluation(result, role="dev")
    elif hasattr(result, "table"):
        assert report_for_judging([back]) == report_for_judging([result])


def test_the_scores_of_a_cross_validation_come_back_unless_they_were_left_out(saved):
    plain = results()["cross-validation"][0]
    assert loaded("cross-validation", saved[0]).predictions.tobytes() == plain.predictions.tobytes()
    assert not len(loaded("cross-validation without scores", saved[0]).predictions)
    search = loaded("cross-validation of a search", saved[0])
    assert_frame_equal(search.best_params, results()["cross-validation of a search"][0].best_params)
    assert (search.estimators, search.ranker) == (None, None)


def test_loaded_results_are_compared_as_those_that_were_saved(saved):
    """They are results, not pictures of them."""
    ours, back = results()["cross-validations"][0], loaded("cross-validations", saved[0])
    for question in ("algorithms", "models"):
        found, expected = (one.compare(question=question, baseline="ridge") for one in (back, ours))
        assert found.table.equals(expected.table)
    other = evaluation("other", seed=9)
    found, expected = (
        rk.compare({"a": one, "b": other}).table for one in (loaded("evaluation", saved[0]), evaluation())
    )
    assert found.equals(expected)


def test_a_rate_without_groups_has_a_metric():
    """Of any pandas: a frame of no columns has no rows in pandas 2."""
    rates = results()["abandonment"][0]
    assert rates.record().metrics["abandonment/all"] == rates.table["abandonment"].item()


def test_names_that_are_markup_are_text_in_what_people_read(saved):
    folder = saved[0]
    assert rk.read_record(folder / "evaluation by name and slices").name == EVIL
    for readme in folder.rglob("README.md"):
        text = readme.read_text("utf-8")
        assert "<script" not in text.replace("\\<", ""), readme


def test_a_note_stands_once_in_what_people_read(saved):
    """In Markdown an underscore is escaped; the notes of a profile have some."""
    text = (saved[0] / "profile" / "README.md").read_text("utf-8")
    assert text.count("has no 95 % interval with only 10 queries") == 3


@pytest.mark.parametrize(
    ("result", "options", "says"),
    [
        (lambda: results()["comparison"][0], {"slices": {}}, r"slices= belongs to Evaluation, and this is of class"),
        (lambda: results()["evaluation"][0], {"folds": True}, r"folds= belongs to CrossValidation or CrossValidations"),
        (lambda: results()["agreement"][0], {"colour": "red"}, r"no result has an option colour="),
        (pd.DataFrame, {}, r"^result is .*expected a result such as evaluate"),
        (lambda: rk.Evaluation, {}, r"^result is .*expected a result such as evaluate"),
    ],
)
def test_what_a_class_does_not_take_is_refused_before_a_folder_is_made(result, options, says, tmp_path):
    with pytest.raises(InvalidInput, match=says):
        rk.save(result(), tmp_path / "x", **options)
    assert not any(tmp_path.iterdir())


def test_a_kind_of_a_later_version_is_read_and_not_loaded(tmp_path):
    """It can be listed and forwarded all the same."""
    from rankeval.shelf.folder import write

    seal = write(rk.Record("novelty", metrics={"a": np.inf}), tmp_path / "x")
    with pytest.raises(UnknownName, match="unknown kind of record 'novelty'"):
        rk.load(tmp_path / "x")
    assert write(rk.read_record(tmp_path / "x"), tmp_path / "y") == seal
