"""Analyses: each a part per host and a merge over hosts. To add one, write a module and name it here."""

from __future__ import annotations

from reportgen.analyzers.allocator import AllocatorAnalyzer
from reportgen.analyzers.base import Analyzer
from reportgen.analyzers.clocks import ClockAnalyzer
from reportgen.analyzers.collectives import CollectivesAnalyzer
from reportgen.analyzers.data_movement import DataMovementAnalyzer
from reportgen.analyzers.host_events import HostEventsAnalyzer
from reportgen.analyzers.hosts import HostsAnalyzer
from reportgen.analyzers.input_pipeline import InputPipelineAnalyzer
from reportgen.analyzers.kernels import KernelAnalyzer
from reportgen.analyzers.matrix_ops import MatrixOpsAnalyzer
from reportgen.analyzers.memory import MemoryAnalyzer
from reportgen.analyzers.op_profile import OpProfileAnalyzer
from reportgen.analyzers.overview import OverviewAnalyzer
from reportgen.analyzers.program_memory import ProgramMemoryAnalyzer
from reportgen.analyzers.steps import StepAnalyzer
from reportgen.analyzers.timeline import TimelineAnalyzer

# In the order in which they run: an analysis may use the results of those before it.
ANALYZERS: tuple[Analyzer, ...] = (
    StepAnalyzer(),
    OpProfileAnalyzer(),
    KernelAnalyzer(),
    MatrixOpsAnalyzer(),
    DataMovementAnalyzer(),
    InputPipelineAnalyzer(),
    MemoryAnalyzer(),
    AllocatorAnalyzer(),
    OverviewAnalyzer(),
    TimelineAnalyzer(),
    HostsAnalyzer(),
    CollectivesAnalyzer(),
    HostEventsAnalyzer(),
    ClockAnalyzer(),
    ProgramMemoryAnalyzer(),
)
