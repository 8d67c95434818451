"""Why two reports may not be comparable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reportgen.comparison.causes import Cause, common_size
from reportgen.document import ReportDocument
from reportgen.units import count

_MOST_OPS = 0.2  # from this share of all ops on, another size is that of the batch or the model, not of a detail


def differences(
    bases: Sequence[ReportDocument],
    base: ReportDocument,
    new: ReportDocument,
    causes: Sequence[Cause],
    *,
    per_step: bool,
) -> Iterator[str]:
    """Yield what differs that should not, in sentences."""
    if not per_step:
        yield (
            "One of the reports has no steps: what is compared is the op time of the whole capture on one core, which "
            "depends on how long the capture was."
        )
    old, now = base.profile, new.profile
    pairs = (
        ("device type", old.device_type, now.device_type),
        ("number of devices", old.device_count, now.device_count),
        ("number of cores", old.core_count, now.core_count),
        ("number of hosts", len(old.hosts), len(now.hosts)),
        ("framework", old.framework or None, now.framework or None),
        ("origin of the timeline", old.timeline_basis, now.timeline_basis),
        ("evidence of steps", old.step_source.partition(":")[0], now.step_source.partition(":")[0]),
    )
    for what, before, after in pairs:
        if before != after:
            yield f"Not the same {what}: {before or 'not captured'} before, {after or 'not captured'} now."
    for name in sorted(old.versions.keys() | now.versions.keys()):
        before, after = old.versions.get(name), now.versions.get(name)
        if before != after:
            yield f"Another version of {name}: {before or 'not captured'} before, {after or 'not captured'} now."
    yield from _batch(causes)
    yield from _same_file(bases, new)


def _batch(causes: Sequence[Cause]) -> Iterator[str]:
    size = common_size(causes)
    known = sum(one.ops for one in causes)
    if size and size.ops >= _MOST_OPS * known:
        yield (
            f"Another size of batch or model: {size.subject} in {count(size.ops)} ops. Times of a step are compared as "
            "they are, not by example."
        )


def _same_file(bases: Sequence[ReportDocument], new: ReportDocument) -> Iterator[str]:
    hashes = {file.sha256 for file in new.profile.files}
    if hashes and any(hashes & {file.sha256 for file in one.profile.files} for one in bases):
        yield "The new report and a base were made from the same profile."
