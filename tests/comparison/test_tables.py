"""Tables of comparisons as papers print them: marks, letters, decimals, gains, spreads, adjusted intervals."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from tables import each_row

import rankeval as rk
from rankeval.comparison import record
from rankeval.comparison.tables import laid_out, printed
from rankeval.errors import InvalidInput, UnknownName
from rankeval.render import layouts

GAINS = {"bm25": 0.0, "rm3": 0.05, "ltr": 0.15, "broken": -0.15}


def frames(n=60, gains=GAINS, noise=0.15):
    """Return systems whose ARP is lower the better they are."""
    generator = np.random.default_rng(0)
    topic = generator.normal(0.4, 0.15, size=n)
    found = {}
    for name, gain in gains.items():
        score = topic + gain + generator.normal(0, noise, n)
        columns = {"AP": score, "ARP": 200 - 100 * topic - 100 * gain + generator.normal(0, 15, n)}
        found[name] = pd.DataFrame(columns, index=[f"q{k}" for k in range(n)])
    return found


@pytest.fixture(scope="module")
def against_bm25():
    return rk.compare(frames(), baseline="bm25", correction="max_t", n_resamples=1999)


@pytest.fixture(scope="module")
def all_pairs():
    return rk.compare(frames(), correction="max_t", n_resamples=1999)


def row_of(text, system):
    return next(line for line in text.splitlines() if line.startswith((f"{system} ", f"| {system} ")))


def test_stars_tell_level_and_direction_for_both_directions_of_measures(against_bm25):
    """Lower ARP is better: the better system has the stars, the worse one an arrow before them."""
    text = against_bm25.to_markdown(layout="systems")
    rows = {name: row_of(text, name) for name in GAINS}
    assert rows["ltr"].count(r"<sup>\*\*\*</sup>") == 2
    assert rows["broken"].count("<sup>\u2193\\*\\*\\*</sup>") == 2
    assert "<sup>" not in rows["bm25"] + rows["rm3"]
    assert rows["ltr"].count("**") == 4  # both means bold
    assert rows["rm3"].count("<u>") == 2
    assert text.splitlines()[-2].startswith("* stars: the system beats bm25 (\u2193: is worse), adjusted p")


def test_stars_follow_the_adjusted_p(against_bm25):
    p = against_bm25.table["p_adjusted"].to_numpy().copy()
    p[:3] = 0.04, 0.009, 0.051
    text = replace(against_bm25, table=against_bm25.table.assign(p_adjusted=p)).to_markdown(layout="systems")
    marks = [row_of(text, name).split("|")[2].partition("<sup>")[2] for name in ("rm3", "ltr", "broken")]
    # The intervals were not changed, so the first and the last part from them.
    assert marks == ["\\*\u2020</sup> ", "\\*\\*</sup> ", "\u2020</sup> "]


def test_of_two_systems_only_the_better_one_is_emphasised():
    pair = {name: frames()[name] for name in ("bm25", "ltr")}
    text = rk.compare(pair, baseline="bm25").to_latex(layout="systems")
    assert r"\underline" not in text
    assert row_of(text, "ltr").count(r"\textbf") == 2


def test_only_the_primary_measure_has_stars(against_bm25):
    """Of two measures with as clear a difference the secondary one gets none, and a note says so."""
    text = record.with_settings(against_bm25, primary="AP").to_latex(layout="systems")
    assert row_of(text, "ltr").count("***") == 1 + row_of(text, "ltr").count(r"\phantom{\textsuperscript{***}}")
    assert "marks only for AP, the confirmatory measure" in text


def test_letters_name_the_systems_that_a_system_is_shown_better_than(all_pairs):
    """They equal a slow reading of the table, row by row."""
    table = laid_out(all_pairs, "systems")
    letters = dict(zip(table.frame["system"], table.frame[" "], strict=True))
    assert letters == dict(zip(GAINS, "abcd", strict=True))
    for measure, sign in (("AP", 1), ("ARP", -1)):
        for place, system in enumerate(table.frame["system"]):
            expected = ""
            for other in GAINS:
                for _, row in all_pairs.table[all_pairs.table["measure"] == measure].iterrows():
                    if {row["system"], row["baseline"]} == {system, other} and row["p_adjusted"] <= 0.05:
                        gain = sign * row["difference"] * (1 if row["system"] == system else -1)
                        expected += letters[other] if gain > 0 else ""
            assert table.marks[measure].iloc[place] == expected
    assert table.marks["AP"].tolist() == ["d", "d", "abd", ""]


def test_marks_against_chosen_systems(all_pairs):
    """One gives stars with the adjusted p of all pairs, several give their letters only."""
    stars = laid_out(all_pairs, "systems", against="rm3")
    p = all_pairs.table.query("measure == 'AP' and system == 'ltr' and baseline == 'rm3'")["p_adjusted"].item()
    assert stars.marks["AP"].tolist() == ["", "", "*" * sum(p <= level for level in (0.05, 0.01, 0.001)), "\u2193***"]
    assert 0.001 < p < 0.05
    assert " " not in stars.frame
    two = laid_out(all_pairs, "systems", against=["rm3", "broken"])
    assert two.frame[" "].tolist() == ["", "a", "", "b"]
    assert two.marks["AP"].tolist() == ["b", "b", "ab", ""]
    for text in (all_pairs.to_latex(layout="systems", against="rm3"), all_pairs.to_html(layout="systems")):
        assert "12 comparisons" in text


def test_claims_of_no_loss_are_said_and_marked_without_arrows():
    found = rk.compare(frames(), baseline="bm25", measures="AP", claim="not_worse", margin=0.2)
    text = found.to_markdown(layout="systems")
    assert "stars: the system is not worse than bm25, adjusted p" in text
    assert "\u2193" not in text
    assert "<sup>" in row_of(text, "rm3")
    assert "<sup>" not in row_of(text, "broken")
    equal = laid_out(rk.compare(frames(), measures="AP", claim="equivalent", margin=0.2), "systems")
    assert equal.marks["AP"].tolist() == ["b", "a", "", ""]


def test_decimals_give_the_largest_standard_error_two_digits(against_bm25):
    """The standard errors of the differences are near .03 and 3."""
    table = laid_out(against_bm25, "systems")
    d = frames()["ltr"] - frames()["bm25"]
    assert (d.std() / np.sqrt(60)).between([0.01, 1.0], [0.1, 10.0]).all()
    ap, arp = table.texts()[0][1:]
    assert (len(ap.partition(".")[2].strip()), len(arp.partition(".")[2].strip())) == (3, 1)
    row = laid_out(against_bm25, "comparisons").texts()[0]
    assert [len(row[k].partition(".")[2]) for k in (2, 4, 5)] == [3, 3, 3]
    assert "0.4" in against_bm25.to_markdown(layout="systems", digits=1)
    assert laid_out(against_bm25, "systems", digits=2).texts()[0][1].strip().count("") == len("0.41") + 1


def test_spreads_are_those_of_the_single_systems(against_bm25):
    errors = laid_out(against_bm25, "systems", spread="se")
    expected = frames()["ltr"]["AP"].std() / np.sqrt(60)
    assert errors.tails["AP"].iloc[2] == f" \u00b1 {expected:.3f}"
    assert "standard error of the mean" in " ".join(errors.notes)
    low, high = stats.t.interval(0.95, 59, frames()["ltr"]["AP"].mean(), expected)
    limits = laid_out(against_bm25, "systems", spread="interval")
    assert limits.tails["AP"].iloc[2] == f" [{low:.3f}, {high:.3f}]"


def test_gains_are_in_percent_of_the_baseline_and_oriented(against_bm25, all_pairs):
    means = {name: frame.mean() for name, frame in frames().items()}
    ap = 100 * (means["ltr"]["AP"] / means["bm25"]["AP"] - 1)
    arp = 100 * (1 - means["ltr"]["ARP"] / means["bm25"]["ARP"])
    table = laid_out(against_bm25, "systems", gain=True)
    assert table.tails.loc["ltr" if "ltr" in table.tails.index else 2, ["AP", "ARP"]].tolist() == [
        f" (+{ap:.1f} %)", f" (+{arp:.1f} %)",
    ]  # fmt: skip
    assert table.tails.iloc[0].tolist() == ["", "", ""]
    rows = laid_out(against_bm25, "comparisons", gain=True).frame
    assert rows.loc[rows["system"] == "ltr", "gain"].tolist() == [f"+{ap:.1f} %", f"+{arp:.1f} %"]
    assert "(+" in all_pairs.to_html(layout="systems", against="bm25", gain=True)
    with pytest.raises(InvalidInput, match="one baseline"):
        all_pairs.to_latex(layout="systems", gain=True)


def test_of_a_baseline_without_a_positive_mean_there_is_no_gain_in_percent():
    systems = {name: frame - 100 for name, frame in frames().items()}
    table = laid_out(rk.compare(systems, baseline="bm25", measures="AP"), "comparisons", gain=True)
    assert set(table.frame["gain"]) == {"\u2013"}


def test_the_interval_shown_is_the_adjusted_one(against_bm25):
    row = against_bm25.table.iloc[0]
    shown = laid_out(against_bm25, "comparisons", digits=4)
    expected = f"[{row['ci_low_adjusted']:+.4f}, {row['ci_high_adjusted']:+.4f}]"
    assert shown.frame["95 % interval (adjusted)"].iloc[0] == expected
    none = laid_out(rk.compare(frames(), baseline="bm25", correction="bh"), "comparisons")
    assert "95 % interval (unadjusted)" in none.frame
    alone = rk.compare({name: frames()[name] for name in ("bm25", "ltr")}, baseline="bm25", measures="AP")
    assert "95 % interval" in laid_out(alone, "comparisons").frame


def test_rows_that_part_have_a_dagger_and_a_note(against_bm25):
    """A p above alpha with an interval that excludes 0, made by hand."""
    p = against_bm25.table["p_adjusted"].where(against_bm25.table["system"] != "ltr", 0.06)
    parted = replace(against_bm25, table=against_bm25.table.assign(p_adjusted=p))
    assert record.parted(parted).tolist() == (parted.table["system"] == "ltr").tolist()
    for text in (printed(parted).to_text(), parted.to_markdown(), parted.to_html()):
        assert text.count("0.0600") == text.replace("<sup>", "").replace('<sup style="min-width:1ch">', "").count(
            "0.0600\u2020"
        )
    assert r"0.0600\textsuperscript{$\dagger$}" in parted.to_latex()
    (note, *_) = record.parted_notes(parted)
    assert note.startswith("ltr against bm25 by AP")


def test_a_table_without_a_dagger_has_no_note_on_daggers():
    """The pair that has one may be left out by ``against=``."""
    pairs = rk.compare(frames(), measures="AP")
    names, wanted = pairs.table[["baseline", "system"]], {"bm25", "ltr"}
    one = names.isin(wanted).all(axis=1)
    assert one.sum() == 1
    p = pairs.table["p_adjusted"].where(~one, 0.06)
    parted = replace(pairs, table=pairs.table.assign(p_adjusted=p))
    parted = record.with_notes(parted, *record.parted_notes(parted))
    assert record.parted(parted).tolist() == one.tolist()
    other = next(name for name in frames() if name not in wanted)
    for against, has_dagger in (("bm25", True), (other, False)):
        text = parted.to_markdown(layout="systems", against=against)
        assert ("\u2020" in text, "dagger" in text) == (has_dagger, has_dagger)


def test_a_letter_has_a_dagger_where_p_and_interval_disagree():
    """The claim is shown by p, and the interval holds 0."""
    pairs = rk.compare(frames(), measures="AP")
    one = pairs.table[["baseline", "system"]].isin({"bm25", "rm3"}).all(axis=1)
    assert not pairs.shown[one].any()
    parted = replace(pairs, table=pairs.table.assign(p_adjusted=pairs.table["p_adjusted"].where(~one, 0.04)))
    assert record.parted(parted).tolist() == one.tolist()
    parted = record.with_notes(parted, *record.parted_notes(parted))
    text, names = parted.to_markdown(layout="systems"), {name: k for k, name in enumerate(frames())}
    assert text.count("\u2020") == 1
    assert f"<sup>{'abcd'[names['bm25']]}\u2020" in text
    assert "dagger" in text
    assert "$\\dagger$" in parted.to_latex(layout="systems")


def test_a_comparison_read_from_json_prints_but_has_no_spread(against_bm25):
    """It has no scores by query; decimals and marks follow from the table."""
    read = rk.Comparison.from_json(against_bm25.to_json())
    assert read.to_latex(layout="systems") == against_bm25.to_latex(layout="systems")
    with pytest.raises(InvalidInput, match="scores of every query"):
        read.to_latex(layout="systems", spread="se")


@each_row(("options", "error", "match"), [
    ({"layout": "system"}, UnknownName, "systems"),
    ({"layout": "systems", "spread": "sd"}, UnknownName, "spread"),
    ({"layout": "systems", "against": "rm3"}, InvalidInput, "leave out baseline="),
    ({"spread": "se"}, InvalidInput, 'belong to layout="systems"'),
    ({"against": "bm25"}, InvalidInput, 'belong to layout="systems"'),
    ({"digits": -1}, InvalidInput, "digits is -1"), ({"digits": 2.5}, InvalidInput, "digits"),
    ({"digits": True}, InvalidInput, "digits"),
])  # fmt: skip
def test_arguments_that_do_not_fit_are_refused(against_bm25, options, error, match):
    with pytest.raises(error, match=match):
        against_bm25.to_markdown(**options)


def test_systems_that_marks_refer_to_must_be_compared(all_pairs):
    with pytest.raises(UnknownName, match="system of the comparison"):
        all_pairs.to_latex(layout="systems", against="bm52")
    with pytest.raises(InvalidInput, match="names no system"):
        all_pairs.to_latex(layout="systems", against=[])


def test_latex_has_as_many_cells_in_each_row_and_balanced_braces():
    names = {name: f"{name}_&%$#{{}}~^\\" for name in GAINS}
    odd = rk.compare({names[name]: frame for name, frame in frames().items()}, correction="max_t", n_resamples=999)
    for text in (
        odd.to_latex(layout="systems", spread="interval"), odd.to_latex(gain=True, label="t:a_b"),
        odd.to_latex(layout="systems", against=names["bm25"], gain=True),
    ):  # fmt: skip
        body = text[text.index(r"\toprule") : text.index(r"\bottomrule")].replace(r"\midrule", "").splitlines()
        cells = {line.replace(r"\&", "").count("&") for line in body if line.endswith(r"\\")}
        assert len(cells) == 1
        plain = text.replace(r"\{", "").replace(r"\}", "")
        assert plain.count("{") == plain.count("}")
        assert plain.replace(r"\$", "").count("$") % 2 == 0
        assert text.isascii() or set(text) - set(map(chr, range(128))) <= set("\u00b1")


def on_two_collections():
    """Compare on two collections of 60 and 40 queries."""
    first, second = frames(), frames(n=40)
    both = {name: {"cranfield": first[name], "cisi": second[name].add_prefix("c", axis=0)} for name in first}
    return rk.compare(both, baseline="bm25", correction="bonferroni", n_resamples=999)


def test_several_collections_become_columns_with_all_of_them_last():
    found = on_two_collections()
    table = laid_out(found, "systems")
    parts = ("cranfield", "cisi", "all")
    assert list(table.frame)[1:] == [f"{part}: {measure}" for part in parts for measure in ("AP", "ARP")]
    for label in table.frame.columns[1:]:
        part, _, measure = label.partition(": ")
        rows = found.table[(found.table["collection"] == part) & (found.table["measure"] == measure)]
        expected = [rows["mean_baseline"].iloc[0], *rows["mean_system"]]
        assert table.frame[label].tolist() == expected
        best = min(expected) if measure == "ARP" else max(expected)
        assert table.emphasis[label].tolist()[expected.index(best)] == "best"
    alone = replace(found, table=found.table[found.table["measure"] == "AP"])
    assert alone.to_markdown(layout="systems").splitlines()[2] == "| system | cranfield | cisi | all |"
    rows = laid_out(found, "comparisons").frame
    assert rows.columns[0] == "collection"
    with pytest.raises(InvalidInput, match="one collection"):
        found.to_latex(layout="systems", spread="se")


def test_slices_that_are_too_small_to_test_are_printed_without_an_interval():
    kinds = pd.Series(["few"] * 3 + ["many"] * 57, index=frames()["bm25"].index, name="kind")
    found = rk.compare(frames(), baseline="bm25", measures="AP", by=kinds)
    assert found.table.loc[found.table["kind"] == "few", "p_value"].isna().all()
    for text in (found.to_latex(), found.to_latex(layout="systems"), printed(found).to_text()):
        assert "nan" not in text
    assert laid_out(found, "systems").marks["few"].tolist() == [""] * 4
    assert found.plot("forest")._repr_png_().startswith(b"\x89PNG")
    assert found.plot("intervals")._repr_png_().startswith(b"\x89PNG")


@each_row("label", ["a%b", "a}b", "a{b", "a\\b", "a#b", "a$b", "a&b"])
def test_labels_that_break_latex_are_refused(against_bm25, label):
    assert r"\label{tab:a_b.c-1}" in against_bm25.to_latex(label="tab:a_b.c-1")
    with pytest.raises(InvalidInput, match=r"^label is .*; expected letters, digits and -:._ for LaTeX"):
        against_bm25.to_latex(label=label)


def test_letters_of_many_systems_point_to_the_matrix():
    generator = np.random.default_rng(0)
    many = {f"s{k}": pd.DataFrame({"AP": generator.random(12)}) for k in range(27)}
    assert 'plot("matrix")' in rk.compare(many).to_html(layout="systems").replace("&#34;", '"')
    del many["s26"]
    assert "matrix" not in rk.compare(many).to_html(layout="systems")


DECISIVE = ["difference", "95 % interval (adjusted)", "p adjusted", "won/tied/lost"]


def cells(line):
    """Return the cells of a line of a printed table; columns stand three spaces apart."""
    return re.split(r"\s{3,}", line.strip())


def printed_lines(compared):
    """Return the header and the rows of a printed comparison, without the caption and the notes."""
    header, _, *rest = printed(compared).to_text().splitlines()[1:]
    return cells(header), [cells(line) for line in rest if not line.startswith("*")]


def test_a_printed_comparison_has_what_a_decision_needs(against_bm25):
    """Mean, difference, adjusted interval, adjusted p, won/tied/lost, in 100 columns; papers get the rest."""
    header, rows = printed_lines(against_bm25)
    assert header == ["measure", "system", "mean", *DECISIVE]
    assert max(map(len, printed(against_bm25).to_text().splitlines()[1:9])) <= 100
    table = against_bm25.table
    assert [row[:3] for row in rows if row[-1] == "baseline"] == [
        [measure, "bm25", f"{table.loc[table['measure'] == measure, 'mean_baseline'].iloc[0]:.4f}"]
        for measure in ("AP", "ARP")
    ]
    for row, shown in zip(table.itertuples(), [row for row in rows if row[-1] != "baseline"], strict=True):
        assert shown[:3] == [row.measure, row.system, f"{row.mean_system:.4f}"]
        assert float(shown[3]) == pytest.approx(row.difference, abs=5e-5)
        assert shown[4] == f"[{row.ci_low_adjusted:+.4f}, {row.ci_high_adjusted:+.4f}]"
        assert shown[6] == f"{row.wins}/{row.ties}/{row.losses}"
    assert {"effect", "detectable", "p"} <= {
        part.strip() for part in against_bm25.to_markdown().splitlines()[2].split("|")
    }


def test_the_only_measure_stands_in_the_header_of_the_means():
    compared = rk.compare(frames(), baseline="bm25", measures=["AP"])
    header, rows = printed_lines(compared)
    assert header == ["system", "mean AP", *DECISIVE]
    assert [row[0] for row in rows] == list(GAINS)
    assert max(map(len, printed(compared).to_text().splitlines()[1:7])) <= 90
    assert '<th scope="col">measure</th>' not in compared._repr_html_()
    assert '<th scope="col">measure</th>' in compared.to_html()


def test_a_printed_comparison_of_all_pairs_names_both_and_has_each_mean(all_pairs):
    header, rows = printed_lines(all_pairs)
    assert header == ["measure", "system", "mean", "against", *DECISIVE]
    assert {(row[0], row[1]) for row in rows} == {(measure, name) for measure in ("AP", "ARP") for name in GAINS}
    assert [row[:2] for row in rows if len(row) == 3] == [["AP", "bm25"], ["ARP", "bm25"]], "they have no difference"


def test_each_slice_of_a_printed_comparison_has_the_mean_of_the_baseline():
    kind = {f"q{k}": "ab"[k % 2] for k in range(60)}
    compared = rk.compare(frames(), baseline="bm25", measures=["AP"], by=pd.Series(kind, name="kind"))
    header, rows = printed_lines(compared)
    assert header[:3] == ["kind", "system", "mean AP"]
    means = compared.table.drop_duplicates("kind").set_index("kind")["mean_baseline"]
    found = {row[0]: row[2] for row in rows if row[-1] == "baseline"}
    assert found == {part: f"{mean:.4f}" for part, mean in means.items()}


def test_a_dagger_stays_at_its_row():
    """Rows of baselines stand between: a mark must not slip to them."""
    compared = rk.compare(frames(), baseline="bm25")
    parted = replace(compared, table=compared.table.assign(p_adjusted=0.04, ci_low_adjusted=-1.0, ci_high_adjusted=1.0))
    _, rows = printed_lines(parted)
    assert all(row[5].endswith(layouts.PARTED) for row in rows if row[-1] != "baseline")


@each_row("name", ["mean", "p", "its mean", "against", "kind"])
def test_an_attribute_may_have_the_name_of_a_column_that_is_shown(name):
    attribute = pd.Series({f"q{k}": "ab"[k % 2] for k in range(60)}, name=name)
    compared = rk.compare(frames(), baseline="bm25", measures=["AP"], by=attribute)
    header, rows = printed_lines(compared)
    assert header == [name if name == "kind" else f"by {name}", "system", "mean AP", *DECISIVE]
    assert [row[0] for row in rows] == ["all"] * 4 + ["a"] * 4 + ["b"] * 4
