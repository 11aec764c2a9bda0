// Beam search through trees of linear classifiers.
//
// The weights of a node's children are stored in blocks of up to 256 children, feature by feature. A directory finds
// the features of a bucket, which are those with the same high bits: a mask of 64 bits tells which features of the
// bucket have weights. In wide buckets, where a bit stands for several features, the low bits of the features tell them
// apart. Each feature has its number of weights; each weight has its child. A block with most weights present stores one
// for every child instead.
//
// The search goes level by level and handles all rows of a node together, so that the node's weights are read into the
// cache once. If enough rows meet at a node, its weights are first expanded into a dense matrix. Reads never go beyond
// the arrays of the blocks, whatever they hold: they may be mapped from a file that was not verified. Only the
// hierarchy, `pointers` and `children`, is trusted.
#include "kernels.h"

#include <algorithm>
#include <bitset>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <nanobind/stl/optional.h>

#include "best.h"
#include "lanes.h"
#include "proposals.h"
#include "stop.h"

namespace {

constexpr size_t block_children = 256;
constexpr uint8_t dense_block = 0x80;  // flag stored with the shift of a block
// Minimum number of labels that each of several trees proposes; it contributes nothing to other labels.
constexpr size_t few_proposed = 16;
// Minimum k of the k-th best score that scores in other trees are compared with.
constexpr size_t few_compared = 3;
constexpr float rounding = 1e-3f;  // safety distance of log scores
constexpr float smallest_log = -80.0f;  // the exponential of less may be 0
constexpr size_t few_rows = 32;
constexpr size_t largest_spread = size_t{1} << 24;  // weights
constexpr unsigned exact_shift = 6;  // a bucket of 2^6 features has a bit for each of them
constexpr unsigned largest_shift = 16;
constexpr size_t window = 16;  // bytes that are added up at once
// Features of a row that are looked up together, so that their reads from memory overlap.
constexpr size_t looked_up_at_once = 64;
// Separates classifiers that all have margins above 1.
constexpr float apart = 0.01f;

#if defined(__SSE2__)
// From byte 16 - n on, the first n of 16 bytes are set.
constexpr uint8_t first_bytes[2 * window] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
#endif

struct Tree {
    Vector<const int64_t> pointers, children;
    Vector<const float> intercepts, scales;
    Vector<const int64_t> first_block, first_bucket, first_row, first_low, first_weight;
    Vector<const uint8_t> shifts;
    Vector<const uint64_t> masks;
    Vector<const uint32_t> bucket_rows, bucket_weights;
    Vector<const uint16_t> lows;
    Vector<const uint8_t> counts, slots;
    std::optional<Vector<const int16_t>> short_weights;
    std::optional<Vector<const float>> weights;
    // p = 1 / (1 + exp(-(slope * log score + offset))), or a table of log scores and probabilities, or neither.
    std::optional<std::pair<float, float>> sigmoid;
    std::vector<float> knots, values;

    // Never 0, so that a label that was found differs from one that was not.
    float probability(float log_score) const {
        return std::max(calibrated(log_score), std::numeric_limits<float>::min());
    }

    bool is_calibrated() const { return sigmoid || !knots.empty(); }

    float calibrated(float log_score) const {
        if (sigmoid) return 1.0f / (1.0f + std::exp(-(sigmoid->first * log_score + sigmoid->second)));
        if (knots.empty()) return std::exp(log_score);
        const auto above = std::upper_bound(knots.begin(), knots.end(), log_score);
        if (above == knots.begin()) return values.front();
        if (above == knots.end()) return values.back();
        const size_t i = static_cast<size_t>(above - knots.begin());
        const float share = (log_score - knots[i - 1]) / (knots[i] - knots[i - 1]);
        return values[i - 1] + share * (values[i] - values[i - 1]);
    }

    // A log score below which all probabilities are too small beside that of another log score.
    float least_beside(float log_score) const {
        if (is_calibrated()) return least_log_score(Sums::least_share * probability(log_score));
        return log_score > smallest_log ? log_score + std::log(Sums::least_share) - rounding : nothing;
    }

    // A log score below which all probabilities are below `least`, with a safety distance for rounding.
    float least_log_score(float least) const {
        if (!(least > std::numeric_limits<float>::min())) return nothing;
        if (sigmoid) {
            const float logit = std::log(least / (1.0f - least)), slope = sigmoid->first, offset = sigmoid->second;
            if (!(slope > 0.0f && least < 1.0f)) return nothing;
            return (logit - offset) / slope - 1e-4f * (1.0f + (std::fabs(logit) + std::fabs(offset)) / slope);
        }
        if (knots.empty()) return std::log(least) - rounding;
        const auto above = std::lower_bound(values.begin(), values.end(), least);
        return above == values.begin() ? nothing : knots[static_cast<size_t>(above - values.begin()) - 1];
    }
};

struct Visit {
    int64_t node;
    uint32_t row;
    float log_score;
};

struct Rows {
    const int64_t *indptr;
    const int32_t *indices;
    const float *data;
    size_t first, count;
};

// The part of a tree's arrays that belongs to one block of children, with every length clamped to the arrays.
struct Block {
    const uint64_t *masks;
    const uint32_t *bucket_rows, *bucket_weights;
    size_t buckets, rows, weights, children;
    unsigned shift;
    bool dense;
    const uint16_t *lows;
    const uint8_t *counts, *slots;
    const int16_t *short_weights;
    const float *full_weights;

