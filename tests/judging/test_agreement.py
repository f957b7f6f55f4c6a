"""The agreement of judges: values by other programs, intervals by topics, undefined cases, and what it lists."""

import json
import lzma
from functools import cache

import numpy as np
import pandas as pd
import pytest
from circles import examples
from golden.agreement_tables import FILE, LEVELS, N_TABLES, drawn
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import stdtrit
from statsmodels.stats.inter_rater import cohens_kappa, fleiss_kappa
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput, UnknownName
from rankeval.judging import agreement
from rankeval.judging.agreeing import label_coefficients, of_judges

NAMES = {"gwet": "ac1", "fleiss": "fleiss_kappa", "bp": "pabak"}


def labels_of(table, n_topics=1):
    """Return the labels of a table of items by judges; an item is a document of the topics in turn.

    Labels are doubled, since -1 would be no label.
    """
    return pd.DataFrame(
        [
            (f"q{item % n_topics}", f"d{item:03}", f"judge {judge}", 2 * label)
            for item, row in enumerate(table)
            for judge, label in enumerate(row)
            if label is not None
        ],
        columns=["qid", "docid", "aspect", "relevance"],
    )


def of_pairs(pairs):
    """Return two judges' labels of documents of one topic."""
    return tuple({"q": {f"d{place}": pair[judge] for place, pair in enumerate(pairs)}} for judge in (0, 1))


LECTURE = of_pairs([(1, 1)] * 300 + [(1, 0)] * 20 + [(0, 1)] * 10 + [(0, 0)] * 70)


@cache
def oracle():
    return json.loads(lzma.decompress(FILE.read_bytes()))["values"]


def test_the_table_of_the_lectures():
    """300, 20; 10, 70: all coefficients of two judges to ten digits."""
    found = agreement(*LECTURE, level="ordinal")
    expected = {
        "observed": 0.925,
        "scott_pi": 0.7759103642,
        "cohen_kappa": 0.7761194030,
        "linear_kappa": 0.7761194030,
        "quadratic_kappa": 0.7761194030,
        "fleiss_kappa": 0.7759103642,
        "krippendorff_alpha": 0.7761904762,
        "ac1": 0.8872710193,
        "pabak": 0.85,
    }
    assert found.table["coefficient"].tolist() == list(expected)
    assert found.table["value"].tolist() == pytest.approx(list(expected.values()), abs=1e-10)
    assert found.table["n_items"].unique().tolist() == [400]
    assert found.confusion.loc[[1, 0], [1, 0]].to_numpy().tolist() == [[300, 20], [10, 70]]


def coefficients(table, level):
    """Return the coefficients of a table by the two functions behind `agreement`, without its frames."""
    grades = np.unique([label for row in table for label in row if label is not None])
    codes = np.array([[-1 if label is None else np.searchsorted(grades, label) for label in row] for row in table])
    counts = (codes[:, :, None] == np.arange(len(grades))).sum(axis=1)
    shared = counts.sum(axis=1) > 1
    group = np.arange(shared.sum()) // 5
    places = np.asarray(grades if level == "interval" else np.arange(len(grades)), dtype=np.float64)
    with np.errstate(invalid="ignore"):
        found = (
            label_coefficients(counts[shared], group, places, level)[0]
            | of_judges(codes[shared], group, places, level)[0]
        )
    return {name: stack[0] for name, stack in found.items()}


@pytest.mark.parametrize("level", LEVELS)
def test_random_tables_have_the_values_of_krippendorff_and_of_irr_cac(level):
    """500 tables of two to six judges with missing labels; what is undefined there is undefined here."""
    for seed in range(N_TABLES):
        table, values = drawn(seed), oracle()[seed]
        found = coefficients(table, level)
        expected = np.nan if values[level] is None else values[level]
        assert found["krippendorff_alpha"] == pytest.approx(expected, abs=1e-12, nan_ok=True), seed
        for theirs, ours in NAMES.items():
            if theirs in values:
                assert found[ours] == pytest.approx(values[theirs], abs=1e-12), (seed, ours)
        if seed < 20:
            whole = agreement(labels_of(table, n_topics=3), level=level).table.set_index("coefficient")
            assert whole["value"]["krippendorff_alpha"] == pytest.approx(expected, abs=1e-12, nan_ok=True)
            assert ((whole["undefined"] != "") == whole["value"].isna()).all()


