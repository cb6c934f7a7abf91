"""Model files: plain data that whoever wrote it cannot make run, and export to ONNX.

What belongs here turns a fitted pipeline into bytes and back, and distrusts the bytes. What does
not: tables (:mod:`evenhand.tables`) and pages (:mod:`evenhand.views`).
"""
