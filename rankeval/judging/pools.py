"""Pools: the documents that some runs rank high, and sheets of them for each judge to fill.

A pool is a table of the first ranks of runs. A row is a document of a query; 0 stands for a rank
beyond the depth::

    qid  docid   bm25  rm3      rank  n_runs
    q1   d7      1     1        1     2
    q1   d3      0     2        2     1
    q1   d9      2     0        2     1

A pool holds no labels. Its methods take those that there are, so that judging may stop and go on at
any time. Sheets bring the labels::

    folder/sheets.json       the scale, and the pairs of query and document of each judge
           sheet_ann.csv     qid, query, docid, text, relevance (to fill), note
           sheet_bo.csv      a share of the pairs is on every sheet, so that agreement can be measured

A spreadsheet may reorder the rows of a sheet, change its separator, or turn an id into a number. So
each row is looked up among the pairs of ``sheets.json``: labels of an id that was changed are
refused, and not lost.
"""

from __future__ import annotations

import csv
import heapq
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rankeval._arguments import explained
from rankeval._checks import (
    check_count,
    check_number,
    check_share,
    count,
    few,
    refuse,
    require,
    shown,
)
from rankeval._registry import chosen
from rankeval._visible import escaping
from rankeval.analysis.overlap import ranked_lists, refuse_unlike
from rankeval.collection.qrels import Qrels, as_qrels
from rankeval.collection.run import as_run
from rankeval.comparison.tables import WithTable
from rankeval.errors import FileFormatError, warn
from rankeval.io.columns import id_column, value_column
from rankeval.io.frames import frame_columns
from rankeval.io.opening import as_path, number_of, read_bytes, write_atomically, writing
from rankeval.io.tables import json_lines, records
from rankeval.judging.labels import NOT_JUDGED, Floats, Ints
from rankeval.render.tables import Table, guarded, unguarded
from rankeval.significance.declarations import generator_of

MINUTES = 5.0
"""Minutes to judge a document, if nobody says otherwise."""

_PAIR = ["qid", "docid"]
SHEET = ["qid", "query", "docid", "text", "relevance", "note"]
FILLED = ("qid", "docid", "relevance")
MANIFEST = "sheets.json"


