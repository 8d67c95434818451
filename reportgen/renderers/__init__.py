"""Renderers: from a document alone to files in one format."""

from __future__ import annotations

from typing import Any

from reportgen.document import ReportDocument
from reportgen.errors import UsageError
from reportgen.renderers.base import Rendered, Renderer
from reportgen.renderers.html import render_html
from reportgen.renderers.mail import render_mail
from reportgen.renderers.markdown import render_markdown
from reportgen.renderers.report_json import render_json

__all__ = ["RENDERERS", "Rendered", "Renderer", "render"]

RENDERERS: dict[str, Renderer] = {"html": render_html, "md": render_markdown, "json": render_json, "mail": render_mail}


def render(document: ReportDocument, name: str, **options: Any) -> Rendered:
    """Render a document in a format; options go to its renderer.

    Raises:
        UsageError: There is no renderer of that name.

    """
    if name not in RENDERERS:
        known = ", ".join(sorted(RENDERERS))
        raise UsageError(f"Expected a format that can be rendered ({known}), found {name!r}.", f"Use one of {known}.")
    return RENDERERS[name](document, **options)
