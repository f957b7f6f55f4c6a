"""Importing is quick and quiet, loads nothing heavy, and no module hides a public name."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import subprocess
import sys

import pytest

import rankeval

HEAVY = ("mlflow", "sklearn", "scipy", "pandas", "matplotlib", "pyarrow", "sqlalchemy", "pydantic", "typer")
MODULES = ("analysis", "curves", "datasets", "errors", "io", "judging", "model_selection", "online", "testing", "text")


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout


def test_import_loads_nothing_heavy():
    """`import rankeval` loads none of the large libraries."""
    loaded = json.loads(run("import rankeval, sys, json; print(json.dumps(sorted(sys.modules)))"))
    assert not [name for name in HEAVY if name in loaded]


def test_the_guard_loads_no_scipy_until_it_tests_something():
    assert run("import rankeval.guard, sys; print('scipy' in sys.modules)").strip() == "False"


def test_import_is_quick():
    """Beyond Python's own start, `import rankeval` takes under half a second of processor time."""
    code = "import time; a = time.process_time(); import rankeval; print(time.process_time() - a)"
    assert min(float(run(code)) for _ in range(3)) < 0.5


def test_the_plugin_loads_no_mlflow_by_itself():
    """`import rankeval_mlflow` is lazy too."""
    assert "False" in run("import rankeval_mlflow, sys; print('mlflow' in sys.modules)")


def test_every_public_name_is_there_after_all_modules_are_loaded():
    """No module has the name of a public function, else it would stand in its place."""
    for module in pkgutil.walk_packages(rankeval.__path__, "rankeval."):
        importlib.import_module(module.name)
    values = {name: getattr(rankeval, name) for name in rankeval.__all__}
    assert {name for name, value in values.items() if type(value).__name__ == "module"} == set(MODULES)
    assert values.keys() - set(dir(rankeval)) == set()


@pytest.mark.parametrize("package", ["rankeval_mlflow", "rankeval_spark"])
def test_a_package_lists_its_public_names_only(package):
    """Also when they are loaded. Of rankeval_pytest `dir` lists more: pytest looks for its hooks there."""
    module = importlib.import_module(package)
    if package != "rankeval_spark":  # its names need PySpark
        assert all(getattr(module, name) is not None for name in module.__all__)
    assert dir(module) == sorted(module.__all__)
    assert not [name for name in module.__all__ if name.startswith("_")]


@pytest.mark.parametrize("name", ["", *sorted({*MODULES} - {"errors"})])
def test_only_public_names_are_in_sight(name):
    """After everything is imported too: no module, no name that was imported for use inside."""
    for module in pkgutil.walk_packages(rankeval.__path__, "rankeval."):
        importlib.import_module(module.name)
    home = getattr(rankeval, name) if name else rankeval
    assert dir(home) == sorted(home.__all__)
    assert all(hasattr(home, each) and not each.startswith("_") for each in dir(home))
    own = [value for each in dir(home) if inspect.isroutine(value := getattr(home, each)) or inspect.isclass(value)]
    assert {value.__module__.partition(".")[0] for value in own} == {"rankeval"}


def test_of_the_errors_the_classes_are_in_sight():
    shown = [getattr(rankeval.errors, name) for name in dir(rankeval.errors)]
    assert {rankeval.errors.InvalidInput, rankeval.errors.GuardRefusal, rankeval.errors.RankevalWarning} <= {*shown}
    assert all(issubclass(one, BaseException) and one.__module__ == "rankeval.errors" for one in shown)


@pytest.fixture
def namesake(tmp_path):
    """Make it look as if the older distribution called rankeval were installed."""
    folder = tmp_path / "rankeval-0.8.2.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: rankeval\nVersion: 0.8.2\n")
    return tmp_path


def test_the_namesake_is_noticed_on_import(namesake):
    """With the older package installed besides, importing ours says so and what to do."""
    code = "import sys; sys.path.append(sys.argv[1]); import rankeval"
    done = subprocess.run([sys.executable, "-c", code, namesake], capture_output=True, text=True, check=True)
    assert "rankeval 0.8.2, another project" in done.stderr
    assert "pip uninstall rankeval" in done.stderr


def test_the_plugin_refuses_to_stand_on_the_namesake(tmp_path):
    """Where the older package took our place, the plugin is an ImportError with the way out, and no riddle."""
    (tmp_path / "rankeval").mkdir()
    (tmp_path / "rankeval" / "__init__.py").touch()
    code = "import sys; sys.path.insert(0, sys.argv[1]); import rankeval_mlflow"
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=False)
    assert "ImportError: the package rankeval that is installed here is another project" in done.stderr


def test_an_unknown_name_is_an_attribute_error():
    """The lazy package behaves as any module does."""
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = rankeval.nothing


def test_the_library_runs_no_mlflow_when_it_evaluates():
    """Scoring arrays needs NumPy and Arrow, and no tracking server's client."""
    code = (
        "import os; os.environ['RANKEVAL_LEDGER'] = 'off'\n"
        "import rankeval as rk, sys\n"
        "rk.evaluate([1, 0], [1, 0], qid=[1, 1])\n"
        "print([name for name in ('mlflow', 'sklearn', 'scipy', 'matplotlib') if name in sys.modules])"
    )
    assert run(code).strip() == "[]"


@pytest.mark.parametrize("qid", [[1, 1], ["a", "a"]])
def test_scoring_lists_does_without_pandas(qid):
    """Importing pandas takes longer than all of the first call; the table of a printed result needs it."""
    code = (
        f"import rankeval as rk, sys; print(rk.evaluate([1, 0], [.1, .2], qid={qid}, measures='RR').scores)\n"
        "print([name for name in ('pandas', 'scipy', 'jinja2', 'pyarrow.parquet') if name in sys.modules])"
    )
    assert run(code).splitlines() == ["[[0.5]]", "[]"]


@pytest.mark.parametrize("kind", ["agreement", "comparison", "cross_validation", "evaluation", "online", "profile"])
def test_an_old_name_is_answered_by_the_new_one(kind):
    """People try it, since older programs and answers on the web have it."""
    module = importlib.import_module("rankeval_mlflow")
    with pytest.raises(AttributeError, match=rf"no attribute 'log_{kind}'; use rankeval_mlflow\.log instead"):
        getattr(module, f"log_{kind}")
    assert f"log_{kind}" not in dir(module)


@pytest.mark.parametrize(
    "new",
    [
        *("analysis.Anova", "analysis.ContingencyTable", "analysis.OrderAgreement"),
        *("analysis.anova", "analysis.contingency_table", "analysis.order_agreement", "io.Limits", "text.Profile"),
        *(f"model_selection.{name}" for name in ("CrossValidations", "LearningCurve", "OptunaObjective")),
    ],
)
def test_a_name_that_left_the_package_is_answered_by_its_place(new):
    """The place works as it is written, in a program that has imported nothing else."""
    name = new.rpartition(".")[2]
    with pytest.raises(AttributeError, match=rf"no attribute '{name}'; use rankeval\.{new} instead"):
        getattr(rankeval, name)
    assert name not in dir(rankeval)
    assert run(f"import rankeval as rk; print(rk.{new}.__name__)").strip() == name


def test_an_unknown_name_has_no_such_answer():
    with pytest.raises(AttributeError, match=r"no attribute 'log_nothing'$"):
        importlib.import_module("rankeval_mlflow").log_nothing  # noqa: B018 - asking for it is the test
