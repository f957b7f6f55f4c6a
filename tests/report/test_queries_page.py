"""The page of queries: which queries it shows and why, what a reader sees of each, and that text stays text."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import rankeval as rk
from rankeval.contamination import forget
from rankeval.errors import GuardRefusal, InvalidInput, QueryIdError, RankevalError, UnknownName
from rankeval.report import report_for_queries
from rankeval.text.inspection import MOST_ROWS, inspected

HOSTILE = [
    "<script>document.title='taken'</script>",
    '" onmouseover="document.title=1',
    "' onfocus='document.title=1",
    "</script></style></title><img src=x onerror=alert(1)>",
    "NUL \x00 and \x1b[2J",
    "\u202e txt.exe \u2066 left open",
    "half \ud800 a letter",
    "&lt;b&gt; {{ 7 * 7 }} <!--",
    "w" * 30_000,
    "\n \x0b \u2028",
]
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class Page(HTMLParser):
    """The elements of a page, their attributes, and the texts of those with a class."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags, self.attributes, self.texts, self._open = set(), set(), {}, []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in ("meta", "link", "input"):
            self._open.append(dict(attrs).get("class") or tag)
            self.texts.setdefault(self._open[-1], []).append("")

    def handle_endtag(self, tag):
        self._open.pop()

    def handle_data(self, data):
        for name in self._open:
            self.texts[name][-1] += data


def collection(n=40, *, seed=0, weight=1.0, ids=str):
    rng = np.random.default_rng(seed)
    truth = {ids(q): {ids(d): int(rng.integers(0, 3)) for d in range(100 * q, 100 * q + 8)} for q in range(n)}
    rng = np.random.default_rng(seed + round(10 * weight))
    run = {q: {d: grade + weight * rng.normal() for d, grade in of.items()} for q, of in truth.items()}
    return truth, run


@pytest.fixture(scope="module")
def pair():
    """Return judgments, runs and evaluations of an exact and a noisy system."""
    truth, noisy = collection(weight=3.0)
    runs = {"noisy": noisy, "exact": collection(weight=2.0)[1]}
    return truth, runs, {name: rk.evaluate(truth, run, measures=["AP", "ARP"], name=name) for name, run in runs.items()}


def shown(evaluations, runs, qrels, **options):
    given = {"texts": None, "needs": None, "queries": 10, "measure": None, "depth": 10, "rng": 0, "stem": None}
    return inspected(evaluations, runs, qrels, **{**given, "stop": "english", **options})


@pytest.mark.parametrize(("measure", "sign"), [("AP", 1), ("ARP", -1)])
def test_the_greatest_losses_the_greatest_gains_and_a_random_few_are_shown(pair, measure, sign):
    """By the measure's own direction: of ARP a greater value is a loss."""
    truth, runs, evaluations = pair
    found = shown(evaluations, runs, truth, measure=measure)
    gain = sign * (evaluations["exact"].per_query[measure] - evaluations["noisy"].per_query[measure])
    order = gain.sort_values(kind="stable").index.tolist()
    assert [card.qid for card in found.cards[:8]] == [*order[:4], *reversed(order[-4:])]
    whys = ["greatest losses"] * 4 + ["greatest gains"] * 4 + ["drawn at random"] * 2
    assert [card.why for card in found.cards] == whys
    assert not {card.qid for card in found.cards[8:]} & {card.qid for card in found.cards[:8]}
    assert [card.scores[2][0] for card in found.cards[:8]] == ["worse"] * 4 + ["better"] * 4
    assert any("less is better" in note for note in found.notes) == (sign < 0)
    others = {seed: [card.qid for card in shown(evaluations, runs, truth, rng=seed).cards[8:]] for seed in (0, 0, 1, 2)}
    assert len({*map(tuple, others.values())}) > 1


