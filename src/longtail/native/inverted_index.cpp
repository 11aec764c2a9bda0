// The items with the largest inner products with a sparse row, from an inverted index.
//
// Each feature has a list of the items that have it, with their values. A row adds up the lists of its features, in the
// order of its features. No list is skipped: bounds on the scores show too late which entries cannot matter, and an
// entry costs about as much to test as to add. Reads and writes stay within the arrays, whatever the index holds: it may
// be mapped from a file that was not verified.
#include "kernels.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include <nanobind/stl/optional.h>

#include "best.h"
#include "clamped.h"
#include "stop.h"

namespace {

// With fewer items than this for each entry, reading all sums in order is faster than reading those that changed.
constexpr size_t few_items = 8;

struct List {
    const int32_t *items;
    const float *values;
    size_t length;
    float factor;
};

// Working memory of a thread. Between rows all sums are 0.
struct Scratch {
    std::vector<float> sums;
    std::vector<List> lists;
    bool clean = true;

    void prepare(size_t n_items) {
        if (!clean) std::fill(sums.begin(), sums.end(), 0.0f);  // memory ran out in the row before
        if (sums.size() < n_items) sums.resize(n_items, 0.0f);
        clean = false;
    }
};

class InvertedIndex {
  public:
    InvertedIndex(int64_t n_items, Vector<const int64_t> starts, Vector<const int32_t> items,
                  Vector<const float> values)
        : n_items_(static_cast<uint32_t>(std::clamp<int64_t>(n_items, 0, INT32_MAX))),
          starts_(starts),
          items_(items),
          values_(values) {}

    void topk(Vector<const int64_t> indptr, Vector<const int32_t> indices, Vector<const float> data, int64_t first,
              int64_t last, std::optional<Vector<const bool>> mask, Matrix<int64_t> out_items,
              Matrix<float> out_scores) const {
        const size_t k = out_items.shape(1);
        const ClampedRows rows(indptr, indices, data.size());
        const float *values = data.data();
        const bool *allowed = mask ? mask->data() : nullptr;
        int64_t *to_items = out_items.data();
        float *to_scores = out_scores.data();
        if (k == 0) return;
        nb::gil_scoped_release released;
        thread_local Scratch scratch;
        Best best(1, k);
        Stop stop;
        for (int64_t row = first; row < last; ++row) {
            scratch.prepare(n_items_);
            const auto [from, to] = rows.bounds(row);
            const size_t steps = find(rows.columns + from, values + from, to - from, allowed, best, scratch);
            scratch.clean = true;
            const size_t place = static_cast<size_t>(row) * k;
            best.write_and_clear(0, to_items + place, to_scores + place);
            stop.count(steps + k + 1);
        }
    }

  private:
    // Offer the items with positive products to `best`; returns the number of steps.
    size_t find(const int32_t *features, const float *values, size_t count, const bool *allowed, Best &best,
                Scratch &scratch) const {
        const size_t total = collect(features, values, count, scratch.lists);
        float *sums = scratch.sums.data();
        for (const List &list : scratch.lists)
            for_each_item(list, [&](uint32_t item, size_t e) { sums[item] += list.factor * list.values[e]; });
        if (total > n_items_ / few_items) {
            take_in_order(allowed, best, sums);
            return total + n_items_ / few_items;
        }
        take_by_list(scratch.lists, allowed, best, sums);
        return 2 * total;
    }

    // The lists of the features, and the number of their entries.
    size_t collect(const int32_t *features, const float *values, size_t count, std::vector<List> &lists) const {
        const ClampedRows index(starts_, items_, values_.size());
        lists.clear();
        size_t total = 0;
        for (size_t j = 0; j < count; ++j) {
            const auto [from, to] = index.bounds(features[j]);
            if (from == to) continue;
            lists.push_back({index.columns + from, values_.data() + from, to - from, values[j]});
            total += to - from;
        }
        return total;
    }

    template <typename F>
    void for_each_item(const List &list, F f) const {
        for (size_t e = 0; e < list.length; ++e) {
            const uint32_t item = static_cast<uint32_t>(list.items[e]);
            if (item < n_items_) f(item, e);
        }
    }

    void take_in_order(const bool *allowed, Best &best, float *sums) const {
        const auto next = [&](size_t from) { return next_above(sums, from, n_items_, std::max(0.0f, best.floor(0))); };
        for (size_t item = next(0); item < n_items_; item = next(item + 1))
            if (!allowed || allowed[item]) best.offer(0, {sums[item], static_cast<int64_t>(item)});
        std::fill(sums, sums + n_items_, 0.0f);
    }

    // An item that comes again has a sum of 0 by then.
    void take_by_list(const std::vector<List> &lists, const bool *allowed, Best &best, float *sums) const {
        float floor = std::numeric_limits<float>::denorm_min();
        for (const List &list : lists)
            for_each_item(list, [&](uint32_t item, size_t) {
                const float sum = sums[item];
                sums[item] = 0.0f;
                if (sum >= floor && (!allowed || allowed[item])) {
                    best.offer(0, {sum, item});
                    floor = std::max(floor, best.floor(0));
                }
            });
    }

    uint32_t n_items_;
    Vector<const int64_t> starts_;
    Vector<const int32_t> items_;
    Vector<const float> values_;
};

}  // namespace

void bind_inverted_index(nb::module_ &m) {
    nb::class_<InvertedIndex>(m, "InvertedIndex")
        .def(nb::init<int64_t, Vector<const int64_t>, Vector<const int32_t>, Vector<const float>>(),
             nb::arg("n_items"), nb::arg("starts"), nb::arg("items"), nb::arg("values"))
        .def("topk", &InvertedIndex::topk, nb::arg("indptr"), nb::arg("indices"), nb::arg("data"), nb::arg("first"),
             nb::arg("last"), nb::arg("mask").none(), nb::arg("out_items").noconvert(),
             nb::arg("out_scores").noconvert());
}
