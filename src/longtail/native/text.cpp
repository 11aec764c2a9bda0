// Texts to token counts: the token rule over UTF-8, vocabularies keyed by bytes, and tf-idf weights. Tokens are written
// with a blank between them, so that an n-gram is a slice of bytes. Subwords are copied, since each gets a mark in front.
#include "kernels.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "stop.h"

#if defined(_MSC_VER)
#include <intrin.h>
#endif

namespace {

constexpr size_t page_size = 256, page_count = 0x110000 / page_size;
constexpr uint32_t stands_alone = 0x80000000;
constexpr size_t longest_subword = 20;  // in code points; with the mark in front it has at most 4 * 20 + 1 bytes

// Replacement of each byte below 128; 0 ends a token. The bytes of longer characters end the fast loop too.
constexpr std::array<char, 256> make_ascii() {
    std::array<char, 256> table{};
    for (int c = '0'; c <= '9'; ++c) table[static_cast<size_t>(c)] = static_cast<char>(c);
    for (int c = 'a'; c <= 'z'; ++c) {
        table[static_cast<size_t>(c)] = static_cast<char>(c);
        table[static_cast<size_t>(c - 'a' + 'A')] = static_cast<char>(c);
    }
    return table;
}
constexpr std::array<char, 256> ascii = make_ascii();

template <typename T>
nb::object hand_over(std::vector<T> &&values) {
    values.reserve(1);
    auto *kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void *p) noexcept { delete static_cast<std::vector<T> *>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), {kept->size()}, owner));
}

// Replacements of code points, requested from Python page by page, so that its Unicode tables are the only ones.
class CodePoints {
   public:
    explicit CodePoints(nb::object page) : page_(std::move(page)) {}
    CodePoints(const CodePoints &) = delete;
    CodePoints &operator=(const CodePoints &) = delete;
    ~CodePoints() {
        for (auto &page : pages_) delete[] page.load();
    }

    uint32_t operator[](uint32_t point) {
        const uint32_t *page = pages_[point / page_size].load(std::memory_order_acquire);
        if (!page) page = ask(point / page_size);
        return page[point % page_size];
    }

    static int traverse(PyObject *self, visitproc visit, void *arg) {
        Py_VISIT(Py_TYPE(self));
        if (nb::inst_ready(self)) Py_VISIT(nb::inst_ptr<CodePoints>(self)->page_.ptr());
        return 0;
    }

    static int clear(PyObject *self) {
        nb::inst_ptr<CodePoints>(self)->page_ = nb::none();
        return 0;
    }

   private:
    const uint32_t *ask(uint32_t number) {
        nb::gil_scoped_acquire held;
        std::unique_ptr<uint32_t[]> fresh(new uint32_t[page_size]);
        const auto told = nb::cast<Vector<const uint32_t>>(page_(number));
        if (told.shape(0) != page_size) throw std::invalid_argument("a page of code points has the wrong length");
        std::copy(told.data(), told.data() + page_size, fresh.get());
        const uint32_t *expected = nullptr;
        if (pages_[number].compare_exchange_strong(expected, fresh.get(), std::memory_order_acq_rel))
            return fresh.release();
        return expected;  // another thread was faster
    }

    nb::object page_;
    std::array<std::atomic<const uint32_t *>, page_count> pages_{};
};

struct Rule {
    Rule(CodePoints &code_points, size_t min_length, size_t shortest, size_t longest, size_t subwords)
        : code_points(code_points), min_length(min_length), shortest(shortest), longest(longest), subwords(subwords) {
        if (subwords > longest_subword) throw std::invalid_argument("subwords are too long");
    }

    CodePoints &code_points;
    size_t min_length, shortest, longest;
    size_t subwords;  // code points of a subword; 0 for none
};