@explained
@escaping
@dataclass(frozen=True, eq=False, repr=False)
class Pool(WithTable):
    """The documents of each query that at least one run ranks within a depth.

    Attributes
    ----------
    table : DataFrame
        A row for each document of a query. Columns: qid, docid; found_by, the names of the runs
        that found it, a tuple; n_runs, their number; rank, the best rank that one of them gives it.
        Queries are in the order of the runs, and documents by rank and then by id.
    places : ndarray of int of shape (n_rows, n_runs)
        The rank of each row in each run, from 1; 0 if the run does not have it within the depth.
    runs : tuple of str
        The names of the runs.
    depth : int
        The depth.
    left_out : DataFrame
        Columns qid and docid: the documents that `sample` did not draw.

    Examples
    --------
    >>> import rankeval as rk
    >>> runs = {"bm25": {"q1": ["d7", "d9", "d1"]}, "rm3": {"q1": ["d7", "d3"]}}
    >>> rk.judging.pool(runs, depth=2).table
      qid docid     found_by  n_runs  rank
    0  q1    d7  (bm25, rm3)       2     1
    1  q1    d3       (rm3,)       1     2
    2  q1    d9      (bm25,)       1     2
    """

    table: pd.DataFrame
    places: NDArray[np.int64]
    runs: tuple[str, ...]
    depth: int
    left_out: pd.DataFrame

    def cost(self, *, minutes: float = MINUTES, by_query: bool = False) -> pd.DataFrame:
        """Return how long one judge takes for all documents.

        Parameters
        ----------
        minutes : float
            The minutes for one document. Judges of TREC need between one and six, by the length of
            the documents.
        by_query : bool
            Return a row for each query, and not one for all.

        Returns
        -------
        DataFrame
            Index: the query, or "all". Columns documents, minutes_each and hours.

        Raises
        ------
        InvalidInput
            If minutes is not a number above 0.

        Examples
        --------
        >>> import rankeval as rk
        >>> rk.judging.pool({"bm25": {"q1": ["d7", "d9"]}}).cost(minutes=3)
             documents  minutes_each  hours
        all          2             3    0.1
        """
        check_number("minutes", minutes)
        require(minutes > 0, "minutes", minutes, "a number above 0")
        sizes = pd.Series({"all": len(self.table)})
        if by_query:
            sizes = self.table.groupby("qid", sort=False).size()
        hours = sizes * float(minutes) / 60
        return pd.DataFrame({"documents": sizes, "minutes_each": minutes, "hours": hours})

    def adds(self, run: Any, *, name: str = "new") -> Pool:
        """Return the documents that one more run would add to the queries of the pool.

        Parameters
        ----------
        run : Run, dict, frame or path
            The run.
        name : str
            Its name in the result.

        Returns
        -------
        Pool
            ``pool.adds(run).cost(by_query=True)`` says how many documents and hours it adds to each
            query.

        Raises
        ------
        InvalidInput
            If its ids are of another kind than those of the pool.

        Examples
        --------
        >>> import rankeval as rk
        >>> rk.judging.pool({"bm25": {"q1": ["d7", "d9"]}}).adds({"q1": ["d7", "d3"]}).table.docid.tolist()
        ['d3']
        """
        require(isinstance(name, str), "name", name, "text")
        other = pool({name: run}, depth=self.depth)
        known = pd.concat([self.table[_PAIR], self.left_out]).assign(relevance=0)
        is_new = np.isnan(_labels(other, known))
        is_pooled = other.table["qid"].isin(self.table["qid"]).to_numpy()
        return _part(other, is_new & is_pooled)

    def order(self, by: str = "depth", *, judged: Any = None, rng: Any = 0) -> pd.DataFrame:
        """Return the documents that are still to judge, in the order in which to judge them.

        All orders take the queries in turn: the first document of each query, then the second of
        each. So judging may stop anywhere, and all queries have equally many labels. Nothing is
        stored between calls: the order follows from the pool and the labels that there are.

        Parameters
        ----------
        by : {"depth", "move_to_front", "random"}
            "depth" takes documents by their best rank, then by id. "random" draws an order, which
            the labels do not change. "move_to_front" prefers runs that find relevant documents. It
            takes the first document of the run in front that is not taken yet. If it is relevant,
            the run stays in front, however often it has failed. If not, the run falls back by one
            place of priority. Of runs with equal priority, the one that was named first leads. Each
            query has its own priorities. A document without a label counts as not relevant. So ask
            again after each round of labels; to follow the method exactly, judge one document of
            each query in a round.
        judged : Qrels, dict, frame or path, optional
            The existing labels. A label above 0 is relevant, and -1 means no label. If a document
            has several labels, the highest counts.
        rng : int, Generator or None
            Seed or generator of the random order.

        Returns
        -------
        DataFrame
            Rows of the table.

        Raises
        ------
        UnknownName
            If there is no such order.

        References
        ----------
        Cormack, Palmer & Clarke 1998, Efficient construction of large test collections, doi:10.1145/290941.291009.

        Examples
        --------
        >>> import rankeval as rk
        >>> runs = {"bm25": {"q1": ["d7", "d9", "d1"]}, "rm3": {"q1": ["d8", "d3"]}}
        >>> both = rk.judging.pool(runs)
        >>> both.order("move_to_front", judged={"q1": {"d7": 1}}).docid.tolist()
        ['d9', 'd8', 'd1', 'd3']
        """
        chosen("order", by, ("depth", "move_to_front", "random"))
        label = _labels(self, judged)
        first = np.arange(len(self.table))
        if by == "random":
            first = generator_of(rng).permutation(first)
        if by == "move_to_front":
            parts = map(np.asarray, self.table.groupby("qid", sort=False).indices.values())
            ordered = [_move_to_front(rows, self.places[rows], label[rows] > 0) for rows in parts]
            first = np.concatenate([first[:0], *ordered])
        left = self.table.iloc[first[np.isnan(label[first])]]
        query = pd.factorize(self.table["qid"])[0][left.index]
        turn = left.groupby("qid", sort=False).cumcount()
        return left.iloc[np.lexsort((query, turn))].reset_index(drop=True)

    def sample(self, rate: float, rng: Any = 0) -> Pool:
        """Return a random part of the pool to judge, for infAP.

        Parameters
        ----------
        rate : float
            The share of the documents of each query. At least one is drawn for each query.
        rng : int, Generator or None
            Seed or generator of the draw.

        Returns
        -------
        Pool
            The documents that were drawn. `qrels` gives their labels, and -1 for those that were
            not.

        Raises
        ------
        InvalidInput
            If the rate is not between 0 and 1.

        Examples
        --------
        >>> import rankeval as rk
        >>> whole = rk.judging.pool({"bm25": {"q1": ["d1", "d2", "d3", "d4"]}})
        >>> part = whole.sample(0.5)
        >>> len(part.table), sorted(part.qrels({"q1": {"d1": 1, "d2": 1, "d3": 1, "d4": 1}}).relevance.tolist())
        (2, [-1, -1, 1, 1])
        """
        check_share("rate", rate)
        chance = pd.Series(generator_of(rng).random(len(self.table)))
        of_query = chance.groupby(self.table["qid"].to_numpy())
        sizes = np.rint(rate * of_query.transform("size").to_numpy())
        drawn = of_query.rank().to_numpy() <= np.maximum(1, sizes)
        left_out = pd.concat([self.left_out, self.table.loc[~drawn, _PAIR]], ignore_index=True)
        return replace(_part(self, drawn), left_out=left_out)

    def qrels(self, judged: Any) -> Qrels:
        """Return the label of each document of the pool, and -1 for those that are not judged.

        infAP and bpref read -1 in this way under a convention whose rule ``negative`` is
        "unjudged", such as ``convention="trec_eval-9.0.8"``.

        Parameters
        ----------
        judged : Qrels, dict, frame or path
            The existing labels; those of documents outside the pool do not count. If a document has
            several labels, the highest counts: see `rankeval.judging.consensus` for better
            ways.

        Returns
        -------
        Qrels
            A row for each document, also for those that `sample` left out.
        """
        rows = pd.concat([self.table[_PAIR].assign(relevance=_labels(self, judged)), self.left_out])
        return Qrels.from_frame(rows.fillna({"relevance": NOT_JUDGED}))

    def _laid_out(self) -> Table:
        ranked = self.places > 0
        n, n_alone = (rows.sum(axis=0) for rows in (ranked, ranked[ranked.sum(axis=1) == 1]))
        shown = pd.DataFrame({"run": self.runs, "documents": n, "only it": n_alone})
        documents = count(len(self.table), "document")
        queries = count(self.table["qid"].nunique(), "query")
        return Table(shown, caption=f"Pool of depth {self.depth}: {documents} of {queries}")


