"""``rankeval mlflow promote``: move an alias of a registered model, if the version is shown to be better."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankeval.cli.terminal import tell
from rankeval.errors import InvalidInput

if TYPE_CHECKING:
    import pandas as pd


def promote(
    name: Annotated[str, typer.Argument(help="The registered model.")],
    *,
    version: Annotated[str, typer.Option(help="The candidate: 7, latest, or models:/NAME@challenger.")],
    measure: Annotated[str, typer.Option("--measure", "-m", help="The measure that decides.")],
    alias: Annotated[str, typer.Option(help="The alias to move.")] = "champion",
    claim: Annotated[str, typer.Option(help="What must be shown: better or not_worse.")] = "better",
    margin: Annotated[float, typer.Option(help="Margin of the claim, in units of the measure.")] = 0.0,
    alpha: Annotated[float, typer.Option(help="One-sided level of each test.")] = 0.025,
    test: Annotated[str, typer.Option(help="Significance test; `rankeval tests` lists them.")] = "t",
    slices: Annotated[
        str | None,
        typer.Option(help="CSV or Parquet file with qid and an attribute of the queries, or a count such as relevant."),
    ] = None,
    floor: Annotated[
        list[str] | None,
        typer.Option(help="Loss that must be ruled out on a slice, as in tail=0.05; 0.05 for all slices. Repeatable."),
    ] = None,
    role: Annotated[str, typer.Option(help="The role of the evaluations.")] = "test",
    first: Annotated[bool, typer.Option("--first", help="Give an alias that no version has, undecided.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Decide, and write nothing.")] = False,
    who: Annotated[str | None, typer.Option(help="The person or machine, for the record.")] = None,
    uri: Annotated[str | None, typer.Option(help="The tracking store; by default MLflow's own setting.")] = None,
) -> None:
    """Move an alias of a registered model to a version that is shown to be better than the one in use.

    Exits with 0 if the alias is with the version (with --dry-run: would be), with 1 if the version is rejected or
    another promoter came first, and with 2 on bad use or if the store refuses.
    """
    from rankeval_mlflow.promotion.promoting import promote as move

    options: dict[str, Any] = {"claim": claim, "alpha": alpha, "test": test, "role": role, "who": who, "uri": uri}
    done = move(
        name,
        version,
        alias,
        measure,
        margin,
        slices=None if slices is None else _attribute(slices),
        floors=_floors(floor or []),
        first=first,
        dry_run=dry_run,
        **options,
    )
    tell(str(done))
    if done.floors is not None:
        tell(done.floors.to_string(index=False))
    if done.run_id is not None:
        tell(f"record: run {done.run_id}; see {done.where}")
    if not done:
        raise typer.Exit(1)


def _floors(given: list[str]) -> float | dict[str, float] | None:
    """Return the floors by slice, or one for all."""
    if not given:
        return None
    named = {value: _number(text, one) for one in given for value, _, text in [one.rpartition("=")]}
    if "" in named and len(given) > 1:
        raise InvalidInput("--floor without a slice is for all slices: give it alone, or name each slice")
    if len(named) < len(given):
        raise InvalidInput("--floor names a slice twice")
    return named.get("", named)


def _number(text: str, given: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"--floor is {given!r}; expected a loss such as 0.05, or tail=0.05") from None


def _attribute(given: str) -> pd.Series[Any] | str:
    """Return the attribute of the queries that a file holds; the name of a count stands for itself."""
    path = Path(given)
    if not path.suffix and not path.exists():
        return given
    import pandas as pd

    try:
        frame = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path, dtype={"qid": str})
    except (OSError, ValueError) as error:
        raise InvalidInput(f"--slices {given}: {error}") from error
    if "qid" not in frame.columns or len(frame.columns) != 2:
        raise InvalidInput(
            f"--slices {given}: expected a column qid and one more, the attribute; found {', '.join(map(str, frame))}"
        )
    values = frame.set_index("qid").iloc[:, 0]
    # A file does not say whether an id is the number 7 or the text "7": both are meant.
    numbers = values[[str(one).isdecimal() and str(int(one)) == str(one) for one in values.index]]
    texts = values.set_axis(pd.Index([str(one) for one in values.index], dtype=object))
    both: pd.Series[Any] = pd.concat([texts, numbers.set_axis(pd.Index(list(map(int, numbers.index)), dtype=object))])
    return both
