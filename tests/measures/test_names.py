"""One grammar, other tools' names, errors that help."""

from __future__ import annotations

import ir_measures
import pytest
from tables import each_row

import rankeval as rk
from rankeval.collection.convention import PRESETS
from rankeval.errors import AmbiguousName, InvalidInput, UnknownName
from rankeval.measures import Spelling, direction, family, measure, measure_from_key, measures
from rankeval.measures import names as naming
from rankeval.measures.family import FAMILIES
from rankeval.measures.names import ROOTS

TREC_EVAL = [name for name in PRESETS if name.startswith("trec_eval")]


@each_row(
    ("spelling", "canonical"),
    [
        ("ndcg_cut_10", "nDCG@10"),
        ("ndcg_cut.10", "nDCG@10"),
        ("NDCG@10", "nDCG@10"),
        ("ndcg", "nDCG"),
        ("map", "AP"),
        ("MAP@100", "AP@100"),
        ("map_cut_5", "AP@5"),
        ("gm_ap", "gm_AP"),
        ("gm_map", "gm_AP"),
        ("R-prec", "Rprec"),
        ("P5", "P@5"),
        ("P_5", "P@5"),
        ("recall_100", "R@100"),
        ("recip_rank", "RR"),
        ("mrr@10", "RR@10"),
        ("mrr", "RR"),
        ("hit_rate@5", "Success@5"),
        ("num_rel_ret", "NumRelRet"),
        ("set_F", "F"),
        ("P(rel=1)@5", "P@5"),
        (" P( rel = 2 ) @5", "P(rel=2)@5"),
        ("nDCG(gain='exp')@10", "nDCG(gain='exp')@10"),
        ("nDCG(gain={2: 3, 1: 1.0})", "nDCG(gain={1: 1, 2: 3})"),
        ("ndcg.1=3.5,2=9", "nDCG(gain={1: 3.5, 2: 9})"),
        ("ndcg_1=3,2=9,4=4.5", "nDCG(gain={1: 3, 2: 9, 4: 4.5})"),
        ("set_F.4", "F(beta=2)"),
        ("set_F_0.25", "F(beta=0.5)"),
        ("ircl_prn.0.10", "IPrec(recall=0.1, rule='trec_eval-9')"),
        ("11-pt_avg", "IAP11(rule='trec_eval-9')"),
        ("IPrec@0.1", "IPrec(recall=0.1)"),
        ("IAP11(levels=[.25, .5])", "IAP11(levels=(0.25, 0.5))"),
        ("Rprec_mult_0.20", "RprecMult(multiple=0.2)"),
        ("utility.1,-1,0,0", "Utility"),
        ("utility_2,-1,0,0", "Utility(a=2)"),
        ("relative_P_5", "RelP@5"),
        ("set_map", "SetAP"),
        ("exact_unranked_avg_prec", "SetAP"),
        ("rbp.p=0.5", "RBP(gain='scaled', p=0.5)"),
        ("unj_10", "Unj@10"),
        ("infAP", "infAP"),
        ("bpref", "Bpref"),
        ("gm_bpref", "gm_Bpref"),
        ("num_nonrel_judged_ret", "NumNonrelJudgedRet"),
        ("SetF(beta=1)", "F"),
        ("dcg_burges", "DCG(gain='exp')"),
        ("dcg_burges@10", "DCG(gain='exp')@10"),
        ("ndcg_burges", "nDCG(gain='exp')"),
        ("ndcg_burges@10", "nDCG(gain='exp')@10"),
        ("rbp.95", "RBP(gain='linear', p=0.95)"),
        ("rbp.8", "RBP(gain='linear', p=0.8)"),
        ("rbp.05", "RBP(gain='linear', p=0.05)"),
        ("ircl_prn_0.10", "IPrec(recall=0.1, rule='trec_eval-9')"),
    ],
)
def test_every_spelling_is_one_value(spelling, canonical):
    """A measure is found under each tool's name and prints in one way."""
    assert str(rk.measure(spelling)) == canonical
    assert rk.measure(spelling) == rk.measure(canonical)
    assert hash(rk.measure(spelling)) == hash(rk.measure(canonical))


