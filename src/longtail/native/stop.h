// Kernels that can run for long check regularly whether they should stop.
#pragma once

#include <chrono>
#include <cstddef>

class Stop {
  public:
    // Count steps of work, of about a nanosecond each. Throws if a signal handler raises, or if the work should stop
    // because another block failed (longtail.parallel.check_stop).
    void count(size_t steps) {
        steps_ += steps;
        if (steps_ >= steps_between_clocks) look();
    }

  private:
    using Clock = std::chrono::steady_clock;

    void look();

    static constexpr size_t steps_between_clocks = size_t{1} << 16;
    size_t steps_ = 0;
    Clock::time_point last_ = Clock::now();
};
