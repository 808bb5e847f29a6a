"""Which layers of an experiment an edit touches: functions by their layer, all else by the functions that use it."""

import ast
from dataclasses import dataclass

from grader.syntax.edit_size import Parts, bound_names, edit_sizes, module_parts
from grader.syntax.parse import parse_experiment
from harness.recipe import Area

LAYERS: dict[str, Area] = {
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
    """What differs between two sources.

    `sizes` has the nodes inserted, deleted or relabelled by part: the name of a function, a class or a constant, or
    "" for statements that bind no name. `layers` are those whose functions differ, or use something that
    does.
    """

    sizes: dict[str, int]
    layers: frozenset[Area]

    @property
    def total(self) -> int:
        """The size of the whole edit."""
        return sum(self.sizes.values())


@dataclass(frozen=True)
class _Uses:
    """Which statements of a module bind a name, and which names of the module each statement reads."""

    binding: dict[str, list[int]]
    read: list[set[str]]


@dataclass(frozen=True)
class Program:
    """An experiment, read once to be compared with others."""

    tree: ast.Module
    parts: Parts
    uses: _Uses


def read_program(tree: ast.Module) -> Program:
    """Return a parsed experiment with what comparing it takes."""
    return Program(tree, module_parts(tree), _uses(tree))


def compare(old: str, new: str) -> Changes:
    """Return what differs between two experiments. Raises `grader.syntax.parse.Unparsable`."""
    return compare_programs(read_program(parse_experiment(old)), read_program(parse_experiment(new)))


def compare_programs(old: Program, new: Program) -> Changes:
    """Return what differs between two experiments that have been read."""
    sizes = edit_sizes(old.parts, new.parts)
    changed = {name for part in sizes for name in part.split(", ")}
    layers = {
        layer
        for name, layer in LAYERS.items()
        if changed & (_reached(old.uses, name) | _reached(new.uses, name))
    }
    return Changes(sizes, frozenset(layers))


def changed_layers(old: str, new: str) -> frozenset[Area]:
    """Return the layers in which two experiments differ. Raises `grader.syntax.parse.Unparsable`."""
    return compare(old, new).layers


def _uses(tree: ast.Module) -> _Uses:
    binding: dict[str, list[int]] = {}
    for index, statement in enumerate(tree.body):
        for name in bound_names(statement):
            binding.setdefault(name, []).append(index)
    read = [
        {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)} & binding.keys()
        for statement in tree.body
    ]
    return _Uses(binding, read)


def _reached(uses: _Uses, start: str) -> set[str]:
    """Return a layer's function and what it uses, not counting other layers' functions: those are their own."""
    reached, waiting, seen = {start}, [start], set()
    while waiting:
        for index in uses.binding.get(waiting.pop(), ()):
            if index in seen:
                continue
            seen.add(index)
            news = uses.read[index] - reached - LAYERS.keys()
            reached |= news
            waiting += news
    return reached
