"""How findings are ranked, silenced and made from drafts; what settings and failing rules do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reportgen.analyzers.run import Analysis
from reportgen.document import Action, Evidence, Saving, Threshold
from reportgen.errors import UsageError
from reportgen.rules import RULES
from reportgen.rules.base import CannotTell, Draft, Evidences, Fine, Found, NotApplicable, Outcome, Rule
from reportgen.rules.parts import byte_saving, time_saving
from reportgen.rules.run import EXPLAINS, STAKE_WORTH, run_rules
from reportgen.settings import Settings
from tests.planted.cases import outcome
from tests.planted.handmade import STEP_US

STEP = STEP_US * 1e-6


class Told(Rule):
    """A rule that says what it was told to."""

    needs = ()

    def __init__(
        self, name: str, *results: Outcome, silenced_by: tuple[str, ...] = (), needs: tuple[str, ...] = ()
    ) -> None:
        self.id, self.title, self.results = name, name, results  # type: ignore[misc]
        self.silenced_by, self.needs = silenced_by, needs  # type: ignore[misc]
        self.thresholds = (Threshold(name="limit", value=3.0, unit="things", reason="For a test."),)  # type: ignore[misc]
        self.limits: dict[str, float] = {}

    def check(self, evidence: Evidences) -> Outcome:
        self.limits = dict(evidence.limits)
        return self.results[0]


class Broken(Told):
    def check(self, evidence: Evidences) -> Outcome:
        raise ZeroDivisionError("on purpose")


def draft(share: float | None, stake: float = 0.0, suffix: str = "", actions: tuple[Action, ...] = ()) -> Draft:
    """A finding that saves a share of the step; with None it has a stake alone."""
    saving = (
        Saving(low=share * STEP, likely=share * STEP, high=share * STEP, unit="seconds", basis="measured")
        if share
        else None
    )
    return Draft(
        title="t", summary="s.", evidence=(Evidence(text="e"),), threshold="limit", saving=saving, confidence="high",
        suffix=suffix, stake=stake, actions=actions,
    )  # fmt: skip


def found(name: str, *shares: float, silenced_by: tuple[str, ...] = ()) -> Told:
    drafts = tuple(draft(share, suffix=str(number) if number else "") for number, share in enumerate(shares))
    return Told(name, Found(drafts), silenced_by=silenced_by)


@pytest.fixture
def analysis() -> Analysis:
    """The analysis of a profile without a fault: a step of a millisecond."""
    return outcome("skew", "repaired").analysis


def test_findings_come_by_what_they_are_worth(analysis: Analysis) -> None:
    rules = [found("small", 0.02), found("large", 0.3), Told("staked", Found((draft(None, stake=0.5),)))]
    assert [finding.rule for finding in run_rules(analysis, rules).findings] == ["large", "staked", "small"]


@pytest.mark.parametrize(
    ("share", "severity"),
    [(0.2, "critical"), (0.19, "high"), (0.05, "high"), (0.049, "medium"), (0.03, "medium"), (0.029, "low"),
     (0.005, "low"), (0.0049, "info")],
)  # fmt: skip
def test_severity_comes_from_the_likely_saving(analysis: Analysis, share: float, severity: str) -> None:
    assert run_rules(analysis, [found("rule", share)]).findings[0].severity == severity


def test_without_a_saving_a_part_of_the_stake_counts(analysis: Analysis) -> None:
    (finding,) = run_rules(analysis, [Told("rule", Found((draft(None, stake=0.05 / STAKE_WORTH),)))]).findings
    assert finding.severity == "high"


def test_a_cause_silences_its_symptom(analysis: Analysis) -> None:
    rules = [found("symptom", 0.3, silenced_by=("cause",)), found("cause", 0.3 * EXPLAINS), found("other", 0.01)]
    findings = run_rules(analysis, rules).findings
    assert [finding.rule for finding in findings] == ["cause", "other", "symptom"]
    assert findings[-1].silenced_by == "cause"
    assert findings[-1].severity == "info"


def test_a_cause_too_small_to_explain_it_does_not(analysis: Analysis) -> None:
    rules = [found("symptom", 0.3, silenced_by=("cause",)), found("cause", 0.29 * EXPLAINS)]
    assert all(finding.silenced_by is None for finding in run_rules(analysis, rules).findings)


def test_the_root_of_a_chain_of_causes_is_named(analysis: Analysis) -> None:
    rules = [found("c", 0.1, silenced_by=("b",)), found("b", 0.1, silenced_by=("a",)), found("a", 0.1)]
    silenced = {finding.rule: finding.silenced_by for finding in run_rules(analysis, rules).findings}
    assert silenced == {"a": None, "b": "a", "c": "a"}


def test_a_single_finding_can_be_the_cause(analysis: Analysis) -> None:
    symptom = found("symptom", 0.1, silenced_by=("cause-1",))
    assert run_rules(analysis, [symptom, found("cause", 0.1)]).findings[-1].silenced_by is None
    assert run_rules(analysis, [symptom, found("cause", 0.1, 0.1)]).findings[-1].silenced_by == "cause-1"


def test_no_built_in_rules_silence_each_other_in_a_circle() -> None:
    ids = [rule.id for rule in RULES]
    left = {rule.id: {name for name in ids if name in map(_rule, rule.silenced_by)} for rule in RULES}
    while free := [rule for rule, named in left.items() if not named & left.keys()]:
        for rule in free:
            del left[rule]
    assert not left


def _rule(cause: str) -> str:
    """Return the rule that a cause names, alone or with the suffix of one of its findings."""
    return max((rule.id for rule in RULES if cause.startswith(rule.id)), key=len)


def test_every_outcome_is_a_check_of_its_own(analysis: Analysis) -> None:
    rules = [
        Told("fine", Fine("ok")),
        Told("not", NotApplicable("none")),
        Told("cannot", CannotTell("lost", "capture")),
        found("found", 0.1),
        Broken("broken"),
        Told("starved", Fine("no"), needs=("nothing-like-it",)),
    ]
    verdicts = run_rules(replace(analysis, settings=Settings()), rules)
    states = {check.rule: (check.status, check.reason, check.remedy) for check in verdicts.checks}
    assert states["fine"] == ("fine", "ok", "")
    assert states["not"] == ("not_applicable", "none", "")
    assert states["cannot"] == ("cannot_tell", "lost", "capture")
    assert states["found"] == ("found", "t", "")
    assert states["broken"] == ("error", "ZeroDivisionError: on purpose", "")
    assert states["starved"][0] == "cannot_tell"
    assert states["starved"][2] == Rule.remedy
    assert [failure.name for failure in verdicts.failures] == ["broken"]


def test_a_failing_rule_ends_a_strict_run(analysis: Analysis) -> None:
    with pytest.raises(ZeroDivisionError):
        run_rules(replace(analysis, settings=Settings(strict=True)), [Broken("broken")])


def test_thresholds_only_and_skip_reach_the_rules(analysis: Analysis) -> None:
    one, two = found("one", 0.1), found("two", 0.1)
    settings = Settings(thresholds={"one.limit": 7.0}, skip=("two",))
    verdicts = run_rules(replace(analysis, settings=settings), [one, two])
    assert one.limits == {"limit": 7.0}
    assert verdicts.findings[0].threshold == Threshold(name="limit", value=7.0, unit="things", reason="For a test.")
    assert [check.rule for check in verdicts.checks] == ["one"]
    only = run_rules(replace(analysis, settings=Settings(only=("two",))), [one, two])
    assert [check.rule for check in only.checks] == ["two"]
    assert two.limits == {"limit": 3.0}


@pytest.mark.parametrize(
    "settings", [Settings(only=("no",)), Settings(skip=("no",)), Settings(thresholds={"one.no": 1.0}),
                 Settings(thresholds={"no.limit": 1.0})]
)  # fmt: skip
def test_unknown_rules_and_thresholds_are_refused(analysis: Analysis, settings: Settings) -> None:
    with pytest.raises(UsageError, match="is called"):
        run_rules(replace(analysis, settings=settings), [found("one", 0.1)])


def test_actions_of_other_frameworks_are_left_out() -> None:
    jax = outcome("garbage", "faulty").analysis
    actions = (Action(text="all"), Action(text="jax", framework="jax"), Action(text="tf", framework="tensorflow"))
    (finding,) = run_rules(jax, [Told("rule", Found((draft(0.1, actions=actions),)))]).findings
    assert [action.text for action in finding.actions] == ["all", "jax"]


def test_a_range_too_wide_is_no_saving(analysis: Analysis) -> None:
    evidence = Evidences.of(analysis.results, analysis.hosts)
    assert time_saving(evidence, 1.0, 2.0, 3.0, "measured", "") is not None
    assert time_saving(evidence, 1.0, 2.0, 3.1, "measured", "") is None
    assert time_saving(evidence, 0.0, 0.0, 0.0, "measured", "") is None
    assert byte_saving(1.0, 2.0, 3.1, "modelled", "") is None


def test_measured_savings_of_a_modelled_timeline_are_called_modelled() -> None:
    modelled = outcome("padding-seed", "faulty").analysis
    saving = time_saving(Evidences.of(modelled.results, modelled.hosts), 1.0, 1.0, 1.0, "measured", "")
    assert saving is not None
    assert saving.basis == "modelled"


def test_time_summed_over_cores_becomes_time_of_a_step() -> None:
    """Four cores that work all of a millisecond in eight steps: 32 core milliseconds are one step."""
    even = outcome("uneven-cores", "repaired").analysis
    evidence = Evidences.of(even.results, even.hosts)
    total = even.results["op-profile"].facts.total
    assert evidence.per_step(total) == pytest.approx(evidence.step_time)
    assert evidence.share(total / 4) == pytest.approx(0.25)
