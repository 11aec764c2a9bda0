#include "stop.h"

#include <nanobind/nanobind.h>

namespace nb = nanobind;

void Stop::look() {
    // Rare enough to cost nothing, although it may wait for the interpreter lock; often enough for an interrupt.
    constexpr std::chrono::milliseconds between_looks(50);
    steps_ = 0;
    const Clock::time_point now = Clock::now();
    if (now - last_ < between_looks) return;
    last_ = now;
    nb::gil_scoped_acquire held;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    nb::module_::import_("longtail.parallel").attr("check_stop")();
}
