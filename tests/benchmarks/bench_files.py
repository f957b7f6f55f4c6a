"""B: TREC files of a million lines, read, joined and evaluated, against the peers in one run.

    python tests/benchmarks/bench_files.py [--topics 1000] [--repeats 3] [--decimals 6] [--trec-eval PATH]
        [--peers rankeval rankeval_by_docid trec_eval]

1,000 topics of 1,000 documents and 200 judgments (fixed seed), six measures; each contestant from the paths to
per-topic values. Scores have some decimals: 6 tie hardly a row, 3 a tenth of them, 2 more than half. By docid, tied
rows stand as in trec_eval (its convention). ``rankeval evaluate``, as a table and in trec_eval's format, and trec_eval
are measured as whole processes, start included; trec_eval takes part where its binary is given. Peers:
``pip install pytrec_eval-terrier ir_measures ranx``.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import contest
import numpy as np

MEASURES = ["nDCG@10", "AP", "RR", "P@10", "R@100", "Rprec"]
TREC = ["ndcg_cut.10", "map", "recip_rank", "P.10", "recall.100", "Rprec"]
PEERS = ("rankeval", "rankeval_by_docid", "pytrec_eval", "ir_measures", "ranx", "trec_eval")
WHOLE = ("rankeval_command", "rankeval_trec_command", "trec_eval")


def write_files(folder: Path, n_topics: int, decimals: int = 6) -> None:
    """Write a run and its qrels."""
    rng = np.random.default_rng(20261120)
    with (folder / "b.run").open("w") as run, (folder / "b.qrels").open("w") as qrels:
        for topic in range(1, n_topics + 1):
            docs = rng.choice(2_000_000, 1000, replace=False)
            scores = np.sort(rng.normal(10, 3, 1000))[::-1]
            ranked = enumerate(zip(docs, scores, strict=True), start=1)
            run.writelines(
                f"{topic} Q0 clueweb-en{doc:010d} {rank} {score:.{decimals}f} tag\n" for rank, (doc, score) in ranked
            )
            judged = np.unique(
                np.concatenate([rng.choice(docs, 150, replace=False), rng.choice(2_000_000, 50) + 2_000_000])
            )
            labels = rng.choice(4, len(judged), p=[0.6, 0.2, 0.1, 0.1])
            qrels.writelines(
                f"{topic} 0 clueweb-en{doc:010d} {label}\n" for doc, label in zip(judged, labels, strict=True)
            )


def rankeval(qrels: Path, run: Path, _binary: str, convention: str = "rankeval") -> Callable[[], object]:
    import pyarrow as pa

    import rankeval as rk

    pa.set_cpu_count(1)
    return lambda: rk.evaluate(qrels, run, measures=MEASURES, convention=convention).per_query


def rankeval_by_docid(qrels: Path, run: Path, binary: str) -> Callable[[], object]:
    return rankeval(qrels, run, binary, "trec_eval-9.0.8")


def _call(command: list[str], measures: list[str]) -> Callable[[], object]:
    asked = [part for measure in measures for part in ("-m", measure)]
    return lambda: subprocess.run([*command, *asked], check=True, capture_output=True)


def rankeval_command(qrels: Path, run: Path, _binary: str) -> Callable[[], object]:
    program = str(Path(sys.executable).with_name("rankeval"))
    return _call([program, "evaluate", str(qrels), str(run)], MEASURES)


def rankeval_trec_command(qrels: Path, run: Path, _binary: str) -> Callable[[], object]:
    program = str(Path(sys.executable).with_name("rankeval"))
    return _call([program, "evaluate", "--format", "trec", "-q", str(qrels), str(run)], TREC)


def trec_eval(qrels: Path, run: Path, binary: str) -> Callable[[], object]:
    if not binary:
        raise SystemExit("no binary was given (--trec-eval)")
    asked = [part for one in TREC for part in ("-m", one)]
    return _call([binary, "-q", *asked, str(qrels), str(run)], [])


def pytrec_eval(qrels: Path, run: Path, _binary: str) -> Callable[[], object]:
    import pytrec_eval as peer

    def evaluate():
        with qrels.open() as truth, run.open() as ranked:
            return peer.RelevanceEvaluator(peer.parse_qrel(truth), set(TREC)).evaluate(peer.parse_run(ranked))

    return evaluate


def ir_measures(qrels: Path, run: Path, _binary: str) -> Callable[[], object]:
    import ir_measures as peer

    names = [peer.parse_measure(name) for name in MEASURES]
    return lambda: list(peer.iter_calc(names, peer.read_trec_qrels(str(qrels)), peer.read_trec_run(str(run))))


def ranx(qrels: Path, run: Path, _binary: str) -> Callable[[], object]:
    import ranx as peer

    names = ["ndcg@10", "map", "mrr", "precision@10", "recall@100", "r-precision"]
    return lambda: peer.evaluate(
        peer.Qrels.from_file(str(qrels), kind="trec"), peer.Run.from_file(str(run), kind="trec"), names
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--decimals", type=int, default=6, help="of the scores: the fewer, the more rows are tied")
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=PEERS, help="who takes part in a running process")
    parser.add_argument("--trec-eval", default="", help="path of a trec_eval binary, built with -O3")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        call = globals()[given.child](given.folder / "b.qrels", given.folder / "b.run", given.trec_eval)
        contest.take_part(call, given.repeats)
        return
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder), given.topics, given.decimals)
        options = ["--repeats", str(given.repeats), "--folder", folder, "--trec-eval", given.trec_eval]
        contest.hold(__file__, given.peers, options, f"B: {given.topics * 1000:,} lines, in a running process")
        contest.hold(__file__, WHOLE, options, "B: as a whole process")


if __name__ == "__main__":
    main()
