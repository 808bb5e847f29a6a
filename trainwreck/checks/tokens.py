"""Outputs follow only the tokens that they may follow, and targets lie one token ahead."""

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from trainwreck.check import Check
from trainwreck.checks.mixing import are_equal, outputs_of
from trainwreck.events import KeptCall, KeptLoss
from trainwreck.finding import Outcome
from trainwreck.places import Place
from trainwreck.trees import map_tensors, tensors
from trainwreck.trial import Probe

# figure                                                 | healthy     | broken | bound
# change of earlier outputs over the change of later ones | below 1e-5 | > 1e-2 | LATER 1e-4
# change without the padding over the spread of outputs   | below 1e-5 | > 1e-2 | PADDING 1e-3
LATER, PADDING = 1e-4, 1e-3
_LEAST_TOKENS, _LEAST_PLACES = 4, 8
_SHIFTS = (1, 0, 2, -1)


class Tokens(Check):
    """A language model predicts the next token from the tokens before it; padding changes nothing.

    A child looks at the last tokens and targets, and edits tokens to see which outputs follow.
    """

    name = "tokens"
    question = "Do outputs follow only the tokens that they may follow?"
    outcomes: ClassVar[dict[str, Outcome]] = {
        "sees-later": Outcome(
            "alarm",
            "The targets lie ahead, and outputs follow tokens that come later: the network sees the answer.",
            "Give the attention a causal mask.",
            "causal_mask_missing",
        ),
        "copies": Outcome(
            "alarm",
            "The targets are the tokens of the same places, so the network learns to copy.",
            "Shift the targets by one: inputs[:, :-1] and targets[:, 1:].",
            "targets_not_shifted",
        ),
        "shifted": Outcome(
            "alarm",
            "The targets do not lie one token ahead.",
            "Shift inputs and targets once. Some libraries shift inside the model.",
            "targets_two_ahead",
        ),
        "sees-padding": Outcome(
            "advice",
            "The outputs for a text change with the padding behind it, so they depend on the other texts of the batch.",
            "Give an attention a mask of the padding, a recurrent layer packed sequences, and a mean the tokens alone.",
            "padding_mask_missing",
        ),
        "counts-padding": Outcome(
            "alarm", "The loss counts places that hold only padding.", "Set the targets of padding to ignore_index."
        ),
    }

    def trials(self) -> Generator[Probe, Any, None]:
        """Probe each network that was trained on tokens."""
        for kept in self.watch.kept.values():
            found = yield lambda kept=kept: [  # type: ignore[misc]
                (outcome, text, vars(place)) for outcome, text, place in _look(kept, self.watch.ignored)
            ]
            for outcome, text, place in found or ():
                self.tell(outcome, text, Place(**place))


def _look(kept: KeptCall, ignored: Iterable[int]) -> Iterator[tuple[str, str, Place]]:
    """Yield each outcome with its values and its place."""
    tokens = _tokens_of(kept)
    if tokens is None:
        return
    name = type(kept.network.eval()).__name__
    is_random = not are_equal(*(outputs_of(kept.network, kept.args, kept.kwargs) for _ in range(2)))
    for loss, targets, counts in _losses_of(kept, tokens):
        shift = _shift_of(tokens, targets, counts)
        if shift is None:
            continue
        ahead, dim = shift
        if ahead == 0:
            yield "copies", f"targets of {name} equal its inputs", loss.place
        elif ahead != 1:
            yield "shifted", f"the targets of {name} lie {ahead} tokens ahead", loss.place
        elif not is_random and (share := _share_of_later(kept, tokens, dim)) > LATER:
            text = f"earlier outputs change by {share:.2g} of what later ones do"
            yield "sees-later", text, Place(f"the forward pass of {name}")
    for given in _given_texts(kept):
        losses = _losses_of(kept, given)
        copied = [loss for loss, targets, counts in losses if _shift_of(given, targets, counts) == (0, 1)]
        if given is not tokens and copied and not is_random and _sees_own_place(kept, given):
            yield "copies", f"targets of {name} equal one of its inputs, and outputs follow it", copied[0].place
    yield from _look_at_padding(kept, tokens, ignored, is_random=is_random)


