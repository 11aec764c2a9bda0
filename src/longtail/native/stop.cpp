#include "stop.h"

#include <nanobind/nanobind.h>

namespace nb = nanobind;

void Stop::look() {
    // Rare enough to cost nothing, though it may have to wait for the interpreter lock; soon enough for who interrupts.
    constexpr std::chrono::milliseconds between_looks(50);
    steps_ = 0;
    const Clock::time_point now = Clock::now();
    if (now - last_ < between_looks) return;
    last_ = now;
    nb::gil_scoped_acquire held;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    nb::module_::import_("longtail.parallel").attr("check_stop")();
}
