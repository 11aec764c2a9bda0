// A kernel that can run for long looks now and then whether its caller still wants what it does.
#pragma once

#include <chrono>
#include <cstddef>

class Stop {
  public:
    // Count steps of work, of about a nanosecond each. Throws where a signal's handler raises, or where the work is one
    // of several blocks of which one failed (longtail.parallel.check_stop).
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
