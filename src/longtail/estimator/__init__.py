"""The contract of every learner, as code."""

from longtail.estimator.output_layer import OutputLayer, Rule

__all__ = ["OutputLayer", "Rule"]
