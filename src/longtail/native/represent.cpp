// Represent labels as sparse combinations of other labels: for each label y
//     minimise |z|_1 + alpha |y - A z|_2
// by coordinate descent on a growing working set. Of the columns of A only their products are needed.
//
// The norm has a kink where the residual is 0; below `floor` it is replaced by a parabola, which costs at most half of
// the tolerance. Near the kink, coordinates block one another, so a leap regularly moves all of them together to the
// minimum of a parabola above the objective, as far as their signs allow. Each label stops at its own certificate: the
// residual, scaled until no product with a column of A exceeds 1, gives a lower bound on the optimum.
#include "kernels.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "owned.h"
#include "stop.h"

namespace {

// Number of labels that join the working set at a time, unless more are already in use.
constexpr size_t fewest_joining = 16;
// The working set is solved to this share of the overall gap before other labels are checked again.
constexpr double inner_share = 0.2;
// Sweeps between leaps; more if a leap costs more because many coefficients are in use.
constexpr size_t sweeps_between_leaps = 20;
// Maximum number of consecutive leaps, each of which ends where a coefficient becomes 0.
constexpr int most_leaps = 16;
// Added to the squares of labels, so that linearly dependent labels can be solved.
constexpr double ridge = 1e-10;
// Coefficients below this are rounding errors.
constexpr double nothing_left = 1e-12;

LONGTAIL_WIDE void subtract(size_t count, double factor, const double *row, double *values) {
    for (size_t i = 0; i < count; ++i) values[i] -= factor * row[i];
}

struct Products {
    const int64_t *starts;
    const int32_t *labels;
    const double *values;
};

struct Solution {
    double norm = 0.0, objective = 0.0, bound = 0.0;
    int64_t sweeps = 0;
};

class Representation {
  public:
    Representation(const Products &gram, size_t n_labels, double alpha, double tolerance, int64_t max_sweeps)
        : gram_(gram), alpha_(alpha), tolerance_(tolerance), max_sweeps_(max_sweeps), products_(n_labels, 0.0),
          is_touched_(n_labels, 0), position_(n_labels, -1) {}

    // Solve for the label whose products with the columns of A are in row `row` of `targets`.
    Solution solve(const Products &targets, int64_t row, double square, int64_t excluded) {
        square_ = square;
        excluded_ = excluded;
        begin(targets, row);
        const double strongest = strongest_product();
        Solution best;
        best.norm = std::sqrt(square);
        best.objective = alpha_ * best.norm;
        best.bound = strongest > 0.0 ? std::min(best.objective, square / strongest) : best.objective;
        floor_ = tolerance_ * best.bound / alpha_;
        while (best.sweeps < max_sweeps_ && best.objective - best.bound > tolerance_ * best.objective) {
            extend(std::max(norm(), floor_));
            best.sweeps += descend(inner_share * (best.objective - best.bound), max_sweeps_ - best.sweeps);
            spread();
            judge(best);
        }
        return best;
    }

    // Append the best coefficients, lowest label first, and reset.
    int64_t finish(std::vector<int32_t> &labels, std::vector<double> &coefficients) {
        order_.clear();
        for (size_t i = 0; i < best_.size(); ++i)
            if (std::abs(best_[i]) > nothing_left) order_.push_back(i);
        std::sort(order_.begin(), order_.end(), [this](size_t a, size_t b) { return members_[a] < members_[b]; });
        for (const size_t i : order_) {
            labels.push_back(members_[i]);
            coefficients.push_back(best_[i]);
        }
        for (const int32_t label : touched_) {
            products_[label] = 0.0;
            is_touched_[label] = 0;
        }
        for (const int32_t label : members_) position_[label] = -1;
        return static_cast<int64_t>(order_.size());
    }

  private:
    void begin(const Products &targets, int64_t row) {
        touched_.clear();
        members_.clear();
        for (auto *values : {&z_, &spread_z_, &targets_, &inner_, &best_}) values->clear();
        for (int64_t e = targets.starts[row]; e < targets.starts[row + 1]; ++e)
            add_product(targets.labels[e], targets.values[e]);
    }

