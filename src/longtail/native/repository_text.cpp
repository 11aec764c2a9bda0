// Parser of the repository text format, block by block: a header `rows features labels`, then one line per row. Safe on
// any bytes: an error becomes a line number and a reason, in the same words as in the Python twin.
#include "kernels.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

// If the library has no from_chars for doubles, use strtod in the C locale.
#if defined(__cpp_lib_to_chars) && __cpp_lib_to_chars >= 201611L
#define LONGTAIL_FROM_CHARS
#else
#include <locale.h>
#include <stdlib.h>
#if defined(__APPLE__)
#include <xlocale.h>
#endif
#endif

namespace {

constexpr int64_t narrow_limit = std::numeric_limits<int32_t>::max();
constexpr size_t index_digits = 18;
constexpr size_t quoted_bytes = 40;

bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }
bool is_blank(char c) { return c == ' ' || c == '\t'; }

struct Token {
    const char *begin, *end;
    bool empty() const { return begin == end; }
    size_t size() const { return static_cast<size_t>(end - begin); }
};

std::string quote(Token token) {
    const bool cut = token.size() > quoted_bytes;
    std::string text = "'";
    for (const char *p = token.begin; p != (cut ? token.begin + quoted_bytes : token.end); ++p) {
        const unsigned char c = static_cast<unsigned char>(*p);
        if (c >= 0x20 && c < 0x7f && c != '\'' && c != '\\') {
            text += *p;
        } else {
            constexpr char digits[] = "0123456789abcdef";
            text += "\\x";
            text += digits[c >> 4];
            text += digits[c & 15];
        }
    }
    return text + (cut ? "...'" : "'");
}

// Whole numbers of at most 18 significant digits; `reason` receives the error of any other token.
bool parse_whole(Token token, const char *what, int64_t &value, std::string &reason) {
    const char *p = token.begin;
    const bool negative = p != token.end && *p == '-';
    if (negative) ++p;
    if (p == token.end || !std::all_of(p, token.end, is_digit)) {
        reason = std::string(what) + " " + quote(token) + " is not a whole number";
        return false;
    }
    if (negative) {
        reason = std::string(what) + " " + quote(token) + " is negative; numbering starts at 0";
        return false;
    }
    while (p != token.end && *p == '0') ++p;
    if (static_cast<size_t>(token.end - p) > index_digits) {
        reason = std::string(what) + " " + quote(token) + " is too large";
        return false;
    }
    value = 0;
    for (; p != token.end; ++p) value = value * 10 + (*p - '0');
    return true;
}

// Dividing or multiplying an integer below 2^53 by one of these rounds once, so the result is correctly rounded.
constexpr double powers_of_ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
constexpr uint64_t exact_mantissa = uint64_t{1} << 53;

double parse_decimal(Token token) {
#if defined(LONGTAIL_FROM_CHARS)
    double value = 0;
    std::from_chars(token.begin, token.end, value);
    return value;
#else
    static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
    return strtod_l(std::string(token.begin, token.end).c_str(), nullptr, plain);
#endif
}

enum class Number { finite, malformed, too_large };

// Any decimal number with optional sign, point and exponent, rounded to double and then to float.
Number parse_value(Token token, float &value) {
    const char *p = token.begin, *end = token.end;
    const bool negative = p != end && *p == '-';
    if (p != end && (*p == '-' || *p == '+')) ++p;
    const char *unsigned_begin = p;
    uint64_t mantissa = 0;
    size_t digits = 0, significant = 0;
    int64_t exponent = 0;
    bool point = false;
    for (; p != end; ++p) {
        if (*p == '.' && !point) {
            point = true;
            continue;
        }
        if (!is_digit(*p)) break;
        ++digits;
        if (significant > 0 || *p != '0') ++significant;
        mantissa = mantissa * 10 + static_cast<uint64_t>(*p - '0');
        if (point) --exponent;
    }
    if (digits == 0) return Number::malformed;
    if (p != end) {
        if (*p != 'e' && *p != 'E') return Number::malformed;
        ++p;
        const bool small = p != end && *p == '-';
        if (p != end && (*p == '-' || *p == '+')) ++p;
        if (p == end) return Number::malformed;
        int64_t written = 0;
        for (; p != end; ++p) {
            if (!is_digit(*p)) return Number::malformed;
            written = std::min<int64_t>(written * 10 + (*p - '0'), int64_t{1} << 50);
        }
        exponent += small ? -written : written;
    }
    double result = 0;
    const int64_t magnitude = exponent + static_cast<int64_t>(significant);
    if (significant == 0 || magnitude < -60) {
        result = 0;
    } else if (magnitude > 60) {
        return Number::too_large;
    } else if (significant <= 19 && mantissa <= exact_mantissa && exponent >= -22 && exponent <= 22) {
        const double whole = static_cast<double>(mantissa);
        result = exponent < 0 ? whole / powers_of_ten[-exponent] : whole * powers_of_ten[exponent];
    } else {
        result = parse_decimal({unsigned_begin, end});
    }
    value = static_cast<float>(negative ? -result : result);
    return std::isfinite(value) ? Number::finite : Number::too_large;
}

