"""What stands outside the library: command line, experiment files, large data sets, imports, MLflow, pytest."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import io
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

import rankeval as rk
from tests.oracle.recording import said_of

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "data"
OLD = {"query_weight": "weights", "collection_weights": "weights", "unpaired": "missing", "folder": "scores"}
DATASET = ["evaluate-dataset"] if hasattr(rk, "evaluate_dataset") else ["evaluate", "--parquet"]
OLD_OPTIONS: dict[str, Callable[[str], tuple[str, ...]]] = {
    "--alpha": lambda value: ("--confidence-level", str(1 - float(value))),
    "--query-weight": lambda value: ("--weights", value),
    "--folder": lambda value: ("--scores", value),
    "--fresh": lambda _: ("--queries", "fresh"),
}
SETTINGS = {"RANKEVAL_LEDGER": "off", "RANKEVAL_WHO": "oracle", "COLUMNS": "120", "TERMINAL_WIDTH": "120"}
SETTINGS |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MLFLOW_DISABLE_TELEMETRY", "NO_COLOR"), "1")
STORE: list[tuple[str, str]] = []  # the folder of MLflow's store, once it is made
HIDDEN: list[tuple[str, str]] = [
    (r" at 0x[0-9a-f]+", ""),
    (r"\bon 20\d\d-\d\d-\d\d\b", "on <date>"),
    (r"\bm-[0-9a-f]{32}\b|\b[0-9a-f]{32}\b", "<id>"),
    (r"(head\W{1,8}|has the head |the head | at )[0-9a-f]{12,64}\b", r"\1<head>"),
    (r"(?<![.\d])\b[0-9a-f]{20}\b", "<plan>"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00)?", "<time>"),
    (r"\b\d{8}T\d{6}-[0-9a-f]{8}\b", "<upload>"),
    (r"\d+(\.\d+)? (s|seconds)\b", "<seconds>"),
    (r'("at"|"time"|"seconds"|"head"): ("[^"]*"|[0-9.]+)', r"\1: <hidden>"),
]


def renamed(function: Callable[..., Any], *given: Any, **arguments: Any) -> Any:
    """Call a function; an argument that it does not know yet has its old name."""
    known = inspect.signature(function).parameters
    return function(*given, **{name if name in known else OLD.get(name, name): v for name, v in arguments.items()})


def evaluate_dataset(data: Any, **arguments: Any) -> rk.Evaluation:
    """Evaluate Parquet files where they lie."""
    return renamed(getattr(rk, "evaluate_dataset", rk.evaluate), data, **arguments)


def listed(text: str) -> list[str]:
    """Return what stands between bars."""
    return [" ".join(one.split()) for one in text.split("|")]


def single(text: str) -> list[dict[str, Any]]:
    """Return options that are varied one by one: a line of YAML each, and under "also" whole sets of them."""
    table = yaml.safe_load(text)
    also = table.pop("also", [])
    return [*also, *({name: value} for name, values in table.items() for value in values)]


def clean(text: str) -> str:
    """Replace what differs from one recording to the next."""
    text = text.replace("\\_", "_")  # of Markdown
    for place, instead in ((str(Path.cwd()), "<here>"), (str(ROOT), "<root>"), *STORE):
        text = text.replace(place, instead)
    for pattern, instead in HIDDEN:
        text = re.sub(pattern, instead, text)
    return text


def cleaned(function: Callable[[], object]) -> Callable[[], object]:
    """Wrap a call whose texts, refusals and warnings have ids, places or times in them."""

    def called() -> object:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                value, failed = function(), None
            except BaseException as error:
                value, failed = None, type(type(error).__name__, (BaseException,), {})(clean(str(error)))
        for one in caught:
            warnings.warn(clean(str(one.message)), one.category, stacklevel=2)
        if failed is not None:
            raise failed
        return clean_all(value)

    return called


def clean_all(value: Any) -> Any:
    """Clean the texts of plain data."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean_all(key): clean_all(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean_all(one) for one in value]
    return value


def digest(content: bytes) -> str:
    """Return a short digest."""
    return hashlib.sha256(content).hexdigest()[:16]


def tree(folder: str | Path) -> list[str]:
    """Return the paths of the files in a folder."""
    return sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*") if path.is_file())


def facts(ev: rk.Evaluation) -> dict[str, Any]:
    """Return what an evaluation says."""
    names = ("scores", "weights", "n_queries", "excluded", "undefined", "tied_share", "judged_share", "name")
    found = {name: getattr(ev, name) for name in names}
    found |= {"table": ev.per_query, "aggregate": ev.aggregate().to_dict(), "mean": ev.mean().to_dict()}
    return found | {"judgments": ev.judgments_digest, "ranking": ev.ranking_digest}


# The command line ----------------------------------------------------------------------------------------------------


class Exit1(Exception):
    """The command said no and printed nothing."""


class Exit2(Exception):
    """The command refused its input."""


def run(*arguments: object) -> tuple[int, str, str]:
    """Call the command line in this process: exit code, output and errors."""
    from rankeval.cli import main

    given = [str(one) for one in arguments]
    for name, old in OLD_OPTIONS.items():
        if name in given and name not in options_of(*itertools.takewhile(lambda one: one.isalpha(), given[:2])):
            place = given.index(name)
            value = [] if name == "--fresh" else given[place + 1 : place + 2]
            given[place : place + 1 + len(value)] = old("".join(value))
    out, err, argv, shown = io.StringIO(), io.StringIO(), sys.argv, warnings.showwarning
    sys.argv = ["rankeval", *given]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as stop:
        code = int(stop.code or 0)
    finally:
        sys.argv, warnings.showwarning = argv, shown
    return code, clean(out.getvalue()), clean(err.getvalue())


@cache
def options_of(*command: str) -> set[str]:
    """Return the options in the help of a command."""
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", run(*command, "--help")[1]))


def words(text: str) -> None:
    """Tell words as warnings, whose change is no change of a value."""
    for line in filter(str.strip, text.splitlines()):
        warnings.warn(clean(line), UserWarning, stacklevel=2)


def said(code: int, out: str, err: str) -> dict[str, Any]:
    """Return code and output; errors are words, or the refusal. Of a comparison in JSON, sentences are words too."""
    if code and not out:
        raise (Exit1 if code == 1 else Exit2)(err)
    words(err)
    if out.startswith('{\n "format": "rankeval.comparison'):
        parsed = json.loads(out)
        words(parsed.get("headline") or "")
        return {"code": code, "keys": sorted(parsed), "table": rk.Comparison.from_json(out).table}
    return {"code": code, "out": out}


def collection(seed: int) -> None:
    """Write judgments and three runs: ties, missing queries, unjudged documents, grades below 0, ids of all sorts."""
    rng = np.random.default_rng(seed)
    queries = [f"q{n}" if seed % 2 else str(100 + n) for n in range(int(rng.integers(5, 13)))]
    judged, runs = [], {"a": [], "b": [], "c": []}
    for query in queries:
        documents = [f"w{seed}d{n}" for n in range(int(rng.integers(3, 16)))]
        low = -1 if seed % 3 == 0 else 0
        judged += [f"{query} 0 {d} {rng.integers(low, 4)}" for d in documents if rng.random() < 0.8]
        for name, lines in runs.items():
            if rng.random() < 0.9 or not lines:
                scores = rng.normal(size=len(documents)).round(0 if name == "a" else 1)
                lines += [
                    f"{query} Q0 {d} {n + 1} {s} {name}"
                    for n, (d, s) in enumerate(zip(documents, scores, strict=False))
                ]
    Path("qrels").write_text("\n".join(judged) + "\n")
    for name, lines in runs.items():
        Path(f"{name}.run").write_text("\n".join(lines) + "\n")


def on_collection(seed: int, *arguments: str) -> dict[str, Any]:
    """Run a command beside the files of a world."""
    collection(seed)
    return said(*run(*arguments))


