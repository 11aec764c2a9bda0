// The steps of conjugate gradients for a block of labels in lockstep, one label per column, each in a single pass over
// memory. As array operations they would cost more than the products with the matrix.
#include "kernels.h"

#include <algorithm>

namespace {

LONGTAIL_WIDE void curvature_rows(size_t rows, size_t width, const float *alphas, const float *direction, float *image,
                                  float *curvature) {
    std::fill(curvature, curvature + width, 0.0f);
    for (size_t i = 0; i < rows; ++i) {
        const float *d = direction + i * width;
        float *m = image + i * width;
        for (size_t j = 0; j < width; ++j) {
            m[j] += alphas[j] * d[j];
            curvature[j] += d[j] * m[j];
        }
    }
}

LONGTAIL_WIDE void descend_rows(size_t rows, size_t width, const float *step, const float *inverse,
                                const float *direction, const float *image, float *solution, float *residual,
                                float *energy) {
    std::fill(energy, energy + width, 0.0f);
    for (size_t i = 0; i < rows; ++i) {
        const size_t row = i * width;
        const float scale = inverse[i];
        for (size_t j = 0; j < width; ++j) {
            solution[row + j] += step[j] * direction[row + j];
            const float r = residual[row + j] - step[j] * image[row + j];
            residual[row + j] = r;
            energy[j] += r * r * scale;
        }
    }
}

LONGTAIL_WIDE void turn_rows(size_t rows, size_t width, const float *turn, const float *inverse, const float *residual,
                             const float *correction, float *direction) {
    for (size_t i = 0; i < rows; ++i) {
        const size_t row = i * width;
        const float scale = inverse[i];
        for (size_t j = 0; j < width; ++j)
            direction[row + j] = scale * residual[row + j] + correction[row + j] + turn[j] * direction[row + j];
    }
}

void cg_curvature(Vector<const float> alphas, Matrix<const float> direction, Matrix<float> image,
                  Vector<float> curvature) {
    const size_t rows = direction.shape(0), width = direction.shape(1);
    nb::gil_scoped_release released;
    curvature_rows(rows, width, alphas.data(), direction.data(), image.data(), curvature.data());
}

void cg_descend(Vector<const float> step, Vector<const float> inverse, Matrix<const float> direction,
                Matrix<const float> image, Matrix<float> solution, Matrix<float> residual, Vector<float> energy) {
    const size_t rows = direction.shape(0), width = direction.shape(1);
    nb::gil_scoped_release released;
    descend_rows(rows, width, step.data(), inverse.data(), direction.data(), image.data(), solution.data(),
                 residual.data(), energy.data());
}

void cg_turn(Vector<const float> turn, Vector<const float> inverse, Matrix<const float> residual,
             Matrix<const float> correction, Matrix<float> direction) {
    const size_t rows = direction.shape(0), width = direction.shape(1);
    nb::gil_scoped_release released;
    turn_rows(rows, width, turn.data(), inverse.data(), residual.data(), correction.data(), direction.data());
}

}  // namespace

void bind_conjugate(nb::module_ &m) {
    m.def("cg_curvature", &cg_curvature);
    m.def("cg_descend", &cg_descend);
    m.def("cg_turn", &cg_turn);
}
