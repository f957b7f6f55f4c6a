"""One static site of all runs of a project: leaderboards, the champion, and a page for each run."""

from rankeval.site.publishing import Site, write_site

__all__ = ["Site", "write_site"]
