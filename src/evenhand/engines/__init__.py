"""Where rows are and how sums over them are found: in memory, on a device, in files, on a cluster.

What belongs here implements :class:`evenhand.core.rows.Rows`, which applies a function to blocks of
rows and joins the results, or makes that fast. What does not: what the sums mean
(:mod:`evenhand.core`); the same functions serve every engine.
"""