// The bytes of the texts: in the strings themselves if they are ASCII, else in encoded copies. The list keeps them
// alive; both end in a zero byte.
std::vector<std::string_view> bytes_of(const nb::list &texts) {
    std::vector<std::string_view> views;
    views.reserve(nb::len(texts));
    for (nb::handle text : texts) {
        Py_ssize_t size = 0;
        const char *data = nullptr;
        if (PyUnicode_Check(text.ptr())) {
            data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
            if (!data) throw nb::python_error();
        } else {
            char *bytes = nullptr;
            if (PyBytes_AsStringAndSize(text.ptr(), &bytes, &size) != 0) throw nb::python_error();
            data = bytes;
        }
        views.emplace_back(data, static_cast<size_t>(size));
    }
    return views;
}

uint64_t random_seed() {
    std::random_device device;
    return (static_cast<uint64_t>(device()) << 32) ^ device();
}
// Different in each process, so that nobody can craft a text whose words all collide.
const uint64_t seed = random_seed();

void prefetch(const void *p) {
#if defined(__GNUC__)
    __builtin_prefetch(p);
#else
    (void)p;
#endif
}

uint64_t read64(const char *p) {
    uint64_t value;
    std::memcpy(&value, p, sizeof value);
    return value;
}

uint32_t read32(const char *p) {
    uint32_t value;
    std::memcpy(&value, p, sizeof value);
    return value;
}

uint64_t mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 32);
}

uint64_t hash_of(std::string_view key) {
    const char *p = key.data();
    size_t left = key.size();
    uint64_t hash = seed ^ (left * 0xd6e8feb86659fd93u);
    for (; left >= 8; p += 8, left -= 8) hash = mix(hash, read64(p));
    uint64_t rest = 0;
    if (left >= 4)
        rest = (static_cast<uint64_t>(read32(p)) << 32) | read32(p + left - 4);
    else if (left)
        rest = (static_cast<uint64_t>(static_cast<uint8_t>(p[0])) << 16) |
               (static_cast<uint64_t>(static_cast<uint8_t>(p[left / 2])) << 8) | static_cast<uint8_t>(p[left - 1]);
    return mix(mix(hash, rest), 0xa0761d6478bd642fu);
}

// The tokens of one text; the memory is reused for the next.
class Tokens {
   public:
    void read(std::string_view text, const Rule &rule) {
        // No character grows to more than twice its bytes, including the blank after it.
        if (buffer_.size() < 2 * text.size() + 8) buffer_.resize(2 * text.size() + 8);
        ends_.clear();
        const char *p = text.data(), *end = p + text.size();
        char *const base = buffer_.data();
        char *start = base, *out = base;
        size_t surplus = 0;  // bytes of the open token beyond one per code point
        const auto close = [&] {
            if (static_cast<size_t>(out - start) - surplus >= rule.min_length && out != start) {
                ends_.push_back(static_cast<size_t>(out - base));
                *out++ = ' ';
                start = out;
            } else {
                out = start;
            }
            surplus = 0;
        };
        while (true) {
            while (const char letter = ascii[static_cast<uint8_t>(*p)]) {
                *out++ = letter;
                ++p;
            }
            if (p >= end) break;
            if (static_cast<uint8_t>(*p) < 0x80) {
                close();
                ++p;
                continue;
            }
            const uint32_t becomes = rule.code_points[decode(p)];
            if (becomes == 0) {
                close();
            } else if (becomes & stands_alone) {
                close();
                out = encode(becomes & ~stands_alone, out);
                ends_.push_back(static_cast<size_t>(out - base));
                *out++ = ' ';
                start = out;
            } else {
                char *after = encode(becomes, out);
                surplus += static_cast<size_t>(after - out) - 1;
                out = after;
            }
        }
        close();
    }

