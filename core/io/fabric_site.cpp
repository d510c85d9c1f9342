#include "core/io/fabric_site.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace holdfast {

FabricSite::FabricSite(TopologyDraft& draft, std::vector<HostClass> classes, const Cluster& cluster)
    : draft_(&draft), classes_(std::move(classes)), cluster_(&cluster) {
  for (const HostClass& one : classes_) {
    hosts_ += one.count;
    nics_ += one.count * one.host->nics;
  }
}

std::string FabricSite::name(const char* what, std::uint64_t i) const {
  return fmt::format("{}{}{}", cluster_->prefix, what, i);
}

void FabricSite::need_nics(const YamlValue& fabric) const {
  for (const HostClass& one : classes_) {
    if (one.host->nics > 0) continue;
    fabric.refuse(ErrorCode::BadTopology,
                  fmt::format("hosts of template '{}' have no NICs to join; add 'nics' to it",
                              one.host->name));
  }
}

void FabricSite::need_even_nics(std::uint64_t leaves, const char* noun,
                                const YamlValue& origin) const {
  for (const HostClass& one : classes_) {
    if (one.host->nics % leaves == 0) continue;
    origin.refuse(ErrorCode::BadTopology,
                  fmt::format("{} NICs of a host of template '{}' do not divide over {} {}; change "
                              "one of the numbers",
                              one.host->nics, one.host->name, leaves, noun));
  }
}

std::vector<NicPort> FabricSite::add_next_host(DomainId parent) {
  while (in_class_ == classes_[class_].count) {
    ++class_;
    in_class_ = 0;
  }
  const HostClass& one = classes_[class_];
  ++in_class_;
  std::vector<NicPort> ports;
  for (const NodeId nic : add_host(*draft_, *one.host, name("h", next_++), parent, one.origin)) {
    ports.push_back({nic, one.host->nic_rate});
  }
  return ports;
}

NodeId FabricSite::add_switch(std::string name, NodeKind kind, DomainId domain) const {
  return draft_->add_node({std::move(name), kind, domain, {}, {}, true}, classes_.front().origin);
}

void FabricSite::add_fabric_link(NodeId a, NodeId b, Rate capacity, Time latency,
                                 const YamlValue& origin) const {
  draft_->add_link_between(
      a, b, {"", {}, {}, LinkKind::Fabric, capacity, latency, std::nullopt, true}, origin);
}

}  // namespace holdfast
