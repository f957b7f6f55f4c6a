"""A result is a record, and a record is a folder.

Nothing is imported here: help loads the host `files`, and must not import Arrow.
"""
