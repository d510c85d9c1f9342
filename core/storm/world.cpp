#include "core/storm/world.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast::storm {
namespace {

constexpr std::uint32_t kMostWorkers = 64;

struct Shape {
  std::uint32_t datacenters = 1;
  std::uint32_t racks = 1;  // of a datacenter
  std::uint32_t hosts = 2;  // of a rack
  std::uint32_t gpus = 1;   // of a host
};

Shape draw_shape(Dice& dice) {
  Shape shape;
  const std::uint32_t size = dice.below(100);
  if (size < 75) {
    shape.racks = dice.between(1, 3);
    shape.hosts = dice.between(1, 2);
    shape.gpus = dice.between(1, 2);
    if (shape.racks * shape.hosts * shape.gpus < 3) shape.hosts = 3;
  } else if (size < 95) {
    shape.datacenters = dice.between(1, 2);
    shape.racks = dice.between(1, 2);
    shape.hosts = dice.between(2, 3);
    shape.gpus = dice.between(1, 4);
  } else {
    shape.datacenters = dice.between(1, 2);
    shape.racks = dice.between(2, 3);
    shape.hosts = dice.between(2, 3);
    shape.gpus = dice.between(2, 3);
  }
  return shape;
}

// Endpoints in the order of their hosts.
struct Endpoints {
  std::vector<NodeId> gpus;
  std::vector<NodeId> memories;
};

class ClusterBuilder {
 public:
  explicit ClusterBuilder(Rate port) : builder_("storm"), port_(port) {}

  Topology build(const Shape& shape, Endpoints& endpoints) {
    NodeId first_gateway;
    for (std::uint32_t d = 0; d < shape.datacenters; ++d) {
      const std::string dc = fmt::format("d{}", d);
      const DomainId domain = builder_.add_domain(dc, Level::Datacenter);
      const NodeId spine = node(dc + ".spine", NodeKind::Spine, domain);
      for (std::uint32_t r = 0; r < shape.racks; ++r) {
        add_rack(shape, fmt::format("{}.r{}", dc, r), domain, spine, endpoints);
      }
      if (shape.datacenters == 1) continue;
      const NodeId gateway = node(dc + ".gateway", NodeKind::Gateway, domain);
      link(spine, gateway, LinkKind::Fabric, microseconds(2));
      if (d == 0) first_gateway = gateway;
      if (d > 0) link(first_gateway, gateway, LinkKind::Wan, milliseconds(5));
    }
    return builder_.build();
  }

 private:
  NodeId node(std::string name, NodeKind kind, DomainId domain) {
    Node made;
    made.name = std::move(name);
    made.kind = kind;
    made.domain = domain;
    if (is_endpoint(kind)) {
      made.memory = Bytes(1U << 30U);
      made.digest_rate = port_ * 8;
    }
    return builder_.add_node(std::move(made));
  }
  // A worker's own link is what limits it: as fast as its port on the network.
  void link(NodeId a, NodeId b, LinkKind kind, Time latency, bool own = false) {
    Link made;
    made.name =
        fmt::format("{}-{}", builder_.so_far().node(a).name, builder_.so_far().node(b).name);
    made.a = a;
    made.b = b;
    made.kind = kind;
    made.capacity = own ? port_ : port_ * 64;
    made.latency = latency;
    builder_.add_link(std::move(made));
  }
  void add_rack(const Shape& shape, const std::string& rack, DomainId dc, NodeId spine,
                Endpoints& endpoints) {
    const DomainId domain = builder_.add_domain(rack, Level::Rack, dc);
    const NodeId leaf = node(rack + ".leaf", NodeKind::Switch, domain);
    link(leaf, spine, LinkKind::Fabric, microseconds(1));
    for (std::uint32_t h = 0; h < shape.hosts; ++h) {
      const std::string host = fmt::format("{}.h{}", rack, h);
      const DomainId inside = builder_.add_domain(host, Level::Host, domain);
      const NodeId root = node(host + ".root", NodeKind::PcieSwitch, inside);
      const NodeId nic = node(host + ".nic0", NodeKind::Nic, inside);
      link(nic, root, LinkKind::Pcie, nanoseconds(200));
      link(nic, leaf, LinkKind::Fabric, microseconds(1));
      endpoints.memories.push_back(node(host + ".mem", NodeKind::HostMemory, inside));
      link(endpoints.memories.back(), root, LinkKind::Memory, nanoseconds(100), true);
      for (std::uint32_t g = 0; g < shape.gpus; ++g) {
        endpoints.gpus.push_back(node(fmt::format("{}.gpu{}", host, g), NodeKind::Gpu, inside));
        link(endpoints.gpus.back(), root, LinkKind::Pcie, nanoseconds(200), true);
      }
    }
  }

