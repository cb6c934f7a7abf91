"""The tool as functions: audit, train, summarise, compare, without a terminal.

What belongs here is what a command does with a table, and gives plain values. What does not: how
they are shown (:mod:`evenhand.views`) and how options are read (:mod:`evenhand.cli`).
"""
