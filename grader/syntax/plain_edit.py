"""Is an edit plain: could the inserted code do anything besides training, and so change what is recorded about it?

Student code and the recorder share a process, so what that process says about itself can be forged. The broken
experiment is ours, so only what the student *inserted* needs trust: every statement that the broken experiment does
not have. Such a statement is plain if it is built from a short grammar: numbers, names of the file, functions,
methods and attributes that are listed or that the broken experiment uses, arithmetic, indexing, `if`, `for`, `try`,
`with torch.no_grad()`. There are no closures, private names or reflection, and only constants, losses, gradient
scalers and loggers at the top of the file. A class is a network whose attributes are layers and constants that
`__init__` sets, or a dataclass or NamedTuple. Everything that Python executes counts: annotations, defaults and
decorators as well. `if __name__ == "__main__"` is never true.

An edit that is not plain costs no points by itself: equal bytes still prove it, and otherwise the instructor decides.
Plain code can behave differently for inputs that look like a check's; a student who writes that knows the cause.
"""

import ast
import builtins
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from grader.intake.program import Unparsable, blocks, does_nothing, imported_paths, parse_experiment, path_of, root_of

# Of 90 honest fixes in different styles, half insert at most 28 nodes; the largest, one with a new metric, inserts 88.
# Our largest experiment has 1328.
MOST_NODES = 300
_LONGEST_TEXT, _LONGEST_NAME, _LARGEST_INTEGER = 100, 60, 10**12


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_CONTEXTS = _words(
    """
    torch.no_grad torch.enable_grad torch.inference_mode torch.set_grad_enabled torch.autocast torch.amp.autocast
    torch.cuda.amp.autocast torch.autograd.detect_anomaly torch.autograd.set_detect_anomaly
    """
)
_LOSSES = _words("BCEWithLogitsLoss CrossEntropyLoss HuberLoss KLDivLoss L1Loss MSELoss NLLLoss SmoothL1Loss")
# What an inserted statement may use of each module. All of it computes, and reaches nothing else.
_LISTED: dict[str, frozenset[str]] = {
    "torch": _words(
        """
        Tensor Generator GradScaler Size device dtype bfloat16 bool float float16 float32 float64 half int int32 int64
        long inf nan pi no_grad enable_grad inference_mode set_grad_enabled autocast manual_seed get_rng_state
        set_rng_state abs add all allclose any arange argmax argmin argsort bernoulli cat chunk clamp clip concat cos
        count_nonzero cumsum diff div dot einsum empty_like equal exp eye finfo flatten flip full full_like gather
        index_select isfinite isinf isnan linspace log log10 log1p log_softmax logsumexp masked_fill matmul max maximum
        mean median min minimum mul multinomial nan_to_num norm numel ones ones_like permute pow prod rand rand_like
        randint randn randn_like randperm relu reshape roll round rsqrt scalar_tensor sigmoid sign sin softmax sort
        split sqrt square squeeze stack std sub sum tanh tensor topk transpose tril triu unique unsqueeze var where
        zeros zeros_like
        """
    ),
    "torch.amp": _words("GradScaler autocast"),
    "torch.cuda": _words("is_available"),
    "torch.cuda.amp": _words("GradScaler autocast"),
    "torch.autograd": _words("backward grad detect_anomaly set_detect_anomaly"),
    "torch.linalg": _words("norm vector_norm matrix_norm"),
    "torch.nn": _LOSSES
    | _words(
        """
        AdaptiveAvgPool1d AdaptiveAvgPool2d AvgPool1d AvgPool2d BatchNorm1d BatchNorm2d Conv1d Conv2d ConvTranspose2d
        Dropout Dropout1d Dropout2d ELU Embedding Flatten GELU GRU GroupNorm Identity InstanceNorm2d LSTM LayerNorm
        LeakyReLU Linear LogSoftmax MaxPool1d MaxPool2d Module ModuleList MultiheadAttention PReLU Parameter RMSNorm
        ReLU ReLU6 SELU Sequential SiLU Sigmoid Softmax Softplus Tanh TransformerEncoder TransformerEncoderLayer
        Unflatten Upsample ZeroPad2d
        """
    ),
    "torch.nn.functional": _words(
        """
        adaptive_avg_pool2d avg_pool2d batch_norm binary_cross_entropy_with_logits conv1d conv2d cosine_similarity
        cross_entropy dropout elu embedding gelu group_norm huber_loss interpolate kl_div l1_loss layer_norm leaky_relu
        linear log_softmax max_pool2d mse_loss nll_loss normalize one_hot pad relu scaled_dot_product_attention sigmoid
        silu smooth_l1_loss softmax softplus tanh
        """
    ),
    "torch.nn.init": _words(
        """
        calculate_gain constant_ eye_ kaiming_normal_ kaiming_uniform_ normal_ ones_ orthogonal_ trunc_normal_ uniform_
        xavier_normal_ xavier_uniform_ zeros_
        """
    ),
    "torch.nn.parameter": _words("Parameter"),
    "torch.utils.data": _words("DataLoader TensorDataset"),
    "torch.nn.utils": _words("clip_grad_norm_ clip_grad_value_ get_total_norm parameters_to_vector"),
    "torch.nn.utils.rnn": _words("pack_padded_sequence pack_sequence pad_packed_sequence pad_sequence"),
    "torch.optim": _words("ASGD Adadelta Adagrad Adam AdamW Adamax NAdam Optimizer RAdam RMSprop SGD"),
    "torch.optim.lr_scheduler": _words(
        """
        ConstantLR CosineAnnealingLR CosineAnnealingWarmRestarts CyclicLR ExponentialLR LRScheduler LambdaLR LinearLR
        MultiStepLR MultiplicativeLR OneCycleLR PolynomialLR SequentialLR StepLR
        """
    ),
    "collections": _words("Counter OrderedDict defaultdict"),
    "copy": _words("copy deepcopy"),
    "dataclasses": _words("asdict dataclass"),
    "logging": _words("DEBUG INFO WARNING basicConfig debug error getLogger info warning"),
    "math": frozenset(name for name in vars(math) if not name.startswith("_")),
    "harness": frozenset(),
    "harness.schedules": _words("warmup_cosine"),
    "time": _words("perf_counter time"),
    "typing": _words("Any Callable Dict Iterable Iterator List NamedTuple Optional Sequence Tuple Union"),
    "collections.abc": _words("Callable Iterable Iterator Mapping Sequence"),
    "__future__": _words("annotations"),
}
_TYPES = _words("bool dict float int list object set str tuple")
_BUILTINS = _TYPES | _words(
    "abs all any enumerate hasattr isinstance iter len max min next print range reversed round sorted sum zip __name__"
)
_ERRORS = frozenset(
    name for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, Exception)
)
_ATTRIBUTES = _words(
    """
    T bias data device dtype grad images in_features indices is_cuda is_leaf labels last_epoch momentum name ndim
    num_features out_features p param_groups requires_grad running_mean running_var shape smallest_normal symbols
    table tiny train training type validation values weight
    """
)
# Methods of tensors, networks, optimizers, schedules, gradient scalers and containers.
_METHODS = _words(
    """
    abs add add_ add_module add_param_group all allclose amax amin any append argmax argmin argsort backward bfloat16
    bool buffers children chunk clamp clamp_ clamp_max clamp_min clip clone contiguous copy copy_ cpu cumsum debug
    detach detach_ diag diff dim div div_ double eq equal error eval exp expand expand_as extend fill_ flatten flip
    float floor gather ge get get_last_lr get_scale gt half index_select info insert int is_floating_point isfinite
    isinf isnan item items join keys le log log_softmax logsumexp long lt masked_fill masked_fill_ masked_select matmul
    max mean median min modules mul mul_ named_children named_modules named_parameters nan_to_num nan_to_num_ narrow ne
    neg nelement new_full new_ones new_tensor new_zeros nonzero norm numel parameters permute pow prod relu removeprefix
    repeat requires_grad_ reshape roll round scale scatter select sigmoid sign size softmax sort split sqrt square
    squeeze std step sub sub_ sum t tanh to tolist topk train transpose tril triu type unbind unflatten unique unscale_
    unsqueeze unsqueeze_ update values var view view_as warning where zero_ zero_grad
    """
)
# They change lists and networks; a network that the harness passes in would keep the change.
_GROWING = _words("add_module append extend insert")
_WRITTEN = _words("grad requires_grad")
# What may be made once at the top of a file: it counts no calls.
_KEPT = frozenset(
    {"logging.getLogger", "torch.device", "torch.GradScaler", "torch.amp.GradScaler", "torch.cuda.amp.GradScaler"}
    | {f"torch.nn.{name}" for name in _LOSSES}
)
_TAKES_LAMBDA = _words("torch.optim.lr_scheduler.LambdaLR torch.optim.lr_scheduler.MultiplicativeLR")
# What a class of the student's own must not redefine, besides the methods above.
_MODULE = _words(
    """
    apply call_super_init compile cuda dump_patches extra_repr get_buffer get_extra_state get_parameter get_submodule
    load_state_dict named_buffers register_buffer register_module register_parameter set_extra_state set_submodule
    share_memory state_dict to_empty
    """
)
# Expressions that are plain if their parts are.
_INERT = (
    ast.BinOp, ast.BoolOp, ast.Compare, ast.UnaryOp, ast.IfExp, ast.Subscript, ast.Slice, ast.Tuple, ast.List, ast.Dict,
    ast.Starred, ast.JoinedStr, ast.FormattedValue, ast.ListComp, ast.DictComp, ast.GeneratorExp, ast.comprehension,
)  # fmt: skip
_CONSTANT = (
    ast.Constant, ast.BinOp, ast.UnaryOp, ast.Tuple, ast.Name, ast.operator, ast.unaryop, ast.expr_context,
)  # fmt: skip
_PLAIN_STATEMENTS = (ast.If, ast.Expr, ast.Return, ast.Assert, ast.Break, ast.Continue, ast.Raise)
# What a schedule may compute with besides.
_COMPUTING = (*_CONSTANT, ast.IfExp, ast.Compare, ast.cmpop, ast.Return, ast.If, ast.Assign, ast.Expr)
_NUMBERS = _words("abs float int max min")