    Block(const Tree &tree, size_t block, size_t n_children, size_t n_features) : children(n_children) {
        const auto part = [block](const Vector<const int64_t> &first, size_t length, size_t &size) {
            const size_t from = std::min(static_cast<size_t>(std::max<int64_t>(first.data()[block], 0)), length);
            const size_t to = std::min(static_cast<size_t>(std::max<int64_t>(first.data()[block + 1], 0)), length);
            size = to > from ? to - from : 0;
            return from;
        };
        const uint8_t form = tree.shifts.data()[block];
        dense = form & dense_block;
        shift = std::clamp<unsigned>(form & ~dense_block, exact_shift, largest_shift);
        size_t n_lows;
        const size_t bucket = part(
            tree.first_bucket, std::min({tree.masks.size(), tree.bucket_rows.size(), tree.bucket_weights.size()}), buckets);
        const size_t row = part(tree.first_row, tree.counts.size(), rows);
        const size_t low = part(tree.first_low, tree.lows.size(), n_lows);
        const size_t length = tree.short_weights ? tree.short_weights->size() : tree.weights->size();
        const size_t weight = part(tree.first_weight, std::min(tree.slots.size(), length), weights);
        if (shift > exact_shift) rows = std::min(rows, n_lows);
        if (dense) rows = std::min(rows, weights / children);
        if (buckets << shift < n_features) rows = 0;  // every feature must have a bucket
        masks = tree.masks.data() + bucket;
        bucket_rows = tree.bucket_rows.data() + bucket;
        bucket_weights = tree.bucket_weights.data() + bucket;
        lows = tree.lows.data() + low;
        counts = tree.counts.data() + row;
        slots = tree.slots.data() + weight;
        short_weights = tree.short_weights ? tree.short_weights->data() + weight : nullptr;
        full_weights = tree.short_weights ? nullptr : tree.weights->data() + weight;
    }

    // The bit of a feature in the mask of its bucket.
    LONGTAIL_INLINE unsigned bit_of(uint32_t feature) const { return feature >> (shift - exact_shift) & 63; }

    // Where the features of a bucket start.
    LONGTAIL_INLINE size_t first_row(size_t bucket) const { return std::min<size_t>(bucket_rows[bucket], rows); }

    // The row of a feature in the block; `rows` if it has no weights. Its bucket has a bit for it.
    LONGTAIL_INLINE size_t find(uint32_t feature) const {
        const size_t bucket = feature >> shift;
        size_t row = first_row(bucket);
        if (shift == exact_shift) {
            const uint64_t lower = (uint64_t{1} << bit_of(feature)) - 1;
            return std::min(row + std::bitset<64>(masks[bucket] & lower).count(), rows);
        }
        const size_t end = bucket + 1 < buckets ? first_row(bucket + 1) : rows;
        const auto low = static_cast<uint16_t>(feature & ((1u << shift) - 1));
        while (row < end && lows[row] < low) ++row;
        return row < end && lows[row] == low ? row : rows;
    }

    // Where the weights of a row start, which belongs to this bucket.
    LONGTAIL_INLINE size_t first_weight(size_t bucket, size_t row) const {
        size_t from = first_row(bucket), weight = bucket_weights[bucket] + (row - from);
#if defined(__SSE2__)
        // Most buckets need two windows at most. To take two at once is faster than a branch.
        for (; from < row && from + 2 * window <= rows; from += 2 * window) {
            const size_t n = std::min(row - from, 2 * window), first = std::min(n, window);
            const __m128i sums = _mm_add_epi64(add_up(counts + from, first), add_up(counts + from + window, n - first));
            weight += static_cast<size_t>(_mm_cvtsi128_si32(sums) + _mm_extract_epi16(sums, 4));
        }
#endif
        for (; from < row; ++from) weight += counts[from];
        return weight;
    }

#if defined(__SSE2__)
    // The sums of the first bytes of a window, in two parts.
    LONGTAIL_INLINE static __m128i add_up(const uint8_t *bytes, size_t n) {
        const auto load = [](const void *at) { return _mm_loadu_si128(static_cast<const __m128i *>(at)); };
        return _mm_sad_epu8(_mm_and_si128(load(bytes), load(first_bytes + window - n)), _mm_setzero_si128());
    }
#endif

