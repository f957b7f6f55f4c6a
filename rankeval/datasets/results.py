"""Read the results that benchmarks leave in folders, to compare their systems."""

from __future__ import annotations

import json
import os
from collections import Counter
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd

from rankeval._arguments import explained
from rankeval._checks import refuse, require
from rankeval.errors import FileFormatError, InvalidInput
from rankeval.io.opening import as_path, read_bytes


@explained
def load_mteb_results(path: str | os.PathLike[str]) -> dict[str, pd.DataFrame]:
    """Read a results folder of mteb: the main score of each model on each task.

    ``rk.rank_intervals(result, lower_is_better={"main_score": False})`` says which order of the
    models is real. A model has one score a task, so the ranges allow for another draw of tasks of
    the same kind. They say nothing about other queries of these tasks: for that, evaluate the
    predictions that mteb saves with ``prediction_folder=``.

    Parameters
    ----------
    path : path
        The folder with ``model/revision/task.json`` at any depth, as mteb 1.11 and later write it,
        such as that of its cache.

    Returns
    -------
    dict of str to DataFrame of shape (n_tasks, 1)
        A model -> its column ``main_score`` with a row for each task. As in mteb, the score of a
        task is the mean over its splits and subsets. A model with several revisions is there once
        for each, as ``model/revision``.

    Raises
    ------
    InvalidInput
        If there are no results in the folder, or models were evaluated on different revisions of
        the data of a task.
    FileFormatError
        If a file is not as mteb writes it.

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> for model, scores in {"org__small": [0.4, 0.5], "org__large": [0.5, 0.7]}.items():
    ...     (folder / model / "main").mkdir(parents=True)
    ...     for task, score in zip(["ArguAna", "SciFact"], scores):
    ...         result = {"task_name": task, "dataset_revision": "1", "scores": {"test": [{"main_score": score}]}}
    ...         size = (folder / model / "main" / f"{task}.json").write_text(json.dumps(result))
    >>> load_mteb_results(folder)["org/large"]
             main_score
    ArguAna         0.5
    SciFact         0.7
    """
    scores: dict[tuple[str, str], dict[str, float]] = {}
    revisions: dict[str, Any] = {}
    folder = as_path(path)
    for file in sorted(folder.rglob("*.json")):
        result = _result_in(file)
        if result is None:
            continue
        task, revision, score = result
        if revisions.setdefault(task, revision) != revision:
            found = f"revisions {revisions[task]} and {revision}"
            problem = f"the models have scores on different data of {task}: {found}"
            raise InvalidInput(problem, remedy="evaluate them on the same revision")
        model, revision_of_model = file.resolve().parts[-3:-1]
        of_tasks = scores.setdefault((model.replace("__", "/"), revision_of_model), {})
        twice = f"{task} of {model}/{revision_of_model} is in two folders of {folder}"
        refuse((task in of_tasks, twice, "name one of them"), argument="path")
        of_tasks[task] = score
    require(scores, "path", str(folder), "a folder with results of mteb, model/revision/task.json")
    n_revisions = Counter(model for model, _ in scores)
    tables = {}
    for (model, revision_of_model), of_tasks in scores.items():
        name = model if n_revisions[model] == 1 else f"{model}/{revision_of_model}"
        tables[name] = pd.DataFrame({"main_score": of_tasks})
    return tables


def _result_in(file: Path) -> tuple[str, Any, float] | None:
    """Return task, revision of its data and score; None for files such as ``model_meta.json``."""
    try:
        result = json.loads(read_bytes(file))
        if "task_name" not in result and "mteb_dataset_name" not in result:
            return None
        parts = chain.from_iterable(result["scores"].values())
        score = fmean(part["main_score"] for part in parts)
        return result["task_name"], result.get("dataset_revision"), score
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        problem = f"not a result as mteb 1.11 and later write it: {type(error).__name__}"
        remedy = "mteb.TaskResult.from_disk(path).to_disk(path) writes an older one anew"
        raise FileFormatError(problem, where=str(file), remedy=remedy) from error
