"""Output layers for very many labels, and networks that learn their features, in torch.

The one package that needs torch; ``pip install 'longtail[neural]'`` brings it.
"""

from longtail.errors import Unavailable

try:
    import torch as torch
except ImportError:
    raise Unavailable("longtail.neural needs torch: pip install 'longtail[neural]'") from None
