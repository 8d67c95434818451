"""One profiler server: its three calls, and what each way of failing means.

The service is called by name, /tensorflow.ProfilerService, with messages of our own package, so that TensorFlow, JAX
and XProf may live in the same process.
"""

from __future__ import annotations

import threading
from enum import Enum

import grpc

from reportgen.capture.options import CaptureOptions, MissingHost
from reportgen.errors import UsageError
from reportgen.wire import profiler_pb2

_SERVICE = "/tensorflow.ProfilerService/"
_CHANNEL_OPTIONS = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.enable_http_proxy", 0),  # a cluster's hosts and a tunnel's end are not behind the web proxy
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 1000),
)
# The server counts this among its sessions without one being there: a question that changes nothing.
_PROBE_SESSION = "reportgen-probe"
_DETAIL_LIMIT = 300

_START_HINT = (
    "Start it in the training program: jax.profiler.start_server(9012), "
    "tf.profiler.experimental.server.start(9012) or torch_xla.debug.profiler.start_server(9012)."
)


class Failure(Enum):
    """Why a server gave nothing."""

    SILENT = "silent"
    UNREACHABLE = "unreachable"
    FOREIGN = "foreign"
    BUSY = "busy"
    LOST = "lost"
    CANCELLED = "cancelled"
    REFUSED = "refused"


class ServerError(Exception):
    """A call that failed: which way, and the words of gRPC or the server."""

    def __init__(self, failure: Failure, detail: str = "") -> None:
        super().__init__(failure.value, detail)
        self.failure = failure
        self.detail = detail


class ProfilerServer:
    """The profiler server at one address."""

    def __init__(self, address: str, options: CaptureOptions) -> None:
        self.address = address
        self._options = options
        self._channel = _channel(address, options)
        self._profile = self._channel.unary_unary(
            f"{_SERVICE}Profile",
            request_serializer=profiler_pb2.ProfileRequest.SerializeToString,
            response_deserializer=profiler_pb2.RawProfileResponse.FromString,
        )
        self._terminate = self._channel.unary_unary(
            f"{_SERVICE}Terminate",
            request_serializer=profiler_pb2.TerminateRequest.SerializeToString,
            response_deserializer=profiler_pb2.TerminateResponse.FromString,
        )
        self._lock = threading.Lock()
        self._call: grpc.Future | None = None
        self._closed = False

    def probe(self) -> None:
        """Ask for nothing, to see whether a profiler answers.

        Raises:
            ServerError: It does not.

        """
        self._ask_to_stop(_PROBE_SESSION)

    def profile(self, request: profiler_pb2.ProfileRequest, timeout_s: float) -> profiler_pb2.RawProfileResponse:
        """Record a profile; returns when the server hands it over.

        Raises:
            ServerError: It failed, or `close` was called meanwhile.

        """
        with self._lock:
            if self._closed:
                raise ServerError(Failure.CANCELLED)
            call = self._call = self._profile.future(request, timeout=timeout_s)
        try:
            response: profiler_pb2.RawProfileResponse = call.result()
        except grpc.FutureCancelledError:
            raise ServerError(Failure.CANCELLED) from None
        except grpc.RpcError as error:
            raise ServerError(Failure.CANCELLED) if self._closed else _server_error(error, begun=True) from None
        return response

    def stop(self, session: str) -> None:
        """Ask the server to end a session now and hand over what it has.

        Raises:
            ServerError: It did not answer.

        """
        self._ask_to_stop(session)

    def close(self) -> None:
        """Give up any call and hang up."""
        with self._lock:
            self._closed = True
            if self._call is not None:
                self._call.cancel()
        self._channel.close()

    def _ask_to_stop(self, session: str) -> None:
        request = profiler_pb2.TerminateRequest(session_id=session)
        try:
            self._terminate(request, timeout=self._options.connect_timeout_s)
        except grpc.RpcError as error:
            raise _server_error(error, begun=False) from None


