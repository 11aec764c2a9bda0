// Linear classifiers of the children of one node, trained together (dual coordinate descent of Hsieh et al., ICML 2008,
// in lockstep): siblings share their rows, so one pass over a sparse row serves up to 64 of them.
#include "kernels.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "dual_descent.h"
#include "large.h"
#include "owned.h"
#include "stop.h"

namespace {

bool has_avx2() {
#if defined(LONGTAIL_HAS_AVX2) && defined(__GNUC__)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

const DescentVariant *best_variant() {
#if defined(LONGTAIL_HAS_AVX2)
    if (has_avx2()) return &descent_avx2::variant;
#endif
    return &descent_plain::variant;
}

const DescentVariant *variant = best_variant();

std::string simd() { return variant->name; }

void use_simd(const std::string &name) {
    if (name == "plain")
        variant = &descent_plain::variant;
    else if (name == best_variant()->name)
        variant = best_variant();
    else
        throw std::invalid_argument("no such variant on this processor: " + name);
}

// A random permutation that is the same on every platform (xorshift64*).
class Shuffler {
  public:
    explicit Shuffler(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ull + 0x632BE59BD9B4E019ull) {
        if (state_ == 0) state_ = 1;
    }
    void shuffle(std::vector<uint32_t> &order) {
        for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[below(static_cast<uint32_t>(i))]);
    }

  private:
    uint32_t below(uint32_t bound) {
        state_ ^= state_ >> 12;
        state_ ^= state_ << 25;
        state_ ^= state_ >> 27;
        const uint64_t high = (state_ * 0x2545F4914F6CDD1Dull) >> 32;
        return static_cast<uint32_t>((high * bound) >> 32);
    }
    uint64_t state_;
};

// The rows of a node, with the features that occur renumbered in ascending order.
struct Rows {
    LargeVector<Entry> entries;
    std::vector<const Entry *> first;
    std::vector<uint32_t> length;
    std::vector<float> square;
    std::vector<uint32_t> features;

