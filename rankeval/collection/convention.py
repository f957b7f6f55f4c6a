"""The convention: how truth and ranking are joined, and which queries count.

The same run over the same judgments gives an nDCG@10 between .654 and .817, depending on ties,
gains, and queries that are missing or have nothing relevant. So every number carries its
convention, as a card of plain values, and two numbers with different cards are compared only if the
rules that differ changed nothing. A preset is data: an entry of `PRESETS` below. The trap is the
name: readers believe a card by its name, so that the name of a preset is refused for other rules,
and a changed preset gets ``+``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any

from rankeval._arguments import explained
from rankeval._checks import check_count, require
from rankeval._registry import chosen
from rankeval.errors import InvalidInput

CHOICES: dict[str, tuple[str, ...]] = {
    "ties": ("expected", "docid", "stable", "best", "worst"),
    "judgments": ("given", "rows", "qrels"),
    "negative": ("zero", "unjudged", "error"),
    "missing": ("error", "empty", "skip", "zero"),
    "no_relevant": ("zero", "one", "skip"),
    "unjudged": ("zero", "skip", "lowest", "highest"),
    "duplicates": ("error",),
    "score_dtype": ("float64", "float32"),
    "own_document": ("keep", "exclude"),
}
"""The values that each rule of a convention can take."""

COUNTED_AS = {"empty": "scored as an empty ranking", "zero": "counted as 0"}
"""Rule on missing queries -> how a missing query counts, in words."""

RULE_WORDS: dict[str, str] = {
    "name": "convention",
    "ties": "documents with equal scores",
    "judgments": "judgments",
    "negative": "labels below 0",
    "missing": "judged queries without a ranking",
    "no_relevant": "queries without a relevant document",
    "unjudged": "retrieved documents without a judgment",
    "duplicates": "a document twice in one ranking",
    "score_dtype": "precision of scores",
    "own_document": "a document that is its own query",
    "depth": "rankings are cut at rank",
    "bind": "parameters of measures",
}
"""Each rule of a convention in words."""

VALUE_WORDS: dict[str, dict[str, str]] = {
    "ties": {
        "expected": "mean over all orders",
        "docid": "by document id, descending",
        "stable": "in the order of the input",
        "best": "the better documents first",
        "worst": "the better documents last",
    },
    "judgments": {
        "qrels": "every judgment counts",
        "rows": "the labels of the ranked rows count",
        "given": "all that are given count",
    },
    "negative": {
        "zero": "judged, not relevant",
        "unjudged": "not judged",
        "error": "refused",
    },
    "missing": {
        "error": "refused",
        "empty": COUNTED_AS["empty"],
        "skip": "left out",
        "zero": "count as 0 in every mean",
    },
    "no_relevant": {"zero": "count as 0", "one": "count as 1", "skip": "left out"},
    "unjudged": {
        "zero": "not relevant",
        "skip": "taken out of the ranking first",
        "lowest": "have grade 0",
        "highest": "have the greatest grade",
    },
    "duplicates": {"error": "refused"},
    "score_dtype": {"float64": "64 bits", "float32": "32 bits"},
    "own_document": {"keep": "kept", "exclude": "taken out"},
}
"""Each rule of a convention -> its values in words."""


@explained
@dataclass(frozen=True)
class Convention:
    """The rules by which a ranking is evaluated against its judgments.

    Parameters
    ----------
    name : str, optional
        The convention's name. By default "rankeval", or "rankeval+" if a rule differs from the
        default. The name of a preset is refused unless all rules are the preset's: to use a preset,
        give its name as ``convention=``.
    ties : {"expected", "docid", "stable", "best", "worst"}
        The order of rows with equal scores. "expected" takes the mean over their orders; if no
        exact way is known, over drawn orders, with a standard error. "docid" orders by document id,
        descending by bytes, as trec_eval does (ascending for its measures of preferences). "stable"
        keeps the order of the input. "best" and "worst" put the better rows first or last, which
        bounds monotone measures.
    judgments : {"given", "rows", "qrels"}
        The source of the relevant documents and the ideal list: the ranked rows, or all judgments.
        "given" is rows for arrays and qrels for collections; a finished evaluation says which.
    negative : {"zero", "unjudged", "error"}
        The meaning of a label below zero. "zero": judged, not relevant and without gain.
        "unjudged": in the pool, but not judged, as in trec_eval. "error": refused.
    missing : {"error", "empty", "skip", "zero"}
        The treatment of judged queries that the ranking lacks. "error" refuses them, "empty" scores
        them as an empty ranking (whose value need not be 0), "skip" leaves them out, and "zero"
        counts them as 0 in every mean, as trec_eval 9 does with ``-c``.
    no_relevant : {"zero", "one", "skip"}
        The value of a query in which the measure has nothing to count, if the measure does not
        define one: no document of the grade from which it counts (``rel=``), or no pair of
        documents to order. "skip" leaves the query out of all measures, and refuses measures that
        would leave out different queries.
    unjudged : {"zero", "skip", "lowest", "highest"}
        The treatment of retrieved documents without a judgment. "zero": they are not relevant.
        "skip": they are taken out of the ranking first. "lowest" and "highest" give them grade 0 or
        the greatest grade given, which bounds measures that never fall when a grade rises.
    duplicates : {"error"}
        The treatment of a document that a ranking has twice: it is refused.
    score_dtype : {"float64", "float32"}
        The precision in which scores are compared.
    depth : int, optional
        Rows beyond this rank are cut off first (trec_eval ``-M``).
    bind : mapping of str to mapping
        Parameters for families of measures whose names leave them open, such as ``{"nDCG": {"gain":
        "exp"}}``.
    own_document : {"keep", "exclude"}
        The treatment of a document whose id is that of its query, as in BEIR's Quora and ArguAna.
        "exclude" takes it out of ranking and judgments.

    Raises
    ------
    InvalidInput
        If a rule has no such value, or the name is that of a preset with other rules.

    Examples
    --------
    >>> Convention(ties="stable").name
    'rankeval+'
    """

    # None until __post_init__ has set it.
    name: str = None  # type: ignore[assignment]
    ties: str = "expected"
    judgments: str = "given"
    negative: str = "zero"
    missing: str = "empty"
    no_relevant: str = "zero"
    unjudged: str = "zero"
    duplicates: str = "error"
    score_dtype: str = "float64"
    depth: int | None = None
    bind: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False)
    own_document: str = "keep"

    def __post_init__(self) -> None:
        for rule, choices in CHOICES.items():
            chosen(f"value of the rule {rule}", getattr(self, rule), choices)
        if self.depth is not None:
            check_count("depth", self.depth)
        fits = isinstance(self.bind, Mapping) and all(
            isinstance(bound, Mapping) for bound in self.bind.values()
        )
        require(fits, "bind", self.bind, "parameters of families: {'nDCG': {'gain': 'exp'}}")
        if self.depth is not None and self.ties == "expected":
            remedy = "choose ties='docid' or ties='stable' with it"
            raise InvalidInput("a cut needs an order of tied rows", argument="depth", remedy=remedy)
        # Copied and frozen, so that nobody changes the rules behind the name.
        frozen = {family: MappingProxyType(dict(bound)) for family, bound in self.bind.items()}
        object.__setattr__(self, "bind", MappingProxyType(frozen))
        self._check_name()

    def _check_name(self) -> None:
        """Make a name if there is none; refuse the name of a preset for other rules."""
        name: Any = self.name
        if name is None:
            name = "rankeval+" if self._changed(PRESETS["rankeval"]) else "rankeval"
            object.__setattr__(self, "name", name)
        require(
            isinstance(name, str) and name.strip(), "name", name, "a text that names the convention"
        )
        preset = name.strip().lower()
        if preset in PRESETS and name != preset:
            problem = f"the name {name!r} is that of a preset but for capitals or blanks"
            raise InvalidInput(
                problem, remedy=f"choose another, or write convention={preset!r} for the preset"
            )
        for rule in self._changed(PRESETS.get(name, self)):
            found, expected = (repr(getattr(rules, rule)) for rules in (self, PRESETS[name]))
            problem = f"the name {name!r} is that of a preset, whose rule {rule} is {expected} and not {found}"
            remedy = f"choose another name, or change rules of convention={name!r} in the call"
            raise InvalidInput(problem, remedy=remedy)

    def _changed(self, preset: Convention) -> list[str]:
        """Return the rules that differ from a preset's; "given" judgments there may be either."""
        rules = [rule for rule in _rules() if getattr(self, rule) != getattr(preset, rule)]
        return [rule for rule in rules if rule != "judgments" or preset.judgments != "given"]

    def resolved(self, judgments: str) -> Convention:
        """Return this convention for data with judgments of one kind, under a name that is still true.

        Parameters
        ----------
        judgments : {"rows", "qrels"}
            The source of the judgments. Rows have no others and so replace "qrels"; qrels serve
            both.
        """
        if self.judgments in ("given", judgments):
            return replace(self, judgments=judgments)
        if judgments == "rows":
            return self.with_rules(judgments=judgments)
        return (
            replace(self, name=f"{self.name}+")
            if PRESETS.get(self.name, self).judgments == "given"
            else self
        )

    # Without an object it changes the default: mypy takes no default of ``self``, but takes ``*base``.
    def with_rules(*base: str | Convention, **rules: Any) -> Convention:
        """Return a convention with single rules changed: this one, the default, or a preset.

        Parameters
        ----------
        *base : str or Convention
            The preset to change, as in ``rk.Convention.with_rules("trec_eval-10", ties="stable")``.
            By default "rankeval"; as the method of a convention, that convention.
        **rules
            Rules by name, as the parameters of `Convention`. A rule given as None stays as it is.

        Returns
        -------
        Convention
            Its name ends in ``+`` if a rule differs.

        Raises
        ------
        UnknownName
            If there is no such preset, rule or value.

        Examples
        --------
        >>> Convention.with_rules(ties="docid").name
        'rankeval+'
        >>> Convention.with_rules("trec_eval-10", missing="empty").name
        'trec_eval-10+'
        """
        own = get_convention(*base or ("rankeval",))
        changes = {rule: value for rule, value in rules.items() if value is not None}
        for rule in changes:
            chosen("rule of a convention", rule, _rules())
        if not changes:
            return own
        # Making it checks the values, so that they can be compared afterwards.
        name = own.name if own.name.endswith("+") else f"{own.name}+"
        changed = replace(own, name=name, **changes)
        is_same = all(getattr(own, rule) == getattr(changed, rule) for rule in changes)
        return own if is_same else changed

    @classmethod
    def from_card(cls, card: Mapping[str, Any]) -> Convention:
        """Return the convention of a card; a preset whose rules have changed since then gets ``+``.

        Parameters
        ----------
        card : mapping of str to object
            As `card` returns it.

        Raises
        ------
        InvalidInput
            If it is no such card.
        """
        known = [part.name for part in fields(cls)]
        fits = (
            isinstance(card, Mapping)
            and set(card) <= set(known)
            and isinstance(card.get("name"), str)
        )
        require(fits, "card", card, f"the card of a convention, a mapping of {', '.join(known)}")
        own = cls(**{**card, "name": f"{card['name']}+"})
        preset = PRESETS.get(card["name"], own)
        return own if own._changed(preset) else replace(own, name=card["name"])

    def __repr__(self) -> str:
        return (
            f"Convention({', '.join(f'{rule}={value!r}' for rule, value in self.card().items())})"
        )

    # A frozen mapping cannot be saved; a card can, and is checked again. A state serves pickle,
    # cloudpickle and skops; of a classmethod in __reduce__ cloudpickle would save the code, and
    # could not load it.
    def __getstate__(self) -> dict[str, Any]:
        return self.card()

    def __setstate__(self, card: dict[str, Any]) -> None:
        vars(self).update(vars(self.from_card(card)))

    def card(self) -> dict[str, Any]:
        """Return the rules as a plain dict, for logs and reports."""
        rules = {part.name: getattr(self, part.name) for part in fields(self)}
        if self.own_document == "keep":  # cards have hashes, and older ones lack this rule
            del rules["own_document"]
        return rules | {"bind": {family: dict(bound) for family, bound in self.bind.items()}}


