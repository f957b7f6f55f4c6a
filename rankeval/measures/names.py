"""From a name to a measure: our grammar, other tools' names, and names of several measures.

A name is read in this order, and the first that fits counts:

1. ``P(rel=2)@5``: the name of a family, with all that it must be given. So a canonical name always
   parses back.
2. ``ndcg_cut_10``, ``mrr@10``, ``MAP(rel=2)``: another tool's name (see below). If tools mean
   different things by it (``rbp``, ``11pt_avg``), the convention decides, or it is refused with the
   choices.
3. The name of a family in other capitals, or with a parameter left open that a convention gives.

The trap: ``P`` and ``recall`` are trec_eval's for nine cut-offs, and ours or ranx's for one
measure. `measures` expands such a name under a convention of trec_eval, `measure` refuses it.

Other tools' names for our measures: one table, made from the templates that the families declare.

A template is a name with ``{parameter}`` where a value stands. The table files it under the text
before its first placeholder::

    family  tool         template                   filed under               gives
    AP      trec_eval    map                        map                       AP
    nDCG    trec_eval    ndcg_cut_{cutoff}          ndcg_cut_, ndcg_cut.      nDCG@10
    nDCG    trec_eval    ndcg_{gain}                ndcg_, ndcg.              nDCG(gain={1: 3.5})
    F       ir_measures  SetF(beta={beta:squared})  SetF(beta=                F(beta=2)

for ``map``, ``ndcg_cut_10`` or ``ndcg_cut.10``, ``ndcg_1=3.5`` and ``SetF(beta=4)``.

The pattern of a template is compiled only for a name that begins with its text:
``measure("nDCG@10")`` compiles none. ir_measures writes parameters in parentheses: behind its
names, the parameters that our families have are understood.

The trap: one name may be filed by several tools with different meanings (``rbp``, ``11pt_avg``), so
a lookup returns every meaning, and the reader lets the convention decide.

The second part is trec_eval's own list of names, in the order in which it prints them: what ``-m``
takes, and which names stand for several measures.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn

from rankeval._arguments import explained
from rankeval._checks import require, shown
from rankeval._registry import unknown
from rankeval.collection.convention import Convention, get_convention
from rankeval.errors import AmbiguousName, InvalidInput, UnknownName
from rankeval.measures.family import FAMILIES, Family, Measure
from rankeval.measures.grammar import Spelling, Written, name_of_key, taken_apart


class LabelledMeasure(NamedTuple):
    """A measure under the name by which it was asked for, which names its column in results."""

    label: str
    measure: Measure


@explained
def measure(spec: str | Measure, convention: str | Convention | None = None) -> Measure:
    """Return the measure of a name, as rankeval or another tool spells it.

    Parameters
    ----------
    spec : str or Measure
        Such as ``"nDCG@10"``, ``"P(rel=2)@5"``, ``"ndcg_cut_10"``, ``"MAP"``. A measure is returned
        as it is.
    convention : str or Convention, optional
        Decides names by which tools mean different things, such as ``"iprec_at_recall_0.10"``.

    Returns
    -------
    Measure
        A frozen value: hashable, picklable, equal by value.

    Raises
    ------
    UnknownName
        If nothing has that name. The message names near misses.
    AmbiguousName
        If the name means several measures and no convention decides. The message names the choices.
    InvalidInput
        If a parameter is missing or cannot have its value.

    Examples
    --------
    >>> measure("ndcg_cut_10") == measure("NDCG@10") == measure("nDCG@10")
    True
    >>> str(measure("p( rel=2 )@5"))
    'P(rel=2)@5'
    """
    if isinstance(spec, Measure):
        return spec
    labelled = _read(spec, None if convention is None else get_convention(convention))
    if len(labelled) > 1:
        labels = ", ".join(label for label, _ in labelled[:2])
        more = " ..." if len(labelled) > 2 else ""
        raise AmbiguousName(
            f"{spec!r} means several measures ({labels}{more}): name one, or give it to measures=, "
            "which takes them all"
        )
    return labelled[0].measure


@explained
def measures(
    specs: str | Measure | LabelledMeasure | Iterable[str | Measure | LabelledMeasure],
    convention: str | Convention | None = None,
) -> list[LabelledMeasure]:
    """Return each requested measure once, with the name by which it was requested.

    A function that takes ``measures=`` calls this once and hands the result on: measures that are
    already read pass through with their names.

    Parameters
    ----------
    specs : str, Measure, LabelledMeasure or iterable of them
        The measures; also trec_eval's names for several, such as ``"official"``, ``"ndcg_cut"`` and
        ``"P.5,10"``.
    convention : str or Convention, optional
        Decides names by which tools mean different things.

    Raises
    ------
    InvalidInput
        If there are none, or two are the same measure.

    Examples
    --------
    >>> [(label, str(one)) for label, one in measures(["ndcg_cut_10", "map"])]
    [('ndcg_cut_10', 'nDCG@10'), ('map', 'AP')]
    """
    names: Sequence[Any]
    if isinstance(specs, (str, Measure, LabelledMeasure)):
        names = [specs]
    else:
        names = list(specs) if isinstance(specs, Iterable) else []
    require(names, "measures", specs, "at least one, such as 'nDCG@10'")
    rules = None if convention is None else get_convention(convention)
    labels: dict[Measure, str] = {}
    for name in names:
        labelled = _read(name, rules)
        for label, value in labelled:
            if value in labels and len(labelled) == 1:
                raise InvalidInput(
                    f"measures: {labels[value]!r} and {label!r} are the same measure; give it once"
                )
            labels.setdefault(value, label)
    return [LabelledMeasure(label, value) for value, label in labels.items()]


def _read(spec: str | Measure | LabelledMeasure, rules: Convention | None) -> list[LabelledMeasure]:
    if isinstance(spec, LabelledMeasure):
        return [spec]
    if isinstance(spec, Measure):
        return [LabelledMeasure(str(spec), spec)]
    if not isinstance(spec, str):
        raise InvalidInput(
            "a measure is named by a string, such as 'nDCG@10'; "
            f"found {type(spec).__name__} {shown(spec)}"
        )
    name = spec.strip()
    own = _canonical(name, taken_apart(name))
    if own and name not in ROOTS:
        return [LabelledMeasure(name, own)]
    several = _several(name, rules)
    try:
        return [LabelledMeasure(label, _chosen(label, rules)) for label in several or [name]]
    except AmbiguousName as error:
        if not several:
            raise
        raise AmbiguousName(
            f"{name!r} means several measures: give convention='trec_eval-9.0.8' or "
            f"'trec_eval-10' (--convention); {error}"
        ) from None


@explained
def measure_from_key(key: str) -> Measure:
    """Return the measure of an MLflow key.

    Parameters
    ----------
    key : str
        A key, as `Measure.key` returns it.

    Returns
    -------
    Measure
        The measure that has this key.

    Raises
    ------
    InvalidInput
        If it is not the key of a measure.

    Examples
    --------
    >>> measure("nDCG(gain='exp')@10").key
    'nDCG__gain.exp_at_10'
    >>> measure_from_key("nDCG__gain.exp_at_10")
    measure("nDCG(gain='exp')@10")
    """
    require(isinstance(key, str), "key", key, "text, such as 'nDCG_at_10'")
    return measure(name_of_key(key))


def meanings(name: str) -> Meanings:
    """Return tool and measure for each way to read a name."""
    written = taken_apart(name)
    if canonical := _canonical(name, written):
        return (("rankeval", canonical),)
    own = FAMILIES.get(written.head) if written else None
    theirs = aliased(name)
    if not theirs and written and "(" in name:
        theirs = with_their_parameters(name, written)
    if theirs and own and own.required and all(value.family is not own for _, value in theirs):
        needed = own.required[0]
        others = "; ".join(filter(None, [_choices(theirs), _choice(_meant(name, spelled=False))]))
        remedy = f"write '{own.name}({needed}=...)'; or {others}, if that is meant"
        raise AmbiguousName(f"{own.name} needs {needed}", argument=needed, remedy=remedy)
    if theirs:
        return theirs
    try:
        return (("rankeval", _ours(name, written)),)
    except InvalidInput as error:
        if error.argument and (meant := _meant(name, spelled=False)):
            remedy = f"{error.remedy}; or {_choice(meant)}, if that is meant"
            raise error.having(remedy=remedy) from None
        raise


def _canonical(name: str, written: Written | None) -> Measure | None:
    """Return the measure of a family's name, unless it lacks a parameter or has a foreign one."""
    own = FAMILIES.get(written.head) if written else None
    if written is None or own is None:
        return None
    named = {*written.parameters, *(["cutoff"] if written.at else [])}
    says_all = bool(written.parameters) or named >= set(own.required)
    return _ours(name, written) if says_all and named <= set(own.defaults) else None


