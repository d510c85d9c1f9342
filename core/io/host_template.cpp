#include "core/io/host_template.hpp"

#include <fmt/format.h>

#include <utility>

namespace holdfast {
namespace {

constexpr std::int64_t kMostParts = 256;  // of each kind in one host

std::uint32_t count(const YamlValue& value, std::int64_t least = 1) {
  return static_cast<std::uint32_t>(value.integer(least, kMostParts));
}

HostTemplate::Channel read_channel(YamlMap& map) {
  return {map.require("rate").rate(Zero::Refused), map.require("latency").time()};
}

std::vector<std::uint32_t> run_of(std::uint32_t first, std::uint32_t length) {
  std::vector<std::uint32_t> run;
  for (std::uint32_t i = 0; i < length; ++i) run.push_back(first + i);
  return run;
}

// `groups` equal groups of consecutive GPUs, NICs, on consecutive sockets.
std::vector<HostTemplate::PcieSwitch> share_out(const HostTemplate& host, std::uint32_t groups,
                                                const char* noun, const YamlValue& origin) {
  const auto check = [&](std::uint32_t whole, std::uint32_t parts, const char* things,
                         const char* over) {
    if (whole % parts == 0) return;
    origin.refuse(ErrorCode::BadTopology,
                  fmt::format("{} {} cannot be shared out evenly over {} {}; change one of the "
                              "numbers, or list under 'switches' what hangs where",
                              whole, things, parts, over));
  };
  check(host.gpus, groups, "GPUs", noun);
  check(host.nics, groups, "NICs", noun);
  check(groups, host.sockets, noun, "sockets");
  std::vector<HostTemplate::PcieSwitch> out;
  const std::uint32_t gpus = host.gpus / groups;
  const std::uint32_t nics = host.nics / groups;
  for (std::uint32_t i = 0; i < groups; ++i) {
    out.push_back({i / (groups / host.sockets), run_of(i * gpus, gpus), run_of(i * nics, nics)});
  }
  return out;
}

// Numbers of GPUs or NICs, each of which may hang on one switch only.
std::vector<std::uint32_t> read_members(const YamlValue& value, std::vector<bool>& taken) {
  std::vector<std::uint32_t> members;
  for (const YamlValue& item : value.list()) {
    if (taken.empty()) {
      value.refuse(ErrorCode::BadValue, "the host has none of these; leave the key out");
    }
    const auto index =
        static_cast<std::size_t>(item.integer(0, static_cast<std::int64_t>(taken.size()) - 1));
    if (taken[index]) {
      item.refuse(ErrorCode::Duplicate, fmt::format("number {} hangs on two switches", index));
    }
    taken[index] = true;
    members.push_back(static_cast<std::uint32_t>(index));
  }
  return members;
}

std::vector<HostTemplate::PcieSwitch> read_switches(const HostTemplate& host,
                                                    const YamlValue& value) {
  std::vector<bool> gpus(host.gpus);
  std::vector<bool> nics(host.nics);
  std::vector<HostTemplate::PcieSwitch> out;
  for (const YamlValue& item : value.list()) {
    YamlMap map = item.map();
    HostTemplate::PcieSwitch& one = out.emplace_back();
    if (const auto socket = map.find("socket")) {
      one.socket = static_cast<std::uint32_t>(socket->integer(0, host.sockets - 1));
    } else if (host.sockets > 1) {
      (void)map.require("socket");
    }
    if (const auto members = map.find("gpus")) one.gpus = read_members(*members, gpus);
    if (const auto members = map.find("nics")) one.nics = read_members(*members, nics);
    map.finish();
    if (one.gpus.empty() && one.nics.empty()) {
      item.refuse(ErrorCode::NoEffect, "nothing hangs on this switch; leave it out");
    }
  }
  const auto check = [&](const std::vector<bool>& taken, const char* noun) {
    for (std::size_t i = 0; i < taken.size(); ++i) {
      if (taken[i]) continue;
      value.refuse(ErrorCode::BadTopology,
                   fmt::format("{} {} hangs on no switch; name it in one of them", noun, i));
    }
  };
  check(gpus, "GPU");
  check(nics, "NIC");
  return out;
}

void read_pcie(HostTemplate& host, const YamlValue& value) {
  YamlMap map = value.map();
  host.pcie = read_channel(map);
  if (const auto sockets = map.find("sockets")) host.sockets = count(*sockets);
  if (host.sockets == 1) {
    map.no_effect("socket_link", "there is only one socket");
  } else {
    YamlMap link = map.require("socket_link").map();
    host.socket_link = read_channel(link);
    link.finish();
  }
  const auto switches = map.find("switches");
  map.finish();
  host.switched = switches.has_value();
  if (!switches) {
    host.groups = share_out(host, host.sockets, "sockets", value);
  } else if (switches->is_list()) {
    host.groups = read_switches(host, *switches);
  } else {
    host.groups = share_out(host, count(*switches), "PCIe switches", *switches);
  }
}

// The nodes of one host while its links are made.
struct Parts {
  std::vector<NodeId> gpus;
  std::vector<NodeId> nics;
  std::vector<NodeId> groups;  // PCIe switches, or root complexes without them
  std::vector<NodeId> roots;
  NodeId memory;
  NodeId nvswitch;
};

Parts add_nodes(TopologyDraft& draft, const HostTemplate& host, const std::string& name,
                DomainId domain, const YamlValue& origin) {
  const auto add = [&](std::string part, NodeKind kind, Bytes memory = {}, Rate digest = {}) {
    return draft.add_node({name + "." + std::move(part), kind, domain, memory, digest, true},
                          origin);
  };
  const auto add_all = [&](const char* part, NodeKind kind, std::size_t n) {
    std::vector<NodeId> ids;
    for (std::size_t i = 0; i < n; ++i) ids.push_back(add(fmt::format("{}{}", part, i), kind));
    return ids;
  };
  Parts parts;
  for (std::uint32_t i = 0; i < host.gpus; ++i) {
    parts.gpus.push_back(
        add(fmt::format("gpu{}", i), NodeKind::Gpu, host.gpu_memory, host.gpu_digest_rate));
  }
  parts.memory = add("mem", NodeKind::HostMemory, host.memory, host.memory_digest_rate);
  if (host.nvlink) parts.nvswitch = add("nvswitch", NodeKind::NvSwitch);
  parts.nics = add_all("nic", NodeKind::Nic, host.nics);
  if (host.switched) parts.groups = add_all("pcie", NodeKind::PcieSwitch, host.groups.size());
  parts.roots = add_all("root", NodeKind::PcieSwitch, host.sockets);
  if (!host.switched) parts.groups = parts.roots;
  return parts;
}

}  // namespace

std::uint64_t HostTemplate::nodes() const {
  return gpus + 1 + (nvlink ? 1 : 0) + nics + (switched ? groups.size() : 0) + sockets;
}

std::uint64_t HostTemplate::links() const {
  return gpus * (nvlink ? 2ULL : 1ULL) + nics + (switched ? groups.size() : 0) + (sockets - 1) +
         sockets;
}

HostTemplate read_host_template(std::string name, const YamlValue& value) {
  HostTemplate host;
  host.name = std::move(name);
  YamlMap map = value.map();

  YamlMap gpus = map.require("gpus").map();
  host.gpus = count(gpus.require("count"));
  host.gpu_memory = gpus.require("memory").bytes(Zero::Refused);
  host.gpu_digest_rate = gpus.require("digest_rate").rate(Zero::Refused);
  gpus.finish();

  if (const auto found = map.find("nvlink")) {
    YamlMap nvlink = found->map();
    host.nvlink = read_channel(nvlink);
    nvlink.finish();
    if (host.gpus == 1) {
      found->refuse(ErrorCode::NoEffect, "NVLink joins nothing in a host of one GPU; leave it out");
    }
  }
  if (const auto found = map.find("nics")) {
    YamlMap nics = found->map();
    host.nics = count(nics.require("count"));
    host.nic_rate = nics.require("rate").rate(Zero::Refused);
    nics.finish();
  }
  YamlMap memory = map.require("memory").map();
  host.memory = memory.require("size").bytes(Zero::Refused);
  host.memory_channel = read_channel(memory);
  host.memory_digest_rate = memory.require("digest_rate").rate(Zero::Refused);
  memory.finish();

  read_pcie(host, map.require("pcie"));
  map.finish();
  return host;
}

std::vector<NodeId> add_host(TopologyDraft& draft, const HostTemplate& host,
                             const std::string& name, DomainId parent, const YamlValue& origin) {
  const DomainId domain = draft.add_domain(name, Level::Host, parent, origin);
  Parts parts = add_nodes(draft, host, name, domain, origin);
  const auto join = [&](NodeId a, NodeId b, LinkKind kind, const HostTemplate::Channel& channel) {
    draft.add_link_between(
        a, b, {"", {}, {}, kind, channel.rate, channel.latency, std::nullopt, true}, origin);
  };
  if (host.nvlink) {
    for (const NodeId gpu : parts.gpus) join(gpu, parts.nvswitch, LinkKind::NvLink, *host.nvlink);
  }
  for (std::size_t i = 0; i < host.groups.size(); ++i) {
    const HostTemplate::PcieSwitch& group = host.groups[i];
    for (const std::uint32_t gpu : group.gpus) {
      join(parts.gpus[gpu], parts.groups[i], LinkKind::Pcie, host.pcie);
    }
    for (const std::uint32_t nic : group.nics) {
      join(parts.nics[nic], parts.groups[i], LinkKind::Pcie, host.pcie);
    }
    if (host.switched) {
      join(parts.groups[i], parts.roots[group.socket], LinkKind::Pcie, host.pcie);
    }
  }
  for (std::size_t i = 0; i < parts.roots.size(); ++i) {
    join(parts.memory, parts.roots[i], LinkKind::Memory, host.memory_channel);
    if (i > 0) join(parts.roots[i - 1], parts.roots[i], LinkKind::Pcie, *host.socket_link);
  }
  return std::move(parts.nics);
}

}  // namespace holdfast