@explained
def pool(
    runs: Mapping[str, Any], *, depth: int = 20, queries: Iterable[str | int] | None = None
) -> Pool:
    """Return the documents that at least one run ranks within a depth.

    Parameters
    ----------
    runs : mapping of str to Run, dict, frame or path
        The runs by name. Documents of equal score are ranked by id, descending, as in trec_eval.
    depth : int
        The rank down to which documents are taken.
    queries : iterable of ids, optional
        The queries to pool, such as those of `rankeval.judging.draw`; by default all.

    Returns
    -------
    Pool
        The documents, how long it takes to judge them, and orders in which to judge them.

    Raises
    ------
    InvalidInput
        If there is no run, a run has a document twice, or the ids of some runs are numbers and
        those of others texts.

    Examples
    --------
    >>> import rankeval as rk
    >>> print(rk.judging.pool({"bm25": {"q1": ["d7", "d9"]}, "rm3": {"q1": ["d7", "d3"]}}))
    Pool of depth 20: 3 documents of 1 query
    run    documents   only it
    ──────────────────────────
    bm25           2         1
    rm3            2         1
    """
    check_count("depth", depth)
    is_mapping = isinstance(runs, Mapping) and bool(runs)
    require(
        is_mapping, "runs", type(runs).__name__, 'a mapping of names to runs: {"bm25": run, ...}'
    )
    loaded = {str(name): as_run(run) for name, run in runs.items()}
    first = next(iter(loaded.values()))
    wanted = None if queries is None else set(queries)
    rows = []
    for run in loaded.values():
        refuse_unlike(first, run)
    for name, run in loaded.items():
        for query, documents in ranked_lists(run).items():
            if wanted is None or query in wanted:
                ranks = enumerate(documents[:depth], start=1)
                rows += [(query, document, name, rank) for rank, document in ranks]
    ranked = pd.DataFrame(rows, columns=[*_PAIR, "run", "rank"])
    ranked["query"] = pd.factorize(ranked["qid"])[0]
    ranked["best"] = ranked.groupby(_PAIR)["rank"].transform("min")
    # Stable, so that the runs of a document keep their order.
    ranked = ranked.sort_values(["query", "best", "docid"], kind="stable")
    by_document = ranked.groupby(_PAIR, sort=False)
    table = by_document.agg(
        found_by=("run", tuple), n_runs=("run", "size"), rank=("rank", "min")
    ).reset_index()
    places = np.zeros((len(table), len(loaded)), dtype=np.int64)
    columns = pd.Index(loaded).get_indexer(pd.Index(ranked["run"]))
    places[by_document.ngroup(), columns] = ranked["rank"]
    return Pool(table, places, tuple(loaded), depth, table[_PAIR].iloc[:0])


