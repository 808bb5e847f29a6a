"""Settings in a dictionary, `SGD(..., **SETTINGS)`: back in the calls that they are spread into."""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set

from grader.syntax.constants import is_literal
from grader.syntax.trees import bindings, copied

# Beyond that many it is a table, and not what one call would have said itself.
_MOST_SETTINGS = 12

Keywords = Sequence[ast.keyword]


def spread_settings(tree: ast.Module, keep: Set[str]) -> ast.Module:
    """Return a copy in which a module's dictionaries of literals are the keywords that they stand for.

    Such a dictionary is bound once, and `**NAME` in calls is all that is ever done with it: nobody can have changed it.
    Names in `keep` stay, and so does a dictionary with a key that a call has already.
    """
    plain = copied(tree)
    bound = Counter(bindings(plain))
    found: dict[str, Keywords] = {}
    for statement in plain.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if (
                name not in keep and bound[name] == 1
            ):
                if bound["dict"] == 0 and (keywords := _settings(value)):
                    found[name] = keywords
    calls = [node for node in ast.walk(plain) if isinstance(node, ast.Call)]
    used = Counter(node.id for node in ast.walk(plain) if isinstance(node, ast.Name))
    spread = Counter(name for call in calls for name in _spread(call))
    # Its own binding is one of the uses.
    found = {name: keywords for name, keywords in found.items() if used[name] == spread[name] + 1}
    for name in {name for call in calls for name in _in_conflict(call, found)}:
        del found[name]
    for call in calls:
        call.keywords = [
            copied(one) for keyword in call.keywords for one in found.get(_name(keyword), [keyword])
        ]
    plain.body = [statement for statement in plain.body if not _binds(statement, found)]
    return plain


def _settings(value: ast.expr) -> Keywords:
    """Return the keywords that a dictionary of literals stands for, or none."""
    match value:
        case ast.Dict(keys=keys, values=values):
            words = [key.value if isinstance(key, ast.Constant) else None for key in keys]
        case ast.Call(func=ast.Name(id="dict"), args=[], keywords=keywords):
            words, values = [keyword.arg for keyword in keywords], [keyword.value for keyword in keywords]
        case _:
            return []
    names = [word for word in words if isinstance(word, str) and word.isidentifier()]
    if len(set(names)) != len(values) or len(values) > _MOST_SETTINGS or not all(map(is_literal, values)):
        return []
    return [ast.keyword(arg=name, value=item) for name, item in zip(names, values, strict=True)]


def _name(keyword: ast.keyword) -> str:
    """Return the name that a call spreads; empty where it spreads none."""
    return keyword.value.id if keyword.arg is None and isinstance(keyword.value, ast.Name) else ""


def _spread(call: ast.Call) -> Iterator[str]:
    return filter(None, map(_name, call.keywords))


def _in_conflict(call: ast.Call, found: Mapping[str, Keywords]) -> set[str]:
    """Return the dictionaries that a call spreads and that would say a keyword twice."""
    names = [name for name in _spread(call) if name in found]
    words = [keyword.arg for keyword in call.keywords if keyword.arg is not None]
    words += [keyword.arg for name in names for keyword in found[name] if keyword.arg is not None]
    return set() if len(words) == len(set(words)) else set(names)


def _binds(statement: ast.stmt, found: Mapping[str, Keywords]) -> bool:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name in found
    return False