def test_random_tables_have_the_values_of_statsmodels():
    """Cohen's kappa with and without weights, the mean over pairs of judges of complete tables, and Fleiss' kappa."""
    n_compared = 0
    for seed in range(N_TABLES):
        table = [row for row in drawn(seed) if None not in row]
        grades, codes = np.unique(table, return_inverse=True)
        if len(table) < 2 or len(grades) == 1:
            continue
        codes = codes.reshape(len(table), -1)
        counts = np.array([np.bincount(row, minlength=len(grades)) for row in codes])
        found = coefficients(table, "ordinal")
        assert found["fleiss_kappa"] == pytest.approx(fleiss_kappa(counts), abs=1e-12)
        one, other = np.triu_indices(codes.shape[1], 1)
        cells = np.zeros((len(one), len(grades), len(grades)))
        np.add.at(cells, (np.arange(len(one)), codes[:, one], codes[:, other]), 1)
        for weights, name in ((None, "cohen_kappa"), ("linear", "linear_kappa"), ("quadratic", "quadratic_kappa")):
            with np.errstate(invalid="ignore"):
                values = [cohens_kappa(of_pair, wt=weights, return_results=False) for of_pair in cells]
            assert found[name] == pytest.approx(np.mean(values), abs=1e-12, nan_ok=True)
        n_compared += 1
    assert n_compared > 250


@pytest.mark.shared
def test_golden_values_of_people_and_an_automatic_judge(shared):
    """TREC RAG 2025: grades, and grades from 1 and from 2 as relevant."""
    people, model = (rk.Qrels.read(shared / f"agreement_rag25/qrels.{name}.txt.gz") for name in ("nist", "umbrela"))
    golden = json.loads((shared / "golden/agreement.json").read_text())["values"]["rag25_nist_vs_umbrela"]
    names = {"observed": "observed", "cohen_kappa": "cohen", "scott_pi": "scott_pi"}
    weighted = {"linear_kappa": "linear", "quadratic_kappa": "quadratic"}

    def cut(qrels, least):
        return rk.Qrels(qrels.qid, qrels.docid, (np.asarray(qrels.relevance) >= least).astype(int))

    for kind, pair in {
        "graded": (people, model),
        "binary_ge1": (cut(people, 1), cut(model, 1)),
        "binary_ge2": (cut(people, 2), cut(model, 2)),
    }.items():
        expected = golden[kind]
        for level in LEVELS:
            found = agreement(*pair, level=level)
            assert found["krippendorff_alpha"] == pytest.approx(expected[f"krippendorff_{level}"], abs=1e-12)
            for ours, theirs in (names | (weighted if level != "nominal" else {})).items():
                assert found[ours] == pytest.approx(expected[theirs], abs=1e-12)
            assert found.confusion.to_numpy().tolist() == expected["confusion"]
            assert len(found.per_query) == 22
            assert found.per_query["n_items"].sum() == expected["n"]


@pytest.mark.shared
def test_golden_values_of_a_crowd(shared):
    """From the file of votes to alpha: 445 workers, 5 to 16 labels a document."""
    votes = pd.read_csv(
        shared / "agreement_trec_crowd2011/votes.tsv.gz", sep="\t", names=["order", "pair", "aspect", "relevance"]
    )
    votes[["qid", "docid"]] = votes["pair"].str.split("_", n=1, expand=True)
    qrels = rk.Qrels.from_frame(votes[["qid", "docid", "aspect", "relevance"]])
    golden = json.loads((shared / "golden/agreement.json").read_text())["values"]["trec_crowd2011_votes"]
    found = agreement(qrels)
    assert found["krippendorff_alpha"] == pytest.approx(golden["krippendorff_nominal"], abs=1e-12)
    assert found["observed"] == pytest.approx(golden["mean_pairwise_item_agreement"], abs=1e-12)
    assert found.table.set_index("coefficient")["undefined"]["cohen_kappa"].startswith("92,386 of 98,790 pairs")
    modal = golden["fleiss_kappa_items_with_modal_count"]
    nine = votes[votes.groupby("pair")["relevance"].transform("size") == modal["labels_per_item"]]
    of_nine = agreement(nine[["qid", "docid", "aspect", "relevance"]])
    assert of_nine["fleiss_kappa"] == pytest.approx(modal["value"], abs=1e-12)
    assert of_nine.table["n_items"][0] == modal["items"]


