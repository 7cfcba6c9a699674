"""Lecture04: an ablation workbench for Transformer parts."""

from lecture04.config.registry import register

__all__ = ["register"]
