"""Write the first files for a table of the user's own, or for judgments and a run: ``rankeval init``.

::

    experiment.yaml                             for `rankeval run`, of a table with features
    tests/test_relevance.py                     for pytest, and the baseline that it compares with
    tests/rankeval_baselines/ranker.parquet
    .github/workflows/relevance.yml             runs the test for each pull request
    .gitignore                                  names what runs leave behind, unless there is such a file

The baseline is what the function ``rank`` of the written test returns, so the test passes as it
stands. All files are written or none: what is there already is refused first, and if the test
cannot rank, its files are taken back.

What the workflow's runner lacks is a line to fill in, which fails until somebody does: the address
of rankeval if none is known, and data that git would not take along (outside of the repository,
ignored, too large for GitHub).
"""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import textwrap
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader

from rankeval._checks import count
from rankeval._source import FILL_IN, address, requirement
from rankeval.datasets.files import is_letor
from rankeval.errors import InvalidInput
from rankeval.evaluation import to_bytes
from rankeval.experiment.checks import remove_empty
from rankeval.experiment.loading import Ask, guess
from rankeval.experiment.proposing import Proposals, propose
from rankeval.io.opening import writing

_MOST_BYTES = 100 * 2**20
_LONGEST = 100  # characters of the names of features in a message
_CONFIG, _TEST, _WORKFLOW = (
    "experiment.yaml",
    "tests/test_relevance.py",
    ".github/workflows/relevance.yml",
)
_BASELINE = "tests/rankeval_baselines/ranker.parquet"
_PRODUCTION = "now"  # the name of the ranking of today among the rankers
_MOST_TESTED = 3  # attributes of queries in the test: each has a false alarm of its own
_IGNORED = "rankeval-out/", "mlflow.db", "mlruns/", "__pycache__/"


def start(
    files: Sequence[Path],
    into: Path = Path(),
    *,
    features: Sequence[str] | None = None,
    ask: Ask | None = None,
    **named: str | None,
) -> dict[str, str]:
    """Write an experiment, a relevance test with its baseline, and a workflow."""
    if there := [
        name for name in (_CONFIG, _TEST, _BASELINE, _WORKFLOW) if os.path.lexists(into / name)
    ]:
        remedy = "nothing was written: move them away, or start in another folder (--into)"
        raise InvalidInput(
            f"there already: {', '.join(there)}", where=str(into.absolute()), remedy=remedy
        )
    facts, notes = _facts(
        files, {role: name for role, name in named.items() if name}, features, ask
    )
    places = [Path(os.path.relpath(path, into)).as_posix() for path in files]
    names = [_CONFIG, _TEST, _WORKFLOW] if facts["config"] else [_TEST, _WORKFLOW]
    kept_out = {
        place: why
        for place, path in zip(places, files, strict=True)
        if (why := _kept_out(path, into))
    }
    source = {
        "requirement": requirement(),
        "fill_in": None if address() else FILL_IN,
        "kept_out": kept_out,
    }
    with ExitStack() as undo:
        for name in names:
            text = _rendered(
                f"{Path(name).name}.jinja", facts | source | {"path": places[0], "run": places[-1]}
            )
            _write(into / name, text.encode(), undo)
        ranked = runpy.run_path(str(into / _TEST))["rank"]()
        _write(into / _BASELINE, to_bytes(ranked), undo)
        if is_first := not os.path.lexists(into / ".gitignore"):
            _write(into / ".gitignore", "\n".join((*_IGNORED, "")).encode(), undo)
        undo.pop_all()
    mean = ", ".join(f"{measure} {value:.4f}" for measure, value in ranked.aggregate().items())
    notes["baseline"] = f"{mean} on {count(ranked.n_queries, 'query')}"
    notes["written"] = ", ".join([*names, _BASELINE, *[".gitignore"] * is_first])
    if not is_first:
        notes["ignored"] = f"to be named in .gitignore: {', '.join(_IGNORED)}"
    if source["fill_in"]:
        notes["fill in"] = f"{_WORKFLOW}: the address that its runner installs rankeval from"
    if kept_out:
        reasons = "; ".join(f"{place} {why}" for place, why in kept_out.items())
        remedy = f"fill in the step Data of {_WORKFLOW}, or start again with data in the repository"
        notes["no commit"] = (
            f"the data cannot be committed: {reasons}. Until then the workflow fails: {remedy}"
        )
    both = "these files" if kept_out else "these files and the data, which the workflow needs"
    notes["next"] = f"python -m pytest (pip install pytest); commit {both}"
    if facts["config"]:
        notes["then"] = (
            f"rankeval run --check {_CONFIG}; rankeval run {_CONFIG}; commit the folder rankeval-ledger too"
        )
    return notes


