// The labels that each tree of a forest proposes for rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <limits>
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

    void offer(size_t row, float rank, int64_t label) {
        if (!(rank > nothing) || rank < floors_[row]) return;
        all_[row * 2 * places_ + held_[row]++] = packed(rank, label);
        if (held_[row] == 2 * places_) drop(row);
    }
    // Call `take(rank, label)` for the best labels of `row`, in any order.
    template <typename Take>
    void take(size_t row, Take take) {
        if (held_[row] > places_) drop(row);
        const uint64_t *from = all_.data() + row * 2 * places_;
        for (size_t i = 0; i < held_[row]; ++i) take(rank_of(from[i]), label_of(from[i]));
    }
    // The k-th best rank so far, or nothing.
    float kth(size_t row, size_t k) {
        uint64_t *from = all_.data() + row * 2 * places_;
        if (held_[row] < k) return nothing;
        std::nth_element(from, from + k - 1, from + held_[row], std::greater<uint64_t>());
        return rank_of(from[k - 1]);
    }
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

// What the trees of a forest contribute to the labels of rows. A tree contributes nothing to a label with a low score in
// it: lower than all scores that the first tree proposes, or than a share of its k-th best score. If there is a place
// for every label, all count.
class Sums {
  public:
    static constexpr float least_share = 0.3f;

    Sums(size_t rows, size_t n_labels, size_t k, size_t places)
        : n_labels_(n_labels), k_(k), places_(places), needed_(rows, 0.0f) {}

    // Add what the next tree proposes; `score(rank, label)` is its score without the factor of the label.
    template <typename Score>
    void add(Proposals &proposed, const float *factors, Score score) {
        const bool compare = places_ < n_labels_, first = trees_.empty();
        Contributions &own = trees_.emplace_back();
        own.bounds.reserve(needed_.size() + 1);
        own.bounds.push_back(0);
        std::vector<float> values;
        const auto weighted = [factors](const Contribution &each) {
            return factors ? each.score * factors[each.label] : each.score;
        };
        for (size_t row = 0; row < needed_.size(); ++row) {
            const auto start = static_cast<std::ptrdiff_t>(own.all.size());
            proposed.take(row, [&](float rank, int64_t label) {
                own.all.push_back({score(rank, label), static_cast<uint32_t>(label)});
            });
            if (first && compare) {
                values.clear();
                std::transform(own.all.begin() + start, own.all.end(), std::back_inserter(values), weighted);
                needed_[row] = needed(values);
            }
            const auto low = [&](const Contribution &each) { return weighted(each) < needed_[row]; };
            own.all.erase(std::remove_if(own.all.begin() + start, own.all.end(), low), own.all.end());
            own.bounds.push_back(own.all.size());
        }
    }

    // The score that a label of `row` needs in the next tree to count.
    float needed(size_t row) const { return needed_[row]; }

    void offer_means(const float *factors, Best &best) const {
        thread_local std::vector<float> sums;  // of every label; 0 between rows
        if (sums.size() < n_labels_) sums.resize(n_labels_, 0.0f);
        const float share = 1.0f / static_cast<float>(trees_.size());
        std::vector<uint32_t> labels;
        for (size_t row = 0; row < needed_.size(); ++row) {
            labels.clear();
            for (const Contributions &tree : trees_)
                for (size_t i = tree.bounds[row]; i < tree.bounds[row + 1]; ++i) {
                    float &sum = sums[tree.all[i].label];
                    if (sum == 0.0f) labels.push_back(tree.all[i].label);
                    sum += tree.all[i].score;
                }
            for (const uint32_t label : labels) {
                const float mean = std::min(1.0f, std::exchange(sums[label], 0.0f) * share);
                best.offer(row, {factors ? mean * factors[label] : mean, int64_t{label}});
            }
        }
    }

  private:
    struct Contribution {
        float score;
        uint32_t label;
    };
    struct Contributions {
        std::vector<Contribution> all;
        std::vector<size_t> bounds;  // of each row
    };

    // The score that a label needs beside these scores of the first tree; changes their order.
    float needed(std::vector<float> &scores) const {
        const float last = scores.size() < places_ ? 0.0f : *std::min_element(scores.begin(), scores.end());
        if (scores.size() < k_) return last;
        const auto kth = scores.begin() + static_cast<std::ptrdiff_t>(k_ - 1);
        std::nth_element(scores.begin(), kth, scores.end(), std::greater<float>());
        return std::max(last, least_share * *kth);
    }

    size_t n_labels_, k_, places_;
    std::vector<Contributions> trees_;
    std::vector<float> needed_;
};

}  // namespace
