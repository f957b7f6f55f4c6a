"""The plugin costs nothing until it is used, keeps baselines whole, and has one table of all workers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from circles import choose

import rankeval as rk

# Imported before the runs within this process, which forget what they import.
import rankeval.testing

pytest_plugins = "pytester"

ROOT = Path(__file__).resolve().parents[2]
# Where the plugin is installed, pytest rewrites the assertions of its distribution, if they are not loaded yet.
IN_THIS_PROCESS = "ignore:Module already imported so cannot be rewritten"
INI = f"""
[pytest]
addopts = -p no:cacheprovider -p no:randomly --strict-config --strict-markers
filterwarnings =
    error
    {IN_THIS_PROCESS}
"""
FILE = """
import numpy as np
import pytest
import rankeval as rk

def ranked(noise, qid=np.arange(400) // 10, **options):
    labels = np.random.default_rng(0).integers(0, 3, 400)
    scores = labels + np.random.default_rng(1).normal(0, noise, 400)
    return rk.evaluate(labels, scores, qid=qid, measures=["nDCG@10"], **options)
"""
GATE = """
def test_ltr(rankeval_baseline):
    candidate = ranked(NOISE)
    rk.testing.assert_no_regression(candidate, rankeval_baseline(candidate), margin=0.01)
"""


@pytest.fixture
def project(pytester, installed_plugin, monkeypatch):
    """Make a project beside which the plugin is installed."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, (installed_plugin, ROOT, ROOT / "integrations"))))
    monkeypatch.syspath_prepend(installed_plugin)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    pytester.makeini(INI)
    return pytester


def write(project, text, name="test_search"):
    project.makepyfile(**{name: FILE + text})


def kept(project):
    return sorted(path.name for path in (project.path / "rankeval_baselines").iterdir())


def test_nothing_of_rankeval_is_imported_before_a_fixture_is_used(project):
    """Nor any of the large libraries; the option is there."""
    project.makepyfile(
        """
        import sys
        def test_without(request):
            assert "rankeval_pytest" in sys.modules
            assert request.config.getoption("rankeval_update") is False
            found = {name.partition(".")[0] for name in sys.modules}
            assert not found & {"rankeval", "numpy", "pandas", "scipy", "pyarrow"}
            assert "rankeval_pytest.baselines" not in sys.modules
        """
    )
    result = project.runpytest_subprocess("-W", "error", "--rankeval-summary", "summary.md")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*= rankeval =*")


@pytest.mark.random
def test_the_module_of_hooks_is_imported_in_five_milliseconds():
    """Of CPU time, beside what pytest has loaded anyway: the least of a few fresh processes."""
    code = "import json, pytest, time; a = time.process_time(); import rankeval_pytest; print(time.process_time() - a)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "integrations")))}
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
        for _ in range(choose(default=3, full=10))
    ]
    assert min(float(run.stdout) for run in runs) < 0.005


def test_a_baseline_is_written_when_asked_and_compared_with_afterwards(project):
    write(project, GATE.replace("NOISE", "0.5"))
    missing = project.runpytest_inprocess()
    missing.assert_outcomes(failed=1)
    said = "there is no baseline rankeval_baselines/test_search.test_ltr.parquet; write it from this code with "
    missing.stdout.fnmatch_lines([f"{said}`pytest test_search.py::test_ltr --rankeval-update`, and commit the file"])
    assert not (project.path / "rankeval_baselines").exists()

    written = project.runpytest_inprocess("--rankeval-update")
    written.assert_outcomes(passed=1)
    written.stdout.re_match_lines(
        [r"new baseline rankeval_baselines/test_search.test_ltr.parquet: nDCG@10 0\.\d{4} \(40 queries\)"]
    )
    assert kept(project) == ["test_search.test_ltr.parquet"]
    assert rk.Evaluation.load(project.path / "rankeval_baselines" / kept(project)[0]).n_queries == 40

    project.runpytest_inprocess().assert_outcomes(passed=1)
    write(project, GATE.replace("NOISE", "3.0"))
    worse = project.runpytest_inprocess()
    worse.assert_outcomes(failed=1)
    worse.stdout.fnmatch_lines(["E *CheckFailed: nDCG@10: -*, a loss of more than 0.01 is shown"])
    assert "assertions.py" not in worse.stdout.str()  # the traceback ends in the test
    renewed = project.runpytest_inprocess("--rankeval-update")
    renewed.assert_outcomes(passed=1)
    renewed.stdout.re_match_lines([r"renewed baseline .*: nDCG@10 0\.9\d* -> 0\.\d{4} \(40 queries\)"])
    again = project.runpytest_inprocess("--rankeval-update")
    again.stdout.re_match_lines([r"unchanged baseline .*: nDCG@10 0\.\d{4} \(40 queries\)"])
    (project.path / "rankeval_baselines" / kept(project)[0]).write_bytes(b"damaged")
    project.runpytest_inprocess("--rankeval-update").stdout.re_match_lines(
        [r"renewed baseline .*: nDCG@10 0\.\d{4} \(40 queries\)"]
    )
    project.runpytest_inprocess().assert_outcomes(passed=1)


