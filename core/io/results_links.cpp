#include "core/io/results_links.hpp"

#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <unordered_set>

#include <fmt/format.h>

#include "core/error.hpp"

namespace holdfast {
namespace {

constexpr std::string_view kHead = "policy,link,start_s,end_s,bytes,capacity_bytes_per_s";
constexpr std::size_t kFields = 6;
constexpr std::size_t kLongestLine = std::size_t{1} << 16;
constexpr int kDigits = 12;  // of a second: picoseconds

enum class Field : std::uint8_t { Policy, Link, Start, End, Bytes, Capacity };

class LinksReader {
 public:
  LinksReader(std::istream& in, const std::string& file) : in_(in), file_(file) {}

  std::vector<PolicyTraffic> read() {
    if (!next_line() || line_ != kHead) {
      refuse(ErrorCode::BadSyntax, 1,
             fmt::format("this is no links.csv: its first line is '{}'", kHead));
    }
    while (next_line()) {
      split();
      add_row();
    }
    finish_link();
    return std::move(policies_);
  }

 private:
  [[noreturn]] void refuse(ErrorCode code, std::size_t column, const std::string& message) const {
    throw Error(code, message, Place{file_, number_, static_cast<int>(column), {}, {}});
  }
  [[noreturn]] void refuse_field(Field field, const std::string& message,
                                 ErrorCode code = ErrorCode::BadValue) const {
    refuse(code, column_[static_cast<std::size_t>(field)], message);
  }

  [[nodiscard]] const std::string& text(Field field) const {
    return fields_[static_cast<std::size_t>(field)];
  }

  bool next_line() {
    ++number_;
    line_.clear();
    std::streambuf& buffer = *in_.rdbuf();
    constexpr int kNone = std::char_traits<char>::eof();
    for (int c = buffer.sbumpc(); c != '\n'; c = buffer.sbumpc()) {
      if (c == kNone) {
        if (line_.empty()) return false;
        refuse(ErrorCode::BadSyntax, line_.size() + 1,
               "the file ends in the middle of a row; write the results again");
      }
      line_ += static_cast<char>(c);
      if (line_.size() > kLongestLine) {
        refuse(ErrorCode::LimitExceeded, 1,
               fmt::format("a line of more than {} bytes", kLongestLine));
      }
    }
    return true;
  }

  void split() {
    std::size_t at = 0;
    for (std::size_t f = 0; f < kFields; ++f) {
      column_[f] = at + 1;
      at = take_field(at, fields_[f]);
      const bool last = f + 1 == kFields;
      const bool ends = at == line_.size();
      if (ends != last || (!ends && line_[at] != ',')) {
        refuse(ErrorCode::BadSyntax, at + 1,
               fmt::format("a row has {} fields: {}", kFields, kHead));
      }
      ++at;
    }
  }

  // Returns where the field ends.
  std::size_t take_field(std::size_t at, std::string& field) const {
    field.clear();
    if (at >= line_.size() || line_[at] != '"') {
      const std::size_t end = std::min(line_.find(',', at), line_.size());
      field.assign(line_, at, end - at);
      if (field.find('"') != std::string::npos) {
        refuse(ErrorCode::BadSyntax, at + 1, "a field with a quote inside must be quoted");
      }
      return end;
    }
    const std::size_t open = at++;
    while (at < line_.size()) {
      if (line_[at] != '"') {
        field += line_[at++];
      } else if (at + 1 < line_.size() && line_[at + 1] == '"') {
        field += '"';
        at += 2;
      } else {
        return at + 1;
      }
    }
    refuse(ErrorCode::BadSyntax, open + 1, "this quote is never closed");
  }

  [[nodiscard]] std::uint64_t count(Field field) const {
    const std::string& written = text(field);
    std::uint64_t value = 0;
    const auto [end, code] =
        std::from_chars(written.data(), written.data() + written.size(), value);
    if (code != std::errc() || end != written.data() + written.size()) {
      refuse_field(field, "a whole number from 0 on, of at most 64 bits, must stand here");
    }
    return value;
  }

