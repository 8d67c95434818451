"""Terms of the report, for its appendix."""

from __future__ import annotations

from reportgen.document import Field

_TERMS = {
    "Self time": "Time of an op without the ops directly inside it.",
    "Total device time": "Time from the first to the last op of each core, idle time included, summed over cores.",
    "Step period": "Wall time from the start of a step to the start of the next one.",
    "FLOPS utilisation": "Share of the peak floating point rate that was reached; FLOPs are counted from the program.",
    "HBM": "The device's main memory (high-bandwidth memory).",
    "VMEM": "On-chip memory of a TPU core, next to its compute units.",
    "Operational intensity": "Floating point operations per byte of memory traffic.",
    "Ridge": "The operational intensity above which a device is limited by compute and not by memory.",
    "Roofline": "The best rate that a device can reach at an operational intensity.",
    "Matrix unit": "The systolic array of a TPU core: 128 × 128, from v6e on 256 × 256.",
    "Tile": "The block in which a TPU lays out an array, such as 8 × 128; dimensions are padded up to it.",
    "Useful tile share": "An operand's elements over its elements with the tiles' padding.",
    "Exposed time": "Time in which a device waits and does nothing else; hidden time overlaps with work.",
    "Fusion": "Several ops that run as one, so that intermediate values need not go through memory.",
    "HLO": "The compiler's program: modules of computations of ops.",
    "Program order": "The order in which the compiled program runs its ops.",
    "Modelled": "Computed from a model such as the compiler's cycle estimates, not captured.",
}

GLOSSARY = tuple(Field(label=term, value=meaning) for term, meaning in _TERMS.items())