  TopologyBuilder builder_;
  Rate port_;
};

std::shared_ptr<const ModelSpace> draw_space(Dice& dice, std::uint32_t number) {
  const std::uint32_t blocks = dice.chance(300) ? dice.between(17, 32) : dice.between(2, 16);
  const Bytes size(dice.between(16, 256));
  std::vector<Bytes> bytes(blocks, size);
  if (dice.chance(500)) bytes.back() = Bytes(dice.between(1, 15));
  auto space = std::make_shared<ModelSpace>(fmt::format("job{}", number), "model", size, bytes);
  space->add_layout("tp1", {{{BlockId(0U), blocks}}});
  // The last block may be replicated, like norms are.
  const std::uint32_t half = std::max(1U, blocks / 2);
  std::vector<BlockSpan> low{{BlockId(0U), half}};
  if (blocks > half + 1 && dice.chance(500)) low.push_back({BlockId(blocks - 1), 1});
  space->add_layout("tp2", {low, {{BlockId(half), blocks - half}}});
  return space;
}

void draw_times(Dice& dice, World& world) {
  WorldTimes& times = world.times;
  times.control_latency = dice.between(microseconds(20), milliseconds(5));
  times.data_latency = dice.between(microseconds(2), milliseconds(1));
  times.most_planning = dice.between(Time{}, milliseconds(400));
  times.least_planning = times.most_planning / 4;
  Dice cancelling(world.seed, 0xca);
  if (cancelling.chance(400)) times.most_cancelling = cancelling.between(Time{}, milliseconds(2));
  times.peer_detection = dice.between(milliseconds(1), milliseconds(500));
  CoordinatorConfig& coordinator = world.coordinator;
  coordinator.rebuild_time = dice.between(milliseconds(300), seconds(2));
  coordinator.detection = dice.between(milliseconds(800), seconds(3));
  coordinator.gather = dice.between(Time{}, milliseconds(10));
  coordinator.judge_interval = dice.between(milliseconds(1), milliseconds(40));
  coordinator.plan_deadline = seconds(5);
  coordinator.serve_from_spot = dice.chance(700);
  coordinator.session.timeout = dice.between(milliseconds(60), milliseconds(250));
  coordinator.session.ack_delay = milliseconds(10);
  coordinator.session.timeout_cap = seconds(1);
  coordinator.session.window = dice.chance(300) ? dice.between(1, 4) : 64;
  world.agent.heartbeat = coordinator.detection / 6;
  world.agent.hello_interval = milliseconds(dice.between(30, 150));
  world.agent.progress_interval = milliseconds(dice.between(10, 150));
  world.agent.stop_time = milliseconds(2);  // no less than cancelling takes
  world.agent.session = coordinator.session;
  world.engine.read_deadline = dice.between(seconds(1), seconds(4));
  world.engine.no_progress = seconds(20);
  world.engine.ask_interval = dice.between(milliseconds(5), milliseconds(100));
  world.engine.ask_interval_most = seconds(1);
}

WorkerCard draw_card(Dice& dice, const WorldGroup& group, GroupId id, std::uint32_t rank,
                     NodeId node, bool reliable) {
  WorkerCard card;
  card.node = node;
  card.space = group.space;
  card.reliable = reliable;
  card.group = id;
  card.shard = {group.layout, rank};
  card.slots = !group.trainer && dice.chance(400) ? 2 : 1;
  return card;
}

void draw_groups(Dice& dice, World& world, const std::vector<NodeId>& gpus) {
  std::size_t next = 0;
  while (next < gpus.size()) {
    WorldGroup group;
    // The first group of each job trains; later ones now and then.
    const auto number = static_cast<std::uint32_t>(world.groups.size());
    group.space = SpaceId(number < world.spaces.size() ? number : dice.below(world.spaces.size()));
    group.trainer = number < world.spaces.size() || dice.chance(250);
    group.layout = gpus.size() - next >= 2 && dice.chance(500) ? 1 : 0;
    const bool reliable = group.trainer || !dice.chance(300);
    const GroupId id(world.groups.size());
    const std::uint32_t ranks = world.spaces[group.space.index()]->ranks(group.layout);
    const Dice slots = dice;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      Dice same = slots;  // all members of a group have as many buffers
      group.members.emplace_back(world.cards.size());
      world.cards.push_back(draw_card(same, group, id, rank, gpus[next++], reliable));
    }
    dice.next();
    world.groups.push_back(std::move(group));
  }
}

