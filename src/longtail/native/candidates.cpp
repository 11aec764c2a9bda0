// The candidate labels of rows: joined from several sources, and compared with the rows by inner products.
#include "kernels.h"

#include <algorithm>
#include <vector>

#include "clamped.h"
#include "owned.h"
#include "stop.h"

namespace {

// Sums are in double precision, in the order of the entries of `m`, whose arrays may be mapped from a file that was not
// verified.
void pair_dots(Vector<const int64_t> indptr, Vector<const int32_t> indices, Vector<const float> data, int64_t first,
               int64_t last, Vector<const int64_t> pair_starts, Vector<const int32_t> pair_items,
               Vector<const int64_t> m_indptr, Vector<const int32_t> m_indices, Vector<const float> m_data,
               int64_t n_features, Vector<float> out) {
    const ClampedRows queries(indptr, indices, data.size()), pairs(pair_starts, pair_items, out.size()),
        matrix(m_indptr, m_indices, m_data.size());
    const float *values = data.data(), *m_values = m_data.data();
    const uint32_t width = static_cast<uint32_t>(n_features);
    float *to = out.data();
    nb::gil_scoped_release released;
    thread_local std::vector<float> dense;  // all 0 between rows
    if (dense.size() < width) dense.resize(width, 0.0f);
    float *query = dense.data();
    Stop stop;
    for (int64_t row = first; row < last; ++row) {
        const auto [from, end] = queries.bounds(row);
        for (size_t e = from; e < end; ++e)
            if (static_cast<uint32_t>(queries.columns[e]) < width) query[queries.columns[e]] = values[e];
        const auto [first_pair, last_pair] = pairs.bounds(row);
        size_t steps = 2 * (end - from) + 1;
        for (size_t pair = first_pair; pair < last_pair; ++pair) {
            const auto [begin, stop_at] = matrix.bounds(pairs.columns[pair]);
            double sum = 0.0;
            for (size_t e = begin; e < stop_at; ++e) {
                const uint32_t feature = static_cast<uint32_t>(matrix.columns[e]);
                if (feature < width) sum += static_cast<double>(query[feature]) * static_cast<double>(m_values[e]);
            }
            to[pair] = static_cast<float>(sum);
            steps += 2 * (stop_at - begin) + 1;
        }
        for (size_t e = from; e < end; ++e)
            if (static_cast<uint32_t>(queries.columns[e]) < width) query[queries.columns[e]] = 0.0f;
        stop.count(steps);
    }
}

nb::tuple join_candidates(nb::list sources, int64_t first, int64_t last) {
    struct Source {
        const int64_t *labels;
        size_t width;
    };
    std::vector<Matrix<const int64_t>> held;
    std::vector<Source> parts;
    for (nb::handle each : sources) {
        held.push_back(nb::cast<Matrix<const int64_t>>(each));
        parts.push_back({held.back().data(), held.back().shape(1)});
    }
    std::vector<int64_t> counts;
    std::vector<int32_t> joined;
    {
        nb::gil_scoped_release released;
        Stop stop;
        counts.reserve(static_cast<size_t>(last - first));
        for (size_t row = static_cast<size_t>(first); row < static_cast<size_t>(last); ++row) {
            const size_t before = joined.size();
            for (const Source &part : parts)
                for (size_t j = 0; j < part.width; ++j) {
                    const int64_t label = part.labels[row * part.width + j];
                    if (label >= 0 && label <= INT32_MAX) joined.push_back(static_cast<int32_t>(label));
                }
            stop.count(16 * (joined.size() - before) + 1);
            const auto begin = joined.begin() + static_cast<std::ptrdiff_t>(before);
            std::sort(begin, joined.end());
            joined.erase(std::unique(begin, joined.end()), joined.end());
            counts.push_back(static_cast<int64_t>(joined.size() - before));
        }
    }
    return nb::make_tuple(owned(std::move(counts)), owned(std::move(joined)));
}

}  // namespace

void bind_candidates(nb::module_ &m) {
    m.def("pair_dots", &pair_dots, nb::arg("indptr"), nb::arg("indices"), nb::arg("data"), nb::arg("first"),
          nb::arg("last"), nb::arg("pair_starts"), nb::arg("pair_items"), nb::arg("m_indptr"), nb::arg("m_indices"),
          nb::arg("m_data"), nb::arg("n_features"), nb::arg("out").noconvert());
    m.def("join_candidates", &join_candidates, nb::arg("sources"), nb::arg("first"), nb::arg("last"));
}
