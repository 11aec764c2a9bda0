// Labels known only for groups of rows: find a vector for each label that matches one row in each of its groups, and
// the products of the members of groups with the vectors of their labels.
//
// A sweep moves the vector by a multiple of the sum of the best members. While that sum changes little, so does its
// contribution to each product, and the change bounds the error. A sweep therefore reads only the best member of each
// group and the members that may have become better. All members are read again when the sum has changed too much.
#include "kernels.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "dot.h"
#include "stop.h"

namespace {

// Members cancel out if their sum is shorter than this share of their lengths: the rest is rounding error.
constexpr double nothing_left = 1e-6;

template <typename I>
struct SparseRows {
    const I *starts, *features;
    const float *values;

    size_t length(int64_t row) const { return static_cast<size_t>(starts[row + 1] - starts[row]); }

    float product(int64_t row, const float *dense) const {
        return dot(features + starts[row], values + starts[row], length(row), dense);
    }
    void add_to(int64_t row, float *dense, float factor = 1.0f) const {
        for (I e = starts[row]; e < starts[row + 1]; ++e) dense[features[e]] += factor * values[e];
    }
    void clear_in(int64_t row, float *dense) const {
        for (I e = starts[row]; e < starts[row + 1]; ++e) dense[features[e]] = 0.0f;
    }
};

// Products are sums of rounded floats: the maximum error of one, for a member of length 1.
constexpr double rounding = 1e-6;
// Maximum relative change of the sum of the best members before products are computed again.
constexpr double most_away = 0.3;

// The vector of one label during the search.
template <typename I>
class LabelVector {
  public:
    LabelVector(const SparseRows<I> &rows, const double *norms, size_t n_features)
        : rows_(rows), norms_(norms), vector_(n_features, 0.0f), sum_(n_features, 0.0f) {}

    // Load the members of the label's groups; `ends` holds the end of each group.
    void begin(int64_t label, const std::vector<int64_t> &members, const std::vector<size_t> &ends, double *weights,
               double *products) {
        members_ = &members;
        ends_ = &ends;
        weights_ = weights;
        products_ = products;
        picks_.clear();
        computed_.assign(members.size(), 0);
        sure_.assign(members.size(), 0.0);
        known_.resize(members.size());
        lengths_ = doubt_ = 0.0;
        shrunk_ = 1.0;
        sweep_ = 0;
        for (const int64_t row : members) lengths_ += norms_[row];
        std::fill(weights, weights + members.size(), 0.0);
        std::fill(products, products + members.size(), 0.0);
        if (lengths_ == 0.0) return;
        start_.resize(members.size());
        for (size_t i = 0; i < members.size(); ++i) start_[i] = i;
        double length = add_up(start_);
        if (length <= nothing_left * lengths_) {
            // Members cancel out: start from a single one, a different one for each label.
            for (const int64_t row : members) rows_.clear_in(row, vector_.data());
            start_.clear();
            for (size_t i = 0; i < members.size(); ++i)
                if (norms_[members[i]] > 0.0) start_.push_back(i);
            start_ = {start_[static_cast<size_t>(label) % start_.size()]};
            length = add_up(start_);
        }
        scale_ = 1.0 / length;
        for (const size_t i : start_) weights[i] = scale_;
        for (size_t i = 0; i < members.size(); ++i) products[i] *= scale_;
    }

    // One step of the given size towards the best members; false if it has no effect.
    bool move(double step) {
        if (lengths_ == 0.0) return false;
        const double objective = find_best();
        if (best_ != picks_) sum_up_best();
        if (!(length_ > 0.0)) return false;
        const double share = step / length_;
        const double square = 1.0 + 2.0 * share * objective + step * step;
        if (!(square > nothing_left)) return false;
        const double norm = std::sqrt(square);
        const float factor = static_cast<float>(share / scale_);
        if (!std::isfinite(factor)) return false;
        if (entries_ > vector_.size() / 8) {
            for (size_t f = 0; f < vector_.size(); ++f) vector_[f] += factor * sum_[f];
        } else {
            for (const size_t i : picks_) rows_.add_to((*members_)[i], vector_.data(), factor);
        }
        for (size_t i = 0; i < members_->size(); ++i) products_[i] = (products_[i] + share * known_[i]) / norm;
        for (size_t i = 0; i < members_->size(); ++i) weights_[i] /= norm;
        for (const size_t i : picks_) weights_[i] += share / norm;
        scale_ /= norm;
        if (scale_ < 1e-6) {  // after many sweeps or long steps, before floats underflow
            for (float &entry : vector_) entry *= static_cast<float>(scale_);
            scale_ = 1.0;
        }
        doubt_ += share * away_ * shrunk_;
        shrunk_ *= norm;
        ++sweep_;
        stop_.count(vector_.size() / 8 + members_->size());
        return true;
    }

