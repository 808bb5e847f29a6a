"""Which kinds of exercises there are whose answer is a file, and what examines each."""

from collections.abc import Mapping

from grader.written.answers.examination import Kind
from grader.written.decision_tree.examine import examine_tree
from grader.written.derivation.examine import examine_derivation

# By the `kind` of `exercise.toml`; the same names as in `harness.written.exercise.KINDS`.
KINDS: Mapping[str, Kind] = {"derivation": examine_derivation, "decision_tree": examine_tree}