TABLES = st.integers(0, N_TABLES - 1).map(drawn)


def values(found):
    return found.table[["value", "ci_low", "ci_high"]].to_numpy()


@settings(max_examples=examples(25))
@given(table=TABLES, level=st.sampled_from(LEVELS), data=st.data())
def test_neither_order_nor_names_of_judges_count(table, level, data):
    """Rows in any order, and judges under other names, give the same table."""
    rows = labels_of(table, n_topics=3)
    other = rows.iloc[data.draw(st.permutations(range(len(rows))))]
    other = other.assign(aspect=other["aspect"].str.replace("judge ", "z").str[::-1])
    found, again = agreement(rows, level=level), agreement(other, level=level)
    np.testing.assert_allclose(values(again), values(found), rtol=0, atol=1e-9)
    np.testing.assert_allclose(again.per_query, found.per_query, rtol=0, atol=1e-9)


@settings(max_examples=examples(25))
@given(table=TABLES, level=st.sampled_from(LEVELS), n_topics=st.integers(1, 9))
def test_intervals_hold_the_value_and_end_at_its_range(table, level, n_topics):
    value, low, high = values(agreement(labels_of(table, n_topics), level=level)).T
    has = np.isfinite(low)
    assert (low[has] <= value[has] + 1e-12).all()
    assert (value[has] <= high[has] + 1e-12).all()
    assert not (low < [0.0, *[-1.0] * 8]).any()
    assert not (high > 1).any()


@settings(max_examples=examples(25))
@given(table=TABLES)
def test_each_level_keeps_what_it_says_of_the_grades(table):
    """Nominal: any renaming of grades; ordinal: any that keeps their order; interval: any straight line."""
    rows = labels_of(table, n_topics=3)
    grade = rows["relevance"]
    for level, renamed in (("nominal", (grade * 5 + 10) % 11), ("ordinal", 2.0**grade), ("interval", 3 * grade + 7)):
        found, again = agreement(rows, level=level), agreement(rows.assign(relevance=renamed), level=level)
        np.testing.assert_allclose(values(again), values(found), rtol=0, atol=1e-9)


@settings(max_examples=examples(25))
@given(table=TABLES)
def test_two_judges_have_one_pooled_kappa_and_alpha_comes_near_it(table):
    """Fleiss' kappa is Scott's pi, and alpha is pi plus (1 - pi) / labels."""
    found = agreement(labels_of([row[:2] for row in [*table, [1, 1], [2, 2]]]))
    pi, n = found["scott_pi"], found.table["n_items"][0]
    assert found["fleiss_kappa"] == pytest.approx(pi, abs=1e-12)
    assert found["krippendorff_alpha"] == pytest.approx(pi + (1 - pi) / (2 * n), abs=1e-12)


def test_the_jackknife_leaves_out_topics():
    """The interval follows from agreement on all topics but one, by the formula of Hall (1992)."""
    n_compared = 0
    for seed in range(8):
        rows = labels_of(drawn(seed), n_topics=4)
        whole = agreement(rows, level=LEVELS[seed % 3])
        topics = whole.per_query.index
        parts = [rows[rows["qid"] != topic] for topic in topics]
        if any(len(np.unique(part["relevance"])) < len(np.unique(rows["relevance"])) for part in parts):
            continue  # the scale of AC1 and PABAK is that of all labels
        left_out = np.array([agreement(part, level=whole.level).table["value"] for part in parts])
        value, low, high = values(whole).T
        n, adds = len(topics), left_out.mean(axis=0) - left_out
        with np.errstate(all="ignore"):
            error = np.sqrt((adds**2).sum(axis=0))
            a = (adds**3).mean(axis=0) / adds.std(axis=0) ** 3 / np.sqrt(n)
        for place in np.flatnonzero(np.isfinite(low)):
            reached = (value[place] - np.array([low[place], high[place]])) / error[place]
            bent = reached + a[place] * (reached**2 / 3 + 1 / 6) + a[place] ** 2 * reached**3 / 27
            t = stdtrit(n - 1, 0.975)
            assert bent[0] == pytest.approx(t, rel=1e-4) or low[place] in (-1, 0)
            assert bent[1] == pytest.approx(-t, rel=1e-4) or high[place] == 1
            n_compared += 1
    assert n_compared > 25


