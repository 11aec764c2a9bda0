// One sweep of dual coordinate descent over the rows of a node, for a block of sibling classifiers in lockstep.
#pragma once

#include <cstddef>
#include <cstdint>

constexpr size_t most_siblings = 64;  // eight registers of eight lanes

struct Entry {
    uint32_t feature;
    float value;
};

// The rows of a node and their targets for each sibling. Classifiers are columns; `width`, their number rounded up to
// whole lanes, is the stride of `weights`, `duals` and all arrays per sibling.
struct Siblings {
    size_t rows;
    size_t width;
    int32_t first_sibling;               // number of the first sibling of this block
    const Entry *const *first;           // of each row
    const uint32_t *length;              // entries of each row
    const float *square;                 // squared length of each row, bias included
    const int64_t *positive_pointers;    // of each row, into the next two
    const int32_t *positive_siblings;    // the siblings of each row; those of other blocks are skipped
    const float *positive_costs;         // C of each such pair
    const float *negative_costs;         // C of every other pair, per sibling
    float bias;                          // value of the constant feature of every row
    float *weights;                      // features x width
    float *intercepts;                   // width: weights of the bias feature
    float *duals;                        // rows x width
};

// The result of a sweep: sums over rows, per sibling, of the primal and dual loss terms.
struct Sums {
    double primal[most_siblings] = {};
    double dual[most_siblings] = {};
};

// Rows from `start` to before `stop`, visited together; their sums are first kept in single precision.
struct Strip {
    size_t start;
    size_t stop;
};

struct DescentVariant {
    const char *name;
    // Visit these rows in the given order and update duals and weights; adds the loss terms at the time of each visit.
    void (*sweep)(const Siblings &, Strip, bool logistic, const uint32_t *order, float negligible, Sums &sums);
    // Build the weights, initially zero, from the duals.
    void (*replay)(const Siblings &, Strip);
    // Visit the rows without changing anything; adds the exact loss terms.
    void (*judge)(const Siblings &, Strip, bool logistic, Sums &sums);
};

namespace descent_plain {
extern const DescentVariant variant;
}
#if defined(LONGTAIL_HAS_AVX2)
namespace descent_avx2 {
extern const DescentVariant variant;
}
#endif
