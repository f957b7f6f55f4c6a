"""The table of measures, and the guide to measures and conventions, from their declarations."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from rankeval._arguments import explained
from rankeval.collection.convention import PRESETS, Convention
from rankeval.measures.family import FAMILIES, Family
from rankeval.measures.grammar import Spelling
from rankeval.measures.names import measure

if TYPE_CHECKING:
    import pandas as pd

TOOLS = ("trec_eval", "ir_measures", "ranx")
"""Tools that have a column of their own; versions of one share it."""

ESCAPES = str.maketrans({character: f"\\{character}" for character in r"\`*_[]<>|"})
OPENING = """\
# Measures and conventions: who uses what

Look up a measure, its names in other programs, or the rules behind a preset. `rankeval measures NAME` prints one
measure. `rankeval measures --format markdown` generates this page from the declarations, and a test compares the two.

The name of a measure is `Family(parameter=value)@cutoff`, such as `nDCG(gain='exp')@10`. You must give parameters that
have no default. Names of other tools work too. If tools use one name for different measures, the convention decides;
without such a convention, the error lists the choices.

A word in braces, such as `{cutoff}`, is a placeholder. The parentheses behind a tool's name for a measure give the
parameters that this name implies. The column `trec_eval` has the names that trec_eval prints. The names for its option
`-m`, with a dot (`P.5`), work too.

