// Label vectors and their balanced split in two: sums of sparse rows, projections, and whole splits of small nodes. A
// split renumbers the features of its node, so that dense vectors are as small as the node.
#include "kernels.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include <nanobind/stl/optional.h>

#include "dot.h"
#include "stop.h"

#if defined(_MSC_VER)
#include <intrin.h>
#endif

namespace {

// The smallest of the `count` largest scores, and how many scores equal to it are among them.
float cut(const float *scores, size_t size, size_t count, std::vector<float> &scratch, size_t &equals) {
    scratch.assign(scores, scores + size);
    std::nth_element(scratch.begin(), scratch.begin() + (count - 1), scratch.end(), std::greater<float>());
    const float pivot = scratch[count - 1];
    equals = count;
    for (size_t i = 0; i < size; ++i) equals -= scores[i] > pivot;
    return pivot;
}

inline unsigned lowest_bit(uint64_t word) {
#if defined(_MSC_VER)
    unsigned long place;
    _BitScanForward64(&place, word);
    return place;
#else
    return static_cast<unsigned>(__builtin_ctzll(word));
#endif
}

// Sums over features of which few occur. Marks in two levels return those features in order, without sorting.
class SparseSums {
public:
    explicit SparseSums(size_t width) : values_(width), marks_(width / 64 + 1), layers_(width / 4096 + 1) {}

    void add(size_t feature, float value) {
        uint64_t &mark = marks_[feature / 64];
        const uint64_t bit = uint64_t{1} << (feature % 64);
        if (mark & bit) {
            values_[feature] += value;
        } else {
            values_[feature] = value;
            mark |= bit;
            layers_[feature / 4096] |= uint64_t{1} << (feature / 64 % 64);
        }
    }

