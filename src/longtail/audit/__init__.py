"""Which label sets can a linear output layer ever give? Verdicts that carry their own proof.

An `OutputLayer` and label sets make a question. A search looks for proofs, the proofs are checked from the weights
alone, and an `Audit` holds what was found.
"""

from longtail.audit.auditing import audit, audit_classes
from longtail.audit.box import Box
from longtail.audit.conflicts import describe_conflict
from longtail.audit.corpus import CorpusAudit, audit_corpus
from longtail.audit.counting import count_argmaxable, dimensions_needed, share_argmaxable
from longtail.audit.cure import Remedy, lines_of, remedies
from longtail.audit.dft import dft_matrix, dft_product, dft_witness, initial_bias
from longtail.audit.files import read_inputs, read_layer
from longtail.audit.finding import ARGMAXABLE, UNARGMAXABLE, UNDETERMINED, Audit, Certificate, Radii
from longtail.audit.label_sets import LabelSets
from longtail.audit.margins import SLACK, closed_form_inputs, dft_margins, random_members, slack_needed
from longtail.audit.models import output_layer, read_model
from longtail.audit.nearest import nearest_point
from longtail.audit.parameter_counts import bottleneck_parameters, dft_parameters, plain_parameters, slack_of_equal_size
from longtail.audit.position import Position, general_position
from longtail.audit.program import require_highspy, solve_whole
from longtail.audit.shattering import Crowd, crowd
from longtail.audit.sizes import SafeSize, SizeAudit, audit_sizes, find_safe_size
from longtail.audit.structure import add_slack, alternations, has_one_sign_minors, vandermonde_matrix
from longtail.audit.system import System
from longtail.audit.trees import audit_tree
from longtail.audit.width import Truncation, Width, truncation_needed, width_needed
from longtail.estimator import OutputLayer

__all__ = [
    "ARGMAXABLE",
    "SLACK",
    "UNARGMAXABLE",
    "UNDETERMINED",
    "Audit",
    "Box",
    "Certificate",
    "CorpusAudit",
    "Crowd",
    "LabelSets",
    "OutputLayer",
    "Position",
    "Radii",
    "Remedy",
    "SafeSize",
    "SizeAudit",
    "System",
    "Truncation",
    "Width",
    "add_slack",
    "alternations",
    "audit",
    "audit_classes",
    "audit_corpus",
    "audit_sizes",
    "audit_tree",
    "bottleneck_parameters",
    "closed_form_inputs",
    "count_argmaxable",
    "crowd",
    "describe_conflict",
    "dft_margins",
    "dft_matrix",
    "dft_parameters",
    "dft_product",
    "dft_witness",
    "dimensions_needed",
    "find_safe_size",
    "general_position",
    "has_one_sign_minors",
    "initial_bias",
    "lines_of",
    "nearest_point",
    "output_layer",
    "plain_parameters",
    "random_members",
    "read_inputs",
    "read_layer",
    "read_model",
    "remedies",
    "require_highspy",
    "share_argmaxable",
    "slack_needed",
    "slack_of_equal_size",
    "solve_whole",
    "truncation_needed",
    "vandermonde_matrix",
    "width_needed",
]
