"""Laws of finding the ledger."""

import os
import subprocess
import sys
import tempfile
import warnings

import pytest

import rankeval as rk
from rankeval.contamination import ContaminationCheck, forget
from rankeval.errors import ConfigError, GuardRefusal, LedgerError, RankevalWarning
from rankeval.guard.journal import COMMITTED, POD, SERVICES, why_lost
from rankeval.ledger.discovery import (
    FOLDER,
    VARIABLE,
    LedgerPlace,
    active_urls,
    default_url,
    ledger_url,
    place_of,
    watch,
)
from rankeval.ledger.ledger import Ledger


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch, tmp_path):
    monkeypatch.delenv(VARIABLE)
    for variable in (*" ".join(SERVICES).split(), POD, COMMITTED):
        monkeypatch.delenv(variable, raising=False)
    (tmp_path / ".git").mkdir()
    forget()
    yield
    forget()


def found():
    forget()
    return default_url()


def test_without_any_setting_it_is_in_the_root_of_the_project(tmp_path, monkeypatch):
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    assert found() == f"file://{tmp_path / FOLDER}"
    (tmp_path / "a" / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert found() == f"file://{tmp_path / 'a' / FOLDER}"
    (inner / FOLDER).mkdir()
    assert found() == f"file://{inner / FOLDER}"


def test_the_project_may_name_it(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text('[tool.rankeval]\nledger = "records/looks.db"\n')
    inner = tmp_path / "a"
    inner.mkdir()
    monkeypatch.chdir(inner)
    assert found() == f"sqlite:///{tmp_path / 'records' / 'looks.db'}"
    (tmp_path / "pyproject.toml").write_text('[tool.rankeval]\nledger = "records"\n')
    assert found() == f"file://{tmp_path / 'records'}"
    (tmp_path / "pyproject.toml").write_text('[tool.rankeval]\nledger = " off "\n')
    assert found() is None


def test_the_variable_goes_first_and_can_switch_it_off(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text('[tool.rankeval]\nledger = "looks.db"\n')
    monkeypatch.setenv(VARIABLE, "other.db")
    assert found() == f"sqlite:///{tmp_path / 'other.db'}"
    monkeypatch.setenv(VARIABLE, "postgresql+psycopg://host/base")
    assert found() == "postgresql+psycopg://host/base"
    monkeypatch.setenv(VARIABLE, "off")
    assert found() is None
    watch("sqlite:////tmp/x.db")
    assert not ContaminationCheck.current().ledgers


def test_it_is_resolved_once(tmp_path, monkeypatch):
    first = found()
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / ".git").mkdir()
    monkeypatch.chdir(tmp_path / "a")
    assert default_url() == first
    assert found() != first


def test_settings_that_cannot_be_are_said(tmp_path):
    for text in ("[tool.rankeval]\nledger = 3\n", "[tool.rankeval\nledger = 'x'\n"):
        (tmp_path / "pyproject.toml").write_text(text)
        with pytest.raises(ConfigError, match=r"pyproject\.toml"):
            found()
    for spec in (":memory:", "sqlite://", "sqlite:///:memory:", "", "file://"):
        with pytest.raises(LedgerError, match="give"):
            ledger_url(spec)
    with pytest.raises(LedgerError, match="question mark"):
        ledger_url("what?.db")


@pytest.mark.parametrize("name", ["a.db", "a.sqlite", "a.sqlite3"])
def test_the_end_of_a_path_tells_a_database_from_a_folder(tmp_path, name):
    """And neither depends on the working directory."""
    for spec in (name, f"./{name}", f"sqlite:///{name}", tmp_path / name, f"file://{tmp_path}/{name}"):
        assert ledger_url(spec) == f"sqlite:///{tmp_path / name}"
    for spec in ("a", "a/", "./b/../a", tmp_path / "a", f"file://{tmp_path}/a"):
        assert ledger_url(spec) == f"file://{tmp_path / 'a'}"
    assert ledger_url("sqlite:///plain") == f"sqlite:///{tmp_path / 'plain'}"
    assert place_of(ledger_url("a")) == LedgerPlace("folder", str(tmp_path / "a"))
    assert place_of(ledger_url(name)) == LedgerPlace("sqlite", str(tmp_path / name))


def test_asking_where_there_is_no_ledger_loads_no_database_and_no_frames(tmp_path):
    program = (
        "import sys; from rankeval.contamination.refusal import ContaminationCheck; s = ContaminationCheck.current(); "
        "s.refuse(None, [1], [1], action='x'); "
        "print(bool(s.ledgers), [m for m in ('sqlalchemy', 'pandas', 'scipy', 'sklearn') if m in sys.modules])"
    )
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "[]"]


@pytest.mark.parametrize(
    "text", ["tool = 'tool.rankeval'", "[tool]\nrankeval = 'tool.rankeval'", f"# tool.rankeval\na = {'[' * 10_000}"]
)
def test_a_project_file_of_another_make_is_named(tmp_path, text):
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(ConfigError, match=r"pyproject\.toml cannot be read, and may name the ledger"):
        found()


def test_a_ledger_called_mlflow_is_refused():
    """It would be a file of that name, and its owner would look for it on the server."""
    with pytest.raises(LedgerError, match="'mlflow' is not a ledger"):
        ledger_url("mlflow")


# A ledger that is not there -------------------------------------------------------------------------------------------

QRELS = {f"q{q}": {f"d{q}-{d}": int((q * d) % 3 == 1) for d in range(12)} for q in range(10)}
RUN = {q: dict.fromkeys(docs, 0.5) for q, docs in QRELS.items()}


def score():
    """Score something, and return what was warned about."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        rk.evaluate(QRELS, RUN, measures="AP")
    return [str(one.message) for one in said if issubclass(one.category, RankevalWarning)]


@pytest.mark.parametrize("name", ["records", "records.db"])
def test_a_ledger_that_a_setting_names_and_that_is_not_there_is_said_once(tmp_path, monkeypatch, name):
    """In each process; the default one, which nobody named, is not."""
    assert score() == []
    monkeypatch.setenv(VARIABLE, str(tmp_path / name))
    forget()
    for source in (f"the variable {VARIABLE}", str(tmp_path / "pyproject.toml")):
        (said,) = score()
        assert said == (
            f"the ledger {tmp_path / name}, which {source} names, is not there: it guards nothing until a test "
            "collection is registered in it"
        )
        assert score() == []
        monkeypatch.delenv(VARIABLE, raising=False)
        (tmp_path / "pyproject.toml").write_text(f'[tool.rankeval]\nledger = "{name}"\n')
        forget()
    rk.Guard("p").register("other", qrels={f"{q}x": {f"{d}x": 1 - y for d, y in QRELS[q].items()} for q in QRELS})
    forget()
    assert score() == []


@pytest.mark.parametrize("named", [None, FOLDER])
def test_a_ledger_that_went_away_while_we_worked_still_refuses(tmp_path, monkeypatch, named):
    """Scoring uses what was known last and says so, also of a ledger that only a guard names."""
    if named:
        (tmp_path / "project" / ".git").mkdir(parents=True)
        monkeypatch.chdir(tmp_path / "project")
        forget()
        named = tmp_path / named
    data = rk.datasets.make_ranking(40, 8, 3, rng=0)
    rk.Guard("p", ledger=named).register("t", data)

    def evaluate():
        with pytest.raises(rk.errors.GuardRefusal):
            rk.evaluate(data.y, data.X[:, 0], qid=data.qid, measures="AP")

    evaluate()
    (tmp_path / FOLDER).rename(tmp_path / "elsewhere")
    with pytest.warns(RankevalWarning, match=r"is gone: restore it.*using its last known state"):
        evaluate()


@pytest.mark.parametrize("name", ["records", "records.db"])
def test_a_place_that_holds_something_else_is_an_error_and_not_an_empty_ledger(tmp_path, monkeypatch, name):
    monkeypatch.setenv(VARIABLE, name)
    forget()
    if name == "records":
        (tmp_path / name).write_text("notes")
    else:
        (tmp_path / name).mkdir()
    for act in (score, lambda: rk.Guard("p").register("t", qrels=QRELS), Ledger(ledger_url(name)).check_writable):
        with pytest.raises(LedgerError, match=rf"the ledger {tmp_path / name} cannot be (read|written)"):
            act()


def test_a_script_finds_the_ledger_of_its_own_project_wherever_it_was_started(tmp_path):
    """As a scheduler starts it; a working directory with a project of its own goes first."""
    project, elsewhere = tmp_path / "shop", tmp_path / "elsewhere"
    (project / "jobs").mkdir(parents=True)
    elsewhere.mkdir()
    (tmp_path / ".git").rmdir()
    (project / "pyproject.toml").touch()
    script = project / "jobs" / "nightly.py"
    script.write_text("from rankeval.ledger.discovery import default_url\nprint(default_url())\n")
    for folder, root in ((elsewhere, project), (elsewhere, elsewhere)):
        ran = subprocess.run([sys.executable, script], cwd=folder, capture_output=True, text=True, check=True)
        assert ran.stdout.strip() == f"file://{root / FOLDER}"
        (elsewhere / "pyproject.toml").touch()


# Outside a project ----------------------------------------------------------------------------------------------------


def test_outside_a_project_the_first_ledger_says_once_where_it_is_made(tmp_path):
    (tmp_path / ".git").rmdir()
    forget()
    guard = rk.Guard("p")
    assert score() == []
    with pytest.warns(RankevalWarning, match="there is no project around") as said:
        guard.register("t", qrels=QRELS)
    assert str(tmp_path / FOLDER) in str(said[0].message)
    assert len(said) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        forget()
        rk.Guard("q").register("t", qrels=QRELS)
        guard.retire("t", "done")


def test_a_ledger_that_was_named_or_is_in_a_project_is_made_without_a_word(tmp_path, monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rk.Guard("p").register("t", qrels=QRELS)
        (tmp_path / ".git").rmdir()
        forget()
        rk.Guard("p", ledger=tmp_path / "named").register("t", qrels=QRELS)
        monkeypatch.setenv(VARIABLE, str(tmp_path / "other"))
        rk.Guard("p").register("t", qrels=QRELS)


# Where no other process looks -----------------------------------------------------------------------------------------


@pytest.fixture
def _tmp_path_is_no_trial(monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")


def registered(ledger, name="t"):
    """Register something, and return what was warned about."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        rk.Guard("p", ledger=ledger).register(name, qrels=QRELS)
    return [str(one.message) for one in said if "no other process" in str(one.message)]


@pytest.mark.usefixtures("_tmp_path_is_no_trial")
@pytest.mark.parametrize("place", ["trial-ledger", "trial.db", "deep/rankeval-ledger"])
def test_a_ledger_that_no_other_process_would_find_is_said_once(tmp_path, place):
    """The copy of the README's trial: it names both ways to have it found, and each process says it."""
    (said,) = registered(place)
    assert said.startswith(f"no other process looks into the ledger {tmp_path / place}: what is registered there is ")
    assert VARIABLE in said
    assert "[tool.rankeval] in pyproject.toml" in said
    assert registered(place, "again") == []
    forget()
    assert len(registered(place, "in a new process")) == 1
    forget()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rk.Guard("p", ledger=place).looks("t")  # who reads makes nothing that others miss


@pytest.mark.usefixtures("_tmp_path_is_no_trial")
@pytest.mark.parametrize("by", ["the variable", "the project", "default", "inner folder", "off"])
def test_a_ledger_that_other_processes_find_is_written_without_a_word(tmp_path, monkeypatch, by):
    place = tmp_path / ("records" if by in ("the variable", "the project", "off") else FOLDER)
    if by == "the variable":
        monkeypatch.setenv(VARIABLE, "records")
    elif by == "the project":
        (tmp_path / "pyproject.toml").write_text('[tool.rankeval]\nledger = "records"\n')
    elif by == "off":  # on purpose: not even this process looks
        monkeypatch.setenv(VARIABLE, "off")
    elif by == "inner folder":
        place = tmp_path / "a" / FOLDER
        place.mkdir(parents=True)
        monkeypatch.chdir(tmp_path / "a")
    forget()
    assert registered(place) == []


def test_a_trial_in_the_temporary_folder_and_a_copy_are_no_ledgers_to_be_found(tmp_path, monkeypatch):
    """Not even below a link to that folder; an export is a copy."""
    assert registered(tmp_path / "trial") == []
    (tmp_path / "link").symlink_to(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "link"))
    assert registered(tmp_path / "second") == []
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        guard = rk.Guard("p")
        guard.register("t", qrels=QRELS)
        guard.export("copy")


