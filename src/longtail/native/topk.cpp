// The k best labels of each row, updated block by block of labels.
#include "kernels.h"

#include <optional>

#include <nanobind/stl/optional.h>

#include "best.h"
#include "stop.h"

// Whole strips are skipped at vector speed.
LONGTAIL_WIDE size_t next_above(const float *scores, size_t from, size_t width, float floor) {
    constexpr size_t strip = 32;
    while (from + strip <= width) {
        int above = 0;
        for (size_t j = 0; j < strip; ++j) above |= scores[from + j] > floor;
        if (above) break;
        from += strip;
    }
    while (from < width && !(scores[from] > floor)) ++from;
    return from;
}

namespace {

void update_topk(Matrix<const float> scores, int64_t first_label, std::optional<Vector<const bool>> mask,
                 Matrix<int64_t> best_labels, Matrix<float> best_scores) {
    const size_t rows = scores.shape(0), width = scores.shape(1), k = best_labels.shape(1);
    const float *all_scores = scores.data();
    const bool *allowed = mask ? mask->data() : nullptr;
    int64_t *all_labels = best_labels.data();
    float *all_best = best_scores.data();
    nb::gil_scoped_release released;
    Stop stop;
    for (size_t i = 0; i < rows; ++i) {
        const float *row = all_scores + i * width;
        int64_t *labels = all_labels + i * k;
        float *best = all_best + i * k;
        for (size_t j = next_above(row, 0, width, best[k - 1]); j < width; j = next_above(row, j + 1, width, best[k - 1])) {
            if (allowed && !allowed[j]) continue;
            size_t place = k - 1;
            // Labels come in ascending order, so inserting after equal scores gives ties to the lowest label.
            for (; place > 0 && best[place - 1] < row[j]; --place) {
                best[place] = best[place - 1];
                labels[place] = labels[place - 1];
            }
            best[place] = row[j];
            labels[place] = first_label + static_cast<int64_t>(j);
        }
        stop.count(width);
    }
}

}  // namespace

void bind_topk(nb::module_ &m) {
    m.def("update_topk", &update_topk, nb::arg("scores"), nb::arg("first_label"), nb::arg("mask").none(),
          nb::arg("best_labels").noconvert(), nb::arg("best_scores").noconvert());
}