@each_row(
    ("wrong", "error", "says"),
    [
        ("nDGC@10", UnknownName, r"did you mean 'nDCG@10'"),
        ("precison@5", UnknownName, "did you mean 'precision@5'"),
        ("HitRate@5", UnknownName, r"unknown measure 'HitRate@5'; did you mean 'hit_rate@5'\?"),
        ("nDGC(gain='exp')@10", UnknownName, r"did you mean \"nDCG\(gain='exp'\)@10\""),
        ("TopDocs", UnknownName, "unknown measure 'TopDocs'; there are"),  # not "did you mean 'OPA'"
        ("P(rell=2)@5", UnknownName, "did you mean 'rel'"),
        ("official", AmbiguousName, "several measures"),
        ("P.5,10", AmbiguousName, "several measures"),
        ("P@0", InvalidInput, "1 or greater"),
        ("Rprec@5", InvalidInput, "no cut-off"),
        ("P(2)@5", InvalidInput, "name=value.* found 2$"),
        ("P(rel=1)(rel=2)@5", InvalidInput, "name=value"),
        ("P(rel=open('x'))@5", InvalidInput, "plain values"),
        ("P@5@6", InvalidInput, "the cut-off is given twice"),
        ("rbp.0.95", UnknownName, "unknown measure"),
        ("rbp.95@10", InvalidInput, "rbp.95 is .* here"),
        (7, InvalidInput, "named by a string.* found int 7"),
        (ir_measures.nDCG @ 10, InvalidInput, r"named by a string, such as 'nDCG@10'; found _\w+ nDCG@10"),
        ("ndcg_cut", AmbiguousName, r"several measures \(ndcg_cut_5, ndcg_cut_10 ...\)"),
        ("P_5,10", AmbiguousName, "several measures"),
        ("recall", AmbiguousName, r"write R \(ranx\); recall_5, recall_10 ... \(trec_eval\)"),
        ("map(rel=2)", InvalidInput, "map is 'AP' here"),
        ("r-precision@5", InvalidInput, "r-precision is 'Rprec' here"),
        ("P(rel=1, rel=2)@3", InvalidInput, "each once.* found rel=1, rel=2"),
        ("P(cutoff=4)@3", InvalidInput, "given twice"),
        ("set_F.-1", InvalidInput, "0 or greater"),
        ("map-l2", InvalidInput, r"a parameter here, such as 'AP\(rel=2\)'"),
        ("recall-l3@10", InvalidInput, r"such as 'R\(rel=3\)@10'"),
        ("recall@10-l3", InvalidInput, r"such as 'R\(rel=3\)@10'"),
        ("rbp.95-l2", InvalidInput, r"such as .RBP\(gain='linear', p=0.95, rel=2\)"),
        ("ndcg@10-l3", InvalidInput, r"such as 'nDCG\(gain=\{1: 0, 2: 0\}\)@10'"),
        ("recall@0", InvalidInput, "R: cutoff is 0; .* leave it out to count all rows"),
        ("f1@0-l2", InvalidInput, "leave it out to count all rows"),
        ("runid", InvalidInput, "not a measure: leave it out"),
        ("relstring_10", InvalidInput, "not a measure: leave it out"),
        ("ndcg_burges@10-l2", InvalidInput, r"nDCG\(gain="),
        ("Accuracy@10", AmbiguousName, r"needs collection_size.*PairAccuracy@10 \(ir_measures\)"),
    ],
)
def test_wrong_names_are_refused_with_help(wrong, error, says):
    """The message names the mistake and a name that would be read."""
    with pytest.raises(error, match=says):
        rk.measure(wrong)


