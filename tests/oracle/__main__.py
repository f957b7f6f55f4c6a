"""The command line of the oracle."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.oracle.recording import PARTS, compare, record


def main() -> int:
    """Record the parts named, or all; or compare two recordings and return 1 if an answer differs."""
    match sys.argv[1:]:
        case ["record", folder, *parts]:
            record(Path(folder), parts or list(PARTS))
            return 0
        case ["compare", old, new]:
            return compare(Path(old), Path(new))
        case _:
            print(__doc__, "record FOLDER [PART ...] | compare OLD NEW")
            return 2


if __name__ == "__main__":
    raise SystemExit(main())