def _ours(name: str, written: Written | None) -> Measure:
    own = family_of(written.head) if written else None
    if written is None or own is None or "." in written.at:
        _refuse(name, written)
    if not written.at:
        return own.with_parameters(**written.parameters)
    if "cutoff" not in own.defaults:
        raise InvalidInput(f"{name!r}: {own.name} has no cut-off", remedy=f"write {own.name!r}")
    if "cutoff" in written.parameters:
        remedy = f"write '@{written.at}' only"
        raise InvalidInput(f"{name!r}: the cut-off is given twice", remedy=remedy)
    return own.with_parameters(**written.parameters, cutoff=int(written.at))


def sized(name: str, collection_size: int | None) -> str:
    """Return a name with the size of the collection, if the measure needs it and it is open."""
    written = taken_apart(name)
    own = family_of(written.head) if written else None
    if collection_size is None or not (written and own):
        return name
    if "collection_size" not in own.required or "collection_size" in written.parameters:
        return name
    parameters = {**written.parameters, "collection_size": collection_size}
    inside = ", ".join(f"{parameter}={value!r}" for parameter, value in parameters.items())
    return f"{own.name}({inside})" + (f"@{written.at}" if written.at else "")


def family_of(head: str) -> Family | None:
    """Return the family of a name in any capitals, or None."""
    if head in FAMILIES:  # most names are, and need no search
        return FAMILIES[head]
    alike = [family for known, family in FAMILIES.items() if known.lower() == head.lower()]
    return alike[0] if len(alike) == 1 else None


