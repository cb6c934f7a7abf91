"""The command ``evenhand``: options in, exit codes out.

What belongs here reads options, calls :mod:`evenhand.workflow` and prints what
:mod:`evenhand.views` makes of it. What does not: anything that a Python user would want as well.
"""
