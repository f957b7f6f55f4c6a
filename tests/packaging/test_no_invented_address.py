"""No file that ships, and nothing that is printed or written, installs a name that anybody could register."""

from __future__ import annotations

import json
import re
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import InvalidRequirement, Requirement
from tables import each_row

import rankeval
from rankeval import _source
from rankeval.errors import ConfigError, InvalidInput
from rankeval.experiment.loading import imported
from rankeval.model_selection.boosters import BOOSTERS
from rankeval.text import BM25
from rankeval.text.terms import _term_of

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("rankeval", "integrations", "configs", "examples", ".github", ".ci")
KINDS = {".py", ".pyi", ".md", ".yaml", ".yml", ".jinja", ".toml", ".cff", ".html", ".css", ".js", ".json", ""}
ADDRESS = re.compile(r"\b(?:\w+\+)?(?:https?|ssh|git)://[^\s\"'`)>]*rankeval|git@[\w.]+:\S*rankeval", re.IGNORECASE)
BY_NAME = re.compile(
    r"(?:pip3?|uv pip|uv|pipx|conda|mamba|poetry) (?:install|add)\b[^\n`#]*?[\s\"'=]rankeval[\w-]*(?:\[\w+\])?"
    r"(?![\w\[. /-])(?! @)"
)
COMMIT = "0123456789abcdef0123456789abcdef01234567"
HTTPS = "https://git.example.org/team/rankeval"


def shipped() -> list[Path]:
    files = [path for name in FOLDERS for path in (ROOT / name).rglob("*") if path.is_file()]
    files += [ROOT / name for name in ("README.md", "CHANGELOG.md", "pyproject.toml")]
    return [path for path in files if path.suffix in KINDS and "__pycache__" not in path.parts]


def test_no_file_names_an_address_or_installs_a_name():
    found = []
    for path in shipped():
        text = path.read_text(encoding="utf-8")
        found += [(str(path.relative_to(ROOT)), one[0]) for one in (*ADDRESS.finditer(text), *BY_NAME.finditer(text))]
    assert found == []


def test_the_law_sees_what_it_forbids():
    for text in ('pip install "rankeval-mlflow[online]"', "pip install -U rankeval-mlflow", "uv add rankeval"):
        assert BY_NAME.search(text), text
    for text in ('pip install "rankeval-mlflow[online] @ <x>"', 'pip install ".[online]"', "pip uninstall rankeval"):
        assert not BY_NAME.search(text), text
    assert ADDRESS.search("git+https://github.com/rankeval/rankeval")


class Installed:
    """An installation of this package with a record of pip, or without."""

    def __init__(self, record: Any, place: Path = Path(rankeval.__file__).parent) -> None:
        self.record, self.place = record, place

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return self.record if self.record is None or isinstance(self.record, str) else json.dumps(self.record)

    def locate_file(self, name: str) -> Path:
        return self.place


def of_git(url: str, **more: Any) -> dict[str, Any]:
    return {"url": url, "vcs_info": {"vcs": "git", "requested_revision": "main", "commit_id": COMMIT}, **more}


def of_archive(url: str) -> dict[str, Any]:
    return {"url": url, "archive_info": {"hashes": {}}}


@each_row(
    ("record", "expected"),
    [
        (of_git(HTTPS), f"git+{HTTPS}@{COMMIT}"),
        (of_git("ssh://git.example.org/team/rankeval"), f"git+ssh://git.example.org/team/rankeval@{COMMIT}"),
        (of_git(HTTPS, subdirectory="python"), f"git+{HTTPS}@{COMMIT}#subdirectory=python"),
        (of_archive("https://files.example.org/rankeval_mlflow-0.1.0-py3-none-any.whl"), True),
        (of_archive("https://files.example.org:8443/a/rankeval_mlflow-0.1.0.tar.gz"), True),
        # Not for others, or with a login, a query, or what a shell or a workflow would take for its own.
        (None, None),
        ({"url": "file:///home/ann/rankeval", "dir_info": {"editable": True}}, None),
        ({"url": "file:///home/ann/rankeval", "dir_info": {}}, None),
        ({"url": "https://example.org/odd", "dir_info": {}}, None),
        (of_archive("file:///tmp/rankeval_mlflow-0.1.0-py3-none-any.whl"), None),
        (of_archive("http://files.example.org/rankeval.whl"), None),
        (of_archive("https://files.example.org/rankeval.whl?token=secret"), None),
        (of_archive("https://user:password@files.example.org/rankeval.whl"), None),
        (of_archive("https://files.example.org/rankeval.whl#sha256=0"), None),
        (of_archive("https://files.example.org/$(id).whl"), None),
        (of_archive("https://files.example.org/${{secrets.X}}.whl"), None),
        (of_archive('https://files.example.org/"; id; ".whl'), None),
        (of_archive("https://files.example.org/a b.whl"), None),
        (of_archive("https:///rankeval.whl"), None),
        (of_archive("https://[::1"), None),
        (of_git("https://token@github.com/team/rankeval"), None),
        (of_git("https://oauth2:token@gitlab.com/team/rankeval"), None),
        (of_git("ssh://git@host/team/rankeval"), None),
        (of_git("git@host:team/rankeval"), None),
        (of_git("git://host/team/rankeval"), None),
        (of_git("http://host/team/rankeval"), None),
        (of_git("file:///home/ann/rankeval"), None),
        (of_git(HTTPS + "?private_token=secret"), None),
        (of_git(HTTPS, subdirectory="../$(id)"), None),
        ({**of_git(HTTPS), "vcs_info": {"vcs": "git", "commit_id": "main; id"}}, None),
        ({**of_git(HTTPS), "vcs_info": {"vcs": "sh -c", "commit_id": COMMIT}}, None),
        ({**of_git(HTTPS), "vcs_info": {}}, None),
        ({"archive_info": {}}, None),
        ("{", None),
        ("[]", None),
        ("null", None),
    ],
)
def test_the_record_of_pip_is_named_if_others_can_install_from_it(record, expected, monkeypatch):
    expected = record["url"] if expected is True else expected
    monkeypatch.delenv(_source.SETTING, raising=False)
    monkeypatch.setattr(metadata, "distribution", lambda _: Installed(record))
    assert _source.address() == expected
    command = _source.install("online")
    assert command.startswith(f'pip install "rankeval-mlflow[online] @ {expected or _source.PLACEHOLDER}"')
    assert ("fill in" in command) == (expected is None)
    assert not any(secret in command for secret in ("secret", "password", "token"))
    if expected:
        assert Requirement(_source.requirement("online")).url == expected


