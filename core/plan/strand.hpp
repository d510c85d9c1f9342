// Stripes of one class that share a tree.
#pragma once

#include <cstdint>
#include <vector>

#include "core/ids.hpp"
#include "core/plan/two_tree.hpp"
#include "core/units.hpp"

namespace holdfast {

struct Strand {
  std::uint32_t number = 0;       // in its class
  std::vector<StripeId> stripes;  // more than one where some receiver needs them apart
  Bytes stripe_bytes;             // of each
  std::uint32_t rail = 0;
  std::uint32_t turn = 0;  // numbers the class's strands rail by rail
  TreeSide side = TreeSide::First;
  std::uint32_t rotation = 0;  // of the list of a site that is fed from outside

  [[nodiscard]] Bytes bytes() const { return stripe_bytes * stripes.size(); }
};

}  // namespace holdfast