def _channel(address: str, options: CaptureOptions) -> grpc.Channel:
    if not options.tls:
        return grpc.insecure_channel(address, options=_CHANNEL_OPTIONS)
    try:
        authorities = options.tls_ca.read_bytes() if options.tls_ca else None
    except OSError as error:
        raise UsageError(f"{options.tls_ca}: cannot be read ({error.strerror}).") from None
    return grpc.secure_channel(address, grpc.ssl_channel_credentials(authorities), options=_CHANNEL_OPTIONS)


def _server_error(error: grpc.RpcError, *, begun: bool) -> ServerError:
    """Sort a failed call; the same code means another thing before and after the profiler answered once."""
    code, detail = error.code(), _printable(error.details() or "")
    if "profiling session" in detail or code is grpc.StatusCode.ALREADY_EXISTS:
        return ServerError(Failure.BUSY, detail)
    failure = {
        grpc.StatusCode.UNAVAILABLE: Failure.LOST if begun else Failure.UNREACHABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED: Failure.SILENT,
        grpc.StatusCode.UNIMPLEMENTED: Failure.FOREIGN,
        grpc.StatusCode.CANCELLED: Failure.LOST if begun else Failure.CANCELLED,
    }.get(code, Failure.REFUSED)
    return ServerError(failure, detail or code.name)


def _printable(text: str) -> str:
    """Return a stranger's words as one line that is safe on a terminal."""
    return "".join(letter if letter.isprintable() else " " for letter in text[:_DETAIL_LIMIT])


def explain(address: str, error: ServerError, options: CaptureOptions, *, begun: bool) -> MissingHost:
    """Put a failure into words: what was found at the address, and what to try.

    Args:
        address: HOST:PORT.
        error: The failed call.
        options: Names the times that ran out.
        begun: Whether the server had answered before, so that the recording itself failed.

    """
    if error.failure is Failure.SILENT and begun:
        allowed = options.delay_s + options.duration_s + options.collect_timeout_s
        return MissingHost(
            address,
            f"the profile did not arrive within {allowed:g} s",
            "Capture for less time, or allow more with --collect-timeout.",
        )
    if error.failure is Failure.UNREACHABLE:
        return _unreachable(address, error.detail)
    reason, hint = {
        Failure.SILENT: (
            f"no answer within {options.connect_timeout_s:g} s (it hangs, is no profiler, or a firewall drops all)",
            "Check host and port; from outside a cluster use a tunnel (ssh -L, kubectl port-forward).",
        ),
        Failure.FOREIGN: (
            "a gRPC server answers, but it is no profiler",
            f"Use the port that the program gave to start_server. {_START_HINT}",
        ),
        Failure.BUSY: (
            f"busy: another capture is running and did not end within {options.busy_wait_s:g} s",
            "Only one profile runs at a time: wait for the other one, or for a trace that the program itself started.",
        ),
        Failure.LOST: (
            f"the connection broke during the capture ({error.detail})",
            "The training process probably ended; see its own output.",
        ),
        Failure.CANCELLED: ("interrupted before its profile arrived", ""),
        Failure.REFUSED: (f"the server refused: {error.detail}", "See the training process's own log."),
    }[error.failure]
    return MissingHost(address, reason, hint)


def _unreachable(address: str, detail: str) -> MissingHost:
    lowered = detail.lower()
    if "refused" in lowered:
        return MissingHost(address, "nothing listens there (connection refused)", _START_HINT)
    if "resol" in lowered or "lookup" in lowered:
        return MissingHost(address, "the host name is not known here", "Check its spelling, or use its IP address.")
    if "http/2" in lowered or "http1" in lowered or "parsing" in lowered:
        return MissingHost(
            address,
            "something listens there that is no profiler: it does not speak gRPC (a web server?)",
            "Use the port that the program gave to start_server, not the one of TensorBoard or XProf.",
        )
    if "ssl" in lowered or "tls" in lowered or "handshake" in lowered or "certificate" in lowered:
        return MissingHost(
            address, f"the encrypted connection failed ({detail})", "Profiler servers have no TLS: leave out --tls."
        )
    return MissingHost(address, f"it cannot be reached ({detail})", "Check host, port and firewall.")