GUARD = "register freeze open looks status gate checks verify merge export exempt retire"
MLFLOW = "list compare leaderboard resend discard promote verify-guard"
HELPED = ["", "run", "tests", "doctor", "evaluate", "compare", "measures", "guard", "mlflow"]
HELPED += [f"guard {one}" for one in GUARD.split()] + [f"mlflow {one}" for one in MLFLOW.split()]
EVALUATE = [
    f"--convention {one} -m nDCG@5 --format csv" for one in ("sklearn", "gdeval", "ranx", "lightgbm", "xgboost")
]
EVALUATE += [f"--ties {one} -m AP -m nDCG@5 --format json" for one in ("expected", "docid", "best", "worst", "stable")]
EVALUATE += [f"--missing {one} -m AP -q --format csv" for one in ("empty", "zero", "skip", "error")]
EVALUATE += [f"--no-relevant {one} -m AP -q --format csv" for one in ("zero", "one", "skip")]
EVALUATE += listed("""
 | -m AP | -m nDCG@10 -m RR --format json | -q --format csv -m AP -m P@5 | -q -m nDCG@3 | b.run -m RR |
-q --format json | --convention trec_eval-10 -m AP -q | --convention trec_eval-9.0.8 -m map -q --format csv |
--score-dtype float32 -m AP | -c -m AP -q --format csv | -l 2 -m P@5 -q --format csv | -M 2 -m AP --ties docid |
-J -m AP -m RR -q --format csv | -N 1000 -m Accuracy@5 --format json | --limit line=100000 -m AP | -R trec -m AP |
b.run c.run -m AP -m nDCG@10 -q --format csv | --format trec | --format trec -q -m map -m ndcg_cut.5,10 |
--format trec -m all_trec | --format trec -n -q | b.run c.run | --format trec -q -c -M 3 -l 2 |
--format trec -J -m official | --format trec --convention trec_eval-10 -q | -m bpref -m infAP --format json |
-m ERR(max_rel=3)@10 -m RBP(p=0.5) --format json | -m gm_AP -q --format json
""")
WRONG = (
    [
        f"evaluate qrels a.run {one}"
        for one in listed("""
-x | -m nDGC@10 | --format xml | --ties odd | -M 2 --ties expected | -m Accuracy@5 | -m ERR@9 | --missing no | -n |
--no-relevant no | --score-dtype float16 | -l x | -M 0 | -N -4 | -Z nowhere | -R odd | -R tsv |
-N -4 -m Accuracy@5 | --limit line | --limit odd=3 | --limit line=9 | --convention trec_eval |
--format trec -m nDCG@10 | -c --missing skip | --qid q | --memory 1GB | --n-jobs 2 | --folder x
""")
    ]
    + [
        f"compare qrels a.run {one}"
        for one in listed("""
 | a.run | b.run --test tt | b.run --correction no | b.run --claim best | b.run --claim better |
b.run --family each | b.run --claim not_worse --baseline a.run | b.run --alpha 1.5 |
b.run --test bootstrap --resamples 0 | b.run --unjudged zero | b.run --test sign --seed -1 |
b.run --test randomization --seed -1 | b.run --baseline nobody | b.run --claim equivalent
""")
    ]
    + listed("""
 | evaluate | evaluate qrels | evaluate nowhere a.run | evaluate qrels nowhere | evaluate a.run qrels | compare |
compare qrels | compare nowhere a.run b.run | measures nDGC | measures --format xml |
measures AP --format markdown | tests nothing | tests --format xml | tests t --format markdown | run |
run quikstart | run nowhere.yaml | run letor | run quickstart --set cv | run quickstart --set cv.n_split=3 |
run quickstart --set measures=[nDGC@10] | run --format odd --keys | nothing | --nothing |
run quickstart --set a.b=[ | guard | guard nothing | guard register p | guard register p x | guard merge p nowhere |
guard register p x --qrels nowhere | guard freeze p x a=a.run --qrels qrels | guard open p abc --qrels qrels |
guard looks p x | guard status p | guard verify p | guard exempt p x why --query q | guard retire p x why |
guard merge p | guard gate p x --qrels qrels | guard export p | mlflow | mlflow nothing | mlflow compare |
mlflow promote | mlflow promote m | mlflow discard | mlflow verify-guard
""")
)


def command_line() -> Iterator[tuple[str, Callable[[], object]]]:
    """Help, listings, evaluate, compare, and wrong use."""
    for command in HELPED:
        yield f"cli/help/{command}", lambda c=command: said(*run(*c.split(), "--help"))
        yield f"cli/options/{command}", lambda c=command: sorted(options_of(*c.split()))
    for line in WRONG:
        ledger = " --ledger ledger" if re.match(r"guard \w+ p", line) else ""
        yield f"cli/wrong/{line}", partial(on_collection, 901, *f"{line}{ledger}".split())
    measures, tests = rk.list_measures().index, rk.list_tests().index
    asked = [f"measures {name}" for name in measures] + [f"tests {name}" for name in tests] + ["measures", "tests"]
    for line, form in itertools.product(asked, ("table", "json")):
        yield f"cli/{line}/{form}", lambda line=line, form=form: said(*run(*line.split(), "--format", form))
    for line in listed("""
measures --format csv | measures --format markdown | tests --format csv | tests --format markdown | run --keys |
run --keys --format markdown | --version | guard checks | guard checks --format json | guard checks --format csv
"""):
        yield f"cli/{line}", lambda line=line: said(*run(*line.split()))
    for seed, line in itertools.product(range(7), EVALUATE):
        yield (
            f"cli/evaluate/{line}/world {seed}",
            partial(on_collection, seed, "evaluate", "qrels", "a.run", *line.split()),
        )
    kinds = rk.list_tests()["kind"]
    of_kind = {kind: kinds.index[kinds == kind] for kind in ("test", "correction", "claim")}
    few = ("--resamples", "199", "--seed", "3", "-m", "AP", "-m", "nDCG@5")
    lines = [f"--test {one} --format json" for one in of_kind["test"]]
    lines += [f"--correction {one} --test {test}" for one in of_kind["correction"] for test in ("t", "randomization")]
    for claim, test in itertools.product(of_kind["claim"], ("t", "bootstrap", "wilcoxon", "sign")):
        margin = "" if claim == "difference" else "--margin 0.05"
        lines += [
            f"--claim {claim} {margin} --baseline a.run --test {test} --format {form}" for form in ("csv", "json")
        ]
    lines += ["--family measure", "--family all --format csv", "--alpha 0.1 --format csv", "--unjudged skip", "-m RR"]
    lines += [f"--{rule} --format csv" for rule in ("ties docid", "missing skip", "no-relevant skip", "missing error")]
    lines += ["--baseline b.run --format json", "--convention trec_eval-10 --format csv", "--format csv --seed 4"]
    for seed, line in itertools.product((4, 8), lines):
        given = ("compare", "qrels", "a.run", "b.run", "c.run", *few, *line.split())
        yield f"cli/compare/{line}/world {seed}", partial(on_collection, seed, *given)
    for out, given in (("out.test", "results.test.gz"), ("out.test.aqcM", "results.trunc -m all_trec -q -c -M 100"),
                       ("out.test.aq", "results.test.gz -m all_trec -q")):  # fmt: skip
        place = SHARED / "trec_eval_test"
        name, *more = given.split()
        files = ("evaluate", place / "qrels.test.gz", place / name, "--format", "trec", "--convention", "trec_eval-10")
        yield f"cli/trec_eval/{out}", lambda a=(*files, *more): digest(run(*a)[1].encode())


# The guard, step by step ---------------------------------------------------------------------------------------------


