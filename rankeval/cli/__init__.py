"""The command line: parse, call, print.

Exit codes: 0 done, 1 a gate or the guard said no, 2 bad use or bad input (one line to stderr); see `net`. Each command
imports what is slow to import.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankeval import errors
from rankeval import tracking as hosts
from rankeval.cli.commands import DISTRIBUTION, doctor, list_declared, run
from rankeval.cli.dataset import evaluate_dataset
from rankeval.cli.guard import guard_app
from rankeval.cli.net import OwnAnswers, caught
from rankeval.cli.options import FormatsInHelp, sized
from rankeval.cli.output import (
    DEFAULT_MEASURES,
    MEASURE_HELP,
    CollectionSize,
    ConventionName,
    Depth,
    EvaluationFormat,
    Format,
    Level,
    LimitOptions,
    ListFormat,
    Measures,
    Missing,
    NoRelevant,
    OutputFormat,
    PerQuery,
    ScoreType,
    Ties,
    ending_with,
    print_comparison,
    print_frame,
    print_scores,
    print_trec,
    show_warning,
    tell,
)

if TYPE_CHECKING:
    from rankeval.collection.convention import Convention
    from rankeval.evaluation import Evaluation
    from rankeval.io.opening import Limits


class _WithHosts(OwnAnswers):
    """The commands of rankeval, and one group for each installed host."""

    def list_commands(self, ctx: Any) -> list[str]:
        own = super().list_commands(ctx)
        return [*own, *(name for name in hosts.host_names() if name not in own and hosts.may_have_commands(name))]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        own = super().get_command(ctx, cmd_name)
        return _host_command(cmd_name) if own is None and cmd_name in hosts.host_names() else own


app: typer.Typer = typer.Typer(
    cls=_WithHosts,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(guard_app, name="guard")


def _declared_tests() -> Iterator[str]:
    from rankeval.significance import CLAIMS, CORRECTIONS, TESTS

    for title, declared in (("Tests", TESTS), ("Corrections", CORRECTIONS), ("Claims", CLAIMS)):
        yield f"{title}: {'; '.join(f'{name} ({one.words})' for name, one in declared.items())}."


def _print_version(wanted: bool) -> None:
    if wanted:
        from rankeval import __version__

        tell(f"{DISTRIBUTION} {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Honest experiments with ranking models: evaluate, compare, guard the test set, log to MLflow."""


app.command()(run)
app.command("tests")(list_declared)
app.command()(doctor)


app.command("evaluate-dataset")(evaluate_dataset)


@app.command(cls=FormatsInHelp)
def evaluate(
    qrels: Annotated[
        Path,
        typer.Argument(metavar="QRELS", help="Judgments in any of the formats below (-R), also .gz and .zst."),
    ],
    runs: Annotated[list[Path], typer.Argument(help="Rankings, one file each.", metavar="RUN...")],
    measures: Annotated[list[str] | None, typer.Option("--measure", "-m", help=MEASURE_HELP)] = None,
    convention: Annotated[
        str | None,
        typer.Option(help="How judgments and ranking are joined: rankeval, trec_eval-9.0.8 (for --format trec), ..."),
    ] = None,
    per_query: PerQuery = False,
    no_summary: Annotated[bool, typer.Option("--no-summary", "-n", help="Print queries only (trec).")] = False,
    complete: Annotated[
        bool,
        typer.Option(
            "--complete", "-c", help="Queries that a run lacks count: as 0 in trec_eval 9, else as empty rankings."
        ),
    ] = False,
    level: Level = 1,
    depth: Depth = None,
    judged_only: Annotated[bool, typer.Option("--judged-only", "-J", help="Take unjudged documents out.")] = False,
    collection_size: CollectionSize = None,
    zscores: Annotated[
        Path | None, typer.Option("--zscores", "-Z", help="Print deviations from these reference scores (trec).")
    ] = None,
    ties: Ties = None,
    missing: Missing = None,
    no_relevant: NoRelevant = None,
    score_dtype: ScoreType = None,
    qrels_format: Annotated[
        str | None,
        typer.Option(
            "--qrels-format",
            "-R",
            help="Format of QRELS; by default its content and suffix decide: {formats}.",
        ),
    ] = None,
    limit: LimitOptions = None,
    output: Annotated[
        EvaluationFormat, typer.Option("--format", help="How to print it; trec: as trec_eval does.")
    ] = EvaluationFormat.table,
) -> None:
    """Score rankings against judgments."""
    from rankeval.collection.convention import get_convention
    from rankeval.collection.qrels import Qrels
    from rankeval.io.opening import limits_of
    from rankeval.trec_eval.output import counted_with_c, trec_rules

    limits = limits_of(limit or ())
    is_trec = output is EvaluationFormat.trec
    preset = get_convention(convention or ("trec_eval-9.0.8" if is_trec else "rankeval"))
    if complete and missing not in (None, counted_with_c(preset)):
        raise errors.InvalidInput(
            f"-c is --missing {counted_with_c(preset)} with {preset.name}, not --missing {missing}: give one of them"
        )
    rules = trec_rules(
        preset.with_rules(ties=ties, missing=missing, no_relevant=no_relevant, score_dtype=score_dtype),
        complete=complete,
        level=level,
        depth=depth,
        judged_only=judged_only,
        collection_size=collection_size,
    )
    if is_trec:
        wanted = measures or ["official"]
        judgments = Qrels.read(qrels, qrels_format, limits=limits)
        print_trec(judgments, runs, wanted, rules, zscores, limits, per_query=per_query, summary=not no_summary)
        return
    if no_summary or zscores is not None:
        raise errors.InvalidInput("-n and -Z change what trec_eval prints: they go with --format trec")
    wanted = [sized(spec, collection_size) for spec in measures or DEFAULT_MEASURES]
    evaluations = _evaluations(qrels, runs, wanted, rules, limits, qrels_format)
    print_scores(evaluations, Format(output.value), per_query=per_query)


