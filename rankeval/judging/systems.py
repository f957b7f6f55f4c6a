"""The effect of judgments on systems: other judges, and a pool without the documents that only one group found.

Both questions are answered alike. The systems are evaluated by the true judgments and by others, each two systems are
compared under both, and each pair has one fate::

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
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from rankeval._checks import check_count, count, few
from rankeval._registry import chosen
from rankeval.collection.convention import Convention
from rankeval.collection.qrels import Qrels, as_qrels
from rankeval.collection.run import Run, as_run
from rankeval.comparison import compare
from rankeval.comparison.ordering import OrderAgreement, order_agreement
from rankeval.comparison.tables import WithTable
from rankeval.errors import InvalidInput
from rankeval.evaluation import evaluate
from rankeval.judging.labels import Labels, by_judge
from rankeval.measures import Measure, direction
from rankeval.render.tables import DASH, Table, number
from rankeval.significance.declarations import Rng

if TYPE_CHECKING:
    from rankeval.render.plots import Figure

FATES = ("kept", "lost", "new", "reversed")
FULL, REDUCED = "full", "reduced"
UNION, INTERSECTION, RANDOM = "union", "intersection", "random judge"
UNSEEN = "runs that are alike find the same documents: this says nothing of a system of another kind"
RELEVANT = 1
"""The lowest grade that is relevant, where sets of relevant documents are compared."""

Scores = dict[str, pd.DataFrame]
"""System -> a frame with a row for each query, and the measure as its only column."""


@dataclass(frozen=True, eq=False)
class Disagreement(WithTable):
    """The order of systems, and the significant pairs, under the judgments of several judges.

    Attributes
    ----------
    table : DataFrame
        A row for each set of judgments but the truth: judgments; mean, of the measure over all systems; overlap, of
        the relevant documents with those of the truth: shared by both / relevant in either, the mean over queries;
        tau_b, tau_ap and swaps as in `rankeval.OrderAgreement`; kept, lost, new and reversed, the pairs of systems with
        that fate. The row of the random judge has means over draws, and no fates.
    pairs : DataFrame
        A row for each of these sets and each pair of systems: judgments, baseline, system; difference_by_truth and
        p_by_truth; difference and p_adjusted; fate, which is "open" if the pair is significant under neither.
    order : OrderAgreement
        The agreement of the orders with that by the truth.
    draws : DataFrame
        A row for each draw of a random judge a query: tau_b, tau_ap, swaps, mean.
    notes : tuple of str
        Sentences that a reader of the numbers must see.
    caption : str
        Systems, measure, truth and test in one line.
    """

    table: pd.DataFrame
    pairs: pd.DataFrame
    order: OrderAgreement
    draws: pd.DataFrame
    notes: tuple[str, ...]
    caption: str

    @property
    def means(self) -> pd.DataFrame:
        """The mean of each system (rows) under each set of judgments (columns)."""
        return self.order.means.droplevel(0, axis=1)

    def plot(self) -> Figure:
        """Draw the rank of each system under each set of judgments."""
        from rankeval.judging.figures import order_under_judges

        return order_under_judges(self)

    def _laid_out(self) -> Table:
        return _shown(self.table, self.caption, self.notes)


@dataclass(frozen=True, eq=False)
class Reusability(WithTable):
    """The scores of systems by judgments to which their group did not contribute.

    Attributes
    ----------
    table : DataFrame
        A row for each run: group, system; unique, the judged documents that only its group put into the pool, and
        unique_relevant, the relevant ones of these; mean and rank by all judgments; mean_without and rank_without, by
        those without the unique documents; kept, lost, new and reversed, the pairs of all systems with that fate.
    pairs : DataFrame
        As in `Disagreement`, with the group that is left out as "group".
    notes : tuple of str
        Sentences that a reader of the numbers must see.
    caption : str
        Systems, measure, depth and test in one line.
    """

    table: pd.DataFrame
    pairs: pd.DataFrame
    notes: tuple[str, ...]
    caption: str

    def plot(self) -> Figure:
        """Draw the mean of each system by all judgments and without its unique documents."""
        from rankeval.judging.figures import means_without

        return means_without(self)

    def _laid_out(self) -> Table:
        return _shown(self.table, self.caption, self.notes)


def disagreement(
    judgments: Any,
    runs: Mapping[str, Any],
    *,
    measure: str | Measure = "nDCG@10",
    truth: str | None = None,
    test: str = "t",
    correction: str = "holm",
    alpha: float = 0.05,
    convention: str | Convention = "rankeval",
    n_draws: int = 100,
    rng: Rng = 0,
) -> Disagreement:
    """Say what the disagreement of judges does to the order of systems and to significant pairs.

    Parameters
    ----------
    judgments : mapping of judge to judgments, or Qrels with the judge as aspect
        At least two judges. Only queries that all of them judged count.
    runs : mapping of str to Run, dict, frame or path
        The systems.
    measure : str or Measure, default "nDCG@10"
        The measure.
    truth : str, optional
        The judge that is taken as right, or "union" or "intersection"; by default the first judge.
    test, correction, alpha
        As in `rankeval.compare`, for all pairs of systems under each set of judgments.
    convention : str or Convention
        As in `rankeval.evaluate`.
    n_draws : int, default 100
        How often a random judge is drawn for each query.
    rng : int, Generator or None, default 0
        Seed of the draws.

    Returns
    -------
    Disagreement
        The judgments are those of each judge; the union, where a document has the highest of its grades; the
        intersection, where it has the lowest, and -1 (pooled and not judged) if a judge left it out; and a judge drawn
        at random for each query.

    Raises
    ------
    InvalidInput
        If there are fewer than two judges, systems, or queries that all judges judged, or a judge is called like one
        of the other sets.
    UnknownName
        If there is no such truth, measure, test or correction.

    Notes
    -----
    Among systems of very different quality tau is high whoever judges. The pairs say more: Voorhees, Variations in
    relevance judgments and the measurement of retrieval effectiveness, IPM 36, 2000, doi:10.1016/S0306-4573(00)00010-8.

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
    grades, judges, notes = _graded(judgments)
    truth = judges[0] if truth is None else chosen("set of judgments", truth, list(grades))
    sets = [truth, *grades.columns.drop(truth)]
    loaded = {str(name): as_run(run) for name, run in runs.items()}
    evaluated = {name: _scores(grades[name].dropna(), loaded, measure, convention) for name in sets}
    scores, left_out = _on_shared_queries(evaluated)
    pairs = _pairs(scores, alpha, test=test, correction=correction, rng=rng).rename(columns={"other": "judgments"})
    order = order_agreement(_by_system(scores), truth=truth)
    draws = _draws([scores[name] for name in judges], scores[truth], n_draws, np.random.default_rng(rng))
    table = order.table[["b", "tau_b", "tau_ap", "swaps"]].rename(columns={"b": "judgments"})
    table.insert(1, "mean", order.means.mean().to_numpy()[1:])
    table.insert(2, "overlap", [_overlap(grades[truth], grades[name]) for name in sets[1:]])
    table = table.join(_counted(pairs, "judgments"), on="judgments")
    table = pd.concat([table, pd.DataFrame([{"judgments": RANDOM, **draws.mean()}])], ignore_index=True)
    least = f"{RANDOM}: the means of {count(n_draws, 'draw')}; the least tau_b is {draws['tau_b'].min():.3f}"
    caption = _caption(order, scores[truth], f"truth: {truth}", test, correction, alpha)
    return Disagreement(table, pairs, order, draws, (*notes, *left_out, *order.notes, least), caption)


