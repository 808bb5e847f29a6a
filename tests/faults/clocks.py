"""A clock that jumps by days at every look, and files of other centuries."""

import os

from faults.fault import Fault
from faults.held import must
from faults.lab import Lab, Place
from faults.running import Grader, grader_command

# Python runs it before anything else.
_SITECUSTOMIZE = """
import random
import time

_real, _random = time.time_ns, random.Random(4)


def _jumping():
    return _real() + _random.choice((-20_000, -3, 0, 3, 40_000)) * 86_400 * 10**9


time.time_ns = _jumping
time.time = lambda: _jumping() / 1e9
"""
_PROOF = "import time; assert any(abs(time.time() - time.time()) > 80_000 for _ in range(50))"


def _jumping_clock(lab: Lab, place: Place) -> str:
    place.remember(without="bob")
    place.have_earlier_reports()
    odd = place.folder / "odd"
    odd.mkdir()
    (odd / "sitecustomize.py").write_text(_SITECUSTOMIZE)
    proof = Grader((grader_command()[0], "-P", "-c", _PROOF), {"PYTHONPATH": str(odd)}).finish()
    must(proof.status == 0, f"the clock does not jump: {proof.err}")
    moments = (0, 1, 4_102_444_800, 2**33)  # 1970, 2100, 2242
    for index, path in enumerate(sorted((*place.store.rglob("*"), *place.out.iterdir()))):
        os.utime(path, (moments[index % 4], moments[index % 4]))
    place.must_be_right(place.score(PYTHONPATH=str(odd)))
    return "no time limit was passed, and all is right"


FAULTS = (
    Fault(
        "clock_jumps", "the clock jumps by days at every look, and files are of 1970, 2100 and 2242",
        "the same bytes, no wrong time limit", _jumping_clock, in_suite=False,
    ),
)  # fmt: skip
