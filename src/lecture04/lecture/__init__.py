"""The lecture, reproduced: `lecture04 lecture [SECTION ...]` runs, judges and writes outputs/lecture/.

claims.yaml    what the lecture says, an entry per claim; claims.py reads it
items.py       what there is to run, in order: probes, sweeps, tests
fresh.py       whether an item's result is there and is what its command would give today
running.py     items in subprocesses, with their logs and progress
evidence.py    what judges read: probes' tables, sweeps' results, tests' outcomes
judges/        one small function per claim, a file per section
ledger.py      claims and evidence to findings, claims.csv
sections.yaml  the pages' prose, subsection by subsection
pages/         a page a section: one model of it, written as Markdown and as HTML
plots/         their pictures, one function each
"""
