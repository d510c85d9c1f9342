// One engine without a network: a test steps it and sees what it said.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/engine/worker_engine.hpp"
#include "tests/engine/virtual_cluster.hpp"

namespace holdfast::testing {

inline constexpr Bytes kBlock(1000);

// Digest of block b is 100 + b.
inline std::shared_ptr<const UpdateTables> tables_for(const Demand& demand, const Plan& plan) {
  std::vector<std::uint64_t> digests;
  for (std::size_t b = 0; b < demand.block_bytes.size(); ++b) digests.push_back(100 + b);
  return std::make_shared<const UpdateTables>(demand, plan, nullptr, digests);
}

// An engine with what it said in its last step.
class Bench {
 public:
  Bench(std::uint32_t blocks, const std::vector<std::uint32_t>& parents, std::uint32_t worker,
        std::uint32_t window = 3, EngineConfig config = {}, bool verify = true) {
    Demand demand = simple_demand(parents.size(), blocks, kBlock);
    demand.verify = verify;
    engine = std::make_unique<WorkerEngine>(tables_for(demand, tree_plan(demand, parents, window)),
                                            WorkerId(worker), config);
  }

  void step(const EngineEvent& event) {
    said.clear();
    next = engine->step(event, now, said);
  }
  template <class Command>
  [[nodiscard]] std::vector<Command> all() const {
    std::vector<Command> found;
    for (const EngineCommand& command : said) {
      if (const auto* one = std::get_if<Command>(&command)) found.push_back(*one);
    }
    return found;
  }
  [[nodiscard]] std::vector<std::uint32_t> reads() const {
    std::vector<std::uint32_t> indices;
    for (const ReadBlock& read : all<ReadBlock>()) indices.push_back(read.at.index);
    return indices;
  }
  void have(std::uint32_t from, std::uint32_t first, std::vector<std::uint64_t> words,
            std::uint32_t count, Version version = {1, 2}, std::uint32_t stripe = 0,
            std::uint32_t transfer = 0) {
    std::array<std::byte, kMaxMessageBytes> buffer{};
    const std::size_t length =
        encode_have({version, transfer, StripeId(stripe)}, first, count, words, buffer);
    step(MessageFrom{WorkerId(from), std::span(buffer).first(length)});
  }
  void ask(std::uint32_t from, std::uint32_t first, std::uint32_t stripe = 0) {
    std::array<std::byte, kMaxMessageBytes> buffer{};
    const std::size_t length = encode_ask({{1, 2}, 0, StripeId(stripe)}, first, buffer);
    step(MessageFrom{WorkerId(from), std::span(buffer).first(length)});
  }
  // The block arrives and is right.
  void verify(std::uint32_t index, EdgeNumber edge = 0) {
    step(BlockRead{{edge, index}, ReadStatus::Ok});
    step(BlockDigested{{edge, index}, 100 + index});
  }
  // Indices that a have message of the last step tells of, per message.
  [[nodiscard]] std::vector<std::vector<std::uint32_t>> told() const {
    std::vector<std::vector<std::uint32_t>> messages;
    for (const SendMessage& send : all<SendMessage>()) {
      if (send.ask) continue;
      std::array<std::byte, kMaxMessageBytes> buffer{};
      const std::size_t length = engine->write_message(send, buffer);
      const auto message = decode_message(std::span(buffer).first(length));
      if (!message) {
        ADD_FAILURE() << to_string(message.error());
        continue;
      }
      const Have& have = std::get<Have>(*message);
      std::vector<std::uint32_t> indices;
      for (std::uint32_t i = 0; i < have.count; ++i) {
        if (((have.word(i / 64) >> (i % 64)) & 1U) != 0) indices.push_back(have.first + i);
      }
      messages.push_back(indices);
    }
    return messages;
  }

  std::unique_ptr<WorkerEngine> engine;
  std::vector<EngineCommand> said;
  Time now = seconds(1);
  Time next;
};

using Indices = std::vector<std::uint32_t>;
using Told = std::vector<Indices>;

}  // namespace holdfast::testing
