"""What trec_eval prints, to the byte: one line for each measure and topic, and the summary.

The names that trec_eval prints are its spellings of our measures, which are read under the convention; what is kept
here is which lines there are, in which order, and how numbers look. The versions differ in little: 10 prints topics
that the run lacks with ``-c``, and has rbp, rbp_resid and unj in all_trec.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankeval._registry import unknown
from rankeval.collection.convention import COUNTED_AS, Convention, get_convention
from rankeval.errors import InvalidInput
from rankeval.evaluation import Evaluation, Given, score
from rankeval.measures import Measure, measure
from rankeval.measures.aliases import NEW, NICKNAMES, ROOTS
from rankeval.measures.family import FAMILIES
from rankeval.trec_eval.zscores import ZScores, standardized

if TYPE_CHECKING:
    from rankeval.collection.qrels import Qrels
    from rankeval.collection.run import Run
    from rankeval.join.joined import Joined

_RELSTRING = 10
_COUNTS = ("num_q", "num_ret", "num_rel", "num_rel_ret", "num_nonrel_judged_ret")
_WITHOUT_TOPICS = ("runid", "num_q", "gm_map", "gm_bpref")

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _Line:
    """A line to print: the name, and the measure whose value it is; None for runid and relstring."""

    name: str
    root: str
    measure: Measure | None = None
    count: bool = False
    length: int = _RELSTRING


def trec_rules(
    convention: str | Convention,
    *,
    complete: bool = False,
    level: int = 1,
    depth: int | None = None,
    judged_only: bool = False,
    collection_size: int | None = None,
) -> Convention:
    """Return a convention with what trec_eval's options say.

    Parameters
    ----------
    convention : str or Convention
        The preset of the version: ``"trec_eval-9.0.8"`` (2023), ``"trec_eval-9.0.8-float32"`` (2020) or
        ``"trec_eval-10"``.
    complete : bool
        ``-c``: topics that the run lacks count, as 0 in trec_eval 9, as empty rankings everywhere else.
    level : int
        ``-l``: lowest label that is relevant, in measures of documents that are relevant or not.
    depth : int, optional
        ``-M``: documents beyond this rank are cut off.
    judged_only : bool
        ``-J``: unjudged documents are taken out first.
    collection_size : int, optional
        ``-N``: number of documents in the collection.

    Returns
    -------
    Convention
    """
    rules = get_convention(convention)
    bind = {name: dict(bound) for name, bound in rules.bind.items()}
    if level != 1:
        for name, family in FAMILIES.items():
            if "rel" in family.defaults and name != "RBP":  # whose gains are labels
                bind.setdefault(name, {})["rel"] = level
    if collection_size is not None:
        bind.setdefault("Utility", {})["collection_size"] = collection_size
    return rules.with_rules(
        missing=counted_with_c(rules) if complete else None,
        depth=depth,
        unjudged="skip" if judged_only else None,
        bind=bind if bind != rules.bind else None,
    )


def counted_with_c(rules: Convention) -> str:
    """Return what ``-c`` makes of topics that the run lacks: what the version does, and an empty ranking elsewhere.

    Parameters
    ----------
    rules : Convention
        That of a version, or any other.
    """
    return "zero" if rules.name.startswith("trec_eval-9") else "empty"


def trec_text(
    qrels: Qrels,
    run: Run,
    *,
    measures: Iterable[str] = ("official",),
    convention: str | Convention = "trec_eval-9.0.8",
    per_query: bool = False,
    summary: bool = True,
    zscores: ZScores | None = None,
) -> str:
    """Return what trec_eval prints for a run.

    Parameters
    ----------
    qrels : Qrels
        The judgments.
    run : Run
        The ranking.
    measures : iterable of str
        As after ``-m``: ``"official"``, ``"map"``, ``"P.5,10"``.
    convention : str or Convention
        The version, with its options: see `trec_rules`.
    per_query : bool
        ``-q``: lines for every topic.
    summary : bool
        False for ``-n``: no lines for all topics together.
    zscores : mapping, optional
        ``-Z``: scores in standard deviations from a reference, as `read_zscores` reads it.

    Returns
    -------
    str
        Lines of name, topic and value, separated by tabs.

    Raises
    ------
    InvalidInput
        When the files cannot be joined: where trec_eval prints numbers in spite of that, or a message for
        programmers, this says what is wrong.
    UnknownName
        For a measure that trec_eval does not have.
    """
    rules = get_convention(convention)
    lines = _lines(measures, rules)
    joined = Given(qrels, run).refuse_or_join(rules, action="evaluate")
    asked = list(dict.fromkeys([*(line.measure for line in lines if line.measure), measure("NumRel")]))
    evaluation = score(joined, [(str(one), one) for one in asked], name=run.name)
    lacking = _lacking(evaluation, joined)
    if lacking and rules.missing in COUNTED_AS:
        patched = _with_a_document_that_is_none if _is_version_10(rules) else _without_preferences
        evaluation = replace(evaluation, scores=patched(evaluation, lacking, lines))
    if zscores is not None:
        names = {line.measure: line.name for line in reversed(lines)}
        scores = evaluation.scores
        evaluation = standardized(evaluation, [names.get(one, "num_q") for one in asked], zscores)
        if rules.missing == "zero":  # what is added for topics that the run lacks is no score
            evaluation.scores[lacking] = scores[lacking]
        lines = [
            line if line.measure is None else replace(line, name=f"Z{line.name:<22}", count=False) for line in lines
        ]
    text: list[str] = []
    if per_query:
        shown = _shown(evaluation, () if _is_version_10(rules) else lacking)
        strings = _relevance_strings(joined, lines)
        if _is_version_10(rules) and rules.unjudged != "skip":
            for length in (line.length for line in lines if line.root == "relstring" != line.name and line.length):
                for place in lacking:
                    strings[length][place] = "-"
        text += _topic_lines(lines, evaluation, shown, strings)
    if summary:
        text += _summary_lines(lines, evaluation, run)
    return "".join(text)


def _is_version_10(rules: Convention) -> bool:
    return rules.name.startswith("trec_eval-10")


def _lines(specs: Iterable[str], rules: Convention) -> list[_Line]:
    """Return the lines of what was asked for, each once, in trec_eval's order."""
    asked: dict[str, list[str]] = {}
    for spec in specs:
        root, _, given = spec.partition(".")
        if spec in NICKNAMES:
            for one in NICKNAMES[spec]:
                if one not in NEW or _is_version_10(rules):
                    asked.setdefault(one, [])
            continue
        if root not in ROOTS:
            raise unknown("measure of trec_eval", spec, [*ROOTS, *NICKNAMES])
        asked.setdefault(root, []).extend(given.split(",") if given else [])
    return [line for root in ROOTS if root in asked for line in _lines_of(root, asked[root], rules)]