def test_the_record_of_another_installation_is_not_ours(monkeypatch, tmp_path):
    monkeypatch.setattr(metadata, "distribution", lambda _: Installed(of_git(HTTPS), tmp_path))
    assert _source.address() is None

    def lacking(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", lacking)
    assert _source.address() is None


@each_row(
    ("setting", "expected"),
    [
        (f" git+{HTTPS}@v1 ", f"git+{HTTPS}@v1"),
        ("https://files.example.org/rankeval.whl", "https://files.example.org/rankeval.whl"),
        ("rankeval-mlflow", None),
        ("git+https://token@host/rankeval", None),
        ("https://host/rankeval.whl?token=x", None),
        ("../rankeval", None),
        ("x\nrun: id", None),
        ("", None),
    ],
)
def test_a_setting_names_the_source(setting, expected, monkeypatch):
    monkeypatch.setenv(_source.SETTING, setting)
    monkeypatch.setattr(metadata, "distribution", lambda _: Installed(None))
    assert _source.address() == expected


def test_pip_refuses_what_is_to_be_filled_in():
    """It asks no index: the placeholder is no address, and not the name of a package."""
    assert _source.PLACEHOLDER in _source.install("text")
    for text in (_source.PLACEHOLDER, f"{_source.PLACEHOLDER}[online]"):
        with pytest.raises(InvalidRequirement):
            Requirement(text)


@each_row("source", [None, f"git+{HTTPS}@v1"])
def test_the_workflow_that_is_written_installs_from_a_known_source(source, rankeval, monkeypatch):
    monkeypatch.setenv(_source.SETTING, source or "")
    Path("q").write_text("1 0 a 1\n1 0 b 0\n")
    Path("r").write_text("1 Q0 a 1 2 x\n")
    code, out, _ = rankeval("init", "q", "r")
    assert code == 0
    text = Path(".github/workflows/relevance.yml").read_text()
    steps = {step.get("name"): step for step in yaml.safe_load(text)["jobs"]["relevance"]["steps"]}
    wanted = source or _source.PLACEHOLDER
    assert steps["Install"]["run"] == f'python -m pip install "rankeval-mlflow @ {wanted}" pytest'
    assert ("# fill in" in text) == ("fill in" in out) == (source is None)
    assert not ADDRESS.search(text.replace(source, "") if source else text)
    assert not BY_NAME.search(text)


def test_hints_and_the_doctor_name_no_package_of_an_index(rankeval, monkeypatch):
    for name in BOOSTERS:
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(ConfigError) as error:
            imported(f"{name}.Ranker", key="rankers.a.estimator")
        assert _source.requirement(name) in str(error.value)
    monkeypatch.setitem(sys.modules, "Stemmer", None)
    _term_of.cache_clear()  # a test before this one may have made the stemmer
    with pytest.raises(InvalidInput) as refused:
        BM25(stem="english").fit({"d": "a b"})
    assert refused.value.remedy == _source.install("text")
    code, out, _ = rankeval("doctor")
    assert code == 0
    assert "installed from" in out
    assert not ADDRESS.search(out)
    assert not BY_NAME.search(out)


def test_the_metadata_has_no_address():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert "[project.urls]" not in project
    citation = yaml.safe_load((ROOT / ".github" / "CITATION.cff").read_text(encoding="utf-8"))
    assert not {"url", "repository-code", "repository", "repository-artifact"} & citation.keys()