@each_row(
    ("spelling", "convention", "canonical"),
    [
        ("iprec_at_recall_0.10", "trec_eval-9.0.8", "IPrec(recall=0.1, rule='trec_eval-9')"),
        ("iprec_at_recall_0.10", "trec_eval-10", "IPrec(recall=0.1, rule='trec_eval-10')"),
        (
            "iprec_at_recall.0.1",
            PRESETS["trec_eval-10"].with_rules(depth=5),
            "IPrec(recall=0.1, rule='trec_eval-10')",
        ),
        ("11pt_avg", "trec_eval-9.0.8", "IAP11(rule='trec_eval-9')"),
        ("11pt_avg.0.25,0.5", "trec_eval-10", "IAP11(levels=(0.25, 0.5), rule='trec_eval-10')"),
        ("rbp", "trec_eval-10", "RBP(gain='scaled', p=0.9)"),
        ("RBP@10", "trec_eval-10", "RBP(gain='scaled', p=0.9)@10"),
        ("rbp_resid", "trec_eval-10", "RBPResid(p=0.9, rule='trec_eval-10')"),
        ("recall", "ranx", "R"),
        ("rbp@8", "ranx", "RBP(gain='linear', p=0.8)"),
        ("rbp@8", "trec_eval-10", "RBP(gain='scaled', p=0.9)@8"),
        ("11pt_avg", rk.Convention("mine", bind={"IAP11": {"rule": "trec_eval-9"}}), "IAP11(rule='trec_eval-9')"),
    ],
)
def test_a_convention_decides_what_a_name_means_where_tools_differ(spelling, convention, canonical):
    """A name with several meanings is read as the convention's tool reads it, and prints in full."""
    assert str(measure(spelling, convention)) == canonical


@each_row(
    ("spelling", "choices"),
    [
        ("iprec_at_recall_0.10", ["IPrec(recall=0.1, rule='trec_eval-9')", "IPrec(recall=0.1, rule='trec_eval-10')"]),
        ("11pt_avg", ["IAP11(rule='trec_eval-9')", "IAP11(rule='trec_eval-10')"]),
        ("SetF(beta=4)", ["F(beta=2)", "F(beta=4)"]),
        ("rbp", ["RBP(gain='scaled', p=0.9)", "RBP(p=0.8)"]),
        ("RBP", ["RBP(p=0.8)", "RBP(p=0.95)"]),
        ("RBP@10", ["RBP(p=0.8)@10", "RBP(p=0.95)@10"]),
        ("rbp@8", ["RBP(gain='linear', p=0.8)", "RBP(gain='scaled', p=0.9)@8", "RBP(p=0.8)@8"]),
    ],
)
def test_without_one_it_is_refused_with_the_choices(spelling, choices):
    """A name by which tools mean different things is not guessed; every choice named is a measure."""
    for convention in (None, "rankeval"):
        with pytest.raises(AmbiguousName) as caught:
            measure(spelling, convention)
        assert all(choice in str(caught.value) for choice in choices)
    assert [str(measure(choice)) for choice in choices] == choices


def test_evaluate_reads_names_under_its_convention():
    """The same name under two conventions is two measures, and the evaluation says which."""
    qrels, run = {"q": {"a": 1, "b": 1, "c": 1}}, {"q": {"a": 3.0, "x": 2.0, "b": 1.0}}
    for preset in TREC_EVAL:
        rule = "trec_eval-10" if preset == "trec_eval-10" else "trec_eval-9"
        ev = rk.evaluate(qrels, run, measures=["11pt_avg"], convention=preset)
        assert str(ev.measures[0]) == f"IAP11(rule='{rule}')"
    with pytest.raises(AmbiguousName, match="convention"):
        rk.evaluate(qrels, run, measures=["11pt_avg"])


def test_asking_twice_for_one_measure_is_an_error():
    """Two names of one measure would be two equal columns."""
    with pytest.raises(InvalidInput, match="the same measure"):
        rk.evaluate([1, 0], [1, 0], qid=[1, 1], measures=["nDCG@10", "ndcg_cut_10"])


def test_columns_keep_the_name_asked_for():
    """per_query has the measures under the names that were asked for."""
    ev = rk.evaluate([1, 0], [1, 0], qid=[1, 1], measures=["ndcg_cut_10", "map"])
    assert list(ev.per_query) == ["ndcg_cut_10", "map"]


def test_a_convention_binds_what_a_name_leaves_open():
    """A bound parameter holds for nDCG@10; one that the name gives stays."""
    exponential = rk.Convention("mine", bind={"nDCG": {"gain": "exp"}})
    ev = rk.evaluate(
        [1, 3, 0], [3, 2, 1], qid=[1, 1, 1], measures=["nDCG@10", "nDCG(gain={1: 1, 3: 3})@10"], convention=exponential
    )
    assert [str(one) for one in ev.measures] == ["nDCG(gain='exp')@10", "nDCG(gain={1: 1, 3: 3})@10"]
    assert ev.scores[0, 0] != ev.scores[0, 1]


