#include "core/io/spot_trace.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "core/nearest.hpp"
#include "core/quote.hpp"

namespace holdfast {
namespace {

constexpr std::size_t kMostRows = 1'000'000;
constexpr std::size_t kLongestName = 200;
constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

struct Cell {
  std::string_view text;
  int column = 0;  // from 1
};

std::vector<Cell> cells_of(std::string_view line) {
  std::vector<Cell> cells;
  std::size_t begin = 0;
  while (true) {
    const std::size_t comma = std::min(line.find(',', begin), line.size());
    std::size_t first = begin;
    std::size_t last = comma;
    while (first < last && (line[first] == ' ' || line[first] == '\t')) ++first;
    while (last > first && (line[last - 1] == ' ' || line[last - 1] == '\t')) --last;
    cells.push_back({line.substr(first, last - first), static_cast<int>(first) + 1});
    if (comma == line.size()) return cells;
    begin = comma + 1;
  }
}

class TraceParser {
 public:
  TraceParser(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  std::vector<TraceRow> parse() {
    if (text_.size() > kMostTraceBytes) {
      refuse(ErrorCode::LimitExceeded, {}, fmt::format("more than {} bytes", kMostTraceBytes));
    }
    while (const std::optional<std::string_view> line = next_line()) {
      const std::vector<Cell> cells = cells_of(*line);
      if (!have_header_) {
        read_header(cells);
      } else {
        read_row(cells);
      }
    }
    if (!have_header_) {
      refuse(ErrorCode::MissingKey, {}, "the file is empty; begin with 'time,worker,event'");
    }
    return std::move(rows_);
  }

 private:
  [[noreturn]] void refuse(ErrorCode code, const Cell& cell, const std::string& message) const {
    throw Error(code, message, Place{file_, std::max(line_, 1), std::max(cell.column, 1), {}, {}});
  }

  // The next line with something on it, without its end.
  std::optional<std::string_view> next_line() {
    while (at_ < text_.size()) {
      const std::size_t end = std::min(text_.find('\n', at_), text_.size());
      std::string_view line = text_.substr(at_, end - at_);
      at_ = end + 1;
      ++line_;
      if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
      const std::size_t first = line.find_first_not_of(" \t");
      if (first != std::string_view::npos && line[first] != '#') return line;
    }
    return std::nullopt;
  }

  void read_header(const std::vector<Cell>& cells) {
    have_header_ = true;
    columns_ = cells.size();
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string_view name = cells[i].text;
      std::size_t* index = nullptr;
      if (name == "time" || name == "time_s") {
        index = &time_;
        plain_seconds_ = name == "time_s";
      } else if (name == "worker" || name == "host") {
        index = &who_;
      } else if (name == "event") {
        index = &event_;
      } else {
        refuse(ErrorCode::UnknownKey, cells[i],
               fmt::format("{} is no column{}", quote(name),
                           suggestion(name, {"time", "time_s", "worker", "host", "event"})));
      }
      if (*index != kNowhere) {
        refuse(ErrorCode::Duplicate, cells[i],
               "write one of 'time' and 'time_s', one of 'worker' and 'host', and one 'event'");
      }
      *index = i;
    }
    for (const auto& [index, name] :
         {std::pair{time_, "time"}, std::pair{who_, "worker"}, std::pair{event_, "event"}}) {
      if (index == kNowhere) {
        refuse(ErrorCode::MissingKey, cells.front(),
               fmt::format("there is no column '{}'; begin with 'time,worker,event'", name));
      }
    }
  }

  Time time_of(const Cell& cell) const {
    Parsed<Time> time = parse_time(std::string(cell.text) + (plain_seconds_ ? "s" : ""));
    if (!time && plain_seconds_) {
      refuse(ErrorCode::BadUnit, cell,
             fmt::format("{} is no number of seconds, such as 12.5; for times with units call the "
                         "column 'time'",
                         quote(cell.text)));
    }
    if (!time) refuse(ErrorCode::BadUnit, cell, time.error());
    if (!rows_.empty() && *time < rows_.back().at) {
      refuse(ErrorCode::BadValue, cell, "rows ascend in time; this is before the row above");
    }
    return *time;
  }

