"""The headline is true: an oracle reads every sentence back, and holds it against scores and table by plain loops."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from circles import choose
from tables import each_row

from rankeval.comparison import Comparison, compare, record
from rankeval.comparison.design import without_adjusted
from rankeval.comparison.headline import named_system
from rankeval.errors import InvalidInput

NUMBER = r"[+-]?(?:\d+\.\d{4}|\d(?:\.\d)?e-\d\d|∞)"
EVIDENCE = (
    rf"(?P<difference>{NUMBER}) (?P<measure>\S+)(?P<lower> \(less is better\))? "
    r"\[(?:(?P<level>[\d.]+)% interval(?P<alone> of this pair alone)? "
    rf"(?P<low>{NUMBER}) to (?P<high>{NUMBER})(?:; none belongs to (?P<correction>[^\]]+))?|"
    r"no [\d.]+% interval with so few (?P<few>queries|queries that differ|resamples \([\d,]+\)))\], "
    r"on (?P<n>[\d,]+) quer\w+"
    r"(?:, p (?P<p>< 0\.0001|= \d\.\d{4})(?:, not corrected for the (?P<uncorrected>\d+) comparisons)?)?"
)
LEAD = (
    r"(?P<lead>No difference was shown|No gain was shown|Non-inferiority was not shown|"
    r"Equivalence was not shown|Nothing was shown by \S+)"
)
PICKED = r"(?:, the (?P<extreme>best|largest|smallest) of (?P<many>\d+)(?: differences)?,)?"
MARGIN = r"(?: \(margin (?P<margin>[\d.]+)\))?"
NAMED = r"\w+(?: \(by p, not by its interval\))?"
SENTENCES = {
    "gain": rf"(?P<system>\w+) beats (?P<baseline>\w+){MARGIN} by {EVIDENCE}\.",
    "loss": rf"(?P<system>\w+) is worse than (?P<baseline>\w+): {EVIDENCE}\.",
    "equal means": rf"(?P<system>\w+) differs from (?P<baseline>\w+): {EVIDENCE}\.",
    "claim": rf"(?P<system>\w+) (?P<verb>is not worse than|is equivalent to) (?P<baseline>\w+){MARGIN}: {EVIDENCE}\.",
    "of pairs": r"(?P<system>\w+) beats (?:all (?P<all>\d+)|(?P<some>\d+) of the (?P<of>\d+)) other systems: "
    rf"(?:the nearest of them, )?(?P<baseline>\w+),? by {EVIDENCE}\.",
    "pairs": r"(?P<shown>\d+) of (?P<pairs>\d+) pairs (?P<number>was|were) shown (?P<word>to differ|equivalent)\.",
    "nothing": rf"{LEAD}{MARGIN}: (?P<system>\w+) against (?P<baseline>\w+)(?:, the "
    rf"(?P<extreme>best|largest|smallest) of (?P<many>\d+)(?: differences)?)?: {EVIDENCE}\.",
    "nothing of equals": rf"{LEAD}{MARGIN}: (?=(?P<system>\w+){PICKED} and (?P<baseline>\w+) "
    r"(?:are equal|have \S+ 0) on every query)",
    "exploratory of equals": rf"Not confirmatory: (?=(?P<system>\w+){PICKED} and (?P<baseline>\w+) "
    r"(?:are equal|have \S+ 0) on every query)",
    "exploratory": r"Not confirmatory: (?P<system>\w+) against (?P<baseline>\w+)(?:, the "
    rf"(?P<extreme>best|largest|smallest) of (?P<many>\d+)(?: differences)?)?: {EVIDENCE}\. "
    r"This difference has no adjusted p-value\.",
    "none better": r"No system was shown better than (?P<baseline>\w+)\.",
    "others named": rf"(?P<names>{NAMED}(?:, {NAMED})*(?: and (?:(?P<more>\d+) others|{NAMED}))?) (?P<verb>is|are) "
    r"(?P<state>shown better than|shown worse than|shown not worse than|shown equivalent to|shown to differ from|"
    r"undecided|equal to)(?: (?P<baseline>\w+)(?:, with equal means| on every query)?)?\.",
    "first two alike": r"The first two by their means, (?P<first>\w+) and (?P<second>\w+), cannot be told apart: "
    rf"(?P<gap>{NUMBER}) (?P<measure>\S+), p = (?P<p>\d\.\d{{4}})(?P<single> for this pair alone)?\.",
    "first two": r"Of the first two by their means, (?P<first>\w+) beats (?P<second>\w+): "
    rf"(?P<gap>{NUMBER}) (?P<measure>\S+), p (?P<p>< 0\.0001|= \d\.\d{{4}})(?P<single> for this pair alone)?\.",
    "elsewhere": r"In (?P<rows>\d+) rows? of other measures or parts something was shown\.",
    "detectable": rf"With this many queries a difference of (?P<size>{NUMBER}) would be found four times in five\.",
    "never": r"With so few (?:queries|resamples \((?P<drawn>[\d,]+)\)) no difference can be shown\.",
    "equal": rf"(?P<system>\w+){PICKED} and (?P<baseline>\w+) are equal on every query\.",
    "zero": rf"(?P<system>\w+){PICKED} and (?P<baseline>\w+) have (?P<measure>\S+) 0 on every query, so nothing is "
    r"compared(?:: see the notes)?\.",
    "parted": r"The (?:adjusted p is at most 0\.05, but the interval (?:includes 0|does not show the claim)|"
    r"interval (?:excludes 0|shows the claim), but the adjusted p is above 0\.05): p steps down over the family or "
    r"comes from another test, and the claim goes by p\.",
    "unseen": r"On (?P<queries>[\d,]+) queries a breakage of up to (?P<share>[\d.]+) % of the queries can go unseen\.",
    "farthest": r"Of the (?P<many>\d+) pairs shown equivalent, these two are the farthest apart\.",
    "first": r"(?P<measure>\S+) is the first of (?P<many>\d+) measures\.",
}
VERBS = {"not_worse": "is not worse than", "equivalent": "is equivalent to"}
NOTHING = {
    "difference": "No difference was shown",
    "better": "No gain was shown",
    "not_worse": "Non-inferiority was not shown",
    "equivalent": "Equivalence was not shown",
}


class Oracle:
    """What is true of a comparison, worked out row by row from the scores and the p-values."""

    def __init__(self, compared: Comparison, systems: dict[str, pd.DataFrame]) -> None:
        self.compared, self.systems = compared, systems
        self.asked = compared.settings
        self.measure = self.asked.primary or compared.table["measure"].iloc[0]
        self.sign = -1 if self.measure == "ARP" else 1
        self.rows = [row for row in compared.table.to_dict("records") if row["measure"] == self.measure]
        self.turns = self.asked.baseline is None and self.asked.claim == "difference"
        self.all_pairs = self.asked.baseline is None
        elsewhere = [row for row in compared.table.to_dict("records") if row["measure"] != self.measure]
        self.elsewhere = 0 if self.asked.primary else sum(self.is_shown(row) for row in elsewhere)

    def is_shown(self, row) -> bool:
        return row["p_adjusted"] <= 0.05

    def gain(self, row) -> float:
        one, other = (self.systems[row[name]][self.measure] for name in ("system", "baseline"))
        return float(self.sign * (one - other).mean())

    def shown_gains(self) -> list[float]:
        return [self.gain(row) for row in self.rows if self.is_shown(row)]

    def check(self, text: str) -> list[str]:
        """Read every sentence and check it; return the kinds in order."""
        kinds = []
        while text:
            found = {kind: re.match(pattern, text) for kind, pattern in SENTENCES.items()}
            (kind, match), *more = [(kind, match) for kind, match in found.items() if match]
            assert not more, text
            said = match.groupdict()
            if said.get("difference"):
                self.check_evidence(said)
            getattr(self, f"check_{kind.replace(' ', '_')}")(said)
            kinds.append(kind)
            text = text[match.end() :].lstrip()
        return kinds

    def row_of(self, said):
        """Return the row that is spoken of, and -1 if it is turned about."""
        for row in self.rows:
            if (row["system"], row["baseline"]) == (said["system"], said["baseline"]):
                return row, 1
            if self.turns and (row["baseline"], row["system"]) == (said["system"], said["baseline"]):
                return row, -1
        raise AssertionError(said)

    def check_evidence(self, said):
        row, turn = self.row_of(said)
        one, other = (self.systems[said[name]][self.measure] for name in ("system", "baseline"))
        assert float(said["difference"]) == pytest.approx((one - other).mean(), abs=5.1e-5)
        assert said["measure"] == self.measure
        assert bool(said["lower"]) == (self.measure == "ARP")
        assert int(said["n"]) == len(one)
        adjusted = not np.isnan(row["ci_low_adjusted"])
        ends = [row[f"ci_{end}{'_adjusted' if adjusted else ''}"] for end in ("low", "high")]
        ends = ends if turn == 1 else [-ends[1], -ends[0]]
        if said["few"]:
            assert ends == [-np.inf, np.inf]
            return
        for told, end in zip((said["low"], said["high"]), ends, strict=True):
            assert float(told.replace("∞", "inf")) == pytest.approx(end, abs=5.1e-5)
        joint = self.asked.correction == "max_t" and self.asked.n_comparisons > 1  # all ends share alpha
        assert float(said["level"]) == (90 if self.asked.claim == "equivalent" and not joint else 95)
        assert bool(said["alone"]) == (not adjusted and self.asked.n_comparisons > 1)
        if said["correction"]:
            assert self.asked.correction in ("bh", "by")
        if np.isnan(row["p_adjusted"]):
            assert said["p"] is None
        elif row["p_adjusted"] < 1e-4:
            assert said["p"] == "< 0.0001"
        else:
            assert float(said["p"].removeprefix("= ")) == pytest.approx(row["p_adjusted"], abs=5.1e-5)
        bare = self.asked.correction == "none" and self.asked.n_comparisons > 1
        assert said["uncorrected"] == (str(self.asked.n_comparisons) if bare and said["p"] else None)
        if said.get("margin"):
            assert float(said["margin"]) == self.asked.margin

    def check_named(self, said, extreme):
        row, turn = self.row_of(said)
        assert self.is_shown(row)
        assert turn * self.gain(row) == pytest.approx(extreme, abs=1e-12)

    def check_gain(self, said):
        gains = self.shown_gains()
        largest = max(map(abs, gains)) if self.turns else max(gains)
        self.check_named(said, largest)
        assert largest > 0
        assert self.asked.claim in ("difference", "better")

    def check_loss(self, said):
        assert max(self.shown_gains()) < 0
        self.check_named(said, min(self.shown_gains()))

    def check_equal_means(self, said):
        self.check_named(said, 0)
        assert max(self.shown_gains()) == 0

    def check_claim(self, said):
        assert said["verb"] == VERBS[self.asked.claim]
        gains = self.shown_gains()
        self.check_named(said, max(gains, key=abs) if self.asked.claim == "equivalent" else max(gains))

    def check_unseen(self, said):
        """So many queries of which this share is broken are all whole with a chance of alpha."""
        assert self.asked.claim in VERBS
        n = int(said["queries"].replace(",", ""))
        assert n == self.rows[0]["n_queries"]
        assert float(said["share"]) == pytest.approx(100 * (1 - 0.05 ** (1 / n)), rel=0.05)

    def check_farthest(self, said):
        assert self.asked.claim == "equivalent"
        assert int(said["many"]) == len(self.shown_gains()) > 1

    def check_of_pairs(self, said):
        """Nobody beats more; the one named is the best of those that are beaten."""
        assert self.turns
        wins = {name: set() for name in self.systems}
        for row in filter(self.is_shown, self.rows):
            pair = (row["system"], row["baseline"]) if self.gain(row) > 0 else (row["baseline"], row["system"])
            if self.gain(row):
                wins[pair[0]].add(pair[1])
        mine, others = wins[said["system"]], len(self.systems) - 1
        assert len(mine) == max(map(len, wins.values())) == int(said["all"] or said["some"])
        assert int(said["all"] or said["of"]) == others
        means = {name: self.sign * frame[self.measure].mean() for name, frame in self.systems.items()}
        assert said["baseline"] in mine
        assert means[said["baseline"]] == pytest.approx(max(means[name] for name in mine), abs=1e-12)
        rivals = [name for name, beaten in wins.items() if len(beaten) == len(mine)]
        assert means[said["system"]] == pytest.approx(max(means[name] for name in rivals), abs=1e-12)

    def check_pairs(self, said):
        assert said["word"] == ("equivalent" if self.asked.claim == "equivalent" else "to differ")
        assert said["number"] == ("was" if said["shown"] == "1" else "were")
        assert (int(said["shown"]), int(said["pairs"])) == (len(self.shown_gains()), len(self.rows))

    def check_nothing(self, said):
        assert not self.shown_gains()
        assert said["lead"] == (f"Nothing was shown by {self.measure}" if self.elsewhere else NOTHING[self.asked.claim])
        self.check_extreme(said)

    check_nothing_of_equals = check_nothing

    def check_exploratory(self, said):
        assert all(np.isnan(row["p_adjusted"]) for row in self.rows)
        self.check_extreme(said)

    check_exploratory_of_equals = check_exploratory

    def check_extreme(self, said):
        row, turn = self.row_of(said)
        gains = [self.gain(row) for row in self.rows]
        if self.asked.claim == "equivalent":
            word, expected = "smallest", min(gains, key=abs)
        elif self.turns:
            word, expected = "largest", max(map(abs, gains))
        else:
            word, expected = "best", max(gains)
        assert turn * self.gain(row) == pytest.approx(expected, abs=1e-12)
        several = len(self.rows) > 1
        assert (said["extreme"], said["many"]) == ((word, str(len(self.rows))) if several else (None, None))

    def check_none_better(self, said):
        assert said["baseline"] == self.asked.baseline
        assert max(self.shown_gains()) < 0

    def by_state(self) -> dict[str, set[str]]:
        """Return the systems besides the baseline and the one named, by what was shown of them."""
        shown = {row["system"]: self.gain(row) if self.is_shown(row) else None for row in self.rows}
        words = {"not_worse": "shown not worse than", "equivalent": "shown equivalent to"}
        found = {}
        for name, gain in shown.items():
            if gain is None:
                is_equal = self.systems[name][self.measure].equals(self.systems[self.asked.baseline][self.measure])
                counts_unseen = self.asked.claim in words and self.asked.unseen
                state = "equal to" if is_equal and not counts_unseen else "undecided"
            elif self.asked.claim in words:
                state = words[self.asked.claim]
            elif gain == 0:
                state = "shown to differ from"
            else:
                state = "shown better than" if gain > 0 else "shown worse than"
            found.setdefault(state, set()).add(name)
        return found

    def check_others_named(self, said):
        """Each names all systems of one state but the one that the first sentence names, or counts the rest."""
        named = named_system(self.compared)
        expected = {state: names - {named} for state, names in self.by_state().items()}
        mixed = re.findall(r"(\w+) \(by p, not by its interval\)", said["names"])
        parted = self.compared.table[record.parted(self.compared) & self.compared.shown]
        names = re.sub(r" \([^)]*\)", "", said["names"])
        assert set(mixed) <= set(parted["system"])
        told = re.findall(r"\w+", names.replace(" and ", " ").removesuffix(f"{said['more']} others"))
        assert len(told) == len(set(told))
        assert set(told) <= expected[said["state"]]
        assert len(told) + int(said["more"] or 0) == len(expected[said["state"]])
        assert said["verb"] == ("is" if len(told) == 1 and not said["more"] else "are")
        assert said["baseline"] == (None if said["state"] == "undecided" else self.asked.baseline)
        gains = [self.gain(row) for name in told for row in self.rows if row["system"] == name]
        assert gains == sorted(gains, reverse=True)

    def check_first_two(self, said):
        means = {name: self.sign * frame[self.measure].mean() for name, frame in self.systems.items()}
        first, second = (frame[self.measure] for frame in (self.systems[said["first"]], self.systems[said["second"]]))
        assert sorted(means.values(), reverse=True)[:2] == pytest.approx([means[said["first"]], means[said["second"]]])
        assert self.shown_gains()
        assert said["measure"] == self.measure
        assert float(said["gap"]) == pytest.approx((first - second).mean(), abs=5.1e-5)
        p = float(said["p"].removeprefix("= ").removeprefix("< "))
        assert bool(said["single"]) == (self.asked.baseline is not None)
        if self.asked.baseline is None:
            expected = next(
                row for row in self.rows if {row["system"], row["baseline"]} == {said["first"], said["second"]}
            )["p_adjusted"]
        else:
            assert self.asked.baseline not in (said["first"], said["second"])
            pair = compare(
                {name: self.systems[name] for name in (said["first"], said["second"])},
                measures=self.measure,
                test=self.asked.test,
                correction="none",
                n_resamples=299,
                rng=self.asked.rng,
            )
            expected = pair.table["p_value"].iloc[0]
        assert p == pytest.approx(expected, abs=1.1e-4)
        return p

    def check_first_two_alike(self, said):
        assert self.check_first_two(said) > 0.05

    def check_elsewhere(self, said):
        assert int(said["rows"]) == self.elsewhere > 0

    def check_detectable(self, said):
        row = self.row_named()
        assert float(said["size"]) == pytest.approx(row["detectable_difference"], abs=5.1e-5)
        assert not self.shown_gains()

    def check_never(self, said):
        assert np.isinf(self.row_named()["detectable_difference"])
        assert said["drawn"] in (None, str(self.asked.n_resamples))

    def check_zero(self, said):
        for name in (said["system"], said["baseline"]):
            assert not self.systems[name][said["measure"]].any()

    def check_equal(self, said):
        pd.testing.assert_series_equal(
            *(self.systems[said[name]][self.measure] for name in ("system", "baseline")), check_names=False
        )

    def row_named(self):
        named = re.search(r"(\w+) against (\w+)", self.compared.headline)
        return self.row_of({"system": named[1], "baseline": named[2]})[0]

    def check_parted(self, said):
        assert record.parted(self.compared)[
            [row["measure"] == self.measure for row in self.compared.table.to_dict("records")]
        ].any()

    def check_first(self, said):
        assert self.asked.primary is None
        assert said["measure"] == self.compared.table["measure"].iloc[0]
        assert int(said["many"]) == self.compared.table["measure"].nunique()


def random_comparison(seed):
    """Return a comparison of 2 to 12 systems with settings at random, and its scores."""
    generator = np.random.default_rng(seed)
    n, k = int(generator.choice([4, 8, 20, 50, 120])), int(generator.integers(2, 13))
    measures = [["AP"], ["ARP"], ["AP", "RR"], ["RR", "ARP", "AP"]][generator.integers(4)]
    hard = generator.normal(0.5, 0.2, n)
    systems = {}
    for place in range(k):
        spread, gain = generator.choice([0.02, 0.1, 0.3]), generator.choice([0.0, 0.0, 0.03, -0.03, 0.1, -0.1])
        scores = {name: hard + generator.normal(gain, spread, n) for name in measures}
        systems[f"s{place}"] = pd.DataFrame(scores, index=[f"q{query}" for query in range(n)])
    if generator.random() < 0.3:  # copies, and now and then nothing else
        names = list(systems) if generator.random() < 0.3 else ["s1"]
        systems |= {name: systems["s0"].copy() for name in names}
    claim = str(generator.choice(["difference"] * 4 + ["better", "not_worse", "equivalent"]))
    baseline = generator.choice(["s0", "s1", None, None]) if claim in ("difference", "equivalent") else "s0"
    margin = 0.0 if claim == "difference" else float(generator.choice([0.01, 0.05]))
    compared = compare(
        systems,
        baseline=baseline,
        test=str(generator.choice(["t", "t", "randomization", "wilcoxon", "sign"])),
        correction=str(generator.choice(["holm", "holm", "max_t", "bonferroni", "bh", "none"])),
        family=str(generator.choice(["all", "measure"])),
        claim=claim,
        margin=margin if claim != "better" or generator.random() < 0.5 else 0.0,
        n_resamples=299,
        rng=seed,
    )
    if generator.random() < 0.1:
        notes = tuple(note for note in compared.notes if note != record.PARTED)
        compared = replace(compared, table=without_adjusted(compared.table), notes=notes)
    if generator.random() < 0.2:
        compared = record.with_settings(compared, primary=measures[-1])
    return compared, systems


N_COMPARISONS = choose(default=20, full=200)


@pytest.mark.random
def test_the_oracle_agrees_with_every_sentence_on_random_comparisons():
    """And every kind of sentence but the rarest was seen, if there are comparisons enough."""
    seen = {}
    for seed in range(N_COMPARISONS):
        compared, systems = random_comparison(seed)
        oracle = Oracle(compared, systems)
        kinds = oracle.check(compared.headline)
        seen = dict.fromkeys(kinds, seed) | seen
        if oracle.shown_gains() and compared.settings.baseline is not None:
            means = {name: oracle.sign * frame[oracle.measure].mean() for name, frame in systems.items()}
            first = sorted(means, key=lambda name: -means[name])[:2]
            is_open = compared.settings.baseline not in first and oracle.measure == compared.table["measure"].iloc[0]
            assert is_open == bool({"first two", "first two alike"} & set(kinds)), seed
            assert "others named" in kinds or len(systems) == 2
        if not np.isnan(compared.table["p_adjusted"]).all():
            anything = bool(oracle.shown_gains() or oracle.elsewhere)
            assert not (anything and "No difference was shown" in compared.headline), seed
        assert named_system(compared) in compared.headline
    assert set(SENTENCES) - set(seen) <= {"equal means", "never", "zero"} or N_COMPARISONS < 100


def noisy_and_steady(seed):
    """Return a baseline and two systems: the one with the larger mean gain is not shown (p = .34), the other one is."""
    generator = np.random.default_rng(seed)
    n = 50
    base = generator.uniform(0.2, 0.7, n)
    systems = {}
    for name, mean, spread in (("noisy", 0.038, 0.28), ("steady", 0.031, 0.05)):
        drawn = generator.normal(size=n)
        systems[name] = base + mean + spread * (drawn - drawn.mean()) / drawn.std()
    return {"base": pd.DataFrame({"AP": base})} | {name: pd.DataFrame({"AP": one}) for name, one in systems.items()}


@pytest.mark.further
@each_row("correction", ["holm", "max_t", "bonferroni", "bh"])
@each_row("seed", range(6))
def test_the_steady_system_is_named_though_the_noisy_one_has_the_larger_mean(seed, correction):
    compared = compare(noisy_and_steady(seed), baseline="base", correction=correction)
    assert compared.headline.startswith("steady beats base by +0.0310 AP [95% interval ")
    assert " noisy is undecided. The first two by their means, noisy and steady, cannot be told apart: +0.0070 AP" in (
        compared.headline
    )
    assert named_system(compared) == "steady"
    assert compared.best.system == "noisy"


def test_two_that_both_beat_the_baseline_are_told_apart_or_said_not_to_be():
    """Which of them to take is the decision that is left."""
    generator = np.random.default_rng(4)
    base, noise = generator.uniform(0.2, 0.7, 200), generator.normal(size=(2, 200))
    for gap, told in ((0.0, "The first two by their means, v3 and v2, cannot be told apart: +0.00"), (0.02, "Of the ")):
        v2, v3 = (base + 0.02 + 0.05 * (one - one.mean()) for one in noise)
        systems = {"v1": base, "v2": v2, "v3": v3 + 0.0013 + gap}
        headline = compare({name: pd.DataFrame({"AP": one}) for name, one in systems.items()}, baseline="v1").headline
        assert headline.startswith(f"v3 beats v1 by +{0.0213 + gap:.4f} AP [95% interval ")
        assert f" v2 is shown better than v1. {told}" in headline
    assert " Of the first two by their means, v3 beats v2: +0.0213 AP, p " in headline


def test_of_many_systems_a_few_are_named_and_the_rest_is_counted():
    generator = np.random.default_rng(4)
    base = generator.uniform(0.2, 0.7, 50)
    systems = {"base": base} | {f"s{k}": base + generator.normal(0, 0.1, 50) for k in range(20)}
    systems |= {f"good{k}": base + 0.1 + 0.01 * k + generator.normal(0, 0.01, 50) for k in range(6)}
    headline = compare({name: pd.DataFrame({"AP": one}) for name, one in systems.items()}, baseline="base").headline
    assert " good4, good3, good2, good1 and good0 are shown better than base." in headline
    assert " and 16 others are undecided. Of the first two by their means, good5 beats good4: " in headline


def test_the_interval_is_the_simultaneous_one():
    compared = compare(noisy_and_steady(0), baseline="base")
    row = compared.table.set_index("system").loc["steady"]
    assert f"[95% interval {row.ci_low_adjusted:+.4f} to {row.ci_high_adjusted:+.4f}]" in compared.headline
    assert row.ci_low_adjusted < row.ci_low


def test_where_less_is_better_the_lower_mean_beats_the_higher():
    systems = {name: frame.rename(columns={"AP": "ARP"}) for name, frame in noisy_and_steady(0).items()}
    assert compare(systems, baseline="steady", measures=["ARP"]).headline.startswith(
        "base beats steady by -0.0310 ARP (less is better) ["
    )
    assert compare(systems, baseline="base", measures=["ARP"]).headline.startswith(
        "No system was shown better than base. steady is worse than base: +0.0310 ARP (less is better) ["
    )


def test_a_difference_by_another_measure_is_not_denied():
    systems = {name: frame.assign(RR=frame["AP"]) for name, frame in noisy_and_steady(0).items() if name != "noisy"}
    generator = np.random.default_rng(0)
    systems["steady"]["AP"] = systems["base"]["AP"] + generator.normal(0, 0.1, 50)
    compared = compare(systems, baseline="base")
    assert compared.headline.startswith("Nothing was shown by AP: steady against base: ")
    assert "In 1 row of other measures or parts something was shown." in compared.headline
    decided = record.with_settings(compared, primary="AP")
    assert decided.headline.startswith("No difference was shown: steady against base: ")


def test_a_test_that_is_not_of_the_mean_may_show_equal_means_to_differ():
    """The sign test: 19 small wins and one great loss."""
    base = pd.DataFrame({"AP": np.zeros(20)})
    system = pd.DataFrame({"AP": np.array([1.0] * 19 + [-19.0])})
    compared = compare({"base": base, "system": system}, baseline="base", test="sign")
    assert compared.headline.startswith("system differs from base: 0.0000 AP [")
    assert Oracle(compared, {"base": base, "system": system}).check(compared.headline)[0] == "equal means"


def test_systems_without_any_difference_are_said_to_be_equal():
    base = pd.DataFrame({"AP": np.linspace(0, 1, 20)})
    compared = compare({"base": base, "copy": base.copy()}, baseline="base")
    assert compared.headline == "No difference was shown: copy and base are equal on every query."


def test_a_difference_without_variance_has_no_detectable_difference():
    """On 3 queries the sign flips cannot show it, and Student's t is not defined."""
    base = pd.DataFrame({"AP": [0.1, 0.2, 0.3]})
    headline = compare({"base": base, "other": base + 0.2}, baseline="base").headline
    assert headline.startswith("No difference was shown: other against base: +0.2000 AP")
    assert "four times in five" not in headline


