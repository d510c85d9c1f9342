// What an engine costs: bytes, and allocations while it runs.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/engine/virtual_cluster.hpp"

namespace {
std::atomic<std::uint64_t> allocations{0};
}  // namespace

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 does not see that both are replaced together where it inlines only one of them.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace holdfast::testing {
namespace {

// Sixteen stripes of a binary tree each, rotated, so that the work is even: the shape of a plan for
// GPUs with eight NICs and two trees a NIC.
std::shared_ptr<const UpdateTables> many_stripes(std::uint32_t receivers, std::uint32_t blocks,
                                                 std::uint32_t stripes) {
  const Demand demand = simple_demand(receivers, blocks, Bytes(1 << 20));
  Plan plan;
  for (std::uint32_t s = 0; s < stripes; ++s) {
    Stripe stripe;
    stripe.block_class = ClassId(0U);
    stripe.blocks = {s, stripes, blocks};
    const auto worker_at = [&](std::uint32_t place) {
      return WorkerId(1 + (place + s * (receivers / stripes)) % receivers);
    };
    for (std::uint32_t place = 0; place < receivers; ++place) {
      Edge edge;
      edge.child = worker_at(place);
      edge.parent = place == 0 ? WorkerId(0U) : worker_at((place - 1) / 2);
      stripe.edges.push_back(edge);
    }
    plan.stripes.push_back(stripe);
  }
  return std::make_shared<const UpdateTables>(demand, plan, nullptr,
                                              std::vector<std::uint64_t>(blocks, 0));
}

TEST(EngineMemory, FourKibibytesAndTwoBitsABlock) {
  for (const std::uint32_t blocks : {64U, 1024U, 8192U, 65536U}) {
    SCOPED_TRACE(blocks);
    const auto tables = many_stripes(1023, blocks, 16);
    std::size_t most = 0;
    for (std::uint32_t w = 0; w <= 1023; ++w) {
      const WorkerEngine engine(tables, WorkerId(w), {});
      most = std::max(most, engine.memory_bytes());
    }
    // Two bitmaps a stripe, each rounded up to a word.
    const std::size_t bits = std::max<std::size_t>(blocks, 16 * 64) * 2 / 8;
    EXPECT_LE(most, 4096 + bits);
    ::testing::Test::RecordProperty("bytes_at_" + std::to_string(blocks), static_cast<int>(most));
  }
}

TEST(EngineMemory, StarRootTakesNothingForItsChildren) {
  const Demand demand = simple_demand(16'384, 1024, Bytes(1 << 20));
  const auto tables = std::make_shared<const UpdateTables>(
      demand, tree_plan(demand, std::vector<std::uint32_t>(16'384, 0), 2), nullptr,
      std::vector<std::uint64_t>(1024, 0));
  EXPECT_LE(WorkerEngine(tables, WorkerId(0U), {}).memory_bytes(), 1024U);
}

// After the first blocks, steps allocate nothing, nor does the engine grow.
TEST(EngineMemory, StepsDoNotAllocate) {
  const Demand demand = simple_demand(4, 4096, Bytes(1000));
  const auto tables = std::make_shared<const UpdateTables>(
      demand, tree_plan(demand, {0, 1, 1, 1}, 8), nullptr, std::vector<std::uint64_t>(4096, 0));
  WorkerEngine engine(tables, WorkerId(1U), {});
  std::vector<EngineCommand> commands;
  Time now;
  std::uint64_t before = 0;
  std::size_t size = 0;
  engine.step(TimePassed{}, now, commands);
  for (std::uint32_t i = 0; i < 4096; ++i) {
    if (i == 8) {
      before = allocations;
      size = engine.memory_bytes();
    }
    commands.clear();
    now += microseconds(i % 3 == 0 ? 30 : 5);
    engine.step(BlockRead{{0, i}, ReadStatus::Ok}, now, commands);
    engine.step(BlockDigested{{0, i}, 0}, now, commands);
    std::array<std::byte, kMaxMessageBytes> buffer{};
    for (const EngineCommand& command : commands) {
      if (const auto* send = std::get_if<SendMessage>(&command)) {
        engine.write_message(*send, buffer);
      }
    }
  }
  EXPECT_TRUE(engine.complete());
  EXPECT_EQ(allocations - before, 0U);
  EXPECT_EQ(engine.memory_bytes(), size);
}

// A receiver of words does not allocate either.
TEST(EngineMemory, WordsDoNotAllocate) {
  const Demand demand = simple_demand(2, 4096, Bytes(1000));
  const auto tables = std::make_shared<const UpdateTables>(
      demand, tree_plan(demand, {0, 1}, 8), nullptr, std::vector<std::uint64_t>(4096, 0));
  WorkerEngine engine(tables, WorkerId(2U), {});
  std::vector<EngineCommand> commands;
  commands.reserve(64);
  engine.step(TimePassed{}, Time{}, commands);
  std::array<std::byte, kMaxMessageBytes> buffer{};
  const std::array<std::uint64_t, 1> words{~0ULL};
  const std::uint64_t before = allocations;
  for (std::uint32_t first = 0; first < 4096; first += 64) {
    const std::size_t length = encode_have({{1, 2}, 0, StripeId(0U)}, first, 64, words, buffer);
    engine.step(MessageFrom{WorkerId(1U), std::span(buffer).first(length)}, Time{}, commands);
    for (std::uint32_t i = first; i < first + 64; ++i) {
      commands.clear();
      engine.step(BlockRead{{0, i}, ReadStatus::Ok}, Time{}, commands);
      engine.step(BlockDigested{{0, i}, 0}, Time{}, commands);
    }
  }
  EXPECT_TRUE(engine.complete());
  EXPECT_EQ(allocations - before, 0U);
}

}  // namespace
}  // namespace holdfast::testing
