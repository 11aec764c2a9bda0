// Raw scores of boosted trees.
//
// No tree is walked. A split that sends a pair to the right crosses out every leaf on its left: an AND with the mask of
// the split. When all splits of a tree are done, the lowest leaf that is left is the leaf of the pair. The splits are
// done in any order and without branches, for several pairs at once. The last leaf is in no mask, so one leaf always
// remains.
#include "kernels.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "stop.h"

#if defined(_MSC_VER)
#include <intrin.h>
#endif

namespace {

constexpr size_t width = 4, groups = 4, block = width * groups;

#if defined(__GNUC__)
// Four at a time, because every processor has registers of that width: no second build is needed.
typedef float Values __attribute__((vector_size(16)));
typedef int32_t Leaves __attribute__((vector_size(16)));

inline Leaves every_leaf() { return ~Leaves{}; }

inline void cross_out(Leaves &left, const float *values, float threshold, uint32_t mask) {
    Values four;
    std::memcpy(&four, values, sizeof four);
    left &= (four <= threshold) | static_cast<int32_t>(mask);
}
#else
struct Leaves {
    uint32_t at[width];
    uint32_t operator[](size_t i) const { return at[i]; }
};

inline Leaves every_leaf() {
    Leaves out;
    for (uint32_t &leaves : out.at) leaves = ~uint32_t{0};
    return out;
}

inline void cross_out(Leaves &left, const float *values, float threshold, uint32_t mask) {
    for (size_t i = 0; i < width; ++i) left.at[i] &= values[i] <= threshold ? ~uint32_t{0} : mask;
}
#endif

inline unsigned lowest_bit(uint32_t word) {
#if defined(_MSC_VER)
    unsigned long place;
    _BitScanForward(&place, word);
    return place;
#else
    return static_cast<unsigned>(__builtin_ctz(word));
#endif
}

void boosted_scores(Matrix<const float> features, Vector<const int16_t> split_features, Vector<const float> thresholds,
                    Vector<const uint32_t> masks, Vector<const int64_t> first_splits, Vector<const double> leaf_values,
                    double baseline, Vector<double> scores) {
    const size_t pairs = features.shape(0), n_features = features.shape(1), trees = first_splits.shape(0) - 1;
    const float *rows = features.data(), *limits = thresholds.data();
    const int16_t *feature_of = split_features.data();
    const uint32_t *mask_of = masks.data();
    const int64_t *firsts = first_splits.data();
    double *out = scores.data();
    nb::gil_scoped_release released;
    Stop stop;
    std::vector<float> columns(n_features * block);
    for (size_t start = 0; start < pairs; start += block) {
        const size_t size = std::min(block, pairs - start);
        for (size_t i = 0; i < size; ++i)
            for (size_t f = 0; f < n_features; ++f) columns[f * block + i] = rows[(start + i) * n_features + f];
        double sums[block];
        std::fill(sums, sums + block, baseline);
        const double *values = leaf_values.data();
        for (size_t tree = 0; tree < trees; ++tree) {
            Leaves left[groups];
            for (Leaves &group : left) group = every_leaf();
            for (int64_t split = firsts[tree]; split < firsts[tree + 1]; ++split) {
                const float *column = columns.data() + static_cast<size_t>(feature_of[split]) * block;
                for (size_t g = 0; g < groups; ++g)
                    cross_out(left[g], column + g * width, limits[split], mask_of[split]);
            }
            for (size_t i = 0; i < block; ++i)
                sums[i] += values[lowest_bit(static_cast<uint32_t>(left[i / width][i % width]))];
            values += firsts[tree + 1] - firsts[tree] + 1;
        }
        std::copy(sums, sums + size, out + start);
        stop.count(static_cast<size_t>(firsts[trees] - firsts[0]) * 2 + trees * block);
    }
}

}  // namespace

void bind_boosting(nb::module_ &m) {
    m.def("boosted_scores", &boosted_scores, nb::arg("features"), nb::arg("split_features"), nb::arg("thresholds"),
          nb::arg("masks"), nb::arg("first_splits"), nb::arg("leaf_values"), nb::arg("baseline"),
          nb::arg("scores").noconvert());
}
