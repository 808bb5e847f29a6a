"""Whether two machines must agree to the byte; see `harness.doctor.golden.platform_class`."""

from collections.abc import Mapping
from typing import Any


def same_class(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Say whether runs of these two platform classes must have the same bytes.

    Equal records are not enough on the processor: without the golden digests (native numerics, or a processor
    that failed them) two machines of one record may well round differently.
    """
    return dict(one) == dict(other) and (one["golden"] is True or one["device"] != "cpu")