    void add_product(int32_t label, double value) {
        if (!is_touched_[label]) {
            is_touched_[label] = 1;
            touched_.push_back(label);
        }
        products_[label] += value;
    }

    double strongest_product() const {
        double strongest = 0.0;
        for (const int32_t label : touched_)
            if (label != excluded_) strongest = std::max(strongest, std::abs(products_[label]));
        return strongest;
    }

    // |y - A z| from products, within the working set.
    double norm() const {
        double left = square_;
        for (size_t i = 0; i < z_.size(); ++i) left -= z_[i] * (targets_[i] + inner_[i]);
        return std::sqrt(std::max(left, 0.0));
    }

    double length() const {
        double sum = 0.0;
        for (const double z : z_) sum += std::abs(z);
        return sum;
    }

    // The lower bound on the optimum from the residual, whose largest product is `strongest`.
    double lower_bound(double norm, double strongest) const {
        const double sigma = std::max(norm, floor_);
        double with_target = square_;
        for (size_t i = 0; i < z_.size(); ++i) with_target -= z_[i] * targets_[i];
        return with_target / std::max(sigma / alpha_, strongest);
    }

    void judge(Solution &best) {
        const double norm = this->norm(), objective = length() + alpha_ * norm;
        best.bound = std::max(best.bound, lower_bound(norm, strongest_product()));
        if (objective >= best.objective) return;
        best.norm = norm;
        best.objective = objective;
        best_ = z_;
    }

    // Add the labels that violate their constraint most, ties to the lowest id.
    void extend(double sigma) {
        joining_.clear();
        for (const int32_t label : touched_)
            if (position_[label] < 0 && label != excluded_ && alpha_ * std::abs(products_[label]) > sigma)
                joining_.push_back(label);
        const auto in_use = std::count_if(z_.begin(), z_.end(), [](double z) { return z != 0.0; });
        const size_t most = std::min(joining_.size(), std::max(fewest_joining, static_cast<size_t>(in_use)));
        std::partial_sort(joining_.begin(), joining_.begin() + static_cast<std::ptrdiff_t>(most), joining_.end(),
                          [this](int32_t a, int32_t b) {
                              const double one = std::abs(products_[a]), other = std::abs(products_[b]);
                              return one != other ? one > other : a < b;
                          });
        joining_.resize(most);
        for (const int32_t label : joining_) join(label);
    }

    void join(int32_t label) {
        const size_t size = members_.size();
        if (size == stride_) widen();
        position_[label] = static_cast<int32_t>(size);
        members_.push_back(label);
        std::fill_n(square_rows_.begin() + static_cast<std::ptrdiff_t>(size * stride_), size + 1, 0.0);
        for (size_t i = 0; i < size; ++i) square_rows_[i * stride_ + size] = 0.0;
        for (int64_t e = gram_.starts[label]; e < gram_.starts[label + 1]; ++e) {
            const int32_t other = position_[gram_.labels[e]];
            if (other < 0) continue;
            square_rows_[size * stride_ + static_cast<size_t>(other)] = gram_.values[e];
            square_rows_[static_cast<size_t>(other) * stride_ + size] = gram_.values[e];
        }
        double target = products_[label];
        for (size_t i = 0; i < size; ++i) target += spread_z_[i] * square_rows_[size * stride_ + i];
        z_.push_back(0.0);
        spread_z_.push_back(0.0);
        targets_.push_back(target);
        inner_.push_back(products_[label]);
    }

    void widen() {
        const size_t wider = std::max<size_t>(64, 2 * stride_), size = members_.size();
        std::vector<double> rows(wider * wider, 0.0);
        for (size_t i = 0; i < size; ++i)
            std::copy_n(square_rows_.begin() + static_cast<std::ptrdiff_t>(i * stride_), size,
                        rows.begin() + static_cast<std::ptrdiff_t>(i * wider));
        square_rows_.swap(rows);
        stride_ = wider;
    }

