"""Which label sets can a linear output layer ever predict? Verdicts that carry their own proof."""

from longtail.audit.auditing import verify, verify_classes
from longtail.audit.counting import count_argmaxable, dimensions_needed, share_argmaxable
from longtail.audit.dft import dft_matrix, dft_product, dft_witness, initial_bias
from longtail.audit.finding import ARGMAXABLE, UNARGMAXABLE, UNDETERMINED, Audit, Certificate
from longtail.audit.findings import Findings, LabelSets, describe_conflict
from longtail.audit.models import output_layer
from longtail.audit.question import audit_layer
from longtail.audit.structure import add_slack, alternations, has_one_sign_minors, vandermonde_matrix
from longtail.audit.trees import audit_tree
from longtail.estimator.output_layer import OutputLayer

__all__ = [
    "ARGMAXABLE",
    "UNARGMAXABLE",
    "UNDETERMINED",
    "Audit",
    "Certificate",
    "Findings",
    "LabelSets",
    "OutputLayer",
    "add_slack",
    "alternations",
    "audit_layer",
    "audit_tree",
    "count_argmaxable",
    "describe_conflict",
    "dft_matrix",
    "dft_product",
    "dft_witness",
    "dimensions_needed",
    "has_one_sign_minors",
    "initial_bias",
    "output_layer",
    "share_argmaxable",
    "vandermonde_matrix",
    "verify",
    "verify_classes",
]
