"""The convention card: how truth and ranking are joined and which queries count.

The same run over the same judgments gives an nDCG@10 between .654 and .817 by the choice of ties, gains and of what
is done with queries that are missing or have nothing relevant. So every number carries its card, and two numbers
with different cards are compared only where the rules that differ touched nothing. A preset is data: one line below.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any

from rankeval._checks import check_count
from rankeval._registry import chosen, unknown
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
}
"""The values that each rule of a convention can take."""

COUNTED_AS = {"empty": "scored as an empty ranking", "zero": "counted as 0"}
"""Rule on missing queries -> what became of one that counts."""


@dataclass(frozen=True)
class Convention:
    """The rules by which a ranking is held against its judgments.

    Parameters
    ----------
    name : str, optional
        What to call it. The name of a preset is refused unless all rules are the preset's: to use a preset, give its
        name as ``convention=``. A preset that had a rule changed gets ``+`` at its end. Without a name it is
        "rankeval", or "rankeval+" if a rule is not the default.
    ties : {"expected", "docid", "stable", "best", "worst"}
        Rows of equal score: the mean over their orders, exact, or drawn with its standard error shown where no exact
        way is known; by document id, descending by bytes (trec_eval; its measures of preferences go by ascending ids,
        and so do ours); as they stand in the input; the better ones first or last, which bounds measures that are
        monotone.
    judgments : {"given", "rows", "qrels"}
        Where the relevant documents and the ideal list come from: the rows that were ranked, or all judgments.
        "given" is rows for arrays and qrels for collections; a finished evaluation says which.
    negative : {"zero", "unjudged", "error"}
        Labels below zero: judged, not relevant, no gain; a mark that the document is in the pool but was not judged
        (trec_eval); or refused.
    missing : {"error", "empty", "skip", "zero"}
        Judged queries that the ranking lacks: refused; scored as an empty ranking is, which need not be 0; left out;
        or 0 in every mean, as trec_eval 9 does with ``-c``.
    no_relevant : {"zero", "one", "skip"}
        The value of a query without a relevant document (where the measure has none of its own), or leave it out.
    unjudged : {"zero", "skip", "lowest", "highest"}
        Retrieved documents without a judgment: not relevant; taken out of the ranking first; of grade 0 or of the
        greatest grade that was given, which bounds measures that never fall when a grade rises.
    duplicates : {"error"}
        The same document twice in one ranking.
    score_dtype : {"float64", "float32"}
        The precision in which scores are compared.
    depth : int, optional
        Rows beyond this rank are cut off first (trec_eval ``-M``).
    bind : mapping of str to mapping
        Parameters that a family of measures takes here where its name leaves them open, such as
        ``{"nDCG": {"gain": "exp"}}``.
    """

    # A name is always there once it is made.
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

    def __post_init__(self) -> None:
        for rule, choices in CHOICES.items():
            chosen(f"value of the rule {rule}", getattr(self, rule), choices)
        if self.depth is not None:
            check_count("depth", self.depth)
        if not isinstance(self.bind, Mapping) or not all(isinstance(bound, Mapping) for bound in self.bind.values()):
            raise InvalidInput(f"bind is {self.bind!r}; expected families' parameters: {{'nDCG': {{'gain': 'exp'}}}}")
        if self.depth is not None and self.ties == "expected":
            raise InvalidInput("depth cuts a ranking in which ties are broken: choose ties='docid' or 'stable' with it")
        # Whoever holds the mapping that was given, or this one, must not change the rules behind the name.
        frozen = {family: MappingProxyType(dict(bound)) for family, bound in self.bind.items()}
        object.__setattr__(self, "bind", MappingProxyType(frozen))
        self._check_name()

    def _check_name(self) -> None:
        """Let the name of a preset stand for its rules alone: a card is believed by its name."""
        name: Any = self.name
        if name is None:
            name = "rankeval+" if self._changed(PRESETS["rankeval"]) else "rankeval"
            object.__setattr__(self, "name", name)
        if not isinstance(name, str) or not name.strip():
            raise InvalidInput(f"name is {name!r}; expected a text, what to call the convention")
        meant = name.strip().lower()
        if meant in PRESETS and name != meant:
            raise InvalidInput(
                f"the name {name!r} is that of a preset but for capitals or blanks: write convention={meant!r} if you "
                "mean the preset, else take another name"
            )
        changed = self._changed(PRESETS.get(name, self))
        if changed:
            found, expected = (getattr(one, changed[0]) for one in (self, PRESETS[name]))
            raise InvalidInput(
                f"the name {name!r} is that of a preset, whose rule {changed[0]} is {expected!r} and not {found!r}: "
                f"take another name for your own rules, or change the preset's by convention={name!r} with single "
                "rules, such as ties="
            )

    def _changed(self, preset: Convention) -> list[str]:
        """Return the rules that are not the preset's; what is "given" there may be either, as the data had it."""
        rules = [part.name for part in fields(self) if part.name != "name"]
        rules = [rule for rule in rules if getattr(self, rule) != getattr(preset, rule)]
        return [rule for rule in rules if rule != "judgments" or preset.judgments != "given"]

    def resolved(self, judgments: str) -> Convention:
        """Return this convention for data with judgments of one kind, under a name that still says which rules.

        Parameters
        ----------
        judgments : {"rows", "qrels"}
            Where judgments come from. Rows have no others, and so they replace "qrels"; qrels can do for both.
        """
        if self.judgments in ("given", judgments):
            return replace(self, judgments=judgments)
        if judgments == "rows":
            return self.with_rules(judgments=judgments)
        return replace(self, name=f"{self.name}+") if PRESETS.get(self.name, self).judgments == "given" else self

    def with_rules(self, **rules: Any) -> Convention:
        """Return this convention with single rules changed; a rule given as None stays as it is.

        Parameters
        ----------
        **rules
            Rules by name.
        """
        for rule, value in rules.items():
            if rule in CHOICES and value is not None:
                chosen(f"value of the rule {rule}", value, CHOICES[rule])
        changed = {rule: value for rule, value in rules.items() if value is not None and value != getattr(self, rule)}
        if not changed:
            return self
        name = self.name if self.name.endswith("+") else f"{self.name}+"
        return replace(self, name=name, **changed)

    @classmethod
    def from_card(cls, card: Mapping[str, Any]) -> Convention:
        """Return the convention that a card describes; a preset whose rules were others when it was written gets ``+``.

        Parameters
        ----------
        card : mapping of str to object
            As `card` gives it.

        Raises
        ------
        InvalidInput
            When it is no such card.
        """
        known = [part.name for part in fields(cls)]
        if not isinstance(card, Mapping) or not set(card) <= set(known) or not isinstance(card.get("name"), str):
            raise InvalidInput(f"expected the card of a convention, a mapping of {', '.join(known)}; found {card!r}")
        own = cls(**{**card, "name": f"{card['name']}+"})
        preset = PRESETS.get(card["name"], own)
        return own if own._changed(preset) else replace(own, name=card["name"])

    def __repr__(self) -> str:
        return f"Convention({', '.join(f'{rule}={value!r}' for rule, value in self.card().items())})"

    def __reduce__(self) -> tuple[Any, ...]:
        # What is unpickled was checked as what is made; a mapping that cannot be changed does not pickle, either.
        return type(self).from_card, (self.card(),)

    def card(self) -> dict[str, Any]:
        """Return the rules as a plain dict, for logs and reports."""
        return {
            part.name: {family: dict(bound) for family, bound in self.bind.items()}
            if part.name == "bind"
            else getattr(self, part.name)
            for part in fields(self)
        }


