"""From a file or a data frame as it comes to numbers, labels and groups.

What belongs here reads and writes tables, parses their columns, makes inputs of them and joins that
to an estimator in a pipeline. What does not: model files (:mod:`evenhand.persist`) and what a
command does with a table (:mod:`evenhand.workflow`).
"""
