#include "core/plan/demand.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include "core/error.hpp"

namespace holdfast {
namespace {

[[noreturn]] void refuse(std::string pointer, std::string message) {
  Place place;
  place.pointer = std::move(pointer);
  throw Error(ErrorCode::BadPlan, std::move(message), std::move(place));
}

void validate_blocks(const Demand& demand) {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < demand.block_bytes.size(); ++i) {
    const std::uint64_t bytes = demand.block_bytes[i].count();
    const auto pointer = [i] { return fmt::format("/demand/block_bytes/{}", i); };
    if (bytes == 0) refuse(pointer(), fmt::format("block {} has no bytes: write 1 or more", i));
    if (demand.block_bytes[i] > demand.block_size) {
      refuse(pointer(), fmt::format("block {} has {} bytes, more than block_size, which is {}", i,
                                    bytes, demand.block_size.count()));
    }
    if (bytes > std::numeric_limits<std::uint64_t>::max() / 2 - total) {
      refuse(pointer(), "the blocks together have more than 2^63 bytes");
    }
    total += bytes;
  }
}

void validate_workers(const Demand& demand, const Topology& topology) {
  std::vector<WorkerId> worker_of(topology.nodes().size());
  for (std::size_t i = 0; i < demand.workers.size(); ++i) {
    const NodeId node = demand.workers[i].node;
    const auto pointer = [i] { return fmt::format("/demand/workers/{}", i); };
    if (node.index() >= topology.nodes().size()) {
      refuse(pointer(), fmt::format("worker {} is on node {}; topology '{}' has nodes 0 to {}", i,
                                    node.value(), topology.name(), topology.nodes().size() - 1));
    }
    const Node& place = topology.node(node);
    if (!is_endpoint(place.kind)) {
      refuse(pointer(), fmt::format("worker {} is on '{}', a {}; a worker owns the memory of a GPU "
                                    "or of a host",
                                    i, place.name, to_string(place.kind)));
    }
    if (demand.workers[i].memory_free > place.memory) {
      refuse(fmt::format("{}/memory_free", pointer()),
             fmt::format("worker {} on '{}' has {} bytes free of {}; write at most that", i,
                         place.name, demand.workers[i].memory_free.count(), place.memory.count()));
    }
    WorkerId& owner = worker_of[node.index()];
    if (owner.valid()) {
      refuse(pointer(), fmt::format("workers {} and {} are both on '{}'; one worker owns a node",
                                    owner.value(), i, place.name));
    }
    owner = WorkerId(i);
  }
}

void validate_list(const Demand& demand, const std::vector<WorkerId>& list, std::size_t number,
                   std::string_view name) {
  const auto pointer = [&] { return fmt::format("/demand/classes/{}/{}", number, name); };
  if (list.empty()) refuse(pointer(), fmt::format("class {} has no {}", number, name));
  for (std::size_t k = 0; k < list.size(); ++k) {
    if (list[k].index() >= demand.workers.size()) {
      refuse(fmt::format("{}/{}", pointer(), k),
             fmt::format("worker {} is not there; the demand has {} workers", list[k].value(),
                         demand.workers.size()));
    }
    if (k > 0 && list[k - 1] >= list[k]) {
      refuse(fmt::format("{}/{}", pointer(), k),
             fmt::format("worker {} after worker {}; {} ascend", list[k].value(),
                         list[k - 1].value(), name));
    }
  }
}

// Marks the blocks of one class in `taken`.
void validate_spans(const BlockClass& c, std::size_t number, std::vector<ClassId>& taken) {
  const auto pointer = [number](std::size_t k) {
    return fmt::format("/demand/classes/{}/blocks/{}", number, k);
  };
  if (c.blocks.empty()) {
    refuse(fmt::format("/demand/classes/{}/blocks", number), "a class has at least one block");
  }
  std::uint64_t end = 0;
  for (std::size_t k = 0; k < c.blocks.size(); ++k) {
    const BlockSpan& span = c.blocks[k];
    const std::uint64_t first = span.first.value();
    if (span.count == 0) refuse(pointer(k), "a span has at least one block");
    if (first + span.count > taken.size()) {
      refuse(pointer(k), fmt::format("blocks {} to {}; the demand has {} blocks, from 0", first,
                                     first + span.count - 1, taken.size()));
    }
    if (k > 0 && first <= end) {
      refuse(pointer(k),
             fmt::format("the span begins at block {}, the one before ends at {}; spans "
                         "ascend and do not touch",
                         first, end - 1));
    }
    end = first + span.count;
    for (std::uint64_t block = first; block < end; ++block) {
      if (taken[block].valid()) {
        refuse(pointer(k), fmt::format("block {} is in class {} too", block, taken[block].value()));
      }
      taken[block] = ClassId(number);
    }
  }
}

void validate_classes(const Demand& demand) {
  std::vector<ClassId> taken(demand.block_bytes.size());
  for (std::size_t i = 0; i < demand.classes.size(); ++i) {
    const BlockClass& c = demand.classes[i];
    validate_spans(c, i, taken);
    validate_list(demand, c.holders, i, "holders");
    validate_list(demand, c.receivers, i, "receivers");
    auto holder = c.holders.begin();
    for (const WorkerId receiver : c.receivers) {
      holder = std::lower_bound(holder, c.holders.end(), receiver);
      if (holder != c.holders.end() && *holder == receiver) {
        refuse(fmt::format("/demand/classes/{}/receivers", i),
               fmt::format("worker {} holds the blocks that it is to receive", receiver.value()));
      }
    }
  }
}

void add_list(CanonicalHasher& hasher, const std::vector<WorkerId>& list) {
  hasher.add(std::uint64_t{list.size()});
  for (const WorkerId worker : list) hasher.add(std::uint64_t{worker.value()});
}

}  // namespace