def test_of_one_system_the_worst_and_the_best_are_shown(pair):
    truth, runs, evaluations = pair
    found = shown(evaluations["noisy"], runs["noisy"], truth, queries=5)
    scores = evaluations["noisy"].per_query["AP"].sort_values(kind="stable")
    assert [card.qid for card in found.cards[:4]] == [*scores.index[:2], *scores.index[:-3:-1]]
    assert [card.why for card in found.cards] == ["worst scores"] * 2 + ["best scores"] * 2 + ["drawn at random"]
    assert {each.moved for card in found.cards for _, of in card.rankings for each in of} == {""}
    named = shown({"a": evaluations["noisy"]}, {"a": runs["noisy"], "b": None}, truth, queries=5)
    assert [card.qid for card in named.cards] == [card.qid for card in found.cards]


def test_no_query_is_called_a_loss_that_is_none(pair):
    """A system against itself has neither losses nor gains, and all queries are drawn."""
    truth, runs, evaluations = pair
    same = dict.fromkeys("ab", evaluations["exact"])
    found = shown(same, dict.fromkeys("ab", runs["exact"]), truth, queries=7)
    assert [card.why for card in found.cards] == ["drawn at random"] * 7
    assert {card.scores[2] for card in found.cards} == {("equal", "0.0000")}
    assert {each.moved for card in found.cards for _, of in card.rankings for each in of} == {"="}


def test_each_document_has_its_rank_label_score_and_way():
    """Worked by hand: b leaves, e is new, c rises from 3 to 1, and x is relevant but nobody shows it."""
    truth = {"q": {"a": 2, "b": 0, "c": 1, "x": 1, "y": 2}}
    runs = {"old": {"q": {"a": 9, "b": 8, "c": 7, "x": 1}}, "new": {"q": {"c": 3, "a": 2, "e": 1, "x": 0.5}}}
    evaluations = {name: rk.evaluate(truth, run, measures="AP") for name, run in runs.items()}
    found = shown(evaluations, runs, truth, depth=3)
    (card,) = found.cards
    old, new = ([(each.rank, each.docid, each.label, each.score, each.moved) for each in of] for _, of in card.rankings)
    assert old == [
        (1, "a", "2", "9.0000", "↓ to 2"),
        (2, "b", "0", "8.0000", "gone"),
        (3, "c", "1", "7.0000", "↑ to 1"),
    ]
    assert new == [
        (1, "c", "1", "3.0000", "↑ from 3"),
        (2, "a", "2", "2.0000", "↓ from 1"),
        (3, "e", "", "1.0000", "new"),
    ]
    assert [(each.rank, each.docid, each.label, each.score, each.moved) for each in card.missed] == [
        (0, "y", "2", "", "not retrieved"),
        (0, "x", "1", "", "rank 4 of old and rank 4 of new"),
    ]
    assert (card.n_missed, card.n_judged) == (2, 5)
    assert found.title == "new against old"
    page = Page(report_for_queries(evaluations, runs, truth, depth=3))
    assert page.texts["tag open"] == ["unjudged"]
    assert page.texts["tag good"] == ["2", "1", "1", "2", "2", "1"]
    assert page.texts["summary"] == ["Relevant but not shown: 2 documents"]
    assert page.texts["place"] == ["not retrieved", "rank 4 of old and rank 4 of new"]
    assert [text for name in ("up", "down", "same") for text in page.texts.get(name, [])] == [
        *("↑ to 1", "↑ from 3", "new"),
        *("↓ to 2", "gone", "↓ from 1"),
    ]


@pytest.mark.parametrize(
    ("ties", "order", "said"),
    [
        ("expected", ["d1", "d3", "d2", "d10"], "in the order of the run; AP is the mean over their orders."),
        ("stable", ["d1", "d3", "d2", "d10"], "in the order of the run."),
        ("best", ["d1", "d3", "d2", "d10"], "in the order of the run; AP is that of their best order."),
        ("docid", ["d3", "d2", "d10", "d1"], "in descending order of their ids."),
    ],
)
def test_equal_scores_are_in_the_order_of_the_run_or_as_they_were_scored(ties, order, said):
    """A search that breaks ties by ascending id is shown as it was."""
    run, truth = {"q": {"d0": 2.0, "d1": 1.0, "d3": 1.0, "d2": 1.0, "d10": 1.0, "d9": 0.5}}, {"q": {"d1": 1}}
    evaluation = rk.evaluate(truth, run, measures="AP", ties=ties)
    page = report_for_queries(evaluation, run, truth)
    assert Page(page).texts["id"] == ["d0", *order, "d9"]
    assert f"Documents with equal scores are {said}" in Page(page).texts["soft said"][0]


