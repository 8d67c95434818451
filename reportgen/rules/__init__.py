"""Rules: one module each. To add one, write a module and name it here, and write its page in docs/rules."""

from __future__ import annotations

from importlib.metadata import entry_points

from reportgen.errors import UsageError
from reportgen.rules.base import Rule
from reportgen.rules.clock_skew import ClockSkew
from reportgen.rules.compute_bound import ComputeBound
from reportgen.rules.core_imbalance import CoreImbalance
from reportgen.rules.costly_remat import CostlyRemat
from reportgen.rules.custom_call import CustomCall
from reportgen.rules.data_formatting import DataFormatting
from reportgen.rules.data_shuffle import DataShuffle
from reportgen.rules.dropped_events import DroppedEvents
from reportgen.rules.exposed_collectives import ExposedCollectives
from reportgen.rules.fragmentation import Fragmentation
from reportgen.rules.hbm_bound import HbmBound
from reportgen.rules.host_bound import HostBound
from reportgen.rules.host_transfer import HostTransfer
from reportgen.rules.idle_chips import IdleChips
from reportgen.rules.impossible_efficiency import ImpossibleEfficiency
from reportgen.rules.input_bound import InputBound
from reportgen.rules.low_flops import LowFlops
from reportgen.rules.memory_bound_conv import MemoryBoundConv
from reportgen.rules.memory_bound_dot import MemoryBoundDot
from reportgen.rules.memory_near_capacity import MemoryNearCapacity
from reportgen.rules.memory_padding import MemoryPadding
from reportgen.rules.missing_donation import MissingDonation
from reportgen.rules.padding_waste import PaddingWaste
from reportgen.rules.precision import Precision
from reportgen.rules.recompilation import Recompilation
from reportgen.rules.resharding import Resharding
from reportgen.rules.small_collectives import SmallCollectives
from reportgen.rules.straggler import Straggler
from reportgen.rules.too_few_steps import TooFewSteps
from reportgen.rules.unstable_steps import UnstableSteps
from reportgen.rules.vector_bound import VectorBound
from reportgen.rules.vmem_pressure import VmemPressure

RULES: tuple[Rule, ...] = (
    PaddingWaste(),
    MemoryBoundConv(),
    MemoryBoundDot(),
    LowFlops(),
    VectorBound(),
    HbmBound(),
    ComputeBound(),
    Precision(),
    DataFormatting(),
    DataShuffle(),
    HostTransfer(),
    InputBound(),
    HostBound(),
    Recompilation(),
    ExposedCollectives(),
    SmallCollectives(),
    Resharding(),
    Straggler(),
    CoreImbalance(),
    MemoryNearCapacity(),
    MemoryPadding(),
    MissingDonation(),
    CostlyRemat(),
    VmemPressure(),
    Fragmentation(),
    UnstableSteps(),
    TooFewSteps(),
    IdleChips(),
    DroppedEvents(),
    ClockSkew(),
    ImpossibleEfficiency(),
    CustomCall(),
)


def all_rules() -> tuple[Rule, ...]:
    """Return the built-in rules and those of installed packages (entry points of group `reportgen.rules`).

    Raises:
        UsageError: An installed package's rule cannot be loaded.

    """
    found = {rule.id: rule for rule in RULES}
    for point in sorted(entry_points(group="reportgen.rules"), key=lambda entry: entry.name):
        try:
            loaded = point.load()
            rule = loaded() if isinstance(loaded, type) else loaded
            found.setdefault(rule.id, rule)
        except Exception as error:
            raise UsageError(
                f"the rule {point.name!r} ({point.value}) of an installed package cannot be loaded: {error}.",
                "Repair or remove that package.",
            ) from error
    return tuple(found.values())
