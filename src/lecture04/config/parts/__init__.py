"""The options of every family, one file a family: bounds, errors, parameters, FLOPs and KV numbers of a part."""

from lecture04.config.parts.attention import MLA, Attention, MultiHead, MultiQuery
from lecture04.config.parts.context import Context, Model
from lecture04.config.parts.data import SPLITS, Data, Facts, Garden, Garden1, Layout, Stream
from lecture04.config.parts.ffn import FFN, GatedFFN, Match, Swish
from lecture04.config.parts.norm import CentredNorm, Norm, Placement, PostNorm, SandwichNorm
from lecture04.config.parts.posenc import T5, Learned, PosEnc, Rope, RopeScaling, Scaling, Shaw
from lecture04.config.parts.tasks import (
    MQAR,
    Addition,
    FixedLength,
    Induction,
    Lengths,
    SelectiveCopy,
    Sequences,
    Task,
)
from lecture04.config.parts.text import Boundary, Prepared, SplitBy, Text
from lecture04.config.parts.training import SGD, AdamW, Init, Logger, Merge, Optim, Schedule, Uptrain, WandB

__all__ = [
    "AdamW", "Addition", "Attention", "Boundary", "CentredNorm", "Context", "Data", "FFN", "Facts", "FixedLength",
    "Garden", "Garden1", "GatedFFN", "Induction", "Init", "Layout", "Learned", "Lengths", "Logger", "MLA", "MQAR",
    "Match", "Merge", "Model", "MultiHead", "MultiQuery", "Norm", "Optim", "Placement", "PosEnc", "PostNorm",
    "Prepared", "Rope", "RopeScaling", "SGD", "SPLITS", "SandwichNorm", "Scaling", "Schedule", "SelectiveCopy",
    "Sequences", "Shaw", "SplitBy", "Stream", "Swish", "T5", "Task", "Text", "Uptrain", "WandB",
]  # fmt: skip
