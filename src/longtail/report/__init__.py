"""A report on a model as one HTML file: what one sends to a colleague."""

from longtail.report.facts import Facts, gather
from longtail.report.page import Heading, render

__all__ = ["Facts", "Heading", "gather", "render"]
