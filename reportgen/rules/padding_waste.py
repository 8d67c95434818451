"""Padding of a TPU's tiles: the matrix unit multiplies zeros."""

from __future__ import annotations

from dataclasses import dataclass

from reportgen.document import Action, Evidence, Threshold
from reportgen.rules.base import CannotTell, Draft, Evidences, Fine, Found, NotApplicable, Outcome, Rule
from reportgen.rules.matrix import Diagnosis, Range, copy_saved, diagnoses
from reportgen.rules.movement import moving_ops
from reportgen.rules.parts import SHOWN, a_step, op_evidence, op_location, time_saving
from reportgen.units import percent, seconds

_ANY = Action(
    text="Choose batch and feature sizes that fill the tile: the dimension on lanes a multiple of 128, the next one of "
    "8. The layout in each op's card tells which dimension lies where. Pad once, where the model is built, not in the "
    "step."
)
_FEATURES = (
    Action(text="Make the layer as wide as it costs.", framework="jax", code="x = nn.Conv(128, (3, 3))(x)   # not 100"),
    Action(
        text="Make the layer as wide as it costs.",
        framework="tensorflow",
        code="x = tf.keras.layers.Conv2D(128, 3, padding='same')(x)   # not 100",
    ),
    Action(
        text="Make the layer as wide as it costs.",
        framework="pytorch_xla",
        code="self.conv = torch.nn.Conv2d(128, 128, 3, padding=1)   # not 100",
    ),
)
_BATCH = (
    Action(
        text="Use full batches of a multiple of 128 per device, or of 8 where features lie on the lanes.",
        framework="tensorflow",
        code="dataset = dataset.batch(1024, drop_remainder=True)",
    ),
    Action(
        text="Use full batches of a multiple of 128 per device, or of 8 where features lie on the lanes.",
        framework="pytorch_xla",
        code="loader = DataLoader(data, batch_size=128, drop_last=True)",
    ),
    Action(
        text="Use full batches of a multiple of 128 per device, or of 8 where features lie on the lanes.",
        framework="jax",
        code="assert batch.shape[0] % (128 * jax.device_count()) == 0",
    ),
)
# Images of so few channels gain by fewer, larger positions with more channels.
_FEW_CHANNELS = 4
_IMAGES = (
    Action(
        text="Turn blocks of pixels into channels before the first convolution (space to depth).",
        framework="jax",
        code="b, h, w, c = x.shape\nx = x.reshape(b, h // 2, 2, w // 2, 2, c).transpose(0, 1, 3, 2, 4, 5)\n"
        "x = x.reshape(b, h // 2, w // 2, 4 * c)",
    ),
    Action(
        text="Turn blocks of pixels into channels before the first convolution.",
        framework="tensorflow",
        code="images = tf.nn.space_to_depth(images, 2)",
    ),
    Action(
        text="Turn blocks of pixels into channels before the first convolution.",
        framework="pytorch_xla",
        code="images = torch.nn.functional.pixel_unshuffle(images, 2)",
    ),
)


