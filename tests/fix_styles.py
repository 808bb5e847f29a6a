"""The right fix of any recipe as different people write it: the same program in other words."""

import ast
import re
from collections.abc import Callable, Iterator

from harness.recipe import Recipe

Style = Callable[[ast.Module], ast.Module]


def _as_is(tree: ast.Module) -> ast.Module:
    return tree


class _KeywordsReversed(ast.NodeTransformer):
    """Reverses the keywords of every call."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        node.keywords.reverse()
        return node


class _LossRenamed(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name("batch_loss", node.ctx) if node.id == "loss" else node


class _Hinted(ast.NodeTransformer):
    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        match node.targets:
            case [ast.Name(id="loss") as target]:
                hint = ast.parse("torch.Tensor", mode="eval").body
                return ast.AnnAssign(target, hint, node.value, simple=1)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        for argument in node.args.args:
            if argument.arg == "model":
                argument.annotation = ast.parse("nn.Module", mode="eval").body
        return node


class _Redocumented(ast.NodeTransformer):
    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.body[0] = ast.Expr(ast.Constant(f"Fixed on Tuesday evening: {node.name}."))
        return node


class _Printed(ast.NodeTransformer):
    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if node.name == "train_step":
            node.body.insert(-1, ast.parse("print('loss', loss.item())").body[0])
        return node


class _Measured(ast.NodeTransformer):
    """Returns one metric more, which has a line of its own."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        result = node.body[-1].value if isinstance(node.body[-1], ast.Return) else None
        if node.name == "evaluate" and isinstance(result, ast.Dict):
            node.body.insert(-1, ast.parse("number_of_examples = len(inputs)").body[0])
            result.keys.append(ast.Constant("examples"))
            result.values.append(ast.Name("number_of_examples", ast.Load()))
        return node


class _RateNamed(ast.NodeTransformer):
    """Takes the learning rate out of its call and gives it a name at the top of the file."""

    rate: ast.expr | None = None

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        if node.arg == "lr":
            self.rate, node.value = node.value, ast.Name("LEARNING_RATE", ast.Load())
        return node


def _rate_named(tree: ast.Module) -> ast.Module:
    transformer = _RateNamed()
    tree = transformer.visit(tree)
    if transformer.rate is not None:
        first = next(place for place, node in enumerate(tree.body) if isinstance(node, ast.Assign))
        tree.body.insert(first, ast.Assign([ast.Name("LEARNING_RATE", ast.Store())], transformer.rate))
    return tree


STYLES: dict[str, Style] = {
    "typed_anew": _as_is,  # other line breaks, quotes and blank lines, no comments
    "keywords_reversed": lambda tree: _KeywordsReversed().visit(tree),
    "loss_renamed": lambda tree: _LossRenamed().visit(tree),
    "type_hints": lambda tree: _Hinted().visit(tree),
    "other_docstrings": lambda tree: _Redocumented().visit(tree),
    "prints": lambda tree: _Printed().visit(tree),
    "more_metrics": lambda tree: _Measured().visit(tree),
    "named_rate": _rate_named,
}


def styled_fixes(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """Yield (style, source) of the reference fix in every style."""
    yield "comments", re.sub(r"(?m)(?<=[^\\\n])$", "  # as it was", recipe.healthy_source())
    for name, style in STYLES.items():
        tree = style(ast.parse(recipe.healthy_source()))
        yield name, ast.unparse(ast.fix_missing_locations(tree)) + "\n"
