"""Sheets: a file of documents for each judge to fill, and the labels that are read back.

::

    folder/sheets.json       the scale, and the pairs of query and document of each judge
           sheet_ann.csv     qid, query, docid, text, relevance (to fill), note
           sheet_bo.csv      a share of the pairs is on every sheet, so that agreement can be measured

A spreadsheet may reorder the rows of a sheet, change its separator, or turn an id into a number. So each row is looked
up among the pairs of ``sheets.json``: labels of an id that was changed are refused, and not lost.
"""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rankeval._checks import check_number, few, refuse, shown
from rankeval._registry import chosen
from rankeval.collection.qrels import Qrels
from rankeval.errors import FileFormatError, warn
from rankeval.io.columns import id_column, value_column
from rankeval.io.frames import frame_columns
from rankeval.io.opening import as_path, number_of, read_bytes, write_atomically
from rankeval.io.tables import json_lines, records
from rankeval.judging.pools import Pool
from rankeval.render.tables import guarded, unguarded

FILLED = ("qid", "docid", "relevance")
MANIFEST = "sheets.json"


def write_sheets(
    pool: Pool | pd.DataFrame,
    folder: str | os.PathLike[str],
    *,
    judges: Sequence[str],
    overlap: float = 0.1,
    texts: Mapping[Any, str] | None = None,
    queries: Mapping[Any, str] | None = None,
    scale: Sequence[float] = (0, 1),
    rng: Any = 0,
    format: str = "csv",  # noqa: A002
) -> pd.DataFrame:
    """Write a sheet of documents for each judge, to be filled in a spreadsheet or by a program.

    Every judge gets a share of all documents, the same number of each query as far as possible. The rest is divided
    evenly, and by whole queries as far as possible, so that one judge compares the documents of a query. A sheet has
    the queries in random order, and the documents of each query in random order: no judge sees the ranks.

    Parameters
    ----------
    pool : Pool or DataFrame
        The documents to judge. A frame needs columns qid and docid, as those of `Pool.order` or of disputed labels.
        Their ids are texts or whole numbers.
    folder : path
        The folder for the sheets; it is made. There must not be sheets in it.
    judges : sequence of str
        The names of the judges.
    overlap : float
        The share of the documents that every judge gets, from 0 to 1.
    texts, queries : mapping, optional
        The text of each document by docid, and of each query by qid.
    scale : sequence of number
        The labels that a judge may give: distinct finite numbers.
    rng : int, Generator or None
        Seed or generator of the draws.
    format : {"csv", "jsonl"}
        "csv" for spreadsheets: a cell that would run as a formula begins with ', and a text has at most 32,000
        characters. "jsonl" for programs: texts as they are.

    Returns
    -------
    DataFrame
        A row for each judge. Columns judge, file, documents, and shared, the number of those that all judges get.

    Raises
    ------
    InvalidInput
        If the folder is a file or holds sheets, judges are missing or have the same name, the overlap is not between 0
        and 1, the scale is empty or has something else than distinct numbers, or a column, an id or a text is missing.
        Then nothing is written.

    Examples
    --------
    >>> import tempfile
    >>> import rankeval as rk
    >>> made = rk.judging.pool({"bm25": {"q1": ["d1", "d2", "d3", "d4"]}})
    >>> folder = f"{tempfile.mkdtemp()}/sheets"
    >>> rk.judging.write_sheets(made, folder, judges=["ann", "bo"], overlap=0.5)[["judge", "documents", "shared"]]
      judge  documents  shared
    0   ann          3       2
    1    bo          3       2
    """
    chosen("format", format, ("csv", "jsonl"))
    home, grades = as_path(folder), value_column(scale, "scale")
    names = [*map(str, judges)] if pd.api.types.is_list_like(judges, allow_sets=False) else []
    files = ["sheet_" + re.sub(r"[^\w.@ -]", "_", name) + f".{format}" for name in names]
    check_number("overlap", overlap, least=0)
    refuse(
        (not names, f"judges is {shown(judges)}; expected a list of names"),
        (len({*map(str.casefold, files)}) < len(files), f"two of the judges have the same name: {few(names)}"),
        (overlap > 1, f"overlap is {shown(overlap)}; expected a share from 0 to 1"),
        (not 0 < len(grades) == len(np.unique(grades)), f"scale is {shown(scale)}; expected different numbers"),
        (any(one.is_file() for one in (home, *home.parents)), f"{home} is a file, or is in one; name a folder"),
        ((home / MANIFEST).exists(), f"{home} holds sheets; read them by read_sheets, or name another folder"),
        (any(home.glob("sheet_*")), f"{home} holds sheets without {MANIFEST}; name another folder, or delete them"),
    )
    ids = frame_columns(pool.table if isinstance(pool, Pool) else pool, {"qid": "qid", "docid": "docid"})
    table = pd.DataFrame({name: id_column(ids[name], name).to_pylist() for name in ids}).drop_duplicates()
    for column, name, given in (("qid", "query", queries), ("docid", "text", texts)):
        table[name] = "" if given is None else table[column].map(given.get)
        lacking = table[column][[not isinstance(one, str) for one in table[name]]].unique().tolist()
        refuse((lacking, f"there is no {name} for {column} {few(lacking)}"))
    generator = np.random.default_rng(rng)
    turn = generator.permutation(len(table))[pd.factorize(table["qid"])[0]]
    table = _mixed(table.assign(relevance="", note="", turn=turn), generator)
    # Of every tenth row the last, so that all queries have their share.
    shared = np.flatnonzero(np.diff(np.floor(np.arange(len(table) + 1) * overlap + 1e-9)))
    parts = [np.r_[shared, part] for part in np.array_split(np.delete(np.arange(len(table)), shared), len(names))]
    contents, sheets = {}, {}
    for judge, file, part in zip(names, files, parts, strict=True):
        sheet = _mixed(table.iloc[part], generator)
        contents[file] = _written(sheet[["qid", "query", "docid", "text", "relevance", "note"]], format)
        sheets[judge] = {"file": file, "pairs": sheet[["qid", "docid"]].to_numpy(dtype=object).tolist()}
    # Last, so that half of the sheets are not read for all.
    contents[MANIFEST] = json.dumps({"scale": grades.tolist(), "sheets": sheets}).encode()
    home.mkdir(parents=True, exist_ok=True)
    for file, content in contents.items():
        write_atomically(home / file, [content])
    return pd.DataFrame({"judge": names, "file": files, "documents": [*map(len, parts)], "shared": len(shared)})