    // Append the features with a non-zero sum and their sums, and reset.
    void take(std::vector<int32_t> &features, std::vector<float> &values) {
        for (size_t layer = 0; layer < layers_.size(); ++layer) {
            for (; layers_[layer]; layers_[layer] &= layers_[layer] - 1) {
                const size_t place = layer * 64 + lowest_bit(layers_[layer]);
                for (; marks_[place]; marks_[place] &= marks_[place] - 1) {
                    const size_t feature = place * 64 + lowest_bit(marks_[place]);
                    if (values_[feature] == 0.0f) continue;
                    features.push_back(static_cast<int32_t>(feature));
                    values.push_back(values_[feature]);
                }
            }
        }
    }

private:
    std::vector<float> values_;
    std::vector<uint64_t> marks_, layers_;
};

template <typename P, typename I>
int64_t sum_label_rows(Vector<const int64_t> label_indptr, Vector<const int64_t> label_rows,
                       std::optional<Vector<const float>> row_weights, Vector<const P> indptr, Vector<const I> indices,
                       Vector<const float> data, int64_t n_features, int64_t top, Vector<int64_t> counts,
                       Vector<int32_t> out_indices, Vector<float> out_data) {
    const int64_t *label_starts = label_indptr.data(), *rows = label_rows.data();
    const float *factors = row_weights ? row_weights->data() : nullptr;
    const P *starts = indptr.data();
    const I *features = indices.data();
    const float *values = data.data();
    int64_t *kept = counts.data();
    int32_t *sum_features = out_indices.data();
    float *sum_values = out_data.data();
    const size_t labels = counts.shape(0), width = static_cast<size_t>(n_features), most = static_cast<size_t>(top);
    nb::gil_scoped_release released;
    Stop stop;
    SparseSums sums(width);
    std::vector<int32_t> found;
    std::vector<float> weights, magnitudes, scratch;
    size_t written = 0;
    for (size_t label = 0; label < labels; ++label) {
        size_t steps = 1;
        for (int64_t r = label_starts[label]; r < label_starts[label + 1]; ++r) {
            const float factor = factors ? factors[r] : 1.0f;
            for (P e = starts[rows[r]]; e < starts[rows[r] + 1]; ++e)
                sums.add(static_cast<size_t>(features[e]), factor * values[e]);
            steps += static_cast<size_t>(starts[rows[r] + 1] - starts[rows[r]]);
        }
        stop.count(steps);
        found.clear();
        weights.clear();
        sums.take(found, weights);
        float floor = 0.0f;
        size_t at_floor = 0;
        if (found.size() > most) {
            magnitudes.resize(found.size());
            for (size_t i = 0; i < found.size(); ++i) magnitudes[i] = std::fabs(weights[i]);
            floor = cut(magnitudes.data(), found.size(), most, scratch, at_floor);
        }
        const size_t first = written;
        double square = 0.0;
        for (size_t i = 0; i < found.size(); ++i) {
            const float magnitude = std::fabs(weights[i]);
            if (magnitude < floor || (magnitude == floor && at_floor == 0)) continue;
            if (magnitude == floor) --at_floor;
            square += static_cast<double>(magnitude) * magnitude;
            sum_features[written] = found[i];
            sum_values[written++] = weights[i];
        }
        const double length = std::sqrt(square);
        for (size_t e = first; e < written; ++e) sum_values[e] = static_cast<float>(sum_values[e] / length);
        kept[label] = static_cast<int64_t>(written - first);
    }
    return static_cast<int64_t>(written);
}

void project_rows(Vector<const int64_t> indptr, Vector<const int32_t> indices, Vector<const float> data,
                  Vector<const int64_t> rows, Vector<const float> direction, Vector<float> out) {
    const int64_t *starts = indptr.data(), *chosen = rows.data();
    const int32_t *features = indices.data();
    const float *values = data.data(), *dense = direction.data();
    float *projections = out.data();
    const size_t count = rows.shape(0);
    nb::gil_scoped_release released;
    Stop stop;
    for (size_t i = 0; i < count; ++i) {
        const int64_t start = starts[chosen[i]];
        const size_t length = static_cast<size_t>(starts[chosen[i] + 1] - start);
        projections[i] = dot(features + start, values + start, length, dense);
        stop.count(length);
    }
}

void add_rows(Vector<const int64_t> indptr, Vector<const int32_t> indices, Vector<const float> data,
              Vector<const int64_t> rows, Vector<const float> weights, Vector<double> out) {
    const int64_t *starts = indptr.data(), *chosen = rows.data();
    const int32_t *features = indices.data();
    const float *values = data.data(), *factors = weights.data();
    double *sums = out.data();
    const size_t count = rows.shape(0);
    nb::gil_scoped_release released;
    Stop stop;
    for (size_t i = 0; i < count; ++i) {
        const int64_t begin = starts[chosen[i]], end = starts[chosen[i] + 1];
        for (int64_t e = begin; e < end; ++e) sums[features[e]] += factors[i] * values[e];
        stop.count(static_cast<size_t>(end - begin));
    }
}

// The members of one node, with only the features that occur.
class Node {
public:
    explicit Node(size_t n_features) : number_(n_features, -1) {}

    void gather(const int64_t *indptr, const int32_t *indices, const float *data, const int64_t *members, size_t count) {
        for (const int32_t feature : known_) number_[feature] = -1;
        known_.clear();
        starts_.assign(1, 0);
        features_.clear();
        values_.clear();
        for (size_t i = 0; i < count; ++i) {
            const int64_t start = indptr[members[i]], stop = indptr[members[i] + 1];
            for (int64_t e = start; e < stop; ++e) {
                int32_t &number = number_[indices[e]];
                if (number < 0) {
                    number = static_cast<int32_t>(known_.size());
                    known_.push_back(indices[e]);
                }
                features_.push_back(number);
            }
            values_.insert(values_.end(), data + start, data + stop);
            starts_.push_back(features_.size());
        }
        total_.assign(known_.size(), 0.0);
        for (size_t e = 0; e < features_.size(); ++e) total_[features_[e]] += values_[e];
    }

