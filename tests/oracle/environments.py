"""An environment of its own for each commit: its files, an interpreter, and the packages.

::

    source: a revision of git, a folder, or "." -> files -> venv -> pip install -> python -m
    oracle.worker

The recipes are those of this checkout, copied once into a folder that both environments import:
both commits make the same calls, also if somebody edits the recipes meanwhile.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
PARTS = ("pyproject.toml", "README.md", "LICENSE", "rankeval", "integrations", "configs")
"""What is installed of a commit."""
PROGRAM = ("oracle", "fuzz", "golden")
"""Folders of the tests that a worker imports."""


class NoSourceError(ValueError):
    """A commit cannot be had: names what git or pip said."""


@dataclass(frozen=True)
class Environment:
    """The environment of a commit.

    Parameters
    ----------
    label : str
        What the caller named.
    folder : Path
        The folder of the interpreter.
    program : Path
        The folder of the oracle's copy.
    """

    label: str
    folder: Path
    program: Path

    @property
    def python(self) -> Path:
        """The interpreter."""
        return self.folder / "bin" / "python"

    @property
    def variables(self) -> dict[str, str]:
        """The variables of a process in this environment."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "VIRTUAL_ENV"))
        }
        path = os.pathsep.join((str(self.folder / "bin"), kept.get("PATH", "")))
        return {**kept, "PATH": path, "PYTHONPATH": str(self.program), "PYTHONHASHSEED": "0"}


def copy_program(folder: Path) -> Path:
    """Copy the oracle and what it imports of the tests; return the folder to import from.

    Parameters
    ----------
    folder : Path
        A new folder.
    """
    for part in PROGRAM:
        source = Path(__file__).resolve().parents[1] / part
        shutil.copytree(
            source, folder / part, ignore=shutil.ignore_patterns("__pycache__", "*.xz", "test_*")
        )
    return folder


def export(source: str, folder: Path, checkout: Path = CHECKOUT) -> None:
    """Put the files of a commit into a folder.

    Parameters
    ----------
    source : str
        A revision of git, a folder with a ``pyproject.toml``, or ``.`` for the working tree.
    folder : Path
        A new folder.
    checkout : Path, optional
        The repository.

    Raises
    ------
    NoSourceError
        If there is no such revision.
    """
    folder.mkdir(parents=True)
    tree = checkout if source in (".", "WORKTREE") else Path(source)
    if (tree / "pyproject.toml").is_file():
        for part in PARTS:
            copy = shutil.copytree if (tree / part).is_dir() else shutil.copy
            options = (
                {"ignore": shutil.ignore_patterns("__pycache__")} if (tree / part).is_dir() else {}
            )
            copy(tree / part, folder / part, **options)
        return
    command = ["git", "-C", str(checkout), "archive", "--format=tar", source, *PARTS]
    found = subprocess.run(command, capture_output=True, check=False)
    if found.returncode:
        raise NoSourceError(f"{source}: {found.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(found.stdout)) as archive:
        archive.extractall(folder, filter="data")


def build(label: str, folder: Path, program: Path, *, borrow: bool) -> Environment:
    """Make the environment of a commit.

    Parameters
    ----------
    label : str
        A revision, a folder, or ``.``.
    folder : Path
        A new folder for files and interpreter.
    program : Path
        The folder of `copy_program`.
    borrow : bool
        Import the dependencies from this interpreter, and install the commit alone.

    Raises
    ------
    NoSourceError
        If there is no such revision, or it cannot be installed.
    """
    export(label, folder / "source")
    environment = Environment(label, folder / "venv", program)
    _checked(
        [
            sys.executable,
            "-m",
            "venv",
            *(["--without-pip"] if borrow else []),
            str(environment.folder),
        ],
        label,
    )
    wanted = str(folder / "source")
    if borrow:
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        site = environment.folder / "lib" / version / "site-packages"
        # A line of a .pth file adds the folder alone: the .pth files in it, such as that of an
        # editable install, are not read.
        (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    else:
        wanted += "[lightgbm,xgboost,catboost,optuna,polars,text,online]"
    quiet = ["--quiet", "--disable-pip-version-check", "--no-warn-script-location"]
    dependencies = ["--no-deps"] if borrow else []
    command = [str(environment.python), "-m", "pip", "install", *quiet, *dependencies, wanted]
    _checked(command, label, environment.variables)
    if not borrow:  # for the recipes of pytest's plugin
        _checked([*command[:-1], "pytest>=8.2"], label, environment.variables)
    return environment


def _checked(command: list[str], label: str, variables: dict[str, str] | None = None) -> None:
    found = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    if found.returncode:
        raise NoSourceError(
            f"{label}: {' '.join(command[:5])} failed: {found.stderr.strip()[-2000:]}"
        )


def packages(environment: Environment) -> dict[str, str]:
    """Return the versions of the packages that an environment imports, without the commit's own.

    Parameters
    ----------
    environment : Environment
        The environment.
    """
    program = (
        "import json; from importlib.metadata import distributions as all_of\n"
        "print(json.dumps({d.name.lower(): d.version for d in list(all_of())[::-1] if d.name}))"
    )
    command = [str(environment.python), "-c", program]
    found = subprocess.run(
        command, env=environment.variables, capture_output=True, text=True, check=True
    )
    return {
        name: version
        for name, version in json.loads(found.stdout).items()
        if not name.startswith("rankeval")
    }