def test_a_single_candidate_has_no_counts_and_several_have_the_value_of_the_choice():
    systems = noisy_and_steady(0)
    several = compare(systems, baseline="base").findings
    assert several[1].startswith("Choosing the largest mean of 2 candidates, here noisy, gains about +0.0")
    del systems["noisy"]
    assert len(compare(systems, baseline="base").findings) == 1


def test_collections_and_slices_are_spoken_of_together():
    """The rows of parts are not counted among the others."""
    systems = noisy_and_steady(0)
    parted = {name: {"news": frame[:30], "web": frame[30:]} for name, frame in systems.items()}
    lengths = pd.Series(["short", "long"] * 25, index=systems["base"].index, name="length")
    together = "is over all 2 collections together."
    sliced = "is over all queries; the table has the slices by length."
    alone = {name: {"news": frame} for name, frame in systems.items()}
    for compared, scope in (
        (compare(alone, baseline="base"), "is over the only collection, news."),
        (compare(systems, baseline="base", by=lengths.rename(None)), "is over all queries; the table has the slices."),
        (compare(parted, baseline="base"), together),
        (compare(systems, baseline="base", by=lengths), sliced),
    ):
        row = compared.table[compared.table["system"] == "steady"].iloc[0]
        assert compared.headline.startswith(f"steady beats base by {row['difference']:+.4f} AP [")
        assert " noisy is undecided. The first two by their means, noisy and steady, cannot be told apart: +0.00" in (
            compared.headline
        )
        assert compared.headline.endswith(f". This {scope}")
        assert Comparison.from_json(compared.to_json()).findings == compared.findings


