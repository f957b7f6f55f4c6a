"""The forms in which a comparison is read: text, Markdown, HTML, LaTeX and figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rankeval.comparison.record import ComparisonRecord
from rankeval.comparison.views.figures import drawn
from rankeval.comparison.views.tables import laid_out

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class ComparisonViews(ComparisonRecord):
    """A record of a comparison that can be printed and drawn."""

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
            "comparisons" has a row per comparison with all its figures; its interval is the adjusted one, if the
            correction has any. "systems" has a row per system and a column per measure or collection, as papers do:
            means, the best in bold, of three systems or more the second underlined, and marks of the claims shown.
            Against one system, stars tell the level: alpha, .01 and .001 by the adjusted p; an arrow in front of them
            says that the system is worse. If all pairs were compared, a mean carries the letters of the systems that it
            is shown better than. If one measure is primary, the others get no marks.
        against : str or sequence of str, optional
            If all pairs were compared, the systems that marks refer to; one of them gives stars, several give letters.
            The adjusted p stays that of all pairs.
        spread : {"se", "interval"}, optional
            Behind each mean, its standard error or its interval by Student's t. Both are of one system alone.
        gain : bool, default False
            Show the gain in percent of the baseline's mean too. Whether such ratios mean anything is disputed, and a
            low baseline makes them large.
        digits : int, optional
            Decimals. By default as many as give the largest standard error of a column two digits: that of the paired
            differences, or that which ``spread`` shows.
        label : str, optional
            Name for ``\ref``.

        Returns
        -------
        str
            A ``table`` environment; caption and notes stand above the table.

        Raises
        ------
        InvalidInput
            If an argument does not fit the layout, there is no single baseline for a gain, there are no scores by query
            for a spread, or LaTeX cannot take the label.
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
        found = laid_out(self, layout, against=against, spread=spread, gain=gain, digits=digits)
        return found.to_latex(label=label)

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
        return laid_out(self, layout, against=against, spread=spread, gain=gain, digits=digits).to_markdown()

    def to_html(
        self,
        *,
        layout: str = "comparisons",
        against: str | Sequence[str] | None = None,
        spread: str | None = None,
        gain: bool = False,
        digits: int | None = None,
    ) -> str:
        """Return an HTML table, which stands alone in one ``div``.

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
        return laid_out(self, layout, against=against, spread=spread, gain=gain, digits=digits).to_html()

    def plot(
        self,
        kind: str | None = None,
        *,
        system: str | None = None,
        baseline: str | None = None,
        measure: str | None = None,
    ) -> Figure:
        """Draw the comparison.

        Parameters
        ----------
        kind : {"intervals", "forest", "matrix", "ranks", "queries"}, optional
            "intervals": all differences with their intervals, a thick line for the pair alone and a thin one for the
            adjusted interval. "forest": the differences on each collection or slice, and on all as a diamond; the
            intervals are the adjusted ones, if the correction has any. "matrix": which system is shown better than
            which, if all pairs were compared. "ranks": the ranks that each system may have, see `ranks`. "queries": the
            differences of one system query by query. By default "queries" if a system is given, else "forest" if there
            are several collections or slices, else "intervals".
        system : str, optional
            Draw this system only.
        baseline : str, optional
            The other system; by default the comparison's baseline.
        measure : str, optional
            Draw this measure only. Matrix, ranks and queries show one: by default the primary or the first one.

        Returns
        -------
        Figure
            Not registered with pyplot. A colour marks claims that are shown, by the adjusted p. In "intervals" a band
            is shaded: differences in it are too small for so many queries to detect reliably.

        Raises
        ------
        InvalidInput
            If the kind does not fit the comparison: a matrix of comparisons with one baseline, a forest of one
            collection, or queries without a baseline.
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
        return drawn(self, kind, system=system, baseline=baseline, measure=measure)
