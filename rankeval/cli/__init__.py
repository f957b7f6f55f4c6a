"""The command line: parse, call, print.

Exit codes: 0 done, 1 refused by a gate or the guard, 2 bad use or bad input (one line to stderr);
see `exits`. Each command imports slow modules itself. The table of `options` has its options.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from inspect import signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankeval import errors
from rankeval import tracking as hosts
from rankeval._checks import count, refuse
from rankeval._source import DISTRIBUTION, SETTING, address, install
from rankeval.cli.exits import OwnAnswers, caught
from rankeval.cli.guard import guard_app
from rankeval.cli.inputs import Reading, evaluations, query_texts
from rankeval.cli.judging import judging_app
from rankeval.cli.online import online_app
from rankeval.cli.options import MEASURES, ending_with, literal, options
from rankeval.cli.output import (
    HELD,
    EvaluationFormat,
    Format,
    KeysFormat,
    ListFormat,
    ask,
    from_here,
    noted,
    print_frame,
    print_result,
    print_scores,
    room,
    say,
    show_progress,
    suggest,
    tell,
)

if TYPE_CHECKING:
    from rankeval.collection.convention import Convention
    from rankeval.collection.run import Run
    from rankeval.io.opening import Limits

SAID = ("name", "kind", "words", "title", "two_sided", "one_sided", "note")
_WORLD = ("name", "test", "world", "n", "comparisons", "sides")
RATES = (*_WORLD, "quantity", "rate", "standard_error", "replications")
SHOWN_VERSIONS = ("numpy", "scipy", "pandas", "pyarrow", "scikit-learn", "mlflow")


PANELS = {
    "Evaluate": "evaluate compare evaluate-dataset fuse search page",
    "Run experiments": "init run guard",
    "Collect judgments and clicks": "judging online",
    "Track and share": "push site",
    "Look up": "measures tests doctor",
}
"""Panel of the help -> its commands, in the order shown; the commands of hosts track too."""


class _WithHosts(OwnAnswers):
    """The commands of rankeval, and one group for each installed host."""

    def list_commands(self, ctx: Any) -> list[str]:
        own = {*super().list_commands(ctx)}
        others = [name for name in hosts.host_names() if name not in own]
        shown = [name for name in others if hosts.shown_host(name).commands is not None]
        ordered = " ".join(PANELS.values()).split()
        return [*ordered, *own.difference(ordered), *shown]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        if command is None and cmd_name in hosts.host_names():
            command = _host_command(cmd_name)
        if command is not None:
            named = (panel for panel, own in PANELS.items() if cmd_name in own.split())
            command.rich_help_panel = next(named, "Track and share")
        return command


app: typer.Typer = typer.Typer(
    cls=_WithHosts,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(guard_app, name="guard")
app.add_typer(judging_app, name="judging")
app.add_typer(online_app, name="online")


def _declared_tests() -> Iterator[str]:
    from rankeval.significance import CLAIMS, CORRECTIONS, TESTS

    return _listed("words", Tests=TESTS, Corrections=CORRECTIONS, Claims=CLAIMS)


def _listed(field: str, **declarations: Mapping[str, Any]) -> Iterator[str]:
    for title, declared in declarations.items():
        entries = [f"{name} ({getattr(entry, field)})" for name, entry in declared.items()]
        yield f"{title}: {'; '.join(entries)}."


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
    """Honest experiments with ranking models: evaluate, compare, guard the test set, log to MLflow.

    Each command explains itself: rankeval COMMAND --help.
    """


@app.command()
@options(
    "CONFIG settings check keys output verbose",
    output=KeysFormat.text,
    then="python -m webbrowser {report}",
)
def run(
    *,
    config: str | None,
    settings: list[str] | None,
    check: bool,
    keys: bool,
    output: KeysFormat,
    verbose: bool,
) -> dict[str, Any]:
    """Run an experiment: tune on the training part, freeze, open the test part once, compare, report, log.

    An experiment file names functions and classes, which are imported and called: trust it as you
    would trust a script.

    For example:
        rankeval run quickstart
        rankeval run experiment.yaml --check --set cv.n_splits=10
    """
    from rankeval.experiment.config import keys_markdown, keys_text, load_config, shipped_configs

    if keys:
        is_page = output is KeysFormat.markdown
        tell(keys_markdown().rstrip("\n") if is_page else keys_text(), fill=not is_page)
        return {"then": "rankeval init TABLE"}
    if config is None:
        tell("Name an experiment file, or one of those that are shipped:")
        for name, path in shipped_configs().items():
            comment = path.read_text(encoding="utf-8").lstrip("# ")
            tell(f"  {name:<12} {re.split('[.:]', comment)[0]}")
        suggest("rankeval run quickstart", {})
        raise typer.Exit(2)  # a script whose variable is empty must notice
    # Before the slow imports, to answer a misspelt key at once.
    checked = load_config(config, settings or ())
    from rankeval.collection.data import shares_of_empty
    from rankeval.experiment import check_run, run_experiment
    from rankeval.experiment.recipe import NOT_LOGGED

    if check:
        parts = check_run(checked)
        for part in parts.logged:
            sizes = f"{count(part.n_queries, 'query')}, {count(part.n_rows, 'row')}"
            tell(f"{part.role}: {part.name}, {sizes}")
        for words in shares_of_empty(parts.dev):
            tell(words)
        return {"then": "rankeval run {config}"}

    with warnings.catch_warnings(), show_progress(stages=True) as progress:
        # Printed below, as an error.
        warnings.filterwarnings("ignore", NOT_LOGGED, errors.RankevalWarning)
        result = run_experiment(checked, progress=progress)
    from rankeval.report.summaries import experiment_text

    if verbose:
        HELD.clear()  # the comparison is printed with its notes
    text = experiment_text(result.facts, verbose=verbose, width=room())
    tell(f"{text}\n\nReport:  {result.report}")
    if result.tracked and checked.tracking:
        name = checked.tracking.host
        label = f"{hosts.host(name).label or name}:"
        tell(f"{label:<8} {from_here(result.tracked.where)}", fill=False)
    if result.guard.active:
        tell(f"Ledger:  {from_here(result.guard.ledger)}")
    if result.tracking_error:
        raise errors.TrackingError(result.tracking_error)
    return {"report": from_here(str(result.report))}


@app.command()
@options("FILES qid relevance score features into")
def init(*, files: list[Path], **arguments: Any) -> None:
    """Write the first files for your data: an experiment, a relevance test with its baseline, a workflow of CI.

    A table is Parquet, CSV, TSV, LETOR or a folder of LETOR. Its columns are guessed by their names
    and contents, and the guess is printed. If a guess is uncertain, you are asked, or you name the
    column. Nothing is overwritten: if one of the files exists, none is written.

    For example:
        rankeval init rows.parquet
        rankeval init qrels.txt bm25.run
    """
    from rankeval.first_files import start

    asks = ask if sys.stdin.isatty() and sys.stdout.isatty() else None
    for topic, text in start(files, ask=asks, **arguments).items():
        tell(f"{topic:<10} {' '.join(text.split())}")


@app.command("tests")
@options("WORDS output", then="rankeval compare QRELS RUN RUN --test t --correction holm")
def list_declared(*, words: str | None, output: Format) -> None:
    """List the significance tests, corrections and claims; with NAME, also their measured error rates.

    For example:
        rankeval tests
        rankeval tests holm
    """
    from rankeval.significance.catalogue import list_tests, rates_found

    listed = list_tests(words).reset_index()
    if output is not Format.table:
        print_frame(listed if words is None else rates_found(words), output)
    elif words is None:
        print_frame(listed[["name", "kind", "words", "title"]], output, spare=["title"])
    else:
        for row in listed.to_dict("records"):
            tell("\n".join(f"{topic:<10} {row[topic]}" for topic in SAID if row[topic]) + "\n")
        if len(measured := rates_found(words)):
            print_frame(measured[[*RATES]], output, spare=["standard_error", "replications"])


@app.command()
@options("wide", then="rankeval evaluate QRELS RUN")
def doctor() -> None:
    """Show versions, hosts and the ledger in use: its head, its state, and your name in new entries.

    For example:
        rankeval doctor
        RANKEVAL_LEDGER=ledger rankeval doctor
    """
    import platform
    from importlib import metadata

    from rankeval.model_selection.boosters import BOOSTERS

    def version(name: str) -> str:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            return "not installed"

    facts = {"python": platform.python_version(), "rankeval": str(Path(__file__).parents[2])}
    facts |= {name: version(name) for name in (DISTRIBUTION, *SHOWN_VERSIONS, *BOOSTERS)}
    facts["installed from"] = address() or f"no address for others is known: {SETTING} says one"
    facts |= {f"host {name}": hosts.shown_host(name).title for name in hosts.host_names()}
    facts |= dict(_ledger())
    for topic, fact in facts.items():
        tell(f"{topic:<16} {fact}")
    # The plain name belongs to an older package with the same import name: one would overwrite
    # files of the other.
    other = version("rankeval")
    if other != "not installed":
        raise errors.InvalidInput(
            f"the distribution rankeval {other}, another project, "
            "is installed into the same folder",
            remedy=f"pip uninstall rankeval, then {install(options='--force-reinstall')}",
        )


@app.command()
@options(
    "DATA qid relevance score docid query_weight columns measures convention per_query level depth "
    "collection_size ties missing no_relevant score_dtype memory n_jobs folder output",
    then="rankeval init {data}",
    **dict.fromkeys(("qid", "relevance", "score"), ...),
)
def evaluate_dataset(
    *,
    data: str,
    measures: list[str],
    collection_size: int | None,
    per_query: bool,
    output: Format,
    **arguments: Any,
) -> None:
    """Score the rows of a Parquet data set of any size.

    For example:
        rankeval evaluate-dataset rows.parquet --qid q --relevance y --score s
        rankeval evaluate-dataset rows.parquet --qid q --relevance y --score s -q
    """
    from rankeval.measures.names import sized
    from rankeval.streaming import evaluate_dataset as evaluate
    from rankeval.streaming.source import name_of

    rules, name = _rules(arguments, collection_size=collection_size), name_of(data)
    specs = [sized(spec, collection_size) for spec in measures]
    arguments |= {"measures": specs, "convention": rules, "name": name}
    with show_progress() as show:

        def show_rows(done: int, total: int) -> None:
            if show is not None:
                show(done, total, f"{done:,} of {total:,} rows")

        scored = evaluate(data, progress=show and show_rows, **arguments)
    print_scores({name: scored}, output, per_query=per_query)


def _declared_formats() -> Iterator[str]:
    from rankeval.io.formats import format_list

    yield f"Formats: {format_list('relevance')}."


@app.command(cls=ending_with(_declared_formats))
@options(
    "QRELS RUNS measures convention exclude_self per_query no_summary complete level depth judged_only "
    "collection_size zscores ties missing no_relevant score_dtype qrels_format texts READING output",
    measures=None,
    convention=None,
    output=EvaluationFormat.table,
    then="rankeval compare {qrels} {runs} {more}",
)
def evaluate(
    *, qrels: Path, runs: list[Path], measures: list[str] | None, convention: str | None, output: EvaluationFormat,
    collection_size: int | None, per_query: bool, reading: Reading, **arguments: Any,
) -> dict[str, list[str]]:  # fmt: skip
    """Score rankings against judgments.

    For example:
        rankeval evaluate qrels.txt bm25.run
        rankeval evaluate qrels.txt bm25.run dense.run -m nDCG@10 -m R@100
        rankeval evaluate qrels.txt bm25.run -m official --format trec
    """
    from rankeval.collection.convention import get_convention
    from rankeval.measures.names import sized
    from rankeval.trec_eval.output import counted_with_c, read_zscores, trec_text

    no_summary, zscores, qrels_format = map(
        arguments.pop, ("no_summary", "zscores", "qrels_format")
    )
    texts = arguments.pop("texts")
    is_trec = output is EvaluationFormat.trec
    preset = get_convention(convention or ("trec_eval-9.0.8" if is_trec else "rankeval"))
    missing, rule = arguments["missing"], counted_with_c(preset)
    with_c = f"-c is --missing {rule} with {preset.name}, not --missing {missing}: give one of them"
    is_for_trec = no_summary or zscores is not None
    of_trec = "-n and -Z change what --format trec prints, and no other"
    refuse(
        (arguments["complete"] and missing not in (None, rule), with_c),
        (is_for_trec and not is_trec, of_trec),
    )
    rules = _rules({"convention": preset, **arguments}, collection_size=collection_size)
    if is_trec:
        judgments = reading.judgments(qrels, qrels_format)
        reference = None if zscores is None else read_zscores(zscores, limits=reading.limit)
        for _, ranking in reading.rankings(runs, one=True):
            text = trec_text(
                judgments,
                replace(ranking, queries=query_texts(texts, limits=reading.limit)),
                tell=lambda note: say(f"note: {note}"),
                per_query=per_query,
                summary=not no_summary,
                zscores=reference,
                measures=measures or ["official"],
                convention=rules,
            )
            sys.stdout.write(text)
        return {}
    specs = [sized(spec, collection_size) for spec in measures or MEASURES]
    scored = evaluations(qrels, runs, specs, rules, reading, qrels_format, texts=texts, one=True)
    print_scores(scored, Format(output.value), per_query=per_query)
    return {"more": [] if len(scored) > 1 else ["OTHER_RUN"]}


@app.command(cls=ending_with(_declared_tests))
@options(
    "QRELS RUNS measures convention exclude_self ties missing no_relevant baseline test correction claim margin "
    "family alpha groups unjudged n_resamples rng texts READING output",
    then="rankeval page {qrels} {runs} --out queries.html",
)
def compare(
    *,
    qrels: Path,
    runs: list[Path],
    measures: list[str],
    reading: Reading,
    output: Format,
    **arguments: Any,
) -> None:
    """Compare rankings query by query: intervals, p-values, effect sizes.

    The exit code is 0 whether or not a claim is shown; for a gate, use rk.testing in a test.
    --format json prints everything that rk.Comparison.from_json reads, and the headline. --format
    csv prints the table, with the headline and the notes on stderr.

    For example:
        rankeval compare qrels.txt bm25.run dense.run
        rankeval compare qrels.txt bm25.run dense.run --baseline bm25.run -m AP
    """
    from rankeval.comparison import compare as compare_systems

    rules, texts = _rules(arguments), arguments.pop("texts")
    scored = evaluations(qrels, runs, measures, rules, reading, texts=texts)
    if len(scored) < 2:
        raise errors.InvalidInput(f"a comparison needs two runs or more, found {len(scored)}")
    print_result(compare_systems(scored, **arguments), output)


def _declared_fusions() -> Iterator[str]:
    from rankeval.fusion import METHODS, NORMS

    return _listed("formula", Methods=METHODS, Norms=NORMS)


@app.command(cls=ending_with(_declared_fusions))
@options("RUNS method norm constant weights RANKINGS out", then="rankeval evaluate QRELS {out}")
def fuse(
    *,
    runs: list[Path],
    constant: float | None,
    weights: list[str] | None,
    reading: Reading,
    out: Path | None,
    **arguments: Any,
) -> None:
    """Fuse rankings into one, by ranks or by scores.

    The name of the new run is that of the method. Its file is TREC text, or has the format of its
    suffix.

    For example:
        rankeval fuse bm25.run dense.run --out fused.run
        rankeval fuse bm25.run dense.run --method combsum --out fused.parquet
    """
    from rankeval.fusion import fuse as fuse_runs

    systems = {name: noted(run) for name, run in reading.rankings(runs)}
    shares = None if weights is None else dict(map(_weight, weights))
    _write_run(fuse_runs(systems, k=constant, weights=shares, **arguments), out)


def _weight(text: str) -> tuple[str, float]:
    name, _, number = text.rpartition("=")
    try:
        return name, float(number)
    except ValueError:
        raise errors.InvalidInput(
            argument="weights", found=repr(text), expected="RUN=NUMBER, as in bm25.run=0.3"
        ) from None


def _write_run(run: Run, out: Path | None) -> None:
    """Write a run to a file, or print it as TREC text."""
    with TemporaryDirectory() as folder:
        path = out or Path(folder, "run")
        run.write(path)
        if out is None:
            typer.echo(path.read_text(encoding="utf-8"), nl=False)


def _rules(arguments: dict[str, Any], *, collection_size: int | None = None) -> Convention:
    from rankeval.collection.convention import get_convention
    from rankeval.trec_eval.output import trec_rules

    preset = get_convention(arguments.pop("convention"))
    names = ("ties", "missing", "no_relevant", "score_dtype")
    rules = {name: arguments.pop(name, None) for name in names}
    rules["own_document"] = "exclude" if arguments.pop("exclude_self", False) else None
    options_of_trec = arguments.keys() & {"complete", "level", "depth", "judged_only"}
    of_trec_eval = {name: arguments.pop(name) for name in options_of_trec}
    return trec_rules(preset.with_rules(**rules), **of_trec_eval, collection_size=collection_size)


@app.command()
@options(
    "DOCS QUERIES scheme k stem stop fields query_fields ids limit out",
    then="rankeval evaluate QRELS {out}",
)
def search(
    *, docs: Path, queries: Path, scheme: str, k: int, out: Path | None, **arguments: Any
) -> None:
    """Search texts for the words of queries, by BM25 or by the weights of a SMART scheme.

    The name of the run is that of the scheme. Its file is TREC text, or has the format of its
    suffix. For other settings, use Python: rk.text.BM25(k1=0.9, b=0.4), or
    rk.text.VectorSpace("Lnu.ltc", slope=0.1).

    For example:
        rankeval search docs.tsv queries.tsv --scheme BM25 --out bm25.run
        rankeval search corpus.jsonl queries.jsonl --stem english --out ltc.run
    """
    from rankeval.text import BM25, VectorSpace

    texts, needs, _ = _texts(docs, queries, arguments)
    ranker = BM25(**arguments) if scheme.upper() == "BM25" else VectorSpace(scheme, **arguments)
    run = ranker.fit(texts).search(needs, k=k)
    _write_run(run, out)
    empty_documents, empty_queries = (
        sum(not text.strip() for text in collection.values()) for collection in (texts, needs)
    )
    documents = f"{count(len(texts), 'document')}, {empty_documents:,} empty"
    say(f"{documents}; {count(len(needs), 'query')}, {empty_queries:,} empty")
    n_barren = len(needs) - len({*run.qid.to_pylist()})
    say(f"{count(len(run), 'row')}; {count(n_barren, 'query')} found nothing")


@app.command()
@options(
    "QRELS RUNS documents topics measure queries depth rng stem stop fields query_fields ids "
    "READING out",
    depth=10,
    stop="english",
    then="python -m webbrowser {out}",
)
def page(
    *,
    qrels: Path,
    runs: list[Path],
    measure: str,
    reading: Reading,
    out: Path | None,
    **arguments: Any,
) -> None:
    """Write a page of queries to read: the need, the ranked documents, labels, snippets, why a query was chosen.

    If you give two runs, the second is compared with the first, and the page shows how each
    document moved.

    For example:
        rankeval page qrels.txt bm25.run --documents docs.tsv --out bm25.html
        rankeval page qrels.txt bm25.run dense.run --queries 20 --out moved.html
    """
    from rankeval.evaluation import evaluate as score
    from rankeval.io.opening import write_atomically
    from rankeval.report import report_for_queries

    arguments["limit"] = reading.limit
    texts, needs, _ = _texts(arguments.pop("documents"), arguments.pop("topics"), arguments)
    judged = noted(reading.judgments(qrels))
    rankings = {name: noted(run) for name, run in reading.rankings(runs)}
    scored = {
        name: score(judged, run, measures=measure, name=name) for name, run in rankings.items()
    }
    html = report_for_queries(scored, rankings, judged, texts=texts, needs=needs, **arguments)
    if out is None:
        typer.echo(html)
    else:
        write_atomically(out, [html.encode()])


def _texts(
    docs: Path | None, queries: Path | None, arguments: dict[str, Any]
) -> tuple[Any, Any, Limits]:
    """Read texts by their options, which leave the arguments; return the limits too."""
    from rankeval.text import read_texts

    fields, of_queries, ids, limits = map(arguments.pop, ("fields", "query_fields", "ids", "limit"))
    texts = needs = None
    if docs is not None:
        texts = read_texts(docs, fields=fields, limits=limits)
    if queries is not None:
        needs = read_texts(queries, fields=of_queries, ids=ids, limits=limits)
    return texts, needs, limits


@app.command("measures")
@options(
    "WORDS output", output=ListFormat.table, then="rankeval evaluate QRELS RUN -m nDCG@10 -m AP"
)
def list_all(*, words: str | None, output: ListFormat) -> None:
    """List the measures with their parameters.

    For example:
        rankeval measures
        rankeval measures nDCG
    """
    from rankeval.measures import list_measures, measures_markdown

    if output is ListFormat.markdown:
        if words is not None:
            raise errors.InvalidInput(
                "--format markdown prints the page of all measures: leave out the name"
            )
        tell(measures_markdown().rstrip("\n"), fill=False)
        return
    frame = list_measures(words).rename_axis("name").reset_index()
    if output is ListFormat.table:
        short = frame[["name", "title", "parameters", "aggregate"]]
        frame = short.assign(ties=frame["ties"].where(frame["ties"] == "exact", "exact or drawn"))
    print_frame(frame, Format(output.value), spare=["aggregate", "ties"])


def _ledger() -> Iterator[tuple[str, str]]:
    # A broken ledger is described and not raised: a doctor must not fall ill.
    from rankeval.guard.journal import why_lost
    from rankeval.ledger import discovery
    from rankeval.ledger.ledger import Ledger

    try:
        url = discovery.default_url()
        if url is None:
            yield "ledger", "switched off"
            return
        ledger, exists = Ledger(url), discovery.may_exist(url)
        yield "ledger", ledger.where if exists else f"{ledger.where} (not there yet)"
        if exists and (faults := ledger.problems()):
            yield "its state", "; ".join(faults)
        elif exists:
            read = ledger.read()
            yield "its state", f"whole, {count(len(read.entries), 'entry')}"
            yield "its head", read.head
        yield "you are", ledger.who
        if lost := why_lost(url):
            yield "warning", lost
    except errors.RankevalError as error:
        yield "ledger", str(error)


@app.command()
@options(
    "RESULTS host experiment uri of_run",
    experiment="rankeval",
    then="rankeval site --experiment {experiment} --host {host}",
)
def push(
    *, results: list[Path], host: str, experiment: str, uri: str | None, of_run: str | None
) -> None:
    """Send saved results to a host, such as MLflow: each folder becomes a run, or is added to --run.

    For example:
        rankeval push results/bm25 results/dense
        rankeval push results/bm25 --experiment ranking --uri sqlite:///mlflow.db
    """
    from rankeval.shelf.kinds import read_record

    offer = hosts.host(host)
    if offer.push is None:
        raise errors.InvalidInput(f"the host {host!r} takes no results")
    parameters = signature(offer.push).parameters.values()
    takes_run = any(
        parameter.name == "run" or parameter.kind is parameter.VAR_KEYWORD
        for parameter in parameters
    )
    if of_run and not takes_run:
        problem = f"the host {host!r} writes to no run that is there already"
        raise errors.InvalidInput(problem, argument="--run", remedy="leave out --run")
    destination = {"experiment": experiment, "uri": uri} | ({"run": of_run} if of_run else {})
    for folder in results:
        tracked = offer.push(read_record(folder), name=folder.absolute().name, **destination)
        tell(f"{folder}: {from_here(tracked.where)}", fill=False)


@app.command("site")
@options(
    "SAVED public experiment host uri with_queries strict",
    public=Path("public"),
    then="python -m webbrowser {index}",
)
def make_site(
    *,
    saved: Path | None,
    public: Path,
    experiment: str | None,
    host: str,
    uri: str | None,
    with_queries: bool,
    strict: bool,
) -> dict[str, Path]:
    """Write one static site of all runs: leaderboards, the champion, and a page for each run.

    The runs are those of a folder, or of an experiment on a host such as MLflow.

    For example:
        rankeval site rankeval-out --out public
        rankeval site --experiment ranking --uri sqlite:///mlflow.db
    """
    from rankeval.site import write_site

    written = write_site(
        saved, public, experiment=experiment, host=host, uri=uri, queries=with_queries
    )
    for fault in written.faults:
        say(f"warning: {fault.place} cannot be read: {fault.reason}")
    tell(f"{count(written.n_pages, 'page')}: {written.index}")
    if strict and written.faults:
        raise typer.Exit(1)
    return {"index": written.index}


def main() -> None:
    """Run the command line and exit with its code."""
    HELD.clear()
    warnings.showwarning = _show_warning
    try:
        caught(partial(app, prog_name="rankeval"))  # python -m rankeval would call itself otherwise
    finally:
        for line in HELD:
            say(line)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    line = f"warning: {' '.join(str(message).split())}"
    if isinstance(message, errors.NotedWarning):
        HELD.append(line)
    else:
        say(line)


def _host_command(name: str) -> Any:
    # The host is imported when its command runs, and gets the arguments as they are.
    stub = typer.Typer(add_completion=False)

    @stub.command(
        name,
        help=f"{hosts.shown_host(name).title}.",
        context_settings={
            "allow_extra_args": True,
            "ignore_unknown_options": True,
            "help_option_names": [],
        },
    )
    def forward(ctx: typer.Context) -> None:
        offer = hosts.host(name).commands
        if offer is None:
            raise errors.InvalidInput(f"the host {name!r} has no commands")
        offer()(args=list(ctx.args), prog_name=f"rankeval {name}")

    return literal(typer.main.get_command(stub))