def _lines_of(root: str, given: list[str], rules: Convention) -> list[_Line]:
    if root == "runid":
        return [_Line(root, root)]
    if root == "relstring":
        length = _number(root, given[0]) if given else _RELSTRING
        return [_Line("_".join((root, *given[:1])), root, length=int(length))]
    if not ROOTS[root]:
        text = ",".join(given)
        name, spec = (f"{root}_{text}", f"{root}.{text}") if text else (root, root)
        return [_Line(name, root, measure(spec, rules), root in _COUNTS or root.startswith("prefs_num"))]
    numbers = {_number(root, one): one for one in given or ROOTS[root]}
    return [
        _Line(
            f"{root}_{format(number, '.2f') if '.' in ROOTS[root][0] else int(number)}",  # a share, or a rank
            root,
            measure(f"{root}.{text}", rules),
        )
        for number, text in sorted(numbers.items())
    ]


def _number(root: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"-m {root}.{text}: expected numbers separated by commas, found {text!r}") from None


def _lacking(evaluation: Evaluation, joined: Joined) -> list[int]:
    """Return which topics of an evaluation the run lacks."""
    if joined.lacking is None:
        return []
    lacking = set(joined.queries[joined.lacking].tolist())
    return [place for place, query in enumerate(evaluation.queries.tolist()) if query in lacking]


