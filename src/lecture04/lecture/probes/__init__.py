"""Questions that need no training of their own: `python probe.py probe=NAME`. One file a question.

A probe is a function from a settled config to a tidy DataFrame, `@register("probe", NAME)`, with conf/probe/NAME.yaml
beside it; what can be set of it alone is a dataclass in options.py. Its module may also have

    shown(table)    {title: frame}, the table as a reader wants it; without it the tidy table itself is shown
    plot(table)     a matplotlib Figure, where a plot says more

Where a row answers a claim of the lecture, the column `claim` names it.
"""
