"""The commands of ``rankeval online``: parse, call, print.

::

    rankeval online checks LOG              what is wrong with a click log
    rankeval online rates LOG               click rates with intervals
    rankeval online interleave RUN RUN      lists to show, with their credit records
    rankeval online interleave --credits RECORDS --clicks CLICKS    the rankings compared by clicks
    rankeval online ab FRAME                an A/B test of a table of users
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import typer

from rankeval._checks import count, few, require
from rankeval._registry import chosen
from rankeval.cli.exits import command_group
from rankeval.cli.inputs import Reading, text_frame
from rankeval.cli.options import numbers, options, pairs
from rankeval.cli.output import Format, noted, print_result
from rankeval.errors import InvalidInput

online_app: typer.Typer = command_group(
    "What users do: click logs, interleaved rankings, A/B tests."
)


@online_app.command()
@options("LOG parts tz limit output", then="rankeval online rates {log}")
def checks(*, log: Path, output: Format, **arguments: Any) -> None:
    """Check a click log for repeated events, clicks on documents that were not shown, users who may be robots.

    Columns with usual names are found. Events that are left out are counted.

    For example:
        rankeval online checks clicks.csv
        rankeval online checks clicks.parquet --column docid=sku --tz Europe/Berlin
    """
    print_result(_read(log, clicks="skip", **arguments).checks(), output)


@online_app.command()
@options("LOG group_by parts tz limit output", then="rankeval online checks {log}")
def rates(*, log: Path, group_by: list[str], output: Format, **arguments: Any) -> None:
    """Print click rates with 95 % intervals by position, docid, qid, arm, or several of them.

    For example:
        rankeval online rates clicks.csv
        rankeval online rates clicks.csv --by arm --by position
    """
    print_result(_read(log, **arguments).click_rates(group_by), output)


@online_app.command()
@options("RUNS scheme depth salt impressions credits clicks unshown unit credit baseline test alpha RANKINGS output",
         runs=None, scheme="team_draft", depth=10,
         then="rankeval online interleave --credits CREDITS --clicks CLICKS")  # fmt: skip
def interleave(
    *, runs: list[Path] | None, reading: Reading, output: Format, **arguments: Any
) -> None:
    """Make one list of several rankings for each impression, or compare the rankings by the clicks on such lists.

    With runs, the command prints a credit record on each line, with the list to show. Each query is
    one impression, unless --impressions names them. With --credits and --clicks, it compares the
    rankings. The name of a ranking is that of its file without the suffix: bm25 for bm25.run.

    The schemes are balanced, team_draft, probabilistic and optimized.

    For example:
        rankeval online interleave bm25.run dense.run --salt secret
        rankeval online interleave --credits shown.jsonl --clicks clicks.csv
    """
    from rankeval.online import Interleaver, compare_interleaved

    design = {name: arguments.pop(name) for name in ("scheme", "depth", "salt")}
    impressions, records, clicks = map(arguments.pop, ("impressions", "credits", "clicks"))
    is_one_way = bool(runs) != (records is not None) and (records is None) == (clicks is None)
    if not is_one_way:
        raise InvalidInput("give runs to interleave, or --credits and --clicks to compare")
    if records is not None:
        salt = design["salt"] or None
        compared = compare_interleaved(records, text_frame(clicks), salt=salt, **arguments)
        print_result(compared, output)
        return
    rankings = {}
    for name, run in reading.rankings(runs or (), "stem"):
        frame = noted(run).to_frame()
        rows = frame.sort_values("score", ascending=False, kind="stable")
        rankings[name] = rows.groupby("qid", sort=False)["docid"].agg(list).to_dict()
    queries = dict.fromkeys(chain(*rankings.values()))
    shown: Any = [{"impression": query, "qid": query} for query in queries]
    if impressions is not None:
        table = text_frame(impressions).filter(["impression", "qid", "user"])
        known = table.map(str, na_action="ignore")
        has_columns = {"impression", "qid"} <= {*known}
        require(has_columns, "impressions", [*known], "the columns impression and qid")
        shown = known.to_dict("records")
    without = [
        f"{name}: {impression['qid']}"
        for name, ranking in rankings.items()
        for impression in shown
        if impression["qid"] not in ranking
    ]
    if without:
        missing = f"{count(len(without), 'ranking')} without a document"
        raise InvalidInput(f"{missing}: {few(without)}")
    for impression in shown:
        lists = {name: ranking[impression["qid"]] for name, ranking in rankings.items()}
        typer.echo(Interleaver(**design).show(lists, **impression).to_json())


@online_app.command()
@options(
    "FRAME unit arm metrics covariates control primary shares looks look alpha output",
    then="rankeval online ab {frame} --metric METRIC --format json",
)
def ab(
    *,
    frame: Path,
    unit: str,
    arm: str,
    looks: int | None,
    alpha: float,
    output: Format,
    **arguments: Any,
) -> None:
    """Test whether the arms of an A/B test differ: the numbers of users first, then metric by metric.

    FRAME has a row for each user, or several, which are summed. The exit code is 0 whether or not a
    difference is shown.

    For example:
        rankeval online ab users.csv --metric clicks --metric ctr=clicks/views
        rankeval online ab users.csv --metric clicks --control old --looks 4 --look 1
    """
    from rankeval.online import ab_test, looks_plan

    for name in ("metrics", "covariates"):
        arguments[name] = pairs(name, arguments[name])
    shares = numbers("shares", arguments.pop("shares"))
    plan: Any = looks_plan(looks, alpha=alpha) if looks is not None and looks > 0 else looks
    arguments |= {"unit": unit, "arm": arm, "shares": shares or None, "looks": plan, "alpha": alpha}
    print_result(ab_test(text_frame(frame, (unit, arm)), **arguments), output)


def _read(log: Path, *, parts: Mapping[str, str] | None, limit: Any, **times: Any) -> Any:
    from rankeval.online import ClickLog
    from rankeval.online.events import PARTS

    named = (parts or {}).items()
    columns: Any = {chosen("part of a click log", part, PARTS): name for part, name in named}
    return ClickLog.read(log, limits=limit, **times, **columns)
