// The repository text format, block by block.
#include "kernels.h"

void bind_repository_text(nb::module_ &) {}
