// The ends of flows, earliest first: a heap that knows where each flow's entry is, so that an end
// that moves is moved, not entered again. Ties go to the lower number.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/units.hpp"

namespace holdfast::sim {

class EndQueue {
 public:
  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] Time first_time() const { return heap_.front().at; }
  [[nodiscard]] std::uint32_t first() const { return heap_.front().flow; }

  // Enters the flow or moves its end. O(log flows), O(1) where little changes.
  void set(std::uint32_t flow, Time at) {
    if (places_.size() <= flow) places_.resize(std::max<std::size_t>(flow + 1, 2 * flow), kNone);
    if (places_[flow] == kNone) {
      places_[flow] = heap_.size();
      heap_.push_back({at, flow});
      rise(heap_.size() - 1);
      return;
    }
    const std::size_t place = places_[flow];
    const bool earlier = at < heap_[place].at;
    heap_[place].at = at;
    earlier ? rise(place) : sink(place);
  }

  // Does nothing if the flow has no end here. O(log flows).
  void erase(std::uint32_t flow) {
    if (places_.size() <= flow || places_[flow] == kNone) return;
    const std::size_t place = places_[flow];
    places_[flow] = kNone;
    const Entry last = heap_.back();
    heap_.pop_back();
    if (place == heap_.size()) return;
    put(place, last);
    rise(place);
    sink(places_[last.flow]);
  }

 private:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t kArity = 4;
  struct Entry {
    Time at;
    std::uint32_t flow = 0;
    friend bool operator<(const Entry& a, const Entry& b) {
      return a.at != b.at ? a.at < b.at : a.flow < b.flow;
    }
  };

  void put(std::size_t place, const Entry& entry) {
    heap_[place] = entry;
    places_[entry.flow] = place;
  }

  void rise(std::size_t place) {
    const Entry entry = heap_[place];
    while (place != 0 && entry < heap_[(place - 1) / kArity]) {
      put(place, heap_[(place - 1) / kArity]);
      place = (place - 1) / kArity;
    }
    put(place, entry);
  }

  void sink(std::size_t place) {
    const Entry entry = heap_[place];
    for (;;) {
      const std::size_t first = place * kArity + 1;
      if (first >= heap_.size()) break;
      std::size_t least = first;
      for (std::size_t k = first + 1; k < std::min(first + kArity, heap_.size()); ++k) {
        if (heap_[k] < heap_[least]) least = k;
      }
      if (!(heap_[least] < entry)) break;
      put(place, heap_[least]);
      place = least;
    }
    put(place, entry);
  }

  std::vector<Entry> heap_;
  std::vector<std::size_t> places_;  // by flow
};

}  // namespace holdfast::sim
