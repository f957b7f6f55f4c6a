"""What the public API answers, recorded call by call, so that a rebuilt house can be held against the one before.

    python -m tests.oracle record FOLDER [PART ...]     # at the old head, and at the new one
    python -m tests.oracle compare OLD NEW

A part is a module of this folder with a function `calls()`: it yields `(key, function)`, and the function returns plain
data, or whatever `canonical` can read to the last bit. Each call runs in an empty folder of its own.
"""
