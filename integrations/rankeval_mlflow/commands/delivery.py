"""``rankeval mlflow resend`` and ``discard``: what to do with uploads that a store refused."""

from __future__ import annotations

from typing import Annotated

import typer

from rankeval._registry import unknown
from rankeval.cli.terminal import tell
from rankeval.errors import InvalidInput, RankevalError
from rankeval_mlflow.delivery.spool import PendingUpload, read, spool_directory, waiting


def resend(
    uploads: Annotated[
        list[str] | None, typer.Argument(help="Uploads by id; by default all that a store may take now.")
    ] = None,
    uri: Annotated[
        str | None, typer.Option(help="The present address of their store, if it moved or its password changed.")
    ] = None,
) -> None:
    """Send pending uploads, which a tracking store refused before. Nothing is logged twice."""
    chosen = _chosen(uploads or [])
    if not chosen:
        tell(f"no upload is pending in {spool_directory()}")
    done = [_resent(upload, uri, named=bool(uploads)) for upload in chosen]
    if not all(done):
        raise typer.Exit(2)


def _resent(upload: PendingUpload, uri: str | None, *, named: bool) -> bool:
    """Send one upload and say how it went; return whether nothing failed."""
    from rankeval_mlflow.delivery.sending import send

    try:
        if not named and (why := upload.refusal()):
            tell(f"{upload.id}: left out, since its store refused it for good ({why}); name it to try again")
            return True
        tracked = send(upload, uri=uri)
    except RankevalError as error:
        tell(f"{upload.id}: {error}", to_stderr=True)
        return False
    done = f"sent to run {tracked.run_id}; see {tracked.where}" if tracked else "another process took care of it"
    tell(f"{upload.id}: {done}")
    return True


def discard(uploads: Annotated[list[str], typer.Argument(help="Uploads by id.")]) -> None:
    """Delete pending uploads."""
    for upload in _chosen(uploads):
        upload.remove()
        tell(f"{upload.id}: discarded")


def waiting_row(upload: PendingUpload) -> list[str]:
    """Return a row for the list of uploads: its id, its name, where it goes, and whether it can."""
    from rankeval_mlflow.delivery.addresses import masked

    payload = read(upload)
    target = payload.target
    place = f"run {target.run_id}" if target.run_id else f"experiment {target.experiment_name or target.experiment_id}"
    why = upload.refusal()
    state = "waits" if why is None else f"undeliverable: {why}"
    return [upload.id, payload.root.name, f"{place} in {masked(target.uri)}", state]


def _chosen(ids: list[str]) -> list[PendingUpload]:
    """Return the uploads of these ids, or all."""
    there = {upload.id: upload for upload in waiting()}
    for name in ids:
        if not there:
            raise InvalidInput(f"there is no upload {name!r}: no upload is pending in {spool_directory()}")
        if name not in there:
            raise unknown("upload", name, there)
    return [there[name] for name in ids] if ids else list(there.values())
