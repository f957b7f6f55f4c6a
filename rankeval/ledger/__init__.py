"""The ledger: an append-only chain of entries, the database that stores it, and how a process finds it."""
