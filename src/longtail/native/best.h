// The best few of a stream of scored ids.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

constexpr float nothing = -std::numeric_limits<float>::infinity();

struct Scored {
    float score;
    int64_t id;
    // Best first; ties to the lowest id.
    bool operator<(const Scored &other) const {
        return score > other.score || (score == other.score && id < other.id);
    }
};

// The best few of a stream, as a heap whose front is the worst of them.
class Best {
  public:
    Best(size_t rows, size_t places) : places_(places), held_(rows, 0), all_(rows * places) {}

    void offer(size_t row, Scored next) {
        Scored *heap = all_.data() + row * places_;
        size_t &held = held_[row];
        if (held == places_) {
            if (!(next < heap[0])) return;
            std::pop_heap(heap, heap + held);
            heap[held - 1] = next;
            std::push_heap(heap, heap + held);
        } else if (next.score > nothing) {
            heap[held++] = next;
            std::push_heap(heap, heap + held);
        }
    }
    // The best of `row`, best first; this empties the heap.
    std::pair<const Scored *, size_t> sorted(size_t row) {
        Scored *heap = all_.data() + row * places_;
        std::sort_heap(heap, heap + held_[row]);
        return {heap, held_[row]};
    }
    // The score that a new entry must exceed.
    float floor(size_t row) const { return held_[row] == places_ ? all_[row * places_].score : nothing; }
    // Write the best of `row`, best first, padded with -1 and -inf, and forget all rows.
    void write_and_clear(size_t row, int64_t *ids, float *scores) {
        const auto [best, held] = sorted(row);
        for (size_t place = 0; place < places_; ++place) {
            ids[place] = place < held ? best[place].id : -1;
            scores[place] = place < held ? best[place].score : nothing;
        }
        clear();
    }
    void clear() { std::fill(held_.begin(), held_.end(), 0); }

  private:
    size_t places_;
    std::vector<size_t> held_;
    std::vector<Scored> all_;
};

// The first score in [from, width) above `floor`, or width.
size_t next_above(const float *scores, size_t from, size_t width, float floor);