    // The number of weights of a row that exist, from `weight` on.
    LONGTAIL_INLINE size_t n_weights(size_t row, size_t weight) const {
        return std::min(counts[row] + size_t{1}, weight < weights ? weights - weight : 0);
    }
};

constexpr size_t strip = lanes::width;
constexpr size_t panel_columns = 4 * strip;
constexpr size_t rows_at_once = 256;

// Turn linear scores into margins and list the children whose margin is no number or not below `least`.
LONGTAIL_WIDE size_t list_children(const float *scales, const float *intercepts, size_t count, float least, float *scores,
                                   uint8_t *listed) {
    for (size_t i = 0; i < count; ++i) scores[i] = scores[i] * scales[i] + intercepts[i];
    size_t found = 0;
    for (size_t first = 0; first < count; first += strip) {
        const size_t end = std::min(first + strip, count);
        bool any = end < first + strip;
        if (!any)
            for (size_t i = first; i < first + strip; ++i) any |= !(scores[i] < least);
        if (!any) continue;
        for (size_t i = first; i < end; ++i) {
            listed[found] = static_cast<uint8_t>(i);
            found += !(scores[i] < least);
        }
    }
    return found;
}

// A feature of a row of data that has weights in a block: its row there, and where its weights are.
struct Found {
    uint32_t row, weight, count;
    float value;
};

// Find those of some features that have weights, and their rows; returns how many there are.
LONGTAIL_INLINE size_t find_rows(const Block block, const int32_t *features, const float *values, size_t length,
                                 Found *found) {
    if (block.rows == 0) return 0;
    uint32_t places[looked_up_at_once];
    size_t n_places = 0, n_found = 0;
    for (size_t j = 0; j < length; ++j) {
        const auto feature = static_cast<uint32_t>(features[j]);
        places[n_places] = static_cast<uint32_t>(j);
        n_places += block.masks[feature >> block.shift] >> block.bit_of(feature) & 1;
    }
    for (size_t i = 0; i < n_places; ++i) {
        const auto feature = static_cast<uint32_t>(features[places[i]]);
        const size_t row = block.find(feature);
        found[n_found] = {static_cast<uint32_t>(row), feature >> block.shift, 0, values[places[i]]};
        n_found += row != block.rows;
        if (!block.dense) prefetch(block.counts + row);
        else if (block.short_weights) prefetch(block.short_weights + row * block.children);
        else prefetch(block.full_weights + row * block.children);
    }
    return n_found;
}

// Find the weights of such features, and ask for them.
LONGTAIL_INLINE void find_weights(const Block block, Found *found, size_t n_found) {
    for (size_t i = 0; i < n_found; ++i) {
        const size_t row = found[i].row, weight = block.first_weight(found[i].weight, row);
        const size_t count = block.n_weights(row, weight);
        found[i].weight = static_cast<uint32_t>(weight);
        found[i].count = static_cast<uint32_t>(count);
        const size_t asked = count > 0 ? weight : 0;  // a place without weights may lie anywhere
        prefetch(block.slots + asked);
        if (block.short_weights) prefetch(block.short_weights + asked);
        else prefetch(block.full_weights + asked);
    }
}

// Add the contributions of one feature to the scores of the children.
template <typename Weight>
inline __attribute__((always_inline)) void add_weights(const Block &block, const Weight *weights, const Found &found,
                                                       float *scores) {
    const Weight *w = weights + found.weight;
    const float value = found.value;
    const uint8_t *slots = block.slots + found.weight;
    size_t count = found.count;
    // The products of a strip are computed together, then added to their children.
    for (; count >= strip; count -= strip, w += strip, slots += strip) {
        float products[strip];
        for (size_t i = 0; i < strip; ++i) products[i] = static_cast<float>(w[i]) * value;
        for (size_t i = 0; i < strip; ++i) scores[slots[i]] += products[i];
    }
    for (size_t i = 0; i < count; ++i) scores[slots[i]] += static_cast<float>(w[i]) * value;
}

// Add the contributions of some features to the scores of the children from `column` on, N strips of them. The last
// strip may overlap the one before: both have the same sums.
template <size_t N, typename Weight>
inline __attribute__((always_inline)) void add_dense(const Weight *weights, const Found *found, size_t n_found,
                                                     size_t column, size_t children, float *scores) {
    size_t from[N];
    lanes::Lanes sums[N];
    for (size_t v = 0; v < N; ++v) {
        from[v] = std::min(column + v * strip, children - strip);
        sums[v] = lanes::load(scores + from[v]);
    }
    for (size_t i = 0; i < n_found; ++i) {
        const Weight *w = weights + found[i].row * children;
        for (size_t v = 0; v < N; ++v) sums[v] += lanes::load(w + from[v]) * found[i].value;
    }
    for (size_t v = 0; v < N; ++v) lanes::store(scores + from[v], sums[v]);
}

// The same for all children of a dense block.
template <typename Weight>
inline __attribute__((always_inline)) void add_rows(const Block &block, const Weight *weights, const Found *found,
                                                    size_t n_found, float *scores) {
    const size_t children = block.children;
    if (children < strip) {
        for (size_t i = 0; i < n_found; ++i)
            for (size_t child = 0; child < children; ++child)
                scores[child] += static_cast<float>(weights[found[i].row * children + child]) * found[i].value;
        return;
    }
    const size_t strips = (children + strip - 1) / strip;
    // A last strip of its own would overlap one that is finished.
    for (size_t first = 0, n = 0; first < strips; first += n) {
        n = strips - first == 5 ? 5 : std::min<size_t>(4, strips - first);
        switch (n) {
            case 1: add_dense<1>(weights, found, n_found, first * strip, children, scores); break;
            case 2: add_dense<2>(weights, found, n_found, first * strip, children, scores); break;
            case 3: add_dense<3>(weights, found, n_found, first * strip, children, scores); break;
            case 4: add_dense<4>(weights, found, n_found, first * strip, children, scores); break;
            default: add_dense<5>(weights, found, n_found, first * strip, children, scores);
        }
    }
}

// Add the contributions of a row's features to each child.
template <typename Weight>
inline __attribute__((always_inline)) void walk(const Block &block, const Weight *weights, const int32_t *features,
                                                const float *values, size_t length, float *scores) {
    Found found[looked_up_at_once];
    for (size_t first = 0; first < length; first += looked_up_at_once) {
        const size_t count = std::min(looked_up_at_once, length - first);
        const size_t n_found = find_rows(block, features + first, values + first, count, found);
        if (block.dense) {
            add_rows(block, weights, found, n_found, scores);
            continue;
        }
        find_weights(block, found, n_found);
        for (size_t i = 0; i < n_found; ++i) add_weights(block, weights, found[i], scores);
    }
}

LONGTAIL_WIDE void walk_short(const Block &block, const int32_t *features, const float *values, size_t length,
                              float *scores) {
    walk(block, block.short_weights, features, values, length, scores);
}

LONGTAIL_WIDE void walk_full(const Block &block, const int32_t *features, const float *values, size_t length,
                             float *scores) {
    walk(block, block.full_weights, features, values, length, scores);
}

// The weights of a block as dense rows, for many rows of data. Columns are in panels of 32, panel by panel, so that a
// panel stays in the cache while rows of features are read.
struct Spread {
    std::vector<float> weights;
    size_t rows = 0, width = 0;

