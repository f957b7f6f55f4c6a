"""The ledger: an append-only graph of entries, the places that keep it, and how a process finds it."""
