"""The promotion gate: an alias of a registered model moves only to a version that is shown to be better."""