# Continuous integration -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["records", "deep/records.db"])
def test_in_ci_a_ledger_inside_the_checkout_is_lost_with_it(tmp_path, monkeypatch, name):
    url = ledger_url(name)
    assert why_lost(url) is None, "CI is not set"
    for value in ("true", "1", "woodpecker"):
        monkeypatch.setenv("CI", value)
        assert str(tmp_path / name) in why_lost(url)
        assert f"the checkout {tmp_path}," in why_lost(url)
    assert why_lost(url, committed=True) is None
    for value, lost in (("1", False), ("true", False), ("0", True), ("", True), ("false", True)):
        monkeypatch.setenv(COMMITTED, value)
        assert (why_lost(url) is not None) == lost
    for value in (name, str(tmp_path / name), "other.db", "off", " "):
        monkeypatch.setenv(VARIABLE, value)
        assert why_lost(url) is not None, "a variable that names it does not make it last"
    monkeypatch.delenv(VARIABLE)
    for value in ("", "0", "false"):
        monkeypatch.setenv("CI", value)
        assert why_lost(url) is None


@pytest.mark.parametrize("service", SERVICES)
def test_a_ci_service_is_known_without_the_variable_ci(monkeypatch, service):
    for variable in service.split():
        assert why_lost(ledger_url("records")) is None
        monkeypatch.setenv(variable, "17")
    assert why_lost(ledger_url("records")).startswith(f"the variable {service.split()[0]} is set, and the ledger ")


