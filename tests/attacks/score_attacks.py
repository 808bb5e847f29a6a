"""Every attack that aims at points which its experiment does not deserve."""

from attacks import score_deriving, score_forging, score_lying, score_noticing, score_patching

ATTACKS = (
    *score_patching.ATTACKS,
    *score_lying.ATTACKS,
    *score_noticing.ATTACKS,
    *score_forging.ATTACKS,
    *score_deriving.ATTACKS,
)
