"""Read the files that several commands take: rankings by the names of their files, and texts by id."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rankeval import errors
from rankeval._checks import unique_keys

if TYPE_CHECKING:
    from rankeval.collection.convention import Convention
    from rankeval.evaluation import Evaluation
    from rankeval.io.opening import Limits


def by_file_name(paths: Sequence[Path]) -> dict[str, Path]:
    """Return paths by the names of their files, since several files may share a tag; by paths if names are equal."""
    names = [path.name.removesuffix(".gz").removesuffix(".zst") for path in paths]
    return dict(zip(map(str, paths) if len(set(names)) < len(names) else names, paths, strict=True))


def evaluations(
    qrels: Path,
    runs: Sequence[Path],
    measures: list[str],
    convention: str | Convention,
    limits: Limits,
    qrels_format: str | None = None,
) -> dict[str, Evaluation]:
    """Score the rankings of some files, each by the name of its file.

    Parameters
    ----------
    qrels : Path
        The judgments.
    runs : sequence of Path
        The rankings.
    measures : list of str
        The measures.
    convention : str or Convention
        The rules.
    limits : Limits
        The limits on files.
    qrels_format : str, optional
        Format of the judgments.
    """
    from rankeval.collection.qrels import Qrels
    from rankeval.collection.run import Run
    from rankeval.evaluation import evaluate
    from rankeval.measures import measures as find_measures

    find_measures(measures, convention)  # answer a misspelt measure before reading a large file
    judgments = Qrels.read(qrels, qrels_format, limits=limits)
    return {
        name: evaluate(judgments, Run.read(path, limits=limits), measures=measures, convention=convention, name=name)
        for name, path in by_file_name(runs).items()
    }


def texts_of(path: Path, limits: Limits) -> dict[str, str]:
    """Return texts by id, of lines ``ID<tab>TEXT`` or of BEIR's objects of JSON.

    Parameters
    ----------
    path : Path
        The file.
    limits : Limits
        The limits on files.

    Raises
    ------
    FileFormatError
        If a line is neither.
    """
    from rankeval.io.opening import read_text

    found = {}
    for number, line in enumerate(read_text(path, limits).decode().splitlines(), start=1):
        try:
            if line.startswith("{"):
                row = json.loads(line, object_pairs_hook=unique_keys)
                name, text = str(row["_id"]), str(row["text"])
            else:
                name, text = line.split("\t", 1)
        except (ValueError, KeyError, TypeError, RecursionError) as error:  # no tab; no JSON, or none of BEIR's
            problem = f"expected an id, a tab and its text, found {line[:80]!r}"
            raise errors.FileFormatError(problem, where=f"{path}, line {number}") from error
        found[name] = text
    return found
