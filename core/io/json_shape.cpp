#include "core/io/json_shape.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.hpp"
#include "core/io/json_events.hpp"
#include "core/nearest.hpp"
#include "core/quote.hpp"

namespace holdfast {

JsonShape::JsonShape(Kind kind) : kind_(kind) {}

JsonShape JsonShape::number(std::function<void(std::uint64_t)> take, std::uint64_t least,
                            std::uint64_t most) {
  JsonShape shape(Kind::Number);
  shape.least_ = least;
  shape.most_ = most;
  shape.take_number_ = [take = std::move(take)](std::optional<std::uint64_t> value) {
    take(*value);
  };
  return shape;
}

JsonShape JsonShape::number_or_null(std::function<void(std::optional<std::uint64_t>)> take,
                                    std::uint64_t least, std::uint64_t most) {
  JsonShape shape(Kind::Number);
  shape.or_null_ = true;
  shape.least_ = least;
  shape.most_ = most;
  shape.take_number_ = std::move(take);
  return shape;
}

JsonShape JsonShape::boolean(bool& target) {
  JsonShape shape(Kind::Boolean);
  shape.boolean_ = &target;
  return shape;
}

JsonShape JsonShape::text(std::function<void(std::string_view)> take) {
  JsonShape shape(Kind::Text);
  shape.take_text_ = std::move(take);
  return shape;
}

JsonShape JsonShape::object(std::vector<Member> members, Hook end) {
  JsonShape shape(Kind::Object);
  shape.members_ = std::move(members);
  shape.end_ = std::move(end);
  return shape;
}

JsonShape JsonShape::tuple(std::vector<Member> members, Hook end) {
  JsonShape shape(Kind::Tuple);
  shape.members_ = std::move(members);
  shape.end_ = std::move(end);
  return shape;
}

JsonShape JsonShape::list(JsonShape element, Hook begin) {
  JsonShape shape(Kind::List);
  shape.members_.push_back({"", std::move(element)});
  shape.begin_ = std::move(begin);
  return shape;
}

std::vector<std::string> JsonShape::names() const {
  std::vector<std::string> names;
  for (const Member& member : members_) names.push_back(member.name);
  return names;
}

std::string JsonShape::description() const {
  switch (kind_) {
    case Kind::Number:
      return fmt::format("an integer from {} to {}{}", least_, most_, or_null_ ? " or null" : "");
    case Kind::Boolean:
      return "true or false";
    case Kind::Text:
      return "a string";
    case Kind::Object:
      return fmt::format("an object with {}", fmt::join(names(), ", "));
    case Kind::Tuple:
      return fmt::format("an array of {} values ({})", members_.size(), fmt::join(names(), ", "));
    case Kind::List:
      return "an array";
  }
  return "";
}

class JsonShapeReader : JsonEvents {
 public:
  JsonShapeReader(std::string_view text, std::string file, const JsonShape& shape)
      : JsonEvents(text, std::move(file), Places::LineAndColumn), root_(shape) {}

  using JsonEvents::read;

 private:
  using Kind = JsonShape::Kind;
  struct Level {
    const JsonShape* shape;
    std::size_t begin;       // its token
    std::size_t index = 0;   // elements before the current one
    std::uint64_t seen = 0;  // of an object: bit i for member i
  };

  void begin_object() override { open(Kind::Object, "an object"); }
  void begin_array() override { open(Kind::List, "an array"); }
  void end() override;
  void scalar(const JsonScalar& value) override;

  void open(Kind kind, const char* what);
  const JsonShape& expected();
  const JsonShape& member(Level& level);
  [[nodiscard]] std::string pointer(bool of_value) const;
  [[noreturn]] void refuse(ErrorCode code, const std::string& message) const {
    throw Error(code, message, place(token(), pointer(true)));
  }
  void run(const JsonShape::Hook& hook) const {
    if (hook) with_place(hook);
  }
  template <class Call>
  void with_place(Call&& call) const;

