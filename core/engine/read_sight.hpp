// What a network that carries reads shows of them to those who watch it.
#pragma once

#include <cstddef>
#include <span>

#include "core/engine/transport.hpp"

namespace holdfast {

// A read as somebody who watches sees it.
struct ReadSight {
  enum class Kind {
    Posted,   // by the reader
    Served,   // the bytes leave the source
    Arrived,  // they are in the reader's region
    Ended,    // and it completes, or it has failed
  };
  Kind kind = Kind::Posted;
  OpId id = 0;
  WorkerId source;
  WorkerId reader;
  Version version;         // Served: of the permission
  RegionId source_region;  // Served
  RegionId reader_region;
  std::span<const Piece> pieces;
  std::span<const std::byte> bytes;  // Served: as they lie in the source's region
};

}  // namespace holdfast
