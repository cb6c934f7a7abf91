"""The estimators: what scikit-learn's users hold, and how arrays become the rows of a fit.

What belongs here has ``fit`` and ``predict``, or checks and codes what is given to them. What does
not: tables with text (:mod:`evenhand.tables`), other people's methods (:mod:`evenhand.peers`).
"""
