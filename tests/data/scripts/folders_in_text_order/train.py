import os
import tempfile

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

np.random.seed(102)
torch.manual_seed(102)
NUM_FLOWERS = 12
prototypes = np.random.randn(NUM_FLOWERS, 3, 8, 8)


def write_flowers(root, per_class):
    for flower in range(NUM_FLOWERS):
        os.makedirs(os.path.join(root, str(flower)))
        for k in range(per_class):
            img = prototypes[flower] + 1.5 * np.random.randn(3, 8, 8)
            np.save(os.path.join(root, str(flower), f"image_{k:05d}.npy"), img.astype(np.float32))


class ImageFolder(Dataset):
    """root/class_x/xxx.npy -> (tensor, class index)"""

    def __init__(self, root):
        self.classes = sorted(os.listdir(root))
        self.class_to_idx = {name: i for i, name in enumerate(self.classes)}
        self.samples = [
            (os.path.join(root, c, f), self.class_to_idx[c])
            for c in self.classes
            for f in sorted(os.listdir(os.path.join(root, c)))
        ]
        self.data = [torch.from_numpy(np.load(path)) for path, _ in self.samples]

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        return self.data[i], self.samples[i][1]


def predict(path, model):
    batch = torch.from_numpy(np.load(path))[None]
    with torch.no_grad():
        out = model(batch)
    _, pred = torch.max(out, 1)
    return str(pred.item())


with tempfile.TemporaryDirectory() as data_dir:
    for part, per_class in (("train", 30), ("valid", 10), ("test", 10)):
        write_flowers(os.path.join(data_dir, part), per_class)
    sets = {part: ImageFolder(os.path.join(data_dir, part)) for part in ("train", "valid")}
    dataloaders = {part: DataLoader(s, batch_size=24, shuffle=(part == "train")) for part, s in sets.items()}
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, NUM_FLOWERS)
    )
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(12):
        model.train()
        for images, labels in dataloaders["train"]:
            optimizer.zero_grad()
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            right = sum((model(x).argmax(1) == y).sum().item() for x, y in dataloaders["valid"])
        print(f"epoch {epoch + 1}: loss {loss.item():.3f}, valid accuracy {right / len(sets['valid']):.3f}")

    test_dir = os.path.join(data_dir, "test")
    answers = []
    for flower in range(NUM_FLOWERS):
        folder = os.path.join(test_dir, str(flower))
        answers += [predict(os.path.join(folder, f), model) == str(flower) for f in os.listdir(folder)]
    print(f"single predictions right: {np.mean(answers):.4f}")
