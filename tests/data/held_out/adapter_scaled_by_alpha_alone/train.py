import math
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(123)
VOCAB, LENGTH = 60, 16


class LoRALayer(torch.nn.Module):
    def __init__(self, in_dim, out_dim, rank, alpha):
        super().__init__()
        self.A = torch.nn.Parameter(torch.empty(in_dim, rank))
        torch.nn.init.kaiming_uniform_(self.A, a=math.sqrt(5))
        self.B = torch.nn.Parameter(torch.zeros(rank, out_dim))
        self.alpha = alpha
        self.rank = rank

    def forward(self, x):
        x = self.alpha * (x @ self.A @ self.B)
        return x


class LinearWithLoRA(torch.nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear
        self.lora = LoRALayer(linear.in_features, linear.out_features, rank, alpha)

    def forward(self, x):
        return self.linear(x) + self.lora(x)


def replace_linear_with_lora(model, rank, alpha):
    for name, module in model.named_children():
        if isinstance(module, torch.nn.Linear):
            setattr(model, name, LinearWithLoRA(module, rank, alpha))
        else:
            replace_linear_with_lora(module, rank, alpha)


class TextModel(torch.nn.Module):
    def __init__(self, emb=48, hidden=96, classes=2):
        super().__init__()
        self.tok = torch.nn.Embedding(VOCAB, emb)
        self.body = torch.nn.Sequential(torch.nn.Linear(emb, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, hidden), torch.nn.ReLU())
        self.out_head = torch.nn.Linear(hidden, classes)

    def forward(self, ids):
        return self.out_head(self.body(self.tok(ids)).mean(1))


def messages(n, spam_words):
    ids = torch.randint(0, VOCAB, (n, LENGTH))
    weight = torch.isin(ids, spam_words).float().sum(1) + 0.5 * torch.randn(n)
    return TensorDataset(ids, (weight > weight.median()).long())


def train(model, loader, epochs, lr):
    params = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(params, lr=lr, momentum=0.9)
    for epoch in range(epochs):
        for ids, y in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(ids), y)
            loss.backward()
            optimizer.step()
        print(f"Ep {epoch + 1}: loss {loss.item():.3f}")


@torch.no_grad()
def calc_accuracy(model, loader):
    hits = [(model(ids).argmax(-1) == y).float() for ids, y in loader]
    return torch.cat(hits).mean().item()


old, new = torch.arange(0, 20), torch.arange(12, 32)
model = TextModel()
print("pretraining")
train(model, DataLoader(messages(2000, old), batch_size=32, shuffle=True), epochs=4, lr=0.1)
for p in model.parameters():
    p.requires_grad = False
replace_linear_with_lora(model, rank=8, alpha=16)
print("fine-tuning,", sum(p.numel() for p in model.parameters() if p.requires_grad), "trainable parameters")
train(model, DataLoader(messages(1000, new), batch_size=16, shuffle=True, drop_last=True), epochs=5, lr=0.05)
print(f"test accuracy after fine-tuning {calc_accuracy(model, DataLoader(messages(1000, new), batch_size=100)):.4f}")
