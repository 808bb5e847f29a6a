"""Attacks with the manifest: it is not JSON, contains invalid values, or contradicts the archive."""

import json
from collections.abc import Mapping
from typing import Any

from attacks.archive_members import Build, refused
from attacks.attack import MANIFEST, Base, manifest_for, members_of, with_members
from harness.submission.archive import deterministic_tar_gz, with_manifest


def _manifest(text: bytes) -> Build:
    return lambda base: with_members(base.reference, {MANIFEST: text}, student="")


def _without(name: str) -> Build:
    return lambda base: with_members(base.reference, {name: None}, student="x")


def _saying(**fields: Any) -> Build:
    """The correct fix with changed fields of the manifest. The rest of the manifest matches the archive."""

    def build(base: Base) -> bytes:
        files = members_of(base.reference)
        text = manifest_for(files, files.pop(MANIFEST), **fields)
        return with_members(base.reference, {MANIFEST: text}, student="")

    return build


def _holding(changed: Mapping[str, bytes | None]) -> Build:
    """The correct fix with changed members, but with the original manifest."""

    def build(base: Base) -> bytes:
        before = members_of(base.reference)[MANIFEST]
        return with_members(base.reference, {**changed, MANIFEST: before}, student="")

    return build


def _written(field: str, text: str) -> Build:
    """The correct fix with a value in the manifest that json.dumps would not write."""

    def build(base: Base) -> bytes:
        record = json.loads(members_of(base.reference)[MANIFEST])
        whole = json.dumps({**record, field: "HERE"}).replace('"HERE"', text)
        return _manifest(whole.encode())(base)

    return build


def _without_answer(base: Base) -> bytes:
    """Two runs with the manifest of a written exercise."""
    members = members_of(base.reference)
    del members[MANIFEST]
    return deterministic_tar_gz(with_manifest(members, {"student": "ada", "recipe": "backprop_mlp"}))


def _twice(base: Base) -> bytes:
    text = members_of(base.reference)[MANIFEST].replace(b"{", b'{"student": "ada",', 1)
    return _manifest(text)(base)


def _without_manifest(base: Base) -> bytes:
    files = members_of(base.reference)
    del files[MANIFEST]
    return deterministic_tar_gz(files)


def _unlisted(base: Base) -> bytes:
    files = members_of(_without("report.md")(base))
    return deterministic_tar_gz({**files, "report.md": b"Nobody vouches for it."})


ATTACKS = tuple(refused({
    "no_manifest": ("an archive without a manifest", "no manifest.json", _without_manifest),
    "manifest_text": ("a manifest in prose", "not strict JSON", _manifest(b"I did it all myself.")),
    "manifest_utf16": ("a manifest in UTF-16", "not strict JSON", _manifest('{"student": "ada"}'.encode("utf-16"))),
    "manifest_deep": ("30,000 brackets", "not strict JSON", _manifest(b"[" * 30_000 + b"]" * 30_000)),
    "manifest_large": ("a manifest of 20 MB", "larger than 64", _manifest(b" " * 20_000_000 + b"{}")),
    "manifest_list": ("a list", "not the manifest of a submission", _manifest(b"[]")),
    "manifest_twice": ("two students in one", "not strict JSON", _twice),
    "manifest_version": ("a format to come", "different format version", _saying(format_version=2)),
    "manifest_true": ("true for version 1", "format_version", _saying(format_version=True)),
    "seed_digits": ("a seed of 60,000 digits", "not strict JSON", _written("seed", "9" * 60_000)),
    "seed_nan": ("a seed that is no number", "not strict JSON", _written("seed", "NaN")),
    "seed_infinite": ("a seed beyond all numbers", "seed", _written("seed", "1e999")),
    "more_keys": ("a key that gives points", "total", _saying(total=100)),
    "path_as_recipe": ("a recipe that is a path", "no exercise", _saying(recipe="../solutions/huge_lr")),
    "escapes_as_recipe": ("a recipe that clears the screen", "no exercise",
        _saying(recipe="\x1b[2J\u202e\u009b31m")),
    "surrogate_recipe": ("a recipe that is no text", "not strict JSON", _written("recipe", '"\\ud800"')),
    "other_data": ("a data set of another shape", "does not run on", _saying(dataset="cifar10")),
    "path_as_data": ("a data set that is a path", "no data set", _saying(dataset="../../etc/passwd")),
    "student_long": ("a student of 4,000 characters", "student", _saying(student="x" * 4_000)),
    "student_escapes": ("a student who clears the screen", "student", _saying(student="\x1b[2Jada")),
    "student_newline": ("a student of two lines", "student", _saying(student="ada\n=1+1")),
    "answer_missing": ("two runs as the answer to a written exercise", "has no backprop.py", _without_answer),
    "wrong_hash": ("a log of another's under its own hash", "does not have the SHA-256",
        _holding({"runs/fixed/metrics.log": b"{}\n"})),
    "missing_file": ("a file that is only in the manifest", "not in the archive",
        _holding({"runs/fixed/result.json": None})),
    "listed_outside": ("a file outside, in the manifest", "not in the archive",
        _saying(files={"../../etc/passwd": "0" * 64})),
    "unlisted": ("a report that is not in the manifest", "not in the manifest", _unlisted),
    "no_experiment": ("no experiment", "no experiment.py", _without("experiment.py")),
    "experiment_not_text": ("an experiment that is no text", "not UTF-8",
        lambda base: with_members(base.reference, {"experiment.py": b"\xff\xfe\x00"}, student="x")),
}))  # fmt: skip
