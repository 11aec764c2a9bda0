"""Which label sets can a linear output layer ever predict? Verdicts that carry their own proof."""

from longtail.audit.result import ARGMAXABLE, UNARGMAXABLE, UNDETERMINED, Audit, Certificate
from longtail.audit.verification import verify, verify_classes

__all__ = [
    "ARGMAXABLE",
    "UNARGMAXABLE",
    "UNDETERMINED",
    "Audit",
    "Certificate",
    "verify",
    "verify_classes",
]
