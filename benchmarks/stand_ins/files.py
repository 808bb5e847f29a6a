"""`python -m files KIND PATH` writes made-up files of a kind to a path; `download` answers for an address."""

import csv
import gzip
import io
import json
import pickle
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import made_up


def _picture(pixels: Any, path: Path) -> None:
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, quality=95)


def folders(path: Path, size: str, count: str, train: str = "train", valid: str = "val") -> None:
    """Write a folder of ten classes of pictures for each of two parts."""
    for part, number in ((train, int(count)), (valid, int(count) // 4)):
        pixels, labels = made_up.images("folders", part, number, int(size), 3, 10)
        for at, label in enumerate(labels):
            _picture(pixels[at], path / part / f"class{label}" / f"{at:04}.jpg")


def insects(path: Path) -> None:
    """Write pictures of two classes for two parts."""
    for part, number in (("train", 32), ("val", 16)):
        pixels, labels = made_up.images("insects", part, number, 96, 3, 2)
        for at, label in enumerate(labels):
            _picture(pixels[at], path / part / ("ants", "bees")[label] / f"{at:04}.jpg")


def photos(path: Path, size: str, count: str) -> None:
    """Write colour pictures; a path with an ending is one picture."""
    if path.suffix:
        _picture(made_up.photo(path.name, size=int(size)), path)
        return
    for at in range(int(count)):
        _picture(made_up.photo(str(path)[-12:], at, size=int(size)), path / f"{at:04}.jpg")


def masks(path: Path, size: str, count: str) -> None:
    """Write pictures and the masks of what is bright in them."""
    import numpy as np

    for at in range(int(count)):
        pixels = made_up.photo("masks", at, size=int(size))
        _picture(pixels, path / "imgs" / f"{at:04}.png")
        _picture((pixels.mean(2) > 128).astype(np.uint8), path / "masks" / f"{at:04}.png")


def _text(part: str, count: int) -> str:
    return "".join(" ".join(words) + " .\n" for words in made_up.sentences(part, count))


def text(path: Path, count: str) -> None:
    """Write one text file, or a folder with three parts."""
    if path.suffix:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_text(path.stem, int(count)))
        return
    path.mkdir(parents=True)
    for part, number in (("train", int(count)), ("valid", int(count) // 4), ("test", int(count) // 4)):
        (path / f"{part}.txt").write_text(_text(part, number))


def prose(path: Path, count: str) -> None:
    """Write a text file with capital letters and punctuation."""
    rng = made_up.random_numbers("prose")
    lines = []
    for words in made_up.sentences("prose", int(count)):
        begin, end = " ".join(words[:3]).capitalize(), " ".join(words[3:])
        lines.append(f"{begin}, {end}{rng.choice(['.', '!'])}\n")
    path.write_text("".join(lines))


def names(path: Path, count: str) -> None:
    """Write one short word in each line."""
    words = {"".join(part[:3] for part in sentence[:3]) for sentence in made_up.sentences("names", int(count))}
    path.write_text("\n".join(sorted(words)))


def characters(path: Path) -> None:
    """Write the numbers of the characters of a text, and a table of them."""
    import numpy as np

    parts = {part: _text(part, count) for part, count in (("train", 3000), ("val", 400))}
    alphabet = sorted(set("".join(parts.values())))
    numbers = {character: number for number, character in enumerate(alphabet)}
    path.mkdir(parents=True, exist_ok=True)
    for part, content in parts.items():
        np.array([numbers[one] for one in content], dtype=np.uint16).tofile(path / f"{part}.bin")
    meta = {"vocab_size": len(alphabet), "stoi": numbers, "itos": dict(enumerate(alphabet))}
    (path / "meta.pkl").write_bytes(pickle.dumps(meta))


def waves(path: Path) -> None:
    """Write waves with random beginnings."""
    import numpy as np
    import torch

    begin = made_up.random_numbers("waves").uniform(-80, 80, (12, 1))
    torch.save(np.sin((np.arange(100) + begin) / 20), path)


def planetoid(path: Path) -> None:
    """Write a graph in eight files, as the known citation graphs have them."""
    import numpy as np
    import scipy.sparse

    features, labels, links = made_up.citations(800, 7, 60)
    known, test = 600, np.arange(600, 800)
    one_hot = np.eye(7, dtype=np.int64)[labels]
    sparse = scipy.sparse.csr_matrix(features.astype(np.float32))
    graph: dict[int, list[int]] = {node: [] for node in range(800)}
    for one, other in links:
        graph[int(one)].append(int(other))
        graph[int(other)].append(int(one))
    path.mkdir(parents=True)
    contents = {
        "x": sparse[:140],
        "tx": sparse[test],
        "allx": sparse[:known],
        "y": one_hot[:140],
        "ty": one_hot[test],
        "ally": one_hot[:known],
        "graph": graph,
    }
    for name, content in contents.items():
        (path / f"ind.cora.{name}").write_bytes(pickle.dumps(content))
    (path / "ind.cora.test.index").write_text("".join(f"{node}\n" for node in test))


def molecules(path: Path) -> None:
    """Write small graphs of two classes: rings, and chains with branches."""
    rng = made_up.random_numbers("molecules")
    links: list[tuple[int, int]] = []
    owner: list[int] = []
    labels: list[int] = []
    atoms: list[int] = []
    for graph in range(188):
        size, label = int(rng.integers(8, 20)), graph % 2
        first = len(owner) + 1
        owner += [graph + 1] * size
        atoms += [int(atom) for atom in rng.integers(0, 3, size)]
        labels.append(2 * label - 1)
        for at in range(1, size):
            other = at - 1 if label else int(rng.integers(at))
            links += [(first + at, first + other), (first + other, first + at)]
        if label:
            links += [(first, first + size - 1), (first + size - 1, first)]
    path.mkdir(parents=True)
    contents: dict[str, list[Any]] = {"A": [f"{one}, {other}" for one, other in links], "graph_indicator": owner}
    for name, lines in (contents | {"graph_labels": labels, "node_labels": atoms}).items():
        (path / f"MUTAG_{name}.txt").write_text("".join(f"{line}\n" for line in lines))
    (path / "MUTAG_edge_labels.txt").write_text("0\n" * len(links))


def _json_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def labelled(path: Path) -> None:
    """Write tables of texts with labels."""
    path.mkdir(parents=True, exist_ok=True)
    for part, count in (("train", 400), ("valid", 100)):
        with (path / f"{part}.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["sentence", "label"])
            rows.writerows([content, label] for label, content in made_up.topics(part, count, 3))


def tagged(path: Path) -> None:
    """Write sentences with a tag for each word."""
    for part, count in (("train", 400), ("valid", 100)):
        rows = [{"tokens": words, "ner_tags": tags} for words, tags in made_up.tagged(part, count)]
        _json_lines(path / f"{part}.json", rows)


def choices(path: Path) -> None:
    """Write beginnings with four endings: the right one has a word of the topic of the beginning."""
    for part, count in (("train", 300), ("valid", 80)):
        rng = made_up.random_numbers("choices", part)
        rows = []
        for topic, begin in made_up.topics(part, count):
            order = [int(one) for one in rng.permutation(4)]
            row: dict[str, Any] = {"sent1": begin, "sent2": "then", "label": order.index(topic)}
            row |= {f"ending{at}": str(rng.choice(made_up.TOPICS[order[at]])) for at in range(4)}
            rows.append(row)
        _json_lines(path / f"{part}.json", rows)


def translations(path: Path) -> None:
    """Write sentences in two languages."""
    for part, count in (("train", 400), ("valid", 60)):
        pairs = made_up.sentences(f"pairs {part}", count)
        rows = [{"translation": {"en": " ".join(words), "de": " ".join(made_up.foreign(words))}} for words in pairs]
        _json_lines(path / f"{part}.json", rows)


def tiny_bert(path: Path) -> None:
    """Write a small BERT with random weights, which knows all made-up words."""
    from transformers import BertConfig, BertModel, BertTokenizerFast

    words = [*made_up.WORDS, *made_up.NAMES, *made_up.PLACES, "then", *(one for part in made_up.TOPICS for one in part)]
    path.mkdir(parents=True)
    known = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *dict.fromkeys(words)]
    (path / "vocab.txt").write_text("\n".join(known))
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    BertModel(BertConfig(vocab_size=len(known), **sizes)).save_pretrained(path)
    BertTokenizerFast(str(path / "vocab.txt"), do_lower_case=False, model_max_length=64).save_pretrained(path)


def tiny_vit(path: Path) -> None:
    """Write a small vision transformer with random weights."""
    from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessor

    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    ViTForImageClassification(ViTConfig(image_size=32, patch_size=8, **sizes)).save_pretrained(path)
    ViTImageProcessor(size={"height": 32, "width": 32}).save_pretrained(path)


def tiny_translator(path: Path) -> None:
    """Write a small model for translation with random weights, and a tokenizer of whole words."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BartConfig, BartForConditionalGeneration, PreTrainedTokenizerFast

    known = ["<s>", "<pad>", "</s>", "<unk>", *made_up.WORDS, *(word[::-1] for word in made_up.WORDS)]
    words = Tokenizer(models.WordLevel({word: at for at, word in enumerate(dict.fromkeys(known))}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    special = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    fields = ["input_ids", "attention_mask"]
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=words, model_max_length=64, model_input_names=fields, **special
    )
    tokenizer.save_pretrained(path)
    sizes = {f"{part}_{name}": size for part in ("encoder", "decoder") for name, size in
             (("layers", 2), ("attention_heads", 2), ("ffn_dim", 64))}  # fmt: skip
    config = BartConfig(vocab_size=len(words.get_vocab()), d_model=32, max_position_embeddings=64, **sizes)
    BartForConditionalGeneration(config).save_pretrained(path)


def _cora() -> bytes:
    features, labels, links = made_up.citations(1650, 7, 60)
    content = "".join(f"{at} {' '.join(map(str, row))} class{labels[at]}\n" for at, row in enumerate(features))
    cites = "".join(f"{one} {other}\n" for one, other in links)
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as archive:
        for name, lines in (("cora.content", content), ("cora.cites", cites)):
            entry = tarfile.TarInfo(f"cora/{name}")
            entry.size = len(lines)
            archive.addfile(entry, io.BytesIO(lines.encode()))
    return target.getvalue()


def _mnist() -> bytes:
    import numpy as np

    parts = []
    for part, count in (("train", 1280), ("valid", 320), ("test", 320)):
        pixels, labels = made_up.images("mnist", part, count, 28, 1, 10)
        parts.append(((pixels.reshape(count, 784) / 255).astype(np.float32), labels))
    return gzip.compress(pickle.dumps(tuple(parts)))


def download(url: str) -> bytes:
    """Return a made-up file for an address."""
    if url.endswith("cora.tgz"):
        return _cora()
    if url.endswith("mnist.pkl.gz"):
        return _mnist()
    return _text(url, 30000).encode()


KINDS: dict[str, Callable[..., None]] = {
    one.__name__: one
    for one in (folders, insects, photos, masks, text, prose, names, characters, waves, planetoid, molecules, labelled)
} | {one.__name__: one for one in (tagged, choices, translations, tiny_bert, tiny_vit, tiny_translator)}


def main() -> None:
    """Write the files of each pair of a kind with its numbers, and a path."""
    for kind, path in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
        name, *options = kind.split()
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        KINDS[name](Path(path), *options)


if __name__ == "__main__":
    main()