def test_one_topic_is_said_to_have_intervals_by_documents():
    found = agreement(*LECTURE)
    assert any("one topic only" in note for note in found.notes)
    assert found.table["ci_low"].notna().sum() == 7  # all but the weighted forms, which nominal grades do not have
    assert found.per_query["scott_pi"].tolist() == [found["scott_pi"]]


def test_one_grade_alone_has_no_coefficient_beyond_chance():
    """The value is missing, and the reason stands beside it; the observed agreement is 1, without an interval."""
    found = agreement({"q1": {"a": 1, "b": 1}, "q2": {"c": 1}}, {"q1": {"a": 1, "b": 1}, "q2": {"c": 1}})
    table = found.table.set_index("coefficient")
    assert table["value"].dropna().to_dict() == {"observed": 1.0}
    assert (table["undefined"] == "").to_dict() == dict.fromkeys(table.index, False) | {"observed": True}
    assert table[["ci_low", "ci_high"]].isna().all(axis=None)
    assert any("no interval for observed" in note for note in found.notes)


def test_nominal_grades_have_no_weights():
    table = agreement(*LECTURE).table.set_index("coefficient")
    assert table.loc[["linear_kappa", "quadratic_kappa"], "undefined"].unique().tolist() == [
        "nominal grades have no order"
    ]


def test_labels_without_a_second_one_are_left_out_and_counted():
    people = {"q1": {"a": 1, "b": 0, "c": 1}, "q2": {"d": 0}}
    found = agreement(people, {"q1": {"a": 1, "b": 1}, "q2": {"d": 0, "e": 3}})
    assert found.table["n_items"][0] == 3
    assert found.notes[0] == "documents with one label only are left out: 2 of 5"


def test_disputed_documents_stand_widest_first_with_each_label():
    rows = labels_of([[0, 0, 0], [0, 1, 1], [2, 0, 1], [3, 0, 3], [1, None, 0], [0, 3, 2]])
    disputed = agreement(rows, level="ordinal").disputed
    assert disputed.columns.tolist() == ["qid", "docid", "n_labels", "spread", "judge 0", "judge 1", "judge 2"]
    assert disputed["docid"].tolist() == ["d003", "d005", "d002", "d004", "d001"]
    assert disputed["spread"].tolist() == [6, 6, 4, 2, 2]
    assert disputed.loc[3, ["judge 0", "judge 1", "judge 2"]].tolist() == [2, pd.NA, 0]


def test_disputed_documents_are_a_sheet_for_a_further_judge(tmp_path):
    """The sheet has the documents and no labels of the others."""
    disputed = agreement(labels_of([[0, 0], [0, 1], [2, 0]])).disputed
    made = rk.judging.write_sheets(disputed, tmp_path / "sheets", judges=["cy"], scale=[0, 1, 2])
    sheet = pd.read_csv(tmp_path / "sheets" / made["file"][0])
    assert sorted(sheet["docid"]) == ["d001", "d002"]
    assert not {"judge 0", "judge 1", "spread"} & set(sheet.columns)


def test_a_judge_may_have_the_name_of_a_column():
    found = agreement({"qid": {"q": {"a": 1, "b": 0}}, "spread": {"q": {"a": 0, "b": 0}}})
    assert found.disputed.columns.tolist() == ["qid", "docid", "n_labels", "spread", "qid (judge)", "spread (judge)"]


