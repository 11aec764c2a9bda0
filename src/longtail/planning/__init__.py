"""Plans of trainings: memory, disk, network and time, from the size of the data and measured costs."""

from longtail.planning.calibration import Spent, calibrate, measured_stages
from longtail.planning.costs import Costs
from longtail.planning.schedule import Plan, Schedule, Timed, plan
from longtail.planning.stages import Stage, stages_of
from longtail.planning.workload import LEARNERS, NEGATIVES, Workload

__all__ = [
    "LEARNERS",
    "NEGATIVES",
    "Costs",
    "Plan",
    "Schedule",
    "Spent",
    "Stage",
    "Timed",
    "Workload",
    "calibrate",
    "measured_stages",
    "plan",
    "stages_of",
]