def _with_a_document_that_is_none(evaluation: Evaluation, lacking: list[int], lines: list[_Line]) -> Floats:
    """Return the values of trec_eval 10 where a run lacks topics.

    It ranks one unjudged document there, so as not to rank none, and afterwards sets to 0 what this shows in: by the
    names that measures have without parameters.
    """
    scores = evaluation.scores.copy()
    relevant = scores[lacking, evaluation.measure_names.index("NumRel")]
    for line in lines:
        if line.name in ("utility", "rbp_resid"):
            scores[lacking, evaluation.measure_names.index(str(line.measure))] = 0.0
        elif line.root == "utility" and evaluation.convention.unjudged != "skip":
            column = evaluation.measure_names.index(str(line.measure))
            one = evaluation.measures[column]
            price = {**one.family.defaults, **dict(one.parameters)}
            left_out = (price["collection_size"] or 0) - 1 - relevant
            scores[lacking, column] = price["b"] + price["c"] * relevant + price["d"] * left_out
    return scores


def _without_preferences(evaluation: Evaluation, lacking: list[int], lines: list[_Line]) -> Floats:
    """Return the values of trec_eval 9, which knows no preferences of topics that the run lacks."""
    scores = evaluation.scores.copy()
    counts = [
        evaluation.measure_names.index(str(line.measure)) for line in lines if line.root == "prefs_num_prefs_poss"
    ]
    scores[np.ix_(lacking, counts)] = 0.0
    return scores


def _shown(evaluation: Evaluation, left_out: Iterable[int]) -> list[int]:
    """Return which topics have lines, in ascending order of their ids as text."""
    names = [str(query) for query in evaluation.queries.tolist()]
    shown = sorted(range(len(names)), key=lambda place: names[place].encode())
    return [place for place in shown if place not in set(left_out)]


def _relevance_strings(joined: Joined, lines: list[_Line]) -> dict[int, list[str]]:
    """Return for each length asked for the labels at the top of every topic's ranking, a character each."""
    lengths = {line.length for line in lines if line.root == "relstring"}
    strings: dict[int, list[str]] = {length: [] for length in lengths}
    if not lengths:
        return strings
    for _, judged, _ in replace(joined, rule_counts={}).chunks():
        known = [">" if level > 9 else str(int(level)) if level >= 0 else "<" for level in judged.levels.tolist()]
        marks = ["-" if level >= 0 else "." for level in judged.levels.tolist()]
        alphabet = np.array([marks, known])
        for length in lengths:
            for begin, depth in zip(judged.offsets[:-1].tolist(), judged.depth(length).tolist(), strict=True):
                rows = slice(begin, begin + depth)
                is_judged = np.ones(depth, dtype=int) if judged.judged is None else judged.judged[rows].astype(int)
                strings[length].append("".join(alphabet[is_judged, judged.code[rows]]))
    return strings


def _topic_lines(
    lines: list[_Line], evaluation: Evaluation, shown: list[int], strings: dict[int, list[str]]
) -> Iterator[str]:
    """Yield the lines of every topic, those of one by one template: there are 100 lines a topic."""
    column = {one: place for place, one in enumerate(evaluation.measure_names)}
    printed = [line for line in lines if line.root not in _WITHOUT_TOPICS]
    forms = ["'%s'" if line.measure is None else "%.0f" if line.count else "%6.4f" for line in printed]
    template = "".join(
        f"{line.name:<22}".replace("%", "%%") + f"\t\0\t{form}\n" for line, form in zip(printed, forms, strict=True)
    )
    places = [column[str(line.measure)] for line in printed if line.measure]
    texts = [(at, strings[line.length]) for at, line in enumerate(printed) if line.measure is None]
    for place in shown:
        values: list[Any] = evaluation.scores[place, places].tolist()
        for at, text in texts:  # in ascending order, so that each finds its place
            values.insert(at, text[place])
        yield template.replace("\0", str(evaluation.queries[place]).replace("%", "%%")) % tuple(values)


def _summary_lines(lines: list[_Line], evaluation: Evaluation, run: Run) -> Iterator[str]:
    """Yield the lines of all topics together."""
    values = evaluation.aggregates()
    for line in lines:
        if line.root == "runid":
            yield f"{line.name:<22}\tall\t{(run.name or '').partition(' ')[0]}\n"
        elif line.root != "relstring":
            # With -c trec_eval counts again here, over all topics, and then takes every label above 0 for relevant.
            recounted = line.root == "num_rel" and evaluation.convention.missing in COUNTED_AS
            value = evaluation.query_counts["relevant"].sum() if recounted else values[str(line.measure)]
            yield f"{line.name:<22}\tall\t{value:.0f}\n" if line.count else f"{line.name:<22}\tall\t{value:6.4f}\n"
