// A piece of a scenario's text and where it stands.
#pragma once

#include <string>

#include "core/error.hpp"

namespace holdfast {

struct Word {
  std::string text;
  Place place;
};

}  // namespace holdfast
