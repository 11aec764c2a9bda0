// The native kernels of longtail as one extension module. Beside each .cpp stands its NumPy twin of the same name.
#include <nanobind/nanobind.h>

#include "kernels.h"

NB_MODULE(_kernels, m) {
    bind_conjugate(m);
    bind_repository_text(m);
    bind_sparse(m);
    bind_text(m);
    bind_topk(m);
}
