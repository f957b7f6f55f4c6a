"""The arguments and options of all commands: one table, so that each means the same everywhere.

An option has the name of the argument of Python that it becomes, also where its flag is another
word (``rng`` is ``--seed``). So a command hands its options on as they are, and `in_options` finds
the option that an error is about by the error's argument. The defaults are those of Python; they
stand here again because help must not import NumPy.

A help text is text, also that of a plugin: Typer reads it as markup of Rich, which takes
``[/COLUMN]`` for a tag that was never opened, so `literal` escapes it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from typer import core
from typer.core import TyperCommand, TyperOption

from rankeval._visible import visible
from rankeval.errors import LimitExceeded, RankevalError

_Command = Callable[..., None]
_Helped = TypeVar("_Helped")


# Classes and not calls of StrEnum: Pyright, and so a user's program, knows the members of no other
# form.
class Format(StrEnum):
    """The forms of a table."""

    table, json, csv = "table", "json", "csv"


class EvaluationFormat(StrEnum):
    """The forms of scores."""

    table, json, csv, trec = "table", "json", "csv", "trec"


class ListFormat(StrEnum):
    """The forms of a list; markdown is the guide to what it lists."""

    table, json, csv, markdown = "table", "json", "csv", "markdown"


class KeysFormat(StrEnum):
    """The forms of the reference of keys."""

    text, markdown = "text", "markdown"


TEXT, TEXTS, FILE = str | None, list[str] | None, Path | None
MEASURES = ["nDCG@10", "AP", "RR"]
COLLECTION = "qrels texts data qid label docid features part input_format limit"
"""Options that name a test collection: see `guard.CollectionFiles`."""
_COLUMNS = {"qid": "query", "label": "relevance", "relevance": "relevance", "docid": "document"}
_SYSTEMS = (
    "Systems: runs for judgments; for rows a file with one score a line, "
    "or a table with a column score."
)

# name: (type, default, help, flags); the flag is the name if none is given. In capitals: an
# argument, by its position, with the default ... if it must be given, and with the word for it in
# place of the flags. After flags and " =" stands the word for the value.
OPTIONS: dict[str, tuple[Any, ...]] = {
    "CONFIG": (TEXT, None, "An experiment file, or a shipped one by name: quickstart, letor."),
    "FILES": (list[Path], ..., "A table, or judgments and a run.", "TABLE|QRELS RUN"),
    "RESULTS": (list[Path], ..., "Folders that rk.save wrote.", "FOLDER..."),
    "QRELS": (
        Path,
        ...,
        "Judgments in any format that rankeval evaluate lists, also .gz and .zst.",
    ),
    "RUNS": (
        list[Path],
        ...,
        "Rankings, one file each; its name in the output is the file's, or NAME=PATH.",
        "RUN...",
    ),
    "DATA": (
        str,
        ...,
        "A Parquet data set of scored rows: a file, a folder or a URL (s3://...), of any size.",
    ),
    "WORDS": (
        TEXT,
        None,
        "A part of a name, a title or a name in another tool; all if not given.",
        "NAME",
    ),
    "PROJECT": (str, ..., "The guard's project."),
    "NAME": (str, ..., "A name for the collection."),
    "COLLECTION": (str, ..., "Name of the registered collection."),
    "REASON": (str, ..., "The reason, which goes on record."),
    "SYSTEMS": (list[str], ..., _SYSTEMS, "NAME=PATH..."),
    "CANDIDATE": (
        TEXT,
        None,
        "The candidate; without one, the gate is declared only.",
        "NAME=PATH",
    ),
    "PLAN": (str, ..., "The id that freeze printed, or its beginning.", "PLAN_ID"),
    "OTHER": (str, ..., "Folder, file or SQLAlchemy URL of the other ledger."),
    "TARGET": (str, ..., "Folder, file or SQLAlchemy URL of a ledger, which may be new."),
    "FOLDER": (Path, ..., "The folder of the sheets, which is made."),
    "JUDGED": (list[Path], ..., "A folder of sheets, or files of judgments.", "SHEETS|QRELS..."),
    "DOCS": (
        Path,
        ...,
        "Texts of the documents: TREC, Cranfield, JSON lines or DOCUMENT<tab>TEXT.",
    ),
    "QUERIES": (
        Path,
        ...,
        "Texts of the queries: TREC topics, Cranfield, JSON lines or QUERY<tab>TEXT.",
    ),
    "measures": (list[str], MEASURES, "A measure, such as nDCG@10; several times.", "--measure -m"),
    "measure": (str, "nDCG@10", "The measure that decides.", "--measure -m"),
    "secondary": (list[str], [], "A measure to show besides; several times."),
    # How rankings are scored.
    "convention": (
        str,
        "rankeval",
        "How judgments and ranking are joined: rankeval, trec_eval-9.0.8, ...",
    ),
    "ties": (
        TEXT,
        None,
        "Rows of equal score: expected, docid, stable, best, worst; else by the convention.",
    ),
    "missing": (
        TEXT,
        None,
        "Queries that a run lacks: empty, zero, skip or error; else by the convention.",
    ),
    "no_relevant": (
        TEXT,
        None,
        "Queries without a relevant document: zero, one, skip; else by the convention.",
    ),
    "score_dtype": (
        TEXT,
        None,
        "Precision in which scores are compared: float64, float32; else by the convention.",
    ),
    "complete": (
        bool,
        False,
        "Count queries that a run lacks: as 0 in trec_eval 9, else as empty.",
        "--complete -c",
    ),
    "level": (int, 1, "Lowest label that is relevant.", "--level -l"),
    "depth": (int | None, None, "Cut rankings off at this rank.", "--depth -M"),
    "judged_only": (bool, False, "Take unjudged documents out.", "--judged-only -J"),
    "collection_size": (
        int | None,
        None,
        "Number of documents in the collection.",
        "--collection-size -N",
    ),
    # How rankings are compared.
    "baseline": (
        TEXT,
        None,
        "The system that the others are compared with; a run has the name of its file.",
    ),
    "test": (str, "t", "Significance test, by a name of rankeval tests."),
    "correction": (str, "holm", "Correction for many comparisons, by a name of rankeval tests."),
    "claim": (str, "difference", "What to show: difference, better, not_worse or equivalent."),
    "margin": (float, 0.0, "Margin of the claim, in units of the measure."),
    "family": (
        str,
        "all",
        "The comparisons to correct for together: all, or those within one measure (measure).",
    ),
    "alpha": (float, 0.05, "Level of the tests; the intervals have the level 1 - alpha."),
    "groups": (
        FILE,
        None,
        "CSV or Parquet file with qid and the group of each query, such as its conversation.",
    ),
    "unjudged": (
        TEXT,
        None,
        "skip: a second table, of the rankings without their unjudged documents.",
    ),
    "n_resamples": (
        int,
        9999,
        "Number of resamples, for tests and corrections that resample.",
        "--resamples",
    ),
    "rng": (int, 0, "Seed of the resamples.", "--seed"),
    # The host.
    "host": (str, "mlflow", "An installed host, as rankeval doctor lists them."),
    "experiment": (TEXT, None, "Name of the experiment on the server."),
    "of_run": (
        TEXT,
        None,
        "A run that is there, to write to; the same result may be sent again.",
        "--run",
    ),
    "uri": (TEXT, None, "The store, at its present address; by default the host's own setting."),
    # The guard.
    "ledger": (
        TEXT,
        None,
        "Folder, file or SQLAlchemy URL of the ledger; else the one in force here.",
    ),
    "supersedes": (TEXT, None, "The registered collection that this one extends or relabels."),
    "effect": (float | None, None, "The difference that you hope to find, to check the size."),
    "sd": (float | None, None, "Standard deviation of differences between systems."),
    "fresh": (
        bool,
        False,
        "Test on the queries that nobody has looked at; else on all.",
        "--fresh",
    ),
    "budget": (int, 20, "Number of decisions."),
    "name": (str, "gate", "Name of the gate."),
    "baseline_name": (str, "baseline", "What the baseline of a new gate is called in records."),
    "everybody": (bool, False, "List the looks of other projects too.", "--all-projects"),
    "head": (TEXTS, None, "A head noted earlier: finds entries that were cut off since."),
    "report": (
        list[Path] | None,
        None,
        "A report, an opened comparison as JSON, or a list of heads; the ledger must still hold these.",
    ),
    "other": (TEXT, None, "Another copy of the ledger, whose entries this one must hold."),
    "query": (TEXTS, None, "A query by the id under which it was registered; several times."),
    # Judging.
    "by": (str, "depth", "The order of the documents: depth, move_to_front or random.", "--order"),
    "judged": (FILE, None, "The labels that there are: judged documents are left out."),
    "minutes": (float, 5.0, "Minutes to judge a document."),
    "judges": (list[str], ..., "A judge; several times.", "--judge"),
    "overlap": (float, 0.1, "The share of the documents that every judge gets."),
    "documents": (FILE, None, "Texts of the documents, in any format of rk.text.read_texts."),
    "topics": (
        FILE,
        None,
        "Texts of the queries: QUERY<tab>TEXT a line, BEIR's queries.jsonl, TREC topics, ...",
    ),
    "scale": (list[float], [0, 1], "A label that a judge may give; several times.", "--label"),
    "sheet_format": (str, "csv", "The form of a sheet: csv or jsonl.", "--format"),
    "grades": (str, "nominal", "How grades are taken: nominal, ordinal or interval."),
    "human": (Path, ..., "People's judgments, of some queries."),
    "machine": (Path, ..., "The machine's judgments, of all queries."),
    # Online.
    "LOG": (
        Path,
        ...,
        "A click log: CSV, TSV, Parquet or JSON lines, a row per shown item or per impression.",
    ),
    "FRAME": (Path, ..., "A table of users with their arms: CSV or Parquet."),
    "parts": (
        TEXTS,
        None,
        "A column by its own name, as in docid=sku; several times.",
        "--column =PART=COLUMN",
    ),
    "tz": (TEXT, None, "Zone of the times that have none, such as Europe/Berlin."),
    "group_by": (list[str], ["position"], "A column to group by; several times.", "--by"),
    "salt": (
        str,
        "",
        "The text from which all chance follows, and which seals the records; keep it secret.",
    ),
    "impressions": (
        FILE,
        None,
        "A table of impressions: columns impression, qid and perhaps user are read.",
    ),
    "credits": (FILE, None, "The records of all lists that were shown, one a line."),
    "clicks": (FILE, None, "A table of clicks, CSV or Parquet: impression and docid."),
    "unshown": (
        str,
        "error",
        "Clicks that no record explains: error, or skip to leave them out and count them.",
    ),
    "credit": (
        str,
        "share",
        "The credit of an impression: the share of its clicks, or the sum over its clicks.",
    ),
    "unit": (
        str,
        "user",
        "What is sampled: user, query or impression; of a table, the name of its column.",
    ),
    "arm": (str, "arm", "The column of the arms."),
    "metrics": (
        list[str],
        ...,
        "A column, NAME=COLUMN or NAME=COLUMN/COLUMN; several times.",
        "--metric -m",
    ),
    "control": (TEXT, None, "The arm that the others are compared with; else the first by name."),
    "primary": (TEXT, None, "The metric that decides; else all are one family."),
    "covariates": (
        TEXTS,
        None,
        "The same of the time before: METRIC=COLUMN[/COLUMN]; several times.",
        "--covariate",
    ),
    "shares": (
        TEXTS,
        None,
        "The planned share of an arm; several times; else all equal.",
        "--share =ARM=SHARE",
    ),
    "looks": (int | None, None, "How many looks are planned, with equally many new users each."),
    "look": (int | None, None, "With --looks: which of them this is, from 1."),
    # Texts.
    "scheme": (str, "ltc.ltc", "The scheme, by its name as above."),
    "k": (int, 1000, "How many documents to find for each query, at most."),
    "stem": (TEXT, None, "Cut words to their stems: english, german, ...; else words stay whole."),
    "stop": (TEXT, None, "Leave out the stop words of a list: english."),
    "fields": (TEXTS, None, "A field of the documents, such as title; several times.", "--field"),
    "query_fields": (
        TEXTS,
        None,
        "A field of the queries, such as desc; several times.",
        "--query-field",
    ),
    "ids": (
        TEXT,
        None,
        "Count the queries in their order (order), or take their ids as written.",
        "--query-ids",
    ),
    "queries": (int, 10, "How many queries."),
    "out": (FILE, None, "Write it there, and not to stdout."),
    # A test collection in files.
    "qrels": (FILE, None, "Judgments, in any format that rankeval evaluate reads."),
    "texts": (
        FILE,
        None,
        "Texts of the judged queries, for the guard: QUERY<tab>TEXT a line, queries.jsonl, ...",
    ),
    "data": (
        FILE,
        None,
        "Rows with labels: a table (--qid, --label), a LETOR file or a folder's test part.",
    ),
    **{name: (TEXT, None, f"Column of the {noun}, in a table.") for name, noun in _COLUMNS.items()},
    "features": (
        TEXTS,
        None,
        "A column to be a feature; all columns of numbers if none.",
        "--feature --features",
    ),
    "part": (
        TEXT,
        None,
        "Take the rows of a table whose column says test, or VALUE.",
        "--part =COLUMN[=VALUE]",
    ),
    "input_format": (
        TEXT,
        None,
        "Format of the judgments or of the table; else content and suffix decide.",
    ),
    # What is read and printed, and how.
    "qrels_format": (
        TEXT,
        None,
        "Format of QRELS, named below; else content and suffix decide.",
        "--qrels-format -R",
    ),
    "limit": (
        TEXTS,
        None,
        "Raise a limit for a large file that is sound: expansion, ...",
        "--limit =NAME=VALUE",
    ),
    "per_query": (bool, False, "Print every query too.", "--per-query -q"),
    "no_summary": (bool, False, "Print queries only (trec).", "--no-summary -n"),
    "zscores": (FILE, None, "Print deviations from these reference scores (trec).", "--zscores -Z"),
    "query_weight": (TEXT, None, "A column of weights, constant within a query."),
    "columns": (
        TEXTS,
        None,
        "A column that measures read, as in Revenue@5(column='price').",
        "--column --columns",
    ),
    "memory": (TEXT, None, "What all processes may take together, such as 1GB."),
    "n_jobs": (int, 1, "Number of processes; -1 for all cores."),
    "folder": (
        TEXT,
        None,
        "Write the scores of each query there, as Parquet. The same command goes on after a kill.",
    ),
    "settings": (TEXTS, None, "Replace a setting, as in --set cv.n_splits=10.", "--set =KEY=VALUE"),
    "check": (bool, False, "Check the file, its data and the guard, and run nothing.", "--check"),
    # The first files.
    "score": (TEXT, None, "Column of the score, in a table of scored rows."),
    "into": (Path, Path(), "The root of the repository."),
    "keys": (bool, False, "Print all keys of an experiment file, and run nothing.", "--keys"),
    "output": (Format, Format.table, "How to print it.", "--format"),
    "verbose": (
        bool,
        False,
        "Print the whole comparison too, and the digests of plan and ledger.",
        "--verbose",
    ),
}

_REMEDIES = {
    "depth": "choose --ties docid or --ties stable with it",
    "missing": "--missing empty scores empty rankings there, --missing skip leaves them out",
    "collection_size": "give the size by -N, "
    "or write it with the measure, as in 'Accuracy(collection_size=1000)'",
    "ties": "choose --ties docid",
    "columns": "name it by --column of rankeval evaluate-dataset; "
    "judgments and a run have no rows with columns",
    "groups": "its file has a column qid, "
    "and a column with the group of each query, such as its conversation",
    "first": "to give it to this version without a comparison: --first",
}
"""Argument of an error -> what to do about it in a shell, where the library's own words are Python."""