@app.command(cls=ending_with(_declared_tests))
def compare(
    qrels: Annotated[Path, typer.Argument(metavar="QRELS", help="Judgments.")],
    runs: Annotated[list[Path], typer.Argument(help="Two rankings or more, one file each.", metavar="RUN RUN...")],
    measures: Measures = DEFAULT_MEASURES,
    convention: ConventionName = "rankeval",
    ties: Ties = None,
    missing: Missing = None,
    no_relevant: NoRelevant = None,
    baseline: Annotated[str | None, typer.Option(help="Name of the run to hold the others against.")] = None,
    test: Annotated[str, typer.Option(help="Significance test, by its name below.")] = "t",
    correction: Annotated[str, typer.Option(help="Correction for many comparisons, by its name below.")] = "holm",
    claim: Annotated[
        str, typer.Option(help="What to show, by its name below; better and not_worse need --baseline.")
    ] = "difference",
    margin: Annotated[float, typer.Option(help="Margin of the claim, in units of the measure.")] = 0.0,
    family: Annotated[
        str, typer.Option(help="The comparisons to correct for together: all, or those within one measure (measure).")
    ] = "all",
    alpha: Annotated[float, typer.Option(help="Level of the tests; the intervals have the level 1 - alpha.")] = 0.05,
    unjudged: Annotated[
        str | None, typer.Option(help="skip: a second table, of the rankings without their unjudged documents.")
    ] = None,
    resamples: Annotated[
        int, typer.Option(help="Number of resamples, for tests and corrections that resample.")
    ] = 9999,
    seed: Annotated[int, typer.Option(help="Seed of the resamples.")] = 0,
    limit: LimitOptions = None,
    output: OutputFormat = Format.table,
) -> None:
    """Compare rankings query by query: intervals, p-values, effect sizes.

    The exit code is 0 whether or not a claim is shown; for a gate, use rk.testing in a test. --format json prints all
    that rk.Comparison.from_json reads, and the headline; csv prints the table, with headline and notes on stderr.
    """
    from rankeval.collection.convention import get_convention
    from rankeval.comparison import compare as compare_systems
    from rankeval.io.opening import limits_of

    if len(runs) < 2:
        raise errors.InvalidInput(f"a comparison needs two runs or more, found {len(runs)}")
    rules = get_convention(convention).with_rules(ties=ties, missing=missing, no_relevant=no_relevant)
    evaluations = _evaluations(qrels, runs, measures, rules, limits_of(limit or ()))
    asked: dict[str, Any] = {"test": test, "correction": correction, "claim": claim, "margin": margin}
    asked |= {"family": family, "alpha": alpha, "n_resamples": resamples, "rng": seed}
    asked |= {"unjudged": unjudged}
    result = compare_systems(evaluations, baseline=baseline, **asked)
    print_comparison(result, output)


@app.command("measures")
def list_all(
    name: Annotated[
        str | None, typer.Argument(help="A part of a name, title or name in another tool; all measures if not given.")
    ] = None,
    output: Annotated[
        ListFormat, typer.Option("--format", help="How to print it; markdown: with who uses what.")
    ] = ListFormat.table,
) -> None:
    """List the measures with their parameters."""
    from rankeval.measures import list_measures, measures_markdown

    if output is ListFormat.markdown:
        if name is not None:
            raise errors.InvalidInput("--format markdown prints the page of all measures: leave out the name")
        typer.echo(measures_markdown(), nl=False)
        return
    frame = list_measures(name).rename_axis("name").reset_index()
    if output is ListFormat.table:
        short = frame[["name", "title", "parameters", "aggregate"]]
        frame = short.assign(ties=frame["ties"].where(frame["ties"] == "exact", "exact or drawn"))
    print_frame(frame, Format(output.value))


def main() -> None:
    """Run the command line and exit with its code."""
    warnings.showwarning = show_warning
    caught(partial(app, prog_name="rankeval"))  # python -m rankeval would call itself otherwise


def _host_command(name: str) -> Any:
    """Make a command that imports the host when it runs and hands its arguments on."""
    stub = typer.Typer(add_completion=False)

    @stub.command(
        name,
        help=f"{hosts.title_of(name)}.",
        context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
    )
    def forward(ctx: typer.Context) -> None:
        offer = hosts.host(name).commands
        if offer is None:
            raise errors.InvalidInput(f"the host {name!r} has no commands")
        offer()(args=list(ctx.args), prog_name=f"rankeval {name}")

    return typer.main.get_command(stub)


def _evaluations(
    qrels: Path,
    runs: list[Path],
    measures: list[str],
    convention: str | Convention,
    limits: Limits,
    qrels_format: str | None = None,
) -> dict[str, Evaluation]:
    """Evaluate each run under the name of its file, since several files may share a tag."""
    from rankeval.collection.qrels import Qrels
    from rankeval.collection.run import Run
    from rankeval.evaluation import evaluate as evaluate_run
    from rankeval.measures import measures as find_measures

    find_measures(measures, convention)  # answer a misspelt measure before reading a large file
    judgments = Qrels.read(qrels, qrels_format, limits=limits)
    names = [path.name.removesuffix(".gz").removesuffix(".zst") for path in runs]
    if len(set(names)) < len(names):
        names = [str(path) for path in runs]
    return {
        name: evaluate_run(
            judgments, Run.read(path, limits=limits), measures=measures, convention=convention, name=name
        )
        for name, path in zip(names, runs, strict=True)
    }
