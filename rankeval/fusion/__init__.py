"""Fuse runs into one: by ranks, by scores under a norm, or by a weighted sum."""

from __future__ import annotations

from rankeval.fusion.fusing import Fuser as Fuser
from rankeval.fusion.fusing import fuse as fuse
from rankeval.fusion.fusion_methods import METHODS as METHODS
from rankeval.fusion.fusion_methods import NORMS as NORMS
