"""Record which parts of a program are executed, and list the statements in its functions that never are."""

import ast
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from types import CodeType, FrameType
from typing import Any, NamedTuple

from harness.behaviour.compare import NEVER_CALLED

# Functions that only read a value or compute it, without another effect.
_LOOKS = frozenset(
    ("abs", "all", "any", "float", "format", "int", "item", "items", "join", "keys", "len", "list", "max", "mean",
     "min", "norm", "round", "set", "sorted", "str", "sum", "tolist", "tuple", "values")
)  # fmt: skip
# Calls that list the parts of a network.
_PARTS = frozenset(
    ("parameters", "named_parameters", "buffers", "named_buffers", "modules", "named_modules", "children",
     "named_children", "zip", "enumerate", "list", "tuple", "reversed")
)  # fmt: skip
# Constants that run settings may override.
_SET_BY_RUNS = frozenset({"EPOCHS", "BATCH_SIZE"})


class _SourceSpan(NamedTuple):
    """The position of an expression in the source: first and last line, first and last column."""

    line: int
    end_line: int
    column: int
    end_column: int

    def holds(self, other: "_SourceSpan") -> bool:
        """Return whether this span contains another span."""
        begins = (self.line, self.column) <= (other.line, other.column)
        return begins and (other.end_line, other.end_column) <= (self.end_line, self.end_column)


@contextmanager
def record_places(file: str, most_calls: int | None = None) -> Iterator[set[_SourceSpan]]:
    """Yield a set that, at the end of the `with` block, contains the source spans of the file that were executed.

    most_calls: how many calls of each function are recorded; None for all. Recording takes as long as the program.
    """
    calls = Counter[CodeType]()
    found = set[tuple[CodeType, int]]()
    places = set[_SourceSpan]()

    def on_operation(frame: FrameType, event: str, _: Any) -> Any:
        if event == "opcode":
            found.add((frame.f_code, frame.f_lasti))
        return on_operation

    def on_call(frame: FrameType, _event: str, _: Any) -> Any:
        if frame.f_code.co_filename != file:
            return None
        calls[frame.f_code] += 1
        if most_calls is not None and calls[frame.f_code] > most_calls:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return on_operation

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        yield places
    finally:
        sys.settrace(before)
        of_code = {code: [*code.co_positions()] for code, _ in found}
        for code, at in found:
            line, end_line, column, end_column = of_code[code][at // 2]
            if line is not None and end_line is not None and column is not None and end_column is not None:
                places.add(_SourceSpan(line, end_line, column, end_column))


def not_executed(
    tree: ast.AST, executed: set[_SourceSpan], constants: Mapping[str, object] | None = None, inside: str = ""
) -> dict[str, list[float | str]]:
    """Return {function: statements that were not executed}.

    The list of a function begins with `NEVER_CALLED` if the function was not called. For an executed statement, the
    list contains the parts of its expressions that were not executed. Some code is left out because it has no effect
    here:

    - `raise`, because the training never raises this exception;
    - `print`;
    - code that a constant of the file switches off;
    - code for graphics cards, because the grader has none;
    - loops over parts of a network, such as its buffers, if the network has no such parts.
    """
    found: dict[str, list[float | str]] = {}
    constants = _constants(tree) if constants is None else constants
    lines = {place.line for place in executed}
    for node in ast.iter_child_nodes(tree):
        name = f"{inside}.{node.name}".lstrip(".") if isinstance(node, ast.FunctionDef | ast.ClassDef) else inside
        found |= not_executed(node, executed, constants, name)
        if isinstance(node, ast.FunctionDef):
            statements = list(_own_statements(node.body, constants))
            missed = [one for one in statements if lines.isdisjoint(_lines_of(one))]
            without = {id(part) for one in statements if one not in missed for part in _over_no_parts(one, lines)}
            if statements and len(missed) == len(statements):
                found[name] = [NEVER_CALLED]
            acting = [one for one in missed if not (_prints(one) or _is_for_cards(one) or id(one) in without)]
            texts = [ast.unparse(one).partition("\n")[0] for one in acting]
            told = _only_told(node)
            looked_at = (one for one in statements if one not in missed and not _tells(one, told))
            branches = chain(*(_branches(one, constants) for one in looked_at))
            texts += [text for branch, text in branches if not any(map(_place_of(branch).holds, executed))]
            if texts:
                found[name] = [*found.get(name, ()), *texts]
    return found


def _constants(tree: ast.AST) -> dict[str, object]:
    """Return {name: value} of the constants in a file, except names that are assigned twice or that a run may set."""
    stored = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    stored += [node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)]
    found: dict[str, object] = {}
    for node in getattr(tree, "body", ()):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=value)) if stored.count(name) == 1:
                found[name] = value
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Tuple(elts=[])) if stored.count(name) == 1:
                found[name] = ()
    return {name: value for name, value in found.items() if name not in _SET_BY_RUNS}


