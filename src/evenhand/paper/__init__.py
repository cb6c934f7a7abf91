"""The laboratory: what the paper claims, tried again (experiments) and bounded (theory).

What belongs here exists because of the paper and nobody needs it to ship a classifier. What does
not: the method itself. Only the command imports this package.
"""
