"""Other tools' names for our measures: one table, made from the templates that the families declare.

A template is a name with ``{parameter}`` where a value stands. The table files it under the text before its first
placeholder::

    family  tool         template                   filed under               gives
    AP      trec_eval    map                        map                       AP
    nDCG    trec_eval    ndcg_cut_{cutoff}          ndcg_cut_ and ndcg_cut.   nDCG@10 for ndcg_cut_10 and ndcg_cut.10
    nDCG    trec_eval    ndcg_{gain}                ndcg_ and ndcg.           nDCG(gain={1: 3.5}) for ndcg_1=3.5
    F       ir_measures  SetF(beta={beta:squared})  SetF(beta=                F(beta=2) for SetF(beta=4)

The pattern of a template is compiled only for a name that begins with its text: ``measure("nDCG@10")`` compiles none.
ir_measures writes parameters in parentheses: behind its names, the parameters that our families have are understood.

The trap: one name may be filed by several tools with different meanings (``rbp``, ``11pt_avg``), so a lookup returns
every meaning, and `rankeval.measures.names` lets the convention decide.

The second part is trec_eval's own list of names, in the order in which it prints them: what ``-m`` takes, and which
names stand for several measures.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from rankeval.errors import InvalidInput
from rankeval.measures.family import FAMILIES, Family, Measure
from rankeval.measures.grammar import Spelling, Written

Meanings = tuple[tuple[str, Measure], ...]
"""Tool and measure, for each way to read a name."""

_NUMBER = r"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)"


def _root(text: str) -> float:
    if float(text) < 0:
        raise InvalidInput(f"beta squared is {text}; expected 0 or greater")
    return math.sqrt(float(text))


def _gains(text: str) -> dict[int, float]:
    return {int(level): float(gain) for level, gain in (pair.split("=") for pair in text.split(","))}


_VALUES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "cutoff": (r"[0-9]+", int),
    "float": (_NUMBER, float),
    "tuple[float, ...]": (rf"{_NUMBER}(?:,{_NUMBER})*", lambda text: tuple(map(float, text.split(",")))),
    "str | GainMap": (rf"[0-9]+={_NUMBER}(?:,[0-9]+={_NUMBER})*", _gains),
    "squared": (_NUMBER, _root),
    "decimals": (r"[0-9]+", lambda text: float(f"0.{text}")),
}
"""How a value stands in a name and is read: by the kind of its parameter, or by the word behind its colon."""

_THEIRS = {
    "judged_only": "a rule of the convention here: convention=Convention(unjudged='skip') (--judged-only)",
    "dcg": "the parameter gain here: gain='linear' or gain='exp'",
    "gains": "the parameter gain here: gain={1: 1, 2: 3}, say",
    "relative": "a measure of its own here: RelP",
    "beta": "the square of our beta: write F(beta=...) with its square root",
}
"""Parameters of ir_measures that mean something else here or nothing, and how to write them instead."""


class _Alias(NamedTuple):
    """A template: the pattern of its text behind the prefix, and the parameters whose values it holds."""

    tool: str
    family: Family
    fixed: Mapping[str, Any]
    pattern: str
    values: Sequence[tuple[str, Callable[[str], Any]]]

    def read(self, rest: str, more: Mapping[str, Any]) -> Measure | None:
        match = re.fullmatch(self.pattern, rest)
        if match is None:
            return None
        given = {name: how(text) for (name, how), text in zip(self.values, match.groups(), strict=True)}
        return self.family.with_parameters(**{**self.fixed, **given, **more})


@lru_cache(maxsize=1)
def _table(*families: Family) -> dict[str, list[_Alias]]:
    """Return the aliases by the text before their first placeholder; a new declaration makes a new table."""
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
    """Return the pattern of a template behind its prefix, from (parameter, word behind its colon, text) in turn."""
    pattern, values = "", []
    for name, word, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        kind = word or family.kinds.get(name, "").removesuffix(" | None")
        shape, how = _VALUES.get(kind, _VALUES["float"])
        values.append((name, how))
        pattern += f"({shape}){re.escape(text)}"
    return pattern, values


def plain_aliases() -> list[str]:
    """Return the names of other tools that hold no value."""
    return [text for text, aliases in _table(*FAMILIES.values()).items() if any(not one.pattern for one in aliases)]


def aliased(name: str, tool: str = "", more: Mapping[str, Any] | None = None) -> Meanings:
    """Return tool and measure for each tool, or for one, that has such a name.

    Parameters
    ----------
    name : str
        Such as ``"ndcg_cut_10"``.
    tool : str
        The only tool that counts; "" for all.
    more : mapping of str to value, optional
        Parameters beside those that the name gives.

    Raises
    ------
    InvalidInput
        If a tool has such a name with a value that the measure cannot have.
    """
    return tuple(
        (alias.tool, one)
        for prefix, aliases in _table(*FAMILIES.values()).items()
        if name.startswith(prefix)
        for alias in aliases
        if tool in ("", alias.tool) and (one := alias.read(name[len(prefix) :], more or {})) is not None
    )


def with_their_parameters(name: str, written: Written) -> Meanings:
    """Read a name of ir_measures with parameters in parentheses: ``MRR(rel=2)@10``, ``SetP(rel=2)``.

    Raises
    ------
    InvalidInput
        For a parameter that is not one of the measure here, with our way to write it.
    """
    ours = {parameter: value for parameter, value in written.given.items() if parameter not in _THEIRS}
    theirs = [parameter for parameter in written.given if parameter in _THEIRS]
    found = aliased(written.head + (f"@{written.at}" if written.at else ""), "ir_measures", ours)
    if found and theirs:
        raise InvalidInput(f"{name!r}: {theirs[0]} of ir_measures is {_THEIRS[theirs[0]]}")
    return found


_PREFS = """
prefs_num_prefs_poss prefs_num_prefs_ful prefs_num_prefs_ful_ret prefs_simp prefs_pair prefs_avgjg prefs_avgjg_Rnonrel
prefs_simp_ret prefs_pair_ret prefs_avgjg_ret prefs_avgjg_Rnonrel_ret prefs_simp_imp prefs_pair_imp prefs_avgjg_imp
"""
_NAMES = f"""
runid num_q num_ret num_rel num_rel_ret map gm_map Rprec bpref recip_rank iprec_at_recall P relstring recall infAP
gm_bpref Rprec_mult utility 11pt_avg binG G dcg ideal_dcg ndcg ndcg_rel Rndcg ndcg_cut map_cut relative_P success set_P
set_relative_P set_recall set_map set_F num_nonrel_judged_ret yaap rbp rbp_resid unj {_PREFS} map_avgjg P_avgjg
Rprec_mult_avgjg
"""
_CUTOFFS = ("5", "10", "15", "20", "30", "100", "200", "500", "1000")
_MULTIPLES = tuple(f"{place / 5:.2f}" for place in range(1, 11))
_DEFAULTS = {
    **dict.fromkeys(("P", "recall", "ndcg_cut", "map_cut", "relative_P", "P_avgjg"), _CUTOFFS),
    **dict.fromkeys(("Rprec_mult", "Rprec_mult_avgjg"), _MULTIPLES),
    "iprec_at_recall": tuple(f"{place / 10:.2f}" for place in range(11)),
    "success": ("1", "5", "10"),
    "unj": ("5", "10", "20"),
}
ROOTS: dict[str, tuple[str, ...]] = {name: _DEFAULTS.get(name, ()) for name in _NAMES.split()}
"""Every name that ``-m`` takes, in the order in which lines are printed, and its parameters unless others are given:
cut-offs, recall levels or multiples of R, each printed on a line of its own; () for a name with one line."""

NEW = ("rbp", "rbp_resid", "unj")
"""Names that version 9 lacks."""

PRINTED = ("runid", "relstring")
"""Lines of trec_eval's output that are no measures."""