class PaddingWaste(Rule):
    """Dots and convolutions whose dimensions do not fill the tiles."""

    id = "padding-waste"
    title = "Padding of dots and convolutions"
    devices = ("TPU",)
    remedy = (
        "The padding stands in the HLO: capture with HLO protos on (JAX and TensorFlow do so by default), or give the "
        "compiler's dump."
    )
    thresholds = (Threshold(name="share", value=0.03, unit="of device time", reason="Less is not worth a new shape."),)

    def check(self, evidence: Evidences) -> Outcome:
        """Sum what padding costs over all dots and convolutions whose main cost it is."""
        matrix = diagnoses(evidence)
        if not matrix:
            return NotApplicable("No dot or convolution ran.")
        if all(one.op is None for one in matrix):
            return CannotTell("The layouts of the dots and convolutions were not captured.", self.remedy)
        found = [Waste(one, _copies(evidence, one)) for one in matrix if one.cause == "padding"]
        found.sort(key=lambda waste: -waste.saved[1])
        share = evidence.share(sum(waste.saved[1] for waste in found))
        if not found or share < evidence.limits["share"]:
            return Fine(f"Padding of dots and convolutions costs {percent(share)} of device time.")
        worst = found[0].op
        low, likely, high = (evidence.per_step(sum(waste.saved[part] for waste in found)) for part in range(3))
        time = evidence.per_step(sum(waste.op.time for waste in found))
        copies = evidence.per_step(sum(waste.copied for waste in found))
        beside = f", and {seconds(copies)} of copies beside them are of the padded sizes, too" if copies else ""
        return Found(
            (
                Draft(
                    title=f"Padding wastes {percent(share)} of device time: {_dimensions(worst)}",
                    summary=f"{len(found)} dot{'' if len(found) == 1 else 's'} or convolutions take "
                    f"{seconds(time)} {a_step(evidence)}, much of it for zeros{beside}. The compiler pads dimensions "
                    "to the tile, and the matrix unit works through the padding.",
                    evidence=tuple(item for waste in found[: SHOWN // 2] for item in _evidence(waste.op, evidence)),
                    threshold="share",
                    saving=time_saving(
                        evidence, low, likely, min(high, 3 * low), "modelled",
                        "Time of the padded dimensions less that of the useful ones, for the same work, and the same "
                        "of the copies beside them; the law was fitted to the TPU compiler's own cycle estimates.",
                    ),
                    confidence="high",
                    locations=tuple(op_location(waste.op.row) for waste in found[:SHOWN]),
                    actions=(_change(worst), _ANY, *_advice(found)),
                ),
            )
        )  # fmt: skip


@dataclass(frozen=True)
class Waste:
    """A padded dot or convolution with the copies of its operands, of which some share goes with the padding.

    Attributes:
        copies: Self time in seconds, summed over cores, and the share of it that would go.

    """

    op: Diagnosis
    copies: tuple[tuple[float, float], ...]

    @property
    def copied(self) -> float:
        """Seconds of the copies."""
        return sum(time for time, _ in self.copies)

    @property
    def saved(self) -> Range:
        """Seconds saved, summed over cores: low, likely, high."""
        low, likely, high = self.op.saved or (0.0, 0.0, 0.0)
        extra = sum(time * share for time, share in self.copies)
        return self.op.time * low + 0.8 * extra, self.op.time * likely + extra, self.op.time * high + extra


def _copies(evidence: Evidences, one: Diagnosis) -> tuple[tuple[float, float], ...]:
    moving = moving_ops(evidence, "formatting")
    near = moving[(moving["beside"] == one.row["name"]) & (moving["program"] == one.row["program"])]
    if one.op is None:
        return ()
    return tuple(
        (float(row["self_s"]), max(0.0, copy_saved(one.op, one.changes, str(row["operand"]))))
        for row in near.to_dict("records")
    )


def _dimensions(one: Diagnosis) -> str:
    padded = ", ".join(f"{change.role} {change.size} to {change.padded_size}" for change in one.changes)
    return f"{one.kind} {one.row['name']} pads {padded}"


def _change(one: Diagnosis) -> Action:
    wanted = "; ".join(f"{change.role} from {change.size} to {change.target}" for change in one.changes)
    return Action(text=f"In {one.row['name']}, change {wanted}.")


def _advice(found: list[Waste]) -> tuple[Action, ...]:
    """Return the advice that fits what is padded."""
    changes = [change for waste in found for change in waste.op.changes]
    roles = {change.role for change in changes}
    images = any(change.role == "feature in" and change.size <= _FEW_CHANNELS for change in changes)
    features = "feature out" in roles or ("feature in" in roles and not images)
    return (*(_IMAGES if images else ()), *(_FEATURES if features else ()), *(_BATCH if "batch" in roles else ()))


def _evidence(one: Diagnosis, evidence: Evidences) -> tuple[Evidence, ...]:
    left, right, result = one.op.layout.tile_shares if one.op is not None else (1.0, 1.0, 1.0)
    changes = "; ".join(map(str, one.changes))
    shares = f"useful tile share {percent(left)} of the left operand, {percent(right)} of the right, {percent(result)} "
    return (
        op_evidence(one.row, changes, evidence),
        Evidence(text=f"{one.row['name']}: {shares}of the result", table="hlo_ops", row=str(one.row["row_id"])),
    )