template <typename T>
nb::object hand_over(std::vector<T> &&values) {
    values.reserve(1);
    auto *kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void *p) noexcept { delete static_cast<std::vector<T> *>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), {kept->size()}, owner));
}

// Row pointers and column indices, in 32 bits until a column or the number of entries needs more.
class Rows {
   public:
    void push(int64_t column) {
        if (!is_wide_ && column <= narrow_limit)
            narrow_.push_back(static_cast<int32_t>(column));
        else {
            widen();
            wide_.push_back(column);
        }
        largest_ = std::max(largest_, column);
    }

    size_t entries() const { return is_wide_ ? wide_.size() : narrow_.size(); }
    size_t rows() const { return rows_; }
    int64_t largest() const { return largest_; }

    // End a row whose columns were pushed in any order; return a duplicate column, or -1.
    int64_t end_row(std::vector<float> *values) {
        const int64_t repeated =
            is_wide_ ? sort_row(wide_, values, order_, wide_row_) : sort_row(narrow_, values, order_, narrow_row_);
        starts_.push_back(static_cast<int64_t>(entries()));
        ++rows_;
        return repeated;
    }

    std::pair<nb::object, nb::object> take(int64_t columns) {
        if (columns > narrow_limit || static_cast<int64_t>(entries()) > narrow_limit) widen();
        if (is_wide_) {
            nb::object starts = hand_over(std::move(starts_));
            return {starts, hand_over(std::move(wide_))};
        }
        nb::object starts = hand_over(std::vector<int32_t>(starts_.begin(), starts_.end()));
        return {starts, hand_over(std::move(narrow_))};
    }

   private:
    void widen() {
        if (is_wide_) return;
        wide_.assign(narrow_.begin(), narrow_.end());
        narrow_ = {};
        is_wide_ = true;
    }

    template <typename I>
    int64_t sort_row(std::vector<I> &columns, std::vector<float> *values, std::vector<size_t> &order,
                     std::vector<I> &row) {
        const size_t start = static_cast<size_t>(starts_.back()), count = columns.size() - start;
        I *first = columns.data() + start;
        if (!std::is_sorted(first, first + count)) {
            order.resize(count);
            std::iota(order.begin(), order.end(), size_t{0});
            std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return first[a] < first[b]; });
            row.assign(first, first + count);
            for (size_t i = 0; i < count; ++i) first[i] = row[order[i]];
            if (values != nullptr) {
                float *numbers = values->data() + start;
                value_row_.assign(numbers, numbers + count);
                for (size_t i = 0; i < count; ++i) numbers[i] = value_row_[order[i]];
            }
        }
        const I *repeated = std::adjacent_find(first, first + count);
        return repeated == first + count ? -1 : static_cast<int64_t>(*repeated);
    }

    std::vector<int64_t> starts_{0};
    std::vector<int32_t> narrow_, narrow_row_;
    std::vector<int64_t> wide_, wide_row_;
    std::vector<size_t> order_;
    std::vector<float> value_row_;
    bool is_wide_ = false;
    size_t rows_ = 0;
    int64_t largest_ = -1;
};

class RepositoryText {
   public:
    RepositoryText(bool header, size_t line_limit) : header_(header), line_limit_(line_limit) {}