    Rows(const int64_t *indptr, const int32_t *indices, const float *data, size_t n_features, const int64_t *rows,
         size_t n_rows, float bias, Stop &stop) {
        // Kept between calls: a node of a large tree has few of the features, and clearing all would cost more.
        thread_local std::vector<uint64_t> present;
        thread_local std::vector<uint32_t> renumbered;
        present.assign((n_features + 63) / 64, 0);
        if (renumbered.size() < n_features) renumbered.resize(n_features);
        size_t total = 0;
        for (size_t i = 0; i < n_rows; ++i) {
            for (int64_t j = indptr[rows[i]]; j < indptr[rows[i] + 1]; ++j)
                present[indices[j] >> 6] |= uint64_t{1} << (indices[j] & 63);
            total += static_cast<size_t>(indptr[rows[i] + 1] - indptr[rows[i]]);
            stop.count(static_cast<size_t>(indptr[rows[i] + 1] - indptr[rows[i]]));
        }
        for (size_t word = 0; word < present.size(); ++word)
            for (uint64_t bits = present[word]; bits; bits &= bits - 1) {
                uint32_t bit = 0;
                for (uint64_t rest = bits & (~bits + 1); rest > 1; rest >>= 1) ++bit;
                const uint32_t feature = static_cast<uint32_t>(word * 64 + bit);
                renumbered[feature] = static_cast<uint32_t>(features.size());
                features.push_back(feature);
            }
        entries.resize(total);
        first.resize(n_rows);
        length.resize(n_rows);
        square.resize(n_rows);
        Entry *to = entries.data();
        for (size_t i = 0; i < n_rows; ++i) {
            first[i] = to;
            double sum = static_cast<double>(bias) * bias;
            for (int64_t j = indptr[rows[i]]; j < indptr[rows[i] + 1]; ++j) {
                *to++ = {renumbered[indices[j]], data[j]};
                sum += static_cast<double>(data[j]) * data[j];
            }
            length[i] = static_cast<uint32_t>(to - first[i]);
            square[i] = static_cast<float>(sum);
            stop.count(length[i]);
        }
    }
};

// The number of lanes of each block of siblings: as few blocks of at most 64 as possible, of equal size.
std::vector<size_t> block_widths(size_t n_siblings) {
    if (n_siblings == 0) return {};
    const size_t blocks = (n_siblings + most_siblings - 1) / most_siblings;
    const size_t each = ((n_siblings + blocks - 1) / blocks + 7) / 8 * 8;
    std::vector<size_t> widths;
    for (size_t left = n_siblings; left > 0; left -= std::min(left, each)) widths.push_back((std::min(left, each) + 7) / 8 * 8);
    return widths;
}

struct Weight {
    uint32_t feature;
    uint8_t sibling;
    float weight;
};

// The weights of a block that are larger than `threshold` and, unless `top` is 0, among the `top` largest of their
// sibling.
void keep(const float *weights, size_t n_features, size_t width, size_t n_siblings, size_t first_sibling,
          float threshold, size_t top, std::vector<Weight> &kept) {
    std::vector<float> floor(n_siblings, threshold);
    if (top > 0 && top < n_features) {
        std::vector<float> column(n_features);
        for (size_t k = 0; k < n_siblings; ++k) {
            for (size_t f = 0; f < n_features; ++f) column[f] = std::fabs(weights[f * width + k]);
            // The largest weight that is dropped; ties with it are dropped too.
            std::nth_element(column.begin(), column.begin() + static_cast<std::ptrdiff_t>(top), column.end(),
                             std::greater<float>());
            floor[k] = std::max(floor[k], column[top]);
        }
    }
    for (size_t f = 0; f < n_features; ++f)
        for (size_t k = 0; k < n_siblings; ++k)
            if (std::fabs(weights[f * width + k]) > floor[k])
                kept.push_back({static_cast<uint32_t>(f), static_cast<uint8_t>(first_sibling + k), weights[f * width + k]});
}

// The result of the sweeps over one block.
struct Outcome {
    double gap = 0, primal = 0;
    int64_t sweeps = 0;
};

// Descend until the relative gap between primal and dual objective, over all siblings together, is at most `tolerance`.
// The sums of a sweep use margins that change during it and overstate the gap; they only decide when to compute the
// exact gap.
Outcome descend(const Siblings &s, size_t n_features, bool logistic, double tolerance, int64_t max_sweeps, uint64_t seed,
                float negligible, Stop &stop) {
    constexpr double worth_a_look = 4;
    constexpr size_t strip = 64;
    const size_t entries = std::accumulate(s.length, s.length + s.rows, size_t{0});
    const size_t steps = strip * (entries / std::max<size_t>(1, s.rows) + 8) * s.width / 8;
    const auto for_each_strip = [&](auto visit) {
        for (size_t start = 0; start < s.rows; start += strip) {
            visit(Strip{start, std::min(start + strip, s.rows)});
            stop.count(steps);
        }
    };
    const auto zero = [](float dual) { return dual == 0; };
    const bool cold = std::all_of(s.duals, s.duals + s.rows * s.width, zero);
    // Rows that were added come last, without duals. With some, the gap is large.
    const bool same_rows = s.rows > 0 && !std::all_of(s.duals + (s.rows - 1) * s.width, s.duals + s.rows * s.width, zero);
    if (!cold) for_each_strip([&](Strip rows) { variant->replay(s, rows); });
    std::vector<uint32_t> order(s.rows);
    for (size_t i = 0; i < s.rows; ++i) order[i] = static_cast<uint32_t>(i);
    Shuffler shuffler(seed);
    Sums sums;
    Outcome out;
    const auto update_gap = [&] {
        double square = 0, primal = 0, dual = 0;
        for (size_t f = 0; f < n_features; ++f) {
            float part = 0;
            for (size_t k = 0; k < s.width; ++k) part += s.weights[f * s.width + k] * s.weights[f * s.width + k];
            square += part;
        }
        for (size_t k = 0; k < s.width; ++k) {
            square += static_cast<double>(s.intercepts[k]) * s.intercepts[k];
            primal += sums.primal[k];
            dual += sums.dual[k];
        }
        out.primal = primal + square / 2;
        out.gap = out.primal - dual + square / 2;
    };
    for (; out.sweeps < max_sweeps; ++out.sweeps) {
        if (out.sweeps > 0 ? out.gap <= worth_a_look * tolerance * out.primal : same_rows) {
            sums = {};
            for_each_strip([&](Strip rows) { variant->judge(s, rows, logistic, sums); });
            update_gap();
            if (out.gap <= tolerance * out.primal) break;
        }
        shuffler.shuffle(order);
        sums = {};
        for_each_strip([&](Strip rows) { variant->sweep(s, rows, logistic, order.data(), negligible, sums); });
        update_gap();
    }
    return out;
}

nb::tuple train_siblings(Vector<const int64_t> indptr, Vector<const int32_t> indices, Vector<const float> data,
                         int64_t n_features, Vector<const int64_t> rows, Vector<const int64_t> positive_pointers,
                         Vector<const int32_t> positive_siblings, Vector<const float> positive_costs, float negative_cost,
                         int64_t n_siblings, float bias, bool logistic, double tolerance, int64_t max_sweeps,
                         uint64_t seed, float threshold, int64_t top, std::optional<Vector<float>> duals) {
    const size_t n_rows = rows.shape(0), count = static_cast<size_t>(n_siblings);
    std::vector<int32_t> features;
    std::vector<int64_t> pointers{0};
    std::vector<uint8_t> siblings;
    std::vector<float> values, intercepts;
    Outcome total;
    {
        nb::gil_scoped_release released;
        Stop stop;
        const Rows local(indptr.data(), indices.data(), data.data(), static_cast<size_t>(n_features), rows.data(),
                         n_rows, bias, stop);
        std::vector<Weight> kept;
        LargeVector<float> weights, own_duals;
        size_t first = 0, lanes_before = 0;
        for (const size_t width : block_widths(count)) {
            const size_t own = std::min(width, count - first);
            weights.assign(local.features.size() * width, 0.0f);
            std::vector<float> block_intercepts(width, 0.0f);
            // Lanes beyond the last sibling have no cost, so they never move.
            std::vector<float> negative_costs(width, 1e-30f);
            std::fill_n(negative_costs.begin(), own, negative_cost);
            if (!duals) own_duals.assign(n_rows * width, 0.0f);
            const Siblings s{n_rows,
                             width,
                             static_cast<int32_t>(first),
                             local.first.data(),
                             local.length.data(),
                             local.square.data(),
                             positive_pointers.data(),
                             positive_siblings.data(),
                             positive_costs.data(),
                             negative_costs.data(),
                             bias,
                             weights.data(),
                             block_intercepts.data(),
                             duals ? duals->data() + n_rows * lanes_before : own_duals.data()};
            const Outcome out = descend(s, local.features.size(), logistic, tolerance, max_sweeps, seed,
                                        1e-6f * negative_cost, stop);
            total.gap += out.gap;
            total.primal += out.primal;
            total.sweeps = std::max(total.sweeps, out.sweeps);
            keep(weights.data(), local.features.size(), width, own, first, threshold, static_cast<size_t>(top), kept);
            for (size_t k = 0; k < own; ++k) intercepts.push_back(block_intercepts[k] * bias);
            first += own;
            lanes_before += width;
        }
        // Blocks are concatenated, each sorted by feature; sort the whole by feature, then by sibling.
        std::vector<size_t> at(local.features.size() + 1, 0);
        for (const Weight &each : kept) ++at[each.feature + 1];
        for (size_t f = 0; f < local.features.size(); ++f) {
            if (at[f + 1] > 0) {
                features.push_back(static_cast<int32_t>(local.features[f]));
                pointers.push_back(pointers.back() + static_cast<int64_t>(at[f + 1]));
            }
            at[f + 1] += at[f];
        }
        siblings.resize(kept.size());
        values.resize(kept.size());
        for (const Weight &each : kept) {
            const size_t to = at[each.feature]++;
            siblings[to] = each.sibling;
            values[to] = each.weight;
        }
    }
    return nb::make_tuple(owned(std::move(features)), owned(std::move(pointers)), owned(std::move(siblings)),
                          owned(std::move(values)), owned(std::move(intercepts)),
                          total.primal > 0 ? total.gap / total.primal : 0.0, total.sweeps);
}

}  // namespace

void bind_siblings(nb::module_ &m) {
    m.def("train_siblings", &train_siblings, nb::arg("indptr"), nb::arg("indices"), nb::arg("data"),
          nb::arg("n_features"), nb::arg("rows"), nb::arg("positive_pointers"), nb::arg("positive_siblings"),
          nb::arg("positive_costs"), nb::arg("negative_cost"), nb::arg("n_siblings"), nb::arg("bias"),
          nb::arg("logistic"), nb::arg("tolerance"), nb::arg("max_sweeps"), nb::arg("seed"), nb::arg("threshold"),
          nb::arg("top"), nb::arg("duals").noconvert().none());
    m.def("simd", &simd);
    m.def("use_simd", &use_simd);
}