def read_sheets(folder: str | os.PathLike[str]) -> Qrels:
    r"""Return the labels of the sheets of a folder, at any time; rows without a label are counted in a warning.

    Parameters
    ----------
    folder : path
        The folder that `write_sheets` made. Sheets may have been saved by a spreadsheet: as CSV with commas, semicolons
        or tabs, and with rows in another order. All sheets must be there, also those that nobody has filled.

    Returns
    -------
    Qrels
        A row for each label, with the judge as its aspect. `rankeval.judging.agreement` and
        `rankeval.judging.consensus` take it; `rankeval.evaluate` takes the consensus.

    Raises
    ------
    FileFormatError
        If a sheet lacks one of the columns qid, docid and relevance, or has it twice. If a row is not on the sheet of
        this judge (an unknown query or document), stands twice with a label, or has a label outside the scale. The
        message has the file and the line. Also if ``sheets.json`` was changed.
    InvalidInput
        If there are no sheets or no labels, or a sheet is missing or has another name than it was given.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import rankeval as rk
    >>> folder = Path(tempfile.mkdtemp()) / "sheets"
    >>> made = rk.judging.pool({"bm25": {"q1": ["d1"]}})
    >>> _ = rk.judging.write_sheets(made, folder, judges=["ann"])
    >>> (folder / "sheet_ann.csv").write_text("qid,docid,relevance\nq1,d1,1\n")
    28
    >>> rk.judging.read_sheets(folder).to_frame()
      qid docid  relevance aspect
    0  q1    d1          1    ann
    """
    home = as_path(folder)
    path = home / MANIFEST
    _, manifest = next(json_lines(read_bytes(path), str(path)), (0, {}))
    refuse((not {"scale", "sheets"} <= {*manifest}, f"{path} is not as write_sheets wrote it"), kind=FileFormatError)
    sheets, scale = manifest["sheets"], {float(grade): grade for grade in manifest["scale"]}
    strange = sorted({one.name for one in home.glob("sheet_*")} - {sheet["file"] for sheet in sheets.values()})
    refuse((strange, f"{home}: {few(strange)} is not read; save each sheet under its first name"))
    labels: dict[tuple[Any, ...], Any] = {}
    for judge, sheet in sheets.items():
        known = {(str(query), str(document)): (query, document, judge) for query, document in sheet["pairs"]}
        for where, query, document, label in _labels(home / sheet["file"]):
            row, grade = known.get((query, document), ()), scale.get(number_of(label, where))
            refuse(
                (not row, f"{where} is not on the sheet of {judge}; if a spreadsheet changed an id, load ids as text"),
                (row in labels, f"{where} has a label already"),
                (grade is None, f"{where}: relevance is {label!r}; expected one of {few([*scale.values()])}"),
                kind=FileFormatError,
            )
            labels[row] = grade
    refuse((not labels, f"{home}: no row has a label yet; fill the column relevance"))
    found, sizes = [judge for *_, judge in labels], {judge: len(sheet["pairs"]) for judge, sheet in sheets.items()}
    left = [f"{judge} {n - found.count(judge):,} of {n:,}" for judge, n in sizes.items() if found.count(judge) < n]
    if left:
        warn(f"{home}: rows without a label: {', '.join(left)}")
    return Qrels.from_frame(pd.Series(labels).rename_axis(["qid", "docid", "aspect"]).reset_index(name="relevance"))


