"""Checks: each module has one class that checks one property of sound training."""

from trainwreck.check import Check
from trainwreck.checks.gradients import Gradients
from trainwreck.checks.labels import Labels
from trainwreck.checks.loss_form import LossForm
from trainwreck.checks.mixing import Mixing
from trainwreck.checks.modes import Modes
from trainwreck.checks.overfit import Overfit
from trainwreck.checks.ownership import Ownership
from trainwreck.checks.scaling import Scaling
from trainwreck.checks.shapes import Shapes

ALL: tuple[type[Check], ...] = (Gradients, Ownership, Modes, LossForm, Shapes, Labels, Scaling, Mixing, Overfit)
