"""A measure is one declaration in one file: help, errors, results and laws follow from it, without another edit."""

from __future__ import annotations

import importlib.util
import pickle
from pathlib import Path

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor
from typer.testing import CliRunner

import rankeval as rk
from rankeval.cli import app
from rankeval.errors import InvalidInput, UnknownName
from rankeval.measures import family, measures_markdown
from rankeval.measures.family import FAMILIES


def share_above(judged, *, rel: float = 1, cutoff: int = 2):
    """Share of the first rows that are relevant: 0 to 1, higher is better; 0 without relevant documents."""
    return judged.hits(rel, cutoff) / cutoff


@pytest.fixture(autouse=True)
def declared():
    """Declare the measure for one test."""
    family(
        "ShareAbove",
        title="share of the first rows",
        formula="hits(k) / k",
        source="a test",
        linear=True,
        spellings={"hound": ("share_above_{cutoff}",)},
    )(share_above)
    yield
    del FAMILIES["ShareAbove"]


@pytest.fixture
def laws(monkeypatch):
    """Return the laws of all measures, with the cases of this one alone."""
    path = Path(__file__).parents[1] / "laws" / "test_measure_laws.py"
    spec = importlib.util.spec_from_file_location("laws_for_the_drill", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    own = [name for name in module.all_members() if name.startswith("ShareAbove")]
    assert len(own) > 2  # the laws find it, with each parameter changed in turn
    monkeypatch.setattr(module, "all_members", lambda: own)
    return module


class TestHelp:
    """It is documented by its own words."""

    def test_the_catalogue_has_a_row(self):
        row = rk.list_measures().loc["ShareAbove"]
        assert row["parameters"] == "rel=1, cutoff=2"
        assert row["description"] == share_above.__doc__
        assert row["spellings"] == "hound: share_above_{cutoff}"

    def test_the_command_lists_it(self):
        shown = CliRunner().invoke(app, ["measures", "--format", "csv"])
        assert shown.exit_code == 0
        assert "ShareAbove,share of the first rows," in shown.output

    def test_the_guide_has_a_line(self):
        assert "| **ShareAbove**: share of the first rows | hits(k) / k |" in measures_markdown()


class TestErrors:
    """Errors name it, its parameters and their values."""

    @pytest.mark.parametrize(
        ("wrong", "error", "says"),
        [
            ("ShareAbov@3", UnknownName, "did you mean 'ShareAbove@3'"),
            ("ShareAbove(rell=2)", UnknownName, "unknown parameter of ShareAbove 'rell'; did you mean 'rel'"),
            ("ShareAbove(rel='x')", InvalidInput, "ShareAbove: rel is 'x'; expected a number"),
            ("ShareAbove@0", InvalidInput, "ShareAbove: cutoff is 0; expected a rank"),
            ("share_above_5@3", InvalidInput, "share_above_5 is 'ShareAbove@5' here \\(hound\\)"),
        ],
    )
    def test_wrong_names_are_refused_with_help(self, wrong, error, says):
        with pytest.raises(error, match=says):
            rk.measure(wrong)

    def test_a_bound_that_it_does_not_declare_is_refused(self):
        with pytest.raises(InvalidInput, match="ShareAbove@1 is not monotone"):
            rk.evaluate([1, 0], [1, 1], qid=[1, 1], measures="ShareAbove@1", ties="best")


class TestResults:
    """It scores everywhere, under its name, another tool's name and a key."""

    def test_names_and_keys_give_it_back(self):
        one = rk.measure("shareabove(rel=2)@3")
        assert str(one) == "ShareAbove(rel=2)@3"
        assert rk.measure_from_key(one.key) == one
        assert rk.measure("share_above_3") == rk.measure("ShareAbove@3")

    def test_it_travels(self):
        one = rk.measure("ShareAbove@3")
        assert pickle.loads(pickle.dumps(one)) == one

    def test_evaluations_have_it(self):
        ev = rk.evaluate([1, 0, 1], [3, 2, 1], qid=[1, 1, 1], measures=["share_above_3", "ShareAbove@1"])
        assert ev.mean().to_dict() == {"share_above_3": 2 / 3, "ShareAbove@1": 1.0}

    def test_tied_rows_have_their_mean_over_all_orders(self):
        ev = rk.evaluate([1, 0, 0, 0], [2, 2, 2, 2], qid=[1, 1, 1, 1], measures="ShareAbove@2")
        assert ev.mean()["ShareAbove@2"] == 1 / 4

    def test_scorers_and_comparisons_have_it(self):
        X, y, qid = np.zeros((4, 1)), np.array([1, 0, 1, 0]), np.array([1, 1, 2, 2])
        assert rk.make_scorer("ShareAbove@1")(DummyRegressor().fit(X, y), X, y, qid=qid) == 0.5
        systems = {
            name: rk.evaluate(np.tile(y, 3), score, qid=np.repeat(range(6), 2), measures="ShareAbove@1")
            for name, score in (("a", np.arange(12)), ("b", -np.arange(12)))
        }
        assert list(rk.compare(systems).table["measure"]) == ["ShareAbove@1"]


class TestLaws:
    """The laws take it from the registry, hold for it, and fail for a declaration that is wrong."""

    def test_the_laws_hold(self, laws):
        laws.test_the_order_of_rows_does_not_matter()
        laws.test_only_the_order_of_scores_matters()
        laws.test_values_stay_within_the_declared_bounds()
        laws.test_expected_is_the_mean_over_all_orders_of_tied_rows()
        laws.test_the_aggregate_is_the_declared_one()
        laws.test_keys_do_not_collide()

    def test_a_wrong_declaration_breaks_one(self, laws):
        object.__setattr__(FAMILIES["ShareAbove"], "bounds", (0.0, 0.1))
        with pytest.raises(AssertionError):
            laws.test_values_stay_within_the_declared_bounds()
