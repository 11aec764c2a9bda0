// Rows of a CSR matrix that may be mapped from a file that was not verified.
#pragma once

#include <algorithm>
#include <utility>

#include "kernels.h"

struct ClampedRows {
    const int64_t *starts;
    const int32_t *columns;
    size_t n_rows, n_entries;

    // `n_values` is the length of the array of values, if there is one.
    ClampedRows(const Vector<const int64_t> &indptr, const Vector<const int32_t> &indices, size_t n_values)
        : starts(indptr.data()),
          columns(indices.data()),
          n_rows(indptr.size() > 0 ? indptr.size() - 1 : 0),
          n_entries(std::min<size_t>(indices.size(), n_values)) {}

    // Where the entries of a row begin and end; nothing for a row that does not exist.
    std::pair<size_t, size_t> bounds(int64_t row) const {
        if (row < 0 || static_cast<size_t>(row) >= n_rows) return {0, 0};
        const size_t from = within(starts[row]);
        return {from, std::max(from, within(starts[row + 1]))};
    }

  private:
    size_t within(int64_t start) const {
        return std::min(static_cast<size_t>(std::max<int64_t>(start, 0)), n_entries);
    }
};
