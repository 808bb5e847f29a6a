"""Attacks by the manifest: what it is, what it says, and where it does not agree with the archive."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from attacks.attack import MANIFEST, Attack, Base, Expected, manifest_for, members_of
from harness.submission.archive import deterministic_tar_gz, with_manifest

Build = Callable[[Base], bytes]


def _refused(id: str, says: str, because: str, build: Build) -> Attack:
    return Attack(id, "archive", says, Expected(("rejected",), because), build)


def _manifest(text: bytes | None) -> Build:
    return lambda base: base.with_members(base.reference, {MANIFEST: text}, student="")


def _saying(**fields: Any) -> Build:
    """The right fix with another manifest, which agrees with it in all else."""

    def build(base: Base) -> bytes:
        files = members_of(base.reference)
        before = files.pop(MANIFEST)
        text = manifest_for(files, before, **fields)
        return base.with_members(base.reference, {MANIFEST: text}, student="")

    return build


def _holding(changed: Mapping[str, bytes | None]) -> Build:
    """The right fix with other members, and the manifest of those it had."""

    def build(base: Base) -> bytes:
        before = members_of(base.reference)[MANIFEST]
        return base.with_members(base.reference, {**changed, MANIFEST: before}, student="")

    return build


def _written(field: str, text: str) -> Build:
    """The right fix with a value that json.dumps would not write."""

    def build(base: Base) -> bytes:
        record = json.loads(members_of(base.reference)[MANIFEST])
        whole = json.dumps({**record, field: "HERE"}).replace('"HERE"', text)
        return base.with_members(base.reference, {MANIFEST: whole.encode()}, student="")

    return build


def _without_answer(base: Base) -> bytes:
    """Two runs whose manifest is that of a written exercise."""
    members = members_of(base.reference)
    del members[MANIFEST]
    facts = {"student": "ada", "recipe": "backprop_mlp"}
    return deterministic_tar_gz(with_manifest(members, facts))


def _twice(base: Base) -> bytes:
    text = members_of(base.reference)[MANIFEST].decode()
    return base.with_members(
        base.reference, {MANIFEST: text.replace("{", '{"student": "ada",', 1).encode()}, student=""
    )


def _without_manifest(base: Base) -> bytes:
    files = members_of(base.reference)
    del files[MANIFEST]
    return deterministic_tar_gz(files)


def _unlisted(base: Base) -> bytes:
    """A report whose hash nobody vouches for."""
    files = members_of(base.reference)
    before = files.pop(MANIFEST)
    listed = {name: content for name, content in files.items() if name != "report.md"}
    text = manifest_for(listed, before)
    return base.with_members(base.reference, {MANIFEST: text}, student="")


_DEEP = b"[" * 30_000 + b"]" * 30_000

ATTACKS = (
    _refused("no_manifest", "an archive without a manifest", "no manifest.json", _without_manifest),
    _refused("manifest_empty", "an empty manifest", "not strict JSON", _manifest(b"")),
    _refused("manifest_text", "a manifest in prose", "not strict JSON", _manifest(b"I did it all myself.")),
    _refused("manifest_utf16", "a manifest in UTF-16", "not strict JSON",
        _manifest('{"student": "ada"}'.encode("utf-16"))),
    _refused("manifest_deep", "30,000 brackets", "not strict JSON", _manifest(_DEEP)),
    _refused("manifest_large", "a manifest of 20 MB", "larger than 64", _manifest(b" " * 20_000_000 + b"{}")),
    _refused("manifest_list", "a list", "not the manifest of a submission", _manifest(b"[]")),
    _refused("manifest_twice", "two students in one", "not strict JSON", _twice),
    _refused("manifest_version", "a format to come", "another format version", _saying(format_version=2)),
    _refused("manifest_true", "true for version 1", "format_version", _saying(format_version=True)),
    _refused("seed_digits", "a seed of 60,000 digits", "not strict JSON", _written("seed", "9" * 60_000)),
    _refused("seed_long", "a seed of 4,000 digits", "seed", _written("seed", "9" * 4_000)),
    _refused("seed_nan", "a seed that is no number", "not strict JSON", _written("seed", "NaN")),
    _refused("seed_infinite", "a seed beyond all numbers", "seed", _written("seed", "1e999")),
    _refused("seed_negative", "a seed below 0", "seed", _saying(seed=-1)),
    _refused("more_keys", "a key that gives points", "total", _saying(total=100)),
    _refused("path_as_recipe", "a recipe that is a path", "no exercise",
        _saying(recipe="../solutions/huge_lr")),
    _refused("escapes_as_recipe", "a recipe that clears the screen", "no exercise",
        _saying(recipe="\x1b[2J\u202e\u009b31m")),
    _refused("surrogate_recipe", "a recipe that is no text", "recipe", _written("recipe", '"\\ud800"')),
    _refused("other_data", "a data set of another shape", "cannot be run on", _saying(dataset="cifar10")),
    _refused("path_as_data", "a data set that is a path", "no data set", _saying(dataset="../../etc/passwd")),
    _refused("student_long", "a student of 4,000 characters", "student", _saying(student="x" * 4_000)),
    _refused("student_escapes", "a student who clears the screen", "student", _saying(student="\x1b[2Jada")),
    _refused("student_backwards", "a student who reads backwards", "student", _saying(student="\u202eada")),
    _refused("student_newline", "a student of two lines", "student", _saying(student="ada\n=1+1")),
    _refused("student_nul", "a student with a NUL", "student", _saying(student="ada\0")),
    _refused("answer_missing", "two runs as the answer to a written exercise", "has no backprop.py",
        _without_answer),
    _refused("wrong_hash", "a log of another's under its own hash", "another SHA-256",
        _holding({"runs/fixed/metrics.log": b"{}\n"})),
    _refused("missing_file", "a file that is only in the manifest", "not in the archive",
        _holding({"runs/fixed/result.json": None})),
    _refused("listed_outside", "a file outside, in the manifest", "not in the archive",
        _saying(files={"../../etc/passwd": "0" * 64})),
    _refused("unlisted", "a report that is not in the manifest", "not in the manifest", _unlisted),
    _refused("no_experiment", "no experiment", "no experiment.py",
        lambda base: base.with_members(base.reference, {"experiment.py": None}, student="x")),
    _refused("experiment_not_text", "an experiment that is no text", "not UTF-8",
        lambda base: base.with_members(base.reference, {"experiment.py": b"\xff\xfe\x00"}, student="x")),
)  # fmt: skip