def reusability(
    qrels: Any,
    runs: Mapping[str, Any],
    *,
    depth: int,
    groups: Mapping[str, Any] | None = None,
    measure: str | Measure = "nDCG@10",
    test: str = "t",
    correction: str = "holm",
    alpha: float = 0.05,
    convention: str | Convention = "rankeval",
    rng: Rng = 0,
) -> Reusability:
    """Say whether judgments would be fair to systems that did not contribute to the pool.

    Leave one group out: its runs are scored without the judged documents that only they put into the pool, as if the
    group had come later (Zobel 1998).

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
    measure, test, correction, alpha, convention, rng
        As in `disagreement`.

    Returns
    -------
    Reusability
        A row for each run.

    Raises
    ------
    InvalidInput
        If a run has no group, there are fewer than two runs, or the depth is no whole number from 1 on.
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
    loaded = {str(name): as_run(run) for name, run in runs.items()}
    group_of = {name: name for name in loaded} if groups is None else {str(name): str(groups[name]) for name in groups}
    if strangers := [name for name in loaded if name not in group_of]:
        raise InvalidInput(f"no group is named for {few(strangers)}", argument="groups", remedy="name one for each run")
    judged = as_qrels(qrels).to_frame().set_index(["qid", "docid"])["relevance"]
    owner = _owners(loaded, depth, group_of).reindex(judged.index)
    complete = _scores(judged, loaded, measure, convention)
    rows, pairs, notes = [], [], [UNSEEN]
    for group in dict.fromkeys(group_of[name] for name in loaded):
        unique = (owner == group).to_numpy()
        reduced = _scores(judged[~unique], loaded, measure, convention) if unique.any() else complete
        scores, left_out = _on_shared_queries({FULL: complete, REDUCED: reduced})
        order = order_agreement(_by_system(scores), truth=FULL)
        found = _pairs(scores, alpha, test=test, correction=correction, rng=rng)
        pairs.append(found.assign(other=group).rename(columns={"other": "group"}))
        means, ranks = order.means.droplevel(0, axis=1), order.ranks.droplevel(0, axis=1)
        row = {"group": group, "system": means.index, "unique": unique.sum()}
        row |= {"unique_relevant": (judged[unique] >= RELEVANT).sum(), "mean": means[FULL], "rank": ranks[FULL]}
        row |= {"mean_without": means[REDUCED], "rank_without": ranks[REDUCED]}
        rows.append(pd.DataFrame(row)[[group_of[name] == group for name in loaded]])
        notes += [f"without {group}: {note}" for note in (*left_out, *order.notes)]
    fates = pd.concat(pairs, ignore_index=True)
    table = pd.concat(rows, ignore_index=True).join(_counted(fates, "group"), on="group")
    caption = _caption(order, scores[FULL], f"pool of depth {depth}", test, correction, alpha)
    return Reusability(table, fates, tuple(notes), caption)


def _graded(judgments: Any) -> tuple[pd.DataFrame, list[str], list[str]]:
    """Return a row for each document and a column for each set of judgments, the names of the judges, and notes."""
    judged = {str(judge): qrels for judge, qrels in by_judge(judgments).items()}
    judges = list(judged)
    if len(judges) < 2 or {UNION, INTERSECTION, RANDOM} & judged.keys():
        expected = f"two judges or more, none called {UNION}, {INTERSECTION} or {RANDOM}"
        raise InvalidInput(argument="judgments", found=few(judges), expected=expected)
    labels = Labels.of(judged)
    table = np.full((len(labels.items), len(labels.judges)), np.nan)
    table[labels.item, labels.judge] = labels.grades[labels.grade]
    index = pd.MultiIndex.from_frame(labels.items[["qid", "docid"]])
    grades = pd.DataFrame(table, index, list(labels.judges)).reindex(columns=judges)
    by_all = grades.notna().groupby(level="qid").any().all(axis=1)
    grades = grades[by_all.loc[grades.index.get_level_values("qid")].to_numpy()]
    notes = [] if by_all.all() else [f"{count(int((~by_all).sum()), 'query')} left out: not all judges judged them"]
    if partly := int(grades.isna().any(axis=1).sum()):
        shares = f"{partly:,} of {count(len(grades), 'document')} are judged by some judges only"
        notes.append(f"{shares}: the {UNION} has them, and the {INTERSECTION} has them as pooled and not judged")
    both = {UNION: grades.max(axis=1), INTERSECTION: grades.fillna(-1).min(axis=1)}
    return grades.assign(**both), judges, notes


def _scores(grades: pd.Series[Any], runs: Mapping[str, Run], measure: Any, convention: Any) -> Scores:
    qrels = Qrels.from_frame(grades.rename("relevance").reset_index())
    how = {"measures": [measure], "convention": convention}
    return {name: evaluate(qrels, run, **how).per_query for name, run in runs.items()}


def _on_shared_queries(scores: Mapping[str, Scores]) -> tuple[dict[str, Scores], list[str]]:
    """Keep the queries that each system has a score for by all judgments; rules may leave out some."""
    found = [frame.index for part in scores.values() for frame in part.values()]
    shared, every = reduce(pd.Index.intersection, found), reduce(pd.Index.union, found)
    kept = {name: {system: frame.loc[shared] for system, frame in part.items()} for name, part in scores.items()}
    lacking = len(every) - len(shared)
    return kept, [f"{count(lacking, 'query')} left out: not all are scored by all judgments"] if lacking else []


def _by_system(scores: Mapping[str, Scores]) -> dict[str, Scores]:
    systems = next(iter(scores.values()))
    return {system: {name: part[system] for name, part in scores.items()} for system in systems}


def _pairs(scores: Mapping[str, Scores], alpha: float, **how: Any) -> pd.DataFrame:
    """Compare all pairs of systems under each set of judgments, and say what became of those of the first set."""
    truth, *others = ((name, compare(part, alpha=alpha, **how).table) for name, part in scores.items())
    old, found = truth[1], []
    for name, new in others:
        row = old[["baseline", "system"]].assign(
            other=name,
            difference_by_truth=old["difference"],
            p_by_truth=old["p_adjusted"],
            difference=new["difference"],
            p_adjusted=new["p_adjusted"],
        )
        was, now = row["p_by_truth"] <= alpha, row["p_adjusted"] <= alpha
        turned = row["difference_by_truth"] * row["difference"] < 0
        fates = [was & now & ~turned, was & ~now, now & ~was, was & now & turned]
        found.append(row.assign(fate=np.select(fates, FATES, "open")))
    return pd.concat(found, ignore_index=True)


def _counted(pairs: pd.DataFrame, by: str) -> pd.DataFrame:
    return pd.crosstab(pairs[by], pairs["fate"]).reindex(columns=list(FATES), fill_value=0).astype("Int64")


def _draws(judges: list[Scores], truth: Scores, n_draws: int, rng: np.random.Generator) -> pd.DataFrame:
    """Agree with the truth by a random judge a query: the scores of a query are those by its judge."""
    by_truth, *by_judges = (np.concatenate([*map(np.asarray, part.values())], axis=1) for part in (truth, *judges))
    n = len(by_truth)
    means = np.stack(by_judges)[rng.integers(len(judges), size=(n_draws, n)), np.arange(n)].mean(axis=1)
    gains = direction(next(iter(truth.values())).columns[0]) * np.vstack([by_truth.mean(axis=0), means])
    orders = pd.DataFrame(gains.T, list(truth), [RANDOM, *range(n_draws)])
    agreed = order_agreement(orders, truth=RANDOM).table[["tau_b", "tau_ap", "swaps"]]
    return agreed.assign(mean=means.mean(axis=1))


def _overlap(one: pd.Series[float], other: pd.Series[float]) -> float:
    """Return the mean over queries of the relevant documents in both sets / in either."""
    first, second = one >= RELEVANT, other >= RELEVANT
    shared, either = (np.asarray(part.groupby(level="qid").sum()) for part in (first & second, first | second))
    return float(np.mean(shared[either > 0] / either[either > 0]))


def _owners(runs: Mapping[str, Run], depth: int, group_of: Mapping[str, str]) -> pd.Series[str]:
    """Return the only group whose runs put a document into the pool, by query and document."""
    parts = []
    for name, run in runs.items():
        top = run.to_frame().sort_values(["qid", "score", "docid"], ascending=[True, False, False])
        parts.append(top.groupby("qid").head(depth)[["qid", "docid"]].assign(group=group_of[name]))
    found = pd.concat(parts).drop_duplicates()
    return found[~found.duplicated(["qid", "docid"], keep=False)].set_index(["qid", "docid"])["group"]


def _caption(order: OrderAgreement, scores: Scores, about: str, *test: Any) -> str:
    size, measure = next(iter(scores.values())).shape[0], order.means.columns[0][0]
    what = f"{count(len(scores), 'system')} by {measure} over {count(size, 'query')}; {about}"
    return f"{what}; significant pairs: {', '.join(map(str, test))}"


def _shown(table: pd.DataFrame, caption: str, notes: tuple[str, ...]) -> Table:
    short = dict.fromkeys(["overlap", "tau b", "tau ap"], partial(number, digits=3)) | {"swaps": "g"}
    shown = table.rename(columns=lambda name: name.replace("_", " "))
    whole: dict[str, Any] = dict.fromkeys(FATES, lambda n: DASH if n is pd.NA else str(n))
    return Table(shown, short | whole, caption=caption, notes=notes)
