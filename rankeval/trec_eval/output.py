"""The printed output of trec_eval: a line for each measure and topic, and the summary.

It is that of the program to the byte, but for the five exceptions in
examples/guides/other_programs.md.

The names that trec_eval prints are spellings of our measures, read under the convention. This
module keeps the rest: the lines that there are, their order, and the look of numbers.

The trap: with ``-c`` the versions treat a topic that the run lacks in ways of their own, of which
no other part of the package knows. Version 9 adds 0 to each mean. Version 10 ranks one unjudged
document there, prints the topic, and sets to 0 the measures in which that shows; it finds them by
their names without parameters.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from rankeval._registry import unknown
from rankeval.collection.convention import COUNTED_AS, Convention, get_convention
from rankeval.errors import FileFormatError, InvalidInput, UnknownName
from rankeval.evaluation import Evaluation, Given, score
from rankeval.evaluation.lacking import undefined_notes
from rankeval.evaluation.result import aggregates, faults_of
from rankeval.io.opening import DEFAULT, Limits, number_of, read_text
from rankeval.measures import Measure, measure
from rankeval.measures.family import FAMILIES
from rankeval.measures.incomplete import judged_rows
from rankeval.measures.names import NEW, NICKNAMES, ROOTS

if TYPE_CHECKING:
    from rankeval.collection.qrels import Qrels
    from rankeval.collection.run import Run
    from rankeval.join.joined import Joined

_RELSTRING = 10
_NUM_REL = measure("NumRel")
_COUNTS = ("num_q", "num_ret", "num_rel", "num_rel_ret", "num_nonrel_judged_ret")
_WITHOUT_TOPICS = ("runid", "num_q", "gm_map", "gm_bpref")


MISSING = -1e6
"""The value without a mean or a deviation in the reference, as in trec_eval."""

ZScores = Mapping[tuple[str, str], tuple[float, float]]


@dataclass(frozen=True)
class _Line:
    """A line to print. `measure` is None for runid and relstring; `count` prints a whole number."""

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
    """Return the convention that trec_eval's options ask for."""
    rules = get_convention(convention)
    bind = {name: dict(bound) for name, bound in rules.bind.items()}
    if level != 1:
        for name, family in FAMILIES.items():
            if "rel" in family.defaults and name != "RBP":  # its gains are labels
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
    """Return the rule on topics that the run lacks under ``-c``."""
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
    tell: Callable[[str], None] | None = None,
) -> str:
    """Return the text that trec_eval prints for a run."""
    rules = get_convention(convention)
    lines = _lines(measures, rules)
    joined = Given.of(qrels, run).refuse_or_join(rules, action="evaluate")
    scored = dict.fromkeys([*(line.measure for line in lines if line.measure), _NUM_REL])
    evaluation = score(joined, [(str(measure), measure) for measure in scored], name=run.name)
    if tell:
        undefined = undefined_notes(evaluation, [str(line.measure) for line in lines])
        for note in (*faults_of(evaluation), *undefined):
            tell(note)
    columns = {measure: column for column, measure in enumerate(scored)}
    lacking = [] if joined.lacking is None else joined.queries[joined.lacking].tolist()
    places = np.flatnonzero(np.isin(evaluation.queries, lacking))
    if rules.missing in COUNTED_AS:
        _correct(evaluation, places, lines, columns)
    if zscores is not None:
        plain, names = evaluation.scores, {line.measure: line.name for line in reversed(lines)}
        references = [names.get(measure, "num_q") for measure in scored]
        evaluation = _standardized(evaluation, references, zscores)
        if rules.missing == "zero":  # the 0 that is added for a lacking topic is no score
            evaluation.scores[places] = plain[places]
        lines = [
            replace(line, name=f"Z{line.name:<22}", count=False) if line.measure else line
            for line in lines
        ]
    text: list[str] = []
    if per_query:
        strings = _relevance_strings(joined, lines)
        text += _topic_lines(lines, evaluation, columns, set(places.tolist()), strings)
    if summary:
        text += _summary_lines(lines, evaluation, run)
    return "".join(text)