    size_t panel_width(size_t column) const { return std::min(panel_columns, width - column); }
    const float *panel(size_t column) const { return weights.data() + rows * column; }
};

struct Hit {
    uint32_t row;
    float value;
};

// Sums have their terms in the order of the features, as in `walk`, so that both agree in every bit.
template <size_t N>
inline __attribute__((always_inline)) void add_columns(const float *panel, const Hit *hit, const Hit *end, float *scores) {
    lanes::Lanes sums[N] = {};
    for (; hit != end; ++hit) {
        const float *w = panel + hit->row * (N * strip);
        for (size_t v = 0; v < N; ++v) sums[v] += lanes::load(w + v * strip) * hit->value;
    }
    for (size_t v = 0; v < N; ++v) lanes::store(scores + v * strip, sums[v]);
}

// Scores of all children, for rows whose hits lie between consecutive `bounds`.
LONGTAIL_WIDE void walk_spread(const Spread &spread, const Hit *hits, const size_t *bounds, size_t n_rows, float *scores) {
    for (size_t column = 0; column < spread.width; column += panel_columns) {
        const float *panel = spread.panel(column);
        for (size_t row = 0; row < n_rows; ++row) {
            const Hit *hit = hits + bounds[row], *end = hits + bounds[row + 1];
            float *to = scores + row * spread.width + column;
            switch (spread.panel_width(column) / strip) {
                case 1: add_columns<1>(panel, hit, end, to); break;
                case 2: add_columns<2>(panel, hit, end, to); break;
                case 3: add_columns<3>(panel, hit, end, to); break;
                default: add_columns<4>(panel, hit, end, to);
            }
        }
    }
}

// Working memory of a search, kept from node to node.
struct Scratch {
    Stop stop;
    Spread spread;
    std::vector<Hit> hits;
    std::vector<size_t> bounds;
    std::vector<float> scores;
};

// The features of some rows that have weights, row by row.
LONGTAIL_WIDE void find_hits(const Block &block, const Rows &rows, const Visit *from, const Visit *to, Scratch &scratch) {
    Found found[looked_up_at_once];
    scratch.hits.clear();
    scratch.bounds.assign(1, 0);
    for (const Visit *each = from; each != to; ++each) {
        const int64_t *bounds = rows.indptr + rows.first + each->row;
        for (int64_t j = bounds[0]; j < bounds[1]; j += looked_up_at_once) {
            const auto count = static_cast<size_t>(std::min<int64_t>(looked_up_at_once, bounds[1] - j));
            const size_t n_found = find_rows(block, rows.indices + j, rows.data + j, count, found);
            for (size_t i = 0; i < n_found; ++i) scratch.hits.push_back({found[i].row, found[i].value});
        }
        scratch.bounds.push_back(scratch.hits.size());
    }
}

// A floor that no node falls below.
struct Unbounded {
    float operator()(size_t) const { return nothing; }
};

// Floors that are always up to date.
struct UpToDate {
    void operator()(size_t) const {}
};

class TreeSearch {
  public:
    TreeSearch(int64_t n_features, int64_t n_labels, bool logistic, float path_weight, nb::list trees)
        : n_features_(static_cast<size_t>(n_features)),
          n_labels_(static_cast<size_t>(n_labels)),
          logistic_(logistic),
          path_weight_(path_weight) {
        if (n_labels < 0 || n_labels > int64_t{0xFFFFFFFF}) throw std::invalid_argument("n_labels must fit 32 bits");
        for (nb::handle each : trees) {
            nb::dict d = nb::cast<nb::dict>(each);
            const auto get = [&d](const char *name) { return d[name]; };
            Tree tree;
            tree.pointers = nb::cast<Vector<const int64_t>>(get("pointers"));
            tree.children = nb::cast<Vector<const int64_t>>(get("children"));
            tree.intercepts = nb::cast<Vector<const float>>(get("intercepts"));
            tree.scales = nb::cast<Vector<const float>>(get("scales"));
            tree.first_block = nb::cast<Vector<const int64_t>>(get("first_block"));
            tree.first_bucket = nb::cast<Vector<const int64_t>>(get("first_bucket"));
            tree.first_row = nb::cast<Vector<const int64_t>>(get("first_row"));
            tree.first_low = nb::cast<Vector<const int64_t>>(get("first_low"));
            tree.first_weight = nb::cast<Vector<const int64_t>>(get("first_weight"));
            tree.shifts = nb::cast<Vector<const uint8_t>>(get("shifts"));
            tree.masks = nb::cast<Vector<const uint64_t>>(get("masks"));
            tree.bucket_rows = nb::cast<Vector<const uint32_t>>(get("bucket_rows"));
            tree.bucket_weights = nb::cast<Vector<const uint32_t>>(get("bucket_weights"));
            tree.lows = nb::cast<Vector<const uint16_t>>(get("lows"));
            tree.counts = nb::cast<Vector<const uint8_t>>(get("counts"));
            tree.slots = nb::cast<Vector<const uint8_t>>(get("slots"));
            Vector<const int16_t> short_weights;
            if (nb::try_cast(get("weights"), short_weights, false))
                tree.short_weights = short_weights;
            else
                tree.weights = nb::cast<Vector<const float>>(get("weights"));
            trees_.push_back(std::move(tree));
        }
    }

