"""What differs between two experiments: the size of the edit by part, and the areas of the program that it touches."""

import ast
from dataclasses import dataclass

from grader.syntax.edit_size import Parts, edit_sizes, module_parts
from grader.syntax.parse import parse_experiment
from grader.syntax.trees import bound_names, names_in
from harness.recipe import Area

AREAS: dict[str, Area] = {
    "load_data": "data",
    "prepare_batch": "pipeline",
    "build_model": "model",
    "compute_loss": "loss",
    "build_optimizer": "optimizer",
    "build_scheduler": "optimizer",
    "train_step": "loop",
    "evaluate": "evaluation",
    # The training loop reads these itself.
    "EPOCHS": "loop",
    "BATCH_SIZE": "loop",
}


@dataclass(frozen=True)
class Changes:
    """The difference between two sources.

    `sizes` maps parts to the number of nodes inserted, deleted or relabelled; a part is the name of a function, a
    class or a constant, or "" for statements that bind no name. `areas` are those whose functions differ, or use
    something that differs.
    """

    sizes: dict[str, int]
    areas: frozenset[Area]

    @property
    def total(self) -> int:
        """The size of the whole edit."""
        return sum(self.sizes.values())


@dataclass(frozen=True)
class ComparedProgram:
    """An experiment, prepared to be compared with others.

    `binding` maps names to the indices of the statements that bind them; `read` has the module's names that each
    statement uses.
    """

    tree: ast.Module
    parts: Parts
    binding: dict[str, list[int]]
    read: list[set[str]]


def prepare(tree: ast.Module) -> ComparedProgram:
    """Prepare a parsed experiment to be compared with others."""
    binding: dict[str, list[int]] = {}
    for index, statement in enumerate(tree.body):
        for name in bound_names(statement):
            binding.setdefault(name, []).append(index)
    read = [set(names_in(statement)) & binding.keys() for statement in tree.body]
    return ComparedProgram(tree, module_parts(tree), binding, read)


def compare(old: str, new: str) -> Changes:
    """Return the difference between two experiments. Raises `grader.syntax.parse.Unparsable`."""
    return compare_programs(prepare(parse_experiment(old)), prepare(parse_experiment(new)))


def compare_programs(old: ComparedProgram, new: ComparedProgram) -> Changes:
    """Return the difference between two prepared experiments."""
    sizes = edit_sizes(old.parts, new.parts)
    changed = {name for part in sizes for name in part.split(", ")}
    areas = {area for name, area in AREAS.items() if changed & (_used_by(old, name) | _used_by(new, name))}
    return Changes(sizes, frozenset(areas))


def changed_areas(old: str, new: str) -> frozenset[Area]:
    """Return the areas in which two experiments differ. Raises `grader.syntax.parse.Unparsable`."""
    return compare(old, new).areas


def _used_by(program: ComparedProgram, start: str) -> set[str]:
    """Return a function of an area and the names that it uses, except functions of other areas."""
    reached, waiting, seen = {start}, [start], set()
    while waiting:
        for index in program.binding.get(waiting.pop(), ()):
            if index not in seen:
                seen.add(index)
                news = program.read[index] - reached - AREAS.keys()
                reached |= news
                waiting += news
    return reached