def _refuse(name: str, written: Written | None) -> NoReturn:
    _refuse_ranx(name)
    if name.endswith("-") and (ours := [*map(str, _named(name[:-1]))]):
        raise UnknownName(
            f"{name!r}: by XGBoost's '-' a query without a relevant document counts 0",
            remedy=f"write {ours[0]!r} with convention='xgboost' and no_relevant='zero'",
        )
    # A name in our own form may be a slip, whose near misses are shown as they are written.
    is_ours = written is not None and (written.at or not re.search(r"\d", name))
    if meant := _meant(name, spelled=not is_ours or re.match(_BEFORE, name) is not None):
        raise UnknownName(f"unknown measure {name!r}; did you mean {_choice(meant)}?")
    if written is None or "." in written.at:
        raise InvalidInput(
            f"{name!r} is not a measure: write Family(parameter=value)@cutoff, such as 'P(rel=2)@5'"
        )
    if written.head.startswith(PRINTED):
        raise InvalidInput(
            f"{name!r} is printed by trec_eval (--format trec) and is not a measure: leave it out"
        )
    suffix = f"@{written.at}" if written.at else ""
    if written.at or written.parameters:
        for tool, value in aliased(written.head + suffix) or aliased(written.head):
            problem = f"{name!r}: {written.head} is {str(value)!r} here ({tool})"
            raise InvalidInput(problem, remedy="add the rest to that")
    summary = (
        f"there are {len(FAMILIES)} families of measures: see rankeval measures, or "
        "rankeval.list_measures()"
    )
    if _key(re.sub(r"@\d+$|=\d+", "", name)) in _LACKING:
        raise UnknownName(f"unknown measure {name!r}; {summary}")
    # If a family and an alias are spelled alike, suggest the family.
    families = {family.lower() for family in FAMILIES}
    known = [*FAMILIES, *(alias for alias in plain_aliases() if alias.lower() not in families)]

    def as_written(near: str) -> str:
        for rest in (name.removeprefix(written.head), suffix):
            with suppress(InvalidInput):  # one without a cut-off, or with other parameters
                if near == written.head or meanings(near + rest):
                    return near + rest
        return near

    raise unknown("measure", written.head, known, summary=summary, write=as_written)


