"""What is said of error rates is read from the file of measured ones, or held against it."""

from __future__ import annotations

import inspect
import json
import re
from importlib.resources import files
from pathlib import Path

import pytest
from calibration.document import paragraphs
from calibration.guide import significance_markdown
from tables import each_row
from typer.testing import CliRunner

import rankeval as rk
from rankeval.cli import app
from rankeval.significance import CORRECTIONS, FOLD_TESTS, TESTS
from rankeval.significance import catalogue as rates
from rankeval.significance.declarations import CLAIMS

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "examples" / "guides" / "significance.md"
LIBERAL = [name for name, test in TESTS.items() if test.liberal]


def words(text):
    return " ".join(text.split())


def test_the_file_is_in_the_package():
    found = json.loads(files("rankeval.significance").joinpath("error_rates.json").read_text("utf-8"))
    assert found["level"] == 0.05
    assert {len(line) for line in found["rates"]} == {found["columns"].index("sides") + 1}
    assert all(set(row) == set(found["columns"]) for row in rates.all_rows())
    assert min(row["n"] for row in rates.all_rows()) == rates.FEWEST_QUERIES


@each_row(("function", "paragraph"), paragraphs().items(), ids=lambda one: getattr(one, "__name__", ""))
def test_a_docstring_has_the_measured_rates(function, paragraph):
    """Word for word, so that neither can change alone."""
    assert paragraph in words(inspect.getdoc(function)), "run: python tests/calibration/document.py"


def test_every_function_that_tests_or_corrects_has_such_a_docstring():
    declared = {one.function for table in (TESTS, FOLD_TESTS, CORRECTIONS) for one in table.values()}
    assert declared == set(paragraphs())


@each_row("name", LIBERAL)
def test_the_warning_of_a_liberal_test_has_its_measured_rates(name):
    """The greatest of all worlds."""
    false = rates.rates_of(TESTS[name].words)
    false = false[(false["quantity"] == "false claims") & (false["sides"] == "two-sided")]
    few, more = (rates.percent(false["rate"][false["n"] == n].max()) for n in (10, 25))
    assert TESTS[name].liberal == f"up to {few} at 10 {{units}}, {more} at 25"


@each_row("name", TESTS)
def test_the_rates_of_a_test_are_rows_of_the_table(name):
    """Its columns and no other, numbered from 0: `rankeval tests` prints them as they are."""
    table, own = rates.all_rates(), rates.rates_of(TESTS[name].words)
    wanted = table[(table["kind"] == "test") & (table["name"] == name)].to_dict("records")
    assert own.to_dict("records") == wanted
    assert own.index.tolist() == list(range(len(wanted)))


def test_rates_read_as_sentences():
    said = rates.of_one_pair(rates.rates_of(TESTS["t"].words))
    assert re.search(r"exponential differences \d+\.\d % at 10 queries, \d+\.\d % at 25, .*% at 100$", said)
    assert rates.of_one_pair(rates.rates_of(TESTS["t"].words).iloc[:0]) == ""


def test_the_table_has_every_declaration():
    table = rk.list_tests()
    assert table.index.tolist() == [*TESTS, *FOLD_TESTS, *CORRECTIONS, *CLAIMS]
    assert (table[["words", "title", "description"]] != "").all(axis=None)
    assert table["two_sided"]["t"] == rates.of_one_pair(rates.rates_of(TESTS["t"].words))
    assert rates.NOT_MEASURED not in table["two_sided"].drop([*CLAIMS]).tolist()


def test_a_part_of_a_name_finds_them():
    assert rk.list_tests("HOLM").index.tolist() == ["holm"]
    assert rk.list_tests("randomis").index.tolist() == ["randomization", "tukey"]
    with pytest.raises(rk.errors.UnknownName, match="did you mean 'wilcoxon'"):
        rk.list_tests("wilcoxxon")


def test_the_guide_is_up_to_date():
    """To the byte, so that neither declarations nor rates can change alone."""
    assert significance_markdown() == GUIDE.read_text(encoding="utf-8"), "run: python tests/calibration/document.py"


def test_every_declaration_and_world_is_in_the_guide():
    text = significance_markdown()
    for name in (*TESTS, *FOLD_TESTS, *CORRECTIONS, *CLAIMS):
        assert f"| `{name}` |" in text
    for world in rates.measured()["worlds"]:
        assert f"| {world} |" in text
    for table in text.split("\n\n"):
        if table.startswith("|"):
            widths = {len(line.replace("\\|", "").split("|")) for line in table.strip().splitlines()}
            assert len(widths) == 1, table.splitlines()[0]


def test_the_command_prints_the_rates_of_what_it_finds():
    def printed(*arguments):
        done = CliRunner().invoke(app, ["tests", *arguments], env={"COLUMNS": "300"})
        assert done.exit_code == 0, done.output
        return " ".join(done.output.split())

    assert "Wilcoxon signed-rank test" in printed()
    assert rates.of_one_pair(rates.rates_of(TESTS["wilcoxon"].words)) in printed("wilcoxon")
    found = json.loads(printed("max_t", "--format", "json"))
    assert {row["name"] for row in found} == {"max_t"}
    assert len(found) == len(rates.rates_of(CORRECTIONS["max_t"].words))
    assert printed("--format", "csv").startswith("name,kind,words")
