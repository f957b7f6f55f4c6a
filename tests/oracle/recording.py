"""One answer is one line of JSON: its digest, its first letters for people, or the class and words of a refusal."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import json
import os
import re
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

PARTS = ("evaluating", "comparing", "guarding", "outside", "hostile")


def canonical(value: Any) -> str:
    """Write a value so that equal texts mean equal to the bit; floats are hexadecimal."""
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (float, np.floating)):
        return float(value).hex()
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if value is None or isinstance(value, (str, bytes)):
        return repr(value)
    if isinstance(value, np.ndarray):
        return f"{value.dtype.kind}{value.shape}[{', '.join(map(canonical, value.ravel().tolist()))}]"
    if isinstance(value, pd.DataFrame):
        columns = [f"{name!r}: {canonical(value[name])}" for name in value.columns]
        return f"frame {canonical(value.index.to_numpy())} {{{', '.join(columns)}}}"
    if isinstance(value, (pd.Series, pd.Index)):
        return canonical(value.to_numpy())
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{canonical(k)}: {canonical(v)}' for k, v in value.items())}}}"
    if isinstance(value, (set, frozenset)):
        return f"set({', '.join(sorted(map(canonical, value)))})"
    if isinstance(value, (list, tuple)):
        return f"({', '.join(map(canonical, value))})"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        shown = [f.name for f in dataclasses.fields(value) if not f.name.startswith("_")]
        return f"{type(value).__name__}({', '.join(f'{n}={canonical(getattr(value, n))}' for n in shown)})"
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def answer(function: Any) -> dict[str, Any]:
    """Call a function in an empty folder, and return what it gave, refused and warned of."""
    home, here = Path.cwd(), tempfile.mkdtemp(prefix="oracle-")
    os.chdir(here)
    line: dict[str, Any] = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            text = canonical(function()).replace(here, "<here>")
            line |= {"digest": hashlib.sha256(text.encode()).hexdigest()[:24], "shown": text[:300]}
        except (KeyboardInterrupt, MemoryError):
            raise
        except BaseException as error:
            line |= {"refused": type(error).__name__, "words": str(error).replace(here, "<here>")[:600]}
        finally:
            os.chdir(home)
    told = sorted({f"{w.category.__name__}: {str(w.message).replace(here, '<here>')[:200]}" for w in caught})
    return line | ({"warned": told} if told else {})


def record(folder: Path, parts: list[str]) -> None:
    """Write the answers of each part to FOLDER/PART.jsonl; a key that comes twice is a mistake of the part."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in parts:
        started, seen, refused = time.monotonic(), set(), 0
        with (folder / f"{part}.jsonl").open("w") as lines:
            for key, function in importlib.import_module(f"tests.oracle.{part}").calls():
                if key in seen:
                    raise ValueError(f"{part}: {key} comes twice")
                seen.add(key)
                line = answer(function)
                refused += "refused" in line
                lines.write(json.dumps({"call": key} | line) + "\n")
        print(f"{part}: {len(seen)} calls, {refused} refused, {time.monotonic() - started:.0f} s", flush=True)


def compare(old: Path, new: Path) -> int:
    """Print the calls whose answers differ: values, what is refused, then words alone; return 1 if any but words."""
    worse = 0
    for file in sorted(old.glob("*.jsonl")):
        if not (new / file.name).exists():
            print(f"{file.name}: not in {new}")
            worse += 1
            continue
        before, after = _lines(file), _lines(new / file.name)
        kinds: dict[str, list[str]] = {}
        for key, was in before.items():
            kind = _difference(was, after.get(key))
            if kind:
                kinds.setdefault(kind, []).append(key)
        kinds["new calls"] = [key for key in after if key not in before]
        same = len(before) - sum(len(keys) for kind, keys in kinds.items() if kind != "new calls")
        print(f"{file.stem}: {same} of {len(before)} the same")
        for kind, keys in kinds.items():
            worse += kind not in {"words", "new calls"} and len(keys)
            for key in keys[:40]:
                print(f"  {kind}: {key}\n    - {_told(before.get(key))}\n    + {_told(after.get(key))}")
            if len(keys) > 40:
                print(f"  {kind}: {len(keys) - 40} more")
    return int(worse > 0)


def _lines(file: Path) -> dict[str, dict[str, Any]]:
    return {line.pop("call"): line for line in map(json.loads, file.read_text().splitlines())}


def _difference(was: dict[str, Any], now: dict[str, Any] | None) -> str | None:
    if now is None:
        return "gone"
    if "refused" in was or "refused" in now:
        if was.get("refused") != now.get("refused"):
            return "refusal"
        return "words" if was != now else None
    if was["digest"] != now["digest"]:
        return "value"
    return "words" if was != now else None


def _told(line: dict[str, Any] | None) -> str:
    return "nothing" if line is None else f"{line.get('shown') or line.get('refused', '') + ': ' + line['words']}"[:260]


def today(function: Callable[..., Any], *given: Any, **arguments: Any) -> Any:
    """Call a function of model_selection with what was ``groups``, and ``sample_weight`` of means, by today's names."""
    known = signature(function).parameters
    if "groups" in arguments and "unit" in known:
        arguments["unit"] = arguments.pop("groups")
    weights, qid = arguments.get("sample_weight"), arguments.get("qid")
    if "query_weight" in known and ("sample_weight" not in known or function.__name__ == "score"):
        arguments["query_weight"] = arguments.pop("sample_weight", None)
    elif "query_weight" in known and isinstance(weights, np.ndarray) and weights.shape == np.shape(qid):
        pairs = set(zip(map(str, qid), map(str, weights), strict=True))
        arguments["query_weight"] = weights if len(pairs) == len(set(map(str, qid))) else None  # else of rows
    return function(*given, **arguments)


def said_of(ev: Any, name: str) -> Any:
    """Return what an evaluation says under a name: by itself, as it did of old, or by the function of that name."""
    if not hasattr(ev, name):
        if name in ("query_counts", "rule_counts"):
            return ev.facts.query_counts if name == "query_counts" else ev.facts.totals()
        return getattr(importlib.import_module("rankeval.evaluation.result"), {"info": "info_of"}.get(name, name))(ev)
    found = getattr(ev, name)
    return found() if callable(found) else found


def from_bytes(content: bytes) -> Any:
    """Return the evaluation of the bytes of a file."""
    result = importlib.import_module("rankeval.evaluation.result")
    return getattr(result.Evaluation, "from_bytes", getattr(result, "from_bytes", None))(content)


def differences(ev: Any, other: Any) -> list[str]:
    """Return the sentences on how two evaluations differ."""
    merging = importlib.import_module("rankeval.evaluation.merging")
    return ev.differs_from(other) if hasattr(ev, "differs_from") else merging.differences(ev, other)