    // Compute all products, reset for the next label, and return the objective.
    double finish() {
        for (size_t i = 0; i < members_->size(); ++i)
            if (computed_[i] != sweep_) compute(i);
        for (const int64_t row : *members_) rows_.clear_in(row, vector_.data());
        for (const int64_t row : *members_) rows_.clear_in(row, sum_.data());
        double objective = 0.0;
        for (size_t group = 0, i = 0; group < ends_->size(); i = (*ends_)[group++])
            objective += *std::max_element(products_ + i, products_ + (*ends_)[group]);
        return objective;
    }

  private:
    // Set the vector to the unscaled sum of the chosen members, compute all products, and return the length of the sum.
    double add_up(const std::vector<size_t> &chosen) {
        for (const size_t i : chosen) rows_.add_to((*members_)[i], vector_.data());
        for (size_t i = 0; i < members_->size(); ++i) {
            products_[i] = rows_.product((*members_)[i], vector_.data());
            stop_.count(rows_.length((*members_)[i]));
        }
        double square = 0.0;
        for (const size_t i : chosen) square += products_[i];
        return std::sqrt(std::max(0.0, square));
    }

    void compute(size_t i) {
        products_[i] = scale_ * rows_.product((*members_)[i], vector_.data());
        stop_.count(rows_.length((*members_)[i]));
        computed_[i] = sweep_;
        sure_[i] = doubt_;
    }

    // Write the best member of each group to `best_`, the first of equals; return the sum of their products.
    double find_best() {
        best_.resize(ends_->size());
        double objective = 0.0;
        for (size_t group = 0, first = 0; group < ends_->size(); first = (*ends_)[group++]) {
            size_t best = picks_.empty() ? first : picks_[group];
            if (computed_[best] != sweep_) compute(best);
            for (size_t i = first; i < (*ends_)[group]; ++i) {
                if (i == best) continue;
                const double most =
                    products_[i] + norms_[(*members_)[i]] * ((doubt_ - sure_[i]) / shrunk_ + rounding);
                if (most < products_[best]) continue;
                if (computed_[i] != sweep_) compute(i);
                if (products_[i] > products_[best] || (products_[i] == products_[best] && i < best)) best = i;
            }
            best_[group] = best;
            objective += products_[best];
        }
        return objective;
    }

    // The sum of the best members, and its distance from the one that `known_` was computed with.
    void sum_up_best() {
        const bool first = picks_.empty();
        for (size_t group = 0; group < best_.size(); ++group) {
            if (!first && picks_[group] == best_[group]) continue;
            if (!first) rows_.add_to((*members_)[picks_[group]], sum_.data(), -1.0f);
            rows_.add_to((*members_)[best_[group]], sum_.data());
        }
        picks_ = best_;
        entries_ = 0;
        for (const size_t i : picks_) entries_ += rows_.length((*members_)[i]);
        double square = 0.0, shared = 0.0;
        for (const size_t i : picks_) square += rows_.product((*members_)[i], sum_.data());
        length_ = std::sqrt(std::max(0.0, square));
        if (!first) {
            for (const size_t i : picks_) shared += known_[i];
            // For two nearly equal sums, the difference may be mostly rounding error.
            const double both = square + known_length_ * known_length_;
            away_ = std::sqrt(std::max(0.0, both - 2.0 * shared) + rounding * both);
            if (away_ <= most_away * length_) return;
        }
        for (size_t i = 0; i < members_->size(); ++i) known_[i] = rows_.product((*members_)[i], sum_.data());
        known_length_ = length_;
        away_ = 0.0;
    }

