"""Builds the wheel: it holds what lies beside the packages, too (`harness/recipes/suite.py` finds it).

The package `trainwreck` has a distribution of its own, so no wheel of this one installs it as a package. Only an
editable installation of a clone finds it, too.
"""

import shutil
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py
from setuptools.command.editable_wheel import editable_wheel

HERE = Path(__file__).parent
SUITE = "trainwreck_suite"
FOLDERS = ("docs", "exercises", "solutions", "trainwreck")  # kits hold the sources of the package trainwreck
# What kits and bundles of Gradescope are made of, and texts that every student may quote.
FILES = ("LICENSE", "Makefile", "NOTICE", "pyproject.toml")


class BuildWithSuite(build_py):
    """Copies the suite into the wheel; an editable installation finds it where it is."""

    def run(self) -> None:
        """Build the packages, then copy the suite beside them."""
        super().run()
        if self.editable_mode:
            return
        suite = Path(self.build_lib, SUITE)
        shutil.rmtree(suite, ignore_errors=True)
        for name in FOLDERS:
            unwanted = shutil.ignore_patterns("__pycache__", ".*", "work", "build", "*.egg-info")
            shutil.copytree(HERE / name, suite / name, ignore=unwanted)
        for path in (*map(HERE.joinpath, FILES), *HERE.glob("*.md")):
            shutil.copy2(path, suite / path.name)


class EditableWithWatch(editable_wheel):
    """Lets an editable installation find the package `trainwreck` in the clone."""

    def run(self) -> None:
        """Add the package, then install as usual."""
        self.distribution.packages += find_packages(str(HERE), include=["trainwreck", "trainwreck.*"])
        super().run()


setup(cmdclass={"build_py": BuildWithSuite, "editable_wheel": EditableWithWatch})