def test_measures_takes_the_names_that_stand_for_several():
    """`measures` expands such a name to the lines that trec_eval prints; `measure` refuses it."""
    qrels, run = {"1": {"a": 1, "b": 0}}, {"1": {"a": 1.0, "b": 2.0}}
    both = rk.evaluate(qrels, run, measures=["P.1, 2", "map"])
    assert both.per_query.loc["1"].to_dict() == {"P_1": 0.0, "P_2": 0.5, "map": 0.5}
    official = rk.evaluate(qrels, run, measures="official", convention="trec_eval-9.0.8").per_query
    assert {"num_q", "map", "gm_map", "iprec_at_recall_0.10", "P_1000"} <= set(official.columns)
    newest = rk.evaluate(qrels, run, measures="all_trec", convention="trec_eval-10").per_query
    assert {"rbp", "unj_20", "ndcg_cut_10"} <= set(newest.columns)
    for name in ("official", "all_trec", "iprec_at_recall"):
        with pytest.raises(
            AmbiguousName, match=f"'{name}' means several measures.*--convention.* 'iprec_at_recall_0.00' means "
        ):
            rk.evaluate(qrels, run, measures=name)


@each_row("root", [root for root in ROOTS if ROOTS[root] and root != "P"])
@each_row("convention", TREC_EVAL)
def test_a_root_is_what_trec_eval_prints_for_it(root, convention):
    """The name before the cut-offs means all of them under trec_eval's conventions, as in pytrec_eval."""
    found = measures({root}, convention)
    assert [label for label, _ in found] == [f"{root}_{at}" for at in ROOTS[root]]
    assert [one for _, one in found] == [measure(label, convention) for label, _ in found]
    with pytest.raises(AmbiguousName, match="several measures"):
        measure(root, convention)


def test_a_root_without_a_convention_is_what_it_can_be():
    """It is expanded if only trec_eval has the name, ours if it is ours, and refused if another tool has it."""
    assert [str(one) for _, one in measures(["success", "P_avgjg_5, 10", "ndcg_cut.3,11"])] == [
        *("Success@1", "Success@5", "Success@10", "AvgJG(of='P')@5", "AvgJG(of='P')@10", "nDCG@3", "nDCG@11")
    ]
    assert measures("P") == [("P", measure("set_P"))]
    for convention in TREC_EVAL:
        with pytest.raises(AmbiguousName, match=r"write set_P \(all retrieved\); or P_5,10,15,20,30,100,200,500,1000$"):
            measures(["AP", "P"], convention)
        assert len(measures("P_5,10,15,20,30,100,200,500,1000", convention)) == 9
        assert str(measure("set_P", convention)) == "P"
    assert measures("recall", "ranx") == [("recall", measure("R"))]
    with pytest.raises(AmbiguousName, match="recall_5, recall_10"):
        measures("recall")


@each_row("key", [None, 7, "", "foo", "P__rel.-ff"])
def test_a_key_that_is_none_is_refused(key):
    """Whatever is given as a key, the error is ours."""
    with pytest.raises(InvalidInput):
        measure_from_key(key)


def test_no_measures_is_one_line():
    """None is no list of measures, and the message shows one."""
    with pytest.raises(InvalidInput, match=r"measures is None; expected at least one, such as 'nDCG@10'"):
        rk.evaluate([1], [1.0], qid=[1], measures=None)


def test_text_without_quotes_is_shown_as_it_was_written():
    """Forgetting the quotes is the likeliest mistake in a parameter."""
    with pytest.raises(InvalidInput, match=r"text in quotes; found gain=exp"):
        measure("nDCG(gain=exp)@10")


def test_measures_that_are_read_pass_through_with_their_names():
    """A function reads names once and hands the result on, under the names that were asked for."""
    once = measures(["ndcg_cut_10", " map", measure("RR@10")])
    assert [label for label, _ in once] == ["ndcg_cut_10", "map", "RR@10"]
    assert measures(once) == once
    assert measures(once, "trec_eval-10") == once
    assert measures(once[0]) == once[:1]
    with pytest.raises(InvalidInput, match="'ndcg_cut_10' and 'nDCG@10' are the same measure"):
        measures([once[0], "nDCG@10"])


