"""All faults but the kills, which are counted and drawn at random."""

from faults import clocks, damage, disks, limits, own_files, pairs, workers
from faults.fault import Fault

FAULTS: tuple[Fault, ...] = (
    *disks.FAULTS,
    *damage.FAULTS,
    *limits.FAULTS,
    *workers.FAULTS,
    *pairs.FAULTS,
    *clocks.FAULTS,
    *own_files.FAULTS,
)