def test_the_top_has_all_queries_in_numbers_and_a_link_to_each_that_is_shown(pair):
    """Means are those of the evaluations, the numbers won and lost those of a comparison."""
    truth, runs, evaluations = pair
    needs = {qid: f"need of {qid}" for qid in truth}
    html = report_for_queries(evaluations, runs, truth, needs=needs)
    page = Page(html)
    counts = rk.compare(evaluations, measures="AP", baseline="noisy").table.iloc[0]
    means = {name: one.mean()["AP"] for name, one in evaluations.items()}
    facts = " ".join(page.texts["facts"][0].split())
    assert facts == (
        f"AP over all queries: noisy {means['noisy']:.4f} (40 queries)exact {means['exact']:.4f} (40 queries) "
        f"exact won {counts['wins']}, tied {counts['ties']}, lost {counts['losses']}"
    )
    cards = shown(evaluations, runs, truth, needs=needs).cards
    assert page.texts["name"] == [f"need of {card.qid}" for card in cards]
    links = re.findall(r'<label for="(query-\d+)"><b class="(\w+)">([^<]+)</b>', html)
    assert [one for one, _, _ in links] == re.findall(r'<section class="card">\s*<input [^>]*id="([^"]+)">', html)
    differences = [(name, value.replace("-", "\N{MINUS SIGN}")) for name, value in (card.scores[2] for card in cards)]
    assert [(kind, value) for _, kind, value in links] == differences
    headings = ["Greatest losses", "Greatest gains", "Drawn at random"]
    assert page.texts["group"] == headings
    assert page.texts["h3"][:3] == headings


def test_a_page_of_one_query_is_worded_for_one(pair):
    truth, runs, evaluations = pair
    page = Page(report_for_queries(evaluations["noisy"], runs["noisy"], truth, queries=1))
    assert page.texts["group"] == ["Worst score"]
    assert page.texts["p"][0] == "1 query to read, chosen by AP"


@pytest.mark.parametrize(
    ("unjudged", "said"),
    [
        ("zero", "an unjudged document counts as not relevant"),
        ("skip", "unjudged documents are left out before a ranking is scored"),
        ("lowest", "an unjudged document counts with grade 0"),
        ("highest", "an unjudged document counts with the greatest grade"),
    ],
)
def test_the_legend_says_how_an_unjudged_document_counts(unjudged, said):
    run, truth = {"q": {"a": 2.0, "b": 1.0}}, {"q": {"b": 1}}
    evaluation = rk.evaluate(truth, run, measures="P@2", convention=rk.Convention(unjudged=unjudged))
    legend = Page(report_for_queries(evaluation, run, truth)).texts["soft said"][0]
    assert said in legend
    assert "in the other system" not in legend
    pair = dict.fromkeys("ab", evaluation), dict.fromkeys("ab", run)
    assert "ranks in the other system" in Page(report_for_queries(*pair, truth)).texts["soft said"][0]


def test_relevant_documents_that_are_not_shown_have_their_texts():
    """At most five, those of the highest grade first; their number is said."""
    truth = {"q": {"a": 1, **{f"r{n}": 1 + (n == 6) for n in range(8)}}}
    run = {"q": {"a": 9.0, "r3": 2.0}}
    evaluation = rk.evaluate(truth, run, measures="AP", name="s")
    texts = {"r6": "<i>Lift</i> of wings", "r0": "drag"}
    html = report_for_queries(evaluation, run, truth, depth=1, texts=texts, needs={"q": "lift"})
    page = Page(html)
    assert page.texts["summary"] == ["Relevant but not shown: 8 documents, the first 5 here"]
    assert page.texts["id"] == ["a", "r6", "r0", "r1", "r2", "r3"]
    assert page.texts["place"] == ["not retrieved"] * 4 + ["rank 2 of s"]
    assert page.texts["text"] == ["<i>Lift</i> of wings", "drag"]
    assert page.texts["mark"] == ["Lift"]
    assert "Relevant but not shown" not in report_for_queries(evaluation, run, {"q": {"a": 1}})


