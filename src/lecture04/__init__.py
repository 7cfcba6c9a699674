"""Lecture04: an ablation workbench for Transformer parts."""
