"""The types of the public names reach a user's program, though the names are imported lazily."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rankeval
import rankeval_mlflow
import rankeval_spark

HERE = Path(__file__).parent / "typed"
WRONG = {
    ("mistakes.py", number)
    for number, line in enumerate((HERE / "mistakes.py").read_text().splitlines(), 1)
    if line.endswith("# wrong")
}


# Two thousand modules of libraries that the program does not name and takes nothing from. Pyright reads them.
UNREAD = "[mypy]\n[mypy-mlflow.*,pyspark.*,polars.*,sqlalchemy.*]\nfollow_imports = skip\n"


def mypy(folder: Path) -> set[tuple[str, int]]:
    """Return the files and lines in which mypy reports an error."""
    (folder / "mypy.ini").write_text(UNREAD)
    program = [sys.executable, "-m", "mypy", "--strict", "--config-file=mypy.ini", "--cache-dir", "cache", "."]
    done = subprocess.run(program, capture_output=True, text=True, check=False, cwd=folder)
    return {(name, int(line)) for name, line in re.findall(r"^(\w+\.py):(\d+): error", done.stdout, re.MULTILINE)}


def pyright(folder: Path) -> set[tuple[str, int]]:
    """Return the files and lines in which pyright reports an error, under its strict rules."""
    settings = {"typeCheckingMode": "strict", "reportMissingTypeStubs": False}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    program = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(folder)]
    done = subprocess.run(program, capture_output=True, text=True, check=False, cwd=folder)
    found = [one for one in json.loads(done.stdout)["generalDiagnostics"] if one["severity"] == "error"]
    return {(Path(one["file"]).name, one["range"]["start"]["line"] + 1) for one in found}


@pytest.mark.types
@pytest.mark.parametrize(
    "checker",
    [pytest.param(mypy, marks=pytest.mark.needs("mypy")), pytest.param(pyright, marks=pytest.mark.needs("pyright"))],
)
def test_a_users_program_is_accepted_and_each_mistake_reported(checker, tmp_path):
    """`user.py` has no error, and `mistakes.py` has one in each line that is marked."""
    folder = Path(shutil.copytree(HERE, tmp_path / "typed", ignore=shutil.ignore_patterns("__pycache__")))
    assert checker(folder) == WRONG


@pytest.mark.parametrize(
    "package",
    [rankeval, rankeval.analysis, rankeval.model_selection, rankeval.online, rankeval_mlflow, rankeval_spark],
    ids=lambda package: package.__name__,
)
def test_the_stub_names_what_the_package_offers(package):
    """A public name is in the stub, from the module that the lazy table names."""
    stub = Path(package.__file__).with_suffix(".pyi").read_text()
    assert set(re.findall(r" as (\w+)$", stub, re.MULTILINE)) == set(package.__all__)
    for home, name in re.findall(r"^from ([\w.]+) import (\w+) as", stub, re.MULTILINE):
        # `fromlist` imports a submodule too, if nobody has imported it yet.
        assert getattr(__import__(home, fromlist=[name]), name) is getattr(package, name)


@pytest.mark.types
@pytest.mark.needs("pyright")
@pytest.mark.parametrize("package", [rankeval, rankeval_mlflow, rankeval_spark], ids=lambda package: package.__name__)
def test_every_public_symbol_has_a_type(package, tmp_path):
    """Pyright knows all types, but for those that name scikit-learn's BaseEstimator, which has none."""
    program = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    program += ["--verifytypes", package.__name__, "--ignoreexternal"]
    done = subprocess.run(program, capture_output=True, text=True, check=False, cwd=tmp_path)
    found = json.loads(done.stdout)["typeCompleteness"]
    assert Path(found["packageRootDirectory"]) == Path(package.__file__).parent
    assert found["exportedSymbolCounts"]["withAmbiguousType"] == 0
    assert found["completenessScore"] > 0.99
