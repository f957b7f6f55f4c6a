"""The guide to significance, made from declarations and measured rates: which test to take, and how often it errs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from calibration import measure_groups

from rankeval.significance import catalogue as rates
from rankeval.significance.catalogue import FALSE_CLAIMS, KINDS, described
from rankeval.significance.declarations import CORRECTIONS, TESTS

ESCAPES = str.maketrans({character: f"\\{character}" for character in r"\`*_[]<>|"})

UNPROMISED_FROM, COVERED_UP_TO = 0.065, 0.93
"""A rate above the first is no longer the level that was asked for; below the second, no longer the coverage."""

FAMILYWISE = [name for name, correction in CORRECTIONS.items() if correction.familywise]
"""The corrections that bound the chance of any false claim."""

GROUPED = ("conversations", "paraphrases", "documents")
"""The worlds of queries in groups that the first table speaks of."""

Row = dict[str, Any]

OPENING = """\
# Significance: which test to take, and how often it errs

`tests/calibration/document.py` makes this page from the declarations and from `error_rates.json`, which
`tests/calibration/measure_rates.py` measures and writes. A test compares the page with both. `rankeval tests NAME` and
`rk.list_tests(NAME)` print what belongs to one test, correction or claim.

The rates below are shares of simulated data sets whose truth is known. Tests ask for a level of 5 %, intervals for
95 %. A *false claim* is a difference that was claimed where there is none; in a family of comparisons, one false claim
or more. The standard errors of these rates are at most {error}.

## Which test to take
"""

CHOICES = (
    ("two systems on the same queries", '`rk.compare({...})`, that is `test="t"`',
     "holds its level from 10 queries on, if these are independent, unless skew is strong"),
    ("queries that are turns, paraphrases, or questions on one document", "`rk.compare({...}, groups=...)`",
     "a test over queries that go together claims a difference of equal systems in {turns} of the data sets"),
    ("the same, for a reader who distrusts the t test", '`test="randomization"`, `test="bootstrap"`',
     "nearly the same rates without a formula"),
    ("several systems with one baseline, or all pairs", '`correction="holm"`',
     "bounds the chance of any false claim by the level, if the single tests hold theirs"),
    ("many variants of one system", '`correction="max_t"`', "uses how their scores go together; its limits are below"),
    ("learners by cross-validation", '`CrossValidation.compare(other, question="algorithms")`, 10 repeats',
     "folds overlap, so a plain t test over them claims a difference of equal learners in {folds} of the data sets"),
    ("a change that must do no harm", '`claim="not_worse", margin=...`', "a large p-value does not show equality"),
    ("a change that must change nothing that matters", '`claim="equivalent", margin=...`',
     "shows that neither gain nor loss reaches the margin"),
    ("several systems, to name the value of the best", "`cmp.best`",
     "the largest of several means is too large on average"),
)  # fmt: skip

ONE_PAIR = """\
## Error rates of one pair

False claims about two systems that are equally good, in percent: two-sided / one-sided, the greater rate of both sides.
One-sided tests (`claim="better"`, `claim="not_worse"`) are more fragile: skew moves errors from one side to the other.
The liberal bootstraps are offered because papers use them; below 50 queries their results carry a warning.
"""

FAMILIES = """\
## Many comparisons, and max-T against a shared baseline

Data sets with a false claim or more, in percent: two-sided / one-sided, the greater rate of both sides. The systems are
all equally good; in "half are +.12" half of them are better, and power is the share of these that is found.
Benjamini-Hochberg and Benjamini-Yekutieli do not promise low rates here: they bound the expected share of false claims
among those made.

max-T flips the signs of whole queries. That is exact if differences are symmetric together, and nearly right for one
pair. Systems that share a baseline share its luck: then skewed scores make max-T liberal, most of all one-sided. The
exponential differences below have their tail above; with a tail below, the two one-sided rates change places.
Comparisons of several systems on fewer than {few} queries carry a note with the worst of these rates.
"""

UNPROMISED = """\
### Where no promise holds

All rates above {bound} of the tests that are not called liberal above, of claims tested by them, of max-T, and of Holm,
whose rates are Bonferroni's too. The sides with the greatest rate, in percent:
"""

REMEDIES = """\
What to do there:

* Take more queries. All these rates come back to 5 % as queries are added. (Those of Wilcoxon and the sign test grow on
  skewed differences: they test another hypothesis.)
* Compare fewer systems on few queries of skewed scores: choose on development data, then test a few.
* Take `correction="holm"` with the default t test where many systems meet one baseline, if its rate above is lower.
* Stay two-sided on skewed scores. If the claim is one-sided by nature, ask for `alpha=0.025`: the rate is
  then at most the two-sided one above.
"""

COVERAGE = """\
## All adjusted intervals at once

Data sets in which every adjusted interval of the family holds its true difference, in percent; 95 are asked for. max-T
has single-step intervals of centred flips, Holm and Bonferroni have Bonferroni's. Without a correction each interval
holds for its own pair only. The table has the families in which a correction holds fewer than {least}. Rows of
"ranks" are of `cmp.ranks` and `rk.rank_intervals`: all ranges hold all true ranks of systems that are equally good.
"""

CLAIMS = """\
## Claims about a margin