    // Sweep over the working set until its own gap is at most `gap`.
    int64_t descend(double gap, int64_t most) {
        const size_t size = z_.size();
        int64_t sweep = 0;
        for (; sweep < most; ++sweep) {
            stop_.count(size * size + 1);
            double left = norm();
            left *= left;
            for (size_t i = 0; i < size; ++i) {
                const double *row = square_rows_.data() + i * stride_;
                const double before = z_[i], product = inner_[i];
                const double step = minimiser(before, product, row[i], left) - before;
                if (step == 0.0) continue;
                z_[i] += step;
                left = std::max(left - step * (2.0 * product - step * row[i]), 0.0);
                subtract(size, step, row, inner_.data());
            }
            if ((sweep + 1) % leap_period() == 0)
                for (int leaps = 0; leaps < most_leaps && leap();) ++leaps;
            double strongest = 0.0;
            for (size_t i = 0; i < size; ++i) strongest = std::max(strongest, std::abs(inner_[i]));
            const double norm = this->norm();
            if (length() + alpha_ * norm - lower_bound(norm, strongest) <= gap) return sweep + 1;
        }
        return sweep;
    }

    // The best value of one coefficient: |z| + alpha sqrt(rest + square (centre - z)^2), with the parabola near 0.
    double minimiser(double z, double product, double square, double left) const {
        const double slope = alpha_ * alpha_ * square - 1.0;
        if (slope <= 0.0) return 0.0;
        const double centre = z + product / square, rest = std::max(left - product * product / square, 0.0);
        double shrink = std::sqrt(rest / (square * slope));
        if (rest + square * shrink * shrink < floor_ * floor_) shrink = floor_ / (alpha_ * square);
        return std::copysign(std::max(std::abs(centre) - shrink, 0.0), centre);
    }

    int64_t leap_period() const {
        const auto in_use = std::count_if(z_.begin(), z_.end(), [](double z) { return z != 0.0; });
        return std::max(static_cast<int64_t>(sweeps_between_leaps), static_cast<int64_t>(in_use) / 3);
    }

    // Move all nonzero coefficients at once; return whether one of them became 0.
    bool leap() {
        order_.clear();
        for (size_t i = 0; i < z_.size(); ++i)
            if (z_[i] != 0.0) order_.push_back(i);
        const size_t size = order_.size();
        const double shrink = std::max(norm(), floor_) / alpha_;
        downhill_.resize(size);
        for (size_t a = 0; a < size; ++a) downhill_[a] = inner_[order_[a]] - std::copysign(shrink, z_[order_[a]]);
        direction_ = downhill_;
        solve_in_use();
        double slope = 0.0, curvature = 0.0;
        for (size_t a = 0; a < size; ++a) {
            slope += downhill_[a] * direction_[a];
            const double *row = square_rows_.data() + order_[a] * stride_;
            double image = 0.0;
            for (size_t b = 0; b < size; ++b) image += row[order_[b]] * direction_[b];
            curvature += direction_[a] * image;
        }
        if (!(slope > 0.0)) return false;
        double reach = curvature > 0.0 ? slope / curvature : HUGE_VAL;
        size_t first = size;
        for (size_t a = 0; a < size; ++a) {
            const double until = -z_[order_[a]] / direction_[a];
            if (until > 0.0 && until < reach) {
                reach = until;
                first = a;
            }
        }
        if (!std::isfinite(reach)) return false;
        for (size_t a = 0; a < size; ++a) {
            const double step = a == first ? -z_[order_[a]] : reach * direction_[a];
            z_[order_[a]] += step;
            subtract(z_.size(), step, square_rows_.data() + order_[a] * stride_, inner_.data());
        }
        return first < size;
    }