    // All n-grams of `shortest` to `longest` tokens, then all subwords, as `visit(run, hash)`. `soon` is called some time before and
    // `next` shortly before each visit, so that both can prefetch the memory for the lookup.
    template <typename Soon, typename Next, typename Visit>
    void for_each(const Rule &rule, Soon soon, Next next, Visit visit) {
        constexpr size_t far = 16, near = 8;
        const size_t longest = std::min(rule.longest, ends_.size());
        for (size_t length = rule.shortest; length <= longest; ++length) {
            const size_t runs = ends_.size() - length + 1;
            stop_.count(length * ends_.back());
            const auto run = [&](size_t i) {
                const size_t begin = i == 0 ? 0 : ends_[i - 1] + 1;
                return std::string_view(buffer_.data() + begin, ends_[i + length - 1] - begin);
            };
            hashes_.resize(runs);
            for (size_t i = 0; i < runs; ++i) hashes_[i] = hash_of(run(i));
            for (size_t i = 0; i < std::min(far, runs); ++i) soon(hashes_[i]);
            for (size_t i = 0; i < runs; ++i) {
                if (i + far < runs) soon(hashes_[i + far]);
                if (i + near < runs) next(hashes_[i + near]);
                visit(run(i), hashes_[i]);
            }
        }
        if (rule.subwords) for_each_subword(rule.subwords, soon, next, visit);
    }

   private:
    // The runs of `length` code points of each token with `<` in front. The other runs get `~` in front, so that none
    // equals a word.
    template <typename Soon, typename Next, typename Visit>
    void for_each_subword(size_t length, Soon soon, Next next, Visit visit) {
        constexpr size_t batch = 64;
        std::array<std::string_view, batch> runs;
        std::array<uint64_t, batch> hashes;
        std::array<char, batch *(4 * longest_subword + 1) + 8> copies;
        size_t filled = 0;
        char *out = copies.data();
        const auto visit_filled = [&] {
            stop_.count(32 * filled);
            for (size_t i = 0; i < filled; ++i) next(hashes[i]);
            for (size_t i = 0; i < filled; ++i) visit(runs[i], hashes[i]);
            filled = 0;
            out = copies.data();
        };
        const auto add = [&](char mark, const char *begin, const char *end) {
            const size_t size = static_cast<size_t>(end - begin);
            *out = mark;
            // Eight bytes at a time; both arrays are long enough for the bytes behind the run.
            for (size_t i = 0; i < size; i += 8) std::memcpy(out + 1 + i, begin + i, 8);
            runs[filled] = {out, size + 1};
            hashes[filled] = hash_of(runs[filled]);
            soon(hashes[filled]);
            out += size + 1;
            if (++filled == batch) visit_filled();
        };
        const char *token = buffer_.data();
        for (size_t i = 0; i < ends_.size(); ++i) {
            const char *const stop = buffer_.data() + ends_[i];
            const char *begin = token, *end = token;
            size_t points = 0;
            for (; points + 1 < length && end < stop; ++points) end = next_point(end, stop);
            if (points + 1 == length) {
                add('<', begin, end);
                while (end < stop) {
                    end = next_point(end, stop);
                    add('~', begin, end);
                    begin = next_point(begin, stop);
                }
            }
            token = stop + 1;
        }
        visit_filled();
    }

    static const char *next_point(const char *p, const char *stop) {
        do ++p;
        while (p < stop && (static_cast<uint8_t>(*p) & 0xc0) == 0x80);
        return p;
    }

    static uint32_t decode(const char *&p) {
        const auto byte = [&p](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(p[i])); };
        uint32_t point;
        if (byte(0) < 0xe0) {
            point = ((byte(0) & 0x1f) << 6) | (byte(1) & 0x3f);
            p += 2;
        } else if (byte(0) < 0xf0) {
            point = ((byte(0) & 0x0f) << 12) | ((byte(1) & 0x3f) << 6) | (byte(2) & 0x3f);
            p += 3;
        } else {
            point = ((byte(0) & 0x07) << 18) | ((byte(1) & 0x3f) << 12) | ((byte(2) & 0x3f) << 6) | (byte(3) & 0x3f);
            p += 4;
        }
        return point;
    }

    static char *encode(uint32_t point, char *out) {
        const auto put = [&out](uint32_t byte) { *out++ = static_cast<char>(byte); };
        if (point < 0x80) {
            put(point);
        } else if (point < 0x800) {
            put(0xc0 | (point >> 6));
            put(0x80 | (point & 0x3f));
        } else if (point < 0x10000) {
            put(0xe0 | (point >> 12));
            put(0x80 | ((point >> 6) & 0x3f));
            put(0x80 | (point & 0x3f));
        } else {
            put(0xf0 | (point >> 18));
            put(0x80 | ((point >> 12) & 0x3f));
            put(0x80 | ((point >> 6) & 0x3f));
            put(0x80 | (point & 0x3f));
        }
        return out;
    }

    std::vector<char> buffer_;
    std::vector<size_t> ends_;  // of the tokens in the buffer; each starts one blank after the previous one
    std::vector<uint64_t> hashes_;
    Stop stop_;
};