_MAIN = ("__name__ == '__main__'", "'__main__' == __name__")
# "init": in the __init__ of a class. "class": directly in a class.
_Place = Literal["top", "function", "class", "init"]


@dataclass(frozen=True)
class Suspicion:
    """One thing that a plain edit does not do; `message` is a clause for the instructor, with the line."""

    line: int
    message: str


@lru_cache(maxsize=256)
def plain_edit(broken: str, submitted: str) -> tuple[Suspicion, ...]:
    """Return what is not plain in an edit of one of our experiments, in the order of lines; () for a plain edit.

    Raises `Unparsable` if `broken` does not parse.
    """
    ours = _statements_of(broken)
    try:
        tree = parse_experiment(submitted)
    except Unparsable as error:
        return (Suspicion(0, f"the file cannot be read ({error})"),)
    inserted = [(node, place) for node, place in _statements(tree.body, "top") if (ast.dump(node), place) not in ours]
    judge = _Judge(tree, parse_experiment(broken))
    size = sum(1 for node, _ in inserted for _ in ast.walk(node))
    if size > MOST_NODES:
        what = f"begins an edit of {size} syntax-tree nodes; with more than {MOST_NODES} it is not judged as plain"
        judge.odd(inserted[0][0], what)
    for node, place in inserted:
        judge.statement(node, place)
    return tuple(sorted(judge.found, key=lambda item: (item.line, item.message)))


