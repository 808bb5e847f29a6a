"""Knowledge distillation: large MLP teacher, small student."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(4)
CLASSES, DIM, T = 8, 20, 3.0


def rings(n, gen):
    proto = torch.randn(CLASSES, 3, DIM, generator=torch.Generator().manual_seed(50))
    y = torch.randint(0, CLASSES, (n,), generator=gen)
    mode = torch.randint(0, 3, (n,), generator=gen)
    return 0.9 * proto[y, mode] + 0.6 * torch.randn(n, DIM, generator=gen), y


def mlp(*sizes):
    layers = []
    for a, b in zip(sizes[:-2], sizes[1:-1]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(sizes[-2], sizes[-1]))


def accuracy(net, x, y):
    net.eval()
    with torch.no_grad():
        return (net(x).argmax(1) == y).float().mean().item()


def iterate(x, y, size, gen):
    for idx in torch.randperm(len(x), generator=gen).split(size):
        yield x[idx], y[idx]


def train_teacher(x, y, gen, epochs=8):
    net = mlp(DIM, 256, 256, CLASSES)
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for _ in range(epochs):
        net.train()
        for xb, yb in iterate(x, y, 64, gen):
            opt.zero_grad()
            F.cross_entropy(net(xb), yb).backward()
            opt.step()
    return net.eval().requires_grad_(False)


def distillation_loss(student_logits, teacher_logits):
    student = F.softmax(student_logits / T, dim=1)
    teacher = F.softmax(teacher_logits / T, dim=1)
    return F.kl_div(student, teacher, reduction="batchmean") * T * T


def train_student(teacher, x, y, xv, yv, gen, epochs=10):
    net = mlp(DIM, 48, CLASSES)
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    for epoch in range(epochs):
        net.train()
        for xb, _ in iterate(x, y, 64, gen):
            with torch.no_grad():
                target = teacher(xb)
            loss = distillation_loss(net(xb), target)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"student epoch {epoch}: loss {loss.item():.3f} val acc {accuracy(net, xv, yv):.3f}")
    return net


gen = torch.Generator().manual_seed(4)
x, y = rings(2400, gen)
xv, yv = rings(500, gen)
mean, std = x.mean(0), x.std(0)
x, xv = (x - mean) / std, (xv - mean) / std
teacher = train_teacher(x, y, gen)
print(f"teacher val acc {accuracy(teacher, xv, yv):.3f}")
student = train_student(teacher, x, y, xv, yv, gen)
print(f"student val acc {accuracy(student, xv, yv):.3f}")