def read_zscores(
    path: str | os.PathLike[str], *, limits: Limits = DEFAULT
) -> dict[tuple[str, str], tuple[float, float]]:
    """Read a file of reference scores: lines of topic, measure, mean and standard deviation."""
    scores = {}
    for number, line in enumerate(io.BytesIO(read_text(path, limits)), start=1):
        at = f"{path}, line {number}"
        try:
            topic, name, mean, deviation = (cell.decode() for cell in line.split())
        except ValueError as error:  # of the columns or of the encoding
            raise FileFormatError(
                f"expected topic, measure, mean and standard deviation, found {line[:80]!r}",
                where=at,
            ) from error
        if (topic, name) in scores:
            raise FileFormatError(f"{name} of topic {topic!r} occurs twice", where=at)
        level = number_of(mean, f"{at}, mean")
        scores[topic, name] = level, number_of(deviation, f"{at}, standard deviation")
    return scores


def _standardized(evaluation: Evaluation, names: Sequence[str], zscores: ZScores) -> Evaluation:
    """Return an evaluation with every value in standard deviations from the reference's mean.

    If the deviation is 0, a value equal to the mean is 0. Without a reference it is `MISSING`.
    """
    topics = [str(query) for query in evaluation.queries.tolist()]
    values = evaluation.scores.copy()
    for column, name in enumerate(names):
        if name == "num_q":
            continue
        known = [zscores.get((topic, name), (np.nan, 0.0)) for topic in topics]
        mean, deviation = np.array(known, dtype=np.float64).reshape(-1, 2).T
        from_mean = values[:, column] - mean
        level = np.where(from_mean == 0, 0.0, MISSING)
        values[:, column] = np.divide(from_mean, deviation, out=level, where=deviation != 0)
    return replace(evaluation, scores=values)


def _is_version_10(rules: Convention) -> bool:
    return rules.name.startswith("trec_eval-10")


def _lines(specs: Iterable[str], rules: Convention) -> list[_Line]:
    parameters: dict[str, list[str]] = {}
    for spec in specs:
        root, _, listed = spec.partition(".")
        if spec in NICKNAMES:
            for name in NICKNAMES[spec]:
                if name not in NEW or _is_version_10(rules):
                    parameters.setdefault(name, [])
            continue
        if root not in ROOTS:
            _refuse(spec)
        parameters.setdefault(root, []).extend(listed.split(",") if listed else [])
    lines = []
    for root in ROOTS:
        if root in parameters:
            lines += _lines_of(root, parameters[root], rules)
    return lines


def _refuse(spec: str) -> NoReturn:
    head, _, at = spec.partition("@")
    for root in (f"{head.lower()}_cut", head, head.lower()):
        if at and ROOTS.get(root):
            near = f"{root}.{at}"
            raise UnknownName(f"unknown measure of trec_eval {spec!r}; did you mean {near!r}?")
    raise unknown("measure of trec_eval", spec, [*ROOTS, *NICKNAMES])


def _lines_of(root: str, parameters: list[str], rules: Convention) -> list[_Line]:
    if root == "runid":
        return [_Line(root, root)]
    if root == "relstring":
        length = _number(root, parameters[0]) if parameters else _RELSTRING
        return [_Line("_".join((root, *parameters[:1])), root, length=int(length))]
    if not ROOTS[root]:
        text = ",".join(parameters)
        name, spec = (f"{root}_{text}", f"{root}.{text}") if text else (root, root)
        is_count = root in _COUNTS or root.startswith("prefs_num")
        return [_Line(name, root, measure(spec, rules), is_count)]
    numbers = {_number(root, text): text for text in parameters or ROOTS[root]}
    form = ".2f" if "." in ROOTS[root][0] else ".0f"  # shares, or ranks
    return [
        _Line(f"{root}_{number:{form}}", root, measure(f"{root}.{text}", rules))
        for number, text in sorted(numbers.items())
    ]