// Byte keys and their ids, by open addressing. Half of the hash selects the slot; the other half is stored in it, so
// that almost every different key is rejected without reading its bytes. Each key is preceded by its length.
class Keys {
   public:
    explicit Keys(size_t expected) : slots_(slots_for(expected)) {}

    size_t size() const { return places_.size(); }

    size_t n_bytes() const {
        return slots_.capacity() * sizeof(Slot) + places_.capacity() * sizeof(size_t) + bytes_.capacity();
    }

    std::string_view operator[](size_t id) const { return at(places_[id]); }

    void fetch_slot(uint64_t hash) const { prefetch(&slots_[static_cast<size_t>(hash) & (slots_.size() - 1)]); }

    void fetch_key(uint64_t hash) const {
        const Slot &slot = slots_[static_cast<size_t>(hash) & (slots_.size() - 1)];
        if (slot.tag == static_cast<uint32_t>(hash >> 32)) prefetch(bytes_.data() + slot.place);
    }

    // The id of a key, or -1.
    int32_t find(std::string_view key, uint64_t hash) const { return slots_[slot(key, hash)].id; }

    int32_t find_or_add(std::string_view key, uint64_t hash) {
        size_t i = slot(key, hash);
        if (slots_[i].id >= 0) return slots_[i].id;
        if (size() == static_cast<size_t>(std::numeric_limits<int32_t>::max()))
            throw std::length_error("more than 2147483647 different features");
        if (2 * size() >= slots_.size()) {
            grow();
            i = slot(key, hash);
        }
        const int32_t id = static_cast<int32_t>(size());
        slots_[i] = {static_cast<uint32_t>(hash >> 32), id, bytes_.size()};
        places_.push_back(bytes_.size());
        const uint64_t length = key.size();
        const char *raw = reinterpret_cast<const char *>(&length);
        bytes_.insert(bytes_.end(), raw, raw + sizeof length);
        bytes_.insert(bytes_.end(), key.begin(), key.end());
        return id;
    }

   private:
    struct Slot {
        uint32_t tag = 0;
        int32_t id = -1;
        size_t place = 0;
    };

    static size_t slots_for(size_t keys) {
        size_t slots = 16;
        while (slots < 2 * keys) slots *= 2;
        return slots;
    }

    std::string_view at(size_t place) const {
        return {bytes_.data() + place + sizeof(uint64_t), static_cast<size_t>(read64(bytes_.data() + place))};
    }

    // The slot of the key, or the free slot where it would go.
    size_t slot(std::string_view key, uint64_t hash) const {
        const size_t mask = slots_.size() - 1;
        const uint32_t tag = static_cast<uint32_t>(hash >> 32);
        for (size_t i = static_cast<size_t>(hash) & mask;; i = (i + 1) & mask)
            if (slots_[i].id < 0 || (slots_[i].tag == tag && same(at(slots_[i].place), key))) return i;
    }

    static bool same(std::string_view a, std::string_view b) {
        if (a.size() != b.size()) return false;
        const char *p = a.data(), *q = b.data();
        size_t left = a.size();
        for (; left >= 8; p += 8, q += 8, left -= 8)
            if (read64(p) != read64(q)) return false;
        if (left >= 4) return read32(p) == read32(q) && read32(p + left - 4) == read32(q + left - 4);
        for (; left; ++p, ++q, --left)
            if (*p != *q) return false;
        return true;
    }

    void grow() {
        std::vector<Slot> larger(2 * slots_.size());
        const size_t mask = larger.size() - 1;
        for (size_t id = 0; id < size(); ++id) {
            const uint64_t hash = hash_of((*this)[id]);
            size_t i = static_cast<size_t>(hash) & mask;
            while (larger[i].id >= 0) i = (i + 1) & mask;
            larger[i] = {static_cast<uint32_t>(hash >> 32), static_cast<int32_t>(id), places_[id]};
        }
        slots_ = std::move(larger);
    }