def test_a_near_duplicate_names_the_first_document_above_that_it_repeats():
    """Shingles of four words: of 9 words 6 shingles, of which a change of the last word costs one (5 / 7 > .5)."""
    words = ["the", "wing", "of", "a", "plane", "has", "lift", "and", "drag"]
    texts = {
        "a": " ".join(words),
        "b": "Nothing of the kind is in here at all",
        "c": " ".join([*words[:-1], "noise"]),
        "d": " ".join(words).upper(),
        "e": " ".join([*words[:5], "makes", *words[6:]]),  # 2 of 10
        "f": "short text",
        "g": "Short, text!",
        "h": "...",
        "i": "",
    }
    run = {"q": list(texts)}
    found = shown(rk.evaluate({"q": {"a": 1}}, run, measures="AP"), run, {"q": {"a": 1}}, texts=texts)
    assert [each.twin for each in found.cards[0].rankings[0][1]] == [0, 0, 1, 1, 0, 0, 6, 0, 0]
    page = report_for_queries(rk.evaluate({"q": {"a": 1}}, run, measures="AP"), run, {"q": {"a": 1}}, texts=texts)
    assert Page(page).texts["tag twin"] == ["near-duplicate of 1"] * 2 + ["near-duplicate of 6"]
    assert page.count("no words") == 1


def test_snippets_have_the_words_of_the_need_marked_and_ellipses_where_text_is_left_out():
    texts = {"d": "One two. " + "Blah blah. " * 30 + "A <b>wing</b> gains lift & drag. " + "Blah. " * 60 + "The wing."}
    run = {"q": {"d": 1.0}}
    evaluation = rk.evaluate({"q": {"d": 1}}, run, measures="AP")
    given = {"texts": texts, "needs": {"q": "The lift of wings"}}
    page = report_for_queries(evaluation, run, {"q": {"d": 1}}, stem="english", **given)
    (text,) = Page(page).texts["text"]
    assert text.startswith("… A <b>wing</b> gains lift & drag. Blah.")
    assert text.endswith("\N{NO-BREAK SPACE}… The wing.")
    assert Page(page).texts["mark"] == ["wing", "lift", "wing"]
    assert "A &lt;b&gt;<mark>wing</mark>&lt;/b&gt; gains <mark>lift</mark> &amp; drag." in page
    assert Page(report_for_queries(evaluation, run, {"q": {"d": 1}}, **given)).texts["mark"] == ["lift"]
    unasked = report_for_queries(evaluation, run, {"q": {"d": 1}}, texts=texts)
    assert Page(unasked).texts["text"][0].startswith("One two. Blah")
    assert "mark" not in Page(unasked).tags


def assert_text_stays_text(hostile):
    """As need, document, and id of a query, document or system it adds no element, attribute or control character."""
    in_ids = hostile if hostile.strip() and "\ud800" not in hostile else "calm"
    calm, found = (
        report_for_queries(
            {f"s {name}": evaluation, "other": evaluation},
            {f"s {name}": run, "other": run},
            truth,
            texts={f"d {name}": f"{text} wing {text}", "e": text},
            needs={f"q {name}": f"wing {text}"},
        )
        for name, text in (("calm", "calm"), (in_ids, hostile))
        for truth, run in [({f"q {name}": {f"d {name}": 1}}, {f"q {name}": {f"d {name}": 2.0, "e": 1.0}})]
        for evaluation in [rk.evaluate(truth, run, measures="AP", name=name)]
    )
    page = Page(found)
    assert page.tags <= Page(calm).tags | {"h2"}
    assert page.attributes == Page(calm).attributes
    assert not UNSEEN.search(found)
    assert len(found.encode()) < 120_000
    if len(hostile) < 100 and hostile.isprintable():
        assert hostile in page.texts["text"][0]
        assert f"wing {hostile}" in page.texts["h2"][0]
        assert f"d {in_ids}" in page.texts["id"]
    assert all(each in found for each in ("<bdi", 'dir="auto"'))


