"""Reports on models and on data as single HTML files, to send to a colleague."""

from longtail.report.audit_page import render_audit
from longtail.report.data_page import DataHeading, render_check
from longtail.report.facts import Facts, ReportOptions, gather
from longtail.report.page import Heading, is_report, make_report, render

__all__ = [
    "DataHeading",
    "Facts",
    "Heading",
    "ReportOptions",
    "gather",
    "is_report",
    "make_report",
    "render",
    "render_audit",
    "render_check",
]