Under `ties='expected'`, a value is the mean over all orders of rows with equal scores. The column `ties` shows up to
how many tied rows it is exact. For more tied rows, rankeval draws orders at random, with a seed that depends on the
query's id, and estimates the standard error: `standard_errors(ev)` by query and `aggregate_errors(ev)`, both of
`rankeval.evaluation`.
"""

COLUMNS = (
    "name", "title", "parameters", "formula", "bounds", "aggregate", "greater_is_better", "needs",
    "monotone", "ties", "source", "doi", "description", "spellings",
)  # fmt: skip
"""Columns of `list_measures`."""

HEADS = ("measure", "formula", "parameters", "range", "ties", "source", *TOOLS, "others")


@explained
def list_measures(name: str | None = None) -> pd.DataFrame:
    """Return every declared measure with its documentation, or those that a name is found in.

    Parameters
    ----------
    name : str, optional
        A part of a measure's name, of its title or of its name in another tool, in any capitals; or
        a whole name with a cut-off or parameters, such as "ndcg_cut_10".

    Returns
    -------
    DataFrame of shape (n_measures, 13)
        Index ``name``; columns title, parameters (with their defaults), formula, bounds, aggregate,
        greater_is_better, needs (the judgments that it reads), monotone (the bounds that it has),
        ties (for how many tied rows the mean over their orders is exact), source, doi, description
        and spellings (its names in other tools).

    Raises
    ------
    UnknownName
        If no measure is found.

    Examples
    --------
    >>> list_measures("map_cut").index.tolist()
    ['AP']
    >>> list_measures().loc["gm_AP", "spellings"]
    'trec_eval: gm_map, gm_ap; ir_measures: GMAP'
    """
    import pandas as pd

    families = FAMILIES.values() if name is None else _with_name(name)
    rows = [_documented(family) for family in _sorted(families)]
    return pd.DataFrame(rows, columns=list(COLUMNS)).set_index("name")


def _documented(family: Family) -> dict[str, Any]:
    row = {column: getattr(family, column, None) for column in COLUMNS}
    row["parameters"] = ", ".join(_parameters(family))
    row["description"] = inspect.getdoc(family.kernel) or ""
    row["spellings"] = "; ".join(
        f"{tool}: {', '.join(map(str, names))}" for tool, names in family.spellings.items()
    )
    return row


def _sorted(families: Iterable[Family]) -> list[Family]:
    return sorted(families, key=lambda family: family.name.lower())


def _parameters(family: Family) -> list[str]:
    return [
        name if name in family.required else f"{name}={default!r}"
        for name, default in family.defaults.items()
    ]


def _with_name(name: str) -> list[Family]:
    part = name.lower()
    families = [family for family in FAMILIES.values() if part in _names(family).lower()]
    return families or [measure(name).family]


def _names(family: Family) -> str:
    spellings = (str(name) for names in family.spellings.values() for name in names)
    return "\n".join((family.name, family.title, *spellings))


class RuleAnswer(NamedTuple):
    """An answer to a question that tools answer differently, its name here, and who gives it."""

    question: str
    ours: str
    who: str


_DCG = (
    RuleAnswer(
        "DCG: discount 1 / log2(rank + 1)",
        "DCG",
        "trec_eval, pytrec_eval, scikit-learn, ranx `ndcg`, gdeval",
    ),
    RuleAnswer(
        "DCG: no discount before rank b, then 1 / log_b(rank)",
        "DCG(discount='log_rank')",
        "Järvelin & Kekäläinen 2002, lecture slides; no current tool by default",
    ),
    RuleAnswer(
        "DCG: the grade is the gain", "DCG(gain='linear')", "trec_eval, scikit-learn, ranx `ndcg`"
    ),
    RuleAnswer(
        "DCG: gain 2^rel - 1",
        "DCG(gain='exp')",
        "Burges 2005; gdeval, LightGBM, XGBoost, ranx `ndcg_burges`, trectools by default",
    ),
)
_RANKING = (
    RuleAnswer(
        "Ideal list and R: all judged documents",
        "judgments='qrels'",
        "trec_eval, gdeval, ranx, ir_measures",
    ),
    RuleAnswer(
        "Ideal list and R: the rows that were ranked",
        "judgments='rows'",
        "scikit-learn, LightGBM, XGBoost",
    ),
    RuleAnswer(
        "Ties: mean over their orders", "ties='expected'", "scikit-learn; McSherry & Najork 2008"
    ),
    RuleAnswer("Ties: by document id, descending", "ties='docid'", "trec_eval, gdeval"),
    RuleAnswer(
        "Ties: by row order",
        "ties='stable'",
        "ir_measures' own providers, LightGBM, XGBoost; ranx by quicksort",
    ),
)
_QUERIES = (
    RuleAnswer("No relevant document: 0", "no_relevant='zero'", "scikit-learn, ranx, trec_eval"),
    RuleAnswer(
        "No relevant document: 1",
        "no_relevant='one'",
        "LightGBM; XGBoost unless the metric's name ends in `-`",
    ),
    RuleAnswer("No relevant document: left out", "no_relevant='skip'", "gdeval"),
    RuleAnswer(
        "Query missing from the run: left out",
        "missing='skip'",
        "trec_eval 9 and pytrec_eval without `-c`, gdeval",
    ),
    RuleAnswer(
        "Query missing from the run: an empty ranking",
        "missing='empty'",
        "trec_eval 10 `-c`; rankeval's default",
    ),
    RuleAnswer("Query missing from the run: 0", "missing='zero'", "trec_eval 9 `-c`"),
    RuleAnswer(
        "Query missing from the run: an error", "missing='error'", "trec_eval 10 without `-c`"
    ),
)
_PRECISION = (
    RuleAnswer(
        "AP at k: by all relevant documents",
        "AP@10",
        "trec_eval `map_cut`, ranx, ir_measures, RecTools",
    ),
    RuleAnswer(
        "AP at k: by min(R, k)", "AP(normalizer='min')@10", "Kaggle's mapk, LightGBM, XGBoost"
    ),
    RuleAnswer("AP at k: by k", "AP(normalizer='k')@10", "RecTools `divide_by_k`"),
    RuleAnswer(
        "AP at k: by the hits up to k",
        "AP(normalizer='hits')@10",
        "running averages, lecture slides",
    ),
    RuleAnswer(
        "Interpolated precision: recall as a fraction",
        "IPrec(recall=0.1)",
        "textbooks; rankeval's default",
    ),
    RuleAnswer(
        "Interpolated precision: at int(r R + 0.9) documents",
        "IPrec(recall=0.1, rule='trec_eval-9')",
        "trec_eval 9",
    ),
    RuleAnswer(
        "Interpolated precision: at round(r R) documents",
        "IPrec(recall=0.1, rule='trec_eval-10')",
        "trec_eval 10",
    ),
)
_RANK_BIASED = (
    RuleAnswer(
        "ERR: greatest grade, 4",
        "ERR(max_rel=4)@20",
        "gdeval; some tools take it from the data instead",
    ),
    RuleAnswer("RBP: persistence .8, relevant or not", "RBP(p=0.8)", "ir_measures, trectools"),
    RuleAnswer(
        "RBP: persistence .9, grades by the greatest", "RBP(gain='scaled', p=0.9)", "trec_eval 10"
    ),
    RuleAnswer(
        "RBP: the grade is the gain, even above 1", "RBP(gain='linear', p=0.8)", "ranx `rbp.8`"
    ),
    RuleAnswer(
        "Compatibility: overlap down to rank 1,000",
        "Compat",
        "the program of Clarke, Vtyurina & Smucker",
    ),
    RuleAnswer(
        "Compatibility: overlap down to the end of the longer list",
        "Compat(depth=None)",
        "ir_measures `Compat`",
    ),
)
_SETS = (
    RuleAnswer("Precision beyond the list: by k", "P@10", "trec_eval, ir_measures, ranx"),
    RuleAnswer(
        "Precision of the set: by the number retrieved",
        "P",
        "trec_eval `set_P`, ir_measures `SetP`",
    ),
    RuleAnswer("Pairs in order, relevant before others", "PairAccuracy", "ir_measures `Accuracy`"),
    RuleAnswer(
        "True positives and negatives in the collection",
        "Accuracy(collection_size=1000)",
        "textbooks, lectures",
    ),
)
CHOICES = (*_DCG, *_RANKING, *_QUERIES, *_PRECISION, *_RANK_BIASED, *_SETS)
"""Questions that tools answer differently; an answer is a measure or a rule of a convention."""


def measures_markdown() -> str:
    """Return the guide to every declared measure and preset, in Markdown.

    Returns
    -------
    str
        A table of conventions, one of the questions that tools answer differently, and the measures
        chapter by chapter: formula, parameters, range, how exact the mean over tied rows is,
        source, and other tools' names.
    """
    chapters: dict[str, list[Family]] = {}
    for family in FAMILIES.values():
        chapters.setdefault(_chapter(family), []).append(family)
    answers = _table(
        ("question and answer", "name", "used by"),
        ((c.question, _code(c.ours), c.who) for c in CHOICES),
    )
    parts = [OPENING, "## Conventions\n", _table(*_presets()), "## Where tools differ\n", answers]
    for title, families in sorted(chapters.items()):  # the order of imports means nothing
        parts += [f"## {title}\n", _table(HEADS, map(_row, _sorted(families)))]
    return "\n".join(parts)


def _chapter(family: Family) -> str:
    module = sys.modules.get(family.kernel.__module__)
    return (inspect.getdoc(module) or family.kernel.__module__).partition("\n")[0].removesuffix(".")


def _row(family: Family) -> Iterator[str]:
    yield f"**{_escaped(family.name)}**: {_escaped(family.title)}"
    yield _escaped(family.formula)
    yield ", ".join(map(_code, _parameters(family)))
    yield _range(family)
    yield f"exact up to {_escaped(family.exact_to)}" if family.exact_to else "exact"
    yield (
        f"[{_escaped(family.source)}](https://doi.org/{family.doi})"
        if family.doi
        else _escaped(family.source)
    )
    of_tool: dict[str, list[str]] = {tool: [] for tool in (*TOOLS, "others")}
    for name, spellings in family.spellings.items():
        tool, _, version = name.partition("-")
        if tool in TOOLS:
            of_tool[tool].append((f"{version}: " if version else "") + _spelled(spellings))
        else:
            of_tool["others"].append(f"{_escaped(name)}: {_spelled(spellings)}")
    yield from map("; ".join, of_tool.values())


def _spelled(spellings: Iterable[str | Spelling]) -> str:
    texts = []
    for name in spellings:
        fixed = _values(name.fixed) if isinstance(name, Spelling) else ""
        texts.append(_code(str(name)) + (f" ({_escaped(fixed)})" if fixed else ""))
    return ", ".join(texts)


_AGGREGATES = {"sum": "added up over queries", "gmean": "geometric mean over queries"}


def _range(family: Family) -> str:
    low, high = (_limit(value) for value in family.bounds)
    parts = [f"{low} to {high}"]
    if family.aggregate != "mean":
        parts.append(_AGGREGATES[family.aggregate])
    if not family.greater_is_better:
        parts.append("lower is better")
    return ", ".join(parts)


def _limit(value: float) -> str:
    if math.isinf(value):
        return "-∞" if value < 0 else "∞"
    return f"{value:g}"


def _presets() -> tuple[tuple[str, ...], Iterator[tuple[str, ...]]]:
    rules = ("ties", "judgments", "negative", "missing", "no_relevant", "unjudged", "score_dtype")
    heads = ("preset", *rules, "gain of nDCG", "bound measures")
    return heads, (_preset(preset, rules) for preset in PRESETS.values())


def _preset(preset: Convention, rules: tuple[str, ...]) -> tuple[str, ...]:
    gain = preset.bind.get("nDCG", {}).get("gain", FAMILIES["nDCG"].defaults["gain"])
    others = [
        _code(f"{name}({_values(bound)})")
        for name, bound in preset.bind.items()
        if name not in ("nDCG", "DCG")
    ]
    values = (getattr(preset, rule) for rule in rules)
    return (_code(preset.name), *values, str(gain), ", ".join(others))


def _values(parameters: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in parameters.items())


def _table(heads: tuple[str, ...], rows: Iterable[Iterable[str]]) -> str:
    lines = [heads, ("---",) * len(heads), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _escaped(text: str) -> str:
    return text.translate(ESCAPES)


def _code(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`"
