"""Makes the first 40 steps of the run with the constant AMP as it is, and once more with AMP set to False.

Mixed precision that is set up well learns like full precision, and loses next to none of its gradients to
zero.

Sources of the bounds: zero gradient entries beyond those without autocast, as medians of the second half:
healthy 0.01 at most, unscaled float16 gradients 0.5 and more (0.1). The loss at the end, median of the last
10 steps, may be three times that without.
"""

from statistics import median

from harness.checks.core.finding import Check, Finding, Line, Plot, consequence, short, sound
from harness.checks.core.subject import Subject
from harness.run.metrics_log import Record

CHECK = Check(
    order=80,
    question="Does it learn better without mixed precision?",
    minutes=3,
    outcomes=(
        sound("no-autocast", "There is no mixed precision to turn off. It is ruled out.", "activations"),
        sound("same", "It learns alike with and without mixed precision: that is ruled out.", "activations"),
        consequence(
            "better-without",
            "Mixed precision loses what full precision keeps.",
            look="how train_step handles values too small or too large for float16",
        ),
    ),
)
STEPS = 40
LAST = 10
MORE_ZEROS = 0.1
WORSE = 3.0


def measure(subject: Subject) -> Finding:
    """Make the first steps with and without autocast, if the experiment's constant AMP is true."""
    if not subject.experiment().uses_amp:
        what = "the constant AMP: there is none, or it is off"
        return Finding(what=what, outcome="no-autocast", summary="AMP is off", figures={"AMP": False})
    runs = {name: _steps(subject, disable_amp=off) for name, off in (("as it is", False), ("AMP off", True))}
    loss = {name: float(median(r["loss"] for r in records[-LAST:])) for name, records in runs.items()}
    zeros = {
        name: float(median(r["grad_zero_fraction"] or 0.0 for r in records[STEPS // 2 :]))
        for name, records in runs.items()
    }
    lost = not zeros["as it is"] - zeros["AMP off"] <= MORE_ZEROS
    worse = not loss["as it is"] <= WORSE * loss["AMP off"]
    lines = tuple(Line.over_steps(name, [r["loss"] for r in records]) for name, records in runs.items())
    return Finding(
        f"the first {STEPS} steps of the run, with AMP as it is and off",
        "better-without" if lost or worse else "same",
        "; ".join(f"{name}: loss {short(loss[name])}, zeros {short(zeros[name])}" for name in runs),
        {
            **{f"loss at the end, {name}": loss[name] for name in runs},
            **{f"zero gradient entries, {name}": zeros[name] for name in runs},
        },
        plots=(Plot("Loss by precision", "loss", lines),),
    )


def _steps(subject: Subject, *, disable_amp: bool) -> list[Record]:
    trial = subject.trial(disable_amp=disable_amp)
    return list(trial.records(trial.batches(STEPS)))