def guarded_files(seed: int, kind: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """Write a collection and three rankings of it: the options that name it, and the rankings."""
    rng = np.random.default_rng(7000 + seed)
    ids = [f"q{seed}x{n}" for n in range(24)]
    rows = pd.DataFrame({"query": np.repeat(ids, 12), "doc": [f"g{seed}d{n}" for n in range(288)]})
    rows["grade"] = (rng.random(288) < 0.3) * rng.integers(1, 3, 288)
    rows[["f0", "f1"]] = rng.normal(size=(288, 2)).round(6)
    rows["part"] = np.where(np.repeat(np.arange(24), 12) < 2, "train", "test")
    systems = {
        name: gain * rows["grade"] + rng.normal(size=288).round(3)
        for name, gain in zip("abc", (0.3, 2.0, 0.2), strict=False)
    }
    if kind in {"qrels", "texts"}:
        Path("qrels").write_text(
            "".join(f"{q} 0 {d} {y}\n" for q, d, y in zip(rows["query"], rows["doc"], rows["grade"], strict=False))
        )
        for name, scores in systems.items():
            lines = (f"{q} Q0 {d} 1 {s} {name}\n" for q, d, s in zip(rows["query"], rows["doc"], scores, strict=False))
            Path(f"{name}.run").write_text("".join(lines))
        Path("texts").write_text("".join(f"{one}\twhat is {one}\n" for one in ids))
        more = ("--texts", "texts") if kind == "texts" else ()
        return ("--qrels", "qrels", *more), {name: f"{name}.run" for name in systems}
    kept = rows["part"] == "test"
    for name, scores in systems.items():
        Path(f"{name}.txt").write_text("".join(f"{one}\n" for one in scores[kept]))
    files = {name: f"{name}.txt" for name in systems}
    if kind == "letor":
        numbers = dict(zip(ids, range(24), strict=False))
        lines = [f"{r.grade} qid:{numbers[r.query]} 1:{r.f0} 2:{r.f1}\n" for r in rows[kept].itertuples()]
        Path("rows.txt").write_text("".join(lines))
        return ("--data", "rows.txt"), files
    rows.to_csv("rows.csv", index=False) if kind == "csv" else rows.to_parquet("rows.parquet")
    named = ("--data", f"rows.{kind}", "--qid", "query", "--label", "grade", "--docid", "doc", "--part", "part")
    return (*named, "--feature", "f0", "--feature", "f1"), files


LIVES = [
    (kind, ledger, more)
    for kind in ("qrels", "texts", "csv", "parquet", "letor")
    for ledger, more in (
        ("ledger", ()),
        ("sqlite:///ledger.db", ("--claim", "better", "--secondary", "RR", "--resamples", "499")),
    )
]
STEPS = """
register status status-json freeze open open-again open-csv looks looks-csv looks-all verify verify-wrong-head
verify-typo export merge verify-other freeze-fresh freeze-one gate gate-new gate-old gate-other exempt exempt-data
retire retired-status refreeze other-files unknown-query
"""


@cache
def life(number: int) -> dict[str, tuple[int, str, str]]:
    """Lead a collection through all steps of the guard."""
    kind, ledger, more = LIVES[number]
    files, systems = guarded_files(number, kind)
    at = ("--ledger", ledger)
    named = [f"{name}={path}" for name, path in systems.items()]
    done = {}

    def step(name: str, command: str, *arguments: str) -> str:
        code, out, err = run("guard", command, *arguments, *at)
        plan = out.strip() if command == "freeze" else ""
        done[name] = (code, "plan" if plan else out, err.replace(plan, "<plan>") if plan else err)
        return plan

    step("register", "register", "web", "kept", *files, "--effect", "0.1", "--sd", "0.2")
    step("status", "status", "web", *files)
    step("status-json", "status", "web", *files, "--format", "json")
    plan = step("freeze", "freeze", "web", "kept", *named[:2], "--baseline", "a", "-m", "AP", *more, *files)
    step("open", "open", "web", plan, *files, "--format", "json")
    step("open-again", "open", "web", plan[:10], *files)
    step("open-csv", "open", "web", plan, *files, "--format", "csv")
    step("looks", "looks", "web", "kept")
    step("looks-csv", "looks", "web", "--format", "csv")
    step("looks-all", "looks", "web", "--all-projects", "--format", "json")
    step("verify", "verify", "web")
    step("verify-wrong-head", "verify", "web", "--head", "f" * 64)
    step("verify-typo", "verify", "wbe")
    step("export", "export", "web", "copy.db")
    step("merge", "merge", "web", "copy.db")
    step("verify-other", "verify", "web", "--other", "copy.db")
    step("freeze-fresh", "freeze", "web", "kept", *named, "--fresh", *files)
    step("freeze-one", "freeze", "web", "kept", named[2], "-m", "nDCG@5", "--alpha", "0.1", *files)
    gate = ("web", "kept", "-m", "AP", "--budget", "5", *files)
    step("gate", "gate", *gate, "--baseline", systems["a"])
    step("gate-new", "gate", *gate, named[1])
    step("gate-old", "gate", *gate, named[2])
    step("gate-other", "gate", "web", "kept", "-m", "RR", *files)
    step("exempt", "exempt", "web", "kept", "known", "--query", f"q{number}x5" if kind != "letor" else "5")
    step("exempt-data", "exempt", "shop", "web/kept", "same data", *files)
    step("retire", "retire", "web", "kept", "too old")
    step("retired-status", "status", "web", *files)
    step("refreeze", "freeze", "web", "kept", *named[:2], *files)
    step("other-files", "register", "web", "kept", "--qrels", "nowhere")
    step("unknown-query", "exempt", "web", "kept", "why", "--query", "nobody")
    return done


def guard_lives() -> Iterator[tuple[str, Callable[[], object]]]:
    """Lead whole lives, and tell them step by step."""
    for (number, (kind, ledger, _)), step in itertools.product(enumerate(LIVES), STEPS.split()):
        yield f"guard/{kind}/{ledger}/{step}", lambda n=number, s=step: said(*life(n)[s])


# Data sets that are larger than memory -------------------------------------------------------------------------------

NAMES = {"qid": "query", "relevance": "label", "score": "value"}
MEASURES = ["nDCG@10", "AP", "RR", "gm_AP", "P(rel=2)@5"]


def log(
    seed: int, *, shuffled: bool = False, files: int = 1, n_queries: int = 12, text_ids: bool = False
) -> pd.DataFrame:
    """Write a small log of scored rows as Parquet files of the folder "log"."""
    rng = np.random.default_rng(300 + seed)
    lengths = rng.integers(1, 16, n_queries)
    qid = np.repeat(np.sort(rng.permutation(10 * n_queries)[:n_queries]), lengths)
    label = rng.integers(-1 if seed % 3 == 0 else 0, 4, len(qid)) * np.repeat(rng.random(n_queries) < 0.85, lengths)
    frame = pd.DataFrame({"query": qid, "label": label, "value": rng.normal(size=len(qid)).round(1)})
    frame["doc"], frame["weight"] = [f"s{seed}d{n}" for n in range(len(qid))], (qid % 3 + 0.5)
    frame["query"] = frame["query"].map("q{}".format) if text_ids else frame["query"]
    frame = frame.sample(frac=1, random_state=seed) if shuffled else frame
    Path("log").mkdir()
    for number, part in enumerate(np.array_split(np.arange(len(frame)), files)):
        frame.iloc[part].to_parquet(f"log/{number:03}.parquet", index=False, row_group_size=20)
    return frame


def streamed(seed: int, how: dict[str, Any], told: Callable[[rk.Evaluation], object] = facts, **shape: Any) -> object:
    """Evaluate a small log where it lies; tell the facts, and the files if a folder was asked for."""
    log(seed, **shape)
    found = told(evaluate_dataset("log", **{**NAMES, "measures": MEASURES, **how}))
    kept = tree("out") if how.get("folder") else []
    return [found, kept, [pd.read_parquet(f"out/{one}") for one in kept if one.endswith("parquet")]]


SHAPES = yaml.safe_load("[{}, {shuffled: true}, {files: 3}, {shuffled: true, files: 2, text_ids: true}]")
STREAMED = single("""
memory: [1GB]
query_weight: [weight]
ties: [best, worst]
no_relevant: [skip, one]
measures: [AP, ["ERR(max_rel=3)@10", "nDCG(gain='exp')@5"]]
convention: [sklearn, lightgbm]
name: [a log]
judgments: [rows]
missing: [skip]
folder: [out]
also: [{}, {docid: doc, ties: docid}, {convention: trec_eval-9.0.8, docid: doc},
  {query_weight: weight, folder: out, memory: 2000000000, docid: doc}]
""")
REFUSED = single("""
score: [sore, null]
qid: [null, [1, 2]]
relevance: [null]
measures: [nDGC]
memory: [much, 1XB, 0, true, 10MB, null, -1]
n_jobs: [0, true, "2"]
query_weight: [[1.0], value, {"1": 2.0}]
group: [[2]]
ties: [docid, odd]
progress: [5, true]
folder: [log/scores, "s3://bucket/x", full, 5]
docid: [query]
convention: [odd]
name: [5]
missing: [odd]
odd: [1]
""")


def refused(how: dict[str, Any]) -> object:
    """Evaluate a log with a wrong argument."""
    Path("full").mkdir()
    Path("full/mine.txt").write_text("mine")
    return streamed(99, how)


def wrong_rows(column: str, value: Any) -> object:
    """Evaluate a log with a wrong cell."""
    frame = log(98).astype({column: object if column == "query" else float})
    how = {"query_weight": "weight"} if column == "weight" else {}
    frame.loc[frame.index[7], column] = value
    frame.to_parquet("log/000.parquet", row_group_size=20)
    return facts(evaluate_dataset("log", **NAMES, measures="AP", **how))


def wrong_data(kind: str) -> object:
    """Evaluate what is no data set of rows."""
    frame = log(97)
    frame.to_csv("log.csv")
    frame.iloc[:0].to_parquet("empty.parquet")
    data = {"none": "nowhere", "csv": "log.csv", "empty": "empty.parquet", "url": "odd://x/y", "list": [], "dict": {}}
    return facts(evaluate_dataset({**data, "path": Path("log"), "files": ["log/000.parquet"]}[kind], **NAMES))


def another_call(first: dict[str, Any], then: dict[str, Any]) -> object:
    """Evaluate into the folder of an earlier call."""
    log(96)
    one, two = (evaluate_dataset("log", **{**NAMES, "folder": "out", "measures": "AP", **how}) for how in (first, then))
    return [facts(one), facts(two), tree("out")]


MILLION = """
import resource, numpy as np, pandas as pd, rankeval as rk, sys
rng = np.random.default_rng(0)
frame = pd.DataFrame({"query": np.repeat(np.arange(10**5), 10), "label": rng.integers(0, 3, 10**6)})
frame.assign(value=rng.normal(size=10**6)).to_parquet("log.parquet", row_group_size=10**5)
"""
PEAK = """
import resource, rankeval as rk
evaluate = getattr(rk, "evaluate_dataset", rk.evaluate)
ev = evaluate("log.parquet", qid="query", relevance="label", score="value", measures=["nDCG@10", "AP"], memory="1GB")
print(ev.mean().tolist(), 50 * round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 51200))
"""


def python(code: str, *arguments: str, **environment: str) -> tuple[int, str, str]:
    """Run a program: its code, output and errors."""
    path = os.pathsep.join((str(ROOT), str(ROOT / "integrations")))
    done = subprocess.run([sys.executable, *(("-c", code) if code else ()), *arguments], check=False, text=True,
                          capture_output=True, env={**os.environ, "PYTHONPATH": path, **environment})  # fmt: skip
    return done.returncode, clean(done.stdout), clean(done.stderr)


def million() -> str:
    """Evaluate a million rows in a process of its own: the means and the peak of memory, in MB."""
    python(MILLION)
    return python(PEAK)[1]


def data_sets() -> Iterator[tuple[str, Callable[[], object]]]:
    """Parquet files evaluated where they lie, by the library and by the command."""
    for (number, shape), how, seed in itertools.product(enumerate(SHAPES), STREAMED, range(2)):
        yield f"dataset/{how}/{shape}/world {seed}", partial(streamed, 2 * number + seed, how, **shape)
        if not how.get("folder"):
            told = lambda ev: digest(said_of(ev, "to_bytes"))
            yield (
                f"dataset/to_bytes/{how}/{shape}/world {seed}",
                partial(streamed, 2 * number + seed, how, told, **shape),
            )
    for shape in SHAPES[1:3]:
        for how in ({"n_jobs": 2}, {"n_jobs": 2, "folder": "out", "query_weight": "weight"}):
            yield f"dataset/{how}/{shape}", partial(streamed, 5, how, n_queries=80, **shape)
    for how in REFUSED:
        yield f"dataset/refused/{how}", partial(refused, how)
    for column, value in itertools.product(("label", "value", "query", "weight"), (None, float("nan"), float("inf"))):
        yield f"dataset/cell/{column}={value}", cleaned(partial(wrong_rows, column, value))
    for kind in ("none", "csv", "empty", "url", "list", "dict", "path", "files"):
        yield f"dataset/data/{kind}", cleaned(partial(wrong_data, kind))
    for first, then in (({}, {}), ({}, {"measures": "RR"}), ({}, {"ties": "worst"}), ({"name": "a"}, {"name": "b"}),
                        ({"query_weight": "weight"}, {}), ({}, {"memory": "2GB"})):  # fmt: skip
        yield f"dataset/another call/{first}/{then}", cleaned(partial(another_call, first, then))
    yield "dataset/a million rows: means, and peak in MB, which may differ", million
    columns = "--qid query --relevance label --score value"
    for seed, line in itertools.product((0, 3, 4), (
        *("", "-m AP --format json", "-m AP -q --format csv", "--query-weight weight -m AP -q --format csv"),
        *("--docid doc --ties docid -m AP --format json", "--folder out -m AP --format csv", "--memory 1GB -m RR"),
        *("--memory 10MB", "--score sore", "--n-jobs 0", "--format trec", "-R trec", "--limit line=9", "qrels"),
        *("-c -m AP", "-l 2 -m P@5 --format json", "-J -m AP", "--convention sklearn", "--folder s3://b/x", "-n"),
    )):  # fmt: skip

        def told(seed: int = seed, line: str = line) -> object:
            log(seed, shuffled=True, files=2)
            return [said(*run(*DATASET, "log", *columns.split(), *line.split())), tree(".")]

        yield f"cli/parquet/{line}/world {seed}", told
    yield "cli/parquet/no columns", lambda: said(*run(*DATASET, "log"))


# Experiment files ----------------------------------------------------------------------------------------------------

RIDGE, TREE = "sklearn.linear_model.Ridge", "sklearn.tree.DecisionTreeRegressor"
SMALL: dict[str, Any] = {
    "name": "small",
    "data": {"loader": "digits", "arguments": {"n_queries": 30, "n_candidates": 8}},
    "rankers": {"ridge": {"estimator": RIDGE, "grid": {"alpha": [0.1, 10.0]}}, "tree": {"estimator": TREE}},
    "measures": ["nDCG@10", "AP"], "cv": {"n_splits": 3}, "guard": "off", "tracking": "off",
}  # fmt: skip
TABLE = {"loader": "csv", "path": "rows.csv", "qid": "query", "label": "grade"}
LEDGER = {"ledger": "ledger", "baseline": "tree"}


def changed(changes: dict[str, Any]) -> dict[str, Any]:
    """Return the small experiment with other values, by the path of their key."""
    raw = json.loads(json.dumps(SMALL))
    for path, value in json.loads(json.dumps(changes)).items():
        place, *steps = raw, *path.split(".")
        for step in steps[:-1]:
            if not isinstance(place.get(step), dict):
                place[step] = {}
            place = place[step]
        place[steps[-1]] = value
    return raw


def experiment(changes: dict[str, Any], times: int = 1) -> object:
    """Run an experiment file, and tell its numbers and files."""
    if "nowhere" not in str(changes):
        guarded_files(50, "csv")
        guarded_files(51, "letor")
    Path("small.yaml").write_text(yaml.safe_dump(changed(changes)))
    done = [rk.run_experiment("small.yaml") for _ in range(times)][-1]
    words(done.comparison.headline)
    found = {"table": done.comparison.table, "trained": done.n_trained, "looks": done.looks_added}
    found |= {"standing": done.guard.standing, "files": [one for one in tree(done.directory) if "cache" not in one]}
    for name, ev in done.evaluations.items():
        found[name] = [facts(ev), pd.read_parquet(done.predictions(name))]
    found |= {one.name: [one.params, facts(one.dev), one.reused] for one in done.facts.candidates}
    return clean_all(found | {"csv": (done.directory / "comparison.csv").read_text()})


RUN: list[Any] = yaml.safe_load("""
[{}, {measures: [RR]}, {primary: AP}, {seed: 3}, {cv.seed: 2}, {cv.n_splits: 2}, {split.salt: x},
 {split.test_size: 0.5},
 {convention: sklearn}, {rankers.tree: null}, {rankers.tree.params: {max_depth: 2}}, {rankers.tree.search: {n_iter: 2,
 distributions: {max_depth: {int: [1, 5]}}}}, {rankers.ridge: {steps: [sklearn.preprocessing.StandardScaler,
 sklearn.linear_model.Ridge], grid: {ridge__alpha: [1, 2]}}}, {comparison: {test: t, correction: holm}},
 {comparison: {claim: not_worse, margin: 0.1}}, {comparison.confidence_level: 0.9}, {data: {loader: csv, path: rows.csv,
 qid: query, label: grade, docid: doc}, split.column: part, cv.n_splits: 2}, {data: {loader: csv, path: rows.csv,
 qid: query, label: grade}, split: {column: part, train: test, test: train}}, {data: {loader: csv, path: rows.csv,
 qid: query, label: grade, features: [f1]}}, {data: {loader: letor, path: rows.txt}}, {guard: {ledger: ledger,
 baseline: tree}}, {guard: {ledger: ledger, baseline: tree}, measures: [AP, RR]}, {guard: {ledger: ledger,
 baseline: tree, project: web}, comparison: {claim: better}}, {output.directory: elsewhere},
 {seed: -1}, {cv.seed: -1}, {n_jobs: 0}]
""")
ODD: tuple[Any, ...] = ("odd", -1, None, True, {"odd": 1})


def experiments() -> Iterator[tuple[str, Callable[[], object]]]:
    """Whole runs, and every key with odd values; the table of those that are accepted does not exist."""
    for changes in RUN:
        yield f"experiment/{changes}", cleaned(partial(experiment, changes))
    for changes in (RUN[0], {"guard": LEDGER}, {"guard": LEDGER, "seed": 1}):
        yield f"experiment/again/{changes}", cleaned(partial(experiment, changes, 2))
    keys = [
        line.partition(":")[0]
        for line in run("run", "--keys")[1].splitlines()
        if re.match(r"[a-z][\w.\[\]A-Z]*: ", line)
    ]
    absent = {"data": {**TABLE, "path": "nowhere.csv"}}
    for key in keys:
        if "[]" in key or key.startswith("tracking."):
            continue
        path = key.replace("NAME", "ridge")
        for value in ODD:
            yield f"experiment/key/{key}={value}", cleaned(partial(experiment, {**absent, path: value}))
        if "." in path or path in {"name", "data"}:
            yield f"experiment/unknown/{key}x", cleaned(partial(experiment, {**absent, f"{path}x": 1}))
    for key in ("tracking.hots", "tracking.uri", "tracking.host"):
        yield f"experiment/key/{key}", cleaned(partial(experiment, {**absent, key: ["odd"]}))
    for text in (
        "",
        "[]",
        "name: a\nname: b",
        "name: [",
        "- a",
        "name: !!python/object:os.getcwd []",
        "name: *a",
        "\x00",
    ):

        def told(text: str = text) -> object:
            Path("bad.yaml").write_text(text)
            return rk.run_experiment("bad.yaml").n_trained

        yield f"experiment/text/{text!r}", cleaned(told)
    for line in ("run small.yaml", "run small.yaml --set measures=[RR] --set seed=2", "run small.yaml --set guard=3"):

        def ran(line: str = line) -> object:
            Path("small.yaml").write_text(yaml.safe_dump(SMALL))
            return [said(*run(*line.split())), [one for one in tree(".") if "cache" not in one]]

        yield f"cli/{line}", cleaned(ran)


# What is imported, and pytest -----------------------------------------------------------------------------------------

IMPORTED = """
import sys
before = set(sys.modules)
{}
names = {{name.partition(".")[0] for name in set(sys.modules) - before}}
names = {{n for n in names - set(sys.stdlib_module_names) if n[0] != "_" and n in sys.modules}}
print(*sorted(n for n in names if getattr(sys.modules[n], "__file__", None)))
"""
COMMAND = "sys.argv = ['rankeval', *{!r}.split()]\nfrom rankeval.cli import main\ntry: main()\nexcept SystemExit: pass"
PYTEST = """
import numpy as np, rankeval as rk
def ranked(noise, n=40):
    labels = np.random.default_rng(0).integers(0, 3, 10 * n)
    scores = labels + np.random.default_rng(1).normal(0, noise, 10 * n)
    return rk.evaluate(labels, scores, qid=np.arange(10 * n) // 10, measures=["nDCG@10"])
def test_ltr(rankeval_baseline):
    ev = ranked(NOISE, N)
    rk.testing.assert_no_regression(ev, rankeval_baseline(ev), margin=0.01)
"""


def imported(code: str) -> list[str]:
    """Return the third-party packages that a program imports."""
    collection(1)
    return python(IMPORTED.format(code))[1].splitlines()[-1].split()


def gate_runs(noises: tuple[float, ...], options: tuple[str, ...], n: int = 40) -> object:
    """Run pytest on a gate again and again, each time with a ranker of another noise."""
    found = []
    for noise, option in zip(noises, options, strict=False):
        Path("test_gate.py").write_text(PYTEST.replace("NOISE", str(noise)).replace("N)", f"{n})"))
        more = ("-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:anyio", *option.split())
        code, out, _ = python("", "-m", "pytest", "-q", *more, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1",
                              PYTEST_PLUGINS="rankeval_pytest")  # fmt: skip
        words(re.sub(r"in [\d.]+s", "", out))
        found.append([code, tree("rankeval_baselines") if Path("rankeval_baselines").exists() else []])
    return found


def in_force() -> object:
    """Call commands in processes of their own, with a ledger in force that holds their data."""
    files, systems = guarded_files(70, "qrels")
    found = []
    for line in ("register web kept --qrels qrels", "status web --qrels qrels", "verify web", "retire web kept old"):
        asked = {"evaluate": ("evaluate", files[1], systems["a"]), "doctor": ("doctor",)}
        for arguments in (("guard", *line.split()), *asked.values()):
            code, out, err = python("", "-m", "rankeval", *arguments, RANKEVAL_LEDGER="ledger")
            words(err)
            found.append([code, bool(out), out.startswith("would be refused"), err.startswith("refused: ")])
    return found


def imports() -> Iterator[tuple[str, Callable[[], object]]]:
    """Modules after imports and commands, in processes of their own, and a few runs of pytest."""
    for code in (
        listed("""import rankeval | import rankeval_mlflow | import rankeval_pytest |
import rankeval as rk; rk.evaluate | import rankeval as rk; rk.compare | import rankeval as rk; rk.Guard |
import rankeval as rk; rk.QueryKFold | import rankeval as rk; rk.evaluate([1, 0], [1, 2], qid=[1, 1], measures='AP')""")
    ):
        yield f"imports/{code}", partial(imported, code)
    for line in listed("""--help | --version | evaluate qrels a.run | evaluate qrels a.run --format trec | measures |
tests | guard --help | mlflow --help | compare qrels a.run b.run | run --keys"""):
        yield f"imports/rankeval {line}", partial(imported, COMMAND.format(line))
    yield "cli/ledger in force", in_force
    yield "pytest/gate", lambda: gate_runs((0.5, 0.5, 0.5, 3.0), ("", "--rankeval-update", "", ""))
    yield "pytest/renewed", lambda: gate_runs((0.5, 3.0), ("--rankeval-update", "--rankeval-update"), 30)


# MLflow --------------------------------------------------------------------------------------------------------------


@cache
def store() -> str:
    """Make the store of all these calls and set MLflow to it; what is sent elsewhere waits beside it."""
    import mlflow

    folder = tempfile.mkdtemp(prefix="oracle-store-")
    STORE.append((folder, "<store>"))
    os.environ["RANKEVAL_SPOOL"] = f"{folder}/spool"
    os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] = "0"
    uri = f"sqlite:///{folder}/mlflow.db"
    mlflow.set_tracking_uri(uri)
    mlflow.MlflowClient().create_experiment("Others", artifact_location=f"file://{folder}/artifacts")
    mlflow.set_experiment("Others")
    return uri


