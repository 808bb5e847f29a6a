"""Checks: each module has one class that checks one property of sound training."""

from trainwreck.check import Check
from trainwreck.checks.accumulation import Accumulation
from trainwreck.checks.activations import Activations
from trainwreck.checks.batch_norm import BatchNorm
from trainwreck.checks.decay import Decay
from trainwreck.checks.dropout import Dropout
from trainwreck.checks.evaluation import Evaluation
from trainwreck.checks.finite import Finite
from trainwreck.checks.first_loss import FirstLoss
from trainwreck.checks.flow import Flow
from trainwreck.checks.gradients import Gradients
from trainwreck.checks.graphs import Graphs
from trainwreck.checks.inputs import Inputs
from trainwreck.checks.labels import Labels
from trainwreck.checks.layers import Layers
from trainwreck.checks.log import Log
from trainwreck.checks.loss_form import LossForm
from trainwreck.checks.metric import Metric
from trainwreck.checks.mixing import Mixing
from trainwreck.checks.modes import Modes
from trainwreck.checks.order import Order
from trainwreck.checks.outputs import Outputs
from trainwreck.checks.overfit import Overfit
from trainwreck.checks.ownership import Ownership
from trainwreck.checks.pairs import Pairs
from trainwreck.checks.precision import Precision
from trainwreck.checks.progress import Progress
from trainwreck.checks.repeat import Repeat
from trainwreck.checks.replicas import Replicas
from trainwreck.checks.saving import Saving
from trainwreck.checks.scaling import Scaling
from trainwreck.checks.schedule import Schedule
from trainwreck.checks.shapes import Shapes
from trainwreck.checks.snapshots import Snapshots
from trainwreck.checks.storage import Storage
from trainwreck.checks.symmetry import Symmetry
from trainwreck.checks.targets import Targets
from trainwreck.checks.tokens import Tokens
from trainwreck.checks.update_size import UpdateSize
from trainwreck.checks.validation import Validation
from trainwreck.checks.workers import Workers

# The cheap ones first, then those that make trials.
ALL: tuple[type[Check], ...] = (
    Gradients,
    Ownership,
    Scaling,
    Accumulation,
    Precision,
    Schedule,
    UpdateSize,
    Decay,
    Flow,
    Graphs,
    Modes,
    Dropout,
    BatchNorm,
    Snapshots,
    Saving,
    LossForm,
    Shapes,
    Outputs,
    FirstLoss,
    Finite,
    Labels,
    Order,
    Workers,
    Inputs,
    Evaluation,
    Symmetry,
    Layers,
    Replicas,
    Mixing,
    Tokens,
    Validation,
    Metric,
    Log,
    Pairs,
    Storage,
    Activations,
    Targets,
    Overfit,
    Progress,
    Repeat,
)
