// Large arrays in large pages, where the system has them: random reads then need fewer translations of addresses.
#pragma once

#include <vector>

#if defined(__linux__)
#include <sys/mman.h>

#include <cstddef>
#include <new>

template <typename T>
struct LargePages {
    using value_type = T;

    LargePages() = default;
    template <typename U>
    LargePages(const LargePages<U> &) {}

    T *allocate(size_t n) {
        void *found = ::operator new(n * sizeof(T), alignment(n));
        if (is_large(n)) madvise(found, n * sizeof(T), MADV_HUGEPAGE);  // advice: without it, pages stay small
        return static_cast<T *>(found);
    }
    void deallocate(T *at, size_t n) { ::operator delete(at, alignment(n)); }

    bool operator==(const LargePages &) const { return true; }
    bool operator!=(const LargePages &) const { return false; }

  private:
    static constexpr size_t page = size_t{1} << 21, line = 64;
    static bool is_large(size_t n) { return n * sizeof(T) >= 2 * page; }
    static std::align_val_t alignment(size_t n) { return std::align_val_t{is_large(n) ? page : line}; }
};

template <typename T>
using LargeVector = std::vector<T, LargePages<T>>;

#else

// Allocating with an alignment needs macOS 10.13 or later, and gains nothing without large pages.
template <typename T>
using LargeVector = std::vector<T>;

#endif
