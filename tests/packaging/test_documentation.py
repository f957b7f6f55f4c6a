"""What the documentation shows is what happens: README, doctests, examples."""

from __future__ import annotations

import ast
import doctest
import importlib
import os
import pkgutil
import re
from importlib.util import find_spec
from pathlib import Path

import forking
import pytest
from circles import CIRCLE

import rankeval
from rankeval.ledger.discovery import FOLDER
from rankeval.measures.family import FAMILIES

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted(module.name for module in pkgutil.walk_packages(rankeval.__path__, "rankeval."))
PROGRAMS = re.findall(
    r"```python\n(.*?)```\n\n```text\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL
)
SCORING = "rk.evaluate(split.test.y, split.test.X[:, 0], qid=split.test.qid)"
# The one of five minutes starts a server, and has a test of its own.
EXAMPLES = sorted(set((ROOT / "examples").glob("*.py")) - {ROOT / "examples" / "09_five_minutes_mlflow.py"})
LONG = ("02_grid_search_lightgbm.py", "07_relevance_test.py")  # of a quarter of a CPU minute
NEEDS = {"03_early_stopping_xgboost.py": "xgboost", "04_catboost_in_a_pipeline.py": "catboost"}


@pytest.mark.worth("runs the docstrings of all modules")
def test_doctests():
    """Every example in a docstring gives what it says; only the default circle may lack a package that one imports."""
    failures, lacking = {}, {}
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    for name in MODULES:
        module, declared = importlib.import_module(name), set(FAMILIES)
        for docstring in doctest.DocTestFinder(exclude_empty=True).find(module):
            source = "".join(example.source for example in docstring.examples)
            absent = [one for one in re.findall(r"^(?:import|from) (\w+)", source, re.MULTILINE) if not find_spec(one)]
            if absent:
                lacking[docstring.name] = absent
            elif runner.run(docstring).failed:
                failures[docstring.name] = runner.failures
        for example in set(FAMILIES) - declared:  # else the laws over all measures would find them
            del FAMILIES[example]
    assert failures == {}
    assert CIRCLE == "default" or lacking == {}


def in_a_project(folder):
    """Make a folder the root of a project, as a reader has one, and return an environment that names no ledger."""
    (folder / "pyproject.toml").touch()
    return {name: value for name, value in os.environ.items() if name != "RANKEVAL_LEDGER"}


@pytest.mark.worth("runs the programs of the README")
def test_the_readme_prints_what_it_shows_and_refuses_what_it_says(tmp_path):
    """Its programs, one after the other in one session, each print the block that stands below it.

    After them, in the same session, the test part is refused: whatever reads it, and not only the call that is named.
    """
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    named = re.search(r"Since the split, `(rk\.cross_validate\(.*?\))` is refused", text)[1]
    calls = (named, "rk.QueryRanker(Ridge()).fit(split.test.X, split.test.y, qid=split.test.qid)", SCORING)
    refusing = "".join(f"\ntry:\n    {call}\nexcept rk.errors.GuardRefusal:\n    print('refused')\n" for call in calls)
    path = tmp_path / "program.py"
    ends = "\nprint('-- end of a program')\n"
    told = "__import__('warnings').simplefilter('error', UserWarning)\n"
    path.write_text(told + "".join(program + ends for program, _ in PROGRAMS) + refusing)
    done = forking.run(path, cwd=tmp_path, env=in_a_project(tmp_path))
    assert done.stderr == ""
    assert not (tmp_path / FOLDER).exists(), "it would refuse the reader's own work later"
    *printed, last = done.stdout.split("-- end of a program\n")
    assert [one.split("\n") for one in printed] == [shown.split("\n") for _, shown in PROGRAMS]
    assert last.splitlines() == ["refused"] * 3


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 130


def test_the_readme_names_the_values_of_three_conventions():
    """The first program's run has the three values of nDCG@10 that the README states."""
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    stated = re.search(r"of (\S+) by the rules of trec_eval, (\S+) by the default and (\S+) by those of ranx", text)
    qrels, run = (
        ast.literal_eval(given) for given in re.findall(r"^(?:qrels|run) = (.*)$", PROGRAMS[0][0], re.MULTILINE)
    )
    values = [
        rankeval.evaluate(qrels, run, measures="nDCG@10", convention=name).aggregate().iloc[0]
        for name in ("trec_eval-10", "rankeval", "ranx")
    ]
    assert [f"{value:.3f}".lstrip("0") for value in values] == list(stated.groups())


def test_the_readme_has_two_programs():
    """Scoring, and cross-validation with the guard."""
    assert len(PROGRAMS) == 2


def test_the_readme_shows_the_example_of_five_minutes():
    """Its steps are lines of the example, and what it prints is what the example's own test finds."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text.partition("## MLflow")[2].partition("\n## ")[0]
    steps = re.search(r"```python\n(.*?)```", section, re.DOTALL)[1].splitlines()
    example = (ROOT / "examples" / "09_five_minutes_mlflow.py").read_text(encoding="utf-8")
    assert [line.strip() for line in steps if line.strip() not in example] == []
    said = re.findall(r"^digits@champion: (.*?)[.;].*(decision \d+ of \d+)", section, re.MULTILINE)
    assert said == [("moved from no version to version 1", "decision 1 of 20")]


def marked(path):
    """Return the path of an example with the marks of its circle and of the package that it imports."""
    wider = pytest.mark.rest if path.name in LONG else pytest.mark.docs
    large = [pytest.mark.needs(NEEDS[path.name])] if path.name in NEEDS else []
    return pytest.param(path, marks=[wider, *large], id=path.name)


@pytest.mark.parametrize("path", [marked(path) for path in EXAMPLES])
def test_examples_run_and_warn_of_nothing(path, tmp_path):
    """Each example is a story that runs, in under 80 lines, and prints something."""
    assert len(path.read_text(encoding="utf-8").splitlines()) < 80
    done = forking.run(path, cwd=tmp_path, env=in_a_project(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    assert done.stdout
    assert not (tmp_path / FOLDER).exists(), "it would refuse the reader's own work later"