def _value_of(test: ast.expr, constants: Mapping[str, object]) -> bool | None:
    """Return the value of a condition that depends only on constants or graphics cards, and None for another one."""
    if ast.unparse(test) == "torch.cuda.is_available()":
        return False
    match test:
        case ast.Constant(value=value):
            return bool(value)
        case ast.Name(id=name) if name in constants:
            return bool(constants[name])
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            value = _value_of(operand, constants)
            return None if value is None else not value
    return None


def _own_statements(block: Sequence[ast.stmt], constants: Mapping[str, object]) -> Iterator[ast.stmt]:
    """Yield the statements of a function, without inner functions and without code that a constant switches off."""
    for node in block:
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not is_text and not isinstance(node, ast.Raise | ast.Assert | ast.Pass | ast.Try | ast.Global):
            yield node
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        asks = getattr(node, "test" if isinstance(node, ast.If) else "iter", None)
        holds = _value_of(asks, constants) if isinstance(node, ast.If | ast.For) and asks is not None else None
        parts = {None: ("body", "orelse", "finalbody"), True: ("body",), False: ("orelse",)}[holds]
        handlers = [handler.body for handler in getattr(node, "handlers", ())]
        for inner in (*(getattr(node, part, ()) for part in parts), *handlers):
            yield from _own_statements(inner, constants)


def _branches(statement: ast.stmt, constants: Mapping[str, object]) -> Iterator[tuple[ast.expr, str]]:
    """Yield (expression, description) for the expressions that are not always evaluated when a statement runs."""
    heads = [node for node in ast.iter_child_nodes(statement) if not isinstance(node, ast.stmt)]
    for node in chain(*map(ast.walk, heads)):
        match node:
            case ast.IfExp(test=test, body=one, orelse=other):
                parts = {None: [one, other], True: [one], False: [other]}[_value_of(test, constants)]
            case ast.BoolOp(values=[_, *others]):
                parts = others
            case ast.Lambda(body=one) | ast.ListComp(elt=one) | ast.SetComp(elt=one) | ast.GeneratorExp(elt=one):
                parts = [one]
            case ast.DictComp(value=one):
                parts = [one]
            case _:
                parts = []
        yield from ((part, f"{ast.unparse(part)} in {ast.unparse(node)}") for part in parts)


def _only_told(function: ast.FunctionDef) -> set[str]:
    """Return the names in a function whose values are only printed, or only decide whether something is printed."""
    names = {node.id: 0 for node in ast.walk(function) if isinstance(node, ast.Name)}
    told = dict.fromkeys(names, 0)
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            names[node.id] += 1
        parts: list[ast.AST] = []
        if isinstance(node, ast.If) and not node.orelse and all(map(_prints, node.body)):
            parts = [node.test]
        elif isinstance(node, ast.stmt) and _prints(node):
            parts = [node]
        for name in (one for part in parts for one in ast.walk(part) if isinstance(one, ast.Name)):
            told[name.id] += isinstance(name.ctx, ast.Load)
    outside = (
        name for node in ast.walk(function) if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names
    )
    return {name for name, count in names.items() if count == told[name]}.difference(outside)


def _tells(statement: ast.stmt, told: set[str]) -> bool:
    """Return whether a statement prints, or computes a value that is only printed."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in told:
            return _LOOKS.union(_PARTS).issuperset(_called_names(value))
    return _prints(statement)


def _called_names(node: ast.AST) -> list[str]:
    """Return the last part of the name of each call in a piece of source."""
    calls = [one.func for one in ast.walk(node) if isinstance(one, ast.Call)]
    return [one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "") for one in calls]


def _over_no_parts(statement: ast.stmt, lines: set[int]) -> Iterator[ast.stmt]:
    """Yield the statements in a loop over parts of a network if the network has none of these parts."""
    if not isinstance(statement, ast.For):
        return
    names = _called_names(statement.iter)
    if names and _PARTS.issuperset(names) and lines.isdisjoint(chain(*map(_lines_of, statement.body))):
        yield from (one for inner in statement.body for one in ast.walk(inner) if isinstance(one, ast.stmt))


def _is_for_cards(statement: ast.stmt) -> bool:
    """Return whether a statement calls only functions for graphics cards."""
    calls = [ast.unparse(one.func) for one in ast.walk(statement) if isinstance(one, ast.Call)]
    return bool(calls) and all(name.startswith("torch.cuda.") for name in calls)


def _prints(statement: ast.stmt) -> bool:
    """Return whether a statement only prints, without any call that could have another effect."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Name(id="print")) as call):
            calls = [node.func for node in ast.walk(call) if isinstance(node, ast.Call) and node is not call]
            names = {one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "") for one in calls}
            return names <= _LOOKS and not any(isinstance(node, ast.NamedExpr) for node in ast.walk(call))
    return False


def _place_of(node: ast.expr) -> _SourceSpan:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return _SourceSpan(node.lineno, node.end_lineno, node.col_offset, node.end_col_offset)


def _lines_of(node: ast.stmt) -> range:
    """Return the lines of a statement; for a compound statement, the lines of its head."""
    body = getattr(node, "body", None)
    last = body[0].lineno - 1 if isinstance(body, list) and body else node.end_lineno or node.lineno
    return range(node.lineno, max(last, node.lineno) + 1)
