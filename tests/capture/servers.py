"""Servers for the tests: real ones in processes of their own, and stand-ins on the real wire contract."""

from __future__ import annotations

import contextlib
import http.server
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fsspec
import grpc

from reportgen.wire import profiler_pb2, xplane_pb2

PROGRAMS = Path(__file__).parent / "programs"
ROOT = Path(__file__).parents[2]
START_LIMIT_S = 120


def environment(**changes: str) -> dict[str, str]:
    """Return the environment of a program under test: on the CPU, quiet, with this reportgen."""
    known = {"JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3", "PJRT_DEVICE": "CPU", "PYTHONPATH": str(ROOT)}
    return {**os.environ, **known, **changes}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


class Program:
    """A program with a profiler server, in a process of its own that ends by itself."""

    def __init__(self, name: str, pause_ms: float = 5, lifetime_s: float = 900, python: str = sys.executable) -> None:
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        command = [python, str(PROGRAMS / name), str(self.port), str(lifetime_s), str(pause_ms)]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment()
        )

    def ready(self) -> Program:
        """Wait until the server listens and the loop runs."""
        assert self.process.stdout is not None
        watchdog = threading.Timer(START_LIMIT_S, self.process.kill)
        watchdog.start()
        line = self.process.stdout.readline()
        watchdog.cancel()
        assert line == "ready\n", f"the server did not start (exit code {self.process.poll()})"
        return self

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


def make_profile(steps: int = 3, extra: bytes = b"") -> bytes:
    """Return a small XSpace with marked steps; `extra` is appended as it is."""
    space = xplane_pb2.XSpace(hostnames=["stand-in"])
    plane = space.planes.add(name="/host:CPU")
    plane.stat_metadata[1].id = 1
    plane.stat_metadata[1].name = b"step_num"
    plane.event_metadata[1].id = 1
    plane.event_metadata[1].name = b"train"
    line = plane.lines.add(name="python")
    for number in range(steps):
        event = line.events.add(metadata_id=1, offset_ps=number * 1000, duration_ps=900)
        event.stats.add(metadata_id=1, int64_value=number)
    return space.SerializeToString() + extra


class StandIn(grpc.GenericRpcHandler):
    """A profiler service that keeps what it was asked, and answers from memory.

    Args:
        profile: What it records; b"" for an empty trace.
        emits: Whether it knows emit_xspace; an older one writes to its disk instead.
        disk: The folder that stands for "/" of its disk; None for the real one.
        knows_terminate: Whether it has the call that ends a session.

    """

    def __init__(
        self, profile: bytes, *, emits: bool = True, disk: Path | None = None, knows_terminate: bool = True
    ) -> None:
        self.requests: list[profiler_pb2.ProfileRequest] = []
        self.terminated: list[str] = []
        self._profile, self._emits, self._disk, self._knows_terminate = profile, emits, disk, knows_terminate

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        if details.method == "/tensorflow.ProfilerService/Profile":
            return grpc.unary_unary_rpc_method_handler(self._answer, profiler_pb2.ProfileRequest.FromString)
        if details.method == "/tensorflow.ProfilerService/Terminate" and self._knows_terminate:
            return grpc.unary_unary_rpc_method_handler(self._end, profiler_pb2.TerminateRequest.FromString)
        return None

    def _answer(self, request: profiler_pb2.ProfileRequest, _context: grpc.ServicerContext) -> bytes:
        self.requests.append(request)
        if self._emits:
            response = profiler_pb2.RawProfileResponse(empty_trace=not self._profile, xspace=self._profile)
            return response.SerializeToString()
        root = request.repository_root if self._disk is None else f"{self._disk}{request.repository_root}"
        address = f"{root}/{request.session_id}/{request.host_name}.xplane.pb"
        with fsspec.open(address, "wb", auto_mkdir=True) as stream:
            stream.write(self._profile)
        return b""

    def _end(self, request: profiler_pb2.TerminateRequest, _context: grpc.ServicerContext) -> bytes:
        self.terminated.append(request.session_id)
        return b""


@contextlib.contextmanager
def serving(*handlers: grpc.GenericRpcHandler, tls: tuple[bytes, bytes] | None = None) -> Iterator[str]:
    """Serve handlers on loopback; yields the address. `tls` is a key and a certificate."""
    options = [("grpc.max_send_message_length", -1)]
    server = grpc.server(ThreadPoolExecutor(8), handlers=handlers, options=options)
    if tls is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([tls]))
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


@contextlib.contextmanager
def web_server() -> Iterator[str]:
    """Serve plain HTTP."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with http.server.HTTPServer(("127.0.0.1", 0), Quiet) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def mute_listener() -> Iterator[str]:
    """Listen and never answer."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(8)
        yield f"127.0.0.1:{listener.getsockname()[1]}"