def _mixed(rows: pd.DataFrame, generator: np.random.Generator) -> pd.DataFrame:
    """Return rows in random order, those of a query together."""
    return rows.sample(frac=1, random_state=generator).sort_values("turn", kind="stable")


def _written(sheet: pd.DataFrame, form: str) -> bytes:
    if form == "jsonl":
        return sheet.to_json(orient="records", lines=True).encode()
    cells = sheet.astype(str).map(lambda cell: guarded(cell[:32_000]))  # spreadsheets cut a cell at 32,767
    # All cells in quotes: a spreadsheet that splits at semicolons would find a formula behind one. And with a byte
    # order mark, by which a spreadsheet knows UTF-8.
    return cells.to_csv(index=False, quoting=csv.QUOTE_ALL).encode("utf-8-sig", "backslashreplace")


def _labels(path: Path) -> Iterator[tuple[str, str, str, str]]:
    """Yield place, query, document and label of each row that has a label; columns are found by name, once each."""
    data = read_bytes(path)
    if path.suffix == ".jsonl":
        found = [*json_lines(data, str(path))]
        header = [*dict.fromkeys(name for _, row in found for name in row)] or [*FILLED]
        rows = ((line, ["" if row.get(name) is None else str(row[name]) for name in header]) for line, row in found)
    else:
        if data.decode(errors="ignore").encode() != data:  # some spreadsheets save CSV in an older encoding
            data = data.decode("cp1252", "replace").encode()
        cells = records(data, max(",;\t", key=data.partition(b"\n")[0].decode().count), str(path))
        header = [name.strip().casefold() for name in next(cells, (0, []))[1]]
        rows = ((line, [*map(unguarded, row)]) for line, row in cells)
    places = [header.index(name) for name in FILLED if header.count(name) == 1]
    refuse(
        (len(places) < 3, f"{path}: expected the columns {few(FILLED)}, found {shown(header)}"), kind=FileFormatError
    )
    for line, row in rows:
        query, document, label = (row[place] for place in places)
        if label.strip():
            yield f"{path}, line {line}: document {document!r} of query {query!r}", query, document, label.strip()
