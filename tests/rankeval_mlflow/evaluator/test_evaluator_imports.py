"""MLflow finds the evaluator by its entry point, and a broken installation of ours never breaks MLflow."""

from __future__ import annotations

import os
import textwrap
import tomllib
from pathlib import Path

import forking
import pytest

ROOT = Path(__file__).parents[3]
GROUP = "mlflow.model_evaluator"

BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r} or name.startswith({module!r} + "."):
            raise {error}

sys.meta_path.insert(0, Blocked())
"""

OTHERS_WORK = """
import mlflow, os, pandas as pd

data = pd.DataFrame({"relevance": [0.0, 1.0, 2.0], "score": [0.5, 1.0, 1.5], "qid": [1, 1, 1]})
call = dict(targets="relevance", predictions="score")
mlflow.set_tracking_uri("sqlite:///" + os.path.abspath("mlflow.db"))
# Nothing is explained: the import of shap takes as long as all the rest.
config = {"log_model_explainability": False}
result = mlflow.models.evaluate(data=data, model_type="regressor", evaluator_config=config, **call)
assert abs(result.metrics["mean_absolute_error"] - 1 / 3) < 1e-12
print("evaluators", *mlflow.models.list_evaluators())
"""

RANKER_FAILS = """
try:
    mlflow.models.evaluate(data=data, model_type="ranker", evaluators="rankeval", **call)
except ImportError as error:
    print("refused:", error)
"""


def declared() -> dict[str, str]:
    """Return the entry points of MLflow's group that our pyproject.toml declares."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return project["entry-points"][GROUP]


def run(code: str, folder: Path, database: Path, path: tuple[Path, ...] = ()) -> str:
    """Run a program in an installation that declares our entry points, and return what it prints."""
    info = folder / "installed" / "evaluator_declared-0.dist-info"
    info.mkdir(parents=True)
    lines = [f"{name} = {place}" for name, place in declared().items()]
    (info / "entry_points.txt").write_text("\n".join([f"[{GROUP}]", *lines]))
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: evaluator-declared\nVersion: 0\n")
    (folder / "mlflow.db").write_bytes(database.read_bytes())
    places = (*path, info.parent, ROOT, ROOT / "integrations")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, places)),
        "RANKEVAL_SPOOL": str(folder / "spool"),
    }
    done = forking.run(textwrap.dedent(code), cwd=folder, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_the_declared_entry_point_is_the_evaluator():
    """One entry point, called rankeval."""
    from rankeval_mlflow.evaluator.entry import RankevalEvaluator

    assert declared() == {"rankeval": f"{RankevalEvaluator.__module__}:{RankevalEvaluator.__qualname__}"}


def test_mlflow_finds_it_and_imports_little_for_it(tmp_path, empty_database):
    """The evaluator is there after `import mlflow`; of the library, its errors and its table of names are loaded."""
    code = """
        import sys, mlflow
        assert "rankeval" in mlflow.models.list_evaluators()
        ours = sorted(name for name in sys.modules if name.split(".")[0] in ("rankeval", "rankeval_mlflow"))
        print(*ours)
        from mlflow.models.evaluation.evaluator_registry import _model_evaluation_registry as registry
        evaluator = registry.get_evaluator("rankeval")
        answers = {kind: evaluator.can_evaluate(model_type=kind, evaluator_config={"qid": "qid"})
                   for kind in ("ranker", "regressor", "retriever", "rankers", "Ranker", "", None)}
        assert [kind for kind, answer in answers.items() if answer] == ["ranker"], answers
    """
    said = run(code, tmp_path, empty_database).split()
    assert {name for name in said if name.startswith("rankeval")} == {
        "rankeval", "rankeval._checks", "rankeval._registry", "rankeval._secrets", "rankeval._visible",
        "rankeval.errors",
        "rankeval_mlflow", "rankeval_mlflow.evaluator", "rankeval_mlflow.evaluator.entry",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("module", "error"),
    [
        ("rankeval.evaluation", "ImportError('a broken wheel')"),
        pytest.param(
            "rankeval.io.columns",
            "OSError('libarrow.so: cannot open shared object file')",
            marks=pytest.mark.rest,
        ),
        pytest.param("rankeval_mlflow.packing", "AttributeError('half an update')", marks=pytest.mark.rest),
    ],
)
def test_a_broken_part_is_an_import_error_of_the_ranker_only(module, error, tmp_path, empty_database):
    """MLflow is imported and evaluates a regressor; only a ranker fails, with the reason."""
    said = run(BLOCKED.format(module=module, error=error) + OTHERS_WORK + RANKER_FAILS, tmp_path, empty_database)
    assert "rankeval" in said.split("evaluators", 1)[1]
    assert "refused:" in said
    assert error.split("'")[1] in said


@pytest.mark.parametrize(
    "error", ["ImportError('gone')", pytest.param("OSError('unreadable')", marks=pytest.mark.rest)]
)
def test_without_the_library_mlflow_goes_on_without_the_evaluator(error, tmp_path, empty_database):
    """The entry point cannot be loaded: a warning of MLflow, and its own evaluators work."""
    said = run(BLOCKED.format(module="rankeval", error=error) + OTHERS_WORK, tmp_path, empty_database)
    assert "Failure attempting to register model evaluator for scheme" in said
    assert "evaluators default classifier regressor shap\n" in said


@pytest.mark.further
def test_a_library_that_fails_to_start_does_not_break_mlflow(tmp_path, empty_database):
    """A package of that name whose first line raises what MLflow does not forgive."""
    (tmp_path / "broken" / "rankeval").mkdir(parents=True)
    (tmp_path / "broken" / "rankeval" / "__init__.py").write_text("raise RuntimeError('half an update')\n")
    said = run(OTHERS_WORK, tmp_path, empty_database, path=(tmp_path / "broken",))
    assert "the package rankeval cannot be imported: RuntimeError('half an update')" in said
    assert "evaluators default classifier regressor shap\n" in said
