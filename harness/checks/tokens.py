"""Edit the tokens, the order and the padding of texts, and see which outputs of the untrained network change.

The check applies to integer inputs of shape (N, T). The names of its measured values say symbol instead of token. It
tests five properties:

- Later tokens: if the labels (N, T) are the inputs shifted by one position, each output predicts the next token. Then
no output may depend on a later token. If the labels are the inputs themselves, the network only learns to copy (outcome
`copies`).

- Order: if each output predicts the next token, the order of earlier tokens must change the output. With other labels,
a network may ignore the order (a bag of words). There is one exception: if a network holds a table with a row for each
position, but uses fewer rows than a text has positions, it should know the order, so the order must change its outputs.

- Padding: if there is less padding behind a text, its outputs must not change. If the positions behind the end of a
text have no label (-100) and all contain the same token, that token is the padding. Otherwise, the padding is 0,
provided that only zeros follow a 0.

- Loss: if each position has a loss, the positions with padding must not contribute to the loss of the batch.

- First token: if outputs depend on the first token, it must get a gradient; otherwise something cuts the path of the
gradient.
"""

import copy
from contextlib import suppress

import torch
from torch import Tensor, nn

from harness.checks.core.finding import Cell, Finding, short
from harness.checks.core.subject import Subject, Trial, without_zeros
from harness.run.evaluation import IGNORED

# figure                 | healthy | broken | bound      | source
# change by later tokens | <= 2e-7 | 0.08   | MOVES 1e-4 | broken: no mask; relative to the last output
# change by padding      | <= 2e-7 | 0.8    | MOVES 1e-4 | relative to the spread of the outputs
# change by order        | 0.2     | 3e-6   | MOVES 1e-4 | broken: no positions; relative to a new token
#
# Measured over ten seeds of a transformer and of a recurrent network.
TEXTS = 32
MOVES = 1e-4
SHIFTED = 0.99
PADDING = 0


def measure(subject: Subject) -> Finding:
    """Edit the first texts of the training split, and pass them through the network in eval mode."""
    trial = subject.trial()
    if trial.inputs.is_floating_point() or trial.inputs.dim() != 2 or trial.inputs.shape[1] < 3:
        return Finding("no-texts", f"inputs {tuple(trial.inputs.shape)}", {})
    texts, labels = trial.prepare(trial.inputs[:TEXTS], trial.labels[:TEXTS])
    model = without_zeros(copy.deepcopy(trial.model)).eval()
    figures: dict[str, Cell] = {"gradient of the first symbol": _first_gradient(model, texts)}
    outcomes = ["cut"] if figures["gradient of the first symbol"] == 0.0 else []
    symbol = _padding_of(trial.inputs, trial.labels)
    padded = not bool(((trial.inputs[:, :-1] == symbol) & (trial.inputs[:, 1:] != symbol)).any())
    if labels.shape == texts.shape:
        figures["labels equal to the input"] = copied = float((labels == texts).double().mean())
        shifted = float((labels[:, :-1] == texts[:, 1:]).double().mean())
        with torch.no_grad():
            later, order = _later(model, texts), _order(model, texts)
        if shifted > SHIFTED:
            figures |= {"moved by later symbols": later, "moved by order": order}
            outcomes = [
                *(["sees-later"] if later > MOVES else []),
                *(["ignores-order"] if order < MOVES else []),
                *outcomes,
            ]
        if padded and (padding := _effect_of_padding(model, texts, symbol)) is not None:
            figures["moved by less padding"] = padding
            outcomes = ["sees-padding", *outcomes] if padding > MOVES else outcomes
        if padded and (counted := _counted_padding(trial, model, texts, labels, symbol)) is not None:
            figures["gradient at padding"] = counted
            outcomes = ["counts-padding", *outcomes] if counted else outcomes
        outcomes = ["copies", *outcomes] if copied > SHIFTED else outcomes
    else:
        if padded and (padding := _effect_of_padding(model, texts, symbol)) is not None:
            figures["moved by less padding"] = padding
            outcomes = ["sees-padding", *outcomes] if padding > MOVES else outcomes
        if _wastes_places(model, texts):
            with torch.no_grad():
                figures["moved by order"] = order = _order(model, texts)
            outcomes = ["ignores-order", *outcomes] if order < MOVES else outcomes
    words = ", ".join(f"{name} {short(value)}" for name, value in figures.items())
    return Finding(outcomes[0] if outcomes else "in-order", words, figures)


def _padding_of(texts: Tensor, labels: Tensor) -> int:
    """Return the padding token: the only token at unlabelled positions behind the texts, or 0 if there are several."""
    if labels.shape == texts.shape:
        behind = (labels == IGNORED).flip(1).long().cumprod(dim=1).flip(1).bool()
        symbols = texts[behind].unique()
        if len(symbols) == 1 and not bool(behind.all(dim=1).any()):
            return int(symbols)
    return PADDING


def _counted_padding(trial: Trial, model: nn.Module, texts: Tensor, labels: Tensor, symbol: int) -> float | None:
    """Return the largest gradient of the loss at outputs for padding; None if there is no padding or no such output.

    The position right behind a text is left out, because its output may predict the end of the text.
    """
    behind = (texts[:, :-1] == symbol) & (texts[:, 1:] == symbol)
    behind = torch.cat([torch.zeros_like(behind[:, :1]), behind], dim=1)
    outputs = model(texts).detach().requires_grad_()
    if not bool(behind.any()) or outputs.shape[:2] != texts.shape:
        return None
    (gradient,) = torch.autograd.grad(trial.experiment.compute_loss(outputs, labels), outputs, materialize_grads=True)
    return float(gradient[behind].abs().max())


