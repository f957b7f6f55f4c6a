"""Names of measures: parsing, printing, keys, tables, and a value of every family."""

from __future__ import annotations

from typing import Any

from oracle.calls import Call, recipe
from oracle.drawing import CONVENTIONS, CUTOFFS, Draw

FAMILIES = {
    "DCG": ("", "gain='exp'", "discount='log_rank'", "base=3", "gain={1: 3, 2: 7}"),
    "IdealDCG": ("", "gain='exp'"),
    "nDCG": (
        "",
        "gain='exp'",
        "discount='log_rank'",
        "base=10",
        "gain='binary'",
        "gain={0: 0, 1: 1, 2: 5}",
    ),
    "Gain": ("column='price'", "column='price', discount='log2'", "column='price', rel=1"),
    "nDCGrel": ("", "gain='exp'"),
    "RnDCG": ("", "gain='exp'", "rel=2"),
    "G": ("", "gain='exp'"),
    "binG": ("", "rel=2"),
    "ERR": ("max_rel=4", "max_rel=4, gain='linear'", "max_rel=2"),
    "pFound": ("max_rel=4", "max_rel=4, p_break=0.3"),
    "Compat": ("", "p=0.8", "normalize=False", "depth=10"),
    "alpha_DCG": ("", "alpha=0.1"),
    "alpha_nDCG": ("", "alpha=0.9", "rel=2"),
    "ERR_IA": ("", "alpha=0.2"),
    "nERR_IA": ("", "alpha=0.2"),
    "NRBP": ("", "beta=0.8"),
    "nNRBP": ("", "alpha=0.2"),
    "P_IA": ("", "rel=2"),
    "AP_IA": ("", "rel=2"),
    "StRecall": ("", "rel=2"),
    "P": ("", "rel=2"),
    "R": ("", "rel=2"),
    "RelP": ("",),
    "SetAP": ("", "rel=2"),
    "Utility": ("", "a=1, b=-0.5, c=0, d=0"),
    "F": ("", "beta=2", "alpha=0.3", "beta=0.5, rel=2"),
    "Success": ("", "rel=2"),
    "NumQ": ("",),
    "NumRet": ("",),
    "NumRel": ("", "rel=2"),
    "NumRelRet": ("",),
    "Accuracy": ("collection_size=100",),
    "FallOut": ("collection_size=100", "collection_size=1000, rel=2"),
    "Bpref": ("", "rel=2"),
    "infAP": ("",),
    "Judged": ("",),
    "Unj": ("",),
    "NumNonrelJudgedRet": ("",),
    "RBP": ("p=0.8", "p=0.5, gain='linear'", "p=0.95, rel=2"),
    "RBPResid": ("p=0.8", "p=0.95, rule='trec_eval-10'"),
    "IPrec": ("recall=0.1", "recall=0.5, rule='trec_eval-9'", "recall=1"),
    "IAP11": ("", "levels=(0.2, 0.5, 0.8)"),
    "RprecMult": ("multiple=0.5", "multiple=2"),
    "PairAccuracy": ("",),
    "OPA": ("",),
    "ARP": ("",),
    "NumPrefs": ("",),
    "NumPrefsFul": ("", "count='judged'"),
    "Prefs": ("", "average='pair'"),
    "PrefsR": ("",),
    "AvgJG": ("of='AP'", "of='P'"),
    "AP": ("", "rel=2", "normalizer='hits'", "normalizer='min'"),
    "Rprec": ("", "rel=2"),
    "RR": ("", "rel=2"),
    "gm_AP": ("",),
    "YAAP": ("",),
    "gm_Bpref": ("",),
    "SDCG": ("max_rel=4",),
    "gRBP": ("p=0.8, max_rel=4", "p=0.5, max_rel=2, min_rel=1"),
    "INSQ": ("max_rel=4", "max_rel=4, T=2"),
    "NCG": ("", "gain='exp'"),
    "INST": ("max_rel=4", "max_rel=4, T=3"),
    "BPM": ("max_rel=4", "max_rel=4, T=2"),
    "NERR8": ("max_rel=4",),
    "NERR9": ("max_rel=4",),
    "NERR10": ("max_rel=4", "max_rel=4, p=0.5"),
    "NERR11": ("max_rel=4", "max_rel=4, T=2"),
}
"""Every family with parameters that it takes."""