    bool feed(nb::bytes block) {
        const char *p = block.c_str(), *end = p + block.size();
        nb::gil_scoped_release released;
        while (p != end && !failed_) {
            const char *newline = static_cast<const char *>(std::memchr(p, '\n', static_cast<size_t>(end - p)));
            const char *stop = newline == nullptr ? end : newline;
            if (carry_.size() + static_cast<size_t>(stop - p) > line_limit_) {
                ++line_;
                fail("the line is longer than " + std::to_string(line_limit_) + " bytes");
                break;
            }
            if (newline == nullptr) {
                carry_.append(p, stop);
                break;
            }
            if (carry_.empty()) {
                parse_line({p, stop});
            } else {
                carry_.append(p, stop);
                parse_carry();
            }
            p = newline + 1;
        }
        return !failed_;
    }

    // The arrays (feature indptr, indices, values, label indptr, indices), or None with `error` set. Call once per
    // file.
    nb::object finish() {
        {
            nb::gil_scoped_release released;
            if (!failed_ && !carry_.empty()) parse_carry();
            if (!failed_) check_end();
        }
        if (failed_) return nb::none();
        auto [feature_starts, feature_indices] = features_.take(feature_count());
        auto [label_starts, label_indices] = labels_.take(label_count());
        return nb::make_tuple(feature_starts, feature_indices, hand_over(std::move(values_)), label_starts,
                              label_indices);
    }

    nb::object error() const {
        return failed_ ? nb::object(nb::make_tuple(line_, nb::str(reason_.data(), reason_.size()))) : nb::none();
    }

    nb::tuple shape() const { return nb::make_tuple(features_.rows(), feature_count(), label_count()); }

   private:
    int64_t feature_count() const { return header_ ? promised_[1] : features_.largest() + 1; }
    int64_t label_count() const { return header_ ? promised_[2] : labels_.largest() + 1; }

    void fail(std::string reason) {
        failed_ = true;
        reason_ = std::move(reason);
    }

    void parse_carry() {
        carry_.push_back('\n');
        parse_line({carry_.data(), carry_.data() + carry_.size() - 1});
        carry_.clear();
    }

    void check_end() {
        if (line_ == 0) {
            line_ = 1;
            fail("the file is empty");
        } else if (header_ && static_cast<int64_t>(features_.rows()) < promised_[0]) {
            fail("the header promises " + std::to_string(promised_[0]) + " rows, but the file ends after " +
                 std::to_string(features_.rows()));
        }
    }

    // The byte at line.end is readable and not a digit (a line feed, or a blank stripped here), so scans stop there.
    void parse_line(Token line) {
        ++line_;
        const bool blank_labels = !line.empty() && is_blank(*line.begin);
        if (!line.empty() && line.end[-1] == '\r') --line.end;
        while (!line.empty() && is_blank(line.end[-1])) --line.end;
        if (header_ && line_ == 1) return parse_header(line);
        if (header_ && static_cast<int64_t>(features_.rows()) == promised_[0]) {
            if (!line.empty()) fail("the header promises " + std::to_string(promised_[0]) + " rows, but there are more");
            return;
        }
        if (line.empty() && !blank_labels) {
            if (empty_line_ == 0) empty_line_ = line_;
            return;
        }
        if (empty_line_ != 0) {
            line_ = empty_line_;
            return fail("an empty line between rows; a row without labels and features is a single blank");
        }
        const char *p = line.begin;
        if (!blank_labels && !parse_labels(p, line.end)) return;
        if (const int64_t repeated = labels_.end_row(nullptr); repeated >= 0)
            return fail("label " + std::to_string(repeated) + " is there twice");
        if (!parse_features(p, line.end)) return;
        if (const int64_t repeated = features_.end_row(&values_); repeated >= 0)
            return fail("feature " + std::to_string(repeated) + " is there twice");
    }

    void parse_header(Token line) {
        size_t count = 0;
        bool whole = true;
        std::string ignored;
        for (const char *p = line.begin; p != line.end;) {
            if (is_blank(*p)) {
                ++p;
                continue;
            }
            const char *start = p;
            while (p != line.end && !is_blank(*p)) ++p;
            int64_t value = 0;
            whole = parse_whole({start, p}, "", value, ignored) && whole;
            if (count < 3) promised_[count] = value;
            ++count;
        }
        if (count != 3 || !whole)
            fail("expected the header, three whole numbers 'rows features labels', but found " + quote(line) +
                 "; if the file has no header, read it with header=False");
    }