def test_hostile_text_stays_text():
    failures = {}
    for hostile in HOSTILE:
        try:
            assert_text_stays_text(hostile)
        except AssertionError as failure:
            failures[hostile[:60]] = str(failure)
    assert failures == {}


def test_control_characters_are_shown_as_escapes():
    run = {"q": {"d": 1.0}}
    page = report_for_queries(
        rk.evaluate({"q": {"d": 1}}, run, measures="AP"),
        run,
        {"q": {"d": 1}},
        texts={"d": "a \u202e wing\x00 tip"},
        needs={"q": "wing"},
    )
    assert Page(page).texts["text"] == [r"a \u202e wing\x00 tip"]


def test_a_document_of_a_megabyte_gives_a_snippet_of_its_beginning():
    texts = {
        "d": "word " * 15_000 + "wing " * 200_000,
        "e": "w" * 1_000_000,
        "f": " " * 90_000 + "wing" + "!" * 1_000_000,
    }
    run = {"q": {"d": 3, "e": 2, "f": 1}}
    page = report_for_queries(
        rk.evaluate({"q": {"d": 1}}, run, measures="AP"), run, {"q": {"d": 1}}, texts=texts, needs={"q": "wing"}
    )
    assert len(page) < 20_000
    assert "only the first 100,000 characters of a text are read" in page
    assert set(Page(page).texts["mark"]) == {"wing"}
    assert "!!!" in Page(page).texts["text"][2]


def test_the_page_is_bounded_and_says_what_it_leaves_out():
    truth, run = collection(300)
    evaluation = rk.evaluate(truth, run, measures="AP", name="s")
    for queries in (300, list(truth)):
        found = shown(evaluation, run, truth, queries=queries)
        assert len(found.cards) == MOST_ROWS // 10 == 200
        assert "100 queries left out: a page has at most 2,000 documents" in found.notes
    long = {"q": {f"d{rank}": -rank for rank in range(5_000)}}
    found = shown(rk.evaluate({"q": {"d1": 1}}, long, measures="AP"), long, {"q": {"d1": 1}}, depth=10**9)
    assert len(found.cards[0].rankings[0][1]) == MOST_ROWS
    assert found.notes[0].startswith("each ranking is shown to rank 2,000")


@pytest.mark.parametrize("ids", [str, int])
def test_ids_may_be_numbers(ids):
    """Texts of the same collection may have them as texts."""
    truth, run = collection(4, ids=ids)
    evaluation = rk.evaluate(truth, run, measures="AP")
    texts = {str(d): f"text of {d}" for of in truth.values() for d in of}
    found = shown(evaluation, run, truth, queries=[ids(2)], texts=texts, needs={"2": "number two"})
    (card,) = found.cards
    assert (card.qid, card.need, card.why) == ("2", "number two", "asked for")
    assert all(each.label and each.pieces for each in card.rankings[0][1])


def test_what_is_missing_is_said():
    """A query that a run lacks, an empty list, a query without judgments, a document and a need without a text."""
    truth = {"q1": {"a": 1}, "q2": {"a": 1}, "q3": {"a": 1}}
    runs = {"one": {"q1": ["a", "b"], "q2": ["a"]}, "two": {"q1": ["b"], "q2": [], "q3": ["a"], "q4": ["a"]}}
    evaluations = {name: rk.evaluate(truth, run, measures="AP") for name, run in runs.items()}
    given = {"texts": {"a": "text"}, "needs": {"q1": "need"}}
    found = {card.qid: card for card in shown(evaluations, runs, truth, **given).cards}
    assert [[each.docid for each in of] for _, of in found["q3"].rankings] == [[], ["a"]]
    assert found["q2"].rankings[1] == ("two", [])
    assert (found["q1"].need, found["q2"].need) == ("need", "")
    assert found["q1"].rankings[0][1][1].pieces is None
    page = report_for_queries(evaluations, runs, truth, **given)
    assert page.count("No document is ranked for this query.") == 2
    assert "2 ranked documents without a text" in page
    assert Page(page).texts["h2"].count("need") == 1
    bare = report_for_queries(evaluations, runs, truth)
    assert "without a text" not in bare
    unjudged = rk.evaluate([1, 0], [2, 1], qid=["q9", "q9"], measures="AP")
    (card,) = shown(unjudged, {"q9": ["a", "b"], "q1": ["a"]}, truth).cards
    assert (card.missed, card.n_missed, card.n_judged) == ([], 0, 0)
    assert [each.label for each in card.rankings[0][1]] == ["", ""]


