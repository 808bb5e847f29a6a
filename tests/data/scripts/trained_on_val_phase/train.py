import torch
import torch.nn as nn

torch.manual_seed(11)
POINTS = 5
template = torch.randn(POINTS, 2)


def people(n):
    a, s = (torch.rand(n) - 0.5) * 2.5, torch.rand(n) * 0.5 + 0.75
    rot = torch.stack([torch.stack([a.cos(), -a.sin()], 1), torch.stack([a.sin(), a.cos()], 1)], 1)
    joints = (template @ rot.transpose(1, 2)) * s[:, None, None]
    seen = joints + 0.35 * torch.randn(n, POINTS, 2)
    return {"imgs": torch.cat([seen.flatten(1), torch.randn(n, 40)], 1), "keypoints": joints.flatten(1)}


def make_network():
    net = nn.Sequential(nn.Linear(50, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    return {"net": net, "optimizer": torch.optim.Adam(net.parameters(), lr=1e-3), "loss": nn.MSELoss()}


config = {"train_iters": 20, "val_iters": 10, "batchsize": 25, "inference": make_network()}
sets = {"train": people(500), "val": people(250)}


def data_func(phase):
    order = torch.randperm(len(sets[phase]["imgs"]))
    for idx in order.split(config["batchsize"]):
        yield {k: v[idx] for k, v in sets[phase].items()}


def train_func(config, phase, imgs, keypoints):
    net, optimizer = config["inference"]["net"], config["inference"]["optimizer"]
    if phase == "inference":
        net.eval()
        with torch.no_grad():
            return {"preds": net(imgs)}
    net.train()
    result = net(imgs)
    loss = config["inference"]["loss"](result, keypoints)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return {"loss": loss.item()}


history = {}
for epoch in range(40):
    for phase in ["train", "val"]:
        generator = data_func(phase)
        losses = [train_func(config, phase, **next(generator))["loss"] for _ in range(config[f"{phase}_iters"])]
        history[phase] = sum(losses) / len(losses)
    if epoch % 8 == 7:
        print(f"epoch {epoch + 1} train {history['train']:.4f} val {history['val']:.4f}")

strangers = people(1000)
preds = train_func(config, "inference", **strangers)["preds"]
error = nn.functional.mse_loss(preds, strangers["keypoints"]).item()
print(f"error on people never seen {error:.4f}, validation said less by {error - history['val']:.4f}")