    std::vector<Slot> slots_;
    std::vector<char> bytes_;
    std::vector<size_t> places_;
};

// A set of numbers below a limit that returns them in ascending order: bits, and one bit for each word of bits.
class NumberSet {
   public:
    explicit NumberSet(size_t limit) : bits_(limit / 64 + 1), words_(bits_.size() / 64 + 1) {}

    void insert(size_t number) {
        bits_[number / 64] |= uint64_t{1} << (number % 64);
        words_[number / 64 / 64] |= uint64_t{1} << (number / 64 % 64);
    }

    template <typename Visit>
    void drain(Visit visit) {
        for (size_t i = 0; i < words_.size(); ++i)
            for (; words_[i]; words_[i] &= words_[i] - 1) {
                const size_t word = 64 * i + lowest(words_[i]);
                for (; bits_[word]; bits_[word] &= bits_[word] - 1) visit(64 * word + lowest(bits_[word]));
            }
    }

   private:
    static size_t lowest(uint64_t bits) {
#if defined(_MSC_VER)
        unsigned long index;
        _BitScanForward64(&index, bits);
        return index;
#else
        return static_cast<size_t>(__builtin_ctzll(bits));
#endif
    }

    std::vector<uint64_t> bits_, words_;
};

// Rows of counts, with the columns of each row in the order of first occurrence.
struct Counts {
    std::vector<int64_t> ends{0};
    std::vector<int32_t> columns;
    std::vector<float> values;

    nb::tuple hand_over_all() {
        return nb::make_tuple(hand_over(std::move(ends)), hand_over(std::move(columns)), hand_over(std::move(values)));
    }
};

// A fixed vocabulary. Several threads may count with it at the same time.
class Vocabulary {
   public:
    Vocabulary(Vector<const uint8_t> text, Vector<const int64_t> offsets) : keys_(offsets.shape(0) - 1) {
        const char *bytes = reinterpret_cast<const char *>(text.data());
        const int64_t *edges = offsets.data();
        const size_t count = offsets.shape(0) - 1;
        nb::gil_scoped_release released;
        for (size_t i = 0; i < count; ++i) {
            const std::string_view key(bytes + edges[i], static_cast<size_t>(edges[i + 1] - edges[i]));
            keys_.find_or_add(key, hash_of(key));
        }
    }

    nb::tuple count(const nb::list &texts, CodePoints &code_points, size_t min_length, size_t shortest, size_t longest,
                    size_t subwords) {
        const std::vector<std::string_view> views = bytes_of(texts);
        Counts counts;
        {
            nb::gil_scoped_release released;
            const Rule rule(code_points, min_length, shortest, longest, subwords);
            std::unique_ptr<Scratch> scratch = borrow();
            counts.ends.reserve(views.size() + 1);
            for (std::string_view text : views) count_one(text, rule, *scratch, counts);
            give_back(std::move(scratch));
        }
        return counts.hand_over_all();
    }

   private:
    struct Scratch {
        explicit Scratch(size_t features) : times(features), met(features) {}
        Tokens tokens;
        std::vector<uint32_t> times;  // of each feature in the current text; 0 between texts
        NumberSet met;
    };

    void count_one(std::string_view text, const Rule &rule, Scratch &scratch, Counts &counts) const {
        scratch.tokens.read(text, rule);
        scratch.tokens.for_each(
            rule, [this](uint64_t hash) { keys_.fetch_slot(hash); }, [this](uint64_t hash) { keys_.fetch_key(hash); },
            [&](std::string_view token, uint64_t hash) {
                const int32_t id = keys_.find(token, hash);
                if (id >= 0 && scratch.times[static_cast<size_t>(id)]++ == 0) scratch.met.insert(static_cast<size_t>(id));
            });
        scratch.met.drain([&](size_t id) {
            counts.columns.push_back(static_cast<int32_t>(id));
            counts.values.push_back(static_cast<float>(scratch.times[id]));
            scratch.times[id] = 0;
        });
        counts.ends.push_back(static_cast<int64_t>(counts.columns.size()));
    }