    // Map the log scores of trees to probabilities p = sigmoid(slope * log score + offset) (knots of length 0), or
    // interpolate them in a table.
    void calibrate(size_t tree, float slope, float offset, Vector<const float> knots, Vector<const float> values) {
        Tree &one = trees_.at(tree);
        one.sigmoid.reset();
        one.knots.assign(knots.data(), knots.data() + knots.size());
        one.values.assign(values.data(), values.data() + values.size());
        if (knots.size() == 0) one.sigmoid = {slope, offset};
    }

    void topk(Vector<const int64_t> indptr, Vector<const int32_t> indices, Vector<const float> data, int64_t first,
              int64_t last, int64_t beam, std::optional<Vector<const bool>> allowed,
              std::optional<Vector<const float>> label_factors, Matrix<int64_t> labels, Matrix<float> scores) const {
        const Rows rows{indptr.data(), indices.data(), data.data(), static_cast<size_t>(first),
                        static_cast<size_t>(last - first)};
        const bool *mask = allowed ? allowed->data() : nullptr;
        const float *factors = label_factors ? label_factors->data() : nullptr;
        const size_t k = labels.shape(1);
        int64_t *to_labels = labels.data() + rows.first * k;
        float *to_scores = scores.data() + rows.first * k;
        nb::gil_scoped_release released;
        Best best(rows.count, k);
        const auto factor = [factors](int64_t label) { return factors ? factors[label] : 1.0f; };
        if (trees_.size() == 1) {
            // A single tree ranks by the log score, which does not underflow; its calibration is monotone.
            search(trees_[0], rows, static_cast<size_t>(beam), mask, [&](uint32_t row, int64_t label, float log_score) {
                best.offer(row, {factors ? log_score + std::log(factors[label]) : log_score, label});
            }, [&](size_t row) { return best.floor(row); }, UpToDate(), false);
        } else {
            search_forest(rows, static_cast<size_t>(beam), mask, factors, k, best);
        }
        for (size_t row = 0; row < rows.count; ++row) {
            const auto [sorted, held] = best.sorted(row);
            for (size_t place = 0; place < k; ++place) {
                const bool there = place < held;
                float score = there ? sorted[place].score : nothing;
                if (there && trees_.size() == 1)
                    score = trees_[0].probability(score - std::log(factor(sorted[place].id))) * factor(sorted[place].id);
                to_labels[row * k + place] = there ? sorted[place].id : -1;
                to_scores[row * k + place] = score;
            }
        }
    }

    // All labels that the beam reaches: `scores`, initially zero, is rows x labels.
    void all(Vector<const int64_t> indptr, Vector<const int32_t> indices, Vector<const float> data, int64_t first,
             int64_t last, int64_t beam, std::optional<Vector<const float>> label_factors, Matrix<float> scores) const {
        const Rows rows{indptr.data(), indices.data(), data.data(), static_cast<size_t>(first),
                        static_cast<size_t>(last - first)};
        const float *factors = label_factors ? label_factors->data() : nullptr;
        float *to = scores.data() + rows.first * n_labels_;
        nb::gil_scoped_release released;
        const float share = 1.0f / static_cast<float>(trees_.size());
        for (const Tree &tree : trees_)
            search(tree, rows, static_cast<size_t>(beam), nullptr, [&](uint32_t row, int64_t label, float log_score) {
                float &score = to[row * n_labels_ + static_cast<size_t>(label)];
                score = std::min(1.0f, score + tree.probability(log_score) * share * (factors ? factors[label] : 1.0f));
            }, Unbounded(), UpToDate(), true);
    }

