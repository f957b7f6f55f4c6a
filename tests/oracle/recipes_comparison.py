"""Comparisons: systems by tests, corrections, claims and families; tables, plots and records."""

from __future__ import annotations

from typing import Any

import pandas as pd
from oracle.calls import Call, recipe
from oracle.drawing import Draw
from oracle.recipes_evaluation import small_evaluation

TESTS = (
    *(
        "t",
        "t",
        "randomization",
        "bootstrap",
        "wilcoxon",
        "wilcoxon_pratt",
        "sign",
        "bootstrap_shift",
    ),
    *("bootstrap_percentile", "bootstrap_bca"),
)
CORRECTIONS = ("holm", "bonferroni", "bh", "by", "none", "max_t", "tukey")
CLAIMS = ("difference", "better", "not_worse", "equivalent")
LAYOUTS = ("comparisons", "systems", "systems", "means")
KINDS = (None, "intervals", "forest", "matrix", "queries", "ranks", "tradeoff", "odd")


def choices(draw: Draw, share: float = 0.4) -> dict[str, Any]:
    """Return how systems are compared."""
    chosen = draw.options(
        share,
        test=TESTS,
        correction=CORRECTIONS,
        family=("all", "measure"),
        alpha=(0.01, 0.1, 0.2),
        rng=(1, 2),
        unseen=(0, 1, 3),
    )
    if draw.happens(0.3):
        claim = draw.choice(CLAIMS)
        chosen |= {"claim": claim} | (
            {"margin": draw.choice((0.01, 0.05, 0.2))} if claim != "difference" else {}
        )
    return chosen | {"n_resamples": draw.choice((19, 99, 199))}


def systems_of(draw: Draw, call: Call) -> dict[str, Any]:
    """Return systems as frames, or as evaluations of the same judgments."""
    if draw.happens(0.7):
        measures = draw.choice((("nDCG@10",), ("nDCG@10", "AP"), ("AP", "RR", "P@5")))
        return draw.effects(draw.integer(2, 4), draw.integer(5, 30), measures)
    judgments = draw.judgments(draw.integer(4, 10), 8)
    return {
        name: call.make(
            "rankeval.evaluate", judgments, ranking, measures=["nDCG@10", "AP"], name=name
        )
        for name, ranking in draw.rankings(judgments).items()
    }


@recipe("comparison", 385)
def compare(draw: Draw, call: Call) -> None:
    """Compare systems in a drawn manner, and print the table."""
    systems = systems_of(draw, call)
    options = choices(draw) | draw.options(0.5, baseline=(next(iter(systems)),))
    if options.get("claim", "difference") not in ("difference", "equivalent") and draw.happens(0.9):
        options["baseline"] = next(iter(systems))
    if options.get("correction") == "tukey":
        options.pop("baseline", None)
    found = call("rankeval.compare", systems, **options)
    call.plain(found, "Comparison.to_markdown")


@recipe("comparison", 110)
def printed(draw: Draw, call: Call) -> None:
    """Write a comparison as LaTeX, Markdown, HTML and JSON, and read the JSON."""
    systems = systems_of(draw, call)
    made = call.make(
        "rankeval.compare", systems, **draw.options(0.6, baseline=(next(iter(systems)),))
    )
    layout = draw.options(0.6, layout=LAYOUTS, digits=(2, 4))
    if layout.get("layout") == "systems" or draw.happens(0.1):
        layout |= draw.options(
            0.3,
            against=(next(iter(systems)), "none such"),
            spread=("sd", "ci", "se"),
            gain=(True, False),
        )
    call.of(made, "Comparison.to_latex", **layout, **draw.options(0.4, label=("tab:main",)))
    call.of(made, "Comparison.to_markdown", **layout)
    call.of(made, "Comparison.to_html", **layout)
    text = call.of(made, "Comparison.to_json")
    if isinstance(text, str):
        call(
            "rankeval.Comparison.from_json",
            text if draw.happens(0.8) else text[: draw.integer(0, 60)],
        )


@recipe("comparison", 33)
def plots(draw: Draw, call: Call) -> None:
    """Plot a comparison."""
    systems = systems_of(draw, call)
    made = call.make(
        "rankeval.compare", systems, **draw.options(0.6, baseline=(next(iter(systems)),))
    )
    pair = draw.options(0.5, system=list(systems)[1:], baseline=list(systems)[:1]) | draw.options(
        0.3, measure=("AP", "nDCG@10")
    )
    call.of(made, "Comparison.plot", draw.choice(KINDS), **pair)


@recipe("comparison", 33)
def tradeoff(draw: Draw, call: Call) -> None:
    """Ask for the differences by two measures, and draw them."""
    systems = systems_of(draw, call)
    options = draw.options(0.8, baseline=(next(iter(systems)),))
    made = call.make("rankeval.compare", systems, **options)
    measures = {"x": "AP", "y": draw.choice(("nDCG@10", "RR"))}
    margin = draw.options(0.4, margin=(0.01, 0.3, -1))
    call.of(made, "Comparison.tradeoff", **measures, **margin)
    call.of(made, "Comparison.plot", "tradeoff", **measures, **margin)