def _refuse_ranx(name: str) -> None:
    """Refuse a name with ranx' lowest relevant grade, such as ``ndcg-l2@10``, and name ours."""
    match = re.fullmatch(r"(.+)-l(\d+)(@\d+)?|(.+@\d+)-l(\d+)", name)
    if match is None:
        return
    grade = int(match[2] or match[5])
    for _, value in aliased(match[4] or match[1] + (match[3] or "")):
        parameters = dict(value.parameters)
        if parameters.get("gain", "linear") != "linear":
            problem = f"{name!r}: ranx sets grades below {grade} to 0"
            raise UnknownName(problem, remedy=f"do so in the judgments, and write {str(value)!r}")
        if "rel" in value.family.defaults:
            parameters["rel"] = grade
        elif grade > 1:
            parameters["gain"] = dict.fromkeys(range(1, grade), 0)
        else:
            parameters.pop("gain", None)
        ours = str(value.family.with_parameters(**parameters))
        problem = f"{name!r}: ranx' lowest relevant grade is a parameter here, such as {ours!r}"
        raise UnknownName(problem)


_BEFORE = (
    r"(?i)^(?:(?:metric|eval|val|valid|test|cos_sim|cosine|dot|dot_score|euclidean|manhattan|max)"
    r"[-_/ ])+"
)
"""Words that tools put before a name: the part of the data, and the similarity."""

_TOP = r"(?i)[\s:;(,]*\b(top|top_?k|k)\s*=\s*(\d+)"
_BEHIND = r"(?i)(.+?)(?:[\s_:=@.\-/]+(?:at|top_?k?|cut(?:off)?)?[\s_:=@.\-/]*(\d+|[kn])|(\d+))"
"""The cut-off, as ``:top=10``, ``(top_k=10)``, ``_at_10``, ``_10``, ``@k`` and ``10``."""


_LONGEST = 99
"""No tool's name is longer, and the pattern above takes long for thousands of separators."""

_LACKING = {
    "rbo", "cvrecall", "medianrank", "meanrank", "gini", "giniindex", "errtop", "gauc", "coverage",
    "novelty", "hole",
}  # fmt: skip
"""Letters of other tools' measures that are not here: none with a similar name has their values."""


def _named(name: str) -> Iterable[Measure | str]:
    """Return the measures of another tool's name, be it read here or only known."""
    with suppress(InvalidInput):
        return [value for _, value in meanings(name)]
    return _meant(name)


def _choice(meant: Mapping[str, str]) -> str:
    return " or ".join(
        f"{ours!r} ({words})" if words else repr(ours) for ours, words in meant.items()
    )


def _meant(name: str, *, spelled: bool = True) -> dict[str, str]:
    """Return the measures that a name hints at, with words; if ``spelled``, also names read so."""
    text = re.sub(_BEFORE, "", name.strip()[:_LONGEST])
    cut = [] if "@" in text else [(text, "")]
    if match := re.search(_TOP, text):
        is_catboost = match[1].lower() == "top"  # its names mean other things than those of others
        head = text[: match.start()] + text[match.end() :]
        cut = [(head + ":top" * is_catboost, match[2])]
    elif match := re.fullmatch(_BEHIND, text):
        cut.append((match[1], match[2] or match[3]))
    for head, at in cut:
        for heads in _heads(*FAMILIES.values())[: 1 + spelled]:
            known = heads.get(_key(head), ())
            meant = {_written(family, fixed, at): words for family, fixed, words in known}
            meant.pop("", None)
            if meant:
                return meant
    return {}


