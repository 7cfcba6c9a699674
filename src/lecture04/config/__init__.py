"""What can be set, what follows from it, and every sentence on what cannot be: without torch."""

from lecture04.config.schema import *  # noqa: F403