def test_rows_of_the_confusion_are_the_first_judges_grades():
    """Also if the second judge alone has labelled the document that comes first."""
    found = agreement({"q": {"b": 1, "c": 1}}, {"q": {"a": 0, "b": 0, "c": 1}})
    assert found.confusion.index.name == "first"
    assert found.confusion.to_numpy().tolist() == [[0, 0], [1, 1]]


def test_coincidences_of_three_judges_are_symmetric_and_count_each_label():
    confusion = agreement(labels_of([[0, 1, 1], [0, 0, None], [1, 1, 1]])).confusion
    assert confusion.to_numpy().tolist() == [[2, 1], [1, 4]]


@each_row(
    ("wrong", "error"),
    [
        ({"judgments": {"a": {"q": {"d": 1}}, "b": {"q": {"e": 1}}}}, InvalidInput),
        ({"judgments": {"q": {"d": 1}}, "other": {"q": {"e": 1}}}, InvalidInput),
        ({"judgments": LECTURE[0], "other": LECTURE[1], "level": "ratio"}, UnknownName),
        ({"judgments": LECTURE[0], "other": LECTURE[1], "confidence_level": 95}, InvalidInput),
    ],
)
def test_what_has_no_agreement_is_refused(wrong, error):
    with pytest.raises(error):
        agreement(**wrong)


def test_an_unknown_coefficient_is_named_with_the_near_ones():
    with pytest.raises(UnknownName, match="cohen_kappa"):
        agreement(*LECTURE)["cohens_kappa"]


def test_agreement_prints_and_draws_its_values():
    """The table has the coefficients in words; the figure has the shares of the confusion and a point a topic."""
    rows = labels_of([drawn(3)[0][:2], [0, 1], [1, 1], [0, 0], [1, 0], [0, 0]], n_topics=2)
    found = agreement(rows)
    assert "Scott's pi" in str(found)
    assert "nominal grades have no order" in found.to_markdown()
    left, right = found.plot("scott_pi").axes
    assert len(left.texts) == found.confusion.size
    assert sum(float(text.get_text()) for text in left.texts) == pytest.approx(100, abs=0.5)
    assert sorted(right.lines[0].get_xdata()) == pytest.approx(sorted(found.per_query["scott_pi"].dropna()))
    with pytest.raises(UnknownName):
        found.plot("kappa")


def test_many_grades_are_refused_before_they_take_memory():
    """Real-valued scores of a model are no grades: they are to be rounded."""
    one = {f"q{q}": {f"d{d}": (20 * q + d) / 7 for d in range(20)} for q in range(10)}
    with pytest.raises(InvalidInput, match="at most 50"):
        rk.judging.agreement(one, one, level="interval")


def test_documents_that_nobody_judged_are_no_agreement():
    """Two judges who differ on all documents of a sample do not agree by the -1 of those that were left out."""
    part = rk.judging.pool({"a": {q: list("abcdefghij") for q in ("q", "r")}}).sample(0.2)
    one = {q: dict.fromkeys("abcdefghij", int(q == "q")) for q in ("q", "r")}
    two = {q: dict.fromkeys("abcdefghij", int(q == "r")) for q in ("q", "r")}
    assert rk.judging.agreement(part.qrels(one), part.qrels(two))["observed"] == 0


@each_row(("level", "n_notes"), [("nominal", 1), ("ordinal", 0)])
def test_grades_that_are_taken_as_names_are_noted_once(level, n_notes):
    """Three grades are likely to be ordered, and the plain coefficients do not count how far apart they are."""
    found = agreement(labels_of([[0, 1], [2, 2], [1, 0]], n_topics=2), level=level)
    assert sum("level=" in note for note in found.notes) == n_notes


def test_few_labels_of_rare_grades_are_noted():
    """Below 30, and not if all labels are of one grade: then there is no interval."""

    def noted(n_rare):
        pairs = [(1, 1)] * (n_rare // 2) + [(1, 0)] * (n_rare % 2) + [(0, 0)] * 100
        return [note for note in agreement(*of_pairs(pairs)).notes if "commonest grade" in note]

    assert noted(29)[0].startswith("only 29 labels are not of the commonest grade")
    assert noted(30) == noted(0) == []
