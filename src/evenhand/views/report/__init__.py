"""The report: one HTML file for the reader who decides."""

from evenhand._extras import import_extra

import_extra("jinja2", "cli")

from evenhand.views.report.page import render  # noqa: E402
from evenhand.views.report.save import save_report  # noqa: E402

__all__ = ["render", "save_report"]