    std::unique_ptr<Scratch> borrow() {
        {
            std::lock_guard<std::mutex> guard(lock_);
            if (!spare_.empty()) {
                std::unique_ptr<Scratch> scratch = std::move(spare_.back());
                spare_.pop_back();
                return scratch;
            }
        }
        return std::make_unique<Scratch>(keys_.size());
    }

    void give_back(std::unique_ptr<Scratch> scratch) {
        std::lock_guard<std::mutex> guard(lock_);
        spare_.push_back(std::move(scratch));
    }

    Keys keys_;
    std::mutex lock_;
    std::vector<std::unique_ptr<Scratch>> spare_;
};

// A vocabulary that adds every feature it meets and counts its texts. For one thread at a time.
class GrowingVocabulary {
   public:
    nb::tuple count(const nb::list &texts, CodePoints &code_points, size_t min_length, size_t shortest, size_t longest,
                    size_t subwords, bool keep) {
        const std::vector<std::string_view> views = bytes_of(texts);
        Counts counts;
        {
            nb::gil_scoped_release released;
            const Rule rule(code_points, min_length, shortest, longest, subwords);
            for (std::string_view text : views) count_one(text, rule, keep, counts);
        }
        return counts.hand_over_all();
    }

    nb::object merge(const GrowingVocabulary &other) {
        std::vector<int32_t> ids(other.entries_.size());
        {
            nb::gil_scoped_release released;
            Stop stop;
            for (size_t i = 0; i < ids.size(); ++i) {
                stop.count(16);
                ids[i] = find_or_add(other.keys_[i], hash_of(other.keys_[i]));
                entries_[static_cast<size_t>(ids[i])].frequency += other.entries_[i].frequency;
            }
        }
        return hand_over(std::move(ids));
    }

    // The strings of a table, each with its number of texts; the table is not trusted.
    nb::object add(Vector<const uint8_t> text, Vector<const int64_t> offsets, Vector<const int64_t> frequencies) {
        const size_t n = frequencies.shape(0);
        if (offsets.shape(0) != n + 1) throw std::invalid_argument("the offsets are not one more than the frequencies");
        const int64_t *edges = offsets.data();
        for (size_t i = 0; i <= n; ++i)
            if (edges[i] < (i ? edges[i - 1] : 0) || edges[i] > static_cast<int64_t>(text.shape(0)))
                throw std::invalid_argument("the offsets do not rise within the text");
        std::vector<int32_t> ids(n);
        {
            nb::gil_scoped_release released;
            Stop stop;
            const char *bytes = reinterpret_cast<const char *>(text.data());
            for (size_t i = 0; i < n; ++i) {
                stop.count(16);
                const std::string_view name(bytes + edges[i], static_cast<size_t>(edges[i + 1] - edges[i]));
                ids[i] = find_or_add(name, hash_of(name));
                entries_[static_cast<size_t>(ids[i])].frequency += frequencies.data()[i];
            }
        }
        return hand_over(std::move(ids));
    }

    size_t n_bytes() const { return keys_.n_bytes() + entries_.capacity() * sizeof(Entry); }

    nb::object frequencies() const {
        std::vector<int64_t> found(entries_.size());
        std::transform(entries_.begin(), entries_.end(), found.begin(), [](const Entry &e) { return e.frequency; });
        return hand_over(std::move(found));
    }

