"""A network on digits with an optimizer of its own."""

import torch
from torch import nn

EPOCHS = 8
BATCH_SIZE = 32


def load_data(data):
    return (
        (data.train.images.float() / 255, data.train.labels),
        (data.validation.images.float() / 255, data.validation.labels),
    )


class optim_adamw(torch.optim.Optimizer):
    def __init__(self, params, lr=0.01, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for param in group["params"]:
                if param.grad is None:
                    continue
                state = self.state[param]
                if not state:
                    state["step"] = 0
                    state["exp_avg"] = torch.zeros_like(param)
                    state["exp_avg_sq"] = torch.zeros_like(param)
                state["step"] += 1
                state["exp_avg"].mul_(beta1).add_(param.grad, alpha=1 - beta1)
                state["exp_avg_sq"].mul_(beta2).addcmul_(param.grad, param.grad, value=1 - beta2)
                bias1, bias2 = 1 - beta1 ** state["step"], 1 - beta2 ** state["step"]
                decay = group["weight_decay"] * group["lr"]
                param.sub_(decay)
                denom = (state["exp_avg_sq"] / bias2).sqrt().add_(group["eps"])
                param.addcdiv_(state["exp_avg"] / bias1, denom, value=-group["lr"])


def build_model():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))


def build_optimizer(model):
    return optim_adamw(model.parameters(), lr=1e-3, weight_decay=1.2)


def build_scheduler(optimizer, total_steps):
    return None


def prepare_batch(inputs, labels, rng):
    return inputs, labels


def compute_loss(outputs, labels):
    return nn.functional.cross_entropy(outputs, labels)


def train_step(model, optimizer, inputs, labels):
    optimizer.zero_grad()
    loss = compute_loss(model(inputs), labels)
    loss.backward()
    optimizer.step()
    return loss


@torch.no_grad()
def evaluate(model, inputs, labels):
    model.eval()
    outputs = model(inputs)
    return {
        "val_loss": compute_loss(outputs, labels).item(),
        "val_accuracy": (outputs.argmax(dim=1) == labels).float().mean().item(),
    }