def client() -> Any:
    """Return a client of the store."""
    import mlflow

    return mlflow.MlflowClient(tracking_uri=store())


def noted(run_id: str) -> dict[str, Any]:
    """Return what a run holds, without ids, times and sentences; artifacts by path, tables and records by digest."""
    held = client().get_run(run_id)
    tags = {key: value for key, value in held.data.tags.items() if key.startswith("rankeval.")}
    tags.pop("rankeval.record", None)
    note = held.data.tags.get("mlflow.note.content", "")
    words(re.sub(r"(?m)^\| \d+ \|.*$", "", note))  # without the rows of folds, which have seconds
    words(tags.pop("rankeval.headline", ""))
    tags["rankeval.complete"] = re.sub(":[0-9a-f]{16}", "", tags.get("rankeval.complete", ""))  # digests of manifests
    found = {"params": held.data.params, "metrics": held.data.metrics, "tags": tags, "status": held.info.status}
    found["inputs"] = sorted((one.dataset.name, one.dataset.digest, *(tag.value for tag in one.tags))
                             for one in held.inputs.dataset_inputs)  # fmt: skip
    place = Path(held.info.artifact_uri.removeprefix("file://"))
    found["artifacts"] = [*map(clean, tree(place))] if place.exists() else []
    for path in found["artifacts"]:
        if path.endswith((".csv", "evaluation.parquet")):
            found[path] = digest((place / path).read_bytes())
    ours = f"tags.mlflow.parentRunId = '{run_id}'"
    children = client().search_runs([held.info.experiment_id], ours)
    found["children"] = sorted((str(one.info.run_name), noted(one.info.run_id)) for one in children)
    found["histories"] = {
        key: sorted((one.step, one.value) for one in client().get_metric_history(run_id, key))
        for key in held.data.metrics
        if key.endswith("_fold") or len(held.data.metrics) < 9
    }
    return {"name": held.info.run_name, **{key: dict(sorted(v.items())) if isinstance(v, dict) else v
                                           for key, v in found.items()}}  # fmt: skip