def _number(root: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(
            f"-m {root}.{text}: expected numbers separated by commas, found {text!r}"
        ) from None


def _correct(
    evaluation: Evaluation,
    lacking: NDArray[np.intp],
    lines: list[_Line],
    columns: Mapping[Measure, int],
) -> None:
    """Put in the values that trec_eval has with ``-c`` for topics that the run lacks."""
    scores, rules = evaluation.scores, evaluation.convention
    relevant = scores[lacking, columns[_NUM_REL]]
    for line in lines:
        if line.measure is None:
            continue
        column = columns[line.measure]
        if not _is_version_10(rules):
            if line.root == "prefs_num_prefs_poss":  # it knows no preferences of these topics
                scores[lacking, column] = 0.0
        elif line.name in ("utility", "rbp_resid"):
            scores[lacking, column] = 0.0
        elif line.root == "utility" and rules.unjudged != "skip":
            utility = evaluation.measures[column]
            price = {**utility.family.defaults, **dict(utility.parameters)}
            left_out = (price["collection_size"] or 0) - 1 - relevant
            scores[lacking, column] = price["b"] + price["c"] * relevant + price["d"] * left_out


def _relevance_strings(joined: Joined, lines: list[_Line]) -> dict[int, list[str]]:
    """Return length -> the labels at the top of each topic's ranking, a character each."""
    lengths = {line.length for line in lines if line.root == "relstring"}
    strings: dict[int, list[str]] = {length: [] for length in lengths}
    if not lengths:
        return strings
    for _, judged, _ in replace(joined, rule_counts={}).chunks():
        levels = judged.levels.tolist()
        known = [">" if level > 9 else str(int(level)) if level >= 0 else "<" for level in levels]
        unknown_marks = ["-" if level >= 0 else "." for level in levels]
        is_judged = judged_rows(judged).astype(int)
        letters = np.array([unknown_marks, known])[is_judged, judged.code]
        begins = judged.offsets[:-1].tolist()
        for length in lengths:
            depths = judged.depth(length).tolist()
            strings[length] += [
                "".join(letters[begin : begin + depth])
                for begin, depth in zip(begins, depths, strict=True)
            ]
    return strings


def _topic_lines(
    lines: list[_Line],
    evaluation: Evaluation,
    columns: Mapping[Measure, int],
    lacking: set[int],
    strings: dict[int, list[str]],
) -> Iterator[str]:
    # One template for all lines of a topic, because there are 100 of them.
    printed = [line for line in lines if line.root not in _WITHOUT_TOPICS]
    forms = [
        "'%s'" if line.measure is None else "%.0f" if line.count else "%6.4f" for line in printed
    ]
    heads = [f"{line.name:<22}".replace("%", "%%") for line in printed]
    template = "".join(f"{head}\t\0\t{form}\n" for head, form in zip(heads, forms, strict=True))
    own_columns = [columns[line.measure] for line in printed if line.measure]
    own_strings = [(at, line) for at, line in enumerate(printed) if line.measure is None]
    names = [str(query) for query in evaluation.queries.tolist()]
    version_10 = _is_version_10(evaluation.convention)
    for place in sorted(range(len(names)), key=lambda place: names[place].encode()):
        if place in lacking and not version_10:
            continue
        values: list[Any] = evaluation.scores[place, own_columns].tolist()
        for at, line in own_strings:  # in ascending order, so that each finds its place
            # As version 10 does.
            ranks_one = place in lacking and evaluation.convention.unjudged != "skip"
            is_short = line.name == "relstring" or not line.length
            values.insert(at, "-" if ranks_one and not is_short else strings[line.length][place])
        yield template.replace("\0", names[place].replace("%", "%%")) % tuple(values)


def _summary_lines(lines: list[_Line], evaluation: Evaluation, run: Run) -> Iterator[str]:
    values = aggregates(evaluation)
    for line in lines:
        if line.root == "runid":
            yield f"{line.name:<22}\tall\t{(run.name or '').partition(' ')[0]}\n"
        elif line.root != "relstring":
            # With -c trec_eval counts again here, over all topics, and then takes every label above
            # 0 for relevant.
            value = values[str(line.measure)]
            if line.root == "num_rel" and evaluation.convention.missing in COUNTED_AS:
                value = evaluation.facts.query_counts["relevant"].sum()
            yield f"{line.name:<22}\tall\t{value:{'.0f' if line.count else '6.4f'}}\n"