    bool parse_labels(const char *&p, const char *end) {
        while (true) {
            const char *start = p;
            while (p != end && *p != ',' && !is_blank(*p)) ++p;
            const Token token{start, p};
            int64_t label = 0;
            if (std::find(start, p, ':') != p) {
                fail("the first field " + quote(token) +
                     " is a feature, expected labels; a row without labels starts with a blank");
                return false;
            }
            if (!parse_whole(token, "label", label, reason_)) return !(failed_ = true);
            if (header_ && label >= promised_[2]) {
                fail("label " + std::to_string(label) + " is too large: the header promises " +
                     std::to_string(promised_[2]) + " labels, numbered from 0");
                return false;
            }
            labels_.push(label);
            if (p == end || *p != ',') return true;
            ++p;
        }
    }

    bool parse_features(const char *p, const char *end) {
        while (true) {
            while (p != end && is_blank(*p)) ++p;
            if (p == end) return true;
            if (!parse_plain_feature(p, end) && !parse_any_feature(p, end)) return false;
        }
    }

    bool feature_in_range(int64_t index) const { return !header_ || index < promised_[1]; }

    // The common case, digits ':' digits '.' digits, in one pass; parse_any_feature handles everything else.
    bool parse_plain_feature(const char *&p, const char *end) {
        const char *q = p;
        int64_t index = 0;
        for (; is_digit(*q) && q != p + index_digits; ++q) index = index * 10 + (*q - '0');
        if (q == p || *q != ':' || !feature_in_range(index)) return false;
        ++q;
        const bool negative = *q == '-';
        q += negative;
        const char *start = q;
        uint64_t mantissa = 0;
        for (; is_digit(*q); ++q) mantissa = mantissa * 10 + static_cast<uint64_t>(*q - '0');
        size_t digits = static_cast<size_t>(q - start), decimals = 0;
        if (*q == '.') {
            start = ++q;
            for (; is_digit(*q); ++q) mantissa = mantissa * 10 + static_cast<uint64_t>(*q - '0');
            decimals = static_cast<size_t>(q - start);
            digits += decimals;
        }
        if (digits == 0 || digits > 19 || mantissa > exact_mantissa || (q != end && !is_blank(*q))) return false;
        const double value = static_cast<double>(mantissa) / powers_of_ten[decimals];
        features_.push(index);
        values_.push_back(static_cast<float>(negative ? -value : value));
        p = q;
        return true;
    }

    bool parse_any_feature(const char *&p, const char *end) {
        const char *start = p;
        while (p != end && !is_blank(*p)) ++p;
        const char *colon = std::find(start, p, ':');
        if (colon == p) {
            fail("feature " + quote({start, p}) + " has no colon; expected index:value");
            return false;
        }
        int64_t index = 0;
        if (!parse_whole({start, colon}, "feature", index, reason_)) return !(failed_ = true);
        if (!feature_in_range(index)) {
            fail("feature " + std::to_string(index) + " is too large: the header promises " +
                 std::to_string(promised_[1]) + " features, numbered from 0");
            return false;
        }
        const Token written{colon + 1, p};
        float value = 0;
        const Number found = parse_value(written, value);
        if (found != Number::finite) {
            fail("value " + quote(written) + " of feature " + std::to_string(index) +
                 (found == Number::malformed ? " is not a finite number" : " is too large for 32-bit floats"));
            return false;
        }
        features_.push(index);
        values_.push_back(value);
        return true;
    }

    bool header_;
    size_t line_limit_;
    int64_t promised_[3] = {0, 0, 0};
    int64_t line_ = 0, empty_line_ = 0;
    bool failed_ = false;
    std::string carry_, reason_;
    Rows labels_, features_;
    std::vector<float> values_;
};

}  // namespace

void bind_repository_text(nb::module_ &m) {
    nb::class_<RepositoryText>(m, "RepositoryText")
        .def(nb::init<bool, size_t>(), nb::arg("header"), nb::arg("line_limit"))
        .def("feed", &RepositoryText::feed, nb::arg("block"))
        .def("finish", &RepositoryText::finish)
        .def_prop_ro("error", &RepositoryText::error)
        .def_prop_ro("shape", &RepositoryText::shape);
}
