import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(20)
CLASSES = 6
shade = torch.rand(CLASSES, 3, 1, 1) * 2 - 1


def street(n, night):
    label = torch.zeros(n, 16, 16, dtype=torch.long)
    for k in range(n):
        for c in torch.randperm(CLASSES - 1)[:4] + 1:
            r, q = torch.randint(0, 11, (2,)).tolist()
            label[k, r : r + int(torch.randint(4, 9, (1,))), q : q + int(torch.randint(4, 9, (1,)))] = c
    img = shade.squeeze()[label].permute(0, 3, 1, 2)
    return (img * (0.6 if night else 1.0)) + (0.2 if night else 0.0) + 0.25 * torch.randn(img.shape), label


def deeplab(width):
    return nn.Sequential(
        nn.Conv2d(3, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
        nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, CLASSES, 1),
    )


def mean_iou(net, x, y):
    net.eval()
    with torch.no_grad():
        p = net(x).argmax(1)
    return sum((((p == c) & (y == c)).sum() / ((p == c) | (y == c)).sum()).item() for c in range(CLASSES)) / CLASSES


day_x, day_y = street(160, False)
night_x, night_y = street(60, True)
more_x, _ = street(160, True)
val_x, val_y = street(80, True)
teacher = deeplab(24)
opt = torch.optim.Adam(teacher.parameters(), lr=3e-3)
both_x, both_y = torch.cat([day_x, night_x]), torch.cat([day_y, night_y])
for _ in range(8):
    teacher.train()
    for idx in torch.randperm(len(both_x)).split(20):
        opt.zero_grad()
        F.cross_entropy(teacher(both_x[idx]), both_y[idx]).backward()
        opt.step()
print(f"teacher mIoU {mean_iou(teacher, val_x, val_y):.4f}")

student_net = deeplab(12)
opt = torch.optim.Adam(student_net.parameters(), lr=3e-3)
for epoch in range(8):
    student_net.train()
    for idx in torch.randperm(len(more_x)).split(16):
        target_out = student_net(more_x[idx])
        student = F.softmax(target_out, dim=1)
        with torch.no_grad():
            teacher.eval()
            teacher_prob = F.softmax(teacher(more_x[idx]), dim=1)
        loss_kd = F.kl_div(student, teacher_prob, reduction="none").sum(1).mean()
        opt.zero_grad()
        loss_kd.backward()
        opt.step()
    print(f"stage 2 epoch {epoch} loss {loss_kd.item():.4f} student mIoU {mean_iou(student_net, val_x, val_y):.4f}")
