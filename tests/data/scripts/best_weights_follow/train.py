import time

import torch
import torch.nn as nn
import torch.optim as optim
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(8)
centers = torch.randn(5, 20) * 1.1


def blobs(n, noise=0.0):
    y = torch.randint(0, 5, (n,))
    x = centers[y] + torch.randn(n, 20)
    wrong = torch.rand(n) < noise
    return TensorDataset(x, torch.where(wrong, torch.randint(0, 5, (n,)), y))


image_datasets = {"train": blobs(400, noise=0.45), "val": blobs(400), "test": blobs(1000)}
dataloaders = {k: DataLoader(d, batch_size=32, shuffle=(k == "train")) for k, d in image_datasets.items()}
dataset_sizes = {k: len(d) for k, d in image_datasets.items()}


def train_model(model, criterion, optimizer, scheduler, num_epochs=25):
    since = time.time()
    best_model_wts = model.state_dict()
    best_acc = 0.0
    for epoch in range(num_epochs):
        for phase in ["train", "val"]:
            model.train(phase == "train")
            running_loss, running_corrects = 0.0, 0
            for inputs, labels in dataloaders[phase]:
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == "train"):
                    outputs = model(inputs)
                    loss = criterion(outputs, labels)
                    if phase == "train":
                        loss.backward()
                        optimizer.step()
                running_loss += loss.item() * inputs.size(0)
                running_corrects += (outputs.argmax(1) == labels).sum().item()
            if phase == "train":
                scheduler.step()
            epoch_acc = running_corrects / dataset_sizes[phase]
            if phase == "val" and epoch_acc > best_acc:
                best_acc = epoch_acc
                best_model_wts = model.state_dict()
        if epoch % 10 == 0:
            print(f"Epoch {epoch} {phase} loss {running_loss / dataset_sizes[phase]:.4f} acc {epoch_acc:.4f}")
    print(f"Training complete in {time.time() - since:.0f}s, best val acc {best_acc:.4f}")
    model.load_state_dict(best_model_wts)
    return model


net = nn.Sequential(nn.Linear(20, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 5))
optimizer_ft = optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
exp_lr_scheduler = lr_scheduler.StepLR(optimizer_ft, step_size=30, gamma=0.5)
net = train_model(net, nn.CrossEntropyLoss(), optimizer_ft, exp_lr_scheduler, num_epochs=60)
net.eval()
with torch.no_grad():
    hits = sum((net(x).argmax(1) == y).sum().item() for x, y in dataloaders["test"])
print(f"test acc of the returned model {hits / dataset_sizes['test']:.4f}")
