"""A test or a correction is one declaration: compare, errors, help, captions, notes and laws have it from there."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from calibration.experiments import EXPERIMENTS, Effort, one_pair, shared_baseline
from calibration.guide import significance_markdown
from scipy.stats import norm
from typer.testing import CliRunner

import rankeval as rk
from rankeval.cli import app
from rankeval.errors import InvalidInput, UnknownName
from rankeval.significance import CORRECTIONS, TESTS, Correction, PairedResult, SignificanceTest, paired_test
from rankeval.significance.catalogue import rates_of


def majority(d, settings):
    """Take a majority of the queries for evidence of 1 in 4."""
    lead = np.sign(d).sum(axis=0)
    greater, less = np.where(lead > 0, 0.25, 1.0), np.where(lead < 0, 0.25, 1.0)
    reach = np.abs(d).max(axis=0)
    return PairedResult(settings.p_of_tails(greater, less), -reach, reach)


def z_test(d, settings):
    """Take the mean for normal, with the standard deviation of the sample."""
    mean, error = d.mean(axis=0), d.std(axis=0, ddof=1) / np.sqrt(len(d))
    p_value = settings.p_of_tails(norm.sf(mean / error), norm.cdf(mean / error))
    half = norm.isf(settings.tail) * error
    return PairedResult(np.maximum(p_value, 1e-300), mean - half, mean + half)


def sidak(p):
    """Adjust as if the comparisons were independent: 1 - (1 - p) ** m."""
    return 1 - (1 - np.asarray(p, dtype=float)) ** len(p)


@pytest.fixture(autouse=True)
def _declared():
    """Declare both for one test."""
    TESTS["majority"] = SignificanceTest(
        function=majority,
        words="majority test",
        floor=lambda _, settings: settings.sides / 4,
        note="a majority says nothing about the mean",
        liberal="99 % at 10 queries",
    )
    CORRECTIONS["sidak"] = Correction(
        function=sidak, words="Sidak", note="Sidak takes the {size} comparisons as independent"
    )
    yield
    del TESTS["majority"], CORRECTIONS["sidak"]


def loaded(path):
    spec = importlib.util.spec_from_file_location("laws_for_the_drill", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def of_all_tests(law):
    """Yield the rows of a law for the declared test; none if the law does not go over all tests."""
    rows = getattr(law, "rows", {})
    if any((name,) not in table for name in TESTS for table in [rows.get(("name",), ())]):
        return
    for row in itertools.product(*({**rows, ("name",): [("majority",)]}).values()):
        yield dict(zip(itertools.chain(*rows), itertools.chain(*row), strict=True))


@pytest.fixture
def laws():
    """Return the laws of all tests and corrections."""
    module = loaded(Path(__file__).parents[1] / "significance" / "test_laws.py")
    assert "majority" in module.DECLARED  # the laws find it
    assert "sidak" in module.DECLARED
    return module


def systems(n=60):
    generator = np.random.default_rng(0)
    return {name: pd.DataFrame({"AP": generator.random(n)}) for name in ("bm25", "ltr", "bert")}


def compared(n=60, **options):
    return rk.compare(systems(n), test="majority", correction="sidak", **options)


def test_compare_runs_and_corrects_by_it():
    found = compared()
    assert found.table["p_value"].isin([0.5, 1.0]).all()
    np.testing.assert_allclose(found.table["p_adjusted"], sidak(found.table["p_value"]))


def test_every_form_of_the_result_has_its_words():
    found = compared()
    for form in (str(found), found.to_markdown(), found.to_latex(), found._repr_html_(), found.caption):
        assert "Majority test over 60 queries; Sidak over 3 comparisons" in form
    assert found.plot()._suptitle.get_text().startswith("Majority test")
    assert "a majority says nothing about the mean" in found.notes
    assert "Sidak takes the 3 comparisons as independent" in found.notes
    assert any("smallest p-value possible is 0.5, and the family of 3 asks for 0.017" in note for note in found.notes)
    assert r"\begin{table}" in found.to_latex()
    again = rk.Comparison.from_json(found.to_json())
    assert again.caption == found.caption


def test_a_saved_result_is_read_where_they_are_not_declared(monkeypatch):
    """With the keys for words."""
    text = compared().to_json()
    with monkeypatch.context() as elsewhere:
        elsewhere.delitem(TESTS, "majority")
        elsewhere.delitem(CORRECTIONS, "sidak")
        assert "Majority over 60 queries; sidak over 3 comparisons" in str(rk.Comparison.from_json(text))


def test_its_error_rates_are_noted_and_warned_of():
    with pytest.warns(rk.errors.RankevalWarning, match="majority test is liberal on fewer than 50 queries"):
        compared(20)


def test_errors_offer_its_name():
    with pytest.raises(UnknownName, match="unknown test 'majorty'; did you mean 'majority'"):
        rk.compare(systems(), test="majorty")
    with pytest.raises(UnknownName, match="unknown correction 'sidack'; did you mean 'sidak'"):
        rk.compare(systems(), correction="sidack")


def test_the_help_of_the_command_names_it_and_the_command_takes_it(tmp_path):
    shown = CliRunner().invoke(app, ["compare", "--help"], env={"COLUMNS": "200"})
    text = " ".join(shown.output.split())
    assert "majority (majority test)" in text
    assert "sidak (Sidak)" in text
    for name, one in {**TESTS, **CORRECTIONS}.items():
        assert f"{name} ({one.words})" in text
    (tmp_path / "qrels").write_text("".join(f"q{q} 0 d{d} {(q + d) % 2}\n" for q in range(60) for d in range(4)))
    for run, step in (("one", 1), ("two", 3)):
        lines = (f"q{q} Q0 d{d} 1 {(d * step + q) % 5} {run}\n" for q in range(60) for d in range(4))
        (tmp_path / run).write_text("".join(lines))
    files = [str(tmp_path / name) for name in ("qrels", "one", "two")]
    done = CliRunner().invoke(app, ["compare", *files, "--test", "majority", "--correction", "sidak"])
    assert done.exit_code == 0, done.output
    assert "Majority test over 60 queries; Sidak over" in done.output


def test_the_list_and_the_command_show_it_as_not_measured():
    """Until the calibration run has measured it: the rates of another test are not its own."""
    listed = rk.list_tests()
    for name in ("majority", "sidak"):
        assert listed.loc[name, ["two_sided", "one_sided"]].tolist() == ["not measured", "not measured"]
        assert listed.loc[name, "note"]
    assert listed.loc["majority", "title"] == "Take a majority of the queries for evidence of 1 in 4."
    shown = CliRunner().invoke(app, ["tests", "majority"])
    assert shown.exit_code == 0, shown.output
    assert "not measured" in shown.output
    assert "| `sidak` | correction | Sidak |" in significance_markdown()
    assert rates_of(TESTS["majority"].words).empty


def test_a_test_under_an_old_name_is_not_taken_for_the_measured_one(monkeypatch):
    monkeypatch.setitem(TESTS, "t", TESTS["majority"])
    assert rk.list_tests().loc["t", "two_sided"] == "not measured"


def test_the_calibration_run_measures_it():
    """Without an edit: a majority of 25 queries is never evidence at 5 %, and Sidak keeps its level."""
    effort = Effort(of_t=50, of_others=50, n_resamples=99, in_families=99)
    found = {}
    for function in (one_pair, shared_baseline):
        experiment = next(one for one in EXPERIMENTS if one.function is function and one.options["n"] == 25)
        found |= experiment.run(1, effort, lambda name: name in ("majority", "sidak"))
    rates = {(row.kind, row.name): values.mean() for row, values in found.items() if row.quantity == "false claims"}
    assert rates["test", "majority"] == 0
    assert rates["correction", "sidak"] < 0.3


def test_the_entry_stands_below_the_function_and_nowhere_else():
    """No other file of the package knows a test by its name."""
    package = Path(rk.__file__).parent
    named = {
        path: {one.value for one in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(one, ast.Constant)}
        for path in package.rglob("*.py")
    }
    for name, declared in TESTS.items():
        if "_" in name:  # others are words, such as "sign"
            assert [path for path, texts in named.items() if name in texts] == [
                Path(inspect.getsourcefile(declared.function))
            ]


def test_folds_are_corrected_by_it_too(laws):
    assert "sidak" in laws.corrections_of_p_values()


def test_it_is_held_to_the_laws_of_all_tests(laws):
    laws.test_equal_systems_have_p_one.of_a_row("majority")
    laws.test_bad_differences_are_refused.of_a_row("majority", [0.1, np.inf], "finite")
    laws.test_p_values_are_probabilities_and_sides_mirror("majority")
    laws.test_the_order_of_queries_matters_only_as_far_as_chance_does.of_a_row("majority", 14)
    laws.test_a_seed_matters_where_it_is_said_to.of_a_row("majority")
    laws.test_declarations_speak_to_people.of_a_row("majority")
    for alternative in laws.ALTERNATIVES:
        laws.test_no_p_value_is_below_its_floor.of_a_row("majority", alternative)
        laws.test_one_sided_intervals_are_open_on_the_other_side.of_a_row("majority", alternative)


@pytest.mark.parametrize(
    "path", sorted((Path(__file__).parents[1] / "significance").glob("test_*.py")), ids=lambda p: p.stem
)
def test_no_law_names_the_tests_that_there_are(path):
    """Each law that goes over all tests holds for a tenth one, which no file but this one knows."""
    TESTS["majority"] = SignificanceTest(function=z_test, words="z test", needs_variance=True)
    for law in vars(loaded(path)).values():
        for row in of_all_tests(law):
            law.of_a_row(**row)


def test_it_is_held_to_the_laws_of_all_corrections(laws):
    laws.test_adjusted_p_values_keep_order_and_never_fall("sidak")
    laws.test_declarations_speak_to_people.of_a_row("sidak")


def test_a_test_that_breaks_a_law_is_found(laws):
    """One whose p-value does not know the swap of the systems."""

    def first_query(d, _):
        return PairedResult(np.where(d[0] > 0, 0.5, 1.0), d.min(axis=0), d.max(axis=0))

    TESTS["majority"] = SignificanceTest(function=first_query, words="first query")
    with pytest.raises(AssertionError):
        laws.test_p_values_are_probabilities_and_sides_mirror("majority")
    with pytest.raises(InvalidInput, match="at least 2 queries"):
        laws.paired_test("majority", [0.1])


@pytest.mark.parametrize("returned", [PairedResult(np.array([np.nan]), np.zeros(1), np.ones(1)), (0.5, 0.0, 1.0)])
def test_a_test_without_a_p_value_is_refused_by_its_words(returned, monkeypatch):
    monkeypatch.setitem(TESTS, "broken", SignificanceTest(function=lambda *_: returned, words="broken test"))
    with pytest.raises(InvalidInput, match="the broken test gave no p-value"):
        paired_test("broken", [0.1, 0.3, 0.2])