  const JsonShape& root_;
  std::vector<Level> levels_;  // open containers
};

// Of the value of the current event, or of the innermost container.
std::string JsonShapeReader::pointer(bool of_value) const {
  std::string text;
  const std::size_t count = levels_.size() - (of_value || levels_.empty() ? 0 : 1);
  for (std::size_t i = 0; i < count; ++i) {
    const bool named = levels_[i].shape->kind_ == Kind::Object;
    text += '/';
    text += named ? pointer_token(key(i + 1)) : std::to_string(levels_[i].index);
  }
  return text;
}

template <class Call>
void JsonShapeReader::with_place(Call&& call) const {
  try {
    call();
  } catch (const Error& error) {
    if (!to_string(error.place()).empty()) throw;
    refuse(error.code(), error.message());
  }
}

const JsonShape& JsonShapeReader::member(Level& level) {
  const JsonShape& shape = *level.shape;
  if (shape.kind_ == Kind::List) return shape.members_.front().shape;
  if (shape.kind_ == Kind::Tuple) {
    if (level.index >= shape.members_.size()) {
      refuse(ErrorCode::BadValue, fmt::format("too many values; write {}", shape.description()));
    }
    return shape.members_[level.index].shape;
  }
  const std::string& name = key(levels_.size());
  for (std::size_t i = 0; i < shape.members_.size(); ++i) {
    if (shape.members_[i].name != name) continue;
    level.seen |= std::uint64_t{1} << i;
    return shape.members_[i].shape;
  }
  refuse(ErrorCode::UnknownKey,
         fmt::format("unknown key {}{}", quote(name), suggestion(name, shape.names())));
}

// What the value of the current event must be.
const JsonShape& JsonShapeReader::expected() {
  return levels_.empty() ? root_ : member(levels_.back());
}

void JsonShapeReader::open(Kind kind, const char* what) {
  const JsonShape& shape = expected();
  const bool array = shape.kind_ == Kind::List || shape.kind_ == Kind::Tuple;
  if (shape.kind_ != kind && !(array && kind == Kind::List)) {
    refuse(ErrorCode::BadValue, fmt::format("this is {}; write {}", what, shape.description()));
  }
  run(shape.begin_);
  levels_.push_back({&shape, token()});
}

void JsonShapeReader::end() {
  const Level& level = levels_.back();
  const JsonShape& shape = *level.shape;
  if (shape.kind_ == Kind::Tuple && level.index < shape.members_.size()) {
    throw Error(ErrorCode::BadValue,
                fmt::format("{} values; write {}", level.index, shape.description()),
                place(level.begin, pointer(false)));
  }
  if (shape.kind_ == Kind::Object) {
    for (std::size_t i = 0; i < shape.members_.size(); ++i) {
      if ((level.seen >> i & 1U) != 0) continue;
      throw Error(ErrorCode::MissingKey,
                  fmt::format("the key '{}' is missing; write {}", shape.members_[i].name,
                              shape.members_[i].shape.description()),
                  place(level.begin, pointer(false)));
    }
  }
  const std::size_t begin = level.begin;
  levels_.pop_back();
  try {
    if (shape.end_) shape.end_();
  } catch (const Error& error) {
    if (!to_string(error.place()).empty()) throw;
    throw Error(error.code(), error.message(), place(begin, pointer(true)));
  }
  if (!levels_.empty()) ++levels_.back().index;
}

void JsonShapeReader::scalar(const JsonScalar& value) {
  const JsonShape& shape = expected();
  const auto wrong = [&](std::string what) {
    refuse(ErrorCode::BadValue, fmt::format("this is {}; write {}", what, shape.description()));
  };
  const auto is = [&](JsonScalar::Kind kind, Kind wanted) {
    return value.kind == kind && shape.kind_ == wanted;
  };
  if (is(JsonScalar::Kind::Unsigned, Kind::Number)) {
    if (value.number < shape.least_ || value.number > shape.most_) {
      wrong(std::to_string(value.number));
    }
    with_place([&] { shape.take_number_(value.number); });
  } else if (is(JsonScalar::Kind::Null, Kind::Number) && shape.or_null_) {
    with_place([&] { shape.take_number_(std::nullopt); });
  } else if (is(JsonScalar::Kind::String, Kind::Text)) {
    with_place([&] { shape.take_text_(value.text); });
  } else if (is(JsonScalar::Kind::Boolean, Kind::Boolean)) {
    *shape.boolean_ = value.number != 0;
  } else {
    wrong(to_string(value.kind));
  }
  if (!levels_.empty()) ++levels_.back().index;
}

void read_json(std::string_view text, const std::string& file, const JsonShape& shape) {
  JsonShapeReader(text, file, shape).read();
}

}  // namespace holdfast
