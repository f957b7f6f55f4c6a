"""The guard: a test collection is registered, systems are frozen before anyone sees their scores, and opened once.

It protects from haste and forgetfulness: reruns of notebooks, searches over the wrong split, colleagues who share a
project. It cannot stop someone who owns the labels and evaluates elsewhere, deletes the ledger's file, or changes the
features beyond recognition.
"""

from rankeval.guard.protocol import Guard

__all__ = ["Guard"]