def test_every_kind_of_input_that_evaluate_takes_gives_the_same_page(pair, tmp_path):
    truth, runs, evaluations = pair
    texts = {d: f"text of {d}" for of in truth.values() for d in of}
    page = report_for_queries(evaluations, runs, truth, texts=texts)
    qrels = rk.Qrels.from_dict(truth)
    qrels.write(tmp_path / "qrels.txt")
    for name, run in runs.items():
        rk.Run.from_dict(run).write(tmp_path / f"{name}.run")
    paths = {name: tmp_path / f"{name}.run" for name in runs}
    series = pd.Series(texts)
    assert report_for_queries(evaluations, paths, tmp_path / "qrels.txt", texts=series) == page
    frames = {name: rk.Run.from_dict(run).to_frame() for name, run in runs.items()}
    frame = series.rename_axis("docid").reset_index(name="text")
    assert report_for_queries(evaluations, frames, qrels.to_frame(), texts=frame) == page


def test_the_page_runs_no_script_but_the_one_that_its_policy_names(pair):
    truth, runs, evaluations = pair
    page = Page(report_for_queries(evaluations, runs, truth))
    assert "script" not in page.tags
    assert not {name for name in page.attributes if name.startswith("on")}
    assert not page.attributes & {"src", "href", "action"}


def test_the_highest_grade_of_several_aspects_is_shown():
    qrels = rk.Qrels(["q"] * 3, ["d", "d", "e"], [0, 2, 1], aspect=["1", "2", "1"])
    run = {"q": ["d", "e"]}
    (card,) = shown(rk.evaluate(qrels, run, measures="alpha_nDCG@10"), run, qrels).cards
    assert [each.label for each in card.rankings[0][1]] == ["2", "1"]


def test_a_ranking_with_other_scores_than_those_shown_is_named(pair):
    """Two names that were swapped would explain each score by the ranking of the other system."""
    truth, runs, evaluations = pair
    swapped = {"noisy": runs["exact"], "exact": runs["noisy"]}
    assert not [note for note in shown(evaluations, runs, truth).notes if "other AP" in note]
    (note,) = (note for note in shown(evaluations, swapped, truth).notes if "other AP" in note)
    assert note == "by these judgments the rankings given have other AP than shown for noisy and exact"


def test_registered_content_is_shown_for_opened_rankings_only(tmp_path, monkeypatch):
    monkeypatch.setenv("RANKEVAL_LEDGER", str(tmp_path / "ledger"))
    forget()
    truth, first = collection(60)
    runs = {"a": first, "b": collection(60, weight=2.0)[1]}
    guard = rk.Guard("project")
    test = guard.register("test", qrels=truth)
    opened = guard.open(guard.freeze(test, systems=runs, baseline="a", measure="AP", n_resamples=99)).evaluations
    assert shown(opened, runs, truth).cards
    other = {"a": first, "b": collection(60, weight=4.0)[1]}
    with pytest.raises(GuardRefusal, match="report_for_queries"):
        shown(opened, other, truth)
    forget()