def _look_at_padding(
    kept: KeptCall, tokens: Tensor, ignored: Iterable[int], *, is_random: bool
) -> Iterator[tuple[str, str, Place]]:
    padding = _padding_of(kept, tokens)
    for loss, targets, counts in _losses_of(kept, tokens):
        if padding is None or _shift_of(tokens, targets, counts) is not None:
            continue
        if counted := _count_tags_of(padding, targets, counts):
            yield "counts-padding", f"{counted} places of padding count", loss.place
    for loss, targets in _texts_of(kept):
        if (ends := _padding_of(kept, targets)) is None:
            continue
        counted = int((ends & (targets != loss.options.get("ignore_index", -100))).sum())
        # The end of each text may be one token of padding.
        if counted > int(ends.any(1).sum()):
            yield "counts-padding", f"{counted} places of padding count", loss.place
    padding = padding if padding is not None else _ends_of(tokens, ignored)
    if padding is not None and not is_random and (share := _share_of_padding(kept, tokens, padding)) > PADDING:
        place = Place(f"the forward pass of {type(kept.network).__name__}, or the mask that it gets")
        yield (
            "sees-padding",
            f"without the padding, outputs change by {share:.2g} standard deviations of all outputs",
            place,
        )


def _losses_of(kept: KeptCall, tokens: Tensor) -> Iterator[tuple[KeptLoss, Tensor, Tensor]]:
    """Yield the losses with a target for each token, these targets (N, T), and which of them count."""
    for loss in kept.losses:
        targets, ignored = loss.targets, int(loss.options.get("ignore_index", -100))
        if not targets.is_floating_point() and targets.numel() == tokens[:, 1:].numel():
            # The loss leaves out the output of the last place.
            targets = nn.functional.pad(targets.reshape(tokens[:, 1:].shape), (0, 1), value=ignored)
        if not targets.is_floating_point() and targets.numel() == tokens.numel():
            targets = targets.reshape(tokens.shape)
            yield loss, targets, (targets != ignored) & (targets >= 0)


def _given_texts(kept: KeptCall) -> list[Tensor]:
    """Return all tables of tokens among the inputs."""
    return [one for one in tensors((kept.args, kept.kwargs)) if one.dtype == torch.int64 and one.dim() == 2]


def _sees_own_place(kept: KeptCall, text: Tensor) -> bool:
    """Return whether the output of a place changes with the token of this place."""
    edited, place = text.clone(), text.size(1) // 2
    edited[:, place] = text[:, place].roll(1, 0)
    first = outputs_of(kept.network, kept.args, kept.kwargs)
    second = _replaced(kept, lambda one: edited if _is_same(one, text) else one)
    for one, other in zip(first, second, strict=False):
        before, after = _at_places(one, text), _at_places(other, text)
        if before is not None and after is not None:
            return bool((before[:, place] != after[:, place]).any())
    return False


def _texts_of(kept: KeptCall) -> Iterator[tuple[KeptLoss, Tensor]]:
    """Yield the losses whose targets (N, T) are a text that the network gets, perhaps shifted, and these targets."""
    for text in _given_texts(kept):
        for loss, targets, counts in _losses_of(kept, text):
            if _shift_of(text, targets, counts) is not None:
                yield loss, targets


def _tokens_of(kept: KeptCall) -> Tensor | None:
    """Return the tokens (N, T) among the inputs, or None."""
    named = kept.kwargs.get("input_ids")
    given = [named] if isinstance(named, Tensor) else list(tensors((kept.args, kept.kwargs)))
    found = next((one for one in given if one.dtype == torch.int64 and one.dim() == 2), None)
    return found if found is not None and found.size(1) >= _LEAST_TOKENS else None


def _padding_of(kept: KeptCall, tokens: Tensor) -> Tensor | None:
    """Return where the tokens are padding at the end of a text, by the mask or the padding index of an embedding."""
    mask = kept.kwargs.get("attention_mask")
    if isinstance(mask, Tensor) and mask.shape == tokens.shape and bool((mask == 0).any()):
        return mask == 0
    layers = (module for module in kept.network.modules() if isinstance(module, nn.Embedding))
    indices = {layer.padding_idx for layer in layers if layer.padding_idx is not None}
    if not indices:
        return None
    padding = torch.stack([tokens == index for index in indices]).any(0)
    return padding.flip(1).cummin(1).values.flip(1)


def _count_tags_of(padding: Tensor, targets: Tensor, counts: Tensor) -> int:
    """Return the number of padded places if they all have one label of their own, which no token has, and all count.

    Targets of another text may have their last token, and then ignored padding, where this text has padding.
    """
    tags = targets[padding]
    if not tags.numel() or not bool(counts[padding].all()):
        return 0
    is_own = bool((tags == tags[0]).all()) and not bool((targets[~padding] == tags[0]).any())
    return tags.numel() if is_own else 0


def _ends_of(tokens: Tensor, ignored: Iterable[int]) -> Tensor | None:
    """Return where texts end with several tokens that losses ignore, or None if no text does."""
    ends = torch.isin(tokens, torch.tensor([index for index in ignored if index >= 0], dtype=tokens.dtype))
    ends = ends.flip(1).cummin(1).values.flip(1)
    return ends if int(ends.sum(1).max()) > 1 else None


