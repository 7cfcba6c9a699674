"""What can be set, what follows from it, and every sentence on what cannot be: without torch."""

from lecture04.config import parts
from lecture04.config.errors import UserError
from lecture04.config.fields import Options, asked, bounded, opened
from lecture04.config.parts import *  # noqa: F403 (its __all__)
from lecture04.config.schema import (
    Architecture,
    Design,
    Evaluation,
    Origin,
    Request,
    Reuse,
    Run,
    Session,
    Settings,
    Table,
    Trainer,
)

__all__ = [
    "Architecture", "Design", "Evaluation", "Options", "Origin", "Request", "Reuse", "Run", "Session", "Settings",
    "Table", "Trainer", "UserError", "asked", "bounded", "opened",
]  # fmt: skip
__all__ += parts.__all__
