"""The effect of judgments on systems: other judges, and a pool without the finds of one group.

Both questions are answered alike. The systems are evaluated by the true judgments and by others,
each two systems are compared under both, and each pair has one fate::

    significant by the truth    by the other judgments    fate
    yes                         yes, the same system      kept
    yes                         yes, the other system     reversed
    yes                         no                        lost
    no                          yes                       new
    no                          no                        open
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from rankeval._arguments import explained
from rankeval._checks import check_count, count, few, refuse, require
from rankeval._registry import chosen
from rankeval._visible import escaping
from rankeval.analysis.ordering import OrderAgreement, order_agreement
from rankeval.collection.qrels import Qrels, as_qrels
from rankeval.collection.run import as_run
from rankeval.comparison import compare
from rankeval.comparison.recorded import Recorded
from rankeval.evaluation import evaluate
from rankeval.judging.labels import NOT_JUDGED, Labels
from rankeval.judging.pools import pool
from rankeval.measures import Measure, direction
from rankeval.render.tables import Table, number
from rankeval.significance.declarations import Rng, generator_of

if TYPE_CHECKING:
    from rankeval.render.plots import Figure

COLUMNS, FATES = (
    ["baseline", "system", "difference", "p_adjusted"],
    ["kept", "lost", "new", "reversed"],
)
UNION, INTERSECTION, EVERY = "union", "intersection", "all judgments"
RELEVANT = 1
"""The lowest grade that is relevant, where sets of relevant documents are compared."""


@explained
@escaping
@dataclass(frozen=True, eq=False, repr=False)
class JudgmentEffect(Recorded):
    """The fields that `Disagreement` and `Reusability` share; `rankeval.judging.Disagreement` documents them."""

    table: pd.DataFrame
    pairs: pd.DataFrame
    order: OrderAgreement
    notes: tuple[str, ...]
    caption: str

    @property
    def means(self) -> pd.DataFrame:
        """The mean of each system (rows) under each set of judgments (columns)."""
        return self.order.means.droplevel(0, axis=1)

    def plot(self) -> Figure:
        """Draw the rank of each system under each set of judgments."""
        from rankeval.judging.figures import order_under_judges

        return order_under_judges(
            self.order.ranks.droplevel(0, axis=1).astype(np.float64), self.caption
        )

    def _laid_out(self) -> Table:
        short = dict.fromkeys(["overlap", "tau_b", "tau_ap"], partial(number, digits=3))
        return Table(self.table, short, caption=self.caption, notes=self.notes)


@explained
@escaping
@dataclass(frozen=True, eq=False, repr=False)
class Disagreement(JudgmentEffect):
    """The order of systems, and the significant pairs, under the judgments of several judges.

    Attributes
    ----------
    table : DataFrame
        A row for each set of judgments but the true one: judgments; mean, of the measure over all
        systems; overlap, of the relevant documents with those of the truth: shared by both /
        relevant in either, the mean over queries; tau_b, tau_ap and swaps as in
        `rankeval.analysis.OrderAgreement`; kept, lost, new and reversed, the pairs of systems with
        that fate.
    pairs : DataFrame
        A row for each other set of judgments and each pair of systems: judgments, baseline, system;
        difference and p_adjusted, as in `rankeval.compare`; difference_by_truth and
        p_adjusted_by_truth; fate, which is kept, lost, new, reversed, or open (significant under
        neither).
    order : OrderAgreement
        The agreement of the orders with that by the true judgments.
    notes : tuple of str
        Sentences that a reader of the numbers must see.
    caption : str
        Systems, measure, true judgments and test in one line.
    draws : DataFrame
        A row for each draw of a random judge a query: tau_b, tau_ap, swaps, mean.
    """

    _row_key = "judgments"
    _row_ends: ClassVar[Mapping[str, str]] = {
        name: f"_{name}" for name in ("tau_b", "tau_ap", "overlap")
    }

    draws: pd.DataFrame


@explained
@escaping
@dataclass(frozen=True, eq=False, repr=False)
class Reusability(JudgmentEffect):
    """The scores of systems by judgments to which their group did not contribute.

    Attributes
    ----------
    table : DataFrame
        A row for each run: group, system; unique, the judged documents that only its group put into
        the pool, and unique_relevant, the relevant ones of these; mean and rank by all judgments;
        mean_without and rank_without, by those without the unique documents of its group; then, of
        all systems under these, tau_b, tau_ap and swaps as in `rankeval.analysis.OrderAgreement`,
        and kept, lost, new and reversed, the pairs of systems with that fate.
    pairs, order, notes, caption
        As in `rankeval.judging.Disagreement`; the judgments are those without a group.
    """


@explained
def disagreement(
    judgments: Any,
    runs: Mapping[str, Any],
    *,
    measure: str | Measure = "nDCG@10",
    truth: str | None = None,
    n_draws: int = 100,
    rng: Rng = 0,
    **options: Any,
) -> Disagreement:
    """Say what the disagreement of judges does to the order of systems and to significant pairs.

    Parameters
    ----------
    judgments : mapping of judge to judgments, or Qrels with the judge as aspect
        At least two judges. Only queries that all of them judged count.
    runs : mapping of str to Run, dict, frame or path
        The systems.
    measure : str or Measure, default ``"nDCG@10"``
        The measure.
    truth : str, optional
        The judge that is taken as right, or "union" or "intersection"; by default the first judge.
    n_draws : int, default 100
        How often a random judge is drawn for each query.
    rng : int, Generator or None, default 0
        Seed of the draws and of tests that resample.
    **options
        Others of `rankeval.compare`, such as test, correction and alpha: all pairs of systems are
        compared under each set of judgments.

    Returns
    -------
    Disagreement
        The judgments are those of each judge; the union, where a document has the highest of its
        grades; the intersection, where it has the lowest, and -1 (pooled and not judged) if a judge
        left it out; and a judge drawn at random for each query.

    Raises
    ------
    InvalidInput
        If there are fewer than two judges, systems, or queries that all judges judged, or a judge
        is called like one of the other sets.
    UnknownName
        If there is no such truth, measure, test or correction.

    Notes
    -----
    Among systems of very different quality tau is high for any judge. The pairs say more: Voorhees,
    Variations in relevance judgments and the measurement of retrieval effectiveness, IPM 36, 2000,
    doi:10.1016/S0306-4573(00)00010-8.

    Examples
    --------
    >>> ann = {"q1": {"d1": 1, "d2": 0}, "q2": {"d1": 0, "d2": 1}}
    >>> llm = {"q1": {"d1": 1, "d2": 1}, "q2": {"d1": 0, "d2": 1}}
    >>> runs = {"one": {"q1": ["d1", "d2"], "q2": ["d2", "d1"]}, "two": {"q1": ["d2", "d1"], "q2": ["d1", "d2"]}}
    >>> found = disagreement({"ann": ann, "llm": llm}, runs, measure="P@1")
    >>> found.table[["judgments", "mean", "overlap", "tau_b"]].head(1)
      judgments  mean  overlap  tau_b
    0       llm  0.75     0.75    1.0
    """
    check_count("n_draws", n_draws)
    grades, notes = _graded(judgments)
    truth = truth or grades.columns[0]
    scores, effect = _effect(grades, truth, runs, measure, {"rng": rng, **options})
    relevant = grades >= RELEVANT
    both = relevant.mul(relevant[truth], axis=0).groupby(level="qid").sum()
    sizes = relevant.groupby(level="qid").sum()
    overlap = (both / (sizes.add(sizes[truth], axis=0) - both)).mean()
    of_sets = pd.DataFrame({"mean": effect.means.mean(), "overlap": overlap})
    table = of_sets.rename_axis("judgments").reset_index().merge(effect.table, on="judgments")
    draws = _draws(scores, truth, n_draws, generator_of(rng))
    tau_b = draws["tau_b"]
    taus = f"tau_b {tau_b.mean():.3f} on average, {tau_b.min():.3f} at the least"
    notes += effect.notes
    notes.append(f"a judge drawn at random for each query, {count(n_draws, 'draw')}: {taus}")
    return Disagreement(table, effect.pairs, effect.order, tuple(notes), effect.caption, draws)


@explained
def reusability(
    qrels: Any,
    runs: Mapping[str, Any],
    *,
    depth: int,
    groups: Mapping[str, str] | None = None,
    measure: str | Measure = "nDCG@10",
    **options: Any,
) -> Reusability:
    """Say whether judgments would be fair to systems that did not contribute to the pool.

    Leave one group out: its runs are scored without the judged documents that only they put into
    the pool, as if the group had come later (Zobel 1998).

    Parameters
    ----------
    qrels : Qrels, dict, frame or path
        The judgments.
    runs : mapping of str to Run, dict, frame or path
        The runs that were pooled.
    depth : int
        The depth of the pool.
    groups : mapping of run to group, optional
        Runs of one group are alike, and are left out together. By default each run is a group.
    measure, **options
        As in `rankeval.judging.disagreement`.

    Returns
    -------
    Reusability
        A row for each run.

    Raises
    ------
    InvalidInput
        If a run has no group, there are fewer than two runs, or the depth is not a whole number of
        1 or more.
    UnknownName
        If there is no such measure, test or correction.

    Notes
    -----
    Zobel, How reliable are the results of large-scale information retrieval experiments?, SIGIR 1998,
    doi:10.1145/290941.291014.

    Examples
    --------
    >>> runs = {"one": {"q1": ["d1", "d2"], "q2": ["d3"]}, "two": {"q1": ["d2", "d1"], "q2": ["d4"]}}
    >>> found = reusability({"q1": {"d1": 1}, "q2": {"d4": 1, "d5": 1}}, runs, depth=2, measure="P@1")
    >>> found.table[["system", "unique_relevant", "mean", "mean_without"]]
      system  unique_relevant  mean  mean_without
    0    one                0   0.5           0.5
    1    two                1   0.5           0.0
    """
    by_run = groups or {run: run for run in runs}
    named = {str(run): str(group) for run, group in by_run.items()}
    of = pd.Series({str(run): named[chosen("run with a group", str(run), named)] for run in runs})
    judged = as_qrels(qrels).to_frame().set_index(["qid", "docid"])["relevance"]
    codes, names = pd.factorize(of)
    found_by = pool(runs, depth=depth).table.set_index(["qid", "docid"])["found_by"]
    finders = found_by.map(lambda names: {of[name] for name in names})
    owner = finders[finders.str.len() == 1].map(min).reindex(judged.index)
    # A document without its label is not judged. It stays, so that a query that loses all its
    # labels still counts.
    sets = {EVERY: judged}
    for group in names:
        sets[f"without {group}"] = judged.where(owner != group, NOT_JUDGED)
    _, effect = _effect(pd.DataFrame(sets), EVERY, runs, measure, options)
    table = pd.DataFrame({"judgments": "without " + of, "group": of, "system": of.index})
    for name, documents in (("unique", owner), ("unique_relevant", owner[judged >= RELEVANT])):
        table[name] = of.map(documents.value_counts()).fillna(0).astype(int)
    rows = np.arange(len(of))
    for name, frame in (("mean", effect.means), ("rank", effect.order.ranks)):
        table[name] = frame.iloc[:, 0]
        table[f"{name}_without"] = frame.to_numpy()[rows, codes + 1]
    table = table.merge(effect.table, on="judgments").drop(columns="judgments")
    unseen = (
        "runs that are alike find the same documents: this says nothing of systems of another kind"
    )
    unique = (
        f"unique documents are those that one group alone has in its first {depth} ranks; {unseen}"
    )
    return Reusability(table, effect.pairs, effect.order, (*effect.notes, unique), effect.caption)


def _graded(judgments: Any) -> tuple[pd.DataFrame, list[str]]:
    """Return the grades of documents (rows) by judges and joint judgments (columns), and notes."""
    every = Labels.of(judgments).table().rename(columns=str)
    unfit = every.shape[1] < 2 or every.columns.isin([UNION, INTERSECTION]).any()
    expected = f"expected two judges or more, none called {UNION} or {INTERSECTION}"
    refuse((unfit, f"found {few(list(every))}; {expected}"))
    by_all = every.notna().groupby(level="qid").transform("any").all(axis=1)
    grades, out = every[by_all], every.index[~by_all].unique("qid")
    common = grades.index.unique("qid").tolist()
    shared = f"the judges have {count(len(common), 'query')} in common"
    refuse((len(common) < 2, f"{shared}; a comparison takes 2 or more"))
    partly = int(grades.isna().any(axis=1).sum())
    notes = []
    if len(out):
        notes.append(f"{count(len(out), 'query')} left out: not all judges judged them")
    if partly:
        some = f"{partly:,} of {count(len(grades), 'document')} are judged by some judges only"
        reading = "the others' missing labels count as not relevant, which is not a disagreement"
        notes.append(f"{some}; {reading}: let all judges judge all (overlap=1)")
    both = {UNION: grades.max(axis=1), INTERSECTION: grades.fillna(NOT_JUDGED).min(axis=1)}
    return grades.assign(**both), notes


def _effect(
    sets: pd.DataFrame, truth: str, runs: Mapping[str, Any], measure: Any, options: Any
) -> tuple[pd.DataFrame, JudgmentEffect]:
    """Return scores with columns (judgments, system, measure), and the comparisons by set.

    A column of the sets has the grades of one set of judgments, nan for a document without one.
    """
    require(isinstance(runs, Mapping) and runs, "runs", runs, "runs by name")
    parts, loaded = {}, {str(name): as_run(run) for name, run in runs.items()}
    for name, grades in sets.items():
        qrels = Qrels.from_frame(grades.dropna().rename("relevance").reset_index())
        for system, run in loaded.items():
            parts[name, system] = evaluate(qrels, run, measures=[measure]).per_query
    scores = pd.concat(parts, axis=1, join="inner")
    by_system = {system: {name: scores[name][system] for name in sets} for system in loaded}
    order = order_agreement(by_system, truth=truth)
    compared, tables = {}, {}
    for name in sets:
        systems = {system: parts[name] for system, parts in by_system.items()}
        result = compared[name] = compare(systems, **options)
        tables[name] = result.table[COLUMNS].assign(shown=result.shown)
    pairs = pd.concat(tables, names=["judgments"]).reset_index("judgments")
    others = pairs[pairs["judgments"] != truth]
    pairs = others.merge(tables[truth], on=COLUMNS[:2], suffixes=("", "_by_truth"))
    was, now = pairs.pop("shown_by_truth"), pairs.pop("shown")
    turned = pairs["difference_by_truth"] * pairs["difference"] < 0
    cases = [was & now & ~turned, was & ~now, now & ~was, was & now]
    pairs["fate"] = np.select(cases, FATES, "open")
    fates = pd.crosstab(pairs["judgments"], pairs["fate"])
    fates = fates.reindex(columns=FATES, fill_value=0).astype("Int64")
    table = order.table[["b", "tau_b", "tau_ap", "swaps"]].rename(columns={"b": "judgments"})
    described = f"{count(len(runs), 'system')} by {scores.columns[0][2]}; true: {truth}"
    caption = f"{compared[truth].caption}. {described}"
    return scores, JudgmentEffect(
        table.join(fates, on="judgments"), pairs, order, order.notes, caption
    )


def _draws(
    scores: pd.DataFrame, truth: str, n_draws: int, rng: np.random.Generator
) -> pd.DataFrame:
    """Return the agreement with the truth of orders by a judge drawn for each query."""
    judges = scores.columns.unique(0).difference([UNION, INTERSECTION], sort=False)
    chosen_judge = rng.integers(len(judges), size=(n_draws, len(scores)))
    by_judge = np.stack([scores[judge].to_numpy() for judge in judges])
    means = by_judge[chosen_judge, np.arange(len(scores))].mean(axis=1)
    gains = direction(scores.columns[0][2]).sign * np.vstack([scores[truth].mean(), means])
    systems = scores[truth].columns.get_level_values(0)
    orders = pd.DataFrame(gains.T, systems, [truth, *range(n_draws)])
    taus = order_agreement(orders, truth=truth).table[["tau_b", "tau_ap", "swaps"]]
    return taus.assign(mean=means.mean(axis=1))
