// Eight floats that are processed together: a vector register if the compiler has vector types, else a plain loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>

#if defined(__GNUC__)
// Vectors must not be returned by a call between code for different instruction sets.
#define LONGTAIL_INLINE inline __attribute__((always_inline))
#else
#define LONGTAIL_INLINE inline
#endif

// Ask for memory that is read soon. Any address is allowed.
LONGTAIL_INLINE void prefetch(const void *at) {
#if defined(__GNUC__)
    __builtin_prefetch(at);
#else
    (void)at;
#endif
}

namespace lanes {
// Unnamed, so that each build of a file that uses it keeps its own copy of the functions.
namespace {

constexpr size_t width = 8;

#if defined(__GNUC__)
typedef float Lanes __attribute__((vector_size(32)));
typedef int Masks __attribute__((vector_size(32)));

LONGTAIL_INLINE Lanes load(const float *from) {
    Lanes out;
    std::memcpy(&out, from, sizeof out);
    return out;
}

LONGTAIL_INLINE Lanes load(const int16_t *from) {
    short loaded __attribute__((vector_size(16)));
    std::memcpy(&loaded, from, sizeof loaded);
    return __builtin_convertvector(loaded, Lanes);
}

LONGTAIL_INLINE void store(float *to, Lanes from) { std::memcpy(to, &from, sizeof from); }

LONGTAIL_INLINE Lanes all(float value) { return Lanes{} + value; }

LONGTAIL_INLINE Lanes larger(Lanes a, Lanes b) { return a > b ? a : b; }

LONGTAIL_INLINE Lanes smaller(Lanes a, Lanes b) { return a < b ? a : b; }

LONGTAIL_INLINE Lanes magnitude(Lanes a) { return a < 0.0f ? -a : a; }

LONGTAIL_INLINE Lanes where_positive(Lanes a, Lanes then, Lanes otherwise) { return a > 0.0f ? then : otherwise; }

LONGTAIL_INLINE Lanes two_to_the(Lanes whole) {
    Masks bits = (__builtin_convertvector(whole, Masks) + 127) << 23;
    Lanes out;
    std::memcpy(&out, &bits, sizeof out);
    return out;
}

LONGTAIL_INLINE Lanes rounded(Lanes a) {
    return __builtin_convertvector(__builtin_convertvector(a + (a < 0.0f ? all(-0.5f) : all(0.5f)), Masks), Lanes);
}
#else
struct Lanes {
    float at[width];
    float operator[](size_t i) const { return at[i]; }
    Lanes &operator+=(Lanes b) {
        for (size_t i = 0; i < width; ++i) at[i] += b.at[i];
        return *this;
    }
};

template <typename F>
LONGTAIL_INLINE Lanes each(F f) {
    Lanes out;
    for (size_t i = 0; i < width; ++i) out.at[i] = f(i);
    return out;
}

LONGTAIL_INLINE Lanes load(const float *from) {
    return each([=](size_t i) { return from[i]; });
}

LONGTAIL_INLINE Lanes load(const int16_t *from) {
    return each([=](size_t i) { return static_cast<float>(from[i]); });
}

LONGTAIL_INLINE void store(float *to, Lanes from) {
    for (size_t i = 0; i < width; ++i) to[i] = from.at[i];
}

LONGTAIL_INLINE Lanes all(float value) {
    return each([=](size_t) { return value; });
}

LONGTAIL_INLINE Lanes operator+(Lanes a, Lanes b) {
    return each([&](size_t i) { return a.at[i] + b.at[i]; });
}
LONGTAIL_INLINE Lanes operator-(Lanes a, Lanes b) {
    return each([&](size_t i) { return a.at[i] - b.at[i]; });
}
LONGTAIL_INLINE Lanes operator*(Lanes a, Lanes b) {
    return each([&](size_t i) { return a.at[i] * b.at[i]; });
}
LONGTAIL_INLINE Lanes operator/(Lanes a, Lanes b) {
    return each([&](size_t i) { return a.at[i] / b.at[i]; });
}
LONGTAIL_INLINE Lanes operator+(Lanes a, float b) { return a + all(b); }
LONGTAIL_INLINE Lanes operator-(Lanes a, float b) { return a - all(b); }
LONGTAIL_INLINE Lanes operator*(Lanes a, float b) { return a * all(b); }
LONGTAIL_INLINE Lanes operator-(Lanes a) { return all(0.0f) - a; }

LONGTAIL_INLINE Lanes larger(Lanes a, Lanes b) {
    return each([&](size_t i) { return a.at[i] > b.at[i] ? a.at[i] : b.at[i]; });
}

LONGTAIL_INLINE Lanes smaller(Lanes a, Lanes b) {
    return each([&](size_t i) { return a.at[i] < b.at[i] ? a.at[i] : b.at[i]; });
}

LONGTAIL_INLINE Lanes where_positive(Lanes a, Lanes then, Lanes otherwise) {
    return each([&](size_t i) { return a.at[i] > 0.0f ? then.at[i] : otherwise.at[i]; });
}

LONGTAIL_INLINE Lanes magnitude(Lanes a) {
    return each([&](size_t i) { return a.at[i] < 0.0f ? -a.at[i] : a.at[i]; });
}

LONGTAIL_INLINE Lanes two_to_the(Lanes whole) {
    return each([&](size_t i) {
        const int bits = (static_cast<int>(whole.at[i]) + 127) << 23;
        float out;
        std::memcpy(&out, &bits, sizeof out);
        return out;
    });
}

LONGTAIL_INLINE Lanes rounded(Lanes a) {
    return each([&](size_t i) { return static_cast<float>(static_cast<int>(a.at[i] + (a.at[i] < 0 ? -0.5f : 0.5f))); });
}
#endif

LONGTAIL_INLINE float largest(Lanes a) {
    float out = a[0];
    for (size_t i = 1; i < width; ++i) out = a[i] > out ? a[i] : out;
    return out;
}

// e^x for x in [-80, 80]: a power of two times a Taylor polynomial on half an octave.
LONGTAIL_INLINE Lanes exponential(Lanes x) {
    x = larger(smaller(x, all(80.0f)), all(-80.0f));
    const Lanes whole = rounded(x * 1.44269504f);
    const Lanes rest = x - whole * 0.693359375f + whole * 2.12194440e-4f;
    Lanes sum = all(1.0f / 5040);
    for (float coefficient : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f})
        sum = sum * rest + coefficient;
    return sum * two_to_the(whole);
}

LONGTAIL_INLINE Lanes sigmoid(Lanes x) { return all(1.0f) / (exponential(-x) + 1.0f); }

}  // namespace
}  // namespace lanes
