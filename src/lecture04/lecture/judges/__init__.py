"""Where claims are judged: a function per claim, a file per section of the notebook. Importing this registers all.

world       section 0: the corpus and the standard model
ffn         section 1: activations, gated feed-forward layers, sparsity
norm        section 2: LayerNorm and RMSNorm, pre-norm and post-norm
attention   section 3: the KV cache, MQA and GQA, MLA
uptraining  section 3.4: from MHA to GQA and MQA
position    section 4: absolute, relative, rotated; beyond the trained length
recipe      section 5: the parts together
figures     single figures of a probe's table: reading and writing them
compare     differences between rows of a sweep, and their verdicts
shares      how often a recipe's runs collapse
"""

from lecture04.lecture.judges import attention, ffn, norm, position, recipe, uptraining, world

__all__ = ["attention", "ffn", "norm", "position", "recipe", "uptraining", "world"]
