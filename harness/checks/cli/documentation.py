"""Writes docs/checks.md from what the checks declare and document; `harness checks --write docs/checks.md`."""

from collections.abc import Iterator

from harness.checks import Check, check_names, load_check

_INTRODUCTION = """\
# Checks

`harness checks --write docs/checks.md` writes this page from the modules of `harness/checks/`.

A check measures one property of sound training, shows what it found, and says where to look next. It calls the
experiment's functions, or makes steps of the run from its own seed, in a process of its own with the numerics of
a run ([determinism.md](determinism.md)). It reads no answer, and leaves workspace and runs as they are.

- `harness triage huge_lr` makes the checks in order, cheapest first. The first outcome that is not sound is the
  cheapest clue; those below may be its consequences.
- `harness triage path/to/script.py` does so for any training script with the functions of an experiment. Without
  `--dataset` its `load_data` receives digits; it may ignore them and load data of its own.
- `harness overfit huge_lr` makes one check and shows all of its figures. It measures the experiment in your
  workspace; to measure the one that you were given, name `work/huge_lr/runs/broken/experiment.py`.
- `--seed`, `--dataset`, `--epochs`, `--batch` are those of a run; `--json` prints one object of strict JSON;
  `--html FILE` writes one page with curves, tables and images, which needs no network.

An outcome says where to look; it is not a verdict. A check marked *mechanism* measures the fault itself, so a fix
can be judged by it; the others show consequences.

Every check at a glance, to tick off:
"""


def documentation() -> str:
    """Return docs/checks.md."""
    checks = [load_check(name) for name in check_names()]
    glance = [
        f"- [ ] `{check.command('huge_lr')}` {check.question} {check.minutes:g} min" for check in checks
    ]
    return "\n".join([_INTRODUCTION, *glance, *(line for check in checks for line in _section(check))]) + "\n"


def _section(check: Check) -> Iterator[str]:
    marks = [mark for mark, set in (("in triage", check.in_triage), ("mechanism", check.mechanism)) if set]
    unit = "minute" if check.minutes == 1 else "minutes"
    yield f"\n## {check.name.replace('_', '-')}\n"
    yield f"**{check.question}** About {check.minutes:g} {unit}{''.join(f', {mark}' for mark in marks)}.\n"
    yield f"{check.documentation}\n"
    yield "| outcome | | what it means | next |"
    yield "| --- | --- | --- | --- |"
    for outcome in check.outcomes:
        further = [f"`{name.replace('_', '-')}`" for name in outcome.next]
        place = [f"read {outcome.look}"] if outcome.look else []
        sound = "sound" if outcome.sound else "**unsound**"
        yield f"| `{outcome.id}` | {sound} | {outcome.reading} | {'; '.join((*place, *further))} |"
