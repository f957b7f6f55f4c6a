"""Online: interleaved lists, click logs and models, propensities, policies, A/B tests, looks."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
from fuzz.mutations import mutated
from oracle.calls import Call, recipe
from oracle.drawing import Draw

SCHEMES = ("balanced", "team_draft", "probabilistic", "optimized")
MODELS = ("pbm", "cascade", "dcm", "sdbn", "dbn", "ubm")


def lists_of(draw: Draw, n_lists: int, longest: int = 5) -> dict[str, list[str]]:
    """Return rankings by name, of which documents overlap."""
    docs = [f"d{at}" for at in range(longest + 3)]
    return {
        name: draw.some(docs, 1 if draw.happens(0.2) else 3, longest) for name in "ABC"[:n_lists]
    }


def events(draw: Draw, *, n_impressions: int | None = None, users: bool = True) -> pd.DataFrame:
    """Return a click log with a row for each shown item."""
    rows = []
    for at in range(n_impressions or draw.integer(5, 40)):
        query, user = draw.choice(("q1", "q2", "q3")), f"u{draw.integer(0, 9)}"
        shown = draw.rng.sample([f"d{doc}" for doc in range(5)], draw.integer(2, 4))
        day = f"2024-03-{draw.integer(1, 28):02d} {draw.integer(0, 23):02d}:15:00"
        facts = {
            "impression": f"i{at}",
            "qid": query,
            "user": user,
            "time": day,
            "arm": draw.choice("AB"),
        }
        rows += [
            facts | {"position": place, "docid": doc, "clicked": int(draw.happens(0.6 / place))}
            for place, doc in enumerate(shown, 1)
        ]
    frame = pd.DataFrame(rows)
    return frame if users else frame.drop(columns=["user", "time", "arm"])


def log_of(draw: Draw, call: Call, **options: Any) -> Any:
    """Return a click log, as a later step needs it."""
    return call.make("rankeval.online.ClickLog.from_frame", events(draw, **options), tz="UTC")


@recipe("online", 260)
def interleave(draw: Draw, call: Call) -> None:
    """Interleave rankings for impressions, credit clicks, seal and read records."""
    scheme = draw.choice((*SCHEMES, "odd")) if draw.happens(0.3) else draw.choice(SCHEMES)
    mixer = call(
        "rankeval.online.Interleaver",
        scheme,
        **draw.options(0.5, depth=(1, 3, 8), salt=("s", "exp7")),
    )
    rankings = lists_of(draw, 3 if scheme == "team_draft" and draw.happens(0.4) else 2)
    who = draw.options(0.6, user=("u1", 7), qid=("q1",))
    shown = call.of(mixer, "Interleaver.show", rankings, impression=draw.choice(("i1", 12)), **who)
    if shown is None:
        return
    call.of(shown, "Interleaved.credited", draw.some([f"d{at}" for at in range(6)], 0, 3))
    record = call.of(shown, "Interleaved.to_json")
    if isinstance(record, str):
        changed = record.replace("d1", "d9") if draw.happens(0.2) else record
        call.tried(
            "rankeval.online.Interleaved.from_json",
            changed,
            **draw.options(0.5, salt=("s", "exp7")),
        )
    call("rankeval.online.Interleaved", shown.ids, shown.credits, shown.impression, shown.scheme)


@recipe("online", 60)
def bias(draw: Draw, call: Call) -> None:
    """Compute the bias of a scheme for two rankings."""
    lists = lists_of(draw, 2, 4)
    options = draw.options(0.5, relevant=(["d1", "d2"], []), depth=(2, 4))
    call(
        "rankeval.online.interleaving_bias", draw.choice(SCHEMES), lists["A"], lists["B"], **options
    )


@recipe("online", 70)
def credited(draw: Draw, call: Call) -> None:
    """Compare rankings by the clicks on interleaved lists."""
    mixer = call.make("rankeval.online.Interleaver", draw.choice(SCHEMES[:3]), salt="s")
    records, clicks = [], {}
    for at in range(draw.integer(8, 25)):
        shown = mixer.show(
            lists_of(draw, 2),
            impression=f"i{at}",
            user=f"u{draw.integer(0, 9)}",
            qid=f"q{draw.integer(0, 4)}",
        )
        records.append(shown.to_json() if draw.happens(0.2) else shown)
        if draw.happens(0.7):
            clicks[f"i{at}"] = [draw.choice(shown.ids)]
    options = draw.options(
        0.4,
        unit=("query", "impression"),
        unshown=("skip",),
        salt=("s", "t"),
        test=("sign", "randomization"),
    )
    call("rankeval.online.compare_interleaved", records, clicks, **options, n_resamples=99)


@recipe("online", 220)
def logs(draw: Draw, call: Call) -> None:
    """Make a click log of a frame of either form; ask it for rates, checks, sessions and parts."""
    frame = events(draw)
    if draw.happens(0.3):
        lists = frame.groupby("impression", sort=False)
        kept = lists[["qid", "user", "time", "arm"]].first()
        kept["shown"] = lists["docid"].agg(list)
        kept["clicked"] = lists["clicked"].agg(list)
        frame = kept.reset_index()
    elif draw.happens(0.3):
        frame = frame.rename(
            columns={"docid": "item_id", "clicked": "click", "impression": "search_id"}
        )
    options = draw.options(0.3, clicks=("skip", "error"), complete=(False,)) | draw.options(
        0.9, tz=("UTC", "Europe/Berlin")
    )
    log = call("rankeval.online.ClickLog.from_frame", frame, **options)
    by = ("position", "arm", ["arm", "position"], "qid", "user", "odd")
    call.of(log, "ClickLog.click_rates", draw.choice(by))
    call.of(
        log,
        "ClickLog.abandonment",
        **draw.options(0.6, by=("arm", "qid", ()), of=("impression", "session", "odd")),
    )
    call.of(log, "ClickLog.checks", **draw.options(0.5, times_usual=(2, 5)))
    call.of(log, "ClickLog.sessions", **draw.options(0.5, gap=("10min", "1D", "odd")))
    call.of(log, "ClickLog.subset", draw.numpy.random(len(log.impressions)) < 0.5)
    call.of(
        log,
        "ClickLog.without",
        users=draw.some(["u1", "u2", "u3"]) if draw.happens(0.9) else ["u77"],
    )
    call.plain(log, "ClickLog.to_frame", "ClickLog.to_latex", "ClickLog.to_markdown")


@recipe("online", 40)
def tables_of_logs(draw: Draw, call: Call) -> None:
    """Print and plot rates and checks of a log; make both, and a log, by hand."""
    log = log_of(draw, call)
    rates, checks = log.click_rates(draw.choice(("position", "arm"))), log.checks()
    call.plain(rates, "ClickRates.plot", "ClickRates.to_latex", "ClickRates.to_markdown")
    call.plain(checks, "LogChecks.to_latex", "LogChecks.to_markdown")
    call.tried(
        "rankeval.online.ClickRates",
        rates.table,
        **draw.options(0.5, by=(("position",),), notes=(("n",),)),
    )
    call.tried("rankeval.online.LogChecks", checks.table, checks.users, checks.several_arms)
    call.tried("rankeval.online.ClickLog", log.impressions, log.items)


@recipe("online", 90)
def log_files(draw: Draw, call: Call) -> None:
    """Read logs from files of several formats, some damaged."""
    frame = events(draw, n_impressions=6)
    form = draw.choice(("csv", "tsv", "jsonl", "parquet"))
    if form == "parquet":
        frame.to_parquet("log.parquet")
    elif form == "jsonl":
        draw.write("log.jsonl", frame.to_json(orient="records", lines=True))
    else:
        draw.write(f"log.{form}", frame.to_csv(index=False, sep="," if form == "csv" else "\t"))
    from pathlib import Path

    path = Path(f"log.{form}")
    if draw.happens(0.25):
        path.write_bytes(mutated(path.read_bytes(), draw.rng))
    call(
        "rankeval.online.ClickLog.read",
        path,
        tz="UTC",
        **draw.options(0.3, clicks=("skip",), docid=("docid",), user=("user", "sku")),
    )


@recipe("online", 50)
def open_bandit(draw: Draw, call: Call) -> None:
    """Read the form of the Open Bandit data, value policies on it."""
    n = draw.integer(5, 30)
    frame = pd.DataFrame(
        {
            "timestamp": [f"2019-11-24 00:00:{at % 60:02d}.5+00:00" for at in range(n)],
            "item_id": draw.numpy.integers(0, 5, n),
            "position": draw.numpy.integers(1, 4, n),
            "click": draw.numpy.integers(0, 2, n),
            "propensity_score": np.round(draw.numpy.uniform(0.1, 0.9, n), 2),
        }
    )
    log = call("rankeval.online.ClickLog.from_open_bandit", frame)
    call.plain(log, "ClickLog.to_frame")


@recipe("online", 220)
def policies(draw: Draw, call: Call) -> None:
    """Value a policy by weighed clicks."""
    n = draw.integer(3, 60)
    click, propensity = draw.numpy.integers(0, 2, n), np.round(draw.numpy.uniform(0.05, 1, n), 2)
    target = np.round(draw.numpy.uniform(0, 1, n), 2)
    options = draw.options(
        0.5, how=("ips", "snips", "dr", "clipped", "odd"), unit=([f"u{at % 5}" for at in range(n)],)
    )
    if options.get("how") == "clipped" or draw.happens(0.05):
        options["clip"] = draw.choice((2.0, 10.0, 0.0))
    if options.get("how") == "dr" or draw.happens(0.1):
        options["baseline"] = (np.full(n, 0.3), np.full(n, 0.4))
    found = call("rankeval.online.policy_value", click, propensity, target, **options)
    call.plain(found, "PolicyValue.to_latex", "PolicyValue.to_markdown")
    call("rankeval.online.PolicyValue", found.table, **draw.options(0.5, notes=(("n",),)))


@recipe("online", 90)
def models(draw: Draw, call: Call) -> None:
    """Fit a click model; ask it for probabilities, perplexity and simulated users."""
    log = log_of(draw, call, n_impressions=30)
    model = call("rankeval.online.ClickModel", draw.choice(MODELS))
    options = draw.options(0.4, prior=((1.0, 2.0), (0.5, 1.0)), tolerance=(1e-3,), max_iter=(5, 50))
    call.of(model, "ClickModel.fit", log, **options)
    call.of(model, "ClickModel.click_probabilities", log)
    found = call.of(model, "ClickModel.perplexity", log, **draw.options(0.4, unknown=(0.2,)))
    rankings = {"q1": ["d1", "d2"], "q2": ["d0", "d3", "d9"] if draw.happens(0.2) else ["d0", "d3"]}
    call.of(
        model,
        "ClickModel.simulate",
        rankings,
        3,
        n=draw.integer(1, 4),
        **draw.options(0.6, unknown=(0.3,)),
    )
    if found is not None:
        call.plain(found, "Perplexity.to_latex", "Perplexity.to_markdown")
        call("rankeval.online.Perplexity", found.table, "pbm")


@recipe("online", 80)
def known_users(draw: Draw, call: Call) -> None:
    """Simulate users whose parameters are known."""
    name = draw.choice(("pbm", "cascade", "cascade", "odd"))
    attraction = {(query, f"d{at}"): draw.number() for query in ("q1", "q2") for at in range(3)}
    parameters: dict[str, Any] = {"attraction": attraction}
    if name == "pbm":
        parameters["examination"] = [1.0, draw.number(), draw.number()]
    model = call("rankeval.online.ClickModel", name, **parameters)
    call.of(
        model,
        "ClickModel.simulate",
        {"q1": ["d0", "d1"], "q2": ["d2"]},
        draw.integer(0, 5),
        n=draw.integer(1, 6),
    )


@recipe("online", 80)
def weights(draw: Draw, call: Call) -> None:
    """Estimate propensities; weigh clicks, and value a ranking that was not shown."""
    log = log_of(draw, call, n_impressions=60)
    options = draw.options(0.4, depth=(2, 4), clip=(0.1,), rng=(1,))
    how = draw.choice(("all_pairs", "em", "randomized", "swap", "em", "odd"))
    found = call(
        "rankeval.online.propensities", log, how=how, n_resamples=draw.choice((5, 20)), **options
    )
    call.of(found, "Propensities.weights", log)
    call.plain(found, "Propensities.to_latex", "Propensities.to_markdown", "Propensities.plot")
    call("rankeval.online.Propensities", found.table, found.how)
    scores = draw.numpy.normal(size=len(log.items)).round(2)
    call(
        "rankeval.online.counterfactual",
        log,
        scores,
        found,
        **draw.options(0.4, measure=("DCG@3", "nDCG@3"), name=("new",)),
    )


@recipe("online", 80)
def counterfactual(draw: Draw, call: Call) -> None:
    """Value a ranking under propensities that are handed over."""
    log = log_of(draw, call)
    scores: Any = draw.numpy.normal(size=len(log.items)).round(2)
    if draw.happens(0.1):
        scores = {"q1": {"d1": 1.0}}
    known = {1: 1.0, 2: 0.5, 3: 0.3, 4: 0.2}
    looked_at: Any = draw.choice((known, known, pd.Series(known), [1.0, 0.6, 0.4, 0.3]))
    call(
        "rankeval.online.counterfactual",
        log,
        scores,
        looked_at,
        **draw.options(0.6, measure=("DCG@2", "DCG", "DCG(gain='exp')@3", "AP")),
    )


def users_of(draw: Draw, arms: str = "AB") -> pd.DataFrame:
    """Return a frame of users in arms."""
    n = draw.integer(20, 80)
    views = draw.numpy.integers(1, 20, n)
    return pd.DataFrame(
        {
            "user": [f"u{at}" for at in range(n)],
            "arm": [arms[at % len(arms)] for at in range(n)],
            "orders": draw.numpy.poisson(1.0, n),
            "clicks": draw.numpy.binomial(views, 0.3),
            "views": views,
            "before": draw.numpy.poisson(1.0, n),
        }
    )


@recipe("online", 120)
def ab(draw: Draw, call: Call) -> None:
    """Test whether the users of arms differ."""
    frame = users_of(draw, draw.choice(("AB", "AB", "ABC")))
    if draw.happens(0.15):
        frame = pd.concat([frame, frame.iloc[:5]])
    options = draw.options(
        0.35,
        covariates=({"orders": "before"},),
        control=("A", "B", "A", "Z"),
        primary=("orders",),
        alpha=(0.1,),
    )
    options |= draw.options(0.2, shares=({"A": 0.5, "B": 0.5}, {"A": 0.9, "B": 0.1}))
    if draw.happens(0.25):
        options |= {
            "looks": call.make("rankeval.online.looks_plan", draw.integer(2, 4)),
            "look": draw.integer(1, 4),
        }
    metrics = draw.choice(
        (
            {"orders": "orders"},
            {"ctr": ("clicks", "views")},
            {"orders": "orders", "ctr": ("clicks", "views")},
        )
    )
    found = call("rankeval.online.ab_test", frame, metrics=metrics, **options)
    call.plain(found, "ABTest.to_latex", "ABTest.to_markdown")
    if draw.happens(0.2):
        call.plain(found, "ABTest.plot")
    parts = (found.table, found.arms, found.control, found.sample_ratio, found.looks, found.look)
    call("rankeval.online.ABTest", *parts)


@recipe("online", 60)
def power(draw: Draw, call: Call) -> None:
    """Plan an A/B test."""
    options = draw.options(
        0.4,
        covariate=("before",),
        relative=(0.05, [0.01, 0.1]),
        users_per_day=(1000,),
        power=(0.9,),
        alpha=(0.1,),
    )
    shares = draw.choice(({"A": 0.5, "B": 0.5}, {"A": 0.1, "B": 0.2}, {"A": 1.0}))
    metric = draw.choice(("orders", ("clicks", "views")))
    call("rankeval.online.ab_power", users_of(draw), metric=metric, shares=shares, **options)


@recipe("online", 120)
def assign(draw: Draw, call: Call) -> None:
    """Assign users to arms."""
    shares = draw.choice(
        (
            {"A": 0.5, "B": 0.5},
            {"A": 0.1, "B": 0.2},
            {"A": 0.01, "B": 0.01, "C": 0.5},
            {"A": 0.9, "B": 0.2},
        )
    )
    for user in draw.ids(draw.integer(1, 6), "u"):
        call("rankeval.online.assign", user, draw.choice(("s1", "s2", "")), shares)


@recipe("online", 100)
def looks(draw: Draw, call: Call) -> None:
    """Plan looks, and bound estimates at any time."""
    options = draw.options(0.5, spending=("obrien_fleming", "pocock", "odd"), alpha=(0.01, 0.1))
    plan = call(
        "rankeval.online.looks_plan", draw.choice((1, 2, 3, 5, [0.3, 1.0], [0.5, 0.4])), **options
    )
    call.of(plan, "LooksPlan.p_value", draw.number(-4, 4), draw.integer(0, 3))
    call.of(plan, "LooksPlan.checked", draw.choice((1, 2, 9, "1")))
    call("rankeval.online.LooksPlan", plan.shares, plan.bounds, plan.spending, plan.alpha)


@recipe("online", 100)
def sequences(draw: Draw, call: Call) -> None:
    """Bound estimates at any time."""
    n = draw.integer(1, 5)
    estimate, errors = draw.numpy.normal(size=n).round(3), draw.numpy.uniform(0.01, 1, n).round(3)
    sizes = np.cumsum(draw.numpy.integers(10, 500, n))
    call(
        "rankeval.online.confidence_sequence",
        estimate,
        errors,
        sizes,
        best_at=draw.choice((100, 1000.0)),
        **draw.options(0.4, alpha=(0.1,)),
    )


@recipe("online", 30)
def record_lines(draw: Draw, call: Call) -> None:
    """Compare by a file of records and a log of clicks."""
    mixer = call.make("rankeval.online.Interleaver", "team_draft", salt="s")
    shown = [
        mixer.show(lists_of(draw, 2), impression=f"i{at}", user=f"u{at % 7}") for at in range(15)
    ]
    lines = [json.loads(each.to_json()) for each in shown]
    path = draw.write("credits.jsonl", "".join(f"{json.dumps(line)}\n" for line in lines))
    clicks = pd.DataFrame(
        [{"impression": each.impression, "docid": each.ids[0]} for each in shown[::2]]
    )
    call(
        "rankeval.online.compare_interleaved",
        path,
        clicks,
        **draw.options(0.4, unit=("impression",)),
    )
