"""Two stages: candidate labels from several sources, re-ranked by boosted trees."""

from longtail.ranking.boosting import BoostedTrees

__all__ = ["BoostedTrees"]