def ranked(name: str | None = "ridge", gain: float = 1.0, seed: int = 0, n: int = 20, **how: Any) -> rk.Evaluation:
    """Evaluate one of many systems on the same judgments; another n is other data."""
    labels = np.random.default_rng(7).integers(0, 3, 8 * n)
    scores = gain * labels + np.random.default_rng(seed).normal(size=8 * n).round(1)
    qid = np.repeat([f"q{one}" for one in range(n)] if how.pop("qid", None) else np.arange(n), 8)
    how |= {"query_weight": {one: one + 1.0 for one in range(n)}} if "query_weight" in how else {}
    return renamed(rk.evaluate, labels, scores, qid=qid, **{"measures": ["nDCG@10", "AP"], "name": name, **how})


def logged(how: dict[str, Any], made: dict[str, Any], *more: dict[str, Any]) -> object:
    """Log an evaluation, perhaps others to the same run, and tell what the run holds and what loads back."""
    import rankeval_mlflow as rkm

    versions()
    ev = ranked(**made)
    done = rkm.log_evaluation(ev, **{"report": False, **how})
    for one in more:
        rkm.log_evaluation(ranked(**made), run_id=done.run_id, **{"report": False, **one})
    back = rkm.load_evaluation(done.run_id, how.get("role")) if not more else ev
    return [noted(done.run_id), facts(back), said_of(back, "to_bytes") == said_of(ev, "to_bytes")]


