"""The gate of continuous delivery: a budget of candidates, each accepted or rejected, and nothing else shown."""
