// Compiled once for any processor and once with AVX2; the binding chooses at run time. This file has only loops over
// plain pointers: a template of the standard library compiled with AVX2 could be linked into code that runs without it.
#include "dual_descent.h"

#include <cmath>

#include "lanes.h"

namespace LONGTAIL_DESCENT {

namespace {

using lanes::Lanes;
using lanes::all;
using lanes::load;
using lanes::store;

// The target of a row for each sibling: the sign of its class and the cost of an error.
struct Wanted {
    alignas(32) float sign[most_siblings];
    alignas(32) float cost[most_siblings];
};

inline void want(const Siblings &s, size_t row, Wanted &wanted) {
    for (int64_t p = s.positive_pointers[row]; p < s.positive_pointers[row + 1]; ++p) {
        const int32_t sibling = s.positive_siblings[p] - s.first_sibling;
        if (sibling < 0 || static_cast<size_t>(sibling) >= s.width) continue;
        wanted.sign[sibling] = 1.0f;
        wanted.cost[sibling] = s.positive_costs[p];
    }
}

inline void forget(const Siblings &s, size_t row, Wanted &wanted) {
    for (int64_t p = s.positive_pointers[row]; p < s.positive_pointers[row + 1]; ++p) {
        const int32_t sibling = s.positive_siblings[p] - s.first_sibling;
        if (sibling < 0 || static_cast<size_t>(sibling) >= s.width) continue;
        wanted.sign[sibling] = -1.0f;
        wanted.cost[sibling] = s.negative_costs[sibling];
    }
}

// Ask for the weights that the scores of a row need, ahead of their use: rows come in random order.
template <size_t N>
inline void fetch(const Siblings &s, size_t row) {
#if defined(__GNUC__)
    constexpr size_t line = 64 / sizeof(float);
    const Entry *entry = s.first[row], *end = entry + s.length[row];
    for (; entry != end; ++entry) {
        const float *w = s.weights + static_cast<size_t>(entry->feature) * N * lanes::width;
        for (size_t at = 0; at < N * lanes::width; at += line) __builtin_prefetch(w + at);
    }
#endif
}

template <size_t N>
inline void scores_of(const Siblings &s, size_t row, Lanes *scores) {
    constexpr size_t width = N * lanes::width;
    for (size_t v = 0; v < N; ++v) scores[v] = load(s.intercepts + lanes::width * v) * s.bias;
    const Entry *entry = s.first[row], *end = entry + s.length[row];
    for (; entry != end; ++entry) {
        const float *w = s.weights + static_cast<size_t>(entry->feature) * width;
        for (size_t v = 0; v < N; ++v) scores[v] += load(w + lanes::width * v) * entry->value;
    }
}

template <size_t N>
inline void add_row(const Siblings &s, size_t row, const Lanes *change) {
    constexpr size_t width = N * lanes::width;
    for (size_t v = 0; v < N; ++v) {
        float *w = s.intercepts + lanes::width * v;
        store(w, load(w) + change[v] * s.bias);
    }
    const Entry *entry = s.first[row], *end = entry + s.length[row];
    for (; entry != end; ++entry) {
        float *w = s.weights + static_cast<size_t>(entry->feature) * width;
        for (size_t v = 0; v < N; ++v) store(w + lanes::width * v, load(w + lanes::width * v) + change[v] * entry->value);
    }
}

// Squared hinge: the dual is a quadratic in each coordinate, bounded below by 0.
struct SquaredHinge {
    static inline Lanes step(Lanes dual, Lanes margin, Lanes cost, float square) {
        const Lanes ridge = all(0.5f) / cost;
        const Lanes slope = margin - 1.0f + ridge * dual;
        return lanes::larger(dual - slope / (ridge + square), all(0.0f));
    }
    static inline Lanes primal(Lanes margin, Lanes cost) {
        const Lanes missing = lanes::larger(all(1.0f) - margin, all(0.0f));
        return cost * missing * missing;
    }
    static inline Lanes dual_term(Lanes dual, Lanes cost) { return dual - dual * dual * 0.25f / cost; }
};

// Logistic: the optimum of a coordinate solves t = -margin - square (C sigmoid(t) - dual), dual = C sigmoid(t), by
// Newton's method on t; the slope of the left minus the right side is at least 1.
struct Logistic {
    static inline Lanes step(Lanes dual, Lanes margin, Lanes cost, float square) {
        // A new row has dual 0, whose logit is infinite, so it starts from the margin instead.
        const Lanes share = lanes::larger(lanes::smaller(dual / cost, all(0.9999999f)), all(1e-12f));
        Lanes t = lanes::where_positive(dual, logit(share), -margin);
        t = lanes::larger(lanes::smaller(t, all(30.0f)), all(-30.0f));
        for (int round = 0; round < 6; ++round) {
            const Lanes p = lanes::sigmoid(t);
            const Lanes value = t + (cost * p - dual) * square + margin;
            const Lanes slope = cost * p * (all(1.0f) - p) * square + 1.0f;
            const Lanes change = lanes::larger(lanes::smaller(value / slope, all(4.0f)), all(-4.0f));
            t = lanes::larger(lanes::smaller(t - change, all(30.0f)), all(-30.0f));
        }
        return cost * lanes::sigmoid(t);
    }
    static inline Lanes logit(Lanes share) {
        alignas(32) float out[lanes::width];
        store(out, share);
        for (float &each : out) each = std::log(each / (1.0f - each));
        return load(out);
    }
    static inline Lanes primal(Lanes margin, Lanes cost) {
        alignas(32) float out[lanes::width];
        store(out, margin);
        for (float &each : out) each = each > 0 ? std::log1p(std::exp(-each)) : std::log1p(std::exp(each)) - each;
        return cost * load(out);
    }
    static inline Lanes dual_term(Lanes dual, Lanes cost) {
        alignas(32) float share[lanes::width];
        store(share, dual / cost);
        for (float &p : share) {
            const float q = 1.0f - p;
            p = -((p > 0 ? p * std::log(p) : 0.0f) + (q > 0 ? q * std::log(q) : 0.0f));
        }
        return cost * load(share);
    }
};

template <size_t N, typename Loss, bool changing>
void visit(const Siblings &s, Strip strip, const uint32_t *order, float negligible, Sums &sums) {
    constexpr size_t width = N * lanes::width;
    Wanted wanted;
    for (size_t k = 0; k < width; ++k) {
        wanted.sign[k] = -1.0f;
        wanted.cost[k] = s.negative_costs[k];
    }
    Lanes primal[N] = {}, dual_terms[N] = {};
    for (size_t t = strip.start; t < strip.stop; ++t) {
        const size_t row = changing ? order[t] : t;
        if (t + 1 < strip.stop) fetch<N>(s, changing ? order[t + 1] : t + 1);
        Lanes scores[N];
        scores_of<N>(s, row, scores);
        want(s, row, wanted);
        float *duals = s.duals + row * width;
        Lanes change[N];
        Lanes largest = all(0.0f);
        for (size_t v = 0; v < N; ++v) {
            const Lanes sign = load(wanted.sign + lanes::width * v), cost = load(wanted.cost + lanes::width * v);
            const Lanes margin = sign * scores[v];
            Lanes dual = load(duals + lanes::width * v);
            primal[v] += Loss::primal(margin, cost);
            if (changing) {
                const Lanes next = Loss::step(dual, margin, cost, s.square[row]);
                change[v] = (next - dual) * sign;
                largest = lanes::larger(largest, lanes::magnitude(next - dual));
                scores[v] = next;
            } else {
                scores[v] = dual;
            }
            dual_terms[v] += Loss::dual_term(scores[v], cost);
        }
        forget(s, row, wanted);
        if (!changing || lanes::largest(largest) <= negligible) continue;
        for (size_t v = 0; v < N; ++v) store(duals + lanes::width * v, scores[v]);
        add_row<N>(s, row, change);
    }
    for (size_t v = 0; v < N; ++v)
        for (size_t k = 0; k < lanes::width; ++k) {
            sums.primal[lanes::width * v + k] += primal[v][k];
            sums.dual[lanes::width * v + k] += dual_terms[v][k];
        }
}

template <size_t N>
void replay_rows(const Siblings &s, Strip strip) {
    constexpr size_t width = N * lanes::width;
    Wanted wanted;
    for (size_t k = 0; k < width; ++k) {
        wanted.sign[k] = -1.0f;
        wanted.cost[k] = s.negative_costs[k];
    }
    for (size_t row = strip.start; row < strip.stop; ++row) {
        want(s, row, wanted);
        Lanes change[N];
        for (size_t v = 0; v < N; ++v)
            change[v] = load(s.duals + row * width + lanes::width * v) * load(wanted.sign + lanes::width * v);
        forget(s, row, wanted);
        add_row<N>(s, row, change);
    }
}

void replay(const Siblings &s, Strip strip) {
    switch (s.width / lanes::width) {
        case 1: return replay_rows<1>(s, strip);
        case 2: return replay_rows<2>(s, strip);
        case 3: return replay_rows<3>(s, strip);
        case 4: return replay_rows<4>(s, strip);
        case 5: return replay_rows<5>(s, strip);
        case 6: return replay_rows<6>(s, strip);
        case 7: return replay_rows<7>(s, strip);
        default: return replay_rows<8>(s, strip);
    }
}

template <typename Loss, bool changing>
void visit_width(const Siblings &s, Strip strip, const uint32_t *order, float negligible, Sums &sums) {
    switch (s.width / lanes::width) {
        case 1: return visit<1, Loss, changing>(s, strip, order, negligible, sums);
        case 2: return visit<2, Loss, changing>(s, strip, order, negligible, sums);
        case 3: return visit<3, Loss, changing>(s, strip, order, negligible, sums);
        case 4: return visit<4, Loss, changing>(s, strip, order, negligible, sums);
        case 5: return visit<5, Loss, changing>(s, strip, order, negligible, sums);
        case 6: return visit<6, Loss, changing>(s, strip, order, negligible, sums);
        case 7: return visit<7, Loss, changing>(s, strip, order, negligible, sums);
        default: return visit<8, Loss, changing>(s, strip, order, negligible, sums);
    }
}

void sweep(const Siblings &s, Strip strip, bool logistic, const uint32_t *order, float negligible, Sums &sums) {
    if (logistic)
        visit_width<Logistic, true>(s, strip, order, negligible, sums);
    else
        visit_width<SquaredHinge, true>(s, strip, order, negligible, sums);
}

void judge(const Siblings &s, Strip strip, bool logistic, Sums &sums) {
    if (logistic)
        visit_width<Logistic, false>(s, strip, nullptr, 0.0f, sums);
    else
        visit_width<SquaredHinge, false>(s, strip, nullptr, 0.0f, sums);
}

}  // namespace

#define LONGTAIL_TEXT_OF(name) #name
#define LONGTAIL_NAME_OF(name) LONGTAIL_TEXT_OF(name)
extern const DescentVariant variant;
const DescentVariant variant = {LONGTAIL_NAME_OF(LONGTAIL_DESCENT) + 8, sweep, replay, judge};

}  // namespace LONGTAIL_DESCENT
