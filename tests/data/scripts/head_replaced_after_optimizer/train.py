import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(12)
rng = np.random.default_rng(12)
mix = rng.normal(size=(6, 30)) / 2


def sample(n, task):
    z = rng.normal(size=(n, 6))
    x = np.tanh(z @ mix) + 0.1 * rng.normal(size=(n, 30))
    if task == "source":                       # which hidden factor is largest
        y = z.argmax(1)
    else:                                      # which pair of factors has the largest sum
        y = np.stack([z[:, 0] + z[:, 1], z[:, 2] + z[:, 3], z[:, 4] + z[:, 5]], 1).argmax(1)
    return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y))


class Backbone(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.fc = nn.Linear(64, classes)

    def forward(self, x):
        return self.fc(self.features(x))


class Trainer:
    def __init__(self, model, lr):
        self.model = model
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=lr)

    def fit(self, dataset, epochs):
        loader = DataLoader(dataset, batch_size=32, shuffle=True)
        for epoch in range(epochs):
            self.model.train()
            for x, y in loader:
                self.optimizer.zero_grad()
                loss = self.criterion(self.model(x), y)
                loss.backward()
                self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def score(self, dataset):
        self.model.eval()
        x, y = dataset.tensors
        return (self.model(x).argmax(1) == y).float().mean().item()


# pretraining
model = Backbone(classes=6)
pretrain = Trainer(model, lr=3e-3)
pretrain.fit(sample(3000, "source"), epochs=8)
print(f"pretrained, source val acc {pretrain.score(sample(800, 'source')):.3f}")

# transfer to the new labels: keep the features, train the classifier
for p in model.features.parameters():
    p.requires_grad = False
target_train, target_val = sample(300, "target"), sample(800, "target")
finetune = Trainer(model, lr=1e-2)
model.fc = nn.Linear(64, 3)
print("trainable:", [n for n, p in model.named_parameters() if p.requires_grad])
for stage in range(5):
    loss = finetune.fit(target_train, epochs=4)
    print(f"fine-tuning epoch {4 * stage + 4} loss {loss:.3f} val acc {finetune.score(target_val):.4f}")
