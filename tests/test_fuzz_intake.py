"""Mutated archives, manifests and submissions: accepted, or rejected with a reason."""

import gzip
import tarfile
from functools import cache

from helpers.fuzzing import LARGE, examples, mutated, mutated_text, outcome
from helpers.intake_archives import COMMANDS, contents, manifest, member, packed, parsed, tar_of, whole, with_members
from hypothesis import given
from hypothesis import strategies as st

from grader.intake.archive import Rejected, read_members
from grader.intake.submission import Submission, parse_manifest
from grader.replay.request import requests_of
from harness.recipes.catalogue import load_recipe
from harness.recipes.recipe import experiment_source
from harness.submission.archive import FILES, FileManifest

pytestmark = LARGE
_GNU, _PAX = tarfile.GNU_FORMAT, tarfile.PAX_FORMAT
_LONG = "long/" * 60 + "name"
_SEED_TARS = (
    tar_of(),
    tar_of(member("notes.txt", b"mine"), member("folder", type=tarfile.DIRTYPE)),
    tar_of(member(_LONG, b"x"), form=_GNU),
    tar_of(member(_LONG, b"x", pax_headers={"comment": "x"}), form=_PAX),
    tar_of(member("link", type=tarfile.SYMTYPE, linkname="report.md")),
)
_TAR_TOKENS = (
    b"\0", b"\xff", b"0000644\0", b"7777777\0", b"\x80\0\0\0\0\0\0\0\0\0\0\x01", b"-0000001", b"../", b"/", b"\x1b[31m",
    b"5", b"g", b"x", b"L", b"S", b"ustar\x0000", b"30 path=../evil\n", b"9999 path=x\n", b"\n", b"\xe2\x80\xae",
    bytes(512), bytes(1024), b"size=99999999999\n",
)  # fmt: skip
_JSON_TOKENS = (
    b"{", b"}", b"[", b"]", b'"', b":", b",", b"null", b"true", b"1e999", b"-1", b"NaN", b"Infinity", b"9" * 400,
    b"0" * 5000, b'"\\ud800"', b'"\\u0000"', b'"\\u202e"', b"\xff", b'{"a":', b"[[", b'"student"', b'"files": {}',
    b"1" * 4400, b"\xef\xbb\xbf", b"1.0", b'"' + b"x" * 500 + b'"',
)  # fmt: skip
_NAMES = st.one_of(
    st.sampled_from((*FILES, "", ".", "..", "a/../b", "\x1b[2J", "a\nb", "A", "a", "ﬁ", "fi", "\u202e", "x" * 300)),
    st.text(max_size=12),
)


@given(mutated(_SEED_TARS, _TAR_TOKENS))
@examples(1.0)
def test_a_tar_archive_is_read_or_refused(tar: bytes) -> None:
    def read() -> dict[str, bytes]:
        members: dict[str, bytes] = {}
        read_members(tar, members)
        return members

    members = outcome(read, Rejected)
    assert members is None or sum(map(len, members.values())) <= len(tar)


@given(mutated((*(gzip.compress(tar, 1, mtime=0) for tar in _SEED_TARS), packed(whole())), _TAR_TOKENS))
@examples(0.5)
def test_a_tarball_is_taken_or_refused(data: bytes) -> None:
    outcome(lambda: parsed("ada_huge_lr", data), Rejected)


@given(
    st.lists(
        st.builds(
            member, _NAMES, st.binary(max_size=20),
            type=st.sampled_from([bytes([code]) for code in b"01234567LKSxgVDN\0"]),
        ),
        max_size=5,
    ),
    st.sampled_from((tarfile.USTAR_FORMAT, _GNU, _PAX)),
)  # fmt: skip
@examples(0.25)
def test_members_of_any_kind_and_name_are_taken_or_refused(
    members: list[tuple[tarfile.TarInfo, bytes]], form: int
) -> None:
    try:
        data = with_members(*members, form=form)
    except (ValueError, UnicodeError):  # a name that archives cannot contain
        return
    found = outcome(lambda: parsed("ada_huge_lr", data), Rejected)
    assert found is None or all(name.isprintable() for name in (*found.files, *found.ignored))


@given(mutated((manifest(contents()), manifest({}), manifest({}, student="Zoë O'Brien, Jr.")), _JSON_TOKENS))
@examples(0.5)
def test_a_manifest_is_read_or_refused(data: bytes) -> None:
    found: FileManifest | None = outcome(lambda: parse_manifest(data), Rejected)
    assert found is None or found.student.isprintable()


@cache
def _submission() -> dict[str, bytes]:
    files = dict.fromkeys(contents(), b"{}")
    return {**files, "command.txt": COMMANDS, "experiment.py": experiment_source("digits_mlp").encode()}


_META = (
    b'{"platform_class": {"architecture": "x86_64", "numerics": "portable", "device": "cpu", "torch": "2.13.0",'
    b' "golden": true}}'
)
_COMMAND_TOKENS = (
    "--seed 7", "--epochs 3", "--batch 0", "--clip-norm 1e400", "--clip-norm nan", "'", '"', "\\", "\n", "\r\n", "\0",
    "--dataset mnist", "--device cuda", "--numerics native", "# runs/fixed", "--verify", "--seed -1", "٣", "--script",
    "--break", "--max-steps 99999999999999999999", "é",
)  # fmt: skip


@given(
    commands=mutated_text((COMMANDS.decode(),), _COMMAND_TOKENS),
    meta=mutated((_META,), _JSON_TOKENS),
    source=st.one_of(st.binary(max_size=100), st.just(experiment_source("digits_mlp").encode())),
)
@examples(0.25)
def test_what_a_submission_says_of_itself_is_taken_or_refused(commands: str, meta: bytes, source: bytes) -> None:
    files = {
        **_submission(),
        "command.txt": commands.encode("utf-8", "replace"),
        "runs/fixed/checkpoint.pt.meta.json": meta,
        "experiment.py": source,
    }
    data = packed({**files, "manifest.json": manifest(files)})

    def taken() -> Submission:
        found = parsed("ada_huge_lr", data)
        assert requests_of(found, load_recipe("huge_lr"))["fixed"].key
        return found

    found = outcome(taken, Rejected)
    assert found is None or found.command_problem.isprintable()
