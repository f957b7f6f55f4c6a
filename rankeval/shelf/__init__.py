"""A result is a record, and a record is a folder."""

from rankeval.shelf.kinds import load, read_record, save
from rankeval.shelf.record import Record

__all__ = ["Record", "load", "read_record", "save"]
