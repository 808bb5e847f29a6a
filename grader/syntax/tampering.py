"""Find edits that no fix needs: other data, seeds, network sizes, training lengths or evaluation."""

import ast
from collections import Counter
from collections.abc import Set
from functools import lru_cache

from grader.syntax.allowed_names import words
from grader.syntax.edit_size import Changes
from grader.syntax.names import Names, read_names
from grader.syntax.parse import normalized
from grader.syntax.trees import bindings, bound_names, functions
from harness.recipe import Area

_LARGEST = 10**12
# The positions of the parameters that hold a batch.
_BATCH = {"prepare_batch": (0, 1), "train_step": (2, 3), "compute_loss": (1,), "evaluate": (1, 2)}
_SEEDING = words(
    """
    manual_seed manual_seed_all seed seed_all set_rng_state set_state Generator fork_rng default_rng RandomState
    default_generator initial_seed
    """
)
# Layers of torch.nn with parameters, by the beginning of their names.
_LAYERS_WITH_PARAMETERS = (
    "Linear", "LazyLinear", "Bilinear", "Conv", "LazyConv", "BatchNorm", "LazyBatchNorm", "SyncBatchNorm", "LayerNorm",
    "GroupNorm", "InstanceNorm", "RMSNorm", "Embedding", "RNN", "LSTM", "GRU", "PReLU", "MultiheadAttention",
    "Transformer", "Parameter",
)  # fmt: skip


def tampering(
    broken: ast.Module, student: ast.Module, reference: ast.Module, changes: Changes, allowed: Set[Area]
) -> tuple[str, ...]:
    """Return what an edit changes and no fix needs, as ends of the sentence "Your edit changes ...".

    `changes` is the student's edit of the broken experiment; `allowed` are the areas that the recipe breaks or its
    reference edit touches.
    """
    found = []
    if "data" in changes.areas - allowed:
        found.append("the data (load_data)")
    if _batches_changed(broken, student, allowed):
        found.append("the inputs or the labels of a batch")
    if _seeding(student) - (_seeding(broken) | _seeding(reference)):
        found.append("the seed or the state of a random generator")
    if _capacity(student) not in (_capacity(broken), _capacity(reference)):
        found.append("the size of the network (layers with parameters)")
    for name in ("BATCH_SIZE", "EPOCHS"):
        if _bound_to(student, name) not in (_bound_to(broken, name), _bound_to(reference, name)):
            found.append(name)
    if "evaluation" in changes.areas - allowed:
        found.append("how the network is evaluated")
    return tuple(found)


@lru_cache(maxsize=64)  # by the identity of the tree: our trees are the same for every student
def _bound_to(tree: ast.Module, name: str) -> tuple[int, list[str]]:
    """Return how often a file binds a name, and the module's statements that bind it."""
    binding = [item for item in tree.body if name in bound_names(item)]
    plain = normalized(ast.Module(body=binding, type_ignores=[])).body
    statements = [ast.dump(item) for item in plain if name in bound_names(item)]
    return Counter(bindings(tree))[name], statements


def _batches_changed(broken: ast.Module, student: ast.Module, allowed: Set[Area]) -> bool:
    before, after = functions(broken), functions(student)
    for name in _BATCH.keys() & before.keys() & after.keys():
        if name == "prepare_batch" and "pipeline" in allowed:
            continue
        if _rebound(name, after[name]) - _rebound(name, before[name]):
            return True
    if "pipeline" in allowed or not {"prepare_batch"} <= before.keys() & after.keys():
        return False
    return _returned(after["prepare_batch"]) != _returned(before["prepare_batch"])


def _rebound(name: str, function: ast.FunctionDef) -> Counter[str]:
    """Count how often a function binds the names of its batch again, or writes to their objects."""
    parameters = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    batch = {parameters[index] for index in _BATCH[name] if index < len(parameters)}
    bound: Counter[str] = Counter()
    for node in ast.walk(function):
        match node:
            case ast.Name(id=found, ctx=ast.Store()) if found in batch:
                bound[found] += 1
            case ast.Subscript(value=ast.Name(id=found), ctx=ast.Store()) if found in batch:
                bound[found] += 1
            case ast.Call(func=ast.Attribute(value=ast.Name(id=found), attr=method)) if found in batch:
                bound[found] += method.endswith("_")
    return bound


def _returned(function: ast.FunctionDef) -> list[str]:
    return [ast.dump(node) for node in ast.walk(function) if isinstance(node, ast.Return)]


@lru_cache(maxsize=64)
def _seeding(tree: ast.Module) -> Counter[str]:
    names = (
        node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        for node in ast.walk(tree)
    )
    return Counter(name for name in names if name in _SEEDING)


@lru_cache(maxsize=64)
def _capacity(tree: ast.Module) -> Counter[tuple[object, ...]]:
    """Count the calls that make layers with parameters, and the helper calls with numbers in `build_model`."""
    names, own = read_names(tree), functions(tree)
    calls: Counter[tuple[object, ...]] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (layer := _layer(node, names)):
            calls[(layer, *_arguments(node))] += 1
    if "build_model" in own:
        for node in ast.walk(own["build_model"]):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in own:
                numbers = [item for item in _arguments(node) if not isinstance(item, str)]
                if numbers:
                    calls[(node.func.id, *numbers)] += 1
    return calls


def _layer(call: ast.Call, names: Names) -> str:
    for path in sorted(names.paths_of(call.func)):
        name = path.rpartition(".")[2]
        if path.startswith("torch.nn.") and name.startswith(_LAYERS_WITH_PARAMETERS):
            return name
    return ""


def _arguments(call: ast.Call) -> list[object]:
    """Return the arguments of a call without their names: numbers first, with arithmetic worked out."""
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    numbers = [_number(value) for value in values]
    texts = sorted(ast.dump(v) for v, n in zip(values, numbers, strict=True) if n is None)
    return [*sorted(n for n in numbers if n is not None), *texts]


def _number(node: ast.expr) -> float | None:
    """Return the value of a number, or of sums, differences and products of numbers, else None."""
    match node:
        case ast.Constant(value=int() | float() as value) if abs(value) <= _LARGEST:
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            inner = _number(operand)
            return None if inner is None else -inner
        case ast.BinOp(left=left, op=op, right=right):
            first, second = _number(left), _number(right)
            if first is None or second is None or max(abs(first), abs(second)) > _LARGEST:
                return None
            match op:
                case ast.Add():
                    return first + second
                case ast.Sub():
                    return first - second
                case ast.Mult():
                    return first * second
    return None