def _other(symbols: Tensor, texts: Tensor) -> Tensor:
    """Return a different token for each given token, within the range of the texts' tokens, but never padding."""
    low, high = int(texts.min()) + int(texts.min() == PADDING), int(texts.max())
    return (symbols - low + 1) % max(high - low + 1, 1) + low


def _distance(before: Tensor, after: Tensor) -> float:
    return float((after.double() - before.double()).abs().max())


def _later(model: nn.Module, texts: Tensor) -> float:
    """Return how much a new last token changes earlier outputs, relative to how much it changes its own output."""
    edited = texts.clone()
    edited[:, -1] = _other(texts[:, -1], texts)
    before, after = model(texts), model(edited)
    own = _distance(before[:, -1], after[:, -1])
    return _distance(before[:, :-1], after[:, :-1]) / own if own else 0.0


def _order(model: nn.Module, texts: Tensor) -> float:
    """Return how much swapping the first two tokens changes the last output, relative to a new first token.

    Return 1.0 if the last output does not depend on the first token, because then the order has no effect.
    """
    swapped, edited = texts.clone(), texts.clone()
    swapped[:, [0, 1]] = texts[:, [1, 0]]
    edited[:, 0] = _other(texts[:, 0], texts)
    before, after, other = (_last(model(one)) for one in (texts, swapped, edited))
    moved = _distance(before, other)
    return _distance(before, after) / moved if moved else 1.0


def _last(outputs: Tensor) -> Tensor:
    """Return the outputs of the last position, or all outputs if the network gives one output per text."""
    return outputs[:, -1] if outputs.dim() > 2 else outputs


def _wastes_places(model: nn.Module, texts: Tensor) -> bool:
    """Return whether a network holds a table of positions but uses fewer of its rows than a text has positions.

    Such a table has the shape (positions, width) or (1, positions, width). It is either a tensor that a module of the
    experiment holds directly, or the weight of an embedding that is not called with the tokens.
    """
    tables = [module for module in model.modules() if isinstance(module, nn.Embedding)]
    of_symbols: set[nn.Module] = set()

    def note(table: nn.Module, given: tuple[Tensor, ...]) -> None:
        if torch.equal(given[0], texts):
            of_symbols.add(table)

    handles = [table.register_forward_pre_hook(note) for table in tables]
    own = [module for module in model.modules() if not type(module).__module__.startswith("torch.")]
    held = [tensor for one in own for tensor in (*one.parameters(recurse=False), *one.buffers(recurse=False))]
    held = [tensor.requires_grad_() for tensor in held if tensor.is_floating_point()]
    squares = model(texts).square().sum()
    for handle in handles:
        handle.remove()
    held += [table.weight.requires_grad_() for table in tables if table not in of_symbols]
    widths = {table.embedding_dim for table in tables}
    for tensor in held:
        shape = [size for size in tensor.shape if size > 1]
        if len(shape) == 2 and shape[0] >= texts.shape[1] and shape[1] in widths:
            (grown,) = torch.autograd.grad(squares, tensor, retain_graph=True, materialize_grads=True)
            if int(grown.reshape(shape).any(dim=1).sum()) < texts.shape[1]:
                return True
    return False


def _effect_of_padding(model: nn.Module, texts: Tensor, symbol: int) -> float | None:
    """Return how much outputs change if padding at the end is cut, relative to their range; None without padding.

    If there is an output for each position, the outputs at padding do not count.
    """
    ends = (texts != symbol).int().flip(1).argmax(dim=1)  # number of padding positions behind each text
    padded = texts[ends > 0]
    if not len(padded) or not (texts[:, 0] != symbol).all():
        return None
    cut = int(ends[ends > 0].min())
    shorter = padded[:, : padded.shape[1] - cut]
    with suppress(RuntimeError, IndexError), torch.no_grad():  # a network may accept only one length
        before, after = model(padded), model(shorter)
        if before.shape[:2] == padded.shape and after.shape[:2] == shorter.shape:
            before, after = (outputs[:, : shorter.shape[1]][shorter != symbol] for outputs in (before, after))
        if before.shape == after.shape:
            return _distance(before, after) / max(float((before - before.mean(dim=0)).abs().max()), 1e-12)
    return None


def _first_gradient(model: nn.Module, texts: Tensor) -> float | None:
    """Return the largest gradient at the embedding of a first token that occurs once; None if it has no effect."""
    tables = [module for module in model.modules() if isinstance(module, nn.Embedding)]
    once = ((texts == texts[:, :1]).sum(dim=1) == 1) & (texts[:, 0] != PADDING)
    if not tables or not once.any():
        return None
    text = texts[once][:1]
    edited = text.clone()
    edited[:, 0] = _other(text[:, 0], texts)
    last = _last(model(text))
    with torch.no_grad():
        if not _distance(last, _last(model(edited))):
            return None
    table = next((t for t in tables if t.num_embeddings > int(texts.max())), tables[0])
    grown = torch.autograd.grad(last.square().sum(), table.weight, allow_unused=True)[0]
    return None if grown is None else float(grown[text[0, 0]].abs().max())
