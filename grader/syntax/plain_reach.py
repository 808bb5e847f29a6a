"""What a file uses and defines: imports, attributes, builtin functions, texts, classes, decorators.

Each check yields the places that a plain experiment does not have.
"""

import ast
import builtins
import re
from collections.abc import Iterator

from grader.syntax.allowed_names import is_listed, is_module, problem_of, words
from grader.syntax.names import UNCLEAR, Found, Program, imported
from grader.syntax.trees import Function

_FRAMES = words(
    """
    ag_await ag_code ag_frame cr_await cr_code cr_frame cr_origin f_back f_builtins f_code f_globals f_lasti f_lineno
    f_locals f_trace gi_code gi_frame gi_yieldfrom mro tb_frame tb_lasti tb_lineno tb_next with_traceback
    """
)
_HOOK = re.compile(r"register_\w*hook\w*|\w*_hooks?|register_backward|next_functions|profile_hook_step")
# Methods of a random generator, on any object.
_RANDOM = frozenset({"manual_seed", "manual_seed_all", "seed", "initial_seed", "set_state", "get_state"})
_OUTSIDE = words(
    """
    compile ctypes data_ptr dump dumps from_file load_module save share_memory share_memory_ storage tobytes tofile
    typed_storage untyped_storage
    """
)
_ALLOWED_BUILTINS = words(
    """
    ArithmeticError AssertionError AttributeError Exception False FloatingPointError IndexError KeyError LookupError
    None NotImplemented NotImplementedError OverflowError RuntimeError StopIteration True TypeError UserWarning
    ValueError ZeroDivisionError Ellipsis
    abs all any bool bytes callable chr classmethod complex dict divmod enumerate filter float format frozenset
    hasattr hash int isinstance issubclass iter len list map max min next object ord pow print property range repr
    reversed round set slice sorted staticmethod str sum super tuple zip
    """
)
_DUNDER = re.compile(r"__\w{1,60}__")
_BASES = frozenset({"torch.nn.Module", "torch.nn.Sequential", "typing.NamedTuple", "abc.ABC", "enum.Enum"})
_DUNDERS = frozenset({"__init__", "__repr__", "__len__", "__iter__", "__getitem__", "__post_init__"})
_DECORATORS = words(
    """
    torch.no_grad torch.enable_grad torch.inference_mode torch.autocast torch.amp.autocast torch.cuda.amp.autocast
    dataclasses.dataclass functools.wraps contextlib.contextmanager abc.abstractmethod
    """
)
_PLAIN_DECORATORS = frozenset({"staticmethod", "classmethod", "property"})
# What the harness calls on a network, or Python for it, besides `forward` (torch 2.13; a test compares).
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


def check_imports(program: Program) -> Found:
    """Find imports that an experiment does not need, and all inside a class, where names cannot be followed."""
    in_classes = {
        id(node) for outer in program.nodes if isinstance(outer, ast.ClassDef) for node in ast.walk(outer)
    }
    for node in program.nodes:
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        if id(node) in in_classes:
            yield node.lineno, "import", "imports inside a class"
        paths = (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [path for _, path in imported(node)]
        )
        for path in paths:
            if path.endswith(".*"):
                yield node.lineno, "import", f"imports everything from {path[:-2][:60]}, named nowhere"
            elif isinstance(node, ast.Import) and not is_module(path):
                yield (
                    node.lineno,
                    "import",
                    f"imports {path[:60]}, with which a file could reach the program that grades it",
                )
            elif problem := problem_of(path):
                yield node.lineno, "import", f"imports {problem}"


def check_modules_as_values(program: Program) -> Found:
    """Find modules that are passed around; only `module.name` and a plain second name for a module can be followed."""
    followed: set[int] = set()
    for node in program.nodes:
        match node:
            case ast.Attribute(value=value):
                followed.add(id(value))
            case ast.Assign(targets=targets, value=value) if all(isinstance(t, ast.Name) for t in targets):
                followed.add(id(value))
    for outer in program.nodes:
        if isinstance(outer, ast.ClassDef):  # `Class.name` would be a third name
            followed -= {id(item.value) for item in ast.walk(outer) if isinstance(item, ast.Assign)}
    for node in program.nodes:
        if not isinstance(node, ast.Name | ast.Attribute) or id(node) in followed:
            continue
        modules = [
            path for path in sorted(program.names.paths_of(node)) if is_module(path) or path == UNCLEAR
        ]
        if modules and isinstance(node.ctx, ast.Load):
            yield node.lineno, "reach", f"passes the module {modules[0]} around, where it cannot be followed"


def check_attributes(program: Program) -> Found:
    """Find attributes that are private, or lead to frames, hooks, random states or memory."""
    inits = {id(node.func) for node in program.nodes if isinstance(node, ast.Call) and _is_super_init(node)}
    for node in program.nodes:
        if isinstance(node, ast.MatchClass):
            for attribute in node.kwd_attrs:
                yield from _judge_name(node.cls.lineno, attribute, own=False)
        if not isinstance(node, ast.Attribute):
            continue
        paths = program.names.paths_of(node)
        for path in sorted(paths):
            if problem := problem_of(path):
                yield node.lineno, "reach", f"uses {problem}"
        if id(node) in inits or any(is_listed(path) for path in paths):
            continue
        own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
        yield from _judge_name(node.lineno, node.attr, own=own)