@pytest.mark.further
def test_the_command_of_a_missing_baseline_works_from_a_folder_within(project):
    folder = project.mkpydir("tests") / "test_search.py"
    folder.write_text(
        FILE + GATE.replace("NOISE", "1").replace("def ", "@pytest.mark.parametrize('k', ['a b'])\ndef ", 1)
    )
    folder.write_text(folder.read_text().replace("(rankeval_baseline)", "(rankeval_baseline, k)"))
    os.chdir(folder.parent)
    said = subprocess.run([sys.executable, "-m", "pytest"], capture_output=True, text=True, check=False).stdout
    command = re.search(r"`pytest (.*) --rankeval-update`", said)[1]
    assert command == "'test_search.py::test_ltr[a b]'"
    line = f"{sys.executable} -m pytest {command} --rankeval-update"
    done = subprocess.run(line, shell=True, check=False)  # noqa: S602 - the command is run as it was printed
    assert done.returncode == 0
    assert [path.name for path in (folder.parent / "rankeval_baselines").iterdir()] == [
        "test_search.test_ltr[a%20b].parquet"
    ]


def test_a_baseline_of_other_judgments_rules_or_measures_asks_to_be_renewed(project):
    write(project, GATE.replace("NOISE", "0.5"))
    project.runpytest_inprocess("--rankeval-update").assert_outcomes(passed=1)
    for change, reason in (
        ('measures=["nDCG@10"]', 'measures=["AP"]'),
        ("integers(0, 3, 400)", "integers(0, 2, 400)"),
    ):
        write(project, GATE.replace("NOISE", "0.5"))
        path = project.path / "test_search.py"
        path.write_text(path.read_text().replace(change, reason))
        result = project.runpytest_inprocess()
        result.assert_outcomes(failed=1)
        expected = "the baseline has no AP" if "AP" in reason else "the judgments differ"
        result.stdout.fnmatch_lines(
            [f"the candidate cannot be compared with the baseline *{expected}*. If the change is meant, write it *"]
        )


def test_names_tell_baselines_apart_and_share_them(project):
    """By file, class and parameters; a name of one's own is the same everywhere, and stays in the folder."""
    write(
        project,
        """
        class TestA:
            @pytest.mark.parametrize("way", ["a/b", "a%2Fb", "é" * 200])
            def test_ltr(self, rankeval_baseline, way):
                rankeval_baseline(ranked(1.0))

        def test_one(rankeval_baseline):
            rankeval_baseline(ranked(1.0), name="../shared")
            rankeval_baseline(ranked(1.0), "second")

        def test_two(rankeval_baseline):
            assert rankeval_baseline(ranked(1.0), name="../shared").n_queries == 40
        """.replace("\n        ", "\n"),
    )
    write(project, "def test_one(rankeval_baseline):\n    rankeval_baseline(ranked(1.0))\n", name="test_other")
    project.runpytest_inprocess("--rankeval-update").assert_outcomes(passed=6)
    names = kept(project)
    assert len(names) == 6
    assert {"second.parquet", "..%2Fshared.parquet", "test_other.test_one.parquet"} <= set(names)
    assert max(map(len, names)) < 255
    project.runpytest_inprocess().assert_outcomes(passed=6)