def test_in_a_pod_a_ledger_in_the_checkout_is_warned_about_once(tmp_path, monkeypatch):
    """It may lie on a volume that outlives the pod; a service of CI in a pod loses it for sure."""
    monkeypatch.setenv(POD, "10.0.0.1")
    outside = [why_lost("postgresql+psycopg://host/base"), why_lost(ledger_url(tmp_path.parent / "kept"))]
    assert outside == [None, None]
    with pytest.warns(RankevalWarning, match=f"{POD} is set, .*the checkout {tmp_path}: if the checkout is lost"):
        assert why_lost(ledger_url("records")) is None
    assert why_lost(ledger_url("records")) is None
    forget()
    monkeypatch.setenv(COMMITTED, "1")
    assert why_lost(ledger_url("records")) is None
    monkeypatch.delenv(COMMITTED)
    monkeypatch.setenv("GITLAB_CI", "true")
    assert why_lost(ledger_url("records")).startswith("the variable GITLAB_CI")


def test_in_ci_a_ledger_that_outlives_the_checkout_is_none_to_worry_about(tmp_path, monkeypatch):
    monkeypatch.setenv("CI", "true")
    assert why_lost("postgresql+psycopg://host/base") is None
    assert why_lost(ledger_url(tmp_path.parent / "kept")) is None
    (tmp_path / ".git").rmdir()
    (tmp_path / ".git").write_text("gitdir: elsewhere")  # a worktree, or a submodule
    assert why_lost(ledger_url("records")) is not None


def test_a_watched_ledger_is_asked_whatever_the_setting_says_later_unless_it_says_off(tmp_path, monkeypatch):
    """The variable may be set after a guard was made with a ledger of its own, in a notebook say."""
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    forget()
    data = rk.datasets.make_ranking(30, 10, 4, rng=0)
    guard = rk.Guard("project", ledger=tmp_path / "own")
    guard.register("test", data)
    other = rk.Guard("other", ledger=tmp_path / "second")
    other.register("dev", rk.datasets.make_ranking(30, 10, 4, rng=1))
    monkeypatch.setenv(VARIABLE, str(tmp_path / "second"))
    with pytest.raises(GuardRefusal, match="'test' of project 'project'"):
        rk.evaluate(data.y, data.X[:, 0], qid=data.qid)
    assert active_urls() == [ledger_url(tmp_path / "second"), ledger_url(tmp_path / "own")]
    monkeypatch.setenv(VARIABLE, "off")
    assert active_urls() == []
    rk.evaluate(data.y, data.X[:, 0], qid=data.qid)
