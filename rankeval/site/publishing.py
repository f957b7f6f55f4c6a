"""Write the site of a project: gather, rank, lay out, replace.

::

    <out>/index.html                 the leaderboards
          runs/3f2a9c1b7e01aa02.html a page for each run
          rankeval-site.json         the manifest: each page with its hash, and computed comparisons

A folder with a manifest is ours. Each file is written under another name and renamed, the manifest
last. A page of an earlier site that has no run any more is removed if its hash is that of the
manifest: nothing that another program wrote or changed is ever removed or replaced. Comparisons
whose scores did not change are taken from the manifest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ValidationError

from rankeval import tracking
from rankeval._arguments import explained
from rankeval._checks import count, refuse
from rankeval._display import Displayed, View
from rankeval.io.opening import as_path, write_atomically, writing
from rankeval.shelf.files import stored_in
from rankeval.shelf.folder import NAME, checked_path
from rankeval.site.gathering import Fault, Project, gathered
from rankeval.site.pages import Compared, Row, index_page, run_page
from rankeval.site.ranking import BoardFigures, boards_of, figures_of, promotions_of

MANIFEST = "rankeval-site.json"
_FORMAT = "rankeval.site/1"
_REMEDY = "give a new folder, or that of an earlier site"


class _Manifest(BaseModel):
    format: str = _FORMAT
    pages: dict[Annotated[str, AfterValidator(checked_path)], str] = {}  # Path -> SHA-256
    figures: dict[str, str] = {}  # Identity of a board -> JSON of its `BoardFigures`


@dataclass(frozen=True, repr=False)
class Site(Displayed):
    """What was written: the first page, the number of pages, and the runs that could not be read."""

    index: Path
    n_pages: int
    faults: tuple[Fault, ...]

    def _view(self) -> View:
        faults = [f"{fault.place}: {fault.reason}" for fault in self.faults]
        return View([f"Site({count(self.n_pages, 'page')}, {self.index})"], notes=faults)


@explained
def write_site(
    saved: str | Path | None,
    public: str | Path,
    *,
    experiment: str | None = None,
    host: str = "mlflow",
    uri: str | None = None,
    queries: bool = False,
) -> Site:
    """Write one static site of all runs of a project.

    The index has a leaderboard for each role, data set, convention and weighting of queries: means
    with intervals, the range of ranks that each of the first 50 rows may have, and the difference
    of each row from the champion. The champion is the version that a recorded promotion moved last;
    without one, rows are compared with the best. A leaderboard goes by the measure that most of its
    evaluations have, and of several such measures by the one that the newest run names first; rows
    without it stand below the ranked ones. Each run has a page of at most 25 kB.

    Parameters
    ----------
    saved : path, optional
        The folder with saved results, at any depth. None if ``experiment`` is given.
    public : path
        The folder of the site: a new or empty one, or that of an earlier site.
    experiment : str, optional
        The name of an experiment of a host, in place of ``saved``.
    host : str, default "mlflow"
        The host.
    uri : str, optional
        The address of the host's store; by default its own setting.
    queries : bool, default False
        Whether pages have ids of queries, and notes, which may name queries.

    Returns
    -------
    Site
        The path of the index, the number of pages, and the runs that could not be read.

    Raises
    ------
    InvalidInput
        If there is no such folder, it has no result at any depth, or ``public`` has files that are
        not of an earlier site.
    UnknownName
        If there is no such host or experiment.

    Examples
    --------
    >>> import tempfile
    >>> import rankeval as rk
    >>> home = tempfile.mkdtemp()
    >>> ev = rk.evaluate([1, 0], [0.5, 0.1], qid=["a", "a"], measures="RR", name="bm25")
    >>> seal = rk.save(ev, f"{home}/saved/bm25", role="test")
    >>> site = write_site(f"{home}/saved", f"{home}/public")
    >>> site.index.name, site.n_pages
    ('index.html', 2)
    """
    where = as_path(public)
    before = _manifest_of(where)
    title, stored = _stored(saved, experiment, host, uri)
    project = gathered(stored)
    refuse(
        (
            not project.runs and not project.faults,
            f"there is no result in {title!r}: no run has a record, and no folder a {NAME}",
            "give the folder of rk.save or rankeval run, or another experiment",
        ),
        argument="saved" if experiment is None else "experiment",
    )
    promotions = promotions_of(project.runs)
    figures: dict[str, BoardFigures] = {}
    compared = []
    for board in boards_of(project.entries, promotions):
        identity = board.identity(queries=queries)
        figures[identity] = _known(before, identity) or figures_of(board, queries=queries)
        compared.append((board, figures[identity]))
    pages = {"index.html": index_page(title, project, compared, promotions)}
    pages |= _run_pages(project, compared, where, queries=queries)
    _replace(where, before, pages, figures)
    return Site(where / "index.html", len(pages), tuple(project.faults))


def _known(before: _Manifest, identity: str) -> BoardFigures | None:
    try:
        return BoardFigures.model_validate_json(before.figures.get(identity, ""))
    except ValidationError:  # there are none, or another version wrote them
        return None


def _stored(
    saved: str | Path | None, experiment: str | None, host: str, uri: str | None
) -> tuple[str, Iterable[tracking.StoredRun]]:
    """Return the title of a project and its runs."""
    refuse(((saved is None) == (experiment is None), "give a folder or an experiment"))
    if saved is None:
        runs = tracking.host(host).runs
        if runs is not None:
            return str(experiment), runs(experiment=experiment, uri=uri)
        refuse((True, f"the host {host!r} does not list its runs"), argument="host")
    source = as_path(saved)
    refuse((not source.is_dir(), f"there is no folder {str(source)!r}"), argument="saved")
    return source.absolute().name, stored_in(source)


def _manifest_of(public: Path) -> _Manifest:
    """Return the manifest of an earlier site; refuse a folder that is not ours."""
    file = public / MANIFEST
    with writing(file):
        if not public.exists() or not any(public.iterdir()):
            return _Manifest()
    foreign = f"{str(public)!r} has files, and no {MANIFEST}"
    refuse((not file.is_file(), foreign, _REMEDY), argument="public")
    try:
        found = _Manifest.model_validate_json(file.read_bytes())
    except ValidationError:
        found = _Manifest(format="")
    damaged = f"{str(file)!r} is not a manifest of this version"
    refuse((found.format != _FORMAT, damaged, _REMEDY), argument="public")
    return found


def _run_pages(
    project: Project, compared: Compared, public: Path, *, queries: bool
) -> dict[str, str]:
    pages = {run.place: run.page for run in project.runs}
    own: dict[str, list[Row]] = {place: [] for place in pages}
    for board, figures in compared:
        for name, entry in board.entries.items():
            own[entry.run.place].append((name, board, figures))
    return {
        run.page: run_page(run, own[run.place], pages, project.names, public, queries=queries)
        for run in project.runs
    }


def _replace(
    public: Path, before: _Manifest, pages: dict[str, str], figures: dict[str, BoardFigures]
) -> None:
    """Replace the pages of an earlier site, remove those without a run, and write the manifest."""
    contents = {path: page.encode(errors="backslashreplace") for path, page in pages.items()}
    hashes = {path: hashlib.sha256(content).hexdigest() for path, content in contents.items()}
    with writing(public / "runs"):
        (public / "runs").mkdir(parents=True, exist_ok=True)
        there = {path: _hash_of(public / path) for path in before.pages | pages}
    ours = {path for path, found in there.items() if found in (None, before.pages.get(path))}
    foreign = [str(public / path) for path in pages if path not in ours]
    changed = f"{', '.join(foreign[:1])} was written by another program"
    link = f"{str(public / 'runs')!r} is a link to another folder"
    elsewhere = "move it away, or give another folder"
    refuse(
        (foreign, changed, elsewhere),
        ((public / "runs").is_symlink(), link, elsewhere),
        argument="public",
    )
    for path, content in contents.items():
        if there[path] != hashes[path]:
            write_atomically(public / path, [content])
    for path in ours - contents.keys():
        (public / path).unlink(missing_ok=True)
    texts = {identity: known.model_dump_json() for identity, known in figures.items()}
    manifest = _Manifest(pages=hashes, figures=texts)
    write_atomically(public / MANIFEST, [manifest.model_dump_json().encode()])


def _hash_of(file: Path) -> str | None:
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else None