@pytest.mark.further
def test_workers_write_one_baseline_at_once_and_the_summary_is_whole(project):
    """Sixteen tests of two workers renew the same file: it is whole at the end, and no part is left."""
    write(
        project,
        """
@pytest.mark.parametrize("k", range(16))
def test_many(rankeval_baseline, k):
    candidate = ranked(1.0)
    rk.testing.assert_evaluations_equal(candidate, rankeval_baseline(candidate, name="shared"))
""",
    )
    result = project.runpytest_subprocess("-n", "2", "--rankeval-update")
    result.assert_outcomes(passed=16)
    assert kept(project) == ["shared.parquet"]
    lines = result.outlines[next(k for k, line in enumerate(result.outlines) if "= rankeval =" in line) + 1 :]
    assert len([line for line in lines if "equal to the baseline" in line]) == 16
    assert len({line.split()[0] for line in lines if "equal to the baseline" in line}) == 16


@pytest.mark.parametrize("workers", [(), pytest.param(("-n", "1"), marks=pytest.mark.rest)])
def test_the_summary_has_a_row_for_each_measure_of_each_check(project, workers):
    """Passed or failed, in a fixture or in the test; nothing of the tests without a check."""
    write(
        project,
        """
@pytest.fixture(scope="session")
def gate():
    rk.testing.assert_not_worse(ranked(1.0), ranked(1.1), margin=0.5)

def test_good(gate):
    rk.testing.assert_no_regression(ranked(1.0), ranked(1.0))

def test_bad():
    rk.testing.assert_not_worse(ranked(5.0), ranked(0.5), margin=0.01)

def test_nothing():
    pass
""",
    )
    result = (project.runpytest_subprocess if workers else project.runpytest_inprocess)(
        *workers, "--junitxml=found.xml"
    )
    result.assert_outcomes(passed=2, failed=1)
    lines = result.outlines[next(k for k, line in enumerate(result.outlines) if "= rankeval =" in line) + 1 :][:4]
    assert re.split(r"  +", lines[0]) == ["test", "measure", "queries", "gain", "interval", "verdict"]
    rows = [re.split(r"  +", line) for line in lines[1:]]
    assert [row[0] for row in rows] == [f"test_search.py::{name}" for name in ("test_good", "test_good", "test_bad")]
    assert [row[1:3] for row in rows] == [["nDCG@10", "40"]] * 3
    assert rows[0][5].startswith("a loss of 0.5 is ruled out (an equal system passes")
    assert rows[1][3:] == ["0.0000", "\N{EN DASH}", "no loss is shown"]
    assert rows[2][5].startswith("a loss of 0.01 is not ruled out (an equal system passes")
    assert (project.path / "found.xml").read_text().count('<property name="rankeval" value=') == 3


def test_a_test_that_checks_in_a_loop_has_its_last_rows_in_the_summary(project):
    """The failed check is the last one; the others are counted."""
    write(
        project,
        """
def test_many():
    for _ in range(29):
        rk.testing.assert_no_regression(ranked(1.0), ranked(1.0))
    rk.testing.assert_not_worse(ranked(5.0), ranked(0.5), margin=0.01)
""",
    )
    result = project.runpytest_inprocess()
    result.assert_outcomes(failed=1)
    rows = [line for line in result.outlines if line.startswith("test_search.py::test_many  ")]
    assert len(rows) == 25
    assert "a loss of 0.01 is not ruled out" in rows[-1]
    result.stdout.fnmatch_lines(["test_search.py::test_many: 5 more checks are not listed"])


def test_a_slice_that_lost_has_a_row_of_its_own(project):
    """Its row names it, and stays though it is the first of many rows."""
    write(
        project,
        """
import numpy as np
import pandas as pd

def test_markets():
    markets = np.arange(900) % 30
    old = pd.DataFrame({"AP": np.random.default_rng(0).random(900)})
    new = old.sub(0.2 * (markets == 7) * np.random.default_rng(1).random(900), axis=0)
    rk.testing.assert_no_regression(new, old, by=pd.Series(markets, name="market"))
""",
    )
    result = project.runpytest_inprocess()
    result.assert_outcomes(failed=1)
    rows = [line.split("  ") for line in result.outlines if line.startswith("test_search.py::test_markets  ")]
    assert [row for row in rows if "AP, market 7" in "  ".join(row) and "a loss is shown" in row[-1]]
    assert len(rows) == 25
    result.stdout.fnmatch_lines(["test_search.py::test_markets: 6 more checks are not listed"])


