// Arrays that a kernel returns.
#pragma once

#include <utility>
#include <vector>

#include "kernels.h"

// Hand the values over to Python as an array, without a copy.
template <typename T>
nb::object owned(std::vector<T> &&values) {
    auto *held = new std::vector<T>(std::move(values));
    nb::capsule owner(held, [](void *p) noexcept { delete static_cast<std::vector<T> *>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(held->data(), {held->size()}, owner));
}
