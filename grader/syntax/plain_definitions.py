"""What a file defines: classes that could stand in for what the harness uses, and decorators. Yields findings."""

import ast
import re
from collections.abc import Iterator

from grader.syntax.program import Found, Program
from grader.syntax.torch_names import words

_BASES = frozenset({"torch.nn.Module", "torch.nn.Sequential", "typing.NamedTuple", "abc.ABC", "enum.Enum"})
_DUNDERS = frozenset({"__init__", "__repr__", "__len__", "__iter__", "__getitem__", "__post_init__"})
_DECORATORS = words(
    """
    torch.no_grad torch.enable_grad torch.inference_mode torch.autocast torch.amp.autocast torch.cuda.amp.autocast
    dataclasses.dataclass functools.wraps contextlib.contextmanager abc.abstractmethod
    """
)
_PLAIN_DECORATORS = frozenset({"staticmethod", "classmethod", "property"})
# What the harness calls on a network, or Python on its behalf, beside `forward` (torch 2.13; a test compares).
_NETWORK = words(
    """
    T_destination add_module apply bfloat16 buffers call_super_init children compile cpu cuda double dump_patches
    eval extra_repr float get_buffer get_extra_state get_parameter get_submodule half ipu load_state_dict modules
    mtia named_buffers named_children named_modules named_parameters parameters register_buffer register_module
    register_parameter requires_grad_ set_extra_state set_submodule share_memory state_dict to to_empty train
    training type xpu zero_grad
    """
)
_NETWORK_PRIVATE = re.compile(
    r"_(apply|backward|buffers|call_impl|compiled|forward|get_backward|get_name|is_full|load_|maybe_warn|modules"
    r"|named_members|non_persistent|parameters|register|replicate|save_to|slow_forward|state_dict|version|wrapped"
    r")\w*"
)


def check_classes(program: Program) -> Found:
    """Find classes with unusual bases, or that put something in the place of what the harness calls."""
    own = {node.name for node in program.nodes if isinstance(node, ast.ClassDef)}
    for node in program.nodes:
        if not isinstance(node, ast.ClassDef):
            continue
        shown = node.name[:60]
        if node.keywords:
            yield node.lineno, "class", f"gives the class {shown} a metaclass or keywords"
        for base in node.bases:
            known = bool(program.names.paths_of(base) & _BASES)
            if not known and not (isinstance(base, ast.Name) and base.id in own | {"object"}):
                yield node.lineno, "class", f"derives the class {shown} from something unusual"
        derived = any(not (isinstance(base, ast.Name) and base.id == "object") for base in node.bases)
        for line, name in _defined(node):
            called = name == "__call__" and not derived
            if name.startswith("__") and name not in _DUNDERS and not called:
                yield line, "class", f"defines {name[:60]}, which Python calls unseen"
            elif derived and (name in _NETWORK or _NETWORK_PRIVATE.fullmatch(name)):
                yield line, "class", f"puts something in the place of {name[:60]}, which the harness calls"
    for node in program.nodes:
        if isinstance(node, ast.Attribute) and _NETWORK_PRIVATE.fullmatch(node.attr):
            yield node.lineno, "private", f"uses {node.attr[:60]}, which is not public"


def _defined(node: ast.ClassDef) -> Iterator[tuple[int, str]]:
    """Yield (line, name) of everything that a class binds for its objects."""
    for item in ast.walk(node):
        if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and item is not node:
            yield item.lineno, item.name
        elif isinstance(item, ast.Import | ast.ImportFrom):
            yield from ((item.lineno, alias.asname or alias.name) for alias in item.names)
    methods = {
        id(inner)
        for item in ast.walk(node)
        if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)
        for inner in ast.walk(item)
    }
    for item in ast.walk(node):
        stored = isinstance(getattr(item, "ctx", None), ast.Store)
        if isinstance(item, ast.Name) and stored and id(item) not in methods:
            yield item.lineno, item.id
        elif isinstance(item, ast.Attribute) and stored and _is_self(item.value):
            yield item.lineno, item.attr


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def check_decorators(program: Program) -> Found:
    """Find decorators that are neither well known nor the file's own."""
    functions = {node.name for node in program.nodes if isinstance(node, ast.FunctionDef)}
    for node in program.nodes:
        for decorator in getattr(node, "decorator_list", []):
            target = decorator.func if isinstance(decorator, ast.Call) else decorator
            if isinstance(target, ast.Name) and target.id in _PLAIN_DECORATORS | functions:
                continue
            if not program.names.paths_of(target) & _DECORATORS:
                yield decorator.lineno, "decorator", "uses a decorator that is not well known"