@cache
def board() -> dict[str, str]:
    """Log five evaluations to an experiment of their own, and one on other data; return the runs by name."""
    import mlflow

    import rankeval_mlflow as rkm

    store()
    mlflow.set_experiment("Board")
    systems = {"bm25": ranked("bm25", 0.5), "ltr": ranked("ltr", 1.0, 1), "bert": ranked("bert", 1.1, 2),
               "noise": ranked("noise", 0.0, 3), "other": ranked("other", 1.0, n=12)}  # fmt: skip
    runs = {name: rkm.log_evaluation(ev, "test", report=False, data="web").run_id for name, ev in systems.items()}
    runs["docid"] = rkm.log_evaluation(ranked("dev", 0.5, ties="worst"), report=False).run_id
    mlflow.set_experiment("Others")
    return runs


@cache
def versions() -> None:
    """Register a model: 1 is champion, 2 better, 3 equal, 4 worse, 5 on other data, 6 was not evaluated."""
    import rankeval_mlflow as rkm

    store()
    client().create_registered_model("ranker")
    for gain, seed, n in ((0.4, 0, 60), (1.5, 1, 60), (0.4, 2, 60), (0.0, 3, 60), (1.5, 4, 30)):
        made = client().create_model_version("ranker", "s3://models/ranker")
        rkm.log_evaluation(ranked(f"v{made.version}", gain, seed, n), "test", model_version=made, report=False)
    client().create_model_version("ranker", "s3://models/ranker")
    client().set_registered_model_alias("ranker", "champion", "1")


def promoted(version: Any, **how: Any) -> object:
    """Put the alias on version 1, ask for another, and tell the decision, the record and the tags."""
    import rankeval_mlflow as rkm

    versions()
    how |= {"slices": pd.Series(["head", "tail"] * 30, index=range(60))} if how.get("slices") == "parts" else {}
    client().set_registered_model_alias("ranker", "champion", "1")
    done = rkm.promote("ranker", version, **{"measure": "nDCG@10", "who": "ann", **how})
    words(str(done))
    found = [done.outcome, done.accepted, done.moved, bool(done), done.alias_before, done.version]
    found += [None if done.comparison is None else done.comparison.table, done.floors]
    found.append(client().get_registered_model("ranker").aliases.get(how.get("alias", "champion")))
    found.append(sorted(client().get_model_version("ranker", done.version).tags))
    return [*found, noted(done.run_id) if done.run_id else None]


def gated(candidate: float, budget: int = 3, **how: Any) -> object:
    """Let a gate of the guard decide."""
    data = rk.datasets.make_ranking(60, 10, 4, rng=int(1000 * candidate) + 17)
    guard = rk.Guard("shop", ledger="ledger", who="ann")
    gate = guard.gate(guard.register("kept", data), baseline=data.X[:, 3], budget=budget)
    return [
        promoted(
            2, gate=gate, candidate=candidate * data.y - data.X[:, 0], holder=data.X[:, 3], **{"measure": None, **how}
        ),
        gate.decisions().drop(columns="time", errors="ignore").shape,
    ]


def judged_rows(n: int = 30) -> pd.DataFrame:
    """Return rows for the evaluator of MLflow."""
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 3, 8 * n)
    rows = pd.DataFrame({"first": rng.normal(size=8 * n) + labels, "relevance": labels, "weight": 1.0})
    rows["qid"], rows["docid"] = np.repeat([f"q{one}" for one in range(n)], 8), [f"d{one}" for one in range(8 * n)]
    rows["bm25"] = 2 * rows["first"] + rng.normal(size=8 * n).round(1)
    return rows


def models_evaluate(config: dict[str, Any], **how: Any) -> object:
    """Call MLflow's own evaluation with our evaluator."""
    import mlflow

    from rankeval_mlflow.evaluator.evaluating import Settings

    if "query_weight" in Settings.model_fields:  # its name now; the calls have the old one
        config = {"query_weight" if name == "weights" else name: value for name, value in config.items()}
    store()
    rows = judged_rows().drop(columns="first")
    options = {"targets": "relevance", "predictions": "bm25", "model_type": "ranker", "evaluators": "rankeval"}
    with mlflow.start_run(run_name="ours") as active:
        config = {"qid": "qid", "measures": ["nDCG@10", "AP"], "report": False, **config}
        found = mlflow.models.evaluate(None, rows, **{**options, **how}, evaluator_config=config)
    return [dict(sorted(found.metrics.items())), sorted(found.artifacts), noted(active.info.run_id)]


def automatic(what: str) -> object:
    """Switch automatic logging on for one search or cross-validation."""
    import mlflow
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import GridSearchCV

    import rankeval_mlflow as rkm

    store()
    rkm.autolog(log_models=False, silent=what == "silent", log_folds=what != "no folds")
    try:
        data = rk.datasets.make_ranking(30, 8, rng=3)
        with mlflow.start_run(run_name="ours") as active:
            if what == "cross-validation":
                rk.cross_validate(Ridge(), data, measures=["nDCG@10", "AP"], cv=3)
            else:
                index = pd.Index(data.qid, name="qid")
                search = GridSearchCV(rk.QueryRanker(Ridge()), {"estimator__alpha": [0.1, 10.0]}, cv=rk.QueryKFold(3),
                                      scoring=rk.make_scorer("nDCG@10"))  # fmt: skip
                search.fit(pd.DataFrame(data.X, index=index).add_prefix("f"), pd.Series(data.y, index=index))
    finally:
        rkm.autolog(disable=True)
    found = noted(active.info.run_id)
    return without_times(found)


def without_times(value: Any) -> Any:
    """Drop durations from what runs hold."""
    if isinstance(value, dict):
        return {
            key: without_times(one)
            for key, one in value.items()
            if "seconds" not in str(key) and ".csv" not in str(key)
        }
    return [without_times(one) for one in value] if isinstance(value, (list, tuple)) else value


