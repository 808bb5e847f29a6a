"""`make test-matrix`: the tests of watching with other versions of Python and PyTorch.

A version of PyTorch is tried if the package index has a build for the CPU of this machine: builds for CUDA take
gigabytes. Where it has none, and QEMU is installed, an emulated ARM processor is used, for which PyTorch has small
builds. Debian gives the Python for that processor. Environments lie in a cache folder, so a second run begins at once.

Prints a line for each pair of versions: what the tests said, or why the pair could not be tried.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from packaging.metadata import parse_email
from packaging.requirements import Requirement

REPOSITORY = Path(__file__).parents[1]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trainwreck" / "matrix"
# Versions of Python and of torch: the oldest ones, the newest ones, and some between them.
PAIRS = (
    ("3.10", "2.4.0"), ("3.11", "2.4.0"), ("3.11", "2.5.1"), ("3.11", "2.6.0"), ("3.11", "2.7.1"), ("3.11", "2.8.0"),
    ("3.11", "2.13.0"), ("3.12", "2.4.0"), ("3.12", "2.8.0"), ("3.13", "2.5.1"), ("3.13", "2.8.0"), ("3.14", "2.9.1"),
)  # fmt: skip
TESTS = ("test_watch.py", "test_watch_ways.py")
# The release of Debian that has a Python.
SUITES = {"3.11": "bookworm", "3.13": "trixie", "3.14": "forky"}
MIRROR = "http://deb.debian.org/debian"
ARM = ("manylinux2014_aarch64", "manylinux_2_28_aarch64")
NEEDED = ("pytest", "rich")


class Impossible(Exception):
    """A pair of versions that this machine cannot try. The message says why."""


def call(*words: str | Path, **options: Any) -> "subprocess.CompletedProcess[str]":
    """Run a command, and return its output. Raises `Impossible` with the last line of its errors if it fails."""
    done: subprocess.CompletedProcess[str] = subprocess.run(
        [*map(str, words)], capture_output=True, text=True, check=False, **options
    )
    if done.returncode:
        lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        raise Impossible(lines[-1] if lines else f"{words[0]} failed")
    return done


def pip(*words: str | Path, python: Path | None = None) -> str:
    """Run pip for an interpreter, by default for this one, and return its output."""
    place = ("--python", python) if python is not None else ()
    return call(sys.executable, "-m", "pip", *place, "--disable-pip-version-check", *words).stdout


def find_python(version: str) -> Path:
    """Return an interpreter of a version that runs here. Raises `Impossible`."""
    places = [*Path.home().glob(f".pyenv/versions/{version}.*/bin/python")]
    if found := shutil.which(f"python{version}"):
        places.insert(0, Path(found))
    for place in places:
        done = subprocess.run([place, "-c", "import venv"], capture_output=True, check=False)
        if done.returncode == 0:
            return place
    raise Impossible(f"there is no Python {version}")


def native(version: str, torch: str, wheel: Path) -> list[str]:
    """Return the command of an interpreter of this machine that has these versions. Raises `Impossible`."""
    folder = CACHE / f"python-{version}-torch-{torch}"
    python = folder / "bin" / "python"
    wanted = (f"torch=={torch}", *NEEDED)
    if not (folder / "complete").is_file():
        call(find_python(version), "-m", "venv", "--clear", folder)
        with tempfile.NamedTemporaryFile("r", encoding="utf-8") as plan:
            pip(
                "install",
                "--quiet",
                "--dry-run",
                "--only-binary",
                ":all:",
                "--report",
                plan.name,
                *wanted,
                python=python,
            )
            report = json.load(plan)
        names = {item["metadata"]["name"]: item["download_info"]["url"] for item in report["install"]}
        if big := [name for name, url in names.items() if name.startswith(("nvidia-", "cuda-")) and "file:" not in url]:
            raise Impossible(f"the package index has only the build for CUDA, with {len(big)} libraries")
        pip("install", "--quiet", "--only-binary", ":all:", *wanted, python=python)
        (folder / "complete").touch()
    pip("install", "--quiet", "--no-deps", "--no-index", "--force-reinstall", wheel, python=python)
    return [str(python)]


def emulated(version: str, torch: str, wheel: Path) -> list[str]:
    """Return the command of an interpreter for ARM that has these versions. Raises `Impossible`."""
    qemu = shutil.which("qemu-aarch64")
    if qemu is None or shutil.which("apt-get") is None:
        raise Impossible("emulation needs qemu-aarch64 (on Debian: apt-get install qemu-user)")
    if version not in SUITES:
        raise Impossible(f"Debian has no Python {version} to emulate")
    root = debian(version)
    folder = CACHE / f"arm-python-{version}-torch-{torch}"
    place = ["--only-binary", ":all:", "--python-version", version, *(f"--platform={name}" for name in ARM)]
    if not (folder / "complete").is_file():
        shutil.rmtree(folder, ignore_errors=True)
        with tempfile.TemporaryDirectory() as scratch:
            pip("download", "--quiet", "--no-deps", *place, "--dest", scratch, f"torch=={torch}")
            (archive,) = Path(scratch).glob("torch-*.whl")
            install: list[str | Path] = ["install", "--quiet", "--no-compile", *place, "--target", folder]
            pip(*install, "--no-deps", archive)
            pip(*install, *needs(archive, version), *NEEDED)
        (folder / "complete").touch()
    shutil.rmtree(folder / "trainwreck", ignore_errors=True)
    ZipFile(wheel).extractall(folder)
    # A test starts `sys.executable`, so the emulator must stand behind one name.
    script = folder / "python"
    script.write_text(
        f'#!/bin/sh\nPYTHONHOME="{root}/usr" PYTHONPATH="{folder}${{PYTHONPATH:+:$PYTHONPATH}}"'
        f' exec {qemu} -L "{root}" -0 "{script}" "{root}/usr/bin/python{version}" "$@"\n',
        encoding="utf-8",
    )
    script.chmod(0o755)
    return [str(script)]


def needs(archive: Path, version: str) -> Iterator[str]:
    """Yield what a wheel needs on ARM with a version of Python."""
    with ZipFile(archive) as files:
        (name,) = [name for name in files.namelist() if name.endswith(".dist-info/METADATA")]
        metadata, _ = parse_email(files.read(name))
    place = {"platform_machine": "aarch64", "python_version": version, "extra": ""}
    for requirement in map(Requirement, metadata.get("requires_dist", [])):
        if (requirement.marker is None or requirement.marker.evaluate(place)) and "nvidia" not in requirement.name:
            yield f"{requirement.name}{requirement.specifier}"


def debian(version: str) -> Path:
    """Return a folder with a Python of Debian for ARM and its libraries, without a change of this system."""
    folder = CACHE / f"debian-{SUITES[version]}"
    root = folder / "root"
    if not (folder / "complete").is_file():
        shutil.rmtree(folder, ignore_errors=True)
        for name in ("lists/partial", "archives/partial", "root"):
            (folder / name).mkdir(parents=True)
        (folder / "status").touch()
        key = "/usr/share/keyrings/debian-archive-keyring.gpg"
        (folder / "sources.list").write_text(
            f"deb [signed-by={key}] {MIRROR} {SUITES[version]} main\n", encoding="utf-8"
        )
        options = {
            "Dir::State::lists": folder / "lists",
            "Dir::State::status": folder / "status",
            "Dir::Cache": folder,
            "Dir::Etc::sourcelist": folder / "sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
            "APT::Architecture": "arm64",
            "APT::Architectures::": "arm64",
            "APT::Sandbox::User": "",
            "Debug::NoLocking": "1",
        }
        apt = ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in options.items())]
        call(*apt, "update")
        packages = (f"python{version}", "libstdc++6")
        call(*apt, "-y", "--no-install-recommends", "--download-only", "install", *packages)
        for archive in sorted((folder / "archives").glob("*.deb")):
            call("dpkg-deb", "-x", archive, root)
        if not (root / "lib").exists():  # newer releases have it as a link
            (root / "lib").symlink_to("usr/lib")
        (folder / "complete").touch()
    return root


def build_wheel(folder: Path) -> Path:
    """Build the wheel of the package `trainwreck` in a folder, and return it."""
    source = folder / "trainwreck"
    shutil.copytree(
        REPOSITORY / "trainwreck", source, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
    )
    call(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", folder, source)
    (wheel,) = folder.glob("*.whl")
    return wheel


def run_tests(python: list[str], folder: Path, words: list[str], tests: tuple[str, ...]) -> tuple[bool, str]:
    """Run the tests. Return whether all passed, and the versions with the last line of pytest."""
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = slow: not run here\n", encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    options: dict[str, Any] = {"cwd": folder, "env": environment}
    show = (
        "import platform, torch, trainwreck; print(platform.python_version(), torch.__version__, trainwreck.__file__)"
    )
    *versions, place = call(*python, "-c", show, **options).stdout.split()
    assert not Path(place).is_relative_to(REPOSITORY), place
    chosen = words or ["-m", "not slow", *(str(REPOSITORY / "tests" / name) for name in tests)]
    pytest = [*python, "-m", "pytest", "-q", "--noconftest", "-c", "pytest.ini", "-p", "no:cacheprovider", *chosen]
    done = subprocess.run(pytest, **options, capture_output=True, text=True, check=False)
    lines = done.stdout.strip().splitlines() or [done.stderr[-300:]]
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return done.returncode == 0, "\n  ".join([f"Python {versions[0]}, torch {versions[1]}: {lines[-1]}", *failed])


def main() -> int:
    """Try all pairs, or those that are named, and return 0 if no test failed, and at least one pair was tried."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", help="a pair such as 3.11/2.4.0")
    parser.add_argument("words", nargs="*", help="arguments for pytest in place of the usual tests")
    options = parser.parse_args()
    pairs = [tuple(pair.split("/")) for pair in options.only] if options.only else PAIRS
    CACHE.mkdir(parents=True, exist_ok=True)
    outcomes = set()
    for version, torch in pairs:
        name = f"Python {version}, torch {torch}"
        reasons = []
        for kind, tests in ((native, TESTS), (emulated, TESTS[:1])):  # an emulated processor is slow
            with tempfile.TemporaryDirectory(prefix="trainwreck-matrix-") as scratch:
                try:
                    python = kind(version, torch, build_wheel(Path(scratch)))
                    passed, line = run_tests(python, Path(scratch), options.words, tests)
                except Impossible as why:
                    reasons.append(f"{kind.__name__}: {why}")
                    continue
            print(f"{'passed' if passed else 'FAILED'}  {kind.__name__}  {line}", flush=True)
            outcomes.add(passed)
            break
        else:
            print(f"not tried  {name}: {'; '.join(reasons)}", flush=True)
    return 0 if outcomes == {True} else 1


if __name__ == "__main__":
    sys.exit(main())
