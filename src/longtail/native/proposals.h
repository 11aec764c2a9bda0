// The labels that each tree of a forest proposes for rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "best.h"

namespace {

// The best labels of rows in one tree, and a floor for each row: labels that rank below it are not taken. Labels are
// collected until there are twice as many as places, and then the worse half is dropped, which is cheaper than a heap.
class Proposals {
  public:
    Proposals(size_t rows, size_t places)
        : places_(places), held_(rows, 0), floors_(rows, nothing), all_(rows * 2 * places) {}

    // Returns whether labels were dropped.
    bool offer(size_t row, float rank, int64_t label) {
        if (!(rank > nothing) || rank < floors_[row]) return false;
        all_[row * 2 * places_ + held_[row]++] = packed(rank, label);
        if (held_[row] < 2 * places_) return false;
        drop(row);
        return true;
    }
    // Write the best labels of `row` to `best`, in any order.
    void take(size_t row, std::vector<Scored> &best) {
        if (held_[row] > places_) drop(row);
        best.clear();
        const uint64_t *from = all_.data() + row * 2 * places_;
        for (size_t i = 0; i < held_[row]; ++i) best.push_back({rank_of(from[i]), label_of(from[i])});
    }
    // The k-th best rank so far, or nothing.
    float kth(size_t row, size_t k) {
        uint64_t *from = all_.data() + row * 2 * places_;
        if (held_[row] < k) return nothing;
        std::nth_element(from, from + k - 1, from + held_[row], std::greater<uint64_t>());
        return rank_of(from[k - 1]);
    }
    size_t total() const { return std::accumulate(held_.begin(), held_.end(), size_t{0}); }
    float floor(size_t row) const { return floors_[row]; }
    void raise(size_t row, float floor) { floors_[row] = std::max(floors_[row], floor); }
    void restart(size_t row, float floor) {
        held_[row] = 0;
        floors_[row] = floor;
    }

  private:
    static constexpr uint32_t sign = 0x80000000u;

    // A number that is larger for a better rank and, if ranks are equal, for a lower label. Such numbers are compared
    // faster than pairs.
    static uint64_t packed(float rank, int64_t label) {
        rank += 0.0f;  // -0 becomes 0
        uint32_t bits;
        std::memcpy(&bits, &rank, sizeof bits);
        bits = bits & sign ? ~bits : bits | sign;
        return uint64_t{bits} << 32 | (0xFFFFFFFFu - static_cast<uint32_t>(label));
    }
    static float rank_of(uint64_t packed) {
        uint32_t bits = static_cast<uint32_t>(packed >> 32);
        bits = bits & sign ? bits & ~sign : ~bits;
        float rank;
        std::memcpy(&rank, &bits, sizeof rank);
        return rank;
    }
    static int64_t label_of(uint64_t packed) { return 0xFFFFFFFFu - static_cast<uint32_t>(packed); }

    // Drop labels below the floor, and the worst if there are still more than places.
    void drop(size_t row) {
        uint64_t *from = all_.data() + row * 2 * places_, *end = from + held_[row];
        end = std::remove_if(from, end, [floor = floors_[row]](uint64_t each) { return rank_of(each) < floor; });
        if (end > from + places_) {
            std::nth_element(from, from + places_ - 1, end, std::greater<uint64_t>());
            end = from + places_;
            raise(row, rank_of(end[-1]));
        }
        held_[row] = static_cast<size_t>(end - from);
    }

    size_t places_;
    std::vector<size_t> held_;
    std::vector<float> floors_;
    std::vector<uint64_t> all_;
};

// What the trees of a forest contribute to the labels of rows, in sum. A tree contributes nothing to a label with a low
// score in it: lower than the mean score of the label in the last place, or than a share of the k-th best mean score.
// These are means over the trees before; the first tree compares with its own scores. If there is a place for every
// label, all count.
class Sums {
  public:
    static constexpr float least_share = 0.2f;

    Sums(size_t rows, size_t n_trees, size_t n_labels, size_t k, size_t places)
        : n_trees_(n_trees), n_labels_(n_labels), k_(k), places_(places), bounds_(rows + 1, 0), needed_(rows, 0.0f) {}

    // Add what the next tree proposes; `score(rank, label)` is its score without the factor of the label.
    template <typename Score>
    void add(Proposals &proposed, const float *factors, Score score) {
        thread_local std::vector<float> sum_of;  // of every label; 0 between rows
        if (sum_of.size() < n_labels_) sum_of.resize(n_labels_, 0.0f);
        const auto weighted = [factors](const Scored &each) { return factors ? each.score * factors[each.id] : each.score; };
        std::vector<Scored> sums(sums_.size() + proposed.total()), found;
        std::vector<float> values;
        const auto needed = [&](const Scored *each, const Scored *end, size_t n_trees) {
            values.clear();
            for (; each != end; ++each) values.push_back(weighted(*each));
            const float last = kth_largest(values, places_);  // the next call finds the values sorted in part
            return std::max(last, least_share * kth_largest(values, k_)) / static_cast<float>(n_trees);
        };
        const bool first = added_ == 0, compare = places_ < n_labels_;
        ++added_;
        size_t end = 0;
        for (size_t row = 0; row < needed_.size(); ++row) {
            proposed.take(row, found);
            for (Scored &each : found) each.score = score(each.score, each.id);
            if (compare && first) needed_[row] = needed(found.data(), found.data() + found.size(), 1);
            const size_t start = end;
            for (size_t i = bounds_[row]; i < bounds_[row + 1]; ++i) {
                sum_of[static_cast<size_t>(sums_[i].id)] = sums_[i].score;
                sums[end++] = sums_[i];
            }
            for (const Scored &each : found) {
                if (weighted(each) < needed_[row]) continue;
                float &sum = sum_of[static_cast<size_t>(each.id)];
                if (sum == 0.0f) sums[end++] = each;
                sum += each.score;
            }
            for (size_t i = start; i < end; ++i)
                sums[i].score = std::exchange(sum_of[static_cast<size_t>(sums[i].id)], 0.0f);
            if (compare && added_ < n_trees_) needed_[row] = needed(sums.data() + start, sums.data() + end, added_);
            bounds_[row] = start;
        }
        bounds_.back() = end;
        sums_ = std::move(sums);
    }

    // The score that a label of `row` needs in the next tree to count.
    float needed(size_t row) const { return needed_[row]; }

    void offer_means(const float *factors, Best &best) const {
        const float share = 1.0f / static_cast<float>(n_trees_);
        for (size_t row = 0; row < needed_.size(); ++row)
            for (size_t i = bounds_[row]; i < bounds_[row + 1]; ++i) {
                const auto [sum, label] = sums_[i];
                best.offer(row, {std::min(1.0f, sum * share) * (factors ? factors[label] : 1.0f), label});
            }
    }

  private:
    // The k-th largest value, or 0 if there are fewer; changes their order.
    static float kth_largest(std::vector<float> &values, size_t k) {
        if (values.size() < k) return 0.0f;
        const auto kth = values.begin() + static_cast<std::ptrdiff_t>(k - 1);
        std::nth_element(values.begin(), kth, values.end(), std::greater<float>());
        return *kth;
    }

    size_t n_trees_, n_labels_, k_, places_, added_ = 0;
    std::vector<Scored> sums_;
    std::vector<size_t> bounds_;  // of the sums of each row
    std::vector<float> needed_;
};

}  // namespace
