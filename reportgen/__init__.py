"""One self-contained report from an XLA profile: what is slow, what filled the memory, why, and what to do."""

__version__ = "0.1.0"