False claims if the true gain lies on the edge of the claim, margin .10, in percent: "equivalent" (two one-sided tests)
at either edge, "not_worse" at a loss of the margin, "better" at a gain of the margin. Skewed gains have their tail
above or below. "not_worse" and "equivalent" count one unseen query.
"""

BREAKAGE = """\
## Rare breakage

A change may break few queries, and your sample may have none of them. Then its differences vary little, and the plain
test rules out a loss that is there. So "not_worse" and "equivalent" count one query more, which lost all that a query
can (`unseen=1`). And no p-value is below the chance that n queries show nothing of a breakage as large as the margin,
(1 - margin / loss)^n. The table gives false claims where the true loss is the margin, in percent: the plain test
(`unseen=0`) -> the test of the claim. The rows of no effect give the power. The price is power on few queries: take a
margin well above 3 / n, or more queries (`rk.topics_needed` knows of it).
"""

BEST = """\
## The best of several

The value of the choice "largest mean" (`cmp.best`) among so many variants of one system (correlation .9), or so many
systems whose gains are exponential. Bias is the mean of estimate less truth, in units of the measure. Coverage is in
percent. Width is that of the interval of `cmp.best` by that of Student's. "If shown better" speaks of those data sets
alone in which the chosen system was shown better (t, Holm). There the estimate is too large: luck helps to be shown,
and no bound is promised for it. Where no system is better, or one by too little to be found, those shown better are
false claims, which the interval does not cover either: that is the 5 % of the test.
"""

FOLDS = """\
## Cross-validated learners

Two learners that are equally good, by 100 queries; and the differences found if the signal of one is a quarter
stronger. In percent.
"""

POWER = """\
## Power