@recipe("comparison", 33)
def bayes(draw: Draw, call: Call) -> None:
    """Ask a comparison for probabilities."""
    systems = draw.effects(2, draw.integer(5, 20), ("AP",))
    made = call.make("rankeval.compare", systems, baseline="base")
    options = draw.options(0.6, method=("t", "signed_rank", "other"), rng=(1,))
    call.of(
        made,
        "Comparison.bayes",
        rope=draw.choice((0.0, 0.01, 0.1)),
        n_samples=draw.choice((200, 1000)),
        **options,
    )


@recipe("comparison", 82)
def parts(draw: Draw, call: Call) -> None:
    """Compare by slices, over collections, with unjudged documents, with unpaired queries."""
    form = draw.integer(0, 3)
    systems: Any = draw.effects(draw.integer(2, 3), draw.integer(8, 20), ("nDCG@10",))
    options: dict[str, Any] = choices(draw, 0.15)
    if form == 0:
        index = systems["base"].index
        options["by"] = pd.Series(
            [draw.choice(("head", "tail")) for _ in index], index=index, name="kind"
        )
    elif form == 1:
        names = ("first", "second")
        systems = {name: draw.effects(2, draw.integer(6, 12), ("AP",)) for name in names}
        systems = {
            system: {name: systems[name][system] for name in names} for system in ("base", "ltr")
        }
        options |= draw.options(0.5, collection_weights=("collections", "queries"))
    elif form == 2:
        systems["ltr"] = systems["ltr"].iloc[draw.integer(0, 2) :]
        options["unpaired"] = draw.choice(("skip", "error"))
    else:
        judgments = draw.judgments(6, 8)
        systems = {
            name: call.make("rankeval.evaluate", judgments, ranking, measures=["P@5", "RBP(p=0.8)"])
            for name, ranking in draw.rankings(judgments, 2).items()
        }
        options["unjudged"] = draw.choice(("skip", None))
    call("rankeval.compare", systems, **options)


@recipe("comparison", 33)
def by_hand(draw: Draw, call: Call) -> None:
    """Make a comparison from the parts of another."""
    made = call.make("rankeval.compare", draw.effects(2, 8, ("AP",)), baseline="base")
    call(
        "rankeval.Comparison",
        made.table,
        made.evaluations,
        made.settings,
        **draw.options(0.5, notes=(("a note",),)),
    )


@recipe("comparison", 44)
def lower(draw: Draw, call: Call) -> None:
    """Compare columns of which lower is better, or nobody says."""
    systems = draw.effects(2, 10, ("latency", "AP"))
    direction = draw.choice(
        (
            {"latency": True},
            {"latency": True},
            {"latency": False},
            {"latency": None},
            {"AP": True},
            None,
        )
    )
    call(
        "rankeval.compare",
        systems,
        lower_is_better=direction,
        **draw.options(0.4, measures=("latency", ["AP", "latency"])),
    )


@recipe("comparison", 50)
def order(draw: Draw, call: Call) -> None:
    """Compare the orders of systems by several measures, and ask which queries swap two."""
    systems = draw.effects(draw.integer(2, 5), draw.integer(4, 12), ("nDCG@10", "AP", "RR"))
    options = draw.options(0.5, truth=("AP", "nDCG@10", "other"), measures=(["AP", "RR"], None))
    found = call("rankeval.order_agreement", systems, **options)
    call.of(
        found,
        "OrderAgreement.swaps",
        draw.choice(("AP", "RR")),
        draw.choice(("nDCG@10", "RR", "none")),
    )
    call.plain(found, "OrderAgreement.to_latex", "OrderAgreement.to_markdown")
    call(
        "rankeval.OrderAgreement",
        found.table,
        found.means,
        **draw.options(0.5, truth=("AP",), notes=(("n",),)),
    )


@recipe("comparison", 38)
def ranks(draw: Draw, call: Call) -> None:
    """Give intervals to the ranks of systems."""
    systems = draw.effects(draw.integer(2, 5), draw.integer(5, 20), ("AP",))
    options = draw.options(
        0.4, test=TESTS, correction=CORRECTIONS, alpha=(0.1, 0.01), measure=("AP",), rng=(1,)
    )
    call("rankeval.rank_intervals", systems, n_resamples=draw.choice((99, 199)), **options)


@recipe("comparison", 38)
def variance(draw: Draw, call: Call) -> None:
    """Analyse the variance of scores over systems, queries and replicates."""
    replicates = [draw.effects(draw.integer(2, 3), 8, ("AP",)) for _ in range(draw.integer(1, 3))]
    names = sorted(set.intersection(*map(set, replicates)))
    systems: dict[str, Any] = {
        name: {f"s{at}": part[name] for at, part in enumerate(replicates)} for name in names
    }
    if len(replicates) == 1:
        systems = replicates[0]
    options = draw.options(
        0.4, queries=("random", "fixed"), replicates=("crossed", "nested"), measure=("AP",)
    )
    found = call("rankeval.anova", systems, **options)
    call.plain(found, "Anova.to_latex", "Anova.to_markdown")


@recipe("comparison", 22)
def of_one(draw: Draw, call: Call) -> None:
    """Compare too few systems, systems of other judgments, or systems without queries."""
    first, second = small_evaluation(draw, call, "one"), small_evaluation(draw, call, "two")
    call(
        "rankeval.compare",
        draw.choice(({"one": first}, {"one": first, "two": second}, {}, [first, second])),
    )