_FILES = {"truth": "qrels", "ranking": "runs"}
"""Argument of an error -> the argument of a command, which takes files."""


def options(names: str, **changed: Any) -> Callable[[_Command], _Command]:
    """Give a command arguments and options of the table."""

    def decorated(command: _Command) -> _Command:
        parameters = [_parameter(name, changed) for name in names.split()]

        @wraps(command)
        def called(**values: Any) -> None:
            if "limit" in values:
                from rankeval.io.opening import limits_of

                values["limit"] = limits_of(values["limit"] or ())
            if values.get("groups"):
                from rankeval.cli.inputs import by_query

                values["groups"] = by_query(values["groups"], "groups")
            command(**values)

        # Typer reads the signature.
        called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        called.__annotations__ = {option.name: option.annotation for option in parameters}
        return called

    return decorated


def _parameter(name: str, changed: Mapping[str, Any]) -> inspect.Parameter:
    kind, default, text, *words = OPTIONS[name]
    keyword = name.lower()
    default = changed.get(keyword, default)
    kind = type(default) if isinstance(default, StrEnum) else kind
    flags, _, metavar = "".join(words).partition(" =")
    if name.isupper():
        declared: Any = typer.Argument(help=text, metavar="".join(words) or name)
    else:
        declared = typer.Option(*flags.split(), help=text, metavar=metavar or None)
    typed = Annotated[kind if default is not None else kind | None, declared]  # type: ignore[valid-type]
    required = inspect.Parameter.empty
    return inspect.Parameter(
        keyword,
        inspect.Parameter.KEYWORD_ONLY,
        default=required if default is ... else default,
        annotation=typed,
    )