    // The ids sorted by bytes, which is code-point order.
    nb::object sorted(Vector<const int64_t> ids) const {
        std::vector<int64_t> order(ids.shape(0));
        const int64_t *given = ids.data();
        {
            nb::gil_scoped_release released;
            Stop stop;
            struct Item {
                uint64_t prefix;
                int64_t id;
            };
            std::vector<Item> items(order.size());
            for (size_t i = 0; i < items.size(); ++i) {
                const std::string_view name = keys_[static_cast<size_t>(given[i])];
                uint64_t prefix = 0;
                for (size_t j = 0; j < 8; ++j) prefix = (prefix << 8) | (j < name.size() ? static_cast<uint8_t>(name[j]) : 0);
                items[i] = {prefix, given[i]};
            }
            std::sort(items.begin(), items.end(), [this, &stop](const Item &a, const Item &b) {
                stop.count(1);
                return a.prefix != b.prefix ? a.prefix < b.prefix
                                            : keys_[static_cast<size_t>(a.id)] < keys_[static_cast<size_t>(b.id)];
            });
            std::transform(items.begin(), items.end(), order.begin(), [](const Item &item) { return item.id; });
        }
        return hand_over(std::move(order));
    }

    nb::tuple tokens(Vector<const int64_t> ids) const {
        std::vector<uint8_t> text;
        std::vector<int64_t> offsets{0};
        for (size_t i = 0; i < ids.shape(0); ++i) {
            const std::string_view name = keys_[static_cast<size_t>(ids.data()[i])];
            text.insert(text.end(), name.begin(), name.end());
            offsets.push_back(static_cast<int64_t>(text.size()));
        }
        return nb::make_tuple(hand_over(std::move(text)), hand_over(std::move(offsets)));
    }

   private:
    struct Entry {
        int64_t frequency = 0, row = -1, times = 0;  // row and times: the last text with the feature, and its count there
    };

    int32_t find_or_add(std::string_view token, uint64_t hash) {
        const int32_t id = keys_.find_or_add(token, hash);
        if (static_cast<size_t>(id) == entries_.size()) entries_.emplace_back();
        return id;
    }

    void count_one(std::string_view text, const Rule &rule, bool keep, Counts &counts) {
        tokens_.read(text, rule);
        const auto soon = [this](uint64_t hash) { keys_.fetch_slot(hash); };
        const auto next = [this](uint64_t hash) { keys_.fetch_key(hash); };
        tokens_.for_each(rule, soon, next, [&](std::string_view token, uint64_t hash) {
            const int32_t id = find_or_add(token, hash);
            Entry &entry = entries_[static_cast<size_t>(id)];
            if (entry.row != row_) {
                entry.row = row_;
                entry.times = 0;
                ++entry.frequency;
                if (keep) counts.columns.push_back(id);
            }
            ++entry.times;
        });
        for (size_t i = counts.values.size(); i < counts.columns.size(); ++i)
            counts.values.push_back(static_cast<float>(entries_[static_cast<size_t>(counts.columns[i])].times));
        counts.ends.push_back(static_cast<int64_t>(counts.columns.size()));
        ++row_;
    }

    Tokens tokens_;
    Keys keys_{1024};
    std::vector<Entry> entries_;
    int64_t row_ = 0;
};

// Rows of counts with new, ascending column numbers below `limit`; columns numbered -1 are dropped.
nb::tuple renumber(Vector<const int64_t> ends, Vector<const int32_t> columns, Vector<const float> values,
                   Vector<const int32_t> numbers, size_t limit) {
    Counts counts;
    const int64_t *edges = ends.data();
    const int32_t *from = columns.data(), *to = numbers.data();
    const float *times = values.data();
    const size_t rows = ends.shape(0) - 1;
    {
        nb::gil_scoped_release released;
        std::vector<float> row(limit);
        NumberSet met(limit);
        for (size_t i = 0; i < rows; ++i) {
            for (int64_t j = edges[i]; j < edges[i + 1]; ++j) {
                const int32_t column = to[from[j]];
                if (column < 0) continue;
                row[static_cast<size_t>(column)] = times[j];
                met.insert(static_cast<size_t>(column));
            }
            met.drain([&](size_t column) {
                counts.columns.push_back(static_cast<int32_t>(column));
                counts.values.push_back(row[column]);
            });
            counts.ends.push_back(static_cast<int64_t>(counts.columns.size()));
        }
    }
    return counts.hand_over_all();
}

