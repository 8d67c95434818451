"""Comparing reports: what a step takes now and before, which ops account for it, and whether it exceeds the noise."""

from reportgen.comparison.compare import Comparison, Options, compare
from reportgen.comparison.present import comparison_document

__all__ = ["Comparison", "Options", "compare", "comparison_document"]
