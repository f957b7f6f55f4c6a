"""What people see of a run: the description, the pages, the table of queries."""
