"""Seeded damage to the bytes of a file: what disks, editors, shells, networks and enemies do to one."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

# Ends of lines, blanks, marks, bytes of other encodings.
BLANKS = [b"\r", b"\r\n", b"\n", b"\0", b"\xef\xbb\xbf", b"\xff", b"\xe4", b" ", b"  ", b"\t", b"\x0b", b"\x1c"]
LETTERS = [odd.encode() for odd in ("\x85", "\u2028", "\u00a0", "\u0661\u0662", "\u00b2", "\x1b]0;x\7", "\u202e")]
NUMBERS = [b"9" * 400, b"9" * 5000]
NUMBERS += (
    b"nan NaN inf -inf Infinity 0x10 1_0 1e999 1e-400 -0 007 1.0 1e3 99999999999999999999 9223372036854775808 -1 +1 "
    b"1,5 .5 3."
).split()
SIGNS = b'" "" \' \\ , ; : # qid: Q0 null true { } [ ] \\ud800 \\u0000 *a !!python/object:os.system'.split()
LONG = [b"q1 Q0 d1 1 2.5 t", b"# ", b"[" * 5000, b"&a [*a]", b"x" * (1 << 17)]
SPECIALS = [*BLANKS, *LETTERS, *NUMBERS, *SIGNS, *LONG]
_WORD = re.compile(rb"[^\s,:\"]+")
_Rng = random.Random
Mutation = Callable[[bytes, random.Random], bytes]


def _cut(data: bytes, rng: _Rng, longest: int = 40) -> tuple[int, int]:
    start = rng.randrange(len(data) + 1)
    return start, min(len(data), start + rng.randrange(1, longest))


def flip_byte(data: bytes, rng: _Rng) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]


def flip_bit(data: bytes, rng: _Rng) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def insert(data: bytes, rng: _Rng) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(SPECIALS) + data[at:]


def delete(data: bytes, rng: _Rng) -> bytes:
    start, end = _cut(data, rng)
    return data[:start] + data[end:]


def duplicate(data: bytes, rng: _Rng) -> bytes:
    start, end = _cut(data, rng, 200)
    return data[:end] + data[start:end] * rng.choice([1, 1, 3]) + data[end:]


def truncate(data: bytes, rng: _Rng) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def splice(data: bytes, rng: _Rng) -> bytes:
    """Put a part somewhere else."""
    start, end = _cut(data, rng, 100)
    at = rng.randrange(len(data) + 1)
    return data[:at] + data[start:end] + data[at:]


def replace_word(data: bytes, rng: _Rng) -> bytes:
    """Put something strange in the place of a number or an id."""
    words = list(_WORD.finditer(data[:100_000]))
    if not words:
        return insert(data, rng)
    word = rng.choice(words)
    return data[: word.start()] + rng.choice(SPECIALS) + data[word.end() :]


def lose_line_end(data: bytes, rng: _Rng) -> bytes:
    """Replace one line end, or all, by something else."""
    instead = rng.choice([b"", b" ", b"\r", b"\r\n", b"\n\n", b"\n\r", b"\t", b"\0", "\u2028".encode()])
    if rng.random() < 0.2:
        return data.replace(b"\n", instead)
    ends = [found.start() for found in re.finditer(b"\n", data)]
    if not ends:
        return data + instead
    at = rng.choice(ends)
    return data[:at] + instead + data[at + 1 :]


def shuffle_lines(data: bytes, rng: _Rng) -> bytes:
    lines = data.splitlines(keepends=True)
    rng.shuffle(lines)
    return b"".join(lines)


def encode_anew(data: bytes, rng: _Rng) -> bytes:
    text = data.decode("latin-1")
    return rng.choice(
        [lambda: text.encode("utf-16"), lambda: text.encode("utf-16-be"), lambda: b"\xef\xbb\xbf" + data]
    )()


MUTATIONS: list[Mutation] = [
    *(flip_byte, flip_bit, insert, insert, delete, duplicate, truncate, splice, replace_word, replace_word),
    *(lose_line_end, lose_line_end, shuffle_lines, encode_anew),
]


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Return the data after one to three mutations."""
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        data = rng.choice(MUTATIONS)(data, rng) if data else rng.choice(SPECIALS)
    return data
