"""The report: one HTML file for the reader who decides."""

from evenhand.views.report.page import render
from evenhand.views.report.save import save_report

__all__ = ["render", "save_report"]