SUMMARY = """
import os

def test_good():
    rk.testing.assert_no_regression(ranked(1.0), ranked(1.0))

def test_moves():
    os.chdir("..")

def test_bad():
    rk.testing.assert_not_worse(ranked(5.0), ranked(0.5), margin=0.01)

def test_unequal():
    rk.testing.assert_evaluations_equal(ranked(5.0), ranked(0.5))

def test_other():
    assert 1 == 2
"""


@pytest.mark.worth("the summary that a CI job reads, from a session of its own")
@pytest.mark.parametrize("workers", [(), pytest.param(("-n", "2"), marks=pytest.mark.rest)])
def test_the_summary_is_written_and_appended_once(project, monkeypatch, workers):
    """To the file of the option in place of what it had, and below what the step summary has."""
    write(project, SUMMARY)
    file, step = project.path / "summary.md", project.path / "step.md"
    file.write_text("of another run")
    step.write_text("of another command")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(step))
    project.runpytest_subprocess(*workers, "--rankeval-summary", "summary.md").assert_outcomes(passed=2, failed=3)
    text = file.read_text(encoding="utf-8")
    assert step.read_text(encoding="utf-8") == f"of another command\n{text}"
    lines = text.splitlines()
    assert lines[:5] == [
        "### rankeval",
        "",
        "**2 of 3 checks failed**; pytest: 3 tests failed.",
        "",
        "| test | measure | queries | gain | interval | verdict |",
    ]
    assert lines[5] == "| --- | --- | ---: | ---: | --- | --- |"
    rows = [line.strip("| ").split(" | ") for line in lines[6:9]]
    assert sorted(row[0] for row in rows[:2]) == [f"test\\_search.py::test\\_{name}" for name in ("bad", "unequal")]
    assert all(row[-1].startswith("**") and row[-1].endswith("**") for row in rows[:2])
    assert rows[2][0] == "test\\_search.py::test\\_good"
    assert not rows[2][-1].startswith("**")
    assert text.count("<details><summary>test_search.py::test_") == 2
    assert "\n<pre>\nby nDCG@10 the candidate is worse on " in text
    assert "\nthe greatest differences:\n" in text
    assert sorted(path.name for path in project.path.iterdir() if path.suffix in (".md", ".part")) == [
        "step.md",
        "summary.md",
    ]


def test_a_file_that_is_asked_for_is_written_if_nothing_was_checked(project, monkeypatch):
    """The step summary, which nobody asked for, stays as it is."""
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "step.md"))
    project.makepyfile("def test_nothing():\n    assert 1 == 2\n")
    project.runpytest_inprocess("--rankeval-summary=summary.md").assert_outcomes(failed=1)
    expected = "### rankeval\n\n**Nothing was checked**; pytest: 1 test failed.\n"
    assert (project.path / "summary.md").read_text() == expected
    assert not (project.path / "step.md").exists()


def test_nothing_is_written_unless_asked_for(project):
    write(project, SUMMARY)
    before = sorted(project.path.iterdir())
    project.runpytest_inprocess().assert_outcomes(passed=2, failed=3)
    assert {path.name for path in {*project.path.iterdir()} - {*before}} <= {"__pycache__"}


@pytest.mark.parametrize("given", ["absent/summary.md", "tox.ini/summary.md", "folder", ""])
def test_a_file_that_cannot_be_written_is_refused_before_the_first_test(project, given):
    """In a folder that is absent or a file, a folder itself, or an empty name of a variable that is not set."""
    (project.path / "folder").mkdir()
    project.makepyfile("def test_nothing():\n    print('ran')\n")
    result = project.runpytest_inprocess("-s", f"--rankeval-summary={given}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*--rankeval-summary: cannot write '*'; name a file in a folder that exists and can be written to"]
    )
    result.stdout.no_fnmatch_line("ran")


def test_a_folder_without_permission_is_refused_before_the_first_test(project, monkeypatch):
    """The system is asked, and not the bits of the mode: the superuser may write to every folder."""
    folder = project.path / "folder"
    folder.mkdir(mode=0o500)
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != folder and real(path, mode))
    result = project.runpytest_inprocess("--rankeval-summary=folder/summary.md")
    assert result.ret == pytest.ExitCode.USAGE_ERROR


def test_an_absent_folder_of_the_step_summary_costs_one_line(project, monkeypatch):
    """It may be absent in a container: one line says so, and the tests' result stays."""
    write(project, SUMMARY)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "absent" / "step.md"))
    result = project.runpytest_inprocess()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stderr.fnmatch_lines(["rankeval: nothing is appended to GITHUB_STEP_SUMMARY: *absent*"])