    // Solve (S + ridge) d = direction_ in place by Cholesky factors, where S holds the products of the labels in use.
    void solve_in_use() {
        const size_t size = order_.size();
        factor_.resize(size * size);
        double largest = 0.0;
        for (const size_t i : order_) largest = std::max(largest, square_rows_[i * stride_ + i]);
        for (size_t a = 0; a < size; ++a) {
            double *row = factor_.data() + a * size;
            const double *products = square_rows_.data() + order_[a] * stride_;
            stop_.count(a * a);
            for (size_t b = 0; b <= a; ++b) {
                const double *other = factor_.data() + b * size;
                double value = products[order_[b]];
                for (size_t c = 0; c < b; ++c) value -= row[c] * other[c];
                row[b] = a == b ? std::sqrt(std::max(value, 0.0) + ridge * largest) : value / other[b];
            }
            double value = direction_[a];
            for (size_t c = 0; c < a; ++c) value -= row[c] * direction_[c];
            direction_[a] = value / row[a];
        }
        for (size_t a = size; a-- > 0;) {
            const double *row = factor_.data() + a * size;
            direction_[a] /= row[a];
            for (size_t c = 0; c < a; ++c) direction_[c] -= row[c] * direction_[a];
        }
    }

    // Apply the changes of the working set to the products with all labels.
    void spread() {
        for (size_t i = 0; i < z_.size(); ++i) {
            const double change = z_[i] - spread_z_[i];
            if (change == 0.0) continue;
            spread_z_[i] = z_[i];
            const int32_t label = members_[i];
            for (int64_t e = gram_.starts[label]; e < gram_.starts[label + 1]; ++e)
                add_product(gram_.labels[e], -change * gram_.values[e]);
        }
        for (size_t i = 0; i < z_.size(); ++i) inner_[i] = products_[members_[i]];
    }

    Products gram_;
    double alpha_, tolerance_;
    int64_t max_sweeps_;
    double square_ = 0.0, floor_ = 0.0;
    int64_t excluded_ = -1;
    size_t stride_ = 0;
    std::vector<double> products_;  // A'(y - A z), all labels, at `spread_z_`
    std::vector<char> is_touched_;
    std::vector<int32_t> position_;  // of each label in the working set, or -1
    std::vector<int32_t> touched_, members_, joining_;
    std::vector<double> z_, spread_z_, best_, targets_, inner_, square_rows_, downhill_, direction_, factor_;
    std::vector<size_t> order_;
    Stop stop_;
};

nb::tuple represent_labels(Vector<const int64_t> indptr, Vector<const int32_t> indices, Vector<const double> data,
                           Vector<const int64_t> target_indptr, Vector<const int32_t> target_indices,
                           Vector<const double> target_data, Vector<const double> squares,
                           Vector<const int64_t> excluded, double alpha, double tolerance, int64_t max_sweeps,
                           Vector<int64_t> counts, Vector<int64_t> sweeps, Vector<double> norms,
                           Vector<double> objectives, Vector<double> bounds) {
    const Products gram{indptr.data(), indices.data(), data.data()};
    const Products targets{target_indptr.data(), target_indices.data(), target_data.data()};
    std::vector<int32_t> labels;
    std::vector<double> coefficients;
    {
        nb::gil_scoped_release released;
        Representation representation(gram, indptr.shape(0) - 1, alpha, tolerance, max_sweeps);
        for (size_t i = 0; i < squares.shape(0); ++i) {
            const Solution solution =
                representation.solve(targets, static_cast<int64_t>(i), squares.data()[i], excluded.data()[i]);
            counts.data()[i] = representation.finish(labels, coefficients);
            sweeps.data()[i] = solution.sweeps;
            norms.data()[i] = solution.norm;
            objectives.data()[i] = solution.objective;
            bounds.data()[i] = solution.bound;
        }
    }
    return nb::make_tuple(owned(std::move(labels)), owned(std::move(coefficients)));
}

}  // namespace

void bind_represent(nb::module_ &m) { m.def("represent_labels", &represent_labels); }