    // Balanced spherical 2-means from two members; `in_first` receives the side of each member.
    double divide(size_t n_first, size_t one, size_t other, int64_t rounds, double tolerance) {
        const size_t count = starts_.size() - 1, width = known_.size();
        in_first.assign(count, 0);
        first_.assign(width, 0.0);
        direction_.assign(width, 0.0f);
        differences_.resize(count);
        for (size_t e = starts_[one]; e < starts_[one + 1]; ++e) direction_[features_[e]] += values_[e];
        for (size_t e = starts_[other]; e < starts_[other + 1]; ++e) direction_[features_[e]] -= values_[e];
        double similarity = -std::numeric_limits<double>::infinity();
        for (int64_t round = 0; round < rounds; ++round) {
            stop_.count(features_.size() + width);
            for (size_t i = 0; i < count; ++i)
                differences_[i] = dot(features_.data() + starts_[i], values_.data() + starts_[i],
                                      starts_[i + 1] - starts_[i], direction_.data());
            size_t equals = 0;
            const float pivot = cut(differences_.data(), count, n_first, scratch_, equals);
            for (size_t i = 0; i < count; ++i) {
                const bool tied = differences_[i] == pivot && equals > 0;
                const bool chosen = differences_[i] > pivot || tied;
                equals -= tied;
                if (chosen == static_cast<bool>(in_first[i])) continue;
                const double sign = chosen ? 1.0 : -1.0;
                for (size_t e = starts_[i]; e < starts_[i + 1]; ++e) first_[features_[e]] += sign * values_[e];
                in_first[i] = chosen;
            }
            double first_square = 0.0, second_square = 0.0;
            for (size_t f = 0; f < width; ++f) {
                const double second = total_[f] - first_[f];
                first_square += first_[f] * first_[f];
                second_square += second * second;
            }
            const double first_length = std::sqrt(first_square), second_length = std::sqrt(second_square);
            const double before = similarity;
            similarity = (first_length + second_length) / static_cast<double>(count);
            if (similarity - before < tolerance) break;
            const double first_scale = first_length > 0.0 ? 1.0 / first_length : 0.0;
            const double second_scale = second_length > 0.0 ? 1.0 / second_length : 0.0;
            for (size_t f = 0; f < width; ++f)
                direction_[f] = static_cast<float>(first_[f] * first_scale - (total_[f] - first_[f]) * second_scale);
        }
        return similarity;
    }

    std::vector<char> in_first;

private:
    std::vector<int32_t> number_, known_, features_;
    std::vector<size_t> starts_;
    std::vector<float> values_, direction_, differences_, scratch_;
    std::vector<double> total_, first_;
    Stop stop_;
};

void bisect_nodes(Vector<const int64_t> indptr, Vector<const int32_t> indices, Vector<const float> data,
                  int64_t n_features, Vector<int64_t> members, Matrix<const int64_t> bounds,
                  Matrix<const int64_t> centres, int64_t rounds, double tolerance, Vector<double> similarities) {
    const int64_t *starts = indptr.data(), *limits = bounds.data(), *pairs = centres.data();
    const int32_t *features = indices.data();
    const float *values = data.data();
    int64_t *all_members = members.data();
    double *found = similarities.data();
    const size_t nodes = bounds.shape(0);
    nb::gil_scoped_release released;
    Node node(static_cast<size_t>(n_features));
    for (size_t n = 0; n < nodes; ++n) {
        int64_t *own = all_members + limits[3 * n];
        const size_t n_first = static_cast<size_t>(limits[3 * n + 1] - limits[3 * n]);
        const size_t count = static_cast<size_t>(limits[3 * n + 2] - limits[3 * n]);
        node.gather(starts, features, values, own, count);
        found[n] = node.divide(n_first, static_cast<size_t>(pairs[2 * n]), static_cast<size_t>(pairs[2 * n + 1]), rounds,
                               tolerance);
        std::vector<int64_t> sides(count);
        size_t first = 0, second = n_first;
        for (size_t i = 0; i < count; ++i) sides[node.in_first[i] ? first++ : second++] = own[i];
        std::copy(sides.begin(), sides.end(), own);
    }
}

}  // namespace

void bind_cluster(nb::module_ &m) {
    m.def("add_rows", &add_rows);
    m.def("bisect_nodes", &bisect_nodes);
    m.def("project_rows", &project_rows);
    const auto define_sum = [&m](auto function) {
        m.def("sum_label_rows", function, nb::arg("label_indptr"), nb::arg("label_rows"), nb::arg("row_weights").none(),
              nb::arg("indptr"), nb::arg("indices"), nb::arg("data"), nb::arg("n_features"), nb::arg("top"),
              nb::arg("counts"), nb::arg("out_indices"), nb::arg("out_data"));
    };
    define_sum(&sum_label_rows<int32_t, int32_t>);
    define_sum(&sum_label_rows<int64_t, int32_t>);
    define_sum(&sum_label_rows<int64_t, int64_t>);
}