    // The nodes that the beam visits, as (row, node, log score) in ascending order of nodes, without the root.
    nb::tuple visited(size_t tree, Vector<const int64_t> indptr, Vector<const int32_t> indices, Vector<const float> data,
                      int64_t first, int64_t last, int64_t beam) const {
        const Rows rows{indptr.data(), indices.data(), data.data(), static_cast<size_t>(first),
                        static_cast<size_t>(last - first)};
        std::vector<Visit> seen;
        {
            nb::gil_scoped_release released;
            search(trees_.at(tree), rows, static_cast<size_t>(beam), nullptr, [](uint32_t, int64_t, float) {}, Unbounded(),
                   UpToDate(), true, &seen);
        }
        auto *row = new std::vector<int64_t>, *node = new std::vector<int64_t>;
        for (const Visit &visit : seen) {
            row->push_back(static_cast<int64_t>(visit.row) + first);
            node->push_back(visit.node);
        }
        const auto owned = [](std::vector<int64_t> *held) {
            nb::capsule owner(held, [](void *p) noexcept { delete static_cast<std::vector<int64_t> *>(p); });
            return nb::cast(nb::ndarray<nb::numpy, int64_t, nb::ndim<1>>(held->data(), {held->size()}, owner));
        };
        return nb::make_tuple(owned(row), owned(node));
    }

  private:
    // Nodes with an allowed label below them.
    std::vector<char> open_nodes(const Tree &tree, const bool *mask) const {
        const size_t nodes = tree.pointers.size() - 1;
        std::vector<char> open(nodes, 0);
        for (size_t node = nodes; node-- > 0;)
            for (int64_t e = tree.pointers.data()[node]; e < tree.pointers.data()[node + 1] && !open[node]; ++e) {
                const int64_t child = tree.children.data()[e];
                open[node] = child < 0 ? mask[~child] : open[static_cast<size_t>(child)];
            }
        return open;
    }

    // Search a tree for all rows; calls `emit(row, label, log score)` for every label of the last nodes they visit. The
    // nodes of a row on a level are visited best first, and no label below a node scores higher than the node. Nodes
    // below `floor(row)`, the score that a label must exceed by then, are skipped; `raise(row)` brings it up to date. If
    // the floors are `settled`, the search hardly raises them, and visits the nodes of a level all at once.
    template <typename Emit, typename Floor, typename Raise>
    void search(const Tree &tree, const Rows &rows, size_t beam, const bool *mask, Emit emit, Floor floor, Raise raise,
                bool settled, std::vector<Visit> *seen = nullptr) const {
        const std::vector<char> open = mask ? open_nodes(tree, mask) : std::vector<char>();
        if (tree.pointers.size() < 2 || rows.count == 0) return;
        beam = std::min(beam, tree.pointers.size() - 1);
        std::vector<Visit> level(rows.count), round, other;
        std::vector<size_t> first(rows.count + 1), places;
        for (size_t row = 0; row < rows.count; ++row) {
            level[row] = {0, static_cast<uint32_t>(row), 0.0f};
            first[row] = row;
        }
        first[rows.count] = rows.count;
        Best next(rows.count, beam);
        Scratch scratch;
        while (!level.empty()) {
            next.clear();
            // A few rows take their nodes one by one, to skip as many as possible. More rows take the best node, then
            // all others, so that many meet at a node; if many meet anyway, they take twice as many in each round.
            // Floors rise only where labels are found, so that on other levels they take all at once.
            const bool few = rows.count < few_rows, crowded = rows.count >= few_rows * (tree.pointers.size() - 1);
            const bool at_once = settled || (!few && !leads_to_labels(tree, level));
            for (size_t place = 0, size = 1; place < beam; place += size) {
                size = at_once ? beam : few ? 1 : crowded || place == 0 ? place + 1 : beam;
                round.clear();
                for (size_t row = 0; row < rows.count; ++row) {
                    if (place > 0) raise(row);
                    for (size_t i = first[row] + place; i < std::min(first[row + 1], first[row] + place + size); ++i)
                        if (path_weight_ * level[i].log_score >= floor(row)) round.push_back(level[i]);
                }
                if (round.empty()) break;
                by_node(round, other, places);
                for (size_t from = 0, to = 0; from < round.size(); from = to) {
                    while (to < round.size() && round[to].node == round[from].node) ++to;
                    descend(tree, rows, round.data() + from, round.data() + to, mask, open, next, emit, floor, seen != nullptr, scratch);
                }
            }
            level.clear();
            for (size_t row = 0; row < rows.count; ++row) {
                const auto [sorted, held] = next.sorted(row);
                first[row] = level.size();
                for (size_t i = 0; i < held; ++i)
                    level.push_back({sorted[i].id, static_cast<uint32_t>(row), sorted[i].score});
            }
            first[rows.count] = level.size();
            if (seen) {
                round = level;
                by_node(round, other, places);
                seen->insert(seen->end(), round.begin(), round.end());
            }
        }
    }

    // Whether nodes of a level have labels as children. A node with labels only between its other children may be
    // missed, which costs time and changes no result.
    static bool leads_to_labels(const Tree &tree, const std::vector<Visit> &level) {
        return std::any_of(level.begin(), level.end(), [&tree](const Visit &visit) {
            const int64_t *bounds = tree.pointers.data() + visit.node, *children = tree.children.data();
            return bounds[0] < bounds[1] && (children[bounds[0]] < 0 || children[bounds[1] - 1] < 0);
        });
    }

