"""What a file makes once and uses up call by call: iterators, layers and schedules that count.

A function that counts its calls without writing anything anywhere asks one of these: `for n in TICKS: break`.
"""

import ast

from grader.syntax.plain_state import KEEPS
from grader.syntax.program import Found, Program
from grader.syntax.torch_names import words

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_ITERATORS = frozenset({"enumerate", "filter", "iter", "map", "reversed", "zip"})
# Whoever takes one of those at once leaves nothing of it.
_TAKES_ALL = frozenset(
    {"all", "any", "dict", "frozenset", "list", "max", "min", "print", "set", "sorted", "sum", "tuple"}
)
# These change when they are called, or are made to count.
_COUNTING = ("torch.optim.", "itertools.", "torch.nn.BatchNorm", "torch.nn.InstanceNorm", "torch.nn.SyncBatchNorm",
             "torch.nn.LazyBatchNorm", "torch.nn.LazyInstanceNorm", "contextlib.ExitStack")  # fmt: skip
# What may be set in an optimizer's groups of parameters; any other key is a note to oneself.
_GROUP_KEYS = words(
    """
    amsgrad betas capturable dampening eps foreach fused initial_lr lr maximize momentum nesterov params weight_decay
    """
)
_ATTACHING = frozenset({"add_module", "register_buffer", "register_module", "register_parameter"})


def check_counters(program: Program) -> Found:
    """Find objects that count, made where they outlive a call: in the module, or as a default argument."""
    functions = {node.name: node for node in program.nodes if isinstance(node, _Function)}
    classes = {node.name: node for node in program.nodes if isinstance(node, ast.ClassDef)}
    taken = _taken_at_once(program)
    waiting: list[ast.AST] = _made_once(program)
    seen: set[int] = set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if id(node) not in taken and _counts(node, program):
            yield getattr(node, "lineno", 1), "state", KEEPS
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            # What a module calls runs as a part of it, and what it makes there stays.
            waiting += [item for item in (functions.get(node.id), classes.get(node.id)) if item is not None]
        waiting += ast.iter_child_nodes(node)


def _made_once(program: Program) -> list[ast.AST]:
    """Return what runs once: the statements of the module and of classes, and default arguments."""
    inside = {
        id(item)
        for node in program.nodes
        if isinstance(node, _Function | ast.Lambda)
        for part in (node.body if isinstance(node.body, list) else [node.body])
        for item in ast.walk(part)
    }
    once: list[ast.AST] = []
    for node in program.nodes:
        if isinstance(node, _Function | ast.Lambda):
            once += [item for item in (*node.args.defaults, *node.args.kw_defaults) if item is not None]
        elif isinstance(
            node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr | ast.Expr | ast.For
        ):
            once += [node] if id(node) not in inside else []
    return once


def _taken_at_once(program: Program) -> set[int]:
    """Return the iterators that are read to their end where they are made."""
    taken: set[int] = set()
    for node in program.nodes:
        match node:
            case ast.For(iter=iterator) | ast.comprehension(iter=iterator) | ast.Starred(value=iterator):
                taken.add(id(iterator))
            case ast.Call(func=ast.Name(id=name), args=arguments) if name in _TAKES_ALL:
                taken |= {id(item) for item in arguments}
            case ast.Call(func=ast.Attribute(attr="join"), args=arguments):
                taken |= {id(item) for item in arguments}
    return taken


def _counts(node: ast.AST, program: Program) -> bool:
    if not isinstance(node, ast.Call):
        return isinstance(node, ast.GeneratorExp | ast.Yield | ast.YieldFrom)
    if isinstance(node.func, ast.Name) and node.func.id in _ITERATORS:
        return True
    return any(path.startswith(_COUNTING) for path in program.names.paths_of(node.func))


def check_notes(program: Program) -> Found:
    """Find notes left on what the harness hands to a function: in an optimizer's groups, or on a network."""
    groups = {
        node.target.id
        for node in program.nodes
        if isinstance(node, ast.For | ast.comprehension)
        and isinstance(node.target, ast.Name)
        and "param_groups" in _attributes(node.iter)
    }
    for node in program.nodes:
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            named = {name.id for name in ast.walk(node.value) if isinstance(name, ast.Name)}
            inside = _attributes(node.value)
            key = node.slice.value if isinstance(node.slice, ast.Constant) else ""
            if inside & {"state", "defaults"} or (
                key not in _GROUP_KEYS and ("param_groups" in inside or named & groups)
            ):
                yield node.lineno, "state", KEEPS
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            own = isinstance(node.func.value, ast.Name) and node.func.value.id == "self"
            if node.func.attr in _ATTACHING and not own:
                yield node.lineno, "state", KEEPS


def _attributes(node: ast.AST) -> set[str]:
    return {item.attr for item in ast.walk(node) if isinstance(item, ast.Attribute)}