PRESETS: dict[str, Convention] = {}
"""The conventions of other tools, by name."""

PRESETS |= {
    preset.name: preset
    for preset in (
        Convention("rankeval"),
        # Without -c it leaves out topics that the run lacks; with -c it divides by all, so that they add 0.
        Convention(
            "trec_eval-9.0.8",
            ties="docid",
            judgments="qrels",
            negative="unjudged",
            missing="skip",
            bind={"IPrec": {"rule": "trec_eval-9"}, "IAP11": {"rule": "trec_eval-9"}},
        ),
        # Two releases bear that number: tag trec_eval-9.0.8 of 2023, above, and tag v9.0.8 of 2020. It holds scores in
        # 32 bits, as pytrec_eval does: those that differ beyond them are tied.
        Convention(
            "trec_eval-9.0.8-float32",
            ties="docid",
            judgments="qrels",
            negative="unjudged",
            missing="skip",
            score_dtype="float32",
            bind={"IPrec": {"rule": "trec_eval-9"}, "IAP11": {"rule": "trec_eval-9"}},
        ),
        # Without -c it stops at a topic that the run lacks; with -c it scores an empty ranking there.
        Convention(
            "trec_eval-10",
            ties="docid",
            judgments="qrels",
            negative="unjudged",
            missing="error",
            bind={
                "IPrec": {"rule": "trec_eval-10"},
                "IAP11": {"rule": "trec_eval-10"},
                "RBP": {"p": 0.9, "gain": "scaled"},
                "RBPResid": {"p": 0.9, "rule": "trec_eval-10"},
            },
        ),
        Convention("sklearn", ties="expected", judgments="rows", negative="error", missing="error"),
        # The script of the TREC Web Track: topics without a relevant document are no topics.
        Convention(
            "gdeval",
            ties="docid",
            judgments="qrels",
            missing="skip",
            no_relevant="skip",
            bind={"nDCG": {"gain": "exp"}, "DCG": {"gain": "exp"}, "ERR": {"max_rel": 4}},
        ),
        # Its order of tied documents is that of a quicksort: whatever it is, it is not by document.
        Convention("ranx", ties="stable", judgments="qrels", missing="error"),
        # Boosters see the rows of a query as all there is, and count a query without relevant rows as perfect.
        Convention(
            "lightgbm",
            ties="stable",
            judgments="rows",
            negative="error",
            no_relevant="one",
            bind={"nDCG": {"gain": "exp"}, "DCG": {"gain": "exp"}, "AP": {"normalizer": "min"}},
        ),
        Convention(
            "xgboost",
            ties="stable",
            judgments="rows",
            negative="error",
            no_relevant="one",
            score_dtype="float32",
            bind={"nDCG": {"gain": "exp"}, "DCG": {"gain": "exp"}, "AP": {"normalizer": "min"}},
        ),
    )
}


def get_convention(spec: str | Convention) -> Convention:
    """Return a convention by name, or as it is.

    Parameters
    ----------
    spec : str or Convention
        The name of a preset, or a convention.

    Raises
    ------
    UnknownName
        When no preset has that name.
    InvalidInput
        When it is neither.
    """
    if isinstance(spec, Convention):
        return spec
    if not isinstance(spec, str):
        raise InvalidInput(
            f"convention is {spec!r}; expected the name of a preset, such as 'rankeval', or a Convention"
        )
    if spec not in PRESETS:
        raise unknown("convention", spec, PRESETS)
    return PRESETS[spec]