  // Seconds with up to twelve decimals.
  [[nodiscard]] Time time(Field field) const {
    const std::string& written = text(field);
    const std::size_t point = std::min(written.find('.'), written.size());
    std::string digits = written.substr(0, point);
    if (point < written.size()) {
      digits += written.substr(point + 1);
    }
    const std::size_t decimals = point < written.size() ? written.size() - point - 1 : 0;
    std::int64_t value = 0;
    bool good = point > 0 && (decimals > 0 || point == written.size()) && decimals <= kDigits &&
                digits.find_first_not_of("0123456789") == std::string::npos;
    if (good) {
      digits.append(kDigits - decimals, '0');
      const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
      good = code == std::errc() && end == digits.data() + digits.size();
    }
    if (!good) {
      refuse_field(field, "seconds must stand here, with at most twelve decimals");
    }
    return Time(value);
  }

  void add_row() {
    const Time start = time(Field::Start);
    const Time end = time(Field::End);
    const Bytes bytes(count(Field::Bytes));
    const Rate capacity(count(Field::Capacity));
    if (capacity == Rate(0)) refuse_field(Field::Capacity, "a capacity is above zero");
    if (end < start) refuse_field(Field::End, "this bin ends before it begins");
    const bool same = !policies_.empty() && policies_.back().policy == text(Field::Policy) &&
                      policies_.back().links.back().link == text(Field::Link);
    // At a makespan of zero (a run that failed at once) all bins are empty intervals at zero.
    if (!same) {
      finish_link();
      begin_link(capacity);
    } else if (policies_.back().links.back().capacity != capacity) {
      refuse_field(Field::Capacity, "the rows before give this link another capacity");
    }
    if (start != (same ? end_ : Time())) {
      refuse_field(Field::Start, same ? "this bin does not begin where the one before ends"
                                      : "the first bin of a link begins at 0");
    }
    end_ = end;
    LinkTraffic& link = policies_.back().links.back();
    if (bytes.count() > std::numeric_limits<std::uint64_t>::max() - link.bytes.count()) {
      refuse_field(Field::Bytes, "the bytes of this link do not fit 64 bits",
                   ErrorCode::LimitExceeded);
    }
    link.bytes += bytes;
    link.bins.push_back(bytes);
  }

  void begin_link(Rate capacity) {
    if (text(Field::Policy).empty()) refuse_field(Field::Policy, "a policy has a name");
    if (text(Field::Link).empty()) refuse_field(Field::Link, "a link has a name");
    if (policies_.empty() || policies_.back().policy != text(Field::Policy)) {
      if (!policy_names_.insert(text(Field::Policy)).second) {
        refuse_field(
            Field::Policy,
            fmt::format("the rows of policy '{}' do not stand together", text(Field::Policy)),
            ErrorCode::Duplicate);
      }
      policies_.push_back({text(Field::Policy), Time(), {}});
      link_names_.clear();
    }
    if (!link_names_.insert(text(Field::Link)).second) {
      refuse_field(Field::Link,
                   fmt::format("the rows of link '{}' do not stand together", text(Field::Link)),
                   ErrorCode::Duplicate);
    }
    policies_.back().links.push_back({text(Field::Link), capacity, Bytes(), {}});
  }

  // Every link of a policy ends when its run does.
  void finish_link() {
    if (policies_.empty()) return;
    PolicyTraffic& policy = policies_.back();
    if (policy.links.size() == 1) {
      policy.end = end_;
    } else if (end_ != policy.end) {
      throw Error(ErrorCode::BadValue,
                  fmt::format("the bins of link '{}' end at another time than those of the link "
                              "before",
                              policy.links.back().link),
                  Place{file_, number_ - 1, 1, {}, {}});
    }
  }

  std::istream& in_;
  const std::string& file_;
  int number_ = 0;
  std::string line_;
  std::array<std::string, kFields> fields_;
  std::array<std::size_t, kFields> column_{};
  Time end_;  // of the row before
  std::vector<PolicyTraffic> policies_;
  std::unordered_set<std::string> policy_names_;
  std::unordered_set<std::string> link_names_;  // of the last policy
};

}  // namespace

std::vector<PolicyTraffic> read_links(std::istream& in, const std::string& file) {
  return LinksReader(in, file).read();
}

}  // namespace holdfast
