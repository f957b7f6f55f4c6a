"""Learning-to-rank files and folders as `RankingData`."""

from __future__ import annotations

import os

from rankeval.collection.data import RankingData
from rankeval.io.letor import read_letor, read_letor_parts
from rankeval.io.limits import DEFAULT, Limits


def load_letor(
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    sparse: bool | None = None,
    limits: Limits = DEFAULT,
) -> RankingData:
    r"""Read one learning-to-rank file.

    Rows are ``label qid:id index:value ... #docid = D`` as in LETOR, MSLR-WEB and MQ2008, or have no ``qid`` and a file
    of query sizes beside them (``rank.train.query`` beside ``rank.train.gz``), as for LightGBM and XGBoost. Features
    that a row leaves out are 0.

    Parameters
    ----------
    path : path
        The file, also as ``.gz`` or ``.zst``.
    name : str, optional
        The data's name, by default the file's.
    sparse : bool, optional
        Whether X is a SciPy CSR matrix. By default it is a dense array if at least 30 % of the cells are given, or if
        all fit into 64 MB.
    limits : Limits
        The largest feature index, how far a compressed file may expand, and how long a line may be.

    Returns
    -------
    RankingData
        ``qid`` is int64 if all ids are integers, else str; queries of a sizes file are numbered 1, 2, ... ``docid`` is
        str. Feature 1 is column 0 (feature 0 is, in files that have one). ``feature_names`` are ``f1``, ``f2``, ... or
        those of a ``features.json`` beside the file or in the folder above: ``{"features": {"1": name, ...}}``.

    Raises
    ------
    InvalidInput
        If there is no such file.
    FileFormatError
        If a line does not follow the format, or the sizes do not add up to the rows.
    LimitExceeded
        If the file or a feature exceeds a limit; the message names it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "train.txt"
    >>> size = path.write_text("2 qid:1 1:0.5 2:3\n0 qid:1 1:0.2\n")
    >>> load_letor(path)
    RankingData('train.txt', 2 rows, 1 query, 2 features)
    """
    return RankingData(**read_letor(path, name, sparse=sparse, limits=limits))


def load_letor_parts(
    path: str | os.PathLike[str], *, sparse: bool | None = None, limits: Limits = DEFAULT
) -> dict[str, RankingData]:
    """Read a folder of learning-to-rank files, such as ``Fold1``.

    Parameters
    ----------
    path : path
        A folder with one file for each part, recognised by its name: ``train``, ``vali`` (``valid``, ``dev``) and
        ``test``, as in ``train.txt``, ``rank.test.gz`` or ``set1.train.txt.zst``.
    sparse : bool, optional
        As in `load_letor`, for all parts alike.
    limits : Limits
        As in `load_letor`.

    Returns
    -------
    dict of str to RankingData
        The parts ``train``, ``vali`` and ``test`` that are there, with the same columns. Queries of sizes files are
        called ``train-1``, ``train-2``, ..., ``test-1``, ..., so that they differ between parts.

    Raises
    ------
    InvalidInput
        If there is no such folder, no part in it, two files for one part, or the same query id in two parts.
    FileFormatError, LimitExceeded
        As `load_letor`.
    """
    parts = read_letor_parts(path, sparse=sparse, limits=limits)
    return {part: RankingData(**rows) for part, rows in parts.items()}
