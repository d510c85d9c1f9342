// Lines of JSON over a socket between two processes of one program: of the implementation.
#pragma once

#include <deque>
#include <string>

#include <nlohmann/json.hpp>

namespace holdfast::real {

class JsonLines {
 public:
  // Does not own the descriptor.
  explicit JsonLines(int descriptor) : descriptor_(descriptor) {}

  // Writes all of it, waiting where the other side is slow; false if that is gone.
  bool send(const nlohmann::json& value);
  // Takes in what is there, without waiting; false at the end of the stream or for what is not
  // JSON.
  bool receive(std::deque<nlohmann::json>& out);
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
  std::string partial_;
};

}  // namespace holdfast::real
