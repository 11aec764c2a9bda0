"""Two stages: candidate labels from several sources, re-ranked by boosted trees."""

from longtail.ranking.boosting import BoostedTrees
from longtail.ranking.candidates import joined_learner
from longtail.ranking.index import SparseIndex
from longtail.ranking.rehearsal import BOTH
from longtail.ranking.two_stage import TwoStage

__all__ = ["BOTH", "BoostedTrees", "SparseIndex", "TwoStage", "joined_learner"]
