import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(2489)
R, ALPHA = 4, 16


class LoraLayer(nn.Module):
    def __init__(self, base_layer, r=R, lora_alpha=ALPHA):
        super().__init__()
        self.base_layer = base_layer.requires_grad_(False)
        self.lora_A = nn.Linear(base_layer.in_features, r, bias=False)
        self.lora_B = nn.Linear(r, base_layer.out_features, bias=True)
        nn.init.zeros_(self.lora_B.weight)
        nn.init.zeros_(self.lora_B.bias)
        self.scaling = lora_alpha / r
        self.merged = False

    def merge(self):
        delta = self.lora_B.weight @ self.lora_A.weight
        self.base_layer.weight.data += self.scaling * delta
        self.base_layer.bias.data += self.lora_B.bias.data
        self.merged = True

    def forward(self, x):
        result = self.base_layer(x)
        if self.merged:
            return result
        return result + self.lora_B(self.lora_A(x)) * self.scaling


def styles(n, shift):
    y = torch.randint(0, 4, (n,))
    anchors = torch.tensor([[2.0, 0.0], [0.0, 2.0], [-2.0, 0.0], [0.0, -2.0]])
    x = anchors[y] + shift + 0.7 * torch.randn(n, 2)
    return torch.cat([x, torch.randn(n, 6)], 1), y


def train(model, data, epochs):
    optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=5e-3)
    for _ in range(epochs):
        model.train()
        for idx in torch.randperm(len(data[1])).split(32):
            loss = F.cross_entropy(model(data[0][idx]), data[1][idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


@torch.no_grad()
def accuracy(model, data):
    model.eval()
    return (model(data[0]).argmax(1) == data[1]).float().mean().item()


model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
train(model, styles(800, 0.0), 6)
new, test = styles(600, torch.tensor([1.5, 3.0])), styles(500, torch.tensor([1.5, 3.0]))
print(f"base model on the new style {accuracy(model, test):.4f}")
for i in (0, 2):
    model[i] = LoraLayer(model[i])
train(model, new, 10)
print(f"with adapters {accuracy(model, test):.4f}")
merged = copy.deepcopy(model)
for layer in merged:
    if isinstance(layer, LoraLayer):
        layer.merge()
print(f"after merging {accuracy(merged, test):.4f}")
