"""Why two evaluations must not be compared: their rules, their measures or their judgments differ."""

from __future__ import annotations

from rankeval.collection.convention import CHOICES
from rankeval.evaluation.scores import QueryScores


def differences(mine: QueryScores, other: QueryScores) -> list[str]:
    """Return a sentence for each rule, measure and set of judgments in which two evaluations differ.

    Parameters
    ----------
    mine, other : QueryScores
        The evaluations, "one" and "the other" in the sentences.
    """
    found = rule_differences(mine, other)
    if mine.judgments_digest != other.judgments_digest:
        digests = [f"digest {each.judgments_digest[:12]} over {each.size}" for each in (mine, other)]
        found.append(f"the judgments differ ({digests[0]} in one, {digests[1]} in the other){_remedy(mine, other)}")
    return found


def rule_differences(mine: QueryScores, other: QueryScores) -> list[str]:
    """Return a sentence for each rule and measure in which two evaluations differ, on whatever judgments.

    Parameters
    ----------
    mine, other : QueryScores
        The evaluations, "one" and "the other" in the sentences.
    """
    found = []
    for rule in [*CHOICES, "depth"]:
        first, second = getattr(mine.convention, rule), getattr(other.convention, rule)
        affected = mine.rule_counts.get(rule, 0) + other.rule_counts.get(rule, 0)
        if first != second and affected:
            found.append(f"{rule} is {first!r} in one and {second!r} in the other")
    for label, bound in other.by_name.items():
        own = mine.by_name.get(label, bound)
        if own != bound:
            said = [str(own), str(bound)]
            if own.semantics != bound.semantics:
                said = [f"{one} of definition {one.semantics}" for one in (own, bound)]
            found.append(f"{label} means {said[0]} in one and {said[1]} in the other")
    return found


def _remedy(mine: QueryScores, other: QueryScores) -> str:
    """Say what to do if the queries are those of two collections, or of a whole and its subset."""
    if mine.whole is None and other.whole is None:
        return (
            "; compare systems with the same judgments, or on several collections by {system: {collection: evaluation}}"
        )
    wholes = {each.judgments_digest if each.whole is None else each.whole.judgments_digest for each in (mine, other)}
    if len(wholes) > 1:
        return "; a subset can be compared with the same subset only"
    both = (
        "they are different subsets of the same queries"
        if mine.whole and other.whole
        else "one is a subset of the other's queries"
    )
    return f": {both}; take the same subset of both evaluations"
