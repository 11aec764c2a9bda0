// Products of a CSR matrix: with a dense matrix, with a sparse one, with itself.
#include "kernels.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "stop.h"

namespace {

#if defined(__GNUC__)
#define ALWAYS_INLINE inline __attribute__((always_inline))
#else
#define ALWAYS_INLINE inline
#endif

#if defined(__GNUC__)
using Lane = float __attribute__((vector_size(32)));
#else
struct Lane {
    float value[8] = {};
    Lane &operator+=(const Lane &other) {
        for (int j = 0; j < 8; ++j) value[j] += other.value[j];
        return *this;
    }
    friend Lane operator*(float factor, const Lane &lane) {
        Lane product;
        for (int j = 0; j < 8; ++j) product.value[j] = factor * lane.value[j];
        return product;
    }
};
#endif
constexpr size_t lane = sizeof(Lane) / sizeof(float);

// How many entries ahead the rows of the dense matrix are prefetched; they come in no particular order.
constexpr size_t ahead = 8;

ALWAYS_INLINE void prefetch(const float *address) {
#if defined(__GNUC__)
    __builtin_prefetch(address);
#else
    (void)address;
#endif
}

// Sums of `lanes` vectors of columns, kept in registers while the entries of a row are read.
template <size_t lanes, typename I>
ALWAYS_INLINE void combine_tile(const I *indices, const I *end, const float *data, size_t count, const float *dense,
                                size_t width, float *out) {
    Lane sums[lanes] = {};
    for (size_t e = 0; e < count; ++e) {
        if (indices + e + ahead < end) {
            const float *coming = dense + static_cast<size_t>(indices[e + ahead]) * width;
            for (size_t j = 0; j < lanes * lane; j += 16) prefetch(coming + j);
        }
        const float value = data[e];
        const float *row = dense + static_cast<size_t>(indices[e]) * width;
        for (size_t j = 0; j < lanes; ++j) {
            Lane part;
            std::memcpy(&part, row + j * lane, sizeof(Lane));
            sums[j] += value * part;
        }
    }
    for (size_t j = 0; j < lanes; ++j) std::memcpy(out + j * lane, &sums[j], sizeof(Lane));
}

template <typename I>
ALWAYS_INLINE void combine_rows(const I *indices, const I *end, const float *data, size_t count, const float *dense,
                                size_t width, float *out) {
    size_t column = 0;
    for (; column + 8 * lane <= width; column += 8 * lane)
        combine_tile<8>(indices, end, data, count, dense + column, width, out + column);
    for (; column + 4 * lane <= width; column += 4 * lane)
        combine_tile<4>(indices, end, data, count, dense + column, width, out + column);
    for (; column + lane <= width; column += lane)
        combine_tile<1>(indices, end, data, count, dense + column, width, out + column);
    if (column == width) return;
    std::fill(out + column, out + width, 0.0f);
    for (size_t e = 0; e < count; ++e) {
        const float value = data[e];
        const float *row = dense + static_cast<size_t>(indices[e]) * width;
        for (size_t j = column; j < width; ++j) out[j] += value * row[j];
    }
}

LONGTAIL_WIDE void combine(const int32_t *indices, const int32_t *end, const float *data, size_t count, const float *dense,
                           size_t width, float *out) {
    combine_rows(indices, end, data, count, dense, width, out);
}
LONGTAIL_WIDE void combine(const int64_t *indices, const int64_t *end, const float *data, size_t count, const float *dense,
                           size_t width, float *out) {
    combine_rows(indices, end, data, count, dense, width, out);
}

template <typename I>
void multiply(Vector<const I> indptr, Vector<const I> indices, Vector<const float> data, Matrix<const float> dense,
              Matrix<float> out) {
    const I *starts = indptr.data(), *columns = indices.data();
    const float *values = data.data(), *right = dense.data();
    float *result = out.data();
    const size_t rows = out.shape(0), width = out.shape(1);
    nb::gil_scoped_release released;
    Stop stop;
    for (size_t i = 0; i < rows; ++i) {
        const size_t start = static_cast<size_t>(starts[i]), count = static_cast<size_t>(starts[i + 1]) - start;
        combine(columns + start, columns + starts[rows], values + start, count, right, width, result + i * width);
        stop.count((count + 1) * (width / lane + 1));
    }
}

// Here and in `gram_rows` the sums have the precision of the result, `S`.
template <typename I, typename J, typename S>
void multiply_sparse(Vector<const I> indptr, Vector<const I> indices, Vector<const float> data,
                     Vector<const J> right_indptr, Vector<const J> right_indices, Vector<const float> right_data,
                     Matrix<S> out) {
    const I *starts = indptr.data(), *columns = indices.data();
    const J *right_starts = right_indptr.data(), *right_columns = right_indices.data();
    const float *values = data.data(), *right_values = right_data.data();
    const size_t rows = out.shape(0), width = out.shape(1);
    S *result = out.data();
    nb::gil_scoped_release released;
    Stop stop;
    for (size_t i = 0; i < rows; ++i) {
        S *sums = result + i * width;
        std::fill(sums, sums + width, S(0));
        size_t steps = width / lane + 1;
        for (I e = starts[i]; e < starts[i + 1]; ++e) {
            const S value = values[e];
            const J begin = right_starts[columns[e]], end = right_starts[columns[e] + 1];
            for (J r = begin; r < end; ++r) sums[right_columns[r]] += value * right_values[r];
            steps += static_cast<size_t>(end - begin) + 1;
        }
        stop.count(steps);
    }
}

// Add the products of a feature with the features from it on, over the rows from `row` on, which all have it.
template <typename I, typename S>
void add_products(const I *row, const I *last_row, const I *starts, const I *columns, const float *values, I *cursors,
                  S *sums) {
    for (; row != last_row; ++row) {
        const I here = cursors[*row]++, end = starts[*row + 1];
        const S value = values[here];
        for (I e = here; e < end; ++e) sums[columns[e]] += value * values[e];
    }
}

// Rows first..last of the upper triangle of X'X, and nothing else, in `out`. The feature's row of the result stays in cache while the rows of X
// with that feature are read; `cursors` hold the place of the feature in each of those rows.
template <typename I, typename S>
void gram_rows(Vector<const I> indptr, Vector<const I> indices, Vector<const float> data,
               Vector<const I> column_indptr, Vector<const I> column_rows, int64_t first, int64_t last, Matrix<S> out) {
    const I *starts = indptr.data(), *columns = indices.data();
    const I *column_starts = column_indptr.data(), *rows = column_rows.data();
    const float *values = data.data();
    const size_t width = out.shape(1), n_rows = indptr.shape(0) - 1;
    S *result = out.data();
    nb::gil_scoped_release released;
    Stop stop;
    const size_t row_length = static_cast<size_t>(starts[n_rows]) / std::max<size_t>(1, n_rows) + 1;
    std::vector<I> cursors(n_rows);
    for (size_t i = 0; i < n_rows; ++i)
        cursors[i] = static_cast<I>(
            std::lower_bound(columns + starts[i], columns + starts[i + 1], static_cast<I>(first)) - columns);
    for (int64_t feature = first; feature < last; ++feature) {
        S *sums = result + static_cast<size_t>(feature - first) * width;
        std::fill(sums + feature, sums + width, S(0));
        const I *row = rows + column_starts[feature], *last_row = rows + column_starts[feature + 1];
        add_products(row, last_row, starts, columns, values, cursors.data(), sums);
        stop.count(static_cast<size_t>(last_row - row) * row_length + width / lane);
    }
}

template <typename S>
void bind_sums(nb::module_ &m) {
    m.def("multiply_sparse", &multiply_sparse<int32_t, int32_t, S>);
    m.def("multiply_sparse", &multiply_sparse<int32_t, int64_t, S>);
    m.def("multiply_sparse", &multiply_sparse<int64_t, int32_t, S>);
    m.def("multiply_sparse", &multiply_sparse<int64_t, int64_t, S>);
    m.def("gram_rows", &gram_rows<int32_t, S>);
    m.def("gram_rows", &gram_rows<int64_t, S>);
}

}  // namespace

void bind_sparse(nb::module_ &m) {
    m.def("multiply", &multiply<int32_t>, nb::arg("indptr"), nb::arg("indices"), nb::arg("data"), nb::arg("dense"),
          nb::arg("out").noconvert());
    m.def("multiply", &multiply<int64_t>, nb::arg("indptr"), nb::arg("indices"), nb::arg("data"), nb::arg("dense"),
          nb::arg("out").noconvert());
    bind_sums<float>(m);
    bind_sums<double>(m);
}
