// The engine and its loop as they are, a thread for each worker, over TCP and host memory: weights
// go from a trainer's shards down a chain into poisoned memory of another layout, and are right.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "core/engine/digest.hpp"
#include "core/engine/loop.hpp"
#include "real/host_memory.hpp"
#include "real/layout_placement.hpp"
#include "real/tcp_transport.hpp"
#include "real/weight_bytes.hpp"

namespace holdfast::real {
namespace {

constexpr Version kVersion{2, 7};

Manifest model() {
  std::vector<Tensor> tensors{{"model.embed_tokens.weight", DType::BF16, {4096, 64}},
                              {"model.norm.weight", DType::F32, {64}},
                              {"lm_head.weight", DType::BF16, {4096, 64}}};
  for (int layer = 0; layer < 4; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    tensors.push_back({prefix + "self_attn.q_proj.weight", DType::BF16, {256, 64}});
    tensors.push_back({prefix + "self_attn.o_proj.weight", DType::BF16, {64, 256}});
    tensors.push_back({prefix + "mlp.down_proj.weight", DType::BF16, {64, 1024}});
  }
  return Manifest("m", tensors);
}

// Permissions and addresses, drawn before the threads begin; nobody changes them then.
class FixedGrants final : public Grants {
 public:
  [[nodiscard]] Access access(WorkerId reader, WorkerId source) override {
    return accesses[reader.index()][source.index()];
  }
  [[nodiscard]] std::string address(WorkerId worker) override { return addresses[worker.index()]; }
  std::array<std::array<Access, 4>, 4> accesses;
  std::array<std::string, 4> addresses;
};

struct Worker {
  explicit Worker(WorkerId id, Bytes bytes)
      : transport(id),
        host(transport.regions(), transport.wake_up()),
        memory(bytes.count(), kPoison),
        region(transport.add_region(memory, bytes)) {}
  TcpTransport transport;
  HostMemory host;
  std::vector<std::byte> memory;
  RegionId region;
};

// Shard 0 of the trainer's two (worker 0) is read by worker 1, which holds the whole model in
// another layout, and from there by worker 2; the other shard (worker 3) takes the same way.
TEST(EngineOverTcp, WeightsArriveDownAChainInAnotherLayout) {
  const Manifest manifest = model();
  const std::vector<Layout> layouts{{"trainer", 2}, {"rollout", 1}};
  const WeightMap map(manifest, layouts, Bytes(64 * 1024));
  const LayoutPlacement placement(map, {{0, 0}, {1, 0}, {1, 0}, {0, 1}});
  const WeightBytes bytes(manifest, kVersion);

  Demand demand;
  demand.model = manifest.model();
  demand.version = kVersion;
  demand.block_size = map.block_size();
  demand.workers.resize(4);
  std::vector<std::unique_ptr<Worker>> workers;
  for (std::uint32_t w = 0; w < 4; ++w) {
    workers.push_back(std::make_unique<Worker>(WorkerId(w), placement.region_bytes(WorkerId(w))));
  }
  std::vector<std::uint64_t> digests(map.blocks());
  Plan plan;
  for (const Segment& segment : map.segments()) {
    const WorkerId holder = segment.shards[0].front() == 0 ? WorkerId(0U) : WorkerId(3U);
    BlockClass c;
    c.blocks = {{segment.first_block, segment.blocks}};
    c.holders = {holder};
    c.receivers = {WorkerId(1U), WorkerId(2U)};
    Stripe stripe;
    stripe.block_class = ClassId(demand.classes.size());
    stripe.blocks = {0, 1, segment.blocks};
    demand.classes.push_back(c);
    for (const std::uint32_t child : {1U, 2U}) {
      Edge edge;
      edge.child = WorkerId(child);
      edge.parent = child == 1 ? holder : WorkerId(1U);
      stripe.edges.push_back(edge);
    }
    plan.stripes.push_back(stripe);
    std::vector<std::byte>& memory = workers[holder.index()]->memory;
    fill_blocks(bytes, manifest, map, placement, holder, c.blocks, memory);
    for (std::uint32_t n = 0; n < segment.blocks; ++n) {
      const BlockId block(segment.first_block.value() + n);
      std::vector<Extent> extents;
      placement.append_extents(holder, block, extents);
      BlockDigester digester;
      for (const Extent& extent : extents) {
        digester.add(std::span(memory).subspan(extent.offset, extent.bytes));
      }
      digests[block.index()] = digester.finish();
    }
  }
  for (std::size_t b = 0; b < map.blocks(); ++b) {
    demand.block_bytes.push_back(map.bytes_of(BlockId(b)));
  }
  FixedGrants grants;
  for (std::uint32_t source = 0; source < 4; ++source) {
    grants.addresses[source] = workers[source]->transport.address();
    for (const std::uint32_t reader : {1U, 2U}) {
      grants.accesses[reader][source] =
          workers[source]->transport.allow(WorkerId(reader), kVersion, workers[source]->region);
    }
  }
  const auto tables = std::make_shared<const UpdateTables>(demand, plan, nullptr, digests);
  std::atomic<int> complete{0};
  std::vector<std::thread> threads;
  for (std::uint32_t w = 0; w < 4; ++w) {
    threads.emplace_back([&, w] {
      Worker& worker = *workers[w];
      WorkerEngine engine(tables, WorkerId(w), {});
      WorkerLoop loop({engine, worker.transport, worker.host, placement, worker.region, grants, 1});
      bool counted = false;
      const Time end = worker.transport.now() + seconds(120);
      while (loop.pump() && complete < 4 && worker.transport.now() < end) {
        if (!counted && engine.complete() && !engine.fresh()) {
          counted = true;
          ++complete;
          for (const auto& other : workers) other->transport.wake_up().raise();
          continue;
        }
        worker.transport.wait(
            std::min({end, loop.next_deadline(), worker.transport.now() + milliseconds(50)}));
      }
      EXPECT_FALSE(loop.failure());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(complete, 4);
  for (std::uint32_t w = 0; w < 4; ++w) {
    const bool trainer = w == 0 || w == 3;
    const auto wrong = first_wrong_byte(bytes, manifest, layouts[trainer ? 0 : 1], w == 3 ? 1 : 0,
                                        workers[w]->memory);
    // Worker 3 was not given what both shards hold: worker 0 serves it.
    if (w != 3) {
      EXPECT_FALSE(wrong) << "worker " << w << " tensor " << wrong->tensor;
    }
  }
}

}  // namespace
}  // namespace holdfast::real