def _judge_name(line: int, name: str, *, own: bool) -> Found:
    shown = name[:60]
    if name.startswith("__") or name in _FRAMES:
        yield line, "introspection", f"reads {shown}, which leads into the program that grades it"
    elif name.startswith("_") and not own:
        yield line, "private", f"uses {shown}, which is not public"
    elif _HOOK.fullmatch(name):
        yield line, "hook", f"uses {shown}: a hook can change what is recorded"
    elif name in _RANDOM and not own:
        yield line, "random", f"uses {shown}, which controls what is drawn"
    elif name in _OUTSIDE:
        yield line, "memory", f"uses {shown}, with which data could leave or enter"


def _is_super_init(call: ast.Call) -> bool:
    """Return whether a call is `super().__init__(...)` or `nn.Module.__init__(self)`."""
    function = call.func
    if not (isinstance(function, ast.Attribute) and function.attr == "__init__"):
        return False
    base = function.value
    if isinstance(base, ast.Call):
        return isinstance(base.func, ast.Name) and base.func.id == "super"
    return isinstance(base, ast.Attribute) and base.attr == "Module"


def check_builtins(program: Program) -> Found:
    """Find unusual builtin functions, and unusual forms of `getattr` and `type`."""
    known = frozenset(dir(builtins))
    calls = {
        node.func.id
        for node in program.nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    plain = {id(node.func) for node in program.nodes if isinstance(node, ast.Call) and _is_plain_call(node)}
    for node in program.nodes:
        if not isinstance(node, ast.Name) or node.id in _ALLOWED_BUILTINS or id(node) in plain:
            continue
        if node.id == "getattr":
            yield node.lineno, "builtin", "reads an attribute by a name that it computes"
        elif node.id == "type":
            yield node.lineno, "class", "makes a class by calling type, or passes type around"
        elif node.id == "__name__" or (node.id == "input" and "input" not in calls):
            continue
        elif node.id in known or _DUNDER.fullmatch(node.id):
            yield (
                node.lineno,
                "builtin",
                f"uses {node.id[:60]}, with which a file can hide what it does",
            )
    for node in program.nodes:
        if isinstance(node, ast.Call) and id(node.func) in plain and len(node.args) > 1:
            name = node.args[1]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                for line, _, what in _judge_name(node.lineno, name.value, own=False):
                    yield line, "builtin", what


def _is_plain_call(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Name) or any(isinstance(item, ast.Starred) for item in call.args):
        return False
    if call.func.id == "type":
        return len(call.args) == 1 and not call.keywords
    if call.func.id == "getattr" and len(call.args) in (2, 3):
        return isinstance(call.args[1], ast.Constant) and isinstance(call.args[1].value, str)
    return False


def check_texts(program: Program) -> Found:
    """Find texts with names such as `__class__`: `str.format` reads attributes by name."""
    docstrings = {id(node.value) for node in program.nodes if isinstance(node, ast.Expr)}
    for node in program.nodes:
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in docstrings:
            continue
        found = _DUNDER.search(node.value)
        if found and node.value != "__main__":
            yield node.lineno, "introspection", f"names {found[0]} in a text"


def check_classes(program: Program) -> Found:
    """Find classes with unusual bases, or that replace something that the harness calls."""
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
                yield line, "class", f"defines {name[:60]}, which Python calls by itself"
            elif derived and (name in _NETWORK or _NETWORK_PRIVATE.fullmatch(name)):
                yield line, "class", f"replaces {name[:60]}, which the harness calls"
    for node in program.nodes:
        if isinstance(node, ast.Attribute) and _NETWORK_PRIVATE.fullmatch(node.attr):
            yield node.lineno, "private", f"uses {node.attr[:60]}, which is not public"


def _defined(node: ast.ClassDef) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of everything that a class binds for its objects."""
    for item in ast.walk(node):
        if isinstance(item, Function | ast.ClassDef) and item is not node:
            yield item.lineno, item.name
        elif isinstance(item, ast.Import | ast.ImportFrom):
            yield from ((item.lineno, alias.asname or alias.name) for alias in item.names)
    methods = {id(inner) for item in ast.walk(node) if isinstance(item, Function) for inner in ast.walk(item)}
    for item in ast.walk(node):
        stored = isinstance(getattr(item, "ctx", None), ast.Store)
        if isinstance(item, ast.Name) and stored and id(item) not in methods:
            yield item.lineno, item.id
        elif isinstance(item, ast.Attribute) and stored and _is_self(item.value):
            yield item.lineno, item.attr


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def check_decorators(program: Program) -> Found:
    """Find decorators that are neither well known nor defined in the file."""
    functions = {node.name for node in program.nodes if isinstance(node, ast.FunctionDef)}
    for node in program.nodes:
        for decorator in getattr(node, "decorator_list", []):
            target = decorator.func if isinstance(decorator, ast.Call) else decorator
            if isinstance(target, ast.Name) and target.id in _PLAIN_DECORATORS | functions:
                continue
            if not program.names.paths_of(target) & _DECORATORS:
                yield decorator.lineno, "decorator", "uses a decorator that is not well known"