def _written(family: Family, fixed: Mapping[str, Any], at: str) -> str:
    parameters = dict(fixed)
    if at:
        parameters["cutoff"] = int(at) if at.isdigit() else 10
    try:
        return str(family.with_parameters(**parameters))
    except InvalidInput as error:  # it has no cut-off, or needs a parameter that has no name there
        needs = error.argument in family.required
        return f"{family.name}({error.argument}=...){f'@{at}' if at else ''}" if needs else ""


def _key(text: str) -> str:
    return "".join(filter(str.isalnum, text.lower()))


Heads = dict[str, list[tuple[Family, Mapping[str, Any], str]]]


@lru_cache(maxsize=1)
def _heads(*families: Family) -> tuple[Heads, Heads]:
    """Return letters and digits of names -> measures: those hinted at, and those read."""
    hinted: Heads = {}
    read: Heads = {}
    for family in families:
        read.setdefault(_key(family.name), []).append((family, {}, ""))
        for words, names in family.known_as.items():
            _file(hinted, family, names, words)
        for names in family.spellings.values():
            _file(read, family, names, "")
    return hinted, read


def _file(heads: Heads, family: Family, names: Iterable[str | Spelling], words: str) -> None:
    for name in names:
        head, _, rest = str(name).partition("{")
        if not rest or rest.startswith("cutoff"):
            fixed = name.fixed if isinstance(name, Spelling) else {}
            heads.setdefault(_key(head), []).append((family, fixed, words))


def _chosen(name: str, rules: Convention | None) -> Measure:
    readings = meanings(name)
    every = {value for _, value in readings}
    if len(every) == 1:
        return every.pop()
    if rules is not None:
        of_tool = {value for tool, value in readings if rules.name.startswith(tool)}
        bound = {value for value in every if _is_bound(value, rules)}
        for decided in (of_tool, bound):
            if len(decided) == 1:
                return decided.pop()
    raise AmbiguousName(
        f"{name!r} means different things: write {_choices(readings)}; or give a convention that "
        "decides, such as 'trec_eval-9.0.8'"
    )


def _is_bound(value: Measure, rules: Convention) -> bool:
    bound = rules.bind.get(value.family.name, {})
    parameters = {**dict(value.parameters), **bound}
    return bool(bound) and value == value.family.with_parameters(**parameters)


def _choices(readings: Meanings) -> str:
    return "; ".join(f"{value} ({tool})" for tool, value in readings)


def _several(name: str, rules: Convention | None) -> list[str]:
    """Return the names that a name stands for by trec_eval, [] if it is that of one measure."""
    convention = "" if rules is None else rules.name
    several = names_behind(name, version_10=convention.startswith("trec_eval-10"))
    if name not in ROOTS or not several:
        return several
    of_trec_eval = convention.startswith("trec_eval")
    if name in FAMILIES:  # a canonical name means the same everywhere: plans and reports keep names
        if not of_trec_eval:
            return []
        listed = ",".join(ROOTS[name])
        raise AmbiguousName(
            f"{name!r} means different things: write set_{name} (all retrieved); or {name}_{listed}"
        )
    others = aliased(name)
    if of_trec_eval or not others:
        return several
    if any(convention.startswith(tool) for tool, _ in others):
        return []
    raise AmbiguousName(
        f"{name!r} means different things: write {_choices(others)}; "
        f"{', '.join(several[:2])} ... (trec_eval); or give a convention that decides, such as "
        "'trec_eval-9.0.8'"
    )


Meanings = tuple[tuple[str, Measure], ...]
"""Tool and measure, for each way to read a name."""

_NUMBER = r"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)"


def _root(text: str) -> float:
    require(float(text) >= 0, "beta squared", float(text), "0 or greater")
    return math.sqrt(float(text))


def _gains(text: str) -> dict[int, float]:
    pairs = [pair.split("=") for pair in text.split(",")]
    return {int(level): float(gain) for level, gain in pairs}


def _levels(text: str) -> tuple[float, ...]:
    return tuple(map(float, text.split(",")))


def _decimals(text: str) -> float:
    return float(f"0.{text}")


