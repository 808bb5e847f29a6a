"""Checks: each module has one class that checks one property of sound training."""

from trainwreck.check import Check
from trainwreck.checks.accumulation import Accumulation
from trainwreck.checks.activations import Activations
from trainwreck.checks.evaluation import Evaluation
from trainwreck.checks.finite import Finite
from trainwreck.checks.first_loss import FirstLoss
from trainwreck.checks.gradients import Gradients
from trainwreck.checks.inputs import Inputs
from trainwreck.checks.labels import Labels
from trainwreck.checks.loss_form import LossForm
from trainwreck.checks.mixing import Mixing
from trainwreck.checks.modes import Modes
from trainwreck.checks.order import Order
from trainwreck.checks.overfit import Overfit
from trainwreck.checks.ownership import Ownership
from trainwreck.checks.precision import Precision
from trainwreck.checks.repeat import Repeat
from trainwreck.checks.replicas import Replicas
from trainwreck.checks.saving import Saving
from trainwreck.checks.scaling import Scaling
from trainwreck.checks.schedule import Schedule
from trainwreck.checks.shapes import Shapes
from trainwreck.checks.snapshots import Snapshots
from trainwreck.checks.symmetry import Symmetry
from trainwreck.checks.targets import Targets
from trainwreck.checks.tokens import Tokens
from trainwreck.checks.update_size import UpdateSize
from trainwreck.checks.validation import Validation

# The cheap ones first, then those that make trials.
ALL: tuple[type[Check], ...] = (
    Gradients,
    Ownership,
    Scaling,
    Accumulation,
    Precision,
    Schedule,
    UpdateSize,
    Modes,
    Snapshots,
    Saving,
    LossForm,
    Shapes,
    FirstLoss,
    Finite,
    Labels,
    Order,
    Inputs,
    Evaluation,
    Symmetry,
    Replicas,
    Mixing,
    Tokens,
    Validation,
    Activations,
    Targets,
    Overfit,
    Repeat,
)
