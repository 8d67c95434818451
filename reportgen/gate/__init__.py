"""The gate for CI: limits on metrics and findings, absolute or against a baseline, and results as CI reads them."""

from reportgen.gate.budgets import Budgets, FindingBudget, MetricBudget, read_budgets
from reportgen.gate.check import GateResult, Outcome, check

__all__ = ["Budgets", "FindingBudget", "GateResult", "MetricBudget", "Outcome", "check", "read_budgets"]
