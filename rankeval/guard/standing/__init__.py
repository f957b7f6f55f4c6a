"""Which queries were looked at, by whom, and the standing that this gives to a plan."""
