"""Which learner to train: by a race on held-out rows or, where that is not possible, by the size of the data."""

from longtail.choice.cost import seconds_of
from longtail.choice.held_out import PLACES, HeldOut
from longtail.choice.options import LEARNERS, NETWORK, LearnerOptions, check_learner, learners_taking
from longtail.choice.race import Entrant, Race, Standing, entrants, folds, quietly, run_race
from longtail.choice.rules import Choice, choose_learner

__all__ = [
    "LEARNERS",
    "NETWORK",
    "PLACES",
    "Choice",
    "Entrant",
    "HeldOut",
    "LearnerOptions",
    "Race",
    "Standing",
    "check_learner",
    "choose_learner",
    "entrants",
    "folds",
    "learners_taking",
    "quietly",
    "run_race",
    "seconds_of",
]
