// Beam search through trees of linear classifiers.
//
// The weights of a node's children are stored in blocks of up to 256 children, feature by feature. A directory finds
// the features of a bucket (features with the same high bits); each feature has the low bits of its number and its
// number of weights; each weight has its child. A block with most weights present stores one for every child instead.
//
// The search goes level by level and handles all rows of a node together, so that the node's weights are read into the
// cache once. If enough rows meet at a node, its directory is first expanded into a table, or its weights into a dense
// matrix. Reads never go beyond the arrays of the blocks, whatever they hold: they may be mapped from a file that was
// not verified. Only the hierarchy, `pointers` and `children`, is trusted.
#include "kernels.h"

#include <algorithm>
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
constexpr uint32_t absent = 0xFFFFFFFFu;
// Features of a bucket that are compared at once; most buckets have fewer.
constexpr size_t window = 16;
constexpr size_t few_features = size_t{1} << 14;
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
    Vector<const int64_t> first_block, first_bucket, first_row, first_weight;
    Vector<const uint8_t> shifts;
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
    const uint32_t *bucket_rows, *bucket_weights;
    size_t buckets, rows, weights, children;
    unsigned shift;
    bool dense;
    const uint16_t *lows;
    const uint8_t *counts, *slots;
    const int16_t *short_weights;
    const float *full_weights;

    Block(const Tree &tree, size_t block, size_t n_children) : children(n_children) {
        const auto part = [block](const Vector<const int64_t> &first, size_t length, size_t &size) {
            const size_t from = std::min(static_cast<size_t>(std::max<int64_t>(first.data()[block], 0)), length);
            const size_t to = std::min(static_cast<size_t>(std::max<int64_t>(first.data()[block + 1], 0)), length);
            size = to > from ? to - from : 0;
            return from;
        };
        const uint8_t form = tree.shifts.data()[block];
        dense = form & dense_block;
        shift = std::min<unsigned>(form & ~dense_block, 16);
        const size_t bucket = part(tree.first_bucket, std::min(tree.bucket_rows.size(), tree.bucket_weights.size()), buckets);
        const size_t row = part(tree.first_row, std::min(tree.lows.size(), tree.counts.size()), rows);
        const size_t length = tree.short_weights ? tree.short_weights->size() : tree.weights->size();
        const size_t weight = part(tree.first_weight, std::min(tree.slots.size(), length), weights);
        bucket_rows = tree.bucket_rows.data() + bucket;
        bucket_weights = tree.bucket_weights.data() + bucket;
        lows = tree.lows.data() + row;
        counts = tree.counts.data() + row;
        slots = tree.slots.data() + weight;
        short_weights = tree.short_weights ? tree.short_weights->data() + weight : nullptr;
        full_weights = tree.short_weights ? nullptr : tree.weights->data() + weight;
    }

    // The rows of a bucket, and where their weights start.
    void bucket(size_t number, size_t &row, size_t &end, size_t &weight) const {
        row = std::min<size_t>(bucket_rows[number], rows);
        end = number + 1 < buckets ? std::min<size_t>(bucket_rows[number + 1], rows) : rows;
        weight = bucket_weights[number];
    }

    uint16_t low_bits(uint32_t feature) const { return static_cast<uint16_t>(feature & ((1u << shift) - 1)); }

    // Few features in all: they stay in the cache, and a simple scan is fastest.
    bool is_small() const { return buckets << shift <= few_features; }

    // The weights of the feature with these low bits, among the rows of its bucket: their number, starting at `weight`.
    LONGTAIL_INLINE size_t find(uint16_t low, size_t row, size_t end, size_t &weight) const {
        if (row + window <= rows && end - row <= window) return find_in_window(low, row, end - row, weight);
        return scan(low, row, end, weight);
    }

    LONGTAIL_INLINE size_t scan(uint16_t low, size_t row, size_t end, size_t &weight) const {
        for (; row < end && lows[row] < low; ++row) weight += counts[row] + size_t{1};
        if (row >= end || lows[row] != low) return 0;
        return within(weight, counts[row] + size_t{1});
    }

    // The same without branches, which the processor would often predict wrongly and then wait for memory.
    LONGTAIL_INLINE size_t find_in_window(uint16_t low, size_t row, size_t length, size_t &weight) const {
        const uint16_t *low_of = lows + row;
        const uint8_t *count_of = counts + row;
#if defined(__SSE2__)
        const auto load = [](const void *at) { return _mm_loadu_si128(static_cast<const __m128i *>(at)); };
        const __m128i sought = _mm_set1_epi16(static_cast<int16_t>(low));
        const __m128i equal = _mm_packs_epi16(_mm_cmpeq_epi16(load(low_of), sought), _mm_cmpeq_epi16(load(low_of + 8), sought));
        const unsigned places = static_cast<unsigned>(_mm_movemask_epi8(equal)) & ((1u << length) - 1);
        const unsigned place = static_cast<unsigned>(__builtin_ctz(places | 1u << (window - 1)));
        const __m128i before = _mm_and_si128(load(count_of), load(first_bytes + window - place));
        const __m128i sums = _mm_sad_epu8(before, _mm_setzero_si128());
        weight += place + static_cast<size_t>(_mm_cvtsi128_si32(sums) + _mm_extract_epi16(sums, 4));
        return places ? within(weight, count_of[place] + size_t{1}) : 0;
#else
        const uint16_t there = static_cast<uint16_t>(length);
        uint16_t skipped = 0, count = 0;
        for (uint16_t i = 0; i < window; ++i) {
            const uint16_t weights_here = static_cast<uint16_t>(count_of[i] + 1);
            const uint16_t less = static_cast<uint16_t>(-static_cast<int>(low_of[i] < low && i < there));
            const uint16_t equal = static_cast<uint16_t>(-static_cast<int>(low_of[i] == low && i < there));
            skipped = static_cast<uint16_t>(skipped + (weights_here & less));
            count = static_cast<uint16_t>(count + (weights_here & equal));
        }
        weight += skipped;
        return count ? within(weight, count) : 0;
#endif
    }

    // The number of weights that exist, of `count` from `weight` on. A dense block has one for every child, or none.
    size_t within(size_t weight, size_t count) const {
        const size_t left = weight < weights ? weights - weight : 0;
        if (dense) return left >= children ? children : 0;
        return std::min(count, left);
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

// The weights of one feature of a row.
struct Found {
    size_t weight, count;
    float value;
};

// Look up some features of a row in the directory; returns how many have weights. Each pass asks for the memory that
// the next one reads.
inline __attribute__((always_inline)) size_t look_up(const Block &block, const int32_t *features, const float *values,
                                                     size_t length, Found *found) {
    size_t row[looked_up_at_once], end[looked_up_at_once], weight[looked_up_at_once];
    for (size_t j = 0; j < length; ++j) {
        const size_t number = std::min<size_t>(static_cast<uint32_t>(features[j]) >> block.shift, block.buckets);
        prefetch(block.bucket_rows + number);
        prefetch(block.bucket_weights + number);
    }
    for (size_t j = 0; j < length; ++j) {
        const size_t number = static_cast<uint32_t>(features[j]) >> block.shift;
        row[j] = end[j] = weight[j] = 0;
        if (number < block.buckets) block.bucket(number, row[j], end[j], weight[j]);
        end[j] = std::max(row[j], end[j]);  // a damaged directory may end before it starts
        prefetch(block.lows + row[j]);
        prefetch(block.counts + row[j]);
    }
    size_t n_found = 0;
    for (size_t j = 0; j < length; ++j) {
        size_t from = weight[j];
        const size_t count = block.find(block.low_bits(static_cast<uint32_t>(features[j])), row[j], end[j], from);
        found[n_found] = {from, count, values[j]};
        // The place of a feature without weights may lie anywhere.
        const size_t asked = count > 0 ? from : 0;
        prefetch(block.slots + asked);
        if (block.short_weights) prefetch(block.short_weights + asked);
        else prefetch(block.full_weights + asked);
        n_found += count > 0;
    }
    return n_found;
}

// Add the contributions of one feature to the scores of the children.
template <typename Weight>
inline __attribute__((always_inline)) void add_weights(const Block &block, const Weight *weights, const Found &found,
                                                       float *scores) {
    const Weight *w = weights + found.weight;
    const float value = found.value;
    if (block.dense) {
        for (size_t i = 0; i < block.children; ++i) scores[i] += static_cast<float>(w[i]) * value;
        return;
    }
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

// Add the contributions of a row's features to each child. `table`, if given, has the place and number of the weights
// of every feature; without it they are looked up.
template <typename Weight>
inline __attribute__((always_inline)) void walk(const Block &block, const Weight *weights, const uint32_t *table,
                                                const int32_t *features, const float *values, size_t length,
                                                float *scores) {
    if (table) {
        for (size_t j = 0; j < length; ++j) {
            const uint32_t entry = table[features[j]];
            if (entry == absent) continue;
            add_weights(block, weights, {entry >> 8, (entry & 255) + size_t{1}, values[j]}, scores);
        }
        return;
    }
    if (block.is_small()) {
        for (size_t j = 0; j < length; ++j) {
            const auto feature = static_cast<uint32_t>(features[j]);
            if (feature >> block.shift >= block.buckets) continue;
            size_t row, end, weight;
            block.bucket(feature >> block.shift, row, end, weight);
            const size_t count = block.scan(block.low_bits(feature), row, end, weight);
            if (count > 0) add_weights(block, weights, {weight, count, values[j]}, scores);
        }
        return;
    }
    Found found[looked_up_at_once];
    for (size_t first = 0; first < length; first += looked_up_at_once) {
        const size_t count = std::min(looked_up_at_once, length - first);
        const size_t n_found = look_up(block, features + first, values + first, count, found);
        for (size_t i = 0; i < n_found; ++i) add_weights(block, weights, found[i], scores);
    }
}

LONGTAIL_WIDE void walk_short(const Block &block, const uint32_t *table, const int32_t *features, const float *values,
                              size_t length, float *scores) {
    walk(block, block.short_weights, table, features, values, length, scores);
}

LONGTAIL_WIDE void walk_full(const Block &block, const uint32_t *table, const int32_t *features, const float *values,
                             size_t length, float *scores) {
    walk(block, block.full_weights, table, features, values, length, scores);
}

// A block expanded for many rows: the row of every feature, and dense rows of weights. Columns are in panels of 32,
// panel by panel, so that a panel stays in the cache while rows of features are read.
struct Spread {
    std::vector<uint32_t> row_of;
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
    std::vector<uint32_t> table;
    Spread spread;
    std::vector<Hit> hits;
    std::vector<size_t> bounds;
    std::vector<float> scores;
};

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
            tree.first_weight = nb::cast<Vector<const int64_t>>(get("first_weight"));
            tree.shifts = nb::cast<Vector<const uint8_t>>(get("shifts"));
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
        std::vector<Visit> level(rows.count), round;
        std::vector<size_t> first(rows.count + 1);
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
                by_node(round);
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
                by_node(round);
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

    static void by_node(std::vector<Visit> &visits) {
        std::sort(visits.begin(), visits.end(), [](const Visit &a, const Visit &b) {
            return a.node < b.node || (a.node == b.node && a.row < b.row);
        });
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
            const Block block(tree, static_cast<size_t>(tree.first_block.data()[node]) + first / block_children, count);
            const int64_t *child = tree.children.data() + edge + first;
            const auto labels = static_cast<size_t>(std::count_if(child, child + count, [](int64_t id) { return id < 0; }));
            if (nodes_only && labels == count) continue;
            scratch.stop.count(features + block.rows);
            // The cost of a walk, in strips of a dense matrix: a single weight costs about four, because the features
            // of rows are those with the most weights. Expanding the directory costs a write per feature of the node,
            // expanding the weights a dense matrix.
            const size_t width = (count + strip - 1) / strip * strip;
            const size_t sparse_cost = 4 * features * (block.weights / std::max<size_t>(1, block.rows) + 1);
            // The first time, a place for every feature must be made.
            const size_t dense_places = scratch.spread.row_of.empty() ? n_features_ / strip : 0;
            const size_t table_places = scratch.table.empty() ? n_features_ / strip : 0;
            const size_t dense_cost =
                features * width / strip + block.rows * width / (2 * strip) + 2 * block.weights + dense_places;
            const bool dense = dense_cost < sparse_cost && block.rows * width <= largest_spread;
            const bool table = !dense && features > block.rows + table_places && block.weights < (size_t{1} << 24) - 1;
            if (dense && block.short_weights) spread_weights(block, block.short_weights, width, scratch.spread);
            if (dense && block.full_weights) spread_weights(block, block.full_weights, width, scratch.spread);
            if (table) spread_directory(block, scratch.table);
            for (const Visit *from = visit; from != end;) {
                const Visit *to = from + std::min<std::ptrdiff_t>(rows_at_once, end - from);
                if (dense) scratch.scores.resize(rows_at_once * width);
                if (dense) {
                    find_hits(scratch.spread.row_of, rows, from, to, scratch);
                    walk_spread(scratch.spread, scratch.hits.data(), scratch.bounds.data(), static_cast<size_t>(to - from),
                                scratch.scores.data());
                }
                for (float *scores = scratch.scores.data(); from != to; ++from) {
                    if (dense) {
                        offer_children(tree, *from, edge + first, count, labels, mask, open, scores, next, emit, floor);
                        scores += width;
                        continue;
                    }
                    if (from + 1 != to) fetch_row(rows, from[1].row);
                    float own[block_children] = {};
                    const size_t begin = static_cast<size_t>(rows.indptr[rows.first + from->row]);
                    (block.short_weights ? walk_short : walk_full)(block, table ? scratch.table.data() : nullptr,
                                                                   rows.indices + begin, rows.data + begin,
                                                                   length(rows, from->row), own);
                    offer_children(tree, *from, edge + first, count, labels, mask, open, own, next, emit, floor);
                }
            }
            if (table) clear(block, scratch.table);
            if (dense) clear(block, scratch.spread.row_of);
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

    // table[feature]: where the weights of the feature start, and how many there are.
    void spread_directory(const Block &block, std::vector<uint32_t> &table) const {
        if (table.size() != n_features_) table.assign(n_features_, absent);
        for_each_feature(block, [&](size_t feature, size_t weight, size_t count) {
            table[feature] = static_cast<uint32_t>(weight << 8 | (count - 1));
        });
    }

    template <typename Weight>
    void spread_weights(const Block &block, const Weight *weights, size_t width, Spread &spread) const {
        if (spread.row_of.size() != n_features_) spread.row_of.assign(n_features_, absent);
        spread.rows = block.rows;
        spread.width = width;
        spread.weights.assign(block.rows * width, 0.0f);
        size_t row = 0;
        for_each_feature(block, [&](size_t feature, size_t weight, size_t count) {
            if (row == block.rows) return;
            for (size_t i = weight; i < weight + count; ++i) {
                const size_t slot = block.dense ? i - weight : block.slots[i];
                if (slot >= width) continue;
                const size_t column = slot / panel_columns * panel_columns;
                spread.weights[block.rows * column + row * spread.panel_width(column) + slot - column] =
                    static_cast<float>(weights[i]);
            }
            spread.row_of[feature] = static_cast<uint32_t>(row++);
        });
    }

    // The features of some rows that have weights, row by row.
    static void find_hits(const std::vector<uint32_t> &row_of, const Rows &rows, const Visit *from, const Visit *to,
                          Scratch &scratch) {
        size_t most = 0, found = 0;
        for (const Visit *each = from; each != to; ++each) most += length(rows, each->row);
        scratch.hits.resize(most + 1);  // one more than is found may be written
        scratch.bounds.assign(1, 0);
        for (const Visit *each = from; each != to; ++each) {
            const int64_t begin = rows.indptr[rows.first + each->row], end = rows.indptr[rows.first + each->row + 1];
            for (int64_t j = begin; j < end; ++j) {
                const uint32_t row = row_of[static_cast<size_t>(rows.indices[j])];
                scratch.hits[found] = {row, rows.data[j]};
                found += row != absent;
            }
            scratch.bounds.push_back(found);
        }
    }

    void clear(const Block &block, std::vector<uint32_t> &table) const {
        for_each_feature(block, [&](size_t feature, size_t, size_t) { table[feature] = absent; });
    }

    template <typename F>
    void for_each_feature(const Block &block, F f) const {
        size_t done = 0;
        for (size_t bucket = 0; bucket < block.buckets; ++bucket) {
            size_t row, end, weight;
            block.bucket(bucket, row, end, weight);
            if (row < done) continue;  // a damaged directory must not make the same features repeat
            done = std::max(row, end);
            for (; row < end; ++row) {
                const size_t feature = (bucket << block.shift) + block.lows[row], count = block.counts[row] + size_t{1};
                const size_t there = block.within(weight, count);
                if (feature < n_features_ && there > 0) f(feature, weight, there);
                weight += count;
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
