#include "real/local/local_worker.hpp"

#include <algorithm>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/catalog/agent_loop.hpp"
#include "real/clock.hpp"
#include "real/control/catalog_codec.hpp"
#include "real/control_channel.hpp"
#include "real/host_memory.hpp"
#include "real/layout_placement.hpp"
#include "real/local/json_lines.hpp"
#include "real/tcp_transport.hpp"
#include "real/weight_bytes.hpp"

namespace holdfast::real {
namespace {

using nlohmann::json;

// How often to look for the end of long work: its word may come before it has ended.
constexpr Time kWorkLook = milliseconds(5);

HeldShard held(ShardId shard) {
  if (shard == kWholeModel) return {};
  return {shard.layout, shard.rank};
}

class LocalWorker final : public ControlChannel,
                          public SlotRegions,
                          public AgentObserver,
                          public Placements {
 public:
  explicit LocalWorker(const LocalWorkerSetup& setup)
      : setup_(setup),
        transport_(setup.worker, {}),
        memory_(transport_.regions(), transport_.wake_up()),
        client_(setup.worker, 1, setup.coordinator, {}),
        lines_(setup.parent),
        agent_(setup.worker, 1, card(), setup.space, setup.agent),
        loop_({agent_, *setup.space, setup.card.space, transport_, memory_, *this, *this, *this,
               engine_config(), this, setup.verify}) {
    if (!setup.card.host_memory) {
      for (SlotNumber slot = 0; slot < setup.card.slots; ++slot) {
        allocate(slot, setup.space->bytes(setup.card.shard));
      }
    }
  }

  int run() {
    transport_.watch(client_.descriptor());
    transport_.watch(setup_.parent);
    while (!stop_ && gone_.empty()) {
      take_control();
      if (!lines_.receive(orders_)) return 0;  // the parent is gone: nobody to tell
      finish_work();
      while (!orders_.empty() && !stop_ && !work_.valid()) {
        obey(orders_.front());
        orders_.pop_front();
      }
      loop_.pump();
      if (!ready_ && agent_.connected()) {
        ready_ = true;
        tell({{"is", "ready"}});
      }
      if (gone_.empty() && !stop_) {
        Time until = std::min(loop_.next_deadline(), client_.next_time());
        if (work_.valid()) until = std::min(until, transport_.now() + kWorkLook);
        transport_.wait(until);
      }
    }
    if (!gone_.empty()) {
      lines_.send({{"is", "failed"}, {"words", gone_}});
      return 1;
    }
    return finish();
  }

  // ControlChannel
  void send(ToCoordinator frame) override {
    const std::string bytes = codec_.encode(frame, transport_.now());
    client_.send(std::as_bytes(std::span(bytes)));
  }

  // SlotRegions
  RegionId region(SlotNumber slot) override { return buffers_.at(slot).region; }
  void allocate(SlotNumber slot, Bytes bytes) override {
    Buffer& buffer = buffers_[slot];
    buffer.bytes.assign(std::max<std::uint64_t>(bytes.count(), 1), kPoison);
    buffer.region = transport_.add_region(buffer.bytes, bytes);
  }
  // The region stays registered with the transport, which has no call to take it back: the memory
  // must outlive it.
  void release(SlotNumber slot) override {
    released_.push_back(std::move(buffers_.at(slot).bytes));
    buffers_.erase(slot);
  }
  std::string address(WorkerId /*worker*/) override { return {}; }

  // Placements
  std::shared_ptr<const Placement> of(const PlannedTransfer& transfer) override {
    poison(transfer.version);
    std::vector<HeldShard> shards;
    for (const ShardId& shard : transfer.shards) shards.push_back(held(shard));
    return std::make_shared<const LayoutPlacement>(setup_.map, std::move(shards));
  }
  void append_extents(SpaceId /*space*/, ShardId shard, BlockId block,
                      std::vector<Extent>& out) override {
    LayoutPlacement(setup_.map, {held(shard)}).append_extents(WorkerId(0U), block, out);
  }

  // AgentObserver
  void call_finished(CallId id, const CallResult& result, Time /*now*/) override {
    tell({{"is", "ended"},
          {"call", id},
          {"status", to_string(result.status)},
          {"lineage", result.version.lineage},
          {"number", result.version.number},
          {"words", to_string(result)}});
  }
  void runs_changed(const std::optional<Version>& version, SlotNumber slot, Time /*now*/) override {
    runs_ = version;
    running_slot_ = slot;
    json line{{"is", "runs"}};
    if (version) {
      line["lineage"] = version->lineage;
      line["number"] = version->number;
    }
    tell(line);
  }
  void block_verified(const PlannedTransfer& /*transfer*/, BlockId block, WorkerId source,
                      Time /*now*/) override {
    tell({{"is", "block"}, {"block", block.value()}, {"source", source.value()}});
  }
  void transfer_failed(const PlannedTransfer& /*transfer*/, const EngineFailure& failure,
                       Time /*now*/) override {
    tell({{"is", "failed"}, {"words", to_string(failure)}});
  }

 private:
  struct Buffer {
    std::vector<std::byte> bytes;
    RegionId region;
  };

  WorkerCard card() const {
    WorkerCard card = setup_.card;
    card.address = transport_.address();
    return card;
  }
  static EngineConfig engine_config() {
    EngineConfig config;
    config.read_deadline = seconds(30);
    config.no_progress = seconds(120);
    // Planned rates are those of the scenario's machine, not of this one: nobody is slow by them.
    config.least_slow_time = seconds(3'600);
    return config;
  }

  void tell(const json& line) {
    if (!lines_.send(line)) stop_ = true;
  }

  // Buffers into which a version is about to come, and of which nothing is there yet.
  void poison(Version version) {
    const auto holdings = agent_.holdings();
    for (std::size_t slot = 0; slot < holdings.size(); ++slot) {
      if (!holdings[slot] || holdings[slot]->version != version) continue;
      if (!holdings[slot]->verified.none() || setup_.card.host_memory) continue;
      auto& bytes = buffers_.at(static_cast<SlotNumber>(slot)).bytes;
      std::fill(bytes.begin(), bytes.end(), kPoison);
    }
  }

  void take_control() {
    std::vector<ControlEvent> events(16);
    for (std::size_t n = client_.poll(events); n != 0; n = client_.poll(events)) {
      for (std::size_t i = 0; i < n; ++i) take(events[i]);
    }
  }

  void take(const ControlEvent& event) {
    switch (event.kind) {
      case ControlEvent::Kind::Connected:
        codec_ = CatalogCodec(&setup_.router);
        break;
      case ControlEvent::Kind::Message: {
        const auto frame = codec_.decode_to_worker(
            {reinterpret_cast<const char*>(event.payload.data()), event.payload.size()},
            transport_.now());
        if (frame) {
          loop_.receive(*frame);
        } else {
          gone_ = "the coordinator sent what makes no sense: " + frame.error().problem;
        }
        break;
      }
      case ControlEvent::Kind::Disconnected:
        break;  // it connects again by itself, and the session repairs what was lost
      case ControlEvent::Kind::Unreachable:
        gone_ = "the coordinator cannot be reached";
        break;
    }
  }

  void obey(const json& order) {
    const std::string what = order.value("do", "");
    const Version version{order.value("lineage", std::uint64_t{0}),
                          order.value("number", std::uint64_t{0})};
    const CallId id = order.value("call", CallId{0});
    const Time deadline = transport_.now() + seconds(order.value("within", std::int64_t{30}));
    if (what == "publish") {
      work([this, version] { fill(version); },
           [this, id, version, deadline] { loop_.call(id, PublishCall{version}, deadline); });
    } else if (what == "fetch") {
      loop_.call(id, FetchCall{}, deadline);
    } else if (what == "unpublish") {
      loop_.call(id, UnpublishCall{version, OnDeadline::Fail}, deadline);
    } else if (what == "verify") {
      verify(version);
    } else if (what == "stop") {
      stop_ = true;
    } else {
      gone_ = "an order that is not known: " + order.dump();
    }
  }

  // Long work beside the loop, which must go on: whoever is silent for too long is taken for dead.
  // Orders wait for its end.
  void work(std::function<void()> what, std::function<void()> then) {
    then_ = std::move(then);
    work_ = std::async(std::launch::async, [this, what = std::move(what)] {
      what();
      transport_.wake_up().raise();
    });
  }
  void finish_work() {
    if (!work_.valid() || work_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
      return;
    }
    work_.get();
    then_();
  }

  // What training does: the weights of the version, in the buffer.
  void fill(Version version) {
    const WeightBytes bytes(setup_.manifest, version);
    const LayoutPlacement placement(setup_.map, {held(setup_.card.shard)});
    fill_blocks(bytes, setup_.manifest, setup_.map, placement, WorkerId(0U),
                setup_.space->spans(setup_.card.shard), buffers_.at(0).bytes);
  }

  void verify(Version version) {
    if (runs_ != version) return tell({{"is", "verified"}, {"wrong", "it does not run that"}});
    auto found = std::make_shared<std::optional<WrongByte>>();
    work(
        [this, version, found] {
          const WeightBytes bytes(setup_.manifest, version);
          *found = first_wrong_byte(bytes, setup_.manifest,
                                    setup_.map.layouts()[setup_.card.shard.layout],
                                    setup_.card.shard.rank, buffers_.at(running_slot_).bytes);
        },
        [this, found] {
          json line{{"is", "verified"}};
          if (*found) line["wrong"] = words_of(**found);
          tell(line);
        });
  }
  std::string words_of(const WrongByte& wrong) const {
    const auto& tensors = setup_.manifest.tensors();
    return wrong.tensor < tensors.size()
               ? fmt::format("byte {} of {}", wrong.offset, tensors[wrong.tensor].name)
               : std::string("the buffer has another length than the shard");
  }

  // Readers are cut off, reads are cancelled; bounded.
  int finish() {
    loop_.shutdown();
    const Time end = transport_.now() + seconds(5);
    loop_.pump();
    while (!loop_.idle() && transport_.now() < end) {
      transport_.wait(std::min(end, loop_.next_deadline()));
      take_control();
      loop_.pump();
    }
    return loop_.idle() ? 0 : 1;
  }

  const LocalWorkerSetup& setup_;
  std::map<SlotNumber, Buffer> buffers_;
  std::vector<std::vector<std::byte>> released_;
  TcpTransport transport_;
  HostMemory memory_;
  ControlClient client_;
  CatalogCodec codec_{nullptr};
  JsonLines lines_;
  Agent agent_;
  AgentLoop loop_;
  std::deque<json> orders_;
  std::optional<Version> runs_;
  SlotNumber running_slot_ = 0;
  bool ready_ = false;
  bool stop_ = false;
  std::string gone_;
  std::function<void()> then_;
  std::future<void> work_;  // last: its end is waited for first
};

}  // namespace

int run_local_worker(const LocalWorkerSetup& setup) {
  return LocalWorker(setup).run();
}

}  // namespace holdfast::real
