"""Settings of every test: one thread, no ledger, a directory of its own; and what happens to tests left out."""

from __future__ import annotations

import gc
import os
import sys
import tomllib
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING

import pytest
from fuzz.budget import examples
from hypothesis import settings

if TYPE_CHECKING:
    from ledger import server

# Set before any test module loads NumPy or a booster. The tests run side by side, one process a core: threads of
# their own would only wait for each other, and OpenMP's do so by spinning.
os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

# The tests call numba's functions (of ranx and shap) a few times: compiling them takes half a minute.
os.environ["NUMBA_DISABLE_JIT"] = "1"

# MLflow's servers start eight processes for jobs that no test asks for: 18 of the 25 CPU seconds of a server's start.
os.environ["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] = "false"

# A test may kill a process, but never the machine: a file that is written need not reach the disk. Tests of what is
# synchronised put a function of their own in this place.
os.fsync = lambda _: None

# Set before any test module is imported: the ledger is resolved once per process.
os.environ["RANKEVAL_LEDGER"] = "off"

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"

# "complete" (.ci/run): a test that is left out fails. "full" (.ci/run --full): the same, and the long fuzzing.
# Tests of the shared collections are the exception: where the collections do not exist, they are left out and counted.
PROMISED = os.environ.get("RANKEVAL_TESTS", "")

# No example is timed, since a slow machine is no failure. Hypothesis draws the same examples in every run of .ci/run,
# and new ones elsewhere.
settings.register_profile("rankeval", deadline=None, derandomize=bool(PROMISED), max_examples=examples(100))
settings.load_profile("rankeval")


def _absent() -> dict[str, str]:
    """Return marker -> why its tests cannot run on this machine."""
    why = {}
    if not SHARED.is_dir():
        why["shared"] = f"needs the shared collections at {SHARED}"
    if not (which("chromium") or which("chromium-browser") or which("google-chrome")):
        why["browser"] = "needs Chromium on the PATH"
    if not _has_postgres():
        why["postgres"] = "needs PostgreSQL (Debian's package postgresql) and psycopg"
    if not (which("java") and find_spec("pyspark")):
        why["spark"] = "needs Java (Debian's package default-jre-headless) and PySpark"
    return why


def _has_postgres() -> bool:
    """Debian keeps PostgreSQL's programs off the PATH."""
    installed = which("postgres") or next(Path("/usr/lib/postgresql").glob("*/bin/postgres"), None)
    return bool(installed and find_spec("psycopg"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out, with the reason, the tests that cannot run on this machine."""
    why = _absent()
    for item in items:
        for marker in item.iter_markers():
            if marker.name in why:
                item.add_marker(pytest.mark.skip(reason=why[marker.name]))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect without the garbage collector, and let it pass over what collection left.

    These are millions of objects that live until the end: to look for garbage among them takes a third of the time.
    Later it looks less often than after 700 new objects, which takes a twelfth of the time of small tests.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(20_000)
        gc.enable()


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return why a test was left out; pytest stores (file, line, reason)."""
    return report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)


def _keep_promise(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Fail a test that is left out although it was promised."""
    is_expected_failure = hasattr(report, "wasxfail")
    if PROMISED and report.skipped and not is_expected_failure and str(SHARED) not in _reason(report):
        report.outcome = "failed"
        report.longrepr = f"left out, although RANKEVAL_TESTS={PROMISED}: {_reason(report)}"


# Both hooks run in the workers of pytest-xdist too. An error during collection would end a worker without a word.
@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    """Fail a promised test that is left out."""
    report = yield
    _keep_promise(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Iterator[None]:
    """Fail a promised module that is left out."""
    report = yield
    _keep_promise(report)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests were left out, and why."""
    counts = Counter(_reason(report).removeprefix("Skipped: ") for report in terminalreporter.stats.get("skipped", ()))
    for reason, count in counts.items():
        terminalreporter.write_line(f"left out: {count} tests: {reason}", yellow=True)


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of the shared collections."""
    return SHARED


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make MLflow's tables once, to be copied by each test: the migrations take seconds."""
    from rankeval_mlflow.delivery.connection import connected

    path = tmp_path_factory.mktemp("empty") / "mlflow.db"
    with connected(f"sqlite:///{path}"):
        return path


@pytest.fixture(scope="session")
def postgres() -> Iterator[server.PostgreSQL]:
    """Start a PostgreSQL server of our own; its method ``database`` gives the URL of a new, empty database."""
    from ledger import server

    with server.running() as started:
        yield started


@pytest.fixture
def installed_plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for the path that offers our plugins of pytest and MLflow, as an installed checkout does."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "rankeval_plugin-0.dist-info").mkdir()
    (folder / "rankeval_plugin-0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: rankeval-plugin\nVersion: 0\n"
    )
    declared = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]["entry-points"]
    lines = []
    for group in ("pytest11", "mlflow.model_evaluator"):
        lines += [f"[{group}]", *(f"{name} = {module}" for name, module in declared[group].items())]
    (folder / "rankeval_plugin-0.dist-info" / "entry_points.txt").write_text("\n".join(lines))
    return folder


@pytest.fixture(autouse=True)
def _own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each test in a directory of its own, so that no store or ledger is found by accident."""
    monkeypatch.chdir(tmp_path)
    # `mlflow.set_experiment` leaves the id in the environment, where the next test's programs would find it.
    monkeypatch.setenv("MLFLOW_EXPERIMENT_ID", "")
    monkeypatch.delenv("MLFLOW_EXPERIMENT_ID")


@pytest.fixture
def rankeval(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., tuple[int, str, str]]]:
    """Return a function that runs the command line in this process and gives exit code, stdout and stderr."""
    from rankeval import cli
    from rankeval.contamination import refusal

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["rankeval", *map(str, arguments)])
        monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
        with pytest.raises(SystemExit) as stop:
            cli.main()
        out, err = capsys.readouterr()
        return int(stop.value.code or 0), out, err

    refusal.forget()
    yield run
    refusal.forget()


@pytest.fixture
def without_formula() -> Iterator[str]:
    """Declare a measure whose mean over orders of tied rows has no formula, so that many orders are drawn."""
    from rankeval.measures import family
    from rankeval.measures.family import FAMILIES
    from rankeval.measures.ranked import average_precision

    def squared(judged, *, rel=1, cutoff=None):
        """Square of AP, in [0, 1]."""
        return average_precision(judged, rel=rel, cutoff=cutoff) ** 2

    family("SquaredAP", title="square of AP", formula="AP^2", source="a test", expected="orders of hits")(squared)
    yield "SquaredAP"
    del FAMILIES["SquaredAP"]