def _part(whole: Pool, rows: NDArray[np.bool_]) -> Pool:
    return replace(whole, table=whole.table[rows].reset_index(drop=True), places=whole.places[rows])


def _move_to_front(rows: Ints, places: Ints, relevant: NDArray[np.bool_]) -> Ints:
    """Return the rows of one query in the order of the method; see `Pool.order`."""
    ranked = [np.argsort(column, kind="stable")[np.sum(column == 0) :] for column in places.T]
    waiting = [iter(documents.tolist()) for documents in ranked]
    behind = [(0, run) for run in range(len(waiting))]  # how often each has failed; a heap
    taken: dict[int, None] = {}
    while behind:
        failed, run = heapq.heappop(behind)
        row = next((row for row in waiting[run] if row not in taken), None)
        if row is not None:
            taken[row] = None
            heapq.heappush(behind, (0 if relevant[row] else failed + 1, run))
    return rows[list(taken)]


def _labels(whole: Pool, judged: Any) -> Floats:
    """Return the label of each row, of several the highest; nan without one."""
    if judged is None:
        return np.full(len(whole.table), np.nan)
    qrels = as_qrels(judged)
    refuse_unlike(Qrels.from_frame(whole.table.assign(relevance=0)), qrels)
    labels = qrels.to_frame()
    labels = labels[labels["relevance"] != NOT_JUDGED]
    highest = labels.groupby(_PAIR, as_index=False)["relevance"].max()
    rows = whole.table[_PAIR].merge(highest, how="left", on=_PAIR)
    return rows["relevance"].to_numpy(dtype=np.float64)