def in_options(error: RankevalError, command: Any) -> RankevalError:
    """Return an error of a command with its option for the argument, and a remedy for a shell."""
    parameters = command.params
    flags = {
        option.name: option.opts[0] for option in parameters if isinstance(option, TyperOption)
    }
    names = {parameter.name: parameter.metavar or parameter.name for parameter in parameters}
    flags |= {role: names[name] for role, name in _FILES.items() if name in names}
    if isinstance(error, LimitExceeded) and ("limit" in flags or command.name == "run"):
        setting = f"--limit {error.limit}=..."
        if "limit" not in flags:
            setting = f"data.limits.{error.limit} in the experiment file"
        return error.having(remedy=f"if the file is sound, raise it: {setting}")
    if command.name == "run":
        # Its errors name keys of the experiment file, which may have the names of options.
        return error
    name, bracket, key = (error.argument or "").partition("[")
    problem, remedy = error.problem, error.remedy
    for argument, flag in flags.items():
        by_name = re.compile(rf"\b{argument}=(?=[ '\"])")
        problem = problem and by_name.sub(f"{flag} ", problem)
        remedy = remedy and by_name.sub(f"{flag} ", remedy)
    if name not in flags:
        return error.having(problem=problem, remedy=remedy)
    remedy = remedy and _REMEDIES.get(name, remedy)
    return error.having(problem=problem, remedy=remedy, argument=f"{flags[name]}{bracket}{key}")


def literal(helped: _Helped) -> _Helped:
    """Return a copy of a command or a parameter of Click whose help prints as it is written."""
    shown: Any = copy(helped)
    for field in ("help", "short_help", "epilog"):
        setattr(shown, field, _literal(getattr(helped, field, None)))
    shown.params = [literal(parameter) for parameter in getattr(helped, "params", ())]
    escaped: _Helped = shown
    return escaped


def _literal(text: str | None) -> str | None:
    shown = text and visible(text, keep="\n")
    # Without Rich, help is plain.
    if not shown or "[" not in shown or not getattr(core, "HAS_RICH", True):
        return shown
    from rich.markup import escape

    return escape(shown)


def ending_with(lines: Callable[[], Iterable[str]]) -> type[TyperCommand]:
    """Make a class of commands whose help ends with lines that are computed when it is shown."""

    class Listing(TyperCommand):
        def format_help(self, ctx: Any, formatter: Any) -> None:
            self.epilog = _literal("\n\n".join(lines()))
            super().format_help(ctx, formatter)

    return Listing
