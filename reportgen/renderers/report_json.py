"""The document itself, for machines."""

from __future__ import annotations

from reportgen.document import ReportDocument, to_json
from reportgen.renderers.base import Rendered

NAME = "report.json"


def render_json(document: ReportDocument) -> Rendered:
    """Render a document as `report.json`, from which every other format can be made again."""
    return Rendered({NAME: to_json(document)})
