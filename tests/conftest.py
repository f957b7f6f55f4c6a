"""Settings of every test: one thread, no ledger, a directory of its own; which cases are tried is in circles.py."""

from __future__ import annotations

import gc
import os
import re
import resource
import sys
import tomllib
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import forking
import pytest
from circles import CIRCLE, CIRCLES, MARKERS, SHARED, SLOW, examples, is_beyond, missing, module_marks
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

# No example is timed, since a slow machine is no failure. Only the full circle draws new examples in every run.
settings.register_profile("rankeval", deadline=None, derandomize=CIRCLE != "full", max_examples=examples(100))
settings.load_profile("rankeval")

BEYOND = pytest.StashKey[Counter]()
"""How many cases, and how many whole modules, of each wider circle are not tried."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer a table of what the cases cost."""
    parser.addoption("--cpu", type=int, metavar="N", help="print the N cases that took the most CPU seconds")


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers."""
    config.stash[BEYOND] = Counter()
    for name, marker in MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {marker.meaning} (circle: {marker.circle})")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the modules of wider circles unread: they import the largest libraries."""
    if not collection_path.match("test_*.py"):
        return None
    wider = [circle for name, _ in module_marks(collection_path) if is_beyond(circle := MARKERS[name].circle)]
    if not wider:
        return None
    config.stash[BEYOND][f"modules of the circle {max(wider, key=CIRCLES.index)!r}"] += 1
    return True


class _WithoutPackages(pytest.Module):
    """A module that imports a package which is not installed: one case that is left out."""

    why = ""

    def collect(self) -> list[pytest.Item]:
        """Leave the module out without importing it."""
        pytest.skip(self.why, allow_module_level=True)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """Leave out a module that lacks its packages."""
    lacking = [why for name, needed in module_marks(module_path) if name == "needs" and (why := missing(name, needed))]
    if not lacking:
        return None
    module = _WithoutPackages.from_parent(parent, path=module_path)
    module.why = "; ".join(lacking)
    return module


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the cases of wider circles untried, and leave out, with the reason, what this machine cannot run."""
    tried, beyond = [], []
    for item in items:
        markers = [marker for marker in item.iter_markers() if marker.name in MARKERS]
        wider = [circle for marker in markers if is_beyond(circle := MARKERS[marker.name].circle)]
        if wider:
            config.stash[BEYOND][f"cases of the circle {max(wider, key=CIRCLES.index)!r}"] += 1
            beyond.append(item)
            continue
        tried.append(item)
        for marker in markers:
            if why := missing(marker.name, marker.args):
                item.add_marker(pytest.mark.skip(reason=why))
    items[:] = tried
    if beyond:
        config.hook.pytest_deselected(items=beyond)


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


@pytest.hookimpl(trylast=True)
def pytest_runtest_logfinish(nodeid: str) -> None:  # noqa: ARG001 - the hook's own name
    """Let the garbage collector pass over what a hundred cases left, such as modules that they imported.

    Libraries ask for a whole collection (statsmodels at each call): over millions of objects that takes a second.
    """
    global _n_finished  # noqa: PLW0603 - a count of this process
    _n_finished += 1
    if _n_finished % 100 == 0:
        gc.collect()
        gc.freeze()


_n_finished = 0


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return why a test was left out; pytest stores (file, line, reason)."""
    return report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)