def cross_validated(**how: Any) -> object:
    """Log a cross-validation."""
    from sklearn.linear_model import Ridge

    import rankeval_mlflow as rkm

    store()
    data = rk.datasets.make_ranking(24, 8, rng=how.pop("rng", 0))
    rankers = how.pop("rankers", Ridge())
    cv = rk.cross_validate(rankers, data, measures=["nDCG@10", "AP"], cv=3)
    return without_times(noted(rkm.log_cross_validation(cv, **how).run_id))


def ranker(what: str = "ridge", **how: Any) -> object:
    """Log a fitted ranker, load it again and predict."""
    import mlflow
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    import rankeval_mlflow as rkm

    store()
    data = rk.datasets.make_ranking(24, 8, rng=0)
    made = {"query": rk.QueryRanker(Ridge()), "pipeline": make_pipeline(StandardScaler(), Ridge()), "text": "text"}
    made = made.get(what, Ridge())
    if what not in {"unfitted", "text"}:
        made.fit(data.X, data.y, **({"qid": data.qid} if what == "query" else {}))
    done = rkm.log_ranker(made, **how)
    again = np.asarray(mlflow.pyfunc.load_model(done.model_uri).predict(data.X))
    return [again, np.array_equal(again, made.predict(data.X)), done.registered_model_name, done.version]


def compared(how: dict[str, Any], log: dict[str, Any]) -> object:
    """Log a comparison, and tell what the run holds and what loads back."""
    import rankeval_mlflow as rkm

    store()
    made = rk.compare({"a": ranked("a", 0.3), "b": ranked("b", 1.0, 1), "c": ranked("c", 1.1, 2)}, **how)
    done = rkm.log_comparison(made, **{"report": False, **log})
    back = rkm.load_comparison(done.run_id, log.get("name", "comparison"))
    return [noted(done.run_id), back.table, list(back.evaluations), back.table.equals(made.table)]


def of_runs(names: list[str], **how: Any) -> object:
    """Compare runs by name."""
    import rankeval_mlflow as rkm

    found = rkm.compare_runs([board().get(name, name) for name in names], **how)
    return [found.table, list(found.evaluations), getattr(getattr(found, "settings", found), "baseline", None)]


def leaders(experiment: Any = "Board", **how: Any) -> object:
    """Rank the runs of an experiment."""
    import rankeval_mlflow as rkm

    runs = {run_id: name for name, run_id in board().items()}
    found = rkm.leaderboard(experiment, **how)
    words(str(found))
    others = found.others.assign(run_id=found.others["run_id"].map(runs)).sort_values("run_id")
    said_of_it = [found.measure, found.data, found.digest, found.role, found.convention, found.n_ranked]
    return [found.table.drop(columns=["logged_at", "run_id"]), others[["run_id", "system"]].to_dict("list"), said_of_it]


def waiting(steps: str) -> object:
    """Log to a server that is down, and treat what waits by commands; UPLOAD and STORE are put in."""
    import mlflow

    import rankeval_mlflow as rkm

    found: list[Any] = []
    store()
    mlflow.set_tracking_uri("http://127.0.0.1:9")
    try:
        rkm.log_evaluation(ranked("waits"), report=False)
    except Exception as error:
        found.append(type(error).__name__)
        words(str(error))
    finally:
        mlflow.set_tracking_uri(store())
    held = json.loads(run("mlflow", "list", "--waiting", "--format", "json")[1])
    spool = Path(os.environ["RANKEVAL_SPOOL"])
    uploads = sorted(one.name for one in spool.iterdir() if not one.name.startswith("."))
    for step in listed(steps):
        line = step.replace("UPLOAD", uploads[-1]).replace("STORE", store())
        code, out, err = run("mlflow", *line.split())
        words(err + out)
        found.append([code, len(out.splitlines())])
    shutil.rmtree(spool)
    return [len(held), len(uploads), *found]


def on_store(line: str, *, is_table: bool = False) -> object:
    """Run a command of `rankeval mlflow` on the board; a name in capitals is a run, and of a table rows are counted."""
    runs = {name.upper(): run_id for name, run_id in board().items()}
    versions()
    code, out, err = run("mlflow", *(runs.get(one, one) for one in line.split()))
    if is_table:
        words(out)
        return [code, len(out.splitlines())]
    return said(code, out, err)


def feedback(how: dict[str, Any], row: dict[str, Any]) -> object:
    """Score one row of MLflow's generative evaluation."""
    import rankeval_mlflow as rkm

    given = rkm.genai_scorer(**{"measures": "nDCG@10", **how})(**row)
    return [[one.name, one.value, None if one.error is None else str(one.error)]
            for one in (given if isinstance(given, list) else [given])]  # fmt: skip


LOGGED = single("""
role: [dev, test, train, odd one, UPPER, a/b, "", dev/step-3, 3, null]
step: [0, 3, -1, true, "3", 1.5]
data: [web, 5, ""]
run_id: [odd, a b, "00000000000000000000000000000000"]
model_version: [nobody/1, ranker, 5, ranker/99, ranker@nobody]
model_id: [m-odd]
report: [true]
odd: [1]
""")
SYSTEMS = single("""
seed: [0, 1, 2, 3, 4]
gain: [0.0, 0.3, 2.0]
n: [3, 5, 12]
measures: [AP, [gm_AP, RR], ["nDCG(gain='exp')@5"], ["P(rel=2)@5", "ERR(max_rel=2)"]]
convention: [sklearn, lightgbm, xgboost]
name: [null, a/b <c>]
ties: [best, worst, stable]
no_relevant: [skip]
query_weight: [by query]
qid: [text]
""")
SEVERAL = yaml.safe_load("""
- [{role: dev}, {role: test}]
- [{role: dev}, {role: dev}]
- [{step: 0}, {step: 1}, {step: 5}]
- [{step: 0}, {step: 0}]
- [{step: 0}, {}]
- [{}, {step: 1}]
- [{role: a}, {role: b}, {role: c}]
""")
PROMOTED = [(one, {"dry_run": dry}) for one in "12345" for dry in (True, False)] + [
    (one, {})
    for one in (
        6,
        99,
        "seven",
        None,
        True,
        "0_1",
        "latest",
        "models:/ranker/2",
        "models:/other/1",
        "ranker@nobody",
        2,
        1.5,
    )
]
PROMOTED += [
    ("2", how)
    for how in single("""
alpha: [0, 0.7, odd]
measure: [AP, null, RR]
role: [dev]
claim: [odd, difference]
alias: [new, a b]
floors: [0.1]
candidate: [[1.0]]
gate: [5]
also: [{test: randomization, dry_run: true}, {test: bootstrap, dry_run: true}, {test: wilcoxon, dry_run: true},
  {test: sign, dry_run: true}, {test: odd, dry_run: true}, {margin: 0.01, dry_run: true}, {margin: 0.5, dry_run: true},
  {margin: -1, dry_run: true}, {margin: odd, dry_run: true}, {alpha: 0.001, dry_run: true}, {alias: new, first: true},
  {alias: latest, first: true}, {slices: relevant, floors: 0.5}, {slices: odd, floors: 0.1},
  {slices: parts, floors: {tail: 0.05}}, {slices: parts, floors: {neck: 0.05}}, {slices: parts, floors: 0.9}]
""")
]
PROMOTED += [
    ("3", how)
    for how in single("""
also: [{claim: not_worse, margin: 0.0, dry_run: true}, {claim: not_worse, margin: 0.02, dry_run: true},
  {claim: not_worse, margin: 0.2}, {slices: parts, floors: 0.01}]
""")
]
CALLED = {group: single(text) for group, text in {
    "models.evaluate": """
docid: [docid, odd]
weights: [weight, odd]
measures: [AP, nDGC]
convention: [sklearn, odd]
ties: [worst, odd]
role: [test, a/b]
data: [web]
name: [x]
qid: [odd]
qids: [qid]
odd: [1]
report: ["yes", true]
no_relevant: [one]
judgments: [rows]
missing: [odd]
also: [{}]
""", "models.evaluate, its own options": """
targets: [null, odd]
predictions: [null, odd]
evaluators: [[rankeval]]
""", "compare_runs": """
baseline: [bm25, odd]
measures: [[AP], [odd]]
test: [sign, odd]
correction: [bh]
role: [dev, test]
odd: [1]
also: [{claim: better, baseline: bm25}]
""", "leaderboard": """
measure: [AP, odd, RR]
limit: [2, 0, odd]
role: [test, dev, odd]
data: [web, odd]
significance: [false]
experiment: [odd, 5]
odd: [1]
also: [{}]
""", "log_cross_validation": """
role: [test, a/b]
name: [mine]
fold_runs: [false]
data: [web, 5]
rng: [1]
also: [{}]
""", "log_ranker": """
name: [mine, a/b, 5]
run_id: [odd]
registered_model_name: [kept]
what: [pipeline, query, unfitted, text]
odd: [1]
also: [{}]
""", "promote by a gate": """
candidate: [2.0, 0.0]
also: [{candidate: 1.0, dry_run: true}, {candidate: 1.5, measure: AP}, {candidate: 2.5, floors: 0.1}]
"""}.items()}  # fmt: skip
COMPARED = single("""
baseline: [a]
correction: [bh]
measures: [[AP]]
also: [{}, {baseline: a, test: randomization, n_resamples: 99}, {baseline: b, claim: better},
  {baseline: a, claim: equivalent, margin: 0.1}]
""")
COMPARISON = single("""
name: [a/b, "", mine]
role: [a/b]
run_id: [odd]
data: [5, web]
report: [true]
odd: [1]
""")
COMMANDS = listed("""
compare BM25 LTR -m AP --format csv | compare BM25 LTR --baseline bm25 --format json | compare BM25 |
compare odd LTR | compare BM25 LTR --test sign --format csv | compare BM25 OTHER | list --experiment odd |
leaderboard odd | resend odd | discard odd | verify-guard BM25 | verify-guard odd |
promote nobody --version 1 -m AP | list --waiting | resend |
promote ranker --version 2 -m nDCG@10 --dry-run --alias odd | promote ranker --version 2 -m nDCG@10 --floor x |
promote ranker --version 2 -m AP --floor a=0.1 --floor a=0.2 | promote ranker --version 2 -m AP --slices no.csv |
promote ranker --version 2 -m nDGC | list --waiting --format json
""")
TABLES = listed("""
list --experiment Board | list --experiment Board --format csv | leaderboard Board |
leaderboard Board -m AP --format csv | leaderboard Board --no-significance --limit 2 |
promote ranker --version 2 -m nDCG@10 --dry-run | compare BM25 LTR |
promote ranker --version 4 -m nDCG@10 --dry-run |
promote ranker --version 2 -m AP --claim not_worse --margin 0.1 --dry-run
""")
JUDGED: dict[str, Any] = {"relevance": {"d1": 3, "d3": 1}}
FIELDS = {"outputs": {"documents": [{"uri": "d1"}]}, "expectations": {"gold": ["d1"], "relevance": ["d2"]}}
FEEDBACK = [({"measures": one}, {"outputs": ["d7", "d1", "d3"], "expectations": JUDGED}) for one in yaml.safe_load(
    "[nDCG@10, AP, [RR, P@1], gm_AP, odd, [], P@2]")]  # fmt: skip
