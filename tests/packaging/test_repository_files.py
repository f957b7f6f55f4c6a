"""The files beside the packages agree with them: CONTRIBUTING, CITATION.cff, the workflow."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import yaml
from circles import PARTS

import rankeval

ROOT = Path(__file__).resolve().parents[2]
GITHUB = ROOT / ".github"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_version_is_one():
    """In the package, its metadata and the citation."""
    citation = yaml.safe_load((GITHUB / "CITATION.cff").read_text(encoding="utf-8"))
    assert PROJECT["project"]["version"] == rankeval.__version__ == citation["version"]
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= set(citation)


def test_contributing_shows_the_floors_that_are_checked():
    """The table has a row for each layer of import-linter, in its order."""
    text = (GITHUB / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.partition("| layer |")[2].partition("\n\n")[0]
    shown = [set(re.findall(r"`(\w+)(?:/|\.py)`", row.split("|")[1])) for row in table.splitlines()[2:]]
    layers = [set(layer.split(" | ")) for layer in PROJECT["tool"]["importlinter"]["contracts"][0]["layers"]]
    assert shown[:-1] == layers[: len(shown) - 1]
    assert shown[-1] == set.union(*layers[len(shown) - 1 :])


def test_contributing_names_each_file_of_the_packages_or_its_folder():
    text = (GITHUB / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for package, head in (
        ("rankeval", "| layer |"),
        ("integrations/rankeval_mlflow", "| part of `rankeval_mlflow/` |"),
    ):
        table = text.partition(head)[2].partition("\n\n")[0]
        named = [name for row in table.splitlines()[2:] for name in re.findall(r"`([^`]+)`", row.split("|")[1])]
        files = {path.relative_to(ROOT / package).parts for path in (ROOT / package).rglob("*.py")}
        there = {first if not deeper else f"{first}/" for first, *deeper in files} - {"__init__.py"}
        assert sorted(named) == sorted(there)


def test_contributing_names_no_file_that_is_gone():
    """With its folder or alone."""
    text = (GITHUB / "CONTRIBUTING.md").read_text(encoding="utf-8")
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    names = {
        path.name for top in ("rankeval", "integrations", "tests", "examples") for path in (ROOT / top).rglob("*.*")
    }
    for path in re.findall(r"`([\w/.-]+\.py)`|\(\.\./([\w/.-]+)\)|^\[\w+\]: \.\./(\S+)", prose, re.MULTILINE):
        place = "".join(path)
        assert (ROOT / place).exists() if "/" in place else place in names, place


def test_the_workflow_reads_only_and_names_each_action_by_its_commit():
    """A tag may be moved to other code, a commit may not."""
    text = (GITHUB / "workflows" / "ci.yml").read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {"contents": "read"}
    assert not any("permissions" in job for job in workflow["jobs"].values())
    used = re.findall(r"uses: (.*)", text)
    assert used
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}  # v[0-9.]+", one) for one in used), used


def test_the_workflow_runs_each_python_that_is_promised():
    """The matrix has the classifiers' versions."""
    workflow = yaml.safe_load((GITHUB / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    promised = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))
    assert workflow["jobs"]["tests"]["strategy"]["matrix"]["python"] == promised


def test_a_system_that_nobody_has_tried_blocks_nothing():
    """README says that macOS was not run: its job is an experiment, and the others run on Linux."""
    jobs = yaml.safe_load((GITHUB / "workflows" / "ci.yml").read_text(encoding="utf-8"))["jobs"]
    others = {name for name, job in jobs.items() if not job["runs-on"].startswith("ubuntu")}
    assert others == {"macos"}
    assert {name for name, job in jobs.items() if job.get("continue-on-error")} == others


def test_each_form_of_an_issue_asks_for_what_helps():
    """A bug, a wrong number, a feature; both of the first want the output of `rankeval doctor`."""
    folder = GITHUB / "ISSUE_TEMPLATE"
    forms = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in folder.glob("*.yml")}
    assert forms.pop("config") == {"blank_issues_enabled": True}
    assert set(forms) == {"bug", "wrong-number", "feature"}
    for name, form in forms.items():
        fields = [field["id"] for field in form["body"]]
        assert len(fields) == len(set(fields))
        assert all(field["attributes"]["label"] for field in form["body"])
        assert ("doctor" in fields) == (name != "feature")
        assert {"name", "description", "labels"} <= form.keys()


def test_the_changelog_begins_with_this_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\S+)", text, re.MULTILINE)[0] == rankeval.__version__


def test_the_workflow_runs_each_part_of_the_full_circle():
    """`.ci/run` names the parts, CONTRIBUTING says what they are, and the weekly job has one run for each."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    parts = re.search(r"^parts=\((.*)\)$", script, re.MULTILINE)[1].split()
    workflow = yaml.safe_load((GITHUB / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    assert workflow["jobs"]["full"]["strategy"]["matrix"]["part"] == parts
    assert set(PARTS) < set(parts)
    text = (GITHUB / "CONTRIBUTING.md").read_text(encoding="utf-8")
    described = text.partition("`.ci/run --full` has")[2].partition("\n```")[0]
    assert [part for part in parts if f"`{part}`" not in described] == []


def test_the_default_circle_needs_no_package_that_the_readme_does_not_install():
    """`.[test-all]` has all of `.[test]`, and each extra of a user is in one of both."""
    extras = PROJECT["project"]["optional-dependencies"]
    named = {name: re.findall(r"[\w-]+", re.search(r"\[(.*)\]", extras[name][0])[1]) for name in ("test", "test-all")}
    assert "test" in named["test-all"]
    assert {*named["test"], *named["test-all"]} == extras.keys() - {"test-all"}
