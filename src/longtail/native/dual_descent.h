// One sweep of dual coordinate descent over the rows of a node, for a block of sibling classifiers in lockstep.
#pragma once

#include <cstddef>
#include <cstdint>

constexpr size_t most_siblings = 64;  // eight registers of eight lanes

struct Entry {
    uint32_t feature;
    float value;
};

// The rows of a node and what their siblings want of them. Classifiers are columns; `width`, their number rounded up to
// whole lanes, is the stride of `weights`, `duals` and of everything that is per sibling.
struct Siblings {
    size_t rows;
    size_t width;
    int32_t first_sibling;               // number of the first sibling of this block
    const Entry *const *first;           // of each row
    const uint32_t *length;              // entries of each row
    const float *square;                 // squared length of each row, bias included
    const int64_t *positive_pointers;    // of each row, into the next two
    const int32_t *positive_siblings;    // those a row belongs to; the ones of other blocks are skipped
    const float *positive_costs;         // C of each such pair
    const float *negative_costs;         // C of every other pair, per sibling
    float bias;                          // value of the feature that every row has
    float *weights;                      // features x width
    float *intercepts;                   // width: weights of the bias feature
    float *duals;                        // rows x width
};

// What a sweep saw: sums over rows, per sibling, of the primal and of the dual loss terms.
struct Sums {
    double primal[most_siblings] = {};
    double dual[most_siblings] = {};
};

// Rows from `start` to before `stop` that are visited in one go; their sums are first kept in single precision.
struct Strip {
    size_t start;
    size_t stop;
};

struct DescentVariant {
    const char *name;
    // Visit those rows in the given order, changing duals and weights; adds to the sums those of the moment of each visit.
    void (*sweep)(const Siblings &, Strip, bool logistic, const uint32_t *order, float negligible, Sums &sums);
    // Build the weights, zero so far, from the duals.
    void (*replay)(const Siblings &, Strip);
    // Visit the rows without changing anything: what is added to the sums is exact.
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
