"""Scores in standard deviations from the mean of a reference set of runs, topic by topic (trec_eval ``-Z``)."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from rankeval.errors import FileFormatError
from rankeval.evaluation import Evaluation
from rankeval.io.opening import DEFAULT, Limits, number_of, read_text

MISSING = -1e6
"""The value without a mean or a deviation in the reference, as in trec_eval."""

ZScores = Mapping[tuple[str, str], tuple[float, float]]


def read_zscores(
    path: str | os.PathLike[str], *, limits: Limits = DEFAULT
) -> dict[tuple[str, str], tuple[float, float]]:
    """Read a file of reference scores: lines of topic, measure, mean and standard deviation.

    Parameters
    ----------
    path : path
        The file.
    limits : Limits
        How large it may be.

    Returns
    -------
    dict
        (topic, measure as trec_eval prints it) -> (mean, standard deviation).

    Raises
    ------
    InvalidInput
        If there is no such file.
    FileFormatError
        If a line has other columns or no numbers, or repeats the topic and measure of another.
    """
    scores = {}
    for number, line in enumerate(io.BytesIO(read_text(path, limits)), start=1):
        at = f"{path}, line {number}"
        try:
            topic, name, mean, deviation = (cell.decode() for cell in line.split())
        except ValueError as error:  # of the columns or of the encoding
            raise FileFormatError(
                f"expected topic, measure, mean and standard deviation, found {line[:80]!r}", where=f"{at}"
            ) from error
        if (topic, name) in scores:
            raise FileFormatError(f"{name} of topic {topic!r} stands there twice", where=f"{at}")
        scores[topic, name] = number_of(mean, f"{at}, mean"), number_of(deviation, f"{at}, standard deviation")
    return scores


def standardized(evaluation: Evaluation, names: Sequence[str], zscores: ZScores) -> Evaluation:
    """Return an evaluation with every value in standard deviations from the reference's mean.

    Parameters
    ----------
    evaluation : Evaluation
        The scores.
    names : sequence of str
        The reference's name for each measure. Measures that count queries are not changed.
    zscores : mapping
        The reference, from `read_zscores`.

    Returns
    -------
    Evaluation
        If the deviation is 0, a value equal to the mean is 0. Without a reference the value is -1,000,000, as in
        trec_eval.
    """
    topics = [str(query) for query in evaluation.queries.tolist()]
    values = evaluation.scores.copy()
    errors = None if evaluation.errors is None else evaluation.errors.copy()
    for column, name in enumerate(names):
        if name == "num_q":
            continue
        known = [zscores.get((topic, name), (np.nan, 0.0)) for topic in topics]
        mean, deviation = np.array(known, dtype=np.float64).reshape(-1, 2).T
        from_mean = values[:, column] - mean
        level = np.where(from_mean == 0, 0.0, MISSING)
        values[:, column] = np.divide(from_mean, deviation, out=level, where=deviation != 0)
        if errors is not None:
            errors[:, column] = np.divide(errors[:, column], deviation, out=np.zeros(len(mean)), where=deviation != 0)
    return replace(evaluation, scores=values, errors=errors)
