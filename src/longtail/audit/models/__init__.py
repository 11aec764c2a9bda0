"""The output layer of models that others made: Python objects, and files that no pickle is needed for."""

from longtail.audit.models.files import read_model
from longtail.audit.models.objects import output_layer

__all__ = ["output_layer", "read_model"]
