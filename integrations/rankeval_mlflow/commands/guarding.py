"""``rankeval mlflow verify-guard``: hold ledgers against the heads that runs name."""

from __future__ import annotations

from typing import Annotated

import typer

from rankeval.cli.terminal import tell
from rankeval.errors import GuardRefusal, InvalidInput
from rankeval_mlflow.commands.options import Store


def verify_guard(
    runs: Annotated[list[str], typer.Argument(help="Runs by id, or models:/NAME/VERSION.")],
    ledger: Annotated[
        str | None, typer.Option(help="Folder, file or SQLAlchemy URL of the ledger; else the one that each run names.")
    ] = None,
    uri: Store = None,
) -> None:
    """Check that ledgers still hold the heads that runs name; exit with 1 otherwise."""
    from rankeval.ledger.discovery import ledger_url, may_exist
    from rankeval.ledger.ledger import Ledger
    from rankeval_mlflow.reading.listing import noted_heads

    faults = []
    for run in runs:
        heads = noted_heads(run, uri)
        if not heads:
            raise InvalidInput(f"run {run} names no head of a ledger: no guard opened its test part")
        for where, head in heads:
            url = ledger_url(ledger or where)
            found = Ledger(url).problems(head) if may_exist(url) else [f"the ledger {ledger or where} is gone"]
            faults += [f"run {run}: {fault}" for fault in found]
            if not found:
                tell(f"run {run}: {Ledger(url).where} is whole, and holds its head {head}")
    if faults:
        raise GuardRefusal("; ".join(faults))
