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
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from typer import core
from typer.core import TyperCommand, TyperOption

from rankeval._checks import require
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


TEXT, TEXTS = str | None, list[str] | None
MEASURES = ["nDCG@10", "AP", "RR"]
COLLECTION = "qrels texts data qid label docid features part input_format parts grades limit"
"""Options that name a test collection: see `guard.CollectionFiles`."""
_GROUPS = {"READING": "parts grades systems limit", "RANKINGS": "parts systems limit"}
"""Options that a command takes together, as a `rankeval.cli.inputs.Reading`."""
_COLUMNS = {"qid": "query", "label": "relevance", "relevance": "relevance", "docid": "document"}
_SYSTEMS = (
    "Systems: runs for judgments; for rows a file with one score a line, "
    "or a table with a column score."
)

# The arguments and options of all commands, by type: key -> help, or (default, help). A key is the
# name; after it stand the flags, if they are others than the name, and after " =" the word for the
# value. A name in capitals is an argument, by its position, with the word for it in place of flags.
_REQUIRED: dict[Any, dict[str, str]] = {
    list[Path]: {
        "FILES TABLE|QRELS RUN": "A table, or judgments and a run.",
        "RESULTS FOLDER...": "Folders that rk.save wrote.",
        "RUNS RUN...": "Rankings, one file each; its name in the output is the file's, or NAME=PATH.",
        "JUDGED SHEETS|QRELS...": "A folder of sheets, or files of judgments.",
    },
    Path: {
        "QRELS": "Judgments in any format that rankeval evaluate lists, also .gz and .zst.",
        "FOLDER": "The folder of the sheets, which is made.",
        "DOCS": "Texts of the documents: TREC, Cranfield, JSON lines or DOCUMENT<tab>TEXT.",
        "QUERIES": "Texts of the queries: TREC topics, Cranfield, JSON lines or QUERY<tab>TEXT.",
        "human": "People's judgments, of some queries.",
        "machine": "The machine's judgments, of all queries.",
        "LOG": "A click log: CSV, TSV, Parquet or JSON lines, a row per shown item or per impression.",
        "FRAME": "A table of users with their arms: CSV or Parquet.",
    },
    str: {
        "DATA": "A Parquet data set of scored rows: a file, a folder or a URL (s3://...), of any size.",
        "PROJECT": "The guard's project.",
        "NAME": "A name for the collection.",
        "COLLECTION": "Name of the registered collection.",
        "REASON": "The reason, which goes on record.",
        "PLAN PLAN_ID": "The id that freeze printed, or its beginning.",
        "OTHER": "Folder, file or SQLAlchemy URL of the other ledger.",
        "TARGET": "Folder, file or SQLAlchemy URL of a ledger, which may be new.",
    },
    list[str]: {
        "SYSTEMS NAME=PATH...": _SYSTEMS,
        "judges --judge": "A judge; several times.",
        "metrics --metric -m": "A column, NAME=COLUMN or NAME=COLUMN/COLUMN; several times.",
    },
}
_OPTIONAL: dict[Any, dict[str, str]] = {
    str: {
        "CONFIG": "An experiment file, or a shipped one by name: quickstart, letor.",
        "WORDS NAME": "A part of a name, a title or a name in another tool; all if not given.",
        "CANDIDATE NAME=PATH": "The candidate; without one, the gate is declared only.",
        "ties": "Rows of equal score: expected, docid, stable, best, worst; else by the convention.",
        "missing": "Queries that a run lacks: empty, zero, skip or error; else by the convention.",
        "no_relevant": "Queries without a relevant document: zero, one, skip; else by the convention.",
        "score_dtype": "Precision in which scores are compared: float64, float32; else by the convention.",
        "baseline": "The system that the others are compared with; a run has the name of its file.",
        "norm": "Norm of the scores: min-max (default), max, sum, z-score, rank, borda or none.",
        "unjudged": "skip: a second table, of the rankings without their unjudged documents.",
        "experiment": "Name of the experiment on the server.",
        "of_run --run": "A run that is there, to write to; the same result may be sent again.",
        "uri": "The store, at its present address; by default the host's own setting.",
        "ledger": "Folder, file or SQLAlchemy URL of the ledger; else the one in force here.",
        "supersedes": "The registered collection that this one extends or relabels.",
        "other": "Another copy of the ledger, whose entries this one must hold.",
        "tz": "Zone of the times that have none, such as Europe/Berlin.",
        "control": "The arm that the others are compared with; else the first by name.",
        "primary": "The metric that decides; else all are one family.",
        "stem": "Cut words to their stems: english, german, ...; else words stay whole.",
        "stop": "Leave out the stop words of a list: english.",
        "ids --query-ids": "Count the queries in their order (order), or take their ids as written.",
        **{name: f"Column of the {noun}, in a table." for name, noun in _COLUMNS.items()},
        "part --part =COLUMN[=VALUE]": "Take the rows of a table whose column says test, or VALUE.",
        "input_format": "Format of the judgments or of the table; else content and suffix decide.",
        "qrels_format --qrels-format -R": "Format of QRELS, named below; else content and suffix decide.",
        "query_weight": "A column of weights, constant within a query.",
        "memory": "What all processes may take together, such as 1GB.",
        "folder": "Write the scores of each query there, as Parquet. The same command goes on after a kill.",
        "score": "Column of the score, in a table of scored rows.",
    },
    int: {
        "depth --depth -M": "Cut rankings off at this rank.",
        "collection_size --collection-size -N": "Number of documents in the collection.",
        "looks": "How many looks are planned, with equally many new users each.",
        "look": "With --looks: which of them this is, from 1.",
    },
    Path: {
        "SAVED FOLDER": "The folder with the results that rk.save wrote, at any depth.",
        "public --out": "The folder of the site: a new one, or that of an earlier site.",
        "groups": "CSV or Parquet file with qid and the group of each query, such as its conversation.",
        "judged": "The labels that there are: judged documents are left out.",
        "documents": "Texts of the documents, in any format of rk.text.read_texts.",
        "topics": "Texts of the queries: QUERY<tab>TEXT a line, BEIR's queries.jsonl, TREC topics, ...",
        "impressions": "A table of impressions: columns impression, qid and perhaps user are read.",
        "credits": "The records of all lists that were shown, one a line.",
        "clicks": "A table of clicks, CSV or Parquet: impression and docid.",
        "out": "Write it there, and not to stdout.",
        "qrels": "Judgments, in any format that rankeval evaluate reads.",
        "texts": "Texts of the judged queries, for the guard: QUERY<tab>TEXT a line, queries.jsonl, ...",
        "data": "Rows with labels: a table (--qid, --label), a LETOR file or a folder's test part.",
        "zscores --zscores -Z": "Print deviations from these reference scores (trec).",
    },
    float: {
        "constant --k": "The constant k of rrf; by default 60.",
        "effect": "The difference that you hope to find, to check the size.",
        "sd": "Standard deviation of differences between systems.",
    },
    list[str]: {
        "weights --weight =RUN=NUMBER": "The weight of a run, for weighted; several times.",
        "head": "A head noted earlier: finds entries that were cut off since.",
        "query": "A query by the id under which it was registered; several times.",
        "parts --column =PART=COLUMN": "A column by its own name, as in docid=sku; several times.",
        "grades --grade =WORD=NUMBER": "The grade of a label that is a word, as in Exact=2; several times.",
        "systems --system": "A system of a table that has several; several times.",
        "covariates --covariate": "The same of the time before: METRIC=COLUMN[/COLUMN]; several times.",
        "shares --share =ARM=SHARE": "The planned share of an arm; several times; else all equal.",
        "fields --field": "A field of the documents, such as title; several times.",
        "query_fields --query-field": "A field of the queries, such as desc; several times.",
        "features --feature --features": "A column to be a feature; all columns of numbers if none.",
        "limit --limit =NAME=VALUE": "Raise a limit for a large file that is sound: expansion, ...",
        "columns --column --columns": "A column that measures read, as in Revenue@5(column='price').",
        "settings --set =KEY=VALUE": "Replace a setting, as in --set cv.n_splits=10.",
    },
    list[Path]: {
        "report": "A report, an opened comparison as JSON, or a list of heads; the ledger must still hold these.",
    },
}
_SWITCHES = {
    "complete --complete -c": "Count queries that a run lacks: as 0 in trec_eval 9, else as empty.",
    "exclude_self --exclude-self": "Leave out documents that are their own query (BEIR's Quora, ArguAna).",
    "judged_only --judged-only -J": "Take unjudged documents out.",
    "fresh --fresh": "Test on the queries that nobody has looked at; else on all.",
    "everybody --all-projects": "List the looks of other projects too.",
    "per_query --per-query -q": "Print every query too.",
    "no_summary --no-summary -n": "Print queries only (trec).",
    "check --check": "Check the file, its data and the guard, and run nothing.",
    "with_queries --queries": "Show ids of queries, and notes, which may name queries.",
    "strict --strict": "Exit with code 1 if a run cannot be read; the site is written all the same.",
    "keys --keys": "Print all keys of an experiment file, and run nothing.",
    "verbose --verbose": "Print the whole comparison too, and the digests of plan and ledger.",
}
_PRESET: dict[Any, dict[str, tuple[Any, str]]] = {
    list[str]: {
        "measures --measure -m": (MEASURES, "A measure, such as nDCG@10; several times."),
        "secondary": ([], "A measure to show besides; several times."),
        "group_by --by": (["position"], "A column to group by; several times."),
    },
    str: {
        "measure --measure -m": ("nDCG@10", "The measure that decides."),
        "convention": (
            "rankeval",
            "How judgments and ranking are joined: rankeval, trec_eval-9.0.8, ...",
        ),
        "test": ("t", "Significance test, by a name of rankeval tests."),
        "correction": ("holm", "Correction for many comparisons, by a name of rankeval tests."),
        "claim": ("difference", "What to show: difference, better, not_worse or equivalent."),
        "family": (
            "all",
            "The comparisons to correct for together: all, or those within one measure (measure).",
        ),
        "host": ("mlflow", "An installed host, as rankeval doctor lists them."),
        "name": ("gate", "Name of the gate."),
        "baseline_name": ("baseline", "What the baseline of a new gate is called in records."),
        "by --order": ("depth", "The order of the documents: depth, move_to_front or random."),
        "sheet_format --format": ("csv", "The form of a sheet: csv or jsonl."),
        "levels --grades": ("nominal", "How grades are taken: nominal, ordinal or interval."),
        "salt": (
            "",
            "The text from which all chance follows, and which seals the records; keep it secret.",
        ),
        "unshown": (
            "error",
            "Clicks that no record explains: error, or skip to leave them out and count them.",
        ),
        "credit": (
            "share",
            "The credit of an impression: the share of its clicks, or the sum over its clicks.",
        ),
        "unit": (
            "user",
            "What is sampled: user, query or impression; of a table, the name of its column.",
        ),
        "arm": ("arm", "The column of the arms."),
        "scheme": ("ltc.ltc", "The scheme, by its name as above."),
        "method": ("rrf", "The method, by its name as below."),
    },
    int: {
        "level --level -l": (1, "Lowest label that is relevant."),
        "n_resamples --resamples": (
            9999,
            "Number of resamples, for tests and corrections that resample.",
        ),
        "rng --seed": (0, "Seed of the resamples."),
        "budget": (20, "Number of decisions."),
        "k": (1000, "How many documents to find for each query, at most."),
        "queries": (10, "How many queries."),
        "n_jobs": (1, "Number of processes; -1 for all cores."),
    },
    float: {
        "margin": (0.0, "Margin of the claim, in units of the measure."),
        "alpha": (0.05, "Level of the tests; the intervals have the level 1 - alpha."),
        "minutes": (5.0, "Minutes to judge a document."),
        "overlap": (0.1, "The share of the documents that every judge gets."),
    },
    list[float]: {
        "scale --label": ([0, 1], "A label that a judge may give; several times."),
    },
    Path: {
        "into": (Path(), "The root of the repository."),
    },
    Format: {
        "output --format": (Format.table, "How to print it."),
    },
}


