"""What the documentation shows is what happens: README, doctests, examples."""

from __future__ import annotations

import ast
import codeop
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
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"## ([^\n]+)\n(?:(?!\n## ).)*?```python\n(.*?)```\n\n```text\n(.*?)```", README, re.DOTALL)
SCORING = "rk.evaluate(split.test.y, split.test.X[:, 0], qid=split.test.qid)"
# The one of five minutes starts a server, and has a test of its own.
EXAMPLES = sorted(set((ROOT / "examples").glob("*.py")) - {ROOT / "examples" / "09_five_minutes_mlflow.py"})
LONG = ("02_grid_search_lightgbm.py", "07_relevance_test.py", "10_search_on_dask.py")  # of a quarter of a CPU minute
NEEDS = {
    "03_early_stopping_xgboost.py": "xgboost",
    "04_catboost_in_a_pipeline.py": "catboost",
    "10_search_on_dask.py": "dask",
}


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


def test_the_readme_has_four_programs():
    """Each block of Python has its output below it, and no section has two."""
    titles = ["Evaluate", "Compare two rankers", "Cross-validate, and guard the test", "Log to MLflow"]
    assert [title for title, _, _ in PROGRAMS] == titles
    assert README.count("```python\n") == len(PROGRAMS)


@pytest.mark.worth("runs the programs of the README")
@pytest.mark.parametrize(("program", "shown"), [pytest.param(*one, id=title) for title, *one in PROGRAMS])
def test_a_program_of_the_readme_alone_prints_what_is_below_it(program, shown, tmp_path):
    """In an empty folder and a process of its own, without a warning."""
    path = tmp_path / "program.py"
    path.write_text(program)
    done = forking.run(path, cwd=tmp_path, env=in_a_project(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == shown.splitlines()
    assert [line for line in done.stderr.splitlines() if " INFO mlflow." not in line] == []
    assert not (tmp_path / FOLDER).exists(), "it would refuse the reader's own work later"


@pytest.mark.parametrize("program", [pytest.param(program, id=title) for title, program, _ in PROGRAMS])
def test_a_program_of_the_readme_can_be_pasted_into_a_session(program):
    """Python's prompt compiles it line by line: a block that no empty line ends would be an error there."""
    waiting = ""
    for line in program.splitlines():
        waiting += f"{line}\n"
        if codeop.compile_command(waiting) is not None:
            waiting = ""
    assert waiting == ""


def test_the_readme_names_what_the_guard_refuses(tmp_path):
    """After its program, in the same session: whatever reads the test part, and not only the call that is named."""
    named = re.search(r"After the split, `(rk\.cross_validate\(.*?\))` raises a `GuardRefusal`", README)[1]
    calls = (named, "rk.QueryRanker(Ridge()).fit(split.test.X, split.test.y, qid=split.test.qid)", SCORING)
    refusing = "".join(f"\ntry:\n    {call}\nexcept rk.errors.GuardRefusal:\n    print('refused')\n" for call in calls)
    program = next(program for _, program, _ in PROGRAMS if "guard.freeze" in program)
    split = program[: program.index("rankers = ")]
    path = tmp_path / "program.py"
    path.write_text(split + refusing)
    done = forking.run(path, cwd=tmp_path, env=in_a_project(tmp_path))
    assert done.stdout.splitlines() == ["refused"] * 3, done.stderr


def test_each_command_of_the_readme_is_a_block_of_its_own():
    """The two that a newcomer types first; `.ci/run` reads them from here."""
    commands = re.findall(r"^```bash\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    assert [command.splitlines() for command in commands] == [
        ["python -m pip install . && rankeval run configs/quickstart.yaml"],
        ['python -m pip install ".[test]" && pytest'],
    ]


def test_the_readme_names_the_values_of_three_conventions():
    """The first program's run has the three values of nDCG@10 that the README states."""
    stated = re.search(
        r"nDCG@10 of this run is (\S+) under trec_eval's rules, (\S+) under the defaults of rankeval and (\S+) under",
        " ".join(README.split()),
    )
    lines = ast.parse(PROGRAMS[0][1]).body
    qrels, run = (ast.literal_eval(line.value) for line in lines[1:3])
    values = [
        rankeval.evaluate(qrels, run, measures="nDCG@10", convention=name).aggregate().iloc[0]
        for name in ("trec_eval-10", "rankeval", "ranx")
    ]
    assert [f"{value:.3f}".lstrip("0") for value in values] == list(stated.groups())


def test_the_readme_says_on_which_systems_it_was_run():
    """The third line of text, with the versions of Python that the metadata promise."""
    third = [part for part in README.split("\n\n") if not part.startswith("#")][1]
    metadata = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert re.findall(r"3\.\d+", third) == re.findall(r"Python :: (3\.\d+)", metadata)
    assert all(name in third for name in ("Linux", "macOS", "Windows"))


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
