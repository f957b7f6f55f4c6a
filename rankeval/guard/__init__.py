"""The guard: register a test collection, freeze systems before anyone sees their scores, open them once.

It protects from haste and forgetfulness: notebooks that are run again, searches over the wrong
split, colleagues who share a project. It cannot stop somebody who owns the labels and evaluates
elsewhere, deletes the file of the ledger, or changes the features beyond recognition.

The refusal itself, and how queries are recognised, is `rankeval.contamination`; the entries are
kept by `rankeval.ledger`.
"""

from rankeval.guard.checks import guard_check, list_checks
from rankeval.guard.decisions import Decision
from rankeval.guard.gate import Gate
from rankeval.guard.protocol import Guard

__all__ = ["Decision", "Gate", "Guard", "guard_check", "list_checks"]