True differences found, in percent: normal differences of mean .05 and standard deviation .183, two-sided. Wilcoxon and
the sign test are at home here, and not on skewed differences. `rk.topics_needed` plans other cases.
"""


def significance_markdown() -> str:
    """Return the guide to every declared test, correction and claim, in Markdown.

    Returns
    -------
    str
        Which test to take, the declarations, and their measured error rates by world and number of queries.
    """
    rows = rates.all_rows()
    error = max(row["standard_error"] for row in rows if row["quantity"] in (FALSE_CLAIMS, "coverage", "power"))
    folds = next(rates.percent(row["rate"]) for row in rows if row["world"].endswith("as if independent"))
    by_query = {"by": "query", "test": "t"}.items()
    turns = [one["rate"] for one in measure_groups.rows() if one["world"] in GROUPED and by_query <= one.items()]
    of_tests = {"folds": folds, "turns": f"{100 * min(turns):.0f} to {100 * max(turns):.0f} %"}
    worlds = rates.measured()["worlds"].items()
    parts = [
        OPENING.format(error=rates.percent(error)),
        _table(("you compare", "take", "because"), ((*two, why.format_map(of_tests)) for *two, why in CHOICES)),
        "## Tests, corrections, claims\n",
        _table(("name", "kind", "words", "documentation"), _declared()),
        "The worlds of the tables below:\n",
        _table(("world", "scores"), ((name, _escaped(words)) for name, words in worlds)),
        ONE_PAIR,
        _pivot(_one_pair(rows), ("world", "n"), "test", _both_sides),
        FAMILIES.format(few=rates.FEW_QUERIES),
        _pivot(_families(rows, FALSE_CLAIMS, "power"), ("world", "quantity", "n", "comparisons"), "name", _both_sides),
        UNPROMISED.format(bound=rates.percent(UNPROMISED_FROM)),
        _table(("name", "test", "world", "rates"), _unpromised(rows)),
        REMEDIES,
        COVERAGE.format(least=rates.percent(COVERED_UP_TO)),
        _pivot(_intervals(rows), ("world", "n", "comparisons"), "name"),
        CLAIMS,
        _pivot(
            [row | {"of": f"{row['test']}, n = {row['n']}"} for row in _of_kind(rows, "claim")], ("name", "world"), "of"
        ),
        BREAKAGE,
        _pivot(sorted(_of_kind(rows, "breakage"), key=_by_claim), ("world", "name", "test"), "n", _plain_and_unseen),
        BEST,
        _pivot(_of_kind(rows, "choice"), ("world", "n", "comparisons"), "quantity", _of_choice),
        measure_groups.block(),
        FOLDS,
        _pivot([row for row in rows if "folds" in row["world"]], ("world", "quantity"), "name"),
        POWER,
        _pivot([row for row in _of_kind(rows, "test") if row["quantity"] == "power"], ("n",), "test"),
    ]
    return "\n".join(parts)


def _declared() -> Iterator[tuple[str, ...]]:
    for kind, table in KINDS.items():
        for name, declared in table.items():
            one = described(kind, name, declared)
            note = f" {_escaped(one['note'][:1].upper() + one['note'][1:])}." if one["note"] else ""
            yield _code(name), kind, _escaped(one["words"]), f"{_escaped(one['title'])}{note}"


def _of_kind(rows: list[Row], kind: str) -> list[Row]:
    return [row for row in rows if row["kind"] == kind]


def _one_pair(rows: list[Row]) -> list[Row]:
    worlds = {world for group in rates.KINDS_OF_DIFFERENCES.values() for world in group}
    return [row for row in _of_kind(rows, "test") if row["quantity"] == FALSE_CLAIMS and row["world"] in worlds]


def _families(rows: list[Row], *quantities: str) -> list[Row]:
    return [row for row in _of_kind(rows, "correction") if row["quantity"] in quantities]


def _intervals(rows: list[Row]) -> list[Row]:
    found = [row for row in _families(rows, "coverage") if row["sides"] == "two-sided"]
    short = [row for row in found if row["name"] in FAMILYWISE and row["rate"] < COVERED_UP_TO]
    low = {(row["world"], row["n"], row["comparisons"]) for row in short}
    pairs = [row for row in _families(rows, FALSE_CLAIMS) if "all pairs" in row["world"] and row["name"] in FAMILYWISE]
    # Equal systems have all ranks, and a range has them unless a pair is shown to differ.
    ranks = [row | {"rate": 1 - row["rate"], "world": f"ranks: {row['world']}"} for row in pairs]
    return [row for row in found if (row["world"], row["n"], row["comparisons"]) in low] + ranks


def _unpromised(rows: list[Row]) -> Iterator[tuple[str, ...]]:
    """Yield the rates of each test, claim or correction that promises its level, where they are too large."""
    found: dict[tuple[str, ...], dict[tuple[int, int], Row]] = {}
    for row in rows:
        if row["quantity"] == FALSE_CLAIMS and row["rate"] > UNPROMISED_FROM and _promises(row):
            of_world = found.setdefault((row["name"], row["test"], row["world"]), {})
            size = (row["n"], row["comparisons"])
            of_world[size] = max(row, of_world.get(size, row), key=lambda one: float(one["rate"]))
    for (name, test, world), by_size in found.items():
        said = [f"{_percent(row)} ({', '.join(_circumstances(row))})" for _, row in sorted(by_size.items())]
        yield _code(name), _code(test), world, ", ".join(said)


def _circumstances(row: Row) -> Iterator[str]:
    yield f"n = {row['n']}"
    if row["comparisons"] > 1:
        yield f"{row['comparisons']} comparisons"
    yield row["sides"]


def _promises(row: Row) -> bool:
    if row["kind"] == "correction":
        return row["name"] in ("max_t", "holm")
    test = TESTS.get(row["test"])
    return test is not None and not test.liberal and not test.note and "folds" not in row["world"]


def _pivot(
    rows: Iterable[Row], index: Sequence[str], column: str, cell: Callable[[list[Row]], str] | None = None
) -> str:
    """Return a table: a line for each index, a column for each value; a cell is made of all rates that belong there."""
    cells: dict[tuple[Any, ...], dict[Any, list[Row]]] = {}
    columns: dict[Any, None] = {}
    for row in rows:
        columns[row[column]] = None
        cells.setdefault(tuple(row[name] for name in index), {}).setdefault(row[column], []).append(row)
    written, first = cell or _greatest, [_head(column, value) for value in columns]
    lines = (
        [*map(_head, index, key), *(written(line[value]) if value in line else "" for value in columns)]
        for key, line in cells.items()
    )
    return _table([*index, *first], lines)


def _both_sides(rows: list[Row]) -> str:
    """Write the two-sided rate, and behind a slash the greater one of both sides."""
    two = [row for row in rows if row["sides"] == "two-sided"]
    one = [row for row in rows if row["sides"] != "two-sided"]
    return " / ".join(_greatest(part) for part in (two, one) if part)


def _by_claim(row: Row) -> tuple[bool, int]:
    return "power" in row["quantity"], row["n"]


def _plain_and_unseen(rows: list[Row]) -> str:
    """Write the rate of the plain test, an arrow, and that with the unseen query."""
    plain = [row for row in rows if "plain" in row["quantity"]]
    return " -> ".join(_greatest(part) for part in (plain, [row for row in rows if row not in plain]) if part)


def _greatest(rows: list[Row]) -> str:
    return _percent(max(rows, key=lambda row: float(row["rate"])))


def _head(name: str, value: Any) -> str:
    return _code(value) if name in ("name", "test") else str(value)


def _of_choice(rows: list[Row]) -> str:
    row = rows[0]
    if "coverage" in row["quantity"]:
        return _percent(row)
    return f"{row['rate']:.2f}" if "width" in row["quantity"] else f"{row['rate']:+.4f}"


def _percent(row: Row) -> str:
    return f"{100 * row['rate']:.1f}"


def _table(heads: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [tuple(heads), ("---",) * len(heads), *(tuple(row) for row in rows)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _escaped(text: str) -> str:
    return text.translate(ESCAPES)


def _code(text: str) -> str:
    return "`" + text + "`"
