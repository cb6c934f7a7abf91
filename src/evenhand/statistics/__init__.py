"""Statistics on counts: what hits among trials say of the rates in the population.

What belongs here takes counts per group and gives intervals, exact tests, bounds of a target's
value and how many rows would settle it; selection, audit and report use it. What does not: where
counts come from, and which point is chosen by what they say (:mod:`evenhand.frontier`).
"""
