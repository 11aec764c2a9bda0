"""A report on a model as one HTML file, to send to a colleague."""

from longtail.report.facts import Facts, ReportOptions, gather
from longtail.report.page import Heading, is_report, make_report, render

__all__ = ["Facts", "Heading", "ReportOptions", "gather", "is_report", "make_report", "render"]
