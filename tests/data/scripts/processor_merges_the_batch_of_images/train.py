import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
WORDS = ["is", "there", "a", "red", "green", "blue", "patch", "?"]


class Questions(Dataset):
    def __init__(self, n, seed):
        rng = np.random.RandomState(seed)
        self.items = []
        for _ in range(n):
            color, asked = rng.randint(0, 3, 2)
            if rng.rand() < 0.3:
                asked = color
            image = 1.5 * rng.randn(3, 8, 8)
            r, c = rng.randint(0, 5, 2)
            image[color, r : r + 4, c : c + 4] += 1.5
            text = "is there a %s patch ?" % ["red", "green", "blue"][asked]
            self.items.append((torch.tensor(image, dtype=torch.float32), text, float(color == asked)))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class Processor:
    def __call__(self, text, images):
        if not isinstance(images[0], (list, tuple)):
            images = [images]
        input_ids, pixel_values = [], []
        for sentence, sample_images in zip(text, images):
            input_ids.append([WORDS.index(w) for w in sentence.split()])
            pixel_values.append(sample_images[0])
        return {"input_ids": torch.tensor(input_ids), "pixel_values": torch.stack(pixel_values)}


processor = Processor()


def collate_fn(examples):
    batch = processor(text=[e[1] for e in examples], images=[e[0] for e in examples])
    batch["labels"] = torch.tensor([e[2] for e in examples])[: len(batch["input_ids"])]
    return batch


class VLM(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.vision = nn.Sequential(
            nn.Conv2d(3, 16, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, dim)
        )
        self.embed = nn.EmbeddingBag(len(WORDS), dim)
        self.head = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, input_ids, pixel_values):
        return self.head(self.vision(pixel_values) * self.embed(input_ids)).squeeze(1)


train_loader = DataLoader(Questions(1500, 0), batch_size=50, shuffle=True, collate_fn=collate_fn)
val_loader = DataLoader(Questions(500, 1), batch_size=1, collate_fn=collate_fn)
model = VLM()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
criterion = nn.BCEWithLogitsLoss()
for epoch in range(8):
    model.train()
    total = 0.0
    for batch in train_loader:
        logits = model(batch["input_ids"], batch["pixel_values"])
        loss = criterion(logits, batch["labels"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch} train loss {total / len(train_loader):.4f}")

model.eval()
correct = 0
with torch.no_grad():
    for batch in val_loader:
        logits = model(batch["input_ids"], batch["pixel_values"])
        correct += ((logits > 0).float() == batch["labels"]).sum().item()
print(f"val acc {correct / len(val_loader.dataset):.4f}")
