"""trec_eval's names: what ``-m`` takes, at which parameters, and which names stand for several measures."""

from __future__ import annotations

import re
from dataclasses import dataclass

CUTOFFS = ("5", "10", "15", "20", "30", "100", "200", "500", "1000")
LEVELS = tuple(f"{place / 10:.2f}" for place in range(11))


@dataclass(frozen=True)
class Root:
    """A name that ``-m`` takes.

    Attributes
    ----------
    parameters : tuple of str
        What it is computed at unless parameters are given.
    each : str
        How a parameter stands in the name of its line: "d" for ranks, ".2f" for shares; "" for a single line, with
        the parameters as they were given.
    count : bool
        Whether the value is printed as a whole number.
    topics, summary : bool
        Whether there are lines for topics, and one for all.
    """

    parameters: tuple[str, ...] = ()
    each: str = ""
    count: bool = False
    topics: bool = True
    summary: bool = True


_MULTIPLES = tuple(f"{place / 5:.2f}" for place in range(1, 11))
_PREFS = (
    *("prefs_num_prefs_poss", "prefs_num_prefs_ful", "prefs_num_prefs_ful_ret"),
    *("prefs_simp", "prefs_pair", "prefs_avgjg", "prefs_avgjg_Rnonrel"),
    *("prefs_simp_ret", "prefs_pair_ret", "prefs_avgjg_ret", "prefs_avgjg_Rnonrel_ret"),
    *("prefs_simp_imp", "prefs_pair_imp", "prefs_avgjg_imp"),
)
_AVGJG = ("map_avgjg", "P_avgjg", "Rprec_mult_avgjg")
_AT = Root(CUTOFFS, "d")
_ONE = Root()
_COUNT = Root(count=True)

ROOTS: dict[str, Root] = {
    "runid": Root(topics=False),
    "num_q": Root(count=True, topics=False),
    "num_ret": _COUNT,
    "num_rel": _COUNT,
    "num_rel_ret": _COUNT,
    "map": _ONE,
    "gm_map": Root(topics=False),
    "Rprec": _ONE,
    "bpref": _ONE,
    "recip_rank": _ONE,
    "iprec_at_recall": Root(LEVELS, ".2f"),
    "P": _AT,
    "relstring": Root(summary=False),
    "recall": _AT,
    "infAP": _ONE,
    "gm_bpref": Root(topics=False),
    "Rprec_mult": Root(_MULTIPLES, ".2f"),
    "utility": _ONE,
    "11pt_avg": _ONE,
    "binG": _ONE,
    "G": _ONE,
    "dcg": _ONE,
    "ideal_dcg": _ONE,
    "ndcg": _ONE,
    "ndcg_rel": _ONE,
    "Rndcg": _ONE,
    "ndcg_cut": _AT,
    "map_cut": _AT,
    "relative_P": _AT,
    "success": Root(("1", "5", "10"), "d"),
    "set_P": _ONE,
    "set_relative_P": _ONE,
    "set_recall": _ONE,
    "set_map": _ONE,
    "set_F": _ONE,
    "num_nonrel_judged_ret": _COUNT,
    "yaap": _ONE,
    "rbp": _ONE,
    "rbp_resid": _ONE,
    "unj": Root(("5", "10", "20"), "d"),
    **dict.fromkeys(_PREFS[:3], _COUNT),
    **dict.fromkeys(_PREFS[3:], _ONE),
    "map_avgjg": _ONE,
    "P_avgjg": _AT,
    "Rprec_mult_avgjg": Root(_MULTIPLES, ".2f"),
}
"""Every name, in the order in which lines are printed."""

_OFFICIAL = (
    "runid num_q num_ret num_rel num_rel_ret map gm_map Rprec bpref recip_rank iprec_at_recall P".split()  # noqa: SIM905
)
_NOT_IN_ALL = ("dcg", "ideal_dcg", "yaap")
NEW = ("rbp", "rbp_resid", "unj")

PRINTED = ("runid", "relstring")
"""What stands in trec_eval's output and is no measure."""

NICKNAMES: dict[str, tuple[str, ...]] = {
    "official": tuple(_OFFICIAL),
    "set": (
        *("runid", "num_q", "num_ret", "num_rel", "num_rel_ret", "utility"),
        *("set_P", "set_recall", "set_relative_P", "set_map", "set_F"),
    ),
    "all_trec": tuple(root for root in ROOTS if root not in (*_NOT_IN_ALL, *_PREFS, *_AVGJG)),
    "prefs": ("runid", "num_q", *_PREFS[:6]),
    "all_prefs": ("runid", "num_q", *_PREFS),
    "qrels_jg": ("runid", "num_q", *_AVGJG),
}
"""trec_eval's names for several measures; all_trec of version 9 lacks the newest."""


_LISTED = re.compile(r"(?P<root>\w+?)[._](?P<given>[0-9]*\.?[0-9]+(?:\s*,\s*[0-9]*\.?[0-9]+)+)")


def names_behind(spec: str, *, version_10: bool) -> list[str]:
    """Return the names of the measures that one name stands for: none where it stands for a single measure.

    Parameters
    ----------
    spec : str
        Such as ``"official"``, ``"P.5,10"``, ``"ndcg_cut"``.
    version_10 : bool
        Whether the names are those of trec_eval 10.

    Returns
    -------
    list of str
        Such as ``["P_5", "P_10"]``, without what is printed but no measure.
    """
    if spec in NICKNAMES:
        roots = [root for root in NICKNAMES[spec] if version_10 or root not in NEW]
        return [name for root in roots if root not in PRINTED for name in _names_at(root)]
    if spec in ROOTS:
        return _names_at(spec) if ROOTS[spec].each else []
    listed = _LISTED.fullmatch(spec)
    if listed and listed["root"] in ROOTS and ROOTS[listed["root"]].each:
        return _names_at(listed["root"], *listed["given"].split(","))
    return []


def _names_at(root: str, *given: str) -> list[str]:
    return [f"{root}_{at.strip()}" for at in given or ROOTS[root].parameters] if ROOTS[root].each else [root]
