"""Measure how often a consensus notes judges who share errors, and intervals of agreement where a grade is rare.

    python tests/calibration/measure_judges.py          # about a CPU minute
    python tests/calibration/measure_judges.py --quick  # a tenth of the work; prints and writes nothing

A panel is a world of judges. Each document has a true grade, 0 or 1. The judges of a family share errors: they see the
true grade or, on some documents, all the other one; then each errs alone. Judges without a family see the true grade. A
trial is a consensus of all judges on some documents: is anybody named, and how often is the majority right?

For agreement, two judges of .8 sensitivity and .95 specificity label 20 or 50 documents of each topic. The share of
relevant documents varies from topic to topic (a beta distribution), so that a rare grade lies in few topics.

The script writes tests/calibration/judge_rates.json, and from it the table in examples/guides/make_collection.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from calibration.guard_tables import filled, table

from rankeval.io.opening import write_atomically
from rankeval.judging import agreeing
from rankeval.judging.labels import alike

FIGURES = Path(__file__).with_name("judge_rates.json")
GUIDE = Path(__file__).parents[2] / "examples" / "guides" / "make_collection.md"
COMMENTS = (
    "<!-- measured by tests/calibration/measure_judges.py -->",
    "<!-- end of what measure_judges.py measured -->",
)
TRIALS, RARE_TRIALS, DOCUMENTS = 2_000, 4_000, (100, 400)
PREVALENCES, TOPICS, OF_TOPIC, CONCENTRATION = (0.02, 0.05, 0.3), (10, 25, 50), (20, 50), 3.0
SENSITIVITY, SPECIFICITY = 0.8, 0.95
SHOWN = ("observed", "cohen_kappa", "krippendorff_alpha", "ac1")


@dataclass(frozen=True)
class Panel:
    """Judges: how often each is right of what it sees, and the families of those who see the wrong grade together."""

    words: str
    right: tuple[float, ...]
    families: tuple[tuple[int, ...], ...] = ()
    shared: float = 0.15

    def labels(self, n_documents: int, rng) -> tuple[np.ndarray, np.ndarray]:
        """Return the true grades, and those of each judge as columns."""
        true = rng.integers(0, 2, n_documents)
        seen = np.repeat(true[:, None], len(self.right), axis=1)
        for family in self.families:
            seen[:, family] ^= (rng.random(n_documents) < self.shared)[:, None]
        return true, seen ^ (rng.random(seen.shape) > self.right)


TWIN = 0.97
"""How often a judge of a family repeats what its family sees."""
ALIKE = {
    "twins": Panel("two prompts of a model (.83 right), a person (.92)", (TWIN, TWIN, 0.922), ((0, 1),)),
    "twins of four": Panel("the same, two persons", (TWIN, TWIN, 0.922, 0.922), ((0, 1),)),
    "twins, weak persons": Panel("the same, two persons of .80", (TWIN, TWIN, 0.8, 0.8), ((0, 1),)),
    "triplets": Panel("three prompts, two persons", (TWIN, TWIN, TWIN, 0.922, 0.922), ((0, 1, 2),)),
    "two families": Panel("two models with two prompts each, a person", (*(TWIN,) * 4, 0.922), ((0, 1), (2, 3))),
}
APART = {
    "three equal": Panel("three judges of .90, independent", (0.9,) * 3),
    "six equal": Panel("six judges of .90", (0.9,) * 6),
    "three unlike": Panel("three of .95, .90, .80", (0.95, 0.9, 0.8)),
    "three times": Panel("three of .95, .95, .85: the last errs three times as often", (0.95, 0.95, 0.85)),
    "four, two experts": Panel("two experts of .97, two judges of .80", (0.97, 0.97, 0.8, 0.8)),
    "five, three experts": Panel("three experts of .97, two judges of .80", (0.97, 0.97, 0.97, 0.8, 0.8)),
    "six unlike": Panel("six of .95 to .70", (0.95, 0.9, 0.9, 0.8, 0.8, 0.7)),
    "one expert": Panel("three of .97, .97, .79: they look like the twins above", (0.97, 0.97, 0.79)),
}
"""Judges who err independently; of the last ones three labels a document cannot tell it."""


def noted(name: str, n_documents: int, trials: int) -> dict:
    """Return how often judges are named as alike, and how often the majority and the best judge are right."""
    panel, rng, named, right, best = (ALIKE | APART)[name], np.random.default_rng([42, n_documents]), [], [], []
    for _ in range(trials):
        true, labels = panel.labels(n_documents, rng)
        named.append([inside for inside, _ in alike(labels)])
        # A tie takes the lower grade, as `consensus` does.
        right.append(((labels.mean(axis=1) > 0.5) == true).mean())
        best.append((labels == true[:, None]).mean(axis=0).max())
    families = [list(family) for family in panel.families]
    return {
        "panel": name,
        "documents": n_documents,
        "trials": trials,
        "noted": round(float(np.mean([bool(groups) for groups in named])), 4),
        "named": round(float(np.mean([bool(families) and groups == families for groups in named])), 4),
        "majority": round(float(np.mean(right)), 4),
        "best": round(float(np.mean(best)), 4),
    }


def coefficients(tables: np.ndarray) -> np.ndarray:
    """Return the coefficients `SHOWN` of tables of two judges and two grades, of shape (..., 2, 2)."""
    n, rows, columns = tables.sum(axis=(-2, -1)), tables.sum(axis=-1), tables.sum(axis=-2)
    equal = (((rows + columns) / (2 * n[..., None])) ** 2).sum(axis=-1)
    observed, chance = np.einsum("...ii->...", tables) / n, (rows * columns).sum(axis=-1) / n**2
    alpha = 1 - (1 - observed) / (1 - equal) * (2 * n - 1) / (2 * n)
    return np.stack([observed, (observed - chance) / (1 - chance), alpha, 1 - (1 - observed) / equal], axis=-1)


def covered(prevalence: float, n_topics: int, of_topic: int, trials: int) -> dict:
    """Return how often intervals cover the value of a large population, in all and with few labels of a rare grade."""
    rng, ones = np.random.default_rng([43, n_topics, of_topic]), np.array([1 - SPECIFICITY, SENSITIVITY])
    share = rng.beta(prevalence * CONCENTRATION, (1 - prevalence) * CONCENTRATION, (trials, n_topics))
    relevant = rng.binomial(of_topic, share)
    cells = np.stack([(1 - ones) ** 2, (1 - ones) * ones, ones * (1 - ones), ones**2], axis=-1)
    drawn = [rng.multinomial(number, of) for number, of in zip((of_topic - relevant, relevant), cells, strict=True)]
    tables = sum(drawn).reshape(trials, n_topics, 2, 2)
    truth = coefficients(1e9 * (np.array([1 - prevalence, prevalence]) @ cells).reshape(2, 2))
    held, few = [], []
    with np.errstate(divide="ignore", invalid="ignore"):
        for each in tables:
            total = each.sum(axis=0)
            ends = agreeing._interval(coefficients(total), coefficients(total - each), 0.95)
            held.append((ends["ci_low"] <= truth) & (truth <= ends["ci_high"]))
            of_grades = total.sum(axis=0) + total.sum(axis=1)
            few.append(of_grades.min() < agreeing.RARE)
    held, few = np.array(held), np.array(few)
    counts = {name: int(held[:, k].sum()) for k, name in enumerate(SHOWN)}
    found = {"prevalence": prevalence, "topics": n_topics, "of_topic": of_topic, "trials": trials, "covered": counts}
    return found | {"few": int(few.sum()), "covered_few": int((few & held[:, 1]).sum())}


def rates() -> dict:
    """Return the measured figures."""
    return json.loads(FIGURES.read_text("utf-8"))


def block() -> str:
    """Return the table of the guide, in Markdown."""
    found = {(row["panel"], row["documents"]): row for row in rates()["panels"]}
    head = ["judges", *(f"noted, {n} documents" for n in DOCUMENTS), "majority right", "best judge right"]
    lines = []
    for name, panel in (ALIKE | APART).items():
        at = [found[name, n] for n in DOCUMENTS]
        noted_of = [f"{100 * row['noted']:.1f} %" for row in at]
        lines.append([panel.words, *noted_of, f"{at[-1]['majority']:.2f}", f"{at[-1]['best']:.2f}"])
    return "\n".join([INTRODUCTION.format(trials=TRIALS), table(head, lines)])


INTRODUCTION = """\
The table shows how often judges are noted, and how often labels are right, in {trials:,} simulations of each panel
(Monte Carlo error .5 % near 5 %). The judges of a family share errors on 15 % of the documents, and err alone on 3 %.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    part = 10 if parser.parse_args().quick else 1
    panels = [noted(name, n, TRIALS // part) for name in ALIKE | APART for n in DOCUMENTS]
    cells = product(PREVALENCES, TOPICS, OF_TOPIC)
    rare = [covered(prevalence, n, of_topic, RARE_TRIALS // part) for prevalence, n, of_topic in cells]
    lines = {key: ",\n".join(map(json.dumps, of)) for key, of in (("panels", panels), ("rare", rare))}
    text = "{" + ",\n".join(f'"{key}": [\n{of}\n]' for key, of in lines.items()) + "}\n"
    print(text)
    if part == 1:
        write_atomically(FIGURES, [text.encode()])
        GUIDE.write_text(filled(GUIDE.read_text("utf-8"), block(), COMMENTS), "utf-8")


if __name__ == "__main__":
    main()
