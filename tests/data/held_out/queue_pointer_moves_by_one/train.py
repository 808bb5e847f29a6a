import torch
import torch.nn as nn
import torch.nn.functional as F

"""Pixel contrast with a memory of each class, then a linear classifier on the features."""
torch.manual_seed(14)
C, DIM, MEM, K, TAU = 6, 16, 120, 8, 0.1
centre = torch.randn(C, 20) * 0.8


def pixels(n):
    y = torch.randint(0, C, (n,))
    return torch.tanh(centre[y] + torch.randn(n, 20)), y


class Projection(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, DIM))

    def forward(self, x):
        return F.normalize(self.net(x), dim=1)


class Memory:
    def __init__(self):
        self.queue = F.normalize(torch.randn(C, MEM, DIM), dim=2)
        self.age = torch.zeros(C, MEM)
        self.ptr = [0] * C

    def enqueue(self, feats, labels, step):
        for lb in labels.unique().tolist():
            own = feats[labels == lb]
            own = own[torch.randperm(len(own))[:K]]
            k, ptr = len(own), self.ptr[lb]
            if ptr + k >= MEM:
                self.queue[lb, -k:], self.age[lb, -k:] = own, step
                self.ptr[lb] = 0
            else:
                self.queue[lb, ptr : ptr + k], self.age[lb, ptr : ptr + k] = own, step
                self.ptr[lb] = (self.ptr[lb] + 1) % MEM


def contrast(feats, labels, memory):
    keys = memory.queue.reshape(-1, DIM)
    key_label = torch.arange(C).repeat_interleave(MEM)
    logits = feats @ keys.T / TAU
    positive = (labels[:, None] == key_label[None]).float()
    log_prob = logits - torch.logsumexp(logits, 1, keepdim=True)
    return -((positive * log_prob).sum(1) / positive.sum(1)).mean()


x, y = pixels(1200)
x_test, y_test = pixels(1000)
net, memory = Projection(), Memory()
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
step = 0
for epoch in range(3):
    for idx in torch.randperm(len(x)).split(60):
        step += 1
        f = net(x[idx])
        loss = contrast(f, y[idx], memory)
        opt.zero_grad()
        loss.backward()
        opt.step()
        memory.enqueue(f.detach(), y[idx], step)
    print(f"epoch {epoch} loss {loss.item():.4f}, mean age of the memory {(step - memory.age).mean().item():.1f} steps")

with torch.no_grad():
    train_f, test_f = net(x), net(x_test)
    mean = torch.stack([train_f[y == c].mean(0) for c in range(C)])
    acc = ((test_f @ F.normalize(mean, dim=1).T).argmax(1) == y_test).float().mean()
    alignment = (memory.queue * F.normalize(mean, dim=1)[:, None]).sum(-1).mean()
print(f"nearest mean accuracy {acc.item():.4f}")
print(f"agreement of the memory with its class {alignment.item():.4f}")
