#include "core/io/name_pattern.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "core/nearest.hpp"

namespace holdfast {
namespace {

constexpr std::size_t kLongestPattern = 1'024;

bool read_number(std::string_view text, std::uint64_t& value) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && end == text.data() + text.size() && !text.empty();
}

// The numbers of the spans that are not in use, "3" or "3-5", ascending.
std::string missing_numbers(std::vector<std::pair<std::uint64_t, std::uint64_t>> spans,
                            std::vector<std::uint64_t> used) {
  constexpr std::size_t kMostSpans = 10;
  std::sort(spans.begin(), spans.end());
  std::sort(used.begin(), used.end());
  std::vector<std::string> parts;
  std::uint64_t next = 0;  // the first number that no span before has covered
  for (const auto& [first, last] : spans) {
    // Numbers go up to the greatest of 64 bits: nothing below counts beyond `last`.
    for (std::uint64_t at = std::max(first, next); at <= last && parts.size() <= kMostSpans; ++at) {
      const auto found = std::lower_bound(used.begin(), used.end(), at);
      const bool there = found != used.end() && *found <= last;
      if (!there || *found > at) {
        const std::uint64_t end = there ? *found - 1 : last;
        parts.push_back(end == at ? fmt::format("{}", at) : fmt::format("{}-{}", at, end));
      }
      at = there ? *found : last;
      if (at == last) {
        break;
      }
    }
    if (last == std::numeric_limits<std::uint64_t>::max()) {
      break;
    }
    next = std::max(next, last + 1);
  }
  if (parts.size() > kMostSpans) {
    parts.back() = "...";
  }
  return fmt::format("{}", fmt::join(parts, ","));
}

}  // namespace

Parsed<NamePattern::Token> NamePattern::parse_number(std::string_view inside) {
  Token token;
  token.kind = Kind::Number;
  token.text = fmt::format("[{}]", inside);
  while (true) {
    const std::size_t comma = inside.find(',');
    const std::string_view item = inside.substr(0, comma);
    const std::size_t dash = item.find('-');
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    bool good = read_number(item.substr(0, dash), first);
    last = first;
    if (good && dash != std::string_view::npos) {
      good = read_number(item.substr(dash + 1), last);
    }
    if (!good) {
      return tl::unexpected(
          fmt::format("'[{}]' is not a list of numbers; write '[0-3]' or '[0,2,5-7]'", inside));
    }
    if (last < first) {
      return tl::unexpected(fmt::format("'{}' runs backwards; write '{}-{}'", item, last, first));
    }
    token.spans.emplace_back(first, last);
    if (comma == std::string_view::npos) {
      return token;
    }
    inside.remove_prefix(comma + 1);
  }
}

Parsed<NamePattern> NamePattern::parse(std::string_view text) {
  if (text.empty()) {
    return tl::unexpected(std::string("an empty name; write a name or a pattern like 'h[0-3]'"));
  }
  if (text.size() > kLongestPattern) {
    return tl::unexpected(fmt::format("a name of {} characters; at most {} are allowed",
                                      text.size(), kLongestPattern));
  }
  NamePattern pattern;
  pattern.text_ = text;
  bool plain = true;
  std::string pending;
  const auto flush = [&] {
    if (!pending.empty()) {
      pattern.tokens_.push_back({Kind::Text, pending, {}});
      pending.clear();
    }
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '*' || c == '?') {
      flush();
      pattern.tokens_.push_back({c == '*' ? Kind::Run : Kind::One, {}, {}});
      plain = false;
    } else if (c == '[') {
      const std::size_t close = text.find(']', i);
      if (close == std::string_view::npos) {
        return tl::unexpected(fmt::format("'{}' opens '[' and never closes it", text));
      }
      auto token = parse_number(text.substr(i + 1, close - i - 1));
      if (!token) {
        return tl::unexpected(token.error());
      }
      flush();
      pattern.tokens_.push_back(std::move(*token));
      plain = false;
      i = close;
    } else {
      pending += c;
    }
  }
  flush();
  if (plain) {
    pattern.tokens_.clear();
  }
  return pattern;
}

