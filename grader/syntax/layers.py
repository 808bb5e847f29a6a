"""Which layers of an experiment an edit touches: functions by their layer, all else by the functions that use it."""

import ast
from dataclasses import dataclass

from grader.syntax.edit_size import bound_names, edit_sizes
from grader.syntax.parse import parse_experiment
from harness.recipe import Layer

LAYERS: dict[str, Layer] = {
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
    layers: frozenset[Layer]

    @property
    def total(self) -> int:
        """The size of the whole edit."""
        return sum(self.sizes.values())


def compare(old: str, new: str) -> Changes:
    """Return what differs between two experiments. Raises `grader.syntax.parse.Unparsable`."""
    return compare_trees(parse_experiment(old), parse_experiment(new))


def compare_trees(old: ast.Module, new: ast.Module) -> Changes:
    """Return what differs between two parsed experiments."""
    sizes = edit_sizes(old, new)
    uses_old, uses_new = _uses(old), _uses(new)
    changed = {name for part in sizes for name in part.split(", ")}
    layers = {
        layer
        for name, layer in LAYERS.items()
        if changed & (_reached(uses_old, name) | _reached(uses_new, name))
    }
    return Changes(sizes, frozenset(layers))


def changed_layers(old: str, new: str) -> frozenset[Layer]:
    """Return the layers in which two experiments differ. Raises `grader.syntax.parse.Unparsable`."""
    return compare(old, new).layers


def _uses(tree: ast.Module) -> dict[str, set[str]]:
    """Return, for each name that a module binds, the other such names that what it is bound to reads."""
    bound = {name for statement in tree.body for name in bound_names(statement)}
    uses: dict[str, set[str]] = {}
    for statement in tree.body:
        read = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)} & bound
        for name in bound_names(statement):
            uses.setdefault(name, set()).update(read - {name})
    return uses


def _reached(uses: dict[str, set[str]], start: str) -> set[str]:
    """Return a layer's function and what it uses, not counting other layers' functions: those are their own."""
    reached, waiting = {start}, [start]
    while waiting:
        for name in uses.get(waiting.pop(), ()):
            if name not in reached and name not in LAYERS:
                reached.add(name)
                waiting.append(name)
    return reached
