"""`python -m rankeval` is the command `rankeval`."""

from rankeval.cli import main

if __name__ == "__main__":
    main()