def _keep_promise(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Fail a test that is left out although it was promised, unless no installation could mend that."""
    excused = {missing(name) for name, marker in MARKERS.items() if marker.excused}
    is_expected_failure = hasattr(report, "wasxfail")
    reason = _reason(report).removeprefix("Skipped: ")
    if CIRCLE != "default" and report.skipped and not is_expected_failure and reason not in excused:
        report.outcome = "failed"
        report.longrepr = f"left out, although RANKEVAL_TESTS={CIRCLE}: {_reason(report)}"


def _cpu_seconds() -> float:
    """Return what this process has used, with the children that it has waited for and its forked programs."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used) + forking.cpu_seconds()


def _count(item: pytest.Item, step: str) -> Iterator[None]:
    """Note the CPU seconds of a step of a case."""
    before = _cpu_seconds()
    try:
        return (yield)
    finally:
        item.user_properties.append((f"cpu {step}", round(_cpu_seconds() - before, 3)))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """Count what the fixtures take; those of a session or a module are paid for by the first case that asks."""
    return (yield from _count(item, "setup"))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Count what the case itself takes, and whether a marker says why it may take so much."""
    if item.get_closest_marker("worth"):
        item.user_properties.append(("worth", True))
    return (yield from _count(item, "call"))


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


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send what a worker of pytest-xdist has not tried to the process that prints."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["beyond"] = dict(session.config.stash[BEYOND])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take the counts of a worker; every worker collects the same cases."""
    node.config.stash[BEYOND] = Counter(getattr(node, "workeroutput", {}).get("beyond"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say how many tests were left out and why, which belong to wider circles, and which are slow without a word."""
    counts = Counter(_reason(report).removeprefix("Skipped: ") for report in terminalreporter.stats.get("skipped", ()))
    for reason, count in counts.items():
        terminalreporter.write_line(f"left out: {count} tests: {reason}", yellow=True)
    beyond = config.stash[BEYOND]
    if beyond:
        listed = ", ".join(f"{count} {what}" for what, count in sorted(beyond.items()))
        terminalreporter.write_line(f"not tried: {listed} (tests/circles.py)")
    finished = [report for reports in terminalreporter.stats.values() for report in reports if _is_call(report)]
    costs = [(report, dict(report.user_properties)) for report in finished]
    if CIRCLE == "default":
        for report, found in costs:
            if found.get("cpu call", 0) > SLOW and not found.get("worth"):
                terminalreporter.write_line(f"{found['cpu call']:.1f} CPU s without a word why: {report.nodeid}")
    dearest = sorted(costs, key=lambda cost: -cost[1].get("cpu call", 0) - cost[1].get("cpu setup", 0))
    for report, found in dearest[: config.getoption("--cpu") or 0]:
        setup, call = found.get("cpu setup", 0), found.get("cpu call", 0)
        terminalreporter.write_line(
            f"{call:7.1f} CPU s, {setup:5.1f} before, {report.duration:6.1f} s  {report.nodeid}"
        )


def _is_call(report: object) -> bool:
    return isinstance(report, pytest.TestReport) and report.when == "call"


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
    """Return a folder for the path that offers our hosts and plugins of pytest and MLflow, as a checkout does."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "rankeval_plugin-0.dist-info").mkdir()
    (folder / "rankeval_plugin-0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: rankeval-plugin\nVersion: 0\n"
    )
    declared = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]["entry-points"]
    lines = []
    for group in ("pytest11", "mlflow.model_evaluator", "rankeval.hosts"):
        lines += [f"[{group}]", *(f"{name} = {module}" for name, module in declared[group].items())]
    (folder / "rankeval_plugin-0.dist-info" / "entry_points.txt").write_text("\n".join(lines))
    return folder


@pytest.fixture(autouse=True)
def _own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each test in a directory of its own, so that no store or ledger is found by accident."""
    monkeypatch.chdir(tmp_path)
    # The terminal is wide, so that no sentence is broken: see test_cli_width.py for others.
    monkeypatch.setenv("COLUMNS", "2000")
    # `mlflow.set_experiment` leaves the id in the environment, where the next test's programs would find it.
    monkeypatch.setenv("MLFLOW_EXPERIMENT_ID", "")
    monkeypatch.delenv("MLFLOW_EXPERIMENT_ID")


@pytest.fixture
def rankeval(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., tuple[int, str, str]]]:
    """Return a function that runs the command line in this process and gives exit code, stdout and stderr.

    Stderr comes without the next command to type: see test_cli_width.py.
    """
    from rankeval import cli
    from rankeval.contamination import refusal

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["rankeval", *map(str, arguments)])
        monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
        with pytest.raises(SystemExit) as stop:
            cli.main()
        out, err = capsys.readouterr()
        return int(stop.value.code or 0), out, re.sub(r"^next: .*\n", "", err, flags=re.MULTILINE)

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
