"""Questions that need no training of their own: `python probe.py probe=NAME`. One file per question.

A probe is a function from a resolved config to a tidy DataFrame, `@register("probe", NAME)`, with conf/probe/NAME.yaml
beside it; options of its own are a dataclass in options.py. Its module has

    sentence(table) what the table shows, in a sentence or two made of its figures
    shown(table)    {title: frame}, the table for a reader; without it the tidy table itself is shown
    plot(table)     a matplotlib Figure, where there is something to draw

In a tidy table every value of a text column but names of models and rows is a short identifier (`zero_share`); a
dictionary of the module, as a rule LABELS, has the text that `shown` gives for it. Where a row answers a claim of the
lecture, the column `claim` names it.
"""
