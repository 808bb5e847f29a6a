"""A residual network predicts from the visits of patients whether a patient will return.

The table has one row for each visit. The model must work for patients that it has not seen. So patients are divided
between training and validation, not visits.

1. `raw_columns` takes the columns that are known on the day of the visit.
2. `clean` repairs impossible entries, and takes the logarithm of skewed columns.
3. `Scaler` clips outliers and standardizes. It learns its limits, means and deviations from training rows.
4. `with_interactions` adds products of columns, `with_season` the season of the visit.
5. `VisitNet` embeds the season, and passes all features through residual blocks.
"""

import torch
import torch.nn.functional as F
from torch import nn

from harness.run.schedules import warmup_cosine

EPOCHS = 8
BATCH_SIZE = 64

# Days run from 0 to 999.
PERIOD = 1000
SEASONS = 10
SEASON_WIDTH = 4

# Every fifth patient is for validation.
FOLDS = 5
# Visits from this day on count twice in training, because future visits are more like them.
RECENT = 800

# The columns that are known on the day of the visit, in the order of the network's inputs.
KNOWN = ("day", "age", "weight", "pressure", "pulse", "sleep", "steps", "stress", "pain", "income", "distance")
# Pairs of which one may strengthen or weaken the other.
INTERACTIONS = (
    ("sleep", "steps"),
    ("stress", "day"),
    ("age", "pressure"),
    ("weight", "pulse"),
    ("income", "distance"),
)
# Values outside these quantiles of the training rows are clipped.
LOWEST = 0.002
HIGHEST = 0.998

HIDDEN = 48
BLOCKS = 2
DROPOUT = 0.1
LR = 0.004
WEIGHT_DECAY = 0.02
MAX_GRAD_NORM = 2.0


# --- the table ------------------------------------------------------------------------------------------------


def raw_columns(table):
    """Return the known columns of all visits by name, each (N,)."""
    return {
        "day": table["day"].float(),
        "age": table["age"].float(),
        "weight": table["weight"].float(),
        "pressure": table["pressure"].float(),
        "pulse": table["pulse"].float(),
        "sleep": table["sleep"].float(),
        "steps": table["steps"].float(),
        "stress": table["stress"].float(),
        "pain": table["pain"].float(),
        "income": table["income"].float(),
        "distance": table["distance"].float(),
    }


def clean(columns):
    """Return the columns with repaired entries and logarithms of the skewed ones.

    Some steps and distances were entered as negative numbers; they count as 0. Incomes below 100 are mistakes.
    """
    return {
        **columns,
        "sleep": columns["sleep"].clamp(0.0, 24.0),
        "steps": columns["steps"].clamp(min=0.0),
        "income": columns["income"].clamp(min=100.0).log(),
        "distance": (columns["distance"].clamp(min=0.0) + 1.0).log(),
    }


def season_of(day):
    """Return the season of each day: (N,) from 0 to SEASONS - 1."""
    length = PERIOD / SEASONS
    return (day / length).floor().clamp(0, SEASONS - 1)


def twice_if_recent(rows, day):
    """Return the row numbers, and the row numbers of recent days a second time."""
    recent = rows[day[rows] >= RECENT]
    return torch.cat([rows, recent])


# --- features -------------------------------------------------------------------------------------------------


class Scaler:
    """Clips outliers of columns (N, F) and standardizes them, with statistics that it learns from some rows."""

    def fit(self, columns):
        """Learn limits, mean and deviation of each column from these rows, and return the scaler."""
        self.low = columns.quantile(LOWEST, dim=0)
        self.high = columns.quantile(HIGHEST, dim=0)
        inside = self.cut(columns)
        self.mean = inside.mean(dim=0)
        self.deviation = inside.std(dim=0)
        return self

    def cut(self, columns):
        """Return the columns clipped to the limits."""
        return torch.minimum(torch.maximum(columns, self.low), self.high)

    def transform(self, columns):
        """Return the columns, clipped and standardized."""
        return (self.cut(columns) - self.mean) / self.deviation


def with_interactions(standardized, names):
    """Return standardized columns (N, F), followed by the products of the pairs in INTERACTIONS."""
    place = {name: number for number, name in enumerate(names)}
    products = [standardized[:, place[one]] * standardized[:, place[other]] for one, other in INTERACTIONS]
    return torch.cat([standardized, torch.stack(products, dim=1)], dim=1)


def with_season(features, day):
    """Return features (N, F) with the number of the season as the last column."""
    return torch.cat([features, season_of(day).unsqueeze(1)], dim=1)


def features_of(columns, names, scaler):
    """Return the features of visits: standardized columns in the order of `names`, products, season."""
    matrix = torch.stack([columns[name] for name in names], dim=1)
    return with_season(with_interactions(scaler.transform(matrix), names), columns["day"])