def test_the_choice_and_not_the_named_system_is_the_subject_of_its_value():
    """Noisy and worse systems would often be chosen: the choice loses although the system chosen is shown better."""
    generator = np.random.default_rng(9)
    base = generator.normal(0.5, 0.1, 50)
    scores = {"base": base, "rule": base + 0.01 + generator.normal(0, 0.005, 50)}
    scores |= {f"n{i}": base - 0.02 + generator.normal(0, 0.2, 50) for i in range(4)}
    compared = compare({name: pd.DataFrame({"AP": one}) for name, one in scores.items()}, baseline="base")
    assert compared.best.system == "rule"
    assert compared.best.estimate < 0
    lead, choice = compared.findings
    assert lead.startswith("rule beats base by +0.01")
    assert choice.startswith("Choosing the largest mean of 5 candidates, here rule, gains about -0.0")


def pair(first, second, **options):
    return compare({"a": pd.DataFrame({"AP": first}), "b": pd.DataFrame({"AP": second})}, **options)


def test_too_few_resamples_are_not_said_to_be_too_few_queries():
    q = np.random.default_rng(1).normal(0.5, 0.1, (2, 50))
    headline = pair(*q, test="randomization", n_resamples=10).headline
    assert "With so few resamples (10) no difference can be shown." in headline
    assert "With so few queries no" in pair(*q[:, :4], test="randomization").headline