    // Order visits by node; those of a node stay in their order. `other` is working memory.
    static void by_node(std::vector<Visit> &visits, std::vector<Visit> &other, std::vector<size_t> &places) {
        if (visits.empty()) return;
        int64_t least = visits[0].node, most = least;
        for (const Visit &visit : visits) {
            least = std::min(least, visit.node);
            most = std::max(most, visit.node);
        }
        if (static_cast<size_t>(most - least) > visits.size()) {
            std::stable_sort(visits.begin(), visits.end(), [](const Visit &a, const Visit &b) { return a.node < b.node; });
            return;
        }
        places.assign(static_cast<size_t>(most - least) + 2, 0);
        for (const Visit &visit : visits) ++places[static_cast<size_t>(visit.node - least) + 1];
        for (size_t i = 1; i < places.size(); ++i) places[i] += places[i - 1];
        other.resize(visits.size());
        for (const Visit &visit : visits) other[places[static_cast<size_t>(visit.node - least)]++] = visit;
        visits.swap(other);
    }

    // Score the children of one node for the rows that reached it.
    template <typename Emit, typename Floor>
    void descend(const Tree &tree, const Rows &rows, const Visit *visit, const Visit *end, const bool *mask,
                 const std::vector<char> &open, Best &next, Emit &emit, Floor &floor, bool nodes_only,
                 Scratch &scratch) const {
        const size_t node = static_cast<size_t>(visit->node);
        const size_t edge = static_cast<size_t>(tree.pointers.data()[node]);
        const size_t children = static_cast<size_t>(tree.pointers.data()[node + 1]) - edge;
        size_t features = 0;
        for (const Visit *each = visit; each != end; ++each) features += length(rows, each->row);
        for (size_t first = 0; first < children; first += block_children) {
            const size_t count = std::min(block_children, children - first);
            const Block block(tree, static_cast<size_t>(tree.first_block.data()[node]) + first / block_children, count,
                              n_features_);
            const int64_t *child = tree.children.data() + edge + first;
            const auto labels = static_cast<size_t>(std::count_if(child, child + count, [](int64_t id) { return id < 0; }));
            if (nodes_only && labels == count) continue;
            scratch.stop.count(features + block.rows);
            // The cost of a walk, in strips of a dense matrix: a single weight costs about four, because the features
            // of rows are those with the most weights.
            const size_t width = (count + strip - 1) / strip * strip;
            const size_t sparse_cost = 4 * features * (block.weights / std::max<size_t>(1, block.rows) + 1);
            const size_t spread_cost = features * width / strip + block.rows * width / (2 * strip) + 2 * block.weights;
            const bool spread = !block.dense && spread_cost < sparse_cost && block.rows * width <= largest_spread;
            if (spread && block.short_weights) spread_weights(block, block.short_weights, width, scratch.spread);
            if (spread && block.full_weights) spread_weights(block, block.full_weights, width, scratch.spread);
            for (const Visit *from = visit; from != end;) {
                const Visit *to = from + std::min<std::ptrdiff_t>(rows_at_once, end - from);
                if (spread) {
                    scratch.scores.resize(rows_at_once * width);
                    find_hits(block, rows, from, to, scratch);
                    walk_spread(scratch.spread, scratch.hits.data(), scratch.bounds.data(), static_cast<size_t>(to - from),
                                scratch.scores.data());
                }
                for (float *scores = scratch.scores.data(); from != to; ++from) {
                    if (spread) {
                        offer_children(tree, *from, edge + first, count, labels, mask, open, scores, next, emit, floor);
                        scores += width;
                        continue;
                    }
                    if (from + 1 != to) fetch_row(rows, from[1].row);
                    float own[block_children] = {};
                    const size_t begin = static_cast<size_t>(rows.indptr[rows.first + from->row]);
                    (block.short_weights ? walk_short : walk_full)(block, rows.indices + begin, rows.data + begin,
                                                                   length(rows, from->row), own);
                    offer_children(tree, *from, edge + first, count, labels, mask, open, own, next, emit, floor);
                }
            }
        }
    }

    // Ask for a row that is walked next.
    static void fetch_row(const Rows &rows, uint32_t row) {
        constexpr int64_t step = 64 / sizeof(float);
        const int64_t end = rows.indptr[rows.first + row + 1];
        for (int64_t j = rows.indptr[rows.first + row]; j < end; j += step) {
            prefetch(rows.indices + j);
            prefetch(rows.data + j);
        }
    }

    // Offer the children that are good enough; the given number of them are labels, and `scores` are their linear
    // scores.
    template <typename Emit, typename Floor>
    void offer_children(const Tree &tree, const Visit &visit, size_t edge, size_t count, size_t labels, const bool *mask,
                        const std::vector<char> &open, float *scores, Best &next, Emit &emit, Floor &floor) const {
        const int64_t *children = tree.children.data() + edge;
        const float to_labels = path_weight_ * visit.log_score, to_nodes = visit.log_score;
        float label_floor = floor(visit.row), node_floor = next.floor(visit.row);
        // Labels below a node need its score to be good enough.
        if (labels < count) node_floor = std::max(node_floor, label_floor / path_weight_);
        // Most children are far from good enough, which the margin shows without a logarithm.
        const float least = std::min(labels > 0 ? least_margin(to_labels, label_floor) : -nothing,
                                     labels < count ? least_margin(to_nodes, node_floor) : -nothing);
        uint8_t listed[block_children];
        const size_t found = list_children(tree.scales.data() + edge, tree.intercepts.data() + edge, count, least, scores, listed);
        for (size_t i = 0; i < found; ++i) {
            const int64_t child = children[listed[i]];
            const float margin = scores[listed[i]], path = child < 0 ? to_labels : to_nodes;
            if (path + at_most(margin) < (child < 0 ? label_floor : node_floor)) continue;
            if (mask && !(child < 0 ? mask[~child] : open[static_cast<size_t>(child)])) continue;
            const float log_score = path + log_probability(margin);
            if (!(log_score > nothing)) continue;  // NaN, from damaged weights
            if (child < 0) {
                emit(visit.row, ~child, log_score);
                label_floor = floor(visit.row);
            } else {
                next.offer(visit.row, {log_score, child});
                node_floor = std::max(node_floor, next.floor(visit.row));
            }
        }
    }

