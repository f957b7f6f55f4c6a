"""Write the measured figures of the guard where people read them: between two comments of the guide to the guard.

    python tests/calibration/guard_tables.py

`measure_guard` calls this at its end. `test_guard_rates` fails where it was forgotten.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from calibration.guard_experiments import BUDGET, STREAMS, TWEAK_SD, WAYS
from calibration.worlds import WORLDS

FIGURES = Path(__file__).with_name("guard_rates.json")
GUIDE = Path(__file__).parents[2] / "examples" / "guides" / "guard_rules.md"
COMMENTS = "<!-- measured by tests/calibration/measure_guard.py -->", "<!-- end of the measured figures -->"

BATCHES = """\
**A batch against one baseline.** All systems of a batch are equally good. The cells show in what share of the batches,
in percent, `open` claims a difference (max-T over the batch, two-sided at 5 %).
"""

GATES = """\
**The gate.** None of {budget} candidates is better than the baseline. The cells show in what share of the gates with
this budget, in percent, at least one of them is accepted. The level is 5 %, so each candidate is tested one-sided at
5 % / {budget}. If candidates mostly gain a little and seldom lose much, a gate errs more often. The budgets of several
gates on the same queries add up, and their decisions say so.
"""

CLIMB = """\
**Why no p-value is adjusted for looks.** A developer looks at the test set after each tweak, and keeps the tweak if the
mean rises. All tweaks are worthless (standard deviation {sd:.2f} on each of 50 queries). The cells show in what share
of these histories, in percent, the last system is falsely claimed to be "better than the first system", one-sided at
5 %. Bonferroni over the looks does not help, because the last system was built from the answers.
"""

INFLATION = """\
**The expected inflation.** The best of several equally good systems looks better than it is. The cells show by how
much, on 50 queries: the simulated value, and the mean of the estimates in the notes of exploratory openings.
"""

BEST = """\
**The best of a batch.** The best of several equally good variants (correlation .9) is reported on 50 queries. The cells
show how far the reported value is from the truth on average.
"""

HABITS = """\
**Habits.** A developer has 30 variants of a system (correlation .9), 50 development queries and 50 test queries. The
first column counts false claims (two-sided at 5 %) if all variants are equally good. In the other columns, 6 of the 30
are better by .03: how often a better variant is shown, and how far the reported value of the best is above its true
value.
"""


def rows():
    """Return the measured figures, one dict each."""
    return json.loads(FIGURES.read_text("utf-8"))


def block() -> str:
    """Return all tables, in Markdown."""
    parts = [
        BATCHES,
        _batches(),
        GATES.format(budget=BUDGET),
        _gates(),
        CLIMB.format(sd=TWEAK_SD),
        _climb(),
        INFLATION,
        _inflation(),
        BEST,
        _best(),
        HABITS,
        _habits(),
    ]
    return "\n".join(parts)


def filled(text: str, tables: str, comments: tuple[str, str] = COMMENTS) -> str:
    """Return a page with tables between two comments."""
    begin, end = comments
    if text.count(begin) != 1 or text.count(end) != 1:
        raise SystemExit(f"the page needs these two lines, once each:\n{begin}\n{end}")
    before, rest = text.split(begin)
    return f"{before}{begin}\n\n{tables}\n{end}{rest.split(end)[1]}"


def main() -> None:
    if GUIDE.exists():
        GUIDE.write_text(filled(GUIDE.read_text("utf-8"), block()), "utf-8")


def _batches():
    found = _by("batch", "world", "n", "comparisons")
    sizes = sorted({key[2] for key in found})
    return table(
        ["scores", "queries", *(f"{k} systems" for k in sizes)],
        [
            [WORLDS[world].words, n, *(_percent(found[world, n, k]) for k in sizes)]
            for world, n in dict.fromkeys(key[:2] for key in found)
        ],
    )


def _gates():
    found = _by("gate", "world", "n")
    sizes = sorted({n for _, n in found})
    return table(
        ["candidates", *(f"{n} queries" for n in sizes)],
        [[one.words, *(_percent(found[name, n]) for n in sizes)] for name, one in STREAMS.items()],
    )


def _climb():
    found, gated = _by("climb", "comparisons", "quantity"), _by("gate", "world", "n")["tweaks", 50]
    lines = [
        [
            steps,
            _percent(found[steps, "false claims"]),
            _percent(found[steps, "false claims, Bonferroni by looks"]),
            _percent(gated) if steps == BUDGET else "",
        ]
        for steps in dict.fromkeys(steps for steps, _ in found)
    ]
    return table(["looks", "as if it were the only one", "Bonferroni by looks", "the same tweaks at a gate"], lines)


def _inflation():
    found = _by("inflation", "world", "comparisons", "quantity")
    worlds, sizes = (list(dict.fromkeys(key[place] for key in found)) for place in (0, 1))
    cells = [
        [k, *(f"{_short(found[w, k, 'best less truth'])} / {_short(found[w, k, 'note'])}" for w in worlds)]
        for k in sizes
    ]
    return table(["systems", *(f"{world}: simulated / note" for world in worlds)], cells)


def _best():
    found = _by("choice", "comparisons", "quantity")
    lines = [
        [k, _short(found[k, "bias of the plain mean"]), _short(found[k, "bias"])]
        for k in dict.fromkeys(k for k, _ in found)
    ]
    return table(["variants", "its mean", "the corrected best"], lines)


def _habits():
    found = _by("habit", "world", "name", "quantity")
    null, better = dict.fromkeys(world for world, *_ in found)
    lines = [
        [
            words,
            _percent(found[null, way, "false claims"]),
            _percent(found[better, way, "better ones shown"]),
            _short(found[better, way, "bias"]),
        ]
        for way, words in WAYS.items()
    ]
    return table(["habit", "false claims, %", "a better one shown, %", "bias of its value"], lines)


def _by(kind, *names):
    return {tuple(row[name] for name in names): row for row in rows() if row["kind"] == kind}


def _percent(row):
    return f"{100 * row['rate']:.1f}"


def _short(row):
    return f"{row['rate']:+.4f}".replace("0.", ".", 1)


def table(head, lines):
    """Return a table in Markdown."""
    rule = ["---"] * len(head)
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in (head, rule, *lines))


if __name__ == "__main__":
    main()