def test_small_numbers_are_not_written_as_zero_and_margins_are_plain():
    generator = np.random.default_rng(1)
    q = generator.normal(0.5, 0.1, 50) * 1e-6
    headline = pair(q, q + 1e-7 + generator.normal(0, 1e-8, 50), baseline="a").headline
    assert headline.startswith("b beats a by +9.9e-08 AP [95% interval +9.7e-08 to +1e-07]")
    large = pair(q, q + 1e-7, baseline="a", claim="equivalent", margin=1e9).headline
    assert "(margin 1e+09)" in large


def test_a_line_break_in_a_name_does_not_break_the_headline():
    q = np.random.default_rng(1).normal(0.5, 0.1, 50)
    frames = {"a\nb": pd.DataFrame({"AP": q}), "base": pd.DataFrame({"AP": q[::-1]})}
    compared = compare(frames, baseline="base")
    assert "a b against base" in compared.headline
    assert "a b &" in compared.to_latex(layout="systems")
    with pytest.raises(InvalidInput, match="empty name"):
        compare({"": frames["base"], "base": frames["base"]})


def test_a_saved_comparison_draws_no_queries():
    q = np.random.default_rng(1).normal(0.5, 0.1, (2, 50))
    saved = Comparison.from_json(pair(*q, baseline="a").to_json())
    with pytest.raises(InvalidInput, match="read from a file or lost its evaluations"):
        saved.plot("queries", system="b")


