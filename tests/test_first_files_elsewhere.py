"""`rankeval init` says why a commit would not hold the data, and its workflow fails until somebody fetches them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import yaml
from tables import each_row

from rankeval import first_files

WORKFLOW = Path(".github/workflows/relevance.yml")


def collection(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "q").write_text("1 0 a 1\n1 0 b 0\n")
    (folder / "r").write_text("1 Q0 a 1 2 x\n")


def outside() -> list[str]:
    collection(Path("../data"))
    return ["../data/q", "../data/r"]


def absolute() -> list[str]:
    return [str(Path(name).resolve()) for name in outside()]


def linked() -> list[str]:
    for name in outside():
        Path(Path(name).name).symlink_to(name)
    return ["q", "r"]


def in_a_linked_folder() -> list[str]:
    outside()
    Path("data").symlink_to("../data")
    return ["data/q", "data/r"]


def ignored() -> list[str]:
    collection(Path("data"))
    Path(".gitignore").write_text("data/\n")
    return ["data/q", "data/r"]


def one_of_two() -> list[str]:
    collection(Path())
    return ["q", outside()[1]]


@each_row(
    ("made", "reason", "named"),
    [
        (outside, "lies outside of the repository", ["../data/q", "../data/r"]),
        (absolute, "lies outside of the repository", ["../data/q", "../data/r"]),
        (linked, "leads outside of the repository", ["q", "r"]),
        (in_a_linked_folder, "leads outside of the repository", ["data/q", "data/r"]),
        (ignored, "is ignored by git", ["data/q", "data/r"]),
        (one_of_two, "lies outside of the repository", ["../data/r"]),
    ],
)
def test_data_that_cannot_be_committed_is_named_with_the_reason(made, reason, named, rankeval):
    Path("repository").mkdir()
    os.chdir("repository")
    subprocess.run(["git", "init", "-q"], check=True)
    code, out, err = rankeval("init", *made())
    assert (code, err) == (0, "")
    told = dict(line.split(maxsplit=1) for line in out.replace("no commit", "no_commit").splitlines())
    assert all(f"{name} {reason}" in told["no_commit"] for name in named)
    assert told["no_commit"].count(reason) == len(named)
    assert "the data, which the workflow needs" not in out
    steps = yaml.safe_load(WORKFLOW.read_text())["jobs"]["relevance"]["steps"]
    (step,) = [step for step in steps if step.get("name") == "Data"]
    assert subprocess.run(["bash", "-c", step["run"]], check=False).returncode != 0, "until somebody fills it in"
    assert "# fill in a command that fetches the data" in WORKFLOW.read_text()


def test_a_file_that_github_refuses_is_named(rankeval, monkeypatch):
    monkeypatch.setattr(first_files, "_MOST_BYTES", 10)
    collection(Path())
    code, out, _ = rankeval("init", "q", "r")
    assert code == 0
    assert "q has more than 100 MB, which GitHub refuses" in out


@each_row("into", [".", "project"])
@each_row("is_repository", [True, False])
def test_data_in_the_repository_is_to_be_committed(into, is_repository, rankeval):
    """Also from a folder of it, through a link within it, and if git ignores a file that it has already."""
    if is_repository:
        subprocess.run(["git", "init", "-q"], check=True)
    collection(Path("data"))
    Path("here").symlink_to("data/q")
    if is_repository:
        subprocess.run(["git", "add", "data"], check=True)
        Path(".gitignore").write_text("data/\n")
    Path(into).mkdir(exist_ok=True)
    code, out, _ = rankeval("init", "here", "data/r", "--into", into)
    assert code == 0
    if is_repository or into == ".":
        assert "commit these files and the data, which the workflow needs" in out
        assert "no commit" not in out
        assert "name: Data" not in (Path(into) / WORKFLOW).read_text()
    else:
        assert "outside of the repository" in out