void scale_rows(Vector<const int64_t> ends, Vector<const int32_t> columns, Vector<float> values,
                Vector<const float> weights) {
    const int64_t *edges = ends.data();
    const int32_t *column = columns.data();
    const float *weight = weights.data();
    float *value = values.data();
    const size_t rows = ends.shape(0) - 1;
    nb::gil_scoped_release released;
    for (size_t i = 0; i < rows; ++i) {
        double squares = 0;
        for (int64_t j = edges[i]; j < edges[i + 1]; ++j) {
            value[j] *= weight[column[j]];
            squares += static_cast<double>(value[j]) * value[j];
        }
        const double length = std::sqrt(squares);
        for (int64_t j = edges[i]; j < edges[i + 1]; ++j) value[j] = static_cast<float>(value[j] / length);
    }
}

bool ascending(Vector<const uint8_t> text, Vector<const int64_t> offsets) {
    const char *bytes = reinterpret_cast<const char *>(text.data());
    const int64_t *edges = offsets.data();
    const auto key = [&](size_t i) { return std::string_view(bytes + edges[i], static_cast<size_t>(edges[i + 1] - edges[i])); };
    for (size_t i = 1; i + 1 < offsets.shape(0); ++i)
        if (key(i - 1) >= key(i)) return false;
    return true;
}

nb::tuple strings(Vector<const uint8_t> text, Vector<const int64_t> offsets) {
    const char *bytes = reinterpret_cast<const char *>(text.data());
    const int64_t *edges = offsets.data();
    const Py_ssize_t count = static_cast<Py_ssize_t>(offsets.shape(0)) - 1;
    nb::tuple found = nb::steal<nb::tuple>(PyTuple_New(count));
    if (!found.is_valid()) throw nb::python_error();
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyObject *one = PyUnicode_DecodeUTF8(bytes + edges[i], static_cast<Py_ssize_t>(edges[i + 1] - edges[i]), nullptr);
        if (!one || PyTuple_SetItem(found.ptr(), i, one) != 0) throw nb::python_error();
    }
    return found;
}

PyType_Slot code_points_slots[] = {{Py_tp_traverse, reinterpret_cast<void *>(CodePoints::traverse)},
                                   {Py_tp_clear, reinterpret_cast<void *>(CodePoints::clear)},
                                   {0, nullptr}};

}  // namespace

void bind_text(nb::module_ &m) {
    nb::class_<CodePoints>(m, "CodePoints", nb::type_slots(code_points_slots))
        .def(nb::init<nb::object>(), nb::arg("page"));
    nb::class_<Vocabulary>(m, "Vocabulary")
        .def(nb::init<Vector<const uint8_t>, Vector<const int64_t>>(), nb::arg("text"), nb::arg("offsets"))
        .def("count", &Vocabulary::count, nb::arg("texts"), nb::arg("code_points"), nb::arg("min_length"),
             nb::arg("shortest"), nb::arg("longest"), nb::arg("subwords"));
    nb::class_<GrowingVocabulary>(m, "GrowingVocabulary")
        .def(nb::init<>())
        .def("count", &GrowingVocabulary::count, nb::arg("texts"), nb::arg("code_points"), nb::arg("min_length"),
             nb::arg("shortest"), nb::arg("longest"), nb::arg("subwords"), nb::arg("keep"))
        .def("merge", &GrowingVocabulary::merge, nb::arg("other"))
        .def("add", &GrowingVocabulary::add, nb::arg("text"), nb::arg("offsets"), nb::arg("frequencies"))
        .def("n_bytes", &GrowingVocabulary::n_bytes)
        .def("frequencies", &GrowingVocabulary::frequencies)
        .def("sorted", &GrowingVocabulary::sorted, nb::arg("ids"))
        .def("tokens", &GrowingVocabulary::tokens, nb::arg("ids"));
    m.def("renumber", &renumber, nb::arg("ends"), nb::arg("columns"), nb::arg("values"), nb::arg("numbers"),
          nb::arg("limit"));
    m.def("scale_rows", &scale_rows, nb::arg("ends"), nb::arg("columns"), nb::arg("values").noconvert(),
          nb::arg("weights"));
    m.def("ascending", &ascending, nb::arg("text"), nb::arg("offsets"));
    m.def("strings", &strings, nb::arg("text"), nb::arg("offsets"));
}