def _rows() -> Iterator[tuple[str, tuple[Any, Any, str]]]:
    """Yield the key of each row, and its type, default and help."""
    for default, table in ((..., _REQUIRED), (None, _OPTIONAL), (False, {bool: _SWITCHES})):
        for kind, texts in table.items():
            for key, text in texts.items():
                yield key, (kind, default, text)
    for kind, rows in _PRESET.items():
        for key, (preset, text) in rows.items():
            yield key, (kind, preset, text)


def _by_name() -> dict[str, tuple[Any, ...]]:
    options = {}
    for key, row in _rows():
        name, _, words = key.partition(" ")
        options[name] = (*row, words)
    return options


OPTIONS = _by_name()
"""Name -> (type, default, help, words); a required one has the default `...`, an optional one None."""

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

_FILES = {"truth": "qrels", "ranking": "runs", "saved": "saved"}
"""Argument of an error -> the argument of a command, which takes files or a folder."""


def options(names: str, **changed: Any) -> Callable[[_Command], _Command]:
    """Give a command arguments and options of the table."""

    def decorated(command: _Command) -> _Command:
        group = next((group for group in _GROUPS if group in names.split()), "")
        listed = names.replace(group, _GROUPS.get(group, ""))
        parameters = [_parameter(name, changed) for name in listed.split()]

        @wraps(command)
        def called(**values: Any) -> None:
            if "limit" in values:
                from rankeval.io.opening import limits_of

                values["limit"] = limits_of(values["limit"] or ())
            if values.get("parts"):
                values["parts"] = pairs("parts", values["parts"])
            if values.get("grades"):
                values["grades"] = numbers("grades", values["grades"])
            if group:
                from rankeval.cli.inputs import Reading

                taken = {name: values.pop(name) for name in _GROUPS[group].split()}
                values["reading"] = Reading(**taken)
            if values.get("groups"):
                from rankeval.cli.inputs import by_query

                values["groups"] = by_query(values["groups"], "groups")
            command(**values)

        # Typer reads the signature.
        called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        called.__annotations__ = {option.name: option.annotation for option in parameters}
        return called

    return decorated


def pairs(option: str, texts: list[str] | None) -> dict[str, str]:
    """Return the values of an option by their names; NAME alone is its own value."""
    # The word of a grade may have a sign of equality, its number has none.
    parted = [
        text.rpartition("=") if option == "grades" and "=" in text else text.partition("=")
        for text in texts or ()
    ]
    named = {name: value or name for name, _, value in parted}
    require(all(named) and len(named) == len(texts or ()), option, texts, "names that differ")
    return named


def numbers(option: str, texts: list[str] | None) -> dict[str, float]:
    """Return the numbers of an option by their names."""
    from rankeval.io.opening import number_of

    named = pairs(option, texts).items()
    return {name: number_of(number, f"--{option.rstrip('s')} {name}") for name, number in named}


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