    const SparseRows<I> &rows_;
    const double *norms_;
    const std::vector<int64_t> *members_ = nullptr;
    const std::vector<size_t> *ends_ = nullptr;
    double *weights_ = nullptr, *products_ = nullptr;
    std::vector<float> vector_, sum_;  // the unscaled vector; the sum of the best members
    std::vector<size_t> start_, best_, picks_;
    std::vector<int64_t> computed_;  // the sweep in which a product was last computed exactly
    std::vector<double> known_;      // products with a sum of best members, not always the latest
    std::vector<double> sure_;       // the value of `doubt_` when a product was computed
    double scale_ = 0.0, length_ = 0.0, lengths_ = 0.0, known_length_ = 0.0, away_ = 0.0;
    double doubt_ = 0.0, shrunk_ = 1.0;  // maximum error of a product, for a member of length 1, times `shrunk_`
    size_t entries_ = 0;                 // of all best members
    int64_t sweep_ = 0;
    Stop stop_;
};

// The members of a label's groups, group by group; empty groups are skipped.
void gather(const int64_t *groups, const int64_t *end, const int64_t *group_starts, const int64_t *group_rows,
            std::vector<int64_t> &members, std::vector<size_t> &ends) {
    members.clear();
    ends.clear();
    for (; groups != end; ++groups) {
        const int64_t from = group_starts[*groups], to = group_starts[*groups + 1];
        if (from == to) continue;
        members.insert(members.end(), group_rows + from, group_rows + to);
        ends.push_back(members.size());
    }
}

template <typename I>
void find_members(Vector<const int64_t> label_indptr, Vector<const int64_t> label_groups,
                  Vector<const int64_t> group_indptr, Vector<const int64_t> group_rows, Vector<const I> indptr,
                  Vector<const I> indices, Vector<const float> data, Vector<const double> norms, int64_t n_features,
                  int64_t first_label, int64_t n_iter, double step, Vector<double> weights, Vector<double> products,
                  Vector<double> objectives) {
    const SparseRows<I> rows{indptr.data(), indices.data(), data.data()};
    const int64_t *label_starts = label_indptr.data(), *groups = label_groups.data();
    const int64_t *group_starts = group_indptr.data(), *rows_of = group_rows.data();
    const double *lengths = norms.data();
    double *to_weights = weights.data(), *to_products = products.data(), *to_objectives = objectives.data();
    const size_t labels = objectives.shape(0);
    nb::gil_scoped_release released;
    LabelVector<I> vector(rows, lengths, static_cast<size_t>(n_features));
    std::vector<int64_t> members;
    std::vector<size_t> ends;
    for (size_t label = 0; label < labels; ++label) {
        gather(groups + label_starts[label], groups + label_starts[label + 1], group_starts, rows_of, members, ends);
        vector.begin(first_label + static_cast<int64_t>(label), members, ends, to_weights, to_products);
        // If every group has one member, there is nothing to choose and no step changes anything.
        if (members.size() > ends.size())
            for (int64_t sweep = 0; sweep < n_iter && vector.move(step); ++sweep) {
            }
        to_objectives[label] = vector.finish();
        to_weights += members.size();
        to_products += members.size();
    }
}

template <typename I>
void score_members(Vector<const int64_t> label_indptr, Vector<const int64_t> label_groups,
                   Vector<const int64_t> group_indptr, Vector<const int64_t> group_rows, Vector<const I> indptr,
                   Vector<const I> indices, Vector<const float> data, Vector<const int64_t> vector_indptr,
                   Vector<const int64_t> vector_indices, Vector<const float> vector_data, int64_t n_features,
                   Vector<double> products) {
    const SparseRows<I> rows{indptr.data(), indices.data(), data.data()};
    const SparseRows<int64_t> vectors{vector_indptr.data(), vector_indices.data(), vector_data.data()};
    const int64_t *label_starts = label_indptr.data(), *groups = label_groups.data();
    const int64_t *group_starts = group_indptr.data(), *rows_of = group_rows.data();
    double *to_products = products.data();
    const size_t labels = label_indptr.shape(0) - 1;
    nb::gil_scoped_release released;
    Stop stop;
    std::vector<float> dense(static_cast<size_t>(n_features), 0.0f);
    std::vector<int64_t> members;
    std::vector<size_t> ends;
    for (size_t label = 0; label < labels; ++label) {
        gather(groups + label_starts[label], groups + label_starts[label + 1], group_starts, rows_of, members, ends);
        vectors.add_to(static_cast<int64_t>(label), dense.data());
        for (const int64_t row : members) {
            *to_products++ = rows.product(row, dense.data());
            stop.count(rows.length(row));
        }
        vectors.clear_in(static_cast<int64_t>(label), dense.data());
    }
}

}  // namespace

void bind_grouped(nb::module_ &m) {
    m.def("find_members", &find_members<int32_t>);
    m.def("find_members", &find_members<int64_t>);
    m.def("score_members", &score_members<int32_t>);
    m.def("score_members", &score_members<int64_t>);
}
