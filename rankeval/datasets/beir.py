"""Folders of BEIR: queries, documents and the judgments of a split.

::

    scifact/queries.jsonl       {"_id": "1", "text": "..."}
    scifact/corpus.jsonl        {"_id": "d1", "title": "...", "text": "..."}
    scifact/qrels/test.tsv      query-id <tab> corpus-id <tab> score, with a header
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rankeval._arguments import explained
from rankeval._checks import count, few
from rankeval._display import Displayed, View
from rankeval.collection.qrels import Qrels
from rankeval.errors import InvalidInput
from rankeval.io.formats import judgments_file
from rankeval.io.opening import DEFAULT, Limits, as_path
from rankeval.io.texts import read_texts


@dataclass(frozen=True, eq=False, repr=False)
class BeirData(Displayed):
    """A collection in a folder of BEIR, as `load_beir` returns it.

    Parameters
    ----------
    queries : dict of str to str
        The texts of the judged queries, by id.
    qrels : Qrels
        The judgments of the split.
    corpus_path : path
        The file of the documents, which is read when `corpus` is first asked for.
    limits : Limits
        As in `load_beir`.
    """

    queries: dict[str, str]
    qrels: Qrels
    corpus_path: Path
    limits: Limits = DEFAULT

    def _view(self) -> View:
        sizes = f"{count(len(self.queries), 'query')}, {count(len(self.qrels), 'judgment')}"
        return View([f"BeirData({sizes}, documents in {self.corpus_path})"])

    @cached_property
    def corpus(self) -> dict[str, str]:
        """The texts of the documents by id: the title, a line break and the text."""
        return read_texts(self.corpus_path, "jsonl", limits=self.limits)


@explained
def load_beir(
    folder: str | os.PathLike[str], *, split: str = "test", limits: Limits = DEFAULT
) -> BeirData:
    r"""Read a folder of BEIR: the judgments of a split, their queries, and the documents.

    Parameters
    ----------
    folder : path
        The folder with ``queries.jsonl``, ``corpus.jsonl`` and ``qrels``, also as ``.gz`` or
        ``.zst``.
    split : str
        The name of a file in ``qrels``, such as "test", "dev" or "train".
    limits : Limits
        How far a compressed file may expand, and how long a line may be.

    Returns
    -------
    BeirData
        ``queries`` has the texts of the judged queries alone, as BEIR's own loader returns them.

    Raises
    ------
    InvalidInput
        If a file is missing, or a judged query has no text.
    UnknownName
        If the folder has no such split; the error names the splits that it has.
    FileFormatError, LimitExceeded
        As `rankeval.Qrels.read` and `rankeval.text.read_texts`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "qrels").mkdir()
    >>> size = (folder / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    >>> size = (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "wings"}\n')
    >>> size = (folder / "corpus.jsonl").write_text('{"_id": "d1", "title": "A", "text": "flow"}\n')
    >>> data = load_beir(folder)
    >>> data.queries, data.qrels, data.corpus
    ({'q1': 'wings'}, Qrels(1 judgment, 1 query, grades 1 to 1), {'d1': 'A\nflow'})
    """
    home = as_path(folder)
    qrels = Qrels.read(judgments_file(home, split), limits=limits)
    texts = read_texts(_only(home, "queries.jsonl"), "jsonl", fields="text", limits=limits)
    judged = qrels.qid.unique().to_pylist()
    if unknown := [query for query in judged if query not in texts]:
        problem = f"{len(unknown)} judged queries have no text in queries.jsonl: {few(unknown)}"
        raise InvalidInput(problem, where=str(home))
    queries = {query: texts[query] for query in judged}
    return BeirData(queries, qrels, _only(home, "corpus.jsonl"), limits)


def _only(home: Path, name: str) -> Path:
    return next(iter(sorted(home.glob(f"{name}*"))), home / name)