_VALUES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "cutoff": (r"[0-9]+", int),
    "float": (_NUMBER, float),
    "Levels": (rf"{_NUMBER}(?:,{_NUMBER})*", _levels),
    "str | GainMap": (rf"[0-9]+={_NUMBER}(?:,[0-9]+={_NUMBER})*", _gains),
    "squared": (_NUMBER, _root),
    "decimals": (r"[0-9]+", _decimals),
}
"""The form of a value in a name, and its reader, by its kind or the word behind its colon."""

_THEIRS = {
    "judged_only": "a rule of the convention here: convention=Convention(unjudged='skip') "
    "(--judged-only)",
    "dcg": "the parameter gain here: gain='linear' or gain='exp'",
    "gains": "the parameter gain here: gain={1: 1, 2: 3}, say",
    "relative": "a measure of its own here: RelP",
    "beta": "the square of our beta: write F(beta=...) with its square root",
}
"""Parameters of ir_measures that mean something else here or nothing, and what to write instead."""


class _Alias(NamedTuple):
    """A template: the pattern of its text behind the prefix, and the parameters in it."""

    tool: str
    family: Family
    fixed: Mapping[str, Any]
    pattern: str
    values: Sequence[tuple[str, Callable[[str], Any]]]

    def read(self, rest: str, more: Mapping[str, Any]) -> Measure | None:
        match = re.fullmatch(self.pattern, rest)
        if match is None:
            return None
        values = zip(self.values, match.groups(), strict=True)
        parameters = {name: reader(text) for (name, reader), text in values}
        return self.family.with_parameters(**{**self.fixed, **parameters, **more})


@lru_cache(maxsize=1)
def _table(*families: Family) -> dict[str, list[_Alias]]:
    # A new declaration makes a new table.
    table: dict[str, list[_Alias]] = {}
    for family in families:
        for tool, templates in family.spellings.items():
            for template in templates:
                prefix, *parts = re.split(r"\{(\w+)(?::(\w+))?\}", str(template))
                fixed = template.fixed if isinstance(template, Spelling) else {}
                alias = _Alias(tool, family, fixed, *_values(family, parts))
                table.setdefault(prefix, []).append(alias)
                if tool.startswith("trec_eval") and prefix.endswith("_"):  # -m P.5 prints P_5
                    table.setdefault(f"{prefix[:-1]}.", []).append(alias)
    return table


def _values(family: Family, parts: list[str]) -> tuple[str, list[tuple[str, Callable[[str], Any]]]]:
    """Return the pattern behind a prefix from (parameter, word at its colon, text) in turn."""
    pattern, values = "", []
    for name, word, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        kind = word or family.kinds.get(name, "").removesuffix(" | None")
        form, reader = _VALUES.get(kind, _VALUES["float"])
        values.append((name, reader))
        pattern += f"({form}){re.escape(text)}"
    return pattern, values


def plain_aliases() -> list[str]:
    """Return the names of other tools that hold no value."""
    table = _table(*FAMILIES.values())
    return [text for text, aliases in table.items() if any(not alias.pattern for alias in aliases)]


def aliased(name: str, tool: str = "", more: Mapping[str, Any] | None = None) -> Meanings:
    """Return tool and measure for each tool, or for one, that has such a name."""
    readings = []
    for prefix, aliases in _table(*FAMILIES.values()).items():
        if not name.startswith(prefix):
            continue
        for alias in aliases:
            value = None
            if tool in ("", alias.tool):
                value = alias.read(name.removeprefix(prefix), more or {})
            if value is not None:
                readings.append((alias.tool, value))
    return tuple(readings)


def with_their_parameters(name: str, written: Written) -> Meanings:
    """Read another tool's name with parameters, such as ``MRR(rel=2)@10``."""
    spelling = written.head + (f"@{written.at}" if written.at else "")
    if of_shops := aliased(spelling, "shops", written.parameters):
        return of_shops
    foreign = [parameter for parameter in written.parameters if parameter in _THEIRS]
    ours = {key: value for key, value in written.parameters.items() if key not in _THEIRS}
    readings = aliased(spelling, "ir_measures", ours)
    if readings and foreign:
        raise InvalidInput(f"{name!r}: {foreign[0]} of ir_measures is {_THEIRS[foreign[0]]}")
    return readings