CUT = {
    *[
        "DCG",
        "IdealDCG",
        "nDCG",
        "Gain",
        "ERR",
        "pFound",
        "alpha_DCG",
        "alpha_nDCG",
        "ERR_IA",
        "nERR_IA",
        "P_IA",
        "StRecall",
        "P",
        "R",
        "RelP",
        "F",
        "Success",
    ],
    *[
        "NumRelRet",
        "Accuracy",
        "FallOut",
        "Judged",
        "Unj",
        "RBP",
        "PairAccuracy",
        "AP",
        "RR",
        "gm_AP",
        "SDCG",
        "gRBP",
        "NCG",
        "BPM",
        "NERR8",
        "NERR9",
    ],
}
"""Families that take a cut-off."""
MUST_CUT = {
    "alpha_DCG",
    "alpha_nDCG",
    "ERR_IA",
    "nERR_IA",
    "P_IA",
    "SDCG",
    "BPM",
    "NERR8",
    "NERR9",
    "Success",
}
ASPECTS = {
    "alpha_DCG",
    "alpha_nDCG",
    "ERR_IA",
    "nERR_IA",
    "NRBP",
    "nNRBP",
    "P_IA",
    "AP_IA",
    "StRecall",
    "AvgJG",
}
PLAIN = sorted(set(FAMILIES) - ASPECTS - {"Gain", "Prefs", "PrefsR", "NumPrefs", "NumPrefsFul"})
OF_OTHERS = (
    *(
        "ndcg_cut_10",
        "ndcg_cut.5",
        "map",
        "map_cut_10",
        "P_5",
        "P.5,10",
        "recall_100",
        "recip_rank",
        "Rprec",
        "bpref",
    ),
    *(
        "gm_map",
        "gm_ap",
        "iprec_at_recall_0.10",
        "ircl_prn.0.10",
        "num_q",
        "num_rel_ret",
        "set_P",
        "set_F",
        "success_1",
    ),
    *(
        "official",
        "all_trec",
        "NDCG@10",
        "ndcg",
        "MRR",
        "MRR@10",
        "mAP",
        "R-prec",
        "R@100",
        "Recall@50",
        "ERR@20",
    ),
    *(
        "nDCG@10 ",
        "ndcg@10",
        "Precision@5",
        "P@5",
        "infAP",
        "alpha-nDCG@20",
        "RBP(p=0.8)",
        "rbp_p_0.80",
        "judged_10",
    ),
)


def measure_name(draw: Draw, families: Any = None) -> str:
    """Return the name of a measure, with parameters and a cut-off."""
    family = draw.choice(tuple(families or FAMILIES))
    parameters = draw.choice(FAMILIES[family])
    cutoff = ""
    if family in MUST_CUT or (family in CUT and draw.happens(0.6)):
        cutoff = f"@{draw.choice(CUTOFFS)}"
    return f"{family}({parameters}){cutoff}" if parameters else f"{family}{cutoff}"


def some_measures(draw: Draw, most: int = 4) -> list[str]:
    """Return names of measures of grades, each family once."""
    return [measure_name(draw, (family,)) for family in draw.some(PLAIN, 1, most)]


@recipe("measures", 1300)
def name(draw: Draw, call: Call) -> None:
    """Parse a name, of ours or of another tool; its key leads back to it."""
    spelt = measure_name(draw) if draw.happens(0.7) else draw.choice(OF_OTHERS)
    options = draw.options(0.3, convention=CONVENTIONS)
    measured = call("rankeval.measure", spelt, **options)
    call.keep("equal", [measured == call.make("rankeval.measure", str(measured)), str(measured)])
    call("rankeval.measure_from_key", measured.key)


@recipe("measures", 300)
def several(draw: Draw, call: Call) -> None:
    """Parse several names at once, of which some stand for many."""
    names: Any = [
        measure_name(draw) if draw.happens() else draw.choice(OF_OTHERS)
        for _ in range(draw.integer(1, 4))
    ]
    options = draw.options(0.3, convention=CONVENTIONS)
    call("rankeval.measures.measures", names if draw.happens(0.8) else names[0], **options)


@recipe("measures", 250)
def key(draw: Draw, call: Call) -> None:
    """Read keys, also such that no measure has."""
    keys = (
        "nDCG_at_10",
        "AP",
        "nDCG__gain.exp_at_10",
        "P__rel.2_at_5",
        "nDCG@10",
        "ndcg_at_x",
        "RBP__p.0.8",
        "RR_at_",
        "",
    )
    call("rankeval.measure_from_key", draw.choice(keys))


