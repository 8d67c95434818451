"""Capture from the profiler servers of one or many hosts at once, over gRPC."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from reportgen.capture.addresses import parse_addresses
from reportgen.capture.options import CapturedHost, CaptureOptions, CaptureResult, MissingHost
from reportgen.capture.rpc import ProfilerServer
from reportgen.capture.session import Progress, Session
from reportgen.capture.store import RunFolder, remove_run
from reportgen.errors import CaptureError

_TRIES_LIMIT = 5
# Without a single step there is no rate to reckon with.
_GROWTH_WITHOUT_STEPS = 4.0


def capture_run(
    addresses: Sequence[str],
    logdir: str | Path,
    options: CaptureOptions | None = None,
    progress: Progress = lambda _line: None,
) -> CaptureResult:
    """Capture a profile from every server at once and write LOGDIR/plugins/profile/RUN/HOST.xplane.pb.

    All hosts start at the same time stamp, on their own clocks. Hosts that give nothing are named in the result.
    After Ctrl-C the servers are told to stop, and what they had recorded is kept.

    Args:
        addresses: HOST:PORT of the servers; "a:1,b:2" and "grpc://a:1" are understood too.
        logdir: The log folder; it is made.
        options: How to go about it.
        progress: Is told what is going on, a line at a time.

    Raises:
        UsageError: An address or the log folder cannot be used.
        CaptureError: No host gave a profile; the message tells why for each.
        KeyboardInterrupt: Ctrl-C came before any host had recorded anything.

    """
    options = options or CaptureOptions()
    servers = parse_addresses(addresses)
    result = _capture_once(servers, Path(logdir), options, progress)
    for _ in range(_TRIES_LIMIT - 1):
        longer = _longer(result, options)
        if longer is None:
            break
        progress(f"caught fewer than {options.until_steps} steps: again, for {longer.duration_s:.3g} s")
        newer = _capture_once(servers, Path(logdir), longer, progress)
        if result.captured and not newer.captured:
            failed = f"A longer capture gave nothing: {newer.missing[0].reason}."
            result = replace(result, interrupted=newer.interrupted, warnings=(*result.warnings, failed))
            break
        remove_run(result.run_folder)
        result, options = newer, longer
    if not result.captured:
        raise KeyboardInterrupt if result.interrupted else _nothing_captured(result.missing)
    return replace(result, warnings=(*result.warnings, *_step_warnings(result.captured, options.until_steps)))


def _longer(result: CaptureResult, options: CaptureOptions) -> CaptureOptions | None:
    """Return options that should catch the steps asked for; None where there is nothing to improve."""
    if options.until_steps is None or result.interrupted or options.duration_s >= options.longest_s:
        return None
    if not result.captured and not any(host.empty for host in result.missing):
        return None
    steps = min((host.steps or 0 for host in result.captured), default=0)
    if steps >= options.until_steps:
        return None
    # A step at each end may be cut.
    growth = max(1.5, (options.until_steps + 2) / steps) if steps else _GROWTH_WITHOUT_STEPS
    return replace(options, duration_s=min(options.longest_s, options.duration_s * growth))


def _step_warnings(captured: tuple[CapturedHost, ...], wanted: int | None) -> Iterator[str]:
    for host in captured:
        if host.steps == 0:
            yield (
                f"{host.address}: no step was caught. Capture for longer, while the training loop runs, or mark the "
                "steps (jax.profiler.StepTraceAnnotation, tf.profiler.experimental.Trace, xp.StepTrace)."
            )
        elif host.steps is not None and wanted is not None and host.steps < wanted:
            yield f"{host.address}: {host.steps} of the {wanted} steps asked for were caught."


def _capture_once(
    addresses: tuple[str, ...], logdir: Path, options: CaptureOptions, progress: Progress
) -> CaptureResult:
    run = RunFolder(logdir)
    session = Session(run, options, [ProfilerServer(address, options) for address in addresses])
    try:
        outcomes = session.run(progress)
    finally:
        session.close()
        run.close()
    return CaptureResult(
        run.path,
        tuple(outcome for outcome in outcomes if isinstance(outcome, CapturedHost)),
        tuple(outcome for outcome in outcomes if isinstance(outcome, MissingHost)),
        tuple(session.warnings),
        session.stopped.is_set(),
    )


def _nothing_captured(missing: tuple[MissingHost, ...]) -> CaptureError:
    if len(missing) == 1:
        return CaptureError(f"{missing[0].address}: {missing[0].reason}.", missing[0].hint)
    reasons = "".join(f"\n  {host.address}: {host.reason}" for host in missing)
    hints = dict.fromkeys(host.hint for host in missing if host.hint)
    return CaptureError(f"None of the {len(missing)} hosts gave a profile:{reasons}", "\n".join(hints))