def _shift_of(tokens: Tensor, targets: Tensor, counts: Tensor) -> tuple[int, int] | None:
    """Return by how many places, and in which dimension, the targets lie ahead of the tokens; None if they do not.

    The last target of each text does not count: where texts are padded, the inputs lack its token.
    """
    for dim in (1, 0):
        size = tokens.size(dim)
        inner = counts & (counts.flip(dim).cumsum(dim).flip(dim) > 1)
        for ahead in _SHIFTS:
            if size <= abs(ahead) + 1:
                continue
            first, length = max(0, -ahead), size - abs(ahead)
            here, there = (one.narrow(dim, first, length) for one in (targets, inner))
            later = tokens.narrow(dim, max(0, ahead), length)
            if int(there.sum()) >= _LEAST_PLACES and bool((later == here)[there].all()):
                return ahead, dim
    return None


def _replaced(kept: KeptCall, new: Callable[[Tensor], Tensor]) -> list[Tensor]:
    """Return the outputs if `new` changes each input."""
    return outputs_of(kept.network, map_tensors(kept.args, new), map_tensors(kept.kwargs, new))


def _at_places(output: Tensor, tokens: Tensor) -> Tensor | None:
    """Return outputs as (N, T, ...), or None if they do not belong to places."""
    if output.dim() > 2 and output.shape[:2] == tokens.shape:
        return output
    if output.dim() == 2 and output.size(0) == tokens.numel():
        return output.view(*tokens.shape, -1)
    return None


def _share_of_later(kept: KeptCall, tokens: Tensor, dim: int) -> float:
    """Return the change of outputs before an edit over the change of outputs after it, at most over all outputs."""
    half = tokens.size(dim) // 2
    edited = tokens.clone()
    later = edited.narrow(dim, half, tokens.size(dim) - half)
    generator = torch.Generator().manual_seed(0)
    order = torch.randperm(tokens.numel(), generator=generator).to(tokens.device)
    later.copy_(tokens.flatten()[order][: later.numel()].view(later.shape))
    worst = 0.0
    first = outputs_of(kept.network, kept.args, kept.kwargs)
    second = _replaced(kept, lambda one: edited if _is_same(one, tokens) else one)
    for one, other in zip(first, second, strict=False):
        before, after = _at_places(one, tokens), _at_places(other, tokens)
        if before is None or after is None:
            continue
        change = (before - after).abs().nan_to_num(0.0)
        early = float(change.narrow(dim, 0, half).max())
        late = float(change.narrow(dim, half, tokens.size(dim) - half).max())
        worst = max(worst, early / late if late else 0.0)
    return worst


def _share_of_padding(kept: KeptCall, tokens: Tensor, padding: Tensor) -> float:
    """Return the largest change of the outputs for one text without its padding, over the spread of the outputs.

    Of outputs for each token, the first half counts.
    """
    if not padding.any() or padding.all(1).any() or padding[:, 0].any():
        return 0.0
    row = int(padding.sum(1).argmax())
    length = int((~padding[row]).sum())

    def without_padding(tensor: Tensor) -> Tensor:
        if tensor.dim() >= 2 and tensor.shape[:2] == tokens.shape:
            return tensor[row : row + 1, :length]
        return tensor[row : row + 1] if tensor.dim() and tensor.size(0) == tokens.size(0) else tensor

    first = outputs_of(kept.network, kept.args, kept.kwargs)
    try:
        second = _replaced(kept, without_padding)
    except (RuntimeError, ValueError, IndexError, AssertionError):
        return 0.0  # the network takes texts of one length alone
    for whole, short in zip(_examples_first(first, tokens.size(0)), _examples_first(second, 1), strict=False):
        if whole.size(0) != tokens.size(0):
            continue
        is_placed = whole.dim() > 2 and whole.shape[:2] == tokens.shape
        own = whole[row : row + 1, :length] if is_placed else whole[row : row + 1]
        if own.shape != short.shape:
            continue
        # A convolution sees what lies behind the end, also in a text without padding.
        counted = (length + 1) // 2 if is_placed else None
        rows = whole.flatten(1)
        spread = max(float((rows - rows.mean(0)).abs().max()), 1e-2 * float(rows.abs().max())) or 1.0
        return float((own - short)[:, :counted].abs().max()) / spread
    return 0.0


def _examples_first(outputs: list[Tensor], count: int) -> list[Tensor]:
    """Return outputs with the examples first: a recurrent layer gives its states as (layers, N, features)."""
    return [
        one.transpose(0, 1) if one.dim() > 2 and one.size(0) != count and one.size(1) == count else one
        for one in outputs
    ]


def _is_same(tensor: Tensor, tokens: Tensor) -> bool:
    return tensor.shape == tokens.shape and tensor.dtype == tokens.dtype and bool(torch.equal(tensor, tokens))