@explained
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

    Every judge gets a share of all documents, the same number of each query as far as possible. The
    rest is divided evenly, and by whole queries as far as possible, so that one judge compares the
    documents of a query. A sheet has the queries in random order, and the documents of each query
    in random order: no judge sees the ranks.

    Parameters
    ----------
    pool : Pool or DataFrame
        The documents to judge. A frame needs columns qid and docid, as those of `Pool.order` or of
        disputed labels. Their ids are texts or whole numbers.
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
        "csv" for spreadsheets: a cell that would run as a formula begins with ', and a text has at
        most 32,000 characters. "jsonl" for programs: texts as they are.

    Returns
    -------
    DataFrame
        A row for each judge. Columns judge, file, documents, and shared, the number of those that
        all judges get.

    Raises
    ------
    InvalidInput
        If the folder is a file or contains sheets, judges are missing or have the same name, the
        overlap is not between 0 and 1, the scale is empty or has something else than distinct
        numbers, or a column, an id or a text is missing. Then nothing is written.

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
    with writing(home):
        is_file = any(path.is_file() for path in (home, *home.parents))
        has_manifest, has_sheets = (home / MANIFEST).exists(), any(home.glob("sheet_*"))
    is_double = len({*map(str.casefold, files)}) < len(files)
    is_scale = 0 < len(grades) == len(np.unique(grades))
    holds = f"{home} already contains sheets"
    twice = f"two of the judges have the same name: {few(names)}"
    refuse(
        (not names, f"judges is {shown(judges)}; expected a list of names"),
        (is_double, twice),
        (overlap > 1, f"overlap is {shown(overlap)}; expected a share from 0 to 1"),
        (not is_scale, f"scale is {shown(scale)}; expected different numbers"),
    )
    refuse(
        (is_file, f"{home} is a file, or is in one; name a folder"),
        (has_manifest, f"{holds}; read them by read_sheets, or name another folder"),
        (has_sheets, f"{holds} without {MANIFEST}; name another folder, or delete them"),
    )
    pairs = pool.table if isinstance(pool, Pool) else pool
    ids = frame_columns(pairs, {"qid": "qid", "docid": "docid"})
    columns = {name: id_column(ids[name], name).to_pylist() for name in ids}
    table = pd.DataFrame(columns).drop_duplicates()
    for column, name, by_id in (("qid", "query", queries), ("docid", "text", texts)):
        table[name] = "" if by_id is None else table[column].map(by_id.get)
        is_text = table[name].map(lambda text: isinstance(text, str))
        lacking = table[column][~is_text.astype(bool)].unique().tolist()
        refuse((lacking, f"there is no {name} for {column} {few(lacking)}"))
    generator = generator_of(rng)
    turn = generator.permutation(len(table))[pd.factorize(table["qid"])[0]]
    table = _mixed(table.assign(relevance="", note="", turn=turn), generator)
    # Of every tenth row the last, so that all queries have their share.
    shared = np.flatnonzero(np.diff(np.floor(np.arange(len(table) + 1) * overlap + 1e-9)))
    rest = np.delete(np.arange(len(table)), shared)
    parts = [np.r_[shared, part] for part in np.array_split(rest, len(names))]
    contents, sheets = {}, {}
    for judge, file, part in zip(names, files, parts, strict=True):
        sheet = _mixed(table.iloc[part], generator)
        contents[file] = _written(sheet[SHEET], format)
        sheets[judge] = {"file": file, "pairs": sheet[_PAIR].to_numpy(dtype=object).tolist()}
    # Last, so that half of the sheets are not read for all.
    contents[MANIFEST] = json.dumps({"scale": grades.tolist(), "sheets": sheets}).encode()
    with writing(home):
        home.mkdir(parents=True, exist_ok=True)
    for file, content in contents.items():
        write_atomically(home / file, [content])
    sizes = {"documents": [*map(len, parts)], "shared": len(shared)}
    return pd.DataFrame({"judge": names, "file": files, **sizes})


