"""Every attack that tries to get out of the sandbox, or to bring down what is around it."""

from attacks import sandbox_forked, sandbox_outputs, sandbox_reach, sandbox_resources

ATTACKS = (
    *sandbox_reach.ATTACKS,
    *sandbox_forked.ATTACKS,
    *sandbox_resources.ATTACKS,
    *sandbox_outputs.ATTACKS,
)
