"""The tables and figures of a paper: 16 runs on one collection, and one question on several collections.

Run it with a folder of collections, each with its judgments and a folder `runs`, and name your own files below:

    python 08_paper_tables.py FOLDER

The runs are of TREC-COVID, the TREC Web Track 2012, Cranfield and CISI, which we may not distribute.
"""

import sys
from pathlib import Path

import rankeval as rk

FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2] / "shared" / "data"
FEEDBACK = {  # on each collection: judgments, a query likelihood run, and the same with pseudo relevance feedback
    "web2012": ("qrels.adhoc.txt.gz", "indri-ql-catb.run.gz", "indri-rm-catb.run.gz"),
    "cranfield": ("qrels.binary.txt.gz", "lm_dirichlet.run.gz", "rocchio_prf.run.gz"),
    "cisi": ("qrels.binary.txt.gz", "lm_dirichlet.run.gz", "rocchio_prf.run.gz"),
}
if not FOLDER.is_dir():
    print(f"no collections in {FOLDER}: give a folder with trec_covid_r5, {', '.join(FEEDBACK)}")
    raise SystemExit

# One collection, all pairs of its runs: a table with letters, the significance matrix, the rank intervals.
covid = FOLDER / "trec_covid_r5"
qrels = rk.Qrels.read(covid / "qrels.residual.txt.gz")
runs = {path.stem: rk.Run.read(path) for path in sorted((covid / "runs").glob("*.gz"))}
evs = {name: rk.evaluate(qrels, run, measures=["nDCG@20", "P@20", "AP"]) for name, run in runs.items()}
pairs = rk.compare(evs, correction="max_t", family="measure")
print(pairs.headline)
Path("covid.tex").write_text(pairs.to_latex(layout="systems", label="tab:covid"), encoding="utf-8")
Path("covid_marks.tex").write_text(
    pairs.to_latex(layout="systems", against="bm25_bl_run5", spread="se", label="tab:marks"), encoding="utf-8"
)
print(pairs.to_markdown(layout="systems", against="bm25_bl_run5"))
for kind in ("matrix", "ranks"):
    pairs.plot(kind, measure="nDCG@20").savefig(f"covid_{kind}.png", dpi=150, bbox_inches="tight")

# Several collections: does pseudo relevance feedback help? On each of them, and on all with equal weights.
systems: dict[str, dict[str, rk.Evaluation]] = {"likelihood": {}, "feedback": {}}
for collection, (judgments, *names) in FEEDBACK.items():
    qrels = rk.Qrels.read(FOLDER / collection / judgments)
    for system, name in zip(systems, names, strict=True):
        run = rk.Run.read(FOLDER / collection / "runs" / name)
        systems[system][collection] = rk.evaluate(qrels, run, measures=["nDCG@10", "AP"])
together = rk.compare(systems, baseline="likelihood")
print(together.headline)
together.plot("forest").savefig("feedback.png", dpi=150, bbox_inches="tight")
Path("feedback.tex").write_text(together.to_latex(layout="systems", label="tab:feedback"), encoding="utf-8")
print(together.to_markdown())
