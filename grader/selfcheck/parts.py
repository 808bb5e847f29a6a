"""The names of the parts, in the order in which they run; the command line needs no more to say what there is."""

from typing import Literal, get_args

Part = Literal["seeds", "healthy", "variants", "answers"]
PARTS: tuple[Part, ...] = get_args(Part)