def _kept_out(path: Path, into: Path) -> str:
    """Return why a commit of the repository would not hold the data at a path; an empty text if it would."""
    base = into.resolve()
    root = next((folder for folder in (base, *base.parents) if (folder / ".git").exists()), base)
    found = (
        [path, *(file for file in path.rglob("*") if file.is_file())] if path.is_dir() else [path]
    )
    if any(not file.resolve().is_relative_to(root) for file in found):
        is_link = Path(os.path.abspath(path)).is_relative_to(root)  # noqa: PTH100 - links are not followed
        return f"{'leads' if is_link else 'lies'} outside of the repository {root}"
    if any(file.stat().st_size > _MOST_BYTES for file in found):
        return "has more than 100 MB, which GitHub refuses"
    command = ["git", "-c", "core.fsmonitor=false", "check-ignore", "--quiet", "--stdin", "-z"]
    names = "\0".join(str(file.resolve()) for file in found).encode("utf-8", "surrogateescape")
    with suppress(OSError):  # there is no git
        answer = subprocess.run(  # noqa: S603 - our own words
            command, cwd=root, input=names, capture_output=True, check=False
        )
        if answer.returncode == 0:
            return "is ignored by git"
    return ""


def _facts(
    files: Sequence[Path], named: dict[str, str], features: Sequence[str] | None, ask: Ask | None
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what the templates fill in, and what to tell the user."""
    table, *runs = files
    name = re.sub(r"[^A-Za-z0-9]+", "-", table.name.partition(".")[0]).strip("-") or "experiment"
    facts: dict[str, Any] = {
        "name": name,
        "config": not runs,
        "loader": "letor",
        "is_folder": table.is_dir(),
    }
    no_config = "no experiment file, because rankers are trained on features"
    if runs or table.is_dir() or is_letor(table):
        if len(runs) > 1 or named or features:
            raise InvalidInput(
                "expected a table, or judgments and a run; only tables have columns to name"
            )
        return facts, {"files": f"judgments and a run: {no_config}" if runs else "LETOR"}
    guessed = guess(table, named, features, ask)
    label = guessed.roles["relevance"]
    if guessed.cells[label].dtype.kind not in "biuf":
        problem = f"{label!r} is not a column of numbers"
        remedy = f"add one, as in frame['grade'] = frame[{label!r}].map({{...}})"
        raise InvalidInput(problem, argument="relevance", where=str(table), remedy=remedy)
    is_scored = "score" in guessed.roles and not features
    facts |= {"guess": guessed, "loader": guessed.format, "config": not is_scored}
    offers = propose(guessed)
    facts["slices"] = offers.slices[:_MOST_TESTED]
    if is_scored:
        return facts, guessed.roles | {"files": f"scores: {no_config}"}
    left_out = ", ".join(f"{name!r} ({reason})" for name, reason in offers.left_out.items())
    if not guessed.features:
        raise InvalidInput(
            f"no column is left: {left_out}",
            argument="features",
            where=str(table),
            remedy="name some",
        )
    shown = f"{len(guessed.features)}: {textwrap.shorten(', '.join(guessed.features), _LONGEST, placeholder=' ...')}"
    facts |= {"offers": offers, "production": _PRODUCTION}
    told = guessed.roles | {"features": shown} | _told(offers)
    return facts, told | {"left out": left_out or ("all others" if features else "nothing")}


def _told(offers: Proposals) -> dict[str, str]:
    told = {name: ", ".join(getattr(offers, name)) for name in ("past", "categories", "slices")}
    if offers.past:
        told["past"] += ": features; take care that they end before the ranking"
    if offers.newest:
        told["test part"] = f"{offers.newest.column}, the newest {offers.newest.words}"
    if offers.production:
        told[_PRODUCTION] = f"the ranking by {offers.production}, a baseline"
    return {topic: text for topic, text in told.items() if text}


def _rendered(template: str, facts: Mapping[str, Any]) -> str:
    # No HTML: each value is quoted as YAML and Python read it.
    loader = PackageLoader("rankeval.experiment")
    kept = Environment(loader=loader, trim_blocks=True, keep_trailing_newline=True)  # noqa: S701
    kept.filters["quoted"] = _quoted
    return kept.get_template(template).render(facts, quoted=_quoted)


def _quoted(text: str) -> str:
    # JSON leaves line breaks of Unicode as they are, which YAML would fold.
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in quoted
    )


def _write(path: Path, content: bytes, undo: ExitStack) -> None:
    undo.callback(remove_empty, [folder for folder in path.parents if not folder.exists()])
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:  # refuses a file that came just now
            undo.callback(path.unlink)
            file.write(content)
