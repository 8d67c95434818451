"""Servers that fail in every known way, and stand-ins on the real wire contract."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack
from pathlib import Path

import grpc
import pytest

from reportgen.capture.client import capture_run
from reportgen.capture.options import CaptureOptions
from reportgen.errors import CaptureError, UsageError
from tests.capture.servers import StandIn, free_port, make_profile, mute_listener, serving, web_server

QUICK = CaptureOptions(duration_s=0.01, busy_wait_s=0)


def failure_at(address: str, logdir: Path, options: CaptureOptions = QUICK) -> CaptureError:
    """Return the error of a capture that must fail and leave nothing behind."""
    with pytest.raises(CaptureError) as caught:
        capture_run([address], logdir, options)
    assert address in caught.value.message
    assert caught.value.exit_code == 4
    assert list(logdir.iterdir()) == []
    return caught.value


def test_nothing_listens(tmp_path: Path) -> None:
    error = failure_at(f"127.0.0.1:{free_port()}", tmp_path)
    assert "nothing listens there (connection refused)" in error.message
    assert "start_server" in error.hint


def test_unknown_host(tmp_path: Path) -> None:
    error = failure_at("no-such-host.invalid:9012", tmp_path)
    assert "the host name is not known here" in error.message


def test_plain_web_server(tmp_path: Path) -> None:
    with web_server() as address:
        error = failure_at(address, tmp_path)
    assert "no profiler: it does not speak gRPC" in error.message
    assert "TensorBoard or XProf" in error.hint


def test_server_that_never_answers(tmp_path: Path) -> None:
    with mute_listener() as address:
        error = failure_at(address, tmp_path, CaptureOptions(duration_s=0.01, connect_timeout_s=1))
    assert "no answer within 1 s" in error.message
    assert "tunnel" in error.hint


def test_grpc_server_without_a_profiler(tmp_path: Path) -> None:
    class Other(grpc.GenericRpcHandler):
        def service(self, _details: grpc.HandlerCallDetails) -> None:
            """Know no method."""

    with serving(Other()) as address:
        error = failure_at(address, tmp_path)
    assert "a gRPC server answers, but it is no profiler" in error.message


def test_profiler_that_hangs_after_the_recording(tmp_path: Path) -> None:
    class Hanging(StandIn):
        def _answer(self, request: object, context: grpc.ServicerContext) -> bytes:
            while context.is_active():
                released.wait(0.05)
            return b""

    import threading

    released = threading.Event()
    with serving(Hanging(b"")) as address:
        error = failure_at(address, tmp_path, CaptureOptions(duration_s=0.1, collect_timeout_s=0.4))
        released.set()
    assert "the profile did not arrive within 0.5 s" in error.message
    assert "--collect-timeout" in error.hint


def test_server_that_refuses_with_words_for_a_terminal(tmp_path: Path) -> None:
    class Refusing(StandIn):
        def _answer(self, request: object, context: grpc.ServicerContext) -> bytes:
            context.abort(grpc.StatusCode.PERMISSION_DENIED, "not \x1b[31myou\x07\n" + "!" * 5000)
            return b""

    with serving(Refusing(b"")) as address:
        error = failure_at(address, tmp_path)
    assert "the server refused: not  [31myou" in error.message
    assert error.message.isprintable()
    assert len(error.message) < 400


def test_every_host_and_reason_is_named_when_all_are_missing(tmp_path: Path) -> None:
    refused = f"127.0.0.1:{free_port()}"
    with web_server() as web, pytest.raises(CaptureError) as caught:
        capture_run([refused, web], tmp_path, QUICK)
    assert "None of the 2 hosts" in caught.value.message
    assert f"{refused}: nothing listens" in caught.value.message
    assert f"{web}: something listens there that is no profiler" in caught.value.message


def test_what_is_written_is_what_was_sent(tmp_path: Path) -> None:
    profile = make_profile(extra=b"\xfa\x7e\x03abc")  # a field that nobody knows yet
    with serving(StandIn(profile)) as address:
        result = capture_run([address], tmp_path, QUICK)
    assert result.captured[0].path.read_bytes() == profile
    assert result.captured[0].steps == 3
    assert result.captured[0].hostname == "stand-in"


def test_profile_larger_than_grpc_allows_by_default(tmp_path: Path) -> None:
    profile = make_profile(extra=b"\xfa\x7e\x80\x80\x80\x08" + bytes(16 << 20))
    with serving(StandIn(profile)) as address:
        assert capture_run([address], tmp_path, QUICK).captured[0].size == len(profile)


def test_all_hosts_are_asked_for_the_same_start(tmp_path: Path) -> None:
    hosts = [StandIn(make_profile()) for _ in range(3)]
    with ExitStack() as stack:
        addresses = [stack.enter_context(serving(host)) for host in hosts]
        options = CaptureOptions(duration_s=0.25, delay_s=0.1)
        result = capture_run(addresses, tmp_path, options)
    requests = [host.requests[0] for host in hosts]
    assert len({request.opts.start_timestamp_ns for request in requests}) == 1
    assert requests[0].opts.start_timestamp_ns > 1_500_000_000 * 10**9
    assert {request.session_id for request in requests} == {result.run_folder.name}
    assert [request.host_name for request in requests] == [address.replace(":", "_") for address in addresses]
    assert all(request.emit_xspace and request.opts.duration_ms == 250 for request in requests)
    assert all(request.opts.version == 1 and request.opts.enable_hlo_proto for request in requests)


def test_older_server_writes_to_a_disk_that_both_see(tmp_path: Path) -> None:
    with serving(StandIn(make_profile(), emits=False)) as address:
        result = capture_run([address], tmp_path, QUICK)
    assert result.captured[0].path.read_bytes() == make_profile()
    assert len(list(result.run_folder.iterdir())) == 1


def test_older_server_writes_to_a_disk_of_its_own(tmp_path: Path) -> None:
    with serving(StandIn(make_profile(), emits=False, disk=tmp_path / "disk")) as address:
        logs = tmp_path / "logs"
        logs.mkdir()
        error = failure_at(address, logs)
    place = f"{logs}/plugins/profile/"
    assert "too old to send the profile" in error.message
    assert f"it wrote {place}" in error.message
    assert f"/{address.replace(':', '_')}.xplane.pb on its own disk" in error.message
    assert "--server-logdir" in error.hint
    assert len(list((tmp_path / "disk").rglob("*.xplane.pb"))) == 1


def test_older_server_writes_to_a_bucket(tmp_path: Path) -> None:
    older = StandIn(make_profile(), emits=False)
    options = CaptureOptions(duration_s=0.01, server_logdir="memory://bucket/logs/")
    with serving(older) as address:
        result = capture_run([address], tmp_path, options)
    assert older.requests[0].repository_root == "memory://bucket/logs/plugins/profile"
    assert result.captured[0].path.is_relative_to(tmp_path)
    assert result.captured[0].path.read_bytes() == make_profile()


def test_older_server_without_the_call_that_ends_a_session(tmp_path: Path) -> None:
    with serving(StandIn(make_profile(), knows_terminate=False)) as address:
        assert capture_run([address], tmp_path, QUICK).captured[0].steps == 3


def test_profile_without_steps_is_kept_with_a_warning(tmp_path: Path) -> None:
    space_without_step_numbers = make_profile().replace(b"step_num", b"step_nix")
    with serving(StandIn(space_without_step_numbers)) as address:
        result = capture_run([address], tmp_path, QUICK)
    assert result.captured[0].steps == 0
    assert "no step was caught" in result.warnings[0]
    assert "StepTraceAnnotation" in result.warnings[0]


def test_damaged_profile_is_kept_with_its_steps_unknown(tmp_path: Path) -> None:
    with serving(StandIn(b"\xff\xff\xff")) as address:
        result = capture_run([address], tmp_path, QUICK)
    assert result.captured[0].steps is None
    assert result.captured[0].path.read_bytes() == b"\xff\xff\xff"


def test_longer_capture_that_fails_keeps_the_first(tmp_path: Path) -> None:
    class Once(StandIn):
        def _answer(self, request: object, context: grpc.ServicerContext) -> bytes:
            if self.requests:
                context.abort(grpc.StatusCode.UNKNOWN, "gone")
            return super()._answer(request, context)  # type: ignore[arg-type]

    with serving(Once(make_profile())) as address:
        result = capture_run([address], tmp_path, CaptureOptions(duration_s=0.01, until_steps=50))
    assert result.captured[0].steps == 3
    assert result.captured[0].path.is_file()
    assert "A longer capture gave nothing: the server refused: gone" in result.warnings[0]


def test_captures_of_one_second_get_folders_of_their_own(tmp_path: Path) -> None:
    with serving(StandIn(make_profile())) as address:
        folders = {capture_run([address], tmp_path, QUICK).run_folder for _ in range(3)}
    assert len(folders) == 3
    assert all(len(list(folder.iterdir())) == 1 for folder in folders)


def test_log_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot write there"):
        capture_run(["a:1"], tmp_path / "file" / "logs", QUICK)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes, Path]:
    """Return a key, a certificate for 127.0.0.1, and the certificate's file."""
    folder = tmp_path_factory.mktemp("tls")
    key, file = folder / "key.pem", folder / "certificate.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=127.0.0.1"
    extra = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(file)]
    subprocess.run([*command.split(), *extra], check=True, capture_output=True)
    return key.read_bytes(), file.read_bytes(), file


def test_encrypted_connection(certificate: tuple[bytes, bytes, Path], tmp_path: Path) -> None:
    key, chain, file = certificate
    options = CaptureOptions(duration_s=0.01, connect_timeout_s=5, tls=True, tls_ca=file)
    with serving(StandIn(make_profile()), tls=(key, chain)) as address:
        assert capture_run([address], tmp_path, options).captured[0].steps == 3


def test_encrypted_connection_to_a_server_that_has_no_tls(
    certificate: tuple[bytes, bytes, Path], tmp_path: Path
) -> None:
    options = CaptureOptions(duration_s=0.01, connect_timeout_s=5, tls=True, tls_ca=certificate[2])
    with serving(StandIn(make_profile())) as address:
        error = failure_at(address, tmp_path, options)
    assert "the encrypted connection failed" in error.message
    assert "leave out --tls" in error.hint
