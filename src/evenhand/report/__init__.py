"""The report: one HTML file for the reader who decides."""

from evenhand.report._render import render

__all__ = ["render"]