@pytest.mark.further
def test_a_folder_that_goes_away_costs_the_file_and_not_what_pytest_prints(project, monkeypatch):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "absent" / "step.md"))
    (project.path / "folder").mkdir()
    write(project, f"{SUMMARY}\ndef test_removes():\n    os.rmdir({str(project.path / 'folder')!r})\n")
    result = project.runpytest_subprocess("--rankeval-summary=folder/summary.md")
    result.assert_outcomes(passed=3, failed=3)
    result.stderr.fnmatch_lines(["*InvalidInput: cannot write *: there is no folder *"])
    assert result.ret != 0


def test_it_can_be_switched_off_and_the_assertions_still_work(project):
    write(project, "def test_good():\n    rk.testing.assert_no_regression(ranked(1.0), ranked(1.0))\n")
    result = project.runpytest_inprocess("-p", "no:rankeval")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*= rankeval =*")
    write(project, GATE.replace("NOISE", "1.0"))
    result = project.runpytest_inprocess("-p", "no:rankeval")
    result.assert_outcomes(errors=1)


def test_the_folder_is_an_option_of_the_ini_file(project):
    project.makeini(f"{INI}rankeval_baselines = kept/nothing\n")
    write(project, GATE.replace("NOISE", "1.0"))
    project.runpytest_inprocess("--rankeval-update").assert_outcomes(passed=1)
    assert (project.path / "kept" / "nothing" / "test_search.test_ltr.parquet").exists()


def test_bad_use_says_what_is_expected(project):
    write(
        project,
        """
def test_frame(rankeval_baseline):
    rankeval_baseline(ranked(1.0).per_query)

def test_other_file(request, rankeval_baseline):
    path = request.path.parent / "rankeval_baselines" / "test_search.test_other_file.parquet"
    path.parent.mkdir()
    path.write_bytes(b"PK")
    rankeval_baseline(ranked(1.0))
""",
    )
    result = project.runpytest_inprocess()
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        ["E *candidate is <class '*DataFrame'>; expected an Evaluation, as rankeval.evaluate returns"]
    )
    result.stdout.fnmatch_lines(
        ["E *test_search.test_other_file.parquet: expected a Parquet file that Evaluation.save*"]
    )


LEDGER = """
import os
import subprocess
import sys
from pathlib import Path
import pytest
import rankeval as rk
from sklearn.linear_model import Ridge

data = rk.datasets.make_ranking(60, 10, 4, rng=0)
CODE = "import rankeval as rk; print(rk.Guard('p').looks('held-out').shape[0], rk.Guard('p').ledger)"

@pytest.mark.parametrize("round", [1, 2])
def test_own(rankeval_ledger, round):
    assert list(rankeval_ledger.glob("*.json")) == []
    guard = rk.Guard("p")
    test = guard.register("held-out", data)
    assert (guard.ledger, len(list(rankeval_ledger.glob("*.json")))) == (str(rankeval_ledger), 1)
    guard.open(guard.freeze(test, systems={"a": data.X[:, 0], "b": data.X[:, 1]}))
    for n_jobs in (1, 2):
        with pytest.raises(rk.errors.GuardRefusal):
            rk.cross_validate(Ridge(), data, cv=3, n_jobs=n_jobs)
    other = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert other.stdout.split() == ["2", str(rankeval_ledger)]

def test_without():
    "It is requested, not used by all: here the project's own ledger is in force, and knows nothing of this."
    assert "RANKEVAL_LEDGER" not in os.environ
    assert rk.Guard("p").ledger == str(Path.cwd() / "rankeval-ledger")
    assert rk.cross_validate(Ridge(), data, cv=3).evaluation.n_queries == 60
    assert not Path("rankeval-ledger").exists()
"""


@pytest.mark.further
@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.rest)])
def test_a_ledger_of_its_own_is_empty_for_each_test_and_forgotten_after_it(project, monkeypatch, workers):
    """Other processes that the test starts use it; a test that does not ask for it has the project's ledger."""
    monkeypatch.delenv("RANKEVAL_LEDGER", raising=False)
    project.makepyfile(LEDGER)
    project.runpytest_subprocess("-n", str(workers), "--dist", "loadfile").assert_outcomes(passed=3)
