"""An append-only chain of entries, where it is kept, and how a process finds it."""