def in_words(rules: Mapping[str, Any]) -> str:
    """Write the rules of a card in words.

    Examples
    --------
    >>> in_words({"judgments": "qrels", "depth": 100})
    'judgments: every judgment counts; rankings are cut at rank: 100'
    """
    return "; ".join(
        f"{RULE_WORDS[rule]}: {VALUE_WORDS.get(rule, {}).get(value, value)}"
        for rule, value in rules.items()
    )


def _rules() -> list[str]:
    return [part.name for part in fields(Convention) if part.name != "name"]


_TREC = {"ties": "docid", "judgments": "qrels", "negative": "unjudged"}
_TREC_9 = {
    **_TREC,
    "missing": "skip",
    "bind": {"IPrec": {"rule": "trec_eval-9"}, "IAP11": {"rule": "trec_eval-9"}},
}
_TREC_10 = {
    "IPrec": {"rule": "trec_eval-10"},
    "IAP11": {"rule": "trec_eval-10"},
    "RBP": {"p": 0.9, "gain": "scaled"},
    "RBPResid": {"p": 0.9, "rule": "trec_eval-10"},
}
_EXPONENTIAL = {"nDCG": {"gain": "exp"}, "DCG": {"gain": "exp"}}
# The script of the TREC Web Track does not count topics without a relevant document.
_GDEVAL = {
    "ties": "docid",
    "judgments": "qrels",
    "missing": "skip",
    "no_relevant": "skip",
    "bind": {**_EXPONENTIAL, "ERR": {"max_rel": 4}},
}
# Boosters take the rows of a query for all there is, and count a query without relevant rows as
# perfect.
_BOOSTER = {
    "ties": "stable",
    "judgments": "rows",
    "negative": "error",
    "no_relevant": "one",
    "bind": {**_EXPONENTIAL, "AP": {"normalizer": "min"}},
}
_RULES: dict[str, dict[str, Any]] = {
    "rankeval": {},
    # Without -c it leaves out topics that the run lacks; with -c it divides by all, so that they
    # add 0.
    "trec_eval-9.0.8": _TREC_9,
    # Two releases have that number: tag trec_eval-9.0.8 of 2023, above, and tag v9.0.8 of 2020. The
    # older one holds scores in 32 bits, as pytrec_eval does: scores that differ beyond them are
    # tied.
    "trec_eval-9.0.8-float32": {**_TREC_9, "score_dtype": "float32"},
    # Without -c it stops at a topic that the run lacks; with -c it scores an empty ranking there.
    "trec_eval-10": {**_TREC, "missing": "error", "bind": _TREC_10},
    "sklearn": {"ties": "expected", "judgments": "rows", "negative": "error", "missing": "error"},
    "gdeval": _GDEVAL,
    # Its quicksort orders tied documents, in a way that no rule here gives.
    "ranx": {"ties": "stable", "judgments": "qrels", "missing": "error"},
    "lightgbm": _BOOSTER,
    "xgboost": {**_BOOSTER, "score_dtype": "float32"},
}

PRESETS: dict[str, Convention] = {}
"""The conventions of other tools, by name."""

PRESETS |= {name: Convention(name, **rules) for name, rules in _RULES.items()}


def get_convention(spec: str | Convention) -> Convention:
    """Return a preset by its name, or a convention as it is."""
    if isinstance(spec, Convention):
        return spec
    require(isinstance(spec, str), "convention", spec, "the name of a preset, or a Convention")
    return PRESETS[chosen("convention", spec, PRESETS)]


def rules_of_call(spec: str | Convention, rows: bool = True, /, **single: str | None) -> Convention:
    """Return a convention with the single rules that a call changes."""
    rules = Convention.with_rules(spec, **single)
    if rows and single.get("judgments") == "qrels":
        raise InvalidInput(
            "judgments='qrels' needs a collection (qrels and run); arrays have the ranked rows only"
        )
    return rules
