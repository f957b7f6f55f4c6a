"""Write the first files for a table of the user's own, or for judgments and a run: ``rankeval init``.

::

    experiment.yaml                             for `rankeval run`, of a table with features
    tests/test_relevance.py                     for pytest, and the baseline that it compares with
    tests/rankeval_baselines/ranker.parquet
    .github/workflows/relevance.yml             runs the test for each pull request

The baseline is what the function ``rank`` of the written test returns, so the test passes as it stands. All files are
written or none: what is there already is refused first, and if the test cannot rank, its files are taken back.
"""

from __future__ import annotations

import os
import re
import runpy
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankeval._checks import count
from rankeval.errors import InvalidInput
from rankeval.io.opening import as_path, reading

if TYPE_CHECKING:
    from rankeval.experiment.guessing import Ask, Guess

CONFIG, TEST, WORKFLOW = (
    Path("experiment.yaml"),
    Path("tests/test_relevance.py"),
    Path(".github/workflows/relevance.yml"),
)
BASELINE = Path("tests/rankeval_baselines/ranker.parquet")

_LETOR = re.compile(rb"\s*(#[^\n]*\n\s*)*-?[0-9.]+[ \t]+(qid:\S+[ \t]+)?[0-9]+:[-0-9.]")
_READERS = {"parquet": "read_parquet", "csv": "read_csv", "tsv": "read_csv"}


@dataclass(frozen=True)
class Started:
    """What was found in the user's files, and the files that were written.

    Attributes
    ----------
    found : dict of str to str
        Topic -> words.
    files : list of Path
        The new files.
    """

    found: dict[str, str]
    files: list[Path]


def start(
    given: Sequence[str | os.PathLike[str]],
    into: str | os.PathLike[str] = ".",
    *,
    features: Sequence[str] | None = None,
    ask: Ask | None = None,
    **named: str | None,
) -> Started:
    """Write an experiment, a relevance test with its baseline, and a workflow.

    Parameters
    ----------
    given : sequence of path
        A table (Parquet, CSV, TSV, LETOR or a folder of LETOR), or judgments and a run.
    into : path
        The root of the repository.
    features : sequence of str, optional
        The columns of the features; by default, all numbers that a ranker may know.
    ask : callable, optional
        Asks the user for a column that the table leaves open.
    **named : str, optional
        The columns of ``qid``, ``relevance`` and ``score``.

    Raises
    ------
    InvalidInput
        If a file is there already, a column is open, or the test cannot rank.
    GuardRefusal
        If the data are registered test content.
    """
    root, paths = as_path(into), [as_path(one) for one in given]
    there = [str(root / one) for one in (CONFIG, TEST, BASELINE, WORKFLOW) if os.path.lexists(root / one)]
    if there:
        raise InvalidInput(f"there already: {', '.join(there)}", argument="into", remedy="nothing was written")
    facts, found = _facts(paths, root, {role: name for role, name in named.items() if name}, features, ask)
    templates = {TEST: "test_relevance.py.jinja", WORKFLOW: "relevance.yml.jinja"}
    if facts["config"]:
        templates = {CONFIG: "experiment.yaml.jinja", **templates}
    with ExitStack() as undo:
        for path, template in templates.items():
            _write(root / path, _rendered(template, facts), undo)
        ranked = runpy.run_path(str(root / TEST))["rank"]()
        _folders(root / BASELINE, undo)
        ranked.save(root / BASELINE)
        undo.pop_all()
    mean = ", ".join(f"{measure} {value:.4f}" for measure, value in ranked.aggregate().items())
    found["baseline"] = f"{mean} on {count(ranked.n_queries, 'query')}"
    return Started(found, [root / path for path in (*templates, BASELINE)])


def _facts(
    paths: list[Path], root: Path, named: dict[str, str], features: Sequence[str] | None, ask: Ask | None
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what the templates fill in, and what to tell the user."""
    for path in paths:
        if not path.exists():
            raise InvalidInput(f"there is no file {str(path)!r}")
    table, *runs = paths
    facts: dict[str, Any] = {"path": _from(root, table), "is_folder": table.is_dir(), "loader": "letor", "config": True}
    facts["name"] = re.sub(r"[^A-Za-z0-9]+", "-", table.name.partition(".")[0]).strip("-") or "experiment"
    of_table = [*named, *(["features"] if features else [])]
    if runs or table.is_dir() or _is_letor(table):
        if len(runs) > 1 or of_table:
            problem = "a column is named, and the files have none" if of_table else f"found {len(runs)} runs"
            raise InvalidInput(problem, argument=next(iter(of_table), None), remedy="give a table, or QRELS RUN")
        kind = "judgments and a run: no experiment file, because rankers are trained on features" if runs else "LETOR"
        return facts | {"run": _from(root, runs[0]) if runs else "", "config": not runs}, {"files": kind}
    from rankeval.experiment.guessing import guess

    guessed = guess(table, named, features, ask=ask)
    is_scored = "score" in guessed.roles and ("score" in named or not guessed.features) and not features
    facts |= {"guess": guessed, "loader": guessed.format, "reader": _READERS[guessed.format], "config": not is_scored}
    return facts | {"part": guessed.roles.get("part")}, _told(guessed, is_scored=is_scored)


def _is_letor(path: Path) -> bool:
    with reading(path) as file:
        return _LETOR.match(file.read(1 << 12)) is not None


def _told(guessed: Guess, *, is_scored: bool) -> dict[str, str]:
    told = {"rows": f"{guessed.n_rows:,}", **guessed.roles}
    if is_scored:
        return told | {"files": "scores: no experiment file, because rankers are trained on features"}
    reasons = [f"{name!r} ({reason})" for name, reason in guessed.left_out.items()]
    told |= {"features": f"{len(guessed.features)}: {', '.join(guessed.features)}"}
    return told | ({"left out": ", ".join(reasons)} if reasons else {})


def _from(root: Path, path: Path) -> str:
    try:
        return Path(os.path.relpath(path, root)).as_posix()
    except ValueError:  # another drive
        return path.resolve().as_posix()


def _rendered(template: str, facts: Mapping[str, Any]) -> str:
    from jinja2 import Environment, PackageLoader

    from rankeval.experiment.config import in_yaml

    # No HTML: each value passes one of the two filters, which quote it as YAML or as Python.
    environment = Environment(loader=PackageLoader("rankeval.experiment"), trim_blocks=True)  # noqa: S701
    environment.filters |= {"yaml": in_yaml, "py": _in_python}
    return environment.get_template(template).render(facts)


def _in_python(text: str) -> str:
    return f'"{text}"' if re.fullmatch(r"[\w ./-]+", text, re.ASCII) else repr(text)


def _write(path: Path, text: str, undo: ExitStack) -> None:
    _folders(path, undo)
    with path.open("x", encoding="utf-8", newline="\n") as file:  # nothing is overwritten, also if it came just now
        undo.callback(path.unlink)
        file.write(f"{text.rstrip()}\n")


def _folders(path: Path, undo: ExitStack) -> None:
    for folder in reversed([folder for folder in path.parents if not folder.exists()]):
        folder.mkdir()
        undo.callback(folder.rmdir)
