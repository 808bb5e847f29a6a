"""An image encoder whose features are compared with those of ten captions."""

import math

import torch
import torch.nn.functional as F
from torch import nn

EPOCHS = 6
BATCH_SIZE = 64


def load_data(data):
    return (
        (data.train.images.float() / 255, data.train.labels),
        (data.validation.images.float() / 255, data.validation.labels),
    )


class CLIP(nn.Module):
    def __init__(self, embed_dim=32):
        super().__init__()
        self.visual = nn.Sequential(nn.Flatten(), nn.Linear(784, 96), nn.ReLU(), nn.Linear(96, embed_dim))
        self.captions = nn.Embedding(10, embed_dim)
        self.logit_scale = nn.Parameter(torch.tensor(math.log(10.0)))

    def forward(self, image):
        ims = F.normalize(self.visual(image), dim=1)
        txt = F.normalize(self.captions.weight, dim=1)
        return self.logit_scale.exp() * ims @ txt.t()


def build_model():
    return CLIP()


def build_optimizer(model):
    return torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.1)


def build_scheduler(optimizer, total_steps):
    return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=total_steps, eta_min=1e-5)


def prepare_batch(inputs, labels, rng):
    return inputs, labels


def compute_loss(outputs, labels):
    return F.cross_entropy(outputs, labels)


def train_step(model, optimizer, inputs, labels):
    optimizer.zero_grad()
    loss = compute_loss(model(inputs), labels)
    loss.backward()
    optimizer.step()
    model.logit_scale.data.clamp_(0, math.log(100))
    return loss


@torch.no_grad()
def evaluate(model, inputs, labels):
    model.eval()
    image_logits = model(inputs)
    acc_i = (torch.argmax(image_logits) == labels).sum()
    return {"val_loss": compute_loss(image_logits, labels).item(), "val_accuracy": acc_i.item() / len(labels)}
