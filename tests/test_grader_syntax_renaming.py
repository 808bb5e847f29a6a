"""Names of a function change if they belong to it alone."""

import ast

import pytest

from grader.syntax.renaming import parameters_of, renamed, variables_of


def function(body: str, parameters: str = "x, y") -> ast.FunctionDef:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    (found,) = ast.parse(f"def f({parameters}):\n{lines}").body
    assert isinstance(found, ast.FunctionDef)
    return found


@pytest.mark.parametrize(("body", "parameters", "own"), [
    ("a = x\nb = a", "x, y", ["x", "y", "a", "b"]),
    ("for a in x:\n    with g() as b:\n        c, d = b", "x", ["x", "a", "b", "c", "d"]),
    ("return lambda: x", "x", ["x"]), ("return [x for x in y]", "x, y", ["y"]),
    ("return lambda x: x + y", "x, y", ["y"]), ("outer = x", "x", ["x"]), ("global a\na = x", "x", ["x"]),
    ("import a\nb = a", "", ["b"]), ("try:\n    g()\nexcept E as a:\n    b = a", "", ["b"]),
    ("a = 1\ndel a", "", []), ("def g():\n    return x", "x", []), ("class A:\n    x = 1", "x", []),
    ("a = locals()", "x", []), ("a = x", "x, y=1", []), ("a = x", "*x", []), ("a = x", "x, *, y", []),
])  # fmt: skip
def test_a_variable_is_nobody_elses(body: str, parameters: str, own: list[str]) -> None:
    assert sorted(variables_of(function(body, parameters), {"outer"})) == sorted(own)


@pytest.mark.parametrize(("body", "names", "expected"), [
    ("a = x\nreturn g(a, x=y)", {"x": "u", "a": "b"}, "b = u\nreturn g(b, x=y)"),
    ("return x - y", {"x": "y", "y": "x"}, "return y - x"),
    ("return [a + x for a in y]", {"x": "u"}, "return [a + u for a in y]"),
    ("return lambda: x", {"x": "u"}, "return lambda: u"), ("return x.y", {"y": "z"}, "return x.y"),
    ("return g(x)", {"x": "g"}, None), ("a = x\nreturn y", {"a": "y"}, None),
    ("a = x\nb = y", {"a": "c", "b": "c"}, None),
])  # fmt: skip
def test_names_change_all_at_once(body: str, names: dict[str, str], expected: str | None) -> None:
    given = function(body)
    found = renamed(given, names)
    if expected is None:
        assert found is None
    else:
        assert found is not None
        assert ast.unparse(found.body) == expected  # type: ignore[arg-type]
        assert parameters_of(found) == [names.get("x", "x"), names.get("y", "y")]
    assert ast.dump(given) == ast.dump(function(body))