_PREFERENCES = """
prefs_num_prefs_poss prefs_num_prefs_ful prefs_num_prefs_ful_ret prefs_simp prefs_pair prefs_avgjg
prefs_avgjg_Rnonrel prefs_simp_ret prefs_pair_ret prefs_avgjg_ret prefs_avgjg_Rnonrel_ret
prefs_simp_imp prefs_pair_imp prefs_avgjg_imp
"""
_PREFS = tuple(_PREFERENCES.split())
_AVGJG = ("map_avgjg", "P_avgjg", "Rprec_mult_avgjg")
_NAMES = """
runid num_q num_ret num_rel num_rel_ret map gm_map Rprec bpref recip_rank iprec_at_recall P
relstring recall infAP gm_bpref Rprec_mult utility 11pt_avg binG G dcg ideal_dcg ndcg ndcg_rel Rndcg
ndcg_cut map_cut relative_P success set_P set_relative_P set_recall set_map set_F
num_nonrel_judged_ret yaap rbp rbp_resid unj
"""
_WITH_CUTOFFS = ("P", "recall", "ndcg_cut", "map_cut", "relative_P", "P_avgjg")
_CUTOFFS = ("5", "10", "15", "20", "30", "100", "200", "500", "1000")
_MULTIPLES = tuple(f"{place / 5:.2f}" for place in range(1, 11))
_LEVELS = tuple(f"{place / 10:.2f}" for place in range(11))
_DEFAULTS = {
    **dict.fromkeys(_WITH_CUTOFFS, _CUTOFFS),
    **dict.fromkeys(("Rprec_mult", "Rprec_mult_avgjg"), _MULTIPLES),
    "iprec_at_recall": _LEVELS,
    "success": ("1", "5", "10"),
    "unj": ("5", "10", "20"),
}
ROOTS: dict[str, tuple[str, ...]] = {
    name: _DEFAULTS.get(name, ()) for name in (*_NAMES.split(), *_PREFS, *_AVGJG)
}
"""Every name that ``-m`` takes, in the order of the printed lines, and its default parameters.

They are cut-offs, recall levels or multiples of R, each printed on a line of its own; () for a name
with one line.
"""

NEW = ("rbp", "rbp_resid", "unj")
"""Names that version 9 lacks."""

PRINTED = ("runid", "relstring")
"""Lines of trec_eval's output that are not measures."""

_SET = (
    "runid num_q num_ret num_rel num_rel_ret utility set_P set_recall set_relative_P set_map set_F"
)
_NOT_IN_ALL = ("dcg", "ideal_dcg", "yaap", *_PREFS, *_AVGJG)
_ALL = tuple(name for name in ROOTS if name not in _NOT_IN_ALL)

NICKNAMES: dict[str, tuple[str, ...]] = {
    "official": tuple(ROOTS)[:12],
    "set": tuple(_SET.split()),
    "all_trec": _ALL,
    "prefs": ("runid", "num_q", *_PREFS[:6]),
    "all_prefs": ("runid", "num_q", *_PREFS),
    "qrels_jg": ("runid", "num_q", *_AVGJG),
}
"""trec_eval's names for several measures; ``all_trec`` of version 9 lacks the `NEW` ones."""


def names_behind(spec: str, *, version_10: bool) -> list[str]:
    """Return the names that a name of trec_eval stands for, [] if it is that of one measure."""
    if spec in NICKNAMES:
        lacking = PRINTED if version_10 else (*PRINTED, *NEW)
        roots = [root for root in NICKNAMES[spec] if root not in lacking]
        return [name for root in roots for name in (_names_at(root, ROOTS[root]) or [root])]
    if spec in ROOTS:
        return _names_at(spec, ROOTS[spec])
    listed = re.fullmatch(r"(\w+?)[._]([0-9]*\.?[0-9]+(?:\s*,\s*[0-9]*\.?[0-9]+)+)", spec)
    if listed and ROOTS.get(listed[1]):
        return _names_at(listed[1], listed[2].split(","))
    return []


def _names_at(root: str, parameters: Iterable[str]) -> list[str]:
    return [f"{root}_{value.strip()}" for value in parameters]