@lru_cache(maxsize=256)
def _statements_of(broken: str) -> dict[tuple[str, _Place], tuple[ast.stmt, _Place]]:
    found = _statements(parse_experiment(broken).body, "top")
    return {(ast.dump(node), place): (node, place) for node, place in found}


def _statements(block: list[ast.stmt], place: _Place) -> Iterator[tuple[ast.stmt, _Place]]:
    """Yield every statement without the statements in it, and where it stands."""
    for node in block:
        is_main = isinstance(node, ast.If) and ast.unparse(node.test) in _MAIN
        if does_nothing(node) or (place == "top" and is_main):
            continue
        fields = dict(ast.iter_fields(node))
        handlers = fields.get("handlers", [])
        fields.update((name, []) for name in ("body", "orelse", "finalbody") if name in fields)
        if handlers:
            fields["handlers"] = [ast.ExceptHandler(item.type, item.name, []) for item in handlers]
        yield ast.copy_location(type(node)(**fields), node), place
        inner: _Place = "function" if place != "init" else "init"
        if isinstance(node, ast.ClassDef):
            inner = "class"
        elif isinstance(node, ast.FunctionDef) and place == "class" and node.name == "__init__":
            inner = "init"
        for inside in (*blocks(node), *(item.body for item in handlers)):
            yield from _statements(inside, inner)