void validate(const Demand& demand, const Topology& topology) {
  validate_blocks(demand);
  validate_workers(demand, topology);
  validate_classes(demand);
}

Hash128 hash_of(const Demand& demand) {
  CanonicalHasher hasher;
  hasher.add("holdfast demand").add(demand.model);
  hasher.add(demand.version.lineage).add(demand.version.number);
  hasher.add(demand.block_size).add(std::uint64_t{demand.verify ? 1U : 0U});
  hasher.add(std::uint64_t{demand.block_bytes.size()});
  for (const Bytes bytes : demand.block_bytes) hasher.add(bytes);
  hasher.add(std::uint64_t{demand.workers.size()});
  for (const DemandWorker& worker : demand.workers) {
    hasher.add(std::uint64_t{worker.node.value()}).add(std::uint64_t{worker.group});
    hasher.add(worker.memory_free).add(std::uint64_t{worker.may_serve ? 1U : 0U});
  }
  hasher.add(std::uint64_t{demand.classes.size()});
  for (const BlockClass& c : demand.classes) {
    hasher.add(std::uint64_t{c.blocks.size()});
    for (const BlockSpan& span : c.blocks) {
      hasher.add(std::uint64_t{span.first.value()}).add(std::uint64_t{span.count});
    }
    add_list(hasher, c.holders);
    add_list(hasher, c.receivers);
  }
  return hasher.finish();
}

std::uint32_t block_count(const BlockClass& c) {
  std::uint32_t count = 0;
  for (const BlockSpan& span : c.blocks) count += span.count;
  return count;
}

Bytes bytes_of(const Demand& demand, const BlockClass& c) {
  Bytes bytes;
  for (const BlockSpan& span : c.blocks) {
    const std::span<const Bytes> sizes(&demand.block_bytes[span.first.index()], span.count);
    for (const Bytes size : sizes) bytes += size;
  }
  return bytes;
}

std::vector<BlockId> blocks_of(const BlockClass& c) {
  std::vector<BlockId> blocks;
  blocks.reserve(block_count(c));
  for (const BlockSpan& span : c.blocks) {
    for (std::uint32_t k = 0; k < span.count; ++k) blocks.emplace_back(span.first.value() + k);
  }
  return blocks;
}

std::vector<Bytes> missing_bytes(const Demand& demand) {
  std::vector<Bytes> missing(demand.workers.size());
  for (const BlockClass& c : demand.classes) {
    const Bytes bytes = bytes_of(demand, c);
    for (const WorkerId receiver : c.receivers) missing[receiver.index()] += bytes;
  }
  return missing;
}

}  // namespace holdfast
