"""A look is spent only if the result can be kept: names, folders, permissions and the disk are tried before it."""

from __future__ import annotations

import errno
import resource
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tables import each_row

import rankeval as rk
from rankeval.contamination import refusal
from rankeval.datasets import make_ranking
from rankeval.errors import ConfigError, InvalidInput
from rankeval.experiment import recipe, run_experiment
from rankeval.ledger.ledger import Ledger

RIDGE = {"estimator": "sklearn.linear_model.Ridge"}
OUT = Path("out")


@contextmanager
def full_disk() -> Iterator[None]:
    """Let no file grow beyond 64 kB, as on a disk that is nearly full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def a_file(path: Path) -> None:
    """Put a file there."""
    shutil.rmtree(path, ignore_errors=True)
    path.parent.mkdir(exist_ok=True)
    path.touch()


def a_folder(path: Path) -> None:
    (path / "deeper").mkdir(parents=True)


def nobody_may_write(path: Path) -> None:
    """Link to a folder in which not even root can write."""
    shutil.rmtree(path, ignore_errors=True)
    path.parent.mkdir(exist_ok=True)
    path.symlink_to("/sys/kernel")


WRONG = {
    "a file in place of the folder": (lambda: a_file(OUT), NotADirectoryError),
    "a file in place of a folder in it": (lambda: a_file(OUT / "predictions"), FileExistsError),
    "a folder in place of the report": (lambda: a_folder(OUT / "report.html"), IsADirectoryError),
    "a folder in place of predictions": (lambda: a_folder(OUT / "predictions" / "tree.parquet"), IsADirectoryError),
    "no permission": (lambda: nobody_may_write(OUT), PermissionError),
    "no permission for predictions": (lambda: nobody_may_write(OUT / "predictions"), PermissionError),
}


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """Switch the guard on, with a ledger that has an entry."""
    monkeypatch.setenv("RANKEVAL_LEDGER", str(tmp_path / "ledger"))
    refusal.forget()
    rk.Guard("small").register("other", make_ranking(60, 10, 4, rng=0))
    yield Ledger(f"file://{tmp_path}/ledger")
    refusal.forget()


def run(*names: str, directory: str = "out"):
    return run_experiment(
        {
            "name": "small",
            "data": {"loader": "digits", "arguments": {"n_queries": 60, "n_candidates": 15}},
            "rankers": dict.fromkeys(names or ("ridge",), RIDGE) | {"tree": {**RIDGE, "params": {"alpha": 9.0}}},
            "cv": {"n_splits": 2},
            "tracking": "off",
            "output": {"directory": directory},
        }
    )


def kinds(ledger: Ledger) -> list[str]:
    return [entry.kind for entry in ledger.read().entries]


def refused_before_training(ledger: Ledger, *names: str, directory: str = "out") -> BaseException | None:
    """Run, find that nothing was trained, registered or looked at, and return the cause."""
    before = ledger.read().head
    with pytest.raises(ConfigError) as caught:
        run(*names, directory=directory)
    assert ledger.read().head == before
    assert len(rk.Guard("small").looks()) == 0
    return caught.value.__cause__ and caught.value.__cause__.__cause__


@each_row("case", WRONG)
def test_places_that_cannot_be_written_are_found_before_training(ledger, case):
    make, error = WRONG[case]
    make()
    assert type(refused_before_training(ledger)) is error


def test_folders_that_cannot_be_made_are_found_before_training(ledger):
    assert type(refused_before_training(ledger, directory="/proc/out")) is FileNotFoundError


def test_a_full_disk_is_found_before_training(ledger):
    with full_disk():
        assert refused_before_training(ledger).errno == errno.EFBIG
    assert [path for path in OUT.rglob("*") if path.is_file()] == []


@each_row("name", ["r" * 300, "r" * 246])
def test_a_name_too_long_for_a_file_is_found_before_training(ledger, name):
    """A name of 300 letters trained, spent the look, and then could not be written."""
    assert refused_before_training(ledger, name).errno == errno.ENAMETOOLONG


@each_row("name", ["a/b", "..", "a\0b", "", " "])
def test_a_name_that_names_no_file_is_found_before_training(ledger, name):
    assert refused_before_training(ledger, name) is None


@pytest.mark.parametrize("case", ["a full disk", *(pytest.param(case, marks=pytest.mark.rest) for case in WRONG)])
def test_places_that_are_lost_during_the_training_cost_no_look(ledger, monkeypatch, case):
    """The run that is repeated makes the first look."""
    train, disk = recipe.train, ExitStack()

    def trained(name, *given):
        result = train(name, *given)
        if name == "tree":
            shutil.rmtree(OUT)
            OUT.mkdir()
            disk.enter_context(full_disk()) if case not in WRONG else WRONG[case][0]()
        return result

    monkeypatch.setattr(recipe, "train", trained)
    with disk, pytest.raises(InvalidInput, match=r"^output.directory: 'out.*' cannot be written: ") as caught:
        run()
    assert type(caught.value.__cause__) is (WRONG[case][1] if case in WRONG else OSError)
    assert kinds(ledger) == ["register", "register"]
    assert len(rk.Guard("small").looks()) == 0
    OUT.rename("before")
    monkeypatch.setattr(recipe, "train", train)
    assert run().looks_added == 1


def test_a_run_leaves_no_drafts_behind(ledger):
    run()
    found = [str(path.relative_to(OUT)) for path in OUT.rglob("*") if path.is_file()]
    predictions = ["predictions/ridge.parquet", "predictions/tree.parquet"]
    expected = ["comparison.csv", "experiment.yaml", *predictions, "report.html"]
    assert sorted(one for one in found if not one.startswith(("kept/", "runs/"))) == expected
    assert not [one for one in found if "draft" in one]
    assert kinds(ledger)[-1] == "open"
