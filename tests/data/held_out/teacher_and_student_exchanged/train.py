import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(19)
CLASSES, DIM = 5, 16
means = torch.randn(CLASSES, DIM)


def draw(n):
    y = torch.randint(0, CLASSES, (n,))
    return means[y] + 1.1 * torch.randn(n, DIM), y


def net(width):
    return nn.Sequential(nn.Linear(DIM, width), nn.ReLU(), nn.Linear(width, CLASSES))


class Distiller(nn.Module):
    """Trains the student on the labels and on the softened answers of the teacher."""

    def __init__(self, student, teacher):
        super().__init__()
        self.teacher = student
        self.student = teacher

    def compile(self, lr, alpha=0.1, temperature=3.0):
        self.optimizer = torch.optim.Adam(self.student.parameters(), lr=lr)
        self.alpha, self.temperature = alpha, temperature

    def train_step(self, x, y):
        with torch.no_grad():
            teacher_predictions = self.teacher(x)
        student_predictions = self.student(x)
        student_loss = F.cross_entropy(student_predictions, y)
        distillation_loss = F.kl_div(
            F.log_softmax(student_predictions / self.temperature, dim=1),
            F.softmax(teacher_predictions / self.temperature, dim=1),
            reduction="batchmean",
        ) * self.temperature**2
        loss = self.alpha * student_loss + (1 - self.alpha) * distillation_loss
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return student_loss.item(), distillation_loss.item()


def accuracy(model, x, y):
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


x, y = draw(1500)
x_test, y_test = draw(1000)
teacher, student = net(128), net(12)
optimizer = torch.optim.Adam(teacher.parameters(), lr=2e-3)
for epoch in range(6):
    for idx in torch.randperm(len(x)).split(50):
        loss = F.cross_entropy(teacher(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"teacher accuracy {accuracy(teacher, x_test, y_test):.4f}")

distiller = Distiller(student=student, teacher=teacher)
distiller.compile(lr=3e-3)
for epoch in range(8):
    for idx in torch.randperm(len(x)).split(50):
        hard, soft = distiller.train_step(x[idx], y[idx])
    print(f"epoch {epoch} student loss {hard:.4f} distillation loss {soft:.4f}")
print(f"accuracy of the distilled student {accuracy(student, x_test, y_test):.4f}")
