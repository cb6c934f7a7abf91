"""Every cut of every iterate, which of them are worth keeping, and which one answers a target.

What belongs here turns a trajectory into a frontier and a frontier into a choice: cuts, histograms
of scores, bounds from counts, rows set aside, guarantees, mixtures. What does not: how the
iterates were found (:mod:`evenhand.core`) and how users give data (:mod:`evenhand.models`).
"""