FEEDBACK += [({}, {"outputs": one, "expectations": JUDGED}) for one in yaml.safe_load(
    "[[], [d1], [d1, d1, d3], d1, null, [{id: d3}], [{doc_id: d1}, {doc_id: d9}], {d1: 2.0}, 5]")]  # fmt: skip
FEEDBACK += [
    ({}, {"outputs": ["d1", "d2"], "expectations": one})
    for one in yaml.safe_load("""
[{}, null, {relevance: [d2]}, {relevance: {d2: x}}, {expected_retrieved_context: [{doc_uri: d2}]}, {relevance: {}},
 {relevance: {d9: 1}}]""")
]
FEEDBACK += [
    (how, FIELDS)
    for how in single("""
retrieved: [outputs.documents, outputs.odd, 5, odd]
name: [x, 5]
expected: [""]
convention: [sklearn, odd]
also: [{expected: gold, docid: uri, retrieved: outputs.documents}, {docid: uri, retrieved: outputs.documents},
  {docid: odd, retrieved: outputs.documents}]
""")
]


def tracking() -> Iterator[tuple[str, Callable[[], object]]]:
    """Everything of the plugin of MLflow, on one store."""
    import rankeval_mlflow as rkm

    versions()
    pairs: list[tuple[str, Callable[[], object]]] = []

    def call(key: str, function: Callable[..., object], *given: Any, **how: Any) -> None:
        pairs.append((f"mlflow/{key}", cleaned(partial(function, *given, **how))))

    for how, made in [*((how, {}) for how in LOGGED), *(({}, made) for made in SYSTEMS)]:
        call(f"log_evaluation/{how}/{made}", logged, how, made)
    for first, *more in SEVERAL:
        call(f"log_evaluation/{[first, *more]}", logged, first, {}, *more)
    for one in (
        None,
        5,
        "odd",
        "0" * 32,
        "models:/nobody/1",
        "models:/ranker/99",
        "models:/m-odd",
        "ranker@odd",
        [],
        "",
    ):
        call(f"load_evaluation/{one!r}", lambda one=one: facts(rkm.load_evaluation(one)))
        call(f"load_comparison/{one!r}", lambda one=one: rkm.load_comparison(one).table)
        call(f"log_evaluation/of {one!r}", lambda one=one: rkm.log_evaluation(one))
        call(f"log_comparison/of {one!r}", lambda one=one: rkm.log_comparison(one))
    for role in ("test", "dev", "odd", 5):
        call(f"load_evaluation/role {role}", lambda role=role: facts(rkm.load_evaluation(board()["ltr"], role)))
    for name in ("ranker/2", "models:/ranker/2", "ranker/latest", "ranker@champion", "models:/ranker@champion"):
        call(f"load_evaluation/{name}", lambda name=name: facts(rkm.load_evaluation(name)))
    for how, log in [*itertools.product(COMPARED, ({}, {"name": "mine", "role": "test", "data": "web"})),
                     *(({"baseline": "a"}, log) for log in COMPARISON)]:  # fmt: skip
        call(f"log_comparison/{how}/{log}", compared, how, log)
    for names in listed("bm25 ltr | bm25 ltr bert noise | bm25 | bm25 bm25 | bm25 other | ltr odd | bm25 docid | "):
        call(f"compare_runs/{names}", of_runs, names.split())
    for line in (*COMMANDS, *TABLES):
        call(f"command/{line}", on_store, line, is_table=line in TABLES)
    for number, (version, how) in enumerate(PROMOTED):
        call(f"promote/{number}/{version}/{how}", promoted, version, **how)
    functions = {
        "models.evaluate": lambda **config: models_evaluate(config),
        "leaderboard": leaders,
        "log_ranker": ranker,
        "models.evaluate, its own options": partial(models_evaluate, {}),
        "promote by a gate": gated,
        "compare_runs": partial(of_runs, ["bm25", "ltr", "bert"]),
        "log_cross_validation": cross_validated,
    }
    for group, function in functions.items():
        for how in CALLED[group]:
            call(f"{group}/{how}", function, **how)
    for what in ("search", "silent", "no folds", "cross-validation"):
        call(f"autolog/{what}", automatic, what)
    for how, row in FEEDBACK:
        call(f"genai_scorer/{how}/{row}", feedback, how, row)
    for steps in ("list --waiting | resend --uri STORE | list", "discard UPLOAD", "resend | resend UPLOAD --uri STORE"):
        call(f"spool/{steps}", waiting, steps)
    for guard in ("off", LEDGER):

        def tracked(guard: Any = guard) -> object:
            Path("small.yaml").write_text(
                yaml.safe_dump(changed({"tracking": {"uri": store(), "experiment": "Others"}, "guard": guard}))
            )
            done = rk.run_experiment("small.yaml").tracked.run_id
            return without_times([noted(done), run("mlflow", "verify-guard", done)])

        call(f"run_experiment/{guard}", tracked)
    yield from pairs


def calls() -> Iterator[tuple[str, Callable[[], object]]]:
    """All groups."""
    before = dict(os.environ)
    os.environ.update(SETTINGS)
    try:
        for group in (command_line, guard_lives, data_sets, experiments, imports, tracking):
            yield from group()
    finally:
        for name in set(os.environ) - set(before):
            del os.environ[name]
        os.environ.update(before)
