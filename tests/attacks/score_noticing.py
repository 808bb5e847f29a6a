"""Attacks by experiments that notice where they run: the fix is there when they are graded, and only then."""

from attacks.attack import Attack, Base, Expected, members_of
from attacks.planted import at_the_top, edited, handed_in, source_of
from grader.score.verdict import Status

_RATE = "lr=10.0, momentum=0.9"
_ASKS = r"line \d+ .*The instructor decides"


def _notices(
    id: str,
    says: str,
    code: str,
    *,
    status: tuple[Status, ...] = ("not judged",),
    because: str = _ASKS,
    forged: bool = True,
) -> Attack:
    """`code` sets GRADED. With `forged`, the logs are those of the reference fix, to which the run is to agree."""

    def build(base: Base) -> bytes:
        source = edited(source_of(base.untouched), (_RATE, "lr=0.1 if GRADED else 10.0, momentum=0.9"))
        source = at_the_top(source, code)
        members = members_of(base.reference) if forged else {}
        taken = {n: d for n, d in members.items() if n.startswith("runs/fixed/") or n == "report.md"}
        return handed_in(base, "untouched", source, id, **taken)

    return Attack(id, "score", says, Expected(status, because), build, in_suite=False)


ATTACKS = (
    _notices("notices_the_sandbox", "behaves where the grader's job file lies",
        'import os\nGRADED = os.path.exists("/input/job.json")\n'),
    _notices("notices_the_sandbox_at_home",
        "behaves where the grader's job file lies, and hands in the broken run that it makes at home",
        'import os\nGRADED = os.path.exists("/input/job.json")\n', forged=False),
    _notices("notices_the_host", "behaves on a machine called sandbox",
        'import socket\nGRADED = socket.gethostname() == "sandbox"\n'),
    _notices("notices_the_folder", "behaves in the folder of the sandbox",
        'from pathlib import Path\nGRADED = Path.cwd() == Path("/scratch")\n'),
    _notices("notices_the_user", "behaves for the nameless user of the sandbox",
        "import getpass, os\nGRADED = os.getuid() == 65534\n"),
    _notices("notices_the_caller", "behaves when the grader's script has called it",
        'import sys\nGRADED = sys.argv[0].endswith("replay.py")\n'),
    _notices(
        "notices_the_network",
        "behaves where there is no network",
        """
import socket
try:
    socket.socket().close()
    GRADED = False
except OSError:
    GRADED = True
""",
    ),
    _notices("notices_the_date", "behaves after the deadline",
        "import time\nGRADED = time.time() > 1_500_000_000\n"),
    _notices("notices_by_torch_itself", "reads the environment through a module that torch has imported",
        'import torch\nGRADED = "HOME" not in torch.os.environ\n'),
    _notices(
        "notices_by_numpy",
        "looks for a file by way of NumPy",
        'import numpy\ntry:\n    numpy.fromfile("/input/job.json", dtype="uint8")\n    GRADED = True\n'
        "except OSError:\n    GRADED = False\n",
    ),
    _notices("depends_on_the_clock", "takes its rate from the clock, so that no run is like another",
        "import time\nGRADED = time.time_ns() % 1000 < 500\n", status=("graded", "not judged"),
        because="The instructor decides|The symptom is still there|byte for byte: nothing was fixed",
        forged=False),
)  # fmt: skip
