// Labels known only for groups of rows: vectors of labels that look for one row in each of their groups, and what the
// members of groups have in common with the vectors of their labels.
//
// A label's vector is a weighted sum of the members of its groups, so it need not be written out while it moves: kept are
// the weight of each member and its product with the vector. A sweep then reads the members once, and only if another
// member than before was the best of its group.
#include "kernels.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "dot.h"

namespace {

// Members whose sum is shorter than this share of their lengths cancel out: the rest is rounding.
constexpr double nothing_left = 1e-6;

template <typename I>
struct SparseRows {
    const I *starts, *features;
    const float *values;

    size_t length(int64_t row) const { return static_cast<size_t>(starts[row + 1] - starts[row]); }

    float product(int64_t row, const float *dense) const {
        return dot(features + starts[row], values + starts[row], length(row), dense);
    }
    void add_to(int64_t row, float *dense) const {
        for (I e = starts[row]; e < starts[row + 1]; ++e) dense[features[e]] += values[e];
    }
    void clear_in(int64_t row, float *dense) const {
        for (I e = starts[row]; e < starts[row + 1]; ++e) dense[features[e]] = 0.0f;
    }
};

// The vector of one label, on its way.
template <typename I>
class LabelVector {
  public:
    LabelVector(const SparseRows<I> &rows, const double *norms, size_t n_features)
        : rows_(rows), norms_(norms), sum_(n_features, 0.0f) {}

    // Take up the members of the label's groups; `ends` says where each group ends.
    void begin(int64_t label, const std::vector<int64_t> &members, const std::vector<size_t> &ends, double *weights,
               double *products) {
        members_ = &members;
        ends_ = &ends;
        weights_ = weights;
        products_ = products;
        picks_.clear();
        moves_.resize(members.size());
        double lengths = 0.0;
        for (const int64_t row : members) lengths += norms_[row];
        std::fill(weights, weights + members.size(), 0.0);
        std::fill(products, products + members.size(), 0.0);
        if (lengths == 0.0) return;
        start_.resize(members.size());
        for (size_t i = 0; i < members.size(); ++i) start_[i] = i;
        double length = project(start_, products);
        if (length <= nothing_left * lengths) {
            // Members cancel out: start from one of them, another one for each label.
            start_.clear();
            for (size_t i = 0; i < members.size(); ++i)
                if (norms_[members[i]] > 0.0) start_.push_back(i);
            start_ = {start_[static_cast<size_t>(label) % start_.size()]};
            length = project(start_, products);
        }
        for (const size_t i : start_) weights[i] = 1.0 / length;
        for (size_t i = 0; i < members.size(); ++i) products[i] /= length;
    }

    // One step of the given size towards the best members; false where it leads nowhere.
    bool move(double step) {
        best_.clear();
        double objective = 0.0;
        for (size_t group = 0, i = 0; group < ends_->size(); ++group) {
            size_t best = i;
            for (; i < (*ends_)[group]; ++i)
                if (products_[i] > products_[best]) best = i;
            best_.push_back(best);
            objective += products_[best];
        }
        if (best_ != picks_) {
            picks_ = best_;
            length_ = project(picks_, moves_.data());
        }
        if (!(length_ > 0.0)) return false;
        const double square = 1.0 + 2.0 * step * objective / length_ + step * step;
        if (!(square > nothing_left)) return false;
        const double norm = std::sqrt(square), share = step / length_;
        for (size_t i = 0; i < moves_.size(); ++i) products_[i] = (products_[i] + share * moves_[i]) / norm;
        for (size_t i = 0; i < moves_.size(); ++i) weights_[i] /= norm;
        for (const size_t i : picks_) weights_[i] += share / norm;
        return true;
    }

    double objective() const {
        double sum = 0.0;
        for (size_t group = 0, i = 0; group < ends_->size(); i = (*ends_)[group++])
            sum += *std::max_element(products_ + i, products_ + (*ends_)[group]);
        return sum;
    }

  private:
    // Products of all members with the sum of the chosen ones; the length of that sum.
    double project(const std::vector<size_t> &chosen, double *products) {
        for (const size_t i : chosen) rows_.add_to((*members_)[i], sum_.data());
        for (size_t i = 0; i < members_->size(); ++i) products[i] = rows_.product((*members_)[i], sum_.data());
        double square = 0.0;
        for (const size_t i : chosen) square += products[i];
        for (const size_t i : chosen) rows_.clear_in((*members_)[i], sum_.data());
        return std::sqrt(std::max(0.0, square));
    }

    const SparseRows<I> &rows_;
    const double *norms_;
    const std::vector<int64_t> *members_ = nullptr;
    const std::vector<size_t> *ends_ = nullptr;
    double *weights_ = nullptr, *products_ = nullptr;
    std::vector<float> sum_;
    std::vector<size_t> start_, best_, picks_;
    std::vector<double> moves_;
    double length_ = 0.0;
};

// The members of a label's groups, one group after the other; groups without members are passed over.
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
        // Where every group has one member there is nothing to choose, and no step changes anything.
        if (members.size() > ends.size())
            for (int64_t sweep = 0; sweep < n_iter && vector.move(step); ++sweep) {
            }
        to_objectives[label] = vector.objective();
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
    std::vector<float> dense(static_cast<size_t>(n_features), 0.0f);
    std::vector<int64_t> members;
    std::vector<size_t> ends;
    for (size_t label = 0; label < labels; ++label) {
        gather(groups + label_starts[label], groups + label_starts[label + 1], group_starts, rows_of, members, ends);
        vectors.add_to(static_cast<int64_t>(label), dense.data());
        for (const int64_t row : members) *to_products++ = rows.product(row, dense.data());
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
