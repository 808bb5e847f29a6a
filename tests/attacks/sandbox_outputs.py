"""Attacks through what comes out of the sandbox: links, pipes, folders, odd names in place of the results."""

from attacks.attack import Attack, Base, Expected
from attacks.planted import at_the_top, handed_in, source_of

_RESULTS = ("metrics.log", "checkpoint.pt", "checks.json")


def _at_the_end(id: str, says: str, code: str, because: str, *, in_suite: bool = False) -> Attack:
    """Run code as the process ends, when every result is there."""

    def build(base: Base) -> bytes:
        known = code.replace("{canary}", str(base.canary)).replace("{submissions}", str(base.submissions))
        body = "\n    ".join(known.strip().splitlines())
        planted = (
            f"import atexit, os\nOUT = os.path.abspath('out')\n@atexit.register\ndef _end():\n    {body}\n"
        )
        return handed_in(base, "untouched", at_the_top(source_of(base.untouched), planted, epochs=1), id)

    return Attack(id, "sandbox", says, Expected(("graded",), because), build, in_suite=in_suite)


_REPLACED = f"""
for name in {_RESULTS!r}:
    path = os.path.join(OUT, name)
    os.remove(path)
    MAKE(path)
"""
_NO_RESULT = r"\(RE\).*left no whole result"

ATTACKS = (
    _at_the_end(
        "links_to_secrets",
        "puts symbolic links to the grader's files in place of its results",
        _REPLACED.replace("MAKE(path)", 'os.symlink("{canary}", path)')
        + 'os.symlink("{canary}", OUT + "/error.txt")\nos.symlink("/", OUT + "/everything")\n',
        _NO_RESULT,
        in_suite=True,
    ),
    _at_the_end("links_of_proc",
        "puts links through /proc in place of its results, which mean something else to whoever reads them",
        _REPLACED.replace("MAKE(path)",
        'os.symlink("/proc/self/environ", path)') + 'os.symlink("/proc/self/environ", OUT + "/error.txt")\n',
        _NO_RESULT),
    _at_the_end("pipes_as_results",
        "puts named pipes in place of its results, at which a reader would wait for ever",
        _REPLACED.replace("MAKE", "os.mkfifo") + 'os.mkfifo(OUT + "/error.txt")\n', _NO_RESULT),
    _at_the_end(
        "devices_as_results",
        "puts devices, or hard links to the system's files, in place of its results",
        """
        for name, device in (("metrics.log", (1, 5)), ("checkpoint.pt", (1, 9))):
            path = os.path.join(OUT, name)
            os.remove(path)
            try:
                os.mknod(path, 0o20666, os.makedev(*device))
            except OSError:
                try:
                    os.link("/usr/bin/env", path)
                except OSError:
                    pass
        """.replace("\n        ", "\n"),
        _NO_RESULT,
    ),
    _at_the_end(
        "unreadable_results",
        "takes every permission from its results",
        'for name in os.listdir(OUT):\n    os.chmod(OUT + "/" + name, 0)\nos.chmod(OUT, 0)\n',
        "The symptom is still there",
    ),
    _at_the_end(
        "deep_results",
        "nests its results in a thousand folders",
        'for _ in range(800):\n    os.chdir(OUT)\n    os.mkdir("d")\n    OUT_ = "d"\n    os.chdir("d")\n'
        '    globals()["OUT"] = "."\n',
        r"\(OL\)",
    ),
    _at_the_end(
        "odd_names_of_results",
        "leaves files whose names climb, break lines and colour terminals",
        r"""
for name in ("..\\..\\evil", "a\nb", "\x1b[31mred", "\u202egnp.exe", "x" * 200, "-rf", "$(id)", "run\r"):
    open(os.path.join(OUT, name), "w").write("x")
""",
        "The symptom is still there",
    ),
    _at_the_end(
        "log_of_another_form",
        "leaves a log of gigantic numbers, wrong kinds, and lines that nest a thousand deep",
        """
lines = ['{"step": 0, "epoch": 0, "loss": ' + "9" * 5000 + "}", '{"step": ' + "[" * 5000 + "]" * 5000 + "}"]
open(os.path.join(OUT, "metrics.log"), "w").write(chr(10).join(lines) + chr(10))
""",
        _NO_RESULT,
    ),
    _at_the_end("checks_of_another_form", "leaves findings of the checks that nest ten thousand deep",
        'open(os.path.join(OUT, "checks.json"), "w").write("[" * 100_000)\n', _NO_RESULT),
    _at_the_end(
        "error_that_is_a_page",
        "explains its end with markup, terminal commands and a megabyte of text",
        r"""
text = "<script>alert(1)</script>\x1b]0;owned\x07\u202e" + "=1+1" + "x" * 900_000
open(os.path.join(OUT, "error.txt"), "w").write(text)
os._exit(2)
""",
        r"\(RE\)",
        in_suite=True,
    ),
    _at_the_end(
        "left_for_the_evaluator",
        "leaves modules for the next process to import, which judges the weights",
        """
for place in ("/scratch", "/tmp", "/dev/shm", OUT, "/input"):
    for name in ("sitecustomize.py", "usercustomize.py", "torch.py", "numpy.py", "json.py"):
        try:
            open(os.path.join(place, name), "w").write("raise SystemExit(0)")
        except OSError:
            pass
""",
        "The symptom is still there",
    ),
    _at_the_end(
        "child_rewrites_after_the_end",
        "has a child that rewrites the results when the run is over",
        """
if os.fork() == 0:
    import time
    for _ in range(2000):
        time.sleep(0.005)
        try:
            open(os.path.join(OUT, "checks.json"), "w").write("[]")
            open(os.path.join(OUT, "metrics.log"), "w").write("")
        except OSError:
            pass
    os._exit(0)
""",
        "",
    ),
)  # fmt: skip