    // A margin below which a child on a path with this log score stays below the floor, with a safety distance for
    // rounding.
    float least_margin(float path, float floor) const {
        if (!(floor > nothing)) return nothing;
        const float apart_by = std::max(0.0f, path - floor);
        return (logistic_ ? -apart_by : 1.0f - std::cbrt(apart_by)) - 1e-4f * (1.0f + apart_by) - 1e-6f * std::fabs(path);
    }

    float log_probability(float margin) const {
        if (logistic_) return margin > 0 ? -std::log1p(std::exp(-margin)) : margin - std::log1p(std::exp(margin));
        return at_most(margin) - apart * std::exp(-std::max(-4.0f, margin));
    }

    // An upper bound on the log probability.
    float at_most(float margin) const {
        if (logistic_) return margin > 0 ? 0.0f : margin;
        const float missing = margin >= 1.0f ? 0.0f : 1.0f - margin;
        return -missing * missing * missing;
    }

    static size_t length(const Rows &rows, uint32_t row) {
        return static_cast<size_t>(rows.indptr[rows.first + row + 1] - rows.indptr[rows.first + row]);
    }

    template <typename Weight>
    static void spread_weights(const Block &block, const Weight *weights, size_t width, Spread &spread) {
        spread.rows = block.rows;
        spread.width = width;
        spread.weights.assign(block.rows * width, 0.0f);
        size_t weight = 0;
        for (size_t row = 0; row < block.rows; ++row) {
            const size_t end = weight + block.n_weights(row, weight);
            for (; weight < end; ++weight) {
                const size_t slot = block.slots[weight];
                if (slot >= width) continue;
                const size_t column = slot / panel_columns * panel_columns;
                spread.weights[block.rows * column + row * spread.panel_width(column) + slot - column] =
                    static_cast<float>(weights[weight]);
            }
        }
    }

    // Search tree after tree and offer the mean scores. The first tree shows which scores are too low to count.
    void search_forest(const Rows &rows, size_t beam, const bool *mask, const float *factors, size_t k, Best &best) const {
        const size_t places = std::min(n_labels_, std::max(few_proposed, 3 * k)), compared = std::max(few_compared, k);
        Proposals proposed(rows.count, places);
        Sums sums(rows.count, n_labels_, compared, places);
        for (const Tree &tree : trees_) {
            const bool first = &tree == &trees_.front();
            // With factors, a label that ranks lower in a calibrated tree does not always score lower.
            const bool bounded = places < n_labels_ && (!factors || !tree.is_calibrated());
            for (size_t row = 0; row < rows.count; ++row)
                proposed.restart(row, bounded && !first ? tree.least_log_score(sums.needed(row)) : nothing);
            const auto raise = [&](size_t row) {
                if (bounded && first) proposed.raise(row, tree.least_beside(proposed.kth(row, compared)));
            };
            const auto propose = [&](uint32_t row, int64_t label, float log_score) {
                const float rank = factors ? log_score + std::log(factors[label]) : log_score;
                proposed.offer(row, rank, label);
            };
            search(tree, rows, beam, mask, propose, [&](size_t row) { return proposed.floor(row); }, raise, !first);
            sums.add(proposed, factors, [&](float rank, int64_t label) {
                return tree.probability(factors ? rank - std::log(factors[label]) : rank);
            });
        }
        sums.offer_means(factors, best);
    }

    size_t n_features_, n_labels_;
    bool logistic_;
    float path_weight_;  // weight of the nodes above a label in its log score
    std::vector<Tree> trees_;
};

}  // namespace

void bind_tree_search(nb::module_ &m) {
    nb::class_<TreeSearch>(m, "TreeSearch")
        .def(nb::init<int64_t, int64_t, bool, float, nb::list>(), nb::arg("n_features"), nb::arg("n_labels"),
             nb::arg("logistic"), nb::arg("path_weight"), nb::arg("trees"))
        .def("calibrate", &TreeSearch::calibrate)
        .def("topk", &TreeSearch::topk, nb::arg("indptr"), nb::arg("indices"), nb::arg("data"), nb::arg("first"),
             nb::arg("last"), nb::arg("beam"), nb::arg("allowed").none(), nb::arg("label_factors").none(),
             nb::arg("labels").noconvert(), nb::arg("scores").noconvert())
        .def("all", &TreeSearch::all, nb::arg("indptr"), nb::arg("indices"), nb::arg("data"), nb::arg("first"),
             nb::arg("last"), nb::arg("beam"), nb::arg("label_factors").none(), nb::arg("scores").noconvert())
        .def("visited", &TreeSearch::visited);
}
