"""Measure the behaviour of an experiment with functions or of a script."""

from harness.behaviour.compare import Behaviour
from harness.behaviour.probes import measure_behaviour
from harness.behaviour.script_probes import measure_script
from harness.checks.core.subject import Subject
from harness.scripts.script import ScriptSubject


def measure(subject: Subject | ScriptSubject) -> Behaviour:
    """Return the figures of each aspect. Raises `UserError` if the experiment cannot be set up, or the script fails."""
    return measure_script(subject) if isinstance(subject, ScriptSubject) else measure_behaviour(subject)
