// The product of a sparse row with a dense vector.
#pragma once

#include <cstddef>

// Four running sums, because each addition to a single one would wait for the one before.
template <typename I>
inline float dot(const I *features, const float *values, size_t count, const float *dense) {
    float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    size_t e = 0;
    for (; e + 4 <= count; e += 4)
        for (size_t j = 0; j < 4; ++j) sums[j] += values[e + j] * dense[features[e + j]];
    for (; e < count; ++e) sums[0] += values[e] * dense[features[e]];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}
