// JSON of a known shape, read straight into variables: no document is built, and what does not fit
// is refused where it stands.
//
//   Point point;
//   JsonShape shape = JsonShape::list(JsonShape::object(
//       {{"x", JsonShape::number(point.x)}, {"y", JsonShape::number(point.y)}},
//       [&] { points.push_back(point); }));
//   read_json(text, "points.json", shape);
//
// All members of an object and of a tuple are required, in any order in an object; their variables
// are written before the object's `end` runs. Refused, with line, column and pointer: everything
// that JsonEvents refuses (syntax, duplicate keys, depth), UnknownKey with the nearest known one,
// MissingKey, and BadValue for another type, a number out of range or a tuple of another length,
// with what to write instead.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast {

class JsonShape {
 public:
  struct Member;
  // Hooks may throw Error without a place: the reader adds that of the value.
  using Hook = std::function<void()>;

  // An integer from `least` to `most`.
  static JsonShape number(std::function<void(std::uint64_t)> take, std::uint64_t least,
                          std::uint64_t most);
  // Any value of T.
  template <class T>
  static JsonShape number(T& target);
  // The same, or null for nothing.
  static JsonShape number_or_null(std::function<void(std::optional<std::uint64_t>)> take,
                                  std::uint64_t least, std::uint64_t most);
  static JsonShape boolean(bool& target);
  static JsonShape text(std::function<void(std::string_view)> take);
  // At most 64 members.
  static JsonShape object(std::vector<Member> members, Hook end = {});
  // An array of one value for each member, in this order.
  static JsonShape tuple(std::vector<Member> members, Hook end = {});
  // An array of any length. `begin` runs before the first element, also of an empty one.
  static JsonShape list(JsonShape element, Hook begin = {});

 private:
  friend class JsonShapeReader;
  enum class Kind { Number, Boolean, Text, Object, Tuple, List };

  explicit JsonShape(Kind kind);
  // "a number from 0 to 7", "an array of 2 values (first, count)", ...
  [[nodiscard]] std::string description() const;
  [[nodiscard]] std::vector<std::string> names() const;

  Kind kind_;
  bool or_null_ = false;
  std::uint64_t least_ = 0;
  std::uint64_t most_ = 0;
  std::function<void(std::optional<std::uint64_t>)> take_number_;
  std::function<void(std::string_view)> take_text_;
  bool* boolean_ = nullptr;
  std::vector<Member> members_;  // of an object or tuple; of a list: its one element
  Hook begin_;
  Hook end_;
};

struct JsonShape::Member {
  std::string name;
  JsonShape shape;
};

template <class T>
JsonShape JsonShape::number(T& target) {
  return number([&target](std::uint64_t value) { target = static_cast<T>(value); }, 0,
                std::numeric_limits<T>::max());
}

// Throws Error. O(length of the text); `file` names it in errors.
void read_json(std::string_view text, const std::string& file, const JsonShape& shape);

}  // namespace holdfast
