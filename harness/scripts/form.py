"""Tell scripts from experiments with functions. This module does not import torch."""

import ast


def is_script(source: str) -> bool:
    """Return whether this is the source of a script: it has a block `if __name__ == "__main__":` at the top level."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(isinstance(node, ast.If) and "__name__" in ast.unparse(node.test) for node in body)