// Moves the set of positions in `name` that the tokens so far can end at past one more token.
void NamePattern::advance(const Token& token, std::string_view name, const std::vector<char>& from,
                          std::vector<char>& to) {
  std::fill(to.begin(), to.end(), char{0});
  for (std::size_t at = 0; at <= name.size(); ++at) {
    if (from[at] == 0) {
      continue;
    }
    switch (token.kind) {
      case Kind::Text:
        if (name.substr(at, token.text.size()) == token.text) {
          to[at + token.text.size()] = 1;
        }
        break;
      case Kind::One:
        if (at < name.size() && name[at] != '.') {
          to[at + 1] = 1;
        }
        break;
      case Kind::Run:
        for (std::size_t end = at;; ++end) {
          // A position that is set already has been extended from an earlier start.
          if (to[end] != 0 && end > at) {
            break;
          }
          to[end] = 1;
          if (end == name.size() || name[end] == '.') {
            break;
          }
        }
        break;
      case Kind::Number:
        numbers_at(token, name, at, [&](std::size_t end, std::uint64_t) { to[end] = 1; });
        break;
    }
  }
}

template <class Take>
void NamePattern::numbers_at(const Token& token, std::string_view name, std::size_t at,
                             const Take& take) {
  std::uint64_t value = 0;
  for (std::size_t end = at; end < name.size() && end < at + 19; ++end) {
    if (name[end] < '0' || name[end] > '9' || (end == at + 1 && name[at] == '0')) {
      return;
    }
    value = value * 10 + static_cast<std::uint64_t>(name[end] - '0');
    const auto has = [&](const auto& span) { return span.first <= value && value <= span.second; };
    if (std::any_of(token.spans.begin(), token.spans.end(), has)) {
      take(end + 1, value);
    }
  }
}

bool NamePattern::matches(std::string_view name) const {
  if (literal()) {
    return name == text_;
  }
  // Most names differ from the pattern in their first letters.
  if (tokens_.front().kind == Kind::Text &&
      name.substr(0, tokens_.front().text.size()) != tokens_.front().text) {
    return false;
  }
  return matches_from(0, name, 0);
}

bool NamePattern::matches_from(std::size_t token, std::string_view name, std::size_t at) const {
  std::vector<char> from(name.size() + 1, 0);
  std::vector<char> to(name.size() + 1, 0);
  from[at] = 1;
  for (; token < tokens_.size(); ++token) {
    advance(tokens_[token], name, from, to);
    from.swap(to);
  }
  return from[name.size()] != 0;
}

std::vector<NamePattern::Unused> NamePattern::unused(
    const std::vector<std::string_view>& names) const {
  std::vector<std::vector<std::uint64_t>> used(tokens_.size());
  for (const std::string_view name : names) {
    std::vector<char> from(name.size() + 1, 0);
    std::vector<char> to(name.size() + 1, 0);
    from[0] = 1;
    for (std::size_t t = 0; t < tokens_.size(); ++t) {
      for (std::size_t at = 0; tokens_[t].kind == Kind::Number && at < name.size(); ++at) {
        if (from[at] == 0) {
          continue;
        }
        numbers_at(tokens_[t], name, at, [&](std::size_t end, std::uint64_t value) {
          if (matches_from(t + 1, name, end)) {
            used[t].push_back(value);
          }
        });
      }
      advance(tokens_[t], name, from, to);
      from.swap(to);
    }
  }
  std::vector<Unused> result;
  for (std::size_t t = 0; t < tokens_.size(); ++t) {
    if (tokens_[t].kind != Kind::Number) {
      continue;
    }
    std::string missing = missing_numbers(tokens_[t].spans, std::move(used[t]));
    if (!missing.empty()) {
      result.push_back({tokens_[t].text, std::move(missing)});
    }
  }
  return result;
}

std::string suggestion(const NamePattern& pattern, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    for (std::size_t dot = name.find('.'); dot != std::string::npos;
         dot = name.find('.', dot + 1)) {
      if (!pattern.matches(std::string_view(name).substr(dot + 1))) continue;
      return fmt::format("; did you mean '{}{}'?", name.substr(0, dot + 1), pattern.text());
    }
  }
  return suggestion(pattern.text(), names);
}

}  // namespace holdfast
