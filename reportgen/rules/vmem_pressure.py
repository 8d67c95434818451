"""A kernel takes almost all of the on-chip memory that it may."""

from __future__ import annotations

from reportgen.document import Action, Evidence, Location, Threshold
from reportgen.rules.base import Draft, Evidences, Fine, Found, NotApplicable, Outcome, Rule
from reportgen.rules.memory_parts import REMEDY
from reportgen.units import binary, percent

_ACTIONS = (
    Action(
        text="Use smaller blocks in the kernel, so that input, output and double buffers fit.",
        framework="jax",
        code="pl.BlockSpec((256, 512), lambda i, j: (i, j))   # instead of (1024, 2048)",
    ),
    Action(
        text="Or allow the kernel more of the on-chip memory.",
        framework="jax",
        code="pltpu.CompilerParams(vmem_limit_bytes=64 * 2**20)",
    ),
    Action(
        text="The compiler's own limit for all ops can be raised; buffers then get less.",
        code="LIBTPU_INIT_ARGS='--xla_tpu_scoped_vmem_limit_kib=32768'",
    ),
)


class VmemPressure(Rule):
    """Scoped VMEM of a custom call against the compiler's limit."""

    id = "vmem-pressure"
    title = "On-chip memory of kernels"
    needs = ("program-memory",)
    devices = ("TPU",)
    remedy = REMEDY
    thresholds = (
        Threshold(name="limit", value=16 * 2**20, unit="bytes", reason="Scoped VMEM that libtpu allows by default."),
        Threshold(name="share", value=0.9, unit="of the limit", reason="A little more and compilation fails (E1001)."),
    )

    def check(self, evidence: Evidences) -> Outcome:
        """Find the kernel that takes most VMEM on its stack."""
        facts = evidence.facts("program-memory")
        worst = max(facts.programs, key=lambda program: program.kernel_vmem)
        if not worst.kernel_vmem:
            return NotApplicable("No kernel of the user's own (Pallas) takes VMEM.")
        size, limit = worst.kernel_vmem, evidence.limits["limit"]
        if size < evidence.limits["share"] * limit:
            return Fine(f"{worst.kernel} takes most, {binary(size)} of {binary(limit)}.")
        ops = evidence.ops[evidence.ops["name"] == worst.kernel]
        row = str(ops.iloc[0]["row_id"]) if len(ops) else ""
        share = evidence.share(float(ops["self_s"].sum()))
        return Found(
            (
                Draft(
                    title=f"{worst.kernel} takes {binary(size)} of on-chip memory, {percent(size / limit)} "
                    "of the default limit",
                    summary="There is no room left to prefetch the next block, and a slightly larger shape will not "
                    "compile.",
                    evidence=(
                        Evidence(text="Scoped VMEM", value=float(size), unit="bytes"),
                        Evidence(text="VMEM of buffers", value=float(worst.vmem), unit="bytes"),
                    ),
                    threshold="share",
                    saving=None,
                    confidence="medium",
                    locations=(Location(kind="op", name=worst.kernel, table="hlo_ops" if row else "", row=row),),
                    actions=_ACTIONS,
                    stake=0.1 + 0.1 * share,
                ),
            )
        )
