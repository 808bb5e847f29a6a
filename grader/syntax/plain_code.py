"""Is an experiment plain: could its code reach, or change, the program that records, trains and probes it?

What a file may do is listed, not what it may not: the modules it may import, and the parts of torch it may use.
Whatever else it does may be harmless and is a matter for a person. So a suspicion costs nothing by itself; it
says that what the experiment's own process measured is not proof.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from grader.syntax.names import UNCLEAR, Names, imported, read_names
from grader.syntax.parse import Unparsable, parse_experiment


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_MODULES = _words(
    """
    __future__ abc collections collections.abc contextlib copy dataclasses enum functools itertools math numpy
    operator statistics typing harness.losses harness.schedules
    torch torch.amp torch.autograd torch.cuda torch.cuda.amp torch.distributions torch.fft torch.func torch.linalg
    torch.nn torch.nn.functional torch.nn.init torch.nn.modules torch.nn.parameter torch.nn.utils
    torch.nn.utils.clip_grad torch.nn.utils.parametrizations torch.optim torch.optim.lr_scheduler
    torch.optim.swa_utils torch.special torch.utils torch.utils.data
    """
)
# What these modules show beside their own things: modules of Python's, and of torch's that reach outside.
_LEAKED = _words(
    """
    accelerator ao asyncio backends builtins classes compiler cpp ctypes ctypeslib dataclasses distributed export
    f2py functools futures fx glob hub importlib inspect io jit lib library logging masked monitor multiprocessing
    np ops os overrides package pickle platform profiler quantization quasirandom random re serialization signal
    storage subprocess sys tempfile testing textwrap threading torch torch_version traceback types version warnings
    weakref
    """
)
# Functions of these modules that change how everything in the process computes, or what it draws, or that read
# and write files.
_REACHING = _words(
    """
    Generator compile default_generator from_file fromfile frombuffer genfromtxt get_default_dtype get_rng_state
    graph initial_seed load loadtxt manual_seed manual_seed_all memmap open_memmap save savetxt savez
    savez_compressed seed seterr set_anomaly_enabled set_default_device set_default_dtype set_default_tensor_type
    set_deterministic_debug_mode set_float32_matmul_precision set_flush_denormal set_num_interop_threads
    set_num_threads set_printoptions set_rng_state set_warn_always use_deterministic_algorithms
    register_module_forward_hook register_module_backward_hook
    """
)
_BUILTINS = _words(
    """
    breakpoint compile delattr eval exec exit globals help input locals memoryview open quit setattr vars
    """
)
_FRAMES = _words(
    "ag_frame cr_frame f_back f_builtins f_code f_globals f_locals gi_code gi_frame tb_frame tb_next"
)
_FILES = _words("dump dumps tofile tobytes share_memory_ untyped_storage data_ptr")
# Methods that the harness calls, or listens to: put in their place, another function could do anything.
_METHODS = _words(
    """
    add_param_group backward eval forward grad_scale load_state_dict named_parameters param_groups parameters
    scale state_dict step train unscale_ update zero_grad
    """
)
_BASES = frozenset({"torch.nn.Module", "torch.nn.Sequential", "typing.NamedTuple", "abc.ABC", "enum.Enum"})
_DUNDERS = frozenset(
    {"__init__", "__call__", "__repr__", "__len__", "__iter__", "__getitem__", "__post_init__"}
)
_DECORATORS = _words(
    """
    torch.no_grad torch.enable_grad torch.inference_mode torch.autocast torch.amp.autocast
    dataclasses.dataclass functools.cache functools.lru_cache functools.wraps contextlib.contextmanager
    """
)
_PLAIN_DECORATORS = frozenset({"staticmethod", "classmethod", "property"})
_HOOK = re.compile(r"register_\w*hook\w*")
_DUNDER = re.compile(r"__\w{1,60}__")

# The longest literal of an experiment as handed out has 9 numbers (a stencil), the longest text is a docstring.
MOST_NUMBERS = 200
MOST_CHARACTERS = 1000
LARGEST_INTEGER = 10**30


@dataclass(frozen=True)
class Suspicion:
    """One thing that a plain experiment does not do; `message` is a clause for an instructor, with the line."""

    line: int
    code: str
    message: str


def suspicions(source: str) -> tuple[Suspicion, ...]:
    """Return what in a source is not plain, in the order of lines; empty for an ordinary experiment."""
    try:
        tree = parse_experiment(source)
    except Unparsable as error:
        return (Suspicion(0, "unparsable", f"the file cannot be read ({error})"),)
    names = read_names(tree)
    found = {
        Suspicion(line, code, f"line {line} {what}")
        for check in (_imports, _attributes, _builtins, _assignments, _classes, _decorators, _constants)
        for line, code, what in check(tree, names)
    }
    return tuple(sorted(found, key=lambda item: (item.line, item.code, item.message)))


Found = Iterator[tuple[int, str, str]]


def _imports(tree: ast.Module, names: Names) -> Found:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name not in _MODULES:
                    yield (
                        node.lineno,
                        "import",
                        f"imports {alias.name[:60]}, with which a file can reach outside",
                    )
        elif isinstance(node, ast.ImportFrom):
            for _, path in imported(node):
                module, _, name = path.rpartition(".")
                if module not in _MODULES or name == "*":
                    yield node.lineno, "import", f"imports from {module[:60]}, which no experiment needs"
                elif path not in _MODULES and (problem := _reaches(path)):
                    yield node.lineno, "import", f"imports {problem}"


def _reaches(path: str) -> str:
    """Return what of an imported module a path uses that a plain experiment does not, or ""."""
    root, *parts = path.split(".")
    if root == UNCLEAR:
        return "a name that is too tangled to follow"
    for part in parts:
        if part.startswith("_"):
            return f"{path[:60]}, which is not public"
        if part in _LEAKED or part in _REACHING:
            return f"{path[:60]}, with which a file can reach the program that grades it"
    return ""


def _attributes(tree: ast.Module, names: Names) -> Found:
    inits = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_super_init(node)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or id(node) in inits:
            continue
        paths = names.paths_of(node)
        for path in sorted(paths):
            if problem := _reaches(path):
                yield node.lineno, "reach", f"uses {problem}"
        name, shown = node.attr, node.attr[:60]
        own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
        if name.startswith("__"):
            yield node.lineno, "introspection", f"reads {shown}, which leads into the program that grades it"
        elif name.startswith("_") and not own and not paths:
            yield node.lineno, "private", f"uses {shown}, which is not public"
        elif name in _FRAMES:
            yield node.lineno, "introspection", f"reads {shown}, which leads into the program that grades it"
        elif _HOOK.fullmatch(name):
            yield node.lineno, "hook", f"calls {shown}: a hook can change what is recorded"
        elif name in _FILES:
            yield node.lineno, "memory", f"uses {shown}, with which data leaves or enters"


def _is_super_init(call: ast.Call) -> bool:
    """Say whether a call is `super().__init__(...)` or `nn.Module.__init__(self)`."""
    function = call.func
    if not (isinstance(function, ast.Attribute) and function.attr == "__init__"):
        return False
    base = function.value
    if isinstance(base, ast.Call):
        return isinstance(base.func, ast.Name) and base.func.id == "super"
    return isinstance(base, ast.Attribute) and base.attr == "Module"


def _builtins(tree: ast.Module, names: Names) -> Found:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            if node.id in _BUILTINS or (node.id.startswith("__") and node.id.endswith("__")):
                yield (
                    node.lineno,
                    "builtin",
                    f"uses {node.id[:60]}, with which a file can do what it does not show",
                )
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in ("getattr", "hasattr") and not _plain_name(node.args[1:2]):
                yield node.lineno, "builtin", "reads an attribute by a name that it computes"
            elif node.func.id == "type" and len(node.args) + len(node.keywords) > 1:
                yield node.lineno, "class", "makes a class by calling type"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _DUNDER.fullmatch(node.value):
            yield node.lineno, "introspection", f"names {node.value} in a text"


def _plain_name(arguments: list[ast.expr]) -> bool:
    first = arguments[0] if arguments else None
    return (
        isinstance(first, ast.Constant) and isinstance(first.value, str) and not first.value.startswith("_")
    )


def _assignments(tree: ast.Module, names: Names) -> Found:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute | ast.Subscript) or isinstance(node.ctx, ast.Load):
            continue
        base = node
        while isinstance(base, ast.Subscript):
            base = base.value  # type: ignore[assignment]
        path = next(iter(sorted(names.paths_of(base))), "")
        if path:
            yield node.lineno, "patch", f"changes {path[:60]}, which is not the experiment's own"
        elif isinstance(node, ast.Attribute) and node.attr in _METHODS:
            yield node.lineno, "patch", f"puts something in the place of {node.attr}, which the harness calls"


def _classes(tree: ast.Module, names: Names) -> Found:
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef):
            continue
        if node.keywords:
            yield node.lineno, "class", f"gives the class {node.name[:60]} a metaclass or keywords"
        for base in node.bases:
            known = bool(names.paths_of(base) & _BASES)
            if not known and not (isinstance(base, ast.Name) and base.id in own | {"object"}):
                yield node.lineno, "class", f"derives the class {node.name[:60]} from something unusual"
        for item in node.body:
            name = getattr(item, "name", "")
            if name.startswith("__") and name not in _DUNDERS:
                yield item.lineno, "class", f"defines {name[:60]}, which Python calls unseen"


def _decorators(tree: ast.Module, names: Names) -> Found:
    functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(tree):
        for decorator in getattr(node, "decorator_list", []):
            target = decorator.func if isinstance(decorator, ast.Call) else decorator
            if isinstance(target, ast.Name) and target.id in _PLAIN_DECORATORS | functions:
                continue
            if not names.paths_of(target) & _DECORATORS:
                yield decorator.lineno, "decorator", "uses a decorator that is not well known"


def _constants(tree: ast.Module, names: Names) -> Found:
    texts = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Dict):
            numbers = sum(isinstance(item, ast.Constant) for item in ast.walk(node))
            if numbers > MOST_NUMBERS:
                yield node.lineno, "data", f"holds {numbers} constants in one place, perhaps weights"
        elif isinstance(node, ast.Constant) and id(node) not in texts:
            value = node.value
            if isinstance(value, str | bytes) and len(value) > MOST_CHARACTERS:
                yield node.lineno, "data", f"holds a text of {len(value)} characters, perhaps weights"
            elif isinstance(value, int) and abs(value) >= LARGEST_INTEGER:
                yield node.lineno, "data", "holds a number of more than 30 digits, perhaps weights"
