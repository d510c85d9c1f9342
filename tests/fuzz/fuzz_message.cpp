// Messages between engines: the decoder accepts or refuses anything, what it accepts has exactly
// one encoding, and an engine that gets it goes on.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "core/engine/message.hpp"
#include "core/engine/worker_engine.hpp"

namespace {

using namespace holdfast;

constexpr std::uint32_t kBlocks = 200;

void require(bool condition) {
  if (!condition) std::abort();
}

// Worker 0 holds, 1 reads from it, 2 reads from 1.
std::shared_ptr<const UpdateTables> tables() {
  Demand demand;
  demand.version = {1, 2};
  demand.block_size = Bytes(1000);
  demand.block_bytes.assign(kBlocks, Bytes(1000));
  demand.workers.resize(3);
  BlockClass c;
  c.blocks = {{BlockId(0U), kBlocks}};
  c.holders = {WorkerId(0U)};
  c.receivers = {WorkerId(1U), WorkerId(2U)};
  demand.classes = {c};
  Plan plan;
  Stripe stripe;
  stripe.block_class = ClassId(0U);
  stripe.blocks = {0, 1, kBlocks};
  for (const std::uint32_t child : {1U, 2U}) {
    Edge edge;
    edge.child = WorkerId(child);
    edge.parent = WorkerId(child - 1);
    stripe.edges.push_back(edge);
  }
  plan.stripes = {stripe};
  return std::make_shared<const UpdateTables>(demand, plan, nullptr,
                                              std::vector<std::uint64_t>(kBlocks, 0));
}

void encode_again(const Message& message, std::span<const std::byte> bytes) {
  std::array<std::byte, kMaxMessageBytes> again{};
  std::size_t length = 0;
  if (const Have* have = std::get_if<Have>(&message)) {
    std::vector<std::uint64_t> words;
    for (std::uint32_t k = 0; k * 64 < have->count; ++k) words.push_back(have->word(k));
    length = encode_have(have->about, have->first, have->count, words, again);
  } else {
    const Ask& ask = std::get<Ask>(message);
    length = encode_ask(ask.about, ask.first, again);
  }
  require(length == bytes.size());
  for (std::size_t i = 0; i < length; ++i) require(again[i] == bytes[i]);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto message = decode_message(bytes);
  if (message) {
    encode_again(*message, bytes);
  } else {
    require(message.error().offset <= size);
  }
  static const auto shared = tables();
  for (const std::uint32_t self : {0U, 1U, 2U}) {
    for (const std::uint32_t from : {0U, 1U, 2U}) {
      WorkerEngine engine(shared, WorkerId(self), {});
      std::vector<EngineCommand> commands;
      engine.step(TimePassed{}, Time{}, commands);
      engine.step(MessageFrom{WorkerId(from), bytes}, Time{}, commands);
      for (const EngineCommand& command : commands) {
        const auto* send = std::get_if<SendMessage>(&command);
        if (send == nullptr) continue;
        std::array<std::byte, kMaxMessageBytes> answer{};
        const std::size_t length = engine.write_message(*send, answer);
        require(decode_message(std::span(answer).first(length)).has_value());
      }
    }
  }
  return 0;
}