def test_our_own_names_need_no_table_of_aliases():
    """The first name of a process makes no table and compiles no template."""
    naming._table.cache_clear()
    assert str(measure("nDCG@10")) == "nDCG@10"
    assert naming._table.cache_info().currsize == 0
    assert str(measure("ndcg_cut_10")) == "nDCG@10"
    assert naming._table.cache_info().currsize == 1


def test_the_name_of_a_family_is_stronger_than_another_tool_s():
    """A canonical name parses back, also if a new family takes the name that another tool has for something else."""
    assert str(measure("mrr@10")) == "RR@10"
    family("mrr", title="-", formula="-", source="-", linear=True)(
        lambda judged, *, cutoff=None: judged.hits(1, cutoff)
    )
    try:
        assert measure("mrr@10").family is FAMILIES["mrr"]
    finally:
        del FAMILIES["mrr"]
    assert str(measure("mrr@10")) == "RR@10"


def test_a_name_that_is_near_to_none_does_not_list_all():
    """A hundred names are no help; a near one is still suggested."""
    with pytest.raises(UnknownName) as caught:
        measure("xyzzy")
    assert str(caught.value) == (
        f"unknown measure 'xyzzy'; there are {len(FAMILIES)} families of measures: see rankeval measures, or "
        "rankeval.list_measures()"
    )
    with pytest.raises(UnknownName, match=r"did you mean 'nDCG'"):
        measure("nDCGG")


FIXED = [
    (one.with_parameters(**spelling.fixed), tool)
    for one in FAMILIES.values()
    for tool, spellings in one.spellings.items()
    for spelling in spellings
    if isinstance(spelling, Spelling) and "{" not in spelling.text and one.needs != "aspects"
]


@each_row(("named", "tool"), dict.fromkeys(FIXED), ids=str)
def test_what_a_tool_fixes_without_saying_so_can_be_computed(named, tool):  # noqa: ARG001 - names the case
    """A name of another tool stands for a measure that exists, whose value is within its bounds."""
    (value,) = rk.evaluate([1, 0, 2, 0], [4, 3, 2, 1], qid=[1] * 4, measures=named).scores[0]
    low, high = named.family.bounds
    assert low <= value <= high


@each_row(
    ("names", "words"),
    [
        (
            ["Latency", "latency_ms", "LATENCY", "p95 seconds", "latencyMs", "Latency (ms)", "query time", "ms/query"],
            "faster",
        ),
        (["Cost", "cost per 1000", "costPer1000Queries", "total price", "cost (USD)"], "cheaper"),
        (["index_bytes", "peak memory", "indexMB", "memory GB"], "smaller"),
    ],
)
def test_latency_cost_and_size_are_known_by_whole_words(names, words):
    assert {direction(name).better for name in names} == {words}
    assert {direction(name).sign for name in names} == {-1.0}


@each_row(
    "name",
    [
        "timeliness", "benefit-cost ratio", "cost savings", "time saved", "dwell time", "bytes per second", "MB/s",
        "queries per second", "queries/second", "1/latency", "-latency", "neg_latency", "memorability", "throughput",
        "time on page", "score", "", " ", "Kosten", "per second", "cost seconds", "speedup in seconds",
    ],
)  # fmt: skip
def test_a_name_that_may_mean_more_is_better_is_not_known(name):
    assert direction(name) == (0.0, "different", "different")


def test_measures_keep_their_direction_by_every_name():
    """Also a name of several measures, or one that lacks a parameter."""
    for name in ("AP", "nDCG@10", "ndcg_cut_10", "recall", "success", "rbp", "accuracy", "P", "MAP"):
        assert direction(name).verb == "beats"
        assert direction(name, {name: True}).sign == 1.0
    assert direction("ARP") == (-1.0, "better", "worse")
    assert direction("ARP").note == " (less is better)"
    assert direction("unj").sign == direction("unj_10").sign == direction("Unj@10").sign == -1.0
    assert direction("all_trec").sign == 0.0  # of several measures, by some of which less is better
    for one in FAMILIES.values():
        assert direction(one.name).sign == (1.0 if one.greater_is_better else -1.0)