def test_a_saved_comparison_says_the_same():
    compared = compare(noisy_and_steady(0), baseline="base")
    assert Comparison.from_json(compared.to_json()).findings == compared.findings
    written = json.loads(compared.to_json())
    assert written.pop("headline") == compared.headline
    # It follows from the numbers: it is not read, so that an edited one cannot speak for them.
    for other in (written, {**written, "headline": "base beats all"}):
        assert Comparison.from_json(json.dumps(other)).headline == compared.headline
    stripped = replace(compared, evaluations={})
    assert stripped.findings == (compared.headline,)


def test_a_notebook_shows_the_findings_escaped():
    systems = noisy_and_steady(0)
    systems["<i>"] = systems.pop("steady")
    html = compare(systems, baseline="base")._repr_html_()
    assert html.startswith("<p>&lt;i&gt; beats base by +0.0310 AP")
    assert "<p>Choosing the largest mean of 2 candidates, here noisy, gains about" in html
    assert "<i>" not in html


def test_systems_that_are_0_on_every_query_are_said_to_show_nothing():
    zero = pd.DataFrame({"AP": [0.0, 0.0, 0.0]}, index=["q1", "q2", "q3"])
    systems = {"base": zero, "copy": zero.copy()}
    compared = compare(systems, baseline="base")
    assert Oracle(compared, systems).check(compared.headline)[-1] == "zero"


def test_nothing_is_chosen_over_a_baseline_that_is_best():
    systems = noisy_and_steady(0)
    assert len(compare(systems, baseline="base").findings) == 2
    best = {**systems, "best": max(systems.values(), key=lambda one: one["AP"].mean()) + 0.01}
    found = compare(best, baseline="best")
    assert found.findings == (found.headline,)


def test_a_system_shown_by_p_against_its_interval_is_marked():
    rng = np.random.default_rng(0)
    base = pd.DataFrame({"AP": rng.uniform(0.2, 0.8, 100)})
    systems = {"base": base, **{name: base + rng.normal(-0.05, 0.1, (100, 1)) for name in ("poor", "weak")}}
    compared = compare(systems, baseline="base")
    named = named_system(compared)
    (other,) = {"poor", "weak"} - {named}
    assert f"{other} is shown worse than base." in compared.headline
    ends = compared.table["ci_high_adjusted"].where(compared.table["system"] == named, 0.01)
    parted = replace(compared, table=compared.table.assign(ci_high_adjusted=ends))
    assert f"{other} (by p, not by its interval) is shown worse than base." in parted.headline
    (note,) = record.parted_notes(parted)
    assert note.startswith(f"{other} against base by AP: ")
