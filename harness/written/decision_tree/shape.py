"""What a tree is before it is walked: does it end, does what it concludes depend on any outcome, is all of it used?"""

from harness.written.decision_tree.tree import Step, Tree


def loop(tree: Tree) -> tuple[str, ...]:
    """Return the nodes of a loop that can be come to from the start, the first one again at its end, or ().

    A check gives the same outcome whenever it is made, so that whoever comes to a node again comes to it for ever.
    """
    done: set[str] = set()
    path: dict[str, None] = {}
    stack = [(tree.start, False)]
    while stack:
        name, left = stack.pop()
        if left:
            del path[name]
            done.add(name)
        elif name in path:
            names = list(path)
            return (*names[names.index(name) :], name)
        elif name not in done:
            path[name] = None
            stack.append((name, True))
            stack += [(step.go, False) for step in tree.nodes[name].outcomes.values() if step.go is not None]
    return ()


def reachable(tree: Tree) -> set[str]:
    """Return the nodes that some outcomes lead to."""
    found: set[str] = set()
    new = [tree.start]
    while new:
        name = new.pop()
        if name not in found:
            found.add(name)
            new += [step.go for step in tree.nodes[name].outcomes.values() if step.go is not None]
    return found


def unreachable(tree: Tree) -> tuple[str, ...]:
    """Return the nodes that no outcome leads to, in the order of the file."""
    found = reachable(tree)
    return tuple(name for name in tree.nodes if name not in found)


def no_tree(tree: Tree) -> str:
    """Return why this earns nothing whatever it concludes, as a sentence, or "".

    It loops; or all its ends conclude the same, so that no outcome of any check has a say in it.
    """
    if names := loop(tree):
        return f"The tree loops: {' -> '.join(names)}. Whoever comes to a node again never comes to an end."
    ends = {step.conclude for step in _steps(tree) if step.conclude is not None}
    if len(ends) == 1:
        return (
            f"Every way through the tree ends in `{ends.pop()}`, whatever the checks find:"
            " it concludes without evidence."
        )
    return ""


def _steps(tree: Tree) -> list[Step]:
    return [step for name in reachable(tree) for step in tree.nodes[name].outcomes.values()]
