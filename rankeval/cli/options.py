"""The arguments and options of all commands: one table, so that each means the same everywhere.

An option has the name of the argument of Python that it becomes, also where its flag is another
word (``rng`` is ``--seed``). So a command hands its options on as they are, and `in_options` finds
the option that an error is about by the error's argument. The defaults are those of Python,
repeated here because help must not import NumPy.

A help text is text, also that of a plugin: Typer reads it as markup of Rich, which takes
``[/COLUMN]`` for a tag that was never opened, so `literal` escapes it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from enum import StrEnum
from functools import partial, wraps
from inspect import cleandoc
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from typer import core
from typer.core import TyperArgument, TyperCommand, TyperOption

from rankeval._checks import require
from rankeval._visible import visible
from rankeval.cli.output import FOR_PEOPLE, WIDE, Format, suggest
from rankeval.errors import LimitExceeded, RankevalError

_Command = Callable[..., Mapping[str, Any] | None]
_Helped = TypeVar("_Helped")


TEXT, TEXTS = str | None, list[str] | None
MEASURES = ["nDCG@10", "AP", "RR"]
COLLECTION = "qrels texts data qid label docid features part input_format parts grades limit"
"""Options that name a test collection: see `guard.CollectionFiles`."""
_GROUPS = {"READING": "parts grades systems limit", "RANKINGS": "parts systems limit"}
"""Options that a command takes together, as a `rankeval.cli.inputs.Reading`."""
_COLUMNS = {"qid": "query", "label": "relevance", "relevance": "relevance", "docid": "document"}
_SYSTEMS = (
    "The systems: runs, if the collection is judgments. If it is rows, files with one score a line, "
    "or tables with a column score."
)

# The arguments and options of all commands, by type: key -> help, or (default, help). A key is the
# name; after it stand the flags, if they are others than the name, and after " =" the word for the
# value. A name in capitals is an argument, by its position, with the word for it in place of flags.
_REQUIRED: dict[Any, dict[str, str]] = {
    list[Path]: {
        "FILES TABLE|QRELS RUN": "A table, or judgments and a run.",
        "RESULTS FOLDER...": "Folders that rk.save wrote.",
        "RUNS RUN...": "Rankings, one file each. A run is called as its file is, or give NAME=PATH.",
        "JUDGED SHEETS|QRELS...": "A folder of sheets, or files of judgments.",
    },
    Path: {
        "QRELS": "Judgments, in any format that `rankeval evaluate --help` lists, also as .gz or .zst.",
        "FOLDER": "A new folder for the sheets.",
        "DOCS": "Texts of the documents: TREC, Cranfield, JSON lines or DOCUMENT<tab>TEXT.",
        "QUERIES": "Texts of the queries: TREC topics, Cranfield, JSON lines or QUERY<tab>TEXT.",
        "human": "Judgments by people, of some queries.",
        "machine": "Judgments by the machine, of all queries.",
        "LOG": "A click log (CSV, TSV, Parquet, JSON lines): a row per item shown or impression.",
        "FRAME": "A table of users and their arms, as CSV or Parquet.",
    },
    str: {
        "DATA": "A Parquet data set of scored rows: a file, a folder or a URL (s3://...), of any size.",
        "PROJECT": "The guard's project.",
        "NAME": "A name for the collection.",
        "COLLECTION": "Name of the registered collection.",
        "REASON": "The reason, for the record.",
        "PLAN PLAN_ID": "The id that `freeze` printed, or the first characters of it.",
        "OTHER": "The other ledger: a folder, a file or a SQLAlchemy URL.",
        "TARGET": "The ledger to add to, which may be new: a folder, a file or a SQLAlchemy URL.",
    },
    list[str]: {
        "SYSTEMS NAME=PATH...": _SYSTEMS,
        "judges --judge": "Name of a judge. May be repeated.",
        "metrics --metric -m": "A metric: COLUMN, NAME=COLUMN or NAME=COLUMN/COLUMN. May be repeated.",
    },
}
_OPTIONAL: dict[Any, dict[str, str]] = {
    str: {
        "CONFIG": "An experiment file, or the name of a shipped one. Without it, the shipped ones are listed.",
        "WORDS NAME": "Part of a name, of a title, or of the name in another tool. Without it, all are listed.",
        "CANDIDATE NAME=PATH": "The candidate. Without it, the gate is only declared.",
        "ties": "Order of equal scores: expected, docid, stable, best or worst. Default: by the convention.",
        "missing": "Queries that a run lacks: empty, zero, skip or error. Default: by the convention.",
        "no_relevant": "Queries without a relevant document: zero, one or skip. Default: by the convention.",
        "score_dtype": "Precision of scores: float64 or float32. Default: by the convention.",
        "baseline": "The system to compare the others with: the name of a file, or of a run.",
        "norm": "Norm of the scores: min-max (default), max, sum, z-score, rank, borda or none.",
        "unjudged": "skip adds a table of the rankings without their unjudged documents.",
        "experiment": "Name of the experiment.",
        "of_run --run": "An existing run to write to. The same result may be sent again.",
        "uri": "Address of the store. Default: the host's own setting.",
        "ledger": "The ledger: a folder, a file or a SQLAlchemy URL. Default: see `rankeval doctor`.",
        "supersedes": "The registered collection that this one extends or relabels.",
        "other": "Another copy of the ledger. Each of its entries must be in this one.",
        "tz": "Time zone of times without one, such as Europe/Berlin.",
        "control": "The arm to compare the others with. Default: the first by name.",
        "primary": "The metric that decides. Without it, the metrics are corrected for together.",
        "stem": "Stemmer, such as english or german. Default: words are not stemmed.",
        "stop": "List of stop words to leave out, such as english.",
        "ids --query-ids": "Ids of the queries: order numbers them from 1. Default: as written in the file.",
        **{name: f"Column of the {noun}." for name, noun in _COLUMNS.items()},
        "part --part =COLUMN[=VALUE]": "Use the rows of a table whose COLUMN is test, or is VALUE.",
        "input_format": "Format of the judgments or the table. Default: by content and suffix.",
        "qrels_format --qrels-format -R": "Format of QRELS (trec_eval's -R), named below. Default: by its content.",
        "query_weight": "Column of the weight of the query.",
        "memory": "Memory for all processes together, such as 1GB.",
        "folder": "Folder for the scores of each query. Repeat an interrupted command to go on.",
        "score": "Column of the score.",
    },
    int: {
        "depth --depth -M": "Cut rankings off at this rank (trec_eval's -M).",
        "collection_size --collection-size -N": "Number of documents in the collection (trec_eval's -N).",
        "looks": "Number of planned looks, each with the same number of new users.",
        "look": "The number of this look, from 1 (with --looks).",
    },
    Path: {
        "SAVED FOLDER": "A folder with results that rk.save wrote, at any depth.",
        "public --out": "Folder of the site: a new one, or the folder of an earlier site.",
        "groups": "CSV or Parquet file with qid and the group of each query, such as its conversation.",
        "judged": "Existing judgments. Documents that are judged are left out.",
        "documents": "Texts of the documents, in any format that rk.text.read_texts reads.",
        "topics": "Texts of the queries: lines of QUERY<tab>TEXT, BEIR's queries.jsonl, TREC topics, ...",
        "impressions": "A table of impressions with the columns impression, qid and, if known, user.",
        "credits": "The credit records of all lists that were shown, one a line.",
        "clicks": "A table of clicks with the columns impression and docid, as CSV or Parquet.",
        "out": "Output file (default: stdout).",
        "qrels": "Judgments, in any format that `rankeval evaluate` reads.",
        "texts": "Texts of the queries, for the guard: lines of QUERY<tab>TEXT, queries.jsonl, ...",
        "data": "Rows with labels: a table (with --qid, --label), a LETOR file, or the test part of a folder.",
        "zscores --zscores -Z": "Print z-scores by these reference scores (trec_eval's -Z).",
    },
    float: {
        "constant --k": "The constant k of rrf (default: 60).",
        "effect": "The difference that you hope to find, to check the number of queries.",
        "sd": "Standard deviation of the differences between systems.",
    },
    list[str]: {
        "weights --weight =RUN=NUMBER": "The weight of a run, for the method weighted. May be repeated.",
        "head": "A head that you noted earlier, to find entries removed since. May be repeated.",
        "query": "A query, by the id under which it was registered. May be repeated.",
        "parts --column =PART=COLUMN": "Column of a part, such as docid=sku. May be repeated.",
        "grades --grade =WORD=NUMBER": "Grade of a label that is a word, such as Exact=2. May be repeated.",
        "systems --system": "A system to use, if the table has several. May be repeated.",
        "covariates --covariate": "The metric before the test: METRIC=COLUMN[/COLUMN]. May be repeated.",
        "shares --share =ARM=SHARE": "The planned share of an arm. May be repeated. Default: equal shares.",
        "fields --field": "A field of the documents, such as title. May be repeated.",
        "query_fields --query-field": "A field of the queries, such as desc. May be repeated.",
        "features --feature --features": "Feature column. May be repeated. Default: all columns of numbers.",
        "limit --limit =NAME=VALUE": "Raise a safety limit for a large file, such as expansion.",
        "columns --column --columns": "A column that a measure reads, as in Gain@5(column='price'). May be repeated.",
        "settings --set =KEY=VALUE": "Replace a setting, as in --set cv.n_splits=10. May be repeated.",
    },
    list[Path]: {
        "report": "A report, a comparison as JSON, or a list of heads that the ledger must still contain.",
    },
}
_SWITCHES = {
    "complete --complete -c": "Count queries that a run lacks: as 0 by trec_eval 9, else as empty (trec_eval's -c).",
    "exclude_self --exclude-self": "Leave out a document with the id of its query (for BEIR's Quora and ArguAna).",
    "judged_only --judged-only -J": "Leave out unjudged documents (trec_eval's -J).",
    "fresh --fresh": "Test only on queries that nobody has looked at yet.",
    "everybody --all-projects": "List the looks of other projects too.",
    "per_query --per-query -q": "Print the scores of every query too (trec_eval's -q).",
    "no_summary --no-summary -n": "Print queries only (trec_eval's -n).",
    "check --check": "Check the file, its data and the guard, without a run.",
    "with_queries --queries": "Show query ids, and notes that may name queries.",
    "strict --strict": "Exit with code 1 if a run cannot be read; the site is written all the same.",
    "wide --wide": "Show all columns of a table at full width.",
    "keys --keys": "Print all keys of an experiment file, without a run.",
    "verbose --verbose": "Print the whole comparison too, and the digests of the plan and the ledger.",
}
_PRESET: dict[Any, dict[str, tuple[Any, str]]] = {
    list[str]: {
        "measures --measure -m": (
            MEASURES,
            "A measure, such as nDCG@10 (trec_eval's -m). May be repeated.",
        ),
        "secondary": ([], "A further measure to show. May be repeated."),
        "group_by --by": (["position"], "A column to group by. May be repeated."),
    },
    str: {
        "measure --measure -m": ("nDCG@10", "The measure that decides."),
        "convention": (
            "rankeval",
            "Rules of scoring: rankeval, or another tool's, such as trec_eval-9.0.8.",
        ),
        "test": ("t", "Significance test; `rankeval tests` lists them."),
        "correction": ("holm", "Correction for several comparisons; `rankeval tests` lists them."),
        "claim": ("difference", "The claim to test: difference, better, not_worse or equivalent."),
        "family": (
            "all",
            "Comparisons to correct for together: all, or those of each measure (measure).",
        ),
        "host": ("mlflow", "An installed host; `rankeval doctor` lists them."),
        "name": ("gate", "Name of the gate."),
        "baseline_name": ("baseline", "Name of the baseline in the records of a new gate."),
        "by --order": ("depth", "Order of the documents: depth, move_to_front or random."),
        "sheet_format --format": ("csv", "Format of the sheets: csv or jsonl."),
        "levels --grades": ("nominal", "Scale of the grades: nominal, ordinal or interval."),
        "salt": (
            "",
            "Secret text from which all random choices follow, and which seals the records.",
        ),
        "unshown": (
            "error",
            "Clicks without a record: error, or skip to leave them out and count them.",
        ),
        "credit": (
            "share",
            "Credit of an impression: share of its clicks, or sum of its clicks.",
        ),
        "unit": (
            "user",
            "The unit of sampling: user, query or impression. For a table of users, its column.",
        ),
        "arm": ("arm", "Column of the arm."),
        "scheme": ("ltc.ltc", "Name of the scheme, as above."),
        "method": ("rrf", "Name of the method, as below."),
    },
    int: {
        "level --level -l": (1, "Lowest grade that counts as relevant (trec_eval's -l)."),
        "n_resamples --resamples": (
            9999,
            "Number of resamples, for tests and corrections that resample.",
        ),
        "rng --seed": (0, "Seed of all random draws."),
        "budget": (20, "Number of decisions."),
        "k": (1000, "Most documents for a query."),
        "queries": (10, "Number of queries."),
        "n_jobs": (1, "Number of processes; -1 for all cores."),
    },
    float: {
        "margin": (0.0, "Margin of the claim, in units of the measure."),
        "alpha": (0.05, "Significance level. The intervals have the level 1 - alpha."),
        "minutes": (5.0, "Minutes to judge one document."),
        "overlap": (0.1, "Share of the documents that every judge gets."),
    },
    list[float]: {
        "scale --label": ([0, 1], "A label that a judge may give. May be repeated."),
    },
    Path: {
        "into": (Path(), "The root of the repository."),
    },
    Format: {
        "output --format": (Format.table, "Output format."),
    },
}


PANELS: dict[str, str] = {
    "Input": "qrels texts data qid label relevance docid score features part input_format "
    "qrels_format parts grades systems limit query_weight columns documents topics fields "
    "query_fields ids judged human machine impressions credits clicks groups tz",
    "Rules of scoring": "measures measure secondary convention ties missing no_relevant "
    "score_dtype level depth complete judged_only exclude_self collection_size zscores",
    "Statistics": "baseline test correction claim margin family alpha unjudged n_resamples rng "
    "effect sd budget primary covariates control shares looks look levels",
    "Records": "ledger supersedes fresh everybody head report other baseline_name",
    "Store": "host experiment uri of_run",
    "Output": "out output wide per_query no_summary verbose folder public with_queries into "
    "sheet_format",
}
"""Panel of the help -> its options; the others belong to one command only."""


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


def options(
    names: str, *, then: str = "", **changed: Any
) -> Callable[[_Command], Callable[..., None]]:
    """Give a command arguments and options of the table, and the command to type after it.

    In ``then``, the values of the argument replace ``{runs}``. A command may return others, and
    another ``then``.
    """

    def decorated(command: _Command) -> Callable[..., None]:
        group = next((group for group in _GROUPS if group in names.split()), "")
        listed = names.replace(group, _GROUPS.get(group, "")).split()
        listed += ["wide"] * ("output" in listed)
        parameters = [_parameter(name, changed) for name in listed]

        @wraps(command)
        def called(**values: Any) -> None:
            WIDE.set(values.pop("wide", False))
            typed = dict(values)
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
            found = command(**values) or {}
            template = found.get("then", then)
            if typed.get("uri") and template.startswith("rankeval "):
                template += " --uri {uri}"
            if template and typed.get("output", "table") in FOR_PEOPLE:
                suggest(template, {**typed, **found})

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
        panel = next((title for title, own in PANELS.items() if name in own.split()), None)
        declared = typer.Option(
            *flags.split(), help=text, metavar=metavar or None, rich_help_panel=panel
        )
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


_EXAMPLES = "For example:"
"""Begins the last paragraph of the help of a command, which is shown below the options."""


def literal(helped: _Helped) -> _Helped:
    """Return a copy of a command or a parameter of Click whose help prints as it is written."""
    shown: Any = copy(helped)
    words, mark, examples = (getattr(helped, "help", None) or "").partition(_EXAMPLES)
    shown.help = _literal(_unwrapped(words))
    shown.short_help = _literal(getattr(helped, "short_help", None))
    shown.epilog = _literal(f"{mark}{examples}" or getattr(helped, "epilog", None))
    shown.params = [literal(parameter) for parameter in getattr(helped, "params", ())]
    if isinstance(helped, TyperOption | TyperArgument):
        shown.display_type_rich = partial(_shown_type, helped)
    else:
        shown.get_help_option = partial(_hidden_help, shown)
    escaped: _Helped = shown
    return escaped


def _unwrapped(text: str) -> str:
    """Join the lines of each paragraph, which are those of the source; keep indented ones."""
    return re.sub(r"(?<=\S)\n(?=\S)", " ", cleandoc(text))


def _shown_type(parameter: Any, ctx: Any) -> str | None:
    """Return the word for a value, or the words to choose from; the name of a type says nothing."""
    shown: str | None = parameter.display_type_rich(ctx=ctx)
    is_argument = isinstance(parameter, TyperArgument)
    is_choice = shown is not None and "|" in shown
    return shown if is_choice or (parameter.metavar and not is_argument) else None


def _hidden_help(command: Any, ctx: Any) -> Any:
    """Return the option --help without a line in the help, whose reader knows it."""
    option = type(command).get_help_option(command, ctx)
    if option is not None:
        option.hidden = True
    return option


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
            listed = _literal("\n\n".join(lines()))
            self.epilog = "\n\n".join(filter(None, (listed, self.epilog)))
            super().format_help(ctx, formatter)

    return Listing
