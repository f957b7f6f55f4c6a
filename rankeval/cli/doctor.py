"""The command `rankeval doctor`: versions, hosts, and the ledger in force."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rankeval import errors
from rankeval import tracking as hosts
from rankeval._checks import count
from rankeval.cli.output import tell

DISTRIBUTION = "rankeval-mlflow"
SHOWN_VERSIONS = ("numpy", "scipy", "pandas", "pyarrow", "scikit-learn", "mlflow", "lightgbm", "xgboost", "catboost")


def doctor() -> None:
    """Show versions, hosts and the ledger in force: its head, whether it is whole, and the name in new entries."""
    import platform
    from importlib import metadata

    def version(name: str) -> str:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            return "not installed"

    facts = {"python": platform.python_version(), "rankeval": str(Path(__file__).parents[2])}
    facts |= {name: version(name) for name in (DISTRIBUTION, *SHOWN_VERSIONS)}
    facts |= {f"host {name}": hosts.title_of(name) for name in hosts.host_names()}
    facts |= dict(_ledger())
    for topic, said in facts.items():
        tell(f"{topic:<16} {said}")
    # The plain name belongs to an older package with the same import name: one would overwrite files of the other.
    if version("rankeval") != "not installed":
        raise errors.InvalidInput(
            f"the distribution rankeval {version('rankeval')}, another project, is installed into the same folder: "
            f"pip uninstall rankeval, then pip install --force-reinstall {DISTRIBUTION}"
        )


def _ledger() -> Iterator[tuple[str, str]]:
    """Yield what is known of the ledger in force; a broken one is described, since a doctor must not fall ill."""
    from rankeval.ledger import discovery
    from rankeval.ledger.ledger import Ledger

    try:
        url = discovery.default_url()
        if url is None:
            yield "ledger", "switched off"
            return
        ledger = Ledger(url)
        if not discovery.may_exist(url):
            yield "ledger", f"{ledger.where} (not there yet)"
        else:
            yield "ledger", ledger.where
            faults = ledger.problems()
            yield "its state", "; ".join(faults) if faults else f"whole, {count(len(ledger.read().entries), 'entry')}"
            if not faults:
                yield "its head", ledger.read().head
        yield "you are", ledger.who
        if lost := discovery.why_lost(url):
            yield "warning", lost
    except errors.RankevalError as error:
        yield "ledger", str(error)
