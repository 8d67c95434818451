"""One recording on all hosts: a thread for each waits, asks, tries again and writes what came."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

from reportgen.capture.addresses import file_stem
from reportgen.capture.contents import look
from reportgen.capture.options import CapturedHost, CaptureOptions, MissingHost
from reportgen.capture.rpc import Failure, ProfilerServer, ServerError, explain
from reportgen.capture.store import RunFolder, read_server_file, server_root
from reportgen.wire import profiler_pb2

Progress = Callable[[str], None]
Outcome = CapturedHost | MissingHost
T = TypeVar("T")

_PAUSE_S = 0.5
# Time for the request to reach every host before the common start.
_LEAD_S = 0.2


class Session:
    """A recording on several servers.

    Attributes:
        stopped: Set once Ctrl-C ended it.
        warnings: What went wrong beside the outcome of a host.

    """

    def __init__(self, run: RunFolder, options: CaptureOptions, servers: list[ProfilerServer]) -> None:
        self.stopped = threading.Event()
        self.warnings: list[str] = []
        self._run, self._options, self._servers = run, options, servers
        self._pool = ThreadPoolExecutor(2 * len(servers), "capture")  # a second thread each, to tell it to stop

    def run(self, progress: Progress) -> list[Outcome]:
        """Wait for the servers, start all at once, and collect; Ctrl-C ends the recording early."""
        options, servers = self._options, self._servers
        if options.wait_s:
            progress(f"waiting up to {options.wait_s:g} s for {len(servers)} server(s)")
        give_up = time.monotonic() + options.wait_s
        absent = self._each(lambda server: self._await(server, give_up), servers)
        ready = [server for server, missing in zip(servers, absent, strict=True) if missing is None]
        if ready:
            progress(f"capturing {options.duration_s:.3g} s from {len(ready)} of {len(servers)} host(s)")
        start = time.time() + options.delay_s + (_LEAD_S if len(ready) > 1 else 0.0)
        outcomes = iter(self._each(lambda server: self._capture(server, start), ready))
        return [missing or next(outcomes) for missing in absent]

    def close(self) -> None:
        """Hang up."""
        for server in self._servers:
            server.close()
        self._pool.shutdown(cancel_futures=True)

    def _each(self, work: Callable[[ProfilerServer], T], servers: list[ProfilerServer]) -> list[T]:
        futures = [self._pool.submit(work, server) for server in servers]
        try:
            wait(futures)
        except KeyboardInterrupt:
            self._stop(futures)
        return [future.result() for future in futures]

    def _stop(self, futures: Sequence[Future[T]]) -> None:
        """Tell the servers to end and wait for what they have; a second Ctrl-C goes without it."""
        self.stopped.set()
        try:
            wait([self._pool.submit(self._stop_one, server) for server in self._servers])
            wait(futures)
        except KeyboardInterrupt:
            for server in self._servers:
                server.close()

    def _stop_one(self, server: ProfilerServer) -> None:
        try:
            server.stop(self._run.path.name)
        except ServerError as error:
            self.warnings.append(f"{server.address}: could not be told to stop ({error.detail}).")

    def _await(self, server: ProfilerServer, give_up: float) -> MissingHost | None:
        """Wait until a server answers; says why not when the time is up."""
        while True:
            try:
                server.probe()
            except ServerError as error:
                if error.failure is Failure.FOREIGN:
                    return None  # an old profiler may lack this call: the recording itself will tell
                if time.monotonic() >= give_up or self.stopped.wait(_PAUSE_S):
                    return explain(server.address, error, self._options, begun=False)
            else:
                return None

    def _capture(self, server: ProfilerServer, start: float) -> Outcome:
        """Record on one server, again while another capture holds it."""
        options = self._options
        request = self._request(server, start)
        allowed = options.delay_s + _LEAD_S + options.duration_s + options.collect_timeout_s
        give_up = time.monotonic() + options.delay_s + options.busy_wait_s
        while not self.stopped.is_set():
            late = time.time() - start
            try:
                response = server.profile(request, allowed)
            except ServerError as error:
                if error.failure is Failure.BUSY and time.monotonic() < give_up:
                    self.stopped.wait(_PAUSE_S)
                    continue
                return explain(server.address, error, options, begun=True)
            if late > _LEAD_S and len(self._servers) > 1:
                self.warnings.append(f"{server.address}: was busy and began {late:.1f} s after the common start.")
            return self._keep(server, response)
        return MissingHost(server.address, "interrupted before its recording began")

    def _request(self, server: ProfilerServer, start: float) -> profiler_pb2.ProfileRequest:
        levels = self._options.levels
        duration_ms = max(1, round(self._options.duration_s * 1000))
        return profiler_pb2.ProfileRequest(
            duration_ms=duration_ms,
            max_events=1_000_000,
            repository_root=self._server_root(),
            session_id=self._run.path.name,
            host_name=file_stem(server.address),
            emit_xspace=True,
            opts=profiler_pb2.ProfileOptions(
                version=1,  # 0 would make the server ignore the rest
                include_dataset_ops=True,
                host_tracer_level=levels.host,
                device_tracer_level=levels.device,
                python_tracer_level=levels.python,
                enable_hlo_proto=True,
                start_timestamp_ns=0 if start <= time.time() else int(start * 1e9),  # 0 is at once
                duration_ms=duration_ms,
            ),
        )

    def _server_root(self) -> str:
        if self._options.server_logdir is not None:
            return server_root(self._options.server_logdir)
        return str(self._run.path.parent)

    def _keep(self, server: ProfilerServer, response: profiler_pb2.RawProfileResponse) -> Outcome:
        """Write what a server sent, or read what an older one wrote to a disk."""
        stem = file_stem(server.address)
        profile: bytes | None = response.xspace
        if not profile:
            elsewhere = f"{self._server_root()}/{self._run.path.name}/{stem}.xplane.pb"
            profile = read_server_file(elsewhere)
            if profile is None:
                return MissingHost(
                    server.address,
                    f"its profiler is too old to send the profile: it wrote {elsewhere} on its own disk",
                    "Copy that file here, or name with --server-logdir a folder or bucket that both sides reach.",
                )
        path = self._run.write(stem, profile)
        contents = look(profile)
        if response.empty_trace or (contents.steps is not None and not contents.events):
            path.unlink()
            return MissingHost(
                server.address,
                "the trace came back empty: nothing ran while it was recorded",
                "Capture for longer (--duration), later (--delay), while the training loop runs (--until-steps)"
                + (", or with --host-level 1 or more." if not self._options.levels.host else "."),
                empty=True,
            )
        return CapturedHost(server.address, path, len(profile), contents.hostname, contents.steps)
