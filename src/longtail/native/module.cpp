// The native kernels of longtail as one extension module. Each .cpp has a NumPy twin of the same name beside it.
#include <nanobind/nanobind.h>

#include "kernels.h"

#if defined(LONGTAIL_SANITIZED)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

NB_MODULE(_kernels, m) {
    m.attr("sanitized") = sanitized;
    bind_boosting(m);
    bind_candidates(m);
    bind_cluster(m);
    bind_conjugate(m);
    bind_grouped(m);
    bind_inverted_index(m);
    bind_repository_text(m);
    bind_represent(m);
    bind_siblings(m);
    bind_sparse(m);
    bind_text(m);
    bind_topk(m);
    bind_tree_search(m);
    bind_votes(m);
}