class _Judge:
    """Collects what is not plain in inserted statements of one file."""

    def __init__(self, tree: ast.Module, ours: ast.Module) -> None:
        """Judge inserted statements of `tree`. They may use what the broken experiment `ours` uses."""
        self.found: set[Suspicion] = set()
        nodes, our_nodes = list(ast.walk(tree)), list(ast.walk(ours))
        called = [node.func for node in our_nodes if isinstance(node, ast.Call)]
        public = [node for node in our_nodes if isinstance(node, ast.Attribute) and not node.attr.startswith("_")]
        our_imports = imported_paths(ours)
        self._our_paths = {path_of(node, our_imports) for node in public}
        self._our_methods = {node.attr for node in public if node in called}
        self._our_attributes = {node.attr for node in public if node not in called}
        self._defined = [node for node in nodes if isinstance(node, ast.FunctionDef)]
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        self._paths = imported_paths(tree)
        self._functions = {node.name for node in self._defined} | {node.name for node in classes}
        self._ours = {name for node in our_nodes for name in _bound_by(node)} & self._functions
        self._bound = {name for node in nodes for name in _bound_by(node)}
        # Attributes that classes here define: layers, constants and methods.
        self._own = {name for node in classes for part in ast.walk(node) for name in _attributes_of(part)}
        self._tables = {node.name for node in classes if self._bases(node) in ([], ["typing.NamedTuple"])}
        # The names of loops over parameters, and of what functions make themselves.
        loops = [node for node in nodes if isinstance(node, ast.For) and "param" in ast.dump(node.iter)]
        self._looped = {name for loop in loops for part in ast.walk(loop.target) for name in _bound_by(part)}
        lasting = {node.arg for node in nodes if isinstance(node, ast.arg)}
        lasting |= {name for node in tree.body for name in _names_of(node) if not isinstance(node, ast.FunctionDef)}
        inside = (part for function in self._defined for part in ast.walk(function))
        self._made = {name for node in inside for name in self._made_by(node)} - lasting
        imported: dict[str, str] = {}
        for node in nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                for name, path in imported_paths(ast.Module([node], [])).items():
                    if imported.setdefault(name, path) != path or name in self._bound:
                        self.odd(node, f"gives {name[:60]} a second meaning")

    def _made_by(self, node: ast.AST) -> Iterator[str]:
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.List() | ast.Dict() | ast.ListComp() | ast.DictComp() | ast.BinOp(left=ast.List()),
            ):
                yield name
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=maker)):
                if _is_listed(path_of(maker, self._paths)) or getattr(maker, "id", "") in _TYPES:
                    yield name

    def odd(self, node: ast.AST, what: str) -> None:
        """Note one thing that is not plain; `what` follows "line 3"."""
        line = getattr(node, "lineno", 0)
        self.found.add(Suspicion(line, f"line {line} {what}"))

    def statement(self, node: ast.stmt, place: _Place) -> None:
        """Judge a statement without the statements in it."""
        for name in _names_of(node):
            is_init = place == "class" and name == "__init__"
            if (name in _PYTHON or name.startswith("__") or len(name) > _LONGEST_NAME) and not is_init:
                self.odd(node, f"gives {name[:60]}, a name of Python or a very long one, a meaning")
        match node, place:
            case ast.Import(names=names), _:
                self._import(node, [item.name for item in names])
            case ast.ImportFrom(module=module, names=names, level=level), _:
                self._import(node, [f"{'.' * level}{module or ''}.{item.name}" for item in names])
            case ast.FunctionDef(name=name), "top" | "class":
                if place == "class" and name != "forward" and name in _METHODS | _ATTRIBUTES | _MODULE:
                    self.odd(node, f"redefines {name}")
                self._function(node)
            case ((ast.Assign(targets=[ast.Name()]) | ast.AnnAssign(target=ast.Name())), "top" | "class"):
                self._value(getattr(node, "annotation", None))
                self._kept(node.value)
            case ast.ClassDef(), "top":
                self._class(node)
            case ast.Expr(value=ast.Call(func=maker)), "top" if path_of(maker, self._paths) == "logging.basicConfig":
                self._value(node.value)
            case _, "top" | "class":
                self.odd(node, "does more at the top of the file than to define functions and constants")
            case _, "init":
                self._in_init(node)
            case _:
                self._inside(node)

    def _class(self, node: ast.ClassDef) -> None:
        """Judge the head of a class: a network, or a dataclass of constants."""
        bases = self._bases(node)
        makers = [item.func if isinstance(item, ast.Call) else item for item in node.decorator_list]
        is_table = not bases and [path_of(item, self._paths) for item in makers] == ["dataclasses.dataclass"]
        is_made = bases in (["torch.nn.Module"], ["typing.NamedTuple"]) and not makers
        if node.keywords or not (is_table or is_made):
            self.odd(node, "defines a class that is no torch.nn.Module, dataclass or NamedTuple")
        for item in node.decorator_list:
            self._value(item)

    def _bases(self, node: ast.ClassDef) -> list[str]:
        return [path_of(base, self._paths) for base in node.bases]

    def _in_init(self, node: ast.stmt) -> None:
        """Judge a statement of a network's __init__, which may set layers and constants."""
        match node:
            case ast.Expr(
                value=ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr="__init__"))
            ):
                pass
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"))], value=value):
                maker = value.func if isinstance(value, ast.Call) else value
                path = path_of(_made_from(maker), self._paths)
                named = (
                    path.startswith("torch.nn.") or path == "copy.deepcopy" or getattr(maker, "id", "") in self._ours
                )
                if not named and not self._is_lasting(value):
                    self.odd(node, "keeps more than a layer or a constant in a network")
                self._value(value)
            case _:
                self._inside(node)

    def _inside(self, node: ast.stmt) -> None:
        """Judge a statement in a function."""
        match node:
            case ast.Assign(targets=targets):
                self._targets(targets)
            case ast.AugAssign(target=target) | ast.AnnAssign(target=target) | ast.For(target=target):
                self._targets([target])
                self._value(getattr(node, "annotation", None))
            case ast.With(items=items):
                for item in items:
                    self._context(item.context_expr)
                    self._targets([item.optional_vars] if item.optional_vars else [])
            case ast.Try(handlers=handlers):
                for handler in handlers:
                    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
                    if not all(getattr(kind, "id", "") in _ERRORS for kind in kinds):
                        self.odd(node, "catches an error that is not listed")
            case _ if isinstance(node, _PLAIN_STATEMENTS):
                pass
            case _:
                self.odd(node, f"has a {type(node).__name__} statement, which no fix needs")
        for field in ("value", "iter", "test", "msg", "exc", "cause"):
            self._value(getattr(node, field, None))

    def _import(self, node: ast.stmt, paths: list[str]) -> None:
        for path in paths:
            if path not in _LISTED and not _is_listed(path):
                self.odd(node, f"imports {path[:60]}, which no fix needs")

    def _function(self, node: ast.FunctionDef) -> None:
        arguments = node.args
        if arguments.kwarg:
            self.odd(node, "defines a function with arguments of any name")
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            self._value(argument.annotation)
        self._value(node.returns)
        for default in filter(None, (*arguments.defaults, *arguments.kw_defaults)):
            self._value(default)
            if not self._is_constant(default):
                self.odd(node, "has a default argument that could keep something between calls")
        for decorator in node.decorator_list:
            self._context(decorator)

    def _context(self, node: ast.expr) -> None:
        maker = node.func if isinstance(node, ast.Call) else node
        if path_of(maker, self._paths) not in _CONTEXTS:
            self.odd(node, "uses a decorator or a context that is not listed")
        self._value(node)

    def _kept(self, value: ast.expr | None) -> None:
        """Judge a value that lives as long as the file does."""
        if isinstance(value, ast.Call) and (
            path_of(value.func, self._paths) in _KEPT or getattr(value.func, "id", "") in self._tables
        ):
            parts = [*value.args, *(item.value for item in value.keywords)]
        else:
            parts = [] if value is None else [value]
        if value is not None and not all(map(self._is_lasting, parts)):
            self.odd(value, "keeps more than a constant, a loss or a gradient scaler between calls")
        for part in parts:
            self._value(part)

    def _is_constant(self, value: ast.expr) -> bool:
        plain = all(isinstance(node, _CONSTANT) for node in ast.walk(value))
        return plain or bool(path_of(value, self._paths))

    def _is_lasting(self, value: ast.expr) -> bool:
        """Return whether a value can be kept between calls: constants, and tables of them, which nothing can change."""
        for node in ast.walk(value):
            is_field = isinstance(node, ast.Attribute) and node.attr in self._own
            if not isinstance(node, (*_CONSTANT, ast.Dict, ast.Subscript)) and not is_field:
                return bool(path_of(value, self._paths))
        return True

    def _targets(self, targets: list[ast.expr]) -> None:
        for target in targets:
            match target:
                case ast.Name():
                    pass
                case ast.Tuple(elts=elements) | ast.List(elts=elements):
                    self._targets(elements)
                case ast.Starred(value=value):
                    self._targets([value])
                case ast.Attribute(value=owner, attr=name) if name in _WRITTEN and self._is_parameter(owner):
                    self._value(owner)
                case ast.Subscript(value=owner, slice=ast.Constant(value="lr")):
                    self._value(owner)
                case ast.Subscript(value=ast.Name(id=name), slice=place) if name in self._made:
                    self._value(place)
                case _:
                    self.odd(target, f"sets {ast.unparse(target)[:60]}, which could outlive the call")

    def _is_parameter(self, node: ast.expr) -> bool:
        name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
        return name in self._looped or name in ("weight", "bias")

    def _value(self, node: ast.AST | None) -> None:
        match node:
            case ast.Constant(value=value):
                if not _is_plain_constant(value):
                    self.odd(node, "contains data that no fix needs")
            case ast.Name(id=name, ctx=ast.Load()):
                self._name(node, name)
            case ast.Attribute(value=owner, attr=name):
                path = path_of(node, self._paths)
                if not self._is_listed(path) if path else name not in _ATTRIBUTES | self._own | self._our_attributes:
                    self.odd(node, f"uses {path[:60] or f'.{name[:60]}'}, which is not listed")
                if not path:
                    if name in self._functions:
                        self.odd(node, f"passes the method {name[:60]} on")
                    self._value(owner)
            case ast.Call():
                self._call(node)
            case _ if isinstance(node, _INERT):
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr | ast.comprehension):
                        self._value(child)
            case _ if node is not None and not isinstance(node, ast.Name):
                self.odd(node, f"uses {type(node).__name__}, which no fix needs")

    def _name(self, node: ast.Name, name: str) -> None:
        if name in self._functions - self._paths.keys():
            self.odd(node, f"passes the function {name[:60]} on")
        elif not _is_listed(self._paths.get(name, "")) and name not in self._bound | _BUILTINS | _ERRORS:
            self.odd(node, f"uses {name[:60]}, which is not listed")

    def _call(self, node: ast.Call) -> None:
        path = path_of(node.func, self._paths)
        if isinstance(node.func, ast.Attribute) and not path:
            self._method(node, node.func)
        elif not (isinstance(node.func, ast.Name) and node.func.id in self._functions - self._paths.keys()):
            self._value(node.func)
        if any(keyword.arg is None or len(keyword.arg) > _LONGEST_NAME for keyword in node.keywords):
            self.odd(node, "passes arguments under names that cannot be read")
        for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
            name = getattr(argument, "id", "")
            if path not in _TAKES_LAMBDA or not (isinstance(argument, ast.Lambda) or name in self._functions):
                self._value(argument)
            elif isinstance(argument, ast.Lambda):
                self._schedule(argument, [argument.body])
                self._value(argument.body)
            else:
                for function in self._defined:
                    if function.name == name:
                        self._schedule(function, function.body)

    def _method(self, node: ast.Call, function: ast.Attribute) -> None:
        self._value(function.value)
        if function.attr not in _METHODS | self._own | self._our_methods:
            self.odd(node, f"calls .{function.attr[:60]}, which is not listed")
        if function.attr == "update" and (node.args or node.keywords):
            self.odd(node, "calls .update with arguments, which could keep something between calls")
        if function.attr in _GROWING and root_of(function.value) not in self._made:
            self.odd(node, f"calls .{function.attr} on something that the function has not made")

    def _schedule(self, node: ast.Lambda | ast.FunctionDef, body: Iterable[ast.AST]) -> None:
        """Judge the function of a schedule: it may only compute with the step, because it runs after the checks."""
        for part in (inner for item in body for inner in ast.walk(item)):
            if isinstance(part, ast.Call):
                plain = getattr(part.func, "id", "") in _NUMBERS or self._in_math(part.func)
            else:
                plain = isinstance(part, _COMPUTING) or self._in_math(part)
            if not plain:
                self.odd(node, "makes a schedule that does more than compute with the step")
        if node.args.defaults or node.args.kw_defaults:
            self.odd(node, "makes a schedule with defaults")

    def _is_listed(self, path: str) -> bool:
        return path in self._our_paths or _is_listed(path)

    def _in_math(self, node: ast.AST) -> bool:
        return path_of(node, self._paths).startswith("math.")


_PYTHON = frozenset(dir(builtins))


def _attributes_of(node: ast.AST) -> Iterator[str]:
    """Yield the attribute that a part of a class defines: by `self.name = ...`, as a field, or as a method."""
    match node:
        case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
            yield name
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.FunctionDef(name=name):
            yield name


def _is_listed(path: str) -> bool:
    module, _, name = path.rpartition(".")
    return name in _LISTED.get(module, ())


def _is_plain_constant(value: object) -> bool:
    match value:
        case bool() | float() | None:
            return True
        case int():
            return abs(value) <= _LARGEST_INTEGER
        case str():
            return len(value) <= _LONGEST_TEXT
    return value is ...


def _made_from(maker: ast.expr) -> ast.expr:
    """Return what a chain of method calls begins with: `nn.Linear` in `nn.Linear(2, 2).double`."""
    while isinstance(maker, ast.Attribute) and isinstance(maker.value, ast.Call):
        maker = maker.value.func
    return maker


def _bound_by(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node binds, other than by an import."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.MatchMapping(rest=str(name)):
            yield name


def _names_of(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement binds, imported ones as well."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        yield from imported_paths(ast.Module([statement], []))
    for node in ast.walk(statement):
        yield from _bound_by(node)