def load_data(data):
    """Return both splits as (features (N, 17), labels (N,)): no patient is in both.

    The last feature is the number of the season, the others are standardized or products of standardized columns.
    """
    table = data.table
    columns = clean(raw_columns(table))
    returned = table["returned"]
    number = torch.arange(len(returned))

    for_validation = table["patient"] % FOLDS == 0
    validation_rows = number[for_validation]
    training_rows = twice_if_recent(number[~for_validation], columns["day"])

    matrix = torch.stack([columns[name] for name in KNOWN], dim=1)
    scaler = Scaler().fit(matrix[training_rows])
    training = features_of({name: column[training_rows] for name, column in columns.items()}, KNOWN, scaler)
    validation = features_of({name: column[validation_rows] for name, column in columns.items()}, KNOWN, scaler)
    return (training, returned[training_rows]), (validation, returned[validation_rows])


# --- the network ----------------------------------------------------------------------------------------------


class ResidualBlock(nn.Module):
    """Adds the output of two layers to its input."""

    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, x):
        """Return x (B, width) plus its change (B, width)."""
        change = F.relu(self.first(self.norm(x)))
        return x + self.dropout(self.second(change))


class VisitNet(nn.Module):
    """Classify visits: features (B, F + 1), the last one a season, to logits (B, 2)."""

    def __init__(self, features):
        super().__init__()
        self.season = nn.Embedding(SEASONS, SEASON_WIDTH)
        self.entry = nn.Linear(features + SEASON_WIDTH, HIDDEN)
        self.blocks = nn.Sequential(*[ResidualBlock(HIDDEN) for _ in range(BLOCKS)])
        self.norm = nn.LayerNorm(HIDDEN)
        self.head = nn.Linear(HIDDEN, 2)

    def forward(self, inputs):
        """Return the logits of a batch."""
        numbers = inputs[:, :-1]
        season = inputs[:, -1].long().clamp(0, SEASONS - 1)
        x = self.entry(torch.cat([numbers, self.season(season)], dim=1))
        return self.head(self.norm(self.blocks(x)))


def build_model():
    """Return the network: features (B, 17) to logits (B, 2)."""
    model = VisitNet(len(KNOWN) + len(INTERACTIONS))
    nn.init.normal_(model.season.weight, std=0.1)
    nn.init.zeros_(model.head.bias)
    return model


# --- training -------------------------------------------------------------------------------------------------


def decayed_and_other(model):
    """Return the parameters with weight decay (matrices), and the others (biases, norms)."""
    decayed = [parameter for parameter in model.parameters() if parameter.dim() >= 2]
    other = [parameter for parameter in model.parameters() if parameter.dim() < 2]
    return decayed, other


def build_optimizer(model):
    """Return the optimizer over all parameters of the model: AdamW, with weight decay only for matrices."""
    decayed, other = decayed_and_other(model)
    groups = [
        {"params": decayed, "weight_decay": WEIGHT_DECAY},
        {"params": other, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=LR, fused=True)


def build_scheduler(optimizer, total_steps):
    """Return a learning-rate schedule that is stepped once a batch: warm-up, then cosine to a tenth."""
    return warmup_cosine(optimizer, warmup_steps=total_steps // 20, total_steps=total_steps, final_fraction=0.1)


def compute_loss(outputs, labels):
    """Return the loss of logits (B, 2) against labels (B,), a scalar."""
    return F.cross_entropy(outputs, labels)


def train_step(model, optimizer, inputs, labels):
    """Make one step of the optimizer on one batch, with the gradient clipped, and return the loss."""
    optimizer.zero_grad()
    loss = compute_loss(model(inputs), labels)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm=MAX_GRAD_NORM)
    optimizer.step()
    return loss


# --- validation -----------------------------------------------------------------------------------------------


def accuracy(outputs, labels):
    """Return the share of visits that are classified correctly."""
    return (outputs.argmax(dim=1) == labels).float().mean().item()


def recalls(outputs, labels):
    """Return the recall of each class: the share of its visits that are found."""
    predicted = outputs.argmax(dim=1)
    return [(predicted[labels == number] == number).float().mean().item() for number in range(outputs.shape[1])]


@torch.no_grad()
def evaluate(model, inputs, labels):
    """Return the loss and the accuracy on the whole validation split, and the recall of both classes."""
    model.eval()
    outputs = model(inputs)
    stays_away, returns = recalls(outputs, labels)
    return {
        "val_loss": compute_loss(outputs, labels).item(),
        "val_accuracy": accuracy(outputs, labels),
        "recall_stays_away": stays_away,
        "recall_returns": returns,
    }
