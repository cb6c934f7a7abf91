"""The mathematics of one problem: rates, notions, losses and their gradients, updates, solvers.

What belongs here works on arrays and counts and would be the same for any data. Rows appear as the
interface :class:`evenhand.core.rows.Rows`; where they are is unknown here. What does not: data
frames, files, devices, threads, estimators.
"""
