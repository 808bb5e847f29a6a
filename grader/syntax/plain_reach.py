"""What a file reads: imports, parts of modules, attributes, builtin functions."""

import ast
import builtins
import re

from grader.syntax.names import UNCLEAR, imported
from grader.syntax.plain_names import is_listed, is_module, problem_of
from grader.syntax.program import Found, Program
from grader.syntax.torch_names import words

_FRAMES = words(
    """
    ag_await ag_code ag_frame cr_await cr_code cr_frame cr_origin f_back f_builtins f_code f_globals f_lasti f_lineno
    f_locals f_trace gi_code gi_frame gi_yieldfrom mro tb_frame tb_lasti tb_lineno tb_next with_traceback
    """
)
_HOOK = re.compile(r"register_\w*hook\w*|\w*_hooks?|register_backward|next_functions|profile_hook_step")
# Of a random generator, whoever holds it.
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


def check_imports(program: Program) -> Found:
    """Find imports of what an experiment does not need, and any inside a class, where no name is followed."""
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
    """Find modules that are handed around: only `module.name` and a plain second name for a module are followed."""
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
            yield node.lineno, "reach", f"hands the module {modules[0]} around, where it cannot be followed"


def check_attributes(program: Program) -> Found:
    """Find attributes that are not public, that lead to frames, hooks, generators' states or memory."""
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
    """Say whether a call is `super().__init__(...)` or `nn.Module.__init__(self)`."""
    function = call.func
    if not (isinstance(function, ast.Attribute) and function.attr == "__init__"):
        return False
    base = function.value
    if isinstance(base, ast.Call):
        return isinstance(base.func, ast.Name) and base.func.id == "super"
    return isinstance(base, ast.Attribute) and base.attr == "Module"


def check_builtins(program: Program) -> Found:
    """Find builtin functions beyond the usual ones, and `getattr` and `type` in all but their plain forms."""
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
            yield node.lineno, "class", "makes a class by calling type, or hands type around"
        elif node.id == "__name__" or (node.id == "input" and "input" not in calls):
            continue
        elif node.id in known or _DUNDER.fullmatch(node.id):
            yield (
                node.lineno,
                "builtin",
                f"uses {node.id[:60]}, with which a file can do what it does not show",
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
    """Find texts that name what only Python itself uses: `str.format` reads attributes by such names."""
    docstrings = {id(node.value) for node in program.nodes if isinstance(node, ast.Expr)}
    for node in program.nodes:
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in docstrings:
            continue
        found = _DUNDER.search(node.value)
        if found and node.value != "__main__":
            yield node.lineno, "introspection", f"names {found[0]} in a text"
