"""Comparison: the table of differences, with everything that is needed to believe it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import pandas as pd

from rankeval._arguments import explained
from rankeval._checks import refuse
from rankeval._display import Displayed, View
from rankeval._visible import escaping
from rankeval.collection.data import RankingData
from rankeval.comparison.derived import (
    best_system,
    effects_of,
    has_scores,
    posteriors_of,
    rank_table,
)
from rankeval.comparison.dominance import tradeoff_figure, tradeoff_table
from rankeval.comparison.figures import drawn
from rankeval.comparison.headline import headline
from rankeval.comparison.record import Choice, ComparisonRecord, best_first, kept, main_measure
from rankeval.comparison.saved import PLACE, REMEDY, from_json, to_json
from rankeval.comparison.seeds import seed_table, seed_tables
from rankeval.comparison.shelved import NUMBERS, comparison_record, systems_of
from rankeval.comparison.tables import laid_out, printed, unjudged_tables
from rankeval.errors import InvalidInput
from rankeval.render.tables import Table
from rankeval.shelf.record import Record
from rankeval.significance.declarations import Rng
from rankeval.tracking import LoggedData

if TYPE_CHECKING:
    from matplotlib.figure import Figure

QUICK = 20_000
"""Scores by query up to which a repr names the value of the best choice unless it is known."""


@explained
@escaping
@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Displayed, ComparisonRecord):
    """The differences between systems, with the test, its settings and notes for the reader.

    Printed, it has the mean of each system, its difference, the adjusted interval and p, and
    won/tied/lost. ``table`` and the tables for papers have all columns.

    Attributes
    ----------
    table : DataFrame of shape (n_measures * n_pairs, 18)
        A row per measure and pair. Columns: measure, baseline, system, n_queries, mean_baseline,
        mean_system, difference, ci_low and ci_high (an interval of this pair alone, which belongs
        to p_value), p_value, p_adjusted, ci_low_adjusted and ci_high_adjusted (an interval that is
        valid together with those of the family and belongs to p_adjusted; nan for corrections
        that have none, such as Benjamini and Hochberg's), effect_size (Cohen's d_z: mean over
        standard deviation of the differences, with the sign of ``difference``), wins, ties and
        losses (queries on which the system is better, equal up to a relative 1e-12, or worse; if it
        is not known which values of a column are better: greater, equal or less),
        detectable_difference (found with 80 % power by this test and claim at the family's level,
        which for Bonferroni, Holm, max-T and Tukey is alpha divided by the size of the family; nan
        for tests whose power is not that of Student's t: those of ranks and signs, and the liberal
        bootstraps; infinite if so few queries can show nothing). Comparisons over several
        collections or slices have one more first column, ``collection`` or the name of the
        attribute, and rows for each and, first, for "all"; p-values and intervals are nan for parts
        with fewer than 5 queries and, unless a claim counts unseen queries, for parts in which no
        score differs; these are in no family. Other rows of systems that are equal on every query
        have p 1 and no interval (nan). With ``groups=``, n_queries is a number of groups, and all but
        wins, ties and losses is of the means of groups; ``effects`` too. With weights, effect_size
        is by the effective number of queries, and detectable_difference by the degrees of freedom.
    evaluations : mapping of str to Evaluation or DataFrame
        The compared systems, or collection -> scores for each; empty after `from_json`.
    settings : ComparisonSettings
        The arguments of `rankeval.compare` by their names there, ``by``, ``groups`` and
        ``unpaired`` aside, and what follows from them: ``n_comparisons``, ``primary``, ``grouped``,
        the name of the first column if there are rows for collections or slices, and with groups
        their noun as ``unit``, ``member`` ("query") and ``n_members``, and ``n_effective``, the
        effective number of weighted queries.
    alpha : float
        The level of the tests; the intervals have the level 1 - alpha.
    shown : Series of bool
        A mask of the rows of ``table``: True where the claim is shown, confirmatory and with an
        adjusted p of at most alpha.
    caption : str
        The settings in one line: test, number of queries, family, level, seed.
    notes : tuple of str
        Sentences that a reader of the numbers must see.
    interaction : DataFrame or None
        The test that a difference is the same in all collections or slices with 5 queries or more;
        None without two of these. A row per measure and pair; columns: measure, baseline, system,
        statistic (Welch's), p_value (from permuted labels), p_adjusted (Holm). Look at it before
        the rows of the parts: where it shows nothing, these may differ by chance.
    means : DataFrame or None
        What a plan of the guard opened: the mean of each system by each measure, with Student's
        interval. Columns: measure, system, n_queries, mean, ci_low, ci_high. A plan of one system
        has this alone, and an empty ``table``. None for other comparisons.
    bounds : DataFrame or None
        What unjudged documents could change, over all queries; None if the scores do not know their
        documents (frames, folds). A row per measure and pair; columns: measure, baseline, system;
        judged_baseline and judged_system (the share of the documents within the cut-off that is
        judged, the mean over queries); shares_differ (True if the shares differ by more than .05,
        and a paired t test over queries shows it at .0001 for all rows together); difference (as in
        ``table``, unjudged documents being not relevant); all_relevant (the difference if all of
        them had the greatest grade of the collection, and counted in the ideal list); lower and
        upper (the least and the greatest difference if all of a system's had this grade, or none);
        is_bound (True if the difference lies between these whatever the unjudged documents are;
        False for nDCG, AP and others that divide by what could be found, for which they are
        extremes). Measures by aspect are left out. It is also None if weights follow the variance.
    condensed : DataFrame or None
        The same comparisons as in ``table`` without unjudged documents, if ``unjudged="skip"``
        asked for them; without measures by aspect.
    standing : str
        How far the result can be believed, if the guard opened it: "confirmatory", "first look of
        this project", "exploratory" or "secondary", when it was opened. "" without a guard. Notes,
        reports and tags have two words: a first look and a secondary view are "exploratory" there,
        and the sentence behind it says why.
    opening : dict or None
        The facts on the opening, if the guard opened it: looks (of the project up to this plan),
        later, elsewhere, looks_added (by the call that opened it), project, test, plan, ledger,
        head.

    Examples
    --------
    >>> import pandas as pd
    >>> import rankeval as rk
    >>> bm25 = pd.DataFrame({"AP": [0.2, 0.4, 0.6]}, index=["q1", "q2", "q3"])
    >>> compared = rk.compare({"bm25": bm25, "ltr": bm25**0.5}, baseline="bm25")
    >>> print(compared.caption)
    Paired t test over 3 queries; Holm over 1 comparison; 95 % intervals
    """

    @property
    def headline(self) -> str:
        """The result in a few sentences that say no more than the table.

        They name the system with the largest gain among those shown, with its adjusted interval,
        and say what was shown about the others, and whether the two largest means differ reliably.
        If nothing is shown, they say so, and give the row that is nearest to the claim. If
        the shares of judged documents differ, they say this too.

        Examples
        --------
        >>> import pandas as pd
        >>> import rankeval as rk
        >>> old = pd.DataFrame({"AP": [0.2, 0.4, 0.6, 0.3]}, index=["q1", "q2", "q3", "q4"])
        >>> new = old.assign(AP=old["AP"] + [0.1, 0.1, 0.11, 0.12])
        >>> print(rk.compare({"old": old, "new": new}, baseline="old").headline)
        new beats old by +0.1075 AP [95% interval +0.0923 to +0.1227], on 4 queries, p = 0.0002.
        """
        return headline(self)

    @property
    def findings(self) -> tuple[str, ...]:
        """The headline, and beside it the value of choosing the `best`, if it is one of several and has an interval."""
        choice = self._choice
        baseline = self.settings.baseline
        # If the baseline is best, nothing is chosen over it; the choice of one of a pair is its headline.
        is_chosen = baseline not in [*best_first(self)][:1]
        least = 2 if baseline is None else 1
        if choice and choice.n_candidates > least and choice.has_interval and is_chosen:
            return self.headline, choice.words
        return (self.headline,)

    @property
    def _choice(self) -> Choice | None:
        """The best system, as far as it is known which one is."""
        known = has_scores(self) and self.settings.direction(main_measure(self)).sign
        return self.best if known else kept(self).choice

    @cached_property
    def best(self) -> Choice:
        """The system with the best mean by the primary or first measure, and the value of choosing by the best mean.

        The largest of several means is too large, because luck helped to choose it. The estimate
        credits each system only with queries that did not choose it, so it is the value of the
        procedure, which chooses other systems on other queries. With systems of very unlike
        variance it differs from the named system's own gain: it is lower if noisy systems are worse
        in truth, since they would often be chosen. The interval is valid for the system chosen; its
        end on the worse side is stretched where necessary to include the estimate. See
        ``rankeval.significance.multiple``. With one candidate it is the plain difference with
        Student's interval.

        Computed when it is first asked for, from the scores of every query; `to_json` keeps it.

        Raises
        ------
        InvalidInput
            If there are no scores per query: the comparison is one of folds, or lost its
            evaluations. If it is not known which values of the column are better.

        Examples
        --------
        >>> import pandas as pd
        >>> import rankeval as rk
        >>> old = pd.DataFrame({"AP": [0.2, 0.4, 0.6, 0.3]}, index=["q1", "q2", "q3", "q4"])
        >>> compared = rk.compare({"old": old, "new": old + 0.1, "newer": old + 0.2}, baseline="old")
        >>> compared.best.system, round(compared.best.estimate, 12), compared.best.n_candidates
        ('newer', 0.2, 2)
        """
        return best_system(self, main_measure(self))

    @property
    def effects(self) -> pd.DataFrame:
        """The sizes of the differences, a row per row of ``table``; a positive size means that the system is better.

        Columns: measure, baseline, system; cohens_d (mean over standard deviation of the gains)
        with d_low and d_high (its interval at level 1 - alpha, exact for normal differences; nan if
        all gains are the same number); hedges_g (cohens_d without its bias on few queries; nan on
        two); cliffs_delta (over all pairs of a score of the system and one of the baseline, -1 to
        1: paired or not makes no difference to it); superiority (share of queries won, ties
        counting half, 0 to 1). In both, scores within a relative 1e-12 of each other are ties, so
        that rounding wins nothing. Over folds, all are those of fold means, and the interval is
        that of the corrected t.

        Returns
        -------
        DataFrame
            Of shape (n_measures * n_pairs, 9). Less is better by some measures, such as ARP: there
            a lower mean has a positive size, where ``table`` keeps the sign of the difference. If
            it is not known which values of a column are better, a greater mean has a positive size.

        Raises
        ------
        InvalidInput
            If the comparison is over queries and was read from JSON, which has no scores by query,
            or if queries are weighted.

        Examples
        --------
        >>> import pandas as pd
        >>> import rankeval as rk
        >>> bm25 = pd.DataFrame({"AP": [0.2, 0.4, 0.6]}, index=["q1", "q2", "q3"])
        >>> ltr = pd.DataFrame({"AP": [0.3, 0.5, 0.5]}, index=["q1", "q2", "q3"])
        >>> row = rk.compare({"bm25": bm25, "ltr": ltr}, baseline="bm25").effects.iloc[0]
        >>> print(f"{row.cohens_d:.2f} [{row.d_low:.2f}, {row.d_high:.2f}], {row.superiority:.2f} of the queries")
        0.29 [-0.90, 1.42], 0.67 of the queries
        """
        return effects_of(self)

    @property
    def seeds(self) -> pd.DataFrame | None:
        """The differences with the variance over seeds beside that over queries, a row per row of ``table``.

        Columns: measure, baseline, system; difference; seeds_baseline and seeds_system (numbers of
        seeds, 1 if none are known), sd_baseline and sd_system (standard deviation over seeds of the
        mean); se_queries and se_seeds (standard errors of the difference); reach_seeds (the largest
        difference that seeds alone make, at level 1 - alpha); df (Satterthwaite's), ci_low, ci_high
        and p_value over queries and seeds. The p-value is two-sided and for a difference, even if
        the comparison has another claim or test. It is not corrected for several comparisons.

        The p-values of ``table`` are over queries alone: they apply to these seeds. The seeds of
        two systems are treated as independent.

        Returns
        -------
        DataFrame or None
            Without the rows of slices. None if no system has seeds, as those of
            `rankeval.cross_validate` with ``seeds=``; for weighted queries, several collections and folds; and
            after `from_json`, since JSON has no scores.

        Notes
        -----
        The variance is var_queries / n + var_seeds_A / S_A + var_seeds_B / S_B: crossed random
        effects (Brennan, Generalizability Theory, 2001; Miller, arXiv:2411.00640, 2024; Bouthillier
        et al., arXiv:2103.03098, 2021).

        Examples
        --------
        >>> import rankeval as rk
        >>> from sklearn.tree import DecisionTreeRegressor as Tree
        >>> data = rk.datasets.make_ranking(30, rng=0)
        >>> trees = {f"{n} features": Tree(max_features=n) for n in (1, 2)}
        >>> compared = rk.cross_validate(trees, data, measures="AP", seeds=3).compare(question="models")
        >>> compared.seeds[["seeds_baseline", "seeds_system"]].values.tolist()
        [[3, 3]]
        """
        return seed_table(self)

    def bayes(
        self, *, rope: float, method: str = "t", n_samples: int = 50_000, rng: Rng = 0
    ) -> pd.DataFrame:
        """Return the probabilities that each system is worse, about equal and better.

        These are not p-values. They are probabilities under an assumed prior, given the scores, and
        are not corrected for the number of comparisons.

        Parameters
        ----------
        rope : float
            The region of practical equivalence: the largest gain or loss that does not matter, in
            the units of the measure, chosen before you see the scores. It is the same for all
            measures compared. With 0, nothing is equivalent.
        method : {"t", "signed_rank"}, default "t"
            "t": the Bayesian correlated t test, about the mean gain, over queries or folds.
            "signed_rank": the Bayesian signed rank test, about the gain on a typical query.
        n_samples : int, default 50000
            Draws from the posterior, for "signed_rank".
        rng : int, Generator or None, default 0
            Seed of the draws.

        Returns
        -------
        DataFrame
            measure, baseline, system, p_worse, p_equivalent, p_better: a row per row of ``table``,
            in which the three add up to 1. p_better is the probability that the gain is larger than
            the rope, a lower mean being a gain if less is better by the measure.

        Raises
        ------
        InvalidInput
            If the rope is negative, if the signed rank test is requested for folds, if it is not known
            which values of a column are better, or as in `effects`.
        UnknownName
            If there is no such method.

        Examples
        --------
        >>> import pandas as pd
        >>> import rankeval as rk
        >>> bm25 = pd.DataFrame({"AP": [0.2, 0.4, 0.6]}, index=["q1", "q2", "q3"])
        >>> ltr = pd.DataFrame({"AP": [0.3, 0.7, 0.8]}, index=["q1", "q2", "q3"])
        >>> print(rk.compare({"bm25": bm25, "ltr": ltr}, baseline="bm25").bayes(rope=0.05).round(3).to_string())
          measure baseline system  p_worse  p_equivalent  p_better
        0      AP     bm25    ltr    0.025         0.036     0.939
        """
        return posteriors_of(self, rope, method=method, n_samples=n_samples, rng=rng)

    @property
    def ranks(self) -> pd.DataFrame:
        """The rank of each system by each measure, with the range of ranks that the comparisons leave.

        A row per measure and system, the best first. Columns: measure; system; mean; rank (of the
        mean; tied systems share the best of their ranks); rank_low, 1 + the number of systems shown
        better; rank_high, the number of systems - the number shown worse; share_first, the share of
        resamples over queries in which the system has the best mean.

        The ranges are valid for all systems of a family at once: each true rank lies in its range
        if no pair is shown wrongly. The chance of a pair shown wrongly is alpha or less, as nearly
        as test and correction keep their level. ``share_first`` describes the sample. It is not the
        probability of being the best: of equal systems, the one that led by chance may have a share
        near 1. It is nan if there are no scores by query (after `from_json`, and for folds), and
        for comparisons over several collections or slices, whose ranks have their column first.

        Raises
        ------
        InvalidInput
            If there is a baseline, the claim is not a two-sided difference, the correction does not
            control the chance of any false claim, or it is not known which values of a column are
            better.

        Examples
        --------
        >>> import pandas as pd
        >>> import rankeval as rk
        >>> scores = {"a": [0.1, 0.2] * 4, "b": [0.5, 0.6] * 4, "c": [0.6, 0.5] * 4}
        >>> systems = {name: pd.DataFrame({"AP": values}) for name, values in scores.items()}
        >>> compared = rk.compare(systems, correction="max_t")
        >>> compared.ranks[["system", "rank", "rank_low", "rank_high"]]
          system  rank  rank_low  rank_high
        0      b     1         1          2
        1      c     1         1          2
        2      a     3         3          3
        """
        return rank_table(self)

    def tradeoff(
        self, x: str, y: str, *, baseline: str | None = None, margin: float = 0.0
    ) -> pd.DataFrame:
        """Return the differences by two measures with their joint regions, and which systems are dominated.

        A system is dominated if another one is shown better by ``x``, and by ``y`` shown better
        too or, with a margin, not worse. The p-value of a pair is the larger of its two one-sided
        ones, by the test of the comparison, and Holm corrects over all ordered pairs of systems.
        With few queries, no system is shown to be dominated.

        Parameters
        ----------
        x, y : str
            Two measures of the comparison. Less may be better by either.
        baseline : str, optional
            The system that differences are from; by default that of the comparison. It may be
            dominated itself.
        margin : float, default 0
            The loss of ``y`` that does not matter, in its units; choose it before you see the
            scores. With 0 a system that is equal by ``y`` dominates nothing. A margin also counts
            one query that nobody saw, as ``claim="not_worse"`` of `rankeval.compare` does.

        Returns
        -------
        DataFrame
            A row for each system, the baseline included. Columns: system; difference_x and
            difference_y, from the baseline; low_x, low_y, high_x and high_y, the ends of the joint
            region; correlation (of the two differences over queries); p_dominated (the smallest
            adjusted p against any other system); dominated_by (this other system, "" if nothing is
            shown). The region is an ellipse by Hotelling's T2, at level 1 - alpha for all systems
            together by Bonferroni; ends and correlation are nan if all queries have the same
            difference. ``attrs["caption"]`` has these settings. If a guard opened the comparison
            with one primary measure, or the result is exploratory, nothing is called dominated, and
            p_dominated is nan.

        Raises
        ------
        InvalidInput
            If the comparison has no baseline and none is given; a measure does not say whether more
            is better; there are fewer than 3 queries, or no scores by query; or the comparison is
            of folds or of several collections.
        UnknownName
            If there is no such measure or system.

        References
        ----------
        Hotelling (1931), The generalization of Student's ratio, doi:10.1214/aoms/1177732979;
        Berger (1982), doi:10.1080/00401706.1982.10487790.

        Examples
        --------
        >>> import pandas as pd
        >>> import rankeval as rk
        >>> old = pd.DataFrame({"AP": [0.2, 0.4, 0.6, 0.3], "RR": [0.5, 0.8, 0.5, 0.7]})
        >>> new = pd.DataFrame({"AP": [0.3, 0.5, 0.72, 0.41], "RR": [0.6, 1.0, 0.6, 0.8]})
        >>> compared = rk.compare({"old": old, "new": new}, baseline="old")
        >>> compared.tradeoff("AP", "RR")["dominated_by"].tolist()
        ['new', '']
        """
        return tradeoff_table(self, x, y, baseline=baseline, margin=margin)

    def to_latex(
        self,
        *,
        layout: str = "comparisons",
        against: str | Sequence[str] | None = None,
        spread: str | None = None,
        gain: bool = False,
        digits: int | None = None,
        label: str = "",
    ) -> str:
        r"""Return a LaTeX table; it needs ``\usepackage{booktabs}``.

        Parameters
        ----------
        layout : {"comparisons", "systems"}, default "comparisons"
            "comparisons" has a row per comparison with all its figures; its interval is the
            adjusted one, if the correction has any. "systems" has a row per system and a column per
            measure or collection, as papers do: means, the best in bold, of three systems or more
            the second underlined, and marks of the claims shown. Against one system, stars show the
            level: alpha, .01 and .001 by the adjusted p; an arrow in front of them says that the
            system is worse. If all pairs were compared, a mean carries the letters of the systems
            that it is shown better than. If one measure is primary, the others get no marks.
        against : str or sequence of str, optional
            If all pairs were compared, the systems that marks refer to; one of them gives stars,
            several give letters. The adjusted p stays that of all pairs.
        spread : {"se", "interval"}, optional
            Behind each mean, its standard error or its interval by Student's t. Both are of one
            system alone.
        gain : bool, default False
            Show the gain in percent of the baseline's mean too. Whether such ratios mean anything
            is disputed, and a low baseline makes them large.
        digits : int, optional
            Decimals. By default as many as give the largest standard error of a column two digits:
            that of the paired differences, or the spread that ``spread`` names.
        label : str, optional
            Name for ``\ref``.

        Returns
        -------
        str
            A ``table`` environment, with caption and notes above the table.

        Raises
        ------
        InvalidInput
            If an argument does not fit the layout, there is no single baseline for a gain, there
            are no scores by query for a spread, or LaTeX cannot take the label.
        UnknownName
            If there is no such layout, spread or system.

        Examples
        --------
        >>> import pandas as pd
        >>> import rankeval as rk
        >>> bm25 = pd.DataFrame({"AP": [0.2, 0.4, 0.6]}, index=["q1", "q2", "q3"])
        >>> compared = rk.compare({"bm25": bm25, "ltr": bm25**0.5}, baseline="bm25")
        >>> print("\n".join(compared.to_latex(layout="systems", label="tab:ap").splitlines()[3:11]))
        \label{tab:ap}
        \begin{tabular}{lr}
        \toprule
        system & AP \\
        \midrule
        bm25 & 0.400\phantom{\textsuperscript{*}} \\
        ltr & \textbf{0.618}\textsuperscript{*} \\
        \bottomrule
        """
        return laid_out(
            self, layout, against=against, spread=spread, gain=gain, digits=digits
        ).to_latex(label=label)

    def to_markdown(
        self,
        *,
        layout: str = "comparisons",
        against: str | Sequence[str] | None = None,
        spread: str | None = None,
        gain: bool = False,
        digits: int | None = None,
    ) -> str:
        r"""Return a Markdown table.

        Parameters
        ----------
        layout, against, spread, gain, digits
            As in `to_latex`.

        Raises
        ------
        InvalidInput
            As `to_latex`.
        UnknownName
            As `to_latex`.

        Examples
        --------
        >>> import pandas as pd
        >>> import rankeval as rk
        >>> bm25 = pd.DataFrame({"AP": [0.2, 0.4, 0.6]}, index=["q1", "q2", "q3"])
        >>> compared = rk.compare({"bm25": bm25, "ltr": bm25**0.5}, baseline="bm25")
        >>> print(compared.to_markdown(layout="systems").splitlines()[5])
        | ltr | **0.618**<sup>\*</sup> |
        """
        return laid_out(
            self, layout, against=against, spread=spread, gain=gain, digits=digits
        ).to_markdown()

    def to_html(
        self,
        *,
        layout: str = "comparisons",
        against: str | Sequence[str] | None = None,
        spread: str | None = None,
        gain: bool = False,
        digits: int | None = None,
    ) -> str:
        """Return an HTML table in one ``div``.

        Parameters
        ----------
        layout, against, spread, gain, digits
            As in `to_latex`.

        Raises
        ------
        InvalidInput
            As `to_latex`.
        UnknownName
            As `to_latex`.

        Examples
        --------
        >>> import pandas as pd
        >>> import rankeval as rk
        >>> bm25 = pd.DataFrame({"AP": [0.2, 0.4, 0.6]}, index=["q1", "q2", "q3"])
        >>> compared = rk.compare({"bm25": bm25, "ltr": bm25**0.5}, baseline="bm25")
        >>> '<span class="best">0.618</span>' in compared.to_html(layout="systems")
        True
        """
        return laid_out(
            self, layout, against=against, spread=spread, gain=gain, digits=digits
        ).to_html()

    def plot(
        self,
        kind: str | None = None,
        *,
        system: str | None = None,
        baseline: str | None = None,
        measure: str | None = None,
        x: str | None = None,
        y: str | None = None,
        margin: float = 0.0,
    ) -> Figure:
        """Draw the comparison.

        Parameters
        ----------
        kind : {"intervals", "forest", "matrix", "ranks", "queries", "tradeoff"}, optional
            "intervals": all differences with their intervals, a thick line for the pair alone and a
            thin one for the adjusted interval. "forest": the differences on each collection or
            slice, and on all as a diamond; the intervals are the adjusted ones, if the correction
            has any. "matrix": which system is shown better than which, if all pairs were compared.
            "ranks": the ranks that each system may have, see `ranks`. "queries": the differences of
            one system query by query. "tradeoff": the differences by two measures with their joint
            regions, see `tradeoff`; hollow points are dominated. By default "queries" if a system
            is given, "forest" if there are several collections or slices, and otherwise
            "intervals".
        system : str, optional
            Draw this system only.
        baseline : str, optional
            The other system; by default the comparison's baseline.
        measure : str, optional
            Draw this measure only. Matrix, ranks and queries show one: by default the primary or
            the first one.
        x, y, margin
            The measures of a trade-off and the loss of ``y`` that does not matter, as in
            `tradeoff`.

        Returns
        -------
        Figure
            Not registered with pyplot. A colour marks claims that are shown, by the adjusted p. In
            "intervals", a row whose claim is not shown has a shaded band: differences in it are too
            small for this number of queries to detect reliably. A legend explains the marks.

        Raises
        ------
        InvalidInput
            If the kind does not fit the comparison: a matrix of comparisons with one baseline, a
            forest of one collection, or queries without a baseline.
        UnknownName
            If there is no such kind, measure, or system.

        Examples
        --------
        >>> import pandas as pd
        >>> import rankeval as rk
        >>> bm25 = pd.DataFrame({"AP": [0.2, 0.4, 0.6]}, index=["q1", "q2", "q3"])
        >>> figure = rk.compare({"bm25": bm25, "ltr": bm25**0.5, "best": bm25**0.1}).plot("matrix")
        >>> [text.get_text() for text in figure.axes[0].get_xticklabels()]
        ['best', 'ltr', 'bm25']
        """
        is_tradeoff = kind == "tradeoff"
        every = 'kind="tradeoff" shows all systems by two measures'
        refuse(
            (is_tradeoff and (system or measure), every, "leave out system= and measure="),
            (is_tradeoff and not (x and y), every, "give x= and y="),
            (not is_tradeoff and (x or y), 'x= and y= are measures of kind="tradeoff"'),
        )
        if is_tradeoff:
            return tradeoff_figure(self, str(x), str(y), baseline=baseline, margin=margin)
        return drawn(self, kind, system=system, baseline=baseline, measure=measure)

    def to_json(self) -> str:
        """Return headline, table, settings and `best` as JSON, from which `from_json` reads numbers to the last bit.

        Returns
        -------
        str
            Without the evaluations. ``rankeval compare --format json`` prints it. The columns of
            the table are lists; numbers that are not finite are the words "nan", "inf" and "-inf".
        """
        return to_json(self, self.headline, self._choice)

    @classmethod
    def from_json(cls, text: str) -> Comparison:
        """Return the comparison that `to_json` wrote, without its evaluations.

        Parameters
        ----------
        text : str
            The output of `to_json`. Its headline is not read, since it follows from the numbers.

        Raises
        ------
        InvalidInput
            If the text is something else, or a value is not of the kind that its key has.

        Examples
        --------
        >>> import pandas as pd
        >>> import rankeval as rk
        >>> bm25 = pd.DataFrame({"AP": [0.2, 0.4, 0.6]}, index=["q1", "q2", "q3"])
        >>> compared = rk.compare({"bm25": bm25, "ltr": bm25**0.5}, baseline="bm25")
        >>> rk.Comparison.from_json(compared.to_json()).table.equals(compared.table)
        True
        """
        compared = cls(evaluations={}, **from_json(text))
        try:
            _ = compared.headline
        except (LookupError, TypeError, ValueError) as error:
            raise InvalidInput(
                f"{PLACE}: its rows do not belong together", remedy=REMEDY
            ) from error
        return compared

    def record(
        self, *, role: str | None = None, data: LoggedData | RankingData | str | None = None
    ) -> Record:
        """Return the comparison in plain values, from which folders, runs and pages are made.

        Parameters
        ----------
        role : str, optional
            The role of the data. By default "test" if a guard opened the comparison, otherwise
            "dev".
        data : LoggedData, RankingData or str, optional
            The data set, or its name. The digests of the judgments identify it in any case.

        Returns
        -------
        Record
            ``metrics`` are the differences of one pair, with their adjusted intervals and p-values.
            Systems that were compared as frames have no evaluations in it.

        Raises
        ------
        InvalidInput
            If the role is not a plain word, or the data set has another role.
        """
        shown = replace(printed(self), caption=f"{' '.join(self.findings)} {printed(self).caption}")
        text = "\n\n".join(table.to_markdown() for table in [shown, *self._tables[1:]])
        return comparison_record(self, self.to_json(), self.headline, text, role, data)

    @classmethod
    def from_record(cls, record: Record) -> Comparison:
        """Return the comparison of a record, the same numbers bit for bit, with its evaluations."""
        return replace(
            cls.from_json(record.files[NUMBERS].decode()), evaluations=systems_of(record)
        )

    def _view(self) -> View:
        # The value of the choice takes seconds for many scores, and a repr may not.
        n_scores = self.table["n_queries"].sum()
        is_quick = "best" in vars(self) or n_scores <= QUICK or not has_scores(self)
        return View(self.findings if is_quick else (self.headline,), self._tables)

    @property
    def _tables(self) -> list[Table]:
        return [printed(self), *seed_tables(self), *unjudged_tables(self)]
