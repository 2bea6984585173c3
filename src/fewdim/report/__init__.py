"""The report of a recorded run: one HTML file, made from its journal alone."""

from fewdim.report.data import CITATION, dimension_data, run_data
from fewdim.report.page import html, write_report

__all__ = ["CITATION", "dimension_data", "html", "run_data", "write_report"]