void draw_memories(Dice& dice, World& world, const std::vector<NodeId>& memories) {
  for (const NodeId node : memories) {
    if (!dice.chance(500) || world.cards.size() >= kMostWorkers) continue;
    WorkerCard card;
    card.node = node;
    card.space = SpaceId(dice.below(world.spaces.size()));
    card.host_memory = true;
    card.reliable = !dice.chance(200);
    card.shard = kWholeModel;
    card.slots = 0;
    const Bytes model = world.spaces[card.space.index()]->bytes({0, 0});
    card.budget = Bytes(model.count() * dice.between(1, 5) / 2);
    world.memories.emplace_back(world.cards.size());
    world.cards.push_back(card);
  }
}

}  // namespace

World make_world(std::uint64_t seed) {
  Dice dice(seed, 0x77);
  World world;
  world.seed = seed;
  const Shape shape = draw_shape(dice);
  const std::uint32_t jobs = shape.hosts * shape.racks > 2 && dice.chance(120) ? 2 : 1;
  for (std::uint32_t job = 0; job < jobs; ++job) world.spaces.push_back(draw_space(dice, job));
  draw_times(dice, world);
  // A whole model takes from a few milliseconds to a second or two.
  std::uint64_t bytes = 0;
  for (const auto& space : world.spaces) bytes = std::max(bytes, space->bytes({0, 0}).count());
  const Time whole = dice.between(milliseconds(4), milliseconds(dice.chance(300) ? 2000 : 300));
  world.times.port = Rate(std::max<std::uint64_t>(
      1, bytes * 1000 / static_cast<std::uint64_t>(whole.picoseconds() / 1'000'000'000)));
  Endpoints endpoints;
  world.topology =
      std::make_unique<const Topology>(ClusterBuilder(world.times.port).build(shape, endpoints));
  draw_groups(dice, world, endpoints.gpus);
  draw_memories(dice, world, endpoints.memories);
  static constexpr Policy kPolicies[] = {Policy::Star,    Policy::Chain,        Policy::Binomial,
                                         Policy::TwoTree, Policy::Hierarchical, Policy::Auto};
  world.policy = kPolicies[dice.below(std::size(kPolicies))];
  return world;
}

namespace {

// The byte at a place of a stream of words.
Dice stream_of(const Content& content, BlockId block) {
  Dice mixed(content.version.lineage * 1'000'003 + content.version.number,
             content.variant * 64U + content.space.value());
  return Dice(mixed.next(), block.value());
}

}  // namespace

void write_block(const Content& content, BlockId block, std::span<std::byte> out) {
  Dice dice = stream_of(content, block);
  for (std::byte& byte : out) byte = static_cast<std::byte>(dice.next() & 0xffU);
}

bool is_block(const Content& content, BlockId block, std::span<const std::byte> bytes) {
  Dice dice = stream_of(content, block);
  return std::all_of(bytes.begin(), bytes.end(), [&](std::byte byte) {
    return byte == static_cast<std::byte>(dice.next() & 0xffU);
  });
}

}  // namespace holdfast::storm