_SET = "runid num_q num_ret num_rel num_rel_ret utility set_P set_recall set_relative_P set_map set_F"
_AVGJG = ("map_avgjg", "P_avgjg", "Rprec_mult_avgjg")
_NOT_IN_ALL = ("dcg", "ideal_dcg", "yaap", *_PREFS.split(), *_AVGJG)

NICKNAMES: dict[str, tuple[str, ...]] = {
    "official": tuple(ROOTS)[:12],
    "set": tuple(_SET.split()),
    "all_trec": tuple(name for name in ROOTS if name not in _NOT_IN_ALL),
    "prefs": ("runid", "num_q", *_PREFS.split()[:6]),
    "all_prefs": ("runid", "num_q", *_PREFS.split()),
    "qrels_jg": ("runid", "num_q", *_AVGJG),
}
"""trec_eval's names for several measures; ``all_trec`` of version 9 lacks the `NEW` ones."""


def names_behind(spec: str, *, version_10: bool) -> list[str]:
    """Return the names that one name of trec_eval stands for, [] if it stands for a single measure.

    Parameters
    ----------
    spec : str
        Such as ``"official"``, ``"P.5,10"``, ``"ndcg_cut"``.
    version_10 : bool
        Whether the names are those of trec_eval 10.

    Returns
    -------
    list of str
        Such as ``["P_5", "P_10"]``, without the lines that are no measures.
    """
    if spec in NICKNAMES:
        roots = [root for root in NICKNAMES[spec] if root not in PRINTED and (version_10 or root not in NEW)]
        return [name for root in roots for name in (_names_at(root, ROOTS[root]) or [root])]
    if spec in ROOTS:
        return _names_at(spec, ROOTS[spec])
    listed = re.fullmatch(r"(\w+?)[._]([0-9]*\.?[0-9]+(?:\s*,\s*[0-9]*\.?[0-9]+)+)", spec)
    if listed and ROOTS.get(listed[1]):
        return _names_at(listed[1], listed[2].split(","))
    return []


def _names_at(root: str, parameters: Iterable[str]) -> list[str]:
    return [f"{root}_{one.strip()}" for one in parameters]
