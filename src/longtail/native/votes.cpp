// Votes for labels: each neighbour of a row gives its weight to each of its labels.
//
// Votes are added in the order of the neighbours. Reads stay within the label matrix, whatever it holds: it may be mapped
// from a file that was not verified.
#include "kernels.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <nanobind/stl/optional.h>

#include "best.h"
#include "clamped.h"
#include "stop.h"

namespace {

// The votes of one row. Between rows all votes are 0.
class Votes {
  public:
    void begin(size_t n_labels) {
        if (!clean_) std::fill(votes_.begin(), votes_.end(), 0.0f);
        if (votes_.size() < n_labels) votes_.resize(n_labels, 0.0f);
        n_labels_ = static_cast<uint32_t>(n_labels);
        clean_ = false;
    }

    // Returns the number of steps.
    size_t count(const int64_t *neighbours, const float *weights, size_t n_neighbours, const ClampedRows &labels) {
        voted_.clear();
        size_t steps = n_neighbours;
        for (size_t j = 0; j < n_neighbours; ++j) {
            const auto [from, to] = labels.bounds(neighbours[j]);
            for (size_t e = from; e < to; ++e) {
                const uint32_t label = static_cast<uint32_t>(labels.columns[e]);
                if (label >= n_labels_) continue;
                // A label whose votes add up to 0 is listed again, which does no harm.
                if (votes_[label] == 0.0f) voted_.push_back(label);
                votes_[label] += weights[j];
            }
            steps += to - from;
        }
        return steps;
    }

    float of(int32_t label) const { return static_cast<uint32_t>(label) < n_labels_ ? votes_[label] : 0.0f; }

    // Call `f(label, votes)` for the labels with votes, and forget them.
    template <typename F>
    void finish(F f) {
        for (const uint32_t label : voted_) {
            const float votes = votes_[label];
            votes_[label] = 0.0f;
            f(label, votes);
        }
        clean_ = true;
    }

  private:
    std::vector<float> votes_;
    std::vector<uint32_t> voted_;
    uint32_t n_labels_ = 0;
    bool clean_ = true;
};

void neighbour_votes(Matrix<const int64_t> neighbours, Matrix<const float> weights, int64_t first, int64_t last,
                     Vector<const int64_t> y_indptr, Vector<const int32_t> y_indices, int64_t n_labels,
                     std::optional<Vector<const bool>> mask, Matrix<int64_t> out_labels, Matrix<float> out_votes) {
    const size_t width = neighbours.shape(1), k = out_labels.shape(1);
    const ClampedRows labels(y_indptr, y_indices, y_indices.size());
    const int64_t *all_neighbours = neighbours.data();
    const float *all_weights = weights.data();
    const bool *allowed = mask ? mask->data() : nullptr;
    int64_t *to_labels = out_labels.data();
    float *to_votes = out_votes.data();
    if (k == 0) return;
    nb::gil_scoped_release released;
    thread_local Votes votes;
    Best best(1, k);
    Stop stop;
    for (size_t row = static_cast<size_t>(first); row < static_cast<size_t>(last); ++row) {
        votes.begin(static_cast<size_t>(n_labels));
        const size_t steps = votes.count(all_neighbours + row * width, all_weights + row * width, width, labels);
        votes.finish([&](uint32_t label, float sum) {
            if (sum > 0.0f && (!allowed || allowed[label])) best.offer(0, {sum, label});
        });
        best.write_and_clear(0, to_labels + row * k, to_votes + row * k);
        stop.count(2 * steps + k + 1);
    }
}

void pair_votes(Matrix<const int64_t> neighbours, Matrix<const float> weights, int64_t first, int64_t last,
                Vector<const int64_t> y_indptr, Vector<const int32_t> y_indices, int64_t n_labels,
                Vector<const int64_t> pair_starts, Vector<const int32_t> pair_items, Vector<float> out) {
    const size_t width = neighbours.shape(1);
    const ClampedRows labels(y_indptr, y_indices, y_indices.size());
    const ClampedRows pairs(pair_starts, pair_items, out.size());
    const int64_t *all_neighbours = neighbours.data();
    const float *all_weights = weights.data();
    float *to = out.data();
    nb::gil_scoped_release released;
    thread_local Votes votes;
    Stop stop;
    for (size_t row = static_cast<size_t>(first); row < static_cast<size_t>(last); ++row) {
        votes.begin(static_cast<size_t>(n_labels));
        const size_t steps = votes.count(all_neighbours + row * width, all_weights + row * width, width, labels);
        const auto [from, end] = pairs.bounds(static_cast<int64_t>(row));
        for (size_t pair = from; pair < end; ++pair) to[pair] = votes.of(pairs.columns[pair]);
        votes.finish([](uint32_t, float) {});
        stop.count(2 * steps + (end - from) + 1);
    }
}

}  // namespace

void bind_votes(nb::module_ &m) {
    m.def("neighbour_votes", &neighbour_votes, nb::arg("neighbours"), nb::arg("weights"), nb::arg("first"),
          nb::arg("last"), nb::arg("y_indptr"), nb::arg("y_indices"), nb::arg("n_labels"), nb::arg("mask").none(),
          nb::arg("out_labels").noconvert(), nb::arg("out_votes").noconvert());
    m.def("pair_votes", &pair_votes, nb::arg("neighbours"), nb::arg("weights"), nb::arg("first"), nb::arg("last"),
          nb::arg("y_indptr"), nb::arg("y_indices"), nb::arg("n_labels"), nb::arg("pair_starts"),
          nb::arg("pair_items"), nb::arg("out").noconvert());
}
