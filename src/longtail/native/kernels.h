// Shared by all kernels: the array types they take and the choice of instruction set at run time.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>

namespace nb = nanobind;

// Functions with this mark are compiled twice, and the loader uses the AVX2 version if the processor supports it.
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(LONGTAIL_PLAIN)
#define LONGTAIL_WIDE __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define LONGTAIL_WIDE
#endif

template <typename T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T>
using Matrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void bind_boosting(nb::module_ &m);
void bind_candidates(nb::module_ &m);
void bind_cluster(nb::module_ &m);
void bind_conjugate(nb::module_ &m);
void bind_grouped(nb::module_ &m);
void bind_inverted_index(nb::module_ &m);
void bind_repository_text(nb::module_ &m);
void bind_represent(nb::module_ &m);
void bind_siblings(nb::module_ &m);
void bind_sparse(nb::module_ &m);
void bind_text(nb::module_ &m);
void bind_topk(nb::module_ &m);
void bind_tree_search(nb::module_ &m);
void bind_votes(nb::module_ &m);