@pytest.mark.parametrize(
    ("changes", "error", "argument"),
    [
        ({"evaluations": {}}, InvalidInput, "evaluations"),
        ({"evaluations": {"a": 1}}, InvalidInput, "evaluations"),
        ({"evaluations": dict.fromkeys("abc")}, InvalidInput, "evaluations"),
        ({"runs": {"noisy": {}}}, InvalidInput, "runs"),
        ({"runs": "run.txt"}, InvalidInput, "runs"),
        ({"depth": 0}, InvalidInput, "depth"),
        ({"queries": 0}, InvalidInput, "queries"),
        ({"queries": "q1"}, InvalidInput, "queries"),
        ({"queries": ["nobody"]}, QueryIdError, "queries"),
        ({"measure": "RR"}, UnknownName, None),
        ({"texts": {"a": 1}}, InvalidInput, "texts['a']"),
        ({"needs": 7}, InvalidInput, "needs"),
    ],
)
def test_other_arguments_are_refused_by_name(pair, changes, error, argument):
    truth, runs, evaluations = pair
    given = {"evaluations": evaluations, "runs": runs, "qrels": truth, **changes}
    with pytest.raises(error) as caught:
        report_for_queries(**given)
    assert isinstance(caught.value, RankevalError)
    assert argument in (None, caught.value.argument)


def test_evaluations_without_a_common_query_or_measure_are_refused(pair):
    truth, runs, evaluations = pair
    other = rk.evaluate({"z": {"a": 1}}, {"z": ["a"]}, measures="AP")
    with pytest.raises(InvalidInput, match="a query in common"):
        report_for_queries({"noisy": evaluations["noisy"], "exact": other}, runs, truth)
    rr = rk.evaluate(truth, runs["exact"], measures="RR")
    with pytest.raises(InvalidInput):
        report_for_queries({"noisy": evaluations["noisy"], "exact": rr}, runs, truth)


@pytest.mark.parametrize("score", [1e300, -1e300, 123456789012345678901234567890.0])
def test_a_score_of_many_digits_is_short(score):
    """Three hundred digits in one word would make the page wider than the window."""
    run, qrels = {"q": {"a": score, "b": 0.5}}, {"q": {"a": 1}}
    page = report_for_queries(rk.evaluate(qrels, run, measures="AP"), run, qrels)
    assert max(map(len, re.findall(r'<span class="score">([^<]*)', page))) <= 24


@pytest.mark.parametrize("shape", [lambda one: [one, one], lambda one: one.name, lambda one: one.weights])
def test_evaluations_of_another_shape_are_refused_by_name(shape):
    """A list of two is the usual mistake: the answer names the argument and what is expected."""
    run, qrels = {"q": {"a": 1.0}}, {"q": {"a": 1}}
    evaluated = rk.evaluate(qrels, run, measures="AP", name="bm25")
    with pytest.raises(InvalidInput) as caught:
        report_for_queries(shape(evaluated), run, qrels)
    assert caught.value.argument == "evaluations"


def test_a_measure_that_was_not_evaluated_is_said_to_be_lacking(pair):
    """The measure is known; the evaluations do not have it."""
    truth, runs, evaluations = pair
    with pytest.raises(UnknownName) as caught:
        report_for_queries(evaluations, runs, truth, measure="nDCG@10")
    assert str(caught.value).startswith("the evaluations lack a measure: unknown measure 'nDCG@10'; known are: AP, ARP")
    assert "evaluate all systems by it" in str(caught.value)


def test_three_systems_are_refused_in_words(pair):
    truth, runs, evaluations = pair
    with pytest.raises(InvalidInput, match=r"a page takes one or two systems, found 3$"):
        report_for_queries(dict.fromkeys("abc", evaluations["exact"]), dict.fromkeys("abc", runs["exact"]), truth)


def test_a_page_keeps_the_order_in_which_queries_are_asked_for():
    """The worst first, as `worst` gives them; a mask has the order of the evaluation."""
    qrels, run = collection()
    ev = rk.evaluate(qrels, run, measures="nDCG@10")
    worst = ev.worst(7).index
    for asked in (worst, list(worst)[::-1], worst.to_numpy()):
        found = shown(ev, run, qrels, queries=asked, depth=5)
        assert [card.qid for card in found.cards] == list(asked)
    mask = ev.per_query["nDCG@10"] < 0.9
    found = shown(ev, run, qrels, queries=mask, depth=5)
    assert [card.qid for card in found.cards] == mask.index[mask].tolist()
    assert ev.subset(worst).queries.tolist() == sorted(worst)