  void read_row(const std::vector<Cell>& cells) {
    if (cells.size() != columns_) {
      refuse(ErrorCode::BadSyntax, cells.front(),
             fmt::format("{} cells where the header has {}", cells.size(), columns_));
    }
    if (rows_.size() == kMostRows) {
      refuse(ErrorCode::LimitExceeded, cells.front(), fmt::format("more than {} rows", kMostRows));
    }
    TraceRow row;
    row.at = time_of(cells[time_]);
    const Cell& who = cells[who_];
    if (who.text.empty() || who.text.size() > kLongestName) {
      refuse(ErrorCode::BadValue, who, "write the name of a worker or host");
    }
    row.who = std::string(who.text);
    const Parsed<MemberEventKind> event = parse_member_event(cells[event_].text);
    if (!event) refuse(ErrorCode::BadValue, cells[event_], event.error());
    row.event = *event;
    row.place = Place{file_, line_, who.column, {}, {}};
    rows_.push_back(std::move(row));
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  int line_ = 0;
  bool have_header_ = false;
  bool plain_seconds_ = false;
  std::size_t columns_ = 0;
  std::size_t time_ = kNowhere;
  std::size_t who_ = kNowhere;
  std::size_t event_ = kNowhere;
  std::vector<TraceRow> rows_;
};

// Which seats a name stands for, ascending.
class SeatFinder {
 public:
  SeatFinder(std::span<const std::vector<NodeId>> seats, const Topology& topology)
      : topology_(topology) {
    for (std::size_t seat = 0; seat < seats.size(); ++seat) {
      for (const NodeId node : seats[seat]) {
        seat_of_.emplace(node, static_cast<std::uint32_t>(seat));
      }
    }
  }

  std::vector<std::uint32_t> find(const TraceRow& row) const {
    std::vector<std::uint32_t> found;
    const auto add = [&](NodeId node) {
      const auto at = seat_of_.find(node);
      if (at != seat_of_.end()) found.push_back(at->second);
    };
    const NodeId node = topology_.find_node(row.who);
    const DomainId domain = topology_.find_domain(row.who);
    if (!node.valid() && !domain.valid()) {
      std::vector<std::string> known;
      for (const auto& each : topology_.domains()) known.push_back(each.name);
      for (const auto& [each, seat] : seat_of_) known.push_back(topology_.node(each).name);
      std::sort(known.begin(), known.end());
      throw Error(ErrorCode::UnknownName,
                  fmt::format("no worker or host is called {}{}", quote(row.who),
                              suggestion(row.who, known)),
                  row.place);
    }
    if (node.valid()) {
      add(node);
    } else {
      for (const NodeId inside : topology_.members(domain)) add(inside);
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    if (found.empty()) {
      throw Error(
          ErrorCode::BadValue,
          fmt::format("{} belongs to no rollout group with 'reliability: spot'", quote(row.who)),
          row.place);
    }
    return found;
  }

 private:
  const Topology& topology_;
  std::unordered_map<NodeId, std::uint32_t> seat_of_;
};

}  // namespace

std::vector<TraceRow> parse_spot_trace(std::string_view text, const std::string& file) {
  return TraceParser(text, file).parse();
}

std::vector<MemberEvent> member_events(std::span<const TraceRow> rows,
                                       std::span<const std::vector<NodeId>> seats,
                                       const Topology& topology) {
  const SeatFinder finder(seats, topology);
  std::vector<MemberEvent> events;
  std::vector<std::size_t> row_of;  // by event
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (const std::uint32_t seat : finder.find(rows[i])) {
      events.push_back({rows[i].at, rows[i].event, seat, {}});
      row_of.push_back(i);
    }
    if (events.size() > kMostMemberEvents) {
      throw Error(ErrorCode::LimitExceeded,
                  fmt::format("more than {} joins, notices, leaves and kills of replicas",
                              kMostMemberEvents),
                  rows[i].place);
    }
  }
  if (const auto fault = fault_of(events, std::vector<char>(seats.size(), 0))) {
    const TraceRow& row = rows[row_of[fault->index]];
    throw Error(ErrorCode::BadValue, fmt::format("{}: {}", quote(row.who), fault->message),
                row.place);
  }
  std::vector<Time> ends(seats.size(), Time::never());
  for (auto event = events.rbegin(); event != events.rend(); ++event) {
    if (event->kind == MemberEventKind::Notice) {
      event->gone = ends[event->seat];
    } else {
      ends[event->seat] = event->kind == MemberEventKind::Join ? Time::never() : event->at;
    }
  }
  return events;
}

}  // namespace holdfast
