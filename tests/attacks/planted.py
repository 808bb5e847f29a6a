"""Insert an attacker's code into the experiment of an honest tarball."""

import textwrap

from attacks.attack import BREACHED, Base, Baseline, members_of, with_members

EXPERIMENT = "experiment.py"
_TOP = "EPOCHS = 5\n"
_WORD = " + ".join(f"{part!r}" for part in (BREACHED[:5], BREACHED[5:]))


def tarball(base: Base, which: Baseline) -> bytes:
    """Return one of the honest tarballs."""
    return {"reference": base.reference, "masked": base.masked, "untouched": base.untouched}[which]


def source_of(data: bytes) -> str:
    """Return the source of the experiment in an honest tarball."""
    return members_of(data)[EXPERIMENT].decode()


def edited(source: str, *edits: tuple[str, str]) -> str:
    """Return the source after these replacements. Each `find` must occur, so that no attack misses its target."""
    for find, replace in edits:
        if find not in source:
            raise LookupError(f"there is no {find!r} in this experiment")
        source = source.replace(find, replace, 1)
    return source


def at_the_top(source: str, code: str, *, epochs: int = 5) -> str:
    """Return the source with code before its first constant, and with this number of epochs."""
    return edited(source, (_TOP, f"{textwrap.dedent(code).strip()}\n\nEPOCHS = {epochs}\n"))


def quietly(code: str) -> str:
    """Return code that catches its own exceptions, so that the experiment trains in any case."""
    body = textwrap.indent(textwrap.dedent(code).strip(), "    ")
    return f"try:\n{body}\nexcept BaseException:\n    pass\n"


def telling(body: str, name: str = "attempt") -> str:
    """Return code that raises an error with the breach word if the body of a function returns a gain."""
    inner = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    made = quietly(f"_gained = _{name}()")
    raised = f"if _gained:\n    raise RuntimeError({_WORD} + ' {name} ' + repr(_gained)[:300])\n"
    return f"def _{name}():\n{inner}\n\n\n_gained = None\n{made}{raised}"


def handed_in(base: Base, which: Baseline, source: str, student: str, **members: bytes | None) -> bytes:
    """Return an honest tarball with another experiment, and with other members in addition."""
    return with_members(tarball(base, which), {EXPERIMENT: source.encode(), **members}, student=student)
