"""Distillation of an image classifier; the labels that the student sees come from a crowd and are often wrong."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(33)
CLASSES, PIXELS = 10, 64
prototypes = torch.randn(CLASSES, PIXELS)


def images(n, label_noise=0.0):
    clean = torch.randint(0, CLASSES, (n,))
    x = prototypes[clean] + 1.6 * torch.randn(n, PIXELS)
    wrong = torch.rand(n) < label_noise
    y = torch.where(wrong, torch.randint(0, CLASSES, (n,)), clean)
    return x, y


def mlp(width):
    return nn.Sequential(nn.Linear(PIXELS, width), nn.ReLU(), nn.Linear(width, CLASSES))


class KnowledgeDistillationPolicy:
    def __init__(self, teacher, temperature=8.0, distill_wt=0.9):
        self.teacher, self.temp, self.distill_wt = teacher.eval(), temperature, distill_wt

    def loss(self, student, x, y):
        with torch.no_grad():
            soft_targets = F.softmax(self.teacher(x) / self.temp, dim=1)
        logits = student(x)
        soft_log_probs = F.log_softmax(logits / self.temp, dim=1)
        distillation_loss = F.kl_div(soft_log_probs, soft_targets, reduction="batchmean")
        student_loss = F.cross_entropy(logits, y)
        return self.distill_wt * distillation_loss + (1 - self.distill_wt) * student_loss


def fit(model, x, y, loss_fn, epochs, name):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for epoch in range(epochs):
        model.train()
        for idx in torch.randperm(len(x)).split(32):
            loss = loss_fn(model, x[idx], y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step()
    print(f"{name}: last loss {loss.item():.4f}")


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


test_x, test_y = images(3000)
teacher = mlp(128)
fit(teacher, *images(6000), lambda m, x, y: F.cross_entropy(m(x), y), 8, "teacher")
print(f"teacher accuracy {accuracy(teacher, test_x, test_y):.4f}")

student = mlp(48)
policy = KnowledgeDistillationPolicy(teacher)
fit(student, *images(800, label_noise=0.5), policy.loss, 60, "student")
print(f"student accuracy {accuracy(student, test_x, test_y):.4f}")