@explained
def read_sheets(folder: str | os.PathLike[str]) -> Qrels:
    r"""Return the labels of the sheets of a folder, at any time; a warning counts rows without one.

    Parameters
    ----------
    folder : path
        The folder that `write_sheets` made. Sheets may have been saved by a spreadsheet: as CSV
        with commas, semicolons or tabs, and with rows in another order. All sheets must be there,
        also those that nobody has filled.

    Returns
    -------
    Qrels
        A row for each label, with the judge as its aspect. `rankeval.judging.agreement` and
        `rankeval.judging.consensus` take it; `rankeval.evaluate` takes the consensus.

    Raises
    ------
    FileFormatError
        If a sheet lacks one of the columns qid, docid and relevance, or has it twice. If a row is
        not on the sheet of this judge (an unknown query or document), has two labels, or has a
        label outside the scale; the message has the file and the line. It is also raised if
        ``sheets.json`` was changed.
    InvalidInput
        If there are no sheets or no labels, or a sheet is missing or has another name than it was
        given.

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
    is_ours = {"scale", "sheets"} <= {*manifest}
    refuse((not is_ours, f"{path} is not as write_sheets wrote it"), kind=FileFormatError)
    sheets, scale = manifest["sheets"], {float(grade): grade for grade in manifest["scale"]}
    files = {sheet["file"] for sheet in sheets.values()}
    strange = sorted({sheet.name for sheet in home.glob("sheet_*")} - files)
    refuse((strange, f"{home}: {few(strange)} is not read; save each sheet under its first name"))
    labels: dict[tuple[Any, ...], Any] = {}
    bare: set[tuple[Any, ...]] = set()  # documents without any label, after all sheets
    left = []
    grades = few([*scale.values()])
    for judge, sheet in sheets.items():
        known = {
            (str(query), str(document)): (query, document) for query, document in sheet["pairs"]
        }
        n_labels = len(labels)
        for where, query, document, label in _filled(home / sheet["file"]):
            pair, grade = known.get((query, document)), scale.get(number_of(label, where))
            row = (*(pair or ()), judge)
            lost = f"{where} is not on the sheet of {judge}; if a spreadsheet changed an id, load ids as text"
            outside = f"{where}: relevance is {label!r}; expected one of {grades}"
            refuse(
                (pair is None, lost),
                (row in labels, f"{where} has a label already"),
                (grade is None, outside),
                kind=FileFormatError,
            )
            labels[row] = grade
        n, n_left = len(sheet["pairs"]), len(sheet["pairs"]) - len(labels) + n_labels
        if n_left:
            left.append(f"{judge} {n_left:,} of {n:,}")
        bare |= {*known.values()}
    refuse((not labels, f"{home}: no row has a label yet; fill the column relevance"))
    bare -= {row[:2] for row in labels}
    if left:
        nobody = f"{count(len(bare), 'document')} without any count as not relevant"
        warn(f"{home}: rows without a label: {', '.join(left)}; {nobody}")
    rows = pd.Series(labels).rename_axis(["qid", "docid", "aspect"])
    return Qrels.from_frame(rows.reset_index(name="relevance"))


def _mixed(rows: pd.DataFrame, generator: np.random.Generator) -> pd.DataFrame:
    """Return rows in random order, those of a query together."""
    return rows.sample(frac=1, random_state=generator).sort_values("turn", kind="stable")


def _written(sheet: pd.DataFrame, form: str) -> bytes:
    if form == "jsonl":
        return sheet.to_json(orient="records", lines=True).encode()
    # Spreadsheets cut a cell at 32,767.
    cells = sheet.astype(str).map(lambda cell: guarded(cell[:32_000]))
    # All cells in quotes: a spreadsheet that splits at semicolons would find a formula behind one.
    # And with a byte order mark, by which a spreadsheet knows UTF-8.
    return cells.to_csv(index=False, quoting=csv.QUOTE_ALL).encode("utf-8-sig", "backslashreplace")


def _filled(path: Path) -> Iterator[tuple[str, str, str, str]]:
    """Yield place, query, document and label of each row that has a label."""
    data = read_bytes(path)
    if path.suffix == ".jsonl":
        filled = [*json_lines(data, str(path))]
        header = [*dict.fromkeys(name for _, row in filled for name in row)] or [*FILLED]
        rows = ((line, [_text(row.get(name)) for name in header]) for line, row in filled)
    else:
        # Some spreadsheets save CSV in an older encoding.
        if data.decode(errors="ignore").encode() != data:
            data = data.decode("cp1252", "replace").encode()
        first_line = data.partition(b"\n")[0].decode()
        cells = records(data, max(",;\t", key=first_line.count), str(path))
        header = [name.strip().casefold() for name in next(cells, (0, []))[1]]
        rows = ((line, [*map(unguarded, row)]) for line, row in cells)
    places = [header.index(name) for name in FILLED if header.count(name) == 1]
    problem = f"{path}: the header is {shown(header)}; expected {few(FILLED)}"
    refuse((len(places) < 3, problem), kind=FileFormatError)
    for line, row in rows:
        query, document, label = (row[place] for place in places)
        where = f"{path}, line {line}: document {document!r} of query {query!r}"
        if label.strip():
            yield where, query, document, label.strip()


def _text(value: Any) -> str:
    return "" if value is None else str(value)