@recipe("measures", 300)
def facts(draw: Draw, call: Call) -> None:
    """Ask a measure what it binds and refuses; the direction and the greatest loss of a name."""
    spelt = measure_name(draw)
    measured = call.make("rankeval.measure", spelt)
    bind = {
        draw.choice(("nDCG", "DCG", "ERR")): draw.choice(
            ({"gain": "exp"}, {"max_rel": 3}, {"base": 2})
        )
    }
    call.of(measured, "Measure.bound", bind)
    call.of(
        measured, "Measure.refuse_lacking", draw.some(("grades", "aspects", "price", "judges"), 0)
    )
    call.of(
        measured,
        "Measure.refuse_bounds",
        draw.choice(("expected", "worst")),
        draw.choice(("zero", "lowest", "highest")),
    )
    call.of(
        measured,
        "Measure.refuse_falling_gains",
        draw.choice(("expected", "best", "worst")),
        draw.labels(5),
    )
    call.of(measured, "Measure.values", None)
    call.tried("rankeval.measures.greatest_loss", spelt)
    call.tried(
        "rankeval.measures.direction",
        draw.choice((spelt, "clicks", "latency")),
        **draw.options(
            0.5, lower_is_better=({"clicks": True}, {"latency": True, "clicks": None}, None)
        ),
    )


@recipe("measures", 60)
def made(draw: Draw, call: Call) -> None:
    """Make measures of a declared family, and labels of them."""
    family = call.make("rankeval.measure", measure_name(draw, PLAIN)).family
    chosen = draw.options(
        0.5, rel=(1, 2, 0.5), cutoff=(1, 10), gain=("exp", "linear"), p=(0.5, 0.9), max_rel=(4,)
    )
    taken = {name: value for name, value in chosen.items() if name in family.defaults}
    measured = call.of(family, "Family.with_parameters", **(chosen if draw.happens(0.2) else taken))
    if measured is not None:
        call("rankeval.measures.LabelledMeasure", draw.choice(("mine", "nDCG")), measured)
        call("rankeval.Measure", family, measured.parameters)


@recipe("measures", 60)
def directions(draw: Draw, call: Call) -> None:
    """Make a direction by hand, and ask which of two values is better."""
    sign = draw.choice((1.0, -1.0))
    found = call("rankeval.measures.Direction", sign, "higher", "lower")
    call.keep("note", [getattr(found, "verb", None) or found.beats, found.sign])


@recipe("measures", 40)
def tables(draw: Draw, call: Call) -> None:
    """List measures, all or by a word, as a table and as the guide."""
    words = (None, "nDCG", "precision", "map", "nothing like it", "recall", "R")
    call("rankeval.list_measures", draw.choice(words))
    if draw.happens(0.2):
        call("rankeval.measures.measures_markdown")


@recipe("measures", 20)
def own_family(draw: Draw, call: Call) -> None:
    """Declare a measure, evaluate it, and take it away."""
    name = draw.choice(("OracleAP", "nDCG", "bad name"))
    declare = call(
        "rankeval.measures.Family",
        name,
        title="a test",
        formula="AP",
        source="a test",
        linear=draw.happens(0.9),
    )
    families = call.names.find("rankeval.measures.family.FAMILIES")
    before = dict(families)
    precision = before["AP"]

    def halved(judged: Any, *, rel: float = 1, cutoff: int | None = None) -> Any:
        """Return half of AP."""
        return precision.kernel(judged, rel=rel, cutoff=cutoff, normalizer="R") / 2

    try:
        declare(halved)
        rows = draw.rows()
        call(
            "rankeval.evaluate",
            rows["y"],
            rows["score"],
            qid=rows["qid"],
            measures=[f"{name}(rel=2)", "AP(rel=2)"],
        )
    finally:
        families.clear()
        families.update(before)


@recipe("measures", 1500)
def values(draw: Draw, call: Call) -> None:
    """Evaluate one measure of any family over rows, also under rules that bound it."""
    rows = draw.rows()
    options = draw.options(
        0.25, convention=CONVENTIONS, ties=("expected", "stable", "best", "worst")
    )
    columns = (
        {"columns": {"price": draw.numpy.uniform(0, 9, len(rows["y"])).round(1)}}
        if draw.happens(0.4)
        else {}
    )
    found = call(
        "rankeval.evaluate",
        rows["y"],
        rows["score"],
        qid=rows["qid"],
        measures=measure_name(draw),
        **options,
        **columns,
    )
    call.of(found, "Evaluation.aggregate")
